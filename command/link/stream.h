/* SPDX-License-Identifier: MIT
 *
 * The bytes between us and one server: over TCP, TLS or a Unix socket, without waiting. TLS is no other case
 * than a plain socket for the code above.
 */
#ifndef COMMAND_STREAM_H
#define COMMAND_STREAM_H

#include "dial.h"
#include "tls.h"

struct stream {
    struct dial dial;
    struct tls *tls;               /* NULL: plain */
    bool connected, open;          /* connected: the socket is; open: the handshake of TLS is done too */
    bool mute;                     /* a write has failed; the next read tells why */
    bool closed;                   /* the server, or the net, has closed it */
    short read_wants, write_wants; /* events of poll(); TLS may want to write in order to read */
};

/* Starts to connect to `place`, over TLS if the target's URL wants that. Returns false on failure; `error` then
 * says why. */
bool stream_begin(struct stream *stream, const struct link_target *target, const struct url *place,
                  char error[LINK_ERROR]);

/* Goes on. Returns 1: it is open, 0: not yet, -1: it cannot be opened, `error` says why. */
int stream_step(struct stream *stream, char error[LINK_ERROR]);

/* Reads. Returns the number of bytes; 0: none are here, -1: the stream is broken, `error` says why. */
int stream_read(struct stream *stream, char *bytes, int size, char error[LINK_ERROR]);

/* Writes. Returns the number of bytes; 0: none can be written now, or any more. A server that refuses us says
 * why before it closes the connection, so a write that fails leaves the error to the next read. */
int stream_write(struct stream *stream, const char *bytes, int size);

/* The events of poll() to wait for. `writes`: there are bytes to write. */
short stream_events(const struct stream *stream, bool writes);

/* Closes it. Requires: it was begun, also without success, or is all zero but for dial.fd, which is -1. */
void stream_end(struct stream *stream);

#endif
