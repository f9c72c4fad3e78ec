-- Uncounts one failure, if any is counted. Returns the failures that were counted before.
-- KEYS: failures.
local failures = tonumber(redis.call('GET', KEYS[1]) or 0)
if failures > 1 then
    redis.call('DECR', KEYS[1])
elseif failures == 1 then
    redis.call('DEL', KEYS[1])
end
return failures
