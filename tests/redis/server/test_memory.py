# SPDX-License-Identifier: MIT
"""Sizes: big payloads, all bytes and none, a million tasks that are due in the same second, and the server's
figures about the memory of queues.

Active defragmentation works only with one allocator, which Debian's redis-server does not have. Its test
exists if REDIS_SERVER_DEFRAG names a server with this allocator (tests/redis/make_server jemalloc builds
one), and is absent otherwise."""
import os
import random

import pytest
import redis
from harness import PATIENCE, Tap, as_map, delivered, now_ms, task, wait_replica_in_sync, wait_until
from situations import add, answers_meanwhile, digest, extent, fill, let_pass, rewrite, wait_delivered

HOUR = 3600000
MILLION = 1000000
HERD = extent(100000, 100000, MILLION)
BIG = extent(16, 16, 64)


def binary(server):
    return server.client(decode_responses=False)


# Payloads and ids

@pytest.mark.long
@pytest.mark.parametrize("megabytes", [1, BIG])
def test_payloads_of_many_megabytes(fleet, megabytes):
    """The payloads go through AOF and replication link, once when they are due and once after a crash."""
    # On a busy machine the replica may be behind by more than a server keeps for it.
    master = fleet.server(appendonly="yes", client_query_buffer_limit="1gb",
                          client_output_buffer_limit="replica 0 0 0")
    replica = fleet.server(replicaof=master)
    wait_replica_in_sync(master, replica)
    r, big = binary(master), random.Random(megabytes).randbytes(megabytes << 20)
    add(r, "s", "out", "now", now_ms(), payload=("f", big))
    add(r, "s", "list", "now-too", now_ms(), "LIST", payload=(big,))
    add(r, "s", "out", "later", now_ms() + HOUR, payload=(big, "v"))
    wait_until(lambda: (r.xlen("out"), r.llen("list")) == (1, 1))
    wait_replica_in_sync(master, replica, timeout=PATIENCE * 5)
    assert digest(master) == digest(replica)
    assert binary(replica).xrange("out")[0][1][b"f"] == big
    assert master.tw()["bytes"] >= megabytes << 20
    master.kill()
    master.start()
    r = binary(master)
    assert r.execute_command("TW.PROMOTE", "s", "ALL") == 1
    wait_until(lambda: r.xlen("out") == 2)
    assert r.xrange("out")[1][1][big] == b"v"
    assert r.lindex("list", 0) == big
    assert master.tw()["bytes"] < 1 << 20


def test_payloads_of_many_fields(fleet):
    server = fleet.server(appendonly="yes")
    r = server.client()
    fields = {f"field{i}": f"value{i}" for i in range(20000)}
    flat = [word for pair in fields.items() for word in pair]
    add(r, "s", "out", "now", now_ms(), payload=flat)
    add(r, "s", "out", "later", now_ms() + HOUR, payload=flat)
    wait_until(lambda: r.xlen("out") == 1)
    server.kill()
    server.start()
    r = server.client()
    assert task(r, "s", "later")["payload"] == flat
    assert r.execute_command("TW.PROMOTE", "s", "ALL") == 1
    wait_until(lambda: r.xlen("out") == 2)
    for _, found in r.xrange("out"):
        assert {name: value for name, value in found.items() if not name.startswith("tw.")} == fields


def test_payloads_ids_and_names_of_all_bytes(fleet, clock):
    server = fleet.server(appendonly="yes")
    every = bytes(range(256))
    r, due = binary(server), clock.now() + 3000
    with r.pipeline(transaction=True) as all_at_once:
        for i in range(256):
            add(all_at_once,
                b"s" + every,
                b"out" + every,
                every[i:] + every[:i],
                due,
                payload=(every[:i], every[i:]))
        all_at_once.execute()
    for preamble in ("yes", "no"):
        r = binary(server)
        r.config_set("aof-use-rdb-preamble", preamble)
        rewrite(server)
        server.kill()
        server.start()
    r = binary(server)
    clock.reach(due)
    wait_until(lambda: r.xlen(b"out" + every) == 256)
    for i, (_, fields) in enumerate(r.xrange(b"out" + every)):
        assert (fields[b"tw.id"], fields[every[:i]]) == (every[i:] + every[:i], every[i:])
    assert r.exists(b"s" + every) == 0


def test_payloads_and_names_of_no_bytes(clock, r):
    due = clock.now() + 300
    add(r, "s", "out", "a", due, payload=("", ""))
    add(r, "s", "list", "l", due, "LIST", payload=("",))
    add(r, "", "out2", "of the empty name", due, payload=("", "v"))
    add(r, "s", "", "to the empty name", due, payload=("", "v"))
    assert task(r, "s", "a")["payload"] == ["", ""]
    clock.reach(due)
    let_pass(r, due)
    assert [fields
            for _, fields in r.xrange("out")] == [{"tw.id": "a", "tw.due": str(due), "tw.attempt": "1", "": ""}]
    assert r.lrange("list", 0, -1) == [""]
    assert delivered(r, "out2") == ["of the empty name"]
    # The queue with the empty name has no tasks now, so its key is free for a Stream. If it was not free
    # at the first try, it is at the second.
    assert wait_delivered(r, "", 1) == ["to the empty name"]
    wait_until(lambda: r.exists("s") == 0)


@pytest.mark.parametrize("size", [255, 256, 65535, 65536, 1 << 20])
def test_ids_targets_and_fields_of_many_bytes(fleet, size):
    server = fleet.server(appendonly="yes")
    r, long, name = server.client(), "x" * size, "x" * min(size, 959)
    due = now_ms() + HOUR
    add(r, "s", long, name, due, payload=(long, long))
    add(r, "s", long, name + "2", due, payload=(long, long))
    assert r.execute_command("TW.NEXT", "s") == [name, due, due]
    server.kill()
    server.start()
    r = server.client()
    assert task(r, "s", name)["payload"] == [long, long]
    assert r.execute_command("TW.MOVE", "s", name, "AT", now_ms()) == 1
    assert wait_delivered(r, long, 1) == [name]
    assert r.xrange(long)[0][1][long] == long
    assert r.execute_command("TW.CANCEL", "s", name + "2") == [1]


def test_many_targets_of_one_queue(server, r):
    """There are as many routes as tasks. Each task goes its way, and the memory of the routes is freed."""
    due = now_ms() + 1500
    for low in range(0, 20000, 1000):
        with r.pipeline(transaction=False) as some:
            for i in range(low, low + 1000):
                some.execute_command("TW.SEND", "s", f"out{i}", f"t{i}", "AT", due, "PAYLOAD", "f", "v")
            some.execute()
    let_pass(r, due)
    assert len(r.keys("out*")) == 20000
    assert r.exists("s") == 0
    assert server.tw()["bytes"] < 1 << 20


# Memory

def test_memory_usage_is_plausible(server, r):
    payload = 100
    fill(r, "s", "out", 20000, now_ms() + HOUR, payload=("n", "x" * payload))
    for usage in (r.memory_usage("s"), r.memory_usage("s", samples=0), server.tw()["bytes"],
                  int(as_map(r.execute_command("TW.INFO", "s"))["bytes"])):
        assert 20000 * payload < usage < 20000 * (payload + 200), usage
    more = r.memory_usage("s")
    add(r, "s", "out", "big", now_ms() + HOUR, payload=("n", "x" * MILLION))
    assert MILLION <= r.memory_usage("s") - more < 2 * MILLION
    r.execute_command("TW.CANCEL", "s", "big")
    assert abs(r.memory_usage("s") - more) < 10000


def test_what_info_counts_is_what_the_server_gives(server, r):
    """used_memory grows by about as many bytes as the module reports, and shrinks when the tasks are gone."""
    before = server.info("memory")["used_memory"]
    fill(r, "s", "out", 200000, now_ms() + HOUR, payload=("n", "x" * 100))
    r.script_flush()
    grown, told = server.info("memory")["used_memory"] - before, server.tw()["bytes"]
    assert 0.7 < told / grown < 1.3, (told, grown)
    r.delete("s")
    wait_until(lambda: server.info("memory")["used_memory"] - before < grown / 4,
               message=lambda: f"{server.info('memory')['used_memory'] - before} of {grown}: {server.tw()}")
    assert server.tw()["bytes"] < told / 10


def test_memory_comes_back_over_and_over(server, r):
    """Tasks are delivered, cancelled, replaced, deleted, flushed and expired. After five rounds the server
    uses as much memory as after the second."""
    sizes = []
    for _ in range(5):
        due = now_ms() + HOUR
        fill(r, "cancelled", "out", 5000, due, payload=("n", "x" * 100))
        r.execute_command("TW.CANCEL", "cancelled", *(f"t{i}" for i in range(5000)))
        fill(r, "delivered", "out", 5000, now_ms(), payload=("n", "x" * 100))
        wait_delivered(r, "out", 5000)
        fill(r, "deleted", "out", 5000, due)
        r.unlink("deleted", "out")
        for size in (10, 1000, 100):
            fill(r, "replaced", "out", 5000, due, payload=("n", "x" * size))
        r.copy("replaced", "copied")
        r.restore("restored", 1000, binary(server).dump("copied"), absttl=True)
        r.flushall(asynchronous=True)
        wait_until(lambda: server.tw()["reaping"] == 0)
        r.script_flush()
        wait_until(lambda: server.info("memory")["lazyfree_pending_objects"] == 0)
        r.execute_command("MEMORY", "PURGE")
        sizes.append(server.info("memory")["used_memory"])
    assert sizes[-1] < sizes[1] + 500000, sizes
    assert (server.tw()["tasks"], server.tw()["queues"]) == (0, 0)


# A million

@pytest.mark.long
def test_a_million_due_in_one_second(fleet, clock):
    """All tasks arrive, once, in order, on primary and replica. Meanwhile the server replies to clients.
    (bench/ shows how fast.)"""
    master = fleet.server(appendonly="yes", appendfsync="everysec", save="")
    replica = fleet.server(replicaof=master)
    wait_replica_in_sync(master, replica)
    r = master.client()
    due = clock.now() + 1000
    fill(r, "s", "out", HERD, due, step=1000 / HERD, payload=("n", "v"))
    assert master.tw()["tasks"] == HERD
    clock.push(1000 + 900)
    wait_until(lambda: r.xlen("out") > 0 and master.tw()["late"] == 0, patience=PATIENCE * 5, every=0.1)
    before = r.xlen("out")
    seen = answers_meanwhile(master, lambda: clock.pass_by(due + 1000), "XLEN", "out")
    assert len([count for count in seen if before < count < HERD]) >= 5, f"all at once: {seen}"
    wait_until(lambda: r.xlen("out") == HERD, lambda: f"{r.xlen('out')} {master.tw()}", patience=PATIENCE * 5,
               every=0.1)
    assert (master.tw()["tasks"], r.exists("s")) == (0, 0)
    assert_in_order(r, HERD)
    wait_replica_in_sync(master, replica, timeout=PATIENCE * 5)
    assert replica.client().xlen("out") == HERD
    assert digest(master) == digest(replica)


PUTS = """
for i = tonumber(ARGV[1]), tonumber(ARGV[2]) do
    redis.call('TW.PUT', KEYS[1], 't' .. i, 'IN', 0, 'TRIES', 2, 'BACKOFF', 1, 1, 1, 'PAYLOAD', 'v')
end
"""
# In a script, which reads the tasks faster than a client could.
TAKES = "return #redis.call('TW.TAKE', 1, KEYS[1], 'LEASE', ARGV[1], 'COUNT', 1000)"
LEASES = extent(5000, 10000, 250000)


@pytest.mark.long
def test_many_leases_end_in_one_second(fleet, clock):
    """In the first hour nobody can be heard, so all leases begin anew. After the second one all attempts fail,
    and the tasks are ready again. The server needs few ticks: each of them ends 125 leases at least."""
    master = fleet.server(appendonly="yes", appendfsync="everysec", save="", repl_timeout=10 * HOUR // 1000)
    replica = fleet.server(replicaof=master)
    wait_replica_in_sync(master, replica)
    r = master.client()
    for low in range(0, LEASES, 5000):
        r.eval(PUTS, 1, "s", low, low + 4999)
    wait_until(lambda: master.offered() == LEASES, patience=PATIENCE * 5)
    for i in range(0, LEASES, 1000):
        assert r.eval(TAKES, 1, "s", 1000 + i * 1000 // LEASES) == 1000
    r.config_set("tickwheel.us-per-tick", 1000000)
    tap = Tap(master, timeout=PATIENCE * 5)
    for name in ("renewed", "lapsed"):
        clock.elapse(HOUR)
        wait_until(lambda name=name: master.tw()[name] == LEASES, lambda: str(master.tw()),
                   patience=PATIENCE * 5)
        ticks = len(tap.commands())  # Each writes one command.
        assert LEASES // 1000 <= ticks <= LEASES // 1000 * 16, name
    tap.close()
    clock.push(1)  # the backoff
    wait_until(lambda: master.offered() == LEASES, lambda: str(master.tw()), patience=PATIENCE * 5)
    assert (master.tw()["renewed"], master.tw()["leased"]) == (LEASES, 0)
    assert task(r, "s", "t0")["attempt"] == 1
    wait_replica_in_sync(master, replica, timeout=PATIENCE * 5)
    assert digest(master) == digest(replica)


# In a script, which reads the entries in a tenth of a client's time. Returns the id of the last entry, how many
# there are, and the task of the first entry that should have another one.
IN_ORDER = """
local piece = redis.call('XRANGE', KEYS[1], ARGV[1], '+', 'COUNT', 10000)
for i, entry in ipairs(piece) do
    local found = 'none'
    for n = 1, #entry[2], 2 do
        if entry[2][n] == 'tw.id' then found = entry[2][n + 1] end
    end
    if found ~= 't' .. (ARGV[2] + i - 1) then return {entry[1], i, found} end
end
return {#piece > 0 and piece[#piece][1] or '', #piece, ''}
"""


def assert_in_order(client, count):
    """Asserts that the stream has t0, t1 ... and no other entry. Reads it in pieces."""
    at, seen = "-", 0
    while seen < count:
        last, found, wrong = client.eval(IN_ORDER, 1, "out", at, seen)
        assert found and not wrong, (seen + found, wrong)
        at, seen = f"({last}", seen + found
    assert seen == count


# Defragmentation

if os.environ.get("REDIS_SERVER_DEFRAG"):
    def test_defragmentation_moves_tasks_and_harms_none(fleet, monkeypatch):
        """Two of three tasks are cancelled, so that the allocator's pages are mostly holes. Then the server
        moves the other tasks together, while more tasks are added and delivered."""
        monkeypatch.setenv("REDIS_SERVER", os.environ["REDIS_SERVER_DEFRAG"])
        server = fleet.server(active_defrag_ignore_bytes="1", active_defrag_threshold_lower=0,
                              active_defrag_cycle_min=50, active_defrag_cycle_max=75)
        r, due = server.client(), now_ms() + HOUR
        names = fill(r, "s", "out", 150000, due, step=1, payload=("n", "x" * 150))
        gone = [name for i, name in enumerate(names) if i % 3]
        for low in range(0, len(gone), 1000):
            r.execute_command("TW.CANCEL", "s", *gone[low:low + 1000])
        before = server.info("memory")["allocator_frag_bytes"]
        r.config_set("activedefrag", "yes")
        soon = fill(r, "s2", "out2", 3000, now_ms() + 500, step=1)
        wait_until(lambda: server.info("stats")["active_defrag_hits"] > 10000,
                   message=lambda: str(server.info("stats")))
        wait_until(lambda: server.info("memory")["allocator_frag_bytes"] < before / 2,
                   message=lambda: f"{before} -> {server.info('memory')}")
        assert wait_delivered(r, "out2", 3000) == soon
        left = [name for i, name in enumerate(names) if not i % 3]
        assert r.execute_command("TW.LEN", "s") == len(left)
        assert task(r, "s", left[77])["payload"] == ["n", "x" * 150]
        while r.execute_command("TW.PROMOTE", "s", "ALL"):
            pass
        assert wait_delivered(r, "out", len(left)) == left
        assert r.exists("s") == 0
else:
    def test_a_server_that_cannot_defragment_says_so(r):
        """Shows why there is no test here: this server was not built with the allocator for it."""
        with pytest.raises(redis.ResponseError, match="activedefrag|DEFRAG|Jemalloc"):
            r.config_set("activedefrag", "yes")
