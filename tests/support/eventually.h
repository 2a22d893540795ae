/* SPDX-License-Identifier: MIT
 *
 * A test waits for a condition, never for a time: the machine may be busy (CONTRIBUTING.md, "Tests own time").
 * A wait that lasts EVENTUALLY_S seconds ends the program, in any thread or process and in C++ too, and says
 * what it awaited and what was there. To show that nothing happens, a test files something later and waits
 * until that has happened.
 *
 *     EVENTUALLY(atomic_load(&calls) == 2);
 *     EVENTUALLY_TOLD(done_in(store) >= n, "%d done, expected %d", done_in(store), n);
 *     eventually_posted(&sem);                  instead of sem_wait()
 *     eventually_joined(thread);                instead of pthread_join()
 *     status = eventually_exited(pid);          instead of waitpid()
 *     eventually_woken(&came, &lock);           instead of pthread_cond_wait()
 *     eventually_met(&meeting);                 instead of pthread_barrier_wait()
 */
#ifndef TESTS_SUPPORT_EVENTUALLY_H
#define TESTS_SUPPORT_EVENTUALLY_H

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EVENTUALLY_S = 60, EVENTUALLY_FIRST_NS = 10000, EVENTUALLY_POLL_NS = 1000000 };

#ifndef _GNU_SOURCE /* without it glibc does not declare them */
int pthread_tryjoin_np(pthread_t thread, void **result);
int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *lock, clockid_t clock,
                           const struct timespec *end);
#endif

/* Seconds of CLOCK_MONOTONIC, by the system call itself: some tests have a clock_gettime() of their own. */
static inline int64_t eventually_clock(void)
{
    struct timespec now = {0, 0};
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

/* Lets the others go on before a condition is looked at once more, each time longer, up to a millisecond.
 * Returns 0 at once when the time is over: then the condition has just been looked at. */
static inline int eventually_again(int64_t began_s, long *poll_ns)
{
    struct timespec poll = {0, *poll_ns};
    if (eventually_clock() - began_s > EVENTUALLY_S)
        return 0;
    if ((*poll_ns *= 2) > EVENTUALLY_POLL_NS)
        *poll_ns = EVENTUALLY_POLL_NS;
    syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &poll, NULL);
    return 1;
}

#define EVENTUALLY_TOLD(condition, ...)                                                                        \
    do {                                                                                                       \
        int64_t eventually_began_ = eventually_clock();                                                        \
        long eventually_poll_ns_ = EVENTUALLY_FIRST_NS;                                                        \
        while (!(condition)) {                                                                                 \
            if (eventually_again(eventually_began_, &eventually_poll_ns_))                                     \
                continue;                                                                                      \
            fprintf(stderr, "%s:%d: in %d s this did not come about: %s\n    ", __FILE__, __LINE__,            \
                    EVENTUALLY_S, #condition);                                                                 \
            fprintf(stderr, __VA_ARGS__);                                                                      \
            fputc('\n', stderr);                                                                               \
            abort();                                                                                           \
        }                                                                                                      \
    } while (0)

/* For a condition that tells by itself what is there. */
#define EVENTUALLY(condition) EVENTUALLY_TOLD(condition, "it is still false")

#define eventually_posted(sem)                                                                                 \
    EVENTUALLY_TOLD(sem_trywait(sem) == 0, "the semaphore is not posted (errno %d)", errno)

#define eventually_joined(thread) EVENTUALLY_TOLD(pthread_tryjoin_np(thread, NULL) == 0, "the thread runs on")

/* Waits for the end of a child, and returns its status, as waitpid() has it. */
static inline int eventually_exited(pid_t child)
{
    int status = 0;
    pid_t got = 0;
    EVENTUALLY_TOLD((got = waitpid(child, &status, WNOHANG)) != 0, "process %ld runs on", (long)child);
    if (got == child)
        return status;
    fprintf(stderr, "no child has the process id %ld\n", (long)child);
    abort();
}

/* Waits once for a signal, with `lock` held. Returns without one at times, as pthread_cond_wait() does. */
static inline void eventually_woken(pthread_cond_t *cond, pthread_mutex_t *lock)
{
    struct timespec end = {eventually_clock() + EVENTUALLY_S, 0};
    if (pthread_cond_clockwait(cond, lock, CLOCK_MONOTONIC, &end) == 0)
        return;
    fprintf(stderr, "nobody signalled a condition variable in %d s\n", EVENTUALLY_S);
    abort();
}

/* The same for a thread that stays until the test's main thread lets it go, however long the test takes. The
 * waits of the main thread have an end, and end the program. */
static inline void woken_by_test(pthread_cond_t *cond, pthread_mutex_t *lock)
{
    pthread_cond_wait(cond, lock);
}

/* As many threads as are awaited go on when the last of them has come. */
struct meeting {
    pthread_mutex_t lock;
    pthread_cond_t met;
    int awaited;
};

static inline struct meeting meeting_of(int threads)
{
    struct meeting meeting = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, threads};
    return meeting;
}

static inline void eventually_met(struct meeting *meeting)
{
    pthread_mutex_lock(&meeting->lock);
    if (--meeting->awaited == 0)
        pthread_cond_broadcast(&meeting->met);
    while (meeting->awaited > 0)
        eventually_woken(&meeting->met, &meeting->lock);
    pthread_mutex_unlock(&meeting->lock);
}

/* Lets `us` microseconds pass: a kill or a rival may come at any moment, or a fault gets time to show itself.
 * No verdict of a right program depends on it. */
static inline void any_moment(uint64_t us)
{
    struct timespec pause = {(time_t)(us / 1000000), (long)(us % 1000000) * 1000};
    syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &pause, NULL);
}

#endif
