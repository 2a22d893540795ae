# SPDX-License-Identifier: MIT
"""A worker for asyncio."""
from __future__ import annotations

import asyncio
import contextlib
import inspect
import signal
import threading
import time
from typing import Any, Awaitable, Callable, Iterator, List, Optional, Set, Tuple, TypeVar

from .. import _errors, _tasks
from .._clients import PATIENCE, check_client, groups
from .._errors import BACK, News, Outcome, Waits, WorkerError
from .._file import POLL_S
from .._signals import STOPPING
from .._tasks import Counts, Job
from .._words import Seconds, Words, encoded, take_words
from ..worker import (BLOCK_S, FIRST_UNBLOCK_S, LAST_TRIES, LAST_UNBLOCK_S, LIMIT, OnEnd, Places, Settings,
                      WorkerBase, log)
from ._file import File, FileLink

Handler = Callable[[Job], Awaitable[object]]
H = TypeVar("H", bound=Callable[..., Awaitable[object]])


def link(client: Any, keys: List[str], lease_s: float, finding: asyncio.Lock) -> Any:
    """Returns the worker's way to its queues, as the one for threads does."""
    if isinstance(client, File):
        return FileLink(client)
    from . import _links
    return _links.link(client, keys, lease_s, BLOCK_S, finding)


class Group:
    """The queues that one TW.TAKE can name, with their connections."""

    def __init__(self, keys: List[str], link: Any) -> None:
        self.keys, self.link = keys, link
        self.taker: asyncio.Future[None]  # It is done when nobody takes for this group.


class Worker(WorkerBase):
    """Takes tasks of queues, and calls a coroutine function for each. A Worker runs once, in one event
    loop, and its methods are for this loop alone.

    The arguments are those of tickwheel.Worker, with a client of redis.asyncio, and ten jobs at once. `on_end`
    is called in the event loop, so it is a plain function too, and short. When the task is not yours any more,
    and in give_up(), the handler is cancelled; `job.not_yours` tells the first from the second."""

    _file = File

    def __init__(self, client: Any, *, name: Optional[str] = None, lease: Seconds = 30.0, jobs: int = 10,
                 grace: Optional[Seconds] = None, on_end: Optional[OnEnd] = None) -> None:
        check_client(client, asyncio=True)
        self._settings, self._news = Settings(client, name, lease, jobs, grace, on_end), News()
        self._counts = Counts()
        self._tasks: Set[asyncio.Task[None]] = set()
        self._beats: Set[asyncio.Task[None]] = set()
        self._started = self._stopping = self._given_up = False
        self._error: Optional[WorkerError] = None
        self._changed: Optional[asyncio.Event] = None
        self._abandoned: Optional[asyncio.Future[None]] = None

    # Its handlers

    def task(self, *queues: str, timeout: Optional[Seconds] = None) -> Callable[[H], H]:
        """Makes the decorated coroutine function the handler of these queues. It gets a Job. `timeout`: seconds
        after which the attempt has failed, and the handler is cancelled."""
        def decorate(handler: H) -> H:
            self.add(handler, *queues, timeout=timeout)
            return handler
        return decorate

    def add(self, handler: Handler, *queues: str, timeout: Optional[Seconds] = None) -> None:
        """Makes a coroutine function the handler of these queues; see task(). Before run()."""
        if self._started:
            raise RuntimeError("the worker has started: add handlers before")
        call = getattr(handler, "__call__", None)
        if not inspect.iscoroutinefunction(handler) and not inspect.iscoroutinefunction(call):
            raise TypeError(f"handler is {handler!r}: expected a coroutine function (async def)")
        self._settings.add(handler, queues, timeout)

    # Its life

    async def run(self, signals: bool = True) -> Counts:
        """Works until stop(), and returns the counts. With `signals`, in the main thread, SIGTERM and SIGINT
        stop it; a second signal gives up. Raises WorkerError if the server refuses its commands for good. If
        it is cancelled, it gives up before it ends."""
        self._settings.check()
        if self._started:
            raise RuntimeError("the worker has started before: make another one")
        self._started = True
        life = asyncio.create_task(self._live(), name="tickwheel")
        with self._handled(signals):
            await self._through(life)
        if self._error is not None:
            raise self._error
        return self._counts

    async def _through(self, life: asyncio.Task[None]) -> None:
        """Waits for the end. If it is cancelled, the worker gives up, and ends before."""
        try:
            await asyncio.shield(life)
        except asyncio.CancelledError:
            self.give_up()
            await life
            raise

    def stop(self) -> None:
        """Takes no more tasks; handlers that run finish, and run() returns then."""
        self._stopping = True
        self._wake()

    def give_up(self) -> None:
        """Cancels the handlers, gives their tasks back to the server, and ends."""
        self._stopping = self._given_up = True
        if self._abandoned is not None and not self._abandoned.done():
            self._abandoned.set_result(None)
        self._wake()

    def _wake(self) -> None:
        """Wakes all that wait for a change."""
        if self._changed is not None:
            self._changed.set()
            self._changed = asyncio.Event()

    async def _wait_for(self, condition: Callable[[], bool], seconds: Optional[float] = None) -> bool:
        """Waits until the condition holds, at most so long. Returns whether it does."""
        end = None if seconds is None else time.monotonic() + seconds
        while not condition():
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                return False
            assert self._changed is not None
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._changed.wait(), left)
        return True

    @contextlib.contextmanager
    def _handled(self, wanted: bool) -> Iterator[None]:
        if not wanted or threading.current_thread() is not threading.main_thread():
            yield
            return
        loop, old = asyncio.get_running_loop(), {number: signal.getsignal(number) for number in STOPPING}
        for number in STOPPING:
            loop.add_signal_handler(number, lambda: self.give_up() if self._stopping else self.stop())
        try:
            yield
        finally:
            for number, handler in old.items():
                loop.remove_signal_handler(number)
                signal.signal(number, handler)

    def _crew(self) -> List[Group]:
        """Returns the groups, in the event loop that runs now."""
        one = self._settings
        self._changed, finding = asyncio.Event(), asyncio.Lock()
        self._abandoned = asyncio.get_running_loop().create_future()
        if self._given_up:
            self._abandoned.set_result(None)
        keys = groups(one.client, list(one.handlers))
        self._places = Places(one.jobs, len(keys))
        return [Group(some, link(one.client, some, one.lease_s, finding)) for some in keys]

    async def _live(self) -> None:
        one, crew = self._settings, self._crew()
        for group in crew:
            group.taker = asyncio.create_task(self._take(group), name="tickwheel-take")
        log.info("ready; %s takes from %s", one.name, ", ".join(one.handlers))
        await self._wait_for(lambda: self._stopping)
        ends = [asyncio.create_task(self._unblock(group)) for group in crew]
        if not await self._wait_for(lambda: self._given_up or not self._busy(crew), one.grace_s):
            self.give_up()
        await asyncio.wait([*ends, *(group.taker for group in crew)])
        while self._tasks or self._beats:
            await asyncio.wait([*self._tasks, *self._beats])
        for group in crew:
            await group.link.close()
        log.info("stopped; %s", self._counts)

    def _busy(self, crew: List[Group]) -> bool:
        return bool(self._tasks) or any(not group.taker.done() for group in crew)

    def _fail(self, error: WorkerError) -> None:
        """Ends the worker by an error: handlers finish."""
        if self._news.has(str(error)):
            log.error("%s", error)
        self._error = self._error or error
        self.stop()

    async def _unblock(self, group: Group) -> None:
        """Ends the wait of TW.TAKE, again and again: it may not have begun when the first CLIENT UNBLOCK came.
        Where the server refuses that, the wait ends by itself, or at give_up() with the connection."""
        wait, may, last = FIRST_UNBLOCK_S, True, LAST_TRIES
        while not await self._rests(group, wait):
            may = may and await group.link.unblock()
            wait = min(2 * wait, LAST_UNBLOCK_S)
            last -= self._given_up
            if self._given_up and (last == 0 or not may):
                group.taker.cancel()
                return

    @staticmethod
    async def _rests(group: Group, seconds: float) -> bool:
        """Waits at most so long for the end of the loop that takes. Returns whether it has ended."""
        await asyncio.wait([group.taker], timeout=seconds)
        return group.taker.done()

    # One job after the other

    async def run_ready(self, raise_errors: bool = False, limit: int = LIMIT) -> Counts:
        """For tests: calls the handlers for the tasks that are ready, one after the other, until a take finds
        none, or until stop(); see tickwheel.Worker.run_ready(). If it is cancelled, the worker gives up, and
        ends before."""
        before = self._counts
        self._begin_ready(limit)
        life = asyncio.create_task(self._live_ready(raise_errors, limit), name="tickwheel")
        try:
            await self._through(life)
        finally:
            self._started = self._stopping = self._given_up = False
            self._patient, self._error = True, None
        return self._counts_since(before)

    async def _live_ready(self, raise_errors: bool, limit: int) -> None:
        crew = self._crew()
        try:
            for number in range(limit + 1):
                found = await self._take_ready(crew)
                if found is None:
                    break
                group, job = found
                if number == limit:
                    self._report(job, await self._settle(group, job, BACK))
                    raise RuntimeError(_errors.endless(limit, job))
                await self._work(group, job)
                if self._error is not None:
                    raise self._error
                self._raise_failure(job, raise_errors)
        finally:
            while self._beats:
                await asyncio.wait(self._beats)
            for group in crew:
                await group.link.close()

    async def _take_ready(self, crew: List[Group]) -> Optional[Tuple[Group, Job]]:
        """Takes a task that is ready. Returns None if there is none, or after stop()."""
        one = self._settings
        for group in crew:
            if self._stopping:
                break
            try:
                if group.link.caller is None:
                    await group.link.open()
                raw = await group.link.take(take_words(one.lease_ms, 1, None, one.name, group.keys))
            except Exception as error:
                raise _errors.fatal("TW.TAKE", group.keys, error) from error
            group.taker = asyncio.get_running_loop().create_future()
            group.taker.set_result(None)
            for job in _tasks.jobs(raw):
                self._attend(group, job)
                return group, job
        return None

    # Taking

    async def _take(self, group: Group) -> None:
        """The loop that takes for a group."""
        waits = Waits()
        try:
            while (places := await self._reserve()) > 0:
                await self._take_once(group, places, waits)
        except Exception as error:  # pylint: disable=broad-except
            self._fail(_errors.fatal("TW.TAKE", group.keys, error))
        finally:
            asyncio.get_running_loop().call_soon(self._wake)  # When this task is done.

    async def _reserve(self) -> int:
        """Waits for free places. Returns how many this group has now; 0 if the worker stops."""
        ticket = object()
        self._places.line.append(ticket)
        try:
            await self._wait_for(lambda: self._stopping or self._places.turn_of(ticket))
        finally:
            self._places.line.remove(ticket)
            self._wake()
        return 0 if self._stopping else self._places.reserve()

    async def _take_once(self, group: Group, places: int, waits: Waits) -> None:
        """One TW.TAKE, and a wait if it failed. Raises the errors that do not pass."""
        one, generation = self._settings, group.link.generation
        words = take_words(one.lease_ms, places, int(self._places.block_s * 1000), one.name, group.keys)
        taken: List[Job] = []
        try:
            if group.link.caller is None:
                await group.link.open()
            taken = list(_tasks.jobs(await group.link.take(words)))
            waits.reset()
            return
        except Exception as error:  # pylint: disable=broad-except
            await group.link.leave()
            if not _errors.passes(error, one.cluster):
                raise
            log.warning("TW.TAKE: %s; tries again", _errors.described(error))
            failed = error
        finally:
            self._begin(group, taken, places - len(taken))
        if group.link.caller is not None:
            await group.link.renew(failed, generation)
        await self._wait_for(lambda: self._stopping, waits.next())

    def _begin(self, group: Group, taken: List[Job], unused: int) -> None:
        """Starts a task of asyncio for each job."""
        self._places.begin(len(taken), unused)
        for job in taken:
            self._attend(group, job)
            task = asyncio.create_task(self._work(group, job), name=f"tickwheel-job-{job.id}")
            self._tasks.add(task)
            task.add_done_callback(self._done)
        self._wake()

    def _attend(self, group: Group, job: Job) -> None:
        """Sets the time of a job's first heartbeat."""
        job._worker, job._group = self, group
        job._touch_at = time.monotonic() + self._settings.lease_s / 3

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._places.end()
        self._wake()

    # Working

    async def _work(self, group: Group, job: Job) -> None:
        """One job, from its handler to the server's answer."""
        outcome = BACK
        if not self._stopping:
            outcome = await self._attended(group, job)
        else:  # TW.TAKE, if it still waits, would get the task again.
            await self._rests(group, self._settings.lease_s / 3)
        if job._acking is not None:  # The handler may have been cancelled meanwhile.
            await asyncio.wait([job._acking])
        while job._claimed and not job._done and not self._given_up:
            await asyncio.sleep(POLL_S)  # A thread of the handler is in the block of ack_on().
        if not job._done:
            job._settled = True
            end = "not_yours" if job.not_yours else await self._settle(group, job, outcome)
            self._report(job, end, outcome.error)

    def _count(self, name: str) -> None:
        self._counts = _errors.added(self._counts, name)

    async def _attended(self, group: Group, job: Job) -> Outcome:
        """Calls the handler, with heartbeats, which cancel it if the task is not yours any more; give_up() and
        the end of the time limit cancel it too."""
        limit_s = self._settings.limits_s[job.queue]
        call = asyncio.create_task(self._call(job), name=f"tickwheel-handler-{job.id}")
        beat = asyncio.create_task(self._beat(group, job, call), name=f"tickwheel-beat-{job.id}")
        self._beats.add(beat)
        beat.add_done_callback(self._beats.discard)
        assert self._abandoned is not None
        ends: List[asyncio.Future[Any]] = [call, self._abandoned]
        await asyncio.wait(ends, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
        if job._done:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        late = not any(end.done() for end in ends)
        if not call.done():
            if not job.over:
                job._end(not_yours=False)
            call.cancel()
            await asyncio.wait([call], timeout=PATIENCE)  # A handler may refuse to end.
        if late:
            log.warning("%r: its time limit is over", job)
            return self._failed(job, _errors.expired(limit_s))
        if not call.done() or call.cancelled():
            if self._given_up:
                await self._rests(group, PATIENCE)
            return BACK if self._given_up else _errors.outcome_of(asyncio.CancelledError())
        return call.result()

    async def _call(self, job: Job) -> Outcome:
        """Calls the handler. Even SystemExit and KeyboardInterrupt, raised in it, are failures of this job
        alone."""
        try:
            await self._settings.handlers[job.queue](job)
            self._check_used(job)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # pylint: disable=broad-except
            return self._ended_by(job, error)
        return _errors.DONE

    async def _settle(self, group: Group, job: Job, outcome: Outcome) -> str:
        """Sends the result. Returns the name of the count."""
        try:
            told = await self._tell(group, job, outcome.command(job))
        except Exception as error:  # pylint: disable=broad-except
            return self._refused(job, outcome, error)
        return "not_yours" if told is None else outcome.counted(*told)

    async def _tell(self, group: Group, job: Job, words: Words) -> Optional[Tuple[Any, bool]]:
        """Sends a command about a job until the server has answered, as the worker for threads does."""
        waits, unsure = Waits(self._settings.again_s), False
        while True:
            generation = group.link.generation
            try:
                return await group.link.call(words), unsure
            except Exception as error:  # pylint: disable=broad-except
                if not self._passes(error):
                    raise
                log.warning("%r: %s; tries again", job, _errors.described(error))
                unsure |= _errors.code(error) == _errors.LOST
                await group.link.renew(error, generation)
            if self._given_up:
                return None
            await self._wait_for(lambda: self._given_up, waits.next())

    # A handler that acknowledges its job itself

    async def _ack_then(self, job: Job, script: str, keys: Any, args: Any) -> Any:
        words = self._script_words(job, script, keys, args)
        self._claim(job)
        job._acking = asyncio.create_task(self._acknowledge(job, words), name=f"tickwheel-ack-{job.id}")
        return await asyncio.shield(job._acking)

    async def _acknowledge(self, job: Job, words: Words) -> Any:
        try:
            with _errors.TRANSLATED:
                told = await self._tell(job._group, job, words)
        except BaseException:
            self._unclaim(job)
            raise
        return self._effect(job, told)

    def _claims(self, job: Job) -> bool:
        if job.over or job._settled:
            return False
        job._claimed = job._settled = True
        return True

    def _unclaim(self, job: Job) -> None:
        job._claimed = job._settled = False

    # Heartbeats

    async def _beat(self, group: Group, job: Job, call: asyncio.Task[Outcome]) -> None:
        """Extends the lease of a job until its handler has returned or has acknowledged it, or the task is not
        yours any more."""
        while not job.not_yours:
            await asyncio.wait([call], timeout=max(0.0, job._touch_at - time.monotonic()))
            if call.done() or job._done:
                return
            if job._settled:  # The handler acknowledges it, and may fail to do so.
                job._touch_at = time.monotonic() + self._settings.again_s
            else:
                await self._touch(group, job, call)

    async def _touch(self, group: Group, job: Job, call: asyncio.Task[Outcome]) -> None:
        one, generation, began = self._settings, group.link.generation, time.monotonic()
        words = ["TW.TOUCH", encoded(job.queue), encoded(job.id), job.token, "LEASE", one.lease_ms]
        try:
            kept = await group.link.call(words) is not None
            job._touch_at = began + one.lease_s / 3
        except Exception as error:  # pylint: disable=broad-except
            kept = True  # Only the server's word ends a lease: after its downtime leases begin anew.
            job._touch_at = time.monotonic() + min(one.again_s, 1.0)
            if not self._passes(error):
                return self._fail(_errors.fatal("TW.TOUCH", [job.queue], error))
            if self._news.has(_errors.described(error)):
                log.warning("heartbeat of %r: %s", job, _errors.described(error))
            await group.link.renew(error, generation)
        if not kept and not call.done() and not job._settled:
            log.warning("%r is not yours any more", job)
            job._end(not_yours=True)
            call.cancel()
        return None
