# SPDX-License-Identifier: MIT
"""Random walks: verbs and looks at random, whose replies in a home must be those of the table (table_home.py).
A walk that fails is cut down to the lines that matter, and prints as a scenario."""
import random
import re

from table_home import Table
from words import first_wrong, told

IDS, STEPS, TOLD = "abc", 30, 3

# The verbs: how often, and the line. A word in capitals is a choice of WORDS. ID mostly names a task, and TAKEN
# mostly one that is leased: an answer for another one is no line of the walk.
LINES = [
    (15, "put NEW WHEN IF SERIES LATE TRIES WAIT PAYLOAD"), (5, "put NEW WHEN keepdue SERIES WAIT PAYLOAD"),
    (6, "move ID WHEN MOVED"), (1, "cancel ID"), (10, "take"), (5, "take lease MS"), (3, "touch ID lease MS"),
    (7, "done TAKEN"), (8, "fail TAKEN in MS ERROR"), (3, "fail TAKEN ERROR"), (5, "dead TAKEN ERROR"),
    (3, "back TAKEN"), (3, "back TAKEN in MS"), (9, "pass MS"), (1, "pause"), (1, "resume"),
    (1, "promote MANY"), (2, "replay MANY"), (1, "replay MANY in MS"), (1, "purge MANY"), (1, "range 500 3000"),
    (1, "next"), (1, "scan"), (1, "deaths"), (1, "len"), (1, "states"), (2, "counts"), (2, "crash")]
WORDS = {
    "NEW": [*IDS],
    "MS": ["1", "10", "500", "1000", "1500", "2500"],
    "WHEN": ["in 0", "in 0", "in MS", "in MS", "at 0", "at MS"],
    "IF": ["", "", "nx", "xx", "gt", "lt"],
    "MOVED": ["", "gt", "lt"],
    "SERIES": ["", "", "every 700 MISSED", "every 1000 times 2 MISSED"],
    "MISSED": ["missed burst", "missed skip", "missed coalesce"],
    "LATE": ["", "", "", "", "maxlate 0", "maxlate 800"],
    "TRIES": ["", "", "tries 1", "tries 2"],
    "WAIT": ["backoff 100 2 1000 jitter 0"],
    "PAYLOAD": ["", "payload x", "payload y"],
    "ERROR": ["", "error broken"]}

# A line or a choice is left out if the home lacks one of these cells or scenarios.
NEEDS = {
    r"keepdue": ["keep.2", "keep.4", "keep.5"], r"promote": ["promote.1"], r"touch": ["touch.1"],
    r"take lease": ["touch.1"], r"crash": ["the attempts of a run that has ended lapse"],
    r"missed coalesce": ["coalesce makes one call for all"],
    r"back TAKEN'": ["it has its old place again, also before a task of an earlier time"],
    r"missed skip": ["the take skips, and nothing before it"], r"maxlate": ["the time in a pause counts"]}
SAME_TIME = "deaths in the same millisecond stand in their order too"
OVERLAP = "a new task of the id does not wait for the work of the cancelled one"
CANCELLED = "the end of a cancelled attempt is not counted"
TIED = "leases that end together lapse in the order of their takes"
NOTICED_LATE = "a lapse that is noticed late has the same place in the order"


def kept(choices, lacks):
    """Leaves out the choices for which a home lacks something."""
    missing = "|".join(text for text, needs in NEEDS.items() if lacks.intersection(needs))
    return [choice for choice in choices if not missing or not re.search(missing, str(choice))]


class Walks:
    """Of a home: `make` returns one that is new, and `program` is that of table.c."""

    def __init__(self, make, program, lacks):
        self.make, self.program, self.lacks = make, program, lacks
        self.lines = kept(LINES, lacks)
        self.words = {name: kept(choices, lacks) or [""] for name, choices in WORDS.items()}

    def table(self):
        return Table(self.program, lease_ms=0 if "touch.1" in self.lacks else 30000,
                     answers_once="fail.4" in self.lacks, counts_cancelled=CANCELLED in self.lacks,
                     lapses_as_filed=TIED in self.lacks)

    def draw_line(self, rng, tasks):
        names, taken = [*IDS, *4 * [*tasks]], [name for name, task in tasks.items() if task.is_leased()]
        words = {**self.words, "ID": names, "TAKEN": [*names, *20 * taken], "MANY": [*names, "all"]}
        line = rng.choices([line for _, line in self.lines], [weight for weight, _ in self.lines])[0]
        while found := re.search(r"\b[A-Z]+\b", line):
            line = line[:found.start()] + rng.choice(words[found[0]]) + line[found.end():]
        return " ".join(line.split())

    def play(self, table, line):
        """Returns the steps of a line: several, where the home does not tell moments apart."""
        lines = [line]
        if line.startswith("pass") and NOTICED_LATE in self.lacks:
            ends = {task["end_ms"] - table.now for task in table.tasks.values() if task.is_leased()}
            ends = [0, *sorted(end for end in ends if end < int(line.split()[1])), int(line.split()[1])]
            lines = [f"pass {end - before}" for before, end in zip(ends, ends[1:])]
        steps = [(line, table(line)) for line in lines]
        name = line.split()[-1]
        for reply, title, then in (("dead", SAME_TIME, "pass 1"), ("at work", OVERLAP, f"done {name}")):
            if steps[0][1] == [reply] and title in self.lacks:
                steps.append((then, table(then)))
        return steps

    def draw(self, rng):
        """Returns a walk, a list of lines. After each verb come looks at all tasks."""
        walk = []
        with self.table() as table:
            for _ in range(STEPS):
                line = self.draw_line(rng, table.tasks)
                if self.play(table, line)[0][1] != ["not taken"]:
                    walk += [line, *(f"get {name}" for name in sorted({*IDS, *table.tasks}))]
        return [*walk, "counts"]

    def compare(self, walk):
        """Returns the scenario as a text with the first wrong reply, or None. Without the lines before it, an
        answer may have no attempt: then it is no walk."""
        with self.table() as table:
            steps = [step for line in walk for step in self.play(table, line)]
        if any(reply == ["not taken"] for _, reply in steps):
            return None
        with self.make() as home:
            wrong = first_wrong(steps, home, self.lacks)
        return wrong and told(steps, *wrong)

    def shorten(self, walk):
        """Leaves out lines, in ever smaller parts, as long as the walk fails."""
        size = len(walk) // 2
        while size > 0:
            at = 0
            while at < len(walk):
                shorter = walk[:at] + walk[at + size:]
                if self.compare(shorter):
                    walk = shorter
                else:
                    at += size
            size //= 2
        return walk

    def run(self, first, count):
        """Makes the walks of so many seeds. Returns how many have failed; it ends after a few."""
        failed = 0
        for seed in range(first, first + count):
            walk = self.draw(random.Random(seed))
            if failed < TOLD and self.compare(walk):
                failed += 1
                print(f"[] the walk of seed {seed}\n{self.compare(self.shorten(walk))}")
        return failed
