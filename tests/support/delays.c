/* SPDX-License-Identifier: MIT
 *
 * For LD_PRELOAD: each thread of a program is late at random, as on a busy machine. A test that passes only
 * because one thread is quicker than another then fails. `make stress` runs tests with it.
 *
 * In the environment: TICKWHEEL_DELAYED names a file that gets a line with the number of late calls of each
 * program that ends. TICKWHEEL_DELAYS=SEED[,SHARE[,MOST_MS]]. Of the calls below, one in SHARE (16) is late by
 * up to MOST_MS (60) milliseconds, before or after it. Each late call makes the next ones rarer, so that a
 * program that makes very many calls comes to an end. ctest itself is left alone.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint64_t seed = 1, share = 16, most_ms = 60;
static int quiet;
static _Atomic uint64_t threads;
static _Atomic uint64_t delayed; /* calls */
static _Thread_local uint64_t state;
static _Thread_local pid_t owner; /* of the state: a child of fork() draws numbers of its own */

__attribute__((constructor)) static void read_settings(void)
{
    const char *text = getenv("TICKWHEEL_DELAYS");
    uint64_t *setting[] = {&seed, &share, &most_ms};
    for (int i = 0; i < 3 && text != NULL; i++) {
        char *end;
        *setting[i] = strtoull(text, &end, 10);
        text = *end == ',' ? end + 1 : NULL;
    }
    quiet = share == 0 || strcmp(program_invocation_short_name, "ctest") == 0;
}

__attribute__((destructor)) static void tell_delayed(void)
{
    const char *path = getenv("TICKWHEEL_DELAYED");
    int file = quiet || path == NULL ? -1 : open(path, O_WRONLY | O_APPEND | O_CREAT, 0666);
    if (file >= 0) {
        dprintf(file, "%llu %s\n", (unsigned long long)atomic_load(&delayed), program_invocation_short_name);
        close(file);
    }
}

/* A number below n, another in each thread and process (splitmix64, by Sebastiano Vigna). */
static uint64_t below(uint64_t n)
{
    if (owner != getpid()) {
        owner = getpid();
        state = seed * 1000003 + (uint64_t)getpid() * 7919 + atomic_fetch_add(&threads, 1);
    }
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (z ^ z >> 31) % n;
}

/* Half of the delays come before a call and half after it. Keeps errno. */
static void perhaps_late(void)
{
    int error = errno;
    if (!quiet && below(2 * (share + atomic_load(&delayed))) == 0) {
        uint64_t us = below(most_ms * 1000 + 1);
        struct timespec delay = {(time_t)(us / 1000000), (long)(us % 1000000) * 1000};
        syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &delay, NULL);
        atomic_fetch_add(&delayed, 1);
    }
    errno = error;
}

/* The function behind ours. Condition variables have an old version too, for programs of before 2003. */
static void *next(const char *name)
{
    void *found = strncmp(name, "pthread_cond_", 13) == 0 ? dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2") : NULL;
    return found != NULL ? found : dlsym(RTLD_NEXT, name);
}

#define LATE(type, name, parameters, arguments)                                                                \
    type name parameters                                                                                       \
    {                                                                                                          \
        static _Atomic(void *) kept;                                                                           \
        void *function = atomic_load(&kept);                                                                   \
        type(*call) parameters;                                                                                \
        if (function == NULL)                                                                                  \
            atomic_store(&kept, function = next(#name));                                                       \
        memcpy(&call, &function, sizeof call);                                                                 \
        perhaps_late();                                                                                        \
        type result = call arguments;                                                                          \
        perhaps_late();                                                                                        \
        return result;                                                                                         \
    }

LATE(int, sem_wait, (sem_t * sem), (sem))
LATE(int, sem_trywait, (sem_t * sem), (sem))
LATE(int, sem_timedwait, (sem_t * sem, const struct timespec *end), (sem, end))
LATE(int, sem_post, (sem_t * sem), (sem))
LATE(int, pthread_cond_wait, (pthread_cond_t * cond, pthread_mutex_t *lock), (cond, lock))
LATE(int, pthread_cond_timedwait, (pthread_cond_t * cond, pthread_mutex_t *lock, const struct timespec *end),
     (cond, lock, end))
LATE(int, pthread_cond_clockwait,
     (pthread_cond_t * cond, pthread_mutex_t *lock, clockid_t which, const struct timespec *end),
     (cond, lock, which, end))
LATE(int, pthread_cond_signal, (pthread_cond_t * cond), (cond))
LATE(int, pthread_cond_broadcast, (pthread_cond_t * cond), (cond))
LATE(int, poll, (struct pollfd * fds, nfds_t n, int ms), (fds, n, ms))
LATE(int, ppoll, (struct pollfd * fds, nfds_t n, const struct timespec *ts, const sigset_t *mask),
     (fds, n, ts, mask))
LATE(int, epoll_wait, (int fd, struct epoll_event *events, int n, int ms), (fd, events, n, ms))
LATE(int, epoll_pwait, (int fd, struct epoll_event *events, int n, int ms, const sigset_t *mask),
     (fd, events, n, ms, mask))
LATE(int, epoll_pwait2,
     (int fd, struct epoll_event *events, int n, const struct timespec *ts, const sigset_t *mask),
     (fd, events, n, ts, mask))
LATE(int, nanosleep, (const struct timespec *span, struct timespec *left), (span, left))
LATE(int, clock_nanosleep, (clockid_t which, int flags, const struct timespec *span, struct timespec *left),
     (which, flags, span, left))
LATE(int, usleep, (useconds_t us), (us))
LATE(unsigned, sleep, (unsigned s), (s))
LATE(int, select, (int n, fd_set *in, fd_set *out, fd_set *failed, struct timeval *limit),
     (n, in, out, failed, limit))
LATE(int, sem_clockwait, (sem_t * sem, clockid_t which, const struct timespec *end), (sem, which, end))
LATE(int, eventfd_read, (int fd, uint64_t *value), (fd, value))

/* Reads of eight bytes are those of eventfds and timers. */
ssize_t read(int fd, void *to, size_t size)
{
    static _Atomic(void *) kept;
    void *function = atomic_load(&kept);
    ssize_t (*call)(int, void *, size_t);
    if (function == NULL)
        atomic_store(&kept, function = next("read"));
    memcpy(&call, &function, sizeof call);
    if (size == 8)
        perhaps_late();
    ssize_t result = call(fd, to, size);
    if (size == 8)
        perhaps_late();
    return result;
}

/* A thread begins late, and so does its creator go on. */
struct start {
    void *(*run)(void *);
    void *argument;
};

static void *begin(void *argument)
{
    struct start start = *(struct start *)argument;
    free(argument);
    perhaps_late();
    perhaps_late();
    return start.run(start.argument);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
    int (*call)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    void *function = next("pthread_create");
    struct start *start = malloc(sizeof *start);
    memcpy(&call, &function, sizeof call);
    if (start == NULL)
        return EAGAIN;
    *start = (struct start){run, argument};
    perhaps_late();
    int error = call(thread, attributes, begin, start);
    if (error != 0)
        free(start);
    perhaps_late();
    return error;
}
