# SPDX-License-Identifier: MIT
"""What the plots are drawn with."""
from html import escape

FONT = "font-family='Helvetica, Arial, sans-serif'"


def text(x, y, words, size=11, anchor="start", fill="#333", weight="normal"):
    return (f"<text x='{x:.1f}' y='{y:.1f}' {FONT} font-size='{size}' text-anchor='{anchor}' fill='{fill}' "
            f"font-weight='{weight}'>{escape(words)}</text>")


def line(x1, y1, x2, y2, stroke, width=1.0, dash=""):
    dashes = f" stroke-dasharray='{dash}'" if dash else ""
    return (f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' stroke='{stroke}' "
            f"stroke-width='{width}'{dashes}/>")


def number(value):
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


def write(path, width, height, body):
    with open(path, "w", encoding="utf-8") as out:
        out.write(f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' "
                  f"viewBox='0 0 {width} {height}'>\n<rect width='100%' height='100%' fill='white'/>\n")
        out.write("\n".join(body) + "\n</svg>\n")
