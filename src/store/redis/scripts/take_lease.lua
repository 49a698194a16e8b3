-- KEYS[13]: the lease. ARGV[2]: the owner; ARGV[3]: milliseconds; ARGV[4]: the number of the lease that is to be prolonged, empty for
-- a new one. One that ran out is prolonged only if nobody had the session since.
if not schema then return {'unknown'} end
local owner = redis.call('GET', KEYS[13])
if owner and owner ~= ARGV[2] then return {'held'} end
local number = redis.call('HGET', session, 'lease')
if ARGV[4] ~= '' and number ~= ARGV[4] then return {'held'} end
if not owner and ARGV[4] == '' then number = redis.call('HINCRBY', session, 'lease', 1) end
redis.call('SET', KEYS[13], ARGV[2], 'PX', ARGV[3])
return {'ok', number}
