# SPDX-License-Identifier: MIT
"""The plug-in for RQ (clients/python/tickwheel/rq.py), with Debian's RQ, a real server and real workers. The
worker is that of docs/frameworks.md."""
import contextlib
import importlib
import runpy
import shutil
import sys
from datetime import datetime, timedelta, timezone

import pytest
import redis
import rq
from harness import PATIENCE, now_ms, wait_until
from rq.exceptions import InvalidJobOperation, NoSuchJobError
from rq.job import JobStatus
from rq.registry import StartedJobRegistry

from frameworks import Page, Seen, Worker, move_to, url_of
from tickwheel.rq import Job, Queue, ScheduledJobRegistry, adopt, move

HOUR = timedelta(hours=1)

JOBS = """
import time

import rq


def see(word, *more):
    row = " ".join(map(str, [word, time.time_ns() // 1000000, *more]))
    return rq.get_current_job().connection.rpush("seen", row)


def fail_once(word):
    see(word)
    job = rq.get_current_job()
    if not job.meta.get("again"):
        job.meta["again"] = True
        job.save_meta()
        raise ValueError(word)
"""


class Shop:
    """The programs of the page, the jobs above beside them, and their server."""

    def __init__(self, server, folder):
        self.server, self.folder, self.r, self.seen = server, folder, server.client(), Seen(server)
        self.connection = redis.Redis.from_url(url_of(server), socket_timeout=PATIENCE)
        self.page = Page(folder, server)
        (folder / "rq_jobs.py").write_text(JOBS, encoding="utf-8")
        self.workers = []

    def worker(self, plain=False):
        program, *words = self.page.words("rq")
        if plain:
            words = [word for word in words[:-4]] + ["--with-scheduler"]
        self.workers.append(Worker([sys.executable, shutil.which(program), *words], str(self.folder),
                                   name=f"worker{len(self.workers)}"))
        return self.workers[-1]

    def queue(self, name="default"):
        return Queue(name, connection=self.connection)

    def see_in(self, word, ms, name="default", **options):
        return self.queue(name).enqueue_in(timedelta(milliseconds=ms), "rq_jobs.see", word, **options)

    def wait(self, words, count=None):
        return self.seen.wait(words, count, lambda: "\n".join(worker.log() for worker in self.workers))

    def close(self):
        for worker in self.workers:
            worker.kill()
        self.connection.connection_pool.disconnect()


@pytest.fixture(scope="module")
def shop(common, tmp_path_factory):
    """The shop with a worker, which starts while the first tests run."""
    with contextlib.closing(Shop(common, tmp_path_factory.mktemp("rq"))) as made:
        made.worker()
        yield made


# Queues without a worker


def test_a_scheduled_job_is_parked_and_known(shop):
    queue, now = shop.queue("far"), datetime.now(timezone.utc)
    jobs = [queue.enqueue_at(now + hours * HOUR, "rq_jobs.see", "far") for hours in (3, 1, 2)]
    registry = queue.scheduled_job_registry
    ids = [jobs[number].id for number in (1, 2, 0)]
    assert (queue.count, registry.count, len(registry)) == (0, 3, 3)
    assert registry.get_job_ids() == ids and registry.get_job_ids(1, 1) == ids[1:2]
    assert registry.get_job_ids(-2, -1) == ids[1:] and registry.get_job_ids(0, -2) == ids[:2]
    assert jobs[0] in registry and jobs[0].id in registry and "nobody" not in registry
    assert timedelta(0) <= registry.get_scheduled_time(jobs[1]) - (now + HOUR) < timedelta(milliseconds=1)
    with pytest.raises(NoSuchJobError):
        registry.get_scheduled_time("nobody")
    assert jobs[0].get_status() == JobStatus.SCHEDULED
    assert not shop.r.exists("rq:scheduled:far") and "rq:queue:far" in shop.r.smembers("rq:queues")
    assert abs(Job.fetch(ids[0], shop.connection).enqueued_at - (now + HOUR).replace(tzinfo=None)) < HOUR / 60
    assert registry.remove(jobs[0]) == 1 and registry.count == 2


def test_pages_of_many_jobs(shop):
    registry = shop.queue("many").scheduled_job_registry
    with shop.connection.pipeline() as pipe:
        for number in range(2001):
            pipe.execute_command("TW.SEND", registry.key, "rq:queue:many", number, "AT", 4102444800000, "LIST",
                                 "PAYLOAD", number)
        pipe.execute()
    assert registry.get_job_ids() == [str(number) for number in range(2001)]
    shop.r.delete(registry.key)


def test_cancel_and_delete_reach_parked_jobs(shop):
    jobs = [shop.see_in("never", 3600000, "cancelled") for _ in range(2)]
    registry = shop.queue("cancelled").scheduled_job_registry
    jobs[0].cancel()
    assert (registry.get_job_ids(), jobs[0].get_status()) == ([jobs[1].id], JobStatus.CANCELED)
    Job.fetch(jobs[1].id, shop.connection).delete()
    assert registry.count == 0 and not Job.exists(jobs[1].id, shop.connection)


def test_a_job_that_is_parked_no_more_is_queued_and_can_be_cancelled(shop):
    job = shop.see_in("due", 0, "due")
    wait_until(lambda: shop.queue("due").count == 1)
    assert job.get_status() == JobStatus.QUEUED
    job.cancel()
    assert shop.queue("due").count == 0


def test_at_front_and_requeue(shop):
    queue = shop.queue("front")
    behind = queue.enqueue("rq_jobs.see", "behind")
    last, front = shop.see_in("last", 3600000, "front"), shop.see_in("front", 3600000, "front", at_front=True)
    for job in (last, front):
        assert queue.scheduled_job_registry.requeue(job) == job
    wait_until(lambda: queue.count == 3)
    assert queue.job_ids == [front.id, behind.id, last.id]
    with pytest.raises(InvalidJobOperation):
        queue.scheduled_job_registry.requeue(front)
    with pytest.raises(ValueError, match="at_front"):
        queue.scheduled_job_registry.requeue(front, at_front=True)


def test_the_time_to_live_counts_from_the_due_time(shop):
    job = shop.see_in("ttl", 3600000, "ttl", ttl=60)
    registry = shop.queue("ttl").scheduled_job_registry

    def expires():
        due = registry.get_scheduled_time(job)
        return shop.r.execute_command("PEXPIRETIME", job.key) - round(due.timestamp() * 1000)

    assert expires() == 60000
    assert move(job, timedelta(hours=2)) and expires() == 60000
    assert registry.get_scheduled_time(job) - datetime.now(timezone.utc) > HOUR
    moved = Job.fetch(job.id, shop.connection).enqueued_at.replace(tzinfo=timezone.utc)
    assert abs(moved - registry.get_scheduled_time(job)) < timedelta(milliseconds=1)
    job.delete()
    assert move(job, HOUR) is False


def test_a_job_whose_worker_died_is_parked_for_its_retry(shop):
    job = shop.queue("wip").enqueue("rq_jobs.see", "wip", retry=rq.Retry(max=1, interval=3600))
    shop.r.delete("rq:queue:wip")
    shop.r.zadd("rq:wip:wip", {job.id: 1})
    StartedJobRegistry("wip", connection=shop.connection, job_class=Job).cleanup()
    assert job in shop.queue("wip").scheduled_job_registry and job.get_status() == JobStatus.SCHEDULED


def test_jobs_of_the_old_set_are_adopted(shop):
    old, queue = rq.Queue("old", connection=shop.connection), shop.queue("old")
    jobs = [old.enqueue_in(HOUR, "rq_jobs.see", "old", **more)
            for more in ({"ttl": 60}, {"at_front": True}, {})]
    due = [int(shop.r.zscore("rq:scheduled:old", job.id)) * 1000 for job in jobs]
    shop.r.delete(jobs[2].key)
    shop.r.set("rq:scheduler-lock:old", "1")
    with pytest.raises(InvalidJobOperation, match="rq:scheduler-lock:old"):
        adopt(queue)
    shop.r.delete("rq:scheduler-lock:old")
    assert [adopt(queue) for _ in range(2)] == [3, 0]
    rows = [shop.r.execute_command("TW.GET", "rq:tickwheel:old", job.id)[0] for job in jobs]
    assert [row and (row[1], row[11], row[-1]) for row in rows] == [
        (due[0], "list", [jobs[0].id]), (due[1], "list left", [jobs[1].id]), None]
    assert not shop.r.exists("rq:scheduled:old")
    assert shop.r.execute_command("PEXPIRETIME", jobs[0].key) == due[0] + 60000


# With the worker


def test_jobs_come_in_due_order_and_not_early(shop):
    names = [shop.see_in(word, 3600000).id for word in ("c", "a", "b")]
    assert shop.queue().count == 0
    began = now_ms()
    move_to(shop.r, "rq:tickwheel:default", {name: began + ms for name, ms in zip(names, (400, 100, 250))})
    rows = shop.wait(["a", "b", "c"])
    assert [row[0] for row in rows] == ["a", "b", "c"]
    assert all(at >= began + ms for (_, at), ms in zip(rows, (100, 250, 400))), (began, rows)


def test_a_retry_is_parked(shop):
    job = shop.queue().enqueue("rq_jobs.fail_once", "again", retry=rq.Retry(max=1, interval=[0.3]))
    (_, first), (_, second) = shop.wait(["again"], 2)
    assert second >= first + 300
    wait_until(lambda: job.get_status() == JobStatus.FINISHED)
    assert not shop.r.exists("rq:scheduled:default")


def test_the_example_of_the_page(shop, capsys, monkeypatch):
    monkeypatch.syspath_prepend(str(shop.folder))
    importlib.invalidate_caches()
    runpy.run_path(str(shop.folder / "shop_rq.py"))
    said = capsys.readouterr().out.splitlines()
    assert said == ["order 42 is due in 60 minutes", "order 42 is paid: canceled"]
    shop.workers[0].wait_log("order 43 has expired")
    assert "order 42 has" not in shop.workers[0].log()


# Longer


@pytest.fixture
def own(fleet, tmp_path):
    """A shop with a server of its own, which writes each command to its file, and without a worker."""
    with contextlib.closing(Shop(fleet.server(appendonly="yes"), tmp_path)) as made:
        yield made


def assert_once_each(own, words):
    own.wait(words)
    own.see_in("last", 200)
    own.wait(["last"])
    assert sorted(row[0] for row in own.seen.rows(words)) == sorted(words)


@pytest.mark.long(only=True)
def test_a_worker_and_a_server_that_are_killed_lose_no_parked_job(own):
    worker = own.worker()
    worker.wait_log("Listening on")
    words = [f"w{number}" for number in range(30)]
    names = [own.see_in(word, 3600000).id for word in words]
    worker.kill()
    own.server.kill()
    own.server.start()
    own.r, own.seen, now = own.server.client(), Seen(own.server), now_ms()
    move_to(own.r, "rq:tickwheel:default", {name: now + 20 * number for number, name in enumerate(names)})
    own.worker()
    assert_once_each(own, words)


@pytest.mark.long(only=True)
def test_a_running_system_moves_over(own):
    old = own.worker(plain=True)
    old.wait_log("Listening on")
    words = [f"w{number}" for number in range(20)]
    plain = rq.Queue(connection=own.connection)
    for number, word in enumerate(words):
        plain.enqueue_in(timedelta(seconds=2 + number / 5) if number < 10 else HOUR, "rq_jobs.see", word)
    own.wait(words, 3)
    wait_until(lambda: own.r.exists("rq:scheduler-lock:default"))
    with pytest.raises(InvalidJobOperation):
        adopt(own.queue())
    old.stop()
    wait_until(lambda: not own.r.exists("rq:scheduler-lock:default"))
    assert adopt(own.queue()) >= 10
    own.r.execute_command("TW.PROMOTE", "rq:tickwheel:default", "ALL")
    own.worker()
    assert_once_each(own, words)
