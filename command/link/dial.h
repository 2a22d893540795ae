/* SPDX-License-Identifier: MIT
 *
 * Connecting to a host, whose addresses are tried one after the other, or to a Unix socket. Only the look-up of
 * the host's name waits.
 */
#ifndef COMMAND_DIAL_H
#define COMMAND_DIAL_H

#include "target.h"

#include <netdb.h>
#include <stdint.h>

struct dial {
    struct addrinfo *addresses, *next; /* next: to try when this one fails */
    int fd;                            /* -1: none */
    int error;                         /* errno of the last attempt */
    uint64_t since_ms;                 /* when this attempt began */
};

/* Starts to connect. Returns false on failure; `error` then says why. */
bool dial_begin(struct dial *dial, const struct url *url, char error[LINK_ERROR]);

/* Looks how far it is, and tries the next address if there is one, this one has failed, or has not answered for
 * a second. Returns 1: connected, 0: not yet, -1: no address answers, `error` says why. */
int dial_step(struct dial *dial, char error[LINK_ERROR]);

/* Closes the connection. */
void dial_end(struct dial *dial);

#endif
