# SPDX-License-Identifier: MIT
"""Figures of the wheel: the rings, filing, lookahead, draining with hints."""
import math

from svg import LogLog, Sheet, place

TEXTBOOK_NAME = "textbook"


def duration(ticks):
    """Returns a number of milliseconds in words."""
    for unit, length in [("years", 31557600000), ("days", 86400000), ("h", 3600000), ("min", 60000),
                         ("s", 1000)]:
        if ticks >= (1 if unit == "s" else 2) * length:
            return f"{ticks / length:.3g} {unit}"
    return f"{ticks:.3g} ms"


# ---- the rings -----------------------------------------------------------------------------------------------

CENTRE, OUTER, THICK, GAP = (244, 254), 196, 30, 13
TURN = 0.75  # of a circle; the rest has room for the names


def on_ring(radius, part):
    angle = 2 * math.pi * TURN * part - math.pi / 2
    return CENTRE[0] + radius * math.cos(angle), CENTRE[1] + radius * math.sin(angle)


def arc(radius, begin, end):
    (x1, y1), (x2, y2) = on_ring(radius, begin), on_ring(radius, end)
    large = int((end - begin) * TURN > .5)
    return f"M{place(x1)} {place(y1)}A{place(radius)} {place(radius)} 0 {large} 1 {place(x2)} {place(y2)}"


def ring(sheet, level, rows, draining):
    """Draws a level. Each slot with timers is a bar across the track, whose shade shows their number on a
    logarithmic scale."""
    slots, span = rows[0][1], rows[0][2]
    middle = OUTER - level * (THICK + GAP) - THICK / 2
    sheet.curve(arc(middle, 0, 1), "grid", THICK, .45)
    most = max(row[4] for row in rows)
    for _, _, _, away, timers in rows:
        shade = .35 + .65 * math.log(1 + timers) / math.log(1 + most)
        sheet.curve(arc(middle, away / slots, (away + max(1, slots / 360)) / slots), "blue", THICK, shade)
    if draining:
        sheet.curve(arc(middle, 1 / slots, 2.6 / slots), "ours", THICK + 6)
    words = f"level {level}: {slots:,} slots of {duration(span)}"
    sheet.text(CENTRE[0] - 10, CENTRE[1] - middle - 3, words, "bold", "end")
    total = sum(row[4] for row in rows)
    sheet.text(CENTRE[0] - 10, CENTRE[1] - middle + 12, f"{total:,} timers; a turn is {duration(slots * span)}",
               "soft small", "end")


def rings(facts):
    sheet = Sheet(
        "wheel", 508, "The default wheel with real timers in it",
        "Four rings of slots. The outermost has a slot for each millisecond, the inner ones wider slots. "
        "Bars are slots that hold timers. A slot of level 2 that is being refiled into level 1 is marked.")
    levels = {}
    for row in facts["wheel"]:
        values = tuple(map(int, row))
        levels.setdefault(values[0], []).append(values)
    draining = {int(row[0]): int(row[3]) for row in facts.get("draining", [])}
    for level, rows in levels.items():
        ring(sheet, level, rows, draining.get(level))
    x, y = CENTRE
    sheet.line(x, y - OUTER - 8, x, y - 24, "ink", 2.5)
    sheet.text(x + 8, y - OUTER - 10, "now; time runs clockwise", "bold")
    for level, left in draining.items():
        sheet.rect(16, 462, 14, 14, "ours")
        sheet.text(38, 474, f"being refiled from level {level} into level {level - 1}: {left:,} timers left",
                   "ours bold")
    sheet.rect(16, 484, 14, 14, "blue")
    sheet.text(38, 496, "slots with timers: the more timers, the stronger", "soft small")
    return sheet


# ---- filing --------------------------------------------------------------------------------------------------


def filing(facts):
    sheet = Sheet(
        "filing", 316, "Which level takes which delay",
        "For each level of the default wheel the delays that it takes, on a logarithmic scale, ticks of a "
        "millisecond. Neighbours overlap: where the clock stands in its slot decides.")
    plot = LogLog(sheet, (64, 46, 456, 258), (1, 4e12), (1, 10))
    names = {1: "1 ms", 1000: "1 s", 60000: "1 min", 3600000: "1 h", 86400000: "1 d", 31557600000: "1 y",
             3155760000000: "100 y"}
    for value in names:
        sheet.line(plot.x(value), plot.top - 6, plot.x(value), plot.bottom, "grid")
    plot.columns(names, names.get)
    for row in facts["filing"]:
        level, shortest, longest = map(int, row)
        y = plot.top + 36 * level
        begin, end = plot.x(shortest), plot.x(min(longest, 4e12))
        sheet.rect(begin, y, end - begin, 20, "ours" if level == 0 else "blue", 3)
        sheet.text(8, y + 15, f"level {level}", "bold")
        words = f"{duration(shortest)} to {duration(longest)}"
        if level < 3:
            sheet.text(end + 8, y + 15, words, "small")
        else:
            sheet.text(begin - 8, y + 15, words, "small", "end")
    sheet.text(266, 308, "delay, ticks of 1 ms", "soft small", "middle")
    return sheet


# ---- lookahead -----------------------------------------------------------------------------------------------

BIN = 8  # ticks that share a mark, which shows the worst of them


def bins(facts, name):
    worst = {}
    for which, tick, timers in facts["refiled"]:
        if which == name:
            worst[int(tick) // BIN] = max(worst.get(int(tick) // BIN, 0), int(timers))
    return worst


def stretches(worst):
    """Returns runs of neighbouring marks with the same value, as (first, one after the last, value)."""
    found = []
    for mark, timers in sorted(worst.items()):
        if found and found[-1][1:] == (mark, timers):
            found[-1] = (found[-1][0], mark + 1, timers)
        else:
            found.append((mark, mark + 1, timers))
    return found


def lookahead(facts):
    sheet = Sheet(
        "lookahead", 336, "Timers refiled on each tick",
        "Two wheels under the same load, 200,000 timers. The textbook's refiles 512 timers on every 256th "
        "tick and 131,072 on one; the default wheel, which has one slot of lookahead, never more than 5.")
    old, new = bins(facts, TEXTBOOK_NAME), bins(facts, "default")
    first, last = min(new), max(new)
    plot = LogLog(sheet, (64, 60, 464, 280), (1, 10), (1, 200000))
    plot.rows([1, 10, 100, 1000, 10000, 100000])

    def at(mark):
        return plot.left + (mark - first) / (last + 1 - first) * (plot.right - plot.left)

    for mark, timers in sorted(old.items()):
        sheet.line(at(mark), plot.bottom, at(mark), plot.y(timers), "blue", 3)
    for begin, end, timers in stretches(new):  # no line where nothing was refiled
        sheet.line(at(begin), plot.y(timers), at(end), plot.y(timers), "ours", 3)
    worst, usual = max(old.values()), min(old.values())
    peak = max(old, key=old.get)
    sheet.text(at(peak) + 8, plot.y(worst) + 12, f"{worst:,} on one tick", "blue bold")
    sheet.text(at(peak) + 8, plot.y(worst) + 28, "textbook: 256 slots a level", "blue small")
    sheet.text(plot.left + 8, plot.y(1000) - 6, f"{usual:,} every 256 ticks", "blue bold")
    sheet.text(plot.left + 8, plot.y(worst) + 12, f"at most {max(new.values())} on any tick", "ours bold")
    sheet.text(plot.left + 8, plot.y(worst) + 28, "default: a slot of lookahead", "ours small")
    sheet.line(plot.left, plot.bottom, plot.right, plot.bottom, "soft")
    for tick in (64768, 65280, 65792, 66304):
        sheet.line(at(tick / BIN), plot.bottom, at(tick / BIN), plot.bottom + 5, "soft")
        sheet.text(at(tick / BIN), plot.bottom + 19, f"{tick:,}", "soft small", "middle")
    sheet.text(264, 326, f"tick; a mark is the worst of {BIN} ticks", "soft small", "middle")
    sheet.text(8, 44, "timers refiled on a tick, 200,000 timers pending", "soft small")
    return sheet


# ---- draining ------------------------------------------------------------------------------------------------


def bow(sheet, x1, x2, y, colour, width, opacity=1.0):
    depth = abs(x2 - x1) * .26
    sheet.curve(f"M{place(x1)} {place(y)}C{place(x1)} {place(y - depth)} {place(x2)} {place(y - depth)} "
                f"{place(x2)} {place(y)}", colour, width, opacity)


def draining(facts):
    sheet = Sheet(
        "draining", 308, "Draining a slot with hints",
        "The list of one slot, with its first timer on the left. The wheel refiles it from the tail. "
        "Each timer names the timer 16 places nearer the head, which is fetched while the timers between "
        "are refiled.")
    hints = [None if name == "-" else int(name) for _, name in facts["hint"]]
    reach = next(place_ - name for place_, name in enumerate(hints) if name is not None)
    step, width, top = 19, 15, 148
    cursor = len(hints) - 3  # the two behind it have been refiled

    def middle(index):
        return 14 + step * index + width / 2

    asked = [name for name in hints[cursor:] if name is not None]
    for index, name in enumerate(hints):
        if name is not None and index != cursor:
            bow(sheet, middle(index), middle(name), top - 4, "soft", 1, .5)
    bow(sheet, middle(cursor), middle(hints[cursor]), top - 4, "ours", 2.5)
    sheet.arrow(middle(hints[cursor]), top - 10, middle(hints[cursor]), top - 2, "ours", 2)
    for index in range(len(hints)):
        x = middle(index) - width / 2
        if index > cursor:
            sheet.rect(x, top, width, 26, "", 2, outline="grid")
        elif index == cursor:
            sheet.rect(x, top, width, 26, "ours", 2)
        else:
            sheet.rect(x, top, width, 26, "blue" if index >= min(asked) else "grid", 2)
    sheet.text(14, top + 46, "head", "soft small")
    sheet.text(466, top + 46, "tail", "soft small", "end")
    sheet.arrow(middle(cursor), top + 42, middle(cursor) - 110, top + 42, "ours", 2)
    sheet.text(middle(cursor) - 118, top + 46, "the slot is refiled this way", "ours small", "end")
    sheet.text(8, 46, f"Each timer remembers the timer that is {reach} places nearer the head.", "soft small")
    for k, (colour, words) in enumerate([
            ("ours", f"being refiled: prefetches the timer {reach} places on"),
            ("blue", "prefetched already: in the cache when it is refiled"),
            ("grid", "not prefetched yet"), ("", "refiled already")]):
        sheet.rect(14, 214 + 24 * k, 15, 15, colour, 2, outline="" if colour else "grid")
        sheet.text(38, 226 + 24 * k, words, "bold" if k == 0 else "")
    return sheet
