# SPDX-License-Identifier: MIT
"""docs/workers.md: its workers in ten lines work, and it names tests that are there."""
import os
import pathlib
import re
import signal
import subprocess

import pytest
from harness import PATIENCE, ROOT, Guard, wait_until
from test_coming_from import command_line

PAGE = pathlib.Path(ROOT, "docs", "workers.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(sh|python|js|go)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAMS = dict(BLOCK.findall(PAGE))


def test_each_language_has_a_program():
    assert list(PROGRAMS) == ["sh", "python", "js", "go"] and len(BLOCK.findall(PAGE)) == len(PROGRAMS)


@pytest.fixture
def started(common, tmp_path):
    """started(LANGUAGE) starts the program of the page, as a reader would, and returns its process."""
    running = []

    def start(language):
        code = PROGRAMS[language].replace("127.0.0.1:7379", f"127.0.0.1:{common.port}")
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


@pytest.mark.parametrize("language", PROGRAMS)
def test_a_worker_in_ten_lines(common, started, language):
    r = common.client()
    r.execute_command("TW.PUT", "mails", "welcome:ann", "IN", 0, "PAYLOAD", "ann@example.org")
    process = started(language)
    wait_until(lambda: process.poll() is not None or not r.exists("mails"))
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=PATIENCE)
    assert (output, process.returncode) == ("to ann@example.org\n", 0)


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
