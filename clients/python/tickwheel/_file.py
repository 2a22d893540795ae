# SPDX-License-Identifier: MIT
"""The other home of tasks: an SQLite file, by plain SQL (docs/store.md). A File is a client that knows the
commands of the module, so queues and workers are the same in both homes."""
from __future__ import annotations

import contextlib
import os
import re
import secrets
import sqlite3
import struct
import threading
import time
import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional, Pattern, Sequence, Tuple, Union
from urllib.parse import quote

from ._errors import TRANSLATED
from ._forecast import Forecast
from ._tasks import text
from ._words import MOST_MS, PAGE, Seconds, Value, Words, encoded, milliseconds

POLL_S = 0.01  # A change by others is seen after so long.
COLUMNS = {"EVERY": "every_ms", "TIMES": "times", "MISSED": "missed", "MAXLATE": "max_late_ms",
           "TRIES": "tries", "JITTER": "jitter"}
CONDITIONS = ("NX", "XX", "GT", "LT")
EXTENSION = "tickwheel_sqlite"
FORMAT = 1  # of the tables
MOST = 1000  # tasks of a take, or of a range that does not say how many
MOST_ID = 1024  # bytes of an id, in each verb but a put
MOST_MATCH = 255  # bytes of a pattern
MOST_PATH = 512 - len("-journal")  # bytes; SQLite adds the name of a journal, which needs room too
MOST_TIMEOUT_MS = 2**31 - 1
CANNOT_OPEN = "unable to open database file"
NO_TARGETS = "a file has no targets: put a task for workers, or send this one in a server with the module"

LOOKS = ("TW.GET", "TW.LEN", "TW.NEXT", "TW.SCAN", "TW.RANGE", "TW.FORECAST", "TW.INFO", "TW.DEAD")

# The process that has opened a file. SQLite cannot go on in a child of fork(), which does not hold its locks.
opened: Dict[str, int] = {}

# The call of Linux that os.stat() stands for, and the words that ask it for the inode alone.
STATX: Any = None
with contextlib.suppress(ImportError):  # Python may be built without ctypes.
    import ctypes
    STATX = getattr(ctypes.CDLL(None) if os.name == "posix" else None, "statx", None)
AT_FDCWD, STATX_INO, STATX_BYTES, INODE_AND_DEVICE = -100, 0x100, 256, "=32xQ96xII"

TASK = """
    SELECT state, due_ms AS due, next_ms AS next, attempt, lapses, replaced, every_ms AS every, times, missed,
        missed_periods AS "missed-periods", max_late_ms AS "max-late", coalesce(worker, '') AS worker,
        coalesce(error, '') AS error, payload
    FROM tw_look WHERE queue = ? AND id = ?"""

# A lease that has run out ends at the next call for its task.
OVER = "coalesce(lease_end_ms <= (SELECT clock FROM tw_clock), 0)"

# The next time at which a take may find something: also the end of a lease.
NEXT_PLACE = """
    SELECT min(place_ms) FROM tw_task INDEXED BY tw_order WHERE queue = ? AND dead_ms IS NULL AND run = 0
        AND NOT EXISTS (SELECT 1 FROM tw_queue WHERE name = queue AND paused <> 0)
        AND NOT EXISTS (SELECT 1 FROM tw_meta WHERE restored & 1)"""

TAKE = "INSERT INTO tw_take(queue, take, worker, lease_ms, count) VALUES (?, ?, ?, ?, ?)"

# Whether a take that has just looked into a queue goes on there.
MORE = """
    SELECT 1 FROM tw_task INDEXED BY tw_order, tw_clock WHERE queue = ? AND dead_ms IS NULL AND replaced = 0
        AND run = 0 AND place_ms <= clock
        AND NOT EXISTS (SELECT 1 FROM tw_queue WHERE name = queue AND paused <> 0) LIMIT 1"""

RANGE = """
    SELECT id, due_ms, next_ms FROM tw_task INDEXED BY tw_order WHERE queue = :queue AND dead_ms IS NULL
        AND replaced = 0 AND run = 0 AND place_ms <= :last AND next_ms BETWEEN :begin AND :end
        AND ({0}, revision) > (:begin, :behind)
    ORDER BY {0}, revision LIMIT :count"""

# How many tasks are in each state, the first next time of them, and how long one has been ready.
LOAD = """
    SELECT state, count(*), min(next_ms), clock - min(place_ms) FROM tw_look, tw_clock WHERE queue = ?
    GROUP BY state"""

# The tasks that a promote of all may change.
WAITING = f"""
    SELECT id FROM tw_look WHERE queue = ? AND dead_ms IS NULL AND (state = 'waiting' OR {OVER})
    ORDER BY place_ms, revision LIMIT ?"""

PROMOTE = "INSERT INTO tw_promote(queue, id) VALUES (?, ?) RETURNING id"
REPLAY = "INSERT INTO tw_replay(due_ms, queue, id) VALUES (?, ?, ?) RETURNING id"
PURGE = """
    INSERT INTO tw_cancel(queue, id)
    SELECT queue, id FROM tw_task WHERE queue = ? AND id = ? AND dead_ms IS NOT NULL RETURNING id"""


def now_ms() -> int:
    """Returns Unix time in ms, rounded up, so that nothing is early."""
    return -(-time.time_ns() // 1000000)


def place_of(path: str) -> Optional[Tuple[int, int]]:
    """Returns device and inode of a file; None: there is none. It does not ask for the times of the file, as
    os.stat() does: since Linux 6.13 the next write would give the file new ones, and each commit would write
    the journal of the file system."""
    if STATX is not None:
        found = ctypes.create_string_buffer(STATX_BYTES)
        if STATX(AT_FDCWD, os.fsencode(path), 0, STATX_INO, found) == 0:
            inode, major, minor = struct.unpack_from(INODE_AND_DEVICE, found)
            return os.makedev(major, minor), inode
    try:
        status = os.stat(path)  # It knows why statx() has failed, or does its work.
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_dev, status.st_ino


def path_of(path: Union[str, os.PathLike[str]]) -> str:
    """Returns the whole path of a file, without symbolic links. Raises TypeError or ValueError."""
    given = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(given, str):
        raise TypeError(f"path is {path!r}: expected a str, or a path of pathlib")
    if given in ("", ":memory:") or "\0" in given:
        raise ValueError(f"path is {given!r}: expected a file, which each thread opens")
    return os.path.realpath(given)


def refused(path: str, error: Exception) -> sqlite3.OperationalError:
    """Returns the error of a file that cannot be opened. SQLite does not tell the reason."""
    size, folder = len(os.fsencode(path)), os.path.dirname(path)
    if size > MOST_PATH:
        told = (f"path has {size} bytes from the root on: expected at most {MOST_PATH} (SQLite's limit); give "
                "the file a shorter path")
    elif isinstance(error, OSError):
        told = f"path is {path!r}: {error.strerror}"
    elif os.path.isdir(path):
        told = f"path is {path!r}: expected a file, found a folder"
    elif not os.path.isdir(folder):
        told = f"path is {path!r}: expected a file in a folder that is there"
    elif not os.access(path if os.path.exists(path) else folder, os.W_OK) or not os.access(folder, os.W_OK):
        told = f"path is {path!r}: {error}; expected the right to write the file, and its log beside it"
    else:
        told = f"path is {path!r}: {error}"
    return sqlite3.OperationalError(told)


def check_format(db: sqlite3.Connection) -> None:
    """Raises the contract's error for tables of another version. Those from before the first release had a row
    for each name."""
    cursor = db.cursor()
    cursor.row_factory = None
    try:
        row = cursor.execute("SELECT format FROM tw_meta").fetchone()
    except sqlite3.OperationalError as error:
        if "no such column" not in str(error):
            raise
        row = cursor.execute("SELECT 0 FROM tw_meta WHERE name = 'version'").fetchone()
    if row is None or row[0] != FORMAT:
        raise sqlite3.OperationalError(f"format is {row and row[0]}: expected {FORMAT}; the version that wrote "
                                       "it can read it")


def pattern_of(glob: bytes) -> Pattern[bytes]:
    """Returns the expression of a pattern of KEYS. No `*` is tried again, so that no pattern is slow."""
    if len(glob) > MOST_MATCH:
        raise sqlite3.IntegrityError(f"MATCH has {len(glob)} bytes: expected at most {MOST_MATCH}")
    parts, at = [b""], 0
    while at < len(glob):
        sign, at = glob[at:at + 1], at + 1
        if sign == b"*":
            parts.append(b"")
        elif sign == b"?":
            parts[-1] += b"."
        elif sign == b"[":
            chosen, at = class_of(glob, at)
            parts[-1] += chosen
        else:
            if sign == b"\\" and at < len(glob):
                sign, at = glob[at:at + 1], at + 1
            parts[-1] += re.escape(sign)
    if len(parts) > 1:
        middle = [b"(?=(.*?%b))\\%d" % (part, number) for number, part in enumerate(parts[1:-1], 1)]
        parts = [parts[0], *middle, b".*" + parts[-1]]
    return re.compile(b"".join(parts), re.DOTALL)


def class_of(glob: bytes, at: int) -> Tuple[bytes, int]:
    """Returns the expression of the class of bytes that begins here, and the place behind it."""
    negated = glob[at:at + 1] == b"^"
    at, chosen = at + negated, set()
    while at < len(glob) and glob[at:at + 1] != b"]":
        if glob[at:at + 1] == b"\\" and at + 1 < len(glob):
            at += 1
            chosen.add(glob[at])
        elif glob[at + 1:at + 2] == b"-" and at + 2 < len(glob):
            first, last = sorted((glob[at], glob[at + 2]))
            chosen.update(range(first, last + 1))
            at += 2
        else:
            chosen.add(glob[at])
        at += 1
    found = b"".join(b"\\x%02x" % one for one in range(256) if (one in chosen) != negated)
    return b"[%b]" % found if found else b"(?!)", at + 1


def blob(value: Value) -> bytes:
    """Returns a payload as redis-py would send it."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")


def named(id: Any) -> bytes:
    """Returns the id of a task for statements that do not check it themselves. Raises the contract's error."""
    name = encoded(id)
    if not 1 <= len(name) <= MOST_ID:
        raise sqlite3.IntegrityError(f"id has {len(name)} bytes: expected 1 to {MOST_ID}")
    return name


def time_of(words: Words) -> int:
    """Returns the time of `IN ms` or `AT ms`. A delay is rounded up, but a task for now is ready at once."""
    ms = int(words[1])
    if words[0] == "AT":
        return ms
    return ms + now_ms() if ms else time.time_ns() // 1000000


class Connection(sqlite3.Connection):
    """A connection that weak references may name."""


class File:
    """The queues of an SQLite file, for any thread: the `client` of Queue and Worker. Each thread has its own
    connection. A file without the tables gets them by the extension tickwheel_sqlite. `timeout`: seconds that
    a call waits while others write, 0 to 2147483. Raises TypeError and ValueError for a wrong argument, and
    else a TickwheelError, as the calls of a Queue do; execute_command() has the errors of sqlite3. When the
    file was replaced or removed, all calls fail. So they do in a child of fork(), if its parent has opened the
    file."""

    def __init__(self, path: Union[str, os.PathLike[str]], timeout: Seconds = 5.0) -> None:
        self.path, self._own = path_of(path), threading.local()
        self.timeout = milliseconds("timeout", timeout, 0, MOST_TIMEOUT_MS) / 1000
        self._places: Dict[str, Tuple[int, int]] = {}  # Device and inode of the file, its log and its index.
        self._lock = threading.Lock()  # Held while a connection is opened.
        self._connections: weakref.WeakSet[sqlite3.Connection] = weakref.WeakSet()  # Those that are open.
        self._commands: Dict[str, Callable[..., Any]] = {
            "TW.PUT": self._put, "TW.CANCEL": self._cancel, "TW.MOVE": self._move, "TW.GET": self._get,
            "TW.LEN": self._len, "TW.NEXT": self._next, "TW.SCAN": self._scan, "TW.DEAD": self._dead,
            "TW.REPLAY": self._replay, "TW.PURGE": self._purge, "TW.ACK": self._ack, "TW.NACK": self._nack,
            "TW.PROMOTE": self._promote, "TW.PAUSE": lambda key: self._pause(key, 1),
            "TW.RESUME": lambda key: self._pause(key, 0),
            "TW.TOUCH": self._touch, "TW.RANGE": self._range, "TW.FORECAST": self._forecast,
            "TW.INFO": self._info}
        with TRANSLATED:
            self._open()

    def _open(self) -> None:
        try:
            before = place_of(self.path)
        except OSError as error:
            raise refused(self.path, error) from error
        if before is not None:
            self._places = {"": before}
        self._check_log()
        self._install(self._db())
        self._note_places()

    def _note_places(self) -> None:
        """Notes the file of the connections, its log and its index. A log is theirs as long as one of them is
        open: SQLite removes it with the last one, and makes another with the next."""
        found = {end: place_of(self.path + end) for end in ("", "-wal", "-shm")}
        self._check(all_files=False)
        if found["-wal"] and not found["-shm"]:
            raise self._lost("-shm", "replaced")
        self._places = {end: place for end, place in found.items() if place is not None}

    def __repr__(self) -> str:
        return f"<File {self.path}>"

    def _lost(self, end: str, how: str) -> sqlite3.OperationalError:
        return sqlite3.OperationalError(f"{self.path}{end} was {how} while it was open: connect again, when "
                                        "the old -wal and -shm have been moved with the file, or removed")

    def _is_empty(self, end: str) -> bool:
        """Asks for the times too (place_of), but only while the file is opened."""
        try:
            return os.path.getsize(self.path + end) == 0
        except (FileNotFoundError, NotADirectoryError):
            return True

    def _check_log(self) -> None:
        """Raises an error if a log lies beside no file, or an empty one. SQLite would remove it, and it may
        have the newest tasks of a file that was moved away."""
        if not self._is_empty("-wal") and self._is_empty(""):
            raise sqlite3.OperationalError(
                f"{self.path}-wal is the log of a file that is not here any more: move it and -shm with that "
                "file, under its new name, or remove them if it is gone")

    def _check_process(self) -> None:
        if opened.setdefault(self.path, os.getpid()) != os.getpid():
            raise sqlite3.OperationalError(f"{self.path} was opened by the parent of this process: open it "
                                           "after the fork alone, or start the process without a fork")

    def _check(self, all_files: bool = True) -> None:
        """Raises an error if the file is not the one at the path any more: its tasks would be lost. While no
        connection is open, only the file itself is known: its log has left with the last one."""
        for end, place in self._places.items():
            if end and not all_files:
                continue
            with contextlib.suppress(PermissionError):  # Then nothing is proved.
                found = place_of(self.path + end)
                if found != place:
                    raise self._lost(end, "replaced" if found else "removed")

    def _db(self) -> sqlite3.Connection:
        """Returns this thread's connection."""
        self._check_process()
        made: Optional[sqlite3.Connection] = getattr(self._own, "connection", None)
        if made is None:
            self._check(all_files=False)  # Before the lock: a child of fork() might wait for it for ever.
            with self._lock:
                self._own.connection = made = self._connect()
        return made

    def _connect(self) -> sqlite3.Connection:
        others = list(self._connections)  # No thread that ends closes one of them meanwhile.
        address = f"file:{quote(os.fsencode(self.path))}?mode={'rw' if self._places else 'rwc'}"
        try:
            made = sqlite3.connect(address, self.timeout, isolation_level=None, uri=True, factory=Connection)
        except sqlite3.OperationalError as error:
            if str(error) != CANNOT_OPEN:
                raise
            raise refused(self.path, error) from error
        try:
            self._check(bool(others))  # It has read nothing yet, so it leaves the log of another file alone.
            made.execute("PRAGMA schema_version").fetchone()  # From now on the log stays.
            if not others:
                self._note_places()
        except (sqlite3.Error, OSError):
            made.close()
            raise
        self._connections.add(made)
        return made

    def close(self) -> None:
        """Closes this thread's connection. Those of other threads end with their threads."""
        made, self._own.connection = getattr(self._own, "connection", None), None
        if made is not None:
            with self._lock:
                self._connections.discard(made)
                made.close()

    def execute_command(self, *words: Any, **_: Any) -> Any:
        """Does a command of the module (docs/redis.md), and returns its reply as redis-py does."""
        name = str(words[0]).upper()
        if name == "TW.TAKE":
            return FileLink(self).take(words)
        if name not in self._commands:
            told = NO_TARGETS if name == "TW.SEND" else "a file has no such statement"
            raise NotImplementedError(f"{name}: {told}")
        key = text(words[1]) if isinstance(words[1], bytes) else words[1]
        with self.transaction(name in LOOKS):
            return self._commands[name](key, *words[2:])

    @staticmethod
    def _install(db: sqlite3.Connection) -> None:
        if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'tw_meta'").fetchone():
            check_format(db)
            return
        try:
            db.enable_load_extension(True)
            db.load_extension(EXTENSION)
            db.execute("SELECT tw_install()").fetchone()
        except (AttributeError, sqlite3.OperationalError) as error:
            raise sqlite3.OperationalError(
                f"the file has no tables of Tickwheel, and the extension {EXTENSION} cannot make them "
                f"({error}): `tickwheel put --store FILE </dev/null` does") from error
        finally:
            with contextlib.suppress(AttributeError):
                db.enable_load_extension(False)

    @contextlib.contextmanager
    def transaction(self, look: bool = False) -> Iterator[sqlite3.Connection]:
        """Commits at the end, or rolls back after an error. A look does not wait for those who write. The file
        may have gone during the wait, so its place is checked after that."""
        db = self._db()
        db.execute("BEGIN" if look else "BEGIN IMMEDIATE")
        with ended(db, "COMMIT", "ROLLBACK"):
            self._check()
            yield db

    def _cursor(self, statement: str, *values: Any, **by_name: Any) -> sqlite3.Cursor:
        """Does a statement in a transaction. Rows are tuples, whatever rows the caller's connection makes."""
        cursor = self._db().cursor()
        cursor.row_factory = None
        return cursor.execute(statement, by_name or values)

    def _rows(self, statement: str, *values: Any, **by_name: Any) -> List[Any]:
        return self._cursor(statement, *values, **by_name).fetchall()

    def _each(self, statement: str, ids: Sequence[bytes], *first: Any) -> int:
        """Does a statement for each of these ids. Returns how many tasks it has changed."""
        return sum(len(self._rows(statement, *first, id)) for id in ids)

    def _insert(self, view: str, row: Dict[str, Any]) -> bool:
        """Returns whether the view has done it."""
        names, places = ", ".join(row), ", ".join("?" * len(row))
        return bool(self._rows(f"INSERT INTO {view}({names}) VALUES ({places}) RETURNING id", *row.values()))

    # Tasks

    def _put(self, key: str, id: Any, *words: Value) -> Optional[bytes]:
        row: Dict[str, Any] = {"queue": key, "id": secrets.token_hex(8).encode() if id == "*" else encoded(id)}
        conditions, rest = [], iter(words)
        for word in rest:
            if word in ("IN", "AT"):
                row["due_ms"] = time_of([word, next(rest)])
            elif word in CONDITIONS or word == "KEEPDUE":
                conditions.append(str(word))
            elif word == "BACKOFF":
                row["backoff_ms"], row["factor"], row["backoff_max_ms"] = next(rest), next(rest), next(rest)
            elif word == "PAYLOAD":
                values = list(rest)
                if len(values) != 1:
                    raise ValueError(f"payload has {len(values)} values: expected one, as this home is a file")
                row["payload"] = blob(values[0])
            else:
                row[COLUMNS[str(word)]] = next(rest)
        if "missed" in row:
            row["missed"] = str(row["missed"]).lower()
        row["condition"] = " ".join(sorted(conditions)) or None
        return row["id"] if self._insert("tw_put", row) else None

    def _cancel(self, key: str, *ids: Any) -> List[int]:
        return [self._cancel_one(key, encoded(id)) for id in ids]

    def _cancel_one(self, key: str, id: bytes) -> int:
        found = self._rows(f"SELECT state = 'leased' AND NOT {OVER} FROM tw_look WHERE queue = ? AND id = ?",
                           key, id)
        self._rows("INSERT INTO tw_cancel(queue, id) VALUES (?, ?)", key, id)
        return 1 + int(found[0][0]) if found else 0

    def _move(self, key: str, id: Any, how: str, ms: int, condition: Optional[str] = None) -> Optional[int]:
        name = named(id)
        if not self._rows("SELECT 1 FROM tw_task WHERE queue = ? AND id = ?", key, name):
            return None
        return len(self._rows("INSERT INTO tw_move(queue, id, due_ms, condition) VALUES (?, ?, ?, ?)"
                              " RETURNING id", key, name, time_of([how, ms]), condition))

    def _told(self, key: str, id: bytes) -> Optional[Dict[str, Any]]:
        at = self._cursor(TASK, key, id)
        for row in at:
            told = dict(zip([column[0] for column in at.description], row))
            payload = b"" if told["payload"] is None else blob(told["payload"])
            return {**told, "payload": [payload], "remaining": max(0, (told["next"] or 0) - now_ms()),
                    "kind": "workers", "target": "", "maxlen": None}
        return None

    def _get(self, key: str, *ids: Any) -> List[Optional[Dict[str, Any]]]:
        return [self._told(key, named(id)) for id in ids]

    def _len(self, key: str) -> int:
        return int(self._rows("SELECT count(*) FROM tw_task WHERE queue = ? AND dead_ms IS NULL", key)[0][0])

    def _next(self, key: str) -> Optional[Tuple[bytes, int, int]]:
        found: List[Tuple[bytes, int, int]] = self._range(key, "-", "+", "COUNT", 1)
        return found[0] if found else None

    def _scan(self, key: str, cursor: int, _: str, count: int, *match: Any) -> Tuple[int, List[Any]]:
        pattern = pattern_of(match[1] if match else b"*")
        found = self._rows("SELECT revision, id, due_ms, next_ms FROM tw_look WHERE queue = ? AND revision > ?"
                           " ORDER BY revision LIMIT ?", key, int(cursor), int(count))
        last = found[-1][0] if len(found) == int(count) else 0
        return last, [row for _, *row in found if pattern.fullmatch(row[0])]

    def _moment(self) -> Tuple[int, bool]:
        """Returns the time, and whether the clock was set back. Then a waiting task may have a place in the
        order that lies behind its next time; else both are the same."""
        found: Tuple[int, int] = self._rows("SELECT clock, clock_ms > clock FROM tw_meta, tw_clock")[0]
        return found[0], bool(found[1])

    def _range(self, key: str, first: Any, last: Any, *words: Any) -> List[Any]:
        given, (now, set_back) = dict(zip(words[::2], words[1::2])), self._moment()
        begin = max(now + 1, 0 if first == "-" else int(first))
        end = MOST_MS if last == "+" else int(last)
        after = self._rows("SELECT revision FROM tw_task WHERE queue = ? AND id = ? AND next_ms = ?"
                           " AND dead_ms IS NULL", key, given["AFTER"], begin) if "AFTER" in given else []
        return self._rows(RANGE.format("next_ms" if set_back else "place_ms"), queue=key, begin=begin, end=end,
                          behind=after[0][0] if after else -1, last=MOST_MS if set_back else end,
                          count=int(given.get("COUNT", MOST)))

    def _forecast(self, key: str, *words: Any) -> List[int]:
        given, (now, set_back) = dict(zip(words[::2], words[1::2])), self._moment()
        forecast = Forecast(now, int(given.get("STEP", 1000)), int(given.get("STEPS", 60)))
        return forecast.read(self._rows, key, set_back)

    def _info(self, key: str) -> Optional[Dict[str, Any]]:
        """A file does not count events, and has no targets. Returns None if there is no such queue."""
        paused = bool(self._rows("SELECT 1 FROM tw_queue WHERE name = ? AND paused <> 0", key))
        found = {row[0]: row[1:] for row in self._rows(LOAD, key)}
        counts = {state: found[state][0] if state in found else 0
                  for state in ("waiting", "ready", "leased", "dead")}
        if not found and not paused:
            return None
        return {**counts, "tasks": sum(counts.values()) - counts["dead"], "paused": int(paused),
                "next": found["waiting"][1] if "waiting" in found else None,
                "oldest-ready": max(0, found["ready"][2]) if "ready" in found else 0}

    def _promote(self, key: str, *words: Any) -> int:
        """Promotes a task, `IDS 1 id`, or a page of them, `ALL`, and returns their number. If each task of the
        page dies, of a lease that has run out, it takes the next page: 0 says that no task waits."""
        if words[0] == "IDS":
            return self._each(PROMOTE, [encoded(words[2])], key)
        while True:
            ids = [row[0] for row in self._rows(WAITING, key, PAGE)]
            promoted = self._each(PROMOTE, ids, key)
            if promoted or len(ids) < PAGE:
                return promoted

    def _pause(self, key: str, paused: int) -> int:
        return len(self._rows("INSERT INTO tw_pause(queue, paused) VALUES (?, ?) RETURNING queue", key, paused))

    # Dead tasks

    def _dead(self, key: str, *words: Any) -> List[Any]:
        given, died, revision = dict(zip(words[::2], words[1::2])), -1, -1
        if "AFTER" in given:
            found = self._rows("SELECT dead_ms, revision FROM tw_task WHERE queue = ? AND id = ?"
                               " AND dead_ms IS NOT NULL", key, given["AFTER"])
            if not found:
                after = text(given["AFTER"])
                raise sqlite3.IntegrityError(f"AFTER is {after!r}: expected the id of a dead task")
            died, revision = found[0]
        return self._rows("SELECT id, due_ms, dead_ms, attempt, coalesce(error, ''), lapses, NULL FROM tw_task"
                          " WHERE queue = ? AND dead_ms IS NOT NULL AND (dead_ms, revision) > (?, ?)"
                          " ORDER BY dead_ms, revision LIMIT ?", key, died, revision,
                          int(given.get("COUNT", 100)))

    def _each_dead(self, statement: str, key: str, chosen: Sequence[Any], *first: Any) -> int:
        """Runs a statement for a dead task, `IDS 1 id`, or for a page of them, `ALL`. Returns their number."""
        one = chosen[0] == "IDS"
        ids = [named(chosen[2])] if one else [row[0] for row in self._dead(key, "COUNT", PAGE)]
        return self._each(statement, ids, *first, key)

    def _replay(self, key: str, *words: Any) -> int:
        moment = list(words[1 if words[0] == "ALL" else 3:])
        return self._each_dead(REPLAY, key, words, time_of(moment) if moment else None)

    def _purge(self, key: str, *words: Any) -> int:
        return self._each_dead(PURGE, key, words)

    # Attempts

    def take(self, name: str, keys: Sequence[str], worker: str, lease_ms: int, count: int) -> List[Any]:
        """Takes tasks of these queues, those of the first one first, as takes of this random name. After an
        error the same name finds what was taken. A take that finds none may have passed over a thousand that
        were too late: place_ms() tells whether to go on. It takes nothing from the queues behind that one."""
        found: List[Any] = []
        goes_on = True
        with self.transaction() as db:
            for number, key in enumerate(keys):
                take, left = f"{name} {number}", min(count, MOST) - len(found)
                if left == 0:
                    break
                goes_on = goes_on and (number == 0 or not self._rows(MORE, keys[number - 1]))
                if goes_on:
                    db.execute(TAKE, (key, take, worker, lease_ms, left))
                found += self._rows("SELECT queue, id, token, due_ms, attempt, payload, missed_periods"
                                    " FROM tw_taken WHERE take = ?", take)
        return [[*row[:5], [b"" if row[5] is None else blob(row[5])], row[6]] for row in found]

    def place_ms(self, keys: Sequence[str]) -> float:
        """Returns the next time at which a take of these queues may find something."""
        with self.transaction(look=True):
            places = [self._rows(NEXT_PLACE, key)[0][0] for key in keys]
        return min((place for place in places if place is not None), default=float("inf"))

    def version(self) -> Any:
        """Returns a number that changes when another connection changes the file."""
        self._db()
        self._check()
        return self._rows("PRAGMA data_version")

    def _ack(self, key: str, id: Any, token: str) -> int:
        return len(self._rows("INSERT INTO tw_ack(queue, id, token) VALUES (?, ?, ?) RETURNING id",
                              key, encoded(id), token))

    def _touch(self, key: str, id: Any, token: str, _: str, lease_ms: int) -> Optional[int]:
        row = {"queue": key, "id": encoded(id), "token": token, "lease_ms": lease_ms}
        if not self._insert("tw_touch", row):
            return None
        end: int = self._rows("SELECT end_ms FROM tw_lease WHERE queue = ? AND id = ?", key, encoded(id))[0][0]
        return end

    def _nack(self, key: str, id: Any, token: str, *words: Any) -> Optional[int]:
        """Returns the next time of the task; 0 if it, or its period, is dead now; None if the token is no
        good."""
        row: Dict[str, Any] = {"queue": key, "id": encoded(id), "token": token, "how": "failed"}
        rest = iter(words)
        for word in rest:
            if word in ("BACK", "DEAD"):
                row["how"] = str(word).lower()
            elif word == "ERROR":
                row["error"] = blob(next(rest)).decode("utf-8", "replace")
            else:
                begin = 0 if word == "AT" else self._rows("SELECT clock FROM tw_clock")[0][0]
                row["next_ms"] = begin + int(next(rest))
        last = self._rows("SELECT replaced <= 0 AND (? = 'dead' OR attempt - lapses >= coalesce(tries,"
                          " (SELECT m.tries FROM tw_meta m))) FROM tw_task WHERE queue = ? AND id = ?",
                          row["how"], key, row["id"])
        if not self._insert("tw_nack", row):
            return None
        if row["how"] != "back" and last[0][0]:
            return 0
        found = self._rows("SELECT next_ms FROM tw_task WHERE queue = ? AND id = ?", key, row["id"])
        return max(1, int(found[0][0]))


class Within(File):
    """The queues of the file that a connection of the caller has open, in the caller's transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._of_caller = connection
        super().__init__("a connection of the caller")

    def __repr__(self) -> str:
        return f"<File of {self._of_caller!r}>"

    def _open(self) -> None:
        self._install(self._of_caller)

    def _check(self, all_files: bool = True) -> None:
        """Nobody knows which file the connection has open."""

    def _db(self) -> sqlite3.Connection:
        return self._of_caller

    @contextlib.contextmanager
    def transaction(self, look: bool = False) -> Iterator[sqlite3.Connection]:
        """Does all of it or nothing in the caller's transaction. A change begins one as sqlite3 does."""
        db = self._of_caller
        if not (look or db.in_transaction):
            db.execute("BEGIN IMMEDIATE")
            if db.isolation_level is None or getattr(db, "autocommit", False) is True:
                with ended(db, "COMMIT", "ROLLBACK"):
                    yield db
                return
        db.execute("SAVEPOINT tw_call")
        with ended(db, "RELEASE tw_call", "ROLLBACK TO tw_call", "RELEASE tw_call"):
            yield db


@contextlib.contextmanager
def ended(db: sqlite3.Connection, well: str, *badly: str) -> Iterator[None]:
    """Ends a transaction at the end of the block, or after its error. Each transaction looks at the format of
    the tables: somebody may have restored a backup of another one."""
    try:
        check_format(db)
        yield
        db.execute(well)
    except BaseException:
        for statement in badly if db.in_transaction else ():
            db.execute(statement)
        raise


class FileLink:
    """A worker's way to a file; tickwheel._links has the ways to servers. One thread calls take()."""
    generation = 0

    def __init__(self, file: File) -> None:
        self.file, self.stopped = file, threading.Event()
        self.name = secrets.token_hex(16)

    def take(self, words: Sequence[Any]) -> List[Any]:
        """Does TW.TAKE: waits for at most BLOCK ms until there are tasks, or for unblock(); 0 is without an
        end."""
        last = 2 + int(words[1])
        keys = [text(key) for key in words[2:last]]
        given = dict(zip(words[last::2], words[last + 1::2]))
        block_ms, seen, place_ms = int(given.get("BLOCK", -1)), None, 0.0
        end = time.monotonic() + block_ms / 1000 if block_ms else float("inf")
        while not self.stopped.is_set():
            version, looked = self.file.version(), seen is not None
            if version != seen and looked:
                place_ms = self.file.place_ms(keys)
            if place_ms <= now_ms():
                found = self._take(keys, given)
                if found:
                    return found
                place_ms = self.file.place_ms(keys)
            seen = version
            wait_s = min(POLL_S, end - time.monotonic(), max(0.001, (place_ms - now_ms()) / 1000))
            if wait_s <= 0 or self.stopped.wait(wait_s):
                break
        return []

    def _take(self, keys: List[str], given: Dict[str, Any]) -> List[Any]:
        found = self.file.take(self.name, keys, str(given.get("NAME", "")), int(given["LEASE"]),
                               int(given.get("COUNT", 1)))
        self.name = secrets.token_hex(16)
        return found

    def call(self, words: Sequence[Any]) -> Any:
        return self.file.execute_command(*words)

    def leave(self) -> None:
        """A connection to a file does not break."""

    def renew(self, error: BaseException, generation: int) -> None:
        """A file stays where it is."""

    def unblock(self) -> bool:
        """Ends take(), for good."""
        self.stopped.set()
        return True

    hang_up = unblock

    def close(self) -> None:
        """The connections end with their threads."""
