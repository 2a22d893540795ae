# SPDX-License-Identifier: MIT
"""Load on servers, and the books that show afterwards whether a task was lost, doubled or early.

A client that is cut off does not know how many of its commands ran, but it knows that they ran in the order
in which it sent them. So the state after a crash or a failover must be the state after some first part of
each client's history. That part must contain all commands that were promised to last.

    sent       a1  a2  m1  a3  c2  a4  m3          history of one client (a Line): positions 0 to 6
    promised   ---------------|                    acknowledged under appendfsync always, or by WAIT
    kept       -------------------|                the cut: found, not known. It may lie from | to the end

For each task the Line keeps the possible states after each of its commands, as a set of Worlds. A World says
where the task may be seen: pending with a due time from lo to hi, or delivered as often as it has fallen due,
never both. A cut is possible if every task, as it is found, fits one of its Worlds at that cut.

A command was lost if no cut fits, or only cuts before the promised part. A task that was delivered twice, or
is both pending and delivered, fits no World at all.

Books reads the contents of the server in one transaction, so that no task is between queue and target
meanwhile.
"""
import collections
import contextlib
import dataclasses
import os
import random
import threading

import redis

from harness import ALL_TASKS, IN_ORDER, PATIENCE, Raw, any_moment, now_ms, wait_until

NEVER = 1 << 62  # Later than any time of a test.
FAR_MS = 3600000  # Tasks that no test waits for are due in more than this.

# Errors of a server that is no primary any more, or may not write: a client ends its connection then.
OUT_OF_OFFICE = ("NOREPLICAS", "READONLY", "LOADING", "MASTERDOWN", "UNBLOCKED", "EXECABORT")

World = collections.namedtuple("World", "state lo hi every times")
ABSENT = World("absent", 0, 0, 0, 0)


def seeded():
    """Random numbers from TICKWHEEL_SEED, or from a seed that is printed with a test that fails."""
    seed = int(os.environ.get("TICKWHEEL_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"TICKWHEEL_SEED={seed}")
    return random.Random(seed)


def fits(world, pending, dues):
    """Returns whether a task can be in world. The task is due at pending (None: it is not there), and was
    delivered with the due times in dues. A List does not tell due times; they are None then."""
    count = len(dues)
    if world.state == "absent":
        return pending is None and count == 0
    for k, due in enumerate(dues):
        if due is not None and not world.lo + k * world.every <= due <= world.hi + k * world.every:
            return False
        if due is not None and due != dues[0] + k * world.every:
            return False
    if pending is not None:
        in_phase = count == 0 or dues[0] is None or pending == dues[0] + count * world.every
        return (world.state == "filed" and count < world.times and in_phase
                and world.lo + count * world.every <= pending <= world.hi + count * world.every)
    return count < world.times if world.state == "cancelled" else count == world.times


def after_add(due, every, times):
    def step(_, reply, clock):
        lo, hi = due(clock)
        return {World("filed", lo, hi, every, times)}
    return step


def after_move(due):
    """reply: 1, None (no such task), or Ellipsis when there was no reply."""
    def step(world, reply, clock):
        if world.state != "filed":
            return {world} if reply in (None, ...) else set()
        lo, hi = due(clock)
        moved, too_late = World("filed", lo, hi, 0, 1), world._replace(state="delivered")
        return {moved} if reply == 1 else {too_late} if reply is None else {moved, too_late}
    return step


def after_cancel():
    def step(world, reply, _):
        if world.state != "filed":
            return {world} if reply in ([0], ...) else set()
        gone, too_late = world._replace(state="cancelled"), world._replace(state="delivered")
        return {gone} if reply == [1] else {too_late} if reply == [0] else {gone, too_late}
    return step


class Op:
    """One command, or one transaction, and its outcome."""
    __slots__ = ("words", "name", "step", "sent", "acked", "reply")

    def __init__(self, words, name, step):
        self.words, self.name, self.step = words, name, step
        self.sent, self.acked, self.reply = None, None, ...

    def clock(self):
        """Returns the times between which the server has read its clock, in ms."""
        return (self.sent, NEVER if self.acked is None else self.acked)


class Line:
    """One client's history."""

    def __init__(self, name):
        self.name, self.ops, self.promised, self.mine, self.worlds, self.live = name, [], 0, set(), {}, []

    def record(self, op):
        self.ops.append(op)
        self.mine.add(op.name)

    def acknowledge(self, op, reply):
        op.acked, op.reply = now_ms(), reply

    def promise_acked(self, before=NEVER):
        """Promises that all commands that were acknowledged before this time have lasted."""
        for position, op in enumerate(self.ops):
            if op.acked is not None and op.acked < before:
                self.promised = max(self.promised, position + 1)

    def histories(self):
        """Returns for each task its Worlds: [(position from which they hold, Worlds)], the first item before
        all of the task's commands."""
        found = {name: [(0, self.worlds.get(name, {ABSENT}))] for name in self.mine}
        for position, op in enumerate(self.ops):
            states = found[op.name]
            steps = (op.step(world, op.reply, op.clock()) for world in states[-1][1])
            states.append((position + 1, set().union(*steps)))
        return found

    def settle(self, books):
        """Finds the cut, and starts a new history with the states of the tasks that are known now. Returns
        how many commands of the old history are gone though they had been acknowledged, with the time of the
        earliest."""
        histories, end = self.histories(), len(self.ops)
        wrong = [0] * (end + 2)
        for name, states in histories.items():
            for k, (start, worlds) in enumerate(states):
                if not any(fits(world, books.pending.get(name), books.dues(name)) for world in worlds):
                    wrong[start] += 1
                    wrong[states[k + 1][0] if k + 1 < len(states) else end + 1] -= 1
        cuts, running = [], 0
        for cut in range(end + 1):
            running += wrong[cut]
            if running == 0:
                cuts.append(cut)
        if not cuts or cuts[-1] < self.promised:
            raise AssertionError(self.explain(histories, books, cuts))
        gone = [op.acked for op in self.ops[cuts[-1]:] if op.acked is not None]
        self.restart(histories, books, cuts[-1])
        return len(gone), min(gone, default=None)

    def restart(self, histories, books, cut):
        """Only tasks that are still pending can change. For all other tasks Books knows for good how often
        they were delivered."""
        self.worlds, self.live = {}, []
        for name, states in histories.items():
            pending, dues = books.pending.get(name), books.dues(name)
            if pending is None:
                books.close(name)
                continue
            worlds = next(worlds for start, worlds in reversed(states) if start <= cut)
            world = next(world for world in worlds if fits(world, pending, dues))
            first = pending - len(dues) * world.every
            self.worlds[name] = {world._replace(lo=first, hi=first)}
            self.live.append(name)
        self.ops, self.promised, self.mine = [], 0, set(self.worlds)

    def explain(self, histories, books, cuts):
        """Describes the tasks that do not fit at the promised cut, or at any cut."""
        lines = [f"{self.name}: {len(self.ops)} commands, promised {self.promised}, "
                 f"possible cuts {cuts[-1:] or 'none'}"]
        for name, states in histories.items():
            worlds = [next(worlds for start, worlds in reversed(states) if start <= max(self.promised, cut))
                      for cut in (self.promised, len(self.ops))]
            pending, dues = books.pending.get(name), books.dues(name)
            if not any(fits(world, pending, dues) for world in set().union(*worlds)) and len(lines) < 8:
                told = [(op.words, op.reply, op.sent, op.acked) for op in self.ops if op.name == name]
                lines.append(
                    f"  {name}: pending {pending}, delivered {dues}; may be {set().union(*worlds)}; {told}")
        return "\n".join(lines)


class Books:
    """The contents of the queues and targets of one keyspace, read in one transaction, and all deliveries
    so far."""

    def __init__(self, queues, streams=(), lists=()):
        self.queues, self.streams, self.lists = list(queues), list(streams), list(lists)
        self.lines, self.closed, self.pending = [], {}, {}
        self.forget()

    def forget(self):
        """Reads everything again: from another server, or from a server that was allowed to lose something."""
        self.delivered = collections.defaultdict(list)
        self.entry_of, self.last, self.count = {}, {key: "-" for key in self.streams}, collections.Counter()

    def line(self, name):
        self.lines.append(Line(name))
        return self.lines[-1]

    def dues(self, name):
        return self.delivered.get(name, ())

    def close(self, name):
        self.closed[name] = len(self.dues(name))

    def read(self, client, again=True):
        """Reads everything once."""
        pipe = client.pipeline(transaction=True)
        pipe.time()
        for queue in self.queues:
            pipe.eval(ALL_TASKS, 1, queue)
            pipe.eval(IN_ORDER, 1, queue)
            pipe.execute_command("TW.LEN", queue)
        for stream in self.streams:
            pipe.xrange(stream, min=self.last[stream] if self.last[stream] == "-" else "(" + self.last[stream])
            pipe.xlen(stream)
        for key in self.lists:
            pipe.lrange(key, self.count[key], -1)
            pipe.llen(key)
        try:
            answers = iter(pipe.execute())
        except redis.ConnectionError:  # Sentinel makes clients connect again when it has promoted their server
            if not again:
                raise
            return self.read(client, again=False)
        seconds, micros = next(answers)
        self.read_at = seconds * 1000 + micros // 1000
        self.pending = {}
        for queue in self.queues:
            self.take_queue(queue, next(answers), next(answers), next(answers))
        for stream in self.streams:
            self.take_entries(stream, next(answers), next(answers))
        for key in self.lists:
            self.take_elements(key, next(answers), next(answers))
        for name, count in self.closed.items():
            assert len(self.dues(name)) == count and name not in self.pending, \
                (f"{name} was over after {count} deliveries; "
                 f"now: {self.dues(name)}, pending {self.pending.get(name)}")
        return self

    def take_queue(self, queue, rows, waiting, length):
        assert len(rows) == length, f"{queue}: TW.SCAN tells {len(rows)} tasks, TW.LEN {length}"
        dues = [due for _, due, _ in waiting]
        assert dues == sorted(dues), f"{queue}: TW.RANGE is not in order"
        ready = {name: due for name, due, _ in rows}
        for name, due, _ in waiting:
            assert ready.pop(name) == due > self.read_at, f"{queue}: TW.RANGE tells {name}, due {due}"
        last, now = max(ready.values(), default=0), now_ms()
        assert last <= now, f"{queue}: TW.RANGE leaves out a task that is due at {last}: {ready}"
        for name, due, _ in rows:
            assert name not in self.pending, f"{name} is there twice"
            self.pending[name] = due

    def take_entries(self, stream, entries, length):
        self.count[stream] += len(entries)
        assert length == self.count[
            stream], f"{stream}: {length} entries, but {self.count[stream]} have been read"
        for entry, fields in entries:
            name, due = fields["tw.id"], int(fields["tw.due"])
            assert int(entry.split("-")[0]) >= due, f"{name} came early: entry {entry}, due {due}"
            assert fields["tw.attempt"] == "1" and fields["of"] == name, f"{entry}: {fields}"
            self.delivered[name].append(due)
            self.entry_of[name, due] = entry
            self.last[stream] = entry

    def take_elements(self, key, elements, length):
        self.count[key] += len(elements)
        assert length == self.count[key], f"{key}: {length} elements, but {self.count[key]} have been read"
        for name in elements:
            self.delivered[name].append(None)

    def settle(self):
        """Has every Line find its cut. Returns how many acknowledged commands are gone, and the time of the
        earliest."""
        known = set(self.closed).union(*(line.mine for line in self.lines))
        strange = (set(self.pending) | set(self.delivered)) - known
        assert not strange, f"nobody added {sorted(strange)[:5]}"
        results = [line.settle(self) for line in self.lines]
        times = [earliest for _, earliest in results if earliest is not None]
        return sum(count for count, _ in results), min(times, default=None)

    def late(self, before):
        return [name for name, due in self.pending.items() if due <= before]

    def wait_delivered(self, client):
        """Waits until the only pending tasks are due in hours."""
        before = now_ms() + FAR_MS // 2
        wait_until(lambda: not self.read(client).late(before),
                   lambda: f"still pending: {self.late(before)[:5]} of {len(self.late(before))}",
                   every=0.1)


class Maker:
    """Makes random commands for a Line. Half of the tasks are due at once or soon, so that deliveries go on."""

    def __init__(self, line, rng, places, soon_ms=400, repeating=True):
        self.line, self.rng, self.places, self.soon_ms, self.repeating = line, rng, places, soon_ms, repeating
        self.made, self.where, self.candidates = 0, {}, []

    def go_on(self):
        """To be called after the Line has settled: only tasks that are still pending may be moved and
        cancelled."""
        self.where = {name: self.where[name] for name in self.line.live}
        self.candidates = [
            name for name in self.line.live if all(world.times == 1 for world in self.line.worlds[name])
        ]

    def when(self, delay):
        """Returns a time, half of them relative and half absolute, and a function from the server's clock to
        the due time."""
        if self.rng.random() < 0.5:
            return ["IN", delay], lambda clock: (clock[0] + delay, clock[1] + delay)
        at = now_ms() + delay
        return ["AT", at], lambda clock: (at, at)

    def delay(self):
        if self.rng.random() < 0.25:
            return self.rng.randrange(FAR_MS, 2 * FAR_MS)
        return self.rng.randrange(0, self.soon_ms)

    def add(self):
        queue, target, kind = self.rng.choice(self.places)
        self.made += 1
        name = f"{self.line.name}.{self.made}"
        delay, every, times = self.delay(), 0, 1
        repeat = []
        if self.repeating and self.rng.random() < 0.15:
            every, times = self.rng.randrange(1, 100), self.rng.randrange(1, 6)
            repeat = ["EVERY", every, "TIMES", times, "MISSED", "burst"]
        when, due = self.when(delay)
        payload = ["LIST", "PAYLOAD", name] if kind == "list" else ["PAYLOAD", "of", name]
        words = ["TW.SEND", queue, target, name, *when, *repeat, *payload]
        self.where[name] = queue
        if not repeat:
            self.candidates.append(name)
        return Op(words, name, after_add(due, every, times))

    def move(self):
        name = self.pick()
        when, due = self.when(self.rng.randrange(0, self.soon_ms))
        return Op(["TW.MOVE", self.where[name], name, *when], name, after_move(due))

    def cancel(self):
        name = self.pick()
        return Op(["TW.CANCEL", self.where[name], name], name, after_cancel())

    def pick(self):
        """Picks a task that was added not long ago, or any task. Each task is changed a few times at most."""
        low = 0 if self.rng.random() < 0.5 else max(0, len(self.candidates) - 50)
        at = self.rng.randrange(low, len(self.candidates))
        name = self.candidates[at]
        if self.rng.random() < 0.4:
            self.candidates[at] = self.candidates[-1]
            self.candidates.pop()
        return name

    def next(self):
        """Returns the next command, which is already in the Line's history."""
        chance = self.rng.random()
        one = self.add if chance < 0.6 or not self.candidates else self.move if chance < 0.8 else self.cancel
        op = one()
        self.line.record(op)
        return op


class Worker(threading.Thread):
    """A client that sends commands until it is stopped or its server is gone. It notes which commands were
    acknowledged.

    wait: (replicas, ms) for a WAIT after each batch. Commands that WAIT confirms are promised to outlive a
    failover."""

    def __init__(self, server, maker, batch=16, wait=None):
        super().__init__(daemon=True)
        self.server, self.maker, self.batch, self.wait = server, maker, batch, wait
        self.halt, self.failure, self.done = threading.Event(), None, 0

    def run(self):
        try:
            with contextlib.closing(Raw(self.server)) as raw:
                while not self.halt.is_set():
                    self.one_batch(raw)
        except (OSError, redis.exceptions.ConnectionError):
            pass  # The server was killed, as the tests intend.
        except BaseException as failure:  # pylint: disable=broad-except  (told by finish())
            self.failure = failure

    def one_batch(self, raw):
        line, rng = self.maker.line, self.maker.rng
        ops = []
        for _ in range(rng.randrange(1, self.batch + 1)):
            op = self.maker.next()
            op.sent = now_ms()
            ops.append(op)
        whole = len(line.ops)
        commands = [op.words for op in ops] + ([["WAIT", *self.wait]] if self.wait else [])
        raw.send_all(self.in_transaction(commands) if not self.wait and rng.random() < 0.2 else commands)
        self.take_answers(raw, ops)
        confirmed = raw.read() if self.wait else 0
        if self.wait and isinstance(confirmed, int) and confirmed >= self.wait[0]:
            line.promised = whole
        self.done += len(ops)

    @staticmethod
    def in_transaction(commands):
        return [["MULTI"], *commands, ["EXEC"]]

    def take_answers(self, raw, ops):
        first = raw.read()
        if first == "OK":  # MULTI.
            for _ in ops:
                assert raw.read() == "QUEUED"
            answers = raw.read()
            if isinstance(answers, Raw.Error):
                answers = [answers] * len(ops)
        else:
            answers = [first]
        for k, op in enumerate(ops):
            reply = answers[k] if first == "OK" or k == 0 else raw.read()
            if isinstance(reply, Raw.Error):
                if reply.split()[0] in OUT_OF_OFFICE:
                    raise redis.exceptions.ConnectionError(reply)
                raise AssertionError(f"{op.words}: {reply}")
            self.maker.line.acknowledge(op, reply)

    def finish(self):
        self.halt.set()
        self.join(PATIENCE)
        assert not self.is_alive(), "a client hangs"
        if self.failure:
            raise self.failure


def go_on(crew, commands=200):
    """Waits until each of these clients has done so many commands more."""
    goals = [(worker, worker.done + commands) for worker in crew]
    wait_until(lambda: all(worker.done >= goal or not worker.is_alive() for worker, goal in goals), "no load")


class Reader(threading.Thread):
    """A consumer that reads a Stream as it grows, and remembers each entry and its time. A function names the
    server that the consumer reads from, so that it survives a failover."""

    def __init__(self, server, stream):
        super().__init__(daemon=True)
        self.server, self.stream, self.seen, self.halt = server, stream, [], threading.Event()

    def run(self):
        last = "0"
        while not self.halt.is_set():
            with contextlib.suppress(OSError, redis.exceptions.ConnectionError), \
                    contextlib.closing(Raw(self.server())) as raw:
                while not self.halt.is_set():
                    answer = raw("XREAD", "COUNT", 1000, "BLOCK", 50, "STREAMS", self.stream, last)
                    if isinstance(answer, Raw.Error):
                        break
                    for entry, flat in answer[0][1] if answer else ():
                        fields = dict(zip(flat[::2], flat[1::2]))
                        self.seen.append((entry, fields["tw.id"], int(fields["tw.due"]), now_ms()))
                        last = entry
            any_moment(random, 0.04)

    def sees_more(self):
        """Waits until it has read something that comes later than this call."""
        before = len(self.seen)
        wait_until(lambda: len(self.seen) > before, lambda: f"a consumer sees no more than {before} entries")

    def finish(self):
        self.halt.set()
        self.join(PATIENCE)
        assert not self.is_alive(), "a consumer hangs"
        return self.seen

    def doubles(self):
        """Returns how many deliveries came more often than once. A consumer tells deliveries apart by task
        and due time."""
        return len(self.seen) - len({(name, due) for _, name, due, _ in self.seen})


class Shards:
    """The clients and the books of a cluster. Each hash tag has a Books of its own, because it lies in one
    slot."""

    def __init__(self, cluster, tags, rng):
        self.cluster, self.rng, self.number = cluster, rng, 0
        self.books = {tag: Books([f"{{{tag}}}:timeouts", f"{{{tag}}}:retries"], [f"{{{tag}}}:unpaid"],
                                 [f"{{{tag}}}:mails"]) for tag in tags}
        self.crew = []

    def maker(self, tag):
        """Returns a Maker with a new history."""
        self.number += 1
        books = self.books[tag]
        places = [(books.queues[0], books.streams[0], "stream"),
                  (books.queues[1], books.streams[0], "stream"),
                  (books.queues[1], books.lists[0], "list")]
        return Maker(books.line(f"{tag}.{self.number}"), type(self.rng)(self.rng.randrange(1 << 32)), places)

    def start(self, clients=3, wait=None):
        """Starts clients that share the tags out among them. wait as for Worker."""
        tags = list(self.books)
        self.crew = [ClusterWorker(self, tags[k::clients], wait) for k in range(clients)]
        for worker in self.crew:
            worker.start()
        return self.crew

    def finish(self):
        for worker in self.crew:
            worker.finish()

    def client(self, tag):
        return self.cluster.owner(f"{{{tag}}}").client()

    def judge(self, promise=lambda tag: True):
        """Reads the books at each slot's owner. promise(tag) tells whether all acknowledged commands must
        have lasted; otherwise only the commands that WAIT confirmed must. Then waits for the tasks that are
        due soon, and judges again. Returns how many commands are gone."""
        gone = 0
        for tag, books in self.books.items():
            client = self.client(tag)
            books.read(client)
            for line in books.lines:
                if promise(tag):
                    line.promise_acked()
            gone += books.settle()[0]
            books.wait_delivered(client)
            books.settle()
        return gone

    def promised(self):
        return sum(line.promised for books in self.books.values() for line in books.lines)

    def deliveries(self):
        return sum(len(dues) for books in self.books.values() for dues in books.delivered.values())


@dataclasses.dataclass
class Answer:
    """The latest reply to a command, and the port of the node that is to be asked next, if it was told."""
    reply: object = None
    ask: int = None


class ClusterWorker(threading.Thread):
    """A client of a cluster. It asks the node that it knows of, follows redirections, and asks again when
    told to wait."""

    def __init__(self, shards, tags, wait):
        super().__init__(daemon=True)
        self.shards, self.wait = shards, wait
        self.makers = {tag: shards.maker(tag) for tag in tags}
        self.rng = type(shards.rng)(shards.rng.randrange(1 << 32))
        self.halt, self.failure, self.done, self.links, self.where = threading.Event(), None, 0, {}, {}
        self.told = collections.Counter()

    def run(self):
        try:
            while not self.halt.is_set():
                tag = self.rng.choice(list(self.makers))
                try:
                    self.some(tag, self.makers[tag])
                except (OSError, redis.exceptions.ConnectionError):
                    self.lose(tag)
        except BaseException as failure:  # pylint: disable=broad-except  (told by finish())
            self.failure = failure
        finally:
            for link in self.links.values():
                link.close()

    def lose(self, tag):
        """Nobody knows whether the last command ran, and the next command may run elsewhere. So another
        history begins."""
        port = self.where.pop(tag, None)
        if port in self.links:
            self.links.pop(port).close()
        self.makers[tag] = self.shards.maker(tag)
        any_moment(self.rng, 0.1)

    def some(self, tag, maker):
        for _ in range(self.rng.randrange(1, 9)):
            op = maker.next()
            op.sent = now_ms()
            maker.line.acknowledge(op, self.ask(tag, op.words))
            self.done += 1
        if self.wait:
            confirmed, whole = self.link(self.where[tag])("WAIT", *self.wait), len(maker.line.ops)
            if isinstance(confirmed, int) and confirmed >= self.wait[0]:
                maker.line.promised = whole

    def link(self, port):
        if port not in self.links:
            node = next(node for node in self.shards.cluster.nodes if node.port == port)
            self.links[port] = Raw(node)
        return self.links[port]

    def ask(self, tag, words):
        """Sends one command to the node that has its slot, again while the slot moves or nobody has it."""
        answer = Answer()
        wait_until(lambda: self.ask_once(tag, words, answer), lambda: f"{words}: {answer.reply}")
        return answer.reply

    def ask_once(self, tag, words, answer):
        """Returns whether a node has carried the command out."""
        port = answer.ask or self.where.setdefault(tag, self.rng.choice(self.shards.cluster.alive()).port)
        link = self.link(port)
        if answer.ask:
            link("ASKING")
        answer.reply, answer.ask = link(*words), None
        if not isinstance(answer.reply, Raw.Error):
            return True
        kind = answer.reply.split()[0]
        self.told[kind] += 1
        if kind == "MOVED":
            self.where[tag] = int(answer.reply.rsplit(":", 1)[1])
        elif kind == "ASK":
            answer.ask = int(answer.reply.rsplit(":", 1)[1])
        elif kind not in ("TRYAGAIN", "CLUSTERDOWN", "LOADING", "READONLY"):
            raise AssertionError(f"{words}: {answer.reply}")
        return False

    finish = Worker.finish
