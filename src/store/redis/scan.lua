-- scan.lua - some records in order of their names.
--
-- ARGV[3] where to begin, in the form of ZRANGEBYLEX; [4] how many; [5] bytes of results after
-- which no record is added. Answers {now, '1' if the end was reached, name, record...}, a record as
-- in operate.lua.
local members = call('ZRANGEBYLEX', KEYS[3], ARGV[3], '+', 'LIMIT', 0, tonumber(ARGV[4]))
local bytes_max = tonumber(ARGV[5])
local answers = {text(now), ''}
local size = 0
for i, member in ipairs(members) do
	local record = load(name_of(member))
	answers[#answers + 1] = member
	if record and is_valid(record) then
		local shown = {}
		for k = 1, 15 do
			shown[k] = record[fields[k]]
		end
		shown[16] = false
		if record.state == 'done' then
			local results = call('HMGET', name_of(member), unpack(result_fields))
			for k = 1, #result_fields do
				results[k] = results[k] or ''
			end
			shown[16] = results
			size = size + #results[5] + #results[6]
		end
		answers[#answers + 1] = shown
	else
		answers[#answers + 1] = false
	end
	if i == #members and i < tonumber(ARGV[4]) then
		answers[2] = '1'
	end
	if size >= bytes_max then
		return answers
	end
end
if #members == 0 then
	answers[2] = '1'
end
return answers
