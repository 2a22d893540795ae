# SPDX-License-Identifier: MIT
"""A test for each situation in which a module that writes by itself kills its server, loses tasks or doubles
them.

The table says where each situation is tested. L is test_lifecycle.py, M is test_memory.py, R is
test_persistence.py, P is this file. `name...` stands for all tests whose names begin with it, after test_.

  A key's life
    deleted, written over, given an expiry that has passed   L tasks_go_with_their_queue, a_name_is_as_new...
    expires                                                  L a_queue_that_expires..., a_queue_found...
    is evicted                                               L eviction_is_counted...
    RENAME, RENAMENX                                         L rename..., a_renamed..., a_queue_is_renamed...
    MOVE                                                     L move_...
    COPY                                                     L copies_deliver_too, a_copy...
    SWAPDB                                                   L swapdb_...
    FLUSHDB, FLUSHALL, ASYNC                                 L tasks_go_with..., flushdb..., flushall_async...
    DUMP, RESTORE, REPLACE, an expiry that has passed        L restore...
    DEBUG RELOAD, DEBUG LOADAOF                              L reload_in_place
    freed on another thread                                  L flushall_async..., unlink_of_200000...
    OBJECT, TYPE, MEMORY USAGE, commands of other types      L commands_for_all_keys..., M memory_usage...
    full resync, from disk and socket, over other data       L full_resync, a_primary_that_dies...
    partial resync, chained replicas                         L a_replica_that_was..., a_chain_of_replicas
  Who may write, and when
    CLIENT PAUSE WRITE, ALL                                  P client_pause...
    FAILOVER with tasks due meanwhile                        P failover...
    CLUSTER FAILOVER                                         P cluster_failover...
    SHUTDOWN waiting for a lagging replica; SHUTDOWN ABORT   P shutdown...
    a replica, writable, without its primary                 P a_replica..., a_writable_replica...
    demotion with timers armed, promotion                    P demotion..., promotion..., a_repeating_task...
    loading an RDB file, an AOF                              P nothing_fires_before_loading_ends
    due times while the server was down; MISSED              R downtime...
    users with few rights; internal commands                 P a_user..., internal_commands...
  Reasons why a delivery is refused
    out of memory                                            P out_of_memory..., promote_changes_nothing...
    too few replicas                                         P too_few_replicas...
    snapshots fail; the AOF cannot be written                P snapshots_that_fail..., an_append_only_file...
    a target of the wrong type, repaired, used up            P a_target..., a_refused..., a_stream_whose_ids...
    dead tasks, and what becomes of them                     P dead_tasks_stay...
    a slot of another node, a slot on the move               P a_slot_on_the_move...
  Handlers of other modules
    they change or remove the task being delivered           test_meddling.py
    a key expires in a batch, a queue is empty or new     test_handlers.py
    a queue is freed at once as memory is short           test_handlers.py
  The clock
    steps forward and back                                   P the_wall_clock...
    a million tasks due in one second                        M a_million...
    the server or its clients are busy                       P tasks_fall_due_in..., a_tight..., a_task_filed...
  Stored data
    rewriting the AOF with and without preamble              R aof_rewrite...
    an AOF cut within its last transaction                   R a_task_whose_delivery_was_cut_off...
    the server starts twice after such a cut                 test_mend.py
    only absolute times, deliveries in transactions          R the_append_only_file...
    restarts from RDB; both forms one after the other        R rdb_restart, tasks_survive_both_forms...
    files of this format                                     R golden...
    snapshots and logs of other formats                      R a_snapshot_from..., a_chunk_of...
    corrupt values, and corrupt files                        R corrupt..., truncated..., a_corrupt_rdb_file...
    a server without AOF                                     R a_server_without_aof...
    DEBUG DIGEST of primary and replica                      R digests_agree...
    big payloads, all bytes, nothing                         M payloads..., ids_targets_and_fields...
    the module cannot be unloaded                            P the_module_cannot_be_unloaded
    defragmentation                                          M defragmentation..., a_server_that_cannot...
"""
import itertools
import os
import random
import re
import threading

import pytest
import redis
from eventually import any_moment
from harness import (PATIENCE, Raw, as_map, delivered, now_ms, parse_info, task, tasks, version,
                     wait_replica_in_sync, wait_until)
from situations import (Counters, FullDisk, WallClock, add, dead_of, deferred, digest, fill, frozen,
                        ignoring_signal_xfsz, let_pass, rewrite, shut_down, sleeps, wait_dead,
                        wait_delivered, write_until_refused)

MANY_TRIES = ("tickwheel.target-tries", 15)  # A target that refuses has a minute until its tasks die.


def entry_ms(client, stream):
    """Returns when the first entry was added, by the clock of its server."""
    return int(client.xrange(stream, count=1)[0][0].split("-")[0])


def pair(fleet, **options):
    """Returns a primary and its replica, in sync."""
    master = fleet.server(**options)
    replica = fleet.server(replicaof=master, **options)
    wait_replica_in_sync(master, replica)
    return master, replica


def role(server):
    return server.info("replication")["role"]


def never_early(client, stream):
    """Asserts that no entry was added before its task was due."""
    for entry, fields in client.xrange(stream):
        assert int(entry.split("-")[0]) >= int(fields["tw.due"]), (entry, fields)


# Pauses

def test_client_pause_write_puts_delivery_off(clock, server, r):
    counters, due = Counters(server), clock.now() + 1500
    names = fill(r, "s", "out", 100, due, step=1)
    r.execute_command("CLIENT", "PAUSE", 600000, "WRITE")
    clock.reach(due)
    counters.wait("deferred_pause")
    wait_until(lambda: server.tw()["late"] == 100)
    assert (r.xlen("out"), server.tw()["oldest_late_ms"] > 0) == (0, True)
    r.execute_command("CLIENT", "UNPAUSE")
    assert wait_delivered(r, "out", 100) == names
    never_early(r, "out")


def test_client_pause_all_puts_delivery_off(clock, server, r):
    counters, due = Counters(server), clock.now() + 1500
    names = fill(r, "s", "out", 100, due, step=1)
    r.execute_command("CLIENT", "PAUSE", 3000, "ALL")
    paused = clock.now()
    clock.push(1600)  # All tasks are due, and the pause cannot end.
    turns = sleeps(server)
    wait_until(lambda: sleeps(server) > turns + 5)
    clock.reach(paused + 2900)
    assert wait_delivered(r, "out", 100) == names  # The first reply comes when the pause is over.
    assert clock.now() >= paused + 3000
    assert entry_ms(r, "out") >= paused + 3000
    assert counters["deferred_pause"] > 0


def test_client_pause_while_tasks_wait_for_another_try(server, r):
    r.config_set("tickwheel.target-backoff-ms", 200, *MANY_TRIES)
    r.set("out", "text")
    names = fill(r, "s", "out", 10, now_ms())
    wait_until(lambda: int(task(r, "s", "t0")["attempt"]) > 0)
    r.delete("out")
    r.execute_command("CLIENT", "PAUSE", 1000, "WRITE")
    assert wait_delivered(r, "out", 10) == names


def test_client_pause_of_a_primary_with_a_replica(fleet, clock):
    """Nothing is replicated in a pause, even if tasks become due."""
    master, replica = pair(fleet, repl_ping_replica_period=3600)
    r, due, counters = master.client(), clock.now() + 1500, Counters(master)
    names = fill(r, "s", "out", 100, due)
    wait_replica_in_sync(master, replica)
    r.execute_command("CLIENT", "PAUSE", 600000, "WRITE")
    offset = master.info("replication")["master_repl_offset"]
    clock.reach(due)
    counters.wait("deferred_pause", 5)
    assert master.info("replication")["master_repl_offset"] == offset, "something was written in a pause"
    r.execute_command("CLIENT", "UNPAUSE")
    assert wait_delivered(r, "out", 100) == names
    wait_replica_in_sync(master, replica)
    assert digest(master) == digest(replica)


# Failover, demotion, promotion

def fail_over(master, replica, begun=lambda: None):
    """Runs the FAILOVER command. The replica is frozen until the primary has put off deliveries because of
    it."""
    wait_until(lambda: "online" in str(master.info("replication").get("slave0")))
    with frozen(replica):
        master.once("XADD", "beside", "*", "so that", "the replica lags")
        master.once("FAILOVER", "TO", "127.0.0.1", replica.port, "TIMEOUT", 60000)
        begun()
    wait_until(lambda: role(replica) == "master", message=lambda: f"{master.tail()}\n{replica.tail()}")
    wait_until(lambda: role(master) == "slave")


def test_failover_with_tasks_due_meanwhile(fleet, clock):
    """Tasks are due while the primary waits for its replica, and later while it is a replica. Each is
    delivered once."""
    master, replica = pair(fleet, appendonly="yes")
    r, start = master.client(), clock.now()
    names = fill(r, "s", "out", 4000, start, step=1)
    clock.push(1000)
    wait_delivered(r, "out", 1000)
    fail_over(master, replica, lambda: (clock.push(1000), deferred(master, "pause")))
    there = replica.client()
    clock.reach(start + 3000)
    assert wait_delivered(there, "out", 4000) == names
    wait_replica_in_sync(replica, master)
    assert digest(master) == digest(replica)
    assert delivered(r, "out") == names
    never_early(there, "out")
    assert "smaller" not in master.log() + replica.log()


def test_failover_there_and_back(fleet, clock):
    one, other = pair(fleet)
    names = fill(one.client(), "s", "out", 6000, clock.now(), step=1)
    for master, replica in ((one, other), (other, one)):
        put_off = Counters(master)
        fail_over(master, replica, lambda one=put_off: (clock.push(1000), one.wait("deferred_pause")))
        wait_replica_in_sync(replica, master)
    clock.reach(clock.now() + 3000)
    assert wait_delivered(one.client(), "out", 6000) == names
    wait_replica_in_sync(one, other)
    assert digest(one) == digest(other)


def test_failover_that_is_aborted(fleet, clock):
    master, replica = pair(fleet)
    r = master.client()
    names = fill(r, "s", "out", 500, clock.now() + 300, step=1)
    with frozen(replica):
        r.xadd("beside", {"so that": "the replica lags"})
        master.once("FAILOVER", "TIMEOUT", 60000)
        clock.push(1000)
        deferred(master, "pause")
        master.once("FAILOVER", "ABORT")
        assert wait_delivered(r, "out", 500) == names
    assert role(master) == "master"
    wait_replica_in_sync(master, replica)
    assert digest(master) == digest(replica)


def test_cluster_failover_with_tasks_due_meanwhile(fleet):
    cluster = fleet.cluster(primaries=1, replicas=1, appendonly="yes")
    master, replica = cluster.nodes
    add(master.client(), "{s}", "{s}out", "beat", now_ms(), "EVERY", 1, "MISSED", "burst")
    wait_delivered(master.client(), "{s}out", 100)
    for _ in range(10):
        before = master.tw()["deferred_pause"]
        cluster.hand_over(master, replica)
        wait_until(lambda one=master: role(one) == "slave")
        tasks_were_due = master.tw()["deferred_pause"] > before
        master, replica = replica, master
        wait_replica_in_sync(master, replica)
        if tasks_were_due:
            break
    assert tasks_were_due, "in ten failovers"
    r = master.client()
    count = r.xlen("{s}out")
    wait_delivered(r, "{s}out", count + 100)
    r.execute_command("TW.CANCEL", "{s}", "beat")
    dues = [int(fields["tw.due"]) for _, fields in r.xrange("{s}out")]
    assert dues == list(range(dues[0], dues[0] + len(dues)))
    wait_replica_in_sync(master, replica)
    assert digest(master) == digest(replica)


def test_a_replica_never_fires(fleet, clock):
    """A replica gets its entries through the replication link. While the primary is frozen no entries come,
    although tasks are due."""
    master, replica = pair(fleet)
    r, copy = master.client(), replica.client()
    due = clock.now() + 1500
    names = fill(r, "s", "out", 100, due)
    wait_replica_in_sync(master, replica)
    with frozen(master):
        clock.reach(due)
        deferred(replica, "role")
        assert copy.xlen("out") == 0
        assert replica.tw()["ready"] == 100
    wait_delivered(r, "out", 100)
    wait_replica_in_sync(master, replica)
    assert delivered(copy, "out") == names
    assert replica.tw()["delivered"] == 0
    assert digest(master) == digest(replica)
    with pytest.raises(redis.exceptions.ReadOnlyError):
        add(copy, "s", "out", "a", clock.now())


def test_a_writable_replica_does_not_fire_either(fleet):
    master = fleet.server()
    replica = fleet.server(replicaof=master, replica_read_only="no")
    wait_replica_in_sync(master, replica)
    copy = replica.client()
    names = fill(copy, "local", "out", 10, now_ms())
    deferred(replica, "role")
    wait_replica_in_sync(master, replica)
    assert (copy.xlen("out"), copy.execute_command("TW.LEN", "local")) == (0, 10)
    copy.replicaof("NO", "ONE")
    assert wait_delivered(copy, "out", 10) == names


def test_a_replica_without_its_primary_does_not_fire(fleet, clock):
    master, replica = pair(fleet)
    due = clock.now() + 1500
    names = fill(master.client(), "s", "out", 10, due)
    wait_replica_in_sync(master, replica)
    master.kill()
    copy = replica.client()
    clock.reach(due)
    deferred(replica, "role")
    assert copy.xlen("out") == 0
    copy.replicaof("NO", "ONE")
    assert wait_delivered(copy, "out", 10) == names


def test_demotion_with_timers_armed(fleet, clock):
    """REPLICAOF makes the server a replica of a primary that keeps it waiting. It delivers nothing until
    REPLICAOF NO ONE makes it a primary again."""
    server, other = fleet.server(), fleet.server()
    r, due = server.client(), clock.now() + 1500
    names = fill(r, "s", "out", 400, due, step=1)
    with frozen(other):
        r.replicaof("127.0.0.1", other.port)
        clock.reach(due + 400)
        wait_until(lambda: server.tw()["ready"] == 400)
        deferred(server, "role")
        assert (r.xlen("out"), r.execute_command("TW.LEN", "s")) == (0, 400)
        r.replicaof("NO", "ONE")
        assert wait_delivered(r, "out", 400) == names
        assert server.tw()["tasks"] == 0


def test_demotion_to_a_primary_with_other_data(fleet, clock):
    server, other = fleet.server(), fleet.server()
    r, due = server.client(), clock.now() + 1500
    fill(r, "s", "out", 400, due, step=1)
    theirs = fill(other.client(), "s", "theirs", 10, due)
    r.replicaof("127.0.0.1", other.port)
    wait_replica_in_sync(other, server)
    clock.reach(due)
    let_pass(other.client(), due + 400)
    wait_replica_in_sync(other, server)
    assert digest(server) == digest(other)
    assert r.exists("out") == 0
    assert delivered(r, "theirs") == theirs


def test_promotion_fires_ready_tasks_at_once_and_once(fleet, clock):
    """The primary holds its tasks back in a pause, so all are ready when the replica takes over."""
    master, replica = pair(fleet)
    r, copy, due = master.client(), replica.client(), clock.now() + 1500
    names = fill(r, "s", "out", 3000, due)
    wait_replica_in_sync(master, replica)
    r.execute_command("CLIENT", "PAUSE", 600000, "WRITE")
    clock.reach(due)
    wait_until(lambda: replica.tw()["ready"] == 3000)
    promoted = clock.now()
    copy.replicaof("NO", "ONE")
    assert wait_delivered(copy, "out", 3000) == names
    assert entry_ms(copy, "out") >= promoted
    let_pass(copy, due)
    assert copy.xlen("out") == 3000, "something came twice"
    assert replica.tw()["tasks"] == 0


def test_a_repeating_task_goes_on_after_a_promotion(fleet, clock):
    master, replica = pair(fleet)
    r, copy, due = master.client(), replica.client(), clock.now() + 100
    add(r, "s", "out", "beat", due, "EVERY", 200, "TIMES", 10, "MISSED", "burst")
    clock.push(500)
    wait_delivered(r, "out", 3)
    fail_over(master, replica)
    clock.reach(due + 1600)
    wait_delivered(copy, "out", 10)
    assert [int(fields["tw.due"]) for _, fields in copy.xrange("out")] == [due + 200 * i for i in range(10)]
    assert copy.exists("s") == 0


# The end of a server

def test_shutdown_with_a_lagging_replica(fleet, clock):
    """The server pauses writes while it waits for the replica. Meanwhile tasks become due."""
    master = fleet.server(appendonly="yes", shutdown_timeout=3)
    replica = fleet.server(replicaof=master)
    wait_replica_in_sync(master, replica)
    r, due = master.client(), clock.now() + 1500
    names = fill(r, "s", "out", 500, due, step=1)
    with frozen(replica):
        r.xadd("beside", {"so that": "the replica lags"})
        shut_down(master)
        clock.push(2000)
        deferred(master, "pause")
        clock.go_on()
        assert master.expect_end() == 0
    assert "agging replica" in master.log()
    master.start()
    assert wait_delivered(master.client(), "out", 500) == names
    wait_replica_in_sync(master, replica)
    assert digest(master) == digest(replica)


def test_shutdown_that_is_aborted(fleet, clock):
    master = fleet.server(shutdown_timeout=60)
    replica = fleet.server(replicaof=master)
    wait_replica_in_sync(master, replica)
    r = master.client()
    names = fill(r, "s", "out", 500, clock.now() + 500, step=1)
    with frozen(replica):
        r.xadd("beside", {"so that": "the replica lags"})
        asked = shut_down(master, "NOSAVE")
        clock.push(1000)
        deferred(master, "pause")
        r.execute_command("SHUTDOWN", "ABORT")
        assert isinstance(asked.read(), Raw.Error)
        assert wait_delivered(r, "out", 500) == names
    asked.close()


def test_a_graceful_shutdown_and_restart_with_late_tasks(fleet, clock):
    server = fleet.server(appendonly="yes")
    due = clock.now() + 1500
    names = fill(server.client(), "s", "out", 5000, due)
    server.stop()
    clock.reach(due)
    server.start()
    assert wait_delivered(server.client(), "out", 5000) == names


# Loading

@pytest.mark.parametrize("form", ["rdb", "aof", "aof with preamble"])
def test_nothing_fires_before_loading_ends(fleet, form):
    """Many keys, and each takes a moment to load. Late tasks are delivered afterwards, in the order of due
    times."""
    keys, each = 300, 20
    server = fleet.server(appendonly="no" if form == "rdb" else "yes",
                          aof_use_rdb_preamble="yes" if "preamble" in form else "no")
    r, due = server.client(), now_ms() + 3600000
    for i in range(keys):
        fill(r, f"s{i}", "out", each, due + i, step=1000, prefix=f"{i}-")
    fill(r, "out-of-turn", "out", 1, due - 5)
    move_to_the_past(r, keys, each)
    if form == "rdb":
        r.save()
    elif "preamble" in form:
        rewrite(server)
    server.kill()
    server.options["key-load-delay"] = 3000 if form == "aof" else 100000  # For each command, or for each key.
    server.options["loading-process-events-interval-bytes"] = 1024
    server.start(wait=False)
    seen = Raw(server)
    answer = seen("XLEN", "out")
    assert isinstance(answer, Raw.Error) and answer.startswith("LOADING"), answer
    assert seen("CONFIG", "SET", "key-load-delay", 20) == "OK"
    server.wait_loaded()
    r = server.client()
    total = keys * each + 1
    got = wait_delivered(r, "out", total)
    assert len(set(got)) == total
    dues = [int(fields["tw.due"]) for _, fields in r.xrange("out")]
    assert dues == sorted(dues)


def move_to_the_past(r, keys, each):
    """Moves all tasks at once, and begins a pause that lasts until the server is killed, so that no task is
    delivered before."""
    past = now_ms() - 100000
    with r.pipeline(transaction=True) as moves:
        for i, j in itertools.product(range(keys), range(each)):
            moves.execute_command("TW.MOVE", f"s{i}", f"{i}-{j}", "AT", past + i + j * 1000)
        moves.execute_command("TW.MOVE", "out-of-turn", "t0", "AT", past - 5)
        moves.execute_command("CLIENT", "PAUSE", 600000, "WRITE")
        moves.execute()


# Reasons why a delivery is refused

def test_out_of_memory_puts_delivery_off_and_keeps_the_order(clock, server, r):
    counters, due = Counters(server), clock.now() + 1500
    names = fill(r, "s", "out", 500, due, step=1)
    r.config_set("maxmemory", 1)
    clock.reach(due + 500)
    with pytest.raises(redis.ResponseError, match="OOM"):
        add(r, "s", "out", "refused", due)
    counters.wait("deferred_oom", 2)
    wait_until(lambda: server.tw()["late"] == 500)
    assert r.xlen("out") == 0
    assert (r.execute_command("TW.CANCEL", "s", "t499"), r.execute_command("TW.LEN", "s")) == ([1], 499)
    r.config_set("maxmemory", 0)
    assert wait_delivered(r, "out", 499) == names[:-1]
    assert {fields["tw.attempt"] for _, fields in r.xrange("out")} == {"1"}
    assert counters["died"] == 0


def test_promote_changes_nothing_when_memory_is_out(server, r):
    names = fill(r, "s", "out", 10, now_ms() + 3600000)
    r.config_set("maxmemory", 1)
    with pytest.raises(redis.ResponseError, match="OOM"):
        r.execute_command("TW.PROMOTE", "s", "ALL")
    r.config_set("maxmemory", 0)
    assert r.execute_command("TW.PROMOTE", "s", "ALL") == 10
    assert wait_delivered(r, "out", 10) == names


def test_too_few_replicas_put_delivery_off(fleet, clock):
    server = fleet.server()
    r, due = server.client(), clock.now() + 1500
    names = fill(r, "s", "out", 100, due)
    r.config_set("min-replicas-to-write", 1)
    clock.reach(due)
    deferred(server, "replicas")
    wait_until(lambda: server.tw()["late"] == 100)
    assert r.xlen("out") == 0
    with pytest.raises(redis.ResponseError, match="NOREPLICAS"):
        add(r, "s", "out", "refused", due)
    replica = fleet.server(replicaof=server)
    assert wait_delivered(r, "out", 100) == names
    assert {fields["tw.attempt"] for _, fields in r.xrange("out")} == {"1"}
    wait_replica_in_sync(server, replica)
    assert digest(server) == digest(replica)


def test_snapshots_that_fail_put_delivery_off(fleet, clock):
    """MISCONF: a folder has the name that the snapshot should have. (A folder without the right to write does
    not stop root.)"""
    server = fleet.server(save="3600 1", stop_writes_on_bgsave_error="yes")
    r, due = server.client(), clock.now() + 1500
    names = fill(r, "s", "out", 100, due)
    os.mkdir(os.path.join(server.folder, "dump.rdb"))
    r.bgsave()
    wait_until(lambda: server.info("persistence")["rdb_last_bgsave_status"] == "err")
    clock.reach(due)
    deferred(server, "disk")
    assert r.xlen("out") == 0
    with pytest.raises(redis.ResponseError, match="MISCONF"):
        add(r, "s", "out", "refused", due)
    os.rmdir(os.path.join(server.folder, "dump.rdb"))
    r.bgsave()
    assert wait_delivered(r, "out", 100) == names
    assert {fields["tw.attempt"] for _, fields in r.xrange("out")} == {"1"}


def test_an_append_only_file_that_cannot_be_written_puts_delivery_off(fleet, clock, monkeypatch):
    with monkeypatch.context() as patch:
        ignoring_signal_xfsz(patch)
        server = fleet.server(appendonly="yes", appendfsync="everysec")
    r, due = server.client(), clock.now() + 2500
    names = fill(r, "s", "out", 100, due)
    with FullDisk(server, 1 << 20):
        write_until_refused(r)
        clock.reach(due)
        deferred(server, "disk")
        wait_until(lambda: server.tw()["late"] == 100)
        assert r.xlen("out") == 0
    assert wait_delivered(r, "out", 100) == names
    server.restart()
    assert delivered(server.client(), "out") == names


def test_a_target_of_the_wrong_type_kills_tasks(server, r):
    counters = Counters(server)
    r.config_set("tickwheel.target-backoff-ms", 10)
    r.set("out", "text")
    due = now_ms()
    add(r, "s", "out", "a", due, payload=("f", "v", "g", "w"))
    add(r, "s", "out", "l", due, "LIST", payload=("value",))
    for name, due_, dead, attempt, error, *_ in wait_dead(r, "s", 2):
        assert (due_, attempt, task(r, "s", name)["target"]) == (due, 3, "out") and dead >= due
        assert "WRONGTYPE" in error
    assert [task(r, "s", name)["payload"] for name in ("a", "l")] == [["f", "v", "g", "w"], ["value"]]
    assert r.get("out") == "text"
    assert r.exists("s:dead") == 0
    assert counters["died"] == counters["dead"] == 2
    assert counters["deferred_refused"] >= 2


def test_a_refused_target_does_not_hold_up_others(r):
    r.config_set("tickwheel.target-backoff-ms", 5000, *MANY_TRIES)
    r.set("bad", "text")
    due = now_ms()
    fill(r, "s", "bad", 100, due)
    names = fill(r, "s", "good", 100, due, prefix="g")
    others = fill(r, "s2", "good2", 100, due)
    assert wait_delivered(r, "good", 100) == names
    assert wait_delivered(r, "good2", 100) == others
    assert r.execute_command("TW.LEN", "s") == 100
    assert int(as_map(r.execute_command("TW.INFO", "s"))["held"]) > 0


def test_a_target_repaired_before_the_last_try(r):
    r.config_set("tickwheel.target-backoff-ms", 200, *MANY_TRIES)
    r.set("out", "text")
    names = fill(r, "s", "out", 10, now_ms())
    wait_until(lambda: int(task(r, "s", "t0")["attempt"]) >= 1)
    r.delete("out")
    assert wait_delivered(r, "out", 10) == names
    attempts = [int(fields["tw.attempt"]) for _, fields in r.xrange("out")]
    assert attempts[0] >= 2
    assert r.exists("s") == 0


def test_dead_tasks_stay_in_the_queue_until_they_are_replayed(server, r):
    counters = Counters(server)
    r.config_set("tickwheel.target-tries", 1)
    r.set("out", "text")
    names = fill(r, "s", "out", 10, now_ms())
    assert [dead.id for dead in wait_dead(r, "s", 10)] == names
    assert (r.execute_command("TW.LEN", "s"), counters["died"]) == (0, 10)
    r.delete("out")
    assert r.execute_command("TW.REPLAY", "s", "ALL") == 10
    assert wait_delivered(r, "out", 10) == names
    assert r.exists("s") == 0 and counters["replayed"] == 10


def test_a_stream_whose_ids_are_used_up_is_a_refusal(r):
    r.config_set("tickwheel.target-backoff-ms", 1)
    r.xadd("out", {"the": "last"}, id="18446744073709551615-18446744073709551615")
    add(r, "s", "out", "a", now_ms())
    assert wait_dead(r, "s")[0].id == "a"


def test_a_stream_ahead_of_the_clock_takes_entries(r):
    r.xadd("out", {"from": "the future"}, id=f"{now_ms() + 3600000}-7")
    add(r, "s", "out", "a", now_ms())
    wait_until(lambda: r.xlen("out") == 2)


def test_a_repeating_task_goes_on_after_a_period_has_died(r):
    r.config_set("tickwheel.target-backoff-ms", 1)
    r.config_set("tickwheel.target-tries", 1)
    r.set("out", "text")
    add(r, "s", "out", "beat", now_ms(), "EVERY", 300, "TIMES", 4, "MISSED", "burst")
    wait_dead(r, "s")
    r.delete("out")
    wait_until(lambda: r.execute_command("TW.LEN", "s") == 0)
    dead, came = len(dead_of(r, "s")), r.xlen("out")
    assert (dead + came, dead >= 1) == (4, True)


def test_a_target_that_is_the_queue_itself(clock, server, r):
    """TW.SEND refuses such a target, but RENAME can make one. It then is a target of the wrong type, like any
    other."""
    r.config_set("tickwheel.target-backoff-ms", 1)
    with pytest.raises(redis.ResponseError, match="target"):
        add(r, "s", "s", "a", clock.now())
    due = clock.now() + 300
    add(r, "s", "s2", "a", due)
    r.rename("s", "s2")
    clock.reach(due)
    assert wait_dead(r, "s2")[0].error.startswith("WRONGTYPE")
    assert server.tw()["tasks"] == 0


# Rights

def test_a_user_needs_rights_to_queue_and_target(server, r):
    r.acl_setuser("half", enabled=True, nopass=True, keys=["mine:*"], commands=["+@all"])
    r.acl_setuser("both", enabled=True, nopass=True, keys=["mine:*", "theirs:*"], commands=["+@all"])
    half, both = server.client(username="half"), server.client(username="both")
    due = now_ms()
    for queue, target in (("mine:s", "theirs:out"), ("theirs:s", "mine:out")):
        with pytest.raises(redis.exceptions.NoPermissionError):
            add(half, queue, target, "a", due)
    add(half, "mine:s", "mine:out", "a", due)
    add(both, "mine:s", "theirs:out", "b", due)
    assert wait_delivered(r, "mine:out", 1) == ["a"]
    assert wait_delivered(r, "theirs:out", 1) == ["b"]
    with pytest.raises(redis.exceptions.NoPermissionError):
        half.execute_command("TW.CANCEL", "theirs:s", "a")


def test_a_user_who_may_only_read(server, r):
    r.acl_setuser("reader", enabled=True, nopass=True, keys=["*"], commands=["+tw.len", "+tw.range"])
    reader = server.client(username="reader")
    fill(r, "s", "out", 3, now_ms() + 3600000)
    assert reader.execute_command("TW.LEN", "s") == 3
    assert len(reader.execute_command("TW.RANGE", "s", "-", "+")) == 3
    for words in (("TW.SEND", "s", "out", "a", "IN", 5, "PAYLOAD", "f", "v"), ("TW.CANCEL", "s", "t0"),
                  ("TW.MOVE", "s", "t0", "IN", 5), ("TW.PROMOTE", "s", "ALL")):
        with pytest.raises(redis.exceptions.NoPermissionError):
            reader.execute_command(*words)


def test_internal_commands_are_refused_from_clients(server, r):
    fill(r, "s", "out", 3, now_ms() + 3600000)
    before = digest(server)
    for words in (("TW.FIRED", "s", "t0"), ("TW.FIRED", "s"), ("TW.FIRED", ), ("TW.LOAD", "s"),
                  ("TW.LOAD", "s", "x", "y"), ("TW.FIRED", "s", "t0", 1), ("TW.FIRED", "s", 1,
                                                                           "t0"), ("TW.LOAD", )):
        with pytest.raises(redis.ResponseError):
            r.execute_command(*words)
        with pytest.raises(redis.ResponseError):
            r.eval("return redis.call(unpack(ARGV))", 1, "s", *words)
        with pytest.raises(redis.ResponseError), r.pipeline(transaction=True) as both:
            both.execute_command(*words)
            both.execute()
    assert digest(server) == before


def test_the_module_cannot_be_unloaded(server, r):
    fill(r, "s", "out", 3, now_ms() + 3600000)
    with pytest.raises(redis.ResponseError):
        r.execute_command("MODULE", "UNLOAD", "tickwheel")
    r.delete("s")
    with pytest.raises(redis.ResponseError):
        r.execute_command("MODULE", "UNLOAD", "tickwheel")
    assert server.tw()["tasks"] == 0


# Transactions and scripts

def test_tasks_fall_due_in_a_slow_transaction(r):
    """No task is delivered within the transaction, and all are delivered after it."""
    names = fill(r, "s", "out", 100, now_ms() + 3600000, step=1)
    with r.pipeline(transaction=True) as both:
        for i, name in enumerate(names):
            both.execute_command("TW.MOVE", "s", name, "AT", now_ms() + i)
        both.execute_command("DEBUG", "SLEEP", 0.2)
        both.xlen("out")
        assert both.execute()[-1] == 0
    assert wait_delivered(r, "out", 100) == names


def test_a_task_filed_late_does_not_overtake_a_backlog(clock, server, r):
    """The task is due later than thousands of tasks that wait for their turn, so it comes after them. The
    server reads the commands as soon as it goes on, before it has delivered much."""
    r.config_set("tickwheel.tasks-per-tick", 1)
    r.config_set("tickwheel.us-per-tick", 100)
    due, raw = clock.now() + 1000, Raw(server)
    names = fill(r, "s", "out", 10000, due, step=0.003)
    clock.push(1010)
    wait_until(lambda: r.xlen("out") > 10)
    with frozen(server):
        clock.push(1000)
        raw.send("TW.SEND", "s", "out", "late", "AT", clock.now(), "PAYLOAD", "n", "v")
        raw.send("TW.INFO", "s")
    assert raw.read() == "late" and int(as_map(raw.read())["late"]) > 100
    r.config_set("tickwheel.tasks-per-tick", 1000, "tickwheel.us-per-tick", 10000)
    clock.go_on()
    assert wait_delivered(r, "out", 10001) == [*names, "late"]


def test_a_tight_loop_of_clients_does_not_keep_tasks_from_arriving(server, r):
    """Each of four connections sends its next hundred commands at once, all the time."""
    stop = threading.Event()

    def load():
        raw = Raw(server)
        while not stop.is_set():
            raw.send_all([("SET", "x", "y")] * 100)
            for _ in range(100):
                raw.read()
        raw.close()

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        names = fill(r, "s", "out", 5000, now_ms() + 200)
        assert wait_delivered(r, "out", 5000) == names
    finally:
        stop.set()
        for thread in threads:
            thread.join(PATIENCE)


# Slots

def test_a_slot_on_the_move_puts_delivery_off(fleet):
    """The target has been moved already, but not the queue. The queue keeps its tasks, is moved, and
    fires at the new owner of the slot."""
    cluster = fleet.cluster(primaries=2)
    source = cluster.owner("{s}")
    goal = next(node for node in cluster.nodes if node is not source)
    slot = source.once("CLUSTER", "KEYSLOT", "{s}")
    r = source.client()
    names = fill(r, "{s}", "{s}out", 50, now_ms() + 3600000)
    r.xadd("{s}out", {"tw.id": "before"})
    goal.once("CLUSTER", "SETSLOT", slot, "IMPORTING", cluster.id(source))
    source.once("CLUSTER", "SETSLOT", slot, "MIGRATING", cluster.id(goal))
    r.execute_command("MIGRATE", "127.0.0.1", goal.port, "{s}out", 0, 30000)
    with r.pipeline(transaction=True) as moves:
        for name in names:
            moves.execute_command("TW.MOVE", "{s}", name, "IN", 0)
        moves.execute()
    deferred(source, "slot")
    assert r.execute_command("TW.LEN", "{s}") == 50
    r.execute_command("MIGRATE", "127.0.0.1", goal.port, "{s}", 0, 30000)
    assert source.tw()["tasks"] == 0
    for node in (goal, source):
        node.once("CLUSTER", "SETSLOT", slot, "NODE", cluster.id(goal))
    assert wait_delivered(goal.client(), "{s}out", 51) == ["before", *names]
    assert goal.tw()["tasks"] == 0


# The wall clock

def test_the_wall_clock_steps_forward(fleet):
    """All tasks that are due by the new time are delivered soon, and no other task is."""
    clock = WallClock(fleet.folder)
    server = fleet.server(**clock.options)
    r, due = server.client(), clock.now() + 3600000
    names = fill(r, "s", "out", 1000, due)
    fill(r, "s", "later", 1000, due + 7200000, prefix="later")
    clock.push(3600000 + 5000)
    assert wait_delivered(r, "out", 1000) == names
    let_pass(r, clock.now())
    assert r.exists("later") == 0, "something came early"
    assert r.execute_command("TW.LEN", "s") == 1000
    wait_until(lambda: server.tw()["clock_jumps"] >= 1)
    never_early(r, "out")


def test_the_wall_clock_steps_back(clock, server, r):
    """Tasks that were about to be due wait until the clock shows their time again. New tasks use the new
    time."""
    due = clock.now() + 500
    names = fill(r, "s", "out", 1000, due)
    clock.push(-3600000)
    clock.go_on()
    soon = fill(r, "s2", "soon", 10, clock.now() + 300)
    assert wait_delivered(r, "soon", 10) == soon
    let_pass(r, due - 3600000 + 300)
    assert r.xlen("out") == 0
    counters = Counters(server)
    assert server.tw()["clock_jumps"] >= 1
    clock.push(3600000)
    assert wait_delivered(r, "out", 1000) == names
    counters.wait("clock_jumps")
    never_early(r, "soon")
    never_early(r, "out")


def test_tasks_that_are_filed_after_steps_back_come_in_their_order(clock, server, r):
    """The wheel has passed their times. In a line the one that is filed first would hold up the others. Before
    the server files tasks it has seen the second step; what it has not seen is in unit/test_place.c."""
    def file(turn):
        for name, ms in (("later", 2000), ("sooner", 1000)):
            add(r, "s", "out", f"{name}{turn}", clock.now() + ms)
        clock.push(1000)
        wait_delivered(r, "out", turn)

    clock.push(-3600000)
    file(1)
    jumps = Counters(server)
    clock.push(-3600000)
    jumps.wait("clock_jumps")
    file(2)
    clock.push(2 * 3600000)
    assert wait_delivered(r, "out", 4) == ["sooner1", "sooner2", "later2", "later1"]


def test_the_wall_clock_steps_back_while_a_target_is_given_another_try(fleet):
    """The wall clock does not change the wait for the target."""
    clock = WallClock(fleet.folder)
    server = fleet.server(**clock.options)
    r = server.client()
    r.set("out", "not a stream")
    r.config_set("tickwheel.target-backoff-ms", 5000, *MANY_TRIES)
    add(r, "s", "out", "a", clock.now())
    wait_until(lambda: server.tw()["held"] == 1)
    clock.push(-3600000)
    r.delete("out")
    clock.push_monotonic(5000)
    wait_until(lambda: r.xlen("out") == 1)


def test_the_wall_clock_of_a_replica_steps_back_before_it_is_promoted(fleet, clock):
    """A task that was ready there is due again a little later, and then the timer wakes the server."""
    master = fleet.server()
    replica = fleet.server(replicaof=master)
    wait_replica_in_sync(master, replica)
    due = clock.now() + 1000
    add(master.client(), "s", "out", "a", due)
    wait_until(lambda: replica.client().exists("s"))
    with frozen(master):
        clock.push(1000)
        wait_until(lambda: replica.tw()["ready"] == 1)
        deferred(replica, "role")
        clock.push(-1000)
        there = replica.client()
        there.replicaof("NO", "ONE")
        clock.go_on()
        wait_until(lambda: there.xlen("out") == 1)
    assert clock.now() >= due


def test_the_wall_clock_steps_to_and_fro_with_a_repeating_task(fleet):
    """The due times of the task keep their phase, and no delivery comes twice."""
    clock, rng = WallClock(fleet.folder), random.Random()
    server = fleet.server(appendonly="yes", **clock.options)
    r, due = server.client(), clock.now() + 500
    add(r, "s", "out", "beat", due, "EVERY", 10000, "TIMES", 200, "MISSED", "burst")
    add(r, "s", "in-a-year", "later", due + 366 * 86400000)
    for ms in (61000, -30000, 500000, -100000, 1200, -1300, 700000, -86400000, 86400000 + 900000):
        jumps = Counters(server)
        clock.push(ms)
        jumps.wait("clock_jumps")
        any_moment(rng, 0.4)  # So that the clock steps at different moments of the server's work.
    wait_until(lambda: r.xlen("out") == 200, message=lambda: f"{r.xlen('out')} {server.tw()}")
    dues = [int(fields["tw.due"]) for _, fields in r.xrange("out")]
    assert dues == [due + 10000 * i for i in range(200)]
    assert task(r, "s", "later") is not None


def test_the_wall_clock_before_and_after_a_restart(fleet, clock):
    """The machine starts with its clock an hour slow, and the clock is corrected later."""
    server = fleet.server(appendonly="yes")
    due = clock.now() + 500
    names = fill(server.client(), "s", "out", 100, due)
    server.kill()
    clock.push(-3600000)
    server.start()
    r = server.client()
    clock.go_on()
    let_pass(r, due - 3600000 + 200)
    assert (r.xlen("out"), tasks(r, "s")) == (0, {name: due for name in names})
    clock.push(3600000)
    assert wait_delivered(r, "out", 100) == names


# INFO through it all

def test_info_is_complete_and_in_numbers(server, r):
    fields = parse_info(Raw(server)("INFO", "tickwheel"))
    for name in (
            "tasks queues bytes waiting late oldest_late_ms "
            "paused_queues held reaping put cancelled moved delivered "
            "dropped coalesced dead died expired_tasks evicted_tasks "
            "paused_tasks ready oldest_ready_ms leased offered taken done failed back lapsed "
            "renewed replayed purged waiting_us_p50 waiting_us_p99 waiting_us_max deferred_stopped "
            "deferred_pause deferred_role deferred_oom deferred_slot "
            "deferred_replicas deferred_disk deferred_refused lateness_us_p50 lateness_us_p99 lateness_us_p999 "
            "lateness_us_max lateness_minute_us_p50 lateness_minute_us_p99 lateness_minute_us_p999 "
            "lateness_minute_us_max tick_us_max budget_tasks budget_us clock_jumps").split():
        assert isinstance(fields[f"tickwheel_{name}"], int), name
    assert fields["tickwheel_version"] == version()
    assert fields["tickwheel_deliver"] == "yes"
    assert fields["tickwheel_durability"] in ("aof", "rdb-only", "none")
    assert fields["tickwheel_warning"]


# The table at the head of this file

def test_the_table_of_situations_names_tests_that_are_there():
    folder = os.path.dirname(os.path.abspath(__file__))
    files = {
        "L": "test_lifecycle.py", "M": "test_memory.py", "P": "test_pitfalls.py", "R": "test_persistence.py"
    }
    there = {}
    for letter, name in files.items():
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            there[letter] = re.findall(r"def test_(\w+)", file.read())
    rows = re.findall(r"(?m)^    \S.*?  +([LMPR] .*)$", __doc__)
    assert len(rows) > 40
    for row in rows:
        for letter, names in re.findall(r"([LMPR]) ((?:[a-z0-9_.]+(?:, )?)+)", row):
            for name in names.rstrip(", ").split(", "):
                assert any(re.fullmatch(name.replace("...", r"\w*"), one)
                           for one in there[letter]), (letter, name)
