-- What every question begins with. KEYS: the session's keys, in the order of `keys.rs`. ARGV[1]: the newest schema version
-- that the caller reads. The first word of an answer says what it is; all numbers are text.
local session, segments, events, numbers, rounds, open, calls, contents, versions, variables, family, root = unpack(KEYS)
local schema = redis.call('HGET', session, 'schema')
if not schema then
  if redis.call('EXISTS', session) == 1 then return {'corrupt', 'session', 'it has no schema version'} end
elseif not tonumber(schema) then
  return {'corrupt', 'session', 'its schema version is no number'}
elseif tonumber(schema) > tonumber(ARGV[1]) then
  return {'newer', schema}
end
