# SPDX-License-Identifier: MIT
"""Random commands, compared with a reference of queues in Python, with restarts, crashes, promotions and
rewrites in between.

Each command goes in a transaction of its own, between two looks at the targets and at its queue, so that
no task can fire unseen. First, the deliveries before the command are applied to the reference. From there the
reply and the state after the command must be exactly those of the reference.

    MULTI  TIME  targets  TW.SCAN  -- the command --  targets  TW.SCAN  TIME  EXEC

Queues `far:*` hold tasks that are due in hours, many of them at the same time. They test order, queries
and TW.PROMOTE. KEEPDUE keeps the due time of a task, and its place in the order too if its target is the same.

Queues `near:*` hold tasks that are due at once or soon, and repeat. No task may come early, twice, with
another due time than its own, or not at all. MISSED and MAXLATE decide which deliveries may be left out, and
only if they were really late.

TICKWHEEL_SEED: repeats the commands of a run that failed (the moments are the machine's own).

TICKWHEEL_MODEL_EVENTS: so many events come (14, and 42 in the long rounds).

All servers have appendfsync always, so a crash may lose nothing.
"""
import dataclasses
import fnmatch
import itertools
import os
import re

import pytest

from eventually import PATIENCE, any_moment
from harness import HOST, Raw, as_map, now_ms, tasks, wait_replica_in_sync, wait_until
from load import seeded
from situations import extent, let_pass

EVENTS = int(os.environ.get("TICKWHEEL_MODEL_EVENTS") or extent(12, 14, 42))
FAR, NEAR = ["far:0", "far:1"], ["near:0", "near:1"]
STREAMS, LIST = ["stream:0", "stream:1"], "list"
GRID = (now_ms() // 1000 + 7200) * 1000  # Far tasks are due at 8 seconds from here on.
SLACK = 1000  # From the decision to deliver to the entry's own time, in ms, if no tick was longer.


@dataclasses.dataclass
class Task:
    name: str
    due: int
    every: int
    times: int
    target: str
    kind: str
    maxlen: int
    missed: str
    limit: int
    payload: list
    number: int
    order: int

    def as_get_tells(self):
        return {
            "due": self.due, "every": self.every or None, "times": self.times if self.times > 0 else None,
            "target": self.target, "kind": self.kind, "maxlen": self.maxlen or None,
            "missed": self.missed if self.every else None,
            "max-late": self.limit if self.limit >= 0 else None, "attempt": 0, "lapses": 0,
            "missed-periods": 0, "replaced": 0, "next": self.due, "worker": "", "error": "",
            "payload": self.payload
        }


class Reference:
    """The tasks that the queues should hold. Each filing takes the next number of a counter, and tasks
    with equal due times are in the order of these numbers."""

    def __init__(self):
        self.queues = {name: {} for name in FAR + NEAR}
        self.counter = itertools.count(1)

    def file(self, queue, task):
        task.order = next(self.counter)
        self.queues[queue][task.name] = task

    def refile(self, task, due):
        task.due, task.order = due, next(self.counter)

    def sorted(self, queue):
        return sorted(self.queues[queue].values(), key=lambda task: (task.due, task.order))

    def rows(self, queue):
        return [[task.name, task.due, task.due] for task in self.sorted(queue)]

    def after_delivery(self, queue, task, due, missed=0):
        """Changes the reference after a delivery with this due time, which stood for further periods too."""
        if task.every == 0 or task.times == 1:
            del self.queues[queue][task.name]
            return
        if task.times > 0:
            task.times -= 1
        self.refile(task, due + (1 + missed) * task.every)

    def find(self, number):
        """Returns the near task with this number, as (queue, task)."""
        for queue in NEAR:
            for task in self.queues[queue].values():
                if task.number == number:
                    return queue, task
        return None, None


class Pair:
    """A primary and its replica, which change places."""

    def __init__(self, fleet, rng):
        options = {"appendonly": "yes"}
        self.rng = rng
        self.primary = fleet.server(**options)
        self.replica = fleet.server(replicaof=self.primary, **options)
        self.settle()

    def settle(self):
        wait_replica_in_sync(self.primary, self.replica)

    def confirm(self):
        """Waits until all writes so far have reached the replica."""
        raw = Raw(self.primary)
        raw("INCR", "marker")
        wait_until(lambda: raw("WAIT", 1, 1000) == 1, message="the replica does not follow")
        raw.close()

    def exchange(self):
        self.primary, self.replica = self.replica, self.primary
        self.primary.replicaof, self.replica.replicaof = None, self.primary

    # The events of a pair. Their names are printed.

    def restart(self):
        self.primary.restart()

    def crash(self):
        """A crash, and some time without a server, so that tasks are late."""
        self.primary.kill()
        any_moment(self.rng, self.rng.choice([0, 0, 0.5, 3]))
        self.primary.start()

    def debug_reload(self):
        self.primary.client().execute_command("DEBUG", "RELOAD")

    def load_aof(self):
        self.primary.client().execute_command("DEBUG", "LOADAOF")

    def rewrite(self):
        """A rewrite, with or without RDB preamble, and then a start from it."""
        client = self.primary.client()
        client.config_set("aof-use-rdb-preamble", self.rng.choice(["yes", "no"]))
        self.settle()
        wait_until(lambda: not self.rewriting(), message="a rewrite does not end")
        client.bgrewriteaof()
        wait_until(lambda: not self.rewriting(), message="a rewrite does not end")
        assert self.primary.info("persistence")["aof_last_bgrewrite_status"] == "ok"
        if self.rng.random() < 0.7:
            self.crash()

    def rewriting(self):
        state = self.primary.info("persistence")
        return state["aof_rewrite_in_progress"] or state["aof_rewrite_scheduled"]

    def crash_and_promote(self):
        self.settle()
        self.confirm()
        self.primary.kill()
        self.exchange()
        self.primary.client().execute_command("REPLICAOF", "NO", "ONE")
        self.replica.start()

    def failover(self):
        self.settle()
        wait_until(lambda: "online" in str(self.primary.info("replication").get("slave0")),
                   message="no replica")
        self.primary.client().execute_command("FAILOVER", "TO", HOST, self.replica.port)
        wait_until(lambda: self.replica.info("replication")["role"] == "master", message="no failover")
        wait_until(lambda: self.primary.info("replication")["role"] == "slave", message="no failover")
        self.exchange()

    def resync(self):
        """The replica drops its data, and gets the whole data set again."""
        self.replica.client().execute_command("REPLICAOF", "NO", "ONE")
        self.replica.client().flushall()
        self.replica.client().execute_command("REPLICAOF", HOST, self.primary.port)
        self.settle()

    def compare(self):
        """In a pause of writes, which is a pause of deliveries too, both servers hold the same data. The pause
        lasts longer than both waits."""
        client = self.primary.client()
        client.execute_command("CLIENT", "PAUSE", 3000 * PATIENCE, "WRITE")
        try:
            self.settle()
            wait_until(lambda: client.execute_command("DEBUG", "DIGEST")
                       == self.replica.client().execute_command("DEBUG", "DIGEST"), "the replica differs")
        finally:
            client.execute_command("CLIENT", "UNPAUSE")

    EVENTS = [restart, crash, debug_reload, load_aof, rewrite, crash_and_promote, failover, resync, compare]


class Play:
    """The commands."""

    def __init__(self, pair, rng):
        self.pair, self.rng, self.raw, self.reference = pair, rng, None, Reference()
        self.numbers, self.steps, self.fired, self.skipped, self.history = itertools.count(1), 0, 0, 0, []
        self.last, self.listed = dict.fromkeys(STREAMS, "0"), 0
        self.promoted, self.came, self.kept = set(), [], 0
        self.connect()

    def connect(self):
        if self.raw:
            self.raw.close()
        self.raw = Raw(self.pair.primary)

    # One command between two looks

    def looks(self):
        return [*(["XRANGE", stream, "(" + self.last[stream], "+"] for stream in STREAMS),
                ["LRANGE", LIST, self.listed, -1]]

    def do(self, queue, words, judge):
        """Runs one command between two looks. judge(reply) compares the reply with the reference, and changes
        the reference as the command should have changed the queue."""
        if words[0] != "EVAL" and self.rng.random() < 0.15:
            words = ["EVAL", "return redis.call(unpack(ARGV))", 0, *words]
        whole = [["TIME"], *self.looks(), self.listing(queue)]
        self.raw.send_all([["MULTI"], *whole, words, *whole[1:], ["TIME"], ["EXEC"]])
        answers = [self.raw.read() for _ in range(2 * len(whole) + 3)][-1]
        assert isinstance(answers, list), f"{words}: {answers}"
        self.history = [*self.history[-30:], words]
        self.steps += 1
        before, reply, after = answers[1:len(whole)], answers[len(whole)], answers[len(whole) + 1:-1]
        # From Redis 7.2 on, TIME stands still within a transaction.
        self.now = (self.ms(answers[0]), max(self.ms(answers[-1]), now_ms()))
        self.take(before[:-1], None)
        self.catch_up(queue, self.listed_by(before[-1], queue))
        self.rows, at_once = self.listed_by(after[-1], queue), []
        self.take([look[len(first):] for first, look in zip(before, after[:-1])], at_once)
        judge(reply)
        assert not at_once, f"{words}: delivered {at_once}"
        self.check_rows(queue, self.rows)

    @staticmethod
    def listing(queue):
        """The look at all tasks of a queue. In a far queue all wait, so TW.RANGE tells their order too."""
        if queue in FAR:
            return ["TW.RANGE", queue, "-", "+", "COUNT", 10000]
        return ["TW.SCAN", queue, 0, "COUNT", 20000]

    @staticmethod
    def listed_by(reply, queue):
        if queue in FAR:
            return reply
        assert str(reply[0]) == "0", "the queue is too large for one look"
        return reply[1]

    @staticmethod
    def ms(seconds_and_micros):
        return int(seconds_and_micros[0]) * 1000 + int(seconds_and_micros[1]) // 1000

    def check_rows(self, queue, rows):
        mine = self.reference.rows(queue)
        if queue in NEAR:  # Several tasks may have been filed between two looks, in unknown order.
            mine, rows = sorted(mine), sorted(rows)
        assert rows == mine, f"{queue}: {difference(rows, mine)}"

    # Deliveries

    def take(self, looks, at_once):
        """Takes the deliveries since the last look. If `at_once` is a list, a command has made them."""
        for stream, found in zip(STREAMS, looks):
            for entry, flat in found:
                fields = dict(zip(flat[::2], flat[1::2]))
                missed = int(fields.get("tw.missed-periods", 0))
                own = ["tw.id", "tw.due", "tw.attempt", *(["tw.missed-periods"] if missed else [])]
                delivery = (stream, fields["tw.id"], int(fields["tw.due"]), int(entry.split("-")[0]),
                            flat[2 * len(own):], missed)
                assert flat[:2 * len(own):2] == own and fields["tw.attempt"] == "1", flat
                self.last[stream] = entry
                self.hand(delivery, int(fields["n"]), at_once)
        for element in looks[-1]:
            self.listed += 1
            self.hand((LIST, None, None, None, [element], 0), int(element.split(" ")[0]), at_once)

    def hand(self, delivery, number, at_once):
        if at_once is not None:
            at_once.append((delivery, number))
        elif number in self.promoted:
            self.promoted.remove(number)
            self.came.append((delivery, number))
        else:
            self.has_fired(delivery, number)

    def has_fired(self, delivery, number):
        target, name, due, at, payload, missed = delivery
        queue, task = self.reference.find(number)
        assert task, f"{delivery} was not pending: twice, or cancelled, or replaced"
        assert (target, payload) == (task.target, task.payload) and name in (None, task.name), (delivery, task)
        if due is None:
            due = self.likely(task)
        assert at is None or at >= due, f"early: {delivery}"
        assert due <= self.now[0], f"early: {delivery} {task}"
        self.check_late(task, due, at)
        self.check_missed(task, due, at, missed)
        self.fired += 1
        self.skipped += missed
        self.reference.after_delivery(queue, task, due, missed)

    def likely(self, task):
        """Returns the likely due time, as a List does not give it. Periods that are left out show in the
        queue (catch_up)."""
        return task.due

    @staticmethod
    def patience(task):
        """The time after which a period may be left out; None if each one is delivered. After a missed period,
        skip goes on with the first one that is to come, and leaves out the present one too."""
        return -1 if task.missed == "skip" else task.limit if task.limit >= 0 else None

    def check_late(self, task, due, at):
        """Checks that the periods before this delivery could be left out, and that it could be made."""
        if due != task.due:
            assert task.every and due > task.due and (due - task.due) % task.every == 0, (task, due)
            patience, bound = self.patience(task), self.now[0] if at is None else at
            assert patience is not None, f"left out: {task}, delivered {due}"
            left_out = bound - (due - task.every)
            assert left_out > patience, f"left out though not late: {task}, delivered {due} at {at}"
            self.skipped += 1
        if at is None:
            return
        if task.limit >= 0:
            assert self.soon(at - due, task.limit), f"too late to be delivered: {task} at {at}"
        if task.missed == "skip" and task.every:
            assert self.soon(at - due, task.every), f"should have been skipped: {task} at {at}"

    def check_missed(self, task, due, at, missed):
        """Checks the number of further periods for which a delivery stands."""
        if task.missed != "coalesce" or not task.every:
            assert missed == 0, (task, missed)
        elif at is not None:
            rest = at - due - missed * task.every
            assert rest >= 0 and self.soon(rest, task.every), f"stands for {missed} more: {task} at {at}"

    def soon(self, ms, bound):
        """Whether a delivery was decided upon within the bound: its entry was made in the same tick."""
        return ms <= bound + SLACK or ms <= bound + self.pair.primary.tw()["tick_us_max"] // 1000

    def catch_up(self, queue, rows):
        """Applies the changes that the looks do not show: dropped tasks, periods that were left out, and due
        times of Lists."""
        found, now = {name: due for name, due, _ in rows}, self.now[0]
        for task in list(self.reference.queues[queue].values()):
            due = found.get(task.name)
            if due is None:
                dropped = 0 <= task.limit < now - task.due and task.every == 0
                assert dropped, f"lost: {task} at {now}"
                del self.reference.queues[queue][task.name]
                self.skipped += 1
            elif due != task.due:
                self.check_left_out(task, due, now)
                self.reference.refile(task, due)
                self.skipped += 1
        self.check_rows(queue, rows)

    def check_left_out(self, task, due, now):
        """Checks a repeating task that is at a later period, without a delivery."""
        assert task.every and due > task.due and (due - task.due) % task.every == 0, (task, due)
        patience, late = self.patience(task), now - (due - task.every)
        if task.kind == "list" and (task.missed == "coalesce" or patience is not None):
            patience = -1  # An element does not tell its period, nor for how many periods it stands.
        assert patience is not None and late > patience, f"left out though not late: {task}, at {due}"

    # Commands that write

    def some_id(self, queue):
        """Returns the id of a pending task, or an id that may be pending."""
        names = list(self.reference.queues[queue])
        if names and self.rng.random() < 0.5:
            return self.rng.choice(names)
        return f"{self.rng.randrange(150)}"

    def some_due(self, queue):
        """Returns words of a command, and a function from the server's time to the due time."""
        if queue in FAR and self.rng.random() < 0.8:
            at = GRID + self.rng.randrange(8) * 1000
            return ["AT", at], lambda now: at
        if self.rng.random() < 0.5:
            delay = self.rng.randrange(5000000, 9000000) if queue in FAR else self.rng.randrange(0, 500)
            return ["IN", delay], lambda now: now + delay
        at = now_ms() + (self.rng.randrange(5000000, 9000000) if queue in FAR else self.rng.randrange(
            -200, 500))
        return ["AT", at], lambda now: at

    def some_options(self, queue):
        """Returns options in any order, and the members of the task that they make."""
        rng, near = self.rng, queue in NEAR
        every = rng.choice(
            [0, 0, rng.randrange(100, 300) if near else rng.randrange(1, 10**rng.randrange(1, 13))])
        times = rng.choice([rng.randrange(1, 5), -1 if not near or rng.random() < 0.2 else 3]) if every else 1
        kind, maxlen = rng.choice(["stream", "stream", "list"]), rng.choice([0, 0, 0, 5000, 100000])
        missed = rng.choice(["burst", "skip", "coalesce"]) if every else "coalesce"
        limit = rng.choice([-1, -1, rng.randrange(0, 400)])
        maxlen = maxlen if kind == "stream" else 0
        parts = [] if not every or (missed == "coalesce" and rng.random() < 0.7) else [["MISSED", missed]]
        if limit >= 0:
            parts.append(["MAXLATE", limit])
        if every:
            parts.append(["EVERY", every, *(["TIMES", times] if times > 0 else [])])
        if kind == "list" or rng.random() < 0.2:
            parts.append([kind.upper()])
        if maxlen:
            parts.append(["MAXLEN", maxlen])
        return parts, {
            "every": every, "times": times, "kind": kind, "maxlen": maxlen, "missed": missed, "limit": limit
        }

    def some_payload(self, kind, number):
        rng = self.rng
        if kind == "list":
            return [f"{number} " + "x" * rng.choice([0, 1, 30, 300])]
        more = [rng.choice(["", "v", "a b", "\u00e9\n", "y" * 200]) for _ in range(2 * rng.randrange(3))]
        for k in range(0, len(more), 2):
            more[k] = f"f{k}{more[k]}"
        return ["n", str(number), *more]

    def condition(self, queue, name, new, word):
        """Returns whether TW.SEND or TW.MOVE with this condition changes the queue, or None if that depends
        on the server's clock."""
        old = self.reference.queues[queue].get(name)
        if word in ("NX", "XX"):
            return (old is None) == (word == "NX")
        if old is None or word is None:
            return True
        low, high = ((new(now) > old.due) if word == "GT" else (new(now) < old.due) for now in self.now)
        return low if low == high else None

    def due_of(self, name, new):
        """Returns the due time that a command has given to a task. IN counts from the server's clock, so the
        due time is read from the server."""
        due = {row[0]: row[1] for row in self.rows}[name]
        assert new(self.now[0]) <= due <= new(self.now[1]), f"{name}: due {due}, {self.now}"
        return due

    def add(self, queue):
        rng, number = self.rng, next(self.numbers)
        name = "*" if rng.random() < 0.1 else self.some_id(queue)
        when, new = self.some_due(queue)
        parts, options = self.some_options(queue)
        word = rng.choice([None, None, None, "NX", "XX", "GT", "LT"])
        keeps, there = word not in ("GT", "LT") and rng.random() < 0.3, self.reference.queues[queue].get(name)
        again = keeps and there and rng.random() < 0.8  # The same target, so that the task keeps its place.
        while again and options["kind"] != there.kind:
            parts, options = self.some_options(queue)
        parts += [*([[word]] if word else []), *([["KEEPDUE"]] if keeps else [])]
        rng.shuffle(parts)
        payload = self.some_payload(options["kind"], number)
        target = LIST if options["kind"] == "list" else there.target if again else rng.choice(STREAMS)
        flat = [part.lower() if isinstance(part, str) and rng.random() < 0.1 else part
                for some in [when, *parts] for part in some]

        def judge(reply):
            if name == "*" and word != "XX":
                assert re.fullmatch(r"\d+-\d+",
                                    reply) and reply not in self.reference.queues[queue], reply
            expected = self.condition(queue, name, new, word)
            if expected is not None:
                assert (reply is not None) == expected and reply in (None, name) or name == "*", reply
            if reply is not None:
                old = self.reference.queues[queue].get(reply) if keeps else None
                due = old.due if old else self.due_of(reply, new)
                task = Task(reply, due, target=target, payload=payload, number=number, order=0, **options)
                self.reference.file(queue, task)
                if old and (old.kind, old.target) == (task.kind, task.target):
                    task.order = old.order
                self.kept += old is not None
        self.do(queue, ["TW.SEND", queue, target, name, *flat, "PAYLOAD", *payload], judge)

    def move(self, queue):
        name, word = self.some_id(queue), self.rng.choice([None, None, "GT", "LT"])
        when, new = self.some_due(queue)

        def judge(reply):
            task = self.reference.queues[queue].get(name)
            if task is None:
                assert reply is None
                return
            expected = self.condition(queue, name, new, word)
            assert reply in (0, 1) and (expected is None or reply == int(expected)), reply
            if reply:
                self.reference.refile(task, self.due_of(name, new))
        self.do(queue, ["TW.MOVE", queue, name, *when, *([word] if word else [])], judge)

    def cancel(self, queue):
        names = [self.some_id(queue) for _ in range(self.rng.choice([1, 1, 1, 2, 5]))]

        def judge(reply):
            there = self.reference.queues[queue]
            assert reply == [int(there.pop(name, None) is not None) for name in names]
        self.do(queue, ["TW.CANCEL", queue, *names], judge)

    def promote(self, queue):
        """Promotes tasks of a far queue, and waits until they are delivered, each with the due time that it has
        had. Equals come in the order of their promotion, and go on in this order."""
        whole, promoted = self.rng.random() < 0.05, []
        names = [self.some_id(queue) for _ in range(self.rng.choice([1, 2, 10]))]

        def judge(reply):
            there = self.reference.queues[queue]
            if whole:
                first = self.reference.sorted(queue)
                assert min(len(first), 100) <= reply <= len(first)  # On a slow machine TW.PROMOTE ends earlier.
            else:
                first = [there[name] for name in dict.fromkeys(names) if name in there]
                assert reply == len(first)
            promoted.extend(first[:reply])
            self.promoted = {there.pop(task.name).number for task in promoted}  # TW.RANGE shows them no more.
        self.do(queue, ["TW.PROMOTE", queue, *(["ALL"] if whole else ["IDS", len(names), *names])], judge)
        wait_until(lambda: self.look() or not self.promoted,
                   lambda: f"promoted, and not delivered: {self.promoted}")
        for target in (*STREAMS, LIST):
            expected = [(task.number, task.name, task.due, task.payload) if target != LIST else
                        (task.number, None, None, task.payload) for task in promoted if task.target == target]
            came = [(number, name, due, payload)
                    for (where, name, due, _, payload, missed), number in self.came if where == target]
            assert came == expected, f"{target}: {difference(came, expected)}"
        assert not any(delivery[5] for delivery, _ in self.came)
        self.came.clear()
        for task in promoted:
            self.reference.queues[queue][task.name] = task
            self.reference.after_delivery(queue, task, task.due)

    def look(self):
        """Looks at the targets alone."""
        looks = self.looks()
        self.raw.send_all([["MULTI"], ["TIME"], *looks, ["EXEC"]])
        answers = [self.raw.read() for _ in range(len(looks) + 3)][-1]
        self.now = (self.ms(answers[0]), max(self.ms(answers[0]), now_ms()))
        self.take(answers[1:], None)

    # Commands that read

    def get(self, queue):
        names = [self.some_id(queue) for _ in range(self.rng.randrange(1, 5))]
        self.do(queue, ["TW.GET", queue, *names], lambda reply: self.check_get(queue, names, reply))

    def get_all(self, queue):
        names = sorted(self.reference.queues[queue]) + ["nobody"]
        self.do(queue, ["TW.GET", queue, *names], lambda reply: self.check_get(queue, names, reply))

    def check_get(self, queue, names, reply):
        assert len(reply) == len(names)
        for name, found in zip(names, reply):
            task = self.reference.queues[queue].get(name)
            if task is None:
                assert found is None, (name, found)
                continue
            found = as_map(found)
            remaining = found.pop("remaining")
            assert max(0, task.due - self.now[1]) <= remaining <= max(0, task.due - self.now[0])
            states = {"ready" if task.due <= now else "waiting" for now in self.now}
            assert found.pop("state") in states, f"{found}, at {self.now}"
            assert found == task.as_get_tells()

    def length(self, queue):
        def judge(reply):
            assert reply == len(self.reference.queues[queue])
        self.do(queue, ["TW.LEN", queue], judge)

    def next(self, queue):
        def judge(reply):
            waiting = self.waiting(queue, self.now[1])
            if queue in FAR or not self.waiting(queue, self.now[0]):
                assert reply == (waiting[0] if waiting else None)
            else:  # Tasks may become ready between the two readings of the clock.
                assert reply is None or reply in self.waiting(queue, self.now[0])
                assert not waiting or reply[1] <= waiting[0][1]
        self.do(queue, ["TW.NEXT", queue], judge)

    def waiting(self, queue, now):
        return [row for row in self.reference.rows(queue) if row[1] > now]

    def range(self, queue):
        rng = self.rng
        ends = sorted(GRID + rng.choice([-10000000, rng.randrange(8) * 1000, rng.randrange(8000), 10000000])
                      for _ in range(2))
        low, high = (end if self.rng.random() < 0.8 else sign for end, sign in zip(ends, "-+"))
        limit = self.rng.choice([1, 5, 1000]) if queue in FAR else 1000

        def judge(reply):
            most, least = ([row for row in self.waiting(queue, now)
                            if (low == "-" or row[1] >= low) and (high == "+" or row[1] <= high)][:limit]
                           for now in self.now)
            if queue in FAR:
                assert reply == least == most
            else:
                names = {name for name, *_ in reply}
                assert {name for name, *_ in least} <= names and sorted(reply) == sorted(
                    row for row in most if row[0] in names)

        self.do(queue, ["TW.RANGE", queue, low, high, *([] if limit == 1000 else ["COUNT", limit])],
                judge)

    def forecast(self, queue):
        step, count = (self.rng.choice([1000, 7777, 60000, 5000000]), self.rng.choice([1, 60, 5000]))
        if queue in NEAR:
            step, count = self.rng.choice([1, 50, 1000]), self.rng.choice([1, 20, 1000])

        def counted(now):
            cells = [0] * count
            for _, _, due in self.waiting(queue, now):
                cell = -(-(due - now) // step) - 1
                if cell < count:
                    cells[cell] += 1
            return cells

        def judge(reply):
            first, second = counted(self.now[0]), counted(self.now[1])
            if first == second:
                assert reply == first
            else:
                dues = [due - step * count for _, _, due in self.waiting(queue, self.now[0])]
                waiting = self.waiting(queue, self.now[0])
                surely = sum(end <= self.now[0] for (_, _, due), end in zip(waiting, dues)
                             if due > self.now[1])
                assert len(reply) == count and surely <= sum(reply) <= sum(end <= self.now[1] for end in dues)
        self.do(queue, ["TW.FORECAST", queue, "STEP", step, "STEPS", count], judge)

    def info(self, queue):
        def judge(reply):
            there = self.reference.sorted(queue)
            if not there:
                assert isinstance(reply, Raw.Error) and "no such key" in reply
                return
            told = as_map(reply)
            ready = [sum(task.due <= now for task in there) for now in self.now]
            nexts = [(self.waiting(queue, now) or [[None, -1]])[0][1] for now in self.now]
            assert told["tasks"] == len(there) == told["waiting"] + told["ready"] and told["held"] == 0
            next_ms = -1 if told["next"] is None else told["next"]
            assert nexts[0] <= next_ms <= nexts[1] or nexts[1] == -1 and next_ms in (-1, nexts[0])
            assert ready[0] <= told["ready"] <= ready[1]
            assert told["late"] == told["ready"]
            assert told["dead"] == 0 and told["bytes"] > 0
        self.do(queue, ["TW.INFO", queue], judge)

    def scan(self, queue):
        """Scans far queues only: no task fires meanwhile, so the scan must return all tasks."""
        if queue in NEAR:
            return
        glob, count = self.rng.choice(["*", "*", "1*", "?", "[0-4]?", "*-*"]), self.rng.choice([1, 10, 100])
        found, cursor = {}, 0
        for _ in range(10000):
            cursor, rows = self.raw("TW.SCAN", queue, cursor, "COUNT", count, "MATCH", glob)
            found.update((name, due) for name, due, _ in rows)
            if str(cursor) == "0":
                break
        expected = {name: task.due for name, task in self.reference.queues[queue].items()
                    if fnmatch.fnmatchcase(name, glob)}
        assert str(cursor) == "0" and found == expected

    # Keys as a whole

    def swap(self, queue):
        """Two queues exchange their names."""
        other = next(name for name in (FAR if queue in FAR else NEAR) if name != queue)
        script = (
            "local function move(a, b) if redis.call('EXISTS', a) == 1 then redis.call('RENAME', a, b) end end "
            "move(KEYS[1], 'spare') move(KEYS[2], KEYS[1]) move('spare', KEYS[2]) return 'done'")
        self.length(other)  # Applies its deliveries so far; later ones show after the swap.

        def judge(reply):
            assert reply == "done"
            there = self.reference.queues
            there[queue], there[other] = there[other], there[queue]
            if queue in NEAR:
                self.catch_up(queue, self.rows)
        self.do(queue, ["EVAL", script, 2, queue, other], judge)

    def copy(self, queue):
        """Copies far queues only: in near queues a delivery could come from either of two twins."""
        if queue in FAR:
            other = next(name for name in FAR if name != queue)
            there = self.reference.queues

            def judge(reply):
                assert reply == int(bool(there[queue]))
                if reply:
                    there[other] = {name: dataclasses.replace(task) for name, task in there[queue].items()}
            self.do(queue, ["COPY", queue, other, "REPLACE"], judge)

    def dump(self, queue):
        script = ("local bytes = redis.call('DUMP', KEYS[1]) if bytes then "
                  "redis.call('RESTORE', KEYS[1], 0, bytes, 'REPLACE') end return 'done'")

        def judge(reply):
            assert reply == "done"
        self.do(queue, ["EVAL", script, 1, queue], judge)

    def remove(self, queue):
        if self.rng.random() < 0.05:
            def judge(reply):
                assert reply == int(bool(self.reference.queues[queue]))
                self.reference.queues[queue].clear()
            self.do(queue, [self.rng.choice(["DEL", "UNLINK"]), queue], judge)

    # Nonsense

    def nonsense(self, queue):
        name, stream, than = self.some_id(queue), STREAMS[0], self.rng.choice(["GT", "LT"])
        words = self.rng.choice([["TW.SEND", queue, stream, name, "IN", -1, "PAYLOAD", "n", "0"],
                                 ["TW.SEND", queue, stream, name, "IN", "soon", "PAYLOAD", "n", "0"],
                                 ["TW.SEND", queue, stream, name, "IN", 253402300799999, "PAYLOAD", "n", "0"],
                                 ["TW.SEND", queue, stream, name, "IN", 1, "AT", 1, "PAYLOAD", "n", "0"],
                                 ["TW.SEND", queue, stream, name, "IN", 1, "NX", "XX", "PAYLOAD", "n", "0"],
                                 ["TW.SEND", queue, stream, name, "IN", 1, "KEEPDUE", than, "PAYLOAD", *"n0"],
                                 ["TW.SEND", queue, stream, name, "IN", 1, "EVERY", 0, "PAYLOAD", "n", "0"],
                                 ["TW.SEND", queue, stream, name, "IN", 1, "MAXLEN", 0, "PAYLOAD", "n", "0"],
                                 ["TW.SEND", queue, stream, name, "IN", 1, "PAYLOAD", "n"],
                                 ["TW.SEND", queue, stream, name, "IN", 1, "PAYLOAD", "tw.id", "0"],
                                 ["TW.SEND", queue, LIST, name, "IN", 1, "LIST", "PAYLOAD", "n", "0"],
                                 ["TW.SEND", queue, stream, name, "PAYLOAD", "n", "0"],
                                 ["TW.SEND", stream, stream, name, "IN", 1, "PAYLOAD", "n", "0"],
                                 ["TW.MOVE", queue, name, "IN", 1, "GT", "LT"], ["TW.MOVE", queue, name],
                                 ["TW.CANCEL", queue], ["TW.PROMOTE", queue, "IDS", 0, name],
                                 ["TW.RANGE", queue, "-", "+", "COUNT", 0], ["TW.RANGE", queue, "x", "+"],
                                 ["TW.FORECAST", queue, "STEP", 0], ["TW.SCAN", queue, "x"],
                                 ["TW.FIRED", queue, name], ["TW.LOAD", queue, "x"]])
        if words[1] == stream:
            self.raw("XADD", "other", "*", "f", "v")
            words[1] = "other"
        reply = self.raw(*words)
        assert isinstance(reply, Raw.Error), f"{words}: {reply}"
        self.length(queue)

    COMMANDS = [(40, add), (12, move), (10, cancel), (4, promote), (6, get), (1, get_all), (2, length),
                (3, next), (3, range), (3, forecast), (2, info), (1, scan), (0.5, swap), (0.3, copy),
                (0.5, dump), (0.5, remove), (3, nonsense)]

    def step(self):
        weights, commands = zip(*self.COMMANDS)
        command = self.rng.choices(commands, weights)[0]
        queue = self.rng.choice(FAR + NEAR + NEAR)
        if queue in FAR and command is Play.add and len(self.reference.queues[queue]) > 120:
            command = Play.cancel  # The queue stays small enough to look at all of it each time.
        command(self, self.rng.choice(FAR) if command is Play.promote else queue)

    def check_passed(self):
        """A task that is due has its turn before a task that is due later."""
        client, now = self.pair.primary.client(), now_ms()
        let_pass(client, now)
        for queue in NEAR:
            left = {name: due for name, due in tasks(client, queue).items() if due <= now}
            assert not left, f"{queue} at {now}: {left}"

    def check_all(self):
        for queue in FAR + NEAR:
            self.get_all(queue)


def difference(rows, mine):
    """Describes the first difference between two lists."""
    for k, (row, other) in enumerate(itertools.zip_longest(rows, mine)):
        if row != other:
            return f"{len(rows)} found, {len(mine)} expected; " \
                   f"at {k}: {rows[k:k + 4]} instead of {mine[k:k + 4]}"
    return "none"


@pytest.mark.long
def test_against_the_reference(fleet):
    rng = seeded()
    pair = Pair(fleet, rng)
    play, events, order = Play(pair, rng), [], []
    try:
        while len(events) < EVENTS:
            for _ in range(rng.randrange(200, 600)):
                play.step()
            order = order or rng.sample(Pair.EVENTS, len(Pair.EVENTS))
            event = order.pop()
            events.append(event.__name__)
            play.history.append(events[-1:])
            event(pair)
            play.connect()
            play.check_passed()
            play.check_all()
    except BaseException:
        print(*play.history, sep="\n")
        print(f"{play.steps} steps; {' '.join(events)}")
        raise
    pair.compare()
    print(f"{play.steps} commands, {play.fired} fired, {play.skipped} left out, {play.kept} kept; "
          f"{' '.join(events)}")
    assert play.fired > 30 and play.skipped > 2 and play.kept > 30
