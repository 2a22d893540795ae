/* SPDX-License-Identifier: MIT
 *
 * What an operator does: pauses a queue, or a file that he has restored, replays dead tasks, removes them, and
 * promotes tasks that wait.
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

/* ---- dead tasks, and tasks that wait --------------------------------------------------------------------- */

enum deed { REPLAY, PURGE, PROMOTE };

/* The tasks of one commit: one by its id, or the first ones of all. Revisions that are newer than the first
 * commit are left alone: a task that was replayed may have died again, and one that was promoted may have
 * failed. */
struct picked {
    enum deed deed;
    const char *queue;
    const void *id; /* NULL: all */
    size_t id_size;
    uint64_t at_ms; /* those that died before, or PROMOTE: whose time comes later */
    uint64_t due_ms, last_seq;
    int64_t most; /* tasks that the call may still take */
    uint64_t seqs[TASKS];
    int n;
};

static int find_picked(struct tw__store_db *db, struct picked *picked)
{
    bool waiting = picked->deed == PROMOTE, one = picked->id != NULL;
    enum tw__store_statement which = one       ? waiting ? TW__STORE_FIND_WAITING : TW__STORE_FIND_DEAD
                                     : waiting ? TW__STORE_WAITING
                                               : TW__STORE_DEAD;
    int error = 0, code;
    sqlite3_stmt *rows = tw__store_db_statement(db, which, &error);
    if (rows == NULL)
        return error;
    tw__store_bind_text(db, rows, 1, picked->queue);
    tw__store_bind_number(db, rows, 2, picked->at_ms);
    if (one) {
        tw__store_bind_blob(db, rows, 3, picked->id, picked->id_size);
    } else {
        tw__store_bind_number(db, rows, 3, picked->last_seq);
        tw__store_bind_number(db, rows, 4, picked->most < TASKS ? (uint64_t)picked->most : TASKS);
    }
    for (picked->n = 0; (code = tw__store_db_step(db, rows)) == SQLITE_ROW;)
        picked->seqs[picked->n++] = (uint64_t)sqlite3_column_int64(rows, 0);
    if (code != SQLITE_DONE)
        error = tw__store_db_error(db, code, "look for tasks");
    sqlite3_reset(rows);
    return error;
}

/* Replays, removes or promotes one task. */
static int treat(struct tw__store_db *db, const struct picked *picked, uint64_t seq)
{
    static const struct {
        enum tw__store_statement which;
        const char *name;
    } of[] = {[REPLAY] = {TW__STORE_ANEW, "replay"},
              [PURGE] = {TW__STORE_REMOVE, "purge"},
              [PROMOTE] = {TW__STORE_PROMOTE, "promote"}};
    int error = 0;
    sqlite3_stmt *statement = tw__store_db_statement(db, of[picked->deed].which, &error);
    if (statement == NULL)
        return error;
    tw__store_bind_number(db, statement, 1, seq);
    if (picked->deed != PURGE) {
        tw__store_bind_number(db, statement, 2, ++db->seq);
        tw__store_bind_number(db, statement, 3, picked->due_ms);
        tw__store_bind_number(db, statement, 4, tw__store_place(db, picked->due_ms, tw_store_now()));
    }
    return tw__store_db_run(db, statement, of[picked->deed].name);
}

static int treat_picked(struct tw__store_db *db, void *arg)
{
    struct picked *picked = arg;
    picked->last_seq = picked->last_seq > 0 ? picked->last_seq : db->seq;
    if (picked->deed == PROMOTE)
        picked->at_ms = picked->due_ms = tw_store_now();
    int error = find_picked(db, picked);
    for (int i = 0; i < picked->n && error == 0; i++)
        error = treat(db, picked, picked->seqs[i]);
    return error;
}

static int64_t treat_all(struct tw_store *store, struct picked *picked)
{
    int64_t count = 0;
    do {
        int error = tw__store_commit(store, treat_picked, picked, false);
        if (error != 0)
            return error;
        count += picked->n;
        picked->most -= picked->n;
    } while (picked->n == TASKS);
    return count;
}

/* Checks the names, and treats the tasks. */
static int64_t treat_named(struct tw_store *store, struct picked *picked)
{
    char text[TW_STORE_MESSAGE];
    struct tw__store_db only_message = {.message = text, .size = sizeof text};
    int error = picked->id != NULL
                    ? tw__store_name_check(&only_message, picked->queue, picked->id, picked->id_size)
                    : tw__store_queue_check(&only_message, picked->queue);
    if (error == 0)
        error = tw__store_due_check(&only_message, picked->due_ms);
    return error == 0 ? treat_all(store, picked) : tw__store_failed(store, error, text);
}

int64_t tw_store_replay(struct tw_store *store, const char *queue, const void *id, size_t id_size,
                        uint64_t due_ms)
{
    return treat_named(store, &(struct picked){.deed = REPLAY,
                                               .queue = queue,
                                               .id = id,
                                               .id_size = id_size,
                                               .at_ms = UINT64_MAX, /* the clock may have gone back since */
                                               .due_ms = due_ms,
                                               .most = INT64_MAX});
}

int64_t tw_store_purge(struct tw_store *store, const char *queue, uint64_t before_ms)
{
    return treat_named(store,
                       &(struct picked){.deed = PURGE, .queue = queue, .at_ms = before_ms, .most = INT64_MAX});
}

int64_t tw_store_promote(struct tw_store *store, const char *queue, const void *id, size_t id_size)
{
    return treat_named(
        store,
        &(struct picked){
            .deed = PROMOTE, .queue = queue, .id = id, .id_size = id_size, .most = TW_STORE_PROMOTE_MAX});
}
