-- ARGV from 4: tenant, user, title, status, created_at, updated_at, rounds, segments, events, turn.
if schema then return {'exists'} end
remove()
redis.call('HSET', session, 'schema', ARGV[1], 'tenant', ARGV[4], 'user', ARGV[5], 'title', ARGV[6], 'status', ARGV[7],
  'created_at', ARGV[8], 'updated_at', ARGV[9], 'rounds', ARGV[10], 'segments', ARGV[11], 'events', ARGV[12],
  'turn', ARGV[13])
return done()
