-- ARGV: the record, how many entries are kept at most, and the time in milliseconds if it is a later turn.
if ARGV[3] then redis.call('ZADD', later, ARGV[3], ARGV[1]) else add(ARGV[1], ARGV[2]) end
return {'ok'}
