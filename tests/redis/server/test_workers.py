# SPDX-License-Identifier: MIT
"""Workers that wait in TW.TAKE: who is served, in which order, by which events, and what ends a wait.

The server keeps the blocked clients (delivery/workers.c). So the tests do everything that can happen to a
client, to a key or to a database while a worker is blocked on it."""
import pytest
import redis
from harness import Raw, Tap, now_ms, wait_replica_in_sync, wait_until
from situations import digest, meddled, none_served, outcomes
from test_lifecycle import raw_dump
from workers import (FAR, Waiter, Worker, blocked, counts, put, put_frail, put_ready, state, take, wait_state,
                     workers)


# Order

def test_workers_are_served_in_the_order_in_which_they_were_blocked(server, r):
    with workers(server, 40, "s") as crew:
        for i in range(40):
            put(r, "s", f"t{i}")
        assert [one.ids() for one in crew] == [[f"t{i}"] for i in range(40)]
    assert (r.execute_command("TW.LEN", "s"), counts(server)) == (40, (0, 40, 0))


def test_tasks_that_are_due_together_go_to_the_workers_in_order(server, r):
    with workers(server, 5, "s") as crew:
        due = now_ms() + 300
        for name in "abc":
            put(r, "s", name, at=due)
        assert [one.ids() for one in crew[:3]] == [["a"], ["b"], ["c"]]
        none_served(server, crew[3:])
        put(r, "s", "d")
        assert crew[3].ids() == ["d"]


def test_a_worker_takes_as_many_as_are_ready(server, r):
    with workers(server, 2, "s", count=3) as crew:
        with r.pipeline(transaction=True) as all_at_once:
            for name in "abcd":
                put(all_at_once, "s", name, at=now_ms())
            all_at_once.execute()
        assert [one.ids() for one in crew] == [["a", "b", "c"], ["d"]]


def test_several_queues_and_one_that_does_not_exist_yet(server, r):
    """The worker is served by whichever queue has a task first, and waits for no other one after that."""
    with workers(server, 1, "s1", "s2", "s3") as one, workers(server, 2, "s3", "s2") as two:
        put(r, "s2", "a")
        assert one[0].reply()[0][:2] == ["s2", "a"]
        put(r, "s3", "b")
        assert two[0].reply()[0][:2] == ["s3", "b"]
        put(r, "s1", "c")
        wait_state(r, "s1", "c", "ready")
        none_served(server, one + two)
        put(r, "s2", "d")
        assert two[1].reply()[0][:2] == ["s2", "d"]
    assert blocked(server) == 0


def test_a_worker_that_does_not_wait_takes_what_comes_and_the_others_wait_on(server, r):
    with workers(server, 1, "s") as crew:
        with r.pipeline(transaction=True) as both:
            both.execute_command("TW.PUT", "s", "a", "IN", 0, "PAYLOAD", "v")
            both.execute_command("TW.TAKE", 1, "s", "LEASE", FAR)
            assert both.execute()[1][0][1] == "a"
        put(r, "s", "b")
        assert crew[0].ids() == ["b"]


def test_a_blocked_worker_gets_all_that_a_reply_has(server, r):
    with workers(server, 1, "s", lease=54321) as crew:
        due = now_ms() + 100
        put(r, "s", "a", at=due, payload=("one", "", "three"))
        [[queue, name, token, when, attempt, payload, missed]] = crew[0].reply()
        assert (queue, name, when, attempt, payload, missed) == ("s", "a", due, 1, ["one", "", "three"], 0)
        assert r.execute_command("TW.ACK", "s", "a", token) == 1


# The end of a wait

def test_a_wait_ends_with_nothing(server):
    """As the reply of a TW.TAKE that finds nothing, the reply is a null array."""
    raw = Raw(server)
    for words in ((), ("BLOCK", 20)):
        begun = now_ms()
        raw.send("TW.TAKE", 1, "s", "LEASE", 5, *words)
        assert raw.line() == b"*-1"
        assert not words or now_ms() - begun >= 19
    assert Raw(server, protocol=3)("TW.TAKE", 1, "s", "LEASE", 5, "BLOCK", 1) is None


def test_the_longest_wait(server, r):
    with workers(server, 1, "s", block=2**32 - 1) as crew:
        none_served(server, crew)
        put(r, "s", "a")
        assert crew[0].ids() == ["a"]


def test_the_server_ends_a_wait(server, r):
    with workers(server, 4, "s") as crew:
        assert r.client_unblock(crew[0].id) == 1
        assert crew[0].reply() is None
        assert r.client_unblock(crew[1].id, error=True) == 1
        assert str(crew[1].reply()).startswith("UNBLOCKED")
        assert r.client_kill_filter(_id=crew[2].id) == 1
        put(r, "s", "a")
        assert crew[3].ids() == ["a"]
        assert crew[0].raw("PING") == "PONG"


def test_workers_that_are_gone_take_nothing(server, r):
    with workers(server, 5, "s") as crew:
        for one in crew[:4]:
            one.close()
        wait_until(lambda: blocked(server) == 1)
        put(r, "s", "a")
        assert crew[4].ids() == ["a"]
    assert server.tw()["taken"] == 1


def test_where_nothing_can_wait(fleet):
    """In MULTI, scripts, and calls of other modules TW.TAKE replies at once."""
    server = meddled(fleet)
    r = server.client()
    words = ("TW.TAKE", 1, "s", "LEASE", 5, "BLOCK", 0)
    with r.pipeline(transaction=True) as both:
        both.execute_command(*words)
        assert both.execute() == [None]
    script = "return {redis.call('TW.TAKE', 1, KEYS[1], 'LEASE', 5, 'BLOCK', 0)}"
    assert r.eval(script, 1, "s") == [None]
    for whose in ("USER", "SERVER"):
        assert r.execute_command("MEDDLE.CALL", whose, *words) is None
    assert blocked(server) == 0


# How tasks become ready

def dead_task(r):
    put_ready(r, "s", "a")
    token = take(r, "s")["a"]
    assert r.execute_command("TW.NACK", "s", "a", token, "DEAD") == 0


def leased_task(r):
    put_ready(r, "s", "a")
    return take(r, "s")["a"]


def restored(r):
    put(r, "s0", "a")
    r.restore("s", 0, raw_dump(r, "s0"))


def paused(r):
    r.execute_command("TW.PAUSE", "s")
    put(r, "s", "a")
    assert r.execute_command("TW.RESUME", "s") == 1


WAYS = {
    "put due at once": lambda r: put(r, "s", "a"),
    "by the clock": lambda r: put(r, "s", "a", at=now_ms() + 30),
    "by TW.PROMOTE": lambda r: (put(r, "s", "a", at=now_ms() + FAR),
                                r.execute_command("TW.PROMOTE", "s", "ALL")),
    "by TW.MOVE": lambda r: (put(r, "s", "a", at=now_ms() + FAR),
                             r.execute_command("TW.MOVE", "s", "a", "IN", 0)),
    "by the end of a pause": paused,
    "the next period": lambda r: put(r, "s", "a", "EVERY", 1000, at=now_ms() - 500),
    "in a script": lambda r: r.eval("redis.call('TW.PUT', KEYS[1], 'a', 'IN', 0, 'PAYLOAD', 'v')", 1, "s"),
    "by RESTORE": restored,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_task_becomes_ready_and_a_worker_gets_it(server, r, way):
    """A worker is blocked when the task becomes ready, and is served without any help."""
    with workers(server, 1, "s") as crew:
        WAYS[way](r)
        assert crew[0].ids() == ["a"]


@pytest.mark.parametrize("how,attempt", [(("IN", 0), 2), (("IN", 20), 2), (("BACK",), 1)], ids=str)
def test_a_task_that_a_worker_gives_back_goes_to_the_next_one(server, r, how, attempt):
    token = leased_task(r)
    with workers(server, 2, "s") as crew:
        r.execute_command("TW.NACK", "s", "a", token, *how)
        [[_, name, other, _, begun, *_]] = crew[0].reply()
        assert (name, begun) == ("a", attempt) and other != token
        none_served(server, crew[1:])


def test_a_task_that_is_given_back_in_a_transaction_goes_to_a_blocked_worker(server, r):
    token = leased_task(r)
    with workers(server, 1, "s") as crew:
        with r.pipeline(transaction=True) as both:
            both.execute_command("TW.NACK", "s", "a", token, "BACK")
            both.incr("returned")
            both.execute()
        assert crew[0].ids() == ["a"]
    assert server.tw()["back"] == 1


@pytest.mark.parametrize("why", ["pause", "deliver"])
def test_a_task_that_is_given_back_while_nothing_is_given_out(server, r, why):
    stop, go_on = {"pause": (("TW.PAUSE", "s"), ("TW.RESUME", "s")),
                   "deliver": [("CONFIG", "SET", "tickwheel.deliver", to) for to in ("no", "yes")]}[why]
    token = leased_task(r)
    with workers(server, 1, "s") as crew:
        r.execute_command(*stop)
        assert r.execute_command("TW.NACK", "s", "a", token, "BACK") > 0
        none_served(server, crew)
        assert state(r, "s", "a") == "ready"
        r.execute_command(*go_on)
        assert crew[0].ids() == ["a"]


def test_a_task_that_is_given_back_while_memory_is_full(server, r):
    """The blocked worker gets nil, as whenever a task is ready then, and its next call gets the task."""
    token = leased_task(r)
    with workers(server, 1, "s") as crew:
        r.config_set("maxmemory", 1)
        assert r.execute_command("TW.NACK", "s", "a", token, "BACK") > 0
        assert crew[0].reply() is None
        assert list(take(r, "s")) == ["a"]
        r.config_set("maxmemory", 0)


def test_a_dead_task_that_is_replayed_goes_to_a_worker(server, r):
    dead_task(r)
    with workers(server, 1, "s") as crew:
        assert r.execute_command("TW.REPLAY", "s", "ALL") == 1
        [[_, name, _, _, attempt, *_]] = crew[0].reply()
        assert (name, attempt) == ("a", 1)


def test_a_lease_that_runs_out_while_a_worker_waits(server, r):
    put_ready(r, "s", "a", options=("BACKOFF", 1, 1, 1))
    take(r, "s", lease=300)
    with workers(server, 1, "s", wait=False) as crew:
        [[_, name, _, _, attempt, *_]] = crew[0].reply()
        assert (name, attempt) == ("a", 2)


# Deliveries that are stopped

def test_pause_of_a_queue(server, r):
    put_ready(r, "s", "a")
    r.execute_command("TW.PAUSE", "s")
    assert take(r, "s") == {}
    with workers(server, 2, "s") as crew:
        put(r, "s", "b")
        none_served(server, crew)
        r.execute_command("TW.RESUME", "s")
        assert [one.ids() for one in crew] == [["a"], ["b"]]


def test_the_end_of_a_pause_gives_out_what_was_ready_before(server, r):
    put_ready(r, "s", "a")
    r.execute_command("TW.PAUSE", "s")
    with workers(server, 1, "s") as crew:
        r.execute_command("TW.RESUME", "s")
        assert crew[0].ids() == ["a"]


def test_a_server_that_is_told_to_deliver_nothing(server, r):
    """Both a task that was ready before and a task that becomes due meanwhile."""
    put_ready(r, "s", "a")
    r.config_set("tickwheel.deliver", "no")
    assert take(r, "s") == {}
    tap = Tap(server)
    with workers(server, 1, "s") as one, workers(server, 1, "s2") as two:
        put(r, "s2", "b")
        none_served(server, one + two)
        assert outcomes(tap.commands()) == [("s2", "PUT")]
        r.config_set("tickwheel.deliver", "yes")
        assert (one[0].ids(), two[0].ids()) == (["a"], ["b"])
    tap.close()


def test_a_ready_task_alone_is_given_out_when_the_server_may_deliver_again(server, r):
    """Nothing else becomes due, so that no other tick helps."""
    put_ready(r, "s", "a")
    r.config_set("tickwheel.deliver", "no")
    with workers(server, 1, "s") as crew:
        none_served(server, crew)
        r.config_set("tickwheel.deliver", "yes")
        assert crew[0].ids() == ["a"]


# Keys that come and go

def test_rename_of_a_queue_with_ready_tasks_onto_the_key(server, r):
    put_ready(r, "s0", "a", "b")
    with workers(server, 1, "s") as crew:
        r.rename("s0", "s")
        assert crew[0].reply()[0][:2] == ["s", "a"]
        assert (state(r, "s", "a"), state(r, "s", "b")) == ("leased", "ready")


def test_rename_away_and_a_new_queue(clock, server, r):
    due = clock.now() + 300
    put(r, "s", "later", at=due)
    with workers(server, 1, "s") as here, workers(server, 1, "s2") as there:
        r.rename("s", "s2")
        clock.reach(due)
        assert there[0].ids() == ["later"]
        none_served(server, here)
        put(r, "s", "a")
        assert here[0].ids() == ["a"]


@pytest.mark.parametrize("replace", [False, True])
def test_copy_onto_the_key(server, r, replace):
    for name, due in (("a", now_ms() - 20), ("b", now_ms() - 10)):
        put(r, "s0", name, at=due)
        wait_state(r, "s0", name, "ready")
    take(r, "s0")
    if replace:
        r.set("s", "text")
        r.delete("s")
        put(r, "s", "far", at=now_ms() + FAR)
    with workers(server, 2, "s") as crew:
        r.copy("s0", "s", replace=replace)
        assert [one.ids() for one in crew] == [["a"], ["b"]]
    assert (state(r, "s0", "a"), state(r, "s0", "b")) == ("leased", "ready")


def test_move_to_another_database(server, r):
    put_ready(r, "s", "a")
    with workers(server, 1, "s", db=3) as there:
        assert server.once("MOVE", "s", 3) == 1
        assert there[0].ids() == ["a"]


def test_swapdb(server, r):
    """A worker waits in its database, whatever data that database gets."""
    put_ready(r, "s", "a")
    put(server.client(db=4), "s", "far", at=now_ms() + FAR)
    with workers(server, 1, "s", db=4) as there:
        r.swapdb(0, 4)
        assert there[0].ids() == ["a"]
        with workers(server, 1, "s") as here:
            r.execute_command("TW.MOVE", "s", "far", "IN", 0)
            assert here[0].ids() == ["far"]


@pytest.mark.parametrize("how,key,db", [(("RENAME", "s0", "s"), "s0", 0), (("MOVE", "s", 4), "s", 4),
                                        (("SWAPDB", 0, 4), "s", 4)], ids=["RENAME", "MOVE", "SWAPDB"])
def test_a_worker_that_comes_when_the_task_has_come_does_not_overtake(server, r, how, key, db):
    """His TW.TAKE is the next command that the server reads. Nobody waits for the cron."""
    put_ready(r, key, "a")
    raw = Raw(server)
    with workers(server, 1, "s", db=db) as crew:
        raw.send_all([how, ("SELECT", db), ("TW.TAKE", 1, "s", "LEASE", FAR)])
        assert (raw.read() in ("OK", 1), raw.read(), raw.read()) == (True, "OK", None)
        assert crew[0].ids() == ["a"]


@pytest.mark.parametrize("how", [("FLUSHALL", "ASYNC"), ("FLUSHDB",), ("DEL", "s"), ("UNLINK", "s"),
                                 ("PEXPIREAT", "s", 1), ("TW.CANCEL", "s", "far")])
def test_the_queue_goes_and_a_worker_waits_for_the_next_one(server, r, how):
    put(r, "s", "far", at=now_ms() + FAR)
    with workers(server, 2, "s") as crew:
        r.execute_command(*how)
        assert r.exists("s") == 0
        none_served(server, crew)
        put(r, "s", "a")
        assert crew[0].ids() == ["a"]
        none_served(server, crew[1:])


def test_the_queue_expires_while_a_worker_waits(server, r):
    put(r, "s", "far", at=now_ms() + FAR)
    with workers(server, 1, "s") as crew:
        r.pexpire("s", 50)
        wait_until(lambda: server.tw()["expired_tasks"] == 1)
        none_served(server, crew)
        put(r, "s", "a")
        assert crew[0].ids() == ["a"]


def test_the_queue_is_evicted_while_a_worker_waits(fleet):
    server = fleet.server(maxmemory_policy="allkeys-random")
    r = server.client()
    put(r, "s", "far", at=now_ms() + FAR)
    with workers(server, 1, "s") as crew:
        r.config_set("maxmemory", 1)
        with pytest.raises(redis.ResponseError, match="OOM"):
            r.set("any", "text")
        wait_until(lambda: server.tw()["evicted_tasks"] == 1)
        r.config_set("maxmemory", 0)
        none_served(server, crew)
        put(r, "s", "a")
        assert crew[0].ids() == ["a"]


def test_keys_of_other_types(server, r):
    put(r, "s", "far", at=now_ms() + FAR)
    with workers(server, 1, "s") as crew:
        r.set("s", "text")
        none_served(server, crew)
        with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
            put(r, "s", "a")
        r.delete("s")
        for _ in range(3):
            r.rpush("s", "x")
            r.delete("s")
        none_served(server, crew)
        put(r, "s", "a")
        assert crew[0].ids() == ["a"]
    r.set("text", "text")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        r.execute_command("TW.TAKE", 2, "s", "text", "LEASE", 5, "BLOCK", 0)


def test_reload_while_workers_wait(clock, server, r):
    due = clock.now() + 600
    put(r, "s", "later", at=due)
    with workers(server, 2, "s") as crew:
        r.execute_command("DEBUG", "RELOAD")
        clock.reach(due)
        assert crew[0].ids() == ["later"]
        put(r, "s", "a")
        assert crew[1].ids() == ["a"]


# Whoever was asked last (delivery/asked.c)
#
# In each of these situations the server asks several clients after one tick, and the one that is returned gets
# nothing. He stays blocked, at most for `block` ms.

def deliver(client, *targets):
    """Tasks for these targets, which are due in one tick. Names of Lists begin with l; others are Streams."""
    with client.pipeline(transaction=True) as all_at_once:
        for target in targets:
            words = ("LIST", "PAYLOAD", "v") if target.startswith("l") else ("PAYLOAD", "n", "v")
            all_at_once.execute_command("TW.SEND", "deliveries", target, "*", "IN", 0, *words)
        all_at_once.execute()


def consumers(server, stream, **options):
    """Two consumers of one group, who wait for an entry of the Stream."""
    server.client().xgroup_create(stream, "g", mkstream=True)
    block = options.pop("block", 0)
    return [Waiter(server, "XREADGROUP", "GROUP", "g", name, "COUNT", 1, "BLOCK", block, "STREAMS", stream, ">",
                   **options) for name in ("first", "second")]


def the_second_worker(server, **options):
    first, second = Worker(server, "s"), Worker(server, "s", **options)
    put(server.client(), "s", "a")
    assert first.ids() == ["a"]
    return second


def the_second_worker_of_the_last_queue(server, **options):
    others = Worker(server, "s1"), Worker(server, "s1")
    first, second = Worker(server, "s"), Worker(server, "s", **options)
    with server.client().pipeline(transaction=True) as both:
        for queue in ("s1", "s"):
            put(both, queue, "a")
        both.execute()
    assert others[0].ids() == first.ids() == ["a"]
    return second


def the_second_consumer(server, **options):
    first, second = consumers(server, "q", **options)
    deliver(server.client(), "q")
    assert first.reply()
    return second


def a_consumer_of_the_stream_before(server, **options):
    """The tick adds to `q1` at last, but the server asks the consumers of `q2` later."""
    first, second = consumers(server, "q2", **options)
    other, _ = consumers(server, "q1")
    deliver(server.client(), "q1", "q2", "q1")
    assert first.reply() and other.reply()
    return second


def a_worker_at_a_list(server, **options):
    """The queue's name is that of a target."""
    worker = Worker(server, "list", **options)
    deliver(server.client(), "list")
    wait_until(lambda: server.client().llen("list") == 1)
    return worker


def a_worker_behind_an_emptied_list(server, **options):
    """In the same tick a List is filled, which BLPOP empties at once."""
    popper = Waiter(server, "BLPOP", "list", 0)
    first, second = Worker(server, "s"), Worker(server, "s", **options)
    with server.client().pipeline(transaction=True) as both:
        put(both, "s", "a")
        both.execute_command("TW.SEND", "deliveries", "list", "*", "IN", 0, "LIST", "PAYLOAD", "v")
        both.execute()
    assert popper.reply() == ["list", "v"] and first.ids() == ["a"]
    return second


def a_consumer_behind_an_emptied_list(server, **options):
    popper, (first, second) = Waiter(server, "BLPOP", "list", 0), consumers(server, "q", **options)
    deliver(server.client(), "list", "q")
    assert popper.reply() == ["list", "v"] and first.reply()
    return second


def a_worker_in_another_database(server, **options):
    first, second = Worker(server, "s", db=3), Worker(server, "s", db=3, **options)
    with server.client().pipeline(transaction=True) as both:
        both.execute_command("TW.SEND", "deliveries", "q", "*", "IN", 0, "PAYLOAD", "n", "v")
        both.select(3)
        put(both, "s", "a")
        both.select(0)
        both.execute()
    assert first.ids() == ["a"]
    return second


SITUATIONS = [the_second_worker, the_second_worker_of_the_last_queue, the_second_consumer,
              a_consumer_of_the_stream_before, a_worker_at_a_list, a_worker_behind_an_emptied_list,
              a_consumer_behind_an_emptied_list, a_worker_in_another_database]


NOLOOP = {"tracking": ("ON", "NOLOOP")}


def hears_of_a_delivery(server, asked):
    """Ends the wait of a client that tracks keys, but not its own changes. Then the client reads a Stream, and
    is told that a delivery has changed it."""
    r, raw = server.client(), asked.raw
    assert r.client_unblock(asked.id) == 1
    assert asked.reply() is None
    raw("SELECT", 0)
    length = raw("XLEN", "out")
    r.execute_command("TW.SEND", "others", "out", "*", "IN", 0, "PAYLOAD", "n", "v")
    wait_until(lambda: r.xlen("out") == length + 1)
    raw.send("PING")
    assert raw.read() == Raw.Push(["invalidate", ["out"]]) and raw.read() == "PONG"


@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_client_that_was_asked_in_vain_changes_nothing_itself(server, situation):
    """To Redis 7.0 all changes of the next ticks were those of this client, so it told the client of none."""
    hears_of_a_delivery(server, situation(server, **NOLOOP))


def two_ticks(clock, server):
    """Returns whether the second tick followed at once. It comes a moment later if the server has seen the new
    time before its timer ran: it sets the timer to the present then, and two timers have no time in common."""
    r = server.client()
    r.execute_command("MEDDLE", "tw.ready", 0, 1, "TW.PUT", "s", "b", "IN", 0, "PAYLOAD", "v")
    with workers(server, 2, "s", count=2) as crew, workers(server, 2, "t", **NOLOOP) as others:
        with r.pipeline(transaction=True) as both:
            put(both, "s", "a", at=clock.now() + 50)
            put(both, "t", "c", at=clock.now() + 50)
            both.execute()
        clock.push(51)  # The second tick's timer is set for now, and the server runs all timers up to now.
        ids = sorted(crew[0].ids())
        at_once = ids == ["a", "b"]
        assert (at_once or ids == ["a"]) and others[0].ids() == ["c"]
        if at_once:
            assert blocked(server) == 2
            clock.go_on()
            hears_of_a_delivery(server, others[1])
        return at_once


def test_two_ticks_without_a_sleep(clock, fleet):
    """A handler puts a task in the first tick. While the clock stands still, the second tick follows at once.
    The server asks about the queues in the order of the first tick."""
    server = meddled(fleet)
    for _ in range(100):
        if two_ticks(clock, server):
            return
        server.client().flushall()
    raise AssertionError("no second tick has followed at once")


def kill_in_a_transaction(server, asked):
    with server.client().pipeline(transaction=True) as both:
        both.execute_command("CLIENT", "KILL", "ID", asked.id)
        both.incr("killed")
        assert both.execute() == [1, 1]


def unblock_and_kill(server, asked):
    assert server.client().client_unblock(asked.id) == 1
    assert asked.reply() is None
    assert server.client().client_kill_filter(_id=asked.id) == 1


GOES = {
    "killed": lambda server, asked: server.client().client_kill_filter(_id=asked.id),
    "killed in MULTI": kill_in_a_transaction,
    "closes": lambda _, asked: asked.close(),
    "unblocked and killed": unblock_and_kill,
    "user is deleted": lambda server, _: server.once("ACL", "DELUSER", "mortal"),
}


def deliver_as_one_transaction(server):
    client = server.client()
    put(client, "others", "stays", at=now_ms() + FAR)
    tap = Tap(server)
    client.execute_command("TW.SEND", "others", "out", "x", "IN", 10, "PAYLOAD", "n", "v")
    wait_until(lambda: client.xlen("out") == 1)
    assert [words[0].upper() for words in tap.commands()] == ["TW.FIRED", "MULTI", "XADD", "TW.FIRED", "EXEC"]
    tap.close()


def go_on_without(server, asked):
    """Does all that makes Redis 7.0 look at its current client, after this client has gone."""
    r = server.client()
    wait_until(lambda: r.execute_command("CLIENT", "LIST", "ID", asked.id) == "")
    expired = r.info("stats")["expired_keys"]
    r.set("mortal", "v", px=20)
    wait_until(lambda: r.info("stats")["expired_keys"] > expired, "the server's own cycle removes no key")
    put_frail(r, "others", "lapses")
    take(r, "others", lease=50)
    wait_state(r, "others", "lapses", "dead")
    assert r.execute_command("TW.PURGE", "others", "ALL") == 1
    deliver_as_one_transaction(server)
    with workers(server, 1, "others") as crew:
        put(r, "others", "last")
        assert crew[0].ids() == ["last"]


@pytest.mark.parametrize("how", GOES)
@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_client_that_was_asked_in_vain_goes(server, r, situation, how):
    """A server of Redis 7.0 with AddressSanitizer tells whether it reads the memory of the client."""
    r.execute_command("ACL", "SETUSER", "mortal", "on", ">p", "~*", "&*", "+@all")
    asked = situation(server, user=("mortal", "p"))
    GOES[how](server, asked)
    go_on_without(server, asked)


@pytest.mark.parametrize("situation", SITUATIONS)
def test_the_wait_of_a_client_that_was_asked_in_vain_is_over(clock, server, situation):
    asked = situation(server, block=1000)
    clock.pass_by(clock.now() + 1001)
    assert asked.reply() is None
    asked.close()
    go_on_without(server, asked)


def test_nobody_is_left_blocked(server, r):
    """After each tick the server counts those clients as blocked that wait."""
    with workers(server, 2, "s") as crew, workers(server, 2, "s", db=3) as far:
        waiting = [*crew, *far, *consumers(server, "q")]
        for i in range(20):
            for client in (r, server.client(db=3)):
                put(client, "others", f"t{i}")
                wait_state(client, "others", f"t{i}", "ready")
            deliver(r, "q1", "q2", "list")
            wait_until(lambda i=i: r.llen("list") == i + 1)
            assert blocked(server) == len(waiting)
        put(r, "s", "a")
        assert crew[0].ids() == ["a"]
        assert blocked(server) == len(waiting) - 1
    for one in waiting[4:]:
        one.close()
    wait_until(lambda: blocked(server) == 0)
    deliver(r, "q1")
    wait_until(lambda: r.xlen("q1") == 21)
    assert blocked(server) == 0


# What leaves for replicas

def test_serving_a_blocked_worker_is_replicated_once(server, r):
    tap = Tap(server)
    with workers(server, 2, "s") as crew:
        put(r, "s", "a")
        assert crew[0].ids() == ["a"]
        assert outcomes(tap.commands())[1:] == [("s", "CHANGES")]
        none_served(server, crew[1:])
        assert tap.commands() == []
    tap.close()


# Handlers of other modules

MEDDLING = [("TW.TAKE", 1, "s", "LEASE", FAR, "COUNT", 5), ("UNLINK", "s"), ("FLUSHALL",),
            ("RENAME", "s", "s2"), ("TW.CANCEL", "s", "a", "b"), ("TW.PAUSE", "s"), ("SET", "s", "text"),
            ("TW.PUT", "s", "a", "IN", 0, "PAYLOAD", "v"), ("TW.PUT", "s", "c", "IN", 0, "PAYLOAD", "v"),
            ("TW.MOVE", "s", "a", "IN", 1), ("TW.PURGE", "s", "ALL"), ("TW.REPLAY", "s", "ALL"),
            ("TW.PROMOTE", "s", "ALL"), ("SWAPDB", 0, 1), ("CONFIG", "SET", "tickwheel.deliver", "no")]
ENDS = {"tw.nack": ("TW.NACK", ()), "tw.back": ("TW.NACK", ("BACK",)), "tw.dead": ("TW.NACK", ("DEAD",)),
        "tw.ack": ("TW.ACK", ())}


def meddle(server, r, event, words):
    """One handler of an event calls a command. Returns when it has done so."""
    assert r.execute_command("MEDDLE", event, 0, 1, *words) == "OK"
    with workers(server, 1, "s", count=2) as crew:
        r.execute_command("TW.PUT", "s", "b", "IN", 50, "PAYLOAD", "v")
        if (event, words[0]) != ("tw.put", "SET"):
            r.execute_command("TW.PUT", "s", "a", "IN", 0, "EVERY", FAR, "PAYLOAD", "v")
        if event in ENDS:
            for row in crew[0].reply():
                command, more = ENDS[event]
                r.execute_command(command, "s", row[1], row[2], *more)
        wait_until(lambda: r.execute_command("MEDDLE.DONE")[0] == 1, message=f"{event}: nobody meddled")


@pytest.mark.parametrize("event", ["tw.put", "tw.ready", "tw.take", *ENDS])
def test_handlers_meddle_while_workers_are_served(fleet, event):
    """The server lives, replica and log agree with it, and the next worker is served."""
    server = meddled(fleet, appendonly="yes", appendfsync="no", aof_use_rdb_preamble="no")
    replica = fleet.server(replicaof=server)
    wait_replica_in_sync(server, replica)
    r = server.client()
    for words in MEDDLING:
        meddle(server, r, event, words)
        r.config_set("tickwheel.deliver", "no")  # Nothing changes any more while servers are compared.
        wait_replica_in_sync(server, replica)
        assert digest(server) == digest(replica), words
        before = digest(server)
        r.execute_command("DEBUG", "LOADAOF")
        assert digest(server) == before, words
        r.config_set("tickwheel.deliver", "yes")
        r.flushall()
        with workers(server, 1, "s") as crew:
            put(r, "s", "last")
            assert crew[0].ids() == ["last"], words
        r.flushall()
