# SPDX-License-Identifier: MIT
"""docs/recipes.md: this test runs the programs of each recipe, against a real server."""
import contextlib
import datetime
import pathlib
import re
import sys
import threading
import time
import zoneinfo

import pytest
import redis

from harness import PATIENCE, ROOT, now_ms, wait_until

sys.path.insert(0, str(pathlib.Path(ROOT, "clients", "python")))
import tickwheel  # noqa: E402  (the folder has to be on the path first)

PAGE = pathlib.Path(ROOT, "docs", "recipes.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEAD, *REST = re.split(r"^## (.*)\n", PAGE, flags=re.MULTILINE)
SECTIONS = dict(zip(REST[::2], REST[1::2]))
HOUR = 3600000
BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")


@pytest.fixture
def recipe(common):
    """recipe(NAME) returns the names that the blocks of a section define. The server has no data before."""
    common.client().flushall()
    clients = []

    def blocks_of(name):
        names = {}
        for block in BLOCK.findall(HEAD.replace("7379", str(common.port))) + BLOCK.findall(SECTIONS[name]):
            exec(block, names)  # pylint: disable=exec-used
        clients.append(names["client"])
        return names

    yield blocks_of
    for client in clients:
        client.close()


@contextlib.contextmanager
def worked_on(client, queue, handler, **settings):
    """A worker of one queue, in threads of its own."""
    worker = tickwheel.Worker(client, **{"jobs": 1, "lease": PATIENCE, **settings})
    worker.add(handler, queue.key)
    with worker:
        yield worker


def empty(queue):
    wait_until(lambda: queue.count() == 0)


def test_order_timeout(recipe):
    it = recipe("Order timeout")
    client = it["client"]
    with worked_on(client, it["orders"], it["expire"]):
        for number in (1, 2):
            it["place"](number, 0.1 if number == 1 else 30)
        it["pay"](2)
        empty(it["orders"])
    assert [client.hget(f"{{shop}}:order:{number}", "state") for number in (1, 2)] == [b"expired", b"paid"]
    client.hset("{shop}:order:1", "state", "paid")  # The customer paid while the job was on its way.
    it["expire"](tickwheel.Job("s", "order:1", "0" * 16, 0, 1, (b"1",)))
    assert client.hget("{shop}:order:1", "state") == b"paid"


def test_retry_with_backoff(recipe):
    it = recipe("Retry with backoff")
    mails = it["mails"]
    answers = {"a": [(429, {"Retry-After": "0.02"}), (200, {})], "b": [(404, {})], "c": [(500, {})]}
    it["remind"]("a", "a")
    task = mails.get("remind:a")
    assert (task.text, task.state) == ("a", "ready")
    mails.put("remind:b", "b")
    mails.put("remind:c", "c", tries=1)
    with worked_on(it["client"], mails, lambda job: it["send"](job, lambda address: answers[address].pop(0))):
        empty(mails)
    assert answers == {"a": [], "b": [], "c": []}
    assert {(task.id, task.error) for task in mails.dead()} == {
        ("remind:b", "b does not exist"), ("remind:c", "RuntimeError: the mail server says 500")}
    before_ms = time.time_ns() // 1000000
    assert it["revive"](3600) == 2 and mails.dead() == []
    first_ms, second_ms = (round(1000 * (mails.get(f"remind:{name}").due - delay))
                           for name, delay in (("b", 0), ("c", 1800)))
    assert before_ms <= first_ms <= second_ms <= time.time_ns() // 1000000


def test_the_waits_of_the_backoff(recipe):
    it = recipe("Retry with backoff")
    it["remind"]("a", "a")
    call = it["client"].execute_command
    for attempt, wait in enumerate((10, 30, 90, 270, 810), 1):
        [[_, name, token, *_]] = call("TW.TAKE", 1, "mails", "LEASE", HOUR, "BLOCK", HOUR)
        before, at, after = now_ms(), call("TW.NACK", "mails", name, token), now_ms()
        assert at - before >= 800 * wait and at - after <= 1200 * wait, attempt
        call("TW.PROMOTE", "mails", "ALL")
    [[_, name, token, *_]] = call("TW.TAKE", 1, "mails", "LEASE", HOUR, "BLOCK", HOUR)
    assert call("TW.NACK", "mails", name, token) == 0


def test_debounce(recipe):
    it = recipe("Debounce")
    index, before = it["index"], now_ms()
    for _ in range(3):
        it["changed"]("7")
    assert index.count() == 1 and index.get("document:7").due * 1000 >= before + 2000
    for _ in range(3):
        it["changed_often"]("8")
    last = index.get("document:8:at last").due
    it["changed_often"]("8")
    assert index.count() == 3 and index.get("document:8:at last").due == last
    for first, other in (("document:8", "document:8:at last"), ("document:8:at last", "document:8")):
        it["changed_often"]("8")
        it["indexed"](tickwheel.Job("index", first, "0" * 16, 0, 1, (b"8",)))
        assert index.get(other) is None and index.get(first) is not None


def test_unique_job(recipe):
    it = recipe("Unique job")
    going_on, over = threading.Event(), threading.Event()

    def handler(job):
        going_on.set()
        over.wait(PATIENCE)

    assert it["export"]("ann") is True and it["export"]("ann") is False
    with worked_on(it["client"], it["exports"], handler):
        assert going_on.wait(PATIENCE)
        assert it["export"]("ann") is False, "a job at work counts"
        over.set()
        empty(it["exports"])
        assert it["export"]("ann") is True


def test_run_now(recipe, queue):
    it = recipe("Run now")
    some = tickwheel.Queue(it["client"], queue)
    call = it["client"].execute_command
    assert it["run_now"](some, "a") is False
    some.put("a", "x", delay=3600, backoff=tickwheel.Backoff(3600, 1, 3600, 0))
    assert it["run_now"](some, "a") is True

    def take():
        [[_, _, token, _, attempt, *_]] = call("TW.TAKE", 1, queue, "LEASE", HOUR, "BLOCK", HOUR)
        return token, attempt

    token, attempt = take()
    assert attempt == 1 and it["run_now"](some, "a") is True
    before = now_ms()
    assert call("TW.NACK", queue, "a", token) >= before + HOUR, "the worker had the task until now"
    assert it["run_now"](some, "a") is True
    token, attempt = take()
    assert attempt == 2
    call("TW.NACK", queue, "a", token, "DEAD")
    assert it["run_now"](some, "a") is True
    assert take()[1] == 1


def test_a_pacer(recipe):
    it = recipe("A pacer: n a second")
    calls, free = tickwheel.Queue(it["client"], "{crm}:calls"), 0
    for number in range(101):
        before = now_ms()
        wait = it["pace"]("{crm}:calls", f"call:{number}", "x", 50)
        after, due = now_ms(), round(calls.get(f"call:{number}").due * 1000)
        assert max(free, before) <= due <= max(free, after) and due - after <= wait <= due - before, number
        free = due + 20


def test_a_job_each_hour(recipe):
    it = recipe("A job each hour")
    cleanups = it["cleanups"]
    it["register"]()
    first = cleanups.get("sessions")
    assert first.max_late == 600 and first.every == 3600 and first.due == first.next
    cleanups.put("sessions", "older than a week", delay=60, every=3600)
    due = cleanups.get("sessions").due
    it["register"]()
    again = cleanups.get("sessions")
    assert (again.due, again.text, again.max_late) == (due, "older than a day", 600)


# A moment, the day of the week and the time that are asked for, and the first such moment after it: the nights
# in which the clocks of Berlin change, and days around them.
MOMENTS = [
    ("2026-11-23 18:00 +01:00", 0, 9, 0, "2026-11-30 09:00 +01:00"),   # a Monday after nine
    ("2026-11-23 08:59 +01:00", 0, 9, 0, "2026-11-23 09:00 +01:00"),   # a Monday before nine
    ("2026-11-23 09:00 +01:00", 0, 9, 0, "2026-11-30 09:00 +01:00"),   # at nine: the next one
    ("2027-03-22 09:00 +01:00", 0, 9, 0, "2027-03-29 09:00 +02:00"),   # over the night in which they go forward
    ("2027-10-25 09:00 +02:00", 0, 9, 0, "2027-11-01 09:00 +01:00"),   # and back
    ("2027-03-27 12:00 +01:00", 6, 1, 59, "2027-03-28 01:59 +01:00"),  # the minute before they skip an hour
    ("2027-03-27 12:00 +01:00", 6, 2, 0, "2027-03-28 03:00 +02:00"),   # the first time that they skip
    ("2027-03-27 12:00 +01:00", 6, 2, 30, "2027-03-28 03:00 +02:00"),  # in the middle
    ("2027-03-27 12:00 +01:00", 6, 3, 0, "2027-03-28 03:00 +02:00"),   # the first time after
    ("2027-03-28 03:00 +02:00", 6, 2, 30, "2027-04-04 02:30 +02:00"),  # a skipped time comes once
    ("2027-10-30 12:00 +02:00", 6, 2, 30, "2027-10-31 02:30 +02:00"),  # a time that they show twice: the first
    ("2027-10-31 02:30 +02:00", 6, 2, 30, "2027-11-07 02:30 +01:00"),  # and only the first
    ("2027-10-30 12:00 +02:00", 6, 3, 0, "2027-10-31 03:00 +01:00"),
    ("2027-12-31 23:00 +01:00", 5, 0, 0, "2028-01-01 00:00 +01:00"),   # a new year
    ("2028-02-28 00:00 +01:00", 1, 0, 0, "2028-02-29 00:00 +01:00"),   # a leap day
]


@pytest.mark.parametrize("after, weekday, hour, minute, expected", MOMENTS)
def test_the_nights_of_daylight_saving(recipe, after, weekday, hour, minute, expected):
    it = recipe("Every Monday at nine in Berlin")
    after, expected = (datetime.datetime.strptime(text, "%Y-%m-%d %H:%M %z") for text in (after, expected))
    found = it["next_time"](after, weekday, hour, minute, "Europe/Berlin")
    assert found == expected, found.astimezone(BERLIN)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe",
                                  "Africa/Casablanca", "Asia/Kolkata", "UTC"])
def test_the_clocks_of_every_zone_agree(recipe, zone):
    """For each week of a year: the moment is later, and shows the time on the zone's clocks unless they skip
    it."""
    next_time, here = recipe("Every Monday at nine in Berlin")["next_time"], zoneinfo.ZoneInfo(zone)
    for hour, minute in ((0, 0), (2, 15), (9, 0)):
        moment = datetime.datetime(2027, 1, 1, tzinfo=datetime.timezone.utc)
        for _ in range(60):
            following = next_time(moment, 6, hour, minute, zone)
            local = following.astimezone(here)
            assert moment < following <= moment + datetime.timedelta(days=7, hours=2)
            assert local.weekday() == 6
            shown = (local.hour, local.minute) == (hour, minute)
            before = (following - datetime.timedelta(minutes=1)).astimezone(here)
            assert shown or before.utcoffset() < local.utcoffset(), "no skipped time is another"
            moment = following


def test_every_monday(recipe):
    it = recipe("Every Monday at nine in Berlin")
    reports, now = it["reports"], datetime.datetime.now(datetime.timezone.utc)
    it["file_next"](now)
    it["file_next"](now)
    [(name, due, _)] = list(reports.scan())
    monday = datetime.datetime.fromtimestamp(due, BERLIN)
    assert name == f"weekly:{monday:%Y-%m-%d}" and (monday.weekday(), monday.hour, monday.minute) == (0, 9, 0)
    job = tickwheel.Job("reports", name, "0" * 16, due, 1, (b"x",))
    it["weekly"](job)
    it["weekly"](job)
    assert len(list(reports.scan())) == 2, "a second attempt files nothing twice"


def test_cancel_a_thousand_by_prefix(recipe, queue):
    it = recipe("Cancel a thousand by prefix")
    some = tickwheel.Queue(it["client"], queue)
    with it["client"].pipeline(transaction=False) as many:
        for number in range(2500):
            some.on(many).put(f"ann:{number}" if number % 2 else f"bob:{number}", "x", delay=3600)
        many.execute()
    assert it["cancel_all"](some, "ann:*") == 1250 and some.count() == 1250
    assert it["cancel_all"](some, "ann:*") == 0


def test_a_trace_through_the_queue(recipe):
    it = recipe("A trace through the queue")
    seen, parent = [], "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    @contextlib.contextmanager
    def start_span(name, of):
        seen.append((name, of))
        yield

    it["enqueue"]("a", "x", parent)
    it["calls"].put("b", "y", delay=0)
    with worked_on(it["client"], it["calls"], it["traced"](lambda job: seen.append(job.text), start_span)):
        empty(it["calls"])
    assert seen == [("calls attempt 1", parent), "x", ("calls attempt 1", None), "y"]


def test_from_a_polled_sorted_set(recipe):
    """A poller goes on while the jobs are moved over: each job is done once, by the poller or by the worker."""
    it = recipe("From a polled sorted set, without downtime")
    client, done, moved = it["client"], [], tickwheel.Queue(it["client"], "{s}:jobs")
    now = time.time()
    for number in range(3000):
        client.zadd("{s}:due", {f"job:{number}": now + (-1, 0.5, 3600)[number % 3]})
        client.hset("{s}:payload", f"job:{number}", f"payload {number}")
    client.zadd("{s}:due", {"later": now + 3600})  # Its payload comes when the others have been moved.
    moved.put("job:1", "newer", delay=3600)
    stop = threading.Event()

    def poll():
        poller = redis.Redis(**client.connection_pool.connection_kwargs)
        while not stop.is_set():
            for name in poller.zrangebyscore("{s}:due", 0, time.time(), 0, 5):
                with poller.pipeline(transaction=True) as both:
                    both.zrem("{s}:due", name)
                    both.hget("{s}:payload", name)
                    both.hdel("{s}:payload", name)
                    removed, payload, _ = both.execute()
                if removed:
                    done.append((name.decode(), payload.decode()))
        poller.close()

    poller = threading.Thread(target=poll)
    poller.start()
    with worked_on(client, moved, lambda job: done.append((job.id, job.text)), jobs=4):
        wait_until(lambda: len(done) > 50)
        sizes = [it["move_over"]("{s}:due", "{s}:payload", "{s}:jobs", 500)]
        while sizes[-1]:
            sizes.append(it["move_over"]("{s}:due", "{s}:payload", "{s}:jobs", 500))
        stop.set()
        poller.join(PATIENCE)
        while moved.promote_all():
            pass
        empty(moved)
    assert client.zrange("{s}:due", 0, -1) == [b"later"] and not client.exists("{s}:payload")
    assert max(sizes) == 500
    client.hset("{s}:payload", "later", "payload")
    assert it["move_over"]("{s}:due", "{s}:payload", "{s}:jobs") == 1
    assert moved.get("later").text == "payload" and not client.exists("{s}:due")
    assert sorted(done) == sorted((f"job:{number}", "newer" if number == 1 else f"payload {number}")
                                  for number in range(3000))


def test_every_recipe_is_run():
    listed = re.findall(r"\]\(#([a-z0-9-]+)\) \|$", HEAD, re.MULTILINE)
    assert listed == [re.sub(r"[^a-z0-9 -]", "", name.lower()).replace(" ", "-") for name in SECTIONS]
