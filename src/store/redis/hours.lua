-- hours.lua - the first hour after ARGV[3] that has counts. ARGV[4]: number of counts per row.
-- Answers {hour, scope, count..., scope, count...}, or {}.
local width = tonumber(ARGV[4])
local found = call('ZRANGEBYSCORE', prefix .. ':hours', '(' .. ARGV[3], '+inf', 'LIMIT', 0, 1)
if #found == 0 then
	return {}
end
local answers = {found[1]}
local places = {}
local pairs_of_hour = call('HGETALL', prefix .. ':hour:' .. found[1])
for i = 1, #pairs_of_hour, 2 do
	local scope, decision = string.match(pairs_of_hour[i], '^(.*):(%d+)$')
	if scope and tonumber(decision) < width then
		local place = places[scope]
		if not place then
			place = #answers + 1
			places[scope] = place
			answers[place] = scope
			for k = 1, width do
				answers[place + k] = '0'
			end
		end
		answers[place + 1 + tonumber(decision)] = pairs_of_hour[i + 1]
	end
end
return answers
