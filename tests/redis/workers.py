# SPDX-License-Identifier: MIT
"""Tasks for workers, and workers that wait: shared by the tests of TW.PUT, TW.TAKE and the commands after them.

`stages` makes a queue with a task in each stage of its life, and `Stages` says later whether all of them are
still as they were."""
import contextlib
import os
import re
import select
import signal

from harness import Raw, now_ms, task, tasks, wait_until
from situations import working

FAR = 3600000


def put(client, queue, name, *options, at=None, payload=("n", "v")):
    """One TW.PUT; the task is due at once if `at` is None."""
    when = ("IN", 0) if at is None else ("AT", at)
    return client.execute_command("TW.PUT", queue, name, *when, *options, "PAYLOAD", *payload)


def take(client, *queues, count=1, lease=FAR, name="w"):
    """One TW.TAKE that does not wait. Returns {id: token}."""
    rows = client.execute_command("TW.TAKE", len(queues), *queues, "LEASE", lease, "COUNT", count, "NAME", name)
    return {row[1]: row[2] for row in rows or []}


def state(client, queue, name):
    """Returns the state of a task: waiting, ready, leased, dead ...; None if there is no such task."""
    found = task(client, queue, name)
    return found and found["state"]


def is_offered(client, queue):
    """Whether ticks have reached all ready tasks of a queue, so that TW.TAKE finds those for workers."""
    return working(client, queue)["late"] == 0


def wait_state(client, queue, name, wanted):
    """Waits until a task has a state. A ready one can be taken then: the clock makes it ready, and a tick has
    offered it."""
    wait_until(lambda: state(client, queue, name) == wanted
               and (wanted != "ready" or is_offered(client, queue)),
               message=lambda: f"{name} is {state(client, queue, name)}, not {wanted}")


def put_ready(client, queue, *names, options=()):
    """Puts tasks, and waits until all of them are ready."""
    for name in names:
        put(client, queue, name, *options)
    for name in names:
        wait_state(client, queue, name, "ready")


def blocked(server):
    return server.info("clients")["blocked_clients"]


def spans():
    """Lengths of time in ms, each longer than the one before: something has to happen within such a time, and a
    busy machine may need a longer one. The last one is longer than a test has patience."""
    yield from (700 * 4**tries for tries in range(5))
    raise AssertionError("no span was long enough for this machine")


def frozen_before(server, due):
    """Suspends the server's process. Returns whether no thread of it has run at `due` or later; if one may
    have, the process goes on."""
    os.kill(server.pid, signal.SIGSTOP)
    wait_until(lambda: set(thread_states(server.pid)) == {"T"})
    if now_ms() < due:
        return True
    os.kill(server.pid, signal.SIGCONT)
    return False


def thread_states(pid):
    """The states of the threads of a process, as /proc tells them."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/stat", encoding="ascii", errors="replace") as file:
            yield file.read().rsplit(")", 1)[1].split()[0]


class Waiter:
    """A connection whose command waits. It has been blocked when this object is made."""

    def __init__(self, server, *command, db=0, user=None, wait=True, tracking=()):
        self.raw = Raw(server, protocol=3 if tracking else 2)
        if user:
            self.raw("AUTH", *user)
        self.raw("SELECT", db)
        if tracking:
            self.raw("CLIENT", "TRACKING", *tracking)
        self.id = self.raw("CLIENT", "ID")
        self.raw.send(*command)
        if wait:
            wait_until(lambda: self.waits(server) or self.served(), message="the client is not blocked")
            assert not self.served(), f"the client need not wait: {self.reply()}"

    def waits(self, server):
        """Whether the server has blocked the connection."""
        return re.search(r" flags=\w*b", server.once("CLIENT", "LIST", "ID", self.id)) is not None

    def served(self):
        """Whether a reply has come."""
        return bool(select.select([self.raw.socket], [], [], 0)[0])

    def reply(self):
        return self.raw.read()

    def close(self):
        self.raw.close()


class Worker(Waiter):
    """A connection whose TW.TAKE waits."""

    def __init__(self, server, *queues, count=1, lease=FAR, block=0, **options):
        super().__init__(server, "TW.TAKE", len(queues), *queues, "LEASE", lease, "COUNT", count, "BLOCK",
                         block, **options)

    def ids(self):
        """Waits for the reply, and returns the ids of its tasks."""
        found = self.reply()
        assert isinstance(found, list), found
        return [row[1] for row in found]


@contextlib.contextmanager
def workers(server, how_many, /, *queues, **options):
    """So many workers, blocked one after the other."""
    crew = [Worker(server, *queues, **options) for _ in range(how_many)]
    yield crew
    for one in crew:
        one.close()


def put_frail(client, queue, *names):
    """Makes ready tasks of which 16 leases have run out, so that the next lapse is their death."""
    put_ready(client, queue, *names, options=("TRIES", 1, "BACKOFF", 1, 1, 1))
    for _ in range(16):
        assert len(take(client, queue, count=len(names), lease=1)) == len(names)
        for name in names:
            wait_state(client, queue, name, "ready")


class Stages:
    """A queue with a task in each stage: `waiting`, `ready`, `leased`, `retry` (waits for its second
    attempt), `dead`, and `beat`, which repeats and whose first period is dead."""

    READY, LEASED, DEAD = "ready", "leased", "dead"

    def __init__(self, client, queue="s"):
        self.client, self.queue = client, queue
        put_ready(client, queue, "leased", "retry", "dead", options=("TRIES", 3))
        self.tokens = take(client, queue, count=3)
        due = now_ms()
        put(client, queue, "beat", "EVERY", FAR, "TRIES", 1, at=due)
        wait_state(client, queue, "beat", "ready")
        self.tokens.update(take(client, queue))
        put_ready(client, queue, "ready")
        put(client, queue, "waiting", at=due + FAR)
        for name, how in (("retry", ("IN", FAR)), ("dead", ("DEAD",)), ("beat", ())):
            self.nack(client, queue, name, *how, "ERROR", "no " + name)
        self.beat = f"beat@{due}"
        self.names = {"waiting", "ready", "leased", "retry", "dead", "beat", self.beat}
        self.tasks = self.look(client, queue)

    def nack(self, client, queue, name, *words):
        reply = client.execute_command("TW.NACK", queue, name, self.tokens[name], *words)
        assert reply is not None, name
        return reply

    def ack(self, client, queue, name="leased"):
        return client.execute_command("TW.ACK", queue, name, self.tokens[name])

    @staticmethod
    def look(client, queue):
        """Returns {id: its fields} of all tasks; the time left is left out."""
        found = {name: task(client, queue, name) for name in tasks(client, queue)}
        return {name: {**fields, "remaining": 0} for name, fields in found.items()}

    def all_there(self, client, queue):
        """Whether all tasks are as they were: attempts, times, errors."""
        return self.look(client, queue) == self.tasks

    def wait_there(self, client, queue):
        wait_until(lambda: self.all_there(client, queue),
                   message=lambda: f"{self.look(client, queue)}\nis not\n{self.tasks}")

    def work_on(self, client, queue):
        """The tasks are as usable as before: the token counts, the ready task can be taken, the dead ones can
        be replayed and purged. Leaves the queue without tasks."""
        assert self.ack(client, queue, "retry") == 0  # A failure leaves no token.
        assert self.ack(client, queue) == 1
        assert list(take(client, queue)) == ["ready"]
        assert [row[0] for row in client.execute_command("TW.DEAD", queue)] == ["dead", self.beat]
        assert client.execute_command("TW.REPLAY", queue, "IDS", 1, "dead") == 1
        wait_state(client, queue, "dead", "ready")
        assert client.execute_command("TW.PURGE", queue, "ALL") == 1
        rest = ("waiting", "ready", "retry", "dead", "beat")
        assert client.execute_command("TW.CANCEL", queue, *rest) == [1, 2, 1, 1, 1]
        assert client.exists(queue) == 0


def counts(server):
    """Returns how many tasks are ready, leased and dead."""
    now = server.tw()
    return now["ready"], now["leased"], now["dead"]
