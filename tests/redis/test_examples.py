# SPDX-License-Identifier: MIT
"""The shop of examples/redis, with its consumers in Python and Node, against a real server; and the README's tour."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import pytest

from harness import PATIENCE, ROOT, Broken, delivered, task, tasks, wait_until

EXAMPLES = os.path.join(ROOT, "examples", "redis")
STREAM, SCHEDULE, GROUP = "{shop}:unpaid", "{shop}:timeouts", "expiry"
MINUTE = 60000


def environment():
    """Debian's package of npm's redis lies where node looks only when told."""
    path = os.pathsep.join(filter(None, [os.environ.get("NODE_PATH"), "/usr/share/nodejs"]))
    return {**os.environ, "NODE_PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


def command_of(program):
    """The command line of an example; a missing interpreter fails the test."""
    interpreter = sys.executable if program.endswith(".py") else shutil.which("node") or shutil.which("nodejs")
    if interpreter is None:
        raise Broken("node is missing: tools/setup redis installs it")
    return [interpreter, os.path.join(EXAMPLES, program)]


def shop(server, *words):
    done = subprocess.run([*command_of("shop.py"), *map(str, words), "--port", str(server.port)], capture_output=True,
                          text=True, timeout=PATIENCE, env=environment(), check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(params=["consumer.py", "consumer.js"])
def consumer(request, server):
    """start(COUNT, option ...) starts one in the background; what is left of them is killed."""
    running = []

    def start(count, *options):
        line = [*command_of(request.param), "--port", str(server.port), "--count", str(count), *map(str, options)]
        running.append(subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env=environment()))
        return running[-1]

    yield start
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()


def lines_of(process):
    """What a consumer printed, once it has had its number of entries."""
    output, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (0, "")
    return output.splitlines()


def state(r, order):
    return r.hget(f"{{shop}}:order:{order}", "state")


def test_an_order_that_is_not_paid_expires(server, r, consumer):
    assert shop(server, "place", 1, "--within", 200) == "order 1 is placed; it expires in 200 ms unless it is paid"
    assert lines_of(consumer(1)) == ["order 1 was not paid: expired"]
    assert state(r, 1) == "expired"
    assert r.xpending(STREAM, GROUP)["pending"] == 0


def test_an_order_that_is_paid_does_not(server, r, consumer):
    shop(server, "place", 1, "--within", MINUTE)
    shop(server, "place", 2, "--within", 200)
    assert shop(server, "pay", 1) == "order 1 is paid"
    assert lines_of(consumer(1)) == ["order 2 was not paid: expired"]
    assert (state(r, 1), state(r, 2)) == ("paid", "expired")
    assert tasks(r, SCHEDULE) == {}


def test_an_order_that_is_paid_when_its_time_is_up_stays_paid(server, r, consumer):
    shop(server, "place", 1, "--within", 1)
    wait_until(lambda: delivered(r, STREAM) == ["order:1"])
    assert shop(server, "pay", 1) == "order 1 is paid, though its time was up"
    assert lines_of(consumer(1)) == ["order 1 is paid"]
    assert state(r, 1) == "paid"


def test_more_time_to_pay_and_never_less(server, r):
    shop(server, "place", 1, "--within", MINUTE)
    before = task(r, SCHEDULE, "order:1")["due"]
    assert shop(server, "extend", 1, "--within", 10) == "order 1 has longer than that"
    assert task(r, SCHEDULE, "order:1")["due"] == before
    assert shop(server, "extend", 1, "--within", 10 * MINUTE) == "order 1 has 600000 ms from now"
    assert task(r, SCHEDULE, "order:1")["due"] >= before + 8 * MINUTE
    assert shop(server, "extend", 2) == "order 2 waits for no payment"


def test_an_entry_that_comes_twice_has_its_effect_once(server, r, consumer):
    shop(server, "place", 1, "--within", 1)
    wait_until(lambda: delivered(r, STREAM) == ["order:1"])
    r.xadd(STREAM, r.xrange(STREAM)[0][1])
    assert lines_of(consumer(2)) == ["order 1 was not paid: expired", "order 1 has come before"]
    assert r.xpending(STREAM, GROUP)["pending"] == 0


def test_what_a_dead_consumer_has_left_is_taken_over(server, r, consumer):
    shop(server, "place", 1, "--within", 1)
    wait_until(lambda: delivered(r, STREAM) == ["order:1"])
    r.xgroup_create(STREAM, GROUP, id="0")
    assert len(r.xreadgroup(GROUP, "dead", {STREAM: ">"})[0][1]) == 1
    assert lines_of(consumer(1, "--idle", 1)) == ["order 1 was not paid: expired"]
    assert r.xpending(STREAM, GROUP)["pending"] == 0


def test_what_a_consumer_is_still_at_is_left_to_it(server, r, consumer):
    shop(server, "place", 1, "--within", 1)
    wait_until(lambda: delivered(r, STREAM) == ["order:1"])
    r.xgroup_create(STREAM, GROUP, id="0")
    r.xreadgroup(GROUP, "busy", {STREAM: ">"})
    shop(server, "place", 2, "--within", 1)
    assert lines_of(consumer(1, "--idle", 10 * MINUTE)) == ["order 2 was not paid: expired"]


def test_consumers_share_the_work(server, r, consumer):
    two = [consumer(0, "--name", name) for name in ("one", "two")]
    wait_until(lambda: r.info("clients")["blocked_clients"] == 2)  # both wait for entries
    for order in range(20):
        shop(server, "place", order, "--within", 100)
    wait_until(lambda: [state(r, order) for order in range(20)] == ["expired"] * 20)
    for process in two:
        process.send_signal(signal.SIGTERM)
    printed = [line for process in two for line in process.communicate(timeout=PATIENCE)[0].splitlines()]
    assert sorted(printed) == sorted(f"order {order} was not paid: expired" for order in range(20))


def test_without_a_server_the_programs_say_so():
    for program, *words in (["shop.py", "pay", "1"], ["consumer.py"], ["consumer.js"]):
        done = subprocess.run([*command_of(program), *words, "--port", "1"], capture_output=True, text=True,
                              timeout=PATIENCE, env=environment(), check=False)
        assert done.returncode == 1
        assert re.search(rf"^{program}: .*(refused|REFUSED)", done.stderr), done.stderr


def test_the_tour_of_the_readme(server, r):
    """Each line of the README that calls the shop or a consumer, as it stands there but for the port."""
    readme = pathlib.Path(ROOT, "README.md").read_text(encoding="utf-8")
    lines = re.findall(r"^((?:NODE_PATH=\S+ )?(?:python3|node) examples/redis/[^#\n]*)", readme, re.MULTILINE)
    consumers = [line for line in lines if "consumer" in line]
    assert [line.split("/")[-1].split()[0] for line in consumers] == ["consumer.py", "consumer.js"]
    calls = [line for line in lines if "shop.py" in line]
    assert len(calls) >= 2
    folder = os.path.dirname(sys.executable)
    for line in [*calls, *(f"{line} --count 0" for line in consumers)]:
        wait = "timeout --preserve-status 2 " if "consumer" in line else ""
        script = re.sub(r"(python3|node) ", rf"{wait}\1 ", line, count=1) + f" --port {server.port}"
        path = f"{folder}:{os.environ['PATH']}"
        done = subprocess.run(script, shell=True, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False,
                              env={**os.environ, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1"})
        assert done.returncode in ((0, 130, 143) if wait else (0,)), done.stderr
        assert done.stderr == ""
    assert r.exists(STREAM)
