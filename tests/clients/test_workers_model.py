# SPDX-License-Identifier: MIT
"""Workers of all languages share two queues, while they are killed, suspended and stopped, and while their
server crashes. At the end each job has one fate: it is done, or dead, and the acts that the workers have really
performed agree with it. The server syncs each write, so no crash loses anything.

TICKWHEEL_SEED: the seed of the random choices. The moments are the machine's own.
"""
import collections
import contextlib
import itertools
import os
import signal

import pytest
from harness import any_moment, task, wait_until
from load import seeded
from situations import dead_of, extent, put
from subject import Subject, counts_of, languages, release

QUEUES = ["{w}:mails", "{w}:bills"]
TRIES, LAPSES, LEASE = 6, 16, 500
ACTS = ["ok", "fail for a reason", "until", "untilfail", "retry 30 not yet", "dead for a reason", "die"]
WEIGHTS = [40, 24, 16, 8, 12, 4, 1]

Job = collections.namedtuple("Job", "queue name acts")


class Model:
    """The server, its workers and the jobs."""
    crew_size = 4

    def __init__(self, fleet, folder):
        self.rng, self.folder, self.numbers = seeded(), folder, itertools.count()
        self.jobs, self.crew, self.gone, self.seen = {}, [], [], collections.Counter()
        self.open(fleet)
        for _ in range(self.crew_size):
            self.hire()

    def open(self, fleet):
        self.server = fleet.server(appendonly="yes")

    def subject(self, language, **options):
        return Subject(language, *QUEUES, server=self.server, **options)

    def hire(self):
        language = languages()[next(self.numbers) % len(languages())]
        self.crew.append(self.subject(language, jobs=self.rng.randrange(1, 5), lease=LEASE, name=language,
                                      grace=self.rng.choice([None, 100])))

    def leave(self, subject):
        self.crew.remove(subject)
        self.gone.append(subject)
        self.hire()

    # Jobs

    def act(self, name):
        """A random act. A job that lasts has a file that the end of a moment makes."""
        act = self.rng.choices(ACTS, WEIGHTS)[0]
        if act == "until":
            return f"until {self.folder / name}"
        return f"untilfail {self.folder / name} for a reason" if act == "untilfail" else act

    def file(self, count):
        """Puts jobs into both queues; the server may be down at any other time only."""
        client = self.server.client()
        for _ in range(count):
            name = f"job{len(self.jobs)}"
            queue = self.rng.choice(QUEUES)
            acts = [self.act(name) for _ in range(self.rng.randrange(1, 4))]
            self.jobs[name] = Job(queue, name, acts)
            put(client, queue, name, "IN", self.rng.randrange(200), "TRIES", TRIES, "BACKOFF", 5, 2, 50,
                payload=acts)

    def end_some(self):
        """Ends the jobs that last, but for the latest ones."""
        for name in list(self.jobs)[:-20]:
            release(self.folder / name)

    # Misfortunes

    def kill(self, subject):
        subject.kill()
        self.leave(subject)

    def suspend(self, subject):
        subject.send(signal.SIGSTOP)
        any_moment(self.rng, 2 * LEASE / 1000)
        subject.send(signal.SIGCONT)

    @staticmethod
    def ask_to_stop(subject):
        """Sends the first signal. A process that has just begun does not handle signals yet."""
        wait_until(lambda: subject.all("ready") or subject.process.poll() is not None, message=subject.story)
        subject.send(signal.SIGTERM)

    def stop(self, subject):
        """A graceful stop; the second signal gives the jobs back that last."""
        self.ask_to_stop(subject)
        any_moment(self.rng, 0.4)
        subject.send(signal.SIGTERM)
        self.leave(subject)

    def restart(self, _):
        self.server.kill()
        any_moment(self.rng, 0.3)
        self.server.start()

    def cut(self, _):
        self.server.once("CLIENT", "KILL", "TYPE", "normal")

    MISFORTUNES = [kill, suspend, stop, restart, cut]

    def replace_the_dead(self):
        """The act `die` ends workers too."""
        for subject in [one for one in self.crew if one.process.poll() is not None]:
            self.leave(subject)

    def misfortune(self):
        how = self.MISFORTUNES[sum(self.seen.values()) % len(self.MISFORTUNES)]
        self.seen[how.__name__] += 1
        how(self, self.rng.choice(self.crew))

    # The end

    def fate(self, client, job):
        """Whether the job is done, dead, or still there."""
        found = task(client, job.queue, job.name)
        return "done" if found is None else "dead" if found["state"] == "dead" else "there"

    def settle(self):
        """Waits until all jobs have ended. Workers that die are replaced meanwhile."""
        client = self.server.client()

        def ended():
            self.replace_the_dead()
            return all(self.fate(client, job) != "there" for job in self.jobs.values())
        wait_until(ended, lambda: "\n".join(subject.story() for subject in self.crew), every=0.1)

    def lines(self, word):
        """{job: the numbers of the attempts of which some worker has said this}"""
        found = collections.defaultdict(list)
        for subject in (*self.gone, *self.crew):
            for _, _, name, attempt in subject.all(word):
                found[name].append(int(attempt))
        return found

    def judge(self):
        client, begun, ended = self.server.client(), self.lines("begin"), self.lines("end")
        errors = {row.id: row for queue in QUEUES for row in dead_of(client, queue, "COUNT", 10000)}
        for job in self.jobs.values():
            fate, attempts = self.fate(client, job), begun[job.name]
            acts = [self.performed(job, attempt) for attempt in ended[job.name]]
            story = f"{job}: {fate}, began {attempts}, ended {ended[job.name]}"
            assert set(attempts) <= set(range(1, TRIES + LAPSES + 1)), story
            if fate == "done":
                last = max(attempts)
                assert last in ended[job.name], f"it was given out after it was done: {story}"
                assert self.performed(job, last) in ("ok", "until"), f"done, and nobody did it: {story}"
            else:
                assert fate == "dead", story
                row = errors[job.name]
                assert row.attempt >= TRIES or "dead" in acts, story
                assert row.attempt >= max(attempts), f"{row} {story}"
            yield fate, len(attempts)

    @staticmethod
    def performed(job, attempt):
        return job.acts[min(attempt, len(job.acts)) - 1].split()[0]

    def counts(self):
        """Stops all workers, and returns the sum of their counts; killed workers have none. A second signal may
        find a process that has said its counts and no longer handles signals."""
        for subject in self.crew:
            self.ask_to_stop(subject)
        sums = collections.Counter()
        for subject in (*self.gone, *self.crew):
            status, counts = subject.ended(), subject.all("stopped")
            assert status in ((0, -signal.SIGTERM) if counts else (-signal.SIGKILL,)), subject.story()
            sums.update(counts_of(counts[0][1:]) if counts else {})
        return sums

    def close(self):
        for subject in (*self.gone, *self.crew):
            subject.close()


@pytest.mark.long(only=True)
def test_each_job_has_one_fate(fleet, tmp_path):
    with contextlib.closing(Model(fleet, tmp_path)) as model:
        for _ in range(extent(5, 15, int(os.environ.get("TICKWHEEL_WORKER_ROUNDS", 30)))):
            model.file(10)
            any_moment(model.rng, 0.4)
            model.misfortune()
            model.replace_the_dead()
            model.end_some()
        for name in model.jobs:
            release(model.folder / name)
        model.settle()
        fates = collections.Counter()
        for fate, attempts in model.judge():
            fates[fate] += 1
            fates["attempts"] += attempts
        print(f"{dict(fates)}; {dict(model.counts())} by workers that were not killed; {dict(model.seen)}")
