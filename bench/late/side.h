/* SPDX-License-Identifier: MIT
 *
 * A side of late_bench: a thing that calls a function when a task is due. Times are Unix times in milliseconds.
 */
#ifndef BENCH_LATE_SIDE_H
#define BENCH_LATE_SIDE_H

#include <stddef.h>
#include <stdint.h>

enum { NS_PER_MS = 1000000 };

struct side {
    const char *name;
    void (*open)(const char *path);
    /* Files n tasks, or probes. It is called before start() for tasks that stay pending, and after it for
     * probes. */
    void (*file)(const uint64_t *due_ms, size_t n);
    void (*start)(void);
    void (*close)(void); /* also of a file that was filled, and whose tasks were not run */
};

extern const struct side sched_side, store_side, libuv_side;

/* A handler begins with this call. */
void called(uint64_t due_ms);

/* The system's time of day. */
uint64_t wall_ns(void);

/* Nanoseconds from now to then; 0 if then has passed. */
uint64_t until_ns(uint64_t due_ms);

/* Memory that is there, or the program ends. */
void *need(size_t n, size_t size);

_Noreturn void fail(const char *words);

#endif
