# SPDX-License-Identifier: MIT
"""tools/cluster, which `make cluster` calls: a small run, a run that is interrupted, and its bookkeeping."""
import importlib.machinery
import importlib.util
import os
import re
import signal
import subprocess
import sys

import pytest

from harness import PATIENCE, ROOT, Broken, module_path, wait_until

TOOL = os.path.join(ROOT, "tools", "cluster")
ROW = r"(?m)^{} +" + r" +".join([r"([\d,]+)"] * 8) + "$"


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Starts the tool; its servers have their folders below tmp_path."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("TICKWHEEL_MODULE", module_path())
    running = []

    def start(*options):
        line = [sys.executable, "-u", TOOL, *map(str, options)]
        running.append(subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return running[-1]

    yield start
    for process in running:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=PATIENCE)


def servers_below(folder):
    """Returns the processes that work in a folder below this folder; a folder that was deleted meanwhile
    counts too."""
    found = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            where = os.readlink(f"/proc/{process}/cwd")
        except OSError:
            continue
        if where.startswith(f"{folder}/"):
            found.append((process, where))
    return found


def nothing_left(folder):
    wait_until(lambda: not servers_below(folder), message=lambda: str(servers_below(folder)))
    assert not [name for name in os.listdir(folder) if name.startswith("tickwheel")]


def test_a_primary_is_killed_and_every_task_accounted_for(start, tmp_path):
    process = start("--tasks", 3000, "--queues", 60, "--seconds", 4)
    output, errors = process.communicate(timeout=PATIENCE * 2)
    assert (process.returncode, errors) == (0, ""), output
    rows = [[int(number.replace(",", "")) for number in re.search(ROW.format(name), output).groups()]
            for name in ("primaries that lived", "the one that was killed", "all")]
    lived, killed, together = rows
    assert together[:2] == [3000, 3000] and together[4] == 0
    assert [a + b for a, b in zip(lived[:5], killed[:5])] == together[:5]
    assert killed[0] > 0 and lived[0] > 0
    assert re.search(r"killed the primary on port \d+, with [1-9][\d,]* of its tasks not yet read", output)
    assert "all servers are stopped" in output
    nothing_left(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_stops_what_it_has_started_when_it_is_interrupted(start, tmp_path, number):
    process = start("--tasks", 3000, "--queues", 60, "--seconds", 60)
    for line in process.stdout:
        if "on primaries and replicas" in line:
            break
    assert len(servers_below(tmp_path)) >= 6
    process.send_signal(number)
    output, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (130, "")
    assert "all servers are stopped" in output
    nothing_left(tmp_path)


@pytest.mark.parametrize("options",
                         [["--tasks", "0"], ["--queues", "-1"], ["--seconds", "x"], ["--nonsense"]])
def test_options_that_are_none(start, options):
    process = start(*options)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert "Traceback" not in errors and options[0] in errors


@pytest.fixture(scope="module")
def tool():
    loader = importlib.machinery.SourceFileLoader("cluster_tool", TOOL)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("cluster_tool", loader))
    loader.exec_module(module)
    return module


def part_with(tool, due, seen):
    """Makes a part that never had a server: `seen` is {id: [(due, at)]}."""
    part = tool.Part(None, None, [])
    part.due.update(due)
    part.seen.update({task: [tool.Entry(*entry) for entry in entries] for task, entries in seen.items()})
    return part


def test_the_account_counts(tool, capsys):
    seen = {"a": [(100, 100)], "b": [(200, 5200), (200, 9000)], "c": [(300, 299)]}
    part = part_with(tool, {"a": 100, "b": 200, "c": 300, "d": 400}, seen)
    assert tool.account("all", [part]) == (1, 1)
    numbers = re.search(ROW.format("all"), capsys.readouterr().out.replace("-", ""))
    assert numbers[0].split()[1:6] == ["4", "3", "1", "1", "1"]
    assert numbers[0].split()[6:] == ["0", "5,000", "5,000"]


def test_what_is_lost_or_early_or_strange_fails(tool):
    fine = part_with(tool, {"z": 100}, {"z": [(100, 100)]})
    tool.report([fine], fine)
    for seen, why in (({}, "1 tasks were lost"), ({"a": [
        (100, 99)
    ]}, "1 tasks were delivered before their time"), ({"a": [(101, 101)]}, "not added, or added with another"),
                      ({"a": [(100, 100)], "x": [(1, 1)]}, "not added, or added with another")):
        with pytest.raises(Broken, match=why):
            tool.report([fine, part_with(tool, {"a": 100}, seen)], fine)
