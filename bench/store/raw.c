/* SPDX-License-Identifier: MIT
 *
 * The floor: the least that a program can do to file the same rows. It prepares each statement once, counts the
 * numbers of the rows in memory, and checks nothing.
 */
#include "raw.h"
#include "tools.h"

#include <stdlib.h>
#include <tickwheel/store.h>

enum { BUSY_MS = 5000 };

static const char *const sql_of[RAW_STATEMENTS] = {
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
    [PUT] = "INSERT INTO tw_task(revision, queue, id, due_ms, next_ms, place_ms, every_ms, times, missed,"
            " payload) VALUES (?3, ?1, ?2, ?4, ?4, ?4, 0, 1, NULL, ?5)"
            " ON CONFLICT (queue, id) DO UPDATE SET revision = excluded.revision, due_ms = excluded.due_ms,"
            " next_ms = excluded.next_ms, place_ms = excluded.place_ms, attempt = 0, run = 0, dead_ms = NULL, "
            "every_ms = excluded.every_ms, "
            "times = excluded.times,"
            " missed = excluded.missed, tries = NULL, backoff_ms = NULL, error = NULL,"
            " payload = excluded.payload",
    [CANCEL] = "DELETE FROM tw_task WHERE queue = ?1 AND id = ?2",
    [MOVE] =
        "UPDATE tw_task SET revision = ?3, due_ms = ?4, next_ms = ?4, place_ms = ?4 WHERE queue = ?1 AND id = "
        "?2 AND dead_ms "
        "IS NULL",
    [DUE] =
        "SELECT revision, id, payload FROM tw_task WHERE queue = '" QUEUE "' AND dead_ms IS NULL AND run = 0"
        " AND place_ms <= ?1 ORDER BY place_ms, revision LIMIT ?2",
    [CLAIM] = "UPDATE tw_task SET attempt = attempt + 1, run = 1 WHERE revision = ?1",
    [DONE] = "DELETE FROM tw_task WHERE revision = ?1",
    [COUNT] = "SELECT count(*) FROM tw_task",
    [MAX_REVISION] = "SELECT max(revision) FROM tw_task",
};

void raw_run(struct raw *raw, const char *sql)
{
    if (sqlite3_exec(raw->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail("raw SQLite: %s: %s", sql, sqlite3_errmsg(raw->db));
}

void raw_do(struct raw *raw, enum raw_statement which)
{
    sqlite3_stmt *statement = raw->statement[which];
    if (sqlite3_step(statement) != SQLITE_DONE)
        fail("raw SQLite: %s: %s", sql_of[which], sqlite3_errmsg(raw->db));
    sqlite3_reset(statement);
}

void raw_change(struct raw *raw, enum raw_statement which)
{
    raw_do(raw, which);
    if (sqlite3_changes(raw->db) != 1)
        fail("raw SQLite: %s: no such row", sql_of[which]);
}

int64_t raw_ask(struct raw *raw, enum raw_statement which)
{
    sqlite3_stmt *question = raw->statement[which];
    if (sqlite3_step(question) != SQLITE_ROW)
        fail("raw SQLite: %s: %s", sql_of[which], sqlite3_errmsg(raw->db));
    int64_t answer = sqlite3_column_int64(question, 0);
    sqlite3_reset(question);
    return answer;
}

/* The store's own call makes the tables. */
static void make_file(const char *path)
{
    struct tw_store *store;
    char message[TW_STORE_MESSAGE_SIZE];
    if (tw_store_open(&store, path, NULL, message, sizeof message) != 0)
        fail("%s: %s", path, message);
    tw_store_close(store);
}

/* The settings are those of src/store/open.c. */
struct raw *raw_open(const char *path)
{
    struct raw *raw = need(1, sizeof *raw);
    make_file(path);
    if (sqlite3_open(path, &raw->db) != SQLITE_OK)
        fail("%s: %s", path, sqlite3_errmsg(raw->db));
    sqlite3_busy_timeout(raw->db, BUSY_MS);
    raw_run(raw, "PRAGMA synchronous=FULL; PRAGMA cache_size=-16384; PRAGMA wal_autocheckpoint=10000");
    for (int i = 0; i < RAW_STATEMENTS; i++)
        if (sqlite3_prepare_v3(raw->db, sql_of[i], -1, SQLITE_PREPARE_PERSISTENT, &raw->statement[i], NULL))
            fail("raw SQLite: %s: %s", sql_of[i], sqlite3_errmsg(raw->db));
    raw->revision = raw_ask(raw, MAX_REVISION);
    return raw;
}

void raw_close(struct raw *raw)
{
    for (int i = 0; i < RAW_STATEMENTS; i++)
        sqlite3_finalize(raw->statement[i]);
    sqlite3_close(raw->db);
    free(raw);
}

/* ---- changes --------------------------------------------------------------------------------------------- */

static void bind(struct raw *raw, enum raw_statement which, const struct row *row)
{
    sqlite3_stmt *statement = raw->statement[which];
    sqlite3_bind_text(statement, 1, QUEUE, -1, SQLITE_STATIC);
    sqlite3_bind_blob(statement, 2, row->id, (int)row->id_size, SQLITE_STATIC);
    if (which != CANCEL) {
        sqlite3_bind_int64(statement, 3, ++raw->revision);
        sqlite3_bind_int64(statement, 4, (sqlite3_int64)row->due_ms);
    }
    if (which == PUT)
        sqlite3_bind_blob(statement, 5, payload, PAYLOAD, SQLITE_STATIC);
}

static void change_all(struct raw *raw, enum raw_statement which, const struct row *rows, size_t n)
{
    raw_do(raw, BEGIN);
    for (size_t i = 0; i < n; i++) {
        bind(raw, which, &rows[i]);
        raw_change(raw, which);
    }
    raw_do(raw, COMMIT);
}

void raw_put(struct raw *raw, const struct row *rows, size_t n)
{
    change_all(raw, PUT, rows, n);
}

static void *open_one(const char *path)
{
    return raw_open(path);
}

static void close_one(void *self)
{
    raw_close(self);
}

static void put(void *self, const struct row *rows, size_t n)
{
    change_all(self, PUT, rows, n);
}

static void cancel(void *self, const struct row *rows, size_t n)
{
    change_all(self, CANCEL, rows, n);
}

static void move(void *self, const struct row *rows, size_t n)
{
    change_all(self, MOVE, rows, n);
}

const struct peer raw_peer = {"raw", open_one, close_one, put, cancel, move};
