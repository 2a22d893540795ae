# SPDX-License-Identifier: MIT
"""Queues in a cluster: which node accepts a command, and how tasks survive when a primary dies or hands
over."""
import pytest
import redis
from redis.crc import key_slot

from harness import HOST, Raw, any_moment, in_order, now_ms, wait_replica_in_sync, wait_until
from load import Reader, Shards, go_on, seeded

OPTIONS = {"appendonly": "yes", "cluster-replica-validity-factor": 0, "cluster-allow-replica-migration": "no"}
TAGS = [f"t{k}" for k in range(24)]


def test_both_keys_in_one_slot(fleet):
    """Queue and target must share a slot, and a node serves only its own slots."""
    cluster = fleet.cluster(3)
    owner = cluster.owner("{a}:timeouts")
    other = next(node for node in cluster.nodes if node is not owner)
    due = now_ms() + 3600000
    raw = Raw(owner)
    assert raw("TW.SEND", "{a}:timeouts", "{b}:unpaid", "x", "AT", due, "PAYLOAD", "f",
               "v").startswith("CROSSSLOT")
    assert raw("TW.SEND", "{a}:timeouts", "{a}:unpaid", "x", "AT", due, "PAYLOAD", "f", "v") == "x"
    slot = owner.once("CLUSTER", "KEYSLOT", "{a}")
    away = Raw(other)
    for words in (["TW.SEND", "{a}:timeouts", "{a}:unpaid", "y", "AT", due, "PAYLOAD", "f",
                   "v"], ["TW.CANCEL", "{a}:timeouts",
                          "x"], ["TW.MOVE", "{a}:timeouts", "x", "AT",
                                 due], ["TW.LEN", "{a}:timeouts"], ["TW.GET", "{a}:timeouts",
                                                                    "x"], ["TW.NEXT", "{a}:timeouts"],
                  ["TW.SCAN", "{a}:timeouts",
                   0], ["TW.RANGE", "{a}:timeouts", "-",
                        "+"], ["TW.FORECAST", "{a}:timeouts"],
                  ["TW.PROMOTE", "{a}:timeouts", "ALL"], ["TW.INFO", "{a}:timeouts"]):
        assert away(*words) == f"MOVED {slot} {HOST}:{owner.port}", words
    assert raw("TW.LEN", "{a}:timeouts") == 1
    raw.close()
    away.close()


def test_one_client_library_finds_all_queues(fleet):
    """redis-py's cluster client finds the keys by COMMAND."""
    cluster = fleet.cluster(3)
    client = redis.RedisCluster(host=HOST, port=cluster.nodes[0].port, decode_responses=True)
    for tag in TAGS:
        client.execute_command("TW.SEND", f"{{{tag}}}:timeouts", f"{{{tag}}}:unpaid", tag, "IN", 50, "PAYLOAD",
                               "f", "v")
    for tag in TAGS:
        wait_until(lambda tag=tag: client.xlen(f"{{{tag}}}:unpaid") == 1, message=f"{tag} did not come")
    assert sum(node.tw()["delivered"] for node in cluster.nodes) == len(TAGS)
    assert all(node.tw()["delivered"] for node in cluster.nodes), "the tags do not reach every node"
    client.close()


@pytest.mark.parametrize("reads", ["no", "yes"])
def test_a_cluster_that_is_down_costs_no_try(fleet, reads):
    """A past bug: a node that may still read refuses writes with another text, and the task died."""
    cluster = fleet.cluster(3, cluster_allow_reads_when_down=reads)
    node, other_slot = cluster.owner("{a}"), key_slot(b"a") + 1
    r = node.client()
    r.config_set("tickwheel.deliver", "no")
    r.execute_command("TW.SEND", "{a}:timeouts", "{a}:out", "x", "IN", 0, "TRIES", 1, "PAYLOAD", "f", "v")
    r.execute_command("CLUSTER", "DELSLOTS", other_slot)
    wait_until(lambda: cluster.state(node)["cluster_state"] == "fail")
    r.config_set("tickwheel.deliver", "yes")
    wait_until(lambda: node.tw()["deferred_slot"] + node.tw()["dead"] > 0)
    assert (node.tw()["deferred_refused"], node.tw()["dead"]) == (0, 0)
    r.execute_command("CLUSTER", "ADDSLOTS", other_slot)
    wait_until(lambda: node.tw()["delivered"] == 1, node.tail)


def test_no_node_takes_another_config_epoch_when_the_nodes_meet(fleet):
    """A primary and its replica may come to have the same one, and then no takeover gets the slots."""
    cluster = fleet.cluster(3, 1, loglevel="verbose")
    for i, node in enumerate(cluster.nodes):
        assert f"configEpoch set to {i + 1} via CLUSTER SET-CONFIG-EPOCH" in node.log()
        assert "configEpoch collision" not in node.log()


@pytest.fixture
def loaded(fleet):
    """A cluster with a replica for each primary, under load by clients that WAIT for the replica."""
    cluster = fleet.cluster(3, 1, **OPTIONS)
    shards = Shards(cluster, TAGS, seeded())
    owners = {tag: cluster.owner(f"{{{tag}}}") for tag in TAGS}
    crew = shards.start(wait=(1, 1000))
    wait_until(lambda: all(books.lines[0].promised for books in shards.books.values())
               or any(worker.failure for worker in crew), message="WAIT confirms nothing")
    return cluster, shards, owners


def readers(shards, tags, node):
    """Starts consumers of three Streams of a node."""
    found = [Reader(lambda: node, shards.books[tag].streams[0]) for tag in tags[:3]]
    for reader in found:
        reader.start()
    return found


def test_a_primary_is_killed(loaded):
    cluster, shards, owners = loaded
    old = owners[TAGS[0]]
    replica = cluster.replica_of(old)
    consumers = readers(shards, [tag for tag in TAGS if owners[tag] is old], old)
    go_on(shards.crew)
    any_moment(shards.rng, 0.5)
    old.kill()
    cluster.take_over(replica)
    for reader in consumers:
        reader.server = lambda: replica
        reader.sees_more()
    shards.finish()
    gone = shards.judge(promise=lambda tag: owners[tag] is not old)
    came_late = replica.tw()["delivered"]
    assert came_late > 0

    # The old primary comes back with the data of its file, and behaves as a primary until it hears of the new
    # one.
    mark = len(old.log())
    old.start()
    wait_until(lambda: old.info("replication").get("master_link_status") == "up",
               message="the old one does not follow")
    wait_replica_in_sync(replica, old)
    assert old.tw()["delivered"] == 0 or served_before_it_followed(old.log()[mark:])
    for tag in TAGS:
        if owners[tag] is old:
            same(replica, old, shards.books[tag])
    for reader in consumers:
        reader.finish()
    print(
        f"{shards.deliveries()} deliveries; "
        f"{gone} commands that were acknowledged without WAIT are gone; consumers "
        f"saw {sum(reader.doubles() for reader in consumers)} deliveries twice")


def same(new, old, books):
    """Asserts that replica and primary hold the same data."""
    def held(node):
        with_replica = Raw(node)
        with_replica("READONLY")
        found = [in_order(with_replica, queue) for queue in books.queues]
        found += [with_replica("XRANGE", stream, "-", "+") for stream in books.streams]
        found += [with_replica("LRANGE", key, 0, -1) for key in books.lists]
        with_replica.close()
        return found
    assert held(new) == held(old)


def served_before_it_followed(log):
    """Whether a node that has come back believed in a whole cluster, two seconds after its start, before
    another node told it of its successor: Redis has it be a primary then."""
    return 0 <= log.find("Cluster state changed: ok") < log.find("Reconfiguring myself as a replica")


def test_handing_over_under_load(loaded):
    """CLUSTER FAILOVER: the primary stops writing until its replica has everything. Nothing is lost, not even
    commands that were acknowledged without WAIT. Nothing comes twice, not even for a consumer that changes
    over."""
    cluster, shards, owners = loaded
    old = owners[TAGS[0]]
    tags, new = [tag for tag in TAGS if owners[tag] is old], cluster.replica_of(old)
    for _ in range(2):
        consumers = readers(shards, tags, old)
        for reader in consumers:
            reader.sees_more()
        cluster.hand_over(old, new)
        cluster.wait_ok()
        wait_until(lambda old=old: old.info("replication").get("master_link_status") == "up",
                   message="no replica")
        for reader in consumers:
            reader.server = lambda new=new: new
        for reader in consumers:
            reader.sees_more()
            assert reader.finish() and reader.doubles() == 0
        old, new = new, old
    shards.finish()
    assert shards.judge() == 0
    assert sum(node.tw()["delivered"] for node in cluster.nodes) == shards.deliveries()
