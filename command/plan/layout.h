/* SPDX-License-Identifier: MIT
 *
 * A geometry laid out: which delays each level takes, in how many ticks a slot of it is refiled, what it
 * weighs.
 */
#ifndef COMMAND_LAYOUT_H
#define COMMAND_LAYOUT_H

#include <tickwheel/wheel.h>

struct layout_level {
    uint32_t slots;
    uint64_t span;  /* ticks per slot */
    uint64_t from;  /* the shortest delay that may be filed here */
    uint64_t to;    /* the longest; TW_NEVER: the end of time */
    uint64_t ahead; /* ticks from the moment a slot starts to be refiled until its first tick */
    uint64_t slack; /* ticks that its refiling is spread over; 0: it is done at once */
    size_t bytes;   /* what the wheel grows by with this level; the lowest one's has the wheel's head in it */
};

struct layout {
    uint32_t levels;
    uint32_t used;  /* levels on which a delay of `max` ticks may be met: those from 0 to used - 1 */
    uint64_t turn;  /* ticks of a turn of the top; 0: it reaches the end of time */
    uint64_t range; /* the longest delay that is accepted */
    enum tw_overflow overflow;
    size_t bytes; /* of the whole wheel */
    struct layout_level level[TW_LEVELS_MAX];
};

/* Lays out a valid geometry for delays of up to `max` ticks. A growing one is given the levels that it will
 * grow for them, wherever its clock stands. */
void layout_make(struct layout *layout, const struct tw_geometry *geometry, uint64_t max);

#endif
