# SPDX-License-Identifier: MIT
"""When a server must not give out tasks: while it is paused, is a replica, has too few replicas, cannot write
its files, or has no memory. Nothing is given out or replicated then, and everything is afterwards, without
help: the workers wait on.

And the leases that run out meanwhile. If no worker could have ended them, they begin anew, once."""
import contextlib
import os

import pytest
import redis
from harness import Raw, Tap, delivered, now_ms, task, wait_replica_in_sync, wait_until
from situations import (Counters, FullDisk, WallClock, deferred, digest, events_of, fill, frozen,
                        ignoring_signal_xfsz, let_turn, none_served, outcomes, rewrite, shut_down,
                        write_until_refused)
from workers import FAR, Stages, counts, put, put_ready, state, take, wait_state, workers

AGAIN = ("TRIES", 5, "BACKOFF", FAR, 1, FAR)


def pair(fleet, **options):
    master = fleet.server(**options)
    replica = fleet.server(replicaof=master, **options)
    wait_replica_in_sync(master, replica)
    return master, replica


# Pauses

@pytest.mark.parametrize("mode", ["WRITE", "ALL"])
def test_client_pause(clock, server, r, mode):
    with workers(server, 2, "s") as crew:
        due = clock.now() + 500
        put(r, "s", "a", at=due)
        put(r, "s", "b", at=due)
        r.execute_command("CLIENT", "PAUSE", 1000, mode)
        clock.push(900)
        let_turn(server)
        assert not any(one.served() for one in crew), "served in a pause"
        clock.go_on()
        assert [one.ids() for one in crew] == [["a"], ["b"]]


def test_client_pause_with_a_ready_task_and_a_worker_that_comes(fleet):
    """The worker is blocked on another queue, whose task was ready when the pause began."""
    master, replica = pair(fleet)
    r = master.client()
    put_ready(r, "s0", "a")
    with workers(master, 1, "s") as crew:
        r.execute_command("CLIENT", "PAUSE", FAR, "WRITE")
        put_later = Raw(master)
        put_later.send("RENAME", "s0", "s")  # The server keeps it until the pause ends.
        none_served(master, crew)
        r.execute_command("CLIENT", "UNPAUSE")
        assert (put_later.read(), crew[0].ids()) == ("OK", ["a"])
    wait_replica_in_sync(master, replica)
    assert digest(master) == digest(replica)


def test_failover_while_workers_wait(fleet):
    """The old primary sends its workers away, and the new one goes on with the same tasks."""
    master, replica = pair(fleet)
    r, copy = master.client(), replica.client()
    put_ready(r, "s", "leased")
    token = take(r, "s")["leased"]
    put(r, "s", "a", at=now_ms() + FAR)
    with workers(master, 3, "s") as crew:
        r.execute_command("FAILOVER")
        for one in crew:
            assert str(one.reply()).startswith("UNBLOCKED")
    wait_until(lambda: replica.info("replication")["role"] == "master")
    with workers(replica, 1, "s") as crew:
        copy.execute_command("TW.MOVE", "s", "a", "IN", 0)
        assert crew[0].ids() == ["a"]
    assert copy.execute_command("TW.ACK", "s", "leased", token) == 1
    wait_until(lambda: master.info("replication").get("master_link_status") == "up")
    wait_replica_in_sync(replica, master)
    assert digest(master) == digest(replica)


def pressed(fleet, clock, **options):
    """A primary and its replica; a task is ready, and a lease ends, half a second after the clock goes on."""
    master, replica = pair(fleet, appendonly="yes", **options)
    r = master.client()
    put(r, "s", "a", at=clock.now() + 500)
    put_ready(r, "other", "leased", options=("TRIES", 1))
    token = take(r, "other", lease=500)["leased"]
    wait_replica_in_sync(master, replica)
    return master, replica, r, token


def relieved(server, token):
    """The worker's lease has begun anew. Nothing was lost, and nothing was given out twice. The clock stands,
    so that the new lease does not end before the answer."""
    wait_until(lambda: server.tw()["renewed"] == 1, message=lambda: str(server.tw()))
    assert (server.once("TW.ACK", "other", "leased", token), server.tw()["lapsed"]) == (1, 0)


def goes_on(server, replica, token):
    """A worker gets the task, the old worker ends its lease, and the replica has the same data."""
    with workers(server, 1, "s", wait=False) as crew:
        assert crew[0].ids() == ["a"]
    relieved(server, token)
    wait_replica_in_sync(server, replica)
    assert digest(server) == digest(replica)


def test_failover_while_tasks_become_ready_and_leases_end(fleet, clock):
    """The primary waits for its replica, and writes nothing meanwhile."""
    master, replica, r, token = pressed(fleet, clock)
    wait_until(lambda: "online" in str(master.info("replication").get("slave0")))
    with workers(master, 1, "s") as crew:
        with frozen(replica):
            r.xadd("beside", {"so that": "the replica lags"})
            master.once("FAILOVER", "TO", "127.0.0.1", replica.port, "TIMEOUT", 600000)
            clock.go_on()
            deferred(master, "pause")
            clock.stand()
            none_served(master, crew)
        assert str(crew[0].reply()).startswith("UNBLOCKED")
    wait_until(lambda: replica.info("replication")["role"] == "master")
    assert (master.tw()["renewed"], master.tw()["lapsed"]) == (0, 0)
    goes_on(replica, master, token)


def test_shutdown_with_a_lagging_replica(fleet, clock):
    """The server writes nothing while it waits for the replica; its workers go without a task."""
    master, replica, r, token = pressed(fleet, clock, shutdown_timeout=1)
    with workers(master, 1, "s") as crew:
        with frozen(replica):
            r.xadd("beside", {"so that": "the replica lags"})
            shut_down(master)
            clock.go_on()
            assert master.expect_end() == 0
        with pytest.raises(redis.exceptions.ConnectionError):
            crew[0].reply()
    clock.stand()
    master.start()
    goes_on(master, replica, token)


def test_shutdown_that_is_aborted(fleet, clock):
    master, replica, r, token = pressed(fleet, clock, shutdown_timeout=600)
    with workers(master, 1, "s") as crew, frozen(replica):
        r.xadd("beside", {"so that": "the replica lags"})
        asked = shut_down(master, "NOSAVE")
        clock.go_on()
        deferred(master, "pause")
        clock.stand()
        none_served(master, crew)
        r.execute_command("SHUTDOWN", "ABORT")
        assert isinstance(asked.read(), Raw.Error)
        assert crew[0].ids() == ["a"]
        relieved(master, token)
    asked.close()


# Roles

def test_a_server_that_becomes_a_replica(fleet):
    master, other = fleet.server(), fleet.server()
    r = master.client()
    put(r, "s", "far", at=now_ms() + FAR)
    with workers(master, 2, "s") as crew:
        r.replicaof("127.0.0.1", other.port)
        for one in crew:
            assert str(one.reply()).startswith("UNBLOCKED")
    with pytest.raises(redis.exceptions.ReadOnlyError):
        take(r, "s")


def test_a_replica_gives_nothing_out_and_sees_ready_tasks_by_the_clock(fleet):
    master, replica = pair(fleet)
    r, copy = master.client(), replica.client()
    put_ready(r, "s", "a", "b")
    take(r, "s")
    wait_replica_in_sync(master, replica)
    with pytest.raises(redis.exceptions.ReadOnlyError):
        take(copy, "s")
    copy.replicaof("NO", "ONE")
    with workers(replica, 1, "s", wait=False) as crew:
        assert crew[0].ids() == ["b"]


def test_a_writable_replica_gives_nothing_out(fleet):
    master, replica = pair(fleet)
    replica.once("CONFIG", "SET", "replica-read-only", "no")
    put_ready(master.client(), "s", "a")
    wait_replica_in_sync(master, replica)
    for command in (("TW.TAKE", 1, "s", "LEASE", 5), ("TW.TAKE", 1, "s", "LEASE", 5, "BLOCK", 0)):
        with pytest.raises(redis.exceptions.ReadOnlyError):
            replica.once(*command)
    assert counts(replica)[1] == 0


# Refusals

def test_too_few_replicas(fleet, clock):
    """The worker is blocked while there are enough of them."""
    master, replica = pair(fleet, min_replicas_max_lag=2)
    r = master.client()
    wait_until(lambda: master.info("replication").get("min_slaves_good_slaves", 1) == 1)
    r.config_set("min-replicas-to-write", 1)
    wait_until(lambda: master.info("replication")["min_slaves_good_slaves"] == 1)
    due = clock.now() + 500
    put(r, "s", "a", at=due)
    put(r, "s", "b", at=due)
    with workers(master, 1, "s", count=2) as crew:
        r.config_set("min-replicas-to-write", 2)
        clock.reach(due)
        wait_until(lambda: counts(master) == (2, 0, 0))
        none_served(master, crew)
        with pytest.raises(redis.ResponseError, match="NOREPLICAS"):
            take(r, "s")
        assert counts(master) == (2, 0, 0)
        r.config_set("min-replicas-to-write", 1)
        assert crew[0].ids() == ["a", "b"]
    wait_replica_in_sync(master, replica)
    assert counts(replica)[1] == 2


def test_files_that_cannot_be_written(fleet, clock, monkeypatch):
    ignoring_signal_xfsz(monkeypatch)
    server = fleet.server(save="3600 1", appendonly="no", stop_writes_on_bgsave_error="yes")
    r = server.client()
    due = clock.now() + 500
    put(r, "s", "a", at=due)
    with workers(server, 1, "s") as crew:
        with FullDisk(server, 1):
            r.bgsave()
            wait_until(lambda: server.info("persistence")["rdb_last_bgsave_status"] == "err")
        clock.reach(due)
        wait_state(r, "s", "a", "ready")
        none_served(server, crew)
        with pytest.raises(redis.ResponseError, match="MISCONF"):
            take(r, "s")
        wait_until(lambda: server.info("persistence")["rdb_bgsave_in_progress"] == 0)
        r.bgsave()
        assert crew[0].ids() == ["a"]


def test_an_append_only_file_that_cannot_be_written(fleet, clock, monkeypatch):
    with monkeypatch.context() as patch:
        ignoring_signal_xfsz(patch)
        server = fleet.server(appendonly="yes", appendfsync="everysec")
    r = server.client()
    put(r, "s", "a", at=clock.now() + 500)
    put_ready(r, "other", "leased", options=("TRIES", 1))
    token = take(r, "other", lease=500)["leased"]
    with workers(server, 1, "s") as crew:
        with FullDisk(server, 1 << 20):
            write_until_refused(r)
            clock.go_on()
            deferred(server, "disk")
            wait_state(r, "s", "a", "ready")
            clock.stand()
            none_served(server, crew)
            with pytest.raises(redis.ResponseError, match="MISCONF"):
                take(r, "s")
        assert crew[0].ids() == ["a"]
    relieved(server, token)
    server.restart()
    assert counts(server) == (0, 1, 0)


def test_out_of_memory(clock, server, r):
    """A worker that waits is told to ask again. Who asks is served, and its TW.ACK frees memory."""
    put_ready(r, "s", "a", "b")
    with workers(server, 2, "s2") as crew:
        put(r, "s2", "c", at=clock.now() + 300)
        r.config_set("maxmemory", 1)
        clock.reach(clock.now() + 300)
        assert [one.reply() for one in crew] == [None, None]
        assert state(r, "s2", "c") == "ready"
        tokens = take(r, "s")
        assert r.execute_command("TW.ACK", "s", "a", tokens["a"]) == 1
        with pytest.raises(redis.ResponseError, match="OOM"):
            put(r, "s", "d")
        assert list(take(r, "s2")) == ["c"]


def test_out_of_memory_and_a_queue_that_is_renamed_onto_the_key(server, r):
    """The server itself calls the workers of the key then. They are told to ask again."""
    put_ready(r, "s0", "a")
    with workers(server, 1, "s") as crew:
        r.config_set("maxmemory", 1)
        r.rename("s0", "s")
        assert crew[0].reply() is None
        assert list(take(r, "s")) == ["a"]


def test_out_of_memory_leases_end_and_tasks_are_ready_again(server, r):
    """Otherwise the tasks of workers that died would hold the memory for ever."""
    for name in ("a", "b"):
        put_ready(r, "s", name, options=("TRIES", 1, "BACKOFF", 1, 1, 1))
    assert len(take(r, "s", count=2, lease=300)) == 2
    r.config_set("maxmemory", 1)
    for name in ("a", "b"):
        wait_state(r, "s", name, "ready")
    assert (server.tw()["lapsed"], server.tw()["renewed"], server.tw()["dead"]) == (2, 0, 0)
    tokens = take(r, "s", count=2)
    assert r.execute_command("TW.NACK", "s", "b", tokens["b"]) == 0
    assert r.execute_command("TW.ACK", "s", "a", tokens["a"]) == 1
    assert r.execute_command("TW.PURGE", "s", "ALL") == 1


def test_out_of_memory_nothing_stops_tasks_for_workers(clock, server, r):
    """Not ten thousand tasks with a target that were due before them, no MAXLATE, and no lapse."""
    leased(r, lease=200, options=("TRIES", 2, "BACKOFF", 1, 1, 1))
    r.config_set("tickwheel.deliver", "no")
    due = clock.now() + 500  # A step of more than a second would move the end of the lease.
    ids = fill(r, "other", "stream", 10050, at=due)
    put(r, "s", "drop", "MAXLATE", 1, at=due)
    put(r, "s", "first", "MAXLATE", FAR, at=due + 1)
    put(r, "s", "second", at=due + 2)
    clock.reach(due + 20)

    def run():
        r.config_set("maxmemory", 1)
        r.config_set("tickwheel.deliver", "yes")
        wait_state(r, "s", "a", "ready")
        assert (server.tw()["renewed"], server.tw()["lapsed"], server.tw()["delivered"]) == (1, 1, 0)
        wait_state(r, "s", "second", "ready")
        assert list(take(r, "s", count=3)) == ["first", "second", "a"]
        assert state(r, "s", "drop") is None
    assert {"tw.ready", "tw.delivered"} <= set(events_of(r, run))
    assert state(r, "other", "t0") == "ready"
    r.config_set("maxmemory", 0)
    wait_until(lambda: r.xlen("stream") == len(ids))
    assert delivered(r, "stream") == ids


@pytest.mark.parametrize("maxmemory", [0, 1])
def test_a_tick_ends_at_its_budget_also_out_of_memory(server, r, maxmemory):
    """All leases end in one millisecond. Each tick ends ten of them, and writes one command."""
    r.config_set("tickwheel.tasks-per-tick", 10, "tickwheel.us-per-tick", 1000000)
    names = [f"t{i}" for i in range(300)]
    put_ready(r, "s", *names)
    tap = Tap(server)
    assert len(take(r, "s", count=300, lease=300)) == 300
    r.config_set("maxmemory", maxmemory)
    wait_until(lambda: server.tw()["lapsed"] == 300)
    r.config_set("maxmemory", 0)
    assert len(tap.commands()) > 30  # One is of the take.
    tap.close()


def test_rights_that_change_while_a_worker_waits(server, r):
    r.execute_command("ACL", "SETUSER", "worker", "on", ">secret", "~s", "+@all")
    with workers(server, 2, "s", user=("worker", "secret")) as crew:
        r.execute_command("ACL", "SETUSER", "worker", "resetkeys", "~other")
        put(r, "s", "a")
        for one in crew:
            assert str(one.reply()) == "NOPERM the user may not take tasks of this queue any more"
        assert state(r, "s", "a") == "ready"
    with workers(server, 1, "s", wait=False) as crew:
        assert crew[0].ids() == ["a"]


def test_a_user_who_is_removed_while_he_waits(server, r):
    r.execute_command("ACL", "SETUSER", "worker", "on", ">secret", "~s", "+@all")
    with workers(server, 1, "s", user=("worker", "secret")) as crew, workers(server, 1, "s") as other:
        r.execute_command("ACL", "DELUSER", "worker")
        put(r, "s", "a")
        assert other[0].ids() == ["a"]
        with pytest.raises(redis.exceptions.ConnectionError):
            crew[0].reply()


# Leases

def leased(r, name="a", lease=400, options=AGAIN):
    put_ready(r, "s", name, options=options)
    return take(r, "s", lease=lease)[name]


def attempt(r, name="a"):
    """Returns how many attempts have begun."""
    return task(r, "s", name)["attempt"]


def outage_ended(server, renewed, lapsed):
    """Waits until the server has dealt with the leases that ran out while it was not able to serve."""
    wait_until(lambda: server.tw()["renewed"] >= renewed and server.tw()["lapsed"] >= lapsed,
               message=lambda: str(server.tw()))
    assert (server.tw()["renewed"], server.tw()["lapsed"]) == (renewed, lapsed)


FILES = {"log": {"appendonly": "yes"}, "snapshot": {}}


@pytest.mark.parametrize("files,how", [("log", "kill"), ("log", "stop"), ("snapshot", "kill")])
def test_a_lease_that_ran_out_while_the_server_was_down_begins_anew_once(fleet, clock, files, how):
    server = fleet.server(**FILES[files])
    r = server.client()
    token = leased(r)
    long = leased(r, "long", FAR)
    before = task(r, "s", "long")
    if files == "snapshot":
        r.save()
    server.kill() if how == "kill" else server.stop()
    clock.push(420)
    server.start()
    r = server.client()
    outage_ended(server, 1, 0)
    assert (state(r, "s", "a"), attempt(r)) == ("leased", 1)
    assert {**task(r, "s", "long"), "remaining": 0} == {**before, "remaining": 0}
    if files == "snapshot":
        r.save()
    server.kill()
    clock.push(420)
    server.start()  # The second time it counts.
    r = server.client()
    outage_ended(server, 0, 1)
    assert (state(r, "s", "a"), attempt(r), task(r, "s", "a")["error"]) == ("waiting", 1, "the lease ran out")
    assert r.execute_command("TW.ACK", "s", "a", token) == 1
    assert r.execute_command("TW.ACK", "s", "long", long) == 1


def test_a_renewed_lease_that_runs_out_is_a_failed_attempt(fleet, clock):
    server = fleet.server(appendonly="yes")
    leased(server.client())
    server.kill()
    clock.push(420)
    server.start()
    outage_ended(server, 1, 0)
    end = clock.now() + 400
    assert task(server.client(), "s", "a")["next"] == end
    clock.go_on()
    wait_until(lambda: server.tw()["lapsed"] == 1)
    assert clock.now() >= end
    assert attempt(server.client()) == 1


def test_touch_of_a_renewed_lease_lets_it_be_renewed_again(fleet, clock):
    """The worker has shown that it lives."""
    server = fleet.server(appendonly="yes")
    token = leased(server.client())
    for renewed in range(2):
        server.kill()
        clock.push(420)
        server.start()
        outage_ended(server, 1, 0)
        assert server.once("TW.TOUCH", "s", "a", token, "LEASE", 400) == clock.now() + 400, renewed
    assert attempt(server.client()) == 1


def gap_by_pause(r):
    r.execute_command("CLIENT", "PAUSE", FAR, "WRITE")
    yield
    r.execute_command("CLIENT", "UNPAUSE")


def gap_by_deliver(r):
    r.config_set("tickwheel.deliver", "no")
    yield
    r.config_set("tickwheel.deliver", "yes")


def gap_by_role(r):
    r.replicaof("127.0.0.1", 1)  # Nobody is there.
    yield
    r.replicaof("NO", "ONE")


def gap_by_replicas(r):
    r.config_set("min-replicas-to-write", 1)
    yield
    r.config_set("min-replicas-to-write", 0)


GAPS = {"a pause": gap_by_pause, "tickwheel.deliver no": gap_by_deliver, "a replica": gap_by_role,
        "too few replicas": gap_by_replicas}
CLOSED = {"a pause": "pause", "a replica": "role", "too few replicas": "replicas",
          "tickwheel.deliver no": "stopped"}


@pytest.mark.parametrize("gap", GAPS)
def test_a_lease_that_ran_out_while_the_server_gave_nothing_out(clock, server, r, gap):
    token = leased(r)
    end = clock.now() + 400
    with contextlib.contextmanager(GAPS[gap])(r):
        clock.run(420)
        deferred(server, CLOSED[gap])
        assert state(r, "s", "a") == "leased"
    outage_ended(server, 1, 0)
    assert attempt(r) == 1
    renewed_until = task(r, "s", "a")["next"]
    assert renewed_until >= end
    clock.go_on()
    wait_until(lambda: server.tw()["lapsed"] == 1)
    assert clock.now() >= renewed_until
    assert r.execute_command("TW.ACK", "s", "a", token) == 1


def test_a_worker_who_ended_his_lease_in_time_is_heard_before_the_lease_ends(server, r):
    """The server was busy with a long command, and reads the worker's command after it: it takes at most 32 KB
    from a connection at once."""
    token = leased(r, lease=FAR, options=("TRIES", 1))
    worker = Raw(server)
    worker.send_all([("TW.TOUCH", "s", "a", token, "LEASE", 300), ("DEBUG", "SLEEP", 1), ("ECHO", "x" * 36000),
                     ("TW.ACK", "s", "a", token)])
    assert worker.read() > 0 and worker.read() == "OK" and len(worker.read()) == 36000
    assert (worker.read(), server.tw()["lapsed"], server.tw()["renewed"]) == (1, 0, 0)


def test_a_lease_that_ran_out_while_the_server_stood_still_for_long(clock, server, r):
    leased(r)
    with frozen(server):
        clock.push(3500)
        clock.push_monotonic(3500)
    outage_ended(server, 1, 0)
    clock.go_on()
    wait_until(lambda: server.tw()["lapsed"] == 1)


def test_clients_that_watch_the_key_see_that_a_lease_ends(clock, server, r):
    for renewed in (False, True):
        clock.stand()
        leased(r)
        if renewed:
            r.config_set("tickwheel.deliver", "no")
        with r.pipeline() as watching:
            watching.watch("s")
            if renewed:
                clock.run(420)
                r.config_set("tickwheel.deliver", "yes")
            else:
                clock.go_on()
            outage_ended(server, renewed, 1 - renewed)
            watching.multi()
            watching.ping()
            with pytest.raises(redis.exceptions.WatchError):
                watching.execute()
        server.restart()
        r = server.client()
        r.delete("s")


def test_a_lease_runs_out_while_its_queue_is_paused(server, r):
    """TW.PAUSE is a decision about this queue, no outage."""
    leased(r)
    r.execute_command("TW.PAUSE", "s")
    wait_until(lambda: server.tw()["lapsed"] == 1)
    assert (server.tw()["renewed"], attempt(r)) == (0, 1)


def test_a_lease_that_ran_out_while_the_disk_could_not_be_written(fleet, clock):
    """A folder has the name that the snapshot should have, so the server replies MISCONF."""
    server = fleet.server(save="3600 1", appendonly="no", stop_writes_on_bgsave_error="yes")
    r = server.client()
    token = leased(r)
    os.mkdir(os.path.join(server.folder, "dump.rdb"))
    r.bgsave()
    wait_until(lambda: server.info("persistence")["rdb_last_bgsave_status"] == "err")
    clock.run(420)
    deferred(server, "disk")
    with pytest.raises(redis.ResponseError, match="MISCONF"):
        r.execute_command("TW.ACK", "s", "a", token)
    assert state(r, "s", "a") == "leased"
    os.rmdir(os.path.join(server.folder, "dump.rdb"))
    r.bgsave()
    outage_ended(server, 1, 0)
    assert r.execute_command("TW.ACK", "s", "a", token) == 1


# The next primary

def test_tokens_after_a_failover(fleet):
    """The new primary keeps the leases, takes the tokens of the old one, and gives out others."""
    master, replica = pair(fleet)
    r, copy = master.client(), replica.client()
    names = [f"t{i}" for i in range(500)]
    for name in names:
        put(r, "s", name, *AGAIN)
    wait_until(lambda: counts(master)[0] == 500)
    old = take(r, "s", count=250)
    assert len(old) == 250
    wait_replica_in_sync(master, replica)
    assert digest(master) == digest(replica)
    master.kill()
    copy.replicaof("NO", "ONE")
    wait_until(lambda: counts(replica)[0] == 250)
    new = take(copy, "s", count=500)
    assert set(new) == set(names) - set(old)
    assert not set(new.values()) & set(old.values())
    assert copy.execute_command("TW.TOUCH", "s", "t0", old["t0"], "LEASE", FAR) > now_ms()
    assert copy.execute_command("TW.ACK", "s", *[word for pair_ in old.items() for word in pair_]) == 250
    assert counts(replica) == (0, 250, 0)


def test_a_lease_that_ran_out_before_the_promotion_begins_anew_on_the_new_primary(fleet, clock):
    master, replica = pair(fleet)
    r, copy = master.client(), replica.client()
    token = leased(r)
    wait_replica_in_sync(master, replica)
    master.kill()
    clock.run(420)
    deferred(replica, "role")
    assert (state(copy, "s", "a"), replica.tw()["renewed"]) == ("leased", 0)
    copy.replicaof("NO", "ONE")
    outage_ended(replica, 1, 0)
    assert attempt(copy) == 1
    assert copy.execute_command("TW.ACK", "s", "a", token) == 1


def test_a_taken_task_that_did_not_reach_the_replica_is_given_out_again_with_another_token(fleet):
    """The old worker's TW.ACK is refused then: the new one may have begun."""
    master, replica = pair(fleet)
    r, copy = master.client(), replica.client()
    put_ready(r, "s", "a")
    wait_replica_in_sync(master, replica)
    with frozen(replica):
        r.client_kill_filter(_type="slave")  # Otherwise the socket has the lease.
        old = take(r, "s")["a"]
        master.kill()
    copy.replicaof("NO", "ONE")
    wait_state(copy, "s", "a", "ready")
    new = take(copy, "s")["a"]
    assert new != old
    assert copy.execute_command("TW.ACK", "s", "a", old) == 0
    assert copy.execute_command("TW.ACK", "s", "a", new) == 1


def test_a_log_is_rewritten_with_every_stage_in_it(fleet):
    server = fleet.server(appendonly="yes", aof_use_rdb_preamble="no")
    token = leased(server.client(), lease=FAR)
    before = digest(server)
    rewrite(server)
    server.kill()
    server.start()
    assert digest(server) == before
    assert server.once("TW.ACK", "s", "a", token) == 1


def test_what_a_gate_keeps_back_is_not_replicated(clock, server, r):
    """A task becomes ready, and a lease runs out, in a pause."""
    token = leased(r, "leased")
    tap = Tap(server)
    with workers(server, 1, "s2") as crew:
        put(r, "s2", "a", at=clock.now() + 200)
        assert outcomes(tap.commands()) == [("s2", "PUT")]
        r.config_set("tickwheel.deliver", "no")
        clock.run(420)
        none_served(server, crew)
        assert tap.commands() == []
        r.config_set("tickwheel.deliver", "yes")
        assert crew[0].ids() == ["a"]
    outage_ended(server, 1, 0)
    fired = [words[1] for words in tap.commands() if words[0] == "TW.FIRED"]
    assert sorted(fired) == ["s", "s2"]
    assert r.execute_command("TW.ACK", "s", "leased", token) == 1
    tap.close()


# Clocks

def assert_moved(end, wanted):
    """A lease has its length, or more by what a busy server needs to read two clocks."""
    assert 0 <= end - wanted < FAR, (end, wanted)


def set_clock(server, clock, ms):
    """Sets the clock, and waits until the server has seen that."""
    jumps = Counters(server)
    clock.push(ms)
    jumps.wait("clock_jumps")


def test_a_step_of_the_clock_moves_the_ends_of_leases(fleet):
    """In both directions, also if they have moved before. A lease ends when its time has passed."""
    clock = WallClock(fleet.folder)
    server = fleet.server(**clock.options)
    r = server.client()
    put_ready(r, "s", "a", options=("TRIES", 1))
    token = take(r, "s", lease=600000)["a"]
    end = task(r, "s", "a")["next"]
    for ms in (2 * FAR, -48 * FAR, 24 * FAR):
        set_clock(server, clock, ms)
        end += ms
        assert_moved(task(r, "s", "a")["next"], end)
    assert (state(r, "s", "a"), server.tw()["lapsed"], server.tw()["renewed"]) == ("leased", 0, 0)
    clock.elapse(600000 + FAR)  # Nobody was heard in so long a time.
    wait_until(lambda: server.tw()["renewed"] == 1)
    clock.elapse(600000)
    wait_until(lambda: server.tw()["lapsed"] == 1)
    assert r.execute_command("TW.ACK", "s", "a", token) == 1, "a late acknowledgement"


def test_the_lease_of_a_dead_worker_ends_though_the_clock_was_set_back(fleet):
    clock = WallClock(fleet.folder)
    server = fleet.server(**clock.options)
    leased(server.client(), lease=2000)
    clock.push(-3600000)
    wait_until(lambda: server.tw()["lapsed"] == 1)


def test_the_end_of_a_lease_that_has_moved_is_in_snapshots(fleet, clock):
    server = fleet.server()
    r = server.client()
    token, end = leased(r, lease=FAR), task(r, "s", "a")["next"]
    clock.push(-2 * FAR)
    wait_until(lambda: task(r, "s", "a")["next"] < end - FAR)
    moved = task(r, "s", "a")["next"]
    r.execute_command("DEBUG", "RELOAD")
    assert_moved(task(r, "s", "a")["next"], moved)
    moved = task(r, "s", "a")["next"]
    r.save()
    server.kill()
    server.start()
    assert task(server.client(), "s", "a")["next"] == moved
    assert server.once("TW.TOUCH", "s", "a", token, "LEASE", 5) == clock.now() + 5


def test_leases_that_end_in_a_small_step_of_the_clock_begin_anew_once(clock, server, r):
    """The workers had no time to end them. A server that was late takes off what it missed, and sees no step
    then: it gets another try."""
    for turn in range(100):
        leased(r, f"t{turn}", lease=900)
        counters = Counters(server)
        clock.push(950)
        wait_until(lambda counters=counters: counters["renewed"] + counters["lapsed"] == 1)
        if counters["renewed"]:
            break
    assert (state(r, "s", f"t{turn}"), attempt(r, f"t{turn}")) == ("leased", 1)
    counters = Counters(server)
    clock.push(950)
    counters.wait("lapsed")
    assert counters["renewed"] == 0


def test_leases_have_their_length_after_the_clock_was_set_back(fleet):
    clock = WallClock(fleet.folder)
    server = fleet.server(**clock.options)
    r = server.client()
    r.config_set("tickwheel.deliver", "no")
    r.config_set("tickwheel.deliver", "yes")  # Workers are served since now, by the clock that is wrong.
    set_clock(server, clock, -3600000)
    leased(r)
    outage_ended(server, 0, 1)


def test_a_task_is_given_back_after_the_clock_was_set_back(clock, server, r):
    """It is ready, as it was before the take, and the reply is the `next` that it has."""
    put_ready(r, "s", "a")
    token = take(r, "s", lease=FAR)["a"]
    clock.stand()
    clock.push(-3600000)
    replied = r.execute_command("TW.NACK", "s", "a", token, "BACK")
    found = task(r, "s", "a")
    assert (replied, found["next"], found["state"]) == (clock.now(), clock.now(), "ready")


WAIT_FOR_THE_CLOCK = """
local function left()
    local fields = redis.call('TW.GET', KEYS[1], 'far')[1]
    for i = 1, #fields, 2 do
        if fields[i] == 'remaining' then return fields[i + 1] end
    end
end
local before = left()
redis.log(redis.LOG_WARNING, 'a script waits for the clock')
while math.abs(left() - before) < 1000000 do end
return redis.call(unpack(ARGV))
"""


@pytest.mark.parametrize("ms", [2 * FAR, -2 * FAR])
@pytest.mark.parametrize("how", ["take", "touch"])
def test_a_lease_that_begins_between_a_step_of_the_clock_and_the_next_iteration(clock, server, r, how, ms):
    """The clock is set while a script runs. No lease has ended for hours."""
    clock.elapse(3 * FAR)
    put(r, "s", "far", at=clock.now() + 100 * FAR)
    put_ready(r, "s", "a", options=("TRIES", 1))
    words = ("TW.TAKE", 1, "s", "LEASE", 600000)
    if how == "touch":
        words = ("TW.TOUCH", "s", "a", take(r, "s", lease=FAR)["a"], "LEASE", 600000)
    counters, script = Counters(server), Raw(server)
    script.send("EVAL", WAIT_FOR_THE_CLOCK, 1, "s", *words)
    wait_until(lambda: "a script waits for the clock" in server.log())
    clock.push(ms)
    assert not isinstance(script.read(), Raw.Error)
    counters.wait("clock_jumps")
    assert_moved(task(r, "s", "a")["next"], clock.now() + 600000)
    assert (state(r, "s", "a"), counters["lapsed"], counters["renewed"]) == ("leased", 0, 0)


@pytest.mark.parametrize("files", FILES)
def test_a_lease_that_is_loaded_before_the_clock_is_corrected_has_its_length(fleet, clock, files):
    """The machine starts with a clock that is two hours slow."""
    server = fleet.server(**FILES[files])
    token = leased(server.client(), lease=600000)
    server.client().save()
    server.kill()
    clock.push(-2 * FAR)
    server.start()
    r = server.client()
    end = task(r, "s", "a")["next"]
    assert_moved(end, clock.now() + 600000)
    clock.go_on()
    set_clock(server, clock, 2 * FAR)
    assert_moved(task(r, "s", "a")["next"], end + 2 * FAR)
    assert r.execute_command("TW.ACK", "s", "a", token) == 1


def test_a_lease_has_its_length_on_a_replica_whose_clock_is_corrected(fleet):
    """The clock of the primary was right."""
    folder = os.path.join(fleet.folder, "slow")
    os.mkdir(folder)
    slow, master = WallClock(folder), fleet.server()
    slow.push(-2 * FAR)
    replica = fleet.server(replicaof=master, **slow.options)
    wait_replica_in_sync(master, replica)
    leased(master.client(), lease=600000)
    wait_replica_in_sync(master, replica)
    set_clock(replica, slow, 2 * FAR)
    assert_moved(task(replica.client(), "s", "a")["next"], task(master.client(), "s", "a")["next"])


def test_a_lease_right_after_the_clock_was_set_back(fleet):
    """It begins before any tick has seen the step, and holds nothing up."""
    clock = WallClock(fleet.folder)
    server = fleet.server(**clock.options)
    r = server.client()
    put_ready(r, "s", "a")
    clock.push(-7200000)
    take(r, "s", lease=3600000)
    put(r, "other", "b", at=now_ms() - 7200000)
    wait_state(r, "other", "b", "ready")
    assert (state(r, "s", "a"), server.tw()["renewed"]) == ("leased", 0)


def test_every_stage_when_the_clock_steps(fleet):
    """The ready task stays ready, and dead ones stay dead. A wait for another attempt ends by the new time, and
    a lease when its time has passed."""
    clock = WallClock(fleet.folder)
    server = fleet.server(**clock.options)
    r = server.client()
    stages = Stages(r)
    end = stages.tasks["leased"].pop("next")
    for ms in (-2 * FAR, 2 * FAR):
        set_clock(server, clock, ms)
        found, end = stages.look(r, "s"), end + ms
        assert_moved(found["leased"].pop("next"), end)
        assert found == stages.tasks and counts(server) == (1, 1, 2)
    clock.elapse(FAR + 5000)
    for name in ("ready", "waiting", "retry", "beat"):
        wait_state(r, "s", name, "ready")
    outage_ended(server, 1, 0)
    assert (counts(server), task(r, "s", "retry")["attempt"]) == ((4, 1, 2), 1)
    assert [stages.ack(r, "s", name) for name in ("leased", "retry")] == [1, 0]
