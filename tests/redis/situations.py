# SPDX-License-Identifier: MIT
"""Shared by several test files, beyond harness.py:

- many tasks at once
- tasks for workers, and what workers do with them
- a wall clock that can be pushed
- the commands in the append-only file
- the checksum of DUMP
- a clock of the queue's own

With `let_pass` a test makes sure, without a long wait, that a task will not be delivered any more. Tasks of
all queues are delivered in the order of their due times. So when a task that is due later has arrived, all
earlier tasks have had their turn."""
import collections
import contextlib
import functools
import itertools
import os
import re
import resource
import signal
import struct
import subprocess
import tempfile

import pytest
import redis

from harness import (PATIENCE, ROOT, Broken, Guard, Raw, as_map, delivered, module_path, now_ms, wait_until)

# A task as TW.TAKE gives it to a worker.
Job = collections.namedtuple("Job", "queue id token due attempt payload missed_periods")
# A dead task as TW.DEAD lists it.
Dead = collections.namedtuple("Dead", "id due dead attempt error lapses next")
BLOCK_MS = 60000  # A worker of these tests waits so long for a task at most.

FILL = """
local first, last = tonumber(ARGV[1]), tonumber(ARGV[2])
for i = first, last do
    local at = string.format('%.0f', ARGV[4] + (i - ARGV[5]) * ARGV[6])
    redis.call('TW.SEND', KEYS[1], KEYS[2], ARGV[3] .. i, 'AT', at, unpack(ARGV, 7))
end
"""
MARKS = itertools.count()


def add(client, queue, target, name, at, *options, payload=("n", "v")):
    """One TW.SEND with an absolute time."""
    return client.execute_command("TW.SEND", queue, target, name, "AT", at, *options, "PAYLOAD", *payload)


def put(client, queue, name, *words, payload=("v",)):
    """One TW.PUT. `words` are its time and its options; a task without them is due at once."""
    return client.execute_command("TW.PUT", queue, name, *(words or ("IN", 0)), "PAYLOAD", *payload)


def take(client, *queues, lease=3600000, options=()):
    """Takes what is ready now. Returns a list of jobs, which may be empty."""
    reply = client.execute_command("TW.TAKE", len(queues), *queues, "LEASE", lease, *options)
    return [Job(*row) for row in reply or []]


def wait_take(client, *queues, lease=3600000, options=()):
    """Takes one task, and waits until there is one."""
    jobs = take(client, *queues, lease=lease, options=("BLOCK", BLOCK_MS, *options))
    assert jobs, "no task became ready"
    return jobs[0]


def working(client, queue):
    """Returns TW.INFO of a queue as a dict."""
    return as_map(client.execute_command("TW.INFO", queue))


def wait_ready(client, queue, count=1):
    """Waits until so many tasks of a queue are ready, and ticks have offered them to workers."""
    def are_offered():
        found = client.exists(queue) and working(client, queue)
        return found and found["ready"] == count and found["late"] == 0
    wait_until(are_offered,
               message=lambda: f"not {count} ready tasks: {client.execute_command('TW.INFO', queue)}")


def dead_of(client, queue, *options):
    """Returns the dead tasks of a queue, as TW.DEAD lists them."""
    return [Dead(*row) for row in client.execute_command("TW.DEAD", queue, *options)]


def wait_dead(client, queue, count=1, patience=PATIENCE):
    """Waits for so many dead tasks, and returns them."""
    wait_until(lambda: len(dead_of(client, queue)) >= count,
               lambda: f"{dead_of(client, queue)}, not {count}", patience=patience)
    return dead_of(client, queue)


def fill(client, queue, target, count, at, first=0, step=0, options=(), payload=("n", "v"), prefix="t"):
    """Adds tasks t0, t1 ... that are due at `at`, `step` ms apart, ten thousand in one script. Returns their
    ids."""
    for low in range(first, first + count, 10000):
        high = min(low + 10000, first + count) - 1
        client.eval(FILL, 2, queue, target, low, high, prefix, at, first, step, *options, "PAYLOAD",
                    *payload)
    return [f"{prefix}{i}" for i in range(first, first + count)]


def events_of(r, run):
    """Returns the keyspace notifications for queue s while run() runs."""
    r.config_set("notify-keyspace-events", "Kdg")
    listener = r.pubsub()
    listener.subscribe("__keyspace@0__:s")
    assert listener.get_message(timeout=PATIENCE)["type"] == "subscribe"
    run()
    r.publish("__keyspace@0__:s", "that is all")
    found = []
    while (message := listener.get_message(timeout=PATIENCE))["data"] != "that is all":
        found.append(message["data"])
    listener.close()
    return found


def extent(light, usual, full):
    """Returns how much a long test does: least with TICKWHEEL_LIGHT, most with TICKWHEEL_LONG (make rounds)."""
    if os.environ.get("TICKWHEEL_LIGHT"):
        return light
    return full if os.environ.get("TICKWHEEL_LONG") else usual


def let_pass(client, due):
    """Waits until all tasks that are due at `due` or before have had their turn, in all queues of a server
    that delivers."""
    mark, (seconds, us) = f"let-pass:{next(MARKS)}", client.time()
    add(client, f"{mark}:queue", f"{mark}:target", "mark", max(due + 1, seconds * 1000 + us // 1000))
    wait_until(lambda: client.xlen(f"{mark}:target") == 1, message=f"a task due at {due + 1} was not delivered")
    client.delete(f"{mark}:target")


def wait_delivered(client, stream, count):
    """Waits for `count` entries, and returns the ids of their tasks."""
    wait_until(lambda: client.xlen(stream) >= count, lambda: f"{client.xlen(stream)} of {count} in {stream}")
    return delivered(client, stream)


class Counters:
    """How far the counters of INFO tickwheel went on since this object was made: counters["delivered"]."""

    def __init__(self, server):
        self.server, self.before = server, server.tw()

    def __getitem__(self, name):
        return self.server.tw()[name] - self.before[name]

    def wait(self, name, least=1):
        wait_until(lambda: self[name] >= least,
                   message=lambda: f"{name} went on by {self[name]}, not by {least}")


def deferred(server, why):
    """Waits until the server has put off a delivery for this reason."""
    wait_until(lambda: server.tw()[f"deferred_{why}"] > 0,
               message=lambda: f"nothing was deferred: {server.tw()}")


def calls_of(client, command):
    """Returns how often the server has carried out a command."""
    return client.info("commandstats").get(f"cmdstat_{command.lower()}", {"calls": 0})["calls"]


def shut_down(server, *words):
    """Sends SHUTDOWN, and waits until the server waits for its replica. Returns the connection."""
    asked = Raw(server)
    asked.send("SHUTDOWN", *words)
    wait_until(lambda: "shutdown_in_milliseconds" in server.info("server"))
    return asked


def sleeps(server):
    """Returns how often the server has gone to sleep: once in each iteration of its event loop at most."""
    with open(f"/proc/{server.pid}/task/{server.pid}/status", encoding="ascii") as file:
        return int(re.search(r"(?m)^voluntary_ctxt_switches:\s+(\d+)", file.read())[1])


@contextlib.contextmanager
def frozen(server):
    """Suspends the server's process within this context."""
    os.kill(server.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.pid, signal.SIGCONT)


def answers_meanwhile(server, begin, command, key):
    """Freezes the server, sends it two megabytes of a command, calls begin(), and lets the server go on. It
    reads 16 KB of that in an iteration of its event loop: so there are commands in many iterations, however
    slow this process is. Returns the different replies in their order."""
    one, count = Raw.encoded(("EVAL", f"return redis.call('{command}', KEYS[1]) --{'-' * 900}", 1, key)), 2000
    with contextlib.closing(Raw(server)) as raw:
        with frozen(server):
            raw.socket.sendall(one * count)  # They fit into the buffers of the kernel.
            begin()
        return list(dict.fromkeys(raw.read() for _ in range(count)))


def digest(server):
    """DEBUG DIGEST of all keys, their values and expiries. A million entries take 4 s of the processor, in one
    command, and more than a minute on a busy machine."""
    return server.once("DEBUG", "DIGEST", socket_timeout=PATIENCE * 5)


def let_turn(server, turns=3):
    """Waits until the server has gone to sleep so many times: it has done all that it was able to do at once.
    For a server that delivers nothing, where let_pass() waits in vain."""
    before = sleeps(server)
    wait_until(lambda: sleeps(server) >= before + turns, "it does not sleep")


def none_served(server, crew):
    """Asserts that none of these workers gets a task."""
    taken = server.tw()["taken"]
    let_turn(server)
    assert not any(one.served() for one in crew), "a worker was served"
    assert server.tw()["taken"] == taken


# Other modules

def meddled(fleet, **options):
    """A server with meddler.c loaded beside our module."""
    meddler = os.environ.get("TICKWHEEL_MEDDLER") or os.path.join(ROOT, "build", "tests", "redis", "meddler.so")
    if not os.path.exists(meddler):
        raise Broken(f"{meddler} is missing: build it, or name it in TICKWHEEL_MEDDLER")
    return fleet.server(loadmodule=[module_path(), meddler], **options)


# The wall clock

@functools.cache
def preload_library():
    """Compiles wallclock.c; returns the path of the shared object, which goes with this process."""
    folder = tempfile.mkdtemp(prefix="tickwheel-clock-")
    Guard.tell("+", folder)
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "wallclock.c")
    library = os.path.join(folder, "wallclock.so")
    done = subprocess.run([os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", source, "-o", library],
                          capture_output=True, text=True, check=False, timeout=PATIENCE * 2)
    if done.returncode != 0:
        raise Broken(f"wallclock.c does not compile: {done.stderr}")
    return library


class WallClock:
    """The clocks of the servers that are started with its `options`. A test pushes them while the servers run.

    While the wall clock stands still, nothing becomes due, however slow this machine is. `reach` is the end of
    that: the clock shows the time that the test wants, and goes on from there."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "wallclock")
        self.offset_ms = self.passed_ms = self.stands_ms = 0
        self.write()
        already = os.environ.get("TICKWHEEL_PRELOAD")
        # A thread of jemalloc sleeps until a time on the wall clock: while that stands, it would not sleep.
        self.options = {"preload": ":".join(filter(None, (already, preload_library()))),
                        "env": {"WALLCLOCK_FILE": self.path}, "jemalloc_bg_thread": "no"}

    def write(self):
        """Writes in place and in one write: the servers have the file mapped."""
        with open(self.path, "r+b" if os.path.exists(self.path) else "wb", buffering=0) as file:
            file.write(struct.pack("qqq", self.offset_ms, self.passed_ms, self.stands_ms))

    def now(self):
        """Returns the time that the wall clock shows."""
        return self.stands_ms or now_ms() + self.offset_ms

    def push(self, ms):
        """Sets the wall clock, which stands or goes on as before."""
        self.offset_ms += ms
        if self.stands_ms:
            self.stands_ms += ms
        self.write()

    def push_monotonic(self, ms):
        """Lets so much time pass for all measurements of time, such as the lateness of the past minute."""
        self.passed_ms += ms
        self.write()

    def elapse(self, ms):
        """Lets so much time pass for both clocks in one write: the wall clock goes on, and was not set. If a
        server reads one clock before the write and the other one after it, it reads both again."""
        self.passed_ms += ms
        self.push(ms)

    def stand(self):
        self.stands_ms = self.now()
        self.write()

    def go_on(self):
        self.offset_ms, self.stands_ms = self.now() - now_ms(), 0
        self.write()

    def reach(self, due):
        """Lets the clock go on, from `due` if that is still to come."""
        self.push(max(0, due - self.now()))
        self.go_on()

    def run(self, ms):
        """Lets the clock go on for so long, and stops it again: no step of the clock ends leases."""
        end = self.now() + ms
        self.go_on()
        wait_until(lambda: self.now() >= end)
        self.stand()

    def pass_by(self, due):
        """The same, and as much time passes for the server's timers: its cron comes at once."""
        self.push_monotonic(max(0, due - self.now()))
        self.reach(due)


# Disks that are full

class FullDisk:
    """Within this context the files of a server cannot grow beyond a size limit, which is lifted at the end."""

    def __init__(self, server, size):
        self.pid, self.size = server.pid, size

    def __enter__(self):
        resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (self.size, resource.RLIM_INFINITY))

    def __exit__(self, *_):
        resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def write_until_refused(client):
    """Writes until the append-only file cannot grow, and the server refuses."""
    with pytest.raises(redis.ResponseError, match="MISCONF"):
        for _ in range(5000):
            client.set("beside", "x" * 10000)


def ignoring_signal_xfsz(monkeypatch):
    """Makes a write to a file at its limit fail with an error, as on a full disk, instead of a signal. Python
    ignores SIGXFSZ, and without this change the processes that it starts would not."""
    plain = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen",
                        lambda *words, **options: plain(*words, **options, restore_signals=False))


# The append-only file

def aof_path(server, kind="incr"):
    """Returns the last file of this kind in the manifest."""
    folder = os.path.join(server.folder, "appendonlydir")
    letter = {"base": "b", "incr": "i"}[kind]
    with open(os.path.join(folder, "appendonly.aof.manifest"), encoding="ascii") as manifest:
        names = [line.split()[1] for line in manifest if line.split()[5] == letter]
    return os.path.join(folder, names[-1])


def rewrite(server):
    """Runs BGREWRITEAOF and waits for its end."""
    server.client().bgrewriteaof()
    wait_rewritten(server)


def wait_rewritten(server):
    wait_until(lambda: server.info("persistence")["aof_rewrite_in_progress"] == 0
               and server.info("persistence")["aof_rewrite_scheduled"] == 0)
    assert server.info("persistence")["aof_last_bgrewrite_status"] == "ok"


def aof_commands(path):
    """Returns [(offset, [word, ...])] of a file of commands; words are bytes."""
    with open(path, "rb") as file:
        data = file.read()
    found, at = [], 0
    while at < len(data):
        begin = at
        count, at = number_line(data, at, b"*")
        words = []
        for _ in range(count):
            size, at = number_line(data, at, b"$")
            words.append(data[at:at + size])
            at += size + 2
        found.append((begin, words))
    return found


FORMAT_NUMBER = 101  # src/redis/queues/format.h


class Packed:
    """Numbers and strings that the module has packed, one after the other (src/redis/queues/bytes.h)."""

    def __init__(self, packed):
        self.packed, self.at = packed, 0

    def left(self):
        return len(self.packed) - self.at

    def number(self):
        byte = self.packed[self.at]
        self.at += 1
        return byte if byte < 128 else byte - 128 + 128 * self.number()

    def numbers(self, count):
        return [self.number() for _ in range(count)]

    def string(self):
        size = self.number()
        assert size <= self.left()
        self.at += size
        return self.packed[self.at - size:self.at]


def as_bytes(word):
    return word if isinstance(word, bytes) else word.encode("utf-8", "surrogateescape")


def fired_form(words):
    """Returns the name of the form of a TW.FIRED; None for another command. Two forms have no word."""
    if as_bytes(words[0]) != b"TW.FIRED":
        return None
    form = as_bytes(words[2])
    return form.decode() if form[:1].isupper() else "PUT" if form[1:2] == b"\0" else "CHANGES"


def outcomes(commands):
    """Returns the queue and the form of each TW.FIRED. No other commands are there but MULTI and EXEC."""
    return [(words[1], fired_form(words)) for words in commands if words[0] not in ("MULTI", "EXEC")]


def logged_task(words):
    """Returns the task of a TW.FIRED that brings one as a dict. The head of src/redis/queues/chunk.c has its
    bytes."""
    assert fired_form(words) == "PUT", words
    queue, chunk, *values = map(as_bytes, words[1:])
    packed = Packed(chunk)
    assert packed.numbers(2) == [FORMAT_NUMBER, 0]  # The second one is the number of the route.
    kind, _, _, _ = packed.numbers(4)
    target = "" if kind == 3 else packed.string().decode()
    packed.numbers(5)  # TRIES, BACKOFF, JITTER
    due, flags = packed.numbers(2)
    assert flags & ~9 == 0, "the task has an attempt state, or shares its payload"
    every, times = packed.numbers(2) if flags & 1 else (0, 1)
    name = packed.string().decode()
    if flags & 8 == 0:  # The payload is in the chunk, and not beside it.
        inside = Packed(packed.string())
        values = [inside.string() for _ in range(inside.number())]
    return {"queue": queue.decode(), "id": name, "due": due, "target": target,
            "every": every, "times": times, "payload": [value.decode() for value in values]}


def logged_kinds(changes):
    """Returns the numbers of the kinds of changes in the changes of a TW.FIRED. The heads of
    src/redis/queues/change.c and attempt.c have the bytes."""
    packed, kinds = Packed(changes), []
    assert packed.number() == FORMAT_NUMBER
    while packed.left():
        kinds.append(packed.number())
        for _ in range(2 if kinds[-1] == 2 else 1):
            packed.string()
        packed.numbers({1: 1, 2: 1, 3: 0, 4: 2, 5: 1, 6: 1}[kinds[-1]])  # times
        if kinds[-1] <= 2:  # an attempt state
            first, *_ = packed.numbers(5)
            packed.string(), packed.string()
            packed.numbers(bool(first & 256) + bool(first & 512))
    return kinds


def number_line(data, at, kind):
    end = data.index(b"\r\n", at)
    assert data[at:at + 1] == kind, (at, data[at:at + 20])
    return int(data[at + 1:end]), end + 2


def last_transaction(path, has):
    """Returns where the last transaction with such a command begins and ends, and where each of its commands
    begins."""
    commands = aof_commands(path)
    inside = max(i for i, (_, words) in enumerate(commands) if words[0].upper() == has)
    first = max(i for i in range(inside) if commands[i][1] == [b"MULTI"])
    last = min(i for i in range(inside, len(commands)) if commands[i][1] == [b"EXEC"])
    starts = [at for at, _ in commands] + [os.path.getsize(path)]
    return starts[first], starts[last + 1], starts[first:last + 1]


def transactions(commands):
    """Returns the commands between each MULTI and its EXEC as one list, and each command outside as a list of
    its own, in the order of the file."""
    result, inside = [], None
    for _, words in commands:
        name = words[0].upper()
        if name == b"MULTI":
            inside = []
        elif name == b"EXEC":
            result.append(inside)
            inside = None
        elif inside is None:
            result.append([words])
        else:
            inside.append(words)
    assert inside is None, "the file ends within a transaction"
    return result


# The checksum at the end of a reply of DUMP

def crc64_table():
    """The table of CRC-64 as Redis uses it: Jones' polynomial, both input and output reflected, start value
    zero, nothing added."""
    reflected = int(f"{0xad93d23594c935a9:064b}"[::-1], 2)
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (reflected if value & 1 else 0)
        table.append(value)
    return table


CRC64_TABLE = crc64_table()


def crc64(data):
    value = 0
    for byte in data:
        value = CRC64_TABLE[(value ^ byte) & 255] ^ value >> 8
    return value


def with_checksum(body_and_version):
    """Returns an argument for RESTORE: a serialised value with its two bytes of version, followed by the
    right checksum."""
    return body_and_version + struct.pack("<Q", crc64(body_and_version))
