-- KEYS[11]: the lease. ARGV[2]: the owner.
if redis.call('GET', KEYS[11]) == ARGV[2] then redis.call('DEL', KEYS[11]) end
return {'ok'}
