# SPDX-License-Identifier: MIT
"""The forecast of a queue in a file: src/store/forecast.c, which explains it, in Python."""
from __future__ import annotations

import math
from typing import Any, Callable, List, NamedTuple

from ._words import MOST_MS

WAITING = """
    FROM tw_task INDEXED BY {} WHERE queue = :queue AND dead_ms IS NULL AND replaced = 0 AND run = 0
        AND place_ms > :now AND place_ms <= :last AND next_ms > :now AND next_ms <= :end"""

# Each call that a task waits for.
FIRST = f"SELECT (next_ms - 1 - :now) / :step, count(*) {WAITING.format('tw_order')} GROUP BY 1"
REPEATS = f"""SELECT due_ms, next_ms, every_ms, times, missed, attempt, missed_periods
    {WAITING.format('tw_repeat')} AND every_ms > 0"""


class Repeat(NamedTuple):
    """A waiting task that repeats. `times`: calls that are left; 0: no end."""
    due_ms: int
    next_ms: int
    every_ms: int
    times: int
    missed: str
    attempt: int
    missed_periods: int


class Forecast:
    """Counts the calls that come in each of so many steps from now on."""

    def __init__(self, now_ms: int, step_ms: int, steps: int) -> None:
        self.now_ms, self.step_ms, self.counts = now_ms, step_ms, [0] * steps
        self.end_ms = min(now_ms + step_ms * steps, MOST_MS)

    def read(self, rows: Callable[..., List[Any]], queue: str, set_back: bool) -> List[int]:
        """Returns the counts. `rows` asks the file. If the clock was set back, a task may have a place behind
        its next time."""
        values = {"queue": queue, "now": self.now_ms, "end": self.end_ms, "step": self.step_ms,
                  "last": MOST_MS if set_back else self.end_ms}
        for step, count in rows(FIRST, **values):
            self.counts[step] += count
        for row in rows(REPEATS, **values):
            self.add_further(Repeat(*row))
        return self.counts

    def step_of(self, time_ms: int) -> int:
        return (time_ms - self.now_ms - 1) // self.step_ms

    def add_further(self, task: Repeat) -> None:
        """Counts the calls of a task after its first one. The periods that the first call will have missed are
        one call with it, or one call each, or the next period is the first call."""
        due_ms, begun = task.due_ms, task.attempt > 0
        further = task.times - 1 if task.times else math.inf
        if begun:  # A retry: the periods for which it stands are fixed.
            due_ms += task.missed_periods * task.every_ms
            if further > 0 and due_ms + task.every_ms <= task.next_ms:  # The next period has its call then too.
                due_ms, further, begun = due_ms + task.every_ms, further - 1, False
                self.counts[self.step_of(task.next_ms)] += 1
        missed = 0 if task.missed == "burst" else max(0, task.next_ms - due_ms) // task.every_ms
        if task.missed == "skip" and not begun and missed > 0:
            self.counts[self.step_of(task.next_ms)] -= 1
            further += 1
        self.add_calls(due_ms + missed * task.every_ms, task, further)

    def add_calls(self, due_ms: int, task: Repeat, most: float) -> None:
        """Counts the calls behind that of due_ms, at most so many, from the first call of the task on."""
        before, end_ms = 0, self.now_ms
        for step in range(len(self.counts)):
            end_ms = min(end_ms + self.step_ms, self.end_ms)
            if end_ms >= task.next_ms:
                until = int(min(max(0, end_ms - due_ms) // task.every_ms, most))
                self.counts[step] += until - before
                before = until
