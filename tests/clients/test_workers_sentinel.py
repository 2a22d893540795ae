# SPDX-License-Identifier: MIT
"""Workers of all languages at a failover by Sentinel. They have one server together, and a queue each."""
import contextlib

import pytest
from harness import HOST, wait_replica_in_sync, wait_until
from situations import frozen, put
from subject import NOTHING, Subject, languages, release
from test_sentinel_workers import wait_demoted, wait_promoted, watched
from workers import blocked

LANGUAGES = languages()
LEASE = 15000  # Longer than the workers need to find the new primary.


class Watch:
    """A primary with a replica and a sentinel; a worker of each language, which has a job `held`."""

    def __init__(self, fleet, folder):
        self.old, self.new, self.sentinel = watched(fleet, appendonly="yes")
        self.folder, self.crew = folder, {}
        for language in LANGUAGES:
            self.crew[language] = Subject(language, self.queue(language), lease=LEASE,
                                          sentinel=f"{HOST}:{self.sentinel.port}", service=self.sentinel.name)

    @staticmethod
    def queue(language):
        return f"{language}:jobs"

    def put(self, server, name, act):
        client = server.client()
        for language in LANGUAGES:
            put(client, self.queue(language), name, payload=(act,))

    def wait(self, word, name):
        for language, subject in self.crew.items():
            subject.wait(word, self.queue(language), name, 1)

    def hold(self):
        """Each worker does a job, has another one, and waits for a third one. The replica has all of that."""
        self.put(self.old, "first", "ok")
        self.wait("end", "first")
        self.put(self.old, "held", f"until {self.folder / 'held'}")
        self.wait("begin", "held")
        wait_until(lambda: blocked(self.old) == len(self.crew), message="a worker does not wait")
        wait_replica_in_sync(self.old, self.new)

    def go_on(self):
        """The job ends, and its acknowledgement reaches the new primary. Then each worker does one more."""
        release(self.folder / "held")
        self.put(self.new, "next", "ok")
        self.wait("end", "next")
        client = self.new.client()
        for language, subject in self.crew.items():
            queue = self.queue(language)
            wait_until(lambda queue=queue: not client.exists(queue), message=subject.story)
            assert len(subject.wait("begin", count=3)) == 3, subject.story()
            assert subject.stop() == {**NOTHING, "done": 3}, subject.story()

    def close(self):
        for subject in self.crew.values():
            subject.close()


@pytest.fixture
def watch(fleet, tmp_path):
    with contextlib.closing(Watch(fleet, tmp_path)) as made:
        yield made


class TestSentinel:
    """Each job is done once, in its first attempt: leases that end meanwhile begin anew."""

    def test_the_primary_is_killed_while_workers_work(self, watch):
        watch.hold()
        watch.old.kill()
        wait_promoted(watch.sentinel, watch.new)
        watch.go_on()

    @pytest.mark.long(only=True)
    def test_the_primary_hangs_while_workers_work(self, watch):
        """Nobody tells the workers. Their time limits for replies do."""
        watch.hold()
        with frozen(watch.old):
            wait_promoted(watch.sentinel, watch.new)
            watch.go_on()
        wait_demoted(watch.sentinel, watch.old, watch.new)
        assert watch.old.tw()["taken"] == 2 * len(watch.crew)

    @pytest.mark.long(only=True)
    def test_a_planned_failover_while_workers_work(self, watch):
        """The old primary becomes a replica, and says READONLY. Until then it takes acknowledgements that are
        lost, so the jobs end later."""
        watch.hold()
        wait_promoted(watch.sentinel, watch.new, planned=True)
        wait_demoted(watch.sentinel, watch.old, watch.new)
        watch.go_on()
