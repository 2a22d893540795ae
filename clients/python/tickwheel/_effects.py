# SPDX-License-Identifier: MIT
"""A job's own effect together with its acknowledgement: a script of Redis (Job.ack_then), or the rows of a
transaction in the file (Job.ack_on)."""
from __future__ import annotations

import contextlib
import sqlite3
from typing import Any, Callable, Iterator, Optional, Tuple

from ._errors import TRANSLATED, EffectError, NotYours, ReplyLost
from ._file import Within
from ._tasks import Job, text
from ._words import Words, encoded

# A script of Redis stands between these two, with its own KEYS and ARGV, and keeps the numbers of its lines. If
# it does not compile, nothing is acknowledged. TW.ACK comes first: it is refused where nothing may be written,
# and after it the server lets the script write whatever happens.
HEAD = "local effect = function(KEYS, ARGV) "
TAIL = """
end
local keys, args = {}, {}
for i = 2, #KEYS do keys[i - 1] = KEYS[i] end
for i = 3, #ARGV do args[i - 2] = ARGV[i] end
local done = redis.pcall('TW.ACK', KEYS[1], ARGV[1], ARGV[2])
if type(done) == 'table' then return done end
if done ~= 1 then return {0} end
local went, reply = pcall(effect, keys, args)
local failed = type(reply) == 'table' and reply.err
if not went or failed then return {2, failed or tostring(reply)} end
return {1, reply}
"""


def checked(name: str, values: Any, kinds: Tuple[type, ...], wish: str) -> Words:
    """Returns the keys or the arguments of a script as a list. Raises TypeError, which names the value."""
    if not isinstance(values, (list, tuple)):
        raise TypeError(f"{name} is {values!r}: expected a list of {wish}")
    for value in values:
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise TypeError(f"{name} has {value!r}: expected {wish}")
    return list(values)


def script_words(job: Job, script: str, keys: Any, args: Any, slot_of: Optional[Callable[[Any], int]]) -> Words:
    """Returns the command that acknowledges a job and runs the script of its handler. In a cluster `slot_of`
    tells the slot of a key."""
    if not isinstance(script, str):
        raise TypeError(f"script is {script!r}: expected a str")
    if script.startswith("#!"):
        line = script.splitlines()[0]
        raise ValueError(f"script begins with {line!r}: expected Lua without such a line")
    names = checked("keys", keys, (str, bytes), "str or bytes")
    values = checked("args", args, (str, bytes, int, float), "str, bytes, int or float")
    if slot_of is not None:
        for name in names:
            if slot_of(name) != slot_of(job.queue):
                raise ValueError(f"key {name!r} is in another slot than the queue {job.queue!r}: expected the "
                                 "same text in braces")
    return ["EVAL", HEAD + script + TAIL, 1 + len(names), encoded(job.queue), *names, encoded(job.id),
            job.token, *values]


def not_yours(job: Job) -> NotYours:
    return NotYours(f"{job.id!r} in {job.queue!r} is not yours any more")


def reply_lost(job: Job, why: str) -> ReplyLost:
    return ReplyLost(f"{job.id!r} in {job.queue!r}: {why}, so the script has run once or not at all, and the "
                     "task is not yours any more")


def reply_of(raw: Any) -> Any:
    """Returns the reply of the script, from a reply that says that TW.ACK has counted."""
    if raw[0] == 2:
        raise EffectError(text(raw[1]))
    return raw[1] if len(raw) > 1 else None


def end(db: sqlite3.Connection, how: str) -> None:
    """Ends a transaction by "commit" or "rollback". Where SQLite itself commits, the methods do nothing."""
    if getattr(db, "autocommit", False) is True:
        db.execute(how)
    else:
        getattr(db, how)()


def release(db: sqlite3.Connection) -> None:
    """Raises an error unless the transaction is still the one that has the acknowledgement."""
    try:
        db.execute("RELEASE tw_ack")
    except sqlite3.OperationalError as error:
        raise RuntimeError("the transaction of job.ack_on() was ended within its block: expected no commit, no "
                           "rollback and no executescript() there") from error


@contextlib.contextmanager
def transaction(worker: Any, job: Job, db: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """The block of Job.ack_on. The job is done when the commit at its end has returned."""
    job._unused, claimed = False, False
    try:
        worker._claim(job)
        claimed = True
        with TRANSLATED:
            if not db.in_transaction:
                db.execute("BEGIN IMMEDIATE")
            if Within(db).execute_command("TW.ACK", job.queue, job.id, job.token) != 1:
                raise not_yours(job)
            db.execute("SAVEPOINT tw_ack")
        yield db
        with TRANSLATED:
            release(db)
            end(db, "commit")
    except BaseException:
        try:
            if db.in_transaction:
                end(db, "rollback")
        finally:
            if claimed:
                worker._unclaim(job)
        raise
    worker._acked(job)
