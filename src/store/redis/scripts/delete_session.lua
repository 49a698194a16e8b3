if not schema then return {'ok'} end
local owner = redis.call('HMGET', session, 'tenant', 'user')
redis.call('UNLINK', unpack(KEYS))
return {'ok', owner[1], owner[2]}
