# SPDX-License-Identifier: MIT
"""The tables and targets of the section `clients`, for `report`, which has Data; and their words for `rows`."""
IN_FLIGHT, JOBS = 100, 4    # as in client_rounds.py and measure

NAMES = {"python": "Python, threads", "asyncio": "Python, asyncio", "node": "Node", "rq": "rq, SimpleWorker",
         "rq_fork": "rq, Worker", "celery": "Celery, solo", "celery_prefork": "Celery, prefork",
         "bullmq": "BullMQ", "python_file": "Python, a file", "node_file": "Node, a file"}
OURS = ("python", "asyncio", "node")
PEERS = {"rq": ("rq", "rq_fork"), "Celery": ("celery", "celery_prefork"), "BullMQ": ("bullmq",)}
LOADS = {"client_put": "puts", "client_life": "whole lives"}
# Of a late handler: p50 and p99, in milliseconds.
AIMS = {"python": (2, 10), "asyncio": (2, 10), "node": (2, 10), "python_file": (10, 25),
        "node_file": (10, 25)}


def figures_of(data, side, load):
    """Jobs a second, and us of the client and of the server for each."""
    return [data.middle(side, load, IN_FLIGHT, metric) for metric in ("rate", "client_us", "server_us")]


def lives_table(data):
    sides = [side for side in NAMES if figures_of(data, side, "client_put")[0] is not None]
    if not sides:
        return
    print(f"Clients, {data.sizes[sides[0], 'client_put']:,} jobs, {IN_FLIGHT} in flight: jobs a second, us of "
          "the processor for each job, of client / server")
    print(f"  {'':20}{'puts a second':>15}{'us':>17}{'lives a second':>18}{'us':>17}")
    for side in sides:
        put, life = figures_of(data, side, "client_put"), figures_of(data, side, "client_life")
        print(f"  {NAMES[side]:20}{put[0]:>15,.0f}{f'{put[1]:.0f} / {put[2]:.0f}':>17}{life[0]:>18,.0f}"
              f"{f'{life[1]:.0f} / {life[2]:.0f}':>17}")
    print()


def commands_table(data):
    ours, alone = (data.middle(side, "exec", JOBS, "wall_us") for side in ("tickwheel", "spawn"))
    if ours is None:
        return
    key = ("tickwheel", "exec", JOBS, "ratio")
    spent = [data.middle(*key) for key in (("tickwheel", "exec", JOBS, "client_us"),
                                           ("spawn", "exec", JOBS, "client_us"),
                                           ("tickwheel", "exec", JOBS, "server_us"))]
    print(f"tickwheel work --exec true, {data.sizes['exec']:,} commands, --jobs {JOBS}: {ours:.0f} us for each,"
          f" spawned alone {alone:.0f} us; ratio {data.middle(*key):.2f} ({data.spread(*key)})")
    print(f"  processor: {spent[0]:.0f} us of the worker and its commands, {spent[1]:.0f} us of the commands"
          f" alone, {spent[2]:.0f} us of the server")
    print()


def late_table(data):
    for pending in data.bys("late"):
        print(f"Lateness of a handler in ms, {pending:,} pending")
        print(f"  {'':20}{'p50':>9}{'p99':>9}{'max':>9}")
        for side in AIMS:
            late = [data.middle(side, "late", pending, metric) for metric in ("p50_us", "p99_us", "max_us")]
            if late[0] is not None:
                print(f"  {NAMES[side]:20}" + "".join(f"{us / 1000:>9.2f}" for us in late))
        print()


def tables(data):
    lives_table(data)
    commands_table(data)
    late_table(data)


def fastest(data, sides, load):
    """The side with the most jobs a second; the first one if nothing was measured."""
    return max(sides, key=lambda side: data.middle(side, load, IN_FLIGHT, "rate") or 0)


def targets(data, target):
    for load, words in LOADS.items():
        for ours in OURS:
            for name, sides in PEERS.items():
                theirs = fastest(data, sides, load)
                target(f"{words} a second: {NAMES[ours]}, of {name}", 1, "x",
                       data.ratio((ours, load, IN_FLIGHT, "rate"), (theirs, load, IN_FLIGHT, "rate")), True)
    target("tickwheel work --exec true, of the spawning alone", 1.1, "x",
           data.middle("tickwheel", "exec", JOBS, "ratio"))
    pending = max(data.bys("late"), default=100000)
    for side, aims in AIMS.items():
        for metric, aim in zip(("p50_us", "p99_us"), aims):
            us = data.middle(side, "late", pending, metric)
            target(f"lateness, {metric[:3]}, {pending:,} pending: {NAMES[side]}", aim, "ms",
                   None if us is None else us / 1000)
