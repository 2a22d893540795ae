# SPDX-License-Identifier: MIT
"""TW.PROMOTE: waiting tasks become ready now, and keep their due times and attempts (docs/contract.md)."""
import pytest
import redis

from harness import entries, now_ms, task, wait_replica_in_sync, wait_until
from situations import add, digest, put, take, wait_delivered, wait_take

HOUR = 3600 * 1000


def promote(r, *words, queue="s"):
    return r.execute_command("TW.PROMOTE", queue, *words)


def test_a_task_for_workers_is_ready_and_keeps_its_due_time(r):
    due, before = now_ms() + HOUR, now_ms()
    put(r, "s", "a", "AT", due)
    assert promote(r, "IDS", 3, "a", "a", "none") == 1
    found = task(r, "s", "a")
    assert (found["state"], found["due"], found["attempt"]) == ("ready", due, 0)
    assert before <= found["next"] <= now_ms()
    assert promote(r, "IDS", 1, "a") == 0 and promote(r, "ALL") == 0
    assert wait_take(r, "s").due == due
    assert promote(r, "ALL") == 0 and promote(r, "ALL", queue="none") == 0


def test_a_retry_keeps_its_attempts(r):
    put(r, "s", "a", "IN", 0)
    job = wait_take(r, "s")
    r.execute_command("TW.NACK", "s", "a", job.token, "IN", HOUR, "ERROR", "no")
    assert promote(r, "ALL") == 1
    again = wait_take(r, "s")
    assert (again.due, again.attempt) == (job.due, 2)


def test_a_task_with_a_target_is_delivered_with_its_due_time(r):
    due = now_ms() + HOUR
    add(r, "s", "q", "late", due + 1)
    add(r, "s", "q", "first", due)
    add(r, "s", "q", "again", due + 2, "EVERY", HOUR)
    assert promote(r, "ALL") == 3
    wait_delivered(r, "q", 3)
    assert [(fields["tw.id"], int(fields["tw.due"])) for _, fields in entries(r, "q")] == \
        [("first", due), ("late", due + 1), ("again", due + 2)]
    assert task(r, "s", "again")["due"] == due + 2 + HOUR and r.execute_command("TW.LEN", "s") == 1


def test_equals_come_in_the_order_of_filing_and_other_queues_wait(r):
    due, names = now_ms() + HOUR, [f"t{i * 7 % 50}" for i in range(50)]
    for name in names:
        add(r, "s", "q", name, due)
    add(r, "other", "q", "a", due)
    assert promote(r, "ALL") == 50
    assert wait_delivered(r, "q", 50) == names and r.execute_command("TW.LEN", "other") == 1


def test_each_call_promotes_one_more_period_and_none_is_too_late(r):
    due = now_ms() + HOUR
    add(r, "s", "q", "a", due, "EVERY", 1000, "TIMES", 3, "MAXLATE", 0)
    for count in (1, 2, 3):
        assert promote(r, "ALL") == 1
        wait_delivered(r, "q", count)
    assert promote(r, "ALL") == 0
    assert [int(fields["tw.due"]) for _, fields in entries(r, "q")] == [due, due + 1000, due + 2000]


def test_a_task_whose_target_refuses_is_tried_again_at_once(r):
    r.set("q", "no stream")
    for name in "ab":
        add(r, "s", "q", name, now_ms(), "BACKOFF", HOUR, 1, HOUR)
    wait_until(lambda: task(r, "s", "b")["next"] > now_ms() + HOUR // 2)
    r.delete("q")
    assert promote(r, "IDS", 3, "a", "b", "a") == 2
    wait_delivered(r, "q", 2)


@pytest.mark.parametrize("how", ["pause", "deliver"])
def test_a_pause_holds_a_promoted_task(r, how):
    begin = {"pause": ("TW.PAUSE", "s"), "deliver": ("CONFIG", "SET", "tickwheel.deliver", "no")}
    end = {"pause": ("TW.RESUME", "s"), "deliver": ("CONFIG", "SET", "tickwheel.deliver", "yes")}
    put(r, "s", "a", "IN", HOUR)
    add(r, "s", "q", "b", now_ms() + HOUR)
    r.execute_command(*begin[how])
    assert promote(r, "ALL") == 2
    assert task(r, "s", "a")["state"] == task(r, "s", "b")["state"] == "ready"
    assert take(r, "s") == [] and r.exists("q") == 0
    r.execute_command(*end[how])
    wait_delivered(r, "q", 1)
    assert wait_take(r, "s").id == "a"


def test_all_is_at_most_10000_and_the_earliest_come_first(r):
    pipe, due = r.pipeline(transaction=False), now_ms() + HOUR
    for i in range(10010):
        put(pipe, "s", f"t{i}", "AT", due + 10010 - i)
    pipe.execute()
    counts = [promote(r, "ALL")]
    assert 100 <= counts[0] <= 10000  # A slow machine ends a call earlier.
    assert [task(r, "s", name)["state"] for name in ("t10009", "t0")] == ["ready", "waiting"]
    while counts[-1] > 0:
        counts.append(promote(r, "ALL"))
    assert sum(counts) == 10010


@pytest.mark.parametrize("words", [("ALL",), ("IDS", 60, *(f"t{i}" for i in range(60)))], ids=lambda w: w[0])
def test_all_ends_between_big_tasks_and_ids_do_not(r, words):
    """A promotion copies the payload, and ALL looks at the clock after each big one."""
    payload, due = b"x" * (8 << 20), now_ms() + HOUR
    for i in range(60):
        r.execute_command("TW.PUT", "s", f"t{i}", "AT", due, "PAYLOAD", payload)
    counts = [promote(r, *words)]
    assert counts[0] in (range(1, 60) if words[0] == "ALL" else [60])
    while counts[-1] > 0:
        counts.append(promote(r, *words))
    assert sum(counts) == 60


def test_a_user_who_may_not_write_a_target_promotes_nothing(server, r):
    r.execute_command("ACL", "SETUSER", "eve", "on", ">secret", "+@all", "~s", "~mine")
    eve = server.client(username="eve", password="secret")
    put(r, "s", "work", "IN", HOUR)
    add(r, "s", "mine", "a", now_ms() + HOUR)
    assert eve.execute_command("TW.PROMOTE", "s", "ALL") == 2
    put(r, "s", "work", "IN", HOUR)
    add(r, "s", "secret", "b", now_ms() + HOUR)
    for words in (("ALL",), ("IDS", 2, "work", "b")):
        with pytest.raises(redis.exceptions.RedisError, match="secret"):
            eve.execute_command("TW.PROMOTE", "s", *words)
    assert task(r, "s", "work")["state"] == task(r, "s", "b")["state"] == "waiting"


@pytest.mark.parametrize("words, text", [
    ((), "ALL or IDS is missing"), (("x",), "expected ALL, or IDS"), (("ALL", "x"), "no more arguments"),
    (("IDS", 0, "a"), "from 1 to 10000"), (("IDS", 2, "a"), "so many ids behind it")
])
def test_errors_change_nothing(r, words, text):
    put(r, "s", "a", "IN", HOUR)
    with pytest.raises(redis.exceptions.ResponseError, match=text):
        promote(r, *words)
    assert task(r, "s", "a")["state"] == "waiting"


def test_the_log_and_a_replica_keep_it(fleet):
    """Held tasks are no matter of the log: a server that is promoted tries each target at once."""
    server = fleet.server(appendonly="yes", aof_use_rdb_preamble="no")
    replica = fleet.server(replicaof=server)
    wait_replica_in_sync(server, replica)
    r, due = server.client(), now_ms() + HOUR
    r.execute_command("TW.PAUSE", "s")
    put(r, "s", "a", "AT", due)
    add(r, "s", "q", "b", due)
    assert promote(r, "ALL") == 2
    wait_replica_in_sync(server, replica)
    assert digest(server) == digest(replica)
    server.kill()
    server.start()
    for client in (server.client(), replica.client()):
        found = [task(client, "s", name) for name in "ab"]
        assert [(one["state"], one["due"], one["attempt"]) for one in found] == [("ready", due, 0)] * 2
