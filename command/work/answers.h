/* SPDX-License-Identifier: MIT
 *
 * The calls of a worker about the tasks that it has: TW.TOUCH, TW.ACK and TW.NACK, over a connection of their
 * own, as the other one waits in TW.TAKE. A call without an answer is made again over the next connection: the
 * token makes a repetition harmless.
 */
#ifndef COMMAND_ANSWERS_H
#define COMMAND_ANSWERS_H

#include "lease.h"
#include "wire.h"

struct answers_events {
    void (*unblocked)(void *arg, bool good); /* CLIENT UNBLOCK was answered; good: it has had an effect */
    /* Another node has this queue. Returns whether it has all of them: it has called answers_restart() then. */
    bool (*moved)(void *arg, const char *reply);
    void (*broken)(void *arg, const char *why); /* the connection; it is made anew */
    void (*failed)(void *arg, const char *why); /* an error that stays */
    void *arg;
    const struct source_events *source; /* is told which tasks are settled, and which are not yours */
};

struct answers {
    struct wire wire;
    struct answers_events events;
    struct call *first, **end;
    size_t in_flight;
    char lease_ms[24], back_ms[24], client[24];
    struct call unblock;
    uint64_t wait_ms;
    struct timer hold; /* while it waits, nothing is sent */
};

void answers_init(struct answers *answers, const struct link_target *target, struct timers *timers,
                  const struct work_options *options, const struct answers_events *events);

/* Extends the lease, unless an extension is under way. */
void answers_touch(struct answers *answers, struct lease *lease);

/* Reports the result of a task, and frees the lease when that is settled. `error` may be NULL. */
void answers_give(struct answers *answers, struct lease *lease, enum result result, const char *error);

/* Ends the wait of a client in TW.TAKE, which then replies nil. */
void answers_unblock(struct answers *answers, long long client);

/* Returns whether no result is under way. */
bool answers_empty(const struct answers *answers);

/* Makes a new connection, for example to another target. */
void answers_restart(struct answers *answers, const char *why);

/* Sends what there is to send, and takes the answers that have come. */
void answers_turn(struct answers *answers);

/* Ends the connection, and frees the leases whose results are not settled. */
void answers_fini(struct answers *answers);

#endif
