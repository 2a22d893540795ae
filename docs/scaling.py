#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The arithmetic of docs/scaling.md: from the measurements of one server to the needs of a million, or a
billion, tasks.

usage: scaling.py TABLE          prints a table in Markdown; TABLE is one of: measured assumed sizes failover
                                 waits keys spread grow
       scaling.py TABLE --tasks N --wait SECONDS --share N
                                 the same for N tasks, each pending for so long on average, N on each primary
       scaling.py --write FILE   fills in each table of a document, between
                                 `<!-- computed: docs/scaling.py TABLE -->` and `<!-- end of table -->`
       scaling.py --check FILE   fails if --write would change a table in it

The measurements are read from bench/results. The assumptions are below, by name.
"""
import argparse
import csv
import dataclasses
import math
import pathlib
import re
import sys

RESULTS = pathlib.Path(__file__).resolve().parent.parent / "bench" / "results"
MARKED = re.compile(
    r"(?<=^<!-- computed: docs/scaling\.py )(?P<table>\w+) -->\n(?P<text>.*?)(?=^<!-- end of table -->$)",
    re.MULTILINE | re.DOTALL)
MINUTE, HOUR, DAY = 60, 3600, 86400

# ---- measurements --------------------------------------------------------------------------------------------


def read(name, *keys):
    """Returns a table of results as {(key, ...): median}."""
    with open(RESULTS / name, encoding="utf-8", newline="") as file:
        return {
            tuple(row[key] for key in keys): float(row["median"])
            for row in csv.DictReader(file, delimiter="\t")
        }


class Measured:
    """The costs of one task for one server; us are time of the server's one thread."""
    rates = read("2026-11-21-redis/redis.tsv", "side", "pending", "load", "pipeline", "metric")
    marks = read("2026-11-21-footprint/footprint.tsv", "load", "metric")

    memory = rates["tickwheel", "1000000", "memory", "100", "bytes"]
    add_us = rates["tickwheel", "1000000", "aof_add", "1", "cpu_us"]
    deliver_us = rates["tickwheel", "1000000", "deliver", "0", "s"]  # s for a million
    load_us = rates["tickwheel", "5000000", "load_rdb", "0", "s"] / 5
    late_p99_ms = rates["tickwheel", "1000000", "late_idle", "0", "info_p99_us"] / 1000
    snapshot, save_us = marks["snapshot", "bytes"], marks["snapshot", "us"]
    dump_us, restore_us = marks["dump", "us"], marks["restore", "us"]
    consume_us, entry = marks["consume", "us"], marks["entry", "bytes"]
    add_log, deliver_log = marks["add", "log_bytes"], marks["deliver", "log_bytes"]


class Assumed:
    """Values that were not measured here."""
    share = 50e6       # tasks on one primary, at most
    busy = 0.5         # of a primary's thread; the rest is for peaks and for other commands
    link = 100e6       # bytes a second: a gigabit
    window_s = 15      # cluster-node-timeout, Redis' default
    election_s = 2     # until a replica has asked for votes and got them
    lag_s = 0.01       # by which a replica is behind
    pages = 10         # of 4 KiB, that a task changes in its life while a snapshot is written
    backlog_s = 600    # between the delivery of an entry and its reading
    argument = 2**29   # proto-max-bulk-len, Redis' default: bytes of one argument; a queue moves as one
    full = 0.5  # of that, because queues are not equally large, and the module warns from three quarters on
    gentle = 10000     # tasks of a queue whose move nobody notices


# ---- conclusions ---------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Plan:
    """`tasks` are pending, each for `wait_s` on average, at most `share` of them on one primary."""
    tasks: float
    wait_s: float = DAY
    share: float = Assumed.share

    @property
    def rate(self):
        """Tasks filed, and as many delivered, in a second."""
        return self.tasks / self.wait_s

    @property
    def life_us(self):
        """Time of a primary's thread for one task, from beginning to end."""
        return Measured.add_us + Measured.deliver_us + Measured.consume_us

    @property
    def by_memory(self):
        return math.ceil(self.tasks / self.share)

    @property
    def by_rate(self):
        return math.ceil(self.rate * self.life_us / 1e6 / Assumed.busy)

    @property
    def primaries(self):
        """A cluster has at least three. If one server is enough, there is no cluster."""
        needed = max(self.by_memory, self.by_rate)
        return needed if needed == 1 else max(needed, 3)

    @property
    def tasks_each(self):
        return self.tasks / self.primaries

    @property
    def rate_each(self):
        return self.rate / self.primaries

    @property
    def busy_each(self):
        return self.rate_each * self.life_us / 1e6

    @property
    def memory_each(self):
        return self.tasks_each * Measured.memory

    @property
    def entries_each(self):
        return self.rate_each * Assumed.backlog_s * Measured.entry

    @property
    def snapshot_each(self):
        return self.tasks_each * Measured.snapshot

    @property
    def save_s(self):
        return self.tasks_each * Measured.save_us / 1e6

    @property
    def load_s(self):
        return self.tasks_each * Measured.load_us / 1e6

    @property
    def resync_s(self):
        """Time until a new replica has the data: its snapshot is written, then sent, then loaded."""
        return self.save_s + self.snapshot_each / Assumed.link + self.load_s

    @property
    def copied_each(self):
        """Memory that exists twice during a snapshot: the pages that change meanwhile, at most all."""
        return min(self.memory_each, self.rate_each * self.save_s * Assumed.pages * 4096)

    @property
    def machine_each(self):
        return self.memory_each + self.entries_each + self.copied_each

    @property
    def log_each(self):
        """Bytes a second for the file, and for each replica."""
        return self.rate_each * (Measured.add_log + Measured.deliver_log)

    @property
    def outage_s(self):
        return Assumed.window_s + Assumed.election_s

    @property
    def due_meanwhile(self):
        return self.rate_each * self.outage_s

    @property
    def catch_up_s(self):
        """Time to deliver these tasks, while further tasks fall due at the same rate."""
        spare = 1e6 / Measured.deliver_us - self.rate_each
        return self.due_meanwhile / spare

    @property
    def moved(self):
        """Tasks that move to one more primary, so that all primaries have the same number."""
        return self.tasks / (self.primaries + 1)

    @property
    def unsafe(self):
        """Commands and deliveries that the replica had not received."""
        return self.rate_each * Assumed.lag_s


# ---- numbers for people --------------------------------------------------------------------------------------


def count(number):
    return f"{number:,.0f}" if number >= 10 else f"{number:.1f}".removesuffix(".0")


def two(number):
    """Two significant digits, without an exponent."""
    if number == 0:
        return "0"
    digits = 1 - math.floor(math.log10(abs(number)))
    text = f"{round(number, digits):,.{max(0, digits)}f}"
    return text.removesuffix(".0")


def scaled(number, steps, unit):
    for limit, name in steps:
        if number >= limit:
            return f"{two(number / limit)} {name}{unit}"
    return f"{two(number)} {unit}"


def size(number):
    return scaled(number, ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")), "B")


def time(seconds):
    for limit, name in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (1, "s")):
        if seconds >= limit:
            return f"{two(seconds / limit)} {name}"
    return f"{two(seconds)} s" if seconds >= 0.1 else f"{two(seconds * 1000)} ms"


def share(part):
    return f"{two(part * 100)} %"


# ---- tables --------------------------------------------------------------------------------------------------


def table(head, rows):
    lines = [f"| {' | '.join(line)} |\n" for line in [head, *rows]]
    return "".join([lines[0], "|---" * len(head) + "|\n", *lines[1:]])


def across(plans, rows):
    """Returns a table with a column for each plan, and a row for each (name, function of a plan)."""
    return table(["tasks pending", *(count(plan.tasks) for plan in plans)],
                 [[name, *(value(plan) for plan in plans)] for name, value in rows])


def measured(_):
    us, m = lambda value: f"{two(value)} us", Measured
    redis, footprint = "redis.tsv", "footprint.tsv"
    return table(["of one task", "", "from"], [
        ["memory", f"{count(m.memory)} bytes", f"{redis}: memory"],
        ["in a snapshot", f"{count(m.snapshot)} bytes", f"{footprint}: snapshot"],
        [
            "in the append-only file, and to each replica",
            f"{count(m.add_log)} bytes filed, {count(m.deliver_log)} delivered", f"{footprint}: add, deliver"
        ],
        ["its entry in the Stream", f"{count(m.entry)} bytes", f"{footprint}: entry"],
        [
            "filing it, one command at a time, append-only file on",
            us(m.add_us), f"{redis}: aof_add, pipeline 1"
        ],
        ["delivering it", us(m.deliver_us), f"{redis}: deliver"],
        ["XREADGROUP and XACK, 100 entries at a time",
         us(m.consume_us), f"{footprint}: consume"],
        ["writing it to a snapshot", us(m.save_us), f"{footprint}: snapshot"],
        ["loading it from a snapshot of 5,000,000",
         us(m.load_us), f"{redis}: load_rdb"],
        ["DUMP and RESTORE of its queue",
         us(m.dump_us + m.restore_us), f"{footprint}: dump, restore"],
    ])


def assumed(_):
    a = Assumed
    return table(["assumption", "value", "why"], [
        [
            "tasks on one primary, at most",
            count(a.share), "a snapshot then loads in well under a minute; see the table"
        ],
        ["its thread is busy at most", share(a.busy), "peaks; other commands"],
        ["network", f"{size(a.link)}/s", "a gigabit"],
        ["until a primary counts as dead",
         time(a.window_s), "`cluster-node-timeout`, Redis' default"],
        [
            "until its replica is elected",
            time(a.election_s), "half a second to one by Redis' cluster specification, and as much again"
        ],
        ["a replica is behind by", time(a.lag_s), "one data centre, an idle link"],
        [
            "pages of 4 KiB changed by a task's life",
            count(a.pages), "task, table, two neighbours, Stream; filed and delivered; no two share one"
        ],
        ["delivered and not yet read",
         time(a.backlog_s), "consumers that are restarted"],
        [
            "one argument of a command, at most", f"{a.argument >> 20} MiB",
            "`proto-max-bulk-len`, Redis' default"
        ],
    ])


def sizes(plans):
    return across(plans, [
        ["filed and delivered in a second", lambda p: count(p.rate)],
        ["memory of all tasks", lambda p: size(p.tasks * Measured.memory)],
        ["primaries for the memory / for the rate", lambda p: f"{p.by_memory} / {p.by_rate}"],
        ["**primaries, and as many replicas**", lambda p: f"**{p.primaries}**"],
        ["tasks on each", lambda p: count(p.tasks_each)],
        ["thread of each busy", lambda p: share(p.busy_each)],
        ["memory of each: tasks", lambda p: size(p.memory_each)],
        ["- entries not yet read", lambda p: size(p.entries_each)],
        ["- a snapshot's copies of pages", lambda p: size(p.copied_each)],
        ["- together", lambda p: size(p.machine_each)],
        ["snapshot of each", lambda p: size(p.snapshot_each)],
        ["- written / loaded in", lambda p: f"{time(p.save_s)} / {time(p.load_s)}"],
        ["- a new replica has it after", lambda p: time(p.resync_s)],
        ["append-only file and replication, each", lambda p: f"{size(p.log_each)}/s"],
        ["- the file grows in a day by", lambda p: size(p.log_each * DAY)],
        ["- kept for a new replica meanwhile", lambda p: size(p.log_each * p.resync_s)],
        ["- kept for one that was cut off for a minute", lambda p: size(p.log_each * MINUTE)],
    ])


def failover(plans):
    return across(plans, [
        ["nothing is delivered for its part of the tasks", lambda p: time(p.outage_s)],
        ["that part", lambda p: share(1 / p.primaries)],
        ["tasks that fall due meanwhile", lambda p: count(p.due_meanwhile)],
        ["delivered by the new primary within", lambda p: time(p.catch_up_s)],
        ["latest delivery", lambda p: time(p.outage_s + p.catch_up_s)],
        ["commands without WAIT undone, deliveries made again: about", lambda p: count(p.unsafe)],
    ])


def waits(plans):
    spans = [MINUTE, 10 * MINUTE, 30 * MINUTE, HOUR, DAY, 30 * DAY]
    tasks, per = max(plan.tasks for plan in plans), max(plan.share for plan in plans)
    made = [Plan(tasks, span, per) for span in spans]
    return table([
        f"{count(tasks)} tasks, each pending for", "filed in a second", "for the memory", "for the rate",
        "primaries", "thread of each busy"
    ], [[time(p.wait_s),
         count(p.rate),
         str(p.by_memory),
         str(p.by_rate),
         str(p.primaries),
         share(p.busy_each)] for p in made])


def move_s(tasks):
    """Time of MIGRATE for so many tasks: DUMP, sending, RESTORE. Both servers wait meanwhile."""
    return tasks * ((Measured.dump_us + Measured.restore_us) / 1e6 + Measured.snapshot / Assumed.link)


def movable():
    """Number of tasks in the largest queue that MIGRATE can carry."""
    return int(Assumed.argument / Measured.snapshot)


def keys(_):
    return table(["tasks in the queue", "both servers wait for"],
                 [[count(tasks), time(move_s(tasks)) if tasks <= movable() else "it cannot be moved"]
                  for tasks in (10 ** power for power in range(3, 8))])


def spread(plans):
    return across(plans, [
        [
            "queues, so that each can be moved",
            lambda p: count(math.ceil(p.tasks / (movable() * Assumed.full)))
        ],
        ["- so that nobody notices", lambda p: count(math.ceil(p.tasks / Assumed.gentle))],
    ])


def grow(plans):
    return across([plan for plan in plans if plan.primaries > 1], [
        ["primaries", lambda p: f"{p.primaries} and one more"],
        ["tasks that move", lambda p: count(p.moved)],
        ["time in MIGRATE, all together", lambda p: time(move_s(p.moved))],
    ])


TABLES = {
    "measured": measured, "assumed": assumed, "sizes": sizes, "failover": failover, "waits": waits,
    "keys": keys, "spread": spread, "grow": grow
}


def plans_of(options):
    tasks = [options.tasks] if options.tasks else [1e6, 1e7, 1e8, 1e9]
    return [Plan(each, options.wait, options.share) for each in tasks]


# ---- documents -----------------------------------------------------------------------------------------------


def filled(text, name, plans):
    """Returns the document with each table as it should be."""
    def one(match):
        if match["table"] not in TABLES:
            sys.exit(f"scaling.py: {name}: table '{match['table']}': expected one of {' '.join(TABLES)}")
        return f"{match['table']} -->\n\n{TABLES[match['table']](plans)}\n"
    return MARKED.sub(one, text)


def number(text):
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 1 <= value <= 1e15:
        raise argparse.ArgumentTypeError(f"'{text}': expected a number from 1 to 1e15")
    return value


def main():
    parser = argparse.ArgumentParser(usage=__doc__.partition("usage: ")[2].partition("\n\n")[0])
    parser.add_argument("table", nargs="?", choices=TABLES)
    parser.add_argument("--tasks", type=number)
    parser.add_argument("--wait", type=number, default=DAY)
    parser.add_argument("--share", type=number, default=Assumed.share)
    parser.add_argument("--write", type=pathlib.Path)
    parser.add_argument("--check", type=pathlib.Path)
    options = parser.parse_args()
    if [options.table, options.write, options.check].count(None) != 2:
        parser.error("expected a table, or --write FILE, or --check FILE")
    if options.table:
        sys.stdout.write(TABLES[options.table](plans_of(options)))
        return
    path = options.write or options.check
    text = path.read_text(encoding="utf-8")
    right = filled(text, path, plans_of(options))
    if options.write:
        path.write_text(right, encoding="utf-8")
    elif text != right:
        sys.exit(
            f"{path}: a table is out of date; docs/scaling.py --write {path} mends it")
    elif not MARKED.search(text):
        sys.exit(f"{path}: no table between markers: the document has lost them, or scaling.py its pattern")


if __name__ == "__main__":
    main()
