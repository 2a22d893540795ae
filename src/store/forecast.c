/* SPDX-License-Identifier: MIT
 *
 * The forecast. The index of the order counts every task that waits once, without looking at its row. The
 * further calls of repeating tasks are counted by division, step by step: a task that repeats each millisecond
 * for a year costs no more than one that repeats each day. These tasks have an index of their own.
 *
 * A task whose place lies ahead waits. Only if the clock has gone back, it may be leased, or ready because it
 * was filed late. Then each row is looked at, which takes twenty times as long. Whether that has to be is seen
 * from the leased tasks, which are few, and from the latest time at which a task was filed.
 */
#include <base/assert.h>
#include <base/saturate.h>
#include <task/limits.h>
#include <task/periods.h>

#include "change.h"
#include "look.h"

#include <stdlib.h>
#include <string.h>

struct outlook {
    const char *queue;
    uint64_t now_ms, step_ms, end_ms;
    uint32_t steps;
    uint64_t *counts;
};

/* A repeating task that waits: its first call, at place_ms, is counted already. */
struct repeat {
    uint64_t due_ms, place_ms, every_ms, further; /* further: calls after the first, UINT64_MAX: no end */
    uint64_t missed_periods; /* for which the first call stands besides its own, if `begun` */
    enum tw_missed missed;
    bool begun; /* there was an attempt, so the first call is not skipped, and its periods are fixed */
};

/* The number of further calls that are due until `to_ms`. */
static uint64_t further_until(const struct repeat *repeat, uint64_t to_ms)
{
    uint64_t calls = to_ms > repeat->due_ms ? (to_ms - repeat->due_ms) / repeat->every_ms : 0;
    return calls < repeat->further ? calls : repeat->further;
}

/* All calls that will have been missed by the first one are one call, which is counted already, unless the task
 * makes up for each. */
static uint64_t last_missed(const struct repeat *repeat)
{
    if (repeat->missed == TW_MISSED_BURST || repeat->due_ms >= repeat->place_ms)
        return repeat->due_ms;
    return repeat->place_ms - (repeat->place_ms - repeat->due_ms) % repeat->every_ms;
}

/* The counter of a task's first call. */
static uint64_t *first_count(const struct outlook *forecast, uint64_t place_ms)
{
    uint64_t ahead_ms = place_ms > forecast->now_ms ? place_ms - forecast->now_ms : 1; /* 5.5, by hand */
    return &forecast->counts[(ahead_ms - 1) / forecast->step_ms];
}

/* The first call, which is counted already, is none if `skip` passes its period over. */
static void skip_first(const struct outlook *forecast, struct repeat *repeat)
{
    --*first_count(forecast, repeat->place_ms);
    repeat->further += repeat->further < UINT64_MAX;
}

/* The first call goes on, as a retry. The next period is behind those for which that call stands. If it has
 * come by then, it gets a call at once, which is not begun. */
static void end_first(const struct outlook *forecast, struct repeat *repeat)
{
    repeat->due_ms = tw__task_due_after(repeat->due_ms, repeat->missed_periods, repeat->every_ms);
    uint64_t next_ms = tw__add_saturating(repeat->due_ms, repeat->every_ms);
    if (repeat->further == 0 || next_ms > repeat->place_ms)
        return;
    repeat->due_ms = next_ms;
    repeat->begun = false;
    repeat->further -= repeat->further < UINT64_MAX;
    ++*first_count(forecast, repeat->place_ms);
}

static void count_repeat(const struct outlook *forecast, struct repeat *repeat)
{
    if (repeat->begun)
        end_first(forecast, repeat);
    uint64_t due_ms = last_missed(repeat);
    if (repeat->missed == TW_MISSED_SKIP && !repeat->begun && due_ms != repeat->due_ms)
        skip_first(forecast, repeat);
    repeat->due_ms = due_ms;
    uint64_t before = 0, to_ms = forecast->now_ms;
    for (uint32_t i = 0; i < forecast->steps; i++) {
        to_ms = tw__add_saturating(to_ms, forecast->step_ms);
        to_ms = to_ms < forecast->end_ms ? to_ms : forecast->end_ms;
        uint64_t until = to_ms < repeat->place_ms ? 0 : further_until(repeat, to_ms);
        forecast->counts[i] += until - before;
        before = until;
    }
}

static int count_repeats(struct tw__store_db *db, const struct outlook *forecast)
{
    int error = 0;
    sqlite3_stmt *rows = tw__store_db_statement(db, TW__STORE_FORECAST_REPEAT, &error);
    if (rows == NULL)
        return error;
    tw__store_bind_text(db, rows, 1, forecast->queue);
    tw__store_bind_number(db, rows, 2, forecast->end_ms);
    tw__store_bind_number(db, rows, 3, forecast->now_ms);
    while (tw__store_db_next(db, rows, "forecast", &error)) {
        uint64_t times = (uint64_t)sqlite3_column_int64(rows, 2);
        if (sqlite3_column_int64(rows, 1) <= 0)
            continue; /* 5.5, by hand */
        count_repeat(forecast, &(struct repeat){.due_ms = (uint64_t)sqlite3_column_int64(rows, 0),
                                                .place_ms = (uint64_t)sqlite3_column_int64(rows, 4),
                                                .every_ms = (uint64_t)sqlite3_column_int64(rows, 1),
                                                .further = times == 0 ? UINT64_MAX : times - 1,
                                                .missed_periods = (uint64_t)sqlite3_column_int64(rows, 6),
                                                .missed = tw__store_read_missed(rows, 3),
                                                .begun = sqlite3_column_int64(rows, 5) > 0});
    }
    return error;
}

/* Finds out whether a ready or leased task may have a place ahead, once in a transaction: later in it there are
 * no more of them. */
static int find_ahead(struct tw__store_db *db, uint64_t now_ms)
{
    int error = 0;
    if (db->ahead != TW__STORE_AHEAD_UNKNOWN)
        return 0;
    db->ahead = db->clock_ms > now_ms ? TW__STORE_AHEAD_SOME : TW__STORE_AHEAD_NONE;
    sqlite3_stmt *row = tw__store_db_statement(db, TW__STORE_LEASED_AHEAD, &error);
    if (row == NULL)
        return error;
    tw__store_bind_number(db, row, 1, now_ms);
    while (tw__store_db_next(db, row, "forecast", &error))
        db->ahead = sqlite3_column_int(row, 0) != 0 ? TW__STORE_AHEAD_SOME : db->ahead;
    return error;
}

static int count_tasks(struct tw__store_db *db, const struct outlook *forecast)
{
    int error = find_ahead(db, forecast->now_ms);
    if (error != 0)
        return error;
    bool each = db->ahead == TW__STORE_AHEAD_SOME;
    sqlite3_stmt *rows =
        tw__store_db_statement(db, each ? TW__STORE_FORECAST_EACH : TW__STORE_FORECAST, &error);
    if (rows == NULL)
        return error;
    tw__store_bind_text(db, rows, 1, forecast->queue);
    tw__store_bind_number(db, rows, 2, forecast->end_ms);
    tw__store_bind_number(db, rows, 3, forecast->now_ms);
    while (tw__store_db_next(db, rows, "forecast", &error))
        ++*first_count(forecast, (uint64_t)sqlite3_column_int64(rows, 0));
    return error;
}

static int count_outlook(struct tw__store_db *db, void *arg)
{
    const struct outlook *forecast = arg;
    int error = count_tasks(db, forecast);
    return error == 0 ? count_repeats(db, forecast) : error;
}

static int check_steps(const struct tw_store *store, uint64_t step_ms, uint32_t steps)
{
    char text[TW_STORE_MESSAGE_SIZE];
    struct tw__store_db db = {.message = text, .size = sizeof text};
    struct tw__task_range step = tw__task_range(TW__TASK_IN_STEP), many = tw__task_range(TW__TASK_IN_STEPS);
    int error = tw__store_range_check(&db, "step_ms", step_ms, step.least, step.most);
    if (error == 0)
        error = tw__store_range_check(&db, "steps", steps, many.least, many.most);
    return error == 0 ? 0 : tw__store_failed(store, error, text);
}

int tw_store_forecast(const struct tw_store *store, const char *queue, uint64_t step_ms, uint32_t steps,
                      uint64_t *counts)
{
    TW_ASSERT(counts != NULL);
    int error = check_steps(store, step_ms, steps);
    if (error != 0)
        return error;
    struct outlook forecast = {queue, tw_store_now(), step_ms, 0, steps, calloc(steps, sizeof *counts)};
    uint64_t end_ms = tw__add_saturating(forecast.now_ms, tw__mul_saturating(step_ms, steps));
    forecast.end_ms = end_ms < TW_STORE_TIME_MAX ? end_ms : TW_STORE_TIME_MAX;
    if (forecast.counts == NULL)
        return tw__store_failed(store, TW_ENOMEM, "no memory");
    error = tw__store_look(store, count_outlook, &forecast);
    if (error == 0)
        memcpy(counts, forecast.counts, steps * sizeof *counts);
    free(forecast.counts);
    return error;
}
