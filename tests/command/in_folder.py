# SPDX-License-Identifier: MIT
"""For the tests of commands with a file of tasks: a new folder for each test."""
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))

COMMAND = os.path.abspath(sys.argv[1])


class InFolder(unittest.TestCase):
    """A new folder for each test. The file of tasks is FOLDER/s.db."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name
        self.store = f"{self.folder}/s.db"

    def run_it(self, command, *arguments, lines="", status=0, env=None):
        done = subprocess.run([COMMAND, command, "--store", self.store, *arguments],
                              input=lines,
                              capture_output=True,
                              text=True,
                              env=env,
                              timeout=60)
        self.assertEqual(done.returncode, status, (command, arguments, done.stdout, done.stderr))
        return done

    def begin(self, command, *arguments, **options):
        """Starts a command with pipes. It is killed after half a minute, so that a test which waits for its
        output fails, or at the end of the test."""
        process = subprocess.Popen([COMMAND, command, "--store", self.store, *arguments],
                                   **{"stdin": subprocess.PIPE, "stdout": subprocess.PIPE,
                                      "stderr": subprocess.PIPE, "text": True, **options})
        timer = threading.Timer(30, process.kill)
        timer.start()
        self.addCleanup(self.end, process, timer)
        return process

    @staticmethod
    def end(process, timer):
        timer.cancel()
        if process.poll() is None:
            process.kill()
        process.wait(timeout=20)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None and not pipe.closed:
                pipe.close()

    @staticmethod
    def tell(process, lines):
        process.stdin.write(lines)
        process.stdin.flush()

    def put(self, *arguments, **options):
        return self.run_it("put", *arguments, **options)

    def tasks(self, *arguments, **options):
        return self.run_it("tasks", *arguments, **options).stdout

    def json(self, *arguments, **options):
        return [json.loads(line) for line in self.tasks("--json", *arguments, **options).splitlines()]

    def rows(self, sql="SELECT queue, id, payload FROM tw_task ORDER BY due_ms, seq"):
        with sqlite3.connect(self.store) as db:
            rows = db.execute(sql).fetchall()
        db.close()
        return rows

    def kill_off(self, key, queue="default", error="broke", dead_ms=None):
        """Makes a task dead, as a handler would."""
        dead_ms = dead_ms or int(time.time() * 1000)
        with sqlite3.connect(self.store) as db:
            db.execute(
                "UPDATE tw_task SET dead_ms = ?, attempt = tries, error = ? "
                "WHERE queue = ? AND id = CAST(? AS BLOB)", (dead_ms, error, queue, key))
        db.close()
