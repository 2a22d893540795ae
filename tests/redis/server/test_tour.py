# SPDX-License-Identifier: MIT
"""docs/durable-tasks.md and docs/redis.md have ```console blocks. This test runs the blocks of each page, in
order, against one server, and compares the output with the page. It does the same with the worker of the
README, in a file and in Redis.

In a block, a line that begins with `$ ` is a command, and the lines after it are its output. Special marks:
  - `...` stands for any text within a line and, alone in a line, for any number of lines.
  - A token of a lease, 16 hexadecimal digits, stands for the token that the server gives out in its place.
    Later commands of the page have the same token, and get that of the server.
  - Between blocks, `<!-- tour: kill -->` kills the server (SIGKILL) and starts it again.
  - A Python program that the page lets its reader save is saved in the folder of the commands, which looks like
    the tree.
  - 7379, the port of `make serve`, is replaced by the port of the server. REDIS_URL names it for the examples.
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys

import pytest

from harness import PATIENCE, ROOT, program

# Documents with sessions, and how many commands they have at least.
TOURS = [(pathlib.Path(ROOT, "docs/durable-tasks.md"), 20), (pathlib.Path(ROOT, "docs/redis.md"), 20),
         (pathlib.Path(ROOT, "README.md"), 4)]
TOKEN = re.compile(r"\b[0-9a-f]{16}\b")
STEP = re.compile(r"^<!-- tour: (?P<act>.*?) -->$|^```console\n(?P<session>.*?)^```$|"
                  r" as `(?P<name>\w+\.py)`[^`]*:\n\n```python\n(?P<program>.*?)^```$",
                  re.MULTILINE | re.DOTALL)
COMMAND = os.path.abspath(os.environ.get("TICKWHEEL_COMMAND") or os.path.join(ROOT, "build", "tickwheel"))


def commands_of(session):
    """Yields (command, expected output) of a console block."""
    parts = re.split(r"^\$ (.*)\n", session, flags=re.MULTILINE)
    assert parts[0] == "", f"output without a command: {parts[0]!r}"
    return list(zip(parts[1::2], parts[2::2]))


def pattern_of(expected):
    """Returns the output in a document as a regular expression, with a group for each token."""
    def line(text):
        return r"(?:.*\n)*?" if text == "..." else ".+".join(map(re.escape, text.split("..."))) + r"\n"
    return TOKEN.sub(f"({TOKEN.pattern})".replace("\\", r"\\"), "".join(map(line, expected.splitlines())))


def same(expected, printed, tokens=None):
    """Whether a command has printed the output in a document. Adds the tokens of the document to `tokens`, each
    with the server's token in its place."""
    found = re.fullmatch(pattern_of(expected), printed)
    if found and tokens is not None:
        tokens.update(zip(TOKEN.findall(expected), found.groups()))
    return found is not None


def with_tokens(command, tokens):
    return TOKEN.sub(lambda token: tokens.get(token[0], token[0]), command)


@pytest.fixture
def tree(tmp_path):
    """A folder that looks like the tree after a build."""
    folder = tmp_path / "tree"
    (folder / "build").mkdir(parents=True)
    (folder / "build" / "tickwheel").symlink_to(COMMAND)
    for name in ("clients", "examples"):
        (folder / name).symlink_to(os.path.join(ROOT, name))
    return folder


@pytest.fixture
def shell(server, tmp_path, tree):
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
                              cwd=tree,
                              timeout=PATIENCE * 2,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL,
                              text=True,
                              env={**os.environ, "PATH": f"{short}:{os.environ['PATH']}",
                                   "REDIS_URL": f"redis://127.0.0.1:{server.port}"},
                              check=False)
        return done.stdout.replace("\r\n", "\n").replace(str(server.port), "7379")

    return run


@pytest.fixture
def server(fleet):
    """A server as `make serve` starts it."""
    return fleet.server(appendonly="yes", appendfsync="everysec")


@pytest.mark.parametrize("tour, least", TOURS, ids=[tour.stem for tour, _ in TOURS])
def test_the_tour(server, shell, tree, tour, least):
    ran, tokens = 0, {}
    for step in STEP.finditer(tour.read_text(encoding="utf-8")):
        if step["act"]:
            assert step["act"] == "kill", f"unknown: {step[0]}"
            server.kill()
            server.start()
            continue
        if step["name"]:
            (tree / step["name"]).write_text(step["program"], encoding="utf-8")
            continue
        for command, expected in commands_of(step["session"]):
            printed = shell(with_tokens(command, tokens))
            told = f"$ {command}\nin {tour.name}:\n{expected}\nprinted:\n{printed}"
            assert same(expected, printed, tokens), told
            ran += 1
    assert ran >= least, "the tour has lost its commands, or this test its pattern"


def function_of_the_tour(name):
    text = TOURS[0][0].read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    [block] = [block for block in blocks if f"def {name}(" in block]
    names = {}
    exec(block, names)  # pylint: disable=exec-used
    return names


def test_the_worker_of_the_tour(r):
    """It acknowledges work that is done, and says why an attempt has failed."""
    work_on, seen = function_of_the_tour("work_on")["work_on"], []

    def do(name, due, attempt, payload):
        seen.append((name, attempt, payload))
        if attempt == 1:
            raise OSError(f"the mail server is away, {due > 0}")

    r.execute_command("TW.PUT", "s", "a", "IN", 0, "TRIES", 2, "BACKOFF", 10, 1, 10, "PAYLOAD", "to", "ann")
    assert work_on(r, "s", do) == "a"
    task = r.execute_command("TW.GET", "s", "a")[0]
    task = dict(zip(task[::2], task[1::2]))
    assert (task["attempt"], task["error"]) == (1, "OSError: the mail server is away, True")
    assert work_on(r, "s", do) == "a" and r.exists("s") == 0
    assert seen == [("a", 1, ["to", "ann"]), ("a", 2, ["to", "ann"])]
    r.execute_command("TW.PAUSE", "s")
    assert work_on(r, "s", do, block_ms=10) is None


def test_the_retry_of_the_tour(r):
    """A task whose work fails twice comes three times, with the number of the try; the entries are
    acknowledged."""
    names = function_of_the_tour("retry_later")
    queue, stream, group = "{shop}:jobs", "{shop}:mail", "workers"
    r.xgroup_create(stream, group, id="0", mkstream=True)
    r.execute_command("TW.SEND", queue, stream, "mail:7", "IN", 0, "PAYLOAD", "to", "ann")
    seen = []
    for least in (500, 1000, 2000):
        [[_, [[entry, fields]]]] = r.xreadgroup(group, "me", {stream: ">"}, block=PATIENCE * 1000)
        seen.append((fields["tw.id"], fields["to"], fields.get("try")))
        wait = names["retry_later"](r, queue, stream, group, entry, fields)
        assert least <= wait <= 2 * least
        assert r.xpending(stream, group)["pending"] == 0
    assert seen == [("mail:7", "ann", None), ("mail:7", "ann", "2"), ("mail:7", "ann", "3")]


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


def test_a_token_stands_for_that_of_the_server():
    page, server, tokens = "5c42d4b701a58d9c", "0123456789abcdef", {}
    assert same(f'3) "{page}"\n', f'3) "{server}"\n', tokens) and tokens == {page: server}
    assert with_tokens(f"TW.ACK s a {page} b {page[:-1]} {server}", tokens) == (
        f"TW.ACK s a {server} b {page[:-1]} {server}")
    assert not same(f'3) "{page}"\n', f'3) "{server[:-1]}"\n', tokens)
    assert not same('3) "a name"\n', f'3) "{server}"\n', tokens)


def test_commands_are_told_from_their_output():
    assert commands_of("$ one\n1\n2\n$ two\n$ three\n3\n") == [("one", "1\n2\n"), ("two", ""), ("three", "3\n")]
