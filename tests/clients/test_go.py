# SPDX-License-Identifier: MIT
"""The Go package alone: its own tests without and with a server, gofmt and vet, and the blocks of docs/go.md.
How its worker behaves is tested with all languages, in test_workers.py.

TICKWHEEL_GO: a folder that keeps the compiled programs from one run to the next. Go's own cache (GOCACHE)
counts too, but not alone: it knows a package by its folder.
"""
import os
import re
import signal
import subprocess

import pytest
from harness import HOST, PATIENCE, ROOT, version

PACKAGE = os.path.join(ROOT, "clients", "go")
SUBJECTS = os.path.join(ROOT, "tests", "clients", "subjects")
PAGE = os.path.join(ROOT, "docs", "go.md")
BLOCK = re.compile(r"^```go\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DEFINED = re.compile(r"^(\w+(?:, \w+)*) := ", re.MULTILINE)
IMPORTS = ('"context"', '"errors"', '"fmt"', '"os"', '"os/signal"', '"syscall"', '"time"',
           '"github.com/gomodule/redigo/redis"', '"tickwheel"')
HEAD = "package main\n\nimport (\n" + "".join(f"\t{path}\n" for path in IMPORTS) + """)

var _ = errors.Is
var _ = os.Exit
var _ = signal.Notify
var _ = syscall.Kill

"""
SIGNATURE = ("func(ctx context.Context, pool *redis.Pool, orders *tickwheel.Queue, "
             "worker *tickwheel.Worker) error")


def blocks():
    """Returns the program of the page, and its other blocks."""
    with open(PAGE, encoding="utf-8") as file:
        found = BLOCK.findall(file.read())
    programs = [block for block in found if block.startswith("package main")]
    assert len(programs) == 1 and len(found) > 1
    return programs[0], [block for block in found if block not in programs]


def function(block):
    """A block as a function. Go refuses variables that are not used, and the page need not use them."""
    names = {name for line in DEFINED.findall(block) for name in line.split(", ")} - {"_"}
    uses = "".join(f"_ = {name}\n" for name in sorted(names))
    return f"{SIGNATURE} {{\n{{\n{block}{uses}}}\nreturn nil\n}},\n"


class Tree:
    """A GOPATH with the package, and the programs that were built in it."""

    def __init__(self, folder):
        self.folder = str(folder)
        self.environment = {**os.environ, "GO111MODULE": "off", "GOPATH": f"{folder}:/usr/share/gocode"}
        os.makedirs(self.path("src", "page"), exist_ok=True)
        for name, target in (("tickwheel", PACKAGE), ("subject", os.path.join(SUBJECTS, "go")),
                             (os.path.join("page", "page.go"), os.path.join(SUBJECTS, "page", "page.go"))):
            if not os.path.islink(self.path("src", name)):
                os.symlink(target, self.path("src", name))
        self.write_page()
        self.run("go", "test", "-c", "-o", self.path("tests"), "tickwheel")
        self.run("go", "build", "-o", self.path("program"), "page")

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write_page(self):
        program, fragments = blocks()
        literal = '"redis://127.0.0.1:7379"'
        assert literal in program
        with open(self.path("src", "page", "main.go"), "w", encoding="utf-8") as file:
            file.write(program.replace(literal, "url"))
        with open(self.path("src", "page", "fragments.go"), "w", encoding="utf-8") as file:
            file.write(f"{HEAD}var fragments = []fragment{{\n{''.join(map(function, fragments))}}}\n")

    def run(self, *words, cwd=None, **variables):
        """Runs a program, which must succeed, and returns its output."""
        done = subprocess.run(words, cwd=cwd or self.folder, env={**self.environment, **variables},
                              capture_output=True, text=True, timeout=PATIENCE * 2, check=False)
        assert done.returncode == 0, f"{' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return Tree(os.environ.get("TICKWHEEL_GO") or tmp_path_factory.mktemp("go"))


def url_of(server):
    return f"redis://{HOST}:{server.port}"


def test_the_form(tree):
    """gofmt has nothing to change, and vet finds nothing."""
    sources = [PACKAGE, os.path.join(SUBJECTS, "go"), os.path.join(SUBJECTS, "page")]
    assert tree.run("gofmt", "-l", *sources) == ""
    assert tree.run("gofmt", "-l", tree.path("src", "page", "main.go")) == ""
    assert tree.run("go", "vet", "tickwheel", "subject", "page") == ""


def test_the_version():
    with open(os.path.join(PACKAGE, "doc.go"), encoding="utf-8") as file:
        assert f'const Version = "{version()}"' in file.read()


def test_the_packages_own_tests(tree, common, fleet):
    """All of them run, none is skipped."""
    cluster, sentinel = fleet.cluster(3), fleet.sentinel(common)
    said = tree.run(tree.path("tests"), "-test.v", cwd=PACKAGE, TICKWHEEL_TEST_URL=url_of(common),
                    TICKWHEEL_TEST_CLUSTER=f"{HOST}:{cluster.nodes[0].port}",
                    TICKWHEEL_TEST_SENTINEL=f"{HOST}:{sentinel.port}")
    assert "--- SKIP" not in said and said.count("--- PASS: TestServer") > 10, said


def test_the_pages_program(tree, server):
    """It does as docs/go.md says, until Ctrl-C."""
    with subprocess.Popen([tree.path("program")], stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "TICKWHEEL_TEST_URL": url_of(server)}) as program:
        try:
            assert program.stdout.readline() == "mail:7: remind ann, attempt 1\n"
            program.send_signal(signal.SIGINT)
            assert program.stdout.read() == "{Done:1 Failed:0 Died:0 Back:0 NotYours:0}\n"
            assert program.wait(PATIENCE) == 0
        finally:
            program.kill()


def test_the_pages_other_blocks(tree, server):
    said = tree.run(tree.path("program"), TICKWHEEL_TEST_URL=url_of(server), TICKWHEEL_PROOFS="1")
    assert said.count("proved: ") == len(blocks()[1]), said
    assert said.count("order:42 has a timeout already\n") == 1
    assert re.search(r"^stopped at part \d+ not yours: true$", said, re.MULTILINE), said
    assert "a died at" in said and said.index("a died at") < said.index("b died at")
