-- ARGV: the group, the worker, the entry. Whether that worker may begin with it: it is still the worker's, and its session's first.
-- Otherwise whoever ends the one before it goes on with it.
if #redis.call('XPENDING', stream, ARGV[1], ARGV[3], ARGV[3], 1, ARGV[2]) == 0 then return {'none'} end
local entry = redis.call('XRANGE', stream, ARGV[3], ARGV[3])[1]
return {entry and comes_next(entry) and 'ok' or 'none'}
