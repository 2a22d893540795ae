/* SPDX-License-Identifier: MIT
 *
 * Plays a trace through a wheel in virtual time. Between two operations the clock jumps from one tick with
 * work to the next tick with work. So each timer can fire exactly on its tick, and ticks without work cost
 * nothing.
 */
#ifndef COMMAND_PLAYER_H
#define COMMAND_PLAYER_H

#include "record.h"

#include <tickwheel/wheel.h>

/* An object with its timer inside, as a user of the library has. */
struct object {
    struct tw_timer timer;
    uint64_t firings;
};

/* Hooks that watch the player. */
struct observer {
    void (*fired)(void *arg, uint32_t id, uint64_t tick);
    void (*polled)(void *arg, uint64_t tick); /* no more timer is due at this tick */
    void (*applied)(void *arg, const struct record *record);
    void *arg;
};

struct player {
    const struct trace *trace;
    const struct observer *observer; /* NULL: no hooks, for timing */
    struct tw_wheel *wheel;
    struct object *objects; /* one object for each id */
    size_t next;            /* the record to play next */
    uint64_t adds, moves, cancels, stale, fired;
};

/* Makes the objects and a wheel of this shape, whose clock is at the trace's first tick. Requires: the remarks
 * of the trace have been dropped.
 * Returns: 0 or TW_ENOMEM. */
int player_start(struct player *player, const struct trace *trace, const struct tw_geometry *geometry);

/* Plays the records up to and including tick `tick`, and then moves the clock to that tick.
 * Returns: 0, or the error with which the wheel refused a timer; then `next` is the refused record. */
int player_play_to(struct player *player, uint64_t tick);

/* Plays all records, and then moves the clock until every pending timer has fired. Returns: as
 * player_play_to(). */
int player_play(struct player *player);

/* Prints the error of the refused record `next`: its line, and the range of the wheel. */
void player_complain(const struct player *player, int error);

/* Makes a new empty wheel at the trace's first tick for another pass. The objects are kept.
 * Returns: 0 or TW_ENOMEM. */
int player_rewind(struct player *player, const struct tw_geometry *geometry);

/* Frees the objects and the wheel. */
void player_stop(struct player *player);

#endif
