# SPDX-License-Identifier: MIT
"""Workers of a file keep the promises of docs/workers.md too. These are the tests of test_workers.py that are
not about a server."""
import contextlib
import hashlib
import signal
import sqlite3

import pytest
from harness import PATIENCE, now_ms, task, wait_until
from python_package import new_file
from situations import put
from subject import NOTHING, Subject, languages, node_driver, release
# pylint: disable=unused-import
from test_workers import AGAIN, BILLS, LATER, MAILS, Desk, fresh
from test_workers import start as start_worker
from test_workers import (test_a_handler_asks_for_a_retry_after_a_delay,
                          test_a_handler_gives_a_job_up, test_a_handler_says_that_it_is_too_early,
                          test_a_job_fails_twice_and_succeeds,
                          test_a_job_goes_on_when_its_task_is_moved_or_replaced,
                          test_a_job_is_dead_after_its_tries, test_a_job_is_done,
                          test_a_long_error_is_cut_between_two_characters,
                          test_a_new_task_runs_when_the_job_before_it_has_ended, test_a_pause_of_the_queue,
                          test_a_repeating_job_is_done_in_each_period,
                          test_an_attempt_beyond_its_time_limit_has_failed, test_heartbeats_keep_a_long_job,
                          test_jobs_are_given_back_when_the_grace_is_over, test_one_job_at_a_time_in_order,
                          test_so_many_jobs_at_once_and_no_more, test_tasks_of_all_queues_are_taken,
                          test_the_backoff_is_the_tasks_own, test_the_name_of_the_worker,
                          test_the_task_is_not_yours)

import tickwheel

LEASE, SHORT = 5000, 200  # ms. The clock of a file is that of the system.


def decoded(reply):
    if isinstance(reply, bytes):
        return reply.decode("utf-8", "surrogateescape")
    return [decoded(one) for one in reply] if isinstance(reply, (list, tuple)) else reply


class Clerk(tickwheel.File):
    """A file as the tests know a server: replies are text. In a file a task has one value, so its acts are
    lines."""

    def execute_command(self, *words, **_):
        if words[0] == "TW.PUT":
            at = words.index("PAYLOAD") + 1
            words = (*words[:at], words[at] if len(words) == at + 1 else "\n".join(words[at:]))
        reply = decoded(super().execute_command(*words))
        return {**reply, "late": 0} if words[0] == "TW.INFO" and reply else reply

    def exists(self, queue):
        return self.execute_command("TW.INFO", queue) is not None


class Shelf:
    """A file, where the tests expect a server."""

    def __init__(self, url):
        self.url, self.path = url, url.removeprefix("sqlite:///")

    def client(self):
        return Clerk(self.path)

    def suspend(self, subject):
        """Suspends a worker while it does not hold the lock of the file."""
        def is_left_alone():
            subject.suspend()
            with contextlib.closing(sqlite3.connect(self.path, isolation_level=None)) as db:
                db.execute("PRAGMA busy_timeout = 0")
                with contextlib.suppress(sqlite3.OperationalError):
                    db.execute("BEGIN IMMEDIATE")
                    return True
            subject.send(signal.SIGCONT)
            return False
        wait_until(is_left_alone, subject.story)


class FileDesk(Desk):
    def client(self):
        return self.server.client()

    def now(self):
        return now_ms()


@pytest.fixture(scope="module", params=[one for one in languages() if one in ("python", "asyncio", "node")])
def language(request):
    return request.param


@pytest.fixture(scope="module")
def common(language, tmp_path_factory):
    if language == "node":
        node_driver()
    return Shelf(new_file(tmp_path_factory.mktemp("shelf")))


@pytest.fixture
def start(start_worker):
    return lambda *queues, server, **options: start_worker(*queues, url=server.url, **options)


@pytest.fixture(scope="module")
def desk(language, common, tmp_path_factory):
    folder = tmp_path_factory.mktemp("desk")
    subject = Subject(language, MAILS, BILLS, url=common.url, jobs=8, name="desk-7", lease=LEASE)
    made = FileDesk(common, subject, folder)
    made.put("long", made.until("long"))
    yield made
    subject.close()


def test_a_value_arrives_as_it_is(desk):
    """Bytes that are no text, one MB."""
    value = b"show\n\x00\xff\r\n\xfe" + b"x" * 1000000
    desk.put("value", value)
    assert desk.subject.wait("shown", MAILS, "value")[0][3] == hashlib.sha1(value).hexdigest()
    desk.done_at_once("value")


def test_the_counts_at_the_end(desk):
    """The last test of the desk: all that was done is counted."""
    desk.finish("long")
    desk.done_at_once("long")
    desk.stop()


def test_a_worker_that_dies_loses_its_job(common, start, queue):
    r = common.client()
    put(r, queue, "a", *AGAIN, payload=("die", "ok"))
    assert start(queue, server=common, jobs=1, lease=SHORT).ended() == -signal.SIGKILL
    second = start(queue, server=common, jobs=1)
    second.wait("end", queue, "a", 2)
    wait_until(lambda: task(r, queue, "a") is None, second.story)
    assert second.stop() == {**NOTHING, "done": 1}


def test_a_worker_that_stalls_loses_its_job(common, start, queue, tmp_path):
    r = common.client()
    put(r, queue, "a", *AGAIN, payload=(f"until {tmp_path / 'go'}",))
    first = start(queue, server=common, jobs=1, lease=2000)
    first.wait("begin", queue, "a", 1)
    common.suspend(first)
    try:
        second = start(queue, server=common, jobs=1, lease=PATIENCE * 1000)
        second.wait("begin", queue, "a", 2)
    finally:
        first.send(signal.SIGCONT)
    first.wait("not-yours", queue, "a", 1)
    assert task(r, queue, "a")["error"] == "the lease ran out"
    release(tmp_path / "go")
    second.wait("end", queue, "a", 2)
    wait_until(lambda: task(r, queue, "a") is None, second.story)
    for one, counts in ((first, {"not_yours": 1}), (second, {"done": 1})):
        assert one.stop() == {**NOTHING, **counts}


def test_a_second_signal_gives_jobs_back(common, start, queue, tmp_path):
    """Other signals than the first: the system may make one of two that are equal."""
    r = common.client()
    put(r, queue, "a", *LATER, payload=(f"until {tmp_path / 'never'}",))
    subject = start(queue, server=common, jobs=2)
    subject.wait("begin", queue, "a", 1)
    subject.send(signal.SIGTERM)
    assert subject.stop(signal.SIGINT) == {**NOTHING, "back": 1}
    assert fresh(r, queue, "a") and not subject.all("end") and not subject.all("not-yours")
