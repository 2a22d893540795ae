/* SPDX-License-Identifier: MIT
 *
 * Handlers write down each call, their answer, and the change that they made. Afterwards the calls are
 * followed in the ledger one by one: each must be due, with the attempt and the revision that the ledger
 * expects, and its answer gives the task a new state. At the end no task may be due. So the order in which the
 * workers came does not matter, but that a task's own calls have an order.
 *
 * The runner writes an answer a little later than the handler returns. So the time of a death, or of a retry
 * after its backoff, is known within the length of the run, and the ledger learns it from the file.
 */
#include "runs.h"

#include "clock.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <tests/support/eventually.h>

enum { CALLS = 4000, BURST_MAX = 20 };

/* A call: a copy of the job, and its end. */
struct call {
    unsigned task; /* LEDGER_TASKS: unknown */
    struct tw_job job;
    unsigned error_before, payload_wrong;
    uint64_t at_ms;   /* the time in the handler, a moment after job.late_ms was found */
    uint64_t from_ms; /* its lateness counts from here, or a moment later */
    enum tw_answer answer;
    unsigned error;    /* for tw_job_fail() */
    uint64_t retry_ms; /* for tw_job_retry_at(); 0: the backoff */
    bool changes;      /* the handler has changed its task */
    struct ledger_change change;
    int result;
};

/* A period that has died, with the entry as it was then. */
struct dead_period {
    unsigned task, n; /* n: dead periods of the same task and time before it */
    struct entry entry;
    uint64_t from_ms; /* it died at this time or later */
};

static struct runs {
    pthread_mutex_t lock;
    struct rng rng;
    struct tw_store *store;
    struct ledger *ledger;
    uint64_t begin_ms, calls_before;
    uint64_t reach_ms[LEDGER_TASKS]; /* by how much a wait may be longer or shorter */
    uint64_t filed_before;           /* the ledger's count when the run began */
    uint64_t called[LEDGER_TASKS];   /* the revision of the last call; 0: none in this run */
    bool learns_next[LEDGER_TASKS], learns_place[LEDGER_TASKS],
        learns_death[LEDGER_TASKS]; /* the ledger's time is right, or too early */
    struct call calls[CALLS];
    unsigned n;
    struct dead_period dead[CALLS];
    unsigned dead_count;
    const char *dead_wrong;
    struct tw_job *later[CALLS]; /* jobs that wait for their answers */
    enum tw_answer later_answer[CALLS];
    unsigned waiting;
} runs = {.lock = PTHREAD_MUTEX_INITIALIZER};

uint64_t runs_calls(void)
{
    return runs.calls_before + runs.n;
}

/* ---- the handler ----------------------------------------------------------------------------------------- */

static unsigned find_task(const struct tw_job *job)
{
    for (unsigned task = 0; task < LEDGER_TASKS; task++) {
        size_t size;
        const void *id = ledger_id(task, &size);
        if (strcmp(job->queue, ledger_queue(task)) == 0 && size == job->id.size &&
            memcmp(id, job->id.data, size) == 0)
            return task;
    }
    return LEDGER_TASKS;
}

static unsigned find_error(const char *error)
{
    for (unsigned i = 1; error != NULL && i < 4; i++)
        if (strcmp(ledger_error(i), error) == 0)
            return i;
    return error != NULL ? 4 : 0;
}

/* The ledger does not change during a run, and a task's payload comes from its last put. A put of a handler has
 * none. */
static bool is_payload(unsigned task, const struct tw_job *job)
{
    size_t size;
    const void *payload = ledger_payload(runs.ledger->entry[task].payload, &size);
    return job->payload.size == 0 ||
           (size == job->payload.size && memcmp(payload, job->payload.data, size) == 0);
}

static void learn_due(void *arg, const struct tw_store_task *seen)
{
    *(uint64_t *)arg = seen->due_ms;
}

/* A put with KEEPDUE, of a series or of a task that runs once. If it does not act in its place, the task is due
 * now: the ledger learns that time from the file. */
static void draw_keepdue(struct call *call, struct tw_store_delayed *put)
{
    const struct entry *entry = &runs.ledger->entry[call->task]; /* as it was when the run began */
    struct ledger_change *change = &call->change;
    uint64_t from_ms = tw_store_now();
    change->conditions = TW_STORE_KEEPDUE;
    change->every_ms = rng_below(&runs.rng, 4) > 0 ? 2 * (entry->every_ms & INT32_MAX) : 0;
    change->times = change->every_ms > 0 ? 1 + rng_below(&runs.rng, 2) : 0;
    change->waits.tries = 1 + (uint32_t)rng_below(&runs.rng, 3);
    change->waits.backoff_ms = 100;
    put->every_ms = change->every_ms;
    put->times = change->times;
    put->tries = change->waits.tries;
    put->backoff_ms = change->waits.backoff_ms;
    call->result = store_put(runs.store, put, TW_STORE_KEEPDUE);
    tw_store_get(runs.store, (struct tw_store_name){put->queue, put->id}, learn_due, &change->due_ms);
    if (change->due_ms != call->job.due_ms && (change->due_ms < from_ms || change->due_ms > tw_store_now()))
        call->result = TW_EIO;
}

static void draw_change(struct call *call)
{
    uint64_t kind = rng_below(&runs.rng, 24), now_ms = tw_store_now();
    size_t size;
    const void *id = ledger_id(call->task, &size);
    const char *queue = ledger_queue(call->task);
    enum tw_cancelled found = TW_GONE;
    call->changes = kind < 6;
    call->change = (struct ledger_change){.task = call->task, .due_ms = now_ms + rng_below(&runs.rng, 3)};
    struct tw_store_delayed put = {.queue = queue, .id = {id, size}, .due_ms = call->change.due_ms};
    if (kind == 0) {
        call->change.verb = TW_STORE_CANCEL;
        call->result = tw_store_cancel(runs.store, (struct tw_store_name){queue, {id, size}}, &found) == 0
                           ? (int)found
                           : TW_EIO;
    } else if (kind == 1) {
        call->change.verb = TW_STORE_MOVE;
        call->result = store_move_at(runs.store, (struct tw_store_name){queue, {id, size}}, put.due_ms, 0);
    } else if (kind < 4) {
        call->change.verb = TW_STORE_PUT;
        call->result = store_put(runs.store, &put, 0);
    } else if (kind < 6) {
        call->change.verb = TW_STORE_PUT;
        draw_keepdue(call, &put);
    }
}

static void draw_answer(struct call *call)
{
    static const enum tw_answer answers[] = {TW_DONE, TW_DONE, TW_DONE, TW_RETRY, TW_RETRY, TW_DEAD};
    call->answer = answers[rng_below(&runs.rng, 6)];
    call->error = (unsigned)rng_below(&runs.rng, 4);
    if (rng_below(&runs.rng, 3) == 0)
        call->retry_ms = tw_store_now() + rng_below(&runs.rng, 2) * 5000;
}

/* The lock is held during the change, so that the changes come in the order of the calls. */
static enum tw_answer note_job(void *arg, struct tw_job *job)
{
    (void)arg;
    pthread_mutex_lock(&runs.lock);
    struct call *call = &runs.calls[runs.n < CALLS ? runs.n++ : CALLS - 1];
    *call = (struct call){
        .task = find_task(job), .job = *job, .error_before = find_error(job->error), .at_ms = tw_store_now()};
    call->payload_wrong = call->task < LEDGER_TASKS && !is_payload(call->task, job);
    draw_answer(call);
    if (call->task < LEDGER_TASKS)
        draw_change(call);
    if (call->error != 0)
        tw_job_fail(job, ledger_error(call->error));
    if (call->retry_ms != 0)
        tw_job_retry_at(job, call->retry_ms);
    enum tw_answer answer = call->answer;
    if (rng_below(&runs.rng, 4) == 0) {
        runs.later[runs.waiting] = job;
        runs.later_answer[runs.waiting++] = answer;
        answer = TW_LATER;
    }
    pthread_mutex_unlock(&runs.lock);
    return answer;
}

/* ---- following ------------------------------------------------------------------------------------------- */

static char text[300];

static const char *mistake_at(const struct call *call, const char *wrong)
{
    snprintf(text, sizeof text, "call %td: task %u, attempt %u, due %" PRIu64 ": %s", call - runs.calls,
             call->task, call->job.attempt, call->job.due_ms, wrong);
    return text;
}

/* When the handler was called, or earlier: a clock that went back may have come before the due time again. */
static uint64_t time_of(const struct call *call)
{
    return call->job.late_ms > 0 ? call->from_ms + call->job.late_ms : runs.begin_ms;
}

/* From when on its lateness counts. */
static uint64_t late_from(unsigned task, const struct entry *entry)
{
    uint64_t place_ms = runs.learns_place[task] ? runs.begin_ms : entry->place_ms;
    return entry->every_ms == 0 && place_ms > entry->next_ms ? place_ms : entry->next_ms;
}

static uint64_t periods_since(const struct entry *entry, uint64_t now_ms)
{
    return now_ms > entry->due_ms ? (now_ms - entry->due_ms) / entry->every_ms : 0;
}

/* From when on `max_late_ms` counts. A promoted one is due later than it is ready. */
static uint64_t too_late_from(const struct entry *entry)
{
    return entry->due_ms > entry->next_ms ? entry->due_ms : entry->next_ms;
}

/* Whether a task that waits for its first attempt since `due_ms` may have been dropped until `now_ms`. */
static bool may_be_late(const struct entry *entry, uint64_t due_ms, uint64_t now_ms)
{
    return entry->exists && entry->dead_ms == 0 && entry->attempt == 0 && entry->max_late_ms != TW_FOREVER &&
           due_ms + entry->max_late_ms < now_ms;
}

/* Whether `skip` may have passed periods over, until `now_ms` at most, so that the task is due then. It passes
 * none over that is late by less than a period, and stops at the first that lies ahead. */
static bool may_skip_to(const struct entry *entry, uint64_t due_ms, uint64_t now_ms)
{
    return entry->exists && entry->dead_ms == 0 && entry->attempt == 0 && entry->missed == TW_MISSED_SKIP &&
           due_ms > runs.begin_ms && due_ms >= entry->due_ms + 2 * entry->every_ms &&
           due_ms - entry->every_ms <= now_ms;
}

/* Whether periods may have got no call of their own, so that the task is due then. */
static bool may_pass_to(const struct entry *entry, uint64_t due_ms, uint64_t now_ms)
{
    return entry->every_ms > 0 && due_ms > entry->due_ms && (due_ms - entry->due_ms) % entry->every_ms == 0 &&
           (may_skip_to(entry, due_ms, now_ms) || may_be_late(entry, due_ms - entry->every_ms, now_ms));
}

/* The task has got a later period. If it has not got it together with a call, it has a new number, whose place
 * among those of this run only the file knows. */
static void pass_to(struct ledger *ledger, unsigned task, uint64_t due_ms, uint64_t revision)
{
    struct entry *entry = &ledger->entry[task];
    if (revision != 0 && revision == entry->revision) {
        entry->due_ms = entry->next_ms = due_ms;
        return;
    }
    ledger_file_again(ledger, task, due_ms);
    entry->place_ms = due_ms;
    runs.learns_next[task] = runs.learns_place[task] = false;
}

/* Whether a call stands for as many missed periods as had passed at its claim, or as its attempts before. */
static bool has_missed(const struct entry *entry, const struct call *call)
{
    uint64_t from_ms = entry->next_ms > runs.begin_ms ? entry->next_ms : runs.begin_ms;
    if (entry->attempt > 0)
        return call->job.missed == entry->missed_periods;
    if (entry->every_ms == 0 || entry->missed != TW_MISSED_COALESCE)
        return call->job.missed == 0;
    return call->job.missed >= periods_since(entry, from_ms) &&
           call->job.missed <= periods_since(entry, call->at_ms);
}

static const char *compare_job(const struct entry *entry, const struct call *call)
{
    const struct tw_job *job = &call->job;
    uint64_t left = entry->times == TW_FOREVER ? TW_FOREVER : entry->times - 1;
    if (!entry->exists || entry->dead_ms != 0 || entry->next_ms > call->at_ms)
        return mistake_at(call, "it is not due");
    if (time_of(call) < runs.begin_ms || time_of(call) > call->at_ms)
        return mistake_at(call, "its lateness is wrong");
    if (job->attempt != entry->attempt + 1 || job->tries != ledger_waits_of(runs.ledger, entry).tries)
        return mistake_at(call, "another attempt was expected");
    if (job->due_ms != entry->due_ms)
        return mistake_at(call, "another due time was expected");
    if (may_be_late(entry, too_late_from(entry), runs.begin_ms))
        return mistake_at(call, "it is too late");
    if (entry->revision != 0 && job->revision != entry->revision)
        return mistake_at(call, "another revision was expected");
    if (entry->revision == 0 && job->revision <= runs.called[call->task])
        return mistake_at(call, "it was filed anew, and its revision is no new one");
    if (job->left != left || !has_missed(entry, call))
        return mistake_at(call, "another number of calls was expected");
    if (call->error_before != entry->error && !(entry->error == 3 && call->error_before == 0))
        return mistake_at(call, "another error was expected");
    return call->payload_wrong ? mistake_at(call, "the payload is another") : NULL;
}

static void die(struct entry *entry, const struct call *call)
{
    entry->dead_ms = time_of(call);
    runs.learns_death[call->task] = true;
}

/* The wait after a failure, without jitter: the contract in small numbers. */
static uint64_t wait_of(const struct ledger_waits *waits, uint32_t failure)
{
    uint64_t most_ms = waits->backoff_max_ms;
    uint64_t wait_ms = waits->backoff_ms < most_ms ? waits->backoff_ms : most_ms;
    for (uint32_t i = 1; i < failure && wait_ms < most_ms && waits->factor > 100; i++) {
        uint64_t longer_ms = wait_ms * waits->factor / 100;
        longer_ms = longer_ms > wait_ms ? longer_ms : wait_ms + 1;
        wait_ms = longer_ms < most_ms ? longer_ms : most_ms;
    }
    return wait_ms;
}

/* The answer files the task, which gives it a new number: only the file knows that. */
static void file_anew(struct entry *entry, const struct call *call)
{
    entry->filed = ++runs.ledger->filed;
    entry->revision = 0;
    runs.learns_place[call->task] = true;
}

static void retry(struct entry *entry, const struct call *call)
{
    file_anew(entry, call);
    runs.learns_next[call->task] = call->retry_ms == 0;
    struct ledger_waits waits = ledger_waits_of(runs.ledger, entry);
    uint64_t wait_ms = wait_of(&waits, entry->attempt);
    uint64_t reach_ms = waits.jitter == TW_STORE_NO_JITTER ? 0 : wait_ms * waits.jitter / 100;
    runs.reach_ms[call->task] = reach_ms;
    entry->next_ms = call->retry_ms != 0 ? call->retry_ms : time_of(call) + wait_ms - reach_ms;
}

static void finish(struct entry *entry, const struct call *call)
{
    uint64_t due_ms = entry->due_ms + (1 + entry->missed_periods) * entry->every_ms;
    if (entry->every_ms == 0 || entry->times == 1) {
        entry->exists = false;
        return;
    }
    if (due_ms > TW_STORE_TIME_MAX) {
        entry->exists = false;
        return;
    }
    file_anew(entry, call);
    entry->due_ms = entry->next_ms = due_ms;
    runs.learns_next[call->task] = false;
    entry->times -= entry->times != TW_FOREVER;
    entry->missed_periods = 0;
    entry->attempt = 0;
    entry->error = 0;
}

/* A period that dies becomes a task of its own, and its series goes on. */
static void die_period(struct entry *entry, const struct call *call)
{
    struct dead_period *dead = &runs.dead[runs.dead_count < CALLS ? runs.dead_count++ : CALLS - 1];
    *dead = (struct dead_period){.task = call->task, .entry = *entry, .from_ms = time_of(call)};
    for (const struct dead_period *before = runs.dead; before < dead; before++)
        dead->n += before->task == dead->task && before->entry.due_ms == entry->due_ms;
    finish(entry, call);
}

/* An empty error is none. */
static void follow_answer(struct entry *entry, const struct call *call)
{
    uint32_t tries = ledger_waits_of(runs.ledger, entry).tries;
    bool dies = call->answer == TW_DEAD || (call->answer == TW_RETRY && entry->attempt >= tries);
    entry->error = call->error == 3 ? 0 : call->error;
    if (dies && entry->every_ms > 0)
        die_period(entry, call);
    else if (dies)
        die(entry, call);
    else if (call->answer == TW_RETRY)
        retry(entry, call);
    else
        finish(entry, call);
}

/* The change has replaced the task, whatever the answer is. The new one is not due before the attempt ends. */
static void end_replaced(struct entry *entry, const struct call *call)
{
    runs.learns_next[call->task] = runs.learns_place[call->task] = entry->exists;
    runs.reach_ms[call->task] = 0;
    entry->next_ms = entry->next_ms > time_of(call) ? entry->next_ms : time_of(call);
}

/* A change of a task at work. KEEPDUE lets the attempt of a series go on, and its answer counts for the new
 * options. */
static int follow_change(struct ledger *ledger, struct entry *entry, const struct call *call)
{
    struct ledger_change change = call->change;
    if (change.conditions & TW_STORE_KEEPDUE && entry->every_ms > 0 && change.every_ms > 0) {
        ledger_renew(entry, &change);
        follow_answer(entry, call);
        return 1;
    }
    change.conditions = 0;
    int result = ledger_make(ledger, &change);
    end_replaced(entry, call);
    return change.verb == TW_STORE_CANCEL ? TW_RUNNING : result;
}

static const char *follow(struct ledger *ledger, struct call *call)
{
    if (call->task == LEDGER_TASKS)
        return mistake_at(call, "nobody knows this task");
    struct entry *entry = &ledger->entry[call->task];
    if (may_pass_to(entry, call->job.due_ms, call->at_ms))
        pass_to(ledger, call->task, call->job.due_ms, call->job.revision);
    call->from_ms = late_from(call->task, entry);
    const char *wrong = compare_job(entry, call);
    if (wrong != NULL)
        return wrong;
    entry->attempt++;
    entry->missed_periods = call->job.missed;
    entry->revision = runs.called[call->task] = call->job.revision;
    if (!call->changes) {
        follow_answer(entry, call);
        return NULL;
    }
    int expected = follow_change(ledger, entry, call);
    return call->result == expected ? NULL : mistake_at(call, "a change in the handler returns another result");
}

/* If the time that the file has is not within the run, the comparison of the file tells. */
static void learn_time(uint64_t *time_ms, uint64_t seen_ms, uint64_t more_ms)
{
    if (seen_ms >= *time_ms && seen_ms - *time_ms <= tw_store_now() - runs.begin_ms + more_ms)
        *time_ms = seen_ms;
}

/* A task that is filed by an answer has the place of `next`, or of a moment of this run. */
static void learn_place(struct entry *entry, const struct tw_store_task *seen)
{
    entry->place_ms = entry->next_ms > runs.begin_ms ? entry->next_ms : runs.begin_ms;
    learn_time(&entry->place_ms, seen->place_ms, 0);
    if (entry->next_ms >= tw_store_now())
        entry->place_ms = entry->next_ms;
}

/* The task under the number that `arg` points to. */
static void learn_task(void *arg, const struct tw_store_task *seen)
{
    unsigned task = *(const unsigned *)arg;
    struct entry *entry = &runs.ledger->entry[task];
    if (runs.learns_next[task])
        learn_time(&entry->next_ms, seen->next_ms, 2 * runs.reach_ms[task]);
    if (runs.learns_place[task])
        learn_place(entry, seen);
    if (runs.learns_death[task])
        learn_time(&entry->dead_ms, seen->dead_ms, 0);
}

/* `arg` is a struct dead_period. */
static void see_dead_period(void *arg, const struct tw_store_task *seen)
{
    const struct dead_period *dead = arg;
    struct ledger_waits waits = ledger_waits_of(runs.ledger, &dead->entry);
    size_t size;
    ledger_payload(dead->entry.payload, &size);
    if (seen->state != TW_STATE_DEAD || seen->due_ms != dead->entry.due_ms || seen->every_ms != 0 ||
        seen->times != 1 || seen->attempt != dead->entry.attempt || seen->tries != waits.tries ||
        seen->backoff_ms != waits.backoff_ms || seen->backoff_max_ms != waits.backoff_max_ms ||
        seen->factor != waits.factor || seen->jitter != waits.jitter ||
        find_error(seen->error) != dead->entry.error || seen->payload.size != size ||
        seen->dead_ms < dead->from_ms || seen->dead_ms > tw_store_now())
        runs.dead_wrong = "a dead period is another than expected";
}

/* Each dead period is in the file under its name. The ledger does not know it, so it is cancelled. */
static const char *end_dead_periods(struct tw_store *store)
{
    runs.dead_wrong = NULL;
    for (unsigned i = 0; i < runs.dead_count && runs.dead_wrong == NULL; i++) {
        struct dead_period *dead = &runs.dead[i];
        char id[TW_STORE_NAME_MAX + 1], again[16] = "";
        size_t size;
        const void *of = ledger_id(dead->task, &size);
        enum tw_cancelled found = TW_GONE;
        memcpy(id, of, size);
        if (dead->n > 0)
            snprintf(again, sizeof again, "-%u", dead->n);
        size += (size_t)snprintf(id + size, sizeof id - size, "@%" PRIu64 "%s", dead->entry.due_ms, again);
        const char *queue = ledger_queue(dead->task);
        if (tw_store_get(store, (struct tw_store_name){queue, {id, size}}, see_dead_period, dead) != 0)
            runs.dead_wrong = "a dead period is lost";
        tw_store_cancel(store, (struct tw_store_name){queue, {id, size}}, &found);
    }
    return runs.dead_wrong;
}

/* A task may have been passed over after its last call. `arg` points to its number. */
static void learn_pass(void *arg, const struct tw_store_task *seen)
{
    unsigned task = *(const unsigned *)arg;
    if (may_pass_to(&runs.ledger->entry[task], seen->due_ms, tw_store_now()))
        pass_to(runs.ledger, task, seen->due_ms, 0);
}

static void learn_revision(void *arg, const struct tw_store_task *seen)
{
    *(uint64_t *)arg = seen->revision;
}

/* Gives the tasks that have got a new number in this run the order of those numbers. A retry, a next period and
 * a skip give one, and the end of an attempt that was replaced: only the file knows their order. */
static void learn_order(struct tw_store *store)
{
    struct ledger *ledger = runs.ledger;
    uint64_t revision[LEDGER_TASKS] = {0}, filed[LEDGER_TASKS];
    for (unsigned task = 0; task < LEDGER_TASKS; task++) {
        size_t size;
        const void *id = ledger_id(task, &size);
        if (ledger->entry[task].exists && ledger->entry[task].filed > runs.filed_before)
            tw_store_get(store, (struct tw_store_name){ledger_queue(task), {id, size}}, learn_revision,
                         &revision[task]);
    }
    for (unsigned one = 0; one < LEDGER_TASKS; one++) {
        filed[one] = runs.filed_before + 1;
        for (unsigned two = 0; two < LEDGER_TASKS && revision[one] > 0; two++)
            filed[one] += revision[two] > 0 && revision[two] < revision[one];
    }
    for (unsigned task = 0; task < LEDGER_TASKS; task++)
        if (revision[task] > 0)
            ledger->entry[task].filed = filed[task];
}

/* A task that was too late, and would run once, is gone. */
static void learn_passes(struct tw_store *store)
{
    for (unsigned task = 0; task < LEDGER_TASKS; task++) {
        struct entry *entry = &runs.ledger->entry[task];
        size_t size;
        const void *id = ledger_id(task, &size);
        if (entry->missed != TW_MISSED_SKIP && entry->max_late_ms == TW_FOREVER)
            continue;
        int error =
            tw_store_get(store, (struct tw_store_name){ledger_queue(task), {id, size}}, learn_pass, &task);
        if (error == TW_EGONE && entry->every_ms == 0 &&
            may_be_late(entry, too_late_from(entry), tw_store_now()))
            entry->exists = false;
    }
}

/* A call tells by its revision whether the task was passed over before. */
static void learn_revisions(struct tw_store *store)
{
    for (unsigned task = 0; task < LEDGER_TASKS; task++) {
        size_t size;
        const void *id = ledger_id(task, &size);
        tw_store_get(store, (struct tw_store_name){ledger_queue(task), {id, size}}, learn_revision,
                     &runs.ledger->entry[task].revision);
    }
}

static void learn_times(struct tw_store *store)
{
    for (unsigned task = 0; task < LEDGER_TASKS; task++) {
        size_t size;
        const void *id = ledger_id(task, &size);
        if (runs.learns_next[task] || runs.learns_place[task] || runs.learns_death[task])
            tw_store_get(store, (struct tw_store_name){ledger_queue(task), {id, size}}, learn_task, &task);
    }
}

/* ---- a run ----------------------------------------------------------------------------------------------- */

/* Moves tasks away that have missed thousands of calls and make up for each. */
static bool tame(struct ledger *ledger, struct tw_store *store)
{
    for (unsigned task = 0; task < LEDGER_TASKS; task++) {
        const struct entry *entry = &ledger->entry[task];
        size_t size;
        const void *id = ledger_id(task, &size);
        if (!entry->exists || entry->dead_ms != 0 || entry->every_ms == 0 ||
            entry->due_ms + BURST_MAX * entry->every_ms > runs.begin_ms)
            continue;
        uint64_t due_ms = runs.begin_ms - 3 * (entry->every_ms < runs.begin_ms / 4 ? entry->every_ms : 1);
        if (store_move_at(store, (struct tw_store_name){ledger_queue(task), {id, size}}, due_ms, 0) != 1)
            return false;
        ledger_file_again(ledger, task, due_ms);
    }
    return true;
}

/* If the clock has gone back, tasks that were filed late have places that lie ahead. A run mends that. */
static void mend_order(struct ledger *ledger)
{
    for (unsigned task = 0; task < LEDGER_TASKS; task++) {
        struct entry *entry = &ledger->entry[task];
        if (entry->exists && entry->dead_ms == 0 && entry->place_ms > entry->next_ms &&
            entry->place_ms > runs.begin_ms)
            entry->place_ms = ledger_place(entry->next_ms);
    }
}

static void answer_later(void)
{
    pthread_mutex_lock(&runs.lock);
    while (runs.waiting > 0) {
        runs.waiting--;
        tw_job_answer(runs.later[runs.waiting], runs.later_answer[runs.waiting]);
    }
    pthread_mutex_unlock(&runs.lock);
}

/* A task that is under way is due until its answer is written. */
static bool is_quiet(struct tw_store *store, const bool *paused)
{
    bool quiet = true;
    for (unsigned queue = 0; queue < LEDGER_QUEUES && quiet; queue++) {
        uint64_t next_ms = TW_NEVER;
        quiet = paused[queue] || (tw_store_next(store, ledger_queue(queue * LEDGER_IDS), &next_ms) == 0 &&
                                  next_ms > tw_store_now());
    }
    return quiet;
}

/* The job of a task that its handler has cancelled or replaced is under way, though no task is due. A look at
 * the file and one at the jobs are two: a job between them may have freed a task, so there must have been none.
 */
static bool is_over(struct tw_store *store, const bool *paused)
{
    struct tw_store_stats before, after;
    tw_store_stats(store, &before, sizeof before);
    bool quiet = before.jobs == 0 && is_quiet(store, paused);
    tw_store_stats(store, &after, sizeof after);
    return quiet && after.jobs == 0 && after.attempts == before.attempts;
}

static const char *run(struct tw_store *store, const bool *paused, uint32_t workers)
{
    struct tw_store_run options = {.workers = workers, .max_jobs = 1 + workers * 3};
    if (tw_store_start(store, &options) != 0)
        return "the store does not start";
    int64_t began_s = eventually_clock();
    while (!is_over(store, paused)) {
        if (eventually_clock() - began_s > EVENTUALLY_S)
            return "tasks are due or under way, and do not end";
        clock_pass(1);
        answer_later();
        any_moment(100);
    }
    return tw_store_stop(store) == 0 ? NULL : "the store does not stop";
}

const char *runs_go(struct ledger *ledger, const bool *paused, struct tw_store *store, struct rng *rng)
{
    runs.calls_before += runs.n;
    runs.n = runs.dead_count = 0;
    runs.store = store;
    runs.ledger = ledger;
    runs.begin_ms = tw_store_now();
    memset(runs.learns_next, 0, sizeof runs.learns_next);
    memset(runs.learns_place, 0, sizeof runs.learns_place);
    memset(runs.learns_death, 0, sizeof runs.learns_death);
    memset(runs.called, 0, sizeof runs.called);
    rng_init(&runs.rng, rng_next(rng));
    mend_order(ledger);
    if (!tame(ledger, store))
        return "a move fails";
    learn_revisions(store);
    runs.filed_before = ledger->filed;
    tw_store_handle(store, NULL, 0, note_job, NULL); /* the second time it is refused */
    const char *wrong = run(store, paused, 1 + (uint32_t)rng_below(rng, 3));
    for (unsigned i = 0; i < runs.n && wrong == NULL; i++)
        wrong = follow(ledger, &runs.calls[i]);
    if (wrong == NULL)
        learn_passes(store);
    learn_times(store);
    learn_order(store);
    if (wrong == NULL)
        wrong = end_dead_periods(store);
    for (unsigned task = 0; task < LEDGER_TASKS && wrong == NULL; task++) {
        const struct entry *entry = &ledger->entry[task];
        if (entry->exists && entry->dead_ms == 0 && entry->next_ms <= tw_store_now() &&
            !paused[task / LEDGER_IDS])
            wrong = "a task is due, and was not called";
    }
    return wrong;
}
