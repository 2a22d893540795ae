/* SPDX-License-Identifier: MIT */
#include "running.h"

#include <stdio.h>
#include <string.h>

void calls_init(struct calls *calls)
{
    *calls = (struct calls){.answer = TW_ANSWER_DONE};
    pthread_mutex_init(&calls->lock, NULL);
    pthread_cond_init(&calls->unblocked, NULL);
}

static void write_down(struct calls *calls, const struct tw_job *job)
{
    size_t used = strlen(calls->text);
    snprintf(calls->text + used, sizeof calls->text - used, "%s%.*s/%u", used > 0 ? " " : "", (int)job->id.size,
             (const char *)job->id.data, job->attempt);
    calls->last = *job;
    snprintf(calls->last_error, sizeof calls->last_error, "%s", job->error != NULL ? job->error : "");
    snprintf(calls->last_payload, sizeof calls->last_payload, "%.*s", (int)job->payload.size,
             job->payload.data != NULL ? (const char *)job->payload.data : "");
    if (calls->count < 64)
        calls->called_ms[calls->count] = tw_store_now();
    calls->count++;
}

enum tw_answer note_call(void *arg, struct tw_job *job)
{
    struct calls *calls = arg;
    pthread_mutex_lock(&calls->lock);
    write_down(calls, job);
    calls->under_way++;
    calls->most = calls->under_way > calls->most ? calls->under_way : calls->most;
    enum tw_answer answer =
        calls->answers == 0 || calls->count <= calls->answers ? calls->answer : TW_ANSWER_DONE;
    while (calls->block)
        woken_by_test(&calls->unblocked, &calls->lock);
    calls->under_way--;
    if (answer == TW_ANSWER_LATER)
        calls->kept[calls->kept_count++] = job;
    if (calls->error != NULL)
        tw_job_fail(job, calls->error);
    if (calls->retry_ms > 0)
        tw_job_retry_at(job, calls->retry_ms);
    pthread_mutex_unlock(&calls->lock);
    return answer;
}

int calls_of(struct calls *calls)
{
    pthread_mutex_lock(&calls->lock);
    int count = calls->count;
    pthread_mutex_unlock(&calls->lock);
    return count;
}

const char *wait_for_calls(struct calls *calls, int n)
{
    EVENTUALLY_TOLD(calls_of(calls) >= n, "%d calls came, expected %d: %.200s", calls_of(calls), n,
                    calls->text);
    return calls->text;
}

void unblock(struct calls *calls)
{
    pthread_mutex_lock(&calls->lock);
    calls->block = false;
    pthread_cond_broadcast(&calls->unblocked);
    pthread_mutex_unlock(&calls->lock);
}

void start_with(struct tw_store *store, struct calls *calls)
{
    assert_int_equal(tw_store_handle(store, "q", 0, note_call, calls), 0);
    if (tw_store_start(store, NULL) != 0)
        fail_msg("%s", message(store));
}

int kept_of(struct calls *calls)
{
    pthread_mutex_lock(&calls->lock);
    int count = calls->kept_count;
    pthread_mutex_unlock(&calls->lock);
    return count;
}

struct tw_store_info stats_of(struct tw_store *store)
{
    struct tw_store_info stats;
    tw_store_stats(store, &stats, sizeof stats);
    return stats;
}

uint64_t attempts(struct tw_store *store)
{
    return stats_of(store).taken;
}

uint64_t answers(struct tw_store *store)
{
    struct tw_store_info stats = stats_of(store);
    return stats.done + stats.failed;
}

void wait_for_answers(struct tw_store *store, uint64_t n)
{
    EVENTUALLY_TOLD(answers(store) >= n, "%d answers came, expected %d", (int)answers(store), (int)n);
}
