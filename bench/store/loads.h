/* SPDX-License-Identifier: MIT
 *
 * The loads. Each runs on one side, once, and prints its figures.
 */
#ifndef BENCH_STORE_LOADS_H
#define BENCH_STORE_LOADS_H

#include "peer.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <tickwheel/store.h>

struct run {
    const char *side;
    const char *path; /* of the file, which a load makes and removes, if it is not a file of `fill` */
    size_t n;         /* tasks */
    uint64_t random;  /* the state of the random numbers */
};

enum { DAYS = 30 };

/* Returns an array of n tasks, with the ids order:FIRST and on. They are due on random milliseconds of the
 * thirty days from tomorrow on. */
struct row *make_rows(struct run *run, size_t first, size_t n);

/* Names task `number`. */
void name_row(struct row *row, size_t number);

/* A random number from 0 to n - 1. */
uint64_t draw(struct run *run, uint64_t n);

/* puts.c: filing tasks, and changing some of `n` tasks of a file that `fill` has made. */
void load_put_one(struct run *run);
void load_put_batch(struct run *run);
void load_put_64(struct run *run);
void load_change(struct run *run);

/* due.c: n tasks that are due together. */
void load_due(struct run *run);

/* runner.c: our runner, on a file that `fill` has made. */
void load_late(struct run *run);
void load_pending(struct run *run);
void load_idle(struct run *run);

/* queues.c: our runner, and a file of n queues. */
void load_queues(struct run *run);

/* Opens the run's file, and starts its runner with one handler: of a queue or, if that is NULL, of all. */
struct tw_store *start_runner(struct run *run, const char *queue, tw_store_handler_fn *handler, void *arg);

/* Stops the runner, and closes the file. */
void end_runner(struct tw_store *store);

/* notice.c: our runner, while another process writes to its file. */
void load_notice(struct run *run);
void load_unrelated(struct run *run);

/* Makes zeroed memory that two processes share. */
void *share(size_t size);

/* Starts another process, which works when *begin is set. It starts before the store is opened, because a store
 * does not survive a fork. *begin and `shared`: in shared memory. */
pid_t start_other(struct run *run, void (*work)(struct run *, void *shared), void *shared, atomic_bool *begin);

/* Waits for its end. */
void wait_for_other(pid_t other);

/* fill.c: files of n tasks, made without waiting for the disk. They are due within thirty days, from tomorrow
 * on or from now on. */
void fill(struct run *run);
void fill_now(struct run *run);

#endif
