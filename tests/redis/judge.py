# SPDX-License-Identifier: MIT
"""The judge of a ledger: plays the commands of all clients in the order of the ledger, and compares each reply
with its belief. ledger.py has the idea."""
import dataclasses

from harness import now_ms
from ledger import LATER, NO_TASK, RAN_OUT, SLACK, Belief, Look, Task, imagined


def comes_before(one, other):
    """Whether one order of a task is certainly before another. Where a task that was given back stands among
    tasks that are due together, nobody says."""
    (at, number), (other_at, other_number) = one, other
    return at < other_at or (at == other_at and None not in (number, other_number) and number < other_number)


def behind_attempt(new, old):
    """The new task behind the attempt of the old one. KEEPDUE may make it due in the millisecond in which the
    old one was due, and the take of the old one is not its own."""
    return dataclasses.replace(new, behind=old, given=(*new.given, old.token), order=None)


class Judge(Belief):
    """All queues of one ledger."""

    # Commands

    def play(self, deed):
        """Applies a command that has survived."""
        self.filed += 1
        if deed.reply is ...:
            self.unknown.setdefault((deed.queue, deed.name), []).append(deed)
            getattr(self, "guess_" + deed.kind, self.guess)(deed)
            return
        if deed.name:
            for flat in filter(None, (deed.before, deed.after)):
                self.check_clock(deed.name, flat, deed.begin, deed.end)
            self.explain(deed.queue, deed.name, deed.before, deed.begin)
            self.check_seen(deed)
        getattr(self, "play_" + deed.kind)(deed)
        if deed.name:
            self.explain(deed.queue, deed.name, deed.after, deed.end)

    def check_seen(self, deed):
        """A take whose reply had come before the command was sent has happened before it."""
        state = self.states(deed.queue, deed.name)[0]
        for attempt, takes in self.takes.get((deed.queue, deed.name, state and state.due), {}).items():
            for take in takes:
                assert (state.begun >= attempt or take.received > deed.sent
                        or take.token in state.given), f"{take} is forgotten at {deed}"

    def one(self, deed):
        return self.states(deed.queue, deed.name)[0]

    def end_of(self, deed, state, fate):
        """A task ends, by one of several fates. None ends twice; a dead copy is a task of its own."""
        if state is not NO_TASK:
            key = (deed.name, state.payload, state.due)
            assert key not in self.ended, f"{state} is {fate}, and was {self.ended[key]}"
            self.ended[key] = fate
            self.fates[fate] += 1

    def filed_task(self, deed):
        about = deed.about
        return Task(deed.number, about["at"], about["tries"], about["every"], about["times"], at=about["at"],
                    order=(about["at"], self.filed) if deed.end and about["at"] > deed.end else None)

    @staticmethod
    def stands(new, old):
        """The new task, behind the attempt of the old one if that is under way."""
        behind = old and (old.behind or (old if old.stage == "leased" else None))
        return behind_attempt(new, behind) if behind else new

    @staticmethod
    def is_met(old, deed):
        """Whether the conditions of a put let it happen."""
        words = deed.about.get("conditions", ())
        return not ("NX" in words and old is not NO_TASK or "XX" in words and old is NO_TASK)

    @staticmethod
    def is_kept(old, deed):
        """Whether a put with KEEPDUE keeps all but the payload and the options: keep.2, keep.4 and keep.7 of
        docs/contract.md."""
        if "KEEPDUE" not in deed.about.get("conditions", ()) or old is NO_TASK or old.stage == "dead":
            return False
        return bool(old.behind or old.stage == "waiting" or (old.every and deed.about["every"]))

    @staticmethod
    def kept(old, deed):
        about = deed.about
        return dataclasses.replace(old, payload=deed.number, tries=about["tries"], every=about["every"],
                                   times=about["times"], most=old.begun - old.lapses + 1)

    def play_put(self, deed):
        old, new = self.one(deed), self.filed_task(deed)
        is_met = self.is_met(old, deed)
        assert deed.reply == (deed.name if is_met else None), f"{deed} {old}"
        if not is_met:
            return
        if self.is_kept(old, deed):
            self.end_of(deed, old, "kept")
            self.put_state(deed.queue, deed.name, self.kept(old, deed))
            return
        if self.is_due_at_once(old, deed):
            due = Look(deed.after).due
            assert deed.begin <= due <= deed.end + SLACK, f"due at another time: {deed} {old}"
            new = dataclasses.replace(new, due=due, at=due)
        self.counts["put"] += 1
        self.counts["replaced"] += old is not NO_TASK
        self.end_of(deed, old, "replaced")
        self.put_state(deed.queue, deed.name, self.stands(new, old))

    @staticmethod
    def is_due_at_once(old, deed):
        """Whether KEEPDUE finds an attempt that cannot go on: keep.5 of docs/contract.md."""
        return "KEEPDUE" in deed.about.get("conditions", ()) and old is not NO_TASK and old.stage == "leased"

    def play_cancel(self, deed):
        state = self.one(deed)
        there = 0 if state is NO_TASK else 2 if state.stage == "leased" or state.behind else 1
        assert deed.reply == [there], f"{deed}, {state}"
        self.counts["cancelled"] += there > 0
        self.end_of(deed, state, "cancelled")
        self.put_state(deed.queue, deed.name, NO_TASK)

    def moved(self, state, at):
        return Task(state.payload, at, state.tries, state.every, state.times, at=at)

    def play_move(self, deed):
        state = self.one(deed)
        if state is NO_TASK:
            assert deed.reply is None, deed
        elif state.stage == "dead":
            assert isinstance(deed.reply, str) and "expected a replay" in deed.reply, f"{deed} {state}"
        else:
            assert deed.reply == 1, f"{deed} {state}"
            self.counts["moved"] += 1
            self.put_state(deed.queue, deed.name, self.stands(self.moved(state, deed.about["at"]), state))

    def dead_one(self, deed):
        """The state of the task that the deed names, or None if it is not dead, as the reply has to say."""
        state = self.one(deed)
        is_dead = state is not NO_TASK and state.stage == "dead"
        assert deed.reply == is_dead, f"{deed} {state}"
        return state if is_dead else None

    def play_replay(self, deed):
        state = self.dead_one(deed)
        if state is not None:
            self.counts["replayed"] += 1
            self.put_state(deed.queue, deed.name, self.moved(state, deed.about["at"]))

    def play_purge(self, deed):
        state = self.dead_one(deed)
        if state is not None:
            self.counts["purged"] += 1
            self.end_of(deed, state, "purged")
            self.put_state(deed.queue, deed.name, NO_TASK)

    def play_promote(self, deed):
        if not deed.name:
            self.promote_all(deed)
            return
        state, next_ms = self.one(deed), Look(deed.before).at if deed.before else 0
        waits = state is not NO_TASK and state.stage == "waiting" and not state.behind
        assert deed.reply in (0, 1), deed
        assert not deed.reply or (waits and next_ms > deed.begin), f"it does not wait: {deed} {state}"
        assert deed.reply or not waits or next_ms <= deed.end + SLACK, f"it waits: {deed} {state}"
        self.counts["promoted"] += deed.reply
        if deed.reply:
            at = Look(deed.after).at
            assert deed.begin <= at <= deed.end + SLACK, f"promoted for another time: {deed} {state}"
            self.put_state(deed.queue, deed.name,
                           dataclasses.replace(state, at=at, order=(at, None), promoted=True))

    def promote_all(self, deed):
        """Nobody has looked at the tasks. Those that wait may be ready since now, and the next look tells. On a
        slow machine TW.PROMOTE ends earlier."""
        surely = at_most = 0
        for states in self.tasks[deed.queue].values():
            there = [state for state in states if state is not NO_TASK and state.stage != "dead"]
            surely += len(states) == len(there) == 1 and self.surely_waits(there[0], deed)
            at_most += bool(there)
        self.guess_promote(deed)
        assert min(surely, 100) <= deed.reply <= at_most, f"{surely} to {at_most} tasks wait: {deed}"

    @staticmethod
    def surely_waits(state, deed):
        return state.stage == "waiting" and not state.behind and state.at > deed.end + SLACK

    @staticmethod
    def promoted(state, deed):
        if state is NO_TASK or state.stage == "dead":
            return state
        if state.behind:
            return dataclasses.replace(state, promoted=True)
        waits = state.stage == "waiting" and state.at > deed.begin
        return dataclasses.replace(state, at=0, order=None, promoted=True) if waits else state

    def play_pause(self, deed):
        on = deed.about["on"]
        assert deed.reply == (on != self.paused[deed.queue]), deed
        self.paused[deed.queue] = on
        self.resumed[deed.queue] = deed.end
        self.forget_order(deed.queue)

    def forget_order(self, queue):
        for name, states in self.tasks[queue].items():
            self.tasks[queue][name] = tuple(
                state and dataclasses.replace(state, order=None) for state in states)

    # Commands of workers

    def holds(self, state, deed):
        """Whether the token of a command is the task's, or that of the attempt before it."""
        about, state = deed.about, state and (state.behind or state)
        return (state is not NO_TASK and state.stage != "dead" and state.due == about["due"]
                and state.begun == about["attempt"] and state.token == about["token"])

    def play_ack(self, deed):
        state = self.one(deed)
        holds = self.holds(state, deed)
        assert deed.reply == holds, f"{'refused' if holds else 'accepted'}: {deed} {state}"
        if holds and state.behind:
            self.counts["done"] += 1
            self.end_replaced(deed, state, Look(deed.after).at)
        elif holds:
            self.counts["done"] += 1
            self.end_of(deed, state, "done")
            self.put_state(deed.queue, deed.name, self.next_period(state))

    def end_replaced(self, deed, state, at):
        """The attempt has ended before which the task stands. It waits for its time, or since now."""
        due = state.due
        assert at == due or (at > due and deed.begin <= at <= deed.end + SLACK), f"{at}: {deed} {state}"
        self.put_state(deed.queue, deed.name, dataclasses.replace(state, behind=None, at=at, order=None))

    def holds_lease(self, state, deed):
        return self.holds(state, deed) and (state.behind or state).stage == "leased"

    def play_nack(self, deed):
        state = self.one(deed)
        holds = self.holds_lease(state, deed)
        assert (deed.reply is not None) == holds, f"{'refused' if holds else 'accepted'}: {deed} {state}"
        if not holds:
            return
        self.counts["failed"] += 1
        if state.behind:
            self.end_replaced(deed, state, deed.reply)
            return
        dies = deed.about["dead"] or state.begun - state.lapses >= state.tries
        assert (deed.reply == 0) == dies, f"{deed} {state}"
        error = deed.about["error"]
        if not dies:
            at = deed.about["at"] or deed.reply
            assert deed.reply == at, f"{deed} {state}"
            known = at > deed.end + SLACK
            self.put_state(deed.queue, deed.name,
                           dataclasses.replace(state, stage="waiting", at=at, error=error, token="",
                                               order=(at, self.filed) if known else None))
            return
        dead = dataclasses.replace(state, stage="dead", at=0, error=error)
        if state.every == 0:
            self.put_state(deed.queue, deed.name, dead)
            return
        copy = f"{deed.name}@{state.due}"
        self.put_state(deed.queue, copy, dataclasses.replace(dead, every=0, times=1))
        self.put_state(deed.queue, deed.name,
                       self.next_period(state))

    def play_back(self, deed):
        state = self.one(deed)
        holds = self.holds_lease(state, deed)
        assert (deed.reply is not None) == holds, f"{'refused' if holds else 'accepted'}: {deed} {state}"
        if holds and state.behind:
            self.counts["back"] += 1
            self.end_replaced(deed, state, deed.reply)
        elif holds:
            at = deed.about["at"] or state.was
            may_be = at == 0 and (state.promoted or state.due <= deed.reply) and deed.reply <= deed.end + SLACK
            assert deed.reply == at or may_be, f"{deed} {state}"
            self.counts["back"] += 1
            self.put_state(deed.queue, deed.name,
                           dataclasses.replace(self.given_back(deed, state),
                                               order=None if deed.about["at"] else (deed.reply, None)))

    def given_back(self, deed, state):
        """The state after the attempt of a deed, which begins with this state or later, was given back."""
        token, attempt = deed.about["token"], deed.about["attempt"]
        self.returned.add(token)
        waits = state.begun == attempt - 1 and state.stage == "waiting"
        known = state.begun == attempt or waits
        was = state.at if waits else state.was if known else 0
        return dataclasses.replace(state, begun=attempt - 1, lapses=self.lapses_by(state, attempt),
                                   stage="waiting", at=deed.about["at"] or was, lease=0, token="", was=0,
                                   error=state.error if known else RAN_OUT, renewed=False, order=None,
                                   given=(*state.given, token), least=0)

    def play_touch(self, deed):
        state = self.one(deed)
        holds = self.holds_lease(state, deed)
        assert (deed.reply is not None) == holds, f"{'refused' if holds else 'accepted'}: {deed} {state}"
        if holds:
            lease = deed.about["lease"]
            assert deed.begin + lease <= deed.reply <= deed.end + lease + SLACK, deed
            touched = dataclasses.replace(state.behind or state, at=deed.reply, lease=lease, renewed=False)
            self.put_state(deed.queue, deed.name,
                           dataclasses.replace(state, behind=touched) if state.behind else touched)

    def play_take(self, deed):
        for take in deed.reply:
            self.add_take(take)
            assert not self.paused[take.queue], f"taken while paused: {take}"
            state = self.given_out(take)
            assert state is not NO_TASK, f"not there, but given out: {take}"
            state = self.take_now(take, state, deed)
            self.check_order(take, state)
            self.put_state(take.queue, take.name,
                           dataclasses.replace(state, begun=take.attempt, stage="leased",
                                               at=deed.end + take.lease, lease=take.lease,
                                               unsure=(deed.end + take.lease, deed.end - deed.begin),
                                               was=self.was(state),
                                               token=take.token, renewed=False, order=None))
        self.counts["taken"] += len(deed.reply)

    def given_out(self, take):
        """The state of the task that was taken. After KEEPDUE without a reply, the take tells it."""
        states = self.states(take.queue, take.name)
        for state in states:
            if state is not NO_TASK and state.due == LATER and state.payload == take.payload \
                    and all(other is NO_TASK or other.due != take.due for other in states):
                return dataclasses.replace(state, due=take.due)
        return states[0]

    def take_now(self, take, state, deed):
        """Brings a task to the state in which it was ready at this take."""
        assert state.has_payload(take), f"{take} {state}"
        state = self.after_lapse(take.queue, take.name, state, None, deed.end)
        look = imagined(take.due, "ready", take.attempt - 1, take.payload)
        while state.due != take.due:
            state = self.next_after_death(take.queue, take.name, state, look, deed.end)
            assert state is not NO_TASK, f"it had no more periods: {take}"
        while state.begun + 1 < take.attempt:
            state = self.begin_silently(take.queue, take.name, state, look, deed.end)
        if state.stage == "leased":
            self.check_lapse(state, deed.end)
            self.lapses += 1
            state = dataclasses.replace(state, stage="waiting", at=0, error=RAN_OUT, lapses=state.lapses + 1,
                                        order=None)
        assert state.begun + 1 == take.attempt and state.may_be_taken_as(take.attempt), f"{take} {state}"
        assert state.stage == "waiting" and state.at <= deed.end + SLACK, f"not ready: {take} {state}"
        return state

    def check_order(self, take, state):
        """No task of the queue was ready longer, or for the same time and filed earlier."""
        if state.order is None or self.nameless or not self.ordered:
            return
        for name, states in self.tasks[take.queue].items():
            other = states[0]
            if (len(states) == 1 and other is not NO_TASK and name != take.name and other.stage == "waiting"
                    and other.order is not None and comes_before(other.order, state.order)):
                behind = self.take_of(take.queue, name, other)
                assert behind is not None, f"{take} of {state} before {name} of {other}"

    # Commands whose replies were lost

    def catch_up(self, queue, name):
        """Periods with dead copies have died, so a command without a reply concerns a later one."""
        for of, copy in sorted(self.copies):
            news = (of, copy.rpartition("@")[0]) == (queue, name) and self.states(of, copy) == (NO_TASK,)
            if news and len(self.states(queue, name)) == 1:
                self.make_copy(queue, copy, now_ms())

    def guess(self, deed):
        """The task is as before the command or as after it, whichever the next look shows."""
        self.catch_up(deed.queue, deed.name)
        before, after = self.states(deed.queue, deed.name), []
        fate = {"put": "replaced", "cancel": "cancelled", "purge": "purged", "ack": "done"}.get(deed.kind)
        for state in before:
            if fate and state is not NO_TASK:
                self.guessed.setdefault((deed.queue, deed.name), []).append((state, fate))
            if deed.kind == "put":
                after += self.after_put(deed, state)
            elif state is NO_TASK:
                continue
            elif deed.kind in ("cancel", "purge"):
                after.append(NO_TASK)
            elif deed.kind in ("move", "replay"):
                moved = self.moved(state, deed.about["at"])
                after += [moved, *self.may_stand(moved, state)]
            elif state.behind:
                after += self.after_replaced(deed, state) + self.after_end_of_old(deed, state)
            else:
                after += self.after_answer(deed, state)
        if deed.kind == "back":
            before = [self.had_begun(deed, state) for state in before]
        self.put_state(deed.queue, deed.name, *(after if deed.kind == "put" else (*before, *after)))

    def after_put(self, deed, state):
        """The states to which a put may lead: with KEEPDUE, the task is another one or stands behind."""
        new = self.filed_task(deed)
        if not self.is_met(state, deed):
            return [state]
        if "KEEPDUE" not in deed.about.get("conditions", ()):
            return [new, *self.may_stand(new, state)]
        if state is NO_TASK or state.stage == "dead":
            return [new]
        kept = dataclasses.replace(self.kept(state, deed), older=(*state.older, state.payload))
        return [kept, *self.may_stand(dataclasses.replace(new, due=LATER, at=0), state)]

    @staticmethod
    def may_stand(new, old):
        """The new task behind an attempt of the old one, which a worker may have taken before."""
        if old is NO_TASK or old.stage == "dead":
            return []
        return [behind_attempt(new, old.behind or old)]

    def after_answer(self, deed, state):
        """A worker has answered for the attempt that it has."""
        if not self.may_hold(state, deed):
            return []
        attempt = deed.about["attempt"]
        if deed.kind == "ack":
            return [self.next_period(state)]
        if deed.kind == "touch":
            # The next look tells the end of the lease. Without the touch the end may be the same, so nobody
            # knows the length.
            return [dataclasses.replace(state, begun=attempt, stage="leased", at=0, lease=0, renewed=False,
                                        lapses=self.lapses_by(state, attempt), token=deed.about["token"])]
        if deed.kind == "nack":
            return self.after_nack(deed, state)
        return [self.given_back(deed, state)] if state.stage != "dead" else []

    def after_end_of_old(self, deed, state):
        """The attempt of the old task has lapsed, and a worker has taken the new one and answered for that."""
        if state.behind.at_least > now_ms() + SLACK or deed.about["token"] in state.given:
            return []
        return self.after_answer(deed, dataclasses.replace(state, behind=None, at=0, order=None))

    def after_replaced(self, deed, state):
        """The attempt of the old task has ended, or has another end."""
        old, attempt = state.behind, deed.about["attempt"]
        if not self.may_hold(old, deed):
            return []
        if deed.kind != "touch":
            return [dataclasses.replace(state, behind=None, at=0, order=None)]
        old = dataclasses.replace(old, begun=attempt, stage="leased", at=0, lease=deed.about["lease"],
                                  renewed=False, token=deed.about["token"])
        return [dataclasses.replace(state, behind=old)]

    def end_guessed(self, queue, name):
        """A look has shown whether commands without replies have ended a task."""
        now = self.states(queue, name)[0]
        for state, fate in self.guessed.pop((queue, name), ()):
            if now is NO_TASK or (now.payload, now.due) != (state.payload, state.due):
                self.ended.setdefault((name, state.payload, state.due), fate)

    def had_begun(self, deed, state):
        """The state if a TW.NACK BACK came too late: its worker had been given the task before."""
        if state is NO_TASK or deed.about["token"] in state.given or not self.may_hold(state, deed):
            return state
        return dataclasses.replace(state, least=deed.about["attempt"])

    @staticmethod
    def may_hold(state, deed):
        return state.due == deed.about["due"] and state.begun <= deed.about["attempt"]

    def after_nack(self, deed, state):
        attempt = deed.about["attempt"]
        state = dataclasses.replace(state, begun=attempt, lapses=self.lapses_by(state, attempt),
                                    error=deed.about["error"], at=0, token="", order=None)
        if not deed.about["dead"] and state.begun - state.lapses < state.tries:
            return [dataclasses.replace(state, stage="waiting", at=deed.about["at"])]
        dead = dataclasses.replace(state, stage="dead")
        if state.every == 0:
            return [dead]
        copy = f"{deed.name}@{state.due}"
        dead = dataclasses.replace(dead, every=0, times=1)
        self.put_state(deed.queue, copy, *dict.fromkeys((*self.states(deed.queue, copy), dead)))
        return [self.next_period(state)]

    def guess_take(self, deed):
        self.nameless.add(deed.number)

    def guess_promote(self, deed):
        for name in [deed.name] if deed.name else list(self.tasks[deed.queue]):
            self.put_state(deed.queue, name,
                           *(self.promoted(state, deed) for state in self.states(deed.queue, name)))

    def guess_pause(self, deed):
        self.paused[deed.queue] = deed.about["on"]
        self.resumed[deed.queue] = now_ms()
        self.forget_order(deed.queue)

    # Looks at everything

    def check_all(self, queue, rows, now, offered):
        """rows: {id: TW.GET} of all tasks of a queue, and of all ids that the judge knows. offered: how many
        tasks workers could take."""
        for name, flat in rows.items():
            if "@" not in name:  # Dead copies come into being with the task from which they are made.
                self.explain(queue, name, flat, now)
        for name, flat in rows.items():
            if "@" in name:
                self.explain(queue, name, flat, now)
        for name, flat in rows.items():
            if flat:
                self.check_clock(name, flat, now, now_ms())
        self.check_offered(queue, {name: Look(flat) for name, flat in rows.items() if flat}, offered)
        for name, states in self.tasks[queue].items():
            if name not in rows and len(states) > 1:  # A dead copy, if a command without a reply has run.
                error = self.copies.get((queue, name))
                self.put_state(queue, name, *(state for state in states if (state and state.error) == error))
                assert len(self.states(queue, name)) == 1, f"{name}: {states}, and its error is {error}"
        return {name: states[0] for name, states in self.tasks[queue].items() if states[0] is not NO_TASK}

    def settle_takes(self, takes, rows, lost_ok):
        """Tells which takes of blocked workers have survived. lost_ok(take): it may be lost."""
        for take in takes:
            states, row = self.states(take.queue, take.name), rows[take.queue].get(take.name)
            state, back = states[0], any(one is not NO_TASK and take.token in one.given for one in states)
            if (row and state is not NO_TASK and Look(row).due == state.due == take.due and not back
                    and max(state.begun, Look(row).begun) < take.attempt):
                assert lost_ok(take), f"{take} is forgotten: {row}"
                self.drop_take(take)
        self.check_twice(lost_ok)

    def check_twice(self, lost_ok):
        """No attempt is given out twice, unless the task was given back meanwhile. If that was lost, so were
        the takes after it. The task that KEEPDUE lets stand behind an attempt may be due in the same
        millisecond as the old one, but has another payload."""
        for attempts in self.takes.values():
            for takes in attempts.values():
                seen = set()
                for take in [take for take in takes if take.token not in self.returned]:
                    if take.payload in seen:
                        assert lost_ok(take), f"one attempt was given out twice: {takes}"
                        takes.remove(take)
                    seen.add(take.payload)
