# SPDX-License-Identifier: MIT
"""Queues on disk:
  - the append-only file with its rewrites and its broken ends;
  - golden files of this format, and files of other formats, which are refused;
  - corrupt values;
  - the tasks that became due while the server was down.
"""
import contextlib
import glob
import hashlib
import importlib.machinery
import importlib.util
import os
import random
import re
import shutil
import socket
import struct

import pytest
import redis
from harness import (PATIENCE, ROOT, Broken, Raw, as_map, delivered, in_order, now_ms, task, tasks,
                     wait_replica_in_sync, wait_until)
from situations import (WallClock, add, aof_commands, aof_path, dead_of, digest, fill, fired_form,
                        last_transaction, let_pass, logged_kinds, logged_task, rewrite, take, transactions,
                        wait_dead, wait_delivered, wait_ready, wait_rewritten, wait_take, with_checksum,
                        working)

HOUR = 3600000
GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")
HELD_BACK = {"maxmemory": 1}  # A server with this option delivers to no target: a test can look at its tasks.


def order(client, queue):
    """Returns the ids of the waiting tasks of a queue, in the order in which they will be delivered."""
    return [name for name, *_ in in_order(client.execute_command, queue)]


def everything(client, queue):
    """Returns {id: reply of TW.GET} for a whole queue, without the remaining time."""
    names = sorted(tasks(client, queue))
    found = [as_map(one) for one in client.execute_command("TW.GET", queue, *names)]
    for one in found:
        del one["remaining"]
    return dict(zip(names, found))


def variety(client, due):
    """Fills a queue with every kind of task. The order of tasks with equal due times is not the order of
    their names."""
    pipe = client.pipeline(transaction=False)
    for i in range(300):
        add(pipe, "s", "out", f"t{i * 113 % 307}", due)
    for i in range(50):
        add(pipe, "s", f"target{i}", f"u{i}", due + i, payload=("n", "x" * i * 10))
    pipe.execute()
    add(client, "s", "list", "list", due, "LIST", payload=("\x01 one value",))
    add(client, "s", "out", "beat", due, "EVERY", 60000)
    add(client, "s", "out", "beat-times", due + 7, "EVERY", 1, "TIMES", 2**63 - 1)
    add(client, "s", "out", "maxlen", due, "MAXLEN", 1000)
    add(client, "s", "out", "drop", due, "MAXLATE", 0)
    add(client, "s", "out", "coalesce", due, "EVERY", 5, "MISSED", "coalesce")
    add(client, "s", "out", "never", 253402300799999)
    add(client, "s", "out", "empty", due, payload=("", ""))
    add(client, "s", "", "to-nowhere", due)
    client.execute_command("TW.SEND", "s", "out", "*", "AT", due, "PAYLOAD", "many", "fields", *"abcdefghijkl")


# The append-only file

@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_aof_rewrite_and_crash(fleet, preamble):
    """The server has the same tasks, and tasks with equal due times are in the same order. A task that is
    added afterwards takes its place in this order."""
    server = fleet.server(aof_use_rdb_preamble=preamble, appendonly="yes")
    r, due = server.client(), now_ms() + HOUR
    variety(r, due)
    fill(r, "big", "out", 20000, due, payload=("n", "x" * 50))
    fill(server.client(db=9), "s", "out", 10, due)
    r.execute_command("TW.CANCEL", "s", "t3", "t4")
    r.execute_command("TW.MOVE", "s", "t5", "AT", due)
    r.pexpire("big", HOUR)
    before, sequence, fingerprint = everything(r, "s"), order(r, "s"), digest(server)
    rewrite(server)
    with open(aof_path(server, "base"), "rb") as base:
        assert base.read(5) == (b"REDIS" if preamble == "yes" else b"*2\r\n$")
    server.kill()
    server.start()
    r = server.client()
    assert (everything(r, "s"), order(r, "s"), digest(server)) == (before, sequence, fingerprint)
    assert (server.tw()["tasks"], server.tw()["queues"]) == (len(before) + 20010, 3)
    add(r, "s", "out", "t0", due)
    r.execute_command("TW.CANCEL", "s", "t9")
    sequence = [name for name in sequence if name not in ("t0", "t9")]
    sequence.insert(sequence.index("u1"), "t0")
    server.kill()
    server.start()
    assert order(server.client(), "s") == sequence


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_aof_rewrite_keeps_phase_and_times_of_repeating_tasks(fleet, clock, preamble):
    server = fleet.server(aof_use_rdb_preamble=preamble, appendonly="yes")
    r, due = server.client(), clock.now() + 200
    add(r, "s", "out", "beat", due, "EVERY", 250, "TIMES", 20, "MISSED", "burst")
    clock.push(200 + 2 * 250)
    wait_delivered(r, "out", 3)
    rewrite(server)
    clock.push(3 * 250)
    wait_delivered(r, "out", 6)
    server.kill()
    server.start()
    r = server.client()
    clock.push(14 * 250)
    wait_delivered(r, "out", 20)
    assert [int(fields["tw.due"]) for _, fields in r.xrange("out")] == [due + 250 * i for i in range(20)]
    assert r.exists("s") == 0


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_aof_rewrite_keeps_tries_and_tasks_die_after_as_many(fleet, preamble):
    """A task whose target refused it twice has one try left after a crash, or all its tries. It is never
    lost."""
    server = fleet.server(aof_use_rdb_preamble=preamble, appendonly="yes",
                          module_args=("target-backoff-ms", 400))
    r = server.client()
    r.set("out", "text")
    names = fill(r, "s", "out", 2, now_ms())
    wait_until(lambda: int(task(r, "s", "t0")["attempt"]) >= 1)
    rewrite(server)
    server.kill()
    server.start()
    r = server.client()
    dead = wait_dead(r, "s", 2)
    assert sorted(one.id for one in dead) == names and {one.attempt for one in dead} == {3}


@pytest.mark.parametrize("way", ["snapshot", "rewritten yes", "rewritten no", "replica"])
def test_a_refused_task_is_tried_at_its_next_after_a_restart(fleet, clock, way):
    """So restarts use up no tries, and the waits go on getting longer. A task that waits behind it waits on."""
    preamble = way.split()[-1] if " " in way else "yes"
    server = fleet.server(aof_use_rdb_preamble=preamble, appendonly="yes" if " " in way else "no")
    r = server.client()
    r.set("out", "text")
    names = fill(r, "s", "out", 2, clock.now(), options=("TRIES", 3, "BACKOFF", HOUR, 3, 10 * HOUR))
    wait_until(lambda: server.tw()["held"] == 2)
    expected = [(1, clock.now() + HOUR), (0, clock.now() + HOUR)]
    for _ in range(3):
        if way == "replica":
            replica = fleet.server(replicaof=server)
            wait_replica_in_sync(server, replica)
            server.kill()
            server = replica
            server.client().execute_command("REPLICAOF", "NO", "ONE")
        else:
            rewrite(server) if " " in way else r.save()
            server.kill()
            server.start()
        r = server.client()
        wait_until(lambda: server.tw()["held"] == 2)
        found = [task(r, "s", name) for name in names]
        assert [(one["attempt"], one["next"]) for one in found] == expected
    clock.push_monotonic(HOUR)
    wait_until(lambda: task(r, "s", "t0")["attempt"] == 2)
    assert task(r, "s", "t0")["next"] == clock.now() + 3 * HOUR
    r.delete("out")
    clock.push_monotonic(3 * HOUR)
    wait_delivered(r, "out", 2)


@pytest.mark.parametrize("way", ["snapshot", "rewritten yes", "rewritten no", "replica", "restore", "copy"])
def test_a_refused_task_is_held_from_the_start_on(fleet, clock, way):
    """In a pause no tick holds it again. So the file does, with the task behind it."""
    preamble = way.split()[-1] if " " in way else "yes"
    server = fleet.server(aof_use_rdb_preamble=preamble, appendonly="yes" if " " in way else "no")
    r, due = server.client(), clock.now()
    r.set("out", "text")
    names = fill(r, "s", "out", 2, due, options=("TRIES", 3, "BACKOFF", HOUR, 1, HOUR))
    wait_until(lambda: server.tw()["held"] == 2)
    r.execute_command("TW.PAUSE", "s")
    if way == "replica":
        server = fleet.server(replicaof=server)
        wait_replica_in_sync(fleet.servers[0], server)
    elif way == "restore":
        r.restore("s", 0, r.dump("s"), replace=True)
    elif way == "copy":
        r.copy("s", "t")
        r.rename("t", "s")
    else:
        rewrite(server) if " " in way else r.save()
        server.kill()
        server.start()
    r = server.client()
    found = [task(r, "s", name) for name in names]
    assert [(one["state"], one["due"], one["next"]) for one in found] == [("waiting", due, due + HOUR)] * 2
    info = as_map(r.execute_command("TW.INFO", "s"))
    assert [(one["held"], one["ready"], one["waiting"]) for one in (info, server.tw())] == [(2, 0, 2)] * 2
    if way == "replica":
        r.execute_command("REPLICAOF", "NO", "ONE")
    r.delete("out")
    r.execute_command("TW.RESUME", "s")
    clock.push_monotonic(HOUR)
    wait_delivered(r, "out", 2)


def test_a_next_that_another_clock_has_set_is_no_further_than_twice_the_wait(fleet, clock):
    """With jitter a wait may be twice as long as without."""
    server = fleet.server()
    r = server.client()
    r.set("out", "text")
    add(r, "s", "out", "a", clock.now() - 100 * HOUR, "BACKOFF", HOUR, 3, 10 * HOUR)
    wait_until(lambda: task(r, "s", "a")["attempt"] == 1)
    r.save()
    server.kill()
    clock.push(-10 * HOUR)
    server.start()
    r = server.client()
    wait_until(lambda: server.tw()["held"] == 1)
    assert task(r, "s", "a")["next"] == clock.now() + 2 * HOUR


@pytest.mark.parametrize("way", ["log", "rewritten yes", "rewritten no", "replica"])
def test_a_refused_task_keeps_its_turn_after_a_crash(fleet, clock, way):
    """Only its first refusal is logged. The task is never too late, stands for the same periods, and is the
    first of its time as before."""
    servers = [fleet.server(aof_use_rdb_preamble=way.split()[-1] if " " in way else "yes", appendonly="yes")]
    servers += [fleet.server(replicaof=servers[0], appendonly="yes")] if way == "replica" else []
    r, due, names = servers[0].client(), clock.now(), ("late", "beat", "t0")
    tries = ("TRIES", 15, "BACKOFF", HOUR, 1, HOUR)
    r.set("out", "text")
    add(r, "s", "out", "late", due, "MAXLATE", 1000, *tries)
    add(r, "s", "out", "beat", due, "EVERY", HOUR, "MAXLEN", 1000, *tries)  # It waits behind no other task.
    fill(r, "s", "out", 2, due, options=tries)
    wait_until(lambda: [task(r, "s", name)["attempt"] for name in names] == [1, 1, 1])
    logged = os.path.getsize(aof_path(servers[0]))
    clock.push_monotonic(HOUR)
    wait_until(lambda: [task(r, "s", name)["attempt"] for name in names] == [2, 2, 2])
    assert os.path.getsize(aof_path(servers[0])) == logged
    if way.startswith("rewritten"):
        rewrite(servers[0])
    elif way == "replica":
        wait_replica_in_sync(*servers)
    servers[0].kill()
    clock.push(20 * HOUR)
    server = servers[-1]
    if way == "replica":
        server.client().execute_command("REPLICAOF", "NO", "ONE")
    else:
        server.start()
    r = server.client()
    wait_until(lambda: server.tw()["held"] == 4)
    r.delete("out")
    assert r.execute_command("TW.PROMOTE", "s", "ALL") == 4
    wait_delivered(r, "out", 5)
    found = [(fields["tw.id"], int(fields.get("tw.missed-periods", 0))) for _, fields in r.xrange("out")]
    assert sorted(found) == [("beat", 0), ("beat", 19), ("late", 0), ("t0", 0), ("t1", 0)]
    assert server.tw()["dropped"] == 0 and found.index(("t0", 0)) < found.index(("t1", 0))


def test_aof_rewrite_under_load(fleet):
    """Adds, cancels and deliveries go on while the child writes. No delivery comes twice or is lost."""
    server = fleet.server(aof_use_rdb_preamble="no", appendonly="yes")
    r, start = server.client(), now_ms() + 300
    fill(r, "still", "never", 30000, start + HOUR)
    names = fill(r, "s", "out", 5000, start, step=0.4)
    r.bgrewriteaof()
    names += fill(r, "s", "out", 2000, start + 2000, first=5000, step=0.4)
    wait_delivered(r, "out", 2000)
    rewrite(server)
    server.kill()
    server.start()
    r = server.client()
    assert wait_delivered(r, "out", 7000) == names
    assert (tasks(r, "still"), r.exists("s")) == ({f"t{i}": start + HOUR for i in range(30000)}, 0)


def test_a_task_whose_delivery_was_cut_off_is_pending_again(fleet, clock):
    """The power fails while the last transaction is written, at any byte of it."""
    server = fleet.server(appendonly="yes")
    r, due = server.client(), clock.now() + 1500
    names = fill(r, "s", "out", 7, due)
    add(r, "s", "out", "beat", due, "EVERY", HOUR, "TIMES", 5)
    clock.reach(due)
    wait_delivered(r, "out", 8)
    server.kill()
    path, kept = aof_path(server), os.path.join(fleet.folder, "kept")
    begin, end, _ = last_transaction(path, b"TW.FIRED")
    shutil.copy(path, kept)
    server.options.update(HELD_BACK)
    for cut in [begin, begin + 1, *random.Random(4).sample(range(begin + 2, end - 1), 8), end - 1]:
        shutil.copy(kept, path)
        os.truncate(path, cut)
        server.start()
        r = server.client()
        assert (r.exists("out"), sorted(tasks(r, "s"))) == (0, sorted([*names, "beat"])), cut
        assert task(r, "s", "beat")["times"] == 5
        server.kill()
    del server.options["maxmemory"]
    server.start()
    r = server.client()
    assert wait_delivered(r, "out", 8) == [*names, "beat"]
    assert tasks(r, "s") == {"beat": due + HOUR}


def test_the_append_only_file_says_absolute_times_alone(fleet):
    server = fleet.server(appendonly="yes")
    r = server.client()
    before = now_ms()
    made = r.execute_command("TW.SEND", "s", "out", "*", "IN", 5000000, "PAYLOAD", "f", "v")
    r.execute_command("TW.SEND", "s", "out", "a", "IN", 5000000, "EVERY", 777, "PAYLOAD", "f", "v")
    r.execute_command("TW.MOVE", "s", "a", "IN", 6000000)
    r.eval("redis.call('TW.SEND', KEYS[1], KEYS[2], '*', 'IN', 5000000, 'PAYLOAD', 'f', 'v')", 2, "s", "out")
    known = tasks(r, "s")
    after = now_ms()
    server.kill()
    words = [words for _, words in aof_commands(aof_path(server)) if words[0].upper().startswith(b"TW.")]
    assert [one[0] for one in words] == [b"TW.FIRED"] * 4
    assert [fired_form(one) for one in words] == ["PUT", "PUT", "CHANGES", "PUT"]
    sent = [logged_task(one) for one in words[:2] + words[3:]]
    assert sent[0]["id"] == made and {one["id"] for one in sent} == set(known)
    for one in sent:
        assert before + 5000000 <= one["due"] <= after + 6000000, one
    server.options.update(HELD_BACK)
    server.start()
    assert tasks(server.client(), "s") == known


SERIES = ("EVERY", HOUR)
OPTIONS = [(), SERIES, (*SERIES, "TIMES", 7), (*SERIES, "MISSED", "burst"), (*SERIES, "MISSED", "skip"),
           (*SERIES, "MISSED", "coalesce"), ("MAXLATE", 0), ("TRIES", 9), ("BACKOFF", 300, "1.25", 7000),
           ("JITTER", 0), ("JITTER", 100),
           (*SERIES, "TIMES", 1, "MISSED", "skip", "MAXLATE", 5, "TRIES", 1, "BACKOFF", 1, 100, 2, "JITTER", 3)]
OF_TARGETS = [("LIST", ), ("LIST", "LEFT"), ("STREAM", ), ("MAXLEN", 1000), ("MAXLEN", 2**63 - 1, "TRIES", 15)]


def test_a_file_and_a_replica_have_each_option_of_a_put_and_a_send(fleet):
    server = fleet.server(appendonly="yes")
    replica, r = fleet.server(replicaof=server), server.client()
    for i, words in enumerate(OPTIONS):
        r.execute_command("TW.PUT", "s", f"put {i}", "IN", HOUR + i, *words, "PAYLOAD", "", "x" * 300, i)
    for i, words in enumerate(OPTIONS + OF_TARGETS):
        payload = ("v", ) if "LIST" in words else ("f", "", "", "x" * 300)
        r.execute_command("TW.SEND", "s", f"out {i % 3}", f"sent {i}", "IN", HOUR, *words, "PAYLOAD", *payload)
    expected = looked(r), digest(server)
    assert len(expected[0]) == 2 * len(OPTIONS) + len(OF_TARGETS)
    wait_replica_in_sync(server, replica)
    assert (looked(replica.client()), digest(replica)) == expected
    server.restart()
    assert (looked(server.client()), digest(server)) == expected
    logged = [words for _, words in aof_commands(aof_path(server)) if words[0] != b"SELECT"]
    assert {fired_form(words) for words in logged} == {"PUT"}


def looked(client):
    return {name: {**task(client, "s", name), "remaining": 0} for name in tasks(client, "s")}


def test_the_append_only_file_holds_delivery_and_removal_in_one_transaction(fleet):
    """Each XADD and RPUSH of a tick lies between a MULTI and its EXEC, before the TW.FIRED that removes the
    tasks."""
    server = fleet.server(appendonly="yes")
    r, due = server.client(), now_ms() + 400
    names = fill(r, "s", "out", 500, due, step=1)
    for i in range(20):
        add(r, f"s{i % 3}", f"list{i % 2}", f"l{i}", due + i * 10, "LIST", payload=("v",))
    wait_delivered(r, "out", 500)
    wait_until(lambda: server.tw()["tasks"] == 0)
    server.kill()
    found = transactions(aof_commands(aof_path(server)))
    ticks = [one for one in found if any(words[0].upper() == b"XADD" for words in one)]
    assert ticks
    for one in found:
        delivered_here = [words for words in one if words[0].upper() in (b"XADD", b"RPUSH")]
        removed_here = [words for words in one if fired_form(words) not in (None, "PUT")]
        assert bool(delivered_here) == bool(removed_here), one
        for words in delivered_here:
            assert one.index(words) < max(i for i, other in enumerate(one) if other in removed_here)
            assert words[0].upper() != b"XADD" or b"*" not in words, words
    entries = [words for one in ticks for words in one if words[0].upper() == b"XADD"]
    assert [words[words.index(b"tw.id") + 1].decode() for words in entries] == names


def test_a_transaction_with_a_task_is_one_in_the_file(fleet):
    server = fleet.server(appendonly="yes")
    with server.client().pipeline(transaction=True) as both:
        both.set("order:42", "unpaid")
        both.execute_command("TW.SEND", "s", "out", "order:42", "IN", HOUR, "PAYLOAD", "f", "v")
        both.execute()
    server.kill()
    found = transactions(aof_commands(aof_path(server)))
    names = [[words[0].upper() for words in one if words[0].upper() != b"SELECT"]
             for one in found]  # Redis 8 has a SELECT here
    assert [one for one in names if len(one) > 1] == [[b"SET", b"TW.FIRED"]]


# Restarts

@pytest.mark.parametrize("end", ["kill after BGSAVE", "orderly"])
def test_rdb_restart(fleet, end):
    server = fleet.server(save="3600 1000000")
    r, due = server.client(), now_ms() + HOUR
    variety(r, due)
    fill(server.client(db=3), "s", "out", 1000, due)
    before, sequence, fingerprint = everything(r, "s"), order(r, "s"), digest(server)
    if end == "orderly":
        server.restart()
    else:
        r.bgsave()
        wait_until(lambda: server.info("persistence")["rdb_bgsave_in_progress"] == 0)
        server.kill()
        server.start()
    r = server.client()
    assert (everything(r, "s"), order(r, "s"), digest(server)) == (before, sequence, fingerprint)
    assert server.tw()["queues"] == 2


def test_downtime_counts_and_each_task_says_what_becomes_of_it(fleet, clock):
    """MISSED and MAXLATE, after the server was down while the tasks became due."""
    server = fleet.server(appendonly="yes")
    r, due = server.client(), clock.now() + 1500
    add(r, "s", "fire", "fire", due)
    add(r, "s", "drop", "drop", due, "MAXLATE", 100)
    add(r, "s", "drop", "drop-later", due, "MAXLATE", HOUR)
    add(r, "s", "fire-every", "fire-every", due, "EVERY", 100, "TIMES", 50, "MISSED", "burst")
    add(r, "s", "drop-every", "drop-every", due, "EVERY", 100, "TIMES", 5, "MAXLATE", 50, "MISSED", "burst")
    add(r, "s", "coalesce-every", "coalesce-every", due, "EVERY", 1000, "TIMES", 2, "MISSED", "coalesce")
    server.kill()
    clock.reach(due + 2500)
    started = clock.now()
    server.start()
    r = server.client()
    wait_until(lambda: r.exists("s") == 0, message=lambda: str(tasks(r, "s")))

    def dues(stream):
        return [int(fields["tw.due"]) for _, fields in r.xrange(stream)]

    assert dues("fire") == [due]
    assert delivered(r, "drop") == ["drop-later"]
    assert dues("fire-every") == [due + 100 * i for i in range(50)]
    after = dues("drop-every")
    assert len(after) == 5 and all((one - due) % 100 == 0 and one >= started - 50 for one in after), after
    first, second = dues("coalesce-every")
    assert (first - due) % 1000 == (second - due) % 1000 == 0
    assert first == due and second > started - 1000
    counts = server.tw()
    assert counts["dropped"] >= 20 and counts["coalesced"] >= 2, counts


def test_late_tasks_keep_their_order_over_restarts(fleet, clock):
    """Late tasks that could not be delivered yet are saved with the other tasks, two times in a row."""
    server = fleet.server(appendonly="yes")
    r, due = server.client(), clock.now() + 3000
    names, pipe = [f"t{i * 113 % 503}" for i in range(500)], r.pipeline(transaction=False)
    for i, name in enumerate(names):
        add(pipe, "s", "out", name, due + i // 10)
    pipe.execute()
    r.config_set("maxmemory", 1)
    server.options.update(HELD_BACK)
    clock.reach(due + 50)
    wait_until(lambda: server.tw()["late"] == 500)
    for preamble in ("yes", "no"):
        r = server.client()
        r.config_set("aof-use-rdb-preamble", preamble)
        rewrite(server)
        server.kill()
        server.start()
        wait_until(lambda: server.tw()["late"] == 500)
        assert sorted(tasks(server.client(), "s")) == sorted(names)
    server.client().config_set("maxmemory", 0)
    assert wait_delivered(server.client(), "out", 500) == names


def test_a_server_without_aof_warns_of_it(fleet):
    plain, snapshots, aof = fleet.server(), fleet.server(save="3600 1"), fleet.server(appendonly="yes")
    assert [one.tw()["durability"] for one in (plain, snapshots, aof)] == ["none", "rdb-only", "aof"]
    assert aof.tw()["warning"] == "none"
    for one in (plain, snapshots):
        assert "appendonly" in one.tw()["warning"] and "appendonly" in one.log(), one.tw()
    assert not any("<tickwheel>" in line and "appendonly" in line for line in aof.log().splitlines())
    snapshots.client().config_set("appendonly", "yes")
    wait_until(lambda: (snapshots.tw()["durability"], snapshots.tw()["warning"]) == ("aof", "none"))


# Values

@pytest.fixture
def server(fleet):
    """A server for corrupt values. The server itself requests as much memory as a corrupt length says, and
    accepts it if it gets none. An option tells AddressSanitizer, where it is used, that this is no error. As
    it warns nevertheless, its messages go to a file and not to the log."""
    said = os.path.join(fleet.folder, "asan")
    options = (os.environ.get("ASAN_OPTIONS"), "allocator_may_return_null=1", f"log_path={said}")
    yield fleet.server(env={"ASAN_OPTIONS": ":".join(filter(None, options))})
    for path in glob.glob(f"{said}.*"):
        with open(path, encoding="utf-8", errors="replace") as file:
            assert "ERROR" not in (text := file.read()), text


def raw(server):
    """Returns a client whose replies are bytes."""
    return server.client(decode_responses=False)


def specimen(r):
    """Makes a queue with a few tasks of each kind, small enough to try each byte of its value. The value
    is not compressed, so each byte counts."""
    r.config_set("rdbcompression", "no")
    due = now_ms() + HOUR
    for i in range(4):
        add(r, "s", "out", f"t{i}", due + i)
    add(r, "s", "list", "l", due, "LIST", payload=("value",))
    add(r, "s", "out", "beat", due, "EVERY", 1000, "TIMES", 7, "MAXLEN", 99, "MAXLATE", 5)
    add(r, "s", "other", "long", due + HOUR, payload=("n", "abcdefghij" * 10))


def restore_or_refuse(server, client, value):
    """Runs RESTORE with a value that may be corrupt. Either the server refuses it, or it makes a usable
    queue. Returns whether the server refused it."""
    try:
        client.restore("c", 0, value)
    except redis.ResponseError as error:
        assert "Bad data format" in str(error) or "checksum" in str(error), error
        refused = True
    else:
        refused = False
        if client.type("c") == b"tickwheel":
            look_and_cancel(client)
        client.delete("c", "c2")
    assert server.alive()
    return refused


def look_and_cancel(client):
    """Reads the queue in a transaction, as a changed task may be due, and gone a moment later."""
    with client.pipeline(transaction=True) as both:
        both.execute_command("TW.RANGE", "c", "-", "+")
        both.execute_command("TW.LEN", "c")
        both.execute_command("TW.SCAN", "c", 0, "COUNT", 20000)
        both.dump("c")
        waiting, count, (_, rows), dump = both.execute()
    names = [name for name, *_ in rows]
    assert {name for name, *_ in waiting} <= set(names)
    assert count == len(names)
    assert names or not client.exists("c")  # all tasks were due, and are gone
    client.execute_command("TW.GET", "c", *(names or ["none"]))
    if dump is not None:
        client.restore("c2", 0, dump)
    client.execute_command("TW.CANCEL", "c", *(names or ["none"])[:1])


def check_untouched(server, client, before):
    assert server.tw()["queues"] == 1, server.tw()
    assert client.dump("s") == before


def a_dump_and_chance(server):
    """Returns the random numbers with which a test corrupts a value, a client that does not decode replies,
    and the value."""
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    specimen(server.client())
    r = raw(server)
    return random.Random(seed), r, r.dump("s")


def test_corrupt_values_are_refused(server):
    """Flips one to three bits of a DUMP, and corrects its checksum, 600 times."""
    chance, r, good = a_dump_and_chance(server)
    refusals = 0
    for _ in range(600):
        body = bytearray(good[:-8])
        for _ in range(chance.randint(1, 3)):
            body[chance.randrange(1, len(body) - 2)] ^= 1 << chance.randrange(8)
        refusals += restore_or_refuse(server, r, with_checksum(bytes(body)))
    check_untouched(server, r, good)
    assert refusals >= 100  # Some flipped bits are in payloads, and make another valid payload.


def test_corrupt_values_with_bytes_left_out_put_in_or_replaced(server):
    chance, r, good = a_dump_and_chance(server)
    for _ in range(600):
        body = bytearray(good[:-10])
        at, size = chance.randrange(1, len(body)), chance.randint(0, 9)
        with_what = chance.choice([b"", b"\x00", b"\xff" * 9, b"\x81" + b"\xff" * 8, chance.randbytes(size),
                                   good[1:40]])
        body[at:at + size] = with_what
        restore_or_refuse(server, r, with_checksum(bytes(body) + good[-10:-8]))
    check_untouched(server, r, good)


def test_truncated_values_are_refused_at_each_byte(server):
    specimen(server.client())
    r = raw(server)
    good = r.dump("s")
    for size in range(len(good) - 21):  # The ten bytes after the value could look like its last ten bytes.
        assert restore_or_refuse(server, r, with_checksum(good[:size] + good[-10:-8])), size
    check_untouched(server, r, good)


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out + bytes([number]))


LAST, CENTURY = 253402300799999, 3155760000000


@pytest.mark.parametrize("name, words, most, value", [
    ("the time", ("AT", LAST), LAST, LAST + 1),
    ("every", ("AT", 5000000000000, "EVERY", CENTURY), CENTURY, CENTURY + 1),
    ("max-late", ("AT", 5000000000000, "MAXLATE", CENTURY), CENTURY + 1, CENTURY + 2)])
def test_a_number_out_of_its_range_is_refused_and_named(server, name, words, most, value):
    """As by a version in which the ranges were wider. The file has a limit plus 1."""
    r = raw(server)
    r.execute_command("TW.SEND", "s", "out", "a", *words, "PAYLOAD", "f", "v")
    body = r.dump("s")[:-8]
    assert body.count(varint(most)) == 1
    with pytest.raises(redis.ResponseError, match="Bad data format"):
        r.restore("c", 0, with_checksum(body.replace(varint(most), varint(value))))
    assert f"tickwheel: a queue is damaged: {name} is {value}: expected at most {most}" in server.tail()


@pytest.mark.parametrize("behind", [False, True])
def test_a_lease_without_a_token_is_refused(server, behind):
    """No worker could end such an attempt. The zero takes as many bytes as the token."""
    r = raw(server)
    r.execute_command("TW.PUT", "s", "a", "AT", 1000, "PAYLOAD", "v")
    token = varint(int(r.execute_command("TW.TAKE", 1, "s", "LEASE", HOUR)[0][2], 16))
    if behind:
        r.execute_command("TW.PUT", "s", "a", "AT", 1000, "PAYLOAD", "new")
    body = r.dump("s")[:-8]
    assert body.count(token) == 1
    r.restore("c", 0, with_checksum(body))
    with pytest.raises(redis.ResponseError, match="Bad data format"):
        zero = b"\x80" * (len(token) - 1) + b"\x00"
        r.restore("c", 0, with_checksum(body.replace(token, zero)), replace=True)
    assert "tickwheel: a queue is damaged" in server.tail()
    assert task(server.client(), "c", "a")["state"] == "leased"


def test_values_of_a_version_to_come_are_refused(server):
    """The version is in the low bits of the type's number, which follows the byte with the kind of value."""
    specimen(server.client())
    r = raw(server)
    good = r.dump("s")
    assert good[1] == 0x81, "a length of 64 bits is the type's number"
    number = struct.unpack(">Q", good[2:10])[0]
    for version in {(number & 1023) + 1, 0, 1023} - {number & 1023}:
        value = good[:2] + struct.pack(">Q", number & ~1023 | version) + good[10:-8]
        assert restore_or_refuse(server, r, with_checksum(value)), version
    assert not restore_or_refuse(server, r, with_checksum(good[:-8]))
    check_untouched(server, r, good)


def test_a_corrupt_rdb_file_ends_the_start_with_a_message(fleet):
    """This is Redis' own rule for every type: rather no server than a server with other data. The server
    exits, and does not crash."""
    server = fleet.server(save="3600 1000000", rdbchecksum="no")
    specimen(server.client())
    server.stop()
    path = os.path.join(server.folder, "dump.rdb")
    with open(path, "rb") as file:
        good = file.read()
    for size in (len(good) // 3, len(good) // 2, len(good) * 2 // 3):
        with open(path, "wb") as file:
            file.write(good[:size])
        with pytest.raises(Broken, match="exit status 1"):
            server.start()
        assert server.trouble() is None
    with open(path, "wb") as file:
        file.write(good)
    server.start()
    assert server.tw()["tasks"] == 7


# Files of this format, and of other formats

GOLDEN_FILES = "v1.rdb", "v1.aof", "v1.rewritten.aof"
GOLDEN_REST_MS = 9997  # until the next try of the target


def golden_server(fleet, name, clock, *words):
    """Starts a server with a copy of a golden file."""
    files = {"dbfilename": name} if name.endswith(".rdb") else {
        "appendonly": "yes", "appendfilename": name, "aof_use_rdb_preamble": "no"}
    server = fleet.server(start=False, module_args=words, **clock.options, **files)
    shutil.copy(os.path.join(GOLDEN, name), server.folder)
    server.start()
    return server


def write_again(server, name):
    """Lets this version write the file, but for the log, which has its bytes for ever."""
    if name == "v1.rdb":
        server.client().save()
    elif name == "v1.rewritten.aof":
        rewrite(server)


def golden_text(name):
    with open(os.path.join(GOLDEN, name), encoding="utf-8") as file:
        return file.read()


def golden_clock(fleet):
    """The clock stands at the time at which the golden files were made. Returns it and the digests."""
    made, found = golden_text("v1.digests").split("\n", 1)
    clock = WallClock(fleet.folder)
    clock.stand()
    clock.push(int(made) - clock.now())
    return clock, found


@pytest.mark.parametrize("name", GOLDEN_FILES)
def test_golden_files_load(fleet, name):
    """The server has exactly the tasks that golden/make put in, with each number of them."""
    clock, found = golden_clock(fleet)
    server = golden_server(fleet, name, clock, "deliver", "no")
    described = golden_text("v1.txt")
    assert describe(server) == described
    assert digests(server) == found
    write_again(server, name)
    server.restart()
    assert describe(server) == described
    assert digests(server) == found


@pytest.mark.parametrize("name", GOLDEN_FILES)
def test_golden_files_load_long_after_they_were_made(fleet, name):
    clock = WallClock(fleet.folder)
    clock.push(30 * 365 * 24 * HOUR)
    assert describe(golden_server(fleet, name, clock, "deliver", "no")) == golden_text("v1.txt")


@pytest.mark.parametrize("name", GOLDEN_FILES)
def test_the_tasks_of_a_golden_file_go_on(fleet, name):
    """The next try of a target and its wait are in the file, here three times as long after each refusal. So is
    the order of tasks that are ready."""
    clock, _ = golden_clock(fleet)
    server = golden_server(fleet, name, clock)
    write_again(server, name)
    server.restart()
    client = server.client()
    for tries, wait_ms in ((2, GOLDEN_REST_MS), (3, 45000), (4, 100000)):
        wait_until(lambda: int(task(client, "tried", "once")["attempt"]) == tries)
        assert int(task(client, "tried", "once")["next"]) == clock.now() + wait_ms
        clock.elapse(wait_ms)
    wait_ready(client, "unbegun", 2)
    assert [job.id for job in take(client, "unbegun", options=("COUNT", 2))] == ["first", "second"]


def test_each_form_is_written_as_it_is_read(fleet):
    """The story of the golden files again. So this version writes each form with all its numbers."""
    loader = importlib.machinery.SourceFileLoader("make", os.path.join(GOLDEN, "make"))
    make = importlib.util.module_from_spec(importlib.util.spec_from_loader("make", loader))
    loader.exec_module(make)
    server, clock = make.start_server(fleet)
    make.fill_server(server, clock)
    described, found = describe(server), digests(server)
    texts = [re.sub(r"'next': \d+", "", text) for text in (described, golden_text("v1.txt"))]
    assert texts[0] == texts[1]  # but for jitter
    server.module_args = ("deliver", "no")
    server.restart()
    assert describe(server) == described
    assert digests(server) == found


def source_of(name):
    with open(os.path.join(ROOT, "src/redis", name), encoding="utf-8") as file:
        return file.read()


def test_golden_files_have_each_form_that_the_module_writes():
    """So this version reads whatever it has written. A new form needs a new golden file."""
    forms = set(re.findall(r"^    \{\"([A-Z]+)\", ", source_of("commands/fired.c"), re.MULTILINE))
    [kinds] = re.findall(r"^enum \{ (OF_ATTEMPT = 1, .*) \};", source_of("queues/change.c"), re.MULTILINE)
    assert len(forms) >= 7 and len(kinds.split(", ")) >= 6
    logged = [words for _, words in aof_commands(os.path.join(GOLDEN, "v1.aof")) if words[0].startswith(b"TW.")]
    found = {fired_form(words) or words[0].decode() for words in logged}
    assert found == forms | {"TW.LOAD"}
    changes = [kind for words in logged if fired_form(words) == "CHANGES" for kind in logged_kinds(words[2])]
    assert set(changes) == set(range(1, 1 + len(kinds.split(", "))))


# The queue `expires`, with one task, as it was saved before format 1: with the numbers 1, 2 and 3. The number
# is in the low bits of the type's number, and in the chunk, which is also an argument of TW.LOAD.
CHUNK = "{:02x}0000000000036f757480e8a88fb377000161050201660176"
BEFORE = {1: "81b62724c2179e94010201" + "0519" + CHUNK.format(1) + "00",
          2: "81b62724c2179e940202010200" + "0519" + CHUNK.format(2) + "00",
          3: "81b62724c2179e940302010200" + "0519" + CHUNK.format(3) + "00"}
REFUSED = "format is {}: expected 1; the version that wrote it can read it"
REFUSED_IN_LOG = REFUSED.replace(":", " in the queue '{}':")


@pytest.mark.parametrize("number", BEFORE)
def test_a_value_from_before_format_1_is_refused(server, number):
    specimen(server.client())
    r = raw(server)
    before = r.dump("s")
    value = b"\x07" + bytes.fromhex(BEFORE[number]) + before[-10:-8]
    assert restore_or_refuse(server, r, with_checksum(value))
    wait_until(lambda: "tickwheel: " + REFUSED.format(0) in server.tail())
    check_untouched(server, r, before)


@pytest.mark.parametrize("number", BEFORE)
def test_a_snapshot_from_before_format_1_ends_the_start_and_stays(fleet, number):
    server = fleet.server(start=False)
    path = os.path.join(server.folder, "dump.rdb")
    snapshot = b"REDIS0010\xfe\x00\x07\x07expires" + bytes.fromhex(BEFORE[number]) + b"\xff" + bytes(8)
    with open(path, "wb") as file:
        file.write(snapshot)
    with pytest.raises(Broken, match="did not start"):
        server.start()
    assert "tickwheel: " + REFUSED.format(0) in server.tail()
    assert server.trouble() is None
    with open(path, "rb") as file:
        assert file.read() == snapshot


@pytest.mark.parametrize("name", ["s", "missing", "text"])
@pytest.mark.parametrize("number, format", [(1, 0), (2, 0), (3, 0), (102, 2)])
@pytest.mark.parametrize("start, form, value", [
    (b"*3\r\n$7\r\nTW.LOAD\r\n", b"", b""),
    (b"*4\r\n$8\r\nTW.FIRED\r\n", b"", b"$1\r\nv\r\n"),
    (b"*5\r\n$8\r\nTW.FIRED\r\n", b"$5\r\nRENEW\r\n", b"$1\r\nv\r\n"),
    (b"*3\r\n$8\r\nTW.FIRED\r\n", b"", b"")], ids=["loaded", "put", "renewed", "changed"])
def test_a_chunk_of_another_format_in_an_append_only_file_ends_the_start(fleet, name, number, format, start,
                                                                         form, value):
    """The server would go on without these tasks, and the next rewrite would lose them. So it does not matter
    which key they are for."""
    server = fleet.server(aof_use_rdb_preamble="no", appendonly="yes")
    specimen(server.client())
    server.client().set("text", "t")
    server.stop()
    with open(aof_path(server), "ab") as file:
        file.write(start + b"$%d\r\n%s\r\n" % (len(name), name.encode()) + form + b"$25\r\n" +
                   bytes.fromhex(CHUNK.format(number)) + b"\r\n" + value)
    with open(aof_path(server), "rb") as file:
        before = file.read()
    server.spawn()  # It may reply before it ends, so start() is of no use.
    assert server.reap() == 1
    assert "tickwheel: " + REFUSED_IN_LOG.format(format, name) in server.tail()
    assert server.trouble() is None
    with open(aof_path(server), "rb") as file:
        assert file.read() == before


# A task `b` for workers that is due at 1000 ms, and one that waits for 2000 ms since KEEPDUE has let it, as the
# log has them.
LOGGED = [bytes.fromhex("65" "00" "03000000" "0000000065" + rest + "0162") for rest in (
    "e80708", "d00f0a" "00e8070000000000")]


@pytest.mark.parametrize("cut", [lambda chunk: chunk[:-1], lambda chunk: chunk[:1] + b"\xff" * 9 + chunk[1:]],
                         ids=["short", "garbage"])
@pytest.mark.parametrize("form, at, kind", [(None, 2, "base"), ("PUT", 2, "incr"), ("RENEW", 3, "incr"),
                                            ("CHANGES", 2, "incr")], ids=["loaded", "put", "renewed", "moved"])
def test_a_damaged_chunk_in_an_append_only_file_ends_the_start(fleet, form, at, kind, cut):
    """For the same reason. Without the damage the server has all its tasks."""
    server = fleet.server(aof_use_rdb_preamble="no", appendonly="yes")
    specimen(server.client())
    rewrite(server)
    for value in ("old", "new"):
        server.client().execute_command("TW.PUT", "s", "put", "IN", HOUR, "KEEPDUE", "PAYLOAD", value)
    server.client().execute_command("TW.MOVE", "s", "put", "IN", 2 * HOUR)
    before = digest(server)
    server.stop()
    path = aof_path(server, kind)
    with open(path, "rb") as file:
        good = file.read()
    [chunk] = [words[at] for _, words in aof_commands(path)
               if words[0] in (b"TW.LOAD", b"TW.FIRED") and fired_form(words) == form]
    damaged = b"$%d\r\n%s\r\n" % (len(cut(chunk)), cut(chunk))
    with open(path, "wb") as file:
        file.write(good.replace(b"$%d\r\n%s\r\n" % (len(chunk), chunk), damaged))
    server.spawn()
    assert server.reap() == 1
    assert ("tickwheel: a chunk of the queue 's' is damaged: its bytes are not what was written; take the file "
            "from a backup or a replica") in server.tail()
    assert server.trouble() is None
    with open(path, "wb") as file:
        file.write(good)
    server.start()
    assert digest(server) == before


def log_outcomes(server, *outcomes):
    """Adds outcomes to the append-only file of a server that is stopped, and starts it."""
    with open(aof_path(server), "ab") as file:
        for words in outcomes:
            words = [b"TW.FIRED", *words.split(b" ")]
            file.write(b"*%d\r\n" % len(words))
            file.writelines(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
    server.start()


BACKUP = "take the file from a backup or a replica"
TWO = "at least 2, a queue and an outcome; " + BACKUP
UNREADABLE = {
    b"TW.FIRED s LATER x": "the outcome is 'LATER': expected ONCE",
    b"TW.FIRED s LATER a 5 1": "the outcome is 'LATER': expected ONCE",
    b"TW.FIRED s NEXT a 5": "the outcome is 'NEXT': expected ONCE",
    b"TW.FIRED s CHANGES CHUNK": "the outcome is 'CHANGES': expected ONCE",
    b"TW.FIRED s e": "a chunk of the queue 's' is damaged",
    b"TW.FIRED s ON": "the outcome is 'ON': expected ONCE",
    b"TW.FIRED s ONCE": "the outcome is 'ONCE': expected ONCE",
    b"TW.FIRED s NOTHING": "the outcome is 'NOTHING': expected ONCE",
    b"TW.FIRED s NEXT a x 1": "the outcome is NEXT with due 'x' and times '1': expected 0 to 253402300799999 "
                              "and -1, or at least 1; " + BACKUP,
    b"TW.FIRED s NEXT a 5 0": "the outcome is NEXT with due '5' and times '0': expected ",
    b"TW.FIRED s": "the number of arguments of TW.FIRED is 1: expected " + TWO,
    b"TW.FIRED": "the number of arguments of TW.FIRED is 0: expected " + TWO,
    b"TW.LOAD s CHUNK more": "the number of arguments of TW.LOAD is 3: expected 2, a queue and a chunk; take",
    b"TW.LOAD s": "the number of arguments of TW.LOAD is 1: expected ",
    b"TW.LOAD": "the number of arguments of TW.LOAD is 0: expected ",
    b"TW.FIRED text CHUNK v": "a chunk has the key 'text' of another type: expected a queue, or none; take",
    b"TW.LOAD text CHUNK": "a chunk has the key 'text' of another type: expected a queue, or none; " + BACKUP,
}


def with_a_text(server):
    """Files a task, and sets a key of another type. Returns the chunk of the task in the rewritten file."""
    r = server.client()
    r.set("text", "here")
    add(r, "s", "out", "a", now_ms() + HOUR)
    rewrite(server)
    [chunk] = [words[2] for _, words in aof_commands(aof_path(server, "base")) if words[0] == b"TW.LOAD"]
    return chunk


@pytest.mark.parametrize("words", UNREADABLE, ids=lambda words: words.decode())
def test_a_command_of_an_append_only_file_that_cannot_be_read_ends_the_start(fleet, words):
    """A later version may file tasks so, or the file is damaged. The next rewrite would take tasks from it."""
    server = fleet.server(aof_use_rdb_preamble="no", appendonly="yes")
    parts = [with_a_text(server) if word == b"CHUNK" else word for word in [b"CHUNK", *words.split()]][1:]
    server.kill()
    path = aof_path(server)
    with open(path, "rb") as file:
        good = file.read()
    with open(path, "ab") as file:
        file.write(Raw.encoded(parts))
    server.spawn()
    assert server.reap() == 1
    assert f"tickwheel: {UNREADABLE[words]}" in server.tail()
    with open(path, "wb") as file:
        file.write(good)
    server.start()
    assert task(server.client(), "s", "a") is not None


@contextlib.contextmanager
def own_primary(replica):
    """Makes a server a replica of this process, and yields the connection, on which the replica reads its
    stream. The data set that it gets has a text, and no tasks."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        door.settimeout(PATIENCE)
        replica.once("REPLICAOF", "127.0.0.1", door.getsockname()[1])
        link, _ = door.accept()
    link.settimeout(PATIENCE)
    with link, link.makefile("rb") as asks:
        while (line := asks.readline()).startswith(b"*"):
            words = [asks.readline() and asks.readline().strip() for _ in range(int(line[1:]))]
            if words[0] == b"PSYNC":
                break
            link.sendall(b"+OK\r\n" if words[0] == b"REPLCONF" else b"+PONG\r\n")
        snapshot = b"REDIS0010\xfe\x00\x00\x04text\x04here\xff" + bytes(8)
        link.sendall(b"+FULLRESYNC %s 0\r\n$%d\r\n%s" % (b"a" * 40, len(snapshot), snapshot))
        yield link


def test_a_command_that_cannot_be_read_does_not_end_a_replica(fleet):
    """Nor may a client end the server."""
    server = fleet.server(aof_use_rdb_preamble="no", appendonly="yes")
    chunk = with_a_text(server)
    commands = [[chunk if word == b"CHUNK" else word for word in words.split()] for words in UNREADABLE]
    for words in commands:
        with pytest.raises(redis.ResponseError, match="only from the append-only file"):
            server.once(*words)
    with own_primary(server) as link:
        for words in (*commands, (b"SET", b"after", b"all")):
            link.sendall(Raw.encoded(words))
        wait_until(lambda: server.once("GET", "after") == "all")
    assert server.log().count("This replica is sending an error to its master") == len(commands)
    assert server.once("GET", "text") == "here"


def test_an_outcome_that_fits_no_task_is_an_error_in_the_log(fleet):
    server = fleet.server(aof_use_rdb_preamble="no", appendonly="yes")
    server.client().set("text", "here")
    add(server.client(), "s", "out", "a", now_ms() + HOUR)
    server.kill()
    log_outcomes(server, b"s ONCE nobody", b"none ONCE a", b"s NEXT a 5 1", b"s ONCE nobody b", b"s RESUME",
                 b"s RENEW " + LOGGED[0] + b" v", b"s " + LOGGED[1] + b" v", b"text PAUSE",
                 b"text RENEW " + LOGGED[0] + b" v")
    for text in ("'s': no task has the id of a change", "'none': there is no such queue",
                 "'s': a task with another period does not repeat", "'s': it is not paused",
                 "'s': no task with its id can be renewed so", "'s': no task with its id has times to keep",
                 "'text': its key has another type"):
        assert f"tickwheel: an outcome does not fit the queue {text}" in server.log()
    assert list(tasks(server.client(), "s")) == ["a"]


WRONGTYPE = "WRONGTYPE Operation against a key holding the wrong kind of value"
# Commands as versions before the contract have logged them, and the errors that they are by now. The key `text`
# is a string, and the task `dead` of the queue `s` is dead.
REFUSED_NOW = {
    b"TW.PUT s a 5 PAYLOAD v": ("s", "ERR the time is '5': expected "),
    b"TW.SEND s q a AT 5 FIELDS 1 v": ("s", "ERR the option is 'FIELDS': expected "),
    b"tw.put text a AT 5 PAYLOAD v": ("text", "WRONGTYPE "),
    b"TW.MOVE s dead AT 5": ("s", "ERR the task is dead: expected a replay"),
    b"TW.CANCEL s": ("s", "ERR wrong number of arguments"),
    b"TW.PAUSE s ON": ("s", "ERR wrong number of arguments"),
    b"TW.PROMOTE s a": ("s", "ERR the word is 'a': expected ALL, or IDS "),
    b"TW.REPLAY s IDS 2 a": ("s", "ERR IDS is '2': expected "),
    b"TW.PURGE": ("", "ERR wrong number of arguments"),
    b"TW.TAKE 1 s": ("s", "ERR LEASE is missing: expected "),
    b"TW.ACK s a": ("s", "ERR the token of the last id is missing: expected "),
    b"TW.NACK s a 1 LATER": ("s", "ERR the option is 'LATER': expected "),
    b"TW.TOUCH s a 1 5": ("s", "ERR the option is '5': expected LEASE ms"),
}
ACCEPTED = b"TW.PUT s good AT 99999999999 PAYLOAD v", b"TW.MOVE s none AT 5", b"TW.PUT s good AT 5 NX PAYLOAD v"


def with_a_dead_task(server):
    r = server.client()
    r.set("text", "here")
    r.execute_command("TW.PUT", "s", "dead", "AT", 1000, "PAYLOAD", "v")
    job = wait_take(r, "s")
    r.execute_command("TW.NACK", "s", "dead", job.token, "DEAD")


def refusals(server):
    """The lines of the server's log about logged commands that were refused."""
    return re.findall(r"tickwheel: (.*logged .* refused.*)", server.log())


def test_a_command_of_an_append_only_file_that_is_refused_has_a_line(fleet):
    """The server goes on after such an error, and its own line about it names no queue."""
    server = fleet.server(aof_use_rdb_preamble="no", appendonly="yes")
    with_a_dead_task(server)
    server.kill()
    with open(aof_path(server), "ab") as file:
        file.writelines(Raw.encoded(words.split()) for words in (*REFUSED_NOW, *ACCEPTED))
    server.start()
    *lines, total = refusals(server)
    for line, (words, (queue, error)) in zip(lines, REFUSED_NOW.items(), strict=True):
        name = words.split()[0].decode()
        assert line.startswith(f"a logged {name} of the queue '{queue}' was refused: {error}")
    assert total == f"{len(lines)} logged commands were refused since the start"
    assert server.tw()["refused_commands"] == len(lines)
    assert set(tasks(server.client(), "s")) == {"dead", "good"}


def test_many_refused_commands_take_few_lines(fleet):
    server = fleet.server(aof_use_rdb_preamble="no", appendonly="yes")
    server.client().set("text", "here")
    server.kill()
    with open(aof_path(server), "ab") as file:
        file.write(100 * Raw.encoded((b"TW.CANCEL", b"text", b"a")))
    server.start()
    lines = refusals(server)
    assert lines[:16] == 16 * ["a logged TW.CANCEL of the queue 'text' was refused: " + WRONGTYPE]
    assert lines[16:] == [f"{count} logged commands were refused since the start" for count in (32, 64, 100)]
    assert server.tw()["refused_commands"] == 100


def test_a_command_of_the_primary_that_is_refused_has_a_line(fleet):
    """One with too few arguments does not reach the module. A client that is refused learns so by itself."""
    server = fleet.server()
    with_a_dead_task(server)
    sent = (b"TW.MOVE text a AT 5", b"TW.PUT s a 5 PAYLOAD v", *ACCEPTED)
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        server.once(*sent[0].split())
    with own_primary(server) as link:
        for words in (*sent, b"SET after all"):
            link.sendall(Raw.encoded(words.split()))
        wait_until(lambda: server.once("GET", "after") == "all")
    first, second = refusals(server)
    assert first == "a logged TW.MOVE of the queue 'text' was refused: " + WRONGTYPE
    assert second.startswith("a logged TW.PUT of the queue 's' was refused: ERR ")
    assert server.tw()["refused_commands"] == 2
    assert list(tasks(server.client(), "s")) == ["good"]


def settled(client, *names):
    """Returns TW.GET of these tasks without what changes with time."""
    return [{word: value for word, value in task(client, "s", name).items() if word != "remaining"}
            for name in names]


def test_a_delivery_of_a_task_that_was_not_to_be_delivered_is_an_error_in_the_log(fleet):
    """Only a task with a target, that waits, is delivered. The outcomes that fit are done."""
    server = fleet.server(aof_use_rdb_preamble="no", module_args=("target-tries", 1), appendonly="yes")
    r = server.client()
    r.set("wrong", "text")
    add(r, "s", "wrong", "dead", 1000)
    wait_until(lambda: dead_of(r, "s"))
    for name in ("leased", "behind"):
        r.execute_command("TW.PUT", "s", name, "AT", 1000, "EVERY", HOUR, "PAYLOAD", "v")
        r.execute_command("TW.TAKE", 1, "s", "LEASE", HOUR)
    add(r, "s", "out", "behind", now_ms() + HOUR, "EVERY", HOUR)
    r.execute_command("TW.PUT", "s", "waits", "IN", HOUR, "EVERY", HOUR, "PAYLOAD", "v")
    add(r, "s", "out", "fits", now_ms() + HOUR, "EVERY", HOUR)
    add(r, "s", "out", "goes", now_ms() + HOUR)
    before = settled(r, "dead", "leased", "behind", "waits")
    server.kill()
    due = now_ms() + 2 * HOUR
    log_outcomes(server, *(b"s ONCE %s" % name for name in (b"dead", b"leased", b"waits")),
                 b"s NEXT leased %d 5" % due, b"s NEXT behind %d 5 fits %d 5" % (due, due), b"s ONCE dead goes")
    for text in ("a task without a target was delivered", "a task that is leased or dead was delivered"):
        assert f"tickwheel: an outcome does not fit the queue 's': {text}" in server.log()
    r = server.client()
    assert settled(r, "dead", "leased", "behind", "waits") == before
    assert (task(r, "s", "fits")["due"], task(r, "s", "fits")["times"], task(r, "s", "goes")) == (due, 5, None)


def shortened(word):
    data = word.encode("utf-8", "surrogateescape")
    return word if len(data) < 1000 else f"{len(data)} bytes, SHA-1 {hashlib.sha1(data).hexdigest()}"


def describe_task(found):
    """Returns TW.GET as far as a file tells it."""
    if found is None:
        return "has no name"
    del found["remaining"]
    found["payload"] = [shortened(word) for word in found["payload"]]
    if found["state"] == "ready":
        found["state"] = "waiting"  # a file does not tell
    if found["state"] == "leased" or (found["kind"] != "workers" and found["attempt"]):
        del found["next"]  # An ended lease begins anew, and a server that delivers nothing holds no task.
    return found


def digests(server):
    """Returns a line with the digest of each queue of a server. A digest has each number of the tasks, also
    those that no command shows."""
    lines = []
    for db in range(16):
        client = server.client(db=db)
        for key in sorted(client.scan_iter(_type="tickwheel")):
            [value] = client.execute_command("DEBUG", "DIGEST-VALUE", key)
            lines.append(f"{db} {key!r} {value}\n")
    return "".join(lines)


def look(client, key, name):
    """Returns TW.GET of a task; None if its id has no bytes, as no command names such a task of an old file."""
    return task(client, key, name) if name else None


def is_undelivered(found):
    return found is not None and found["kind"] != "workers" and found["state"] == "ready"


def describe(server):
    """Returns all queues of a server as text: a line for each task, first ready tasks with a target,
    then tasks that wait for a time, in their order, then the dead tasks in the order of death, then all others.
    A long payload is shown by its hash."""
    lines = []
    for db in range(16):
        client = server.client(db=db, encoding_errors="surrogateescape")
        for key in sorted(client.scan_iter(_type="tickwheel")):
            count = client.execute_command("TW.LEN", key)
            paused = ", paused" if working(client, key)["paused"] else ""
            lines.append(f"{db} {key!r} {count} tasks, expires {client.pexpiretime(key)}{paused}")
            names = [name for name in sorted(tasks(client, key)) if is_undelivered(look(client, key, name))]
            names += order(client, key)
            names += [one.id for one in dead_of(client, key, "COUNT", 10000)]
            names += sorted(set(tasks(client, key)) - set(names))
            lines += [f"    {name!r} {describe_task(look(client, key, name))}" for name in names]
    return "\n".join(lines) + "\n"


# A primary and its replica

ALLOWED = ("ERR no such key", "ERR source and destination objects are the same", "or a put in its place")


def test_digests_agree_after_random_commands(fleet):
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    chance = random.Random(seed)
    master = fleet.server(appendonly="yes")
    replica = fleet.server(replicaof=master)
    wait_replica_in_sync(master, replica)
    connection = Raw(master)
    for _ in range(20):
        commands = [anything(chance) for _ in range(200)]
        if master.is_valkey(
        ):  # After MOVE a connection is in the other database, that of a replica too: its pull request 4024
            commands = [words for words in commands if words[0] != "MOVE"]
        connection.send_all(commands)
        for words in commands:
            answer = connection.read()
            assert not isinstance(answer, Raw.Error) or answer.endswith(ALLOWED), (words, answer)
    # Waits until no key is about to expire, or has expired and is still in memory. DEBUG DIGEST contains such
    # keys, and no list of keys does.
    def lasting(r):
        return (all(r.pttl(key) == -1 or r.pttl(key) > 10000 for key in r.keys("*"))
                and r.dbsize() == len(r.keys("*"))
                )  # checked last, as a key about to expire may have expired by now
    wait_until(lambda: all(lasting(master.client(db=db)) for db in (0, 1)))
    assert same_digest(master, replica)
    master.client().execute_command("CLIENT", "PAUSE", 60000, "WRITE")
    wait_replica_in_sync(master, replica)
    before = digest(master)
    master.kill()
    master.module_args = ("deliver", "no")
    master.start()
    assert digest(master) == before


def same_digest(master, replica):
    """Compares both servers until they are at the same point, as deliveries go on."""
    def same():
        wait_replica_in_sync(master, replica)
        return digest(master) == digest(replica)
    return wait_until(same)


# A worker that takes up to three tasks, and ends its attempts in one way.
WORK = """
local jobs = redis.call('TW.TAKE', 1, KEYS[1], 'LEASE', ARGV[1], 'COUNT', 3) or {}
for _, job in ipairs(jobs) do
    if ARGV[2] == 'ACK' then redis.call('TW.ACK', KEYS[1], job[2], job[3]) end
    if ARGV[2] == 'NACK' then redis.call('TW.NACK', KEYS[1], job[2], job[3], 'IN', 30, 'ERROR', 'why') end
    if ARGV[2] == 'BACK' then redis.call('TW.NACK', KEYS[1], job[2], job[3], 'BACK') end
    if ARGV[2] == 'DEAD' then redis.call('TW.NACK', KEYS[1], job[2], job[3], 'DEAD') end
end
return #jobs
"""


def anything(chance):
    """Returns a command of any kind, for one of a few keys."""
    key, other = (f"s{chance.randrange(6)}" for _ in range(2))
    name, now = f"t{chance.randrange(40)}", now_ms()
    when = chance.choice([("IN", chance.choice([0, 5, 500, HOUR])), ("AT", now + chance.randint(-1000, 3000))])
    repeat = () if chance.random() < 0.8 else ("EVERY", chance.choice([100, 700, HOUR]), "TIMES",
                                               chance.randint(1, 4))
    late = chance.choice([(), (), ("MAXLATE", 10), ("MISSED", "skip") if repeat else ()])
    adds = ("TW.SEND", key, f"out{chance.randrange(3)}", chance.choice([name, "*"]), *when, *repeat, *late,
            *chance.choice([(), ("NX",), ("XX",), ("GT",), ("LT",), ("MAXLEN", 50)]), "PAYLOAD", "f",
            "x" * chance.randrange(40))
    puts = ("TW.PUT", key, chance.choice([name, "*"]), *when, *repeat, *late, "TRIES", 2, "PAYLOAD", "x")
    works = ("EVAL", WORK, 1, key, chance.choice([20, HOUR]),
             chance.choice(["ACK", "NACK", "DEAD", "BACK", "none"]))
    return chance.choice([
        adds, adds, adds, adds, puts, puts, puts, works, works, works, ("TW.REPLAY", key, "ALL", "IN", 100),
        ("TW.PURGE", key, "ALL"), (chance.choice(["TW.PAUSE", "TW.RESUME", "TW.RESUME"]), key),
        ("TW.CANCEL", key, name), ("TW.CANCEL", key, name, "t1", "t2"),
        ("TW.MOVE", key, name, *when), ("TW.MOVE", key, name, *when, "GT"),
        ("TW.PROMOTE", key, "IDS", 2, name, "t1"), ("RENAME", key, other),
        ("COPY", key, other, "REPLACE"), ("UNLINK", key),
        ("PEXPIRE", key, chance.choice([1, 300, HOUR])), ("PERSIST", key), ("MOVE", key, 1)])


def test_a_value_that_is_far_too_long_to_be_true(server):
    """Puts lengths of up to 2^63 into every place of the value. The module requests no memory for a length
    that it has not checked."""
    specimen(server.client())
    r = raw(server)
    good = r.dump("s")
    for at in range(10, len(good) - 10):
        for length in (0x7fffffffffffffff, 1 << 40, 0xffffffff):
            body = good[:at] + b"\x81" + struct.pack(">Q", length) + good[at + 1:-10]
            restore_or_refuse(server, r, with_checksum(body + good[-10:-8]))
    check_untouched(server, r, good)


def test_tasks_survive_both_forms_one_after_the_other(fleet, clock):
    """The server goes from AOF to RDB and back, as if an administrator tried one after the other, while tasks
    wait and become due."""
    server = fleet.server(appendonly="yes")
    r, due = server.client(), clock.now() + 4000
    names = fill(r, "s", "out", 100, due)
    r.save()
    server.kill()
    server.options.update(appendonly="no")
    server.start()
    r = server.client()
    assert r.execute_command("TW.LEN", "s") == 100
    r.config_set("appendonly", "yes")
    wait_rewritten(server)
    server.kill()
    server.options.update(appendonly="yes")
    server.start()
    r = server.client()
    clock.reach(due)
    let_pass(r, due)
    assert delivered(r, "out") == names
