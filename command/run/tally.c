/* SPDX-License-Identifier: MIT
 *
 * A call whose lateness counts from before the run tells nothing about the run: nobody ran the task until then,
 * or somebody has put a series whose first time had passed. A standby begins when it takes over. Such calls are
 * counted apart, so that an hour without a process does not hide how punctual the run itself is. Only first
 * attempts count, as in the store's own statistics. Example: a run that begins at 10:00 finds a task of 09:00,
 * which is called an hour late, and a task of 10:05, which is called 200 us late. The summary has a line for
 * each.
 */
#include "tally.h"

#include "bins.h"
#include "figures.h"

#include <base/histogram.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

enum { US_NS = 1000 };

/* How late calls were, in microseconds. */
struct late {
    uint64_t buckets[TW__HISTOGRAM_BUCKETS];
    uint64_t calls, most;
};

struct tally {
    pthread_mutex_t lock;
    struct late late, before_run;
    struct bins bins; /* of `late` */
    uint64_t calls, retries, commands[CHILDREN_ENDS];
};

struct tally *tally_new(void)
{
    struct tally *tally = calloc(1, sizeof *tally);
    if (tally == NULL)
        return NULL;
    pthread_mutex_init(&tally->lock, NULL);
    return tally;
}

void tally_free(struct tally *tally)
{
    if (tally != NULL)
        pthread_mutex_destroy(&tally->lock);
    free(tally);
}

static void note(struct late *late, uint64_t late_us)
{
    late->buckets[tw__histogram_bucket(late_us)]++;
    late->most = late_us > late->most ? late_us : late->most;
    late->calls++;
}

void tally_call(struct tally *tally, const struct job *job, bool before_run)
{
    pthread_mutex_lock(&tally->lock);
    tally->calls++;
    tally->retries += job->attempt > 1;
    if (job->attempt <= 1 && before_run) {
        note(&tally->before_run, job->late_us);
    } else if (job->attempt <= 1) {
        note(&tally->late, job->late_us);
        bins_add(&tally->bins, job->late_us > 0 ? job->late_us : 1);
    }
    pthread_mutex_unlock(&tally->lock);
}

void tally_command(struct tally *tally, enum children_end end)
{
    pthread_mutex_lock(&tally->lock);
    tally->commands[end]++;
    pthread_mutex_unlock(&tally->lock);
}

uint64_t tally_calls(struct tally *tally)
{
    pthread_mutex_lock(&tally->lock);
    uint64_t calls = tally->calls;
    pthread_mutex_unlock(&tally->lock);
    return calls;
}

/* ---- the summary ----------------------------------------------------------------------------------------- */

static uint64_t percentile(const struct late *late, double share)
{
    return tw__histogram_percentile(late->buckets, share, late->most);
}

static void print_before_run(const struct tally *tally, FILE *out)
{
    const struct late *before_run = &tally->before_run;
    if (before_run->calls > 0)
        fprintf(out, "due before the run began: %" PRIu64 ", %s late (median), %s (maximum)\n",
                before_run->calls, figure_time(percentile(before_run, 0.5), US_NS).text,
                figure_time(before_run->most, US_NS).text);
}

static void print_commands(const struct tally *tally, FILE *out)
{
    fprintf(out, "commands: %" PRIu64 " succeeded, %" PRIu64 " failed", tally->commands[CHILDREN_DONE],
            tally->commands[CHILDREN_FAILED]);
    if (tally->commands[CHILDREN_GIVEN_UP] > 0)
        fprintf(out, ", %" PRIu64 " given back", tally->commands[CHILDREN_GIVEN_UP]);
    if (tally->retries > 0)
        fprintf(out, "; attempts after the first: %" PRIu64, tally->retries);
    fputc('\n', out);
}

static void print_lateness(const struct tally *tally, FILE *out)
{
    if (tally->late.calls == 0)
        return;
    fprintf(out,
            "lateness: %" PRIu64 " us (median), %" PRIu64 " us (99 %% of the runs), %" PRIu64 " us (maximum)\n",
            percentile(&tally->late, 0.5), percentile(&tally->late, 0.99), tally->late.most);
    bins_print(&tally->bins, "us late", "runs", 0, out);
}

void tally_print(const struct tally *tally, bool commands, FILE *out)
{
    print_before_run(tally, out);
    if (commands)
        print_commands(tally, out);
    print_lateness(tally, out);
}
