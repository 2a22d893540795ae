# SPDX-License-Identifier: MIT
"""An append-only file that was cut off within a transaction, and the commands that are acknowledged after the
server has loaded it.

Servers cut such a file back to its last whole command, and so leave a MULTI without EXEC in the file. The
commands that they write from then on are lost or executed wrongly at the next start, unless the module mends
the file (mend.c). So all tests here start a server twice. Future servers may mend the file themselves, so
only the tests of the module's messages look at the log.
"""
import glob
import os
import random
import resource
import shutil

import pytest
from harness import now_ms, tasks, wait_until
from situations import (add, aof_commands, aof_path, fill, ignoring_signal_xfsz, last_transaction, rewrite,
                        wait_delivered)

HOUR = 3600000
MENDED = "ended within a transaction"
COMPLAINED = "mended"  # In all other messages about such a file.


def cuts(path, has, count, seed):
    """Returns the places at which to cut the file off: the first and the last byte of the transaction, ends
    of its commands, and random bytes in it."""
    begin, behind, starts = last_transaction(path, has)
    edges = sorted({at + step for at in starts[1:] for step in (-1, 0, 1)})
    rng = random.Random(seed)
    return sorted({begin + 1, behind - 1, *rng.sample(edges, min(count, len(edges))),
                   *rng.sample(range(begin, behind), count)})


def set_one_and_two(client, one=1):
    """Sets two keys in a transaction."""
    with client.pipeline(transaction=True) as both:
        both.set("one", one).set("two", 2).execute()


def with_a_transaction(server):
    """Makes an append-only file that ends with a transaction of a client. Returns the path of that file, and
    the path of a copy."""
    r = server.client()
    r.set("before", 1)
    add(r, "s", "out", "kept", now_ms() + HOUR)
    with r.pipeline(transaction=True) as both:
        both.set("order:42", "unpaid")
        both.execute_command("TW.SEND", "s", "out", "order:42", "IN", HOUR, "PAYLOAD", "f", "v")
        both.set("paid", 0)
        both.execute()
    server.kill()
    path = aof_path(server)
    kept = shutil.copy(path, os.path.join(server.folder, "kept"))
    return path, kept


def start_cut(server, path, kept, at):
    """Starts the server with the file cut off at byte `at`. Returns a client, and the new part of the log."""
    shutil.copy(kept, path)
    os.truncate(path, at)
    return start_again(server)


def start_again(server):
    before = len(server.log())
    server.start()
    return server.client(), server.log()[before:]


def leave_to(log, at):
    """Skips a test of the module's messages and kept files if the server itself has cut off the whole
    transaction."""
    if f"at offset {at} " in log:
        pytest.skip("this server mends such a file by itself")


def state(client):
    return {"keys": sorted(client.keys()), "tasks": tasks(client, "s")}


def test_what_is_acknowledged_after_a_cut_transaction_is_there_at_the_next_start(fleet):
    server = fleet.server(appendonly="yes")
    path, kept = with_a_transaction(server)
    for at in cuts(path, b"TW.FIRED", 8, seed=1):
        r, log = start_cut(server, path, kept, at)
        assert COMPLAINED not in log
        assert state(r)["keys"] == ["before", "s"] and list(tasks(r, "s")) == ["kept"], at
        r.set("after", 1)
        add(r, "s", "out", "after", now_ms() + HOUR)
        expected = state(r)
        for _ in range(2):
            server.kill()
            r, log = start_again(server)
            assert state(r) == expected, f"cut off at {at}"
            assert MENDED not in log and "Truncating" not in log, \
                f"cut off at {at}: the file was not whole after it"
        server.kill()
    assert "Truncating" in server.log()


def test_a_delivery_that_was_cut_off_is_made_once(fleet, clock):
    """The delivery is made again after the first start. The second start must not also find the delivery that
    was cut off."""
    server = fleet.server(appendonly="yes")
    r, due = server.client(), clock.now() + 1500
    names = fill(r, "s", "out", 7, due)
    clock.reach(due)
    wait_delivered(r, "out", 7)
    server.kill()
    path = aof_path(server)
    kept = shutil.copy(path, os.path.join(fleet.folder, "kept"))
    for at in cuts(path, b"TW.FIRED", 6, seed=2):
        r, _ = start_cut(server, path, kept, at)
        wait_delivered(r, "out", 7)
        wait_until(lambda: server.tw()["tasks"] == 0)
        add(r, "s", "out", "after", now_ms() + HOUR)
        entries = r.xrange("out")
        assert [fields["tw.id"] for _, fields in entries] == names
        server.kill()
        r, _ = start_again(server)
        assert (r.xrange("out"), list(tasks(r, "s"))) == (entries, ["after"]), f"cut off at {at}"
        server.kill()


def test_a_script_that_was_cut_off(fleet):
    server = fleet.server(appendonly="yes")
    r = server.client()
    r.eval("redis.call('SET', KEYS[1], 1); redis.call('SET', KEYS[2], 2)", 2, "one", "two")
    server.kill()
    path = aof_path(server)
    kept = shutil.copy(path, os.path.join(fleet.folder, "kept"))
    for at in cuts(path, b"SET", 4, seed=3):
        r, _ = start_cut(server, path, kept, at)
        r.set("three", 3)
        server.kill()
        r, _ = start_again(server)
        assert r.keys() == ["three"], f"cut off at {at}"
        server.kill()


def command(*words):
    """Returns the bytes of a command in the append-only file."""
    return b"".join(
        [b"*%d\r\n" % len(words), *(b"$%d\r\n%s\r\n" % (len(word), word.encode()) for word in words)])


def kept_of(path):
    """Returns the bytes of each file with a part that was cut off and kept, in the order in which these files
    were written."""
    found = []
    for name in sorted(glob.glob(glob.escape(path) + ".cut-*")):
        with open(name, "rb") as file:
            found.append(file.read())
    return found


@pytest.mark.parametrize("options", [
    {"appenddirname": '"a folder"', "appendfilename": '"it\'s mine.aof"'},
    {"appenddirname": "fünf", "appendfilename": "fünf.aof"},
    {"rename-command": 'CONFIG ""'},
    {"aof-timestamp-enabled": "yes"},
], ids=["names-with-spaces", "names-beyond-ASCII", "no-CONFIG", "time-stamps"])
def test_the_file_is_found_and_read_whatever_the_settings(fleet, options):
    server = fleet.server(appendonly="yes", **options)
    set_one_and_two(server.client())
    server.kill()
    path, = glob.glob(os.path.join(server.folder, "*", "*.1.incr.aof"))
    os.truncate(path, os.path.getsize(path) - 3)
    r, log = start_again(server)
    assert r.keys() == [] and "Truncating" in log
    r.set("after", 1)
    server.kill()
    r, _ = start_again(server)
    assert r.keys() == ["after"]


def test_a_file_that_cannot_be_found_is_warned_of(fleet):
    """Without CONFIG, and if the name is not the default, the module cannot learn the name."""
    server = fleet.server(appendonly="yes", rename_command='CONFIG ""', appendfilename="other.aof")
    server.kill()
    _, log = start_again(server)
    assert "no append-only file was found under appendonlydir/appendonly.aof.manifest" in log


def test_a_file_that_cannot_be_mended_is_warned_of_and_left(fleet):
    """The part to be cut off cannot be kept, as the name of its file would be too long."""
    server = fleet.server(appendonly="yes", appendfilename="x" * 235)
    set_one_and_two(server.client())
    server.kill()
    path, = glob.glob(os.path.join(server.folder, "*", "*.1.incr.aof"))
    begin = last_transaction(path, b"SET")[0]
    os.truncate(path, os.path.getsize(path) - 3)
    _, log = start_again(server)
    leave_to(log, begin)
    assert "cannot be mended (File name too long)" in log and "BGREWRITEAOF" in log
    assert [words[0] for _, words in aof_commands(path)
            if words[0] in (b"MULTI", b"SET")] == [b"MULTI", b"SET", b"SET"]


@pytest.mark.parametrize("complete", [True, False], ids=["completed", "cut-off"])
def test_during_and_after_a_rewrite_it_is_the_last_file_that_is_mended(fleet, complete):
    server = fleet.server(appendonly="yes")
    r = server.client()
    add(r, "s", "out", "kept", now_ms() + HOUR)
    first = aof_path(server)
    if complete:
        rewrite(server)
        wait_until(lambda: not os.path.exists(first))
    else:
        r.config_set("rdb-key-save-delay", 60000000)
        r.bgrewriteaof()
        wait_until(lambda: aof_path(server) != first
                   and server.info("persistence")["aof_rewrite_in_progress"])
    set_one_and_two(r)
    server.kill()
    path = aof_path(server)
    assert path != first
    os.truncate(path, os.path.getsize(path) - 1)
    r, _ = start_again(server)
    r.set("after", 1)
    server.kill()
    r, _ = start_again(server)
    assert (sorted(r.keys()), list(tasks(r, "s"))) == (["after", "s"], ["kept"])


def test_the_one_file_of_an_older_server(fleet):
    """The file is as Redis 6 wrote it. It becomes a base file, and the server writes to another file. Without
    the module the server would not start."""
    server = fleet.server(appendonly="yes")
    server.kill()
    shutil.rmtree(os.path.join(server.folder, "appendonlydir"))
    with open(os.path.join(server.folder, "appendonly.aof"), "wb") as file:
        file.write(command("SELECT", "0") + command("SET", "before", "1"))
        file.write(command("MULTI") + command("SET", "one", "1") + command("SET", "two", "2")[:-1])
    r, _ = start_again(server)
    assert r.keys() == ["before"]
    r.set("after", 1)
    server.kill()
    r, _ = start_again(server)
    assert sorted(r.keys()) == ["after", "before"]


def test_the_one_file_of_an_older_server_with_an_rdb_preamble_is_warned_of(fleet):
    """The module does not read this file, so it knows nothing about the end of the file. The server refuses
    the next start, unless the file is rewritten."""
    server = fleet.server(appendonly="yes")
    r = server.client()
    r.set("before", 1)
    rewrite(server)
    server.kill()
    shutil.copy(aof_path(server, "base"), os.path.join(server.folder, "appendonly.aof"))
    shutil.rmtree(os.path.join(server.folder, "appendonlydir"))
    with open(os.path.join(server.folder, "appendonly.aof"), "ab") as file:
        file.write(
            command("SELECT", "0") + command("MULTI") + command("SET", "one", "1") +
            command("SET", "two", "2")[:-1])
    r, log = start_again(server)
    assert "cannot be mended (it contains other data than commands)" in log
    r.set("after", 1)
    rewrite(server)
    server.kill()
    r, _ = start_again(server)
    assert sorted(r.keys()) == ["after", "before"]


def test_what_cannot_be_kept_whole_is_not_cut_off(fleet, monkeypatch):
    """A limit to the size of files stands for a full disk."""
    server = fleet.server(appendonly="yes")
    set_one_and_two(server.client(), "1" * 200000)
    server.kill()
    path = aof_path(server)
    begin = last_transaction(path, b"SET")[0]
    os.truncate(path, os.path.getsize(path) - 3)
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    with monkeypatch.context() as patch:
        ignoring_signal_xfsz(patch)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100000, usual[1]))
        try:
            server.start()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    log = server.log()
    leave_to(log, begin)
    assert "cannot be mended (File too large)" in log
    assert not kept_of(path) and os.path.getsize(path) > 200000


def test_a_file_that_is_whole_is_left_alone(fleet):
    """The module also leaves a file alone that is cut off outside of a transaction, or between two commands
    of a transaction, as servers handle that."""
    server = fleet.server(appendonly="yes")
    path, kept = with_a_transaction(server)
    begin, behind, starts = last_transaction(path, b"TW.FIRED")
    for at, left in ((behind, behind), (begin, begin), (starts[2], begin), (begin - 1, None)):
        _, log = start_cut(server, path, kept, at)
        assert COMPLAINED not in log and MENDED not in log, at
        server.kill()
        assert left is None or os.path.getsize(path) == left
    shutil.copy(kept, path)
    with open(path, "ab") as file:
        file.write(b"#TS:17")  # A comment for the server, and no whole line for a reader.
    _, log = start_again(server)
    assert COMPLAINED not in log and MENDED not in log
    assert not kept_of(path)


def test_nothing_is_done_when_something_else_has_been_loaded(fleet):
    """The file of the start is gone by then, and there is another file."""
    server = fleet.server(appendonly="yes", enable_debug_command="yes")
    with_a_transaction(server)
    r, _ = start_again(server)
    first = aof_path(server)
    rewrite(server)
    wait_until(lambda: not os.path.exists(first))
    before = len(server.log())
    r.execute_command("DEBUG", "RELOAD")
    log = server.log()[before:]
    assert COMPLAINED not in log and MENDED not in log
    assert state(r)["keys"] == ["before", "order:42", "paid", "s"]
    snapshots = fleet.server(save="3600 1")
    snapshots.client().set("before", 1)
    snapshots.restart()
    assert snapshots.client().keys() == ["before"]
    assert COMPLAINED not in snapshots.log() and MENDED not in snapshots.log()


@pytest.mark.parametrize("another", [False, True], ids=["commands", "commands-and-a-transaction"])
def test_what_servers_without_the_module_wrote_into_an_open_transaction_is_kept(fleet, another):
    """These servers acknowledged the commands, but did not load them again either. After the part is cut off,
    no server loads it by itself."""
    server = fleet.server(appendonly="yes")
    path, kept = with_a_transaction(server)
    begin, _, starts = last_transaction(path, b"TW.FIRED")
    acknowledged = command("SET", "acknowledged", "1" * 10000)  # More than one copied block.
    with open(kept, "rb") as file:
        text = file.read()
    opened = text[begin:starts[2]]
    rest = opened + acknowledged + (opened + acknowledged if another else b"")
    with open(kept, "wb") as file:
        file.write(text[:begin] + rest + acknowledged[:-1])
    os.chmod(kept, 0o600)
    r, log = start_cut(server, path, kept, os.path.getsize(kept))
    leave_to(log, begin)
    assert MENDED in log
    cut, = kept_of(path)
    assert cut in (rest, opened + acknowledged), "what the server has left is not all there"
    assert [os.stat(name).st_mode & 0o777 for name in glob.glob(path + "*")] == [0o600, 0o600]
    assert os.path.getsize(path) == begin
    r.set("after", 1)
    server.kill()
    r, _ = start_again(server)
    assert state(r)["keys"] == ["after", "before", "s"]
    assert kept_of(path) == [cut]
