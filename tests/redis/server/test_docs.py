# SPDX-License-Identifier: MIT
"""The server's information about the commands: COMMAND INFO, DOCS and GETKEYS, key specs, arity and ACL
categories. docs/redis.md has to say the same."""
import os
import pathlib
import re

import pytest
import redis

from harness import ROOT, Raw, as_map, version

WRITES = {
    "tw.send", "tw.put", "tw.take", "tw.ack", "tw.nack", "tw.touch", "tw.replay", "tw.purge", "tw.pause",
    "tw.resume", "tw.cancel", "tw.move", "tw.promote", "tw.fired", "tw.load"
}
READS = {"tw.get", "tw.len", "tw.next", "tw.scan", "tw.range", "tw.forecast", "tw.dead", "tw.info", "tw.top"}
KEYLESS = {"tw.top"}
AFTER_A_NUMBER = {"tw.take"}  # commands whose keys follow their number
FAST = {
    "tw.send", "tw.put", "tw.ack", "tw.nack", "tw.touch", "tw.pause", "tw.resume", "tw.cancel", "tw.move",
    "tw.get", "tw.len"
}
BLOCKING = {"tw.take"}
DENY_OOM = {"tw.send", "tw.put", "tw.move", "tw.promote", "tw.replay"}
ALL = sorted(WRITES | READS)
PUBLIC = sorted((WRITES | READS) - {"tw.fired", "tw.load"})
ARITY = {
    "tw.send": -4, "tw.put": -3, "tw.take": -2, "tw.ack": -3, "tw.nack": -4, "tw.touch": -4, "tw.dead": -2,
    "tw.replay": -2, "tw.purge": -2, "tw.pause": 2, "tw.resume": 2, "tw.cancel": -3, "tw.move": -3,
    "tw.get": -3, "tw.len": 2, "tw.next": 2, "tw.scan": -3, "tw.range": -4, "tw.forecast": -2,
    "tw.promote": -2, "tw.info": 2, "tw.top": -1
}


def keys_of(name):
    return 0 if name in KEYLESS else 2 if name == "tw.send" else 1

with open(os.path.join(ROOT, "docs", "redis.md"), encoding="utf-8") as file:
    REFERENCE = file.read()
with open(os.path.join(ROOT, "CHANGELOG.md"), encoding="utf-8") as file:
    RELEASES = re.findall(r"(?m)^## (\d+\.\d+\.\d+)", file.read())


def command_info(server, name):
    """Returns COMMAND INFO of one command: name, arity, flags, first key, last key, step, categories, tips,
    key specs, subcommands."""
    return Raw(server)("COMMAND", "INFO", name)[0]


def docs(server, name):
    return as_map(Raw(server)("COMMAND", "DOCS", name)[1])


def described(name):
    """Returns the text of the reference below the headline of a command."""
    return re.search(rf"^### {name.upper()}\b.*?\n(.*?)(?=^#)", REFERENCE, re.MULTILINE | re.DOTALL)[1]


def syntax(name):
    """The first block below the command's headline, without the command's name."""
    return re.match(rf"\n```text\n{name.upper()}\b(.*?)^```", described(name), re.MULTILINE | re.DOTALL)[1]


def test_the_module_has_these_commands_and_no_others(r):
    found = {name for name in r.command() if name.lower().startswith("tw.")}
    assert {name.lower() for name in found} == set(ALL)


def test_the_reference_has_these_commands_and_no_others():
    found = {
        name.lower()
        for line in re.findall(r"^### (.*)$", REFERENCE, re.MULTILINE) for name in re.findall(r"TW\.\w+", line)
    }
    assert found == set(ALL)


@pytest.mark.parametrize("name", ALL)
def test_flags(server, name):
    flags = set(command_info(server, name)[2])
    assert ("write" in flags) == (name in WRITES)
    assert ("readonly" in flags) == (name in READS)
    assert ("denyoom" in flags) == (name in DENY_OOM)
    assert ("fast" in flags) == (name in FAST)
    assert "module" in flags
    assert ("admin" in flags) == (name in KEYLESS)  # its reply covers all keys
    assert ("blocking" in flags) == (name in BLOCKING)
    assert not flags & {"noscript", "loading", "no_multi"}


@pytest.mark.parametrize("name", PUBLIC)
def test_the_reference_tells_the_flags(name):
    words = re.search(r"^\| flags \| (.*?) \|$", described(name), re.MULTILINE)[1].split(", ")
    assert ("write" in words, "readonly" in words) == (name in WRITES, name in READS)
    assert ("deny-oom" in words, "fast" in words) == (name in DENY_OOM, name in FAST)
    assert ("blocking" in words) == (name in BLOCKING)


@pytest.mark.parametrize("name", PUBLIC)
def test_arity(server, name):
    """The least number of words with which the command itself says what is missing, as COMMAND INFO gives it to
    clients. test_errors.py and test_work_errors.py test which words are named."""
    assert command_info(server, name)[1] in (ARITY[name], -1), "a server that keeps its own says -1"
    raw = Raw(server)
    if name in KEYLESS:
        return  # all its arguments are optional
    short = raw(name, *["x"] * (abs(ARITY[name]) - 2))
    assert isinstance(short, Raw.Error) and "wrong number of arguments" in short
    enough = raw(name, *["x"] * (abs(ARITY[name]) - 1))
    assert "wrong number of arguments" not in str(enough)


def test_each_arity_stands_once():
    """No command counts its arguments a second time."""
    calls = {path.name: path.read_text().count("wrong_arity(")
             for path in pathlib.Path(ROOT, "src/redis/commands").glob("*.c")}
    assert {name: count for name, count in calls.items() if count} == {"docs.c": 1}


@pytest.mark.parametrize("name", ALL)
def test_keys_by_position(server, name):
    found = command_info(server, name)
    assert found[3:6] == ([0, 0, 0] if name in KEYLESS | AFTER_A_NUMBER else [1, keys_of(name), 1])


@pytest.mark.parametrize("name", ALL)
def test_key_specs(server, name):
    specs = [as_map(spec) for spec in command_info(server, name)[8]]
    assert len(specs) == keys_of(name)
    for position, spec in enumerate(specs, 1):
        begin, find = as_map(spec["begin_search"]), as_map(spec["find_keys"])
        if name in AFTER_A_NUMBER:
            assert (begin["type"], as_map(begin["spec"])["index"]) == ("index", 1)
            assert (find["type"], as_map(find["spec"])) == (
                "keynum", {"keynumidx": 0, "firstkey": 1, "keystep": 1})
        else:
            assert (begin["type"], as_map(begin["spec"])["index"]) == ("index", position)
            assert (find["type"], as_map(find["spec"])) == ("range", {"lastkey": 0, "keystep": 1, "limit": 0})
        flags = set(spec["flags"])
        assert ("RO" in flags) == (name in READS)
        assert bool(flags & {"RW", "OW", "RM"}) == (name in WRITES)
    if name == "tw.send":
        assert "insert" in specs[1]["flags"]


@pytest.mark.parametrize(
    "words,keys", [(("TW.SEND", "s", "q", "a", "IN", "5", "PAYLOAD", "f", "v"), ["s", "q"]),
                   (("TW.SEND", "s", "q", "*", "AT", "5", "EVERY", "5", "LIST", "PAYLOAD", "v"), ["s", "q"]),
                   (("TW.PUT", "s", "a", "IN", "5", "PAYLOAD", "v"), ["s"]),
                   (("TW.TAKE", "2", "s", "q", "LEASE", "5", "COUNT", "2"), ["s", "q"]),
                   (("TW.TAKE", "1", "s", "LEASE", "5", "NAME", "w", "BLOCK", "0"), ["s"]),
                   (("TW.ACK", "s", "a", "b"), ["s"]), (("TW.NACK", "s", "a", "b", "DEAD"), ["s"]),
                   (("TW.NACK", "s", "a", "b", "BACK"), ["s"]),
                   (("TW.TOUCH", "s", "a", "b", "LEASE", "5"), ["s"]), (("TW.DEAD", "s"), ["s"]),
                   (("TW.REPLAY", "s", "ALL"), ["s"]), (("TW.PURGE", "s", "IDS", "1", "a"), ["s"]),
                   (("TW.PAUSE", "s"), ["s"]), (("TW.RESUME", "s"), ["s"]),
                   (("TW.CANCEL", "s", "a", "b"), ["s"]),
                   (("TW.MOVE", "s", "a", "IN", "5"), ["s"]),
                   (("TW.GET", "s", "a", "b"), ["s"]), (("TW.LEN", "s"), ["s"]), (("TW.NEXT", "s"), ["s"]),
                   (("TW.SCAN", "s", "0"), ["s"]), (("TW.RANGE", "s", "-", "+"), ["s"]),
                   (("TW.FORECAST", "s"), ["s"]), (("TW.PROMOTE", "s", "ALL"), ["s"]),
                   (("TW.INFO", "s"), ["s"])],
    ids=lambda value: " ".join(value))
def test_getkeys(server, words, keys):
    raw = Raw(server)
    assert raw("COMMAND", "GETKEYS", *words) == keys
    flags = raw("COMMAND", "GETKEYSANDFLAGS", *words)
    assert [key for key, _ in flags] == keys
    read_only = words[0].lower() in READS
    assert all(("RO" in found) == read_only for _, found in flags)


def test_categories(server, r):
    """In Redis 7.0 modules cannot choose categories, and no command of a module is in a category. In later
    versions they can."""
    major, minor = map(int, server.info("server")["redis_version"].split(".")[:2])
    for name in ALL:
        found = set(command_info(server, name)[6])
        if name in KEYLESS:
            assert found <= {"@read", "@slow", "@admin", "@dangerous"}
            assert (major, minor) < (7, 2) or found >= {"@slow", "@admin", "@dangerous"}
        elif (major, minor) < (7, 2):
            assert found <= {"@write" if name in WRITES else "@read", "@fast" if name in FAST else "@slow"}
        else:
            assert found >= {"@write" if name in WRITES else "@read", "@fast" if name in FAST else "@slow"}
            assert name in [
                command.lower()
                for command in r.execute_command("ACL", "CAT", "write" if name in WRITES else "read")
            ]


@pytest.mark.parametrize("name", ALL)
def test_docs_have_summary_complexity_and_arguments(server, name):
    found = docs(server, name)
    assert found["summary"].endswith(".") and len(found["summary"]) > 10
    assert re.search(r"O\(|as TW", found["complexity"])
    assert found["since"] in RELEASES, "of which release was it part first?"
    assert found["module"] == "tickwheel"
    assert found["arguments"], "arguments are told"


def arguments(found):
    """Yields all arguments of COMMAND DOCS, including arguments nested in other arguments."""
    for one in found:
        one = as_map(one)
        yield one
        yield from arguments(one.get("arguments", []) if isinstance(one.get("arguments"), list) else [])


@pytest.mark.parametrize("name", PUBLIC)
def test_docs_tell_the_same_options_as_the_reference(server, name):
    """The words for values, such as burst, are in small letters."""
    told = {one["token"] for one in arguments(docs(server, name)["arguments"]) if "token" in one}
    words = {one for one in told if one.islower()}
    assert words <= set(re.findall(r"\b[a-z]+\b", syntax(name)))
    assert told - words == set(re.findall(r"\b[A-Z]{2,}\b", syntax(name).replace("id|ALL", "id")))


@pytest.mark.parametrize("name", PUBLIC)
def test_docs_tell_which_arguments_are_keys(server, name):
    keys = [(one["name"], one["key_spec_index"]) for one in arguments(docs(server, name)["arguments"])
            if one["type"] == "key"]
    assert keys == [("queue", 0), ("target", 1)][:keys_of(name)]


@pytest.mark.parametrize("name", PUBLIC)
def test_what_is_optional_in_the_reference_is_optional_in_the_docs(server, name):
    found = [as_map(one) for one in docs(server, name)["arguments"]]
    optional = [one for one in found if "optional" in one.get("flags", [])]
    depth, groups = 0, 0
    for char in syntax(name):
        groups += char == "[" and depth == 0
        depth += (char == "[") - (char == "]")
    repeated = len(re.findall(r"\[(?:id|id token|field value|value|queue) (?:\.|\[)", syntax(name)))
    assert len(optional) == groups - repeated


def sources():
    """The text of each file of src/redis. Literals of C that stand behind each other are one."""
    for path in sorted(pathlib.Path(ROOT, "src", "redis").rglob("*.c")):
        yield re.sub(r'"\s*(?:PRI\w+\s*)?"', "", path.read_text(encoding="utf-8"))


def log_messages():
    """The messages of the table, and a pattern of each: a word of capital letters may stand for a value."""
    table = REFERENCE.split("## Log messages")[1].split("\n## ")[0]
    for cell in re.findall(r"(?m)^\| (`[^|]+) \|", table):
        for message in re.findall(r"`([^`]+)`", cell):
            parts = re.split(r"\b([A-Z]{4,}|N)\b", message.removeprefix("tickwheel: "))
            yield message, re.compile("".join("(?:%(?:ll|l|z)?[a-z]?|[\\w-]+)" if i % 2 else re.escape(part)
                                              for i, part in enumerate(parts)))


def test_the_reference_has_log_messages_of_the_sources():
    """Each message of the table is the beginning of a text in src/redis."""
    told = dict(log_messages())
    assert len(told) >= 10, "the table is lost, or this test its pattern"
    texts = [text.removeprefix("tickwheel: ") for whole in sources()
             for text in re.findall(r'"((?:[^"\\\n]|\\.)*)"', whole)]
    for message, pattern in told.items():
        assert any(map(pattern.match, texts)), f"no text in src/redis begins as {message!r}"


def test_the_reference_has_each_log_message_of_the_sources():
    """Each text that is logged begins as a message of the table. `tickwheel: %s` passes a text on."""
    patterns = [pattern for _, pattern in log_messages()]
    logged = [text.removeprefix("tickwheel: ") for whole in sources() for text in re.findall(
        r'(?:RedisModule_Log(?:IOError)?\([^"]*"warning"|refuse_log\(\s*ctx),\s*"((?:[^"\\\n]|\\.)*)"', whole)]
    assert len(logged) >= 15, "this test has lost its pattern"
    for text in logged:
        assert text == "%s" or any(pattern.match(text) for pattern in patterns), f"{text!r} is not in the table"


def test_the_server_lists_the_module(r):
    [module] = [one for one in r.module_list() if dict(one).get("name") in ("tickwheel", b"tickwheel")]
    major, minor, patch = map(int, version().split("."))
    assert module["ver"] == major * 10000 + minor * 100 + patch


def test_the_module_cannot_be_unloaded_while_it_has_a_type(r):
    """The server refuses to unload any module with a data type. The module goes on working."""
    r.execute_command("TW.SEND", "s", "q", "a", "IN", 1000000, "PAYLOAD", "f", "v")
    with pytest.raises(redis.ResponseError):
        r.execute_command("MODULE", "UNLOAD", "tickwheel")
    assert r.execute_command("TW.LEN", "s") == 1
