/* SPDX-License-Identifier: MIT
 *
 * The test of every loop, against the loop's real library. The parts of the test share a loop with a wheel in
 * it, and the counts of the system calls in which that loop sleeps.
 */
#ifndef TW_TESTS_LOOPS_BODY_H
#define TW_TESTS_LOOPS_BODY_H

#include "kind.h"
#include "tests/support/cmocka.h"

#include <pthread.h>
#include <src/loops/internal.h>

enum { US = 1000, MS = 1000000, NS_PER_S = 1000000000 };
enum { CROWD = 800, BUDGET = 16 };

/* The time, and calls that let it stand still and pass. It also passes as soon as the loop sleeps. */
uint64_t clock_now(void);
void clock_stand(void);
void clock_go(void);

/* Made again for each test. */
extern void *base;
extern struct tw_wheel *wheel;
extern struct tw_loop *loop;
extern int wake_fd; /* an eventfd, to wake the loop with */

/* Calls made on the loop's thread: calls in which it sleeps, and calls that set a timerfd. */
extern pthread_t loop_thread;
extern unsigned waits, sets;
extern uint64_t asked_ns; /* until when the loop wanted to sleep, at the beginning of its last sleep */
extern uint64_t timer_ns; /* for when its timerfd is set; UINT64_MAX: never, or it has none */
extern int shortest_ms;   /* the shortest timeout of a sleep; a minute stands for all that are longer */
extern _Atomic bool loop_sleeps;

extern struct tw_timer far, near;
extern struct tw_timer crowd[CROWD];

/* Counts of callbacks: all, since the loop last served the descriptor, and the most of that. */
extern unsigned calls, since, since_max;

void *__real_calloc(size_t n, size_t size);

/* Puts the wheel into the loop. */
void attach(tw_loop_due_fn *due, uint32_t budget);

/* No timer is pending any more: stops the loop, unless the loop must end by itself. */
void done(void);

/* The due callback of a timer that is too far ahead to fire. */
void never(void *arg, struct tw_timer *timer);

/* Makes the descriptor readable for ever, and counts from 0. */
void watch_always(void);

/* Runs the loop until it sleeps, which it should do for long. */
void sleep_in_loop(void);

void test_timers_are_not_early_not_missed_and_in_order(void **state);
void test_a_turn_is_bounded_and_other_events_come_in_between(void **state);
void test_the_rest_follows_at_once_when_nothing_else_happens(void **state);
void test_an_earlier_timer_comes_first(void **state);
void test_after_a_long_callback_nothing_is_early_or_late_or_spins(void **state);
void test_a_timer_of_the_loops_own_that_takes_too_long_lets_events_in(void **state);
void test_far_deadlines_let_the_loop_sleep(void **state);
void test_a_loop_ends_when_nothing_is_pending(void **state);
void test_a_wheel_is_taken_out_in_a_callback_and_put_in_again(void **state);
void test_a_wheel_is_taken_out_with_timers_pending(void **state);
void test_a_callback_runs_the_loop(void **state);
void test_a_child_that_frees_all_takes_nothing(void **state);
void test_a_child_goes_on_with_the_wheel(void **state);
void test_a_child_that_meddles_takes_no_timer(void **state);
void test_the_loop_of_a_daemon_fires(void **state);
void test_a_daemon_without_a_descriptor_is_told(void **state);
void test_a_child_takes_no_wake_up(void **state);
void test_a_child_frees_an_executor(void **state);
void test_bad_options_are_refused(void **state);
void test_a_wheel_that_cannot_be_attached_leaves_nothing(void **state);
void test_an_executor_that_cannot_be_made_leaves_nothing(void **state);
void test_a_schedulers_callbacks_run_on_the_loops_thread(void **state);
void test_a_schedulers_callbacks_are_bounded_and_in_order(void **state);
void test_an_idle_executor_lets_the_loop_sleep(void **state);

/* A scheduler with an executor in the loop. `send_one` files a task that stops the loop when it runs, and waits
 * until the loop has been woken for it. */
struct tw_executor *make_sched(uint32_t budget);
void send_one(void);
void end_sched(void);

#endif
