-- count.lua - add decisions to the current hour. ARGV[3]: number of counts per row; then rows of a
-- scope and its counts. Hours are kept for 30 days, each in <prefix>:hour:<ms> as scope:decision.
local HOUR, KEPT = 3600000, 30 * 24 * 3600000
local width = tonumber(ARGV[3])
local hour = text(now - now % HOUR)
local name = prefix .. ':hour:' .. hour
local hours = prefix .. ':hours'
for at = 4, #ARGV, width + 1 do
	for i = 1, width do
		if ARGV[at + i] ~= '0' then
			call('HINCRBY', name, ARGV[at] .. ':' .. (i - 1), ARGV[at + i])
		end
	end
end
call('ZADD', hours, hour, hour)
for _, old in ipairs(call('ZRANGEBYSCORE', hours, '-inf', '(' .. text(now - KEPT))) do
	call('DEL', prefix .. ':hour:' .. old)
	call('ZREM', hours, old)
end
return 1
