-- ARGV after those of `append.lua`: the round's number, 1 if it has ended, its record; how many variables it wrote, of each
-- the name, the content's hash, the version, and the content; then the names it removed.
local at = next_argument
local round, ended, record, written = ARGV[at], ARGV[at + 1], ARGV[at + 2], tonumber(ARGV[at + 3])
if redis.call('HEXISTS', rounds, round) == 0 then return {'unopened'} end
if redis.call('SISMEMBER', open, round) == 0 then return {'ended'} end
append()
redis.call('HSET', rounds, round, record)
if ended == '1' then redis.call('SREM', open, round) end
at = at + 4
for _ = 1, written do
  redis.call('HSETNX', contents, ARGV[at + 1], ARGV[at + 3])
  redis.call('HSET', versions, round .. '/' .. ARGV[at], ARGV[at + 1] .. ARGV[at + 2])
  redis.call('HSET', variables, ARGV[at], round)
  at = at + 4
end
for name = at, #ARGV do
  if redis.call('HDEL', variables, ARGV[name]) == 1 then redis.call('HSET', versions, round .. '/' .. ARGV[name], '') end
end
return done()
