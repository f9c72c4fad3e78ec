-- Acquires a permit: 1 acquired, 0 all are in use, -1 the session is unknown or expired.
-- KEYS: permits, sessions. ARGV: session, number, max, TTL of the permits in ms.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local alive = {}
local function is_alive(session)
    if alive[session] == nil then
        local expires = redis.call('ZSCORE', KEYS[2], session)
        alive[session] = expires and tonumber(expires) > now or false
    end
    return alive[session]
end
if not is_alive(ARGV[1]) then
    return -1
end
local own = ARGV[1] .. ':' .. ARGV[2]
local others = 0
for _, permit in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
    if permit ~= own then
        if is_alive(string.match(permit, '^[^:]*')) then
            others = others + 1
        else
            redis.call('ZREM', KEYS[1], permit)
        end
    end
end
if others >= tonumber(ARGV[3]) then
    redis.call('ZREM', KEYS[1], own)
    return 0
end
redis.call('ZADD', KEYS[1], now, own)
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return 1
