/* SPDX-License-Identifier: MIT
 *
 * The wheel's own structures and the small arithmetic that its files share. The essay is in wheel.c.
 */
#ifndef TW_WHEEL_INTERNAL_H
#define TW_WHEEL_INTERNAL_H

#include <tickwheel/wheel.h>

#include <base/assert.h>
#include <base/list.h>
#include <base/saturate.h>
#include <limits.h>
#include <string.h>

#if defined(__GNUC__)
#define TW__WHEEL_PREFETCH(address) __builtin_prefetch((const void *)(address), 1)
#define TW__WHEEL_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define TW__WHEEL_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define TW__WHEEL_COLD __attribute__((noinline))
#else
#error "tickwheel needs gcc or clang: count-leading-zeros and prefetch are theirs"
#endif

enum {
    TW__WHEEL_TRAIL_NEAR =
        8, /* how many timers ahead a hint points on level 0, where timers were touched lately */
    TW__WHEEL_TRAIL_FAR = 16,  /* and on upper levels, where timers come from memory; both powers of two */
    TW__WHEEL_STRIDE_NEAR = 6, /* log2 of the bytes of a slot on level 0: one cache line */
    TW__WHEEL_STRIDE_FAR = 7,  /* and on upper levels: two cache lines */
    TW__WHEEL_SMALL_SLOT = 32, /* a slot with no more timers than this is refiled at once */
    TW__WHEEL_WAKE_CHUNK = 64, /* a sleeping caller is woken for about this many timers to refile */
    TW__WHEEL_ID_BITS = 20,    /* a list's id is its level and its index */
    TW__WHEEL_ID_DRAIN = (1 << TW__WHEEL_ID_BITS) - 1
};
#define TW__WHEEL_ID_DUE UINT32_MAX

/* The hint of a timer is one word:
 *
 *     bit 40   bits 8 to 39                               bits 0 to 7
 *     now      line: another timer's address / 64         the level it was filed on, or PUSHED
 *
 * PUSHED means that the timer's deadline was pushed back. Only the low 32 bits of the line are kept; the
 * upper bits are taken from the timer's own address. So hints work among objects in the same 256 GiB of
 * addresses; among other objects they miss. */
enum { TW__WHEEL_HINT_LINE = 8, TW__WHEEL_LINE_SHIFT = 6, TW__WHEEL_LINE_BITS = 32 };
#define TW__WHEEL_PUSHED 0xFFu
#define TW__WHEEL_HINT_NOW                                                                                     \
    ((uint64_t)1 << (TW__WHEEL_HINT_LINE + TW__WHEEL_LINE_BITS)) /* the timer was filed for now: no hint */

/* A circular list of timers: its head, and the wheel's notes about it. */
struct tw__wheel_list {
    struct tw__link link;
    uint64_t filed; /* timers filed since the wheel found it empty: at least its length; 0: no mark */
    uint32_t
        id; /* level << TW__WHEEL_ID_BITS | index of the slot, or TW__WHEEL_ID_DRAIN, or TW__WHEEL_ID_DUE */
    bool in_order; /* no timer is due before one ahead of it that was not pushed back (exact.c) */
};

/* A slot. Its list and the start of the trail share a cache line. */
struct tw__wheel_slot {
    struct tw__wheel_list list;
    uint32_t trail[]; /* the lines of the timers filed here last: the source of hints, never followed */
};
_Static_assert((TW__WHEEL_TRAIL_NEAR & (TW__WHEEL_TRAIL_NEAR - 1)) == 0 &&
                   (TW__WHEEL_TRAIL_FAR & (TW__WHEEL_TRAIL_FAR - 1)) == 0,
               "trails");
_Static_assert(sizeof(struct tw__wheel_list) + TW__WHEEL_TRAIL_NEAR * sizeof(uint32_t) <=
                   1 << TW__WHEEL_STRIDE_NEAR,
               "near slot");
_Static_assert(sizeof(struct tw__wheel_list) + TW__WHEEL_TRAIL_FAR * sizeof(uint32_t) <=
                   1 << TW__WHEEL_STRIDE_FAR,
               "far slot");

/* One ring, with the slot that is being refiled from it. */
struct tw__wheel_ring {
    _Alignas(64) uint64_t last; /* the last tick whose timers are filed here or below: the window's end */
    char *slots;                /* the ring: 1 << stride bytes a slot */
    uint32_t reach;   /* bytes of the ring less one slot when slots and span are powers of two, else 0 */
    uint8_t rotate;   /* if so, a tick rotated right by this and masked with reach is the slot's offset */
    uint8_t level;    /* its number, from 0 up */
    uint8_t trail;    /* length of a slot's trail - 1 */
    uint8_t stride;   /* log2 of the bytes of a slot */
    uint8_t shift;    /* log2 of span, or TW__WHEEL_NO_SHIFT */
    uint32_t mask;    /* slots - 1 when slots is a power of two, else 0 */
    uint32_t count;   /* slots in the ring */
    uint32_t ahead;   /* a: upper slots in the window besides the current one */
    uint64_t span;    /* ticks per slot */
    uint64_t upper;   /* ticks per slot one level up; 0 on a top that has no window */
    uint64_t *bits;   /* the mark of each slot: set if the slot holds timers, and a while after (wheel.c) */
    uint64_t *sums;   /* a bit for each word of bits that is not 0 */
    uint64_t top;     /* a bit for each word of sums that is not 0 */
    uint64_t *bound;  /* for each slot, a tick before which no timer in it is due (exact.c); NULL: not needed */
    uint64_t head;    /* the first slot number that the window below does not hold yet */
    uint64_t started; /* the first slot number whose refiling has not started: at most head */
    struct tw__wheel_list drain; /* the timers of the slot that is being refiled, taken off the ring */
    uint64_t draining;           /* the number of that slot */
    uint64_t drain_bound;        /* the bound of that slot */
    uint64_t finish;             /* the tick at which `drain` must be empty */
    uint64_t pace;               /* timers to refile per tick until then */
    uint64_t quota;              /* timers that may be refiled now, for the ticks that have passed */
    void *block;                 /* the memory of a grown level, for the grow hook */
};
enum { TW__WHEEL_NO_SHIFT = 255 };
#define TW__WHEEL_NO_SLOT UINT32_MAX

enum tw__wheel_phase {
    TW__WHEEL_SETTLED,  /* tick `cur` is done: its timers are in the due list, or were handed out already */
    TW__WHEEL_REFILING, /* tick `cur` was reached, its refiling is not finished */
    TW__WHEEL_OPENED /* tick `cur` is refiled; its slot is being sorted into due and later (one-level wheels) */
};

struct tw_wheel {
    uint64_t cur;     /* the tick that the wheel stands on: behind now only in the middle of a jump */
    uint64_t now;     /* the latest tick that the caller gave */
    uint64_t count;   /* timers pending */
    uint64_t gate;    /* later deadlines need no check at the door: now, or the end of time */
    uint64_t express; /* the first deadline that goes to level 1 without further questions (express lane) */
    uint64_t express_ticks; /* the number of such deadlines from there on; 0: none */
    uint64_t exact;         /* the earliest deadline on the rings and in `due`; 0: not known (exact.c) */
    uint64_t quiet;         /* before this tick a poll only has to note the time; 0: not known */
    uint64_t occupied;      /* a bit for each level that has a marked slot */
    uint64_t active;        /* a bit for each level with a slot being refiled, and a while after it is empty */
    uint64_t event;         /* no marked slot has work before this tick, if event_list is known */
    struct tw__wheel_list *event_list; /* the list with work at that tick; `due`: ask again; NULL: not known */
    uint64_t boundary;                 /* the next tick at which a window moves */
    uint64_t refiled;
    uint64_t near;       /* a timer that is due before this tick is not pushed back but filed again (exact.c) */
    uint64_t round;      /* ticks of a whole round of a top that does not reach the end of time, else 0 */
    uint64_t round_end;  /* the tick at which the round that is being watched ends */
    uint64_t turn_first; /* the earliest deadline filed or put back in that round */
    uint64_t range;      /* REJECT: the longest delay accepted */
    struct tw__wheel_list due;
    struct tw__wheel_list soon;       /* timers filed for now: they fire when `due` is empty */
    struct tw__wheel_list next_drain; /* timers filed for now inside a drain: `soon` of the next drain */
    uint8_t levels;
    uint8_t overflow;
    uint8_t phase;
    bool nested; /* no window ends after the window above: tw__wheel_enter() needs one term */
    bool door;   /* every deadline is checked: the wheel may refuse it, watches its rounds, or has to divide */
    bool asked;  /* tw_wheel_next_exact() has been called: bounds are kept */
    bool in_drain; /* the latest poll returned a timer, or TW_POLL_MORE */
    tw_grow_fn *grow;
    void *grow_arg;
    uint8_t guess[32]; /* half the bit length of a delay -> the lowest level that could hold it */
    bool on_heap;      /* tw_wheel_new() made it */
    uint8_t visiting;  /* nested visits under way; counted for assertions only */
    struct tw__wheel_ring ring[];
};

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

/* The same for level 0 and for level 1 of a wheel whose gate is open: no division is needed there. */
static inline struct tw__wheel_slot *tw__wheel_slot_near(const struct tw__wheel_ring *ring, uint64_t tick)
{
    return (struct tw__wheel_slot *)(void *)(ring->slots + (tick << TW__WHEEL_STRIDE_NEAR & ring->reach));
}

static inline struct tw__wheel_slot *tw__wheel_slot_far(const struct tw__wheel_ring *ring, uint64_t tick)
{
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

/* The level that a timer was filed on, or TW__WHEEL_PUSHED. */
static inline uint32_t tw__wheel_filed_on(const struct tw_timer *timer)
{
    return timer->hint & 0xFF;
}

static inline bool tw__wheel_list_empty(const struct tw__wheel_list *list)
{
    return tw__list_empty(&list->link);
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

/* Whether a slot has its mark. */
static inline bool tw__wheel_marked(const struct tw__wheel_slot *slot)
{
    return slot->list.filed != 0;
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

/* Asserts the duties of each call that changes a wheel: the wheel is not NULL, and no visit of it is under
 * way. */
static inline void tw__wheel_may_change(const struct tw_wheel *w)
{
    (void)w;
    TW_ASSERT(w != NULL);
    TW_ASSERT(w->visiting == 0);
}

/* Opens or closes the gate and the express lane, after `now` or the windows have moved. */
static inline void tw__wheel_open(struct tw_wheel *w)
{
    uint64_t before = w->now > w->ring[0].last ? w->now : w->ring[0].last;
    bool closed = w->door || w->asked;
    w->gate = closed ? UINT64_MAX : w->now;
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

/* The distance from slot `from` to the next slot that holds timers, going round the ring; TW__WHEEL_NO_SLOT
 * if no slot of the level does. Takes away the marks of the empty slots on the way. A mark is a note of the
 * wheel for itself, so the wheel is const for callers that only look at it. */
static inline uint32_t tw__wheel_next_slot(const struct tw_wheel *wheel, uint32_t level, uint32_t from)
{
    struct tw_wheel *w = (struct tw_wheel *)(uintptr_t)wheel;
    struct tw__wheel_ring *ring = &w->ring[level];
    while (ring->top != 0) {
        uint32_t distance = tw__wheel_distance(ring, from);
        struct tw__wheel_slot *slot = tw__wheel_slot_at(ring, (from + distance) % ring->count);
        if (!tw__wheel_list_empty(&slot->list))
            return distance;
        tw__wheel_unmark(w, slot);
    }
    return TW__WHEEL_NO_SLOT;
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
int tw__wheel_list_visit(const struct tw__wheel_list *list, tw_visit_fn *visit, void *arg);
/* Whether a timer is pending in this wheel. Cost: O(timers + slots); for assertions. */
bool tw__wheel_has(const struct tw_wheel *wheel, const struct tw_timer *timer);

#endif
