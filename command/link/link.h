/* SPDX-License-Identifier: MIT
 *
 * A connection to a Redis or Valkey server: over TCP, TLS or a Unix socket, with the replies of hiredis. Use it
 * in one of two ways.
 *
 * To wait: link_open(), link_send(), link_receive().
 *
 * In a poll loop, which never waits: link_begin(); then poll link_fd() for link_events(), and after each poll
 * call link_pump() until it returns no reply any more. The descriptor and the events may change with each call
 * of link_pump() and link_send(), so ask for both before each poll. Until link_is_open(), let no poll wait for
 * longer than a second or so: link_pump() then turns to another address of the host if this one is silent.
 *
 * Every `error` gets a text for people, in one line, without the address and without a password.
 * A link belongs to one thread at a time. The process must ignore SIGPIPE: a write to a closed connection then
 * returns an error. A child process does not inherit the connection.
 */
#ifndef COMMAND_LINK_H
#define COMMAND_LINK_H

#include "target.h"

#include <hiredis/hiredis.h>

#include <stdbool.h>
#include <stddef.h>

enum {
    LINK_REPLY_MAX = 64 << 20
}; /* bytes, unless the target says otherwise; a longer reply breaks the link */

struct link;

/* Begins to connect: looks the host up (which may wait for a name server), starts the first connection, and
 * files AUTH and SELECT, whose replies link_pump() takes. Returns NULL on failure. The target must outlive the
 * link. */
struct link *link_begin(const struct link_target *target, char error[LINK_ERROR]);

/* Begins, and waits at most `patience_ms` until link_is_open(). Returns NULL on failure. */
struct link *link_open(const struct link_target *target, int patience_ms, char error[LINK_ERROR]);

/* Closes the connection and frees the link. NULL does nothing. */
void link_close(struct link *link);

/* Returns whether the server is connected and has logged us in. */
bool link_is_open(const struct link *link);

/* Returns whether the server, or the net, has closed the connection. A command without a reply may then have
 * been executed or not. */
bool link_was_closed(const struct link *link);

/* Returns whether the server has refused the user, the password or the database: another attempt would end in
 * the same way. */
bool link_was_refused(const struct link *link);

/* Puts a command into the buffer of output, from which link_pump() and link_receive() send it once the link is
 * open. `sizes` may be NULL if all words are strings. Replies come in the order of the commands. */
void link_send(struct link *link, int count, const char **words, const size_t *sizes);

/* Sends the buffer, and waits at most `patience_ms` for the next whole reply; parts of it that come in slowly
 * do not extend the wait. Returns the reply, which the caller frees with freeReplyObject(), or NULL: then the
 * link is broken and can only be closed. An error reply of the server is a reply. */
redisReply *link_receive(struct link *link, int patience_ms, char error[LINK_ERROR]);

/* For poll(): the descriptor, and the events to wait for. */
int link_fd(const struct link *link);
short link_events(const struct link *link);

/* Moves the bytes that can be moved without waiting. Returns 1 with a reply, which the caller frees; 0: there
 * is none yet; -1: the link is broken, and `error` says why. A broken link can only be closed. */
int link_pump(struct link *link, redisReply **reply, char error[LINK_ERROR]);

/* Writes an error reply of the server to `command` as a text for people, who then know how to mend it. */
void link_explain(const struct link_target *target, const char *command, const char *reply,
                  char error[LINK_ERROR]);

#endif
