-- complete.lua - completes: see usual.lua.
--
-- ARGV: 9 per operation: flags, 'room base' or '', token, kind, class, status, omitted, headers,
-- body
-- The answer is {attempt, seen, expiry or -1} if the token holds the claim.
local has_limits = find(ARGV[3], '0 0 ', 1, true) ~= 1
local names = {'kind', 'class', 'status', 'omitted', 'headers', 'body'}

local expires_of = spans()

local function finish(name, at, row, attempt, seen)
	local member = sub(name, skip)
	local size = 600 + 4 * #member + #(row[7] or '') + #(row[10] or '') + #ARGV[at + 7] + #ARGV[at + 8]
	local expires, n = -1, 12
	if not has_written then
		-- It needs no memory. The commands after it may then write even if the server is
		-- full.
		local reply = try('ZREM', KEYS[2], '')
		if type(reply) == 'table' then
			return failed(reply)
		end
	end
	has_written, is_changed = true, true
	-- An empty field counts as removed, and costs less.
	local set = {'HSET', name, 'state', 'done', 'changed', stamp, 'bytes', format('%d', size), 'lease', '', 'by', ''}
	if row[5] then
		local due
		due, expires = expires_of(now, row[5])
		set[13], set[14], n = 'expires', due, 14
		enter_due(due, member)
	end
	if row[8] then
		set[n + 1], set[n + 2] = 'owner', ''
		n = n + 2
	end
	if row[9] then
		set[n + 1], set[n + 2] = 'error', ''
		n = n + 2
	end
	for i = 1, 6 do
		if ARGV[at + 2 + i] ~= '' then
			set[n + 1], set[n + 2] = names[i], ARGV[at + 2 + i]
			n = n + 2
		end
	end
	call(unpack(set))
	announce(member)
	bytes = bytes + size - (row[6] or 0)
	claimed, done = claimed - 1, done + 1
	return {attempt, seen, expires}
end

for i = 1, #KEYS - 4 do
	local at = 5 + (i - 1) * 9
	local name = KEYS[4 + i]
	local answer
	if ARGV[at] == '' and not has_limits then
		local row = try('HMGET', name, 'state', 'token', 'attempt', 'seen', 'ttl', 'bytes', 'print', 'owner',
			'error', 'cause')
		if row.err then
			answer = failed(row)
		elseif row[1] == 'claimed' and row[2] == ARGV[at + 2] then
			local attempt, seen = tonumber(row[3]), tonumber(row[4])
			if attempt and seen then
				answer = finish(name, at, row, attempt, seen)
			end
		end
	end
	if not answer then
		local keys_max, bytes_max, parked_max = match(ARGV[3], '^(%d+) (%d+) (%d+)$')
		local room, base = match(ARGV[at + 1], '^(%d+) (%d+)$')
		answer = by_all_rules(i, {ARGV[1], ARGV[2], '', keys_max, bytes_max, parked_max, 'complete', ARGV[at],
			room or '0', base or '0', '', '', '', '', '', '', ARGV[at + 2], '', ARGV[at + 3], ARGV[at + 4],
			ARGV[at + 5], ARGV[at + 6], ARGV[at + 7], ARGV[at + 8], ''})
	end
	if refusal then
		return refusal
	end
	answers[3 + i] = answer
end
keep()
answers[2] = now
return answers
