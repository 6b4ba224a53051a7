-- usual.lua - operations of many callers in one call, each on one key and independent of the
-- others. It follows prelude.lua and operate.lua (its function `operate`) and precedes claim.lua or
-- complete.lua. These decide the usual cases with few commands. All other cases go through
-- `operate`, in the same call.
--
-- KEYS[4 + i] the record of operation i
-- ARGV[1], [2] as in prelude.lua; [3] 'keys_max bytes_max parked_max'; [4] type; then the arguments
-- of each operation
--
-- Answers {'each', now, removed, answer...}. An answer has the form of claim.lua or complete.lua in
-- a usual case, else that of operate.lua, or is {'room', size} with nothing done.
--
-- (1) The totals are read once and written once, around the usual cases: each command of a script
--     costs more than most of these cases do.
-- (2) A failure of one operation is its own answer, since others may have been done. An error ends
--     the call only if nothing was written; then nothing was done.
local call, try = redis.call, redis.pcall
local format, find, match, sub = string.format, string.find, string.match, string.sub
local skip = #ARGV[2] + 2 -- a record's name begins there, without prefix
local now, micros, stamp, token, bytes, claimed, done, parked
local is_changed, has_written, refusal = false, false, nil
local answers = {'each', 0, 0}
-- Commands that add all new entries to the sorted sets.
local new_dues, new_members = {'ZADD', KEYS[2]}, {'ZADD', KEYS[3]}

local function look()
	local books = call('HMGET', KEYS[1], 'now', 'token', 'bytes', 'claimed', 'done', 'parked')
	token, bytes = tonumber(books[2] or 0), tonumber(books[3] or 0)
	claimed, done, parked = tonumber(books[4] or 0), tonumber(books[5] or 0), tonumber(books[6] or 0)
	if ARGV[1] ~= '' then
		now = tonumber(ARGV[1])
		micros = now * 1000
	else
		local time = call('TIME')
		micros = time[1] * 1000000 + time[2]
		now = math.floor(micros / 1000)
	end
	if books[1] then
		now = math.max(now, tonumber(books[1]))
	end
	-- Whole numbers as text: the server would write them as fractions, which is slow.
	stamp = format('%d', now)
end

local function enter_due(due, member)
	local n = #new_dues
	new_dues[n + 1], new_dues[n + 2] = due, member
end

-- A function of a time and a span that returns the end, as text and as number. It caches the last
-- result, since most calls are the same.
local function spans()
	local from, span, ends, ends_text
	return function(new_from, new_span)
		if new_from ~= from or new_span ~= span then
			from, span, ends = new_from, new_span, new_from + new_span
			ends_text = format('%d', ends)
		end
		return ends_text, ends
	end
end

-- Does any client listen for completions? In a Cluster, it may listen at another server.
local channel = ARGV[2] .. ':events'
local is_heard = true
if #KEYS > 5 and not find(ARGV[2], '{', 1, true) then
	local listeners, patterns = try('PUBSUB', 'NUMSUB', channel), try('PUBSUB', 'NUMPAT')
	is_heard = listeners[2] ~= 0 or patterns ~= 0
end

local function announce(member)
	if is_heard then
		call('PUBLISH', channel, 'done ' .. member)
	end
end

local function keep()
	if #new_dues > 2 then
		call(unpack(new_dues))
		new_dues = {'ZADD', KEYS[2]}
	end
	if #new_members > 2 then
		call(unpack(new_members))
		new_members = {'ZADD', KEYS[3]}
	end
	if is_changed then
		call('HSET', KEYS[1], 'now', stamp, 'token', format('%d', token), 'bytes', format('%d', bytes),
			'claimed', format('%d', claimed), 'done', format('%d', done))
		is_changed = false
	end
end

-- The answer of an operation whose command returned an error.
local function failed(reply)
	local why = match(type(reply) == 'table' and reply.err or tostring(reply), '^%-?(.*)')
	local outcome = find(why, 'OOM', 1, true) == 1 and 'limit' or find(why, 'WRONGTYPE', 1, true) == 1 and 'corrupt'
	if not outcome and not has_written then
		refusal = {err = why}
	end
	return {outcome or 'unknown', 0, '0', '0', '0', '', '0', false}
end

-- Decide by the full rules; the arguments are those of operate.lua.
local function by_all_rules(i, arguments)
	keep()
	local is_good, reply = pcall(operate, {KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[4 + i]}, arguments)
	look()
	if not is_good then
		return failed(reply)
	end
	if reply[1] == 'room' then
		return {'room', reply[3]}
	end
	has_written = true
	answers[3] = answers[3] + reply[1]
	return reply[2]
end

look()
