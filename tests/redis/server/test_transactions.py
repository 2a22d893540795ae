# SPDX-License-Identifier: MIT
"""A business write and its timeout are one transaction: MULTI, WATCH, scripts and functions, and their
replication."""
import random

import pytest
import redis

from eventually import any_moment
from harness import Raw, Tap, delivered, now_ms, task, tasks, wait_replica_in_sync, wait_until
from situations import logged_task, outcomes

HOUR = 3600 * 1000
PAYLOAD = ("PAYLOAD", "f", "v")


def add(r, name, *words, queue="s", target="q"):
    return r.execute_command("TW.SEND", queue, target, name, *(words or ("IN", HOUR)), *PAYLOAD)


# MULTI

def test_all_commands_in_one_transaction(r):
    due = now_ms() + HOUR
    pipe = r.pipeline(transaction=True)
    pipe.set("order:1", "unpaid")
    add(pipe, "a", "AT", due)
    add(pipe, "b", "AT", due + 1)
    for words in (("TW.MOVE", "s", "a", "AT", due + 2), ("TW.LEN", "s"), ("TW.NEXT", "s"),
                  ("TW.CANCEL", "s", "b"), ("TW.RANGE", "s", "-", "+"), ("TW.SCAN", "s", 0),
                  ("TW.PROMOTE", "s", "ALL"), ("XLEN", "q"), ("EXISTS", "s")):
        pipe.execute_command(*words)
    assert pipe.execute() == [
        True, "a", "b", 1, 2, ["b", due + 1, due + 1], [1], [["a", due + 2, due + 2]],
        ["0", [["a", due + 2, due + 2]]], 1, 0, 1
    ]


def test_a_discarded_transaction_adds_nothing(server):
    raw = Raw(server)
    for words in (("MULTI", ), ("SET", "order:1", "unpaid"), ("TW.SEND", "s", "q", "a", "IN", HOUR, *PAYLOAD),
                  ("DISCARD", )):
        raw(*words)
    assert raw("DBSIZE") == 0
    assert server.tw()["tasks"] == 0


def test_nothing_is_delivered_in_the_middle_of_a_transaction(r):
    pipe = r.pipeline(transaction=True)
    add(pipe, "a", "IN", 0)
    pipe.execute_command("DEBUG", "SLEEP", "0.05")
    pipe.xlen("q")
    pipe.execute_command("TW.LEN", "s")
    add(pipe, "b", "IN", 0)
    pipe.xlen("q")
    answers = pipe.execute()
    assert (answers[2], answers[3], answers[5]) == (0, 1, 0)
    wait_until(lambda: delivered(r, "q") == ["a", "b"])


def test_a_transaction_that_cancels_in_time(r):
    """The task is added, becomes due, and is cancelled before anybody could see it."""
    pipe = r.pipeline(transaction=True)
    add(pipe, "a", "IN", 0)
    pipe.execute_command("DEBUG", "SLEEP", "0.02")
    pipe.execute_command("TW.CANCEL", "s", "a")
    add(pipe, "after", "IN", 20)
    assert pipe.execute()[2] == [1]
    wait_until(lambda: r.exists("q"))
    assert delivered(r, "q") == ["after"]


def test_a_queue_made_and_removed_in_one_transaction(r):
    for _ in range(100):
        pipe = r.pipeline(transaction=True)
        add(pipe, "a", "IN", 1)
        pipe.delete("s")
        add(pipe, "b", "IN", HOUR)
        pipe.unlink("s")
        add(pipe, "c", "IN", HOUR)
        pipe.execute_command("TW.CANCEL", "s", "c")
        pipe.execute()
    assert r.dbsize() == 0
    add(r, "after", "IN", 20)
    wait_until(lambda: r.exists("q"))
    assert delivered(r, "q") == ["after"]


# WATCH

CHANGES = {
    "add": lambda r: add(r, "new"),
    "replace": lambda r: add(r, "old", "IN", HOUR),
    "cancel": lambda r: r.execute_command("TW.CANCEL", "s", "old"),
    "move": lambda r: r.execute_command("TW.MOVE", "s", "old", "IN", 2 * HOUR),
    "promote": lambda r: r.execute_command("TW.PROMOTE", "s", "ALL"),
}
NO_CHANGES = {
    "get": lambda r: r.execute_command("TW.GET", "s", "old"),
    "len": lambda r: r.execute_command("TW.LEN", "s"),
    "next": lambda r: r.execute_command("TW.NEXT", "s"),
    "scan": lambda r: r.execute_command("TW.SCAN", "s", 0),
    "range": lambda r: r.execute_command("TW.RANGE", "s", "-", "+"),
    "forecast": lambda r: r.execute_command("TW.FORECAST", "s"),
    "info": lambda r: r.execute_command("TW.INFO", "s"),
    "kept by NX": lambda r: add(r, "old", "IN", 5, "NX"),
    "kept by XX": lambda r: add(r, "nobody", "IN", 5, "XX"),
    "kept by GT": lambda r: add(r, "old", "IN", 5, "GT"),
    "cancel of nobody": lambda r: r.execute_command("TW.CANCEL", "s", "nobody"),
    "move of nobody": lambda r: r.execute_command("TW.MOVE", "s", "nobody", "IN", 5),
    "move kept by GT": lambda r: r.execute_command("TW.MOVE", "s", "old", "IN", 5, "GT"),
    "refused": lambda r: pytest.raises(redis.ResponseError, add, r, "old", "IN", -1),
}


def watched(r, key, change):
    """Returns whether a transaction that watched the key still ran after the change."""
    pipe = r.pipeline(transaction=True)
    pipe.watch(key)
    change(r)
    pipe.multi()
    pipe.incr("ran")
    try:
        pipe.execute()
    except redis.WatchError:
        return False
    return True


@pytest.mark.parametrize("name", CHANGES)
def test_a_watched_queue_that_changes_breaks_the_transaction(r, name):
    add(r, "old")
    add(r, "other")
    assert not watched(r, "s", CHANGES[name])
    assert r.get("ran") is None


@pytest.mark.parametrize("name", NO_CHANGES)
def test_what_changes_nothing_leaves_the_transaction(r, name):
    add(r, "old")
    assert watched(r, "s", NO_CHANGES[name])


@pytest.mark.parametrize("key", ["s", "q"])
def test_a_delivery_breaks_a_transaction_that_watches_queue_or_target(r, key):
    add(r, "stays")
    r.xadd("q", {"f": "v"})

    def change(client):
        add(client, "a", "IN", 1)
        wait_until(lambda: client.xlen("q") == 2)

    assert not watched(r, key, change)


def test_a_queue_that_is_watched_before_it_is_there(r):
    assert not watched(r, "s", lambda client: add(client, "a"))


# Scripts

def test_a_script_writes_and_adds(r):
    script = """
        redis.call('SET', KEYS[1], 'unpaid')
        return redis.call('TW.SEND', KEYS[2], KEYS[3], ARGV[1], 'IN', ARGV[2], 'PAYLOAD', 'order', KEYS[1])
    """
    assert r.eval(script, 3, "order:1", "s", "q", "order:1", 50) == "order:1"
    wait_until(lambda: r.xlen("q") == 1)
    assert r.xrange("q")[0][1]["order"] == "order:1"


def test_a_script_gets_answers_and_errors(r):
    script = """
        local added = redis.call('TW.SEND', KEYS[1], KEYS[2], 'a', 'IN', 3600000, 'PAYLOAD', 'f', 'v')
        local kept = redis.call('TW.SEND', KEYS[1], KEYS[2], 'a', 'IN', 5, 'NX', 'PAYLOAD', 'f', 'v')
        local wrong = redis.pcall('TW.SEND', KEYS[1], KEYS[2], 'b', 'IN', -1, 'PAYLOAD', 'f', 'v')
        local found = redis.call('TW.GET', KEYS[1], 'a', 'nobody')
        return {added, tostring(kept), wrong.err, found[1][1], tostring(found[2]),
                redis.call('TW.LEN', KEYS[1])}
    """
    added, kept, wrong, first, nobody, count = r.eval(script, 2, "s", "q")
    assert (added, kept, first, nobody, count) == ("a", "false", "due", "false", 1)
    assert "IN" in wrong


def test_a_script_gets_maps_in_resp3(r):
    script = """
        redis.setresp(3)
        redis.call('TW.SEND', KEYS[1], KEYS[2], 'a', 'IN', 3600000, 'EVERY', 5, 'PAYLOAD', 'f', 'v')
        local found = redis.call('TW.GET', KEYS[1], 'a')
        return {found[1].map.every, found[1].map.target}
    """
    assert r.eval(script, 2, "s", "q") == [5, "q"]


def test_a_script_that_fails_keeps_what_it_did(r):
    """There is no rollback, as with Redis's own commands."""
    script = """
        redis.call('TW.SEND', KEYS[1], KEYS[2], 'a', 'IN', 3600000, 'PAYLOAD', 'f', 'v')
        redis.call('TW.SEND', KEYS[1], KEYS[2], 'b', 'IN', -1, 'PAYLOAD', 'f', 'v')
    """
    with pytest.raises(redis.ResponseError):
        r.eval(script, 2, "s", "q")
    assert list(tasks(r, "s")) == ["a"]


def test_nothing_is_delivered_in_the_middle_of_a_script(r):
    script = """
        redis.call('TW.SEND', KEYS[1], KEYS[2], 'a', 'IN', 0, 'PAYLOAD', 'f', 'v')
        local start = redis.call('TIME')
        repeat
            local now = redis.call('TIME')
        until (now[1] - start[1]) * 1000000 + (now[2] - start[2]) > 30000
            or redis.call('INCR', 'turns') >= 100000
        return redis.call('XLEN', KEYS[2])
    """
    assert r.eval(script, 2, "s", "q") == 0
    wait_until(lambda: r.xlen("q") == 1)


def test_what_a_script_promotes_is_delivered_after_it(r):
    add(r, "a")
    assert r.eval("return {redis.call('TW.PROMOTE', KEYS[1], 'ALL'), redis.call('XLEN', KEYS[2])}", 2, "s",
                  "q") == [1, 0]
    wait_until(lambda: r.xlen("q") == 1)


def test_a_script_that_may_only_read(r):
    add(r, "a")
    assert r.execute_command("EVAL_RO", "return redis.call('TW.LEN', KEYS[1])", 1, "s") == 1
    for words in ("'TW.CANCEL', KEYS[1], 'a'", "'TW.PROMOTE', KEYS[1], 'ALL'",
                  "'TW.MOVE', KEYS[1], 'a', 'IN', 5",
                  "'TW.SEND', KEYS[1], 'q', 'b', 'IN', 5, 'PAYLOAD', 'f', 'v'"):
        with pytest.raises(redis.ResponseError):
            r.execute_command("EVAL_RO", f"return redis.call({words})", 1, "s")
    assert list(tasks(r, "s")) == ["a"]


def test_internal_commands_are_refused_from_scripts(r):
    add(r, "a")
    for words in ("'TW.FIRED', KEYS[1], 'a'", "'TW.LOAD', KEYS[1], 'q', 'a'"):
        with pytest.raises(redis.ResponseError):
            r.eval(f"return redis.call({words})", 1, "s")
    assert list(tasks(r, "s")) == ["a"]


def test_a_function(r):
    r.function_load("""#!lua name=orders
        redis.register_function('place', function(keys, args)
            redis.call('SET', keys[1], 'unpaid')
            return redis.call('TW.SEND', keys[2], keys[3], '*', 'IN', args[1], 'PAYLOAD', 'order', keys[1])
        end)
        redis.register_function{function_name='count', flags={'no-writes'}, callback=function(keys)
            return redis.call('TW.LEN', keys[1])
        end}
    """)
    name = r.fcall("place", 3, "order:1", "s", "q", HOUR)
    assert task(r, "s", name)["payload"] == ["order", "order:1"]
    assert r.fcall_ro("count", 1, "s") == 1


# Replication

def flat(commands):
    return [word for words in commands for word in words]


def test_times_are_replicated_absolute_and_ids_final(server, r):
    tap = Tap(server)
    before = now_ms()
    name = add(r, "*", "IN", 1000000)
    r.execute_command("TW.MOVE", "s", name, "IN", 2000000)
    due = task(r, "s", name)["due"]
    assert before + 2000000 <= due
    added, moved = tap.commands()
    assert logged_task(added)["id"] == name and before + 1000000 <= logged_task(added)["due"] <= due
    assert outcomes([moved]) == [("s", "CHANGES")] and name in moved[2]
    r.execute_command("TW.CANCEL", "s", name, "nobody")
    gone, deleted = (words for words in tap.commands() if words[0] not in ("MULTI", "EXEC"))
    assert outcomes([gone]) == [("s", "CHANGES")] and name in gone[2] and "nobody" not in gone[2]
    assert deleted == ["DEL", "s"]
    tap.close()


def test_a_condition_is_not_left_to_the_replica(server, r):
    """The primary decides the condition, and replicates the decision."""
    tap = Tap(server)
    add(r, "a", "IN", HOUR, "NX")
    add(r, "a", "IN", 2 * HOUR, "XX")
    add(r, "a", "IN", 3 * HOUR, "GT")
    r.execute_command("TW.MOVE", "s", "a", "IN", HOUR, "LT")
    assert not {"NX", "XX", "GT", "LT"} & set(flat(tap.commands()))
    tap.close()


def test_a_transaction_is_replicated_as_one(server, r):
    tap = Tap(server)
    pipe = r.pipeline(transaction=True)
    pipe.set("order:1", "unpaid")
    add(pipe, "a")
    pipe.execute()
    commands = tap.commands()
    assert commands[0] == ["MULTI"] and commands[-1] == ["EXEC"]
    assert commands[1] == ["SET", "order:1", "unpaid"]
    assert len(commands) == 4 and logged_task(commands[2])["id"] == "a"
    tap.close()


def test_a_script_is_replicated_as_one_transaction(server, r):
    tap = Tap(server)
    r.eval(
        "redis.call('SET', KEYS[1], 'x'); "
        "redis.call('TW.SEND', KEYS[2], KEYS[3], 'a', 'IN', 3600000, 'PAYLOAD', 'f', 'v')",
        3, "order:1", "s", "q")
    commands = tap.commands()
    assert [words[0] for words in commands] == ["MULTI", "SET", "TW.FIRED", "EXEC"]
    assert logged_task(commands[2])["id"] == "a"
    tap.close()


def test_a_delivery_is_replicated_as_one_transaction(server, r):
    add(r, "stays")
    tap = Tap(server)
    add(r, "a", "IN", 10)
    wait_until(lambda: r.xlen("q") == 1)
    commands = tap.commands()
    first = next(i for i, words in enumerate(commands) if words == ["MULTI"])
    last = next(i for i, words in enumerate(commands) if words == ["EXEC"])
    inside = commands[first + 1:last]
    assert first == 1 and last == len(commands) - 1
    assert [words[0].upper() for words in inside] == ["XADD", "TW.FIRED"]
    assert inside[0][2] == r.xrange("q")[0][0], "the entry's id is final"
    tap.close()


def test_a_promotion_is_replicated_by_its_outcome(server, r):
    for name in "abc":
        add(r, name)
    r.execute_command("TW.PAUSE", "s")
    tap = Tap(server)
    assert r.execute_command("TW.PROMOTE", "s", "IDS", 2, "a", "b") == 2
    assert outcomes(tap.commands()) == [("s", "CHANGES")]
    tap.close()


def full(client, queue):
    """Returns the reply of TW.GET for each task, without the remaining time."""
    return {name: {**task(client, queue, name), "remaining": 0} for name in tasks(client, queue)}


def test_a_replica_has_the_same_tasks(fleet, server, r):
    replica = fleet.server(replicaof=server)
    wait_replica_in_sync(server, replica)
    other = replica.client()
    for i in range(20):
        add(r, f"{i}", "IN", HOUR + i)
    add(r, "*", "IN", HOUR, "EVERY", 7, "TIMES", 3, "MAXLEN", 5, "MAXLATE", 9)
    r.execute_command("TW.SEND", "s", "l", "list", "IN", HOUR, "LIST", "MISSED", "coalesce", "EVERY", 9,
                      "PAYLOAD", "\x00v\r\n")
    r.execute_command("TW.MOVE", "s", "3", "IN", 2 * HOUR)
    r.execute_command("TW.CANCEL", "s", "4", "5", "nobody")
    r.execute_command("TW.SEND", "s", "other", "6", "IN", 9 * HOUR, "PAYLOAD", "g", "w")
    r.execute_command("TW.PROMOTE", "s", "IDS", 3, "0", "1", "2")
    add(r, "fires", "IN", 20)
    wait_until(lambda: "fires" in delivered(r, "q"))
    wait_replica_in_sync(server, replica)
    assert full(other, "s") == full(r, "s")
    assert other.xrange("q") == r.xrange("q")
    assert other.lrange("l", 0, -1) == r.lrange("l", 0, -1)
    assert other.execute_command("DEBUG", "DIGEST") == r.execute_command("DEBUG", "DIGEST")
    assert [name for name, *_ in other.execute_command("TW.RANGE", "s", "-", "+")] == [
        name for name, *_ in r.execute_command("TW.RANGE", "s", "-", "+")]


@pytest.mark.parametrize("transaction", [False, True])
def test_the_append_only_file_has_the_same_tasks(fleet, transaction):
    server = fleet.server(appendonly="yes")
    r = server.client()
    pipe = r.pipeline(transaction=transaction)
    for i in range(20):
        add(pipe, f"{i}", "IN", HOUR + i)
    add(pipe, "*", "IN", HOUR, "EVERY", 7, "TIMES", 3, "MAXLEN", 5, "MAXLATE", 9)
    pipe.execute_command("TW.SEND", "s", "l", "list", "IN", HOUR, "LIST", "PAYLOAD", "\x00v\r\n")
    pipe.execute_command("TW.MOVE", "s", "3", "IN", 2 * HOUR)
    pipe.execute_command("TW.CANCEL", "s", "4", "5")
    pipe.execute_command("TW.PROMOTE", "s", "IDS", 3, "0", "1", "2")
    pipe.execute()
    wait_until(lambda: r.xlen("q") == 3)
    before, entries = full(r, "s"), r.xrange("q")
    order = r.execute_command("TW.RANGE", "s", "-", "+")
    server.kill()
    r = server.restart().client()
    assert full(r, "s") == before
    assert r.xrange("q") == entries
    assert r.execute_command("TW.RANGE", "s", "-", "+") == order


def test_commands_of_one_script_agree_about_now(r):
    """One short script adds two tasks IN the same delay. They are due close together, and the task added
    first is due no later."""
    script = """
        redis.call('TW.SEND', KEYS[1], KEYS[2], 'a', 'IN', 3600000, 'PAYLOAD', 'f', 'v')
        redis.call('TW.SEND', KEYS[1], KEYS[2], 'b', 'IN', 3600000, 'PAYLOAD', 'f', 'v')
    """
    rng = random.Random()
    for _ in range(20):
        r.eval(script, 2, "s", "q")
        assert [name for name, *_ in r.execute_command("TW.RANGE", "s", "-", "+")] == ["a", "b"]
        r.delete("s")
        any_moment(rng, 0.002)
