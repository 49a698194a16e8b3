-- What every script of the turns begins with. KEYS: the stream; the order of its turns, so that those of one session are made one
-- after the other; the later turns by the time in milliseconds. All in one slot.
local stream, order, later = unpack(KEYS)

-- The place of an entry in the order: the members have one score, so they are sorted as text, by session and then by id.
local function place(session, id)
  local parts = {session}
  for number in string.gmatch(id, '%d+') do parts[#parts + 1] = string.rep('0', 20 - #number) .. number end
  parts[#parts + 1] = id
  return table.concat(parts, '\n')
end

-- The session of an entry; empty for one that is no turn.
local function session_of(entry)
  local is_json, request = pcall(cjson.decode, entry[2][2] or '')
  return is_json and type(request) == 'table' and type(request.session) == 'string' and request.session or ''
end

local function add(record, most)
  local id = redis.call('XADD', stream, 'MAXLEN', '~', most, '*', 'record', record)
  redis.call('ZADD', order, 0, place(session_of({id, {'record', record}}), id))
end

-- The first entry of a session. One that fell off a full stream holds nobody up.
local function first(session)
  while true do
    local found = redis.call('ZRANGEBYLEX', order, '[' .. session .. '\n', '(' .. session .. '\11', 'LIMIT', 0, 1)[1]
    if not found then return nil end
    local id = string.match(found, '[^\n]+$')
    local entry = redis.call('XRANGE', stream, id, id)[1]
    if entry then return entry end
    redis.call('ZREM', order, found)
  end
end

-- True if no earlier turn of its session is in the stream.
local function comes_next(entry)
  local session = session_of(entry)
  if session == '' then return true end
  -- An older Fimble adds to the stream alone.
  redis.call('ZADD', order, 0, place(session, entry[1]))
  return first(session)[1] == entry[1]
end
