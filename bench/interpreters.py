# SPDX-License-Identifier: MIT
"""The interpreters of programs in Python and Node, and the packages that the programs find: our client of this
tree, those of Debian, and those that npm has installed into a folder."""
import glob
import os
import shutil
import subprocess
import sys

BENCH = os.path.dirname(os.path.abspath(__file__))
CLIENT = os.path.join(os.path.dirname(BENCH), "clients", "python")
DEBIANS_PYTHON = "/usr/bin/python3"
# Debian's packages for Node, and its driver for SQLite where tests/clients/fetch_node_sqlite has unpacked it.
DEBIANS_NODE = ["/usr/share/nodejs", *glob.glob("/usr/lib/*-linux-*/nodejs"),
                os.path.join(os.path.dirname(BENCH), "build", "node-sqlite3")]
SQLITE_DRIVERS = ("node:sqlite", "better-sqlite3", "sqlite3")


def python():
    """Debian's Python, which has Debian's packages, or the one that runs this program."""
    return DEBIANS_PYTHON if os.path.exists(DEBIANS_PYTHON) else sys.executable


def environment(npm):
    """That of the programs. `npm` is a folder in which npm has installed packages, or None. These come before
    Debian's."""
    modules = [os.path.join(npm, "node_modules"), *DEBIANS_NODE] if npm else DEBIANS_NODE
    return {**os.environ, "NODE_PATH": ":".join(modules), "PYTHONPATH": f"{CLIENT}:{BENCH}"}


def has_python(package):
    done = subprocess.run([python(), "-c", f"import {package}"], stderr=subprocess.DEVNULL, check=False)
    return done.returncode == 0


def has_node(package, npm):
    if shutil.which("node") is None:
        return False
    done = subprocess.run(["node", "-e", f"require('{package}')"], stderr=subprocess.DEVNULL, check=False,
                          env=environment(npm))
    return done.returncode == 0
