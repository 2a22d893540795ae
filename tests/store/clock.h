/* SPDX-License-Identifier: MIT
 *
 * The clock of a store that runs, in the hands of the test. A program that links test_store_clock_support has
 * it: calls that read the system's clock, set the runner's timer and let the runner sleep come here (--wrap).
 *
 *     clock_stop(0);                          the system's clock stands still
 *     put(store, "x", tw_store_now() + 1000);
 *     start_with(store, &calls);
 *     runner_idle(store);                     it has looked at the file, and sleeps
 *     clock_pass(1000);                       the timer fires, if it is set to this time
 *     wait_for_calls(&calls, 1);
 *
 * Until clock_stop() is called, and after clock_go(), time is as the system has it.
 */
#ifndef TESTS_STORE_CLOCK_H
#define TESTS_STORE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <tickwheel/store.h>

/* The system's clock (CLOCK_REALTIME) stands still at this time; 0: the present time. */
void clock_stop(uint64_t at_ms);

/* Both clocks go again, and the system's clock shows the real time. */
void clock_go(void);

/* Time passes on the system's clock, which stands still from now on. Timers that are due fire, and nobody else
 * wakes. */
void clock_pass(uint64_t ms);

/* Somebody sets the system's clock: the timers tell of it. With `quietly` nobody waits for a timer at this
 * moment: the next call that sets or reads one tells of it. */
void clock_step(int64_t ms);
void clock_step_quietly(int64_t ms);

/* Whether a step has not been told of yet. */
bool clock_step_is_untold(void);

/* Time passes on the monotonic clock. It goes, or after clock_halt() stands still but for this. A runner that
 * sleeps until a time on it, as after an error or for its next look, wakes if this time has come. Returns
 * whether one does. */
bool clock_hurry(uint64_t ms);
void clock_halt(void);

/* Waits until the runner has gone round once more, with a look at the file, has found nothing left to do, and
 * sleeps, or until it has lost its file. So it has seen all that was committed before, and all answers that had
 * come. It is no use after an error, before the next try. */
void runner_idle(struct tw_store *store);

/* The same, but the runner looks at the file only if it wants to: it was told of a commit, or it is time. */
void runner_round(struct tw_store *store);

/* Waits until another thread has told the runner to stop. */
void runner_stopping(struct tw_store *store);

/* How often the runner has gone to sleep, and how often it has looked at the file. */
uint64_t runner_sleeps(struct tw_store *store);
uint64_t runner_looks(struct tw_store *store);

/* While this is set, no runner looks at the file of its own accord: it wakes only for its timer, when somebody
 * wakes it, and for runner_idle(). */
void runner_look_away(bool on);

/* The next look of a runner at its file calls this first, on its thread. */
void runner_before_look(void (*call)(void *arg), void *arg);

/* store_teardown() of a test that may have stopped the clock, or let the runner look away. */
int clock_teardown(void **state);

#endif
