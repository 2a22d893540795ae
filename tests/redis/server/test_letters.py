# SPDX-License-Identifier: MIT
"""The upgrade path of docs/redis.md for old Streams of dead letters: the function there files the letters again
as tasks. The letters here are entries as versions with encoding 1 wrote them."""
import pathlib
import re

import pytest

from harness import ROOT, wait_until

LATER = 4102444800000
ERROR = b"WRONGTYPE Operation against a key holding the wrong kind of value"


@pytest.fixture
def refile():
    page = pathlib.Path(ROOT, "docs", "redis.md").read_text(encoding="utf-8")
    section = page.split("\n### The old dead letters\n")[1].split("\n## ")[0]
    names = {}
    exec(re.search(r"```python\n(.*?)```", section, re.DOTALL)[1], names)  # pylint: disable=exec-used
    return names["refile"]


@pytest.fixture
def raw(server):
    """A client that leaves replies as bytes."""
    return server.client(decode_responses=False)


def letter(raw, name, target, *payload, due=b"5", **more):
    fields = {b"tw.id": name, b"tw.due": due, b"tw.attempt": b"3", b"tw.target": target, b"tw.error": ERROR,
              **{f"tw.{key}".encode(): value for key, value in more.items()}}
    words = [part for pair in fields.items() for part in pair]
    return raw.execute_command("XADD", "s:dead", "*", *words, *payload)


def test_letters_are_delivered_when_their_target_is_mended(raw, refile):
    binary = bytes(range(256))
    letter(raw, b"one", b"stream", b"f", binary, b"f", b"twice", b"tw.own", b"kept")
    letter(raw, b"two", b"list", b"value", binary)
    assert refile(raw, "s", "s:dead", lists=[b"list"]) == []
    assert raw.xlen("s:dead") == 0
    wait_until(lambda: raw.llen("list") == 1 and raw.xlen("stream") == 1)
    assert raw.lrange("list", 0, -1) == [binary]
    [entry] = raw.xrange("stream")
    assert entry[1][b"tw.id"] == b"one" and entry[1][b"tw.own"] == b"kept"
    assert raw.eval("return redis.call('XRANGE', KEYS[1], '-', '+')[1][2]", 1, "stream")[6:] == [
        b"f", binary, b"f", b"twice", b"tw.own", b"kept"]


def test_letters_whose_target_still_refuses_are_dead_tasks(raw, refile):
    raw.set("stream", "wrong")
    letter(raw, b"one", b"stream", b"f", b"v")
    assert refile(raw, "s", "s:dead") == []
    wait_until(lambda: raw.execute_command("TW.DEAD", "s") != [])
    [[name, _, _, tries, error, _]] = raw.execute_command("TW.DEAD", "s")
    assert (name, tries, error) == (b"one", 3, ERROR)
    assert raw.xlen("s:dead") == 0


def test_a_task_with_the_same_id_stays_and_the_letter_gets_another_id(raw, refile):
    raw.execute_command("TW.SEND", "s", "stream", "hourly", "AT", LATER, "EVERY", 5, "PAYLOAD", "f", "next")
    letter(raw, b"hourly", b"stream", b"f", b"old", due=b"77")
    assert refile(raw, "s", "s:dead") == []
    wait_until(lambda: raw.xlen("stream") == 1)
    [[_, fields]] = raw.xrange("stream")
    assert (fields[b"tw.id"], fields[b"f"]) == (b"hourly@77", b"old")
    assert raw.execute_command("TW.NEXT", "s") == [b"hourly", LATER]


def test_letters_that_cannot_be_filed_stay(raw, refile):
    without_values = letter(raw, b"big", b"stream", b"photo", b"1200000000", bytes=b"1200000000")
    for name in (b"a", b"a@5"):
        raw.execute_command("TW.SEND", "s", "stream", name, "AT", LATER, "PAYLOAD", "f", "v")
    in_use = letter(raw, b"a", b"stream", b"f", b"v")
    letter(raw, b"b", b"stream", b"f", b"v")
    assert refile(raw, "s", "s:dead") == [without_values, in_use]
    assert [entry for entry, _ in raw.xrange("s:dead")] == [without_values, in_use]
    assert raw.execute_command("TW.LEN", "s") >= 2
