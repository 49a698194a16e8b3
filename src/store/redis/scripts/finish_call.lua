-- ARGV from 4: the round's number, the call's key, its record.
if not schema then return {'unknown'} end
local place = redis.call('HGET', calls, 'k:' .. ARGV[5])
if not place or string.match(place, '^(%d+)/') ~= ARGV[4] then return {'unrequested'} end
redis.call('HSET', calls, 'r:' .. place, ARGV[6])
return done()
