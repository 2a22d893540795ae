# SPDX-License-Identifier: MIT
"""Workers of job frameworks as processes, and the programs of docs/frameworks.md. The tests run these
programs: the worker of a test is the worker of the page, with tasks of the test beside it.

    page = Page(folder, server)  # writes shop.py, jobs.rb ... into the folder, with the server's port
    worker = Worker(page.words("celery"), folder)  # the command of the page
    worker.stop()  # SIGTERM; worker.kill() is SIGKILL

Each task of the tests appends "<word> <Unix ms> ..." to the list `seen`.
"""
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys

from harness import HOST, PATIENCE, ROOT, Broken, Guard, wait_until

PLUGINS = os.path.join(ROOT, "clients", "python")
GEM = os.path.join(ROOT, "clients", "sidekiq", "lib")
PAGE = pathlib.Path(ROOT, "docs", "frameworks.md")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"# (\w+\.\w+)\n")

if PLUGINS not in sys.path:
    sys.path.insert(0, PLUGINS)


def environment(folder, **more):
    """The environment of a program that uses the plug-ins and the modules in `folder`."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), PLUGINS]), "RUBYLIB": GEM,
            "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1", **more}


def url_of(server):
    return f"redis://{HOST}:{server.port}/0"


class Page:
    """The programs and commands of the page, for one server."""

    def __init__(self, folder, server):
        self.folder = pathlib.Path(folder)
        self.blocks = [(language, text.replace("redis://localhost:6379/0", url_of(server)))
                       for language, text in FENCE.findall(PAGE.read_text(encoding="utf-8"))]
        for _, text in self.blocks:
            name = NAME.match(text)
            if name:
                (self.folder / name[1]).write_text(text, encoding="utf-8")

    def words(self, program):
        """Returns the command of the page that begins with this program."""
        lines = [shlex.split(line) for language, text in self.blocks if language == "sh"
                 for line in text.splitlines()]
        found = [words for words in lines if words and words[0] == program]
        if len(found) != 1:
            raise Broken(f"{PAGE} has {len(found)} commands of {program}: expected 1")
        return found[0]


class Worker:
    """A process that writes to a log of its own."""

    def __init__(self, words, folder, name="worker", **more):
        self.log_path = os.path.join(folder, f"{name}.log")
        program = shutil.which(words[0])
        if program is None:
            raise Broken(f"{words[0]} is missing: tools/setup clients installs it")
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen([program, *words[1:]], cwd=folder, env=environment(folder, **more),
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            process_group=0)
        Guard.tell("+", self.process.pid)

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def wait_log(self, text):
        wait_until(lambda: text in self.log() or self.process.poll() is not None, message=self.log)
        assert text in self.log(), self.log()

    def signal(self, number):
        """Sends a signal to the worker and to the processes that it has forked."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)

    def end(self, number):
        self.signal(number)
        try:
            self.process.wait(PATIENCE)
        finally:
            Guard.tell("-", self.process.pid)

    def kill(self):
        self.end(signal.SIGKILL)

    def stop(self):
        """An orderly stop, by SIGTERM to the worker alone, as a service manager would send it."""
        self.process.terminate()
        self.end(0)


def move_to(r, queue, dues):
    """Gives tasks of a queue other due times, {id: Unix ms}, all of them at one moment."""
    with r.pipeline() as pipe:
        for name, due in dues.items():
            pipe.execute_command("TW.MOVE", queue, name, "AT", due)
        assert pipe.execute() == [1] * len(dues)


class Seen:
    """The list to which the tasks write."""

    def __init__(self, server):
        self.r = server.client()

    def rows(self, words):
        """Returns [word, Unix ms, ...] for each run of these tasks, the first run first."""
        rows = [row.split() for row in self.r.lrange("seen", 0, -1)]
        return [(row[0], int(row[1]), *row[2:]) for row in rows if row[0] in words]

    def wait(self, words, count=None, tell=lambda: ""):
        """Waits until so many runs of these tasks are there (one of each by default), and returns them."""
        count = len(words) if count is None else count
        wait_until(lambda: len(self.rows(words)) >= count,
                   message=lambda: f"{self.rows(words)} instead of {count} runs of {words}\n{tell()}")
        return self.rows(words)
