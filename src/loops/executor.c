/* SPDX-License-Identifier: MIT
 *
 * A scheduler's callbacks on a loop's thread.
 *
 *     timer thread:  execute hook, once a task  -- the first since the last turn -->  driver: wakes the loop
 *     loop:          tw_executor_turn()  -->  tw_sched_run_some(), at most `budget` callbacks
 *
 * There is no queue: the scheduler keeps the tasks that the hook was given in a list of its own, in order. The
 * hook only says that there are some, and `woken` that this was said already. It is lowered before the list is
 * looked at: a task that comes after the look finds it low, and wakes the loop again.
 *
 * A program with a wheel in its loop needs no scheduler, and its adapter shall not bring one along, with
 * libsodium behind it. So the one call of the scheduler is a weak reference: who has a scheduler to hand over
 * has linked it.
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
    uint32_t turns;    /* calls of tw_executor_turn() under way, one inside the other */
    pthread_t thread;  /* that runs the loop */
    atomic_bool woken; /* a turn will come */
    bool freed;        /* with TW_DEBUG 2: the memory is kept, so that a call that comes too late is told */
    _Atomic(struct tw_sched *) sched;
    struct tw_executor_driver driver;
    void *driver_arg;
};

/* Required by each call but a wake-up: that there is an executor, and that the call comes from the thread of
 * its loop. */
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

/* The execute hook. Which task it is, the scheduler knows. */
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
