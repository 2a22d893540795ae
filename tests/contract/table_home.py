# SPDX-License-Identifier: MIT
"""The table itself as a home. Each change is a call of the pure function of src/task, in table.c. Here are only
the ids, the payloads, the errors and the order of the tasks, which a home keeps beside their numbers."""
import collections
import copy
import itertools
import subprocess

from eventually import PATIENCE
from targets import KINDS, Targets
from words import (ANSWERS, CONDITIONS, COUNTS, conditions_of, filled, read_options, show, show_counts,
                   show_details, show_row, show_states, show_wait)

BEGIN = 10**12  # an absolute time
FOREVER, TIME_MAX, KEEPDUE, PASSED_MAX = 2**64 - 1, 253402300799999, 16, 1000
(PUT, MOVE, CANCEL, TAKE, TOUCH, DONE, FAIL, KILL, BACK, LAPSE, _, _, _, PROMOTE, REPLAY,
 PURGE) = range(16)  # enum tw__task_verb; targets.py has the others
NONE, FILED, TAKEN, BURIED, REPLACED = range(5)  # enum tw__task_stage
NO, YES, MISSING, IS_DEAD, CANCELLED, AT_WORK, LATE, DIED = range(8)  # enum tw__task_reply
MISSED = ["coalesce", "skip", "burst"]  # enum tw_missed
TEXTS = {NO: "no", YES: "yes", MISSING: "gone", CANCELLED: "cancelled", AT_WORK: "at work",
         IS_DEAD: "error the task is dead: expected a replay, or a put in its place"}


class Task:
    """`place`: in the order of its queue. `died`: in the order of deaths. `held`: in the order of leases that
    end in one millisecond. The contract leaves that open; here it is as in the module."""

    def __init__(self, numbers, payload="", error=""):
        self.numbers, self.payload, self.error = numbers, payload, error
        self.place = self.died = self.held = None
        self.to = self.route = self.line = None  # targets.py
        self.offered = False

    def __getitem__(self, number):
        return self.numbers[number]

    def is_leased(self):
        return self["stage"] in (TAKEN, REPLACED)

    def state(self, now):
        if self.is_leased():
            return "leased"
        return "dead" if self["stage"] == BURIED else "ready" if self.next_ms() <= now else "waiting"

    def next_ms(self):
        """Of a task that is not leased: a held one waits for its target."""
        return self.line.next_ms if self.line else self["next_ms"]

    def place_now(self):
        return (self.line.next_ms, self.place[1]) if self.line else self.place


class Table(Targets):
    """A take without a time has the lease `lease_ms`; 0: its run has it. With answers_once an attempt can be
    answered only once, as in a handler. With counts_cancelled an answer counts also if its task was cancelled.
    With lapses_as_filed leases that end together lapse in the order of the places of their tasks, then of ids.
    Without shows_waits, a look leaves out how a task is tried again. `token_of` tells the token of an attempt
    that has begun in another home too; None: the table makes its own."""
    BEGIN = BEGIN
    lacks, runs = ("table", ), ("table", "lease", "run", "target", "queues", "several", "mark")
    process = None  # it serves all

    def __init__(self, program, lease_ms=30000, answers_once=False, counts_cancelled=False,
                 lapses_as_filed=False, shows_waits=True):
        self.lease_ms, self.answers_once, self.counts_cancelled = lease_ms, answers_once, counts_cancelled
        self.lapses_as_filed = lapses_as_filed
        self.shows_waits, self.token_of = shows_waits, lambda name: None
        if Table.process is None:
            Table.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                             text=True)
            Table.call, Table.task, Table.outcome = (Table.process.stdout.readline().split() for _ in range(3))

    def __enter__(self):
        self.now, self.paused, self.count = BEGIN, False, itertools.count(1)
        self.tasks, self.tokens, self.taken, self.counted = {}, {}, [], collections.Counter()
        self.others, self.marked = {}, False  # other queues, a table each
        self.filed = set()  # the tasks that were filed, since a walk has compared last
        self.begin_targets()
        return self

    def __exit__(self, *_):
        pass

    @classmethod
    def end(cls):
        if cls.process:
            cls.process.stdin.close()
            cls.process.stdout.close()
            cls.process.wait(PATIENCE)

    def can(self, line):
        """Whether the attempt that a line answers has begun."""
        verb, *words = line.split()
        return verb not in (*ANSWERS, "touch") or bool(self.tokens.get(words[0]))

    def __call__(self, line):
        verb, *words = line.split()
        return getattr(self, f"do_{verb}")(*words)

    # ---- changes

    def ask(self, numbers, options, call):
        """Returns the outcome, the task afterwards, and the dead period."""
        line = [self.now, *(call.get(name, 0) for name in Table.call)]
        line += [part.get(name, 0) for part in (numbers, options) for name in Table.task]
        Table.process.stdin.write(" ".join(map(str, line)) + "\n")
        Table.process.stdin.flush()
        found = iter(map(int, Table.process.stdout.readline().split()))
        return [dict(zip(names, found)) for names in (Table.outcome, Table.task, Table.task)]

    def change(self, name, verb, options=None, payload="", error="", **call):
        """Makes a call on a task. Returns the outcome."""
        task = self.tasks.get(name) or Task({"stage": NONE})
        was = task["stage"]
        outcome, task.numbers, dead = self.ask(task.numbers, options or {}, {"verb": verb, **call})
        self.tasks[name] = task
        if outcome["filed"] or task["stage"] != FILED:
            self.leave_line(name, task)
            task.offered = False
        if verb == PUT and outcome["reply"] == YES and task["stage"] == REPLACED:
            task.held = next(self.count)
        self.counted.update({count: outcome.get(f"tally.{count}", 0) for count in COUNTS})
        if outcome["filed"]:
            task.place = max(task["next_ms"], outcome["filed_ms"]), next(self.count)
        in_place = was == REPLACED and call.get("conditions", 0) & KEEPDUE
        stands = verb in (PUT, MOVE) and outcome["reply"] == YES and task["stage"] == REPLACED and not in_place
        if outcome["filed"] or stands:
            self.filed.add(name)
        if outcome["renewed"]:
            task.payload = payload
        if outcome["clears_error"]:
            task.error = ""
        if outcome["fails"] and outcome["reply"] == DIED:
            self.bury(name, task, dead, error)
        elif outcome["fails"]:
            task.error = error
        if task["stage"] == NONE:
            del self.tasks[name]
        return outcome

    def bury(self, name, task, dead, error):
        """The task has died, or a period of it."""
        if dead["stage"] == BURIED:
            name = f"{name}@{dead['due_ms'] - BEGIN}"
            names = itertools.chain([name], (f"{name}-{n}" for n in itertools.count(1)))
            to, route = task.to, task.route
            task = self.tasks[next(name for name in names if name not in self.tasks)] = Task(dead, task.payload)
            task.to, task.route = to, route
        task.error, task.died = error, next(self.count)

    def time(self, options):
        if "at" in options:
            return BEGIN + int(options["at"])
        return self.now + int(options.get("in", 0))

    def reply(self, name, verb, **call):
        return [TEXTS[self.change(name, verb, **call)["reply"]]]

    def file(self, name, words, usual, to=None):
        """Puts or sends. `usual`: tries, backoff and jitter, if none are given."""
        given = read_options(words)
        tries, first, factor, most, jitter = usual
        first, factor, most = (given.get("backoff", str(first)).split() + [factor, most])[:3]
        every = int(given.get("every", 0))
        options = {
            "has_target": int(to is not None), "every_ms": every,
            "times": int(given.get("times", FOREVER)) if every else 1,
            "missed": MISSED.index(given.get("missed", "coalesce")),
            "max_late_ms": int(given.get("maxlate", FOREVER)),
            "retry.tries": int(given.get("tries", tries)), "retry.jitter": int(given.get("jitter", jitter)),
            "retry.first_ms": int(first), "retry.factor_percent": round(float(factor) * 100),
            "retry.max_ms": int(most)}
        call = {"at_ms": self.time(given), "payload": given.get("payload", "x" if to else ""),
                "conditions": sum(1 << CONDITIONS.index(name) for name in conditions_of(given))}
        route = (to, options["missed"], *map(given.get, ("maxlate", "tries", "backoff", "jitter")))
        return self.file_for(name, route, options, call)

    def file_for(self, name, route, options, call):
        task, to = self.tasks.get(name), route[0]
        old_route, line = (task.route, task.line) if task else (None, None)
        elsewhere = task is not None and KINDS.get(task.to) != KINDS.get(to)
        before = task and task.numbers
        if line and elsewhere and call["conditions"] & KEEPDUE:
            task.numbers = {**before, "next_ms": line.next_ms}
        outcome = self.change(name, PUT, options=options, elsewhere=int(elsewhere), **call)
        if task and outcome["reply"] == NO:
            task.numbers = before
        if outcome["reply"] == YES:
            task = self.tasks[name]
            task.to, task.route = to, route
            if task.line:
                self.change_route(name, task, old_route)
        return [TEXTS[outcome["reply"]]]

    def do_put(self, name, *words):
        return self.file(name, words, usual=(20, 1000, 2, 3600000, 10))

    def do_send(self, name, *words):
        return self.file(name, words, usual=(3, 100, 2, 5000, 0), to=read_options(words).get("to", "list"))

    def do_fill(self, *words):
        for line in filled(words):
            self(line)
        return []

    def do_move(self, name, *words):
        given = read_options(words)
        return self.reply(name, MOVE, at_ms=self.time(given),
                          conditions=sum(1 << CONDITIONS.index(name) for name in conditions_of(given)))

    def do_cancel(self, name):
        return self.reply(name, CANCEL)

    # ---- attempts

    def queue(self, name):
        """Returns the table of a queue."""
        if name != "q" and name not in self.others:
            self.others[name] = Table(None).__enter__()
            self.others[name].now = self.now
        return self if name == "q" else self.others[name]

    def do_in(self, queue, *line):
        return self.queue(queue)(" ".join(line))

    def do_take(self, *words):
        given, lines, taken = read_options(words), [], []
        passed = FOREVER if "block" in given else PASSED_MAX
        limits = {"taken": int(given.get("count", FOREVER)), "passed": passed}
        for queue in given.get("of", "q").split():
            found = self.queue(queue).take(int(given.get("lease", self.lease_ms)), limits)
            lines += [f"{queue} " * ("of" in given) + line for *_, line in found]
            taken += found
        self.taken = taken or self.taken
        return lines or ["nothing"]

    def take(self, lease_ms, limits):
        """Takes tasks until one of the limits is 0. Returns them, each an id, a token and a line."""
        taken, ready = [], []
        while not self.paused and not self.marked and all(limits.values()):
            ready = ready or [pair for pair in self.sorted("ready")[::-1] if not pair[1]["has_target"]]
            if not ready:
                break
            name, task = ready.pop()
            task.held = next(self.count)
            token = self.token_of(name) or task.held
            if self.change(name, TAKE, token=token, lease_ms=lease_ms)["reply"] != YES:
                limits["passed"] -= 1  # too late, or skipped
                ready = [] if name in self.tasks and task.state(self.now) == "ready" else ready
                continue
            limits["taken"] -= 1
            self.counted["taken"] += 1
            self.tokens.setdefault(name, []).append(token)
            missed_periods = f" missed-periods {task['missed_periods']}" if task["missed_periods"] else ""
            line = f"{name} due {task['due_ms'] - BEGIN} attempt {task['attempt']}{missed_periods}"
            taken.append((name, token, line))
        return taken

    def do_again(self):
        """The tasks of the last take, in SQL."""
        return [line for name, token, line in self.taken
                if name in self.tasks and self.tasks[name]["stage"] == TAKEN
                and self.tasks[name]["token"] == token] or ["nothing"]

    def answer(self, name, verb, words, texts):
        tokens = self.tokens[name]
        token = tokens.pop() if self.answers_once else tokens[-2 if "before" in words else -1]
        given = read_options(word for word in words if word != "before")
        outcome = self.change(name, verb, error=given.get("error", ""), token=token,
                              timed=int("in" in given or "at" in given), at_ms=self.time(given),
                              lease_ms=int(given.get("lease", 0)))
        if self.counts_cancelled and outcome["reply"] == NO:
            self.counted[{DONE: "done", BACK: "back"}.get(verb, "failed")] += 1
        return [texts[outcome["reply"]].format(outcome["value_ms"] - BEGIN)]

    def do_done(self, name, *words):
        return self.answer(name, DONE, words, {YES: "yes", NO: "no"})

    def do_fail(self, name, *words, verb=FAIL):
        return self.answer(name, verb, words, {YES: "next {}", NO: "not yours", DIED: "dead"})

    def do_dead(self, name, *words):
        return self.do_fail(name, *words, verb=KILL)

    def do_back(self, name, *words):
        return self.do_fail(name, *words, verb=BACK)

    def do_touch(self, name, *words):
        if name in self.tasks and self.tasks[name].is_leased():
            self.tasks[name].held = next(self.count)
        return self.answer(name, TOUCH, words, {YES: "ends {}", NO: "not yours"})

    def leases(self):
        leases = [(task["end_ms"], task.place[0] if self.lapses_as_filed else task.held, name)
                  for name, task in self.tasks.items() if task.is_leased()]
        return [(end_ms, name) for end_ms, _, name in sorted(leases)]

    def do_pass(self, ms):
        self.now += int(ms)
        for end_ms, name in self.leases():
            if end_ms <= self.now:
                self.change(name, LAPSE, error="the lease ran out")
        self.deliver()
        for other in self.others.values():
            other.do_pass(ms)
        return []

    def do_set(self, ms):
        """Somebody sets the clock. Leases keep their length, as in a server."""
        self.now += int(ms)
        for _, name in self.leases():
            self.tasks[name].numbers["end_ms"] += int(ms)
        self.deliver()
        for other in self.others.values():
            other.do_set(ms)
        return []

    def do_crash(self):
        """The run ends with all its attempts."""
        self.counted.clear()
        self.tokens.clear()
        for _, name in self.leases():
            self.change(name, LAPSE, error="the run has ended")
        return []

    # ---- the queue as a whole

    def do_rename(self):
        return []

    def do_copy(self):
        """Each attempt ends as if it had not begun, and no token is good. A task that stood behind one is filed
        now, for its old time, as by a put."""
        counted = self.counted.copy()
        in_order = sorted(self.tasks.items(), key=lambda pair: (pair[1]["due_ms"], pair[1].place or (0, 0)))
        for name, task in in_order:
            replaced = task["stage"] == REPLACED
            if task.is_leased():
                self.change(name, BACK, token=task["token"])
            if replaced:
                task.numbers["next_ms"] = task["due_ms"]
            task.numbers["token"] = 0
        self.counted = counted
        return []

    def do_backup(self):
        self.saved = copy.deepcopy((self.tasks, self.paused))
        return []

    def do_restore(self):
        self.tasks, self.paused = copy.deepcopy(self.saved)
        return []

    def do_mark(self, marked=True):
        """Of a file that was restored: no task is taken."""
        changed, self.marked = self.marked != marked, marked
        return ["yes" if changed else "no"]

    def do_go(self):
        return self.do_mark(False)

    # ---- operators

    def many(self, name, verb, state, **call):
        """Returns how many of the tasks have changed."""
        names = [name for name, _ in self.sorted(state)] if name == "all" else [name]
        return [str(sum(self.change_one(name, verb, **call) for name in names))]

    def change_one(self, name, verb, **call):
        if verb == PROMOTE and name in self.tasks and self.tasks[name].line:
            self.promote_held(self.tasks[name])
            return True
        return self.change(name, verb, **call)["reply"] == YES

    def do_promote(self, name):
        return self.many(name, PROMOTE, "waiting")

    def do_replay(self, name, *words):
        return self.many(name, REPLAY, "dead", timed=1, at_ms=self.time(read_options(words)))

    def do_purge(self, name):
        return self.many(name, PURGE, "dead")

    def do_pause(self):
        paused, self.paused = self.paused, True
        return ["no" if paused else "yes"]

    def do_resume(self):
        paused, self.paused = self.paused, False
        return ["yes" if paused else "no"]

    # ---- looks

    def sorted(self, state):
        """The tasks of a state in their order, each with its id."""
        found = [(name, task) for name, task in self.tasks.items() if task.state(self.now) == state]
        return sorted(found, key=lambda pair: pair[1].died if state == "dead" else pair[1].place_now())

    def look(self, name):
        task = self.tasks[name]
        replaced, leased = task["stage"] == REPLACED, task.is_leased() and self.lease_ms
        waits = show_wait(task["retry.first_ms"], task["retry.factor_percent"] / 100, task["retry.max_ms"])
        return {
            "state": task.state(self.now), "due": task["due_ms"] - BEGIN,
            "next": None if task["stage"] == BURIED else (task["end_ms"] if leased else task.next_ms()) - BEGIN,
            "attempt": task["old_attempt" if replaced else "attempt"],
            "lapses": task["lapses"], "missed-periods": task["missed_periods"], "every": task["every_ms"],
            "times": 0 if task["times"] == FOREVER else task["times"],
            "missed": task["every_ms"] and MISSED[task["missed"]],
            "maxlate": None if task["max_late_ms"] == FOREVER else str(task["max_late_ms"]),
            "tries": self.shows_waits and task["retry.tries"], "backoff": self.shows_waits and waits,
            "jitter": self.shows_waits and str(task["retry.jitter"]), "to": task.to,
            "payload": task.payload, "error": task.error, "replaced": replaced}

    def do_get(self, name):
        return show(self.look(name)) if name in self.tasks else ["gone"]

    def do_details(self, *names):
        return [line for name in names
                for line in (show_details(self.look(name)) if name in self.tasks else ["gone"])]

    def do_range(self, first, last):
        found = [(name, self.look(name)) for name, _ in self.sorted("waiting")]
        return [show_row(task, name) for name, task in found
                if int(first) <= task["next"] <= int(last)] or ["nothing"]

    def do_next(self):
        return self.do_range(0, TIME_MAX)[:1]

    def do_deaths(self):
        return [show_row(self.look(name), name) for name, _ in self.sorted("dead")] or ["nothing"]

    def do_len(self):
        return [str(sum(task["stage"] != BURIED for task in self.tasks.values()))]

    def do_counts(self, *_):
        return show_counts(self.counted)

    def do_states(self):
        states = collections.Counter(task.state(self.now) for task in self.tasks.values())
        return show_states(states, self.paused)

    def do_scan(self):
        return sorted(show_row(self.look(name), name) for name in self.tasks)

    def do_forecast(self, step, steps):
        """Of tasks that run once."""
        ends = [task.next_ms() - self.now for _, task in self.sorted("waiting")]
        return [" ".join(str(sum((at - 1) // int(step) == n for at in ends)) for n in range(int(steps)))]
