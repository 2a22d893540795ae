# SPDX-License-Identifier: MIT
"""For the tests of commands: a new folder for each test, processes that end with it, and a clock."""
import contextlib
import fcntl
import functools
import json
import os
import re
import select
import signal
import sqlite3
import struct
import subprocess
import sys
import termios
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from eventually import PATIENCE, wait_until  # noqa: E402  (the folder has to be on the path first)
from scratch import scratch_folder  # noqa: E402
from clock import Clock  # noqa: E402

COMMAND = os.path.abspath(sys.argv[1])


def inherits(ignored=(), blocked=(), default=()):
    """For preexec_fn: the command inherits these signals so from its parent."""
    def prepare():
        for number in default:
            signal.signal(number, signal.SIG_DFL)
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
    return prepare


ALL_SIGNALS = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
DISPOSITIONS = "grep -E 'Sig(Blk|Ign)' /proc/self/status"  # a command that prints its own


def of_signals(printed):
    """The signals in the output of DISPOSITIONS."""
    return {number for line in printed.splitlines() for number in ALL_SIGNALS
            if int(line.split()[1], 16) >> (number - 1) & 1}


# A command that hangs, does so in spite of SIGTERM, leaves a process that does so, or says then that all is
# well: by the task's id.
HANGING = ("case $TICKWHEEL_ID in deaf) trap '' TERM; exec sleep infinity;; "
           "leaver) (trap '' TERM; exec sleep infinity) & wait;; "
           "polite) trap 'kill $! 2>&-; exit 0' TERM; sleep infinity & wait;; *) exec sleep infinity;; esac")


def make_small(pipe):
    fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 4096)


def is_full(pipe):
    """Whether a pipe takes no more bytes, as nobody reads it."""
    number = pipe if isinstance(pipe, int) else pipe.fileno()
    writer = os.open(f"/proc/self/fd/{number}", os.O_WRONLY | os.O_NONBLOCK)
    try:
        return not select.select([], [writer], [], 0)[1]
    finally:
        os.close(writer)


# ---- terminals that a test reads when it likes ---------------------------------------------------------------


def takes_more(terminal):
    """Whether a byte can be written to a terminal."""
    return bool(select.select([], [terminal], [], 0)[1])


def drain(terminal):
    """The bytes that a terminal shows now."""
    shown = b""
    with contextlib.suppress(OSError):  # nobody has the other end open
        while select.select([terminal], [], [], 0)[0]:
            shown += os.read(terminal, 65536)
    return shown


def shows(terminal, pattern):
    """Reads a terminal until it has shown this. Returns the match."""
    shown = bytearray()

    def seen():
        shown.extend(drain(terminal))
        return re.search(pattern, shown)
    return wait_until(seen, lambda: bytes(shown[-1000:]))


def press_stop(terminal):
    """Presses Ctrl-S. Returns when the terminal takes no more output."""
    fcntl.ioctl(terminal, termios.TIOCPKT, struct.pack("i", 1))  # then the system tells when that is
    os.write(terminal, b"\x13")
    wait_until(lambda: select.select([], [], [terminal], 0)[2])


class Gate:
    """Commands wait at it (`.wait` in a shell) until the test lets one of them pass."""

    def __init__(self, path):
        os.mkfifo(path)
        self.path = path
        self.wait = f"read -r _ <{path}"
        self.pipe = os.open(path, os.O_RDWR)

    def let_pass(self, count=1):
        os.write(self.pipe, b"\n" * count)

    def counted(self):
        """A command that prints how many of its kind run, and waits."""
        folder = f"{self.path}.running"
        os.mkdir(folder)
        return f"mkdir {folder}/$TICKWHEEL_ID; ls {folder} | wc -l; {self.wait}; rmdir {folder}/$TICKWHEEL_ID"

    def count(self, process, commands, at_once):
        """Reads of so many commands how many ran. When so many at once wait, lets one more pass for each."""
        seen = [int(process.stdout.readline()) for _ in range(at_once)]
        for _ in range(commands - at_once):
            self.let_pass()
            seen.append(int(process.stdout.readline()))
        self.let_pass(at_once)
        return seen

    def close(self):
        os.close(self.pipe)


class InFolder(unittest.TestCase):
    """A new folder for each test. The file of tasks is FOLDER/s.db. With timed_commands, run_it() runs commands
    with the test's clock."""
    timed_commands = False

    def setUp(self):
        temporary = scratch_folder()
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name
        self.store = f"{self.folder}/s.db"

    @functools.cached_property
    def clock(self):
        temporary = scratch_folder()
        self.addCleanup(temporary.cleanup)
        return Clock(temporary.name)

    def gate(self):
        gate = Gate(f"{self.folder}/gate")
        self.addCleanup(gate.close)
        return gate

    def almost_full_terminal(self):
        """Returns both ends of a terminal that nobody reads: it has room for a byte, but not for 20,000."""
        ours, theirs = os.openpty()
        self.addCleanup(os.close, ours)
        self.addCleanup(os.close, theirs)
        writer = os.open(os.ttyname(theirs), os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(writer, b"." * 1000)
        os.close(writer)

        def has_room():
            if select.select([ours], [], [], 0)[0]:
                os.read(ours, 500)
            return takes_more(theirs)
        wait_until(has_room)
        return ours, theirs

    def run_it(self, command, *arguments, lines="", status=0, env=None):
        words = command, "--store", self.store, *arguments
        if self.timed_commands:
            done = self.clock.run(*words, lines=lines, env=env, moves=command == "top")
        else:
            done = subprocess.run([COMMAND, *words], input=lines, capture_output=True, text=True, env=env,
                                  timeout=PATIENCE)
        self.assertEqual(done.returncode, status, (command, arguments, done.stdout, done.stderr))
        return done

    def start(self, *words, timed=False, **options):
        """Starts a command with pipes; timed: with the test's clock, and options of Clock.start(). It is killed
        at the end of the test, or after the patience, so that a test which waits for its output fails; not
        before wait_until() has told more."""
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True,
                   **options}
        process = self.clock.start(*words, **options) if timed else \
            subprocess.Popen([COMMAND, *words], **options)
        timer = threading.Timer(PATIENCE + 5, process.kill)
        timer.start()
        self.addCleanup(self.end, process, timer)
        return process

    def begin(self, command, *arguments, **options):
        return self.start(command, "--store", self.store, *arguments, **options)

    @staticmethod
    def end(process, timer):
        timer.cancel()
        if process.poll() is None:
            process.kill()
        process.wait(PATIENCE)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None and not pipe.closed:
                pipe.close()

    @staticmethod
    def stop(process, number=signal.SIGTERM):
        """Ends a command. Returns its output, its errors and its status."""
        process.send_signal(number)
        if process.stdin is not None and process.stdin.closed:
            process.stdin = None  # else communicate() would flush it
        return (*process.communicate(timeout=PATIENCE), process.returncode)

    @staticmethod
    def tell(process, lines):
        process.stdin.write(lines)
        process.stdin.flush()

    @staticmethod
    def says_something(pipe):
        return select.select([pipe], [], [], 0)[0]

    def put(self, *arguments, **options):
        return self.run_it("put", *arguments, **options)

    def tasks(self, *arguments, **options):
        return self.run_it("tasks", *arguments, **options).stdout

    def json(self, *arguments, **options):
        return [json.loads(line) for line in self.tasks("--json", *arguments, **options).splitlines()]

    def rows(self, sql="SELECT queue, id, payload FROM tw_task ORDER BY place_ms, revision"):
        with sqlite3.connect(self.store, timeout=PATIENCE) as db:
            rows = db.execute(sql).fetchall()
        db.close()
        return rows

    def kill_off(self, key, queue="default", error="broke", dead_ms=None):
        """Makes a task dead, as a handler would."""
        dead_ms = dead_ms or (self.clock.now_ms() if self.timed_commands else int(time.time() * 1000))
        with sqlite3.connect(self.store, timeout=PATIENCE) as db:
            db.execute(
                "UPDATE tw_task SET dead_ms = ?, attempt = coalesce(tries, 20), error = ? "
                "WHERE queue = ? AND id = CAST(? AS BLOB)", (dead_ms, error, queue, key))
        db.close()
