-- The generic cell rate algorithm: {allowed, requests that remain, wait in us}.
-- KEYS: when the key is at rest, in us. ARGV: us between two requests, requests at once.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval = tonumber(ARGV[1])
local most = interval * tonumber(ARGV[2])
local rest = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), now) + interval
if rest - now > most then
    return {0, 0, rest - now - most}
end
redis.call('SET', KEYS[1], string.format('%.0f', rest), 'PX', math.ceil((rest - now) / 1000))
return {1, math.floor((most - (rest - now)) / interval), 0}
