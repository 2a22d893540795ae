/* SPDX-License-Identifier: MIT
 *
 * Handlers write down each call, their answer, and the change that they made. Afterwards the calls are
 * followed in the ledger one by one: each must be a take that the table allows at some millisecond of the run,
 * and its answer is one of the table too. At the end no task may be due. So the order in which the workers came
 * does not matter, but that a task's own calls have an order.
 *
 * The runner writes an answer a little later than the handler returns. So the time of a death, or of a retry
 * after its backoff, is known within the length of the run, and the ledger learns it from the file. Tests do
 * not see tokens, so a wait is known within its jitter.
 */
#include "runs.h"

#include "clock.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <task/ends.h>
#include <task/state.h>
#include <tests/support/eventually.h>

enum { CALLS = 4000, BURST_MAX = 20 };

#define SHORTEST (UINT64_C(1) << 63) /* the token with which a wait is as short as its jitter lets it be */

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
    uint64_t begin_ms, end_ms, calls_before;
    uint64_t filed_before;          /* the ledger's count when the run began */
    uint64_t called[LEDGER_TASKS];  /* the revision of the last call; 0: none in this run */
    uint64_t most_ms[LEDGER_TASKS]; /* if `next` is known within bounds, the last one; or less than `next` */
    bool learns_place[LEDGER_TASKS], learns_death[LEDGER_TASKS]; /* the ledger's time is the earliest one */
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
    for (unsigned i = 1; error != NULL && i < LEDGER_ERRORS; i++)
        if (strcmp(ledger_error(i), error) == 0)
            return i;
    return error != NULL ? LEDGER_ERRORS : 0;
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
    change->conditions = TW_CONDITION_KEEPDUE;
    change->every_ms = rng_below(&runs.rng, 4) > 0 ? 2 * (entry->task.every_ms & INT32_MAX) : 0;
    change->times = change->every_ms > 0 ? 1 + rng_below(&runs.rng, 2) : 0;
    change->waits.tries = 1 + (uint32_t)rng_below(&runs.rng, 3);
    change->waits.first_ms = 100;
    put->every_ms = change->every_ms;
    put->times = change->times;
    put->tries = change->waits.tries;
    put->backoff_ms = change->waits.first_ms;
    call->result = store_put(runs.store, put, TW_CONDITION_KEEPDUE);
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
    enum tw_cancel found = TW_CANCEL_GONE;
    call->changes = kind < 6;
    call->change = (struct ledger_change){.task = call->task, .due_ms = now_ms + rng_below(&runs.rng, 5) - 2};
    struct tw_store_delayed put = {.queue = queue, .id = {id, size}, .due_ms = call->change.due_ms};
    if (kind == 0) {
        call->change.verb = TW_STORE_VERB_CANCEL;
        call->result = tw_store_cancel(runs.store, (struct tw_store_name){queue, {id, size}}, &found) == 0
                           ? (int)found
                           : TW_EIO;
    } else if (kind == 1) {
        call->change.verb = TW_STORE_VERB_MOVE;
        call->result = store_move_at(runs.store, (struct tw_store_name){queue, {id, size}}, put.due_ms, 0);
    } else if (kind < 4) {
        call->change.verb = TW_STORE_VERB_PUT;
        call->result = store_put(runs.store, &put, 0);
    } else if (kind < 6) {
        call->change.verb = TW_STORE_VERB_PUT;
        draw_keepdue(call, &put);
    }
}

static void draw_answer(struct call *call)
{
    static const enum tw_answer answers[] = {TW_ANSWER_DONE,   TW_ANSWER_DONE, TW_ANSWER_DONE, TW_ANSWER_FAILED,
                                             TW_ANSWER_FAILED, TW_ANSWER_DEAD, TW_ANSWER_BACK};
    call->answer = answers[rng_below(&runs.rng, 7)];
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
        answer = TW_ANSWER_LATER;
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
static uint64_t late_from(const struct entry *entry)
{
    uint64_t next_ms = entry->task.next_ms;
    return entry->task.every_ms == 0 && entry->place_ms > next_ms ? entry->place_ms : next_ms;
}

/* The earliest `next` with which a take at `at_ms` finds the task not too late, if its bounds allow that. */
static uint64_t timely_next(unsigned task, uint64_t at_ms)
{
    const struct tw__task *is = &runs.ledger->entry[task].task;
    uint64_t next_ms = at_ms > is->max_late_ms ? at_ms - is->max_late_ms : 0;
    return next_ms > is->next_ms && next_ms <= runs.most_ms[task] ? next_ms : is->next_ms;
}

/* Takes a task at a millisecond of the run, until `to_ms`, at which the table brings it to this due time, with
 * this reply and so many missed periods. Returns whether there is one. A `next` that is known within bounds
 * becomes the earliest one that fits. */
static bool take_task(unsigned task, enum tw__task_reply reply, uint64_t due_ms, uint64_t missed_periods,
                      uint64_t to_ms)
{
    struct tw__task *is = &runs.ledger->entry[task].task;
    struct tw__task_call take = {.verb = TW__TASK_TAKE, .token = SHORTEST};
    struct tw__task_outcome outcome;
    bool within_bounds = runs.most_ms[task] > is->next_ms, moves = due_ms != is->due_ms;
    for (unsigned late = 0; late <= within_bounds; late++)
        for (uint64_t at_ms = runs.begin_ms; at_ms <= to_ms; at_ms++) {
            struct tw__task ready = *is;
            ready.next_ms = late ? timely_next(task, at_ms) : is->next_ms;
            tw__task_change(&ready, &take, at_ms, &outcome);
            if (outcome.reply != reply || outcome.task.due_ms != due_ms ||
                outcome.task.missed_periods != missed_periods)
                continue;
            is->next_ms = ready.next_ms;
            runs.learns_place[task] &= !ledger_do(runs.ledger, task, &take, at_ms).filed;
            if (moves)
                runs.most_ms[task] = 0;
            return true;
        }
    return false;
}

static const char *compare_job(const struct entry *entry, const struct call *call)
{
    const struct tw_job *job = &call->job;
    if (time_of(call) < runs.begin_ms || time_of(call) > call->at_ms)
        return mistake_at(call, "its lateness is wrong");
    if (job->attempt != entry->task.attempt || job->tries != ledger_retry_of(runs.ledger, entry).tries)
        return mistake_at(call, "another attempt was expected");
    if (entry->revision != 0 && job->revision != entry->revision)
        return mistake_at(call, "another revision was expected");
    if (entry->revision == 0 && job->revision <= runs.called[call->task])
        return mistake_at(call, "it was filed anew, and its revision is no new one");
    if (job->left != tw__task_calls_left(entry->task.every_ms, entry->task.times))
        return mistake_at(call, "another number of calls was expected");
    if (call->error_before != entry->error && !(entry->error == 3 && call->error_before == 0))
        return mistake_at(call, "another error was expected");
    return call->payload_wrong ? mistake_at(call, "the payload is another") : NULL;
}

/* A period that has died is a task of its own. */
static void note_death(unsigned task, const struct entry *before, const struct tw__task *died, uint64_t from_ms,
                       unsigned error)
{
    struct dead_period *dead = &runs.dead[runs.dead_count < CALLS ? runs.dead_count++ : CALLS - 1];
    *dead = (struct dead_period){.task = task, .entry = *before, .from_ms = from_ms};
    dead->entry.task = *died;
    dead->entry.error = error;
    for (const struct dead_period *other = runs.dead; other < dead; other++)
        dead->n += other->task == task && other->entry.task.due_ms == died->due_ms;
}

/* The token with which a wait after a failure is as long as its jitter lets it be. */
static uint64_t longest_token(const struct tw__task *task)
{
    uint64_t wait_ms = tw__task_wait(&task->retry, tw__task_failure(task->attempt, task->lapses));
    return SHORTEST | (wait_ms - tw__task_jitter(wait_ms, task->retry.jitter, SHORTEST)) * 2;
}

/* Notes the latest `next` to which the end of an attempt leads: that end comes with the end of the run. A task
 * that is not filed has its old `next`. */
static void note_latest_next(unsigned task, struct tw__task_call end)
{
    const struct entry *entry = &runs.ledger->entry[task];
    struct tw__task before = entry->task;
    struct tw__task_outcome outcome;
    before.retry = ledger_retry_of(runs.ledger, entry);
    before.token = end.token = longest_token(&before);
    tw__task_change(&before, &end, runs.end_ms, &outcome);
    if (outcome.filed)
        runs.most_ms[task] = outcome.task.next_ms;
}

/* Ends an attempt at `from_ms`, or at any later time of the run. */
static void end_attempt(unsigned task, struct tw__task_call end, uint64_t from_ms, unsigned error)
{
    struct entry *entry = &runs.ledger->entry[task], before = *entry;
    note_latest_next(task, end);
    struct tw__task_outcome outcome = ledger_do(runs.ledger, task, &end, from_ms);
    runs.learns_place[task] |= outcome.filed;
    runs.learns_death[task] = ledger_is_dead(entry);
    if (outcome.dead.stage != TW__TASK_NONE)
        note_death(task, &before, &outcome.dead, from_ms, error);
    else if (outcome.fails)
        entry->error = error;
}

/* The answer comes when the handler was called, or later. An empty error is none. */
static void answer(const struct call *call)
{
    static const enum tw__task_verb verbs[] = {[TW_ANSWER_DONE] = TW__TASK_DONE,
                                               [TW_ANSWER_FAILED] = TW__TASK_FAILED,
                                               [TW_ANSWER_DEAD] = TW__TASK_DEAD,
                                               [TW_ANSWER_BACK] = TW__TASK_BACK};
    struct tw__task_call end = {
        .verb = verbs[call->answer], .timed = call->retry_ms != 0, .at_ms = call->retry_ms, .token = SHORTEST};
    end_attempt(call->task, end, time_of(call), call->error == 3 ? 0 : call->error);
}

/* The attempts of processes that have died lapse when the run begins. */
static void lapse_all(void)
{
    static const struct tw__task_call lapse = {.verb = TW__TASK_LAPSE};
    for (unsigned task = 0; task < LEDGER_TASKS; task++)
        if (tw__task_is_leased(&runs.ledger->entry[task].task)) {
            end_attempt(task, lapse, runs.begin_ms, LEDGER_LAPSED);
            runs.most_ms[task] = runs.learns_place[task] = runs.learns_death[task] = 0; /* it is begin_ms */
        }
}

static const char *follow(struct ledger *ledger, struct call *call)
{
    const struct tw_job *job = &call->job;
    if (call->task == LEDGER_TASKS)
        return mistake_at(call, "nobody knows this task");
    struct entry *entry = &ledger->entry[call->task];
    if (job->revision != entry->revision && job->due_ms != entry->task.due_ms)
        take_task(call->task, TW__TASK_LATE, job->due_ms, 0, call->at_ms);
    if (!take_task(call->task, TW__TASK_YES, job->due_ms, job->missed_periods, call->at_ms))
        return mistake_at(call, "the table has no such take");
    call->from_ms = late_from(entry);
    const char *wrong = compare_job(entry, call);
    if (wrong != NULL)
        return wrong;
    entry->revision = runs.called[call->task] = job->revision;
    if (call->changes && ledger_make(ledger, &call->change, call->change.due_ms) != call->result)
        return mistake_at(call, "a change in the handler returns another result");
    answer(call);
    return NULL;
}

/* If the time that the file has is not within these bounds, the comparison of the file tells. */
static void learn_time(uint64_t *time_ms, uint64_t seen_ms, uint64_t most_ms)
{
    if (seen_ms > *time_ms && seen_ms <= most_ms)
        *time_ms = seen_ms;
}

/* A task that is filed by an answer has the place of `next`, or of a moment of this run. */
static void learn_place(struct entry *entry, const struct tw_store_task *seen)
{
    learn_time(&entry->place_ms, seen->place_ms, runs.end_ms);
    if (entry->task.next_ms >= runs.end_ms)
        entry->place_ms = entry->task.next_ms;
}

/* The task under the number that `arg` points to. */
static void learn_task(void *arg, const struct tw_store_task *seen)
{
    unsigned task = *(const unsigned *)arg;
    struct entry *entry = &runs.ledger->entry[task];
    learn_time(&entry->task.next_ms, seen->next_ms, runs.most_ms[task]);
    if (runs.learns_place[task])
        learn_place(entry, seen);
    if (runs.learns_death[task])
        learn_time(&entry->dead_ms, seen->dead_ms, runs.end_ms);
}

/* `arg` is a struct dead_period. */
static void see_dead_period(void *arg, const struct tw_store_task *seen)
{
    const struct dead_period *dead = arg;
    const struct tw__task *task = &dead->entry.task;
    struct tw__task_retry retry = ledger_retry_of(runs.ledger, &dead->entry);
    size_t size;
    ledger_payload(dead->entry.payload, &size);
    if (seen->state != TW_STATE_DEAD || seen->due_ms != task->due_ms || seen->every_ms != task->every_ms ||
        seen->times != task->times || seen->attempt != task->attempt || seen->lapses != task->lapses ||
        seen->tries != retry.tries || seen->backoff_ms != retry.first_ms ||
        seen->backoff_max_ms != retry.max_ms || seen->factor_percent != retry.factor_percent ||
        find_error(seen->error) != dead->entry.error ||
        seen->jitter != (retry.jitter > 0 ? retry.jitter : TW_STORE_NO_JITTER) || seen->payload.size != size ||
        seen->dead_ms < dead->from_ms || seen->dead_ms > runs.end_ms)
        runs.dead_wrong = "a dead period is another than expected";
}

/* Each dead period is in the file under its name. The ledger does not know it, so it is cancelled. */
static const char *end_dead_periods(struct tw_store *store)
{
    runs.dead_wrong = NULL;
    for (unsigned i = 0; i < runs.dead_count && runs.dead_wrong == NULL; i++) {
        struct dead_period *dead = &runs.dead[i];
        char id[TW_STORE_ANY_ID_MAX + 1], again[16] = "";
        size_t size;
        const void *of = ledger_id(dead->task, &size);
        enum tw_cancel found = TW_CANCEL_GONE;
        memcpy(id, of, size);
        if (dead->n > 0)
            snprintf(again, sizeof again, "-%u", dead->n);
        size += (size_t)snprintf(id + size, sizeof id - size, "@%" PRIu64 "%s", dead->entry.task.due_ms, again);
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
    if (seen->due_ms != runs.ledger->entry[task].task.due_ms)
        take_task(task, TW__TASK_LATE, seen->due_ms, 0, runs.end_ms);
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
        if (ledger_has(&ledger->entry[task]) && ledger->entry[task].filed > runs.filed_before)
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

/* A task that was too late may be gone. */
static void learn_passes(struct tw_store *store)
{
    for (unsigned task = 0; task < LEDGER_TASKS; task++) {
        const struct tw__task *is = &runs.ledger->entry[task].task;
        size_t size;
        const void *id = ledger_id(task, &size);
        if (tw_store_get(store, (struct tw_store_name){ledger_queue(task), {id, size}}, learn_pass, &task) ==
            TW_EGONE)
            take_task(task, TW__TASK_LATE, is->due_ms, 0, runs.end_ms);
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
        if (runs.most_ms[task] > 0 || runs.learns_place[task] || runs.learns_death[task])
            tw_store_get(store, (struct tw_store_name){ledger_queue(task), {id, size}}, learn_task, &task);
    }
}

/* ---- a run ----------------------------------------------------------------------------------------------- */

/* Moves tasks away that have missed thousands of calls and make up for each. */
static bool tame(struct ledger *ledger, struct tw_store *store)
{
    for (unsigned task = 0; task < LEDGER_TASKS; task++) {
        const struct tw__task *is = &ledger->entry[task].task;
        struct ledger_change move = {.verb = TW_STORE_VERB_MOVE, .task = task};
        size_t size;
        const void *id = ledger_id(task, &size);
        if (is->stage == TW__TASK_NONE || is->stage == TW__TASK_BURIED || is->every_ms == 0 ||
            is->due_ms + BURST_MAX * is->every_ms > runs.begin_ms)
            continue;
        move.due_ms = runs.begin_ms - 3 * (is->every_ms < runs.begin_ms / 4 ? is->every_ms : 1);
        if (store_move_at(store, (struct tw_store_name){ledger_queue(task), {id, size}}, move.due_ms, 0) !=
            ledger_make(ledger, &move, tw_store_now()))
            return false;
    }
    return true;
}

/* If the clock has gone back, tasks that were filed late have places that lie ahead. A run mends that. */
static void mend_order(struct ledger *ledger)
{
    for (unsigned task = 0; task < LEDGER_TASKS; task++) {
        struct entry *entry = &ledger->entry[task];
        uint64_t next_ms = entry->task.next_ms;
        if (!ledger_is_dead(entry) && entry->place_ms > next_ms && entry->place_ms > runs.begin_ms)
            entry->place_ms = next_ms > runs.begin_ms ? next_ms : runs.begin_ms;
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

static void see_nothing(void *arg, const struct tw_store_task *task)
{
    (void)arg, (void)task;
}

/* A task that is under way is leased until its answer is written. */
static bool is_quiet(struct tw_store *store, const bool *paused)
{
    static const struct tw_store_range due = {.states = TW_STATE_READY | TW_STATE_LEASED, .count = 1};
    bool quiet = true;
    for (unsigned queue = 0; queue < LEDGER_QUEUES && quiet; queue++)
        quiet =
            paused[queue] || store_scan(store, ledger_queue(queue * LEDGER_IDS), &due, see_nothing, NULL) == 0;
    return quiet;
}

/* The job of a task that its handler has cancelled or replaced is under way, though no task is due. A look at
 * the file and one at the jobs are two: a job between them may have freed a task, so there must have been none.
 */
static bool is_over(struct tw_store *store, const bool *paused)
{
    struct tw_store_info before, after;
    tw_store_stats(store, &before, sizeof before);
    bool quiet = before.jobs == 0 && is_quiet(store, paused);
    tw_store_stats(store, &after, sizeof after);
    return quiet && after.jobs == 0 && after.taken == before.taken;
}

static const char *run(struct tw_store *store, const bool *paused, uint32_t workers)
{
    struct tw_store_run_options options = {.workers = workers, .max_jobs = 1 + workers * 3};
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
    memset(runs.most_ms, 0, sizeof runs.most_ms);
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
    runs.end_ms = tw_store_now();
    lapse_all();
    for (unsigned i = 0; i < runs.n && wrong == NULL; i++)
        wrong = follow(ledger, &runs.calls[i]);
    if (wrong == NULL)
        learn_passes(store);
    learn_times(store);
    learn_order(store);
    if (wrong == NULL)
        wrong = end_dead_periods(store);
    for (unsigned task = 0; task < LEDGER_TASKS && wrong == NULL; task++) {
        const struct tw__task *is = &ledger->entry[task].task;
        if (is->stage == TW__TASK_FILED && is->next_ms <= runs.end_ms && !paused[task / LEDGER_IDS])
            wrong = "a task is due, and was not called";
    }
    return wrong;
}
