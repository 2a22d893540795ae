/* SPDX-License-Identifier: MIT
 *
 * Small things that each load needs: clocks, memory, figures, and files.
 */
#ifndef BENCH_STORE_TOOLS_H
#define BENCH_STORE_TOOLS_H

#include <stddef.h>
#include <stdint.h>

/* Ends the program with a message in the words of printf(). */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Allocates zeroed memory for `count` elements, or ends the program. */
void *need(size_t count, size_t size);

/* The time since some moment, in nanoseconds. */
uint64_t now_ns(void);

/* The Unix time in microseconds. */
uint64_t wall_us(void);

/* Prints a figure: a line of its name and its value. */
void print(const char *metric, double value);

/* Sorts the values, and prints them as NAME_p50_us, NAME_p99_us and NAME_max_us. */
void print_spread(const char *name, uint64_t *values, size_t n);

/* Prints a line of /proc/self/status, which is in KiB, in bytes. Example: "VmRSS:". */
void print_memory(const char *metric, const char *name);

/* Waits until nothing that was written before is on its way to the disk, so that a load pays for its own writes
 * alone. */
void settle(void);

/* Removes a store's files: the database, its log, and the files beside them. */
void remove_store(const char *path);

#endif
