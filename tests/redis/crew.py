# SPDX-License-Identifier: MIT
"""Clients of queues with tasks for workers: producers, workers with all their bad habits, and an operator.
ledger.py judges their histories. Each client stops when its connection is lost, and its last command then has
no reply."""
import contextlib
import itertools
import random
import threading

import redis

from harness import PATIENCE, Raw, any_moment, now_ms
from ledger import Deed, Taken
from load import OUT_OF_OFFICE

LEDGER = "{w}:ledger"
QUEUES = ["{w}:mails", "{w}:bills"]
RENEWALS = [("KEEPDUE",), ("KEEPDUE",), ("KEEPDUE",), ("KEEPDUE", "XX"), ("NX", "KEEPDUE")]
AWAY = (*OUT_OF_OFFICE, "MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN", "MISCONF")


class Elsewhere(redis.exceptions.ConnectionError):
    """A node of a cluster does not serve the slot, or not all of it; `port` does, if that was told."""

    def __init__(self, error):
        super().__init__(error)
        self.port = int(error.rsplit(":", 1)[1]) if error.startswith("MOVED") else None


class Times:
    """Hands out times in the future, and none twice."""

    def __init__(self):
        self.lock, self.used = threading.Lock(), set()

    def after(self, ms):
        with self.lock:
            at = now_ms() + ms
            while at in self.used:
                at += 1
            self.used.add(at)
            return at


class Shop:
    """All that the clients of one model share."""

    def __init__(self, rng):
        self.times, self.names = Times(), {queue: [] for queue in QUEUES}
        self.rng, self.numbers = rng, itertools.count(1)
        self.moments = itertools.count(1)  # in the order in which the clients send and receive
        self.deeds, self.takes, self.stale = [], [], []  # of this round; tokens of earlier rounds
        self.killed = 0  # workers that were killed while they waited

    def new_rng(self):
        return random.Random(self.rng.randrange(1 << 32))

    def name(self, rng):
        """An id that was put not long ago, mostly."""
        queue = rng.choice(QUEUES)
        names = self.names[queue]
        return queue, (rng.choice(names[-60:]) if names else "none")


class Client(threading.Thread):
    """A client. `wait`: WAIT's arguments after some of its commands, which are promised to survive then.
    `nodes`: those of a cluster, by port, among which it follows the slot."""

    def __init__(self, shop, server, wait=None, nodes=None):
        super().__init__(daemon=True)
        self.shop, self.server, self.wait, self.nodes = shop, server, wait, nodes or {}
        self.halt, self.failure, self.done, self.rng = threading.Event(), None, 0, shop.new_rng()

    def run(self):
        try:
            while not self.halt.is_set():
                self.visit()
        except (OSError, redis.exceptions.ConnectionError):
            pass  # The server was killed, as the test intends.
        except BaseException as failure:  # pylint: disable=broad-except  (told by finish())
            self.failure = failure

    def connect(self):
        self.raw, self.mine = Raw(self.server), []  # WAIT confirms the writes of its own connection alone.

    def visit(self):
        """Speaks with one server, until the test ends or the server sends the client away."""
        self.connect()
        try:
            while not self.halt.is_set():
                self.step()
                self.promise()
        except Elsewhere as away:
            self.server = self.nodes.get(away.port, self.server)
            any_moment(self.rng, 0.02)
        finally:
            self.raw.close()

    def refused(self, error):
        """Ends the connection, because the server does not run a command now."""
        assert error.split()[0] in AWAY, error
        raise Elsewhere(error) if self.nodes else redis.exceptions.ConnectionError(error)

    def finish(self):
        self.halt.set()
        self.join(PATIENCE)
        assert not self.is_alive(), "a client hangs"
        if self.failure:
            raise self.failure

    def promise(self):
        if self.wait and self.rng.random() < 0.3:
            mine = list(self.mine)
            if self.raw("WAIT", *self.wait) == self.wait[0]:
                for one in mine:
                    one.promised = True
                self.mine = []

    def do(self, kind, queue, name, words, **about):
        """One command between two looks. Returns the Deed."""
        deed = Deed(str(next(self.shop.numbers)), kind, queue, name, about, sent=next(self.shop.moments))
        look = [["TW.GET", queue, name]] if name else []
        words = [deed.number if word is Ellipsis else word for word in words]
        whole = [["RPUSH", LEDGER, deed.number], ["TIME"], *look, words, *look, ["TIME"]]
        self.shop.deeds.append(deed)
        self.raw.send_all([["MULTI"], *whole, ["EXEC"]])
        *queued, answers = [self.raw.read() for _ in range(len(whole) + 2)]
        if not isinstance(answers, list):
            self.refused(next(one for one in (*queued, answers) if isinstance(one, Raw.Error)))
        deed.position, deed.begin, deed.end = answers[0], ms(answers[1]), ms(answers[-1])
        if look:
            deed.before, deed.after = answers[2][0], answers[4][0]
        reply = answers[3 if look else 2]
        deed.reply = [] if reply is None and kind == "take" else reply
        self.mine.append(deed)
        self.done += 1
        return deed


def ms(seconds_and_micros):
    return int(seconds_and_micros[0]) * 1000 + int(seconds_and_micros[1]) // 1000


class Producer(Client):
    """Puts tasks, several of them due at the same time, and moves, cancels, replaces and renews them."""

    def step(self):
        chance = self.rng.random()
        if chance < 0.5:
            self.put_some()
        elif chance < 0.6:
            queue, name = self.shop.name(self.rng)
            at = self.shop.times.after(self.rng.randrange(300))
            self.do("move", queue, name, ["TW.MOVE", queue, name, "AT", at], at=at)
        elif chance < 0.7:
            queue, name = self.shop.name(self.rng)
            self.do("cancel", queue, name, ["TW.CANCEL", queue, name])
        else:
            queue, name = self.shop.name(self.rng)
            words = () if chance < 0.8 else self.rng.choice(RENEWALS)
            if name != "none":
                self.put(queue, name, self.shop.times.after(self.rng.randrange(200)), *words)
        any_moment(self.rng, 0.004)

    def put_some(self):
        queue, at = self.rng.choice(QUEUES), self.shop.times.after(self.rng.randrange(-50, 200))
        if self.rng.random() < 0.1:
            at += 7200000
        for _ in range(self.rng.randrange(1, 5)):
            name = f"t{next(self.shop.numbers)}"
            self.put(queue, name, at)
            self.shop.names[queue].append(name)

    def put(self, queue, name, at, *words):
        tries, every, times, repeat = self.rng.choice([1, 2, 3, 30]), 0, 1, []
        if self.rng.random() < (0.5 if words else 0.1):
            every, times = self.rng.randrange(20, 200), self.rng.randrange(1, 4)
            repeat = ["EVERY", every, "TIMES", times, "MISSED", "burst"]
        self.do("put", queue, name,
                ["TW.PUT", queue, name, "AT", at, *words, *repeat, "TRIES", tries, "BACKOFF", 20, 2, 200,
                 "JITTER", 20, "PAYLOAD", ...], at=at, tries=tries, every=every, times=times,
                conditions=words)


class Worker(Client):
    """Takes tasks, and does all that a worker may do wrong: it acknowledges late or twice, forgets, dies."""

    def __init__(self, shop, server, wait=None, nodes=None, blocks=False):
        super().__init__(shop, server, wait, nodes)
        self.blocks, self.held = blocks, list(shop.stale[-20:])

    def step(self):
        chance = self.rng.random()
        if not self.held or chance < 0.35:
            self.take()
            return
        take = self.held[self.rng.randrange(len(self.held))]
        if chance < 0.7:
            self.end(take, self.ack)
        elif chance < 0.82:
            self.end(take, self.nack)
        elif chance < 0.87:
            self.end(take, self.back)
        elif chance < 0.92:
            self.touch(take)
        elif chance < 0.94:  # It dies, and another one begins, which still has some of its work.
            self.held = self.rng.sample(self.held, len(self.held) // 2)
            self.raw.close()
            self.connect()
        else:  # It stalls.
            any_moment(self.rng, 0.05)
        if len(self.held) > 30:
            self.shop.stale += self.held[:15]
            self.held = self.held[15:]

    def end(self, take, how):
        how(take)
        if self.rng.random() < 0.85:  # Otherwise it does not remember.
            self.held.remove(take)

    def take(self):
        lease, worker = self.rng.choice([30, 100, 300, 600, 1500]), str(next(self.shop.numbers))
        count, keys = self.rng.randrange(1, 4), self.rng.sample(QUEUES, self.rng.randrange(1, 3))
        words = ["TW.TAKE", len(keys), *keys, "LEASE", lease, "COUNT", count, "NAME", worker]
        if self.blocks:
            taken = self.take_blocked([*words, "BLOCK", 100], lease, worker)
        else:
            words[-1] = ...
            deed = self.do("take", "", "", words)
            assert isinstance(deed.reply, list), deed
            taken = deed.reply = self.taken(deed.reply, lease, deed.number)
        if self.rng.random() < 0.2:  # It dies at once.
            self.shop.stale += taken
        else:
            self.held += taken

    def take_blocked(self, words, lease, worker):
        self.shop.names.setdefault("", []).append(worker)
        raw, reply = self.raw, self.wait_for(words)
        self.shop.names[""].remove(worker)
        if isinstance(reply, Raw.Error):
            self.refused(reply)
        if not reply and self.rng.random() < 0.3:  # It has waited in vain, and leaves.
            self.raw.close()
            self.connect()
        taken = self.taken(reply or [], lease, worker)
        for take in taken:
            take.received = next(self.shop.moments)
        self.shop.takes += taken
        if self.raw is raw:  # WAIT on a new connection says nothing of the old one.
            self.mine += taken
        return taken

    def wait_for(self, words):
        """Returns the reply to a TW.TAKE that waits. Some workers are killed meanwhile, and others begin."""
        mine = self.raw("CLIENT", "ID")
        self.raw.send(*words)
        if isinstance(mine, Raw.Error) or self.rng.random() < 0.75:
            return self.raw.read()
        any_moment(self.rng, 0.03)
        with contextlib.closing(Raw(self.server)) as killer:
            killed = killer("CLIENT", "KILL", "ID", mine)
        try:
            reply = self.raw.read()  # A task that the server gave it in time has been sent.
        except redis.exceptions.ConnectionError:
            if killed != 1:
                raise
            reply, self.shop.killed = [], self.shop.killed + 1
        self.raw.close()
        self.connect()
        return reply

    def taken(self, rows, lease, worker):
        came = next(self.shop.moments)
        return [Taken(queue, name, token, due, attempt, payload[0], worker, lease, came=came)
                for queue, name, token, due, attempt, payload, _ in rows]

    def about(self, take, **more):
        return {"due": take.due, "attempt": take.attempt, "token": take.token, **more}

    def ack(self, take):
        self.do("ack", take.queue, take.name, ["TW.ACK", take.queue, take.name, take.token],
                **self.about(take))

    def nack(self, take):
        at, dead, when, error = 0, self.rng.random() < 0.15, [], f"error {next(self.shop.numbers)}"
        if dead:
            when = ["DEAD"]
        elif self.rng.random() < 0.6:
            at = self.shop.times.after(self.rng.randrange(100))
            when = ["AT", at]
        self.do("nack", take.queue, take.name,
                ["TW.NACK", take.queue, take.name, take.token, *when, "ERROR", error],
                **self.about(take, at=at, dead=dead, error=error))

    def back(self, take):
        at, when = 0, []
        if self.rng.random() < 0.3:
            at = self.shop.times.after(self.rng.randrange(100))
            when = ["AT", at]
        self.do("back", take.queue, take.name, ["TW.NACK", take.queue, take.name, take.token, "BACK", *when],
                **self.about(take, at=at))

    def touch(self, take):
        lease = self.rng.choice([50, 200, 600])
        self.do("touch", take.queue, take.name,
                ["TW.TOUCH", take.queue, take.name, take.token, "LEASE", lease],
                **self.about(take, lease=lease))


class Operator(Client):
    """Pauses queues for moments, promotes waiting tasks, replays and purges dead ones."""

    def step(self):
        chance = self.rng.random()
        queue, name = self.shop.name(self.rng)
        if chance < 0.25:
            self.do("pause", queue, "", ["TW.PAUSE", queue], on=True)
            any_moment(self.rng, 0.03)
            self.do("pause", queue, "", ["TW.RESUME", queue], on=False)
        elif chance < 0.28:
            self.do("promote", queue, "", ["TW.PROMOTE", queue, "ALL"])
        elif chance < 0.42:
            name = self.one_of(["TW.RANGE", queue, "-", "+", "COUNT", 20], name)
            self.do("promote", queue, name, ["TW.PROMOTE", queue, "IDS", 1, name])
        else:
            name = self.one_of(["TW.DEAD", queue], name)
            if chance < 0.78:
                at = self.shop.times.after(self.rng.randrange(100))
                self.do("replay", queue, name, ["TW.REPLAY", queue, "IDS", 1, name, "AT", at], at=at)
            else:
                self.do("purge", queue, name, ["TW.PURGE", queue, "IDS", 1, name])
        any_moment(self.rng, 0.03)

    def one_of(self, words, name):
        """Returns the id of a task that a command lists, mostly; or else this name."""
        listed = self.raw(*words)
        if isinstance(listed, Raw.Error):
            self.refused(listed)
        return self.rng.choice(listed)[0] if listed and self.rng.random() < 0.8 else name
