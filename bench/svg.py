# SPDX-License-Identifier: MIT
"""Functions that draw the plots."""
from html import escape

FONT = "font-family='Helvetica, Arial, sans-serif'"


def luminance(channels):
    """The relative luminance of a colour, as WCAG 2 defines it."""
    linear = [
        c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055)**2.4
        for c in (channel / 255 for channel in channels)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def legible(colour):
    """The colour, made as dark as letters on white need (a contrast of 4.5 to 1). A colour that is dark enough
    for a line may be too light for words."""
    digits = colour.lstrip("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    channels = [int(digits[i:i + 2], 16) for i in (0, 2, 4)]
    if 1.05 / (luminance(channels) + 0.05) >= 4.5:
        return colour
    while 1.05 / (luminance(channels) + 0.05) < 4.5:
        channels = [channel * 0.98 for channel in channels]
    return "#" + "".join(f"{int(channel):02X}" for channel in channels)


def text(x, y, words, size=11, anchor="start", fill="#333", weight="normal"):
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' {FONT} font-size='{size}' text-anchor='{anchor}' "
        f"fill='{legible(fill)}' font-weight='{weight}'>{escape(words)}</text>")


def line(x1, y1, x2, y2, stroke, width=1.0, dash=""):
    dashes = f" stroke-dasharray='{dash}'" if dash else ""
    return (f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' stroke='{stroke}' "
            f"stroke-width='{width}'{dashes}/>")


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


def write(path, width, height, body):
    with open(path, "w", encoding="utf-8") as out:
        out.write(f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' "
                  f"viewBox='0 0 {width} {height}'>\n<rect width='100%' height='100%' fill='white'/>\n")
        out.write("\n".join(body) + "\n</svg>\n")
