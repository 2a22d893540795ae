# SPDX-License-Identifier: MIT
"""The shops of examples/redis and its consumers of a Stream, in Python and Node, against a real server."""
import contextlib
import io
import os
import pathlib
import re
import runpy
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import unittest.mock

import pytest

from harness import PATIENCE, ROOT, Broken, delivered, program, task, tasks, wait_until

EXAMPLES = os.path.join(ROOT, "examples", "redis")
STREAM, QUEUE, GROUP = "{shop}:unpaid", "{shop}:timeouts", "expiry"
MINUTE = 60000


def environment():
    """The environment for node, which finds Debian's package of npm's redis only with NODE_PATH."""
    path = os.pathsep.join(filter(None, [os.environ.get("NODE_PATH"), "/usr/share/nodejs"]))
    return {**os.environ, "NODE_PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


def command_of(example):
    """Returns the command line of an example. A missing interpreter fails the test."""
    interpreter = sys.executable if example.endswith(".py") else shutil.which("node") or shutil.which("nodejs")
    if interpreter is None:
        raise Broken("node is missing: tools/setup redis installs it")
    return [interpreter, os.path.join(EXAMPLES, example)]


def url_of(server):
    return f"redis://127.0.0.1:{server.port}"


def to_stream(r, order, within):
    """Places an order whose timeout comes to the Stream of the consumers."""
    with r.pipeline() as both:
        both.hset(f"{{shop}}:order:{order}", "state", "placed")
        both.execute_command("TW.SEND", QUEUE, STREAM, f"order:{order}", "IN", within, "PAYLOAD", "order",
                             order)
        both.execute()


def shop(server, *words):
    """Runs shop.py in this process: a new interpreter takes ten times as long as the work. The last tests run
    the shop as a program."""
    words, said = ["shop.py", "--url", url_of(server), *map(str, words)], io.StringIO()
    with unittest.mock.patch.object(sys, "argv", words), contextlib.redirect_stdout(said):
        runpy.run_path(os.path.join(EXAMPLES, "shop.py"), run_name="__main__")
    return said.getvalue().strip()


@pytest.fixture
def start(server):
    """start(EXAMPLE, word ...) starts an example in the background. At the end of the test the examples that
    still run are killed."""
    running = []

    def begin(example, *words):
        line = [*command_of(example), "--url", url_of(server), *map(str, words)]
        running.append(subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env=environment()))
        return running[-1]

    yield begin
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=PATIENCE)


@pytest.fixture(params=["consumer.py", "consumer.js"])
def consumer(request, start):
    """consumer(COUNT, option ...) starts a consumer."""
    return lambda count, *options: start(request.param, "--count", count, *options)


def lines_of(process):
    """Returns the lines that a consumer has printed, after it has processed its number of entries."""
    output, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (0, "")
    return output.splitlines()


def state(r, order):
    return r.hget(f"{{shop}}:order:{order}", "state")


def test_an_order_that_is_not_paid_expires(server, r, consumer):
    to_stream(r, 1, 200)
    assert lines_of(consumer(1)) == ["order 1 was not paid: expired"]
    assert state(r, 1) == "expired"
    assert r.xpending(STREAM, GROUP)["pending"] == 0


def test_an_order_that_is_paid_does_not(server, r, consumer):
    to_stream(r, 1, MINUTE)
    to_stream(r, 2, 200)
    assert shop(server, "pay", 1) == "order 1 is paid"
    assert lines_of(consumer(1)) == ["order 2 was not paid: expired"]
    assert (state(r, 1), state(r, 2)) == ("paid", "expired")
    assert tasks(r, QUEUE) == {}


def test_an_order_that_is_paid_when_its_time_is_up_stays_paid(server, r, consumer):
    to_stream(r, 1, 1)
    wait_until(lambda: delivered(r, STREAM) == ["order:1"])
    assert shop(server, "pay", 1) == "order 1 is paid, though its time was up"
    assert lines_of(consumer(1)) == ["order 1 is paid"]
    assert state(r, 1) == "paid"


@pytest.fixture(params=["shop.py", "shop.js"])
def said(request, server, start):
    """said(ACTION, word ...) lets the shop do an action, and returns the line that it prints."""
    if request.param == "shop.py":
        return lambda *words: shop(server, *words)
    return lambda *words: "\n".join(lines_of(start(request.param, *words)))


def test_an_order_is_placed_and_paid(r, said):
    assert said("place", 1, "--within", MINUTE) == "order 1 is placed; it expires in 60000 ms unless it is paid"
    assert (state(r, 1), list(tasks(r, QUEUE))) == ("placed", ["order:1"])
    assert said("pay", 1) == "order 1 is paid"
    assert (state(r, 1), tasks(r, QUEUE)) == ("paid", {})
    assert said("pay", 1) == "order 1 is paid, though its time was up"


def test_more_time_to_pay_and_never_less(server, r, said):
    shop(server, "place", 1, "--within", MINUTE)
    before = task(r, QUEUE, "order:1")["due"]
    assert said("extend", 1, "--within", 10) == "order 1 has longer than that"
    assert task(r, QUEUE, "order:1")["due"] == before
    assert said("extend", 1, "--within", 10 * MINUTE) == "order 1 has 600000 ms from now"
    assert task(r, QUEUE, "order:1")["due"] >= before + 8 * MINUTE
    assert said("extend", 2) == "order 2 waits for no payment"


def test_an_entry_that_comes_twice_has_its_effect_once(server, r, consumer):
    to_stream(r, 1, 1)
    wait_until(lambda: delivered(r, STREAM) == ["order:1"])
    r.xadd(STREAM, r.xrange(STREAM)[0][1])
    assert lines_of(consumer(2)) == ["order 1 was not paid: expired", "order 1 has come before"]
    assert r.xpending(STREAM, GROUP)["pending"] == 0


def test_what_a_dead_consumer_has_left_is_taken_over(server, r, consumer):
    to_stream(r, 1, 1)
    wait_until(lambda: delivered(r, STREAM) == ["order:1"])
    r.xgroup_create(STREAM, GROUP, id="0")
    assert len(r.xreadgroup(GROUP, "dead", {STREAM: ">"})[0][1]) == 1
    assert lines_of(consumer(1, "--idle", 1)) == ["order 1 was not paid: expired"]
    assert r.xpending(STREAM, GROUP)["pending"] == 0


def test_what_a_consumer_is_still_at_is_left_to_it(server, r, consumer):
    to_stream(r, 1, 1)
    wait_until(lambda: delivered(r, STREAM) == ["order:1"])
    r.xgroup_create(STREAM, GROUP, id="0")
    r.xreadgroup(GROUP, "busy", {STREAM: ">"})
    to_stream(r, 2, 1)
    assert lines_of(consumer(1, "--idle", 10 * MINUTE)) == ["order 2 was not paid: expired"]


WRONG_TYPE = "WRONGTYPE Operation against a key holding the wrong kind of value"


def a_bad_order(r, order=1):
    """Adds an entry to the Stream that always fails to be processed, as its order is no hash. Returns the id
    of the entry."""
    r.set(f"{{shop}}:order:{order}", "not a hash")
    return r.xadd(STREAM, {"tw.id": f"order:{order}", "tw.due": 1, "tw.attempt": 1, "order": order})


def failures(r):
    return [fields for _, fields in r.xrange("{shop}:failed")]


def test_an_entry_whose_work_fails_each_time_is_given_up(server, r, consumer):
    bad = a_bad_order(r)
    lines = lines_of(consumer(3, "--idle", 0))
    assert [re.sub(r"\w+: WRONGTYPE.*", "WRONGTYPE", line) for line in lines] == [
        f"entry {bad} failed, try 1 of 3: WRONGTYPE", f"entry {bad} failed, try 2 of 3: WRONGTYPE",
        f"entry {bad} is given up after 3 tries: WRONGTYPE"]
    assert r.xpending(STREAM, GROUP)["pending"] == 0
    failure, = failures(r)
    assert failure.pop("failed.error").endswith(f": {WRONG_TYPE}")
    assert failure == {
        "failed.entry": bad, "failed.tries": "3", "tw.id": "order:1", "tw.due": "1", "tw.attempt": "1",
        "order": "1"
    }


def test_others_are_served_while_an_entry_fails(server, r, consumer):
    bad = a_bad_order(r)
    r.xadd(STREAM, {"tw.id": "strange", "tw.due": 1, "tw.attempt": 1, "no": "order"})
    to_stream(r, 2, 1)
    wait_until(lambda: delivered(r, STREAM)[-1] == "order:2")
    lines = lines_of(consumer(3, "--idle", MINUTE))
    assert [line.split(":")[0] for line in lines[:2]
            ] == [f"entry {bad} failed, try 1 of 3", f"entry {r.xrange(STREAM)[1][0]} failed, try 1 of 3"]
    assert lines[2] == "order 2 was not paid: expired"
    assert (failures(r), r.xpending(STREAM, GROUP)["pending"]) == ([], 2)


def test_an_entry_that_works_at_last_is_no_failure(server, r, consumer):
    bad = a_bad_order(r)
    assert lines_of(consumer(1, "--tries", 2))[0].startswith(f"entry {bad} failed, try 1 of 2: ")
    r.delete("{shop}:order:1")
    r.hset("{shop}:order:1", "state", "placed")
    assert lines_of(consumer(1, "--tries", 2, "--idle", 0)) == ["order 1 was not paid: expired"]
    assert (failures(r), r.xpending(STREAM, GROUP)["pending"]) == ([], 0)


def test_an_entry_that_kills_each_consumer_is_given_up(server, r, consumer):
    to_stream(r, 1, 1)
    wait_until(lambda: delivered(r, STREAM) == ["order:1"])
    r.xgroup_create(STREAM, GROUP, id="0")
    entry = r.xreadgroup(GROUP, "dead 1", {STREAM: ">"})[0][1][0][0]
    r.xclaim(STREAM, GROUP, "dead 2", 0, [entry])
    assert lines_of(consumer(1, "--idle", 0, "--tries",
                             2)) == [f"entry {entry} is given up after 2 tries: no consumer has finished it"]
    assert state(r, 1) == "placed"
    assert [failure["failed.entry"] for failure in failures(r)] == [entry]
    assert r.xpending(STREAM, GROUP)["pending"] == 0


def test_an_entry_that_ends_each_consumer_uses_up_the_tries_of_no_other(server, r, consumer):
    a_bad_order(r)
    for order in (2, 3):
        to_stream(r, order, 1)
        wait_until(lambda: delivered(r, STREAM)[-1] == f"order:{order}")  # pylint: disable=cell-var-from-loop
    for _ in range(3):
        lines_of(consumer(1, "--idle", 0))  # The consumer ends after the bad entry.
    assert lines_of(consumer(2, "--idle",
                             0)) == ["order 2 was not paid: expired", "order 3 was not paid: expired"]
    assert [failure["order"] for failure in failures(r)] == ["1"]


def test_consumers_that_give_up_side_by_side_make_one_failure_of_each_entry(server, r, consumer):
    bad = [a_bad_order(r, order) for order in range(30)]
    many = [consumer(0, "--idle", 0, "--name", name) for name in ("one", "two", "three")]
    wait_until(lambda: len(failures(r)) >= len(bad) and r.xpending(STREAM, GROUP)["pending"] == 0)
    for each in many:
        each.terminate()
        each.communicate(timeout=PATIENCE)
    assert sorted(failure["failed.entry"] for failure in failures(r)) == sorted(bad)


def test_an_entry_stays_while_no_failure_can_be_written(server, r, consumer):
    a_bad_order(r)
    r.set("{shop}:failed", "not a Stream")
    process = consumer(1, "--tries", 1)
    assert "WRONGTYPE" in process.communicate(timeout=PATIENCE)[1]
    assert process.returncode != 0
    assert r.xpending(STREAM, GROUP)["pending"] == 1


def test_a_server_that_is_full_for_a_while_uses_up_no_tries(server, r, consumer):
    process = consumer(1, "--tries", 1)
    wait_until(lambda: r.exists(STREAM) and r.xinfo_groups(STREAM))
    r.hset("{shop}:order:1", "state", "placed")
    full = r.pipeline(transaction=True)  # before the consumer has seen the entry
    full.xadd(STREAM, {"tw.id": "order:1", "tw.due": 1, "tw.attempt": 1, "order": 1})
    full.execute_command("CONFIG", "SET", "maxmemory", 1)
    full.execute()
    assert "waits, as the server takes no writes" in process.stdout.readline()
    r.config_set("maxmemory", 0)
    assert lines_of(process)[-1] == "order 1 was not paid: expired"
    assert (failures(r), r.xpending(STREAM, GROUP)["pending"]) == ([], 0)


def test_a_number_of_tries_that_is_none_is_refused(server, consumer):
    for number in ("0", "-1"):
        process = consumer(1, f"--tries={number}")
        errors = process.communicate(timeout=PATIENCE)[1]
        assert process.returncode != 0
        assert f"--tries {number}: expected 1 or more" in errors


def test_consumers_share_the_work(server, r, consumer):
    two = [consumer(0, "--name", name) for name in ("one", "two")]
    wait_until(lambda: r.info("clients")["blocked_clients"] == 2)  # both wait for entries
    for order in range(20):
        to_stream(r, order, 100)
    printed = []  # a consumer prints after the order has expired, and a signal ends it at once
    readers = [threading.Thread(target=lambda of=process: printed.extend(line.strip() for line in of.stdout))
               for process in two]
    for reader in readers:
        reader.start()
    wait_until(lambda: [state(r, order) for order in range(20)] == ["expired"] * 20)
    wait_until(lambda: len(printed) >= 20)
    for process, reader in zip(two, readers):
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=PATIENCE)
        reader.join(PATIENCE)
    assert sorted(printed) == sorted(f"order {order} was not paid: expired" for order in range(20))


@pytest.fixture(params=["shop.py", "shop.js"])
def worker(request, start):
    """worker() starts `work` of the shop."""
    return lambda: start(request.param, "work")


def stopped(process):
    """Stops a worker, and returns the lines that it has printed."""
    process.terminate()
    return lines_of(process)


def test_the_worker_of_the_shop_lets_unpaid_orders_expire(server, r, worker):
    shop(server, "place", 1, "--within", MINUTE)
    shop(server, "place", 2, "--within", 200)
    assert shop(server, "pay", 1) == "order 1 is paid"
    process = worker()
    wait_until(lambda: state(r, 2) == "expired")
    assert stopped(process) == ["order 2 was not paid: expired", "stopped; 1 done, 0 failed"]
    assert (state(r, 1), tasks(r, QUEUE)) == ("paid", {})


def test_an_order_of_a_worker_that_was_killed_goes_to_another_one(server, r, worker):
    """The first worker does not get its work done, as the server lets no script run."""
    with server.client() as other:
        other.execute_command("ACL", "SETUSER", "default", "-evalsha", "-eval")
    first = worker()
    shop(server, "place", 1, "--within", 1)
    wait_until(lambda: task(r, QUEUE, "order:1")["error"] != "")
    first.kill()
    r.execute_command("ACL", "SETUSER", "default", "+evalsha", "+eval")
    second = worker()
    wait_until(lambda: state(r, 1) == "expired")
    assert stopped(second)[0] == "order 1 was not paid: expired"


def test_an_order_that_is_paid_while_its_job_is_on_the_way_stays_paid(server, r, worker):
    shop(server, "place", 1, "--within", 1)
    wait_until(lambda: task(r, QUEUE, "order:1")["state"] == "ready")
    r.hset("{shop}:order:1", "state", "paid")
    process = worker()
    wait_until(lambda: tasks(r, QUEUE) == {})
    assert stopped(process)[0] == "order 1 is paid"
    assert state(r, 1) == "paid"


def test_without_a_server_the_programs_say_so():
    for example, *words in (["shop.py", "pay", "1"], ["shop.js", "pay", "1"], ["consumer.py"], ["consumer.js"]):
        done = subprocess.run([*command_of(example), *words], capture_output=True, text=True, timeout=PATIENCE,
                              env={**environment(), "REDIS_URL": "redis://127.0.0.1:1"}, check=False)
        assert done.returncode == 1
        assert re.search(rf"^{example}: .*(refused|REFUSED)", done.stderr), done.stderr


def signal_all(leader, number):
    """Sends a signal to the processes of a group that are left."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader.pid, number)


def test_the_shop_of_the_page(server, r):
    """Runs each line of examples/README.md that is for a server, unchanged except for the port."""
    readme = pathlib.Path(ROOT, "examples", "README.md").read_text(encoding="utf-8")
    lines = re.findall(r"^((?:(?:NODE_PATH=\S+ )?(?:python3|node) examples/redis/|redis-cli )[^#\n]*)", readme,
                       re.MULTILINE)
    consumers = [line for line in lines if "consumer" in line]
    assert [line.split("/")[-1].split()[0] for line in consumers] == ["consumer.py", "consumer.js"]
    calls = [line for line in lines if "consumer" not in line]
    assert [sum(word in line for line in calls) for word in ("shop.py", "shop.js", "redis-cli")] == [5, 1, 2]
    path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    cli = shlex.quote(program("REDIS_CLI", "redis-cli"))
    environ = {**os.environ, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1", "REDIS_URL": url_of(server)}
    for line in [*calls, *consumers]:
        line = line.replace("redis-cli -p 7379", f"{cli} -p {server.port}")
        process = subprocess.Popen(line, shell=True, cwd=ROOT, env=environ, process_group=0, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            if re.search(r"consumer|shop\.\w+ work", line):
                wait_until(lambda: process.poll() is not None or r.info("clients")["blocked_clients"] == 1)
                signal_all(process, signal.SIGTERM)
                ends = (-signal.SIGTERM, 128 + signal.SIGTERM, 0)
            else:
                ends = (0,)
            errors = process.communicate(timeout=PATIENCE)[1]
        finally:
            signal_all(process, signal.SIGKILL)
        assert (process.returncode in ends, errors) == (True, "")
        wait_until(lambda: r.info("clients")["blocked_clients"] == 0)
    assert r.exists(STREAM)
