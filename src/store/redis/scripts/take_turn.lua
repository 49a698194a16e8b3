-- ARGV: the group, the worker, after how many milliseconds without a word of its worker an entry is handed on, how many turns
-- whose time has come by the server's clock go to the stream, how many entries that wait for another one are looked at, and how
-- many entries are kept, at most.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for _, record in ipairs(redis.call('ZRANGEBYSCORE', later, '-inf', now, 'LIMIT', 0, ARGV[4])) do
  add(record, ARGV[6])
  redis.call('ZREM', later, record)
end
for _ = 1, ARGV[5] do
  local entries = redis.call('XAUTOCLAIM', stream, ARGV[1], ARGV[2], ARGV[3], '0', 'COUNT', 1)[2]
  if #entries == 0 then break end
  -- Redis 6.2 has an empty place for one that fell off the stream.
  local entry = entries[1]
  if entry and comes_next(entry) then return {'ok', entry[1], entry[2][2] or ''} end
end
return {'none'}
