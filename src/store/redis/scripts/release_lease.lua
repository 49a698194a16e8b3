-- KEYS[13]: the lease. ARGV[2]: the owner.
if redis.call('GET', KEYS[13]) == ARGV[2] then redis.call('DEL', KEYS[13]) end
return {'ok'}
