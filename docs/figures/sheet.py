# SPDX-License-Identifier: MIT
"""The sheet on which the figures are drawn: one style, light and dark, and no text over another text.

A sheet is 480 units wide and is shown at 360 to 1,000 pixels, so no text is smaller than 12 units. Colours are
names in the style sheet below, which has a light and a dark value for each name. The background is transparent.
"""
import math
import os
import sys
from html import escape

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir, "bench"))
from svg import number, spread  # noqa: E402, F401

WIDTH = 480
SIZE, SMALL, LARGE = 13.5, 12, 16
ADVANCE = 0.56  # width of a letter in its size, rounded up a little: the average of a sans serif

# Hues after Okabe and Ito, which people who see colours differently can tell apart. The colours are used for
# words
# too, so each has a contrast of at least 4.5 to 1 (WCAG 2.1) with white paper, or with a dark page. Lines of
# the
# grid may be fainter.
LIGHT = {"ink": "#1f2328", "soft": "#57606a", "grid": "#d0d7de", "ours": "#b8420b", "blue": "#0969b0",
         "green": "#00704e", "pink": "#99407a", "gold": "#7d6100"}
DARK = {"ink": "#e6edf3", "soft": "#a2acb6", "grid": "#3d444d", "ours": "#ff9a5c", "blue": "#6cb6ff",
        "green": "#45cf9f", "pink": "#eb9fd1", "gold": "#e3c04f"}
GROUNDS = {"light": "#ffffff", "dark": "#0d1117"}


def variables(colours):
    return "".join(f"--{name}:{value};" for name, value in colours.items())


# A picture that is opened alone declares both colour schemes. Otherwise the paper behind the picture stays
# white in
# the dark scheme.
STYLE = (
    f".tw{{color-scheme:light dark;{variables(LIGHT)}"
    f"font-family:system-ui,sans-serif;font-size:{SIZE}px;font-weight:400}}"
    f"@media (prefers-color-scheme:dark){{.tw{{{variables(DARK)}}}}}"
    ".tw text{fill:var(--ink)}" +
    "".join(f".tw .{name}{{fill:var(--{name})}}.tw .{name}-line{{stroke:var(--{name});fill:none}}"
            for name in LIGHT) +
    f".tw .small{{font-size:{SMALL}px}}.tw .large{{font-size:{LARGE}px}}.tw .bold,.tw .large{{font-weight:600}}"
)


def place(value):
    """Returns a coordinate with one decimal at most."""
    text = f"{value:.1f}"
    text = text[:-2] if text.endswith(".0") else text
    return "0" if text == "-0" else text


class Sheet:
    """A figure in the making."""

    def __init__(self, name, height, title, story):
        self.name, self.height, self.title, self.story = name, height, title, story
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
            if left < 0 or top < 0 or right > WIDTH or bottom > self.height:
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

    def dot(self, x, y, radius, colour):
        self.body.append(f'<circle cx="{place(x)}" cy="{place(y)}" r="{place(radius)}" class="{colour}"/>')

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
        head = (f'<svg xmlns="http://www.w3.org/2000/svg" class="tw" width="{WIDTH * 1.5:.0f}" '
                f'height="{self.height * 1.5:.0f}" viewBox="0 0 {WIDTH} {self.height}" role="img" '
                f'aria-labelledby="{ids[0]} {ids[1]}">\n<title id="{ids[0]}">{escape(self.title)}</title>\n'
                f'<desc id="{ids[1]}">{escape(self.story)}</desc>\n<style>{STYLE}</style>\n')
        return head + "\n".join(self.body) + "\n</svg>\n"


class LogLog:
    """Two logarithmic axes, which give (x, y) a place on the sheet."""

    def __init__(self, sheet, box, x_range, y_range):
        self.sheet, (self.left, self.top, self.right, self.bottom) = sheet, box
        self.x_range, self.y_range = x_range, y_range

    def x(self, value):
        low, high = map(math.log10, self.x_range)
        return self.left + (math.log10(value) - low) / (high - low) * (self.right - self.left)

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
