/* SPDX-License-Identifier: MIT
 *
 * tickwheel/loop_epoll.h - a wheel in a loop around epoll_wait(). Linux.
 *
 * There are two ways:
 *   - tw_loop_epoll_wait(), where the loop is the program's own. The wheel's next work is the timeout of its
 *     epoll_wait(), to the millisecond. This takes no additional system call.
 *   - tw_loop_epoll_handle(), where the loop is somebody else's, or a tick is shorter than a millisecond. The
 *     wheel's next work is a timerfd in the epoll set.
 *
 * A complete program of the first way. Link it with libtickwheel_epoll:
 * `cc first.c $(pkg-config --cflags --libs tickwheel_epoll)`.
 *
 *     #include <sys/epoll.h>
 *     #include <tickwheel/loop_epoll.h>
 *
 *     static void due(void *arg, struct tw_timer *timer)
 *     {
 *         (void)timer;
 *         *(int *)arg = 1;
 *     }
 *
 *     int main(void)
 *     {
 *         int fired = 0, epoll_fd = epoll_create1(0); // the program's own descriptors are in this set, too
 *         struct tw_loop_options options = {.due = due, .arg = &fired};
 *         struct tw_wheel *wheel;
 *         struct tw_loop *loop;
 *         struct tw_timer timer = {0};
 *         if (tw_wheel_new(&wheel, NULL, 0) != 0 ||
 *             tw_loop_epoll_wait_new(&loop, epoll_fd, wheel, &options) != 0)
 *             return 1;
 *         tw_loop_add_in(loop, &timer, TW_MS(20));
 *         struct epoll_event events[64];
 *         while (!fired)
 *             tw_loop_epoll_wait(loop, events, 64, -1); // returns how many events are the program's own
 *         tw_loop_free(loop);
 *         tw_wheel_free(wheel);
 *     }
 *
 * The second way:
 *
 *     tw_loop_epoll_new(&loop, epoll_fd, wheel, &options);
 *     n = epoll_wait(epoll_fd, events, room, -1);
 *     for (i = 0; i < n; i++)
 *         if (!tw_loop_epoll_handle(loop, &events[i]))
 *             ... // it is one of the program's own
 *
 * The event of the timerfd carries the tw_loop in data.ptr, by which the adapter recognizes it. So the
 * program's own events may carry pointers, or descriptors in a union that the program zeroed before.
 *
 * A due callback may free an object to which an event still to come points. Example: it closes a connection
 * that has been idle, and the next event of the same epoll_wait() is a read of that connection. The program
 * must not use such an event. Either it handles the loop's event last, or it uses tw_loop_epoll_wait(), which
 * fires timers before it fetches events. The conventions are those of loop.h.
 *
 * fork(): the epoll set of a child is its parent's. A child that goes on frees its loops and executors, closes
 * `epoll_fd`, makes a set of its own, and attaches the wheel to it.
 */
#ifndef TICKWHEEL_LOOP_EPOLL_H
#define TICKWHEEL_LOOP_EPOLL_H

#include <tickwheel/loop.h>

#ifdef __cplusplus
extern "C" {
#endif

struct epoll_event;

/* Attaches a wheel to an epoll set, as tw_loop_new(). The caller frees the tw_loop before it closes the set.
 * Returns: 0, TW_ENOMEM, or another error.
 *   - TW_EINVAL: as tw_loop_new(), or `epoll_fd` is not an epoll set.
 *   - TW_ESYSTEM: the system has no descriptor left, or the set takes no more. */
int tw_loop_epoll_new(struct tw_loop **loop, int epoll_fd, struct tw_wheel *wheel,
                      const struct tw_loop_options *options);

/* If the event is the loop's, fires the timers that are due. After tw_loop_free() the event may still be
 * among the events that the program is handling. The program then passes NULL as `loop`, which owns no event.
 * Returns: true if the event was the loop's. The loop may be gone then, because a callback may free it.
 * In callback: yes, also with an event from an epoll_wait() there. Due timers go on firing. */
bool tw_loop_epoll_handle(struct tw_loop *loop, const struct epoll_event *event);

/* Attaches a wheel to the program's own waits on an epoll set, as tw_loop_new(). Nothing is put into the set.
 * Returns: 0, TW_EINVAL or TW_ENOMEM. */
int tw_loop_epoll_wait_new(struct tw_loop **loop, int epoll_fd, struct tw_wheel *wheel,
                           const struct tw_loop_options *options);

/* Waits as epoll_wait() does, with room for `room` events and at most `timeout_ms` milliseconds (-1: no
 * limit), and fires the timers that are due.
 *   - The wheel has work at the call: it fires due timers first, and then fetches events without waiting.
 *   - The wheel has no work yet: it waits for events, at most until the wheel's next work. If no event has
 *     come by then, it fires due timers.
 * Requires: tw_loop_epoll_wait_new() made the loop.
 * Returns: as epoll_wait(). 0 also when the wheel had work and there are no events. Then perhaps no timer
 * fired: it was cancelled, or only refiled. The loop may be gone then, because a callback may free it.
 * In callback: yes, although it runs the loop. */
int tw_loop_epoll_wait(struct tw_loop *loop, struct epoll_event *events, int room, int timeout_ms);

/* Makes an executor for this loop, as tw_executor_new(). The executor's event carries the tw_executor in
 * data.ptr.
 * Returns: as tw_loop_epoll_new(), and TW_EINVAL also as tw_executor_new(). */
int tw_executor_epoll_new(struct tw_executor **executor, int epoll_fd, uint32_t budget);

/* If the event is the executor's, runs callbacks that are due. `executor` may be NULL.
 * Returns: true if the event was the executor's. */
bool tw_executor_epoll_handle(struct tw_executor *executor, const struct epoll_event *event);

#ifdef __cplusplus
}
#endif

#endif
