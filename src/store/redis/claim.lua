-- claim.lua - stands in front of the prelude and operate.lua: a claim or check of one key, its usual cases
-- without the weight of the rest. All others are put into the form that operate.lua takes.
--
-- ARGV[1], [2] as in prelude.lua; [3] 'keys_max bytes_max parked_max'; [4] type; [5] flags; [6] 'room base';
-- [7] lease; [8] ttl; [9] fingerprint; [10] attempt_id; [11] owner
-- Answers {'took', token, now} when there was no record, else as operate.lua does.
do
	local call = redis.call
	local name = KEYS[5]
	local format = string.format
	local books, now, micros

	local function look()
		books = call('HMGET', KEYS[1], 'now', 'token', 'bytes', 'claimed', 'done', 'parked')
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
	end

	local function take(token, parked_max)
		local is_check = ARGV[4] == 'check'
		if not is_check and tonumber(books[6] or 0) >= tonumber(parked_max) then
			return nil
		end
		-- Whole numbers as text: the server would write them as fractions, which is slow.
		local number, time = format('%d', token), format('%d', now)
		local print, ttl = ARGV[9], ARGV[8]
		local member = string.sub(name, #ARGV[2] + 2)
		local size = 600 + 4 * #member + #print
		local ends, due, more = nil, nil, {}
		if not is_check then
			size = size + #ARGV[10] + #ARGV[11]
			ends = now + tonumber(ARGV[7])
		end
		if ttl ~= '' then
			due = format('%d', (ends or now) + tonumber(ttl))
			more[1], more[2] = 'ttl', ttl
		end
		if print ~= '' then
			more[#more + 1] = 'print'
			more[#more + 1] = print
		end
		if is_check then
			if due then
				more[#more + 1] = 'expires'
				more[#more + 1] = due
			end
			call('HSET', name, 'state', 'done', 'token', number, 'attempt', '1', 'seen', time, 'changed',
				time, 'origin', 'check', 'bytes', format('%d', size), unpack(more))
			call('PUBLISH', ARGV[2] .. ':events', 'done ' .. member)
		else
			if ARGV[11] ~= '' then
				more[#more + 1] = 'owner'
				more[#more + 1] = ARGV[11]
			end
			if string.find(ARGV[5], 'p', 1, true) then
				more[#more + 1] = 'lapse'
				more[#more + 1] = 'park'
			end
			call('HSET', name, 'state', 'claimed', 'token', number, 'attempt', '1', 'seen', time, 'changed',
				time, 'lease', format('%d', ends), 'origin', 'claim', 'by', ARGV[10], 'bytes',
				format('%d', size), unpack(more))
		end
		if due then
			call('ZADD', KEYS[2], due, member)
		end
		call('ZADD', KEYS[3], '0', member)
		call('HSET', KEYS[1], 'now', time, 'token', number, 'bytes', format('%d', (books[3] or 0) + size),
			is_check and 'done' or 'claimed', format('%d', (books[is_check and 5 or 4] or 0) + 1))
		return {'took', token, now}
	end

	-- A record that is there and stays as it is.
	local function show(row)
		local outcome, left = nil, 0
		if not (tonumber(row[2]) and tonumber(row[3]) and tonumber(row[4]) and tonumber(row[5])) then
			return nil
		elseif row[1] == 'done' and (not row[7] or tonumber(row[7]) > now) then
			outcome = 'replay'
		elseif row[1] == 'claimed' and row[12] ~= ARGV[10] and tonumber(row[6] or 0) > now then
			outcome, left = 'in_progress', tonumber(row[6]) - now
		else
			return nil
		end
		local unverified = (ARGV[9] == '' or not row[11]) and 1 or 0
		if unverified == 0 and row[11] ~= ARGV[9] then
			return nil
		end
		local record = false
		if string.find(ARGV[5], 'w', 1, true) then
			record = row
			for i = 1, 14 do
				record[i] = record[i] or ''
			end
			if outcome == 'replay' then
				local results = call('HMGET', name, 'kind', 'class', 'status', 'omitted', 'headers', 'body')
				for i = 1, 6 do
					results[i] = results[i] or ''
				end
				record[15] = results
			else
				record[15] = false
			end
		end
		return {0, {outcome, unverified, row[2], row[3], row[4], row[7] or '', left, record}}
	end

	local parked_max = string.match(ARGV[3], '^0 0 (%d+)$')
	if parked_max and not string.find(ARGV[5], 'l', 1, true) then
		local row = call('HMGET', name, 'state', 'token', 'attempt', 'seen', 'changed', 'lease', 'expires',
			'ttl', 'lapse', 'origin', 'print', 'by', 'owner', 'error')
		local answer
		look()
		if row[1] then
			answer = show(row)
		else
			local token = math.max(tonumber(books[2] or 0) + 1, micros)
			if token <= 9007199254740991 then
				answer = take(token, parked_max)
			end
		end
		if answer then
			return answer
		end
	end
end
local keys_limit, bytes_limit, parked_limit = string.match(ARGV[3], '^(%d+) (%d+) (%d+)$')
local room_given, base_given = string.match(ARGV[6], '^(%d+) (%d+)$')
local ARGV = {ARGV[1], ARGV[2], '', keys_limit, bytes_limit, parked_limit, ARGV[4], ARGV[5], room_given,
	base_given, ARGV[7], ARGV[8], ARGV[9], ARGV[10], ARGV[11], '', '0', '', '', '', '', '', '', ''}
