# SPDX-License-Identifier: MIT
"""A server without an append-only file and without replicas logs nothing (server/log.c). Whoever begins to
read gets every change from then on."""
import itertools
import pathlib
import shutil
import threading

import pytest

from harness import PATIENCE, Raw, Tap, now_ms, tasks, wait_replica_in_sync, wait_until
from situations import fired_form, outcomes

HOUR = 3600 * 1000
FAR = 4000000000000
PAYLOAD = ("PAYLOAD", "f", "v")


def send(name, *words, queue="s"):
    return ("TW.SEND", queue, "q", name, *(words or ("IN", HOUR)), *PAYLOAD)


def logs_outcome(server):
    """A replica that comes back reads the outcome of the next command in the backlog."""
    state = server.info("replication")
    assert state["repl_backlog_active"] == 1
    assert server.once(*send("a")) == "a"
    raw = Raw(server)
    assert raw("PSYNC", state["master_replid"], state["master_repl_offset"] + 1).startswith("CONTINUE")
    while (words := raw.read())[0] in ("SELECT", "PING"):
        pass
    raw.close()
    return fired_form(words) == "PUT"


def asks_once(server):
    """The server has told the module that nobody reads, and the module remembers it."""
    assert server.once(*send("first")) == "first"


def every_verb(r):
    """Calls each verb so that it changes something. Returns how many changes the server counts for each."""
    counted = {}

    def call(name, *words):
        before = r.info("persistence")["rdb_changes_since_last_save"]
        reply = r.execute_command(*words)
        counted[name] = r.info("persistence")["rdb_changes_since_last_save"] - before
        return reply

    r.execute_command("CONFIG", "SET", "tickwheel.deliver", "no")
    call("send", *send("a"))
    call("send over", *send("a", "AT", FAR))
    call("keepdue", *send("a", "IN", 1, "KEEPDUE"))
    call("nothing", *send("a", "IN", 1, "NX"))
    call("move", "TW.MOVE", "s", "a", "AT", FAR + 1)
    call("no move", "TW.MOVE", "s", "a", "AT", FAR, "GT")
    call("promote", "TW.PROMOTE", "s", "IDS", 1, "a")
    call("cancel", "TW.CANCEL", "s", "a", "missing")
    r.execute_command("CONFIG", "SET", "tickwheel.deliver", "yes")
    call("put", "TW.PUT", "w", "b", "AT", 0, "TRIES", 1, *PAYLOAD)
    token = call("take", "TW.TAKE", 1, "w", "LEASE", HOUR)[0][2]
    call("touch", "TW.TOUCH", "w", "b", token, "LEASE", HOUR)
    call("nack", "TW.NACK", "w", "b", token, "DEAD", "ERROR", "no")
    call("replay", "TW.REPLAY", "w", "ALL")
    token = call("take again", "TW.TAKE", 1, "w", "LEASE", HOUR)[0][2]
    call("ack", "TW.ACK", "w", "b", token)
    r.execute_command("TW.PUT", "w", "c", "IN", HOUR, *PAYLOAD)
    call("script", "EVAL", "return redis.call('TW.MOVE', 'w', 'c', 'IN', 1)", 0)
    return counted


def test_each_change_counts_for_the_next_snapshot_though_nobody_reads_it(fleet):
    read, unread = fleet.server(appendonly="yes"), fleet.server()
    counted = every_verb(unread.client())
    assert counted == every_verb(read.client())
    assert (counted["move"], counted["nothing"], counted["no move"]) == (1, 0, 0)


def test_the_server_saves_a_snapshot_after_changes_that_nobody_reads(fleet):
    server = fleet.server(save="1 3")
    r = server.client()
    for i in range(3):
        r.execute_command(*send(f"t{i}"))
    wait_until(lambda: r.info("persistence")["rdb_changes_since_last_save"] == 0)


def test_a_replica_gets_outcomes_from_its_first_moment_on(server):
    asks_once(server)
    tap = Tap(server)
    due = now_ms() + HOUR
    raw = Raw(server)
    raw.send_all([send("a", "AT", due), ("TW.MOVE", "s", "a", "AT", due + 1), ("TW.CANCEL", "s", "a"),
                  ("TW.PUT", "s", "b", "AT", due, *PAYLOAD)])
    assert [raw.read() for _ in range(4)] == ["a", 1, [1], "b"]
    forms = ("PUT", "CHANGES", "CHANGES", "PUT")
    assert outcomes(tap.commands()) == [("s", form) for form in forms]


@pytest.mark.parametrize("diskless", ["no", "yes"])
def test_nothing_is_lost_while_a_replica_attaches(fleet, diskless):
    """Many clients write all the time. The replica asks for its snapshot while another is written, waits for
    it, loads it, and follows."""
    primary = fleet.server(repl_diskless_sync=diskless, repl_diskless_sync_delay=1)
    asks_once(primary)
    over = threading.Event()

    def write(number):
        raw = Raw(primary)
        for i in itertools.count():
            if over.is_set():
                return
            queue, ids = f"s{number}", [f"{number}-{i}-{k}" for k in range(8)]
            raw.send_all([send(name, queue=queue) for name in ids] +
                         [("TW.MOVE", queue, ids[0], "AT", FAR + i), ("TW.CANCEL", queue, ids[1])])
            assert [raw.read() for _ in range(10)] == [*ids, 1, [1]]

    writers = [threading.Thread(target=write, args=(n, )) for n in range(3)]
    for writer in writers:
        writer.start()
    try:
        primary.once("BGSAVE")
        replica = fleet.server(replicaof=primary)
        wait_replica_in_sync(primary, replica)
    finally:
        over.set()
        for writer in writers:
            writer.join(PATIENCE)
    wait_replica_in_sync(primary, replica)
    for n in range(3):
        found = tasks(primary.client(), f"s{n}")
        assert found and found == tasks(replica.client(), f"s{n}")


def test_a_backlog_without_a_replica_is_read(server):
    asks_once(server)
    Tap(server).close()
    wait_until(lambda: server.info("replication")["connected_slaves"] == 0)
    saves = server.info("persistence")["rdb_saves"]
    server.once("BGSAVE")  # After a fork the module asks anew.
    wait_until(lambda: server.info("persistence")["rdb_saves"] > saves)
    assert logs_outcome(server)


@pytest.mark.parametrize("save", [("SAVE", ), ("DEBUG", "RELOAD")], ids=["saved", "reloaded"])
def test_a_snapshot_without_a_fork_begins_the_log(fleet, save):
    """A replica waits for its first snapshot, so there is a backlog, and no fork yet. Another one begins with a
    copy of the primary's file, and goes on with the backlog."""
    primary = fleet.server(save="3600 100000", repl_diskless_sync="yes", repl_diskless_sync_delay=3600)
    asks_once(primary)
    waiting = Raw(primary)
    assert waiting("REPLCONF", "capa", "eof", "capa", "psync2") == "OK"
    waiting.send("PSYNC", "?", "-1")
    wait_until(lambda: primary.info("replication")["repl_backlog_active"] == 1)
    assert primary.once(*send("typed")) == "typed"
    assert primary.once(*save) in (True, b"OK", "OK")
    replica = fleet.server(start=False, replicaof=primary)
    shutil.copy(pathlib.Path(primary.folder, "dump.rdb"), replica.folder)
    primary.once(*send("*"))
    primary.once("TW.MOVE", "s", "first", "IN", 2 * HOUR)
    replica.start()
    wait_replica_in_sync(primary, replica)
    state = primary.info("stats")
    assert (state["sync_partial_ok"], state["total_forks"]) == (1, 0)
    found = tasks(primary.client(), "s")
    assert len(found) == 3 and found == tasks(replica.client(), "s")
    waiting.close()


def test_a_replica_that_is_promoted_logs(fleet):
    primary, other = fleet.server(), fleet.server()
    asks_once(other)
    other.once("REPLICAOF", "127.0.0.1", primary.port)
    wait_replica_in_sync(primary, other)
    other.once("REPLICAOF", "NO", "ONE")
    assert logs_outcome(other)
    partial = other.info("stats")["sync_partial_ok"]
    primary.once("REPLICAOF", "127.0.0.1", other.port)
    wait_replica_in_sync(other, primary)
    assert other.info("stats")["sync_partial_ok"] == partial + 1
    assert list(tasks(primary.client(), "s")) == ["a"]


@pytest.mark.parametrize("transaction", [False, True])
def test_an_append_only_file_that_begins_has_every_change(fleet, transaction):
    server = fleet.server()
    asks_once(server)
    raw = Raw(server)
    commands = [send("before"), ("CONFIG", "SET", "appendonly", "yes"), send("after"),
                ("TW.MOVE", "s", "before", "AT", FAR)]
    if transaction:
        commands = [("MULTI", ), *commands, ("EXEC", )]
    raw.send_all(commands)
    replies = [raw.read() for _ in commands]
    assert (replies[-1] if transaction else replies) == ["before", "OK", "after", 1]

    def has_begun():
        state = server.info("persistence")
        return state["aof_rewrites"] > 0 and not state["aof_rewrite_in_progress"]

    wait_until(has_begun)
    raw(*send("last"))
    logged = b"".join(path.read_bytes() for path in pathlib.Path(server.folder, "appendonlydir").iterdir())
    assert b"TW.FIRED" in logged and b"TW.SEND" not in logged
    server.options["appendonly"] = "yes"
    server.kill()
    server.restart()
    found = tasks(server.client(), "s")
    assert sorted(found) == ["after", "before", "first", "last"] and found["before"] == FAR


def test_a_server_that_has_loaded_a_backlog_logs(fleet):
    """The snapshot of a server with a backlog lets a replica come back after a restart."""
    server = fleet.server(save="3600 100000")
    Tap(server).close()
    assert server.once(*send("first")) == "first"
    server.stop()
    server.restart()
    assert logs_outcome(server)
