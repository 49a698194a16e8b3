-- ARGV[2]: the hash.
if not schema then return {'none'} end
return {'ok', redis.call('HGET', contents, ARGV[2])}
