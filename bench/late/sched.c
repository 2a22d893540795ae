/* SPDX-License-Identifier: MIT
 *
 * Our scheduler with its defaults: ticks of a millisecond, and callbacks on the timer thread.
 */
#include "side.h"

#include <tickwheel/sched.h>

static struct tw_sched *sched;

static void run_task(struct tw_sched *of, const struct tw_task *task)
{
    (void)of;
    called((uint64_t)(uintptr_t)task->arg);
}

static void open_sched(const char *path)
{
    (void)path;
    if (tw_sched_new(&sched, NULL) != 0)
        fail("sched: there is no scheduler");
}

static void file_tasks(const uint64_t *due_us, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (tw_sched_add_in(sched, until_ns(due_us[i]), run_task, (void *)(uintptr_t)due_us[i], NULL) != 0)
            fail("sched: a task was not filed");
}

/* The scheduler's thread began with its first task. */
static void start_sched(void)
{
}

static void close_sched(void)
{
    tw_sched_free(sched);
}

const struct side sched_side = {"sched", 1, open_sched, file_tasks, start_sched, close_sched};
