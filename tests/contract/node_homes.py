# SPDX-License-Identifier: MIT
"""The package of clients/node as a home: node_home.js makes the calls, one process for all scenarios.
NodePackage is the part that a file and a server share."""
import collections
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import types

from eventually import PATIENCE
from node_packages import DRIVER, node_path
from python_homes import YES, Package, PackageFile
from words import filled, read_options

PROGRAM = pathlib.Path(__file__).with_name("node_home.js")
SKIPPED = 77  # for ctest

Row = collections.namedtuple("Row", "id due next")  # of a look, a tuple as in Python


class NodeError(ValueError):
    """An error of the program. `kind` is the name of its class."""

    def __init__(self, text, kind):
        super().__init__(text)
        self.kind = kind


class Program:
    """node_home.js. `package` is the driver that it needs."""

    def __init__(self, package, environment):
        node = os.environ.get("NODE") or shutil.which("node") or shutil.which("nodejs")
        if node is None:
            self.skip("there is no nodejs: tools/setup node installs it")
        self.process = subprocess.Popen(
            [node, str(PROGRAM)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8",
            errors="surrogateescape", env={**os.environ, "NODE_PATH": ":".join(node_path()), **environment})
        if not self.ask("has", package):
            self.end()
            self.skip(f"nodejs has no {package}: docs/dependencies.md names its package")

    @staticmethod
    def skip(why):
        print(f"skipped: {why}")
        sys.exit(SKIPPED)

    def ask(self, *call):
        self.process.stdin.write(json.dumps(call) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{PROGRAM.name} has ended with {self.process.wait(PATIENCE)}")
        reply = json.loads(line, object_hook=named)
        if hasattr(reply, "error"):
            raise NodeError(reply.error.removeprefix("ERR "), reply.kind)
        return getattr(reply, "value", None)

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        if self.process.wait(PATIENCE) != 0:
            raise SystemExit(f"{PROGRAM.name} has ended with {self.process.returncode}")


def named(found):
    """An object of a reply, under the names that its fields have in Python."""
    if {*found} == {*Row._fields}:
        return Row(**found)
    return types.SimpleNamespace(**{re.sub("([A-Z])", r"_\1", name).lower(): found[name] for name in found})


def in_node(name):
    """The name of a call or an option of Python in Node."""
    return re.sub("_([a-z])", lambda letter: letter[1].upper(), name)


class NodeQueue:
    """The calls of a Queue, under their names in Python."""

    def __init__(self, program, key):
        self.program, self.key = program, key

    @staticmethod
    def arguments(words, options):
        given = {in_node(name): value for name, value in options.items() if value is not None}
        return [*words, given] if given else words

    def __getattr__(self, name):
        return lambda *words, **options: self.program.ask("call", self.key, in_node(name),
                                                          *self.arguments(words, options))


class NodePackage(Package):
    """`package` is the program."""
    program = None
    text_of = staticmethod(str)

    @classmethod
    def start(cls, package, **environment):
        if NodePackage.program is None:
            NodePackage.program = Program(package, environment)
        return NodePackage.program

    @classmethod
    def end(cls):
        if NodePackage.program:
            NodePackage.program.end()

    @property
    def work(self):
        return NodeQueue(self.package, self.queue)

    @staticmethod
    def unit(ms):
        return int(ms)

    @staticmethod
    def in_ms(value):
        return value

    def backoff(self, first, factor, most, jitter):
        given = {"first": first, "factor": factor, "max": most}
        return given if jitter is None else {**given, "jitter": jitter}

    def take_jobs(self, queues, lease_ms, count, blocks):
        return self.package.ask("take", queues, lease_ms, count, PATIENCE * 1000 * blocks)

    def answer(self, how, name, words):
        """Returns the name of the worker's count for the attempt, and the reply of the home."""
        given = read_options(word for word in words if word != "before")
        return self.package.ask("answer", self.job(name, words).number, how, self.time(given),
                                given.get("error", ""))

    def do_done(self, name, *words):
        return YES[self.answer("done", name, words).count == "done"]

    def nack(self, how, name, words):
        told = self.answer(how, name, words)
        return [{"notYours": "not yours", "died": "dead"}.get(told.count) or f"next {self.since(told.reply)}"]

    def do_fail(self, name, *words):
        return self.nack("fail", name, words)

    def do_dead(self, name, *words):
        return self.nack("dead", name, words)

    def do_back(self, name, *words):
        return self.nack("back", name, words)

    def do_touch(self, name, *words):
        lease_ms = int(read_options(word for word in words if word != "before")["lease"])
        end_ms = self.package.ask("touch", self.job(name, words).number, lease_ms)
        return ["not yours" if end_ms is None else f"ends {self.since(end_ms)}"]

    def do_scan(self):
        """The package has no scan(): the test finds the ids."""
        return self.lines((task.id, task.due, task.next) for task in map(self.work.get, self.ids()))


class NodeFile(NodePackage, PackageFile):
    """`wallclock` is wallclock.c of tests/redis, as a library. `clock` is its file, which says at which time
    the clock of the program stands."""
    clock = None

    def __init__(self, program, wallclock):
        super().__init__(program)
        self.wallclock = wallclock

    def connect(self, path):
        if NodeFile.clock is None:
            NodeFile.clock = tempfile.NamedTemporaryFile(buffering=0)
        self.stand()
        program = self.start(DRIVER, LD_PRELOAD=self.wallclock, WALLCLOCK_FILE=NodeFile.clock.name)
        program.ask("open", f"sqlite:///{path}", {"driver": DRIVER})
        return program

    def disconnect(self):
        self.package.ask("close")

    def ids(self):
        sql = "SELECT CAST(id AS TEXT) FROM tw_task WHERE queue = ?"
        return [name for name, in self.open().execute(sql, (self.queue, ))]

    def stand(self):
        """In one write, since the program has the file mapped."""
        os.pwrite(NodeFile.clock.fileno(), struct.pack("qqq", 0, 0, self.now), 0)

    def do_pass(self, ms):
        self.now += int(ms)
        self.stand()
        return super().do_pass(0)

    def do_fill(self, *words):
        lines = [line.split() for line in filled(words)]
        given = NodeQueue.arguments([], self.options(read_options(lines[0][2:])))
        self.package.ask("fill", self.queue, [name for _, name, *_ in lines], *given)
        return []
