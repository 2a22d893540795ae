/* SPDX-License-Identifier: MIT
 *
 * The server that a link goes to, and the proof that the right one answers.
 */
#ifndef COMMAND_TARGET_H
#define COMMAND_TARGET_H

#include "url.h"

#include <stddef.h>

enum { LINK_ERROR = 480 }; /* bytes of an error text for people, with its end */

/* The options of a command fill it (link_options.h). */
struct link_target {
    struct url url;
    const char *cacert;            /* for TLS: file of the authorities; NULL: those of the system */
    const char *cert, *key;        /* for TLS: files of our own certificate and its key; NULL: none */
    const char *password_variable; /* for messages: the variable that may hold the password */
    const char *sentinel_password; /* of the sentinels of a URL_SENTINEL; NULL: none */
    bool asking;                   /* of a node that does not own its slot yet: ASKING precedes commands */
    size_t reply_max;              /* bytes of the longest reply; 0: LINK_REPLY_MAX */
};

#endif
