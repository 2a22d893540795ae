/* SPDX-License-Identifier: MIT
 *
 * A call that could be made before the run began is late because nobody ran it. Such calls are counted apart,
 * so that an hour without a process does not hide how punctual the run itself is. Only first attempts count, as
 * in the store's own statistics. Example: a run that begins at 10:00 finds a task of 09:00, which is called an
 * hour late, and a task of 10:05, which is called 200 us late. The summary has a line for each.
 */
#include "tally.h"

#include "bins.h"
#include "figures.h"

#include <base/histogram.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { US_NS = 1000 };

/* How late calls were, in microseconds. */
struct late {
    uint64_t buckets[TW__HISTOGRAM_BUCKETS];
    uint64_t calls, most;
};

struct tally {
    pthread_mutex_t lock;
    bool standing_by;
    uint64_t began_ms; /* when the run began */
    struct late late, overdue;
    struct bins bins; /* of `late` */
    uint64_t calls, retries, commands[CHILDREN_ENDS];
};

struct tally *tally_new(void)
{
    struct tally *tally = calloc(1, sizeof *tally);
    if (tally == NULL)
        return NULL;
    pthread_mutex_init(&tally->lock, NULL);
    tally->began_ms = tw_store_now();
    return tally;
}

void tally_free(struct tally *tally)
{
    if (tally != NULL)
        pthread_mutex_destroy(&tally->lock);
    free(tally);
}

void tally_stand_by(struct tally *tally)
{
    pthread_mutex_lock(&tally->lock);
    tally->standing_by = tally->calls == 0;
    pthread_mutex_unlock(&tally->lock);
}

uint64_t tally_late_us(const struct tw_job *job)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t now_us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / US_NS;
    uint64_t from_us = job->late_from_ms * US_NS;
    return now_us > from_us ? now_us - from_us : 0;
}

static void note(struct late *late, uint64_t late_us)
{
    late->buckets[tw__histogram_bucket(late_us)]++;
    late->most = late_us > late->most ? late_us : late->most;
    late->calls++;
}

void tally_call(struct tally *tally, const struct tw_job *job, uint64_t late_us)
{
    pthread_mutex_lock(&tally->lock);
    if (tally->standing_by)
        tally->began_ms = tw_store_now();
    tally->standing_by = false;
    tally->calls++;
    tally->retries += job->attempt > 1;
    if (job->attempt == 1 && job->late_from_ms < tally->began_ms) {
        note(&tally->overdue, late_us);
    } else if (job->attempt == 1) {
        note(&tally->late, late_us);
        bins_add(&tally->bins, late_us > 0 ? late_us : 1);
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

void tally_print_overdue(const struct tally *tally, FILE *out)
{
    const struct late *overdue = &tally->overdue;
    if (overdue->calls > 0)
        fprintf(out, "due while nobody ran: %" PRIu64 ", %s late (median), %s (maximum)\n", overdue->calls,
                figure_time(percentile(overdue, 0.5), US_NS).text, figure_time(overdue->most, US_NS).text);
}

void tally_print_commands(const struct tally *tally, FILE *out)
{
    fprintf(out, "commands: %" PRIu64 " succeeded, %" PRIu64 " failed", tally->commands[CHILDREN_DONE],
            tally->commands[CHILDREN_FAILED]);
    if (tally->commands[CHILDREN_GIVEN_UP] > 0)
        fprintf(out, ", %" PRIu64 " given back", tally->commands[CHILDREN_GIVEN_UP]);
    if (tally->retries > 0)
        fprintf(out, "; attempts after the first: %" PRIu64, tally->retries);
    fputc('\n', out);
}

void tally_print_lateness(const struct tally *tally, FILE *out)
{
    if (tally->late.calls == 0)
        return;
    fprintf(out,
            "lateness: %" PRIu64 " us (median), %" PRIu64 " us (99 %% of the runs), %" PRIu64 " us (maximum)\n",
            percentile(&tally->late, 0.5), percentile(&tally->late, 0.99), tally->late.most);
    bins_print(&tally->bins, "us late", "runs", 0, out);
}
