/* SPDX-License-Identifier: MIT
 *
 * libevent: an event on a timerfd.
 *
 * libevent's own timeouts are not exact, for two reasons. libevent measures them on CLOCK_MONOTONIC_COARSE
 * unless the base was made otherwise, and the adapter cannot ask a base how it was made: that makes them
 * early or late by up to a jiffy (four milliseconds or more). And libevent counts them from the time that it
 * noted at the beginning of its iteration: that makes them early by the time that callbacks have taken since.
 * A timerfd is exact. As in epoll.c it is never read: setting it to another time makes it unreadable.
 *
 * An event that is added keeps the base running, so the event is added only while the timer is set.
 */
#include <tickwheel/loop_event.h>

#include "descriptors.h"

#include <base/assert.h>
#include <event2/event.h>
#include <stdlib.h>

/* An event on a descriptor of this adapter. */
struct event_descriptor {
    struct tw__loop_descriptor own;
    struct event *event;
    bool added;
    struct tw_loop *loop;
    struct tw_executor *executor;
};

/* event_free() takes the event out of the base, from inside its callback as well. In a child the base may
 * still use the epoll set of the parent, and a descriptor that is closed first is not taken out of any set. */
static void watched_close(void *arg)
{
    struct event_descriptor *watched = arg;
    bool inherited = tw__loop_is_inherited(&watched->own);
    if (inherited)
        close(watched->own.fd);
    if (watched->event != NULL)
        event_free(watched->event);
    if (!inherited)
        close(watched->own.fd);
    free(watched);
}

/* Makes an event that is not added yet. Takes the descriptor over in any case: a failure closes it. Returns:
 * 0; TW_ENOMEM; TW_ESYSTEM: there is no descriptor, because the system had none left. */
static int watched_new(struct event_descriptor **made, struct event_base *base, struct tw__loop_descriptor own,
                       event_callback_fn called)
{
    if (own.fd < 0)
        return TW_ESYSTEM;
    struct event_descriptor *watched = calloc(1, sizeof *watched);
    if (watched == NULL) {
        close(own.fd);
        return TW_ENOMEM;
    }
    watched->own = own;
    watched->event = event_new(base, own.fd, EV_READ | EV_PERSIST, called, watched);
    if (watched->event == NULL) {
        watched_close(watched);
        return TW_ENOMEM;
    }
    *made = watched;
    return 0;
}

static int watched_add(struct event_descriptor *watched)
{
    if (!watched->added && event_add(watched->event, NULL) != 0)
        return TW_ESYSTEM;
    watched->added = true;
    return 0;
}

/* ---- a wheel --------------------------------------------------------------------------------------------- */

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    const struct event_descriptor *watched = arg;
    (void)fd;
    (void)what;
    tw_loop_turn(watched->loop);
}

/* For a child. event_del() finds the new timerfd, which is in no epoll set yet, and not the parent's. */
static bool adopt(struct event_descriptor *watched)
{
    bool made = tw__loop_timer_adopt(&watched->own);
    if (made) {
        event_del(watched->event);
        watched->added = false;
    }
    return made;
}

static int timer_arm(void *arg, uint64_t at_ns, uint64_t now_ns)
{
    struct event_descriptor *watched = arg;
    if (tw__loop_timer_stays(&watched->own, at_ns, now_ns))
        return 0;
    if ((tw__loop_is_inherited(&watched->own) && !adopt(watched)) ||
        (at_ns != UINT64_MAX && watched_add(watched) != 0))
        return TW_ESYSTEM;
    if (at_ns == UINT64_MAX && watched->added)
        watched->added = event_del(watched->event) != 0;
    tw__loop_timer_set(&watched->own, at_ns);
    return 0;
}

int tw_loop_event_new(struct tw_loop **made, struct event_base *base, struct tw_wheel *wheel,
                      const struct tw_loop_options *options)
{
    static const struct tw_loop_driver driver = {.arm = timer_arm, .close = watched_close, .lingers = true};
    struct event_descriptor *watched;
    TW_ASSERT(made != NULL && base != NULL);
    int error = watched_new(&watched, base, tw__loop_timer_new(), on_timer);
    if (error != 0)
        return error;
    error = tw_loop_new(&watched->loop, wheel, options, &driver, watched);
    if (error != 0)
        watched_close(watched);
    else
        *made = watched->loop;
    return error;
}

/* ---- a scheduler ----------------------------------------------------------------------------------------- */

static void on_event(evutil_socket_t fd, short what, void *arg)
{
    const struct event_descriptor *watched = arg;
    (void)fd;
    (void)what;
    tw_executor_turn(watched->executor);
}

static void event_wake(void *arg)
{
    const struct event_descriptor *watched = arg;
    tw__loop_event_raise(watched->own.fd);
}

static void event_clear(void *arg)
{
    const struct event_descriptor *watched = arg;
    tw__loop_event_lower(watched->own.fd);
}

int tw_executor_event_new(struct tw_executor **made, struct event_base *base, uint32_t budget)
{
    static const struct tw_executor_driver driver = {
        .wake = event_wake, .clear = event_clear, .close = watched_close};
    struct event_descriptor *watched;
    TW_ASSERT(made != NULL && base != NULL);
    int error = watched_new(&watched, base, tw__loop_event_new(), on_event);
    if (error != 0)
        return error;
    error = watched_add(watched);
    if (error == 0)
        error = tw_executor_new(&watched->executor, budget, &driver, watched);
    if (error != 0)
        watched_close(watched);
    else
        *made = watched->executor;
    return error;
}
