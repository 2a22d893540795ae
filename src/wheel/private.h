/* SPDX-License-Identifier: MIT
 *
 * Calls of the wheel for the scheduler and the module. They are not part of wheel.h, so they may change with
 * any version: libtickwheel_sched.so needs the libtickwheel.so of its own version for them.
 */
#ifndef TW_WHEEL_PRIVATE_H
#define TW_WHEEL_PRIVATE_H

#include <tickwheel/wheel.h>

/* A source of memory for levels. `arg` is the argument of tw__wheel_on_grow().
 *   - `old` is NULL: the hook returns a block of `size` bytes, aligned as malloc aligns, or NULL if there is
 *     no memory.
 *   - `old` is not NULL: the hook takes that block back. The wheel ignores its return value. */
typedef void *tw__grow_fn(void *arg, void *old, size_t size);

/* Sets the hook from which TW_OVERFLOW_GROW gets its memory. A wheel of tw_wheel_init() has no hook before
 * this, and a wheel of tw_wheel_new() has one that uses malloc. */
void tw__wheel_on_grow(struct tw_wheel *wheel, tw__grow_fn *grow, void *arg);

/* As tw_wheel_visit_until(), but looks at no more than *budget timers, and subtracts each from *budget.
 * Timers that turn out to be due later count too.
 * Returns: true if all timers that are due by `tick` were visited; false if the budget was used up first, or
 * `visit` ended the visit.
 * Cost: O(levels + occupied slots that start at or before `tick` + *budget). */
bool tw__wheel_visit_budget(const struct tw_wheel *wheel, uint64_t tick, uint32_t *budget,
                            tw_wheel_visit_fn *visit, void *arg);

/* Prefetches the timer's neighbours, to which tw_wheel_cancel() writes. A caller that has other work to do
 * before it cancels does not wait for that memory afterwards. Changes nothing, and may be called for a timer
 * that is not pending.
 * Cost: O(1), without a wait. */
static inline void tw__timer_prefetch(const struct tw_timer *timer)
{
    __builtin_prefetch(timer->link.next, 1);
    __builtin_prefetch(timer->link.prev, 1);
}

#endif
