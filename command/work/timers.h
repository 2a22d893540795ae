/* SPDX-License-Identifier: MIT
 *
 * The timers of a worker, on a wheel whose tick is a millisecond. One thread uses them.
 */
#ifndef COMMAND_TIMERS_H
#define COMMAND_TIMERS_H

#include <tickwheel/wheel.h>

struct timers;

/* A timer, inside the object that it belongs to. Zeroed at first, but for `fire` and `arg`. Without `fire` it
 * only waits, for timers_wait(). */
struct timer {
    struct tw_timer timer;
    void (*fire)(void *arg);
    void *arg;
};

/* Returns NULL if there is no memory. */
struct timers *timers_new(void);
void timers_free(struct timers *timers);

/* Lets a timer fire `ms` from now, also if it waits already. It is never early. */
void timers_set(struct timers *timers, struct timer *timer, uint64_t ms);

/* Stops a timer, if it waits. */
void timers_cancel(struct timers *timers, struct timer *timer);

/* Returns whether a timer waits. */
bool timers_wait(const struct timer *timer);

/* Returns how long poll() may sleep, in milliseconds; -1: no timer waits. */
int timers_patience_ms(const struct timers *timers);

/* Fires the timers that are due. */
void timers_fire(struct timers *timers);

#endif
