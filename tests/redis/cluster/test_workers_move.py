# SPDX-License-Identifier: MIT
"""Workers and their tasks in a real cluster: a slot moves, a primary hands over, a primary dies. Workers that
wait are sent away, leases and tokens stay, and each task is given out by one node at a time."""
import pytest
import test_migration
from harness import HOST, Raw, now_ms, wait_replica_in_sync, wait_until
from workers import FAR, Stages, frozen_before, put, put_ready, spans, take, wait_state, workers

JOBS = "{pay}:jobs"
nodes, move = test_migration.nodes, test_migration.move  # fixtures


def digest_of(client, key):
    return client.execute_command("DEBUG", "DIGEST-VALUE", key)


def no_node_but_the_owner_gives_anything_out(move):
    """The cluster finds the keys of TW.TAKE, which follow a word."""
    for node in move.cluster.nodes:
        raw = Raw(node)
        reply = raw("TW.TAKE", 2, move.key("no"), move.key("more"), "LEASE", 5)
        moved = f"MOVED {move.slot} {HOST}:{move.source.port}"
        assert reply == (None if node is move.source else moved)
        assert raw("TW.TAKE", 2, move.queue, "{other}:jobs", "LEASE", 5).startswith("CROSSSLOT")
        raw.close()


def test_a_slot_moves_with_all_its_tasks_and_its_workers_are_sent_after_it(move):
    no_node_but_the_owner_gives_anything_out(move)
    stages = Stages(move.client, move.queue)
    before = digest_of(move.client, move.queue)
    with (workers(move.source, 1, move.key("empty")) as of_nothing,
          workers(move.source, 1, move.key("paused")) as stopped):
        move.client.execute_command("TW.PAUSE", move.key("paused"))
        put(move.client, move.key("paused"), "a")
        move.begin()
        move.carry(move.key("paused"))
        move.carry(move.queue)
        assert digest_of(move.there, move.queue) == before
        move.end()
        for one in of_nothing + stopped:
            assert str(one.reply()) == f"MOVED {move.slot} {HOST}:{move.target.port}"
    assert move.client.execute_command("CLUSTER", "COUNTKEYSINSLOT", move.slot) == 0
    stages.wait_there(move.there, move.queue)
    stages.work_on(move.there, move.queue)
    with workers(move.target, 1, move.key("paused"), move.key("empty")) as crew:
        put(move.there, move.key("empty"), "b")
        assert crew[0].ids() == ["b"]
    assert move.there.execute_command("TW.RESUME", move.key("paused")) == 1
    wait_state(move.there, move.key("paused"), "a", "ready")
    assert move.count(move.source, "leased", "ready", "dead") == (0, 0, 0)


def test_tasks_become_ready_while_their_slot_moves(move):
    """The old node serves its worker while the queue is there; then nobody gives out anything until the new
    node owns the slot."""
    put(move.client, move.queue, "early", at=now_ms() + FAR)
    put(move.client, move.queue, "late", at=now_ms() + FAR)
    with workers(move.source, 2, move.queue) as crew:
        move.begin()
        move.fall_due(move.source, "early")
        assert crew[0].ids() == ["early"]
        move.carry(move.queue)
        move.fall_due(move.target, "late")
        wait_until(lambda: move.count(move.target, "ready") == (1,))
        move.let_pass(move.source)
        move.end()
        assert str(crew[1].reply()).startswith("MOVED")
    with workers(move.target, 1, move.queue, wait=False) as crew:
        assert crew[0].ids() == ["late"]


@pytest.mark.long(only=True)
def test_a_lease_runs_out_while_its_slot_moves(move):
    """The attempt fails on the node that owns the slot, once."""
    put_ready(move.client, move.queue, "a", options=("TRIES", 2, "BACKOFF", FAR, 1, FAR))
    token = take(move.client, move.queue)["a"]
    move.begin()
    move.carry(move.queue)
    end = move.asked(move.target, "TW.TOUCH", move.queue, "a", token, "LEASE", 1)
    wait_until(lambda: now_ms() > end)
    move.let_pass(move.target)
    asked = move.asked(move.target, "TW.GET", move.queue, "a")
    assert "leased" in asked[0] and move.count(move.target, "lapsed") == (0,)
    move.end()
    wait_state(move.there, move.queue, "a", "waiting")
    assert move.count(move.target, "lapsed") + move.count(move.source, "lapsed") == (1, 0)
    assert move.there.execute_command("TW.ACK", move.queue, "a", token) == 1


OPTIONS = {"cluster-replica-validity-factor": 0, "cluster-allow-replica-migration": "no"}


@pytest.mark.long(only=True)
def test_handing_over_while_workers_wait(fleet):
    """CLUSTER FAILOVER, there and back."""
    cluster = fleet.cluster(3, 1, **OPTIONS)
    old = cluster.owner(JOBS)
    new = cluster.replica_of(old)
    stages = Stages(old.client(), JOBS)
    for name in ("there", "back"):
        with workers(old, 2, "{pay}:empty") as crew:
            wait_replica_in_sync(old, new)
            cluster.hand_over(old, new)
            for one in crew:
                assert str(one.reply()).split()[0] in ("UNBLOCKED", "MOVED")
        cluster.wait_ok()
        stages.wait_there(new.client(), JOBS)
        with workers(new, 1, "{pay}:empty") as crew:
            put(new.client(), "{pay}:empty", name)
            assert crew[0].ids() == [name]
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
    for span in spans():
        put_ready(old.client(), "{pay}:brief", "a", options=("TRIES", 1))
        begin = now_ms()
        brief = take(old.client(), "{pay}:brief", lease=span)["a"]
        end = now_ms() + span
        wait_replica_in_sync(old, new)
        if frozen_before(old, begin + span):
            break
        old.client().delete("{pay}:brief")
    old.kill()
    wait_until(lambda: now_ms() > end)
    cluster.take_over(new)
    r = new.client()
    wait_until(lambda: new.tw()["renewed"] == 1)
    assert r.execute_command("TW.ACK", "{pay}:brief", "a", brief) == 1
    stages.wait_there(r, JOBS)
    stages.work_on(r, JOBS)
