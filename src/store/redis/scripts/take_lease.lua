-- KEYS[13]: the lease. ARGV[2]: the owner; ARGV[3]: milliseconds.
if not schema then return {'unknown'} end
local owner = redis.call('GET', KEYS[13])
if owner and owner ~= ARGV[2] then return {'held'} end
local number = owner and redis.call('HGET', session, 'lease') or redis.call('HINCRBY', session, 'lease', 1)
redis.call('SET', KEYS[13], ARGV[2], 'PX', ARGV[3])
return {'ok', number}
