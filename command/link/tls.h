/* SPDX-License-Identifier: MIT
 *
 * TLS by OpenSSL over a connected socket, without waiting. hiredis has a library for TLS only from 1.0 on, and
 * Debian 12 has an older one, so hiredis sees no socket here: it only parses replies and formats commands.
 *
 * The server must show a certificate of the system's authorities, or of --cacert, for the host's name or
 * address.
 */
#ifndef COMMAND_TLS_H
#define COMMAND_TLS_H

#include "target.h"

struct tls;

/* The results of a step, if no byte was moved. */
enum { TLS_WAITS = 0, TLS_CLOSED = -1, TLS_FAILED = -2 };

/* Reads the files of the certificates; `host` must show one. Returns NULL on failure; `error` says why. */
struct tls *tls_new(const struct link_target *target, const char *host, char error[LINK_ERROR]);

/* Frees it. If the connection is still whole, tells the server that it ends. Does not close the socket. */
void tls_free(struct tls *tls);

/* Goes on with the handshake over `fd`. Returns 1 when it is done, or a result from above. */
int tls_shake(struct tls *tls, int fd, short *wants, char error[LINK_ERROR]);

/* Move bytes. Return their number, which is above 0, or a result from above. With TLS_WAITS, `wants` gets the
 * event of poll() after which to try again; with TLS_FAILED, `error` says why. */
int tls_read(struct tls *tls, void *bytes, int size, short *wants, char error[LINK_ERROR]);
int tls_write(struct tls *tls, const void *bytes, int size, short *wants, char error[LINK_ERROR]);

#endif
