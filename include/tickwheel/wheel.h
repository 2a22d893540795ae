/* SPDX-License-Identifier: MIT
 *
 * tickwheel/wheel.h - a timing wheel: add, move and cancel a timer in O(1), fire each timer on its tick.
 *
 * A complete program, in which a tick is a millisecond. Link it with libtickwheel:
 * `cc first.c $(pkg-config --cflags --libs tickwheel)`.
 *
 *     #include <stdio.h>
 *     #include <tickwheel/wheel.h>
 *
 *     struct order {
 *         int number;
 *         struct tw_timer unpaid; // pending while the order waits for its payment
 *     };
 *
 *     int main(void)
 *     {
 *         struct order first = {.number = 1}, second = {.number = 2}; // zeroed timers are not pending
 *         struct tw_wheel *wheel;
 *         if (tw_wheel_new(&wheel, NULL, 0) != 0)
 *             return 1;
 *         tw_wheel_add_in(wheel, &first.unpaid, 1800000); // half an hour
 *         tw_wheel_add_in(wheel, &second.unpaid, 1800000);
 *         tw_wheel_cancel(wheel, &first.unpaid); // paid
 *
 *         struct tw_timer *timer; // this program has no clock: it jumps to the next tick with work
 *         for (uint64_t now = 0; tw_wheel_count(wheel) > 0; now = tw_wheel_next_bound(wheel))
 *             while ((timer = tw_wheel_poll(wheel, now)) != NULL)
 *                 printf("order %d was not paid\n", TW_CONTAINER(timer, struct order, unpaid)->number);
 *         tw_wheel_free(wheel);
 *     }
 *
 * Conventions, stated once
 *   Time      A tick is a uint64_t that the caller counts, in any unit: milliseconds, jiffies, frames. The
 *             wheel never reads a clock. `now` is the latest tick that was passed to a poll or, before the
 *             first poll, the tick with which the wheel was made. A poll with a smaller tick leaves `now` as
 *             it is. Example: after a poll at 100, a poll at 90 returns the timers that were due by 100.
 *             duration.h has a table of the units of all headers.
 *   Range     0 to 2^64-1 ticks; 2^64-1 is the end of time. Sums saturate: a deadline past the end of time
 *             becomes the end of time, and the timer fires when the caller polls the wheel at 2^64-1. A timer
 *             that is filed when `now` is already 2^64-1 waits for ever; only a timer of tw_wheel_add_now()
 *             still fires then.
 *   Due       At `now`, every timer with deadline <= now is due. A deadline that is not after `now` when the
 *             timer is filed becomes now + 1, so a timer that re-arms itself at once cannot keep a drain
 *             alive. Example: at now = 100, a timer that is filed for tick 7 gets the deadline 101. Only
 *             tw_wheel_add_now() files a timer that is due at once.
 *   Order     Timers fire by deadline, the earliest first, and timers with equal deadlines fire in the order
 *             of filing. The exception is a timer that was moved later, or to another tick of its slot, and
 *             so stayed in its slot. It takes its place among its equals when its old place comes up, or when
 *             tw_wheel_next_exact() meets it. Several such timers have no order among themselves. Example: A
 *             is due at 50,000. The caller moves A to 90,000, then adds B for 90,000, and at tick 60,000 adds
 *             C for 90,000. They fire in the order B, A, C, because A took its place at about 50,000.
 *   Between   Between two polls, and so in a due callback of loop.h, anything is allowed:
 *             - add, cancel or move any timer, also a timer that is due in the same batch
 *             - free a timer that is not pending
 *             - poll again
 *             - end the whole wheel, in a loop after tw_loop_free()
 *   Threads   One thread at a time per wheel; a signal handler counts as another thread. Wheels share nothing:
 *             no globals, no locks.
 *   NULL      Never a valid argument, except where a label says so. A geometry may be NULL, and then it is
 *             TW_GEOMETRY_DEFAULT. A pointer that the library only hands back (`arg`) may be NULL.
 *   Requires  A duty of the caller that no return code reports. A library compiled with TICKWHEEL_DEBUG 1
 *             asserts it; an assertion that must walk through the wheel needs TICKWHEEL_DEBUG 2.
 *             docs/guide.md lists the duties that no assertion can see, and why.
 *   Results   One rule for all headers. A call that can fail returns an `int`, 0 or a negative TW_E* code, and
 *             writes its outcome through a pointer; a call that failed has changed nothing. A call that cannot
 *             fail returns its outcome, or nothing.
 *             - Example: tw_wheel_cancel() cannot fail, and returns whether the timer was pending. A cancel in
 *               a file can fail: tw_store_cancel() returns 0 or an error, and writes its outcome to *found.
 *             - A struct or a text that a call fills in, and a second outcome, always go through a pointer.
 *             - tw_wheel_size() returns a size, and 0 for a geometry that is not valid. tw_store_stop() has
 *               ended the run also if it returns an error.
 *             - Three calls return another `int`: tw_wheel_visit() and tw_wheel_visit_until() the value with
 *               which `visit` ended the visit, and tw_loop_epoll_wait() that of epoll_wait().
 *   Messages  A call with a `message` explains its error there, in at most `size` bytes, always terminated.
 *             `message` may be NULL if `size` is 0.
 *   Cost      A slot whose timers have all been cancelled costs the call that first comes to it one step.
 *   Memory    The core never allocates. Timers live inside the caller's objects, and take 32 bytes each on a
 *             64-bit machine.
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

/* The errors of the wheel, and the errors that all libraries share: name, value and text. tw_strerror() is made
 * from the same table. Each library has a range of its own:
 *   - the wheel and the loops -1 to -99
 *   - the scheduler -100 to -199 (sched.h)
 *   - the store -200 to -299 (store.h) */
#define TW_ERROR_TABLE(X)                                                                                      \
    X(TW_EGEOMETRY, -1, "the geometry is not valid (tw_geometry_check says why)")                              \
    X(TW_ESIZE, -2, "the memory is smaller than tw_wheel_size() asks for")                                     \
    X(TW_ERANGE, -3, "the deadline lies beyond the wheel's range (see tw_wheel_range)")                        \
    X(TW_ENOMEM, -4, "no memory")                                                                              \
    X(TW_EINVAL, -5, "an argument is out of its range")                                                        \
    X(TW_ESYSTEM, -6, "the system has no thread or descriptor left")

/* The codes of TW_ERROR_TABLE. 0 is success. */
enum tw_error {
#define TW__ENUM(name, value, text) name = value,
    TW_ERROR_TABLE(TW__ENUM)
#undef TW__ENUM
};

/* The text of an error of this library. tw_sched_strerror() and tw_store_strerror() know their own errors too.
 * Returns: a static string. It is "no error" for 0, and "unknown error" for a code outside the table.
 * Example: `tw_strerror(TW_ENOMEM)` is "no memory". */
const char *tw_strerror(int error);

/* ---- geometry ----------------------------------------------------------------------------------------- */

/* The tick that means "never": tw_wheel_next_bound() and tw_wheel_next_exact() return it for an empty wheel.
 * It is also a valid deadline, the end of time. To learn whether a wheel is empty, call tw_wheel_count(). */
#define TW_NEVER UINT64_MAX

enum { TW_GEOMETRY_LEVELS_MAX = 64 };     /* levels in one geometry */
enum { TW_GEOMETRY_SLOTS_MAX = 1 << 18 }; /* slots on one level */

/* How the wheel treats a deadline that its top level cannot reach. */
enum tw_overflow {
    TW_OVERFLOW_REJECT, /* refuse the timer, with TW_ERANGE */
    /* file it in the slot of its deadline, round the ring; the slot passes it over until the deadline comes */
    TW_OVERFLOW_ROUNDS,
    /* put another level on top, with memory from malloc or from the scheduler's `memory` hook; TW_ENOMEM if
     * there is none. A wheel of tw_wheel_init() has no such memory. */
    TW_OVERFLOW_GROW
};

/* One level of a wheel: a ring of slots. Its members stay as they are in every 1.x, because a geometry has an
 * array of levels. */
struct tw_level {
    uint32_t slots; /* slots in the ring: 2 to TW_GEOMETRY_SLOTS_MAX */
    /* ticks per slot: 1 on level 0; above it a multiple of the span one level below, at least 2 of its slots
     * and at most its whole ring */
    uint64_t span;
};

/* The shape of a wheel. Level l keeps a timer when the timer's slot on level l+1 is the current slot or one
 * of the next `a` slots, with a = slots(l) * span(l) / span(l+1) - 1, rounded down:
 *   - a = 0 is the textbook wheel, which refiles a whole slot at each round.
 *   - a = 1 leaves one slot of lookahead, over which the refiling is spread out.
 *
 * Its members stay as they are in every 1.x, because the presets initialise them by their places.
 *
 * Example:
 *     // a = 256 * 1 / 128 - 1 = 1: a slot of 128 ticks is refiled during the slot before it
 *     struct tw_geometry geometry = {
 *         .levels = 2, .overflow = TW_OVERFLOW_ROUNDS, .level = {{256, 1}, {64, 128}}};
 */
struct tw_geometry {
    uint32_t levels;           /* levels in use: 1 to TW_GEOMETRY_LEVELS_MAX */
    enum tw_overflow overflow; /* for deadlines beyond the top level; 0: TW_OVERFLOW_REJECT */
    struct tw_level level[TW_GEOMETRY_LEVELS_MAX]; /* from the finest level, 0, upwards */
};

/* A number of slots from any integer: C++ converts no `int` by itself in braces. The `| 0` does not compile
 * with a floating-point number. */
#ifdef __cplusplus
#define TW__SLOTS(n) (static_cast<uint32_t>((n) | 0))
#else
#define TW__SLOTS(n) ((uint32_t)((n) | 0))
#endif

/* The presets, constants that initialise a geometry. */

/* A preset: how deadlines beyond the top level are treated, how many levels follow, and the levels. */
#define TW__GEOMETRY(overflow, levels, ...)                                                                    \
    {                                                                                                          \
        levels, overflow,                                                                                      \
        {                                                                                                      \
            __VA_ARGS__                                                                                        \
        }                                                                                                      \
    }

/* Ten levels with lookahead, which reach the whole 64-bit range in 256 KiB. They are 1024/512, 256/128,
 * 256/128, 128/64 and so on. 1024/512 means 1,024 slots, of which 512 make one slot of the next level.
 * Example: `tw_wheel_new(&wheel, NULL, 0)` makes a wheel of this geometry. */
#define TW_GEOMETRY_DEFAULT                                                                                    \
    TW__GEOMETRY(TW_OVERFLOW_REJECT, 10, {1024, 1}, {256, UINT64_C(1) << 9}, {256, UINT64_C(1) << 16},         \
                 {128, UINT64_C(1) << 23}, {128, UINT64_C(1) << 29}, {128, UINT64_C(1) << 35},                 \
                 {128, UINT64_C(1) << 41}, {128, UINT64_C(1) << 47}, {128, UINT64_C(1) << 53},                 \
                 {32, UINT64_C(1) << 59})
/* Four levels with lookahead, 64/32, 32/16, 32/16 and 16 slots, in at most 16 KiB. A delay beyond 2^17 ticks
 * takes more than one round of the top level.
 * Example: `struct tw_geometry geometry = TW_GEOMETRY_SMALL;` */
#define TW_GEOMETRY_SMALL TW__GEOMETRY(TW_OVERFLOW_ROUNDS, 4, {64, 1}, {32, 32}, {32, 512}, {16, 8192})
/* One ring of n slots, which refuses delays above n ticks with TW_ERANGE: the simple wheel of the
 * textbooks. Here and below, n is an integer from 0 to UINT32_MAX, and a constant or not. */
#define TW_GEOMETRY_SIMPLE(n) TW__GEOMETRY(TW_OVERFLOW_REJECT, 1, {TW__SLOTS(n), 1})
/* One ring of n slots, in which far timers wait for several rounds: the hashed wheel of Netty. */
#define TW_GEOMETRY_HASHED(n) TW__GEOMETRY(TW_OVERFLOW_ROUNDS, 1, {TW__SLOTS(n), 1})
/* n slots on each level; upper levels are made when they are first needed: the overflow wheels of Kafka. */
#define TW_GEOMETRY_GROWING(n) TW__GEOMETRY(TW_OVERFLOW_GROW, 1, {TW__SLOTS(n), 1})
/* Four levels of 60, 60, 24 and 7 slots, which are seconds, minutes, hours and days if a tick is a second. A
 * delay beyond the week takes more than one round of the top level. */
#define TW_GEOMETRY_CLOCK TW__GEOMETRY(TW_OVERFLOW_ROUNDS, 4, {60, 1}, {60, 60}, {24, 3600}, {7, 86400})

/* Checks whether a geometry is valid. If it is not, `message` names the level, the wrong value and the valid
 * range.
 * Returns: 0 or TW_EGEOMETRY.
 * Cost: O(levels). */
int tw_geometry_check(const struct tw_geometry *geometry, char *message, size_t size);

/* ---- timers ------------------------------------------------------------------------------------------- */

/* A place in a list. Private: it is here because a timer contains a link; its functions are in
 * src/base/list.h. As the timer, it stays as it is in every 1.x. */
struct tw__link {
    struct tw__link *next, *prev;
};

/* A timer, which the caller embeds in an object of its own. Zeroed memory is a timer that is not pending. The
 * members are private; use the functions. They stay as they are in every 1.x, so the objects keep their layout.
 * Requires: the caller zeroes the timer, or passes it to tw_timer_init(), before its first use. Its memory
 * stays while it is pending. */
struct tw_timer {
    struct tw__link link;
    uint64_t deadline;
    uint64_t hint;
};

/* Makes a timer that is not pending, with a deadline (a tick) that tw_timer_deadline() returns. It is for
 * objects that wait for a while in another place than a wheel.
 * Requires: the timer is not pending in any wheel. */
static inline void tw_timer_init_at(struct tw_timer *timer, uint64_t deadline)
{
    timer->link.next = NULL;
    timer->link.prev = NULL;
    timer->deadline = deadline;
    timer->hint = 0;
}

/* As tw_timer_init_at(), with the deadline 0. */
static inline void tw_timer_init(struct tw_timer *timer)
{
    tw_timer_init_at(timer, 0);
}

/* Returns true from the add until the timer fires, is cancelled or is drained. */
static inline bool tw_timer_pending(const struct tw_timer *timer)
{
    return timer->link.next != NULL;
}

/* Returns the tick on which the timer is due, or was due when it last fired, or the deadline that
 * tw_timer_init_at() received. */
static inline uint64_t tw_timer_deadline(const struct tw_timer *timer)
{
    return timer->deadline;
}

/* Tells the wheel that the caller has copied the timer to other memory (realloc, defragmentation). Does
 * nothing for a timer that is not pending. The function does not touch the old memory, which may be freed
 * already.
 * Requires: `timer` is the new place and holds the bytes of the old place. Since the copy nothing has
 * happened to the wheel, and the caller has copied no other timer of it. A caller that moves several timers
 * copies and reports them one at a time.
 * Cost: O(1), three cache lines. */
static inline void tw_timer_relocated(struct tw_timer *timer)
{
    if (!tw_timer_pending(timer))
        return;
    timer->link.next->prev = &timer->link;
    timer->link.prev->next = &timer->link;
}

/* The object around its timer: a `type *`, where `member` is the timer in it. Example: if `struct conn` has
 * the member `struct tw_timer idle`, then `TW_CONTAINER(timer, struct conn, idle)` points to the connection
 * whose `idle` is at `timer`. */
#define TW_CONTAINER(timer, type, member) ((type *)(void *)((char *)(timer)-offsetof(type, member)))

/* ---- a wheel ------------------------------------------------------------------------------------------ */

/* A wheel. Its members are private. */
struct tw_wheel;

/* The number of bytes that tw_wheel_init() needs for this geometry (NULL: the default), in memory of any
 * alignment.
 * Returns: the bytes, or 0 if the geometry is not valid. Example: 247,039 bytes for TW_GEOMETRY_DEFAULT on a
 * 64-bit machine. */
size_t tw_wheel_size(const struct tw_geometry *geometry);

/* Makes an empty wheel of `geometry` (NULL: the default) inside the caller's `memory` of `size` bytes, its
 * clock at tick `now`. The geometry is copied.
 * Returns:
 *   - 0: the wheel is in *wheel.
 *   - TW_EGEOMETRY: the geometry is not valid.
 *   - TW_ESIZE: `size` is less than tw_wheel_size().
 * Ownership: the memory stays the caller's and must outlive the wheel. Do not move or copy it.
 * Cost: O(slots). */
int tw_wheel_init(struct tw_wheel **wheel, void *memory, size_t size, const struct tw_geometry *geometry,
                  uint64_t now);

/* Ends a wheel. Timers that are still pending stay as they are. Do not cancel or poll afterwards: pass such a
 * timer to tw_timer_init(), or free it.
 * Requires: tw_wheel_init() made the wheel, and no visit of it is under way. */
void tw_wheel_fini(struct tw_wheel *wheel);

/* Makes an empty wheel of `geometry` (NULL: the default) with memory from malloc, its clock at tick `now`. This
 * function is in a file of its own, because the core never refers to malloc.
 * Returns:
 *   - 0: the wheel is in *wheel.
 *   - TW_EGEOMETRY: the geometry is not valid.
 *   - TW_ENOMEM: malloc had no memory. */
int tw_wheel_new(struct tw_wheel **wheel, const struct tw_geometry *geometry, uint64_t now);

/* Ends and frees a wheel. `wheel` may be NULL. Timers that are still pending stay as they are: see
 * tw_wheel_fini().
 * Requires: tw_wheel_new() made the wheel, and no visit of it is under way. */
void tw_wheel_free(struct tw_wheel *wheel);

/* ---- filing ------------------------------------------------------------------------------------------- */

/* Files a timer to fire at tick `deadline`, or at now + 1 if that is later.
 * Requires: the timer is not pending.
 * Returns: 0 or an error. With TW_GEOMETRY_DEFAULT, TW_GEOMETRY_SMALL, TW_GEOMETRY_HASHED and TW_GEOMETRY_CLOCK
 * the call cannot fail.
 *   - TW_ERANGE: the overflow is TW_OVERFLOW_REJECT, and the deadline is more than tw_wheel_range() after
 *     now.
 *   - TW_ENOMEM: the overflow is TW_OVERFLOW_GROW, and there was no memory for another level.
 * Cost: O(1), three cache lines. */
int tw_wheel_add_at(struct tw_wheel *wheel, struct tw_timer *timer, uint64_t deadline);

/* As tw_wheel_add_at(), for the deadline now + `delay` ticks. `now` is tw_wheel_now(): the latest tick that
 * was polled, or the tick with which the wheel was made. Even right after a poll the program has rounded its
 * clock down to `now`, so a timer may be early by less than a tick. A program that must not be early, or that
 * polls rarely, calls tw_wheel_add_at() with its own clock plus the delay, rounded up.
 * Example: the latest poll was at 100, and the program's clock stands at 250. A delay of 50 gives the
 * deadline 150, so the next poll returns the timer. A program that means tick 300 calls
 * tw_wheel_add_at(wheel, timer, 300). */
int tw_wheel_add_in(struct tw_wheel *wheel, struct tw_timer *timer, uint64_t delay);

/* Files a timer that is due now. It fires in the current poll, after all other timers that are due then, in
 * filing order. The timer's deadline is `now`.
 *
 * A drain goes from the first poll that returns a timer, or TW_POLL_MORE, to the poll that returns NULL or
 * TW_POLL_IDLE. A timer that is filed inside a drain waits for the next drain. So a timer that files itself
 * again and again fires once a drain, and no drain lasts for ever.
 * Requires: the timer is not pending.
 * Cost: O(1), two cache lines.
 * Example: at tick 10, with A due at 12, the caller adds B now. A poll at 20 returns A, the next poll returns
 * B. If B's handler adds B now again, the next poll returns NULL, and the poll after it returns B. */
void tw_wheel_add_now(struct tw_wheel *wheel, struct tw_timer *timer);

/* Gives a timer a new deadline, whether it is pending or not. A move to a later tick costs two stores to the
 * timer's own cache line, and the wheel refiles the timer when its old place comes up. The exception is a
 * timer whose old deadline is near, which the wheel refiles at once, as by cancel and add:
 *   - The timer is on level 0 of a wheel with further levels, so it is due within a round of level 0.
 *   - The timer is due less than a round of level 0 after the latest result of tw_wheel_next_exact().
 *
 * Requires: the timer, if pending, is pending in this wheel.
 * Returns: as tw_wheel_add_at(). A timer that is refused keeps its old deadline.
 * Cost: O(1).
 * Example: TW_GEOMETRY_DEFAULT at now = 0, where a round of level 0 is 1,024 ticks. Moving a timer from 30,000
 * to 60,000 is two stores. Moving a timer from 500 to 60,000 refiles it at once. */
int tw_wheel_move_at(struct tw_wheel *wheel, struct tw_timer *timer, uint64_t deadline);

/* As tw_wheel_move_at(), for the deadline now + `delay` ticks. */
int tw_wheel_move_in(struct tw_wheel *wheel, struct tw_timer *timer, uint64_t delay);

/* Takes a timer out of the wheel. Its memory is the caller's again at once.
 * Requires: the timer, if pending, is pending in this wheel.
 * Returns: true if the timer was pending.
 * Cost: O(1), three cache lines. */
bool tw_wheel_cancel(struct tw_wheel *wheel, struct tw_timer *timer);

/* ---- firing ------------------------------------------------------------------------------------------- */

/* Moves the wheel's clock to tick `now`, and takes out the next due timer:
 *     while ((timer = tw_wheel_poll(wheel, now)) != NULL) ...
 * Returns: the timer, which is no longer pending, or NULL if nothing more is due at `now`.
 * Cost: O(1) for the timer, plus refiling. For each tick that has passed and each slot that is being refiled,
 * this is at most the number of timers in the slot, divided by its slack, plus a constant (docs/wheel.md).
 * The slack is the number of ticks over which the slot is refiled. Empty ticks cost nothing. */
struct tw_timer *tw_wheel_poll(struct tw_wheel *wheel, uint64_t now);

/* The results of tw_wheel_poll_budget(). */
enum tw_poll {
    TW_POLL_IDLE, /* nothing more is due at `now` */
    TW_POLL_DUE,  /* *timer is due, and is no longer pending */
    TW_POLL_MORE  /* the budget is used up: call again, with a new budget */
};

/* As tw_wheel_poll(), but does at most *budget units of work. Each timer that is returned, refiled or passed
 * over costs one unit, and so does each slot on the way whose timers have all been cancelled. The call
 * subtracts the units from *budget. Order and exactness are those of tw_wheel_poll(), however the work is cut
 * up. A budget of 0 moves the clock to `now` and takes no timer out, so that tw_wheel_add_in() counts from
 * `now`.
 * Returns: one of enum tw_poll. *timer is NULL unless the result is TW_POLL_DUE.
 * Example:
 *     uint32_t budget = 1000; // of one iteration of the program's loop
 *     enum tw_poll polled;
 *     while ((polled = tw_wheel_poll_budget(wheel, now, &budget, &timer)) == TW_POLL_DUE)
 *         fire(timer);
 *     bool may_sleep = polled != TW_POLL_MORE; // more work: poll in the next iteration, without a sleep
 */
enum tw_poll tw_wheel_poll_budget(struct tw_wheel *wheel, uint64_t now, uint32_t *budget,
                                  struct tw_timer **timer);

/* The next tick at which the wheel has work: a timer to fire, or timers to refile. It is never later than the
 * earliest deadline. The caller sleeps until then, polls, and calls this again. On wheels that reach the end
 * of time, a far timer costs at most one such wake-up for each level. On other wheels it costs in addition at
 * most one wake-up for each round of the top level (docs/wheel.md).
 * Returns: a tick, which is `now` if something is due already. TW_NEVER if the wheel is empty, or if all its
 * timers are due at TW_NEVER, the end of time, and need no more refiling.
 * Cost: O(1) while the timers that the answer is about stay, on wheels that reach the end of time; otherwise
 * O(levels). A call passes over at most 4,096 slots whose timers have all been cancelled, which is more than
 * TW_GEOMETRY_DEFAULT has. In larger rings it may answer with the tick of one more, where a poll finds no
 * timer.
 * Example: TW_GEOMETRY_DEFAULT at now = 0, with one timer at 100,000. The call returns 99,328, where the wheel
 * refiles the timer. After a poll at 99,328 it returns 100,000. */
uint64_t tw_wheel_next_bound(const struct tw_wheel *wheel);

/* The earliest deadline itself, where tw_wheel_next_bound() may return an earlier tick. From the first call
 * on the wheel remembers its findings, which costs each add and move a few nanoseconds. The call may refile
 * timers that were moved later.
 * Requires: no visit of the wheel is under way.
 * Returns: a tick, which may lie before `now` while due timers wait to be polled. TW_NEVER if the wheel is
 * empty, or if all its timers are due at TW_NEVER.
 * Cost:
 *   - O(1) while no timer with the earliest deadline has left the wheel or was moved later.
 *   - After that, it looks at the timers of the slots that may hold the earliest deadline. This is O(1) a
 *     call on average if timers leave at random, or in the order in which they were filed (docs/wheel.md).
 *   - In the worst case, it looks at all timers of a slot in each call. This happens when timers that were
 *     filed in no order leave in the order of their deadlines. With a million timers in one slot that is
 *     about ten milliseconds.
 *   - The first call looks at all slots up to the earliest deadline.
 *   - On wheels that do not reach the end of time, O(slots) in addition. */
uint64_t tw_wheel_next_exact(struct tw_wheel *wheel);

/* ---- looking ------------------------------------------------------------------------------------------ */

/* The number of pending timers.
 * Cost: O(1). */
uint64_t tw_wheel_count(const struct tw_wheel *wheel);

/* The latest tick that was polled, or the `now` with which the wheel was made.
 * Cost: O(1). */
uint64_t tw_wheel_now(const struct tw_wheel *wheel);

/* The longest delay in ticks that tw_wheel_add_in() accepts. It is UINT64_MAX unless the overflow is
 * TW_OVERFLOW_REJECT. Then it is slots * span of the top level, saturated.
 * Cost: O(1).
 * Example: TW_GEOMETRY_SIMPLE(100) has the range 100. It accepts a delay of 100 ticks and refuses 101. */
uint64_t tw_wheel_range(const struct tw_wheel *wheel);

/* The number of refilings since the wheel was made: of timers that went to a lower level, that were moved
 * later, or that were sorted because their slot holds timers of several rounds. The pacing rule
 * (docs/wheel.md) bounds how many there are on one tick. */
uint64_t tw_wheel_refiled(const struct tw_wheel *wheel);

/* Takes out one pending timer, with any deadline and in no particular order:
 *     while ((timer = tw_wheel_drain(wheel)) != NULL) ...
 * Returns: the timer, which is no longer pending, or NULL if the wheel is empty.
 * Cost: O(levels). */
struct tw_timer *tw_wheel_drain(struct tw_wheel *wheel);

/* Called for each timer of a visit. It may change the timer's object. A return value other than 0 ends the
 * visit.
 * Requires: it does not change the wheel, so it calls no add, move, cancel, poll, drain,
 * tw_wheel_next_exact() or end of the wheel. It may look at the wheel, start another visit of it, and change
 * other wheels. */
typedef int tw_wheel_visit_fn(void *arg, struct tw_timer *timer);

/* Calls `visit(arg, timer)` for every pending timer, in no particular order.
 * Returns: 0, or the value other than 0 with which `visit` ended the visit.
 * Cost: O(timers + occupied slots). */
int tw_wheel_visit(const struct tw_wheel *wheel, tw_wheel_visit_fn *visit, void *arg);

/* As tw_wheel_visit(), for every pending timer with deadline <= tick, and for no other timer.
 * Returns: as tw_wheel_visit().
 * Cost: O(levels + occupied slots that start at or before `tick` + the timers in these slots), however many
 * timers are filed in later slots. The timers in these slots include timers that were moved later, or wait
 * for a later round. */
int tw_wheel_visit_until(const struct tw_wheel *wheel, uint64_t tick, tw_wheel_visit_fn *visit, void *arg);

/* The state of one level, for tools and statistics. */
struct tw_level_info {
    uint32_t slots;    /* slots in the ring */
    uint64_t span;     /* ticks per slot */
    uint32_t current;  /* index of the slot that holds the wheel's position */
    uint32_t occupied; /* slots that hold timers, without the slot that is being refiled */
    uint64_t filed;    /* timers in the ring */
    uint64_t draining; /* timers still to refile of the slot that is being refiled */
};

/* The number of levels in use now. With TW_OVERFLOW_GROW it includes the grown levels. */
uint32_t tw_wheel_levels(const struct tw_wheel *wheel);

/* Describes one level in *info; `size` is sizeof *info. A later version may have more members: the wheel writes
 * no more than `size` bytes, and a library that is older than the program sets the members that it does not
 * know to 0.
 * Requires: level < tw_wheel_levels().
 * Cost: O(slots of the level + timers on it). */
void tw_wheel_level(const struct tw_wheel *wheel, uint32_t level, struct tw_level_info *info, size_t size);

/* The number of timers filed in one slot.
 * Requires: level < tw_wheel_levels(), and `slot` is less than the slots of that level.
 * Cost: O(timers in the slot). */
uint64_t tw_wheel_slot_count(const struct tw_wheel *wheel, uint32_t level, uint32_t slot);

/* Checks every invariant (W1 to W11, in the essay at the head of wheel.c).
 * Returns: NULL, or the first invariant that does not hold, as a static string.
 * Cost: O(timers + slots). */
const char *tw_wheel_check(const struct tw_wheel *wheel);

/* Receives `length` bytes of text, which has no terminating 0. `arg` is the argument of the call that emits. */
typedef void tw_emit_fn(void *arg, const char *text, size_t length);

/* Writes the wheel for people to read: the clock, the counts, and a line for each level.
 * Cost: O(timers). */
void tw_wheel_dump(const struct tw_wheel *wheel, tw_emit_fn *emit, void *arg);

#ifdef __cplusplus
}
#endif

#endif
