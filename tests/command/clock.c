/* SPDX-License-Identifier: MIT
 *
 * The time of tickwheel_timed, which is the command with these functions in place of the system's (--wrap). The
 * clocks stand still until a test moves them (clock.py), by a file of 64-bit numbers that both have mapped.
 * Each thread has an entry in it from before it begins until it has ended. While it waits for descriptors or
 * for time, it looks about each millisecond, and notes the last round in which it found nothing, and when it is
 * due. While it waits for a condition, it says so; who signals one takes that back for all threads of the
 * process, and they look. So a thread that has been woken has something to do, though it has not run yet.
 * Without the file, all time is real.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 1024, TIMERS = 8, SECOND_NS = 1000000000, MS_NS = 1000000, BOOT_S = 1000 };

/* As clock.py has it. */
struct shared {
    _Atomic int64_t now_ns;  /* since the clock was made */
    _Atomic int64_t wall_ns; /* the date at which it was made */
    _Atomic int64_t round;   /* a number for the threads to note */
    _Atomic int64_t events;  /* sleeps that have ended */
    _Atomic int64_t count;
    struct thread {
        _Atomic int64_t process, round, due_ns; /* process 0: it has ended */
        _Atomic uint32_t waits, unused;         /* 1: for a condition, that nobody has signalled since */
    } thread[THREADS];
};

struct timer {
    int fd;
    clockid_t clock;
    _Atomic int64_t due_ns;
};

static struct shared *shared; /* NULL: real time */
static struct timer timers[TIMERS];
static _Atomic int timer_count;
static _Thread_local struct thread *me;

int __real_poll(struct pollfd *fds, nfds_t count, int wait_ms);
int __real_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *wait, const sigset_t *mask);
int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __real_nanosleep(const struct timespec *wait, struct timespec *left);
int __real_timerfd_create(clockid_t clock, int flags);
int __real_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *before);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *), void *arg);
int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
int __real_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock, const struct timespec *end);
int __real_pthread_cond_signal(pthread_cond_t *cond);
int __real_pthread_cond_broadcast(pthread_cond_t *cond);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *), void *arg);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock, const struct timespec *end);
int __wrap_pthread_cond_signal(pthread_cond_t *cond);
int __wrap_pthread_cond_broadcast(pthread_cond_t *cond);
int __wrap_poll(struct pollfd *fds, nfds_t count, int wait_ms);
int __wrap_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *wait, const sigset_t *mask);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_nanosleep(const struct timespec *wait, struct timespec *left);
int __wrap_timerfd_create(clockid_t clock, int flags);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *before);

static void require(bool good, const char *text)
{
    if (good)
        return;
    fprintf(stderr, "clock.c: %s\n", text);
    abort();
}

static struct thread *enroll(void)
{
    int64_t i = shared->count++;
    require(i < THREADS, "there are too many threads");
    shared->thread[i].due_ns = INT64_MAX;
    shared->thread[i].process = getpid();
    return &shared->thread[i];
}

__attribute__((constructor)) static void map_shared(void)
{
    const char *path = getenv("TICKWHEEL_CLOCK");
    if (path == NULL)
        return;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    require(fd >= 0, "TICKWHEEL_CLOCK names no file");
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    require(shared != MAP_FAILED, "the file of the clock is not mapped");
    close(fd);
    me = enroll();
}

/* ---- clocks ---------------------------------------------------------------------------------------------- */

/* The time of a clock at which the test made it. */
static int64_t base_ns(clockid_t clock)
{
    return clock == CLOCK_REALTIME ? shared->wall_ns : (int64_t)BOOT_S * SECOND_NS;
}

static int64_t ns_of(const struct timespec *time)
{
    return time->tv_sec < INT64_MAX / SECOND_NS - 1 ? (int64_t)time->tv_sec * SECOND_NS + time->tv_nsec
                                                    : INT64_MAX;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    if (shared == NULL || (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME))
        return __real_clock_gettime(clock, now);
    int64_t ns = base_ns(clock) + shared->now_ns;
    *now = (struct timespec){ns / SECOND_NS, ns % SECOND_NS};
    return 0;
}

/* ---- timers ---------------------------------------------------------------------------------------------- */

int __wrap_timerfd_create(clockid_t clock, int flags)
{
    int fd = __real_timerfd_create(clock, flags);
    if (shared == NULL || fd < 0)
        return fd;
    int i = timer_count++;
    require(i < TIMERS, "there are too many timers");
    timers[i] = (struct timer){fd, clock, INT64_MAX};
    return fd;
}

static struct timer *timer_of(int fd)
{
    for (int i = timer_count - 1; i >= 0; i--)
        if (timers[i].fd == fd)
            return &timers[i];
    return NULL;
}

/* The system's timer is set when a sleeper finds that the time has come. */
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *before)
{
    static const struct itimerspec never;
    if (shared == NULL)
        return __real_timerfd_settime(fd, flags, at, before);
    struct timer *timer = timer_of(fd);
    require(timer != NULL && (flags & TFD_TIMER_ABSTIME) != 0, "a timer is not as the tests know it");
    int64_t ns = ns_of(&at->it_value);
    timer->due_ns = ns == 0 || ns == INT64_MAX ? INT64_MAX : ns - base_ns(timer->clock);
    return __real_timerfd_settime(fd, 0, &never, before);
}

/* Sets off the timers that are due among the descriptors. Returns when the next timer is due: now, if it is. */
static int64_t set_off(const struct pollfd *fds, nfds_t count, int64_t now_ns)
{
    static const struct itimerspec at_once = {.it_value = {0, 1}};
    int64_t next_ns = INT64_MAX;
    for (nfds_t i = 0; i < count; i++) {
        struct timer *timer = fds[i].fd >= 0 ? timer_of(fds[i].fd) : NULL;
        if (timer == NULL)
            continue;
        if (timer->due_ns <= now_ns) {
            timer->due_ns = INT64_MAX;
            __real_timerfd_settime(timer->fd, 0, &at_once, NULL);
            next_ns = now_ns;
        }
        next_ns = timer->due_ns < next_ns ? timer->due_ns : next_ns;
    }
    return next_ns;
}

/* ---- threads --------------------------------------------------------------------------------------------- */

struct start {
    void *(*body)(void *);
    void *arg;
    struct thread *thread;
};

static void *begin(void *arg)
{
    struct start start = *(struct start *)arg;
    free(arg);
    me = start.thread;
    void *result = start.body(start.arg);
    me->process = 0;
    return result;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *), void *arg)
{
    if (shared == NULL)
        return __real_pthread_create(thread, attr, body, arg);
    struct start *start = malloc(sizeof *start);
    if (start == NULL)
        return EAGAIN;
    *start = (struct start){body, arg, enroll()};
    struct thread *its = start->thread;
    int error = __real_pthread_create(thread, attr, begin, start);
    if (error == 0)
        return 0;
    its->process = 0;
    free(start);
    return error;
}

/* Waits until somebody signals any condition: the caller looks at its own. */
static int wait_signalled(pthread_mutex_t *lock, int64_t end_ns)
{
    static const struct timespec ms = {.tv_nsec = MS_NS};
    bool late = false;
    me->due_ns = end_ns;
    me->waits = 1;
    pthread_mutex_unlock(lock);
    for (;;) {
        int64_t round = shared->round;
        late = shared->now_ns >= end_ns;
        if (late || me->waits == 0)
            break;
        me->round = round;
        syscall(SYS_futex, &me->waits, FUTEX_WAIT, 1, end_ns < INT64_MAX ? &ms : NULL);
    }
    me->waits = 0;
    shared->events++;
    pthread_mutex_lock(lock);
    return late ? ETIMEDOUT : 0;
}

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock)
{
    return shared == NULL ? __real_pthread_cond_wait(cond, lock) : wait_signalled(lock, INT64_MAX);
}

/* The command's conditions are on the monotonic clock. */
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock, const struct timespec *end)
{
    if (shared == NULL)
        return __real_pthread_cond_timedwait(cond, lock, end);
    int64_t ns = ns_of(end);
    return wait_signalled(lock, ns < INT64_MAX ? ns - base_ns(CLOCK_MONOTONIC) : INT64_MAX);
}

static int wake_all(void)
{
    int64_t count = shared->count, process = getpid();
    for (int64_t i = 0; i < count && i < THREADS; i++)
        if (shared->thread[i].process == process && shared->thread[i].waits != 0) {
            shared->thread[i].waits = 0;
            syscall(SYS_futex, &shared->thread[i].waits, FUTEX_WAKE, 1);
        }
    return 0;
}

int __wrap_pthread_cond_signal(pthread_cond_t *cond)
{
    return shared == NULL ? __real_pthread_cond_signal(cond) : wake_all();
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *cond)
{
    return shared == NULL ? __real_pthread_cond_broadcast(cond) : wake_all();
}

/* ---- sleepers ------------------------------------------------------------------------------------------- */

/* Sleeps until `end_ns`, or until a descriptor is ready. */
static int rest_until(struct pollfd *fds, nfds_t count, int64_t end_ns)
{
    for (;;) {
        int64_t round = shared->round, now_ns = shared->now_ns;
        int64_t next_ns = set_off(fds, count, now_ns);
        int ready = __real_poll(fds, count, next_ns <= now_ns ? -1 : now_ns < end_ns);
        if (ready != 0 || now_ns >= end_ns) {
            shared->events++;
            return ready;
        }
        me->due_ns = next_ns < end_ns ? next_ns : end_ns;
        me->round = round;
    }
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int wait_ms)
{
    if (shared == NULL || wait_ms == 0)
        return __real_poll(fds, count, wait_ms);
    return rest_until(fds, count, wait_ms < 0 ? INT64_MAX : shared->now_ns + (int64_t)wait_ms * MS_NS);
}

static int64_t end_of(const struct timespec *wait)
{
    int64_t ns = ns_of(wait), now_ns = shared->now_ns;
    return ns < INT64_MAX - now_ns ? now_ns + ns : INT64_MAX;
}

int __wrap_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *wait, const sigset_t *mask)
{
    if (shared == NULL)
        return __real_ppoll(fds, count, wait, mask);
    require(mask == NULL, "ppoll() has a mask");
    return rest_until(fds, count, end_of(wait));
}

/* A sleep of less than a millisecond lets other threads go on, and takes no time. */
int __wrap_nanosleep(const struct timespec *wait, struct timespec *left)
{
    if (shared == NULL || ns_of(wait) < MS_NS)
        return __real_nanosleep(wait, left);
    int64_t end_ns = end_of(wait); /* `left` may be the same as `wait` */
    if (left != NULL)
        *left = (struct timespec){0, 0};
    return rest_until(NULL, 0, end_ns);
}
