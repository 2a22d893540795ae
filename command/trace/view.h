/* SPDX-License-Identifier: MIT
 *
 * A wheel at one moment, in numbers, ready to be drawn. All numbers are read from the wheel through its
 * public calls, except the windows. These follow from the shape and the tick, by the rule in wheel.h.
 */
#ifndef COMMAND_VIEW_H
#define COMMAND_VIEW_H

#include <tickwheel/wheel.h>

#include <stdbool.h>

struct view_ring {
    struct tw_level_info info;
    uint64_t *counts; /* timers in each slot */
    uint64_t last;    /* last tick of the level's window; timers due later are filed on a higher level */
    uint64_t covered; /* last tick of the window one level down; on level 0, the present tick */
    bool bounded;     /* `last` is known; false for the top of a growing wheel, which has no level above */
    uint32_t refiled; /* the slot being refiled, if info.draining is not 0 */
};

struct view {
    uint64_t now, pending;
    uint64_t bound, exact; /* the next tick with work, and the earliest deadline */
    uint32_t levels;       /* number of levels of the wheel */
    uint32_t rings;        /* levels to draw: up to the highest level with timers, at least one */
    uint64_t most;         /* timers in the fullest slot, or being refiled from a slot */
    enum tw_overflow overflow;
    struct view_ring ring[TW_GEOMETRY_LEVELS_MAX];
};

/* Takes the view. Requires: no timer is due. Returns: 0, or -1 if there is no memory. */
int view_take(struct view *view, struct tw_wheel *wheel, enum tw_overflow overflow);

/* The ring on which a timer for this tick would be filed; at most the last ring that is drawn. */
uint32_t view_ring_of(const struct view *view, uint64_t tick);

void view_free(struct view *view);

#endif
