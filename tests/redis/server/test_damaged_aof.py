# SPDX-License-Identifier: MIT
"""Append-only files whose commands have damaged arguments, in a real server.

A server hands each command of the file to the module, without a look at the number of its arguments, and lets
it be TW.LOAD or TW.FIRED. So each round damages some arguments of the module's commands in a valid file, and
has the server load it. A TW.LOAD or TW.FIRED that cannot be read ends the server, and its log says so. Whatever
else the module makes of the file: the server lives, the queues can be looked at, and they come back from a
snapshot and from a rewritten file. The fuzz targets in tests/redis/unit search deeper, without a server.
"""
import random
import re

import pytest
import redis

from harness import as_map, tasks
from situations import aof_commands, aof_path, extent, fired_form, put, rewrite
from test_work_files import variety

NUMBERS = [b"", b"0", b"-1", b"1", b"00", b"+1", b" 1", b"1e3", b"9223372036854775807", b"9223372036854775808",
           b"-9223372036854775808", b"18446744073709551616"]
WORDS = [b"ONCE", b"NEXT", b"RENEW", b"NOTHING", b"PAYLOAD", b"EVERY", b"TIMES", b"AT",
         b"IN", b"MISSED", b"MAXLATE", b"COALESCE", b"LIST", b"LEFT",
         b"STREAM", b"MAXLEN", b"TRIES", b"BACKOFF", b"JITTER", b"PAUSE", b"RESUME",
         b"*", b"NX", b"GT", b"s", b"p", b"wrong", b"q"]


def written(commands):
    """Returns the bytes of a file of commands."""
    parts = []
    for words in commands:
        parts.append(b"*%d\r\n" % len(words))
        parts.extend(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
    return b"".join(parts)


def other_word(chance, word):
    """Returns a word in place of another one."""
    if word and chance.random() < 0.5:
        some = bytearray(word)
        for _ in range(chance.randint(1, 3)):
            some[chance.randrange(len(some))] = chance.randrange(256)
        return bytes(some)
    return chance.choice([chance.choice(NUMBERS), chance.choice(WORDS), word[:chance.randint(0, len(word))],
                          word * 2, chance.randbytes(chance.randint(0, 40)), b"x" * 70000])


def damage(chance, words):
    """Damages the arguments of a command in place; its name stays."""
    at = chance.randrange(1, len(words) + 1)
    kind = chance.randrange(8)
    if kind == 0:
        words.insert(at, chance.choice(WORDS + NUMBERS))
    elif kind == 1:
        del words[at:]
    elif at < len(words) and kind == 2:
        del words[at]
    elif at < len(words):
        words[at] = other_word(chance, words[at])


def damaged(chance, good):
    """Returns a copy of the commands, some of which are damaged, twice there, or gone."""
    commands = [list(words) for words in good]
    ours = [i for i, words in enumerate(commands) if words[0].upper().startswith(b"TW.")]
    for i in chance.sample(ours, chance.randint(1, 4)):
        damage(chance, commands[i])
    if chance.random() < 0.3:
        commands.insert(chance.choice(ours), list(commands[chance.choice(ours)]))
    return commands


def found(r):
    """Looks at every queue. Returns the ids of its tasks."""
    ids = {}
    for key in r.keys("*"):
        if r.type(key) != b"tickwheel":
            continue
        ids[key] = sorted(tasks(r, key))
        named = [name for name in ids[key][:50] if 1 <= len(name) <= 1024]  # damage may have made another one
        for words in (("TW.RANGE", key, "-", "+"), ("TW.INFO", key), ("TW.DEAD", key), ("TW.NEXT", key),
                      ("TW.FORECAST", key), ("DUMP", key), ("TW.GET", key, *named, "none")):
            r.execute_command(*words)
        info = as_map(r.execute_command("TW.INFO", key))
        assert r.execute_command("TW.LEN", key) + info[b"dead"] == len(ids[key])
    return ids


def check(server, r, rewrites):
    """The server lives, and has the same tasks after a snapshot and a rewritten file. None is delivered."""
    assert server.alive(), server.tail()
    before = found(r)
    r.execute_command("DEBUG", "RELOAD")
    assert found(r) == before
    if not rewrites:
        return
    rewrite(server)
    r.execute_command("DEBUG", "LOADAOF")
    assert found(r) == before


def specimen(server):
    """Returns the commands of a file that has each command of the module."""
    r = server.client()
    variety(r)
    put(r, "s", "waiting", "IN", 5, "KEEPDUE")
    commands = aof_commands(aof_path(server))
    rewrite(server)
    found_now = [words for _, words in commands + aof_commands(aof_path(server, "base"))]
    forms = {fired_form(words) or words[0].decode() for words in found_now}
    assert {"PUT", "RENEW", "CHANGES", "PAUSE", "TW.LOAD"} <= forms, forms
    return found_now


def load(server, r):
    """Loads the file, and returns whether the server has read it to its end. Valkey stops at a command with too
    few words, and keeps what it has loaded until then."""
    try:
        return r.execute_command("DEBUG", "LOADAOF")
    except redis.ResponseError:
        assert server.is_valkey() and "wrong number of arguments for 'tw." in server.tail(3), server.tail()
        return False


def start_anew(server):
    """The server has ended at a command. Starts it without the file, and returns a client."""
    assert server.expect_end() == 1
    told = server.tail(3)
    assert re.search("tickwheel: (a chunk of the queue .* is damaged: |format is |the outcome is |"
                     "the number of arguments of TW|a chunk has the key )", told), told
    with open(aof_path(server), "wb"):
        pass
    server.start()
    return client_of(server)


def client_of(server):
    r = server.client(decode_responses=False)
    r.config_set("tickwheel.deliver", "no")
    return r


@pytest.mark.long
def test_damaged_arguments_do_not_break_the_server(fleet):
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    chance = random.Random(seed)
    server = fleet.server(appendonly="yes", aof_use_rdb_preamble="no",
                          auto_aof_rewrite_percentage="0")
    good = specimen(server)
    r, looked, ended = client_of(server), 0, 0
    for i in range(extent(60, 300, 1000)):
        with open(aof_path(server), "wb") as file:
            file.write(written(damaged(chance, good)))
        try:
            whole = load(server, r)
        except redis.ConnectionError:
            r, ended = start_anew(server), ended + 1
            continue
        check(server, r, rewrites=whole and i % 20 == 0)  # A rewrite takes a tenth of a second.
        looked += len(r.keys("*"))
    print(f"{ended} commands have ended the server")
    assert looked > 0
