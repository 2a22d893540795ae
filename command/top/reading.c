/* SPDX-License-Identifier: MIT */
#include "reading.h"

#include "hash.h"
#include "text.h"

#include <string.h>

const char *const COUNT_NAMES[COUNTS] = {
    [COUNT_PENDING] = "pending",
    [COUNT_TASKS] = "tasks",
    [COUNT_WAITING] = "waiting",
    [COUNT_READY] = "ready",
    [COUNT_OLDEST_READY] = "oldest_ready_ms",
    [COUNT_LATE] = "late",
    [COUNT_LEASED] = "leased",
    [COUNT_DEAD] = "dead",
    [COUNT_HELD] = "held",
    [COUNT_PAUSED_TASKS] = "paused_tasks",
    [COUNT_PAUSED_QUEUES] = "paused_queues",
    [COUNT_QUEUES] = "queues",
    [COUNT_KEYS] = "keys",
    [COUNT_RUNNING] = "running",
    [COUNT_MEMORY] = "memory",
    [COUNT_FIRED] = "fired",
    [COUNT_DELIVERED] = "delivered",
    [COUNT_PUT] = "put",
    [COUNT_ADDED] = "added",
    [COUNT_CANCELLED] = "cancelled",
    [COUNT_MOVED] = "moved",
    [COUNT_OFFERED] = "offered",
    [COUNT_TAKEN] = "taken",
    [COUNT_DONE] = "done",
    [COUNT_FAILED] = "failed",
    [COUNT_BACK] = "back",
    [COUNT_LAPSED] = "lapsed",
    [COUNT_AGAIN] = "again",
    [COUNT_SKIPPED] = "skipped",
    [COUNT_REFUSED] = "refused",
    [COUNT_DROPPED] = "dropped",
    [COUNT_COALESCED] = "coalesced",
    [COUNT_DIED] = "died",
};

const char *const DEFERRED_NAMES[DEFERREDS] = {
    [DEFERRED_PAUSE] = "pause",     [DEFERRED_ROLE] = "role",         [DEFERRED_OOM] = "oom",
    [DEFERRED_SLOT] = "slot",       [DEFERRED_REPLICAS] = "replicas", [DEFERRED_DISK] = "disk",
    [DEFERRED_REFUSED] = "refused", [DEFERRED_STOPPED] = "stopped",
};

void reading_init(struct reading *reading, const char *source, const char *given, const char *queue)
{
    *reading = (struct reading){.source = source, .given = given, .alone = queue != NULL, .asked = queue};
    text_clean(reading->address, sizeof reading->address, tw_text(given));
    if (queue != NULL)
        text_clean(reading->queue, sizeof reading->queue, tw_text(queue));
    for (int i = 0; i < COUNTS; i++)
        reading->count[i] = ABSENT;
    for (int i = 0; i < DEFERREDS; i++)
        reading->deferred[i] = ABSENT;
    for (int i = 0; i < LATE_NUMBERS; i++)
        reading->recent[i] = reading->all[i] = ABSENT;
}

bool reading_goes_on(const struct reading *before, const struct reading *after)
{
    return after->up_s >= before->up_s && after->instance == before->instance;
}

static double rate(const struct reading *before, const struct reading *after, uint64_t from, uint64_t to)
{
    if (from == ABSENT || to == ABSENT || to < from || !reading_goes_on(before, after) ||
        after->at_ns <= before->at_ns)
        return -1;
    return (double)(to - from) * 1e9 / (double)(after->at_ns - before->at_ns);
}

double reading_rate(const struct reading *before, const struct reading *after, enum count count)
{
    return before == NULL ? -1 : rate(before, after, before->count[count], after->count[count]);
}

double reading_deferred_rate(const struct reading *before, const struct reading *after, enum deferred why)
{
    return before == NULL ? -1 : rate(before, after, before->deferred[why], after->deferred[why]);
}

/* The count; 0 if the source does not report it. */
static uint64_t count_or_none(const struct reading *reading, enum count count)
{
    return reading->count[count] == ABSENT ? 0 : reading->count[count];
}

uint64_t reading_due(const struct reading *reading)
{
    uint64_t fired = reading->count[COUNT_FIRED], delivered = reading->count[COUNT_DELIVERED];
    return delivered == ABSENT ? fired : delivered + count_or_none(reading, COUNT_OFFERED);
}

double reading_due_rate(const struct reading *before, const struct reading *after)
{
    return before == NULL ? -1 : rate(before, after, reading_due(before), reading_due(after));
}

bool reading_has_workers(const struct reading *reading)
{
    return count_or_none(reading, COUNT_OFFERED) + count_or_none(reading, COUNT_LEASED) > 0;
}

uint64_t reading_sum(const struct reading *reading)
{
    uint64_t sum = 0;
    for (int i = 0; i < READING_STEPS; i++)
        sum += reading->forecast[i];
    return sum;
}

uint64_t reading_most(const struct reading *reading)
{
    uint64_t most = 0;
    for (int i = 0; i < READING_STEPS; i++)
        if (reading->forecast[i] > most)
            most = reading->forecast[i];
    return most;
}

bool reading_is_store(const struct reading *reading)
{
    return strcmp(reading->source, "store") == 0;
}

uint64_t reading_ns_of_us(uint64_t us)
{
    return us > ABSENT / 1000 ? ABSENT : us * 1000;
}

uint64_t reading_hash(struct tw_bytes bytes)
{
    uint64_t hash = hash_bytes(HASH_BEGIN, bytes.data, bytes.size);
    return hash == 0 ? 1 : hash;
}

void reading_name(struct queue_seen *seen, struct tw_bytes name)
{
    text_clean(seen->name, sizeof seen->name, name);
    seen->whole = name;
    seen->hash = reading_hash(name);
}
