# SPDX-License-Identifier: MIT
"""The words of each command, and the units: seconds here, milliseconds on the wire."""
from __future__ import annotations

import json
import math
import reprlib
from datetime import datetime, timedelta, timezone
from typing import Any, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

Id = Union[str, bytes]
Value = Union[str, bytes, int, float]
OneValue = Union[Value, None, Sequence[Any], Mapping[Any, Any]]
Payload = Union[OneValue, "Values"]
Seconds = Union[int, float, timedelta]
Moment = Union[int, float, datetime]
Words = List[Value]

MOST_TIMES = 2**63 - 1
MOST_MS = 253402300799999  # the end of the year 9999
MOST_LEASE_MS = 2**32 - 1
CENTURY_MS = 3155760000000
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
MILLISECOND = timedelta(milliseconds=1)
MOST_TRIES, MOST_TARGET_TRIES = 1000000, 15
KINDS = ("stream", "list", "list left")
PAGE = 10000  # The most tasks of one command.
MOST_HINT = 2**31 - 1  # The most of a scan, for which the number is a hint.


class Backoff(NamedTuple):
    """The waits after failed attempts of a task: `first` seconds after the first one, `factor` times as long
    after each further one (1 to 100, at most two decimal places), at most `max` seconds; each is longer or
    shorter by up to `jitter` percent (0 to 100). None: as the server's setting `tickwheel.jitter`."""
    first: Seconds
    factor: float = 2
    max: Seconds = 3600
    jitter: Optional[int] = None


def milliseconds(name: str, value: Seconds, least: int = 0, most: int = MOST_MS) -> int:
    """Returns seconds, or a timedelta, as ms. Raises TypeError or ValueError, which names the argument, unless
    the result lies between `least` and `most`."""
    if isinstance(value, bool) or not isinstance(value, (int, float, timedelta)):
        raise TypeError(f"{name} is {value!r}: expected seconds, as a number or a timedelta")
    exact = value / MILLISECOND if isinstance(value, timedelta) else value * 1000
    ms = round(exact) if isinstance(exact, int) or math.isfinite(exact) else -1
    if not least <= ms <= most:
        raise ValueError(f"{name} is {value!r}: expected {least / 1000:g} to {most // 1000} seconds")
    return ms


def whole(name: str, value: int, least: int, most: int) -> int:
    """Returns an integer. Raises TypeError or ValueError, as milliseconds() does."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} is {value!r}: expected an integer from {least} to {most}")
    if not least <= value <= most:
        raise ValueError(f"{name} is {value!r}: expected an integer from {least} to {most}")
    return value


def unix_milliseconds(name: str, value: Moment) -> int:
    """Returns Unix seconds, or an aware datetime, as Unix ms. Raises as milliseconds() does."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(f"{name} is {value!r}: expected a datetime with a time zone")
        return milliseconds(name, value - EPOCH)
    return milliseconds(name, value)


def when(delay: Optional[Seconds], at: Optional[Moment]) -> Words:
    """Returns IN or AT with its time; nothing if neither is given."""
    if delay is not None and at is not None:
        raise ValueError(f"delay is {delay!r} and at is {at!r}: expected only one of them")
    if delay is not None:
        return ["IN", milliseconds("delay", delay)]
    return [] if at is None else ["AT", unix_milliseconds("at", at)]


def one_of(name: str, value: Optional[str], *choices: str) -> Words:
    """Returns the word of a condition; nothing if it is None."""
    if value is None:
        return []
    if value not in choices:
        raise ValueError(f"{name} is {value!r}: expected {' or '.join(map(repr, choices))}")
    return [value.upper()]


def late_words(missed: Optional[str], max_late: Optional[Seconds]) -> Words:
    words: Words = []
    if missed is not None:
        words = ["MISSED", *one_of("missed", missed, "burst", "skip", "coalesce")]
    return words if max_late is None else [*words, "MAXLATE", milliseconds("max_late", max_late, 0, CENTURY_MS)]


def backoff_words(backoff: Optional[Tuple[object, ...]]) -> Words:
    if backoff is None:
        return []
    if not isinstance(backoff, tuple):
        raise TypeError(f"backoff is {backoff!r}: expected a Backoff")
    first, factor, most, jitter = Backoff(*backoff)  # type: ignore[arg-type]
    words: Words = ["BACKOFF", milliseconds("backoff.first", first, 1, CENTURY_MS), factor_word(factor),
                    milliseconds("backoff.max", most, 1, CENTURY_MS)]
    return words if jitter is None else [*words, "JITTER", whole("backoff.jitter", jitter, 0, 100)]


def factor_word(factor: float) -> str:
    said = f"backoff.factor is {factor!r}: expected a number from 1 to 100 with at most two decimal places"
    if isinstance(factor, bool) or not isinstance(factor, (int, float)):
        raise TypeError(said)
    if not 1 <= factor <= 100 or round(factor, 2) != factor:
        raise ValueError(said)
    return f"{factor:g}"


def encoded(word: Id, name: str = "id") -> bytes:
    """Returns an id as bytes: an id that was no UTF-8 has come as a str with surrogates, and goes back as it
    came."""
    if isinstance(word, str):
        return word.encode("utf-8", "surrogateescape")
    if isinstance(word, bytes):
        return word
    raise TypeError(f"{name} is {word!r}: expected str or bytes")


class Values:
    """Several values of one payload, each of them as a payload of one value: only in a server."""

    def __init__(self, *values: OneValue) -> None:
        if not values:
            raise ValueError("no value is given: expected at least one")
        self.values = values

    def __repr__(self) -> str:
        return f"Values{self.values!r}"


def value_word(value: OneValue) -> Value:
    """Returns str and bytes as they are, and any other value as JSON."""
    if isinstance(value, (str, bytes)):
        return value
    try:
        words = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"payload is {reprlib.repr(value)}: expected str, bytes, Values, or a value of JSON"
                   f" ({error})") from error
    return words.encode("utf-8", "backslashreplace")


def payload_words(payload: Payload) -> Words:
    values = payload.values if isinstance(payload, Values) else (payload,)
    return ["PAYLOAD", *map(value_word, values)]


def target_words(kind: str, maxlen: Optional[int]) -> Words:
    """Returns the words of a target, which has the `kind` of a look."""
    if kind not in KINDS:
        raise ValueError(f"kind is {kind!r}: expected {' or '.join(map(repr, KINDS))}")
    words: Words = [*kind.upper().split()]
    return words if maxlen is None else [*words, "MAXLEN", whole("maxlen", maxlen, 1, MOST_TIMES)]


def entry_words(kind: str, payload: OneValue) -> Words:
    """Returns the payload for a target: fields and values for a Stream, and one value for a List."""
    if kind != "stream":
        return payload_words(payload)
    if not isinstance(payload, Mapping) or not payload:
        raise TypeError(f"payload is {reprlib.repr(payload)}: expected a dict of fields and values, as a Stream"
                        " has")
    words: Words = ["PAYLOAD"]
    for field, value in payload.items():
        words += [encoded(field, "a field"), value_word(value)]
    return words


def id_word(id: Optional[Id]) -> Id:
    if id in ("*", b"*"):
        raise ValueError(f"id is {id!r}, for which the server makes another one: use None")
    return "*" if id is None else encoded(id)


def option_words(delay: Optional[Seconds], at: Optional[Moment], condition: Optional[str], keep_due: bool,
                 every: Optional[Seconds], times: Optional[int], missed: Optional[str],
                 max_late: Optional[Seconds], tries: Optional[int], backoff: Optional[Tuple[object, ...]],
                 most_tries: int = MOST_TRIES) -> Words:
    """Returns the time and the options of a put or a send."""
    words = when(delay, at) or ["IN", 0]
    known = ("nx", "xx") if keep_due else ("nx", "xx", "gt", "lt")
    words += one_of("condition", condition, *known)
    words += ["KEEPDUE"] if keep_due else []
    if every is not None:
        words += ["EVERY", milliseconds("every", every, 1, CENTURY_MS)]
    if times is not None:
        words += ["TIMES", whole("times", times, 1, MOST_TIMES)]
    words += late_words(missed, max_late)
    if tries is not None:
        words += ["TRIES", whole("tries", tries, 1, most_tries)]
    return words + backoff_words(backoff)


def move_words(key: Id, id: Id, delay: Optional[Seconds], at: Optional[Moment],
               condition: Optional[str]) -> Words:
    time = when(delay, at)
    if not time:
        raise ValueError("neither delay nor at is given: expected one of them")
    return ["TW.MOVE", key, encoded(id), *time, *one_of("condition", condition, "gt", "lt")]


def cancel_words(key: Id, ids: Sequence[Id]) -> Words:
    if not ids:
        raise ValueError("no id is given: expected at least one")
    return ["TW.CANCEL", key, *map(encoded, ids)]


def scan_words(key: Id, cursor: int, count: int, match: Optional[Id]) -> Words:
    pattern: Words = [] if match is None else ["MATCH", encoded(match, "match")]
    return ["TW.SCAN", key, cursor, "COUNT", whole("count", count, 1, MOST_HINT), *pattern]


def range_words(key: Id, first: Optional[Moment], last: Optional[Moment], count: int,
                after: Optional[Id] = None) -> Words:
    words: Words = ["TW.RANGE", key, "-" if first is None else unix_milliseconds("first", first),
                    "+" if last is None else unix_milliseconds("last", last)]
    words += [] if after is None else ["AFTER", encoded(after, "after")]
    return [*words, "COUNT", whole("count", count, 1, PAGE)]


def forecast_words(key: Id, step: Seconds, steps: int) -> Words:
    return ["TW.FORECAST", key, "STEP", milliseconds("step", step, 1, CENTURY_MS),
            "STEPS", whole("steps", steps, 1, PAGE)]


def dead_words(key: Id, count: int, after: Optional[Id]) -> Words:
    words: Words = ["TW.DEAD", key, "COUNT", whole("count", count, 1, PAGE)]
    return words if after is None else [*words, "AFTER", encoded(after, "after")]


def one_task(id: Id) -> Words:
    return ["IDS", 1, encoded(id)]


def take_words(lease_ms: int, count: int, block_ms: Optional[int], name: str, keys: Sequence[str]) -> Words:
    """Returns the words of a take. It waits so long for a task, or not at all if `block_ms` is None."""
    block: Words = [] if block_ms is None else ["BLOCK", block_ms]
    return ["TW.TAKE", len(keys), *map(encoded, keys), "LEASE", lease_ms, "COUNT", count, *block, "NAME", name]
