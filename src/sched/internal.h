/* SPDX-License-Identifier: MIT
 *
 * The scheduler's own structures. The essay is in sched.c.
 */
#ifndef TW_SCHED_INTERNAL_H
#define TW_SCHED_INTERNAL_H

#include <tickwheel/sched.h>

#include <base/assert.h>
#include <base/histogram.h>
#include <base/list.h>
#include <base/saturate.h>
#include <pthread.h>
#include <stdatomic.h>

enum {
    TW__SCHED_INDEX_BITS = 25, /* tasks of a shard */
    TW__SCHED_SHARD_BITS = 6,
    TW__SCHED_CHUNK_SHIFT = 10, /* tasks are allocated by the thousand */
    TW__SCHED_CHUNK = 1 << TW__SCHED_CHUNK_SHIFT,
    TW__SCHED_LOOSE = 8,    /* cancelled tasks that are taken out of the wheel a little later */
    TW__SCHED_COLLECT = 64, /* units of work under one hold of a shard's lock */
};

/* A function and its argument, which is to be released. `fn` NULL: none. */
struct tw__sched_value {
    tw_task_fn *fn;
    void *arg;
};

/* Where a task is. */
enum tw__sched_state {
    TW__SCHED_FREE,
    TW__SCHED_PENDING, /* in the wheel */
    TW__SCHED_READY,   /* due, in the ready list or with the caller's executor */
    TW__SCHED_RUNNING  /* its callback is under way */
};

/* What a task has besides, when it repeats or has a key. */
struct tw__sched_details {
    tw_task_fn *fn;
    void *arg;
    uint64_t period_ns; /* 0: once */
    uint64_t left;      /* calls after the one that is filed or under way */
    uint64_t missed;    /* periods that the next call stands for besides its own */
    uint32_t key_size;  /* 0: no key, and only these members */
    uint8_t policy;
    bool fresh;      /* RUNNING: set anew meanwhile, so fn and arg are not those of the call under way */
    uint8_t holders; /* the task, and a hand-over of a task whose callback is under way */
};

/* One cache line. Which list or wheel it is in, its state tells. */
struct tw__sched_task {
    union {
        struct tw_timer timer;
        struct tw__link link;
        uint32_t next_free;
    };
    tw_task_fn *fn;
    void *arg; /* or its details */
    uint64_t due_ns;
    uint32_t generation;
    uint32_t index : TW__SCHED_INDEX_BITS;
    uint32_t state : 2;
    uint32_t detailed : 1; /* arg is a struct tw__sched_details */
    uint32_t again : 1;    /* RUNNING: to be filed at due_ns when the callback has returned */
    uint32_t dead : 1;     /* RUNNING: not to be filed again */
    uint32_t waited : 1;   /* RUNNING: somebody waits for the callback to return */
    uint32_t counted : 1;  /* it counts towards max_pending */
};
_Static_assert(sizeof(void *) != 8 || sizeof(struct tw__sched_task) == 64, "a task is one cache line");

/* A table of keys; see table.c. */
struct tw__sched_segment;
struct tw__sched_table {
    struct tw__sched_segment **directory; /* 2^depth of them; NULL before the first key */
    uint32_t depth;
};

/* What it holds of a key. */
struct tw__sched_cell {
    uint32_t tag;   /* of the hash */
    uint32_t index; /* of the task */
    struct tw__sched_details *details;
};

/* A search in it. */
struct tw__sched_probe {
    const struct tw__sched_segment *segment;
    uint32_t tag, at;
};

/* Blocks of details, handed out one by one. */
struct tw__sched_blocks {
    void *free;    /* the first free block: its first word is the next one */
    void *chunks;  /* the first chunk: its first word is the next one */
    uint64_t room; /* free blocks */
};

struct tw__sched_shard {
    _Alignas(64) pthread_mutex_t lock;
    struct tw_sched *sched;
    struct tw_wheel *wheel;
    uint64_t wake; /* a task due on a tick before this one must wake the timer thread; 0: it is awake */
    struct tw__sched_task **chunks;
    uint32_t chunk_count, chunk_room;
    uint32_t free; /* the first free task, or NONE */
    uint32_t number;
    uint64_t room; /* free tasks */
    struct tw__sched_task *loose[TW__SCHED_LOOSE];
    uint32_t loose_next; /* a count; the one there is taken out next */
    bool any_loose;
    struct tw__sched_blocks details;
    struct tw__link ready; /* due, in the order in which they start */
    struct tw__link sent;  /* with the caller's executor */
    struct tw__link busy;  /* their callbacks are under way */
    struct tw__link aside; /* a drain is about to hand them over */
    uint64_t caught;       /* made ready by tw__sched_catch_up(), and no worker told yet */
    bool stopped;
    pthread_cond_t idle; /* a callback that somebody waits for has returned */
    struct tw__sched_table table;
    struct tw_sched_stats stats;
    void *wheel_memory;
    size_t wheel_size;
    uint64_t lateness[TW__HISTOGRAM_BUCKETS];
};
#define TW__SCHED_NONE UINT32_MAX

struct tw_sched {
    struct tw_sched_options options;
    struct tw_geometry geometry;
    uint64_t base_ns; /* the clock at tick 0 */
    _Atomic uint64_t virtual_ns;
    _Atomic uint64_t counted; /* tasks that count towards max_pending */
    _Atomic uint64_t memory;  /* bytes */
    _Atomic bool started;     /* the threads run */
    _Atomic bool quit;
    pthread_mutex_t life; /* starting threads */
    pthread_t timer_thread;
    pthread_t *workers;
    uint32_t worker_count; /* those that were started */
    int timer_fd, event_fd;
    pthread_mutex_t pool_lock;
    pthread_cond_t pool_work;
    uint64_t told;               /* how often workers were told of work */
    _Atomic uint32_t next_shard; /* where tw_sched_run_some() begins */
    uint8_t secret[16];          /* of the hash of keys */
    void *block;                 /* what memory() gave for this */
    size_t block_size;
    struct tw__sched_shard *shard;
};

/* ---- arguments ------------------------------------------------------------------------------------------- */

/* Whether the release hook is to be told of a value. */
static inline bool tw__sched_value_owned(const struct tw_sched *sched, const struct tw__sched_value *value)
{
    const struct tw_sched_options *options = &sched->options;
    return options->release != NULL && value->fn != NULL &&
           (options->release_of == NULL || options->release_of == value->fn);
}

/* Tells it. No lock is held. */
static inline void tw__sched_value_release(const struct tw_sched *sched, const struct tw__sched_value *value)
{
    if (tw__sched_value_owned(sched, value))
        sched->options.release(sched->options.hook_arg, value->arg);
}

/* ---- memory: sched.c ------------------------------------------------------------------------------------- */

void *tw__sched_alloc(struct tw_sched *sched, size_t size);
void tw__sched_dealloc(struct tw_sched *sched, void *old, size_t size);

/* ---- lists ----------------------------------------------------------------------------------------------- */

/* The task that a link of one of the lists is in. */
static inline struct tw__sched_task *tw__sched_task_linked(struct tw__link *link)
{
    return (struct tw__sched_task *)(void *)link;
}

/* Appends the task of a timer that the wheel has let go of to one of the lists of READY tasks. */
static inline void tw__sched_task_ready(struct tw__link *head, struct tw_timer *timer)
{
    struct tw__sched_task *task = (struct tw__sched_task *)(void *)timer;
    task->state = TW__SCHED_READY;
    tw__list_append(head, &task->link);
}

/* ---- clock: clock.c -------------------------------------------------------------------------------------- */

uint64_t tw__sched_clock_read(const struct tw_sched *sched);
/* The first tick that is not before a time: the ceiling, so that nothing is early. TW_NEVER at the end of time. */
uint64_t tw__sched_tick_due(const struct tw_sched *sched, uint64_t due_ns);
/* The tick that has begun at a time: the floor. */
uint64_t tw__sched_tick_now(const struct tw_sched *sched, uint64_t now_ns);
/* When a tick begins. */
uint64_t tw__sched_tick_start(const struct tw_sched *sched, uint64_t tick);
int tw__sched_clock_open(struct tw_sched *sched);
void tw__sched_clock_close(struct tw_sched *sched);
/* Sleeps until a tick begins, or tw__sched_clock_wake() is called, which may have been before. */
void tw__sched_clock_sleep(struct tw_sched *sched, uint64_t tick);
void tw__sched_clock_wake(struct tw_sched *sched);

/* ---- tasks: task.c; the shard's lock is held ----------------------------------------------------------------- */

static inline struct tw__sched_task *tw__sched_task_at(const struct tw__sched_shard *shard, uint32_t index)
{
    return &shard->chunks[index >> TW__SCHED_CHUNK_SHIFT][index & (TW__SCHED_CHUNK - 1)];
}

static inline uint64_t tw__sched_task_id(const struct tw__sched_shard *shard, const struct tw__sched_task *task)
{
    return (uint64_t)task->generation << 32 | shard->number << TW__SCHED_INDEX_BITS | task->index;
}

static inline struct tw__sched_details *tw__sched_task_details(const struct tw__sched_task *task)
{
    return task->detailed ? (struct tw__sched_details *)task->arg : NULL;
}

/* Makes room for n tasks, or details. False: no memory. */
bool tw__sched_tasks_reserve(struct tw__sched_shard *shard, uint64_t n);
bool tw__sched_details_reserve(struct tw__sched_shard *shard, uint64_t n);
void tw__sched_pool_end(struct tw__sched_shard *shard);

/* The shard of an id; NULL when there is none such. */
static inline struct tw__sched_shard *tw__sched_shard_of(const struct tw_sched *sched, uint64_t id)
{
    uint32_t number = (uint32_t)id >> TW__SCHED_INDEX_BITS;
    return number < sched->options.shards ? &sched->shard[number] : NULL;
}

/* The task of an id, or NULL. */
struct tw__sched_task *tw__sched_task_find(const struct tw__sched_shard *shard, uint64_t id);
/* A task to be filed: free no more, but in no list. NULL: no memory. */
struct tw__sched_task *tw__sched_task_take(struct tw__sched_shard *shard);
/* The end of a task: its id is stale from here, its key names it no more. Lets go of its details. */
void tw__sched_task_drop(struct tw__sched_shard *shard, struct tw__sched_task *task);

/* Takes cancelled tasks out of the wheel; before it is asked for what is due, or a place is wanted. */
void tw__sched_loose_settle(struct tw__sched_shard *shard);

struct tw__sched_details *tw__sched_details_take(struct tw__sched_shard *shard);
void tw__sched_details_drop(struct tw__sched_shard *shard, struct tw__sched_details *details);

/* Puts a task into the wheel, and wakes the timer thread if that sleeps too long. Returns: 0; TW_ERANGE; TW_ENOMEM. */
int tw__sched_task_file(struct tw__sched_shard *shard, struct tw__sched_task *task, uint64_t due_ns);
/* Whether the wheel would take a task due then, now or later: a wheel that grows has grown. Returns: as above. */
int tw__sched_task_probe(struct tw__sched_shard *shard, uint64_t due_ns);
/* Takes a READY task out of its list. */
void tw__sched_task_unfile(struct tw__sched_shard *shard, struct tw__sched_task *task);
/* Changes when a PENDING or READY task is due. */
int tw__sched_task_refile(struct tw__sched_shard *shard, struct tw__sched_task *task, uint64_t due_ns);
/* Has a RUNNING task filed when its callback has returned. Returns: 0; TW_ERANGE; TW_ENOMEM; TW_EFULL. */
int tw__sched_task_again(struct tw__sched_shard *shard, struct tw__sched_task *task, uint64_t due_ns);
/* Moves a task in any state. */
int tw__sched_task_move(struct tw__sched_shard *shard, struct tw__sched_task *task, uint64_t due_ns);
/* Cancels a task in any state. *value is what nothing uses any more, to be released when the lock is not held. */
enum tw_cancelled tw__sched_task_cancel(struct tw__sched_shard *shard, struct tw__sched_task *task,
                                        struct tw__sched_value *value);
/* What a task calls, and with what. */
struct tw__sched_value tw__sched_task_value(const struct tw__sched_task *task);
/* Describes a task. */
void tw__sched_task_describe(const struct tw__sched_shard *shard, const struct tw__sched_task *task,
                             struct tw_task *seen);

/* The same for a task, or NULL, that somebody asked for. Returns: 0; TW_EGONE: nothing will come of it. */
int tw__sched_task_look(const struct tw__sched_shard *shard, const struct tw__sched_task *task,
                        struct tw_task *seen);

/* True when a RUNNING task will be filed again as things stand. */
bool tw__sched_task_goes_on(const struct tw__sched_task *task);

/* Counts a task towards max_pending. False: there are too many. */
bool tw__sched_quota_take(struct tw__sched_shard *shard, struct tw__sched_task *task);
void tw__sched_quota_give_back(struct tw__sched_shard *shard, struct tw__sched_task *task);

/* The checks that come before every add: 0, or why there is none. Starts the threads. */
int tw__sched_ready(struct tw_sched *sched);
/* The shard that this thread adds to. */
struct tw__sched_shard *tw__sched_home(struct tw_sched *sched);
/* Checks an interval. */
int tw__sched_every_check(const struct tw_sched *sched, const struct tw_every *every);
/* Whether the wheel will always take the next call of such a task. Returns: 0; TW_ERANGE; TW_ENOMEM. */
int tw__sched_every_reach(struct tw__sched_shard *shard, const struct tw_every *every);
uint64_t tw__sched_every_first(const struct tw_sched *sched, const struct tw_every *every);
void tw__sched_details_every(struct tw__sched_details *details, const struct tw_every *every);

/* ---- keys: keys.c; the shard's lock is held ------------------------------------------------------------------- */

/* The key of details that have one. */
const void *tw__sched_key_bytes(const struct tw__sched_details *details);
/* Forgets a key. The details stay. */
void tw__sched_key_forget(struct tw__sched_shard *shard, struct tw__sched_details *details);
void tw__sched_key_free(struct tw__sched_shard *shard, struct tw__sched_details *details);

/* ---- the table of keys: table.c; the shard's lock is held -------------------------------------------------------- */

/* Finds, one by one, the keys that have a tag; NULL: no more. The table must not change meanwhile. */
struct tw__sched_probe tw__sched_table_probe(const struct tw__sched_table *table, uint32_t tag);
const struct tw__sched_cell *tw__sched_probe_next(struct tw__sched_probe *probe);
/* False: no memory. */
bool tw__sched_table_add(struct tw__sched_shard *shard, const struct tw__sched_cell *cell);
/* Requires: it is there. */
void tw__sched_table_remove(struct tw__sched_shard *shard, uint32_t tag,
                            const struct tw__sched_details *details);
void tw__sched_table_end(struct tw__sched_shard *shard);

/* The time some periods later; the end of time if that is beyond it. */
uint64_t tw__sched_periods_after(uint64_t due_ns, uint64_t periods, uint64_t period_ns);

/* ---- running: run.c ------------------------------------------------------------------------------------------ */

/* Starts the threads, once. Returns: 0; TW_ENOMEM; TW_ESYSTEM. */
int tw__sched_threads_start(struct tw_sched *sched);
void tw__sched_threads_end(struct tw_sched *sched);
/* True inside a callback of this scheduler, on this thread: of the task with that id, or of any when id is 0. */
bool tw__sched_inside(const struct tw_sched *sched, uint64_t id);

/* Brings the wheel to the present, which it falls behind while the timer thread sleeps; what is due on the way becomes
 * ready. A wheel that refuses, or grows, measures its reach from where it stands. */
void tw__sched_catch_up(struct tw__sched_shard *shard);

/* ---- statistics: stats.c -------------------------------------------------------------------------------------- */

/* Notes a call that started `late_ns` after it was due and took `run_ns`. */
void tw__sched_stats_call(struct tw__sched_shard *shard, uint64_t late_ns, uint64_t run_ns);

#endif
