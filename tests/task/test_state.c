/* SPDX-License-Identifier: MIT
 *
 * The table of docs/contract.md. A test is named for its sentence, and says in a comment which cells it proves.
 */
#include "tests/support/cmocka.h"
#include "tests/support/random.h"
#include "tests/support/run.h"

#include <task/ends.h>
#include <task/limits.h>
#include <task/state.h>

enum { NOW = 1000, OTHER = 7, TOKEN = 42, LEASE = 300 };

static const struct tw__task_retry RETRY = {.tries = 3, .factor_percent = 200, .first_ms = 100, .max_ms = 1000};

/* The options of a put. */
static struct tw__task once(void)
{
    return (struct tw__task){.times = 1, .max_late_ms = TW_FOREVER, .retry = RETRY};
}

static struct tw__task series(void)
{
    struct tw__task task = once();
    task.every_ms = 100;
    task.times = TW_FOREVER;
    return task;
}

/* A task of these options, in a stage. */
static struct tw__task at(enum tw__task_stage stage, struct tw__task options, uint64_t due_ms)
{
    struct tw__task task = options;
    task.stage = stage;
    task.due_ms = task.next_ms = due_ms;
    if (!tw__task_is_leased(&task))
        return task;
    task.token = TOKEN;
    task.end_ms = NOW + 200;
    task.lease_ms = LEASE;
    if (stage == TW__TASK_TAKEN)
        task.attempt = 1;
    else
        task.old_attempt = 1;
    return task;
}

static struct tw__task_outcome change(struct tw__task task, struct tw__task_call call)
{
    struct tw__task_outcome outcome;
    tw__task_change(&task, &call, NOW, &outcome);
    return outcome;
}

static struct tw__task_outcome put(struct tw__task task, unsigned conditions, uint64_t due_ms,
                                   struct tw__task options)
{
    return change(task,
                  (struct tw__task_call){
                      .verb = TW__TASK_PUT, .conditions = conditions, .at_ms = due_ms, .options = &options});
}

static struct tw__task_outcome answer_with(struct tw__task task, enum tw__task_verb verb)
{
    return change(task, (struct tw__task_call){.verb = verb, .token = TOKEN, .lease_ms = LEASE});
}

static void expect_filed(const struct tw__task_outcome *outcome, uint64_t due_ms, uint64_t next_ms,
                         uint32_t attempt)
{
    assert_int_equal(outcome->task.stage, TW__TASK_FILED);
    assert_int_equal(outcome->task.due_ms, due_ms);
    assert_int_equal(outcome->task.next_ms, next_ms);
    assert_int_equal(outcome->task.attempt, attempt);
}

static void expect_behind(const struct tw__task_outcome *outcome, uint64_t due_ms)
{
    assert_int_equal(outcome->reply, TW__TASK_YES);
    assert_int_equal(outcome->task.stage, TW__TASK_REPLACED);
    assert_int_equal(outcome->task.due_ms, due_ms);
    assert_int_equal(outcome->task.attempt, 0);
    assert_int_equal(outcome->task.old_attempt, 1);
    assert_int_equal(outcome->task.token, TOKEN);
    assert_int_equal(outcome->task.end_ms, NOW + 200);
    assert_int_equal(outcome->task.lease_ms, LEASE);
    assert_false(outcome->clears_worker);
}

/* ---- put, move, cancel ----------------------------------------------------------------------------------- */

/* put.1, put.3, put.4, put.5 */
static void a_put_files_replaces_or_stands_behind(void **state)
{
    struct tw__task_outcome outcome = put((struct tw__task){0}, 0, 500, once());
    (void)state;
    assert_int_equal(outcome.reply, TW__TASK_YES);
    assert_int_equal(outcome.tally.replaced, 0);
    expect_filed(&outcome, 500, 500, 0);
    for (int stage = TW__TASK_FILED; stage <= TW__TASK_REPLACED; stage++) {
        outcome = put(at((enum tw__task_stage)stage, once(), 400), 0, 500, once());
        assert_int_equal(outcome.tally.replaced, 1);
        assert_true(outcome.renewed);
        if (stage == TW__TASK_TAKEN || stage == TW__TASK_REPLACED)
            expect_behind(&outcome, 500);
        else
            expect_filed(&outcome, 500, 500, 0);
    }
}

/* put.2, put.6 to put.10 */
static void conditions_hold_in_each_state(void **state)
{
    (void)state;
    assert_int_equal(put((struct tw__task){0}, TW__TASK_XX, 500, once()).reply, TW__TASK_NO);
    for (int stage = TW__TASK_FILED; stage <= TW__TASK_REPLACED; stage++) {
        struct tw__task task = at((enum tw__task_stage)stage, once(), 400);
        assert_int_equal(put(task, TW__TASK_NX, 500, once()).reply, TW__TASK_NO);
        assert_int_equal(put(task, TW__TASK_NX, 500, once()).task.stage, stage);
        assert_int_equal(put(task, TW__TASK_GT, 400, once()).reply, TW__TASK_NO);
        assert_int_equal(put(task, TW__TASK_GT, 401, once()).reply, TW__TASK_YES);
        assert_int_equal(put(task, TW__TASK_LT, 400, once()).reply, TW__TASK_NO);
        assert_int_equal(put(task, TW__TASK_LT, 399, once()).reply, TW__TASK_YES);
    }
}

static void expect_options(const struct tw__task *task, const struct tw__task *options)
{
    assert_int_equal(task->has_target, options->has_target);
    assert_int_equal(task->every_ms, options->every_ms);
    assert_int_equal(task->times, options->times);
    assert_int_equal(task->missed, options->missed);
    assert_int_equal(task->max_late_ms, options->max_late_ms);
    assert_int_equal(task->retry.tries, options->retry.tries);
    assert_int_equal(task->retry.first_ms, options->retry.first_ms);
}

/* keep.1 to keep.3 */
static void keepdue_keeps_the_times_of_a_filed_task(void **state)
{
    struct tw__task task = at(TW__TASK_FILED, series(), 400), other = series();
    (void)state;
    task.next_ms = 450;
    task.attempt = 2;
    task.lapses = 1;
    task.token = TOKEN;
    other = (struct tw__task){.has_target = true, .every_ms = 70, .times = 5, .missed = TW_MISSED_SKIP};
    other.max_late_ms = 9;
    other.retry = (struct tw__task_retry){.tries = 8, .factor_percent = 100, .first_ms = 7, .max_ms = 7};
    struct tw__task_outcome outcome = put(task, TW__TASK_KEEPDUE, 5000, other);
    expect_filed(&outcome, 400, 450, 2);
    expect_options(&outcome.task, &other);
    assert_int_equal(outcome.task.token, TOKEN);
    assert_false(outcome.filed);
    outcome = change(task, (struct tw__task_call){.verb = TW__TASK_PUT,
                                                  .conditions = TW__TASK_KEEPDUE,
                                                  .elsewhere = true,
                                                  .at_ms = 5000,
                                                  .options = &other});
    expect_filed(&outcome, 400, 450, 0);
    expect_options(&outcome.task, &other);
    assert_int_equal(outcome.task.token, 0);
    assert_true(outcome.filed);
    outcome = put(at(TW__TASK_BURIED, once(), 400), TW__TASK_KEEPDUE, 5000, other);
    expect_filed(&outcome, 5000, 5000, 0);
    outcome = put((struct tw__task){0}, TW__TASK_KEEPDUE, 5000, other);
    expect_filed(&outcome, 5000, 5000, 0);
}

/* keep.4 to keep.7 */
static void keepdue_lets_the_attempt_of_a_series_go_on(void **state)
{
    struct tw__task_outcome outcome = put(at(TW__TASK_TAKEN, series(), 400), TW__TASK_KEEPDUE, 5000, series());
    (void)state;
    assert_int_equal(outcome.task.stage, TW__TASK_TAKEN);
    assert_int_equal(outcome.task.attempt, 1);
    assert_int_equal(outcome.task.due_ms, 400);
    struct tw__task late = at(TW__TASK_TAKEN, series(), 400), longer = series();
    late.missed_periods = 10;
    longer.every_ms = 4 * late.every_ms;
    assert_int_equal(put(late, TW__TASK_KEEPDUE, 5000, series()).task.missed_periods, 10);
    assert_int_equal(put(late, TW__TASK_KEEPDUE, 5000, longer).task.missed_periods, 2);
    outcome = put(at(TW__TASK_TAKEN, once(), 400), TW__TASK_KEEPDUE, 5000, series());
    expect_behind(&outcome, NOW);
    outcome = put(at(TW__TASK_TAKEN, series(), 400), TW__TASK_KEEPDUE, 5000, once());
    expect_behind(&outcome, NOW);
    outcome = put(at(TW__TASK_REPLACED, once(), 400), TW__TASK_KEEPDUE, 5000, series());
    expect_behind(&outcome, 400);
    struct tw__task other = series();
    outcome = change(at(TW__TASK_TAKEN, series(), 400), (struct tw__task_call){.verb = TW__TASK_PUT,
                                                                               .conditions = TW__TASK_KEEPDUE,
                                                                               .elsewhere = true,
                                                                               .at_ms = 5000,
                                                                               .options = &other});
    expect_behind(&outcome, 500);
    outcome = change(at(TW__TASK_TAKEN, series(), TW__TASK_TIME_MAX - 99),
                     (struct tw__task_call){.verb = TW__TASK_PUT,
                                            .conditions = TW__TASK_KEEPDUE,
                                            .elsewhere = true,
                                            .at_ms = 5000,
                                            .options = &other});
    expect_behind(&outcome, 5000); /* the stored series has no further period */
    outcome =
        change(at(TW__TASK_REPLACED, series(), 400), (struct tw__task_call){.verb = TW__TASK_PUT,
                                                                            .conditions = TW__TASK_KEEPDUE,
                                                                            .elsewhere = true,
                                                                            .at_ms = 5000,
                                                                            .options = &other});
    expect_behind(&outcome, 400);
}

/* keep.8, keep.9 */
static void keepdue_goes_with_nx_and_xx(void **state)
{
    struct tw__task_outcome outcome = put((struct tw__task){0}, TW__TASK_KEEPDUE | TW__TASK_NX, 5000, series());
    (void)state;
    expect_filed(&outcome, 5000, 5000, 0);
    assert_int_equal(put((struct tw__task){0}, TW__TASK_KEEPDUE | TW__TASK_XX, 5000, series()).reply,
                     TW__TASK_NO);
    for (int stage = TW__TASK_FILED; stage <= TW__TASK_REPLACED; stage++) {
        struct tw__task task = at((enum tw__task_stage)stage, series(), 400);
        assert_int_equal(put(task, TW__TASK_KEEPDUE | TW__TASK_NX, 5000, series()).reply, TW__TASK_NO);
        outcome = put(task, TW__TASK_KEEPDUE | TW__TASK_XX, 5000, series());
        assert_int_equal(outcome.reply, TW__TASK_YES);
        assert_int_equal(outcome.task.due_ms, stage == TW__TASK_BURIED ? 5000 : 400);
    }
}

/* move.1 to move.6 */
static void a_move_begins_with_attempt_0(void **state)
{
    struct tw__task_call call = {.verb = TW__TASK_MOVE, .at_ms = 600};
    struct tw__task task = at(TW__TASK_FILED, series(), 400);
    (void)state;
    task.attempt = 2;
    task.lapses = 1;
    task.missed_periods = 3;
    struct tw__task_outcome outcome = change(task, call);
    expect_filed(&outcome, 600, 600, 0);
    assert_int_equal(outcome.task.lapses, 0);
    assert_int_equal(outcome.task.missed_periods, 0);
    assert_true(outcome.clears_error);
    assert_false(outcome.renewed);
    assert_int_equal(change((struct tw__task){0}, call).reply, TW__TASK_MISSING);
    assert_int_equal(change(at(TW__TASK_BURIED, once(), 400), call).reply, TW__TASK_IS_DEAD);
    outcome = change(at(TW__TASK_TAKEN, once(), 400), call);
    expect_behind(&outcome, 600);
    outcome = change(at(TW__TASK_REPLACED, once(), 400), call);
    expect_behind(&outcome, 600);
    call.conditions = TW__TASK_LT;
    assert_int_equal(change(task, call).reply, TW__TASK_NO);
}

/* cancel.1 to cancel.4 */
static void a_cancel_tells_whether_work_may_happen(void **state)
{
    static const enum tw__task_reply replies[] = {TW__TASK_MISSING, TW__TASK_CANCELLED, TW__TASK_AT_WORK,
                                                  TW__TASK_CANCELLED, TW__TASK_AT_WORK};
    (void)state;
    for (int stage = TW__TASK_NONE; stage <= TW__TASK_REPLACED; stage++) {
        struct tw__task_outcome outcome = change(at((enum tw__task_stage)stage, once(), 400),
                                                 (struct tw__task_call){.verb = TW__TASK_CANCEL});
        assert_int_equal(outcome.reply, replies[stage]);
        assert_int_equal(outcome.task.stage, TW__TASK_NONE);
    }
}

/* ---- attempts -------------------------------------------------------------------------------------------- */

/* take.1, take.5, take.6 */
static void a_take_begins_an_attempt(void **state)
{
    struct tw__task_outcome outcome = answer_with(at(TW__TASK_FILED, once(), NOW), TW__TASK_TAKE);
    struct tw__task to_target = at(TW__TASK_FILED, once(), 400);
    (void)state;
    assert_int_equal(outcome.reply, TW__TASK_YES);
    assert_int_equal(outcome.task.stage, TW__TASK_TAKEN);
    assert_int_equal(outcome.task.attempt, 1);
    assert_int_equal(outcome.task.next_ms, NOW);
    assert_int_equal(tw__task_next(&outcome.task), NOW + LEASE);
    assert_int_equal(answer_with(at(TW__TASK_FILED, once(), NOW + 1), TW__TASK_TAKE).reply, TW__TASK_NO);
    to_target.has_target = true;
    assert_int_equal(answer_with(to_target, TW__TASK_TAKE).reply, TW__TASK_NO);
    assert_int_equal(answer_with(at(TW__TASK_TAKEN, once(), 400), TW__TASK_TAKE).reply, TW__TASK_NO);
    assert_int_equal(answer_with(at(TW__TASK_BURIED, once(), 400), TW__TASK_TAKE).reply, TW__TASK_NO);
}

/* take.2, take.3 */
static void a_take_drops_and_skips(void **state)
{
    struct tw__task late = at(TW__TASK_FILED, once(), 400), skips = at(TW__TASK_FILED, series(), 400);
    (void)state;
    late.max_late_ms = 599;
    struct tw__task_outcome outcome = answer_with(late, TW__TASK_TAKE);
    assert_int_equal(outcome.reply, TW__TASK_LATE);
    assert_int_equal(outcome.task.stage, TW__TASK_NONE);
    assert_int_equal(outcome.tally.dropped, 1);
    late.attempt = 1; /* a retry is never too late */
    assert_int_equal(answer_with(late, TW__TASK_TAKE).reply, TW__TASK_YES);
    skips.missed = TW_MISSED_SKIP;
    outcome = answer_with(skips, TW__TASK_TAKE);
    assert_int_equal(outcome.reply, TW__TASK_LATE);
    assert_int_equal(outcome.tally.skipped, 7);
    expect_filed(&outcome, 1100, 1100, 0);
}

/* A call that stands for missed periods counts once for `times`, and the series goes on behind them. */
static void a_coalesced_call_is_the_same_in_each_attempt(void **state)
{
    struct tw__task task = at(TW__TASK_FILED, series(), 400);
    (void)state;
    task.times = 2;
    struct tw__task_outcome taken = answer_with(task, TW__TASK_TAKE);
    assert_int_equal(taken.task.due_ms, 400);
    assert_int_equal(taken.task.missed_periods, 6);
    struct tw__task_outcome failed = answer_with(taken.task, TW__TASK_FAILED);
    assert_int_equal(failed.task.missed_periods, 6);
    struct tw__task_outcome done = answer_with(taken.task, TW__TASK_DONE);
    expect_filed(&done, 1100, 1100, 0);
    assert_int_equal(done.task.times, 1);
    assert_int_equal(done.tally.coalesced, 6);
    struct tw__task_outcome back = answer_with(taken.task, TW__TASK_BACK);
    assert_int_equal(back.task.missed_periods, 0);
    assert_int_equal(back.tally.coalesced, 0);
    struct tw__task_outcome moved =
        change(taken.task, (struct tw__task_call){.verb = TW__TASK_MOVE, .at_ms = 5000});
    assert_int_equal(moved.task.stage, TW__TASK_REPLACED);
    assert_int_equal(answer_with(moved.task, TW__TASK_DONE).tally.coalesced, 0);
}

static void a_series_without_end_has_no_last_call(void **state)
{
    (void)state;
    assert_int_equal(tw__task_calls_left(0, 1), 0);
    assert_int_equal(tw__task_calls_left(0, TW_FOREVER), 0); /* it does not repeat */
    assert_int_equal(tw__task_calls_left(100, 1), 0);
    assert_int_equal(tw__task_calls_left(100, 3), 2);
    assert_int_equal(tw__task_calls_left(100, TW_FOREVER), TW_FOREVER);
}

/* touch.1, touch.2, done.1 to done.3, done.5, fail.4, dead.4, back.4 */
static void done_ends_the_call(void **state)
{
    struct tw__task_outcome outcome = answer_with(at(TW__TASK_TAKEN, once(), 400), TW__TASK_TOUCH);
    (void)state;
    assert_int_equal(outcome.value_ms, NOW + LEASE);
    outcome = answer_with(at(TW__TASK_TAKEN, once(), 400), TW__TASK_DONE);
    assert_int_equal(outcome.reply, TW__TASK_YES);
    assert_int_equal(outcome.task.stage, TW__TASK_NONE);
    outcome = answer_with(at(TW__TASK_TAKEN, series(), 950), TW__TASK_DONE);
    expect_filed(&outcome, 1050, 1050, 0);
    outcome = answer_with(at(TW__TASK_REPLACED, once(), 400), TW__TASK_DONE);
    expect_filed(&outcome, 400, NOW, 0);
    assert_int_equal(outcome.tally.done, 1);
    struct tw__task_call no_token = {.verb = TW__TASK_DONE};
    assert_int_equal(change(at(TW__TASK_FILED, once(), 400), no_token).reply, TW__TASK_NO);
    for (int verb = TW__TASK_TOUCH; verb <= TW__TASK_BACK; verb++) {
        outcome = change(at(TW__TASK_TAKEN, once(), 400),
                         (struct tw__task_call){.verb = (enum tw__task_verb)verb, .token = OTHER});
        assert_int_equal(outcome.reply, TW__TASK_NO);
        assert_int_equal(outcome.task.stage, TW__TASK_TAKEN);
    }
}

/* fail.1 to fail.3, dead.1 to dead.3 */
static void a_failure_is_a_retry_or_a_death(void **state)
{
    struct tw__task task = at(TW__TASK_TAKEN, once(), 400);
    (void)state;
    task.attempt = 2;
    struct tw__task_outcome outcome = answer_with(task, TW__TASK_FAILED);
    expect_filed(&outcome, 400, NOW + 200, 2);
    assert_int_equal(outcome.value_ms, NOW + 200);
    assert_int_equal(outcome.task.token, 0);
    assert_true(outcome.fails);
    task.attempt = 3;
    outcome = answer_with(task, TW__TASK_FAILED);
    assert_int_equal(outcome.reply, TW__TASK_DIED);
    assert_int_equal(outcome.task.stage, TW__TASK_BURIED);
    task.lapses = 1; /* it does not count as a failure */
    assert_int_equal(answer_with(task, TW__TASK_FAILED).reply, TW__TASK_YES);
    outcome = answer_with(at(TW__TASK_TAKEN, series(), 950), TW__TASK_DEAD);
    assert_int_equal(outcome.dead.stage, TW__TASK_BURIED);
    assert_int_equal(outcome.dead.due_ms, 950);
    assert_int_equal(outcome.dead.every_ms, 0);
    expect_filed(&outcome, 1050, 1050, 0);
    outcome = answer_with(at(TW__TASK_REPLACED, once(), 2000), TW__TASK_DEAD);
    expect_filed(&outcome, 2000, 2000, 0);
    assert_int_equal(outcome.tally.failed, 1);
    assert_int_equal(outcome.tally.died, 0);
}

/* The last period of a series leaves a dead period too. */
static void the_last_period_that_dies_is_a_task_of_its_own(void **state)
{
    struct tw__task task = at(TW__TASK_TAKEN, series(), 950);
    (void)state;
    task.times = 1;
    struct tw__task_outcome outcome = answer_with(task, TW__TASK_DEAD);
    assert_int_equal(outcome.dead.stage, TW__TASK_BURIED);
    assert_int_equal(outcome.task.stage, TW__TASK_NONE);
}

static void a_period_behind_the_last_time_ends_the_series(void **state)
{
    struct tw__task task = at(TW__TASK_TAKEN, series(), TW__TASK_TIME_MAX - 99);
    (void)state;
    assert_int_equal(answer_with(task, TW__TASK_DONE).task.stage, TW__TASK_NONE);
    task.due_ms--;
    assert_int_equal(answer_with(task, TW__TASK_DONE).task.due_ms, TW__TASK_TIME_MAX);
}

/* back.1 to back.3 */
static void a_given_back_task_is_as_before_the_take(void **state)
{
    struct tw__task task = at(TW__TASK_TAKEN, once(), 400);
    (void)state;
    task.attempt = 2;
    task.next_ms = 700;
    struct tw__task_outcome outcome = answer_with(task, TW__TASK_BACK);
    expect_filed(&outcome, 400, 700, 1);
    assert_false(outcome.filed);
    assert_false(outcome.fails);
    task.next_ms = NOW + 700; /* the clock was set back since the take */
    outcome = answer_with(task, TW__TASK_BACK);
    expect_filed(&outcome, 400, NOW, 1);
    assert_true(outcome.value_ms == NOW && !outcome.filed);
    outcome = change(
        task, (struct tw__task_call){.verb = TW__TASK_BACK, .token = TOKEN, .timed = true, .at_ms = 3000});
    expect_filed(&outcome, 400, 3000, 1);
    assert_true(outcome.filed);
    outcome = answer_with(at(TW__TASK_REPLACED, once(), 2000), TW__TASK_BACK);
    expect_filed(&outcome, 2000, 2000, 0);
    assert_int_equal(outcome.value_ms, 2000);
}

/* A program with plain SQL can write more lapses than attempts. */
static void a_failure_is_the_first_one_at_least(void **state)
{
    (void)state;
    assert_int_equal(tw__task_failure(5, 2), 3);
    assert_int_equal(tw__task_failure(2, 5), 1);
    assert_false(tw__task_failure_kills(2, 5, 2));
    assert_true(tw__task_failure_kills(2, 5, 1));
    struct tw__task task = at(TW__TASK_TAKEN, once(), 400);
    task.attempt = 3;
    task.lapses = 5;
    struct tw__task_outcome outcome = answer_with(task, TW__TASK_FAILED);
    expect_filed(&outcome, 400, NOW + 100, 3);
}

/* lapse.1 to lapse.3, done.4 */
static void the_seventeenth_lapse_kills(void **state)
{
    struct tw__task task = at(TW__TASK_TAKEN, once(), 400);
    (void)state;
    task.end_ms = 900;
    for (uint32_t lapses = 0; lapses < TW__TASK_LAPSES_MAX; lapses++) {
        task.attempt = lapses + 1;
        task.lapses = lapses;
        struct tw__task_outcome outcome = answer_with(task, TW__TASK_LAPSE);
        expect_filed(&outcome, 400, 1000, lapses + 1);
        assert_int_equal(outcome.filed_ms, 900);
        for (int verb = TW__TASK_TOUCH; verb <= TW__TASK_BACK; verb++) /* the token that is left is for done */
            if (verb != TW__TASK_DONE)
                assert_int_equal(answer_with(outcome.task, (enum tw__task_verb)verb).reply, TW__TASK_NO);
        outcome = answer_with(outcome.task, TW__TASK_DONE);
        assert_int_equal(outcome.reply, TW__TASK_YES);
        assert_int_equal(outcome.task.stage, TW__TASK_NONE);
    }
    task.attempt++;
    task.lapses++;
    assert_int_equal(answer_with(task, TW__TASK_LAPSE).reply, TW__TASK_DIED);
    task = at(TW__TASK_REPLACED, once(), 400);
    task.end_ms = 900;
    struct tw__task_outcome outcome = answer_with(task, TW__TASK_LAPSE);
    expect_filed(&outcome, 400, 900, 0);
    assert_int_equal(answer_with(outcome.task, TW__TASK_DONE).reply, TW__TASK_NO);
}

static void a_look_tells_the_state_and_the_next_time(void **state)
{
    struct tw__task filed = at(TW__TASK_FILED, once(), NOW), taken = at(TW__TASK_TAKEN, once(), 400),
                    dead = at(TW__TASK_BURIED, once(), 400);
    (void)state;
    assert_int_equal(tw__task_state(&filed, NOW - 1), TW_STATE_WAITING);
    assert_int_equal(tw__task_state(&filed, NOW), TW_STATE_READY);
    assert_int_equal(tw__task_state(&taken, NOW), TW_STATE_LEASED);
    assert_int_equal(tw__task_state(&dead, NOW), TW_STATE_DEAD);
    assert_int_equal(tw__task_next(&filed), NOW);
    assert_int_equal(tw__task_next(&taken), NOW + 200);
    assert_int_equal(tw__task_next(&dead), 0);
    assert_false(tw__task_has_lapsed(&filed, NOW));
}

/* A run takes without a length: its lease lasts as long as the run. */
static void a_lease_without_a_length_ends_with_its_run(void **state)
{
    struct tw__task_call take = {.verb = TW__TASK_TAKE, .token = TOKEN};
    struct tw__task_outcome outcome = change(at(TW__TASK_FILED, once(), 400), take);
    (void)state;
    assert_int_equal(outcome.task.end_ms, TW_FOREVER);
    assert_false(tw__task_has_lapsed(&outcome.task, TW__TASK_TIME_MAX));
    outcome = answer_with(outcome.task, TW__TASK_LAPSE);
    expect_filed(&outcome, 400, NOW + 100, 1);
    assert_int_equal(outcome.filed_ms, NOW);
}

static void a_lease_has_lapsed_at_its_last_millisecond(void **state)
{
    struct tw__task task = at(TW__TASK_TAKEN, once(), 400);
    (void)state;
    assert_false(tw__task_has_lapsed(&task, task.end_ms - 1));
    assert_true(tw__task_has_lapsed(&task, task.end_ms));
}

/* ---- targets, people ------------------------------------------------------------------------------------- */

/* promote.2 */
static void a_target_accepts_or_refuses(void **state)
{
    struct tw__task task = at(TW__TASK_FILED, series(), 950);
    (void)state;
    task.has_target = true;
    struct tw__task_outcome outcome = answer_with(task, TW__TASK_DELIVERED);
    expect_filed(&outcome, 1050, 1050, 0);
    assert_int_equal(outcome.tally.delivered, 1);
    struct tw__task_call refusal = {.verb = TW__TASK_REFUSED, .at_ms = 1100};
    outcome = change(task, refusal);
    expect_filed(&outcome, 950, 1100, 1);
    assert_int_equal(tw__task_state(&outcome.task, NOW), TW_STATE_WAITING);
    struct tw__task_outcome promoted = answer_with(outcome.task, TW__TASK_PROMOTE);
    expect_filed(&promoted, 950, NOW, 1);
    outcome = change(outcome.task, refusal);
    outcome = change(outcome.task, refusal);
    assert_int_equal(outcome.dead.stage, TW__TASK_BURIED);
    assert_int_equal(outcome.dead.attempt, 3);
    expect_filed(&outcome, 1050, 1050, 0);
}

/* promote.1, promote.3, replay.1, replay.2, purge.1, purge.2 */
static void people_promote_replay_and_purge(void **state)
{
    struct tw__task task = at(TW__TASK_FILED, once(), 2000), dead = at(TW__TASK_BURIED, once(), 400);
    (void)state;
    task.attempt = 1;
    dead.attempt = 3;
    struct tw__task_outcome outcome = answer_with(task, TW__TASK_PROMOTE);
    expect_filed(&outcome, 2000, NOW, 1);
    assert_int_equal(answer_with(outcome.task, TW__TASK_PROMOTE).reply, TW__TASK_NO);
    outcome = answer_with(dead, TW__TASK_REPLAY);
    expect_filed(&outcome, NOW, NOW, 0);
    assert_int_equal(answer_with(task, TW__TASK_REPLAY).reply, TW__TASK_NO);
    assert_int_equal(answer_with(dead, TW__TASK_PURGE).task.stage, TW__TASK_NONE);
    assert_int_equal(answer_with(task, TW__TASK_PURGE).reply, TW__TASK_NO);
}

/* ---- a walk over all verbs ------------------------------------------------------------------------------- */

/* Whether a task is one that the table can make. */
static void expect_sound(const struct tw__task *task)
{
    bool token = task->token != 0, leased = tw__task_is_leased(task);
    if (task->stage == TW__TASK_NONE)
        return;
    assert_true(task->lapses <= task->attempt);
    assert_true(task->lapses <= TW__TASK_LAPSES_MAX + 1);
    assert_true(task->due_ms <= TW__TASK_TIME_MAX && task->next_ms <= TW__TASK_TIME_MAX);
    assert_true(task->every_ms > 0 || task->times == 1);
    assert_true(task->every_ms > 0 || task->missed_periods == 0 || task->stage == TW__TASK_BURIED);
    assert_true(leased ? token && task->end_ms > 0 : task->end_ms == 0);
    assert_true(token || !leased);
    assert_true((task->old_attempt > 0) == (task->stage == TW__TASK_REPLACED));
    assert_true(task->stage != TW__TASK_REPLACED || task->attempt == 0);
    assert_true(task->stage != TW__TASK_TAKEN || task->attempt > task->lapses);
}

static struct tw__task_call random_call(struct rng *rng, uint64_t now_ms, const struct tw__task *options)
{
    static const unsigned conditions[] = {0,           TW__TASK_NX, TW__TASK_XX,
                                          TW__TASK_GT, TW__TASK_LT, TW__TASK_KEEPDUE};
    enum tw__task_verb verb = (enum tw__task_verb)rng_below(rng, TW__TASK_PURGE + 1);
    unsigned all = verb == TW__TASK_PUT ? 6 : 1;
    return (struct tw__task_call){.verb = verb,
                                  .conditions = conditions[rng_below(rng, all)],
                                  .timed = rng_below(rng, 2) == 0,
                                  .at_ms = now_ms + rng_below(rng, 200),
                                  .token = 1 + rng_below(rng, 3),
                                  .lease_ms = 1 + (uint32_t)rng_below(rng, 100),
                                  .options = options};
}

/* The verbs of targets are for filed tasks with a target, when their time has come. */
static bool may_call(const struct tw__task *task, enum tw__task_verb verb, uint64_t now_ms)
{
    if (verb != TW__TASK_DUE && verb != TW__TASK_DELIVERED && verb != TW__TASK_REFUSED)
        return true;
    return task->stage == TW__TASK_FILED && task->has_target && task->next_ms <= now_ms;
}

static void no_walk_leaves_the_table(void **state)
{
    struct rng rng;
    struct tw__task task = {0};
    uint64_t now_ms = NOW;
    (void)state;
    rng_init(&rng, run_seed());
    for (unsigned i = 0; i < run_scaled(200000); i++) {
        struct tw__task options = rng_below(&rng, 2) == 0 ? once() : series();
        struct tw__task_outcome outcome;
        options.has_target = rng_below(&rng, 4) == 0;
        options.missed = (enum tw_missed)rng_below(&rng, 3);
        options.max_late_ms = rng_below(&rng, 2) == 0 ? TW_FOREVER : 150;
        now_ms += rng_below(&rng, 60);
        struct tw__task_call call = random_call(&rng, now_ms, &options);
        call.elsewhere = options.has_target != task.has_target;
        if (!may_call(&task, call.verb, now_ms))
            continue;
        tw__task_change(&task, &call, now_ms, &outcome);
        expect_sound(&outcome.task);
        expect_sound(&outcome.dead);
        if (outcome.reply == TW__TASK_NO)
            assert_int_equal(outcome.task.stage, task.stage);
        task = outcome.task;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_put_files_replaces_or_stands_behind),
        cmocka_unit_test(conditions_hold_in_each_state),
        cmocka_unit_test(keepdue_keeps_the_times_of_a_filed_task),
        cmocka_unit_test(keepdue_lets_the_attempt_of_a_series_go_on),
        cmocka_unit_test(keepdue_goes_with_nx_and_xx),
        cmocka_unit_test(a_move_begins_with_attempt_0),
        cmocka_unit_test(a_cancel_tells_whether_work_may_happen),
        cmocka_unit_test(a_take_begins_an_attempt),
        cmocka_unit_test(a_take_drops_and_skips),
        cmocka_unit_test(a_coalesced_call_is_the_same_in_each_attempt),
        cmocka_unit_test(a_series_without_end_has_no_last_call),
        cmocka_unit_test(done_ends_the_call),
        cmocka_unit_test(a_failure_is_a_retry_or_a_death),
        cmocka_unit_test(the_last_period_that_dies_is_a_task_of_its_own),
        cmocka_unit_test(a_period_behind_the_last_time_ends_the_series),
        cmocka_unit_test(a_given_back_task_is_as_before_the_take),
        cmocka_unit_test(a_failure_is_the_first_one_at_least),
        cmocka_unit_test(the_seventeenth_lapse_kills),
        cmocka_unit_test(a_look_tells_the_state_and_the_next_time),
        cmocka_unit_test(a_lease_without_a_length_ends_with_its_run),
        cmocka_unit_test(a_lease_has_lapsed_at_its_last_millisecond),
        cmocka_unit_test(a_target_accepts_or_refuses),
        cmocka_unit_test(people_promote_replay_and_purge),
        cmocka_unit_test(no_walk_leaves_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
