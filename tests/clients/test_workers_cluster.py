# SPDX-License-Identifier: MIT
"""Workers of all languages in a cluster. Each has queues on every node. They share the cluster, but no
queue."""
import contextlib
import re

import pytest
from harness import HOST, Raw, wait_until
from redis.crc import key_slot
from situations import put
from subject import NOTHING, Subject, languages, release
from test_cluster import OPTIONS
from test_migration import reshard, tags_below

LANGUAGES = [one for one in languages() if one != "command"]  # The queues of the command lie in one slot.
LEASE = 15000  # Longer than a failover takes, for the server and for the workers.
TURN_MS = 1000  # The groups of queues share places by turns: no TW.TAKE waits for longer.
pytestmark = pytest.mark.library


class Town:
    """A cluster, and a worker of each language for three queues, one on each primary."""

    def __init__(self, fleet, folder, replicas, tags):
        self.cluster, self.folder, self.crew = fleet.cluster(3, replicas, **OPTIONS), folder, {}
        self.tags = tags
        for language in LANGUAGES:
            url = f"redis://{HOST}:{self.cluster.nodes[0].port}"
            self.crew[language] = Subject(language, *self.queues(language), url=url, cluster=True,
                                          lease=LEASE)
        self.done = 0

    def queues(self, language):
        return [f"{{{tag}}}:{language}" for tag in self.tags]

    def put(self, name, act):
        for language in LANGUAGES:
            for queue in self.queues(language):
                put(self.cluster.owner(queue).client(), queue, name, payload=(act,))

    def wait(self, word, name):
        for language, subject in self.crew.items():
            for queue in self.queues(language):
                subject.wait(word, queue, name, 1)

    def works(self, name):
        """Each worker does a job of each queue."""
        self.put(name, "ok")
        self.wait("end", name)
        self.done += len(self.tags)

    def works_in_turns(self, name):
        """The same. No queue waits for a place until a whole BLOCK of another queue is over."""
        with monitored(self.cluster.primaries()) as commands:
            self.works(name)
        blocks = [int(ms) for ms in re.findall(r'"BLOCK" "(\d+)"', "\n".join(commands))]
        assert blocks and max(blocks) <= TURN_MS, blocks

    def hold(self):
        """Each worker has a job of each queue, and so one place of four is left for three queues."""
        self.put("held", f"until {self.folder / 'held'}")
        self.wait("begin", "held")

    def finish(self):
        """The jobs end; all is acknowledged, in the first attempt, and counted."""
        release(self.folder / "held")
        self.wait("end", "held")
        self.done += len(self.tags)
        for language, subject in self.crew.items():
            for queue in self.queues(language):
                client = self.cluster.owner(queue).client()
                wait_until(lambda client=client, queue=queue: not client.exists(queue),
                           message=subject.story)
            assert len(subject.wait("begin", count=self.done)) == self.done, subject.story()
            assert subject.stop() == {**NOTHING, "done": self.done}, subject.story()


@contextlib.contextmanager
def monitored(servers):
    """Yields a list, which has all commands of these servers at the end."""
    links, commands = {server: Raw(server) for server in servers}, []
    for link in links.values():
        assert link("MONITOR") == "OK"
    yield commands
    for server, link in links.items():
        server.once("ECHO", "that is all")
        while '"that is all"' not in (line := link.read()):
            commands.append(line)
        link.close()


def tag_of_each_node(nodes=3):
    """Returns a hash tag for each primary of a cluster whose slots are evenly spread."""
    found = {}
    for number in range(1000):
        found.setdefault(key_slot(f"t{number}".encode()) * nodes // 16384, f"t{number}")
    return [found[at] for at in range(nodes)]


@pytest.fixture
def town(fleet, tmp_path):
    made = []

    def build(replicas, tags):
        made.append(Town(fleet, tmp_path, replicas, tags))
        return made[-1]
    yield build
    for one in made:
        for subject in one.crew.values():
            subject.close()


def test_a_primary_hands_over_while_workers_work(town):
    """CLUSTER FAILOVER: each job is done once, and soon after."""
    tags = tag_of_each_node()
    place = town(1, tags)
    place.works("first")
    place.hold()
    old = place.cluster.owner(f"{{{tags[1]}}}")
    place.cluster.hand_over(old, place.cluster.replica_of(old))
    place.cluster.wait_ok()
    place.works_in_turns("second")
    place.works_in_turns("third")
    place.finish()


@pytest.mark.long(only=True)
def test_a_primary_is_killed_while_workers_work(town):
    tags = tag_of_each_node()
    place = town(1, tags)
    place.works("first")
    place.hold()
    old = place.cluster.owner(f"{{{tags[1]}}}")
    new = place.cluster.replica_of(old)
    old.kill()
    place.cluster.take_over(new)
    place.works("second")
    place.finish()


@pytest.mark.long(only=True)
def test_slots_move_while_workers_work(town):
    """redis-cli moves the slots of two of the three queues to another node, and back."""
    slots = 300
    tags = [*tags_below(slots, 2), tag_of_each_node()[2]]
    place = town(0, tags)
    place.works("first")
    place.hold()
    nodes = place.cluster.nodes
    reshard(place.cluster, nodes[0], nodes[1], slots, tags[0])
    place.works("second")
    reshard(place.cluster, nodes[1], nodes[0], slots, tags[0])
    place.works("third")
    place.finish()
