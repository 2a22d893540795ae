/* SPDX-License-Identifier: MIT
 *
 * What an operator does: pauses a queue, or a file that he has restored, replays dead tasks, removes them.
 */
#include "commit.h"

#include <base/assert.h>

#include "change.h"
#include "claim.h"
#include "lock.h"
#include "look.h"

#include <inttypes.h>

enum { TASKS = 256 }; /* of one commit */

/* ---- pause ----------------------------------------------------------------------------------------------- */

struct pause {
    const char *queue;
    bool paused;
    int changed;
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

int tw_store_pause(struct tw_store *store, const char *queue, bool paused)
{
    struct pause pause = {.queue = queue, .paused = paused};
    char text[TW_STORE_MESSAGE];
    struct tw__store_db only_message = {.message = text, .size = sizeof text};
    int error =
        paused ? tw__store_new_queue_check(&only_message, queue) : tw__store_queue_check(&only_message, queue);
    if (error != 0)
        return tw__store_failed(store, error, text);
    error = tw__store_commit(store, write_pause, &pause, false);
    return error == 0 ? pause.changed : error;
}

/* ---- the mark of a restored file ------------------------------------------------------------------------- */

struct mark {
    bool restored;
    int changed;
    struct tw__store_job *died;
};

/* Each mark is a new number, and so is its end: the runner reads everything anew when the number is another
 * one, and counts itself anew. Without a runner a mark counts as a run: the attempts of the backup end. */
static int write_mark(struct tw__store_db *db, void *arg)
{
    struct mark *mark = arg;
    tw__store_jobs_free(mark->died); /* of a transaction that was rolled back */
    mark->died = NULL;
    mark->changed = tw__store_db_is_marked(db) != mark->restored;
    if (!mark->restored && !mark->changed)
        return 0;
    bool counts = mark->restored && !tw__store_lock_is_held(db);
    int error = counts ? tw__store_db_do(db, TW__STORE_RUN, "write tw_meta") : 0;
    if (error == 0 && counts)
        error = tw__store_end_runs(db, db->run + 1, &mark->died);
    return error == 0 ? tw__store_db_do(db, mark->restored ? TW__STORE_MARK : TW__STORE_UNMARK, "write tw_meta")
                      : error;
}

int tw_store_restored(struct tw_store *store, bool restored)
{
    struct mark mark = {.restored = restored};
    int error = tw__store_commit(store, write_mark, &mark, true);
    tw__store_jobs_free(mark.died);
    return error == 0 ? mark.changed : error;
}

static int read_mark(struct tw__store_db *db, void *arg)
{
    *(int *)arg = tw__store_db_is_marked(db);
    return 0;
}

int tw_store_is_restored(struct tw_store *store)
{
    int marked = 0, error = tw__store_look(store, read_mark, &marked);
    return error == 0 ? marked : error;
}

/* ---- dead tasks ------------------------------------------------------------------------------------------ */

/* The dead tasks of one commit: one by its id, or the first that died before a time. Revisions that are newer
 * than the first commit are left alone: a task that was replayed may have died again. */
struct dead {
    const char *queue;
    const void *id; /* NULL: all */
    size_t id_size;
    uint64_t before_ms, due_ms, last_seq;
    bool replay;
    uint64_t seqs[TASKS];
    int n;
};

static int find_dead(struct tw__store_db *db, struct dead *dead)
{
    int error = 0, code = SQLITE_ROW;
    sqlite3_stmt *rows =
        tw__store_db_statement(db, dead->id != NULL ? TW__STORE_FIND_DEAD : TW__STORE_DEAD, &error);
    if (rows == NULL)
        return error;
    tw__store_bind_text(db, rows, 1, dead->queue);
    if (dead->id != NULL) {
        tw__store_bind_blob(db, rows, 2, dead->id, dead->id_size);
    } else {
        tw__store_bind_number(db, rows, 2, dead->before_ms);
        tw__store_bind_number(db, rows, 3, dead->last_seq);
        tw__store_bind_number(db, rows, 4, TASKS);
    }
    for (dead->n = 0; dead->n < TASKS && (code = tw__store_db_step(db, rows)) == SQLITE_ROW;)
        dead->seqs[dead->n++] = (uint64_t)sqlite3_column_int64(rows, 0);
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        error = tw__store_db_error(db, code, "look for dead tasks");
    sqlite3_reset(rows);
    return error;
}

/* Replays or removes one dead task. */
static int end_death(struct tw__store_db *db, const struct dead *dead, uint64_t seq)
{
    int error = 0;
    sqlite3_stmt *statement =
        tw__store_db_statement(db, dead->replay ? TW__STORE_ANEW : TW__STORE_REMOVE, &error);
    if (statement == NULL)
        return error;
    tw__store_bind_number(db, statement, 1, seq);
    if (dead->replay) {
        tw__store_bind_number(db, statement, 2, ++db->seq);
        tw__store_bind_number(db, statement, 3, dead->due_ms);
        tw__store_bind_number(db, statement, 4, tw__store_place(db, dead->due_ms, tw_store_now()));
    }
    return tw__store_db_run(db, statement, dead->replay ? "replay" : "purge");
}

static int end_deaths(struct tw__store_db *db, void *arg)
{
    struct dead *dead = arg;
    dead->last_seq = dead->last_seq > 0 ? dead->last_seq : db->seq;
    int error = find_dead(db, dead);
    for (int i = 0; i < dead->n && error == 0; i++)
        error = end_death(db, dead, dead->seqs[i]);
    return error;
}

static int64_t end_all(struct tw_store *store, struct dead *dead)
{
    int64_t count = 0;
    do {
        int error = tw__store_commit(store, end_deaths, dead, false);
        if (error != 0)
            return error;
        count += dead->n;
    } while (dead->n == TASKS);
    return count;
}

int64_t tw_store_replay(struct tw_store *store, const char *queue, const void *id, size_t id_size,
                        uint64_t due_ms)
{
    struct dead dead = {.queue = queue,
                        .id = id,
                        .id_size = id_size,
                        .before_ms = UINT64_MAX, /* the clock may have gone back since */
                        .due_ms = due_ms,
                        .replay = true};
    char text[TW_STORE_MESSAGE];
    struct tw__store_db only_message = {.message = text, .size = sizeof text};
    int error = id != NULL ? tw__store_name_check(&only_message, queue, id, id_size)
                           : tw__store_queue_check(&only_message, queue);
    if (error == 0 && due_ms > TW_STORE_TIME_MAX)
        error = tw__store_db_refuse(&only_message, TW_EINVAL, "due_ms is '%" PRIu64 "': expected 0 to %" PRIu64,
                                    due_ms, TW_STORE_TIME_MAX);
    return error == 0 ? end_all(store, &dead) : tw__store_failed(store, error, text);
}

int64_t tw_store_purge(struct tw_store *store, const char *queue, uint64_t before_ms)
{
    struct dead dead = {.queue = queue, .before_ms = before_ms};
    char text[TW_STORE_MESSAGE];
    struct tw__store_db only_message = {.message = text, .size = sizeof text};
    int error = tw__store_queue_check(&only_message, queue);
    return error == 0 ? end_all(store, &dead) : tw__store_failed(store, error, text);
}
