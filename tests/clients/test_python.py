# SPDX-License-Identifier: MIT
"""The package for Python with threads: each call of Queue, and the parts of a worker that only Python has.
The behaviour that all languages share is in test_workers.py, the same for asyncio in test_python_aio.py."""
import asyncio
import contextlib
import gc
import importlib.util
import json
import logging
import os
import pathlib
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import tomllib
from datetime import datetime, timedelta, timezone

import pytest
import redis
import redis.asyncio
from effects import act, effects_of, judge, names, new_effects, note
from harness import HOST, PATIENCE, ROOT, now_ms, version, wait_until
from python_package import LIMITS, PACKAGE, bad_arguments, emptied, new_file
from subject import NOTHING, Subject, command, release

import tickwheel
import tickwheel.aio
from tickwheel import (Back, Backoff, Counts, Dead, Retry, Queue, TickwheelError, Values, Worker, WorkerError,
                       WrongArgument, WrongFormat)
from tickwheel import _errors, _file, _links, _tasks, _words
from tickwheel._file import EXTENSION
from tickwheel.worker import Places


def client_of(server, **options):
    return redis.Redis(host=HOST, port=server.port, **options)


@pytest.fixture(params=["bytes", "str", "file"])
def client(tmp_path, request):
    """Clients with both kinds of replies, and a file: the package does not show the difference."""
    if request.param == "file":
        yield tickwheel.connect(new_file(tmp_path))
        return
    made = client_of(request.getfixturevalue("common"), decode_responses=request.param == "str")
    yield made
    made.connection_pool.disconnect()


at_server = pytest.mark.parametrize("client", ["bytes", "str"], indirect=True)
in_file = pytest.mark.parametrize("client", ["file"], indirect=True)


@pytest.fixture
def work(client, queue):
    return Queue(client, queue)


def ready(queue, *ids):
    wait_until(lambda: all(queue.get(id).state == "ready" for id in ids))


def take(queue, count=1):
    """Takes tasks as a worker does. Returns the jobs by their ids."""
    raw = queue.client.execute_command(*_words.take_words(60000, count, 5000, "me", [queue.key]),
                                       NEVER_DECODE=True)
    return {job.id: job for job in tickwheel._tasks.jobs(raw)}


def kill(queue, *ids):
    """Makes dead tasks of these ids, in this order."""
    for id in ids:
        queue.put(id, "x")
        ready(queue, id)
        job = take(queue)[id]
        queue.client.execute_command("TW.NACK", queue.key, id, job.token, "DEAD", "ERROR", f"no {id}")


# A queue

def test_a_task_has_all_its_fields(work):
    due = time.time() + 3600
    many = [] if isinstance(work.client, tickwheel.File) else [b"\xff\0", 7, {"a": 2.5}]
    assert work.put("a", Values("x", *many), at=due, every=60, times=3, missed="burst", max_late=5.5,
                    tries=4, backoff=Backoff(0.5, 1.5, 9, 20)) == "a"
    task = work.get("a")
    assert task.payload == (b"x", b"\xff\0", b"7", b'{"a":2.5}')[:1 + len(many)] and task.text == "x"
    assert (task.id, task.state, task.every, task.times) == ("a", "waiting", 60.0, 3)
    assert (task.missed, task.max_late, task.kind, task.target) == ("burst", 5.5, "workers", "")
    assert (task.missed_periods, task.lapses, task.replaced) == (0, 0, False)
    assert task.due == task.next == round(due, 3) and 0 < task.remaining <= 3600.001  # a time is whole ms
    assert (task.attempt, task.worker, task.error, task.maxlen) == (0, "", "", None)
    plain = work.get(work.put(None, b"y", delay=60))
    assert (plain.every, plain.times, plain.missed, plain.payload) == (None, 1, None, (b"y",))
    assert plain.max_late is None
    forever = work.get(work.put("e", "z", delay=1, every=timedelta(days=1), missed="skip"))
    assert (forever.every, forever.times, forever.missed) == (86400.0, None, "skip")
    assert work.get("none") is None


def test_times_are_seconds_or_moments(work):
    noon = datetime(2040, 6, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    for id, at, due in (("a", noon, noon.timestamp()), ("b", 2.5e9, 2.5e9), ("c", 0, 0.0)):
        work.put(id, "x", at=at)
        assert work.get(id).due == due
    before = now_ms()
    work.put("d", "x", delay=timedelta(milliseconds=1500))
    assert 1500 <= work.get("d").due * 1000 - before + 1 < 61500
    work.put("e", "x", at=datetime(2040, 1, 1, 0, 0, 0, 1500, tzinfo=timezone.utc))
    assert work.get("e").due == datetime(2040, 1, 1, tzinfo=timezone.utc).timestamp() + 0.002


def test_conditions_of_put_and_move(work):
    assert work.put("a", "x", delay=60, condition="xx") is None
    assert work.put("a", "x", delay=60, condition="nx") == "a"
    assert work.put("a", "y", delay=60, condition="nx") is None
    assert work.put("a", "y", delay=30, condition="gt") is None
    assert work.put("a", "y", delay=30, condition="lt") == "a"
    assert work.move("a", delay=10, condition="gt") is False
    assert work.move("a", delay=40, condition="gt") is True
    assert work.move("a", at=time.time() + 50) is True and work.move("none", delay=1) is None
    assert work.get("a").text == "y"


def test_a_task_that_exists_keeps_its_time(work):
    assert work.put("a", "x", delay=60, keep_due=True) == "a"
    due = work.get("a").due
    assert work.put("a", "y", delay=5, keep_due=True, condition="xx") == "a"
    assert (work.get("a").due, work.get("a").payload) == (due, (b"y", ))


def test_ids_and_payloads_of_any_bytes(work):
    """An id that is no UTF-8 comes as a str, and goes back as the same bytes."""
    raw = b"\xff\0 order"
    id = work.put(raw, "grüße", delay=60)
    assert id.encode("utf-8", "surrogateescape") == raw
    assert work.get(id).text == work.get(raw).text == "grüße" and work.get(raw).id == id
    assert [name for name, *_ in work.scan()] == [id] and work.next()[0] == id
    assert work.cancel(id) == [1]


def test_the_other_calls(work):
    assert work.count() == 0 and work.next() is None
    for number in range(5):
        work.put(f"t{number}", "x", at=4e9 + number)
    assert work.count() == 5 and work.next() == ("t0", 4e9, 4e9)
    assert {*work.scan()} == {(f"t{number}", 4e9 + number, 4e9 + number) for number in range(5)}
    assert [id for id, *_ in work.scan("t[34]", count=1)] and [*work.scan("t3")] == [("t3", 4e9 + 3, 4e9 + 3)]
    assert work.cancel("t0", "t1", "t2", "none", "t2") == [1, 1, 1, 0, 0]
    assert Queue(work.client, work.key.encode()).get("t3").text == "x"


@pytest.mark.parametrize("pattern, found", [
    ("*", "a* aü a]b a-b \udcff"), ("a\\*", "a*"), ("a?", "a*"), ("a??", "aü a]b a-b"), ("?", "\udcff"),
    ("\udcff", "\udcff"), ("a[]]b", ""), ("a[\\]]b", "a]b"), ("a[^x]b", "a]b a-b"), ("a[^-]b", "a]b"),
    ("a[z-\\]b", "a]b"), ("[b-a]*b", "a]b a-b"), ("*a*b*", "a]b a-b"), ("a[", ""), ("", ""),
    ("*" + "a*" * 120 + "x", "")])
def test_patterns(work, pattern, found):
    for id in ("a*", "aü", "a]b", "a-b", "\udcff", "a" * 900):
        work.put(id, "x", delay=60)
    assert {id for id, *_ in work.scan(pattern)} - {"a" * 900} == {*found.split()}
    with pytest.raises(WrongArgument, match="MATCH has 256 bytes: expected at most 255"):
        list(work.scan("x" * 256))


def test_a_scan_of_too_many(work):
    with pytest.raises(ValueError, match="count is 2147483648: expected an integer from 1 to 2147483647"):
        list(work.scan(count=2**31))
    assert list(work.scan(count=2**31 - 1)) == []


def test_promote_and_pause(work):
    assert work.promote_all() == 0
    for number in range(5):
        work.put(f"t{number}", "x", at=4e9 + number)
    assert work.promote("t0") is True and work.promote("t0") is False and work.get("t0").state == "ready"
    assert work.get("t1").state == "waiting" and work.promote_all() == 4 and work.get("t4").state == "ready"
    assert work.pause() is True and work.pause() is False and work.resume() is True and work.resume() is False


@pytest.mark.parametrize("payload, kept", [
    ("grüße", "grüße"), (b"\xff", None), ("42", "42"), (42, "42"), (2.5, "2.5"), (None, "null"), (True, "true"),
    ([1, "zwei", [None]], '[1,"zwei",[null]]'), ({"größe": 1, "b": {}}, '{"größe":1,"b":{}}'),
    ((1, 2), "[1,2]"), ({"\udcff": 1}, r'{"\udcff":1}'), ([], "[]")])
def test_what_is_no_text_and_no_bytes_is_kept_as_json(work, payload, kept):
    work.put("a", payload, at=1)
    task = work.get("a")
    ready(work, "a")
    job = take(work)["a"]
    assert job.payload == task.payload == (payload if kept is None else kept.encode(),)
    if isinstance(payload, (str, bytes)) and kept != "42":
        with pytest.raises(ValueError, match="payload begins with b.*: expected JSON"):
            assert job.json
        return
    expected = [1, 2] if payload == (1, 2) else 42 if payload == "42" else payload
    assert job.json == task.json == expected and job.json is job.json


def test_json_of_other_languages_alone():
    """Python itself would read the first two."""
    for word in (b"NaN", b"[Infinity]", b"\xff", b"{", b"x" * 1000):
        said = f"payload begins with {re.escape(repr(word[:40]))}: expected JSON"
        with pytest.raises(ValueError, match=said):
            assert _tasks.Job("q", "a", "0" * 16, 0, 1, (word,)).json


def test_waiting_tasks_in_their_order(work):
    for number in (3, 0, 2, 1):
        work.put(f"t{number}", "x", at=4e9 + number // 2)
    work.put("ready", "x", at=1)
    rows = [("t0", 4e9, 4e9), ("t1", 4e9, 4e9), ("t3", 4e9 + 1, 4e9 + 1), ("t2", 4e9 + 1, 4e9 + 1)]
    for count in (1, 2, 3, 10000):
        assert [*work.range(count=count)] == rows and [*work.range(last=4e9, count=count)] == rows[:2]
        assert [*work.range(4e9 + 1, count=count)] == rows[2:]
        assert [*work.range(datetime.fromtimestamp(4e9, timezone.utc), 4e9, count)] == rows[:2]
    assert [*work.range(4e9 + 2)] == [*work.range(last=5)] == []
    with pytest.raises(ValueError, match="first is -1"):
        next(work.range(-1))
    assert [row[:1] for row in work.client.execute_command("TW.RANGE", work.key, "-", "+")] != []


def test_a_forecast_of_tasks(work):
    assert work.forecast() == [0] * 60
    for delay, id in ((500, "a"), (1500, "b"), (1700, "c"), (99999, "d"), (0, "ready")):
        work.put(id, "x", delay=delay)
    assert work.forecast(1000, 3) == [1, 2, 0] and work.forecast(timedelta(seconds=1000), 1) == [1]
    assert sum(work.client.execute_command("TW.FORECAST", work.key)) == 0


def test_the_counts_of_a_queue(work):
    assert work.stats() is None
    work.pause()
    assert work.stats().paused is True and work.stats().tasks == 0
    work.resume()
    kill(work, "dead")
    work.put("waiting", "x", at=4e9)
    work.put("leased", "x", at=1)
    ready(work, "leased")
    take(work)
    work.put("ready", "x", at=1)
    ready(work, "ready")
    stats = work.stats()
    assert (stats.tasks, stats.waiting, stats.ready, stats.leased, stats.dead) == (3, 1, 1, 1, 1)
    assert (stats.paused, stats.next) == (False, 4e9) and 0 <= stats.oldest_ready < 600
    events = (stats.taken, stats.failed, stats.died, stats.done, stats.delivered)
    in_a_file = isinstance(work.client, tickwheel.File)
    assert events == ((None,) * 5 if in_a_file else (2, 1, 1, 0, 0))
    assert (stats.routes, stats.held, stats.late) == ((None,) * 3 if in_a_file else (1, 0, 0))
    assert (stats.bytes is None) == in_a_file


@at_server
def test_a_task_with_a_target(common, work):
    raw, stream, line = client_of(common), work.key + ":stream", work.key + ":list"
    entry = {"order": 42, b"who": "ann", "what": {"b": [1]}}
    assert work.send(stream, "a", entry, at=4e9, maxlen=9, tries=2) == "a"
    task = work.get("a")
    assert (task.kind, task.target, task.maxlen, task.payload[:2]) == ("stream", stream, 9, (b"order", b"42"))
    assert work.send(stream, "a", {"order": 43}, condition="nx") is None and work.move("a", delay=0)
    wait_until(lambda: raw.xlen(stream) == 1)
    [(_, fields)] = raw.xrange(stream)
    names = b"tw.id", b"order", b"who", b"what"
    assert [fields[name] for name in names] == [b"a", b"42", b"ann", b'{"b":[1]}']
    for id, kind, payload in (("b", "list", "first"), ("c", "list", {"n": 2}), ("d", "list left", b"\xff")):
        assert work.send(line, id, payload, kind=kind) == id
        wait_until(lambda: work.get(id) is None)
    assert raw.lrange(line, 0, -1) == [b"\xff", b"first", b'{"n":2}']
    with client_of(common).pipeline() as pipe:
        assert work.on(pipe).send(line, "e", "x", kind="list", delay=60) is pipe and pipe.execute() == [b"e"]
    raw.connection_pool.disconnect()


@in_file
@pytest.mark.parametrize("seed", range(3))
def test_a_forecast_of_a_file_is_that_of_the_command(work, seed):
    """A step is 1000 s, and each time lies in the middle of one. So the two may look one after the other."""
    rng, middle = random.Random(seed), int(time.time()) + 500
    db = sqlite3.connect(work.client.path)
    mine = work.on(db)
    for number in range(200):
        series = {"every": rng.choice([1000, 2000, 7000]), "times": rng.choice([None, 1, 2, 9]),
                  "missed": rng.choice(["burst", "skip", "coalesce"])} if rng.random() < 0.7 else {}
        id = mine.put(f"t{number}", "x", at=middle + 1000 * rng.randrange(-20, 25), **series)
        if rng.random() < 0.5:  # A retry, or a task that was given back.
            next_ms, attempt = 1000 * (middle + 1000 * rng.randrange(25)), rng.randrange(3)
            stands = rng.randrange(4) if attempt and series.get("missed") == "coalesce" else 0
            db.execute("UPDATE tw_task SET next_ms = ?, place_ms = ?, attempt = ?, missed_periods = ?"
                       " WHERE id = ?", (next_ms, next_ms, attempt, stands, id.encode()))
    db.commit()
    db.close()
    told = subprocess.run([command()[0], "tasks", "--store", work.client.path, "--queue", work.key, "--json",
                           "forecast", "--step", "1000s", "--steps", "20"], capture_output=True, text=True,
                          timeout=PATIENCE, check=True)
    assert work.forecast(1000, 20) == json.loads(told.stdout)["counts"]


@in_file
def test_looks_at_a_file_whose_clock_was_set_back(work):
    """A task that was filed before that has a place behind its next time."""
    for number in range(3):
        work.put(f"t{number}", "x", at=4e9 + number)
    db = sqlite3.connect(work.client.path)
    db.execute("UPDATE tw_task SET place_ms = 6000000000000 WHERE id = CAST('t1' AS BLOB)")
    db.execute("UPDATE tw_meta SET clock_ms = 6000000000000")
    db.commit()
    db.close()
    for count in (1, 2, 3):
        assert [id for id, *_ in work.range(count=count)] == ["t0", "t1", "t2"]
    assert [id for id, *_ in work.range(4e9 + 1, 4e9 + 1)] == ["t1"]
    assert work.forecast(3e9, 1) == [3]


@in_file
def test_calls_that_a_file_does_not_have(work):
    with pytest.raises(NotImplementedError, match="TW.SEND: a file has no targets: put a task for workers, or"):
        work.send("target", "a", {"x": 1})
    with pytest.raises(NotImplementedError, match="TW.TOP: a file has no such statement"):
        work.client.execute_command("TW.TOP")
    with pytest.raises(ValueError, match="payload has 2 values: expected one"):
        work.put("a", Values("x", "y"))


@in_file
def test_the_transaction_of_the_caller(work):
    """A task and a row of the caller are committed together, or not at all."""
    db = sqlite3.connect(work.client.path)
    db.execute("CREATE TABLE orders(id INTEGER)")
    mine = work.on(db)
    for id, end in (("a", db.rollback), ("b", db.commit)):
        db.execute("INSERT INTO orders VALUES (1)")
        assert mine.put(id, "x", delay=60) == id and mine.get(id).text == "x" and work.get(id) is None
        assert mine.move(id, delay=50) and mine.cancel("none") == [0]
        end()
    assert work.get("a") is None and work.get("b").text == "x"
    assert db.execute("SELECT count(*) FROM orders").fetchone() == (1,)
    db.close()


def test_lapses_and_a_task_that_stands_behind_an_attempt(work):
    work.put("a", "x", backoff=Backoff(0.001, 1, 0.001))
    call = work.client.execute_command
    call("TW.TAKE", 1, work.key, "LEASE", 1, "BLOCK", 60000)
    job = take(work)["a"]
    assert job.attempt == 2 and (work.get("a").lapses, work.get("a").replaced) == (1, False)
    work.put("a", "y", backoff=Backoff(0.001, 1, 0.001))
    assert (work.get("a").state, work.get("a").replaced, work.get("a").text) == ("leased", True, "y")
    call("TW.ACK", work.key, "a", job.token)
    assert not work.get("a").replaced
    call("TW.TAKE", 1, work.key, "LEASE", 1, "BLOCK", 60000)
    job = take(work)["a"]
    call("TW.NACK", work.key, "a", job.token, "DEAD")
    assert [(one.attempt, one.lapses) for one in work.dead()] == [(2, 1)]


def test_dead_tasks(work):
    kill(work, "a", "b", "c")
    assert [(one.id, one.attempt, one.error) for one in work.dead()] == [
        ("a", 1, "no a"), ("b", 1, "no b"), ("c", 1, "no c")]
    assert [one.id for one in work.dead(count=1, after="a")] == ["b"]
    assert [one.id for one in work.all_dead()] == ["a", "b", "c"]
    first = work.dead()[0]
    assert first.due <= first.dead <= time.time()
    assert work.replay("a", delay=60) is True and work.replay("a") is False and work.get("a").state == "waiting"
    assert work.purge("b") is True and work.purge("a") is False
    with pytest.raises(tickwheel.TaskIsDead, match="expected a replay"):
        work.move("c", delay=1)
    assert work.replay_all(at=4e9) == 1 and work.get("c").due == 4e9
    kill(work, "d")
    assert work.purge_all() == 1 and work.dead() == []


def test_a_dead_period_with_a_long_name(work):
    """A bug: its name is longer than a put allows, and a file replayed by a put."""
    for call in (lambda id: work.replay(id, delay=60), lambda _: work.replay_all(delay=60)):
        work.put("x" * 960, "y", every=3600, tries=3)
        ready(work, "x" * 960)
        [job] = take(work).values()
        work.client.execute_command("TW.NACK", work.key, job.id, job.token, "DEAD")
        [dead] = work.dead()
        assert len(dead.id) > 960 and call(dead.id) == 1
        again = work.get(dead.id)
        assert (again.state, again.attempt, again.error, again.text) == ("waiting", 0, "", "y")
        work.cancel(dead.id)


@pytest.mark.parametrize("how", [["BACK"], []], ids=["back", "failed"])
def test_the_next_attempt_at_a_time_that_has_passed(work, how):
    """A bug: a file took the present instead, and no look and no limit of lateness knew the time."""
    work.put("a", "x")
    ready(work, "a")
    job = take(work)["a"]
    assert work.client.execute_command("TW.NACK", work.key, "a", job.token, *how, "AT", 1500)
    assert (work.get("a").state, work.get("a").next) == ("ready", 1.5)


def test_more_dead_tasks_than_one_command_handles(work, monkeypatch):
    """The commands handle at most PAGE tasks; here a page has two."""
    class Short:
        """A server that handles two tasks in one command."""

        def __init__(self):
            self.left = 5

        def execute_command(self, *words, **_):
            if words[0] == "TW.DEAD":
                first = int(words[5]) if len(words) > 4 else 0
                numbers = range(first + 1, self.left + 1)
                return [[str(n).encode(), 0, 0, 1, b"", 0, None] for n in numbers][:words[3]]
            done = min(2, self.left)
            self.left -= done
            return done

    monkeypatch.setattr(tickwheel.queue, "PAGE", 2)
    short = work.on(Short())
    assert [one.id for one in short.all_dead()] == ["1", "2", "3", "4", "5"]
    assert short.purge_all() == 5 and short.replay_all() == 0


def test_wrong_arguments_send_nothing(work):
    for call, said in bad_arguments(work):
        with pytest.raises((TypeError, ValueError)) as error:
            call()
        assert said in str(error.value)
    assert work.count() == 0
    with pytest.raises(TypeError, match="expected one that is not of redis.asyncio"):
        Queue(redis.asyncio.Redis(), work.key)
    with pytest.raises(WrongArgument, match="(?i)times"):
        work.put("a", "x", times=2)


@at_server
def test_a_transaction_and_a_pipeline(client, work):
    with client.pipeline() as pipe:
        mine = work.on(pipe)
        pipe.set(work.key + ":order", "placed")
        assert mine.put("a", "x", delay=60) is pipe
        mine.move("a", delay=30)
        mine.purge_all()
        assert work.count() == 0
        assert pipe.execute()[2:] == [1, 0]
    assert work.count() == 1
    with client.pipeline(transaction=False) as pipe:
        work.on(pipe).cancel("a")
        assert pipe.execute() == [[1]]
    with client.pipeline() as pipe:
        pipe.watch(work.key)
        assert work.on(pipe).get("a") is None  # At once, since the pipeline watches.
        pipe.multi()
        work.on(pipe).put("b", "x", delay=60)
        client.set(work.key, "another")
        with pytest.raises(redis.WatchError):
            pipe.execute()


@at_server
def test_the_words_in_a_script(client, work):
    words = work.put_words("a", Values("x", 1), delay=60, tries=2)
    script = "return redis.call(unpack(ARGV))"
    client.eval(script, 1, work.key, *words)
    assert work.get("a").payload == (b"x", b"1")


# The units, and the errors of servers

@at_server
def test_a_map_is_read_in_both_protocols(client, work):
    """In RESP3 the reply of TW.GET has dicts, in RESP2 flat lists."""
    work.put("a", "x", delay=60)
    flat, = client.execute_command("TW.GET", work.key, "a")
    pairs = dict(zip(flat[::2], flat[1::2]))
    assert _tasks.task("a", [pairs]) == _tasks.task("a", [flat])
    assert _tasks.text(_tasks.told_by(pairs)["state"]) == "waiting"


def test_rows_of_a_newer_server_may_be_longer():
    [job] = _tasks.jobs([[b"q", b"a", b"0" * 16, 1000, 1, [b"v"], 5, b"new"]])
    [dead] = _tasks.dead_tasks([[b"a", 1000, 2000, 3, b"no", 2, None, b"new"]])
    assert (job.id, job.attempt, job.text, job.missed_periods) == ("a", 1, "v", 5)
    assert (dead.id, dead.attempt, dead.error, dead.lapses) == ("a", 3, "no", 2)


def test_errors_that_pass():
    of = redis.exceptions
    for error in (of.ConnectionError("x"), of.TimeoutError("x"), OSError("x"), of.BusyLoadingError("x"),
                  of.ReadOnlyError("x"), of.ResponseError("OOM x"), of.ResponseError("MISCONF x"),
                  of.ResponseError("UNBLOCKED x"), of.ClusterDownError("x"), of.TryAgainError(),
                  of.RedisClusterException("x"), redis.sentinel.MasterNotFoundError("x")):
        assert _errors.passes(error, cluster=False), error
    moved = of.MovedError("1 127.0.0.1:7000")
    assert _errors.passes(moved, cluster=True) and not _errors.passes(moved, cluster=False)
    for error in (of.AuthenticationError("x"), of.NoPermissionError("x"), of.ResponseError("WRONGTYPE x"),
                  of.ResponseError("unknown command 'TW.TAKE'"), ZeroDivisionError("x"),
                  of.ConnectionError(of.AuthenticationError("x"))):
        assert not _errors.passes(error, cluster=True), error
    assert "redis.RedisCluster" in str(_errors.fatal("TW.TAKE", ["s"], moved))


def test_the_error_of_a_call_has_that_of_the_driver_as_its_cause(work):
    """tests/contract has the classes, in both homes. The errors of a pipeline are those of redis-py."""
    kill(work, "a")
    with pytest.raises(tickwheel.TaskIsDead) as told:
        work.move("a", delay=1)
    assert isinstance(told.value.__cause__, (redis.ResponseError, sqlite3.IntegrityError))
    if isinstance(work.client, redis.Redis):
        with work.client.pipeline() as pipe, pytest.raises(redis.ResponseError, match="the task is dead"):
            work.on(pipe).move("a", delay=1)
            pipe.execute()


@in_file
def test_a_file_that_may_only_be_read(work):
    db = sqlite3.connect(work.client.path, isolation_level=None)
    db.execute("PRAGMA query_only = on")
    with pytest.raises(tickwheel.NoRights, match="^attempt to write a readonly database$"):
        work.on(db).put("a", "x")
    assert work.on(db).count() == 0
    db.close()


@in_file
def test_a_handler_finds_the_file_locked(crew, work):
    """The errors of its own statements stay those of sqlite3."""
    other, worker, seen = sqlite3.connect(work.client.path, isolation_level=None), crew(jobs=1), []

    @worker.task(work.key)
    def handler(job):
        db = sqlite3.connect(work.client.path, isolation_level=None)
        db.execute("PRAGMA busy_timeout = 0")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(tickwheel.Unavailable, match="^database is locked$"):
            with job.ack_on(db):
                seen.append("never")
        other.execute("ROLLBACK")
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            with job.ack_on(db):
                db.execute("SELECT * FROM no_table")
        db.close()
        seen.append(job.id)

    work.put("a", "x")
    worker.run_ready()
    assert seen == ["a"] and work.count() == 0
    other.close()


def test_the_settings_of_a_client_become_a_workers():
    """Newer versions of redis-py keep parts of the pool among the settings."""
    theirs = {"host": "h", "password": "p", "decode_responses": True, "retry": 1, "socket_timeout": None,
              "maint_notifications_pool_handler": 1, "orig_host_address": 1, "event_dispatcher": 1}
    assert _links.settings_of(theirs, 7) == {"host": "h", "password": "p", "decode_responses": False,
                                             "socket_timeout": 7, "max_connections": 2**31}
    assert _links.timeouts({"socket_timeout": None}, 30, 5) == (5, 10)
    assert _links.timeouts({"socket_timeout": 0.5}, 30, 5) == (0.5, 5.5)
    assert _links.timeouts({}, 0.3, 5) == (1, 6)


def test_errors_are_cut_between_characters():
    assert _errors.shortened("ü" * 3000) == ("ü" * 2048).encode()
    assert _errors.shortened("x" + "ü" * 3000) == ("x" + "ü" * 2047).encode()
    assert _errors.shortened("\udcff") == b"\\udcff"
    assert _errors.described(ValueError()) == "ValueError"


FAILED = _errors.outcome_of(OSError())


@pytest.mark.parametrize("outcome, reply, unsure, counted", [
    (_errors.DONE, 1, False, "done"), (_errors.DONE, 0, False, "not_yours"), (_errors.DONE, 0, True, "done"),
    (FAILED, 4000, False, "failed"), (FAILED, 0, False, "died"), (FAILED, None, False, "not_yours"),
    (FAILED, None, True, "failed"), (_errors.BACK, 4000, False, "back"),
    (_errors.BACK, None, False, "not_yours"), (_errors.BACK, None, True, "back"),
])
def test_how_replies_count(outcome, reply, unsure, counted):
    """A reply that says "not yours", to words whose first reply was lost, is about a task that they ended."""
    assert outcome.counted(reply, unsure) == counted


class Server:
    """Gets commands as a worker's link sends them. The first of them wait for `go`."""

    def __init__(self, reply):
        self.reply, self.sent, self.go = reply, [], threading.Event()
        self.calls, self.ends = _links.Calls(self.send), {}

    def send(self, commands):
        self.sent.append([name for name, in commands])
        assert self.go.wait(PATIENCE)
        return [self.reply(name) for name, in commands]

    def call(self, name):
        try:
            self.ends[name] = self.calls.call([name])
        except BaseException as error:  # pylint: disable=broad-except
            self.ends[name] = error

    def call_together(self):
        """One thread sends, and four others wait for it."""
        threads = [threading.Thread(target=self.call, args=[name], daemon=True) for name in "abcde"]
        threads[0].start()
        wait_until(lambda: self.sent == [["a"]])
        for thread in threads[1:]:
            thread.start()
        wait_until(lambda: len(self.calls.waiting) == 4)
        self.go.set()
        for thread in threads:
            thread.join(PATIENCE)
        assert [sorted(names) for names in self.sent] == [["a"], ["b", "c", "d", "e"]]


def test_commands_that_wait_are_sent_together():
    error = redis.ResponseError("ERR no")
    server = Server(lambda name: error if name == "c" else name.upper())
    server.call_together()
    assert server.ends == {"a": "A", "b": "B", "c": error, "d": "D", "e": "E"}
    server.call("f")
    assert server.ends["f"] == "F" and server.sent[2:] == [["f"]]


@pytest.mark.parametrize("error", [redis.ConnectionError("gone"), KeyboardInterrupt()])
def test_commands_that_are_sent_together_fail_together(error):
    def fail(_):
        raise error

    server = Server(fail)
    server.call_together()
    assert server.ends["a"] is error and set(server.ends) == set("abcde")
    others = [server.ends[name] for name in "bcde"]
    assert others.count(error) == (1 if isinstance(error, KeyboardInterrupt) else 4)
    assert all(isinstance(one, (redis.ConnectionError, type(error))) for one in others)
    server.reply = str.upper
    server.call("f")
    assert server.ends["f"] == "F"


def test_groups_of_queues_share_the_places():
    """Each of three groups has a place of its own among five; two places for four groups go around. When jobs
    have all places but one, the groups have that one in turns, and none of them keeps it for long."""
    places = Places(5, 3)
    assert [places.reserve() for _ in range(3)] == [1, 1, 1] and places.free == 2 and places.block_s == 5
    places.begin(1, 2)
    assert (places.free, places.block_s) == (4, 1)
    places.end()
    assert (places.free, places.block_s) == (5, 5)
    full = Places(4, 3)
    full.begin(3, 0)
    assert full.block_s == pytest.approx(1 / 3)
    few = Places(2, 4)
    assert [few.reserve() for _ in range(2)] == [1, 1] and few.free == 0 and few.block_s == 0.5
    assert Places(1, 100).block_s == 0.1
    assert Places(8, 1).reserve() == 8
    one = Places(8, 1)
    one.begin(7, 0)
    assert one.block_s == 5


# A worker

@pytest.fixture
def crew(client):
    """Makes workers, and stops them at the end."""
    made = []

    def one(**options):
        made.append(Worker(client, **{"lease": 2, **options}))
        return made[-1]
    yield one
    for worker in made:
        if worker._started:
            worker.give_up()
            worker.join(PATIENCE)


@pytest.fixture
def messages(caplog):
    caplog.set_level(logging.INFO, logger="tickwheel")
    return lambda: [record.getMessage() for record in caplog.records]


def test_a_decorated_function_stays_a_function(crew, work):
    worker, names = crew(jobs=2), []

    @worker.task(work.key)
    def handler(job):
        names.append((job.queue, job.id, job.text, job.value, job.attempt, job.due,
                      threading.current_thread().name))
        return "ignored"

    work.put("a", "grüße", at=1.5)
    with worker:
        emptied(work)
    assert names == [(work.key, "a", "grüße", "grüße".encode(), 1, 1.5, "tickwheel-job-1")]
    assert handler.__name__ == "handler" and worker.counts == Counts(done=1)
    with pytest.raises(RuntimeError, match="make another"):
        worker.start()
    with pytest.raises(RuntimeError, match="has started"):
        worker.add(handler, "other")


def test_wrong_arguments_of_a_worker(client):
    for options, said in (({"name": "n" * 256}, "expected at most 255 bytes"),
                          ({"jobs": 0}, "jobs is 0: expected an integer from 1 to 10000"),
                          ({"lease": 0}, "lease is 0: expected 0.001 to 4294967"), ({"lease": 1e9}, "lease is"),
                          ({"grace": -1}, "grace is -1")):
        with pytest.raises(ValueError, match=said):
            Worker(client, **options)
    for wrong, said in ((None, "client is None"), (redis.asyncio.Redis(), "not of redis.asyncio")):
        with pytest.raises(TypeError, match=said):
            Worker(wrong)
    worker = Worker(client)

    async def waits(job):
        await asyncio.sleep(0)

    for handler, said in ((5, "handler is 5: expected a function"), (waits, "use tickwheel.aio.Worker")):
        with pytest.raises(TypeError, match=said):
            worker.add(handler, "s")
    with pytest.raises(ValueError, match="no handler"):
        worker.run()
    with pytest.raises(ValueError, match="no queue"):
        worker.add(print)
    with pytest.raises(TypeError, match="expected a str"):
        worker.add(print, b"s")
    worker.add(print, "s")
    with pytest.raises(ValueError, match="has a handler already"):
        worker.task("t", "s")(print)
    replica = redis.sentinel.Sentinel([(HOST, 1)]).slave_for("m")
    with pytest.raises(ValueError, match="slave_for"):
        Worker(replica)


class Mute(Exception):
    def __str__(self):
        raise ValueError("no text")


@pytest.mark.parametrize("raised, kind, said", [
    (KeyError("x"), "failed", "KeyError: 'x'"),
    (Mute(), "failed", "Mute"),
    (Retry(60, OSError("away")), "failed", "OSError: away"),
    (Dead(OSError("gone")), "dead", "OSError: gone"),
    (SystemExit(3), "failed", "SystemExit: 3"),
    (KeyboardInterrupt(), "failed", "KeyboardInterrupt"),
    (Retry(60, "busy"), "failed", "busy"),
    (Retry(at=4e9), "failed", ""),
    (Dead("no use"), "dead", "no use"),
])
def test_exceptions(crew, work, messages, raised, kind, said):
    """Each of them ends the attempt, and none of them the worker."""
    worker = crew(jobs=1)

    @worker.task(work.key)
    def handler(job):
        if job.id == "a":
            raise raised

    work.put("a", "x", tries=2, backoff=(60,))
    with worker:
        wait_until(lambda: worker.counts != Counts())
        work.put("b", "x")
        wait_until(lambda: worker.counts.done == 1)
    task = work.get("a")
    assert task.error == said and worker.counts == Counts(done=1, failed=1, died=int(kind == "dead"))
    assert task.state == ("dead" if kind == "dead" else "waiting")
    if kind == "dead":
        assert task.next is None
    else:
        assert task.next == 4e9 if getattr(raised, "when", [""])[:1] == ["AT"] else task.next > time.time() - 60
    expected = isinstance(raised, (Retry, Dead))
    assert any(message.endswith("> failed") for message in messages()) is not expected


def test_each_result_is_told(crew, work, messages):
    """By on_end, before it is counted. An exception of on_end changes nothing."""
    told = []
    raised = {"fail": KeyError("x"), "die": Dead("no use"), "back": Back(60), "ok": None, "gone": None}

    def note(job, end, error):
        told.append((job.id, end, error))
        if end == "done":
            raise ZeroDivisionError

    worker = crew(jobs=1, on_end=note)

    @worker.task(work.key)
    def handler(job):
        if job.id == "gone":
            work.cancel("gone")
        if raised[job.id] is not None:
            raise raised[job.id]

    for id in raised:
        work.put(id, "x", backoff=(60,))
    with worker:
        wait_until(lambda: worker.counts == Counts(done=1, failed=2, died=1, back=1, not_yours=1))
    assert sorted(told, key=str) == sorted([("fail", "failed", raised["fail"]), ("die", "died", raised["die"]),
                                            ("back", "back", None), ("ok", "done", None),
                                            ("gone", "not_yours", None)], key=str)
    assert f"<Job {work.key} die attempt 1> is dead: Dead: no use" in messages()
    assert sum(message.startswith("on_end failed") for message in messages()) == 1
    for wrong in (5, asyncio.sleep):
        with pytest.raises(TypeError, match="on_end is .*: expected a function, which is not awaited"):
            crew(on_end=wrong)


def test_a_task_that_comes_too_early_is_given_back(crew, work):
    with pytest.raises(ValueError, match="expected one of them"):
        Back()
    worker = crew(jobs=1)

    @worker.task(work.key)
    def handler(job):
        raise Back(at=4e9) if job.id == "at" else Back(60)

    work.put("at", "x", tries=1)
    work.put("in", "x", tries=1)
    with worker:
        wait_until(lambda: worker.counts == Counts(back=2))
    assert work.get("at").next == 4e9 and work.get("in").next > time.time() - 60
    assert {(work.get(id).state, work.get(id).attempt, work.get(id).error) for id in ("at", "in")} == {
        ("waiting", 0, "")}


def test_a_retry_of_an_error_has_its_reason(crew, work):
    worker = crew()

    @worker.task(work.key)
    def handler(job):
        try:
            raise OSError("away")
        except OSError as error:
            raise Retry(60) from error

    work.put("a", "x")
    with worker:
        wait_until(lambda: worker.counts.failed == 1)
    assert work.get("a").error == "OSError: away"


SOON_S, NEVER_S = 0.05, 0


def test_a_time_limit(crew, work, messages):
    """The attempt has failed when it is over, and the handler sees it. It has its place until it returns."""
    worker, seen, go = crew(jobs=1, lease=10**6), [], threading.Event()

    @worker.task(work.key, timeout=SOON_S)
    def handler(job):
        seen.append((job.wait(PATIENCE), job.over, job.not_yours))
        go.wait(PATIENCE)

    with pytest.raises(ValueError, match="timeout is 0: expected 0.001"):
        worker.add(handler, "other", timeout=NEVER_S)
    work.put("a", "x", tries=2, backoff=(60,))
    work.put("b", "x", delay=60, backoff=(60,))
    with worker:
        wait_until(lambda: worker.counts == Counts(failed=1) and seen)
        task = work.get("a")
        assert (task.state, task.error) == ("waiting", "TimeoutError: the time limit of 0.05 s is over")
        work.move("b", delay=0)
        go.set()
        wait_until(lambda: worker.counts == Counts(failed=2))
    assert seen == [(True, True, False)] * 2 and work.get("a").attempt == 1
    assert sum("its time limit is over" in message for message in messages()) == 2


def test_a_time_limit_and_the_end_of_the_grace(crew, work, monkeypatch):
    """A handler that has not returned after its limit keeps the worker no longer than its grace."""
    monkeypatch.setattr("tickwheel.worker.PATIENCE", 3600)
    worker, go = crew(jobs=1, lease=10**6, grace=0.05), threading.Event()
    worker.add(lambda job: go.wait(PATIENCE), work.key, timeout=SOON_S)
    work.put("a", "x", backoff=(60,))
    worker.start()
    wait_until(lambda: worker.counts == Counts(failed=1))
    worker.stop()
    assert worker.join(PATIENCE) == Counts(failed=1) and worker._running
    go.set()


@pytest.fixture
def failing(monkeypatch):
    """Lets a command of a worker that has started fail. Returns the list of these calls."""
    def one(worker, command, error):
        link, calls = worker._groups[0].link, []
        call = link.call

        def fail(words):
            if words[0] == command:
                calls.append(words)
                raise error
            return call(words)

        monkeypatch.setattr(link, "call", fail)
        return calls
    return one


def test_a_time_limit_that_cannot_be_told_and_the_end_of_the_grace(crew, work, failing):
    """A bug: the worker tried to tell it for ever, if the handler had returned."""
    worker = crew(jobs=1, lease=10**6, grace=0.05)
    worker.add(lambda job: job.wait(PATIENCE), work.key, timeout=SOON_S)
    worker.start()
    answers = failing(worker, "TW.NACK", OSError("away"))
    work.put("a", "x")
    wait_until(lambda: answers and not worker._running)
    worker.stop()
    assert worker.join(PATIENCE) == Counts(not_yours=1) and answers


def test_a_time_limit_begins_with_the_handler(crew, work, monkeypatch):
    """A bug: it began with the take, and the attempt of a task whose handler was never called failed."""
    worker, limits = crew(jobs=1, lease=10**6), []
    worker.add(lambda job: None, work.key, timeout=PATIENCE)
    begin = worker._begin

    def stopping(group, taken, unused):
        worker.stop()
        begin(group, taken, unused)
        limits.extend(job._limit_at for job in taken)

    monkeypatch.setattr(worker, "_begin", stopping)
    work.put("a", "x", at=1)
    ready(work, "a")
    worker.start()
    assert worker.join(PATIENCE) == Counts(back=1) and limits == [float("inf")]


@pytest.mark.parametrize("error", [OSError("away"), ZeroDivisionError("away")], ids=["for a while", "for good"])
def test_heartbeats_that_fail_are_told_once(crew, work, messages, failing, error):
    """A bug: the log got a line for each of them, ten a second."""
    worker = crew(jobs=1, lease=60)
    worker._settings.lease_s = 0.3  # A heartbeat each 0.1 s. The lease lasts.
    worker.add(lambda job: wait_until(lambda: len(beats) >= 5), work.key)
    worker.start()
    beats = failing(worker, "TW.TOUCH", error)
    work.put("a", "x")
    wait_until(lambda: worker.counts == Counts(done=1))
    worker.stop()
    with contextlib.suppress(WorkerError):
        worker.join(PATIENCE)
    assert (worker._error is None) == isinstance(error, OSError)
    assert sum("away" in message for message in messages()) == 1
    worker._started = False


def test_news_are_news_again_after_a_while(monkeypatch):
    news, clock = _errors.News(), [1000.0]
    monkeypatch.setattr(_errors.time, "monotonic", lambda: clock[0])
    assert [news.has(text) for text in ("a", "b", "a", "b")] == [True, True, False, False]
    clock[0] += news.again_s
    assert news.has("a") and not news.has("a") and list(news.told) == ["a"]


def test_news_of_one_thread_do_not_disturb_another():
    """A bug: a thread of heartbeats could end because the dict that it went over had changed."""
    class Seen(_errors.News):
        def __setattr__(self, name, value):
            dicts.append((value, dict(value)))
            super().__setattr__(name, value)

    dicts = []
    news = Seen()
    assert [news.has(text) for text in ("a", "b", "a")] == [True, True, False]
    assert len(dicts) == 3 and all(told == at_first for told, at_first in dicts)


def test_a_handler_may_stop_its_worker(crew, work):
    """run() in a thread that is not the main one sets no signal handlers, and ends by stop()."""
    worker, counts = crew(grace=None), []
    worker.add(lambda job: worker.stop(), work.key)
    thread = threading.Thread(target=lambda: counts.append(worker.run()))
    thread.start()
    work.put("a", "x")
    thread.join(PATIENCE)
    assert counts == [Counts(done=1)]


def test_a_thread_that_does_not_end_is_left_alone(crew, work):
    """After the grace the task goes back, and the handler sees it. Its late result changes nothing."""
    worker, seen, began, go = crew(grace=0.05, lease=30), [], threading.Event(), threading.Event()

    @worker.task(work.key)
    def handler(job):
        began.set()
        seen.append((job.wait(PATIENCE), job.over, job.not_yours))
        go.wait(PATIENCE)

    work.put("a", "x")
    worker.start()
    assert began.wait(PATIENCE)
    worker.stop()
    assert worker.join(PATIENCE) == Counts(back=1)
    assert work.get("a").state == "ready"
    wait_until(lambda: seen)
    go.set()
    assert seen == [(True, True, False)] and work.get("a").attempt == 0 and worker.counts == Counts(back=1)
    with pytest.raises(TimeoutError):
        idle = crew()
        idle.add(print, "idle")
        idle.start()
        idle.join(timeout=-1)


def beyond(server, queue, limit):
    """A worker waits for a task for longer than its client waits for replies."""
    client = client_of(server, socket_timeout=limit, max_connections=1, decode_responses=True)
    worker, work = Worker(client), Queue(client, queue)
    worker.add(lambda job: None, queue)
    work.put("a", "x", delay=limit + 1)
    with worker:
        emptied(work)
    client.connection_pool.disconnect()


def test_the_client_keeps_its_own_connections(common, queue, messages, caplog):
    """Its short time limit is not that of a TW.TAKE that waits, and its pool may be full."""
    for limit in LIMITS:
        caplog.clear()
        with contextlib.suppress(redis.TimeoutError):
            beyond(common, queue, limit)
            if len(messages()) == 2:
                break
    said = messages()
    assert said[0].startswith("ready; ") and said[-1].startswith("stopped; Counts(done=1") and len(said) == 2


@at_server
def test_an_error_that_stays_ends_the_worker(crew, work, messages):
    worker = crew()
    worker.add(print, work.key)
    work.client.set(work.key, "no queue")
    with pytest.raises(WorkerError, match=f"TW.TAKE {work.key}: WRONGTYPE.*no queue") as error:
        worker.run(signals=False)
    assert isinstance(error.value.__cause__, redis.ResponseError)
    assert any("WRONGTYPE" in message for message in messages())
    worker._started = False


def test_the_threads_end_with_the_worker(crew, work):
    worker = crew(jobs=3)
    worker.add(lambda job: None, work.key)
    with worker:
        for number in range(6):
            work.put(f"t{number}", "x")
        emptied(work)
        names = {thread.name for thread in threading.enumerate()}
        assert {"tickwheel-take", "tickwheel-beat", "tickwheel-stop", "tickwheel-job-1"} <= names
    wait_until(lambda: not [one for one in threading.enumerate() if one.name.startswith("tickwheel")])


# A handler that acknowledges its job itself

SUM = "return {redis.call('INCRBY', KEYS[1], ARGV[1]), KEYS[1], ARGV[2], false}"


@at_server
def test_a_script_has_its_own_keys_arguments_and_reply(crew, work, messages):
    worker, seen = crew(jobs=1), []
    bad = [("return 1", "k", ()), ("return 1", [5], ()), ("return 1", [], [True]), (5, [], ()),
           ("#!lua\nreturn 1", [], ())]

    @worker.task(work.key, timeout=PATIENCE)
    def handler(job):
        for script, keys, args in bad:
            with pytest.raises((TypeError, ValueError), match="expected"):
                job.ack_then(script, keys, args)
        with pytest.raises(TypeError, match="the home of <Job .* is a server: expected job.ack_then"):
            job.ack_on(sqlite3.connect(":memory:"))
        with pytest.raises(TickwheelError, match="user_script"):
            job.ack_then("return 1\n\nno Lua at all")
        beating = [job in job._group.beating]
        reply = job.ack_then(SUM, [work.key + ":n"], [5, b"\xff"]) if job.id == "a" else job.ack_then("")
        beating.append(job in job._group.beating)
        with pytest.raises(RuntimeError, match="was acknowledged before: expected one"):
            job.ack_then("return 1")
        seen.append((reply, beating, work.get(job.id), worker.counts.done))
        raise Retry(60)

    work.put("a", "x")
    work.put("b", "x")
    with worker:
        wait_until(lambda: sum(worker.counts) == 2)
    assert worker.counts == Counts(done=2) and work.count() == 0
    assert seen == [([5, (work.key + ":n").encode(), b"\xff", None], [True, False], None, 1),
                    (None, [True, False], None, 2)]
    assert sum("failed after the acknowledgement" in message for message in messages()) == 2
    with pytest.raises(RuntimeError, match="belongs to no worker"):
        _tasks.Job("q", "a", "t", 0, 1, ()).ack_then("return 1")


@at_server
def test_a_script_of_a_task_that_is_not_yours(crew, work):
    worker, seen = crew(jobs=1), []

    @worker.task(work.key)
    def handler(job):
        work.cancel(job.id)
        for _ in range(2):
            with pytest.raises(tickwheel.NotYours, match=f"'a' in '{work.key}' is not yours any more") as error:
                job.ack_then(SUM, [work.key + ":n"], [1, ""])
            seen.append((job.not_yours, type(error.value)))
        raise error.value

    work.put("a", "x")
    with worker:
        wait_until(lambda: worker.counts == Counts(not_yours=1))
    assert seen == [(True, tickwheel.NotYours)] * 2 and not work.client.exists(work.key + ":n")


@at_server
def test_heartbeats_end_with_the_acknowledgement(crew, work, messages, monkeypatch):
    worker, beats, seen = crew(jobs=2, lease=60), [], []
    worker._settings.lease_s = 0.3  # A heartbeat each 0.1 s. The leases last.

    @worker.task(work.key)
    def handler(job):
        if job.id == "a":
            job.ack_then("return 1")
            seen.append(beats.count(b"a"))
            wait_until(lambda: beats.count(b"b") >= 3)
            seen.append(beats.count(b"a"))
        wait_until(lambda: len(seen) == 2)

    worker.start()
    link = worker._groups[0].link
    call = link.call

    def noting(words):
        if words[0] == "TW.TOUCH":
            beats.append(words[2])
        return call(words)

    monkeypatch.setattr(link, "call", noting)
    work.put("a", "x")
    work.put("b", "x")
    wait_until(lambda: worker.counts == Counts(done=2))
    assert len(seen) == 2 and seen[0] == seen[1]
    assert not any("failed" in message or "not yours" in message for message in messages()[:-1])


@at_server
def test_a_handler_that_goes_on_after_its_acknowledgement_and_the_end_of_the_grace(crew, work, monkeypatch):
    """It sees that the worker ends, and its job is done."""
    monkeypatch.setattr("tickwheel.worker.PATIENCE", 3600)
    worker, seen, go = crew(jobs=1, grace=0.05), [], threading.Event()

    @worker.task(work.key)
    def handler(job):
        job.ack_then("return 1")
        go.set()
        seen.append((job.wait(PATIENCE), job.over, job.not_yours))

    work.put("a", "x")
    worker.start()
    assert go.wait(PATIENCE)
    worker.stop()
    assert worker.join(PATIENCE) == Counts(done=1)
    wait_until(lambda: seen == [(True, True, False)])


@at_server
def test_a_script_without_a_reply_until_the_worker_gives_up(crew, work, monkeypatch):
    worker, seen, tried = crew(jobs=1, lease=60), [], threading.Event()

    @worker.task(work.key)
    def handler(job):
        with pytest.raises(tickwheel.ReplyLost, match="given up without a reply.*run once or not at all"):
            job.ack_then("return 1")
        seen.append(job.id)

    worker.start()
    link = worker._groups[0].link
    call = link.call

    def failing(words):
        if words[0] == "EVAL":
            tried.set()
            raise OSError("away")
        return call(words)

    monkeypatch.setattr(link, "call", failing)
    work.put("a", "x")
    assert tried.wait(PATIENCE)
    worker.give_up()
    counts = worker.join(PATIENCE)
    wait_until(lambda: seen == ["a"])
    assert counts.done == 0 and work.count() == 1


@at_server
def test_a_thread_of_the_handler_acknowledges_its_job(crew, work, monkeypatch):
    """A handler that returns meanwhile waits for the answer. Here it is an error: the job is done as usual."""
    worker, seen = crew(jobs=1, lease=60), []
    began, finishing, go = threading.Event(), threading.Event(), threading.Event()

    def acknowledge(job):
        try:
            job.ack_then("no Lua")
        except TickwheelError as error:
            seen.append(str(error))

    @worker.task(work.key)
    def handler(job):
        threading.Thread(target=acknowledge, args=(job,)).start()
        assert began.wait(PATIENCE)

    worker.start()
    link = worker._groups[0].link
    call = link.call

    def late(words):
        if words[0] == "EVAL":
            began.set()
            assert go.wait(PATIENCE)
        return call(words)

    monkeypatch.setattr(link, "call", late)
    finish = worker._finish
    monkeypatch.setattr(worker, "_finish", lambda *words: (finishing.set(), finish(*words)))
    work.put("a", "x")
    assert began.wait(PATIENCE)
    assert finishing.wait(PATIENCE)
    go.set()
    wait_until(lambda: worker.counts == Counts(done=1))
    assert len(seen) == 1 and work.count() == 0


KILLED = """
import contextlib, os, signal, sqlite3, sys, tickwheel

worker = tickwheel.Worker(tickwheel.connect("sqlite:///" + sys.argv[1]), jobs=1, lease=0.5)

@worker.task(sys.argv[2])
def handler(job):
    with contextlib.closing(sqlite3.connect(sys.argv[1])) as db, job.ack_on(db):
        db.execute("INSERT INTO effects VALUES (?)", (job.id,))
        if job.id == "t3":
            os.kill(os.getpid(), signal.SIGKILL)

worker.run()
"""


@in_file
def test_the_acknowledgement_in_a_transaction_of_the_handler(crew, work, messages):
    """The rows of its block and the end of its job are committed together, or not at all."""
    worker, path = crew(jobs=1, lease=60), work.client.path
    new_effects(path)

    @worker.task(work.key)
    def handler(job):
        if job.id == "server":
            job.ack_then("return 1")  # The home is a file.
        act(job, path)

    for id in names():
        work.put(id, "x", backoff=(60,))
    with worker:
        wait_until(lambda: sum(worker.counts) == len(names()))
    judge(path, worker.counts, {id: work.get(id).error for id, *_ in work.scan()})
    assert work.get("server").error.startswith("TypeError: the home of <Job")
    assert sum("failed after the acknowledgement" in message for message in messages()) == 2


@in_file
def test_heartbeats_during_a_transaction_of_a_handler(client, work, messages):
    """They find the file locked, which ends neither the worker nor a job."""
    worker, began = Worker(tickwheel.File(client.path, 0), lease=60, jobs=2), threading.Event()
    new_effects(client.path)

    def locked():
        return any(one.startswith("heartbeat of") and "database is locked" in one for one in messages())

    @worker.task(work.key)
    def handler(job):
        if job.id == "b":
            began.set()
            wait_until(lambda: worker.counts.done == 1)
            return
        assert began.wait(PATIENCE)
        with contextlib.closing(sqlite3.connect(client.path)) as db, job.ack_on(db):
            note(db, job)
            wait_until(locked)

    work.put("b", "x")
    work.put("a", "x")
    with worker:
        worker._settings.lease_s = 0.3  # A heartbeat each 0.1 s. The leases last.
        wait_until(lambda: worker.counts == Counts(done=2))
    assert effects_of(client.path) == ["a"]


@in_file
def test_an_effect_in_a_file_happens_once_although_its_worker_dies(client, work):
    worker, ids = Worker(client, lease=60), [f"t{number}" for number in range(6)]
    new_effects(client.path)

    @worker.task(work.key)
    def handler(job):
        with contextlib.closing(sqlite3.connect(client.path)) as db, job.ack_on(db):
            note(db, job)

    for id in ids:
        work.put(id, "x", backoff=Backoff(0.001, 1, 0.001))
    died = subprocess.run([sys.executable, "-c", KILLED, client.path, work.key], cwd=PACKAGE, timeout=PATIENCE,
                          check=False)
    assert died.returncode == -signal.SIGKILL and effects_of(client.path) == ids[:3]
    with worker:
        emptied(work)
    assert effects_of(client.path) == ids


# A file

@in_file
def test_a_file_that_lacks_its_views_ends_the_worker(crew, work):
    worker, db = crew(), sqlite3.connect(work.client.path)
    worker.add(print, work.key)
    db.execute("DROP VIEW tw_take")
    db.close()
    with pytest.raises(WorkerError, match=f"TW.TAKE {work.key}: no such table: tw_take"):
        worker.run(signals=False)
    worker._started = False


@in_file
def test_a_file_that_others_write_for_long(client, work, messages):
    """The worker takes, and tells its result, when they have finished."""
    worker, began, go = Worker(tickwheel.File(client.path, 0)), threading.Event(), threading.Event()
    other = sqlite3.connect(client.path, isolation_level=None)

    @worker.task(work.key)
    def handler(job):
        began.set()
        go.wait(PATIENCE)

    def told(count):
        wait_until(lambda: sum("database is locked; tries again" in one for one in messages()) >= count)

    work.put("a", "x")
    other.execute("BEGIN IMMEDIATE")
    with worker:
        told(1)
        other.execute("COMMIT")
        assert began.wait(PATIENCE)
        other.execute("BEGIN IMMEDIATE")
        go.set()
        told(2)
        other.execute("COMMIT")
        emptied(work)
    assert worker.counts == Counts(done=1)
    other.close()


@in_file
def test_a_file_without_tables(client, tmp_path, monkeypatch):
    monkeypatch.setattr(tickwheel._file, "EXTENSION", "no_such_extension")
    with pytest.raises(TickwheelError, match="`tickwheel put --store FILE </dev/null` does"):
        tickwheel.connect(f"sqlite:///{tmp_path}/new.db")
    monkeypatch.setattr(tickwheel._file, "EXTENSION", os.path.join(os.path.dirname(command()[0]), EXTENSION))
    assert Queue(tickwheel.connect(f"sqlite:///{tmp_path}/new.db"), "q").put("a", "x") == "a"


@in_file
@pytest.mark.parametrize("end", ["", "-wal", "-shm"])
@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_file_that_is_lost_acknowledges_nothing(work, crew, end, how):
    """The call of each thread fails, also of a new one, and a worker ends. No new file is made."""
    worker, path, errors = crew(), work.client.path, []
    worker.add(print, work.key)
    worker.start()
    work.put("first", "x")
    emptied(work)  # Its threads have opened the file.
    work.put("a", "x", delay=60)
    if how == "replaced":  # At once: a worker looks at any moment.
        shutil.copy(path + end, path + ".new")
        os.replace(path + ".new", path + end)
    else:
        os.rename(path + end, path + ".old")

    def put():
        with pytest.raises(TickwheelError, match=f"{end} was {how} while it was open") as said:
            work.put("b", "x")
        errors.append(said)

    put()
    other = threading.Thread(target=put)
    other.start()
    other.join(PATIENCE)
    assert len(errors) == 2 and os.path.exists(path + end) == (how == "replaced")
    with pytest.raises(WorkerError, match=f"TW.TAKE {work.key}: .* was {how}"):
        worker.join(PATIENCE)
    worker._started = False


@in_file
@pytest.mark.parametrize("how", ["closed", "ended"])
def test_a_file_is_used_after_its_last_connection(client, tmp_path, how):
    """A past fault: with the last connection SQLite removes the log, as it should. From then on each call
    failed, because the log "was removed while it was open". The connection of a thread that has ended is closed
    when Python collects it."""
    url, made = f"sqlite:///{tmp_path}/new.db", []

    def use():
        made.append(Queue(tickwheel.connect(url), "q"))
        made[0].put("a", "x", delay=60)
        if how == "closed":
            made[0].client.close()

    subprocess.run([command()[0], "put", "--store", f"{tmp_path}/new.db", "--quiet"], input="", text=True,
                   timeout=PATIENCE, check=True)
    thread = threading.Thread(target=use)
    thread.start()
    thread.join(PATIENCE)
    wait_until(lambda: gc.collect() >= 0 and not os.path.exists(f"{tmp_path}/new.db-wal"))
    assert made[0].put("b", "x", delay=60) == "b"
    os.unlink(f"{tmp_path}/new.db-wal")  # It is known anew.
    with pytest.raises(TickwheelError, match="-wal was removed while it was open"):
        made[0].put("c", "x", delay=60)


@in_file
@pytest.mark.parametrize("call", ["put", "open"])
@pytest.mark.parametrize("meanwhile", [False, True])
def test_a_file_that_was_moved_keeps_its_log(work, tmp_path, monkeypatch, call, meanwhile):
    """No connection reads the file that is at the path then: SQLite would remove the log, or take it for that
    of the new file. The file is moved before a thread connects to it, or while it does."""
    path, old, connect, said = work.client.path, f"{tmp_path}/old.db", sqlite3.connect, []
    work.put("a", "x", delay=60)

    def move(*words, **more):
        monkeypatch.setattr(sqlite3, "connect", connect)
        os.rename(path, old)
        if meanwhile:
            open(path, "w", encoding="utf-8").close()
        return connect(*words, **more)

    def act():
        with pytest.raises(TickwheelError) as told:
            if call == "put":
                work.put("b", "x")
            else:
                tickwheel.File(path)
        said.append(str(told.value))

    if meanwhile:
        monkeypatch.setattr(sqlite3, "connect", move)
    else:
        os.rename(path, old)
    thread = threading.Thread(target=act)
    thread.start()
    thread.join(PATIENCE)
    assert re.search("while it was open|is the log of a file that is not here any more", said[0])
    assert meanwhile or not os.path.exists(path)
    for end in ("-wal", "-shm"):
        os.rename(path + end, old + end)
    with contextlib.closing(sqlite3.connect(old)) as db:
        assert db.execute("SELECT CAST(id AS TEXT) FROM tw_task").fetchall() == [("a",)]


@in_file
def test_a_file_that_moves_while_a_call_waits_acknowledges_nothing(work, monkeypatch):
    """A bug: the place of the file was checked before the wait for those who write, which may be long."""
    path, db = work.client.path, work.client._db()

    class Waiting:
        """A connection whose file moves away while it waits."""
        def __getattr__(self, name):
            return getattr(db, name)

        def execute(self, statement, *values):
            if statement == "BEGIN IMMEDIATE":
                os.rename(path, path + ".old")
            return db.execute(statement, *values)

    with monkeypatch.context() as patch:
        patch.setattr(work.client._own, "connection", Waiting())
        with pytest.raises(TickwheelError, match="was removed while it was open"):
            work.put("a", "x")
    os.rename(path + ".old", path)
    assert work.count() == 0


@in_file
def test_a_child_of_a_fork_does_not_use_the_file(work):
    """SQLite holds no locks there. This is so for a client that the child makes."""
    code = ("import os, sys, tickwheel\nhome = tickwheel.connect(sys.argv[1])\n"
            "if os.fork():\n    os._exit(0)\n"
            "for one in (lambda: home, lambda: tickwheel.connect(sys.argv[1])):\n"
            "    try:\n        tickwheel.Queue(one(), 'q').put('a', 'x')\n"
            "    except Exception as error:\n        print(error)\n")
    done = subprocess.run([sys.executable, "-uc", code, f"sqlite:///{work.client.path}"], capture_output=True,
                          text=True, cwd=PACKAGE, timeout=PATIENCE, check=False)
    assert done.stdout.count("was opened by the parent of this process") == 2, done


@in_file
def test_a_backup_of_another_format_is_refused_by_each_call(work):
    """Also over the caller's connection. Nothing changes."""
    db = sqlite3.connect(work.client.path, isolation_level=None)
    mine = work.on(db)
    for id in ("a", "b"):
        work.put(id, "x")
    job = take(work)["a"]
    db.execute("UPDATE tw_meta SET format = 2")

    def refused(call):
        said = "^format is 2: expected 1; the version that wrote it can read it$"
        with pytest.raises((WrongFormat, sqlite3.OperationalError), match=said):
            call()
        assert not db.in_transaction

    for one in (work, mine):
        for call in (lambda: one.put("a", "y"), lambda: one.move("b", delay=5), lambda: one.cancel("b"),
                     lambda: one.get("a"), one.count, one.next, one.dead, lambda: list(one.scan()),
                     one.purge_all, one.replay_all, lambda: take(one),
                     lambda: one.client.execute_command("TW.ACK", work.key, "a", job.token)):
            refused(call)
    refused(lambda: work.on(db))
    refused(lambda: tickwheel.File(work.client.path))
    db.execute("UPDATE tw_meta SET format = 1")
    assert (work.count(), work.get("a").attempt, work.get("b").attempt, work.get("a").text) == (2, 1, 0, "x")
    db.close()


def test_a_file_from_before_the_first_release_is_refused(tmp_path):
    db = sqlite3.connect(tmp_path / "old.db", isolation_level=None)
    db.execute("CREATE TABLE tw_meta(name TEXT, value)")
    db.execute("INSERT INTO tw_meta VALUES ('version', 3)")
    db.close()
    with pytest.raises(WrongFormat, match="^format is 0: expected 1; the version that wrote it"):
        tickwheel.connect(f"sqlite:///{tmp_path}/old.db")


@in_file
def test_no_call_asks_for_the_times_of_the_file(work, monkeypatch):
    """Since Linux 6.13 that makes the next commit slower. If statx() is refused, os.stat() finds the same."""
    path, status = work.client.path, os.stat(work.client.path)

    def stat(name):
        raise AssertionError(f"{name} was asked for its times")

    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", stat)
        work.put("a", "x", delay=60)
        assert work.get("a").text == "x" and _file.place_of(path) == (status.st_dev, status.st_ino)
    monkeypatch.setattr(_file, "STATX", lambda *_: -1)
    assert _file.place_of(path) == (status.st_dev, status.st_ino) and _file.place_of(path + "-none") is None


def test_a_python_without_ctypes_knows_the_files_too(tmp_path, monkeypatch):
    """A bug: it could not import the package."""
    spec = importlib.util.spec_from_file_location("tickwheel._file_alone", _file.__file__)
    alone = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "ctypes", None)
    spec.loader.exec_module(alone)
    assert alone.STATX is None and alone.place_of(str(tmp_path)) == _file.place_of(str(tmp_path))


@in_file
def test_a_take_passes_over_a_thousand_tasks_and_the_next_one_goes_on(work):
    db = sqlite3.connect(work.client.path)
    mine = work.on(db)
    for number in range(1001):
        mine.put(f"late{number}", "x", at=1, max_late=1)
    mine.put("a", "x")
    db.commit()
    db.close()
    assert work.client.execute_command("TW.TAKE", 1, work.key, "LEASE", 60000) == [] and work.count() == 2
    assert list(take(work)) == ["a"] and work.count() == 1


@pytest.mark.parametrize("size", [0, 1025])
def test_an_id_out_of_its_range_is_an_error_of_each_verb(work, size):
    """A bug: in a file a look, a move and a purge found no such task."""
    verbs = [work.get, work.cancel, work.promote, work.replay, work.purge, lambda id: work.move(id, delay=1)]
    for verb in verbs:
        with pytest.raises(WrongArgument, match="id.*expected"):
            verb("x" * size)
        verb("x" * 1024)


def test_a_take_of_several_queues_empties_the_first(work):
    other = Queue(work.client, f"{work.key}:other")
    for id in "ab":
        other.put(id, "x", at=1)
        work.put(id, "x", at=1)
    ready(other, "a", "b")
    ready(work, "a", "b")
    keys = [f"{work.key}:none", work.key, other.key]
    raw = work.client.execute_command(*_words.take_words(60000, 3, 5000, "me", keys), NEVER_DECODE=True)
    assert [(job.queue, job.id) for job in tickwheel._tasks.jobs(raw)] == [
        (work.key, "a"), (work.key, "b"), (other.key, "a")]
    assert list(take(other)) == ["b"]


@in_file
def test_the_file_itself_says_what_time_it_is(work, monkeypatch):
    """A bug: a task was replayed for the next millisecond, next() missed one that had to wait for it, and a
    touch told another end of the lease than a look."""
    kill(work, "a")
    work.put("b", "x", delay=60)
    work.put("c", "x", at=1)
    job = take(work)["c"]
    monkeypatch.setattr(_file, "now_ms", lambda: now_ms() + 3600000)
    assert work.replay("a") and work.get("a").state == "ready" and work.next()[0] == "b"
    end_ms = work.client.execute_command("TW.TOUCH", work.key, "c", job.token, "LEASE", 60000)
    assert end_ms / 1000 == work.get("c").next


@in_file
def test_a_folder_that_the_process_leaves(work, monkeypatch, tmp_path_factory):
    monkeypatch.chdir(os.path.dirname(work.client.path))
    here = Queue(tickwheel.File(os.path.basename(work.client.path)), work.key)
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    thread = threading.Thread(target=here.put, args=("a", "x"))
    thread.start()
    thread.join(PATIENCE)
    assert work.get("a").text == "x" and not os.listdir()


@in_file
@pytest.mark.parametrize("level", [None, "", "IMMEDIATE"])
def test_a_call_within_a_transaction_is_done_whole_or_not_at_all(work, level):
    """Also where the caller has rows and texts of its own kind."""
    db = sqlite3.connect(work.client.path, isolation_level=level)
    db.row_factory, db.text_factory = (lambda *_: "row"), bytes
    mine = work.on(db)
    mine.put("a", "x", delay=60)
    with pytest.raises(WrongArgument, match="^id: expected"):
        mine.cancel("a", "x" * 2000)
    db.commit()
    assert work.get("a").state == mine.get("a").state == "waiting" and mine.next()[0] == "a"
    assert [id for id, *_ in mine.scan()] == ["a"] and mine.move("a", delay=50) and mine.cancel("a") == [1]
    db.commit()
    assert work.get("a") is None
    db.close()


@in_file
def test_a_lease_that_has_run_out_ends_at_a_call(work):
    work.put("b", "x")
    assert list(take(work)) == ["b"]
    work.put("a", "x", at=1)
    work.put("c", "x", at=1)
    assert len(work.client.execute_command(*_words.take_words(1, 2, 5000, "me", [work.key]))) == 2
    wait_until(lambda: work.get("a").next + 0.001 < time.time())
    assert work.get("a").state == "leased" and work.cancel("a", "b") == [1, 2]
    assert work.get("c").state == "leased" and work.promote_all() == 1
    assert (work.get("c").state, work.get("c").lapses) == ("ready", 1)


@in_file
def test_a_page_of_promoted_tasks(work, monkeypatch):
    """The earliest first, in their order."""
    monkeypatch.setattr("tickwheel._file.PAGE", 3)
    for number in range(5):
        work.put(f"t{number}", "x", at=4e9 - number)
    assert work.promote_all() == 3 and work.get("t1").state == "waiting"
    assert list(take(work, 5)) == ["t4", "t3", "t2"]
    assert [work.promote_all(), work.promote_all()] == [2, 0]


@in_file
def test_a_page_of_leases_that_die_is_not_the_last_one_of_a_promote(work, monkeypatch):
    """A bug: its reply was 0, which says that no task waits."""
    monkeypatch.setattr("tickwheel._file.PAGE", 3)
    for number in range(6):
        work.put(f"t{number}", "x")
    assert len(work.client.execute_command(*_words.take_words(1, 6, 5000, "me", [work.key]))) == 6
    db = sqlite3.connect(work.client.path)
    db.execute("UPDATE tw_task SET lapses = 16")
    db.commit()
    db.close()
    work.put("later", "x", delay=60)
    wait_until(lambda: work.get("t0").next + 0.001 < time.time())
    assert work.promote_all() == 1 and work.get("later").state == "ready" and len(work.dead(9)) == 6
    assert work.promote_all() == 0


@in_file
def test_a_task_that_is_too_late_hides_none(work):
    work.put("late", "x", at=1, max_late=1)
    work.put("a", "x")
    assert list(take(work)) == ["a"] and work.get("late") is None


@in_file
@pytest.mark.parametrize("first, second", [("python", "asyncio"), ("asyncio", "python")])
def test_processes_share_a_file(work, tmp_path, first, second):
    """With threads and with asyncio. A job of one that is killed goes to the other, and one that is stopped
    gives its job back."""
    url = f"sqlite:///{work.client.path}"
    crew = [Subject(first, work.key, url=url, lease=400, jobs=1)]
    try:
        work.put("a", f"until {tmp_path / 'go'}", backoff=Backoff(0.001, 1, 0.001))
        crew[0].wait("begin", work.key, "a", 1)
        crew.append(Subject(second, work.key, url=url, lease=60000, jobs=1))
        crew[1].wait("ready")
        crew[0].kill()
        crew[1].wait("begin", work.key, "a")
        lapses = work.get("a").lapses
        assert lapses == work.get("a").attempt - 1 and lapses >= 1
        release(tmp_path / "go")
        emptied(work)
        work.put("b", f"until {tmp_path / 'never'}")
        crew[1].wait("begin", work.key, "b", 1)
        crew[1].send(signal.SIGTERM)
        crew[1].send(signal.SIGINT)
        assert crew[1].counts() == {**NOTHING, "done": 1, "back": 1}
        assert (work.get("b").state, work.get("b").attempt) == ("ready", 0)
    finally:
        for subject in crew:
            subject.close()


# Addresses

@pytest.mark.parametrize("connect", [tickwheel.connect, tickwheel.aio.connect], ids=["threads", "asyncio"])
def test_addresses(connect):
    settings = connect("redis://u:p@h:7/3", socket_timeout=9).connection_pool.connection_kwargs
    assert {**settings, "host": "h", "port": 7, "db": 3, "username": "u", "password": "p",
            "socket_timeout": 9} == settings
    assert connect("unix:///tmp/s?db=2").connection_pool.connection_kwargs["path"] == "/tmp/s"
    assert "SSL" in connect("rediss://h").connection_pool.connection_class.__name__
    for scheme, name in (("redis", "SentinelManagedConnection"), ("rediss", "SentinelManagedSSLConnection")):
        pool = connect(f"{scheme}+sentinel://u:p%40@a:1,[::1],b/shop/3").connection_pool
        sentinels = [one.connection_pool.connection_kwargs for one in pool.sentinel_manager.sentinels]
        assert [(one["host"], one["port"]) for one in sentinels] == [("a", 1), ("::1", 26379), ("b", 26379)]
        assert pool.service_name == "shop" and pool.connection_class.__name__ == name
        assert {**pool.connection_kwargs, "db": 3, "username": "u", "password": "p@"} == pool.connection_kwargs
        assert all("username" not in one or one["username"] is None for one in sentinels)
    for url in ("amqp://h", "h:7", "redis+sentinel://a", "redis+sentinel:///s", "redis+sentinel://a/s/x",
                "sqlite://shop.db", "sqlite:///", "sqlite+x:///a", "sqlite:///a?b", "sqlite:///:memory:",
                "sqlite:///a%00"):
        with pytest.raises(ValueError, match="expected "):
            connect(url)
    with pytest.raises(TypeError, match="url is None: expected a str"):
        connect(None)


def test_a_cluster_of_asyncio_has_tls_or_is_refused():
    """A bug of redis-py before 4.4: with rediss:// it connected without TLS, and told nobody."""
    if tuple(map(int, redis.__version__.split(".")[:2])) < (4, 4):
        with pytest.raises(ValueError, match="redis-py is 4.*: expected 4.4 or later"):
            tickwheel.aio.connect("rediss+cluster://h:7")
    else:
        node = tickwheel.aio.connect("rediss+cluster://h:7").nodes_manager.startup_nodes["h:7"]
        assert "SSL" in node.connection_class.__name__


@pytest.mark.parametrize("make", [tickwheel.File, tickwheel.aio.File], ids=["threads", "asyncio"])
def test_a_path_that_is_no_file(make, tmp_path, monkeypatch):
    """SQLite says "unable to open database file", and no reason."""
    monkeypatch.chdir(tmp_path)
    deep = os.path.join(tmp_path, *["b" * 100] * 5, "x.db")
    os.makedirs(os.path.dirname(deep))
    size = len(deep)
    for path, said in ((deep, f"has {size} bytes from the root on: expected at most 504"),
                       ("b" * 300, "File name too long"),
                       ("gone/x.db", "expected a file in a folder that is there"),
                       (tmp_path, "expected a file, found a folder")):
        with pytest.raises(TickwheelError, match=f"^path .*{said}"):
            make(path)
    for path, timeout, error, said in ((b"x.db", 5, TypeError, "path is b'x.db': expected a str"),
                                       ("x.db", -1, ValueError, "timeout is -1: expected 0 to 2147483 seconds"),
                                       ("x.db", "5", TypeError, "timeout is '5': expected seconds")):
        with pytest.raises(error, match=said):
            make(path, timeout=timeout)
    assert os.listdir() == ["b" * 100]


@in_file
def test_the_longest_path_of_a_file(client, tmp_path):
    """SQLite takes a path of 504 bytes, and the log beside it."""
    folder = os.path.join(tmp_path, "b" * (200 - len(str(tmp_path))), "c" * 200)
    path = os.path.join(folder, "x" * (503 - len(folder)))
    os.makedirs(folder)
    shutil.copy(client.path, path)
    assert len(path) == 504 and Queue(tickwheel.File(pathlib.Path(path)), "q").put("a", "x") == "a"
    shutil.copy(client.path, path + "x")
    with pytest.raises(WrongArgument, match="path has 505 bytes from the root on"):
        tickwheel.File(path + "x")


# The package

NO_REDIS = """
import asyncio, sys

class Blocked:
    @staticmethod
    def find_spec(name, *_):
        if name.split(".")[0] == "redis":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked)
import tickwheel, tickwheel.aio

for way in (tickwheel, tickwheel.aio):
    for url in ("redis://h", "redis+cluster://h", "redis+sentinel://h/s"):
        try:
            way.connect(url)
        except ModuleNotFoundError as error:
            print(error)
home = tickwheel.connect(sys.argv[1])
tickwheel.Queue(home, "q").put("a", "x")
worker = tickwheel.Worker(home)
worker.add(lambda job: worker.stop(), "q")
print(worker.run())

async def main():
    home = tickwheel.aio.connect(sys.argv[1])
    await tickwheel.aio.Queue(home, "q").put("a", "x")
    worker = tickwheel.aio.Worker(home)

    @worker.task("q")
    async def handler(job):
        worker.stop()

    print(await worker.run())

asyncio.run(main())
"""


def test_a_file_needs_no_redis_py(tmp_path):
    done = subprocess.run([sys.executable, "-c", NO_REDIS, new_file(tmp_path)], capture_output=True, text=True,
                          cwd=PACKAGE, timeout=PATIENCE, check=False)
    said = done.stdout.splitlines()
    assert len(said) == 8 and all("install redis-py, Debian's python3-redis" in line for line in said[:6]), done
    assert said[6:] == [str(Counts(done=1))] * 2, done


def test_the_package_names_all_its_folders():
    """The wheel has the folders that pyproject.toml names, and the version of the tree."""
    with open(os.path.join(PACKAGE, "pyproject.toml"), "rb") as file:
        project = tomllib.load(file)
    folders = {os.path.relpath(folder, PACKAGE).replace(os.sep, ".") for folder, _, files in os.walk(PACKAGE)
               if "__init__.py" in files}
    assert set(project["tool"]["setuptools"]["packages"]) == folders
    assert project["project"]["version"] == tickwheel.__version__ == version()
    for page in ("docs/python.md", "clients/python/README.md"):
        with open(os.path.join(ROOT, page), encoding="utf-8") as file:
            assert "\npip install --no-build-isolation ./clients/python\n" in file.read()


@pytest.mark.long(only=True)
def test_the_package_installs(tmp_path):
    """pip, as python.md and README.md say, puts it into a virtual environment, without a network, with its
    types. It is imported from there."""
    source, venv = tmp_path / "source", tmp_path / "venv"
    shutil.copytree(PACKAGE, source, ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", "--without-pip", venv], check=True,
                   timeout=PATIENCE)
    python = venv / "bin" / "python"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([python, "-m", "pip", "install", "-q", "--no-build-isolation", "--no-index", source],
                          capture_output=True, text=True, check=False, env=environment, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    script = ("import importlib.metadata as m, os, tickwheel, tickwheel.aio as aio\n"
              "folder = os.path.dirname(tickwheel.__file__)\n"
              "print(folder, tickwheel.__version__ == m.version('tickwheel'), m.requires('tickwheel'),\n"
              "      os.path.exists(os.path.join(folder, 'py.typed')), aio.Worker.__module__)")
    said = subprocess.run([python, "-P", "-c", script], capture_output=True, text=True, check=True,
                          env=environment, timeout=PATIENCE)
    folder, rest = said.stdout.strip().split(" ", 1)
    assert folder.startswith(str(venv))
    assert rest == """True ["redis (>=4.3) ; extra == 'redis'"] True tickwheel.aio.worker"""
