-- What every write begins with, after `read.lua`. KEYS[11]: the mark of this very write; KEYS[12]: the lease. ARGV[2]:
-- milliseconds that a session is kept after its last write, 0 for ever. ARGV[3]: seconds that the mark is kept, and the number
-- of the writer's lease, if it has one.
--
-- Whoever got no answer asks again with the same mark, and is told what happened the first time.
if redis.call('EXISTS', KEYS[11]) == 1 then return {'ok'} end

-- The number grows with each new owner: who comes late has an older one.
local mark_s, number_of_lease = string.match(ARGV[3], '^(%d+) ?(%d*)$')
if number_of_lease ~= '' then
  if redis.call('HGET', session, 'lease') ~= number_of_lease then return {'fenced'} end
elseif redis.call('EXISTS', KEYS[12]) == 1 then
  return {'fenced'}
end

-- Every check comes before the first change: Redis does not undo what a failed script did.
local function done()
  redis.call('SET', KEYS[11], '', 'EX', mark_s)
  if ARGV[2] ~= '0' then
    local now = redis.call('TIME')
    local ends = string.format('%.0f', now[1] * 1000 + math.floor(now[2] / 1000) + ARGV[2])
    -- The session's row is the first: without it the others are not looked at.
    for at = 1, 10 do redis.call('PEXPIREAT', KEYS[at], ends) end
  elseif redis.call('PTTL', session) > 0 then
    -- Its last writer had another setting.
    for at = 1, 10 do redis.call('PERSIST', KEYS[at]) end
  end
  return {'ok'}
end
