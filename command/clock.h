/* SPDX-License-Identifier: MIT
 *
 * The clocks of the system.
 */
#ifndef COMMAND_CLOCK_H
#define COMMAND_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Returns the time of a clock in nanoseconds. */
static inline uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Return the time of a clock that only goes forward. */
static inline uint64_t monotonic_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

static inline uint64_t monotonic_ms(void)
{
    return monotonic_ns() / 1000000;
}

/* Sleeps, also if a signal comes. */
static inline void sleep_ns(uint64_t ns)
{
    struct timespec left = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    while (nanosleep(&left, &left) != 0)
        ;
}

#endif
