-- Adds a permit that is in use to a new session, and removes it from the previous one. Does not check the limit.
-- KEYS: permits. ARGV: session, number, previous session, TTL of the permits in ms.
local time = redis.call('TIME')
redis.call('ZREM', KEYS[1], ARGV[3] .. ':' .. ARGV[2])
redis.call('ZADD', KEYS[1], time[1] * 1000 + math.floor(time[2] / 1000), ARGV[1] .. ':' .. ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return 1
