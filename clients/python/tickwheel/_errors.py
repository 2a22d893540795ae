# SPDX-License-Identifier: MIT
"""The exceptions of handlers, and the errors of calls: some pass by themselves, the others need a person."""
from __future__ import annotations

import random
import re
import sqlite3
import time
from typing import Dict, Iterable, List, NamedTuple, Optional, Type, Union

from ._tasks import Counts, Job
from ._words import Moment, Seconds, Words, encoded, when

ERROR_BYTES = 4096  # The most that stays with a task.


class Retry(Exception):
    """A handler raises it to end this attempt: the next one comes after `delay` seconds, or at the time `at`;
    after the backoff of the task if neither is given. The last of its tries makes the task dead all the
    same. The reason is a text, or an exception that was caught."""

    def __init__(self, delay: Optional[Seconds] = None, reason: Union[str, BaseException] = "", *,
                 at: Optional[Moment] = None) -> None:
        super().__init__(reason)
        self.reason, self.when = reason, when(delay, at)


class Back(Exception):
    """A handler raises it if it is too early for the work: the task comes again after `delay` seconds, or at
    the time `at`. Nothing has failed, and the attempt does not count."""

    def __init__(self, delay: Optional[Seconds] = None, *, at: Optional[Moment] = None) -> None:
        super().__init__()
        self.when = when(delay, at)
        if not self.when:
            raise ValueError("neither delay nor at is given: expected one of them")


class Dead(Exception):
    """A handler raises it if no further attempt can help: the task is dead at once, with this reason, a text or
    an exception that was caught."""

    def __init__(self, reason: Union[str, BaseException] = "") -> None:
        super().__init__(reason)
        self.reason = reason


class TickwheelError(Exception):
    """A call has failed, in a server or in a file. The classes below tell why; this one itself stands for all
    other reasons. `__cause__` is the error of redis-py or of sqlite3, if there is one."""


class TaskIsDead(TickwheelError):
    """A dead task cannot be moved. replay() lets it wait again, and put() replaces it."""


class WrongArgument(TickwheelError, ValueError):
    """The home does not take an argument, such as an id of 961 bytes. The message has the range."""


class NotAQueue(TickwheelError):
    """The key of the queue holds something else."""


class NoRights(TickwheelError):
    """The user may not do this, the server does not know the user, or the file may only be read."""


class WrongFormat(TickwheelError):
    """Another version of Tickwheel has written the file, and that version can read it."""


class Unavailable(TickwheelError):
    """The home cannot do it now: it cannot be reached, a server is loading its data or lacks replicas, or
    others have written to the file for longer than its `timeout`. The same call may succeed later. If the
    connection broke before the reply, the call may have been done."""


class Full(Unavailable):
    """Memory or the disk is full. Nothing has changed."""


class Elsewhere(Unavailable):
    """Another server has the queue now, or shall have it: this one is a replica, or not the node of a cluster
    for it. Nothing has changed. A client of Sentinels or of a cluster finds the other server."""


class NotYours(TickwheelError):
    """A job cannot be acknowledged, since its task is not yours any more: it was cancelled, or another worker
    may have it. There was no effect."""


class ReplyLost(NotYours):
    """A reply of the server was lost, and then its answer was "not yours". So the script of ack_then() has run
    once, or not at all."""


class EffectError(TickwheelError):
    """The script of ack_then() has failed. The job is done all the same, since its acknowledgement came first,
    and so are the changes that the script made before. The message is the server's."""


class WorkerError(TickwheelError):
    """A worker cannot go on, since the server refuses its commands for a reason that does not pass. The
    message says what to do, and __cause__ is the client's error."""


# The result of an attempt

class Outcome(NamedTuple):
    """How an attempt has ended: TW.ACK, or TW.NACK with these words."""
    kind: str  # done, failed or back
    words: Words
    error: Optional[BaseException] = None

    def command(self, job: Job) -> Words:
        command = "TW.ACK" if self.kind == "done" else "TW.NACK"
        return [command, encoded(job.queue), encoded(job.id), job.token, *self.words]

    def counted(self, reply: Optional[int], unsure: bool) -> str:
        """Returns the name of the count for this reply. If an earlier reply to the same words was lost
        (`unsure`), they may have been carried out then, and their token is void now."""
        if reply is None or (self.kind == "done" and reply == 0):
            return self.kind if unsure else "not_yours"
        return "died" if self.kind == "failed" and reply == 0 else self.kind


DONE = Outcome("done", [])
BACK = Outcome("back", ["BACK"])


def described(error: Optional[BaseException]) -> str:
    """Returns `Type: message`. An exception that has no text, since it raises one itself, has its type."""
    if error is None:
        return ""
    try:
        message = str(error)
    except Exception:  # pylint: disable=broad-except
        message = ""
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def reason_of(error: Union[Retry, Dead]) -> bytes:
    """Returns the reason that a handler gives, or else what was the cause."""
    reason = error.reason or error.__cause__
    return shortened(reason if isinstance(reason, str) else described(reason))


def shortened(message: str) -> bytes:
    """Returns at most 4,096 bytes of a text, cut between two characters."""
    data = message.encode("utf-8", "backslashreplace")
    return data if len(data) <= ERROR_BYTES else data[:ERROR_BYTES].decode("utf-8", "ignore").encode()


def outcome_of(error: Optional[BaseException]) -> Outcome:
    """Returns the outcome of a handler that has returned, or has raised this error."""
    if error is None:
        return DONE
    if isinstance(error, Retry):
        return Outcome("failed", [*error.when, "ERROR", reason_of(error)], error)
    if isinstance(error, Back):
        return Outcome("back", ["BACK", *error.when])
    if isinstance(error, Dead):
        return Outcome("failed", ["DEAD", "ERROR", reason_of(error)], error)
    return Outcome("failed", ["ERROR", shortened(described(error))], error)


def expired(limit_s: Optional[float]) -> TimeoutError:
    """Returns the error of a handler whose time limit is over."""
    return TimeoutError(f"the time limit of {limit_s:g} s is over")


def added(counts: Counts, name: str) -> Counts:
    """Counts an attempt. One whose task has died has failed too."""
    names = ("failed", "died") if name == "died" else (name,)
    return counts._replace(**{each: getattr(counts, each) + 1 for each in names})


# Errors of the drivers

LOST = ""  # The code of a connection that failed.

# The class of an error, by its code; if that says nothing, by the contract's text.
BY_CODE: Dict[str, Type[TickwheelError]] = {
    **dict.fromkeys((LOST, "LOADING", "TRYAGAIN", "ASK", "NOREPLICAS", "BUSY"), Unavailable),
    **dict.fromkeys(("OOM", "MISCONF"), Full),
    **dict.fromkeys(("READONLY", "UNBLOCKED", "MASTERDOWN", "CLUSTERDOWN", "MOVED"), Elsewhere),
    **dict.fromkeys(("NOAUTH", "WRONGPASS", "NOPERM"), NoRights),
    "WRONGTYPE": NotAQueue, "CROSSSLOT": WrongArgument,
}
BY_TEXT: Dict[str, Type[TickwheelError]] = {
    "the task is dead: ": TaskIsDead,
    r"format is .*: expected \d+; the version": WrongFormat,
    "attempt to write a readonly database|path is .*; expected the right": NoRights,
    "string or blob too big|.*: expected ": WrongArgument,
}
VIEW = re.compile("^tw_[a-z]+: ")  # SQL puts the name of a view before the text.

# redis-py makes classes of some errors, and takes the code out of their texts; newer versions of more errors.
# They are known by their names, because a program that only uses a file may have no redis-py.
CLASSES = {
    "ReadOnlyError": "READONLY", "BusyLoadingError": "LOADING", "MasterDownError": "MASTERDOWN",
    "ClusterDownError": "CLUSTERDOWN", "TryAgainError": "TRYAGAIN", "OutOfMemoryError": "OOM",
    "MovedError": "MOVED", "AskError": "ASK", "ClusterCrossSlotError": "CROSSSLOT",
    "AuthenticationError": "NOAUTH", "AuthenticationWrongNumberOfArgsError": "NOAUTH",
    "AuthorizationError": "NOPERM", "NoPermissionError": "NOPERM",
    "ConnectionError": LOST, "TimeoutError": LOST, "OSError": LOST, "RedisClusterException": LOST,
    "ClusterError": LOST,
}
OF_DRIVERS = {*CLASSES, "RedisError"}
FILE = {"database is locked": "BUSY", "database table is locked": "BUSY", "database or disk is full": "MISCONF",
        "disk I/O error": LOST}  # Errors of SQLite that pass.
CODE = re.compile(r"[A-Z]{2,}\b")

ADVICE = {
    "NOAUTH": "give the client the name and the password of a user of this server",
    "WRONGPASS": "give the client the name and the password of a user of this server",
    "NOPERM": "the user needs the rights to these keys, and +tw.take +tw.ack +tw.nack +tw.touch",
    "WRONGTYPE": "the key is no queue: name another one, or remove the key",
    "CROSSSLOT": "the server is a node of a cluster: use redis.RedisCluster",
    "MOVED": "the server is a node of a cluster: use redis.RedisCluster",
}


def names_of(error: object) -> List[str]:
    """Returns the names of its class, and of those from which that derives."""
    return [base.__name__ for base in type(error).__mro__]


def code(error: BaseException) -> str:
    """Returns the first word of a server's error; LOST if the connection failed; ERR for all others."""
    inner = error.args[0] if error.args else None
    if isinstance(inner, Exception) and "RedisError" in names_of(inner):
        return code(inner)  # Of a connection that was refused while it began.
    names = names_of(error)
    known = [CLASSES[name] for name in names if name in CLASSES]
    if known:
        return known[0]
    if isinstance(error, sqlite3.Error):
        return FILE.get(str(error), "ERR")
    found = CODE.match(str(error)) if "ResponseError" in names else None
    return found[0] if found else "ERR"


def said_by(error: BaseException) -> str:
    """Returns the text that the contract has for the error of a driver. redis-py takes some codes out of it."""
    said, known = str(error), code(error)
    if isinstance(error, sqlite3.Error):
        return VIEW.sub("", said)
    return said if known in ("ERR", LOST) or said.startswith(known) else f"{known} {said}"


def class_of(error: BaseException) -> Type[TickwheelError]:
    """Returns the class for the error of a driver."""
    known, said = code(error), said_by(error)
    if known in BY_CODE:
        return BY_CODE[known]
    return next((kind for text, kind in BY_TEXT.items() if re.match(text, said, re.DOTALL)), TickwheelError)


class Translation:
    """Raises the errors of redis-py and of sqlite3 in its block as those of this package. All others, such as
    those of a wrong argument, stay as they are."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: Optional[BaseException], __: object) -> None:
        if isinstance(error, sqlite3.Error) or (error and not OF_DRIVERS.isdisjoint(names_of(error))):
            raise class_of(error)(said_by(error)) from error


TRANSLATED = Translation()


def passes(error: BaseException, cluster: bool) -> bool:
    """Whether the same command may succeed later."""
    return issubclass(class_of(error), Unavailable) and (cluster or code(error) != "MOVED")


def fatal(command: str, queues: Iterable[str], error: BaseException) -> WorkerError:
    """Returns the error that ends a worker whose command about these queues was refused."""
    said = said_by(error)
    advice = ADVICE.get(code(error), "")
    if "unknown command" in said or "doesn't exist in Redis commands" in said:
        advice = "load the module tickwheel.so into the server, or use a newer one"
    made = WorkerError(f"{command} {' '.join(queues)}: {said}" + (f"; {advice}" if advice else ""))
    made.__cause__ = error
    return made


def endless(limit: int, job: Job) -> str:
    """Returns the text of the error of a run_ready() whose tasks do not end."""
    return (f"{limit} attempts were made, and {job!r} is ready: raise limit, unless its handler puts it, or "
            "gives it back, for now each time")


class Waits:
    """The waits between tries: from 100 ms on, each twice as long as the last one, at most `most_s`, half of it
    at random, so that the workers of a server that comes back do not all come at once."""

    def __init__(self, most_s: float = 5.0) -> None:
        self.most_s = most_s
        self.next_s: float
        self.reset()

    def next(self) -> float:
        wait, self.next_s = self.next_s, min(2 * self.next_s, self.most_s)
        return wait * random.uniform(0.5, 1)

    def reset(self) -> None:
        self.next_s = min(0.1, self.most_s)


class News:
    """Whether a text is news for the log. The same one is again after a minute: heartbeats that fail do so many
    times a second."""
    again_s = 60.0

    def __init__(self) -> None:
        self.told: Dict[str, float] = {}

    def has(self, text: str) -> bool:
        now = time.monotonic()
        if now < self.told.get(text, 0.0):
            return False
        # A new dict, because another thread may be going over the old one.
        self.told = {**{one: end for one, end in self.told.items() if now < end}, text: now + self.again_s}
        return True
