/* SPDX-License-Identifier: MIT */
#include "peer.h"

#include "tests/support/fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECTIONS = '\x1D', ANSWERS = '\x1E', PEERS = 16, ANSWER_MAX = 1 << 15 };

struct part {
    const uint8_t *at;
    size_t left;
};

struct peer {
    int fd; /* -1: none */
    struct part answers;
    bool ended;
};

static struct {
    struct part input; /* of the connections to come */
    struct peer peer[PEERS];
    size_t count;
    bool at_once;
} peers;

int __wrap_connect(int fd, const struct sockaddr *address, socklen_t size);

/* Takes the bytes up to the next mark, or all. */
static struct part take(struct part *from, int mark)
{
    const uint8_t *end = from->left > 0 ? memchr(from->at, mark, from->left) : NULL;
    struct part taken = {from->at, end != NULL ? (size_t)(end - from->at) : from->left};
    size_t used = taken.left + (end != NULL);
    if (used > 0)
        from->at += used;
    from->left -= used;
    return taken;
}

/* Gives the next answer, cut off at a size that the socket takes at once. Behind the last one, closes. */
static void give(struct peer *peer)
{
    struct part answer = take(&peer->answers, ANSWERS);
    size_t size = answer.left < ANSWER_MAX ? answer.left : ANSWER_MAX;
    if (size > 0)
        (void)!send(peer->fd, answer.at, size, MSG_NOSIGNAL);
    if (peer->answers.left > 0)
        return;
    shutdown(peer->fd, SHUT_WR);
    peer->ended = true;
}

/* A process has few connections at a time: the oldest peer is closed if there is no room for another. */
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t size)
{
    int ends[2], flags = fcntl(fd, F_GETFL);
    (void)address;
    (void)size;
    struct peer *peer = &peers.peer[peers.count++ % PEERS];
    fuzz_require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "there is no pair of sockets");
    fuzz_require(dup3(ends[0], fd, O_CLOEXEC) == fd && fcntl(fd, F_SETFL, flags) == 0, "the socket is not set");
    fuzz_require(fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0, "the peer is not set");
    close(ends[0]);
    if (peer->fd >= 0)
        close(peer->fd);
    *peer = (struct peer){.fd = ends[1], .answers = take(&peers.input, CONNECTIONS)};
    while (peers.at_once && !peer->ended)
        give(peer);
    return 0;
}

void peers_begin(const uint8_t *data, size_t size, bool at_once)
{
    peers.input = (struct part){data, size};
    peers.count = 0;
    peers.at_once = at_once;
    for (int i = 0; i < PEERS; i++)
        peers.peer[i].fd = -1;
}

void peers_turn(void)
{
    char asked[4096];
    for (int i = 0; i < PEERS; i++) {
        struct peer *peer = &peers.peer[i];
        bool is_asked = false;
        while (peer->fd >= 0 && recv(peer->fd, asked, sizeof asked, 0) > 0)
            is_asked = true;
        if (is_asked && !peer->ended)
            give(peer);
    }
}

void peers_end(void)
{
    for (int i = 0; i < PEERS; i++)
        if (peers.peer[i].fd >= 0)
            close(peers.peer[i].fd);
}
