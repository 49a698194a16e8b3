-- What every write begins with, after `read.lua`. KEYS[11]: the mark of this very write. ARGV[2]: milliseconds that a session
-- is kept after its last write, 0 for ever. ARGV[3]: seconds that the mark is kept.
--
-- Whoever got no answer asks again with the same mark, and is told what happened the first time.
if redis.call('EXISTS', KEYS[11]) == 1 then return {'ok'} end

-- Every check comes before the first change: Redis does not undo what a failed script did.
local function done()
  redis.call('SET', KEYS[11], '', 'EX', ARGV[3])
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
