# SPDX-License-Identifier: MIT
"""Tasks that are too big. A Stream takes entries of up to 2^30 bytes. TW.SEND refuses a task that no delivery
could carry. A task may be too big nevertheless, for example from a file that somebody has changed. It must not
block other tasks.

Sizes are real, so each test takes seconds and up to five gigabytes of memory."""
import os

import pytest
import redis

from harness import delivered, wait_until
from situations import dead_of, wait_dead

pytestmark = pytest.mark.skipif(bool(os.environ.get("TICKWHEEL_LIGHT")), reason="sizes are real")

MOST = 999000000
ENTRY = 2 ** 30
PART = 370 * 1000 * 1000
MINUTES = 300


@pytest.fixture(autouse=True)
def huge_pages(fleet):
    """The kernel hands out gigabytes in huge pages, if the environment asks for them (CMakeLists.txt)."""
    fleet.options = {"disable-thp": "no"}


@pytest.fixture
def big(fleet):
    """A server that takes commands of more than a gigabyte."""
    return fleet.server(client_query_buffer_limit="4gb", patience=MINUTES)


@pytest.mark.long(only=True)
def test_what_no_delivery_could_carry_is_refused(big):
    r = big.client()
    value = b"x" * PART
    with pytest.raises(redis.exceptions.ResponseError) as refused:
        r.execute_command("TW.SEND", "s", "q", "a", "IN", 0, "PAYLOAD", "f1", value, "f2", value, "f3", value)
    assert str(
        refused.value) == f"id, target and payload have {3 * PART + 8} bytes: expected at most {MOST}"
    assert r.dbsize() == 0 and big.tw()["put"] == 0


@pytest.mark.long(only=True)
@pytest.mark.parametrize("words, other", [
    pytest.param(("TW.SEND", "s", "q", "a", "IN", 0, "LIST"), 2, id="list", marks=pytest.mark.long(only=True)),
    pytest.param(("TW.PUT", "s", "a", "IN", 0), 1, id="workers")])
def test_what_is_too_big_for_a_list_or_for_workers_is_refused_likewise(fleet, words, other):
    server = fleet.server(client_query_buffer_limit="4gb", proto_max_bulk_len="2gb", patience=MINUTES)
    with pytest.raises(redis.exceptions.ResponseError) as refused:
        server.client().execute_command(*words, "PAYLOAD", b"x" * MOST)
    assert f"payload have {MOST + other} bytes: expected" in str(refused.value)
    assert server.client().dbsize() == 0


@pytest.mark.long(only=True)
def test_the_biggest_that_is_taken_fits_into_each_form(big):
    """The biggest task is delivered. If its target refuses it, the dead task has the whole payload."""
    r = big.client()
    r.config_set("tickwheel.target-tries", 1)
    half = b"x" * (MOST // 2 - 3)
    r.set("w", "not a stream")
    for target in ("q", "w"):
        words = ("TW.SEND", "s", target, "a", "IN", 0, "PAYLOAD", "f1", half, "f2")
        with pytest.raises(redis.exceptions.ResponseError):
            r.execute_command(*words, half + b"x")
        assert r.execute_command(*words, half) == "a"
        wait_until(lambda: r.exists("s") == 0 or dead_of(r, "s"), patience=MINUTES)
    assert (r.xlen("q"), len(dead_of(r, "s"))) == (1, 1)
    assert r.execute_command("MEMORY", "USAGE", "s") > MOST - 10
    assert big.tw()["dropped"] == 0


# Commands that no client could send

def write(file, *words):
    """Writes a command to the append-only file. A number among the words is a string of that many zero bytes, a
    hole in the file: the disk does not have to hold gigabytes."""
    file.write(b"*%d\r\n" % len(words))
    for word in words:
        size = word if isinstance(word, int) else len(word)
        file.write(b"$%d\r\n" % size)
        if isinstance(word, int):
            file.seek(size, os.SEEK_CUR)
        else:
            file.write(word.encode())
        file.write(b"\r\n")


def loaded(fleet, *commands):
    """Returns a server that has loaded a file with these commands. It never writes the file anew."""
    server = fleet.server(appendonly="yes", appendfsync="no", auto_aof_rewrite_percentage=0,
                          module_args=("target-tries", 1), patience=MINUTES)
    server.stop()
    folder = os.path.join(server.folder, "appendonlydir")
    [name] = [name for name in os.listdir(folder) if name.endswith(".incr.aof")]
    with open(os.path.join(folder, name), "wb") as file:
        write(file, "SELECT", "0")
        for command in commands:
            write(file, *command)
    server.start(wait=False)
    server.wait_loaded()
    return server


def add(name, at, *words, target="q"):
    return ("TW.SEND", "s", target, name, "AT", str(at), *words)


def small(due, target="q"):
    return add("small", due, "PAYLOAD", "f", "v", target=target)


def test_a_long_id_from_a_file_is_taken(fleet):
    """The task was acknowledged once."""
    name = "x" * 2000
    server = loaded(fleet, ("TW.PUT", "s", name, "AT", "1000", "PAYLOAD", "v"))
    assert server.client().execute_command("TW.TAKE", 1, "s", "LEASE", 5000)[0][1] == name


@pytest.mark.long(only=True)
@pytest.mark.parametrize("words, more", [
    pytest.param((), 0, id="once"),
    pytest.param(("EVERY", "1"), len("tw.missed-periods1795312608000"), id="repeating")])
def test_a_big_task_from_a_file_dies_with_its_size_in_the_error(fleet, words, more):
    """It dies as a whole although it repeats, as it can never be delivered. The task after it is delivered."""
    big_one = add("big", 1000, *words, "PAYLOAD", "f1", PART, "f2", PART, "f3", PART)
    server = loaded(fleet, big_one, small(1001))
    [dead] = wait_dead(server.client(), "s", patience=MINUTES)
    error = f"ERR the entry would be {3 * PART + 35 + more} bytes: a Stream takes at most {ENTRY}"
    assert dead[:2] + dead[3:5] == ("big", 1000, 1, error)
    wait_until(lambda: delivered(server.client(), "q") == ["small"], patience=MINUTES)
    found = server.tw()
    assert [found[name] for name in ("dead", "died", "dropped", "deferred_refused", "delivered", "tasks")
            ] == [1, 1, 0, 0, 1, 0]
    server.stop()
    server.start(wait=False)
    server.wait_loaded()
    assert dead_of(server.client(), "s") == [dead]
    assert server.client().execute_command("TW.PURGE", "s", "ALL") == 1
    assert server.client().exists("s") == 0


@pytest.mark.long(only=True)
def test_a_big_one_for_a_list_is_delivered(fleet):
    """No Stream takes such a task, but a List does. If the List refuses it, its period dies."""
    server = loaded(fleet, ("SET", "q", "not a list"),
                    add("big", 1000, "EVERY", "3155760000000", "LIST", "PAYLOAD", 3 * PART))
    r = server.client()
    [dead] = wait_dead(r, "s", patience=MINUTES)
    assert dead.error.startswith("WRONGTYPE") and dead.id == "big@1000"
    assert r.execute_command("TW.PURGE", "s", "IDS", 1, "big@1000") == 1
    r.delete("q")
    assert r.execute_command("TW.PROMOTE", "s", "ALL") == 1
    wait_until(lambda: r.llen("q") == 1, patience=MINUTES)
