# SPDX-License-Identifier: MIT
"""Turns Markdown into HTML and into manual pages, with lowdown. The site and the link test share the functions
about Markdown."""
import html
import re
import subprocess

# As GitHub reads Markdown: no superscripts, no typographic quotes, underscores inside words are letters. This
# module makes the ids.
INPUT = ["--parse-no-super", "--parse-no-intraemph", "--parse-no-metadata", "--out-no-smarty"]
FENCE = re.compile(
    r"^(?P<indent> {0,3})(?P<fence>`{3,}|~{3,})(?P<info>[^`\n]*)\n(?P<body>.*?)^ {0,3}(?P=fence)[`~]*[ ]*$",
    re.MULTILINE | re.DOTALL,
)
HEADING = re.compile(r"<h([1-6])>(.*?)</h\1>", re.DOTALL)
GIVEN = re.compile(
    r"\s*\(\(anchors: (.*?)\)\)$"
)  # the anchors that generated pages give to their headings: names make better anchors than words
TAG = re.compile(r"<[^>]*>")


def lowdown(text, *options):
    """Runs lowdown over a text."""
    return subprocess.run(["lowdown", *options, *INPUT], input=text, text=True, capture_output=True,
                          check=True, timeout=60).stdout


def slug(words):
    """Returns the anchor that GitHub gives a heading: lower case, no punctuation, a hyphen for each space."""
    return re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-")


def plain(fragment):
    """Returns the text of a piece of HTML."""
    return html.unescape(TAG.sub("", fragment))


class Anchors:
    """Gives each heading of a page its anchor, with a number if the same anchor exists already."""

    def __init__(self):
        self.seen = {}

    def of(self, words):
        name = slug(words)
        count = self.seen.get(name, 0)
        self.seen[name] = count + 1
        return f"{name}-{count}" if count else name


def to_html(text):
    """Returns the HTML of a Markdown text, and its headings: [(level, anchor, inner HTML)]."""
    anchors, headings = Anchors(), []

    def with_id(match):
        level, inner = int(match.group(1)), match.group(2).strip()
        inner, *given = GIVEN.split(inner)
        names = given[0].split() if given else [anchors.of(plain(inner))]
        headings.append((level, names[0], inner))
        here = ""
        if level > 1:
            here = f'<a class="here" href="#{html.escape(names[0])}" aria-label="This place">#</a>'
        further = "".join(f'<a id="{html.escape(name)}"></a>' for name in names[1:])
        return f'<h{level} id="{html.escape(names[0])}">{further}{inner}{here}</h{level}>'

    body = lowdown(text, "-thtml", "--html-no-head-ids", "--html-no-owasp", "--html-no-num-ent")
    for match in HEADING.finditer(body):  # given anchors come before made anchors
        for names in GIVEN.findall(match.group(2).strip()):
            anchors.seen.update(dict.fromkeys(names.split(), 1))
    return HEADING.sub(with_id, body), headings


def to_man(text):
    """Returns roff (the man macros) of a Markdown text whose sections are headings of the first level."""
    return lowdown(text, "-tman", "--nroff-nolinks")


def without_fences(text):
    """Returns the text with an empty line for each line inside a code fence."""
    return FENCE.sub(lambda match: "\n" * match.group().count("\n"), text)


def escape(words):
    """Returns plain words as Markdown. Text between backquotes is code already."""
    parts = words.split("`")
    if len(parts) % 2 == 0:
        return re.sub(r"([\\`*_<>\[\]|~#])", r"\\\1", words)
    return "`".join(part if i % 2 else re.sub(r"([\\*_<>\[\]|~#])", r"\\\1", part)
                    for i, part in enumerate(parts))
