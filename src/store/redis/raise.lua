-- raise.lua - issue no token below ARGV[3] from now on. Answers {token}.
local floor = tonumber(ARGV[3])
if floor > token then
	token = floor
	keep_books()
end
return {text(token)}
