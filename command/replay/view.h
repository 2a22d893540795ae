/* SPDX-License-Identifier: MIT
 *
 * A wheel at one moment, in numbers, ready to be drawn. Everything is read from the wheel through its public
 * calls, apart from the windows: those follow from the shape and the tick by the rule that wheel.h states.
 */
#ifndef COMMAND_VIEW_H
#define COMMAND_VIEW_H

#include <tickwheel/wheel.h>

#include <stdbool.h>

struct view_ring {
    struct tw_level_info info;
    uint64_t *counts; /* timers in each slot */
    uint64_t last;    /* the last tick of the level's window: what is due later is filed further up */
    uint64_t covered; /* the last tick of the window one level down; now on level 0 */
    bool bounded;     /* `last` is known: a growing wheel's top has its window from a level not there yet */
    uint32_t refiled; /* the slot being refiled, if info.draining is not 0 */
};

struct view {
    uint64_t now, pending;
    uint64_t bound, exact; /* the next tick with work, and the earliest deadline */
    uint32_t levels;       /* of the wheel */
    uint32_t rings;        /* worth drawing: up to the highest one with timers, at least one */
    uint64_t most;         /* timers in the fullest slot, or being refiled from one */
    enum tw_overflow overflow;
    bool skewed; /* most slots hold far fewer than that */
    struct view_ring ring[TW_LEVELS_MAX];
};

/* Takes the view. Nothing may be due. Returns: 0, or -1 when there is no memory. */
int view_take(struct view *view, struct tw_wheel *wheel, enum tw_overflow overflow);

/* The ring on which a timer for this tick would be filed, at most the last that is drawn. */
uint32_t view_ring_of(const struct view *view, uint64_t tick);

/* Timers in all levels of the view: what tw_wheel_count() says, or something is wrong. */
uint64_t view_total(const struct view *view);

void view_free(struct view *view);

#endif
