# SPDX-License-Identifier: MIT
"""The servers of queues with tasks for workers, under load by crew.py, in rounds. Each round ends in its own
way, mostly with the end of a server, and then everything is judged (judge.py)."""
import contextlib
import itertools
import os
import re
import resource

from crew import LEDGER, QUEUES, Operator, Producer, Shop, Worker, ms
from harness import (HOST, PATIENCE, Raw, any_moment, as_map, now_ms, parse_info, wait_replica_in_sync,
                     wait_until)
from judge import Judge
from ledger import ANY, NO_TASK, Gap
from situations import aof_path, digest

OPTIONS = {"appendonly": "yes", "auto-aof-rewrite-percentage": 0}
COUNTS = ["put", "replaced", "cancelled", "moved", "taken", "done", "failed", "back",
          "replayed", "purged"]


def offered_by(reply):
    """How many tasks of a queue that is not paused workers could take, by TW.INFO."""
    if isinstance(reply, Raw.Error):
        return 0
    told = as_map(reply)
    return told["ready"] - told["late"]


class House:
    """A primary, its replica, and the judge of both."""

    def __init__(self, fleet, rng):
        self.rng, self.shop, self.judge = rng, Shop(rng), Judge(QUEUES)
        self.read = self.done = self.blocked = self.gaps = 0
        self.baseline, self.crew = None, []
        self.puts, self.perhaps = set(), set()  # Conditions may have refused a put without a reply.
        self.primary, self.replica = self.servers(fleet)

    def servers(self, fleet):
        """Starts the servers. Returns the primary and its replica."""
        primary = fleet.server(**OPTIONS)
        replica = fleet.server(replicaof=primary, **OPTIONS)
        wait_replica_in_sync(primary, replica)
        return primary, replica

    # Ends of a round. Each returns whether a command or a take may be lost, although its reply had come.

    def nothing_lost(self, _):
        return False

    def unless_promised(self, one):
        return not one.promised

    def ended_by(self, stop, start, away_ms=None):
        """Ends the present server, and begins another life of it or of its replica, some time later."""
        began = self.served()
        away_ms = self.rng.choice([0, 50, 200, 400]) if away_ms is None else away_ms
        stop()
        for client in self.crew:
            client.halt.set()  # None of them connects to the next life.
        down = now_ms()
        wait_until(lambda: now_ms() >= down + away_ms)
        up = now_ms()
        start()
        self.judge.gaps.append(Gap(began, down, up, now_ms()))

    def served(self):
        """Returns when the server has certainly served: if it replies, it has done all that was due."""
        return max((deed.end for deed in self.shop.deeds), default=self.judge.passed)

    def let_pass(self):
        """Waits until everything that is due by now has had its turn, and returns this time."""
        client, due = self.primary.client(), now_ms()
        client.execute_command("TW.SEND", "{w}:marks", "{w}:marked", "mark", "AT", due, "PAYLOAD", "of", "mark")
        wait_until(lambda: client.delete("{w}:marked"), self.primary.tail)
        self.judge.counts["put"] += 1
        return due

    def quiet(self):
        """Nothing happens, and all replies come."""
        self.finish()
        return self.nothing_lost

    def kill(self, away_ms=None):
        self.ended_by(self.primary.kill, self.primary.start, away_ms)
        return self.nothing_lost

    def kill_twice(self):
        """Leases that end while the server is down are renewed, and end again while it is down again."""
        self.kill(400)
        self.finish()
        self.judge_round(self.nothing_lost, True)
        self.begin_round()
        return self.kill(1200)

    def tear(self):
        """Ends the server in the middle of a write: it cannot write beyond a random byte of its file."""
        self.ended_by(self.write_until_full, self.primary.start)
        return self.nothing_lost

    def write_until_full(self):
        room = os.path.getsize(aof_path(self.primary)) + self.rng.randrange(100, 20000)
        self.primary.expected_to_die = True
        resource.prlimit(self.primary.pid, resource.RLIMIT_FSIZE, (room, room))
        self.primary.expect_end()

    def rewrite(self):
        """A rewrite under load, and a crash in it or after it."""
        client = self.primary.client()
        client.config_set("aof-use-rdb-preamble", self.rng.choice(["yes", "no"]))
        client.bgrewriteaof()
        any_moment(self.rng, 0.3)
        return self.kill()

    def reload(self):
        """DEBUG RELOAD under load."""
        began = self.served()
        self.primary.once("DEBUG", "RELOAD")
        self.judge.gaps.append(Gap(began, began, began, now_ms()))
        return self.quiet()

    def promote(self):
        """The primary is killed, its replica takes over, and the old primary follows it."""
        self.ended_by(self.primary.kill, lambda: self.replica.once("REPLICAOF", "NO", "ONE"))
        self.judge.gaps[-1].began -= 1000  # The replica may lag, and miss the end of a lease.
        self.exchange()
        self.replica.start()
        return self.unless_promised

    def failover(self):
        """A planned failover, which loses nothing."""
        wait_until(lambda: "online" in str(self.primary.info("replication").get("slave0")),
                   message="no replica")
        began = self.served()
        self.primary.once("FAILOVER", "TO", HOST, self.replica.port)
        for server, role in ((self.replica, "master"), (self.primary, "slave")):
            wait_until(lambda server=server, role=role: server.info("replication")["role"] == role,
                       message="no failover")
        self.judge.gaps.append(Gap(began, began, began, now_ms()))
        self.exchange()
        return self.nothing_lost

    def exchange(self):
        self.primary, self.replica = self.replica, self.primary
        self.primary.replicaof, self.replica.replicaof = None, self.primary

    COMMANDS = 100, 300  # of a round, before it ends
    ENDS = [quiet, promote, failover, kill_twice, tear, rewrite, reload, kill]
    PROMISES = [promote]  # Replies that WAIT has not confirmed may be lost.
    DISORDER = [reload]  # Ready tasks may come in another order afterwards, while the clients go on.

    # A round

    def begin_round(self):
        self.shop.deeds, self.shop.takes, self.shop.names[""] = [], [], []

    def sync(self):
        wait_replica_in_sync(self.primary, self.replica)

    def round(self, how):
        self.begin_round()
        promises = how in self.PROMISES
        if promises or how is House.failover:
            self.sync()
        self.crew = self.clients((1, 1000) if promises else None)
        ordered = how not in self.DISORDER
        for client in self.crew:
            client.start()
        self.load()
        may_lose = how(self)
        self.finish()
        self.judge_round(may_lose, ordered)
        if how is House.quiet:
            self.compare()

    def clients(self, wait, nodes=None):
        usual = self.shop, self.primary, wait, nodes
        return [Producer(*usual), Operator(*usual),
                *(Worker(*usual, blocks=blocks) for blocks in (False, False, True, True))]

    def load(self):
        """Waits until the clients have done some work."""
        goal = self.rng.randrange(*self.COMMANDS)
        wait_until(lambda: sum(client.done for client in self.crew) >= goal
                   or any(client.failure for client in self.crew), "no load")
        any_moment(self.rng, 0.1)

    def finish(self):
        for client in self.crew:
            client.finish()
            self.done += client.done
        self.crew = []

    # Judgement

    def look(self):
        """Reads everything at one moment."""
        raw, names = Raw(self.primary), {}
        for queue in QUEUES:
            known = {name for name, states in self.judge.tasks[queue].items() if states != (NO_TASK,)}
            filed = {deed.name for deed in self.shop.deeds if deed.queue == queue and deed.name}
            names[queue] = sorted(known | filed | {"none"})
        looks = [[["TW.GET", queue, *names[queue]], ["TW.SCAN", queue, 0, "COUNT", 100000],
                  ["TW.DEAD", queue, "COUNT", 10000], ["TW.LEN", queue], ["TW.INFO", queue]]
                 for queue in QUEUES]
        raw.send_all([["MULTI"], ["LRANGE", LEDGER, self.read, -1], ["TIME"], *itertools.chain(*looks),
                      ["INFO", "tickwheel"], ["EXEC"]])
        for _ in range(len(looks) * 5 + 4):
            raw.read()
        answers = raw.read()
        rows = {}
        for k, queue in enumerate(QUEUES):
            found = dict(zip(names[queue], answers[2 + 5 * k]))
            copies = [name for name, *_ in answers[3 + 5 * k][1] if name not in found]
            assert all("@" in name for name in copies), f"nobody put {copies}"
            rows[queue] = found, copies, answers[4 + 5 * k], answers[5 + 5 * k], offered_by(answers[6 + 5 * k])
        raw.close()
        return answers[0], ms(answers[1]), rows, parse_info(answers[-1])

    def judge_round(self, may_lose, ordered):
        try:
            self.judge_all(may_lose, ordered)
        except AssertionError as fault:
            self.tell(str(fault))
            raise

    def tell(self, fault):
        """Prints the history, in this round, of the tasks that a fault names."""
        names = set(re.findall(r"\bt\d+", fault))
        for gap in self.judge.gaps:
            print(gap.__dict__)
        for one in [*self.shop.deeds, *self.shop.takes]:
            if names & set(re.findall(r"\bt\d+", str(one))):
                print(one)

    def judge_all(self, may_lose, ordered):
        passed = self.let_pass()
        for gap in self.judge.gaps[self.gaps:]:
            gap.ended = now_ms()
        self.gaps = len(self.judge.gaps)
        numbers, now, looks, info = self.look()
        for take in self.shop.takes:
            self.judge.add_take(take)
        self.judge.nameless |= set(self.shop.names[""])
        self.judge.copies = {(queue, name): error for queue, (_, _, dead, _, _) in looks.items()
                              for name, _, _, _, error, *_ in dead}
        self.judge.unknown = {}
        self.judge.copies.update({(deed.queue, deed.name): ANY for deed in self.shop.deeds})
        self.judge.ordered, self.judge.passed = ordered, passed
        self.replay(numbers, may_lose)
        rows = {queue: look[0] for queue, look in looks.items()}
        self.judge.settle_takes(self.shop.takes, rows, may_lose)
        for queue, (found, copies, dead, length, offered) in looks.items():
            self.judge.check_all(queue, found, now, offered)
            self.check_dead(queue, copies, dead)
            there = [row for row in self.there(queue).values() if row.stage != "dead"]
            assert length == len(there), f"{queue}: TW.LEN is {length}, and {len(there)} are there"
        self.check_counts(info)
        self.judge.nameless.clear()
        for queue in QUEUES:
            self.judge.forget_order(queue)

    def replay(self, numbers, may_lose):
        """Plays the commands that the ledger names, in its order."""
        deeds = {deed.number: deed for deed in self.shop.deeds}
        for position, number in enumerate(numbers, self.read + 1):
            deed = deeds.pop(number)
            assert deed.position in (-1, position), f"{deed} was at another place of the ledger, {position}"
            self.judge.play(deed)
            if deed.kind == "put" and deed.reply is not None:
                perhaps = deed.reply is ... and deed.about["conditions"]
                (self.perhaps if perhaps else self.puts).add(deed.number)
        for deed in deeds.values():
            assert deed.reply is ... or may_lose(deed), f"{deed} is lost"
        self.read += len(numbers)

    def there(self, queue):
        return {name: states[0] for name, states in self.judge.tasks[queue].items()
                if states != (NO_TASK,)}

    def check_dead(self, queue, copies, dead):
        """TW.DEAD lists the dead tasks that the judge knows, the first death first, with their errors."""
        known = {name: row for name, row in self.there(queue).items() if row.stage == "dead"}
        assert sorted(known) == sorted(row[0] for row in dead), f"{queue}: {copies} {dead} {known}"
        assert [row[2] for row in dead] == sorted(row[2] for row in dead), dead
        for name, due, at, *rest in dead:
            row = known[name]
            assert [due, *rest] == [row.due, row.begun, row.error, row.lapses, None], (row, dead)
            assert row.at in (0, at), (row, dead)

    def check_counts(self, info):
        """INFO counts the states of the tasks, and the commands of the clients."""
        told = {key[len("tickwheel_"):]: value for key, value in info.items()}
        all_tasks = [row for queue in QUEUES for row in self.there(queue).values()]
        for stage in ("leased", "dead"):
            assert told[stage] == sum((row.behind or row).stage == stage for row in all_tasks), (stage, told)
        assert told["tasks"] == sum(row.stage != "dead" for row in all_tasks), told
        self.blocked += len(self.shop.takes)
        mine = {**self.judge.counts, "taken": self.judge.counts["taken"] + self.blocked}
        self.check_progress(told, mine)
        self.baseline = (self.primary.pid, told, mine)

    def check_progress(self, told, mine):
        if not self.baseline or self.baseline[0] != self.primary.pid:
            return
        if self.shop.names[""] or any(deed.reply is ... for deed in self.shop.deeds):
            return
        for count in COUNTS:
            counted = told[count] - self.baseline[1][count]
            assert counted == mine.get(count, 0) - self.baseline[2].get(count, 0), (count, counted, mine)

    def compare(self):
        """While nothing is written, both servers hold the same. A pause of writes is one of leases too."""
        client, began = self.primary.client(), self.served()
        client.execute_command("CLIENT", "PAUSE", PATIENCE * 1000, "WRITE")
        down = now_ms()
        try:
            self.sync()
            assert digest(self.primary) == digest(self.replica), "the replica differs"
        finally:
            up = now_ms()
            client.execute_command("CLIENT", "UNPAUSE")
            self.judge.gaps.append(Gap(began, down, up, now_ms()))

    # The end

    def work_off(self):
        """Workers without bad habits take and acknowledge everything, until only dead and far tasks stay."""
        self.begin_round()
        worker = Worker(self.shop, self.primary)
        far = now_ms() + 3600000
        worker.connect()
        with contextlib.closing(worker.raw):
            for queue in QUEUES:
                worker.do("pause", queue, "", ["TW.RESUME", queue], on=False)
            while any(self.near(worker.raw, queue, far) for queue in QUEUES):
                worker.held = []
                worker.take()
                for take in worker.held:
                    worker.ack(take)
        self.judge_round(self.nothing_lost, True)
        there = {row.payload for queue in QUEUES for row in self.there(queue).values()}
        ended = {payload for _, payload, _ in self.judge.ended}
        assert self.puts <= there | ended, f"without a fate: {self.puts - there - ended}"
        assert there | ended <= self.puts | self.perhaps, f"never put: {(there | ended) - self.puts}"

    @staticmethod
    def near(raw, queue, far):
        info = raw("TW.LEN", queue) - len(raw("TW.RANGE", queue, far, "+", "COUNT", 10000))
        return info > 0


def play(house, rounds):
    """Plays so many rounds, and works all tasks off at last. Returns the judge."""
    played = []
    try:
        for number in range(rounds):
            played.append(house.ENDS[number % len(house.ENDS)])
            house.round(played[-1])
        house.work_off()
    except BaseException:
        print(" ".join(how.__name__ for how in played))
        raise
    judge = house.judge
    print(f"{house.done} commands, {judge.counts['taken']} takes, {house.blocked} of blocked workers; "
          f"{judge.counts['back']} were given back, {judge.lapses} leases ran out, "
          f"{judge.renewals} were renewed, {judge.counts['promoted']} promoted; {dict(judge.fates)}")
    return judge
