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
    TW__INDEX_BITS = 25, /* tasks of a shard */
    TW__SHARD_BITS = 6,
    TW__CHUNK_SHIFT = 10, /* tasks are allocated by the thousand */
    TW__CHUNK = 1 << TW__CHUNK_SHIFT,
    TW__LOOSE = 8,    /* cancelled tasks that are taken out of the wheel a little later */
    TW__COLLECT = 64, /* units of work under one hold of a shard's lock */
};

/* A function and its argument, which is to be released. `fn` NULL: none. */
struct tw__value {
    tw_task_fn *fn;
    void *arg;
};

/* Where a task is. */
enum tw__state {
    TW__FREE,
    TW__PENDING, /* in the wheel */
    TW__READY,   /* due, in the ready list or with the caller's executor */
    TW__RUNNING  /* its callback is under way */
};

/* What a task has besides, when it repeats or has a key. */
struct tw__details {
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
struct tw__task {
    union {
        struct tw_timer timer;
        struct tw__link link;
        uint32_t next_free;
    };
    tw_task_fn *fn;
    void *arg; /* or its details */
    uint64_t due_ns;
    uint32_t generation;
    uint32_t index : TW__INDEX_BITS;
    uint32_t state : 2;
    uint32_t detailed : 1; /* arg is a struct tw__details */
    uint32_t again : 1;    /* RUNNING: to be filed at due_ns when the callback has returned */
    uint32_t dead : 1;     /* RUNNING: not to be filed again */
    uint32_t waited : 1;   /* RUNNING: somebody waits for the callback to return */
    uint32_t held : 1;     /* it counts towards max_pending */
};
_Static_assert(sizeof(void *) != 8 || sizeof(struct tw__task) == 64, "a task is one cache line");

/* A table of keys; see table.c. */
struct tw__segment;
struct tw__table {
    struct tw__segment **directory; /* 2^depth of them; NULL before the first key */
    uint32_t depth;
};

/* What it holds of a key. */
struct tw__place {
    uint32_t tag;   /* of the hash */
    uint32_t index; /* of the task */
    struct tw__details *details;
};

/* A search in it. */
struct tw__probe {
    const struct tw__segment *segment;
    uint32_t tag, at;
};

/* Blocks of details, handed out one by one. */
struct tw__details_pool {
    void *free;    /* the first free block: its first word is the next one */
    void *chunks;  /* the first chunk: its first word is the next one */
    uint64_t room; /* free blocks */
};

struct tw__shard {
    _Alignas(64) pthread_mutex_t lock;
    struct tw_sched *sched;
    struct tw_wheel *wheel;
    uint64_t wake; /* a task due on a tick before this one must wake the timer thread; 0: it is awake */
    struct tw__task **chunks;
    uint32_t chunk_count, chunk_room;
    uint32_t free; /* the first free task, or NONE */
    uint32_t number;
    uint64_t room; /* free tasks */
    struct tw__task *loose[TW__LOOSE];
    uint32_t loose_next; /* a count; the one there is taken out next */
    bool any_loose;
    struct tw__details_pool details;
    struct tw__link ready; /* due, in the order in which they start */
    struct tw__link sent;  /* with the caller's executor */
    struct tw__link busy;  /* their callbacks are under way */
    struct tw__link aside; /* a drain is about to hand them over */
    uint64_t caught;       /* made ready by tw__catch_up(), and no worker told yet */
    bool stopped;
    pthread_cond_t idle; /* a callback that somebody waits for has returned */
    struct tw__table table;
    struct tw_sched_stats stats;
    void *wheel_memory;
    size_t wheel_size;
    uint64_t late[TW__HISTOGRAM_BUCKETS];
};
#define TW__NONE UINT32_MAX

struct tw_sched {
    struct tw_sched_options options;
    struct tw_geometry geometry;
    uint64_t base_ns; /* the clock at tick 0 */
    _Atomic uint64_t virtual_ns;
    _Atomic uint64_t held;   /* tasks that count towards max_pending */
    _Atomic uint64_t memory; /* bytes */
    _Atomic bool started;    /* the threads run */
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
    struct tw__shard *shard;
};

/* ---- arguments ------------------------------------------------------------------------------------------- */

/* Whether the release hook is to be told of a value. */
static inline bool tw__value_owned(const struct tw_sched *sched, const struct tw__value *value)
{
    const struct tw_sched_options *options = &sched->options;
    return options->release != NULL && value->fn != NULL &&
           (options->release_of == NULL || options->release_of == value->fn);
}

/* Tells it. No lock is held. */
static inline void tw__value_release(const struct tw_sched *sched, const struct tw__value *value)
{
    if (tw__value_owned(sched, value))
        sched->options.release(sched->options.hook_arg, value->arg);
}

/* ---- memory: sched.c ------------------------------------------------------------------------------------- */

void *tw__alloc(struct tw_sched *sched, size_t size);
void tw__release(struct tw_sched *sched, void *old, size_t size);

/* ---- lists ----------------------------------------------------------------------------------------------- */

/* The task that a link of one of the lists is in. */
static inline struct tw__task *tw__task_linked(struct tw__link *link)
{
    return (struct tw__task *)(void *)link;
}

/* Appends the task of a timer that the wheel has let go of to one of the lists of READY tasks. */
static inline void tw__task_ready(struct tw__link *head, struct tw_timer *timer)
{
    struct tw__task *task = (struct tw__task *)(void *)timer;
    task->state = TW__READY;
    tw__list_append(head, &task->link);
}

/* ---- clock: clock.c -------------------------------------------------------------------------------------- */

uint64_t tw__clock_read(const struct tw_sched *sched);
/* The first tick that is not before a time: the ceiling, so that nothing is early. TW_NEVER at the end of time. */
uint64_t tw__tick_due(const struct tw_sched *sched, uint64_t due_ns);
/* The tick that has begun at a time: the floor. */
uint64_t tw__tick_now(const struct tw_sched *sched, uint64_t now_ns);
/* When a tick begins. */
uint64_t tw__tick_start(const struct tw_sched *sched, uint64_t tick);
int tw__clock_open(struct tw_sched *sched);
void tw__clock_close(struct tw_sched *sched);
/* Sleeps until a tick begins, or tw__clock_wake() is called, which may have been before. */
void tw__clock_sleep(struct tw_sched *sched, uint64_t tick);
void tw__clock_wake(struct tw_sched *sched);

/* ---- tasks: task.c; the shard's lock is held ----------------------------------------------------------------- */

static inline struct tw__task *tw__task_at(const struct tw__shard *shard, uint32_t index)
{
    return &shard->chunks[index >> TW__CHUNK_SHIFT][index & (TW__CHUNK - 1)];
}

static inline uint64_t tw__task_id(const struct tw__shard *shard, const struct tw__task *task)
{
    return (uint64_t)task->generation << 32 | shard->number << TW__INDEX_BITS | task->index;
}

static inline struct tw__details *tw__task_details(const struct tw__task *task)
{
    return task->detailed ? (struct tw__details *)task->arg : NULL;
}

/* Makes room for n tasks, or details. False: no memory. */
bool tw__tasks_reserve(struct tw__shard *shard, uint64_t n);
bool tw__details_reserve(struct tw__shard *shard, uint64_t n);
void tw__tasks_end(struct tw__shard *shard);

/* The shard of an id; NULL when there is none such. */
static inline struct tw__shard *tw__shard_of(const struct tw_sched *sched, uint64_t id)
{
    uint32_t number = (uint32_t)id >> TW__INDEX_BITS;
    return number < sched->options.shards ? &sched->shard[number] : NULL;
}

/* The task of an id, or NULL. */
struct tw__task *tw__task_find(const struct tw__shard *shard, uint64_t id);
/* A task to be filed: free no more, but in no list. NULL: no memory. */
struct tw__task *tw__task_take(struct tw__shard *shard);
/* The end of a task: its id is stale from here, its key names it no more. Lets go of its details. */
void tw__task_drop(struct tw__shard *shard, struct tw__task *task);

/* Takes cancelled tasks out of the wheel; before it is asked for what is due, or a place is wanted. */
void tw__loose_settle(struct tw__shard *shard);

struct tw__details *tw__details_take(struct tw__shard *shard);
void tw__details_drop(struct tw__shard *shard, struct tw__details *details);

/* Puts a task into the wheel, and wakes the timer thread if that sleeps too long. Returns: 0; TW_ERANGE; TW_ENOMEM. */
int tw__task_file(struct tw__shard *shard, struct tw__task *task, uint64_t due_ns);
/* Whether the wheel would take a task due then, now or later: a wheel that grows has grown. Returns: as above. */
int tw__task_probe(struct tw__shard *shard, uint64_t due_ns);
/* Takes a READY task out of its list. */
void tw__task_unfile(struct tw__shard *shard, struct tw__task *task);
/* Changes when a PENDING or READY task is due. */
int tw__task_refile(struct tw__shard *shard, struct tw__task *task, uint64_t due_ns);
/* Has a RUNNING task filed when its callback has returned. Returns: 0; TW_ERANGE; TW_ENOMEM; TW_EFULL. */
int tw__task_again(struct tw__shard *shard, struct tw__task *task, uint64_t due_ns);
/* Moves a task in any state. */
int tw__task_move(struct tw__shard *shard, struct tw__task *task, uint64_t due_ns);
/* Cancels a task in any state. *value is what nothing uses any more, to be released when the lock is not held. */
enum tw_cancelled tw__task_cancel(struct tw__shard *shard, struct tw__task *task, struct tw__value *value);
/* What a task calls, and with what. */
struct tw__value tw__task_value(const struct tw__task *task);
/* Describes a task. */
void tw__task_describe(const struct tw__shard *shard, const struct tw__task *task, struct tw_task *seen);

/* The same for a task, or NULL, that somebody asked for. Returns: 0; TW_EGONE: nothing will come of it. */
int tw__task_look(const struct tw__shard *shard, const struct tw__task *task, struct tw_task *seen);

/* True when a RUNNING task will be filed again as things stand. */
bool tw__task_goes_on(const struct tw__task *task);

/* Counts a task towards max_pending. False: there are too many. */
bool tw__hold(struct tw__shard *shard, struct tw__task *task);
void tw__unhold(struct tw__shard *shard, struct tw__task *task);

/* The checks that come before every add: 0, or why there is none. Starts the threads. */
int tw__sched_ready(struct tw_sched *sched);
/* The shard that this thread adds to. */
struct tw__shard *tw__home(struct tw_sched *sched);
/* Checks an interval. */
int tw__every_check(const struct tw_sched *sched, const struct tw_every *every);
/* Whether the wheel will always take the next call of such a task. Returns: 0; TW_ERANGE; TW_ENOMEM. */
int tw__every_reach(struct tw__shard *shard, const struct tw_every *every);
uint64_t tw__every_first(const struct tw_sched *sched, const struct tw_every *every);
void tw__details_every(struct tw__details *details, const struct tw_every *every);

/* ---- keys: keys.c; the shard's lock is held ------------------------------------------------------------------- */

/* The key of details that have one. */
const void *tw__key_bytes(const struct tw__details *details);
/* Forgets a key. The details stay. */
void tw__key_forget(struct tw__shard *shard, struct tw__details *details);
void tw__key_free(struct tw__shard *shard, struct tw__details *details);

/* ---- the table of keys: table.c; the shard's lock is held -------------------------------------------------------- */

/* Finds, one by one, the keys that have a tag; NULL: no more. The table must not change meanwhile. */
struct tw__probe tw__table_probe(const struct tw__table *table, uint32_t tag);
const struct tw__place *tw__probe_next(struct tw__probe *probe);
/* False: no memory. */
bool tw__table_add(struct tw__shard *shard, const struct tw__place *place);
/* Requires: it is there. */
void tw__table_remove(struct tw__shard *shard, uint32_t tag, const struct tw__details *details);
void tw__table_end(struct tw__shard *shard);

/* The time some periods later; the end of time if that is beyond it. */
uint64_t tw__periods_after(uint64_t due_ns, uint64_t periods, uint64_t period_ns);

/* ---- running: run.c ------------------------------------------------------------------------------------------ */

/* Starts the threads, once. Returns: 0; TW_ENOMEM; TW_ESYSTEM. */
int tw__threads_start(struct tw_sched *sched);
void tw__threads_end(struct tw_sched *sched);
/* True inside a callback of this scheduler, on this thread: of the task with that id, or of any when id is 0. */
bool tw__inside(const struct tw_sched *sched, uint64_t id);

/* Brings the wheel to the present, which it falls behind while the timer thread sleeps; what is due on the way becomes
 * ready. A wheel that refuses, or grows, measures its reach from where it stands. */
void tw__catch_up(struct tw__shard *shard);

/* ---- statistics: stats.c -------------------------------------------------------------------------------------- */

/* Notes a call that started `late_ns` after it was due and took `run_ns`. */
void tw__stats_call(struct tw__shard *shard, uint64_t late_ns, uint64_t run_ns);

#endif
