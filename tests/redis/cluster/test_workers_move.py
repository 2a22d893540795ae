# SPDX-License-Identifier: MIT
"""Workers and their tasks in a real cluster: a slot moves, a primary hands over, a primary dies. Workers that
wait are sent away, leases and tokens stay, and each task is given out by one node at a time."""
import pytest
from harness import HOST, Raw, now_ms, wait_replica_in_sync, wait_until
from situations import in_time, stays
from test_cluster import hand_over
from test_migration import Move
from workers import FAR, Stages, put, put_ready, take, wait_state, workers

JOBS = "{pay}:jobs"


@pytest.fixture
def move(fleet):
    return Move(fleet)


def digest_of(client, key):
    return client.execute_command("DEBUG", "DIGEST-VALUE", key)


def no_node_but_the_owner_gives_anything_out(move):
    """The cluster finds the keys of TW.TAKE, which follow a word."""
    for node in move.cluster.nodes:
        raw = Raw(node)
        reply = raw("TW.TAKE", "LEASE", 5, "KEYS", 2, "{pay}:no", "{pay}:more")
        moved = f"MOVED {move.slot} {HOST}:{move.source.port}"
        assert reply == (None if node is move.source else moved)
        assert raw("TW.TAKE", "LEASE", 5, "KEYS", 2, JOBS, "{other}:jobs").startswith("CROSSSLOT")
        raw.close()


def test_a_slot_moves_with_all_its_tasks_and_its_workers_are_sent_after_it(move):
    no_node_but_the_owner_gives_anything_out(move)
    stages = Stages(move.client, JOBS)
    before = digest_of(move.client, JOBS)
    with (workers(move.source, 1, "{pay}:empty") as of_nothing,
          workers(move.source, 1, "{pay}:paused") as stopped):
        move.client.execute_command("TW.PAUSE", "{pay}:paused", "ON")
        put(move.client, "{pay}:paused", "a")
        move.begin()
        move.carry("{pay}:paused")
        move.carry(JOBS)
        assert digest_of(move.there, JOBS) == before
        move.end()
        for one in of_nothing + stopped:
            assert str(one.reply()) == f"MOVED {move.slot} {HOST}:{move.target.port}"
    assert move.client.execute_command("CLUSTER", "COUNTKEYSINSLOT", move.slot) == 0
    stages.wait_there(move.there, JOBS)
    stages.work_on(move.there, JOBS)
    with workers(move.target, 1, "{pay}:paused", "{pay}:empty") as crew:
        put(move.there, "{pay}:empty", "b")
        assert crew[0].ids() == ["b"]
    assert move.there.execute_command("TW.PAUSE", "{pay}:paused", "OFF") == 1
    wait_state(move.there, "{pay}:paused", "a", "ready")
    assert (move.source.tw()["leased"], move.source.tw()["ready"], move.source.tw()["dead"]) == (0, 0, 0)


def test_tasks_become_ready_while_their_slot_moves(move):
    """The old node serves its worker while the schedule is there; then nobody gives out anything until the new
    node owns the slot."""
    due = now_ms() + 1200
    put(move.client, JOBS, "early", at=due - 700)
    put(move.client, JOBS, "late", at=due)
    with workers(move.source, 2, JOBS) as crew:
        move.begin()
        assert crew[0].ids() == ["early"]
        move.carry(JOBS)
        in_time(due)
        wait_until(lambda: move.target.tw()["ready"] == 1)
        stays(lambda: not crew[1].served(), 0.3, "the old node serves a worker after the schedule has left")
        move.end()
        assert str(crew[1].reply()).startswith("MOVED")
    with workers(move.target, 1, JOBS, wait=False) as crew:
        assert crew[0].ids() == ["late"]


@pytest.mark.long(only=True)
def test_a_lease_runs_out_while_its_slot_moves(move):
    """The attempt fails on the node that owns the slot, once."""
    put_ready(move.client, JOBS, "a", options=("TRIES", 2, "BACKOFF", FAR, 1, FAR))
    token, end = take(move.client, JOBS, lease=900)["a"], now_ms() + 900
    move.begin()
    move.carry(JOBS)
    in_time(end)
    wait_until(lambda: now_ms() > end + 100)
    asked = move.asked(move.target, "TW.GET", JOBS, "a")
    assert "leased" in asked[0] and move.target.tw()["lapsed"] == 0
    move.end()
    wait_state(move.there, JOBS, "a", "waiting")
    assert (move.target.tw()["lapsed"], move.source.tw()["lapsed"]) == (1, 0)
    assert move.there.execute_command("TW.ACK", JOBS, "a", token) == 1


OPTIONS = {"cluster-replica-validity-factor": 0, "cluster-allow-replica-migration": "no"}


@pytest.mark.long(only=True)
def test_handing_over_while_workers_wait(fleet):
    """CLUSTER FAILOVER, there and back."""
    cluster = fleet.cluster(3, 1, **OPTIONS)
    old = cluster.owner(JOBS)
    new = cluster.replica_of(old)
    stages = Stages(old.client(), JOBS)
    for _ in range(2):
        with workers(old, 2, "{pay}:empty") as crew:
            wait_replica_in_sync(old, new)
            hand_over(cluster, old, new)
            for one in crew:
                assert str(one.reply()).split()[0] in ("UNBLOCKED", "MOVED")
        cluster.wait_ok()
        stages.wait_there(new.client(), JOBS)
        with workers(new, 1, "{pay}:empty") as crew:
            put(new.client(), "{pay}:empty", "a")
            assert crew[0].ids() == ["a"]
        wait_until(lambda old=old: old.info("replication").get("master_link_status") == "up")
        old, new = new, old
    stages.work_on(old.client(), JOBS)


@pytest.mark.long(only=True)
def test_a_primary_dies(fleet):
    """Its replica goes on with the leases that had reached it, and with other tokens."""
    cluster = fleet.cluster(3, 1, **OPTIONS)
    old = cluster.owner(JOBS)
    new = cluster.replica_of(old)
    stages = Stages(old.client(), JOBS)
    put_ready(old.client(), "{pay}:brief", "a", options=("TRIES", 1))
    brief, end = take(old.client(), "{pay}:brief", lease=1000)["a"], now_ms() + 1000
    wait_replica_in_sync(old, new)
    in_time(end)
    old.kill()
    wait_until(lambda: new.info("replication")["role"] == "master", message="the replica was not promoted")
    cluster.wait_ok()
    r = new.client()
    wait_until(lambda: new.tw()["renewed"] == 1)
    assert r.execute_command("TW.ACK", "{pay}:brief", "a", brief) == 1
    stages.wait_there(r, JOBS)
    stages.work_on(r, JOBS)
