/* SPDX-License-Identifier: MIT
 *
 * The runner goes round: it looks at the file, takes the answers that have come, claims tasks that are due, and
 * writes answers and claims in one commit. Then it hands the claimed jobs to the workers, and goes round again.
 * While the disk is busy with a commit, the workers call the handlers of the commit before, and their answers
 * pile up for the next one. So a lone task costs two commits, and a hundred thousand that are due together
 * share a few hundred.
 *
 * How many are claimed ahead of the workers, pace.c tells. A worker asks before each call whether the claim
 * still holds (check.c), so a pause, a cancel or a move reaches every job that has not begun.
 *
 * If the file cannot be read or written, the runner says so and tries again after a second. Answers wait in
 * memory until then. If the process ends before, their tasks run again.
 *
 * At the beginning of each round the runner looks whether the file and the lock are at their paths, and again
 * after each commit, which may have waited long, before it hands the jobs out. If the file was removed or
 * replaced, the connections go on with a file that nobody else sees. If the lock was removed, another process
 * may run the tasks. In both cases the run is lost: jobs that have not begun are given back, the lock is free
 * at once, nothing is written any more, and the thread ends with the last handler under way.
 */
#include "runner.h"

#include <base/assert.h>

#include "commit.h"
#include "open.h"

#include <stdlib.h>

static const uint64_t RETRY_NS = 1000000000;  /* after an error */
static const uint64_t STANDBY_NS = 250000000; /* between two tries to lock the file */
static const uint64_t LOG_NS = 1000000000;    /* between two looks at the size of the log */

/* ---- errors ---------------------------------------------------------------------------------------------- */

/* Ends the run, which has lost its file or its lock. */
static void lose_run(struct tw__store_runner *runner, int error)
{
    runner->lost = error;
    runner->retry_ns = UINT64_MAX;
    tw__store_lock_release(&runner->file_lock);
    atomic_store(&runner->pool.stopping, true);
}

static void give_news(struct tw__store_runner *runner, int error, const char *message)
{
    if (runner->options.on_error != NULL)
        runner->options.on_error(runner->options.arg, error, message);
}

/* Reports an error, and puts the next try off. That one looks at the file, whatever has failed. */
static void fail(struct tw__store_runner *runner, int error, const char *message)
{
    runner->retry_ns = tw__store_monotonic() + RETRY_NS;
    runner->result = error;
    runner->broken = runner->must_look = true;
    if (error == TW_EREPLACED)
        lose_run(runner, error);
    pthread_mutex_lock(&runner->lock);
    runner->stats.errors++;
    runner->stats.running &= runner->lost == 0;
    pthread_mutex_unlock(&runner->lock);
    tw__store_failed(runner->store, error, message);
    give_news(runner, error, message);
}

/* Notes that claims have failed, if the error may last. The rounds that follow look at the file and write the
 * answers anew, but they claim only if a task may be called then. So their success does not tell of the
 * claims. */
static void note_failed_claims(struct tw__store_runner *runner, int error)
{
    const struct tw__store_batch *batch = &runner->batch;
    for (size_t i = 0; error != TW_EBUSY && error != TW_ENOMEM && i < batch->n; i++)
        tw__store_entry_note(&runner->window, batch->claims[i].entry, true);
}

/* After a round: reports the end of an error. The round has tried again whatever had failed, but for claims. */
static void note_mending(struct tw__store_runner *runner)
{
    if (!runner->broken || runner->result != 0 || runner->window.failed > 0)
        return;
    runner->broken = false;
    give_news(runner, 0, "the file can be read and written again");
}

/* ---- news of tasks --------------------------------------------------------------------------------------- */

static void tell_of_task(struct tw__store_runner *runner, const struct tw__store_job *job, int news)
{
    char message[TW_STORE_MESSAGE_SIZE];
    if (runner->options.on_error == NULL)
        return;
    tw__store_job_tell(&job->job, news, job->error, message);
    give_news(runner, news, message);
}

/* Whether an attempt has failed, and none of the same period before. Earlier ones may have lapsed. */
static bool fails_first(const struct tw__store_job *job)
{
    return job->answer == TW_ANSWER_FAILED && job->job.attempt == job->job.lapses + 1;
}

/* Tells of the tasks of a committed batch that have died, have failed for the first time, or were given back
 * with an error. */
static void tell_of_tasks(struct tw__store_runner *runner)
{
    const struct tw__store_batch *batch = &runner->batch;
    for (const struct tw__store_job *job = batch->answered; job != NULL; job = job->next)
        if (job->answer == TW_ANSWER_BACK && job->error != NULL)
            tell_of_task(runner, job, TW_EINVAL);
        else if (job->changed && (job->buried || fails_first(job)))
            tell_of_task(runner, job, job->buried ? TW_EDEAD : TW_EFAILED);
}

/* Tells of a damaged row. A window that is read anew comes to it again, so the last ones that were told are not
 * told twice. */
static void tell_of_damage(struct tw__store_runner *runner)
{
    uint64_t revision = runner->batch.damaged;
    if (revision == 0)
        return;
    for (size_t i = 0; i < TW__STORE_TOLD; i++)
        if (runner->told[i] == revision)
            return;
    runner->told[runner->told_count++ % TW__STORE_TOLD] = revision;
    give_news(runner, TW_EDAMAGED, runner->batch.damage);
}

/* Counts the attempts that have lapsed, and tells of the tasks that have died of it. */
static void tell_of_lapses(struct tw__store_runner *runner)
{
    pthread_mutex_lock(&runner->lock);
    runner->stats.lapsed += runner->lapses.count;
    pthread_mutex_unlock(&runner->lock);
    for (const struct tw__store_job *job = runner->lapses.died; job != NULL; job = job->next) {
        pthread_mutex_lock(&runner->lock);
        runner->stats.died++;
        runner->stats.coalesced += job->job.missed_periods;
        pthread_mutex_unlock(&runner->lock);
        tell_of_task(runner, job, TW_EDEAD);
    }
    tw__store_jobs_free(runner->lapses.died);
    runner->lapses = (struct tw__store_lapses){0};
}

/* ---- the beginning of a run ------------------------------------------------------------------------------ */

int tw__store_runner_begin(struct tw__store_runner *runner)
{
    struct tw__store_db *db = &runner->window.db;
    struct tw__store_count count = {.table = &runner->table};
    int error = tw__store_db_check_files(db);
    if (error == 0)
        error = tw__store_lock_take(db, runner->queues, &runner->file_lock);
    if (error != 0)
        return error;
    error = tw__store_commit(runner->store, tw__store_count_run, &count, true);
    if (error != 0) {
        tw__store_jobs_free(count.lapses.died);
        tw_store_message(runner->store, db->message, db->size);
        tw__store_lock_release(&runner->file_lock);
        return error;
    }
    runner->lapses = count.lapses;
    runner->until_ms = count.until_ms;
    runner->window.seen = count.seen;
    runner->batch.seen = &runner->window.seen;
    tw__store_check_begin(&runner->check, db);
    runner->batch.count = runner->check.count;
    tw__store_watch_begin(&runner->watch, db);
    pthread_mutex_lock(&runner->lock);
    runner->stats.running = true;
    runner->stats.began_ms = tw_store_now();
    pthread_mutex_unlock(&runner->lock);
    return 0;
}

/* Waits for the process that runs the tasks to end. Returns false if this run was stopped before. */
static bool stand_by(struct tw__store_runner *runner)
{
    while (runner->file_lock.fd < 0 && !atomic_load(&runner->pool.stopping)) {
        int error = tw__store_runner_begin(runner);
        if (error != 0 && error != TW_EBUSY)
            fail(runner, error, runner->window.message);
        if (error != 0)
            tw__store_watch_wait(&runner->watch, TW_STORE_TIME_MAX, tw__store_monotonic() + STANDBY_NS, false);
    }
    runner->retry_ns = 0;
    runner->result = 0;
    return runner->file_lock.fd >= 0;
}

/* ---- jobs ------------------------------------------------------------------------------------------------ */

/* Hands a claimed job to the workers. */
static void hand_out(struct tw__store_runner *runner, struct tw__store_job *job)
{
    struct tw__store_job **at =
        tw__store_table_find(&runner->table, job->entry->queue, job->job.id.data, job->job.id.size);
    TW_ASSERT(*at == NULL);
    *at = job;
    job->answered = tw__store_pool_answer;
    job->answered_arg = &runner->pool;
    job->store = runner->store;
    job->claimed_ns = tw__store_monotonic();
    job->series = runner->series;
    runner->bytes += job->size;
    tw__store_pool_give(&runner->pool, job);
}

/* Requires: the lock is held. */
static void count_answer(struct tw__store_runner *runner, const struct tw__store_job *job)
{
    struct tw_store_info *stats = &runner->stats;
    stats->jobs--;
    stats->done += job->answer == TW_ANSWER_DONE;
    stats->failed += job->answer == TW_ANSWER_FAILED || job->answer == TW_ANSWER_DEAD;
    stats->back += job->answer == TW_ANSWER_BACK && job->begun;
    stats->died += job->buried;
    stats->taken -= !job->begun;
    stats->coalesced +=
        job->changed && (job->answer == TW_ANSWER_DONE || job->buried) ? job->job.missed_periods : 0;
    if (job->begun && job->job.attempt == 1) {
        runner->late[tw__histogram_bucket(job->job.late_ms)]++;
        stats->late_max_ms = job->job.late_ms > stats->late_max_ms ? job->job.late_ms : stats->late_max_ms;
    }
}

static void count_claim(struct tw_store_info *stats, const struct tw__store_claim *claim)
{
    stats->jobs += claim->fate == TW__STORE_CLAIMED;
    stats->taken += claim->fate == TW__STORE_CLAIMED;
    if (claim->fate == TW__STORE_CLAIMED || claim->fate == TW__STORE_PASSED) {
        stats->dropped += claim->turn.dropped;
        stats->skipped += claim->turn.skipped;
    }
}

/* Counts a batch that is committed. */
static void count_batch(struct tw__store_runner *runner)
{
    const struct tw__store_batch *batch = &runner->batch;
    pthread_mutex_lock(&runner->lock);
    for (size_t i = 0; i < batch->n; i++)
        count_claim(&runner->stats, &batch->claims[i]);
    for (const struct tw__store_job *job = batch->answered; job != NULL; job = job->next)
        count_answer(runner, job);
    pthread_mutex_unlock(&runner->lock);
}

/* Ends a job whose answer is committed. */
static void end_job(struct tw__store_runner *runner, struct tw__store_job *job)
{
    struct tw__store_job **at =
        tw__store_table_find(&runner->table, job->entry->queue, job->job.id.data, job->job.id.size);
    TW_ASSERT(*at == job);
    *at = job->next_id;
    if (job->again_ms == TW_NEVER)
        tw__store_window_forget(&runner->window, job->entry);
    else
        tw__store_window_again(&runner->window, job->entry, job->again_ms);
    runner->must_look |= job->renumbered; /* the next look finds the task */
    runner->bytes -= job->size;
    tw__store_job_free(job);
}

/* ---- a round --------------------------------------------------------------------------------------------- */

/* How many tasks may be claimed now. */
static uint64_t claims_allowed(struct tw__store_runner *runner)
{
    uint64_t most = runner->options.max_jobs, jobs = runner->stats.jobs; /* only this thread changes it */
    uint64_t room = most > jobs ? most - jobs : 0;
    uint64_t allowed = tw__store_pace_claims(&runner->pace, &runner->pool, most, room);
    return allowed < TW__STORE_CLAIMS ? allowed : TW__STORE_CLAIMS;
}

/* Whether a job is given back by these answers. Its entry is in no list until they are settled. */
static bool gives_back(const struct tw__store_job *job)
{
    while (job != NULL && job->begun)
        job = job->next;
    return job != NULL;
}

/* While jobs are given back none is claimed, because its turn might be behind theirs. A task that is dropped
 * takes no turn: after such a one the batch has more claims than calls, so that many tasks that are too late
 * need few commits. */
static void take_claims(struct tw__store_runner *runner, bool seen)
{
    struct tw__store_batch *batch = &runner->batch;
    bool full = runner->bytes >= runner->options.max_bytes && runner->stats.jobs > 0;
    uint64_t allowed = claims_allowed(runner);
    if (full || !seen || gives_back(batch->answered) || atomic_load(&runner->pool.stopping)) {
        allowed = 0;
        runner->pace.more_ready = false;
    }
    uint64_t most = runner->dropping && allowed > 0 ? TW__STORE_CLAIMS : allowed;
    batch->calls = allowed;
    batch->n = 0;
    for (struct tw__store_entry *entry; batch->n < most; batch->n++) {
        entry = tw__store_window_take(&runner->window);
        if (entry == NULL)
            break;
        batch->claims[batch->n] = (struct tw__store_claim){.entry = entry};
    }
    runner->pace.more_ready &= batch->n >= allowed;
}

/* Adds new answers to the answers that could not be written before. */
static void take_answers(struct tw__store_runner *runner)
{
    struct tw__store_job **end = &runner->answered;
    while (*end != NULL)
        end = &(*end)->next;
    *end = tw__store_pool_answers(&runner->pool);
    runner->batch.answered = runner->answered;
}

/* After a failed commit: the answers stay. */
static void take_back_batch(struct tw__store_runner *runner)
{
    struct tw__store_batch *batch = &runner->batch;
    tw__store_claim_undo(batch);
    for (size_t i = batch->n; i-- > 0;)
        tw__store_window_put_back(&runner->window, batch->claims[i].entry);
}

static void settle_claim(struct tw__store_runner *runner, struct tw__store_claim *claim)
{
    struct tw__store_window *window = &runner->window;
    switch (claim->fate) {
    case TW__STORE_CLAIMED:
        hand_out(runner, claim->job);
        break;
    case TW__STORE_EARLY:
        tw__store_window_again(window, claim->entry,
                               claim->place_ms > claim->next_ms ? claim->place_ms : claim->next_ms);
        break;
    case TW__STORE_NO_ROOM: /* settle_batch() has put them back */
        break;
    case TW__STORE_PASSED: /* the next look finds the task under its new number, unless it has left */
        runner->must_look |= !claim->turn.ends;
        tw__store_window_forget(window, claim->entry);
        break;
    case TW__STORE_GONE:
        tw__store_window_forget(window, claim->entry);
    }
}

/* After a commit. Entries go back to their lists first, the last one first, so that they keep their order.
 * Returns whether anything has changed. */
static bool settle_batch(struct tw__store_runner *runner)
{
    struct tw__store_batch *batch = &runner->batch;
    size_t put_back = 0;
    bool dropped = false;
    runner->series = tw__store_check_note(&runner->check, &batch->commits);
    runner->window.seen.changes = batch->changes;
    runner->until_ms = batch->renewed ? batch->until_ms : runner->until_ms;
    count_batch(runner);
    tell_of_tasks(runner);
    tell_of_damage(runner);
    for (size_t i = batch->n; i-- > 0;) {
        if (batch->claims[i].fate != TW__STORE_NO_ROOM) {
            tw__store_entry_note(&runner->window, batch->claims[i].entry, false);
            continue;
        }
        tw__store_window_put_back(&runner->window, batch->claims[i].entry);
        put_back++;
    }
    for (size_t i = 0; i < batch->n; i++) {
        dropped |= batch->claims[i].fate == TW__STORE_PASSED && batch->claims[i].turn.dropped > 0;
        settle_claim(runner, &batch->claims[i]);
    }
    for (struct tw__store_job *job = batch->answered, *next; job != NULL; job = next) {
        next = job->next;
        end_job(runner, job);
    }
    runner->answered = NULL;
    tw__store_pool_call(&runner->pool);
    runner->pace.more_ready &= put_back == 0 || batch->called == batch->calls; /* an answer makes room */
    runner->dropping = dropped;
    return batch->answered != NULL || batch->n > put_back;
}

/* Checks that the file and the lock are those of this run. Returns false if the run is lost. */
static bool has_files(struct tw__store_runner *runner)
{
    struct tw__store_db *db = &runner->window.db;
    int error = runner->lost;
    if (error == 0 && (error = tw__store_db_check_files(db)) == 0)
        error = tw__store_lock_check(db, &runner->file_lock);
    if (error != 0 && runner->lost == 0)
        fail(runner, error, db->message);
    runner->result = error;
    return error == 0;
}

/* Looks inside the file, unless a worker could not, and at the size of its log now and then. */
static int look_inside_file(struct tw__store_runner *runner, uint64_t now_ms, bool whole)
{
    const struct tw_store_options *options = &runner->store->options;
    uint64_t now_ns = tw__store_monotonic();
    uint32_t count = tw__store_check_count(&runner->check);
    pthread_mutex_lock(&runner->check.lock);
    int error = tw__store_check_error(&runner->check, &runner->window.db);
    if (error == 0)
        error = tw__store_window_look(&runner->window, now_ms, whole);
    if (error == 0)
        runner->check.looked = count;
    if (error == 0 && now_ns >= runner->log_ns) {
        tw__store_cut_log(&runner->window.db, runner->log_max, options->busy_ms);
        runner->log_ns = now_ns + LOG_NS;
    }
    pthread_mutex_unlock(&runner->check.lock);
    return error;
}

/* Looks at the file if there may be news, or if an entry is due: its time passes only together with a look that
 * is as new. */
static int look_at_file(struct tw__store_runner *runner, uint64_t now_ms)
{
    const struct tw__store_window *window = &runner->window;
    runner->must_look |= atomic_exchange(&runner->pool.stale, false);
    bool whole = runner->must_look || tw__store_window_wants(window, now_ms);
    bool due = tw__store_watch_look(&runner->watch, &whole) || tw__store_window_is_due(window, now_ms);
    if (!due && !whole)
        return 0;
    int error = look_inside_file(runner, now_ms, whole);
    runner->must_look = error != 0;
    if (error == 0)
        tw__store_window_expire(&runner->window, now_ms);
    else
        fail(runner, error, runner->window.message);
    return error;
}

/* Makes a commit that is no batch. Returns: 0, or an error that has been reported. */
static int commit(struct tw__store_runner *runner, tw__store_work_fn *work, void *arg, bool sync)
{
    struct tw__store_window *window = &runner->window;
    int error = tw__store_commit(runner->store, work, arg, sync);
    if (error != 0) {
        tw_store_message(runner->store, window->message, sizeof window->message);
        fail(runner, error, window->message);
    }
    return error;
}

/* If the clock was set back, the order has to be mended before the tasks are loaded again. */
static int mend_order(struct tw__store_runner *runner, uint64_t now_ms)
{
    return now_ms < runner->window.now_ms ? commit(runner, tw__store_place_again, NULL, false) : 0;
}

/* Ends the leases of programs that have run out. Then their tasks have new numbers, and the next look finds
 * them. */
static int end_leases(struct tw__store_runner *runner, uint64_t now_ms)
{
    struct tw__store_leases leases = {.seen = &runner->window.seen};
    if (now_ms < runner->window.lapse_ms)
        return 0;
    int error = commit(runner, tw__store_end_leases, &leases, false);
    if (error != 0) {
        tw__store_jobs_free(leases.lapses.died);
        return error;
    }
    runner->window.gone_back |= leases.gone_back;
    runner->window.lapse_ms = TW_NEVER; /* until the next look */
    runner->must_look |= leases.gone_back || leases.lapses.count > 0;
    runner->lapses = leases.lapses;
    tell_of_lapses(runner);
    return 0;
}

/* After a restore the run counts itself anew: the file may have tasks that this run had claimed once, and they
 * would count as leased. If the lock is gone, another run may have begun meanwhile, and this one is lost. */
static int count_anew(struct tw__store_runner *runner)
{
    struct tw__store_window *window = &runner->window;
    struct tw__store_count count = {.table = &runner->table};
    if (!window->gone_back)
        return 0;
    if (!has_files(runner))
        return runner->lost;
    int error = commit(runner, tw__store_count_run, &count, true);
    if (error != 0) {
        tw__store_jobs_free(count.lapses.died);
        return error;
    }
    runner->lapses = count.lapses;
    runner->until_ms = count.until_ms;
    tell_of_lapses(runner);
    if (!has_files(runner)) /* the commit may have waited long */
        return runner->lost;
    window->seen.run = count.seen.run;
    window->gone_back = false;
    pthread_mutex_lock(&runner->check.lock); /* a worker may be looking a job up */
    tw__store_count_jobs(&runner->table, count.seen.run);
    pthread_mutex_unlock(&runner->check.lock);
    runner->must_look = true; /* the attempts that have ended left tasks to be called */
    return 0;
}

/* Until when the run wants to be alive, if the file has to be told now: each third of that time, and after a
 * step of the clock. 0: it has not. */
static uint64_t next_until(const struct tw__store_runner *runner, uint64_t now_ms)
{
    uint64_t left_ms = runner->until_ms > now_ms ? runner->until_ms - now_ms : 0;
    bool good = left_ms > TW__STORE_RENEW_MS && left_ms <= TW__STORE_ALIVE_MS;
    return good ? 0 : now_ms + TW__STORE_ALIVE_MS;
}

/* Goes round once. If the file cannot be looked at, the answers are written all the same, unless the run is
 * lost. Returns whether there was anything to do, and no error. */
static bool go_round(struct tw__store_runner *runner)
{
    struct tw__store_batch *batch = &runner->batch;
    uint64_t now_ms = tw_store_now();
    char message[TW_STORE_MESSAGE_SIZE];
    if (!has_files(runner))
        return false;
    bool seen = mend_order(runner, now_ms) == 0 && look_at_file(runner, now_ms) == 0 &&
                count_anew(runner) == 0 && end_leases(runner, now_ms) == 0;
    if (runner->lost != 0)
        return false;
    tw__store_pace_take_back(&runner->pace, &runner->pool);
    take_answers(runner);
    take_claims(runner, seen);
    batch->until_ms = next_until(runner, now_ms);
    bool renews = batch->until_ms > 0 && runner->stats.jobs > 0;
    if (batch->answered == NULL && batch->n == 0 && !renews)
        return seen && runner->must_look;
    uint64_t most = runner->options.max_bytes;
    batch->room = most > runner->bytes ? most - runner->bytes : 0;
    batch->idle = runner->stats.jobs == 0;
    batch->now_ms = tw_store_now(); /* not before an answer came: its retry and its death count from then */
    batch->gone_back = false;
    int error = tw__store_commit(runner->store, tw__store_claim, batch, false);
    if (error == 0) {
        bool there = has_files(runner); /* else the workers give the new jobs back: the run stops */
        return settle_batch(runner) && seen && there;
    }
    if (!batch->gone_back)
        note_failed_claims(runner, error);
    take_back_batch(runner);
    runner->window.gone_back |= batch->gone_back; /* whatever others write before the next look */
    if (batch->gone_back && seen) { /* the next round looks, whatever SQLite says, and counts anew */
        runner->must_look = true;
        return true;
    }
    tw_store_message(runner->store, message, sizeof message);
    fail(runner, error, message);
    return false;
}

/* ---- the thread ------------------------------------------------------------------------------------------ */

/* How many jobs have given no answer. */
static uint64_t missing_answers(const struct tw__store_runner *runner)
{
    uint64_t missing = runner->stats.jobs;
    for (const struct tw__store_job *job = runner->answered; job != NULL; job = job->next)
        missing--;
    return missing;
}

/* Returns whether the run is over: it was stopped, and no answer is missing or can be written. */
static bool is_over(struct tw__store_runner *runner)
{
    if (!atomic_load(&runner->pool.stopping))
        return false;
    take_answers(runner);
    bool all = missing_answers(runner) == 0;
    if (all && !runner->last_try) { /* also if the try before has failed */
        runner->last_try = true;
        runner->retry_ns = 0;
        return runner->stats.jobs == 0;
    }
    return all && (runner->stats.jobs == 0 || runner->result != 0);
}

/* When something has to be done, by the system's clock. */
static uint64_t next_round(const struct tw__store_runner *runner)
{
    uint64_t next_ms = tw__store_window_next(&runner->window);
    uint64_t renew_ms = runner->stats.jobs > 0 ? runner->until_ms - TW__STORE_RENEW_MS : TW_NEVER;
    return renew_ms < next_ms ? renew_ms : next_ms;
}

static void wait(struct tw__store_runner *runner)
{
    bool good = runner->result == 0, ends = atomic_load(&runner->pool.stopping);
    uint64_t until_ms = good ? next_round(runner) : TW_STORE_TIME_MAX;
    uint64_t until_ns = good ? tw__store_pace_next(&runner->pool) : runner->retry_ns;
    pthread_mutex_lock(&runner->lock);
    runner->stats.loaded = runner->window.loaded;
    pthread_mutex_unlock(&runner->lock);
    /* After an error answers wait for the next try, but a run that ends takes the last of them at once. */
    if (ends && missing_answers(runner) == 0) /* the last one came in this round: is_over() decides at once */
        return;
    enum tw__store_more more = !good || !runner->pace.more_ready ? TW__STORE_NO_MORE
                               : runner->pace.ahead > 0          ? TW__STORE_MORE_AHEAD
                                                                 : TW__STORE_MORE_FOR_WORKERS;
    if (tw__store_pool_sleep(&runner->pool, good || ends, more))
        tw__store_watch_wait(&runner->watch, until_ms, until_ns, good);
    tw__store_pool_awake(&runner->pool);
}

void *tw__store_runner_main(void *arg)
{
    struct tw__store_runner *runner = arg;
    if (!stand_by(runner))
        return NULL;
    tell_of_lapses(runner);
    while (!is_over(runner)) {
        bool put_off = runner->result != 0 && tw__store_monotonic() < runner->retry_ns;
        bool idle = put_off || !go_round(runner);
        if (!put_off)
            note_mending(runner);
        if (idle && !runner->last_try)
            wait(runner);
    }
    tw__store_jobs_free(runner->answered); /* their answers could not be written */
    return NULL;
}
