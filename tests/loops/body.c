/* SPDX-License-Identifier: MIT
 *
 * The test of every loop against its real library. `kind` says which one it is.
 *
 * Time is real here. "Never early" is strict, and measured on the clock itself; that something comes at all is
 * bounded by a watchdog of a minute, so that a loaded machine fails nothing. How often a loop wakes up is
 * counted in the system calls in which it sleeps: they are defined here, before the C library's.
 */
#include "kind.h"
#include "tests/support/cmocka.h"
#include "tests/support/random.h"
#include "tests/support/run.h"

#include <dirent.h>
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <src/loops/internal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <tickwheel/sched.h>
#include <time.h>
#include <unistd.h>

enum { US = 1000, MS = 1000000, NS_PER_S = 1000000000 };

static uint64_t clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* ---- sleeping system calls, counted on the loop's thread ------------------------------------------------- */

static pthread_t loop_thread;
static unsigned waits;

static void count_wait(void)
{
    if (pthread_equal(pthread_self(), loop_thread))
        waits++;
}

/* A function pointer and what dlsym() gives are of different types in C. */
#define REAL(type, name)                                                                                       \
    static type *real;                                                                                         \
    count_wait();                                                                                              \
    if (real == NULL)                                                                                          \
    *(void **)&real = dlsym(RTLD_NEXT, name)

typedef int epoll_wait_fn(int, struct epoll_event *, int, int);
typedef int epoll_pwait_fn(int, struct epoll_event *, int, int, const sigset_t *);
typedef int poll_fn(struct pollfd *, nfds_t, int);
typedef int ppoll_fn(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);

int epoll_wait(int fd, struct epoll_event *events, int room, int timeout_ms)
{
    REAL(epoll_wait_fn, "epoll_wait");
    return real(fd, events, room, timeout_ms);
}

int epoll_pwait(int fd, struct epoll_event *events, int room, int timeout_ms, const sigset_t *mask)
{
    REAL(epoll_pwait_fn, "epoll_pwait");
    return real(fd, events, room, timeout_ms, mask);
}

int poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    REAL(poll_fn, "poll");
    return real(fds, n, timeout_ms);
}

int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
    REAL(ppoll_fn, "ppoll");
    return real(fds, n, timeout, mask);
}

static unsigned sets; /* of timerfds, on the loop's thread */

int timerfd_settime(int of, int flags, const struct itimerspec *value, struct itimerspec *old)
{
    static int (*real)(int, int, const struct itimerspec *, struct itimerspec *);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "timerfd_settime");
    sets += pthread_equal(pthread_self(), loop_thread) != 0;
    return real(of, flags, value, old);
}

/* ---- calls that may fail --------------------------------------------------------------------------------- */

unsigned fail_at;

bool failing(void)
{
    return fail_at > 0 && --fail_at == 0;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
int __real_timerfd_create(int clock, int flags);
int __wrap_timerfd_create(int clock, int flags);
int __real_eventfd(unsigned count, int flags);
int __wrap_eventfd(unsigned count, int flags);

void *__wrap_malloc(size_t size)
{
    return failing() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return failing() ? NULL : __real_calloc(n, size);
}

int __wrap_timerfd_create(int clock, int flags)
{
    return failing() ? -1 : __real_timerfd_create(clock, flags);
}

int __wrap_eventfd(unsigned count, int flags)
{
    return failing() ? -1 : __real_eventfd(count, flags);
}

/* ---- a loop with a wheel in it --------------------------------------------------------------------------- */

static void *base;
static struct tw_wheel *wheel;
static struct tw_loop *loop;
static int fd; /* an eventfd, to wake the loop with */

static int set_up(void **state)
{
    (void)state;
    base = kind.open();
    wheel = wheel_of(TW_DEFAULT, 123456);
    fd = __real_eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    loop_thread = pthread_self();
    return base == NULL || fd < 0;
}

static int tear_down(void **state)
{
    (void)state;
    tw_loop_free(loop);
    loop = NULL;
    assert_null(tw_wheel_check(wheel));
    tw_wheel_free(wheel);
    kind.close(base);
    close(fd);
    return 0;
}

static void attach(tw_due_fn *due, uint32_t budget)
{
    struct tw_loop_options options = {.due = due, .budget = budget};
    assert_int_equal(kind.attach(&loop, base, wheel, &options), 0);
    kind.owner(loop, NULL);
}

/* Nothing is pending any more: the loops that end by themselves must do so. */
static void done(void)
{
    if (!kind.ends)
        kind.stop(base);
}

static void *raise_later(void *arg)
{
    const uint64_t one = 1;
    const struct timespec delay = {.tv_nsec = 300 * MS};
    (void)arg;
    nanosleep(&delay, NULL);
    return write(fd, &one, sizeof one) == sizeof one ? NULL : &fd;
}

/* ---- 100,000 timers -------------------------------------------------------------------------------------- */

struct one {
    struct tw_timer timer;
    uint64_t due_ns; /* not before this */
    uint64_t filed;  /* the number of its filing */
    enum { WAITS, FIRED, CANCELLED } state;
    bool moved;
};

static struct {
    struct one *ones;
    unsigned n, waiting, fired, cancelled, again;
    uint64_t filings, soonest_ns, until_ns, last_tick, last_filed, late_max_ns;
    bool fresh; /* the last one that fired was not moved */
    struct rng rng;
} storm;

static void file_one(struct one *one)
{
    uint64_t now_ns = clock_now(), from_ns = now_ns > storm.soonest_ns ? now_ns : storm.soonest_ns;
    uint64_t ns = from_ns - now_ns + rng_below(&storm.rng, storm.until_ns - from_ns);
    one->due_ns = now_ns + ns;
    one->filed = ++storm.filings;
    one->state = WAITS;
    one->moved = false;
    storm.waiting++;
    if (rng_below(&storm.rng, 2) == 0)
        assert_int_equal(tw_loop_add_at(loop, &one->timer, one->due_ns), 0);
    else
        assert_int_equal(tw_loop_add_in(loop, &one->timer, ns), 0);
    assert_null(tw__loop_check(loop));
}

static void cancel_one(struct one *one)
{
    assert_true(tw_loop_cancel(loop, &one->timer));
    assert_null(tw__loop_check(loop));
    one->state = CANCELLED;
    storm.waiting--;
    storm.cancelled++;
}

static void move_one(struct one *one)
{
    uint64_t now_ns = clock_now();
    one->moved = true;
    one->due_ns = now_ns + rng_below(&storm.rng, storm.until_ns - now_ns);
    assert_int_equal(tw_loop_move_at(loop, &one->timer, one->due_ns), 0);
    assert_null(tw__loop_check(loop));
}

/* Does something to one of them, as long as there is time. */
static void meddle(void)
{
    struct one *one = &storm.ones[rng_below(&storm.rng, storm.n)];
    if (clock_now() + MS >= storm.until_ns)
        return;
    unsigned what = (unsigned)rng_below(&storm.rng, 10);
    if (one->state == WAITS && what == 0)
        cancel_one(one);
    else if (one->state == WAITS && what <= 3)
        move_one(one);
    else if (one->state != WAITS && what == 4) {
        storm.again++;
        file_one(one);
    }
}

/* Ticks never go back; of those that were not moved, equal ticks come in the order of filing. */
static void check_order(const struct one *one)
{
    uint64_t tick = tw_timer_deadline(&one->timer);
    assert_true(tick >= storm.last_tick);
    if (tick > storm.last_tick)
        storm.last_filed = 0;
    storm.last_tick = tick;
    if (one->moved)
        return;
    assert_true(one->filed > storm.last_filed);
    storm.last_filed = one->filed;
}

static void on_one(void *arg, struct tw_timer *timer)
{
    struct one *one = TW_CONTAINER(timer, struct one, timer);
    uint64_t now_ns = clock_now();
    assert_ptr_equal(arg, NULL);
    assert_int_equal(one->state, WAITS);
    assert_null(tw__loop_check(loop));
    assert_true(now_ns >= one->due_ns);
    check_order(one);
    storm.late_max_ns = now_ns - one->due_ns > storm.late_max_ns ? now_ns - one->due_ns : storm.late_max_ns;
    one->state = FIRED;
    storm.fired++;
    storm.waiting--;
    meddle();
    if (storm.waiting == 0)
        done();
}

static void test_timers_are_not_early_not_missed_and_in_order(void **state)
{
    (void)state;
    memset(&storm, 0, sizeof storm);
    storm.n = run_scaled(100000);
    rng_init(&storm.rng, run_seed());
    storm.ones = __real_calloc(storm.n, sizeof *storm.ones);
    attach(on_one, 0);
    storm.soonest_ns = clock_now() + 200 * MS; /* while they are filed, none comes due */
    storm.until_ns = storm.soonest_ns + UINT64_C(2000000000);
    for (unsigned i = 0; i < storm.n; i++)
        file_one(&storm.ones[i]);
    kind.run(base);
    assert_int_equal(storm.waiting, 0);
    assert_int_equal(tw_wheel_count(wheel), 0);
    assert_int_equal(storm.fired + storm.cancelled, storm.n + storm.again);
    for (unsigned i = 0; i < storm.n; i++)
        assert_int_not_equal(storm.ones[i].state, WAITS);
    print_message("%s: %u fired, %u cancelled; the latest came %.3f ms late\n", kind.name, storm.fired,
                  storm.cancelled, (double)storm.late_max_ns / 1e6);
    assert_true(waits > 0);
    free(storm.ones);
}

/* ---- a turn ---------------------------------------------------------------------------------------------- */

enum { CROWD = 800, BUDGET = 16 };
static struct tw_timer crowd[CROWD];
static unsigned count, since, since_max, served;
static bool watched;

/* The descriptor stays readable: every turn of the loop comes here. */
static void on_served(void)
{
    served++;
    since = 0;
}

static void on_crowd(void *arg, struct tw_timer *timer)
{
    (void)arg;
    assert_ptr_equal(timer, &crowd[count]);
    count++;
    since++;
    since_max = since > since_max ? since : since_max;
    if (count == CROWD) {
        if (watched)
            kind.unwatch(base);
        done();
    }
}

static void watch_always(void)
{
    const uint64_t one = 1;
    assert_int_equal(write(fd, &one, sizeof one), sizeof one);
    count = since = since_max = served = 0;
    watched = true;
    kind.watch(base, fd, on_served);
}

static void file_crowd(void)
{
    memset(crowd, 0, sizeof crowd);
    uint64_t due_ns = tw_loop_now(loop) + 20 * MS;
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(tw_loop_add_at(loop, &crowd[i], due_ns), 0);
}

static void test_a_turn_is_bounded_and_other_events_come_in_between(void **state)
{
    (void)state;
    attach(on_crowd, BUDGET);
    watch_always();
    file_crowd();
    kind.run(base);
    assert_int_equal(count, CROWD);
    assert_in_range(since_max, 1, 2 * BUDGET); /* twice: when a loop changes whom it calls first */
    assert_true(served >= CROWD / BUDGET / 2);
}

/* The loop does not sleep between two turns either: each wait returns at once, and there is one for each
 * turn. */
static void test_the_rest_follows_at_once_when_nothing_else_happens(void **state)
{
    (void)state;
    attach(on_crowd, BUDGET);
    count = 0;
    watched = false;
    file_crowd();
    waits = sets = 0;
    kind.run(base);
    assert_int_equal(count, CROWD);
    assert_in_range(waits, CROWD / BUDGET - 1, 2 * CROWD / BUDGET + 8);
    assert_in_range(sets, 0, 4); /* not one for each turn */
}

/* ---- setting the loop's timer ---------------------------------------------------------------------------- */

static struct tw_timer far, near;
static uint64_t near_ns;

static void add_near(void)
{
    uint64_t taken;
    assert_int_equal(read(fd, &taken, sizeof taken), sizeof taken);
    kind.unwatch(base);
    near_ns = clock_now() + 20 * MS;
    assert_int_equal(tw_loop_add_at(loop, &near, near_ns), 0);
}

static void on_near(void *arg, struct tw_timer *timer)
{
    (void)arg;
    assert_ptr_equal(timer, &near);
    assert_true(clock_now() >= near_ns);
    assert_true(tw_loop_cancel(loop, &far));
    done();
}

static void test_an_earlier_timer_comes_first(void **state)
{
    (void)state;
    const uint64_t one = 1;
    memset(&far, 0, sizeof far);
    memset(&near, 0, sizeof near);
    attach(on_near, 0);
    assert_int_equal(tw_loop_add_in(loop, &far, UINT64_C(300000000000)), 0);
    assert_int_equal(write(fd, &one, sizeof one), sizeof one);
    kind.watch(base, fd, add_near);
    kind.run(base);
    assert_int_equal(tw_wheel_count(wheel), 0);
}

static uint64_t late_min_ns;

/* The loops note the time when a turn begins: a timer that is counted from there after a long callback is
 * early, and a sleep that is counted from there ends too late. */
static void after_long(void *arg, struct tw_timer *timer)
{
    (void)arg;
    uint64_t now_ns = clock_now();
    assert_true(now_ns >= near_ns);
    if (count > 0 && now_ns - near_ns < late_min_ns)
        late_min_ns = now_ns - near_ns;
    if (++count == 8) {
        done();
        return;
    }
    for (uint64_t end_ns = clock_now() + 15 * MS; clock_now() < end_ns;)
        ;
    near_ns = clock_now() + 3 * MS + 700 * US;
    assert_int_equal(tw_loop_add_at(loop, timer, near_ns), 0);
}

static void test_after_a_long_callback_nothing_is_early_or_late_or_spins(void **state)
{
    (void)state;
    memset(&near, 0, sizeof near);
    count = 0;
    attach(after_long, 0);
    near_ns = clock_now();
    assert_int_equal(tw_loop_add_in(loop, &near, 0), 0);
    late_min_ns = UINT64_MAX;
    waits = 0;
    kind.run(base);
    assert_int_equal(count, 8);
    assert_in_range(late_min_ns, 0, 10 * MS); /* of seven, as the machine has other things to do */
    assert_in_range(waits, 7, 8 + 5);         /* one for each, with some for the loop itself */
}

static void stop_watching(void)
{
    uint64_t taken;
    assert_int_equal(read(fd, &taken, sizeof taken), sizeof taken);
    kind.unwatch(base);
    kind.stop(base);
}

static void never(void *arg, struct tw_timer *timer)
{
    (void)arg;
    (void)timer;
    fail_msg("%s", "a far timer has fired");
}

static unsigned events_seen;

static void see_event(void)
{
    events_seen += count > 0;
}

/* Takes longer than until it is to be called again, and sets the loop's timer anew. */
static bool overworked(void)
{
    for (uint64_t end_ns = clock_now() + 2 * MS; clock_now() < end_ns;)
        ;
    tw_loop_cancel(loop, &far);
    assert_int_equal(tw_loop_add_in(loop, &far, UINT64_C(5000000000)), 0);
    if (++count < 20)
        return true;
    kind.unwatch(base);
    tw_loop_cancel(loop, &far);
    return false;
}

static void test_a_timer_of_the_loops_own_that_takes_too_long_lets_events_in(void **state)
{
    (void)state;
    const uint64_t one = 1;
    if (kind.often == NULL)
        return;
    memset(&far, 0, sizeof far);
    count = events_seen = 0;
    attach(never, 0);
    assert_int_equal(write(fd, &one, sizeof one), sizeof one);
    kind.watch(base, fd, see_event);
    kind.often(base, overworked);
    kind.run(base);
    assert_int_equal(count, 20);
    assert_true(events_seen >= 10); /* between two calls, which are always due */
}

/* Runs the loop for a third of a second, in which it should sleep. */
static void sleep_in_loop(void)
{
    pthread_t thread;
    void *result;
    kind.watch(base, fd, stop_watching);
    assert_int_equal(pthread_create(&thread, NULL, raise_later, NULL), 0);
    waits = 0;
    kind.run(base);
    pthread_join(thread, &result);
    assert_null(result);
    assert_in_range(waits, 1, 6);
}

static void test_far_deadlines_let_the_loop_sleep(void **state)
{
    (void)state;
    const uint64_t day_ns = UINT64_C(86400000000000);
    const uint64_t far_ns[] = {UINT64_MAX,  UINT64_MAX / 2, 365 * 100 * day_ns,
                               50 * day_ns, 25 * day_ns,    day_ns / 24};
    static struct tw_timer timers[sizeof far_ns / sizeof far_ns[0]];
    attach(never, 0);
    for (size_t i = 0; i < sizeof far_ns / sizeof far_ns[0]; i++) {
        assert_int_equal(tw_loop_add_in(loop, &timers[i], far_ns[i]), 0);
        if (i == 2 || i == 5)
            sleep_in_loop();
    }
    assert_int_equal(tw_wheel_count(wheel), sizeof far_ns / sizeof far_ns[0]);
}

/* ---- the end --------------------------------------------------------------------------------------------- */

static void cancel_far(void *arg, struct tw_timer *timer)
{
    (void)arg;
    (void)timer;
    assert_true(tw_loop_cancel(loop, &far));
    done();
}

static void test_a_loop_ends_when_nothing_is_pending(void **state)
{
    (void)state;
    memset(&far, 0, sizeof far);
    memset(&near, 0, sizeof near);
    attach(cancel_far, 0);
    assert_int_equal(tw_loop_add_in(loop, &far, UINT64_C(300000000000)), 0);
    assert_int_equal(tw_loop_add_in(loop, &near, 10 * MS), 0);
    kind.run(base);
    assert_int_equal(tw_wheel_count(wheel), 0);
    if (!kind.ends)
        return;
    kind.run(base);
    assert_int_equal(tw_loop_add_in(loop, &far, UINT64_C(300000000000)), 0);
    assert_true(tw_loop_cancel(loop, &far));
    kind.run(base); /* cancelled outside of the loop */
    assert_int_equal(tw_loop_add_in(loop, &near, MS), 0);
    assert_int_equal(tw_loop_add_in(loop, &far, UINT64_C(300000000000)), 0);
    kind.run(base); /* and it starts again */
    assert_false(tw_timer_pending(&near));
}

static void detach_at_third(void *arg, struct tw_timer *timer)
{
    (void)arg;
    assert_ptr_equal(timer, &crowd[count]);
    if (++count != 3)
        return;
    tw_loop_free(loop);
    loop = NULL;
    kind.owner(NULL, NULL);
    done();
}

static void go_on(void *arg, struct tw_timer *timer)
{
    (void)arg;
    assert_ptr_equal(timer, &crowd[count]);
    if (++count == 10)
        done();
}

static void test_a_wheel_is_taken_out_in_a_callback_and_put_in_again(void **state)
{
    (void)state;
    memset(crowd, 0, sizeof crowd);
    count = 0;
    attach(detach_at_third, 0);
    for (int i = 0; i < 10; i++)
        assert_int_equal(tw_loop_add_in(loop, &crowd[i], 2 * MS), 0);
    kind.run(base);
    assert_int_equal(count, 3);
    assert_int_equal(tw_wheel_count(wheel), 7);
    assert_true(tw_timer_pending(&crowd[9]));
    assert_null(tw_wheel_check(wheel));
    attach(go_on, 0);
    kind.run(base);
    assert_int_equal(count, 10);
}

static void test_a_wheel_is_taken_out_with_timers_pending(void **state)
{
    (void)state;
    memset(&far, 0, sizeof far);
    attach(never, 0);
    assert_int_equal(tw_loop_add_in(loop, &far, UINT64_C(300000000000)), 0);
    tw_loop_free(loop);
    loop = NULL;
    kind.owner(NULL, NULL);
    assert_true(tw_timer_pending(&far));
    if (kind.ends)
        kind.run(base);
}

/* The first callback runs the loop until the second one stops it; the third stops the outer one. */
static void run_inside(void *arg, struct tw_timer *timer)
{
    (void)arg;
    assert_ptr_equal(timer, &crowd[count]);
    if (++count > 1) {
        kind.stop(base);
        return;
    }
    kind.run(base);
    assert_int_equal(count, 2);
    assert_int_equal(tw_loop_add_in(loop, &crowd[2], 5 * MS), 0);
}

static void test_a_callback_runs_the_loop(void **state)
{
    (void)state;
    if (!kind.nests)
        skip();
    memset(crowd, 0, sizeof crowd);
    count = 0;
    attach(run_inside, 0);
    assert_int_equal(tw_loop_add_in(loop, &crowd[0], 5 * MS), 0);
    assert_int_equal(tw_loop_add_in(loop, &crowd[1], 25 * MS), 0);
    kind.run(base);
    assert_int_equal(count, 3);
}

/* ---- failures -------------------------------------------------------------------------------------------- */

static unsigned descriptors(void)
{
    unsigned n = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder) != NULL)
        n++;
    closedir(folder);
    return n;
}

static bool is_empty(void)
{
    return kind.empty == NULL || kind.empty(base);
}

static void nothing(void *arg, struct tw_sched *sched, uint64_t id)
{
    (void)arg;
    (void)sched;
    (void)id;
}

static void test_bad_options_are_refused(void **state)
{
    (void)state;
    struct tw_loop_options options = {.due = never, .tick_ns = 999};
    struct tw_sched_options given = {.workers = 1};
    struct tw_executor *executor = NULL;
    unsigned before = descriptors();
    assert_int_equal(kind.attach(&loop, base, wheel, &options), TW_EINVAL);
    assert_null(loop);
    assert_int_equal(descriptors(), before);
    assert_int_equal(kind.executor(&executor, base, 0, &given), TW_EINVAL);
    given.execute = nothing;
    given.workers = 0;
    assert_int_equal(kind.executor(&executor, base, 0, &given), TW_EINVAL);
    assert_null(executor);
    assert_true(given.execute == nothing);
    assert_true(is_empty());
}

static bool is_failure(int error)
{
    return error == TW_ENOMEM || error == TW_ESYSTEM;
}

/* With a timer in the wheel, which sets the loop's timer at once. */
static void test_a_wheel_that_cannot_be_attached_leaves_nothing(void **state)
{
    (void)state;
    struct tw_loop_options options = {.due = never};
    unsigned before = descriptors(), failures = 0;
    memset(&far, 0, sizeof far);
    tw_wheel_add_in(wheel, &far, 1000000);
    for (int error = TW_ENOMEM; error != 0; failures++) {
        fail_at = failures + 1;
        error = kind.attach(&loop, base, wheel, &options);
        assert_true(error == 0 || is_failure(error));
        assert_true((error == 0) == (loop != NULL));
        assert_true(error == 0 || (descriptors() == before && is_empty()));
    }
    assert_true(failures > 1 && fail_at > 0);
    fail_at = 0;
    assert_true(tw_timer_pending(&far));
}

static void test_an_executor_that_cannot_be_made_leaves_nothing(void **state)
{
    (void)state;
    struct tw_sched_options options = {0};
    struct tw_executor *executor = NULL;
    assert_int_equal(kind.executor(&executor, base, 0, &options), 0); /* what a loop opens once stays open */
    tw_executor_free(executor);
    if (kind.ends)
        kind.run(base); /* now it is gone from libuv as well */
    executor = NULL;
    options.execute = NULL;
    unsigned before = descriptors(), failures = 0;
    for (int error = TW_ENOMEM; error != 0; failures++) {
        fail_at = failures + 1;
        error = kind.executor(&executor, base, 0, &options);
        assert_true(error == 0 || is_failure(error));
        assert_true((error == 0) == (executor != NULL) && (error == 0) == (options.execute != NULL));
        assert_true(error == 0 || (descriptors() == before && is_empty()));
    }
    assert_true(failures > 1 && fail_at > 0);
    fail_at = 0;
    tw_executor_free(executor);
}

/* ---- a scheduler in a loop ------------------------------------------------------------------------------- */

enum { THREADS = 4 };
static struct tw_sched *sched;
static struct tw_executor *executor;
static atomic_uint tasks_left;
static unsigned task_count;

static void make_sched(uint32_t budget)
{
    struct tw_sched_options options = {.clock = TW_SCHED_MONOTONIC};
    assert_int_equal(kind.executor(&executor, base, budget, &options), 0);
    assert_int_equal(tw_sched_new(&sched, &options), 0);
    kind.owner(loop, executor);
}

static void end_sched(void)
{
    tw_sched_free(sched);
    tw_executor_free(executor);
    kind.owner(loop, NULL);
    if (kind.ends)
        kind.run(base); /* nothing keeps it */
}

static void on_task(struct tw_sched *of, const struct tw_task *task)
{
    assert_ptr_equal(of, sched);
    assert_true(pthread_equal(pthread_self(), loop_thread));
    assert_true(clock_now() >= task->due_ns);
    if (atomic_fetch_sub(&tasks_left, 1) == 1)
        kind.stop(base);
}

static void *add_tasks(void *arg)
{
    struct rng rng;
    rng_init(&rng, (uintptr_t)arg);
    for (unsigned i = 0; i < task_count; i++)
        if (tw_sched_after(sched, rng_below(&rng, 300 * MS), on_task, NULL, NULL) != 0)
            return sched;
    return NULL;
}

static void test_a_schedulers_callbacks_run_on_the_loops_thread(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    void *result;
    task_count = run_scaled(5000);
    make_sched(0);
    atomic_store(&tasks_left, THREADS * task_count);
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_tasks, (void *)(i + 1)), 0);
    kind.run(base);
    assert_int_equal(atomic_load(&tasks_left), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &result);
        assert_null(result);
    }
    end_sched();
}

static void on_crowd_task(struct tw_sched *of, const struct tw_task *task)
{
    (void)of;
    assert_int_equal((uintptr_t)task->arg, count);
    count++;
    since++;
    since_max = since > since_max ? since : since_max;
    if (count == CROWD) {
        kind.unwatch(base);
        kind.stop(base);
    }
}

static void test_a_schedulers_callbacks_are_bounded_and_in_order(void **state)
{
    (void)state;
    const struct timespec delay = {.tv_nsec = 50 * MS};
    make_sched(BUDGET);
    watch_always();
    uint64_t due_ns = tw_sched_now(sched) + 10 * MS;
    for (uintptr_t i = 0; i < CROWD; i++)
        assert_int_equal(tw_sched_at(sched, due_ns, on_crowd_task, (void *)i, NULL), 0);
    nanosleep(&delay, NULL); /* so that they wait for the loop, all of them */
    kind.run(base);
    assert_int_equal(count, CROWD);
    assert_in_range(since_max, 1, 2 * BUDGET);
    end_sched();
}

static void stop_loop(void *arg, struct tw_timer *timer)
{
    (void)arg;
    (void)timer;
    kind.stop(base);
}

/* After a timer and a task, so that both have rung. */
static void test_an_idle_executor_lets_the_loop_sleep(void **state)
{
    (void)state;
    memset(&near, 0, sizeof near);
    make_sched(0);
    attach(stop_loop, 0);
    kind.owner(loop, executor);
    assert_int_equal(tw_loop_add_in(loop, &near, MS), 0);
    kind.run(base);
    atomic_store(&tasks_left, 1);
    assert_int_equal(tw_sched_after(sched, MS, on_task, NULL, NULL), 0);
    kind.run(base);
    sleep_in_loop();
    end_sched();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(test_timers_are_not_early_not_missed_and_in_order),
        TEST(test_a_turn_is_bounded_and_other_events_come_in_between),
        TEST(test_the_rest_follows_at_once_when_nothing_else_happens),
        TEST(test_an_earlier_timer_comes_first),
        TEST(test_after_a_long_callback_nothing_is_early_or_late_or_spins),
        TEST(test_a_timer_of_the_loops_own_that_takes_too_long_lets_events_in),
        TEST(test_far_deadlines_let_the_loop_sleep),
        TEST(test_a_loop_ends_when_nothing_is_pending),
        TEST(test_a_wheel_is_taken_out_in_a_callback_and_put_in_again),
        TEST(test_a_wheel_is_taken_out_with_timers_pending),
        TEST(test_a_callback_runs_the_loop),
        TEST(test_bad_options_are_refused),
        TEST(test_a_wheel_that_cannot_be_attached_leaves_nothing),
        TEST(test_an_executor_that_cannot_be_made_leaves_nothing),
        TEST(test_a_schedulers_callbacks_run_on_the_loops_thread),
        TEST(test_a_schedulers_callbacks_are_bounded_and_in_order),
        TEST(test_an_idle_executor_lets_the_loop_sleep),
    };
    alarm(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
