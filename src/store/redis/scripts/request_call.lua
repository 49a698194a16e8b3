-- ARGV from 4: the round's number, the call's key, its record. In `calls`, `n:ROUND` counts a round's calls, `k:KEY` says
-- where a call is, and `r:ROUND/POSITION` is its record.
if not schema then return {'unknown'} end
if redis.call('HEXISTS', rounds, ARGV[4]) == 0 then return {'unopened'} end
if redis.call('SISMEMBER', open, ARGV[4]) == 0 then return {'ended'} end
if redis.call('HEXISTS', calls, 'k:' .. ARGV[5]) == 1 then return {'exists'} end
local place = ARGV[4] .. '/' .. redis.call('HINCRBY', calls, 'n:' .. ARGV[4], 1)
redis.call('HSET', calls, 'k:' .. ARGV[5], place, 'r:' .. place, ARGV[6])
return done()
