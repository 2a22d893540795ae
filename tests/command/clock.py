# SPDX-License-Identifier: MIT
"""A clock that stands still until the test moves it, for programs that tickwheel_timed runs (clock.c).

    clock = Clock(folder)
    done = clock.run("run", lines="+3h a\n")     # to its end; when all sleep, the clock moves to the next time
    process = clock.start("run", stdin=subprocess.PIPE)
    clock.settle()                               # waits until all have done what there is to do, and sleep
    clock.move(0.5)                              # seconds; then settles

The date of the beginning is START. It is in the future, so that a task of another process is ready at once.
A thread sleeps while it waits for descriptors, for time, or for a condition that nobody has signalled. All
others have something to do: those too that wait for a lock or a child, or were woken and have not run yet.
"""
import datetime
import mmap
import os
import subprocess
import sys
import tempfile

from eventually import PATIENCE, wait_until

TIMED = os.path.join(os.path.dirname(os.path.abspath(sys.argv[1])), "tests", "tickwheel_timed")
START = datetime.datetime(2100, 1, 1, tzinfo=datetime.timezone.utc)
START_MS = int(START.timestamp()) * 1000
NEVER = 2**63 - 1
NOW, WALL, ROUND, EVENTS, COUNT, THREAD, NUMBERS = 0, 1, 2, 3, 4, 5, 4
TICK = 10000  # ns, of the scheduler of a store's handlers
THREADS = 1024  # that ever began, of all processes


class Clock:
    def __init__(self, folder):
        self.path = tempfile.mkstemp(dir=folder, prefix="clock")[1]
        with open(self.path, "r+b") as file:
            file.truncate(8 * (THREAD + NUMBERS * THREADS))
            self.numbers = memoryview(mmap.mmap(file.fileno(), 0)).cast("q")
        self.numbers[WALL] = START_MS * 10**6
        self.processes = []

    def now_ms(self):
        """The date, as a store has it."""
        return START_MS + self.numbers[NOW] // 10**6

    def passed(self):
        """In seconds."""
        return self.numbers[NOW] / 10**9

    def environment(self):
        return {**os.environ, "TICKWHEEL_CLOCK": self.path}

    def start(self, *words, env=None, **options):
        process = subprocess.Popen([TIMED, *words], env={**self.environment(), **(env or {})}, **options)
        self.processes.append(process)
        return process

    def run(self, *words, lines="", moves=True, **options):
        """Runs a command to its end."""
        with tempfile.TemporaryFile("w+") as given, tempfile.TemporaryFile("w+") as out, \
                tempfile.TemporaryFile("w+") as err:
            given.write(lines)
            given.seek(0)
            process = self.start(*words, **{"stdin": given, "stdout": out, "stderr": err, **options})
            try:
                if moves:
                    self.play(process)
                wait_until(lambda: process.poll() is not None, every=0.001)
            finally:
                process.kill()
                process.wait(PATIENCE)
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(words, process.returncode, out.read(), err.read())

    def threads(self):
        """(process, round, due, whether it waits for a condition) of each thread."""
        numbers = self.numbers[THREAD:THREAD + NUMBERS * self.numbers[COUNT]].tolist()
        return [numbers[at:at + NUMBERS] for at in range(0, len(numbers), NUMBERS)]

    def running(self):
        return [process for process in self.processes if process.poll() is None]

    def sleeps(self, process):
        """Whether each of its threads waits for a condition, or has found nothing to do in this round."""
        threads = [thread for thread in self.threads() if thread[0] == process.pid]
        return threads != [] and all(number == self.numbers[ROUND] or (waits and due == NEVER)
                                     for _, number, due, waits in threads)

    def settle(self):
        """Waits until all sleep, for one may wake another until then. Returns whether a process still runs."""
        quiet = 0
        while quiet < 2:
            events = self.numbers[EVENTS]
            self.numbers[ROUND] += 1
            wait_until(lambda: all(self.sleeps(process) for process in self.running()),
                       lambda: f"round {self.numbers[ROUND]}: {self.threads()}", every=0.001)
            quiet = quiet + 1 if events == self.numbers[EVENTS] else 0
        return bool(self.running())

    def move(self, seconds=0.0):
        self.settle()
        self.numbers[NOW] += round(seconds * 10**9)
        return self.settle()

    def skip(self, seconds):
        """Moves without waiting, for a process in which a thread that has slept waits for something else."""
        self.numbers[NOW] += round(seconds * 10**9)

    def set(self, seconds):
        """Somebody sets the date, forward or back."""
        self.numbers[WALL] += round(seconds * 10**9)

    def next_round(self):
        self.numbers[ROUND] += 1

    def dues(self, process, this_round=False):
        """The times for which a process's threads wait, in seconds; this_round: those with nothing to do."""
        return [due / 10**9 for pid, number, due, _ in self.threads()
                if pid == process.pid and (number == self.numbers[ROUND] or not this_round)]

    def due(self):
        """The next time for which somebody waits."""
        pids = [process.pid for process in self.running()]
        return min((due for pid, _, due, _ in self.threads() if pid in pids), default=NEVER)

    def next(self):
        """Moves to the next time for which somebody waits. Returns whether a process still runs."""
        due = self.due()
        if due == NEVER and self.running():
            raise AssertionError(f"nobody waits for a time, and nobody ends: {self.threads()}")
        if due != NEVER:
            self.numbers[NOW] = max(due, self.numbers[NOW])
        return self.settle()

    def until(self, condition, seconds):
        """Moves until the condition is true, by so many seconds at most."""
        end = self.numbers[NOW] + seconds * 10**9
        while not condition() and self.settle() and self.due() <= end:
            self.next()
        wait_until(lambda: condition() or self.tick(end), lambda: f"{seconds} s have passed: {self.threads()}")

    def tick(self, end):
        """Moves on by a tick of the scheduler, and by a millisecond after the end at most: a worker that was in
        no sleep may have given a job back since, and the next worker begins at a tick."""
        self.numbers[NOW] = max(self.numbers[NOW], min(self.numbers[NOW] + TICK, round(end) + 10**6))

    def play(self, process):
        """Moves on until the process has ended."""
        self.settle()
        while process.poll() is None:
            self.next()
