# SPDX-License-Identifier: MIT
"""Fixtures of the tests of workers: those of tests/redis (`fleet`, `clock`, `server`, `r`), whose harness.py
starts real servers, and a server that the tests of one file share.

    def test_a_job_is_done(common, queue):
        r = common.client()
        r.execute_command("TW.PUT", queue, "a", "IN", 0, "PAYLOAD", "ok")
"""
import importlib.util
import itertools
import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
REDIS = os.path.join(os.path.dirname(HERE), "redis")
sys.path[:0] = [HERE, REDIS, os.path.join(REDIS, "cluster")]

from harness import Fleet  # noqa: E402  (the folder has to be on the path first)
from subject import languages  # noqa: E402


def fixtures_of_redis():
    """Loads tests/redis/conftest.py under another name, since this file is called conftest too."""
    spec = importlib.util.spec_from_file_location("redis_conftest", os.path.join(REDIS, "conftest.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_redis = fixtures_of_redis()
fleet, clock, server, r = _redis.fleet, _redis.clock, _redis.server, _redis.r
pytest_runtest_makereport = _redis.pytest_runtest_makereport
NUMBERS = itertools.count(1)


def is_for_libraries(item):
    """Whether the test is marked so, and nothing but the command is tested."""
    language = item.callspec.params.get("language") if hasattr(item, "callspec") else None
    return bool(item.get_closest_marker("library")) and ([language] if language else languages()) == ["command"]


def pytest_collection_modifyitems(config, items):
    _redis.leave_out(config, items, lambda item: _redis.is_for_rounds(item) or is_for_libraries(item))


@pytest.fixture(scope="module")
def common(request):
    """A server that all tests of a file share. They do not kill, pause or fill it: for that each has a fleet
    of its own."""
    made = Fleet()
    failed = request.session.testsfailed
    yield made.server()
    if request.session.testsfailed > failed:
        print(made.tails())
    made.close()


@pytest.fixture
def queue():
    """A key that no other test of this file uses, with a hash tag for a cluster."""
    return f"{{jobs{next(NUMBERS)}}}:work"
