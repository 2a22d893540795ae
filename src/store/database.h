/* SPDX-License-Identifier: MIT
 *
 * A connection of SQLite with the statements of a store. It is one of the store's own connections, or it
 * stands for a connection of the caller during one call.
 */
#ifndef TW_STORE_DATABASE_H
#define TW_STORE_DATABASE_H

#include <tickwheel/store.h>

#include <sqlite3.h>
#include <stdbool.h>

/* The statements: a name and the SQL, in which $ stands for the quoted name of the schema and a point. */
#define TW__STORE_SQL(X)                                                                                       \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                                \
    X(BEGIN_READ, "BEGIN")                                                                                     \
    X(COMMIT, "COMMIT")                                                                                        \
    X(ROLLBACK, "ROLLBACK")                                                                                    \
    X(SAVEPOINT, "SAVEPOINT tw")                                                                               \
    X(ROLLBACK_TO, "ROLLBACK TO tw")                                                                           \
    X(RELEASE, "RELEASE tw")                                                                                   \
    X(META, "SELECT name, value FROM $tw_meta")                                                                \
    X(MAX_SEQ, "SELECT max(seq) FROM $tw_task")                                                                \
    X(LOCK, "UPDATE $tw_meta SET value = value WHERE name = 'seq'")                                            \
    X(SET_SEQ, "UPDATE $tw_meta SET value = ?1 WHERE name = 'seq'")                                            \
    X(FIND, "SELECT due_ms, run, dead_ms FROM $tw_task WHERE queue = ?1 AND id = ?2")                          \
    X(PUT,                                                                                                     \
      "INSERT INTO $tw_task(seq, queue, id, due_ms, period_ms, times, missed, tries, backoff_ms, payload)"     \
      " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"                                                      \
      " ON CONFLICT (queue, id) DO UPDATE SET seq = excluded.seq, due_ms = excluded.due_ms, attempt = 0,"      \
      " call_ms = NULL, run = 0, dead_ms = NULL, period_ms = excluded.period_ms, times = excluded.times,"      \
      " missed = excluded.missed, tries = excluded.tries, backoff_ms = excluded.backoff_ms, error = NULL,"     \
      " payload = excluded.payload")                                                                           \
    X(MOVE, "UPDATE $tw_task SET seq = ?3, due_ms = ?4, call_ms = NULL, attempt = 0, run = 0, error = NULL"    \
            " WHERE queue = ?1 AND id = ?2 AND dead_ms IS NULL")                                               \
    X(CANCEL, "DELETE FROM $tw_task WHERE queue = ?1 AND id = ?2 RETURNING run")                               \
    X(GET, "SELECT " TW__STORE_COLUMNS " FROM $tw_task WHERE queue = ?1 AND id = ?2")                          \
    X(SCAN,                                                                                                    \
      "SELECT " TW__STORE_COLUMNS " FROM $tw_task INDEXED BY tw_due WHERE queue = ?1 AND dead_ms IS NULL"      \
      " AND due_ms >= ?2 AND due_ms <= ?3 ORDER BY due_ms, seq")                                               \
    X(SCAN_TIE, "SELECT " TW__STORE_COLUMNS " FROM $tw_task INDEXED BY tw_due WHERE queue = ?1"                \
                " AND dead_ms IS NULL AND due_ms = ?2 AND seq > ?3 ORDER BY seq")                              \
    X(SCAN_DEAD, "SELECT " TW__STORE_COLUMNS " FROM $tw_task INDEXED BY tw_dead WHERE queue = ?1"              \
                 " AND dead_ms IS NOT NULL AND dead_ms >= ?2 AND dead_ms <= ?3 ORDER BY dead_ms, seq")         \
    X(SCAN_DEAD_TIE, "SELECT " TW__STORE_COLUMNS " FROM $tw_task INDEXED BY tw_dead WHERE queue = ?1"          \
                     " AND dead_ms = ?2 AND seq > ?3 ORDER BY seq")                                            \
    X(QUEUE_AFTER, "SELECT min(name) FROM (SELECT min(queue) AS name FROM $tw_task WHERE queue > ?1"           \
                   " UNION ALL SELECT min(name) FROM $tw_queue WHERE name > ?1 AND paused <> 0)")              \
    X(COUNT, "SELECT count(*) FROM $tw_task INDEXED BY tw_due WHERE queue = ?1 AND dead_ms IS NULL")           \
    X(COUNT_DEAD, "SELECT count(*) FROM $tw_task INDEXED BY tw_dead WHERE queue = ?1 AND dead_ms IS NOT NULL") \
    X(NEXT, "SELECT min(due_ms) FROM $tw_task INDEXED BY tw_due WHERE queue = ?1 AND dead_ms IS NULL")         \
    X(FORECAST, "SELECT due_ms FROM $tw_task INDEXED BY tw_due WHERE queue = ?1 AND dead_ms IS NULL"           \
                " AND due_ms <= ?2")                                                                           \
    X(FORECAST_REPEAT, "SELECT due_ms, period_ms, times, missed FROM $tw_task INDEXED BY tw_repeat"            \
                       " WHERE queue = ?1 AND dead_ms IS NULL AND period_ms > 0 AND due_ms <= ?2")             \
    X(REMOVE, "DELETE FROM $tw_task WHERE seq = ?1")                                                           \
    X(RUN, "UPDATE $tw_meta SET value = value + 1 WHERE name = 'run' RETURNING value")                         \
    X(VERSION, "PRAGMA $data_version")                                                                         \
    X(LOAD, "SELECT seq, due_ms FROM $tw_task INDEXED BY tw_due WHERE queue = ?1 AND dead_ms IS NULL"          \
            " AND due_ms > ?2 AND due_ms <= ?3 ORDER BY due_ms, seq LIMIT ?4")                                 \
    X(LOAD_TIE, "SELECT seq, due_ms FROM $tw_task INDEXED BY tw_due WHERE queue = ?1 AND dead_ms IS NULL"      \
                " AND due_ms = ?2 AND seq > ?3 ORDER BY seq LIMIT ?4")                                         \
    X(NEWS,                                                                                                    \
      "SELECT seq, due_ms, queue FROM $tw_task NOT INDEXED WHERE seq > ?1 AND dead_ms IS NULL ORDER BY seq")   \
    X(PAUSED, "SELECT name FROM $tw_queue WHERE paused <> 0")                                                  \
    X(CLAIM_ROW, "SELECT " TW__STORE_COLUMNS " FROM $tw_task NOT INDEXED WHERE seq = ?1 AND dead_ms IS NULL")  \
    X(CLAIM, "UPDATE $tw_task SET attempt = attempt + 1, run = ?2 WHERE seq = ?1")                             \
    X(BACK, "UPDATE $tw_task SET attempt = attempt - 1, run = 0 WHERE seq = ?1")                               \
    X(AGAIN, "UPDATE $tw_task SET due_ms = ?2, call_ms = NULL, attempt = 0, run = 0, error = NULL,"            \
             " times = max(times - 1, 0) WHERE seq = ?1")                                                      \
    X(RETRY, "UPDATE $tw_task SET due_ms = ?2, call_ms = coalesce(call_ms, due_ms), run = 0, error = ?3"       \
             " WHERE seq = ?1")                                                                                \
    X(BURY, "UPDATE $tw_task SET dead_ms = ?2, run = 0, error = ?3 WHERE seq = ?1")                            \
    X(FIND_DEAD, "SELECT seq FROM $tw_task WHERE queue = ?1 AND id = ?2 AND dead_ms IS NOT NULL")              \
    X(DEAD, "SELECT seq FROM $tw_task INDEXED BY tw_dead WHERE queue = ?1 AND dead_ms IS NOT NULL"             \
            " AND dead_ms < ?2 AND seq <= ?3 ORDER BY dead_ms, seq LIMIT ?4")                                  \
    X(REPLAY, "UPDATE $tw_task SET seq = ?2, due_ms = ?3, call_ms = NULL, attempt = 0, run = 0,"               \
              " dead_ms = NULL, error = NULL WHERE seq = ?1")                                                  \
    X(IS_PAUSED, "SELECT count(*) FROM $tw_queue WHERE name = ?1 AND paused <> 0")                             \
    X(PAUSE, "INSERT INTO $tw_queue(name, paused) VALUES (?1, 1)"                                              \
             " ON CONFLICT (name) DO UPDATE SET paused = 1 WHERE paused = 0")                                  \
    X(RESUME, "UPDATE $tw_queue SET paused = 0 WHERE name = ?1 AND paused <> 0")

#define TW__STORE_COLUMNS                                                                                      \
    "seq, queue, id, due_ms, attempt, run, dead_ms, period_ms, times, missed, tries, backoff_ms, error, "      \
    "payload, call_ms"

enum tw__store_statement {
#define TW__STORE_NAME(name, sql) TW__STORE_##name,
    TW__STORE_SQL(TW__STORE_NAME)
#undef TW__STORE_NAME
        TW__STORE_STATEMENTS
};

struct tw__store_db {
    sqlite3 *db;
    const char *schema; /* not quoted */
    sqlite3_stmt *statement[TW__STORE_STATEMENTS];
    int bound;            /* the first error of binding the present statement */
    uint64_t seq, run;    /* of tw_meta, in a transaction that writes */
    uint64_t written_seq; /* what tw_meta has */
    uint64_t busy_ms;     /* how long it waits for a lock; 0: it is the caller's connection */
    bool has_read;        /* the transaction of the caller had read before the call */
    char *message;        /* of the last error */
    size_t size;
};

/* Notes an error of SQLite, which has just failed. `doing` says in which words the caller asked for it. The
 * errno may explain it, so the caller has set that to 0 before. Returns: the TW_E* code. */
int tw__store_db_error(struct tw__store_db *db, int code, const char *doing);

/* Returns: the TW_E* code of an errno. */
int tw__store_errno_error(int number);

/* Notes an error of the caller, in the words of printf(). Returns: `error`. */
int tw__store_db_refuse(struct tw__store_db *db, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Writes bytes of any kind as text, for an error: each that is not a printable character of UTF-8 as \xNN. A
 * text that is too long for `room` bytes ends with "...". */
void tw__store_show(char *to, size_t room, const void *bytes, size_t size);

/* Returns a statement, ready to be bound and run; NULL: *error has the TW_E* code. */
sqlite3_stmt *tw__store_db_statement(struct tw__store_db *db, enum tw__store_statement which, int *error);

/* Binds a value to the present statement. tw__store_db_step() returns an error of binding. A text or blob must
 * stay as it is until the statement has run. */
void tw__store_bind_number(struct tw__store_db *db, sqlite3_stmt *statement, int at, uint64_t value);
void tw__store_bind_text(struct tw__store_db *db, sqlite3_stmt *statement, int at, const char *text);
void tw__store_bind_blob(struct tw__store_db *db, sqlite3_stmt *statement, int at, const void *blob,
                         size_t size);
void tw__store_bind_value(struct tw__store_db *db, sqlite3_stmt *statement, int at, const sqlite3_value *value);

/* As sqlite3_step(). */
int tw__store_db_step(struct tw__store_db *db, sqlite3_stmt *statement);

/* Runs a statement that returns no rows, which is bound already. Returns: 0 or an error. */
int tw__store_db_run(struct tw__store_db *db, sqlite3_stmt *statement, const char *doing);

/* Runs a statement without parameters. Returns: 0 or an error. */
int tw__store_db_do(struct tw__store_db *db, enum tw__store_statement which, const char *doing);

/* Ends the transaction, if there is one, and takes it back. The message of the last error stays. It fails
 * only if there is no memory and the statement was not prepared before. */
void tw__store_db_roll_back(struct tw__store_db *db);

/* Runs SQL. Returns: 0 or an error. */
int tw__store_db_exec(struct tw__store_db *db, const char *sql, const char *doing);

/* Reads tw_meta at the beginning of a transaction that writes, and writes its seq at the end. */
int tw__store_db_begin_seq(struct tw__store_db *db);
int tw__store_db_end_seq(struct tw__store_db *db);

/* Frees the statements. The connection stays. */
void tw__store_db_fini(struct tw__store_db *db);

#endif
