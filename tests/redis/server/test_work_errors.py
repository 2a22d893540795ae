# SPDX-License-Identifier: MIT
"""The commands for workers, dead tasks and pauses: an error names the value and the range in which it must be,
changes nothing and is not replicated. test_errors.py has the other commands."""
import pytest

from harness import Fleet, Raw, Tap, now_ms
from situations import put, take, wait_ready
from test_errors import LAST, MAX, PAYLOAD, case, numbers

HOUR = 3600 * 1000
LEASE_MAX, CENTURY = "4294967295", "3155760000000"
COUNTERS = ("put", "cancelled", "taken", "done", "failed", "back", "lapsed", "died", "replayed",
            "purged", "offered", "tasks", "ready", "leased", "dead", "paused_tasks", "queues")
PUT = ("TW.PUT", "s", "new")
IN = (*PUT, "IN", "5")
LEASE = ("LEASE", "5000")
TAKE = ("TW.TAKE", "1", "s", *LEASE)
TOKEN = "TOKEN"  # stands for the token of the leased task


@pytest.fixture(scope="module")
def stage():
    """One server for all tests of this file, which show that they change nothing: a queue with a waiting, a
    ready, a leased and a dead task, and keys of other types."""
    fleet = Fleet()
    server = fleet.server()
    r = server.client()
    for name in ("leased", "dead", "ready"):
        put(r, "s", name, "AT", 1000)
    wait_ready(r, "s", 3)
    leased, dead = take(r, "s", lease=2**32 - 1, options=("COUNT", 2))
    r.execute_command("TW.NACK", "s", "dead", dead.token, "DEAD")
    put(r, "s", "waiting", "AT", now_ms() + HOUR)
    r.set("string", "v")
    r.xadd("stream", {"f": "v"})
    r.rpush("list", "v")
    Tap(server).close()  # From now on the server counts its replication offset.
    yield server, Raw(server), leased.token
    fleet.close()


def state(server, raw):
    """Returns all that a command could have changed."""
    found = server.tw()
    return (raw("DEBUG", "DIGEST"), sorted(raw("KEYS", "*")), {name: found[name] for name in COUNTERS},
            server.info("replication")["master_repl_offset"])


def refused(stage, words, *fragments, code="ERR"):
    server, raw, token = stage
    before = state(server, raw)
    answer = raw(*[token if word == TOKEN else word for word in words])
    assert isinstance(answer, Raw.Error), f"{words} was not refused: {answer!r}"
    assert answer.split(" ", 1)[0] == code, answer
    for fragment in fragments:
        assert fragment.lower() in answer.lower(), f"no {fragment!r} in {answer!r}"
    assert state(server, raw) == before


@pytest.mark.parametrize("words,fragments", [
    *numbers((*PUT, "IN"), PAYLOAD, "IN", 0),
    *numbers((*PUT, "AT"), PAYLOAD, "AT", 0, LAST),
    *numbers((*IN, "EVERY"), PAYLOAD, "EVERY", 1, CENTURY),
    *numbers((*IN, "EVERY", 5, "TIMES"), PAYLOAD, "TIMES", 1, MAX),
    *numbers((*IN, "TRIES"), PAYLOAD, "TRIES", 1, "1000000"),
    *numbers((*IN, "MAXLATE"), PAYLOAD, "MAXLATE", 0, CENTURY),
    *numbers((*IN, "BACKOFF"), ("1", "5", *PAYLOAD), "BACKOFF first-ms", 1, CENTURY),
    *numbers((*IN, "BACKOFF", "5", "1"), PAYLOAD, "BACKOFF max-ms", 1, CENTURY),
    *numbers((*IN, "BACKOFF", "5", "1", "5", "JITTER"), PAYLOAD, "JITTER", 0, "100"),
    *numbers(("TW.TAKE", "1", "s", "LEASE"), (), "LEASE", 1, LEASE_MAX),
    *numbers((*TAKE, "COUNT"), (), "COUNT", 1, "10000"),
    *numbers((*TAKE, "BLOCK"), (), "BLOCK", 0, "4294967295"),
    *numbers(("TW.TAKE", ), ("s", "LEASE", "5"), "the number of queues", 1, "10000"),
    *numbers(("TW.TOUCH", "s", "leased", TOKEN, "LEASE"), (), "LEASE", 1, LEASE_MAX),
    *numbers(("TW.NACK", "s", "leased", TOKEN, "IN"), (), "IN", 0),
    *numbers(("TW.NACK", "s", "leased", TOKEN, "AT"), (), "AT", 0, LAST),
    *numbers(("TW.DEAD", "s", "COUNT"), (), "COUNT", 1, "10000"),
    *numbers(("TW.REPLAY", "s", "IDS", "1", "dead", "IN"), (), "IN", 0),
    *numbers(("TW.PURGE", "s", "IDS"), ("dead", ), "IDS", 1, "10000"),
    *numbers(("TW.REPLAY", "s", "ALL", "AT"), (), "AT", 0, LAST),
])
def test_a_number_out_of_range(stage, words, fragments):
    refused(stage, words, *fragments)


@pytest.mark.parametrize("factor", ["", "0", "0.99", "100.01", "101", "1.001", "-1", "1e2", ".", "1.2.3", "1,5",
                                    "two", " 2", "2 ", "99999999999999999999", "0x2"])
def test_a_factor_out_of_range(stage, factor):
    refused(stage, (*IN, "BACKOFF", "5", factor, "5", *PAYLOAD), f"BACKOFF factor is '{factor}'", "1 to 100",
            "two decimal places")


@pytest.mark.parametrize("words,fragments", [
    case((*PUT, "SOON", "5", *PAYLOAD), "SOON", "IN ms or AT unix-ms"),
    case((*IN, "WHENEVER", *PAYLOAD), "WHENEVER", "NX, XX, GT, LT, KEEPDUE, EVERY, TIMES, MISSED, MAXLATE, "
         "TRIES, BACKOFF, JITTER or PAYLOAD"),
    case((*IN, "MAXLEN", "5", *PAYLOAD), "MAXLEN", "BACKOFF"),
    case((*IN, "LIST", *PAYLOAD), "LIST", "BACKOFF"),
    case((*IN, "MISSED", "NEVER", *PAYLOAD), "MISSED is 'NEVER': expected burst, skip or coalesce"),
    case((*TAKE, "KEYS", "1"), "KEYS", "LEASE ms, COUNT n, BLOCK ms or NAME worker"),
    case(("TW.TAKE", "2", "s"), "the number of queues is '2'", "so many queues behind it"),
    case(("TW.TAKE", "1", "s", "s2", "LEASE", "5"), "the option is 's2'", "LEASE ms"),
    case(("TW.TAKE", "s", "LEASE", "5"), "the number of queues is 's'", "1 to 10000"),
    case(("TW.NACK", "s", "leased", TOKEN, "LATER", "5"), "LATER", "IN ms, AT unix-ms, DEAD, BACK or"),
    case(("TW.NACK", "s", "leased", TOKEN, "SOON"), "SOON", "AT unix-ms, DEAD, BACK or ERROR text"),
    case(("TW.NACK", "s", "leased", TOKEN, "IN", "5", "ERROR", "a", "b"), "'b'", "ERROR text"),
    case(("TW.NACK", "s", "leased", TOKEN, "BACK", "5"), "'5'", "BACK or ERROR text"),
    case(("TW.TOUCH", "s", "leased", TOKEN, "FOR", "5"), "FOR", "LEASE ms"),
    case(("TW.DEAD", "s", "LIMIT", "5"), "LIMIT", "COUNT n or AFTER id"),
    case(("TW.DEAD", "s", "AFTER", "waiting"), "AFTER is 'waiting'", "the id of a dead task"),
    case(("TW.DEAD", "s", "AFTER", "nobody"), "AFTER is 'nobody'", "the id of a dead task"),
    case(("TW.DEAD", "none", "AFTER", "dead"), "AFTER is 'dead'", "the id of a dead task"),
    case(("TW.REPLAY", "s", "IDS", "1", "dead", "SOON", "5"), "SOON", "IN ms or AT unix-ms"),
    case(("TW.MOVE", "s", "dead", "IN", "5"), "the task is dead", "a replay, or a put in its place"),
])
def test_a_word_that_is_unknown_or_out_of_place(stage, words, fragments):
    refused(stage, words, *fragments)


# Ids: the id of a put or a send has to leave room for the ids of dead periods

def text_of(size):
    """Returns a text of so many bytes, and of fewer characters."""
    return "\u00e4" * (size // 2) + "x" * (size % 2)


@pytest.mark.parametrize("size", [0, 961, 1024, 100000])
@pytest.mark.parametrize("words", [("TW.PUT", "s"), ("TW.SEND", "s", "stream"), ("TW.SEND", "none", "stream")])
def test_a_new_id_of_no_bytes_or_of_too_many(stage, words, size):
    refused(stage, (*words, text_of(size), "IN", "5", "NX", *PAYLOAD),
            f"id has {size} bytes: expected 1 to 960")


@pytest.mark.parametrize("size", [0, 1025, 100000])
@pytest.mark.parametrize("before,after", [
    (("TW.CANCEL", "s", "waiting"), ()),
    (("TW.CANCEL", "none"), ("waiting", )),
    (("TW.MOVE", "s"), ("IN", "5")),
    (("TW.GET", "s", "waiting"), ()),
    (("TW.ACK", "s", "leased", TOKEN), (TOKEN, )),
    (("TW.NACK", "s"), (TOKEN, )),
    (("TW.TOUCH", "s"), (TOKEN, *LEASE)),
    (("TW.REPLAY", "s", "IDS", "2", "dead"), ()),
    (("TW.PURGE", "s", "IDS", "2", "dead"), ()),
    (("TW.PROMOTE", "s", "IDS", "2", "waiting"), ()),
    (("TW.RANGE", "s", "0", "+", "AFTER"), ()),
    (("TW.DEAD", "s", "AFTER"), ()),
])
def test_an_id_of_no_bytes_or_of_too_many(stage, before, after, size):
    refused(stage, (*before, text_of(size), *after), f"id has {size} bytes: expected 1 to 1024")


@pytest.mark.parametrize("words,fragments", [
    case((*IN, "NX", "EVERY", "5"), "PAYLOAD"),
    case((*IN, "NX", "PAYLOAD"), "PAYLOAD"),
    case((*IN, "TIMES", "5", *PAYLOAD), "TIMES is 5: expected EVERY too"),
    case((*IN, "MISSED", "BURST", *PAYLOAD), "MISSED is burst: expected EVERY too"),
    case((*IN, "NX", "TRIES"), "TRIES has no value", "1 to 1000000"),
    case((*IN, "NX", "EVERY"), "EVERY has no value"),
    case((*IN, "MAXLATE"), "MAXLATE has no value"),
    case((*IN, "NX", "MISSED"), "MISSED has no value", "burst, skip or coalesce"),
    case((*IN, "BACKOFF", "5", "1"), "BACKOFF has 2 values: expected first-ms factor max-ms"),
    case((*IN, "BACKOFF", "5", "1", "5", "JITTER"), "JITTER has no value", "0 to 100"),
    case(("TW.TAKE", "1", "s", "COUNT", "5"), "LEASE is missing", LEASE_MAX),
    case((*TAKE, "COUNT"), "COUNT has no value", "1 to 10000"),
    case((*TAKE, "NAME"), "NAME has no value"),
    case((*TAKE, "NAME", "x" * 256), "NAME has 256 bytes: expected at most 255"),
    case(("TW.NACK", "s", "leased", TOKEN, "ERROR"), "ERROR has no value", "4096 bytes are kept"),
    case(("TW.NACK", "s", "leased", TOKEN, "DEAD", "ERROR"), "ERROR has no value", "4096 bytes are kept"),
    case(("TW.NACK", "s", "leased", TOKEN, "IN"), "IN has no value", "milliseconds, an integer from 0 to"),
    case(("TW.NACK", "s", "leased", TOKEN, "ERROR", "x", "AT"), "AT has no value", LAST),
    case(PUT, "IN or AT is missing", "IN ms or AT unix-ms"),
    case((*PUT, "IN"), "IN has no value", "milliseconds"),
    case((*PUT, "5", *PAYLOAD), "the time is '5'", "IN ms or AT unix-ms"),
    case((*PUT, *PAYLOAD), "the time is 'PAYLOAD'", "IN ms or AT unix-ms"),
    case(IN, "PAYLOAD is missing", "PAYLOAD value [value ...]"),
    case((*IN, "PAYLOAD"), "PAYLOAD is missing", "PAYLOAD value [value ...]"),
    case((*IN, "EVERY"), "EVERY has no value", "milliseconds"),
    case(("TW.TAKE", "1", "s", "LEASE"), "LEASE has no value", "milliseconds", LEASE_MAX),
    case(("TW.TAKE", "1"), "the number of queues is '1'", "so many queues behind it"),
    case((*TAKE, "s"), "'s'", "LEASE ms"),
    case(("TW.TAKE", "1", "s"), "LEASE is missing", LEASE_MAX),
    case(("TW.ACK", "s", "leased"), "the token of the last id is missing", "id token"),
    case(("TW.ACK", "s", "leased", TOKEN, "ready"), "the token of the last id is missing", "id token"),
    case(("TW.TOUCH", "s", "leased", TOKEN), "LEASE is missing", LEASE_MAX),
    case(("TW.TOUCH", "s", "leased", TOKEN, "LEASE"), "LEASE has no value", "milliseconds", LEASE_MAX),
    case(("TW.TOUCH", "s", "leased", TOKEN, "5000"), "'5000'", "LEASE ms"),
    case(("TW.TOUCH", "s", "leased", TOKEN, "LEASE", "5", "x"), "'x'", "LEASE ms"),
    case(("TW.REPLAY", "s"), "ALL or IDS is missing", "ALL, or IDS n id [id ...]"),
    case(("TW.REPLAY", "s", "dead"), "the word is 'dead'", "ALL, or IDS n id [id ...]"),
    case(("TW.REPLAY", "s", "IDS"), "the number of ids is missing", "IDS n id"),
    case(("TW.REPLAY", "s", "IDS", "2", "dead"), "IDS is '2'", "so many ids behind it"),
    case(("TW.REPLAY", "s", "IDS", "1", "dead", "IN", "5", "x"), "'x'", "no more"),
    case(("TW.PURGE", "s", "IDS", "1", "dead", "x"), "the last option is 'x'", "no more"),
    case(("TW.REPLAY", "s", "IDS", "1", "dead", "IN"), "IN has no value", "milliseconds"),
    case(("TW.REPLAY", "s", "IDS", "1", "dead", "5"), "the time is '5'", "IN ms or AT unix-ms"),
    case(("TW.PURGE", "s"), "ALL or IDS is missing", "ALL, or IDS n id [id ...]"),
    case(("TW.DEAD", "s", "COUNT"), "COUNT has no value", "1 to 10000"),
    case(("TW.DEAD", "s", "AFTER"), "AFTER has no value"),
])
def test_something_is_missing_or_too_much(stage, words, fragments):
    refused(stage, words, *fragments)


@pytest.mark.parametrize("words,fragments", [
    case((*IN, "NX", "XX", *PAYLOAD), "the conditions are NX and XX: expected one of NX, XX, GT and LT"),
    case((*IN, "NX", "NX", *PAYLOAD), "NX", "each option at most once"),
    case((*IN, "KEEPDUE", "GT", *PAYLOAD),
         "the conditions are KEEPDUE and GT: expected KEEPDUE alone, or with NX or XX"),
    case((*IN, "lt", "KEEPDUE", *PAYLOAD),
         "the conditions are KEEPDUE and LT: expected KEEPDUE alone, or with NX or XX"),
    case((*IN, "KEEPDUE", "NX", "XX", *PAYLOAD), "the conditions are NX and XX"),
    case((*IN, "KEEPDUE", "KEEPDUE", *PAYLOAD), "KEEPDUE", "each option at most once"),
    case((*IN, "EVERY", "5", "EVERY", "5", *PAYLOAD), "EVERY", "once"),
    case((*IN, "TRIES", "5", "TRIES", "5", *PAYLOAD), "TRIES", "once"),
    case((*IN, "BACKOFF", "5", "1", "5", "BACKOFF", "5", "1", "5", *PAYLOAD), "once"),
    case((*IN, "MISSED", "burst", "MISSED", "burst", *PAYLOAD), "MISSED", "once"),
    case((*IN, "JITTER", "5", "JITTER", "5", *PAYLOAD), "JITTER", "once"),
    case((*TAKE, "LEASE", "5"), "LEASE", "once"),
    case((*TAKE, "COUNT", "5", "COUNT", "5"), "COUNT", "once"),
    case((*TAKE, "BLOCK", "5", "BLOCK", "5"), "BLOCK", "once"),
    case((*TAKE, "NAME", "5", "NAME", "5"), "NAME", "once"),
    case(("TW.NACK", "s", "leased", TOKEN, "DEAD", "IN", "5"), "IN", "one of IN ms, AT unix-ms and DEAD"),
    case(("TW.NACK", "s", "leased", TOKEN, "IN", "5", "DEAD"), "DEAD", "one of IN ms, AT unix-ms and DEAD"),
    case(("TW.NACK", "s", "leased", TOKEN, "BACK", "DEAD"), "DEAD", "BACK without DEAD"),
    case(("TW.NACK", "s", "leased", TOKEN, "DEAD", "BACK"), "BACK", "BACK without DEAD"),
    case(("TW.NACK", "s", "leased", TOKEN, "BACK", "BACK"), "BACK", "each option at most once"),
    case(("TW.NACK", "s", "leased", TOKEN, "BACK", "ERROR", "a"), "BACK has an error text"),
    case(("TW.NACK", "s", "leased", TOKEN, "ERROR", "a", "BACK"), "BACK has an error text"),
    case(("TW.NACK", "s", "leased", TOKEN, "ERROR", "", "BACK"), "expected none, as nothing has failed"),
    case(("TW.NACK", "s", "leased", TOKEN, "IN", "5", "AT", "5"), "AT", "one of IN ms, AT unix-ms and DEAD"),
    case(("TW.NACK", "s", "leased", TOKEN, "ERROR", "a", "ERROR", "b"), "ERROR", "each option at most once"),
    case(("TW.DEAD", "s", "COUNT", "5", "COUNT", "5"), "COUNT", "once"),
    case(("TW.DEAD", "s", "AFTER", "dead", "AFTER", "dead"), "AFTER", "once"),
])
def test_each_option_once(stage, words, fragments):
    refused(stage, words, *fragments)


@pytest.mark.parametrize("words", [
    ("TW.PUT", ), ("TW.PUT", "s"), ("TW.TAKE", ), ("TW.ACK", ), ("TW.ACK", "s"), ("TW.NACK", "s", "leased"),
    ("TW.TOUCH", "s", "leased"), ("TW.DEAD", ), ("TW.REPLAY", ), ("TW.PURGE", ), ("TW.PAUSE", ),
    ("TW.PAUSE", "s", "ON"), ("TW.RESUME", ), ("TW.RESUME", "s", "x")], ids=" ".join)
def test_a_wrong_number_of_arguments(stage, words):
    refused(stage, words, "wrong number of arguments", words[0])


@pytest.mark.parametrize("key", ["string", "stream", "list"])
@pytest.mark.parametrize("words", [
    ("TW.PUT", "KEY", "a", "IN", "5", *PAYLOAD), ("TW.TAKE", "1", "KEY", *LEASE),
    ("TW.TAKE", "2", "s", "KEY", *LEASE),
    ("TW.TAKE", "2", "KEY", "s", *LEASE, "BLOCK", "0"), ("TW.ACK", "KEY", "a", TOKEN),
    ("TW.NACK", "KEY", "a", TOKEN), ("TW.NACK", "KEY", "a", TOKEN, "BACK"),
    ("TW.TOUCH", "KEY", "a", TOKEN, "LEASE", "5"), ("TW.DEAD", "KEY"), ("TW.REPLAY", "KEY", "ALL"),
    ("TW.PURGE", "KEY", "ALL"), ("TW.PAUSE", "KEY"), ("TW.RESUME", "KEY")],
    ids=lambda words: " ".join(words[:2]))
def test_a_key_of_another_type(stage, key, words):
    """TW.TAKE takes nothing from the other queues either."""
    refused(stage, [key if word == "KEY" else word for word in words], code="WRONGTYPE")


@pytest.mark.parametrize("form", [("NOTHING", ), ("ONCE", "dead"), ("NEXT", "waiting", "5", "5"),
                                  ("e", ), ("", ), ("e", "v"), ("RENEW", "e", "v"),
                                  ("SOMETHING", "x")], ids=" ".join)
def test_internal_commands_are_refused(stage, form):
    refused(stage, ("TW.FIRED", "s", *form), "only from the append-only file and the replication link")


def test_over_the_limit_of_memory(stage):
    server, raw, _ = stage
    raw("CONFIG", "SET", "maxmemory", 1)
    try:
        for words in ((*IN, *PAYLOAD), ("TW.REPLAY", "s", "IDS", "1", "dead"), ("TW.PAUSE", "new")):
            refused(stage, words, code="OOM")
        assert raw("TW.PURGE", "s", "IDS", "1", "nobody") == 0
        assert raw("TW.RESUME", "new") == 0
        assert raw("TW.ACK", "s", "leased", "0" * 16) == 0
    finally:
        raw("CONFIG", "SET", "maxmemory", 0)
    assert server.tw()["dead"] == 1


def test_a_replica_refuses_what_writes(fleet, stage):
    server, _, token = stage
    other = Raw(fleet.server(replicaof=server))
    for words in ((*IN, *PAYLOAD), TAKE, ("TW.ACK", "s", "leased", token), ("TW.PAUSE", "s"),
                  ("TW.RESUME", "s"),
                  ("TW.NACK", "s", "leased", token), ("TW.NACK", "s", "leased", token, "BACK"),
                  ("TW.TOUCH", "s", "leased", token, "LEASE", "5"),
                  ("TW.REPLAY", "s", "ALL"), ("TW.PURGE", "s", "ALL")):
        answer = other(*words)
        assert isinstance(answer, Raw.Error) and answer.startswith("READONLY"), answer
