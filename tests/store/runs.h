/* SPDX-License-Identifier: MIT
 *
 * Runs of a store, against the ledger, which can say of each call whether it had to come, and how the file must
 * be after its answer.
 */
#ifndef TESTS_STORE_RUNS_H
#define TESTS_STORE_RUNS_H

#include "ledger.h"

/* Runs the tasks that are due, with handlers that answer at random, and sometimes change their own task. The
 * clock (clock.h) stands still, and goes on by some milliseconds. Then the ledger is as the file must be.
 * Queues that are paused are left alone. Returns NULL, or the mistake. */
const char *runs_go(struct ledger *ledger, const bool *paused, struct tw_store *store, struct rng *rng);

/* How many calls there were in all. */
uint64_t runs_calls(void);

#endif
