# SPDX-License-Identifier: MIT
"""A crowd on one queue: workers of all languages, a producer that puts, replaces and cancels tasks, and a
worker that forgets them. Meanwhile workers are killed, suspended, stopped and cut off from their server. Either
one server crashes, or a sentinel or the nodes of a cluster replace the primary. In a failover a write that no
replica has may be lost, so the producer confirms each write by WAIT 1 there.

- Each put that was acknowledged ends in one way: it is done, dead, dropped, cancelled, replaced or still there.
- No task has two good tokens. A transaction touches a task with all tokens that anybody has ever named for it.

TICKWHEEL_SEED: the seed of the random choices. The moments are the machine's own.
TICKWHEEL_CROWD_PASSES: how often each misfortune comes (1).
"""
import collections
import contextlib
import dataclasses
import hashlib
import itertools
import os
import random
import re
import threading

import pytest
import redis
from harness import HOST, PATIENCE, Raw, any_moment, as_map, now_ms, wait_replica_in_sync, wait_until
from proxy import Proxy
from situations import frozen
from subject import Subject, languages, release
from test_cluster import OPTIONS
from test_sentinel_workers import wait_demoted, wait_promoted, watched
from test_workers_model import LAPSES, LEASE, TRIES, Model

QUEUE, FAR_MS, MOST_WRITES = "{w}:crowd", 3600000, 600
OTHER_ENDS = ["fail for a reason", "retry 30 not yet", "untilfail {} for a reason", "dead for a reason", "die"]
WEIGHTS = [30, 20, 10, 6, 1]
TOKEN = re.compile(r'"([^"]+)" "([0-9a-f]{16})"')


@dataclasses.dataclass
class Write:
    """A put, or a cancel, which has no acts. The last act of a put is unique, and so names its task."""
    name: str
    acts: tuple
    kind: str
    before: object = None  # The last act of the task that it found; None: there was no task.
    sure: bool = False  # The server has replied; the replica, if there is one, has the write.

    def words(self, rng):
        if not self.acts:
            return ["TW.CANCEL", QUEUE, self.name]
        when = {"soon": ["IN", rng.randrange(200)], "far": ["IN", FAR_MS],
                "late": ["AT", now_ms() - rng.randrange(20), "MAXLATE", 10]}[self.kind]
        return ["TW.PUT", QUEUE, self.name, *when, "TRIES", TRIES, "BACKOFF", 5, 2, 50, "PAYLOAD", *self.acts]


class Producer(threading.Thread):
    """Writes for as long as the test wants, and at most so often. Without a reply, nobody knows of a write
    whether it was carried out."""

    def __init__(self, crowd):
        super().__init__(daemon=True)
        self.crowd, self.rng = crowd, random.Random(crowd.rng.randrange(1 << 32))
        self.halt, self.failure, self.names, self.numbers = threading.Event(), None, [], itertools.count(1)

    def run(self):
        try:
            while self.goes_on():
                self.visit()
        except Exception as failure:  # pylint: disable=broad-except  (told by finish())
            self.failure = failure

    def goes_on(self):
        return not self.halt.is_set() and sum(map(len, self.crowd.writes.values())) < MOST_WRITES

    def visit(self):
        """Speaks with the present primary, until that sends the producer away or is gone."""
        try:
            with contextlib.closing(Raw(self.crowd.server)) as raw:
                while self.goes_on():
                    self.send(raw, self.choose())
                    any_moment(self.rng, 0.03)
        except (OSError, redis.exceptions.ConnectionError):
            any_moment(self.rng, 0.05)

    def choose(self):
        chance, number = self.rng.random(), next(self.numbers)
        if self.names and chance < 0.1:
            return Write(self.rng.choice(self.names[-40:]), (), "cancel")
        acts = [act.format(self.crowd.path(number))
                for act in self.rng.choices(OTHER_ENDS, WEIGHTS, k=self.rng.randrange(3))]
        if self.names and chance < 0.25:
            name = self.rng.choice(self.names[-40:])
        elif chance < 0.4:  # Nobody replaces it, so the line of its end tells which put was done.
            return Write(f"u{number}", (*acts, f"until {self.crowd.path(number)}"), "soon")
        else:
            name = f"t{number}"
            self.names.append(name)
        kind = self.rng.choices(["soon", "late", "far"], [80, 12, 8])[0]
        return Write(name, (*acts, f"show {number}"), kind)

    def send(self, raw, write):
        confirm = [["WAIT", 1, 300]] if self.crowd.confirms else []
        self.crowd.writes[write.name].append(write)
        raw.send_all([["MULTI"], ["TW.GET", QUEUE, write.name], write.words(self.rng), ["EXEC"], *confirm])
        *_, done = [raw.read() for _ in range(4)]
        if not isinstance(done, list):  # The server refuses all of it.
            self.crowd.writes[write.name].remove(write)
            raise redis.exceptions.ConnectionError(done)
        [found], reply = done
        assert reply == write.name if write.acts else reply[0] == (found is not None) + is_leased(found), done
        write.before = found and as_map(found)["payload"][-1]
        copies = raw.read() if confirm else 1
        write.sure = isinstance(copies, int) and copies >= 1

    def finish(self):
        self.halt.set()
        self.join(PATIENCE)
        assert not self.is_alive(), "the producer hangs"
        if self.failure:
            raise self.failure


def is_leased(found):
    return found is not None and as_map(found)["state"] == "leased"


class Ear(threading.Thread):
    """Notes the tokens that commands of a server name, as MONITOR tells them, until the connection ends."""

    def __init__(self, server, tokens):
        super().__init__(daemon=True)
        self.server, self.tokens, self.raw = server, tokens, Raw(server)
        assert self.raw("MONITOR") == "OK"

    def run(self):
        with contextlib.suppress(OSError, redis.exceptions.ConnectionError):
            while True:
                line = self.raw.read()
                for name, token in TOKEN.findall(line) if QUEUE in line else ():
                    self.tokens[name][token] = True


class Crowd(Model):
    """What all kinds share: one queue, the producer, the judge. `confirms`: by WAIT."""
    confirms, crew_size = True, 5

    def __init__(self, fleet, folder):
        self.writes = collections.defaultdict(list)
        self.tokens = collections.defaultdict(dict)  # {id: its tokens, in the order of their first use}
        self.ear, self.released = None, 1
        super().__init__(fleet, folder)
        self.producer = Producer(self)

    def subject(self, language, **options):
        return Subject(language, QUEUE, **options)

    def path(self, number):
        return self.folder / str(number)

    # Its life

    def live(self, passes):
        self.producer.start()
        for _ in range(passes):
            for how in self.rng.sample(self.MISFORTUNES, len(self.MISFORTUNES)):
                self.listen()
                self.forget()
                any_moment(self.rng, 0.4)
                self.seen[how.__name__] += 1
                how(self, self.rng.choice(self.crew))
                self.replace_the_dead()
                self.release_but(20)
                self.probe()
        self.producer.finish()
        self.release_but(0)
        self.probe()

    def release_but(self, latest):
        """Ends the jobs that last, but for so many of the latest."""
        end = next(self.producer.numbers) - latest
        for number in range(self.released, end):
            release(self.path(number))
        self.released = max(self.released, end)

    def listen(self):
        if not (self.ear and self.ear.is_alive() and self.ear.server is self.server):
            with contextlib.suppress(redis.exceptions.ConnectionError):
                self.ear = Ear(self.server, self.tokens)
                self.ear.start()

    def forget(self):
        """Takes tasks as a worker that is gone at once."""
        with contextlib.suppress(redis.exceptions.ConnectionError), contextlib.closing(Raw(self.server)) as raw:
            rows = raw("TW.TAKE", 1, QUEUE, "LEASE", 50, "COUNT", 3)
            for _, name, token, *_ in rows if isinstance(rows, list) else ():
                self.tokens[name][token] = True

    def probe(self):
        """Touches the latest tasks with all their tokens."""
        with contextlib.suppress(redis.exceptions.ConnectionError), contextlib.closing(Raw(self.server)) as raw:
            for name in list(self.tokens)[-30:]:
                tokens = list(self.tokens[name])
                touches = [["TW.TOUCH", QUEUE, name, token, "LEASE", LEASE] for token in tokens]
                raw.send_all([["MULTI"], *touches, ["EXEC"]])
                *_, ends = [raw.read() for _ in range(len(tokens) + 2)]
                if isinstance(ends, list):
                    good = [token for token, end in zip(tokens, ends) if end is not None]
                    assert len(good) <= 1, f"{name} has the tokens {good}"
                    self.seen["good tokens"] += len(good)
                    self.seen["void tokens"] += len(tokens) - len(good)

    # The end

    def looks(self):
        """{id: TW.GET of it, or None}"""
        found = self.server.once("TW.GET", QUEUE, *self.writes)
        return {name: row and as_map(row) for name, row in zip(self.writes, found)}

    def settle(self):
        """Waits until all tasks have ended, but for dead ones and those of a far time."""
        def left():
            near = now_ms() + FAR_MS // 2
            return [name for name, row in self.looks().items()
                    if row and row["state"] != "dead" and row["next"] < near]

        def ended():
            self.replace_the_dead()
            return not left()
        wait_until(ended, lambda: "\n".join([str(left()), *(one.story() for one in self.crew)]), every=0.1)

    def judge(self):
        """Yields the fate of each put. The workers have ended, so all their lines have come."""
        shown = {line[3] for subject in (*self.gone, *self.crew) for line in subject.all("shown")}
        ended, rows = self.lines("end"), self.looks()

        def is_done(put):
            if put.acts[-1].startswith("until"):
                return any(self.performed(put, attempt) == "until" for attempt in ended[put.name])
            return hashlib.sha1("\n".join(put.acts).encode()).hexdigest() in shown

        for name, writes in self.writes.items():
            row = rows[name]
            if row and row["state"] == "dead":
                self.check_dead(row)
            end = Write(name, (), row["state"] if row else "gone", row and row["payload"][-1], True)
            since = []  # The last write that is sure, and those after it.
            for write in (*writes, end):
                if write.sure and since:
                    yield self.fate(since, write, is_done)
                    since = []
                if since or write.sure:
                    since.append(write)

    @staticmethod
    def fate(since, write, is_done):
        """The fate of a sure put, if since[0] is one. The next sure write tells which task it found."""
        put, *perhaps = since
        known = {one.acts[-1] for one in since if one.acts}
        assert write.before is None or write.before in known, f"{write} has found another task than {since}"
        if not put.acts:
            return "a cancel"
        if write.before == put.acts[-1]:
            assert write.kind != "waiting" or put.kind == "far", f"nobody works: {put}"
            return {"cancel": "cancelled", "dead": "dead", "waiting": "still there"}.get(write.kind, "replaced")
        if is_done(put):
            return "done"
        if put.kind == "late":
            return "dropped"
        assert perhaps, f"it is lost: {put}; {write} has not found it"
        return "replaced or cancelled by a write that nobody confirmed"

    @staticmethod
    def check_dead(row):
        failed = row["attempt"] - row["lapses"]
        dead = any(act.startswith("dead") for act in row["payload"])
        assert failed >= TRIES or row["lapses"] > LAPSES or dead, row

    def close(self):
        self.producer.halt.set()
        super().close()


class Lone(Crowd):
    """One server, which crashes and loses nothing. Each worker has a network of its own."""
    confirms = False

    def __init__(self, fleet, folder):
        self.networks, self.proxies = contextlib.ExitStack(), {}
        super().__init__(fleet, folder)

    def subject(self, language, **options):
        proxy = self.networks.enter_context(Proxy(self.server))
        made = super().subject(language, url=proxy.url, **options)
        self.proxies[made] = proxy
        return made

    def cut_off(self, subject):
        """Nothing passes for some leases. Then all of it comes late, or the connections are gone."""
        with self.proxies[subject].held() as proxy:
            any_moment(self.rng, 3 * LEASE / 1000)
            if self.rng.random() < 0.5:
                proxy.cut()

    def lose(self, subject):
        self.proxies[subject].lose_reply(self.rng.choice(["TW.ACK", "TW.NACK", "TW.TOUCH", "TW.TAKE"]))

    MISFORTUNES = [*Model.MISFORTUNES, cut_off, lose] * 2

    def close(self):
        super().close()
        self.networks.close()


class Watched(Crowd):
    """A primary and its replica, which a sentinel watches."""

    def open(self, fleet):
        self.server, self.replica, self.sentinel = watched(fleet, appendonly="yes")

    def subject(self, language, **options):
        return super().subject(language, sentinel=f"{HOST}:{self.sentinel.port}",
                               service=self.sentinel.name, **options)

    def exchange(self):
        wait_demoted(self.sentinel, self.server, self.replica)
        self.server, self.replica = self.replica, self.server

    def dies(self, _):
        self.server.kill()
        wait_promoted(self.sentinel, self.replica)
        self.server.replicaof, self.replica.replicaof = self.replica, None
        self.server.start()
        self.exchange()

    def hangs(self, _):
        """When the old primary goes on, it takes writes that are lost, until the sentinel finds it."""
        with frozen(self.server):
            wait_promoted(self.sentinel, self.replica)
        self.exchange()

    def hands_over(self, _):
        wait_promoted(self.sentinel, self.replica, planned=True)
        self.exchange()

    MISFORTUNES = [Model.kill, Model.suspend, Model.stop, Model.cut, dies, hangs, hands_over]


class Nodes(Crowd):
    """A cluster. The node that the workers know at first is none of the two that replace each other."""

    def open(self, fleet):
        self.cluster = fleet.cluster(3, 1, **OPTIONS)
        self.server = self.cluster.owner(QUEUE)
        self.known = next(node for node in self.cluster.primaries() if node is not self.server)

    def subject(self, language, **options):
        cluster = {} if language == "command" else {"cluster": True}  # The command follows the slot by itself.
        return super().subject(language, url=f"redis://{HOST}:{self.known.port}", **cluster, **options)

    def exchange(self, new):
        self.cluster.wait_ok()
        wait_until(lambda: self.server.info("replication").get("master_link_status") == "up", self.server.tail)
        wait_replica_in_sync(new, self.server)
        self.server = new

    def heir(self):
        """Returns the replica that takes over. All programs have begun by then: drivers cannot make a client of
        a cluster one of whose nodes is away."""
        for subject in self.crew:
            wait_until(lambda one=subject: one.all("ready") or one.process.poll() is not None, subject.story)
        return self.cluster.replica_of(self.server)

    def dies(self, _):
        new = self.heir()
        self.server.kill()
        self.cluster.take_over(new)
        self.server.start()
        self.exchange(new)

    def hands_over(self, _):
        new = self.heir()
        self.cluster.hand_over(self.server, new)
        self.exchange(new)

    MISFORTUNES = [Model.kill, Model.suspend, Model.stop, Model.cut, dies, hands_over, dies]


@pytest.mark.long(only=True)
@pytest.mark.parametrize("kind", [Lone, Watched, Nodes])
def test_each_put_has_one_fate(kind, fleet, tmp_path):
    with contextlib.closing(kind(fleet, tmp_path)) as crowd:
        crowd.live(int(os.environ.get("TICKWHEEL_CROWD_PASSES") or 1))
        crowd.settle()
        counts = crowd.counts()
        fates = collections.Counter(crowd.judge())
        assert fates["done"] and {one.language for one in crowd.gone + crowd.crew} == set(languages())
        print(f"{dict(fates)}; {dict(counts)} by workers that were not killed; {dict(crowd.seen)}")
