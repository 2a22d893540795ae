# SPDX-License-Identifier: MIT
"""The tasks of a queue when its key is deleted, renamed, moved, copied, flushed, swapped, restored,
expired or evicted. The tests do everything that Redis does to keys, to queues whose tasks are about to be
due. The table of all situations is at the head of test_pitfalls.py.

If tasks must not be delivered any more, `let_pass` waits until the server has delivered another task that was
due later."""
import pytest
import redis
from harness import Raw, delivered, now_ms, task, tasks, wait_replica_in_sync, wait_until
from situations import Counters, add, digest, fill, frozen, let_pass, wait_dead, wait_delivered

AHEAD = 1500  # Milliseconds until tasks of these tests are due. Mostly the clock stands still before that.


def restore_a_string(client, key):
    client.set("a-string", "text")
    client.restore(key, 0, client.dump("a-string"), replace=True)


def rename_a_string(client, key):
    client.set("a-string", "text")
    client.rename("a-string", key)


def copy_a_string(client, key):
    client.set("a-string", "text")
    client.copy("a-string", key, replace=True)


def in_multi(client, key):
    with client.pipeline(transaction=True) as both:
        both.delete(key)
        both.set("beside", "it")
        both.execute()


def lazy_del(client, key):
    client.config_set("lazyfree-lazy-user-del", "yes")
    client.delete(key)
    client.config_set("lazyfree-lazy-user-del", "no")


WAYS_TO_GO = {
    "DEL": lambda client, key: client.delete(key),
    "DEL with lazyfree-lazy-user-del": lazy_del,
    "DEL in MULTI": in_multi,
    "DEL in a script": lambda client, key: client.eval("return redis.call('DEL', KEYS[1])", 1, key),
    "UNLINK": lambda client, key: client.unlink(key),
    "SET over it": lambda client, key: client.set(key, "text"),
    "SUNIONSTORE over it": lambda client, key: client.sadd("a-set", "member") and client.sunionstore(
        key, "a-set"),
    "RESTORE REPLACE of a string over it": restore_a_string,
    "RENAME of a string over it": rename_a_string,
    "COPY REPLACE of a string over it": copy_a_string,
    "EXPIRE with a time that has passed": lambda client, key: client.expire(key, -1),
    "PEXPIREAT with a time that has passed": lambda client, key: client.pexpireat(key, 1000),
    "FLUSHDB": lambda client, key: client.flushdb(),
    "FLUSHDB ASYNC": lambda client, key: client.flushdb(asynchronous=True),
    "FLUSHALL": lambda client, key: client.flushall(),
    "FLUSHALL ASYNC": lambda client, key: client.flushall(asynchronous=True),
    "TW.CANCEL of all": lambda client, key: client.execute_command("TW.CANCEL", key,
                                                                   *(f"t{i}" for i in range(100))),
}


@pytest.mark.parametrize("way", WAYS_TO_GO)
def test_tasks_go_with_their_queue(clock, server, r, way):
    due = clock.now() + AHEAD
    fill(r, "s", "out", 100, due)
    assert server.tw()["tasks"] == 100
    WAYS_TO_GO[way](r, "s")
    assert (server.tw()["tasks"], server.tw()["queues"]) == (0, 0)
    assert "tickwheel" not in r.type("s")
    clock.reach(due)
    let_pass(r, due)
    assert r.exists("out") == 0
    wait_until(lambda: server.tw()["reaping"] == 0)


@pytest.mark.parametrize("way", WAYS_TO_GO)
def test_a_name_is_as_new_after_its_queue_has_gone(clock, r, way):
    due = clock.now() + AHEAD
    fill(r, "s", "out", 100, due)
    WAYS_TO_GO[way](r, "s")
    r.delete("s")
    fill(r, "s", "out", 50, due, payload=("n", "new"))
    assert r.execute_command("TW.LEN", "s") == 50
    clock.reach(due)
    let_pass(r, due)
    assert [fields["n"] for _, fields in r.xrange("out")] == ["new"] * 50
    assert r.exists("s") == 0


def test_a_queue_whose_last_task_was_delivered_is_gone(server, r):
    add(r, "s", "out", "a", now_ms())
    wait_delivered(r, "out", 1)
    assert r.exists("s") == 0
    assert server.tw()["queues"] == 0


def test_deleting_and_adding_again_in_one_transaction(clock, r):
    due = clock.now() + AHEAD
    fill(r, "s", "out", 10, due)
    with r.pipeline(transaction=True) as both:
        both.delete("s")
        both.execute_command("TW.SEND", "s", "out", "t3", "AT", due, "PAYLOAD", "n", "new")
        both.execute()
    clock.reach(due)
    let_pass(r, due)
    assert [(fields["tw.id"], fields["n"]) for _, fields in r.xrange("out")] == [("t3", "new")]


# Expiry and eviction

def test_a_queue_that_expires_takes_its_tasks_with_it_and_they_are_counted(clock, server, r):
    counters, due = Counters(server), clock.now() + AHEAD
    fill(r, "s", "out", 100, due)
    r.pexpire("s", 200)
    clock.reach(due - 1000)
    counters.wait("expired_tasks", 100)  # The server's own cycle expires the key: no command touches it.
    let_pass(r, due)
    assert (r.exists("out"), server.tw()["tasks"], counters["delivered"]) == (0, 0, 1)


def test_a_queue_found_to_have_expired_is_counted_too(server, r):
    counters = Counters(server)
    r.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
    try:
        fill(r, "s", "out", 100, now_ms() + 3600000)
        r.pexpire("s", 1)
        wait_until(lambda: r.exists("s") == 0)
        counters.wait("expired_tasks", 100)
    finally:
        r.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 1)
    assert server.tw()["tasks"] == 0


def test_tasks_due_after_their_queue_has_expired_are_not_delivered_though_nobody_noticed(clock, server, r):
    counters = Counters(server)
    r.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
    try:
        due = clock.now() + AHEAD
        fill(r, "s", "out", 100, due)
        r.pexpireat("s", due - 300)
        clock.reach(due - 300)
        let_pass(r, due)
    finally:
        r.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 1)
    assert r.exists("out", "s") == 0
    counters.wait("expired_tasks", 100)


def test_an_expiry_that_is_taken_back_harms_nobody(clock, r):
    due = clock.now() + AHEAD
    names = fill(r, "s", "out", 10, due)
    r.pexpireat("s", due - 200)
    r.persist("s")
    clock.reach(due - 200)
    let_pass(r, due)
    assert delivered(r, "out") == names


def test_a_target_that_expires_is_made_again(clock, r):
    due = clock.now() + AHEAD
    r.xadd("out", {"old": "entry"})
    r.pexpireat("out", due - 300)
    names = fill(r, "s", "out", 10, due)
    clock.reach(due)
    let_pass(r, due)
    assert delivered(r, "out") == names


def test_eviction_is_counted_and_warned_of(fleet, clock):
    server = fleet.server(maxmemory="1gb", maxmemory_policy="allkeys-lru")
    assert "evict" in server.log()
    assert "evict" in server.tw()["warning"]
    r = server.client()
    due = clock.now() + 1500
    fill(r, "s", "out", 1000, due)
    r.config_set("maxmemory", 1)
    wait_until(lambda: server.tw()["evicted_tasks"] == 1000)
    r.config_set("maxmemory", 0)
    clock.reach(due)
    let_pass(r, due)
    assert (r.exists("s", "out"), server.tw()["tasks"]) == (0, 0)


def test_the_warning_follows_the_configuration(server, r):
    r.config_set("maxmemory", "1gb")
    for policy in ("allkeys-lfu", "allkeys-random"):
        r.config_set("maxmemory-policy", policy)
        wait_until(lambda: "evict" in server.tw()["warning"], message=policy)
    r.config_set("maxmemory-policy", "noeviction")
    wait_until(lambda: "evict" not in server.tw()["warning"])


# Another name, another database

def renamed(r, due, new, *before):
    """Adds tasks and renames their queue in one transaction, so that no task can fire in between."""
    with r.pipeline(transaction=True) as all_at_once:
        for words in before:
            all_at_once.execute_command(*words)
        for i in range(10):
            all_at_once.execute_command("TW.SEND", "s", "out", f"t{i}", "AT", due + i, "PAYLOAD", "n", i)
        all_at_once.rename("s", new)
        all_at_once.execute()
    return [f"t{i}" for i in range(10)]


@pytest.mark.parametrize("ahead", [0, 20, 300])
def test_rename_with_tasks_due_right_after(server, r, ahead):
    due = now_ms() + ahead
    names = renamed(r, due, "s2")
    let_pass(r, due + 10)
    assert delivered(r, "out") == names
    assert r.exists("s", "s2") == 0
    assert (server.tw()["tasks"], server.tw()["queues"]) == (0, 0)


def test_rename_leaves_the_old_name_free_for_another_queue(clock, r):
    due = clock.now() + AHEAD
    names = renamed(r, due, "s2")
    fill(r, "s", "other", 10, due)
    r.execute_command("TW.CANCEL", "s2", "t5")
    assert r.execute_command("TW.LEN", "s") == 10
    assert r.execute_command("TW.LEN", "s2") == 9
    clock.reach(due)
    let_pass(r, due + 10)
    assert delivered(r, "out") == [name for name in names if name != "t5"]
    assert delivered(r, "other") == names


def test_rename_over_another_queue_cancels_that_one(clock, server, r):
    due = clock.now() + AHEAD
    fill(r, "s2", "other", 50, due)
    names = renamed(r, due, "s2")
    assert server.tw()["tasks"] == 10
    clock.reach(due)
    let_pass(r, due + 10)
    assert delivered(r, "out") == names
    assert r.exists("other") == 0


def test_rename_over_another_type(r):
    due = now_ms() + 50
    names = renamed(r, due, "s2", ("SET", "s2", "text"))
    let_pass(r, due + 10)
    assert delivered(r, "out") == names


def test_rename_to_its_own_name(clock, r):
    due = clock.now() + AHEAD
    names = renamed(r, due, "s")
    clock.reach(due)
    let_pass(r, due + 10)
    assert delivered(r, "out") == names


def test_rename_twice_and_back(clock, r):
    due = clock.now() + AHEAD
    names = renamed(r, due, "s2")
    r.rename("s2", "s3")
    r.rename("s3", "s")
    assert r.execute_command("TW.LEN", "s") == 10
    clock.reach(due)
    let_pass(r, due + 10)
    assert delivered(r, "out") == names


def test_renamenx(clock, r):
    due = clock.now() + AHEAD
    names = fill(r, "s", "out", 10, due)
    r.set("taken", "text")
    assert r.renamenx("s", "taken") == 0
    assert r.renamenx("s", "s2") == 1
    assert r.execute_command("TW.LEN", "s2") == 10
    clock.reach(due)
    let_pass(r, due)
    assert delivered(r, "out") == names
    assert r.get("taken") == "text"


def test_a_renamed_queue_keeps_its_tasks_that_die(r):
    r.config_set("tickwheel.target-backoff-ms", 1)
    r.set("out", "text")
    renamed(r, now_ms(), "s2")
    assert sorted(dead.id for dead in wait_dead(r, "s2", 10)) == [f"t{i}" for i in range(10)]
    assert r.exists("s", "s:dead", "s2:dead") == 0


def test_a_queue_is_renamed_while_its_tasks_wait_for_another_try(r):
    r.config_set("tickwheel.target-backoff-ms", 300, "tickwheel.target-tries", 15)
    r.set("out", "text")
    names = fill(r, "s", "out", 10, now_ms())
    wait_until(lambda: int(task(r, "s", "t0")["attempt"]) > 0)
    r.rename("s", "s2")
    r.delete("out")
    assert wait_delivered(r, "out", 10) == names
    assert r.exists("s", "s2") == 0


def test_move_to_another_database_and_the_target_is_looked_for_there(clock, server, r):
    due = clock.now() + AHEAD
    names = fill(r, "s", "out", 10, due)
    assert server.once("MOVE", "s",
                       5) == 1  # Valkey 8.1 leaves the connection in the other database: its pull request 4024
    clock.reach(due)
    let_pass(r, due)
    assert r.exists("out", "s") == 0
    there = server.client(db=5)
    assert delivered(there, "out") == names
    assert there.exists("s") == 0


def test_move_is_refused_where_the_name_is_taken(clock, server, r):
    due = clock.now() + AHEAD
    names = fill(r, "s", "out", 10, due)
    there = server.client(db=5)
    theirs = fill(there, "s", "out", 20, due)
    assert r.move("s", 5) == 0
    clock.reach(due)
    let_pass(r, due)
    assert delivered(r, "out") == names
    assert delivered(there, "out") == theirs


def test_copies_deliver_too(clock, server, r):
    due = clock.now() + AHEAD
    names = fill(r, "s", "out", 10, due)
    assert r.copy("s", "s2")
    assert server.once("COPY", "s", "s", "DB", 5) == 1
    assert not r.copy("s", "s2")
    fill(r, "s3", "never", 10, due)
    assert r.copy("s", "s3", replace=True)
    assert server.tw()["tasks"] == 40
    clock.reach(due)
    let_pass(r, due)
    assert sorted(delivered(r, "out")) == sorted(names * 3)
    assert delivered(server.client(db=5), "out") == names
    assert r.exists("never", "s", "s2", "s3") == 0


def test_a_copy_and_its_model_are_apart(clock, r):
    due = clock.now() + AHEAD
    names = fill(r, "s", "out", 10, due)
    add(r, "s", "out", "beat", due + 1, "EVERY", 3600000, "TIMES", 7)
    r.copy("s", "s2")
    assert {**task(r, "s2", "beat"), "remaining": 0} == {**task(r, "s", "beat"), "remaining": 0}
    r.execute_command("TW.CANCEL", "s", *names[:5])
    r.execute_command("TW.MOVE", "s2", "t0", "AT", due + 3600000)
    clock.reach(due)
    let_pass(r, due + 1)
    assert sorted(delivered(r, "out")) == sorted(names[5:] + names[1:] + ["beat", "beat"])
    assert tasks(r, "s") == {"beat": due + 1 + 3600000}
    assert tasks(r, "s2") == {"beat": due + 1 + 3600000, "t0": due + 3600000}


def test_a_copy_keeps_the_order_of_equals(clock, r):
    due = clock.now() + AHEAD
    names = [f"t{i * 37 % 101}" for i in range(101)]
    for name in names:
        add(r, "s", "out", name, due)
    r.copy("s", "s2")
    r.delete("s")
    clock.reach(due)
    let_pass(r, due)
    assert delivered(r, "out") == names


def test_swapdb_and_tasks_arrive_where_their_queues_are(clock, server, r):
    due = clock.now() + AHEAD
    there, other = server.client(db=5), server.client(db=6)
    here = fill(r, "s", "out", 10, due)
    theirs = fill(there, "s", "out", 20, due)
    others = fill(other, "s", "out", 5, due)
    r.swapdb(0, 5)
    assert [client.execute_command("TW.LEN", "s") for client in (r, there, other)] == [20, 10, 5]
    fill(r, "s", "out", 3, due, prefix="new")
    clock.reach(due)
    let_pass(r, due)
    assert delivered(r, "out") == theirs + ["new0", "new1", "new2"]
    assert delivered(there, "out") == here
    assert delivered(other, "out") == others


def test_swapdb_with_an_empty_database_and_flushdb_of_it(clock, server, r):
    due = clock.now() + AHEAD
    names = fill(r, "s", "out", 10, due)
    r.swapdb(0, 9)
    r.flushdb()
    clock.reach(due)
    let_pass(r, due)
    assert r.exists("out") == 0
    assert delivered(server.client(db=9), "out") == names


def test_swapdb_while_tasks_wait_for_another_try(server, r):
    r.config_set("tickwheel.target-backoff-ms", 300, "tickwheel.target-tries", 15)
    there = server.client(db=5)
    r.set("out", "text")
    names = fill(r, "s", "out", 10, now_ms())
    wait_until(lambda: int(task(r, "s", "t0")["attempt"]) > 0)
    r.swapdb(0, 5)
    there.delete("out")
    assert wait_delivered(there, "out", 10) == names
    assert r.exists("out") == 0


# Flushing

def test_flushdb_leaves_other_databases_alone(clock, server, r):
    due = clock.now() + AHEAD
    there = server.client(db=5)
    fill(r, "s", "out", 10, due)
    names = fill(there, "s", "out", 10, due)
    r.flushdb()
    assert server.tw()["tasks"] == 10
    clock.reach(due)
    let_pass(r, due)
    assert delivered(there, "out") == names
    assert r.exists("out") == 0


def test_flushall_async_of_200000_tasks_and_the_same_names_again(clock, server, r):
    due = clock.now() + 5000
    fill(r, "s", "out", 200000, due, payload=("n", "old"))
    r.flushall(asynchronous=True)
    names = fill(r, "s", "out", 20000, due, payload=("n", "new"))
    assert server.tw()["tasks"] == 20000
    clock.reach(due)
    wait_until(lambda: server.tw()["reaping"] == 0)
    let_pass(r, due)
    assert delivered(r, "out") == names
    assert {fields["n"] for _, fields in r.xrange("out")} == {"new"}
    assert server.tw()["tasks"] == 0


def test_unlink_of_200000_tasks_gives_their_memory_back(server, r):
    before = server.tw()["bytes"]
    fill(r, "s", "out", 200000, now_ms() + 3600000)
    assert server.tw()["bytes"] > before + 200000 * 20
    r.unlink("s")
    assert server.tw()["tasks"] == 0
    wait_until(lambda: server.tw()["reaping"] == 0, message=lambda: str(server.tw()))
    assert server.tw()["bytes"] < before + 200000 * 20 / 10


# DUMP and RESTORE

def test_restore_brings_back_what_dump_took(clock, r):
    due = clock.now() + 1500
    names = fill(r, "s", "out", 10, due)
    add(r, "s", "list", "l", due, "LIST", payload=("value",))
    add(r, "s", "out", "beat", due + 3600000, "EVERY", 60000, "TIMES", 3, "MAXLEN", 7, "MAXLATE", 5)
    before = {name: task(r, "s", name) for name in (*names, "l", "beat")}
    dump = raw_dump(r, "s")
    r.delete("s")
    r.restore("s2", 0, dump)
    for name, was in before.items():
        found = task(r, "s2", name)
        assert {**found, "remaining": 0} == {**was, "remaining": 0}
    clock.reach(due)
    let_pass(r, due)
    assert delivered(r, "out") == names
    assert r.lrange("list", 0, -1) == ["value"]
    assert tasks(r, "s2") == {"beat": due + 3600000}


def raw_dump(client, key):
    """Returns the reply to DUMP as bytes, even if the client decodes other replies."""
    options = {**client.connection_pool.connection_kwargs, "decode_responses": False}
    with redis.Redis(**options) as binary:
        return binary.dump(key)


def test_restore_of_tasks_that_have_fallen_due_since(clock, r):
    due = clock.now() + 300
    names = fill(r, "s", "out", 10, due)
    dump = raw_dump(r, "s")
    r.delete("s")
    clock.reach(due)
    let_pass(r, due)
    assert r.exists("out") == 0
    r.restore("s", 0, dump)
    assert wait_delivered(r, "out", 10) == names


def test_restore_is_refused_where_the_name_is_taken_and_leaves_no_task_behind(clock, server, r):
    due = clock.now() + AHEAD
    names = fill(r, "s", "out", 10, due)
    with pytest.raises(redis.ResponseError, match="BUSYKEY"):
        r.restore("s", 0, raw_dump(r, "s"))
    assert server.tw()["tasks"] == 10
    clock.reach(due)
    let_pass(r, due)
    assert delivered(r, "out") == names


def test_restore_replace_over_a_live_queue(clock, server, r):
    """The server loads the new value before it unlinks the old value."""
    due = clock.now() + AHEAD
    names = fill(r, "s", "out", 10, due)
    dump = raw_dump(r, "s")
    fill(r, "s", "never", 30, due)
    fill(r, "s", "never", 30, due, prefix="u")
    r.restore("s", 0, dump, replace=True)
    assert server.tw()["tasks"] == 10
    r.restore("s", 0, dump, replace=True)
    assert (server.tw()["tasks"], server.tw()["queues"]) == (10, 1)
    clock.reach(due)
    let_pass(r, due)
    assert delivered(r, "out") == names
    assert r.exists("never", "s") == 0


def test_restore_with_an_expiry_that_has_passed_leaves_nothing_behind(clock, server, r):
    """The server loads the value and frees it again, and never unlinks it."""
    due = clock.now() + AHEAD
    fill(r, "s", "out", 10, due)
    dump = raw_dump(r, "s")
    r.restore("s", 1000, dump, replace=True, absttl=True)
    r.restore("s2", 1000, dump, absttl=True)
    assert r.exists("s", "s2") == 0
    wait_until(lambda: (server.tw()["tasks"], server.tw()["queues"]) == (0, 0),
               message=lambda: str(server.tw()))
    clock.reach(due)
    let_pass(r, due)
    assert r.exists("out") == 0


def test_restore_with_an_expiry_to_come(clock, server, r):
    counters, due = Counters(server), clock.now() + AHEAD
    fill(r, "s", "out", 10, due)
    dump = raw_dump(r, "s")
    r.restore("s", 200, dump, replace=True)
    clock.reach(due - 1000)
    counters.wait("expired_tasks", 10)
    let_pass(r, due)
    assert r.exists("out") == 0


@pytest.mark.parametrize("how", ["DEBUG RELOAD", "DEBUG LOADAOF", "DEBUG RELOAD NOFLUSH MERGE"])
def test_reload_in_place(fleet, clock, how):
    server = fleet.server(appendonly="yes")
    r, due = server.client(), clock.now() + 2500
    names = fill(r, "s", "out", 100, due)
    there = server.client(db=3)
    fill(there, "s", "out", 50, due)
    gone = fill(r, "gone", "never", 10, due)
    r.execute_command("TW.CANCEL", "gone", *gone)
    before = digest(server)
    if "NOFLUSH" in how:
        r.save()
        r.execute_command("TW.SEND", "s", "out", "lost", "AT", due, "PAYLOAD", "n", "v")
        r.execute_command("DEBUG", "RELOAD", "NOSAVE", "NOFLUSH", "MERGE")
    else:
        r.execute_command(*how.split())
    assert digest(server) == before
    assert (server.tw()["tasks"], server.tw()["queues"]) == (150, 2)
    clock.reach(due)
    let_pass(r, due)
    assert delivered(r, "out") == names
    assert delivered(there, "out") == names[:50]
    assert r.exists("never") == 0


# Commands for keys of all types

def test_commands_for_all_keys_are_harmless(clock, server, r):
    due = clock.now() + AHEAD
    names = fill(r, "s", "out", 100, due)
    assert r.type("s") == "tickwheel"
    assert [key for key in r.scan_iter(_type="tickwheel")] == ["s"]
    assert (r.exists("s"), r.dbsize(), r.randomkey(), r.touch("s")) == (1, 1, "s", 1)
    assert (r.object("ENCODING", "s"), r.object("REFCOUNT",
                                                "s"), r.object("IDLETIME", "s") >= 0) == ("raw", 1, True)
    assert "serializedlength" in str(r.debug_object("s"))
    assert r.execute_command("DEBUG", "DIGEST-VALUE", "s") != ["0" * 40]
    assert (r.ttl("s"), r.persist("s")) == (-1, 0)
    r.config_set("maxmemory-policy", "allkeys-lfu")
    assert r.object("FREQ", "s") >= 0
    r.config_set("maxmemory-policy", "noeviction")
    for words in (("GET", "s"), ("LPUSH", "s", "x"), ("XADD", "s", "*", "f", "v"), ("HGETALL", "s"),
                  ("APPEND", "s", "x"), ("SORT", "s"), ("ZADD", "s", 1, "x"), ("PFADD", "s", "x"),
                  ("GETDEL", "s"), ("SADD", "s", "x")):
        with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
            r.execute_command(*words)
    clock.reach(due)
    let_pass(r, due)
    assert delivered(r, "out") == names


def test_the_commands_of_queues_refuse_other_types(r):
    r.set("text", "text")
    for words in (("TW.SEND", "text", "out", "a", "IN", 5, "PAYLOAD", "f", "v"), ("TW.CANCEL", "text", "a"),
                  ("TW.MOVE", "text", "a", "IN", 5), ("TW.GET", "text", "a"), ("TW.LEN", "text"),
                  ("TW.NEXT", "text"), ("TW.SCAN", "text", 0), ("TW.RANGE", "text", "-", "+"),
                  ("TW.FORECAST", "text"), ("TW.PROMOTE", "text", "ALL"), ("TW.INFO", "text")):
        with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
            r.execute_command(*words)
    assert r.get("text") == "text"


# Replicas

RESYNCS = [("yes", "disabled"), ("yes", "on-empty-db"), ("yes", "swapdb"), ("no", "disabled"), ("no", "swapdb")]


@pytest.mark.parametrize("diskless_sync,diskless_load", RESYNCS)
def test_full_resync(fleet, clock, diskless_sync, diskless_load):
    """The replica's old tasks are gone and never fire. The tasks that it gets from the primary fire when it
    is promoted, and not before."""
    master = fleet.server(repl_diskless_sync=diskless_sync)
    replica = fleet.server(repl_diskless_load=diskless_load)
    old_due, due = clock.now() + 1500, clock.now() + 3600000
    r, copy = master.client(), replica.client()
    if diskless_load != "on-empty-db":
        fill(copy, "s", "never", 1000, old_due)
        fill(copy, "old", "never", 10, old_due)
    names = fill(r, "s", "out", 5000, due)
    fill(master.client(db=4), "s", "out", 100, due)
    add(r, "s", "out", "beat", due, "EVERY", 1000, "TIMES", 9, "MISSED", "burst")
    copy.replicaof("127.0.0.1", master.port)
    wait_replica_in_sync(master, replica)
    # Loading beside the old data (swapdb) would put two data sets into one wheel. The server knows that it
    # must not do that.
    assert ("master to parser" in replica.log()
            or "EOF to parser" in replica.log()) == (diskless_load == "on-empty-db")
    assert digest(replica) == digest(master)
    assert (replica.tw()["tasks"], replica.tw()["queues"]) == (5101, 2)
    assert tasks(copy, "s") == tasks(r, "s")
    clock.reach(old_due)
    let_pass(r, old_due)
    wait_replica_in_sync(master, replica)
    assert copy.exists("never", "out") == 0
    copy.replicaof("NO", "ONE")
    promoted = 0
    while promoted < 5001:
        some = copy.execute_command("TW.PROMOTE", "s", "ALL")
        assert some > 0
        promoted += some
    assert wait_delivered(copy, "out", 5001) == [*names, "beat"]
    assert task(copy, "s", "beat")["times"] == 8


def test_a_primary_that_dies_in_the_middle_of_a_full_resync(fleet):
    """The replica has loaded a part of the data directly from the link. It drops that part, and later loads
    the whole data set."""
    master = fleet.server(repl_diskless_sync="yes",
                          rdb_key_save_delay=4000,
                          appendonly="yes",
                          aof_use_rdb_preamble="no")
    replica = fleet.server(repl_diskless_load="on-empty-db", loading_process_events_interval_bytes=1024)
    r, due = master.client(), now_ms() + 3600000
    for i in range(300):
        fill(r, f"s{i}", "out", 50, due)
    replica.once("REPLICAOF", "127.0.0.1", master.port)
    wait_until(lambda: replica.info("persistence")["loading"] == 1)
    master.kill()
    wait_until(lambda: replica.info("persistence")["loading"] == 0)
    # A replica with Redis 8 may have all data nevertheless: it is connected to the saving child, which lives
    # on.
    found = replica.tw()["tasks"], replica.tw()["queues"], replica.once("DBSIZE")
    assert found in ((0, 0, 0), (15000, 300, 300))
    master.start()
    wait_replica_in_sync(master, replica)
    assert replica.tw()["tasks"] == 15000
    assert digest(replica) == digest(master)


def test_a_replica_that_was_cut_off_goes_on_from_the_backlog(fleet):
    master = fleet.server()
    replica = fleet.server(replicaof=master)
    wait_replica_in_sync(master, replica)
    r, due = master.client(), now_ms() + 500
    names = fill(r, "s", "out", 1000, due)
    with frozen(replica):
        master.once("CLIENT", "KILL", "TYPE", "replica")
        wait_delivered(r, "out", 1000)
    wait_replica_in_sync(master, replica)
    assert master.info("stats")["sync_partial_ok"] >= 1
    assert digest(replica) == digest(master)
    assert delivered(replica.client(), "out") == names


def test_a_chain_of_replicas(fleet):
    first = fleet.server()
    second = fleet.server(replicaof=first)
    wait_replica_in_sync(first, second)
    third = fleet.server(replicaof=second)
    wait_replica_in_sync(second, third)
    r, due = first.client(), now_ms() + 500
    names = fill(r, "s", "out", 2000, due, step=1)
    fill(r, "later", "out", 100, due + 3600000)
    r.rename("later", "later2")
    wait_delivered(r, "out", 2000)
    for one in (second, third):
        wait_replica_in_sync(first, one)
        assert digest(one) == digest(first)
        assert delivered(one.client(), "out") == names
        assert one.tw()["tasks"] == 100
        assert one.tw()["delivered"] == 0


def test_life_cycle_commands_reach_replicas(fleet):
    master = fleet.server()
    replica = fleet.server(replicaof=master)
    wait_replica_in_sync(master, replica)
    r, due = master.client(), now_ms() + 3600000
    for i, act in enumerate([
            lambda key: r.delete(key), lambda key: r.unlink(key), lambda key: r.rename(key, "renamed"),
            lambda key: master.is_valkey() or master.once("MOVE", key, 3), lambda key: r.copy(key, "copied"),
            lambda key: r.set(key, "text"), lambda key: r.pexpire(key, 1), lambda key: r.swapdb(0, 7),
            lambda key: r.execute_command("TW.CANCEL", key, "t3", "t4")
    ]):
        fill(r, f"s{i}", "out", 10, due + i)
        act(f"s{i}")
        wait_replica_in_sync(master, replica)
        # compared again and again, as a key may expire between two digests
        wait_until(lambda: digest(replica) == digest(master), message=f"step {i}: the replica holds other keys")
        wait_until(lambda: replica.tw()["tasks"] == master.tw()["tasks"],
                   message=lambda: f"{replica.tw()} {master.tw()}")
    r.flushall()
    wait_replica_in_sync(master, replica)
    assert (replica.tw()["tasks"], replica.tw()["queues"]) == (0, 0)


def test_info_of_a_renamed_queue(server, r):
    fill(r, "s", "out", 3, now_ms() + 3600000)
    r.rename("s", "s2")
    assert Raw(server, protocol=3)("TW.INFO", "s2")["tasks"] == 3
    assert "no such key" in Raw(server, protocol=3)("TW.INFO", "s")
