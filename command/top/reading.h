/* SPDX-License-Identifier: MIT
 *
 * What `tickwheel top` has read of a scheduler or of a server at one moment, and what two such moments tell.
 */
#ifndef TW_TOOLS_READING_H
#define TW_TOOLS_READING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A number that this source does not tell. */
#define TW_ABSENT UINT64_MAX

enum { TW_READING_STEPS = 60, TW_READING_SCHEDULES = 20, TW_READING_NAME = 64 };

/* Numbers that a source may tell. Those up to TW_COUNT_LEVELS are levels, the others grow. */
enum tw_count {
    TW_COUNT_PENDING,
    TW_COUNT_OVERDUE,
    TW_COUNT_HELD,
    TW_COUNT_SCHEDULES,
    TW_COUNT_KEYS,
    TW_COUNT_RUNNING,
    TW_COUNT_MEMORY,
    TW_COUNT_LEVELS,
    TW_COUNT_FIRED = TW_COUNT_LEVELS,
    TW_COUNT_ADDED,
    TW_COUNT_CANCELLED,
    TW_COUNT_MOVED,
    TW_COUNT_AGAIN,
    TW_COUNT_SKIPPED,
    TW_COUNT_REFUSED,
    TW_COUNT_DROPPED,
    TW_COUNT_COALESCED,
    TW_COUNT_DEAD,
    TW_COUNTS
};

/* Why deliveries were put off, and how often. */
enum tw_deferred {
    TW_DEFERRED_PAUSE,
    TW_DEFERRED_ROLE,
    TW_DEFERRED_OOM,
    TW_DEFERRED_SLOT,
    TW_DEFERRED_REPLICAS,
    TW_DEFERRED_DISK,
    TW_DEFERRED_REFUSED,
    TW_DEFERREDS
};

/* How late calls were, in nanoseconds; each but `calls` may be absent. */
struct tw_lateness_of {
    uint64_t calls, p50, p90, p99, p999, max;
};

struct tw_schedule_seen {
    char name[TW_READING_NAME]; /* printable */
    uint64_t hash;              /* of the name as it is: others may look like it */
    uint64_t db, tasks, held, fired, dead;
};

struct tw_reading {
    uint64_t at_ns;      /* when it was read, on the monotonic clock */
    const char *source;  /* "scheduler" or "redis" */
    char address[160];   /* as it was given */
    char version[32];    /* of the server, or of tickwheel run */
    char state[128];     /* for people: role, process id */
    char durability[16]; /* empty: not told */
    char warning[160];   /* empty: none */
    bool alone;          /* the forecast is of one schedule, which may have an empty name */
    char schedule[160];  /* that one */
    uint64_t up_s;
    uint64_t instance; /* another one once it has started anew; 0: not told */
    uint64_t count[TW_COUNTS];
    uint64_t deferred[TW_DEFERREDS]; /* all absent for a scheduler */
    struct tw_lateness_of recent, all;
    uint64_t forecast[TW_READING_STEPS]; /* a second each */
    bool exact;                          /* the forecast is not an estimate */
    struct tw_schedule_seen seen[TW_READING_SCHEDULES];
    size_t schedules;
};

extern const char *const TW_COUNT_NAMES[TW_COUNTS];
extern const char *const TW_DEFERRED_NAMES[TW_DEFERREDS];

/* One in which every number is absent. */
void tw_reading_init(struct tw_reading *reading);

/* The monotonic clock. */
uint64_t tw_reading_now(void);

/* Whether both are of the same life of a server or a process. */
bool tw_reading_goes_on(const struct tw_reading *before, const struct tw_reading *after);

/* How much a number has grown in a second between two readings; negative: it cannot be told, as it is absent, or
 * there was none before (`before` is NULL), or the server has started anew. */
double tw_reading_rate(const struct tw_reading *before, const struct tw_reading *after, enum tw_count count);
double tw_reading_deferred_rate(const struct tw_reading *before, const struct tw_reading *after,
                                enum tw_deferred why);

/* What is forecast in all, and the most in one step. */
uint64_t tw_reading_sum(const struct tw_reading *reading);
uint64_t tw_reading_most(const struct tw_reading *reading);

/* Of any bytes; never 0. */
uint64_t tw_reading_hash(const char *bytes, size_t size);

/* Copies a text, cut to size, its control bytes and what is not ASCII as '?': a terminal must not obey it. */
void tw_reading_text(char *to, size_t size, const char *from, size_t length);

#endif
