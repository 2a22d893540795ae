# SPDX-License-Identifier: MIT
"""Figures of the benchmarks' results."""
import statistics

from svg import LogLog, Sheet

ENGINES = [("tickwheel", "Tickwheel", "ours", 3.5, ""), ("heap4", "heap", "pink", 1.8, ""),
           ("libev", "libev", "blue", 1.8, ""), ("libuv", "libuv", "green", 1.8, "7 3"),
           ("libevent", "libevent", "gold", 1.8, "2 3")]
SIZES = {1000: "1,000", 100000: "100,000", 1000000: "1 million", 10000000: "10 million"}


def series(bench, workload, engine):
    return [(int(row["timers"]), float(row["ns_per_op"])) for row in bench
            if row["workload"] == workload and row["engine"] == engine]


def panel(sheet, bench, workload, box, y_range):
    """Draws the engines' lines, with names and last values at their ends."""
    plot = LogLog(sheet, box, (min(SIZES), max(SIZES)), y_range)
    rows = [10 ** e for e in range(5) if y_range[0] <= 10 ** e <= y_range[1]]
    plot.rows(rows, lambda value: f"{value:,}")
    plot.columns(SIZES, SIZES.get)
    plot.curves([(name, colour, width, dash, series(bench, workload, engine))
                 for engine, name, colour, width, dash in ENGINES], 17)


def benchmark(bench):
    sheet = Sheet(
        "benchmark", 330, "Cost of a timer operation, in nanoseconds",
        "Nanoseconds for an operation of a network server's mix, 98 percent cancelled, against the number "
        "of pending timers, both logarithmic: Tickwheel, an array heap, libev, libuv and libevent.")
    sheet.text(8, 43, "a network server's mix: add, move, cancel, fire; 98 % cancelled", "soft small")
    panel(sheet, bench, "mix", (56, 58, 346, 280), (5, 2000))
    sheet.text(204, 320, "timers pending", "soft small", "middle")
    return sheet


PANELS = [("churn", "cancel and add again", (2, 2000)),
          ("heartbeat", "move later: a live connection", (1, 2000)),
          ("steady", "fire and add again", (10, 10000)),
          ("add_uniform", "add: a heap is better at a million", (3, 1000))]


def cost(bench):
    sheet = Sheet("cost", 940, "Cost against the number of timers",
                  "Four panels, nanoseconds for an operation against the number of pending timers, both "
                  "logarithmic: cancel and add, move later, fire and add again, add. Tickwheel, an array heap, "
                  "libev, libuv and libevent.")
    sheet.text(8, 43, "nanoseconds for an operation; medians, one pinned core", "soft small")
    for k, (workload, words, y_range) in enumerate(PANELS):
        top = 62 + 220 * k
        sheet.text(8, top + 6, words, "bold")
        panel(sheet, bench, workload, (56, top + 20, 344, top + 174), y_range)
    sheet.text(204, 932, "timers pending", "soft small", "middle")
    return sheet


COMMANDS = [("add", "TW.SEND"), ("cancel", "TW.CANCEL"), ("move", "TW.MOVE"), ("get", "TW.GET")]


def times_theirs(raw, load):
    """Returns our rate divided by the rate of the Lua script: the median of the ratios within each round, as in
    the tables."""
    found = {(row["side"], row["round"]): float(row["value"]) for row in raw
             if (row["pending"], row["pipeline"], row["metric"], row["load"]) == ("5000000", "64", "rps", load)}
    return statistics.median(rate / found["lua", of] for (side, of), rate in found.items()
                             if side == "tickwheel")


def redis(bench, raw):
    rates = {(row["side"], row["load"]): float(row["median"]) for row in bench
             if (row["pending"], row["pipeline"], row["metric"]) == ("5000000", "64", "rps")}
    sheet = Sheet(
        "redis", 336, "The module beside a sorted set and a hash",
        "Requests a second with five million tasks pending: TW.SEND, TW.CANCEL and TW.GET, each beside the "
        "same in a Lua script on a sorted set and a hash, and TW.MOVE beside ZADD XX.")
    sheet.text(8, 43, "requests a second, 5,000,000 pending, pipeline 64; median ratios", "soft small")
    longest = max(rates[side, load] for side in ("tickwheel", "lua") for load, _ in COMMANDS)
    left, across = 106, 246
    for k, (load, name) in enumerate(COMMANDS):
        y = 62 + 64 * k
        ours, theirs = rates["tickwheel", load], rates["lua", load]
        sheet.text(8, y + 22, name, "bold")
        for dy, value, colour, words in ((0, ours, "ours", f"{ours:,.0f}: {times_theirs(raw, load):.1f} times"),
                                         (23, theirs, "blue", f"{theirs:,.0f}")):
            sheet.rect(left, y + dy, across * value / longest, 18, colour, 2)
            sheet.text(left + across * value / longest + 6, y + dy + 14, words, f"{colour} small")
    sheet.rect(14, 315, 12, 12, "ours")
    sheet.text(32, 326, "Tickwheel", "ours bold")
    sheet.rect(130, 315, 12, 12, "blue")
    sheet.text(148, 326, "Lua; for TW.MOVE ZADD alone", "blue bold")
    return sheet
