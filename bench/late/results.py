# SPDX-License-Identifier: MIT
"""The figures of the lateness table: their file, and the names of the sides."""

# side: its name, its colour, the place of its tasks
SIDES = {"sched": ("scheduler", "ours", "memory"), "libuv": ("libuv", "blue", "memory"),
         "go": ("Go, time.AfterFunc", "sky", "memory"), "store": ("a file", "ours", "disk"),
         "module": ("Redis module", "ours", "Redis"), "python": ("Python, threads", "ours", "Redis"),
         "asyncio": ("Python, asyncio", "ours", "Redis"), "python_file": ("Python, a file", "ours", "disk"),
         "node_file": ("Node, a file", "ours", "disk"),
         "bullmq_hz10": ("BullMQ, hz 10", "pink", "Redis"), "bullmq_hz100": ("BullMQ, hz 100", "plum", "Redis"),
         "pgboss": ("pg-boss", "gold", "disk"), "graphile": ("graphile-worker", "brown", "disk"),
         "graphile_default": ("graphile-worker, default", "brown", "disk"),
         "polled": ("a table, each 100 ms", "green", "disk")}
HEAD = "side\tpending\tmetric\tmedian\tleast\tmost\trounds\n"


def read(path):
    """Returns {(side, pending, metric): (median, least, most)}."""
    found = {}
    with open(path, encoding="ascii") as lines:
        next(lines)
        for row in lines:
            side, pending, metric, *figures, _ = row.split("\t")
            found[side, int(pending), metric] = tuple(map(float, figures))
    return found


def ms(us):
    """Microseconds in words, as milliseconds."""
    value = us / 1000
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
