# SPDX-License-Identifier: MIT
"""Tasks for workers: TW.PUT, TW.TAKE, TW.ACK, TW.NACK and TW.TOUCH, as docs/redis.md describes them. Dead
tasks and pauses are in test_dead.py, errors in test_errors.py, rights in test_acl.py."""
import re
import threading

import pytest
import redis

from harness import PATIENCE, Raw, as_map, delivered, in_order, now_ms, task, tasks, wait_until
from situations import Counters, dead_of, frozen, let_pass, put, take, wait_ready, wait_take, working

HOUR = 3600 * 1000
LAST, MOST = 253402300799999, 2**63 - 1
CENTURY = 3155760000000
ANY = bytes(range(256))


def get(client, name, queue="s"):
    return task(client, queue, name)


def ack(client, *jobs):
    words = [word for job in jobs for word in (job.id, job.token)]
    return client.execute_command("TW.ACK", jobs[0].queue, *words)


def nack(client, job, *words):
    return client.execute_command("TW.NACK", job.queue, job.id, job.token, *words)


def give_back(client, job):
    return nack(client, job, "BACK")


def touch(client, job, lease):
    return client.execute_command("TW.TOUCH", job.queue, job.id, job.token, "LEASE", lease)


# From TW.PUT to TW.ACK

def test_a_task_is_put_taken_and_acknowledged(r):
    due = now_ms() + 50
    assert put(r, "s", "a", "AT", due, payload=("one", "", "three")) == "a"
    assert get(r, "a")["state"] == "waiting" or now_ms() >= due
    job = wait_take(r, "s")
    assert now_ms() >= due
    assert job[:2] == ("s", "a") and job.due == due and job.attempt == 1 and job.payload == ["one", "", "three"]
    assert re.fullmatch("[0-9a-f]{16}", job.token)
    assert take(r, "s") == []
    assert ack(r, job) == 1
    assert r.exists("s") == 0


@pytest.mark.parametrize("protocol", [2, 3])
def test_replies_by_protocol(server, protocol):
    raw = Raw(server, protocol)
    assert raw("TW.PUT", "s", "a", "IN", 0, "PAYLOAD", "v") == "a"
    assert raw("TW.PUT", "s", "a", "IN", 0, "NX", "PAYLOAD", "v") is None
    reply = raw("TW.TAKE", 1, "s", "LEASE", 60000, "BLOCK", 60000)
    token = reply[0][2]
    assert [[*row[:2], *row[4:]] for row in reply] == [["s", "a", 1, ["v"], 0]]
    assert [type(word) for word in reply[0]] == [str, str, str, int, int, list, int]
    assert raw("TW.TAKE", 1, "s", "LEASE", 60000) is None
    assert isinstance(raw("TW.TOUCH", "s", "a", token, "LEASE", 60000), int)
    assert raw("TW.TOUCH", "s", "a", "0" * 16, "LEASE", 60000) is None
    assert isinstance(raw("TW.NACK", "s", "a", token), int)
    assert raw("TW.NACK", "s", "a", token) is None
    assert raw("TW.NACK", "s", "a", token, "BACK") is None
    assert raw("TW.ACK", "s", "a", token) == 0
    assert raw("TW.CANCEL", "s", "a") == [1]
    assert raw("TW.PUT", "s", "b", "AT", 1000, "PAYLOAD", "v") == "b"
    token = raw("TW.TAKE", 1, "s", "LEASE", 60000, "BLOCK", 60000)[0][2]
    assert raw("TW.NACK", "s", "b", token, "BACK") == 1000
    assert raw("TW.DEAD", "s") == []
    assert raw("TW.PAUSE", "s") == 1


@pytest.mark.parametrize("protocol,nothing", [(2, b"*-1"), (3, b"_")])
def test_no_task_is_the_same_nil_at_once_and_after_a_wait(server, protocol, nothing):
    raw = Raw(server, protocol)
    for words in (("TW.TAKE", 1, "s", "LEASE", 1), ("TW.TAKE", 1, "s", "LEASE", 1, "BLOCK", 1)):
        raw.send(*words)
        assert raw.line() == nothing, words


def test_a_new_id_for_each_task(r):
    names = [put(r, "s", "*", "IN", HOUR) for _ in range(50)]
    assert len(set(names)) == 50 and all(re.fullmatch(r"\d{13}-\d+", name) for name in names)
    assert sorted(tasks(r, "s")) == sorted(names)


def test_any_bytes_and_any_size(server):
    r = server.client(decode_responses=False)
    big = b"x" * 3000000
    r.execute_command("TW.PUT", ANY, ANY, "IN", 0, "PAYLOAD", ANY, b"", big)
    row = r.execute_command("TW.TAKE", 1, ANY, "LEASE", 60000, "BLOCK", 60000, "NAME", ANY[:255])[0]
    assert row[:2] == [ANY, ANY] and row[5] == [ANY, b"", big]
    assert as_map(r.execute_command("TW.GET", ANY, ANY)[0])[b"worker"] == ANY[:255]
    r.execute_command("TW.NACK", ANY, ANY, row[2], "ERROR", ANY * 16)
    assert as_map(r.execute_command("TW.GET", ANY, ANY)[0])[b"error"] == ANY * 16
    assert r.execute_command("TW.ACK", ANY, ANY, row[2]) == 0, "a failure leaves no token"


def test_many_strings_in_a_payload(r):
    payload = [str(i) for i in range(5000)]
    put(r, "s", "a", payload=payload)
    assert wait_take(r, "s").payload == payload


@pytest.mark.parametrize("words", [
    ("AT", LAST), ("AT", 0), ("IN", 0), ("IN", HOUR, "EVERY", CENTURY, "TIMES", MOST),
    ("IN", HOUR, "EVERY", 1, "TIMES", 1),
    ("IN", HOUR, "TRIES", 1), ("IN", HOUR, "TRIES", 1000000), ("IN", HOUR, "BACKOFF", 1, 1, 1),
    ("IN", HOUR, "BACKOFF", CENTURY, 100, CENTURY, "JITTER", 100),
    ("IN", HOUR, "BACKOFF", 1, "1.00", 1, "JITTER", 0),
    ("IN", HOUR, "MAXLATE", CENTURY), ("IN", HOUR, "MAXLATE", 0), ("IN", HOUR, "EVERY", 1, "MISSED", "burst"),
    ("in", HOUR, "tries", 3, "missed", "coalesce", "every", 5, "backoff", 10, "1.5", 1000, "jitter", 5, "times",
     9)],
    ids=lambda words: " ".join(map(str, words)))
def test_the_ends_of_each_range_are_in_it(r, words):
    assert put(r, "s", "a", *words) == "a"
    assert get(r, "a")["kind"] == "workers" and get(r, "a")["target"] == ""


def test_options_in_any_order(r):
    options = [("EVERY", "5000", "TIMES", "7"), ("MAXLATE", "9"), ("TRIES", "3"),
               ("BACKOFF", "10", "1.25", "1000", "JITTER", "0"), ("XX",)]
    at = now_ms() + HOUR
    put(r, "s", "a", "AT", at)
    seen = set()
    for turn in range(len(options)):
        words = [word for option in options[turn:] + options[:turn] for word in option]
        put(r, "s", "a", "AT", at, *words)
        found = get(r, "a")
        seen.add((found["every"], found["times"], found["missed"], found["max-late"],
                  r.execute_command("DEBUG", "DIGEST-VALUE", "s")[0]))
    assert len(seen) == 1 and next(iter(seen))[:4] == (5000, 7, "coalesce", 9)


@pytest.mark.parametrize("condition,before,allowed", [
    ("NX", True, False), ("NX", False, True), ("XX", True, True), ("XX", False, False)])
def test_conditions_on_presence(r, condition, before, allowed):
    if before:
        put(r, "s", "a", "IN", HOUR)
    assert put(r, "s", "a", "IN", 2 * HOUR, condition) == ("a" if allowed else None)


@pytest.mark.parametrize("state", ["waiting", "ready", "leased", "retried"])
def test_gt_and_lt_compare_with_the_due_time_of_the_user(r, state):
    due = now_ms() + (HOUR if state == "waiting" else 0)
    put(r, "s", "a", "AT", due)
    if state != "waiting":
        wait_ready(r, "s")
    if state in ("leased", "retried"):
        job = take(r, "s", lease=2 * HOUR)[0]
    if state == "retried":
        nack(r, job, "IN", HOUR)
    assert put(r, "s", "a", "AT", due, "GT") is None
    assert put(r, "s", "a", "AT", due, "LT") is None
    assert put(r, "s", "a", "AT", due + 1, "GT") == "a"
    assert put(r, "s", "a", "AT", due, "LT") == "a"


# TW.TAKE

def test_the_clock_alone_makes_a_task_ready(r):
    """No tick comes in a transaction. Other tasks that are due then keep their places."""
    with r.pipeline(transaction=True) as pipe:
        for name in ("x", "y"):
            pipe.execute_command("TW.SEND", "s", "q", name, "AT", 1000, "PAYLOAD", "f", "v")
            put(pipe, "other", name, "AT", 1000)
        put(pipe, "s", "later", "IN", HOUR)
        for name in ("a", "b", "c"):
            put(pipe, "s", name, "AT", 2000)
        put(pipe, "s", "late", "AT", 2000, "MAXLATE", 0)
        put(pipe, "s", "d", "AT", 500)
        for count in (2, 1, 9):
            pipe.execute_command("TW.TAKE", 2, "none", "s", "LEASE", HOUR, "COUNT", count)
        *_, first, second, rest = pipe.execute()
    assert [[row[1] for row in rows] for rows in (first, second, rest)] == [["a", "b"], ["c"], ["d"]]
    assert [wait_take(r, "other").id for _ in range(2)] == ["x", "y"]
    wait_until(lambda: delivered(r, "q") == ["x", "y"])
    assert tasks(r, "s").keys() == {"a", "b", "c", "d", "later"}


def test_a_take_looks_at_few_tasks_that_others_wait_for(r):
    with r.pipeline(transaction=True) as pipe:
        for i in range(150):
            put(pipe, "other", str(i), "AT", 1000)
        put(pipe, "s", "a", "AT", 1000)
        pipe.execute_command("TW.TAKE", 1, "s", "LEASE", HOUR)
        assert pipe.execute()[-1] is None
    assert wait_take(r, "s").id == "a"
    wait_ready(r, "other", 150)
    assert [job.id for job in take(r, "other", options=("COUNT", 150))] == [str(i) for i in range(150)]


LEASE_THAT_ENDS = """
local job = redis.call('TW.TAKE', 1, KEYS[1], 'LEASE', 1)[1]
repeat
    local remaining = redis.call('TW.GET', KEYS[1], job[2])[1][4]
until remaining == 0
redis.call('TW.PUT', KEYS[1], 'b', 'IN', 0, 'PAYLOAD', 'v')
local found = redis.call('TW.TAKE', 1, KEYS[1], 'LEASE', 3600000, 'COUNT', 9)
return {#found, found[1][2], redis.call('TW.TOUCH', KEYS[1], job[2], job[3], 'LEASE', 3600000) and 1}
"""


def test_a_take_ends_no_lease(r):
    """A lease ends in a tick, and until then its worker may hold on to the task."""
    put(r, "s", "a", "AT", 1000)
    assert r.eval(LEASE_THAT_ENDS, 1, "s") == [1, "b", 1]
    assert (get(r, "a")["lapses"], get(r, "a")["state"]) == (0, "leased")


def test_the_order_is_that_of_due_times_and_then_of_filing(clock, r):
    due = clock.now() + 100
    for name, at in (("c", due + 2), ("x", due), ("b", due + 1), ("a", due), ("z", due)):
        put(r, "s", name, "AT", at)
    clock.reach(due + 2)
    wait_ready(r, "s", 5)
    assert [job.id for job in take(r, "s", options=("COUNT", 100))] == ["x", "a", "z", "b", "c"]


@pytest.mark.parametrize("how", ["TW.PUT", "TW.NACK", "TW.REPLAY"])
def test_passed_times_come_in_the_order_of_filing(clock, server, r, how):
    """No tick has run since the times passed, so the wheel stands before them."""
    names, raw, jobs = ["third", "second", "first"], Raw(server), []
    if how != "TW.PUT":
        for name in names:
            put(r, "s", name)
        wait_ready(r, "s", 3)
        jobs = take(r, "s", options=("COUNT", 3))
    if how == "TW.REPLAY":
        assert [nack(r, job, "DEAD") for job in jobs] == [0, 0, 0]
    with frozen(server):
        clock.push(300)
        times = [("AT", clock.now() - 10 * i) for i in (1, 2, 3)]
        raw.send_all({"TW.PUT": [("TW.PUT", "s", name, *at, "PAYLOAD", "v") for name, at in zip(names, times)],
                      "TW.NACK": [("TW.NACK", "s", *job[1:3], *at) for job, at in zip(jobs, times)],
                      "TW.REPLAY": [("TW.REPLAY", "s", "IDS", 1, name, *at)
                                    for name, at in zip(names, times)]}[how])
    assert all(raw.read() for _ in names)
    wait_ready(r, "s", 3)
    assert [job.id for job in take(r, "s", options=("COUNT", 3))] == names


def test_count_takes_at_most_so_many(r):
    for i in range(25):
        put(r, "s", f"t{i}", "AT", 1000 + i)
    wait_ready(r, "s", 25)
    got = [[job.id for job in take(r, "s", options=("COUNT", n))] for n in (1, 10, 10000, 1)]
    assert [len(one) for one in got] == [1, 10, 14, 0]
    assert sum(got, []) == [f"t{i}" for i in range(25)]


def test_without_count_one_task(r):
    put(r, "s", "a"), put(r, "s", "b")
    wait_ready(r, "s", 2)
    assert [len(take(r, "s")) for _ in range(3)] == [1, 1, 0]


def test_several_queues_in_the_order_of_the_keys(r):
    for queue in ("low", "high"):
        for i in range(2):
            put(r, queue, f"{queue}{i}")
        wait_ready(r, queue, 2)
    jobs = take(r, "none", "high", "low", "high", options=("COUNT", 3))
    assert [(job.queue, job.id) for job in jobs] == [("high", "high0"), ("high", "high1"), ("low", "low0")]


def test_as_many_queues_as_a_worker_may_name(r):
    names = [f"s{i}" for i in range(10000)]
    put(r, names[-1], "a")
    assert wait_take(r, *names).id == "a"


def test_tokens_differ(r):
    for i in range(300):
        put(r, "s", f"t{i}")
    wait_ready(r, "s", 300)
    tokens = {job.token for job in take(r, "s", options=("COUNT", 300))}
    assert len(tokens) == 300 and "0" * 16 not in tokens


def test_options_of_take_in_any_order_and_any_case(r):
    for i, words in enumerate([("lease", HOUR, "count", 1, "name", "w", "block", 60000),
                               ("BLOCK", 60000, "NAME", "w", "COUNT", 1, "LEASE", HOUR)]):
        put(r, "s", f"t{i}")
        reply = r.execute_command("TW.TAKE", 1, "s", *words)
        assert reply[0][1] == f"t{i}" and get(r, f"t{i}")["worker"] == "w"


@pytest.mark.parametrize("lease", [1, 2**32 - 1])
def test_the_shortest_and_the_longest_lease(r, lease):
    put(r, "s", "a", "IN", 0, "BACKOFF", HOUR, 1, HOUR)
    before = now_ms()
    wait_take(r, "s", lease=lease)
    if lease == 1:
        wait_until(lambda: get(r, "a")["error"] == "the lease ran out")
    else:
        assert before + lease <= get(r, "a")["next"] <= now_ms() + lease


def test_get_shows_each_state(r):
    before = now_ms()
    put(r, "s", "a", "AT", before)
    wait_ready(r, "s")
    found = get(r, "a")
    assert (found["state"], found["attempt"], found["due"], found["next"], found["worker"],
            found["error"]) == ("ready", 0, before, before, "", "")
    job = take(r, "s", options=("NAME", "worker 1"), lease=HOUR)[0]
    found = get(r, "a")
    assert [found[name] for name in ("state", "attempt", "due", "worker")] == ["leased", 1, before, "worker 1"]
    assert 0 < found["remaining"] <= HOUR
    assert before + HOUR <= found["next"] <= now_ms() + HOUR
    at = nack(r, job, "IN", HOUR, "ERROR", "no luck")
    found = get(r, "a")
    assert (found["state"], found["attempt"], found["due"], found["next"], found["worker"],
            found["error"]) == ("waiting", 1, before, at, "worker 1", "no luck")


def test_ready_and_leased_tasks_are_no_part_of_next_range_and_forecast(r):
    for name in ("ready", "leased", "retried"):
        put(r, "s", name, "AT", 1000)
    put(r, "s", "waiting", "IN", HOUR)
    wait_ready(r, "s", 3)
    jobs = {job.id: job for job in take(r, "s", options=("COUNT", 3))}
    give_back(r, jobs["ready"])
    at = nack(r, jobs["retried"], "IN", 60000)
    wait_ready(r, "s")
    waiting = r.execute_command("TW.GET", "s", "waiting")
    assert r.execute_command("TW.NEXT", "s") == ["retried", 1000, at]
    assert [(name, next_ms) for name, _, next_ms in in_order(r.execute_command, "s")] == [
        ("retried", at), ("waiting", as_map(waiting[0])["due"])]
    assert sum(r.execute_command("TW.FORECAST", "s", "STEP", HOUR, "STEPS", 2)) == 2
    assert r.execute_command("TW.LEN", "s") == 4
    assert tasks(r, "s") == {"ready": 1000, "leased": 1000, "retried": 1000,
                             "waiting": as_map(waiting[0])["due"]}


# Blocking

def blocked(server, *words, queues=("s", )):
    """Returns a connection whose TW.TAKE has begun to wait."""
    count = server.info("clients")["blocked_clients"]
    raw = Raw(server)
    raw.send("TW.TAKE", len(queues), *queues, *words)
    wait_until(lambda: server.info("clients")["blocked_clients"] == count + 1)
    return raw


def test_workers_are_served_in_the_order_of_waiting(server, r):
    waiting = [blocked(server, "LEASE", HOUR, "BLOCK", 0, "NAME", f"w{i}") for i in range(5)]
    for i in range(5):
        put(r, "s", f"t{i}", "AT", 1000 + i)
    assert [one.read()[0][1] for one in waiting] == [f"t{i}" for i in range(5)]
    assert [get(r, f"t{i}")["worker"] for i in range(5)] == [f"w{i}" for i in range(5)]


def test_a_worker_waits_for_keys_that_do_not_exist_yet(server, r):
    waiting = blocked(server, "LEASE", HOUR, "BLOCK", 0, "COUNT", 7, queues=("a", "b", "c"))
    put(r, "b", "t", "IN", 100)
    assert waiting.read()[0][:2] == ["b", "t"]


def test_a_blocked_worker_takes_several_tasks_that_become_ready_together(server, r):
    waiting = blocked(server, "LEASE", HOUR, "BLOCK", 0, "COUNT", 3)
    due = now_ms() + 200
    with r.pipeline(transaction=True) as all_at_once:
        for i in range(5):
            all_at_once.execute_command("TW.PUT", "s", f"t{i}", "AT", due, "PAYLOAD", "v")
        all_at_once.execute()
    assert [row[1] for row in waiting.read()] == ["t0", "t1", "t2"]
    assert [job.id for job in take(r, "s", options=("COUNT", 9))] == ["t3", "t4"]


def test_a_wait_ends_after_its_time(server):
    began = now_ms()
    assert take(server.client(), "s", options=("BLOCK", 100)) == []
    assert now_ms() - began >= 99


def test_a_worker_that_leaves_takes_nothing(server, r):
    first, second = (blocked(server, "LEASE", HOUR, "BLOCK", 0) for _ in range(2))
    first.close()
    wait_until(lambda: server.info("clients")["blocked_clients"] == 1)
    put(r, "s", "a")
    assert second.read()[0][1] == "a"
    assert get(r, "a")["attempt"] == 1


def test_workers_that_hang_cost_attempts_until_their_waits_are_over(server, r):
    """They stay connected, and do nothing with their tasks. Each gets one at most, and none after its wait."""
    over = [Raw(server) for _ in range(3)]
    assert [one("TW.TAKE", 1, "s", "LEASE", 1, "BLOCK", 1) for one in over] == [None] * 3
    hung = [blocked(server, "LEASE", 1, "BLOCK", 0) for _ in range(4)]
    lives = blocked(server, "LEASE", HOUR, "BLOCK", 0)
    put(r, "s", "a", "IN", 0, "TRIES", 5, "BACKOFF", 1, 1, 1)
    row = lives.read()[0]
    assert (row[1], row[4], len(hung)) == ("a", 5, 4)


def test_client_unblock(server, r):
    waiting = Raw(server)
    ident = waiting("CLIENT", "ID")
    waiting.send("TW.TAKE", 1, "s", "LEASE", 5, "BLOCK", 0)
    wait_until(lambda: server.info("clients")["blocked_clients"] == 1)
    assert r.client_unblock(ident) == 1
    assert waiting.read() is None
    waiting.send("TW.TAKE", 1, "s", "LEASE", 5, "BLOCK", 0)
    wait_until(lambda: server.info("clients")["blocked_clients"] == 1)
    assert r.client_unblock(ident, error=True) == 1
    assert "UNBLOCKED" in waiting.read()


@pytest.mark.parametrize("rename", [False, True], ids=["type", "rename"])
def test_a_key_of_another_type_wakes_nobody(server, r, rename):
    waiting = blocked(server, "LEASE", HOUR, "BLOCK", 0)
    r.rpush("s", "v")
    r.delete("s")
    put(r, "other" if rename else "s", "a", "AT", 1000)
    if rename:
        wait_ready(r, "other")
        r.rename("other", "s")
    assert waiting.read()[0][:2] == ["s", "a"]


def test_multi_and_scripts_do_not_block(server, r):
    with r.pipeline(transaction=True) as pipe:
        pipe.execute_command("TW.TAKE", 1, "s", "LEASE", 5, "BLOCK", 0)
        assert pipe.execute() == [None]
    assert r.eval("return redis.call('TW.TAKE', 1, KEYS[1], 'LEASE', 5, 'BLOCK', 0)", 1, "s") is None
    put(r, "s", "a"), put(r, "s", "b")
    wait_ready(r, "s", 2)
    with r.pipeline(transaction=True) as pipe:
        pipe.execute_command("TW.TAKE", 1, "s", "LEASE", HOUR)
        assert pipe.execute()[0][0][1] == "a"
    assert r.eval("""local job = redis.call('TW.TAKE', 1, KEYS[1], 'LEASE', 50000)[1]
                     return {job[2], redis.call('TW.ACK', KEYS[1], job[2], job[3])}""", 1, "s") == ["b", 1]


def test_work_in_one_transaction_with_its_results(r):
    put(r, "s", "a")
    job = wait_take(r, "s")
    with r.pipeline(transaction=True) as pipe:
        pipe.incr("balance")
        pipe.execute_command("TW.ACK", "s", "a", job.token)
        pipe.execute_command("TW.PUT", "s", "follow-up", "IN", HOUR, "PAYLOAD", "v")
        assert pipe.execute() == [1, 1, "follow-up"]


@pytest.mark.parametrize("words", [
    ("TW.PUT", "s", "b", "IN", HOUR, "PAYLOAD", "v"), ("TW.ACK", "s", "a", "TOKEN"),
    ("TW.NACK", "s", "a", "TOKEN"), ("TW.NACK", "s", "a", "TOKEN", "DEAD"),
    ("TW.NACK", "s", "a", "TOKEN", "BACK"), ("TW.PAUSE", "s"),
    ("TW.TOUCH", "s", "a", "TOKEN", "LEASE", 5000), ("TW.TAKE", 1, "s", "LEASE", 5000)],
                         ids=lambda words: " ".join(map(str, words[:1])))
def test_watch_sees_each_change(server, r, words):
    put(r, "s", "a"), put(r, "s", "ready")
    wait_ready(r, "s", 2)
    job = take(r, "s")[0]
    other = server.client()
    with r.pipeline(transaction=True) as pipe:
        pipe.watch("s")
        other.execute_command(*[job.token if word == "TOKEN" else word for word in words])
        pipe.multi()
        pipe.set("k", "v")
        with pytest.raises(redis.exceptions.WatchError):
            pipe.execute()


def test_watch_does_not_see_a_command_that_changes_nothing(server, r):
    put(r, "s", "a", "IN", HOUR)
    with r.pipeline(transaction=True) as pipe:
        pipe.watch("s")
        for words in (("TW.ACK", "s", "a", "0" * 16), ("TW.NACK", "s", "a", "0" * 16), ("TW.RESUME", "s"),
                      ("TW.TOUCH", "s", "a", "0" * 16, "LEASE", 5), ("TW.REPLAY", "s", "IDS", 1, "a"),
                      ("TW.NACK", "s", "a", "0" * 16, "BACK"),
                      ("TW.PURGE", "s", "ALL"), ("TW.TAKE", 1, "s", "LEASE", 5)):
            server.client().execute_command(*words)
        pipe.multi()
        pipe.set("k", "v")
        assert pipe.execute() == [True]


# TW.ACK

def test_an_ack_of_many(r):
    for i in range(100):
        put(r, "s", f"t{i}")
    wait_ready(r, "s", 100)
    jobs = take(r, "s", options=("COUNT", 100))
    assert ack(r, *jobs[:99], jobs[0], jobs[0]._replace(id="none"), jobs[99]._replace(token="f" * 16)) == 99
    assert ack(r, *jobs) == 1
    assert r.exists("s") == 0


@pytest.mark.parametrize("token", ["", "0" * 16, "f" * 16, "x" * 16, "0" * 15, "0" * 17, "UPPER", "-1", "0x",
                                   ANY])
def test_a_token_that_was_never_given_out(r, token):
    put(r, "s", "a"), put(r, "s", "waiting", "IN", HOUR)
    job = wait_take(r, "s")
    token = f"{job.token[:-1]}A" if token == "UPPER" else token
    before = get(r, "a")["next"]
    for name in ("a", "waiting", "none"):
        other = job._replace(id=name, token=token)
        assert ack(r, other) == 0 and nack(r, other) is None and touch(r, other, 5) is None
        assert give_back(r, other) is None
    assert get(r, "a")["next"] == before
    assert r.execute_command("TW.ACK", "none", "a", job.token) == 0


@pytest.mark.parametrize("way", ["taken again", "cancelled", "done", "dead", "given back",
                                 "given back and taken again"])
def test_a_token_dies(r, way):
    put(r, "s", "a")
    old = wait_take(r, "s")
    if way == "taken again":
        nack(r, old, "IN", 0)
        wait_take(r, "s")
    elif way == "cancelled":
        assert r.execute_command("TW.CANCEL", "s", "a") in ([1], [2])
    elif way == "done":
        ack(r, old)
    elif way.startswith("given back"):
        give_back(r, old)
        assert way == "given back" or wait_take(r, "s").attempt == 1
    else:
        nack(r, old, "DEAD")
    before = r.execute_command("DEBUG", "DIGEST-VALUE", "s")
    assert ack(r, old) == 0 and nack(r, old) is None and touch(r, old, 5) is None
    assert give_back(r, old) is None
    assert r.execute_command("DEBUG", "DIGEST-VALUE", "s") == before


def test_an_ack_counts_after_the_lease_until_the_task_is_taken_again(r):
    put(r, "s", "late", "IN", 0, "BACKOFF", HOUR, 1, HOUR), put(r, "s", "ready", "IN", 0, "BACKOFF", 1, 1, 1)
    wait_ready(r, "s", 2)
    jobs = {job.id: job for job in take(r, "s", lease=1, options=("COUNT", 2))}
    wait_until(lambda: get(r, "late")["state"] == "waiting" and get(r, "ready")["state"] == "ready")
    for job in jobs.values():
        assert nack(r, job) is None and touch(r, job, 1000) is None and give_back(r, job) is None
    assert ack(r, *jobs.values()) == 2
    assert r.exists("s") == 0


# TW.NACK

def test_the_forms_of_nack(r):
    forms = [(("IN", 5000), 5000, ""), (("IN", 0), 0, ""), ((), 1000, ""), (("ERROR", "text"), 1000, "text"),
             (("in", 7, "error", ""), 7, ""), (("ERROR", "text", "IN", 7), 7, "text"),
             (("ERROR", "IN", "IN", 7), 7, "IN"), (("IN", 7, "ERROR", "DEAD"), 7, "DEAD")]
    for i, (words, wait, error) in enumerate(forms):
        put(r, "s", f"t{i}")
        job = wait_take(r, "s")
        began = now_ms()
        at = nack(r, job, *words)
        about = 100 if wait == 1000 else 0  # The default backoff has jitter.
        assert began + wait - about <= at <= now_ms() + wait + about, words
        assert get(r, job.id)["error"] == error
        r.execute_command("TW.CANCEL", "s", job.id)


@pytest.mark.parametrize("text,kept", [("x" * 4096, 4096), ("x" * 5000, 4096), ("\u00e4" * 4096, 4096),
                                       ("x" + "\u00e4" * 4096, 4095), ("xx" + "\u20ac" * 4096, 4094),
                                       ("x" * 2**20, 4096)], ids=range(6))
def test_a_long_error_is_cut_at_a_character_and_the_attempt_ends(r, text, kept):
    put(r, "s", "a", "IN", 0, "TRIES", 2)
    assert nack(r, wait_take(r, "s"), "IN", 0, "ERROR", text) > 0
    shown = get(r, "a")
    assert shown["state"] in ("waiting", "ready") and shown["error"] == text.encode()[:kept].decode()
    assert nack(r, wait_take(r, "s"), "ERROR", text) == 0
    assert dead_of(r, "s")[0].error == text.encode()[:kept].decode()


def test_a_full_server_keeps_the_end_of_an_attempt_without_its_error(r):
    """The texts took memory past maxmemory: that of ERROR, and the NAME of a worker for each task."""
    for name in ("a", "b"):
        put(r, "s", name, "AT", 1000)
    wait_ready(r, "s", 2)
    r.config_set("maxmemory", 1)
    jobs = take(r, "s", options=("COUNT", 2, "NAME", "w" * 255))
    assert [get(r, name)["worker"] for name in ("a", "b")] == ["", ""]
    assert nack(r, jobs[0], "AT", LAST, "ERROR", "x" * 4000) == LAST
    assert nack(r, jobs[1], "ERROR", "x" * 4000, "DEAD") == 0
    assert (get(r, "a")["state"], get(r, "a")["error"]) == ("waiting", "")
    assert (get(r, "b")["state"], get(r, "b")["error"]) == ("dead", "")
    r.config_set("maxmemory", 0)
    put(r, "s", "c")
    assert nack(r, wait_take(r, "s"), "ERROR", "x" * 4000, "DEAD") == 0
    assert get(r, "c")["error"] == "x" * 4000


@pytest.mark.parametrize("at", [0, 1, 1000, LAST])
def test_nack_at_a_time(r, at):
    put(r, "s", "a")
    assert nack(r, wait_take(r, "s"), "AT", at) == max(at, 1)
    if at < LAST:
        assert wait_take(r, "s").attempt == 2
    else:
        assert get(r, "a")["next"] == LAST


def test_nack_dead_and_the_last_try(r):
    put(r, "s", "a"), put(r, "s", "b", "AT", 0, "TRIES", 1), put(r, "s", "c", "AT", 1, "TRIES", 2)
    wait_ready(r, "s", 3)
    jobs = {job.id: job for job in take(r, "s", options=("COUNT", 3))}
    assert nack(r, jobs["a"], "ERROR", "hopeless", "DEAD") == 0
    assert nack(r, jobs["b"], "IN", 5) == 0
    assert nack(r, jobs["c"], "IN", 5) > 0
    assert nack(r, wait_take(r, "s"), "IN", 5, "ERROR", "again") == 0
    assert [[row[0], row[3], row[4]] for row in dead_of(r, "s")] == [["a", 1, "hopeless"], ["b", 1, ""],
                                                                    ["c", 2, "again"]]


@pytest.mark.parametrize("backoff,waits", [
    ((100, 1, 1000), [100, 100, 100]), ((100, 2, 350), [100, 200, 350, 350]),
    ((100, "1.5", 1000), [100, 150, 225, 337]), ((1, "1.01", 1000), [1, 2, 3]),
    ((500, "2.25", 400), [400, 400]), ((CENTURY, 100, CENTURY), [CENTURY])], ids=str)
def test_backoff(r, backoff, waits):
    """The waits are those of the option, from one failed attempt to the next."""
    put(r, "s", "a", "IN", 0, "TRIES", 1000, "BACKOFF", *backoff, "JITTER", 0)
    for wait in waits:
        job = wait_take(r, "s")
        began = now_ms()
        at = nack(r, job)
        assert began + wait <= at <= now_ms() + wait
        if wait > 400:
            break


def test_jitter_spreads_the_waits_on_both_sides(r):
    for i in range(60):
        put(r, "s", f"t{i}", "IN", 0, "BACKOFF", 100000, 1, 100000, "JITTER", 50)
    wait_ready(r, "s", 60)
    jobs = take(r, "s", options=("COUNT", 60))
    began = now_ms()
    waits = [nack(r, job) - began for job in jobs]
    slack = now_ms() - began
    assert all(50000 <= wait <= 150000 + slack for wait in waits)
    assert min(waits) < 90000 and max(waits) > 110000 and len(set(waits)) > 40


@pytest.mark.parametrize("words,percent", [(("JITTER", 50), 50), (("JITTER", 0), 0), ((), 10)], ids=str)
def test_jitter_is_a_function_of_the_token(clock, r, words, percent):
    """So each home, and each look, reckons the same time. A given backoff has the default jitter."""
    for wait in (100000, 7):
        put(r, "s", "a", "AT", 1000, "BACKOFF", wait, 1, wait, *words)
        job = wait_take(r, "s")
        reach = wait * percent // 100
        token = int(job.token, 16) & (2**63 - 1)
        assert nack(r, job) - clock.now() == wait - reach + token % (2 * reach + 1)


def test_a_jitter_that_is_left_out_follows_its_setting(clock, r):
    put(r, "s", "a", "AT", 1000, "BACKOFF", 1000, 1, 1000)
    job = wait_take(r, "s")
    r.config_set("tickwheel.jitter", 0)
    assert nack(r, job) - clock.now() == 1000


def test_a_task_that_keeps_failing_dies_after_twenty_failures_and_eight_hours(clock, r):
    """The table of the contract, with each wait shorter or longer by a tenth at most."""
    put(r, "s", "a", "AT", 1000)
    waits = [min(1000 * 2**n, 3600000) for n in range(19)]
    for failure, wait in enumerate(waits, 1):
        job, reach = wait_take(r, "s"), wait // 10
        at = nack(r, job)
        token = int(job.token, 16) & (2**63 - 1)
        assert (job.attempt, at - clock.now()) == (failure, wait - reach + token % (2 * reach + 1))
        clock.push(at - clock.now())
    assert nack(r, wait_take(r, "s")) == 0 and sum(waits) == 29295000


def test_settings_are_the_defaults(r):
    for name, value in (("tries", 2), ("backoff-ms", 50000), ("backoff-factor-percent", 300),
                        ("backoff-max-ms", 120000), ("jitter", 0)):
        r.config_set(f"tickwheel.{name}", value)
    put(r, "s", "a")
    job = wait_take(r, "s")
    began = now_ms()
    assert began + 50000 <= nack(r, job) <= now_ms() + 50000
    r.config_set("tickwheel.tries", 3)  # A task without its own TRIES follows the setting.
    r.execute_command("TW.NACK", "s", "a", job.token)
    put(r, "s", "b", "IN", 0, "TRIES", 1)
    assert nack(r, wait_take(r, "s")) == 0


def test_a_retry_for_the_time_0_has_another_reply_than_a_death(r):
    put(r, "s", "a")
    assert nack(r, wait_take(r, "s"), "AT", 0) == 1
    assert get(r, "a")["next"] == 0
    assert nack(r, wait_take(r, "s"), "DEAD") == 0


# TW.NACK BACK

def seen(client, name):
    """All that TW.GET tells of a task, but for the time left."""
    return {**get(client, name), "remaining": 0}


@pytest.mark.parametrize("words", [("AT", 1000), ("AT", 1000, "EVERY", 10, "TIMES", 3), ("IN", 0, "TRIES", 1),
                                   ("AT", 0)], ids=str)
def test_a_task_that_is_given_back_is_as_if_it_had_not_been_taken(server, r, words):
    """Again and again, also with one try: nothing counts."""
    put(r, "s", "a", *words, payload=("one", "", "three"))
    wait_ready(r, "s")
    before, size = seen(r, "a"), server.tw()["bytes"]
    for _ in range(5):
        job = take(r, "s", options=("NAME", "worker 1"))[0]
        assert (job.attempt, job.payload) == (1, ["one", "", "three"])
        assert server.tw()["bytes"] > size
        assert give_back(r, job) == max(before["due"], 1)
        assert (seen(r, "a"), server.tw()["bytes"]) == (before, size)
        found = server.tw()
        assert [found[name] for name in ("ready", "leased", "dead", "tasks")] == [1, 0, 0, 1]
    assert ack(r, take(r, "s")[0]) == 1


def test_an_earlier_attempt_and_its_error_stay(r):
    put(r, "s", "a", "AT", 1000, "TRIES", 2)
    nack(r, wait_take(r, "s", options=("NAME", "w1")), "IN", 0, "ERROR", "no luck")
    wait_ready(r, "s")
    retry = get(r, "a")["next"]
    for _ in range(3):
        job = take(r, "s", options=("NAME", "w2"))[0]
        assert job.attempt == 2
        assert give_back(r, job) == retry > 1000
        found = get(r, "a")
        assert [found[name] for name in ("state", "attempt", "next", "worker", "error")] == [
            "ready", 1, retry, "", "no luck"]
    assert nack(r, take(r, "s")[0], "ERROR", "again") == 0
    assert dead_of(r, "s")[0][3:] == (2, "again", 0, None)


def test_a_period_that_is_given_back_is_worked_on_later(r):
    due = now_ms()
    put(r, "s", "a", "AT", due, "EVERY", HOUR, "TIMES", 2)
    assert give_back(r, wait_take(r, "s")) == due
    assert (get(r, "a")["due"], get(r, "a")["times"]) == (due, 2)
    assert ack(r, take(r, "s")[0]) == 1
    assert (get(r, "a")["due"], get(r, "a")["times"]) == (due + HOUR, 1)


@pytest.mark.parametrize("back", [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]], ids=str)
def test_a_task_that_is_given_back_has_its_place(r, back):
    """By due time, whoever gives back first; before the tasks that were behind it."""
    for i in range(6):
        put(r, "s", f"t{i}", "AT", 1000 + i)
    wait_ready(r, "s", 6)
    jobs = take(r, "s", options=("COUNT", 4))
    put(r, "s", "late", "AT", 2000)
    wait_ready(r, "s", 3)
    for i in back:
        give_back(r, jobs[i])
    assert [job.id for job in take(r, "s", options=("COUNT", 9))] == [*(f"t{i}" for i in range(6)), "late"]


def test_tasks_that_are_due_together_have_their_old_order(r):
    for i in range(6):
        put(r, "s", f"t{i}", "AT", 1000)
    wait_ready(r, "s", 6)
    jobs = take(r, "s", options=("COUNT", 4))
    for i in (2, 0, 3):
        give_back(r, jobs[i])
    assert [job.id for job in take(r, "s", options=("COUNT", 9))] == ["t0", "t2", "t3", "t4", "t5"]


def test_retries_that_are_given_back_have_their_place_among_retries(clock, r):
    """By the times for which they waited, and not by their due times."""
    for i in range(4):
        put(r, "s", f"t{i}", "AT", 1000 + i)
    wait_ready(r, "s", 4)
    at = clock.now() + 10  # While the clock stands, all of them are filed before any is ready.
    for job, more in zip(take(r, "s", options=("COUNT", 4)), (3, 2, 1, 0)):
        assert nack(r, job, "AT", at + more) == at + more
    clock.push(20)
    wait_ready(r, "s", 4)
    jobs = take(r, "s", options=("COUNT", 3))
    assert [job.id for job in jobs] == ["t3", "t2", "t1"]
    for i in (1, 2, 0):
        assert give_back(r, jobs[i]) == at + i
    assert [job.id for job in take(r, "s", options=("COUNT", 9))] == ["t3", "t2", "t1", "t0"]


def test_a_task_is_given_back_in_a_pause(server, r):
    put(r, "s", "a")
    job = wait_take(r, "s")
    r.execute_command("TW.PAUSE", "s")
    give_back(r, job)
    assert (get(r, "a")["state"], take(r, "s"), server.tw()["paused_tasks"]) == ("ready", [], 0)
    r.execute_command("TW.RESUME", "s")
    assert take(r, "s")[0].attempt == 1


def test_a_promoted_task_that_is_given_back_stays_ready(r):
    due = now_ms() + HOUR
    put(r, "s", "a", "AT", due)
    assert r.execute_command("TW.PROMOTE", "s", "ALL") == 1
    wait_ready(r, "s")
    before = seen(r, "a")
    assert give_back(r, take(r, "s")[0]) == before["next"] < due
    assert seen(r, "a") == before
    found = get(r, "a")
    assert (found["state"], found["due"], found["attempt"]) == ("ready", due, 0)
    assert take(r, "s")[0].attempt == 1


def test_giving_back_does_not_hide_how_old_the_line_is(server, r):
    put(r, "s", "a", "AT", 1000), put(r, "s", "b", "AT", 1001)
    wait_ready(r, "s", 2)
    age = working(r, "s")["oldest-ready"]
    wait_until(lambda: working(r, "s")["oldest-ready"] >= age + 30)
    give_back(r, take(r, "s")[0])
    assert working(r, "s")["oldest-ready"] >= 30 and server.tw()["oldest_ready_ms"] >= 30


def test_give_back_in_a_transaction_and_in_a_script(r):
    put(r, "s", "a", "AT", 1000)
    job = wait_take(r, "s")
    with r.pipeline(transaction=True) as pipe:
        give_back(pipe, job)
        pipe.execute_command("TW.TAKE", 1, "s", "LEASE", HOUR)
        back, [[_, name, token, *_]] = pipe.execute()
    assert (back, name) == (1000, "a") and token != job.token
    assert r.eval("return redis.call('TW.NACK', KEYS[1], 'a', ARGV[1], 'BACK')", 1, "s", token) == 1000
    assert get(r, "a")["state"] == "ready"


# Leases

@pytest.mark.parametrize("tries", [1, 1000])
def test_the_seventeenth_lapse_kills(clock, server, r, tries):
    """A lapse is no failure, so the tries do not count. The clock stands but for the end of each lease: after a
    server has stood still, leases begin anew."""
    counters = Counters(server)
    put(r, "s", "a", "IN", 0, "TRIES", tries, "BACKOFF", 1, 1, 1)
    jobs = []
    for lapses in range(17):
        jobs.append(wait_take(r, "s", lease=HOUR))
        assert (jobs[-1].attempt, get(r, "a")["lapses"], dead_of(r, "s")) == (lapses + 1, lapses, [])
        touch(r, jobs[-1], 1)
        clock.elapse(2)  # the end of the lease, and the wait behind it
    wait_until(lambda: dead_of(r, "s"))
    name, due, dead, *rest = dead_of(r, "s")[0]
    assert (name, due, *rest) == ("a", jobs[0].due, 17, "the lease ran out", 17, None) and dead <= clock.now()
    assert get(r, "a")["lapses"] == 17 and len({job.token for job in jobs}) == 17
    assert [counters[name] for name in ("lapsed", "died", "failed", "renewed")] == [17, 1, 0, 0]
    assert ack(r, jobs[-1]) == 0
    r.execute_command("TW.REPLAY", "s", "IDS", 1, "a")
    assert (get(r, "a")["attempt"], get(r, "a")["lapses"], get(r, "a")["error"]) == (0, 0, "")


def test_a_failure_counts_and_a_lapse_does_not(clock, server, r):
    """The wait after a lapse is that of the failure that did not come. It makes no later wait longer."""
    put(r, "s", "a", "AT", 1000, "TRIES", 3, "BACKOFF", 100, 3, 100000, "JITTER", 0)
    for wait, lapses in ((100, 0), (300, 0), (300, 1)):
        job = wait_take(r, "s", lease=400)
        if (wait, lapses) == (300, 0):
            clock.push(500)
            wait_until(lambda: server.tw()["renewed"] == 1)  # Nobody was heard in that time.
            end = get(r, "a")["next"]
            clock.push(500)
            wait_until(lambda: get(r, "a")["state"] != "leased")
            assert get(r, "a")["next"] == end + wait, "it counts from the end of the lease"
        else:
            assert nack(r, job) == clock.now() + wait
        assert get(r, "a")["lapses"] == lapses + ((wait, lapses) == (300, 0))
        clock.push(wait)
    assert nack(r, wait_take(r, "s")) == 0
    assert (dead_of(r, "s")[0].attempt, get(r, "a")["lapses"]) == (4, 1)


@pytest.mark.parametrize("words", [("BACK", "IN", 500), ("IN", 500, "BACK")], ids=str)
def test_a_task_that_is_given_back_until_a_time(clock, server, r, words):
    """Nothing has failed, so one try is enough, and the worker and the attempt are forgotten."""
    put(r, "s", "a", "AT", 1000, "TRIES", 1), put(r, "s", "b", "AT", 1001)
    job = wait_take(r, "s", options=("NAME", "w1"))
    at = clock.now() + 500
    assert nack(r, job, *words) == at
    found = get(r, "a")
    assert [found[name] for name in ("state", "due", "next", "attempt", "worker", "error")] == [
        "waiting", 1000, at, 0, "", ""]
    assert (ack(r, job), server.tw()["back"], server.tw()["failed"]) == (0, 1, 0)
    assert wait_take(r, "s").id == "b"
    clock.push(500)
    again = wait_take(r, "s")
    assert (again.id, again.due, again.attempt) == ("a", 1000, 1)
    assert nack(r, again, "ERROR", "no") == 0


@pytest.mark.parametrize("how", ["IN", "DEAD", "BACK", "lapse"])
def test_a_lapse_alone_leaves_its_token_behind(r, how):
    put(r, "s", "a", "IN", 0, "BACKOFF", HOUR, 1, HOUR)
    job = wait_take(r, "s")
    if how == "lapse":
        touch(r, job, 1)
        wait_until(lambda: get(r, "a")["state"] == "waiting")
    else:
        nack(r, job, *(("IN", HOUR) if how == "IN" else (how,)))
    assert nack(r, job) is None and touch(r, job, 1000) is None
    assert ack(r, job) == (how == "lapse")


def test_touch_makes_a_lease_longer_and_shorter(clock, r):
    put(r, "s", "a", "IN", 0, "BACKOFF", HOUR, 1, HOUR)
    job, first_end = wait_take(r, "s", lease=150), clock.now() + 150
    end = touch(r, job, HOUR)
    assert end == clock.now() + HOUR == get(r, "a")["next"]
    clock.go_on()
    let_pass(r, first_end)
    assert get(r, "a")["state"] == "leased", "the first end of the lease held"
    assert touch(r, job, 1) <= clock.now() + 1
    wait_until(lambda: get(r, "a")["error"] == "the lease ran out")


def test_touch_at_the_ends_of_the_range(r):
    put(r, "s", "a")
    job = wait_take(r, "s")
    before, end = now_ms(), touch(r, job, 2**32 - 1)
    assert before + 2**32 - 1 <= end <= now_ms() + 2**32 - 1


# Chains of periods

def test_the_next_period_is_filed_when_the_chain_of_attempts_ends(r):
    due = now_ms()
    put(r, "s", "a", "AT", due, "EVERY", HOUR, "TIMES", 3, "BACKOFF", 1, 1, 1, "JITTER", 0)
    job = wait_take(r, "s")
    assert get(r, "a")["times"] == 3
    nack(r, job)
    again = wait_take(r, "s")
    assert (again.due, again.attempt) == (due, 2)
    assert ack(r, again) == 1
    found = get(r, "a")
    assert (found["state"], found["due"], found["times"], found["attempt"]) == ("waiting", due + HOUR, 2, 0)
    assert found["worker"] == found["error"] == ""
    assert ack(r, again) == 0


def test_the_last_period_ends_the_task(r):
    put(r, "s", "a", "AT", 1000, "EVERY", 10, "TIMES", 3, "MISSED", "burst")
    for i in range(3):
        job = wait_take(r, "s")
        assert (job.due, job.attempt) == (1000 + 10 * i, 1)
        assert ack(r, job) == 1
    assert r.exists("s") == 0


def test_a_cancel_tells_whether_a_worker_has_the_task(r):
    for name in ("leased", "ready"):
        put(r, "s", name, "AT", 1000)
    wait_ready(r, "s", 2)
    job = wait_take(r, "s")
    assert r.execute_command("TW.CANCEL", "s", "leased", "ready", "none", "leased") == [2, 1, 0, 0]
    assert (ack(r, job), r.exists("s")) == (0, 0)


def test_only_the_period_of_a_series_dies(r):
    due = now_ms()
    put(r, "s", "a", "AT", due, "EVERY", HOUR, "TIMES", 2, "TRIES", 1, payload=("one", "two"))
    assert nack(r, wait_take(r, "s"), "ERROR", "bad") == 0
    assert tasks(r, "s") == {"a": due + HOUR, f"a@{due}": due}
    found = get(r, f"a@{due}")
    assert (found["state"], found["payload"], found["every"]) == ("dead", ["one", "two"], None)
    assert get(r, "a")["times"] == 1
    assert r.execute_command("TW.REPLAY", "s", "IDS", 1, f"a@{due}") == 1
    assert wait_take(r, "s")[:2] == ("s", f"a@{due}")


def test_late_drop_and_coalesce(server, r):
    counters, now = Counters(server), now_ms()
    put(r, "s", "drop", "AT", now - HOUR, "MAXLATE", 1000)
    put(r, "s", "keep", "AT", now - HOUR, "MAXLATE", 2 * HOUR)
    put(r, "s", "each", "AT", now - 10 * HOUR, "EVERY", 60000, "TIMES", 5000, "MISSED", "coalesce")
    wait_ready(r, "s", 3)
    assert counters["dropped"] == 0  # It is decided by the take.
    jobs = {job.id: job for job in take(r, "s", options=("COUNT", 9))}
    assert sorted(jobs) == ["each", "keep"]
    assert jobs["each"].due == now - 10 * HOUR and jobs["keep"].missed_periods == 0
    missed = jobs["each"].missed_periods
    assert missed >= 600 and get(r, "each")["missed-periods"] == missed
    assert (counters["dropped"], counters["coalesced"]) == (1, 0)
    ack(r, jobs["each"])
    found = get(r, "each")
    assert found["due"] == jobs["each"].due + (1 + missed) * 60000 > now
    assert (found["times"], found["missed-periods"], counters["coalesced"]) == (4999, 0, missed)


def test_a_call_stands_for_the_same_periods_in_each_attempt(r):
    """It dies as one call, too. A first attempt that is given back has not begun."""
    due = now_ms() - 10 * HOUR
    put(r, "s", "a", "AT", due, "EVERY", HOUR, "TRIES", 3)
    job = wait_take(r, "s")
    assert (job.due, job.missed_periods) == (due, 10)
    give_back(r, job)
    assert get(r, "a")["missed-periods"] == 0
    for attempt in (1, 2, 3):
        job = wait_take(r, "s")
        assert (job.due, job.attempt, job.missed_periods) == (due, attempt, 10)
        nack(r, job, "IN", 0)
        assert get(r, "a")["missed-periods"] == (10 if attempt < 3 else 0)
    assert get(r, f"a@{due}")["missed-periods"] == 0
    assert get(r, "a")["due"] == due + 11 * HOUR


def test_a_take_drops_a_thousand_tasks_and_a_tick_goes_on(server, r):
    counters, now = Counters(server), now_ms()
    with r.pipeline(transaction=False) as pipe:
        for i in range(3500):
            put(pipe, "s", str(i), "AT", now - HOUR, "MAXLATE", 1000)
        put(pipe, "s", "kept", "AT", now - HOUR)
        pipe.execute()
    wait_ready(r, "s", 3501)
    put(r, "more", "b")
    wait_ready(r, "more", 1)
    assert take(r, "s", "more") == [] and counters["dropped"] == 1000
    assert wait_take(r, "s", "more").id == "b" and counters["dropped"] == 3000
    assert wait_take(r, "s").id == "kept" and counters["dropped"] == 3500
    put(r, "last", "a", "AT", now - HOUR, "MAXLATE", 0)
    wait_ready(r, "last")
    assert take(r, "last") == [] and r.exists("last") == 0


def test_late_drop_concerns_the_first_attempt_alone(r):
    put(r, "s", "a", "AT", now_ms(), "MAXLATE", HOUR)
    job = wait_take(r, "s")
    nack(r, job, "AT", 1)
    assert wait_take(r, "s").attempt == 2


# Counters, events

def test_counters_and_gauges(server, r):
    counters = Counters(server)
    for name in ("a", "b", "c", "d"):
        put(r, "s", name, "AT", 1000)
    wait_ready(r, "s", 4)
    jobs = take(r, "s", options=("COUNT", 3))
    ack(r, jobs[0])
    nack(r, jobs[1], "DEAD")
    give_back(r, jobs[2])
    take(r, "s")
    expected = {"put": 4, "offered": 4, "taken": 4, "done": 1, "failed": 1, "died": 1, "delivered": 0,
                "lapsed": 0, "back": 1}
    assert {name: counters[name] for name in expected} == expected
    found = server.tw()
    assert {name: found[name] for name in ("ready", "leased", "dead", "tasks", "late", "paused_tasks")} == {
        "ready": 1, "leased": 1, "dead": 1, "tasks": 2, "late": 0, "paused_tasks": 0}
    info = working(r, "s")
    expected = {"tasks": 2, "ready": 1, "leased": 1, "dead": 1, "died": 1, "delivered": 0, "done": 1,
                "late": 0, "paused": 0}
    assert {name: info[name] for name in expected} == expected
    wait_until(lambda: working(r, "s")["oldest-ready"] >= 20 and server.tw()["oldest_ready_ms"] >= 20)
    assert found["waiting_us_max"] >= found["waiting_us_p99"] >= found["waiting_us_p50"] > 0


def test_each_change_has_its_event(server, r):
    r.config_set("notify-keyspace-events", "KEA")
    listener = server.client().pubsub()
    listener.subscribe("__keyspace@0__:s")
    assert listener.get_message(timeout=PATIENCE)["type"] == "subscribe"

    def expect(*events):
        found = []
        while len(found) < len(events):
            message = listener.get_message(timeout=PATIENCE)
            assert message is not None, f"{found}, not {events}"
            if message["type"] == "message":
                found.append(message["data"])
        assert found == list(events)

    put(r, "s", "a", "IN", 0, "BACKOFF", HOUR, 1, HOUR)
    expect("tw.put", "tw.ready")
    job = take(r, "s")[0]
    expect("tw.take")
    touch(r, job, 50000)
    expect("tw.touch")
    give_back(r, job)
    expect("tw.back", "tw.ready")
    job = take(r, "s")[0]
    expect("tw.take")
    nack(r, job, "IN", HOUR)
    expect("tw.nack")
    r.execute_command("TW.MOVE", "s", "a", "AT", 1)
    expect("tw.move", "tw.ready")
    job = take(r, "s")[0]
    expect("tw.take")
    nack(r, job, "DEAD")  # A TW.NACK that kills the task sends this event alone.
    expect("tw.dead")
    r.execute_command("TW.PAUSE", "s")
    expect("tw.pause")
    r.execute_command("TW.REPLAY", "s", "IDS", 1, "a")
    expect("tw.replay")
    r.execute_command("TW.RESUME", "s")
    expect("tw.resume", "tw.ready")
    job = take(r, "s", lease=1)[0]
    expect("tw.take")
    wait_until(lambda: get(r, "a")["state"] == "waiting")
    assert ack(r, job) == 1
    expect("tw.ack", "del")


def test_lists_from_the_left(r):
    """A due task comes next out of BRPOP, as in the queues of Celery, Sidekiq and Bull."""
    r.lpush("queue", "before")
    r.execute_command("TW.SEND", "s", "queue", "a", "IN", HOUR, "LIST", "LEFT", "PAYLOAD", "one")
    assert get(r, "a")["kind"] == "list left"
    got = []
    thread = threading.Thread(target=lambda: got.extend(r.brpop("waiting", timeout=PATIENCE)))
    r.execute_command("TW.SEND", "s", "waiting", "b", "IN", 100, "LIST", "LEFT", "PAYLOAD", "x")
    thread.start()
    thread.join(PATIENCE)
    assert got == ["waiting", "x"]
    assert r.execute_command("TW.PROMOTE", "s", "ALL") == 1
    wait_until(lambda: r.llen("queue") == 2)
    assert r.lrange("queue", 0, -1) == ["one", "before"]


def test_promote_makes_tasks_ready_now(r):
    at = now_ms() + HOUR
    for i in range(3):
        put(r, "s", f"t{i}", "AT", at + i)
    assert r.execute_command("TW.PROMOTE", "s", "IDS", 2, "t0", "t1") == 2
    wait_ready(r, "s", 2)
    jobs = take(r, "s", options=("COUNT", 9))
    assert [(job.id, job.due) for job in jobs] == [("t0", at), ("t1", at + 1)]
