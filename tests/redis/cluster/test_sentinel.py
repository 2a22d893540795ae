# SPDX-License-Identifier: MIT
"""Failover by Sentinel while tasks are added and fall due: a primary, two replicas, three sentinels.

Commands that WAIT 2 has confirmed to a client have reached both replicas. So they must outlive the primary,
whichever replica is promoted. The new primary's Stream holds every delivery once, because removal and
delivery reach a replica in one transaction.

The transaction of a delivery may fail to reach the replica. A consumer that had read this delivery from the
old primary sees it again from the new primary. Such deliveries are counted, and recognized by tw.id and
tw.due.
"""
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from harness import (CALM_MS, HASTY_MS, PATIENCE, any_moment, entries, in_order, wait_replica_in_sync,
                     wait_until)
from load import Books, Maker, Reader, Worker, go_on, seeded
from situations import frozen

STREAM = "unpaid"
PLACES = [("timeouts", STREAM, "stream"), ("retries", "mails", "list")]
QUEUES = ["timeouts", "retries"]
# A sentinel that gives a server its role ends the connections of all its clients, and each of the three
# sentinels may do so.
AGAIN = {"retry": Retry(NoBackoff(), 3), "retry_on_error": [redis.exceptions.ConnectionError]}
OPTIONS = {
    "appendonly": "yes", "appendfsync": "everysec", "min-replicas-to-write": 1, "min-replicas-max-lag": PATIENCE
}


class Watched:
    """The servers, the sentinels and the load, in `with`. One of the replicas may be promoted, and the
    sentinels are patient until the primary is gone: so a busy machine makes no second failover."""

    def __init__(self, fleet, **options):
        self.rng, options = seeded(), {**OPTIONS, **options}
        self.master = fleet.server(**options)
        priorities = self.rng.sample([0, 100], 2)  # A replica with priority 0 is never promoted.
        self.replicas = [fleet.server(replicaof=self.master, replica_priority=priority, **options)
                         for priority in priorities]
        self.heir = self.replicas[priorities.index(100)]
        for replica in self.replicas:
            wait_replica_in_sync(self.master, replica)
        wait_until(lambda: self.master.info("replication")["min_slaves_good_slaves"] == 2,
                   message="no good replicas")
        self.sentinels = [fleet.sentinel(self.master, quorum=2, failover_timeout_ms=5000) for _ in range(3)]
        for sentinel in self.sentinels:
            sentinel.hasten()
            sentinel.wait_sees(replicas=2, sentinels=2)
        self.books = Books(QUEUES, [STREAM], ["mails"])
        self.read_from = self.master
        self.reader, self.crew = Reader(lambda: self.read_from, STREAM), []
        self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for thread in (self.reader, *self.crew):
            thread.halt.set()

    def load(self, server, clients=3):
        """Starts clients, each with a history of its own, and returns when WAIT has confirmed something to
        all of them."""
        crew = []
        for number in range(len(self.crew) + 1, len(self.crew) + clients + 1):
            maker = Maker(self.books.line(f"c{number}"), type(self.rng)(self.rng.randrange(1 << 32)), PLACES)
            crew.append(Worker(server, maker, wait=(2, 1000) if server is self.master else (1, 1000)))
        for worker in crew:
            worker.start()
        self.crew += crew
        wait_until(lambda: all(worker.maker.line.promised or worker.failure for worker in crew),
                   message="WAIT confirms nothing")
        return crew

    def wait_promoted(self):
        """Has the sentinels find the primary gone, and returns the replica that they agree to have promoted."""
        def agreed():
            return {sentinel.master_port() for sentinel in self.sentinels} == {self.heir.port}
        for sentinel in self.sentinels:
            sentinel.time_out(HASTY_MS)
        wait_until(agreed, lambda: "no promotion\n" + self.sentinels[0].tail())
        for sentinel in self.sentinels:
            sentinel.time_out(CALM_MS)
        wait_until(lambda: self.heir.info("replication")["role"] == "master",
                   "the promoted one does not know of it")
        return self.heir

    def wait_follows(self, server, new):
        def follows():
            state = server.info("replication")
            return state["role"] == "slave" and state["master_port"] == new.port and state[
                "master_link_status"] == "up"
        wait_until(follows, lambda: f"it does not follow the new primary\n{server.tail()}")
        wait_replica_in_sync(new, server)

    def judge(self, new, crew):
        """Checks that every history holds up to its last WAIT, at once and again when all near tasks have
        come; then nothing moves."""
        for worker in crew:
            worker.finish()
        client = new.client()
        promised = sum(worker.maker.line.promised for worker in crew)
        self.books.read(client).settle()
        self.books.wait_delivered(client)
        self.books.settle()
        return promised


def same(first, second):
    """Asserts that two servers hold the same data. The queues hold far tasks only, so nothing moves
    meanwhile."""
    def held(server):
        client = server.client(**AGAIN)
        return ([in_order(client.execute_command, queue) for queue in QUEUES],
                entries(client, STREAM), client.lrange("mails", 0, -1))
    for mine, yours in zip(held(first), held(second)):
        assert mine == yours


def test_the_primary_is_killed(fleet):
    with Watched(fleet) as watched:
        old = watched.master
        crew = watched.load(old)
        go_on(crew)
        any_moment(watched.rng, 0.5)
        old.kill()
        new = watched.read_from = watched.wait_promoted()
        other = next(replica for replica in watched.replicas if replica is not new)
        watched.wait_follows(other, new)
        promised = watched.judge(new, crew)
        more = watched.load(new, clients=1)
        go_on(more)
        watched.judge(new, more)

        # The old primary comes back. Until the sentinels find it, it behaves as a primary with all its
        # late tasks. It does not deliver them, because it has no replicas.
        old.start()
        late = old.tw()["late"]
        watched.wait_follows(old, new)
        assert old.tw()["delivered"] == 0
        for server in (old, other):
            same(new, server)
        watched.reader.finish()
        print(
            f"{promised} commands confirmed by WAIT 2, "
            f"{sum(map(len, watched.books.delivered.values()))} deliveries; "
            f"a consumer saw {watched.reader.doubles()} of them twice; "
            f"{late} late on the old primary at its return")
        assert other.tw()["delivered"] == 0 and new.tw()["delivered"] > 0


def test_the_primary_hangs_and_wakes_up(fleet):
    """The old primary goes on as a primary for a moment after it wakes, since nobody has told it yet. Its
    writes during that time are discarded when it becomes a replica. At the end all three servers hold the
    same data, and every delivery is in the Stream once."""
    with Watched(fleet) as watched:
        old = watched.master
        crew = watched.load(old)
        go_on(crew)
        any_moment(watched.rng, 0.5)
        with frozen(old):
            new = watched.wait_promoted()
            for worker in crew:
                worker.halt.set()
            other = next(replica for replica in watched.replicas if replica is not new)
            watched.wait_follows(other, new)
        watched.wait_follows(old, new)
        watched.judge(new, crew)
        wait_replica_in_sync(new, old)
        for server in (old, other):
            same(new, server)
        watched.reader.finish()
        print(f"a consumer of the old primary saw {watched.reader.doubles()} deliveries twice")
        assert other.tw()["delivered"] == 0
