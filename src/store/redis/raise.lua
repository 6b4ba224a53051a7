-- raise.lua - give out no token below ARGV[3] any more. Answers {token}.
local floor = tonumber(ARGV[3])
if floor > token then
	token = floor
	keep_books()
end
return {text(token)}
