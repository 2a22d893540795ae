# SPDX-License-Identifier: MIT
"""The sheet for figures and for plots of the benchmarks: one style, light and dark, no text over another text.

A figure is 480 units wide and is shown at 360 to 1,000 pixels, so no text is smaller than 12 units. A plot is
wider, and has a panel for each load. Colours are names in the style sheet below, which has a light and a dark
value for each name. The background is transparent.
"""
import math
import os
import re
import sys
from html import escape

WIDTH = 480
SIZE, SMALL, LARGE = 13.5, 12, 16
ADVANCE = 0.56  # width of a letter in its size, rounded up a little: the average of a sans serif

# Hues after Okabe and Ito, which people who see colours differently can tell apart. The colours are used for
# words too, so each has a contrast of at least 4.5 to 1 (WCAG 2.1) with white paper, or with a dark page. Lines
# of the grid may be fainter.
LIGHT = {"ink": "#1f2328", "soft": "#57606a", "grid": "#d0d7de", "ours": "#b8420b", "blue": "#0969b0",
         "green": "#00704e", "pink": "#99407a", "gold": "#7d6100", "sky": "#1a7f9c", "plum": "#6a4a9c",
         "brown": "#7a3b12"}
DARK = {"ink": "#e6edf3", "soft": "#a2acb6", "grid": "#3d444d", "ours": "#ff9a5c", "blue": "#6cb6ff",
        "green": "#45cf9f", "pink": "#eb9fd1", "gold": "#e3c04f", "sky": "#8fe0ef", "plum": "#c0a8f5",
        "brown": "#d9966a"}
GROUNDS = {"light": "#ffffff", "dark": "#0d1117"}


def variables(colours, names):
    return "".join(f"--{name}:{colours[name]};" for name in names)


def style(names):
    """The style sheet of a picture with these colours. A picture that is opened alone declares both colour
    schemes. Otherwise the paper behind the picture stays white in the dark scheme."""
    return (
        f".tw{{color-scheme:light dark;{variables(LIGHT, names)}"
        f"font-family:system-ui,sans-serif;font-size:{SIZE}px;font-weight:400}}"
        f"@media (prefers-color-scheme:dark){{.tw{{{variables(DARK, names)}}}}}"
        ".tw text{fill:var(--ink)}" +
        "".join(f".tw .{name}{{fill:var(--{name})}}.tw .{name}-line{{stroke:var(--{name});fill:none}}"
                for name in names) +
        f".tw .small{{font-size:{SMALL}px}}.tw .large{{font-size:{LARGE}px}}"
        ".tw .bold,.tw .large{font-weight:600}")


def place(value):
    """Returns a coordinate with one decimal at most."""
    text = f"{value:.1f}"
    text = text[:-2] if text.endswith(".0") else text
    return "0" if text == "-0" else text


def number(value):
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


def spread(wanted, gap, low, high):
    """Moves labels apart until none overlap, each as little as possible, and keeps their order."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    groups = []  # [members, centre]: labels that touch move as one
    for i in order:
        groups.append([[i], wanted[i]])
        while len(groups) > 1:
            (above, at), (below, to) = groups[-2], groups[-1]
            if to - at >= gap * (len(above) + len(below)) / 2:
                break
            members = above + below
            centre = sum(wanted[m] for m in members) / len(members)
            groups[-2:] = [[members, centre]]
    placed = [0.0] * len(wanted)
    for members, centre in groups:
        first = centre - gap * (len(members) - 1) / 2
        for k, member in enumerate(members):
            placed[member] = first + gap * k
    for i in order:  # inside the panel, from both ends
        placed[i] = max(placed[i], low + gap * order.index(i))
    for i in reversed(order):
        placed[i] = min(placed[i], high - gap * (len(order) - 1 - order.index(i)))
    return placed


class Sheet:
    """A figure in the making, or a plot: then it is wider, and not enlarged."""

    def __init__(self, name, height, title, story, width=WIDTH):
        self.name, self.width, self.height, self.title, self.story = name, width, height, title, story
        self.body, self.boxes = [], []
        self.text(8, 22, title, "large")

    # ---- words ----

    def text(self, x, y, words, classes="", anchor="start", turned=False):
        size = SMALL if "small" in classes else LARGE if "large" in classes else SIZE
        self.box(x, y, len(words) * size * ADVANCE, size, anchor, turned, words)
        more = f' class="{classes}"' if classes else ""
        more += f' text-anchor="{anchor}"' if anchor != "start" else ""
        more += f' transform="rotate(-90 {place(x)} {place(y)})"' if turned else ""
        self.body.append(f'<text x="{place(x)}" y="{place(y)}"{more}>{escape(words)}</text>')

    def lines(self, x, y, sentences, classes="", anchor="start", gap=17):
        for k, sentence in enumerate(sentences):
            self.text(x, y + gap * k, sentence, classes, anchor)

    def box(self, x, y, width, size, anchor, turned, words):
        """Remembers the place of words."""
        start = {"start": 0, "middle": width / 2, "end": width}[anchor]
        if turned:
            self.boxes.append((x - size * .75, y + start - width, x + size * .2, y + start, words))
        else:
            self.boxes.append((x - start, y - size * .75, x - start + width, y + size * .2, words))

    def faults(self):
        """Yields a sentence for words that leave the sheet, and for pairs that lie over each other."""
        for k, (left, top, right, bottom, words) in enumerate(self.boxes):
            if left < 0 or top < 0 or right > self.width or bottom > self.height:
                yield f"{self.name}: {words!r} leaves the sheet: " \
                      f"{left:.0f} to {right:.0f}, {top:.0f} to {bottom:.0f}"
            for left2, top2, right2, bottom2, words2 in self.boxes[:k]:
                if left < right2 and left2 < right and top < bottom2 and top2 < bottom:
                    yield f"{self.name}: {words!r} lies over {words2!r}"

    # ---- shapes ----

    def line(self, x1, y1, x2, y2, colour, width=1.0, dash=""):
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self.body.append(f'<line x1="{place(x1)}" y1="{place(y1)}" x2="{place(x2)}" y2="{place(y2)}" '
                         f'class="{colour}-line" stroke-width="{width}"{dashes}/>')

    def path(self, points, colour, width=1.5, dash=""):
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        data = " ".join(f"{place(x)},{place(y)}" for x, y in points)
        self.body.append(f'<polyline points="{data}" class="{colour}-line" stroke-width="{width}"{dashes} '
                         'stroke-linejoin="round"/>')

    def curve(self, data, colour, width=1.5, opacity=1.0, dash=""):
        more = f' stroke-opacity="{opacity:.2f}"' if opacity < 1 else ""
        more += f' stroke-dasharray="{dash}"' if dash else ""
        self.body.append(f'<path d="{data}" class="{colour}-line" stroke-width="{width}"{more}/>')

    def rect(self, x, y, width, height, colour, round_=0.0, outline=""):
        more = f' rx="{place(round_)}"' if round_ else ""
        kind = f"{outline}-line" if outline else colour
        self.body.append(
            f'<rect x="{place(x)}" y="{place(y)}" width="{place(width)}" height="{place(height)}"{more} '
            f'class="{kind}"/>')

    def dot(self, x, y, radius, colour, hollow=False):
        kind = f'{colour}-line" stroke-width="1.5' if hollow else colour
        self.body.append(f'<circle cx="{place(x)}" cy="{place(y)}" r="{place(radius)}" class="{kind}"/>')

    def arrow(self, x1, y1, x2, y2, colour, width=1.5):
        """Draws a line with an arrowhead at its end."""
        self.line(x1, y1, x2, y2, colour, width)
        turn = math.atan2(y2 - y1, x2 - x1)
        sides = [(x2 - 8 * math.cos(turn + s), y2 - 8 * math.sin(turn + s)) for s in (-.45, .45)]
        data = " ".join(f"{place(x)},{place(y)}" for x, y in [(x2, y2), *sides])
        self.body.append(f'<polygon points="{data}" class="{colour}"/>')

    # ---- the whole ----

    def svg(self):
        """Returns the figure as the text of a file."""
        ids = f"{self.name}-title", f"{self.name}-desc"
        enlarged = 1.5 if self.width == WIDTH else 1
        body = "\n".join(self.body)
        used = {"ink", *re.findall("[a-z]+", " ".join(re.findall('class="([^"]*)"', body)))}
        names = [name for name in LIGHT if name in used]
        head = (f'<svg xmlns="http://www.w3.org/2000/svg" class="tw" width="{self.width * enlarged:.0f}" '
                f'height="{self.height * enlarged:.0f}" viewBox="0 0 {self.width} {self.height}" role="img" '
                f'aria-labelledby="{ids[0]} {ids[1]}">\n<title id="{ids[0]}">{escape(self.title)}</title>\n'
                f'<desc id="{ids[1]}">{escape(self.story)}</desc>\n<style>{style(names)}</style>\n')
        return head + body + "\n</svg>\n"

    def write(self, folder):
        """Writes NAME.svg, and tells of words that lie over others: nobody has seen these numbers yet."""
        for fault in self.faults():
            print(fault, file=sys.stderr)
        with open(os.path.join(folder, self.name + ".svg"), "w", encoding="utf-8") as out:
            out.write(self.svg())


class LogLog:
    """Two logarithmic axes, which give (x, y) a place on the sheet."""

    def __init__(self, sheet, box, x_range, y_range):
        self.sheet, (self.left, self.top, self.right, self.bottom) = sheet, box
        self.x_range, self.y_range = x_range, y_range

    def x(self, value):
        low, high = map(math.log10, self.x_range)
        return self.left + (math.log10(value) - low) / ((high - low) or 1) * (self.right - self.left)

    def y(self, value):
        low, high = map(math.log10, self.y_range)
        return self.bottom - (math.log10(value) - low) / (high - low) * (self.bottom - self.top)

    def rows(self, values, label=lambda value: f"{value:,}"):
        for value in values:
            self.sheet.line(self.left, self.y(value), self.right, self.y(value), "grid")
            self.sheet.text(self.left - 6, self.y(value) + 4, label(value), "soft small", "end")

    def columns(self, values, label):
        self.sheet.line(self.left, self.bottom, self.right, self.bottom, "soft")
        for value in values:
            self.sheet.line(self.x(value), self.bottom, self.x(value), self.bottom + 5, "soft")
            self.sheet.text(self.x(value), self.bottom + 19, label(value), "soft small", "middle")

    def curves(self, drawn, gap):
        """Draws lines of (name, colour, width, dash, points), with names and last values at their ends."""
        ends = spread([self.y(points[-1][1]) for *_, points in drawn], gap, self.top, self.bottom)
        for (name, colour, width, dash, points), end in reversed(list(zip(drawn, ends))):
            places = [(self.x(n), self.y(value)) for n, value in points]
            self.sheet.path(places, colour, width, dash)
            for x, y in places:
                self.sheet.dot(x, y, 2 + width / 3, colour)
            self.sheet.line(self.right + 3, places[-1][1], self.right + 13, end, colour)
            weight = "bold" if colour == "ours" else "small"
            self.sheet.text(self.right + 16, end + 4, f"{name} {number(points[-1][1])}", f"{colour} {weight}")


# ---- panels of rows ------------------------------------------------------------------------------------------

PANEL, ROW, TOP = 700, 20, 60  # the width of a panel, the height of a row, the part of a plot above its panels


def nice_end(most):
    """The next number that is 1, 2 or 5 times a power of ten."""
    power = 10 ** math.floor(math.log10(most))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= most)


class Row:
    """A row of a panel: dots, and a line under them from the least value to the most, if there is one."""

    def __init__(self, label, colour, dots, words, span=()):
        self.label, self.colour, self.dots, self.words, self.span = label, colour, dots, words, span


class Panel:
    """A title, and a scale over rows. A logarithmic scale has a tick for each power of ten, a linear one begins
    at 0."""

    def __init__(self, title, unit, rows, tick, logarithmic=True):
        self.title, self.unit, self.rows, self.tick = title, unit, rows, tick
        values = [value for row in rows for value in [*(value for value, _ in row.dots), *row.span]]
        if logarithmic:
            self.low = math.floor(math.log10(min(values)))
            self.high = max(math.ceil(math.log10(max(values))), self.low + 1)
            self.ticks = [10.0 ** exponent for exponent in range(self.low, self.high + 1)]
            self.scale = math.log10
        else:
            self.low, self.high = 0, nice_end(max(values))
            self.ticks = [self.high * part / 4 for part in range(5)]
            self.scale = lambda value: max(0.0, value)

    def height(self):
        return 34 + ROW * len(self.rows) + 36

    def draw(self, sheet, x, y):
        left, right, top = x + 236, x + PANEL - 200, y + 34
        bottom = top + ROW * len(self.rows)

        def across(value):
            return left + (self.scale(value) - self.low) / (self.high - self.low) * (right - left)

        sheet.text(x + 8, y + 14, f"{self.title}, {self.unit}", "bold")
        for value in self.ticks:
            sheet.line(across(value), top - 6, across(value), bottom, "grid")
            sheet.text(across(value), bottom + 14, self.tick(value), "soft small", "middle")
        for k, row in enumerate(self.rows):
            middle = top + ROW * k + ROW / 2 - 3
            weight = "bold" if row.colour == "ours" else ""
            sheet.text(left - 12, middle + 4, row.label, f"{row.colour} small {weight}".rstrip(), "end")
            sheet.line(left, middle, right, middle, "grid")
            if row.span:
                sheet.line(across(row.span[0]), middle, across(row.span[1]), middle, row.colour, 2)
            for value, filled in row.dots:
                sheet.dot(across(value), middle, 4.5, row.colour, not filled)
            sheet.text(right + 14, middle + 4, row.words, f"{row.colour} small {weight}".rstrip())


def panels(name, title, note, drawn, columns=2):
    """Returns a sheet with the panels, row by row. The note tells how to read them."""
    lines = [drawn[k:k + columns] for k in range(0, len(drawn), columns)]
    height = TOP + sum(max(panel.height() for panel in line) for line in lines)
    sheet = Sheet(name, height, title, note, columns * PANEL)
    sheet.text(8, 42, note, "soft small")
    y = TOP
    for line in lines:
        for k, panel in enumerate(line):
            panel.draw(sheet, k * PANEL, y)
        y += max(panel.height() for panel in line)
    return sheet
