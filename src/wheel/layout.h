/* SPDX-License-Identifier: MIT
 *
 * The structures of a wheel.
 */
#ifndef TW_WHEEL_LAYOUT_H
#define TW_WHEEL_LAYOUT_H

#include <tickwheel/wheel.h>

/* TW_DEBUG alone switches the assertions on, also where NDEBUG is defined. Each of these two headers gives the
 * program its own assert() back at its end. */
#if (defined(TW_DEBUG) && TW_DEBUG > 0) || defined(__clang_analyzer__)
#define TW__WHEEL_ASSERTS
#pragma push_macro("NDEBUG")
#undef NDEBUG
#include <assert.h>
#define TW__WHEEL_REQUIRES(condition) assert(condition)
#else
#define TW__WHEEL_REQUIRES(condition) ((void)0)
#endif

#ifdef __cplusplus
extern "C" {
#ifdef __clang__ /* gcc needs no more than __extension__ for an array without a length */
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wc99-extensions"
#endif
#endif

#define TW__WHEEL_PREFETCH(address) __builtin_prefetch((const void *)(address), 1)
#define TW__WHEEL_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define TW__WHEEL_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define TW__WHEEL_COLD __attribute__((noinline))
/* A definition for inlining alone: no file that includes it gets a function of that name. */
#define TW__WHEEL_HOT extern inline __attribute__((gnu_inline, always_inline))

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
    uint64_t filed; /* a slot: timers filed since it was empty, so at least its length; 0: no mark */
    uint32_t
        id; /* level << TW__WHEEL_ID_BITS | index of the slot, or TW__WHEEL_ID_DRAIN, or TW__WHEEL_ID_DUE */
    bool in_order; /* no timer is due before one ahead of it that was not pushed back (exact.c) */
};

/* A slot. Its list and the start of the trail share a cache line. */
struct tw__wheel_slot {
    struct tw__wheel_list list;
    __extension__ uint32_t
        trail[]; /* the lines of the timers filed here last: the source of hints, never followed */
};
/* One ring, with the slot that is being refiled from it. */
struct tw__wheel_ring {
    uint64_t last
        __attribute__((aligned(64))); /* the last tick whose timers are filed here or below: the window's end */
    char *slots;                      /* the ring: 1 << stride bytes a slot */
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
    void *block;                 /* the memory of a grown level, from `grow` */
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
    uint64_t shut;    /* 0 when the gate is open, otherwise the end of time */
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
    bool in_drain;                                    /* the latest poll returned a timer, or TW_POLL_MORE */
    void *(*grow)(void *arg, void *old, size_t size); /* a tw__grow_fn (private.h) */
    void *grow_arg;
    uint8_t guess[32]; /* half the bit length of a delay -> the lowest level that could hold it */
    bool on_heap;      /* tw_wheel_new() made it */
    uint8_t visiting;  /* nested visits under way; counted for assertions only */
    __extension__ struct tw__wheel_ring ring[];
};

/* ---- arithmetic ---------------------------------------------------------------------------------------- */

/* The slot of a tick on level 0, and on level 1, of a wheel whose gate is open: no division is needed there. */
TW__WHEEL_HOT struct tw__wheel_slot *tw__wheel_slot_near(const struct tw__wheel_ring *ring, uint64_t tick)
{
    return (struct tw__wheel_slot *)(void *)(ring->slots + (tick << TW__WHEEL_STRIDE_NEAR & ring->reach));
}

TW__WHEEL_HOT struct tw__wheel_slot *tw__wheel_slot_far(const struct tw__wheel_ring *ring, uint64_t tick)
{
    uint64_t rotated = tick >> ring->rotate | tick << (-ring->rotate & 63);
    return (struct tw__wheel_slot *)(void *)(ring->slots + (rotated & ring->reach));
}

TW__WHEEL_HOT bool tw__wheel_pending(const struct tw_timer *timer)
{
    return timer->link.next != NULL;
}

/* The level that a timer was filed on, or TW__WHEEL_PUSHED. */
TW__WHEEL_HOT uint32_t tw__wheel_filed_on(const struct tw_timer *timer)
{
    return (uint32_t)(timer->hint & 0xFF);
}

TW__WHEEL_HOT bool tw__wheel_list_empty(const struct tw__wheel_list *list)
{
    return list->link.next == &list->link;
}

/* Whether a slot has its mark. */
TW__WHEEL_HOT bool tw__wheel_marked(const struct tw__wheel_slot *slot)
{
    return slot->list.filed != 0;
}

/* ---- duties ---------------------------------------------------------------------------------------------- */

/* Asserts the duties of each call that changes a wheel: the wheel is not NULL, and no visit of it is under
 * way. */
TW__WHEEL_HOT void tw__wheel_may_change(const struct tw_wheel *w)
{
    (void)w;
    TW__WHEEL_REQUIRES(w != NULL);
    TW__WHEEL_REQUIRES(w->visiting == 0);
}

/* Whether a timer is pending in this wheel. Only libraries with TW_DEBUG 2 have it.
 * Cost: O(timers + slots). */
bool tw__wheel_has(const struct tw_wheel *wheel, const struct tw_timer *timer);

#ifdef __cplusplus
#ifdef __clang__
#pragma clang diagnostic pop
#endif
}
#endif

#ifdef TW__WHEEL_ASSERTS
#pragma pop_macro("NDEBUG")
#include <assert.h>
#endif

#endif
