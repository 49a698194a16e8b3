if not schema then return {'none'} end
local answer = {'ok'}
local pairs_of = redis.call('HGETALL', variables)
for at = 1, #pairs_of, 2 do
  answer[#answer + 1] = pairs_of[at]
  answer[#answer + 1] = pairs_of[at + 1]
  answer[#answer + 1] = redis.call('HGET', versions, pairs_of[at + 1] .. '/' .. pairs_of[at])
end
return answer
