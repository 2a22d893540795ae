# SPDX-License-Identifier: MIT
"""Reads the tickwheel command's own help, the only place where the commands are described, into parts."""
import dataclasses
import re
import subprocess

from markdown import escape

ROW = re.compile(r"^( *)(\S.*?) {2,}(\S.*)$")


@dataclasses.dataclass
class Command:
    """A command: its name, its line in `tickwheel help`, its usage, and blocks of (kind, content)."""

    name: str
    brief: str
    usage: str
    blocks: list


def tell(program, *arguments):
    return subprocess.run([program, *arguments], text=True, capture_output=True, check=False, timeout=60)


def rows_of(lines):
    """Returns [(term, text)] of a block of two columns, or None for any other block."""
    rows = []
    margin = len(lines[0]) - len(lines[0].lstrip())
    for line in lines:
        indent = len(line) - len(line.lstrip())
        found = ROW.match(line)
        if indent == margin and found:
            rows.append([found.group(2), found.group(3)])
        elif indent > margin + 6 and rows:
            rows[-1][1] += " " + line.strip()
        elif indent == margin and line.lstrip().startswith("-"):
            rows.append([line.strip(), ""])  # a long option, whose text begins on the next line
        else:
            return None
    return rows


def block_of(lines):
    """Returns the kind of a block of a help text (options, rows, code, exit or text) and its rows or its
    words."""
    rows = rows_of(lines)
    status = re.match(r"exit status:? +(.*)", " ".join(line.strip() for line in lines), re.IGNORECASE)
    if status:
        return "exit", status.group(1)
    if rows and all(term.startswith("-") for term, _ in rows):
        return "options", rows
    if rows and not lines[0].startswith(" "):
        return "rows", rows
    if all(line.startswith("  ") for line in lines):
        return "code", "\n".join(line[2:] for line in lines)
    return "text", "\n".join(lines)


def listed(text):
    """Returns [(name, brief)] of the commands in `tickwheel help`. The brief of a long usage stands in the line
    below it."""
    rows = re.findall(r"^  ([a-z]\S*)(?: .*?)?(?:  +|\n {10,})(\S.*)$", text, re.MULTILINE)
    return [(name, brief) for name, brief in rows if name != "help"]


def read(program, group=""):
    """Returns every command of the program, or of a group such as `trace`, as the program describes it. A build
    without SQLite lists commands that it lacks: they say so, and have no page."""
    commands = []
    for name, brief in listed(tell(program, *group.split(), "--help").stdout):
        name = f"{group} {name}".strip()
        told = tell(program, *name.split(), "--help")
        if told.returncode != 0 and "this build has no store" in told.stderr:
            continue
        told.check_returncode()
        text = told.stdout.strip("\n")
        blocks = [block.splitlines() for block in re.split(r"\n\s*\n", text)]
        usage = re.sub(r"^usage: |^       ", "", "\n".join(blocks[0]), flags=re.MULTILINE)
        commands.append(Command(name, brief, usage, [block_of(lines) for lines in blocks[1:]]))
        if usage.endswith(" COMMAND [ARGUMENTS]"):
            commands += read(program, name)
    return commands


def terms(rows):
    """Returns rows as a list of terms in Markdown."""
    return "\n\n".join(f"`{term}`\n: {escape(text or ' ')}" for term, text in rows)


def as_markdown(kind, content):
    """Returns a block as Markdown."""
    if kind in ("options", "rows"):
        return terms(content)
    if kind == "code":
        return f"```text\n{content}\n```"
    return escape(content)


def page(program):
    """Returns the commands as one page in Markdown."""
    out = ["# The tickwheel command", "The text that each command prints with `--help`."]
    for command in read(program):
        out += [
            f"## tickwheel {command.name}",
            f"{escape(command.brief[:1].upper() + command.brief[1:])}.",
            f"```text\n{command.usage}\n```",
        ]
        for kind, content in command.blocks:
            out.append(f"Exit status: {escape(content)}" if kind == "exit" else as_markdown(kind, content))
    return "\n\n".join(out) + "\n"
