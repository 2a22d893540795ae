# SPDX-License-Identifier: MIT
"""Tests bench/redis/footprint, on which docs/scaling.md rests. A task must still take as many bytes as in the
committed results. The memory of another server, or with another allocator, is not compared."""
import csv
import io
import os
import subprocess
import sys

from harness import PATIENCE, ROOT

COMMITTED = os.path.join(ROOT, "bench", "results", "2026-11-21-footprint", "footprint.tsv")
FOOTPRINT = os.path.join(ROOT, "bench", "redis", "footprint")


def medians(text):
    return {(row["load"], row["metric"]): float(row["median"])
            for row in csv.DictReader(io.StringIO(text), delimiter="\t")}


def footprint(*options):
    return subprocess.run([sys.executable, "-B", FOOTPRINT, *map(str, options)], capture_output=True, text=True,
                          timeout=PATIENCE * 5, check=False)


def test_a_task_takes_the_bytes_that_scaling_counts():
    """With fewer tasks than in the measurement, tables are filled differently. So the bytes may differ by a
    twentieth. Times are not compared."""
    done = footprint("--tasks", 30000, "--rounds", 1)
    assert (done.returncode, done.stderr) == (0, "")
    with open(COMMITTED, encoding="utf-8") as file:
        committed = medians(file.read())
    measured = medians(done.stdout)
    assert measured.keys() == committed.keys()
    other = [("task", "bytes"), ("entry", "bytes")] if "REDIS_SERVER" in os.environ else []
    for what, value in measured.items():
        assert value > 0
        if what[1].endswith("bytes") and what not in other:
            assert abs(value / committed[what] - 1) < 0.05, f"{what}: {value}, committed: {committed[what]}"


def test_numbers_that_are_out_of_range():
    done = footprint("--tasks", 10)
    assert done.returncode == 2 and "--tasks 10" in done.stderr and "at least 1000" in done.stderr


def test_the_defaults_of_redis_that_scaling_names(server, r):
    """docs/scaling.md gives the default of each of these settings. Valkey may choose other defaults."""
    if server.is_valkey():
        return
    defaults = {name: r.config_get(name)[name] for name in ("cluster-node-timeout", "repl-backlog-size",
                                                           "auto-aof-rewrite-percentage", "proto-max-bulk-len")}
    assert defaults == {
        "cluster-node-timeout": "15000", "repl-backlog-size": "1048576", "auto-aof-rewrite-percentage": "100",
        "proto-max-bulk-len": str(512 << 20)
    }
    limits = r.config_get("client-output-buffer-limit")["client-output-buffer-limit"]
    assert f"slave {256 << 20} {64 << 20} 60" in limits.replace("replica", "slave")
