-- KEYS[1]: the places of a user, sessions by the time in milliseconds until which each has one. ARGV: the session, how many
-- there are at most, and for how many milliseconds.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then
  return {'full'}
end
redis.call('ZADD', KEYS[1], now + ARGV[3], ARGV[1])
-- The options of PEXPIRE that say the same are newer than Redis 6.2.
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[3]) then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
return {'ok'}
