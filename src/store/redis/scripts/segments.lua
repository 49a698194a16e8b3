-- ARGV from 2: the first and the last place to read, from 0.
if not schema then return {'none'} end
return {'ok', unpack(redis.call('LRANGE', segments, ARGV[2], ARGV[3]))}
