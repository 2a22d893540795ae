# SPDX-License-Identifier: MIT
"""The model of many workers (house.py) where others decide who is the primary: a sentinel, and the nodes of a
cluster, whose slots also move from node to node.

TICKWHEEL_WORK_ROUNDS: rounds in the cluster (9); a third as many with the sentinel.
"""
import os

import pytest

from crew import LEDGER
from harness import CALM_MS, HASTY_MS, HOST, any_moment, now_ms, wait_replica_in_sync, wait_until
from house import OPTIONS, House, play
from ledger import Gap
from load import seeded

ROUNDS = int(os.environ.get("TICKWHEEL_WORK_ROUNDS") or 9)


class Watched(House):
    """A primary and its replica, which a sentinel watches."""

    def servers(self, fleet):
        primary, replica = super().servers(fleet)
        self.sentinel = fleet.sentinel(primary, quorum=1, failover_timeout_ms=3000)
        self.sentinel.hasten()
        self.sentinel.wait_sees(replicas=1)
        return primary, replica

    def is_promoted(self):
        return (self.sentinel.master_port() == self.replica.port
                and self.replica.info("replication")["role"] == "master")

    def elected(self):
        """The primary is killed, and the sentinel promotes its replica."""
        began = self.served()
        self.primary.kill()
        self.sentinel.time_out(HASTY_MS)
        wait_until(self.is_promoted, lambda: f"no promotion\n{self.sentinel.tail()}")
        self.sentinel.time_out(CALM_MS)
        self.judge.gaps.append(Gap(began - 1000, began, began, now_ms()))
        self.exchange()
        self.replica.start()
        self.sync()
        return self.unless_promised

    ENDS = [elected]
    PROMISES = [elected]


class Nodes(House):
    """The node of a cluster that has the slot of all keys, and its replica."""

    def servers(self, fleet):
        self.cluster = fleet.cluster(3, 1, **OPTIONS)
        self.moves = 0
        return self.there_now()

    def there_now(self):
        primary = self.cluster.owner(LEDGER)
        return primary, self.cluster.replica_of(primary)

    def settle(self, began, slot=False):
        """Waits until the nodes agree, and notes how long nobody may have served the slot."""
        self.cluster.wait_ok()
        self.judge.gaps.append(Gap(began - 1000, began, began, now_ms(), slot))
        self.primary, self.replica = self.there_now()
        wait_replica_in_sync(self.primary, self.replica)

    def clients(self, wait, nodes=None):
        return super().clients(wait, {node.port: node for node in self.cluster.nodes})

    def elected(self):
        """The primary is killed, and the nodes elect its replica."""
        began, old, new = self.served(), self.primary, self.replica
        old.kill()
        self.cluster.time_out(HASTY_MS, *self.cluster.alive())
        wait_until(lambda: new.info("replication")["role"] == "master", lambda: new.tail())
        self.judge.gaps.append(Gap(began - 1000, began, began, now_ms()))
        for client in self.crew:
            client.halt.set()
        old.start()
        self.cluster.time_out(CALM_MS, *self.cluster.primaries())
        self.settle(began)
        return self.unless_promised

    def hand_over(self):
        """CLUSTER FAILOVER, under load."""
        began, new = self.served(), self.replica
        self.cluster.hand_over(self.primary, new)
        self.settle(began)
        return self.nothing_lost

    def reshard(self):
        """The slot moves to another node, key by key, under load."""
        began, here = self.served(), self.primary
        there = next(node for node in self.cluster.primaries() if node is not here)
        slot = here.once("CLUSTER", "KEYSLOT", LEDGER)
        there.once("CLUSTER", "SETSLOT", slot, "IMPORTING", self.cluster.id(here))
        here.once("CLUSTER", "SETSLOT", slot, "MIGRATING", self.cluster.id(there))
        while keys := here.once("CLUSTER", "GETKEYSINSLOT", slot, 1):
            here.once("MIGRATE", HOST, there.port, keys[0], 0, 10000)
            self.moves += 1
            any_moment(self.rng, 0.1)
        for node in (there, here, *self.cluster.primaries()):
            node.once("CLUSTER", "SETSLOT", slot, "NODE", self.cluster.id(there))
        self.primary = there
        any_moment(self.rng, 0.3)
        self.finish()
        self.settle(began, slot=True)
        return self.nothing_lost

    ENDS = [reshard, hand_over, elected]
    PROMISES = [elected]
    DISORDER = [reshard, hand_over, elected]


@pytest.mark.long(only=True)
def test_a_sentinel_decides(fleet):
    judge = play(Watched(fleet, seeded()), max(1, ROUNDS // 3))
    assert judge.fates["done"] > 10 and judge.lapses


@pytest.mark.long(only=True)
def test_nodes_decide_and_slots_move(fleet):
    house = Nodes(fleet, seeded())
    judge = play(house, ROUNDS)
    assert judge.fates["done"] > 10 and judge.lapses and house.moves
