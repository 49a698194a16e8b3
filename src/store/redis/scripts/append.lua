-- ARGV from 4: tenant, user, title, status, updated_at, rounds, segments, events; the segment and the event that the new
-- ones follow; how many segments and events there are; the turn; then those.
if not schema then return {'unknown'} end
local stored = redis.call('HMGET', session, 'tenant', 'user', 'rounds', 'segments', 'events')
if stored[1] ~= ARGV[4] or stored[2] ~= ARGV[5] then return {'unknown'} end
for at = 3, 5 do
  if not tonumber(stored[at]) then return {'corrupt', 'session', 'a counter is no number'} end
end
if tonumber(ARGV[9]) < tonumber(stored[3]) or ARGV[12] ~= stored[4] or ARGV[13] ~= stored[5] then
  return {'elsewhere', stored[3], stored[4], stored[5]}
end
local next_argument = 17 + ARGV[14] + ARGV[15]

local function append()
  -- The only change that may be refused, where the stream is ahead of its counter: so it is the first.
  for at = 1, tonumber(ARGV[15]) do
    redis.call('XADD', events, string.format('%.0f-0', ARGV[13] + at), 'record', ARGV[16 + ARGV[14] + at])
  end
  for at = 1, tonumber(ARGV[14]) do redis.call('RPUSH', segments, ARGV[16 + at]) end
  redis.call('HSET', session, 'schema', ARGV[1], 'turn', ARGV[16], 'title', ARGV[6], 'status', ARGV[7], 'updated_at', ARGV[8], 'rounds', ARGV[9],
    'segments', ARGV[10], 'events', ARGV[11])
end
