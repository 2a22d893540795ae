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
#include <task/backoff.h>

/* The statements: a name and the SQL, in which $ stands for the quoted name of the schema and a point. */
#define TW__STORE_SQL(X)                                                                                       \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                                \
    X(BEGIN_READ, "BEGIN")                                                                                     \
    X(COMMIT, "COMMIT")                                                                                        \
    X(ROLLBACK, "ROLLBACK")                                                                                    \
    X(SAVEPOINT, "SAVEPOINT tw")                                                                               \
    X(ROLLBACK_TO, "ROLLBACK TO tw")                                                                           \
    X(RELEASE, "RELEASE tw")                                                                                   \
    X(META, "SELECT format, revision, run, changes, restored, (SELECT max(revision) FROM $tw_task), clock_ms," \
            " " TW__STORE_WAITS ", backs FROM $tw_meta")                                                       \
    X(SET_META, "UPDATE $tw_meta SET revision = ?1, changes = ?2, clock_ms = ?3 WHERE format = 1")             \
    X(SET_UNTIL, "UPDATE $tw_meta SET until_ms = ?1 WHERE format = 1")                                         \
    X(LOCK, "UPDATE $tw_meta SET revision = revision")                                                         \
    X(FIND, "SELECT due_ms, dead_ms," TW__STORE_LEASED ", replaced, every_ms," TW__STORE_HELD                  \
            "," TW__STORE_HELD " AND place_ms <= (SELECT clock FROM $tw_clock)"                                \
            " FROM $tw_task WHERE queue = ?1 AND id = ?2")                                                     \
    X(PUT,                                                                                                     \
      "INSERT INTO $tw_task(revision, queue, id, due_ms, next_ms, place_ms, every_ms, times, "                 \
      "missed, " TW__STORE_WAITS ", max_late_ms, payload)"                                                     \
      " VALUES (?1, ?2, ?3, ?4, ?4, ?11, ?5, ?6, ?7, ?8, ?9, ?13 / 100.0, ?14, ?15, ?12, ?10)" TW__STORE_OVER) \
    X(PUT_PLAIN, "INSERT INTO $tw_task(revision, queue, id, due_ms, next_ms, place_ms, payload)"               \
                 " VALUES (?1, ?2, ?3, ?4, ?4, ?11, ?10)" TW__STORE_OVER)                                      \
    X(PUT_NEW, "INSERT OR FAIL INTO $tw_task(revision, queue, id, due_ms, next_ms, place_ms, payload)"         \
               " SELECT column1, ?1, column2, column3, column3, column4, column5"                              \
               " FROM (VALUES " TW__STORE_TASK_8 ", " TW__STORE_TASK_8 ", " TW__STORE_TASK_8                   \
               ", " TW__STORE_TASK_8 ") WHERE true ON CONFLICT (queue, id) DO NOTHING")                        \
    X(RENEW, "UPDATE $tw_task SET" TW__STORE_OPTIONS                                                           \
             ", missed_periods = CASE ?5 WHEN 0 THEN 0 ELSE missed_periods * every_ms / ?5 END"                \
             " WHERE queue = ?2 AND id = ?3")                                                                  \
    X(MOVE, "UPDATE $tw_task SET revision = ?3, due_ms = ?4, next_ms = ?4, place_ms = ?5," TW__STORE_REPLACE   \
            ", attempt = 0, lapses = 0, missed_periods = 0, error = NULL"                                      \
            " WHERE queue = ?1 AND id = ?2 AND dead_ms IS NULL AND (replaced = 0 OR run > 0)")                 \
    X(MOVE_BEHIND,                                                                                             \
      "UPDATE $tw_task SET revision = ?3, due_ms = ?4, next_ms = ?4,"                                          \
      " replaced = max(replaced, attempt), attempt = 0, lapses = 0, missed_periods = 0, error = NULL"          \
      " WHERE queue = ?1 AND id = ?2 AND" TW__STORE_HELD)                                                      \
    X(CANCEL_LEASE, "DELETE FROM $tw_lease WHERE queue = ?1 AND id = ?2")                                      \
    X(LAPSE, "INSERT INTO $tw__end SELECT revision, queue, id, how, 1, end_ms, NULL, error FROM $tw__over"     \
             " WHERE queue = ?1 AND id = ?2")                                                                  \
    X(IS_OVER, "SELECT 1 FROM $tw__over WHERE queue = ?1 AND id = ?2")                                         \
    X(RAN_OUT, "SELECT queue, id FROM $tw_lease INDEXED BY tw_lease_end WHERE end_ms <= ?1"                    \
               " ORDER BY end_ms, filed_ms LIMIT ?2")                                                          \
    X(FIRST_END, "SELECT end_ms FROM $tw_lease INDEXED BY tw_lease_end WHERE end_ms < 4611686018427387904"     \
                 " ORDER BY end_ms LIMIT 1")                                                                   \
    X(END_REPLACED,                                                                                            \
      "UPDATE $tw_task SET revision = ?9, replaced = 0, run = 0, token = 0, next_ms = max(next_ms, ?2),"       \
      " place_ms = max(place_ms, ?2)"                                                                          \
      " WHERE queue = ?4 AND id = ?5 AND run = ?6 AND token = ?7 AND replaced > 0")                            \
    X(END_ALL_REPLACED,                                                                                        \
      "UPDATE $tw_task SET revision = ?3 + old.n, replaced = 0, run = 0, token = 0,"                           \
      " next_ms = max(next_ms, ?2), place_ms = max(place_ms, ?2)"                                              \
      " FROM (SELECT revision, row_number() OVER (ORDER BY run, revision) AS n"                                \
      " FROM $tw_task INDEXED BY tw_run WHERE run > 0 AND run <> ?1 AND replaced > 0) AS old"                  \
      " WHERE tw_task.revision = old.revision")                                                                \
    X(CANCEL, "DELETE FROM $tw_task WHERE queue = ?1 AND id = ?2 AND run = 0 AND replaced = 0")                \
    X(CANCEL_TAKEN, "DELETE FROM $tw_task WHERE queue = ?1 AND id = ?2"                                        \
                    " RETURNING CASE WHEN" TW__STORE_LEASED " THEN 1 ELSE 0 END")                              \
    X(GET, "SELECT " TW__STORE_COLUMNS " FROM $tw_task WHERE queue = ?1 AND id = ?2")                          \
    X(SCAN,                                                                                                    \
      "SELECT " TW__STORE_COLUMNS " FROM $tw_task INDEXED BY tw_order WHERE queue = ?1 AND dead_ms IS NULL"    \
      " AND place_ms >= ?2 AND place_ms <= ?3 ORDER BY place_ms, revision")                                    \
    X(SCAN_TIE, "SELECT " TW__STORE_COLUMNS " FROM $tw_task INDEXED BY tw_order WHERE queue = ?1"              \
                " AND dead_ms IS NULL AND place_ms = ?2 AND revision > ?3 ORDER BY revision")                  \
    X(SCAN_DEAD, "SELECT " TW__STORE_COLUMNS " FROM $tw_task INDEXED BY tw_dead WHERE queue = ?1"              \
                 " AND dead_ms IS NOT NULL AND dead_ms >= ?2 AND dead_ms <= ?3 ORDER BY dead_ms, revision")    \
    X(SCAN_DEAD_TIE, "SELECT " TW__STORE_COLUMNS " FROM $tw_task INDEXED BY tw_dead WHERE queue = ?1"          \
                     " AND dead_ms = ?2 AND revision > ?3 ORDER BY revision")                                  \
    X(SCAN_ALL,                                                                                                \
      "SELECT " TW__STORE_COLUMNS " FROM $tw_task INDEXED BY tw_order WHERE queue >= ''"                       \
      " AND dead_ms IS NULL AND place_ms >= ?2 AND place_ms <= ?3 ORDER BY queue, place_ms, revision")         \
    X(SCAN_ALL_DEAD, "SELECT " TW__STORE_COLUMNS " FROM $tw_task INDEXED BY tw_dead WHERE queue >= ''"         \
                     " AND dead_ms IS NOT NULL AND dead_ms >= ?2 AND dead_ms <= ?3"                            \
                     " ORDER BY queue, dead_ms, revision")                                                     \
    X(QUEUE_AFTER, "SELECT min(name) FROM (SELECT min(queue) AS name FROM $tw_task WHERE queue > ?1"           \
                   " UNION ALL SELECT min(name) FROM $tw_queue WHERE name > ?1 AND paused <> 0)")              \
    X(COUNT, "SELECT count(*) FROM $tw_task INDEXED BY tw_order WHERE queue = ?1 AND dead_ms IS NULL")         \
    X(COUNT_DEAD, "SELECT count(*) FROM $tw_task INDEXED BY tw_dead WHERE queue = ?1 AND dead_ms IS NOT NULL") \
    X(COUNT_ALL, "SELECT count(*) FROM $tw_task INDEXED BY tw_order WHERE queue >= '' AND dead_ms IS NULL")    \
    X(COUNT_ALL_DEAD,                                                                                          \
      "SELECT count(*) FROM $tw_task INDEXED BY tw_dead WHERE queue >= '' AND dead_ms IS NOT NULL")            \
    X(LIVE, "SELECT count(*), " TW__STORE_FIRST(                                                               \
                "?1", "?2") ", sum(replaced <> 0)"                                                             \
                            " FROM $tw_task INDEXED BY tw_order WHERE queue = ?1 AND dead_ms IS NULL")         \
    X(DUE, "SELECT count(*), sum(run <> 0 AND run = ?3) FROM $tw_task INDEXED BY tw_order WHERE queue = ?1"    \
           " AND dead_ms IS NULL AND replaced = 0 AND place_ms <= ?2")                                         \
    X(NEXT_ALL, "WITH RECURSIVE q(name) AS (SELECT min(queue) FROM $tw_task INDEXED BY tw_order"               \
                " WHERE queue >= '' AND dead_ms IS NULL UNION ALL"                                             \
                " SELECT (SELECT min(queue) FROM $tw_task INDEXED BY tw_order WHERE queue > q.name"            \
                " AND dead_ms IS NULL) FROM q WHERE q.name IS NOT NULL)"                                       \
                " SELECT min(" TW__STORE_FIRST("q.name", "?2") ") FROM q")                                     \
    X(NEXT, "SELECT " TW__STORE_FIRST("?1", "?2"))                                                             \
    X(FORECAST, "SELECT place_ms FROM $tw_task INDEXED BY tw_order WHERE queue = ?1 AND dead_ms IS NULL"       \
                " AND replaced = 0 AND place_ms > ?3 AND place_ms <= ?2")                                      \
    X(FORECAST_REPEAT,                                                                                         \
      "SELECT due_ms, every_ms, times, missed, place_ms, attempt, missed_periods FROM $tw_task"                \
      " INDEXED BY tw_repeat WHERE queue = ?1 AND dead_ms IS NULL AND every_ms > 0 AND replaced = 0"           \
      " AND place_ms > ?3 AND place_ms <= ?2 AND next_ms > ?3" TW__STORE_NOT_LEASED)                           \
    X(FORECAST_EACH,                                                                                           \
      "SELECT place_ms FROM $tw_task INDEXED BY tw_order WHERE queue = ?1 AND dead_ms IS NULL"                 \
      " AND replaced = 0 AND place_ms > ?3 AND place_ms <= ?2 AND next_ms > ?3" TW__STORE_NOT_LEASED)          \
    X(LEASED_AHEAD,                                                                                            \
      "SELECT EXISTS (SELECT 1 FROM $tw_task INDEXED BY tw_run WHERE run > 0 AND dead_ms IS NULL"              \
      " AND replaced = 0 AND place_ms > ?1)")                                                                  \
    X(REMOVE, "DELETE FROM $tw_task WHERE revision = ?1")                                                      \
    X(RUN, "UPDATE $tw_meta SET run = run + 1 RETURNING run")                                                  \
    X(VERSION, "PRAGMA $data_version")                                                                         \
    X(SCHEMA_VERSION, "PRAGMA $schema_version")                                                                \
    X(LOAD, "SELECT revision, place_ms FROM $tw_task INDEXED BY tw_order WHERE queue = ?1 AND dead_ms IS NULL" \
            " AND replaced = 0 AND place_ms > ?2 AND place_ms <= ?3 ORDER BY place_ms, revision LIMIT ?4")     \
    X(LOAD_TIE,                                                                                                \
      "SELECT revision, place_ms FROM $tw_task INDEXED BY tw_order WHERE queue = ?1 AND dead_ms IS NULL"       \
      " AND replaced = 0 AND place_ms = ?2 AND revision > ?3 ORDER BY revision LIMIT ?4")                      \
    X(SWEEP, "SELECT queue, place_ms, revision FROM $tw_task INDEXED BY tw_order WHERE dead_ms IS NULL"        \
             " AND queue > ?1 AND replaced = 0 AND place_ms BETWEEN 0 AND 253402300799999"                     \
             " ORDER BY queue, place_ms, revision")                                                            \
    X(NEWS,                                                                                                    \
      "SELECT revision, place_ms, queue FROM $tw_task NOT INDEXED WHERE revision > ?1 AND dead_ms IS NULL"     \
      " AND replaced = 0 ORDER BY revision")                                                                   \
    X(PAUSED, "SELECT name FROM $tw_queue WHERE paused <> 0")                                                  \
    X(CLAIM_ROW, "SELECT " TW__STORE_COLUMNS ", ?3 FROM $tw_task NOT INDEXED"                                  \
                 " WHERE revision = ?1 AND queue = ?2 AND dead_ms IS NULL AND replaced = 0")                   \
    X(CLAIM_ROWS,                                                                                              \
      "SELECT " TW__STORE_COLUMNS ", column3 FROM (VALUES " TW__STORE_NAMED_REVISIONS ") CROSS JOIN $tw_task"  \
      " NOT INDEXED ON revision = column1 AND queue = column2 WHERE dead_ms IS NULL AND replaced = 0")         \
    X(CHECK, "SELECT 1 FROM $tw_task NOT INDEXED" TW__STORE_OF_JOB " AND dead_ms IS NULL"                      \
             " AND NOT EXISTS (SELECT 1 FROM $tw_queue WHERE name = ?4 AND paused <> 0)"                       \
             " AND NOT EXISTS (SELECT 1 FROM $tw_meta WHERE restored & 1 OR run <> ?6 OR format <> 1)")        \
    X(CLAIM, "UPDATE $tw_task SET attempt = attempt + 1, run = ?2, token = ?3,"                                \
             " due_ms = ?4, next_ms = ?5, missed_periods = ?6 WHERE revision = ?1")                            \
    X(CLAIM_MANY,                                                                                              \
      "UPDATE OR FAIL $tw_task NOT INDEXED SET attempt = attempt + 1, run = ?1,"                               \
      " token = ?2 + " TW__STORE_TEXT_OF(TW__STORE_STEP(revision)) " WHERE revision IN (" TW__STORE_REVISIONS  \
                                                                   ")")                                        \
    X(STAND_BEHIND,                                                                                            \
      "UPDATE $tw_task SET revision = ?2, run = ?3, token = ?4, replaced = ?5 WHERE revision = ?1")            \
    X(PLACE_AGAIN, "INSERT INTO $tw__again(clock) VALUES (?1)")                                                \
    X(LAPSED, "UPDATE $tw_task INDEXED BY tw_run SET lapses = lapses + 1 WHERE run > 0 AND run <> ?1"          \
              " AND replaced = 0 AND dead_ms IS NULL" TW__STORE_WHOLE                                          \
              " RETURNING " TW__STORE_COLUMNS_WITH("NULL, NULL") ", token")                                    \
    X(BURY_PERIOD, "INSERT INTO $tw_task(revision, queue, id, due_ms, next_ms, place_ms, attempt, lapses, "    \
                   "dead_ms, " TW__STORE_WAITS                                                                 \
                   ", max_late_ms, error, payload) SELECT ?9, queue, ?8, due_ms, next_ms, place_ms,"           \
                   " attempt, lapses, ?2, " TW__STORE_WAITS                                                    \
                   ", max_late_ms, ?3, payload FROM $tw_task NOT INDEXED" TW__STORE_OF_JOB                     \
                   " ON CONFLICT (queue, id) DO NOTHING")                                                      \
    X(DONE, "DELETE FROM $tw_task NOT INDEXED" TW__STORE_OF_JOB)                                               \
    X(DONE_MANY,                                                                                               \
      "DELETE FROM $tw_task NOT INDEXED WHERE queue = ?1 AND run = ?2 AND token = ?3 + " TW__STORE_TEXT_OF(    \
          TW__STORE_STEP(revision)) " AND revision IN (" TW__STORE_REVISIONS ")")                              \
    X(KEEP, "UPDATE $tw_task SET run = ?2 WHERE queue = ?4 AND id = ?5 AND run = ?6 AND token = ?7"            \
            " AND (revision = ?1 OR replaced > 0)")                                                            \
    X(OPTIONS_OF, "SELECT " TW__STORE_WAITS                                                                    \
                  ", every_ms, times, missed_periods FROM $tw_task NOT INDEXED" TW__STORE_OF_JOB)              \
    X(BACK, "UPDATE $tw_task NOT INDEXED SET attempt = attempt - 1, run = 0, token = 0,"                       \
            " next_ms = min(next_ms, ?2), place_ms = min(place_ms, ?2),"                                       \
            " missed_periods = CASE attempt WHEN 1 THEN 0 ELSE missed_periods END" TW__STORE_OF_JOB)           \
    X(BACK_AT,                                                                                                 \
      "UPDATE $tw_task NOT INDEXED SET revision = ?9, next_ms = ?2, place_ms = ?8, attempt = attempt - 1,"     \
      " run = 0, token = 0,"                                                                                   \
      " missed_periods = CASE attempt WHEN 1 THEN 0 ELSE missed_periods END" TW__STORE_OF_JOB)                 \
    X(AGAIN,                                                                                                   \
      "UPDATE $tw_task NOT INDEXED SET revision = ?9, due_ms = ?2, next_ms = ?2, place_ms = ?8, attempt = 0,"  \
      " lapses = 0, missed_periods = 0, run = 0, token = 0,"                                                   \
      " error = NULL, times = max(times - 1, 0)" TW__STORE_OF_JOB)                                             \
    X(RETRY, "UPDATE $tw_task NOT INDEXED SET revision = ?9, next_ms = ?2, place_ms = ?8, run = 0, token = 0," \
             " error = ?3" TW__STORE_OF_JOB)                                                                   \
    X(BURY, "UPDATE $tw_task NOT INDEXED SET dead_ms = ?2, run = 0, token = 0, error = ?3" TW__STORE_OF_JOB)   \
    X(FIND_DEAD,                                                                                               \
      "SELECT revision, length(payload) FROM $tw_task WHERE queue = ?1 AND id = ?3 AND dead_ms IS NOT NULL"    \
      " AND dead_ms < ?2")                                                                                     \
    X(DEAD, "SELECT revision, length(payload) FROM $tw_task INDEXED BY tw_dead WHERE queue = ?1"               \
            " AND dead_ms IS NOT NULL AND dead_ms < ?2 ORDER BY dead_ms, revision LIMIT ?3")                   \
    X(FIND_WAITING,                                                                                            \
      "SELECT revision, length(payload) FROM $tw_task WHERE queue = ?1 AND id = ?3 AND dead_ms IS NULL"        \
      " AND next_ms > ?2 AND replaced = 0" TW__STORE_NOT_LEASED)                                               \
    X(WAITING, "SELECT revision, length(payload) FROM $tw_task INDEXED BY tw_order WHERE queue = ?1"           \
               " AND dead_ms IS NULL AND replaced = 0 AND place_ms > ?2 AND next_ms > ?2" TW__STORE_NOT_LEASED \
               " ORDER BY place_ms, revision LIMIT ?3")                                                        \
    X(PROMOTE, "UPDATE $tw_task SET revision = ?2, next_ms = ?3, place_ms = ?4 WHERE revision = ?1")           \
    X(ANEW,                                                                                                    \
      "UPDATE $tw_task SET revision = ?2, due_ms = ?3, next_ms = ?3, place_ms = ?4, attempt = 0, lapses = 0,"  \
      " missed_periods = 0, run = 0, dead_ms = NULL, error = NULL WHERE revision = ?1")                        \
    X(MARK, "UPDATE $tw_meta SET restored = (random() & 4611686018427387903) | 1")                             \
    X(UNMARK, "UPDATE $tw_meta SET restored = random() & 4611686018427387902")                                 \
    X(IS_PAUSED, "SELECT count(*) FROM $tw_queue WHERE name = ?1 AND paused <> 0")                             \
    X(PAUSE, "INSERT INTO $tw_queue(name, paused) VALUES (?1, 1)"                                              \
             " ON CONFLICT (name) DO UPDATE SET paused = 1 WHERE paused = 0")                                  \
    X(RESUME, "DELETE FROM $tw_queue WHERE name = ?1 AND paused <> 0")

/* The tasks of PUT_NEW: each has a number, an id, its due time, its place and a payload. */
#define TW__STORE_TASK_2 "(?, ?, ?, ?, ?), (?, ?, ?, ?, ?)"
#define TW__STORE_TASK_8 TW__STORE_TASK_2 ", " TW__STORE_TASK_2 ", " TW__STORE_TASK_2 ", " TW__STORE_TASK_2
enum { TW__STORE_NEW = 32 };

/* A token is the random number of the commit that has claimed the row, below 2^62, plus a step for the row, in
 * C and SQL alike: so one parameter tells the tokens of a commit. The jitter of a wait is the rest of a
 * division of the token. The steps of neighbours have no pattern, so tasks that fail together spread as by
 * chance. (Rejected: the number of the row as its step: then these tasks are due again within milliseconds. A
 * multiple of it: then they are so with one wait in a hundred.) */
#define TW__STORE_STEP(revision) (((revision)&1048575) * ((((revision)&1048575) * 648053) & 1048575) * 2718281)
#define TW__STORE_TEXT_OF(expanded) TW__STORE_TEXT(expanded)
#define TW__STORE_TEXT(words) #words

/* The numbers of the tasks of CLAIM_MANY and DONE_MANY. */
#define TW__STORE_REVISIONS                                                                                    \
    TW__STORE_REVISIONS_8 ", " TW__STORE_REVISIONS_8 ", " TW__STORE_REVISIONS_8 ", " TW__STORE_REVISIONS_8
#define TW__STORE_REVISIONS_8 "?, ?, ?, ?, ?, ?, ?, ?"
enum { TW__STORE_MANY = 32 };

/* The same with their queues and the numbers of their claims, for CLAIM_ROWS. */
#define TW__STORE_NAMED_REVISIONS                                                                              \
    TW__STORE_NAMED_8 ", " TW__STORE_NAMED_8 ", " TW__STORE_NAMED_8 ", " TW__STORE_NAMED_8
#define TW__STORE_NAMED_8                                                                                      \
    "(?, ?, ?), (?, ?, ?), (?, ?, ?), (?, ?, ?), (?, ?, ?), (?, ?, ?), (?, ?, ?), (?, ?, ?)"

/* A handler of the file's present run has the task. Most tasks have no run, and then tw_meta is not read. */
#define TW__STORE_AT_WORK " run > 0 AND run = (SELECT run FROM $tw_meta)"

/* A program has the task, which it has taken by tw_take. And: a handler has it, or a program. */
#define TW__STORE_HELD " (replaced <> 0 AND run = 0)"
#define TW__STORE_LEASED " (" TW__STORE_HELD " OR (" TW__STORE_AT_WORK "))"

/* What stays of the attempt that a put or a move has found under way, of a handler. The run is that of the
 * file: one that begins in the same transaction ends the attempts of those before. */
#define TW__STORE_REPLACE                                                                                      \
    " replaced = CASE WHEN" TW__STORE_AT_WORK " THEN max(replaced, attempt) ELSE 0 END,"                       \
    " token = CASE WHEN" TW__STORE_AT_WORK " THEN token ELSE 0 END,"                                           \
    " run = CASE WHEN" TW__STORE_AT_WORK " THEN run ELSE 0 END"

/* How a task is tried again, in tw_task and tw_meta. */
#define TW__STORE_WAITS "tries, backoff_ms, factor, backoff_max_ms, jitter"

/* A damaged row may have anything in its columns. Such a task is left alone: a run that comes to it in its turn
 * tells of it (claim.c). */
#define TW__STORE_WHOLE                                                                                        \
    " AND typeof(queue) = 'text' AND typeof(id) = 'blob' AND length(id) BETWEEN 1 AND 1024"                    \
    " AND due_ms BETWEEN 0 AND 253402300799999"

/* No handler has the task. If a program has it, its `replaced` is not 0. */
#define TW__STORE_NOT_LEASED " AND (run = 0 OR run <> (SELECT run FROM $tw_meta))"

/* next_ms of the first task of a queue that waits. If the clock has gone back, the place of a task may lie
 * ahead though the task is ready or leased. */
#define TW__STORE_FIRST(queue, now)                                                                            \
    "(SELECT next_ms FROM $tw_task INDEXED BY tw_order WHERE queue = " queue                                   \
    " AND dead_ms IS NULL AND replaced = 0 AND place_ms > " now " AND next_ms > " now TW__STORE_NOT_LEASED     \
    " ORDER BY place_ms, revision LIMIT 1)"

/* A put of a task that is there makes its row the new task, with all its options: `excluded` is the row that a
 * new task would have. If a program has the task, nothing happens, and change.c goes on. */
#define TW__STORE_OVER                                                                                         \
    " ON CONFLICT (queue, id) DO UPDATE SET revision = excluded.revision, due_ms = excluded.due_ms,"           \
    " next_ms = excluded.next_ms, place_ms = excluded.place_ms, attempt = 0, lapses = 0," TW__STORE_REPLACE    \
    ", missed_periods = 0, dead_ms = NULL, error = NULL, every_ms = excluded.every_ms,"                        \
    " times = excluded.times, missed = excluded.missed, tries = excluded.tries,"                               \
    " backoff_ms = excluded.backoff_ms, factor = excluded.factor, backoff_max_ms = excluded.backoff_max_ms,"   \
    " jitter = excluded.jitter, max_late_ms = excluded.max_late_ms, payload = excluded.payload"                \
    " WHERE replaced = 0 OR run > 0"

/* What a put gives a task besides its times. bind_task() and bind_options() bind these. */
#define TW__STORE_OPTIONS                                                                                      \
    " every_ms = ?5, times = ?6, missed = ?7, tries = ?8, backoff_ms = ?9, factor = ?13 / 100.0,"              \
    " backoff_max_ms = ?14, jitter = ?15, max_late_ms = ?12, payload = ?10"

#define TW__STORE_COLUMNS TW__STORE_COLUMNS_WITH("error, payload")

/* The same, with something else in the place of the error and the payload. */
#define TW__STORE_COLUMNS_WITH(texts)                                                                          \
    "revision, queue, id, due_ms, attempt, run, dead_ms, every_ms, times, missed, tries, backoff_ms, " texts   \
    ", next_ms, lapses, place_ms, missed_periods, replaced, max_late_ms, factor, backoff_max_ms, jitter"

/* The row of a job's task. A file that was restored may have another task under its number, or another attempt
 * of the same task, which has another token. tw__store_job_bind() binds these numbers. */
#define TW__STORE_OF_JOB " WHERE revision = ?1 AND queue = ?4 AND id = ?5 AND run = ?6 AND token = ?7"

enum tw__store_statement {
#define TW__STORE_NAME(name, sql) TW__STORE_##name,
    TW__STORE_SQL(TW__STORE_NAME)
#undef TW__STORE_NAME
        TW__STORE_STATEMENTS
};

enum { TW__STORE_PATH = 4352 }; /* bytes that hold a path of SQLite's, and an ending */

/* A file, whatever its name is. */
struct tw__store_file {
    uint64_t device, inode; /* inode 0: it is not known */
};

/* The files that a connection has open: the file of the store, and the log and the log's index beside it. They
 * are not known for a connection of the caller. */
struct tw__store_files {
    struct tw__store_file main, log, index;
};

/* The numbers of tw_meta, as a transaction has found them. */
struct tw__store_seen {
    uint64_t revision, run, changes, restored, backs;
};

/* Whether a task that is ready or leased may have a place that lies ahead. */
enum tw__store_ahead { TW__STORE_AHEAD_UNKNOWN, TW__STORE_AHEAD_NONE, TW__STORE_AHEAD_SOME };

struct tw__store_db {
    sqlite3 *db;
    struct tw__store_files files;
    const char *schema; /* not quoted */
    sqlite3_stmt *statement[TW__STORE_STATEMENTS];
    int bound;                                 /* the first error of binding the present statement */
    uint64_t revision, run, changes, restored; /* of tw_meta, when the transaction began; revision: and since */
    uint64_t backs;                            /* of tw_meta: tasks that programs have given back */
    uint64_t clock_ms;                         /* of tw_meta, and since: as schema.sql says */
    struct tw__task_retry retry;               /* of tw_meta: for tasks that leave an option out */
    uint64_t written_revision;                 /* what tw_meta has */
    uint64_t busy_ms;           /* how long it waits for a lock; 0: it is the caller's connection */
    int rows;                   /* sqlite3_total_changes() when the transaction began */
    bool has_read;              /* the transaction of the caller had read before the call */
    enum tw__store_ahead ahead; /* what tw_store_forecast() has found out in the transaction */
    bool shared;                /* several threads have their works in the present transaction */
    char *message;              /* of the last error */
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

/* As sqlite3_step(). */
int tw__store_db_step(struct tw__store_db *db, sqlite3_stmt *statement);

/* Goes to the next row of a statement. Returns false after the last one, after an error, and if *error is one
 * already. Then the statement is reset. */
static inline bool tw__store_db_next(struct tw__store_db *db, sqlite3_stmt *rows, const char *doing, int *error)
{
    int code = *error == 0 ? tw__store_db_step(db, rows) : SQLITE_DONE;
    if (code == SQLITE_ROW)
        return true;
    if (code != SQLITE_DONE)
        *error = tw__store_db_error(db, code, doing);
    sqlite3_reset(rows);
    return false;
}

/* Copies the name of a queue from a row. Returns false if it is not a valid name: a program with
 * plain SQL may have written it. */
bool tw__store_queue_name(sqlite3_stmt *row, int column, char name[TW_STORE_QUEUE_MAX + 1]);

/* Runs a statement that returns no rows, which is bound already. Returns: 0 or an error. */
int tw__store_db_run(struct tw__store_db *db, sqlite3_stmt *statement, const char *doing);

/* Runs a statement that returns no rows, with these n numbers as its parameters. Returns: 0 or an error. */
int tw__store_db_write(struct tw__store_db *db, enum tw__store_statement which, const char *doing,
                       const uint64_t *numbers, int n);

/* Runs a statement without parameters. Returns: 0 or an error. */
int tw__store_db_do(struct tw__store_db *db, enum tw__store_statement which, const char *doing);

/* Runs a statement without parameters, and sets *number to the first column of its row, if it has one.
 * Returns: 0 or an error. */
int tw__store_db_number(struct tw__store_db *db, enum tw__store_statement which, const char *doing,
                        uint64_t *number);

/* Begins a transaction, with TW__STORE_BEGIN or TW__STORE_BEGIN_READ, and checks the files. The caller rolls
 * back after an error. Returns: 0, TW_EREPLACED, or another error. */
int tw__store_db_begin(struct tw__store_db *db, enum tw__store_statement which);

/* Ends the transaction, if there is one, and takes it back. The message of the last error stays. It fails
 * only if there is no memory and the statement was not prepared before. */
void tw__store_db_roll_back(struct tw__store_db *db);

/* Runs SQL. Returns: 0 or an error. */
int tw__store_db_exec(struct tw__store_db *db, const char *sql, const char *doing);

/* Explains an error that comes from tables of another format, or of another program. Returns: TW_EFORMAT with a
 * message that says so; else `error`, with the message that it has. */
int tw__store_db_explain(struct tw__store_db *db, int error);

/* Reads tw_meta at the beginning of a transaction, and at the end, if it has changed a row, writes its revision
 * and raises its `changes`. The tables may be none of this format, also because another file was restored into
 * this one: TW_EFORMAT. */
int tw__store_db_begin_revisions(struct tw__store_db *db);
int tw__store_db_end_revisions(struct tw__store_db *db);

/* Statements of schema.sql draw their numbers from tw_meta. It is written before them, and read afterwards.
 * Returns: 0 or an error. */
int tw__store_db_write_meta(struct tw__store_db *db);
int tw__store_db_read_meta(struct tw__store_db *db);

/* Ends the attempt of a task whose lease has run out, by these statements. Returns: 0 or an error. */
int tw__store_db_lapse(struct tw__store_db *db, const char *queue, const void *id, size_t size);

/* Reads how a task is tried again: tries and backoff_ms at a column, the other three at another one. A number
 * that is NULL, or that others have written out of its range, is as in tw_meta. */
struct tw__task_retry tw__store_read_retry(const struct tw__store_db *db, sqlite3_stmt *row, int tries,
                                           int factor);

/* Returns the `changes` that a transaction writes if it changes a row. */
static inline uint64_t tw__store_db_next_changes(const struct tw__store_db *db)
{
    return db->changes + 1;
}

/* Returns whether the file is not a later state of the one that had these numbers, in a transaction. */
bool tw__store_db_has_gone_back(const struct tw__store_db *db, const struct tw__store_seen *seen);

/* Notes which file the connection has opened, right after that. If its `files` name one already, it must be
 * that one. Returns: 0, or TW_EREPLACED if it is another one, or is not at its path any more. */
int tw__store_db_identify(struct tw__store_db *db);

/* Notes which log and which index the connection has opened, right after its first reading, which opens
 * them. Returns: 0, or TW_EREPLACED with a message if the index was removed before. */
int tw__store_db_identify_log(struct tw__store_db *db);

/* Returns whether the files of the connection are at their paths. From any thread. */
bool tw__store_db_has_files(const struct tw__store_db *db);

/* Checks the files. Returns: 0, or TW_EREPLACED with a message. */
int tw__store_db_check_files(struct tw__store_db *db);

/* The same for a connection that another thread may use at this moment. Returns: as that, with this message. */
int tw__store_db_check_files_of(const struct tw__store_db *open, char *message, size_t size);

/* Whether the file is marked as restored, in a transaction: an odd number is the mark. */
static inline bool tw__store_db_is_marked(const struct tw__store_db *db)
{
    return (db->restored & 1) != 0;
}

/* Raises clock_ms. */
static inline void tw__store_note_time(struct tw__store_db *db, uint64_t now_ms)
{
    db->clock_ms = now_ms > db->clock_ms ? now_ms : db->clock_ms;
}

/* Returns the place in the order of a task that is filed now. */
static inline uint64_t tw__store_place(struct tw__store_db *db, uint64_t next_ms, uint64_t now_ms)
{
    tw__store_note_time(db, now_ms);
    return next_ms > now_ms ? next_ms : now_ms;
}

/* Frees the statements. The connection stays. */
void tw__store_db_fini(struct tw__store_db *db);

#endif
