/* SPDX-License-Identifier: MIT
 *
 * The error replies of a server, by what a worker does about them.
 */
#ifndef COMMAND_TROUBLE_H
#define COMMAND_TROUBLE_H

#include "link/target.h"

#include <stdbool.h>

enum trouble {
    TROUBLE_PASSES,    /* it passes by itself: the same command, a while later */
    TROUBLE_ELSEWHERE, /* another server may have this address now: a new connection */
    TROUBLE_MOVED,     /* another node of the cluster has the queue: MOVED, or ASK while its slot moves */
    TROUBLE_STAYS      /* somebody has to mend it: the worker ends */
};

enum trouble trouble_of(const char *reply);

/* Returns whether the reply is ASK: the slot is on its way, and other keys of it may still be here. */
bool trouble_is_ask(const char *reply);

/* Makes the node that MOVED or ASK names the target. Returns false if the reply names none. */
bool trouble_follow(const char *reply, struct link_target *target);

/* Writes an error that stays as a text for people. */
void trouble_explain(const struct link_target *target, const char *command, const char *reply,
                     char error[LINK_ERROR]);

#endif
