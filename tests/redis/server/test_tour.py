# SPDX-License-Identifier: MIT
"""docs/durable-tasks.md and docs/redis.md have ```console blocks. This test runs the blocks of each page, in
order, against one server, and compares the output with the page. It does the same with the commands for Redis
in the README.

In a block, a line that begins with `$ ` is a command, and the lines after it are its output. Special marks:
  - `...` stands for any text within a line and, alone in a line, for any number of lines.
  - Between blocks, `<!-- tour: kill -->` kills the server (SIGKILL) and starts it again.
  - 7379, the port of `make serve`, is replaced by the port of the server.
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys

import pytest

from harness import PATIENCE, ROOT, program

TOURS = [pathlib.Path(ROOT, "docs", name) for name in ("durable-tasks.md", "redis.md")]
STEP = re.compile(r"^<!-- tour: (?P<act>.*?) -->$|^```console\n(?P<session>.*?)^```$", re.MULTILINE | re.DOTALL)


def commands_of(session):
    """Yields (command, expected output) of a console block."""
    parts = re.split(r"^\$ (.*)\n", session, flags=re.MULTILINE)
    assert parts[0] == "", f"output without a command: {parts[0]!r}"
    return list(zip(parts[1::2], parts[2::2]))


def pattern_of(expected):
    """Returns the output in a document as a regular expression."""
    def line(text):
        return r"(?:.*\n)*?" if text == "..." else ".+".join(map(re.escape, text.split("..."))) + r"\n"
    return "".join(map(line, expected.splitlines()))


def same(expected, printed):
    return re.fullmatch(pattern_of(expected), printed) is not None


@pytest.fixture
def shell(server, tmp_path):
    """run(command) runs a command as a reader would type it. redis-cli prints as on a terminal, and python3
    is the interpreter of the tests."""
    short = tmp_path / "bin"
    short.mkdir()
    for name, line in (("redis-cli", [program("REDIS_CLI", "redis-cli"),
                                      "--no-raw"]), ("python3", [sys.executable, "-B"])):
        (short / name).write_text(f'#!/bin/sh\nexec {shlex.join(line)} "$@"\n', encoding="utf-8")
        (short / name).chmod(0o755)

    def run(command):
        done = subprocess.run(["bash", "-c", command.replace("7379", str(server.port))],
                              cwd=ROOT,
                              timeout=2 * PATIENCE,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL,
                              text=True,
                              env={**os.environ, "PATH": f"{short}:{os.environ['PATH']}"},
                              check=False)
        return done.stdout.replace("\r\n", "\n").replace(str(server.port), "7379")

    return run


@pytest.fixture
def server(fleet):
    """A server as `make serve` starts it."""
    return fleet.server(appendonly="yes", appendfsync="everysec")


@pytest.mark.parametrize("tour", TOURS, ids=lambda tour: tour.stem)
def test_the_tour(server, shell, tour):
    ran = 0
    for step in STEP.finditer(tour.read_text(encoding="utf-8")):
        if step["act"]:
            assert step["act"] == "kill", f"unknown: {step[0]}"
            server.kill()
            server.start()
            continue
        for command, expected in commands_of(step["session"]):
            printed = shell(command)
            assert same(expected, printed), f"$ {command}\nin {tour.name}:\n{expected}\nprinted:\n{printed}"
            ran += 1
    assert ran >= 20, "the tour has lost its commands, or this test its pattern"


def test_the_retry_of_the_tour(r):
    """A task whose work fails twice comes three times, with the number of the try; the entries are
    acknowledged."""
    block = re.search(r"^```python\n(.*?)^```$", TOURS[0].read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    names = {}
    exec(block[1], names)  # pylint: disable=exec-used
    schedule, stream, group = "{shop}:jobs", "{shop}:mail", "workers"
    r.xgroup_create(stream, group, id="0", mkstream=True)
    r.execute_command("TW.ADD", schedule, stream, "mail:7", "IN", 0, "PAYLOAD", "to", "ann")
    seen = []
    for least in (500, 1000, 2000):
        [[_, [[entry, fields]]]] = r.xreadgroup(group, "me", {stream: ">"}, block=PATIENCE * 1000)
        seen.append((fields["tw.id"], fields["to"], fields.get("try")))
        assert least <= names["retry_later"](r, schedule, stream, group, entry, fields) <= 2 * least
        assert r.xpending(stream, group)["pending"] == 0
    assert seen == [("mail:7", "ann", None), ("mail:7", "ann", "2"), ("mail:7", "ann", "3")]


def test_the_durable_task_of_the_readme(shell):
    readme = pathlib.Path(ROOT, "README.md").read_text(encoding="utf-8")
    found = re.search(r"^```sh\n((?:redis-cli -p 7379 .*\n)+)```\n\n```text\n(.*?)^```$", readme,
                      re.MULTILINE | re.DOTALL)
    assert found, "the README has lost its durable task, or this test its pattern"
    lines = found[1].splitlines()
    assert [line.split()[3] for line in lines] == ["TW.ADD", "BLPOP"]
    printed = "".join(map(shell, lines))
    assert printed == found[2]


@pytest.mark.parametrize("expected, printed, outcome", [
    ("OK\n", "OK\n", True),
    ("OK\n", "OK\nand more\n", False),
    ("", "something\n", False),
    ("a ... c\n", "a b c\n", True),
    ("a ... c\n", "a \nc\n", False),
    ("(integer) 1\n", "(integer) 11\n", False),
    ("a\n...\nc\n", "a\nb\nb\nc\n", True),
    ("a\n...\nc\n", "a\nb\n", False),
    ("a.b\n", "axb\n", False),
])
def test_what_counts_as_the_same(expected, printed, outcome):
    assert same(expected, printed) is outcome


def test_commands_are_told_from_their_output():
    assert commands_of("$ one\n1\n2\n$ two\n$ three\n3\n") == [("one", "1\n2\n"), ("two", ""), ("three", "3\n")]
