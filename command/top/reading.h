/* SPDX-License-Identifier: MIT
 *
 * What `tickwheel top` has read of a scheduler or of a server at one moment, and what two such moments tell.
 */
#ifndef COMMAND_READING_H
#define COMMAND_READING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A number that this source does not tell. */
#define ABSENT UINT64_MAX

enum { READING_STEPS = 60, READING_SCHEDULES = 20, READING_NAME = 64 };

/* Numbers that a source may tell. Those up to COUNT_LEVELS are levels, the others grow. */
enum count {
    COUNT_PENDING,
    COUNT_OVERDUE,
    COUNT_HELD,
    COUNT_SCHEDULES,
    COUNT_KEYS,
    COUNT_RUNNING,
    COUNT_MEMORY,
    COUNT_LEVELS,
    COUNT_FIRED = COUNT_LEVELS,
    COUNT_ADDED,
    COUNT_CANCELLED,
    COUNT_MOVED,
    COUNT_AGAIN,
    COUNT_SKIPPED,
    COUNT_REFUSED,
    COUNT_DROPPED,
    COUNT_COALESCED,
    COUNT_DEAD,
    COUNTS
};

/* Why deliveries were put off, and how often. */
enum deferred {
    DEFERRED_PAUSE,
    DEFERRED_ROLE,
    DEFERRED_OOM,
    DEFERRED_SLOT,
    DEFERRED_REPLICAS,
    DEFERRED_DISK,
    DEFERRED_REFUSED,
    DEFERREDS
};

/* How late calls were, in nanoseconds; each but `calls` may be absent. */
struct lateness_of {
    uint64_t calls, p50, p90, p99, p999, max;
};

struct schedule_seen {
    char name[READING_NAME]; /* printable */
    uint64_t hash;           /* of the name as it is: others may look like it */
    uint64_t db, tasks, held, fired, dead;
};

struct reading {
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
    uint64_t count[COUNTS];
    uint64_t deferred[DEFERREDS]; /* all absent for a scheduler */
    struct lateness_of recent, all;
    uint64_t forecast[READING_STEPS]; /* a second each */
    bool exact;                       /* the forecast is not an estimate */
    struct schedule_seen seen[READING_SCHEDULES];
    size_t schedules;
};

extern const char *const COUNT_NAMES[COUNTS];
extern const char *const DEFERRED_NAMES[DEFERREDS];

/* One in which every number is absent. */
void reading_init(struct reading *reading);

/* The monotonic clock. */
uint64_t reading_now(void);

/* Whether both are of the same life of a server or a process. */
bool reading_goes_on(const struct reading *before, const struct reading *after);

/* How much a number has grown in a second between two readings; negative: it cannot be told, as it is absent,
 * or there was none before (`before` is NULL), or the server has started anew. */
double reading_rate(const struct reading *before, const struct reading *after, enum count count);
double reading_deferred_rate(const struct reading *before, const struct reading *after, enum deferred why);

/* What is forecast in all, and the most in one step. */
uint64_t reading_sum(const struct reading *reading);
uint64_t reading_most(const struct reading *reading);

/* Of any bytes; never 0. */
uint64_t reading_hash(const char *bytes, size_t size);

/* Copies a text, cut to size, its control bytes and what is not ASCII as '?': a terminal must not obey it. */
void reading_text(char *to, size_t size, const char *from, size_t length);

#endif
