# SPDX-License-Identifier: MIT
"""A queue, as the processes that put tasks see it, for asyncio."""
from __future__ import annotations

from typing import Any, AsyncIterator, Callable, List, Optional, Tuple, TypeVar

from .. import _tasks
from .._errors import TRANSLATED, TickwheelError
from .._queue import QueueBase
from .._tasks import DeadTask, Row, Stats, Task
from .._words import (PAGE, Id, Moment, OneValue, Payload, Seconds, cancel_words, dead_words, encoded,
                      forecast_words, move_words, one_task, range_words, scan_words, when)

T = TypeVar("T")


class Queue(QueueBase):
    """The queue `key` of a server.

    `client` is one of redis.asyncio (a Redis, one of Sentinel.master_for, a RedisCluster), a File, or a
    pipeline. With a pipeline a call is queued and returns the pipeline; its reply comes from execute() as the
    server sends it, and so does its error. Ids are str, and payloads bytes, whatever decode_responses says.

    All methods raise TypeError or ValueError for a wrong argument, before anything is sent; WrongArgument,
    which is a ValueError, where the home alone knows the range. They raise Unavailable (Full, Elsewhere),
    NoRights, NotAQueue, WrongFormat, or another TickwheelError, if the home cannot or may not do the call.
    After an error nothing has changed, unless the connection broke."""

    _asyncio = True

    async def _send(self, parse: Callable[[Any], T], *words: Any) -> T:
        with TRANSLATED:
            reply = self.client.execute_command(*words, NEVER_DECODE=True)
            result: T = reply if reply is self.client else parse(await reply)
            return result

    async def put(self, id: Optional[Id], payload: Payload, *, delay: Optional[Seconds] = None,
            at: Optional[Moment] = None, condition: Optional[str] = None, keep_due: bool = False,
            every: Optional[Seconds] = None, times: Optional[int] = None, missed: Optional[str] = None,
            max_late: Optional[Seconds] = None, tries: Optional[int] = None,
            backoff: Optional[Tuple[Any, ...]] = None) -> Optional[str]:
        """Puts a task for workers, or replaces the task with this id. Returns its id; None if
        `condition` kept the queue as it was.

        `id`: None lets the server make one. `payload`: str and bytes are kept as they are, any other value
        becomes JSON, which `job.json` reads; Values(...) are several values, in a server.
        `delay`: due in so many seconds, or `at`: at this moment; at once if neither is given. `condition`: "nx"
        if there is no such task, "xx" if there is one; "gt" and "lt" replace a task only by a later or an
        earlier time. `keep_due`: a task that exists keeps its time, and gets the new payload and options; for
        tasks that a program puts at each start. `every`: seconds between two periods; `times`: calls in all.
        `missed`: "coalesce" (the default), "skip" or "burst", for periods that nobody could make in time.
        `max_late`: a first attempt that is later by so many seconds is not made, and the task or its period is
        dropped. `tries`: failures until the task is dead, 1 to 1,000,000. `backoff`: a Backoff."""
        words = self.put_words(id, payload, delay=delay, at=at, condition=condition, keep_due=keep_due,
                               every=every, times=times, missed=missed, max_late=max_late, tries=tries,
                               backoff=backoff)
        return await self._send(_tasks.optional_text, *words)

    async def send(self, target: Id, id: Optional[Id], payload: OneValue, *, kind: str = "stream",
                   maxlen: Optional[int] = None, delay: Optional[Seconds] = None, at: Optional[Moment] = None,
                   condition: Optional[str] = None, keep_due: bool = False,
                   every: Optional[Seconds] = None, times: Optional[int] = None,
                   missed: Optional[str] = None, max_late: Optional[Seconds] = None,
                   tries: Optional[int] = None, backoff: Optional[Tuple[Any, ...]] = None) -> Optional[str]:
        """Files a task that the server itself delivers to a Stream or a List when it is due. Returns its id;
        None if `condition` kept the queue as it was. A file has no targets: NotImplementedError.

        `target`: the key of the Stream or List. `payload`: for a Stream a dict of fields and values, for a List
        one value. `kind`: "stream"; "list", to whose right end the value goes, or "list left". `maxlen`: trims
        the Stream to about so many entries. `tries`: the refusals with which the task is dead, 1 to 15.
        The other arguments are those of put()."""
        words = self.send_words(target, id, payload, kind=kind, maxlen=maxlen, delay=delay, at=at,
                                condition=condition, keep_due=keep_due, every=every, times=times, missed=missed,
                                max_late=max_late, tries=tries, backoff=backoff)
        return await self._send(_tasks.optional_text, *words)

    async def cancel(self, *ids: Id) -> List[int]:
        """Removes tasks, in any state. Returns for each id 0 if there was no such task, 1 if it was cancelled,
        2 if a worker had it: it is removed, and its work may happen."""
        return await self._send(list, *cancel_words(self.key, ids))

    async def move(self, id: Id, *, delay: Optional[Seconds] = None, at: Optional[Moment] = None,
             condition: Optional[str] = None) -> Optional[bool]:
        """Gives a task another due time; `condition`: "gt" if it is later, "lt" if it is earlier. Returns True
        if it was moved, False if `condition` kept it, None if there is no such task. Raises TaskIsDead if it is
        dead: see replay()."""
        return await self._send(_tasks.moved, *move_words(self.key, id, delay, at, condition))

    async def get(self, id: Id) -> Optional[Task]:
        """Describes a task. Returns None if there is none."""
        return await self._send(lambda raw: _tasks.task(id, raw), "TW.GET", self.key, encoded(id))

    async def count(self) -> int:
        """Returns the number of tasks that are not dead."""
        return await self._send(int, "TW.LEN", self.key)

    async def next(self) -> Optional[Row]:
        """Returns id, due time and next time (Unix seconds) of the task that waits for the earliest time; None
        if no task waits."""
        return await self._send(_tasks.next_task, "TW.NEXT", self.key)

    async def scan(self, match: Optional[Id] = None, count: int = 1000) -> AsyncIterator[Row]:
        """Yields id, due and next time (Unix seconds; None: it is dead) of all tasks in any state and order, as
        TW.SCAN: a task may come twice. `match` is a glob pattern; a call looks at about `count` tasks. Not for
        pipelines."""
        cursor = 0
        while True:
            words = scan_words(self.key, cursor, count, match)
            cursor, found = await self._send(_tasks.scanned, *words)
            for one in found:
                yield one
            if cursor == 0:
                return

    async def range(self, first: Optional[Moment] = None, last: Optional[Moment] = None,
                    count: int = 1000) -> AsyncIterator[Row]:
        """Yields id, due and next time of the waiting tasks whose next time lies between `first` and `last`,
        the earliest first. Each call asks for `count` of them (1 to 10,000). Not for pipelines."""
        page = await self._send(_tasks.rows, *range_words(self.key, first, last, count))
        while True:
            for one in page:
                yield one
            if len(page) < count:
                return
            id, _, first = page[-1]
            page = await self._send(_tasks.rows, *range_words(self.key, first, last, count, id))

    async def forecast(self, step: Seconds = 1, steps: int = 60) -> List[int]:
        """Returns how many waiting tasks become ready in each of so many steps of `step` seconds from now on
        (0.001 to 100 years, 1 to 10,000 of them). Of a task that repeats, a server counts the next period,
        and a file each one in this time."""
        return await self._send(list, *forecast_words(self.key, step, steps))

    async def stats(self) -> Optional[Stats]:
        """Counts the tasks in each state, and the events of the queue so far. Returns None if there is no
        such queue."""
        try:
            return await self._send(_tasks.stats, "TW.INFO", self.key)
        except TickwheelError as error:
            if not _tasks.says_none(error):
                raise
            return None

    async def dead(self, count: int = 100, after: Optional[Id] = None) -> List[DeadTask]:
        """Returns at most `count` dead tasks (1 to 10,000), the first death first, from the one behind `after`
        on. Raises WrongArgument if that one is not dead any more."""
        return await self._send(_tasks.dead_tasks, *dead_words(self.key, count, after))

    async def all_dead(self) -> AsyncIterator[DeadTask]:
        """Yields all dead tasks, the first death first. Raises WrongArgument if a dead task that was the
        last of its page is replayed or removed meanwhile. Not for pipelines."""
        page = await self.dead(PAGE)
        while page:
            for one in page:
                yield one
            page = await self.dead(PAGE, page[-1].id) if len(page) == PAGE else []

    async def promote(self, id: Id) -> bool:
        """Lets a waiting task be ready now, before its time. Returns False if no waiting task has this id."""
        return await self._send(bool, "TW.PROMOTE", self.key, *one_task(id))

    async def promote_all(self) -> int:
        """Lets waiting tasks be ready now, those with the earliest times first, by one command: at most 10,000,
        and for about 20 ms. Returns their number; 0 if no task waits. It does not go on by itself, because the
        next period of a task that repeats may wait by then."""
        return await self._send(int, "TW.PROMOTE", self.key, "ALL")

    async def replay(self, id: Id, *, delay: Optional[Seconds] = None, at: Optional[Moment] = None) -> bool:
        """Lets a dead task wait again, for now if no time is given. Returns False if no dead task has this
        id."""
        return await self._send(bool, "TW.REPLAY", self.key, *one_task(id), *when(delay, at))

    async def replay_all(self, *, delay: Optional[Seconds] = None, at: Optional[Moment] = None) -> int:
        """Lets all dead tasks wait again. Returns their number. A pipeline has one command, for at most
        10,000."""
        return await self._repeat("TW.REPLAY", self.key, "ALL", *when(delay, at))

    async def purge(self, id: Id) -> bool:
        """Removes a dead task for good. Returns False if no dead task has this id."""
        return await self._send(bool, "TW.PURGE", self.key, *one_task(id))

    async def purge_all(self) -> int:
        """Removes all dead tasks. Returns their number. A pipeline has one command, for at most 10,000."""
        return await self._repeat("TW.PURGE", self.key, "ALL")

    async def _repeat(self, *words: Any) -> int:
        done = total = await self._send(int, *words)
        while done == PAGE:
            done = await self._send(int, *words)
            total += done
        return total

    async def pause(self) -> bool:
        """Stops the queue: workers get no task of it. Returns False if it was stopped already."""
        return await self._send(bool, "TW.PAUSE", self.key)

    async def resume(self) -> bool:
        """Ends the pause. Returns False if there was none."""
        return await self._send(bool, "TW.RESUME", self.key)
