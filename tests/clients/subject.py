# SPDX-License-Identifier: MIT
"""Workers under test. The same small program is written in each language with its library: it makes a worker
whose handler does the act that a task names, and prints a line for each event. A Subject starts such a program,
reads its lines and sends it signals.

    subject = Subject("node", "mails", server=server, jobs=2)
    r.execute_command("TW.PUT", "mails", "a", "IN", 0, "PAYLOAD", f"until {tmp_path}/go")
    subject.wait("begin", "mails", "a", "1")
    release(tmp_path / "go")
    assert subject.stop() == {**NOTHING, "done": 1}

Arguments of the program: `--url URL`, with `--cluster` if that is a node of a cluster, or `--sentinel
HOST:PORT[,HOST:PORT] --service NAME`; `--jobs N`, `--lease MS`, `--name NAME`, `--grace MS`,
`--timeout MS`, which is the time limit of each attempt; then queues.

It prints these lines, each at once:

    ready                         it is about to take tasks
    begin QUEUE ID ATTEMPT     the handler begins
    shown QUEUE ID SHA1        the SHA-1 of all values of the payload, joined by line feeds
    end QUEUE ID ATTEMPT       the handler has done its work; the worker has not acknowledged it yet
    not-yours QUEUE ID ATTEMPT the handler was told that the task is not its worker's any more
    stopped done=N failed=N died=N back=N not_yours=N

An error that ends it goes to its standard error, and its exit status is 1. The act is the value of the payload
with the number of the attempt, or the last value if there are fewer:

    ok                  succeeds at once
    show                prints `shown`, and succeeds
    fail TEXT           raises an error
    retry MS TEXT       asks for the next attempt in so many milliseconds
    dead TEXT           asks for no further attempt
    notyet FILE MS      says that it is too early, and asks for the task in so many milliseconds, until the file
                        is there
    until FILE          works until the file is there, as release() makes it, or the task is not its
                        worker's any more
    untilfail FILE TEXT the same, and fails then
    ackthen KEY SCRIPT  acknowledges the job with this script, as the library's ack_then does, and prints
                        `acked QUEUE ID REPLY`. If that fails, it prints a word instead of `acked`: `void` (the
                        task is not its worker's any more), `lost` (a reply was lost), `broken` (the script has
                        failed); and fails
    ackthenfail KEY SCRIPT
                        the same, and fails after that
    untilack FILE KEY SCRIPT
                        ackthen, when the file is there
    die                 kills its own process by SIGKILL

`tickwheel work` is the program of the language "command", with the script subjects/act as its --exec. A script
has only an exit status, so it has no retry, no dead and no ackthen, and its MS of notyet are always 20. The
command's own lines, on its standard error, are translated.
"""
import fcntl
import functools
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading

import pytest
from harness import HOST, PATIENCE, ROOT, Broken, Guard, wait_until, program
from node_packages import DRIVER, node_path
from workers import thread_states

HERE = os.path.dirname(os.path.abspath(__file__))
SUBJECTS = os.path.join(HERE, "subjects")
LANGUAGES = ["command", "python", "asyncio", "node", "go"]
NOTHING = {"done": 0, "failed": 0, "died": 0, "back": 0, "not_yours": 0}
LEASE = 2000  # ms; a third of it passes between two heartbeats


def languages():
    """Returns the languages to test: TICKWHEEL_SUBJECT names them, or all are tested."""
    named = os.environ.get("TICKWHEEL_SUBJECT")
    return named.split(",") if named else LANGUAGES


# Programs

def python(name):
    """Without -P the folder of the script would be searched for modules first, and asyncio.py is one there."""
    return [sys.executable, "-P", "-B", os.path.join(SUBJECTS, name)]


def node():
    return [program("NODE", "node", "nodejs", package="nodejs"), os.path.join(SUBJECTS, "node.js")]


@functools.lru_cache
def node_driver():
    """Returns the name of the driver for SQLite. Skips the test where it is not installed."""
    found = subprocess.run([node()[0], "-e", f"require('{DRIVER}')"], capture_output=True, check=False,
                           timeout=PATIENCE, env={**os.environ, "NODE_PATH": ":".join(node_path())})
    if found.returncode != 0:
        pytest.skip(f"node has no {DRIVER}: tests/clients/fetch_node_sqlite fetches Debian's")
    return DRIVER


def go_folder():
    """A folder that keeps compiled programs from one run to the next, or else one for this run."""
    folder = os.environ.get("TICKWHEEL_GO")
    if not folder:
        folder = tempfile.mkdtemp(prefix="tickwheel-go-")
        Guard.tell("+", folder)
    os.makedirs(os.path.join(folder, "src"), exist_ok=True)
    return folder


@functools.lru_cache
def go():
    """Builds the program once; other tests may do the same at the same time. Debian's sources of libraries are
    in /usr/share/gocode, and ours needs a place in such a tree too."""
    folder = go_folder()
    worker = os.path.join(folder, "worker")
    with open(os.path.join(folder, "lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name, target in (("tickwheel", os.path.join(ROOT, "clients", "go")),
                             ("subject", os.path.join(SUBJECTS, "go"))):
            if not os.path.islink(os.path.join(folder, "src", name)):
                os.symlink(target, os.path.join(folder, "src", name))
        done = subprocess.run([program("GO", "go", package="golang-go"), "build", "-o", worker, "subject"],
                              cwd=folder, capture_output=True, text=True, check=False, timeout=PATIENCE * 2,
                              env={**os.environ, "GO111MODULE": "off", "GOPATH": f"{folder}:/usr/share/gocode"})
    if done.returncode != 0:
        raise Broken(f"the worker in Go does not compile: {done.stderr}")
    return [worker]


def command():
    path = os.environ.get("TICKWHEEL_COMMAND") or os.path.join(ROOT, "build", "tickwheel")
    if not os.access(path, os.X_OK):
        raise Broken(f"there is no command at {path}: build it, or name it in TICKWHEEL_COMMAND")
    act = f"exec {os.path.join(SUBJECTS, 'act')}"  # No shell between the two.
    return [path, "work", "--back", "20ms", "--exec", act]


PROGRAMS = {
    "command": command, "python": lambda: python("python.py"), "asyncio": lambda: python("asyncio.py"),
    "node": node, "go": go
}
ENVIRONMENT = {
    "PYTHONPATH": f"{os.path.join(ROOT, 'clients', 'python')}:{os.path.join(ROOT, 'tests', 'support')}",
    "NODE_PATH": ":".join(node_path())
}


def release(path):
    """Ends the acts that wait for this file."""
    path.write_text("go\n", encoding="ascii")


def url_of(server, user="", password="", db=0):
    who = f"{user}:{password}@" if password else ""
    return f"redis://{who}{HOST}:{server.port}/{db}"


def arguments(language, url, options):
    """The words for the program's options: the command has the same ones with a unit behind times, and the
    option --redis."""
    unit, times = ("ms", ("lease", "grace", "timeout")) if language == "command" else ("", ())
    if language == "command" and "service" in options:
        options = dict(options)
        url = f"redis+sentinel://{options.pop('sentinel')}/{options.pop('service')}"
    words = ["--redis" if language == "command" else "--url", url] if url else []
    for name, value in options.items():
        if value is not None:
            words += [f"--{name}"]
            words += [] if value is True else [f"{value}{unit if name in times else ''}"]
    return words


# The command's own lines, and the lines of the other programs

COUNTS = re.compile(r"stopped; (\d+) done, (\d+) failed, (\d+) died, (\d+) given back, (\d+) not yours")
NOT_YOURS = re.compile(r"(\S+ \S+): attempt (\d+) is not yours any more")


def translated(line):
    """Returns a line of the command's standard error as the other programs print it; None if it is another
    line."""
    said = line.removeprefix("tickwheel work: ")
    if said == line:
        return None
    if said.startswith("ready;"):
        return "ready"
    if told := NOT_YOURS.match(said):
        return f"not-yours {told[1]} {told[2]}"
    counts = COUNTS.match(said)
    return counts and "stopped " + " ".join(map("{}={}".format, NOTHING, counts.groups()))


def counts_of(words):
    return {name: int(number) for name, number in (word.split("=") for word in words)}


class Subject:
    """A program that runs. `options`: jobs, lease, name, grace, timeout, sentinel, service, cluster."""

    def __init__(self, language, *queues, server=None, url=None, **options):
        self.language, self.queues = language, queues
        self.changed, self.lines, self.errors, self.open = threading.Condition(), [], [], 2
        options = {"jobs": 4, "lease": LEASE, **options}
        url = url or (server and url_of(server))
        words = [*PROGRAMS[language](), *arguments(language, url, options), *queues]
        # pylint: disable-next=consider-using-with  (close() ends it)
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env={**os.environ, **ENVIRONMENT},
                                        process_group=0)
        Guard.tell("+", self.pid)
        for pipe, note in ((self.process.stdout, self.note), (self.process.stderr, self.note_error)):
            threading.Thread(target=self.read, args=(pipe, note), daemon=True).start()

    # Its lines

    def read(self, pipe, note):
        with pipe:
            for line in pipe:
                with self.changed:
                    note(line.decode(errors="replace").rstrip("\n"))
                    self.changed.notify_all()
        with self.changed:
            self.open -= 1
            self.changed.notify_all()

    def note(self, line):
        self.lines.append(tuple(line.split()))

    def note_error(self, line):
        self.errors.append(line)
        own = translated(line) if self.language == "command" else None
        if own:
            self.note(own)

    def all(self, *words):
        """Returns the lines so far that begin with these words."""
        with self.changed:
            return [line for line in self.lines if line[:len(words)] == words]

    def wait(self, *words, count=1):
        """Waits for so many lines that begin with these words, and returns them."""
        words = tuple(map(str, words))
        with self.changed:
            self.changed.wait_for(lambda: len(self.all(*words)) >= count or not self.open, PATIENCE)
        lines = self.all(*words)
        assert len(lines) >= count, f"{count} times {' '.join(words)!r} expected\n{self.story()}"
        return lines

    def story(self):
        """All that the program has said, for the message of a failure."""
        with self.changed:
            lines = [" ".join(line) for line in self.lines]
            state = "runs" if self.process.poll() is None else f"exit status {self.process.returncode}"
            return "\n".join([f"--- {self.language}, {state}", *lines, "--- its standard error", *self.errors])

    # Its life

    @property
    def pid(self):
        return self.process.pid

    def send(self, number):
        self.process.send_signal(number)

    def suspend(self):
        """SIGSTOP. Returns when no thread of the process runs any more; SIGCONT lets them go on."""
        self.send(signal.SIGSTOP)
        wait_until(lambda: set(thread_states(self.pid)) == {"T"}, message=self.story)

    def kill(self):
        """SIGKILL. The script subjects/act ends when it sees that its worker is gone."""
        self.process.kill()
        self.process.wait(PATIENCE)

    def ended(self):
        """Waits until the program has ended by itself, and returns its exit status."""
        try:
            status = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it does not end\n{self.story()}") from None
        with self.changed:
            self.changed.wait_for(lambda: not self.open, PATIENCE)
        return status

    def counts(self):
        """Waits for the end of a graceful stop, and returns its counts."""
        status = self.ended()
        assert status == 0, f"exit status {status}\n{self.story()}"
        return counts_of(self.wait("stopped")[-1][1:])

    def stop(self, number=signal.SIGTERM):
        """Stops it gracefully, and returns its counts."""
        self.send(number)
        return self.counts()

    def fails(self):
        """Waits until the program has ended with exit status 1, and returns its standard error."""
        status = self.ended()
        assert status == 1, f"exit status {status}, not 1\n{self.story()}"
        return "\n".join(self.errors)

    def close(self):
        if self.process.poll() is None:
            self.kill()
        Guard.tell("-", self.pid)
