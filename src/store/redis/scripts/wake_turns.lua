-- KEYS: the later turns by the time in milliseconds, and the stream. ARGV[1]: how many turns whose time has come by the server's
-- clock go to the stream at most.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for _, record in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])) do
  redis.call('XADD', KEYS[2], '*', 'record', record)
  redis.call('ZREM', KEYS[1], record)
end
return {'ok'}
