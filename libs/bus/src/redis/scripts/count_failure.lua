-- Counts one failure: -1 counted, else the ms until the window ends.
-- KEYS: failures. ARGV: max failures, window in ms.
local failures = tonumber(redis.call('GET', KEYS[1]) or 0)
if failures >= tonumber(ARGV[1]) then
    return math.max(redis.call('PTTL', KEYS[1]), 0)
end
if failures == 0 then
    redis.call('SET', KEYS[1], 1, 'PX', ARGV[2])
else
    redis.call('INCR', KEYS[1])
end
return -1
