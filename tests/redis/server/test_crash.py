# SPDX-License-Identifier: MIT
"""A server is killed while clients add, move and cancel tasks and many tasks become due. Which state does it
have afterwards?

load.py says how the tests judge that. The state must be the state after some first part of each client's
history, with every task pending or delivered, once. How long that part is at least depends on appendfsync.

SIGKILL ends the process, not the machine, so bytes that Redis has handed to the kernel stay. A kill seldom
comes in the middle of a write. To end the server there, the tests limit the size of its files. To imitate a
power cut, they cut the file back to a length that it had up to a second earlier. That is more than `everysec`
would lose on a sound disk.

TICKWHEEL_CRASH_ROUNDS: rounds of the test with `always` (15; 50 in `make rounds`). The other tests do a tenth
    as many each.

TICKWHEEL_SEED: the seed of the random choices, which a test that fails prints. The moments of the kills are
    the machine's own.
"""
import os
import re
import resource
import threading

import pytest

from eventually import any_moment
from harness import PATIENCE, ROOT, now_ms, wait_until
from load import NEVER, Books, Maker, Reader, Worker, seeded
from situations import aof_path, extent

ROUNDS = int(os.environ.get("TICKWHEEL_CRASH_ROUNDS") or extent(10, 15, 50))
CLIENTS = 3
STREAM = "unpaid"
PLACES = [("timeouts", STREAM, "stream"), ("timeouts", "mails", "list"), ("retries", STREAM, "stream")]
QUEUES, STREAMS, LISTS = ["timeouts", "retries"], [STREAM], ["mails"]
HELD_BACK_MS = 2000  # Redis may hold back writes of everysec for this time while the disk is slow.


class Crash:
    """A server, its clients and the books about them, round after round."""

    def __init__(self, fleet, rng, **options):
        self.rng = rng
        self.server = fleet.server(appendonly="yes", **{"auto-aof-rewrite-percentage": 0, **options})
        self.books = Books(QUEUES, STREAMS, LISTS)
        self.makers = [Maker(self.books.line(f"c{k}"), self.rng, PLACES) for k in range(CLIENTS)]
        self.done = self.rewrites = 0

    def round(self, least, most, rewrite=None, killed=None, torn=False, lasts_ms=0):
        """Puts a load of `least` to `most` commands on the server, for `lasts_ms` at least, and ends it by
        SIGKILL or in the middle of a write. Returns the entries that a consumer saw, and the time of the
        end."""
        for maker in self.makers:
            maker.rng = type(self.rng)(
                self.rng.randrange(1 << 32))  # One for each, as the order of the threads is not fixed.
        crew = [Worker(self.server, maker) for maker in self.makers]
        reader = Reader(lambda: self.server, STREAM)
        for thread in [*crew, reader]:
            thread.start()
        wait_until(lambda: all(worker.done or worker.failure for worker in crew), message="no client gets on")
        commands, ends = self.rng.randrange(least, most), now_ms() + lasts_ms
        wait_until(lambda: sum(worker.done for worker in crew) >= commands and now_ms() >= ends
                   or any(worker.failure for worker in crew), message=lambda: f"not {commands} commands")
        if rewrite:
            rewrite()
        at = now_ms()
        if torn:
            self.tear()
        else:
            self.server.kill()
        if killed:
            killed()
        reader.halt.set()
        for worker in crew:
            worker.finish()
            self.done += worker.done
        return reader.finish(), at

    def tear(self):
        """Ends the server in the middle of a write: it cannot write beyond a random byte of its append-only
        file."""
        room = os.path.getsize(aof_path(self.server)) + self.rng.randrange(1000, 20000)
        self.server.expected_to_die = True
        resource.prlimit(self.server.pid, resource.RLIMIT_FSIZE, (room, room))
        self.server.expect_end()

    def revive(self):
        self.server.start()
        self.books.read(self.server.client())

    def go_on(self):
        for maker in self.makers:
            maker.go_on()

    def start_rewrite(self):
        """Starts a rewrite that is certainly still running at the kill: it waits at each key for longer than
        a busy machine needs."""
        client = self.server.client()
        client.config_set("rdb-key-save-delay", 60000000)
        client.bgrewriteaof()
        wait_until(lambda: self.server.info("persistence")["aof_rewrite_in_progress"],
                   message="no rewrite began")
        any_moment(self.rng, 0.1)
        assert self.server.info("persistence")["aof_rewrite_in_progress"] == 1
        self.rewrites += 1

    def finish_rewrite(self):
        """Runs a rewrite under load that ends before the kill."""
        before = self.server.log().count("Background AOF rewrite finished successfully")
        self.server.client().bgrewriteaof()
        wait_until(lambda: self.server.log().count("Background AOF rewrite finished successfully") > before,
                   message="the rewrite did not end")
        any_moment(self.rng, 0.1)
        self.rewrites += 1


@pytest.mark.long
def test_always_loses_nothing_and_doubles_nothing(fleet):
    """All rounds use the same folder, so tasks outlive many crashes, and rewrites that were cut off or
    completed."""
    crash = Crash(fleet, seeded())
    books = crash.books
    for number in range(ROUNDS):
        rewrite = {2: crash.start_rewrite, 4: crash.finish_rewrite}.get(number % 5)
        if number % 10 == 4:
            crash.server.client().config_set("aof-use-rdb-preamble", "no")
        seen, _ = crash.round(50, 1500, rewrite, torn=number % 3 == 0)
        crash.revive()
        for line in books.lines:
            line.promise_acked()
        lost, _ = books.settle()
        assert lost == 0
        for entry, name, due, _ in seen:
            assert books.entry_of.get((name, due)) == entry, f"round {number}: a consumer saw {name} in {entry}"
        crash.go_on()
    books.wait_delivered(crash.server.client())
    books.settle()
    print(
        f"{ROUNDS} kills, {crash.rewrites} in or after a rewrite; {crash.done} commands acknowledged, "
        f"{sum(map(len, books.delivered.values()))} deliveries, {len(books.pending)} pending; "
        "the file ended within "
        f"a command {crash.server.log().count('Truncating the AOF')} times")
    assert crash.rewrites >= ROUNDS // 5 * 2 and books.pending and len(books.closed) > ROUNDS


class Lengths(threading.Thread):
    """Records the length of the append-only file, all the time."""
    PERIOD_S = 0.01

    def __init__(self, folder):
        super().__init__(daemon=True)
        folder = os.path.join(folder, "appendonlydir")
        grows = next(name for name in sorted(os.listdir(folder)) if name.endswith(".incr.aof"))
        self.path = os.path.join(folder, grows)
        self.halt, self.taken = threading.Event(), []

    def run(self):
        while not self.halt.wait(self.PERIOD_S):
            before = now_ms()
            self.taken.append((before, os.path.getsize(self.path)))

    def finish(self):
        self.halt.set()
        self.join(PATIENCE)

    def cut_back(self, rng, most_ms):
        """Cuts the file back to a length that it had at most `most_ms` before it grew for the last time, or
        into the command at that place. Returns the time at which the file had this length."""
        self.finish()
        whole = os.path.getsize(self.path)
        shorter = [taken for taken in self.taken if taken[1] < whole]
        at, length = rng.choice([taken for taken in shorter if taken[0] >= shorter[-1][0] - most_ms])
        os.truncate(self.path, min(whole, length + rng.randrange(0, 200)))
        return at


@pytest.mark.long
@pytest.mark.parametrize("power_cut", [False, True], ids=["killed", "file-cut-back"])
def test_everysec_loses_the_last_two_seconds_at_most(fleet, power_cut):
    """Only the end of each client's history may be gone, never a part of its middle, and the Stream has no
    entry twice. A consumer may have seen a delivery that is gone; it then sees the delivery again, with the
    same tw.id and tw.due."""
    rng, worst, gone, again, done, promised = seeded(), 0, 0, 0, 0, 0
    for _ in range(max(2, ROUNDS // 10)):
        crash = Crash(fleet, rng, appendfsync="everysec")
        books, lengths, cut = crash.books, Lengths(crash.server.folder), []
        lengths.start()
        seen, at = crash.round(1000,
                               6000,
                               killed=lambda: cut.append(lengths.cut_back(rng, 1000) if power_cut else NEVER),
                               lasts_ms=HELD_BACK_MS + 2000)
        lengths.finish()
        since = min(cut[0], at) - HELD_BACK_MS
        crash.revive()
        for line in books.lines:
            line.promise_acked(since)
            promised += line.promised
        count, earliest = books.settle()
        gone, worst, done = gone + count, max(worst, at - earliest if earliest else 0), done + crash.done
        for entry, name, due, when in seen:
            if books.entry_of.get((name, due)) != entry:
                assert when >= since, f"a consumer saw {name} {at - when} ms before the kill"
                again += 1
        books.wait_delivered(crash.server.client())
        books.settle()
        crash.server.kill()
    assert promised, "no command was older than what may be lost: this test proves nothing"
    print(
        f"{done} commands acknowledged, {promised} of them promised; {gone} gone, from {worst} ms before the "
        "kill on; "
        f"{again} deliveries that a consumer had seen were gone")
    if power_cut:
        assert gone, "no cut took anything: this test proves nothing"


def test_snapshots_alone_go_back_to_the_last_one(fleet, clock):
    """Without an append-only file, a crash undoes all additions, cancellations and deliveries since the
    snapshot."""
    server = fleet.server(save="3600 1")
    client = server.client()
    due, add = clock.now() + 1500, ["TW.SEND", "timeouts", STREAM]
    client.execute_command(*add, "delivered", "AT", due, "PAYLOAD", "of", "delivered")
    client.execute_command(*add, "cancelled", "IN", 3600000, "PAYLOAD", "of", "cancelled")
    client.save()
    client.execute_command("TW.CANCEL", "timeouts", "cancelled")
    client.execute_command(*add, "added", "IN", 3600000, "PAYLOAD", "of", "added")
    clock.reach(due)
    wait_until(lambda: client.xlen(STREAM) == 1, message="it was not delivered")
    first = client.xrange(STREAM)
    server.kill()
    server.start()
    client = server.client()
    wait_until(lambda: client.xlen(STREAM) == 1, message="it was not delivered again")
    again = client.xrange(STREAM)
    assert again[0][0] != first[0][0] and again[0][1] == first[0][1]
    assert [name for name, *_ in client.execute_command("TW.RANGE", "timeouts", "-", "+")] == ["cancelled"]


def test_consumers_as_in_the_document(server, r):
    """Runs the recipe of docs/durability.md. A delivery that comes twice is processed once, and the delivery
    of the next period is processed too."""
    with open(os.path.join(ROOT, "docs", "durability.md"), encoding="utf-8") as file:
        recipe = re.search(r"```python\n(.*?)```", file.read(), re.DOTALL).group(1)
    names = {}
    exec(recipe, names)  # pylint: disable=exec-used
    unpaid, twice = "{pay}:unpaid", ["IN", 0, "EVERY", 1, "TIMES", 2, "MISSED", "burst"]
    r.execute_command("TW.SEND", "{pay}:timeouts", unpaid, "a", *twice, "PAYLOAD", "by", 5)
    wait_until(lambda: r.xlen(unpaid) == 2, message="it was not delivered")
    r.xadd(unpaid, r.xrange(unpaid)[0][1])
    r.xgroup_create(unpaid, "workers", "0")

    def work(pipe, fields):
        pipe.incrby("sum", fields["by"])
    worked = [names["handle"](r, unpaid, "workers", entry, fields, work)
              for entry, fields in r.xreadgroup("workers", "one", {unpaid: ">"})[0][1]]
    assert worked == [True, True, False] and r.get("sum") == "10"
    assert r.xpending(unpaid, "workers")["pending"] == 0
