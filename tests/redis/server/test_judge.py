# SPDX-License-Identifier: MIT
"""The judge of the workers' model (judge.py) by itself, with histories of one task. No server runs."""
import pytest

from judge import Judge
from ledger import Deed, Taken

DUE = 1000000


def row(stage, at=DUE, worker="", due=DUE, replaced=0):
    """The reply of TW.GET. A replaced task has another payload."""
    attempt = int(stage == "leased")
    return ["due", due, "remaining", 0, "every", 0, "times", 1, "attempt", attempt, "lapses", 0, "state", stage,
            "replaced", replaced, "next", at, "worker", worker, "error", "",
            "payload", ["1" if due == DUE else "3"]]


def put():
    about = {"at": DUE, "tries": 3, "every": 0, "times": 1}
    return Deed("1", "put", "s", "t", about, 1, None, row("waiting"), DUE - 100, DUE - 100, "t", 1.0)


def taken(token, worker, came):
    """A take of a blocked worker. It stands in no ledger."""
    return Taken("s", "t", token, DUE, 1, "1", worker, 60000, came, came=came)


def back(take, sent):
    """TW.NACK BACK, whose reply was lost."""
    about = {"due": DUE, "attempt": 1, "token": take.token, "at": 0}
    return Deed("2", "back", "s", "t", about, sent=sent)


def replaced(take, after):
    """Another put, while a worker has the task; `after` is the look behind it."""
    about = {"at": DUE + 5, "tries": 3, "every": 0, "times": 1}
    before = row("leased", DUE + 60000, take.worker)
    return Deed("3", "put", "s", "t", about, 2, before, after, DUE + 1, DUE + 1, "t", 3.0)


class History:
    def __init__(self, *deeds, takes=()):
        self.judge, self.takes = Judge(["s"]), list(takes)
        for take in takes:
            self.judge.add_take(take)
        for deed in deeds:
            self.judge.play(deed)

    def ends_with(self, flat):
        self.judge.settle_takes(self.takes, {"s": {"t": flat}}, lambda take: False)
        self.judge.check_all("s", {"t": flat}, DUE + 10, offered=1)
        return self.judge.states("s", "t")


def test_a_task_is_given_back_by_a_command_without_a_reply():
    """After a look at the task, the next take of the same attempt is another one."""
    first, second = taken("a", "w1", 2.0), taken("b", "w2", 4.0)
    history = History(put(), back(first, 3.0), takes=[first])
    state, = history.ends_with(row("ready"))
    assert (state.begun, state.given) == (0, ("a",))
    history.takes = [second]
    history.judge.add_take(second)
    state, = history.ends_with(row("leased", at=DUE + 60000, worker="w2"))
    assert (state.begun, state.token) == (1, "b")


def test_a_command_without_a_reply_that_came_too_late_gives_nothing_back():
    first = taken("a", "w1", 2.0)
    state, = History(put(), back(first, 3.0), takes=[first]).ends_with(
        row("leased", at=DUE + 60000, worker="w1"))
    assert (state.begun, state.token, state.given) == (1, "a", ())


def test_a_take_is_forgotten():
    """The command that would give the task back has not survived, or concerns another take."""
    first = taken("a", "w1", 2.0)
    for deeds in ([put()], [put(), back(taken("b", "w2", 2.5), 3.0)]):
        with pytest.raises(AssertionError, match="is forgotten"):
            History(*deeds, takes=[first]).ends_with(row("ready"))


@pytest.mark.parametrize("stage, at, fault", [("waiting", DUE - 100, "waits, though its time came"),
                                              ("waiting", DUE - 500, "waits, though its time came"),
                                              ("ready", DUE + 10000, "is ready too early")])
def test_a_state_that_is_not_that_of_the_clock_is_seen(stage, at, fault):
    deed = put()
    deed.about["at"], deed.after = at, ["due", at, *row(stage, at)[2:]]
    with pytest.raises(AssertionError, match=fault):
        History(deed)


def test_a_ready_task_that_was_never_offered_is_seen():
    """Its queue tells how many tasks workers could take. A pause keeps tasks back."""
    history = History(put())
    history.judge.passed = DUE + 5
    history.ends_with(row("ready"))
    with pytest.raises(AssertionError, match="and 0 were offered"):
        history.judge.check_all("s", {"t": row("ready")}, DUE + 10, offered=0)
    history.judge.paused["s"] = True
    history.judge.check_all("s", {"t": row("ready")}, DUE + 10, offered=0)


def test_a_lease_that_never_ends_is_seen():
    first = taken("a", "w1", 2.0)
    history = History(put(), takes=[first])
    history.judge.passed = DUE + 60000
    with pytest.raises(AssertionError, match="have not ended"):
        history.ends_with(row("leased", at=DUE + 60000, worker="w1"))


BEHIND = row("leased", DUE + 60000, "w1", DUE + 5, 1)


def test_a_new_task_stands_behind_the_attempt_and_waits_for_its_end():
    first = taken("a", "w1", 2.0)
    state, = History(put(), replaced(first, BEHIND), takes=[first]).ends_with(BEHIND)
    assert (state.payload, state.begun, state.behind.token) == ("3", 0, "a")
    about = {"due": DUE, "attempt": 1, "token": "a"}
    after = row("ready", DUE + 9, "", DUE + 5)
    ack = Deed("4", "ack", "s", "t", about, 3, BEHIND, after, DUE + 9, DUE + 9, 1, 4.0)
    history = History(put(), replaced(first, BEHIND), ack, takes=[first])
    assert history.judge.counts["done"] == 1 and history.judge.fates == {"replaced": 1}
    state, = history.ends_with(row("ready", DUE + 9, "", DUE + 5))
    assert state.behind is None


@pytest.mark.parametrize("after", [
    row("waiting", DUE + 5, "", DUE + 5), row("leased", DUE + 60000, "w2", DUE + 5, 1),
    row("leased", DUE + 99999, "w1", DUE + 5, 1), row("leased", DUE + 60000, "w1", DUE + 6, 1)
], ids=["the lease ends", "another worker", "another end", "another time"])
def test_an_attempt_that_is_not_kept_is_seen(after):
    first = taken("a", "w1", 2.0)
    with pytest.raises(AssertionError):
        History(put(), replaced(first, after), takes=[first])


def test_a_new_task_that_is_given_out_before_the_end_is_seen():
    """Two workers would have one id at once."""
    first, second = taken("a", "w1", 2.0), taken("b", "w2", 4.0)
    second.due, second.payload = DUE + 5, "3"
    history = History(put(), replaced(first, BEHIND), takes=[first, second])
    with pytest.raises(AssertionError, match="ran out too early"):
        history.ends_with(row("leased", DUE + 60000, "w2", DUE + 5))


def test_a_put_without_a_reply_may_have_met_an_attempt_or_not():
    first = taken("a", "w1", 2.0)
    for seen, behind in ((BEHIND, "a"), (row("ready", DUE + 5, "", DUE + 5), None)):
        deed = replaced(first, None)
        deed.reply = ...
        state, = History(put(), deed, takes=[first]).ends_with(seen)
        assert (state.behind and state.behind.token) == behind
