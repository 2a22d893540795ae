# SPDX-License-Identifier: MIT
"""A put, a send or a move of a task that a worker has: the new task stands behind the attempt under way, until
that has ended (docs/contract.md, "Replaced attempts")."""
import pytest
import redis

from harness import delivered, now_ms, task, tasks, wait_replica_in_sync, wait_until
from situations import (Counters, add, dead_of, deferred, digest, events_of, let_pass, put, rewrite, take,
                        wait_delivered, wait_ready, wait_take, working)

HOUR = 3600 * 1000
FAIL, DEAD, BACK, BACK_IN, LAPSE = ((), ("DEAD",), ("BACK",), ("BACK", "IN", HOUR), ("lapse",))
DONE = ("done",)
ENDS = [DONE, FAIL, ("IN", 2 * HOUR, "ERROR", "no"), DEAD, BACK, BACK_IN, LAPSE]
MAKERS = ["TW.PUT", "TW.SEND", "TW.MOVE"]


def ack(client, job):
    return client.execute_command("TW.ACK", job.queue, job.id, job.token)


def touch(client, job, ms):
    return client.execute_command("TW.TOUCH", job.queue, job.id, job.token, "LEASE", ms)


def leased(r, lease=HOUR, name="a", options=("TRIES", 1, "BACKOFF", HOUR, 1, HOUR)):
    """Returns a job whose second attempt is under way, so that it has an error and may die at once."""
    put(r, "s", name, "AT", 1000, *options)
    first = wait_take(r, "s")
    r.execute_command("TW.TOUCH", "s", name, first.token, "LEASE", 1)
    wait_until(lambda: task(r, "s", name)["lapses"] == 1)
    r.execute_command("TW.PROMOTE", "s", "ALL")
    return wait_take(r, "s", lease=lease, options=("NAME", "bob"))


def replace(r, how, due, name="a"):
    """Puts another task in the place of the leased one. Returns its payload."""
    if how == "TW.PUT":
        assert put(r, "s", name, "AT", due, payload=("new", "er")) == name
        return ["new", "er"]
    if how == "TW.SEND":
        assert add(r, "s", "q", name, due, payload=("new", "er")) == name
        return ["new", "er"]
    assert r.execute_command("TW.MOVE", "s", name, "AT", due) == 1
    return ["v"]


def end(r, job, how):
    """Ends an attempt. Returns the reply."""
    if how == DONE:
        return ack(r, job)
    if how == LAPSE:
        return touch(r, job, 1)
    return r.execute_command("TW.NACK", job.queue, job.id, job.token, *how)


def shows(r, name, **wanted):
    found = task(r, "s", name)
    assert {key: found[key] for key in wanted} == wanted


# The attempt, while it is under way

@pytest.mark.parametrize("how", MAKERS)
def test_of_the_old_task_only_the_attempt_is_left(server, r, how):
    job = leased(r)
    ends, due = task(r, "s", "a")["next"], now_ms() + 2 * HOUR
    payload = replace(r, how, due)
    shows(r, "a", state="leased", replaced=1, attempt=2, worker="bob", next=ends, due=due, payload=payload,
          error="", lapses=0, target="q" if how == "TW.SEND" else "")
    assert tasks(r, "s") == {"a": due} and r.execute_command("TW.LEN", "s") == 1
    assert r.execute_command("TW.NEXT", "s") is None and r.execute_command("TW.RANGE", "s", "-", "+") == []
    assert r.execute_command("TW.FORECAST", "s", "STEP", HOUR, "STEPS", 5) == [0] * 5
    assert r.execute_command("TW.PROMOTE", "s", "ALL") == 0 and take(r, "s") == []
    assert [server.tw()[name] for name in ("tasks", "leased", "ready", "late")] == [1, 1, 0, 0]
    assert ends < touch(r, job, 2 * HOUR) == task(r, "s", "a")["next"]
    shows(r, "a", replaced=1, attempt=2, worker="bob", due=due)
    assert ack(r, job._replace(token="0" * 16)) == 0 and touch(r, job._replace(token="f" * 16), 1) is None
    assert ack(r, job) == 1 and ack(r, job) == 0


@pytest.mark.parametrize("how", MAKERS)
def test_a_second_task_replaces_the_first_one_again(r, how):
    job = leased(r)
    put(r, "s", "a", "AT", 5, payload=("first",)), add(r, "s", "other", "a", 6)
    due = now_ms() + HOUR
    replace(r, how, due)
    shows(r, "a", state="leased", replaced=1, attempt=2, due=due)
    assert touch(r, job, HOUR) is not None and ack(r, job) == 1
    shows(r, "a", state="waiting", replaced=0, attempt=0, due=due, next=due)


def test_conditions_compare_with_the_new_task(r):
    job, due = leased(r), now_ms() + HOUR
    assert put(r, "s", "a", "AT", due, "NX") is None and put(r, "s", "a", "AT", 1000, "GT") is None
    assert put(r, "s", "a", "AT", due, "GT") == "a"
    shows(r, "a", replaced=1, due=due)
    assert put(r, "s", "a", "AT", due, "GT") is put(r, "s", "a", "AT", due, "LT") is None
    assert put(r, "s", "a", "AT", due, "NX") is None and put(r, "s", "a", "AT", due + 1, "XX") == "a"
    assert r.execute_command("TW.MOVE", "s", "a", "AT", due, "GT") == 0
    assert r.execute_command("TW.MOVE", "s", "a", "AT", due, "LT") == 1
    shows(r, "a", replaced=1, due=due)
    assert ack(r, job) == 1


def test_a_cancel_removes_both(server, r):
    job = leased(r)
    replace(r, "TW.PUT", 1000)
    assert r.execute_command("TW.CANCEL", "s", "a") == [2] and r.exists("s") == 0
    assert touch(r, job, 5) is None and ack(r, job) == 0
    assert (server.tw()["leased"], server.tw()["tasks"]) == (0, 0)


# Its end

COUNTED = {DONE: "done", BACK: "back", BACK_IN: "back", LAPSE: "lapsed"}


@pytest.mark.parametrize("how", MAKERS)
@pytest.mark.parametrize("last", ENDS, ids=lambda last: " ".join(map(str, last)) or "failed")
def test_each_end_lets_the_new_task_wait_for_its_time(server, r, how, last):
    job, due = leased(r), now_ms() + HOUR
    payload, counters = replace(r, how, due), Counters(server)
    reply = end(r, job, last)
    if last == LAPSE:
        wait_until(lambda: task(r, "s", "a")["state"] == "waiting")
    else:
        assert reply == (1 if last == DONE else due)
    shows(r, "a", state="waiting", replaced=0, attempt=0, lapses=0, due=due, next=due, worker="", error="",
          payload=payload)
    names = ("done", "failed", "back", "lapsed", "died")
    assert {name: counters[name] for name in names} == {
        name: int(name == COUNTED.get(last, "failed")) for name in names}
    assert ack(r, job) == 0 and touch(r, job, 5) is None and end(r, job, BACK) is None
    assert dead_of(r, "s") == [] and r.execute_command("TW.NEXT", "s") == ["a", due, due]


@pytest.mark.parametrize("how", MAKERS)
@pytest.mark.parametrize("last", ENDS, ids=lambda last: " ".join(map(str, last)) or "failed")
def test_each_end_lets_a_task_whose_time_has_passed_come(r, how, last):
    job, began = leased(r), now_ms()
    payload = replace(r, how, 2000)
    reply = end(r, job, last)
    assert reply == 1 if last == DONE else last == LAPSE or began <= reply <= now_ms()
    if how == "TW.SEND":
        assert wait_delivered(r, "q", 1) == ["a"]
        fields = r.xrange("q")[0][1]
        assert (fields["tw.due"], fields["tw.attempt"], fields["new"]) == ("2000", "1", "er")
        assert r.exists("s") == 0
        return
    wait_ready(r, "s")
    shows(r, "a", due=2000, attempt=0, error="")
    assert began <= task(r, "s", "a")["next"] <= now_ms()
    again = take(r, "s")[0]
    assert (again.due, again.attempt, again.payload, again.token != job.token) == (2000, 1, payload, True)
    assert ack(r, job) == 0 and ack(r, again) == 1


@pytest.mark.parametrize("last", ENDS, ids=lambda last: " ".join(map(str, last)) or "failed")
def test_the_missed_periods_of_a_replaced_call_count_nothing(server, r, last):
    """The call does not end, only its attempt does. The new task has a call of its own."""
    put(r, "s", "a", "AT", now_ms() - 10 * HOUR, "EVERY", HOUR, "TRIES", 1)
    job, counters = wait_take(r, "s"), Counters(server)
    assert job.missed_periods == 10
    put(r, "s", "a", "AT", now_ms() - 5 * HOUR, "EVERY", HOUR)
    end(r, job, last)
    again = wait_take(r, "s")
    assert (again.missed_periods, counters["coalesced"]) == (5, 0)
    assert (ack(r, again), counters["coalesced"]) == (1, 5)


def test_a_repeating_task_keeps_its_periods_and_its_times(r):
    job = leased(r)
    put(r, "s", "a", "AT", 2000, "EVERY", 1000, "TIMES", 3, "MISSED", "burst")
    assert ack(r, job) == 1
    for due, times in ((2000, 3), (3000, 2), (4000, 1)):
        wait_ready(r, "s")
        shows(r, "a", due=due, times=times)
        again = take(r, "s")[0]
        assert (again.due, again.attempt, ack(r, again)) == (due, 1, 1)
    assert r.exists("s") == 0


def test_a_repeating_target_gets_its_periods(r):
    job = leased(r)
    add(r, "s", "q", "a", 2000, "EVERY", 1000, "TIMES", 3, "MISSED", "burst")
    assert ack(r, job) == 1
    assert wait_delivered(r, "q", 3) == ["a", "a", "a"]
    assert [fields["tw.due"] for _, fields in r.xrange("q")] == ["2000", "3000", "4000"]
    wait_until(lambda: r.exists("s") == 0)


def test_a_target_that_refuses_what_stood_behind(server, r):
    """The attempts of a worker are no tries of the target."""
    r.config_set("tickwheel.target-backoff-ms", 1, "tickwheel.target-tries", 3)
    r.set("q", "a string")
    job = leased(r)
    replace(r, "TW.SEND", 2000)
    assert ack(r, job) == 1
    wait_until(lambda: dead_of(r, "s"))
    assert dead_of(r, "s")[0][:2] == ("a", 2000) and dead_of(r, "s")[0].attempt == 3
    shows(r, "a", state="dead", attempt=3, worker="", replaced=0)


def test_a_lease_is_not_held_by_a_target_that_refuses(server, r):
    r.config_set("tickwheel.target-backoff-ms", 5000, "tickwheel.target-tries", 15)
    r.set("q", "a string")
    job = leased(r)
    replace(r, "TW.SEND", now_ms() + HOUR)
    add(r, "s", "q", "b", 1000)
    wait_until(lambda: server.tw()["held"] == 1)
    touch(r, job, 1)
    wait_until(lambda: task(r, "s", "a")["state"] == "waiting")
    assert server.tw()["held"] == 1


def test_the_ends_wait_for_a_pause_alone(r):
    job = leased(r)
    replace(r, "TW.PUT", 2000)
    r.execute_command("TW.PAUSE", "s")
    assert ack(r, job) == 1 and take(r, "s") == []
    r.execute_command("TW.RESUME", "s")
    assert wait_take(r, "s").due == 2000


def test_lateness_counts_from_the_end_of_the_attempt(clock, server, r):
    """An hour and a half after its due time, and half an hour after the end, the task is not an hour late."""
    counters = Counters(server)
    clock.go_on()
    for name in ("kept", "dropped", "series"):
        put(r, "s", name, "AT", 1000)
    wait_ready(r, "s", 3)
    jobs = {job.id: job for job in take(r, "s", options=("COUNT", 3), lease=10 * HOUR)}
    due = clock.now()
    for name, more in (("kept", ()), ("dropped", ()), ("series", ("EVERY", HOUR, "MISSED", "burst"))):
        put(r, "s", name, "AT", due, *more, "MAXLATE", HOUR)
    clock.push(2 * HOUR)
    r.execute_command("TW.PAUSE", "s")
    ack(r, jobs["dropped"]), ack(r, jobs["series"])
    clock.push(HOUR + 1000)
    ack(r, jobs["kept"])
    r.execute_command("TW.RESUME", "s")
    wait_ready(r, "s", 3)
    assert counters["dropped"] == 0
    assert {job.id: job.due - due for job in take(r, "s", options=("COUNT", 9))} == {
        "kept": 0, "series": 3 * HOUR}
    assert counters["dropped"] == 1 + 3 and "dropped" not in tasks(r, "s")


def test_after_a_lapse_the_task_waits_since_the_end_of_the_lease(clock, server, r):
    """However late the server notices that end."""
    put(r, "s", "a", "AT", 1000)
    job = wait_take(r, "s", lease=400)
    put(r, "s", "a", "AT", 2000)
    clock.push(500)
    wait_until(lambda: server.tw()["renewed"] == 1)  # Nobody was heard in that time.
    ends = task(r, "s", "a")["next"]
    clock.push(500)
    wait_ready(r, "s")
    shows(r, "a", next=ends, due=2000, replaced=0)
    assert clock.now() > ends and ack(r, job) == 0


def test_events_of_the_ends(r):
    job = leased(r)
    replace(r, "TW.PUT", now_ms() + HOUR)
    assert events_of(r, lambda: end(r, job, DEAD)) == ["tw.nack"]
    for last, event in ((DONE, "tw.ack"), (BACK, "tw.back")):
        put(r, "s", "b", "AT", 1000)
        job = wait_take(r, "s")
        replace(r, "TW.PUT", now_ms() + HOUR, "b")
        assert events_of(r, lambda one=job, how=last: end(r, one, how)) == [event]


# Keys, files, replicas

def two_behind(r):
    """A queue with two replaced attempts, for a worker and for a target."""
    jobs = [leased(r), leased(r, name="b")]
    due = now_ms() + HOUR
    put(r, "s", "a", "AT", due, payload=("new",)), add(r, "s", "q", "b", due + 1)
    return jobs, {name: {**task(r, "s", name), "remaining": 0} for name in "ab"}


def still(r, jobs, before, queue="s"):
    """The marks, leases and tokens are as before, and each attempt can be ended."""
    assert {name: {**task(r, queue, name), "remaining": 0} for name in "ab"} == before
    for job in jobs:
        assert ack(r, job._replace(queue=queue)) == 1
        found = task(r, queue, job.id)
        assert (found["state"], found["due"]) == ("waiting", before[job.id]["due"])


def test_rename_dump_and_restore_keep_the_mark(r):
    jobs, before = two_behind(r)
    r.rename("s", "t")
    r.restore("s", 0, r.dump("t"))
    still(r, jobs, before)
    still(r, jobs, before, "t")


def test_a_copy_has_the_new_task_alone(r):
    jobs, before = two_behind(r)
    r.copy("s", "t")
    for name in "ab":
        found = task(r, "t", name)
        assert (found["state"], found["replaced"], found["attempt"], found["worker"]) == ("waiting", 0, 0, "")
        assert found["due"] == found["next"] == before[name]["due"]
        assert found["payload"] == before[name]["payload"]
    assert ack(r, jobs[0]._replace(queue="t")) == 0
    still(r, jobs, before)


@pytest.mark.parametrize("way", ["AOF", "rewritten", "rewritten without preamble", "RDB", "reload"])
def test_a_server_that_starts_again_keeps_the_mark(fleet, way):
    options = {} if way in ("RDB", "reload") else {"appendonly": "yes"}
    server = fleet.server(aof_use_rdb_preamble="no" if "without" in way else "yes", **options)
    jobs, before = two_behind(server.client())
    if way.startswith("rewritten"):
        rewrite(server)
    if way == "RDB":
        server.client().save()
    if way == "reload":
        server.client().execute_command("DEBUG", "RELOAD")
    else:
        server.kill()
        server.start()
    still(server.client(), jobs, before)
    end_marks = {name: task(server.client(), "s", name)["replaced"] for name in "ab"}
    assert end_marks == {"a": 0, "b": 0}


@pytest.mark.parametrize("last", ENDS, ids=lambda last: " ".join(map(str, last)) or "failed")
def test_a_replica_agrees_at_each_step(fleet, last):
    primary = fleet.server()
    replica = fleet.server(replicaof=primary)
    r = primary.client()

    def agree():
        wait_replica_in_sync(primary, replica)
        wait_until(lambda: digest(primary) == digest(replica), message="the replica differs")

    for how in MAKERS:
        for due in (2000, now_ms() + HOUR):
            job = leased(r)
            replace(r, how, due)
            agree()
            assert task(replica.client(), "s", "a")["replaced"] == 1
            touch(r, job, HOUR)
            agree()
            end(r, job, last)
            wait_until(lambda: (task(r, "s", "a") or {}).get("state") != "leased")
            agree()
            r.delete("s", "q")


@pytest.mark.parametrize("way", ["AOF", "rewritten", "RDB"])
def test_what_waits_since_the_end_of_an_attempt_is_the_same_everywhere(fleet, way):
    options = {} if way == "RDB" else {"appendonly": "yes"}
    server = fleet.server(aof_use_rdb_preamble="no", **options)
    replica, r = fleet.server(replicaof=server), server.client()
    jobs = [leased(r), leased(r, name="b")]
    put(r, "s", "a", "AT", 2000), add(r, "s", "q", "b", 2000)
    r.execute_command("TW.PAUSE", "s")
    for job in jobs:
        assert ack(r, job) == 1
    wait_replica_in_sync(server, replica)
    assert digest(server) == digest(replica)
    before = {name: task(r, "s", name) for name in "ab"}
    assert all(one["next"] > one["due"] == 2000 and one["attempt"] == 0 for one in before.values())
    if way == "rewritten":
        rewrite(server)
    if way == "RDB":
        r.save()
    server.kill()
    server.start()
    assert {name: task(server.client(), "s", name) for name in "ab"} == before
    server.client().execute_command("TW.RESUME", "s")
    assert wait_delivered(server.client(), "q", 1) == ["b"] and wait_take(server.client(), "s").id == "a"


def test_a_promoted_replica_ends_the_attempt(fleet):
    primary = fleet.server()
    replica = fleet.server(replicaof=primary)
    jobs, before = two_behind(primary.client())
    wait_replica_in_sync(primary, replica)
    primary.kill()
    replica.client().execute_command("REPLICAOF", "NO", "ONE")
    still(replica.client(), jobs, before)


def test_a_replaced_lease_that_ran_out_while_nobody_served_begins_anew_once(fleet):
    server = fleet.server()
    r, counters = server.client(), Counters(server)
    put(r, "s", "a", "AT", 1000)
    job = wait_take(r, "s", lease=HOUR)
    put(r, "s", "a", "AT", 2000, payload=("new",))
    r.config_set("tickwheel.deliver", "no")
    touch(r, job, 400)
    deferred(server, "stopped")
    shows(r, "a", state="leased", replaced=1)
    r.config_set("tickwheel.deliver", "yes")
    wait_until(lambda: counters["renewed"] == 1)
    wait_until(lambda: counters["lapsed"] == 1)
    assert ack(r, job) == 0
    again = wait_take(r, "s")
    assert (again.due, again.attempt, again.payload) == (2000, 1, ["new"])


def test_a_put_in_a_script_and_in_a_transaction_stands_behind(r):
    job = leased(r)
    with r.pipeline(transaction=True) as pipe:
        pipe.execute_command("TW.PUT", "s", "a", "AT", 2000, "PAYLOAD", "1")
        pipe.execute_command("TW.PUT", "s", "a", "IN", HOUR, "PAYLOAD", "2")
        pipe.execute_command("TW.ACK", "s", "a", job.token)
        pipe.execute_command("TW.MOVE", "s", "a", "AT", 3000)
        assert pipe.execute() == ["a", "a", 1, 1]
    again = wait_take(r, "s")
    assert (again.due, again.payload) == (3000, ["2"])
    let_pass(r, now_ms())


def test_the_right_to_write_the_target_is_that_of_the_new_task(server, r):
    r.execute_command("ACL", "SETUSER", "few", "on", "nopass", "~s", "+@all")
    leased(r)
    replace(r, "TW.SEND", now_ms() + HOUR)
    few = server.client(username="few", password="")
    with pytest.raises(redis.exceptions.NoPermissionError):
        few.execute_command("TW.MOVE", "s", "a", "AT", 1000)
    assert delivered(r, "q") == []
