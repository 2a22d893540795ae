/* SPDX-License-Identifier: MIT */
#include "dial.h"

#include "clock.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PATIENCE_MS = 1000 }; /* for an address that has another one behind it */

static int fail(const struct dial *dial, char error[LINK_ERROR])
{
    snprintf(error, LINK_ERROR, "cannot connect: %s", strerror(dial->error));
    return -1;
}

static void hang_up(struct dial *dial)
{
    if (dial->fd >= 0)
        close(dial->fd);
    dial->fd = -1;
}

/* Starts to connect to one address. A child process does not inherit the socket. */
static bool start(struct dial *dial, int family, const struct sockaddr *address, socklen_t size)
{
    dial->since_ms = monotonic_ms();
    dial->fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (dial->fd >= 0 && (connect(dial->fd, address, size) == 0 || errno == EINPROGRESS || errno == EINTR))
        return true;
    dial->error = errno;
    hang_up(dial);
    return false;
}

static bool start_next(struct dial *dial)
{
    while (dial->next != NULL) {
        const struct addrinfo *one = dial->next;
        dial->next = one->ai_next;
        if (start(dial, one->ai_family, one->ai_addr, one->ai_addrlen))
            return true;
    }
    return false;
}

static bool start_unix(struct dial *dial, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path,
           strnlen(path, sizeof address.sun_path - 1)); /* url_parse() takes no longer one */
    return start(dial, AF_UNIX, (const struct sockaddr *)&address, sizeof address);
}

bool dial_begin(struct dial *dial, const struct url *url, char error[LINK_ERROR])
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    char port[12];
    *dial = (struct dial){.fd = -1};
    if (url->transport == URL_UNIX)
        return start_unix(dial, url->host) || (fail(dial, error), false);
    snprintf(port, sizeof port, "%d", url->port);
    int status = getaddrinfo(url->host, port, &hints, &dial->addresses);
    if (status != 0) {
        snprintf(error, LINK_ERROR, "cannot connect: %s",
                 status == EAI_SYSTEM ? strerror(errno) : gai_strerror(status));
        dial->addresses = NULL;
        return false;
    }
    dial->next = dial->addresses;
    if (start_next(dial))
        return true;
    fail(dial, error);
    dial_end(dial);
    return false;
}

static void set_options(int fd)
{
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* fails on a Unix socket, which needs neither */
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

int dial_step(struct dial *dial, char error[LINK_ERROR])
{
    struct pollfd waiting = {.fd = dial->fd, .events = POLLOUT};
    socklen_t size = sizeof dial->error;
    if (poll(&waiting, 1, 0) <= 0) {
        if (dial->next == NULL || monotonic_ms() - dial->since_ms < PATIENCE_MS)
            return 0;
        dial->error = ETIMEDOUT;
    } else if (getsockopt(dial->fd, SOL_SOCKET, SO_ERROR, &dial->error, &size) == 0 && dial->error == 0) {
        set_options(dial->fd);
        return 1;
    }
    hang_up(dial);
    return start_next(dial) ? 0 : fail(dial, error);
}

void dial_end(struct dial *dial)
{
    hang_up(dial);
    if (dial->addresses != NULL)
        freeaddrinfo(dial->addresses);
    dial->addresses = dial->next = NULL;
}
