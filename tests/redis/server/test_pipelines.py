# SPDX-License-Identifier: MIT
"""Many commands in one event-loop iteration: a server reads all commands of a pipeline in one. Each finds what
those before it have left, whatever the next one looks at, and tasks keep their order."""
import itertools
import random

import pytest
from harness import Raw, delivered, now_ms, wait_until
from situations import frozen, meddled

SOON = 3600000  # Milliseconds: later than the end of each test


def piped(server, commands):
    """Sends all commands at once, and returns their replies."""
    raw = Raw(server)
    raw.send_all(commands)
    return [raw.read() for _ in commands]


def adds(count, key="s", target="t", due=None):
    due = due or now_ms() + SOON
    return [["TW.SEND", key, target, f"id{i}", "AT", due + i, "PAYLOAD", "f", i] for i in range(count)]


def filled(key="s", count=20):
    """Gives a queue tasks that stay."""
    return [["TW.SEND", key, "t", f"filler{i}", "IN", SOON, "PAYLOAD", "f", "v"] for i in range(count)]


@pytest.mark.parametrize("count", [1, 2, 5, 9, 30])
@pytest.mark.parametrize("look, reply", [
    (["TW.LEN", "s"], lambda n: n),
    (["EXISTS", "s"], lambda n: 1),
    (["TW.CANCEL", "s"] + [f"id{i}" for i in range(40)], lambda n: [1] * n + [0] * (40 - n)),
    (["TW.PROMOTE", "s", "ALL"], lambda n: n),
    (["EVAL", "return redis.call('TW.LEN', 's')", "0"], lambda n: n),
])
def test_every_command_finds_the_tasks_of_the_commands_before_it(server, count, look, reply):
    assert piped(server, adds(count) + [look])[-1] == reply(count)


def test_ids_of_the_same_name_in_a_row(server):
    """All short sequences of the three commands for one id. The model is a set."""
    due = now_ms() + SOON
    piped(server, filled())
    for words in itertools.product(("add", "cancel", "move", "nx", "xx"), repeat=4):
        commands, there, expected = [], False, []
        for word in words:
            commands.append({"add": ["TW.SEND", "s", "t", "id", "AT", due, "PAYLOAD", "f", "v"],
                             "nx": ["TW.SEND", "s", "t", "id", "AT", due, "NX", "PAYLOAD", "f", "v"],
                             "xx": ["TW.SEND", "s", "t", "id", "AT", due, "XX", "PAYLOAD", "f", "v"],
                             "cancel": ["TW.CANCEL", "s", "id"],
                             "move": ["TW.MOVE", "s", "id", "AT", due + 1]}[word])
            expected.append({"add": "id", "nx": None if there else "id", "xx": "id" if there else None,
                             "cancel": [int(there)], "move": 1 if there else None}[word])
            there = there if word in ("move", "xx") else word in ("add", "nx")
        commands += [["TW.CANCEL", "s", "id"], ["TW.LEN", "s"]]
        got = piped(server, commands)
        got = [word.decode() if isinstance(word, bytes) else word for word in got]
        assert got == expected + [[int(there)], 20], words


def test_the_same_id_twice_in_one_cancel(server):
    commands = [["TW.CANCEL", "s", "id1", "id1", "id2", "id1"], ["TW.LEN", "s"]]
    assert piped(server, adds(3) + commands)[-2:] == [[1, 0, 1, 0], 1]


@pytest.mark.parametrize("seed", range(4))
def test_any_order_over_two_queues(server, seed):
    chance = random.Random(seed)
    model, commands, expected = {"a": set(), "b": set()}, [], []
    for _ in range(4000):
        key, name = chance.choice("ab"), f"id{chance.randrange(12)}"
        word = chance.choice(["add", "add", "cancel", "move", "len", "exists"])
        if word == "add":
            commands.append(["TW.SEND", key, "t", name, "AT", now_ms() + SOON, "PAYLOAD", "f", "v"])
            expected.append(name)
            model[key].add(name)
        elif word == "len" or word == "exists":
            commands.append(["TW.LEN" if word == "len" else "EXISTS", key])
            expected.append(len(model[key]) if word == "len" else int(bool(model[key])))
        else:
            move = word == "move"
            commands.append(["TW.MOVE", key, name, "IN", SOON] if move else ["TW.CANCEL", key, name])
            there = name in model[key]
            expected.append((1 if there else None) if move else [int(there)])
            if not move:
                model[key].discard(name)
    got = piped(server, commands)
    assert [word.decode() if isinstance(word, bytes) else word for word in got] == expected


@pytest.mark.parametrize("last, left", [
    (["RENAME", "s", "other"], {"other": 5}),
    (["COPY", "s", "other"], {"s": 5, "other": 5}),
    (["COPY", "s", "s", "DB", "1"], {"s": 5}),
    (["DEL", "s"], {}),
    (["UNLINK", "s"], {}),
    (["FLUSHDB"], {}),
    (["FLUSHALL", "ASYNC"], {}),
    (["SET", "s", "text"], {}),
    (["SWAPDB", "0", "1"], {}),
    (["MOVE", "s", "1"], {}),
])
def test_the_key_goes_immediately_after_its_tasks_came(server, r, last, left):
    piped(server, adds(5) + [last])
    for key, count in left.items():
        assert r.execute_command("TW.LEN", key) == count
    everything = sum(r.execute_command("TW.LEN", key) for key in r.keys() if r.type(key) != "string")
    assert everything == sum(left.values())
    elsewhere = 5 if last[0] in ("SWAPDB", "MOVE") or "DB" in last else 0
    assert server.client(db=1).execute_command("TW.LEN", "s") == elsewhere
    assert int(r.info("tickwheel")["tickwheel_tasks"]) == everything + elsewhere
    assert piped(server, [["DEBUG", "RELOAD"], ["PING"]])[-1] == "PONG"


@pytest.mark.parametrize("look, reply", [
    (["DEBUG", "RELOAD"], "OK"),
    (["EVAL", "return string.match(redis.call('INFO', 'tickwheel'), 'tickwheel_tasks:(%d+)')", "0"], "25"),
])
def test_the_server_sees_the_tasks_of_the_commands_before_it(server, r, look, reply):
    piped(server, filled())
    assert piped(server, adds(5) + [look])[-1] == reply
    assert r.execute_command("TW.LEN", "s") == 25


def test_a_dump_has_the_tasks_of_the_commands_before_it(server, r):
    piped(server, filled())
    client = server.client(decode_responses=False)
    together = client.pipeline(transaction=False)
    for command in adds(5) + [["DUMP", "s"]]:
        together.execute_command(*command)
    client.execute_command("RESTORE", "other", 0, together.execute()[-1])
    assert r.execute_command("TW.LEN", "other") == 25


def test_memory_usage_is_that_after_the_commands_before_it(server):
    piped(server, filled())
    small = ["TW.SEND", "s", "t", "id", "IN", SOON, "PAYLOAD", "f", "x"]
    usage = ["MEMORY", "USAGE", "s"]
    before = piped(server, [usage])[-1]
    with_task = piped(server, [small, usage])[-1]
    assert with_task > before
    assert piped(server, [["TW.CANCEL", "s", "id"], usage])[-1] < with_task


def test_a_snapshot_has_the_tasks_of_the_commands_before_it(server, r):
    piped(server, adds(5) + [["TW.CANCEL", "s", "id0"], ["SAVE"]])
    server.kill()
    server.start()
    assert server.client().execute_command("TW.LEN", "s") == 4


def test_a_cancelled_task_is_freed_before_the_reply(server, r):
    size = 4 << 20
    raw = Raw(server)
    raw("TW.SEND", "s", "t", "other", "IN", SOON, "PAYLOAD", "f", "v")
    raw("TW.SEND", "s", "t", "big", "IN", SOON, "PAYLOAD", "f", "x" * size)
    before = r.info("memory")["used_memory"]
    raw("TW.CANCEL", "s", "big")
    assert r.info("memory")["used_memory"] < before - size // 2


def test_a_client_that_was_blocked_has_its_reply_after_the_task_was_freed(server, r):
    """The server serves it at the end of an iteration."""
    size = 8 << 20
    piped(server, filled())
    raw = Raw(server)
    raw("TW.SEND", "s", "t", "big", "IN", SOON, "PAYLOAD", "f", "x" * size)
    r.config_set("hz", 1)
    blocked = Raw(server)
    blocked.send_all([["BLPOP", "q", "0"], ["TW.SEND", "s", "t", "big", "IN", SOON, "PAYLOAD", "f", "v"]])
    wait_until(lambda: r.info("clients")["blocked_clients"] == 1)
    before = r.info("memory")["used_memory"]
    r.rpush("q", "x")
    assert [blocked.read() for _ in range(2)][1] == "big"
    assert r.info("memory")["used_memory"] < before - size // 2


@pytest.mark.parametrize("policy", ["noeviction", "allkeys-lru"])
def test_a_large_task_is_freed_before_the_next_command(server, r, policy):
    """The server looks at its memory before each command: it refuses to write, or evicts keys."""
    size = 8 << 20
    piped(server, filled())
    for i in range(50):
        r.set(f"user{i}", "x" * 20000)
    raw = Raw(server)
    raw("TW.SEND", "s", "t", "big", "IN", SOON, "PAYLOAD", "f", "x" * size)
    raw("CONFIG", "SET", "maxmemory-policy", policy)
    limit = r.info("memory")["used_memory"] - (2 << 20)
    got = piped(server, [["TW.CANCEL", "s", "big"], ["CONFIG", "SET", "maxmemory", limit], ["SET", "k", "v"],
                         ["TW.SEND", "s", "t", "new", "IN", SOON, "PAYLOAD", "f", "v"]])
    assert got == [[1], "OK", "OK", "new"]
    assert r.info("stats")["evicted_keys"] == 0


def test_with_little_memory_left_a_replaced_task_is_freed_before_the_next_command(server, r):
    size = 8 << 20
    piped(server, filled())
    raw = Raw(server)
    raw("TW.SEND", "s", "t", "big", "IN", SOON, "PAYLOAD", "f", "x" * size)
    used = r.info("memory")["used_memory"]
    raw("CONFIG", "SET", "maxmemory", used + (1 << 20))
    got = piped(server, [["TW.SEND", "s", "t", "big", "IN", SOON, "PAYLOAD", "f", "v"],
                         ["CONFIG", "SET", "maxmemory", used - (2 << 20)], ["SET", "k", "v"]])
    assert got == ["big", "OK", "OK"]


def test_restored_tasks_come_after_the_tasks_that_were_filed_before(clock, server, r):
    due = clock.now() + 1500
    piped(server, filled() + [["TW.SEND", "s2", "list", "b", "AT", due, "LIST", "PAYLOAD", "b"]])
    dump = server.client(decode_responses=False).execute_command("DUMP", "s2")
    got = piped(server, [["DEL", "s2"], ["TW.SEND", "s", "list", "a", "AT", due, "LIST", "PAYLOAD", "a"],
                         ["RESTORE", "s2", 0, dump]])
    assert got[-1] == "OK"
    clock.reach(due)
    wait_until(lambda: r.llen("list") == 2)
    assert r.lrange("list", 0, -1) == ["a", "b"]


def test_a_handler_cancels_a_task_that_the_tick_would_deliver(fleet):
    """The tick removes an empty queue, which tells a handler. The handler cancels a task that is due in this
    tick."""
    server = meddled(fleet, appendonly="yes")
    r = server.client()
    piped(server, filled("o", 5))
    piped(server, [["TW.SEND", "s", "t", "only", "IN", SOON, "PAYLOAD", "f", "v"]])
    assert r.execute_command("MEDDLE", "tw.cancel", 0, 1, "RENAME", "s", "s2") == "OK"
    piped(server, [["TW.CANCEL", "s", "only"], ["MEDDLE", "del", 0, 1, "TW.CANCEL", "o", "due"],
                   ["TW.SEND", "o", "out", "due", "IN", 0, "PAYLOAD", "f", "v"]])
    wait_until(lambda: r.execute_command("MEDDLE.DONE")[0] == 1)
    wait_until(lambda: r.execute_command("TW.LEN", "o") == 5)
    assert r.execute_command("MEDDLE.DONE")[1].startswith("*1\r\n:1")
    assert r.xlen("out") == 0


def test_a_task_that_a_thread_of_another_module_cancels_is_freed_at_once(fleet):
    """The server sleeps meanwhile, so no event-loop iteration ends."""
    client, size = meddled(fleet).client(), 4 << 20
    client.execute_command("TW.SEND", "s", "t", "other", "IN", SOON, "PAYLOAD", "f", "v")
    client.execute_command("TW.SEND", "s", "t", "big", "IN", SOON, "PAYLOAD", "f", "x" * size)
    before = client.info("memory")["used_memory"]
    client.execute_command("MEDDLE.THREAD", "TW.CANCEL", "s", "big")
    wait_until(lambda: client.execute_command("MEDDLE.DONE")[0] == 1)
    assert int(client.execute_command("MEDDLE.DONE")[1]) < before - size // 2


def test_tasks_that_are_due_together_keep_their_order(clock, server, r):
    due = clock.now() + 1500
    commands = []
    for i in range(40):
        key = f"s{i // 4}"
        commands.append(["TW.SEND", key, "list", f"id{i}", "AT", due, "LIST", "PAYLOAD", i])
    piped(server, commands)
    clock.reach(due)
    wait_until(lambda: r.llen("list") == 40)
    assert [int(word) for word in r.lrange("list", 0, -1)] == list(range(40))


def test_moved_and_new_tasks_keep_their_order(clock, server, r):
    due = clock.now() + 1500
    commands = [["TW.SEND", "s", "list", f"old{i}", "IN", SOON, "LIST", "PAYLOAD", 2 * i] for i in range(20)]
    for i in range(20):
        commands.append(["TW.MOVE", "s", f"old{i}", "AT", due])
        commands.append(["TW.SEND", "s", "list", f"new{i}", "AT", due, "LIST", "PAYLOAD", 2 * i + 1])
    piped(server, commands)
    clock.reach(due)
    wait_until(lambda: r.llen("list") == 40)
    assert [int(word) for word in r.lrange("list", 0, -1)] == list(range(40))


def test_routes_whose_last_task_goes_while_another_comes(clock, server, r):
    """The only task of a target is cancelled, and in the same moment the target gets another task."""
    due = clock.now() + 1500
    commands = filled()
    for i in range(30):
        commands += [["TW.SEND", "s", f"t{i % 3}", f"id{i}", "AT", due, "PAYLOAD", "f", "v"],
                     ["TW.CANCEL", "s", f"id{i - 1}"]]
    piped(server, commands)
    clock.reach(due)
    wait_until(lambda: r.execute_command("TW.LEN", "s") == 20)
    assert [len(delivered(r, f"t{i}")) for i in range(3)] == [0, 0, 1]


@pytest.mark.parametrize("multi", [False, True], ids=["pipeline", "transaction"])
@pytest.mark.parametrize("how", ["TW.SEND", "TW.MOVE"])
def test_passed_times_come_in_the_order_of_filing(clock, server, r, how, multi):
    """No tick has run since the times passed, so the wheel stands before them."""
    names, raw = ["third", "second", "first"], Raw(server)
    if how == "TW.MOVE":
        piped(server, [["TW.SEND", "s", "list", name, "IN", SOON, "LIST", "PAYLOAD", name] for name in names])
    with frozen(server):
        clock.push(300)
        times = [clock.now() - 10 * i for i in (1, 2, 3)]
        commands = [["TW.MOVE", "s", name, "AT", due] if how == "TW.MOVE" else
                    ["TW.SEND", "s", "list", name, "AT", due, "LIST", "PAYLOAD", name]
                    for name, due in zip(names, times)]
        if multi:
            commands = [["MULTI"], *commands, ["EXEC"]]
        raw.send_all(commands)
    assert all(raw.read() for _ in commands)
    wait_until(lambda: r.llen("list") == 3)
    assert r.lrange("list", 0, -1) == names


@pytest.mark.parametrize("late", [["TW.SEND", "s", "list", "late", "AT", 1000, "LIST", "PAYLOAD", "late"],
                                  ["TW.MOVE", "s", "late", "AT", 1000]])
def test_a_task_of_the_past_waits_for_tasks_that_were_due_when_it_was_filed(server, r, late):
    """The due time of the first task passes while the server sleeps, and no tick runs meanwhile."""
    piped(server, [["TW.SEND", "s", "list", "late", "IN", SOON, "LIST", "PAYLOAD", "late"],
                   ["TW.SEND", "s", "list", "due", "IN", 20, "LIST", "PAYLOAD", "due"],
                   ["DEBUG", "SLEEP", "0.1"], late])
    wait_until(lambda: r.llen("list") == 2)
    assert r.lrange("list", 0, -1) == ["due", "late"]
