/* SPDX-License-Identifier: MIT */
#include "ways.h"

#include <assert.h>
#include <string.h>

bool way_is_one(enum way way)
{
    return way == WAY_APPLY || way == WAY_APPLY_ON || way == WAY_SQL_IN;
}

/* ---- the calls ------------------------------------------------------------------------------------------- */

static int call_one(struct tw_store *store, const struct tw_store_change *change)
{
    const struct tw_store_delayed *task = &change->task;
    enum tw_cancel found = TW_CANCEL_GONE;
    if (change->verb == TW_STORE_VERB_PUT)
        return store_put(store, task, change->conditions);
    if (change->verb == TW_STORE_VERB_MOVE)
        return store_move_at(store, (struct tw_store_name){task->queue, task->id}, task->due_ms,
                             change->conditions);
    int error = tw_store_cancel(store, (struct tw_store_name){task->queue, task->id}, &found);
    return error == 0 ? (int)found : error;
}

static bool is_result(int result)
{
    return result >= 0 || result == TW_EGONE || result == TW_EDEAD;
}

static unsigned go_by_calls(struct tw_store *store, const struct tw_store_change *changes, unsigned n,
                            int *results)
{
    for (unsigned i = 0; i < n; i++) {
        results[i] = call_one(store, &changes[i]);
        if (!is_result(results[i]))
            return i;
    }
    return n;
}

/* ---- the views ------------------------------------------------------------------------------------------- */

/* Returns the statement of a change. It stays with the connection: to prepare it takes longer than to run. */
static sqlite3_stmt *prepare(sqlite3 *db, const struct tw_store_change *change)
{
    static const char *const sql[] = {
        [TW_STORE_VERB_PUT] =
            ("INSERT INTO tw_put(queue, id, due_ms, condition, payload, every_ms, times, missed, tries,"
             " backoff_ms, max_late_ms, factor, backoff_max_ms, jitter)"
             " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14) RETURNING 1"),
        [TW_STORE_VERB_MOVE] =
            "INSERT INTO tw_move(queue, id, due_ms, condition) VALUES (?1, ?2, ?3, ?4) RETURNING 1",
        [TW_STORE_VERB_CANCEL] = "INSERT INTO tw_cancel(queue, id) VALUES (?1, ?2)"};
    sqlite3_stmt *statement = sqlite3_next_stmt(db, NULL);
    while (statement != NULL && strcmp(sqlite3_sql(statement), sql[change->verb]) != 0)
        statement = sqlite3_next_stmt(db, statement);
    if (statement == NULL)
        sqlite3_prepare_v3(db, sql[change->verb], -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL);
    return statement;
}

/* NULL stands for an option that is left out. */
static void bind_waits(sqlite3_stmt *statement, const struct tw_store_delayed *task)
{
    if (task->tries > 0)
        sqlite3_bind_int64(statement, 9, task->tries);
    if (task->backoff_ms > 0)
        sqlite3_bind_int64(statement, 10, (sqlite3_int64)task->backoff_ms);
    if (task->factor_percent > 0)
        sqlite3_bind_double(statement, 12, task->factor_percent / 100.0);
    if (task->backoff_max_ms > 0)
        sqlite3_bind_int64(statement, 13, (sqlite3_int64)task->backoff_max_ms);
    if (task->jitter > 0)
        sqlite3_bind_int64(statement, 14, task->jitter == TW_STORE_NO_JITTER ? 0 : task->jitter);
}

static void bind(sqlite3_stmt *statement, const struct tw_store_change *change)
{
    static const char *const names[] = {[TW_CONDITION_NX] = "NX",
                                        [TW_CONDITION_XX] = "XX",
                                        [TW_CONDITION_GT] = "GT",
                                        [TW_CONDITION_LT] = "LT",
                                        [TW_CONDITION_KEEPDUE] = "KEEPDUE",
                                        [TW_CONDITION_KEEPDUE | TW_CONDITION_NX] = "KEEPDUE NX",
                                        [TW_CONDITION_KEEPDUE | TW_CONDITION_XX] = "KEEPDUE XX"};
    static const char *const policies[] = {"coalesce", "skip", "burst"};
    const struct tw_store_delayed *task = &change->task;
    sqlite3_bind_text(statement, 1, task->queue, -1, SQLITE_STATIC);
    sqlite3_bind_blob64(statement, 2, task->id.data, task->id.size, SQLITE_STATIC);
    if (change->verb == TW_STORE_VERB_CANCEL)
        return;
    sqlite3_bind_int64(statement, 3, (sqlite3_int64)task->due_ms);
    if (change->conditions != 0)
        sqlite3_bind_text(statement, 4, names[change->conditions], -1, SQLITE_STATIC);
    if (change->verb == TW_STORE_VERB_MOVE)
        return;
    sqlite3_bind_blob64(statement, 5, task->payload.data, task->payload.size, SQLITE_STATIC);
    if (task->every_ms > 0) /* NULL stands for none */
        sqlite3_bind_int64(statement, 6, (sqlite3_int64)task->every_ms);
    if (task->every_ms > 0 && task->times > 0 && task->times != TW_FOREVER)
        sqlite3_bind_int64(statement, 7, (sqlite3_int64)task->times);
    if (task->every_ms > 0)
        sqlite3_bind_text(statement, 8, policies[task->missed], -1, SQLITE_STATIC);
    if (task->max_late_ms > 0 && task->max_late_ms != TW_FOREVER)
        sqlite3_bind_int64(statement, 11,
                           task->max_late_ms == TW_STORE_ON_TIME ? 0 : (sqlite3_int64)task->max_late_ms);
    bind_waits(statement, task);
}

/* Returns the result of a change, or TW_EIO if SQLite fails. */
static int run_view(sqlite3 *db, const struct tw_store_change *change)
{
    sqlite3_stmt *statement = prepare(db, change);
    int rows = 0, code;
    if (statement == NULL)
        return TW_EIO;
    bind(statement, change);
    while ((code = sqlite3_step(statement)) == SQLITE_ROW)
        rows++;
    const char *message = sqlite3_errmsg(db);
    int result = change->verb == TW_STORE_VERB_CANCEL ? TW_CANCEL_CANCELLED : rows;
    if (code != SQLITE_DONE)
        result = strstr(message, "no such task") != NULL       ? TW_EGONE
                 : strstr(message, "the task is dead") != NULL ? TW_EDEAD
                                                               : TW_EIO;
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return result;
}

static unsigned go_by_views(sqlite3 *db, const struct tw_store_change *changes, unsigned n, int *results)
{
    for (unsigned i = 0; i < n; i++) {
        results[i] = run_view(db, &changes[i]);
        if (!is_result(results[i]))
            return i;
    }
    return n;
}

/* ---- one transaction ------------------------------------------------------------------------------------- */

static bool do_sql(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

static unsigned go_in_transaction(enum way way, sqlite3 *db, struct tw_store_change *changes, unsigned n,
                                  int *results, bool back)
{
    unsigned made = 0;
    if (!do_sql(db, "BEGIN IMMEDIATE"))
        return 0;
    if (way == WAY_SQL_IN)
        made = go_by_views(db, changes, n, results);
    else if (tw_store_apply_on(db, NULL, changes, n, NULL, 0) == 0)
        made = n;
    for (unsigned i = 0; i < made && way == WAY_APPLY_ON; i++)
        results[i] = outcome_of(&changes[i]);
    if (made == n && !back && do_sql(db, "COMMIT"))
        return n;
    if (!sqlite3_get_autocommit(db))
        do_sql(db, "ROLLBACK");
    return back ? made : 0;
}

unsigned way_go(enum way way, struct tw_store *store, sqlite3 *db, const struct ledger_change *changes,
                unsigned n, int *results, bool back)
{
    struct tw_store_change calls[WAY_CHANGES];
    assert(n <= WAY_CHANGES);
    for (unsigned i = 0; i < n; i++)
        calls[i] = ledger_call(&changes[i]);
    switch (way) {
    case WAY_CALLS:
        return go_by_calls(store, calls, n, results);
    case WAY_SQL:
        return go_by_views(db, calls, n, results);
    case WAY_APPLY:
        if (tw_store_apply(store, calls, n) != 0)
            return 0;
        for (unsigned i = 0; i < n; i++)
            results[i] = outcome_of(&calls[i]);
        return n;
    default:
        return go_in_transaction(way, db, calls, n, results, back);
    }
}

void way_close(sqlite3 *db)
{
    for (sqlite3_stmt *statement; db != NULL && (statement = sqlite3_next_stmt(db, NULL)) != NULL;)
        sqlite3_finalize(statement);
    sqlite3_close(db);
}
