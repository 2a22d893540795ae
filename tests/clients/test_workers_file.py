# SPDX-License-Identifier: MIT
"""Workers of a file keep the promises of docs/workers.md too. These are the tests of test_workers.py about one
worker, with a desk whose tasks are in a file."""
import hashlib

import pytest
from harness import now_ms
from python_package import new_file
from subject import Subject, languages, node_driver
# pylint: disable=unused-import
from test_workers import (BILLS, MAILS, Desk, test_a_handler_asks_for_a_retry_after_a_delay,
                          test_a_handler_gives_a_job_up, test_a_handler_says_that_it_is_too_early,
                          test_a_job_fails_twice_and_succeeds,
                          test_a_job_goes_on_when_its_task_is_moved_or_replaced,
                          test_a_job_is_dead_after_its_tries, test_a_job_is_done,
                          test_a_long_error_is_cut_between_two_characters,
                          test_a_new_task_runs_when_the_job_before_it_has_ended, test_a_pause_of_the_queue,
                          test_a_repeating_job_is_done_in_each_period, test_heartbeats_keep_a_long_job,
                          test_tasks_of_all_queues_are_taken, test_the_backoff_is_the_tasks_own,
                          test_the_name_of_the_worker, test_the_task_is_not_yours)

import tickwheel

LEASE = 5000  # ms. The clock of a file is that of the system.


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
        return decoded(super().execute_command(*words))


class FileDesk(Desk):
    def client(self):
        return Clerk(self.server)

    def now(self):
        return now_ms()


@pytest.fixture(scope="module", params=[one for one in languages() if one in ("python", "asyncio", "node")])
def language(request):
    return request.param


@pytest.fixture(scope="module")
def desk(language, tmp_path_factory):
    if language == "node":
        node_driver()
    folder = tmp_path_factory.mktemp("desk")
    url = new_file(folder)
    subject = Subject(language, MAILS, BILLS, url=url, jobs=8, name="desk-7", lease=LEASE)
    made = FileDesk(url.removeprefix("sqlite:///"), subject, folder)
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
