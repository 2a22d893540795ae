/* SPDX-License-Identifier: MIT */
#include "running.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void calls_init(struct calls *calls)
{
    *calls = (struct calls){.answer = TW_DONE};
    pthread_mutex_init(&calls->lock, NULL);
    pthread_cond_init(&calls->came, NULL);
}

static void write_down(struct calls *calls, const struct tw_job *job)
{
    size_t used = strlen(calls->text);
    snprintf(calls->text + used, sizeof calls->text - used, "%s%.*s/%u", used > 0 ? " " : "", (int)job->id_size,
             (const char *)job->id, job->attempt);
    calls->last = *job;
    snprintf(calls->last_error, sizeof calls->last_error, "%s", job->error != NULL ? job->error : "");
    snprintf(calls->last_payload, sizeof calls->last_payload, "%.*s", (int)job->payload_size,
             job->payload != NULL ? (const char *)job->payload : "");
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
    enum tw_answer answer = calls->answers == 0 || calls->count <= calls->answers ? calls->answer : TW_DONE;
    pthread_cond_broadcast(&calls->came);
    while (calls->block)
        pthread_cond_wait(&calls->came, &calls->lock);
    calls->under_way--;
    if (answer == TW_LATER)
        calls->kept[calls->kept_count++] = job;
    if (calls->error != NULL)
        tw_job_fail(job, calls->error);
    if (calls->retry_ms > 0)
        tw_job_retry_at(job, calls->retry_ms);
    pthread_mutex_unlock(&calls->lock);
    return answer;
}

const char *wait_for_calls(struct calls *calls, int n)
{
    struct timespec until;
    int error = 0;
    timespec_get(&until, TIME_UTC); /* a test may set the clock that clock_gettime() reads */
    until.tv_sec += 10;
    pthread_mutex_lock(&calls->lock);
    while (calls->count < n && error == 0)
        error = pthread_cond_timedwait(&calls->came, &calls->lock, &until);
    int count = calls->count;
    pthread_mutex_unlock(&calls->lock);
    if (count < n)
        fail_msg("%d calls came, expected %d: %s", count, n, calls->text);
    return calls->text;
}

void unblock(struct calls *calls)
{
    pthread_mutex_lock(&calls->lock);
    calls->block = false;
    pthread_cond_broadcast(&calls->came);
    pthread_mutex_unlock(&calls->lock);
}

void start_with(struct tw_store *store, struct calls *calls)
{
    assert_int_equal(tw_store_handle(store, "q", 0, note_call, calls), 0);
    if (tw_store_start(store, NULL) != 0)
        fail_msg("%s", message(store));
}

void wait_for_answers(struct tw_store *store, uint64_t n)
{
    struct tw_store_stats stats = {0};
    for (int i = 0; i < 10000 && stats.done + stats.retried + stats.dead < n; i++) {
        tw_store_stats(store, &stats);
        usleep(1000);
    }
    assert_true(stats.done + stats.retried + stats.dead >= n);
}
