/* SPDX-License-Identifier: MIT
 *
 * A reading: the state of a scheduler or a server at one moment. Two readings give rates.
 */
#ifndef COMMAND_READING_H
#define COMMAND_READING_H

#include "stats_socket.h"

/* A number that this source does not report. */
#define ABSENT UINT64_MAX

enum { READING_STEPS = 60, READING_QUEUES = 20, READING_NAME = 64 };

/* The numbers that a source may report. The numbers before COUNT_LEVELS are levels, which rise and fall; the
 * other numbers count events. */
enum count {
    COUNT_PENDING, /* of a scheduler */
    COUNT_TASKS,   /* of a server: the sum of WAITING, READY and LEASED */
    COUNT_WAITING, /* of a server or a file: a state of docs/contract.md, as are READY, LEASED and DEAD */
    COUNT_READY,
    COUNT_OLDEST_READY, /* how long the oldest ready task has been ready, in ms */
    COUNT_LATE, /* of a server: ready tasks that it should have delivered or offered to workers by now */
    COUNT_LEASED,
    COUNT_RUNNING,
    COUNT_DEAD,
    COUNT_HELD,
    COUNT_PAUSED_TASKS, /* of a server: ready tasks that a pause keeps back */
    COUNT_PAUSED_QUEUES,
    COUNT_QUEUES,
    COUNT_KEYS,
    COUNT_MEMORY,
    COUNT_LEVELS,
    COUNT_FIRED = COUNT_LEVELS, /* calls of a scheduler */
    COUNT_DELIVERED,
    COUNT_PUT,   /* of a server */
    COUNT_ADDED, /* of a scheduler */
    COUNT_CANCELLED,
    COUNT_MOVED,
    COUNT_OFFERED, /* tasks for workers that have become ready */
    COUNT_TAKEN,
    COUNT_DONE,
    COUNT_FAILED,
    COUNT_BACK,
    COUNT_LAPSED,
    COUNT_AGAIN,
    COUNT_SKIPPED,
    COUNT_REFUSED,
    COUNT_DROPPED,
    COUNT_COALESCED,
    COUNT_DIED,
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
    DEFERRED_STOPPED, /* tickwheel.deliver is no */
    DEFERREDS
};

/* A queue of a server or a file. */
struct queue_seen {
    char name[READING_NAME]; /* printable */
    struct tw_bytes whole;   /* the name with all its bytes, which the feed keeps until it is read again */
    uint64_t hash;           /* of the whole name; other names may have the same printable form */
    uint64_t db, tasks, held, delivered, done, died, ready, leased, dead; /* tasks: not dead */
    uint64_t waiting;                                                     /* of a file */
    uint64_t next_ms; /* of a file: when the first waiting task comes; ABSENT: none waits */
    bool paused;      /* so its tasks wait */
};

struct reading {
    uint64_t at_ns;      /* time of the reading on a monotonic clock */
    const char *source;  /* "scheduler", "redis" or "store" */
    char address[160];   /* as the user gave it, but printable */
    const char *given;   /* the same with all its bytes */
    char version[32];    /* of the server, or of tickwheel run */
    char state[128];     /* for people: role, process id */
    bool replica;        /* of a server that leaves all deliveries to its primary */
    char durability[16]; /* empty: not reported */
    char warning[1024];  /* empty: no warning */
    char deliver[4];     /* yes or no, as tickwheel.deliver of the server; empty: not reported */
    bool alone;          /* the forecast is that of one queue, whose name may be empty */
    char queue[160];     /* name of that queue, printable */
    const char *asked;   /* the same with all its bytes */
    uint64_t up_s;       /* ABSENT: not reported */
    uint64_t time_ms;    /* of a file: Unix time of the reading */
    uint64_t instance;   /* changes when the process has been started again; 0: not reported */
    uint64_t count[COUNTS];
    uint64_t deferred[DEFERREDS];                     /* all ABSENT for a scheduler */
    uint64_t recent[LATE_NUMBERS], all[LATE_NUMBERS]; /* how late; all but LATE_CALLS may be ABSENT */
    uint64_t forecast[READING_STEPS];                 /* tasks due in each of the coming seconds */
    bool exact;                                       /* the forecast is not an estimate */
    struct queue_seen seen[READING_QUEUES];           /* the largest */
    size_t queues;
    struct queue_seen paused[READING_QUEUES]; /* that keeps most ready or due tasks back first */
    size_t pauses;
    bool tells_pauses; /* the source reports them */
};

extern const char *const COUNT_NAMES[COUNTS];
extern const char *const DEFERRED_NAMES[DEFERREDS];

/* Makes a reading in which every number is ABSENT. `given` is the address of the source. `queue`: the one that
 * is read; NULL: all. */
void reading_init(struct reading *reading, const char *source, const char *given, const char *queue);

/* Returns false if the server or process has been started again between the two readings. */
bool reading_goes_on(const struct reading *before, const struct reading *after);

/* Return how much a number has grown in a second between two readings. Negative means that it is not known,
 * because
 *
 * - the number is ABSENT in one of the readings,
 * - there is no earlier reading (`before` is NULL),
 * - the server has been started again. */
double reading_rate(const struct reading *before, const struct reading *after, enum count count);
/* The same for the tasks that were delivered or became ready. */
double reading_due_rate(const struct reading *before, const struct reading *after);
double reading_deferred_rate(const struct reading *before, const struct reading *after, enum deferred why);

/* Returns the number of tasks that were delivered or became ready since the start. */
uint64_t reading_due(const struct reading *reading);

/* Returns whether the server has had tasks for workers since its start. */
bool reading_has_workers(const struct reading *reading);

/* Return the sum of the forecast, and its largest step. */
uint64_t reading_sum(const struct reading *reading);
uint64_t reading_most(const struct reading *reading);

/* Returns whether the reading is that of a file of tasks. Nobody counts the calls of its tasks. */
bool reading_is_store(const struct reading *reading);

/* Returns microseconds, which may be ABSENT, as nanoseconds. */
uint64_t reading_ns_of_us(uint64_t us);

/* Returns a hash of any bytes; it is never 0. */
uint64_t reading_hash(struct tw_bytes bytes);

/* Sets the name of a queue, in each form. */
void reading_name(struct queue_seen *seen, struct tw_bytes name);

#endif
