# SPDX-License-Identifier: MIT
"""The targets of the table (table_home.py): deliveries, refusals, and the tasks that wait behind a refused
one. docs/redis.md has the rules, below "A target that refuses"."""
import collections

DUE, DELIVERED, REFUSED = 10, 11, 12  # enum tw__task_verb
DIED = 7  # enum tw__task_reply
ERROR = "WRONGTYPE Operation against a key holding the wrong kind of value"
KINDS = {"list": "list", "left": "list", "stream": "stream", "other": "other"}  # LEFT is an option of a List


class Line:
    """The tasks of one target with the same options that wait behind a refused one, which is the first. As long
    as there is one, `next_ms` is the next try of the target, and `wait_ms` the wait before that."""

    def __init__(self):
        self.held, self.next_ms, self.wait_ms = [], 0, 0

    def wait(self, task):
        """Returns the wait after one more refusal of the task."""
        first_ms, factor, most_ms = task["retry.first_ms"], task["retry.factor_percent"], task["retry.max_ms"]
        more_ms = self.wait_ms * factor // 100 if self.wait_ms else first_ms
        return min(more_ms, most_ms)


class Targets:
    """A part of the table. Of a task, `to` is its target, and `route` the target with the options. `line` is
    where it is held, or None. `offered`: its target has refused the present call itself."""

    def begin_targets(self):
        self.refuses, self.lines = False, collections.defaultdict(Line)
        self.delivered = collections.defaultdict(list)

    def leave_line(self, name, task):
        if task.line:
            task.line.held.remove(name)
            task.line = None

    def hold(self, name, task, first=False):
        task.line = self.lines[task.route]
        task.line.held.insert(0 if first else len(task.line.held), name)

    def change_route(self, name, task, before):
        """A held task of the route `before` has been renewed in its place, and waits on."""
        if task.route == before:
            return
        old, new = task.line, self.lines[task.route]
        self.leave_line(name, task)
        if not new.held:
            new.next_ms, new.wait_ms = old.next_ms, old.wait_ms
        self.hold(name, task)

    def refuse(self, task, name):
        """The target has refused the task. Returns whether it is dead, or else waits before all others."""
        outcome, _, _ = self.ask(task.numbers, {}, {"verb": REFUSED})
        line = self.lines[task.route]
        if outcome["reply"] == DIED:
            line.wait_ms, task.offered = 0, False
            self.change(name, REFUSED, error=ERROR)
            return True
        if task["attempt"] == 0:
            line.wait_ms = 0  # that of another task
        line.wait_ms, task.offered = line.wait(task), True
        line.next_ms = self.now + line.wait_ms
        self.hold(name, task, first=True)
        for held in line.held:
            self.tasks[held].numbers["attempt"] += 1
        return False

    def offer(self, name):
        """Offers a task, whose turn has come, to its target. Returns whether the next one may follow."""
        task, tries = self.tasks[name], self.tasks[name]["attempt"]
        task.numbers["attempt"] = int(task.offered)  # waits behind others are no attempts of its own
        if self.change(name, DUE)["filed"] or name not in self.tasks:
            return True  # its periods were dropped or skipped
        task.numbers["attempt"] = tries
        if self.refuses:
            return self.refuse(task, name)
        self.lines[task.route].wait_ms, task.offered = 0, False
        self.accept(name, task)
        self.change(name, DELIVERED)
        return True

    def accept(self, name, task):
        """Of a List, an entry is the payload alone."""
        missed = f" missed-periods {task['missed_periods']}" if task["missed_periods"] else ""
        entry = f"{name} due {task['due_ms'] - self.BEGIN} attempt {task['attempt'] + 1}{missed}"
        entries = self.delivered[KINDS[task.to]]
        at = 0 if task.to == "left" else len(entries)
        entries.insert(at, task.payload if KINDS[task.to] == "list" else entry)

    def try_again(self, line):
        """The wait of a line is over. In a pause none is tried, and all wait for its end."""
        while line.held:
            name = line.held[0]
            self.leave_line(name, self.tasks[name])
            if not self.paused and not self.offer(name):
                return

    def deliver(self):
        """Delivers all that is ready."""
        for line in [*self.lines.values()]:
            if line.held and line.next_ms <= self.now:
                self.try_again(line)
        ready = []
        while not self.paused:
            ready = ready or [name for name, task in self.sorted("ready")[::-1] if task["has_target"]]
            if not ready:
                return
            name = ready.pop()
            task = self.tasks[name]
            if self.lines[task.route].held:
                self.hold(name, task)
            else:
                self.offer(name)
            ready = [] if name in self.tasks else ready  # it has another place

    def promote_held(self, task):
        if task.line.next_ms > self.now:
            task.line.next_ms = self.now

    def do_refuse(self):
        self.refuses = True
        self.delivered.clear()
        return []

    def do_accept(self):
        self.refuses = False
        self.delivered.clear()
        return []

    def do_delivered(self):
        found = [f"{key} {entry}" for key in sorted(self.delivered) for entry in self.delivered[key]]
        self.delivered.clear()
        return found or ["nothing"]
