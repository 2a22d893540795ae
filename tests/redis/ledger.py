# SPDX-License-Identifier: MIT
"""Judges the histories of many workers, producers and an operator of queues with tasks for workers.

Each command is a transaction that also writes its own number into a ledger, a List beside the queues, and
looks at the task before and after the command (crew.py):

    MULTI  RPUSH ledger number  TIME  TW.GET id  -- the command --  TW.GET id  TIME  EXEC

The ledger survives a crash or a failover exactly as far as the commands do. So it tells which commands the
server still has, in which order, and also names the commands whose replies nobody received.

The judge goes through the surviving commands in the order of the ledger, and follows each task. Between two
looks a task may change by itself only as the clock allows: its lease runs out, its last attempt makes it dead,
a blocked worker takes it. All else is a fault. The clock alone says whether a task is waiting or ready, so each
look is compared with the rule, `next` <= now. Whether the server has also offered its ready tasks to workers,
the number of tasks that it offers says (check_offered). Two tasks of one id differ in their due time, because
the clients never file an id for the same time twice.

A task that was given back (TW.NACK BACK) is as if it had not been taken, so its next take has the same number
of the attempt, and another token. `given` has the tokens of such takes.

A task that was put or moved while a worker had the old one stands behind that attempt: `behind` is the old
task. It can be taken when the attempt has ended, and not before.

A put with KEEPDUE gives a task another payload and other options, and often keeps all else. Then the fate of
the old payload is "kept". If nobody has told the time at which such a put came, the due time of its task is
LATER, until a look or a take tells it.
"""
import collections
import dataclasses

from harness import as_map

RAN_OUT = "the lease ran out"
# A further lapse kills.
MOST_LAPSES = 16
# Milliseconds: between two readings of the clock that belong together.
SLACK = 30
# By which a server may be late, before its last reply and after it came up.
BEHIND = 1000
# By which the end of a lease is put off while the slot of its queue moves away.
SLOT_WAIT = 1000
MAYBE = "maybe"
ANY = ...
LATER = -1
NO_TASK = None


@dataclasses.dataclass(frozen=True)
class Task:
    """A task as the judge believes it to be."""
    payload: str
    due: int
    tries: int
    every: int = 0
    times: int = 1
    begun: int = 0  # attempts that have begun
    lapses: int = 0  # those of them whose lease ran out
    stage: str = "waiting"  # or leased, dead; ready is a matter of the clock
    at: int = 0  # the next attempt, the end of the lease, the death; 0: nobody knows
    lease: int = 0  # 0: nobody knows, because the reply of TW.TAKE or TW.TOUCH was lost
    renewed: bool = False
    error: str = ""
    token: str = ""
    order: tuple = None  # (time at which it is ready, number of the filing or None), if it is known
    was: int = 0  # of a leased task: `at` as it was before the take; 0: nobody knows
    given: tuple = ()  # the tokens of takes that were given back, or that the task stands behind
    least: int = 0  # so many attempts have begun by the next look
    behind: object = None  # the old Task, which is leased: this one waits for the end of that attempt
    unsure: tuple = ()  # (at, ms): this `at` may be so much too late, as the server was slow between two looks
    older: tuple = ()  # payloads that a take may have, as KEEPDUE came without a reply
    most: int = 0  # so many attempts that have not lapsed are no fault, as KEEPDUE has lowered the tries
    promoted: bool = False  # it may have been promoted, so its attempts may begin before its due time

    @property
    def at_least(self):
        return self.at - (self.unsure[1] if self.unsure[:1] == (self.at,) else 0)

    def may_be_taken_as(self, attempt):
        return attempt - self.lapses <= max(self.tries, self.most)

    def has_payload(self, take):
        return take.payload in (self.payload, *self.older)


@dataclasses.dataclass
class Deed:
    """One command of one client. `reply` is Ellipsis while no reply has come."""
    number: str
    kind: str
    queue: str
    name: str = ""
    about: dict = dataclasses.field(default_factory=dict)
    position: int = -1
    before: object = None
    after: object = None
    begin: int = 0  # the server's clock, in ms
    end: int = 0
    reply: object = ...
    sent: float = 0
    promised: bool = False


@dataclasses.dataclass
class Taken:
    """A task that a worker got, one that was blocked or one in a transaction."""
    queue: str
    name: str
    token: str
    due: int
    attempt: int
    payload: str
    worker: str
    lease: int
    received: float = 0
    promised: bool = False
    came: float = 0  # when the reply came, also that of a transaction


class Look:
    """A task as TW.GET tells it."""

    def __init__(self, flat):
        told = as_map(flat)
        self.due, self.every, self.times = told["due"], told["every"] or 0, told["times"]
        self.stage, self.at = told["state"], told["next"] or 0
        self.worker, self.error = told["worker"], told["error"]
        self.payload = told["payload"][0]
        self.begun, self.lapses, self.replaced = told["attempt"], told["lapses"], told.get("replaced", 0)

    def __repr__(self):
        return str(self.__dict__)


def imagined(due, stage, attempt, payload):
    """The look at a task that nobody has looked at, but that must have been so."""
    return Look(["due", due, "every", 0, "times", 0, "attempt", attempt, "lapses", 0, "state", stage,
                 "next", 0, "worker", "", "error", "", "payload", [payload]])


class Gap:
    """A time without a server that serves. It was down from `down` to `up` for certain, and at most from
    `began`, its last reply, to `ended`. `slot`: the slot of the queues moved to another node."""

    def __init__(self, began, down, up, ended, slot=False):
        self.began, self.down, self.up, self.ended, self.slot = began, down, up, ended, slot


class Belief:
    """The judge's belief about all tasks, and how a look changes it."""

    def __init__(self, queues):
        self.tasks = {queue: {} for queue in queues}  # id -> possible Tasks, the last one usual
        self.paused, self.resumed = dict.fromkeys(queues, False), {}
        self.takes = {}  # (queue, id, due) -> {attempt: [Taken]}, all but one of them given back
        self.tokens = {}  # token -> Taken
        self.returned = set()  # tokens that a TW.NACK BACK has named, perhaps without a reply
        self.nameless = set()  # workers whose replies were lost
        self.copies = {}  # (queue, id): error at the end of the round, or ANY because a command names it
        self.unknown = {}  # (queue, id): this round's commands without replies
        self.gaps, self.fates, self.counts = [], collections.Counter(), collections.Counter()
        self.ended, self.guessed = {}, {}  # (id, payload, due) -> fate; (queue, id) -> [(Task, fate)]
        self.ordered = True  # whether the order of ready tasks is certain
        self.passed = 0  # all that was due by then has had its turn
        self.filed, self.lapses, self.renewals = 0, 0, 0

    # Takes: of blocked workers as they come, of transactions at their place in the ledger

    def like(self, take):
        """All takes of the same attempt, in the order in which they came: a worker has to have the reply of one
        take before it can give the task back for the next one."""
        return self.takes.setdefault((take.queue, take.name, take.due), {}).setdefault(take.attempt, [])

    def add_take(self, take):
        assert take.token not in self.tokens, f"a token came again: {take}"
        self.tokens[take.token] = take
        self.like(take).append(take)
        self.like(take).sort(key=lambda one: one.came)

    def drop_take(self, take):
        """The take has not survived a failover."""
        self.like(take).remove(take)

    def take_of(self, queue, name, state):
        """The take that begins the next attempt of a task in this state, if anybody has told of it."""
        takes = self.takes.get((queue, name, state.due), {}).get(state.begun + 1, ())
        takes = [take for take in takes if take.token not in state.given]
        return next((take for take in takes if state.has_payload(take)), takes[0] if takes else None)

    # Changes of a task by itself

    def states(self, queue, name):
        return self.tasks[queue].get(name, (NO_TASK,))

    def put_state(self, queue, name, *states):
        self.tasks[queue][name] = states

    def explain(self, queue, name, flat, now):
        """Brings the judge's belief about a task to that of a look, or raises AssertionError."""
        look, why = Look(flat) if flat else None, []
        if look and "@" in name and self.states(queue, name) == (NO_TASK,):
            self.make_copy(queue, name, now)
        fits = []
        for state in self.states(queue, name):
            try:
                fits.append(self.follow(queue, name, state, look, now))
            except AssertionError as error:
                why.append(f"{state}: {error}")
                continue
            if not self.is_daring(state, fits[-1], look):
                fits = fits[-1:]
                break
        assert fits, f"{queue} {name} at {now} is {look}\n" + "\n".join(why)
        self.put_state(queue, name, fits[0])
        self.end_guessed(queue, name)

    @staticmethod
    def is_daring(before, after, look):
        """Whether a look is explained by a lease that began anew: a TW.TOUCH without a reply may explain it
        better."""
        if None in (before, after, look):
            return False
        before, after = before.behind or before, after.behind or after
        return after.renewed is True and before.at != look.at

    @staticmethod
    def check_clock(name, flat, begin, end):
        """The clock alone makes a waiting task ready. The look came between two readings of the clock; from
        Redis 7.2 on, TIME stands still within a transaction."""
        look = Look(flat)
        assert look.stage != "waiting" or look.at > begin, f"{name} waits, though its time came: {look}"
        assert look.stage != "ready" or look.at <= end + SLACK, f"{name} is ready too early: {look}"

    def check_offered(self, queue, looks, offered):
        """All that was due by `passed` has had its turn: a lease has ended, and a ready task is in the line
        from which workers take it. `offered`: so many tasks are in that line."""
        had_turn = {name: look for name, look in looks.items()
                    if max(look.at, self.resumed.get(queue, 0)) <= self.passed}
        leased = [name for name, look in had_turn.items() if look.stage == "leased"]
        assert not leased, f"the leases of {leased} of {queue} have not ended at {self.passed}"
        ready = [name for name, look in had_turn.items() if look.stage == "ready"]
        assert self.paused[queue] or len(ready) <= offered, \
            f"{len(ready)} tasks of {queue} are ready, and {offered} were offered: {ready} at {self.passed}"

    def told_due(self, queue, name, state, look):
        """The due time of a task, which a take or a look tells."""
        dues = [due for (where, of, due), attempts in self.takes.items() if (where, of) == (queue, name)
                and any(take.payload == state.payload for takes in attempts.values() for take in takes)]
        return min(dues, default=look.due if look else LATER)

    def follow(self, queue, name, state, look, now):
        if state is not NO_TASK and state.due == LATER:
            state = dataclasses.replace(state, due=self.told_due(queue, name, state, look))
        if state is not NO_TASK and state.behind:
            if look and look.replaced:
                return self.same_behind(queue, name, state, look, now)
            state = self.after_lapse(queue, name, state, look, now)
        assert not look or not look.replaced, "no attempt of an older task is under way"
        if state is not NO_TASK and look is None and state.every:
            return self.last_period_died(queue, name, state, now)
        if state is NO_TASK or look is None:
            assert state is NO_TASK, "it is lost"
            assert look is None, "it should not be there"
            return state
        assert look.payload == state.payload, "another payload"
        assert look.every == state.every, "another period"
        while state.due != look.due:
            state = self.next_after_death(queue, name, state, look, now)
            assert state is not NO_TASK, "it had no more periods"
        assert look.times == state.times, "another number of periods"
        assert look.begun >= max(state.begun, state.least), "an attempt is forgotten"
        assert dataclasses.replace(state, lapses=look.lapses).may_be_taken_as(look.begun), "too many attempts"
        while state.begun < look.begun:
            state = self.begin_silently(queue, name, state, look, now)
        return self.same_attempt(state, look, now)

    def same_behind(self, queue, name, state, look, now):
        """The attempt of the old task goes on."""
        assert (look.due, look.payload, look.every, look.times) == (
            state.due, state.payload, state.every, state.times), "another task stands behind the attempt"
        assert (look.stage, look.error, look.lapses) == ("leased", "", 0), "the new task has a past"
        old = state.behind
        told = imagined(old.due, "leased", look.begun, old.payload)
        told.at, told.worker = look.at, look.worker
        while old.begun < told.begun:
            old = self.begin_silently(queue, name, old, told, now)
        assert (old.stage, old.begun) == ("leased", told.begun), "another attempt"
        take = self.tokens.get(old.token)
        assert take is None or take.worker == look.worker, "another worker"
        old = self.same_lease(old, dataclasses.replace(old, at=look.at), told, now)
        return dataclasses.replace(state, behind=old)

    def after_lapse(self, queue, name, state, look, now):
        """The attempt of the old task has lapsed, if there is one: the new task waits for its time, or since
        that end. A blocked worker may have begun that attempt, and nobody has looked at it."""
        old = state.behind
        if old is None:
            return state
        if old.stage == "waiting" and (self.nameless or self.take_of(queue, name, old)):
            unseen = imagined(old.due, "leased", old.begun + 2, old.payload)
            old = self.begin_silently(queue, name, old, unseen, now)
        assert old.stage == "leased", "nobody had the old task"
        self.check_lapse(old, now)
        self.lapses += 1
        if look and (look.begun, look.due) == (0, state.due) and look.at != state.due and not state.promoted:
            since = old.at_least - SLACK <= look.at <= now + SLACK
            assert look.at > state.due and since, "it waits since another time"
        return dataclasses.replace(state, behind=None, at=0, order=None)

    def make_copy(self, queue, name, now):
        """A dead copy is there, so the attempts of its period have failed."""
        name, due = name.rsplit("@", 1)
        for state in self.states(queue, name):
            later = imagined(int(due) + 1, "dead", 0, "")
            while state is not NO_TASK and state.due <= int(due):
                state = self.next_after_death(queue, name, state, later, now)
                self.put_state(queue, name, state)

    def next_after_death(self, queue, name, state, look, now):
        """The period has ended between two looks, by a command without a reply, or its last lease has run
        out, and a dead copy is there."""
        assert state.every and look.due > state.due, "another due time"
        state = self.after_lapse(queue, name, state, None, now)
        copy = f"{name}@{state.due}"
        error = self.copies.get((queue, copy))
        for deed in self.unknown.get((queue, name), ()):
            if deed.about.get("due") != state.due:
                continue
            if (deed.kind, error) == ("ack", None):
                self.ended.setdefault((name, state.payload, state.due), "done")
                return self.next_period(state)
            if deed.kind == "nack" and error == deed.about["error"]:
                attempt = deed.about["attempt"]
                state = dataclasses.replace(state, begun=attempt, lapses=self.lapses_by(state, attempt))
                self.put_copy(queue, copy, state, error)
                return self.next_period(state)
        while state.stage != "leased" or state.lapses < MOST_LAPSES:
            state = self.begin_silently(queue, name, state, look, now)
        self.check_lapse(state, now)
        assert error in (RAN_OUT, ANY), "such a dead copy was not left"
        self.put_copy(queue, copy, dataclasses.replace(state, lapses=state.lapses + 1), RAN_OUT)
        return self.next_period(state)

    def put_copy(self, queue, copy, state, error):
        self.put_state(queue, copy,
                       dataclasses.replace(state, stage="dead", at=0, error=error, every=0, times=1))
        for deed in self.unknown.get((queue, copy), ()):
            self.guess(deed)

    def last_period_died(self, queue, name, state, now):
        """A repeating task is gone: the attempts of all its periods have failed."""
        gone = imagined(state.due + state.every * state.times, "dead", 0, state.payload)
        while state is not NO_TASK:
            state = self.next_after_death(queue, name, state, gone, now)
        return NO_TASK

    @staticmethod
    def next_period(state):
        if state.every == 0 or state.times == 1:
            return NO_TASK
        due = state.due + state.every
        return Task(state.payload, due, state.tries, state.every, state.times - 1, at=due)

    def begin_silently(self, queue, name, state, look, now):
        """A blocked worker has taken the task, or a worker whose reply was lost."""
        assert state.stage != "dead", "it was dead"
        state = self.after_lapse(queue, name, state, None, now)
        take = self.take_of(queue, name, state)
        if state.stage == "leased":
            self.check_lapse(state, now)
            assert state.lapses < MOST_LAPSES, "the last lapse kills"
            state = dataclasses.replace(state, error=RAN_OUT, lapses=state.lapses + 1)
        if take is None:
            # Of a worker without a reply only the last attempt shows its name.
            assert look.begun > state.begun + 1 or look.due != state.due or look.worker in self.nameless, \
                f"nobody took it: {self.takes.get((queue, name, state.due))} {look.worker}"
            return dataclasses.replace(state, begun=state.begun + 1, stage="leased", at=0, lease=0,
                                       token="?", renewed=False, order=None, was=self.was(state))
        assert state.has_payload(take), f"a worker got another payload: {take}"
        return dataclasses.replace(state, begun=state.begun + 1, stage="leased", at=0, lease=take.lease,
                                   token=take.token, renewed=False, order=None, was=self.was(state))

    @staticmethod
    def was(state):
        """For which time a task waits that is taken in this state. After a lapse nobody knows."""
        return state.at if state.stage == "waiting" else 0

    @staticmethod
    def lapses_by(state, attempt):
        """So many attempts have lapsed when this one has begun, if all before it did so from this state on."""
        return state.lapses + max(0, attempt - state.begun - (state.stage != "leased"))

    def check_lapse(self, state, now):
        """Asserts that the lease can have run out, as a failed attempt, at this time."""
        if state.at == 0:
            return
        assert state.at_least <= now + SLACK, f"the lease ran out too early, by {now}: {state}"
        for gap in self.gaps:
            within = gap.down + SLACK < state.at_least <= state.at < gap.up - SLACK
            if within and not state.renewed and state.lease:
                assert gap.up + state.lease <= now + SLACK, f"the lease was not renewed after {gap.__dict__}"

    def same_attempt(self, state, look, now):
        lapsed = state.stage == "leased" != look.stage
        assert look.lapses == state.lapses + lapsed, "the number of lapses"
        at = dataclasses.replace(state, at=look.at, lapses=look.lapses)
        if state.stage == look.stage == "leased":
            assert look.error == state.error, "another error"
            take = self.tokens.get(state.token)
            assert take is None or take.worker == look.worker, "another worker"
            return self.same_lease(state, at, look, now)
        if state.stage == "leased":
            self.check_lapse(state, now)
            self.lapses += 1
            assert look.error == RAN_OUT, "the error of a lease that ran out"
            assert (look.stage == "dead") == (look.lapses > MOST_LAPSES), "the lapse that kills"
            return dataclasses.replace(at, stage="dead" if look.stage == "dead" else "waiting", error=RAN_OUT,
                                       order=None)
        assert look.error == state.error, "another error"
        if look.stage == "dead":
            assert state.stage == "dead" and state.at in (0, look.at), "it is dead"
            return at
        assert state.stage == "waiting" and look.stage in ("waiting", "ready"), "another state"
        assert state.at in (0, look.at), "another time of the attempt"
        return at

    def same_lease(self, state, at, look, now):
        if state.at == 0 and look.at > now + state.lease and any(gap.slot for gap in self.gaps):
            return state  # The end was put off, as below.
        if state.at == 0 or state.at_least - SLACK < look.at < state.at + SLACK:
            return at if state.at else dataclasses.replace(at, renewed=self.may_be_renewed(state, look))
        if look.at <= now + SLOT_WAIT and any(
                gap.slot and gap.began - BEHIND <= state.at and state.at_least <= look.at - SLOT_WAIT
                for gap in self.gaps):
            return state  # The replica keeps the first end, because nothing has changed for it.
        assert any(gap.began - BEHIND <= state.at <= gap.ended + BEHIND and gap.up + state.lease <= look.at
                   for gap in self.gaps), "the lease has another end"
        assert state.renewed is not True, "the lease was renewed twice"
        assert state.lease == 0 or look.at <= now + state.lease + SLACK, "the end of a renewed lease"
        self.renewals += 1
        return dataclasses.replace(at, renewed=True)

    def may_be_renewed(self, state, look):
        """Whether a lease, of which nobody knows the first end, may have begun anew after a gap: MAYBE or
        False."""
        began = look.at - state.lease
        return any(gap.up - SLACK <= began <= gap.ended + BEHIND for gap in self.gaps) and MAYBE
