# SPDX-License-Identifier: MIT
"""A worker with threads."""
from __future__ import annotations

import collections
import contextlib
import inspect
import logging
import os
import queue
import socket
import sqlite3
import threading
import time
from typing import Any, Callable, ContextManager, Deque, Dict, Iterator, List, Optional, Set, Tuple, TypeVar

from . import _effects, _errors, _tasks
from ._clients import PATIENCE, check_client, check_role, groups, is_cluster
from ._errors import BACK, News, Outcome, Waits, WorkerError
from ._file import File, FileLink
from ._signals import Bell
from ._tasks import Counts, Job
from ._words import MOST_LEASE_MS, PAGE, Seconds, Words, encoded, milliseconds, take_words, whole

log = logging.getLogger("tickwheel")
Handler = Callable[[Job], object]
OnEnd = Callable[[Job, str, Optional[BaseException]], object]
H = TypeVar("H", bound=Callable[..., object])
BLOCK_S = 5.0  # An idle worker asks so often.
NAME_BYTES = 255
LIMIT, MOST_ATTEMPTS = 1000, 2**31 - 1  # The attempts of a run_ready().
TURNS_S, LEAST_BLOCK_S = 1.0, 0.1  # Groups that compete for places ask so often; the shortest wait.
FIRST_UNBLOCK_S, LAST_UNBLOCK_S, LAST_TRIES = 0.02, 0.5, 3


class Settings:
    """The arguments of a worker, checked, and its handlers. The worker for asyncio has the same."""

    def __init__(self, client: Any, name: Optional[str], lease: Seconds, jobs: int,
                 grace: Optional[Seconds], on_end: Optional[OnEnd]) -> None:
        self.client, self.name = client, name or f"{socket.gethostname()}:{os.getpid()}"
        if len(encoded(self.name, "name")) > NAME_BYTES:
            raise ValueError(f"name is {name!r}: expected at most {NAME_BYTES} bytes")
        self.jobs = whole("jobs", jobs, 1, PAGE)
        self.lease_ms = milliseconds("lease", lease, 1, MOST_LEASE_MS)
        self.lease_s = self.lease_ms / 1000
        self.grace_s = None if grace is None else milliseconds("grace", grace) / 1000
        self.handlers: Dict[str, Any] = {}
        self.limits_s: Dict[str, Optional[float]] = {}
        if on_end is not None and (not callable(on_end) or inspect.iscoroutinefunction(on_end)):
            raise TypeError(f"on_end is {on_end!r}: expected a function, which is not awaited")
        self.on_end = on_end
        self.cluster = is_cluster(client)
        if not self.cluster:
            check_role(getattr(client, "connection_pool", None))

    def add(self, handler: Any, queues: Any, timeout: Optional[Seconds]) -> None:
        limit_s = None if timeout is None else milliseconds("timeout", timeout, 1) / 1000
        if not queues:
            raise ValueError("no queue is named: expected at least one")
        for key in queues:
            if not isinstance(key, str):
                raise TypeError(f"queue is {key!r}: expected a str")
            if key in self.handlers:
                raise ValueError(f"queue {key!r} has a handler already")
        self.handlers.update(dict.fromkeys(queues, handler))
        self.limits_s.update(dict.fromkeys(queues, limit_s))

    def check(self) -> None:
        if not self.handlers:
            raise ValueError("the worker has no handler: give it one by @worker.task(queue)")

    @property
    def again_s(self) -> float:
        """The longest wait after a heartbeat or a result that failed. A lease that ended while the server was
        down begins anew, once: the next call comes before its end."""
        return max(0.01, min(self.lease_s / 10, 5.0))


class Places:
    """The places for jobs that the groups of queues share; guarded by the worker's lock. A group asks for
    tasks only for places that it has reserved, and leaves some to the other groups."""

    def __init__(self, jobs: int, groups: int) -> None:
        self.jobs, self.groups = jobs, groups
        self.free, self.share = jobs, max(1, jobs // groups)
        self.working = 0
        self.line: Deque[object] = collections.deque()

    def turn_of(self, ticket: object) -> bool:
        return self.free > 0 and self.line[0] is ticket

    def reserve(self) -> int:
        count = min(self.free, self.share)
        self.free -= count
        return count

    def begin(self, jobs: int, unused: int) -> None:
        """Some reserved places have jobs now, and the others are free again."""
        self.working += jobs
        self.free += unused

    def end(self) -> None:
        """A job has ended."""
        self.working -= 1
        self.free += 1

    @property
    def block_s(self) -> float:
        """How long a group may wait with its places. A group that waits keeps them from the others: where
        they may be short, the groups take turns, and each has one in about a second."""
        room = self.jobs - self.working
        if self.groups == 1 or room >= 2 * self.groups or (not self.working and room >= self.groups):
            return BLOCK_S
        return max(LEAST_BLOCK_S, TURNS_S * min(1.0, room / self.groups))


def link(client: Any, keys: List[str], lease_s: float) -> Any:
    """Returns the worker's way to its queues: connections of its own. Only those to a server need redis-py."""
    if isinstance(client, File):
        return FileLink(client)
    from . import _links
    return _links.link(client, keys, lease_s, BLOCK_S)


class Group:
    """The queues that one TW.TAKE can name, with their connections and their jobs."""

    def __init__(self, keys: List[str], link: Any) -> None:
        self.keys, self.link = keys, link
        self.beating: Set[Job] = set()
        self.taking = True


class WorkerBase:
    """The part of a worker that threads and asyncio share."""

    _counts: Counts
    _settings: Settings
    _news: News
    _file: type = File
    _started: bool
    _patient = True  # A command that failed is sent again, when its error may pass.

    @property
    def counts(self) -> Counts:
        """The attempts so far."""
        return self._counts

    def _begin_ready(self, limit: int) -> None:
        """Lets a run_ready() begin, or raises the errors of one that may not."""
        self._settings.check()
        whole("limit", limit, 1, MOST_ATTEMPTS)
        if self._started:
            raise RuntimeError("the worker runs, or has run: make another one for run_ready()")
        self._started, self._patient = True, False

    def _counts_since(self, before: Counts) -> Counts:
        return Counts(*(now - then for now, then in zip(self._counts, before)))

    def _passes(self, error: BaseException) -> bool:
        """Whether to send the same command again."""
        return self._patient and _errors.passes(error, self._settings.cluster)

    def _failed(self, job: Job, error: BaseException) -> Outcome:
        """Returns the outcome of a job that has failed by this error. run_ready() may raise the error later."""
        if not self._patient and job._failure is None:
            job._failure = error
        return _errors.outcome_of(error)

    @staticmethod
    def _raise_failure(job: Job, raise_errors: bool) -> None:
        """Raises the error of a job that has failed. One that is no Exception is not about the task: Control-C,
        or the end of a test."""
        failure, job._failure = job._failure, None
        if failure is None or (isinstance(failure, Exception) and (job.not_yours or not raise_errors)):
            return
        raise failure

    def _count(self, name: str) -> None:
        raise NotImplementedError

    def _report(self, job: Job, end: str, error: Optional[BaseException] = None) -> None:
        """Tells the log and on_end that the result of a job is known, and counts it. `error`: its outcome's."""
        if end == "died":
            log.error("%r is dead: %s", job, _errors.described(error))
        if self._settings.on_end is not None:
            try:
                self._settings.on_end(job, end, error if end in ("failed", "died") else None)
            except BaseException:  # pylint: disable=broad-except  # sys.exit() would end a thread of the worker
                log.exception("on_end failed, of %r", job)
        self._count(end)

    def _fail(self, error: WorkerError) -> None:
        raise NotImplementedError

    def _refused(self, job: Job, outcome: Outcome, error: Exception) -> str:
        """A result that the server does not take ends the worker. To give a task back is a courtesy: its lease
        ends it otherwise."""
        if outcome is BACK:
            log.warning("%r is not given back: %s", job, error)
        else:
            self._fail(_errors.fatal(str(outcome.command(job)[0]), [job.queue], error))
        return "not_yours"

    def _ended_by(self, job: Job, error: BaseException) -> Outcome:
        """Returns the outcome of a handler that has raised this error. If it has acknowledged its job before,
        the error changes nothing."""
        if job._done:
            log.error("%r is done, and its handler failed after the acknowledgement", job, exc_info=error)
        elif isinstance(error, (_errors.Retry, _errors.Back, _errors.Dead, _errors.NotYours)):
            return _errors.outcome_of(error)
        else:
            log.warning("%r failed", job, exc_info=error)
        return self._failed(job, error)

    # A handler that acknowledges its job itself

    def _claim(self, job: Job) -> None:
        """Lets the handler tell the result. Heartbeats and the time limit rest. Raises NotYours, or
        RuntimeError if the handler has done it before."""
        if self._claims(job):
            return
        if job._claimed:
            raise RuntimeError(f"{job!r} was acknowledged before: expected one ack_then() or ack_on()")
        raise _effects.not_yours(job)

    def _claims(self, job: Job) -> bool:
        raise NotImplementedError

    def _unclaim(self, job: Job) -> None:
        """The handler has not acknowledged its job: the worker tells the result, as usual."""
        raise NotImplementedError

    def _acked(self, job: Job) -> None:
        """The handler has acknowledged its job."""
        job._done = True
        self._report(job, "done")

    def _script_words(self, job: Job, script: str, keys: Any, args: Any) -> Words:
        client = self._settings.client
        if isinstance(client, self._file):
            raise TypeError(f"the home of {job!r} is a file: expected job.ack_on(connection)")
        slot_of = client.keyslot if self._settings.cluster else None
        return _effects.script_words(job, script, keys, args, slot_of)

    def _effect(self, job: Job, told: Optional[Tuple[Any, bool]]) -> Any:
        """Returns the reply of a job's script; `told` is that of _tell()."""
        if told is not None and told[0][0] != 0:
            self._acked(job)
            return _effects.reply_of(told[0])
        if told is not None and told[1]:
            self._acked(job)  # As after a plain TW.ACK whose reply was lost.
            raise _effects.reply_lost(job, "a reply was lost")
        log.warning("%r is not yours any more", job)
        job._end(not_yours=True)
        self._unclaim(job)
        if told is None:
            raise _effects.reply_lost(job, "the worker has given up without a reply")
        raise _effects.not_yours(job)

    def _ack_on(self, job: Job, connection: Any) -> ContextManager[Any]:
        if not isinstance(self._settings.client, self._file):
            raise TypeError(f"the home of {job!r} is a server: expected job.ack_then(script, keys, args)")
        if not isinstance(connection, sqlite3.Connection):
            raise TypeError(f"connection is {connection!r}: expected one of sqlite3")
        job._unused = True
        return _effects.transaction(self, job, connection)

    @staticmethod
    def _check_used(job: Job) -> None:
        if job._unused:
            raise RuntimeError("job.ack_on() was called without a block: expected `with job.ack_on(...):`")


class Worker(WorkerBase):
    """Takes tasks of queues, and calls a handler for each in a thread of its own. A Worker runs once, but
    run_ready() may be called often.

    `client` has the settings of the server: a redis.Redis, one of Sentinel.master_for, or a
    redis.RedisCluster. The worker has its own connections with these settings. `name`: shown by TW.GET;
    host:pid by default. `lease`: seconds until the server gives a task to another worker if this one dies,
    0.001 to 4294967; a third of it passes between two heartbeats. `jobs`: handlers at once, 1 to 10,000.
    `grace`: seconds that handlers have after stop() until give_up(); without an end by default.
    `on_end`: a function for your own logs and counters. It is called with each job when the result is known, as
    on_end(job, end, error): `end` is the name of the count (done, failed, died, back, not_yours), and `error`
    the exception of an attempt that has failed or died, else None. It is called in several threads, and does
    not wait. Its exceptions are logged.

    A handler that returns has done the task. If it raises Retry, Dead or any other exception, the attempt has
    failed, and if it raises Back, the task is given back. stop(), give_up() and counts are for any thread.
    Threads do not survive a fork: start the worker in the child."""

    def __init__(self, client: Any, *, name: Optional[str] = None, lease: Seconds = 30.0, jobs: int = 4,
                 grace: Optional[Seconds] = None, on_end: Optional[OnEnd] = None) -> None:
        check_client(client, asyncio=False)
        self._settings, self._news = Settings(client, name, lease, jobs, grace, on_end), News()
        self._changed = threading.Condition()
        self._queue: queue.SimpleQueue[Optional[tuple[Group, Job]]] = queue.SimpleQueue()
        self._bell: Optional[Bell] = None
        self._counts = Counts()
        self._groups: List[Group] = []
        self._running: Set[Job] = set()
        self._expiring: Set[Job] = set()
        self._threads = 0
        self._started = self._stopping = self._given_up = self._over = False
        self._error: Optional[WorkerError] = None
        self._ended = threading.Event()

    # Its handlers

    def task(self, *queues: str, timeout: Optional[Seconds] = None) -> Callable[[H], H]:
        """Makes the decorated function the handler of these queues. It gets a Job. `timeout`: seconds after
        which the attempt has failed; the handler, whose thread nobody can end, sees job.over."""
        def decorate(handler: H) -> H:
            self.add(handler, *queues, timeout=timeout)
            return handler
        return decorate

    def add(self, handler: Handler, *queues: str, timeout: Optional[Seconds] = None) -> None:
        """Makes a function the handler of these queues; see task(). Before start()."""
        if self._started:
            raise RuntimeError("the worker has started: add handlers before")
        call = getattr(handler, "__call__", None)
        if call is None:
            raise TypeError(f"handler is {handler!r}: expected a function")
        if inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(call):
            raise TypeError(f"handler is {handler!r}, which is for asyncio: use tickwheel.aio.Worker")
        self._settings.add(handler, queues, timeout)

    # Its life

    def run(self, signals: bool = True) -> Counts:
        """Works until stop(), and returns the counts. With `signals`, in the main thread, SIGTERM and SIGINT
        stop it; a second signal gives up. Raises WorkerError if the server refuses its commands for good."""
        if not signals or threading.current_thread() is not threading.main_thread():
            self.start()
            return self.join()
        with Bell() as self._bell:
            self.start()
            for order in (self.stop, self.give_up):
                if not self._bell.rings():
                    break
                order()
            return self.join()

    def start(self) -> None:
        """Starts the threads, and returns. Raises ValueError without a handler, RuntimeError if it started
        before."""
        self._settings.check()
        with self._changed:
            if self._started:
                raise RuntimeError("the worker has started before: make another one")
            self._started = True
        beats = self._connect()
        for group in self._groups:
            self._thread("take", self._take, group)
        self._thread("stop", self._end, beats)
        one = self._settings
        log.info("ready; %s takes from %s", one.name, ", ".join(one.handlers))

    def _connect(self) -> List[threading.Thread]:
        """Makes the groups, with their connections. Returns the threads of their heartbeats."""
        one = self._settings
        keys = groups(one.client, list(one.handlers))
        self._places = Places(one.jobs, len(keys))
        self._groups = [Group(some, link(one.client, some, one.lease_s)) for some in keys]
        return [self._thread("beat", self._beat, group) for group in self._groups]

    def stop(self) -> None:
        """Takes no more tasks; handlers that run finish. Does not wait: see join()."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def give_up(self) -> None:
        """Gives the tasks of handlers that still run back to the server, and ends. The handlers see job.over;
        their threads end with the process."""
        with self._changed:
            self._stopping = self._given_up = True
            self._changed.notify_all()

    def join(self, timeout: Optional[float] = None) -> Counts:
        """Waits for the end after stop(), at most `timeout` seconds. Returns the counts. Raises WorkerError if
        it ended by itself, TimeoutError if it has not ended."""
        if not self._ended.wait(timeout):
            raise TimeoutError(f"the worker has not ended within {timeout} s")
        if self._error is not None:
            raise self._error
        return self._counts

    def __enter__(self) -> Worker:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.join()

    @staticmethod
    def _thread(role: str, target: Callable[..., None], *args: Any) -> threading.Thread:
        made = threading.Thread(target=target, args=args, daemon=True, name=f"tickwheel-{role}")
        made.start()
        return made

    def _fail(self, error: WorkerError) -> None:
        """Ends the worker by an error: handlers finish."""
        if self._news.has(str(error)):
            log.error("%s", error)
        with self._changed:
            self._error = self._error or error
            self._stopping = True
            self._changed.notify_all()

    def _pause(self, seconds: float, even_if_stopping: bool) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._given_up or (self._stopping and not even_if_stopping), seconds)

    # Working in the caller's thread

    def run_ready(self, raise_errors: bool = False, limit: int = LIMIT) -> Counts:
        """For tests: calls the handlers for the tasks that are ready, in this thread and one after the other,
        until a take finds none, or until stop(). Returns the counts of this call. Tasks that wait stay, unless
        Queue.promote() lets them be ready. May be called again.

        An exception of a handler is a failed attempt, as it is in run(). With `raise_errors` it is raised here
        when the attempt has failed, unless it is Retry, Back or Dead; one that is no Exception, such as
        KeyboardInterrupt, always is. Raises RuntimeError if a task is ready after `limit` attempts, and
        WorkerError if a command fails: no command is sent again."""
        before = self._counts
        with self._changed:
            self._begin_ready(limit)
        with self._connected():
            for number in range(limit + 1):
                found = self._take_ready()
                if found is None:
                    break
                group, job = found
                if number == limit:
                    self._report(job, self._settle(group, job, BACK))
                    raise RuntimeError(_errors.endless(limit, job))
                self._work_ready(group, job)
                self._raise_failure(job, raise_errors)
        return self._counts_since(before)

    @contextlib.contextmanager
    def _connected(self) -> Iterator[None]:
        """Has connections and heartbeats meanwhile. At the end the worker may begin anew."""
        beats: List[threading.Thread] = []
        try:
            beats = self._connect()
            yield
        finally:
            with self._changed:
                self._over = True
                self._changed.notify_all()
            for beat in beats:
                beat.join()
            self._close_links()
            self._started = self._stopping = self._given_up = self._over = False
            self._patient, self._error, self._groups = True, None, []

    def _take_ready(self) -> Optional[Tuple[Group, Job]]:
        """Takes a task that is ready. Returns None if there is none, or after stop()."""
        one = self._settings
        for group in self._groups:
            if self._stopping:
                break
            try:
                raw = group.link.take(take_words(one.lease_ms, 1, None, one.name, group.keys))
            except Exception as error:
                raise _errors.fatal("TW.TAKE", group.keys, error) from error
            for job in _tasks.jobs(raw):
                return group, job
        return None

    def _work_ready(self, group: Group, job: Job) -> None:
        """One job, from its handler to the server's answer. Raises WorkerError if that does not come."""
        with self._changed:
            self._attend(group, job)
            self._changed.notify_all()
        self._finish(group, job, self._call(job))
        with self._changed:
            self._changed.wait_for(lambda: job not in self._expiring)
            if self._error is not None:
                raise self._error

    # Taking

    def _take(self, group: Group) -> None:
        """The thread that takes for a group."""
        try:
            waits = Waits()
            while (places := self._reserve()) > 0:
                self._take_once(group, places, waits)
        except Exception as error:  # pylint: disable=broad-except
            self._fail(_errors.fatal("TW.TAKE", group.keys, error))
        finally:
            with self._changed:
                group.taking = False
                self._changed.notify_all()

    def _reserve(self) -> int:
        """Waits for free places. Returns how many this group has now; 0 if the worker stops."""
        ticket = object()
        with self._changed:
            self._places.line.append(ticket)
            self._changed.wait_for(lambda: self._stopping or self._places.turn_of(ticket))
            self._places.line.remove(ticket)
            self._changed.notify_all()
            return 0 if self._stopping else self._places.reserve()

    def _take_once(self, group: Group, places: int, waits: Waits) -> None:
        """One TW.TAKE, and a wait if it failed. Raises the errors that do not pass."""
        one, generation = self._settings, group.link.generation
        words = take_words(one.lease_ms, places, int(self._places.block_s * 1000), one.name, group.keys)
        taken: List[Job] = []
        try:
            taken = list(_tasks.jobs(group.link.take(words)))
            waits.reset()
            return
        except Exception as error:  # pylint: disable=broad-except
            group.link.leave()
            if self._given_up:
                return  # hang_up() made this error.
            if not _errors.passes(error, one.cluster):
                raise
            log.warning("TW.TAKE: %s; tries again", _errors.described(error))
            failed = error
        finally:
            self._begin(group, taken, places - len(taken))
        group.link.renew(failed, generation)
        self._pause(waits.next(), False)

    def _begin(self, group: Group, taken: List[Job], unused: int) -> None:
        """Hands jobs to the threads that call handlers; there are as many threads as there were jobs at
        once."""
        with self._changed:
            self._places.begin(len(taken), unused)
            for job in taken:
                self._running.add(job)
                self._attend(group, job)
                self._queue.put((group, job))
            while self._threads < len(self._running):
                self._threads += 1
                self._thread(f"job-{self._threads}", self._work)
            self._changed.notify_all()

    def _attend(self, group: Group, job: Job) -> None:
        """Lets the heartbeats of a job begin."""
        job._worker, job._group = self, group
        job._touch_at = time.monotonic() + self._settings.lease_s / 3
        group.beating.add(job)

    # Working

    def _work(self) -> None:
        """A thread that calls handlers."""
        for group, job in iter(self._queue.get, None):
            self._finish(group, job, self._unbegun(group) if self._stopping else self._call(job))
            with self._changed:
                self._running.discard(job)
                self._places.end()
                self._changed.notify_all()

    def _unbegun(self, group: Group) -> Outcome:
        """Waits for the end of this group's TW.TAKE, which would get the task again, but not until the lease
        ends."""
        self._rests(group, self._settings.lease_s / 3)
        return BACK

    def _call(self, job: Job) -> Outcome:
        """Calls the handler. Even SystemExit and KeyboardInterrupt, raised in it, are failures of this job
        alone."""
        self._limit(job)
        try:
            result = self._settings.handlers[job.queue](job)
            if inspect.iscoroutine(result):  # Of a lambda, say: nobody would run it.
                result.close()
                raise TypeError("the handler returned a coroutine, which is for tickwheel.aio.Worker")
            self._check_used(job)
        except BaseException as error:  # pylint: disable=broad-except
            return self._ended_by(job, error)
        return _errors.DONE

    def _limit(self, job: Job) -> None:
        """Lets the time limit of a job begin, as its handler does now."""
        limit_s = self._settings.limits_s[job.queue]
        if limit_s is not None:
            with self._changed:
                job._limit_at = time.monotonic() + limit_s
                self._changed.notify_all()

    def _finish(self, group: Group, job: Job, outcome: Outcome) -> None:
        """Tells the server the result, unless the task is not ours any more."""
        with self._changed:  # Another thread of the handler may acknowledge the job at this moment.
            self._changed.wait_for(lambda: job._done or not job._claimed)
        if self._may_tell(group, job):
            end = "not_yours" if job.not_yours else self._settle(group, job, outcome)
            self._report(job, end, outcome.error)

    def _may_tell(self, group: Group, job: Job) -> bool:
        """Whether the caller is to tell the result, because nobody does so yet."""
        with self._changed:
            group.beating.discard(job)
            first, job._settled = not job._settled, True
        return first

    def _settle(self, group: Group, job: Job, outcome: Outcome) -> str:
        """Sends the result. Returns the name of the count."""
        try:
            told = self._tell(group, job, outcome.command(job))
        except Exception as error:  # pylint: disable=broad-except
            return self._refused(job, outcome, error)
        return "not_yours" if told is None else outcome.counted(*told)

    def _tell(self, group: Group, job: Job, words: Words) -> Optional[Tuple[Any, bool]]:
        """Sends a command about a job until the server has answered. Returns its reply, and whether an earlier
        one was lost; None if the worker gives up before. Raises the errors that do not pass."""
        waits, unsure = Waits(self._settings.again_s), False
        while True:
            generation = group.link.generation
            try:
                return group.link.call(words), unsure
            except Exception as error:  # pylint: disable=broad-except
                if not self._passes(error):
                    raise
                log.warning("%r: %s; tries again", job, _errors.described(error))
                unsure |= _errors.code(error) == _errors.LOST
                group.link.renew(error, generation)
            if self._given_up:
                return None
            self._pause(waits.next(), True)

    def _count(self, name: str) -> None:
        with self._changed:
            self._counts = _errors.added(self._counts, name)
            self._changed.notify_all()

    # A handler that acknowledges its job itself

    def _ack_then(self, job: Job, script: str, keys: Any, args: Any) -> Any:
        words = self._script_words(job, script, keys, args)
        self._claim(job)
        try:
            with _errors.TRANSLATED:
                told = self._tell(job._group, job, words)
        except BaseException:
            self._unclaim(job)
            raise
        return self._effect(job, told)

    def _claims(self, job: Job) -> bool:
        with self._changed:
            if job.over or job._settled:
                return False
            job._group.beating.discard(job)
            job._claimed = job._settled = True
        return True

    def _unclaim(self, job: Job) -> None:
        with self._changed:
            job._claimed = job._settled = False
            if not job.over:
                job._touch_at = time.monotonic()
                job._group.beating.add(job)
            self._changed.notify_all()

    # Heartbeats

    def _beat(self, group: Group) -> None:
        """The thread that extends the leases of a group's jobs, and ends those whose time limit is over."""
        while (job := self._next_beat(group)) is not None:
            if time.monotonic() >= job._limit_at:
                self._expire(group, job)
            else:
                self._touch(group, job)

    def _next_beat(self, group: Group) -> Optional[Job]:
        """Waits until a job needs a heartbeat, or its end. Returns None at the end of the worker."""
        with self._changed:
            while not self._over:
                job = min(group.beating, key=lambda job: job._next_at, default=None)
                wait = None if job is None else job._next_at - time.monotonic()
                if job is not None and wait is not None and wait <= 0:
                    return job
                self._changed.wait(wait)
        return None

    def _touch(self, group: Group, job: Job) -> None:
        one, generation, began = self._settings, group.link.generation, time.monotonic()
        words = ["TW.TOUCH", encoded(job.queue), encoded(job.id), job.token, "LEASE", one.lease_ms]
        try:
            kept = group.link.call(words) is not None
            job._touch_at = began + one.lease_s / 3
        except Exception as error:  # pylint: disable=broad-except
            kept = True  # Only the server's word ends a lease: after its downtime leases begin anew.
            job._touch_at = time.monotonic() + min(one.again_s, 1.0)
            if not self._passes(error):
                return self._fail(_errors.fatal("TW.TOUCH", [job.queue], error))
            if self._news.has(_errors.described(error)):
                log.warning("heartbeat of %r: %s", job, _errors.described(error))
            group.link.renew(error, generation)
        if not kept:
            self._let_go(group, job)
        return None

    def _expire(self, group: Group, job: Job) -> None:
        """Tells the server that the attempt has failed. The handler keeps its place until it returns."""
        with self._changed:
            if not self._may_tell(group, job):
                return
            outcome = self._failed(job, _errors.expired(self._settings.limits_s[job.queue]))
            self._expiring.add(job)  # It keeps the worker until the server knows it, but not after the grace.
        log.warning("%r: its time limit is over", job)
        job._end(not_yours=False)
        self._report(job, self._settle(group, job, outcome), outcome.error)
        with self._changed:
            self._expiring.discard(job)
            self._changed.notify_all()

    def _let_go(self, group: Group, job: Job) -> None:
        with self._changed:
            if job not in group.beating:
                return  # Its handler has returned meanwhile, and the server knows it.
            group.beating.discard(job)
        log.warning("%r is not yours any more", job)
        job._end(not_yours=True)

    # The end

    def _end(self, beats: List[threading.Thread]) -> None:
        """The thread that waits for stop(), and then for the other threads. The threads of handlers may go
        on."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopping)
        helpers = [*beats, *(self._thread("unblock", self._unblock, group) for group in self._groups)]
        with self._changed:
            self._changed.wait_for(lambda: self._given_up or not self._busy(), self._settings.grace_s)
        if self._busy():
            self.give_up()
            self._abandon()
        with self._changed:
            self._over = True
            self._changed.notify_all()
        for helper in helpers:
            helper.join()
        self._close()

    def _busy(self) -> bool:
        return bool(self._running or self._expiring) or any(group.taking for group in self._groups)

    def _unblock(self, group: Group) -> None:
        """Ends the wait of TW.TAKE, again and again: it may not have begun when the first CLIENT UNBLOCK came.
        Where the server refuses that, the wait ends by itself, or at give_up() with the connection."""
        wait, may, last = FIRST_UNBLOCK_S, True, LAST_TRIES
        while not self._rests(group, wait):
            may = may and group.link.unblock()
            wait = min(2 * wait, LAST_UNBLOCK_S)
            last -= self._given_up
            if self._given_up and (last == 0 or not may):
                group.link.hang_up()
                return

    def _rests(self, group: Group, seconds: float) -> bool:
        """Waits at most so long for the end of the thread that takes. Returns whether it has ended."""
        with self._changed:
            return self._changed.wait_for(lambda: not group.taking, seconds)

    def _abandon(self) -> None:
        """Gives back the tasks of the handlers that still run, in one try, when nobody here takes any more."""
        for group in self._groups:
            self._rests(group, PATIENCE)
            with self._changed:
                running = [job for job in self._running if job.queue in group.keys]
                jobs = [job for job in running if not job._settled]
                for job in jobs:
                    job._settled = True
                    group.beating.discard(job)
                    self._running.discard(job)
            for job in [*jobs, *(job for job in running if job._done)]:
                job._end(not_yours=False)
            for job in jobs:
                self._report(job, self._settle(group, job, BACK))
        with self._changed:  # Results that are on their way have this last try.
            self._changed.wait_for(lambda: all(job.over for job in self._running), PATIENCE)

    def _close(self) -> None:
        for _ in range(self._threads):
            self._queue.put(None)
        self._close_links()
        log.info("stopped; %s", self._counts)
        if self._bell is not None:
            self._bell.end()
        self._ended.set()

    def _close_links(self) -> None:
        for group in self._groups:
            with contextlib.suppress(Exception):  # The process goes on without these connections.
                group.link.close()
