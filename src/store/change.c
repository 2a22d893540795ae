/* SPDX-License-Identifier: MIT
 *
 * A put is one statement, an upsert: the row of an existing task gets the number of a new revision, and with it
 * a new place in the table. So a runner that holds the old number finds nothing under it, and whoever reads the
 * rows above the last number it has seen finds every task that was put or moved since.
 *
 * A put or a move may find its task at work. The same statement makes the row the new task then, and leaves
 * the number, the run and the token of the attempt there: `replaced` has the number. The runner loads no such
 * row, and the end of the attempt clears it (claim.c). Example: a task is put for tomorrow while its first
 * attempt is under way. Its row has `attempt` 0 and `replaced` 1 until the handler has answered.
 *
 * Or a program has taken the task by tw_take. That is rare, so the statement leaves such a row alone, and
 * others go on: a lease that has run out ends first, and behind one that lasts stands the new task.
 *
 * A put with KEEPDUE mostly leaves the times alone (keepdue.h). Then the row keeps its number and its place: a
 * runner that has loaded the number reads the new options when it claims the task.
 *
 * Most tasks that a call puts by the thousand are new. Such puts are made 32 by a statement, because its begin
 * costs as much as writing a row. The statement leaves tasks alone that are there already. If it has found one,
 * each of its puts is made anew by a statement of its own, and so are all that follow. (Rejected: that this
 * statement replaces tasks. SQLite would copy each page before the statement changes it.)
 */
#include "change.h"

#include <base/assert.h>
#include <base/grow.h>
#include <base/utf8.h>
#include <task/conditions.h>
#include <task/keepdue.h>
#include <task/limits.h>
#include <task/words.h>

#include <inttypes.h>
#include <string.h>

/* The conditions of the header are those of the contract. */
_Static_assert((int)TW_CONDITION_NX == TW__TASK_NX && (int)TW_CONDITION_XX == TW__TASK_XX &&
                   (int)TW_CONDITION_GT == TW__TASK_GT && (int)TW_CONDITION_LT == TW__TASK_LT &&
                   (int)TW_CONDITION_KEEPDUE == TW__TASK_KEEPDUE,
               "the conditions");
_Static_assert((int)TW_STORE_ID_MAX == TW__TASK_ID_MAX && (int)TW_STORE_ANY_ID_MAX == TW__TASK_NAME_MAX &&
                   (int)TW_STORE_QUEUE_MAX == TW__TASK_QUEUE_MAX && TW_STORE_TIME_MAX == TW__TASK_TIME_MAX &&
                   (int)TW_STORE_ALL_MAX == TW__TASK_MANY,
               "the limits");

enum { NEW_LEAST = 2 * TW__STORE_NEW }; /* changes for which it pays to prepare PUT_NEW */

/* ---- checks ---------------------------------------------------------------------------------------------- */

int tw__store_queue_check(struct tw__store_db *db, const char *queue)
{
    TW_ASSERT(queue != NULL);
    size_t size = strlen(queue);
    if (size == 0 || size > TW_STORE_QUEUE_MAX)
        return tw__store_db_refuse(db, TW_EINVAL, "queue has %zu bytes: expected 1 to %d", size,
                                   TW_STORE_QUEUE_MAX);
    return 0;
}

int tw__store_new_queue_check(struct tw__store_db *db, const char *queue)
{
    char shown[256];
    int error = tw__store_queue_check(db, queue);
    if (error != 0 || tw__is_utf8(queue, strlen(queue)))
        return error;
    tw__store_show(shown, sizeof shown, queue, strlen(queue));
    return tw__store_db_refuse(db, TW_EINVAL, "queue is '%s': expected UTF-8", shown);
}

/* Checks the name of a task whose id may have so many bytes. */
static int check_name(struct tw__store_db *db, const char *queue, struct tw_bytes id, size_t most)
{
    TW_ASSERT(id.data != NULL || id.size == 0);
    int error = tw__store_queue_check(db, queue);
    if (error != 0)
        return error;
    if (id.size == 0 || id.size > most)
        return tw__store_db_refuse(db, TW_EINVAL, "id has %zu bytes: expected 1 to %zu", id.size, most);
    return 0;
}

int tw__store_name_check(struct tw__store_db *db, struct tw_store_name name)
{
    return check_name(db, name.queue, name.id, TW_STORE_ANY_ID_MAX);
}

int tw__store_range_check(struct tw__store_db *db, const char *name, uint64_t value, uint64_t least,
                          uint64_t most)
{
    if (value >= least && value <= most)
        return 0;
    return tw__store_db_refuse(db, TW_EINVAL, "%s is '%" PRIu64 "': expected %" PRIu64 " to %" PRIu64, name,
                               value, least, most);
}

int tw__store_reserved_check(struct tw__store_db *db, const char *name, const uint64_t *reserved, size_t n)
{
    size_t i = tw__grow_reserved(reserved, n);
    return i == n ? 0 : tw__store_db_refuse(db, TW_EINVAL, TW__GROW_REFUSED, name, i, reserved[i]);
}

static int check_due(struct tw__store_db *db, uint64_t due_ms)
{
    return tw__store_range_check(db, "due_ms", due_ms, 0, TW_STORE_TIME_MAX);
}

static int check_times(struct tw__store_db *db, const struct tw_store_delayed *put)
{
    if (put->times == TW_FOREVER)
        return 0;
    if (put->every_ms == 0 && put->times > 0)
        return tw__store_db_refuse(db, TW_EINVAL, "times is %" PRIu64 ": expected every_ms too", put->times);
    return tw__store_range_check(db, "times", put->times, 0, INT64_MAX);
}

/* 0 is coalesce, and may leave the option out. */
static int check_missed(struct tw__store_db *db, const struct tw_store_delayed *put)
{
    if ((unsigned)put->missed > TW_MISSED_BURST)
        return tw__store_db_refuse(db, TW_EINVAL, "missed is '%d': expected burst, skip or coalesce",
                                   (int)put->missed);
    if (put->every_ms == 0 && put->missed != 0)
        return tw__store_db_refuse(db, TW_EINVAL, "missed is %s: expected every_ms too",
                                   tw__task_missed_name(put->missed));
    return 0;
}

static int check_factor(struct tw__store_db *db, uint32_t factor)
{
    struct tw__task_range range = tw__task_range(TW__TASK_IN_FACTOR);
    if (factor != 0 && (factor < range.least || factor > range.most))
        return tw__store_db_refuse(db, TW_EINVAL,
                                   "factor_percent is '%" PRIu32 "': expected 0, or %" PRIu64 " to %" PRIu64,
                                   factor, range.least, range.most);
    return 0;
}

static uint64_t most_of(enum tw__task_number number)
{
    return tw__task_range(number).most;
}

/* An option that is left out is 0, or has a value of its own. */
static int check_options(struct tw__store_db *db, const struct tw_store_delayed *put)
{
    bool late = put->max_late_ms != TW_FOREVER && put->max_late_ms != TW_STORE_ON_TIME;
    const struct {
        const char *name;
        uint64_t value, most;
    } of[] = {{"every_ms", put->every_ms, most_of(TW__TASK_IN_EVERY)},
              {"tries", put->tries, most_of(TW__TASK_IN_TRIES)},
              {"backoff_ms", put->backoff_ms, most_of(TW__TASK_IN_BACKOFF)},
              {"backoff_max_ms", put->backoff_max_ms, most_of(TW__TASK_IN_BACKOFF_MAX)},
              {"jitter", put->jitter != TW_STORE_NO_JITTER ? put->jitter : 0, most_of(TW__TASK_IN_JITTER)},
              {"max_late_ms", late ? put->max_late_ms : 0, most_of(TW__TASK_IN_MAX_LATE)}};
    int error = 0;
    for (size_t i = 0; i < sizeof of / sizeof of[0] && error == 0; i++)
        error = tw__store_range_check(db, of[i].name, of[i].value, 0, of[i].most);
    return error;
}

/* Requires: the id is checked. A home has one limit for the id and the payload, and a program may have less. */
static int check_payload(struct tw__store_db *db, const struct tw_store_delayed *put, uint64_t max_payload)
{
    uint64_t most = put->payload.data != NULL ? max_payload : 0, size = put->payload.size;
    if (size > most)
        return tw__store_db_refuse(db, TW_EINVAL, "payload has %" PRIu64 " bytes: expected at most %" PRIu64,
                                   size, most);
    if (size + put->id.size > TW__TASK_PAYLOAD_MAX)
        return tw__store_db_refuse(db, TW_EINVAL, "id and payload have %" PRIu64 " bytes: expected at most %d",
                                   size + put->id.size, TW__TASK_PAYLOAD_MAX);
    return 0;
}

static int check_put(struct tw__store_db *db, const struct tw_store_delayed *put, uint64_t max_payload)
{
    int error = check_due(db, put->due_ms);
    if (error == 0)
        error = tw__store_new_queue_check(db, put->queue);
    if (error == 0)
        error = check_payload(db, put, max_payload);
    if (error == 0)
        error = check_options(db, put);
    if (error == 0)
        error = check_times(db, put);
    if (error == 0)
        error = check_missed(db, put);
    return error == 0 ? check_factor(db, put->factor_percent) : error;
}

/* Names two conditions of a put or a move that may not stand together. */
static int refuse_pair(struct tw__store_db *db, unsigned conditions)
{
    static const char *const names[] = {"NX", "XX", "GT", "LT"};
    const char *found[4];
    size_t n = 0;
    for (unsigned i = 0; i < 4; i++)
        if (conditions >> i & 1)
            found[n++] = names[i];
    if (n > 1)
        return tw__store_db_refuse(db, TW_EINVAL,
                                   "the conditions are %s and %s: expected one of NX, XX, GT and LT", found[0],
                                   found[1]);
    return tw__store_db_refuse(
        db, TW_EINVAL, "the conditions are KEEPDUE and %s: expected KEEPDUE alone, or with NX or XX", found[0]);
}

static int check_conditions(struct tw__store_db *db, enum tw_store_verb verb, unsigned conditions)
{
    static const struct {
        unsigned good;
        const char *names;
    } of[] = {[TW_STORE_VERB_PUT] = {TW_CONDITION_NX | TW_CONDITION_XX | TW_CONDITION_GT | TW_CONDITION_LT |
                                         TW_CONDITION_KEEPDUE,
                                     "NX, XX, GT, LT or KEEPDUE"},
              [TW_STORE_VERB_MOVE] = {TW_CONDITION_GT | TW_CONDITION_LT, "GT or LT"},
              [TW_STORE_VERB_CANCEL] = {0, "no condition"}};
    if ((unsigned)verb > TW_STORE_VERB_CANCEL)
        return tw__store_db_refuse(db, TW_EINVAL, "verb is '%d': expected 0 to %d", (int)verb,
                                   TW_STORE_VERB_CANCEL);
    if ((conditions & ~of[verb].good) != 0)
        return tw__store_db_refuse(db, TW_EINVAL, "conditions is '%u': expected 0 or %s", conditions,
                                   of[verb].names);
    return tw__task_conditions_fit(conditions) ? 0 : refuse_pair(db, conditions);
}

int tw__store_change_check(struct tw__store_db *db, const struct tw_store_change *change, uint64_t max_payload)
{
    const struct tw_store_delayed *task = &change->task;
    int error = check_conditions(db, change->verb, change->conditions);
    if (error == 0)
        error =
            tw__store_reserved_check(db, "tw_store_change", change->reserved, TW__GROW_ROOM(change->reserved));
    if (error == 0)
        error = tw__store_reserved_check(db, "tw_store_delayed", task->reserved, TW__GROW_ROOM(task->reserved));
    if (error == 0)
        error = check_name(db, change->task.queue, change->task.id,
                           change->verb == TW_STORE_VERB_PUT ? TW_STORE_ID_MAX : TW_STORE_ANY_ID_MAX);
    if (error == 0 && change->verb == TW_STORE_VERB_PUT)
        error = check_put(db, &change->task, max_payload);
    if (error == 0 && change->verb == TW_STORE_VERB_MOVE)
        error = check_due(db, change->task.due_ms);
    return error;
}

/* ---- changes --------------------------------------------------------------------------------------------- */

/* A task as a change finds it. */
struct found {
    enum tw__task_stage stage;
    bool repeats;
    bool held, over; /* a program has taken it by tw_take; and its lease has run out */
    uint64_t due_ms;
};

static void bind_name(struct tw__store_db *db, sqlite3_stmt *statement, int queue, int id,
                      const struct tw_store_delayed *task)
{
    tw__store_bind_text(db, statement, queue, task->queue);
    tw__store_bind_blob(db, statement, id, task->id.data, task->id.size);
}

static enum tw__task_stage read_stage(sqlite3_stmt *row)
{
    if (sqlite3_column_type(row, 1) != SQLITE_NULL)
        return TW__TASK_BURIED;
    if (sqlite3_column_int64(row, 2) == 0)
        return TW__TASK_FILED;
    return sqlite3_column_int64(row, 3) > 0 ? TW__TASK_REPLACED : TW__TASK_TAKEN;
}

static int read_row(struct tw__store_db *db, const struct tw_store_delayed *task, struct found *found)
{
    int error = 0;
    *found = (struct found){0};
    sqlite3_stmt *statement = tw__store_db_statement(db, TW__STORE_FIND, &error);
    if (statement == NULL)
        return error;
    bind_name(db, statement, 1, 2, task);
    while (tw__store_db_next(db, statement, "look a task up", &error))
        *found = (struct found){.stage = read_stage(statement),
                                .repeats = sqlite3_column_int64(statement, 4) > 0,
                                .held = sqlite3_column_int64(statement, 5) != 0,
                                .over = sqlite3_column_int64(statement, 6) != 0,
                                .due_ms = (uint64_t)sqlite3_column_int64(statement, 0)};
    return error;
}

/* Looks a task up. If its lease has run out, the attempt lapses before. */
static int find_row(struct tw__store_db *db, const struct tw_store_delayed *task, struct found *found)
{
    int error = read_row(db, task, found);
    if (error != 0 || !found->over)
        return error;
    error = tw__store_db_lapse(db, task->queue, task->id.data, task->id.size);
    return error == 0 ? read_row(db, task, found) : error;
}

static bool is_met(const struct tw_store_change *change, const struct found *found)
{
    return tw__task_conditions_met(change->conditions, found->stage != TW__TASK_NONE, found->due_ms,
                                   change->task.due_ms);
}

/* An option that may be left out: 0. `zero` is the word of the caller for 0. */
static void bind_option(struct tw__store_db *db, sqlite3_stmt *statement, int at, uint64_t value, uint64_t zero)
{
    if (value == 0)
        tw__store_bind_text(db, statement, at, NULL);
    else
        tw__store_bind_number(db, statement, at, value == zero ? 0 : value);
}

/* Returns whether no option is given. */
static bool is_plain(const struct tw_store_delayed *task)
{
    return task->every_ms == 0 && task->tries == 0 && task->backoff_ms == 0 && task->factor_percent == 0 &&
           task->backoff_max_ms == 0 && task->jitter == 0 &&
           (task->max_late_ms == 0 || task->max_late_ms == TW_FOREVER);
}

static void bind_task(struct tw__store_db *db, sqlite3_stmt *statement, const struct tw_store_delayed *task)
{
    bind_name(db, statement, 2, 3, task);
    tw__store_bind_blob(db, statement, 10, task->payload.data, task->payload.size);
}

/* Binds the options. */
static void bind_options(struct tw__store_db *db, sqlite3_stmt *statement, const struct tw_store_delayed *task)
{
    uint64_t times = task->every_ms == 0 ? 1 : task->times == TW_FOREVER ? 0 : task->times;
    uint64_t max_late_ms = task->max_late_ms == TW_FOREVER ? 0 : task->max_late_ms;
    tw__store_bind_number(db, statement, 5, task->every_ms);
    tw__store_bind_number(db, statement, 6, times);
    tw__store_bind_text(db, statement, 7, task->every_ms > 0 ? tw__task_missed_name(task->missed) : NULL);
    bind_option(db, statement, 8, task->tries, 0);
    bind_option(db, statement, 9, task->backoff_ms, 0);
    bind_option(db, statement, 12, max_late_ms, TW_STORE_ON_TIME);
    bind_option(db, statement, 13, task->factor_percent, 0);
    bind_option(db, statement, 14, task->backoff_max_ms, 0);
    bind_option(db, statement, 15, task->jitter, TW_STORE_NO_JITTER);
}

/* Files the task for `due_ms`. Most tasks have no option, and a shorter statement files them. Requires: the
 * condition is met. */
static int put_row(struct tw__store_db *db, const struct tw_store_delayed *task, uint64_t due_ms,
                   uint64_t now_ms)
{
    int error = 0;
    bool plain = is_plain(task);
    sqlite3_stmt *statement = tw__store_db_statement(db, plain ? TW__STORE_PUT_PLAIN : TW__STORE_PUT, &error);
    if (statement == NULL)
        return error;
    bind_task(db, statement, task);
    if (!plain)
        bind_options(db, statement, task);
    tw__store_bind_number(db, statement, 1, db->revision + 1);
    tw__store_bind_number(db, statement, 4, due_ms);
    tw__store_bind_number(db, statement, 11, tw__store_place(db, due_ms, now_ms));
    error = tw__store_db_run(db, statement, "put");
    db->revision += error == 0;
    return error;
}

/* Gives a task that is there other options, and leaves its times alone. */
static int renew_row(struct tw__store_db *db, const struct tw_store_delayed *task)
{
    int error = 0;
    sqlite3_stmt *statement = tw__store_db_statement(db, TW__STORE_RENEW, &error);
    if (statement == NULL)
        return error;
    bind_task(db, statement, task);
    bind_options(db, statement, task);
    return tw__store_db_run(db, statement, "put");
}

/* Gives the task a new due time, by MOVE, or by MOVE_BEHIND if a program has it: then it stands behind the
 * attempt. */
static int move_row(struct tw__store_db *db, enum tw__store_statement which,
                    const struct tw_store_delayed *task, uint64_t due_ms)
{
    int error = 0;
    sqlite3_stmt *statement = tw__store_db_statement(db, which, &error);
    if (statement == NULL)
        return error;
    bind_name(db, statement, 1, 2, task);
    tw__store_bind_number(db, statement, 3, db->revision + 1);
    tw__store_bind_number(db, statement, 4, due_ms);
    if (which == TW__STORE_MOVE)
        tw__store_bind_number(db, statement, 5, tw__store_place(db, due_ms, tw_store_now()));
    error = tw__store_db_run(db, statement, "move");
    db->revision += error == 0 && sqlite3_changes(db->db) > 0;
    return error;
}

/* A put of a task that a program has. While the lease lasts, the new task stands behind the attempt. */
static int put_held(struct tw__store_db *db, const struct tw_store_delayed *task, uint64_t due_ms,
                    uint64_t now_ms)
{
    struct found found;
    int error = find_row(db, task, &found);
    if (error == 0 && !found.held)
        return put_row(db, task, due_ms, now_ms);
    if (error == 0)
        error = move_row(db, TW__STORE_MOVE_BEHIND, task, due_ms);
    return error == 0 ? renew_row(db, task) : error;
}

/* A put whose condition is met. A file has no targets, so no task comes from elsewhere. */
static int put_found(struct tw__store_db *db, const struct tw_store_change *change, const struct found *found)
{
    const struct tw_store_delayed *task = &change->task;
    uint64_t now_ms = tw_store_now();
    struct tw__task_keep keep = {TW__TASK_KEEPDUE_FILES, task->due_ms};
    if (change->conditions & TW_CONDITION_KEEPDUE)
        keep = tw__task_keep(&(struct tw__task){.stage = found->stage, .every_ms = found->repeats},
                             task->every_ms, false, task->due_ms, now_ms);
    if (keep.how == TW__TASK_KEEPDUE_IN_PLACE)
        return renew_row(db, task);
    int error = put_row(db, task, keep.due_ms, now_ms);
    return error != 0 || sqlite3_changes(db->db) > 0 ? error : put_held(db, task, keep.due_ms, now_ms);
}

static int change_put(struct tw__store_db *db, struct tw_store_change *change)
{
    struct found found = {0};
    int error = change->conditions != 0 ? find_row(db, &change->task, &found) : 0;
    if (error != 0)
        return error;
    change->made = is_met(change, &found);
    return change->made ? put_found(db, change, &found) : 0;
}

/* Without a condition the update itself finds the task, and most moves find one. */
static int change_move(struct tw__store_db *db, struct tw_store_change *change)
{
    struct found found;
    int error = 0;
    if (change->conditions == 0) {
        error = move_row(db, TW__STORE_MOVE, &change->task, change->task.due_ms);
        change->made = true;
        if (error != 0 || sqlite3_changes(db->db) > 0)
            return error;
    }
    error = find_row(db, &change->task, &found);
    if (error != 0)
        return error;
    if (found.stage == TW__TASK_NONE || found.stage == TW__TASK_BURIED) {
        change->result = found.stage == TW__TASK_BURIED ? TW_EDEAD : TW_EGONE;
        change->made = false;
        return 0;
    }
    change->made = is_met(change, &found);
    if (!change->made)
        return 0;
    return move_row(db, found.held ? TW__STORE_MOVE_BEHIND : TW__STORE_MOVE, &change->task,
                    change->task.due_ms);
}

static int cancel_row(struct tw__store_db *db, enum tw__store_statement which, struct tw_store_change *change)
{
    int error = 0;
    sqlite3_stmt *statement = tw__store_db_statement(db, which, &error);
    if (statement == NULL)
        return error;
    bind_name(db, statement, 1, 2, &change->task);
    while (tw__store_db_next(db, statement, "cancel", &error))
        change->found = sqlite3_column_int64(statement, 0) != 0 ? TW_CANCEL_AT_WORK : TW_CANCEL_CANCELLED;
    return error;
}

/* Nobody has most tasks, and their row goes without a temporary table for its run. */
static int change_cancel(struct tw__store_db *db, struct tw_store_change *change)
{
    struct found found;
    change->found = TW_CANCEL_CANCELLED;
    int error = cancel_row(db, TW__STORE_CANCEL, change);
    if (error != 0 || sqlite3_changes(db->db) > 0)
        return error;
    change->found = TW_CANCEL_GONE;
    error = find_row(db, &change->task, &found);
    if (error == 0 && found.held)
        error = cancel_row(db, TW__STORE_CANCEL_LEASE, change);
    return error == 0 && found.stage != TW__TASK_NONE ? cancel_row(db, TW__STORE_CANCEL_TAKEN, change) : error;
}

static int make_change(struct tw__store_db *db, struct tw_store_change *change)
{
    change->result = 0;
    switch (change->verb) {
    case TW_STORE_VERB_PUT:
        return change_put(db, change);
    case TW_STORE_VERB_MOVE:
        return change_move(db, change);
    default:
        return change_cancel(db, change);
    }
}

/* ---- many new tasks -------------------------------------------------------------------------------------- */

/* Returns whether PUT_NEW can make the next changes: puts to one queue, without conditions and options. */
static bool are_alike(const struct tw_store_change *changes)
{
    bool alike = true;
    for (const struct tw_store_change *change = changes; change < changes + TW__STORE_NEW && alike; change++)
        alike = change->verb == TW_STORE_VERB_PUT && change->conditions == 0 && is_plain(&change->task) &&
                strcmp(change->task.queue, changes->task.queue) == 0;
    return alike;
}

static void bind_new(struct tw__store_db *db, sqlite3_stmt *statement, const struct tw_store_change *changes)
{
    uint64_t now_ms = tw_store_now();
    int at = 1;
    tw__store_bind_text(db, statement, at++, changes[0].task.queue);
    for (size_t i = 0; i < TW__STORE_NEW; i++) {
        const struct tw_store_delayed *task = &changes[i].task;
        tw__store_bind_number(db, statement, at++, db->revision + i + 1);
        tw__store_bind_blob(db, statement, at++, task->id.data, task->id.size);
        tw__store_bind_number(db, statement, at++, task->due_ms);
        tw__store_bind_number(db, statement, at++, tw__store_place(db, task->due_ms, now_ms));
        tw__store_bind_blob(db, statement, at++, task->payload.data, task->payload.size);
    }
}

/* Puts TW__STORE_NEW tasks by one statement. *made tells whether all of them were new. If not, the others are
 * put. */
static int put_new(struct tw__store_db *db, struct tw_store_change *changes, bool *made)
{
    int error = 0;
    sqlite3_stmt *statement = tw__store_db_statement(db, TW__STORE_PUT_NEW, &error);
    if (statement == NULL)
        return error;
    bind_new(db, statement, changes);
    error = tw__store_db_run(db, statement, "put");
    db->revision += error == 0 ? TW__STORE_NEW : 0;
    *made = error == 0 && sqlite3_changes(db->db) == TW__STORE_NEW;
    for (size_t i = 0; i < TW__STORE_NEW; i++)
        changes[i].result = 0, changes[i].made = true;
    return error;
}

/* Returns whether PUT_NEW pays for n changes. SQLite copies the pages that a statement changes, and what
 * goes beyond 64 KiB into a file, unless temp_store is MEMORY. A connection of ours has set that. */
static bool pays(const struct tw__store_db *db, size_t n)
{
    bool ours = db->busy_ms > 0;
    return ours && n >= NEW_LEAST;
}

/* Makes the first changes by PUT_NEW, as long as they are alike and their tasks are new. Returns how many it
 * has made. */
static size_t change_new(struct tw__store_db *db, struct tw_store_change *changes, size_t n, int *error)
{
    bool made = pays(db, n);
    size_t i = 0;
    while (made && *error == 0 && n - i >= TW__STORE_NEW && are_alike(&changes[i])) {
        *error = put_new(db, &changes[i], &made);
        i += made ? TW__STORE_NEW : 0;
    }
    return i;
}

int tw__store_change_all(struct tw__store_db *db, struct tw_store_change *changes, size_t n)
{
    int error = 0;
    size_t i = change_new(db, changes, n, &error);
    for (; i < n && error == 0; i++)
        error = make_change(db, &changes[i]);
    return error;
}
