# SPDX-License-Identifier: MIT
"""docs/recipes.md: this test runs the programs of each recipe in each home, a server and a file. A block that
begins with `# In Redis` or `# In a file` is for that home alone."""
import contextlib
import datetime
import pathlib
import queue as queues
import re
import sqlite3
import threading
import time
import zoneinfo

import pytest
import redis
from harness import HOST, PATIENCE, ROOT, now_ms, wait_until
from python_package import emptied, new_file

import tickwheel

PAGE = pathlib.Path(ROOT, "docs", "recipes.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEAD, *REST = re.split(r"^## (.*)\n", PAGE, flags=re.MULTILINE)
SECTIONS = dict(zip(REST[::2], REST[1::2]))
HOMES = {"redis": "# In Redis\n", "sqlite": "# In a file\n"}
ON_THE_PAGE = '"redis://127.0.0.1:7379"'
HOUR = 3600000
BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")


@pytest.fixture(params=HOMES)
def home(request, tmp_path, monkeypatch):
    """The URL of a home without tasks: a server, or the file shop.db in the working folder."""
    monkeypatch.chdir(tmp_path)
    if request.param == "sqlite":
        new_file(tmp_path, "shop.db")
        return "sqlite:///shop.db"
    common = request.getfixturevalue("common")
    common.client().flushall()
    return f"redis://{HOST}:{common.port}"


in_redis = pytest.mark.parametrize("home", ["redis"], indirect=True)


@pytest.fixture
def recipe(home):
    """recipe(NAME) returns the names that the blocks of a section define."""
    clients, others = [], tuple(mark for scheme, mark in HOMES.items() if not home.startswith(scheme))

    def blocks_of(name):
        names = {}
        assert ON_THE_PAGE in HEAD
        for block in BLOCK.findall(HEAD.replace(ON_THE_PAGE, repr(home))) + BLOCK.findall(SECTIONS[name]):
            if not block.startswith(others):
                exec(block, names)  # pylint: disable=exec-used
        clients.append(names["client"])
        return names

    yield blocks_of
    for client in clients:
        client.close()


@contextlib.contextmanager
def worked_on(queue, handler, **settings):
    """A worker of one queue, in threads of its own."""
    worker = tickwheel.Worker(queue.client, **{"jobs": 1, "lease": PATIENCE, **settings})
    worker.add(handler, queue.key)
    with worker:
        yield worker


class Hands:
    """A handler whose jobs end as the test says."""

    def __init__(self):
        self.jobs, self.ends = queues.Queue(), queues.Queue()

    def __call__(self, job):
        self.jobs.put(job)
        error = self.ends.get(timeout=PATIENCE)
        if error:
            raise error

    def begun(self):
        """Waits until a job has begun, and returns it."""
        return self.jobs.get(timeout=PATIENCE)

    def end(self, error=None):
        self.ends.put(error)


def in_state(queue, id, state):
    """Waits until a task has this state, and returns it."""
    def seen():
        task = queue.get(id)
        return task if task and task.state == state else None
    return wait_until(seen, lambda: str(queue.get(id)))


def ms(seconds):
    return round(seconds * 1000)


@contextlib.contextmanager
def at_once(queue):
    """The queue through a pipeline, or within a transaction."""
    if isinstance(queue.client, tickwheel.File):
        with contextlib.closing(sqlite3.connect("shop.db")) as db, db:
            yield queue.on(db)
    else:
        with queue.client.pipeline(transaction=False) as many:
            yield queue.on(many)
            many.execute()


def order(client, number, state=None):
    """Returns the state of an order, or sets it."""
    if not isinstance(client, tickwheel.File):
        key = f"{{shop}}:order:{number}"
        return client.hset(key, "state", state) if state else client.hget(key, "state").decode()
    with contextlib.closing(sqlite3.connect("shop.db")) as db, db:
        if state:
            db.execute("UPDATE orders SET state = ? WHERE id = ?", (state, number))
        return db.execute("SELECT state FROM orders WHERE id = ?", (number,)).fetchone()[0]


def test_order_timeout(recipe):
    it = recipe("Order timeout")
    client = it["client"]
    with worked_on(it["orders"], it["expire"]):
        for number in (1, 2):
            it["place"](number, 0.1 if number == 1 else 30)
        it["pay"](2)
        emptied(it["orders"])
    assert [order(client, number) for number in (1, 2)] == ["expired", "paid"]
    order(client, 1, "paid")  # The customer paid while the job was on its way.
    it["expire"](tickwheel.Job("s", "order:1", "0" * 16, 0, 1, (b"1",)))
    assert order(client, 1) == "paid"


def test_an_order_and_its_timeout_are_both_there_or_none(recipe):
    it = recipe("Order timeout")
    with pytest.raises(ValueError):
        it["place"](1, -1)
    it["place"](1, 30)
    assert order(it["client"], 1) == "placed" and it["orders"].count() == 1


def test_retry_with_backoff(recipe):
    it = recipe("Retry with backoff")
    mails = it["mails"]
    answers = {"a": [(429, {"Retry-After": "0.02"}), (200, {})], "b": [(404, {})], "c": [(500, {})]}
    it["remind"]("a", "a")
    task = mails.get("remind:a")
    assert (task.text, task.state) == ("a", "ready")
    mails.put("remind:b", "b")
    mails.put("remind:c", "c", tries=1)
    with worked_on(mails, lambda job: it["send"](job, lambda address: answers[address].pop(0))):
        emptied(mails)
    assert answers == {"a": [], "b": [], "c": []}
    assert {(task.id, task.error) for task in mails.dead()} == {
        ("remind:b", "b does not exist"), ("remind:c", "RuntimeError: the mail server says 500")}
    before_ms = now_ms()
    assert it["revive"](3600) == 2 and mails.dead() == []
    dues = [ms(mails.get(f"remind:{name}").due) for name in "bc"]
    assert before_ms <= dues[0] <= dues[1] - 1800000 <= now_ms() + 1  # A delay in a file is rounded up.


def test_the_waits_of_the_backoff(recipe):
    it, hands = recipe("Retry with backoff"), Hands()
    mails = it["mails"]
    it["remind"]("a", "a")
    with worked_on(mails, hands):
        for attempt, wait in enumerate((10, 30, 90, 270, 810), 1):
            assert hands.begun().attempt == attempt
            before = now_ms()
            hands.end(OSError("the mail server is away"))
            at, after = ms(in_state(mails, "remind:a", "waiting").next), now_ms()
            assert at - before >= 800 * wait and at - after <= 1200 * wait, attempt
            assert mails.promote("remind:a")
        hands.begun()
        hands.end(OSError("the mail server is away"))
        assert in_state(mails, "remind:a", "dead").attempt == 6


def test_not_yet(recipe):
    it = recipe("Not yet, look again in ten seconds")
    payouts, states = it["payouts"], {"a": ["pending", "pending", "booked"], "b": ["pending"], "c": ["refused"]}
    payouts.put("b", "b", at=time.time() - 3601)
    payouts.put("c", "c")
    with worked_on(payouts, lambda job: it["confirm"](job, lambda name: states[name].pop(0))):
        emptied(payouts)
        before, due = now_ms(), payouts.put("a", "a", tries=1) and ms(payouts.get("a").due)
        for _ in range(2):
            task, after = in_state(payouts, "a", "waiting"), now_ms()
            assert before + 10000 <= ms(task.next) <= after + 10000
            assert (task.attempt, task.error, ms(task.due)) == (0, "", due)
            before = now_ms()
            assert payouts.promote("a")
        emptied(payouts)
    assert states == {"a": [], "b": [], "c": []}
    assert [task.error for task in payouts.dead()] == ["payout b is pending", "payout c is refused"]


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
    it, hands = recipe("Unique job"), Hands()
    assert it["export"]("ann") is True and it["export"]("ann") is False
    with worked_on(it["exports"], hands):
        hands.begun()
        assert it["export"]("ann") is False, "a job at work counts"
        hands.end()
        emptied(it["exports"])
        assert it["export"]("ann") is True
        hands.end(tickwheel.Dead("no such customer"))
        in_state(it["exports"], "export:ann", "dead")
        assert it["export"]("ann") is False, "and so does a dead one"


def test_a_unique_job_that_runs_again(recipe):
    it, hands = recipe("Unique job that runs again"), Hands()
    caches, change = it["caches"], lambda: it["changed_product"]("7")
    change()
    due = caches.get("product:7").due
    change()
    assert caches.count() == 1 and caches.get("product:7").due == due, "it keeps its place"
    with worked_on(caches, hands, jobs=4):
        hands.begun()
        for _ in range(3):
            change()
        assert caches.get("product:7").replaced and caches.count() == 1
        assert hands.jobs.empty(), "two runs overlap"
        hands.end()
        assert hands.begun().attempt == 1
        hands.end(tickwheel.Retry(HOUR / 1000, "the shop is closed"))
        retry = in_state(caches, "product:7", "waiting")
        change()
        assert caches.get("product:7").next == retry.next
        caches.promote("product:7")
        assert hands.begun().attempt == 2
        hands.end(tickwheel.Dead("no such product"))
        in_state(caches, "product:7", "dead")
        change()
        assert hands.begun().attempt == 1
        hands.end()
        emptied(caches)
    assert hands.jobs.empty(), "three changes are one further run"


def test_run_now(recipe):
    it, hands = recipe("Run now"), Hands()
    some, run_now = tickwheel.Queue(it["client"], "work"), it["run_now"]
    assert run_now(some, "a") is False
    some.put("a", "x", delay=3600, backoff=tickwheel.Backoff(3600, 1, 3600, 0))
    with worked_on(some, hands):
        assert run_now(some, "a") is True
        assert hands.begun().attempt == 1 and run_now(some, "a") is True
        before = now_ms()
        hands.end(OSError("no answer"))
        assert ms(in_state(some, "a", "waiting").next) >= before + HOUR, "the worker had the task until now"
        assert run_now(some, "a") is True
        assert hands.begun().attempt == 2
        hands.end(tickwheel.Dead("no such job"))
        in_state(some, "a", "dead")
        assert run_now(some, "a") is True
        assert hands.begun().attempt == 1
        hands.end()
        emptied(some)


def test_a_pacer(recipe):
    it = recipe("A pacer: n a second")
    calls, free = tickwheel.Queue(it["client"], "{crm}:calls"), 0
    for number in range(101):
        before = now_ms()
        wait = it["pace"]("{crm}:calls", f"call:{number}", "x", 50)
        after, due = now_ms(), ms(calls.get(f"call:{number}").due)
        assert max(free, before) <= due <= max(free, after) and due - after <= wait <= due - before, number
        free = due + 20


def test_a_heartbeat_and_a_job_each_hour(recipe):
    it = recipe("A heartbeat and a job each hour")
    chores = it["chores"]
    it["register"]()
    first = chores.get("sessions")
    assert first.max_late == 600 and first.every == 3600 and first.due == first.next
    chores.put("sessions", "older than a week", delay=60, every=3600)
    due, beat = chores.get("sessions").due, chores.get("heartbeat").due
    it["register"]()
    again = chores.get("sessions")
    assert (again.due, again.text, again.max_late) == (due, "older than a day", 600)
    assert chores.get("heartbeat").due == beat
    hands = Hands()
    with worked_on(chores, hands):
        chores.promote("heartbeat")
        assert hands.begun().text == "https://example.org/alive"
        it["register"]()  # A start while it is at work.
        hands.end()
        assert ms(in_state(chores, "heartbeat", "waiting").due) == ms(beat) + 60000


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


@in_redis
@pytest.mark.parametrize("after, weekday, hour, minute, expected", MOMENTS)
def test_the_nights_of_daylight_saving(recipe, after, weekday, hour, minute, expected):
    it = recipe("Every Monday at nine in Berlin")
    after, expected = (datetime.datetime.strptime(text, "%Y-%m-%d %H:%M %z") for text in (after, expected))
    found = it["next_time"](after, weekday, hour, minute, "Europe/Berlin")
    assert found == expected, found.astimezone(BERLIN)


@in_redis
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


def test_cancel_all_of_a_customer(recipe):
    it = recipe("Cancel all of a customer")
    some = tickwheel.Queue(it["client"], "work")
    with at_once(some) as many:
        for number in range(2500):
            many.put(f"ann:{number}" if number % 2 else f"bob:{number}", "x", delay=3600)
    assert it["cancel_all"](some, "ann:*") == 1250 and some.count() == 1250
    assert it["cancel_all"](some, "ann:*") == 0


def test_remove_the_queue_of_a_customer(recipe):
    client = recipe("Cancel all of a customer")["client"]
    both = [tickwheel.Queue(client, name) for name in ("ann", "bob")]
    for one in both:
        one.put("a", "x", delay=3600)
        one.put("b", "x")
    if isinstance(client, tickwheel.File):
        statement = re.search(r"`(INSERT INTO tw_cancel.*)`", SECTIONS["Cancel all of a customer"])[1]
        with contextlib.closing(sqlite3.connect("shop.db")) as db, db:
            db.execute(statement)
    else:
        client.execute_command(*re.search(r"`(UNLINK \w+)`", SECTIONS["Cancel all of a customer"])[1].split())
    assert [one.count() for one in both] == [0, 2]


def test_a_trace_through_the_queue(recipe):
    it = recipe("A trace through the queue")
    seen, parent = [], "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    @contextlib.contextmanager
    def start_span(name, of):
        seen.append((name, of))
        yield

    it["enqueue"]("a", {"order": 42}, parent)
    it["calls"].put("b", '{"order": 43}')  # From before the change.
    with worked_on(it["calls"], it["traced"](lambda job: seen.append(job.text), start_span)):
        emptied(it["calls"])
    assert seen == [("calls attempt 1", parent), f'{{"order":42,"traceparent":"{parent}"}}',
                    ("calls attempt 1", None), '{"order": 43}']


@contextlib.contextmanager
def poller(poll):
    """Calls poll() again and again, in a thread, until the block ends."""
    stop = threading.Event()

    def work():
        while not stop.is_set():
            poll()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(PATIENCE)


@in_redis
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
    other = redis.Redis(**client.connection_pool.connection_kwargs)

    def poll():
        for name in other.zrangebyscore("{s}:due", 0, time.time(), 0, 5):
            with other.pipeline(transaction=True) as both:
                both.zrem("{s}:due", name)
                both.hget("{s}:payload", name)
                both.hdel("{s}:payload", name)
                removed, payload, _ = both.execute()
            if removed:
                done.append((name.decode(), payload.decode()))

    with worked_on(moved, lambda job: done.append((job.id, job.text)), jobs=4):
        with poller(poll):
            wait_until(lambda: len(done) > 50)
            sizes = [it["move_over"]("{s}:due", "{s}:payload", "{s}:jobs", 500)]
            while sizes[-1]:
                sizes.append(it["move_over"]("{s}:due", "{s}:payload", "{s}:jobs", 500))
        while moved.promote_all():
            pass
        emptied(moved)
    other.close()
    assert client.zrange("{s}:due", 0, -1) == [b"later"] and not client.exists("{s}:payload")
    assert max(sizes) == 500
    client.hset("{s}:payload", "later", "payload")
    assert it["move_over"]("{s}:due", "{s}:payload", "{s}:jobs") == 1
    assert moved.get("later").text == "payload" and not client.exists("{s}:due")
    assert sorted(done) == sorted((f"job:{number}", "newer" if number == 1 else f"payload {number}")
                                  for number in range(3000))


@pytest.fixture
def table(home):
    """table() connects to the database of the table: the file of the tasks, or another one."""
    made = []

    def connect():
        made.append(sqlite3.connect("shop.db" if home.startswith("sqlite") else "table.db", timeout=PATIENCE,
                                    check_same_thread=False))
        return made[-1]

    with connect() as db:
        db.execute("CREATE TABLE jobs(id INTEGER PRIMARY KEY, run_at REAL, payload TEXT, done INTEGER)")
    yield connect
    for one in made:
        one.close()


def queue_beside(db, client):
    """The queue to which the jobs move: in the transaction of the table, where both are in one file."""
    return tickwheel.Queue(db if isinstance(client, tickwheel.File) else client, "jobs")


def test_from_a_polled_table(recipe, table):
    """A poller that marks a job when it has done it goes on: each job is done once."""
    it, now, done = recipe("From a polled table, without downtime"), time.time(), []
    db, other, moved = table(), table(), tickwheel.Queue(it["client"], "jobs")
    with db:
        db.executemany("INSERT INTO jobs VALUES (?, ?, ?, 0)", [
            (number, now + (-1, 0.5, 3600)[number % 3], f"payload {number}") for number in range(90)])
    moved.put("job:2", "newer", delay=3600)

    def poll():
        due = other.execute("SELECT id, payload FROM jobs WHERE NOT done AND run_at <= ? LIMIT 5",
                            (time.time(),))
        for number, payload in due.fetchall():
            done.append((f"job:{number}", payload))
            with other:
                other.execute("UPDATE jobs SET done = 1 WHERE id = ?", (number,))

    with worked_on(moved, lambda job: done.append((job.id, job.text)), jobs=4), poller(poll):
        sizes = [it["move_over"](db, queue_beside(db, it["client"]), 12)]
        while sizes[-1]:
            sizes.append(it["move_over"](db, queue_beside(db, it["client"]), 12))
        wait_until(lambda: db.execute("SELECT count(*) FROM jobs WHERE NOT done").fetchone() == (0,))
        while moved.promote_all():
            pass
        emptied(moved)
    assert sizes == [12, 12, 6, 0]
    assert sorted(done) == sorted((f"job:{number}", "newer" if number == 2 else f"payload {number}")
                                  for number in range(90))


def test_a_move_of_a_table_that_dies(recipe, table):
    """It leaves the table as it was, and the next one moves each job once."""
    it, db = recipe("From a polled table, without downtime"), table()
    moved, puts = queue_beside(db, it["client"]), []
    with db:
        later = time.time() + 3600
        db.executemany("INSERT INTO jobs VALUES (?, ?, 'x', 0)", [(one, later) for one in range(5)])

    class Dying:
        def put(self, *words, **options):
            puts.append(moved.put(*words, **options))
            if len(puts) == 3:
                raise OSError("killed")

    with pytest.raises(OSError, match="killed"):
        it["move_over"](db, Dying())
    assert db.execute("SELECT count(*) FROM jobs WHERE NOT done").fetchone() == (5,)
    assert moved.count() == (0 if isinstance(it["client"], tickwheel.File) else 3)
    assert it["move_over"](db, moved) == 5 and it["move_over"](db, moved) == 0
    assert sorted(name for name, *_ in moved.scan()) == [f"job:{one}" for one in range(5)]


def test_every_recipe_is_run():
    listed = re.findall(r"\]\(#([a-z0-9-]+)\) \|$", HEAD, re.MULTILINE)
    assert listed == [re.sub(r"[^a-z0-9 -]", "", name.lower()).replace(" ", "-") for name in SECTIONS]
    source = pathlib.Path(__file__).read_text(encoding="utf-8")
    assert [name for name in SECTIONS if f'recipe("{name}")' not in source] == []
