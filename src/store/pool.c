/* SPDX-License-Identifier: MIT
 *
 * The worker pool of a store.
 *
 * The runner hands out hundreds of jobs at a time, and a handler may take a microsecond. So no lock lies on the
 * way. Jobs go to the workers through a ring, and their answers come back through a stack. A worker is a task
 * of the scheduler that takes jobs out of the ring until it is empty. Example: a batch of 256 jobs for two
 * workers is two tasks of the scheduler, not 256.
 *
 * Why no job is forgotten: a worker that finds the ring empty first leaves the number of active workers, and
 * then looks once more. The runner first puts the job into the ring, and then reads that number. In whichever
 * order the two come, the worker sees the job, or the runner sees that a worker is missing. The same holds when
 * the runner falls asleep: it first says so, and then looks for answers and at the ring.
 *
 * The runner keeps a few jobs in the ring. A worker that takes the last one wakes it, even if no job has an
 * answer yet: a handler that returns TW_ANSWER_LATER makes its worker free at once. While handlers are slow the
 * runner keeps no job there, and a worker that has nothing to do wakes it. Jobs that no worker takes are taken
 * back by the runner, from the same end of the ring.
 */
#include "pool.h"

#include <base/assert.h>

#include "open.h"

#include <sched.h>
#include <stdlib.h>

enum { JOBS_TICK_NS = 10000 }; /* of the scheduler */

uint64_t tw__store_pool_waiting(const struct tw__store_pool *pool)
{
    uint64_t head = atomic_load(&pool->head); /* before the tail, which is never behind it */
    return atomic_load(&pool->tail) - head;
}

uint64_t tw__store_pool_idle(const struct tw__store_pool *pool)
{
    uint64_t active = atomic_load(&pool->active);
    return pool->workers > active ? pool->workers - active : 0;
}

/* Takes the first job out of the ring; NULL: none. */
static struct tw__store_job *take_job(struct tw__store_pool *pool)
{
    struct tw__store_job *job;
    uint64_t head = atomic_load(&pool->head);
    do {
        if (head == atomic_load(&pool->tail))
            return NULL;
        job = atomic_load(&pool->ring[head & pool->mask]);
    } while (!atomic_compare_exchange_weak(&pool->head, &head, head + 1));
    return job;
}

static void wake_runner(struct tw__store_pool *pool)
{
    if (atomic_load(&pool->asleep) && atomic_exchange(&pool->asleep, false))
        tw__store_watch_wake(pool->watch);
}

static void note_longest(atomic_uint_least64_t *longest_ns, uint64_t from_ns, uint64_t to_ns)
{
    if (to_ns > from_ns && to_ns - from_ns > atomic_load(longest_ns))
        atomic_store(longest_ns, to_ns - from_ns);
}

/* Calls the handler, or gives the job back. The file is looked at before such a job is claimed again. */
static void begin_job(struct tw__store_pool *pool, struct tw__store_job *job, uint64_t now_ns)
{
    if (atomic_load(&pool->stopping)) {
        tw__store_job_return(job);
    } else if (tw__store_check_job(pool->check, job, now_ns)) {
        tw__store_job_run(job);
    } else {
        atomic_store(&pool->stale, true);
        tw__store_job_return(job);
    }
}

static void run_jobs(struct tw__store_pool *pool)
{
    struct tw__store_job *job;
    uint64_t now_ns = tw__store_monotonic();
    while ((job = take_job(pool)) != NULL) {
        if (tw__store_pool_waiting(pool) == 0 && atomic_load(&pool->more) == TW__STORE_MORE_AHEAD)
            wake_runner(pool);
        note_longest(&pool->waited_ns, job->claimed_ns, now_ns);
        begin_job(pool, job, now_ns);
        uint64_t begun_ns = now_ns;
        now_ns = tw__store_monotonic();
        note_longest(&pool->took_ns, begun_ns, now_ns);
    }
}

/* Leaves the active workers. Returns whether a job has come meanwhile, and then the worker is active again. */
static bool come_back(struct tw__store_pool *pool)
{
    atomic_fetch_sub(&pool->active, 1);
    bool more = tw__store_pool_waiting(pool) > 0;
    atomic_fetch_add(&pool->active, more);
    if (!more && atomic_load(&pool->more) == TW__STORE_MORE_FOR_WORKERS)
        wake_runner(pool);
    return more;
}

/* A tw_task_fn. */
static void work(struct tw_sched *sched, const struct tw_task *task)
{
    (void)sched;
    do
        run_jobs(task->arg);
    while (come_back(task->arg));
}

void tw__store_pool_give(struct tw__store_pool *pool, struct tw__store_job *job)
{
    uint64_t tail = atomic_load(&pool->tail);
    atomic_store(&pool->ring[tail & pool->mask], job);
    atomic_store(&pool->tail, tail + 1);
}

void tw__store_pool_call(struct tw__store_pool *pool)
{
    uint64_t waiting = tw__store_pool_waiting(pool);
    while (atomic_load(&pool->active) < pool->workers && waiting > 0) {
        atomic_fetch_add(&pool->active, 1);
        int error = tw_sched_add_in(pool->sched, 0, work, pool, NULL);
        TW_ASSERT(error == 0); /* the room is reserved */
        (void)error;
        waiting--;
    }
}

/* Only the runner frees jobs, so it may look at one that a worker takes at this moment. */
uint64_t tw__store_pool_oldest(const struct tw__store_pool *pool)
{
    uint64_t head = atomic_load(&pool->head);
    if (head == atomic_load(&pool->tail))
        return UINT64_MAX;
    return atomic_load(&pool->ring[head & pool->mask])->claimed_ns;
}

/* All of them at once, so that none begins whose turn is behind one that is taken back. */
bool tw__store_pool_take_back(struct tw__store_pool *pool, uint64_t given_ns)
{
    uint64_t head = atomic_load(&pool->head), tail = atomic_load(&pool->tail);
    do {
        if (head == tail || atomic_load(&pool->ring[head & pool->mask])->claimed_ns > given_ns)
            return false;
    } while (!atomic_compare_exchange_weak(&pool->head, &head, tail));
    for (; head < tail; head++)
        tw__store_job_return(atomic_load(&pool->ring[head & pool->mask]));
    return true;
}

/* ---- answers --------------------------------------------------------------------------------------------- */

/* Once the runner has the last answer, it may be freed as soon as nobody is answering. */
void tw__store_pool_answer(void *arg, struct tw__store_job *job)
{
    struct tw__store_pool *pool = arg;
    atomic_fetch_add(&pool->answering, 1);
    job->next = atomic_load(&pool->answered);
    while (!atomic_compare_exchange_weak(&pool->answered, &job->next, job))
        ;
    wake_runner(pool);
    atomic_fetch_sub(&pool->answering, 1);
}

bool tw__store_pool_sleep(struct tw__store_pool *pool, bool answers, enum tw__store_more more)
{
    atomic_store(&pool->more, more);
    atomic_store(&pool->asleep, true);
    if (answers && atomic_load(&pool->answered) != NULL)
        return false;
    if (more == TW__STORE_NO_MORE || tw__store_pool_waiting(pool) > 0)
        return true;
    return more == TW__STORE_MORE_FOR_WORKERS && tw__store_pool_idle(pool) == 0;
}

void tw__store_pool_awake(struct tw__store_pool *pool)
{
    atomic_store(&pool->asleep, false);
}

struct tw__store_job *tw__store_pool_answers(struct tw__store_pool *pool)
{
    struct tw__store_job *first = NULL;
    for (struct tw__store_job *job = atomic_exchange(&pool->answered, NULL), *next; job != NULL; job = next) {
        next = job->next;
        job->next = first;
        first = job;
    }
    return first;
}

/* ---- beginning and end ----------------------------------------------------------------------------------- */

/* Begins the workers' threads at once, so that handing out cannot fail. */
static void do_nothing(struct tw_sched *sched, const struct tw_task *task)
{
    (void)sched;
    (void)task;
}

/* At most two tasks for each worker are pending: one that is about to return, and one that was called in its
 * place. */
int tw__store_pool_init(struct tw__store_pool *pool, const struct tw__store_watch *watch, uint32_t workers,
                        uint32_t jobs)
{
    struct tw_sched_options options = {.tick_ns = JOBS_TICK_NS, .shards = 1, .workers = workers};
    uint64_t size = 1;
    while (size < jobs)
        size *= 2;
    pool->watch = watch;
    pool->workers = workers;
    pool->mask = size - 1;
    pool->ring = calloc(size, sizeof(*pool->ring));
    if (pool->ring == NULL)
        return TW_ENOMEM;
    int error = tw_sched_new(&pool->sched, &options);
    if (error == 0)
        error = tw_sched_reserve(pool->sched, 2 * (uint64_t)workers + 1);
    return error == 0 ? tw_sched_add_in(pool->sched, 0, do_nothing, NULL, NULL) : error;
}

/* A thread that has brought the last answer may still be about to return. */
void tw__store_pool_fini(struct tw__store_pool *pool)
{
    tw_sched_free(pool->sched);
    while (atomic_load(&pool->answering) > 0 && sched_yield() == 0)
        ;
    free(pool->ring);
}
