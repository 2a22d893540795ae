# SPDX-License-Identifier: MIT
"""Users and tasks for workers: a worker needs rights to the queue alone, and the rules of a producer do not
allow a take. Where the keys of TW.TAKE stand; and the rights to a target that a dead task has."""
import re

import pytest
import redis

from harness import Raw, delivered, now_ms, task, wait_until
from situations import put, wait_dead, wait_ready, wait_take
from test_acl import CALLS, FUNCTION, denied, refuses, user

HOUR = 3600 * 1000
TAKE = ("TW.TAKE", 1, "s", "LEASE", HOUR)
WORKER = ("+tw.take", "+tw.ack", "+tw.nack", "+tw.touch", "~s")
PRODUCER = ("%W~s", "+tw.put", "+tw.cancel", "+tw.move")
COMMANDS = [("TW.PUT", "s", "b", "IN", HOUR, "PAYLOAD", "v"), TAKE, ("TW.ACK", "s", "a", "0" * 16),
            ("TW.NACK", "s", "a", "0" * 16), ("TW.NACK", "s", "a", "0" * 16, "BACK"),
            ("TW.TOUCH", "s", "a", "0" * 16, "LEASE", 5), ("TW.DEAD", "s"),
            ("TW.REPLAY", "s", "ALL"), ("TW.PURGE", "s", "ALL"), ("TW.PAUSE", "s"),
            ("TW.RESUME", "s")]


@pytest.fixture(params=CALLS)
def call(r, request):
    """A function with which a client calls a command: plain, in MULTI, from a script or from a function."""
    r.function_load(FUNCTION)
    return CALLS[request.param]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: f"{words[0]} {words[-1]}")
def test_a_command_and_its_queue_have_to_be_allowed(server, r, words):
    put(r, "s", "a", "IN", HOUR)
    refuses(user(server, "~*", "+@all", f"-{words[0]}"), *words)
    refuses(user(server, "~other", "+@all"), *words)
    if words[0] != "TW.DEAD":
        refuses(user(server, "%R~s", "+@all"), *words)
    user(server, "~s", "-@all", f"+{words[0]}").execute_command(*words)


def test_a_worker_needs_the_queue_alone(server, r):
    worker = user(server, *WORKER)
    for i in range(3):
        put(r, "s", f"t{i}", "AT", 1000 + i)
    job = wait_take(worker, "s")
    assert worker.execute_command("TW.TOUCH", "s", job.id, job.token, "LEASE", HOUR) > now_ms()
    assert worker.execute_command("TW.ACK", "s", job.id, job.token) == 1
    job = wait_take(worker, "s")
    assert worker.execute_command("TW.NACK", "s", job.id, job.token, "BACK") == job.due
    job = wait_take(worker, "s")
    assert worker.execute_command("TW.NACK", "s", job.id, job.token) > 0
    for words in (("TW.PUT", "s", "b", "IN", HOUR, "PAYLOAD", "v"), ("TW.CANCEL", "s", "t1"),
                  ("TW.GET", "s", "t1")):
        refuses(worker, *words)


def test_the_rules_of_a_producer_do_not_let_him_take(server, r):
    producer = user(server, *PRODUCER)
    assert put(producer, "s", "a") == "a"
    wait_ready(r, "s")
    refuses(producer, *TAKE)
    producer = user(server, "%W~s", "+@all")  # even with all commands: TW.TAKE reads the queue
    refuses(producer, *TAKE)
    assert producer.execute_command("TW.MOVE", "s", "a", "IN", HOUR) == 1
    assert producer.execute_command("TW.CANCEL", "s", "a") == [1]


def test_all_queues_of_a_take_have_to_be_allowed(server, r, call):
    put(r, "s", "a")
    wait_ready(r, "s")
    worker = user(server, "+@all", "~s")
    with pytest.raises(redis.exceptions.RedisError):
        call(worker, "TW.TAKE", 2, "s", "other", "LEASE", HOUR)
    assert task(r, "s", "a")["state"] == "ready"
    assert call(worker, *TAKE)[0][1] == "a"


def test_a_worker_who_loses_his_rights_while_he_waits_gets_nothing(server, r):
    """The rights count when the task comes, which is then the next worker's."""
    user(server, *WORKER)
    first, second = Raw(server), Raw(server)
    first("AUTH", "someone", "secret")
    for i, raw in enumerate((first, second)):
        raw.send("TW.TAKE", 1, "s", "LEASE", HOUR, "BLOCK", 0)
        wait_until(lambda i=i: server.info("clients")["blocked_clients"] == i + 1)
    r.execute_command("ACL", "SETUSER", "someone", "-tw.take")
    put(r, "s", "a")
    answer = first.read()
    assert isinstance(answer, Raw.Error) and re.search("NOPERM", answer), answer
    assert second.read()[0][1] == "a" and task(r, "s", "a")["attempt"] == 1


@pytest.mark.parametrize("words,keys", [
    (("TW.TAKE", "1", "s", "LEASE", "5"), ["s"]),
    (("TW.TAKE", "3", "a", "b", "c", "COUNT", "5", "BLOCK", "0", "NAME", "w", "LEASE", "5"),
     ["a", "b", "c"]),
    (("TW.TAKE", "2", "LEASE", "s", "LEASE", "5"), ["LEASE", "s"]),
    (("TW.TAKE", "1", "s", "LEASE", "5", "NAME", "KEYS"), ["s"]),
    (("TW.TAKE", "3", "s", "5"), None), (("TW.TAKE", "s", "LEASE", "5"), None), (("TW.TAKE", "1"), None),
    (("TW.PUT", "s", "a", "IN", "5", "PAYLOAD", "v"), ["s"]), (("TW.ACK", "s", "a", "t"), ["s"]),
    (("TW.NACK", "s", "a", "t"), ["s"]), (("TW.NACK", "s", "a", "t", "BACK"), ["s"]),
    (("TW.TOUCH", "s", "a", "t", "LEASE", "5"), ["s"]),
    (("TW.DEAD", "s"), ["s"]), (("TW.REPLAY", "s", "ALL"), ["s"]), (("TW.PURGE", "s", "ALL"), ["s"]),
    (("TW.PAUSE", "s"), ["s"]), (("TW.RESUME", "s"), ["s"])], ids=lambda value: " ".join(map(str, value or [])))
def test_the_server_finds_the_keys(server, words, keys):
    answer = Raw(server)("COMMAND", "GETKEYS", *words)
    assert isinstance(answer, Raw.Error) if keys is None else answer == keys


def test_keys_that_look_like_options_are_checked(server, r):
    """The server and the module find the same keys, so nothing is taken from a queue whose rights were not
    checked. A worker may have any name."""
    for key in ("s", "secret", "LEASE"):
        put(r, key, "a")
        wait_ready(r, key)
    worker = user(server, "+@all", "~s")
    for words in ((2, "s", "secret", "LEASE", 5), (1, "secret", "LEASE", 5, "NAME", "s"),
                  (1, "LEASE", "LEASE", 5), (2, "s", "LEASE", "LEASE", 5), (3, "s", "LEASE", 5)):
        with pytest.raises(redis.exceptions.RedisError):
            worker.execute_command("TW.TAKE", *words)
    assert [task(r, key, "a")["state"] for key in ("s", "secret", "LEASE")] == ["ready"] * 3
    assert worker.execute_command("TW.TAKE", 1, "s", "LEASE", HOUR, "NAME", "KEYS")[0][1] == "a"
    assert task(r, "s", "a")["worker"] == "KEYS"


def test_replaying_needs_the_right_to_write_each_target(server, r, call):
    """Replaying files the task again, so who may not write its target may not replay it. Purging writes no
    target."""
    r.config_set("tickwheel.target-tries", 1)
    r.set("secret", "a string"), r.set("q", "a string")
    for i, target in enumerate(("q", "secret", "q")):
        r.execute_command("TW.SEND", "s", target, f"t{i}", "AT", 1000 + i, "PAYLOAD", "f", "v")
    wait_dead(r, "s", 3)
    r.delete("secret", "q")
    client = user(server, "+@all", "~s", "~q")
    denied(r, call, client, "secret", "TW.REPLAY", "s", "ALL")
    denied(r, call, client, "secret", "TW.REPLAY", "s", "IDS", 1, "t1", "IN", HOUR)
    assert call(client, "TW.REPLAY", "s", "IDS", 1, "t0") == 1
    wait_until(lambda: delivered(r, "q") == ["t0"])
    assert call(client, "TW.PURGE", "s", "IDS", 1, "t1") == 1
    assert call(client, "TW.REPLAY", "s", "ALL") == 1
    wait_until(lambda: delivered(r, "q") == ["t0", "t2"])
    assert r.exists("s", "secret") == 0


def test_dry_run(server, r):
    user(server, *WORKER)
    assert r.execute_command("ACL", "DRYRUN", "someone", *TAKE) == "OK"
    assert r.execute_command("ACL", "DRYRUN", "someone", "TW.TAKE", 1, "other", "LEASE", HOUR) != "OK"
