# SPDX-License-Identifier: MIT
"""Handlers of other modules run at odd moments:
  - when a key expires in the middle of a batch;
  - when a queue is empty for an instant;
  - when a queue has just been made;
  - when memory is short.

As in test_meddling.py, the server lives and starts again, no delivery comes twice, and the replica and the
log agree with the primary."""
import pytest

from harness import now_ms, tasks, wait_replica_in_sync, wait_until
from situations import digest, meddled
from workers import counts, put, put_frail, put_ready, state, take, workers

HOUR = 3600 * 1000
FAR = now_ms() + HOUR
KEYS = ("s", "s2", "a", "b", "c", "c2")


@pytest.fixture
def alone(fleet):
    """A server with the other module, without an append-only file."""
    return meddled(fleet)


def add(r, queue, name, due, target="t"):
    return r.execute_command("TW.SEND", queue, target, name, "AT", due, "PAYLOAD", "n", name)


def add_together(r, count):
    """Adds id0, id1 ... to `s`, which are due at once."""
    with r.pipeline(transaction=True) as all_at_once:
        for i in range(count):
            add(all_at_once, "s", f"id{i}", now_ms())
        all_at_once.execute()


def meddle(r, event, skip, *command):
    """The handler of an event calls a command, once, after `skip` events without that."""
    assert r.execute_command("MEDDLE", event, skip, 1, *command) == "OK"


def wait_meddled(r):
    """Waits for the handler, and returns the reply to the command that the handler called."""
    wait_until(lambda: r.execute_command("MEDDLE.DONE")[0] == 1)
    return r.execute_command("MEDDLE.DONE")[1]


def wait_quiet(r):
    def quiet():
        info = r.info("tickwheel")
        return info["tickwheel_late"] == 0 and info["tickwheel_reaping"] == 0
    wait_until(quiet)


def queues(r):
    return {key: sorted(str(part) for name, due in tasks(r, key).items() for part in (name, due))
            for key in KEYS if r.exists(key)}


def ids(r):
    return [entry[1]["tw.id"] for entry in r.xrange("t")]


def lua(words):
    return "EVAL", words, 0


@pytest.mark.parametrize("command", [("TW.CANCEL", "s", "id0"), ("TW.LEN", "s"),
                                     ("TW.SEND", "s", "t", "id0", "AT", FAR, "PAYLOAD", "n", "again")],
                         ids=lambda c: c[0])
def test_a_queue_expires_in_the_middle_of_a_batch(fleet, clock, command):
    """The handler of the expiry meets tasks of another queue that have already been delivered."""
    server = meddled(fleet, appendonly="yes")
    replica = fleet.server(replicaof=server)
    r, due = server.client(), clock.now() + 300
    r.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
    for i in range(3):
        add(r, "s", f"id{i}", due)
    add(r, "e", "never", due)
    r.pexpireat("e", due - 100)
    meddle(r, "expired", 0, *command)
    clock.reach(due)
    assert wait_meddled(r) in (":0\r\n", "*1\r\n:0\r\n", "$3\r\nid0\r\n")
    wait_until(lambda: r.xlen("t") == 3)
    wait_quiet(r)
    wait_replica_in_sync(server, replica)
    left = {"s": sorted(["id0", str(FAR)])} if command[0] == "TW.SEND" else {}
    assert queues(r) == left and queues(replica.client()) == left
    server.restart()
    assert queues(server.client()) == left and ids(server.client()) == ["id0", "id1", "id2"]


@pytest.mark.parametrize("command", [("TW.ACK", "s", "a", "token"), ("TW.CANCEL", "s", "a"),
                                     ("TW.TOUCH", "s", "a", "token", "LEASE", 5000),
                                     ("TW.TAKE", 1, "s", "LEASE", 5000)],
                         ids=lambda c: c[0])
@pytest.mark.parametrize("order", ["se", "es"])
def test_a_queue_expires_where_leases_end(fleet, order, command):
    """The handler of the expiry meets a lease of another queue that has just ended, or ends next."""
    server = meddled(fleet, appendonly="yes")
    replica = fleet.server(replicaof=server)
    r = server.client()
    r.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
    for key in order:
        put_frail(r, key, "a")
    lapsed = server.tw()["lapsed"]
    jobs = r.execute_command("TW.TAKE", 2, *order, "LEASE", HOUR, "COUNT", 2)
    token = jobs[order.index("s")][2]
    meddle(r, "expired", 0, *(token if word == "token" else word for word in command))
    with r.pipeline(transaction=True) as both:  # Both leases end in one tick, which finds that `e` has expired.
        for key, name, its_token, *_ in jobs:
            both.execute_command("TW.TOUCH", key, name, its_token, "LEASE", 20)
        both.pexpire("e", 1)
        both.execute_command("DEBUG", "SLEEP", 0.1)
        both.execute()
    wait_meddled(r)
    heard = order == "es" and command[0] in ("TW.ACK", "TW.TOUCH")
    gone = command[0] == "TW.CANCEL" or (heard and command[0] == "TW.ACK")
    assert state(r, "s", "a") == (None if gone else "leased" if heard else "dead")
    wait_replica_in_sync(server, replica)
    before = digest(server)
    lapsed = server.tw()["lapsed"] - lapsed
    assert (digest(replica), lapsed) == (before, 0 if order == "es" and (heard or gone) else 1)
    server.kill()
    server.start()
    assert digest(server) == before


def test_a_task_is_filed_again_while_another_queue_is_told_of(fleet, clock):
    """Both queues have delivered in one batch. The log entry of neither may undo the commands after it."""
    server = meddled(fleet, appendonly="yes")
    replica = fleet.server(replicaof=server)
    r, due = server.client(), clock.now() + 300
    add(r, "b", "x", due)
    add(r, "a", "y", due)
    meddle(
        r, "tw.delivered", 0, "EVAL", """
        for _, s in ipairs({'a', 'b'}) do
            redis.call('TW.SEND', s, 't', 'x', 'AT', ARGV[1], 'PAYLOAD', 'n', 1)
        end""",
        0, FAR)
    clock.reach(due)
    wait_meddled(r)
    wait_quiet(r)
    wait_replica_in_sync(server, replica)
    both = {"a": sorted(["x", str(FAR)]), "b": sorted(["x", str(FAR)])}
    assert queues(r) == both and queues(replica.client()) == both
    server.restart()
    assert queues(server.client()) == both


@pytest.mark.parametrize("command", [("RENAME", "a", "c"), ("COPY", "a", "c2"), ("MOVE", "a", 1), ("DEL", "a"),
                                     lua("redis.call('tw.len', 'a'); return redis.call('copy', 'a', 'c2')"),
                                     lua("redis.call('tw.len', 'a'); return redis.call('rename', 'a', 'c')")],
                         ids=lambda c: c[0] if c[0] != "EVAL" else c[1][-20:-2])
def test_a_queue_that_has_just_been_emptied(fleet, clock, command):
    """The last task of the queue has been delivered, and a task of another queue is next. The emptied
    queue still exists for all commands, or for none."""
    server = meddled(fleet, appendonly="yes")
    if command[0] == "MOVE" and server.is_valkey():
        pytest.skip("Valkey has a fault here, with replicas: its pull request 4024")
    replica = fleet.server(replicaof=server)
    r, due = server.client(), clock.now() + 300
    add(r, "a", "x", due)
    add(r, "b", "y", due)
    add(r, "c", "keep", FAR)
    meddle(r, "xadd", 1, *command)
    clock.reach(due)
    wait_meddled(r)
    wait_until(lambda: r.info("tickwheel")["tickwheel_queues"] == r.info("tickwheel")["tickwheel_tasks"])
    wait_replica_in_sync(server, replica)
    mine = queues(r)
    assert all(mine.values()) and queues(replica.client()) == mine
    assert ids(r) == ["x", "y"]
    server.restart()
    assert queues(server.client()) == mine


@pytest.mark.parametrize("event", ["tw.cancel", "tw.delivered", "tw.ack"])
@pytest.mark.parametrize("command", [("SAVE", ), ("BGSAVE", ), ("RENAME", "s", "s2"), ("COPY", "s", "s2"),
                                     ("MOVE", "s", 1)],
                         ids=lambda c: c[0])
def test_an_empty_queue_does_not_stay(alone, event, command):
    """A handler may save an empty queue, or rename it, before it is removed. The file is good
    nevertheless."""
    r = alone.client()
    if event == "tw.ack":
        put_ready(r, "s", "a")
        token = take(r, "s")["a"]
    else:
        add(r, "s", "a", FAR)
    meddle(r, event, 0, *command)
    if event == "tw.delivered":
        r.execute_command("TW.MOVE", "s", "a", "IN", 0)
    if event == "tw.ack":
        assert r.execute_command("TW.ACK", "s", "a", token) == 1
    if event == "tw.cancel":
        r.execute_command("TW.CANCEL", "s", "a")
    wait_meddled(r)
    wait_until(lambda: r.info("persistence")["rdb_bgsave_in_progress"] == 0)
    if "SAVE" not in command[0]:
        r.save()
    wait_until(lambda: r.info("tickwheel")["tickwheel_queues"] == 0)
    alone.kill()
    alone.start()
    r = alone.client()
    wait_until(lambda: r.info("tickwheel")["tickwheel_queues"] == 0)
    assert queues(r) == {} and r.exists("s2") == 0 and alone.client(db=1).dbsize() == 0


SEEN = {
    "copy": ("COPY", "s", "s2"),
    "restore": lua("return redis.call('restore', 's2', 0, redis.call('dump', 's'))"), "save": ("SAVE", ),
    "info": lua("return string.match(redis.call('info', 'tickwheel'), 'tickwheel_tasks:%d+')"),
    "digest": ("DEBUG", "DIGEST-VALUE", "s")
}


@pytest.mark.parametrize("command", SEEN)
def test_what_has_been_delivered_is_in_no_copy(alone, command):
    """Seven tasks have been delivered when the eighth is written. The eighth task is in the copy, and the
    copy delivers it once more."""
    r = alone.client()
    meddle(r, "xadd", 7, *SEEN[command])
    add_together(r, 10)
    answer = wait_meddled(r)
    if command == "info":
        assert "tickwheel_tasks:3" in answer
    wait_quiet(r)
    if command == "save":
        alone.kill()
        alone.start()
        r = alone.client()
        wait_until(lambda: r.info("tickwheel")["tickwheel_tasks"] == 0)
    wait_until(lambda: r.xlen("t") >= 10)
    came = ids(r)
    assert {name: came.count(name) for name in came if came.count(name) > 1}.keys() <= {"id7", "id8", "id9"}
    assert set(came) == {f"id{i}" for i in range(10)}


@pytest.mark.parametrize("event", ["rename_from", "rename_to"])
def test_promoting_in_the_middle_of_a_rename(alone, event):
    r = alone.client()
    add(r, "s", "a", FAR)
    add(r, "s", "b", FAR)
    meddle(r, event, 0, "TW.PROMOTE", "s2", "ALL")
    r.rename("s", "s2")
    wait_meddled(r)
    for name in "ab":
        r.execute_command("TW.MOVE", "s2", name, "IN", 0)
    wait_until(lambda: r.xlen("t") == 2 and not r.exists("s2"))
    assert ids(r) == ["a", "b"]


@pytest.mark.parametrize("command", [("TW.SEND", "s", "t", "a", "AT", FAR, "PAYLOAD", "n", "other"), ("SAVE",)],
                         ids=lambda c: c[0])
def test_a_queue_that_has_just_been_made(alone, command):
    """The first task is in the queue when other modules receive the event `new` for its key. (They must
    not remove the key, as the server itself then crashes, for every command that makes a key.)"""
    r = alone.client()
    meddle(r, "new", 0, *command)
    assert add(r, "s", "a", FAR) == "a"
    wait_meddled(r)
    wait_until(lambda: r.info("tickwheel")["tickwheel_queues"] == r.info("tickwheel")["tickwheel_tasks"])
    assert queues(r) == {"s": sorted(["a", str(FAR)])}
    if command[0] == "SAVE":
        alone.kill()
        alone.start()
        assert queues(alone.client()) == {"s": sorted(["a", str(FAR)])}


@pytest.mark.parametrize("command", [("TW.PUT", "s", "b", "IN", 0, "PAYLOAD", "n"), ("SAVE",),
                                     ("TW.TAKE", 1, "s", "LEASE", 5000)], ids=lambda c: c[0])
def test_a_queue_that_has_just_been_made_for_a_worker(alone, command):
    r = alone.client()
    with workers(alone, 1, "s", count=2) as crew:
        meddle(r, "new", 0, *command)
        assert put(r, "s", "a") == "a"
        wait_meddled(r)
        assert sorted(crew[0].ids()) == (["a", "b"] if command[0] == "TW.PUT" else ["a"])
    assert counts(alone) == (0, 2 if command[0] == "TW.PUT" else 1, 0)
    alone.kill()
    alone.start()
    assert alone.tw()["queues"] == (command[0] == "SAVE")


@pytest.mark.parametrize("event, skip", [("xadd", 3), ("tw.delivered", 0)])
@pytest.mark.parametrize("command", [("UNLINK", "s"), ("DEL", "s"), ("FLUSHALL",)], ids=lambda c: c[0])
def test_a_queue_is_freed_at_once_when_memory_is_short(alone, event, skip, command):
    """The queue is gone when the call returns, and not a tick later."""
    r = alone.client()
    r.config_set("maxmemory-policy", "volatile-lru")
    add(r, "s", "far", FAR)
    meddle(r, event, skip, *command)
    r.config_set("tickwheel.deliver", "no")
    add_together(r, 20)
    r.config_set("maxmemory", 1000)
    r.config_set("tickwheel.deliver", "yes")
    wait_meddled(r)
    r.config_set("maxmemory", 0)
    wait_quiet(r)
    assert r.info("tickwheel")["tickwheel_tasks"] == 0


def test_the_same_within_cancelling(alone):
    r = alone.client()
    add(r, "s", "a", FAR)
    add(r, "s", "b", FAR)
    meddle(r, "tw.cancel", 0, "DEL", "s")
    r.config_set("maxmemory", 1000)
    assert r.execute_command("TW.CANCEL", "s", "a") == [1]
    r.config_set("maxmemory", 0)
    wait_quiet(r)
    assert r.exists("s") == 0


@pytest.mark.parametrize("command", [("UNLINK", "s"), ("DEL", "s"), ("FLUSHALL",)], ids=lambda c: c[0])
def test_the_same_when_leases_end(alone, command):
    """Leases end although memory is short."""
    r = alone.client()
    names = [f"t{i}" for i in range(20)]
    put_frail(r, "s", *names)
    tokens = take(r, "s", count=20)
    meddle(r, "tw.dead", 0, *command)
    with r.pipeline(transaction=True) as all_at_once:
        all_at_once.config_set("maxmemory", 1)
        for name in names:
            all_at_once.execute_command("TW.TOUCH", "s", name, tokens[name], "LEASE", 1)
        all_at_once.execute()
    wait_meddled(r)
    assert (counts(alone), r.info("tickwheel")["tickwheel_tasks"]) == ((0, 0, 0), 0)


def test_the_same_within_taking(alone):
    """The reply has what was taken; its tokens do not count any more."""
    r = alone.client()
    put_ready(r, "s", "a", "b", "c")
    meddle(r, "tw.take", 0, "DEL", "s")
    r.config_set("maxmemory", 1)
    tokens = take(r, "s", count=2)
    assert (list(tokens), r.exists("s"), counts(alone)) == (["a", "b"], 0, (0, 0, 0))
    assert r.execute_command("TW.ACK", "s", "a", tokens["a"]) == 0
