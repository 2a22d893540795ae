# SPDX-License-Identifier: MIT
"""The plug-in for Sidekiq (clients/sidekiq), with Debian's Sidekiq, a real server and real workers. The
worker is that of docs/frameworks.md."""
import contextlib
import json
import os
import shutil
import subprocess
import tarfile

import pytest
from harness import PATIENCE, ROOT, now_ms, wait_until

from frameworks import Page, Seen, Worker, environment, move_to, url_of

LATER, RETRY = "tickwheel:queue", "tickwheel:retry"
HOUR = 3600

# Jobs of the tests. Sidekiq adds up to ten seconds to each retry at random, so the tests set the delay.
JOBS = """
require "%s"
require "sidekiq/job_retry"

class See
  include Sidekiq::Worker

  def perform(word, *more)
    Sidekiq.redis { |r| r.rpush("seen", [word, (Time.now.to_r * 1000).floor, *more].join(" ")) }
  end
end

class FailOnce < See
  sidekiq_options retry: 2, backtrace: true

  def perform(word)
    super
    raise "once" if Sidekiq.redis { |r| r.incr("failed:#{word}") } == 1
  end
end

class Die < See
  sidekiq_options retry: 0

  def perform(word)
    super
    raise "dead"
  end
end

class Threads < See
  def perform(word)
    super(word, *Thread.list.map(&:name).compact)
  end
end

Sidekiq::JobRetry.prepend(Module.new { def delay_for(*) = 0.3 })
"""

# Evaluates each line of its input, and prints the value as JSON. So one process serves many tests.
CONSOLE = """
require "json"
require File.join(Dir.pwd, ARGV[0])
Sidekiq.logger.level = :warn
$stdin.each_line do |line|
  value = begin
    {value: eval(line)}
  rescue => error
    {error: "#{error.class}: #{error.message}"}
  end
  puts JSON.generate(value)
  $stdout.flush
end
"""


class Console:
    """A Ruby program with the jobs of the tests."""

    def __init__(self, server, folder, jobs):
        self.errors = open(folder / "console.log", "w+", encoding="utf-8")
        self.process = subprocess.Popen([shutil.which("ruby"), "-e", CONSOLE, jobs], cwd=folder, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
                                        env=environment(folder, REDIS_URL=url_of(server)))

    def __call__(self, code):
        """Evaluates a line of Ruby, and returns its value."""
        self.process.stdin.write(code.replace("\n", " ") + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, open(self.errors.name, encoding="utf-8").read()
        reply = json.loads(line)
        assert "error" not in reply, reply["error"]
        return reply["value"]

    def close(self):
        self.process.stdin.close()
        self.process.wait(PATIENCE)
        self.process.stdout.close()
        self.errors.close()


class Shop:
    """The programs of the page, the jobs above beside them, and their server."""

    def __init__(self, server, folder):
        self.server, self.folder, self.r, self.seen = server, folder, server.client(), Seen(server)
        self.page = Page(folder, server)
        (folder / "more.rb").write_text(JOBS % "./jobs", encoding="utf-8")
        (folder / "plain.rb").write_text(JOBS % "sidekiq", encoding="utf-8")
        self.workers, self.consoles = [], []

    def console(self, jobs="more.rb"):
        self.consoles.append(Console(self.server, self.folder, jobs))
        return self.consoles[-1]

    def worker(self, jobs="./more.rb", *options):
        words = [jobs if word == "./jobs.rb" else word for word in self.page.words("sidekiq")]
        self.workers.append(Worker([*words, "-c", "1", "-e", "production", *options], str(self.folder),
                                   name=f"worker{len(self.workers)}", REDIS_URL=url_of(self.server)))
        return self.workers[-1]

    def wait(self, words, count=None):
        return self.seen.wait(words, count, lambda: "\n".join(worker.log() for worker in self.workers))

    def task(self, key, name):
        row, = self.r.execute_command("TW.GET", key, name)
        if row is None:
            return None
        task = dict(zip(row[::2], row[1::2]))
        return {**task, "item": json.loads(task["payload"][0])}

    def close(self):
        for one in self.consoles:
            one.close()
        for worker in self.workers:
            worker.kill()


@pytest.fixture(scope="module")
def shop(common, tmp_path_factory):
    """The shop with a worker, which starts while the first tests run."""
    with contextlib.closing(Shop(common, tmp_path_factory.mktemp("sidekiq"))) as made:
        made.worker()
        yield made


@pytest.fixture(scope="module")
def ruby(shop):
    return shop.console()


# Without a worker


def test_a_job_is_parked_as_the_poller_would_push_it(shop, ruby):
    jid = ruby(f"See.set(queue: 'idle').perform_in({HOUR}, 'x', "
               "{'big' => 12345678901234567890, 'none' => []})")
    task = shop.task(LATER, jid)
    assert (task["target"], task["kind"]) == ("queue:idle", "list left")
    assert task["item"]["args"] == ["x", {"big": 12345678901234567890, "none": []}]
    assert task["item"]["enqueued_at"] * 1000 == pytest.approx(task["due"], abs=1)
    assert "at" not in task["item"] and shop.r.sismember("queues", "idle")
    assert not shop.r.exists("schedule") and not shop.r.exists("queue:idle")


def test_cancel_find_move_and_sizes(shop, ruby):
    before = ruby("Tickwheel::Sidekiq.sizes")
    jid = ruby(f"See.set(queue: 'idle').perform_at(Time.now + {HOUR}, 'y')")
    assert ruby("Tickwheel::Sidekiq.sizes") == {**before, "schedule": before["schedule"] + 1}
    assert ruby(f"Tickwheel::Sidekiq.find('{jid}').item['args']") == ["y"]
    assert ruby(f"Tickwheel::Sidekiq.move('{jid}', Time.at(4102444800))") is True
    task = shop.task(LATER, jid)
    assert (task["due"], task["item"]["enqueued_at"]) == (4102444800000, 4102444800)
    assert ruby(f"Tickwheel::Sidekiq.find('{jid}').due.to_i") == 4102444800
    assert [ruby(f"Tickwheel::Sidekiq.cancel('{jid}', 'nobody')") for _ in range(2)] == [1, 0]
    assert ruby(f"Tickwheel::Sidekiq.move('{jid}', 1)") is False
    assert ruby(f"Tickwheel::Sidekiq.find('{jid}')") is None and ruby("Tickwheel::Sidekiq.cancel") == 0


def test_bulk_with_times(shop, ruby):
    jids = ruby("Sidekiq::Client.push_bulk('class' => See, 'queue' => 'idle', 'args' => [['p'], ['q']], "
                "'at' => [4102444800, 4102444801.5])")
    assert [shop.task(LATER, jid)["due"] for jid in jids] == [4102444800000, 4102444801500]
    assert ruby(f"Tickwheel::Sidekiq.cancel(*{json.dumps(jids)})") == 2


def test_jobs_of_the_old_sets_are_adopted(shop, ruby):
    jobs = [{"class": "See", "queue": "idle", "args": [number], "jid": jid}
            for number, jid in enumerate(["a1", "a2", "a2", "a3"])]
    for job in jobs[:3]:
        shop.r.zadd("schedule", {json.dumps(job): 4102444800.25})
    shop.r.zadd("schedule", {"no JSON": 5})
    shop.r.zadd("retry", {json.dumps({**jobs[3], "retry_count": 4}): 4102444900})
    assert [ruby("Tickwheel::Sidekiq.adopt") for _ in range(2)] == [4, 0]
    assert shop.task(LATER, "a1")["due"] == 4102444800250
    assert shop.task(RETRY, "a3")["item"] == {**jobs[3], "retry_count": 4, "enqueued_at": 4102444900}
    due = shop.r.execute_command("TW.RANGE", LATER, 4102444800250, 4102444800250)
    numbers = sorted(shop.task(LATER, name)["item"]["args"][0] for name, *_ in due)
    assert numbers == [0, 1, 2]
    assert shop.r.zrange("schedule", 0, -1) == ["no JSON"] and not shop.r.exists("retry")
    shop.r.delete("schedule")


def test_a_namespace_is_refused(ruby):
    refusal = ruby("begin; Tickwheel::Sidekiq.park(Struct.new(:namespace).new('app'), 'schedule', {}, 0); "
                   "rescue ArgumentError => error; error.message; end")
    assert refusal.startswith("the namespace is 'app'")


# With the worker


def test_jobs_come_in_due_order_and_not_early(shop, ruby):
    names = ruby(f"%w[c a b].map {{ |word| See.perform_in({HOUR}, word) }}")
    began = now_ms()
    move_to(shop.r, LATER, {name: began + ms for name, ms in zip(names, (500, 200, 350))})
    rows = shop.wait(["a", "b", "c"])
    assert [row[0] for row in rows] == ["a", "b", "c"]
    assert all(at >= began + ms for (_, at), ms in zip(rows, (200, 350, 500))), (began, rows)


def test_a_retry_is_parked_and_keeps_its_counts(shop, ruby):
    jid = ruby("FailOnce.perform_async('again')")
    shop.wait(["again"])
    task = wait_until(lambda: shop.task(RETRY, jid) or len(shop.seen.rows(["again"])) > 1)
    if task is not True:
        item = task["item"]
        assert (item["retry_count"], item["error_message"]) == (0, "once") and item["error_backtrace"]
        assert item["enqueued_at"] * 1000 == pytest.approx(task["due"], abs=1)
    (_, first), (_, second) = shop.wait(["again"], 2)
    assert second >= first + 300
    assert not shop.r.exists("retry")


def test_a_job_without_retries_left_is_dead(shop, ruby):
    jid = ruby("Die.perform_async('dead')")
    shop.wait(["dead"])
    dead = wait_until(lambda: shop.r.zrange("dead", 0, -1))
    assert json.loads(dead[0])["jid"] == jid and shop.task(RETRY, jid) is None


def test_no_thread_polls(shop, ruby):
    ruby("Threads.perform_async('threads')")
    (_, _, *names), = shop.wait(["threads"])
    assert "heartbeat" in names and "scheduler" not in names


def test_the_example_of_the_page(shop, ruby):
    out = subprocess.run([shutil.which("ruby"), "orders.rb"], cwd=shop.folder, capture_output=True, text=True,
                         env=environment(shop.folder, REDIS_URL=url_of(shop.server)), timeout=PATIENCE)
    assert out.stdout.splitlines() == ["order 42 is due in 60 minutes", "order 42 is paid"], out
    shop.workers[0].wait_log("order 43 has expired")
    assert "order 42 has" not in shop.workers[0].log()


def test_the_gem_has_its_files(shop):
    made = shop.folder / "made.gem"
    out = subprocess.run([shutil.which("gem"), "build", "tickwheel-sidekiq.gemspec", "--output", str(made)],
                         cwd=os.path.join(ROOT, "clients", "sidekiq"), capture_output=True, text=True,
                         timeout=PATIENCE)
    assert out.returncode == 0, out
    with tarfile.open(made) as gem, tarfile.open(fileobj=gem.extractfile("data.tar.gz")) as data:
        assert sorted(data.getnames()) == ["README.md", "lib/tickwheel/sidekiq.rb"]


# Longer


@pytest.fixture
def own(fleet, tmp_path):
    """A shop with a server of its own, which writes each command to its file, and without a worker."""
    with contextlib.closing(Shop(fleet.server(appendonly="yes"), tmp_path)) as made:
        yield made


def assert_once_each(own, ruby, words):
    own.wait(words)
    ruby("See.perform_in(0.2, 'last')")
    own.wait(["last"])
    assert sorted(row[0] for row in own.seen.rows(words)) == sorted(words)


@pytest.mark.long(only=True)
def test_a_worker_and_a_server_that_are_killed_lose_no_parked_job(own):
    worker = own.worker()
    ruby = own.console()
    ruby("See.perform_async('up')")
    own.wait(["up"])
    words = [f"w{number}" for number in range(30)]
    names = ruby(f"30.times.map {{ |n| See.perform_in({HOUR}, \"w#{{n}}\") }}")
    worker.kill()
    own.server.kill()
    own.server.start()
    own.r, own.seen, now = own.server.client(), Seen(own.server), now_ms()
    move_to(own.r, LATER, {name: now + 20 * number for number, name in enumerate(names)})
    own.worker()
    assert_once_each(own, ruby, words)


@pytest.mark.long(only=True)
def test_a_running_system_moves_over(own):
    """An old process polls while a new process starts and adopts the same jobs, some of which are due just
    then."""
    often = ("Sidekiq.options[:poll_interval_average] = 0.01\n"
             "Sidekiq::Scheduled::Poller.prepend(Module.new { def initial_wait; end })\n")
    (own.folder / "plain.rb").write_text(JOBS % "sidekiq" + often, encoding="utf-8")
    old, plain = own.worker("./plain.rb"), own.console("plain.rb")
    plain("See.perform_async('up')")
    own.wait(["up"])
    words = [f"w{number}" for number in range(500)]
    plain(f"500.times {{ |n| See.perform_in(n < 400 ? 1 + n * 0.01 : {HOUR}, \"w#{{n}}\") }}")
    own.wait(words, 1)
    own.worker()
    wait_until(lambda: not own.r.exists("schedule"))
    assert 0 < own.server.tw()["put"] < len(words)
    while own.r.execute_command("TW.PROMOTE", LATER, "ALL"):
        pass
    old.stop()
    assert_once_each(own, own.console(), words)
