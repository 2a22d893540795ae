/* SPDX-License-Identifier: MIT
 *
 * What an operator does: pauses a queue or a restored file, replays and removes dead tasks, and promotes tasks.
 */
#include "commit.h"

#include "change.h"
#include "claim.h"
#include "lock.h"
#include "look.h"

/* ---- pause ----------------------------------------------------------------------------------------------- */

struct pause {
    const char *queue;
    bool paused, changed;
};

static int write_pause(struct tw__store_db *db, void *arg)
{
    struct pause *pause = arg;
    int error = 0;
    sqlite3_stmt *statement =
        tw__store_db_statement(db, pause->paused ? TW__STORE_PAUSE : TW__STORE_RESUME, &error);
    if (statement == NULL)
        return error;
    tw__store_bind_text(db, statement, 1, pause->queue);
    error = tw__store_db_run(db, statement, "write tw_queue");
    pause->changed = error == 0 && sqlite3_changes(db->db) > 0;
    return error;
}

static int pause_or_resume(struct tw_store *store, const char *queue, bool paused, bool *changed)
{
    struct pause pause = {.queue = queue, .paused = paused};
    char text[TW_STORE_MESSAGE_SIZE];
    struct tw__store_db only_message = {.message = text, .size = sizeof text};
    int error =
        paused ? tw__store_new_queue_check(&only_message, queue) : tw__store_queue_check(&only_message, queue);
    if (error != 0)
        return tw__store_failed(store, error, text);
    error = tw__store_commit(store, write_pause, &pause, false);
    if (error == 0 && changed != NULL)
        *changed = pause.changed;
    return error;
}

int tw_store_pause(struct tw_store *store, const char *queue, bool *changed)
{
    return pause_or_resume(store, queue, true, changed);
}

int tw_store_resume(struct tw_store *store, const char *queue, bool *changed)
{
    return pause_or_resume(store, queue, false, changed);
}

/* ---- the mark of a restored file ------------------------------------------------------------------------- */

struct mark {
    bool restored, changed;
    struct tw__store_lapses lapses;
};

/* Each mark is a new number, and so is its end: the runner reads everything anew when the number is another
 * one, and counts itself anew. Without a runner a mark counts as a run: the attempts of the backup end. */
static int write_mark(struct tw__store_db *db, void *arg)
{
    struct mark *mark = arg;
    mark->changed = tw__store_db_is_marked(db) != mark->restored;
    if (!mark->restored && !mark->changed)
        return 0;
    bool counts = mark->restored && tw__store_lock_holder(db) == 0;
    int error = counts ? tw__store_db_do(db, TW__STORE_RUN, "write tw_meta") : 0;
    if (error == 0 && counts)
        error = tw__store_end_runs(db, db->run + 1, &mark->lapses);
    return error == 0 ? tw__store_db_do(db, mark->restored ? TW__STORE_MARK : TW__STORE_UNMARK, "write tw_meta")
                      : error;
}

int tw_store_mark_restored(struct tw_store *store, bool restored, bool *changed)
{
    struct mark mark = {.restored = restored};
    int error = tw__store_commit(store, write_mark, &mark, true);
    tw__store_jobs_free(mark.lapses.died);
    if (error == 0 && changed != NULL)
        *changed = mark.changed;
    return error;
}

static int read_mark(struct tw__store_db *db, void *arg)
{
    *(bool *)arg = tw__store_db_is_marked(db);
    return 0;
}

int tw_store_is_restored(const struct tw_store *store, bool *restored)
{
    return tw__store_look(store, read_mark, restored);
}

/* ---- dead tasks, and tasks that wait --------------------------------------------------------------------- */

enum deed { REPLAY, PURGE, PROMOTE };
enum { BYTES = 32 << 20 }; /* of payloads: the task with which a call has so many is its last one */

/* The tasks of one call: one by its id, or the first ones of all. */
struct picked {
    enum deed deed;
    struct tw_store_name name; /* without an id: all */
    uint64_t at_ms;            /* tasks that died before, or PROMOTE: whose time comes later */
    uint64_t due_ms;
    uint64_t count; /* treated */
};

/* Replays, removes or promotes one task. */
static int treat(struct tw__store_db *db, const struct picked *picked, uint64_t revision)
{
    if (picked->deed == PURGE)
        return tw__store_db_write(db, TW__STORE_REMOVE, "purge", &revision, 1);
    const uint64_t numbers[] = {revision, ++db->revision, picked->due_ms,
                                tw__store_place(db, picked->due_ms, tw_store_now())};
    return picked->deed == REPLAY ? tw__store_db_write(db, TW__STORE_ANEW, "replay", numbers, 4)
                                  : tw__store_db_write(db, TW__STORE_PROMOTE, "promote", numbers, 4);
}

/* A lease that has run out ends before. */
static int let_lapse(struct tw__store_db *db, const struct picked *picked)
{
    struct tw__store_leases leases = {.seen = NULL};
    const struct tw_bytes id = picked->name.id;
    bool over = false;
    int error = 0;
    if (id.data == NULL) {
        error = tw__store_end_leases(db, &leases);
        tw__store_jobs_free(leases.lapses.died);
        return error;
    }
    sqlite3_stmt *row = tw__store_db_statement(db, TW__STORE_IS_OVER, &error);
    if (row == NULL)
        return error;
    tw__store_bind_text(db, row, 1, picked->name.queue);
    tw__store_bind_blob(db, row, 2, id.data, id.size);
    while (tw__store_db_next(db, row, "look a task up", &error))
        over = true;
    return over && error == 0 ? tw__store_db_lapse(db, picked->name.queue, id.data, id.size) : error;
}

/* Each row is changed after it was read, and then the statement that reads never comes to it again. Its payload
 * is written anew with it, and everybody else waits for the lock meanwhile. */
static int treat_picked(struct tw__store_db *db, void *arg)
{
    struct picked *picked = arg;
    bool waiting = picked->deed == PROMOTE, one = picked->name.id.data != NULL;
    enum tw__store_statement which = one       ? waiting ? TW__STORE_FIND_WAITING : TW__STORE_FIND_DEAD
                                     : waiting ? TW__STORE_WAITING
                                               : TW__STORE_DEAD;
    int error = let_lapse(db, picked);
    sqlite3_stmt *rows = error == 0 ? tw__store_db_statement(db, which, &error) : NULL;
    if (rows == NULL)
        return error;
    if (waiting)
        picked->at_ms = picked->due_ms = tw_store_now();
    tw__store_bind_text(db, rows, 1, picked->name.queue);
    tw__store_bind_number(db, rows, 2, picked->at_ms);
    if (one)
        tw__store_bind_blob(db, rows, 3, picked->name.id.data, picked->name.id.size);
    else
        tw__store_bind_number(db, rows, 3, TW_STORE_ALL_MAX);
    picked->count = 0; /* a transaction before may have been rolled back */
    for (int64_t bytes = 0; bytes < BYTES && tw__store_db_next(db, rows, "look for tasks", &error);) {
        bytes += sqlite3_column_int64(rows, 1);
        error = treat(db, picked, (uint64_t)sqlite3_column_int64(rows, 0));
        picked->count++;
    }
    sqlite3_reset(rows); /* there may be more */
    return error;
}

/* Checks the names, and treats the tasks. */
static int treat_named(struct tw_store *store, struct picked picked, uint64_t *count)
{
    char text[TW_STORE_MESSAGE_SIZE];
    struct tw__store_db only_message = {.message = text, .size = sizeof text};
    int error = picked.name.id.data != NULL ? tw__store_name_check(&only_message, picked.name)
                                            : tw__store_queue_check(&only_message, picked.name.queue);
    if (error == 0)
        error = tw__store_range_check(&only_message, "due_ms", picked.due_ms, 0, TW_STORE_TIME_MAX);
    if (error != 0)
        return tw__store_failed(store, error, text);
    error = tw__store_commit(store, treat_picked, &picked, false);
    if (error == 0 && count != NULL)
        *count = picked.count;
    return error;
}

/* The clock may have gone back since a death, so the time of none counts. */
int tw_store_replay(struct tw_store *store, struct tw_store_name name, uint64_t due_ms, uint64_t *count)
{
    return treat_named(store, (struct picked){REPLAY, name, UINT64_MAX, due_ms, 0}, count);
}

int tw_store_purge(struct tw_store *store, struct tw_store_name name, uint64_t before_ms, uint64_t *count)
{
    return treat_named(store, (struct picked){PURGE, name, before_ms, 0, 0}, count);
}

int tw_store_promote(struct tw_store *store, struct tw_store_name name, uint64_t *count)
{
    return treat_named(store, (struct picked){PROMOTE, name, 0, 0, 0}, count);
}
