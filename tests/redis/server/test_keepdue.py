# SPDX-License-Identifier: MIT
"""KEEPDUE in a server: the log, files, replicas, counts, targets that refuse. The cells of the contract are in
tests/contract/scenarios/keepdue.txt."""
import pytest

from harness import Tap, now_ms, task, tasks, wait_replica_in_sync, wait_until
from situations import (Counters, add, digest, events_of, fired_form, logged_task, put, rewrite, take,
                        wait_delivered, wait_take)

HOUR = 3600 * 1000
ROUTES = ("TRIES", 7)
SERIES = ("EVERY", HOUR, "MISSED", "burst")
SLOWLY = ("BACKOFF", HOUR, 1, HOUR)


def fail(r, job, *words):
    return r.execute_command("TW.NACK", job.queue, job.id, job.token, *words)


def register(r, due):
    """Tasks in each state, each with the way in which a program puts it again: all that KEEPDUE decides."""
    for name in ("retry", "lapsed", "series", "once", "moved", "behind", "dead"):
        put(r, "s", name, "AT", 1000, *SLOWLY, *(SERIES if name in ("series", "moved") else ()))
    jobs = {}
    while len(jobs) < 7:
        job = wait_take(r, "s", lease=10 * HOUR)
        jobs[job.id] = job
    fail(r, jobs["retry"], "IN", HOUR, "ERROR", "no"), fail(r, jobs["dead"], "DEAD")
    r.execute_command("TW.TOUCH", "s", "lapsed", jobs["lapsed"].token, "LEASE", 1)
    wait_until(lambda: task(r, "s", "lapsed")["lapses"] == 1)
    put(r, "s", "behind", "AT", due, payload=("behind",))
    put(r, "s", "waits", "AT", due), put(r, "s", "turns", "AT", due), add(r, "s", "q", "sent", due)
    return jobs


def again(r):
    """The program starts again, and registers everything with another payload and other options."""
    for name in ("retry", "lapsed", "once", "behind", "dead", "waits", "new"):
        assert put(r, "s", name, "IN", 9 * HOUR, "KEEPDUE", *ROUTES, payload=("again",)) == name
    assert put(r, "s", "series", "IN", 5, "EVERY", 2 * HOUR, "KEEPDUE", payload=("again",)) == "series"
    assert add(r, "s", "q", "sent", 5, "KEEPDUE", *ROUTES) == "sent"
    assert add(r, "s", "q", "turns", 5, "KEEPDUE") == "turns"
    assert add(r, "s", "q", "moved", 5, "EVERY", HOUR, "KEEPDUE") == "moved"


def looks(r):
    return {name: {**task(r, "s", name), "remaining": 0} for name in tasks(r, "s")}


# The log

def test_the_log_has_the_decision_and_not_the_word(server, r):
    due = now_ms() + HOUR
    register(r, due)
    tap, began = Tap(server), now_ms()
    again(r)
    sent = tap.commands()
    tap.close()
    assert {tuple(words[:2]) for words in sent} == {("TW.FIRED", "s")}
    forms = [fired_form(words) for words in sent]
    assert forms.count("RENEW") == 6 and forms.count("PUT") == len(sent) - 6
    puts = [logged_task(words) for words in sent if fired_form(words) == "PUT"]
    at = {found["id"]: found["due"] for found in puts}
    assert set(at) == {"once", "dead", "new", "moved", "turns"}
    assert at["moved"] == 1000 + HOUR and at["turns"] == due and began <= at["once"] <= now_ms()
    assert at["new"] > began + 8 * HOUR and at["dead"] > began + 8 * HOUR


def test_a_condition_beside_it_is_not_logged_either(server, r):
    due = now_ms() + HOUR
    put(r, "s", "a", "AT", due)
    tap = Tap(server)
    assert put(r, "s", "a", "AT", 1000, "XX", "KEEPDUE") == "a"
    assert put(r, "s", "a", "AT", 1000, "KEEPDUE", "NX") is None
    assert put(r, "s", "*", "AT", due, "NX", "KEEPDUE") != "*"
    first, second = tap.commands()
    tap.close()
    assert (first[1], fired_form(first)) == ("s", "RENEW") and first[3].endswith("\1\1v")
    assert (logged_task(second)["due"], logged_task(second)["payload"]) == (due, ["v"])


@pytest.mark.parametrize("way", ["AOF", "rewritten", "RDB"])
def test_files_and_replicas_have_the_outcome(fleet, way):
    options = {} if way == "RDB" else {"appendonly": "yes"}
    server = fleet.server(aof_use_rdb_preamble="no", **options)
    replica, r = fleet.server(replicaof=server), server.client()
    register(r, now_ms() + HOUR)
    again(r)
    wait_replica_in_sync(server, replica)
    assert digest(server) == digest(replica)
    before = looks(r)
    assert looks(replica.client()) == before
    if way == "rewritten":
        rewrite(server)
    if way == "RDB":
        r.save()
    server.kill()
    server.start()
    assert looks(server.client()) == before


def test_it_decides_alike_in_a_script_and_in_a_transaction(r):
    put(r, "s", "a", "AT", 1000, *SERIES)
    job = wait_take(r, "s")
    with r.pipeline(transaction=True) as pipe:
        pipe.execute_command("TW.PUT", "s", "a", "IN", 5, "EVERY", 2 * HOUR, "KEEPDUE", "PAYLOAD", "1")
        pipe.execute_command("TW.ACK", "s", "a", job.token)
        pipe.execute_command("TW.PUT", "s", "a", "IN", 5, "KEEPDUE", "PAYLOAD", "2")
        assert pipe.execute() == ["a", 1, "a"]
    found = task(r, "s", "a")
    assert (found["due"], found["every"], found["payload"]) == (1000 + 2 * HOUR, None, ["2"])


# Counts, events

def test_a_task_whose_times_stay_is_not_filed_anew(server, r):
    due = now_ms() + HOUR
    put(r, "s", "a", "AT", due)
    counters = Counters(server)
    for words in (("TW.PUT", "s"), ("TW.SEND", "s", "q")):
        told = events_of(r, lambda some=words: r.execute_command(
            *some, "a", "IN", 5, "KEEPDUE", "PAYLOAD", "f", "v"))
        assert told == [words[0].lower()]
    assert (counters["put"], counters["replaced"]) == (0, 0)
    assert task(r, "s", "a")["due"] == due and task(r, "s", "a")["target"] == "q"
    r.execute_command("TW.PUT", "s", "b", "IN", HOUR, "KEEPDUE", "PAYLOAD", "v")
    assert (counters["put"], counters["replaced"]) == (1, 0)


# Targets

@pytest.mark.parametrize("options", [SLOWLY, ROUTES], ids=["same", "other"])
def test_a_task_whose_target_refuses_waits_on(server, r, options):
    r.set("q", "a string")
    add(r, "s", "q", "a", 1000, *SLOWLY)
    wait_until(lambda: server.tw()["held"] == 1)
    before, tries = task(r, "s", "a"), server.tw()["deferred_refused"]
    add(r, "s", "q", "a", 5, "KEEPDUE", *options, payload=("n", "other"))
    add(r, "s", "p", "elsewhere", now_ms())
    wait_delivered(r, "p", 1)
    found = task(r, "s", "a")
    assert (server.tw()["held"], server.tw()["deferred_refused"]) == (1, tries)
    for name in ("due", "next", "attempt", "state"):
        assert found[name] == before[name], name
    r.delete("q")
    assert r.execute_command("TW.PROMOTE", "s", "IDS", 1, "a") == 1
    assert wait_delivered(r, "q", 1) == ["a"]
    fields = r.xrange("q")[0][1]
    assert (fields["tw.due"], fields["tw.attempt"], fields["n"]) == ("1000", "2", "other")


@pytest.mark.parametrize("words", [("TW.SEND", "s", "other"), ("TW.PUT", "s")], ids=["sent", "put"])
def test_a_held_task_with_another_target_waits_until_the_same_time(fleet, words):
    """It was delivered at once, though nobody had promoted it. The log and the replica have its time."""
    server = fleet.server(appendonly="yes", aof_use_rdb_preamble="no")
    replica, r = fleet.server(replicaof=server), server.client()
    r.set("q", "a string")
    add(r, "s", "q", "a", 1000, *SLOWLY)
    wait_until(lambda: server.tw()["held"] == 1)
    before = task(r, "s", "a")
    assert before["next"] > now_ms() + HOUR // 2
    assert r.execute_command(*words, "a", "IN", 9 * HOUR, "KEEPDUE", "PAYLOAD", "f", "new") == "a"
    add(r, "s", "p", "elsewhere", now_ms())
    wait_delivered(r, "p", 1)
    found = looks(r)["a"]
    assert (found["due"], found["next"], found["attempt"]) == (1000, before["next"], 0)
    assert (found["state"], server.tw()["held"]) == ("waiting", 0)
    assert not r.exists("other") and not take(r, "s")
    wait_replica_in_sync(server, replica)
    assert looks(replica.client())["a"] == found
    server.kill()
    server.start()
    assert looks(server.client())["a"] == found


def test_a_blocked_worker_gets_a_task_that_had_a_target(server, r):
    r.set("q", "a string")
    add(r, "s", "q", "a", 1000, *SLOWLY)
    wait_until(lambda: server.tw()["held"] == 1)
    put(r, "s", "a", "IN", HOUR, "KEEPDUE", payload=("mine",))
    assert r.execute_command("TW.PROMOTE", "s", "ALL") == 1
    job = take(r, "s", options=("BLOCK", 60000))[0]
    assert (job.due, job.attempt, job.payload) == (1000, 1, ["mine"])
