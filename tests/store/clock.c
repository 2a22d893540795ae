/* SPDX-License-Identifier: MIT */
#include "clock.h"

#include "support.h"

#include <src/store/runner.h>
#include <tests/support/eventually.h>

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>

static const int64_t S = 1000000000, MS = 1000000;
enum { RUNNERS = 64 };

int __real_clock_gettime(clockid_t id, struct timespec *now);
int __real_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *old);
ssize_t __real_read(int fd, void *to, size_t size);
int __real_ppoll(struct pollfd *on, nfds_t n, const struct timespec *wait, const sigset_t *mask);
int __real_tw__store_watch_init(struct tw__store_watch *watch);
void __real_tw__store_watch_fini(struct tw__store_watch *watch);
bool __real_tw__store_watch_look(struct tw__store_watch *watch, bool *whole);
int __real_tw__store_window_look(struct tw__store_window *window, uint64_t now_ms, bool whole);
int __wrap_clock_gettime(clockid_t id, struct timespec *now);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *old);
ssize_t __wrap_read(int fd, void *to, size_t size);
int __wrap_ppoll(struct pollfd *on, nfds_t n, const struct timespec *wait, const sigset_t *mask);
int __wrap_tw__store_watch_init(struct tw__store_watch *watch);
void __wrap_tw__store_watch_fini(struct tw__store_watch *watch);
bool __wrap_tw__store_watch_look(struct tw__store_watch *watch, bool *whole);
int __wrap_tw__store_window_look(struct tw__store_window *window, uint64_t now_ms, bool whole);

/* A runner. Its rounds have the number of the latest call of runner_idle() before they began. A round begins
 * when the sleep before it ends: the runner then reads its timer, the events of files, and the time. */
struct runner {
    const struct tw__store_watch *watch;  /* NULL: this place is free */
    struct itimerspec at;                 /* of the timer; zero: it is not set */
    int64_t wakes_ns;                     /* on the monotonic clock: when the present sleep ends */
    uint64_t wanted, woken, begun, slept; /* rounds: called for, last woken for, under way, slept after */
    uint64_t sleeps, looks;
    bool asleep;
    bool must_look; /* the round that is called for looks at the file */
    bool stepped;   /* the clock was set, and no call has told the runner */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below */
static struct runner runners[RUNNERS];
static int64_t stopped_ns; /* where the system's clock stands still; 0: it goes */
static int64_t halted_ns;  /* where the monotonic clock stands still but for hurried_ns; 0: it goes */
static int64_t hurried_ns; /* of the monotonic clock */
static bool away;
static void (*before_look)(void *arg);
static void *before_look_arg;

static void take_lock(void)
{
    pthread_mutex_lock(&lock);
}

static void give_lock(void)
{
    pthread_mutex_unlock(&lock);
}

/* No child has a lock that nobody gives back. */
__attribute__((constructor)) static void hold_lock_while_forking(void)
{
    pthread_atfork(take_lock, give_lock, give_lock);
}

/* The end of the year 9999, the last time of a task, is beyond 64 bits. */
static int64_t ns_of(const struct timespec *time)
{
    return time->tv_sec < INT64_MAX / S ? time->tv_sec * S + time->tv_nsec : INT64_MAX;
}

static struct timespec time_of(int64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / S), .tv_nsec = (long)(ns % S)};
}

/* Requires: the lock is held. */
static int64_t read_clock(clockid_t id)
{
    struct timespec now;
    __real_clock_gettime(id, &now);
    if (id == CLOCK_MONOTONIC)
        return (halted_ns != 0 ? halted_ns : ns_of(&now)) + hurried_ns;
    return id == CLOCK_REALTIME && stopped_ns != 0 ? stopped_ns : ns_of(&now);
}

/* ---- the clock of SQLite --------------------------------------------------------------------------------- */

static sqlite3_vfs vfs; /* the system's, but for its clock */

/* SQLite counts milliseconds from noon of a day in 4714 BC. */
static int read_sqlite_clock(sqlite3_vfs *of, sqlite3_int64 *ms)
{
    (void)of;
    pthread_mutex_lock(&lock);
    *ms = INT64_C(210866760000000) + read_clock(CLOCK_REALTIME) / MS;
    pthread_mutex_unlock(&lock);
    return SQLITE_OK;
}

__attribute__((constructor)) static void give_sqlite_the_clock(void)
{
    vfs = *sqlite3_vfs_find(NULL);
    vfs.zName = "clock";
    vfs.xCurrentTimeInt64 = read_sqlite_clock;
    if (sqlite3_vfs_register(&vfs, 1) != SQLITE_OK)
        abort();
}

/* ---- runners --------------------------------------------------------------------------------------------- */

/* The runner with this watch, or with this timer. Requires: the lock is held. */
static struct runner *find(const struct tw__store_watch *watch)
{
    struct runner *runner = runners;
    while (runner < runners + RUNNERS && runner->watch != watch)
        runner++;
    return runner < runners + RUNNERS ? runner : NULL;
}

static struct runner *find_timer(int fd)
{
    for (struct runner *runner = runners; runner < runners + RUNNERS; runner++)
        if (runner->watch != NULL && runner->watch->timer == fd)
            return runner;
    return NULL;
}

static struct runner *runner_of(struct tw_store *store)
{
    pthread_mutex_lock(&store->run->lock);
    pthread_mutex_lock(&lock);
    struct runner *runner = store->run->runner != NULL ? find(&store->run->runner->watch) : NULL;
    pthread_mutex_unlock(&lock);
    pthread_mutex_unlock(&store->run->lock);
    if (runner != NULL)
        return runner;
    fprintf(stderr, "the store does not run\n");
    abort();
}

/* ---- the calls of the runner ----------------------------------------------------------------------------- */

int __wrap_clock_gettime(clockid_t id, struct timespec *now)
{
    pthread_mutex_lock(&lock);
    int error = __real_clock_gettime(id, now);
    if (error == 0)
        *now = time_of(read_clock(id));
    pthread_mutex_unlock(&lock);
    return error;
}

/* Sets the kernel's timer. While the clock stands still, the timer fires at once or not at all. */
static void set_timer(const struct runner *runner)
{
    struct itimerspec at = runner->at;
    bool set = at.it_value.tv_sec != 0 || at.it_value.tv_nsec != 0;
    if (stopped_ns != 0 && set)
        at.it_value = (struct timespec){.tv_nsec = ns_of(&at.it_value) <= stopped_ns};
    int flags = TFD_TIMER_ABSTIME | (stopped_ns == 0 ? TFD_TIMER_CANCEL_ON_SET : 0);
    __real_timerfd_settime(runner->watch->timer, flags, &at, NULL);
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *old)
{
    pthread_mutex_lock(&lock);
    struct runner *runner = find_timer(fd);
    bool stepped = runner != NULL && runner->stepped;
    int error = 0;
    if (runner == NULL) {
        error = __real_timerfd_settime(fd, flags, at, old);
    } else if (flags != (TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET)) {
        fprintf(stderr, "the runner's timer has the flags %d: it is not told of steps\n", flags);
        abort();
    } else {
        runner->at = *at;
        runner->stepped = false;
        set_timer(runner);
    }
    pthread_mutex_unlock(&lock);
    if (!stepped)
        return error;
    errno = ECANCELED;
    return -1;
}

/* Reads a timer that has fired, or of which a step has to be told. Requires: the lock is held. */
static ssize_t read_timer(struct runner *runner, void *to, size_t size)
{
    ssize_t got = __real_read(runner->watch->timer, to, size);
    if (got > 0)
        runner->at = (struct itimerspec){.it_value = {0}};
    if (!runner->stepped)
        return got;
    runner->stepped = false;
    errno = ECANCELED;
    return -1;
}

ssize_t __wrap_read(int fd, void *to, size_t size)
{
    pthread_mutex_lock(&lock);
    struct runner *runner = find_timer(fd);
    ssize_t got = runner != NULL ? read_timer(runner, to, size) : 0;
    pthread_mutex_unlock(&lock);
    return runner != NULL ? got : __real_read(fd, to, size);
}

int __wrap_ppoll(struct pollfd *on, nfds_t n, const struct timespec *wait, const sigset_t *mask)
{
    static const struct timespec at_once = {0, 0};
    pthread_mutex_lock(&lock);
    struct runner *runner = find_timer(on[0].fd);
    if (runner != NULL) {
        runner->slept = runner->begun;
        runner->asleep = true;
        runner->sleeps++;
        runner->wakes_ns = wait->tv_sec < INT32_MAX ? read_clock(CLOCK_MONOTONIC) + ns_of(wait) : INT64_MAX;
        if (away)
            on[2].fd = -1;
        if (away || (halted_ns != 0 && ns_of(wait) > 0))
            wait = NULL;
    }
    pthread_mutex_unlock(&lock);
    int ready = __real_ppoll(on, n, wait, mask);
    if (runner == NULL)
        return ready;
    pthread_mutex_lock(&lock);
    runner->asleep = false;
    runner->woken = runner->wanted;
    ready = __real_ppoll(on, n, &at_once, NULL); /* all that came before that call of runner_idle() */
    pthread_mutex_unlock(&lock);
    return ready;
}

/* ---- the runners ----------------------------------------------------------------------------------------- */

int __wrap_tw__store_watch_init(struct tw__store_watch *watch)
{
    int error = __real_tw__store_watch_init(watch);
    pthread_mutex_lock(&lock);
    struct runner *runner = find(NULL);
    if (runner == NULL)
        abort();
    *runner = (struct runner){.watch = watch};
    pthread_mutex_unlock(&lock);
    return error;
}

void __wrap_tw__store_watch_fini(struct tw__store_watch *watch)
{
    pthread_mutex_lock(&lock);
    struct runner *runner = find(watch);
    if (runner != NULL) /* it is not there if a start has failed before */
        runner->watch = NULL;
    pthread_mutex_unlock(&lock);
    __real_tw__store_watch_fini(watch);
}

/* Each round of the runner looks so, after it has read the time. */
bool __wrap_tw__store_watch_look(struct tw__store_watch *watch, bool *whole)
{
    pthread_mutex_lock(&lock);
    struct runner *runner = find(watch);
    bool wanted = runner->begun != runner->woken && runner->must_look, look_away = away && !watch->stepped;
    runner->begun = runner->woken;
    pthread_mutex_unlock(&lock);
    return (!look_away && __real_tw__store_watch_look(watch, whole)) || wanted;
}

int __wrap_tw__store_window_look(struct tw__store_window *window, uint64_t now_ms, bool whole)
{
    const struct tw__store_runner *its = TW_CONTAINER(window, struct tw__store_runner, window);
    pthread_mutex_lock(&lock);
    void (*first)(void *arg) = before_look;
    before_look = NULL;
    find(&its->watch)->looks++;
    pthread_mutex_unlock(&lock);
    if (first != NULL)
        first(before_look_arg);
    return __real_tw__store_window_look(window, now_ms, whole);
}

/* ---- the test's calls ------------------------------------------------------------------------------------ */

/* Requires: the lock is held. */
static void set_timers(void)
{
    for (struct runner *runner = runners; runner < runners + RUNNERS; runner++)
        if (runner->watch != NULL)
            set_timer(runner);
}

/* The system's clock in whole milliseconds. Requires: the lock is held. */
static int64_t now_ns(void)
{
    return read_clock(CLOCK_REALTIME) / MS * MS;
}

void clock_stop(uint64_t at_ms)
{
    pthread_mutex_lock(&lock);
    stopped_ns = at_ms != 0 ? (int64_t)at_ms * MS : now_ns();
    set_timers();
    pthread_mutex_unlock(&lock);
}

void clock_go(void)
{
    pthread_mutex_lock(&lock);
    stopped_ns = 0;
    halted_ns = 0;
    set_timers();
    pthread_mutex_unlock(&lock);
}

void clock_pass(uint64_t ms)
{
    pthread_mutex_lock(&lock);
    stopped_ns = now_ns() + (int64_t)ms * MS;
    set_timers();
    pthread_mutex_unlock(&lock);
}

static void step(int64_t ms, bool fire)
{
    static const struct itimerspec at_once = {.it_value = {.tv_nsec = 1}};
    pthread_mutex_lock(&lock);
    stopped_ns = now_ns() + ms * MS;
    for (struct runner *runner = runners; runner < runners + RUNNERS; runner++) {
        if (runner->watch == NULL)
            continue;
        runner->stepped = true;
        if (fire)
            __real_timerfd_settime(runner->watch->timer, TFD_TIMER_ABSTIME, &at_once, NULL);
    }
    pthread_mutex_unlock(&lock);
}

void clock_step(int64_t ms)
{
    step(ms, true);
}

void clock_step_quietly(int64_t ms)
{
    step(ms, false);
}

bool clock_step_is_untold(void)
{
    bool untold = false;
    pthread_mutex_lock(&lock);
    for (struct runner *runner = runners; runner < runners + RUNNERS; runner++)
        untold |= runner->watch != NULL && runner->stepped;
    pthread_mutex_unlock(&lock);
    return untold;
}

void clock_halt(void)
{
    pthread_mutex_lock(&lock);
    halted_ns = read_clock(CLOCK_MONOTONIC) - hurried_ns;
    pthread_mutex_unlock(&lock);
}

bool clock_hurry(uint64_t ms)
{
    bool wakes = false;
    pthread_mutex_lock(&lock);
    hurried_ns += (int64_t)ms * MS;
    int64_t now_ns = read_clock(CLOCK_MONOTONIC);
    for (struct runner *runner = runners; runner < runners + RUNNERS; runner++)
        if (runner->watch != NULL && runner->wakes_ns <= now_ns) {
            tw__store_watch_wake(runner->watch);
            wakes |= runner->asleep;
        }
    pthread_mutex_unlock(&lock);
    return wakes;
}

/* While the clock goes, a task that is due is called in the next millisecond. The runner is not idle before.
 * Wakes a runner that sleeps already and has missed the call: it may have been on its way into this sleep. */
static bool is_idle(const struct runner *runner, uint64_t wanted)
{
    pthread_mutex_lock(&lock);
    if (runner->asleep && runner->slept < wanted)
        tw__store_watch_wake(runner->watch);
    int64_t soon_ns = read_clock(CLOCK_REALTIME) + 2 * MS;
    bool idle = runner->slept >= wanted && (stopped_ns != 0 || ns_of(&runner->at.it_value) > soon_ns);
    pthread_mutex_unlock(&lock);
    return idle;
}

/* Reads a number of a runner with the lock held. */
static uint64_t number(const uint64_t *of)
{
    pthread_mutex_lock(&lock);
    uint64_t n = *of;
    pthread_mutex_unlock(&lock);
    return n;
}

static bool is_stopping(struct tw_store *store)
{
    pthread_mutex_lock(&store->run->lock);
    bool stopping = store->run->runner != NULL && atomic_load(&store->run->runner->pool.stopping);
    pthread_mutex_unlock(&store->run->lock);
    return stopping;
}

/* A run that has lost its file goes round no more. */
static bool is_lost(struct tw_store *store)
{
    struct tw_store_info stats;
    tw_store_stats(store, &stats, sizeof stats);
    return is_stopping(store) && !stats.running;
}

static void go_round(struct tw_store *store, bool look)
{
    struct runner *runner = runner_of(store);
    pthread_mutex_lock(&lock);
    uint64_t wanted = ++runner->wanted;
    runner->must_look = look;
    tw__store_watch_wake(runner->watch);
    pthread_mutex_unlock(&lock);
    EVENTUALLY_TOLD(is_idle(runner, wanted) || is_lost(store), "the runner goes round");
}

void runner_idle(struct tw_store *store)
{
    go_round(store, true);
}

void runner_round(struct tw_store *store)
{
    go_round(store, false);
}

void runner_stopping(struct tw_store *store)
{
    EVENTUALLY_TOLD(is_stopping(store), "nobody stops the run");
}

uint64_t runner_sleeps(struct tw_store *store)
{
    return number(&runner_of(store)->sleeps);
}

uint64_t runner_looks(struct tw_store *store)
{
    return number(&runner_of(store)->looks);
}

void runner_look_away(bool on)
{
    pthread_mutex_lock(&lock);
    away = on;
    pthread_mutex_unlock(&lock);
}

void runner_before_look(void (*call)(void *arg), void *arg)
{
    pthread_mutex_lock(&lock);
    before_look = call;
    before_look_arg = arg;
    pthread_mutex_unlock(&lock);
}

int clock_teardown(void **state)
{
    runner_look_away(false);
    clock_go();
    return store_teardown(state);
}
