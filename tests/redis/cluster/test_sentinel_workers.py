# SPDX-License-Identifier: MIT
"""Workers that wait in TW.TAKE while Sentinel replaces their primary. They use redis-py's client for Sentinel,
as programs do: when a wait ends without tasks, they ask Sentinel again, and call TW.TAKE again.

One sentinel decides alone here, and faster than usual: the test is about the workers, and test_sentinel.py has
elections."""
import collections
import contextlib
import os
import random
import signal
import threading

import pytest
import redis
from redis.sentinel import Sentinel
from harness import (CALM_MS, HASTY_MS, HOST, PATIENCE, any_moment, now_ms, tasks, wait_replica_in_sync,
                     wait_until)
from situations import digest
from workers import FAR, Worker, blocked, frozen_before, put, put_ready, spans, take, wait_state

JOBS, HEAP = "jobs", "heap"  # The queues of the workers; HEAP is paused until the failover is over.

Take = collections.namedtuple("Take", "port name token attempt done")


def watched(fleet, **options):
    """A primary, its replica, and a sentinel that knows both."""
    old = fleet.server(**options)
    new = fleet.server(replicaof=old, **options)
    wait_replica_in_sync(old, new)
    sentinel = fleet.sentinel(old, quorum=1, failover_timeout_ms=3000)
    sentinel.hasten()
    sentinel.wait_sees(replicas=1)
    return old, new, sentinel


def wait_promoted(sentinel, new, planned=False):
    """Has the sentinel find the primary gone, and waits until its replica is the primary. `planned`: asks for
    the failover. A sentinel that its disk held up has not heard from the replica for a while, and gives up.
    Then it is asked once more."""
    asked = 0

    def promoted():
        nonlocal asked
        if planned and sentinel.log().count("-failover-abort-no-good-slave") == asked:
            with contextlib.suppress(redis.exceptions.ResponseError):  # It has not heard from the replica yet.
                sentinel.once("SENTINEL", "FAILOVER", sentinel.name)
                asked += 1
        return sentinel.master_port() == new.port and new.info("replication")["role"] == "master"

    sentinel.time_out(HASTY_MS)
    wait_until(promoted, message=lambda: f"no promotion\n{sentinel.tail()}")
    sentinel.time_out(CALM_MS)


def wait_demoted(sentinel, old, new):
    def follows():
        state_ = old.info("replication")
        return state_["role"] == "slave" and state_["master_port"] == new.port
    wait_until(follows, message=lambda: f"no demotion\n{sentinel.tail()}")
    wait_until(lambda: old.info("replication").get("master_link_status") == "up")
    wait_replica_in_sync(new, old)


def confirmed(client):
    """The replica has all that this client has written; clients of redis-py use one connection for that."""
    assert client.execute_command("WAIT", 1, PATIENCE * 1000) == 1


class Follower(threading.Thread):
    """A worker that finds its primary by Sentinel. It acknowledges each task, and stops after a task `stop`."""

    def __init__(self, sentinel, *queues):
        super().__init__(daemon=True)
        self.client = Sentinel([(HOST, sentinel.port)], socket_timeout=PATIENCE).master_for(
            sentinel.name, socket_timeout=PATIENCE, decode_responses=True)
        self.queues, self.halt, self.failure = queues, threading.Event(), None
        self.takes, self.ends = [], []

    def run(self):
        try:
            while not self.halt.is_set():
                try:
                    self.step()
                except redis.exceptions.ConnectionError as error:  # Also READONLY, with a client for Sentinel.
                    self.ended(error)
                except redis.exceptions.ResponseError as error:
                    if not str(error).startswith("UNBLOCKED"):
                        raise
                    self.ended(error)
        except Exception as failure:  # pylint: disable=broad-except  (told by finish())
            self.failure = failure

    def ended(self, error):
        self.ends.append(str(error))
        any_moment(random, 0.1)

    def step(self):
        [[queue, name, token, _, attempt, *_]] = self.client.execute_command(
            "TW.TAKE", len(self.queues), *self.queues, "LEASE", FAR, "BLOCK", 0)
        port = self.client.connection_pool.master_address[1]
        self.takes.append(Take(port, name, token, attempt,
                               self.client.execute_command("TW.ACK", queue, name, token)))
        if name.startswith("stop"):
            self.halt.set()

    def finish(self):
        self.join(PATIENCE)
        if self.failure:
            raise self.failure
        assert not self.is_alive(), f"a worker hangs: {self.takes} {self.ends[-3:]}"


@contextlib.contextmanager
def following(sentinel, server, how_many, *queues):
    """So many workers, all of them blocked on the server."""
    crew = [Follower(sentinel, *queues) for _ in range(how_many)]
    try:
        for one in crew:
            one.start()
        wait_until(lambda: blocked(server) == how_many, message="the workers are not blocked")
        yield crew
    finally:
        for one in crew:
            one.halt.set()


def refusals(server, sentinel, new):
    """Asks a server for tasks, as soon as it is there and until it replies with READONLY. Returns the first
    words of the errors before that; a reply without an error fails."""
    found = set()

    def readonly():
        try:
            reply = server.once("TW.TAKE", 2, JOBS, HEAP, "LEASE", FAR, "BLOCK", 0)
        except redis.exceptions.ConnectionError:  # Also LOADING. Sentinel ends the connections of its clients.
            return False
        except redis.exceptions.ResponseError as error:
            if isinstance(error, redis.exceptions.ReadOnlyError):  # redis-py has cut its first word off.
                return True
            found.add(str(error).split()[0])
            return False
        raise AssertionError(f"it gave out {reply}")
    wait_until(readonly, message=lambda: f"only {found}\n{sentinel.tail()}")
    wait_demoted(sentinel, server, new)
    return found


CLOSED = "the server has ended the connection"


def last_word(worker):
    """Returns the reply that ends the wait of a worker, or CLOSED."""
    with contextlib.suppress(redis.exceptions.ConnectionError), contextlib.closing(worker):
        return worker.reply()
    return CLOSED


def test_the_primary_is_killed_while_workers_wait(fleet):
    """Each task that WAIT confirmed is given out and done once on the new primary. A lease that ended meanwhile
    begins anew once, and tokens go on counting."""
    old, new, sentinel = watched(fleet, appendonly="yes")
    r, copy = old.client(), new.client()
    ready = ["heap1", "heap2", "heap3"]
    put_ready(r, HEAP, *ready)
    r.execute_command("TW.PAUSE", HEAP)
    with following(sentinel, old, 3, JOBS, HEAP) as crew:
        put(r, JOBS, "done")
        wait_until(lambda: blocked(old) == 3 and not r.exists(JOBS), message="the first task is not done")
        put(r, "far", "far", at=now_ms() + FAR)
        done_by_old = ["done"]
        for span in spans():
            put_ready(r, "mine", "held", "kept", options=("TRIES", 5, "BACKOFF", FAR, 1, FAR))
            put_ready(r, "yours", "left", options=("TRIES", 5, "BACKOFF", 1, 1, 1))
            token, begin = take(r, "mine")["held"], now_ms() + span
            soon = {f"soon{span}-{i}": begin + i * 400 for i in range(7)}  # Before the promotion, and after it.
            for name, due in soon.items():
                put(r, JOBS, name, at=due)
            kept = take(r, "mine", lease=span)["kept"]
            assert take(r, "yours", lease=span)["left"]
            end = now_ms() + span
            confirmed(r)
            if frozen_before(old, begin):
                old.kill()
                break
            wait_until(lambda: blocked(old) == 3 and not r.exists(JOBS))
            done_by_old += soon
            r.delete("mine", "yours")
        wait_until(lambda end=end: now_ms() > end)
        wait_promoted(sentinel, new)

        # The tokens of before, in a lease that goes on and in one that began anew.
        wait_until(lambda: new.tw()["renewed"] == 2, message=lambda: f"renewed: {new.tw()['renewed']}, not 2")
        assert copy.execute_command("TW.ACK", "mine", "held", token, "kept", kept) == 2
        # The other lease ends a second time, and the attempt has failed then.
        wait_state(copy, "yours", "left", "ready")
        [[*_, attempt, _, _]] = copy.execute_command("TW.TAKE", 1, "yours", "LEASE", FAR)
        assert (attempt, new.tw()["renewed"]) == (2, 2)

        copy.execute_command("TW.RESUME", HEAP)
        wait_until(lambda: not copy.exists(JOBS, HEAP) and blocked(new) == 3,
                   message=lambda: f"left: {tasks(copy, JOBS)} {tasks(copy, HEAP)}")
        for i in range(3):
            put(copy, JOBS, f"stop{i}")
        for one in crew:
            one.finish()

    takes = sorted(take_ for one in crew for take_ in one.takes if not take_.name.startswith("stop"))
    assert all(one.ends for one in crew), "a worker has not noticed the failover"
    assert {(take_.attempt, take_.done) for take_ in takes} == {(1, 1)}
    assert [take_.name for take_ in takes if take_.port == old.port] == sorted(done_by_old)
    assert [take_.name for take_ in takes if take_.port == new.port] == sorted([*ready, *soon])

    # The old primary comes back with all tasks in its file. It gives none of them out, neither before Sentinel
    # finds it, since it has no replica, nor afterwards, as a replica.
    old.options["min-replicas-to-write"] = 1
    old.start()
    refused = refusals(old, sentinel, new)
    assert refused <= {"NOREPLICAS"}
    with pytest.raises(redis.exceptions.ReadOnlyError):
        take(old.client(), JOBS)
    assert old.tw()["taken"] == 0
    assert digest(old) == digest(new) and tasks(copy, "far")
    ends = sorted({end for one in crew for end in one.ends})
    print(f"waits ended by {ends}; the old primary said {refused} before READONLY")


def test_the_primary_hangs_while_workers_wait(fleet):
    """Nobody tells the workers of a primary that hangs. When it wakes up, it goes on as a primary until
    Sentinel finds it. A task that it gives out meanwhile has a token that does not count on the new primary. As
    a replica it gives nothing out, and has no workers left."""
    old, new, sentinel = watched(fleet)
    r, copy = old.client(), new.client()
    crew, before = [Worker(old, JOBS) for _ in range(3)], 0
    for span in spans():
        due = now_ms() + span
        put(r, JOBS, "a", at=due)
        put(r, JOBS, "far", at=due + FAR)
        confirmed(r)
        if frozen_before(old, due):
            break
        last = wait_until(lambda: next((one for one in crew if one.served()), None))
        crew.remove(last)
        last.close()
        r.delete(JOBS)
        crew.append(Worker(old, JOBS))
        before += 1
    try:
        wait_promoted(sentinel, new)
        wait_state(copy, JOBS, "a", "ready")
        assert not any(one.served() for one in crew)
    finally:
        os.kill(old.pid, signal.SIGCONT)
    replies = [last_word(one) for one in crew]
    given = [row for reply in replies if isinstance(reply, list) for row in reply]
    assert [row[1] for row in given] in (["a"], [])
    assert all(reply == CLOSED or reply.startswith("UNBLOCKED")
               for reply in replies if not isinstance(reply, list)), replies
    for row in given:
        assert copy.execute_command("TW.ACK", JOBS, "a", row[2]) == 0
    wait_demoted(sentinel, old, new)

    # Whoever connects to it now is refused, and the new primary has all tasks for its own workers.
    assert (blocked(old), old.tw()["taken"]) == (0, before + len(given))
    with pytest.raises(redis.exceptions.ReadOnlyError):
        take(old.client(), JOBS)
    tokens = take(copy, JOBS)
    put(copy, JOBS, "b")
    wait_state(copy, JOBS, "b", "ready")
    tokens.update(take(copy, JOBS))
    assert set(tokens) == {"a", "b"}
    assert copy.execute_command("TW.ACK", JOBS, *[word for pair in tokens.items() for word in pair]) == 2
    wait_replica_in_sync(new, old)
    assert set(tasks(copy, JOBS)) == {"far"} and digest(old) == digest(new)
    assert old.tw()["taken"] == before + len(given)
    print(f"the old primary gave out {given}; all replies: {replies}")
