# SPDX-License-Identifier: MIT
"""The judge of the workers' model (judge.py) by itself, with histories of one task. No server runs."""
import pytest

from judge import Judge
from ledger import Deed, Taken

DUE = 1000000


def row(stage, at=DUE, worker="", due=DUE, replaced=0, payload=None):
    """The reply of TW.GET. A replaced task has another payload."""
    attempt = int(stage == "leased")
    return ["due", due, "remaining", 0, "every", 0, "times", 1, "attempt", attempt, "lapses", 0, "state", stage,
            "replaced", replaced, "next", at, "worker", worker, "error", "",
            "payload", [payload or ("1" if due == DUE else "3")]]


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


def renewed(before, after, *words):
    """A put with KEEPDUE between two looks."""
    about = {"at": DUE + 5000, "tries": 3, "every": 0, "times": 1, "conditions": ("KEEPDUE", *words)}
    reply = "t" if before is not None or "XX" not in words else None
    return Deed("3", "put", "s", "t", about, 2, before, after, DUE + 1, DUE + 1, reply, 3.0)


def promoted(before, after, reply=1, began=DUE - 50):
    return Deed("5", "promote", "s", "t", {}, 4, before, after, began, began, reply, 5.0)


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


@pytest.mark.parametrize("token, fits", [("b", True), ("a", False)])
def test_an_answer_without_a_reply_may_be_for_the_new_task(token, fits):
    """The attempt of the old task has lapsed, and a blocked worker has taken the new one and failed."""
    first, second = taken("a", "w1", 2.0), taken("b", "w2", 4.0)
    second.due, second.payload = DUE + 5, "3"
    about = {"due": DUE + 5, "attempt": 1, "token": token, "at": DUE + 5000, "dead": False, "error": "e"}
    nack = Deed("4", "nack", "s", "t", about, sent=5.0)
    seen = row("waiting", DUE + 5000, "w2", DUE + 5)
    seen[seen.index("attempt") + 1], seen[seen.index("error") + 1] = 1, "e"
    history = History(put(), replaced(first, BEHIND), nack, takes=[first, second])
    if not fits:
        with pytest.raises(AssertionError, match="is {"):
            history.ends_with(seen)
        return
    state, = history.ends_with(seen)
    assert (state.begun, state.behind, state.error) == (1, None, "e")


def test_a_put_without_a_reply_may_have_met_an_attempt_or_not():
    first = taken("a", "w1", 2.0)
    for seen, behind in ((BEHIND, "a"), (row("ready", DUE + 5, "", DUE + 5), None)):
        deed = replaced(first, None)
        deed.reply = ...
        state, = History(put(), deed, takes=[first]).ends_with(seen)
        assert (state.behind and state.behind.token) == behind


KEPT = row("waiting", payload="3")
AT_ONCE = row("leased", DUE + 60000, "w1", DUE + 1, 1)


def test_a_put_with_keepdue_keeps_the_times():
    deed = renewed(row("waiting"), KEPT)
    deed.begin = deed.end = DUE - 50
    history = History(put(), deed)
    assert history.judge.fates == {"kept": 1} and +history.judge.counts == {"put": 1}
    state, = history.ends_with(row("ready", payload="3"))
    assert (state.payload, state.due, state.at) == ("3", DUE, DUE)


def test_an_attempt_that_cannot_go_on_has_the_new_task_behind_it_due_at_once():
    deed = renewed(row("leased", DUE + 60000, "w1"), AT_ONCE)
    state, = History(put(), deed, takes=[taken("a", "w1", 2.0)]).ends_with(AT_ONCE)
    assert (state.payload, state.due, state.behind.token) == ("3", DUE + 1, "a")


@pytest.mark.parametrize("before, after", [
    (row("waiting"), row("waiting", DUE + 5000, due=DUE + 5000)), (row("waiting"), row("waiting")),
    (row("ready"), row("waiting", DUE + 40, payload="3")), (row("waiting"), None),
], ids=["another due time", "the old payload", "another next", "it is gone"])
def test_a_put_with_keepdue_that_keeps_too_little_is_seen(before, after):
    deed = renewed(before, after)
    if before == row("waiting"):
        deed.begin = deed.end = DUE - 50
    with pytest.raises(AssertionError):
        History(put(), deed)


@pytest.mark.parametrize("due", [DUE, DUE + 5000], ids=["the old time", "the time that was given"])
def test_a_new_task_behind_an_attempt_that_is_not_due_at_once_is_seen(due):
    after = row("leased", DUE + 60000, "w1", due, 1, "3")
    with pytest.raises(AssertionError, match="due at another time"):
        History(put(), renewed(row("leased", DUE + 60000, "w1"), after), takes=[taken("a", "w1", 2.0)])


def test_keepdue_keeps_the_conditions():
    missing, there = renewed(None, None, "XX"), renewed(row("ready"), row("ready"), "NX")
    there.reply = None
    history = History(missing, put(), there)
    assert +history.judge.counts == {"put": 1} and not history.judge.fates
    there.reply = "t"
    with pytest.raises(AssertionError):
        History(put(), there)


@pytest.mark.parametrize("seen, due, behind", [(row("ready", payload="3"), DUE, None), (AT_ONCE, DUE + 1, "a")],
                         ids=["it was ready", "a worker had it"])
def test_a_put_with_keepdue_without_a_reply_has_one_of_two_ends(seen, due, behind):
    deed = renewed(None, None)
    deed.reply = ...
    state, = History(put(), deed, takes=[taken("a", "w1", 2.0)] if behind else []).ends_with(seen)
    assert (state.payload, state.due, state.behind and state.behind.token) == ("3", due, behind)


@pytest.mark.parametrize("takes", [[taken("a", "w1", 2.0)], []], ids=["a worker had it", "nobody had it"])
def test_an_attempt_may_lapse_before_anybody_looks_at_the_put_without_a_reply(takes):
    deed = renewed(None, None)
    deed.reply = ...
    history = History(put(), deed, takes=takes)
    lapsed = row("ready", DUE + 8, due=DUE + 1)
    if takes:
        state, = history.ends_with(lapsed)
        assert (state.payload, state.due, state.at, state.behind) == ("3", DUE + 1, DUE + 8, None)
    else:
        with pytest.raises(AssertionError, match="nobody had the old task"):
            history.ends_with(lapsed)


def test_a_promoted_task_is_ready_now_and_keeps_its_due_time():
    after = row("ready", DUE - 50)
    state, = History(put(), promoted(row("waiting"), after)).ends_with(after)
    assert (state.due, state.at) == (DUE, DUE - 50)


@pytest.mark.parametrize("deed, fault", [
    (promoted(row("waiting"), row("waiting"), 0), "it waits"),
    (promoted(row("ready"), row("ready", DUE + 50), 1, DUE + 50), "it does not wait"),
    (promoted(row("waiting"), row("waiting")), "for another time"),
    (promoted(row("waiting"), row("ready", DUE - 50, due=DUE - 50, payload="1")), "another due time"),
], ids=["not promoted", "it was ready", "it waits on", "it has lost its due time"])
def test_a_promotion_that_goes_wrong_is_seen(deed, fault):
    with pytest.raises(AssertionError, match=fault):
        History(put(), deed)


@pytest.mark.parametrize("reply", [1, ...])
def test_all_promotes_tasks_at_which_nobody_has_looked(reply):
    deed = Deed("5", "promote", "s", "", {}, 4, None, None, DUE - 50, DUE - 50, reply, 5.0)
    state, = History(put(), deed).ends_with(row("ready", DUE - 50))
    assert (state.due, state.at) == (DUE, DUE - 50)


@pytest.mark.parametrize("reply", [0, 2])
def test_a_number_of_promoted_tasks_that_cannot_be_is_seen(reply):
    deed = Deed("5", "promote", "s", "", {}, 4, None, None, DUE - 50, DUE - 50, reply, 5.0)
    with pytest.raises(AssertionError, match="tasks wait"):
        History(put(), deed)
