# SPDX-License-Identifier: MIT
"""tickwheel top against real servers; tests/command/test_top has the side of the scheduler."""
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading

import pytest

from harness import PATIENCE, ROOT, now_ms, wait_replica_in_sync, wait_until
from situations import calls_of

sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
from terminal import Terminal  # noqa: E402  (the folder has to be on the path first)

COMMAND = os.path.abspath(os.environ.get("TICKWHEEL_COMMAND") or os.path.join(ROOT, "build", "tickwheel"))
HOUR = 3600 * 1000
SOON = 50000  # In the coming minute, and later than the looks of a test.


def run(server, *arguments, env=None):
    words = [
        COMMAND, "top", "--redis", f"127.0.0.1:{server.port}" if hasattr(server, "port") else server, *arguments
    ]
    bare = {
        name: value
        for name, value in os.environ.items() if name not in ("TICKWHEEL_TOP_PASSWORD", "REDISCLI_AUTH")
    }
    return subprocess.run(words,
                          capture_output=True,
                          text=True,
                          timeout=PATIENCE,
                          check=False,
                          stdin=subprocess.DEVNULL,
                          env={**bare, "LC_ALL": "C.UTF-8", **(env or {})})


def as_json(server, *arguments, interval="100ms", **options):
    done = run(server, "--json", "--interval", interval, *arguments, **options)
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1)
    return json.loads(done.stdout)


def fails(server, *arguments, says, **options):
    done = run(server, "--once", "--interval", "100ms", *arguments, **options)
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert says in done.stderr and done.stderr.count("\n") == 1, done.stderr


def between_two_looks(r, act, *words):
    """Runs `tickwheel top`, and calls act() after its first look at the server. The process is suspended
    meanwhile. If it has looked twice already, it was too quick, and all begins anew with a longer interval.
    Returns its exit status, its output and its errors."""
    for interval in (1, 4, 16):
        before = calls_of(r, "TW.TOP")
        with subprocess.Popen([COMMAND, "top", *words, "--interval", f"{interval}s"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as process:
            wait_until(lambda count=before: calls_of(r, "TW.TOP") > count)
            process.send_signal(signal.SIGSTOP)
            once = calls_of(r, "TW.TOP") == before + 1
            if once:
                act()
            process.send_signal(signal.SIGCONT)
            out, error = process.communicate(timeout=PATIENCE)
        if once:
            return process.returncode, out, error
    raise AssertionError("there is no time between two looks")


def add(r, queue, *dues, target=None):
    pipe = r.pipeline(transaction=False)
    for i, due in enumerate(dues):
        pipe.execute_command("TW.SEND", queue, target or f"{queue}:out", f"{due}:{i}", "IN", due,
                             "PAYLOAD", "f", "v")
    pipe.execute()


def add_in_a_pause(r, queue):
    """Files a task, and begins a pause of writes before it can be due."""
    with r.pipeline(transaction=True) as both:
        both.execute_command("TW.SEND", queue, f"{queue}:out", "late", "IN", 1, "PAYLOAD", "f", "v")
        both.execute_command("CLIENT", "PAUSE", HOUR, "WRITE")
        both.execute()


# The output


def test_json_says_what_was_filed(clock, server, r):
    add(r, "a", *[20500] * 30, *[40500] * 10, HOUR)
    add(r, "b", HOUR, 2 * HOUR)
    r.execute_command("TW.CANCEL", "b", f"{HOUR}:0")
    found = as_json(server)
    assert (found["source"], found["address"]) == ("redis", f"127.0.0.1:{server.port}")
    assert re.fullmatch(r"(redis|valkey) \d+\.\d+\.\d+", found["version"]) and found["state"] == "primary"
    counts = found["counts"]
    assert [counts[name] for name in ("tasks", "queues", "put", "cancelled", "late", "held")
            ] == [42, 2, 43, 1, 0, 0]
    assert counts["memory"] == server.info("tickwheel")["tickwheel_bytes"]
    forecast = found["forecast"]["counts"]
    assert (len(forecast), sum(forecast), found["forecast"]["exact"]) == (60, 40, True)
    first = next(i for i, count in enumerate(forecast) if count)
    assert (first, forecast[20], forecast[40]) == (20, 30, 10)
    assert found["deferred"] == dict.fromkeys(
        ("pause", "role", "oom", "slot", "replicas", "disk", "refused", "stopped"), 0)
    assert [(one["name"], one["tasks"]) for one in found["queues"]] == [("a", 41), ("b", 1)]
    assert "nothing is saved" in found["warning"] and found["durability"] == "none"
    assert (found["deliver"], found["paused_queues"]) == ("yes", [])


def test_names_are_exact_in_json(server, r):
    """A past bug: `größe` was `gr????e`, and a long name was cut off."""
    names = ["größe", "x" * 300, "a\x00\x1b\x7f\u009b\\\"", "", b"a\xff"]
    for n, name in enumerate(names):
        for i in range(len(names) - n):
            r.execute_command("TW.PUT", name, i, "IN", HOUR, "PAYLOAD", "v")
    r.execute_command("TW.PAUSE", "größe")
    done = run(server, "--json", "--interval", "100ms")
    assert [char for char in done.stdout if char in "\x00\x1b\x7f\u009b"] == []
    found = json.loads(done.stdout)
    assert [one.get("name") for one in found["queues"]] == [*names[:-1], None]
    assert found["queues"][-1]["name_hex"] == "61ff"
    assert [one["name"] for one in found["paused_queues"]] == ["größe"]
    found = as_json(server, "--queue", "größe")
    assert (found["queue"], found["queues"][0]["name"]) == ("größe", "größe")
    found = as_json(server, "--queue", b"a\xff")
    assert (found["queue_hex"], found["queues"][0]["name_hex"]) == ("61ff", "61ff")
    assert " gr????e  " in run(server, "--once", "--interval", "100ms").stdout


def test_a_long_warning_is_whole_in_json(fleet):
    """A past bug: it was cut off after 159 bytes."""
    server = fleet.server()
    r = server.client()
    r.config_set("proto-max-bulk-len", 1 << 20)
    for i in range(12):
        r.execute_command("TW.PUT", "s", i, "IN", HOUR, "PAYLOAD", str(i) * 100000)
    wait_until(lambda: server.tw()["unmovable"] == 1)
    warning = as_json(server)["warning"]
    assert "nothing is saved" in warning and warning.endswith("spread its tasks over more queues")


def test_rates_and_lateness(server, r):
    pipe = r.pipeline(transaction=False)
    for i in range(10):
        pipe.execute_command("TW.SEND", "s", "q", f"r{i}", "IN", 1, "EVERY", 100, "MAXLEN", 10, "PAYLOAD", "f",
                             "v")
    pipe.execute()
    wait_until(lambda: server.info("tickwheel")["tickwheel_delivered"] > 50)
    found = as_json(server)
    assert found["rates"]["put"] == 0
    late = found["late_ns"]
    known = [late[name] for name in ("p50", "p99", "p999", "max")]
    assert known == sorted(known) and known[0] > 0 and "p90" not in late
    recent = found["recent_late_ns"]
    assert 0 < recent["p50"] <= recent["p90"] <= recent["p99"] <= recent["max"] <= late["max"]
    assert 50 < recent["calls"] <= found["counts"]["delivered"]
    [queue] = found["queues"]
    assert queue["delivered"] == found["counts"]["delivered"] or queue["delivered"] > 50


def test_a_rate_is_that_of_the_interval(server, r):
    """It lasts a second at least. 50 tasks in it are fewer than 50 in a second."""
    def act():
        add(r, "s", *range(1, 51))
        wait_until(lambda: r.xlen("s:out") % 50 == 0 and r.exists("s") == 0)
    code, out, error = between_two_looks(r, act, "--redis", f"127.0.0.1:{server.port}", "--json")
    assert (code, error) == (0, "")
    rates = json.loads(out)["rates"]
    assert 0 < rates["delivered"] < 50 and rates["delivered"] == rates["put"]


def test_a_frame(clock, server, r):
    add(r, "orders:timeouts", *[20500] * 30, *[40500] * 10)
    add(server.client(db=2), "bad\x1b[31m\x07name", HOUR)
    done = run(server, "--once", "--interval", "100ms")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == f" tickwheel top  127.0.0.1:{server.port}"
    assert all(len(line) <= 80 for line in lines)
    for words in (r"tasks 41\b", r"queues 2\b", r"the coming minute 40 due, at most 30 in a second", "█",
                  r"put off because of pause 0", r"orders:timeouts +40 +0 +0 +0 +0",
                  r"db2 bad\?\[31m\?name +1 "):
        assert re.search(words, done.stdout), (words, done.stdout)
    assert "\x1b" not in done.stdout


def put(r, queue, *dues):
    pipe, now = r.pipeline(transaction=False), now_ms()
    for i, due in enumerate(dues):
        pipe.execute_command("TW.PUT", queue, f"{due}:{i}", "AT", now + due, "PAYLOAD", "v")
    pipe.execute()


def fill_with_jobs(server, r):
    """Makes the queue `jobs` with one task that waits, two ready ones, three leased ones, one dead, one
    purged and one done; and the queue `stopped`, which is paused, with two due tasks and one that waits."""
    put(r, "jobs", *range(1, 9), HOUR)
    wait_until(lambda: server.offered() == 8)
    purged, dead, done, *_ = [(id, token) for _, id, token, *_ in r.execute_command(
        "TW.TAKE", 1, "jobs", "LEASE", HOUR, "COUNT", 6)]
    assert [r.execute_command("TW.NACK", "jobs", *one, "DEAD") for one in (purged, dead)] == [0, 0]
    assert r.execute_command("TW.PURGE", "jobs", "IDS", 1, purged[0]) == 1
    assert r.execute_command("TW.ACK", "jobs", *done) == 1
    r.execute_command("TW.PAUSE", "stopped")
    put(r, "stopped", 1, 2, HOUR)
    wait_until(lambda: server.tw()["paused_tasks"] == 2)


JOBS = {"tasks": 6, "ready": 2, "leased": 3, "dead": 1, "held": 0, "delivered": 0, "done": 1, "died": 2,
        "paused": False}
STOPPED = {"tasks": 3, "ready": 2, "leased": 0, "dead": 0, "held": 0, "delivered": 0, "done": 0, "died": 0,
           "paused": True}


def test_json_of_tasks_for_workers(server, r):
    fill_with_jobs(server, r)
    found = as_json(server)
    counts = found["counts"]
    assert [counts[name] for name in ("tasks", "waiting", "ready", "late", "leased", "dead", "held",
                                      "paused_tasks", "paused_queues")] == [9, 2, 4, 0, 3, 1, 0, 2, 1]
    assert [counts[name] for name in ("delivered", "offered", "taken", "done", "failed", "lapsed", "died")
            ] == [0, 8, 6, 1, 2, 0, 2]
    assert 0 < counts["oldest_ready_ms"] < 60000
    rates = dict.fromkeys(("offered", "taken", "done", "failed", "lapsed", "died"), 0)
    assert {name: found["rates"][name] for name in rates} == rates
    assert found["late_ns"]["calls"] == found["recent_late_ns"]["calls"] == 8
    assert found["queues"] == [{"db": 0, "name": "jobs", **JOBS}, {"db": 0, "name": "stopped", **STOPPED}]
    assert found["paused_queues"] == [{"db": 0, "name": "stopped", **STOPPED}]
    for name, numbers in (("jobs", JOBS), ("stopped", STOPPED)):
        found = as_json(server, "--queue", name)
        assert found["queues"] == [{"db": 0, "name": name, **numbers}] and "paused_queues" not in found


def test_a_frame_of_tasks_for_workers(server, r):
    fill_with_jobs(server, r)
    shown = run(server, "--once", "--interval", "100ms").stdout
    for words in (r" tasks 9 +waiting 2 +ready 4 +oldest [\d.]+ m?s\n late 0 +leased 3 +dead 1 +held 0\n",
                  r"\n paused 2 +pauses 1 +queues 2 +memory ",
                  r" due 0/s +in all 8\n", r" taken 0/s\n done 0/s +failed 0/s +died 0/s\n",
                  r" paused, then the largest +tasks +ready +leased +dead +ended/s\n"
                  r" stopped +3 +2 +0 +0 +paused\n jobs +6 +2 +3 +1 +0\n$"):
        assert re.search(words, shown), (words, shown)
    r.execute_command("TW.RESUME", "stopped")
    wait_until(lambda: server.offered() == 4)
    r.execute_command("TW.TAKE", 2, "jobs", "stopped", "LEASE", HOUR, "COUNT", 9)
    shown = run(server, "--once", "--interval", "100ms").stdout
    assert re.search(r" ready 0 +oldest -\n late 0 +leased 7 +dead 1 +held 0\n paused 0 ", shown), shown
    assert re.search(r" largest queues +tasks ", shown), shown
    assert re.search(r" stopped +3 +0 +2 +0 +0\n", shown), shown


def test_a_server_that_is_told_not_to_deliver(server, r):
    assert "stopped" not in run(server, "--once", "--interval", "100ms").stdout
    r.config_set("tickwheel.deliver", "no")
    try:
        add(r, "s", 1, 2)
        put(r, "jobs", 1)
        wait_until(lambda: server.tw()["deferred_stopped"] > 0 and server.tw()["paused_tasks"] == 3)
        found = as_json(server)
        assert (found["counts"]["paused_tasks"], found["counts"]["late"]) == (3, 0)
        assert found["deferred"]["stopped"] > 0 and found["deliver"] == "no"
        shown = run(server, "--once", "--interval", "100ms").stdout
        assert shown.splitlines()[1].endswith(", tickwheel.deliver is no")
        assert re.search(r" paused 3 ", shown) and re.search(r" stopped [1-9]", shown), shown
    finally:
        r.config_set("tickwheel.deliver", "yes")


def test_queues_whose_names_look_alike(server, r):
    """A past bug: one queue was shown with the deliveries of the other."""
    add(r, "\u00e9", *[HOUR] * 5)
    add(r, "\u00fc", *[HOUR] * 3, *range(1, 21))
    wait_until(lambda: r.xlen("\u00fc:out") == 20)
    shown = run(server, "--once", "--interval", "100ms").stdout
    assert re.search(r"\?\? +5 +0 +0 ", shown) and re.search(r"\?\? +3 +0 +20 ", shown), shown


def test_a_server_that_starts_anew_between_two_looks(server, r):
    """A past bug: the server had a rate, of the tasks that it has delivered since the restart."""
    def act():
        server.stop()
        server.start()
        add(server.client(), "s", *range(1, 21))
        wait_until(lambda: server.client().xlen("s:out") == 20)
    code, out, error = between_two_looks(r, act, "--redis", f"127.0.0.1:{server.port}", "--json")
    assert code == 0, error
    found = json.loads(out)
    assert (found["counts"]["delivered"], found["rates"]["delivered"]) == (20, None)


def test_one_queue(server, r):
    add(r, "a", *[SOON] * 7)
    other = server.client(db=3)
    add(other, "b", *[SOON] * 5, HOUR)
    other.set("c", "a string")
    found = as_json(server, "--queue", "b", "--db", "3")
    assert (found["queue"], sum(found["forecast"]["counts"])) == ("b", 5)
    assert found["queues"] == [{
        "db": 3, "name": "b", "tasks": 6, "ready": 0, "leased": 0, "dead": 0, "held": 0, "delivered": 0,
        "done": 0, "died": 0, "paused": False
    }]
    assert sum(as_json(server, "--queue", "a")["forecast"]["counts"]) == 7
    assert as_json(server, "--queue", "nobody")["queues"][0]["tasks"] == 0
    assert ", of b" in run(server, "--once", "--interval", "100ms", "--queue", "b", "--db", "3").stdout
    fails(server, "--queue", "c", "--db", "3", says="TW.FORECAST: WRONGTYPE")


def test_a_queue_with_an_empty_name(server, r):
    """A past bug: an empty name counted as no name, so the queue was taken for all queues."""
    add(r, "", SOON)
    add(r, "a", SOON, SOON)
    assert sorted(one["name"] for one in as_json(server)["queues"]) == ["", "a"]
    found = as_json(server, "--queue", "")
    assert (found["queue"], sum(found["forecast"]["counts"]), found["queues"][0]["name"]) == ("", 1, "")
    shown = run(server, "--once", "--interval", "100ms", "--queue", "").stdout
    assert "the coming minute 1 due, at most 1 in a second, of \"\"" in shown and "largest" not in shown, shown


def test_an_estimate_says_so(server, r):
    for s in range(5):
        add(r, f"s{s}", *(SOON + i for i in range(8000)))
    found = as_json(server)
    assert found["forecast"]["exact"] is False
    assert abs(sum(found["forecast"]["counts"]) - 40000) < 1000
    assert re.search(r"the coming minute ~[\d,]+ due, .* \(estimated\)",
                     run(server, "--once", "--interval", "100ms").stdout)


def test_why_deliveries_were_put_off(server, r):
    r.client_pause(HOUR, all=False)
    r2 = server.client()
    assert as_json(server)["deferred"]["pause"] == 0
    r.client_unpause()
    add_in_a_pause(r, "s")
    wait_until(lambda: server.info("tickwheel")["tickwheel_deferred_pause"] > 2)
    found = as_json(server)
    assert found["deferred"]["pause"] > 2 and found["counts"]["late"] == 1
    assert re.search(r"pause [1-9]", run(server, "--once", "--interval", "100ms").stdout)
    r2.client_unpause()
    r.set("t:out", "no stream")
    add(r, "t", 1)
    wait_until(lambda: as_json(server)["counts"]["held"] == 1 or as_json(server)["counts"]["dead"] == 1)


def test_a_replica(fleet):
    primary = fleet.server()
    replica = fleet.server(replicaof=primary)
    wait_replica_in_sync(primary, replica)
    add(primary.client(), "s", HOUR, 30000)
    wait_until(lambda: as_json(replica)["counts"]["tasks"] == 2)
    put(primary.client(), "jobs", 0, 0)
    wait_until(lambda: as_json(replica)["counts"]["ready"] == 2)
    found = as_json(replica)
    assert found["counts"]["late"] == 0
    assert re.search(r" ready 2 .*\n late 0\b", run(replica, "--once", "--interval", "100ms").stdout)
    assert re.fullmatch(r"replica, its primary 127\.0\.0\.1, link up", found["state"])
    assert sum(found["forecast"]["counts"]) == 1 + 2  # The two tasks that are due are in its first second.


def test_a_node_of_a_cluster(fleet):
    assert as_json(fleet.server(cluster=True))["state"] == "primary of a cluster"


@pytest.mark.parametrize("address", ["127.0.0.1:{}", ":{}", "localhost:{}", "unix:{}"])
def test_addresses(fleet, tmp_path, address):
    path = str(tmp_path / "socket")
    server = fleet.server(unixsocket=path)
    given = address.format(path if "unix" in address else server.port)
    assert as_json(given)["address"] == given


def test_a_server_that_closes_idle_connections(server, r):
    """The command connects again for its next look."""
    def act():
        r.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    code, out, error = between_two_looks(r, act, "--redis", f"127.0.0.1:{server.port}", "--json")
    assert (code, error, json.loads(out)["rates"]["delivered"]) == (0, "", 0)


# Errors


def test_a_server_that_goes_between_two_looks(fleet, tmp_path):
    """A past bug: the second look killed the command without a message, because a write to a closed socket
    raises a signal."""
    path = str(tmp_path / "socket")
    server = fleet.server(unixsocket=path)
    code, out, error = between_two_looks(server.client(), server.stop, "--redis", f"unix:{path}", "--once")
    assert (code, out) == (1, "") and "cannot connect: " in error, error


def test_no_server():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        fails(address, says=f"{address}: cannot connect: Connection refused")


def test_no_socket(tmp_path):
    fails(f"unix:{tmp_path}/nothing", says="cannot connect: No such file or directory")


def test_a_host_that_there_is_not():
    fails("no-such-host.invalid:7379", says="no-such-host.invalid:7379: cannot connect: ")


def test_no_module(fleet):
    fails(fleet.server(module=False), says="the server has not loaded the Tickwheel module")


def test_a_password(fleet):
    server = fleet.server()
    r = server.client()
    r.execute_command("CONFIG", "SET", "requirepass", "right")
    try:
        fails(server, says="the server needs a password: set TICKWHEEL_TOP_PASSWORD")
        for name in ("TICKWHEEL_TOP_PASSWORD", "REDISCLI_AUTH"):
            assert as_json(server, env={name: "right"})["counts"]["tasks"] == 0
            fails(server, env={name: "wrong"}, says="the password of user default is wrong")
        assert as_json(server, env={"TICKWHEEL_TOP_PASSWORD": "right",
                                    "REDISCLI_AUTH": "wrong"})["counts"]["tasks"] == 0
    finally:
        r.execute_command("CONFIG", "SET", "requirepass", "")
    fails(server, env={"REDISCLI_AUTH": "any"}, says="AUTH: ERR")


def test_users(server, r):
    password = {"TICKWHEEL_TOP_PASSWORD": "secret"}
    add(r, "mine:s", 30000)

    def rules(*words):
        r.execute_command("ACL", "SETUSER", "watch", "reset", "on", ">secret", *words)
    rules("+info", "+tw.top")
    assert as_json(server, "--user", "watch", env=password)["counts"]["tasks"] == 1
    fails(server,
          "--user",
          "watch",
          env={"TICKWHEEL_TOP_PASSWORD": "wrong"},
          says="the password of user watch is wrong")
    fails(server, "--user", "nobody", env=password, says="user nobody is wrong, or there is no such user")
    rules("+info")
    fails(server, "--user", "watch", env=password, says="user watch has no permission for TW.TOP: NOPERM")
    rules("+tw.top")
    fails(server, "--user", "watch", env=password, says="user watch has no permission for INFO: NOPERM")
    rules("+info", "+tw.forecast", "+tw.info", "%R~mine:*")
    assert as_json(server, "--user", "watch", "--queue", "mine:s",
                   env=password)["queues"][0]["tasks"] == 1
    fails(server,
          "--user",
          "watch",
          "--queue",
          "theirs:s",
          env=password,
          says="no permission for TW.FORECAST: NOPERM")
    fails(server,
          "--user",
          "watch",
          "--queue",
          "s",
          "--db",
          "3",
          env=password,
          says="no permission for SELECT")


def test_a_database_that_there_is_not(server):
    fails(server, "--db", "99", says="SELECT: ERR DB index is out of range")


def answering(text):
    """Starts a server that replies with `text` to anything. Returns its address."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        one, _ = listener.accept()
        one.recv(1000)
        if text is None:
            kept.append(one)
            return
        one.sendall(text)
        one.close()
    kept = []
    threading.Thread(target=serve, daemon=True).start()
    return f"127.0.0.1:{listener.getsockname()[1]}", (listener, kept)


@pytest.mark.parametrize(
    "text,says", [(b"HTTP/1.1 400 Bad Request\r\n\r\n", "the process at this address is not a Redis server"),
                  (b"", "Server closed the connection"),
                  (b"-LOADING Redis is loading\r\n", "INFO: LOADING Redis is loading"),
                  (None, "there was no answer for 3 s"),
                  (b"$18\r\ntickwheel_pendin:1\r\n-ERR unknown command 'TW.TOP'\r\n", "has not loaded"),
                  (b"$17\r\ntickwheel_tasks:1\r\n-ERR unknown command 'TW.TOP'\r\n",
                   "the server has no TW.TOP: its Tickwheel module is older"),
                  (b"$17\r\ntickwheel_tasks:1\r\n*0\r\n", "the answer is not a forecast of 60 steps"),
                  (b"$17\r\ntickwheel_tasks:1\r\n+OK\r\n", "the answer is not a forecast of 60 steps"),
                  (b"*0\r\n*0\r\n", "has not loaded"), (b"-ERR \x1b[31m\r\n", "ERR ?[31m")],
    ids=str)
def test_others(text, says):
    address, _kept = answering(text)
    fails(address, says=says)


@pytest.mark.parametrize("beginning,more,pause", [(b"$100000\r\n", b"x", 0.1), (b"+", b"x" * 65536, 0)],
                         ids=["slowly", "fast"])
def test_an_answer_without_an_end(beginning, more, pause):
    """A past bug: the wait began anew with each byte, and the command kept all bytes."""
    def serve():
        one, _ = listener.accept()
        with one, contextlib.suppress(OSError):
            one.recv(1000)
            one.sendall(beginning)
            while not ended.wait(pause):
                one.sendall(more)
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        try:
            done = run(f"127.0.0.1:{listener.getsockname()[1]}", "--once")
        finally:
            ended.set()
    assert (done.returncode, done.stdout) == (1, "")
    assert "there was no answer for 3 s" in done.stderr or "its answer is too long" in done.stderr


# Live


@pytest.fixture
def terminals(tmp_path):
    made = []

    def start(*arguments, **options):
        made.append(Terminal(str(tmp_path), COMMAND, "top", *arguments, **options))
        return made[-1]
    yield start
    for one in made:
        one.close()


def test_live(server, r, terminals):
    add(r, "s", *range(SOON, SOON + 50))
    terminal = terminals("--redis", f"127.0.0.1:{server.port}", "--interval", "100ms", rows=30)
    terminal.sees(r"tasks 50\b")
    terminal.sees(r"the coming minute 50 due")
    terminal.sees("█")
    add(r, "bigger", *[HOUR] * 70)
    terminal.sees(r"tasks 120\b")
    terminal.sees(r"largest queues[^\n]*\n bigger +70 [^\n]*\n s +50 ")
    terminal.resize(40, 24)
    terminal.sees(r"late +p50 +p90 +p99 +max")
    add(r, "soon", *range(1, 30))
    terminal.resize(80, 30)
    terminal.sees(r"in all 29\b")
    terminal.keys("q")
    terminal.ended_well()


def test_live_while_the_server_starts_anew(fleet, terminals):
    server = fleet.server(appendonly="yes")
    add(server.client(), "s", HOUR)
    terminal = terminals("--redis", f"127.0.0.1:{server.port}", "--interval", "100ms", cols=120)
    terminal.sees(r"tasks 1\b")
    server.kill()
    terminal.sees(r"lost for \d+ s: .*Connection refused")
    server.start()
    add(server.client(), "s", 2 * HOUR)
    terminal.sees(r"tasks 2\b")
    assert "lost for" not in terminal.screen()
    terminal.keys("C-c")
    terminal.ended_well()


def test_live_what_is_put_off(server, r, terminals):
    terminal = terminals("--redis", f"127.0.0.1:{server.port}", "--interval", "100ms", rows=30)
    terminal.sees(r"pause 0")
    add_in_a_pause(r, "s")
    terminal.sees(r"pause [1-9]")
    terminal.sees(r"late 1\b")
    r.client_unpause()
    terminal.sees(r"late 0\b")
    terminal.sees(r"in all 1\b")


def test_live_a_server_that_is_frozen(server, terminals):
    terminal = terminals("--redis", f"127.0.0.1:{server.port}", "--interval", "100ms", cols=120)
    terminal.sees(r"tasks 0\b")
    server.process.send_signal(signal.SIGSTOP)
    try:
        terminal.sees(r"lost for \d+ s: .*there was no answer for 3 s")
    finally:
        server.process.send_signal(signal.SIGCONT)
    wait_until(lambda: "lost for" not in terminal.screen())
    terminal.keys("q")
    terminal.ended_well()
