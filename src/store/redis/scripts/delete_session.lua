if not schema then return {'ok'} end
local owner = redis.call('HMGET', session, 'tenant', 'user')
remove()
return {'ok', owner[1], owner[2]}
