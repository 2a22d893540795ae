# SPDX-License-Identifier: MIT
"""A command that replies with an error has changed nothing. The error names the argument, and the range in
which it must be."""
import re

import pytest

from harness import Fleet, Raw, Tap, now_ms

HOUR = 3600 * 1000
CENTURY = "3155760000000"
MAX = "9223372036854775807"  # A message may also write it as 2^63-1.
LAST = "253402300799999"  # the last time
COUNTERS = ("put", "cancelled", "moved", "delivered", "dropped", "coalesced", "dead", "tasks", "queues")

ADD = ("TW.SEND", "s", "q", "new")
IN = (*ADD, "IN", "5")
PAYLOAD = ("PAYLOAD", "f", "v")
# The numbers that are times, by the names that errors give them.
TIMES = ("IN", "AT", "EVERY", "MAXLATE", "LEASE", "BLOCK", "STEP", "from", "to", "BACKOFF first-ms",
         "BACKOFF max-ms")


@pytest.fixture(scope="module")
def shared():
    """One server for all tests of this file, which show that they change nothing. A replication link has been
    opened once, so that the server counts its replication offset."""
    fleet = Fleet()
    server = fleet.server()
    Tap(server).close()
    yield server
    fleet.close()


@pytest.fixture
def server(shared):
    return shared


@pytest.fixture
def raw(server):
    """A connection to a server that has a queue, a stream, a list, a string and a set, and no other key."""
    connection = Raw(server)
    connection("CONFIG", "SET", "maxmemory", 0)
    connection("FLUSHALL")
    for words in (("TW.SEND", "s", "q", "old", "AT", now_ms() + HOUR, "EVERY", 1000, "TIMES", 5, "PAYLOAD", "f",
                   "v"), ("TW.SEND", "s", "list", "older", "AT", now_ms() + 2 * HOUR, "LIST", "PAYLOAD", "v"),
                  ("XADD", "q", "*", "f", "v"), ("RPUSH", "list", "v"), ("SET", "string", "v"), ("SADD", "set",
                                                                                                 "v")):
        assert not isinstance(connection(*words), Raw.Error)
    return connection


def state(server, raw):
    """Returns everything that a command could have changed: the data, the replication offset, the counters.
    It leaves out `remaining`, which changes with time."""
    found = [[name, one] for name in ("old", "older", "new") for one in raw("TW.GET", "s", name)]
    return (raw("DEBUG", "DIGEST"), sorted(raw("KEYS", "*")), raw("TW.LEN", "s"),
            raw("TW.RANGE", "s", "-", "+"), [[name, one and one[:3:2] + one[4:]] for name, one in found],
            server.info("replication")["master_repl_offset"], {name: server.tw()[name]
                                                               for name in COUNTERS})


def refused(server, raw, words, *fragments, code="ERR"):
    """Asserts that the command is refused with an error of this code that contains all fragments, and that
    nothing has changed."""
    before = state(server, raw)
    answer = raw(*words)
    assert isinstance(answer, Raw.Error), f"{words} was not refused: {answer!r}"
    assert answer.split(" ", 1)[0] == code, answer
    for fragment in fragments:
        pattern = rf"(?<!\d)({MAX}|2\^63 ?- ?1)(?!\d)" if fragment == MAX else \
            rf"(?<!\d){fragment}(?!\d)" if fragment.isdigit() else re.escape(fragment)
        assert re.search(pattern, answer.replace(",", ""), re.IGNORECASE), f"no {fragment!r} in {answer!r}"
    assert state(server, raw) == before


def case(words, *fragments):
    return pytest.param(words, fragments, id=" ".join(map(str, words))[:90])


# Numbers out of their range: the option's name, and both ends of the range

def numbers(before, after, name, low, high=None):
    """Returns a case for each text that is no number, and for each number out of range. If `high` is None,
    the upper end of the range is the time left until the last time. The error of a time has the unit."""
    wrong = [
        "ten", "", "1.5", "1e3", " 5", "5 ", "0x10", "30m",
        str(low - 1),
        str(int(high or LAST) + 1), "99999999999999999999"
    ]
    unit = ["milliseconds"] if name in TIMES else []
    return [case((*before, value, *after), name, str(low), *unit, *([high] if high else [])) for value in wrong]


@pytest.mark.parametrize("words,fragments", [
    *numbers((*ADD, "IN"), PAYLOAD, "IN", 0),
    *numbers((*ADD, "AT"), PAYLOAD, "AT", 0, LAST),
    *numbers((*IN, "EVERY"), PAYLOAD, "EVERY", 1, CENTURY),
    *numbers((*IN, "EVERY", 5, "TIMES"), PAYLOAD, "TIMES", 1, MAX),
    *numbers((*IN, "MAXLEN"), PAYLOAD, "MAXLEN", 1, MAX),
    *numbers((*IN, "MAXLATE"), PAYLOAD, "MAXLATE", 0, CENTURY),
    *numbers((*IN, "TRIES"), PAYLOAD, "TRIES", 1, "15"),
    *numbers((*IN, "BACKOFF"), ("1", "5", *PAYLOAD), "BACKOFF first-ms", 1, CENTURY),
    *numbers((*IN, "JITTER"), PAYLOAD, "JITTER", 0, "100"),
    *numbers(("TW.MOVE", "s", "old", "IN"), (), "IN", 0),
    *numbers(("TW.MOVE", "s", "old", "AT"), (), "AT", 0, LAST),
    *numbers(("TW.SCAN", "s", 0, "COUNT"), (), "COUNT", 1, "2147483647"),
    *numbers(("TW.RANGE", "s", "-", "+", "COUNT"), (), "COUNT", 1, "10000"),
    *numbers(("TW.RANGE", "s"), ("+",), "from", 0, LAST),
    *numbers(("TW.RANGE", "s", "-"), (), "to", 0, LAST),
    *numbers(("TW.FORECAST", "s", "STEP"), (), "STEP", 1, CENTURY),
    *numbers(("TW.FORECAST", "s", "STEPS"), (), "STEPS", 1, "10000"),
    *numbers(("TW.PROMOTE", "s", "IDS"), ("a",), "IDS", 1, "10000"),
])
def test_a_number_out_of_range(server, raw, words, fragments):
    refused(server, raw, words, *fragments)


@pytest.mark.parametrize("words,fragments", [
    case((*ADD, "IN", LAST, *PAYLOAD), "IN"),
    case(("TW.MOVE", "s", "old", "IN", LAST), "IN"),
])
def test_a_sum_past_the_end_of_time(server, raw, words, fragments):
    refused(server, raw, words, *fragments)


@pytest.mark.parametrize("cursor", ["x", "", "-1", "1.5", "99999999999999999999"])
def test_an_invalid_cursor(server, raw, cursor):
    refused(server, raw, ("TW.SCAN", "s", cursor), "cursor")


def test_a_pattern_that_is_too_long(server, raw):
    refused(server, raw, ("TW.SCAN", "s", 0, "MATCH", "a" * 256), "MATCH", "256", "255")
    assert raw("TW.SCAN", "s", 0, "MATCH", "a" * 255) == ["0", []]


# Words that do not belong where they are

@pytest.mark.parametrize("words,fragments", [
    case((*ADD, "SOON", "5", *PAYLOAD), "SOON"),
    case((*IN, "WHENEVER", *PAYLOAD), "WHENEVER", "LIST [LEFT]"),
    case((*IN, "MISSED", "NEVER", *PAYLOAD), "MISSED is 'NEVER': expected burst", "skip or coalesce"),
    case((*IN, "MISSED", *PAYLOAD), "MISSED is 'PAYLOAD'", "burst", "skip or coalesce"),
    case((*IN, "LATE", "FIRE", *PAYLOAD), "the option is 'LATE'", "MISSED", "MAXLATE", "JITTER", "STREAM"),
    case(("TW.MOVE", "s", "old", "SOON", "5"), "SOON"),
    case(("TW.MOVE", "s", "old", "IN", "5", "NX"), "NX"),
    case(("TW.SCAN", "s", "0", "LIMIT", "5"), "LIMIT"),
    case(("TW.RANGE", "s", "-", "+", "LIMIT", "5"), "LIMIT"),
    case(("TW.FORECAST", "s", "COUNT", "5"), "COUNT"),
    case(("TW.PROMOTE", "s", "COUNT", "5"), "COUNT"),
])
def test_an_unknown_word(server, raw, words, fragments):
    refused(server, raw, words, *fragments)


@pytest.mark.parametrize("words,fragments", [
    case((*ADD, "NX", "EVERY", "5", *PAYLOAD), "IN", "AT"),
    case((*ADD, *PAYLOAD, "x", "y"), "IN", "AT"),
    case(ADD, "IN or AT is missing", "IN ms or AT unix-ms"),
    case((*ADD, "IN"), "IN has no value", "milliseconds"),
    case((*ADD, "at"), "AT has no value", "Unix time in milliseconds", LAST),
    case((*ADD, "5"), "the time is '5'", "IN ms or AT unix-ms"),
    case((*ADD, *PAYLOAD), "the time is 'PAYLOAD'", "IN ms or AT unix-ms"),
    case(IN, "PAYLOAD is missing", "PAYLOAD field value"),
    case((*IN, "PAYLOAD"), "PAYLOAD has 0 values: expected field value [field value ...]"),
    case((*IN, "LIST"), "PAYLOAD is missing", "one value for a LIST"),
    case(("TW.MOVE", "s", "old"), "IN or AT is missing"),
    case(("TW.MOVE", "s", "old", "IN"), "IN has no value", "milliseconds"),
    case(("TW.MOVE", "s", "old", "5"), "the time is '5'", "IN ms or AT unix-ms"),
    case(("TW.MOVE", "s", "old", "IN", "5", "GT", "LT"), "the conditions are GT and LT: expected one of"),
    case(("TW.MOVE", "s", "old", "IN", "5", "lt", "gt"), "the conditions are LT and gt: expected one of"),
    case(("TW.MOVE", "s", "old", "IN", "5", "GT", "gt"), "the option is 'gt'", "each option at most once"),
    case(("TW.MOVE", "s", "old", "IN", "5", "GT", "NX"), "the option is 'NX'", "GT or LT"),
    case(("TW.MOVE", "s", "old", "IN", "5", "GT", "LT", "GT"), "the conditions are GT and LT"),
    case(("TW.MOVE", "s", "old", "GT"), "the time is 'GT'", "IN ms or AT unix-ms"),
    case((*IN, "NX", "MAXLEN", "5"), "PAYLOAD"),
    case((*IN, "f", "v"), "f"),
    case((*IN, "NX", "PAYLOAD"), "PAYLOAD"),
    case((*IN, "NX", "EVERY"), "EVERY"),
    case((*IN, "EVERY", "5", "TIMES"), "TIMES"),
    case((*IN, "NX", "MAXLEN"), "MAXLEN"),
    case((*IN, "MAXLATE"), "MAXLATE"),
    case((*IN, "TIMES", "5", *PAYLOAD), "TIMES is 5: expected EVERY too"),
    case((*IN, "MISSED", "BURST", *PAYLOAD), "MISSED is burst: expected EVERY too"),
    case((*IN, "PAYLOAD", "f"), "PAYLOAD"),
    case((*IN, "PAYLOAD", "f", "v", "g"), "PAYLOAD"),
    case((*IN, "LIST", "PAYLOAD", "f", "v"), "PAYLOAD has 2 values: expected one for a LIST"),
    case((*IN, "LIST", "PAYLOAD"), "PAYLOAD"),
    case((*IN, "LIST", "MAXLEN", "5", "PAYLOAD", "v"), "target is a LIST: expected a STREAM with MAXLEN"),
    case(("TW.SEND", "s", "s", "new", "IN", "5", *PAYLOAD), "target"),
])
def test_something_is_missing_or_too_much(server, raw, words, fragments):
    refused(server, raw, words, *fragments)


@pytest.mark.parametrize("words,fragments", [
    case((*IN, "IN", "6", *PAYLOAD), "IN"),
    case((*IN, "AT", "6", *PAYLOAD), "AT"),
    case((*IN, "NX", "NX", *PAYLOAD), "NX"),
    case((*IN, "NX", "XX", *PAYLOAD), "the conditions are NX and XX: expected one of NX", "XX", "GT and LT"),
    case((*IN, "NX", "GT", *PAYLOAD), "the conditions are NX and GT: expected one of NX", "XX", "GT and LT"),
    case((*IN, "GT", "LT", *PAYLOAD), "the conditions are GT and LT: expected one of NX", "XX", "GT and LT"),
    case((*IN, "XX", "GT", *PAYLOAD), "the conditions are XX and GT: expected one of NX", "XX", "GT and LT"),
    case((*IN, "EVERY", "5", "EVERY", "5", *PAYLOAD), "EVERY"),
    case((*IN, "EVERY", "5", "TIMES", "2", "TIMES", "2", *PAYLOAD), "TIMES"),
    case((*IN, "MAXLEN", "5", "MAXLEN", "5", *PAYLOAD), "MAXLEN"),
    case((*IN, "LIST", "STREAM", *PAYLOAD), "STREAM"),
    case((*IN, "STREAM", "STREAM", *PAYLOAD), "STREAM"),
    case((*IN, "MISSED", "burst", "MISSED", "coalesce", *PAYLOAD), "the option is 'MISSED'", "once"),
    case((*IN, "MAXLATE", "5", "MAXLATE", "5", *PAYLOAD), "the option is 'MAXLATE'", "once"),
    case(("TW.SCAN", "s", "0", "COUNT", "5", "COUNT", "5"), "COUNT"),
    case(("TW.SCAN", "s", "0", "MATCH", "a", "MATCH", "a"), "MATCH"),
    case(("TW.FORECAST", "s", "STEP", "5", "STEP", "5"), "STEP"),
    case(("TW.FORECAST", "s", "STEPS", "5", "STEPS", "5"), "STEPS"),
    case(("TW.RANGE", "s", "-", "+", "COUNT", "5", "COUNT", "5"), "COUNT"),
    case(("TW.RANGE", "s", "-", "+", "AFTER", "a", "AFTER", "a"), "AFTER"),
])
def test_each_option_once(server, raw, words, fragments):
    refused(server, raw, words, *fragments)


@pytest.mark.parametrize("name", ["tw.id", "tw.due", "tw.attempt"])
@pytest.mark.parametrize("place", [0, 2])
def test_a_field_that_has_one_of_the_first_names(server, raw, name, place):
    fields = ["f", "v", "g", "w"]
    fields[place] = name
    refused(server, raw, (*IN, "PAYLOAD", *fields), name)


def test_errors_come_before_what_the_condition_would_keep(server, raw):
    refused(server, raw, ("TW.SEND", "s", "q", "old", "IN", "5", "NX", "EVERY", "0", *PAYLOAD), "EVERY")
    refused(server, raw, ("TW.SEND", "s", "q", "new", "IN", "5", "XX", "PAYLOAD", "f"), "PAYLOAD")


def test_a_refused_command_makes_no_queue(server, raw):
    before = sorted(raw("KEYS", "*"))
    for words in (("IN", "-1", *PAYLOAD), ("IN", "5", "PAYLOAD", "f"), ("IN", "5", "MISSED", "x", *PAYLOAD)):
        assert isinstance(raw("TW.SEND", "nowhere", "q", "a", *words), Raw.Error)
    assert sorted(raw("KEYS", "*")) == before


# Keys that hold something else

@pytest.mark.parametrize("key", ["string", "set", "q", "list"])
@pytest.mark.parametrize("words", [("TW.SEND", "q2", "a", "IN", "5", *PAYLOAD), ("TW.CANCEL", "a"),
                                   ("TW.MOVE", "a", "IN", "5"), ("TW.GET", "a"), ("TW.LEN", ), ("TW.NEXT", ),
                                   ("TW.SCAN", "0"), ("TW.RANGE", "-", "+"), ("TW.FORECAST", ),
                                   ("TW.PROMOTE", "ALL"), ("TW.INFO", )],
                         ids=lambda words: words[0])
def test_a_key_of_another_type(server, raw, key, words):
    refused(server, raw, (words[0], key, *words[1:]), code="WRONGTYPE")


@pytest.mark.parametrize("words", [("GET", "s"), ("XADD", "s", "*", "f", "v"), ("LPUSH", "s", "v"),
                                   ("HGETALL", "s")],
                         ids=lambda words: words[0])
def test_other_commands_on_a_queue(server, raw, words):
    refused(server, raw, words, code="WRONGTYPE")


def test_a_long_argument_is_cut_at_a_character(server, raw):
    refused(server, raw, ("TW.MOVE", "s", "old", "IN", "x" + "\u00e4" * 100), "'x" + "\u00e4" * 31 + "...'")


# Too few words, or too many

@pytest.mark.parametrize("words,fragments", [
    case(("TW.SCAN", "s", "0", "MATCH"), "MATCH"),
    case(("TW.SCAN", "s", "0", "MATCH", "a", "COUNT"), "COUNT", "1", "2147483647"),
    case(("TW.RANGE", "s", "-", "+", "COUNT"), "COUNT", "1", "10000"),
    case(("TW.RANGE", "s", "-", "+", "AFTER"), "AFTER"),
    case(("TW.FORECAST", "s", "STEP"), "STEP", "1", CENTURY),
    case(("TW.FORECAST", "s", "STEP", "5", "STEPS"), "STEPS", "1", "10000"),
    case((*IN, "PAYLOAD"), "PAYLOAD"),
    case((*IN, "EVERY"), "EVERY", "milliseconds", "1", CENTURY),
    case((*IN, "TIMES"), "TIMES", "1", MAX),
    case((*IN, "MAXLATE"), "MAXLATE", "milliseconds", "0", CENTURY),
    case((*IN, "MISSED"), "MISSED has no value", "burst", "skip or coalesce"),
    case(("TW.TOP", "STEP"), "STEP", "milliseconds", "1", CENTURY)
])
def test_an_option_without_its_value(server, raw, words, fragments):
    """The error names the option, also where the command has too few words for a good one."""
    refused(server, raw, words, *fragments)


@pytest.mark.parametrize("words", [("TW.SEND", ), ("TW.SEND", "s"), ("TW.SEND", "s", "q"),
                                   ("TW.CANCEL", ), ("TW.CANCEL", "s"), ("TW.MOVE", ), ("TW.MOVE", "s"),
                                   ("TW.GET", ),
                                   ("TW.GET", "s"), ("TW.LEN", ), ("TW.LEN", "s", "x"), ("TW.NEXT", ),
                                   ("TW.NEXT", "s", "x"), ("TW.SCAN", ), ("TW.SCAN", "s"), ("TW.RANGE", ),
                                   ("TW.RANGE", "s", "-"), ("TW.FORECAST", ), ("TW.PROMOTE", ), ("TW.INFO", ),
                                   ("TW.INFO", "s", "x")],
                         ids=" ".join)
def test_a_wrong_number_of_arguments(server, raw, words):
    refused(server, raw, words, "wrong number of arguments", words[0])


# Errors that must not leave half of an action behind

def test_an_error_within_a_transaction_leaves_the_rest(server, raw):
    raw("MULTI")
    raw(*ADD, "IN", HOUR, *PAYLOAD)
    raw("TW.SEND", "s", "q", "wrong", "IN", "-1", *PAYLOAD)
    raw("INCR", "n")
    answers = raw("EXEC")
    assert (answers[0], answers[2]) == ("new", 1)
    assert isinstance(answers[1], Raw.Error)
    assert raw("TW.LEN", "s") == 3


def test_what_is_refused_is_not_replicated(server, raw):
    tap = Tap(server)
    for words in ((*ADD, "IN", "-1", *PAYLOAD), ("TW.MOVE", "s", "old", "IN", "x"),
                  ("TW.PROMOTE", "s", "IDS", "0", "a"), ("TW.FIRED", "s", "old"), ("TW.LOAD", "s", "q", "x")):
        assert isinstance(raw(*words), Raw.Error)
    assert tap.commands() == []
    tap.close()


def test_what_changes_nothing_is_not_replicated(server, raw):
    tap = Tap(server)
    assert raw("TW.SEND", "s", "q", "old", "IN", "5", "NX", *PAYLOAD) is None
    assert raw("TW.SEND", "s", "q", "new", "IN", "5", "XX", *PAYLOAD) is None
    assert raw("TW.SEND", "s", "q", "old", "IN", "5", "GT", *PAYLOAD) is None
    assert raw("TW.CANCEL", "s", "nobody") == [0]
    assert raw("TW.MOVE", "s", "nobody", "IN", "5") is None
    assert raw("TW.MOVE", "s", "old", "IN", "5", "GT") == 0
    assert raw("TW.PROMOTE", "nowhere", "ALL") == 0
    assert tap.commands() == []
    tap.close()


def test_over_the_limit_of_memory_what_needs_some_is_refused(server, raw):
    raw("CONFIG", "SET", "maxmemory", 1)
    for words in ((*IN, *PAYLOAD), ("TW.MOVE", "s", "old", "IN", "5"), ("TW.PROMOTE", "s", "ALL")):
        refused(server, raw, words, code="OOM")
    assert raw("TW.CANCEL", "s", "old") == [1]
    assert raw("TW.LEN", "s") == 1


def test_a_replica_refuses_what_writes(fleet, server, raw):
    replica = fleet.server(replicaof=server)
    other = Raw(replica)
    for words in ((*IN, *PAYLOAD), ("TW.CANCEL", "s", "old"), ("TW.MOVE", "s", "old", "IN", "5"),
                  ("TW.PROMOTE", "s", "ALL")):
        answer = other(*words)
        assert isinstance(answer, Raw.Error) and answer.startswith("READONLY"), answer
