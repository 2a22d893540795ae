/* SPDX-License-Identifier: MIT
 *
 * Clocks and connections, for the clients of the benchmarks of the module.
 */
#ifndef BENCH_REDIS_NET_H
#define BENCH_REDIS_NET_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { US_PER_MS = 1000, US_PER_S = 1000000, NS_PER_US = 1000 };

static void fail(const char *what)
{
    fprintf(stderr, "client: %s: %s\n", what, errno != 0 ? strerror(errno) : "wrong");
    exit(1);
}

static uint64_t us_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * US_PER_S + (uint64_t)now.tv_nsec / NS_PER_US;
}

static int dial(uint16_t port)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) != 0)
        fail("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static void write_all(int fd, const char *data, size_t length)
{
    while (length > 0) {
        ssize_t n = write(fd, data, length);
        if (n <= 0)
            fail("write");
        data += n;
        length -= (size_t)n;
    }
}

#endif
