/* SPDX-License-Identifier: MIT
 *
 * Finding the primary of a service: its sentinels are asked one after the other, in the order of the URL, until
 * one names it. Only the look-up of a host's name waits.
 */
#ifndef COMMAND_SENTINEL_H
#define COMMAND_SENTINEL_H

#include "stream.h"

#include <hiredis/hiredis.h>

struct sentinels {
    const struct link_target *target;
    int at; /* the sentinel that is asked */
    struct stream stream;
    uint64_t since_ms; /* when it was asked */
    char *out;         /* the question; its bytes from out_at on are to be sent */
    size_t out_at, out_size;
    int answers; /* that are to come */
    redisReader *reader;
    struct url place;     /* of the sentinel, and at last of the primary */
    char why[LINK_ERROR]; /* why the last sentinel could not help */
};

/* Begins to ask. Returns false on failure; `error` then says why. */
bool sentinels_begin(struct sentinels *sentinels, const struct link_target *target, char error[LINK_ERROR]);

/* Looks how far it is. A sentinel that does not answer for a second, or for its share of 2.4 s, is left
 * for the next one. Returns 1: `place` is that of the primary, 0: not yet, -1: no sentinel can help, `error`
 * says why. */
int sentinels_step(struct sentinels *sentinels, char error[LINK_ERROR]);

/* For poll(): the descriptor, and the events to wait for. */
int sentinels_fd(const struct sentinels *sentinels);
short sentinels_events(const struct sentinels *sentinels);

/* Closes the connection. Zeroed memory is closed. */
void sentinels_end(struct sentinels *sentinels);

#endif
