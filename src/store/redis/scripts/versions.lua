if not schema then return {'none'} end
local answer = redis.call('HGETALL', versions)
table.insert(answer, 1, 'ok')
return answer
