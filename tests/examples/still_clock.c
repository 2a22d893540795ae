/* SPDX-License-Identifier: MIT
 *
 * A clock that stands still until the test moves it: linked into the echo server in place of the C library's
 * functions. STILL_CLOCK names two descriptors, such as "3,4": the first holds `struct page`, which the test
 * reads and writes. The test moves the clock, adds 1 to `rung`, and writes a byte to the second descriptor. The
 * server sleeps in epoll_wait() until it has an event, or until the clock has moved far enough. When it falls
 * asleep, it notes in `asleep` which `rung` it has seen.
 */
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { NS_PER_S = 1000000000, NS_PER_MS = 1000000 };

struct page {
    volatile int64_t now_ns, recv_ns; /* recv_ns is the time that each recv() takes */
    volatile uint64_t rung, asleep;
    volatile uint64_t waits, recvs; /* the calls of epoll_wait(), and of recv() that brought bytes */
    volatile uint64_t stops;        /* the next recv() that brings bytes stops the process, as SIGSTOP does */
};

static struct page *page;
static int bell;

static void map_page(void) __attribute__((constructor));

static void map_page(void)
{
    const char *names = getenv("STILL_CLOCK");
    int file;
    if (names == NULL || sscanf(names, "%d,%d", &file, &bell) != 2)
        abort();
    page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (page == MAP_FAILED)
        abort();
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    if (clock != CLOCK_MONOTONIC || page == NULL)
        return (int)syscall(SYS_clock_gettime, clock, now);
    now->tv_sec = page->now_ns / NS_PER_S;
    now->tv_nsec = page->now_ns % NS_PER_S;
    return 0;
}

ssize_t recv(int fd, void *buffer, size_t size, int flags)
{
    ssize_t got = recvfrom(fd, buffer, size, flags, NULL, NULL);
    if (flags == 0 && got > 0) {
        page->now_ns += page->recv_ns;
        page->recvs++;
        if (page->stops != 0) {
            page->stops = 0;
            raise(SIGSTOP);
        }
    }
    return got;
}

int epoll_wait(int fd, struct epoll_event *events, int room, int timeout_ms)
{
    int64_t end_ns = timeout_ms < 0 ? INT64_MAX : page->now_ns + (int64_t)timeout_ms * NS_PER_MS;
    page->waits++;
    for (;;) {
        struct pollfd either[] = {{.fd = fd, .events = POLLIN}, {.fd = bell, .events = POLLIN}};
        char byte;
        uint64_t rung = page->rung;
        int n = epoll_pwait(fd, events, room, 0, NULL);
        if (n != 0 || page->now_ns >= end_ns)
            return n;
        page->asleep = rung;
        poll(either, 2, -1);
        if (either[1].revents != 0 && read(bell, &byte, 1) != 1)
            abort();
    }
}
