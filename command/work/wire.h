/* SPDX-License-Identifier: MIT
 *
 * A connection to the server that lasts: when its link breaks, it makes a new one, after a wait that doubles
 * from 100 ms to 5 s or to wait_max_ms, more or less a quarter of it by chance.
 */
#ifndef COMMAND_WIRE_H
#define COMMAND_WIRE_H

#include "link/link.h"
#include "timers.h"

#include <poll.h>

enum {
    WIRE_PATIENCE_MS = 5000, /* for a connection, or for an answer */
    WIRE_WAIT_MAX_MS = 5000  /* the longest wait before it connects again */
};

struct wire_events {
    void (*opened)(void *arg);                   /* it may send from now on; may be NULL */
    void (*reply)(void *arg, redisReply *reply); /* an answer, valid during the call */
    void (*broken)(void *arg, const char *why);  /* answers that have not come will not come; it tries again */
    void (*refused)(void *arg, const char *why); /* the server has refused the user; it does not try again */
    void *arg;
};

struct wire {
    const struct link_target *target;
    struct timers *timers;
    struct wire_events events;
    struct link *link; /* NULL: none */
    bool open, closed; /* closed: for good */
    bool asks;         /* the next reply is that of ASKING */
    uint64_t wait_ms;  /* before the attempt after the next */
    uint64_t wait_max_ms;
    struct timer again, patience, look;
};

/* Makes a wire, and begins to connect with the next wire_turn(). `target` must outlive it. */
void wire_init(struct wire *wire, const struct link_target *target, struct timers *timers,
               const struct wire_events *events);

/* Returns how long to wait before an attempt after one that has failed, and doubles *wait_ms for the next one,
 * up to max_ms. *wait_ms is 0 before the first one. */
uint64_t wire_backoff_ms(uint64_t *wait_ms, uint64_t max_ms);

/* Sends a command, behind ASKING if the target wants that. Requires: the wire is open. */
void wire_send(struct wire *wire, int count, const char **words, const size_t *sizes);

/* An answer is due within `ms`, or the link is broken; 0: none is due. */
void wire_expect(struct wire *wire, uint64_t ms);

/* The server does what it is asked for: the next wait is the shortest again. A connection alone does not show
 * that, as a replica or a server that loads its data accepts it too. */
void wire_praise(struct wire *wire);

/* Breaks the link, and makes a new one as after an error. */
void wire_break(struct wire *wire, const char *why);

/* Adds the descriptor to watch, if there is one. Returns the number of descriptors. */
size_t wire_watch(const struct wire *wire, struct pollfd *fds);

/* Moves bytes, and tells the events. */
void wire_turn(struct wire *wire);

/* Ends the link for good. */
void wire_close(struct wire *wire);

#endif
