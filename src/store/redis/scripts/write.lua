-- What every write begins with, after `read.lua` and `family.lua`. KEYS[13]: the mark of this very write; KEYS[14]: the lease.
-- ARGV[2]: milliseconds that a session is kept after its last write, 0 for ever. ARGV[3]: seconds that the mark is kept, and the
-- number of the writer's lease, if it has one.
--
local mark_s, number_of_lease = string.match(ARGV[3], '^(%d+) ?(%d*)$')

-- Whoever got no answer asks again with the same mark, and is told what happened the first time. That writes: replicas are
-- waited for from the last write on.
if redis.call('EXISTS', KEYS[13]) == 1 then
  redis.call('EXPIRE', KEYS[13], mark_s)
  return {'ok'}
end

-- The number grows with each new owner: who comes late has an older one.
if number_of_lease ~= '' then
  if redis.call('HGET', session, 'lease') ~= number_of_lease then return {'fenced'} end
elseif redis.call('EXISTS', KEYS[14]) == 1 then
  return {'fenced'}
end

-- Every check comes before the first change: Redis does not undo what a failed script did.
local function expire(key, ends)
  if ends == 0 then redis.call('PERSIST', key) else redis.call('PEXPIREAT', key, string.format('%.0f', ends)) end
end

local function done()
  redis.call('SET', KEYS[13], '', 'EX', mark_s)
  local ends = ARGV[2] == '0' and 0 or now() + ARGV[2]
  -- Who keeps for ever has nothing to set, unless the last writer had another setting.
  local changes = ends ~= 0 or redis.call('PTTL', session) > 0
  if changes then
    -- The session's row is the first: without it the others are not looked at.
    for at = 1, 10 do
      if KEYS[at] ~= contents then expire(KEYS[at], ends) end
    end
  end
  if session ~= root then
    redis.call('HSET', family, session, string.format('%.0f', ends))
    -- A program that knows no forks must leave the one alone that they share with.
    local found = tonumber(redis.call('HGET', root, 'schema'))
    if found and found < tonumber(ARGV[1]) then redis.call('HSET', root, 'schema', ARGV[1]) end
  end
  if changes or redis.call('EXISTS', family) == 1 then
    -- Shared contents are kept as long as one of the family needs them.
    local others = needed()
    local last = (ends == 0 or others == 0) and 0 or math.max(ends, others or 0)
    expire(contents, last)
    expire(family, last)
  end
  return {'ok'}
end
