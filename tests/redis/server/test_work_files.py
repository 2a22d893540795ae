# SPDX-License-Identifier: MIT
"""Tasks for workers in the append-only file, in snapshots, on replicas and after a promotion. A replica has
each change of the primary; a server that starts again has all that it had, and its workers' tokens hold."""
import os
import random
import shutil

import pytest
import redis

from harness import Raw, Tap, now_ms, task, tasks, wait_replica_in_sync, wait_until
from situations import (Counters, add, aof_commands, aof_path, dead_of, deferred, fired_form, frozen,
                        last_transaction, let_pass, let_turn, logged_task, outcomes, put, rewrite, take,
                        wait_dead, wait_ready, wait_take, with_checksum, working)
from test_lifecycle import raw_dump
from workers import Stages, counts

HOUR = 3600 * 1000


def ack(client, job):
    return client.execute_command("TW.ACK", job.queue, job.id, job.token)


def values(server):
    """Returns {key: digest of its value}, for all keys of a server."""
    r = server.client()
    keys = sorted(r.keys("*"))
    return dict(zip(keys, r.execute_command("DEBUG", "DIGEST-VALUE", *keys) if keys else []))


def variety(r):
    """Fills the queue `s` with tasks in all states, and the paused queues `p` and `empty`. Returns the
    jobs whose leases are running."""
    due = now_ms() - 10
    for i, name in enumerate(("acked", "failed", "leased", "touched", "dead", "period", "ready")):
        words = ("EVERY", HOUR, "TIMES", 5) if name == "period" else ()
        put(r, "s", name, "AT", due + i, *words, "TRIES", 9, "BACKOFF", HOUR, "1.5", 2 * HOUR, "JITTER", 7,
            payload=(name, "", "x" * 300))
    wait_ready(r, "s", 7)
    jobs = {job.id: job for job in take(r, "s", lease=HOUR, options=("COUNT", 6, "NAME", "worker 1"))}
    ack(r, jobs["acked"])
    for name, words in (("failed", ("ERROR", "no luck")), ("dead", ("DEAD", "ERROR", "hopeless")),
                        ("period", ("DEAD", ))):
        r.execute_command("TW.NACK", "s", name, jobs[name].token, *words)
    r.execute_command("TW.TOUCH", "s", "touched", jobs["touched"].token, "LEASE", 2 * HOUR)
    put(r, "s", "waiting", "IN", HOUR)
    add(r, "s", "q", "stream", now_ms() + HOUR)
    r.execute_command("TW.SEND", "s", "list", "left", "IN", HOUR, "LIST", "LEFT", "PAYLOAD", "v")
    r.config_set("tickwheel.target-tries", 1)
    r.set("wrong", "text")
    add(r, "s", "wrong", "refused", 1000)
    for name in ("p", "empty"):
        r.execute_command("TW.PAUSE", name)
    put(r, "p", "stopped", "AT", 1000)
    wait_until(lambda: len(dead_of(r, "s")) == 3)
    return [jobs["leased"], jobs["touched"]]


def everything(r):
    """Returns all that can be asked about the tasks of variety(), without what passes with time."""
    found = {}
    for queue in ("s", "p", "empty"):
        for name in tasks(r, queue):
            found[queue, name] = {**task(r, queue, name), "remaining": 0}
        info = working(r, queue)
        names = ("tasks", "waiting", "next", "paused", "ready", "leased", "dead")
        found[queue] = {name: info[name] for name in names}
        found[queue, "order of death"] = dead_of(r, queue)
    return found


def check(server, before, seen, jobs):
    """The server has all that it had, and the leases that were running can be acknowledged."""
    r = server.client()
    wait_ready(r, "s", 1)
    assert values(server) == before
    assert everything(r) == seen
    assert [ack(r, job) for job in jobs] == [1] * len(jobs)
    assert take(r, "s")[0].id == "ready"


# Files

@pytest.mark.parametrize("way", [
    "AOF", "AOF, killed", "rewritten", "rewritten without preamble", "RDB", "reload", "both"])
def test_a_server_that_starts_again_has_all_tasks(fleet, way):
    options = {} if way in ("RDB", "reload") else {"appendonly": "yes"}
    server = fleet.server(aof_use_rdb_preamble="no" if "without" in way else "yes", **options)
    r = server.client()
    jobs = variety(r)
    before, seen = values(server), everything(r)
    if way.startswith("rewritten"):
        rewrite(server)
    if way in ("RDB", "both"):
        r.save()
    if way == "reload":
        r.execute_command("DEBUG", "RELOAD")
    elif way == "AOF":
        server.restart()
    else:
        server.kill()
        server.start()
    check(server, before, seen, jobs)


def test_ready_tasks_keep_their_order_in_a_file(fleet):
    server = fleet.server(appendonly="yes")
    r = server.client()
    names = [f"t{i * 37 % 101}" for i in range(101)]
    for name in names:
        put(r, "s", name, "AT", 1000)
    wait_ready(r, "s", 101)
    for _ in range(2):
        server.kill()
        server.start()
        r = server.client()
        wait_ready(r, "s", 101)
    assert [job.id for job in take(r, "s", options=("COUNT", 200))] == names


@pytest.mark.parametrize("way", ["killed", "deliver no", "reload"])
def test_a_lease_that_ran_out_while_nobody_could_serve_begins_anew_once(fleet, clock, way):
    server = fleet.server(appendonly="yes")
    r = server.client()
    put(r, "s", "a", "IN", 0, "BACKOFF", HOUR, 1, HOUR)
    job = wait_take(r, "s", lease=400)
    end = task(r, "s", "a")["next"]
    if way == "killed":
        server.kill()
        clock.push(500)
        server.start()
        r = server.client()
    elif way == "deliver no":
        r.config_set("tickwheel.deliver", "no")
        clock.run(500)
        deferred(server, "stopped")
        assert task(r, "s", "a")["state"] == "leased"
        r.config_set("tickwheel.deliver", "yes")
    else:
        raw = Raw(server)
        with frozen(server):
            clock.run(500)
            raw.send("DEBUG", "RELOAD")  # The server reads this first.
        assert raw.read() == "OK"
    wait_until(lambda: server.tw()["renewed"] == 1)
    found = task(r, "s", "a")
    assert (found["state"], found["attempt"], found["error"]) == ("leased", 1, "") and found["next"] > end
    clock.go_on()
    wait_until(lambda: task(r, "s", "a")["error"] == "the lease ran out")
    assert (server.tw()["renewed"], server.tw()["lapsed"]) == (1, 1)
    assert ack(r, job) == 1


def cut_off(server, begin, end):
    """Starts the server again and again with its file cut off between these bytes. Yields a client."""
    path = aof_path(server)
    kept = shutil.copy(path, os.path.join(server.folder, "kept"))
    for at in (begin + 1, *random.Random(7).sample(range(begin + 2, end - 1), 3), end - 1):
        shutil.copy(kept, path)
        os.truncate(path, at)
        server.start()
        yield server.client()
        server.kill()


def start_again(server):
    server.kill()
    server.start()
    return server.client()


def test_a_take_that_was_cut_off_has_not_happened(fleet):
    """The next worker gets another token, which still counts when the server starts once more."""
    server = fleet.server(appendonly="yes")
    r = server.client()
    put(r, "s", "a", payload=("x" * 200, ))
    old = wait_take(r, "s")
    server.kill()
    *_, (begin, words) = aof_commands(aof_path(server))
    assert (words[1], fired_form(words)) == (b"s", "CHANGES")
    for r in cut_off(server, begin, os.path.getsize(aof_path(server))):
        new = wait_take(r, "s")
        assert (new.attempt, new.token != old.token, ack(r, old)) == (1, True, 0)
        r = start_again(server)
        assert (ack(r, old), ack(r, new), r.exists("s")) == (0, 1, 0)


def test_an_ack_that_was_cut_off_has_not_happened(fleet):
    """It was in a transaction with the result of the work. The token still counts, once."""
    server = fleet.server(appendonly="yes")
    r = server.client()
    put(r, "s", "a")
    job = wait_take(r, "s")
    with r.pipeline(transaction=True) as both:
        ack(both, job)
        both.xadd("results", {"of": "a"})
        assert both.execute()[0] == 1
    server.kill()
    begin, end, _ = last_transaction(aof_path(server), b"XADD")
    for r in cut_off(server, begin, end):
        assert (r.exists("results"), task(r, "s", "a")["state"], ack(r, job)) == (0, "leased", 1)
        r = start_again(server)
        assert (r.exists("s"), ack(r, job)) == (0, 0)


# Values

def look_at_all(r, key):
    """Asks for all tasks, and gives the ready ones out."""
    found = tasks(r, key)
    r.execute_command("TW.GET", key, *(found or ["none"]))
    for words in (("TW.LEN", key), ("TW.DEAD", key), ("TW.NEXT", key), ("TW.INFO", key), ("DUMP", key)):
        r.execute_command(*words)
    take(r, key, options=("COUNT", 9))
    r.execute_command("TW.REPLAY", key, "ALL", "IN", HOUR)


def test_corrupt_values_with_every_stage_are_refused(server):
    """Flips one to three bits of a DUMP, and corrects its checksum. A value that is accepted has all its tasks,
    and they can be used."""
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    chance, r = random.Random(seed), server.client(encoding_errors="surrogateescape")
    r.config_set("rdbcompression", "no")
    r.config_set("tickwheel.deliver", "yes")
    stages, refusals = Stages(r), 0
    good = raw_dump(r, "s")
    for _ in range(200):
        body = bytearray(good[:-8])
        for _ in range(chance.randint(1, 3)):
            body[chance.randrange(10, len(body) - 2)] ^= 1 << chance.randrange(8)
        with r.pipeline(transaction=True) as both:  # A flipped bit may be that of MAXLATE.
            both.restore("c", 0, with_checksum(bytes(body)))
            both.execute_command("TW.SCAN", "c", 0, "COUNT", 100)
            restored, (_, found) = both.execute(raise_on_error=False)
        if isinstance(restored, redis.ResponseError):
            assert "Bad data format" in str(restored), restored
            refusals += 1
        else:
            assert len(found) == len(stages.names), found
            look_at_all(r, "c")
            r.delete("c")
    assert 20 <= refusals < 200, refusals
    wait_until(lambda: counts(server) == (1, 1, 2), message=lambda: str(server.tw()))
    stages.work_on(r, "s")


# Replication

@pytest.fixture
def pair(fleet):
    primary = fleet.server(appendonly="yes")
    replica = fleet.server(replicaof=primary)
    wait_replica_in_sync(primary, replica)
    return primary, replica


def agree(pair):
    primary, replica = pair
    wait_replica_in_sync(primary, replica)
    assert values(replica) == values(primary)


def test_the_replica_agrees_after_each_command(pair):
    primary, replica = pair
    r = primary.client()
    jobs = {}

    def work(*words):
        words = [jobs[word[1:]].token if str(word).startswith("$") else word for word in words]
        reply = r.execute_command(*words)
        agree(pair)
        return reply

    for name in "abcde":
        every = {"b": ("EVERY", HOUR, "TIMES", 3), "d": ("EVERY", HOUR)}.get(name, ())
        work("TW.PUT", "s", name, "AT", now_ms(), *every, "TRIES", 3, "BACKOFF", HOUR, 2, HOUR, "PAYLOAD", "v")
    wait_ready(r, "s", 5)
    agree(pair)
    jobs.update({job.id: job for job in take(r, "s", options=("COUNT", 4, "NAME", "w"))})
    agree(pair)
    assert work("TW.TOUCH", "s", "a", "$a", "LEASE", 2 * HOUR) > 0
    assert work("TW.NACK", "s", "a", "$a", "BACK") > 0
    jobs.update({job.id: job for job in take(r, "s", options=("COUNT", 1, "NAME", "w"))})
    agree(pair)
    assert work("TW.NACK", "s", "a", "$a", "ERROR", "text") > 0
    assert work("TW.ACK", "s", "b", "$b", "c", "$c") == 2
    assert work("TW.NACK", "s", "d", "$d", "DEAD", "ERROR", "text") == 0
    assert work("TW.REPLAY", "s", "ALL", "IN", HOUR) == 1
    assert work("TW.PROMOTE", "s", "ALL") == 4
    wait_ready(r, "s", 5)
    jobs.update({job.id: job for job in take(r, "s", lease=50, options=("COUNT", 9))})
    wait_until(lambda: working(r, "s")["leased"] == 0)
    agree(pair)
    assert work("TW.MOVE", "s", "a", "IN", HOUR) == 1
    assert work("TW.PAUSE", "s") == 1
    assert set(work("TW.CANCEL", "s", *tasks(r, "s"))) <= {1, 2}
    assert work("TW.RESUME", "s") == 1
    assert r.exists("s") == replica.client().exists("s") == 0


def test_coalesced_periods_and_dropped_tasks_on_the_replica(pair):
    primary, _ = pair
    r, now = primary.client(), now_ms()
    counters = Counters(primary)
    put(r, "s", "each", "AT", now - 10 * HOUR, "EVERY", 60000, "MISSED", "coalesce")
    put(r, "s", "drop", "AT", now - HOUR, "MAXLATE", 1)
    put(r, "s", "series", "AT", now - HOUR, "EVERY", 2 * HOUR, "MAXLATE", 1)
    wait_ready(r, "s", 3)
    agree(pair)
    [job] = take(r, "s", options=("COUNT", 9))
    assert counters["dropped"] == 2 and r.execute_command("TW.LEN", "s") == 2
    assert job.due == now - 10 * HOUR and job.missed_periods >= 600
    agree(pair)
    assert ack(r, job) == 1 and counters["coalesced"] == job.missed_periods
    agree(pair)


def test_dead_tasks_with_targets_and_limits_on_the_replica(pair):
    primary, _ = pair
    r = primary.client()
    r.config_set("tickwheel.target-tries", 1)
    r.set("wrong", "text")
    add(r, "s", "wrong", "once", 1000)
    add(r, "s", "wrong", "series", 1001, "EVERY", 1, "TIMES", 5, "MISSED", "burst")
    wait_dead(r, "s", 6)
    agree(pair)
    r.config_set("tickwheel.dead-max", 2)
    add(r, "s", "wrong", "more", 1002)
    wait_until(lambda: working(r, "s")["dead"] == 2)
    agree(pair)
    r.config_set("tickwheel.dead-ms", 1)
    wait_until(lambda: r.exists("s") == 0)
    agree(pair)


def test_copies_on_the_replica(pair):
    primary, replica = pair
    r = primary.client()
    variety(r)
    r.copy("s", "s2")
    raw = primary.client(decode_responses=False)
    raw.restore("s3", 0, raw.dump("s"))
    r.rename("p", "p2")
    wait_ready(r, "s2", 3)
    wait_ready(r, "s3", 1)
    agree(pair)
    replica.client().replicaof("NO", "ONE")
    wait_ready(replica.client(), "s2", 3)
    for one in pair:  # a promoted server sorts its ready tasks by due time
        assert sorted(job.id for job in take(one.client(), "s2", options=("COUNT", 9))) == [
            "leased", "ready", "touched"]


def test_a_copy_in_the_moment_of_a_take_keeps_the_order(r):
    """A bug: b is not ready yet in this moment, and came first in the copy."""
    script = """redis.call('TW.PUT', KEYS[1], 'a', 'AT', 5, 'PAYLOAD', 'x')
                redis.call('TW.PUT', KEYS[1], 'b', 'AT', 5, 'PAYLOAD', 'x')
                local job = redis.call('TW.TAKE', 1, KEYS[1], 'LEASE', 60000)[1]
                redis.call('TW.NACK', KEYS[1], job[2], job[3], 'BACK')
                redis.call('COPY', KEYS[1], KEYS[2])
                return job[2]"""
    assert r.eval(script, 2, "s", "t") == "a"
    assert [job.id for job in take(r, "t", options=("COUNT", 9))] == ["a", "b"]


def test_what_is_replicated(server, r):
    tap = Tap(server)
    put(r, "s", "a", "AT", 5, "NX")
    due = now_ms() + HOUR
    name = put(r, "s", "*", "IN", HOUR)
    first, second = map(logged_task, tap.commands())
    assert (first["queue"], first["id"], first["due"], first["payload"]) == ("s", "a", 5, ["v"])
    assert second["id"] == name and due <= second["due"] <= now_ms() + HOUR
    wait_ready(r, "s")
    assert outcomes(tap.commands()) == []
    for _ in range(2):
        job = wait_take(r, "s")
        assert outcomes(tap.commands()) == [("s", "CHANGES")]
        r.execute_command("TW.TOUCH", "s", "a", job.token, "LEASE", HOUR)
        assert outcomes(tap.commands()) == [("s", "CHANGES")]
        r.execute_command("TW.NACK", "s", "a", job.token, "IN", 0)
        assert outcomes(tap.commands()) == [("s", "CHANGES")]
    for _ in range(2):
        job = wait_take(r, "s")
        assert outcomes(tap.commands()) == [("s", "CHANGES")]
        r.execute_command("TW.NACK", "s", "a", job.token, "BACK")
        assert outcomes(tap.commands()) == [("s", "CHANGES")]
    ack(r, wait_take(r, "s", lease=HOUR))
    assert outcomes(tap.commands()) == [("s", "CHANGES")] * 2
    r.execute_command("TW.PAUSE", "s")
    assert outcomes(tap.commands()) == [("s", "PAUSE")]
    r.execute_command("TW.RESUME", "s")
    assert outcomes(tap.commands()) == [("s", "RESUME")]


def test_a_command_that_changes_nothing_is_not_replicated(server, r):
    put(r, "s", "a", "AT", 1000), put(r, "s", "b", "IN", HOUR)
    job = wait_take(r, "s")
    tap = Tap(server)
    nobody = "0" * 16
    for words in (("TW.PUT", "s", "a", "IN", 5, "NX", "PAYLOAD", "v"),
                  ("TW.PUT", "s", "c", "IN", 5, "XX", "PAYLOAD", "v"), ("TW.ACK", "s", "a", nobody),
                  ("TW.ACK", "none", "a", job.token), ("TW.NACK", "s", "a", nobody, "DEAD"),
                  ("TW.NACK", "s", "a", nobody, "BACK"), ("TW.NACK", "none", "a", job.token, "BACK"),
                  ("TW.TOUCH", "s", "a", nobody, "LEASE", 5), ("TW.DEAD", "s"), ("TW.REPLAY", "s", "ALL"),
                  ("TW.REPLAY", "s", "IDS", 1, "a", "IN", 5), ("TW.PURGE", "s", "IDS", 1, "a"),
                  ("TW.PURGE", "s", "ALL"),
                  ("TW.RESUME", "s"), ("TW.RESUME", "none"),
                  ("TW.TAKE", 2, "s", "none", "LEASE", 5, "COUNT", 5)):
        r.execute_command(*words)
        assert tap.commands() == [], words
    assert task(r, "s", "a")["state"] == "leased"


def test_a_blocked_take_is_replicated_in_one_transaction(server, r):
    raw = Raw(server)
    raw.send("TW.TAKE", 1, "s", "LEASE", HOUR, "BLOCK", 0, "COUNT", 5)
    wait_until(lambda: server.info("clients")["blocked_clients"] == 1)
    tap = Tap(server)
    put(r, "s", "a", "IN", 20)
    assert raw.read()[0][1] == "a"
    assert outcomes(tap.commands()) == [("s", "PUT"), ("s", "CHANGES")]


# Promotion, and servers that may not deliver

def test_a_promoted_replica_goes_on(pair):
    primary, replica = pair
    r = primary.client()
    jobs = variety(r)
    wait_replica_in_sync(primary, replica)
    seen = everything(r)
    primary.kill()
    other = replica.client()
    assert working(other, "s")["ready"] == 1
    other.replicaof("NO", "ONE")
    wait_ready(other, "s", 1)
    assert everything(other) == seen
    assert [ack(other, job) for job in jobs] == [1, 1]
    assert take(other, "s")[0].id == "ready"


@pytest.mark.parametrize("way", ["log", "snapshot", "failover"])
def test_tasks_that_are_given_back_elsewhere_have_the_order_of_their_times(clock, fleet, way):
    """Whatever the order of their puts, and of the ends of their leases."""
    server = fleet.server(appendonly="yes" if way == "log" else "no")
    r, at = server.client(), clock.now() + 50
    replica = fleet.server(replicaof=server) if way == "failover" else None
    if replica:
        wait_replica_in_sync(server, replica)
    for i in range(5):
        put(r, "s", f"t{4 - i}", "AT", at + 4 - i)
    clock.elapse(100)
    wait_ready(r, "s", 5)
    jobs = [take(r, "s", lease=HOUR - 1000 * i)[0] for i in range(4)]
    if way == "snapshot":
        r.save()
    if replica:
        wait_replica_in_sync(server, replica)
        r = replica.client()
        r.replicaof("NO", "ONE")
    else:
        server.restart()
        r = server.client()
    wait_ready(r, "s")
    for i in (2, 0, 3, 1):
        r.execute_command("TW.NACK", "s", jobs[i].id, jobs[i].token, "BACK")
    assert [job.id for job in take(r, "s", options=("COUNT", 9))] == ["t0", "t1", "t2", "t3", "t4"]


def test_tasks_that_were_given_back_before_a_restart_have_the_order_of_their_puts(clock, fleet):
    server = fleet.server(appendonly="yes")
    r, at = server.client(), clock.now() + 50
    for i in range(3):
        put(r, "s", f"t{i}", "AT", at)
    clock.elapse(100)
    wait_ready(r, "s", 3)
    for job in reversed(take(r, "s", options=("COUNT", 2))):
        r.execute_command("TW.NACK", "s", job.id, job.token, "BACK")
    server.restart()
    r = server.client()
    wait_ready(r, "s", 3)
    assert [job.id for job in take(r, "s", options=("COUNT", 9))] == ["t0", "t1", "t2"]


def test_a_replica_gives_nothing_and_wakes_nobody(pair):
    primary, replica = pair
    r = primary.client()
    raw = Raw(replica)
    assert raw("TW.TAKE", 1, "s", "LEASE", 5, "BLOCK", 0).startswith("READONLY")
    replica.client().config_set("replica-read-only", "no")
    put(r, "s", "a", "IN", 0)
    wait_ready(r, "s")
    wait_replica_in_sync(primary, replica)
    assert raw("TW.TAKE", 1, "s", "LEASE", 5).startswith("READONLY")
    assert working(replica.client(), "s")["leased"] == 0


def test_blocked_workers_of_a_server_that_becomes_a_replica(fleet, server):
    raw = Raw(server)
    raw.send("TW.TAKE", 1, "s", "LEASE", 5, "BLOCK", 0)
    wait_until(lambda: server.info("clients")["blocked_clients"] == 1)
    server.client().replicaof("127.0.0.1", fleet.server().port)
    assert "UNBLOCKED" in raw.read()


@pytest.mark.parametrize("why", ["deliver", "pause", "replicas"])
def test_a_blocked_worker_waits_while_the_server_may_not_serve_him(clock, server, r, why):
    raw = Raw(server)
    raw.send("TW.TAKE", 1, "s", "LEASE", HOUR, "BLOCK", 0)
    wait_until(lambda: server.info("clients")["blocked_clients"] == 1)
    put(r, "s", "a", "IN", 300)
    {"deliver": lambda: r.config_set("tickwheel.deliver", "no"),
     "pause": lambda: r.execute_command("CLIENT", "PAUSE", HOUR, "WRITE"),
     "replicas": lambda: r.config_set("min-replicas-to-write", 1)}[why]()
    clock.reach(clock.now() + 300)
    wait_until(lambda: server.tw()["ready"] == 1)
    let_turn(server)
    assert (working(r, "s")["leased"], server.info("clients")["blocked_clients"]) == (0, 1), "it was served"
    {"deliver": lambda: r.config_set("tickwheel.deliver", "yes"),
     "pause": lambda: r.execute_command("CLIENT", "UNPAUSE"),
     "replicas": lambda: r.config_set("min-replicas-to-write", 0)}[why]()
    assert raw.read()[0][1] == "a"


def test_a_full_server_lets_workers_take_and_acknowledge(server, r):
    put(r, "s", "a", "IN", 200), put(r, "s", "b", "IN", 201)
    r.config_set("maxmemory", 1)
    wait_ready(r, "s", 2)
    jobs = take(r, "s", options=("COUNT", 2))
    assert [ack(r, job) for job in jobs] == [1, 1]
    r.config_set("maxmemory", 0)
    assert r.exists("s") == 0
    let_pass(r, now_ms())


def test_a_period_is_delivered_and_the_next_one_dies_in_one_tick(pair):
    """The replica has both changes in their order, so it does not take the dead period for one to come."""
    primary, replica = pair
    r = primary.client()
    r.config_set("tickwheel.target-tries", 1)
    r.xadd("q", {"f": "v"}, id="18446744073709551615-18446744073709551614")  # takes one entry more
    due = now_ms() - HOUR - HOUR // 2
    add(r, "s", "q", "a", due, "EVERY", HOUR, "TIMES", 3, "MISSED", "burst")
    assert [one.id for one in wait_dead(r, "s")] == [f"a@{due + HOUR}"] and r.xlen("q") == 2
    agree(pair)
    assert replica.client().execute_command("TW.NEXT", "s") == ["a", due + 2 * HOUR, due + 2 * HOUR]


def test_a_dead_period_takes_the_id_of_a_task_that_was_delivered_in_the_same_tick(pair):
    primary, _ = pair
    r = primary.client()
    r.config_set("tickwheel.target-tries", 1)
    r.set("wrong", "text")
    with r.pipeline(transaction=True) as pipe:
        for _ in range(3):
            add(pipe, "s", "q", "a@1000", 999)
            add(pipe, "s", "wrong", "a", 1000, "EVERY", 3155760000000)
        pipe.execute()
    wait_dead(r, "s")
    agree(pair)
    assert sorted(tasks(r, "s")) == ["a", "a@1000-1"] and r.xlen("q") == 1
    assert task(r, "s", "a@1000-1")["state"] == "dead"


def test_a_lease_begins_anew_only_once(fleet, clock):
    """The server is down at the end of the first lease and of the second: the attempt has failed."""
    server = fleet.server(appendonly="yes")
    r = server.client()
    put(r, "s", "a", "IN", 0, "BACKOFF", HOUR, 1, HOUR)
    wait_take(r, "s", lease=1000)
    for turn in range(2):
        server.kill()
        clock.push(1050)
        server.start()
        r = server.client()
        counter = ("renewed", "lapsed")[turn]
        wait_until(lambda counter=counter: server.tw()[counter] == 1)
    found = task(r, "s", "a")
    assert (found["state"], found["attempt"], found["error"]) == ("waiting", 1, "the lease ran out")
    assert server.tw()["renewed"] == 0  # since the last start


def test_ready_tasks_that_come_by_rename_wait_too(server, r):
    put(r, "other", "a")
    wait_ready(r, "other")
    raw = Raw(server)
    raw.send("TW.TAKE", 1, "s", "LEASE", HOUR, "BLOCK", 0)
    wait_until(lambda: server.info("clients")["blocked_clients"] == 1)
    r.config_set("tickwheel.deliver", "no")
    r.rename("other", "s")
    let_turn(server)
    assert server.info("clients")["blocked_clients"] == 1, "it was served"
    r.config_set("tickwheel.deliver", "yes")
    assert raw.read()[0][1] == "a"
