# SPDX-License-Identifier: MIT
"""Tasks as the server describes them, and the job that a handler gets."""
from __future__ import annotations

import functools
import json
import math
import sqlite3
import threading
from dataclasses import dataclass, fields
from typing import Any, ContextManager, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union


# The id, the due time and the next time of a task, in Unix seconds. A dead task has no next time.
Row = Tuple[str, float, Optional[float]]


class Counts(NamedTuple):
    """The attempts of a worker: done; failed; of these, attempts whose task has died; given back; and attempts
    that were not yours any more at their end, so that their result counts for nothing."""
    done: int = 0
    failed: int = 0
    died: int = 0
    back: int = 0
    not_yours: int = 0


class Carrier:
    """Has a payload, a tuple of bytes: mostly of one value."""
    payload: Tuple[bytes, ...]

    @property
    def value(self) -> bytes:
        """The first value."""
        return self.payload[0]

    @property
    def text(self) -> str:
        """The first value as text. Raises UnicodeDecodeError if it is none."""
        return self.payload[0].decode()

    @functools.cached_property
    def json(self) -> Any:
        """The first value, read as JSON once: the same object each time. Raises ValueError if it is none."""
        try:
            return json.loads(self.text, parse_constant=no_constant)
        except ValueError as error:
            begin = self.payload[0][:40]
            raise ValueError(f"payload begins with {begin!r}: expected JSON ({error})") from error


def no_constant(name: str) -> None:
    """NaN and Infinity, which json of Python reads and other languages do not."""
    raise ValueError(f"{name} is none")


@dataclass(frozen=True)
class Task(Carrier):
    """A task, as TW.GET describes it. Times are Unix seconds."""
    id: str
    state: str  #: waiting, ready, leased or dead
    due: float
    next: Optional[float]  #: when it can be taken next; leased: the end of the lease; dead: None
    remaining: float  #: seconds until `next`; 0 if that has passed
    every: Optional[float]  #: seconds between two periods; None: it runs once
    times: Optional[int]  #: calls that are left; None: no end
    attempt: int  #: attempts that have begun: 0 before the first
    worker: str  #: the worker that has the task, or had it last; empty: none
    error: str  #: the last error; empty: none
    payload: Tuple[bytes, ...]  #: its values
    kind: str  #: workers; or stream, list, list left: a task of TW.SEND
    target: str  #: empty for a task for workers
    maxlen: Optional[int]  #: None: none given
    missed: Optional[str]  #: burst, skip or coalesce; None: it runs once
    max_late: Optional[float]  #: seconds; None: no limit
    missed_periods: int  #: further periods for which the call under way stands
    lapses: int  #: attempts that have lapsed: their leases ran out
    replaced: bool  #: it stands behind an attempt, whose `attempt`, `next` and `worker` these are


@dataclass(frozen=True)
class DeadTask:
    """A dead task, as TW.DEAD lists it. Times are Unix seconds. Queue.get has its payload."""
    id: str
    due: float
    dead: float  #: when it died
    attempt: int
    error: str
    lapses: int  #: attempts that have lapsed
    next: Optional[float]  #: None: a dead task has no next time


@dataclass(frozen=True)
class Stats:
    """A queue, as TW.INFO describes it. A file counts no events, and knows nothing of memory: None."""
    tasks: int  #: waiting, ready and leased
    waiting: int
    ready: int
    leased: int
    dead: int
    paused: bool
    next: Optional[float]  #: of the waiting task that comes first, Unix seconds; None: no task waits
    oldest_ready: float  #: seconds for which one task has been ready for longest; 0: none is ready
    late: Optional[int]  #: ready, and the server has neither delivered nor offered them yet
    held: Optional[int]  #: waiting, because their target refuses
    routes: Optional[int]  #: different targets, with their options
    bytes: Optional[int]  #: memory
    taken: Optional[int]
    done: Optional[int]
    failed: Optional[int]
    lapsed: Optional[int]
    back: Optional[int]
    died: Optional[int]
    dropped: Optional[int]
    skipped: Optional[int]
    coalesced: Optional[int]
    delivered: Optional[int]
    replaced: Optional[int]


class Job(Carrier):
    """A task that the worker has, and that a handler works on. Attributes: `queue`, `id`, `payload` (its
    values, bytes), `due` (Unix seconds, the same in each attempt), `attempt` (from 1 on), `token` and
    `missed_periods` (further periods for which the call stands, the same in each attempt)."""

    def __init__(self, queue: str, id: str, token: str, due: float, attempt: int,
                 payload: Tuple[bytes, ...], missed_periods: int = 0) -> None:
        self.queue, self.id, self.token = queue, id, token
        self.due, self.attempt, self.payload, self.missed_periods = due, attempt, payload, missed_periods
        self._over = threading.Event()
        self._not_yours = self._settled = False  # _settled: somebody tells a result, or has told it.
        self._claimed = self._done = False  # The handler itself acknowledges it, or has done so.
        self._unused = False  # ack_on() was called, and its block has not begun.
        self._failure: Optional[BaseException] = None  # For run_ready().
        self._worker: Any = None
        self._group: Any = None
        self._acking: Any = None  # The task of asyncio in which ack_then() waits for its reply.
        self._touch_at, self._limit_at = 0.0, math.inf  # By time.monotonic().

    def __repr__(self) -> str:
        return f"<Job {self.queue} {self.id} attempt {self.attempt}>"

    @property
    def not_yours(self) -> bool:
        """Whether the task is not yours any more: it was cancelled, or another worker may have it after a
        stall. The result of the handler counts for nothing then."""
        return self._not_yours

    @property
    def over(self) -> bool:
        """Whether the result of the handler counts for nothing: the task is not yours any more, its time limit
        is over, or the worker has given it back at the end of its grace."""
        return self._over.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleeps for so long, or until the job is over. Returns whether it is over. Not for asyncio, where the
        handler is cancelled then."""
        return self._over.wait(seconds)

    def ack_then(self, script: str, keys: Sequence[Union[str, bytes]] = (),
                 args: Sequence[Union[str, bytes, int, float]] = ()) -> Any:
        """Acknowledges the job and runs a script of Redis, in one step. Returns the reply of the script; with
        asyncio it is awaited. The job is done then, whatever the handler does after that.

        The script has its own KEYS and ARGV. In a cluster all keys are in the slot of the queue. Raises
        NotYours, and nothing has happened, if the task is not yours any more; ReplyLost if a lost reply leaves
        that open; EffectError if the script fails, and the job is done all the same. After any other error
        nothing has happened: TypeError or ValueError for a wrong argument, and a TickwheelError if the server
        refuses the call, also of a script that does not compile."""
        return self._held()._ack_then(self, script, keys, args)

    def ack_on(self, connection: sqlite3.Connection) -> ContextManager[sqlite3.Connection]:
        """Acknowledges the job in a transaction over your connection to the file of its queue:

            with job.ack_on(db):
                db.execute("UPDATE accounts ...")

        The block is in the transaction that is open, or in a new one. At its end all is committed, and the job
        is done. After an error all is rolled back, and the job is not acknowledged. Raises NotYours before the
        block if the task is not yours any more, and another TickwheelError if the file refuses the
        acknowledgement or the commit. The errors of your own statements stay those of sqlite3."""
        return self._held()._ack_on(self, connection)  # type: ignore[no-any-return]

    def _held(self) -> Any:
        if self._worker is None:
            raise RuntimeError(f"{self!r} belongs to no worker: expected the job of a handler")
        return self._worker

    @property
    def _next_at(self) -> float:
        """When the job needs a heartbeat, or its end."""
        return min(self._touch_at, self._limit_at)

    def _end(self, not_yours: bool) -> None:
        """Tells the handler."""
        self._not_yours = not_yours
        self._over.set()


# Replies

def text(raw: Union[bytes, str]) -> str:
    """Returns an id or a name; bytes that are no UTF-8 become surrogates, which are sent as they came."""
    return raw.decode("utf-8", "surrogateescape") if isinstance(raw, bytes) else str(raw)


def values_of(raw: List[Any]) -> Tuple[bytes, ...]:
    return tuple(one if isinstance(one, bytes) else str(one).encode("utf-8", "surrogateescape") for one in raw)


def optional_text(raw: Any) -> Optional[str]:
    return None if raw is None else text(raw)


def moved(raw: Any) -> Optional[bool]:
    return None if raw is None else raw == 1


def told_by(raw: Any) -> Dict[str, Any]:
    """Returns a map of the server's: in RESP3 a dict, in RESP2 a flat list."""
    pairs = raw.items() if isinstance(raw, dict) else zip(raw[::2], raw[1::2])
    return {text(name): value for name, value in pairs}


def seconds(ms: Optional[int]) -> Optional[float]:
    return None if ms is None else ms / 1000


def task(id: Union[str, bytes], raw: Any) -> Optional[Task]:
    """Returns the reply of TW.GET for one id."""
    if raw[0] is None:
        return None
    told = told_by(raw[0])
    return Task(id=text(id), state=text(told["state"]), due=told["due"] / 1000,
                next=seconds(told["next"]),
                remaining=told["remaining"] / 1000,
                every=seconds(told["every"]), times=told["times"], attempt=told["attempt"],
                worker=text(told["worker"]), error=text(told["error"]), payload=values_of(told["payload"]),
                kind=text(told["kind"]), target=text(told["target"]), maxlen=told["maxlen"],
                missed=optional_text(told["missed"]),
                max_late=seconds(told["max-late"]),
                missed_periods=told["missed-periods"], lapses=told["lapses"], replaced=told["replaced"] == 1)


def dead_tasks(raw: List[List[Any]]) -> List[DeadTask]:
    return [DeadTask(text(id), due / 1000, dead / 1000, attempt, text(error), lapses, seconds(next_ms))
            for id, due, dead, attempt, error, lapses, next_ms, *_ in raw]


def row(raw: List[Any]) -> Row:
    """A task as TW.NEXT and TW.SCAN show it. A newer server may append elements."""
    return text(raw[0]), raw[1] / 1000, seconds(raw[2])


def rows(raw: List[Any]) -> List[Row]:
    return [row(one) for one in raw]


def stats(raw: Any) -> Optional[Stats]:
    """Returns the reply of TW.INFO; None: there is no such queue."""
    if raw is None:
        return None
    told = {name.replace("-", "_"): value for name, value in told_by(raw).items()}
    found = {field.name: told.get(field.name) for field in fields(Stats)}
    return Stats(**{**found, "paused": told["paused"] == 1, "next": seconds(told["next"]),
                    "oldest_ready": told["oldest_ready"] / 1000})


def says_none(error: Exception) -> bool:
    """Whether a server says that there is no such queue."""
    return str(error).endswith("no such key")


def next_task(raw: Any) -> Optional[Row]:
    return None if raw is None else row(raw)


def scanned(raw: Any) -> Tuple[int, List[Row]]:
    return int(raw[0]), rows(raw[1])


def jobs(raw: Any) -> Iterator[Job]:
    """Yields the tasks of a reply of TW.TAKE. A newer server may append elements, here and in TW.DEAD."""
    for queue, id, token, due, attempt, values, missed_periods, *_ in raw or []:
        yield Job(text(queue), text(id), text(token), due / 1000, attempt, values_of(values),
                  missed_periods)
