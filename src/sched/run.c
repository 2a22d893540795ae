/* SPDX-License-Identifier: MIT
 *
 * The threads of a scheduler: the timer thread, which sleeps until there is work, and the workers. They start
 * with the first task and end with the scheduler. With a virtual clock there are none, and tw_sched_advance()
 * does the work of the timer thread.
 *
 * Example: 4 workers, one task due on tick 7 and ten on tick 9. The timer thread sleeps until tick 7, makes the
 * task READY and wakes one worker, which runs it. It sleeps until tick 9, makes ten tasks READY and wakes all
 * workers. A worker that finds no task any more sleeps again.
 */
#include "run.h"

#include "call.h"
#include "clock.h"
#include "due.h"
#include "lock.h"
#include "pool.h"
#include "serve.h"

#include <signal.h>

/* ---- the two kinds of threads ---------------------------------------------------------------------------- */

static void *worker_main(void *arg)
{
    struct tw_sched *sched = arg;
    uint64_t seen = 0;
    while (!atomic_load(&sched->quit)) {
        bool any = tw__sched_work(sched);
        pthread_mutex_lock(&sched->pool_lock);
        while (!any && sched->told == seen && !atomic_load(&sched->quit))
            pthread_cond_wait(&sched->pool_work, &sched->pool_lock);
        seen = sched->told;
        pthread_mutex_unlock(&sched->pool_lock);
    }
    return NULL;
}

static void *timer_main(void *arg)
{
    struct tw_sched *sched = arg;
    atomic_store(&sched->timer, pthread_self());
    while (!atomic_load(&sched->quit)) {
        tw__sched_due_awake(sched);
        while (tw__sched_serve(sched) && !atomic_load(&sched->quit))
            ;
        tw__sched_clock_sleep(sched, tw__sched_due_asleep(sched));
    }
    return NULL;
}

/* ---- starting and ending --------------------------------------------------------------------------------- */

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
    pthread_mutex_lock(&sched->setup);
    if (!atomic_load(&sched->started)) {
        if (sched->options.clock == TW_SCHED_CLOCK_VIRTUAL || start_all(sched)) {
            atomic_store_explicit(&sched->started, true, memory_order_release);
        } else {
            end_workers(sched);
            atomic_store(&sched->quit, false);
            error = TW_ESYSTEM;
        }
    }
    pthread_mutex_unlock(&sched->setup);
    return error;
}

void tw__sched_threads_end(struct tw_sched *sched)
{
    if (!atomic_load(&sched->started) || sched->options.clock == TW_SCHED_CLOCK_VIRTUAL)
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
        while (tw__sched_serve(sched))
            ;
        uint64_t next_ns = tw__sched_tick_start(sched, tw__sched_due_asleep(sched));
        if (next_ns > now_ns || next_ns == UINT64_MAX)
            break;
        if (next_ns > clock_ns)
            atomic_store(&sched->virtual_ns, clock_ns = next_ns);
    }
    atomic_store(&sched->virtual_ns, now_ns);
    tw__sched_serve(sched);
}

int tw_sched_advance(struct tw_sched *sched, uint64_t now_ns)
{
    TW_ASSERT(tw__sched_usable(sched));
    TW_ASSERT(!tw__sched_inside(sched));
    uint64_t clock_ns = tw__sched_clock_read(sched);
    if (sched->options.clock != TW_SCHED_CLOCK_VIRTUAL || now_ns < clock_ns)
        return TW_EINVAL;
    bool advancing = atomic_exchange(&sched->advancing, true);
    TW_ASSERT(!advancing);
    (void)advancing;
    advance_to(sched, clock_ns, now_ns);
    atomic_store(&sched->advancing, false);
    return 0;
}

uint64_t tw_sched_next_bound(const struct tw_sched *sched)
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
