-- After `read.lua`. A session and its forks share `contents`. `family` has the forks: the key of a fork's row -> milliseconds
-- since 1970 until which it is kept, 0 for ever. `root` is the row of the session that all began with, which may be gone.
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Until when others need the contents: nil if there are no others, 0 for ever.
local function needed()
  local latest
  if session ~= root and redis.call('EXISTS', root) == 1 then
    local left = redis.call('PTTL', root)
    if left < 0 then return 0 end
    latest = now() + left
  end
  local forks = redis.call('HGETALL', family)
  for at = 1, #forks, 2 do
    local ends = tonumber(forks[at + 1])
    if forks[at] ~= session then
      if ends == 0 then return 0 end
      if ends > now() and ends > (latest or 0) then latest = ends end
    end
  end
  return latest
end

-- Removes the session, and the contents with the last of the family.
local function remove()
  local others = needed()
  for at = 1, 10 do
    if KEYS[at] ~= contents or not others then redis.call('UNLINK', KEYS[at]) end
  end
  if others then redis.call('HDEL', family, session) else redis.call('UNLINK', family) end
end
