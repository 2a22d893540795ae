# SPDX-License-Identifier: MIT
"""The cells of docs/contract.md's table: which cells a scenario makes, and which cells a home has to make.

A scenario is played in the table itself (table_home.py), which knows the state that each verb finds. So a label
cannot name a cell that its scenario does not make, and a cell counts only for the states and conditions with
which it was made. Of CELLS_OF_HOMES the labels alone tell."""
import re

from table_home import REPLACED, Table
from targets import KINDS
from words import ANSWERS, conditions_of, read_options

STATES = ("missing", "waiting", "ready", "leased", "replaced", "dead")
CELLS_OF_HOMES = {"keep.10", "take.7"}
ANY = {  # "any" stands for all states but these, which have a row of their own
    **dict.fromkeys(("put.6", "put.7", "put.8", "put.9", "put.10", "get.2", "scan.1"), ("missing", )),
    "move.5": ("missing", "dead"), "take.6": ("missing", "ready"), "promote.3": ("waiting", ),
    "replay.2": ("dead", ), "purge.2": ("dead", ), "look.1": ("missing", "waiting"),
    "len.2": ("missing", "dead")}
LABELS_ALONE = {"pause.1", "pause.2", "resume.1", "resume.2"}  # of a queue, whatever tasks it has


# ---- the page -----------------------------------------------------------------------------------------------

def read_page(path):
    """Returns the cells of the page, each with the pairs of a condition and a state that it names."""
    cells, conditions = {}, [""]
    page = path.read_text(encoding="utf-8")
    for cell, condition, state in re.findall(r"^\| ([a-z]+\.\d+) \|([^|]*)\|([^|]*)\|", page, re.MULTILINE):
        if condition.strip() != "the same":
            conditions = [""]
            if cell.startswith(("put", "move")):
                conditions = re.findall(r"\b(none|NX|XX|GT|LT)\b", condition) or ["none", "GT", "LT"]
        states = [word for word in STATES if re.search(rf"\b{word}\b", state)]
        if "any" in state:
            states = [word for word in STATES if word not in ANY.get(cell, ())]
        if cell in CELLS_OF_HOMES | LABELS_ALONE:
            states = []
        cells[cell] = {(word.lower(), state) for word in conditions for state in states}
    return cells


def read_counts(path):
    """Returns the names of the events that the page counts."""
    page = path.read_text(encoding="utf-8")
    events = page[page.index("The other counts are of events"):page.index("**Lateness**")]
    return set(re.findall(r"^\| `(\w+)` \|", events, re.MULTILINE))


# ---- scenarios ----------------------------------------------------------------------------------------------

def state_of(table, name):
    task = table.tasks.get(name)
    if task is None:
        return "missing"
    return "replaced" if task["stage"] == REPLACED else task.state(table.now)


def put_cell(state, options, reply, repeats, elsewhere):
    conditions = conditions_of(options)
    if "keepdue" in conditions:
        for condition, cell in (("gt", 10), ("lt", 10), ("nx", 8), ("xx", 9)):
            if condition in conditions:
                return f"keep.{cell}"
        leased = ("keep.6" if elsewhere else "keep.4") if repeats and "every" in options else "keep.5"
        cells = {"missing": "keep.1", "dead": "keep.1", "leased": leased, "replaced": "keep.7"}
        return cells.get(state, "keep.3" if elsewhere else "keep.2")
    condition = (conditions or ["none"])[0]
    if state == "missing":
        return "put.2" if condition == "xx" else "put.1"
    if reply == "no":
        return {"nx": "put.6", "gt": "put.8", "lt": "put.10"}[condition]
    if condition in ("gt", "lt"):
        return {"gt": "put.7", "lt": "put.9"}[condition]
    return {"leased": "put.4", "replaced": "put.5"}.get(state, "put.3")


def answer_cell(verb, state, reply, options, repeats):
    if verb == "touch":
        return "touch.2" if reply == "not yours" else "touch.1"
    if reply in ("no", "not yours"):
        return "done.5" if verb == "done" else f"{verb}.4"
    if state == "replaced":
        return f"{verb}.3"
    if verb == "done":
        return "done.4" if state != "leased" else "done.2" if repeats else "done.1"
    if verb == "dead":
        return "dead.2" if repeats else "dead.1"
    if verb == "fail":
        return "fail.2" if reply == "dead" else "fail.1"
    return "back.2" if "in" in options or "at" in options else "back.1"


class Trace:
    """Plays a scenario. `made`: each a cell, a condition and a state."""

    def __init__(self, program, steps):
        self.made = set()
        with Table(program) as self.table:
            for line, _ in steps:
                self.play(*line.split())

    def add(self, cell, state, condition=""):
        self.made.add((cell, condition, state))

    def held(self):
        """The tasks that a target keeps waiting."""
        return {name for name, task in self.table.tasks.items() if task.line}

    def play(self, verb, *words):
        before = {name: state_of(self.table, name) for name in self.table.tasks}
        with_options = verb in ("put", "send", "move", "touch", *ANSWERS)
        options = read_options(word for word in words[1:] if word != "before") if with_options else {}
        name = words[0] if words else ""
        state, task = before.get(name, "missing"), self.table.tasks.get(name)
        repeats = task is not None and task["every_ms"] > 0
        to = options.get("to", "list") if verb == "send" else None
        elsewhere = task is not None and KINDS.get(task.to) != KINDS.get(to)
        held = self.held()
        counted = dict(self.table.counted)
        replies = self.table(" ".join((verb, *words)))
        if verb in ("put", "send"):
            cell = put_cell(state, options, replies[0], repeats, elsewhere)
            condition = (conditions_of(options) or ["none"])[0]
            self.add(cell, state, condition if cell.startswith("put") else "")
        elif verb == "move":
            cell = {"missing": 1, "dead": 6, "leased": 3, "replaced": 4}.get(state, 2)
            self.add(f"move.{5 if replies == ['no'] else cell}", state, (conditions_of(options) or ["none"])[0])
        elif verb == "cancel":
            self.add(f"cancel.{ {'missing': 1, 'leased': 3, 'replaced': 4}.get(state, 2)}", state)
        elif verb in (*ANSWERS, "touch"):
            self.add(answer_cell(verb, state, replies[0], options, repeats), state)
        elif verb in ("promote", "replay", "purge"):
            self.play_many(verb, before if name == "all" else {name: state}, held)
        elif verb == "take":
            self.play_take(before, counted)
        elif verb in ("pass", "crash"):
            self.play_lapses(before)
            self.play_drops(counted)
            if self.table.counted["delivered"] > counted.get("delivered", 0) or held != self.held():
                self.add("take.5", "ready")
        else:
            self.play_look(verb, before, name, replies)

    def play_many(self, verb, found, held):
        changes = "waiting" if verb == "promote" else "dead"
        for name, state in found.items():
            if verb == "promote" and name in held:
                self.add("promote.2", state)
                continue
            self.add(f"{verb}.{1 if state == changes else 3 if verb == 'promote' else 2}", state)

    def play_take(self, before, counted):
        for name, state in before.items():
            if state != "ready":
                self.add("take.6", state)
            elif self.table.tasks.get(name) and self.table.tasks[name]["has_target"]:
                self.add("take.5", state)
            elif self.table.paused:
                self.add("take.4", state)
            elif state_of(self.table, name) == "leased":
                self.add("take.1", state)
        self.play_drops(counted)

    def play_drops(self, counted):
        """By a take or a delivery."""
        for cell, count in (("take.2", "dropped"), ("take.3", "skipped")):
            if self.table.counted[count] > counted.get(count, 0):
                self.add(cell, "ready")

    def play_lapses(self, before):
        for name, state in before.items():
            if state not in ("leased", "replaced") or state_of(self.table, name) == state:
                continue
            survives = self.table.tasks[name]["token"] != 0  # which a lapse has left
            self.add("lapse.3" if state == "replaced" else "lapse.1" if survives else "lapse.2", state)

    def play_look(self, verb, before, name, replies):
        states = set(before.values())
        if verb in ("get", "details"):
            state = before.get(name, "missing")
            self.add("get.1" if state == "missing" else "get.2", state)
        elif verb in ("pause", "resume"):
            self.add(f"{verb}.{1 if replies == ['yes'] else 2}", "")
        for state in states:
            if verb == "scan":
                self.add("scan.1", state)
            elif verb == "deaths" and state == "dead":
                self.add("list.1", state)
            elif verb == "len":
                self.add("len.1" if state == "dead" else "len.2", state)
            elif verb in ("range", "next", "forecast"):
                self.add(f"{verb}.1" if state == "waiting" else "look.1", state)
