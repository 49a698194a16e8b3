-- KEYS[13]: the lease. ARGV[2]: the number of the caller's lease, empty if it has none.
if not schema then return {'ok'} end
local owner = redis.call('HMGET', session, 'tenant', 'user', 'lease')
if redis.call('EXISTS', KEYS[13]) == 1 and owner[3] ~= ARGV[2] then return {'fenced'} end
remove()
return {'ok', owner[1], owner[2]}
