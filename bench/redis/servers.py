# SPDX-License-Identifier: MIT
"""Servers for the benchmarks of the module: each on the servers' core, asked by a small client."""
import os
import re
import socket
import subprocess
import sys
import time

CORES = sorted(os.sched_getaffinity(0))
SERVER_CORE = int(os.environ.get("SERVER_CORE", CORES[0]))
CLIENT_CORE = int(os.environ.get("CLIENT_CORE", CORES[-1]))
START_S = 300


def fail(words):
    sys.exit(f"{os.path.relpath(sys.argv[0])}: {words}")


class Progress:
    """One line on a terminal that tells the progress."""
    started = time.monotonic()

    @classmethod
    def say(cls, words):
        if sys.stderr.isatty():
            spent = int(time.monotonic() - cls.started)
            sys.stderr.write(f"\r{spent // 60:3}:{spent % 60:02} {words[:90]:90}")
            sys.stderr.flush()

    @staticmethod
    def clear():
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{'':98}\r")


# ---- a server ------------------------------------------------------------------------------------------------

class Connection:
    """A small client, enough to ask a server about itself."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=600)
        self.stream = self.socket.makefile("rb")

    def __call__(self, *words):
        words = [str(word).encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
        return self.answer()

    def answer(self):
        line = self.stream.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server has gone")
        kind, rest = line[:1], line[1:-2]
        if kind == b":":
            return int(rest)
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            raise RuntimeError(rest.decode())
        if kind == b"*":
            return [self.answer() for _ in range(int(rest))]
        if int(rest) < 0:
            return None
        return self.stream.read(int(rest) + 2)[:-2].decode()

    def close(self):
        self.stream.close()
        self.socket.close()


def free_port():
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        return some.getsockname()[1]


class RedisServer:
    """One redis-server, on the servers' core, with a module or without, in a folder that outlives it."""
    running = []

    def __init__(self, side, folder, module=None, aof=False):
        self.side, self.folder = side, folder
        os.makedirs(folder, exist_ok=True)
        self.log = os.path.join(folder, "log")
        self.port = free_port()
        options = {
            "port": self.port, "bind": "127.0.0.1", "dir": folder, "save": "", "logfile": self.log,
            "appendonly": "yes" if aof else "no", "appendfsync": "everysec", "auto-aof-rewrite-percentage": 0
        }
        command = ["taskset", "-c", str(SERVER_CORE), "redis-server"]
        for name, value in options.items():
            command += [f"--{name}", str(value)]
        if module is not None:
            command += ["--loadmodule", module]
        self.from_byte = os.path.getsize(self.log) if os.path.exists(self.log) else 0
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        RedisServer.running.append(self)
        self.ask = self.ready()
        self.sha = {}   # of the scripts, by name

    def load_scripts(self, scripts):
        self.sha = {name: self.ask("SCRIPT", "LOAD", text) for name, text in scripts.items()}

    def ready(self):
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                fail(f"a server did not start:\n{self.logged()}")
            try:
                ask = Connection(self.port)
                ask("PING")
                return ask
            except (OSError, RuntimeError):     # RuntimeError: it is loading
                time.sleep(0.05)
        return fail(f"a server was not ready after {START_S} s:\n{self.logged()}")

    def logged(self):
        with open(self.log, encoding="utf-8", errors="replace") as log:
            log.seek(self.from_byte)
            return log.read()

    def stop(self):
        """Shuts the server down without saving. Its files stay, and unsaved data is lost."""
        try:
            self.ask("SHUTDOWN", "NOSAVE")
        except (OSError, RuntimeError):
            pass
        self.ask.close()
        self.process.wait(timeout=START_S)
        RedisServer.running.remove(self)

    @classmethod
    def stop_all(cls):
        for server in list(cls.running):
            server.process.kill()
            server.process.wait()
            cls.running.remove(server)

    def info(self, *sections):
        lines = self.ask("INFO", *sections).splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def cpu_us(self):
        info = self.info("cpu")
        return 1e6 * (float(info["used_cpu_user"]) + float(info["used_cpu_sys"]))

    def seconds_loading(self):
        """The time of loading, as the server's log tells it."""
        found = re.findall(r"DB loaded from (?:disk|append only file): ([0-9.]+) seconds", self.logged())
        if not found:
            fail(f"the log says nothing of loading:\n{self.logged()}")
        return float(found[-1])
