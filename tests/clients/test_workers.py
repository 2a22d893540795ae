# SPDX-License-Identifier: MIT
"""All workers behave the same: the libraries in Python (threads and asyncio), Node and Go, and `tickwheel
work`. docs/workers.md describes this behaviour and names these tests. subject.py drives the workers.

Most tests share one worker, the desk, since none of them ends it. The last of them stops it and compares all of
its counts. A second one, the rough desk, goes through restarts, lost connections and pauses of its server. Each
other test has workers of its own.

TICKWHEEL_SUBJECT: the languages to test, for example `node` or `python,asyncio`; all of them if unset.
"""
import collections
import contextlib
import hashlib
import re
import signal
import socket
import threading

import pytest
from harness import PATIENCE, Fleet, now_ms, task, wait_until
from proxy import Proxy
from situations import Counters, WallClock, calls_of, dead_of, frozen, put, wait_ready, working
from subject import LEASE, NOTHING, Subject, languages, release, url_of
from workers import FAR, blocked

MAILS, BILLS = "{desk}:mails", "{desk}:bills"
RUN = "{rough}:work"
AGAIN = ("IN", 0, "TRIES", 3, "BACKOFF", 1, 1, 1)  # Tries again at once.
LATER = ("IN", 0, "TRIES", 3, "BACKOFF", FAR, 1, FAR, "JITTER", 0)  # The next attempt is far away.
AGAIN_AND_AGAIN = ("IN", 0, "TRIES", 1000, "BACKOFF", 1, 1, 1)
BLOCK_MS, LIMIT_MS = 5000, 200


@pytest.fixture(scope="module", params=languages())
def language(request):
    return request.param


@pytest.fixture
def start(language, request):
    """Starts workers of the language; those of them that still run at the end of the test are killed."""
    made = []

    def one(*queues, **options):
        made.append(Subject(options.pop("of", language), *queues, **options))
        return made[-1]
    yield one
    if getattr(request.node, "outcome_of_call", "failed") == "failed":
        print(*(subject.story() for subject in made), sep="\n")
    for subject in made:
        subject.close()


class SlowClock(WallClock):
    """The clock of a server. It goes a tenth as fast as those of the workers, so that their heartbeats come in
    time on a busy machine too; and it stands while this process does."""
    PERIOD_S = 0.01

    def __init__(self, folder):
        super().__init__(folder)
        self.lock, self.halt = threading.RLock(), threading.Event()
        self.stand()
        self.thread = threading.Thread(target=self.creep, daemon=True)
        self.thread.start()

    def creep(self):
        while not self.halt.wait(self.PERIOD_S):
            self.push(1)

    def push(self, ms):
        with self.lock:
            super().push(ms)

    def push_monotonic(self, ms):
        with self.lock:
            super().push_monotonic(ms)

    def elapse(self, ms):
        with self.lock:
            super().elapse(ms)

    def end(self):
        self.halt.set()
        self.thread.join(PATIENCE)


@contextlib.contextmanager
def slow_server(**options):
    """A server with a clock that is slow."""
    fleet = Fleet()
    clock = SlowClock(fleet.folder)
    try:
        yield fleet.server(**clock.options, **options), clock
    finally:
        clock.end()
        fleet.close()


@pytest.fixture(scope="module")
def common():
    with slow_server() as (server, _):
        yield server


class Desk:
    """A worker that several tests use, its server and its queue, and the counts that it must have when it
    stops. The act until("a") lasts until finish("a")."""

    def __init__(self, server, subject, files, clock=None):
        self.server, self.subject, self.files, self.clock = server, subject, files, clock
        self.queue, self.r = subject.queues[0], self.client()
        self.wanted = collections.Counter(NOTHING)

    def client(self):
        """A client that also reads bytes that are no text."""
        return self.server.client(encoding_errors="surrogateescape")

    def now(self):
        """Returns the time of the server in ms."""
        seconds, us = self.r.time()
        return seconds * 1000 + us // 1000

    def file(self, name):
        return self.files / name

    def until(self, name):
        return f"until {self.file(name)}"

    def finish(self, *names):
        for name in names:
            release(self.file(name))

    def put(self, name, *acts, words=AGAIN, queue=None):
        put(self.r, queue or self.queue, name, *words, payload=acts)

    def begun(self, name, attempt=1, queue=None):
        self.subject.wait("begin", queue or self.queue, name, attempt)

    def at_work(self, *names):
        """Puts jobs that run until they are finished, and waits until they have begun."""
        for name in names:
            self.put(name, self.until(name))
        for name in names:
            self.begun(name)

    def task(self, name, queue=None):
        return task(self.r, queue or self.queue, name)

    def story(self, name, queue=None):
        return f"{name}: {self.task(name, queue)}\n{self.subject.story()}"

    def done(self, *names, queue=None):
        """Waits until the tasks have left the queue, and counts them as done."""
        for name in names:
            wait_until(lambda name=name: self.task(name, queue) is None,
                       message=lambda name=name: self.story(name, queue))
        self.wanted["done"] += len(names)

    def done_at_once(self, *names):
        """The same, and all of them are done in the first attempt."""
        self.done(*names)
        for name in names:
            self.begun(name)  # Our thread that reads the lines may lag.
        assert [self.attempts(name) for name in names] == [[1]] * len(names), self.subject.story()

    def works(self, name):
        """The worker is well: it does a job."""
        self.put(name, "ok")
        self.done_at_once(name)

    def dead(self, name):
        """Waits until the task is dead, and returns its row of TW.DEAD."""
        wait_until(lambda: self.task(name)["state"] == "dead", message=lambda: self.story(name))
        return next(row for row in dead_of(self.r, self.queue) if row.id == name)

    def attempts(self, name):
        """The numbers of the attempts of a task that have begun, in order."""
        return [int(line[3]) for line in self.subject.all("begin", self.queue, name)]

    def idle(self):
        """Waits until the worker waits for a task."""
        wait_until(lambda: blocked(self.server) == 1, message=self.subject.story)

    def restart(self):
        """A crash of the server. Afterwards it has all that its file has."""
        self.server.kill()
        self.come_back()

    def come_back(self):
        self.server.start()
        self.r = self.client()

    def stop(self):
        """Stops the worker, and compares its counts."""
        assert self.subject.stop() == self.wanted


@pytest.fixture(scope="module")
def desk(language, common, tmp_path_factory):
    """A worker that several tests share. It has a job from its first moment to its last."""
    subject = Subject(language, MAILS, BILLS, server=common, jobs=8, name="desk-7")
    made = Desk(common, subject, tmp_path_factory.mktemp("desk"))
    made.put("long", made.until("long"))
    yield made
    subject.close()
    made.r.delete(MAILS, BILLS)


@pytest.fixture(scope="module")
def rough(language, tmp_path_factory):
    """A worker, and a server with a file that tests kill, pause and fill."""
    with slow_server(appendonly="yes") as (server, clock):
        subject = Subject(language, RUN, server=server)
        yield Desk(server, subject, tmp_path_factory.mktemp("rough"), clock)
        subject.close()


def idle(server, many=1):
    wait_until(lambda: blocked(server) >= many, message="no worker waits")


def text_of(language, text):
    """A pattern of the error that a task has after the act `fail TEXT`."""
    return rf"exit status 1: {text}\s*" if language == "command" else rf"[\w.*:]+: {text}"


# One job

def test_a_job_is_done(desk):
    desk.put("plain", "ok")
    desk.subject.wait("end", MAILS, "plain", 1)
    desk.done_at_once("plain")


def test_values_arrive_as_they_are(desk):
    """Several values: text, an empty one, bytes that are no text, one MB."""
    values = [b"show", b"", "zwei W\u00f6rter".encode(), b"\x00\xff\r\n\xfe", b"x" * 1000000, b""]
    desk.put("values", *values)
    digest = hashlib.sha1(b"\n".join(values)).hexdigest()
    assert desk.subject.wait("shown", MAILS, "values") == [("shown", MAILS, "values", digest)]
    desk.done_at_once("values")


def test_a_job_fails_twice_and_succeeds(desk, language):
    """The error of an attempt stays with the task until the next one ends."""
    desk.put("twice", "fail no first", f"untilfail {desk.file('second')} no second", desk.until("third"))
    for attempt, error, name in ((2, "no first", "second"), (3, "no second", "third")):
        desk.begun("twice", attempt)
        assert re.fullmatch(text_of(language, error), desk.task("twice")["error"])
        desk.finish(name)
    desk.done("twice")
    desk.wanted["failed"] += 2
    assert desk.attempts("twice") == [1, 2, 3]


def test_the_backoff_is_the_tasks_own(desk):
    desk.put("backoff", "fail wait", words=LATER)
    wait_until(lambda: desk.task("backoff")["error"], message=lambda: desk.story("backoff"))
    found = desk.task("backoff")
    assert (found["state"], found["attempt"]) == ("waiting", 1) and found["next"] >= found["due"] + FAR
    assert desk.r.execute_command("TW.CANCEL", MAILS, "backoff") == [1]
    desk.wanted["failed"] += 1


@pytest.mark.library
def test_a_handler_asks_for_a_retry_after_a_delay(desk):
    desk.put("retry", "retry 50 not yet", desk.until("retry"), words=LATER)
    desk.begun("retry", 2)
    found = desk.task("retry")
    assert desk.now() >= found["due"] + 50 and "not yet" in found["error"]
    desk.finish("retry")
    desk.done("retry")
    desk.wanted["failed"] += 1


def test_a_handler_says_that_it_is_too_early(desk):
    """Nothing fails: the task has one try."""
    desk.put("early", f"notyet {desk.file('early')} 20", words=("IN", 0, "TRIES", 1))
    wait_until(lambda: len(desk.attempts("early")) >= 3, message=lambda: desk.story("early"))
    found = desk.task("early")
    assert found["error"] == "" and found["attempt"] <= 1
    desk.finish("early")
    desk.done("early")
    desk.works("after-early")  # Our thread that reads the lines may lag; these come last.
    desk.wanted["back"] += len(desk.attempts("early")) - 1
    assert set(desk.attempts("early")) == {1}


@pytest.mark.library
def test_a_handler_gives_a_job_up(desk):
    desk.put("hopeless", "dead no such address")
    row = desk.dead("hopeless")
    assert row.attempt == 1 and "no such address" in row.error
    desk.wanted.update(failed=1, died=1)


def test_a_job_is_dead_after_its_tries(desk, language):
    desk.put("tries", "fail one", "fail two", words=("IN", 0, "TRIES", 2, "BACKOFF", 1, 1, 1))
    row = desk.dead("tries")
    assert row.attempt == 2 and re.fullmatch(text_of(language, "two"), row.error)
    desk.begun("tries", 2)
    assert desk.attempts("tries") == [1, 2]
    desk.wanted.update(failed=2, died=1)


def test_a_long_error_is_cut_between_two_characters(desk):
    """4,096 bytes stay with the task. Half a character would not be text, which encode() refuses."""
    desk.put("novel", "fail " + "\u00e4" * 5000, words=("IN", 0, "TRIES", 1))
    error = desk.dead("novel").error
    assert 4000 < len(error.encode()) <= 4096 and "\u00e4" * 100 in error
    desk.wanted.update(failed=1, died=1)


def test_tasks_of_all_queues_are_taken(desk):
    for queue in (MAILS, BILLS):
        desk.put("both", desk.until("both"), queue=queue)
    for queue in (MAILS, BILLS):
        desk.begun("both", queue=queue)
    desk.finish("both")
    for queue in (MAILS, BILLS):
        desk.done("both", queue=queue)


def test_a_repeating_job_is_done_in_each_period(desk):
    desk.put("beat", "ok", words=("IN", 0, "EVERY", 5, "TIMES", 3))
    desk.subject.wait("end", MAILS, "beat", 1, count=3)
    desk.done("beat")
    desk.wanted["done"] += 2


# Leases

def test_the_name_of_the_worker(desk):
    desk.begun("long")
    assert desk.task("long")["worker"] == "desk-7"


def test_the_task_is_not_yours(desk):
    """Somebody cancels a job while it runs. Its handler is told, and the task is left alone."""
    desk.at_work("cancelled")
    desk.r.execute_command("TW.CANCEL", MAILS, "cancelled")
    desk.subject.wait("not-yours", MAILS, "cancelled", 1)
    desk.finish("cancelled")
    desk.works("after-cancelled")
    assert desk.task("cancelled") is None
    desk.wanted["not_yours"] += 1


def test_a_job_goes_on_when_its_task_is_moved_or_replaced(desk):
    """The results end the attempts alone. The new tasks have waited for that, and begin anew."""
    desk.put("fails", f"untilfail {desk.file('fails')} too late")
    desk.begun("fails")
    desk.at_work("moved", "succeeds")
    desk.r.execute_command("TW.MOVE", MAILS, "moved", "IN", FAR)
    for name in ("fails", "succeeds"):
        desk.put(name, "ok", words=("IN", FAR))
    names = ("fails", "moved", "succeeds")
    assert [(desk.task(name)["state"], desk.task(name)["replaced"]) for name in names] == [("leased", 1)] * 3
    for name in names:
        desk.finish(name)
        wait_until(lambda name=name: desk.task(name)["state"] == "waiting",
                   message=lambda name=name: desk.story(name))
        assert (desk.task(name)["error"], desk.task(name)["attempt"]) == ("", 0)
        assert not desk.subject.all("not-yours", MAILS, name)
    assert desk.r.execute_command("TW.CANCEL", MAILS, *names) == [1, 1, 1]
    desk.wanted["done"] += 2
    desk.wanted["failed"] += 1


def test_a_new_task_runs_when_the_job_before_it_has_ended(desk):
    """One id never runs twice at once."""
    desk.at_work("again")
    desk.put("again", desk.until("next"))
    desk.works("meanwhile")
    assert desk.attempts("again") == [1]
    desk.finish("again")
    desk.subject.wait("begin", MAILS, "again", 1, count=2)
    desk.finish("next")
    desk.wanted["done"] += 1
    desk.done("again")


def test_a_pause_of_the_queue(desk):
    """In the pause no job begins, and a job that runs is done."""
    desk.at_work("running")
    desk.r.execute_command("TW.PAUSE", MAILS)
    desk.put("paused", "ok")
    desk.finish("running")
    desk.done("running")
    desk.put("bill", "ok", queue=BILLS)  # The worker lives, and has had time for the other task.
    desk.done("bill", queue=BILLS)
    assert not desk.attempts("paused")
    desk.r.execute_command("TW.RESUME", MAILS)
    desk.done("paused")


def test_an_idle_worker_does_not_poll(desk):
    """It calls TW.TAKE once for each BLOCK, while it has a heartbeat for its job. Its own clock counts, which
    is faster than that of its server: after that time it takes a connection without a reply for lost."""
    desk.idle()
    before, begin, end = calls_of(desk.r, "TW.TAKE"), now_ms(), desk.task("long")["next"]
    wait_until(lambda: desk.task("long")["next"] > end, lambda: desk.story("long"))
    blocks = (now_ms() - begin) // BLOCK_MS
    assert calls_of(desk.r, "TW.TAKE") <= before + blocks + 1


def test_heartbeats_keep_a_long_job(desk):
    """A job that takes more than its lease is in its first attempt all the time."""
    desk.begun("long")
    end = desk.task("long")["next"]
    for _ in range(5):
        wait_until(lambda before=end: desk.task("long")["next"] != before, lambda: desk.story("long"))
        found = desk.task("long")
        assert (found["state"], found["attempt"]) == ("leased", 1) and found["next"] > end
        end = found["next"]


def test_the_counts_at_the_end(desk):
    """The last test of the desk: all that was done is counted."""
    desk.finish("long")
    desk.done_at_once("long")
    desk.stop()


# Several jobs, several workers

def test_so_many_jobs_at_once_and_no_more(common, start, queue, tmp_path):
    """The worker takes no task that it cannot start. Its name is its host and its process, and SIGINT stops it
    too."""
    r = common.client()
    names = [f"job{i}" for i in range(7)]
    for name in names:
        put(r, queue, name, payload=(f"until {tmp_path / name}",))
    subject = start(queue, server=common, jobs=3)
    for at in range(7):
        begun = sorted(line[2] for line in subject.wait("begin", queue, count=min(at + 3, 7)))
        state = working(r, queue)
        assert begun == names[:at + 3]
        assert (state["leased"], state["ready"]) == (len(begun) - at, 7 - len(begun))
        assert task(r, queue, names[at])["worker"] == f"{socket.gethostname()}:{subject.pid}"
        release(tmp_path / names[at])
        wait_until(lambda at=at: task(r, queue, names[at]) is None)
    assert subject.stop(signal.SIGINT) == {**NOTHING, "done": 7}


def test_an_attempt_beyond_its_time_limit_has_failed(common, start, queue, tmp_path, language):
    """All of these handlers end when they are told so. Then their place is free."""
    r = common.client()
    put(r, queue, "slow", "IN", 0, "TRIES", 1, payload=(f"until {tmp_path / 'never'}",))
    subject = start(queue, server=common, jobs=1, timeout=LIMIT_MS)
    wait_until(lambda: len(dead_of(r, queue)) == 1, subject.story)
    said = "timed out after 200ms" if language == "command" else "TimeoutError: the time limit of 0.2 s is over"
    assert dead_of(r, queue)[0].error == said
    put(r, queue, "quick", *AGAIN_AND_AGAIN, payload=("ok",))
    wait_until(lambda: task(r, queue, "quick") is None, subject.story)
    counts = subject.stop()
    assert counts["failed"] >= 1  # A busy machine may need several attempts for "quick".
    assert {**counts, "failed": 1} == {**NOTHING, "done": 1, "failed": 1, "died": 1}


def test_one_job_at_a_time_in_order(common, start, queue):
    r = common.client()
    names = [f"job{i}" for i in range(20)]
    for name in names:
        put(r, queue, name, payload=("ok",))
    wait_ready(r, queue, 20)
    subject = start(queue, server=common, jobs=1)
    subject.wait("end", count=20)
    expected = [(word, queue, name, "1") for name in names for word in ("begin", "end")]
    assert [line for line in subject.all() if line[0] in ("begin", "end")] == expected
    assert subject.stop() == {**NOTHING, "done": 20}


def run_out(clock, server):
    """Has a lease run out whose worker says nothing. It begins anew once, as nobody was heard in that hour."""
    for name in ("renewed", "lapsed"):
        counters = Counters(server)
        clock.elapse(3600000)
        counters.wait(name)
    clock.push(1)  # the backoff


def test_a_worker_that_stalls_loses_its_job(clock, server, start, queue, tmp_path):
    """The worker is suspended for longer than its lease. Another worker gets the task, and the first one does
    no harm when it goes on: its handler is told, its result is left out."""
    r = server.client()
    put(r, queue, "a", *AGAIN, payload=(f"until {tmp_path / 'go'}",))
    first = start(queue, server=server, jobs=1)
    first.wait("begin", queue, "a", 1)
    first.suspend()
    try:
        run_out(clock, server)
        second = start(queue, server=server, jobs=1)
        second.wait("begin", queue, "a", 2)
    finally:
        first.send(signal.SIGCONT)
    first.wait("not-yours", queue, "a", 1)
    assert task(r, queue, "a")["error"] == "the lease ran out"
    release(tmp_path / "go")
    second.wait("end", queue, "a", 2)
    wait_until(lambda: not r.exists(queue))
    for one, counts in ((first, {"not_yours": 1}), (second, {"done": 1})):
        assert one.stop() == {**NOTHING, **counts}


def test_a_worker_that_dies_loses_its_job(clock, server, start, queue):
    """SIGKILL in the middle of the work: the attempt counts, and another worker has the next one."""
    r = server.client()
    put(r, queue, "a", *AGAIN, payload=("die", "ok"))
    assert start(queue, server=server, jobs=1).ended() == -signal.SIGKILL
    run_out(clock, server)
    second = start(queue, server=server, jobs=1)
    second.wait("end", queue, "a", 2)
    wait_until(lambda: not r.exists(queue))
    assert second.stop() == {**NOTHING, "done": 1}


# The stop

def test_an_idle_worker_stops_at_once(server, start, queue):
    """It does not wait for the end of its BLOCK, but ends it by CLIENT UNBLOCK."""
    subject = start(queue, server=server)
    subject.wait("ready")
    idle(server)
    assert subject.stop() == NOTHING
    assert "cmdstat_client|unblock" in server.info("commandstats")


def stop_begins(server, subject):
    """Sends the first signal to a worker that waits for one more task, and returns when it takes no more."""
    idle(server)
    subject.send(signal.SIGTERM)
    wait_until(lambda: blocked(server) == 0, message=lambda: f"it goes on taking\n{subject.story()}")


def test_a_stop_waits_for_jobs_and_begins_none(clock, server, start, queue, tmp_path):
    """The leases of the running jobs are kept, and the next task stays for others."""
    r = server.client()
    for name in ("a", "b"):
        put(r, queue, name, *AGAIN, payload=(f"until {tmp_path / name}",))
    subject = start(queue, server=server, jobs=3)
    subject.wait("begin", count=2)
    stop_begins(server, subject)
    put(r, queue, "next", payload=("ok",))
    release(tmp_path / "a")
    wait_until(lambda: task(r, queue, "a") is None)
    for _ in range(4):
        clock.push(LEASE // 2)
        wait_until(lambda: task(r, queue, "b")["next"] == clock.now() + LEASE, subject.story)
    assert (task(r, queue, "b")["state"], task(r, queue, "b")["attempt"]) == ("leased", 1)
    release(tmp_path / "b")
    assert subject.counts() == {**NOTHING, "done": 2}
    assert {line[2] for line in subject.all("begin")} == {"a", "b"} and fresh(r, queue, "next")


def fresh(r, queue, name):
    """Whether the task waits for a worker now, and no attempt counts."""
    found = task(r, queue, name)
    return (found["state"], found["attempt"], found["error"]) == ("ready", 0, "")


def test_a_second_signal_gives_jobs_back(clock, server, start, queue, tmp_path):
    r = server.client()
    put(r, queue, "a", *LATER, payload=(f"until {tmp_path / 'never'}",))
    subject = start(queue, server=server, jobs=2)
    subject.wait("begin", queue, "a", 1)
    stop_begins(server, subject)
    assert subject.stop() == {**NOTHING, "back": 1}
    assert fresh(r, queue, "a") and not subject.all("end") and not subject.all("not-yours")


def test_jobs_are_given_back_when_the_grace_is_over(common, start, queue, tmp_path):
    r = common.client()
    put(r, queue, "a", *LATER, payload=(f"until {tmp_path / 'a'}",))
    put(r, queue, "b", *LATER, payload=(f"until {tmp_path / 'never'}",))
    subject = start(queue, server=common, grace=300)
    subject.wait("begin", count=2)
    release(tmp_path / "a")
    wait_until(lambda: task(r, queue, "a") is None, subject.story)
    assert subject.stop() == {**NOTHING, "done": 1, "back": 1}
    assert fresh(r, queue, "b")


def test_a_task_that_arrives_at_the_stop_is_not_lost(clock, server, start, queue):
    """The server gives a task to a worker that has a signal to stop and has not read the reply yet. The worker
    does the task, or gives it back."""
    r = server.client()
    subject = start(queue, server=server, jobs=2)
    subject.wait("ready")
    idle(server)
    subject.suspend()
    put(r, queue, "a", *LATER, payload=("ok",))
    wait_until(lambda: working(r, queue)["leased"] == 1)
    subject.send(signal.SIGTERM)
    subject.send(signal.SIGCONT)
    counts = subject.counts()
    if counts["back"]:
        assert counts == {**NOTHING, "back": 1} and fresh(r, queue, "a") and not subject.all("begin")
    else:
        assert counts == {**NOTHING, "done": 1} and not r.exists(queue)


def test_a_stop_while_the_server_is_down(fleet, clock, start, queue, tmp_path):
    """An idle worker ends. A worker whose job has ended waits for the server, and acknowledges the job."""
    server = fleet.server(appendonly="yes")
    put(server.client(), queue, "a", *AGAIN, payload=(f"until {tmp_path / 'a'}",))
    busy, lazy = start(queue, server=server), start("nothing", server=server)
    busy.wait("begin", queue, "a", 1)
    lazy.wait("ready")
    idle(server, 2)
    server.kill()
    assert lazy.stop() == NOTHING
    release(tmp_path / "a")
    busy.wait("end", queue, "a", 1)
    busy.send(signal.SIGTERM)
    server.start()
    assert busy.counts() == {**NOTHING, "done": 1}
    assert not server.client().exists(queue)


def test_the_server_is_down_for_three_leases(fleet, clock, start, queue, tmp_path):
    """Only the server's word ends a lease. The lease of a job begins anew when the server is back, once, and a
    heartbeat comes before its end. So the job runs on, and later heartbeats keep it."""
    server = fleet.server(appendonly="yes")
    put(server.client(), queue, "a", *AGAIN, payload=(f"until {tmp_path / 'go'}",))
    subject = start(queue, server=server, jobs=1)
    subject.wait("begin", queue, "a", 1)
    server.kill()
    clock.push(3 * LEASE)
    server.start()
    r = server.client()
    for _ in range(4):
        wait_until(lambda: task(r, queue, "a")["next"] == clock.now() + LEASE, message=subject.story)
        clock.push(LEASE // 2)
    release(tmp_path / "go")
    subject.wait("end", queue, "a", 1)
    assert subject.stop() == {**NOTHING, "done": 1}
    assert subject.all("begin") == [("begin", queue, "a", "1")] and not subject.all("not-yours")


# A server that is treated badly

def test_the_server_is_restarted_while_the_worker_is_idle(rough):
    rough.works("before")
    rough.idle()
    rough.restart()
    rough.works("after")


def test_the_server_is_restarted_while_jobs_run(rough):
    """A job ends while the server is down, another one after it is back. Both acknowledgements arrive."""
    rough.at_work("down", "back")
    rough.server.kill()
    rough.finish("down")
    rough.subject.wait("end", RUN, "down", 1)
    rough.come_back()
    rough.finish("back")
    rough.done_at_once("down", "back")


def test_the_connections_are_ended(rough):
    """While the worker is idle, and while a job runs."""
    rough.idle()
    rough.r.execute_command("CLIENT", "KILL", "TYPE", "normal")
    rough.at_work("cut")
    rough.r.execute_command("CLIENT", "KILL", "TYPE", "normal")
    rough.finish("cut")
    rough.done_at_once("cut")
    rough.works("after-cut")


def connections(r, command):
    """Returns the ids of the connections whose latest command is this one."""
    return [one["id"] for one in r.client_list() if one["cmd"].lower() == command]


def test_the_connections_are_ended_between_the_work_and_its_acknowledgement(rough):
    """The server has the command, and has not carried it out."""
    rough.at_work("unheard")
    rough.r.execute_command("CLIENT", "PAUSE", 60000, "WRITE")
    try:
        rough.finish("unheard")
        wait_until(lambda: connections(rough.r, "tw.ack"), message=lambda: rough.story("unheard"))
        rough.r.execute_command("CLIENT", "KILL", "TYPE", "normal")
    finally:
        rough.r.execute_command("CLIENT", "UNPAUSE")
    rough.done_at_once("unheard")


def test_the_reply_of_an_acknowledgement_is_lost(rough, start, queue):
    """The worker sends it again. The reply is 0 then, and the job is done all the same."""
    with Proxy(rough.server) as proxy:
        subject = start(queue, url=proxy.url)
        proxy.lose_reply("TW.ACK")
        for name in ("a", "b"):
            put(rough.r, queue, name, *AGAIN, payload=("ok",))
            subject.wait("end", queue, name, 1)
            wait_until(lambda: not rough.r.exists(queue), message=subject.story)
        wait_until(proxy.lost.is_set)  # its thread may be the last to go on
        assert subject.stop() == {**NOTHING, "done": 2}


# A script of the handler together with the acknowledgement

INCR = "return redis.call('INCR', KEYS[1])"


def counter_of(queue):
    return queue.replace(":work", ":count")


@pytest.mark.library
def test_a_script_runs_with_the_acknowledgement(rough, start, queue):
    """Once, and the job is done then: whatever the script or the handler does after TW.ACK. A script that does
    not compile acknowledges nothing."""
    counter, subject = counter_of(queue), start(queue, server=rough.server)
    put(rough.r, queue, "plain", *AGAIN, payload=(f"ackthen {counter} {INCR}",))
    assert subject.wait("acked", queue, "plain")[0][3] == "1"
    put(rough.r, queue, "after", *AGAIN, payload=(f"ackthenfail {counter} {INCR}",))
    assert subject.wait("acked", queue, "after")[0][3] == "2"
    act = f"ackthen {counter} redis.call('INCR', KEYS[1]) error('no')"
    put(rough.r, queue, "broken", *AGAIN, payload=(act,))
    subject.wait("broken", queue, "broken")
    put(rough.r, queue, "wrong", *LATER, payload=(f"ackthen {counter} this is no Lua",))
    wait_until(lambda: task(rough.r, queue, "wrong")["error"], message=subject.story)
    found = task(rough.r, queue, "wrong")
    assert "ompil" in found["error"] and found["state"] == "waiting", found
    assert rough.r.get(counter) == "3" and rough.r.execute_command("TW.LEN", queue) == 1
    assert subject.stop() == {**NOTHING, "done": 3, "failed": 1}
    assert subject.story().count("its handler failed after the acknowledgement") == 2
    rough.r.execute_command("TW.CANCEL", queue, "wrong")


@pytest.mark.library
def test_the_reply_of_a_script_is_lost(rough, start, queue, tmp_path):
    """It has run once, and is not run again. The handler is told that its reply is lost, or that the task is
    not its worker's any more."""
    counter = counter_of(queue)
    with Proxy(rough.server) as proxy:
        subject = start(queue, url=proxy.url, lease=3600000)
        proxy.lose_reply("TW.ACK")
        put(rough.r, queue, "lost", *AGAIN, payload=(f"ackthen {counter} {INCR}",))
        subject.wait("lost", queue, "lost")
        put(rough.r, queue, "well", *AGAIN, payload=(f"ackthen {counter} {INCR}",))
        assert subject.wait("acked", queue, "well")[0][3] == "2"
        put(rough.r, queue, "void", *AGAIN, payload=(f"untilack {tmp_path / 'go'} {counter} {INCR}",))
        subject.wait("begin", queue, "void", 1)
        assert rough.r.execute_command("TW.CANCEL", queue, "void") == [2]
        release(tmp_path / "go")
        subject.wait("void", queue, "void")
        assert subject.stop() == {**NOTHING, "done": 2, "not_yours": 1} and rough.r.get(counter) == "2"


@pytest.mark.library
def test_an_effect_happens_once_although_its_worker_dies(rough, start, queue, tmp_path):
    """A worker is killed while it acknowledges, and another one does the rest."""
    counter, act = counter_of(queue), f"ackthen {counter_of(queue)} {INCR}"
    put(rough.r, queue, "held", *AGAIN, payload=(f"until {tmp_path / 'never'}", act))
    first = start(queue, server=rough.server, jobs=4)
    first.wait("begin", queue, "held", 1)
    for number in range(30):
        put(rough.r, queue, f"t{number}", *AGAIN, payload=(act,))
    first.wait("acked", queue, count=10)
    first.kill()
    run_out(rough.clock, rough.server)
    second = start(queue, server=rough.server)
    wait_until(lambda: not rough.r.exists(queue), message=second.story)
    second.stop()
    assert rough.r.get(counter) == "31"


def test_the_reply_of_a_take_is_lost(rough, start, queue):
    """Nobody has the task until its lease has run out, and the attempt has failed then."""
    put(rough.r, queue, "a", *AGAIN, payload=("ok",))
    with Proxy(rough.server) as proxy:
        proxy.lose_reply("TW.TAKE")
        subject = start(queue, url=proxy.url)
        wait_until(proxy.lost.is_set, subject.story)
        run_out(rough.clock, rough.server)
        subject.wait("end", queue, "a", 2)
        wait_until(lambda: not rough.r.exists(queue), message=subject.story)
        assert subject.stop() == {**NOTHING, "done": 1}


def unread(server):
    """Whether a server that is frozen has something to read from one of its connections."""
    with open("/proc/net/tcp", encoding="ascii") as file:
        rows = [line.split() for line in file][1:]
    return any(row[1].endswith(f":{server.port:04X}") and row[3] == "01" and int(row[4].split(":")[1], 16)
               for row in rows)


def test_the_server_stands_still_for_longer_than_a_lease(rough):
    """A heartbeat that the worker has sent meanwhile counts before leases end. It comes over a connection that
    the server has accepted before."""
    rough.at_work("still")
    end = rough.task("still")["next"]
    wait_until(lambda: rough.task("still")["next"] > end, message=lambda: rough.story("still"))
    with frozen(rough.server):
        rough.clock.push(LEASE + 200)
        rough.clock.push_monotonic(LEASE + 200)
        wait_until(lambda: unread(rough.server), rough.subject.story)
    rough.finish("still")
    rough.done_at_once("still")


def test_writes_are_paused_for_longer_than_a_lease(rough):
    rough.at_work("late")
    rough.r.execute_command("CLIENT", "PAUSE", 10 * LEASE, "WRITE")
    rough.finish("late")
    counters = Counters(rough.server)
    rough.clock.elapse(LEASE + 1)
    counters.wait("deferred_pause")
    rough.r.execute_command("CLIENT", "UNPAUSE")
    rough.done_at_once("late")


def test_too_few_replicas_for_a_while(rough):
    """The server refuses the acknowledgement, and takes it when the cause is gone."""
    rough.at_work("alone")
    rough.r.config_resetstat()
    rough.r.config_set("min-replicas-to-write", 1)
    rough.finish("alone")
    wait_until(lambda: "errorstat_NOREPLICAS" in rough.server.info("errorstats"))
    rough.r.config_set("min-replicas-to-write", 0)
    rough.done_at_once("alone")
    rough.works("after-alone")


def test_somebody_ends_the_wait_of_a_worker(rough):
    """By CLIENT UNBLOCK with ERROR: the worker goes on."""
    rough.idle()
    for waiter in connections(rough.r, "tw.take"):
        rough.r.execute_command("CLIENT", "UNBLOCK", waiter, "ERROR")
    rough.works("after-unblock")


def test_memory_is_full(rough):
    """Tasks that are there are taken and done, since this makes room."""
    rough.at_work("full")
    rough.r.execute_command("TW.PAUSE", RUN)
    rough.put("soon", "ok")
    rough.r.config_set("maxmemory", 1)
    try:
        rough.r.execute_command("TW.RESUME", RUN)
        rough.finish("full")
        rough.done_at_once("full", "soon")
    finally:
        rough.r.config_set("maxmemory", 0)


@pytest.mark.library
def test_a_script_waits_for_replicas_and_runs_while_memory_is_full(rough):
    """Both happen, or the server refuses both."""
    rough.put("script", f"untilack {rough.file('script')} {counter_of(RUN)} {INCR}")
    rough.begun("script")
    rough.r.config_resetstat()
    rough.r.config_set("min-replicas-to-write", 1)
    rough.r.config_set("maxmemory", 1)
    try:
        rough.finish("script")
        wait_until(lambda: "errorstat_NOREPLICAS" in rough.server.info("errorstats"))
        rough.r.config_set("min-replicas-to-write", 0)
        assert rough.subject.wait("acked", RUN, "script")[0][3] == "1"
    finally:
        rough.r.config_set("min-replicas-to-write", 0)
        rough.r.config_set("maxmemory", 0)
    rough.done_at_once("script")


def test_the_rough_desk_at_the_end(rough):
    """No job was done twice, and all of them are counted."""
    rough.works("last")
    rough.stop()


# Errors that do not go away

def test_errors_that_end_the_worker(fleet, start):
    """The exit status is 1, and the error says what to do."""
    server, plain = fleet.server(), fleet.server(module=False)
    r = server.client()
    r.config_set("requirepass", "secret")
    r.execute_command("ACL", "SETUSER", "reader", "on", ">word", "~*", "+@all", "-tw.take")
    r.set("text", "no queue")
    cases = {
        "no password": (url_of(server), r"(?i)password"),
        "a wrong password": (url_of(server, password="wrong"), r"(?i)password"),
        "no right": (url_of(server, "reader", "word"), r"(?i)tw\.take"),
        "another type": (url_of(server, password="secret"), r"(?i)queue"),
        "no module": (url_of(plain), r"(?i)module"),
    }
    subjects = {name: start("text", url=url) for name, (url, _) in cases.items()}
    errors = {name: subject.fails() for name, subject in subjects.items()}
    r.config_set("requirepass", "")
    for name, (_, pattern) in cases.items():
        assert re.search(pattern, errors[name]), f"{name}: {errors[name]}"
        assert not subjects[name].all("begin") and len(errors[name]) < 1500, f"{name}: {errors[name]}"


@pytest.mark.long(only=True)
def test_a_worker_with_few_rights_in_another_database(server, start, queue):
    """The rights of docs/redis.md suffice. Without the right to end its own wait, the worker ends with its
    BLOCK."""
    r = server.client(db=3)
    r.execute_command("ACL", "SETUSER", "worker", "on", ">word", f"~{queue}", "+tw.take", "+tw.ack",
                      "+tw.nack", "+tw.touch", "+select", "+hello")
    subject = start(queue, url=url_of(server, "worker", "word", 3))
    put(r, queue, "a", payload=("ok",))
    subject.wait("end", queue, "a", 1)
    wait_until(lambda: not r.exists(queue))
    subject.send(signal.SIGTERM)
    assert subject.counts() == {**NOTHING, "done": 1}
