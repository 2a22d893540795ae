/* SPDX-License-Identifier: MIT
 *
 * tickwheel/duration.h - microseconds to hours as nanoseconds, and which header counts in which unit.
 *
 * | header    | unit        | delays from | zero of the clock | 30 seconds from now                        |
 * |-----------|-------------|-------------|-------------------|--------------------------------------------|
 * | wheel.h   | ticks       | latest poll | caller's choice   | `tw_wheel_add_in(wheel, timer, 30000)`     |
 * | sched.h   | nanoseconds | the call    | boot, or your own | `tw_sched_add_in(s, TW_SEC(30), f, a, id)` |
 * | loop*.h   | nanoseconds | the call    | CLOCK_MONOTONIC's | `tw_loop_add_in(loop, timer, TW_SEC(30))`  |
 * | wheel.hpp | durations   | latest poll | caller's choice   | `wheel.add_in(timer, 30s)`                 |
 * | sched.hpp | durations   | the call    | as sched.h        | `scheduler.add_in(30s, f)`                 |
 * | store.h   | ms          |             | 1970, in UTC      | `.due_ms = tw_store_now() + 30000`         |
 *
 *   - wheel.h: the program chooses how long a tick is and which moment is tick 0, so the wheel has no macros.
 *     The example is for a program whose tick is a millisecond.
 *   - sched.h: `_in` is a delay, `_at` is a point on the clock that tw_sched_now() reads. Its zero is the
 *     boot of the machine. A virtual clock has a zero of your own, and starts at the `start_ns` of the
 *     options. Example of a point: `tw_sched_now(sched) + TW_SEC(30)`.
 *   - loop.h, loop_*.h: `_in` is a delay, `_at` is a point on CLOCK_MONOTONIC, as tw_loop_now() reads it.
 *   - wheel.hpp and sched.hpp take durations of std::chrono and round them, to ticks or to nanoseconds.
 *
 * Each macro gives a uint64_t, and evaluates `n` once. If `n` is a constant expression, so is the result: it
 * may initialize a static object.
 *
 *   - `n` is an integer. A floating-point `n` does not compile: write `TW_MS(1500)`, not `TW_SEC(1.5)`.
 *   - `n` is from 0 to the limit in the comment above each macro. A negative `n` is not allowed: it becomes
 *     centuries. Beyond the limit the product wraps modulo 2^64, and the time is far too short. Example:
 *     TW_SEC(18446744074) is 290,448,384 ns, less than a third of a second.
 *   - "Never" is UINT64_MAX, in the delays and points of sched.h and loop.h. Example: a task with a delay of
 *     UINT64_MAX never runs.
 *
 * Example, of constants:
 *
 *     static const struct tw_every every = {.first_ns = TW_MS(250), .period_ns = TW_MIN(5), .times = 12};
 */
#ifndef TICKWHEEL_DURATION_H
#define TICKWHEEL_DURATION_H

#include <stdint.h>

/* The `| 0` does not compile with a floating-point number. A cast alone would drop its fraction silently. */
#ifdef __cplusplus
#define TW__DURATION(n, unit_ns) (static_cast<uint64_t>((n) | 0) * UINT64_C(unit_ns))
#else
#define TW__DURATION(n, unit_ns) ((uint64_t)((n) | 0) * UINT64_C(unit_ns))
#endif

/* ---- durations ---------------------------------------------------------------------------------------- */

/* Microseconds, in nanoseconds. `n` is from 0 to 18,446,744,073,709,551. */
#define TW_US(n) TW__DURATION(n, 1000)

/* Milliseconds, in nanoseconds. `n` is from 0 to 18,446,744,073,709. */
#define TW_MS(n) TW__DURATION(n, 1000000)

/* Seconds, in nanoseconds. `n` is from 0 to 18,446,744,073. */
#define TW_SEC(n) TW__DURATION(n, 1000000000)

/* Minutes, in nanoseconds. `n` is from 0 to 307,445,734. */
#define TW_MIN(n) TW__DURATION(n, 60000000000)

/* Hours, in nanoseconds. `n` is from 0 to 5,124,095. */
#define TW_HOUR(n) TW__DURATION(n, 3600000000000)

#endif
