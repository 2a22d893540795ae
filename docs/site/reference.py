# SPDX-License-Identifier: MIT
"""Makes Markdown of the headers that headers.py has read: a reference page for each header, and the parts of
the manual pages."""
import re
import textwrap

from headers import labels_of
from markdown import escape, slug

ITEM = re.compile(r"\s*- ")
NAME = re.compile(r"`?\b((?:tickwheel::)?(?:tw|TW)_[A-Za-z0-9_]+)\b(\(\))?`?")


def shown(entry, name):
    """Returns a name as it stands in headings. A type has the word that C requires before it."""
    return f"{entry.kind} {name}" if entry.kind in ("struct", "enum", "union", "class") else name


class Index:
    """Where each name is documented."""

    def __init__(self, headers):
        self.entries = {}  # name: (header, entry, anchor)
        self.anchors = {}  # id(entry): its anchors
        for header in headers:
            taken = {name for entry in header.entries() if entry.kind == "function" for name in entry.names}
            seen = {}
            for entry in header.entries():
                if entry.owner and not entry.doc:
                    continue
                anchors = [
                    name if entry.kind == "function" or name not in taken else f"{entry.kind}-{name}"
                    for name in dict.fromkeys(slug(name) for name in entry.names)
                ]
                self.anchors[id(entry)] = [self.unused(anchor, seen) for anchor in anchors]
                self.add(header, entry, self.anchors[id(entry)][0])

    @staticmethod
    def unused(anchor, seen):
        """Returns the anchor, with a number if the page has the anchor already (C++ overloads)."""
        seen[anchor] = seen.get(anchor, -1) + 1
        return f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor

    def add(self, header, entry, anchor):
        for name in entry.names:
            if name not in self.entries or entry.kind == "function":
                self.entries[name] = (header, entry, anchor)
        if entry.kind in ("enum", "macro", "constant"):
            for member, _ in entry.members:
                self.entries.setdefault(re.match(r"\w+", member).group(), (header, entry, anchor))

    def functions(self):
        """Returns every function that is declared in any of the headers."""
        return {
            name
            for name, (_, entry, _) in self.entries.items() if entry.kind == "function" and name in entry.names
        }


class Writer:
    """Writes comments as Markdown. link(name, shown) returns the link for a name, or None."""

    def __init__(self, link):
        self.link = link

    def inline(self, words, own=()):
        """Returns words with their names turned into links. The other words do not change."""
        out, at = [], 0
        for match in NAME.finditer(words):
            if words.count("`", 0, match.start()) % 2 and not match.group().startswith("`"):
                continue  # inside code that has more than the name
            ticks = match.group().count("`")
            name = match.group(1) + (match.group(2) or "")
            if ticks == 1:
                continue
            linked = None if match.group(1) in own else self.link(match.group(1), name)
            if linked is None and ticks == 0 and not match.group(2) and words[match.end():match.end() +
                                                                              1] == "*":
                continue  # TW_E*
            out += [escape(words[at : match.start()]), linked or f"`{name}`"]
            at = match.end()
        return "".join(out) + escape(words[at:])

    def paragraphs(self, text, own=()):
        """Returns the paragraphs, lists, tables and code of a text. Lines indented by four spaces become code.

        A line that begins with a hyphen is an item of a list. Lines indented below it belong to the item.
        """
        out, block, kind = [], [], "words"

        def flush():
            if block:
                out.append(self.block(kind, block, own))
            block.clear()

        for line in text.splitlines():
            if not line.strip():
                if kind == "code":
                    block.append("")
                else:
                    flush()
                    kind = "words"
                continue
            found = self.kind_of(line, kind)
            if found != kind:
                flush()
                kind = found
            block.append(line)
        flush()
        return "\n\n".join(out)

    @staticmethod
    def kind_of(line, before):
        """Returns the kind of block to which a line belongs, after a line of the kind `before`."""
        if ITEM.match(line) and before != "code" or line.startswith(" ") and before == "list":
            return "list"
        if line.startswith("    "):
            return "code"
        return "table" if line.startswith("|") else "words"

    def block(self, kind, lines, own):
        """Returns a paragraph, list, table or piece of code as Markdown."""
        if kind == "code":
            margin = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
            return "```c\n" + "\n".join(line[margin:] for line in lines).rstrip() + "\n```"
        if kind == "list":
            items = re.split(r"^\s*- ", "\n".join(lines), flags=re.MULTILINE)[1:]
            return "\n".join("- " + self.inline(re.sub(r"\s+", " ", item.strip()), own) for item in items)
        if kind == "table":
            rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
            return "\n".join("| " + " | ".join(cell if set(cell) == {"-"} else self.inline(cell, own)
                                              for cell in row) + " |" for row in rows)
        return self.inline("\n".join(lines), own)

    def terms(self, pairs, own=()):
        """Returns a list of terms with their texts."""
        out = []
        for term, text in pairs:
            words = textwrap.indent(self.paragraphs(text, own) or "see above", "    ")
            begins_a_block = words.startswith(("    - ", "    ```"))  # it needs an empty line before it
            out.append(term + ("\n\n: \n" if begins_a_block else "\n:") + words)
        return "\n\n".join(out)

    def members(self, entry, what):
        """Returns the members of an entry as a table."""
        rows = [f"| {what} | |", "|---|---|"]
        rows += [f"| `{name}` | {self.inline(words, entry.names)} |" for name, words in entry.members]
        return "\n".join(rows).replace("\\|", "\\|")


def head_parts(header):
    """Returns the parts of a header's head: [(None, text) or (title, [(term, text)])]."""
    parts, title = [], None
    for line in header.head.splitlines():
        term = re.match(r"^ {2,3}(\S(?:.*?\S)?)(?: {2,}|  ?$)(.*)$", line) if title is not None else None
        if line and not line.startswith(" ") and re.fullmatch(r"Conventions.*", line.strip()):
            title = line.strip().rstrip(":")
            parts.append((title, []))
        elif title is not None and term:
            parts[-1][1].append([term.group(1), term.group(2)])
        elif title is not None and line.startswith("     ") and parts[-1][1]:
            parts[-1][1][-1][1] += ("\n" if ITEM.match(line) else " ") + line.strip()
        elif title is not None and not line.strip():
            continue
        else:
            title = None
            if parts and parts[-1][0] is None:
                parts[-1][1].append(line)
            else:
                parts.append((None, [line]))
    return parts


def folded(code):
    """Returns a prototype; if it is wider than a page, its parameters stand in lines of their own."""
    if "(" not in code and "\n" not in code:  # the head of a class
        return textwrap.fill(code, 76, subsequent_indent="    ", break_long_words=False)
    found = re.fullmatch(r"([^(){}]*?\w\()(.*)(\)[^()]*;)", code.replace("\n", " "))
    if found is None or max(map(len, code.splitlines())) <= 76 and "\n" not in code:
        return code
    lines = [re.sub(r"\s+", " ", found.group(1))]
    for word in re.findall(r"[^,(]+(?:\([^)]*\))*[^,]*,?", re.sub(r"\s+", " ", found.group(2))):
        first = lines[-1].endswith("(")
        if len(lines[-1]) + len(word) + 2 > 76 or first and len(lines[-1]) + len(word) > 76:
            lines.append("    " + word.strip())
        else:
            lines[-1] += word.strip() if first else " " + word.strip()
    return "\n".join(lines) + found.group(3)


def capital(words):
    """Returns the words with a capital, unless the first word is a name or code."""
    return words[:1].upper() + words[1:] if re.match(r"[a-z]+(?![\w.(*])", words) else words


def declaration(entry):
    """Returns the declarations of an entry as code. Private names are left out."""
    code = "\n".join(map(folded, entry.declarations))
    code = re.sub(r"^#(?!define (?!TW__)).*\n", "", code, flags=re.MULTILINE)
    return "```c\n" + re.sub(r"TW__\w+", "...", code) + "\n```"


def shows_code(entry):
    """Returns whether the code of an entry has information that its table lacks."""
    return not (entry.members and entry.kind in ("struct", "enum")) and not (entry.kind == "macro"
                                                                             and entry.members)


def bare_members(entry, index, writer):
    """Returns the members of a class that have no comment, with a link to the C functions that describe
    them."""
    prefixes = (f"tw_{entry.owner}_", f"tw_{entry.owner[:5]}_")
    named = [prefix + name for name in dict.fromkeys(entry.names) for prefix in prefixes]
    found = [name for name in dict.fromkeys(named) if name in index.entries]
    see = "As " + ", ".join(filter(None,
                                   (writer.link(name, name + "()") for name in found))) + "." if found else ""
    return "\n\n".join(filter(None, [declaration(entry), see]))


def entry_page(entry, index, writer, level):
    """Returns one entry of a reference page."""
    text, labels = labels_of(entry.doc)
    if entry.owner and not entry.doc:
        return bare_members(entry, index, writer)
    names = ", ".join(f"`{shown(entry, name)}`" for name in dict.fromkeys(entry.names))
    out = ["#" * level + f" {names} ((anchors: {' '.join(index.anchors[id(entry)])}))"]
    if shows_code(entry):
        out.append(declaration(entry))
    if text:
        out.append(
            writer.paragraphs(text[:1].upper() + text[1:] if entry.kind == "constant" else text, entry.names))
    if entry.members and entry.kind != "constant":
        out.append(writer.members(entry, {"struct": "member", "union": "member"}.get(entry.kind, "value")))
    if labels:
        out.append(writer.terms(labels, entry.names))
    out += [entry_page(one, index, writer, level + 1) for one in entry.inner]
    return "\n\n".join(out)


def first_sentence(entry):
    """Returns the first sentence of a comment, in one line."""
    text, labels = labels_of(entry.doc)
    if not text and not labels:
        return "nothing is said about it"  # never read: tests/docs/site/test_reference fails first
    text = re.sub(r"\s+", " ", re.split(r"\n(?: {4}|\n|\s*- )", text or labels[0][1])[0])
    found = re.match(r"(.*?[.:;])(?= [A-Z`*]|$)", text)
    return (found.group(1) if found else text).rstrip(".:;")


def header_page(header, index, source_link):
    """Returns the page of a header."""

    def link(name, shown):
        if name not in index.entries:
            return None
        other, _, anchor = index.entries[name]
        return f"[`{shown}`]({'' if other is header else other.path.name}#{anchor})"

    writer = Writer(link)
    out = [
        f"# {header.name}",
        writer.inline(capital(header.brief)),
        f"```c\n#include <{header.name}>\n```",
    ]
    for title, content in head_parts(header):
        if title is None:
            out.append(writer.paragraphs("\n".join(content)))
        else:
            out += [f"## {title.split(',')[0]}", writer.terms(content)]
    if header.sections:
        rows = [
            f"| {escape(title)} | "
            + ", ".join(
                f"[`{shown(entry, entry.names[0])}`](#{index.anchors[id(entry)][0]})"
                if len(index.anchors[id(entry)]) == 1
                else ", ".join(
                    f"[`{name}`](#{anchor})"
                    for name, anchor in zip(dict.fromkeys(entry.names), index.anchors[id(entry)])
                )
                for entry in entries
            )
            + " |"
            for title, entries in header.sections
        ]
        out.append("\n".join(["## Names", "| section | |\n|---|---|",
                              *rows]).replace("## Names\n", "## Names\n\n"))
    for title, entries in header.sections:
        out.append(f"## {title[:1].upper() + title[1:]}" if title else "## Types")
        out += [entry_page(entry, index, writer, 3) for entry in entries]
    out.append(f"Made from {source_link}, which says the same in its comments.")
    return "\n\n".join(out) + "\n"
