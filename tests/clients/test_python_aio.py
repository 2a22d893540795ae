# SPDX-License-Identifier: MIT
"""The package for Python with asyncio: each call of Queue, and the parts of a worker that only asyncio has.
test_python.py has the same for threads, test_workers.py the behaviour that all languages share."""
import asyncio
import contextlib
import functools
import inspect
import logging

import pytest
import redis
import redis.asyncio
from effects import act, judge, names as acts, new_effects
from eventually import wait_until_async
from harness import HOST, PATIENCE, free_port
from python_package import LIMITS, bad_arguments, new_file
from subject import url_of

import tickwheel
import tickwheel.aio
from tickwheel import Counts, Dead, Retry, WorkerError
from tickwheel.aio import Queue, Worker, _file, _links


def in_a_loop(test):
    """Runs a test that is a coroutine function, with a time limit."""
    @functools.wraps(test)
    def run(**fixtures):
        asyncio.run(asyncio.wait_for(test(**fixtures), PATIENCE))
    return run


class Place:
    """A client of the server, a queue of it, and workers, which are made in the event loop of a test."""

    def __init__(self, url, queue, **options):
        self.client, self.in_file = tickwheel.aio.connect(url, **options), url.startswith("sqlite:")
        self.work = Queue(self.client, queue)
        self.key, self.runs = queue, []

    def start(self, worker):
        """Lets the worker run beside the test."""
        self.runs.append(asyncio.create_task(worker.run(signals=False)))
        return self.runs[-1]

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        for run in self.runs:
            run.cancel()
        await asyncio.gather(*self.runs, return_exceptions=True)
        await self.client.close()
        if not self.in_file:
            await self.client.connection_pool.disconnect()


@pytest.fixture(params=["bytes", "str", "file"])
def place(queue, request, tmp_path):
    if request.param == "file":
        return functools.partial(Place, new_file(tmp_path), queue)
    return functools.partial(Place, url_of(request.getfixturevalue("common")), queue,
                             decode_responses=request.param == "str")


at_server = pytest.mark.parametrize("place", ["bytes", "str"], indirect=True)


def names():
    """The names of the tasks of the event loop."""
    return [one.get_name() for one in asyncio.all_tasks()]


@in_a_loop
async def test_the_calls_of_a_queue(place, tmp_path):
    async with place() as here:
        work = here.work
        many = [] if here.in_file else [b"\xff"]
        assert await work.put("a", tickwheel.aio.Values("x", *many), at=4e9, tries=2, backoff=(1, 2, 3)) == "a"
        assert await work.put("a", "y", delay=1, condition="nx") is None
        task = await work.get("a")
        assert task.payload == (b"x", *many) and task.due == 4e9 and await work.get("none") is None
        assert await work.move("a", delay=60) is True and await work.move("none", delay=1) is None
        assert await work.count() == 1 and (await work.next())[0] == "a"
        assert [id async for id, *_ in work.scan("?")] == [id async for id, *_ in work.range()] == ["a"]
        assert await work.forecast(1000, 2) == [1, 0] and (await work.stats()).waiting == 1
        assert await work.pause() is True and await work.resume() is True
        assert await work.promote("a") is True and await work.promote_all() == 0
        assert await work.move("a", delay=0) is True
        assert (await work.get("a")).state == "ready"
        job = (await here.client.execute_command("TW.TAKE", 1, here.key, "LEASE", 9999, "BLOCK", 9999,
                                                 NEVER_DECODE=True))[0]
        await here.client.execute_command("TW.NACK", here.key, "a", job[2], "DEAD", "ERROR", "no")
        assert [one.error for one in await work.dead()] == ["no"]
        assert [one.id async for one in work.all_dead()] == ["a"]
        assert await work.replay("a", delay=60) is True and await work.replay_all() == 0
        assert await work.purge("a") is False and await work.purge_all() == 0 and await work.cancel("a") == [1]
        assert await work.stats() is None and [row async for row in work.range()] == []
        if here.in_file:
            with pytest.raises(NotImplementedError, match="TW.SEND: a file has no targets"):
                await work.send("t", "a", {"x": 1})
        else:
            assert await work.send(here.key + ":t", "a", {"x": 1}, delay=60) == "a" and await work.cancel("a")
        for call, said in bad_arguments(work):
            with pytest.raises((TypeError, ValueError)) as error:
                await call()
            assert said in str(error.value)
        for other in (redis.Redis(), tickwheel.connect(new_file(tmp_path))):
            with pytest.raises(TypeError, match="expected one of redis.asyncio, or of tickwheel.aio.connect"):
                Queue(other, work.key)


@at_server
@in_a_loop
async def test_a_transaction(place):
    async with place() as here:
        async with here.client.pipeline() as pipe:
            assert await here.work.on(pipe).put("a", "x", delay=60) is pipe
            pipe.execute_command(*here.work.put_words("b", "x", delay=60))
            assert await here.work.count() == 0
            assert len(await pipe.execute()) == 2
        assert await here.work.count() == 2
        async with here.client.pipeline() as pipe:
            await pipe.watch(here.key)
            assert (await here.work.on(pipe).get("a")).text == "x"  # At once, since the pipeline watches.


@in_a_loop
async def test_commands_that_wait_are_sent_together():
    sent, go, link = [], [], _links.Link(None, 30, 5)

    async def send(commands):
        sent.append("".join(name for name, in commands))
        await wait_until_async(lambda: go)
        if "f" in sent[-1]:
            raise redis.ConnectionError("gone")
        return [redis.ResponseError("ERR no") if name == "c" else name.upper() for name, in commands]

    link.send = send
    calls = [asyncio.create_task(link.call(["a"]))]
    await wait_until_async(lambda: sent)
    calls += [asyncio.create_task(link.call([name])) for name in "bcde"]
    await wait_until_async(lambda: len(link.waiting) == 4)
    calls[3].cancel()
    go.append(True)
    ends = await asyncio.gather(*calls, return_exceptions=True)
    assert [str(end) for end in ends] == ["A", "B", "ERR no", "", "E"] and sent == ["a", "bcde"]
    failed = await asyncio.gather(link.call(["f"]), link.call(["g"]), return_exceptions=True)
    assert [str(end) for end in failed] == ["gone", "gone"] and sent[2:] == ["fg"]
    assert await link.call(["h"]) == "H"


def test_both_kinds_of_queue_have_the_same_calls():
    mine, other = (inspect.getmembers(kind, inspect.isfunction) for kind in (Queue, tickwheel.Queue))
    assert {name: str(inspect.signature(call)).replace("AsyncIterator", "Iterator") for name, call in mine} == {
        name: str(inspect.signature(call)) for name, call in other}


@in_a_loop
async def test_a_worker_and_its_exceptions(place, caplog):
    """No exception of a handler ends the worker, a cancellation that the handler makes up included."""
    raised = {"e": KeyError("x"), "s": SystemExit(3), "k": KeyboardInterrupt(), "r": Retry(60, "busy"),
              "d": Dead("no use"), "c": asyncio.CancelledError(), "ok": None}
    async with place() as here:
        worker = Worker(here.client, jobs=3, lease=30)

        @worker.task(here.key)
        async def handler(job):
            if raised[job.id] is not None:
                raise raised[job.id]

        for id in raised:
            await here.work.put(id, id, tries=2, backoff=(60,))
        run = here.start(worker)
        await wait_until_async(lambda: sum(worker.counts) - worker.counts.died == len(raised))
        worker.stop()
        assert await run == worker.counts == Counts(done=1, failed=6, died=1)
        errors = [(await here.work.get(id)).error for id in "eskrdc"]
        assert errors == ["KeyError: 'x'", "SystemExit: 3", "KeyboardInterrupt", "busy", "no use",
                          "CancelledError"]
        with pytest.raises(RuntimeError, match="make another"):
            await worker.run()
    failed = [one.getMessage() for one in caplog.records if one.getMessage().endswith("> failed")]
    assert len(failed) == 3 and handler.__name__ == "handler"


@in_a_loop
async def test_each_result_is_told(place, caplog):
    """By on_end, in the event loop, and before it is counted."""
    limit_s = 0.05
    told, raised = [], {"fail": KeyError("x"), "die": Dead("no use"), "ok": None}
    async with place() as here:
        worker = Worker(here.client, on_end=lambda *words: told.append((words[0].id, *words[1:])))

        @worker.task(here.key)
        async def handler(job):
            if raised[job.id] is not None:
                raise raised[job.id]

        @worker.task(here.key + ":slow", timeout=limit_s)
        async def slow(job):
            await asyncio.get_running_loop().create_future()

        for id in raised:
            await here.work.put(id, "x", backoff=(60,))
        await Queue(here.client, here.key + ":slow").put("late", "x", backoff=(60,))
        run = here.start(worker)
        await wait_until_async(lambda: worker.counts == Counts(done=1, failed=3, died=1))
        worker.stop()
        await run
        with pytest.raises(TypeError, match="on_end is .*: expected a function, which is not awaited"):
            Worker(here.client, on_end=asyncio.sleep)
    ends = {id: (end, error) for id, end, error in told}
    assert isinstance(ends.pop("late")[1], TimeoutError) and len(told) == 4
    assert ends == {"fail": ("failed", raised["fail"]), "die": ("died", raised["die"]), "ok": ("done", None)}
    said = [one.getMessage() for one in caplog.records]
    assert f"<Job {here.key} die attempt 1> is dead: Dead: no use" in said


@in_a_loop
async def test_a_handler_is_cancelled_when_its_task_is_not_yours(place):
    seen = []
    async with place() as here:
        worker = Worker(here.client, lease=60)
        worker._settings.lease_s = 0.3  # A heartbeat each 0.1 s. The lease lasts.

        @worker.task(here.key)
        async def handler(job):
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                seen.append((job.not_yours, job.over))
                raise

        await here.work.put("a", "x")
        run = here.start(worker)
        await wait_until_async(lambda: "tickwheel-handler-a" in names())
        await here.work.cancel("a")
        await wait_until_async(lambda: worker.counts == Counts(not_yours=1))
        worker.stop()
        await run
    assert seen == [(True, True)]


@pytest.mark.parametrize("how", ["grace", "cancel", "twice"])
def test_handlers_are_cancelled_and_their_tasks_given_back(place, how):
    """At the end of the grace, if run() is cancelled, and by give_up(); no call of the client is cut off."""
    @in_a_loop
    async def test():
        seen = []
        async with place() as here:
            worker = Worker(here.client, lease=30, grace=0.05)

            @worker.task(here.key)
            async def handler(job):
                try:
                    seen.append("begun")
                    await asyncio.get_running_loop().create_future()
                finally:
                    seen.append((job.not_yours, job.over))

            await here.work.put("a", "x")
            run = here.start(worker)
            await wait_until_async(lambda: seen)
            if how == "cancel":
                run.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await run
            else:
                worker.stop() if how == "grace" else worker.give_up()
                assert await run == Counts(back=1)
            assert worker.counts == Counts(back=1) and seen == ["begun", (False, True)]
            task = await here.work.get("a")
            assert (task.state, task.attempt) == ("ready", 0)
        await wait_until_async(lambda: not [name for name in names() if name.startswith("tickwheel")])
    test()


@in_a_loop
async def test_a_time_limit(place):
    """The attempt has failed when it is over, and the handler is cancelled."""
    seen, limit_s = [], 0.05
    async with place() as here:
        worker = Worker(here.client, jobs=1, lease=60)

        @worker.task(here.key, timeout=limit_s)
        async def handler(job):
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                seen.append((job.not_yours, job.over))

        await here.work.put("a", "x", tries=2, backoff=(60,))
        run = here.start(worker)
        await wait_until_async(lambda: worker.counts == Counts(failed=1))
        task = await here.work.get("a")
        assert (task.state, task.error) == ("waiting", "TimeoutError: the time limit of 0.05 s is over")
        worker.stop()
        assert await run == Counts(failed=1) and seen == [(False, True)]


@pytest.mark.parametrize("error", [OSError("away"), ZeroDivisionError("away")], ids=["for a while", "for good"])
def test_heartbeats_that_fail_are_told_once(place, caplog, monkeypatch, error):
    """A bug: the log got a line for each of them, ten a second."""
    beats = []

    @in_a_loop
    async def test():
        async with place() as here:
            kind = _file.FileLink if here.in_file else _links.Link
            call = kind.call

            async def failing(self, words):
                if words[0] == "TW.TOUCH":
                    beats.append(words)
                    raise error
                return await call(self, words)

            monkeypatch.setattr(kind, "call", failing)
            worker = Worker(here.client, lease=60)
            worker._settings.lease_s = 0.3  # A heartbeat each 0.1 s. The lease lasts.

            @worker.task(here.key)
            async def handler(job):
                await wait_until_async(lambda: len(beats) >= 5)

            await here.work.put("a", "x")
            run = here.start(worker)
            await wait_until_async(lambda: worker.counts == Counts(done=1))
            worker.stop()
            with contextlib.suppress(WorkerError):
                await run
            assert (worker._error is None) == isinstance(error, OSError)
    test()
    assert sum("away" in record.getMessage() for record in caplog.records) == 1


INCR = "return redis.call('INCR', KEYS[1])"


@at_server
@in_a_loop
async def test_a_script_with_the_acknowledgement(place, caplog):
    async with place() as here:
        worker, seen = Worker(here.client, jobs=1, lease=60), []

        @worker.task(here.key)
        async def handler(job):
            if job.id == "void":
                await here.work.cancel("void")
            if job.id == "wrong":
                with pytest.raises(tickwheel.TickwheelError, match="user_script"):
                    await job.ack_then("this is no Lua")
                return
            seen.append(await job.ack_then(INCR, [here.key + ":n"]))
            with pytest.raises(RuntimeError, match="was acknowledged before"):
                await job.ack_then(INCR, [here.key + ":n"])
            raise ValueError("no")

        for id in ("good", "void", "wrong"):
            await here.work.put(id, "x")
        run = here.start(worker)
        await wait_until_async(lambda: worker.counts == Counts(done=2, not_yours=1))
        worker.stop()
        await run
        assert seen == [1] and await here.work.count() == 0
    assert sum("failed after the acknowledgement" in one.getMessage() for one in caplog.records) == 1


@at_server
@pytest.mark.parametrize("how", ["limit", "give up"])
def test_a_handler_that_is_cancelled_while_its_script_is_under_way(place, monkeypatch, how):
    """At the end of its time limit, or of the worker. The script counts, and the attempt has not failed."""
    limit_s, begun, call = 0.05 if how == "limit" else PATIENCE, [], _links.Link.call

    async def slowly(self, words):
        if words[0] == "EVAL":
            begun.append("script")
            await wait_until_async(lambda: "cancelled" in begun)
        return await call(self, words)

    @in_a_loop
    async def test():
        async with place() as here:
            worker = Worker(here.client, lease=60)

            @worker.task(here.key, timeout=limit_s)
            async def handler(job):
                try:
                    await job.ack_then(INCR, [here.key + ":n"])
                finally:
                    begun.append("cancelled")

            await here.work.put("a", "x")
            run = here.start(worker)
            await wait_until_async(lambda: "script" in begun)
            worker.stop() if how == "limit" else worker.give_up()
            assert await run == Counts(done=1) and int(await here.client.get(here.key + ":n")) == 1
    monkeypatch.setattr(_links.Link, "call", slowly)
    test()
    assert begun == ["script", "cancelled"]


@at_server
@in_a_loop
async def test_heartbeats_end_with_the_acknowledgement(place, monkeypatch):
    beats, seen, call = [], [], _links.Link.call

    async def noting(self, words):
        if words[0] == "TW.TOUCH":
            beats.append(words[2])
        return await call(self, words)

    monkeypatch.setattr(_links.Link, "call", noting)
    async with place() as here:
        worker = Worker(here.client, lease=60)
        worker._settings.lease_s = 0.3  # A heartbeat each 0.1 s. The lease lasts.

        @worker.task(here.key)
        async def handler(job):
            if job.id == "a":
                await job.ack_then("return 1")
                seen.append(beats.count(b"a"))
                await wait_until_async(lambda: beats.count(b"b") >= 3)
                seen.append(beats.count(b"a"))
            await wait_until_async(lambda: len(seen) == 2)

        await here.work.put("a", "x")
        await here.work.put("b", "x")
        run = here.start(worker)
        await wait_until_async(lambda: worker.counts == Counts(done=2))
        worker.stop()
        assert await run == Counts(done=2) and len(seen) == 2 and seen[0] == seen[1]


async def beyond_its_limit(here, limit_s):
    """A handler that goes on for longer than its time limit after its acknowledgement. Returns its steps."""
    worker, seen = Worker(here.client, lease=60), []

    @worker.task(here.key, timeout=limit_s)
    async def handler(job):
        over = []
        asyncio.get_running_loop().call_later(limit_s, over.append, True)  # The limit has begun before.
        await job.ack_then("return 1")
        seen.append("acknowledged")
        await wait_until_async(lambda: over)
        seen.append("returned")

    await here.work.put("a", "x")
    run = here.start(worker)
    await wait_until_async(lambda: worker.counts == Counts(done=1))
    worker.stop()
    assert await run == Counts(done=1)
    return seen


@pytest.mark.parametrize("place", ["bytes"], indirect=True)
@in_a_loop
async def test_the_time_limit_ends_with_the_acknowledgement(place):
    """A busy machine may miss the first limit: its script is under way at the end."""
    async with place() as here:
        for limit_s in (0.1, 1, 10):
            seen = await beyond_its_limit(here, limit_s)
            if seen:
                assert seen == ["acknowledged", "returned"]
                return
    raise AssertionError("no script had its reply within ten seconds")


@pytest.mark.parametrize("place", ["file"], indirect=True)
@in_a_loop
async def test_the_acknowledgement_in_a_transaction_of_the_handler(place):
    """As with threads."""
    async with place() as here:
        worker, path = Worker(here.client, jobs=1, lease=60), here.client.file.path
        new_effects(path)

        @worker.task(here.key)
        async def handler(job):
            if job.id == "server":
                await job.ack_then("return 1")  # The home is a file.
            act(job, path)

        for id in acts():
            await here.work.put(id, "x", backoff=(60,))
        run = here.start(worker)
        await wait_until_async(lambda: sum(worker.counts) == len(acts()))
        worker.stop()
        await run
        judge(path, worker.counts, {id: (await here.work.get(id)).error async for id, *_ in here.work.scan()})


@in_a_loop
async def test_a_worker_that_is_stopped_before_it_runs(place):
    """A bug: at its end it closed connections that it had not opened, and raised AttributeError."""
    async with place() as here:
        worker = Worker(here.client)

        @worker.task(here.key)
        async def handler(_):
            pass

        worker.stop()
        assert await worker.run() == Counts()


@in_a_loop
async def test_many_jobs_at_once(place):
    """A hundred handlers wait for each other."""
    async with place() as here:
        worker, begun = Worker(here.client, jobs=100), []

        @worker.task(here.key)
        async def handler(job):
            begun.append(job.id)
            await wait_until_async(lambda: len(begun) == 100)

        for number in range(100):
            await here.work.put(str(number), "x")
        run = here.start(worker)
        await wait_until_async(lambda: worker.counts.done == 100)
        worker.stop()
        assert await run == Counts(done=100)


@at_server
@in_a_loop
async def test_wrong_handlers_and_errors_that_stay(place, caplog):
    caplog.set_level(logging.INFO, logger="tickwheel")
    async with place() as here:
        worker = Worker(here.client)
        with pytest.raises(TypeError, match="async def"):
            worker.add(print, "s")
        with pytest.raises(ValueError, match="no handler"):
            await worker.run()

        @worker.task(here.key)
        async def handler(_):
            pass

        await here.client.set(here.key, "no queue")
        with pytest.raises(WorkerError, match=f"TW.TAKE {here.key}: WRONGTYPE"):
            await worker.run()
        await here.client.delete(here.key)
    assert caplog.records[0].getMessage().startswith("ready; ")


@in_a_loop
async def test_a_stop_before_the_cluster_was_there(queue, caplog):
    """A bug: the worker had no connections yet, and ended with an AttributeError."""
    client = redis.asyncio.RedisCluster(host=HOST, port=free_port())
    worker = Worker(client)

    @worker.task(queue)
    async def handler(_):
        pass

    run = asyncio.create_task(worker.run(signals=False))
    await wait_until_async(lambda: warnings(caplog))
    worker.stop()
    assert await run == Counts()
    await client.close()


async def beyond(server, queue, limit):
    """A worker waits for a task for longer than its client waits for replies."""
    async with Place(url_of(server), queue, socket_timeout=limit, max_connections=1) as here:
        worker = Worker(here.client)

        @worker.task(queue)
        async def handler(_):
            pass

        await here.work.put("a", "x", delay=limit + 1)
        run = here.start(worker)
        await wait_until_async(lambda: worker.counts.done == 1)
        worker.stop()
        await run


@in_a_loop
async def test_the_client_keeps_its_own_connections(common, queue, caplog):
    """Its short time limit is not that of a TW.TAKE that waits."""
    for limit in LIMITS:
        caplog.clear()
        with contextlib.suppress(redis.TimeoutError):
            await beyond(common, queue, limit)
            if not warnings(caplog):
                return
    raise AssertionError(warnings(caplog))


def warnings(caplog):
    return [one for one in caplog.records if one.levelno >= logging.WARNING and one.name == "tickwheel"]
