if not schema then return {'none'} end
return {'ok', unpack(redis.call('HMGET', session, 'tenant', 'user', 'title', 'status', 'created_at', 'updated_at', 'rounds',
  'segments', 'events', 'turn'))}
