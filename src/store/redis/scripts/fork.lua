-- KEYS from 15: the first ten keys of the source. ARGV as of `create.lua`: `rounds` and `segments` are what the fork takes over.
if schema then return {'exists'} end
local source = {unpack(KEYS, 15, 24)}
local found = redis.call('HGET', source[1], 'schema')
if not found then return {'unknown'} end
if not tonumber(found) then return {'corrupt', 'session', 'its schema version is no number'} end
if tonumber(found) > tonumber(ARGV[1]) then return {'newer', found} end
local stored = redis.call('HMGET', source[1], 'tenant', 'user', 'rounds', 'segments')
if stored[1] ~= ARGV[4] or stored[2] ~= ARGV[5] then return {'unknown'} end
if not tonumber(stored[3]) or not tonumber(stored[4]) then return {'corrupt', 'session', 'a counter is no number'} end
local last, kept = tonumber(ARGV[10]), tonumber(ARGV[11])
if tonumber(stored[3]) < last or tonumber(stored[4]) < kept then return {'elsewhere'} end

remove()
redis.call('HSET', session, 'schema', ARGV[1], 'tenant', ARGV[4], 'user', ARGV[5], 'title', ARGV[6], 'status', ARGV[7],
  'created_at', ARGV[8], 'updated_at', ARGV[9], 'rounds', ARGV[10], 'segments', ARGV[11], 'events', ARGV[12],
  'turn', ARGV[13])
-- Copied whole within the server, and then cut: what is left out is mostly little.
for at = 2, 10 do
  if KEYS[at] ~= contents and KEYS[at] ~= events then
    redis.call('COPY', source[at], KEYS[at])
    redis.call('PERSIST', KEYS[at])
  end
end
if kept == 0 then redis.call('UNLINK', segments) else redis.call('LTRIM', segments, 0, kept - 1) end
local later = redis.call('ZRANGEBYSCORE', numbers, '(' .. ARGV[10], '+inf')
if #later > 0 then
  for _, number in ipairs(later) do
    redis.call('ZREM', numbers, number)
    redis.call('HDEL', rounds, number)
    redis.call('SREM', open, number)
    for position = 1, tonumber(redis.call('HGET', calls, 'n:' .. number) or 0) do
      redis.call('HDEL', calls, 'r:' .. number .. '/' .. position)
    end
    redis.call('HDEL', calls, 'n:' .. number)
  end
  for _, field in ipairs(redis.call('HKEYS', calls)) do
    if string.sub(field, 1, 2) == 'k:' then
      local round = string.match(redis.call('HGET', calls, field), '^(%d+)/')
      if round and tonumber(round) > last then redis.call('HDEL', calls, field) end
    end
  end
  local latest = {}
  for _, field in ipairs(redis.call('HKEYS', versions)) do
    local round, name = string.match(field, '^(%d+)/(.*)$')
    if round and tonumber(round) > last then
      redis.call('HDEL', versions, field)
    elseif round and tonumber(round) > tonumber(latest[name] or 0) then
      latest[name] = round
    end
  end
  redis.call('UNLINK', variables)
  for name, round in pairs(latest) do
    if redis.call('HSTRLEN', versions, round .. '/' .. name) > 0 then redis.call('HSET', variables, name, round) end
  end
end
return done()
