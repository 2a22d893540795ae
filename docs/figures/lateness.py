# SPDX-License-Identifier: MIT
"""Figures about time: due times, ticks, never early, lateness."""
from svg import Sheet


def never_early(facts):
    sheet = Sheet(
        "never-early", 300, "Never early: a due time is rounded up to its tick",
        "Six tasks with due times between ticks of a millisecond. Each runs on the first tick that is not "
        "before its due time: at the latest one tick after it.")
    rows = [(int(due) / 1e6, int(ran) / 1e6) for due, ran in facts["due"]]
    left, right, top = 24, 456, 48
    last = max(ran for _, ran in rows)

    def at(ms):
        return left + ms / last * (right - left)

    bottom = top + 32 * len(rows) + 2
    for tick in range(int(last) + 1):
        sheet.line(at(tick), top, at(tick), bottom, "grid", 1.5)
        sheet.text(at(tick), bottom + 16, f"{tick} ms", "soft small", "middle")
    for k, (due, ran) in enumerate(rows):
        y = top + 18 + 32 * k
        sheet.line(at(due), y, at(ran), y, "blue", 3)
        sheet.dot(at(due), y, 4.5, "blue")
        sheet.rect(at(ran) - 5, y - 5, 10, 10, "ours")
        words = f"due {due:g}, runs at {ran:g}" if due < ran else f"due {due:g}: on the tick, runs at once"
        if at(ran) < 250:
            sheet.text(at(ran) + 12, y + 4, words, "small")
        else:
            sheet.text(at(due) - 12, y + 4, words, "small", "end")
    sheet.dot(22, bottom + 42, 4.5, "blue")
    sheet.text(34, bottom + 46, "due", "blue bold")
    sheet.rect(78, bottom + 37, 10, 10, "ours")
    sheet.text(96, bottom + 46, "runs", "ours bold")
    sheet.text(456, bottom + 46, "the line between: lateness, less than a tick", "soft small", "end")
    return sheet


def percentile_rows(bench):
    """Returns {peer: (median, 99 %, most)} in milliseconds: idle, a million pending, one producer."""
    found = {}
    for row in bench:
        if (row["pending"], row["producers"], row["load"]) == ("1000000", "1", "idle"):
            found.setdefault(row["peer"], {})[row["metric"]] = float(row["median"]) / 1000
    return {peer: (values["p50_us"], values["p99_us"], values["max_us"]) for peer, values in found.items()}


PEERS = [("tickwheel", "Tickwheel", "ours"), ("go", "Go", "blue"), ("libuv", "libuv", "green"),
         ("netty", "Netty", "pink"), ("stpe", "JDK", "gold")]


def lateness(facts, bench):
    sheet = Sheet(
        "lateness", 404, "How late is a task?",
        "Above, the lateness of 100,000 tasks with random due times by rounding up alone: spread evenly "
        "from zero to a tick. Below, measured on idle schedulers with a million tasks pending: median, "
        "99 percent and the worst of Tickwheel, Go, libuv, Netty and the JDK's executor.")
    counts = [int(timers) for _, timers in facts["late"]]
    left, right, scale = 92, 448, 5.2  # milliseconds across

    def at(ms):
        return left + ms / scale * (right - left)

    top, bottom = 56, 132
    most = max(counts)
    sheet.text(8, 44, "By rounding up alone, 100,000 tasks, ticks of 1 ms", "soft small")
    for tenth, tasks in enumerate(counts):
        height = (bottom - top - 8) * tasks / most
        if tasks:
            sheet.rect(at(tenth / 10) + .5, bottom - height, at(.1) - at(0) - 1, height, "ours")
    sheet.lines(
        at(1) + 12, top + 26, ["never below 0,", "never a whole tick,", "half a tick on average"], "ours bold")
    sheet.text(left - 10, bottom - 26, "tasks", "soft small", "end")
    sheet.text(8, 164, "Measured, idle, 1,000,000 pending: median, 99 % and the worst", "soft small")
    axis = 372
    for begin, end in ((top, bottom), (174, axis)):
        sheet.line(at(1), begin, at(1), end, "grid", 1.5)
    sheet.line(left, axis, right, axis, "soft")
    for ms in range(6):
        sheet.line(at(ms), axis, at(ms), axis + 5, "soft")
        sheet.text(at(ms), axis + 19, f"{ms}", "soft small", "middle")
    sheet.text(right + 20, axis + 19, "ms", "soft small", "end")
    sheet.line(left, bottom, right, bottom, "soft")
    for k, (peer, name, colour) in enumerate(PEERS):
        p50, p99, worst = percentile_rows(bench)[peer]
        y = 186 + 38 * k
        sheet.line(at(p50), y, at(worst), y, colour, 1.5)
        sheet.line(at(p50), y, at(p99), y, colour, 6)
        sheet.dot(at(p50), y, 5, colour)
        sheet.line(at(worst), y - 6, at(worst), y + 6, colour, 2)
        sheet.text(8, y + 4, name, f"{colour} bold")
        sheet.text(at(1) + 8, y + 19, f"{p50:.2f}, {p99:.2f}, {worst:.1f} ms", f"{colour} small")
    return sheet
