/* SPDX-License-Identifier: MIT
 *
 * Plays a trace through a wheel in virtual time. Between two operations the clock goes from one tick on which
 * the wheel has work to the next, so every timer has the chance to fire on its very tick, and no tick without
 * work costs anything.
 */
#ifndef COMMAND_PLAYER_H
#define COMMAND_PLAYER_H

#include "trace.h"

#include <tickwheel/wheel.h>

/* What a user of the library would have: an object with its timer inside. */
struct object {
    struct tw_timer timer;
    uint64_t firings;
};

/* Somebody who looks on; any of the calls may be NULL. */
struct observer {
    void (*fired)(void *arg, uint32_t id, uint64_t tick);
    void (*polled)(void *arg, uint64_t tick); /* nothing more is due at this tick */
    void (*applied)(void *arg, const struct record *record, bool was_pending);
    void *arg;
};

struct player {
    const struct trace *trace;
    const struct observer *observer; /* NULL: nobody, for timing */
    struct tw_wheel *wheel;
    struct object *objects; /* one for each id */
    size_t next;            /* the record to play next */
    uint64_t adds, moves, cancels, stale, fired;
};

/* Makes the objects and a wheel of this shape that stands on the trace's first tick.
 * Returns: 0 or TW_ENOMEM. */
int player_start(struct player *player, const struct trace *trace, const struct tw_geometry *geometry);

/* Plays the records up to number `end`, not included.
 * Returns: 0, or the wheel's refusal: then `next` is the refused record. */
int player_play(struct player *player, size_t end);

/* Plays the records up to tick `tick`, included, and then lets the time pass up to there. Returns: as above. */
int player_play_to(struct player *player, uint64_t tick);

/* Lets the time pass until every pending timer has fired, or for `polls` ticks with work if that comes first.
 * Returns: whether all is done. */
bool player_finish(struct player *player, uint64_t polls);

/* Complains about the refusal of record `next`: where it stands and what the wheel could take. */
void player_complain(const struct player *player, int error);

/* Goes back to an empty wheel at the trace's first tick, keeping the objects, for another pass.
 * Returns: 0 or TW_ENOMEM. */
int player_rewind(struct player *player, const struct tw_geometry *geometry);

/* Frees what player_start() made. */
void player_stop(struct player *player);

#endif
