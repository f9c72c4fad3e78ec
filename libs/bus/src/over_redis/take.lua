-- Takes a place: 1 taken, 0 none is free, -1 the session is not known.
-- KEYS: places, sessions. ARGV: session, number, most, time to live of the key in ms.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local alive = {}
local function is_alive(session)
    if alive[session] == nil then
        local ends = redis.call('ZSCORE', KEYS[2], session)
        alive[session] = ends and tonumber(ends) > now or false
    end
    return alive[session]
end
if not is_alive(ARGV[1]) then
    return -1
end
local mine = ARGV[1] .. ':' .. ARGV[2]
local others = 0
for _, member in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
    if member ~= mine then
        if is_alive(string.match(member, '^[^:]*')) then
            others = others + 1
        else
            redis.call('ZREM', KEYS[1], member)
        end
    end
end
if others >= tonumber(ARGV[3]) then
    redis.call('ZREM', KEYS[1], mine)
    return 0
end
redis.call('ZADD', KEYS[1], now, mine)
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return 1
