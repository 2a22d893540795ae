# SPDX-License-Identifier: MIT
"""docs/coming-from-queues.md: each section ends with a program and, in a text block, the lines that it prints.
This test runs every program as a reader would, against a server of its own."""
import os
import pathlib
import re
import subprocess
import sys

import pytest

from harness import PATIENCE, ROOT, program

PAGE = pathlib.Path(ROOT, "docs", "coming-from-queues.md")
SECTION = re.compile(r"^## \d+\. (?P<name>.*)\n(?P<body>(?:(?!^## ).*\n)*)", re.MULTILINE)
PROGRAM = re.compile(r"^```(?P<language>js|python|go|ruby|sh)\n(?P<code>.*?)^```$.*?"
                     r"^```text\n(?P<prints>.*?)^```$", re.MULTILINE | re.DOTALL)
CLIENTS = pathlib.Path(ROOT, "clients")
LANGUAGES = {"BullMQ": "js", "Celery": "python", "asynq": "go", "Sidekiq": "ruby", "RQ": "python",
             "Redisson's RDelayedQueue": "python", "RabbitMQ's delayed message exchange": "python",
             "beanstalkd": "sh", "Amazon SQS": "python"}


def sections():
    return {section["name"]: section["body"] for section in SECTION.finditer(PAGE.read_text(encoding="utf-8"))}


def node(folder, code):
    """A node program finds `redis` as Debian installs it, and `tickwheel` in our tree."""
    modules = folder / "node_modules"
    modules.mkdir()
    (modules / "tickwheel").symlink_to(CLIENTS / "node")
    (folder / "program.js").write_text(code, encoding="utf-8")
    search = os.pathsep.join(filter(None, [os.environ.get("NODE_PATH"), str(modules), "/usr/share/nodejs"]))
    return [program("NODE", "node", "nodejs", package="nodejs"), folder / "program.js"], {"NODE_PATH": search}


def go(folder, code):
    """A Go program outside of modules finds `tickwheel` and redigo in GOPATH."""
    (folder / "src").mkdir()
    (folder / "src" / "tickwheel").symlink_to(CLIENTS / "go")
    (folder / "program.go").write_text(code, encoding="utf-8")
    return [program("GO", "go", package="golang-go"), "run", folder / "program.go"], {"GO111MODULE": "off",
                                                           "GOPATH": f"{folder}:/usr/share/gocode",
                                                           "GOFLAGS": "-p=2"}


def command_line(language, folder, code):
    """Returns the command line that runs a program, and what it needs in its environment."""
    if language == "js":
        return node(folder, code)
    if language == "go":
        return go(folder, code)
    if language == "python":
        return [sys.executable, "-B", "-c", code], {"PYTHONPATH": str(CLIENTS / "python")}
    if language == "ruby":
        return [program("RUBY", "ruby", package="ruby"), "-e", code], {}
    (folder / "tickwheel").symlink_to(os.environ["TICKWHEEL_COMMAND"])
    return ["sh", "-c", code], {"PATH": f"{folder}:{os.environ['PATH']}"}


@pytest.mark.parametrize("name, language", LANGUAGES.items(), ids=list(LANGUAGES))
def test_a_program(server, tmp_path, name, language):
    found = PROGRAM.search(sections()[name])
    assert found and found["language"] == language, "the section has lost its program, or this test its pattern"
    line, more = command_line(language, tmp_path, found["code"])
    done = subprocess.run(line,
                          env={**os.environ, **more, "REDIS_URL": f"redis://127.0.0.1:{server.port}"},
                          timeout=PATIENCE * 2,
                          stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE,
                          text=True,
                          check=False)
    assert (done.stdout, done.returncode) == (found["prints"], 0), done.stderr


def test_every_section_has_a_program_here():
    assert list(sections()) == list(LANGUAGES)
