/* SPDX-License-Identifier: MIT */
#include "timers.h"

#include "clock.h"

#include <stdlib.h>

enum { PATIENCE_MS = 60000 };

struct timers {
    struct tw_wheel *wheel;
};

struct timers *timers_new(void)
{
    const struct tw_geometry geometry = TW_GEOMETRY_SMALL;
    struct timers *timers = malloc(sizeof *timers);
    if (timers != NULL && tw_wheel_new(&timers->wheel, &geometry, monotonic_ms()) == 0)
        return timers;
    free(timers);
    return NULL;
}

void timers_free(struct timers *timers)
{
    if (timers == NULL)
        return;
    tw_wheel_free(timers->wheel);
    free(timers);
}

/* The clock is rounded down, so one more tick makes sure that the timer is not early. TW_GEOMETRY_SMALL takes
 * every deadline. */
void timers_set(struct timers *timers, struct timer *timer, uint64_t ms)
{
    (void)tw_wheel_move_at(timers->wheel, &timer->timer, monotonic_ms() + ms + 1);
}

void timers_cancel(struct timers *timers, struct timer *timer)
{
    tw_wheel_cancel(timers->wheel, &timer->timer);
}

bool timers_wait(const struct timer *timer)
{
    return tw_timer_pending(&timer->timer);
}

int timers_patience_ms(const struct timers *timers)
{
    uint64_t next = tw_wheel_next_bound(timers->wheel), now = monotonic_ms();
    if (next == TW_NEVER)
        return -1;
    return next <= now ? 0 : next - now > PATIENCE_MS ? PATIENCE_MS : (int)(next - now);
}

void timers_fire(struct timers *timers)
{
    struct tw_timer *due;
    while ((due = tw_wheel_poll(timers->wheel, monotonic_ms())) != NULL) {
        struct timer *timer = TW_CONTAINER(due, struct timer, timer);
        if (timer->fire != NULL)
            timer->fire(timer->arg);
    }
}
