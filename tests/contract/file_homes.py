# SPDX-License-Identifier: MIT
"""The homes that are a file. Another program takes part in two of them: it uses SQL, or it is the command."""
import collections
import datetime
import itertools
import json
import sqlite3
import subprocess
import tempfile

from clock import START, START_MS as BEGIN, Clock  # the programs in C begin then too
from eventually import PATIENCE
from words import (CONDITIONS, LOOKS, conditions_of, read_options, shift, show, show_counts, show_details,
                   show_row, show_states, show_wait)


class Store:
    """A run of a file, in a process of its own for each scenario (store_home.c)."""
    lacks, runs = ("store", ), ("store", "run", "mark")
    db = None
    process = None  # it begins the runs of all scenarios
    queue = "q"

    def __init__(self, program):
        self.program = program

    def __enter__(self):
        if Store.process:
            self.ask("begin")
        else:
            Store.process = subprocess.Popen([self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                             encoding="utf-8", errors="surrogateescape")
        return self

    def __exit__(self, *_):
        if self.db:
            self.db.close()

    @classmethod
    def end(cls):
        if cls.process:
            cls.process.stdin.close()
            cls.process.stdout.close()
            if cls.process.wait(PATIENCE) != 0:
                raise SystemExit(f"{cls.process.args[0]} has ended with {cls.process.returncode}")

    def __call__(self, line):
        verb, *words = shift(line, BEGIN).split()
        return [shift(reply, -BEGIN) for reply in self.do(verb, *words)]

    def do(self, verb, *words):
        """A verb that a home does in another way than C is a method of it."""
        own = getattr(self, f"do_{verb}", None)
        return own(*words) if own else self.ask(verb, *words)

    def do_in(self, queue, *line):
        self.queue = queue
        try:
            return self.do(*line)
        finally:
            self.queue = "q"

    def ask(self, *words):
        words = words if self.queue == "q" else ("in", self.queue, *words)
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()
        reply = []
        while (line := self.process.stdout.readline()) != ".\n":
            if not line:
                raise SystemExit(f"{self.program} has ended after {reply}")
            reply.append(line.rstrip("\n"))
        return reply

    def open(self):
        """Opens the file for SQL."""
        if self.db is None:
            self.db = sqlite3.connect(self.ask("file")[0], timeout=PATIENCE, isolation_level=None)
            self.db.row_factory = sqlite3.Row
        return self.db

    def do_backup(self):
        with tempfile.TemporaryDirectory() as folder:
            self.open().execute("VACUUM INTO ?", (f"{folder}/backup.db", ))
            with open(f"{folder}/backup.db", "rb") as file:
                self.saved = file.read()
        return []

    def do_restore(self):
        """Into the file itself, while a run has it open."""
        with tempfile.NamedTemporaryFile() as file:
            file.write(self.saved)
            file.flush()
            db = sqlite3.connect(file.name)
            db.backup(self.open())
            db.close()
        return []

    def token_of(self, name):
        """The token of the attempt under way; None: there is none."""
        sql = ("SELECT token FROM tw_task WHERE id = CAST(? AS BLOB)"
               " AND (run > 0 OR (queue, id) IN (SELECT queue, id FROM tw_lease))")
        tokens = [token for token, in self.open().execute(sql, (name, )).fetchall()]
        return tokens[0] if tokens else None

    def numbers(self):
        """The revisions of the tasks, by ids."""
        return {shift(name, -BEGIN): number for name, number in self.open().execute(
            "SELECT CAST(id AS TEXT), revision FROM tw_task")}


class Looks:
    """Of a home that finds a task by `look`."""

    def do_get(self, name):
        task = self.look(name)
        return show(task) if task else ["gone"]

    def do_details(self, *names):
        tasks = self.tasks_of(names)
        return [line for name in names for line in (show_details(tasks[name]) if tasks[name] else ["gone"])]

    def tasks_of(self, names):
        return {name: self.look(name) for name in names}


# ---- SQL ----------------------------------------------------------------------------------------------------

COLUMNS = {"every": "every_ms", "times": "times", "missed": "missed", "maxlate": "max_late_ms",
           "tries": "tries", "backoff": "backoff_ms", "factor": "factor", "most": "backoff_max_ms",
           "jitter": "jitter", "payload": "payload"}
LOOK = """
SELECT CAST(id AS TEXT) AS id, state, due_ms - :begin AS due, next_ms - :begin AS next, attempt, lapses,
    missed_periods AS "missed-periods", every_ms AS every, times, missed,
    CAST(max_late_ms AS TEXT) AS maxlate, tries, backoff_ms AS first, factor, backoff_max_ms AS most,
    CAST(jitter AS TEXT) AS jitter, CAST(payload AS TEXT) AS payload, error, replaced
FROM tw_look
"""
PROMOTE = """
INSERT INTO tw_promote(queue, id)
SELECT queue, id FROM tw_look WHERE queue = ? AND state = 'waiting' ORDER BY place_ms, revision LIMIT 10000
RETURNING 1
"""


def options_of(words):
    """As read_options(), but each number of `backoff FIRST FACTOR MOST` has a name."""
    options = read_options(words)
    return {**options, **dict(zip(("backoff", "factor", "most"), options.get("backoff", "").split()))}


class Sql(Looks, Store):
    """Another program files, moves, cancels, promotes, replays, pauses and looks in plain SQL. Its clock is
    that of the scenario too."""
    lacks, runs = ("store", "sql"), ("store", "sql", "run", "mark")

    def __enter__(self):
        super().__enter__()
        self.now = BEGIN
        self.open().create_function("julianday", 1, lambda _: 2440587.5 + self.now / 86400000)
        return self

    def insert(self, view, **columns):
        sql = f"INSERT INTO {view}({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))}) RETURNING 1"
        try:
            return "yes" if self.db.execute(sql, [*columns.values()]).fetchall() else "no"
        except sqlite3.IntegrityError as error:
            return f"error {str(error).removeprefix(f'{view}: ')}"

    def time_of(self, options):
        return BEGIN + int(options["at"]) if "at" in options else self.now + int(options["in"])

    def file(self, view, name, options, **columns):
        """Puts or moves."""
        condition = " ".join(reversed(conditions_of(options))).upper() or None  # KEEPDUE comes first
        return self.insert(view, queue=self.queue, id=name, due_ms=self.time_of(options), condition=condition,
                           **columns)

    def do_put(self, name, *words):
        options = options_of(words)
        columns = {column: options[option] for option, column in COLUMNS.items() if option in options}
        return [self.file("tw_put", name, options, **columns)]

    def do_move(self, name, *words):
        reply = self.file("tw_move", name, read_options(words))
        return ["gone" if reply.startswith("error there is no such task") else reply]

    def dead(self):
        return self.select("state = 'dead' ORDER BY dead_ms, revision")

    def do_replay(self, name, *words):
        names = [task["id"] for task in self.dead()] if name == "all" else [name]
        due_ms = self.time_of(read_options(words)) if words else None
        replies = [self.insert("tw_replay", queue=self.queue, id=one, due_ms=due_ms) for one in names]
        return [str(replies.count("yes"))]

    def do_cancel(self, name):
        task = self.look(name)
        self.insert("tw_cancel", queue=self.queue, id=name)
        return ["gone" if task is None else "at work" if task["state"] == "leased" else "cancelled"]

    def do_promote(self, name):
        if name != "all":
            return ["1" if self.insert("tw_promote", queue=self.queue, id=name) == "yes" else "0"]
        return [str(len(self.db.execute(PROMOTE, (self.queue, )).fetchall()))]

    def do_pause(self):
        return [self.insert("tw_pause", queue=self.queue, paused=1)]

    def do_resume(self):
        return [self.insert("tw_pause", queue=self.queue, paused=0)]

    def select(self, condition, **values):
        """Returns the tasks for which a condition holds."""
        found = self.db.execute(f"{LOOK} WHERE queue = :queue AND {condition}",
                                {"begin": BEGIN, "queue": self.queue, **values}).fetchall()
        return [{**dict(row), "backoff": show_wait(row["first"], row["factor"], row["most"])} for row in found]

    def look(self, name):
        found = self.select("tw_look.id = CAST(:id AS BLOB)", id=name)
        return found[0] if found else None

    def tasks_of(self, names):
        return {**dict.fromkeys(names), **{task["id"]: task for task in self.select("true")}}

    def do_scan(self):
        return [show_row(task) for task in self.select("true")]

    def do_len(self):
        return [str(len(self.select("state <> 'dead'")))]

    def do_range(self, first, last):
        found = self.select(
            "state = 'waiting' AND next_ms - :begin BETWEEN :first AND :last ORDER BY place_ms, revision",
            first=int(first), last=int(last))
        return [show_row(task) for task in found] or ["nothing"]

    def do_next(self):
        found = self.select("state = 'waiting' ORDER BY place_ms, revision LIMIT 1")
        return [show_row(task) for task in found] or ["nothing"]

    def do_deaths(self):
        return [show_row(task) for task in self.dead()] or ["nothing"]

    def do_states(self):
        counts = self.db.execute("SELECT state, count(*) FROM tw_list WHERE queue = ? GROUP BY state",
                                 (self.queue, )).fetchall()
        paused = self.db.execute("SELECT 1 FROM tw_pause WHERE queue = ? AND paused", (self.queue, )).fetchone()
        return show_states(dict(map(tuple, counts)), paused)

    def do_pass(self, ms, verb="pass"):
        self.now += int(ms)
        return self.ask(verb, ms)

    def do_set(self, ms):
        return self.do_pass(ms, "set")


TAKEN = """
SELECT CAST(id AS TEXT) AS id, due_ms - :begin AS due, attempt, token, missed_periods FROM tw_taken
WHERE take = :take
"""
WAITS = 3  # calls of a program that waits


class SqlTake(Sql):
    """A program takes the tasks and answers in plain SQL too. The run beside it takes none, but ends leases,
    and counts those alone. The file itself counts the tasks that were dropped."""
    lacks, runs = ("sqltake", "sql"), ("sqltake", "lease", "queues", "mark")
    last = None

    def __enter__(self):
        super().__enter__()
        self.tokens, self.names = collections.defaultdict(list), map("take {:04}".format, itertools.count())
        return self

    def begin_take(self, lease, count):
        self.db.execute("INSERT INTO tw_take(queue, take, worker, lease_ms, count) VALUES (?, ?, 'w', ?, ?)",
                        (self.queue, self.name, lease, count))
        rows = self.db.execute(TAKEN, {"begin": BEGIN, "take": self.name}).fetchall()
        for row in rows:
            tokens = self.tokens[self.queue, row["id"]]
            if row["token"] not in tokens:
                tokens.append(row["token"])
        return [f"{row['id']} due {row['due']} attempt {row['attempt']}"
                + (f" missed-periods {row['missed_periods']}" if row["missed_periods"] else "") for row in rows]

    def do_take(self, *words):
        """With a count in one call. Without it in calls of two tasks, until one gets none. A program that waits
        calls again."""
        lines, given = [], read_options(words)
        calls = WAITS if "block" in given else 1
        for self.name in self.names:
            found = self.begin_take(given.get("lease", 30000), given.get("count", 2))
            lines += found
            self.last = self.name if found else self.last
            calls -= not found
            if "count" in given or calls == 0:
                return lines or ["nothing"]

    def do_again(self):
        """The last take that had tasks, once more."""
        self.name = self.last
        return self.begin_take(30000, 2) or ["nothing"]

    def answer(self, view, name, words, **columns):
        token = self.tokens[self.queue, name][-2 if "before" in words else -1]
        return self.insert(view, queue=self.queue, id=name, token=token, **columns)

    def do_done(self, name, *words):
        return [self.answer("tw_ack", name, words)]

    def nack(self, name, how, *words):
        options = read_options(word for word in words if word != "before")
        dead = "SELECT count(*) FROM tw_task WHERE dead_ms IS NOT NULL"
        before = self.db.execute(dead).fetchone()[0]
        next_ms = self.time_of(options) if options.keys() & {"in", "at"} else None
        reply = self.answer("tw_nack", name, words, how=how, error=options.get("error"), next_ms=next_ms)
        if reply != "yes":
            return ["not yours" if reply == "no" else reply]
        if self.db.execute(dead).fetchone()[0] > before:
            return ["dead"]
        return [f"next {self.look(name)['next']}"]

    def do_fail(self, name, *words):
        return self.nack(name, None, *words)

    def do_dead(self, name, *words):
        return self.nack(name, "dead", *words)

    def do_back(self, name, *words):
        return self.nack(name, "back", *words)

    def do_touch(self, name, *words):
        options = read_options(word for word in words if word != "before")
        if self.answer("tw_touch", name, words, lease_ms=options["lease"]) != "yes":
            return ["not yours"]
        end = self.db.execute("SELECT place_ms FROM tw_task WHERE queue = ? AND id = CAST(? AS BLOB)",
                              (self.queue, name)).fetchone()
        return [f"ends {end[0] - BEGIN}"]

    def do_counts(self, *_):
        counts = self.ask("counts")[0].split()
        dropped = self.db.execute("SELECT dropped FROM tw_meta").fetchone()[0]
        return show_counts({"lapsed": dict(zip(counts[::2], counts[1::2])).get("lapsed"), "dropped": dropped})


class StoreTake(SqlTake):
    """The same, but the process of the run files, moves, cancels, promotes, pauses and looks, by calls in C."""
    lacks = ("sqltake", )
    do_put = do_move = do_cancel = do_promote = do_pause = do_resume = do_replay = do_get = do_details = None
    do_states = None
    do_scan = do_len = do_range = do_next = do_deaths = None


# ---- the command --------------------------------------------------------------------------------------------

FLAGS = {"every": ("--every", "ms"), "times": ("--times", ""), "missed": ("--missed", ""),
         "maxlate": ("--max-late", "ms"), "tries": ("--tries", ""), "backoff": ("--backoff", "ms"),
         "factor": ("--factor", ""), "most": ("--backoff-max", "ms"), "jitter": ("--jitter", "")}
RESULTS = {"moved": "yes", "not moved: --condition has kept its time": "no",
           "there is no such task: it has ended, or never was": "gone", "cancelled": "cancelled",
           "cancelled while at work": "at work", "replayed": "1", "there is no dead task with this ID": "0",
           "purged": "1", "promoted": "1", "there is no waiting task with this ID": "0"}


def when(options):
    if "at" not in options:
        return f"+{options['in']}ms"
    date = START + datetime.timedelta(milliseconds=int(options["at"]))
    return date.strftime("@%Y-%m-%dT%H:%M:%S.%fZ")


def flags_of(options):
    """The conditions of a put or a move."""
    flags = []
    for condition in conditions_of(options):
        flags += ["--keepdue"] if condition == "keepdue" else ["--condition", condition]
    return flags


def text_of(message):
    """A message of `put`, in which the names of arguments are words in capital letters, as in the scenarios."""
    words = message.removeprefix("tickwheel put: ").replace("--keepdue", "keepdue").split(" ")
    return " ".join(word.upper() if word.strip(":,") in CONDITIONS else word for word in words)


class Command(Looks, Store):
    """`tickwheel put` and `tickwheel tasks` do all but takes and answers, a process each."""
    lacks, runs = ("store", ), ("store", "command", "run", "mark")

    def __init__(self, program, command):
        super().__init__(program)
        self.command, self.seen = command, {}  # the lists since the last change

    def __enter__(self):
        super().__enter__()
        self.path = self.ask("file")[0]
        self.folder = tempfile.TemporaryDirectory()
        self.clock = Clock(self.folder.name)
        return self

    def __exit__(self, *failure):
        self.folder.cleanup()
        super().__exit__(*failure)

    def __call__(self, line):
        if line.split()[0] not in LOOKS:
            self.seen.clear()
        return super().__call__(line)

    def run(self, name, *words):
        return subprocess.run([self.command, name, "--store", self.path, "--queue", "q", *words],
                              env=self.clock.environment(), stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=PATIENCE)

    def tasks(self, *words):
        """Returns the output, an object a line. Without any, the message of the command is the result."""
        done = self.run("tasks", "--json", *words)
        found = [json.loads(line) for line in done.stdout.splitlines()]
        return found if found or done.returncode == 0 else [{"result": done.stderr.strip()}]

    def change(self, *words):
        result = self.tasks(*words)[0]["result"]
        return [RESULTS.get(result, f"error {result}")]

    def do_put(self, name, *words):
        options, flags = options_of(words), []
        for option, (flag, unit) in FLAGS.items():
            flags += [flag, options[option] + unit] if option in options else []
        payload = options.get("payload", "").split()
        done = self.run("put", *flags, *flags_of(options), when(options), name, *payload)
        if done.returncode == 0:
            return ["yes"]
        kept = "--condition has kept everything" in done.stderr
        return ["no" if kept else f"error {text_of(done.stderr.strip())}"]

    def do_move(self, name, *words):
        options = read_options(words)
        return self.change("move", *flags_of(options), name, when(options))

    def do_cancel(self, name):
        return self.change("cancel", name)

    def do_replay(self, name, *words):
        time = [when(read_options(words))] if words else []
        if name != "all":
            return self.change("replay", name, *time)
        return [str(self.tasks("replay", "--all", *time)[0]["replayed"])]

    def do_promote(self, name):
        if name != "all":
            return self.change("promote", name)
        return [str(self.tasks("promote", "--all")[0]["promoted"])]

    def do_purge(self, name):
        if name != "all":
            return self.change("purge", name)
        return [str(self.tasks("purge", "--all")[0]["purged"])]

    def do_pause(self):
        return ["yes" if self.tasks("pause")[0]["changed"] else "no"]

    def do_resume(self):
        return ["yes" if self.tasks("resume")[0]["changed"] else "no"]

    def mark(self, *flags):
        done = subprocess.run([self.command, "restore", "--store", self.path, *flags],
                              env=self.clock.environment(), stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=PATIENCE, check=True)
        return ["no" if "already" in done.stdout or "not marked" in done.stdout else "yes"]

    def do_mark(self):
        return self.mark()

    def do_go(self):
        return self.mark("--go")

    def see(self, which):
        if which not in self.seen:
            self.seen[which] = self.tasks(which)
        return self.seen[which]

    def see_all(self):
        return self.see("list") + self.see("dead")

    @staticmethod
    def shown(task):
        """A task of --json in the words of the scenarios."""
        next_ms = None if task["next_ms"] is None else task["next_ms"] - BEGIN
        return {**task, "due": task["due_ms"] - BEGIN, "next": next_ms, "every": task["every_ms"],
                "missed-periods": task["missed_periods"],
                "maxlate": None if task["max_late_ms"] is None else str(task["max_late_ms"]),
                "backoff": show_wait(task["backoff_ms"], task["factor"], task["backoff_max_ms"]),
                "jitter": str(task["jitter"])}

    def look(self, name):
        """The dead tasks are asked for if it is no other one: each list is a process."""
        found = (task for which in ("list", "dead") for task in self.see(which))
        return next((self.shown(task) for task in found if task["id"] == name), None)

    def do_scan(self):
        return [show_row(self.shown(task)) for task in self.see_all()]

    def do_len(self):
        return [str(sum(task["state"] != "dead" for task in self.see_all()))]

    def do_range(self, first, last):
        found = [self.shown(task) for task in self.see_all() if task["state"] == "waiting"]
        return [show_row(task) for task in found if int(first) <= task["next"] <= int(last)] or ["nothing"]

    def do_states(self):
        found = self.tasks() or [{"paused": False}]
        return show_states(found[0], found[0]["paused"])

    def do_next(self):
        return [show_row(self.shown(task)) for task in self.tasks("next")] or ["nothing"]

    def do_deaths(self):
        return [show_row(self.shown(task)) for task in self.see("dead")] or ["nothing"]

    def do_forecast(self, step, steps):
        forecast = self.tasks("forecast", "--step", f"{step}ms", "--steps", steps)[0]
        return [" ".join(map(str, forecast["counts"]))]

    def do_pass(self, ms):
        self.clock.skip(int(ms) / 1000)
        return self.ask("pass", ms)

    def do_set(self, ms):
        self.clock.set(int(ms) / 1000)
        return self.ask("set", ms)
