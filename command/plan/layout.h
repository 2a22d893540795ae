/* SPDX-License-Identifier: MIT
 *
 * A geometry in numbers: for each level the delays that it takes, the ticks over which a slot is refiled, and
 * its memory.
 */
#ifndef COMMAND_LAYOUT_H
#define COMMAND_LAYOUT_H

#include <tickwheel/wheel.h>

struct layout_level {
    uint32_t slots;
    uint64_t span;  /* ticks per slot */
    uint64_t from;  /* the shortest delay that may be filed here */
    uint64_t to;    /* the longest delay; TW_NEVER: the end of time */
    uint64_t ahead; /* ticks from the start of a slot's refiling until the slot's first tick */
    uint64_t slack; /* ticks that the refiling of a slot is spread over; 0: it happens at once */
    size_t bytes;   /* memory that this level adds to the wheel; level 0 includes the head of the wheel */
};

struct layout {
    uint32_t levels;
    uint32_t used;  /* levels that a delay of at most `max` ticks may use: 0 to used - 1 */
    uint64_t turn;  /* ticks of a turn of the top level; 0: the top level reaches the end of time */
    uint64_t range; /* the longest delay that the wheel accepts */
    enum tw_overflow overflow;
    size_t bytes; /* of the whole wheel */
    struct layout_level level[TW_GEOMETRY_LEVELS_MAX];
};

/* Lays out a valid geometry for delays of up to `max` ticks. A growing geometry gets all levels that such
 * delays make it grow, at any position of its clock. */
void layout_make(struct layout *layout, const struct tw_geometry *geometry, uint64_t max);

#endif
