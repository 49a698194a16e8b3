-- ARGV from 4: tenant, user; rounds, segments and events as they were read; title, status, updated_at, rounds, segments; the
-- round's number, its record; how many variables it wrote, of each the name, the content's hash and the version; then the
-- names it removed.
if not schema then return {'unknown'} end
local stored = redis.call('HMGET', session, 'tenant', 'user', 'rounds', 'segments', 'events')
if stored[1] ~= ARGV[4] or stored[2] ~= ARGV[5] then return {'unknown'} end
if stored[3] ~= ARGV[6] or stored[4] ~= ARGV[7] or stored[5] ~= ARGV[8] then return {'elsewhere'} end
local round, written = ARGV[14], tonumber(ARGV[16])
for at = 17, 16 + 3 * written, 3 do
  if redis.call('HEXISTS', contents, ARGV[at + 1]) == 0 then return {'absent', ARGV[at]} end
end

redis.call('HSET', session, 'schema', ARGV[1], 'turn', '', 'title', ARGV[9], 'status', ARGV[10], 'updated_at', ARGV[11],
  'rounds', ARGV[12], 'segments', ARGV[13])
if ARGV[13] == '0' then redis.call('UNLINK', segments) else redis.call('LTRIM', segments, 0, ARGV[13] - 1) end
redis.call('ZADD', numbers, round, round)
redis.call('HSET', rounds, round, ARGV[15])
for at = 17, 16 + 3 * written, 3 do
  redis.call('HSET', versions, round .. '/' .. ARGV[at], ARGV[at + 1] .. ARGV[at + 2])
  redis.call('HSET', variables, ARGV[at], round)
end
for name = 17 + 3 * written, #ARGV do
  if redis.call('HDEL', variables, ARGV[name]) == 1 then redis.call('HSET', versions, round .. '/' .. ARGV[name], '') end
end
return done()
