/* SPDX-License-Identifier: MIT
 *
 * The small arithmetic that the wheel's files share. The structures are in layout.h, the essay is in wheel.c.
 */
#ifndef TW_WHEEL_INTERNAL_H
#define TW_WHEEL_INTERNAL_H

#if !defined(__GNUC__)
#error "tickwheel needs gcc or clang: count-leading-zeros and prefetch are theirs"
#endif
#include "private.h"

#define TW__WHEEL_LIBRARY /* wheel.h: this is the library itself */
#include "layout.h"

#include <base/assert.h>
#include <base/list.h>
#include <base/saturate.h>
#include <limits.h>
#include <string.h>

_Static_assert((TW__WHEEL_TRAIL_NEAR & (TW__WHEEL_TRAIL_NEAR - 1)) == 0 &&
                   (TW__WHEEL_TRAIL_FAR & (TW__WHEEL_TRAIL_FAR - 1)) == 0,
               "trails");
_Static_assert(sizeof(struct tw__wheel_list) + TW__WHEEL_TRAIL_NEAR * sizeof(uint32_t) <=
                   1 << TW__WHEEL_STRIDE_NEAR,
               "near slot");
_Static_assert(sizeof(struct tw__wheel_list) + TW__WHEEL_TRAIL_FAR * sizeof(uint32_t) <=
                   1 << TW__WHEEL_STRIDE_FAR,
               "far slot");

/* ---- arithmetic ---------------------------------------------------------------------------------------- */

/* The slot number of a tick: the tick divided by the span. */
static inline uint64_t tw__wheel_slot_number(const struct tw__wheel_ring *ring, uint64_t tick)
{
    return ring->shift != TW__WHEEL_NO_SHIFT ? tick >> ring->shift : tick / ring->span;
}

/* The index of a slot number in the ring. */
static inline uint32_t tw__wheel_slot_index(const struct tw__wheel_ring *ring, uint64_t number)
{
    return ring->mask != 0 ? (uint32_t)number & ring->mask : (uint32_t)(number % ring->count);
}

/* The slot with an index. */
static inline struct tw__wheel_slot *tw__wheel_slot_at(const struct tw__wheel_ring *ring, uint32_t index)
{
    return (struct tw__wheel_slot *)(void *)(ring->slots + ((size_t)index << ring->stride));
}

/* The slot of a tick. One rotation to the right does two steps at once: the division by the span and the
 * multiplication by the bytes of a slot. Its distance may be negative. Example: span 512 (shift 9), slots of
 * 128 bytes (stride 7): the tick is rotated by 9 - 7 = 2. */
static inline struct tw__wheel_slot *tw__wheel_slot_for(const struct tw__wheel_ring *ring, uint64_t tick)
{
    if (TW__WHEEL_UNLIKELY(ring->reach == 0))
        return tw__wheel_slot_at(ring, (uint32_t)(tick / ring->span % ring->count));
    uint64_t rotated = tick >> ring->rotate | tick << (-ring->rotate & 63);
    return (struct tw__wheel_slot *)(void *)(ring->slots + (rotated & ring->reach));
}

/* The ring of the lowest level whose window holds the deadline. Requires: some level's window does. Most
 * timers are on the lowest two levels; for the others, `guess` gives the level at which to start, by the
 * length of the delay. */
static inline struct tw__wheel_ring *tw__wheel_ring_for(struct tw_wheel *w, uint64_t deadline)
{
    struct tw__wheel_ring *ring = w->ring;
    if (deadline > ring->last && deadline > (++ring)->last) {
        ring = &w->ring[w->guess[(63 - __builtin_clzll(deadline - w->cur)) / 2]];
        while (deadline > ring->last)
            ring++;
    }
    return ring;
}

static inline void tw__wheel_list_init(struct tw__wheel_list *list, uint32_t id)
{
    tw__list_init(&list->link);
    list->filed = 0;
    list->id = id;
}

/* Whether any timer that was filed for now is pending. */
static inline bool tw__wheel_any_now(const struct tw_wheel *w)
{
    return !tw__wheel_list_empty(&w->soon) || !tw__wheel_list_empty(&w->next_drain);
}

static inline struct tw_timer *tw__wheel_timer_of(struct tw__link *link)
{
    return (struct tw_timer *)link;
}

/* Prefetches a cache line. The line's upper address bits are those of the timer `near`. */
static inline void tw__wheel_prefetch_line(const struct tw_timer *near, uint32_t line)
{
    uint64_t far = (uint64_t)(uintptr_t)near >> TW__WHEEL_LINE_SHIFT >> TW__WHEEL_LINE_BITS;
    TW__WHEEL_PREFETCH((uintptr_t)((far << TW__WHEEL_LINE_BITS | line) << TW__WHEEL_LINE_SHIFT));
}

/* The line that a timer's hint names. */
static inline uint32_t tw__wheel_hint_line(const struct tw_timer *timer)
{
    return (uint32_t)(timer->hint >> TW__WHEEL_HINT_LINE);
}

static inline void tw__wheel_prefetch_hint(const struct tw_timer *timer)
{
    tw__wheel_prefetch_line(timer, tw__wheel_hint_line(timer));
}

/* Forgets the earliest deadline when a timer with that deadline leaves the wheel or is moved later. In
 * programs that never ask for the earliest deadline, this reads the wheel and not the timer, whose cache line
 * may not have arrived yet. */
static inline void tw__wheel_exact_left(struct tw_wheel *w, uint64_t deadline)
{
    if (TW__WHEEL_UNLIKELY(w->exact != 0) && deadline == w->exact)
        w->exact = 0;
}

/* Opens or closes the gate and the express lane, after `now` or the windows have moved. */
static inline void tw__wheel_open(struct tw_wheel *w)
{
    uint64_t before = w->now > w->ring[0].last ? w->now : w->ring[0].last;
    bool closed = w->door || w->asked;
    w->shut = closed ? UINT64_MAX : 0;
    w->gate = w->now | w->shut;
    w->express = before + 1;
    w->express_ticks = closed || w->ring[1].last < before ? 0 : w->ring[1].last - before;
}

/* ---- bitmaps ------------------------------------------------------------------------------------------- */

static inline void tw__wheel_bit_set(struct tw__wheel_ring *ring, uint32_t i)
{
    ring->bits[i >> 6] |= (uint64_t)1 << (i & 63);
    ring->sums[i >> 12] |= (uint64_t)1 << (i >> 6 & 63);
    ring->top |= (uint64_t)1 << (i >> 12);
}

static inline void tw__wheel_bit_clear(struct tw__wheel_ring *ring, uint32_t i)
{
    if ((ring->bits[i >> 6] &= ~((uint64_t)1 << (i & 63))) != 0)
        return;
    if ((ring->sums[i >> 12] &= ~((uint64_t)1 << (i >> 6 & 63))) != 0)
        return;
    ring->top &= ~((uint64_t)1 << (i >> 12));
}

static inline bool tw__wheel_bit_test(const struct tw__wheel_ring *ring, uint32_t i)
{
    return ring->bits[i >> 6] >> (i & 63) & 1;
}

/* Takes the mark of a slot away. Requires: the slot is marked and empty. */
static inline void tw__wheel_unmark(struct tw_wheel *w, struct tw__wheel_slot *slot)
{
    uint32_t level = slot->list.id >> TW__WHEEL_ID_BITS;
    slot->list.filed = 0;
    tw__wheel_bit_clear(&w->ring[level], slot->list.id & TW__WHEEL_ID_DRAIN);
    if (w->ring[level].top == 0)
        w->occupied &= ~((uint64_t)1 << level);
}

/* The bits of a word above position i. */
static inline uint64_t tw__wheel_bits_above(uint64_t word, uint32_t i)
{
    return i == 63 ? 0 : word & ~(uint64_t)0 << (i + 1);
}

/* The distance from slot `from` to the next marked slot, going round the ring; 0 if `from` is marked.
 * Requires: a slot of the ring is marked. */
static inline uint32_t tw__wheel_distance(const struct tw__wheel_ring *ring, uint32_t from)
{
    uint32_t word = from >> 6, sum = from >> 12;
    uint64_t found = ring->bits[word] >> (from & 63);
    if (found != 0)
        return (uint32_t)__builtin_ctzll(found);
    if ((found = tw__wheel_bits_above(ring->sums[sum], word & 63)) == 0) {
        if ((found = tw__wheel_bits_above(ring->top, sum)) == 0)
            found = ring->top; /* no marked slot up to the end: go round */
        sum = (uint32_t)__builtin_ctzll(found);
        found = ring->sums[sum];
    }
    word = sum << 6 | (uint32_t)__builtin_ctzll(found);
    uint32_t i = word << 6 | (uint32_t)__builtin_ctzll(ring->bits[word]);
    return i >= from ? i - from : i + ring->count - from;
}

/* The index `distance` slots after slot `from`, going round the ring. Requires: less than a whole round. */
static inline uint32_t tw__wheel_onward(const struct tw__wheel_ring *ring, uint32_t from, uint32_t distance)
{
    uint32_t index = from + distance;
    return index < ring->count ? index : index - ring->count;
}

/* The distance from slot `from` to the next slot that holds timers, going round the ring; TW__WHEEL_NO_SLOT
 * if no slot of the level does. Takes away the marks of the empty slots on the way, and subtracts their number
 * from *steps. When *steps is 0, the answer is the next marked slot, empty or not. A mark is a note of the
 * wheel for itself, so the wheel is const for callers that only look at it. */
static inline uint32_t tw__wheel_search(const struct tw_wheel *wheel, uint32_t level, uint32_t from,
                                        uint32_t *steps)
{
    struct tw_wheel *w = (struct tw_wheel *)(uintptr_t)wheel;
    struct tw__wheel_ring *ring = &w->ring[level];
    for (; ring->top != 0; --*steps) {
        uint32_t distance = tw__wheel_distance(ring, from);
        struct tw__wheel_slot *slot = tw__wheel_slot_at(ring, tw__wheel_onward(ring, from, distance));
        if (*steps == 0 || !tw__wheel_list_empty(&slot->list))
            return distance;
        tw__wheel_unmark(w, slot);
    }
    return TW__WHEEL_NO_SLOT;
}

/* The same, through as many empty slots as there are. */
static inline uint32_t tw__wheel_next_slot(const struct tw_wheel *wheel, uint32_t level, uint32_t from)
{
    uint32_t steps = UINT32_MAX;
    return tw__wheel_search(wheel, level, from, &steps);
}

/* ---- bounds ---------------------------------------------------------------------------------------------- */

/* Lowers a bound to a deadline, if the deadline is earlier. */
static inline void tw__wheel_lower(uint64_t *bound, uint64_t deadline)
{
    if (deadline < *bound)
        *bound = deadline;
}

/* The earliest deadline in the due list. If a timer in it is due by `cur`, the first such timer has it:
 * timers that were pushed back are due later. */
static inline uint64_t tw__wheel_earliest_due(const struct tw_wheel *w)
{
    uint64_t earliest = TW_NEVER;
    for (struct tw__link *link = w->due.link.next; link != &w->due.link && earliest > w->cur; link = link->next)
        if (tw__wheel_timer_of(link)->deadline < earliest)
            earliest = tw__wheel_timer_of(link)->deadline;
    return earliest;
}

/* ---- shared between the files of the wheel --------------------------------------------------------------- */

/* Sets up the ring of a level over memory for its slots, bitmaps and, if `bounded`, bounds; returns the first
 * byte after them. */
void *tw__wheel_ring_init(struct tw__wheel_ring *ring, uint32_t level, const struct tw_level *shape,
                          bool bounded, void *memory);
/* Bytes for the slots, bitmaps and bounds of a level. */
size_t tw__wheel_ring_size(uint32_t level, uint32_t slots, bool bounded);
/* Computes lookahead, upper spans, nesting, guesses and windows from the levels that there are. */
void tw__wheel_relate(struct tw_wheel *wheel);
/* Moves a timer from its list to the front of another one. */
void tw__wheel_list_move(struct tw_wheel *wheel, struct tw_timer *timer, struct tw__wheel_list *to);
/* Takes a timer that was pushed back out of its list and files it where it belongs now. */
void tw__wheel_refile(struct tw_wheel *wheel, struct tw_timer *timer);
/* Updates bounds for a timer with this deadline, which is about to be linked to the front, or to the end, of
 * the slot of its deadline. */
void tw__wheel_bound_filed(struct tw_wheel *wheel, uint64_t deadline, bool front);
/* Updates bounds for a timer on this level that was moved to an earlier deadline in its slot. */
void tw__wheel_bound_lowered(struct tw_wheel *wheel, uint32_t level, uint64_t deadline);
/* Visits the timers of one list until a visit returns a value other than 0. Returns that value, or 0. */
int tw__wheel_list_visit(const struct tw__wheel_list *list, tw_wheel_visit_fn *visit, void *arg);

#endif
