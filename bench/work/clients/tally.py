# SPDX-License-Identifier: MIT
"""The arguments of the client programs in Python, and the lines by which they tell of their jobs.

    PROGRAM SIDE put|work PORT PID JOBS BYTES

    first NS CLIENT_US SERVER_US    the first job is put next; or its handler has been called
    last NS CLIENT_US SERVER_US     the last job is put; or its handler has been called

NS is the monotonic clock. The other two are the processor times so far: of this program with its children, and
of the server, whose process is PID. The program goes on until SIGTERM.
"""
import collections
import multiprocessing
import os
import signal
import time

from processes import spent_us

QUEUE = "tasks"
IN_FLIGHT = 100
STANDARD_OUTPUT = 1     # the library may have put another file into sys.stdout

Asked = collections.namedtuple("Asked", "side mode port jobs payload")


class Tally:
    """Counts the calls of the handler, in this process and in those that it forks."""

    def __init__(self):
        self.jobs, self.calls = 0, multiprocessing.Value("L", 0)
        self.client, self.server = os.getpid(), 0

    def asked(self, words):
        side, mode, *numbers = words
        port, self.server, self.jobs, size = map(int, numbers)
        return Asked(side, mode, port, self.jobs, "p" * size)

    def first(self):
        spent = f"{spent_us(self.client):.0f} {spent_us(self.server):.0f}"
        self.tell(f"first {time.monotonic_ns()} {spent}")

    def last(self):
        now = time.monotonic_ns()
        self.tell(f"last {now} {spent_us(self.client):.0f} {spent_us(self.server):.0f}")

    @staticmethod
    def tell(line):
        os.write(STANDARD_OUTPUT, line.encode() + b"\n")

    def called(self):
        with self.calls:
            self.calls.value += 1
            number = self.calls.value
        if number == 1:
            self.first()
        if number == self.jobs:
            self.last()

    def batches(self):
        """The numbers of the jobs, in groups of as many as are put together. Tells of the first put and of the
        last one."""
        self.first()
        for first in range(0, self.jobs, IN_FLIGHT):
            yield range(first, min(first + IN_FLIGHT, self.jobs))
        self.last()
        signal.pause()


tally = Tally()


def handle(_payload):
    """The handler of a library that finds it by its name."""
    tally.called()
