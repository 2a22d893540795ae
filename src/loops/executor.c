/* SPDX-License-Identifier: MIT
 *
 * A scheduler's callbacks on a loop's thread.
 *
 *     timer thread:  execute hook, once a task  -- the first since the last turn -->  driver: wakes the loop
 *     loop thread:   tw_executor_turn()  -->  tw_sched_run_some(), at most `budget` callbacks
 *
 * There is no queue here: the scheduler keeps the tasks that it gave to the hook in a list of its own, in
 * order. The hook only wakes the loop, and notes the time in `woken_ns`, so that later tasks do not wake it
 * again. tw_executor_turn() sets `woken_ns` to 0 before it looks at the list. So a task that comes after the
 * look finds 0, and wakes the loop again.
 *
 * `woken_ns` is this program's memory of what lies in the kernel, and the two may differ: somebody else has
 * read the eventfd. So it is good for one step of the coarse clock, some milliseconds. A task that comes later
 * wakes the loop again, and a wake-up that was lost is made up for.
 *
 * A child of fork() has the parent's eventfd, and a copy of the scheduler that has no thread. There a turn does
 * nothing, and takes no wake-up from the parent. But a program may call daemon() before its scheduler has a
 * thread: then the hook is called in the child, and the executor is the child's.
 *
 * A program that has only a wheel in its loop needs no scheduler, and its adapter must not bring one along,
 * with libsodium behind it. So the one call of the scheduler, tw_sched_run_some(), is a weak reference: a
 * program with a scheduler to hand over has linked it.
 */
#include <tickwheel/loop.h>
#include <tickwheel/sched.h>

#include <base/assert.h>
#include <base/grow.h>
#include <base/time.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#pragma weak tw_sched_run_some

enum { CALLBACKS_BUDGET = 256 };

struct tw_executor {
    uint32_t budget;
    uint32_t turns;        /* nested calls of tw_executor_turn() under way */
    pthread_t thread;      /* the thread that runs the loop */
    _Atomic pid_t process; /* which made the executor, or whose scheduler has called it */
    bool freed;            /* with TW_DEBUG 2 the memory is kept, so that an assertion catches a late call */
    _Atomic uint64_t woken_ns; /* when the driver was woken, since the last turn began; 0: it was not */
    _Atomic(struct tw_sched *) sched;
    struct tw_executor_driver driver;
    void *driver_arg;
};

static bool is_inherited(const struct tw_executor *executor)
{
    return atomic_load(&executor->process) != getpid();
}

static void wake(struct tw_executor *executor)
{
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    uint64_t now_ns = (uint64_t)now.tv_sec * TW__NS_PER_S + (uint64_t)now.tv_nsec;
    if (atomic_exchange(&executor->woken_ns, now_ns) == now_ns && now_ns != 0)
        return;
    atomic_store(&executor->process, getpid());
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

int tw_executor_new(struct tw_executor **made, uint32_t budget, const struct tw_executor_driver *driver,
                    void *arg)
{
    TW_ASSERT(made != NULL);
    if (tw_sched_run_some == NULL)
        return TW_EINVAL;
    TW_ASSERT(driver != NULL && driver->wake != NULL && driver->close != NULL);
    if (!TW__GROW_UNUSED(driver->reserved))
        return TW_EINVAL;
    struct tw_executor *executor = calloc(1, sizeof *executor);
    if (executor == NULL)
        return TW_ENOMEM;
    executor->budget = budget != 0 ? budget : CALLBACKS_BUDGET;
    executor->thread = pthread_self();
    atomic_init(&executor->process, getpid());
    executor->driver = *driver;
    executor->driver_arg = arg;
    *made = executor;
    return 0;
}

int tw_executor_hook(struct tw_executor *executor, struct tw_sched_options *options)
{
    TW_ASSERT(executor != NULL && options != NULL);
    if (options->workers != 0 || options->execute != NULL)
        return TW_EINVAL;
    options->execute = execute;
    options->execute_arg = executor;
    return 0;
}

void tw_executor_turn(struct tw_executor *executor)
{
    TW_ASSERT(executor != NULL);
    TW_ASSERT(!is_inherited(executor));
    TW_ASSERT(pthread_equal(pthread_self(), executor->thread));
    if (is_inherited(executor))
        return;
    executor->turns++;
    if (executor->driver.clear != NULL)
        executor->driver.clear(executor->driver_arg);
    atomic_store(&executor->woken_ns, 0);
    struct tw_sched *sched = atomic_load(&executor->sched);
    if (sched != NULL && tw_sched_run_some(sched, executor->budget) == executor->budget)
        wake(executor);
    executor->turns--;
}

void tw_executor_free(struct tw_executor *executor)
{
    if (executor == NULL)
        return;
    TW_ASSERT(is_inherited(executor) || pthread_equal(pthread_self(), executor->thread));
    TW_ASSERT(is_inherited(executor) || executor->turns == 0);
    executor->driver.close(executor->driver_arg);
#if TW_DEBUG > 1
    executor->freed = true;
#else
    free(executor);
#endif
}
