# SPDX-License-Identifier: MIT
"""A job queue in Lua, as a good engineer would write it today.

    delayed    sorted set: the time at which a job becomes ready
    ready      list of ids
    payloads   hash: id -> payload
    leases     sorted set: the end of the lease
    tokens     hash: id -> the token of the lease
    attempts   hash: id -> failed attempts, if there are any
    dead       list of ids

The clients give the time and the tokens, so that no script has to ask for them. Where a command takes many ids,
it gets all of them.
"""
# KEYS: delayed, payloads. ARGV: id, due, payload.
PUT = """
redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
return redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])"""
# Due jobs become ready. KEYS: delayed, ready. ARGV: now, count.
PROMOTE = """
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
if #ids == 0 then return 0 end
redis.call('ZREM', KEYS[1], unpack(ids))
redis.call('RPUSH', KEYS[2], unpack(ids))
return #ids"""
# KEYS: ready, payloads, leases, tokens, attempts. ARGV: count, the leases' end, token. Returns for each: id,
# token, attempt, payload.
TAKE = """
local ids = redis.call('LPOP', KEYS[1], ARGV[1])
if not ids then return {} end
local payloads = redis.call('HMGET', KEYS[2], unpack(ids))
local failed = redis.call('HMGET', KEYS[5], unpack(ids))
local ends, tokens, jobs = {}, {}, {}
for i, id in ipairs(ids) do
    ends[2 * i - 1], ends[2 * i] = ARGV[2], id
    tokens[2 * i - 1], tokens[2 * i] = id, ARGV[3]
    jobs[i] = {id, ARGV[3], (failed[i] or 0) + 1, payloads[i]}
end
redis.call('ZADD', KEYS[3], unpack(ends))
redis.call('HSET', KEYS[4], unpack(tokens))
return jobs"""
# KEYS: leases, payloads, tokens, attempts. ARGV: id, token, id, token, and so on.
ACK = """
local ids, mine = {}, {}
for i = 1, #ARGV, 2 do ids[#ids + 1] = ARGV[i] end
local tokens = redis.call('HMGET', KEYS[3], unpack(ids))
for i, id in ipairs(ids) do
    if tokens[i] == ARGV[2 * i] then mine[#mine + 1] = id end
end
if #mine == 0 then return 0 end
redis.call('ZREM', KEYS[1], unpack(mine))
redis.call('HDEL', KEYS[2], unpack(mine))
redis.call('HDEL', KEYS[3], unpack(mine))
redis.call('HDEL', KEYS[4], unpack(mine))
return #mine"""
# Leases that ran out: failed attempts. KEYS: leases, delayed, dead, tokens, attempts. ARGV: now, count.
RECLAIM = """
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
for _, id in ipairs(ids) do
    local failed = redis.call('HINCRBY', KEYS[5], id, 1)
    redis.call('ZREM', KEYS[1], id)
    redis.call('HDEL', KEYS[4], id)
    if failed >= 5 then
        redis.call('RPUSH', KEYS[3], id)
    else
        redis.call('ZADD', KEYS[2], ARGV[1] + 1000 * 2 ^ (failed - 1), id)
    end
end
return #ids"""
SCRIPTS = {"put": PUT, "promote": PROMOTE, "take": TAKE, "ack": ACK, "reclaim": RECLAIM}
