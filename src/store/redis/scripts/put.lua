-- ARGV[4]: 1 to replace what is there; from 5 as `create.lua` has them from 4. Then seven lists, each after its length: segments;
-- events; rounds as number, 1 if it has ended, record; calls as round, key, record; versions as round/name and version;
-- contents as hash and content; variables as name and round.
if schema then
  if ARGV[4] ~= '1' then return {'exists'} end
  local owner = redis.call('HMGET', session, 'tenant', 'user')
  if owner[1] ~= ARGV[5] or owner[2] ~= ARGV[6] then return {'unknown'} end
end
remove()
redis.call('HSET', session, 'schema', ARGV[1], 'tenant', ARGV[5], 'user', ARGV[6], 'title', ARGV[7], 'status', ARGV[8],
  'created_at', ARGV[9], 'updated_at', ARGV[10], 'rounds', ARGV[11], 'segments', ARGV[12], 'events', ARGV[13],
  'turn', ARGV[14])
local at = 15
-- Calls `each` with the place of every entry of the next list, whose entries have `width` parts.
local function list(width, each)
  local count = tonumber(ARGV[at])
  at = at + 1
  for _ = 1, count do
    each(at)
    at = at + width
  end
end
list(1, function(i) redis.call('RPUSH', segments, ARGV[i]) end)
local number = 0
list(1, function(i)
  number = number + 1
  redis.call('XADD', events, string.format('%.0f-0', number), 'record', ARGV[i])
end)
list(3, function(i)
  redis.call('ZADD', numbers, ARGV[i], ARGV[i])
  redis.call('HSET', rounds, ARGV[i], ARGV[i + 2])
  if ARGV[i + 1] == '0' then redis.call('SADD', open, ARGV[i]) end
end)
list(3, function(i)
  local place = ARGV[i] .. '/' .. redis.call('HINCRBY', calls, 'n:' .. ARGV[i], 1)
  redis.call('HSET', calls, 'k:' .. ARGV[i + 1], place, 'r:' .. place, ARGV[i + 2])
end)
list(2, function(i) redis.call('HSET', versions, ARGV[i], ARGV[i + 1]) end)
list(2, function(i) redis.call('HSETNX', contents, ARGV[i], ARGV[i + 1]) end)
list(2, function(i) redis.call('HSET', variables, ARGV[i], ARGV[i + 1]) end)
return done()
