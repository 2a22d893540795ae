# SPDX-License-Identifier: MIT
"""The plug-in for Celery (clients/python/tickwheel/celery.py), with Debian's Celery, a real server and real
workers. The worker is that of docs/frameworks.md."""
import contextlib
import importlib.util
import json
import os
import sys
from datetime import datetime, timedelta, timezone

import pytest
from celery import Celery
from celery.exceptions import ImproperlyConfigured
from harness import HOST, PATIENCE, now_ms, wait_until
from kombu import Connection, Exchange, Queue

from frameworks import Page, Seen, Worker, move_to, url_of
import tickwheel.celery

PARKED = "tickwheel:celery"
HOUR = 3600
ASK_S = 1  # A question to all workers takes so long; the tests ask again.
LEAN = ["--pool", "solo", "--without-mingle", "--without-gossip", "--without-heartbeat", "--loglevel", "INFO"]

TASKS = """
import os
import time

import redis
from shop import app

app.conf.task_ignore_result = True
app.conf.broker_transport_options = {"visibility_timeout": int(os.environ.get("VISIBLE", "3600"))}
r = redis.Redis.from_url(app.conf.broker_url)


def see(word, *more):
    r.rpush("seen", " ".join(map(str, [word, time.time_ns() // 1000000, *more])))


@app.task(bind=True)
def note(self, word):
    see(word, self.request.id, self.request.eta, self.request.get("tickwheel_eta"))


@app.task(bind=True, max_retries=3)
def fail_once(self, word, countdown):
    see(word, self.request.retries)
    if self.request.retries == 0:
        raise self.retry(countdown=countdown)


@app.task(acks_late=True)
def endless(word):
    see(word)
    r.blpop("nobody pushes")
"""


def load(folder, name):
    """Loads a module of the folder anew, under the name that the worker uses too."""
    spec = importlib.util.spec_from_file_location(name, os.path.join(folder, f"{name}.py"))
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Shop:
    """The page's shop.py, the tasks above beside it, and their server."""

    def __init__(self, server, folder):
        self.server, self.folder, self.r, self.seen = server, folder, server.client(), Seen(server)
        self.page = Page(folder, server)
        (folder / "jobs.py").write_text(TASKS, encoding="utf-8")
        self.app = load(folder, "shop").app
        self.jobs = load(folder, "jobs")
        self.plain = Celery("old", broker=url_of(server), broker_transport="kombu.transport.redis:Transport")
        self.workers = []

    def worker(self, options=(), plain=False, **more):
        _, *words = self.page.words("celery")
        folder = self.folder
        if plain:
            folder = self.folder / "plain"
            folder.mkdir(exist_ok=True)
            for name in ("shop.py", "jobs.py"):
                text = (self.folder / name).read_text(encoding="utf-8")
                (folder / name).write_text(text.replace("tickwheel.celery.install()", ""), encoding="utf-8")
        command = [sys.executable, "-m", "celery", *words, "-I", "jobs", *LEAN, *options]
        self.workers.append(Worker(command, str(folder), name=f"worker{len(self.workers)}", **more))
        return self.workers[-1]

    def note(self, word, **options):
        return self.jobs.note.apply_async((word,), **options).id

    def wait(self, words, count=None):
        return self.seen.wait(words, count, lambda: "\n".join(worker.log() for worker in self.workers))

    def task(self, name):
        row, = self.r.execute_command("TW.GET", PARKED, name)
        return dict(zip(row[::2], row[1::2])) if row else None

    def held(self):
        """Returns the tasks that workers hold until they are due. There has to be a worker that answers."""
        replies = wait_until(lambda: self.app.control.inspect(timeout=ASK_S, limit=1).scheduled())
        return [task for held in replies.values() for task in held]

    def close(self):
        for worker in self.workers:
            worker.kill()
        self.app.close()
        self.plain.close()


@pytest.fixture(scope="module")
def shop(common, tmp_path_factory):
    """The shop with a worker, which starts while the first tests run."""
    with contextlib.closing(Shop(common, tmp_path_factory.mktemp("celery"))) as made:
        made.worker()
        yield made


def other_app(shop, **options):
    """Another app on the same server, without a worker."""
    app = Celery("other", broker=url_of(shop.server))
    app.conf.broker_transport_options = options
    return app


# Without a worker


def test_a_parked_message_is_that_of_kombu_with_its_priority_and_prefix(shop):
    app = other_app(shop, global_keyprefix="p:", tickwheel_queue="delayed")
    sent = {"priority": 7, "queue": "mail", "task_id": "m"}
    app.send_task("jobs.note", ("now",), **sent)
    before = now_ms()
    app.send_task("jobs.note", ("later",), countdown=HOUR, **sent)
    after = now_ms()
    target, = [key for key in shop.r.keys("p:mail*")]
    row, = shop.r.execute_command("TW.GET", "p:delayed", "m")
    task = dict(zip(row[::2], row[1::2]))
    assert (task["target"], task["kind"]) == (target, "list left")
    assert shop.r.execute_command("TW.PROMOTE", "p:delayed", "ALL")
    wait_until(lambda: shop.r.llen(target) == 2)
    later, now = map(json.loads, shop.r.lrange(target, 0, -1))
    eta = later["headers"].pop("tickwheel_eta")
    assert before <= int(datetime.fromisoformat(eta).timestamp() * 1000) - HOUR * 1000 <= after
    for message in (later, now):
        message["body"] = message["properties"].pop("delivery_tag") and ""
        del message["headers"]["argsrepr"]
    assert later == now
    app.close()


def test_an_exchange_with_two_queues_parks_a_copy_for_each(shop):
    app, news = other_app(shop), Exchange("news", "topic")
    app.conf.task_queues = [Queue(name, news, routing_key="news.#") for name in ("paper", "radio")]
    app.send_task("jobs.note", ("n",), exchange="news", routing_key="news.x", declare=app.conf.task_queues,
                  countdown=HOUR, task_id="n")
    assert [shop.task(f"n@{name}")["target"] for name in ("paper", "radio")] == ["paper", "radio"]
    assert tickwheel.celery.move(app, "n", countdown=2 * HOUR)
    assert shop.task("n@radio")["remaining"] > HOUR * 1000
    assert tickwheel.celery.cancel(app, "n") == 2
    app.close()


def test_a_message_that_was_published_twice_is_parked_once(shop):
    for _ in range(2):
        shop.jobs.note.apply_async(("twice",), countdown=HOUR, task_id="twice")
    assert tickwheel.celery.cancel(shop.app, "twice") == 1


@pytest.mark.parametrize("eta, late", [("2040-01-01T00:00:00", 0), ("2040-01-01T00:00:00+01:00", -3600000),
                                       ("2040-01-01T00:00:00.0001+00:00", 1)])
def test_an_eta_without_a_zone_is_utc_and_fractions_are_rounded_up(eta, late):
    assert tickwheel.celery.due_of({"headers": {"eta": eta}}) == 2208988800000 + late


def test_an_eta_that_is_no_time_and_one_that_has_passed_go_to_the_worker(shop):
    app = other_app(shop)
    eta = datetime(2020, 1, 1, tzinfo=timezone.utc)
    app.send_task("jobs.note", ("p",), queue="past", eta=eta, task_id="past")
    assert (shop.r.llen("past"), shop.task("past")) == (1, None)
    assert tickwheel.celery.due_of({"headers": {"eta": "soon"}}) is None
    assert tickwheel.celery.due_of({"headers": {}}) is None
    app.close()


def test_move_wants_one_time_and_a_zone(shop):
    for times in ({}, {"countdown": 1, "eta": datetime.now(timezone.utc)}, {"eta": datetime.now()}):
        with pytest.raises(ValueError, match="expected"):
            tickwheel.celery.move(shop.app, "any", **times)
    assert tickwheel.celery.move(shop.app, "nobody", countdown=1) is False
    assert tickwheel.celery.cancel(shop.app) == 0


def test_an_app_with_another_broker_is_told_to_install(shop):
    with pytest.raises(ImproperlyConfigured, match="call tickwheel.celery.install"):
        tickwheel.celery.cancel(shop.plain, "any")


def message_of(shop, name, queue, **options):
    """Returns a message as plain Celery writes it."""
    shop.plain.send_task("jobs.note", (name,), queue=queue, task_id=name, **options)
    return json.loads(shop.r.rpop(queue))


def test_tasks_that_a_dead_worker_held_are_adopted(shop):
    waiting, begun = message_of(shop, "held", "left", countdown=HOUR), message_of(shop, "begun", "left")
    for tag, message in (("t1", waiting), ("t2", begun)):
        shop.r.hset("unacked", tag, json.dumps([message, "", "left"]))
        shop.r.zadd("unacked_index", {tag: now_ms() / 1000})
    assert [tickwheel.celery.adopt(shop.app, timeout=ASK_S) for _ in range(2)] == [1, 0]
    assert shop.r.hkeys("unacked") == shop.r.zrange("unacked_index", 0, -1) == ["t2"]
    assert (shop.task("held")["target"], shop.task("begun")) == ("left", None)
    assert tickwheel.celery.cancel(shop.app, "held") == 1
    shop.r.delete("unacked", "unacked_index")


def test_a_task_that_cannot_be_parked_is_handed_to_the_worker(shop):
    shop.r.set("taken", "no queue")
    app, given = other_app(shop, tickwheel_queue="taken"), []
    with app.connection_for_read() as connection:
        message = message_of(shop, "stuck", "left", countdown=HOUR)
        connection.default_channel.receive("left", given.append, message)
    assert given == [message]
    app.close()


# With the worker


def test_tasks_come_in_due_order_and_not_early(shop):
    names = [shop.note(word, countdown=HOUR) for word in ("c", "a", "b")]
    assert shop.r.llen("celery") == 0
    assert [shop.task(name)["target"] for name in names] == ["celery"] * 3
    began = now_ms()
    move_to(shop.r, PARKED, {name: began + ms for name, ms in zip(names, (500, 200, 350))})
    rows = shop.wait(["a", "b", "c"])
    assert [row[0] for row in rows] == ["a", "b", "c"]
    for (_, at, _, eta, told), ms in zip(rows, (200, 350, 500)):
        assert at >= began + ms and eta == "None" and told.startswith("20"), rows


def test_no_worker_holds_a_parked_task(shop):
    before = datetime.now(timezone.utc)
    name = shop.note("held", countdown=HOUR)
    after = datetime.now(timezone.utc)
    assert shop.held() == []
    assert (shop.r.llen("celery"), shop.r.hlen("unacked")) == (0, 0)
    due = tickwheel.celery.parked(shop.app, name)
    assert before <= due - timedelta(seconds=HOUR) < after + timedelta(milliseconds=1)  # rounded up
    assert [tickwheel.celery.cancel(shop.app, name) for _ in range(2)] == [1, 0]
    assert tickwheel.celery.parked(shop.app, name) is None


def test_a_task_is_moved_and_runs(shop):
    name = shop.note("moved", countdown=HOUR)
    began = now_ms()
    assert tickwheel.celery.move(shop.app, name, eta=datetime.now(timezone.utc) + timedelta(seconds=0.1))
    (_, at, same, *_), = shop.wait(["moved"])
    assert at >= began + 100 and same == name


def test_a_retry_is_parked_under_the_same_id(shop):
    name = shop.jobs.fail_once.delay("again", 0.3).id
    shop.wait(["again"])
    task = wait_until(lambda: shop.task(name) or len(shop.seen.rows(["again"])) == 2)
    assert task is True or task["kind"] == "list left"
    (_, first, _), (_, second, retries) = shop.wait(["again"], 2)
    assert second >= first + 300 and retries == "1"


def test_a_task_that_has_expired_when_it_is_due_does_not_run(shop):
    shop.note("expired", countdown=0.2, expires=0.1)
    shop.note("after", countdown=0.21)
    shop.wait(["after"])
    assert shop.seen.rows(["expired"]) == []


def test_the_worker_parks_a_task_of_an_old_producer(shop):
    shop.plain.send_task("jobs.note", ("old",), countdown=HOUR, task_id="old")
    task = wait_until(lambda: shop.task("old"))
    assert (task["target"], shop.r.llen("celery"), shop.r.hlen("unacked")) == ("celery", 0, 0)
    assert tickwheel.celery.move(shop.app, "old", countdown=0)
    (_, _, _, eta, told), = shop.wait(["old"])
    assert eta == "None" and told.startswith("20")


def test_the_example_of_the_page(shop, capsys):
    load(shop.folder, "orders")
    assert capsys.readouterr().out.splitlines() == ["order 42 is due in 60 minutes", "order 42 is paid"]
    shop.workers[0].wait_log("order 43 has expired")
    assert "order 42 has" not in shop.workers[0].log()


# Longer


@pytest.fixture
def own(fleet, tmp_path):
    """A shop with a server of its own, which writes each command to its file, and without a worker."""
    with contextlib.closing(Shop(fleet.server(appendonly="yes"), tmp_path)) as made:
        yield made


def park_many(own, count=30):
    """Returns {id: word} of tasks that are parked."""
    return {own.note(f"w{number}", countdown=HOUR): f"w{number}" for number in range(count)}


def fall_due(own, parked):
    """Has the tasks fall due, one after the other, and returns their words."""
    now = now_ms()
    move_to(own.r, PARKED, {name: now + 20 * number for number, name in enumerate(parked)})
    return list(parked.values())


def assert_once_each(own, words):
    own.wait(words)
    own.note("last", countdown=0.3)
    own.wait(["last"])
    assert sorted(row[0] for row in own.seen.rows(words)) == sorted(words)


@pytest.mark.long(only=True)
def test_a_worker_that_is_killed_loses_no_parked_task(own):
    worker = own.worker(["--pool", "prefork", "--concurrency", "2"])
    again = own.jobs.fail_once.delay("again", 2).id
    own.wait(["again"])
    wait_until(lambda: own.task(again))
    parked = park_many(own)
    worker.kill()
    words = fall_due(own, parked)
    own.worker()
    assert_once_each(own, words)
    own.wait(["again"], 2)


@pytest.mark.long(only=True)
def test_a_server_that_is_killed_loses_no_parked_task(own):
    own.worker()
    assert own.held() == []
    parked = park_many(own)
    own.server.kill()
    own.server.start()
    own.r, own.seen = own.server.client(), Seen(own.server)
    assert_once_each(own, fall_due(own, parked))


def wait_invisible(own):
    """Waits until a message that a worker has taken is older than the visibility timeout, a second."""
    (_, taken), = wait_until(lambda: own.r.zrange("unacked_index", 0, -1, withscores=True))
    wait_until(lambda: now_ms() > taken * 1000 + 1100)


@pytest.mark.long(only=True)
@pytest.mark.parametrize("plain, runs", [(True, 2), (False, 1)])
def test_a_delay_beyond_the_visibility_timeout(own, plain, runs):
    """Plain Celery runs such a task twice: the page says so. With the plug-in the task runs once."""
    own.worker(plain=plain, VISIBLE="1")
    assert own.held() == []
    sent = now_ms()
    own.plain.send_task("jobs.note", ("far",), countdown=20 if plain else HOUR)
    if plain:
        wait_invisible(own)
    else:
        wait_until(lambda: own.r.execute_command("TW.LEN", PARKED))
    own.worker(plain=plain, VISIBLE="1")
    if not plain:
        wait_until(lambda: now_ms() > sent + 1100)
        own.r.execute_command("TW.PROMOTE", PARKED, "ALL")
    own.wait(["far"], runs)
    own.note("last", countdown=1)
    own.wait(["last"])
    assert len(own.seen.rows(["far"])) == runs


@pytest.mark.long(only=True)
def test_a_running_system_moves_over(own, monkeypatch):
    """An old worker that stops puts its tasks back; an old worker that is killed leaves them in `unacked`.
    Each task runs once, by a new worker."""
    words = [f"w{number}" for number in range(20)]
    for word in words:
        own.plain.send_task("jobs.note", (word,), countdown=HOUR)
    first = own.worker(plain=True)
    wait_until(lambda: own.r.hlen("unacked") == len(words))
    ask = own.app.control.inspect
    with monkeypatch.context() as patched, pytest.raises(RuntimeError, match="hold tasks"):
        patched.setattr(own.app.control, "inspect", lambda timeout: ask(timeout=timeout, limit=1))
        tickwheel.celery.adopt(own.app, timeout=PATIENCE)
    first.stop()
    wait_until(lambda: own.r.llen("celery") == len(words))
    second = own.worker(plain=True)
    wait_until(lambda: own.r.hlen("unacked") == len(words))
    second.kill()
    own.worker()
    own.plain.send_task("jobs.note", ("new",), countdown=HOUR)
    assert tickwheel.celery.adopt(own.app) == len(words)
    wait_until(lambda: own.r.execute_command("TW.LEN", PARKED) == len(words) + 1)
    assert own.held() == [] and own.r.hlen("unacked") == 0
    own.r.execute_command("TW.PROMOTE", PARKED, "ALL")
    assert_once_each(own, [*words, "new"])


@pytest.mark.long(only=True)
def test_work_of_a_killed_worker_with_acks_late_comes_again(own):
    first = own.worker(VISIBLE="1")
    own.jobs.endless.apply_async(("hard",), countdown=0.2)
    own.wait(["hard"])
    first.kill()
    wait_invisible(own)
    own.worker(VISIBLE="1")
    own.wait(["hard"], 2)


@pytest.mark.long(only=True)
def test_a_task_for_all_workers_is_held_by_each(own):
    with open(own.folder / "shop.py", "a", encoding="utf-8") as file:
        file.write("from kombu import Queue\nfrom kombu.common import Broadcast\n"
                   "app.conf.task_queues = [Queue('celery'), Broadcast('everybody')]\n")
    own.app, own.jobs = load(own.folder, "shop").app, load(own.folder, "jobs")
    for number in range(2):
        own.worker(["-n", f"w{number}"])
    wait_until(lambda: len(own.app.control.inspect(timeout=ASK_S, limit=2).ping() or {}) == 2)
    own.note("all", countdown=2, queue="everybody", declare=[own.app.amqp.queues["everybody"]])
    wait_until(lambda: len(own.app.control.inspect(timeout=ASK_S, limit=2).scheduled() or {}) == 2)
    assert not own.r.exists(PARKED)
    own.wait(["all"], 2)


@pytest.mark.long(only=True)
def test_other_addresses_of_a_broker_park_too(fleet, tmp_path):
    path = str(tmp_path / "socket")
    server = fleet.server(unixsocket=path)
    sentinel = fleet.sentinel(server)
    for number, (address, options) in enumerate([
            (f"redis+socket://{path}", {}),
            (f"sentinel://{HOST}:{sentinel.port}", {"master_name": sentinel.name})]):
        app = Celery("other", broker=address)
        app.conf.broker_transport_options = options
        app.send_task("jobs.note", ("x",), countdown=HOUR, task_id=f"x{number}")
        assert tickwheel.celery.parked(app, f"x{number}")
        app.close()
    assert server.client().execute_command("TW.LEN", PARKED) == 2
    tls = Connection("rediss://any", ssl={"ssl_cert_reqs": "required"})
    assert type(tls.transport) is tickwheel.celery.Transport and tls.ssl
