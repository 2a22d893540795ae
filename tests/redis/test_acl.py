# SPDX-License-Identifier: MIT
"""Users who may not do everything. Schedule and target are both keys, and ACL rules apply to both."""
import pytest
import redis

from harness import delivered, now_ms, tasks, wait_until

HOUR = 3600 * 1000
DUE = ("IN", HOUR, "PAYLOAD", "f", "v")


def user(server, *rules):
    """A client of a user with these rules."""
    server.client().execute_command("ACL", "SETUSER", "someone", "reset", "on", ">secret", *rules)
    return server.client(username="someone", password="secret")


def refuses(client, *words):
    with pytest.raises(redis.exceptions.NoPermissionError):
        client.execute_command(*words)


@pytest.mark.parametrize("words", [
    ("TW.ADD", "s", "q", "a", *DUE), ("TW.CANCEL", "s", "a"), ("TW.MOVE", "s", "a", "IN", "5"), ("TW.GET", "s", "a"),
    ("TW.LEN", "s"), ("TW.NEXT", "s"), ("TW.SCAN", "s", 0), ("TW.RANGE", "s", "-", "+"), ("TW.FORECAST", "s"),
    ("TW.DRAIN", "s"), ("TW.INFO", "s")], ids=lambda words: words[0])
def test_a_command_has_to_be_allowed(server, words):
    server.client().execute_command("TW.ADD", "s", "q", "old", *DUE)
    refuses(user(server, "~*", "+@all", f"-{words[0]}"), *words)
    user(server, "~*", "-@all", f"+{words[0]}").execute_command(*words)


def test_both_keys_have_to_be_allowed(server):
    refuses(user(server, "+@all", "~s"), "TW.ADD", "s", "q", "a", *DUE)
    refuses(user(server, "+@all", "~q"), "TW.ADD", "s", "q", "a", *DUE)
    assert server.client().dbsize() == 0
    assert user(server, "+@all", "~s", "~q").execute_command("TW.ADD", "s", "q", "a", *DUE) == "a"


def test_a_user_cannot_write_where_he_may_not_by_way_of_a_task(server, r):
    """The delivery runs with all rights; so it is the adding that is refused."""
    client = user(server, "+tw.add", "+tw.drain", "~mine:*")
    refuses(client, "TW.ADD", "mine:s", "theirs:q", "a", "IN", 0, "PAYLOAD", "f", "v")
    client.execute_command("TW.ADD", "mine:s", "mine:q", "b", "IN", 0, "PAYLOAD", "f", "v")
    wait_until(lambda: r.exists("mine:q"))
    assert r.exists("theirs:q") == 0


def test_the_target_needs_the_right_to_write(server):
    refuses(user(server, "+@all", "%RW~s", "%R~q"), "TW.ADD", "s", "q", "a", *DUE)


def test_the_schedule_needs_the_right_to_write(server, r):
    r.execute_command("TW.ADD", "s", "q", "a", *DUE)
    client = user(server, "+@all", "%R~s", "%RW~q")
    for words in (("TW.ADD", "s", "q", "b", *DUE), ("TW.CANCEL", "s", "a"), ("TW.MOVE", "s", "a", "IN", "5"), ("TW.DRAIN", "s")):
        refuses(client, *words)
    assert list(tasks(r, "s")) == ["a"]


@pytest.mark.parametrize("words", [
    ("TW.GET", "s", "a"), ("TW.LEN", "s"), ("TW.NEXT", "s"), ("TW.SCAN", "s", 0), ("TW.RANGE", "s", "-", "+"),
    ("TW.FORECAST", "s"), ("TW.INFO", "s")], ids=lambda words: words[0])
def test_queries_need_the_right_to_read_alone(server, words):
    server.client().execute_command("TW.ADD", "s", "q", "a", *DUE)
    user(server, "+@all", "%R~s").execute_command(*words)
    refuses(user(server, "+@all", "%W~s"), *words)


def test_a_task_is_delivered_though_its_user_is_gone(server, r):
    client = user(server, "+tw.add", "~s", "~q")
    client.execute_command("TW.ADD", "s", "q", "a", "AT", now_ms() + 300, "PAYLOAD", "f", "v")
    r.acl_deluser("someone")
    wait_until(lambda: delivered(r, "q") == ["a"])


def test_rules_hold_in_transactions_and_scripts(server, r):
    client = user(server, "+@all", "~s")
    pipe = client.pipeline(transaction=True)
    pipe.execute_command("TW.ADD", "s", "q", "a", *DUE)
    with pytest.raises(redis.exceptions.RedisError):
        pipe.execute()
    with pytest.raises(redis.exceptions.RedisError):
        client.eval("return redis.call('TW.ADD', KEYS[1], 'q', 'a', 'IN', 3600000, 'PAYLOAD', 'f', 'v')", 1, "s")
    assert r.dbsize() == 0


@pytest.mark.parametrize("words,allowed", [
    (("TW.ADD", "s", "q", "a", *DUE), True), (("TW.ADD", "s", "other", "a", *DUE), False),
    (("TW.ADD", "other", "q", "a", *DUE), False), (("TW.LEN", "s"), True), (("TW.LEN", "q"), True),
    (("TW.LEN", "other"), False)], ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else str(value))
def test_dry_run(server, r, words, allowed):
    user(server, "+tw.add", "+tw.len", "~s", "~q")
    answer = r.execute_command("ACL", "DRYRUN", "someone", *words)
    assert (answer == "OK") == allowed, answer
