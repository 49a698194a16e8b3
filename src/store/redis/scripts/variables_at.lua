-- ARGV[2]: the round.
if not schema then return {'none'} end
local last = {}
for _, field in ipairs(redis.call('HKEYS', versions)) do
  local round, name = string.match(field, '^(%d+)/(.*)$')
  round = tonumber(round)
  if round and round <= tonumber(ARGV[2]) and round > (last[name] or 0) then last[name] = round end
end
local answer = {'ok'}
for name, round in pairs(last) do
  local number = string.format('%.0f', round)
  local version = redis.call('HGET', versions, number .. '/' .. name)
  if version ~= '' then
    answer[#answer + 1] = name
    answer[#answer + 1] = number
    answer[#answer + 1] = version
  end
end
return answer
