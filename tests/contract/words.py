# SPDX-License-Identifier: MIT
"""The words of scenarios, which test_contract lists, and the comparison of replies."""
import difflib
import re

CONDITIONS = "nx xx gt lt keepdue".split()
OPTIONS = {*CONDITIONS, *"in at every times missed maxlate tries backoff jitter payload error to".split(),
           *"lease count block of".split()}
LOOKS = "get details delivered range next deaths len forecast scan states counts".split()
ANSWERS = ("done", "fail", "dead", "back")
COUNTS = "taken done failed lapsed back died dropped skipped coalesced delivered replaced".split()


def read_options(words):
    """Returns the options of a verb by their names, each with the words behind it."""
    options, name = {}, None
    for word in words:
        if word in OPTIONS:
            name, options[word] = word, ""
        else:
            options[name] = f"{options[name]} {word}".lstrip()
    return options


def filled(words):
    """The lines of `fill`."""
    verb = "send" if "to" in words else "put"
    return [" ".join((verb, f"f{n}", *words[1:])) for n in range(1, int(words[0]) + 1)]


def conditions_of(options):
    return [name for name in CONDITIONS if name in options]


def tell_task(task, names, next_states):
    words = [task["state"], "due", task["due"]]
    if task["state"] in next_states and task["next"] is not None:
        words += ["next", task["next"]]
    words += ["attempt", task["attempt"]]
    for name in names:
        if task.get(name) and (name != "times" or task["every"]):
            words += [name, task[name]]
    return [" ".join(map(str, words + ["replaced"] * bool(task.get("replaced"))))]


def show_row(task, name=None):
    """A line of a scan, a range, next or deaths. They have `next` of a task that waits or is ready."""
    words = [name or task["id"], "due", task["due"]]
    seen = task["state"] != "leased" and task["next"] is not None
    return " ".join(map(str, words + ["next", task["next"]] * seen))


def show(task):
    """The reply of get. An option that the task does not have is 0, empty or None. A task that runs once has no
    `missed`, and a home that shows one fails."""
    seen = "lapses every times payload error".split() + ["missed"] * (not task["every"])
    return tell_task(task, seen, ("waiting", "ready"))


def show_details(task):
    """The reply of details: `next` in each state, which is None of a dead task, and all options. A 0 that says
    something is a text."""
    names = "lapses missed-periods every times missed maxlate tries backoff jitter to payload error".split()
    return tell_task(task, names, ("waiting", "ready", "leased", "dead"))


def show_wait(first_ms, factor, most_ms):
    """The option `backoff`, as a scenario has it."""
    return f"{first_ms} {float(factor):g} {most_ms}"


def show_counts(counts):
    """The reply of counts, without zeros."""
    return [" ".join(f"{name} {counts[name]}" for name in COUNTS if counts.get(name)) or "nothing"]


def show_states(counts, paused):
    """The reply of states: how many tasks are in each."""
    words = [f"{name} {counts.get(name, 0)}" for name in ("waiting", "ready", "leased", "dead")]
    return [" ".join(words + ["paused"] * bool(paused))]


def shift(text, ms):
    """Moves the times in ids of dead periods, `a@1000`: a scenario tells them from its beginning on."""
    return re.sub(r"@(\d+)", lambda found: f"@{int(found[1]) + ms}", text)


def counted(line, reply, lacks):
    """The reply of counts in a home that lacks some: a line such as `replaced: why` of lacks-HOME says so."""
    if line.split()[0] != "counts":
        return reply
    words = reply[0].split()
    return show_counts({name: count for name, count in zip(words[::2], words[1::2]) if name not in lacks})


def is_wrong(line, expected, got):
    return got != expected and not (got == ["-"] and line.split()[0] in ANSWERS)


def first_wrong(steps, home, lacks=()):
    """Makes the steps, each a line and its reply. Returns the number of the first wrong reply, and that reply;
    None: all are right."""
    for at, (line, expected) in enumerate(steps):
        expected = counted(line, expected, lacks)
        got = sorted(home(line)) if line == "scan" else home(line)
        if is_wrong(line, expected, got):
            return at, got
    return None


def told(steps, at, got):
    """The scenario until there. At last come both replies: "-" that of the scenario, "+" that of the home."""
    lines = [text for line, reply in steps[:at] for text in (line, *(f"  {text}" for text in reply))]
    lines += [steps[at][0], *difflib.ndiff(steps[at][1], got)]
    return "".join(f"    {line}\n" for line in lines)
