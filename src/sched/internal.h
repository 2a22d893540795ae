/* SPDX-License-Identifier: MIT
 *
 * The scheduler's own structures. The essay is in sched.c.
 */
#ifndef TW_SCHED_INTERNAL_H
#define TW_SCHED_INTERNAL_H

#include "thread_slot.h"

#include <tickwheel/sched.h>

#include <base/assert.h>
#include <base/histogram.h>
#include <base/list.h>
#include <base/saturate.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum {
    TW__SCHED_INDEX_BITS = 25, /* tasks of a shard */
    TW__SCHED_SHARD_BITS = 6,
    TW__SCHED_SHARDS = 1 << TW__SCHED_SHARD_BITS, /* shards of a scheduler at most */
    TW__SCHED_LINE = 64,                          /* bytes of a cache line */
    TW__SCHED_CHUNK_SHIFT = 10,                   /* tasks are allocated by the thousand */
    TW__SCHED_CHUNK = 1 << TW__SCHED_CHUNK_SHIFT,
    TW__SCHED_SHORT = 24, /* a key of at most so many bytes lies in its slot */
    TW__SCHED_LOOSE = 8,  /* cancelled tasks that are taken out of the wheel a little later */
    TW__SCHED_LEGACY_BITS = 1 << 16,
    TW__SCHED_AHEAD = 8,    /* READY tasks between a task that starts and the task that is prefetched */
    TW__SCHED_COLLECT = 64, /* units of work under one hold of a shard's lock */
};

/* A task's function and its argument, which the release hook may be owed. `fn` is NULL if there is none. */
struct tw__sched_value {
    tw_task_fn *fn;
    void *arg;
};

/* Where a task is. */
enum tw__sched_state {
    TW__SCHED_FREE,
    TW__SCHED_PENDING, /* in the wheel */
    TW__SCHED_READY,   /* in the ready, the sent or the aside list */
    TW__SCHED_RUNNING  /* its callback is under way */
};

/* The details of a task that repeats; other tasks have none. */
struct tw__sched_details {
    void *arg;
    uint64_t period_ns;
    uint64_t left;           /* calls after the call that is filed or under way */
    uint64_t missed_periods; /* periods that the next call stands for besides its own */
    /* the time of the call that filed the task; its lower bits, where the clock has run for 146 years */
    __extension__ uint64_t filed_ns : 62;
    __extension__ uint64_t missed : 2; /* enum tw_missed */
};
_Static_assert(sizeof(void *) != 8 || sizeof(struct tw__sched_details) == 40, "docs/guide.md says 40 bytes");

/* A task is one cache line. Its state tells which list or wheel the task is in. */
struct tw__sched_task {
    union {
        struct tw_timer timer; /* PENDING */
        struct {               /* READY */
            struct tw__link link;
            uint64_t tick;     /* the order in which READY tasks start */
            const void *ahead; /* a task that starts a little later, for a prefetch; it is never followed */
        };
        uint32_t next_free; /* FREE */
    };
    tw_task_fn *fn;
    void *arg; /* the argument; the details if `detailed` is set */
    uint64_t due_ns;
    uint32_t generation;
    uint32_t index : TW__SCHED_INDEX_BITS;
    uint32_t state : 2;
    uint32_t detailed : 1; /* arg is a struct tw__sched_details */
    uint32_t again : 1;    /* RUNNING: file the task at due_ns when the callback has returned */
    uint32_t dead : 1;     /* RUNNING: do not file the task again */
    uint32_t counted : 1;  /* the task counts towards max_pending */
    uint32_t keyed : 1;    /* the line is one of those for tasks with keys */
};
_Static_assert(sizeof(void *) != 8 || sizeof(struct tw__sched_task) == 64, "a task is one cache line");

/* A key of more than TW__SCHED_SHORT bytes has a block of its own. */
struct tw__sched_long {
    uint32_t size;
    uint32_t holders; /* 1 for the task, 1 more while a hand-over uses the key */
    unsigned char bytes[];
};

/* The slot of a task with a key. */
struct tw__sched_slot {
    uint32_t tag;        /* the lower half of the key's hash */
    uint32_t size : 30;  /* of the key; 0: no key */
    uint32_t legacy : 1; /* the key was set in shard 0 before keys were spread, and its hash slot is not 0 */
    uint32_t fresh : 1; /* RUNNING: the key was set anew during the call, so fn and arg are for the next call */
    union {
        unsigned char bytes[TW__SCHED_SHORT];
        struct tw__sched_long *block; /* if the key is longer */
    };
};
_Static_assert(sizeof(struct tw__sched_slot) == TW__SCHED_LINE / 2, "two slots are one cache line");

/* A call under way, on the stack of the thread that makes it. */
struct tw__sched_call {
    struct tw__link link; /* in the busy list */
    pthread_t thread;
    struct tw__sched_task *task;
    struct tw_task seen;
    uint64_t begun_ns;
    bool waited; /* a thread waits for the callback to return */
};

/* A table of keys; see table.c. */
struct tw__sched_segment;
struct tw__sched_directory;
struct tw__sched_table {
    _Atomic(struct tw__sched_directory *) directory; /* NULL before the first key */
};

/* A search in the table. */
struct tw__sched_probe {
    const struct tw__sched_segment *segment; /* NULL: the table is empty */
    uint32_t tag, at;
};

/* The two kinds of lines. */
enum tw__sched_kind {
    TW__SCHED_PLAIN, /* for tasks without keys */
    TW__SCHED_KEYED, /* for tasks with keys: a slot belongs to each line */
    TW__SCHED_KINDS
};

/* The lines of one kind. */
struct tw__sched_lines {
    struct tw__sched_task **chunks;
    uint32_t chunk_count, chunk_room;
    uint32_t free; /* the first free task, or NONE */
    uint64_t room; /* free tasks */
};

/* Blocks of details, handed out one by one. */
struct tw__sched_blocks {
    void *free;    /* the first free block: its first word is the next one */
    void *chunks;  /* the first chunk: its first word is the next one */
    uint64_t room; /* free blocks */
};

/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): the published ticks have their own line */
struct tw__sched_shard {
    _Alignas(64) pthread_mutex_t lock;
    struct tw_sched *sched;
    struct tw_wheel *wheel;
    uint64_t wake; /* filing a task for an earlier tick wakes the timer thread; 0: that thread is awake */
    struct tw__sched_lines lines[TW__SCHED_KINDS];
    struct tw__sched_task *loose[TW__SCHED_LOOSE];
    struct tw__sched_task *collected[TW__SCHED_AHEAD]; /* the last tasks that came from the wheel */
    uint32_t loose_next;     /* tasks ever put into `loose`; modulo 8 it is the place that is emptied next */
    uint32_t collected_next; /* tasks that ever came; modulo 8 it is the place that is used next */
    uint32_t number;
    uint32_t unchecked; /* TW_DEBUG 2: changes since the last check */
    bool any_loose;
    bool stopped;
    struct tw__sched_blocks details[TW__SCHED_KINDS];
    struct tw__link ready; /* due, in the order in which they start */
    struct tw__link sent;  /* with the caller's executor */
    struct tw__link busy;  /* the calls under way */
    struct tw__link aside; /* tasks that a drain or a stop is about to hand over */
    uint64_t at_stop;      /* stats.added + stats.fired at the moment of the stop */
    pthread_cond_t idle;   /* a callback that a thread waits for has returned */
    struct tw__sched_table table;
    struct tw_sched_info stats;
    void *wheel_memory;
    size_t wheel_size;
    char *block; /* the block from memory() that this structure lies in */
    uint64_t lateness[TW__HISTOGRAM_BUCKETS];
    /* The ticks of the first tasks of `ready` and `sent`, for threads without the lock; see order.h. */
    _Alignas(TW__SCHED_LINE) _Atomic uint64_t ready_tick;
    _Atomic uint64_t sent_tick;
};
#define TW__SCHED_NONE UINT32_MAX

/* Which shard a thread slot or a hash slot files into, from 1; 0: none yet. See shard.c. */
struct tw__sched_shard_map {
    _Atomic uint8_t shard[TW__SCHED_THREADS];
    uint32_t taken; /* slots that have got a shard; under `setup` */
};

/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): what many threads write has its own line */
struct tw_sched {
    struct tw_sched_options options;
    struct tw_geometry geometry;
    pid_t process;         /* the process that made the scheduler */
    uint64_t base_ns;      /* the clock at tick 0 */
    uint8_t secret[16];    /* of the hash of keys */
    _Atomic uint32_t made; /* shards that are complete: shard[0] to shard[made - 1] */
    struct tw__sched_shard *shard[TW__SCHED_SHARDS];
    struct tw__sched_shard_map threads, hashes;
    _Atomic bool wide;            /* keys live in the shards of their hashes; see keys.c */
    _Atomic uint64_t legacy_keys; /* keys of shard 0 that are marked `legacy`; under the lock of shard 0 */
    uint64_t *legacy_bits;        /* a bit for each tag that such a key may have; NULL: see widen() in keys.c */
    _Atomic pthread_t timer;      /* the timer thread, which sets this itself */
    _Atomic bool started;         /* the threads run */
    _Atomic bool quit;
    _Alignas(TW__SCHED_LINE) _Atomic uint64_t counted; /* tasks that count towards max_pending */
    _Atomic uint64_t memory;                           /* bytes */
    _Atomic uint64_t virtual_ns;
    _Atomic bool advancing;  /* tw_sched_advance() is under way */
    _Atomic uint32_t guests; /* TW_DEBUG 1: calls from outside callbacks that wait or hand tasks over */
    bool closed;             /* under `setup`: no shard is made any more */
    pthread_mutex_t setup;   /* starting threads and making shards */
    pthread_t timer_thread;
    pthread_t *workers;
    uint32_t worker_count; /* workers that were started */
    int timer_fd, event_fd;
    pthread_mutex_t pool_lock;
    pthread_cond_t pool_work;
    uint64_t told;               /* how often workers were told of work */
    _Atomic uint32_t next_shard; /* where the next search for a ready task begins */
    _Atomic uint64_t horizon;    /* the tick up to which workers start tasks; see due.c */
    void *block;                 /* the block from memory() that this structure lies in */
    size_t block_size;
};

/* Whether there is a scheduler, and this process made it, not the parent of this process. */
static inline bool tw__sched_usable(const struct tw_sched *sched)
{
    return sched != NULL && sched->process == getpid();
}

/* The number of shards that are complete. */
static inline uint32_t tw__sched_made(const struct tw_sched *sched)
{
    return atomic_load_explicit(&sched->made, memory_order_acquire);
}

/* Whether this thread holds the shard's lock. For TW_DEBUG only: there a second lock fails with EDEADLK. */
static inline bool tw__sched_locked(const struct tw__sched_shard *shard)
{
    return pthread_mutex_lock((pthread_mutex_t *)(uintptr_t)&shard->lock) == EDEADLK;
}

/* The task that contains this link of the ready, the sent or the aside list. */
static inline struct tw__sched_task *tw__sched_task_linked(struct tw__link *link)
{
    return (struct tw__sched_task *)(void *)link;
}

/* The call that contains this link of the busy list. */
static inline struct tw__sched_call *tw__sched_call_linked(struct tw__link *link)
{
    return TW_CONTAINER(link, struct tw__sched_call, link);
}

#endif
