/* SPDX-License-Identifier: MIT */
#include "stream.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

bool stream_begin(struct stream *stream, const struct link_target *target, const struct url *place,
                  char error[LINK_ERROR])
{
    *stream = (struct stream){.dial = {.fd = -1}, .read_wants = POLLIN, .write_wants = POLLOUT};
    if (target->url.tls && (stream->tls = tls_new(target, place->host, error)) == NULL)
        return false;
    return dial_begin(&stream->dial, place, error);
}

/* Turns the result of a call that has moved no byte into 0: wait, or -1: the stream is broken. */
static int stopped(struct stream *stream, int result, int number, char error[LINK_ERROR])
{
    const char *in = stream->open ? "" : " during the TLS handshake: has this port TLS?";
    if (result == TLS_WAITS)
        return 0;
    stream->closed = result == TLS_CLOSED;
    if (stream->closed)
        snprintf(error, LINK_ERROR, "%s%s", number == 0 ? "Server closed the connection" : strerror(number),
                 in);
    return -1;
}

int stream_step(struct stream *stream, char error[LINK_ERROR])
{
    int found = stream->connected ? 1 : dial_step(&stream->dial, error);
    stream->connected = found > 0;
    if (stream->connected && !stream->open && stream->tls != NULL) {
        found = tls_shake(stream->tls, stream->dial.fd, &stream->read_wants, error);
        if (found <= 0)
            return stopped(stream, found, 0, error);
        stream->read_wants = POLLIN;
    }
    stream->open = found > 0;
    return found;
}

/* The result of recv() or send() that has moved no byte, as tls.h has it. */
static int result_of(ssize_t moved, int number)
{
    if (moved < 0 && (number == EAGAIN || number == EWOULDBLOCK || number == EINTR))
        return TLS_WAITS;
    return moved == 0 || number == ECONNRESET || number == EPIPE ? TLS_CLOSED : TLS_FAILED;
}

int stream_read(struct stream *stream, char *bytes, int size, char error[LINK_ERROR])
{
    stream->read_wants = POLLIN;
    if (stream->tls != NULL) {
        int result = tls_read(stream->tls, bytes, size, &stream->read_wants, error);
        return result > 0 ? result : stopped(stream, result, 0, error);
    }
    ssize_t moved = recv(stream->dial.fd, bytes, (size_t)size, 0);
    int number = moved < 0 ? errno : 0;
    if (moved > 0)
        return (int)moved;
    snprintf(error, LINK_ERROR, "%s", strerror(number));
    return stopped(stream, result_of(moved, number), number, error);
}

int stream_write(struct stream *stream, const char *bytes, int size)
{
    char error[LINK_ERROR];
    int result;
    stream->write_wants = POLLOUT;
    if (stream->mute)
        return 0;
    if (stream->tls != NULL) {
        result = tls_write(stream->tls, bytes, size, &stream->write_wants, error);
    } else {
        ssize_t moved = send(stream->dial.fd, bytes, (size_t)size, MSG_NOSIGNAL);
        result = moved > 0 ? (int)moved : result_of(moved, errno);
    }
    stream->mute = result < 0;
    return result > 0 ? result : 0;
}

short stream_events(const struct stream *stream, bool writes)
{
    if (!stream->connected)
        return POLLOUT;
    return (short)(stream->read_wants | (writes && stream->open && !stream->mute ? stream->write_wants : 0));
}

void stream_end(struct stream *stream)
{
    tls_free(stream->tls);
    stream->tls = NULL;
    dial_end(&stream->dial);
}
