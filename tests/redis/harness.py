# SPDX-License-Identifier: MIT
"""Real servers for the tests of the Redis module. They are started on free loopback ports, each with a folder
of its own, and stopped by process id.

    fleet = Fleet()
    server = fleet.server(appendonly="yes")   # a redis-server with the module, ready
    r = server.client()                                             # redis-py; replies are str
    replica = fleet.server(replicaof=server)
    wait_replica_in_sync(server, replica)
    server.kill()                                                   # SIGKILL; server.restart() starts it again
    fleet.close()                                                   # stops all servers, reads logs for crashes

Server takes some options itself: module, module_args, cluster, replicaof, env, preload. All other options of
Fleet.server are lines of redis.conf, with underscores for hyphens; a list makes several lines.

A test fails if a server dies without having been stopped or killed through its Server object. It also fails
if a line in a log tells of a crash: see CRASH_MARKS.

From the environment:

- TICKWHEEL_MODULE: the module; build/tickwheel.so of this repository if unset
- REDIS_SERVER, REDIS_CLI: the programs
- TICKWHEEL_PRELOAD: LD_PRELOAD of each server that loads the module, because ASan needs its library
"""
import atexit
import collections
import contextlib
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import redis

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(ROOT, "tests", "support"))

from eventually import PATIENCE, any_moment, wait_until  # noqa: E402, F401  (the folder has to be on the path)

HOST = "127.0.0.1"
SLOTS = 16384

# When a node of a cluster that says nothing is taken for dead, and when a primary is by a sentinel. All begin
# calm, so that a busy machine replaces no server that lives; a test that wants an election makes them hasty.
HASTY_MS, CALM_MS = 2000, 15000

CRASH_MARKS = re.compile(r"ASSERTION FAILED|REDIS BUG REPORT|VALKEY BUG REPORT|AddressSanitizer|LeakSanitizer|"
                         r"ThreadSanitizer|runtime error:|=== CRASH|Guru Meditation")
# Another process has the port of a server, or the file of a node. It may be the child of a killed server.
TAKEN_MARKS = re.compile(r"Address already in use|already used by a different (Redis|Valkey) Cluster node")

# Short waits, loopback only, and the commands that tests need and that a server refuses by default.
DEFAULTS = {
    "bind": HOST,
    "protected-mode": "no",
    "daemonize": "no",
    "logfile": "",
    "loglevel": "notice",
    "save": "",
    "appendfsync": "always",  # A test that kills a server counts on what it has read. everysec puts writes off.
    "enable-debug-command": "yes",
    "enable-module-command": "yes",
    "repl-diskless-sync-delay": "0",
    "shutdown-timeout": "10",
}

# This process lives a moment longer than the tests. So servers and folders do not outlive a test run that was
# killed.
GUARD = """
import os, shutil, signal, sys
left = set()
for line in sys.stdin:
    (left.add if line[0] == "+" else left.discard)(line[1:].rstrip("\\n"))
for what in sorted(left):
    if what.isdigit():
        try:
            os.kill(int(what), signal.SIGKILL)
        except OSError:
            pass
for what in left:
    if not what.isdigit():
        shutil.rmtree(what, ignore_errors=True)
"""


class Guard:
    process = None

    @classmethod
    def tell(cls, sign, what):
        if cls.process is None:
            cls.process = subprocess.Popen([sys.executable, "-c", GUARD], stdin=subprocess.PIPE, text=True,
                                           process_group=0)
            atexit.register(cls.end)
        cls.process.stdin.write(f"{sign}{what}\n")
        cls.process.stdin.flush()

    @classmethod
    def end(cls):
        cls.process.stdin.close()
        cls.process.wait(PATIENCE)


class Broken(AssertionError):
    """A server did something that no test asked for."""


def program(variable, *names, package="redis-server, redis-tools"):
    """Returns the path of a program that the environment names, or that is found by one of its names."""
    path = os.environ.get(variable) or next(filter(None, map(shutil.which, names)), None)
    if not path or not os.access(path, os.X_OK):
        raise Broken(f"{names[0]} is missing: install it (Debian: {package}), or name it in {variable}")
    return path


def module_path():
    path = os.path.abspath(os.environ.get("TICKWHEEL_MODULE") or os.path.join(ROOT, "build", "tickwheel.so"))
    if not os.path.isfile(path):
        raise Broken(f"there is no module at {path}: build it, or name it in TICKWHEEL_MODULE")
    return path


def now_ms():
    """Returns the Unix time, as server and module on this machine see it."""
    return time.time_ns() // 1000000


def bindable(port):
    with contextlib.closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


CLAIMS = collections.deque()  # The sockets that claim the ports of this process, the oldest first.
MOST_CLAIMS = 200


def claim(port):
    """Claims a port against other tests, until the server has bound it: two tests would else choose the same
    port, and one of them talk to the server of the other. The claim is a name that the kernel removes with our
    process. Returns whether the port is ours."""
    mark = socket.socket(socket.AF_UNIX)
    try:
        mark.bind(f"\0tickwheel-port-{port}")
    except OSError:
        mark.close()
        return False
    CLAIMS.append(mark)
    if len(CLAIMS) > MOST_CLAIMS:
        CLAIMS.popleft().close()
    return True


def free_port():
    """Returns a port that is free together with the port 10000 above it, which a node of a cluster uses for
    its bus. Both are below the ports that the kernel gives to outgoing connections, so that they are still free
    when the server binds them. Tests that run side by side do not get the same port, and none gets the bus of
    another one. A port is claimed before it is probed: a probe binds it for a moment, which would be in the way
    of the test that it belongs to."""
    while True:
        port = random.SystemRandom().randrange(11000, 21000)
        if claim(port):
            if bindable(port) and bindable(port + 10000):
                return port
            CLAIMS.pop().close()


def config_lines(options):
    for name, value in options.items():
        for one in value if isinstance(value, (list, tuple)) else [value]:
            yield f"{name} " + ('""' if one == "" else str(one))


def parse_info(text):
    """Returns the reply of INFO as a dict; numbers are int."""
    pairs = (line.split(":", 1) for line in text.splitlines() if ":" in line and not line.startswith("#"))
    return {name: int(value) if re.fullmatch(r"-?\d+", value) else value for name, value in pairs}


class Server:
    """One redis-server. Call start() before use; Fleet.server does that."""

    def __init__(self, folder, port=None, module=True, module_args=(), cluster=False, replicaof=None, env=None,
                 preload=None, patience=PATIENCE, **options):
        self.folder, self.port, self.replicaof = folder, port or free_port(), replicaof
        self.module, self.module_args, self.cluster = module, tuple(str(arg) for arg in module_args), cluster
        self.preload = preload or (os.environ.get("TICKWHEEL_PRELOAD") if module else None)
        self.env = dict(env or {})
        self.options = {name.replace("_", "-"): value for name, value in options.items()}
        self.patience = patience  # Seconds to wait for a reply; while a server loads a gigabyte, none comes.
        self.process, self.expected_to_die, self.clients, self.log_read = None, True, [], 0
        self.began = False  # Whether the server has ever served: others know its port since then.
        self.log_path = os.path.join(folder, "log")
        os.makedirs(folder, exist_ok=True)

    # Its configuration

    def config(self):
        options = {**DEFAULTS, "port": self.port, "dir": self.folder}
        if self.cluster:
            options.update({"cluster-enabled": "yes", "cluster-config-file": "nodes.conf",
                            "cluster-node-timeout": HASTY_MS})
        if self.replicaof is not None:
            options["replicaof"] = f"{HOST} {self.replicaof.port}"
        if self.module:
            options["loadmodule"] = " ".join((module_path(), *self.module_args))
        return {**options, **self.options}

    def command(self):
        return [program("REDIS_SERVER", "redis-server"), os.path.join(self.folder, "redis.conf")]

    def write_config(self):
        with open(os.path.join(self.folder, "redis.conf"), "w", encoding="utf-8") as file:
            file.write("".join(line + "\n" for line in config_lines(self.config())))

    # Life

    def spawn(self):
        environment = {**os.environ, **self.env}
        if self.preload:
            environment["LD_PRELOAD"] = self.preload
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.command(),
                                            cwd=self.folder,
                                            stdin=subprocess.DEVNULL,
                                            stdout=log,
                                            stderr=log,
                                            env=environment,
                                            process_group=0)
        self.expected_to_die = False
        Guard.tell("+", self.pid)

    def start(self, wait=True):
        """Starts the server, and returns when it replies and has loaded its data (unless wait is False). It
        comes back on the port that its replicas, sentinels and clients know, and waits until this is free."""
        if self.alive():
            raise Broken(f"the server on {self.port} runs already")
        wait_until(self.begins, lambda: f"its port does not become free\n{self.tail()}")
        if wait:
            self.wait_loaded()
        return self

    def begins(self):
        """Starts the process. Returns whether it replies; if not, another process has its port or its file."""
        self.write_config()
        mark = len(self.log())
        self.spawn()
        try:
            wait_until(lambda: not self.alive() or self.answers(), message=lambda: f"no answer\n{self.tail()}")
        except AssertionError:
            self.kill()
            raise
        if self.alive():
            self.began = True
            return True
        status = self.reap()
        if not TAKEN_MARKS.search(self.log(), mark):
            raise Broken(f"the server did not start (exit status {status})\n{self.tail()}")
        if not self.began:
            self.port = free_port()
        return False

    def reap(self):
        """Notes that the server has ended, and returns its exit status. A child that writes a file may live on
        after SIGKILL, and has the port until it first runs."""
        status = self.process.wait(PATIENCE)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.expected_to_die = True
        Guard.tell("-", self.pid)
        return status

    def stop(self, sig=signal.SIGTERM):
        """Stops the server in an orderly way, by SIGTERM. Does nothing if it does not run."""
        self.close_clients()
        if self.process is None or self.expected_to_die:
            return
        if not self.alive():
            raise Broken(f"the server on {self.port} died: {self.why()}")
        self.process.send_signal(sig)
        try:
            status = self.process.wait(self.patience)
        except subprocess.TimeoutExpired:
            self.kill()
            why = f"did not stop in {self.patience} s\n{self.tail()}"
            raise Broken(f"the server on {self.port} {why}") from None
        self.reap()
        if status != 0:
            raise Broken(f"the server on {self.port} stopped with exit status {status}\n{self.tail()}")

    def kill(self):
        """SIGKILL: a crash."""
        self.close_clients()
        if self.process is not None and not self.expected_to_die:
            if not self.alive():
                raise Broken(f"the server on {self.port} died before it was killed: {self.why()}")
            self.process.kill()
            self.reap()

    def restart(self, wait=True):
        """Stops the server if it runs, and starts it again with the same folder, port and options."""
        self.stop()
        return self.start(wait)

    def expect_end(self):
        """Waits until the server ends after a command that asked for it (SHUTDOWN, DEBUG SEGFAULT ...);
        returns the exit status."""
        self.process.wait(PATIENCE)
        self.close_clients()
        return self.reap()

    def alive(self):
        return self.process is not None and self.process.poll() is None

    @property
    def pid(self):
        return self.process.pid

    def why(self):
        return f"exit status {self.process.returncode}\n{self.tail()}"

    # Talking to it

    def client(self, **options):
        """Returns a redis-py client with its own connection pool, which is closed with the server."""
        settings = {"host": HOST, "port": self.port, "decode_responses": True,
                    "socket_timeout": self.patience, "socket_connect_timeout": self.patience, **options}
        client = redis.Redis(**settings)
        self.clients.append(client)
        return client

    def close_clients(self):
        for client in self.clients:
            client.connection_pool.disconnect()
        self.clients = []

    def once(self, *command, **options):
        """Sends one command on a connection of its own."""
        settings = {"host": HOST, "port": self.port, "decode_responses": True,
                    "socket_timeout": self.patience, **options}
        with contextlib.closing(redis.Redis(**settings)) as client:
            return client.execute_command(*command)

    def answers(self):
        try:
            self.once("PING")
        except redis.exceptions.BusyLoadingError:
            return True
        except redis.exceptions.ConnectionError:
            return False
        except redis.exceptions.ResponseError:
            return True  # MASTERDOWN, NOAUTH: the server is up.
        return True

    def wait_loaded(self):
        def loaded():
            if not self.alive():
                raise Broken(f"the server on {self.port} died while loading: {self.why()}")
            try:
                return self.info("persistence")["loading"] == 0
            except redis.exceptions.BusyLoadingError:
                return False
        wait_until(loaded, lambda: f"it did not load its data\n{self.tail()}", patience=self.patience)

    def info(self, section="everything"):
        """Returns INFO section as a dict: numbers are int. A sentinel that gives a server another role ends
        the connections of all its clients, this connection too. So a server that is alive is asked again."""
        for last in (False, False, True):
            try:
                with contextlib.closing(Raw(self, timeout=self.patience)) as raw:
                    return parse_info(raw("INFO", section))
            except redis.exceptions.ConnectionError:
                if last or not self.alive():
                    raise

    def is_valkey(self):
        return self.info("server").get("server_name") == "valkey"

    def tw(self):
        """Returns INFO tickwheel, without the prefix of its names."""
        return {name[len("tickwheel_"):]: value for name, value in self.info("tickwheel").items()}

    def offered(self):
        """Returns how many tasks workers could take: ready tasks that ticks have offered, and that did not
        become due in a pause."""
        told = self.tw()
        return told["ready"] - told["late"] - told["paused_tasks"]

    def log(self):
        with contextlib.suppress(FileNotFoundError), open(self.log_path, encoding="utf-8",
                                                          errors="replace") as file:
            return file.read()
        return ""

    def tail(self, lines=40):
        return f"--- log of the server on port {self.port}\n" + "\n".join(self.log().splitlines()[-lines:])

    def trouble(self):
        """Returns the trouble with this server: None, or a text. Each piece of trouble is told once."""
        if self.process is not None and not self.expected_to_die and not self.alive():
            why = self.why()
            self.reap()
            return f"the server on port {self.port} died: {why}"
        text = self.log()
        mark = CRASH_MARKS.search(text, self.log_read)
        self.log_read = len(text)
        if mark:
            end = text[max(0, mark.start() - 1000):mark.start() + 4000]
            return f"crash mark {mark.group(0)!r} in its log\n{end}"
        return None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Sentinel(Server):
    """A sentinel that watches one primary under the name `name`. After the first start the sentinel writes
    its own configuration."""

    # Its periods in ms, shorter than usual. It asks a replica once a second while the primary is down, and
    # promotes only a replica that it has heard within five ping periods.
    HASTE = {"ping-period": 400, "info-period": 100, "publish-period": 100, "ask-period": 100,
             "tilt-period": 1000}

    def __init__(self,
                 folder,
                 master,
                 name="tw",
                 quorum=1,
                 failover_timeout_ms=10000,
                 **options):
        super().__init__(folder, module=False, **options)
        self.master, self.name = master, name
        self.watch = [f"monitor {name} {HOST} {master.port} {quorum}",
                      f"down-after-milliseconds {name} {CALM_MS}",
                      f"failover-timeout {name} {failover_timeout_ms}"]

    def config(self):
        own = {"bind": HOST, "protected-mode": "no", "port": self.port, "dir": self.folder, "logfile": "",
               "sentinel": self.watch}
        return {**own, **self.options}

    def write_config(self):
        if not self.began:
            super().write_config()

    def command(self):
        return [*super().command(), "--sentinel"]

    def wait_loaded(self):
        """A sentinel has nothing to load."""

    def master_port(self):
        """Returns the port of the primary, as this sentinel believes."""
        return int(self.once("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self.name)[1])

    def hasten(self):
        self.once("SENTINEL", "DEBUG", *[word for pair in self.HASTE.items() for word in pair])

    def time_out(self, ms):
        """Sets the time after which a server that says nothing is taken for dead."""
        self.once("SENTINEL", "SET", self.name, "down-after-milliseconds", ms)

    def wait_sees(self, replicas=1, sentinels=0):
        """Waits until the sentinel knows so many replicas, and so many other sentinels."""
        def sees():
            flat = self.once("SENTINEL", "MASTER", self.name)
            state = flat if isinstance(flat, dict) else as_map(flat)
            return int(state["num-slaves"]) >= replicas and int(state["num-other-sentinels"]) >= sentinels
        wait_until(sees, message=lambda: f"the sentinel does not see all\n{self.tail()}")


class Fleet:
    """All servers of a test. The fleet stops the servers that it has started, and reports trouble with them."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="tickwheel-redis-")
        Guard.tell("+", self.folder)
        self.servers, self.options = [], {}  # The options of all servers, unless they have others.

    def new_folder(self):
        return os.path.join(self.folder, str(len(self.servers)))

    def server(self, start=True, wait=True, **options):
        folder = options.pop("folder", None) or self.new_folder()
        return self.adopt(Server(folder, **{**self.options, **options}), start, wait)

    def sentinel(self, master, **options):
        return self.adopt(Sentinel(self.new_folder(), master, **options))

    def adopt(self, server, start=True, wait=True):
        self.servers.append(server)
        return server.start(wait) if start else server

    def cluster(self, primaries=3, replicas=0, **options):
        """Starts a cluster with its slots evenly spread, and so many replicas for each primary. Returns a
        Cluster."""
        return Cluster([self.server(cluster=True, **options) for _ in range(primaries * (1 + replicas))],
                       primaries)

    def trouble(self):
        return [text for text in (server.trouble() for server in self.servers) if text]

    def tails(self):
        return "\n".join(server.tail() for server in self.servers)

    def close(self):
        """Stops all servers. Raises Broken if a server died by itself, did not stop, or has a log that tells
        of a crash."""
        wrong = self.trouble()
        for server in self.servers:
            try:
                if server.alive():
                    self.soft_stop(server)
            except Broken as broken:
                wrong.append(str(broken))
        wrong += self.trouble()
        shutil.rmtree(self.folder, ignore_errors=True)
        Guard.tell("-", self.folder)
        if wrong:
            raise Broken("\n".join(wrong))

    @staticmethod
    def soft_stop(server):
        """SIGTERM would save an RDB that nobody reads, and wait for replicas. SHUTDOWN NOSAVE NOW runs
        everything else."""
        with contextlib.suppress(redis.exceptions.RedisError):
            Raw(server).send("SHUTDOWN", *([] if isinstance(server, Sentinel) else ["NOSAVE", "NOW", "FORCE"]))
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.process.wait(PATIENCE)
        if server.alive():
            server.stop()
        else:
            server.close_clients()
            if server.reap() != 0:
                raise Broken(f"the server on {server.port} did not stop well: {server.why()}")


class Cluster:
    """Nodes that know each other. nodes[:primaries] began as primaries, the other nodes as their replicas in
    turn."""

    def __init__(self, nodes, primaries):
        self.nodes, self.first_primaries = nodes, nodes[:primaries]
        self.first_replicas = nodes[primaries:]
        self.build()

    def build(self):
        """Gives each node a config epoch of its own, replicas too. Nodes with equal epochs take others when
        they meet, and a replica keeps its epoch in secret. If its primary had the same epoch and died, a
        takeover would be no news for the nodes."""
        primaries = self.first_primaries
        for i, node in enumerate(self.nodes):
            node.once("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
        for i, node in enumerate(primaries):
            low, high = i * SLOTS // len(primaries), (i + 1) * SLOTS // len(primaries) - 1
            node.once("CLUSTER", "ADDSLOTSRANGE", low, high)
        for node in self.nodes[1:]:
            node.once("CLUSTER", "MEET", HOST, self.nodes[0].port)
        wait_until(lambda: all(len(self.known(node)) == len(self.nodes) for node in self.nodes),
                   message="the nodes do not all know each other")
        for i, node in enumerate(self.first_replicas):
            master = self.id(primaries[i % len(primaries)])
            wait_until(lambda node=node, master=master: self.replicate(node, master))
        self.wait_ok()
        for i, node in enumerate(self.first_replicas):
            wait_replica_in_sync(primaries[i % len(primaries)], node)
        self.time_out(CALM_MS, *primaries)

    @staticmethod
    def time_out(ms, *nodes):
        """Sets the time after which these nodes take another one for dead. Nodes with a short time talk more,
        so that the others hear early of their roles; only the primaries have a say in who is dead."""
        for node in nodes:
            node.once("CONFIG", "SET", "cluster-node-timeout", ms)

    @staticmethod
    def replicate(node, master):
        try:
            return node.once("CLUSTER", "REPLICATE", master)
        except redis.exceptions.ResponseError:
            return False  # The node has not heard yet that the other node is a primary.

    @staticmethod
    def id(node):
        return node.once("CLUSTER", "MYID")

    @staticmethod
    def known(node):
        """Returns the lines of CLUSTER NODES, split, without nodes that are being met or are gone."""
        with contextlib.closing(Raw(node)) as raw:
            rows = [line.split() for line in raw("CLUSTER", "NODES").splitlines()]
        return [row for row in rows if "handshake" not in row[2] and "noaddr" not in row[2]]

    @staticmethod
    def state(node):
        """Returns CLUSTER INFO as a dict."""
        with contextlib.closing(Raw(node)) as raw:
            return parse_info(raw("CLUSTER", "INFO"))

    def alive(self):
        return [node for node in self.nodes if node.alive()]

    def primaries(self):
        """Returns the nodes that run and report themselves as primaries with slots."""
        return [node for node in self.alive()
                for row in self.known(node) if "myself" in row[2] and "master" in row[2] and len(row) > 8]

    def hand_over(self, old, new):
        """CLUSTER FAILOVER. A node ignores another one that it does not know as a replica yet, also when it
        votes. A replica that has got no votes after five seconds gives up, and is asked again, as an operator
        would."""
        pair = [self.id(new), self.id(old)]

        def known(node):
            return pair in [[row[0], row[3]] for row in self.known(node)]

        wait_until(lambda: all(map(known, self.alive())), "the nodes do not know the replica", every=0.1)
        self.time_out(HASTY_MS, old)
        begin, asked = len(new.log()), 0

        def is_primary():
            nonlocal asked
            if new.info("replication")["role"] == "master":
                return True
            if new.log()[begin:].count("Manual failover timed out") >= asked:
                new.once("CLUSTER", "FAILOVER")
                asked += 1
            return False

        wait_until(is_primary, message=lambda: f"no failover\n{new.tail()}")
        self.time_out(CALM_MS, new)

    def take_over(self, new):
        """A primary is dead. When all other nodes have found that, and serve no slot any more, its replica
        `new` takes its slots. It needs no votes, which a busy machine may delay."""
        new.once("CONFIG", "SET", "cluster-replica-no-failover", "yes")
        self.time_out(HASTY_MS, *self.alive())
        wait_until(lambda: all(self.state(node)["cluster_state"] == "fail" for node in self.alive()),
                   "a node does not know that the primary is dead")
        new.once("CLUSTER", "FAILOVER", "TAKEOVER")
        new.once("CONFIG", "SET", "cluster-replica-no-failover", "no")
        wait_until(lambda: new.info("replication")["role"] == "master", "the replica was not promoted")
        self.time_out(CALM_MS, *self.primaries())
        self.wait_ok()

    def wait_ok(self):
        """Waits until every running node reports all slots as served, and the nodes agree who serves them."""
        def settled():
            for node in self.alive():
                state = self.state(node)
                if state["cluster_state"] != "ok" or state["cluster_slots_ok"] != SLOTS:
                    return False
            views = {
                tuple(
                    sorted((row[0], *row[8:]) for row in self.known(node)
                           if "master" in row[2] and len(row) > 8))
                for node in self.alive()
            }
            return len(views) == 1 or self.migrating(views)
        wait_until(settled, "the cluster does not settle")

    @staticmethod
    def migrating(views):
        """Only its two nodes report a slot that is migrating, in brackets."""
        plain = {
            tuple((row[0], *(slot for slot in row[1:] if not slot.startswith("["))) for row in view)
            for view in views
        }
        return len(plain) == 1

    def owner(self, key):
        """Returns the node that serves the key's slot now."""
        slot = self.alive()[0].once("CLUSTER", "KEYSLOT", key)
        for node in self.alive():
            for row in self.known(node):
                if "myself" in row[2] and "master" in row[2] and any(
                        self.holds(part, slot) for part in row[8:]):
                    return node
        raise AssertionError(f"nobody serves slot {slot}")

    @staticmethod
    def holds(part, slot):
        if part.startswith("["):
            return False
        low, _, high = part.partition("-")
        return int(low) <= slot <= int(high or low)

    def replica_of(self, primary):
        """Returns a node that runs and replicates this primary."""
        mine = self.id(primary)
        for node in self.alive():
            if any("myself" in row[2] and "slave" in row[2] and row[3] == mine for row in self.known(node)):
                return node
        raise AssertionError(f"no replica of the node on {primary.port}")

    def cli(self, *arguments):
        """Runs redis-cli --cluster ARGUMENTS, for tasks that only redis-cli does: reshard, rebalance, check.
        Returns its output."""
        done = subprocess.run([program("REDIS_CLI", "redis-cli"), "--cluster", *map(str, arguments)],
                              timeout=PATIENCE * 2,
                              capture_output=True,
                              text=True,
                              check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


class Raw:
    """A connection that speaks the protocol itself: RESP3, replies that come later, several commands in one
    write.

    Replies are str, int, float, bool, None, list, dict (a map), set, or Error for an error. If the server has
    refused or ended the connection, redis-py's ConnectionError is raised, whether the connection ends between
    two words, in the middle of a word, or by a reset."""

    class Error(str):
        """An error that the server replied with."""

    class Push(list):
        """A message that no command asked for."""

    def __init__(self, server, protocol=2, timeout=PATIENCE):
        with self.loss_told():
            self.socket = socket.create_connection((HOST, server.port), timeout)
        self.file = self.socket.makefile("rb")
        if protocol == 3:
            self("HELLO", 3)

    def __call__(self, *words):
        self.send(*words)
        return self.read()

    @staticmethod
    def encoded(words):
        parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)

    @staticmethod
    @contextlib.contextmanager
    def loss_told():
        try:
            yield
        except ConnectionError as error:
            raise redis.exceptions.ConnectionError(str(error)) from error

    def send(self, *words):
        self.send_all([words])

    def send_all(self, commands):
        """Sends many commands in one write; read() each reply."""
        with self.loss_told():
            self.socket.sendall(b"".join(map(self.encoded, commands)))

    def line(self):
        """Reads the next line, without its end."""
        with self.loss_told():
            line = self.file.readline()
        if not line.endswith(b"\n"):
            raise redis.exceptions.ConnectionError("the server has closed the connection")
        return line.rstrip(b"\r\n")

    def exactly(self, size):
        with self.loss_told():
            data = self.file.read(size)
        if len(data) < size:
            raise redis.exceptions.ConnectionError(
                f"the server has closed the connection, {size - len(data)} bytes short")
        return data

    def read(self):
        line = self.line()
        kind, rest = line[:1], line[1:].decode("utf-8", "surrogateescape")
        if kind in b"$=!":
            return self.bulk(kind, int(rest))
        if kind in b"*~%>":
            return self.aggregate(kind, int(rest))
        return {b"+": str, b"-": self.Error, b":": int, b"(": int, b",": float, b"#": lambda text: text == "t",
                b"_": lambda _: None}[kind](rest)

    def bulk(self, kind, size):
        if size < 0:
            return None
        text = self.exactly(size + 2)[:-2].decode("utf-8", "surrogateescape")
        return self.Error(text) if kind == b"!" else text[4:] if kind == b"=" else text

    def aggregate(self, kind, size):
        if size < 0:
            return None
        if kind == b"%":
            return dict((self.read(), self.read()) for _ in range(size))
        parts = [self.read() for _ in range(size)]
        return {b"*": list, b"~": set, b">": self.Push}[kind](parts)

    def close(self):
        self.file.close()
        self.socket.close()


class Tap(Raw):
    """A replica that only listens. It gets the commands that the server replicates, which are the commands
    that the server writes to its AOF.

    After the tap is closed the server goes on counting its replication offset, and sends no pings that would
    move it."""

    def __init__(self, server, timeout=PATIENCE):
        super().__init__(server, timeout=timeout)
        self.server, self.markers = server, 0
        answer = self("PSYNC", "?", "-1")
        assert answer.startswith("FULLRESYNC"), answer
        while not (line := self.line()):  # The server keeps the link alive while it saves.
            pass
        self.exactly(int(line[1:]))

    def commands(self):
        """Returns all commands that were replicated since the last call, as lists of words; SELECT and PING
        left out, MULTI and EXEC included."""
        self.markers += 1
        marker = ["SET", "tap:marker", str(self.markers)]
        self.server.once(*marker)
        found = []
        while (words := self.read()) != marker:
            if words[0].upper() not in ("SELECT", "PING", "REPLCONF"):
                found.append(words)
        self.send("REPLCONF", "ACK", "0")
        return found


# Helpers that tests use most

def version():
    """Returns the version of the source, as include/tickwheel/version.h has it."""
    with open(os.path.join(ROOT, "include", "tickwheel", "version.h"), encoding="utf-8") as file:
        return re.search(r'TW_VERSION "(.+?)"', file.read())[1]


def as_map(flat):
    """Returns a flat array of names and values as a dict; returns a dict as it is."""
    return flat if isinstance(flat, dict) else dict(zip(flat[::2], flat[1::2]))


def entries(client, stream):
    """Returns the entries of a Stream as [(entry id, {field: value})], first to last."""
    return client.xrange(stream)


def delivered(client, stream):
    """Returns the ids of the tasks that were delivered to a Stream, in order."""
    return [fields["tw.id"] for _, fields in entries(client, stream)]


def task(client, queue, name):
    """Returns TW.GET of one id as a dict, payload included; None if there is no such task."""
    found = client.execute_command("TW.GET", queue, name)[0]
    return None if found is None else as_map(found)


def tasks(client, queue):
    """Returns {id: due} of all tasks of a queue, by TW.SCAN."""
    found, cursor = {}, "0"
    while True:
        cursor, rows = client.execute_command("TW.SCAN", queue, cursor, "COUNT", 1000)
        found.update((name, due) for name, due, _ in rows)
        if int(cursor) == 0:
            return found


PAGE = 10000  # The most rows that TW.RANGE returns at once.


def in_order(execute, queue, limit=PAGE):
    """Returns [[id, due, next], ...] of all waiting tasks of a queue, by TW.RANGE, page by page. `execute`
    sends a command."""
    rows, words = [], ("-", "+")
    while True:
        page = execute("TW.RANGE", queue, *words, "COUNT", limit)
        rows += page
        if len(page) < limit:
            return rows
        words = (page[-1][2], "+", "AFTER", page[-1][0])


# [[id, due, next], ...] of all tasks of a queue, by TW.SCAN, as a script for a transaction.
ALL_TASKS = """
local rows, there, cursor = {}, {}, '0'
repeat
    local page = redis.call('TW.SCAN', KEYS[1], cursor, 'COUNT', 10000)
    for _, row in ipairs(page[2]) do
        if not there[row[1]] then rows[#rows + 1] = row end
        there[row[1]] = true
    end
    cursor = page[1]
until cursor == '0'
return rows
"""

# The same as in_order(), as a script.
IN_ORDER = """
local rows, from, after = {}, '-', {}
repeat
    local page = redis.call('TW.RANGE', KEYS[1], from, '+', 'COUNT', 10000, unpack(after))
    for _, row in ipairs(page) do rows[#rows + 1] = row end
    if #page > 0 then from, after = page[#page][3], {'AFTER', page[#page][1]} end
until #page < 10000
return rows
"""


def wait_replica_in_sync(master, replica, timeout=PATIENCE):
    """Waits until the replica has applied all that the master had written when this was called."""
    offset = None

    def in_sync():
        nonlocal offset
        state = replica.info("replication")
        if state.get("master_link_status") != "up":
            return False
        if offset is None:
            offset = master.info("replication")["master_repl_offset"]
        return state["slave_repl_offset"] >= offset

    wait_until(in_sync, lambda: f"the replica lags\n{master.tail()}\n{replica.tail()}", patience=timeout)
