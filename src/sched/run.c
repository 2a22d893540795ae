/* SPDX-License-Identifier: MIT
 *
 * Firing: the timer thread moves due tasks from the wheel to the ready list of their shard, in order, and
 * sleeps until there is more work. Which thread runs the ready tasks depends on the options:
 *
 *     wheel  -- timer thread -->  ready list  -- timer thread -->  callback     no workers, no execute hook
 *     wheel  -- timer thread -->  ready list  -- a worker ----->   callback     `workers` > 0
 *     wheel  -- timer thread -->  ready list  -->  sent list  -->  callback     `execute`: tw_sched_run()
 *
 * While it collects, the timer thread holds the lock of a shard for at most TW__SCHED_COLLECT units of the
 * wheel's work at a time. No thread holds the lock while a callback runs. The thread that takes a task off
 * its list, under the lock, alone runs it (S1).
 *
 * Example: 4 workers, and 1,000 tasks are due on tick 7. The timer thread moves up to 64 of them to the ready
 * list, releases the lock, tells the workers, and takes the lock again: at least 16 times in all. So the
 * first callbacks start after 64 tasks instead of after 1,000, and other threads can get the lock after every
 * 64 tasks.
 *
 * A timer thread that comes late goes through the ticks in order, so that repeating tasks find their places
 * among the other tasks: see serve_all(). With a virtual clock, tw_sched_advance() does the work of the timer
 * thread.
 */
#include "run.h"

#include "call.h"
#include "clock.h"
#include "filing.h"
#include "lock.h"
#include "pool.h"

#include <signal.h>

/* ---- from the wheel to the ready list ------------------------------------------------------------------- */

/* Tells the workers that n tasks are ready. `told` counts these calls. A worker that has found no task sleeps
 * until `told` differs from the value it read before it looked, so a call that comes while it looks is not
 * missed. */
static void tell_workers(struct tw_sched *sched, uint64_t n)
{
    if (n == 0 || sched->options.workers == 0)
        return;
    pthread_mutex_lock(&sched->pool_lock);
    sched->told++;
    if (n == 1)
        pthread_cond_signal(&sched->pool_work);
    else
        pthread_cond_broadcast(&sched->pool_work);
    pthread_mutex_unlock(&sched->pool_lock);
}

/* Moves the tasks that are due on `tick` or before into the ready list. Releases the lock now and then, and
 * tells the workers while it is released. */
static void collect(struct tw__sched_shard *shard, uint64_t tick)
{
    for (;;) {
        uint32_t budget = TW__SCHED_COLLECT;
        uint64_t moved = shard->caught;
        struct tw_timer *timer;
        enum tw_polled polled;
        tw__sched_loose_settle(shard);
        for (; (polled = tw_wheel_poll_budget(shard->wheel, tick, &budget, &timer)) == TW_POLL_DUE; moved++)
            tw__sched_task_ready(&shard->ready, timer);
        shard->caught = 0;
        bool done = polled == TW_POLL_IDLE || shard->stopped;
        if (done && (moved == 0 || shard->sched->options.workers == 0))
            return;
        tw__sched_unlock(shard);
        tell_workers(shard->sched, moved);
        tw__sched_lock(shard);
        if (done)
            return;
    }
}

/* Collects the tasks that are due at a time, on ticks up to `until`. */
static void collect_due(struct tw__sched_shard *shard, uint64_t now_ns, uint64_t until)
{
    uint64_t tick = tw__sched_tick_now(shard->sched, now_ns);
    collect(shard, tick < until ? tick : until);
}

enum { QUANTUM = 64 }; /* calls of one shard before the next shard is served */

/* ---- running on the timer thread ------------------------------------------------------------------------ */

/* Collects and runs due tasks, at most `limit` calls. Returns true if more tasks are ready. */
static bool run_inline(struct tw__sched_shard *shard, uint64_t until, unsigned limit)
{
    uint64_t now_ns = tw__sched_clock_read(shard->sched);
    struct tw__sched_call call;
    bool ready;
    tw__sched_lock(shard);
    while (limit > 0) {
        collect_due(shard, now_ns, until);
        if (shard->stopped || tw__list_empty(&shard->ready))
            break;
        limit--;
        if (tw__sched_call_try_begin(shard, tw__sched_task_linked(shard->ready.next), now_ns, &call))
            now_ns = tw__sched_call_make(shard, &call, &ready);
    }
    bool more = !shard->stopped && !tw__list_empty(&shard->ready);
    tw__sched_unlock(shard);
    return more;
}

/* ---- handing to the caller's executor ------------------------------------------------------------------- */

/* The id of the next ready task, which goes to the executor; 0 when there is none. */
static uint64_t send_next(struct tw__sched_shard *shard)
{
    if (shard->stopped || tw__list_empty(&shard->ready))
        return 0;
    struct tw__link *first = shard->ready.next;
    tw__list_remove(first);
    tw__list_append(&shard->sent, first);
    return tw__sched_task_id(shard, tw__sched_task_linked(first));
}

static void send_ready(struct tw__sched_shard *shard, uint64_t until)
{
    struct tw_sched *sched = shard->sched;
    for (;;) {
        tw__sched_lock(shard);
        collect_due(shard, tw__sched_clock_read(sched), until);
        uint64_t id = send_next(shard);
        tw__sched_unlock(shard);
        if (id == 0)
            return;
        sched->options.execute(sched->options.execute_arg, sched, id);
    }
}

/* Whether a task that the executor wants to run is READY and due. It may not be due any more: a caller may
 * have moved it since it was sent, and a drain may then have set it aside before its time. */
static bool may_run(const struct tw__sched_shard *shard, const struct tw__sched_task *task, uint64_t now_ns)
{
    const struct tw_sched *sched = shard->sched;
    return task != NULL && task->state == TW__SCHED_READY && !shard->stopped &&
           tw__sched_tick_due(sched, task->due_ns) <= tw__sched_tick_now(sched, now_ns);
}

void tw_sched_run(struct tw_sched *sched, uint64_t id)
{
    TW_ASSERT(tw__sched_usable(sched));
    struct tw__sched_shard *shard = tw__sched_shard_of(sched, id);
    struct tw__sched_call call;
    bool ready = false;
    if (shard == NULL)
        return;
    uint64_t now_ns = tw__sched_clock_read(sched);
    tw__sched_lock(shard);
    struct tw__sched_task *task = tw__sched_task_find(shard, id);
    if (may_run(shard, task, now_ns) && tw__sched_call_try_begin(shard, task, now_ns, &call))
        tw__sched_call_make(shard, &call, &ready);
    tw__sched_unlock(shard);
    if (ready)
        tw__sched_clock_wake(sched); /* so that the timer thread sends the task once more */
}

/* Runs sent tasks of a shard, at most `limit`. Returns the number of tasks taken. Sets *again if a task is in
 * the ready list once more. */
static uint64_t run_sent(struct tw__sched_shard *shard, uint64_t limit, bool *again)
{
    uint64_t now_ns = tw__sched_clock_read(shard->sched), taken = 0;
    struct tw__sched_call call;
    bool ready;
    tw__sched_lock(shard);
    for (; taken < limit && !shard->stopped && !tw__list_empty(&shard->sent); taken++) {
        if (!tw__sched_call_try_begin(shard, tw__sched_task_linked(shard->sent.next), now_ns, &call))
            continue;
        now_ns = tw__sched_call_make(shard, &call, &ready);
        *again |= ready;
    }
    tw__sched_unlock(shard);
    return taken;
}

/* Serves the shards in turn, and each call begins with another shard. So a shard with much work does not keep
 * the other shards waiting. */
uint64_t tw_sched_run_some(struct tw_sched *sched, uint64_t limit)
{
    TW_ASSERT(tw__sched_usable(sched));
    uint32_t shards = tw__sched_made(sched), idle = 0;
    uint64_t taken = 0;
    bool again = false;
    while (taken < limit && idle < shards) {
        uint32_t number = atomic_fetch_add_explicit(&sched->next_shard, 1, memory_order_relaxed) % shards;
        uint64_t left = limit - taken,
                 some = run_sent(sched->shard[number], left < QUANTUM ? left : QUANTUM, &again);
        idle = some > 0 ? 0 : idle + 1;
        taken += some;
    }
    if (again)
        tw__sched_clock_wake(sched); /* so that the timer thread sends the tasks once more */
    return taken;
}

/* ---- workers -------------------------------------------------------------------------------------------- */

/* Runs ready tasks of a shard, at most QUANTUM before the worker serves the next shard. Returns whether there
 * were any. */
static bool work_through(struct tw__sched_shard *shard)
{
    unsigned limit = QUANTUM;
    uint64_t now_ns = tw__sched_clock_read(shard->sched);
    bool any = false, ready;
    struct tw__sched_call call;
    tw__sched_lock(shard);
    while (limit-- > 0 && !shard->stopped && !tw__list_empty(&shard->ready)) {
        any = true;
        if (tw__sched_call_try_begin(shard, tw__sched_task_linked(shard->ready.next), now_ns, &call))
            now_ns = tw__sched_call_make(shard, &call, &ready);
    }
    tw__sched_unlock(shard);
    return any;
}

static void *worker_main(void *arg)
{
    struct tw_sched *sched = arg;
    uint64_t seen = 0;
    while (!atomic_load(&sched->quit)) {
        bool any = false;
        for (uint32_t i = 0; i < tw__sched_made(sched); i++)
            any |= work_through(sched->shard[i]);
        pthread_mutex_lock(&sched->pool_lock);
        while (!any && sched->told == seen && !atomic_load(&sched->quit))
            pthread_cond_wait(&sched->pool_work, &sched->pool_lock);
        seen = sched->told;
        pthread_mutex_unlock(&sched->pool_lock);
    }
    return NULL;
}

/* ---- the timer thread ----------------------------------------------------------------------------------- */

/* Serves the tasks of a shard that are due on ticks up to `until`. Returns true if more tasks are ready. */
static bool serve(struct tw__sched_shard *shard, uint64_t until)
{
    struct tw_sched *sched = shard->sched;
    if (sched->options.execute != NULL) {
        send_ready(shard, until);
        return false;
    }
    if (sched->options.workers == 0)
        return run_inline(shard, until, QUANTUM);
    tw__sched_lock(shard);
    collect_due(shard, tw__sched_clock_read(sched), until);
    tw__sched_unlock(shard);
    return false;
}

/* Serves every shard, but no further than the first tick on which any shard has work. So a thread that comes
 * late still goes through the ticks in order, and repeating tasks find their places among the other tasks.
 * Returns true if there is more work. */
static bool serve_all(struct tw_sched *sched)
{
    uint64_t first[TW__SCHED_SHARDS], until = TW_NEVER;
    uint32_t shards = tw__sched_made(sched);
    bool more = false;
    for (uint32_t i = 0; i < shards; i++) {
        tw__sched_lock(sched->shard[i]);
        first[i] = tw__sched_first_tick(sched->shard[i]);
        tw__sched_unlock(sched->shard[i]);
        until = first[i] < until ? first[i] : until;
    }
    for (uint32_t i = 0; i < shards; i++)
        if (first[i] <= until)
            more |= serve(sched->shard[i], until);
    return more || until < tw__sched_tick_now(sched, tw__sched_clock_read(sched));
}

/* Sets each shard's `wake`. Returns the tick until which all shards let the timer thread sleep. */
static uint64_t next_tick(struct tw_sched *sched)
{
    uint64_t next = TW_NEVER;
    for (uint32_t i = 0; i < tw__sched_made(sched); i++) {
        tw__sched_lock(sched->shard[i]);
        uint64_t tick = tw__sched_asleep(sched->shard[i]);
        tw__sched_unlock(sched->shard[i]);
        next = tick < next ? tick : next;
    }
    return next;
}

/* Notes in each shard that the timer thread is awake, so nobody needs to wake it. */
static void wake_up(struct tw_sched *sched)
{
    for (uint32_t i = 0; i < tw__sched_made(sched); i++) {
        tw__sched_lock(sched->shard[i]);
        tw__sched_awake(sched->shard[i]);
        tw__sched_unlock(sched->shard[i]);
    }
}

static void *timer_main(void *arg)
{
    struct tw_sched *sched = arg;
    atomic_store(&sched->timer, pthread_self());
    while (!atomic_load(&sched->quit)) {
        wake_up(sched);
        while (serve_all(sched) && !atomic_load(&sched->quit))
            ;
        tw__sched_clock_sleep(sched, next_tick(sched));
    }
    return NULL;
}

/* ---- threads -------------------------------------------------------------------------------------------- */

/* Starts a thread that takes no signals: signals are for the program's own threads. */
static bool start_thread(pthread_t *thread, void *(*body)(void *), struct tw_sched *sched)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, NULL, body, sched);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error == 0;
}

static void end_workers(struct tw_sched *sched)
{
    atomic_store(&sched->quit, true);
    pthread_mutex_lock(&sched->pool_lock);
    pthread_cond_broadcast(&sched->pool_work);
    pthread_mutex_unlock(&sched->pool_lock);
    while (sched->worker_count > 0)
        pthread_join(sched->workers[--sched->worker_count], NULL);
}

static bool start_all(struct tw_sched *sched)
{
    while (sched->worker_count < sched->options.workers) {
        if (!start_thread(&sched->workers[sched->worker_count], worker_main, sched))
            return false;
        sched->worker_count++;
    }
    return start_thread(&sched->timer_thread, timer_main, sched);
}

int tw__sched_threads_start(struct tw_sched *sched)
{
    int error = 0;
    pthread_mutex_lock(&sched->life);
    if (!atomic_load(&sched->started)) {
        if (sched->options.clock == TW_SCHED_VIRTUAL || start_all(sched)) {
            atomic_store_explicit(&sched->started, true, memory_order_release);
        } else {
            end_workers(sched);
            atomic_store(&sched->quit, false);
            error = TW_ESYSTEM;
        }
    }
    pthread_mutex_unlock(&sched->life);
    return error;
}

void tw__sched_threads_end(struct tw_sched *sched)
{
    if (!atomic_load(&sched->started) || sched->options.clock == TW_SCHED_VIRTUAL)
        return;
    atomic_store(&sched->quit, true);
    tw__sched_clock_wake(sched);
    pthread_join(sched->timer_thread, NULL);
    end_workers(sched);
}

/* ---- virtual time --------------------------------------------------------------------------------------- */

static void advance_to(struct tw_sched *sched, uint64_t clock_ns, uint64_t now_ns)
{
    for (;;) {
        while (serve_all(sched))
            ;
        uint64_t next_ns = tw__sched_tick_start(sched, next_tick(sched));
        if (next_ns > now_ns || next_ns == UINT64_MAX)
            break;
        if (next_ns > clock_ns)
            atomic_store(&sched->virtual_ns, clock_ns = next_ns);
    }
    atomic_store(&sched->virtual_ns, now_ns);
    serve_all(sched);
}

int tw_sched_advance(struct tw_sched *sched, uint64_t now_ns)
{
    TW_ASSERT(tw__sched_usable(sched));
    TW_ASSERT(!tw__sched_inside(sched));
    uint64_t clock_ns = tw__sched_clock_read(sched);
    if (sched->options.clock != TW_SCHED_VIRTUAL || now_ns < clock_ns)
        return TW_EINVAL;
    bool advancing = atomic_exchange(&sched->advancing, true);
    TW_ASSERT(!advancing);
    (void)advancing;
    advance_to(sched, clock_ns, now_ns);
    atomic_store(&sched->advancing, false);
    return 0;
}

uint64_t tw_sched_next(const struct tw_sched *sched)
{
    TW_ASSERT(tw__sched_usable(sched));
    uint64_t next = TW_NEVER;
    for (uint32_t i = 0; i < tw__sched_made(sched); i++) {
        struct tw__sched_shard *shard = sched->shard[i];
        tw__sched_lock(shard);
        tw__sched_loose_settle(shard);
        uint64_t tick = tw__list_empty(&shard->ready) ? tw_wheel_next_bound(shard->wheel) : 0;
        tw__sched_unlock(shard);
        next = tick < next ? tick : next;
    }
    uint64_t at_ns = next == TW_NEVER ? TW_NEVER : tw__sched_tick_start(sched, next),
             now_ns = tw__sched_clock_read(sched);
    return at_ns > now_ns ? at_ns : now_ns;
}
