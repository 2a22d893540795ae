# SPDX-License-Identifier: MIT
"""Random walks: verbs and looks at random, whose replies in a home must be those of the table (table_home.py).
A walk that fails is cut down to the lines that matter, and prints as a scenario."""
import random
import re

from table_home import Table
from words import LOOKS, counted, is_wrong, told

IDS, STEPS, TOLD = "abc", 30, 3

# The verbs: how often, and the line. A word in capitals is a choice of WORDS. ID mostly names a task, and TAKEN
# mostly one that is leased: an answer for another one is no line of the walk.
LINES = [
    (15, "put NEW WHEN IF SERIES LATE TRIES WAIT PAYLOAD"),
    (6, "put NEW WHEN keepdue KEEP SERIES LATE WAIT PAYLOAD"),
    (6, "move ID WHEN MOVED"), (1, "cancel ID"), (10, "take"), (5, "take lease MS"), (3, "touch ID lease MS"),
    (7, "done TAKEN"), (6, "fail TAKEN in MS ERROR"), (6, "fail TAKEN ERROR"), (5, "dead TAKEN ERROR"),
    (3, "back TAKEN"), (3, "back TAKEN in MS"), (9, "pass MS"), (1, "pause"), (1, "resume"),
    (1, "promote MANY"), (2, "replay MANY"), (1, "replay MANY in MS"), (1, "purge MANY"), (1, "range 500 3000"),
    (1, "next"), (1, "scan"), (1, "deaths"), (1, "len"), (1, "states"), (2, "counts"), (2, "crash")]
# Every second walk in a home with targets has these too.
TARGETS = [
    (200, "send NEW in 0 nx to stream backoff 3600000 2 9000000"),
    (60, "send NEW WHEN TO IF PERIODS LATE HELD PAYLOAD"),
    (90, "send ID WHEN TO keepdue KEEP PERIODS LATE HELD"),
    (60, "refuse"), (40, "accept"), (90, "promote all"), (20, "promote ID"), (20, "cancel ID"), (30, "HOURS")]
WORDS = {
    "NEW": [*IDS],
    "MS": ["1", "10", "500", "1000", "1500", "2500"],
    "WHEN": ["in 0", "in 0", "in MS", "in MS", "at 0", "at MS"],
    "IF": ["", "", "nx", "xx", "gt", "lt"],
    "KEEP": ["", "", "", "nx", "xx"],
    "MOVED": ["", "gt", "lt"],
    "SERIES": ["", "", "every 700 MISSED", "every 1000 times 2 MISSED"],
    "MISSED": ["missed burst", "missed skip", "missed coalesce"],
    "LATE": ["", "", "", "", "maxlate 0", "maxlate 800"],
    "TRIES": ["", "", "tries 1", "tries 2"],
    "WAIT": ["", "backoff 100 2 1000 jitter 0", "backoff 200 1.5 2500 jitter 50",
             "backoff 700 2 9000 jitter 100"],
    # With a target. Its waits last for hours: the server also reckons the time for which the walk itself lasts.
    "TO": ["to list", "to left", "to stream", "to stream", "to other", "to other"],
    "PERIODS": ["", "", "every 700 missed coalesce", "every 1000 times 2 missed skip",
                "every 9000000 missed burst"],
    "HELD": [*3 * ["backoff 3600000 2 9000000"], "backoff 3600000 2 9000000 tries 2",
             "backoff 3600000 1 3600000"],
    "HOURS": ["pass 9000000"],
    "PAYLOAD": ["", "payload x", "payload y"],
    "ERROR": ["", "error broken"]}

# A line or a choice is left out if the home lacks one of these cells or scenarios.
NEEDS = {
    r"keepdue": ["keep.2", "keep.4", "keep.5"], r"promote": ["promote.1"], r"touch": ["touch.1"],
    r"take lease": ["touch.1"], r"crash": ["the attempts of a run that has ended lapse"],
    r"missed coalesce": ["coalesce makes one call for all"],
    r"missed skip": ["the take skips, and nothing before it"], r"maxlate": ["the time in a pause counts"]}
SAME_TIME = "deaths in the same millisecond stand in their order too"
OVERLAP = "a new task of the id does not wait for the work of the cancelled one"
WAITS = "a look shows how a task is tried again"
CANCELLED = "the end of a cancelled attempt is not counted"
TIED = "leases that end together lapse in the order of their takes"
NOTICED_LATE = "a lapse that is noticed late has the same place in the order"


def kept(choices, lacks):
    """Leaves out the choices for which a home lacks something."""
    missing = "|".join(text for text, needs in NEEDS.items() if lacks.intersection(needs))
    return [choice for choice in choices if not missing or not re.search(missing, str(choice))]


def misnumbered(before, after, filed):
    """In a file a task that is filed gets a number above all before, and no other change gives it another one.
    Returns a task of which this is wrong, as a text, or None."""
    last = max(before.values(), default=0)
    for name, number in after.items():
        if number <= last if name in filed or name not in before else number != before[name]:
            return f"{name} has number {number} after {before}, filed: {filed}"
    return None


class Walks:
    """Of a home: `make` returns one that is new, and `program` is that of table.c."""

    def __init__(self, make, program, lacks):
        self.make, self.program, self.lacks = make, program, lacks
        self.lines = kept(LINES, lacks)
        self.words = {name: kept(choices, lacks) or [""] for name, choices in WORDS.items()}

    def table(self):
        return Table(self.program, lease_ms=0 if "touch.1" in self.lacks else 30000,
                     answers_once="fail.4" in self.lacks, counts_cancelled=CANCELLED in self.lacks,
                     lapses_as_filed=TIED in self.lacks, shows_waits=WAITS not in self.lacks)

    def draw_line(self, rng, lines, tasks):
        names, taken = [*IDS, *4 * [*tasks]], [name for name, task in tasks.items() if task.is_leased()]
        words = {**self.words, "ID": names, "TAKEN": [*names, *20 * taken], "MANY": [*names, "all"]}
        line = rng.choices([line for _, line in lines], [weight for weight, _ in lines])[0]
        while found := re.search(r"\b[A-Z]+\b", line):
            line = line[:found.start()] + rng.choice(words[found[0]]) + line[found.end():]
        return " ".join(line.split())

    def moments(self, table, line, sends):
        """Returns the lines of a line: several, where the home does not tell moments apart, or delivers in its
        own time."""
        verb, *words = line.split()
        leased = [task for task in table.tasks.values() if task.is_leased()]
        if line in WORDS["HOURS"] and leased:
            return []  # a server that has stood still for so long lets each lease begin anew
        lines_held = sum(bool(waiting.held) for waiting in table.lines.values())
        if line in ("promote all", *WORDS["HOURS"]) and lines_held > 1:
            return []  # it does not matter which of two targets is tried first
        if verb == "pass" and NOTICED_LATE in self.lacks:
            ends = {task["end_ms"] - table.now for task in leased}
            ends = [0, *sorted(end for end in ends if end < int(words[0])), int(words[0])]
            return [f"pass {end - before}" for before, end in zip(ends, ends[1:])]
        return [line, "pass 0"] if sends and verb not in (*LOOKS, "pass") else [line]

    def follow(self, line, reply):
        """Returns the line that has to follow, where the home is not as the table."""
        name = line.split()[-1]
        for expected, title, then in (("dead", SAME_TIME, "pass 1"), ("at work", OVERLAP, f"done {name}")):
            if reply == [expected] and title in self.lacks:
                return [then]
        return []

    def play(self, table, line, sends, home=None):
        """Makes a line in the table, and in the home before that. Yields the steps: the line, the reply of the
        table, and that of the home. There is none if the line answers an attempt that is not there."""
        lines = self.moments(table, line, sends)
        while lines and table.can(lines[0]):
            line = lines.pop(0)
            got = home(line) if home else None
            reply = table(line)
            yield line, reply, got
            lines = self.follow(line, reply) + lines

    def draw(self, rng):
        """Returns a walk, a list of lines. After each verb come looks at all tasks."""
        walk, sends = [], "take.5" not in self.lacks and rng.random() < 0.5
        lines = self.lines + TARGETS * sends
        with self.table() as table:
            for _ in range(STEPS):
                line = self.draw_line(rng, lines, table.tasks)
                if [*self.play(table, line, sends)]:
                    walk += [line, *["delivered"] * sends, f"details {' '.join(sorted({*IDS, *table.tasks}))}"]
        return [*walk, "counts"]

    def compare(self, walk, least=0):
        """Returns the scenario as a text with the first wrong reply, or None if there is none in at least so
        many steps."""
        steps, sends = [], any(line.startswith("send") for line in walk)
        with self.table() as table, self.make() as home:
            table.token_of, numbers = home.token_of, {}
            for line in walk:
                for step, expected, got in self.play(table, line, sends, home):
                    expected = counted(step, expected, self.lacks)
                    steps.append((step, expected))
                    if is_wrong(step, expected, sorted(got) if step == "scan" else got):
                        return told(steps, len(steps) - 1, got)
                    before, numbers = numbers, home.numbers()
                    if found := misnumbered(before, numbers, table.filed):
                        return told(steps, len(steps) - 1, [*got, found])
                    table.filed.clear()
        return f"    {len(steps)} steps: expected at least {least}\n" if len(steps) < least else None

    def shorten(self, walk, text):
        """Leaves out lines, in ever smaller parts, as long as the walk fails. Returns the text of the shortest
        one. A walk whose waits depend on the tokens of the home may fail with some of them alone."""
        size = len(walk) // 2
        while size > 0:
            at = 0
            while at < len(walk):
                shorter = walk[:at] + walk[at + size:]
                if found := self.compare(shorter):
                    walk, text = shorter, found
                else:
                    at += size
            size //= 2
        return text

    def run(self, first, count):
        """Makes the walks of so many seeds. Returns how many have failed; it ends after a few."""
        failed = 0
        for seed in range(first, first + count):
            walk = self.draw(random.Random(seed))
            if failed < TOLD and (text := self.compare(walk, max(len(walk), STEPS) // 2)):
                failed += 1
                print(f"[] the walk of seed {seed}\n{self.shorten(walk, text)}")
        return failed
