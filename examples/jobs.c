/* SPDX-License-Identifier: MIT
 *
 * Periodic jobs, and the fate of the periods that were missed while the machine slept:
 *
 *     report    TW_MISSED_BURST      each report is needed, so each missed period is made up for
 *     clean     TW_MISSED_SKIP       a missed cleaning is left out
 *     sample    TW_MISSED_COALESCE   one sample stands for all that were missed
 */
#include <stdio.h>
#include <tickwheel/sched.h>

/* An executor that sleeps with the machine: due tasks wait in it. */
static uint64_t due[64];
static int due_count;

static void enqueue(void *arg, struct tw_sched *sched, uint64_t id)
{
    (void)arg, (void)sched;
    due[due_count++] = id;
}

static void run_due(struct tw_sched *sched)
{
    int count = due_count;
    due_count = 0;
    for (int i = 0; i < count; i++)
        tw_sched_run(sched, due[i]);
}

static void job(struct tw_sched *sched, const struct tw_task *task)
{
    printf("%3d min  %s", (int)(tw_sched_now(sched) / TW_MIN(1)), (const char *)task->arg);
    if (task->missed_periods > 0)
        printf(", standing for %d more", (int)task->missed_periods);
    putchar('\n');
}

static void awake(struct tw_sched *sched, int minutes)
{
    for (int i = 0; i < minutes; i++) {
        tw_sched_advance(sched, tw_sched_now(sched) + TW_MIN(1));
        while (due_count > 0) {
            run_due(sched);
            tw_sched_advance(sched, tw_sched_now(sched)); /* a task with missed periods may be due again */
        }
    }
}

int main(void)
{
    struct tw_sched *sched;
    struct tw_sched_options options = {
        .clock = TW_SCHED_CLOCK_VIRTUAL, .tick_ns = TW_SEC(1), .execute = enqueue};
    if (tw_sched_new(&sched, &options) != 0)
        return 1;
    struct tw_every report = {.first_ns = TW_MIN(20), .period_ns = TW_MIN(20), .missed = TW_MISSED_BURST};
    struct tw_every clean = {.first_ns = TW_MIN(15), .period_ns = TW_MIN(15), .missed = TW_MISSED_SKIP};
    struct tw_every sample = {.first_ns = TW_MIN(10), .period_ns = TW_MIN(10), .missed = TW_MISSED_COALESCE};
    tw_sched_add_every(sched, &report, job, "report", NULL);
    tw_sched_add_every(sched, &clean, job, "clean", NULL);
    tw_sched_add_every(sched, &sample, job, "sample", NULL);
    awake(sched, 21);
    tw_sched_advance(sched, TW_MIN(62)); /* asleep */
    puts("         (slept from 21 to 62 min)");
    awake(sched, 20);
    tw_sched_free(sched);
    return 0;
}
