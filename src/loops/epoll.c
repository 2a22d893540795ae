/* SPDX-License-Identifier: MIT
 *
 * epoll. There are two ways to attach a wheel:
 *   - tw_loop_epoll_new(): a timerfd in the caller's epoll set, level-triggered.
 *   - tw_loop_epoll_wait_new(): no descriptor. The program calls tw_loop_epoll_wait() instead of
 *     epoll_wait(), and the wheel's next work shortens the timeout.
 *
 * The timerfd is never read. Setting it to another time makes it unreadable. When a pass ends while more
 * timers are due, the timerfd is left alone: it stays readable, and the next epoll_wait() reports it again,
 * with all other events. So a wake-up costs two system calls besides the epoll_wait() itself: one sets the
 * timerfd, and one asks whether this is a child of fork(). A wake-up that leaves due timers for the next one
 * costs none.
 */
#include <tickwheel/loop_epoll.h>
#include <tickwheel/sched.h>

#include "descriptors.h"

#include <base/assert.h>
#include <stdlib.h>
#include <sys/epoll.h>

/* A descriptor of this adapter in the caller's epoll set. */
struct epoll_descriptor {
    struct tw__loop_descriptor own;
    int epoll_fd;
    void *owner; /* the tw_loop or tw_executor */
};

/* In a child, the epoll set is its parent's. */
static void watched_close(void *arg)
{
    struct epoll_descriptor *watched = arg;
    if (!tw__loop_is_inherited(&watched->own))
        epoll_ctl(watched->epoll_fd, EPOLL_CTL_DEL, watched->own.fd, NULL);
    close(watched->own.fd);
    free(watched);
}

/* Wraps a descriptor, which is not in the epoll set yet. Takes the descriptor over in any case: a failure
 * closes it. Returns: 0; TW_ENOMEM; TW_ESYSTEM: there is no descriptor, because the system had none left. */
static int watched_new(struct epoll_descriptor **made, int epoll_fd, struct tw__loop_descriptor own)
{
    if (own.fd < 0)
        return TW_ESYSTEM;
    struct epoll_descriptor *watched = malloc(sizeof *watched);
    if (watched == NULL) {
        close(own.fd);
        return TW_ENOMEM;
    }
    *watched = (struct epoll_descriptor){own, epoll_fd, NULL};
    *made = watched;
    return 0;
}

static struct epoll_event event_of(const struct epoll_descriptor *watched)
{
    return (struct epoll_event){.events = EPOLLIN, .data.ptr = watched->owner};
}

/* Puts a descriptor into the epoll set. Its events carry watched->owner. Returns: 0; TW_EINVAL: `epoll_fd` is
 * not an epoll set, the caller's mistake; TW_ESYSTEM: any other failure, such as a full set. */
static int watched_start(const struct epoll_descriptor *watched)
{
    struct epoll_event event = event_of(watched);
    if (epoll_ctl(watched->epoll_fd, EPOLL_CTL_ADD, watched->own.fd, &event) == 0)
        return 0;
    return errno == EBADF || errno == EINVAL ? TW_EINVAL : TW_ESYSTEM;
}

static bool is_of(const struct epoll_event *event, const void *owner)
{
    TW_ASSERT(event != NULL);
    return owner != NULL && event->data.ptr == owner;
}

/* ---- a wheel --------------------------------------------------------------------------------------------- */

static int timer_arm(void *arg, uint64_t at_ns, uint64_t now_ns)
{
    struct epoll_descriptor *watched = arg;
    if (tw__loop_timer_stays(&watched->own, at_ns, now_ns))
        return 0;
    bool good = !tw__loop_is_inherited(&watched->own) ||
                (tw__loop_timer_adopt(&watched->own) && watched_start(watched) == 0);
    if (good)
        tw__loop_timer_set(&watched->own, at_ns);
    return good ? 0 : TW_ESYSTEM;
}

/* The timerfd is in the set before the loop is made, because freeing a loop moves its wheel. */
int tw_loop_epoll_new(struct tw_loop **made, int epoll_fd, struct tw_wheel *wheel,
                      const struct tw_loop_options *options)
{
    static const struct tw_loop_driver driver = {.arm = timer_arm, .close = watched_close};
    struct epoll_descriptor *watched;
    TW_ASSERT(made != NULL);
    int error = watched_new(&watched, epoll_fd, tw__loop_timer_new());
    if (error != 0)
        return error;
    error = watched_start(watched);
    if (error == 0)
        error = tw_loop_new(made, wheel, options, &driver, watched);
    if (error != 0) {
        watched_close(watched);
        return error;
    }
    watched->owner = *made;
    struct epoll_event event = event_of(watched);
    epoll_ctl(epoll_fd, EPOLL_CTL_MOD, watched->own.fd, &event);
    return 0;
}

bool tw_loop_epoll_handle(struct tw_loop *loop, const struct epoll_event *event)
{
    if (!is_of(event, loop))
        return false;
    tw_loop_turn(loop);
    return true;
}

/* ---- a wheel, by timeout --------------------------------------------------------------------------------- */

struct waiter {
    const struct tw_loop_driver *driver; /* tells a waiter from the driver arguments of other loops */
    int epoll_fd;
    uint64_t at_ns;
    bool *gone; /* of the innermost wait under way: set to true when the loop is freed */
};

static int waiter_arm(void *arg, uint64_t at_ns, uint64_t now_ns)
{
    struct waiter *waiter = arg;
    (void)now_ns;
    waiter->at_ns = at_ns;
    return 0;
}

static void waiter_close(void *arg)
{
    const struct waiter *waiter = arg;
    if (waiter->gone != NULL)
        *waiter->gone = true;
    free(arg);
}

static const struct tw_loop_driver waiter_driver = {.arm = waiter_arm, .close = waiter_close};

int tw_loop_epoll_wait_new(struct tw_loop **loop, int epoll_fd, struct tw_wheel *wheel,
                           const struct tw_loop_options *options)
{
    struct waiter *waiter = malloc(sizeof *waiter);
    if (waiter == NULL)
        return TW_ENOMEM;
    *waiter = (struct waiter){&waiter_driver, epoll_fd, UINT64_MAX, NULL};
    int error = tw_loop_new(loop, wheel, options, &waiter_driver, waiter);
    if (error != 0)
        waiter_close(waiter);
    return error;
}

/* Runs a pass if its time has come. Returns whether it ran one, so timers may have fired; sets *gone to
 * whether a callback has freed the loop. */
static bool ring(struct tw_loop *loop, struct waiter *waiter, bool *gone)
{
    bool *outer = waiter->gone;
    *gone = false;
    if (waiter->at_ns == UINT64_MAX || waiter->at_ns > tw_loop_now(loop))
        return false;
    waiter->gone = gone;
    tw_loop_turn(loop);
    if (!*gone)
        waiter->gone = outer;
    else if (outer != NULL)
        *outer = true;
    return true;
}

/* The shorter of the caller's timeout and the time until the wheel's next work, in milliseconds, rounded up.
 * The latter is a day at most. */
static int timeout_of(const struct tw_loop *loop, const struct waiter *waiter, int timeout_ms)
{
    enum { NS_PER_MS = 1000000 };
    if (waiter->at_ns == UINT64_MAX)
        return timeout_ms;
    uint64_t now_ns = tw_loop_now(loop);
    uint64_t ns = waiter->at_ns > now_ns ? waiter->at_ns - now_ns : 0;
    int ms = (int)((ns + NS_PER_MS - 1) / NS_PER_MS); /* a day at most */
    return timeout_ms >= 0 && timeout_ms < ms ? timeout_ms : ms;
}

int tw_loop_epoll_wait(struct tw_loop *loop, struct epoll_event *events, int room, int timeout_ms)
{
    struct waiter *waiter = tw_loop_driver_arg(loop);
    bool gone;
    TW_ASSERT(waiter->driver == &waiter_driver);
    int epoll_fd = waiter->epoll_fd;
    if (ring(loop, waiter, &gone))
        return epoll_wait(epoll_fd, events, room, 0);
    int n = epoll_wait(epoll_fd, events, room, timeout_of(loop, waiter, timeout_ms));
    if (n == 0)
        ring(loop, waiter, &gone);
    return n;
}

/* ---- a scheduler ----------------------------------------------------------------------------------------- */

static void event_wake(void *arg)
{
    const struct epoll_descriptor *watched = arg;
    tw__loop_event_raise(watched->own.fd);
}

static void event_clear(void *arg)
{
    const struct epoll_descriptor *watched = arg;
    tw__loop_event_lower(watched->own.fd);
}

int tw_executor_epoll_new(struct tw_executor **made, int epoll_fd, uint32_t budget)
{
    static const struct tw_executor_driver driver = {
        .wake = event_wake, .clear = event_clear, .close = watched_close};
    struct epoll_descriptor *watched;
    struct tw_executor *executor;
    TW_ASSERT(made != NULL);
    int error = watched_new(&watched, epoll_fd, tw__loop_event_new());
    if (error != 0)
        return error;
    error = tw_executor_new(&executor, budget, &driver, watched);
    if (error != 0) {
        watched_close(watched);
        return error;
    }
    watched->owner = executor;
    error = watched_start(watched);
    if (error != 0) {
        tw_executor_free(executor);
        return error;
    }
    *made = executor;
    return 0;
}

bool tw_executor_epoll_handle(struct tw_executor *executor, const struct epoll_event *event)
{
    if (!is_of(event, executor))
        return false;
    tw_executor_turn(executor);
    return true;
}
