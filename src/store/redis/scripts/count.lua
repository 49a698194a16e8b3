-- How much one session holds: segments, events, rounds, calls, variables, versions, and bytes of memory without its contents.
if not schema then return {'none'} end
local made, kept, memory = 0, 0, 0
for _, number in ipairs(redis.call('ZRANGE', numbers, 0, -1)) do
  made = made + (redis.call('HGET', calls, 'n:' .. number) or 0)
end
for _, version in ipairs(redis.call('HVALS', versions)) do
  if version ~= '' then kept = kept + 1 end
end
for at = 1, 10 do
  if KEYS[at] ~= contents then
    -- Managed servers may refuse this.
    local used = redis.pcall('MEMORY', 'USAGE', KEYS[at])
    if type(used) == 'number' then memory = memory + used end
  end
end
return {'ok', redis.call('LLEN', segments), redis.call('XLEN', events), redis.call('ZCARD', numbers), made,
  redis.call('HLEN', variables), kept, memory}
