# SPDX-License-Identifier: MIT
"""Fixtures: `fleet` starts servers for one test; `server` is a fresh server with the module (a start takes 20
ms), `r` is a client of it, and `clock` is the clock of all of them. harness.py explains the servers."""
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from harness import Fleet  # noqa: E402  (the folder has to be on the path first)
from situations import WallClock  # noqa: E402


def leave_out(config, items, condition):
    """Takes the tests of which the condition is true out of the list of tests to run."""
    gone = list(filter(condition, items))
    items[:] = [item for item in items if item not in gone]
    config.hook.pytest_deselected(items=gone)


def is_for_rounds(item):
    """Whether only `make rounds` runs the test."""
    mark = item.get_closest_marker("long")
    return bool(mark and mark.kwargs.get("only") and not os.environ.get("TICKWHEEL_LONG"))


def pytest_collection_modifyitems(config, items):
    leave_out(config, items, is_for_rounds)


@pytest.hookimpl(tryfirst=True, hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Stores the outcome where the end of a fixture finds it."""
    report = (yield).get_result()
    if report.when == "call":
        item.outcome_of_call = report.outcome


@pytest.fixture
def fleet(request):
    """Starts servers. At the end of the test they are stopped, and their logs are read for crashes."""
    made = Fleet()
    yield made
    if getattr(request.node, "outcome_of_call", "failed") == "failed":
        print(made.tails())
    made.close()


@pytest.fixture
def clock(fleet):
    """The wall clock of all servers of this test. It stands still until the test lets it go on. It has to be
    there before the servers: def test_this(clock, server, r)."""
    assert not fleet.servers, "the fixture `clock` comes after a server"
    stands = WallClock(fleet.folder)
    stands.stand()
    fleet.options = stands.options
    return stands


@pytest.fixture
def server(fleet):
    """A server with the module and without data."""
    return fleet.server()


@pytest.fixture
def r(server):
    """A client of `server`."""
    return server.client()
