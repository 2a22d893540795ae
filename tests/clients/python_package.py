# SPDX-License-Identifier: MIT
"""Makes the package of clients/python importable for the tests of Python, and has what they share."""
import os
import subprocess
import sys

from harness import PATIENCE, ROOT, wait_until
from subject import command

PACKAGE = os.path.join(ROOT, "clients", "python")
if PACKAGE not in sys.path:
    sys.path.insert(0, PACKAGE)

import tickwheel  # noqa: E402  (the folder has to be on the path first)

# Time limits of a client for replies, in seconds: all of them shorter than the wait of a TW.TAKE. A busy
# machine may miss the first of them.
LIMITS = 1.5, 3, 4.5


def new_file(folder, name="tasks.db"):
    """Returns the URL of a new file with the tables, as SQLite may not find the extension here."""
    path = os.path.join(folder, name)
    subprocess.run([command()[0], "put", "--store", path], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   check=True, timeout=PATIENCE)
    return f"sqlite:///{path}"


def emptied(queue):
    """Waits until a queue has no task that is not dead."""
    wait_until(lambda: queue.count() == 0, message=lambda: f"{queue.next()} waits")


def bad_arguments(queue):
    """Returns calls with wrong arguments, each with the words that its error has. They send nothing."""
    put, naive = queue.put, __import__("datetime").datetime(2030, 1, 1)
    return [
        (lambda: put("a", "x", delay=-1), "delay is -1: expected 0 to"),
        (lambda: put("a", "x", delay="1"), "delay is '1': expected seconds"),
        (lambda: put("a", "x", delay=float("nan")), "delay is nan"),
        (lambda: put("a", "x", delay=True), "delay is True"),
        (lambda: put("a", "x", delay=1e30), "delay is 1e+30"),
        (lambda: put("a", "x", delay=1, at=2), "only one of them"),
        (lambda: put("a", "x", at=naive), "time zone"),
        (lambda: put("a", "x", condition="NX"), "condition is 'NX': expected 'nx' or"),
        (lambda: put("a", "x", condition="gt", keep_due=True), "condition is 'gt': expected 'nx' or 'xx'"),
        (lambda: put("a", "x", every=0), "every is 0: expected 0.001 to"),
        (lambda: put("a", "x", missed="never"), "missed is 'never'"),
        (lambda: put("a", "x", max_late=-1), "max_late is -1"),
        (lambda: put("a", "x", at=253402300800), "at is 253402300800: expected 0 to 253402300799 seconds"),
        (lambda: put("a", "x", every=3155760001), "every is 3155760001: expected 0.001 to 3155760000 seconds"),
        (lambda: put("a", "x", backoff=(0,)), "backoff.first is 0"),
        (lambda: put("a", tickwheel.Values()), "at least one"),
        (lambda: put("a", {1, 2}), "payload is {1, 2}: expected str, bytes, Values, or a value of JSON"),
        (lambda: put("a", {"x": float("inf")}), "payload is {'x': inf}: expected str"),
        (lambda: put("a", tickwheel.Values("x", naive)), "payload is datetime"),
        (lambda: queue.send("t", "a", "x"), "payload is 'x': expected a dict of fields and values"),
        (lambda: queue.send("t", "a", {}), "payload is {}: expected a dict"),
        (lambda: queue.send("t", "a", {5: "x"}), "a field is 5: expected str or bytes"),
        (lambda: queue.send(5, "a", {"x": 1}), "target is 5"),
        (lambda: queue.send("t", "a", "x", kind="LIST"), "kind is 'LIST': expected 'stream' or 'list' or"),
        (lambda: queue.send("t", "a", {"x": 1}, tries=16), "tries is 16: expected an integer from 1 to 15"),
        (lambda: queue.send("t", "a", {"x": 1}, maxlen=0), "maxlen is 0"),
        (lambda: queue.forecast(0), "step is 0: expected 0.001 to 3155760000 seconds"),
        (lambda: queue.forecast(steps=10001), "steps is 10001: expected an integer from 1 to 10000"),
        (lambda: queue.move("a"), "neither delay nor at"),
        (lambda: queue.move("a", delay=1, condition="nx"), "condition is 'nx'"),
        (lambda: put("a", "x", delay=10**400), "delay is 1000"),
        (lambda: put("a", "x", tries=0), "tries is 0: expected an integer from 1 to 1000000"),
        (lambda: put("a", "x", tries=True), "tries is True"),
        (lambda: put("a", "x", every=1, times=1.5), "times is 1.5: expected an integer"),
        (lambda: put("a", "x", backoff=5), "backoff is 5: expected a Backoff"),
        (lambda: put("a", "x", backoff=(1, 1.005)), "backoff.factor is 1.005: expected a number from 1 to 100"),
        (lambda: put("a", "x", backoff=(1, float("nan"))), "backoff.factor is nan"),
        (lambda: put("a", "x", backoff=(1, 2, 3, 101)), "backoff.jitter is 101: expected an integer from 0 to"),
        (lambda: put("*", "x"), "id is '*', for which the server makes another one: use None"),
        (lambda: put(5, "x"), "id is 5: expected str or bytes"),
        (lambda: queue.get(None), "id is None"),
        (lambda: queue.cancel(), "no id is given"),
        (lambda: queue.cancel(["a"]), "id is ['a']"),
        (lambda: queue.dead(0), "count is 0: expected an integer from 1 to 10000"),
        (lambda: queue.promote(None), "id is None"),
        (lambda: type(queue)(queue.client, 5), "key is 5"),
        (lambda: type(queue)(None, "s"), "client is None: expected a client of redis-py"),
    ]
