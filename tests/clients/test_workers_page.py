# SPDX-License-Identifier: MIT
"""docs/workers.md: its workers in ten lines work, and it names tests that are there."""
import os
import pathlib
import re
import signal
import subprocess

import pytest
from harness import HOST, PATIENCE, ROOT, Guard, wait_until
from python_package import new_file
from subject import node_driver, node_path
from test_coming_from import command_line

import tickwheel

PAGE = pathlib.Path(ROOT, "docs", "workers.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(sh|python|js|go)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAMS = dict(BLOCK.findall(PAGE))
SERVER = "redis://127.0.0.1:7379"  # that of the page


def test_each_language_has_a_program():
    assert list(PROGRAMS) == ["sh", "python", "js", "go"] and len(BLOCK.findall(PAGE)) == len(PROGRAMS)
    assert all(SERVER in code for code in PROGRAMS.values())


@pytest.fixture
def started(tmp_path):
    """started(LANGUAGE, URL) starts the program of the page, as a reader would, and returns its process."""
    running = []

    def start(language, url):
        code = PROGRAMS[language]
        if language == "sh" and url.startswith("sqlite"):
            code = code.replace(f"--redis {SERVER}", f"--store {url.removeprefix('sqlite:///')}")
        code = code.replace(SERVER, url)
        words, more = command_line(language, tmp_path, code if language != "sh" else f"exec {code}")
        environment = {**os.environ, **more}
        if language == "go":
            program = tmp_path / "worker"
            subprocess.run([words[0], "build", "-o", program, words[-1]], env=environment, check=True,
                           timeout=PATIENCE * 2)
            words = [program]
        running.append(subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, text=True,
                                        stdout=subprocess.PIPE))
        Guard.tell("+", running[-1].pid)
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.communicate(timeout=PATIENCE)
        Guard.tell("-", process.pid)


def does_its_work(process, url):
    """Puts a task. The program does it, and ends at a signal."""
    mails = tickwheel.Queue(tickwheel.connect(url), "mails")
    mails.put("welcome:ann", "ann@example.org")
    wait_until(lambda: process.poll() is not None or not mails.count())
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=PATIENCE)
    assert (output, process.returncode) == ("to ann@example.org\n", 0)


@pytest.mark.parametrize("language", PROGRAMS)
def test_a_worker_in_ten_lines(common, started, language):
    url = f"redis://{HOST}:{common.port}"
    does_its_work(started(language, url), url)


@pytest.mark.parametrize("language", ["sh", "python", "js"])
def test_a_worker_of_a_file_in_ten_lines(started, tmp_path, monkeypatch, language):
    if language == "js":
        node_driver()
        monkeypatch.setenv("NODE_PATH", ":".join(node_path()))
    url = new_file(tmp_path, "shop.db")
    does_its_work(started(language, url), url)


def test_the_document_names_tests_that_are_there():
    named = set(re.findall(r"`(test_\w+(?:\.py)?)`", PAGE))
    there = set()
    for path in pathlib.Path(ROOT, "tests", "clients").glob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        there |= {path.name, *re.findall(r"^(?:    )?def (test_\w+)", text, re.MULTILINE)}
    assert len(named) > 30 and named <= there, named - there


def test_all_libraries_have_the_same_script():
    """The one that job.ack_then puts around the handler's script."""
    found = []
    for name in ("python/tickwheel/_effects.py", "node/lib/effect.js", "go/effect.go"):
        with open(os.path.join(ROOT, "clients", name), encoding="utf-8") as file:
            text = file.read()
        found += re.findall(r"local effect = function\(KEYS, ARGV\) (?=\")", text)
        found += re.findall(r"^end\nlocal keys.*?^return \{1, reply\}$", text, re.MULTILINE | re.DOTALL)
    assert len(found) == 6 and len(set(found)) == 2, found
