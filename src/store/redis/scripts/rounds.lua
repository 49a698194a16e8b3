-- ARGV from 2: the number after which to read, and how many at most.
if not schema then return {'none'} end
local answer = {'ok'}
for _, number in ipairs(redis.call('ZRANGEBYSCORE', numbers, '(' .. ARGV[2], '+inf', 'LIMIT', 0, ARGV[3])) do
  answer[#answer + 1] = number
  answer[#answer + 1] = redis.call('HGET', rounds, number)
end
return answer
