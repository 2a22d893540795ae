/* SPDX-License-Identifier: MIT
 *
 * The order in which tasks of several shards start when the thread that serves them comes late: by ticks across
 * all shards and, of one tick, as their thread filed them.
 */
#include "outcome.h"
#include "own_clock.h"
#include "support.h"
#include "tests/support/random.h"

#include <src/sched/filing.h>
#include <src/sched/lock.h>

enum { THREADS = 5, EACH = 300, TICKS = 200, SHARDS = 4, ALL = THREADS * EACH };

/* ---- tasks of several threads ---------------------------------------------------------------------------- */

/* A task, with the thread that filed it and its place among the tasks of this thread. */
struct filed {
    unsigned thread, number;
};

struct filer {
    struct tw_sched *sched;
    pthread_t thread;
    unsigned self;
    uint64_t from_ns;
    struct filed task[EACH];
};

/* The tasks that have started, in order. Keys and repeating tasks have no thread. */
struct start {
    const struct filed *task;
    uint64_t tick;
};
static struct start started[4 * ALL];
static _Atomic unsigned starts;
static struct filer filers[THREADS];
static struct meeting all_filed;

static void note_start(struct tw_sched *sched, const struct tw_task *task)
{
    uint64_t tick = (task->due_ns - sched->base_ns + sched->options.tick_ns - 1) / sched->options.tick_ns;
    started[starts] = (struct start){task->arg, tick}; /* one thread at a time runs tasks here */
    starts++;
}

static void *file_many(void *arg)
{
    struct filer *self = arg;
    struct rng rng;
    rng_init(&rng, self->self + 1);
    for (unsigned i = 0; i < EACH; i++) {
        uint64_t due_ns = self->from_ns + rng_below(&rng, TICKS) * ms;
        self->task[i] = (struct filed){self->self, i};
        if (i % 10 == 0) {
            unsigned key = self->self * EACH + i;
            assert_int_equal(tw_sched_key_put_at(self->sched, BYTES_OF(key), due_ns, note_start, NULL, NULL),
                             0);
        } else {
            assert_int_equal(tw_sched_add_at(self->sched, due_ns, note_start, &self->task[i], NULL), 0);
        }
    }
    eventually_met(&all_filed); /* a thread that ended would give its shard to the next */
    return NULL;
}

/* Several threads at once file tasks for the ticks from a time on. */
static void file_from_many_threads(struct tw_sched *sched, uint64_t from_ns)
{
    atomic_store(&starts, 0);
    all_filed = meeting_of(THREADS);
    for (unsigned i = 0; i < THREADS; i++) {
        filers[i] = (struct filer){.sched = sched, .self = i, .from_ns = from_ns};
        assert_int_equal(pthread_create(&filers[i].thread, NULL, file_many, &filers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        eventually_joined(filers[i].thread);
    assert_int_equal(tw__sched_made(sched), SHARDS);
}

static void expect_in_order(void)
{
    unsigned latest[THREADS] = {0};
    for (unsigned i = 0; i < starts; i++) {
        if (i > 0)
            assert_true(started[i].tick >= started[i - 1].tick);
        if (i > 0 && started[i].tick > started[i - 1].tick)
            memset(latest, 0, sizeof latest);
        const struct filed *task = started[i].task;
        if (task == NULL)
            continue;
        assert_true(task->number >= latest[task->thread]);
        latest[task->thread] = task->number;
    }
}

/* ---- on a virtual clock ---------------------------------------------------------------------------------- */

/* A callback that takes as long as all other tasks have to wait for. */
static void run_very_long(struct tw_sched *sched, const struct tw_task *task)
{
    (void)task;
    atomic_store(&sched->virtual_ns, tw_sched_now(sched) + 2 * TICKS * ms);
}

static void a_timer_thread_that_comes_late_starts_tasks_by_ticks_across_shards(void **state)
{
    (void)state;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.shards = SHARDS});
    struct tw_every every = {.at_ns = 30 * ms, .period_ns = 7 * ms, .times = 20, .missed = TW_MISSED_BURST};
    assert_int_equal(tw_sched_add_at(sched, 2 * ms, run_very_long, NULL, NULL), 0);
    assert_int_equal(tw_sched_add_every(sched, &every, note_start, NULL, NULL), 0);
    file_from_many_threads(sched, 10 * ms);
    advance(sched, 5 * ms);
    assert_int_equal(starts, ALL + 20);
    expect_in_order();
    tw_sched_free(sched);
}

static void an_executor_starts_tasks_by_ticks_across_shards(void **state)
{
    (void)state;
    for (uint64_t some = 1; some < 400; some += 57) {
        sent_count = 0;
        struct tw_sched *sched = sched_of((struct tw_sched_options){.shards = SHARDS, .execute = send_later});
        file_from_many_threads(sched, 10 * ms);
        atomic_store(&sched->virtual_ns, 100 * ms);
        advance(sched, 0); /* comes late */
        while (tw_sched_run_some(sched, some) > 0)
            ;
        assert_true(starts > 0 && starts < ALL);
        atomic_store(&sched->virtual_ns, 300 * ms);
        advance(sched, 0);
        uint64_t taken = 0;
        for (uint64_t now; (now = tw_sched_run_some(sched, some)) > 0; taken += now)
            assert_true(now <= some);
        assert_true(taken > 0);
        assert_int_equal(starts, ALL);
        expect_in_order();
        for (int i = 0; i < sent_count; i++) /* ids that have run start nothing */
            tw_sched_run(sched, sent[i]);
        assert_int_equal(starts, ALL);
        tw_sched_free(sched);
    }
}

static uint64_t sent_tick[LOG_MAX];

static void note_sent(void *arg, struct tw_sched *sched, uint64_t id)
{
    struct tw_task task;
    (void)arg;
    assert_int_equal(tw_sched_get(sched, id, &task, sizeof task), 0);
    sent_tick[sent_count++] = (task.due_ns + ms - 1) / ms;
}

static void an_executor_receives_tasks_by_ticks_across_shards(void **state)
{
    (void)state;
    sent_count = 0;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.shards = SHARDS, .execute = note_sent});
    file_from_many_threads(sched, 10 * ms);
    atomic_store(&sched->virtual_ns, 300 * ms);
    advance(sched, 0);
    assert_int_equal(sent_count, ALL);
    for (int i = 1; i < sent_count; i++)
        assert_true(sent_tick[i] >= sent_tick[i - 1]);
    tw_sched_free(sched);
}

/* ---- with a worker --------------------------------------------------------------------------------------- */

static struct tw_sched *sched_with_a_worker(void)
{
    return still_sched((struct tw_sched_options){.shards = SHARDS, .workers = 1});
}

static void end_in_order(struct tw_sched *sched)
{
    EVENTUALLY_TOLD(starts == ALL, "%u of %d tasks have started", starts, ALL);
    settle();
    expect_in_order();
    assert_null(tw__sched_check(sched));
    tw_sched_free(sched);
}

/* Has the worker look for tasks, and returns when it has looked. */
static void have_the_worker_look(struct tw_sched *sched)
{
    EVENTUALLY(own.waiting == 1);
    long waits = own.waits;
    pthread_mutex_lock(&sched->pool_lock);
    sched->told++;
    pthread_cond_broadcast(&sched->pool_work);
    pthread_mutex_unlock(&sched->pool_lock);
    EVENTUALLY(own.waits > waits || starts > 0);
}

/* The timer thread waits for the lock of the first shard, while all tasks become due. Meanwhile the other
 * shards are brought to the present by somebody else, so their tasks are READY long before their turn. */
static void one_worker_starts_tasks_by_ticks_however_late_the_timer_thread_is(void **state)
{
    (void)state;
    for (int catch_up = 0; catch_up < 2; catch_up++) {
        struct tw_sched *sched = sched_with_a_worker();
        file_from_many_threads(sched, tw_sched_now(sched) + 300 * ms);
        settle();
        tw__sched_lock(sched->shard[0]);
        pass(700 * ms);
        EVENTUALLY(!own.asleep);
        for (uint32_t i = 1; catch_up && i < tw__sched_made(sched); i++) {
            tw__sched_lock(sched->shard[i]);
            tw__sched_catch_up(sched->shard[i]);
            tw__sched_unlock(sched->shard[i]);
        }
        have_the_worker_look(sched);
        assert_int_equal(starts, 0);
        tw__sched_unlock(sched->shard[0]);
        end_in_order(sched);
    }
}

static sem_t may_return;
static _Atomic bool blocked;

static void block(struct tw_sched *sched, const struct tw_task *task)
{
    (void)sched, (void)task;
    blocked = true;
    eventually_posted(&may_return);
}

/* The worker is in a callback, while all tasks become due. */
static void one_worker_that_comes_late_starts_tasks_by_ticks(void **state)
{
    (void)state;
    struct tw_sched *sched = sched_with_a_worker();
    sem_init(&may_return, 0, 0);
    assert_int_equal(tw_sched_add_in(sched, 50 * ms, block, NULL, NULL), 0);
    file_from_many_threads(sched, tw_sched_now(sched) + 100 * ms);
    pass(50 * ms);
    EVENTUALLY(blocked);
    pass(450 * ms);
    settle(); /* all tasks are READY */
    assert_int_equal(starts, 0);
    sem_post(&may_return);
    end_in_order(sched);
    sem_destroy(&may_return);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_timer_thread_that_comes_late_starts_tasks_by_ticks_across_shards),
        cmocka_unit_test(an_executor_starts_tasks_by_ticks_across_shards),
        cmocka_unit_test(an_executor_receives_tasks_by_ticks_across_shards),
        cmocka_unit_test(one_worker_starts_tasks_by_ticks_however_late_the_timer_thread_is),
        cmocka_unit_test(one_worker_that_comes_late_starts_tasks_by_ticks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
