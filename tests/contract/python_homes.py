# SPDX-License-Identifier: MIT
"""The package of clients/python as a home: the calls of its Queue, and the words with which its workers take
and answer. Package is the part that a file and a server share."""
import asyncio
import collections
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "clients/python"))

# The folder has to be on the path first.
import tickwheel  # noqa: E402
import tickwheel.aio  # noqa: E402
from clock import START_MS as BEGIN  # noqa: E402
from eventually import PATIENCE  # noqa: E402
from file_homes import Store  # noqa: E402
from tickwheel import _errors, _file, _tasks  # noqa: E402
from tickwheel._words import encoded, take_words  # noqa: E402
from words import (conditions_of, filled, read_options, show, show_counts, show_details, show_row,  # noqa: E402
                   show_states)

TARGETS = {"list": ("list", "list"), "left": ("list", "list left"), "stream": ("stream", "stream"),
           "other": ("other", "stream")}
YES = {True: ["yes"], False: ["no"], None: ["gone"]}


class Package:
    """`package` is the client, and begin_ms the beginning of the scenario. `jobs` has the attempts of each
    task, as the takes have returned them."""
    text_of = staticmethod(bytes.decode)  # a value of a payload

    def open_package(self, client, begin_ms):
        self.package, self.begin_ms, self.jobs = client, begin_ms, collections.defaultdict(list)

    def do(self, verb, *words):
        own = getattr(self, f"do_{verb}", None)
        try:
            return own(*words) if own else super().do(verb, *words)
        except (ValueError, tickwheel.TickwheelError) as error:
            return [f"error {error}"]

    @property
    def work(self):
        return tickwheel.Queue(self.package, self.queue)

    @staticmethod
    def unit(ms):
        """A Unix time, or a length of time, as the package takes it."""
        return int(ms) / 1000

    @staticmethod
    def in_ms(value):
        """The same of a reply, in ms."""
        return None if value is None else round(value * 1000)

    def since(self, moment):
        """The time of a reply, in ms from the beginning on."""
        return None if moment is None else self.in_ms(moment) - self.begin_ms

    def time(self, options):
        if "at" in options:
            return {"at": self.unit(self.begin_ms + int(options["at"]))}
        return {"delay": self.unit(options["in"])} if "in" in options else {}

    def backoff(self, first, factor, most, jitter):
        return tickwheel.Backoff(first, factor, most, jitter)

    def options(self, given):
        """The arguments of a put or a send."""
        conditions = conditions_of(given)
        found = {**self.time(given), "keep_due": "keepdue" in conditions}
        found.update(("condition", name) for name in conditions if name != "keepdue")
        found.update((name.replace("maxlate", "max_late"), self.unit(given[name]))
                     for name in ("every", "maxlate") if name in given)
        found.update((name, int(given[name])) for name in ("times", "tries") if name in given)
        if "missed" in given:
            found["missed"] = given["missed"]
        if "backoff" in given:
            first, factor, most = given["backoff"].split()
            jitter = int(given["jitter"]) if "jitter" in given else None
            found["backoff"] = self.backoff(self.unit(first), float(factor), self.unit(most), jitter)
        return found

    # Changes

    def do_put(self, name, *words):
        given = read_options(words)
        return YES[self.work.put(name, given.get("payload", ""), **self.options(given)) == name]

    def do_send(self, name, *words):
        given = read_options(words)
        target, kind = TARGETS[given.get("to", "list")]
        payload = given.get("payload", "x")
        entry = {"x": payload} if kind == "stream" else payload
        return YES[self.work.send(target, name, entry, kind=kind, **self.options(given)) == name]

    def do_move(self, name, *words):
        given = read_options(words)
        return YES[self.work.move(name, condition=next(iter(conditions_of(given)), None), **self.time(given))]

    def do_cancel(self, name):
        return [["gone", "cancelled", "at work"][self.work.cancel(name)[0]]]

    def do_promote(self, name):
        return [str(int(self.work.promote_all() if name == "all" else self.work.promote(name)))]

    def do_replay(self, name, *words):
        time_of, all_of_them = self.time(read_options(words)), name == "all"
        return [str(int(self.work.replay_all(**time_of) if all_of_them else self.work.replay(name, **time_of)))]

    def do_purge(self, name):
        return [str(int(self.work.purge_all() if name == "all" else self.work.purge(name)))]

    def do_pause(self):
        return YES[self.work.pause()]

    def do_resume(self):
        return YES[self.work.resume()]

    # Attempts

    def ask_home(self, words):
        return self.package.execute_command(*words, NEVER_DECODE=True)

    def take_jobs(self, queues, lease_ms, count, blocks):
        """Returns the jobs."""
        command = take_words(lease_ms, count, PATIENCE * 1000, "worker", queues)
        if not blocks:  # A worker always waits.
            at = command.index("BLOCK")
            del command[at:at + 2]
        return _tasks.jobs(self.ask_home(command))

    def do_take(self, *words):
        given = read_options(words)
        queues, lease_ms = given.get("of", self.queue).split(), int(given.get("lease", 30000))
        lines = []
        for job in self.take_jobs(queues, lease_ms, int(given.get("count", 1000)), "block" in given):
            self.jobs[job.queue, job.id].append(job)
            lines.append(f"{job.queue} " * ("of" in given) + f"{job.id} due {self.since(job.due)} attempt"
                         f" {job.attempt}" + f" missed-periods {job.missed_periods}" * bool(job.missed_periods))
        return lines or ["nothing"]

    def job(self, name, words):
        return self.jobs[self.queue, name][-2 if "before" in words else -1]

    def do_done(self, name, *words):
        return YES[self.ask_home(_errors.DONE.command(self.job(name, words))) == 1]

    def nack(self, error, name, words):
        """Answers as a worker whose handler has raised this error."""
        reply = self.ask_home(_errors.outcome_of(error).command(self.job(name, words)))
        return ["not yours" if reply is None else "dead" if reply == 0 else f"next {reply - self.begin_ms}"]

    def do_fail(self, name, *words):
        given = read_options(word for word in words if word != "before")
        return self.nack(tickwheel.Retry(reason=given.get("error", ""), **self.time(given)), name, words)

    def do_dead(self, name, *words):
        given = read_options(word for word in words if word != "before")
        return self.nack(tickwheel.Dead(given.get("error", "")), name, words)

    def do_back(self, name, *words):
        given = read_options(word for word in words if word != "before")
        if given:
            return self.nack(tickwheel.Back(**self.time(given)), name, words)
        reply = self.ask_home(_errors.BACK.command(self.job(name, words)))
        return ["not yours" if reply is None else f"next {reply - self.begin_ms}"]

    def do_touch(self, name, *words):
        lease_ms = int(read_options(word for word in words if word != "before")["lease"])
        job = self.job(name, words)
        end_ms = self.ask_home(["TW.TOUCH", encoded(job.queue), encoded(job.id), job.token, "LEASE", lease_ms])
        return ["not yours" if end_ms is None else f"ends {end_ms - self.begin_ms}"]

    # Looks

    def told(self, name, show_task):
        task = self.work.get(name)
        if task is None:
            return ["gone"]
        late_ms = self.in_ms(task.max_late)
        target = next((to for to, known in TARGETS.items() if known == (task.target, task.kind)), None)
        return show_task({
            **vars(task), "due": self.since(task.due), "next": self.since(task.next), "to": target,
            "every": self.in_ms(task.every), "maxlate": None if late_ms is None else str(late_ms),
            "missed-periods": task.missed_periods, "payload": self.text_of(task.payload[-1])})

    def do_get(self, name):
        return self.told(name, show)

    def do_details(self, *names):
        return [line for name in names for line in self.told(name, show_details)]

    def lines(self, found):
        """The lines of rows."""
        return [show_row({"id": name, "due": self.since(due), "next": self.since(next_at),
                          "state": self.work.get(name).state}) for name, due, next_at in found]

    def do_range(self, first, last):
        first, last = (self.unit(self.begin_ms + int(ms)) for ms in (first, last))
        return self.lines(self.work.range(first=first, last=last)) or ["nothing"]

    def do_next(self):
        found = self.work.next()
        return self.lines([found]) if found else ["nothing"]

    def do_deaths(self):
        return self.lines((task.id, task.due, task.next) for task in self.work.all_dead()) or ["nothing"]

    def do_len(self):
        return [str(self.work.count())]

    def do_scan(self):
        return self.lines(self.work.scan())

    def do_forecast(self, step, steps):
        return [" ".join(map(str, self.work.forecast(step=self.unit(step), steps=int(steps))))]

    def do_states(self):
        found = self.work.stats()
        return show_states(vars(found), found.paused) if found else show_states({}, False)

    def do_counts(self, *_):
        """Of the queue. A file has none."""
        found = self.work.stats()
        return show_counts(vars(found) if found else {})


# ---- a file -------------------------------------------------------------------------------------------------

class Watch:
    """The time for the package."""
    monotonic = time.monotonic

    def __init__(self, home):
        self.home = home

    def time_ns(self):
        return self.home.now * 10**6


class StandingFile(tickwheel.File):
    """A file whose clock stands still."""

    def __init__(self, path, home):
        self.home = home
        super().__init__(path)

    def _connect(self):
        made = super()._connect()
        made.create_function("julianday", 1, lambda _: 2440587.5 + self.home.now / 86400000)
        made.execute("PRAGMA synchronous = off")  # the disk is no matter of the contract
        return made


class PackageFile(Package, Store):
    """A file of its own for each scenario. Whenever time has passed, a worker of another queue takes, which
    ends the leases that have run out."""
    lacks, runs = ("package_file", "sqltake", "sql"), ("sqltake", "lease", "queues", "several")
    empty = None  # the bytes of a file without tasks

    def __enter__(self):
        if PackageFile.empty is None:
            with Store(self.program) as store:
                store.do_backup()
                PackageFile.empty = store.saved
        self.now, self.folder = BEGIN, tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name) / "tasks.db"
        self.path.write_bytes(self.empty)
        self.open_package(self.connect(self.path), BEGIN)
        return self

    def __exit__(self, *failure):
        self.disconnect()
        super().__exit__(*failure)
        self.folder.cleanup()

    def ask(self, *words):
        return [str(self.path)] if words == ("file", ) else [f"error there is no {words}"]

    def do_pass(self, ms):
        self.now += int(ms)
        self.take_jobs(["another queue"], 30000, 1000, False)
        return []

    def do_set(self, ms):
        return self.do_pass(ms)


class PythonFile(PackageFile):
    def __enter__(self):
        _file.time = Watch(self)
        return super().__enter__()

    def __exit__(self, *failure):
        super().__exit__(*failure)
        _file.time = time

    def connect(self, path):
        return StandingFile(path, self)

    def disconnect(self):
        self.package.close()

    def do_fill(self, *words):
        """In one transaction."""
        db = self.open()
        db.execute("BEGIN")
        work = tickwheel.Queue(db, self.queue)
        for line in filled(words):
            _, name, *options = line.split()
            work.put(name, "", **self.options(read_options(options)))
        db.execute("COMMIT")
        return []


# ---- asyncio ------------------------------------------------------------------------------------------------

LOOP = asyncio.new_event_loop()


async def collected(found):
    return [one async for one in found]


def awaited(found):
    return LOOP.run_until_complete(collected(found) if hasattr(found, "__aiter__") else found)


class Awaited:
    """A queue for asyncio, whose calls wait for their replies."""

    def __init__(self, queue):
        self.queue = queue

    def __getattr__(self, name):
        return lambda *words, **options: awaited(getattr(self.queue, name)(*words, **options))


class Asyncio(Package):
    """tickwheel.aio in the place of tickwheel."""

    @property
    def work(self):
        return Awaited(tickwheel.aio.Queue(self.package, self.queue))

    def ask_home(self, words):
        return awaited(self.package.execute_command(*words, NEVER_DECODE=True))


class AsyncioFile(Asyncio, PythonFile):
    def connect(self, path):
        made = tickwheel.aio.File(path)
        made.file.close()
        made.file = StandingFile(path, self)
        return made

    def disconnect(self):
        awaited(self.package.close())
