# SPDX-License-Identifier: MIT
"""The commands that read, as docs/redis.md describes them: GET, LEN, NEXT, SCAN, RANGE, FORECAST, INFO."""
import random

import pytest
import redis

from harness import PAGE, Raw, as_map, in_order, now_ms, task, tasks, wait_replica_in_sync, wait_until

HOUR = 3600 * 1000
END_OF_TIME = 253402300799999
GET_NAMES = [
    "due", "remaining", "every", "times", "target", "kind", "maxlen", "missed", "max-late", "attempt", "lapses",
    "missed-periods", "state", "replaced", "next", "worker", "error", "payload"
]
INFO_NAMES = [
    "tasks", "waiting", "ready", "leased", "dead", "paused", "late", "held", "next", "oldest-ready",
    "routes", "bytes", "delivered", "done", "failed", "lapsed", "back", "died", "dropped", "skipped",
    "coalesced", "replaced", "taken"
]
COUNTS = INFO_NAMES[INFO_NAMES.index("delivered"):]


def add(r, name, due, *words, queue="s", target="q", payload=("f", "v")):
    return r.execute_command("TW.SEND", queue, target, name, "AT", due, *words, "PAYLOAD", *payload)


FILL = """
for i, due in ipairs(ARGV) do
    redis.call('TW.SEND', KEYS[1], KEYS[2], 't' .. i - 1, 'AT', due, 'PAYLOAD', 'f', 'v')
end
"""


def fill(r, dues, queue="s"):
    """Adds tasks t0, t1 ... with these due times, in a script, which takes a third of a pipeline's time."""
    r.eval(FILL, 2, queue, "q", *dues)


def pausing(pipe, ms):
    """In a transaction: pauses writes for `ms` from the end of the transaction on, so that due tasks stay
    late."""
    pipe.execute_command("CLIENT", "PAUSE", ms, "WRITE")


# TW.GET

def test_get_has_its_names_in_order(server, r):
    add(r, "a", now_ms() + HOUR)
    flat = Raw(server)("TW.GET", "s", "a")[0]
    assert flat[::2] == GET_NAMES


def test_get_is_a_map_in_resp3(server, r):
    due = now_ms() + HOUR
    add(r, "a", due, "EVERY", 5, "TIMES", 2)
    found = Raw(server, protocol=3)("TW.GET", "s", "a", "nobody")
    assert found[1] is None
    assert isinstance(found[0], dict)
    assert list(found[0]) == GET_NAMES
    assert (found[0]["due"], found[0]["times"], found[0]["payload"]) == (due, 2, ["f", "v"])


def test_get_has_an_element_for_each_id(r):
    due = now_ms() + HOUR
    add(r, "a", due, payload=("x", "1"))
    add(r, "b", due + 1, payload=("y", "2"))
    found = r.execute_command("TW.GET", "s", "b", "nobody", "a", "a")
    assert [one and as_map(one)["payload"] for one in found] == [["y", "2"], None, ["x", "1"], ["x", "1"]]


def test_get_where_there_is_no_queue(r):
    assert r.execute_command("TW.GET", "nowhere", "a", "b") == [None, None]
    assert r.exists("nowhere") == 0


def test_remaining_is_what_is_left(r):
    add(r, "a", now_ms() + HOUR)
    before, found, after = now_ms(), task(r, "s", "a"), now_ms()
    assert found["due"] - after <= found["remaining"] <= found["due"] - before


def test_remaining_is_0_when_late(r):
    with r.pipeline() as pipe:
        add(pipe, "a", now_ms())
        pausing(pipe, 60000)
        pipe.execute()
    found = task(r, "s", "a")
    assert found["remaining"] == 0
    r.execute_command("CLIENT", "UNPAUSE")
    wait_until(lambda: r.xlen("q") == 1)


def test_integers_are_integers(server, r):
    add(r, "a", now_ms() + HOUR, "EVERY", HOUR, "TIMES", 2, "MAXLEN", 5, "MAXLATE", 0)
    found = as_map(Raw(server)("TW.GET", "s", "a")[0])
    assert all(isinstance(found[name], int)
               for name in ("due", "remaining", "every", "times", "maxlen", "max-late", "next", "attempt"))


def test_numbers_that_are_absent_are_nil(r):
    add(r, "once", now_ms() + HOUR)
    add(r, "endless", now_ms() + HOUR, "EVERY", HOUR)
    once, endless = task(r, "s", "once"), task(r, "s", "endless")
    assert [once[name] for name in ("every", "times", "maxlen", "max-late")] == [None, 1, None, None]
    assert (endless["every"], endless["times"]) == (HOUR, None)
    r.execute_command("TW.PUT", "w", "a", "IN", 0, "PAYLOAD", "x")
    [[_, _, token, *_]] = r.execute_command("TW.TAKE", 1, "w", "LEASE", HOUR)
    r.execute_command("TW.NACK", "w", "a", token, "DEAD")
    dead = task(r, "w", "a")
    assert [dead[name] for name in ("state", "next", "error", "target")] == ["dead", None, "", ""]
    assert info(r, "w")["next"] is None


# TW.LEN

def test_len(r):
    assert r.execute_command("TW.LEN", "s") == 0
    fill(r, [now_ms() + HOUR] * 5)
    assert r.execute_command("TW.LEN", "s") == 5
    assert r.execute_command("TW.LEN", "other") == 0


# TW.NEXT

def test_next_is_the_task_that_is_due_first(r):
    base = now_ms() + HOUR
    fill(r, [base + 5, base + 3, base + 9])
    assert r.execute_command("TW.NEXT", "s") == ["t1", base + 3, base + 3]


def test_next_of_equals_is_the_one_filed_first(r):
    base = now_ms() + HOUR
    fill(r, [base + 1] + [base] * 20)
    assert r.execute_command("TW.NEXT", "s") == ["t1", base, base]
    r.execute_command("TW.CANCEL", "s", "t1")
    assert r.execute_command("TW.NEXT", "s") == ["t2", base, base]


def test_next_of_nothing(r):
    assert r.execute_command("TW.NEXT", "nowhere") is None


def test_next_and_range_see_waiting_tasks_alone(r):
    base = now_ms()
    with r.pipeline() as pipe:
        add(pipe, "b", base - 1)
        add(pipe, "a", base - 2)
        add(pipe, "c", base + HOUR)
        add(pipe, "a", base - 2, queue="ready")
        pausing(pipe, 60000)
        pipe.execute()
    assert r.execute_command("TW.NEXT", "s") == ["c", base + HOUR, base + HOUR]
    assert r.execute_command("TW.NEXT", "ready") is None
    for first in ("-", 0, base - 2):
        assert r.execute_command("TW.RANGE", "s", first, "+") == [["c", base + HOUR, base + HOUR]]
    assert r.execute_command("TW.RANGE", "s", "-", base) == []


@pytest.mark.parametrize("mine,others", [(3, 2000), (2000, 3), (1, 0), (500, 500)])
def test_next_among_other_queues(r, mine, others):
    """The search may go through the wheel or through the queue's table. The reply is the same."""
    base = now_ms() + HOUR
    fill(r, [base + 1000 + i for i in reversed(range(mine))])
    fill(r, [base + i for i in range(others)], queue="others")
    assert r.execute_command("TW.NEXT", "s") == [f"t{mine - 1}", base + 1000, base + 1000]


def test_next_far_away(r):
    add(r, "a", END_OF_TIME)
    assert r.execute_command("TW.NEXT", "s") == ["a", END_OF_TIME, END_OF_TIME]


# TW.SCAN

def scan_all(r, *words, during=None, queue="s"):
    """Returns [(id, due, next)] of a scan from the first to the last call. during() runs between calls."""
    found, cursor, calls = [], "0", 0
    while True:
        cursor, rows = r.execute_command("TW.SCAN", queue, cursor, *words)
        found += map(tuple, rows)
        calls += 1
        assert calls < 1000000, "the scan does not end"
        if str(cursor) == "0":
            return found
        if during:
            during(calls)


@pytest.mark.parametrize("size", [0, 1, 2, 9, 10, 11, 100, 1000, 5000])
@pytest.mark.parametrize("words", [(), ("COUNT", 1), ("COUNT", 64), ("COUNT", 2**31 - 1)])
def test_a_scan_returns_all(r, size, words):
    base = now_ms() + HOUR
    fill(r, [base + i for i in range(size)])
    assert set(scan_all(r, *words)) == {(f"t{i}", base + i, base + i) for i in range(size)}


def test_scan_of_no_queue(server, r):
    assert Raw(server)("TW.SCAN", "nowhere", 0) == ["0", []]
    assert r.exists("nowhere") == 0


def test_scan_answers_a_cursor_and_tasks(server, r):
    due = now_ms() + HOUR
    add(r, "a", due)
    assert Raw(server)("TW.SCAN", "s", 0) == ["0", [["a", due, due]]]


def test_each_look_shows_due_and_next(r):
    """Of a retry, of a leased task and of a dead one too."""
    due, late = now_ms() - 1000, now_ms() + HOUR
    for name in ("dead", "leased", "retry"):
        r.execute_command("TW.PUT", "s", name, "AT", due, "PAYLOAD", "x")
        job = r.execute_command("TW.TAKE", 1, "s", "LEASE", 2 * HOUR, "BLOCK", 60000)[0]
        if name == "dead":
            r.execute_command("TW.NACK", "s", name, job[2], "DEAD")
        elif name == "retry":
            assert r.execute_command("TW.NACK", "s", name, job[2], "AT", late) == late
    assert sorted(scan_all(r)) == [("dead", due, None), ("leased", due, task(r, "s", "leased")["next"]),
                                   ("retry", due, late)]
    assert r.execute_command("TW.RANGE", "s", "-", "+") == [["retry", due, late]]
    assert r.execute_command("TW.NEXT", "s") == ["retry", due, late]


def test_count_is_a_hint(r):
    fill(r, [now_ms() + HOUR] * 5000)
    found = {count: len(r.execute_command("TW.SCAN", "s", 0, "COUNT", count)[1]) for count in (10, 1000)}
    assert len(r.execute_command("TW.SCAN", "s", 0)[1]) == found[10] < 200
    assert 300 < found[1000] < 3000


def test_one_call_looks_at_some_20000_tasks_whatever_count_says(r):
    base = now_ms() + HOUR
    fill(r, [base + i for i in range(50000)])
    cursor, rows = r.execute_command("TW.SCAN", "s", 0, "COUNT", 2**31 - 1)
    assert str(cursor) != "0" and 20000 <= len(rows) < 21000
    cursor, rows = r.execute_command("TW.SCAN", "s", 0, "COUNT", 2**31 - 1, "MATCH", "nobody")
    assert str(cursor) != "0" and rows == []
    assert set(scan_all(r, "COUNT", 2**31 - 1)) == {(f"t{i}", base + i, base + i) for i in range(50000)}


def test_one_call_looks_at_fewer_tasks_with_long_ids(r):
    """256 bytes of an id count as much work as another task."""
    base = now_ms() + HOUR
    names = {f"{i:0768}" for i in range(10000)}
    pipe = r.pipeline(transaction=False)
    for name in names:
        add(pipe, name, base)
    pipe.execute()
    cursor, rows = r.execute_command("TW.SCAN", "s", 0, "COUNT", 10000)
    assert str(cursor) != "0" and 5000 <= len(rows) < 6000
    assert {name for name, *_ in scan_all(r, "COUNT", 10000)} == names


def test_no_pattern_is_hostile(r):
    """A matcher that goes back would look at each byte of these ids 255 times. Without a limit on patterns
    there would be no limit on that number either."""
    base = now_ms() + HOUR
    for i in range(20):
        add(r, "a" * (941 + i), base)
    for pattern in ("*" + "a" * 253 + "b", "*a" * 126 + "*b", "*" + "a?" * 126 + "b"):
        assert scan_all(r, "MATCH", pattern) == []
    assert len(scan_all(r, "MATCH", "*a" * 127)) == 20
    with pytest.raises(redis.ResponseError, match="MATCH has 100001 bytes: expected at most 255"):
        scan_all(r, "MATCH", "*" + "a" * 100000)


@pytest.mark.parametrize("seed", range(3))
def test_a_pattern_means_the_same_as_in_keys(r, server, seed):
    choose, base, keys = random.Random(seed), now_ms() + HOUR, server.client(db=1)
    names = sorted(
        {"".join(choose.choice("aab-^]!\\*?[\0c") for _ in range(choose.randrange(1, 8)))
         for _ in range(300)} - {"*"})  # TW.SEND would make an id for "*"
    pipe, other = r.pipeline(transaction=False), keys.pipeline(transaction=False)
    for name in names:
        add(pipe, name, base)
        other.set(name, "v")
    other.execute()
    patterns = [
        "".join(choose.choice("aab**?[[]]^-!\\c\0") for _ in range(choose.randrange(1, 9))) for _ in range(3000)
    ]
    for pattern in patterns:
        pipe.execute_command("TW.SCAN", "s", 0, "COUNT", 1000, "MATCH", pattern)
        other.keys(pattern)
    matched = 0
    for pattern, mine, theirs in zip(patterns, pipe.execute()[len(names):], other.execute()):
        assert (str(mine[0]), sorted(name for name, *_ in mine[1])) == ("0", sorted(theirs)), repr(pattern)
        matched += len(theirs) > 0
    assert matched > 500


@pytest.mark.parametrize("pattern,count", [("t1*", 1 + 10 + 100 + 1000), ("*", 2001), ("t1[0-4]", 5),
                                           ("t199?", 10), ("nobody*", 0), ("t\\?", 1), ("T1", 0)])
def test_match(r, pattern, count):
    base = now_ms() + HOUR
    fill(r, [base] * 2000)
    add(r, "t?", base)
    assert len(set(scan_all(r, "MATCH", pattern, "COUNT", 100))) == count


def test_scan_options_in_any_order_and_in_small_letters(r):
    add(r, "a", now_ms() + HOUR)
    for words in (("match", "a", "count", 5), ("COUNT", 5, "MATCH", "a")):
        assert [name for name, *_ in scan_all(r, *words)] == ["a"]


@pytest.mark.parametrize("seed", range(6))
def test_what_is_there_from_first_to_last_call_is_returned(r, seed):
    """So many other tasks come and go meanwhile that the table has to grow and may shrink."""
    choose, base = random.Random(seed), now_ms() + HOUR
    stay = {f"stay{i}" for i in range(choose.choice([10, 300, 2000]))}
    pipe = r.pipeline(transaction=False)
    for name in stay:
        add(pipe, name, base)
    come_and_go = [f"go{i}" for i in range(choose.choice([100, 3000]))]
    for name in come_and_go[::2]:
        add(pipe, name, base)
    pipe.execute()

    def change(_):
        for name in choose.sample(come_and_go, 50):
            if choose.random() < (0.3 if seed % 2 else 0.7):
                add(pipe, name, base + choose.randrange(1000))
            else:
                pipe.execute_command("TW.CANCEL", "s", name)
        for name in choose.sample(sorted(stay), 10):
            pipe.execute_command("TW.MOVE", "s", name, "AT", base + choose.randrange(1000))
        pipe.execute()

    seen = {name for name, *_ in scan_all(r, "COUNT", choose.choice([1, 10, 50]), during=change)}
    assert stay <= seen
    assert seen <= stay | set(come_and_go)


def test_a_scan_goes_on_while_the_queue_grows_and_shrinks_by_a_hundred_times(r):
    base = now_ms() + HOUR
    fill(r, [base] * 200)
    stay = {f"t{i}" for i in range(200)}

    def change(call):
        pipe = r.pipeline(transaction=False)
        if call in (2, 12):
            for i in range(20000):
                add(pipe, f"x{i}", base)
        if call in (7, 17):
            pipe.execute_command("TW.CANCEL", "s", *(f"x{i}" for i in range(20000)))
        pipe.execute()

    assert stay <= {name for name, *_ in scan_all(r, during=change)}


def test_a_cursor_of_a_queue_that_is_gone_ends(r):
    fill(r, [now_ms() + HOUR] * 1000)
    cursor, _ = r.execute_command("TW.SCAN", "s", 0)
    r.delete("s")
    assert str(r.execute_command("TW.SCAN", "s", cursor)[0]) == "0"


@pytest.mark.parametrize("cursor", [1, 12345, 2**32, 2**63, 2**64 - 1])
def test_any_cursor_comes_to_an_end(r, cursor):
    fill(r, [now_ms() + HOUR] * 500)
    for _ in range(100000):
        cursor, _ = r.execute_command("TW.SCAN", "s", cursor)
        if str(cursor) == "0":
            return
    raise AssertionError("the scan does not end")


# TW.RANGE

def test_range_is_in_order_of_due_times(r):
    base = now_ms() + HOUR
    order = list(range(300))
    random.Random(1).shuffle(order)
    fill(r, [base + i for i in order])
    found = r.execute_command("TW.RANGE", "s", "-", "+")
    assert found == [[f"t{order.index(i)}", base + i, base + i] for i in range(300)]


def test_both_ends_of_a_range_belong_to_it(r):
    base = now_ms() + HOUR
    fill(r, [base + i for i in range(10)])
    assert [name
            for name, *_ in r.execute_command("TW.RANGE", "s", base + 3, base + 6)] == ["t3", "t4", "t5", "t6"]
    assert r.execute_command("TW.RANGE", "s", base + 4, base + 4) == [["t4", base + 4, base + 4]]
    assert r.execute_command("TW.RANGE", "s", base + 5, base + 4) == []


@pytest.mark.parametrize("low,high,expected", [("-", 4, 5), (5, "+", 5), ("-", "+", 10), ("+", "-", 0),
                                               ("+", "+", 0), ("-", "-", 0)])
def test_the_ends_of_time(r, low, high, expected):
    base = now_ms() + HOUR
    fill(r, [base + i for i in range(10)])
    ends = [base + end if isinstance(end, int) else end for end in (low, high)]
    assert len(r.execute_command("TW.RANGE", "s", *ends)) == expected


def test_the_end_of_time_is_in_the_range_to_it(r):
    add(r, "a", END_OF_TIME)
    assert r.execute_command("TW.RANGE", "s", "+", "+") == [["a", END_OF_TIME, END_OF_TIME]]
    assert r.execute_command("TW.RANGE", "s", 0, END_OF_TIME) == [["a", END_OF_TIME, END_OF_TIME]]
    assert r.execute_command("TW.RANGE", "s", 0, END_OF_TIME - 1) == []


def test_range_gives_equals_in_the_order_of_filing(r):
    due = now_ms() + HOUR
    names = [f"t{i * 7 % 100}" for i in range(100)]
    for name in names:
        add(r, name, due)
    assert [name for name, *_ in r.execute_command("TW.RANGE", "s", "-", "+")] == names


def test_range_with_a_limit(r):
    base = now_ms() + HOUR
    fill(r, [base + i for i in range(1500)])
    assert len(r.execute_command("TW.RANGE", "s", "-", "+")) == 1000
    assert len(r.execute_command("TW.RANGE", "s", "-", "+", "COUNT", PAGE)) == 1500
    assert r.execute_command("TW.RANGE", "s", base + 7, "+", "COUNT", 2) == [["t7", base + 7, base + 7],
                                                                             ["t8", base + 8, base + 8]]


@pytest.mark.parametrize("limit", [1, 7, 100, PAGE])
def test_a_range_page_by_page_gives_each_task_once(r, limit):
    """Many tasks are due at the same time, more than a page holds."""
    choose, base = random.Random(limit), now_ms() + HOUR
    dues = [base + choose.choice([0, 0, 1, 2, 50000]) for _ in range(700 if limit < 100 else 25000)]
    fill(r, dues)
    expected = [[f"t{i}", due, due] for due, i in sorted((due, i) for i, due in enumerate(dues))]
    assert in_order(r.execute_command, "s", limit) == expected


def test_after_leaves_out_what_comes_before_and_the_task_itself(r):
    base = now_ms() + HOUR
    fill(r, [base, base, base, base + 1, base + 1])
    assert r.execute_command("TW.RANGE", "s", base, "+", "AFTER", "t1", "COUNT", 2) == [
        ["t2", base, base], ["t3", base + 1, base + 1]]
    assert r.execute_command("TW.RANGE", "s", base, base, "COUNT", 5, "AFTER", "t1") == [["t2", base, base]]
    assert r.execute_command("TW.RANGE", "s", base + 1, "+", "after", "t4") == []


def test_after_a_task_that_is_not_there_any_more_leaves_out_nothing(r):
    """A reader that continues with AFTER misses no task, but may see some tasks again."""
    base = now_ms() + HOUR
    fill(r, [base, base, base])
    all_three = [[f"t{i}", base, base] for i in range(3)]
    assert r.execute_command("TW.RANGE", "s", base, "+", "AFTER", "nobody") == all_three
    assert r.execute_command("TW.RANGE", "s", base - 1, "+", "AFTER", "t1") == all_three
    r.execute_command("TW.MOVE", "s", "t1", "AT", base + 5)
    assert r.execute_command("TW.RANGE", "s", base, base, "AFTER", "t1") == all_three[::2]
    assert r.execute_command("TW.RANGE", "nowhere", base, "+", "AFTER", "t1") == []


def test_range_of_nothing(r):
    assert r.execute_command("TW.RANGE", "nowhere", "-", "+") == []


@pytest.mark.parametrize("mine,others", [(5, 3000), (3000, 5)])
def test_range_among_other_queues(r, mine, others):
    """The search may go through the wheel or through the queue's table. The reply is the same, in RANGE as
    in FORECAST."""
    base = now_ms() + HOUR
    fill(r, [base + 10 * i for i in range(mine)])
    fill(r, [base + 10 * i for i in range(others)], queue="others")
    found = r.execute_command("TW.RANGE", "s", base + 10, base + 40)
    assert found == [[f"t{i}", base + 10 * i, base + 10 * i] for i in range(1, 5)]


def test_range_against_a_sorted_list(r):
    """The due times have all distances, so that the search goes through every level of the wheel."""
    choose, base = random.Random(7), now_ms() + HOUR
    dues = [base + int(10 ** choose.uniform(0, 14)) for _ in range(2000)]
    fill(r, dues)
    fill(r, [base + int(10 ** choose.uniform(0, 14)) for _ in range(2000)], queue="others")
    model = sorted((due, i) for i, due in enumerate(dues))
    for _ in range(100):
        low, high = sorted(base + int(10 ** choose.uniform(0, 14)) for _ in range(2))
        limit = choose.choice([1, 10, 5000])
        expected = [[f"t{i}", due, due] for due, i in model if low <= due <= high][:limit]
        assert r.execute_command("TW.RANGE", "s", low, high, "COUNT", limit) == expected
    assert r.execute_command("TW.NEXT", "s") == [f"t{model[0][1]}", model[0][0], model[0][0]]


# TW.FORECAST

def forecast(r, *words, queue="s"):
    return r.execute_command("TW.FORECAST", queue, *words)


def test_forecast_counts_what_falls_due_in_each_step(r):
    base = now_ms()
    middle = HOUR // 2  # Half a step from each border, so the test may take long to get there.
    fill(r, [
        base + middle, base + middle + HOUR, base + middle + HOUR, base + middle + 3 * HOUR,
        base + middle + 4 * HOUR
    ])
    assert forecast(r, "STEP", HOUR, "STEPS", 4) == [1, 2, 0, 1]
    assert forecast(r, "STEPS", 2, "STEP", HOUR) == [1, 2]


def test_forecast_has_60_steps_of_a_second(clock, r):
    fill(r, [clock.now() + 30000, clock.now() + 30001, clock.now() + 10 * 60000])
    assert forecast(r) == [0] * 29 + [1, 1] + [0] * 29


def test_the_end_of_a_step_belongs_to_it(server):
    """The task is added and counted in one script. For the count, now is the same millisecond, or one later,
    and then the end of the step is later too."""
    script = """
        redis.call('TW.SEND', KEYS[1], KEYS[2], 'a', 'IN', 5000, 'PAYLOAD', 'f', 'v')
        local found = redis.call('TW.FORECAST', KEYS[1], 'STEP', 5000, 'STEPS', 2)
        redis.call('DEL', KEYS[1])
        return found
    """
    r = server.client()
    assert [r.eval(script, 2, "s", "q") for _ in range(50)] == [[1, 0]] * 50


def test_a_forecast_leaves_out_what_is_ready(r):
    with r.pipeline() as pipe:
        for i in range(5):
            add(pipe, i, now_ms() - i)
        add(pipe, "later", now_ms() + HOUR // 2)
        pausing(pipe, 60000)
        pipe.execute()
    assert forecast(r, "STEP", HOUR, "STEPS", 2) == [1, 0]


def test_forecast_counts_the_next_due_time_of_a_repeating_task_alone(r):
    add(r, "a", now_ms() + HOUR // 2, "EVERY", HOUR)
    assert forecast(r, "STEP", HOUR, "STEPS", 4) == [1, 0, 0, 0]


@pytest.mark.parametrize("count", [1, 60, 10000])
def test_forecast_of_nothing(r, count):
    assert forecast(r, "STEPS", count, queue="nowhere") == [0] * count


def test_a_forecast_to_the_end_of_time(r):
    fill(r, [now_ms() + HOUR, END_OF_TIME // 2, END_OF_TIME])
    century = 3155760000000
    assert [sum(forecast(r, "STEP", century, "STEPS", steps)) for steps in (1, 50, 10000)] == [1, 2, 3]


@pytest.mark.parametrize("mine,others", [(4, 3000), (3000, 4), (3000, 3000)])
def test_forecast_among_other_queues(r, mine, others):
    base = now_ms() + HOUR // 2
    fill(r, [base + HOUR * (i % 4) for i in range(mine)])
    fill(r, [base + HOUR * (i % 4) for i in range(others)], queue="others")
    assert forecast(r, "STEP", HOUR, "STEPS", 4) == [mine // 4] * 4


def test_forecast_against_a_count(r):
    choose, base = random.Random(3), now_ms()
    step = 100 * HOUR
    dues = [base + choose.randrange(0, 400) * step + step // 2 for _ in range(3000)]
    fill(r, dues)
    expected = [0] * 300
    for due in dues:
        if (due - base) // step < 300:
            expected[(due - base) // step] += 1
    assert forecast(r, "STEP", step, "STEPS", 300) == expected


# TW.INFO

def test_info_has_its_names(server, r):
    add(r, "a", now_ms() + HOUR)
    assert list(as_map(r.execute_command("TW.INFO", "s"))) == INFO_NAMES
    found = Raw(server, protocol=3)("TW.INFO", "s")
    assert isinstance(found, dict)
    assert list(found) == INFO_NAMES


def test_info_of_what_is_not_there(server):
    assert Raw(server)("TW.INFO", "nowhere") == "ERR no such key"


def info(r, queue="s"):
    return as_map(r.execute_command("TW.INFO", queue))


def test_info_tells_of_tasks(r):
    base = now_ms() + HOUR
    fill(r, [base + 1, base, base + 2])
    found = info(r)
    assert (found["tasks"], found["waiting"], found["next"], found["routes"]) == (3, 3, base, 1)
    others = set(INFO_NAMES) - {"tasks", "waiting", "next", "routes", "bytes"}
    assert all(found[name] == 0 for name in others)
    assert found["bytes"] > 0


def test_bytes_grow_with_the_payload(r):
    base = now_ms() + HOUR
    add(r, "a", base)
    small = info(r)["bytes"]
    add(r, "b", base, payload=("f", "x" * 100000))
    large = info(r)["bytes"]
    assert 100000 <= large - small < 200000
    r.execute_command("TW.CANCEL", "s", "b")
    assert info(r)["bytes"] < large - 90000
    assert r.memory_usage("s", samples=0) > 0


def test_routes_are_different_targets_and_options(r):
    base = now_ms() + HOUR
    counts = []
    for name, target, words, payload in [
            ("a", "q", (), ("f", "v")), ("b", "q", ("STREAM",), ("f", "v")), ("c", "q2", (), ("f", "v")),
            ("d", "q", ("MAXLEN", 5), ("f", "v")), ("e", "q", ("MAXLATE", 1), ("f", "v")),
            ("f", "q", ("LIST",), ("v",)), ("g", "q", ("LIST",), ("w",))]:
        add(r, name, base, *words, target=target, payload=payload)
        counts.append(info(r)["routes"])
    assert counts == [1, 1, 2, 3, 4, 5, 5]
    r.execute_command("TW.CANCEL", "s", "c", "d", "e", "f", "g")
    assert info(r)["routes"] == 1


def test_info_counts_what_was_fired(r):
    add(r, "stays", now_ms() + HOUR)
    for i in range(5):
        add(r, i, now_ms())
    wait_until(lambda: info(r)["delivered"] == 5)
    assert info(r)["tasks"] == 1


def happenings(r, queue):
    """Lets each kind of count go on in a queue, by different numbers."""
    def took(*options):
        r.execute_command("TW.PUT", queue, "job", "AT", 1, *options, "PAYLOAD", "v")
        return r.execute_command("TW.TAKE", 1, queue, "LEASE", HOUR)[0][1:3]

    r.execute_command("TW.PUT", queue, "job", "AT", 1, "PAYLOAD", "v")  # the next put replaces it
    for _ in range(2):
        r.execute_command("TW.ACK", queue, *took())
    for _ in range(3):
        r.execute_command("TW.NACK", queue, *took("TRIES", 1))  # the next put replaces the dead task
    for _ in range(4):
        r.execute_command("TW.NACK", queue, *took(), "BACK")  # and here the ready one
    r.execute_command("TW.ACK", queue, *took())
    for _ in range(5):
        add(r, "sent", now_ms(), queue=queue)
        wait_until(lambda: r.execute_command("TW.GET", queue, "sent") == [None])
    for _ in range(6):
        r.execute_command("TW.PUT", queue, "late", "AT", 1, "MAXLATE", 1, "PAYLOAD", "v")
        assert r.execute_command("TW.TAKE", 1, queue, "LEASE", HOUR) is None
    for policy in ("skip", "coalesce"):
        add(r, policy, now_ms() - 15 * HOUR // 2, "EVERY", HOUR, "MISSED", policy, queue=queue)
        wait_until(lambda name=policy: as_map(r.execute_command("TW.GET", queue, name)[0])["due"] > now_ms())
    r.execute_command("TW.TOUCH", queue, *took(), "LEASE", 1)
    wait_until(lambda: as_map(r.execute_command("TW.GET", queue, "job")[0])["lapses"] == 1)


def test_the_counts_of_the_queues_are_those_of_the_server(server, r):
    """INFO has the sums of TW.INFO, and a row of TW.TOP has the numbers of TW.INFO."""
    before = server.tw()
    for queue in ("s", "other"):
        add(r, "stays", now_ms() + HOUR, queue=queue)
        happenings(r, queue)
    found = [info(r, queue) for queue in ("s", "other")]
    expected = {"done": 3, "failed": 3, "died": 3, "back": 4, "delivered": 6, "dropped": 6, "skipped": 8,
                "coalesced": 7, "lapsed": 1, "replaced": 8, "taken": 11}
    assert [{name: one[name] for name in COUNTS} for one in found] == [expected] * 2
    assert {name: server.tw()[name] - before[name] for name in COUNTS} == {
        name: 2 * count for name, count in expected.items()}
    rows = {row[1]: row for row in as_map(r.execute_command("TW.TOP"))["queues"]}
    for queue, one in zip(("s", "other"), found):
        assert rows[queue][4:7] == [one[name] for name in ("delivered", "done", "died")]
        assert rows[queue][8:11] == [one[name] for name in ("leased", "dead", "paused")]
    r.rename("s", "renamed")
    r.copy("renamed", "copied")
    assert [info(r, "renamed")[name] for name in COUNTS] == [expected[name] for name in COUNTS]
    assert {info(r, "copied")[name] for name in COUNTS} == {0}


def test_info_tells_of_what_is_late(r):
    base = now_ms()
    with r.pipeline() as pipe:
        for i in range(3):
            add(pipe, i, base - i)
        add(pipe, "later", base + HOUR)
        pausing(pipe, 60000)
        pipe.execute()
    found = info(r)
    assert (found["tasks"], found["waiting"], found["ready"], found["late"], found["next"]) == (
        4, 1, 3, 3, base + HOUR)


# The clock decides

def seen(r, name="a", queue="s"):
    """How the looks see one task: its state and `next`, and whether the others see it as waiting."""
    waits = [r.execute_command("TW.NEXT", queue) is not None,
             r.execute_command("TW.RANGE", queue, "-", "+") != [],
             sum(forecast(r, "STEP", 100 * HOUR, "STEPS", 2, queue=queue)) == 1, info(r, queue)["waiting"] == 1]
    assert len(set(waits)) == 1, waits
    found = task(r, queue, name)
    assert waits[0] == (found["state"] == "waiting") != (info(r, queue)["ready"] == 1)
    return found["state"], found["next"], found["remaining"]


KINDS = {"target": lambda r, due: add(r, "a", due),
         "workers": lambda r, due: r.execute_command("TW.PUT", "s", "a", "AT", due, "PAYLOAD", "x")}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stop", ["pause", "deliver", "clients"])
def test_the_clock_alone_makes_a_task_ready(clock, server, r, kind, stop):
    """To the millisecond, whether or not a tick may deliver it or give it out."""
    due = clock.now() + 60000
    KINDS[kind](r, due)
    {"pause": lambda: r.execute_command("TW.PAUSE", "s"),
     "deliver": lambda: r.config_set("tickwheel.deliver", "no"),
     "clients": lambda: r.execute_command("CLIENT", "PAUSE", 10 * HOUR, "WRITE")}[stop]()
    for push, expected in ((59999, ("waiting", due, 1)), (1, ("ready", due, 0)), (-500, ("waiting", due, 500)),
                           (HOUR, ("ready", due, 0))):
        clock.push(push)
        assert seen(r) == expected, push


def test_a_replica_goes_by_its_own_clock(clock, fleet, server, r):
    """It waits for its primary, and shows its tasks as ready meanwhile."""
    replica = fleet.server(replicaof=server)
    due = clock.now() + 60000
    KINDS["workers"](r, due)
    r.execute_command("TW.PAUSE", "s")
    wait_replica_in_sync(server, replica)
    copy = replica.client()
    assert seen(copy) == ("waiting", due, 60000)
    clock.push(60000)
    assert seen(copy) == ("ready", due, 0)
    assert info(copy)["late"] == 0


def test_a_held_task_waits_for_the_next_try_of_its_target(clock, r):
    """All tasks that wait for a target that refuses have the time of its next try as their `next`."""
    r.set("q", "text")
    base = clock.now()
    for name, due in (("first", base - 2), ("second", base - 1)):
        add(r, name, due, "BACKOFF", HOUR, 1, HOUR)
    wait_until(lambda: info(r)["held"] == 2)
    next_ms, found = base + HOUR, info(r)
    rows = [["first", base - 2, next_ms], ["second", base - 1, next_ms]]
    assert r.execute_command("TW.RANGE", "s", "-", "+") == rows
    assert r.execute_command("TW.RANGE", "s", next_ms, "+", "AFTER", "first") == rows[1:]
    assert (found["waiting"], found["ready"], found["late"], found["next"]) == (2, 0, 0, next_ms)
    assert task(r, "s", "second")["state"] == "waiting" and forecast(r, "STEP", HOUR, "STEPS", 1) == [2]


# Promises of all commands that read

QUERIES = [("TW.GET", "a"), ("TW.LEN", ), ("TW.NEXT", ), ("TW.SCAN", 0), ("TW.RANGE", "-", "+"),
           ("TW.FORECAST", ), ("TW.INFO", )]


@pytest.mark.parametrize("words", QUERIES, ids=lambda words: words[0])
def test_queries_change_nothing(server, r, words):
    fill(r, [now_ms() + HOUR + i for i in range(100)])
    before = r.execute_command("DEBUG", "DIGEST"), tasks(r, "s")
    r.execute_command(words[0], "s", *words[1:])
    assert (r.execute_command("DEBUG", "DIGEST"), tasks(r, "s")) == before


@pytest.mark.parametrize("words", QUERIES, ids=lambda words: words[0])
def test_queries_are_answered_by_replicas(fleet, server, r, words):
    replica = fleet.server(replicaof=server)
    fill(r, [now_ms() + HOUR + i for i in range(10)])
    wait_replica_in_sync(server, replica)

    def answer(client):
        found = client.execute_command(words[0], "s", *words[1:])
        if words[0] == "TW.GET":
            return {**as_map(found[0]), "remaining": 0} if found[0] else None
        if words[0] == "TW.INFO":
            return {
                name: value
                for name, value in as_map(found).items() if name not in COUNTS and name != "bytes"
            }
        if words[0] == "TW.SCAN":
            return sorted(found[1])
        return found

    assert answer(replica.client()) == answer(r)
