/* SPDX-License-Identifier: MIT
 *
 * The short paths of add, move, cancel, poll and next_bound. The library compiles its functions from them, and
 * wheel.c has the long paths. A file that defines TW_WHEEL_INLINE, and includes the tickwheel.h that
 * tools/amalgamate makes, compiles them into its own code. Example:
 *
 *     #define TW_WHEEL_INLINE
 *     #include "tickwheel.h"
 *
 *     struct request {
 *         struct tw_timer timeout;
 *     };
 *
 *     void answered(struct tw_wheel *wheel, struct request *request)
 *     {
 *         tw_wheel_cancel(wheel, &request->timeout); // some twenty instructions, and no call
 *     }
 *
 * The short path of an add files a timer on level 0 or level 1, with TW_GEOMETRY_DEFAULT within about 65,000
 * ticks from now. A move to a later tick stores it, a cancel takes the timer out, and a poll before the next
 * work notes the time. In all other cases these functions call the library (tw__wheel_add_long and its like).
 * So does each call through a pointer to a function, and each call in a program that is compiled without gcc or
 * clang.
 *
 * Adds and moves have short paths on wheels that reach the end of time, whose two lowest levels have spans and
 * slots that are powers of two, and only until tw_wheel_next_exact() is first called. TW_GEOMETRY_DEFAULT is
 * such a wheel; TW_GEOMETRY_SMALL, TW_GEOMETRY_CLOCK, TW_GEOMETRY_SIMPLE, TW_GEOMETRY_HASHED and
 * TW_GEOMETRY_GROWING are not. While the wheel knows its earliest deadline, a cancel calls the library too.
 *
 * Each add makes the program about 350 bytes larger, and each other call 30 to 65 bytes. docs/benchmark.md has
 * the gain.
 *
 * A file that is compiled with -DTW_DEBUG=1 asserts the duties of the caller in these bodies. With -DTW_DEBUG=2
 * it calls the library.
 *
 * Rejected: to install this header. A program that reads and writes a wheel by itself runs with one layout of a
 * wheel alone, and no later version could change the layout.
 */
#ifndef TW_WHEEL_WHEEL_H
#define TW_WHEEL_WHEEL_H

#include <tickwheel/wheel.h>

#if defined(__GNUC__) && (defined(TW__WHEEL_LIBRARY) || !defined(TW_DEBUG) || TW_DEBUG < 2)
#include "layout.h"

#ifdef TW__WHEEL_ASSERTS
#pragma push_macro("NDEBUG")
#undef NDEBUG
#include <assert.h>
#endif

/* With TW_DEBUG 2 the library checks the whole wheel after each call that changes it. */
#if defined(TW_DEBUG) && TW_DEBUG > 1
#define TW__WHEEL_REQUIRES_WALK(condition) assert(condition)
#define TW__WHEEL_AUDITED(wheel, result)                                                                       \
    __extension__({                                                                                            \
        __auto_type audited_ = (result);                                                                       \
        assert(tw_wheel_check(wheel) == NULL);                                                                 \
        audited_;                                                                                              \
    })
#else
#define TW__WHEEL_REQUIRES_WALK(condition) ((void)0)
#define TW__WHEEL_AUDITED(wheel, result) (result)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the long paths, in the library ---------------------------------------------------------------------- */

/* A slot without a mark has received a timer: marks the slot. Returns 0. */
int tw__wheel_mark_long(struct tw_wheel *wheel, const struct tw__wheel_slot *slot);
/* Files a timer that goes neither to level 0 nor to level 1, or whose deadline has to be checked. */
int tw__wheel_add_long(struct tw_wheel *wheel, struct tw_timer *timer, uint64_t deadline);
/* Moves a timer in every way but the short one. */
int tw__wheel_move_long(struct tw_wheel *wheel, struct tw_timer *timer, uint64_t deadline);
/* Cancels a pending timer of a wheel that remembers its earliest deadline. */
bool tw__wheel_cancel_long(struct tw_wheel *wheel, struct tw_timer *timer);
/* A poll at a tick that may have work. */
struct tw_timer *tw__wheel_poll_long(struct tw_wheel *wheel, uint64_t now);
/* Finds the next tick with work, and notes it for the calls to come. */
uint64_t tw__wheel_next_bound_long(struct tw_wheel *wheel);

/* ---- the short paths ------------------------------------------------------------------------------------- */

TW__WHEEL_HOT uint32_t tw__wheel_line_of(const struct tw_timer *timer)
{
    return (uint32_t)((uintptr_t)timer >> TW__WHEEL_LINE_SHIFT);
}

TW__WHEEL_HOT uint64_t tw__wheel_hint_of(uint32_t line, uint32_t filed_on)
{
    return (uint64_t)line << TW__WHEEL_HINT_LINE | filed_on;
}

/* Two words that lie side by side, for one store instead of two. */
typedef uint64_t tw__wheel_pair __attribute__((vector_size(16), aligned(8), may_alias));

/* Appends a timer to a slot of a level; `trail` is the length of the slot's trail less 1. Returns 0. Memory is
 * the limit of this path: each pair is one store, the link, the deadline with the hint, and the slot's tail
 * with its count. */
TW__WHEEL_HOT int tw__wheel_append(struct tw_wheel *w, struct tw__wheel_slot *slot, uint32_t level,
                                   uint32_t trail, struct tw_timer *timer, uint64_t deadline)
{
    struct tw__link *head = &slot->list.link, *tail = head->prev;
    uint64_t filed = slot->list.filed;
    if (tail == head)
        filed = filed != 0; /* cancels have emptied the slot: it counts anew, and keeps its mark */
    uint64_t step = filed & trail;
    uint64_t hint = tw__wheel_hint_of(slot->trail[step], level);
    slot->trail[step] = tw__wheel_line_of(timer);
#if UINTPTR_MAX == UINT64_MAX
    tw__wheel_pair link = {(uintptr_t)head, (uintptr_t)tail}, due = {deadline, hint};
    tw__wheel_pair end = {(uintptr_t)&timer->link, filed + 1};
    *(tw__wheel_pair *)(void *)&timer->link = link;
    *(tw__wheel_pair *)(void *)&timer->deadline = due;
    *(tw__wheel_pair *)(void *)&head->prev = end;
#else
    timer->link.next = head;
    timer->link.prev = tail;
    timer->deadline = deadline;
    timer->hint = hint;
    head->prev = &timer->link;
    slot->list.filed = filed + 1;
#endif
    tail->next = &timer->link;
    return TW__WHEEL_UNLIKELY(filed == 0) ? tw__wheel_mark_long(w, slot) : 0;
}

/* True when a deadline needs no check at the door: it lies after now, the wheel accepts any deadline and keeps
 * no bounds, and no division is needed on the lowest two levels. */
TW__WHEEL_HOT bool tw__wheel_gate_open(const struct tw_wheel *w, uint64_t deadline)
{
    return deadline > w->gate;
}

TW__WHEEL_HOT int tw__wheel_add(struct tw_wheel *w, struct tw_timer *timer, uint64_t deadline)
{
    tw__wheel_may_change(w);
    TW__WHEEL_REQUIRES(timer != NULL);
    TW__WHEEL_REQUIRES(!tw__wheel_pending(timer));
    if (TW__WHEEL_LIKELY(deadline - w->express < w->express_ticks)) {
        w->count++;
        return tw__wheel_append(w, tw__wheel_slot_far(&w->ring[1], deadline), 1, TW__WHEEL_TRAIL_FAR - 1, timer,
                                deadline);
    }
    if (tw__wheel_gate_open(w, deadline) && deadline <= w->ring[0].last) {
        w->count++;
        return tw__wheel_append(w, tw__wheel_slot_near(&w->ring[0], deadline), 0, TW__WHEEL_TRAIL_NEAR - 1,
                                timer, deadline);
    }
    return tw__wheel_add_long(w, timer, deadline);
}

TW__WHEEL_HOT int tw__wheel_move(struct tw_wheel *w, struct tw_timer *timer, uint64_t deadline)
{
    tw__wheel_may_change(w);
    TW__WHEEL_REQUIRES(timer != NULL);
    TW__WHEEL_REQUIRES_WALK(!tw__wheel_pending(timer) || tw__wheel_has(w, timer));
    if (TW__WHEEL_LIKELY(tw__wheel_gate_open(w, deadline) && tw__wheel_pending(timer) &&
                         deadline > timer->deadline && tw__wheel_filed_on(timer) != 0)) {
        timer->deadline = deadline;
        timer->hint |= TW__WHEEL_PUSHED;
        return 0;
    }
    return tw__wheel_move_long(w, timer, deadline);
}

/* Takes a timer out of its list for good. The list may be empty then, and keeps its mark. */
TW__WHEEL_HOT void tw__wheel_take_out(struct tw_wheel *w, struct tw_timer *timer)
{
    struct tw__link *prev = timer->link.prev, *next = timer->link.next;
    timer->link.next = NULL;
    prev->next = next;
    next->prev = prev;
    w->count--;
}

TW__WHEEL_HOT bool tw__wheel_cancel(struct tw_wheel *w, struct tw_timer *timer)
{
    tw__wheel_may_change(w);
    TW__WHEEL_REQUIRES(timer != NULL);
    TW__WHEEL_REQUIRES_WALK(!tw__wheel_pending(timer) || tw__wheel_has(w, timer));
    if (!tw__wheel_pending(timer))
        return false;
    if (TW__WHEEL_UNLIKELY(w->exact != 0))
        return tw__wheel_cancel_long(w, timer);
    tw__wheel_take_out(w, timer);
    return true;
}

TW__WHEEL_HOT struct tw_timer *tw__wheel_poll(struct tw_wheel *w, uint64_t now)
{
    tw__wheel_may_change(w);
    if (now >= w->quiet)
        return tw__wheel_poll_long(w, now);
    if (now > w->now) {
        w->gate = now | w->shut;
        w->now = w->cur = now;
    }
    return NULL;
}

TW__WHEEL_HOT uint64_t tw__wheel_next_bound(const struct tw_wheel *w)
{
    TW__WHEEL_REQUIRES(w != NULL);
    if (w->now < w->quiet && !tw__wheel_list_empty(w->event_list))
        return w->event;
    /* Remembering the event changes nothing that a caller can see, so the wheel is const for the caller. */
    return tw__wheel_next_bound_long((struct tw_wheel *)(uintptr_t)w);
}

TW__WHEEL_HOT uint64_t tw__wheel_after(const struct tw_wheel *w, uint64_t delay)
{
    TW__WHEEL_REQUIRES(w != NULL);
    return delay > UINT64_MAX - w->now ? UINT64_MAX : w->now + delay;
}

/* ---- the functions of wheel.h ---------------------------------------------------------------------------- */

#ifndef TW__WHEEL_LIBRARY
TW__WHEEL_HOT int tw_wheel_add_at(struct tw_wheel *wheel, struct tw_timer *timer, uint64_t deadline)
{
    return tw__wheel_add(wheel, timer, deadline);
}

TW__WHEEL_HOT int tw_wheel_add_in(struct tw_wheel *wheel, struct tw_timer *timer, uint64_t delay)
{
    return tw__wheel_add(wheel, timer, tw__wheel_after(wheel, delay));
}

TW__WHEEL_HOT int tw_wheel_move_at(struct tw_wheel *wheel, struct tw_timer *timer, uint64_t deadline)
{
    return tw__wheel_move(wheel, timer, deadline);
}

TW__WHEEL_HOT int tw_wheel_move_in(struct tw_wheel *wheel, struct tw_timer *timer, uint64_t delay)
{
    return tw__wheel_move(wheel, timer, tw__wheel_after(wheel, delay));
}

TW__WHEEL_HOT bool tw_wheel_cancel(struct tw_wheel *wheel, struct tw_timer *timer)
{
    return tw__wheel_cancel(wheel, timer);
}

TW__WHEEL_HOT struct tw_timer *tw_wheel_poll(struct tw_wheel *wheel, uint64_t now)
{
    return tw__wheel_poll(wheel, now);
}

TW__WHEEL_HOT uint64_t tw_wheel_next_bound(const struct tw_wheel *wheel)
{
    return tw__wheel_next_bound(wheel);
}

#endif

#ifdef __cplusplus
}
#endif

#ifdef TW__WHEEL_ASSERTS
#pragma pop_macro("NDEBUG")
#include <assert.h>
#endif

#endif
#endif
