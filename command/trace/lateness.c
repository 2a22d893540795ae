/* SPDX-License-Identifier: MIT
 *
 * A timer's deadline follows from the records alone, not from the wheel. The recorded system kept a timer
 * armed until that system fired it, however late. A deadline that is not after the tick of its record counts
 * as the next tick. The wheel does the same, so both are measured by the same rule.
 */
#include "lateness.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct armed {
    uint64_t deadline;
    bool armed;
};

static size_t count_remarks(const struct trace *trace)
{
    size_t count = 0;
    for (size_t i = 0; i < trace->count; i++)
        count += trace->records[i].what == RECORD_FIRED;
    return count;
}

static uint64_t ticks_late(struct lateness *lateness, uint64_t tick, uint64_t deadline)
{
    lateness->fired++;
    if (tick < deadline)
        lateness->early++;
    else if (tick > deadline)
        lateness->late++;
    return tick > deadline ? tick - deadline : 0;
}

/* Goes through the records and writes the lateness of each firing to `late`. Returns the number of
 * firings. */
static size_t follow(struct lateness *lateness, const struct trace *trace, struct armed *timers, uint64_t *late)
{
    size_t firings = 0;
    for (size_t i = 0; i < trace->count; i++) {
        const struct record *record = &trace->records[i];
        struct armed *timer = &timers[record->id];
        if (record->what == RECORD_FIRED && timer->armed)
            late[firings++] = ticks_late(lateness, record->tick, timer->deadline);
        timer->armed = record->what == RECORD_ADD || record->what == RECORD_MOVE;
        if (timer->armed)
            timer->deadline = record->deadline > record->tick ? record->deadline : record->tick + 1;
    }
    return firings;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void summarize(struct lateness *lateness, uint64_t *late, size_t count)
{
    double sum = 0;
    if (count == 0)
        return;
    qsort(late, count, sizeof *late, compare);
    for (size_t i = 0; i < count; i++)
        sum += (double)late[i];
    lateness->mean = sum / (double)count;
    /* The smallest value that at least 99 % of the values do not exceed. */
    lateness->p99 = late[(count * 99 + 99) / 100 - 1];
    lateness->max = late[count - 1];
}

int lateness_read(struct lateness *lateness, const struct trace *trace)
{
    memset(lateness, 0, sizeof *lateness);
    size_t remarks = count_remarks(trace);
    if (remarks == 0)
        return 0;
    struct armed *timers = calloc(trace->ids, sizeof *timers);
    uint64_t *late = calloc(remarks, sizeof *late);
    bool good = timers != NULL && late != NULL;
    if (good)
        summarize(lateness, late, follow(lateness, trace, timers, late));
    free(timers);
    free(late);
    return good ? 0 : -1;
}
