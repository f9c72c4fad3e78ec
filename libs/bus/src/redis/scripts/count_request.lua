-- The generic cell rate algorithm, for several keys: {index of the key that decides, allowed, remaining requests, wait in us}.
-- The first key decides, unless another one is used up; then none counts the request.
-- KEYS: the time in us at which the whole limit is available. ARGV, for each: us between two requests, requests at once.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local available = {}
for i = 1, #KEYS do
    local interval = tonumber(ARGV[2 * i - 1])
    local burst = interval * tonumber(ARGV[2 * i])
    available[i] = math.max(tonumber(redis.call('GET', KEYS[i]) or 0), now) + interval
    if available[i] - now > burst then
        return {i - 1, 0, 0, available[i] - now - burst}
    end
end
for i = 1, #KEYS do
    redis.call('SET', KEYS[i], string.format('%.0f', available[i]), 'PX', math.ceil((available[i] - now) / 1000))
end
local interval = tonumber(ARGV[1])
return {0, 1, math.floor((interval * tonumber(ARGV[2]) - (available[1] - now)) / interval), 0}
