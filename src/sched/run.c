/* SPDX-License-Identifier: MIT
 *
 * Firing: from the wheel to the ready list, from there to a callback, and back again.
 *
 *     timer thread   collects what is due into each shard's ready list, in order; sleeps until there is more
 *     who runs it    the timer thread itself (no workers), a worker, or the caller's executor through tw_sched_run()
 *
 * Filing a task again cannot fail: whether the wheel will take it was asked when it was added or moved
 * (tw__sched_every_reach(), tw__sched_task_probe()), where an error could still be returned; and a wheel that has fallen behind is
 * brought to the present first (tw__sched_catch_up()).
 *
 * The lock of a shard is held for TW__SCHED_COLLECT units of the wheel's work at a time, never while a callback runs. A
 * callback that has returned is finished and the next one started under one hold of the lock.
 *
 * Nothing is overslept. `wake` of a shard is the tick until which the timer thread means to sleep, written under the
 * shard's lock; whoever files an earlier task under that lock wakes it. While it is up `wake` is 0 and nobody needs to,
 * because it looks at every shard again before it sleeps.
 */
#include "internal.h"

#include <signal.h>

/* ---- inside a callback ------------------------------------------------------------------------------------ */

/* The callbacks that this thread is in: one, or more where a callback drives another scheduler. */
struct frame {
    const struct tw_sched *sched;
    uint64_t id;
    const struct frame *outer;
};
static _Thread_local const struct frame *frames;

bool tw__sched_inside(const struct tw_sched *sched, uint64_t id)
{
    for (const struct frame *frame = frames; frame != NULL; frame = frame->outer)
        if (frame->sched == sched && (id == 0 || frame->id == id))
            return true;
    return false;
}

/* ---- one call; the shard's lock is held outside of the callback itself --------------------------------------- */

/* A call under way. */
struct call {
    struct tw__sched_task *task;
    struct tw_task seen;
    uint64_t begun_ns;
};

uint64_t tw__sched_periods_after(uint64_t due_ns, uint64_t periods, uint64_t period_ns)
{
    uint64_t ns;
    return __builtin_mul_overflow(periods, period_ns, &ns) ? UINT64_MAX : tw__add_saturating(due_ns, ns);
}

/* Files a task that was filed before. */
static void file_again(struct tw__sched_shard *shard, struct tw__sched_task *task, uint64_t due_ns)
{
    int error = tw__sched_task_file(shard, task, due_ns);
    TW_ASSERT(error == 0);
    (void)error;
}

/* The whole periods by which a call is late, counted from the tick on which it could first be made. */
static uint64_t periods_late(const struct tw__sched_shard *shard, const struct tw__sched_task *task,
                             const struct tw__sched_details *details, uint64_t now_ns)
{
    const struct tw_sched *sched = shard->sched;
    uint64_t from_ns = tw__sched_tick_start(sched, tw__sched_tick_due(sched, task->due_ns));
    return now_ns > from_ns ? (now_ns - from_ns) / details->period_ns : 0;
}

/* A call that comes a period or more late stands for several: notes it. */
static void coalesce(struct tw__sched_shard *shard, const struct tw__sched_task *task,
                     struct tw__sched_details *details, uint64_t now_ns)
{
    details->missed = periods_late(shard, task, details, now_ns);
    shard->stats.skipped += details->missed;
}

/* A call that comes a period or more late is not made: files the task for the next period ahead. */
static bool skip(struct tw__sched_shard *shard, struct tw__sched_task *task,
                 const struct tw__sched_details *details, uint64_t now_ns)
{
    uint64_t missed = periods_late(shard, task, details, now_ns);
    if (missed == 0)
        return false;
    shard->stats.skipped += missed + 1;
    file_again(shard, task, tw__sched_periods_after(task->due_ns, missed + 1, details->period_ns));
    return true;
}

/* What a repeating task's policy says about a late call. True when there is none to make now. */
static bool put_off(struct tw__sched_shard *shard, struct tw__sched_task *task, uint64_t now_ns)
{
    struct tw__sched_details *details = tw__sched_task_details(task);
    if (details == NULL || details->period_ns == 0)
        return false;
    if (details->policy == TW_MISSED_SKIP)
        return skip(shard, task, details, now_ns);
    if (details->policy == TW_MISSED_COALESCE)
        coalesce(shard, task, details, now_ns);
    return false;
}

/* Begins the call of a READY task, unless its policy puts that off: then the task is filed for later. */
static bool begin_unless_put_off(struct tw__sched_shard *shard, struct tw__sched_task *task, uint64_t now_ns,
                                 struct call *call)
{
    tw__sched_task_unfile(shard, task);
    if (put_off(shard, task, now_ns))
        return false;
    call->task = task;
    call->begun_ns = now_ns;
    tw__sched_task_describe(shard, task, &call->seen);
    call->seen.late_ns = now_ns > task->due_ns ? now_ns - task->due_ns : 0;
    task->state = TW__SCHED_RUNNING;
    tw__list_append(&shard->busy, &task->link);
    shard->stats.running++;
    shard->stats.fired++;
    if (!tw__sched_task_goes_on(task))
        tw__sched_quota_give_back(shard, task);
    return true;
}

/* Files the next call of a repeating task. One that is due already goes behind those that are ready: there is an end to
 * them, as periods are not shorter than a tick. */
static void file_next(struct tw__sched_shard *shard, struct tw__sched_task *task, uint64_t due_ns)
{
    if (tw__sched_tick_due(shard->sched, due_ns) > tw_wheel_now(shard->wheel)) {
        file_again(shard, task, due_ns);
        return;
    }
    task->due_ns = due_ns;
    task->state = TW__SCHED_READY;
    tw__list_append(&shard->ready, &task->link);
    shard->stats.pending++;
}

/* Files a task whose callback has returned once more, if there is more to come. When it was moved or set meanwhile, the
 * call to come is that one, and `left` counts those after it; it goes through the wheel, the next tick being the
 * earliest, so that a callback that keeps moving itself to now does not keep everything else waiting. In a shard that is
 * being stopped this goes on: the stop takes what waits after what runs, and finds the task in the one place or the
 * other. */
static bool go_on(struct tw__sched_shard *shard, struct tw__sched_task *task, const struct tw_task *seen)
{
    struct tw__sched_details *details = tw__sched_task_details(task);
    if (!tw__sched_task_goes_on(task))
        return false;
    shard->stats.again++;
    if (task->again) {
        task->again = 0;
        if (details != NULL) {
            details->fresh = false;
            details->missed = 0;
        }
        file_again(shard, task, task->due_ns);
        return true;
    }
    if (details->left != TW_FOREVER)
        details->left--;
    uint64_t due_ns = tw__sched_periods_after(seen->due_ns, details->missed + 1, details->period_ns);
    details->missed = 0;
    file_next(shard, task, due_ns);
    return true;
}

/* Ends a call. Returns whether the task is now in the ready list. */
static bool finish(struct tw__sched_shard *shard, const struct call *call)
{
    struct tw__sched_task *task = call->task;
    bool waited = task->waited || shard->stopped;
    tw__list_remove(&task->link);
    tw_timer_init(&task->timer);
    task->waited = 0;
    shard->stats.running--;
    bool goes_on = go_on(shard, task, &call->seen);
    bool ready = goes_on && task->state == TW__SCHED_READY;
    if (!goes_on)
        tw__sched_task_drop(shard, task);
    if (waited)
        pthread_cond_broadcast(&shard->idle);
    return ready;
}

/* Tells the hooks. No lock is held. */
static void tell_hooks(const struct tw_sched *sched, const struct call *call, uint64_t ended_ns)
{
    const struct tw_sched_options *options = &sched->options;
    uint64_t ran_ns = ended_ns - call->begun_ns;
    if (options->on_late != NULL && call->seen.late_ns > options->late_ns)
        options->on_late(options->hook_arg, &call->seen, call->seen.late_ns);
    if (options->on_slow != NULL && ran_ns > options->slow_ns)
        options->on_slow(options->hook_arg, &call->seen, ran_ns);
}

/* Makes the call, and tells the hooks, which count as part of it. No lock is held. Returns the time at its end. */
static uint64_t call_back(struct tw_sched *sched, const struct call *call)
{
    call->seen.fn(sched, &call->seen);
    uint64_t ended_ns = tw__sched_clock_read(sched);
    tell_hooks(sched, call, ended_ns);
    return ended_ns;
}

/* Releases the value of a call that has returned, unless the next one has it. The lock is let go of meanwhile; only a
 * key that is set anew can have the task go on then, with another value. */
static void release_called(struct tw__sched_shard *shard, const struct call *call)
{
    const struct tw__sched_details *details = tw__sched_task_details(call->task);
    const struct tw__sched_value value = {call->seen.fn, call->seen.arg};
    bool fresh = details != NULL && details->fresh;
    if (!tw__sched_value_owned(shard->sched, &value) || (!fresh && tw__sched_task_goes_on(call->task)))
        return;
    if (!fresh)
        call->task->dead = 1;
    pthread_mutex_unlock(&shard->lock);
    tw__sched_value_release(shard->sched, &value);
    pthread_mutex_lock(&shard->lock);
}

/* Makes a call that has begun, and ends it; the lock is let go of meanwhile. Returns the time at its end; *ready tells
 * whether the task is in the ready list again. */
static uint64_t make_and_finish(struct tw__sched_shard *shard, const struct call *call, bool *ready)
{
    struct tw_sched *sched = shard->sched;
    struct frame frame = {sched, call->seen.id, frames};
    pthread_mutex_unlock(&shard->lock);
    frames = &frame;
    uint64_t ended_ns = call_back(sched, call);
    pthread_mutex_lock(&shard->lock);
    release_called(shard, call);
    frames = frame.outer;
    tw__sched_stats_call(shard, call->seen.late_ns, ended_ns - call->begun_ns);
    *ready = finish(shard, call);
    return ended_ns;
}

/* ---- from the wheel to the ready list ---------------------------------------------------------------------- */

/* Every tell has a number. A worker that found nothing sleeps until there is one newer than what it saw before it
 * looked, so that nothing that was told is slept over. */
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

void tw__sched_catch_up(struct tw__sched_shard *shard)
{
    uint64_t tick = tw__sched_tick_now(shard->sched, tw__sched_clock_read(shard->sched));
    struct tw_timer *timer;
    tw__sched_loose_settle(shard);
    while ((timer = tw_wheel_poll(shard->wheel, tick)) != NULL) {
        tw__sched_task_ready(&shard->ready, timer);
        shard->caught++;
    }
    if (shard->caught > 0)
        tw__sched_clock_wake(shard->sched);
}

/* Moves what is due into the ready list. The lock is let go of now and then, and workers are told meanwhile. */
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
        pthread_mutex_unlock(&shard->lock);
        tell_workers(shard->sched, moved);
        pthread_mutex_lock(&shard->lock);
        if (done)
            return;
    }
}

/* Collects what is due at a time, on ticks up to `until`. */
static void collect_due(struct tw__sched_shard *shard, uint64_t now_ns, uint64_t until)
{
    uint64_t tick = tw__sched_tick_now(shard->sched, now_ns);
    collect(shard, tick < until ? tick : until);
}

enum { QUANTUM = 64 }; /* calls of one shard before the next shard is served */

/* ---- running on the timer thread ---------------------------------------------------------------------------- */

/* Runs what is due, at most `limit` calls. True when there may be more. */
static bool run_inline(struct tw__sched_shard *shard, uint64_t until, unsigned limit)
{
    uint64_t now_ns = tw__sched_clock_read(shard->sched);
    struct call call;
    bool ready;
    pthread_mutex_lock(&shard->lock);
    while (limit > 0) {
        collect_due(shard, now_ns, until);
        if (shard->stopped || tw__list_empty(&shard->ready))
            break;
        limit--;
        if (begin_unless_put_off(shard, tw__sched_task_linked(shard->ready.next), now_ns, &call))
            now_ns = make_and_finish(shard, &call, &ready);
    }
    bool more = !shard->stopped && !tw__list_empty(&shard->ready);
    pthread_mutex_unlock(&shard->lock);
    return more;
}

/* ---- handing to the caller's executor ------------------------------------------------------------------------- */

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
        pthread_mutex_lock(&shard->lock);
        collect_due(shard, tw__sched_clock_read(sched), until);
        uint64_t id = send_next(shard);
        pthread_mutex_unlock(&shard->lock);
        if (id == 0)
            return;
        sched->options.execute(sched->options.execute_arg, sched, id);
    }
}

/* Whether a task that an executor comes with is to run: it may have been moved since it was sent, and then set aside by a
 * drain before its time. */
static bool may_run(const struct tw__sched_shard *shard, const struct tw__sched_task *task, uint64_t now_ns)
{
    const struct tw_sched *sched = shard->sched;
    return task != NULL && task->state == TW__SCHED_READY && !shard->stopped &&
           tw__sched_tick_due(sched, task->due_ns) <= tw__sched_tick_now(sched, now_ns);
}

void tw_sched_run(struct tw_sched *sched, uint64_t id)
{
    struct tw__sched_shard *shard = tw__sched_shard_of(sched, id);
    struct call call;
    bool ready = false;
    if (shard == NULL)
        return;
    uint64_t now_ns = tw__sched_clock_read(sched);
    pthread_mutex_lock(&shard->lock);
    struct tw__sched_task *task = tw__sched_task_find(shard, id);
    if (may_run(shard, task, now_ns) && begin_unless_put_off(shard, task, now_ns, &call))
        make_and_finish(shard, &call, &ready);
    pthread_mutex_unlock(&shard->lock);
    if (ready)
        tw__sched_clock_wake(sched); /* the timer thread sends it */
}

/* Runs tasks of a shard that were sent, at most `limit`. Returns how many. *again: some are in the ready list once more. */
static uint64_t run_sent(struct tw__sched_shard *shard, uint64_t limit, bool *again)
{
    uint64_t now_ns = tw__sched_clock_read(shard->sched), taken = 0;
    struct call call;
    bool ready;
    pthread_mutex_lock(&shard->lock);
    for (; taken < limit && !shard->stopped && !tw__list_empty(&shard->sent); taken++) {
        if (!begin_unless_put_off(shard, tw__sched_task_linked(shard->sent.next), now_ns, &call))
            continue;
        now_ns = make_and_finish(shard, &call, &ready);
        *again |= ready;
    }
    pthread_mutex_unlock(&shard->lock);
    return taken;
}

/* The shards take turns, also as to who is first, so that one with much to do does not keep the others waiting. */
uint64_t tw_sched_run_some(struct tw_sched *sched, uint64_t limit)
{
    uint32_t shards = sched->options.shards, idle = 0;
    uint64_t taken = 0;
    bool again = false;
    while (taken < limit && idle < shards) {
        uint32_t number = atomic_fetch_add_explicit(&sched->next_shard, 1, memory_order_relaxed) % shards;
        uint64_t left = limit - taken,
                 some = run_sent(&sched->shard[number], left < QUANTUM ? left : QUANTUM, &again);
        idle = some > 0 ? 0 : idle + 1;
        taken += some;
    }
    if (again)
        tw__sched_clock_wake(sched); /* the timer thread sends them */
    return taken;
}

/* ---- workers ------------------------------------------------------------------------------------------------ */

/* Runs ready tasks of a shard, some before the next one has its turn. True when there were any. */
static bool work_through(struct tw__sched_shard *shard)
{
    unsigned limit = QUANTUM;
    uint64_t now_ns = tw__sched_clock_read(shard->sched);
    bool any = false, ready;
    struct call call;
    pthread_mutex_lock(&shard->lock);
    while (limit-- > 0 && !shard->stopped && !tw__list_empty(&shard->ready)) {
        any = true;
        if (begin_unless_put_off(shard, tw__sched_task_linked(shard->ready.next), now_ns, &call))
            now_ns = make_and_finish(shard, &call, &ready);
    }
    pthread_mutex_unlock(&shard->lock);
    return any;
}

static void *worker_main(void *arg)
{
    struct tw_sched *sched = arg;
    uint64_t seen = 0;
    while (!atomic_load(&sched->quit)) {
        bool any = false;
        for (uint32_t i = 0; i < sched->options.shards; i++)
            any |= work_through(&sched->shard[i]);
        pthread_mutex_lock(&sched->pool_lock);
        while (!any && sched->told == seen && !atomic_load(&sched->quit))
            pthread_cond_wait(&sched->pool_work, &sched->pool_lock);
        seen = sched->told;
        pthread_mutex_unlock(&sched->pool_lock);
    }
    return NULL;
}

/* ---- the timer thread ------------------------------------------------------------------------------------------ */

/* Serves what is due in a shard on ticks up to `until`. True when there is more. */
static bool serve(struct tw__sched_shard *shard, uint64_t until)
{
    struct tw_sched *sched = shard->sched;
    if (sched->options.execute != NULL) {
        send_ready(shard, until);
        return false;
    }
    if (sched->options.workers == 0)
        return run_inline(shard, until, QUANTUM);
    pthread_mutex_lock(&shard->lock);
    collect_due(shard, tw__sched_clock_read(sched), until);
    pthread_mutex_unlock(&shard->lock);
    return false;
}

static void awake(struct tw__sched_shard *shard)
{
    pthread_mutex_lock(&shard->lock);
    shard->wake = 0;
    pthread_mutex_unlock(&shard->lock);
}

/* The tick before which there is nothing to do in a shard; 0 when there is at once. The lock is held. */
static uint64_t first_tick(struct tw__sched_shard *shard)
{
    bool for_workers = shard->sched->options.workers > 0;
    if (shard->stopped)
        return TW_NEVER;
    tw__sched_loose_settle(shard);
    bool now = for_workers ? shard->caught > 0 : !tw__list_empty(&shard->ready);
    return now ? 0 : tw_wheel_next_bound(shard->wheel);
}

/* The tick until which a shard lets the timer thread sleep. */
static uint64_t asleep(struct tw__sched_shard *shard)
{
    pthread_mutex_lock(&shard->lock);
    uint64_t wake = shard->wake = first_tick(shard);
    pthread_mutex_unlock(&shard->lock);
    return wake;
}

/* Serves every shard, no further than the first tick on which one of them has work: a thread that comes late goes through
 * the ticks in order all the same, and repeating tasks find their places among the others. True when there is more. */
static bool serve_all(struct tw_sched *sched)
{
    uint64_t first[1 << TW__SCHED_SHARD_BITS], until = TW_NEVER;
    bool more = false;
    for (uint32_t i = 0; i < sched->options.shards; i++) {
        pthread_mutex_lock(&sched->shard[i].lock);
        first[i] = first_tick(&sched->shard[i]);
        pthread_mutex_unlock(&sched->shard[i].lock);
        until = first[i] < until ? first[i] : until;
    }
    for (uint32_t i = 0; i < sched->options.shards; i++)
        if (first[i] <= until)
            more |= serve(&sched->shard[i], until);
    return more || until < tw__sched_tick_now(sched, tw__sched_clock_read(sched));
}

static uint64_t next_tick(struct tw_sched *sched)
{
    uint64_t next = TW_NEVER;
    for (uint32_t i = 0; i < sched->options.shards; i++) {
        uint64_t tick = asleep(&sched->shard[i]);
        next = tick < next ? tick : next;
    }
    return next;
}

static void *timer_main(void *arg)
{
    struct tw_sched *sched = arg;
    while (!atomic_load(&sched->quit)) {
        for (uint32_t i = 0; i < sched->options.shards; i++)
            awake(&sched->shard[i]);
        while (serve_all(sched) && !atomic_load(&sched->quit))
            ;
        tw__sched_clock_sleep(sched, next_tick(sched));
    }
    return NULL;
}

/* ---- threads --------------------------------------------------------------------------------------------------- */

/* Starts a thread that takes no signals: they are the program's. */
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

/* ---- virtual time ------------------------------------------------------------------------------------------------ */

int tw_sched_advance(struct tw_sched *sched, uint64_t now_ns)
{
    uint64_t clock_ns = tw__sched_clock_read(sched);
    if (sched->options.clock != TW_SCHED_VIRTUAL || now_ns < clock_ns)
        return TW_EINVAL;
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
    return 0;
}

uint64_t tw_sched_next(const struct tw_sched *sched)
{
    uint64_t next = TW_NEVER;
    for (uint32_t i = 0; i < sched->options.shards; i++) {
        struct tw__sched_shard *shard = &sched->shard[i];
        pthread_mutex_lock(&shard->lock);
        tw__sched_loose_settle(shard);
        uint64_t tick = tw__list_empty(&shard->ready) ? tw_wheel_next_bound(shard->wheel) : 0;
        pthread_mutex_unlock(&shard->lock);
        next = tick < next ? tick : next;
    }
    uint64_t at_ns = next == TW_NEVER ? TW_NEVER : tw__sched_tick_start(sched, next),
             now_ns = tw__sched_clock_read(sched);
    return at_ns > now_ns ? at_ns : now_ns;
}
