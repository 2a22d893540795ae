# SPDX-License-Identifier: MIT
"""Tasks that become due: what is delivered, in which order, how often, and never early? Also targets that
refuse, and a million tasks in one second."""
import pytest
import redis

from harness import PATIENCE, Raw, Tap, as_map, delivered, entries, now_ms, task, tasks, wait_until
from situations import WallClock, answers_meanwhile, dead_of, deferred, extent, sleeps, wait_dead

HOUR = 3600 * 1000
LAST_ID = "18446744073709551615-18446744073709551615"


def add(r, name, *words, queue="s", target="q", payload=("f", "v")):
    return r.execute_command("TW.SEND", queue, target, name, *words, "PAYLOAD", *payload)


def paused(r, ms, *adds, puts=()):
    """Adds tasks, and pauses writes for `ms` from then on, so that tasks that become due meanwhile are late.
    `puts`: of TW.PUT."""
    with r.pipeline(transaction=True) as pipe:
        for words in adds:
            pipe.execute_command("TW.SEND", *words)
        for words in puts:
            pipe.execute_command("TW.PUT", *words)
        pipe.execute_command("CLIENT", "PAUSE", ms, "WRITE")
        pipe.execute()


def ahead(r, ms, file):
    """Calls file(base), which files tasks for times from `base` on, `ms` from now. If the last was filed after
    `base`, begins anew with twice the time: a task filed for the past has its turn by its filing."""
    while True:
        base = now_ms() + ms
        file(base)
        if now_ms() < base:
            return
        r.flushall()
        ms *= 2


def dues(r, stream="q"):
    return [int(fields["tw.due"]) for _, fields in entries(r, stream)]


# The entries that are delivered

def test_the_first_fields_are_id_due_time_and_attempt(server, r):
    due = now_ms() + 20
    add(r, "a", "AT", due, payload=("x", "1", "tw.other", "2", "x", "3"))
    wait_until(lambda: r.exists("q"))
    [[_, fields]] = Raw(server)("XRANGE", "q", "-", "+")
    assert fields == ["tw.id", "a", "tw.due", str(due), "tw.attempt", "1", "x", "1", "tw.other", "2", "x", "3"]


def test_an_element_of_a_list_is_the_value_as_it_is(server, r):
    raw = Raw(server)
    for i, value in enumerate((b"", b"\x00\xff\r\n", b"x" * 1000000)):
        raw("TW.SEND", "s", "l", f"t{i}", "AT", 5 + i, "LIST", "PAYLOAD", value)
    wait_until(lambda: r.llen("l") == 3)
    assert [len(value) for value in raw("LRANGE", "l", 0, -1)] == [0, 4, 1000000]
    assert raw("LINDEX", "l", 1).encode("utf-8", "surrogateescape") == b"\x00\xff\r\n"


def test_a_list_is_appended_to(r):
    r.rpush("l", "before")
    add(r, "a", "IN", 5, "LIST", target="l", payload=("value",))
    wait_until(lambda: r.llen("l") == 2)
    assert r.lrange("l", 0, -1) == ["before", "value"]


def test_a_stream_is_appended_to(r):
    r.xadd("q", {"f": "before"})
    add(r, "a", "IN", 5)
    wait_until(lambda: r.xlen("q") == 2)
    assert r.xrange("q")[1][1]["tw.id"] == "a"


def test_a_task_is_gone_after_its_delivery(server, r):
    add(r, "a", "IN", 5)
    add(r, "stays", "IN", HOUR)
    wait_until(lambda: r.exists("q"))
    assert r.execute_command("TW.GET", "s", "a") == [None]
    assert r.execute_command("TW.LEN", "s") == 1
    assert server.tw()["delivered"] == 1


def test_a_queue_is_gone_after_its_last_delivery(r):
    add(r, "a", "IN", 5)
    wait_until(lambda: r.exists("q"))
    assert r.exists("s") == 0


@pytest.mark.parametrize("db", [0, 3, 15])
def test_a_task_is_delivered_in_the_database_of_its_queue(server, db):
    clients = [server.client(db=i) for i in (0, 3, 15)]
    mine = server.client(db=db)
    add(mine, "a", "IN", 5)
    add(mine, "b", "IN", 5, "LIST", target="l", payload=("v",))
    wait_until(lambda: mine.dbsize() == 2)
    assert sum(client.dbsize() for client in clients) == 2


def test_large_payloads(r):
    big = "x" * (5 << 20)
    add(r, "a", "IN", 20, payload=("f", big))
    add(r, "b", "IN", 20, payload=[text for i in range(20000) for text in (f"f{i}", "v")])
    wait_until(lambda: r.xlen("q") == 2)
    assert len(r.xrange("q")[0][1]["f"]) == len(big)
    assert len(r.xrange("q")[1][1]) == 20003


def test_maxlen_trims_the_stream_to_about_n(r):
    for i in range(2000):
        r.xadd("q", {"f": i})
    add(r, "a", "IN", 0, "MAXLEN", 100)
    wait_until(lambda: r.xlen("q") < 2000)
    assert 100 <= r.xlen("q") <= 300
    assert r.xrevrange("q", count=1)[0][1]["tw.id"] == "a"


def test_default_maxlen_is_for_tasks_that_give_none(r):
    for stream in ("q1", "q2"):
        for i in range(2000):
            r.xadd(stream, {"f": i})
    r.config_set("tickwheel.default-maxlen", 100)
    add(r, "a", "IN", 0, target="q1")
    add(r, "b", "IN", 0, "MAXLEN", 1000, target="q2")
    wait_until(lambda: r.xlen("q1") < 2000 and r.xlen("q2") < 2000)
    assert 100 <= r.xlen("q1") <= 300
    assert 1000 <= r.xlen("q2") <= 1300


# When

def test_never_early(r):
    """Compares the server's own clock, in the ids of the entries, with the due times, for delays of every
    length up to a second."""
    pipe = r.pipeline(transaction=False)
    for i in range(1000):
        add(pipe, i, "IN", i)
        add(pipe, f"at{i}", "AT", now_ms() + 1000 - i)
    pipe.execute()
    wait_until(lambda: r.xlen("q") == 2000)
    early = [(name, fields) for name, fields in entries(r, "q")
             if int(name.split("-")[0]) < int(fields["tw.due"])]
    assert early == []


def test_it_comes_by_itself(server, r):
    """The server's timer alone delivers, as no command arrives meanwhile."""
    tap = Tap(server)
    add(r, "a", "IN", 300)
    while tap.read()[0] != "XADD":
        pass
    tap.close()
    assert delivered(r, "q") == ["a"]


def test_a_task_that_is_due_sooner_than_the_next_is_not_late(r):
    """The timer is armed for the far task first, and then for the near task."""
    add(r, "far", "IN", HOUR)
    add(r, "near", "IN", 30)
    wait_until(lambda: delivered(r, "q") == ["near"])
    r.execute_command("TW.MOVE", "s", "far", "IN", 30)
    wait_until(lambda: delivered(r, "q") == ["near", "far"])


def test_due_times_are_delivered_in_order(r):
    def file(base):
        pipe = r.pipeline(transaction=True)
        for i in range(500):
            add(pipe, i * 7 % 500, "AT", base + i * 7 % 500)
        pipe.execute()

    ahead(r, 300, file)
    wait_until(lambda: r.xlen("q") == 500)
    assert dues(r) == sorted(dues(r))
    assert delivered(r, "q") == [str(i) for i in range(500)]


def test_equal_due_times_are_delivered_in_the_order_of_filing(r):
    names = [str(i * 7 % 1000) for i in range(1000)]
    due = now_ms() + 300
    pipe = r.pipeline(transaction=True)
    for name in names:
        add(pipe, name, "AT", due)
    pipe.execute()
    wait_until(lambda: r.xlen("q") == 1000)
    assert delivered(r, "q") == names


def test_what_has_become_late_is_delivered_in_order(r):
    ahead(r, 100, lambda base: paused(r, 500, *(
        ("s", "q", i * 7 % 100, "AT", base + i * 7 % 100, "PAYLOAD", "f", "v") for i in range(100))))
    wait_until(lambda: r.xlen("q") == 100)
    assert delivered(r, "q") == [str(i) for i in range(100)]


def test_what_is_filed_too_late_is_delivered_in_the_order_of_filing(r):
    names = [str(i * 7 % 100) for i in range(100)]
    paused(r, 300, *(("s", "q", name, "AT", 1000 + int(name), "PAYLOAD", "f", "v") for name in names))
    wait_until(lambda: r.xlen("q") == 100)
    assert delivered(r, "q") == names


@pytest.mark.parametrize("persistence", [{"appendonly": "yes"}, {"save": "3600 1"}], ids=["aof", "rdb"])
def test_what_came_due_while_the_server_was_down_is_delivered_in_order(fleet, clock, persistence):
    server = fleet.server(**persistence)
    r, base = server.client(), clock.now() + 100
    pipe = r.pipeline()
    for i in range(100):
        add(pipe, i * 7 % 100, "AT", base + i * 7 % 100 // 2)
    pipe.execute()
    if "save" in persistence:
        r.save()
    server.kill()
    clock.push(200)
    r = server.restart().client()
    wait_until(lambda: r.xlen("q") == 100)
    assert dues(r) == sorted(dues(r))


def test_queues_do_not_wait_for_each_other(r):
    base = now_ms() + 200
    pipe = r.pipeline(transaction=True)
    for i in range(200):
        add(pipe, i, "AT", base + i, queue=f"s{i % 20}", target="q")
    pipe.execute()
    wait_until(lambda: r.xlen("q") == 200)
    assert dues(r) == sorted(dues(r))
    assert r.dbsize() == 1


def test_thousands_of_targets(r):
    pipe = r.pipeline(transaction=True)
    for i in range(5000):
        add(pipe, i, "IN", 300, target=f"q{i}")
    for i in range(0, 5000, 2):
        pipe.execute_command("TW.CANCEL", "s", i)
    pipe.execute()
    wait_until(lambda: r.exists("s") == 0)
    assert r.dbsize() == 2500
    assert delivered(r, "q4999") == ["4999"]


# Repeating

def test_a_repeating_task_is_due_again_a_period_after_its_last_due_time(r):
    base = now_ms() + 50
    add(r, "a", "AT", base, "EVERY", 40, "TIMES", 6, "MISSED", "burst")
    wait_until(lambda: r.xlen("q") == 6)
    assert dues(r) == [base + 40 * i for i in range(6)]
    assert delivered(r, "q") == ["a"] * 6
    assert all(fields["tw.attempt"] == "1" for _, fields in entries(r, "q"))
    wait_until(lambda: r.exists("s") == 0)


def test_a_repeating_task_without_end(r):
    add(r, "a", "IN", 0, "EVERY", 10)
    wait_until(lambda: r.xlen("q") >= 20)
    assert task(r, "s", "a")["times"] is None
    assert r.execute_command("TW.CANCEL", "s", "a") == [1]
    count = r.xlen("q")
    add(r, "after", "IN", 50)
    wait_until(lambda: "after" in delivered(r, "q"))
    assert r.xlen("q") == count + 1


def test_times_left_are_counted_down(r):
    add(r, "a", "IN", 0, "EVERY", HOUR, "TIMES", 5)
    wait_until(lambda: r.xlen("q") == 1)
    assert task(r, "s", "a")["times"] == 4


def test_a_repetition_past_the_end_of_time_is_the_last(r):
    end = 253402300799999
    add(r, "next", "AT", end - 1000, "EVERY", 1000), add(r, "last", "AT", end - 999, "EVERY", 1000)
    r.execute_command("TW.PROMOTE", "s", "ALL")
    wait_until(lambda: r.xlen("q") == 2)
    assert list(tasks(r, "s")) == ["next"]
    assert (task(r, "s", "next")["due"], task(r, "s", "next")["attempt"]) == (end, 0)


def test_a_list_may_repeat(r):
    add(r, "a", "IN", 0, "EVERY", 10, "TIMES", 3, "LIST", target="l", payload=("v",))
    wait_until(lambda: r.llen("l") == 3)
    assert r.lrange("l", 0, -1) == ["v"] * 3


# Late

def test_what_is_late_is_delivered(r):
    paused(r, 300, ("s", "q", "a", "IN", 10, "PAYLOAD", "f", "v"),
           ("s", "q", "b", "IN", 20, "PAYLOAD", "f", "v"))
    wait_until(lambda: delivered(r, "q") == ["a", "b"])


def test_burst_delivers_each_missed_period(r):
    base = now_ms() + 10
    paused(r, 500, ("s", "q", "a", "AT", base, "EVERY", 50, "TIMES", 8, "MISSED", "burst", "PAYLOAD", "f", "v"))
    wait_until(lambda: r.xlen("q") == 8)
    assert dues(r) == [base + 50 * i for i in range(8)]


def test_drop_drops_what_is_too_late_and_nothing_else(server, r):
    base = now_ms()
    paused(r, 500, ("s", "q", "late", "AT", base + 1, "MAXLATE", 100, "PAYLOAD", "f", "v"),
           ("s", "q", "at once or never", "AT", base + 2, "MAXLATE", 0, "PAYLOAD", "f", "v"),
           ("s", "q", "late but in time", "AT", base + 3, "MAXLATE", HOUR, "PAYLOAD", "f", "v"))
    wait_until(lambda: r.exists("q"))
    wait_until(lambda: r.exists("s") == 0)
    assert delivered(r, "q") == ["late but in time"]
    assert server.tw()["dropped"] == 2


def test_what_is_in_time_is_not_dropped(server, r):
    add(r, "a", "IN", 50, "MAXLATE", 60000)
    wait_until(lambda: delivered(r, "q") == ["a"])
    assert server.tw()["dropped"] == 0


def after_a_pause(clock, r, *words):
    """Adds a repeating task that is due now, and pauses writes for 1040 ms. Returns the due times of its first
    three deliveries, less that of the task, and how late the first of them was."""
    base = clock.now()
    paused(r, HOUR, ("s", "q", "a", "AT", base, *words, "PAYLOAD", "f", "v"))
    clock.push(1040)
    r.execute_command("CLIENT", "UNPAUSE")
    wait_until(lambda: r.xlen("q") == 1)
    late = clock.now() - dues(r)[0]
    clock.go_on()
    wait_until(lambda: r.xlen("q") == 3)
    wait_until(lambda: r.exists("s") == 0)
    return [due - base for due in dues(r)], late


def test_a_repeating_task_goes_on_after_it_was_dropped(clock, server, r):
    """Missed periods that were dropped do not count for TIMES, and the phase is kept."""
    found, late = after_a_pause(clock, r, "EVERY", 250, "TIMES", 3, "MAXLATE", 100)
    assert (found[0], late, server.tw()["dropped"] >= 4) == (1000, 40, True)
    assert all(due % 250 == 0 for due in found) and len(set(found)) == 3


def calls(r):
    """Returns the due time of each delivery, and for how many further periods it stands."""
    return [(int(fields["tw.due"]), int(fields.get("tw.missed-periods", 0))) for _, fields in r.xrange("q")]


def test_a_coalesced_call_has_its_first_period_and_counts_the_others(clock, server, r):
    found, late = after_a_pause(clock, r, "EVERY", 100, "TIMES", 3)
    assert (found[0], late, server.tw()["coalesced"] >= 10) == (0, 1040, True)
    (first, missed), (second, more), _ = calls(r)
    assert (missed, second - first) == (10, 1100)
    assert list(r.xrange("q")[0][1])[:4] == ["tw.id", "tw.due", "tw.attempt", "tw.missed-periods"]
    assert "tw.missed-periods" not in r.xrange("q")[1][1] or more > 0


def test_periods_that_are_too_late_are_no_part_of_a_coalesced_call(clock, server, r):
    found, late = after_a_pause(clock, r, "EVERY", 100, "TIMES", 3, "MAXLATE", 250)
    assert (found[0], late) == (800, 240)
    assert (calls(r)[0][1], server.tw()["dropped"]) == (2, 8)


def test_a_refused_call_stands_for_the_same_periods_when_it_is_tried_again(clock, server, r):
    """It is never too late either. A call that dies leaves no period of it behind."""
    r.mset({"q": "text", "wrong": "text"})
    due = clock.now() - 10 * HOUR
    options = ("AT", due, "EVERY", HOUR, "MAXLATE", 20 * HOUR)
    add(r, "a", *options, "BACKOFF", HOUR, 1, HOUR)
    add(r, "b", *options, "TRIES", 1, target="wrong")
    wait_until(lambda: task(r, "s", "a")["attempt"] == 1)
    [dead] = wait_dead(r, "s", 1)
    assert (task(r, "s", "b")["due"], server.tw()["coalesced"]) == (due + 11 * HOUR, 10)
    assert (task(r, "s", "a")["missed-periods"], task(r, "s", dead.id)["missed-periods"]) == (10, 0)
    clock.push(30 * HOUR)
    r.delete("q")
    assert r.execute_command("TW.PROMOTE", "s", "IDS", 1, "a") == 1
    wait_until(lambda: r.exists("q") and r.xlen("q") == 2)
    assert calls(r) == [(due, 10), (due + 20 * HOUR, 20)]


@pytest.mark.parametrize("how", ["COPY", "RESTORE"])
def test_a_copy_of_a_refused_call_stands_for_the_same_periods(clock, server, r, how):
    """Its tries stay, and so do its missed periods."""
    r.set("q", "text")
    due = clock.now() - 10 * HOUR
    add(r, "a", "AT", due, "EVERY", HOUR, "BACKOFF", HOUR, 1, HOUR)
    wait_until(lambda: task(r, "s", "a")["attempt"] == 1)
    r.execute_command("TW.PAUSE", "s")
    if how == "COPY":
        r.copy("s", "s2")
    else:
        r.restore("s2", 0, server.client(decode_responses=False).dump("s"))
    for queue in ("s", "s2"):
        found = task(r, queue, "a")
        assert (found["due"], found["attempt"], found["missed-periods"]) == (due, 1, 10)
    r.delete("q")
    r.execute_command("TW.RESUME", "s2")
    wait_until(lambda: r.execute_command("TW.PROMOTE", "s2", "ALL") == 1)  # It waits for its next try again.
    wait_until(lambda: r.exists("q"))
    assert calls(r)[0] == (due, 10)


def test_the_turn_of_a_task_behind_a_refused_one_is_its_own(clock, server, r):
    """The tries before count in its attempt, and it has not been offered: it may be too late by then, and the
    periods that it has missed meanwhile are skipped, or are part of its call."""
    r.set("q", "text")
    due, ways = clock.now(), {"once": ("MAXLATE", 1000), "beat": ("EVERY", HOUR),
                              "skip": ("EVERY", HOUR, "MISSED", "skip")}
    for name, options in ways.items():
        for place in ("first", "second"):
            add(r, f"{name} {place}", "AT", due, *options, "TRIES", 15, "BACKOFF", HOUR, 1, HOUR)
    wait_until(lambda: server.tw()["held"] == 6)
    clock.push(3 * HOUR)
    clock.push_monotonic(HOUR)
    wait_until(lambda: task(r, "s", "once second")["attempt"] == 1)
    r.delete("q")
    assert r.execute_command("TW.PROMOTE", "s", "ALL") == 6
    wait_until(lambda: server.tw()["held"] == 0)
    found = [(fields["tw.id"], int(fields["tw.due"]) - due, int(fields.get("tw.missed-periods", 0)))
             for _, fields in entries(r, "q")]
    assert sorted(one for one in found if one[1] == 0) == [
        ("beat first", 0, 0), ("beat second", 0, 3), ("once first", 0, 0), ("skip first", 0, 0)]
    assert task(r, "s", "skip second")["due"] == due + 4 * HOUR
    assert (server.tw()["dropped"], r.execute_command("TW.GET", "s", "once second")) == (1, [None])


def test_skip_goes_on_with_the_first_period_that_is_to_come(clock, server, r):
    """The present period, which has begun, is left out too."""
    base = clock.now()
    options = ("EVERY", 100, "TIMES", 3, "MISSED", "skip")
    paused(r, HOUR, ("s", "q", "a", "AT", base, *options, "PAYLOAD", "f", "v"))
    clock.push(1040)
    r.execute_command("CLIENT", "UNPAUSE")
    wait_until(lambda: server.tw()["skipped"] == 11)
    assert (task(r, "s", "a")["due"], task(r, "s", "a")["times"], r.exists("q")) == (base + 1100, 3, 0)


@pytest.mark.parametrize("words,count", [(("MAXLATE", 50), "dropped"), ((), "coalesced"),
                                         (("MISSED", "skip"), "skipped")],
                         ids=lambda value: value if isinstance(value, str) else " ".join(map(str, value)))
def test_two_thousand_milliards_of_missed_periods_are_passed_over_at_once(server, r, words, count):
    """The task has a period of one millisecond since 1970. It goes on with the present periods, and no client
    has to wait for the missed periods."""
    before = now_ms()
    add(r, "a", "AT", 0, "EVERY", 1, "TIMES", 20, *words)
    wait_until(lambda: server.tw()[count] > 10**12)
    wait_until(lambda: not r.exists("s") or words == ("MISSED", "skip"))
    found = dues(r)
    assert found == sorted(set(found))
    if words != ("MISSED", "skip"):  # With this period skip makes few calls, or none.
        assert len(found) == 20 and before - 50 <= found[1] and found[-1] <= now_ms()


def test_late_is_what_a_server_that_was_down_makes_of_it(fleet):
    server = fleet.server(appendonly="yes")
    r = server.client()
    base = now_ms() + HOUR
    with r.pipeline(transaction=True) as pipe:
        for name, words in (("fire", ()), ("drop", ("MAXLATE", 200)), ("in time", ("MAXLATE", HOUR)),
                            ("coalesce", ("EVERY", 100, "TIMES", 5))):
            add(pipe, name, "AT", base, *words)
        for name in ("fire", "drop", "in time", "coalesce"):
            base = now_ms() + 100
            pipe.execute_command("TW.MOVE", "s", name, "AT", base)
        pipe.execute_command("CLIENT", "PAUSE", 60000, "WRITE")
        pipe.execute()
    server.kill()
    wait_until(lambda: now_ms() > base + 500)
    r = server.restart().client()
    wait_until(lambda: r.exists("s") == 0)
    found = delivered(r, "q")
    assert sorted(found) == sorted(["fire", "in time"] + ["coalesce"] * 5)


# Consumers

def waiting(server, *words):
    """Returns a connection that waits in a blocking command."""
    raw = Raw(server)
    before = server.info("clients")["blocked_clients"]
    raw.send(*words)
    wait_until(lambda: server.info("clients")["blocked_clients"] > before)
    return raw


def test_a_blocked_xread_wakes_up(server, r):
    raw = waiting(server, "XREAD", "BLOCK", 0, "STREAMS", "q", "$")
    add(r, "a", "IN", 20)
    [[stream, [[_, fields]]]] = raw.read()
    assert (stream, fields[:2]) == ("q", ["tw.id", "a"])


@pytest.mark.parametrize("apart", [0, 20])
def test_blocked_consumers_of_a_group_wake_up(server, r, apart):
    """Each consumer gets one entry, whether the tasks are delivered one by one or all in one tick."""
    r.xgroup_create("q", "g", mkstream=True)
    raws = [waiting(server, "XREADGROUP", "GROUP", "g", f"c{i}", "COUNT", 1, "BLOCK", 0, "STREAMS", "q", ">")
            for i in range(3)]
    pipe = r.pipeline(transaction=True)
    for i in range(3):
        add(pipe, i, "IN", 20 + apart * i)
    pipe.execute()
    names = [fields[1] for raw in raws for [_, found] in raw.read() for _, fields in found]
    assert sorted(names) == ["0", "1", "2"]


@pytest.mark.parametrize("command", [("BLPOP", "l", 0), ("BRPOP", "l", 0)], ids=lambda command: command[0])
def test_a_blocked_pop_wakes_up(server, r, command):
    raw = waiting(server, *command)
    add(r, "a", "IN", 20, "LIST", target="l", payload=("value",))
    assert raw.read() == ["l", "value"]
    wait_until(lambda: r.dbsize() == 0)


def test_a_blocked_blmove_wakes_up(server, r):
    raw = waiting(server, "BLMOVE", "l", "working", "LEFT", "RIGHT", 0)
    add(r, "a", "IN", 20, "LIST", target="l", payload=("value",))
    assert raw.read() == "value"
    assert r.lrange("working", 0, -1) == ["value"]


def test_promote_wakes_consumers(server, r):
    raw = waiting(server, "BLPOP", "l", 0)
    add(r, "a", "IN", HOUR, "LIST", target="l", payload=("value",))
    assert r.execute_command("TW.PROMOTE", "s", "ALL") == 1
    assert raw.read() == ["l", "value"]


# Targets that refuse

def test_a_task_dies_after_its_tries(server, r):
    """The dead task stays in its queue, and tells why. It dies after all tries, and each try is later than
    the try before."""
    r.set("wrong", "a string")
    due = now_ms() + 20
    add(r, "a", "AT", due, target="wrong", payload=("f", "v", "g", "w"))
    [dead] = wait_dead(r, "s")
    assert (dead.id, dead.due, dead.attempt) == ("a", due, 3)
    assert dead.error.startswith("WRONGTYPE")
    assert dead.dead >= due + 100 + 200, "it waits for 100 ms, then for twice as long"
    found, names = task(r, "s", "a"), ("state", "due", "next", "attempt", "target", "kind", "error", "payload")
    assert [found[name] for name in names] == [
        "dead", due, None, 3, "wrong", "stream", dead.error, ["f", "v", "g", "w"]]
    assert (r.get("wrong"), r.exists("s:dead"), r.execute_command("TW.LEN", "s")) == ("a string", 0, 0)
    assert [server.tw()[name] for name in ("dead", "died", "delivered", "tasks", "held")] == [1, 1, 0, 0, 0]


@pytest.mark.parametrize("left", [(), ("LEFT",)], ids=["LIST", "LIST LEFT"])
def test_a_task_for_a_list_dies(r, left):
    r.config_set("tickwheel.target-backoff-ms", 1)
    r.set("wrong", "a string")
    add(r, "a", "IN", 0, "LIST", *left, target="wrong", payload=("the value",))
    wait_dead(r, "s")
    found = task(r, "s", "a")
    assert (found["kind"], found["payload"]) == ("list left" if left else "list", ["the value"])


def test_a_stream_whose_ids_are_used_up(r):
    r.config_set("tickwheel.target-backoff-ms", 1)
    r.xadd("q", {"f": "v"}, id=LAST_ID)
    add(r, "a", "IN", 0)
    assert wait_dead(r, "s")[0].error.startswith("ERR")
    assert r.xlen("q") == 1


def test_another_queue_is_no_target(r):
    r.config_set("tickwheel.target-backoff-ms", 1)
    add(r, "stays", "IN", HOUR, queue="other")
    add(r, "a", "IN", 0, target="other")
    wait_dead(r, "s")
    assert list(tasks(r, "other")) == ["stays"]


def test_a_target_that_refused_in_another_task_is_tried_from_the_first_wait_again(clock, r):
    """The waits for a task that was cancelled do not lengthen the waits for the next task. They are as long as
    those for a target that has not refused before."""
    r.config_set("tickwheel.target-tries", 15)
    r.set("wrong", "a string")
    add(r, "stays", "IN", HOUR, target="wrong")
    add(r, "a", "IN", 0, target="wrong")
    for attempt in range(1, 6):
        wait_until(lambda number=attempt: task(r, "s", "a")["attempt"] >= number)
        clock.push_monotonic(1600)  # 100 + 200 + 400 + 800 + 1600 ms; then 3.2 s, then 5 s.
    r.execute_command("TW.CANCEL", "s", "a")
    r.set("new", "a string")
    with r.pipeline(transaction=True) as both:
        add(both, "b", "IN", 0, target="wrong")
        add(both, "c", "IN", 0, target="new")
        both.execute()
    wait_until(lambda: task(r, "s", "c")["attempt"] >= 3)
    assert task(r, "s", "b")["attempt"] >= 3, "the waits went on where they were"


@pytest.mark.parametrize("tries", [1, 2, 5, 15])
def test_so_many_tries(clock, r, tries):
    r.config_set("tickwheel.target-backoff-ms", 1)
    r.config_set("tickwheel.target-tries", tries)
    r.set("wrong", "a string")
    add(r, "a", "IN", 0, target="wrong")
    # The waits are doubled, from 1 ms up to 5 s.
    [dead] = wait_until(lambda: clock.push_monotonic(5000) or dead_of(r, "s"))
    assert dead.attempt == tries


def test_attempts_are_told(server, r):
    """A task whose target is repaired meanwhile is delivered, and the entry says how many tries it took."""
    r.config_set("tickwheel.target-tries", 15)
    r.set("wrong", "a string")
    add(r, "a", "IN", 0, target="wrong")
    wait_until(lambda: task(r, "s", "a")["attempt"] >= 2)
    found = task(r, "s", "a")
    assert found["due"] + 100 <= found["next"] <= now_ms() + 5000, "the next try of its target"
    assert r.execute_command("TW.INFO", "s")[::2].count("held") == 1
    assert as_map(r.execute_command("TW.INFO", "s"))["held"] == server.tw()["held"] == 1
    assert server.tw()["deferred_refused"] >= 2
    r.delete("wrong")
    wait_until(lambda: r.exists("wrong"))
    assert int(r.xrange("wrong")[0][1]["tw.attempt"]) >= 3
    assert r.exists("s") == 0
    assert (server.tw()["dead"], server.tw()["died"]) == (0, 0)


def test_others_for_the_same_target_wait_so_that_their_order_holds(r):
    r.config_set("tickwheel.target-tries", 15)
    r.set("wrong", "a string")
    for i in range(20):
        add(r, i, "AT", 1000 + i, target="wrong")
    wait_until(lambda: task(r, "s", "0")["attempt"] >= 1)
    add(r, "elsewhere", "IN", 0)
    wait_until(lambda: delivered(r, "q") == ["elsewhere"])
    assert r.execute_command("TW.LEN", "s") == 20
    r.delete("wrong")
    wait_until(lambda: r.exists("s") == 0)
    assert delivered(r, "wrong") == [str(i) for i in range(20)]


def test_all_for_a_target_that_never_accepts_die_in_order(server, r):
    r.config_set("tickwheel.target-backoff-ms", 1)
    r.set("wrong", "a string")
    for i in range(30):
        add(r, i, "AT", 1000 + i, target="wrong")
    # Each begins with the first wait again: some 0.1 s for all.
    assert [dead.id for dead in wait_dead(r, "s", 30)] == [str(i) for i in range(30)]
    assert r.execute_command("TW.LEN", "s") == 0
    assert server.tw()["dead"] == 30


def test_a_held_task_may_be_cancelled_moved_and_replaced(r):
    r.config_set("tickwheel.target-tries", 15)
    r.set("wrong", "a string")
    for name in "abc":
        add(r, name, "AT", 1000, target="wrong")
    wait_until(lambda: task(r, "s", "a")["attempt"] >= 1)
    assert r.execute_command("TW.CANCEL", "s", "b") == [1]
    assert r.execute_command("TW.MOVE", "s", "a", "IN", HOUR) == 1
    add(r, "c", "IN", 0)
    wait_until(lambda: delivered(r, "q") == ["c"])
    assert list(tasks(r, "s")) == ["a"]
    assert dead_of(r, "s") == []


def test_a_repeating_task_that_is_refused_goes_on_elsewhere(r):
    """Each period that is given up is a dead task of its own, with its due time; the series goes on."""
    r.config_set("tickwheel.target-backoff-ms", 1)
    r.config_set("tickwheel.target-tries", 1)
    r.set("wrong", "a string")
    base = now_ms()
    add(r, "a", "AT", base, "EVERY", 20, "TIMES", 3, "MISSED", "burst", target="wrong")
    found = wait_dead(r, "s", 3)
    assert [dead[:2] for dead in found] == [(f"a@{base + 20 * i}", base + 20 * i) for i in range(3)]
    assert sorted(tasks(r, "s")) == [dead.id for dead in found]


def test_a_task_may_have_its_own_tries_and_waits(r):
    """TRIES and BACKOFF count for its target. They stay over a snapshot, and make a route of their own."""
    r.config_set("tickwheel.target-backoff-ms", 1)
    r.set("wrong", "a string")
    add(r, "once", "IN", 0, "TRIES", 1, target="wrong")
    add(r, "usual", "IN", 0, target="wrong")
    assert sorted((dead.id, dead.attempt) for dead in wait_dead(r, "s", 2)) == [("once", 1), ("usual", 3)]
    due = now_ms()
    add(r, "slow", "AT", due, "TRIES", 2, "BACKOFF", HOUR, 1, HOUR, "JITTER", 0, target="wrong")
    wait_until(lambda: task(r, "s", "slow")["attempt"] == 1)
    assert task(r, "s", "slow")["next"] >= due + HOUR // 2
    r.execute_command("DEBUG", "RELOAD")  # The wait goes on then, and the second try is the last one.
    wait_until(lambda: r.execute_command("TW.PROMOTE", "s", "ALL") == 1)
    assert [(dead.id, dead.attempt) for dead in wait_dead(r, "s", 3)][2:] == [("slow", 2)]


def test_a_cluster_wants_queue_and_target_in_one_slot(fleet):
    r = fleet.cluster(primaries=1).nodes[0].client()
    with pytest.raises(redis.ResponseError, match="(?i)crossslot|same slot"):
        add(r, "a", "IN", HOUR, queue="s", target="other")
    assert r.dbsize() == 0


def test_a_pause_is_not_a_try(server, r):
    paused(r, HOUR, ("s", "q", "a", "IN", 1, "PAYLOAD", "f", "v"))
    deferred(server, "pause")
    assert task(r, "s", "a")["attempt"] == 0
    r.execute_command("CLIENT", "UNPAUSE")
    wait_until(lambda: r.exists("q"))
    assert r.xrange("q")[0][1]["tw.attempt"] == "1"


def test_memory_and_replicas_are_not_tries(server, r):
    with r.pipeline(transaction=True) as pipe:
        add(pipe, "a", "IN", 1)
        pipe.config_set("maxmemory", 1)
        pipe.execute()
    wait_until(lambda: server.tw()["deferred_oom"] >= 3)
    assert (r.exists("q"), task(r, "s", "a")["attempt"]) == (0, 0)
    r.config_set("min-replicas-to-write", 1, "maxmemory", 0)  # One cause replaces the other at once.
    wait_until(lambda: server.tw()["deferred_replicas"] >= 3)
    assert (r.exists("q"), task(r, "s", "a")["attempt"]) == (0, 0)
    r.config_set("min-replicas-to-write", 0)
    wait_until(lambda: r.exists("q"))
    assert r.xrange("q")[0][1]["tw.attempt"] == "1"
    assert server.tw()["died"] == 0


# How many deliveries in one tick

def groups(commands):
    """Returns how many deliveries each replicated transaction has."""
    counts, inside = [], None
    for words in commands:
        if words == ["MULTI"]:
            inside = 0
        elif words == ["EXEC"]:
            counts.append(inside)
            inside = None
        elif words[0] in ("XADD", "RPUSH"):
            assert inside is not None, "a delivery outside of a transaction"
            inside += 1
    return [count for count in counts if count]


@pytest.mark.parametrize("limit", [1, 10, 1000])
def test_at_most_so_many_deliveries_in_one_go(server, r, limit):
    r.config_set("tickwheel.tasks-per-tick", limit)
    r.config_set("tickwheel.us-per-tick", 1000000)
    tap = Tap(server)
    paused(r, 200, *(("s", "q", i, "AT", 1000 + i, "PAYLOAD", "f", "v") for i in range(300)))
    wait_until(lambda: r.xlen("q") == 300)
    sizes = groups(tap.commands())
    tap.close()
    assert sum(sizes) == 300
    assert max(sizes) <= limit
    assert delivered(r, "q") == [str(i) for i in range(300)]


def test_a_go_ends_when_its_time_is_used_up(server, r):
    """Payloads of this size soon use up a hundred microseconds."""
    r.config_set("tickwheel.us-per-tick", 100)
    tap = Tap(server)
    paused(r, 200, *(("s", "q", i, "AT", 1000 + i, "PAYLOAD", "f", "x" * 100000) for i in range(300)))
    wait_until(lambda: r.xlen("q") == 300)
    sizes = groups(tap.commands())
    tap.close()
    assert sum(sizes) == 300
    assert max(sizes) < 300


# Lateness

def test_lateness_is_in_info(server, r):
    pipe = r.pipeline(transaction=False)
    for i in range(500):
        add(pipe, i, "IN", i % 100)
    pipe.execute()
    wait_until(lambda: r.xlen("q") == 500)
    found = server.tw()
    p50, p99, p999, most = (found[f"lateness_us_{name}"] for name in ("p50", "p99", "p999", "max"))
    assert 0 < p50 <= p99 <= p999
    assert most > 0


def test_lateness_tells_of_a_pause(clock, server, r):
    paused(r, HOUR, ("s", "q", "a", "AT", clock.now(), "PAYLOAD", "f", "v"))
    clock.push(500)
    r.execute_command("CLIENT", "UNPAUSE")
    wait_until(lambda: r.exists("q"))
    assert server.tw()["lateness_us_max"] == 500000


def test_a_time_that_had_passed_is_late_from_its_filing(clock, server, r):
    """A producer says "at once" with AT 1. That is no lateness of 56 years. A series that begins in the past is
    late: it makes up for its periods."""
    paused(r, HOUR, ("s", "q", "a", "AT", 1, "PAYLOAD", "f", "v"),
           puts=[("s", "work", "AT", 1, "PAYLOAD", "v")])
    clock.push(500)
    r.execute_command("CLIENT", "UNPAUSE")
    wait_until(lambda: r.exists("q") and server.offered() == 1)
    assert server.tw()["lateness_us_max"] == 500000
    begin = clock.now() - 500000
    add(r, "series", "AT", begin, "EVERY", HOUR, payload=("f", "v"))
    wait_until(lambda: r.xlen("q") == 2)
    assert server.tw()["lateness_us_max"] == 500000000


@pytest.mark.parametrize("every", [(), ("EVERY", HOUR)], ids=["once", "series"])
def test_a_held_task_is_late_from_the_next_try_of_its_target(clock, server, r, every):
    """So is a task behind it. An hour in which the target refused is no lateness of the server."""
    r.set("wrong", "a string")
    for name in "ab":
        add(r, name, "AT", clock.now(), "BACKOFF", HOUR, 1, HOUR, *every, target="wrong")
    wait_until(lambda: server.tw()["held"] == 2)
    r.delete("wrong")
    clock.elapse(HOUR + 500)
    wait_until(lambda: server.tw()["delivered"] >= 2)
    assert server.tw()["lateness_us_max"] == 500000


def test_lateness_of_the_past_minute_recovers(fleet):
    """An alarm should use these figures. The figures since the start keep the worst lateness for ever."""
    clock = WallClock(fleet.folder)
    server = fleet.server(**clock.options)
    r = server.client()
    figures = ("p50", "p99", "p999", "max")

    def of(name):
        found = server.tw()
        return [found[f"lateness_{name}_{figure}"] for figure in figures]

    assert of("minute_us") == [0, 0, 0, 0]
    add(r, "late", "AT", now_ms() - 500000, "EVERY", 10 * HOUR, payload=("f", "v"))
    wait_until(lambda: r.xlen("q") == 1)
    assert of("minute_us") == of("us") and of("us")[0] >= 500000000
    clock.push_monotonic(30000)  # The figures are of the past 54 to 60 seconds.
    for i in range(10):
        add(r, f"in-time{i}", "AT", now_ms() + 5)
    wait_until(lambda: r.xlen("q") == 11)
    found = of("minute_us")
    assert found[1] >= 500000000 > found[0]
    clock.push_monotonic(31000)
    assert 0 < of("minute_us")[0] <= of("minute_us")[3] < 500000000 <= of("us")[1]
    clock.push_monotonic(60000)
    assert of("minute_us") == [0, 0, 0, 0]
    assert of("us")[3] >= 500000000


def test_a_promoted_task_is_late_from_then_on(server, r):
    """Its due time does not count, up to the last time there is."""
    for name, due in (("never", 253402300799999), ("soon", now_ms() + HOUR)):
        add(r, name, "AT", due)
    add(r, "again", "AT", now_ms() + HOUR, "EVERY", 3155760000000)
    assert r.execute_command("TW.PROMOTE", "s", "ALL") == 3
    wait_until(lambda: r.xlen("q") == 3)
    tw = server.tw()
    figures = [tw[f"lateness_us_{name}"] for name in ("p50", "p99", "p999", "max")]
    assert 0 <= figures[0] <= figures[-1] < HOUR * 1000
    recent = as_map(as_map(r.execute_command("TW.TOP"))["recent"])
    assert recent["calls"] == 3 and recent["max"] < HOUR * 1000


def test_late_tasks_and_the_oldest_are_in_info(clock, server, r):
    base = clock.now()
    paused(r, HOUR, ("s", "q", "a", "AT", base - 5000, "PAYLOAD", "f", "v"),
           ("s", "q", "b", "AT", base, "PAYLOAD", "f", "v"))
    found = server.tw()
    assert (found["ready"], found["late"]) == (2, 2)
    assert found["oldest_late_ms"] == found["oldest_ready_ms"] == 0  # They are late from their filing.
    clock.push(400)
    found = server.tw()
    assert found["oldest_late_ms"] == found["oldest_ready_ms"] == 400
    r.execute_command("CLIENT", "UNPAUSE")
    wait_until(lambda: r.xlen("q") == 2)
    found = server.tw()
    assert (found["late"], found["oldest_late_ms"]) == (0, 0)


def late_in_the_wheel(r, count):
    """Returns how many late tasks INFO counts if `count` tasks become due within a transaction, where no
    tick runs."""
    # A task that became due and was removed is known only to its queue, by an address that a leak checker
    # does not know. Also, INFO looks at tasks that are not freed yet.
    wait_until(lambda: r.info("tickwheel")["tickwheel_reaping"] == 0)
    with r.pipeline(transaction=True) as pipe:
        pipe.eval(
            "for i = 1, ARGV[1] do redis.call('TW.SEND', 's', 'q', i, 'IN', 50, 'LIST', 'PAYLOAD', i) end", 2,
            "s", "q", count)
        pipe.execute_command("DEBUG", "SLEEP", "0.1")
        pipe.info("tickwheel")
        pipe.delete("s")
        return pipe.execute()[-2]["tickwheel_late"]


def test_late_tasks_are_counted_up_to_a_point(r):
    assert (late_in_the_wheel(r, 5000), late_in_the_wheel(r, 25000)) == (5000, 20000)
    wait_until(lambda: r.info("tickwheel")["tickwheel_reaping"] == 0)


def test_a_server_whose_next_task_is_an_hour_away_sleeps(server, r):
    """The server goes to sleep although its timer was set anew. Redis 7.0 checks a timer without a pause if it
    is further away than 35 minutes."""
    add(r, "stays", "IN", HOUR)
    add(r, "goes", "IN", HOUR, queue="emptied")
    r.execute_command("TW.CANCEL", "emptied", "goes")
    before = sleeps(server)
    wait_until(lambda: sleeps(server) >= before + 10, "it does not sleep")


# Many at once

HERD = extent(100000, 200000, 1000000)
FILL = """
    for i = ARGV[1], ARGV[2] - 1 do
        redis.call('TW.SEND', KEYS[1], KEYS[2], i, 'AT', ARGV[3] + math.floor(i / 1000), 'LIST', 'PAYLOAD', i)
    end
"""


@pytest.mark.long
def test_a_herd_in_the_same_second(fleet, clock):
    """All tasks are delivered, each once, in order. Meanwhile the server replies to clients."""
    server = fleet.server(appendonly="yes", appendfsync="everysec")
    r, base = server.client(), clock.now() + 1000
    for start in range(0, HERD, 50000):
        r.eval(FILL, 2, "s", "l", start, start + 50000, base)
    early = HERD * 9 // 10
    clock.push(1000 + early // 1000 - 1)
    wait_until(lambda: r.llen("l") == early, patience=PATIENCE * 5, every=0.1)
    seen = answers_meanwhile(server, lambda: clock.pass_by(base + 1000), "LLEN", "l")
    assert len([count for count in seen if early < count < HERD]) >= 5, f"all at once: {seen}"
    wait_until(lambda: r.llen("l") == HERD, patience=PATIENCE * 5, every=0.1)
    for start in range(0, HERD, 100000):
        assert r.lrange("l", start, start + 99999) == [str(i) for i in range(start, start + 100000)]
    assert r.exists("s") == 0
    found = server.tw()
    assert (found["delivered"], found["tasks"], found["late"]) == (HERD, 0, 0)


# No task may harm the others

def test_a_repeating_task_that_is_an_age_behind_does_not_keep_others_waiting(r):
    """A client passes a time in seconds instead of milliseconds. The task has missed more than a billion
    periods, and each of them is delivered."""
    add(r, "x", "AT", now_ms() // 1000, "EVERY", 1000, "MAXLEN", 10, queue="behind", target="flood")
    wait_until(lambda: r.exists("flood"))
    add(r, "a", "IN", 50)
    add(r, "b", "AT", 5)
    wait_until(lambda: r.xlen("q") == 2)
    assert r.execute_command("TW.LEN", "behind") == 1
