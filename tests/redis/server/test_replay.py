# SPDX-License-Identifier: MIT
"""Clients that end the `loading` flag with DEBUG RELOAD while a server replays its append-only file.

During the replay a server serves clients from time to time. It replies to most commands with LOADING. But
DEBUG RELOAD loads a snapshot, and when that load has ended, the server assumes that all loading has ended.
The replay goes on, and the server accepts every command meanwhile. The commands of the file come from a
client that no flag distinguishes from other clients.

The file of these tests has gates. A gate is a long row of commands that spin until a key exists. The snapshot
that DEBUG RELOAD merges has the key of the first gate, and a client sets the key of the second gate. So a
test can act between the two gates, even on a slow machine.
"""
import os

import pytest
import redis
from harness import Server, delivered, tasks, wait_until
from situations import aof_path, wait_delivered

PAST = 1000
ROUND = 1024  # Commands between two looks of the server at its clients.
ROUNDS = 600  # Each takes some 50 ms, which is much longer than any test needs.
SPIN = "if redis.call('EXISTS', KEYS[1]) == 0 then for i = 1, 1e7 do end end"


def command(*words):
    """Returns the bytes of a command in the append-only file."""
    words = [str(word).encode() for word in words]
    return b"".join([b"*%d\r\n" % len(words), *(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)])


def gate(key):
    """Returns the commands of a gate, which stays shut until the key exists."""
    return (command("PING") * (ROUND - 1) + command("EVAL", SPIN, 1, key)) * ROUNDS


def filed(name, due=PAST):
    return command("TW.SEND", "s", "out", name, "AT", due, "PAYLOAD", "n", "v")


def delivery(name):
    """Returns the commands of a delivery in the file."""
    return command("MULTI") + command("XADD", "out", "1-1", "tw.id", name, "tw.due", PAST) \
        + command("TW.FIRED", "s", "ONCE", name) + command("EXEC")


def between_the_gates(server, before, after, end=b""):
    """Makes an empty server replay `before`, two gates and `after`. Returns a client, after DEBUG RELOAD
    between the gates."""
    r = server.client()
    r.set("reloaded", 1)
    r.execute_command("DEBUG", "RELOAD")  # Leaves the snapshot.
    server.kill()
    with open(aof_path(server), "wb") as file:
        file.write(command("SELECT", 0) + before + gate("reloaded") + gate("open") + after + end)
    server.start(wait=False)
    r = server.client()
    with pytest.raises(redis.exceptions.BusyLoadingError):
        r.ping()
    r.execute_command("DEBUG", "RELOAD", "NOSAVE", "NOFLUSH", "MERGE")
    assert server.info("persistence")["loading"] == 0, "DEBUG RELOAD leaves the flag alone here"
    assert r.exists("reloaded")
    return r


def open_gate(server, r):
    """Opens the second gate, so that the replay goes on to its end."""
    assert not r.exists("replayed"), "the replay did not wait"
    r.set("open", 1)
    wait_until(lambda: r.exists("replayed"), message=lambda: f"the replay did not end\n{server.tail()}")


@pytest.fixture(scope="module", autouse=True)
def server_that_survives(tmp_path_factory):
    """Skips the tests if the server does not survive. Redis 8.0.2 exits at the end of such a replay, with an
    assertion of its own (aof.c, server.aof_fd == -1), also without the module."""
    server = Server(str(tmp_path_factory.mktemp("server")), module=False, appendonly="yes").start()
    r = between_the_gates(server, b"", b"")
    r.set("open", 1)
    wait_until(lambda: not server.alive() or "Ready to accept connections" in server.log().rpartition(
        "DEBUG RELOAD")[2])
    if server.alive():
        server.kill()
    else:
        server.reap()
        pytest.skip("this server does not survive a DEBUG RELOAD while it replays a file")


def start_again(server):
    """Crashes the server, and starts it with the same file, but without the gates."""
    server.kill()
    with open(aof_path(server), "r+b") as file:
        whole = file.read()
        file.seek(0)
        file.truncate()
        file.write(whole.replace(gate("reloaded"), b"").replace(gate("open"), b""))
    server.start()
    return server.client()


def replayed(after):
    return after + command("SET", "replayed", 1)


def test_a_file_is_replayed_to_its_end_when_a_reload_comes_in_between(fleet):
    """Tasks that the file delivers are taken out of the queue. Pending tasks are delivered once, after the
    replay."""
    server = fleet.server(appendonly="yes")
    r = between_the_gates(server, filed("a") + filed("b"), replayed(delivery("a") + filed("c")))
    assert delivered(r, "out") == []
    open_gate(server, r)
    wait_delivered(r, "out", 3)
    wait_until(lambda: server.tw()["tasks"] == 0)
    assert delivered(r, "out") == ["a", "b", "c"]
    assert delivered(start_again(server), "out") == ["a", "b", "c"]


@pytest.mark.long(only=True)
@pytest.mark.skipif(bool(os.environ.get("TICKWHEEL_LIGHT")), reason="sizes are real")
def test_a_big_task_of_the_file_is_taken_when_a_reload_comes_in_between(fleet):
    """The task was acknowledged once, so it is accepted from the file (test_size.py)."""
    server = fleet.server(appendonly="yes")
    big = command("TW.SEND", "s", "out", "big", "IN", 10**9, "PAYLOAD", "n", b"x" * 10**9)
    r = between_the_gates(server, b"", replayed(big))
    open_gate(server, r)
    assert list(tasks(r, "s")) == ["big"]


def refusal(r, *words):
    with pytest.raises(redis.exceptions.RedisError) as refused:
        r.execute_command(*words)
    return refused.value


ADD = ("TW.SEND", "s", "out", "x", "IN", 1, "PAYLOAD", "n", "v")


@pytest.mark.parametrize("words", [
    ADD, ("TW.MOVE", "s", "a", "IN", 1), ("TW.CANCEL", "s", "a"), ("TW.PROMOTE", "s", "ALL"),
    ("EVAL", "return redis.call(unpack(ARGV))", 0, *ADD),
    ("EVAL", "return redis.call('TW.MOVE', 's', 'a', 'IN', 1)", 0),
    ("EVAL", "return redis.call('TW.CANCEL', 's', 'a')", 0),
    ("EVAL", "return redis.call('TW.PROMOTE', 's', 'ALL')", 0)
],
                         ids=lambda words: " ".join(map(str, words[:2])))
def test_clients_change_nothing_until_the_replay_has_ended(fleet, words):
    """The server would not log a task that a client adds now."""
    server = fleet.server(appendonly="yes")
    r = between_the_gates(server, filed("a"), replayed(b""))
    assert "the data set is being loaded: expected a call after loading has ended" in str(refusal(r, *words))
    assert isinstance(refusal(r, *ADD), redis.exceptions.BusyLoadingError)
    assert list(tasks(r, "s")) == ["a"]
    open_gate(server, r)
    assert wait_delivered(r, "out", 1) == ["a"]
    r.execute_command(*ADD)
    wait_delivered(r, "out", 2)


@pytest.mark.parametrize("words", [("TW.FIRED", "s", "ONCE", "a"), ("TW.LOAD", "s", "x")],
                         ids=lambda words: words[0])
def test_clients_cannot_speak_for_the_file_while_it_is_replayed(fleet, words):
    server = fleet.server(appendonly="yes")
    r = between_the_gates(server, filed("a"), replayed(b""))
    assert "accepted only from the append-only file and the replication link" in str(refusal(r, *words))
    open_gate(server, r)
    assert wait_delivered(r, "out", 1) == ["a"]


def test_a_file_that_was_cut_off_is_mended_when_a_reload_comes_in_between(fleet):
    half = command("MULTI") + command("XADD", "out", "1-1", "tw.id", "a") + b"*4\r\n$8\r\nTW.F"
    server = fleet.server(appendonly="yes")
    r = between_the_gates(server, filed("a"), replayed(b""), half)
    open_gate(server, r)
    wait_delivered(r, "out", 1)
    wait_until(lambda: "Truncating" in server.log())
    r.set("after", 1)
    r = start_again(server)
    assert r.exists("after")
    assert delivered(r, "out") == ["a"]
