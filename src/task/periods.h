/* SPDX-License-Identifier: MIT
 *
 * Periods of a task that repeats: due times are first + n * every. The functions know no unit, so the scheduler
 * uses them with nanoseconds.
 */
#ifndef TW_TASK_PERIODS_H
#define TW_TASK_PERIODS_H

#include <base/saturate.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tickwheel/task.h>

/* The due time after `periods` more periods. */
static inline uint64_t tw__task_due_after(uint64_t due, uint64_t periods, uint64_t every)
{
    return tw__add_saturating(due, tw__mul_saturating(periods, every));
}

/* How many periods after the one that is due at `due` have begun by `now`. Requires: every > 0. */
static inline uint64_t tw__task_periods_since(uint64_t due, uint64_t every, uint64_t now)
{
    return now > due ? (now - due) / every : 0;
}

/* How many of `calls` calls, the first at `due`, are due by `to`. Requires: every > 0. */
static inline uint64_t tw__task_calls_by(uint64_t due, uint64_t every, uint64_t calls, uint64_t to)
{
    if (due > to)
        return 0;
    uint64_t more = (to - due) / every;
    return more < calls ? more + 1 : calls;
}

/* The missed periods of a call whose task gets another `every`: as many of the new ones as lie in the same
 * time. Example: 10 missed seconds are 2 periods of 4 seconds. `every` 0: the task repeats no more, and has
 * none. */
uint64_t tw__task_missed_periods_renewed(uint64_t missed_periods, uint64_t every, uint64_t new_every);

/* A task whose first attempt of a period is about to be made. */
struct tw__task_period {
    uint64_t due, next;
    uint64_t every; /* 0: it runs once */
    uint64_t max_late;
    enum tw_missed missed;
};

/* The turn of such a task: the periods that get no call of their own, and the one that gets it. */
struct tw__task_turn {
    uint64_t due;            /* of the call, or of the period that comes next */
    uint64_t dropped;        /* periods that are too late; 1 for a task that runs once */
    uint64_t skipped;        /* periods that `skip` passes over */
    uint64_t missed_periods; /* periods for which the call stands besides its own */
    bool calls;              /* false: no call now */
    bool ends;               /* no call, and no further period: the task leaves */
};

/* `missed` decides about a call after which `passed` further periods have begun: it moves the due time of the
 * call on, or lets the call stand for them. */
static inline void tw__task_make_up(struct tw__task_turn *turn, enum tw_missed missed, uint64_t passed,
                                    uint64_t every)
{
    if (missed == TW_MISSED_COALESCE)
        turn->missed_periods = passed;
    if (missed == TW_MISSED_SKIP && passed > 0) {
        turn->skipped = passed + 1;
        turn->due = tw__task_due_after(turn->due, turn->skipped, every);
    }
}

/* Decides at `now` about a task that is ready with attempt 0. First the periods that are too late are dropped,
 * then `missed` decides. Example: every 1000, max_late 500, due at 0, and now it is 2600. The periods 0, 1000
 * and 2000 are dropped, and there is no call until 3000. Requires: next <= now. */
struct tw__task_turn tw__task_turn(const struct tw__task_period *period, uint64_t now);

enum { TW__TASK_SUFFIX_MAX = 32 }; /* bytes of "@DUE-N" with the largest numbers, and more */

/* Writes the suffix of a dead period's id: "@due" or, if n > 0, "@due-n". Returns its size. */
size_t tw__task_suffix(uint64_t due, uint32_t n, char suffix[TW__TASK_SUFFIX_MAX]);

#endif
