/* SPDX-License-Identifier: MIT
 *
 * A side of late_bench: a thing that calls a function when a task is due. Times are Unix times in microseconds.
 */
#ifndef BENCH_LATE_SIDE_H
#define BENCH_LATE_SIDE_H

#include <stddef.h>
#include <stdint.h>

enum { NS_PER_US = 1000, US_PER_MS = 1000, NS_PER_MS = NS_PER_US * US_PER_MS };

struct side {
    const char *name;
    uint64_t unit_us; /* of the due times that the side takes: they are whole multiples of it */
    void (*open)(const char *path);
    /* Files n tasks, or probes. It is called before start() for tasks that stay pending, and after it for
     * probes. */
    void (*file)(const uint64_t *due_us, size_t n);
    void (*start)(void);
    void (*close)(void); /* also of a file that was filled, and whose tasks were not run */
};

extern const struct side sched_side, store_side, libuv_side;

/* A handler begins with this call. */
void called(uint64_t due_us);

/* The system's time of day. */
uint64_t wall_ns(void);

/* Nanoseconds from now to then; 0 if then has passed. */
uint64_t until_ns(uint64_t due_us);

/* Memory that is there, or the program ends. */
void *need(size_t n, size_t size);

_Noreturn void fail(const char *words);

#endif
