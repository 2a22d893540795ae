# SPDX-License-Identifier: MIT
"""Configuration: module arguments, redis.conf, MODULE LOADEX, CONFIG SET and GET; and the fields of INFO
tickwheel."""
import os
import re

import pytest
import redis

from harness import ROOT, Broken, Raw, module_path, now_ms, wait_until
from situations import deferred, wait_dead

HOUR = 3600 * 1000
CENTURY = 3155760000000
END_OF_TIME = 2**63 - 1
FIRST_WAIT = "tickwheel.target-backoff-ms"
SETTINGS = {  # default, least, most
    "tickwheel.tasks-per-tick": (1000, 1, 100000), "tickwheel.us-per-tick": (1200, 100, 1000000),
    "tickwheel.target-tries": (3, 1, 15), "tickwheel.default-maxlen": (0, 0, END_OF_TIME),
    FIRST_WAIT: (100, 1, 5000), "tickwheel.tries": (20, 1, 1000000),
    "tickwheel.backoff-ms": (1000, 1, CENTURY), "tickwheel.backoff-factor-percent": (200, 100, 10000),
    "tickwheel.backoff-max-ms": (3600000, 1, CENTURY), "tickwheel.jitter": (10, 0, 100),
    "tickwheel.dead-max": (0, 0, END_OF_TIME), "tickwheel.dead-ms": (0, 0, END_OF_TIME),
}

with open(os.path.join(ROOT, "docs", "redis.md"), encoding="utf-8") as file:
    REFERENCE = file.read()


def config(r):
    """Returns the settings that are numbers."""
    found = r.config_get("tickwheel.*")
    del found["tickwheel.deliver"]
    return {name: int(value) for name, value in found.items()}


# Settings

def test_defaults(r):
    assert config(r) == {name: default for name, (default, _, _) in SETTINGS.items()}


def test_the_reference_has_the_same_settings():
    rows = re.findall(r"^\| `(tickwheel\.[a-z-]+)` \| (\d+) \| (\S+) to (\S+) \|", REFERENCE, re.MULTILINE)
    found = {
        name: tuple(END_OF_TIME if text == "2^63-1" else int(text) for text in rest)
        for name, *rest in rows
    }
    assert found == SETTINGS


@pytest.mark.parametrize("name", SETTINGS)
def test_both_ends_of_the_range_can_be_set(r, name):
    for value in SETTINGS[name][1:]:
        assert r.config_set(name, value)
        assert config(r)[name] == value


@pytest.mark.parametrize("name", SETTINGS)
def test_what_is_out_of_range_is_refused_and_changes_nothing(server, r, name):
    raw = Raw(server)
    _, low, high = SETTINGS[name]
    before = config(r)
    for value in (low - 1, high + 1, "ten", "", "1.5"):
        answer = raw("CONFIG", "SET", name, value)
        assert isinstance(answer, Raw.Error) and name in answer, answer
        if isinstance(value, int) and abs(value) < 2**63:
            assert str(low) in answer and str(high) in answer
    assert config(r) == before


def test_a_setting_holds_from_then_on(r):
    r.config_set("tickwheel.target-tries", 1)
    r.set("q", "no stream")
    r.execute_command("TW.SEND", "s", "q", "a", "IN", 0, "PAYLOAD", "f", "v")
    assert wait_dead(r, "s")[0].attempt == 1


def test_settings_in_the_configuration_file(fleet):
    server = fleet.server(**{name: SETTINGS[name][2] for name in SETTINGS})
    assert config(server.client()) == {name: most for name, (_, _, most) in SETTINGS.items()}


def test_settings_survive_config_rewrite_and_restart(fleet):
    server = fleet.server()
    r = server.client()
    r.config_set(FIRST_WAIT, 77)
    r.config_rewrite()
    with open(os.path.join(server.folder, "redis.conf"), encoding="utf-8") as file:
        assert re.search(r"^tickwheel\.target-backoff-ms 77$", file.read(), re.MULTILINE)
    server.options[
        FIRST_WAIT] = 77  # The harness writes the file anew; this line was in it.
    assert config(server.restart().client())[FIRST_WAIT] == 77


@pytest.mark.parametrize("way", ["CONFIG SET", "file", "argument", "short argument"])
def test_deliver(fleet, way):
    """A server that is told so delivers nothing until it is told otherwise."""
    words = {"argument": ("tickwheel.deliver", "no"), "short argument": ("DELIVER", "NO")}.get(way, ())
    server = fleet.server(module_args=words, **({"tickwheel.deliver": "no"} if way == "file" else {}))
    r = server.client()
    assert r.config_get("tickwheel.deliver") == {"tickwheel.deliver": "yes" if way == "CONFIG SET" else "no"}
    r.config_set("tickwheel.deliver", "no")
    add(r, "a", "IN", 0)
    r.execute_command("TW.PUT", "w", "b", "IN", 0, "PAYLOAD", "v")
    wait_until(lambda: server.tw()["deferred_stopped"] > 0)
    found = server.tw()
    assert [found[name] for name in ("paused_tasks", "late", "oldest_late_ms", "ready")] == [2, 0, 0, 2]
    assert (found["deliver"], found["paused_queues"]) == ("no", 0)
    for value in ("maybe", "", "2"):
        with pytest.raises(redis.ResponseError, match="deliver"):
            r.config_set("tickwheel.deliver", value)
    assert r.xlen("q") == 0
    r.config_set("tickwheel.deliver", "yes")
    wait_until(lambda: r.xlen("q") == 1 and server.offered() == 1)
    assert (server.tw()["paused_tasks"], server.tw()["deliver"]) == (0, "yes")


# Module arguments

@pytest.mark.parametrize("prefix", ["tickwheel.", ""])
def test_module_arguments(fleet, prefix):
    """An argument has the full name of a setting, or the part of the name after the module's name."""
    words = [
        word for name in SETTINGS for word in (prefix + name.removeprefix("tickwheel."), SETTINGS[name][1])
    ]
    server = fleet.server(module_args=words)
    assert config(server.client()) == {name: least for name, (_, least, _) in SETTINGS.items()}


@pytest.mark.parametrize("words,fragments", [((FIRST_WAIT, 0), ("target-backoff-ms", "1", "5000")),
                                             ((FIRST_WAIT, 5001), ("target-backoff-ms", "1", "5000")),
                                             ((FIRST_WAIT, "soon"), ("target-backoff-ms", "soon")),
                                             ((FIRST_WAIT, ), ("target-backoff-ms", )),
                                             (("tickwheel.colour", "red"), ("colour", "deliver", "dead-ms")),
                                             (("deliver", "maybe"), ("deliver", "maybe", "yes or no")),
                                             (("deliver", ), ("deliver", "yes or no")),
                                             (("tickwheel.tasks-per-tick", 5, "tickwheel.us-per-tick", 99),
                                              ("us-per-tick", "100", "1000000"))],
                         ids=lambda value: " ".join(map(str, value)))
def test_wrong_module_arguments_keep_the_server_from_starting(fleet, words, fragments):
    """The log names the argument and its range."""
    server = fleet.server(start=False, module_args=words)
    with pytest.raises(Broken, match="did not start"):
        server.start()
    lines = [line for line in server.log().splitlines() if "tickwheel" in line]
    assert any(all(fragment in line for fragment in fragments) for line in lines), lines


# MODULE LOADEX

def test_loadex_with_config(fleet):
    r = fleet.server(module=False).client()
    words = [word for name in SETTINGS for word in ("CONFIG", name, SETTINGS[name][2])]
    assert r.execute_command("MODULE", "LOADEX", module_path(), *words)
    assert config(r) == {name: most for name, (_, _, most) in SETTINGS.items()}
    r.execute_command("TW.SEND", "s", "q", "a", "IN", 5, "PAYLOAD", "f", "v")
    wait_until(lambda: r.xlen("q") == 1)


def test_loadex_with_args(fleet):
    r = fleet.server(module=False).client()
    assert r.execute_command("MODULE", "LOADEX", module_path(), "ARGS", FIRST_WAIT, "55")
    assert config(r)[FIRST_WAIT] == 55


def use_all_events(r):
    """Causes all events to which a module can subscribe: changed keys, flushes, swaps, configuration, the
    cron, forks."""
    r.set("a", 1)
    r.rename("a", "b")
    r.pexpire("b", 1)
    wait_until(lambda: r.dbsize() == 0)
    r.execute_command("SWAPDB", 0, 1)
    r.flushall()
    r.config_set("maxmemory", "1gb")
    r.execute_command("INFO", "everything")
    r.bgsave()
    wait_until(lambda: r.info("persistence")["rdb_bgsave_in_progress"] == 0)


@pytest.mark.parametrize("words", [
    ("CONFIG", FIRST_WAIT, 0), ("CONFIG", FIRST_WAIT, "soon"), ("ARGS", FIRST_WAIT, 0),
    ("ARGS", "tickwheel.colour", "red"), ("ARGS", FIRST_WAIT)],
    ids=lambda words: " ".join(map(str, words)))
def test_loadex_with_something_wrong_leaves_the_server_without_the_module(fleet, words):
    """The server is sound: it calls no function of the module any more. Afterwards the module can be loaded
    with correct arguments."""
    r = fleet.server(module=False).client()
    others = r.module_list()  # Redis 8 has a module of its own
    for _ in range(3):
        with pytest.raises(redis.ResponseError):
            r.execute_command("MODULE", "LOADEX", module_path(), *words)
        assert r.module_list() == others
        assert r.config_get("tickwheel.*") == {}
        with pytest.raises(redis.ResponseError, match="unknown command"):
            r.execute_command("TW.LEN", "s")
        use_all_events(r)
    assert r.execute_command("MODULE", "LOADEX", module_path())
    r.execute_command("TW.SEND", "s", "q", "a", "IN", 5, "PAYLOAD", "f", "v")
    wait_until(lambda: r.xlen("q") == 1)


def test_loadex_with_a_setting_that_there_is_not(fleet):
    """The server refuses the setting, but only after it has loaded the module. If the module has a data type,
      - Redis 7.0 cannot unload it;
      - Redis 8 unloads it by force;
      - Valkey crashes, with any module (valkey-io/valkey issue 4630).
    """
    server = fleet.server(module=False)
    if server.is_valkey():
        pytest.skip("Valkey has a fault here: its issue 4630")
    r = server.client()
    with pytest.raises(redis.ResponseError):
        r.execute_command("MODULE", "LOADEX", module_path(), "CONFIG", "tickwheel.colour", "red")
    use_all_events(r)
    if not any(module["name"] == "tickwheel" for module in r.module_list()):
        r.execute_command("MODULE", "LOADEX", module_path())
    r.execute_command("TW.SEND", "s", "q", "a", "IN", 5, "PAYLOAD", "f", "v")
    wait_until(lambda: r.xlen("q") == 1)


def test_load_without_arguments(fleet):
    r = fleet.server(module=False).client()
    assert r.execute_command("MODULE", "LOAD", module_path())
    assert config(r) == {name: default for name, (default, _, _) in SETTINGS.items()}


def test_it_is_not_loaded_twice(r):
    with pytest.raises(redis.ResponseError):
        r.execute_command("MODULE", "LOAD", module_path())
    r.execute_command("TW.SEND", "s", "q", "a", "IN", 5, "PAYLOAD", "f", "v")
    wait_until(lambda: r.xlen("q") == 1)


# INFO: the fields and their kinds

def info_names_of_the_reference():
    """Returns the names in the table of INFO tickwheel. A short form such as `_p99` is expanded to its whole
    name."""
    table = re.search(r"^## INFO tickwheel\n(.*?)^## ", REFERENCE, re.MULTILINE | re.DOTALL)[1]
    names = []
    for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE):
        for name in re.findall(r"`([a-z0-9_]+)`", row):
            names.append(name if not name.startswith("_") else names[-1].rsplit("_", 1)[0] + name)
    return names


def test_info_has_the_fields_of_the_reference_and_no_others(server):
    assert sorted(server.tw()) == sorted(info_names_of_the_reference())


def test_info_fields_have_the_prefix(server):
    assert all(name.startswith("tickwheel_") for name in server.info("tickwheel"))


@pytest.mark.parametrize("section", ["modules", "everything", "tickwheel"])
def test_info_is_in_these_sections(server, section):
    assert "tickwheel_tasks" in server.info(section)


def test_a_fresh_server_counts_from_0(server):
    found = server.tw()
    settings = ("budget_tasks", "budget_us", "bytes", "tick_us_max")
    numbers = {
        name: value
        for name, value in found.items()
        if name not in ("version", "durability", "warning", "deliver", *settings)
    }
    assert numbers == {name: 0 for name in numbers}
    assert (found["budget_tasks"], found["budget_us"]) == (1000, 1200)


# INFO: each counter

def counted(server, run):
    """Returns how much run() added to each counter that it changed."""
    before = server.tw()
    run(server.client())
    after = server.tw()
    return {
        name: after[name] - before[name]
        for name in after if isinstance(after[name], int) and after[name] != before[name] and name not in (
            "bytes", "reaping", "tick_us_max") and not name.startswith("lateness")
    }


def add(r, name, *words):
    return r.execute_command("TW.SEND", "s", "q", name, *(words or ("IN", HOUR)), "PAYLOAD", "f", "v")


def test_put_pending_and_queues(server):
    def run(r):
        add(r, "a")
        add(r, "b")
        add(r, "b", "IN", 5, "NX")
        r.execute_command("TW.SEND", "s2", "q", "a", "IN", HOUR, "PAYLOAD", "f", "v")
    assert counted(server, run) == {"put": 3, "tasks": 3, "waiting": 3, "queues": 2}


def test_a_task_that_is_replaced_is_pending_once(server):
    def run(r):
        add(r, "a")
        add(r, "a")
    assert counted(server, run) == {"put": 2, "replaced": 1, "tasks": 1, "waiting": 1, "queues": 1}


@pytest.mark.parametrize("words,replaced", [(("IN", HOUR), 1), (("IN", HOUR, "NX"), 0), (("IN", HOUR, "XX"), 1),
                                            (("IN", 1, "GT"), 0), (("IN", 2 * HOUR, "GT"), 1)], ids=str)
def test_replaced(server, r, words, replaced):
    add(r, "a")
    found = counted(server, lambda r: add(r, "a", *words))
    assert found.get("replaced", 0) == found.get("put", 0) == replaced


def test_cancelled(server, r):
    add(r, "a")
    add(r, "b")
    assert counted(server, lambda r: r.execute_command("TW.CANCEL", "s", "a", "nobody")) == {
        "cancelled": 1, "tasks": -1, "waiting": -1
    }


def test_moved(server, r):
    add(r, "a")

    def run(r):
        r.execute_command("TW.MOVE", "s", "a", "IN", 2 * HOUR)
        r.execute_command("TW.MOVE", "s", "a", "IN", 5, "GT")
        r.execute_command("TW.MOVE", "s", "nobody", "IN", 5)
    assert counted(server, run) == {"moved": 1}


def test_fired(server, r):
    add(r, "a")

    def run(r):
        add(r, "b", "IN", 0, "EVERY", 1, "TIMES", 3, "MISSED", "burst")
        wait_until(lambda: r.xlen("q") == 3)
        r.execute_command("TW.PROMOTE", "s", "ALL")
        wait_until(lambda: r.xlen("q") == 4)
    assert counted(server, run) == {"put": 1, "delivered": 4, "tasks": -1, "waiting": -1, "queues": -1}


def test_expired_tasks(server, r):
    for i in range(5):
        add(r, i)

    def run(r):
        r.pexpire("s", 10)
        wait_until(lambda: r.exists("s") == 0)
    assert counted(server, run) == {"expired_tasks": 5, "tasks": -5, "waiting": -5, "queues": -1}


def test_evicted_tasks(server, r):
    for i in range(5):
        add(r, i)

    def run(r):
        r.config_set("maxmemory-policy", "allkeys-lru", "maxmemory", 1)
        wait_until(lambda: r.exists("s") == 0)
        r.config_set("maxmemory", 0)
    assert counted(server, run) == {"evicted_tasks": 5, "tasks": -5, "waiting": -5, "queues": -1}


def test_a_removed_queue_is_not_pending_and_gives_its_memory_back(server, r):
    empty = server.tw()["bytes"]
    pipe = r.pipeline(transaction=False)
    for i in range(20000):
        add(pipe, i)
    pipe.execute()
    full = server.tw()["bytes"]
    assert full - empty > 20000 * 40
    r.delete("s")
    found = server.tw()
    assert (found["tasks"], found["queues"]) == (0, 0)
    wait_until(lambda: server.tw()["reaping"] == 0)
    assert server.tw()["bytes"] < empty + (full - empty) // 10


def test_deferred_by_a_pause(server):
    def run(r):
        with r.pipeline(transaction=True) as pipe:
            add(pipe, "a", "IN", 1)
            pipe.execute_command("CLIENT", "PAUSE", HOUR, "WRITE")
            pipe.execute()
        deferred(server, "pause")
        r.execute_command("CLIENT", "UNPAUSE")
        wait_until(lambda: r.xlen("q") == 1)
    found = counted(server, run)
    assert found.pop("deferred_pause") >= 1
    assert found == {"put": 1, "delivered": 1}


def test_tick_time_is_told(server, r):
    add(r, "a", "IN", 1)
    wait_until(lambda: r.xlen("q") == 1)
    assert server.tw()["tick_us_max"] > 0


def test_budgets_stay_within_an_eighth_and_the_setting(server, r):
    """The budgets stay in this range while clients keep the server busy. Afterwards they grow back."""
    r.config_set("tickwheel.tasks-per-tick", 80, "tickwheel.us-per-tick", 8000)
    pipe = r.pipeline(transaction=False)
    due = now_ms() + 1000
    for i in range(20000):
        add(pipe, i, "AT", due)
    pipe.execute()
    raws = [Raw(server) for _ in range(4)]
    seen = set()

    def all_came():
        for raw in raws:
            raw.send_all([("XLEN", "q")] * 500)
        found = server.tw()
        seen.add((found["budget_tasks"], found["budget_us"]))
        for raw in raws:
            for _ in range(500):
                raw.read()
        return r.xlen("q") == 20000
    wait_until(all_came)
    assert all(10 <= tasks <= 80 and 1000 <= us <= 8000 for tasks, us in seen), seen
    add(r, "one more", "IN", 5)
    wait_until(lambda: r.xlen("q") == 20001)
    wait_until(lambda: server.tw()["budget_tasks"] == 80 and server.tw()["budget_us"] == 8000)


# INFO: durability and warning

@pytest.mark.parametrize(
    "options,durability,mentions",
    [({"appendonly": "yes"}, "aof", None), ({"save": "3600 1"}, "rdb-only", "appendonly"),
     ({}, "none", "appendonly"),
     ({"appendonly": "yes", "maxmemory": "1gb", "maxmemory-policy": "allkeys-lru"}, "aof", "maxmemory-policy"),
     ({"appendonly": "yes", "maxmemory": "1gb", "maxmemory-policy": "noeviction"}, "aof", None)],
    ids=lambda value: str(value)[:60])
def test_durability_and_warning(fleet, options, durability, mentions):
    """The warning is in INFO, and in the log when the server loads the module."""
    server = fleet.server(**options)
    found = server.tw()
    assert found["durability"] == durability
    warned = [line for line in server.log().splitlines() if "<tickwheel>" in line]
    if mentions is None:
        assert found["warning"] == "none"
        assert warned == []
    else:
        assert mentions in found["warning"]
        assert any(mentions in line for line in warned)


def test_the_warning_follows_config_set(server, r):
    assert "appendonly" in server.tw()["warning"]
    r.config_set("appendonly", "yes")
    wait_until(lambda: server.tw()["durability"] == "aof")
    assert server.tw()["warning"] == "none"
    r.config_set("maxmemory-policy", "allkeys-random", "maxmemory", "1gb")
    assert "maxmemory-policy" in server.tw()["warning"]
    r.config_set("maxmemory-policy", "noeviction")
    assert server.tw()["warning"] == "none"
    r.config_set("appendonly", "no", "save", "3600 1")
    assert server.tw()["durability"] == "rdb-only"
