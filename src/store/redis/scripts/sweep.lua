-- The shared contents of a family. KEYS from 13: of every fork that was found, its row and its versions. ARGV[2]: 1 to remove
-- what no version refers to. Answers how many contents there are, their bytes, how many of them several versions refer to, how
-- many none does, the bytes of those, and the bytes of memory of all.
local forks, uses = {}, {}
for at = 13, #KEYS, 2 do forks[KEYS[at]] = KEYS[at + 1] end
for _, fork in ipairs(redis.call('HKEYS', family)) do
  if not forks[fork] then return {'elsewhere'} end
end
local function use(key)
  for _, version in ipairs(redis.call('HVALS', key)) do
    local hash = string.sub(version, 1, 64)
    uses[hash] = (uses[hash] or 0) + 1
  end
end
if schema then use(versions) end
for fork, key in pairs(forks) do
  if redis.call('EXISTS', fork) == 1 then use(key) elseif ARGV[2] == '1' then redis.call('HDEL', family, fork) end
end
local count, bytes, shared, unused, unused_bytes, memory = 0, 0, 0, 0, 0, 0
for _, key in ipairs({contents, family}) do
  local used = redis.pcall('MEMORY', 'USAGE', key)
  if type(used) == 'number' then memory = memory + used end
end
for _, hash in ipairs(redis.call('HKEYS', contents)) do
  local length = redis.call('HSTRLEN', contents, hash)
  count, bytes = count + 1, bytes + length
  if not uses[hash] then
    unused, unused_bytes = unused + 1, unused_bytes + length
    if ARGV[2] == '1' then redis.call('HDEL', contents, hash) end
  elseif uses[hash] > 1 then
    shared = shared + 1
  end
end
return {'ok', count, bytes, shared, unused, unused_bytes, memory}
