# SPDX-License-Identifier: MIT
"""The packages of npm that programs in Node use: Debian's, or those that the environment names."""
import glob
import os
import pathlib

DRIVER = os.environ.get("TICKWHEEL_NODE_DRIVER", "sqlite3")
ROOT = pathlib.Path(__file__).resolve().parents[2]


def node_path():
    """The folders with npm's packages: Debian's and that of fetch_node_sqlite, or the one that
    TICKWHEEL_NODE_PATH names."""
    named = os.environ.get("TICKWHEEL_NODE_PATH")
    return [named] if named else ["/usr/share/nodejs", *glob.glob("/usr/lib/*-linux-*/nodejs"),
                                  str(ROOT / "build/node-sqlite3")]
