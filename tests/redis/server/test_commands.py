# SPDX-License-Identifier: MIT
"""The commands that write, as docs/redis.md describes them. Other files test the rest:
  - test_firing.py: tasks that become due
  - test_errors.py: errors
  - test_queries.py: the commands that only read
"""
import re

import pytest

from harness import PATIENCE, Raw, as_map, delivered, now_ms, task, tasks, wait_until
from situations import events_of

HOUR = 3600 * 1000
END_OF_TIME = 253402300799999
CENTURY = 3155760000000
MOST = 2**63 - 1


def add(r, name, *words, queue="s", target="q", payload=("f", "v")):
    """Adds a task that is due in an hour, unless `words` say otherwise."""
    when = () if {"IN", "AT"} & set(map(str, words)) else ("IN", HOUR)
    return r.execute_command("TW.SEND", queue, target, name, *when, *words, "PAYLOAD", *payload)


def length(r, queue="s"):
    return r.execute_command("TW.LEN", queue)


# TW.SEND: the id

def test_add_answers_the_id(r):
    assert add(r, "order:42") == "order:42"


def test_an_id_may_be_any_bytes(server):
    raw = Raw(server)
    odd = b"\x00\r\n\xff \xe2\x82\xac"
    answer = raw("TW.SEND", "s", "q", odd, "IN", HOUR, "PAYLOAD", "f", "v")
    assert answer.encode("utf-8", "surrogateescape") == odd
    assert raw("TW.CANCEL", "s", odd) == [1]


def test_the_longest_id(r):
    name = "x" * 960
    assert add(r, name) == name
    assert task(r, "s", name)["payload"] == ["f", "v"]
    assert r.execute_command("TW.CANCEL", "s", name) == [1]


def test_star_makes_an_id_of_time_and_counter(r):
    before = now_ms()
    name = add(r, "*")
    match = re.fullmatch(r"(\d+)-(\d+)", name)
    assert match, name
    assert before <= int(match[1]) <= now_ms()
    assert task(r, "s", name)["payload"] == ["f", "v"]


def test_star_makes_another_id_each_time(r):
    pipe = r.pipeline(transaction=False)
    for _ in range(2000):
        add(pipe, "*")
    assert len(set(pipe.execute())) == 2000
    assert length(r) == 2000


def test_star_makes_no_id_that_is_in_use(r):
    """All ids that `*` would make in the next second are taken. The ids that it makes are new nevertheless."""
    pipe = r.pipeline(transaction=True)
    now, count = now_ms(), int(add(r, "*").split("-")[1])
    r.delete("s")
    for ms in range(now, now + 1000):
        for counter in sorted({0, 1, *range(count, count + 6)}):
            add(pipe, f"{ms}-{counter}")
    for _ in range(5):
        add(pipe, "*")
    made = pipe.execute()
    assert len(set(made)) == len(made)
    assert length(r) == len(made)


def test_star_keeps_to_its_condition(r):
    """A task with a new id is not in the queue yet, so XX adds nothing, while GT and LT add it."""
    assert add(r, "*", "XX") is None
    assert length(r) == 0
    assert all(add(r, "*", word) for word in ("NX", "GT", "LT"))
    assert length(r) == 3


# TW.SEND: the time

def test_in_counts_from_now(r):
    before = now_ms()
    add(r, "a", "IN", 50000)
    assert before + 50000 <= task(r, "s", "a")["due"] <= now_ms() + 50000


@pytest.mark.parametrize("due", [2**31, 2**41 + 12345, END_OF_TIME - 1, END_OF_TIME])
def test_at_is_absolute_up_to_the_end_of_time(r, due):
    due = max(due, now_ms() + HOUR)
    add(r, "a", "AT", due)
    assert task(r, "s", "a")["due"] == due


@pytest.mark.parametrize("when", [("IN", 0), ("AT", 0), ("AT", 1), ("AT", 1000000000000)])
def test_a_time_that_has_passed_is_due_at_once(r, when):
    add(r, "a", *when)
    wait_until(lambda: delivered(r, "q") == ["a"])
    assert r.exists("s") == 0


def test_a_delay_up_to_the_end_of_time(r):
    far = END_OF_TIME - now_ms() - 10000000
    assert add(r, "a", "IN", far) == "a"
    assert task(r, "s", "a")["due"] > END_OF_TIME - 10000001


# TW.SEND: replacing

def test_add_replaces_the_whole_task(r):
    add(r,
        "a",
        "AT",
        now_ms() + HOUR,
        "EVERY",
        5000,
        "TIMES",
        7,
        "MAXLEN",
        9,
        "MAXLATE",
        11,
        payload=("old", "1"))
    due = now_ms() + 2 * HOUR
    assert add(r, "a", "AT", due, "LIST", target="other", payload=("new",)) == "a"
    assert length(r) == 1
    found = task(r, "s", "a")
    assert (found["due"], found["every"], found["times"]) == (due, None, 1)
    assert (found["target"], found["kind"], found["maxlen"]) == ("other", "list", None)
    assert (found["max-late"], found["payload"], found["attempt"]) == (None, ["new"], 0)


@pytest.mark.parametrize("old,new", [(10, 100000), (100000, 10), (10, 10), (0, 1)])
def test_a_replaced_payload_may_be_larger_or_smaller(r, old, new):
    add(r, "a", payload=("f", "x" * old))
    add(r, "b", payload=("f", "y" * old))
    add(r, "a", payload=("f", "z" * new))
    assert task(r, "s", "a")["payload"] == ["f", "z" * new]
    assert task(r, "s", "b")["payload"] == ["f", "y" * old]


def test_what_was_replaced_is_not_delivered(r):
    with r.pipeline() as pipe:  # In one transaction, so that no task fires in between, even on a slow machine.
        add(pipe, "a", "IN", 100, payload=("f", "old"))
        add(pipe, "a", "IN", 300, payload=("f", "new"), target="other")
        pipe.execute()
    wait_until(lambda: r.exists("other"))
    assert r.exists("q") == 0
    assert r.xrange("other")[0][1]["f"] == "new"
    assert r.exists("s") == 0


def test_one_id_in_two_queues_is_two_tasks(r):
    add(r, "a", queue="s1", payload=("f", "1"))
    add(r, "a", queue="s2", payload=("f", "2"))
    assert r.execute_command("TW.CANCEL", "s1", "a") == [1]
    assert task(r, "s2", "a")["payload"] == ["f", "2"]


# TW.SEND: conditions

def test_nx_adds_what_is_not_there(r):
    assert add(r, "a", "NX") == "a"
    assert length(r) == 1


def test_nx_keeps_what_is_there(r):
    add(r, "a", payload=("f", "old"))
    before = task(r, "s", "a")["due"]
    assert add(r, "a", "IN", 5, "NX", payload=("f", "new")) is None
    found = task(r, "s", "a")
    assert (found["due"], found["payload"]) == (before, ["f", "old"])


def test_xx_replaces_what_is_there(r):
    add(r, "a", payload=("f", "old"))
    assert add(r, "a", "XX", payload=("f", "new")) == "a"
    assert task(r, "s", "a")["payload"] == ["f", "new"]


def test_xx_adds_nothing(r):
    assert add(r, "a", "XX") is None
    assert r.exists("s") == 0
    add(r, "b")
    assert add(r, "a", "XX") is None
    assert length(r) == 1


@pytest.mark.parametrize("word,shift,replaced", [
    ("GT", 1, True), ("GT", 0, False), ("GT", -1, False), ("LT", 1, False), ("LT", 0, False), ("LT", -1, True)])
def test_gt_and_lt_replace_by_a_later_and_an_earlier_time(r, word, shift, replaced):
    due = now_ms() + HOUR
    add(r, "a", "AT", due, payload=("f", "old"))
    assert add(r, "a", "AT", due + shift, word, payload=("f", "new")) == ("a" if replaced else None)
    found = task(r, "s", "a")
    assert found["due"] == (due + shift if replaced else due)
    assert found["payload"] == ["f", "new" if replaced else "old"]


@pytest.mark.parametrize("word", ["GT", "LT"])
def test_gt_and_lt_add_what_is_not_there(r, word):
    assert add(r, "a", word) == "a"
    assert length(r) == 1


# TW.SEND: options as TW.GET tells them

def test_defaults(r):
    add(r, "a")
    found = task(r, "s", "a")
    assert {name: found[name]
            for name in ("every", "times", "target", "kind", "maxlen", "missed", "max-late", "attempt")} == {
                "every": None, "times": 1, "target": "q", "kind": "stream", "maxlen": None,
                "missed": None, "max-late": None, "attempt": 0
            }


@pytest.mark.parametrize("every", [1, 1000, CENTURY])
def test_every_without_times_is_for_ever(r, every):
    add(r, "a", "EVERY", every)
    found = task(r, "s", "a")
    assert (found["every"], found["times"]) == (every, None)


@pytest.mark.parametrize("times", [1, 2, 2**32, MOST])
def test_times(r, times):
    add(r, "a", "EVERY", 1000, "TIMES", times)
    found = task(r, "s", "a")
    assert (found["every"], found["times"]) == (1000, times)


@pytest.mark.parametrize("maxlen", [1, 1000, MOST])
def test_maxlen(r, maxlen):
    add(r, "a", "MAXLEN", maxlen)
    assert task(r, "s", "a")["maxlen"] == maxlen


@pytest.mark.parametrize("words,missed,max_late", [
    ((), "coalesce", None), (("MISSED", "burst"), "burst", None), (("MISSED", "SKIP"), "skip", None),
    (("MISSED", "coalesce", "MAXLATE", 0), "coalesce", 0), (("MAXLATE", 5000), "coalesce", 5000),
    (("MAXLATE", 3155760000000, "MISSED", "burst"), "burst", 3155760000000)])
def test_missed_and_max_late(r, words, missed, max_late):
    add(r, "a", *words, "EVERY", 1000)
    found = task(r, "s", "a")
    assert (found["missed"], found["max-late"]) == (missed, max_late)


def test_stream_may_be_said(r):
    add(r, "a", "STREAM")
    assert task(r, "s", "a")["kind"] == "stream"


def test_a_list_has_one_value(r):
    add(r, "a", "LIST", payload=("just this",))
    found = task(r, "s", "a")
    assert (found["kind"], found["payload"]) == ("list", ["just this"])


@pytest.mark.parametrize("name", ["tw.id", "tw.due", "tw.attempt", "tw.missed-periods"])
def test_the_names_of_the_first_fields_are_refused_as_fields_alone(r, name):
    assert add(r, "a", payload=("f", name)) == "a"
    assert add(r, "b", "LIST", payload=(name,)) == "b"
    assert task(r, "s", "a")["payload"] == ["f", name]


def test_a_payload_of_many_fields(r):
    payload = [text for i in range(2000) for text in (f"field{i}", f"value{i}")]
    add(r, "a", payload=payload)
    assert task(r, "s", "a")["payload"] == payload


def test_a_field_may_come_twice_and_be_empty(r):
    payload = ["f", "1", "f", "2", "", "", "g", ""]
    add(r, "a", "IN", 0, payload=payload)
    wait_until(lambda: r.xlen("q") == 1)
    add(r, "b", payload=payload)
    assert task(r, "s", "b")["payload"] == payload


def test_words_of_options_may_be_payload(r):
    payload = ["PAYLOAD", "IN", "LIST", "NX"]
    add(r, "a", payload=payload)
    assert task(r, "s", "a")["payload"] == payload


def test_options_may_come_in_any_order(r):
    due = now_ms() + HOUR
    add(r, "a", "AT", due, "NX", "EVERY", 7, "TIMES", 3, "STREAM", "MAXLEN", 5, "MAXLATE", 9)
    add(r, "b", "AT", due, "MAXLATE", 9, "MAXLEN", 5, "STREAM", "TIMES", 3, "EVERY", 7, "NX")
    one, other = task(r, "s", "a"), task(r, "s", "b")
    assert {**one, "remaining": 0} == {**other, "remaining": 0}
    assert (one["due"], one["every"], one["times"], one["maxlen"], one["max-late"]) == (due, 7, 3, 5, 9)


def test_options_in_small_letters(r):
    words = [
        "tw.send", "s", "q", "a", "in", HOUR, "nx", "every", 7, "times", 3, "list", "missed", "coalesce",
        "payload", "x"
    ]
    assert r.execute_command(*words) == "a"
    found = task(r, "s", "a")
    assert (found["kind"], found["missed"], found["times"]) == ("list", "coalesce", 3)


# TW.CANCEL

def test_cancel_answers_how_many_there_were(r):
    for name in "abc":
        add(r, name)
    assert r.execute_command("TW.CANCEL", "s", "a", "nobody", "c") == [1, 0, 1]
    assert list(tasks(r, "s")) == ["b"]


def test_an_id_given_twice_is_cancelled_once(r):
    add(r, "a")
    add(r, "b")
    assert r.execute_command("TW.CANCEL", "s", "a", "a") == [1, 0]


def test_cancel_where_there_is_no_queue(r):
    assert r.execute_command("TW.CANCEL", "nowhere", "a", "b") == [0, 0]
    assert r.exists("nowhere") == 0


def test_what_was_cancelled_is_not_delivered(r):
    with r.pipeline() as pipe:
        add(pipe, "a", "IN", 100)
        add(pipe, "b", "IN", 200)
        pipe.execute_command("TW.CANCEL", "s", "a")
        assert pipe.execute() == ["a", "b", [1]]
    wait_until(lambda: r.exists("q"))
    assert delivered(r, "q") == ["b"]


def test_a_queue_that_becomes_empty_is_removed(r):
    add(r, "a")
    assert r.exists("s") == 1
    r.execute_command("TW.CANCEL", "s", "a")
    assert r.exists("s") == 0
    assert r.dbsize() == 0


def test_an_id_may_be_used_again_after_it_was_cancelled(r):
    for i in range(100):
        add(r, "a", "EVERY", 5, payload=("f", i))
        assert r.execute_command("TW.CANCEL", "s", "a") == [1]
    add(r, "a", payload=("f", "last"))
    assert task(r, "s", "a")["payload"] == ["f", "last"]
    assert length(r) == 1


# TW.MOVE

def test_move_gives_another_due_time_and_nothing_else(r):
    add(r, "a", "EVERY", 5000, "TIMES", 3, "MAXLEN", 10, "MAXLATE", 77, payload=("f", "v"))
    before, due = task(r, "s", "a"), now_ms() + 5 * HOUR
    assert r.execute_command("TW.MOVE", "s", "a", "AT", due) == 1
    after = task(r, "s", "a")
    assert after["due"] == due
    assert {**before, "due": due, "next": due, "remaining": 0} == {**after, "remaining": 0}


def test_move_in_counts_from_now(r):
    add(r, "a")
    before = now_ms()
    assert r.execute_command("TW.MOVE", "s", "a", "in", 5000000) == 1
    assert before + 5000000 <= task(r, "s", "a")["due"] <= now_ms() + 5000000


@pytest.mark.parametrize("word,shift,moved", [
    ("GT", 1, 1), ("GT", 0, 0), ("GT", -1, 0), ("LT", 1, 0), ("LT", 0, 0), ("LT", -1, 1)])
def test_move_with_gt_and_lt(r, word, shift, moved):
    due = now_ms() + HOUR
    add(r, "a", "AT", due)
    assert r.execute_command("TW.MOVE", "s", "a", "AT", due + shift, word) == moved
    assert task(r, "s", "a")["due"] == due + shift * moved


@pytest.mark.parametrize("condition", [(), ("GT",), ("LT",)])
def test_move_of_what_is_not_there(r, condition):
    assert r.execute_command("TW.MOVE", "nowhere", "a", "IN", 5, *condition) is None
    assert r.exists("nowhere") == 0
    add(r, "b")
    assert r.execute_command("TW.MOVE", "s", "a", "IN", 5, *condition) is None
    assert length(r) == 1


def test_move_to_a_time_that_has_passed(r):
    add(r, "a")
    assert r.execute_command("TW.MOVE", "s", "a", "AT", 5) == 1
    wait_until(lambda: delivered(r, "q") == ["a"])
    assert r.xrange("q")[0][1]["tw.due"] == "5"


def test_move_puts_off_what_would_have_been_delivered(r):
    with r.pipeline() as pipe:
        add(pipe, "a", "IN", 100)
        add(pipe, "b", "IN", 200)
        pipe.execute_command("TW.MOVE", "s", "a", "IN", HOUR)
        assert pipe.execute() == ["a", "b", 1]
    wait_until(lambda: r.exists("q"))
    assert delivered(r, "q") == ["b"]
    assert length(r) == 1


def test_a_repeating_task_goes_on_from_its_new_time(r):
    add(r, "a", "EVERY", 100, "TIMES", 3, "MISSED", "burst")
    due = now_ms() + 50
    r.execute_command("TW.MOVE", "s", "a", "AT", due)
    wait_until(lambda: r.xlen("q") == 3)
    assert [int(fields["tw.due"]) for _, fields in r.xrange("q")] == [due, due + 100, due + 200]


# Keys

def test_a_queue_has_no_expiry_of_its_own(r):
    add(r, "a")
    assert r.pttl("s") == -1
    assert r.type("s") not in ("none", "string", "stream")


def test_expire_cancels_all_that_is_left_by_then(r):
    add(r, "a", "IN", 1)
    wait_until(lambda: r.exists("q"))
    add(r, "b", "IN", HOUR)
    r.pexpire("s", 50)
    wait_until(lambda: r.exists("s") == 0)
    assert r.execute_command("TW.GET", "s", "b") == [None]
    add(r, "b", "IN", 1)  # The name is free again, and no task of the old queue is left.
    wait_until(lambda: delivered(r, "q") == ["a", "b"])


@pytest.mark.parametrize("removal", ["DEL", "UNLINK"])
def test_a_removed_queue_delivers_nothing(r, removal):
    with r.pipeline() as pipe:
        for i in range(100):
            add(pipe, i, "IN", 100)
        pipe.execute_command(removal, "s")
        add(pipe, "after", "IN", 200)
        assert pipe.execute()[-2:] == [1, "after"]
    wait_until(lambda: r.exists("q"))
    assert delivered(r, "q") == ["after"]


# Keyspace events

def test_events_of_commands(r):
    def run():
        add(r, "a")
        add(r, "b")
        r.execute_command("TW.MOVE", "s", "a", "IN", 2 * HOUR)
        r.execute_command("TW.CANCEL", "s", "a")
        r.execute_command("TW.CANCEL", "s", "b")
    assert events_of(r, run) == ["tw.send", "tw.send", "tw.move", "tw.cancel", "tw.cancel", "del"]


def test_events_of_a_delivery(r):
    def run():
        add(r, "a", "IN", 5)
        wait_until(lambda: r.exists("q"))
    assert events_of(r, run) == ["tw.send", "tw.delivered", "del"]


def test_no_event_where_nothing_changed(r):
    add(r, "a")

    def run():
        add(r, "a", "NX")
        r.execute_command("TW.CANCEL", "s", "nobody")
        r.execute_command("TW.MOVE", "s", "a", "IN", 5, "GT")
        r.execute_command("TW.MOVE", "s", "nobody", "IN", 5)
    assert events_of(r, run) == []


def test_events_reach_the_class_of_all(r):
    r.config_set("notify-keyspace-events", "EA")
    listener = r.pubsub()
    listener.subscribe("__keyevent@0__:tw.send")
    assert listener.get_message(timeout=PATIENCE)["type"] == "subscribe"
    add(r, "a")
    assert listener.get_message(timeout=PATIENCE)["data"] == "s"
    listener.close()


# Internal

@pytest.mark.parametrize("words", [("TW.FIRED", "s", "a"), ("TW.LOAD", "s", "a"), ("TW.FIRED", "s", "a", "5"),
                                   ("TW.LOAD", "s", "q", "a", "b", "c", "d")])
def test_internal_commands_are_refused_from_clients(r, words):
    add(r, "a")
    before = as_map(r.execute_command("TW.GET", "s", "a")[0])
    assert error_of(r, words) is not None
    after = task(r, "s", "a")
    assert {**before, "remaining": 0} == {**after, "remaining": 0}
    assert length(r) == 1


def error_of(r, words):
    """Returns the error of a command, or None if the command succeeds."""
    pipe = r.pipeline(transaction=False)
    pipe.execute_command(*words)
    answer = pipe.execute(raise_on_error=False)[0]
    return answer if isinstance(answer, Exception) else None
