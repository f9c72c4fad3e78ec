-- The generic cell rate algorithm: {allowed, remaining requests, wait in us}.
-- KEYS: the time in us at which the whole limit is available. ARGV: us between two requests, requests at once.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval = tonumber(ARGV[1])
local burst = interval * tonumber(ARGV[2])
local available = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), now) + interval
if available - now > burst then
    return {0, 0, available - now - burst}
end
redis.call('SET', KEYS[1], string.format('%.0f', available), 'PX', math.ceil((available - now) / 1000))
return {1, math.floor((burst - (available - now)) / interval), 0}
