-- operate.lua - operations on records that take effect together. The rules are those of
-- src/record/transition.c; the conformance suite compares the two.
--
-- KEYS[4 + i] the record of operation i
-- ARGV[3] '1': all or nothing; [4] keys_max, [5] bytes_max (0: none), [6] parked_max
-- then 19 per operation:
--   1 type   2 flags, letters: w return the record, l the room is final, p lapse park,
--   f force, s set only, k keep ttl, t ttl is a time, a if absent, x if present, e if equal,
--   o the value exceeds the limit: refuse it
--   3 room for the record's texts   4 size of tenant, group and key   5 lease   6 ttl
--   7 fingerprint   8 attempt_id   9 owner   10 error   11 token   12 expected
--   13 kind   14 class   15 status   16 omitted   17 headers   18 body   19 cause
-- load passes its record there: lease is its end, and expected is 'state attempt seen changed
-- expires origin', with - for never.
--
-- Answers {removed, answer...}. If the record that operation i returns needs more room, nothing was
-- done, and the answer is {'room', i, size}. An answer is {outcome, mark, token, attempt, seen,
-- expires, lease left, record}. mark is 1 for a claim whose payload was not compared, and for a
-- repeated end. A record is false, or its 15 fields and then false, 1 (the result is the caller's
-- own) or the six fields of its result.
local FIRST, STRIDE = 7, 19
local TOKEN_MAX = 9007199254740991
local ATTEMPT_MAX = 4294967295
local TTL_MAX = 3155760000000
local count = #KEYS - 4
local all_or_nothing = ARGV[3] == '1'
local keys_max, bytes_max, parked_max = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local ops = {}
local has_taken = false

local by_token = {
	renew = {claimed = 'claim', parked = 'claim'},
	complete = {claimed = 'done', parked = 'done', failed = 'done', done = 'keep'},
	release = {claimed = 'fail', parked = 'fail', failed = 'keep'},
	park = {claimed = 'park', parked = 'keep'},
}

local function has(op, letter)
	return string.find(op.flags, letter, 1, true) ~= nil
end

local function answer(op, outcome, record)
	op.outcome = outcome
	op.shown = record
end

local function change(op, next, results)
	op.effect = 'put'
	op.next = next
	op.results = results
end

-- A token above every earlier one; the claims of an all-or-nothing group share one.
local function take_token(op)
	if not (has_taken and all_or_nothing) then
		local fresh = token + 1
		if micros > fresh and micros <= TOKEN_MAX then
			fresh = micros
		end
		if fresh > TOKEN_MAX then
			op.is_exhausted = true
			fresh = token
		end
		token = fresh
	end
	has_taken = true
	op.takes = true
	return text(token)
end

-- The TTL of a record that op writes. If op gives a time, the TTL ends exactly then.
local function ttl_of(op)
	if not has(op, 't') then
		return op.ttl
	end
	return text(math.min(math.max(tonumber(op.ttl) - now, 1), TTL_MAX))
end

local function begin(op, origin)
	return {state = '', token = take_token(op), attempt = '1', seen = text(now), changed = text(now),
		lease = '', expires = '', ttl = ttl_of(op), lapse = '', origin = origin, print = '', by = '',
		owner = '', error = '', cause = '', bytes = ''}
end

local function enter_claimed(record, op)
	if record.state ~= 'claimed' then
		record.changed = text(now)
	end
	record.state = 'claimed'
	record.expires = ''
	record.lease = after(op.lease)
end

local function enter_done(record)
	record.state = 'done'
	record.changed = text(now)
	record.lease = ''
	record.expires = after(record.ttl)
	record.by = ''
	record.owner = ''
	record.error = ''
end

local no_results = {'', '', '', '', '', ''}

local function acquire(op, old)
	local next = begin(op, op.type)
	if old then
		local attempt = tonumber(old.attempt)
		next.seen = old.seen
		next.attempt = text(attempt < ATTEMPT_MAX and attempt + 1 or ATTEMPT_MAX)
	end
	next.print = op.print
	if op.type == 'check' then
		enter_done(next)
	else
		enter_claimed(next, op)
		next.lapse = has(op, 'p') and 'park' or ''
		next.owner = op.owner
		next.cause = op.cause
		next.by = op.by
	end
	change(op, next, no_results)
	answer(op, 'acquired', next)
end

local function is_mismatch(op, old)
	if op.print == '' or old.print == '' then
		op.mark = 1
		return false
	end
	-- The fingerprint of a record from another store may have only half of the bytes.
	local size = math.min(#op.print, #old.print)
	return string.sub(op.print, 1, size) ~= string.sub(old.print, 1, size)
end

local function claim_claimed(op, old)
	if op.type == 'claim' and op.by == old.by then
		local next = copy(old)
		enter_claimed(next, op)
		change(op, next, nil)
		answer(op, 'acquired', next)
	elseif not is_lapsed(old) then
		answer(op, 'in_progress', old)
	elseif old.lapse == 'park' then
		local next = copy(old)
		enter_parked(next, 'the lease lapsed')
		change(op, next, nil)
		answer(op, 'parked', next)
	else
		acquire(op, old)
	end
end

local function claim(op, old)
	if not old or old.state == 'failed' then
		acquire(op, old)
	elseif is_mismatch(op, old) then
		answer(op, 'mismatch', old)
	elseif old.state == 'claimed' then
		claim_claimed(op, old)
	elseif old.state == 'parked' then
		answer(op, 'parked', old)
	else
		answer(op, 'replay', old)
	end
end

local function with_token(op, old)
	local verdict = old and old.token == op.token and by_token[op.type][old.state]
	if not verdict then
		answer(op, 'fenced', nil)
		return
	end
	if verdict == 'keep' then
		op.mark = 1
		answer(op, 'applied', old)
		return
	end
	local next = copy(old)
	if verdict == 'claim' then
		enter_claimed(next, op)
		change(op, next, nil)
	elseif verdict == 'done' then
		enter_done(next)
		change(op, next, op.given)
		op.is_own = true
	elseif verdict == 'fail' then
		enter_failed(next, op.error)
		change(op, next, nil)
	else
		enter_parked(next, op.error)
		change(op, next, nil)
	end
	answer(op, 'applied', next)
end

local function forget(op, old)
	if not old or (has(op, 's') and old.state == 'failed') then
		answer(op, 'absent', nil)
		return
	end
	local is_held = old.state == 'claimed' or old.state == 'parked'
	if (is_held and not has(op, 'f')) or (has(op, 's') and old.origin ~= 'set') then
		answer(op, 'busy', old)
		return
	end
	if has(op, 's') and has(op, 'e') and (call('HGET', op.name, 'body') or '') ~= op.expected then
		answer(op, 'not_met', old)
		return
	end
	op.effect = 'remove'
	answer(op, 'applied', old)
end

local function is_settable(old)
	return old.state == 'done' and old.origin == 'set'
end

local function condition_holds(op, old)
	if has(op, 'a') then
		return not old
	elseif has(op, 'x') then
		return old ~= nil
	elseif has(op, 'e') then
		return old ~= nil and (call('HGET', op.name, 'body') or '') == op.expected
	end
	return true
end

local function set(op, old)
	if old and old.state == 'failed' then
		old = nil
	end
	if old and not is_settable(old) and not has(op, 'a') then
		answer(op, 'busy', old)
		return
	end
	if not condition_holds(op, old) then
		answer(op, 'not_met', old)
		return
	end
	local next = begin(op, 'set')
	if old and has(op, 'k') then
		next.ttl = old.ttl
	end
	enter_done(next)
	if old and has(op, 'k') then
		next.expires = old.expires
	end
	change(op, next, op.given)
	answer(op, 'applied', next)
end

local function expire(op, old)
	if not old or old.state == 'failed' then
		answer(op, 'absent', nil)
	elseif not is_settable(old) then
		answer(op, 'busy', old)
	else
		local next = copy(old)
		next.ttl = ttl_of(op)
		next.expires = after(next.ttl)
		change(op, next, nil)
		answer(op, 'applied', next)
	end
end

-- A record of another store, unchanged.
local function load_record(op)
	local state, attempt, seen, changed, expires, origin = string.match(op.expected,
		'^(%a+) (%d+) (%-?%d+) (%-?%d+) (%-?%d*) (%a+)$')
	local next = {state = state, token = op.token, attempt = attempt, seen = seen, changed = changed,
		lease = op.lease, expires = expires == '-' and '' or expires, ttl = op.ttl,
		lapse = has(op, 'p') and 'park' or '', origin = origin, print = op.print, by = op.by,
		owner = op.owner, error = op.error, cause = op.cause, bytes = ''}
	token = math.max(token, tonumber(op.token))
	change(op, next, op.given)
	answer(op, 'applied', next)
end

local function lookup(op, old)
	answer(op, old and 'found' or 'absent', old)
end

local decide = {claim = claim, check = claim, renew = with_token, complete = with_token,
	release = with_token, park = with_token, lookup = lookup, forget = forget, set = set,
	expire = expire, load = load_record}

local function is_go(op)
	return op.outcome == 'acquired' or op.outcome == 'applied'
end

local function all_go()
	for i = 1, count do
		if not is_go(ops[i]) then
			return false
		end
	end
	return true
end

local function goes()
	return not all_or_nothing or all_go()
end

local function refuse(op, outcome)
	op.outcome = outcome
	op.shown = nil
	op.effect = nil
	op.mark = 0
end

local function read_op(i)
	local at = FIRST + (i - 1) * STRIDE
	local name = KEYS[4 + i]
	local op = {type = ARGV[at], flags = ARGV[at + 1], room = tonumber(ARGV[at + 2]),
		base = tonumber(ARGV[at + 3]), lease = ARGV[at + 4], ttl = ARGV[at + 5],
		print = ARGV[at + 6], by = ARGV[at + 7], owner = ARGV[at + 8], error = ARGV[at + 9],
		token = ARGV[at + 10], expected = ARGV[at + 11], cause = ARGV[at + 18], name = name, mark = 0,
		member = string.sub(name, #prefix + 2)}
	op.given = {ARGV[at + 12], ARGV[at + 13], ARGV[at + 14], ARGV[at + 15], ARGV[at + 16],
		ARGV[at + 17]}
	return op
end

-- Approximate memory of a record in the server: its hash, its entries in two sorted sets, its name.
local function size_of(op)
	local next = op.next
	local size = 600 + 4 * #op.member + #next.print + #next.by + #next.owner + #next.error + #next.cause
	if op.results then
		return size + #op.results[5] + #op.results[6]
	end
	return size
end

local function omit_body(op)
	local results = op.results
	if results[6] ~= '' then
		op.results = {results[1], results[2], results[3], text(#results[6]), results[5], ''}
		op.next.bytes = text(size_of(op))
	end
end

local function is_over_bytes(op, growth)
	local is_new = op.takes and (not op.row or op.type == 'set')
	if bytes_max == 0 or not (is_new or op.type == 'complete') then
		return false
	end
	local room = is_new and bytes_max - math.floor(bytes_max / 16) or bytes_max
	local used = bytes + growth.bytes
	local size = tonumber(op.next.bytes)
	local is_over = used > room or size > room - used
	if is_over and op.type == 'complete' then
		-- A completed run stays done, as a tombstone.
		omit_body(op)
		size = tonumber(op.next.bytes)
		is_over = false
	end
	growth.bytes = growth.bytes + size
	return is_over
end

local function is_over_parked(op)
	return op.type == 'claim' and op.takes and counts.parked >= parked_max and
		tonumber(call('HGET', KEYS[4], scope_of(op.member)) or 0) >= parked_max
end

local function limit(op, growth)
	if op.is_exhausted or (keys_max ~= 0 and not op.row and total() + growth.rows >= keys_max) or
		is_over_bytes(op, growth) or is_over_parked(op) then
		refuse(op, 'limit')
	elseif not op.row then
		growth.rows = growth.rows + 1
	end
end

local function has_result(record)
	return record.state == 'done'
end

-- The record to return: set and forget show it before the operation, others after it.
local function to_hand_out(op)
	if op.type == 'set' or op.type == 'forget' then
		return op.old
	end
	return op.effect == 'put' and op.next or op.old
end

-- Size of the texts of a record that an operation with an effect returns.
local function room_needed(op)
	local record = to_hand_out(op)
	if not record then
		return 0
	end
	local size = op.base + #record.owner + #record.error + #record.cause
	if record == op.next and op.results then
		return size + #op.results[5] + #op.results[6]
	elseif has_result(record) then
		return size + call('HSTRLEN', op.name, 'headers') + call('HSTRLEN', op.name, 'body')
	end
	return size
end

local function show(op)
	local record = to_hand_out(op)
	if not record then
		return false
	end
	local shown = {}
	for i = 1, 15 do
		shown[i] = record[fields[i]]
	end
	shown[16] = false
	if op.outcome == 'mismatch' or not has_result(record) then
		return shown
	end
	if record == op.next and op.results then
		shown[16] = op.is_own and #op.results[6] > 0 and 1 or op.results
		return shown
	end
	local results = call('HMGET', op.name, unpack(result_fields))
	for i = 1, #result_fields do
		results[i] = results[i] or ''
	end
	shown[16] = results
	return shown
end

local function describe(op)
	local record = op.shown
	if not record then
		return {op.outcome, op.mark, '0', '0', '0', '', '0', false}
	end
	local left = 0
	if record.state == 'claimed' and tonumber(record.lease) > now then
		left = tonumber(record.lease) - now
	end
	return {op.outcome, op.mark, record.token, record.attempt, record.seen, record.expires,
		text(left), false}
end

-- Nothing of the group happens: operations that would have succeeded answer with the current
-- record.
local function skip_all()
	for i = 1, count do
		local op = ops[i]
		op.effect = nil
		if is_go(op) then
			op.outcome = 'skipped'
			op.mark = 0
			op.shown = op.old
		end
	end
end

-- The store is full: remove expired records first.
local removed = 0
if (keys_max ~= 0 and total() + count > keys_max) or
	(bytes_max ~= 0 and bytes >= bytes_max - math.floor(bytes_max / 16)) then
	local looked
	looked, removed = sweep(64 + count)
	if looked > 0 then
		keep_books()
	end
end

for i = 1, count do
	local op = read_op(i)
	ops[i] = op
	op.row = load(op.name)
	if op.row and not is_valid(op.row) then
		refuse(op, 'corrupt')
	elseif has(op, 'o') then
		refuse(op, 'limit')
	else
		op.old = op.row and not is_expired(op.row) and op.row or nil
		decide[op.type](op, op.old)
	end
end
if has_taken and all_or_nothing then
	for i = 1, count do
		local op = ops[i]
		if op.type == 'claim' and op.outcome == 'acquired' and op.effect == 'put' then
			op.next.token = text(token)
		end
	end
end

local growth = {rows = 0, bytes = 0}
for i = 1, count do
	local op = ops[i]
	if op.effect == 'put' then
		op.next.bytes = op.results and '' or op.row.bytes
		if op.next.bytes == '' then
			op.next.bytes = text(size_of(op))
		end
		limit(op, growth)
	end
end
if goes() then
	for i = 1, count do
		local op = ops[i]
		if op.effect and has(op, 'w') then
			local size = room_needed(op)
			if size > op.room then
				if not has(op, 'l') then
					return {'room', i, size}
				end
				refuse(op, 'no_room')
			end
		end
	end
end
if not goes() then
	skip_all()
end

local is_error = {fenced = true, limit = true, corrupt = true, no_room = true}
local answers = {removed}
local writes, is_new = false, false
for i = 1, count do
	local op = ops[i]
	answers[i + 1] = describe(op)
	if has(op, 'w') and not is_error[op.outcome] then
		answers[i + 1][8] = show(op)
	end
	if op.effect then
		writes = true
		is_new = is_new or (op.effect == 'put' and (not op.row or op.type == 'set'))
	end
end
if writes then
	if not is_new then
		write_though_full()
	end
	for i = 1, count do
		local op = ops[i]
		if op.effect == 'put' then
			put(op.member, op.row, op.next, op.results)
		elseif op.effect == 'remove' then
			remove(op.member, op.row)
		end
	end
	keep_books()
end
return answers
