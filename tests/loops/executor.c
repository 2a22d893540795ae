/* SPDX-License-Identifier: MIT
 *
 * Every loop: a scheduler's callbacks run on the loop's thread, bounded and in order, and the loop sleeps
 * between them.
 */
#include "body.h"
#include "tests/support/eventually.h"
#include "tests/support/random.h"
#include "tests/support/run.h"

#include <stdatomic.h>
#include <tickwheel/sched.h>

enum { THREADS = 4 };
static struct tw_sched *sched;
static struct tw_executor *executor;
static atomic_uint tasks_left, refused;
static unsigned task_count;

/* The executor's hook, and how many tasks were given to it. */
static struct tw_sched_options hook;
static atomic_uint sent;

static void count_sent(void *arg, struct tw_sched *of, uint64_t id)
{
    hook.execute(arg, of, id);
    atomic_fetch_add(&sent, 1);
}

struct tw_executor *make_sched(uint32_t budget)
{
    struct tw_sched_options options = {.clock = TW_SCHED_CLOCK_MONOTONIC};
    assert_int_equal(kind.executor(&executor, base, budget), 0);
    assert_int_equal(tw_executor_hook(executor, &options), 0);
    hook = options;
    options.execute = count_sent;
    atomic_store(&sent, 0);
    assert_int_equal(tw_sched_new(&sched, &options), 0);
    kind.owner(loop, executor);
    return executor;
}

void end_sched(void)
{
    tw_sched_free(sched);
    tw_executor_free(executor);
    kind.owner(loop, NULL);
    if (kind.ends)
        kind.run(base); /* nothing keeps the loop running */
}

static void on_task(struct tw_sched *of, const struct tw_task *task)
{
    assert_ptr_equal(of, sched);
    assert_true(pthread_equal(pthread_self(), loop_thread));
    assert_true(clock_now() >= task->due_ns);
    if (atomic_fetch_sub(&tasks_left, 1) == 1)
        kind.stop(base);
}

void send_one(void)
{
    atomic_store(&tasks_left, 1);
    assert_int_equal(tw_sched_add_in(sched, 0, on_task, NULL, NULL), 0);
    EVENTUALLY_TOLD(atomic_load(&sent) == 1, "%u were sent", atomic_load(&sent));
}

static void *add_tasks(void *arg)
{
    struct rng rng;
    rng_init(&rng, (uintptr_t)arg);
    for (unsigned i = 0; i < task_count; i++)
        if (tw_sched_add_in(sched, rng_below(&rng, 300 * MS), on_task, NULL, NULL) != 0)
            atomic_fetch_add(&refused, 1);
    return NULL;
}

void test_a_schedulers_callbacks_run_on_the_loops_thread(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    task_count = run_scaled(5000);
    make_sched(0);
    atomic_store(&tasks_left, THREADS * task_count);
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_tasks, (void *)(i + 1)), 0);
    kind.run(base);
    assert_int_equal(atomic_load(&tasks_left), 0);
    for (int i = 0; i < THREADS; i++)
        eventually_joined(threads[i]);
    assert_int_equal(atomic_load(&refused), 0);
    end_sched();
}

static void on_crowd_task(struct tw_sched *of, const struct tw_task *task)
{
    (void)of;
    assert_int_equal((uintptr_t)task->arg, calls);
    calls++;
    since++;
    since_max = since > since_max ? since : since_max;
    if (calls == CROWD) {
        kind.unwatch(base);
        kind.stop(base);
    }
}

void test_a_schedulers_callbacks_are_bounded_and_in_order(void **state)
{
    (void)state;
    make_sched(BUDGET);
    watch_always();
    uint64_t due_ns = tw_sched_now(sched) + 10 * MS;
    for (uintptr_t i = 0; i < CROWD; i++)
        assert_int_equal(tw_sched_add_at(sched, due_ns, on_crowd_task, (void *)i, NULL), 0);
    EVENTUALLY_TOLD(atomic_load(&sent) == CROWD, "%u were sent", atomic_load(&sent));
    kind.run(base);
    assert_int_equal(calls, CROWD);
    assert_in_range(since_max, 1, 2 * BUDGET);
    end_sched();
}

static void stop_loop(void *arg, struct tw_timer *timer)
{
    (void)arg;
    (void)timer;
    kind.stop(base);
}

/* After a timer and a task have run, so that both descriptors were readable once. */
void test_an_idle_executor_lets_the_loop_sleep(void **state)
{
    (void)state;
    memset(&near, 0, sizeof near);
    make_sched(0);
    attach(stop_loop, 0);
    kind.owner(loop, executor);
    assert_int_equal(tw_loop_add_in(loop, &near, MS), 0);
    kind.run(base);
    atomic_store(&tasks_left, 1);
    assert_int_equal(tw_sched_add_in(sched, MS, on_task, NULL, NULL), 0);
    kind.run(base);
    sleep_in_loop();
    end_sched();
}
