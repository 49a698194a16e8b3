-- ARGV from 4: the round's number, 1 if it has ended, its record.
if not schema then return {'unknown'} end
local last = redis.call('HGET', session, 'rounds')
if not tonumber(last) then return {'corrupt', 'session', 'a counter is no number'} end
if redis.call('HEXISTS', rounds, ARGV[4]) == 1 then return {'exists'} end
redis.call('ZADD', numbers, ARGV[4], ARGV[4])
redis.call('HSET', rounds, ARGV[4], ARGV[6])
if ARGV[5] == '0' then redis.call('SADD', open, ARGV[4]) end
if tonumber(last) < tonumber(ARGV[4]) then redis.call('HSET', session, 'rounds', ARGV[4]) end
return done()
