/* SPDX-License-Identifier: MIT
 *
 * A task of a server that this worker has taken: a copy of its row in the reply of TW.TAKE, and the calls about
 * it that are under way.
 */
#ifndef COMMAND_LEASE_H
#define COMMAND_LEASE_H

#include "source.h"

#include <hiredis/hiredis.h>

enum verb { VERB_TOUCH, VERB_ACK, VERB_NACK, VERB_BACK, VERB_NOT_YET, VERB_UNBLOCK };

/* A call that is to be made, or was made and has no answer yet. */
struct call {
    struct call *next;
    enum verb verb;
    struct lease *lease; /* NULL: VERB_UNBLOCK */
    bool listed, sent;
    unsigned times; /* how often it was sent */
};

struct lease {
    struct taken taken; /* the first member */
    char *error;        /* for VERB_NACK; NULL: none */
    struct call touch, answer;
    struct tw_bytes value[]; /* the bytes of all members follow behind the last value */
};

/* Makes a lease of a row. `queue`: the argument that the row names, which outlives the lease.
 * Returns: NULL if there is no memory. */
struct lease *lease_new(const redisReply *row, const char *queue);
void lease_free(struct lease *lease);

/* Returns whether a reply is a row of TW.TAKE: queue, id, token, due, attempt, values, missed periods. */
bool lease_is_row(const redisReply *row);

#endif
