-- ARGV from 2: the names asked for.
if not schema then return {'none'} end
local answer = {'ok'}
for at = 2, #ARGV do
  local round = redis.call('HGET', variables, ARGV[at])
  if round then
    local version = redis.call('HGET', versions, round .. '/' .. ARGV[at])
    answer[#answer + 1] = ARGV[at]
    answer[#answer + 1] = round
    answer[#answer + 1] = version
    answer[#answer + 1] = version and redis.call('HGET', contents, string.sub(version, 1, 64))
  end
end
return answer
