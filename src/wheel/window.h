/* SPDX-License-Identifier: MIT
 *
 * Windows and events: which deadlines each level holds while the wheel stands on `cur`, and the next tick
 * with work. Both follow from the rings alone. The essay is in wheel.c.
 */
#ifndef TW_WHEEL_WINDOW_H
#define TW_WHEEL_WINDOW_H

#include "internal.h"

/* The end of a level's own window, without the levels above: the window covers the current upper slot and the
 * next `ahead` upper slots. Example: level 0 of the default geometry (upper 512, ahead 1) at tick 2,100: the
 * current upper slot is 4, so the window ends at (4 + 1 + 1) * 512 - 1 = 3,071. */
static inline uint64_t tw__wheel_window_end(const struct tw_wheel *w, uint32_t level)
{
    const struct tw__wheel_ring *ring = &w->ring[level];
    if (ring->upper == 0)
        return UINT64_MAX;
    uint64_t current = level + 1 < w->levels ? tw__wheel_slot_number(ring + 1, w->cur) : w->cur / ring->upper;
    uint64_t end = current + ring->ahead + 1, ticks;
    if (__builtin_mul_overflow(end, ring->upper, &ticks))
        return UINT64_MAX;
    return ticks - 1;
}

/* Moves the windows to where the wheel stands. */
static inline void tw__wheel_windows(struct tw_wheel *w)
{
    uint64_t above = UINT64_MAX;
    for (uint32_t level = w->levels; level-- > 0;) {
        struct tw__wheel_ring *ring = &w->ring[level];
        uint64_t own = tw__wheel_window_end(w, level);
        ring->last = above = own < above ? own : above;
        if (level + 1 < w->levels)
            ring[1].head = tw__wheel_slot_number(ring + 1, above) + 1;
    }
    uint64_t unit = w->ring[0].upper;
    w->boundary = unit == 0 ? UINT64_MAX : tw__mul_saturating(w->cur / unit + 1, unit);
    tw__wheel_open(w);
}

/* The first tick at which a level's own window, without the levels above, holds `tick`. Requires: `tick` is
 * the start of an upper slot. Example: by default, level 0 holds tick 2,560 from tick 2,048 on. */
static inline uint64_t tw__wheel_enter_own(const struct tw__wheel_ring *ring, uint64_t tick)
{
    if (ring->upper == 0)
        return 0;
    uint64_t slot = tick / ring->upper;
    return slot < ring->ahead ? 0 : (slot - ring->ahead) * ring->upper;
}

/* The first tick at which a level's window holds `tick`. */
static inline uint64_t tw__wheel_enter(const struct tw_wheel *w, uint32_t level, uint64_t tick)
{
    uint64_t first = tw__wheel_enter_own(&w->ring[level], tick);
    if (w->nested)
        return first;
    for (level++; level < w->levels; level++) {
        uint64_t other = tw__wheel_enter_own(&w->ring[level], tick);
        if (other > first)
            first = other;
    }
    return first;
}

/* The slot number from which a level's events are searched. */
static inline uint64_t tw__wheel_ring_from(const struct tw_wheel *w, uint32_t level)
{
    return level == 0 ? w->cur + 1 : w->ring[level].head;
}

/* The tick at which a slot of a level is opened (level 0) or starts to be refiled. */
static inline uint64_t tw__wheel_slot_event(const struct tw_wheel *w, uint32_t level, uint64_t number)
{
    TW_ASSERT(number <= UINT64_MAX / w->ring[level].span);
    return level == 0 ? number : tw__wheel_enter(w, level - 1, number * w->ring[level].span);
}

/* A list with work, and the tick of that work. */
struct tw__wheel_work {
    uint64_t tick;
    struct tw__wheel_list *list;
};

/* Replaces the work found so far by the work of a list, if that comes before. */
static inline void tw__wheel_found(struct tw__wheel_work *next, uint64_t tick, struct tw__wheel_list *list)
{
    if (tick < next->tick)
        *next = (struct tw__wheel_work){tick, list};
}

/* Finds the next work of a level's ring: of the next slot that tw__wheel_search() finds with *steps. Requires:
 * a slot of the level is marked. */
static inline void tw__wheel_find_slot(struct tw_wheel *w, uint32_t level, uint32_t *steps,
                                       struct tw__wheel_work *next)
{
    const struct tw__wheel_ring *ring = &w->ring[level];
    uint64_t from = tw__wheel_ring_from(w, level);
    uint32_t index = tw__wheel_slot_index(ring, from);
    uint32_t distance = tw__wheel_search(w, level, index, steps);
    if (distance == TW__WHEEL_NO_SLOT)
        return;
    if (level == 0 && w->cur == UINT64_MAX)
        return; /* the timers there were filed when time had ended already */
    TW_ASSERT(distance <= UINT64_MAX / ring->span - from); /* no jump passes a mark, so each has a turn */
    tw__wheel_found(next, tw__wheel_slot_event(w, level, from + distance),
                    &tw__wheel_slot_at(ring, tw__wheel_onward(ring, index, distance))->list);
}

/* The tick at which a slot that is being refiled needs the next wake-up: for its next chunk of about
 * TW__WHEEL_WAKE_CHUNK timers, and at the latest when it must be empty. */
static inline uint64_t tw__wheel_drain_event(const struct tw_wheel *w, const struct tw__wheel_ring *ring)
{
    uint64_t ticks = TW__WHEEL_WAKE_CHUNK / ring->pace;
    uint64_t chunk = tw__add_saturating(w->cur, ticks == 0 ? 1 : ticks);
    return chunk < ring->finish ? chunk : ring->finish;
}

/* Finds the next tick with work and the list that has it. On the way it takes the marks of at most `steps`
 * slots that cancels have emptied; after that the answer may be the work of one more such slot. A poll does not
 * mind, and does not wait for the memory of slots: it searches with 0 steps. On a top that does not reach the
 * end of time the answer depends on `cur` (skip_rounds()), so it is not kept. */
static inline void tw__wheel_find_event(struct tw_wheel *w, uint32_t steps)
{
    struct tw__wheel_work next = {TW_NEVER, &w->due};
    for (uint64_t levels = w->occupied; levels != 0; levels &= levels - 1)
        tw__wheel_find_slot(w, (uint32_t)__builtin_ctzll(levels), &steps, &next);
    for (uint64_t levels = w->active; levels != 0; levels &= levels - 1) {
        struct tw__wheel_ring *ring = &w->ring[__builtin_ctzll(levels)];
        if (tw__wheel_list_empty(&ring->drain))
            w->active &= ~((uint64_t)1 << ring->level);
        else
            tw__wheel_found(&next, tw__wheel_drain_event(w, ring), &ring->drain);
    }
    w->event = next.tick;
    w->event_list = w->round != 0 ? &w->due : next.list;
}

#endif
