/* SPDX-License-Identifier: MIT
 *
 * A scheduler's callbacks on a loop's thread.
 *
 *     timer thread:  execute hook, once a task  -- the first since the last turn -->  driver: wakes the loop
 *     loop thread:   tw_executor_turn()  -->  tw_sched_run_some(), at most `budget` callbacks
 *
 * There is no queue here: the scheduler keeps the tasks that it gave to the hook in a list of its own, in
 * order. The hook only wakes the loop, and sets `woken` so that later tasks do not wake it again.
 * tw_executor_turn() clears `woken` before it looks at the list. So a task that comes after the look finds
 * `woken` clear, and wakes the loop again.
 *
 * A program that has only a wheel in its loop needs no scheduler, and its adapter must not bring one along,
 * with libsodium behind it. So the one call of the scheduler, tw_sched_run_some(), is a weak reference: a
 * program with a scheduler to hand over has linked it.
 */
#include <tickwheel/loop.h>
#include <tickwheel/sched.h>

#include <base/assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#pragma weak tw_sched_run_some

enum { CALLBACKS_BUDGET = 256 };

struct tw_executor {
    uint32_t budget;
    uint32_t turns;    /* nested calls of tw_executor_turn() under way */
    pthread_t thread;  /* the thread that runs the loop */
    atomic_bool woken; /* the driver was woken: a call of tw_executor_turn() will come */
    bool freed;        /* with TW_DEBUG 2 the memory is kept, so that an assertion catches a late call */
    _Atomic(struct tw_sched *) sched;
    struct tw_executor_driver driver;
    void *driver_arg;
};

/* Asserts the duties of each call but a wake-up: the executor is not NULL, and the call comes from the thread
 * of its loop. */
static inline void may_call(const struct tw_executor *executor)
{
    (void)executor;
    TW_ASSERT(executor != NULL);
    TW_ASSERT(pthread_equal(pthread_self(), executor->thread));
}

static void wake(struct tw_executor *executor)
{
    if (!atomic_exchange(&executor->woken, true))
        executor->driver.wake(executor->driver_arg);
}

/* The execute hook. It does not need the task's id: the scheduler has the task in its list. */
static void execute(void *arg, struct tw_sched *sched, uint64_t id)
{
    struct tw_executor *executor = arg;
    (void)id;
    TW_ASSERT(!executor->freed); /* an executor is freed after its scheduler */
    atomic_store(&executor->sched, sched);
    wake(executor);
}

int tw_executor_new(struct tw_executor **made, uint32_t budget, struct tw_sched_options *options,
                    const struct tw_executor_driver *driver, void *arg)
{
    TW_ASSERT(made != NULL && options != NULL);
    if (tw_sched_run_some == NULL || options->workers != 0 || options->execute != NULL)
        return TW_EINVAL;
    TW_ASSERT(driver != NULL && driver->wake != NULL && driver->close != NULL);
    struct tw_executor *executor = calloc(1, sizeof *executor);
    if (executor == NULL)
        return TW_ENOMEM;
    executor->budget = budget != 0 ? budget : CALLBACKS_BUDGET;
    executor->thread = pthread_self();
    executor->driver = *driver;
    executor->driver_arg = arg;
    options->execute = execute;
    options->execute_arg = executor;
    *made = executor;
    return 0;
}

void tw_executor_turn(struct tw_executor *executor)
{
    may_call(executor);
    executor->turns++;
    if (executor->driver.clear != NULL)
        executor->driver.clear(executor->driver_arg);
    atomic_store(&executor->woken, false);
    struct tw_sched *sched = atomic_load(&executor->sched);
    if (sched != NULL && tw_sched_run_some(sched, executor->budget) == executor->budget)
        wake(executor);
    executor->turns--;
}

void tw_executor_free(struct tw_executor *executor)
{
    if (executor == NULL)
        return;
    may_call(executor);
    TW_ASSERT(executor->turns == 0);
    executor->driver.close(executor->driver_arg);
#if TW_DEBUG > 1
    executor->freed = true;
#else
    free(executor);
#endif
}
