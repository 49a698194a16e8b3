-- ARGV from 2: the first number to read, and how many at most.
if not schema then return {'none'} end
local answer = {'ok'}
for _, entry in ipairs(redis.call('XRANGE', events, ARGV[2] .. '-0', '+', 'COUNT', ARGV[3])) do
  answer[#answer + 1] = string.match(entry[1], '^%d+')
  answer[#answer + 1] = entry[2][2]
end
return answer
