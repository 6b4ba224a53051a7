-- complete.lua - stands in front of the prelude and operate.lua: the complete of a claim that is held,
-- without the weight of the rest. All other cases are put into the form that operate.lua takes.
--
-- ARGV[1], [2] as in prelude.lua; [3] 'keys_max bytes_max parked_max'; [4] flags; [5] 'room base'; [6] token;
-- then nothing, or kind, class, status, omitted, headers, body
-- Answers {'ended', attempt, seen, when it expires or -1} for a claim, else as operate.lua does.
do
	local call = redis.call
	local format = string.format
	local name = KEYS[5]

	local function finish(row)
		local books = call('HMGET', KEYS[1], 'now', 'bytes', 'claimed', 'done')
		local member = string.sub(name, #ARGV[2] + 2)
		local size = 600 + 4 * #member + #(row[7] or '')
		local now, expires, more = nil, -1, {}
		if ARGV[1] ~= '' then
			now = tonumber(ARGV[1])
		else
			local time = call('TIME')
			now = math.floor(time[1] * 1000 + time[2] / 1000)
		end
		if books[1] then
			now = math.max(now, tonumber(books[1]))
		end
		if row[5] then
			expires = now + tonumber(row[5])
			more[1], more[2] = 'expires', format('%d', expires)
		end
		if ARGV[7] then
			local names = {'kind', 'class', 'status', 'omitted', 'headers', 'body'}
			size = size + #ARGV[11] + #ARGV[12]
			for i = 1, 6 do
				if ARGV[6 + i] ~= '' then
					more[#more + 1] = names[i]
					more[#more + 1] = ARGV[6 + i]
				end
			end
		end
		-- Whole numbers as text: the server would write them as fractions, which is slow.
		local time = format('%d', now)
		-- First, because it needs no memory: what follows may then be written although the server is full.
		call('HDEL', name, 'lease', 'by', 'owner', 'error')
		call('HSET', name, 'state', 'done', 'changed', time, 'bytes', format('%d', size), unpack(more))
		if row[5] then
			call('ZADD', KEYS[2], more[2], member)
		end
		call('HSET', KEYS[1], 'now', time, 'bytes', format('%d', (books[2] or 0) + size - (row[6] or 0)),
			'claimed', format('%d', (books[3] or 0) - 1), 'done', format('%d', (books[4] or 0) + 1))
		call('PUBLISH', ARGV[2] .. ':events', 'done ' .. member)
		return {'ended', tonumber(row[3]), tonumber(row[4]), expires}
	end

	if ARGV[4] == '' and string.find(ARGV[3], '0 0 ', 1, true) == 1 then
		local row = call('HMGET', name, 'state', 'token', 'attempt', 'seen', 'ttl', 'bytes', 'print', 'changed',
			'lease')
		if row[1] == 'claimed' and row[2] == ARGV[6] and tonumber(row[3]) and tonumber(row[4]) and
			tonumber(row[8]) and tonumber(row[9]) then
			return finish(row)
		end
	end
end
local keys_limit, bytes_limit, parked_limit = string.match(ARGV[3], '^(%d+) (%d+) (%d+)$')
local room_given, base_given = string.match(ARGV[5], '^(%d+) (%d+)$')
local ARGV = {ARGV[1], ARGV[2], '', keys_limit, bytes_limit, parked_limit, 'complete', ARGV[4], room_given,
	base_given, '', '', '', '', '', '', ARGV[6], '', ARGV[7] or '', ARGV[8] or '', ARGV[9] or '', ARGV[10] or '',
	ARGV[11] or '', ARGV[12] or ''}
