# SPDX-License-Identifier: MIT
"""Slots that migrate in a real cluster.

Redis 7 moves a slot key by key. Meanwhile a queue may be on one node and its target on the other. Each
node refuses to write a key that it does not have. So a delivery has to wait until both keys are on one node
and that node owns the slot.
"""
import itertools
import random

import pytest
import redis
from redis.crc import key_slot

from harness import HOST, Fleet, Raw, delivered, entries, now_ms, tasks, wait_until
from load import Reader, Shards, go_on, seeded

FAR = 3600000


def tags_below(slot, count):
    """Returns hash tags whose slots lie below this slot, because redis-cli takes a node's first slots."""
    found = (f"m{k}" for k in range(1 << 20) if key_slot(f"m{k}".encode()) < slot)
    return [next(found) for _ in range(count)]


def test_reshard_under_load(fleet):
    """redis-cli --cluster reshard there and back, while clients add, move and cancel and tasks come due. No
    node dies, so no acknowledged command may be lost, and consumers see each delivery once."""
    slots = 300
    tags = tags_below(slots, 12) + [f"t{k}" for k in range(6)]
    cluster = fleet.cluster(3, **{"appendonly": "yes"})
    shards = Shards(cluster, tags, seeded())
    source, target = cluster.owner(f"{{{tags[0]}}}"), cluster.nodes[1]
    assert source is cluster.nodes[0]
    crew = shards.start()
    place = {tag: cluster.owner(f"{{{tag}}}") for tag in tags}
    consumers = {tag: Reader(lambda tag=tag: place[tag], shards.books[tag].streams[0]) for tag in tags[:3]}
    for reader in consumers.values():
        reader.start()
    wait_until(lambda: all(worker.done > 300 or worker.failure for worker in crew), message="no load")
    for here, there in ((source, target), (target, source)):
        reshard(cluster, here, there, slots, tags[0])
        for tag in consumers:
            place[tag] = there
        go_on(crew)
    shards.finish()
    assert shards.judge() == 0
    assert sum(node.tw()["delivered"] for node in cluster.nodes) == shards.deliveries()
    told = sum((worker.told for worker in crew), start=type(crew[0].told)())
    assert told["MOVED"], "no client noticed"
    for tag, reader in consumers.items():
        stream = shards.books[tag].streams[0]
        wait_until(
            lambda reader=reader, tag=tag, stream=stream: len(reader.seen) >= shards.client(tag).xlen(stream),
            message="a consumer does not see all")
        seen = reader.finish()
        assert reader.doubles() == 0
        assert [entry for entry, *_ in seen] == [entry for entry, _ in entries(shards.client(tag), stream)]
    print(
        f"{sum(worker.done for worker in crew)} commands, {shards.deliveries()} deliveries; "
        f"told {dict(told)}; put "
        f"off because of a slot {sum(node.tw()['deferred_slot'] for node in cluster.nodes)} times")


def reshard(cluster, here, there, slots, tag):
    """Moves a node's first slots, which are the slots of the tags. On the way back they come before the other
    node's own slots."""
    cluster.cli("reshard", f"{HOST}:{here.port}", "--cluster-from", cluster.id(here), "--cluster-to",
                cluster.id(there), "--cluster-slots", slots, "--cluster-yes")
    cluster.wait_ok()
    assert cluster.owner(f"{{{tag}}}") is there


class Move:
    """A slot on its way from one node to another, step by step. Each has a slot of its own in a cluster that
    the tests of a file share."""

    NUMBERS = itertools.count()

    def __init__(self, cluster):
        self.cluster, self.tag = cluster, f"pay{next(self.NUMBERS)}"
        self.queue, self.stream = self.key("timeouts"), self.key("unpaid")
        self.slot = key_slot(self.tag.encode())
        self.source = self.cluster.owner(self.queue)
        self.target = next(node for node in self.cluster.nodes if node is not self.source)
        self.client, self.there = self.source.client(), self.target.client()
        self.before = {node: node.tw() for node in (self.source, self.target)}

    def key(self, name):
        return f"{{{self.tag}}}:{name}"

    def count(self, node, *names):
        """Returns how far these counters of a node have gone on."""
        found = node.tw()
        return tuple(found[name] - self.before[node][name] for name in names)

    def add(self, name, delay, *options, stream=None):
        due = now_ms() + delay
        self.client.execute_command("TW.SEND", self.queue, stream or self.stream, name, "AT", due, *options,
                                    "PAYLOAD", "of", name)
        return due

    def fall_due(self, node, *names, queue=None):
        """Has tasks fall due, in this order, on the node that has the queue. Returns their due times."""
        dues = {name: now_ms() - 10 + k for k, name in enumerate(names)}
        for name, due in dues.items():
            assert self.asked(node, "TW.MOVE", queue or self.queue, name, "AT", due) == 1
        return dues

    def let_pass(self, node):
        """Waits until the node has delivered a task of a slot that is its own and stays. All that was due
        before has had its turn then."""
        marks = (f"mark{k}" for k in itertools.count())
        tag = next(mark for mark in marks if self.cluster.owner(f"{{{mark}}}") is node)
        stream = f"{{{tag}}}:{next(self.NUMBERS)}"
        node.once("TW.SEND", f"{{{tag}}}:marks", stream, "mark", "IN", 0, "PAYLOAD", "of", "mark")
        wait_until(lambda: node.once("XLEN", stream) == 1, node.tail)
        self.before[node]["delivered"] += 1

    def begin(self):
        ids = self.cluster.id(self.source), self.cluster.id(self.target)
        self.there.execute_command("CLUSTER", "SETSLOT", self.slot, "IMPORTING", ids[0])
        self.client.execute_command("CLUSTER", "SETSLOT", self.slot, "MIGRATING", ids[1])

    def carry(self, key):
        assert self.client.execute_command("MIGRATE", HOST, self.target.port, key, 0, 10000) == "OK"

    def end(self):
        """Makes the target the owner of the slot."""
        for node in (self.target, self.source, *self.cluster.nodes):
            node.once("CLUSTER", "SETSLOT", self.slot, "NODE", self.cluster.id(self.target))
        self.cluster.wait_ok()

    def stay(self):
        """Calls the move off."""
        for client in (self.client, self.there):
            client.execute_command("CLUSTER", "SETSLOT", self.slot, "STABLE")

    def keys(self, node):
        return sorted(node.once("CLUSTER", "GETKEYSINSLOT", self.slot, 100))

    def put_off(self, node):
        """Waits until the node has found a due task that it may not deliver."""
        wait_until(lambda: self.count(node, "deferred_slot") > (0,), lambda: f"it put nothing off: {node.tw()}")
        self.let_pass(node)

    def asked(self, node, *words):
        """Reads a key of a slot that is being imported."""
        raw = Raw(node)
        assert raw("ASKING") == "OK"
        answer = raw(*words)
        raw.close()
        return answer


@pytest.fixture(scope="module")
def nodes():
    """A cluster that several tests share."""
    made = Fleet()
    yield made.cluster(3)
    made.close()


@pytest.fixture
def move(nodes):
    return Move(nodes)


def once_in_order(move, client, expected):
    """Asserts that all tasks were delivered, each once, in order, not before their times, and that none is
    left."""
    wait_until(lambda: client.xlen(move.stream) >= len(expected),
               message=lambda: f"delivered {delivered(client, move.stream)}")
    assert delivered(client, move.stream) == list(expected)
    for entry, fields in entries(client, move.stream):
        assert int(fields["tw.due"]) == expected[fields["tw.id"]] <= int(entry.split("-")[0])
        assert fields["tw.attempt"] == "1"


def one_delivered_two_to_come(move):
    """Makes a Stream, two tasks that are to fall due while the slot moves, and one task that is due much later.
    Returns the due time of the task that was delivered."""
    move.add("before", 0)
    wait_until(lambda: move.client.xlen(move.stream) == 1, message="the first did not come")
    for name in ("a", "b", "far"):
        move.add(name, FAR)
    move.begin()
    return {"before": int(entries(move.client, move.stream)[0][1]["tw.due"])}


def test_the_queue_goes_first(move):
    """Its tasks fall due on the new node while the Stream is still on the old node."""
    due = one_delivered_two_to_come(move)
    move.carry(move.queue)
    due |= move.fall_due(move.target, "a", "b")
    move.put_off(move.target)
    assert move.keys(move.source) == [move.stream] and move.keys(move.target) == [move.queue]
    assert move.asked(move.target, "TW.LEN", move.queue) == 3
    move.carry(move.stream)
    move.end()
    once_in_order(move, move.there, due)
    assert list(tasks(move.there, move.queue)) == ["far"] and move.count(move.source, "delivered") == (1,)


def test_the_stream_goes_first(move):
    """Tasks fall due on the old node while their Stream is already on the new node."""
    due = one_delivered_two_to_come(move)
    move.carry(move.stream)
    due |= move.fall_due(move.source, "a", "b")
    move.put_off(move.source)
    assert move.keys(move.source) == [move.queue] and move.keys(move.target) == [move.stream]
    assert move.client.execute_command("TW.LEN", move.queue) == 3
    move.carry(move.queue)
    move.end()
    once_in_order(move, move.there, due)
    assert list(tasks(move.there, move.queue)) == ["far"] and move.count(move.source, "delivered") == (1,)


def test_a_new_stream_in_a_slot_that_moves(move):
    """The old node may not create a key in a slot that it gives away: the key would be left behind."""
    for name in ("a", "b"):
        move.add(name, FAR)
    move.begin()
    due = move.fall_due(move.source, "a", "b")
    move.put_off(move.source)
    assert move.keys(move.source) == [move.queue] and move.keys(move.target) == []
    move.carry(move.queue)
    move.end()
    once_in_order(move, move.there, due)
    assert move.keys(move.source) == [] and move.keys(move.target) == [move.stream]
    assert move.count(move.source, "delivered") == (0,) and move.count(move.target, "delivered") == (2,)


def test_both_are_across_but_the_slot_is_not(move):
    """The new node has everything, but is not the owner yet."""
    for name in ("a", "far"):
        move.add(name, FAR)
    move.client.xadd(move.stream, {"tw.id": "mine", "tw.due": "0", "tw.attempt": "1"})
    move.begin()
    move.carry(move.stream)
    move.carry(move.queue)
    move.fall_due(move.target, "a")
    move.put_off(move.target)
    assert move.asked(move.target, "XLEN", move.stream) == 1
    move.end()
    wait_until(lambda: move.there.xlen(move.stream) == 2, message="it did not come")
    assert delivered(move.there, move.stream) == ["mine", "a"]


def test_a_move_that_is_called_off(move):
    """Tasks that waited are delivered where they are."""
    for name in ("a", "b", "c"):
        move.add(name, FAR)
    move.begin()
    due = move.fall_due(move.source, "a", "b", "c")
    move.put_off(move.source)
    move.stay()
    once_in_order(move, move.client, due)
    assert move.keys(move.target) == []


def test_what_is_not_due_keeps_everything(move):
    """A whole queue moves: the order of equal due times, repetition, options, payloads."""
    at, add = move.add("first", FAR), ["TW.SEND", move.queue]
    for k in range(600):
        move.client.execute_command(*add, move.stream, f"equal{k}", "AT", at, "PAYLOAD", "of", f"{k}")
    move.add("again", FAR, "EVERY", 1000, "TIMES", 5, "MAXLEN", 100000, "MAXLATE", 99)
    move.client.execute_command(*add, move.key("list"), "bare", "AT", at, "LIST", "PAYLOAD", "x" * 100000)
    rows = move.client.execute_command("TW.RANGE", move.queue, "-", "+")
    names = [name for name, *_ in rows]
    assert names[:601] == ["first", *(f"equal{k}" for k in range(600))]
    details = all_of(move.client, move.queue, names)
    digest = move.client.execute_command("DEBUG", "DIGEST-VALUE", move.queue)
    move.begin()
    move.carry(move.queue)
    move.end()
    assert move.there.execute_command("TW.RANGE", move.queue, "-", "+") == rows
    assert all_of(move.there, move.queue, names) == details
    assert move.there.execute_command("DEBUG", "DIGEST-VALUE", move.queue) == digest
    assert move.client.execute_command("CLUSTER", "COUNTKEYSINSLOT", move.slot) == 0
    promoted = 0
    while promoted < 603 and (some := move.there.execute_command("TW.PROMOTE", move.queue, "ALL")):
        promoted += some
    assert promoted == 603
    wait_until(lambda: delivered(move.there, move.stream)[:601] == names[:601])


def all_of(client, queue, names):
    """Returns the replies of TW.GET without `remaining`, which changes with time."""
    return [[part for k, part in enumerate(flat) if k // 2 != 1]
            for flat in client.execute_command("TW.GET", queue, *names)]


# Queues that are too large to be moved

MEGABYTE = 1 << 20  # The least value that proto-max-bulk-len may have.


class Growing:
    """A queue that grows by tasks whose payloads no server compresses. It is on one of two servers with
    that limit."""

    def __init__(self, fleet, payload):
        self.source, self.target = (fleet.server(appendonly="yes", proto_max_bulk_len="1mb") for _ in range(2))
        self.client = self.source.client(decode_responses=False)
        self.rng, self.payload, self.count = random.Random(payload), payload, 0

    def grow(self, count):
        pipe = self.client.pipeline(transaction=False)
        for i in range(self.count, self.count + count):
            pipe.execute_command("TW.SEND", "s", "out", f"{i:012}", "IN", FAR + self.rng.randrange(FAR),
                                 "PAYLOAD", "p", self.rng.randbytes(self.payload - 1))
        pipe.execute()
        self.count += count

    def dump(self):
        return self.client.dump("s")

    def warned(self):
        found = self.source.tw()
        assert (found["unmovable"] == 1) == ("proto-max-bulk-len" in found["warning"])
        return found["unmovable"] == 1

    def migrate(self, here, there):
        return here.once("MIGRATE", HOST, there.port, "s", 0, 30000)


@pytest.mark.parametrize("payload", [100, 1000, 20000])
def test_a_queue_that_is_too_large_to_be_moved_is_warned_of(fleet, payload):
    """The warning comes from four fifths of the limit on, and not later than at the limit. Below the limit
    the queue moves."""
    growing = Growing(fleet, payload)
    step = MEGABYTE // (payload + 60) // 50 + 1
    while not growing.warned():
        below = growing.dump() if growing.count else b""
        growing.grow(step)
    assert 0.77 * MEGABYTE < len(below) <= MEGABYTE  # A queue that was not warned of can be moved.
    # Steps of that size lead past the limit, where the server's allocator rounds up by little.
    if payload < 20000:
        assert len(growing.dump()) <= MEGABYTE
    growing.client.execute_command("TW.CANCEL", "s",
                                   *(f"{i:012}" for i in range(growing.count - step, growing.count)))
    growing.count -= step
    assert not growing.warned()
    assert growing.migrate(growing.source, growing.target) == "OK"
    assert growing.migrate(growing.target, growing.source) == "OK"
    while len(growing.dump()) <= MEGABYTE:
        assert growing.migrate(growing.source, growing.target) == growing.migrate(
            growing.target, growing.source) == "OK"
        growing.grow(step)
    assert growing.warned()
    with pytest.raises(redis.exceptions.ResponseError):
        growing.migrate(growing.source, growing.target)
    dump, count = growing.dump(), growing.client.execute_command("TW.LEN", "s")
    with pytest.raises(redis.exceptions.RedisError):
        growing.target.client().restore("copy", 0, dump)
    assert (count, growing.target.client().dbsize()) == (growing.count, 0)


def test_the_limit_that_is_warned_by_is_the_one_that_is_set(fleet):
    growing = Growing(fleet, 1000)
    growing.grow(1100)
    assert growing.warned()
    for server in (growing.source, growing.target):
        server.once("CONFIG", "SET", "proto-max-bulk-len", "2mb")
    assert not growing.warned()
    assert growing.migrate(growing.source, growing.target) == "OK"
    growing.target.once("CONFIG", "SET", "proto-max-bulk-len", "1mb")
    assert growing.target.tw()["unmovable"] == 1


def test_what_endangers_tasks_is_warned_of_first(fleet):
    server = fleet.server(proto_max_bulk_len="1mb")
    server.once("TW.SEND", "s", "out", "a", "IN", FAR, "PAYLOAD", "p", "x" * 900000)
    server.once("TW.SEND", "s", "out", "b", "IN", FAR, "PAYLOAD", "p", "x" * 900000)
    found = server.tw()
    assert found["unmovable"] == 1 and "nothing is saved" in found["warning"] and "proto-max-bulk-len" in found[
        "warning"]
