# SPDX-License-Identifier: MIT
"""run_ready() of the workers with threads and with asyncio, in both homes: a program tests its handlers. No
test waits for a due time, as promote skips each delay."""
import asyncio
import contextlib
import inspect
import shutil
import signal
import sqlite3
import threading
import time

import pytest
from eventually import wait_until_async
from harness import PATIENCE
from python_package import new_file
from subject import url_of

import tickwheel
import tickwheel.aio
from tickwheel import Back, Counts, Dead, Retry, WorkerError

HOUR_S = 3600


async def settled(value):
    """Returns a value, or the result of a coroutine."""
    return await value if inspect.isawaitable(value) else value


class Desk:
    """A queue of one package, and workers. All calls are awaited: desk.put() is that of the queue."""

    def __init__(self, kit, url, key):
        self.kit, self.client, self.key = kit, kit.connect(url), key
        self.queue = kit.Queue(self.client, key)

    def __getattr__(self, name):
        async def call(*words, **options):
            return await settled(getattr(self.queue, name)(*words, **options))
        return call

    @property
    def in_threads(self):
        return self.kit is tickwheel

    def worker(self, handler, *queues, timeout=None, **options):
        """The handler of asyncio awaits what this one returns."""
        async def awaiting(job):
            await settled(handler(job))

        made = self.kit.Worker(self.client, **options)
        made.add(handler if self.in_threads else awaiting, *(queues or [self.key]), timeout=timeout)
        return made

    async def ready(self, worker, **options):
        return await settled(worker.run_ready(**options))

    async def close(self):
        await settled(self.client.close())
        if hasattr(self.client, "connection_pool"):
            await settled(self.client.connection_pool.disconnect())


@pytest.fixture(scope="module")
def blank(tmp_path_factory):
    """An empty file with the tables, of which each test has a copy."""
    return new_file(tmp_path_factory.mktemp("blank")).removeprefix("sqlite:///")


def in_a_loop(test, kit, url, queue):
    async def whole():
        desk = Desk(kit, url, queue)
        try:
            await test(desk)
        finally:
            await desk.close()
    asyncio.run(asyncio.wait_for(whole(), PATIENCE))


def in_each_home(test):
    """Runs a coroutine function with a desk of each kind in each home."""
    @pytest.mark.parametrize("kit", [tickwheel, tickwheel.aio], ids=["threads", "asyncio"])
    @pytest.mark.parametrize("home", ["server", "file"])
    def run(kit, home, request, tmp_path, queue):
        if home == "server":
            url = url_of(request.getfixturevalue("common"))
        else:
            url = f"sqlite:///{shutil.copy(request.getfixturevalue('blank'), tmp_path / 'own.db')}"
        in_a_loop(test, kit, url, queue)
    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


@in_each_home
async def test_ready_tasks_are_done_in_their_order(desk):
    """Also those that a handler puts meanwhile. A task that waits stays."""
    seen = []

    def handler(job):
        seen.append(job.id)
        return desk.queue.put("c", "x") if job.id == "a" else None

    worker = desk.worker(handler)
    for id in "ab":
        await desk.put(id, "x")
    await desk.put("z", "x", delay=HOUR_S)
    assert await desk.ready(worker) == Counts(done=3) and seen == ["a", "b", "c"]
    assert await desk.ready(worker) == Counts() and (await desk.get("z")).state == "waiting"
    assert worker.counts == Counts(done=3)


@in_each_home
async def test_promote_skips_a_delay_and_each_backoff(desk):
    def handler(job):
        if job.attempt < 3:
            raise OSError("away")

    worker = desk.worker(handler)
    await desk.put("a", "x", delay=HOUR_S, backoff=(HOUR_S,))
    assert await desk.ready(worker) == Counts()
    for counts in (Counts(failed=1), Counts(failed=1), Counts(done=1)):
        assert await desk.promote("a") is True
        assert await desk.ready(worker) == counts
    assert worker.counts == Counts(done=1, failed=2) and await desk.count() == 0


@in_each_home
async def test_the_ends_of_an_attempt(desk):
    """raise_errors raises no error that a handler means for its worker."""
    raised = {"back": Back(HOUR_S), "retry": Retry(HOUR_S, "busy"), "dead": Dead("no use"),
              "last": OSError("away"), "next": OSError("gone")}

    def handler(job):
        raise raised[job.id]

    worker = desk.worker(handler)
    for id in raised:
        await desk.put(id, "x", tries=1 if id == "last" else 2, backoff=(HOUR_S,))
    with pytest.raises(OSError) as error:
        await desk.ready(worker, raise_errors=True)
    assert error.value is raised["last"] and worker.counts == Counts(failed=3, died=2, back=1)
    assert (await desk.get("next")).attempt == 0
    assert await desk.ready(worker) == Counts(failed=1)
    assert [(one.id, one.error) for one in await desk.dead()] == [("dead", "no use"), ("last", "OSError: away")]
    for id, attempt, said in (("back", 0, ""), ("retry", 1, "busy"), ("next", 1, "OSError: gone")):
        task = await desk.get(id)
        assert (task.state, task.attempt, task.error) == ("waiting", attempt, said)
    assert await desk.replay("last") is True and await desk.ready(worker) == Counts(failed=1, died=1)


@in_each_home
async def test_periods(desk):
    """Those of a series one after the other, those that were missed, and those that are too late."""
    seen = []
    worker = desk.worker(lambda job: seen.append((job.due, job.missed_periods)))
    await desk.put("a", "x", at=4e9, every=HOUR_S, times=3)
    while await desk.promote_all():
        assert await desk.ready(worker) == Counts(done=1)
    assert seen == [(4e9, 0), (4e9 + HOUR_S, 0), (4e9 + 2 * HOUR_S, 0)] and await desk.count() == 0
    await desk.put("b", "x", at=time.time() - 2.5 * HOUR_S, every=HOUR_S)
    await desk.put("c", "x", at=time.time() - HOUR_S, max_late=60)
    assert await desk.ready(worker) == Counts(done=1) and seen[3][1] == 2
    assert await desk.get("c") is None and (await desk.get("b")).state == "waiting"


@in_each_home
async def test_a_handler_that_makes_a_task_ready_each_time(desk):
    """The call ends at its limit, and the task is ready still. So many attempts as the limit are no error."""
    calls = []

    def handler(job):
        calls.append(job.id)
        if job.id == "a":
            raise Back(0)

    worker = desk.worker(handler)
    await desk.put("a", "x")
    with pytest.raises(RuntimeError, match="^5 attempts were made, and <Job .* a attempt 1> is ready: raise "):
        await desk.ready(worker, limit=5)
    task = await desk.get("a")
    assert (task.state, task.attempt, len(calls)) == ("ready", 0, 5) and worker.counts == Counts(back=6)
    await desk.cancel("a")
    for number in range(5):
        await desk.put(str(number), "x")
    assert await desk.ready(worker, limit=5) == Counts(done=5)
    for limit, kind in ((0, ValueError), (2**31, ValueError), (True, TypeError), (None, TypeError)):
        with pytest.raises(kind, match=f"limit is {limit}: expected an integer from 1 to 2147483647"):
            await desk.ready(worker, limit=limit)
    with pytest.raises(ValueError, match="the worker has no handler"):
        await desk.ready(desk.kit.Worker(desk.client))


@in_each_home
async def test_an_exception_that_is_not_about_the_task_is_always_raised(desk):
    class End(BaseException):
        """As that of pytest.fail()."""

    def handler(job):
        raise End("over")

    worker = desk.worker(handler)
    await desk.put("a", "x")
    with pytest.raises(End):
        await desk.ready(worker)
    assert (await desk.get("a")).error == "End: over" and worker.counts == Counts(failed=1)


@in_each_home
async def test_stop_ends_one_call(desk):
    worker = desk.worker(lambda job: worker.stop())
    for id in "ab":
        await desk.put(id, "x")
    assert await desk.ready(worker) == Counts(done=1) and await desk.count() == 1
    assert await desk.ready(worker) == Counts(done=1) and await desk.count() == 0


@in_each_home
async def test_a_worker_runs_once_but_works_on_ready_tasks_again_and_again(desk):
    def handler(job):
        return worker.run_ready()

    worker = desk.worker(handler)
    await desk.put("a", "x")
    with pytest.raises(RuntimeError, match="the worker runs, or has run: make another one for run_ready()"):
        await desk.ready(worker, raise_errors=True)
    worker.add(worker._settings.handlers[desk.key], "other")
    worker.stop()
    assert await settled(worker.run(signals=False)) == worker.counts == Counts(failed=1)
    with pytest.raises(RuntimeError, match="the worker runs, or has run"):
        await desk.ready(worker)


@in_each_home
async def test_several_queues(desk):
    """The first one is emptied before the others."""
    seen, keys = [], [f"{desk.key}:{number}" for number in range(3)]
    worker = desk.worker(lambda job: seen.append((job.queue, job.id)), *keys)
    for id in "ab":
        for key in reversed(keys):
            await settled(desk.kit.Queue(desk.client, key).put(id, "x"))
    assert await desk.ready(worker) == Counts(done=6) and seen == [(key, id) for key in keys for id in "ab"]


@in_each_home
async def test_heartbeats_and_the_time_limit(desk):
    """They are those of run(): a handler learns that its task was cancelled, or that its time is over."""
    def handler(job):
        if desk.in_threads:
            if job.id == "a":
                desk.queue.cancel("a")
            seen.append((job.wait(PATIENCE), job.not_yours))
            return None
        return waiting(job)

    async def waiting(job):
        if job.id == "a":
            await desk.queue.cancel("a")
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            seen.append((job.over, job.not_yours))

    seen, soon_s = [], 0.05
    await desk.put("a", "x")
    assert await desk.ready(desk.worker(handler, lease=0.3), raise_errors=True) == Counts(not_yours=1)
    await desk.put("b", "x", backoff=(HOUR_S,))
    worker = desk.worker(handler, timeout=soon_s)
    with pytest.raises(TimeoutError, match="the time limit of 0.05 s is over"):
        await desk.ready(worker, raise_errors=True)
    assert seen == [(True, True), (True, False)] and worker.counts == Counts(failed=1)
    assert (await desk.get("b")).state == "waiting"


@in_each_home
async def test_it_leaves_nothing_behind(desk):
    """The handler of threads runs in the thread of the caller. Signals stay as they are."""
    seen, before = [], [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]

    def handler(job):
        seen.append((threading.current_thread(),
                     [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]))
        raise OSError("away")

    async def connections():
        said = await settled(desk.client.execute_command("INFO", "clients")) if at_server else {}
        return said.get("connected_clients", 0)

    worker, at_server = desk.worker(handler), hasattr(desk.client, "connection_pool")
    await desk.put("a", "x")
    count = await connections()
    with pytest.raises(OSError):
        await desk.ready(worker, raise_errors=True)
    while await connections() > count:
        await asyncio.sleep(0)  # The server notices their ends one after the other.
    assert seen == [(threading.main_thread(), before)]
    kept = () if desk.in_threads else ("tickwheel-file",)  # of the client
    await wait_until_async(lambda: not [one for one in threading.enumerate()
                                        if one.name.startswith("tickwheel") and not one.name.startswith(kept)])
    assert [one.get_name() for one in asyncio.all_tasks() if one.get_name().startswith("tickwheel")] == []


@contextlib.asynccontextmanager
async def refusing(desk):
    """The home refuses all commands about the queue: its key is no queue, or somebody else writes the file."""
    if hasattr(desk.client, "connection_pool"):
        await settled(desk.client.set(desk.key, "no queue"))
        yield "WRONGTYPE"
        await settled(desk.client.delete(desk.key))
        return
    file = desk.client if desk.in_threads else desk.client.file
    file.timeout = 0  # of new connections

    def hurry():
        file._db().execute("PRAGMA busy_timeout = 0")

    hurry() if desk.in_threads else desk.client.threads.submit(hurry).result(PATIENCE)
    with contextlib.closing(sqlite3.connect(file.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield "database is locked"


@in_each_home
async def test_no_command_is_sent_again(desk):
    """A worker that runs would wait for the end of a lock. Here the error is told at once."""
    worker = desk.worker(lambda job: None)
    async with refusing(desk) as said:
        with pytest.raises(WorkerError, match=f"TW.TAKE {desk.key}: {said}"):
            await desk.ready(worker)
    await desk.put("a", "x")
    assert await desk.ready(worker) == Counts(done=1)


@in_each_home
async def test_a_result_that_is_refused(desk):
    """The error of the home is raised, rather than the one of the handler. The result counts for nothing."""
    refusal = refusing(desk)

    async def handler(job):
        said.append(await refusal.__aenter__())
        raise ZeroDivisionError("of the handler")

    said, worker = [], desk.kit.Worker(desk.client)
    if desk.in_threads:
        worker.add(lambda job: driven(handler(job)), desk.key)
    else:
        worker.add(handler, desk.key)
    await desk.put("a", "x")
    with pytest.raises(WorkerError, match=f"TW.NACK {desk.key}: (WRONGTYPE|database is locked)"):
        await desk.ready(worker, raise_errors=True)
    await refusal.__aexit__(None, None, None)
    assert len(said) == 1 and worker.counts == Counts(not_yours=1) and await desk.ready(worker) == Counts()


def driven(coroutine):
    """Runs a coroutine that never waits."""
    with contextlib.suppress(StopIteration):
        coroutine.send(None)


def test_a_server_that_is_away(queue):
    async def test(desk):
        with pytest.raises(WorkerError, match=f"TW.TAKE {queue}: "):
            await desk.ready(desk.worker(lambda job: None))
    for kit in (tickwheel, tickwheel.aio):
        in_a_loop(test, kit, "redis://127.0.0.1:1", queue)


def test_a_call_that_is_cancelled(common, queue):
    """The handler is cancelled, and its task given back. The worker may begin anew."""
    async def test(desk):
        begun, worker = [], tickwheel.aio.Worker(desk.client)

        @worker.task(queue)
        async def handler(job):
            begun.append(job.attempt)
            if len(begun) == 1:
                await asyncio.get_running_loop().create_future()

        await desk.put("a", "x")
        call = asyncio.create_task(worker.run_ready())
        await wait_until_async(lambda: begun)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert worker.counts == Counts(back=1) and (await desk.get("a")).state == "ready"
        assert await worker.run_ready() == Counts(done=1) and begun == [1, 1]
    in_a_loop(test, tickwheel.aio, url_of(common), queue)
