-- Adds a place that is held anyway, in place of the same one under an earlier session.
-- KEYS: places. ARGV: session, number, earlier session, time to live of the key in ms.
local time = redis.call('TIME')
redis.call('ZREM', KEYS[1], ARGV[3] .. ':' .. ARGV[2])
redis.call('ZADD', KEYS[1], time[1] * 1000 + math.floor(time[2] / 1000), ARGV[1] .. ':' .. ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return 1
