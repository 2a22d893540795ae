/* SPDX-License-Identifier: MIT
 *
 * tickwheel/wheel.h - a timing wheel: add, move and cancel a timer in O(1), fire each on its tick.
 *
 * Conventions, stated once
 *   Time      A tick is a uint64_t that the caller counts (milliseconds, jiffies, frames: any unit). The wheel
 *             never reads a clock. `now` is the latest tick passed to a poll; a smaller one is held, not
 *             followed.
 *   Range     0 to 2^64-1 ticks. Sums saturate: a deadline past the end of time is the end of time, and fires
 *             when the wheel is polled at 2^64-1. A timer filed when `now` is already there waits for ever.
 *   Due       Given `now`, every timer with deadline <= now is due. A deadline that is not after `now` when it
 *             is filed becomes now + 1: a timer that re-arms itself at once cannot keep a drain alive. Only
 *             tw_wheel_add_now() files a timer that is due at once.
 *   Order     Earlier deadlines first; equal deadlines in the order of filing. A timer that was moved without
 *             being refiled (later, or inside its slot) takes its place among equals when its old place comes
 *             up, or tw_wheel_next_exact() meets it; several of these have no order among themselves.
 *   Between   Between two polls anything is allowed: add, cancel, move any timer (one due in the same batch
 *             too), free a timer that is not pending, poll again, let go of the whole wheel.
 *   Threads   One thread at a time per wheel. Wheels share nothing: no globals, no locks.
 *   NULL      Never a valid argument, except where a label says so.
 *   Requires  A duty of the caller that no return code reports. A library compiled with TICKWHEEL_DEBUG 1
 *             asserts it, with 2 where it takes a walk; docs/guide.md lists the duties that no assertion can
 *             see, and why.
 *   Errors    Calls that can fail return 0 or a negative TW_E* code and then have changed nothing.
 *   Memory    The core never allocates. Timers live inside the caller's objects; 32 bytes each on 64-bit.
 */
#ifndef TICKWHEEL_WHEEL_H
#define TICKWHEEL_WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- errors ------------------------------------------------------------------------------------------- */

/* Every error of the library: name, value, text. tw_strerror() is made from the same table. */
#define TW_ERROR_TABLE(X)                                                                                      \
    X(TW_EGEOMETRY, -1, "the geometry is not valid (tw_geometry_check says why)")                              \
    X(TW_ESIZE, -2, "the memory is smaller than tw_wheel_size() asks for")                                     \
    X(TW_ERANGE, -3, "the deadline lies beyond the wheel's range (see tw_wheel_range)")                        \
    X(TW_ENOMEM, -4, "no memory")                                                                              \
    X(TW_EFULL, -5, "too many tasks are pending (max_pending)")                                                \
    X(TW_ESTOPPED, -6, "the scheduler has been stopped")                                                       \
    X(TW_EINVAL, -7, "an argument is out of its range")                                                        \
    X(TW_EGONE, -8, "no such task: it has run, was cancelled, or never was")                                   \
    X(TW_EDEADLK, -9, "a callback cannot wait for itself")                                                     \
    X(TW_ESYSTEM, -10, "the system has no thread or descriptor left")

/* The codes of that table. */
enum tw_error {
#define TW__ENUM(name, value, text) name = value,
    TW_ERROR_TABLE(TW__ENUM)
#undef TW__ENUM
};

/* The text of an error code.
 * Returns: a static string; "no error" for 0, "unknown error" for a code outside the table. */
const char *tw_strerror(int error);

/* ---- geometry ----------------------------------------------------------------------------------------- */

/* The tick that means "never": tw_wheel_next_bound() and tw_wheel_next_exact() return it for an empty wheel. It
 * is a valid deadline too, the end of time: to learn whether a wheel is empty, ask tw_wheel_count(). */
#define TW_NEVER UINT64_MAX

enum { TW_LEVELS_MAX = 64 };     /* levels in one geometry */
enum { TW_SLOTS_MAX = 1 << 18 }; /* slots on one level */

/* What happens to a deadline that the top level cannot reach. */
enum tw_overflow {
    TW_OVERFLOW_REJECT, /* refuse it: TW_ERANGE */
    TW_OVERFLOW_ROUNDS, /* file it in the slot it will have rounds later; the deadline decides, no counter */
    TW_OVERFLOW_GROW /* put another level on top, with memory from the grow hook; TW_ENOMEM when it has none */
};

/* One ring. */
struct tw_level {
    uint32_t slots; /* 2 to TW_SLOTS_MAX */
    uint64_t span;  /* ticks per slot: 1 on level 0, above it a multiple of the span below */
};

/* The shape of a wheel. Level l keeps a timer when the timer's slot on level l+1 is the current one or one of
 * the next `a`, with a = slots(l) * span(l) / span(l+1) - 1, rounded down: 0 is the textbook wheel, which
 * refiles a whole slot at each round; 1 leaves one slot of lookahead, in which the refiling is spread out. */
struct tw_geometry {
    uint32_t levels; /* 1 to TW_LEVELS_MAX */
    enum tw_overflow overflow;
    struct tw_level level[TW_LEVELS_MAX];
};

/* Ten levels, 1024/512, 256/128, 256/128, 128/64 and so on, with lookahead: the whole 64-bit range in 256
 * KiB. */
struct tw_geometry tw_geometry_default(void);
/* At most 16 KiB: 64/32, 32/16, 32/16 and 16 slots, with lookahead; rounds beyond 2^17 ticks. */
struct tw_geometry tw_geometry_small(void);
/* One ring of n slots that refuses delays above n ticks. The simple wheel of the textbooks. */
struct tw_geometry tw_geometry_simple(uint32_t slots);
/* One ring of n slots; far timers wait several rounds. The hashed wheel of Netty. */
struct tw_geometry tw_geometry_hashed(uint32_t slots);
/* n slots a level, upper levels made when first needed. The overflow wheels of Kafka. */
struct tw_geometry tw_geometry_growing(uint32_t slots);
/* 60, 60, 24 and 7 slots: seconds, minutes, hours, days. Rounds beyond the week. */
struct tw_geometry tw_geometry_clock(void);

/* The same, short: `struct tw_geometry geometry = TW_CLOCK;` */
#define TW_DEFAULT tw_geometry_default()
#define TW_SMALL tw_geometry_small()
#define TW_SIMPLE(slots) tw_geometry_simple(slots)
#define TW_HASHED(slots) tw_geometry_hashed(slots)
#define TW_GROWING(slots) tw_geometry_growing(slots)
#define TW_CLOCK tw_geometry_clock()

/* Says whether a geometry is valid and, if not, what is wrong with it: the level, the value, the valid range.
 * `message` receives at most `size` bytes, always terminated.
 * Requires: `message` is not NULL, or `size` is 0. Returns: 0 or TW_EGEOMETRY. Cost: O(levels). */
int tw_geometry_check(const struct tw_geometry *geometry, char *message, size_t size);

/* ---- timers ------------------------------------------------------------------------------------------- */

/* A place in a list. Private: it is here because a timer contains one; its functions are in src/base/list.h. */
struct tw__link {
    struct tw__link *next, *prev;
};

/* A timer, to be embedded in the caller's object. Zeroed memory is a timer that is not pending. The members are
 * private; use the functions. Requires: it was zeroed, or given to tw_timer_init(), before its first use, and
 * its memory stays while it is pending. */
struct tw_timer {
    struct tw__link link;
    uint64_t deadline;
    uint64_t hint;
};

/* Makes a timer that is not pending, with a deadline for tw_timer_deadline() to give back: for objects that
 * wait somewhere else than in a wheel for a while. Requires: the timer is not pending in any wheel. */
static inline void tw_timer_init_at(struct tw_timer *timer, uint64_t deadline)
{
    timer->link.next = NULL;
    timer->link.prev = NULL;
    timer->deadline = deadline;
    timer->hint = 0;
}

/* Makes a timer that is not pending, its deadline 0. Requires: the timer is not pending in any wheel. */
static inline void tw_timer_init(struct tw_timer *timer)
{
    tw_timer_init_at(timer, 0);
}

/* True from the add until the timer fires, is cancelled or is drained. */
static inline bool tw_timer_pending(const struct tw_timer *timer)
{
    return timer->link.next != NULL;
}

/* The tick on which the timer is due, or was due when it fired last, or what tw_timer_init_at() was given. */
static inline uint64_t tw_timer_deadline(const struct tw_timer *timer)
{
    return timer->deadline;
}

/* Tells the wheel that the caller has copied the timer to other memory (realloc, defragmentation). Does nothing
 * for one that is not pending. The old place is not touched: it may be gone already. Requires: `timer` is the
 * new place and holds the old one's bytes; since they were copied nothing has happened to the wheel, and no
 * other timer of it has been copied. Of several, each is told before the next one is copied. Cost: O(1), three
 * cache lines. */
static inline void tw_timer_relocated(struct tw_timer *timer)
{
    if (!tw_timer_pending(timer))
        return;
    timer->link.next->prev = &timer->link;
    timer->link.prev->next = &timer->link;
}

/* Has the processor fetch the memory of the timer's neighbours, which tw_wheel_cancel() writes to: a caller
 * that knows some other work to do before it cancels does not wait for that memory afterwards. Changes nothing;
 * for a timer that is not pending, too. Cost: O(1), without a wait. */
static inline void tw_timer_prefetch(const struct tw_timer *timer)
{
#if defined(__GNUC__)
    __builtin_prefetch(timer->link.next, 1);
    __builtin_prefetch(timer->link.prev, 1);
#else
    (void)timer;
#endif
}

/* The object around its timer: TW_CONTAINER(timer, struct conn, idle). */
#define TW_CONTAINER(timer, type, member) ((type *)(void *)((char *)(timer)-offsetof(type, member)))

/* ---- a wheel ------------------------------------------------------------------------------------------ */

/* A wheel. What is in it is known to the library alone. */
struct tw_wheel;

/* Bytes that tw_wheel_init() needs for this geometry, for memory of any alignment.
 * Returns: 0 when the geometry is not valid. */
size_t tw_wheel_size(const struct tw_geometry *geometry);

/* Makes an empty wheel inside the caller's memory, its clock at `now`.
 * Returns: 0, and the wheel in *wheel; TW_EGEOMETRY; TW_ESIZE.
 * Ownership: the memory stays the caller's and must outlive the wheel; do not move or copy it.
 * Cost: O(slots). */
int tw_wheel_init(struct tw_wheel **wheel, void *memory, size_t size, const struct tw_geometry *geometry,
                  uint64_t now);

/* Ends a wheel: gives grown levels back through the grow hook. Timers still pending are left as they are:
 * cancel nothing, poll nothing, only tw_timer_init() them or free them. Requires: tw_wheel_init() made the
 * wheel; no visit of it is under way. */
void tw_wheel_fini(struct tw_wheel *wheel);

/* A source of memory for levels: `old` NULL asks for `size` bytes (aligned as malloc's are), and NULL in return
 * says that there are none; `old` not NULL gives that block back. */
typedef void *tw_grow_fn(void *arg, void *old, size_t size);

/* Sets the hook that TW_OVERFLOW_GROW asks for memory; without one, growing answers TW_ENOMEM. */
void tw_wheel_on_grow(struct tw_wheel *wheel, tw_grow_fn *grow, void *arg);

/* Makes a wheel with memory from malloc (in a file of its own: the core never refers to malloc).
 * Returns: 0, and the wheel in *wheel; TW_EGEOMETRY; TW_ENOMEM. */
int tw_wheel_new(struct tw_wheel **wheel, const struct tw_geometry *geometry, uint64_t now);

/* Ends and frees a wheel. `wheel` may be NULL. Requires: tw_wheel_new() made the wheel; no visit of it is under
 * way. */
void tw_wheel_free(struct tw_wheel *wheel);

/* ---- filing ------------------------------------------------------------------------------------------- */

/* Files a timer to fire at tick `deadline`, or at now + 1 if that is later.
 * Requires: the timer is not pending.
 * Returns: 0; TW_ERANGE (REJECT); TW_ENOMEM (GROW). Other presets cannot fail.
 * Cost: O(1), three cache lines. In callback: yes. */
int tw_wheel_add_at(struct tw_wheel *wheel, struct tw_timer *timer, uint64_t deadline);

/* As tw_wheel_add_at(), `delay` ticks after now. */
int tw_wheel_add_in(struct tw_wheel *wheel, struct tw_timer *timer, uint64_t delay);

/* Files a timer that is due now: it fires in the current poll, after everything else that is due then, in
 * filing order. Filed inside a drain it waits for the next drain: a timer that files itself again and again
 * fires once a drain, so no drain lasts for ever. A drain goes from the first poll that hands out a timer, or
 * answers TW_POLL_MORE, until a poll returns NULL or TW_POLL_IDLE. The timer's deadline is `now`. Example: at
 * tick 10, with A due at 12, the caller adds B now. A poll at 20 returns A, the next one B. Requires: the timer
 * is not pending. Cost: O(1), two cache lines. In callback: yes. */
void tw_wheel_add_now(struct tw_wheel *wheel, struct tw_timer *timer);

/* Gives a timer a new deadline, whether it is pending or not. Later than before is two stores to its own cache
 * line: it is filed again when its old place comes up. When the old deadline is less than a round of level 0
 * after now, or after the latest answer of tw_wheel_next_exact(), the timer is filed again at once, as by
 * cancel and add. Requires: the timer, if pending, is pending in this wheel. Returns: as tw_wheel_add_at(); a
 * refused timer keeps its old deadline. Cost: O(1). In callback: yes. */
int tw_wheel_move_at(struct tw_wheel *wheel, struct tw_timer *timer, uint64_t deadline);

/* As tw_wheel_move_at(), `delay` ticks after now. */
int tw_wheel_move_in(struct tw_wheel *wheel, struct tw_timer *timer, uint64_t delay);

/* Takes a timer out. Its memory is the caller's again at once.
 * Requires: the timer, if pending, is pending in this wheel.
 * Returns: whether it was pending. Cost: O(1), three cache lines. In callback: yes. */
bool tw_wheel_cancel(struct tw_wheel *wheel, struct tw_timer *timer);

/* ---- firing ------------------------------------------------------------------------------------------- */

/* Moves the clock to `now` and takes out the next due timer:
 *     while ((timer = tw_wheel_poll(wheel, now)) != NULL) ...
 * Returns: the timer, no longer pending; NULL when nothing more is due at `now`. Cost: O(1) for the timer, plus
 * refiling: at most, for each tick that has passed and each slot being refiled, the slot's population divided
 * by its slack, plus a constant (docs/wheel.md). Empty ticks cost nothing. */
struct tw_timer *tw_wheel_poll(struct tw_wheel *wheel, uint64_t now);

/* What a poll with a budget has come to. */
enum tw_polled {
    TW_POLL_IDLE, /* nothing more is due at `now` */
    TW_POLL_DUE,  /* *timer is due */
    TW_POLL_MORE  /* the budget is used up: call again, with a new one */
};

/* As tw_wheel_poll(), doing at most *budget units of work. Each timer handed out, refiled or passed over costs
 * one unit and is taken off *budget. Order and exactness are those of tw_wheel_poll(), however it is cut up. A
 * budget of 0 moves the clock to `now` and takes no timer out: tw_wheel_add_in() counts from `now` then.
 * Returns: what happened; *timer is NULL unless it is TW_POLL_DUE. */
enum tw_polled tw_wheel_poll_budget(struct tw_wheel *wheel, uint64_t now, uint32_t *budget,
                                    struct tw_timer **timer);

/* The next tick at which the wheel has work: a timer to fire or some to refile. Never later than the earliest
 * deadline; sleep until then, poll, ask again. On wheels that reach the end of time a far timer costs at most
 * one such wake-up for each level; on others one for each round of the top besides (docs/wheel.md). Returns: a
 * tick; `now` when something is due already; TW_NEVER when the wheel is empty, or when all its timers are due
 * at TW_NEVER, the end of time. Cost: O(levels). */
uint64_t tw_wheel_next_bound(const struct tw_wheel *wheel);

/* The earliest deadline itself. From the first call on the wheel remembers its findings, at a cost of a few
 * nanoseconds for each add and move. Timers that were pushed back may be filed again. Requires: no visit of the
 * wheel is under way. Returns: a tick (it may lie before `now` when due timers wait to be polled); TW_NEVER
 * when the wheel is empty, or when all its timers are due at TW_NEVER. Cost: O(1) while no timer with the
 * earliest deadline has gone or was moved later. After that, the timers of the slots that may hold the earliest
 * are looked at: on average O(1) a call when timers go at random, or in the order in which they were filed
 * (docs/wheel.md). Worst case: all timers of a slot in each call, where timers that were filed in no order go
 * in the order of their deadlines; with a million in one slot that is some ten milliseconds. The first call
 * looks at all slots up to the earliest deadline. On wheels that do not reach the end of time, O(slots)
 * besides. */
uint64_t tw_wheel_next_exact(struct tw_wheel *wheel);

/* ---- looking ------------------------------------------------------------------------------------------ */

/* Timers pending. Cost: O(1). */
uint64_t tw_wheel_count(const struct tw_wheel *wheel);

/* The latest tick that was polled. Cost: O(1). */
uint64_t tw_wheel_now(const struct tw_wheel *wheel);

/* The longest delay that tw_wheel_add_in() accepts: UINT64_MAX unless the overflow is REJECT. Cost: O(1). */
uint64_t tw_wheel_range(const struct tw_wheel *wheel);

/* Timers refiled, level to level or pushed back, since the wheel was made: what the pacing rule bounds. */
uint64_t tw_wheel_refiled(const struct tw_wheel *wheel);

/* Takes out some pending timer, in no particular order, whatever its deadline:
 *     while ((timer = tw_wheel_drain(wheel)) != NULL) ...
 * Returns: the timer, no longer pending; NULL when the wheel is empty. Cost: O(levels). */
struct tw_timer *tw_wheel_drain(struct tw_wheel *wheel);

/* Called for a timer, whose object it may change; a value other than 0 ends the visit. Requires: it does not
 * change the wheel: no add, move, cancel, poll, drain, tw_wheel_next_exact() or end of the wheel. It may look
 * at it, visit it once more, and change other wheels. */
typedef int tw_visit_fn(void *arg, struct tw_timer *timer);

/* Visits every pending timer, in no particular order.
 * Returns: 0, or what `visit` returned. Cost: O(timers + occupied slots). */
int tw_wheel_visit(const struct tw_wheel *wheel, tw_visit_fn *visit, void *arg);

/* Visits every pending timer with deadline <= tick, and no other, in no particular order. Returns: 0, or what
 * `visit` returned. Cost: O(levels + occupied slots that start at or before `tick` + the timers in these,
 * pushed back or waiting for a later round among them), however many there are beyond. */
int tw_wheel_visit_until(const struct tw_wheel *wheel, uint64_t tick, tw_visit_fn *visit, void *arg);

/* As tw_wheel_visit_until(), looking at no more than *budget timers, those that turn out to be due later among
 * them; each is taken off *budget. Returns: true when all that are due by then were visited; false when the
 * budget was used up first, or `visit` has ended it. Cost: O(levels + occupied slots that start at or before
 * `tick` + *budget). */
bool tw_wheel_visit_budget(const struct tw_wheel *wheel, uint64_t tick, uint32_t *budget, tw_visit_fn *visit,
                           void *arg);

/* What one level looks like from outside. */
struct tw_level_info {
    uint32_t slots;    /* slots in the ring */
    uint64_t span;     /* ticks per slot */
    uint32_t current;  /* index of the slot that holds the wheel's position */
    uint32_t occupied; /* slots that hold timers, the one being refiled not among them */
    uint64_t filed;    /* timers in the ring */
    uint64_t draining; /* timers of the slot that is being refiled into the levels below */
};

/* Levels in use now (GROW: grown ones included). */
uint32_t tw_wheel_levels(const struct tw_wheel *wheel);

/* Describes one level. Requires: level < tw_wheel_levels(). Cost: O(slots of the level + timers on it). */
struct tw_level_info tw_wheel_level(const struct tw_wheel *wheel, uint32_t level);

/* Timers filed in one slot. Requires: level < tw_wheel_levels(), slot < slots of it. Cost: O(timers in it). */
uint64_t tw_wheel_slot_count(const struct tw_wheel *wheel, uint32_t level, uint32_t slot);

/* Checks every invariant (W1 to W11, in the essay at the head of wheel.c). Cost: O(timers + slots).
 * Returns: NULL, or the first invariant that does not hold, as a static string. */
const char *tw_wheel_check(const struct tw_wheel *wheel);

/* Receives `length` bytes of text, not terminated. */
typedef void tw_emit_fn(void *arg, const char *text, size_t length);

/* Writes the wheel for people: clock, counts, a line for each level. Cost: O(timers). */
void tw_wheel_dump(const struct tw_wheel *wheel, tw_emit_fn *emit, void *arg);

#ifdef __cplusplus
}
#endif

#endif
