# SPDX-License-Identifier: MIT
"""Dead tasks: TW.DEAD, TW.REPLAY, TW.PURGE and the settings that limit them. Paused queues. And
every command that files, finds or removes tasks, for tasks that are ready, leased and dead."""
import os

import pytest
import redis

from harness import Raw, now_ms, task, tasks, wait_replica_in_sync, wait_until
from situations import (Counters, add, dead_of, events_of, fill, let_pass, put, rewrite, take, wait_dead,
                        wait_delivered, wait_ready, wait_take, working)

HOUR = 3600 * 1000


def ack(client, job):
    return client.execute_command("TW.ACK", job.queue, job.id, job.token)


def kill(client, name, queue="s", error="bad"):
    """Puts a task that dies at once. Returns its last job."""
    put(client, queue, name, "AT", 1000)
    job = wait_take(client, queue)
    assert job.id == name
    assert client.execute_command("TW.NACK", queue, name, job.token, "DEAD", "ERROR", error) == 0
    return job


def kill_many(client, count, queue="s"):
    """Makes many dead tasks, whose target refuses them."""
    client.config_set("tickwheel.target-tries", 1)
    client.set("wrong", "a string")
    fill(client, queue, "wrong", count, 1000, step=1)
    wait_until(lambda: working(client, queue)["dead"] == count)


# TW.DEAD

def test_those_that_died_first_come_first(r):
    before = now_ms()
    for name in "cab":
        kill(r, name, error=f"error of {name}")
    found = dead_of(r, "s")
    assert [(one.id, one.due, one.attempt, one.error, one.next) for one in found] == [
        (name, 1000, 1, f"error of {name}", None) for name in "cab"]
    assert before <= found[0].dead <= found[1].dead <= found[2].dead <= now_ms()


def test_dead_tasks_are_listed_in_pages(r):
    kill_many(r, 250)
    assert len(dead_of(r, "s")) == 100
    names, words = [], ()
    while page := dead_of(r, "s", "COUNT", 7, *words):
        names += [one.id for one in page]
        words = ("AFTER", page[-1].id)
    assert names == [f"t{i}" for i in range(250)]
    assert [one.id for one in dead_of(r, "s", "after", "t5", "count", 1)] == ["t6"]
    assert len(dead_of(r, "s", "COUNT", 10000)) == 250


def test_no_dead_tasks(r):
    assert r.execute_command("TW.DEAD", "nothing") == []
    put(r, "s", "a", "IN", HOUR)
    assert r.execute_command("TW.DEAD", "s") == []
    assert r.exists("nothing") == 0


# TW.REPLAY

def test_a_replayed_task_begins_anew(r):
    job = kill(r, "a")
    assert r.execute_command("TW.REPLAY", "s", "IDS", 1, "a") == 1
    again = wait_take(r, "s")
    assert (again.id, again.attempt, again.payload) == ("a", 1, job.payload) and again.due > 1000
    assert ack(r, job) == 0 and ack(r, again) == 1
    assert r.exists("s") == 0


@pytest.mark.parametrize("words,low,high", [(("IN", HOUR), HOUR, HOUR), (("in", 0), 0, 0), ((), 0, 0)])
def test_replay_at_a_time(r, words, low, high):
    kill(r, "a")
    r.execute_command("TW.PAUSE", "s")  # so that the task stays as it is
    before = now_ms()
    assert r.execute_command("TW.REPLAY", "s", "IDS", 1, "a", *words) == 1
    found = task(r, "s", "a")
    assert before + low <= found["due"] <= now_ms() + high
    assert (found["state"], found["attempt"], found["error"], found["worker"]) == (
        "waiting" if low else "ready", 0, "", "")
    assert take(r, "s") == []  # The pause keeps it back.


def test_replay_at_an_absolute_time(r):
    kill(r, "a")
    due = now_ms() + HOUR
    assert r.execute_command("TW.REPLAY", "s", "ALL", "AT", due) == 1
    assert r.execute_command("TW.NEXT", "s") == ["a", due, due]


def test_each_verb_names_the_dead_period_of_the_longest_id(r):
    name = "x" * 960
    dead = f"{name}@1000"
    put(r, "s", name, "AT", 1000, "EVERY", HOUR)
    assert r.execute_command("TW.NACK", "s", name, wait_take(r, "s").token, "DEAD") == 0
    assert [one.id for one in dead_of(r, "s")] == [dead]
    assert task(r, "s", dead)["state"] == "dead"
    assert r.execute_command("TW.REPLAY", "s", "IDS", 1, dead, "IN", HOUR) == 1
    assert r.execute_command("TW.MOVE", "s", dead, "IN", 2 * HOUR) == 1
    assert r.execute_command("TW.PROMOTE", "s", "IDS", 1, dead) == 1
    job = wait_take(r, "s")
    assert job.id == dead
    assert r.execute_command("TW.TOUCH", "s", dead, job.token, "LEASE", HOUR) > 0
    assert r.execute_command("TW.NACK", "s", dead, job.token, "BACK") > 0
    assert ack(r, wait_take(r, "s")) == 1
    assert r.execute_command("TW.CANCEL", "s", dead, name) == [0, 1]


def test_only_dead_tasks_are_replayed_and_purged(r):
    put(r, "s", "waiting", "IN", HOUR), put(r, "s", "leased")
    wait_take(r, "s")
    for name in ("waiting", "leased", "nobody", "x" * 1024):
        assert r.execute_command("TW.REPLAY", "s", "IDS", 1, name) == 0
        assert r.execute_command("TW.PURGE", "s", "IDS", 1, name) == 0
    for queue in ("s", "none"):
        assert r.execute_command("TW.REPLAY", queue, "ALL") == 0
        assert r.execute_command("TW.PURGE", queue, "ALL") == 0
    assert r.execute_command("TW.LEN", "s") == 2


def test_a_dead_task_may_have_any_id(r):
    kill(r, "ALL"), kill(r, "IDS"), kill(r, "a")
    assert r.execute_command("TW.REPLAY", "s", "ids", 1, "ALL", "IN", HOUR) == 1
    assert r.execute_command("TW.PURGE", "s", "IDS", 1, "IDS") == 1
    assert [one.id for one in dead_of(r, "s")] == ["a"]
    assert r.execute_command("TW.PURGE", "s", "all") == 1


def test_several_ids_are_dealt_with_as_they_are_named(r):
    """An id that is named twice is no dead task the second time, and an unknown id counts for nothing."""
    for name in "abcd":
        kill(r, name, "other" if name == "d" else "s")
    assert r.execute_command("TW.REPLAY", "s", "IDS", 5, "b", "nobody", "a", "b", "d", "AT", 1000) == 2
    wait_ready(r, "s", 2)
    assert [job.id for job in take(r, "s", options=("COUNT", 9))] == ["b", "a"]
    for name in "xy":
        kill(r, name)
    assert r.execute_command("TW.PURGE", "s", "IDS", 4, "y", "y", "a", "c") == 2
    assert [one.id for one in dead_of(r, "s")] == ["x"]


def test_all_is_at_most_ten_thousand_in_one_call(server, r):
    counters = Counters(server)
    kill_many(r, 12000)
    r.execute_command("TW.PAUSE", "s")
    assert r.execute_command("TW.REPLAY", "s", "ALL", "IN", HOUR) == 10000
    assert dead_of(r, "s", "COUNT", 1)[0].id == "t10000"
    assert r.execute_command("TW.PURGE", "s", "ALL") == 2000
    assert (r.execute_command("TW.LEN", "s"), counters["replayed"], counters["purged"]) == (10000, 10000, 2000)
    assert counters["died"] == 12000 and server.tw()["dead"] == 0
    r.execute_command("TW.RESUME", "s")
    r.execute_command("TW.MOVE", "s", "t0", "IN", 0)
    assert wait_dead(r, "s")[0].id == "t0"


def test_a_replayed_task_with_a_target_is_delivered(r):
    kill_many(r, 20)
    r.delete("wrong")
    assert r.execute_command("TW.REPLAY", "s", "IDS", 1, "t7") == 1
    assert wait_delivered(r, "wrong", 1) == ["t7"]
    assert r.xrange("wrong")[0][1]["tw.attempt"] == "1"
    r.execute_command("TW.REPLAY", "s", "ALL")
    assert wait_delivered(r, "wrong", 20) == ["t7"] + [f"t{i}" for i in range(20) if i != 7]
    assert r.exists("s") == 0


def test_a_worker_who_waits_gets_a_replayed_task(server, r):
    kill(r, "a")
    raw = Raw(server)
    raw.send("TW.TAKE", 1, "s", "LEASE", HOUR, "BLOCK", 0)
    wait_until(lambda: server.info("clients")["blocked_clients"] == 1)
    r.execute_command("TW.REPLAY", "s", "ALL", "IN", 20)
    assert raw.read()[0][1] == "a"


# TW.PURGE, and the limits

def test_purge(server, r):
    counters = Counters(server)
    for name in "abc":
        kill(r, name)
    assert r.execute_command("TW.PURGE", "s", "IDS", 1, "b") == 1
    assert [one.id for one in dead_of(r, "s")] == ["a", "c"]
    assert r.execute_command("TW.PURGE", "s", "ALL") == 2
    assert r.exists("s") == 0 and counters["purged"] == 3


def test_at_most_so_many_dead_tasks(server, r):
    counters = Counters(server)
    r.config_set("tickwheel.dead-max", 3)

    def run():
        for i in range(5):
            kill(r, f"t{i}")
    told = events_of(r, run)
    assert (told.count("tw.dead"), told.count("tw.purge")) == (5, 2)
    assert [one.id for one in dead_of(r, "s")] == ["t2", "t3", "t4"]
    assert counters["purged"] == 2
    r.config_set("tickwheel.target-tries", 1)
    r.set("wrong", "a string")

    def fill_and_wait():
        fill(r, "s", "wrong", 10, 1000)
        counters.wait("died", 15)
    assert {"tw.dead", "tw.purge"} <= set(events_of(r, fill_and_wait))
    assert [one.id for one in dead_of(r, "s")] == ["t7", "t8", "t9"]


def test_dead_tasks_for_a_time(clock, server, r):
    counters = Counters(server)
    for i in range(5):
        kill(r, f"t{i}", queue=f"s{i}")
    r.config_set("tickwheel.dead-ms", HOUR)
    clock.push(HOUR - 1)
    let_pass(r, clock.now() - 1)
    assert counters["purged"] == 0, "dead tasks were removed early"
    clock.push(1)
    counters.wait("purged", 5)
    assert r.dbsize() == 0


# The deaths of a series

MILLION = 1000000


def kill_periods(client, count, payload="v", queue="s"):
    """Puts a series, if it is not there, of which so many periods die, one after the other."""
    put(client, queue, "series", "AT", 1000, "NX", "EVERY", 1000, "MISSED", "burst", "TRIES", 1,
        payload=(payload, ))
    for _ in range(count):
        job = wait_take(client, queue)
        assert client.execute_command("TW.NACK", queue, job.id, job.token, "DEAD") == 0


def has_one_payload(server, queue="s"):
    """A queue with a series of a megabyte and its deaths, in its memory and in INFO."""
    numbers = server.tw()
    assert MILLION <= numbers["dead_bytes"] <= numbers["bytes"] < 1.2 * MILLION, numbers
    assert MILLION <= server.client().memory_usage(queue) < 1.2 * MILLION


def test_the_deaths_of_a_series_have_one_payload(fleet):
    """Ten deaths of a task of 10 MB took 100 MB, in memory, in snapshots and in the append-only file."""
    server = fleet.server(appendonly="yes", aof_use_rdb_preamble="no", module_args=("deliver", "yes"))
    replica = fleet.server(replicaof=server)
    r, raw, payload = server.client(), server.client(decode_responses=False), os.urandom(MILLION // 2).hex()
    kill_periods(r, 10, payload)
    periods = [f"series@{1000 * (i + 1)}" for i in range(10)]
    assert [one.id for one in dead_of(r, "s")] == periods
    has_one_payload(server)
    wait_replica_in_sync(server, replica)
    has_one_payload(replica)
    assert len(raw.dump("s")) < 1.2 * MILLION
    r.config_set("tickwheel.deliver", "no")
    rewrite(server)
    server.module_args = ("deliver", "no")
    server.kill()
    server.start()
    has_one_payload(server)
    r, raw = server.client(), server.client(decode_responses=False)
    raw.restore("restored", 0, raw.dump("s"))
    r.delete("s")
    wait_until(lambda: server.tw()["reaping"] == 0)
    has_one_payload(server, "restored")
    r.copy("restored", "copied")
    r.delete("restored")
    wait_until(lambda: server.tw()["reaping"] == 0)
    has_one_payload(server, "copied")
    assert [one.id for one in dead_of(r, "copied")] == periods
    assert all(task(r, "copied", name)["payload"] == [payload] for name in (*periods, "series"))
    assert r.execute_command("TW.REPLAY", "copied", "IDS", 1, periods[3]) == 1
    assert r.execute_command("TW.PURGE", "copied", "ALL") == 9
    r.execute_command("TW.CANCEL", "copied", "series")
    assert task(r, "copied", periods[3])["payload"] == [payload] and server.tw()["dead_bytes"] == 0


def test_a_shared_payload_counts_for_each_task_of_a_reply(r):
    """A reply of TW.TAKE ends after 16 MiB, also if the tasks have their payload together."""
    kill_periods(r, 5, "v" * 6 * MILLION)
    r.execute_command("TW.CANCEL", "s", "series")
    assert r.execute_command("TW.REPLAY", "s", "ALL") == 5
    wait_ready(r, "s", 5)
    assert len(take(r, "s", options=("COUNT", 10))) == 3
    assert len(take(r, "s", options=("COUNT", 10))) == 2


def test_a_series_keeps_its_last_hundred_deaths(server, r):
    counters = Counters(server)
    kill(r, "other")
    kill_periods(r, 100)
    assert counters["purged"] == 0
    told = events_of(r, lambda: kill_periods(r, 3))
    assert (told.count("tw.dead"), told.count("tw.purge"), counters["purged"]) == (3, 3, 3)
    assert [one.id for one in dead_of(r, "s", "COUNT", 200)] == ["other"] + [
        f"series@{1000 * i}" for i in range(4, 104)]
    raw = server.client(decode_responses=False)
    dump = raw.dump("s")
    r.delete("s")
    raw.restore("s", 0, dump)
    kill_periods(r, 1)
    assert (len(dead_of(r, "s", "COUNT", 200)), counters["purged"]) == (101, 4)
    assert dead_of(r, "s", "COUNT", 2)[1].id == "series@5000"


def test_a_series_that_its_target_refuses_keeps_its_last_hundred_deaths(fleet):
    server = fleet.server(module_args=("target-tries", 1))
    replica = fleet.server(replicaof=server)
    r = server.client()
    r.set("wrong", "a string")
    add(r, "s", "wrong", "series", 1000, "EVERY", 1000, "TIMES", 250, "MISSED", "burst")
    wait_until(lambda: server.tw()["died"] == 250)
    wait_replica_in_sync(server, replica)
    for client in (r, replica.client()):
        assert [one.id for one in dead_of(client, "s", "COUNT", 200)] == [
            f"series@{1000 * i}" for i in range(151, 251)]
    assert server.tw()["purged"] == 150


MANY = [(100000, 1), (2, 1500)]  # Dead tasks of each queue, queues.


@pytest.mark.parametrize("count,queues", MANY)
@pytest.mark.parametrize("setting,value,left", [("dead-ms", HOUR, 0), ("dead-max", 1, 1)])
def test_many_dead_tasks_go_at_once(clock, server, r, count, queues, setting, value, left):
    """The cron looks once a second. If each look removed some hundreds, or found some queues, the last dead
    task would stay for minutes."""
    counters = Counters(server)
    r.config_set("hz", 1, "tickwheel.target-tries", 1)
    r.set("wrong", "a string")
    for i in range(queues):
        fill(r, f"s{i}", "wrong", count, 1000, step=1)
    counters.wait("died", count * queues)
    r.config_set(f"tickwheel.{setting}", value)
    clock.reach(clock.now() + HOUR)  # While the clock stands, so do the server's timers, but for its cron.
    counters.wait("purged", (count - left) * queues)
    wait_until(lambda: r.dbsize() == 1 + left * queues)
    assert server.tw()["dead"] == left * queues
    if left:
        assert [one.id for one in dead_of(r, "s0")] == [f"t{count - 1}"]


def test_old_dead_tasks_go_when_memory_is_full(clock, server, r):
    counters = Counters(server)
    kill(r, "a")
    r.config_set("tickwheel.dead-ms", HOUR, "maxmemory", 1)
    clock.push(HOUR)
    counters.wait("purged")
    assert r.exists("s") == 0


def test_dead_tasks_that_are_replayed_or_die_again_begin_their_time_anew(clock, server, r):
    counters = Counters(server)
    r.config_set("tickwheel.dead-ms", HOUR)
    kill(r, "a"), kill(r, "b")
    clock.push(HOUR // 2)
    assert r.execute_command("TW.REPLAY", "s", "IDS", 1, "a") == 1
    job = wait_take(r, "s")
    assert r.execute_command("TW.NACK", "s", "a", job.token, "DEAD") == 0
    clock.push(HOUR // 2)
    counters.wait("purged")
    assert [one.id for one in dead_of(r, "s")] == ["a"]
    clock.push(HOUR // 2 - 1)
    let_pass(r, clock.now() - 1)
    assert counters["purged"] == 1
    clock.push(1)
    counters.wait("purged", 2)


# Each command, for each state

STAGE = {"retried": "waiting", "lapsed": "waiting", "given back": "ready"}


def in_state(r, state, due=1000):
    """Files the task `a` and brings it into a state. Returns the job of the worker that had it, or None."""
    if state == "waiting":
        put(r, "s", "a", "AT", now_ms() + HOUR, "BACKOFF", HOUR, 1, HOUR)
        return None
    put(r, "s", "a", "AT", due, "BACKOFF", HOUR, 1, HOUR)
    wait_ready(r, "s")
    if state == "ready":
        return None
    job = take(r, "s", lease=1 if state == "lapsed" else HOUR)[0]
    if state == "lapsed":
        wait_until(lambda: task(r, "s", "a")["state"] == "waiting")
    if state == "dead":
        r.execute_command("TW.NACK", "s", "a", job.token, "DEAD")
    elif state == "retried":
        r.execute_command("TW.NACK", "s", "a", job.token)
    elif state == "given back":
        assert r.execute_command("TW.NACK", "s", "a", job.token, "BACK") == due
    assert task(r, "s", "a")["state"] == STAGE.get(state, state)
    return job


STATES = ["waiting", "ready", "leased", "given back", "retried", "lapsed", "dead"]


@pytest.mark.parametrize("state", STATES)
def test_cancel_in_each_state(server, r, state):
    in_state(r, state)
    assert r.execute_command("TW.CANCEL", "s", "a") == [2 if state == "leased" else 1]
    assert r.exists("s") == 0
    found = server.tw()
    assert all(found[name] == 0 for name in ("tasks", "ready", "leased", "dead", "late"))


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("how", ["TW.PUT", "TW.SEND"])
def test_a_new_task_replaces_the_old_one_in_each_state(server, r, state, how):
    job = in_state(r, state)
    if how == "TW.PUT":
        put(r, "s", "a", "IN", HOUR, payload=("new",))
    else:
        add(r, "s", "q", "a", now_ms() + HOUR, payload=("new", "v"))
    found, leased = task(r, "s", "a"), state == "leased"
    assert (found["state"], found["attempt"]) == (("leased", 1) if leased else ("waiting", 0))
    assert (found["replaced"], found["payload"][0], found["error"]) == (leased, "new", "")
    numbers = server.tw()
    assert [numbers[name] for name in ("tasks", "ready", "leased", "dead")] == [1, 0, leased, 0]
    assert job is None or ack(r, job) == leased
    found = task(r, "s", "a")
    assert (found["state"], found["attempt"], found["replaced"]) == ("waiting", 0, 0)
    assert found["payload"][0] == "new"


@pytest.mark.parametrize("state", STATES)
def test_nx_and_xx_see_the_task_in_each_state(r, state):
    in_state(r, state)
    assert put(r, "s", "a", "IN", HOUR, "NX") is None
    assert r.execute_command("TW.SEND", "s", "q", "a", "IN", HOUR, "NX", "PAYLOAD", "f", "v") is None
    assert task(r, "s", "a")["state"] == STAGE.get(state, state)
    assert put(r, "s", "a", "IN", HOUR, "XX") == "a"


@pytest.mark.parametrize("state", ["ready", "leased", "given back", "retried", "lapsed", "dead"])
def test_gt_and_lt_compare_with_the_due_time_in_each_state(r, state):
    """The time of a retry and the time of a death do not count."""
    in_state(r, state, due=5000)
    assert put(r, "s", "a", "AT", 5000, "GT") is put(r, "s", "a", "AT", 5000, "LT") is None
    assert put(r, "s", "a", "AT", 4999, "GT") is put(r, "s", "a", "AT", now_ms() + 2 * HOUR, "LT") is None
    assert put(r, "s", "a", "AT", 5001, "GT") == "a"
    assert put(r, "s", "a", "AT", 5000, "LT") == "a"


@pytest.mark.parametrize("state", STATES)
def test_move_in_each_state(r, state):
    job = in_state(r, state)
    due = now_ms() + 2 * HOUR
    if state == "dead":
        with pytest.raises(redis.ResponseError) as refused:
            r.execute_command("TW.MOVE", "s", "a", "AT", due)
        assert str(refused.value) == "the task is dead: expected a replay, or a put in its place"
        return
    assert r.execute_command("TW.MOVE", "s", "a", "AT", due) == 1
    if state == "leased":
        assert (task(r, "s", "a")["state"], task(r, "s", "a")["replaced"], ack(r, job)) == ("leased", 1, 1)
    found = task(r, "s", "a")
    names = ("state", "due", "next", "attempt", "worker", "error")
    assert [found[name] for name in names] == ["waiting", due, due, 0, "", ""]
    assert job is None or ack(r, job) == 0


@pytest.mark.parametrize("state", ["ready", "leased", "given back", "retried", "lapsed"])
def test_move_with_gt_and_lt_compares_with_the_due_time(r, state):
    in_state(r, state, due=5000)
    assert r.execute_command("TW.MOVE", "s", "a", "AT", 5000, "GT") == 0
    assert r.execute_command("TW.MOVE", "s", "a", "AT", 5000, "LT") == 0
    assert task(r, "s", "a")["state"] == STAGE.get(state, state)
    assert r.execute_command("TW.MOVE", "s", "a", "AT", now_ms() + HOUR, "GT") == 1


@pytest.mark.parametrize("state", STATES)
def test_queries_in_each_state(r, state):
    in_state(r, state)
    waits = state in ("waiting", "retried", "lapsed")
    assert r.execute_command("TW.LEN", "s") == (state != "dead")
    assert (r.execute_command("TW.NEXT", "s") is None) != waits
    assert len(r.execute_command("TW.RANGE", "s", "-", "+")) == waits
    assert sum(r.execute_command("TW.FORECAST", "s", "STEP", 2 * HOUR)) == waits
    assert list(tasks(r, "s")) == ["a"]
    found = working(r, "s")
    assert {name: found[name] for name in ("tasks", "ready", "leased", "dead")} == {
        "tasks": state != "dead",
        **{name: name == STAGE.get(state, state) for name in ("ready", "leased", "dead")}}


@pytest.mark.parametrize("state", STATES)
def test_promote_in_each_state(r, state):
    """TW.PROMOTE makes a waiting task ready, a retried one too."""
    in_state(r, state)
    assert r.execute_command("TW.PROMOTE", "s", "ALL") == (state in ("waiting", "retried", "lapsed"))
    now = "ready" if state in ("waiting", "retried", "lapsed", "given back") else state
    assert task(r, "s", "a")["state"] == now
    if now == "ready":
        assert wait_take(r, "s").attempt == (2 if state in ("retried", "lapsed") else 1)


@pytest.mark.parametrize("state", STATES)
def test_a_copy_has_no_leases(r, state):
    job = in_state(r, state)
    before = task(r, "s", "a")
    assert r.copy("s", "s2") == 1
    copied = task(r, "s2", "a")
    if state != "leased":
        wait_until(lambda: task(r, "s2", "a")["state"] == before["state"])
        copied = task(r, "s2", "a")
        assert all(copied[name] == before[name] for name in ("due", "attempt", "error", "payload", "next"))
    else:
        wait_until(lambda: task(r, "s2", "a")["state"] == "ready")
        assert task(r, "s2", "a")["attempt"] == 0 and copied["worker"] == ""
    assert job is None or ack(r, job._replace(queue="s2")) == 0
    assert {**task(r, "s", "a"), "remaining": 0} == {**before, "remaining": 0}


def test_late_may_leave_out_a_copy_of_a_lease(clock, r):
    """The attempt has not begun there."""
    put(r, "s", "a", "IN", 0, "MAXLATE", 1000)
    assert wait_take(r, "s").id == "a"
    clock.push(2000)
    r.copy("s", "copy")
    wait_ready(r, "copy")
    assert take(r, "copy") == [] and r.exists("copy") == 0
    assert task(r, "s", "a")["state"] == "leased"


@pytest.mark.parametrize("words", [("MAXLATE", 0), ("EVERY", HOUR, "MISSED", "skip")],
                         ids=["dropped", "skipped"])
def test_a_take_passes_over_a_thousand_tasks(r, words):
    """They have no call now, and the next take goes on."""
    pipe = r.pipeline(transaction=False)
    for number in range(1500):
        put(pipe, "s", f"{number}", "AT", 1000, *words)
    put(pipe, "s", "good", "AT", 1000)
    pipe.execute()
    wait_ready(r, "s", 1501)
    assert take(r, "s") == [] and working(r, "s")["ready"] == 501
    assert take(r, "s")[0].id == "good" and working(r, "s")["ready"] == 0


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("how", ["RENAME", "RESTORE", "MOVE", "SWAPDB"])
def test_leases_go_with_the_queue(server, r, state, how):
    job = in_state(r, state)
    before = task(r, "s", "a")
    other, name = r, "s"
    if how == "RENAME":
        r.rename("s", "s2")
        name = "s2"
    elif how == "RESTORE":
        raw = server.client(decode_responses=False)
        dump = raw.dump("s")
        r.delete("s")
        raw.restore("s2", 0, dump)
        name = "s2"
    elif how == "MOVE":
        r.move("s", 1)
        other = server.client(db=1)
    else:
        r.swapdb(0, 1)
        other = server.client(db=1)
    wait_until(lambda: task(other, name, "a")["state"] == before["state"])
    assert {**task(other, name, "a"), "remaining": 0} == {**before, "remaining": 0}
    if job is not None:
        assert ack(other, job._replace(queue=name)) == (state in ("leased", "lapsed"))


@pytest.mark.parametrize("how", ["DEL", "UNLINK", "FLUSHALL", "FLUSHALL ASYNC", "EXPIRE", "SET"])
def test_a_queue_is_removed_with_tasks_in_all_states(server, r, how):
    for i, state in enumerate(STATES):
        in_state(r, state)
        r.rename("s", f"s{i}")
    names = [f"s{i}" for i in range(len(STATES))]
    {"DEL": lambda: r.delete(*names), "UNLINK": lambda: r.unlink(*names), "FLUSHALL": r.flushall,
     "FLUSHALL ASYNC": lambda: r.flushall(asynchronous=True),
     "EXPIRE": lambda: [r.pexpire(name, 1) for name in names],
     "SET": lambda: [r.set(name, "text") for name in names]}[how]()
    wait_until(lambda: server.tw()["queues"] == 0 and server.tw()["reaping"] == 0)
    found = server.tw()
    names = ("tasks", "ready", "leased", "dead", "late", "held", "paused_tasks")
    assert all(found[name] == 0 for name in names)


# TW.PAUSE and TW.RESUME

def test_a_paused_queue_stops(server, r):
    counters = Counters(server)
    assert r.execute_command("TW.PAUSE", "s") == 1
    assert r.execute_command("TW.PAUSE", "s") == 0
    put(r, "s", "a", "AT", 1000)
    add(r, "s", "q", "b", 1001)
    let_pass(r, now_ms())
    assert (take(r, "s"), r.xlen("q")) == ([], 0)
    found = server.tw()
    assert [found[name] for name in ("paused_tasks", "late", "ready", "tasks")] == [2, 0, 2, 2]
    assert working(r, "s")["paused"] == 1
    assert r.execute_command("TW.RESUME", "s") == 1
    assert r.execute_command("TW.RESUME", "s") == 0
    assert wait_take(r, "s").id == "a" and wait_delivered(r, "q", 1) == ["b"]
    assert counters["died"] == 0 and server.tw()["paused_tasks"] == 0


def test_ready_tasks_of_a_paused_queue_wait(server, r):
    put(r, "s", "a")
    wait_ready(r, "s")
    r.execute_command("TW.PAUSE", "s")
    assert take(r, "s") == []
    raw = Raw(server)
    raw.send("TW.TAKE", 1, "s", "LEASE", HOUR, "BLOCK", 0)
    wait_until(lambda: server.info("clients")["blocked_clients"] == 1)
    put(r, "s", "b")
    let_pass(r, now_ms())
    assert server.info("clients")["blocked_clients"] == 1
    r.execute_command("TW.RESUME", "s")
    assert raw.read()[0][1] == "a"


def test_leases_of_a_paused_queue_run_on(r):
    put(r, "s", "a", "AT", 1000, "TRIES", 2, "BACKOFF", 1, 1, 1), put(r, "s", "b", "AT", 1001)
    wait_ready(r, "s", 2)
    first, second = take(r, "s", options=("COUNT", 2))
    r.execute_command("TW.PAUSE", "s")
    assert r.execute_command("TW.TOUCH", "s", "a", first.token, "LEASE", 1) > 0
    wait_until(lambda: task(r, "s", "a")["error"] == "the lease ran out")
    assert ack(r, second) == 1 and ack(r, first) == 1
    assert working(r, "s")["tasks"] == 0 and r.exists("s") == 1


def test_the_time_in_a_pause_counts_for_maxlate(server, r):
    counters = Counters(server)
    r.execute_command("TW.PAUSE", "s")
    due = now_ms()
    for name, late in (("workers", 200), ("kept", HOUR)):
        put(r, "s", name, "AT", due, "MAXLATE", late)
        add(r, "s", "q", f"{name} of q", due, "MAXLATE", late)
    wait_until(lambda: now_ms() > due + 250)
    assert counters["dropped"] == 0
    r.execute_command("TW.RESUME", "s")
    assert wait_take(r, "s").id == "kept" and wait_delivered(r, "q", 1) == ["kept of q"]
    assert counters["dropped"] == 2


def test_a_pause_is_kept_while_the_queue_is_empty(server, r):
    r.execute_command("TW.PAUSE", "s")
    assert (r.type("s"), r.execute_command("TW.LEN", "s")) == ("tickwheel", 0)
    put(r, "s", "a", "IN", HOUR)
    r.execute_command("TW.CANCEL", "s", "a")
    assert r.exists("s") == 1 and server.tw()["queues"] == 1
    assert r.execute_command("TW.RESUME", "s") == 1
    assert r.exists("s") == 0


@pytest.mark.parametrize("how", ["RENAME", "COPY", "RESTORE", "MOVE"])
@pytest.mark.parametrize("empty", [False, True], ids=["with a task", "empty"])
def test_a_pause_goes_with_the_queue(server, r, how, empty):
    r.execute_command("TW.PAUSE", "s")
    if not empty:
        put(r, "s", "a", "AT", 1000)
    other, name = r, "s2"
    if how == "RENAME":
        r.rename("s", "s2")
    elif how == "COPY":
        r.copy("s", "s2")
    elif how == "MOVE":
        r.move("s", 1)
        other, name = server.client(db=1), "s"
    else:
        raw = server.client(decode_responses=False)
        raw.restore("s2", 0, raw.dump("s"))
    let_pass(r, now_ms())
    assert working(other, name)["paused"] == 1 and take(other, name) == []
    assert other.execute_command("TW.RESUME", name) == 1
    assert empty or wait_take(other, name).id == "a"


def test_a_full_server_takes_no_new_pause(fleet):
    """20,000 pauses of new keys took 10 MB past maxmemory. A pause that is there, or of a queue with tasks,
    takes no memory, and the log and the primary are never refused."""
    server = fleet.server(appendonly="yes", aof_use_rdb_preamble="no")
    replica = fleet.server(replicaof=server, maxmemory=1)
    r = server.client()
    put(r, "s", "a", "IN", HOUR)
    r.execute_command("TW.PAUSE", "old")
    r.config_set("maxmemory", 1)
    for pause in (("TW.PAUSE", "new"), ("EVAL", "redis.call('TW.PAUSE', KEYS[1])", 1, "new")):
        with pytest.raises(redis.ResponseError, match="OOM"):
            r.execute_command(*pause)
    assert r.exists("new") == 0
    assert r.execute_command("TW.PAUSE", "old") == r.execute_command("TW.RESUME", "new") == 0
    assert [r.execute_command(name, "s") for name in ("TW.PAUSE", "TW.RESUME", "TW.PAUSE")] == [1, 1, 1]
    assert r.execute_command("TW.RESUME", "old") == 1 and r.exists("old") == 0
    r.config_set("maxmemory", 0)
    r.execute_command("TW.PAUSE", "new")
    wait_replica_in_sync(server, replica)
    assert working(replica.client(), "new")["paused"] == 1, "the primary was refused"
    server.options["maxmemory"] = 1
    server.kill()
    server.start()
    assert working(server.client(), "new")["paused"] == 1, "the log was refused"


def test_a_removed_queue_is_not_paused_any_more(r):
    r.execute_command("TW.PAUSE", "s")
    r.delete("s")
    put(r, "s", "a")
    assert wait_take(r, "s").id == "a"


def test_periods_of_a_paused_series_are_not_lost(r):
    due = now_ms() - 1000
    r.execute_command("TW.PAUSE", "s")
    add(r, "s", "q", "a", due, "EVERY", 100, "TIMES", 3, "MISSED", "burst")
    let_pass(r, now_ms())
    assert r.xlen("q") == 0
    r.execute_command("TW.RESUME", "s")
    wait_delivered(r, "q", 3)
    assert [int(fields["tw.due"]) for _, fields in r.xrange("q")] == [due, due + 100, due + 200]
