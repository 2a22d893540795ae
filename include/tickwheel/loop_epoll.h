/* SPDX-License-Identifier: MIT
 *
 * tickwheel/loop_epoll.h - a wheel in a loop around epoll_wait(). Linux.
 *
 * Where the loop is the program's own, the wheel's next work is the timeout of its epoll_wait(), to the
 * millisecond:
 *     tw_loop_epoll_wait_new(&loop, epoll_fd, wheel, &options);
 *     n = tw_loop_epoll_wait(loop, events, room, -1);
 *     for each of the n events: ...
 * It takes no system call more. Where the loop is somebody else's, or a tick is shorter, it is a timerfd in the
 * set:
 *     tw_loop_epoll_new(&loop, epoll_fd, wheel, &options);
 *     n = epoll_wait(epoll_fd, events, room, -1);
 *     for each of the n events:
 *         if (!tw_loop_epoll_handle(loop, &events[i])) ... it is one of the program's own
 *
 * The event carries the tw_loop in data.ptr, and is told from others by that: the program's events may carry
 * pointers, or descriptors in a union that was zeroed before. A due callback that frees what an event still to
 * come points to, a connection that has been idle, must see to that: let the loop's event be the last that is
 * handled, or use tw_loop_epoll_wait(), which fires before it fetches events. The conventions are those of
 * loop.h.
 */
#ifndef TICKWHEEL_LOOP_EPOLL_H
#define TICKWHEEL_LOOP_EPOLL_H

#include <tickwheel/loop.h>

#ifdef __cplusplus
extern "C" {
#endif

struct epoll_event;

/* Attaches a wheel to an epoll set. tw_loop_free() takes it out again; do so before the set is closed. Returns:
 * 0, and the loop in *loop; TW_EINVAL (tw_loop_check() says why, or `epoll_fd` is no epoll set); TW_ENOMEM;
 * TW_ESYSTEM (no descriptor left, or the set takes no more). */
int tw_loop_epoll_new(struct tw_loop **loop, int epoll_fd, struct tw_wheel *wheel,
                      const struct tw_loop_options *options);

/* If the event is the loop's, fires what is due. After tw_loop_free() the event may still be among those that
 * the program is going through: pass NULL as `loop` then, which owns no event. Returns: whether it was the
 * loop's. The loop may be gone then, as callbacks may free it. In callback: yes, from an epoll_wait() inside a
 * callback: due timers go on firing there. */
bool tw_loop_epoll_handle(struct tw_loop *loop, const struct epoll_event *event);

/* Attaches a wheel to the program's own waits on an epoll set, in which nothing is put.
 * Returns: 0, and the loop in *loop; TW_EINVAL (tw_loop_check() says why); TW_ENOMEM. */
int tw_loop_epoll_wait_new(struct tw_loop **loop, int epoll_fd, struct tw_wheel *wheel,
                           const struct tw_loop_options *options);

/* Waits as epoll_wait() does, and fires what is due: before it waits, and then it only asks for events, or when
 * none has come by the time. Requires: tw_loop_epoll_wait_new() made the loop. Returns: as epoll_wait(); 0 also
 * when the wheel had work and there are no events, be it that nothing fired: its timer was cancelled, or
 * refiled. The loop may be gone then, as callbacks may free it. In callback: yes. */
int tw_loop_epoll_wait(struct tw_loop *loop, struct epoll_event *events, int room, int timeout_ms);

/* Makes an executor for a scheduler whose callbacks are to run in this loop. Returns: as tw_loop_epoll_new();
 * TW_EINVAL also as tw_executor_new(). */
int tw_executor_epoll_new(struct tw_executor **executor, int epoll_fd, uint32_t budget,
                          struct tw_sched_options *options);

/* If the event is the executor's, runs what is due. `executor` may be NULL. Returns: whether it was. */
bool tw_executor_epoll_handle(struct tw_executor *executor, const struct epoll_event *event);

#ifdef __cplusplus
}
#endif

#endif
