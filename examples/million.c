/* SPDX-License-Identifier: MIT
 *
 * A million timers, on the real clock. Each timer has a random delay of 1 to 3 s. None may fire early, and
 * all must fire. The program prints how long the filing took, how much memory a timer takes, and how late the
 * timers were.
 */
#include <stdio.h>
#include <stdlib.h>
#include <threads.h>
#include <tickwheel/sched.h>

enum { TIMERS = 1000000 };

static int fired, early; /* all callbacks run on the scheduler's one thread; main() reads after the stop */

static void fire(struct tw_sched *sched, const struct tw_task *task)
{
    fired++;
    if (tw_sched_now(sched) < task->due_ns)
        early++;
}

static double seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

static int file_all(struct tw_sched *sched)
{
    for (int i = 0; i < TIMERS; i++) {
        uint64_t delay_ns = TW_MS(1000 + rand() % 2000);
        int error = tw_sched_add_in(sched, delay_ns, fire, NULL, NULL);
        if (error != 0)
            return error;
    }
    return 0;
}

int main(void)
{
    struct tw_sched *sched;
    struct tw_sched_info stats;
    int error = tw_sched_new(&sched, NULL);
    if (error != 0)
        return fprintf(stderr, "million: %s\n", tw_sched_strerror(error)), 1;

    uint64_t start_ns = tw_sched_now(sched);
    if ((error = file_all(sched)) != 0)
        return fprintf(stderr, "million: %s\n", tw_sched_strerror(error)), 1;
    uint64_t filed_ns = tw_sched_now(sched);
    tw_sched_stats(sched, &stats, sizeof stats);
    printf("%d timers filed in %.2f s, %.0f bytes each\n", TIMERS, seconds(filed_ns - start_ns),
           (double)stats.memory / TIMERS);

    while (tw_sched_count(sched) > 0) /* the program does something else */
        thrd_sleep(&(struct timespec){.tv_nsec = (long)TW_MS(10)}, NULL);
    tw_sched_stop(sched, 0, NULL, NULL); /* waits for the last callback */
    printf("%d fired, %d early; half were at most %.1f ms late, 99 of 100 at most %.1f ms\n", fired, early,
           seconds(tw_sched_late_percentile(sched, 0.5)) * 1e3,
           seconds(tw_sched_late_percentile(sched, 0.99)) * 1e3);
    tw_sched_free(sched);
    return fired == TIMERS && early == 0 ? 0 : 1;
}
