-- prelude.lua - precedes every script: the store's totals, its clock, its records.
--
-- KEYS[1] meta    hash: version, now, token, number of records per state, their bytes
-- KEYS[2] due     sorted set: when a record expires, or a lapsed claim is given up
-- KEYS[3] keys    sorted set, all scores 0: every record, for walks in order
-- KEYS[4] parked  hash: parked records per scope
-- ARGV[1] the time in ms, or '' for the server's clock; ARGV[2] the prefix of all names
--
-- A record is the hash <prefix>:<tenant>/<group>:<key>. An empty field counts as missing: no ttl is
-- forever, no expires is never, no lapse is retry, no class is ok, no kind is none.
--
-- (1) Everything is read and decided before the first write.
-- (2) `now` never goes back: meta keeps the last time written.
-- (3) The counts in meta are those of the records in `keys`.
local call = redis.call
local prefix = ARGV[2]
local fields = {'state', 'token', 'attempt', 'seen', 'changed', 'lease', 'expires', 'ttl', 'lapse',
	'origin', 'print', 'by', 'owner', 'error', 'cause', 'bytes'}
local result_fields = {'kind', 'class', 'status', 'omitted', 'headers', 'body'}

-- Numbers below 2^53, without exponent.
local function text(number)
	return string.format('%.0f', number)
end

local meta = call('HMGET', KEYS[1], 'now', 'token', 'bytes', 'claimed', 'done', 'failed', 'parked')
local token = tonumber(meta[2] or 0)
local bytes = tonumber(meta[3] or 0)
local counts = {claimed = tonumber(meta[4] or 0), done = tonumber(meta[5] or 0),
	failed = tonumber(meta[6] or 0), parked = tonumber(meta[7] or 0)}
local now, micros
if ARGV[1] ~= '' then
	now = tonumber(ARGV[1])
	micros = now * 1000
else
	local time = call('TIME')
	micros = time[1] * 1000000 + time[2]
	now = math.floor(micros / 1000)
end
if now < tonumber(meta[1] or 0) then
	now = tonumber(meta[1])
end

local function total()
	return counts.claimed + counts.done + counts.failed + counts.parked
end

local function scope_of(member)
	return string.sub(member, 1, string.find(member, ':', 1, true) - 1)
end

local function name_of(member)
	return prefix .. ':' .. member
end

-- The record as a table of its fields, '' for a missing one. nil: no record.
local function load(name)
	local values = call('HMGET', name, unpack(fields))
	if not values[1] then
		return nil
	end
	local record = {}
	for i, field in ipairs(fields) do
		record[field] = values[i] or ''
	end
	return record
end

local function is_valid(record)
	return counts[record.state] and tonumber(record.token) and tonumber(record.attempt) and
		tonumber(record.seen) and tonumber(record.changed) and
		(record.state ~= 'claimed' or tonumber(record.lease))
end

local function is_expired(record)
	return (record.state == 'done' or record.state == 'failed') and record.expires ~= '' and
		tonumber(record.expires) <= now
end

local function is_lapsed(record)
	return record.state == 'claimed' and tonumber(record.lease) <= now
end

-- The end of a span that begins now; a span of forever has no end.
local function after(span)
	if span == '' then
		return ''
	end
	return text(now + tonumber(span))
end

local function copy(record)
	local next = {}
	for _, field in ipairs(fields) do
		next[field] = record[field]
	end
	return next
end

local function enter_failed(record, error)
	record.state = 'failed'
	record.changed = text(now)
	record.lease = ''
	record.expires = after(record.ttl)
	record.error = error
	record.by = ''
end

local function enter_parked(record, error)
	record.state = 'parked'
	record.changed = text(now)
	record.lease = ''
	record.expires = ''
	record.error = error
end

-- When the sweep must examine a record; nil: never.
local function due_of(record)
	if record.state == 'claimed' then
		return record.ttl ~= '' and text(tonumber(record.lease) + tonumber(record.ttl)) or nil
	end
	return record.expires ~= '' and record.expires or nil
end

local function count_parked(member, difference)
	local scope = scope_of(member)
	if call('HINCRBY', KEYS[4], scope, difference) <= 0 then
		call('HDEL', KEYS[4], scope)
	end
end

-- Write next in place of old (nil: a new record). results: nil keeps the stored result; otherwise
-- six values in the order of result_fields, '' for none.
local function put(member, old, next, results)
	local name = name_of(member)
	local set, drop = {}, {}
	for _, field in ipairs(fields) do
		local before = old and old[field] or ''
		if next[field] ~= before then
			if next[field] == '' then
				drop[#drop + 1] = field
			else
				set[#set + 1] = field
				set[#set + 1] = next[field]
			end
		end
	end
	if results then
		for i, field in ipairs(result_fields) do
			if results[i] ~= '' then
				set[#set + 1] = field
				set[#set + 1] = results[i]
			elseif old and old.state == 'done' then
				drop[#drop + 1] = field
			end
		end
	end
	if #set > 0 then
		call('HSET', name, unpack(set))
	end
	if #drop > 0 then
		call('HDEL', name, unpack(drop))
	end
	local due = due_of(next)
	if due then
		call('ZADD', KEYS[2], due, member)
	elseif old then
		call('ZREM', KEYS[2], member)
	end
	if not old then
		call('ZADD', KEYS[3], 0, member)
	end
	local was = old and old.state
	if was then
		counts[was] = counts[was] - 1
		bytes = bytes - tonumber(old.bytes ~= '' and old.bytes or 0)
	end
	counts[next.state] = counts[next.state] + 1
	bytes = bytes + tonumber(next.bytes)
	if (was == 'parked') ~= (next.state == 'parked') then
		count_parked(member, next.state == 'parked' and 1 or -1)
	end
	if was ~= next.state and next.state ~= 'claimed' then
		call('PUBLISH', prefix .. ':events', next.state .. ' ' .. member)
	end
end

local function remove(member, old)
	call('DEL', name_of(member))
	call('ZREM', KEYS[2], member)
	call('ZREM', KEYS[3], member)
	counts[old.state] = counts[old.state] - 1
	bytes = bytes - tonumber(old.bytes ~= '' and old.bytes or 0)
	if old.state == 'parked' then
		count_parked(member, -1)
	end
end

local function keep_books()
	call('HSET', KEYS[1], 'now', text(now), 'token', text(token), 'bytes', text(bytes),
		'claimed', text(counts.claimed), 'done', text(counts.done),
		'failed', text(counts.failed), 'parked', text(counts.parked))
end

-- A write that needs no memory and does nothing. Redis checks for free memory only before the first
-- write of a script, so the commands after it may write even if the server is full.
local function write_though_full()
	call('ZREM', KEYS[2], '')
end

-- Remove expired records, and settle lapsed claims that were not taken over. Returns looked,
-- removed, lapsed.
local function sweep(limit)
	local members = call('ZRANGEBYSCORE', KEYS[2], '-inf', text(now), 'LIMIT', 0, limit)
	local removed, lapsed = 0, 0
	if #members > 0 then
		write_though_full()
	end
	for _, member in ipairs(members) do
		local old = load(name_of(member))
		if not old or not is_valid(old) then
			-- Another client removed or overwrote it: it is no longer a record.
			call('ZREM', KEYS[2], member)
			call('ZREM', KEYS[3], member)
		elseif is_expired(old) then
			remove(member, old)
			removed = removed + 1
		elseif old.state == 'claimed' and tonumber(due_of(old) or now + 1) <= now then
			local next = copy(old)
			local enter = old.lapse == 'park' and enter_parked or enter_failed
			enter(next, 'the lease lapsed and no run followed')
			put(member, old, next, nil)
			lapsed = lapsed + 1
		else
			local due = due_of(old)
			call('ZREM', KEYS[2], member)
			if due then
				call('ZADD', KEYS[2], due, member)
			end
		end
	end
	return #members, removed, lapsed
end
