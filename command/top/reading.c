/* SPDX-License-Identifier: MIT */
#include "reading.h"

#include <string.h>
#include <time.h>

const char *const TW_COUNT_NAMES[TW_COUNTS] = {
    [TW_COUNT_PENDING] = "pending",     [TW_COUNT_OVERDUE] = "overdue", [TW_COUNT_HELD] = "held",
    [TW_COUNT_SCHEDULES] = "schedules", [TW_COUNT_KEYS] = "keys",       [TW_COUNT_RUNNING] = "running",
    [TW_COUNT_MEMORY] = "memory",       [TW_COUNT_FIRED] = "fired",     [TW_COUNT_ADDED] = "added",
    [TW_COUNT_CANCELLED] = "cancelled", [TW_COUNT_MOVED] = "moved",     [TW_COUNT_AGAIN] = "again",
    [TW_COUNT_SKIPPED] = "skipped",     [TW_COUNT_REFUSED] = "refused", [TW_COUNT_DROPPED] = "dropped",
    [TW_COUNT_COALESCED] = "coalesced", [TW_COUNT_DEAD] = "dead",
};

const char *const TW_DEFERRED_NAMES[TW_DEFERREDS] = {
    [TW_DEFERRED_PAUSE] = "pause",     [TW_DEFERRED_ROLE] = "role",         [TW_DEFERRED_OOM] = "oom",
    [TW_DEFERRED_SLOT] = "slot",       [TW_DEFERRED_REPLICAS] = "replicas", [TW_DEFERRED_DISK] = "disk",
    [TW_DEFERRED_REFUSED] = "refused",
};

void tw_reading_init(struct tw_reading *reading)
{
    const struct tw_lateness_of none = {TW_ABSENT, TW_ABSENT, TW_ABSENT, TW_ABSENT, TW_ABSENT, TW_ABSENT};
    memset(reading, 0, sizeof *reading);
    for (int i = 0; i < TW_COUNTS; i++)
        reading->count[i] = TW_ABSENT;
    for (int i = 0; i < TW_DEFERREDS; i++)
        reading->deferred[i] = TW_ABSENT;
    reading->recent = reading->all = none;
}

uint64_t tw_reading_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

bool tw_reading_goes_on(const struct tw_reading *before, const struct tw_reading *after)
{
    return after->up_s >= before->up_s && after->instance == before->instance;
}

static double rate(const struct tw_reading *before, const struct tw_reading *after, uint64_t from, uint64_t to)
{
    if (from == TW_ABSENT || to == TW_ABSENT || to < from || !tw_reading_goes_on(before, after) ||
        after->at_ns <= before->at_ns)
        return -1;
    return (double)(to - from) * 1e9 / (double)(after->at_ns - before->at_ns);
}

double tw_reading_rate(const struct tw_reading *before, const struct tw_reading *after, enum tw_count count)
{
    return before == NULL ? -1 : rate(before, after, before->count[count], after->count[count]);
}

double tw_reading_deferred_rate(const struct tw_reading *before, const struct tw_reading *after,
                                enum tw_deferred why)
{
    return before == NULL ? -1 : rate(before, after, before->deferred[why], after->deferred[why]);
}

uint64_t tw_reading_sum(const struct tw_reading *reading)
{
    uint64_t sum = 0;
    for (int i = 0; i < TW_READING_STEPS; i++)
        sum += reading->forecast[i];
    return sum;
}

uint64_t tw_reading_most(const struct tw_reading *reading)
{
    uint64_t most = 0;
    for (int i = 0; i < TW_READING_STEPS; i++)
        if (reading->forecast[i] > most)
            most = reading->forecast[i];
    return most;
}

/* FNV-1a. */
uint64_t tw_reading_hash(const char *bytes, size_t size)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
    return hash == 0 ? 1 : hash;
}

void tw_reading_text(char *to, size_t size, const char *from, size_t length)
{
    size_t i = 0;
    for (; i < length && i + 1 < size; i++)
        to[i] = from[i] >= ' ' && from[i] < 127 ? from[i] : '?';
    to[i] = '\0';
}
