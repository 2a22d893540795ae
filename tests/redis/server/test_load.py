# SPDX-License-Identifier: MIT
"""Tests of the judge in load.py: it must find each kind of fault, and accept a correct state. They need no
server."""
import itertools
import os
import pathlib
import re

import pytest

from harness import ROOT
from load import ABSENT, Books, Op, World, after_add, after_cancel, after_move, fits

ONCE = World("filed", 100, 200, 0, 1)
THRICE = World("filed", 100, 200, 50, 3)
ENTRY = {"tw.id": "a", "tw.due": "150", "tw.attempt": "1", "of": "a"}


def op(name, step, reply=..., acked=True):
    made = Op(["?"], name, step)
    made.sent, made.acked, made.reply = 10, 20 if acked else None, reply
    return made


def added(name, due=150, acked=True):
    return op(name, after_add(lambda _: (due, due), 0, 1), name if acked else ..., acked)


def judged(ops, pending, delivered, promised=None):
    """Judges a client's history against the pending tasks and the deliveries. Returns how many acknowledged
    commands are gone."""
    books = Books(["s"], ["q"])
    line = books.line("c")
    for one in ops:
        line.record(one)
    line.promised = len([one for one in ops if one.acked]) if promised is None else promised
    books.pending = dict(pending)
    for name, dues in delivered.items():
        books.delivered[name].extend(dues)
    return books.settle()[0]


@pytest.mark.parametrize("world, pending, dues, right", [
    (ABSENT, None, [], True), (ABSENT, 150, [], False), (ABSENT, None, [150], False),
    (ONCE, 150, [], True), (ONCE, None, [150], True), (ONCE, None, [None], True),
    (ONCE, None, [], False), (ONCE, 150, [150], False), (ONCE, None, [150, 150], False),
    (ONCE, 201, [], False), (ONCE, None, [99], False),
    (THRICE, 120, [], True), (THRICE, 170, [120], True), (THRICE, None, [120, 170, 220], True),
    (THRICE, None, [120, 170], False), (THRICE, 220, [120], False), (THRICE, None, [120, 120, 170], False),
    (THRICE, 270, [120, 170, 220], False), (THRICE, 170, [None], True),
    (ONCE._replace(state="cancelled"), None, [], True), (ONCE._replace(state="cancelled"), None, [150], False),
    (ONCE._replace(state="cancelled"), 150, [], False), (THRICE._replace(state="cancelled"), None, [120], True),
    (ONCE._replace(state="delivered"), None, [150], True), (ONCE._replace(state="delivered"), 150, [], False),
])
def test_what_fits_a_world(world, pending, dues, right):
    assert fits(world, pending, dues) is right


def test_pending_or_delivered_is_right():
    assert judged([added("a"), added("b")], {"a": 150}, {"b": [150]}) == 0


def test_lost():
    with pytest.raises(AssertionError, match="a: pending None"):
        judged([added("a"), added("b")], {"b": 150}, {})


def test_doubled():
    with pytest.raises(AssertionError, match="delivered"):
        judged([added("a")], {}, {"a": [150, 150]})


def test_both_delivered_and_pending():
    with pytest.raises(AssertionError):
        judged([added("a")], {"a": 150}, {"a": [150]})


def test_risen_from_the_dead():
    ops = [added("a"), op("a", after_cancel(), [1])]
    assert judged(ops, {}, {}) == 0
    with pytest.raises(AssertionError):
        judged(ops, {"a": 150}, {})
    with pytest.raises(AssertionError):
        judged(ops, {}, {"a": [150]})


def test_a_move_that_was_forgotten():
    ops = [added("a"), op("a", after_move(lambda _: (300, 300)), 1)]
    assert judged(ops, {"a": 300}, {}) == 0
    with pytest.raises(AssertionError):
        judged(ops, {"a": 150}, {})


def test_nobody_added_it():
    with pytest.raises(AssertionError, match="nobody added"):
        judged([], {"ghost": 1}, {})


def test_without_an_answer_both_is_right():
    for pending, delivered in itertools.product([{}, {"a": 150}], [{}, {"a": [150]}]):
        if not (pending and delivered):
            assert judged([added("a", acked=False)], pending, delivered) == 0


def test_only_the_end_of_a_history_may_be_gone():
    ops = [added("a"), added("b"), added("c")]
    assert judged(ops, {"a": 150}, {}, promised=1) == 2
    assert judged(ops, {}, {}, promised=0) == 3
    with pytest.raises(AssertionError, match="possible cuts none"):
        judged(ops, {"a": 150, "c": 150}, {}, promised=1)
    with pytest.raises(AssertionError, match="promised 2"):
        judged(ops, {"a": 150}, {}, promised=2)


def test_what_was_over_stays_over():
    books = Books(["s"], ["q"])
    books.line("c").record(added("a"))
    books.delivered["a"].append(150)
    books.settle()
    books.read(Answers([[1, 0], [], [], 0, [], 0]))
    with pytest.raises(AssertionError, match="a was over"):
        books.read(Answers([[1, 0], [], [], 0, [("999-0", ENTRY)], 1]))


def test_early():
    books = Books(["s"], ["q"])
    with pytest.raises(AssertionError, match="came early"):
        books.read(Answers([[1, 0], [], [], 0, [("149-0", ENTRY)], 1]))


def test_entries_that_are_gone_again():
    books = Books(["s"], ["q"])
    books.read(Answers([[1, 0], [], [], 0, [("160-0", ENTRY)], 1]))
    with pytest.raises(AssertionError, match="0 entries, but 1"):
        books.read(Answers([[1, 0], [], [], 0, [], 0]))


class Answers:
    """Stands for a client: its replies to the transaction in which Books reads a server."""

    def __init__(self, answers):
        self.answers = answers

    def pipeline(self, **_):
        return self

    def __getattr__(self, _):
        return lambda *args, **options: self.answers


def test_the_document_names_tests_that_are_there():
    """docs/durability.md says which test shows which promise."""
    with open(os.path.join(ROOT, "docs", "durability.md"), encoding="utf-8") as file:
        named = set(re.findall(r"`(test_\w+(?:\.py)?)`", file.read()))
    there = set()
    for path in pathlib.Path(ROOT, "tests", "redis").glob("*/test_*.py"):
        there |= {path.name, *re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)}
    assert len(named) > 15 and named <= there, named - there
