-- claim.lua - claims, or checks: see usual.lua.
--
-- ARGV: 8 per operation: flags, 'room base' or '', lease, ttl, fingerprint, attempt_id, owner,
-- cause
-- The answer is the token if there was no record.
local is_check = ARGV[4] == 'check'
local parked_max = tonumber(match(ARGV[3], '^0 0 (%d+)$'))
local count = #KEYS - 4
-- Is none of the records present, except those created here?
local are_new = count > 1 and call('EXISTS', unpack(KEYS, 5)) == 0
local made = {}
local lease_of, due_of = spans(), spans()

-- There is no record: create one. nil: not a usual case.
local function take(name, at)
	local print, ttl = ARGV[at + 4], ARGV[at + 3]
	local fresh = math.max(token + 1, micros)
	if fresh > 9007199254740991 or (parked >= parked_max and not is_check) then
		return nil
	end
	local member = sub(name, skip)
	local size = 600 + 4 * #member + #print
	local from, due, set, n = now, nil, nil, 14
	if is_check then
		set = {'HSET', name, 'state', 'done', 'token', format('%d', fresh), 'attempt', '1', 'seen', stamp,
			'changed', stamp, 'origin', 'check'}
	else
		local by, owner, cause, lease = ARGV[at + 5], ARGV[at + 6], ARGV[at + 7], nil
		size = size + #by + #owner + #cause
		lease, from = lease_of(now, ARGV[at + 2])
		set = {'HSET', name, 'state', 'claimed', 'token', format('%d', fresh), 'attempt', '1', 'seen', stamp,
			'changed', stamp, 'origin', 'claim', 'lease', lease, 'by', by}
		n = 18
		if owner ~= '' then
			set[n + 1], set[n + 2] = 'owner', owner
			n = n + 2
		end
		if cause ~= '' then
			set[n + 1], set[n + 2] = 'cause', cause
			n = n + 2
		end
		if find(ARGV[at], 'p', 1, true) then
			set[n + 1], set[n + 2] = 'lapse', 'park'
			n = n + 2
		end
	end
	if print ~= '' then
		set[n + 1], set[n + 2] = 'print', print
		n = n + 2
	end
	if ttl ~= '' then
		due = due_of(from, ttl)
		set[n + 1], set[n + 2] = 'ttl', ttl
		n = n + 2
		if is_check then
			set[n + 1], set[n + 2] = 'expires', due
			n = n + 2
		end
	end
	set[n + 1], set[n + 2] = 'bytes', format('%d', size)
	local reply = try(unpack(set))
	if type(reply) == 'table' then
		return failed(reply)
	end
	has_written, is_changed = true, true
	token, bytes = fresh, bytes + size
	if due then
		enter_due(due, member)
	end
	n = #new_members
	new_members[n + 1], new_members[n + 2] = '0', member
	made[name] = true
	if is_check then
		done = done + 1
		announce(member)
	else
		claimed = claimed + 1
	end
	return fresh
end

-- A record exists and stays unchanged. nil: not a usual case.
local function show(name, at)
	local row = call('HMGET', name, 'state', 'token', 'attempt', 'seen', 'changed', 'lease', 'expires', 'ttl', 'lapse',
		'origin', 'print', 'by', 'owner', 'error', 'cause')
	local print = ARGV[at + 4]
	local outcome, left = nil, 0
	if not (tonumber(row[2]) and tonumber(row[3]) and tonumber(row[4]) and tonumber(row[5])) then
		return nil
	elseif row[1] == 'done' and (not row[7] or tonumber(row[7]) > now) then
		outcome = 'replay'
	elseif row[1] == 'claimed' and row[12] ~= ARGV[at + 5] and tonumber(row[6] or 0) > now then
		outcome, left = 'in_progress', tonumber(row[6]) - now
	else
		return nil
	end
	local unverified = (print == '' or not row[11]) and 1 or 0
	if unverified == 0 and row[11] ~= print then
		return nil
	end
	local record = false
	if find(ARGV[at], 'w', 1, true) then
		record = row
		for i = 1, 15 do
			record[i] = record[i] or ''
		end
		record[16] = false
		if outcome == 'replay' then
			local results = call('HMGET', name, 'kind', 'class', 'status', 'omitted', 'headers', 'body')
			for i = 1, 6 do
				results[i] = results[i] or ''
			end
			record[16] = results
		end
	end
	return {outcome, unverified, row[2], row[3], row[4], row[7] or '', left, record}
end

for i = 1, count do
	local at = 5 + (i - 1) * 8
	local name = KEYS[4 + i]
	local answer
	if parked_max and not find(ARGV[at], 'l', 1, true) then
		local state = not (are_new and not made[name]) and try('HGET', name, 'state')
		if not state then
			answer = take(name, at)
		elseif type(state) == 'table' then
			answer = failed(state)
		else
			answer = show(name, at)
		end
	end
	if not answer then
		local keys_max, bytes_max, parked_limit = match(ARGV[3], '^(%d+) (%d+) (%d+)$')
		local room, base = match(ARGV[at + 1], '^(%d+) (%d+)$')
		answer = by_all_rules(i, {ARGV[1], ARGV[2], '', keys_max, bytes_max, parked_limit, ARGV[4], ARGV[at], room or '0',
			base or '0', ARGV[at + 2], ARGV[at + 3], ARGV[at + 4], ARGV[at + 5], ARGV[at + 6], '', '0', '', '',
			'', '', '', '', '', ARGV[at + 7]})
	end
	if refusal then
		return refusal
	end
	answers[3 + i] = answer
end
keep()
answers[2] = now
return answers
