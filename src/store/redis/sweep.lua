-- sweep.lua - one step of housekeeping. ARGV[3]: number of records to examine.
-- Answers {looked, removed, lapsed, records left}.
local looked, removed, lapsed = sweep(tonumber(ARGV[3]))
if looked > 0 then
	keep_books()
end
return {looked, removed, lapsed, text(total())}
