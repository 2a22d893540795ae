/* SPDX-License-Identifier: MIT
 *
 * A stranger's program on the installed scheduler, valid in C11 and in C++17. It has a task on the real clock,
 * and a task that is too far ahead to run. Prints the version of the header.
 */
#include <stdio.h>
#include <string.h>
#include <tickwheel/sched.h>
#include <tickwheel/version.h>
#include <time.h>

static uint64_t ran_at;

static void note_time(struct tw_sched *sched, const struct tw_task *task)
{
    (void)task;
    ran_at = tw_sched_now(sched);
}

static int has_run(const struct tw_sched *sched)
{
    struct tw_sched_info stats;
    tw_sched_stats(sched, &stats, sizeof stats);
    return stats.fired == 1 && stats.running == 0 && stats.pending == 1;
}

int main(void)
{
    struct tw_sched *sched;
    const uint64_t delay_ns = 2000000, hour_ns = 3600000000000;
    if (tw_sched_new(&sched, NULL) != 0)
        return 1;
    uint64_t id, start = tw_sched_now(sched);
    if (tw_sched_add_in(sched, hour_ns, note_time, NULL, NULL) != 0 ||
        tw_sched_add_in(sched, delay_ns, note_time, NULL, &id) != 0)
        return 1;
    for (const time_t start_s = time(NULL); !has_run(sched);)
        if (time(NULL) > start_s + 60) {
            fputs("a task of two milliseconds has not run in a minute\n", stderr);
            return 1;
        }
    uint64_t handed = tw_sched_stop(sched, 0, NULL, NULL);
    tw_sched_free(sched); /* waits for the callback, so no thread writes ran_at from here on */
    puts(TW_VERSION);
    return handed == 1 && ran_at >= start + delay_ns ? 0 : 1;
}
