# SPDX-License-Identifier: MIT
"""Users with limited rights. Queue and target are both keys, and ACL rules apply to both."""
import contextlib
import os
import re

import pytest
import redis

from harness import ROOT, delivered, now_ms, tasks, wait_replica_in_sync, wait_until
from situations import meddled, wait_dead

HOUR = 3600 * 1000
DUE = ("IN", HOUR, "PAYLOAD", "f", "v")


def user(server, *rules):
    """Returns a client that is logged in as a user with these rules."""
    server.client().execute_command("ACL", "SETUSER", "someone", "reset", "on", ">secret", *rules)
    return server.client(username="someone", password="secret")


def refuses(client, *words):
    with pytest.raises(redis.exceptions.NoPermissionError):
        client.execute_command(*words)


@pytest.mark.parametrize("words", [("TW.SEND", "s", "q", "a", *DUE), ("TW.CANCEL", "s", "a"),
                                   ("TW.MOVE", "s", "a", "IN", "5"), ("TW.GET", "s", "a"), ("TW.LEN", "s"),
                                   ("TW.NEXT", "s"), ("TW.SCAN", "s", 0), ("TW.RANGE", "s", "-", "+"),
                                   ("TW.FORECAST", "s"), ("TW.PROMOTE", "s", "ALL"), ("TW.INFO", "s")],
                         ids=lambda words: words[0])
def test_a_command_has_to_be_allowed(server, words):
    server.client().execute_command("TW.SEND", "s", "q", "old", *DUE)
    refuses(user(server, "~*", "+@all", f"-{words[0]}"), *words)
    user(server, "~*", "-@all", f"+{words[0]}").execute_command(*words)


def test_both_keys_have_to_be_allowed(server):
    refuses(user(server, "+@all", "~s"), "TW.SEND", "s", "q", "a", *DUE)
    refuses(user(server, "+@all", "~q"), "TW.SEND", "s", "q", "a", *DUE)
    assert server.client().dbsize() == 0
    assert user(server, "+@all", "~s", "~q").execute_command("TW.SEND", "s", "q", "a", *DUE) == "a"


def test_a_user_cannot_write_where_he_may_not_by_way_of_a_task(server, r):
    """The delivery has all rights, so the server refuses TW.SEND."""
    client = user(server, "+tw.send", "+tw.promote", "~mine:*")
    refuses(client, "TW.SEND", "mine:s", "theirs:q", "a", "IN", 0, "PAYLOAD", "f", "v")
    client.execute_command("TW.SEND", "mine:s", "mine:q", "b", "IN", 0, "PAYLOAD", "f", "v")
    wait_until(lambda: r.exists("mine:q"))
    assert r.exists("theirs:q") == 0


def test_the_target_needs_the_right_to_write(server):
    refuses(user(server, "+@all", "%RW~s", "%R~q"), "TW.SEND", "s", "q", "a", *DUE)


def test_the_queue_needs_the_right_to_write(server, r):
    r.execute_command("TW.SEND", "s", "q", "a", *DUE)
    client = user(server, "+@all", "%R~s", "%RW~q")
    for words in (("TW.SEND", "s", "q", "b", *DUE), ("TW.CANCEL", "s", "a"), ("TW.MOVE", "s", "a", "IN", "5"),
                  ("TW.PROMOTE", "s", "ALL")):
        refuses(client, *words)
    assert list(tasks(r, "s")) == ["a"]


@pytest.mark.parametrize("words", [
    ("TW.GET", "s", "a"), ("TW.LEN", "s"), ("TW.NEXT", "s"), ("TW.SCAN", "s", 0), ("TW.RANGE", "s", "-", "+"),
    ("TW.FORECAST", "s"), ("TW.INFO", "s")], ids=lambda words: words[0])
def test_queries_need_the_right_to_read_alone(server, words):
    server.client().execute_command("TW.SEND", "s", "q", "a", *DUE)
    user(server, "+@all", "%R~s").execute_command(*words)
    refuses(user(server, "+@all", "%W~s"), *words)


def test_a_task_is_delivered_though_its_user_is_gone(server, r):
    client = user(server, "+tw.send", "~s", "~q")
    client.execute_command("TW.SEND", "s", "q", "a", "AT", now_ms() + 300, "PAYLOAD", "f", "v")
    r.acl_deluser("someone")
    wait_until(lambda: delivered(r, "q") == ["a"])


def test_rules_hold_in_transactions_and_scripts(server, r):
    client = user(server, "+@all", "~s")
    pipe = client.pipeline(transaction=True)
    pipe.execute_command("TW.SEND", "s", "q", "a", *DUE)
    with pytest.raises(redis.exceptions.RedisError):
        pipe.execute()
    with pytest.raises(redis.exceptions.RedisError):
        client.eval("return redis.call('TW.SEND', KEYS[1], 'q', 'a', 'IN', 3600000, 'PAYLOAD', 'f', 'v')", 1,
                    "s")
    assert r.dbsize() == 0


@pytest.mark.parametrize("words,allowed", [(("TW.SEND", "s", "q", "a", *DUE), True),
                                           (("TW.SEND", "s", "other", "a", *DUE), False),
                                           (("TW.SEND", "other", "q", "a", *DUE), False),
                                           (("TW.LEN", "s"), True), (("TW.LEN", "q"), True),
                                           (("TW.LEN", "other"), False)],
                         ids=lambda value: " ".join(map(str, value))
                         if isinstance(value, tuple) else str(value))
def test_dry_run(server, r, words, allowed):
    user(server, "+tw.send", "+tw.len", "~s", "~q")
    answer = r.execute_command("ACL", "DRYRUN", "someone", *words)
    assert (answer == "OK") == allowed, answer


# Targets named in tasks. A delivery has all rights, so the module checks the right to the target when a task
# is filed, moved or promoted.

CALLS = {"plain": lambda client, *words: client.execute_command(*words),
         "MULTI": lambda client, *words: in_transaction(client, *words),
         "script": lambda client, *words: client.eval("return redis.call(unpack(ARGV))", 1, "s", *words),
         "function": lambda client, *words: client.fcall("any", 1, "s", *words)}
FUNCTION = """#!lua name=any
redis.register_function('any', function(keys, argv) return redis.call(unpack(argv)) end)
"""


def in_transaction(client, *words):
    pipe = client.pipeline(transaction=True)
    pipe.execute_command(*words)
    return pipe.execute()[0]


@pytest.fixture(params=CALLS)
def call(r, request):
    """A function with which a client calls a command: plain, in MULTI, from a script or from a function."""
    r.function_load(FUNCTION)
    return CALLS[request.param]


def state(r, *keys):
    return [r.exists(*keys), r.dump("s"), r.execute_command("TW.SCAN", "s", 0, "COUNT", 1000)]


def denied(r, run, client, key, *words):
    """Asserts that the command is refused, that the error names the key, and that nothing has changed."""
    before = state(r, "q", "secret")
    r.acl_log_reset()
    with pytest.raises(redis.exceptions.RedisError,
                       match=f"the target of a task is '{key}': expected a key that the user may write"):
        run(client, *words)
    assert state(r, "q", "secret") == before
    assert [(entry["object"], entry["username"], entry["reason"])
            for entry in r.acl_log()] == [(key, "someone", "key")]


@pytest.mark.parametrize("rules", [("~s", "~q"), ("~s", "%R~secret"), ("%RW~s", "~q", "%R~*")], ids=" ".join)
def test_moving_needs_the_right_to_write_the_target(server, r, call, rules):
    r.execute_command("TW.SEND", "s", "secret", "a", *DUE)
    client = user(server, "+@all", *rules)
    denied(r, call, client, "secret", "TW.MOVE", "s", "a", "IN", 0)
    denied(r, call, client, "secret", "TW.MOVE", "s", "a", "IN", 0, "GT")
    assert call(user(server, "+@all", "~s", "%W~secret"), "TW.MOVE", "s", "a", "IN", 0) == 1
    wait_until(lambda: delivered(r, "secret") == ["a"])


def test_moving_what_is_not_there_tells_nothing(server, r):
    r.execute_command("TW.SEND", "s", "secret", "a", *DUE)
    assert user(server, "+@all", "~s").execute_command("TW.MOVE", "s", "b", "IN", 0) is None


def test_promoting_needs_the_right_to_write_each_target(server, r, call):
    """If the user may not write the target of one task, none is promoted. The position of this task among the
    others does not matter."""
    for i in range(30):
        target = "secret" if i == 20 else "q"
        r.execute_command("TW.SEND", "s", target, f"a{i}", "IN", HOUR + 1000 * i,
                          *(("LIST", ) if i % 2 else ()), "PAYLOAD", *(("v", ) if i % 2 else ("f", "v")))
    client = user(server, "+@all", "~s", "~q")
    denied(r, call, client, "secret", "TW.PROMOTE", "s", "ALL")
    denied(r, call, client, "secret", "TW.PROMOTE", "s", "IDS", 21, *[f"a{i}" for i in range(21)])
    r.execute_command("TW.CANCEL", "s", *[f"a{i}" for i in range(1, 20, 2)])  # A key has one type.
    first = [f"a{i}" for i in range(0, 20, 2)]
    assert call(client, "TW.PROMOTE", "s", "IDS", 10, *first) == 10
    wait_until(lambda: delivered(r, "q") == first)
    denied(r, call, client, "secret", "TW.PROMOTE", "s", "IDS", 1, "a20")
    assert call(user(server, "+@all", "~s", "~q", "%W~secret"), "TW.PROMOTE", "s", "IDS", 1, "a20") == 1
    wait_until(lambda: delivered(r, "secret") == ["a20"])


def test_a_target_for_each_task(server, r):
    """The rights to each target are checked."""
    for i in range(1000):
        r.execute_command("TW.SEND", "s", f"mine:{i}" if i != 700 else "secret", f"a{i}", "IN", HOUR + i,
                          "PAYLOAD", "f", "v")
    client = user(server, "+@all", "~s", "~mine:*")
    denied(r, CALLS["plain"], client, "secret", "TW.PROMOTE", "s", "ALL")
    for i in (0, 699, 999):
        assert client.execute_command("TW.MOVE", "s", f"a{i}", "IN", 0) == 1
    denied(r, CALLS["plain"], client, "secret", "TW.MOVE", "s", "a700", "IN", 0)


def test_replacing_a_task_needs_the_right_to_write_the_new_target_alone(server, r):
    """Replacing cancels the old task, which writes no target."""
    r.execute_command("TW.SEND", "s", "secret", "a", *DUE)
    client = user(server, "+@all", "~s", "~q")
    refuses(client, "TW.SEND", "s", "secret", "a", *DUE)
    assert client.execute_command("TW.SEND", "s", "q", "a", "IN", 0, "PAYLOAD", "f", "v") == "a"
    wait_until(lambda: delivered(r, "q") == ["a"])
    assert r.exists("secret") == 0


def test_the_keys_of_each_selector_count_whatever_commands_it_allows(server, r):
    r.execute_command("TW.SEND", "s", "secret", "a", *DUE)
    for rules in (("+@all", "~s", "(+xadd ~secret)"), ("+@read", "~*", "(+@all ~s)")):
        client = user(server, *rules)
        refuses(client, "TW.SEND", "s", "secret", "b", *DUE)
        assert client.execute_command("TW.MOVE", "s", "a", "IN", 2 * HOUR) == 1
    refuses(user(server, "+@read", "%R~*", "(+@all ~s)"), "TW.MOVE", "s", "a", "IN", HOUR)


def test_rules_that_change_count_at_once(server, r):
    """New rules apply within an open connection, and within a transaction."""
    r.execute_command("TW.SEND", "s", "secret", "a", *DUE)
    client = user(server, "+@all", "~s", "~secret")
    assert client.execute_command("TW.MOVE", "s", "a", "IN", HOUR) == 1
    pipe = client.pipeline(transaction=True)
    pipe.execute_command("TW.MOVE", "s", "a", "IN", HOUR)
    pipe.execute_command("ACL", "SETUSER", "someone", "resetkeys", "~s")
    pipe.execute_command("TW.MOVE", "s", "a", "IN", HOUR)
    first, _, last = pipe.execute(raise_on_error=False)
    assert first == 1 and isinstance(last, redis.exceptions.NoPermissionError), last
    refuses(client, "TW.PROMOTE", "s", "ALL")


def test_rules_of_the_default_user_that_change_count_at_once(fleet, tmp_path):
    """Rules change by command, and by ACL LOAD, which creates all users anew except the default user."""
    rules = tmp_path / "users.acl"
    rules.write_text("user default on nopass ~* &* +@all\n")
    server = fleet.server(aclfile=str(rules))
    r = server.client()
    r.execute_command("TW.SEND", "s", "secret", "a", *DUE)
    for change in ("ACL SETUSER default resetkeys ~s", "ACL LOAD"):
        rules.write_text("user default on nopass ~* &* +@all\n")
        r.execute_command("ACL", "LOAD")
        r = server.client()
        assert r.execute_command("TW.MOVE", "s", "a", "IN", HOUR) == 1
        rules.write_text("user default on nopass ~s &* +@all\n")
        r.execute_command(*change.split())
        refuses(server.client(), "TW.MOVE", "s", "a", "IN", HOUR)
        refuses(server.client(), "TW.PROMOTE", "s", "ALL")


def test_the_server_itself_has_all_rights(fleet):
    """Commands in the log or from the replication link were allowed when the server first ran them."""
    rules = "default on nopass resetkeys +@all"
    server = fleet.server(appendonly="yes")
    r = server.client()
    r.execute_command("TW.SEND", "s", "q", "a", *DUE)
    r.execute_command("TW.SEND", "s", "q", "b", *DUE)
    replica = fleet.server(replicaof=server, user=rules)
    wait_replica_in_sync(server, replica)
    far = now_ms() + 10 * HOUR
    assert r.execute_command("TW.MOVE", "s", "a", "AT", far) == 1
    assert in_transaction(r, "TW.MOVE", "s", "b", "AT", far) == 1
    wait_replica_in_sync(server, replica)
    for changed in (replica, server):
        if changed is server:
            server.options["user"] = rules
            server.restart()
        changed.once("ACL", "SETUSER", "default", "allkeys")
        assert changed.once("TW.RANGE", "s", "-", "+") == [["a", far, far], ["b", far, far]]


@pytest.mark.parametrize("run", ["plain", "script"])
def test_other_modules_have_the_rights_of_whom_they_call_for(fleet, run):
    """A call without a user counts as the server's own. A module can also call as the user who called it."""
    server = meddled(fleet)
    r = server.client()
    r.execute_command("TW.SEND", "s", "secret", "a", *DUE)
    client = user(server, "+@all", "~s")
    assert CALLS[run](client, "MEDDLE.CALL", "SERVER", "TW.MOVE", "s", "a", "IN", HOUR) == 1
    denied(r, CALLS[run], client, "secret", "MEDDLE.CALL", "USER", "TW.MOVE", "s", "a", "IN", HOUR)
    denied(r, CALLS[run], client, "secret", "MEDDLE.CALL", "USER", "TW.PROMOTE", "s", "ALL")
    assert CALLS[run](client, "MEDDLE.CALL", "SERVER", "TW.PROMOTE", "s", "ALL") == 1


# Rights that equal the right to write any key: docs/redis.md says so

def test_internal_commands_are_refused_from_clients(server, r):
    r.execute_command("TW.SEND", "s", "q", "a", *DUE)
    for words in (("TW.LOAD", "s", "x"), ("TW.FIRED", "s", "ONCE", "a")):
        with pytest.raises(redis.exceptions.ResponseError, match="only"):
            r.execute_command(*words)


@contextlib.contextmanager
def filed(clock, r):
    """Files a task for `secret` that is due only after the body of the `with` statement."""
    due = clock.now() + 500
    r.execute_command("TW.SEND", "s", "secret", "a", "AT", due, "PAYLOAD", "f", "v")
    try:
        yield
    finally:
        clock.reach(due)


def test_restore_writes_any_key(clock, server, r):
    with filed(clock, r):
        value = server.client(decode_responses=False).dump("s")
        r.delete("s")
    user(server, "+restore", "~w:*").restore("w:1", 0, value)
    wait_until(lambda: delivered(r, "secret") == ["a"])


RENAMES = [("COPY", "s", "w:1"), ("RENAME", "s", "w:1"), ("RENAMENX", "s", "w:1")]


@pytest.mark.parametrize("words", RENAMES, ids=" ".join)
def test_copies_and_renamed_queues_write_where_their_tasks_say(clock, server, r, words):
    client = user(server, "+@all", "~s", "~w:*")
    with filed(clock, r):
        client.execute_command(*words)
    wait_until(lambda: delivered(r, "secret") == ["a"] * (2 if words[0] == "COPY" else 1))


@pytest.mark.parametrize("words", RENAMES, ids=" ".join)
def test_who_copies_or_renames_a_queue_can_still_not_move_its_tasks(server, r, words):
    r.execute_command("TW.SEND", "s", "secret", "a", *DUE)
    client = user(server, "+@all", "~s", "~w:*")
    client.execute_command(*words)
    refuses(client, "TW.MOVE", "w:1", "a", "IN", 0)
    refuses(client, "TW.PROMOTE", "w:1", "ALL")
    assert (list(tasks(r, "w:1")), r.exists("secret")) == (["a"], 0)


def test_moving_a_queue_to_another_database_writes_there(clock, server, r):
    client = user(server, "+@all", "~s")
    with filed(clock, r):
        client.execute_command("MOVE", "s", 1)
    wait_until(lambda: delivered(server.client(db=1), "secret") == ["a"])
    assert r.exists("secret") == 0


def test_a_refused_task_dies_though_its_user_may_do_nothing_more(server, r):
    r.config_set("tickwheel.target-tries", 1)
    r.set("q", "not a stream")
    user(server, "+tw.send", "~s", "~q").execute_command("TW.SEND", "s", "q", "a", "IN", 0, "PAYLOAD", "f", "v")
    wait_dead(r, "s")


def test_the_tasks_of_a_removed_user_are_found_as_in_the_document(server, r):
    """Runs the two blocks of docs/redis.md. They find and cancel all tasks that the user could have filed,
    and all other tasks stay."""
    with open(os.path.join(ROOT, "docs", "redis.md"), encoding="utf-8") as file:
        rights = file.read().split("\n## Rights\n")[1].split("\n## ")[0]
    recipe, steps = re.findall(r"```python\n(.*?)```", rights, re.DOTALL)
    client = user(server, "+tw.send", "+tw.put", "~mine:*", "%W~open")
    for i in range(500):
        client.execute_command("TW.SEND", f"mine:{i % 3}", "open" if i % 2 else "mine:q", f"a{i}", "IN", HOUR,
                               "EVERY", 1, "PAYLOAD", "f", "v")
    client.execute_command("TW.PUT", "mine:0", "work", "IN", HOUR, "PAYLOAD", "v")
    r.execute_command("TW.PUT", "theirs", "stays:work", "IN", HOUR, "PAYLOAD", "v")
    for queue, target in (("mine:0", "secret"), ("theirs", "open"), ("theirs", "mine:q")):
        r.execute_command("TW.SEND", queue, target, f"stays:{target}", *DUE)
    names = {"r": r, "user": "someone"}
    exec(recipe, names)  # pylint: disable=exec-used
    found = list(names["tasks_of"](r, "someone"))
    assert sorted(found) == sorted([("mine:0", "work", "")] + [
        (f"mine:{i % 3}", f"a{i}", "open" if i % 2 else "mine:q") for i in range(500)])
    exec(steps, names)  # pylint: disable=exec-used
    assert [sorted(tasks(r, name)) for name in ("mine:0", "theirs")] == [["stays:secret"],
                                                                         ["stays:mine:q", "stays:open",
                                                                          "stays:work"]]
    assert "someone" not in r.acl_users() and r.exists("mine:1", "mine:2") == 0
    refused = server.client(username="someone", password="secret")
    with pytest.raises(redis.exceptions.RedisError):
        refused.ping()
