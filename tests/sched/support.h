/* SPDX-License-Identifier: MIT
 *
 * The helpers that the tests of the scheduler share:
 *
 *   - a scheduler on a virtual clock
 *   - callbacks that note their calls
 *   - a source of memory that runs out
 *   - an executor that waits
 */
#ifndef TW_TESTS_SCHED_SUPPORT_H
#define TW_TESTS_SCHED_SUPPORT_H

#include "tests/support/cmocka.h"

#include <src/sched/check.h>
#include <tickwheel/sched.h>

static const uint64_t ms = 1000000;

/* The tasks that callbacks have seen, in order. */
enum { LOG_MAX = 4096 };
extern struct tw_task seen[LOG_MAX];
extern uint64_t seen_at[LOG_MAX];
extern int calls;

/* A callback that notes its call. */
void log_call(struct tw_sched *sched, const struct tw_task *task);

/* Makes a scheduler with these options on a virtual clock, and empties the log. */
struct tw_sched *sched_of(struct tw_sched_options options);
struct tw_sched *plain_sched(void);
/* Moves the scheduler's clock, and checks the invariants. */
void advance(struct tw_sched *sched, uint64_t ns);
/* The scheduler's statistics. Fails the test if they do not add up. */
struct tw_sched_info stats_of(const struct tw_sched *sched);

/* A source of memory that fails at the n-th request, and counts the blocks and bytes that it has lent. */
extern int requests_left;
extern long blocks_out;
extern size_t bytes_out;
void *scarce_memory(void *arg, void *old, size_t size);

/* An executor that runs nothing by itself: tasks wait in it until run_sent(). */
extern uint64_t sent[LOG_MAX];
extern int sent_count;
void send_later(void *arg, struct tw_sched *sched, uint64_t id);
struct tw_sched *lazy_sched(void);
void run_sent(struct tw_sched *sched);

/* The results of calls that callbacks made. */
extern enum tw_cancel answer;
extern int error_inside;
void add_another(struct tw_sched *sched, const struct tw_task *task);
void cancel_and_move_self(struct tw_sched *sched, const struct tw_task *task);

/* A `visit` that counts the tasks it receives. */
extern uint64_t handed;
void visit_count(void *arg, const struct tw_task *task);

#endif
