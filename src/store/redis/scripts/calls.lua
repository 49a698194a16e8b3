-- ARGV[2]: the round's number.
if not schema then return {'none'} end
local answer = {'ok'}
for position = 1, tonumber(redis.call('HGET', calls, 'n:' .. ARGV[2]) or 0) do
  answer[#answer + 1] = redis.call('HGET', calls, 'r:' .. ARGV[2] .. '/' .. position)
end
return answer
