/* SPDX-License-Identifier: MIT
 *
 * A timer's deadline follows from the records alone, not from the wheel. The recorded system kept a timer
 * armed until that system fired it, however late. A deadline that is not after the tick of its record counts
 * as the next tick. The wheel does the same, so both are measured by the same rule.
 */
#include "lateness.h"

#include <stdbool.h>
#include <stdlib.h>

struct armed {
    uint64_t deadline;
    bool armed;
};

static void count_firing(struct lateness *lateness, uint64_t tick, uint64_t deadline)
{
    uint64_t late = tick > deadline ? tick - deadline : 0;
    lateness->fired++;
    lateness->late += late > 0;
    lateness->sum += (double)late;
    if (late > lateness->max)
        lateness->max = late;
}

int lateness_read(struct lateness *lateness, const struct trace *trace)
{
    struct armed *timers = calloc((size_t)trace->ids + 1, sizeof *timers);
    if (timers == NULL)
        return -1;
    for (size_t i = 0; i < trace->count; i++) {
        const struct record *record = &trace->records[i];
        struct armed *timer = &timers[record->id];
        if (record->what == RECORD_FIRED && timer->armed)
            count_firing(lateness, record->tick, timer->deadline);
        timer->armed = record->what == RECORD_ADD || record->what == RECORD_MOVE;
        if (timer->armed)
            timer->deadline = record->deadline > record->tick ? record->deadline : record->tick + 1;
    }
    free(timers);
    return 0;
}
