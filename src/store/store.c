/* SPDX-License-Identifier: MIT
 *
 * A store is two connections to one file: one writes, and all threads share its commits (commit.c); one reads
 * (look.c). The calls for the caller's own connection need neither (the end of this file).
 */
#include "internal.h"

#include <base/assert.h>
#include <base/grow.h>
#include <task/limits.h>

#include "change.h"
#include "commit.h"
#include "open.h"
#include "run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUSY_MS = 5000, BUSY_MAX_MS = 3600000, PAYLOAD = 1000000 };

/* ---- opening --------------------------------------------------------------------------------------------- */

int tw_store_options_check(const struct tw_store_options *options, char *message, size_t size)
{
    TW_ASSERT(options != NULL && (message != NULL || size == 0));
    struct tw__store_db db = {.message = message, .size = size};
    int error =
        tw__store_range_check(&db, "flags", options->flags, 0, TW_STORE_OPEN_LAZY | TW_STORE_OPEN_EXISTING);
    if (error == 0)
        error = tw__store_range_check(&db, "busy_ms", options->busy_ms, 0, BUSY_MAX_MS);
    if (error == 0)
        error = tw__store_range_check(&db, "max_payload", options->max_payload, 0, TW__TASK_PAYLOAD_MAX);
    if (error == 0)
        error = tw__store_reserved_check(&db, "tw_store_options", options->reserved,
                                         TW__GROW_ROOM(options->reserved));
    return error;
}

static int check_path(const char *path, char *message, size_t size)
{
    struct tw__store_db db = {.message = message, .size = size};
    if (path[0] == '\0' || strcmp(path, ":memory:") == 0 || strncmp(path, "file:", 5) == 0)
        return tw__store_db_refuse(&db, TW_EINVAL, "path is '%s': expected the name of a file", path);
    return 0;
}

static void bind_message(struct tw__store_db *db, char *message, size_t size)
{
    db->schema = "main";
    db->message = message;
    db->size = size;
}

/* Opens both connections. Returns: 0, or an error with a message. */
static int open_both(struct tw_store *store, const char *path, char *message, size_t size)
{
    struct tw__store_db *writer = &store->writer.db, *reader = &store->reader->db;
    bind_message(writer, message, size);
    bind_message(reader, message, size);
    int error = tw__store_open(writer, path, &store->options);
    if (error == 0)
        error = tw__store_open_tables(writer, &store->options);
    if (error == 0)
        error = tw__store_open_further(reader, writer, &store->options);
    bind_message(writer, store->writer.message, sizeof store->writer.message);
    bind_message(reader, store->reader->message, sizeof store->reader->message);
    return error;
}

/* Makes a store without connections. NULL: there is no memory. */
static struct tw_store *new_store(const struct tw_store_options *options)
{
    struct whole {
        struct tw_store store; /* the first member, so the block is freed by its address */
        struct tw__store_reader reader;
        struct tw__store_run run;
        struct tw__store_failure failure;
    } *whole = calloc(1, sizeof *whole);
    if (whole == NULL)
        return NULL;
    struct tw_store *store = &whole->store;
    store->reader = &whole->reader;
    store->run = &whole->run;
    store->failure = &whole->failure;
    store->options = *options;
    store->options.busy_ms = options->busy_ms > 0 ? options->busy_ms : BUSY_MS;
    store->options.max_payload = options->max_payload > 0 ? options->max_payload : PAYLOAD;
    store->pid = getpid();
    pthread_mutex_init(&store->failure->lock, NULL);
    pthread_mutex_init(&store->reader->lock, NULL);
    pthread_mutex_init(&store->run->lock, NULL);
    pthread_cond_init(&store->run->ended, NULL);
    tw__store_writer_init(&store->writer);
    return store;
}

int tw_store_open(struct tw_store **store, const char *path, const struct tw_store_options *options,
                  char *message, size_t size)
{
    static const struct tw_store_options defaults = {0};
    char unread[1];
    TW_ASSERT(message != NULL || size == 0);
    char *to = size > 0 ? message : unread;
    size_t room = size > 0 ? size : sizeof unread;
    options = options != NULL ? options : &defaults;
    int error = tw_store_options_check(options, to, room);
    if (error == 0)
        error = check_path(path, to, room);
    if (error != 0)
        return error;
    struct tw_store *made = new_store(options);
    if (made == NULL) {
        snprintf(to, room, "no memory");
        return TW_ENOMEM;
    }
    error = open_both(made, path, to, room);
    if (error != 0)
        tw_store_close(made);
    else
        *store = made;
    return error;
}

void tw_store_close(struct tw_store *store)
{
    if (store == NULL)
        return;
    TW_ASSERT(store->pid == getpid());
    tw_store_stop(store);
    tw__store_handlers_free(store);
    tw__store_close(&store->reader->db);
    tw__store_close(&store->writer.db);
    tw__store_writer_fini(&store->writer);
    pthread_cond_destroy(&store->run->ended);
    pthread_mutex_destroy(&store->run->lock);
    pthread_mutex_destroy(&store->reader->lock);
    pthread_mutex_destroy(&store->failure->lock);
    free(store); /* and its parts: see new_store() */
}

/* ---- changes --------------------------------------------------------------------------------------------- */

struct changes {
    struct tw_store_change *first;
    size_t n;
};

static int work(struct tw__store_db *db, void *arg)
{
    const struct changes *changes = arg;
    return tw__store_change_all(db, changes->first, changes->n);
}

/* Checks the changes. Of several, the message names the wrong one, from 0. */
static int check_all(struct tw__store_db *db, const struct tw_store_change *changes, size_t n,
                     uint64_t max_payload)
{
    int error = 0;
    for (size_t i = 0; i < n && error == 0; i++) {
        char text[TW_STORE_MESSAGE_SIZE];
        struct tw__store_db only_message = {.message = text, .size = sizeof text};
        error = tw__store_change_check(&only_message, &changes[i], max_payload);
        if (error != 0 && n > 1)
            tw__store_db_refuse(db, error, "change %zu: %.480s", i, text);
        else if (error != 0)
            tw__store_db_refuse(db, error, "%s", text);
    }
    return error;
}

int tw_store_apply(struct tw_store *store, struct tw_store_change *changes, size_t n)
{
    char message[TW_STORE_MESSAGE_SIZE];
    struct tw__store_db only_message = {.message = message, .size = sizeof message};
    TW_ASSERT(store->pid == getpid());
    int error = check_all(&only_message, changes, n, store->options.max_payload);
    if (error != 0)
        return tw__store_failed(store, error, message);
    return tw__store_commit(store, work, &(struct changes){changes, n}, false);
}

static int apply_one(struct tw_store *store, struct tw_store_change *change, bool *made)
{
    int error = tw_store_apply(store, change, 1);
    if (error == 0 && change->result != 0)
        return tw__store_failed(store, change->result, tw_store_strerror(change->result));
    if (error == 0 && made != NULL)
        *made = change->made;
    return error;
}

int tw_store_put(struct tw_store *store, const struct tw_store_delayed *put, unsigned conditions, bool *made)
{
    return apply_one(
        store, &(struct tw_store_change){.verb = TW_STORE_VERB_PUT, .task = *put, .conditions = conditions},
        made);
}

int tw_store_move_at(struct tw_store *store, struct tw_store_name name, uint64_t due_ms, unsigned conditions,
                     bool *made)
{
    struct tw_store_delayed task = {.queue = name.queue, .id = name.id, .due_ms = due_ms};
    return apply_one(
        store, &(struct tw_store_change){.verb = TW_STORE_VERB_MOVE, .task = task, .conditions = conditions},
        made);
}

int tw_store_move_in(struct tw_store *store, struct tw_store_name name, uint64_t delay_ms, unsigned conditions,
                     bool *made)
{
    char message[TW_STORE_MESSAGE_SIZE];
    struct tw__store_db only_message = {.message = message, .size = sizeof message};
    uint64_t now_ms = tw_store_now();
    int error = tw__store_range_check(&only_message, "delay_ms", delay_ms, 0, TW_STORE_TIME_MAX - now_ms);
    if (error != 0)
        return tw__store_failed(store, error, message);
    return tw_store_move_at(store, name, now_ms + delay_ms, conditions, made);
}

int tw_store_cancel(struct tw_store *store, struct tw_store_name name, enum tw_cancel *found)
{
    struct tw_store_delayed task = {.queue = name.queue, .id = name.id};
    struct tw_store_change change = {.verb = TW_STORE_VERB_CANCEL, .task = task};
    int error = tw_store_apply(store, &change, 1);
    if (error == 0 && found != NULL)
        *found = change.found;
    return error;
}

static int nothing(struct tw__store_db *db, void *arg)
{
    (void)arg;
    db->revision++; /* a commit that writes nothing does not sync */
    return 0;
}

int tw_store_flush(struct tw_store *store)
{
    if (store->options.flags & TW_STORE_OPEN_LAZY)
        return tw__store_commit(store, nothing, NULL, true);
    char message[TW_STORE_MESSAGE_SIZE];
    int error = tw__store_db_check_files_of(&store->reader->db, message, sizeof message);
    return error == 0 ? 0 : tw__store_failed(store, error, message);
}

/* ---- in the caller's transaction ------------------------------------------------------------------------- */

/* The write lock comes first. If the numbers were read before, another connection could write in between, and
 * SQLite would refuse our writing at once, instead of waiting. */
static int apply_inside(struct tw__store_db *db, struct tw_store_change *changes, size_t n)
{
    int error = tw__store_db_explain(db, tw__store_db_do(db, TW__STORE_LOCK, "begin"));
    if (error == 0)
        error = tw__store_db_check_files(db);
    if (error == 0)
        error = tw__store_db_begin_revisions(db);
    if (error == 0)
        error = tw__store_change_all(db, changes, n);
    if (error == 0)
        error = tw__store_db_end_revisions(db);
    return error;
}

/* Takes the changes back. If SQLite refuses even that, because it is interrupted, has no memory or cannot read
 * the file, the caller has to roll back. Returns: the error of the change, or TW_EROLLBACK. */
static int take_back(struct tw__store_db *db, int error)
{
    size_t size = db->size;
    if (sqlite3_get_autocommit(db->db))
        return error;
    db->size = 0; /* the message of the first error stays */
    bool good = tw__store_db_do(db, TW__STORE_ROLLBACK_TO, "roll back") == 0 &&
                tw__store_db_do(db, TW__STORE_RELEASE, "release") == 0;
    db->size = size;
    return good ? error : TW_EROLLBACK;
}

/* Ends the savepoint. If SQLite is interrupted when that is done already, the changes are made. */
static int release_savepoint(struct tw__store_db *db)
{
    int error = tw__store_db_do(db, TW__STORE_RELEASE, "commit");
    bool gone =
        error == TW_EINTERRUPTED &&
        (sqlite3_get_autocommit(db->db) || tw__store_db_do(db, TW__STORE_ROLLBACK_TO, "commit") == TW_EFORMAT);
    return gone ? 0 : error;
}

/* The statements that take the changes back are prepared first: memory may end in between. */
static int apply_on(struct tw__store_db *db, struct tw_store_change *changes, size_t n)
{
    int error = 0;
    if (tw__store_db_statement(db, TW__STORE_ROLLBACK_TO, &error) == NULL ||
        tw__store_db_statement(db, TW__STORE_RELEASE, &error) == NULL)
        return error;
    error = tw__store_db_do(db, TW__STORE_SAVEPOINT, "savepoint");
    if (error != 0) /* SQLite may have made it and then been interrupted */
        return error == TW_EINTERRUPTED ? take_back(db, error) : error;
    error = apply_inside(db, changes, n);
    if (error == 0)
        error = release_savepoint(db);
    return error == 0 ? 0 : take_back(db, error);
}

int tw_store_apply_on(struct sqlite3 *handle, const char *schema, struct tw_store_change *changes, size_t n,
                      char *message, size_t size)
{
    struct tw__store_db db = {
        .db = handle, .schema = schema != NULL ? schema : "main", .message = message, .size = size};
    sqlite3_int64 rowid = sqlite3_last_insert_rowid(handle);
    db.has_read = sqlite3_txn_state(handle, db.schema) == SQLITE_TXN_READ;
    TW_ASSERT(message != NULL || size == 0);
    if (size > 0)
        message[0] = '\0';
    int error = check_all(&db, changes, n, TW__TASK_PAYLOAD_MAX);
    if (error == 0 && n > 0)
        error = apply_on(&db, changes, n);
    tw__store_db_fini(&db);
    sqlite3_set_last_insert_rowid(handle, rowid); /* the caller's own row */
    return error;
}
