-- ARGV: the group, the worker, the entry, its session. Takes the entry off, and hands the session's next one to the worker if it was
-- handed out before, to somebody who had to leave it. A new one is for whoever comes for it.
redis.call('XACK', stream, ARGV[1], ARGV[3])
redis.call('XDEL', stream, ARGV[3])
redis.call('ZREM', order, place(ARGV[4], ARGV[3]))
local entry = first(ARGV[4])
if not entry or #redis.call('XPENDING', stream, ARGV[1], entry[1], entry[1], 1) == 0 then return {'none'} end
redis.call('XCLAIM', stream, ARGV[1], ARGV[2], 0, entry[1], 'JUSTID')
return {'ok', entry[1], entry[2][2] or ''}
