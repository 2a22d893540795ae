/* SPDX-License-Identifier: MIT
 *
 * tickwheel_sqlite.so, an extension that SQLite loads into a connection of any program: "in 30 minutes" in SQL.
 *
 *     tw_now()            Unix time in milliseconds
 *     tw_in('30m')        the same, 30 minutes from now
 *     tw_at('2026-12-01T08:00:00Z')
 *     tw_install()        makes the tables of a store in this file; 1: made, 0: they were there
 *
 * The extension calls the copy of SQLite that has loaded it, which may not be the libsqlite3.so of the system:
 * many programs have SQLite built in. So no code of the library is linked here, only the text of the tables.
 *
 * The first three functions have no effects, so a trigger or a view may call them in a file that is not
 * trusted. tw_install() changes the file, so only a statement of the program itself may call it.
 */
#include <tickwheel/store.h>

#include <base/utf8.h>
#include <base/when.h>

#include <errno.h>
#include <sqlite3ext.h>
#include <string.h>
#include <time.h>

SQLITE_EXTENSION_INIT1

#include "meta.h"

extern const char *const tw__store_schema[]; /* schema.sql; the build makes it */

static const uint64_t ns_per_ms = 1000000;
enum { OLDEST_SQLITE = 3038000, VALUE_SHOWN = 64 }; /* VALUE_SHOWN: characters of a wrong value */

/* ---- times ----------------------------------------------------------------------------------------------- */

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / ns_per_ms;
}

/* Fails with a message, which is freed; NULL: there was no memory for it. */
static void fail_with(sqlite3_context *context, char *message)
{
    if (message != NULL)
        sqlite3_result_error(context, message, -1);
    else
        sqlite3_result_error_nomem(context);
    sqlite3_free(message);
}

/* Returns a value as SQL writes it, but no more than its beginning; sqlite3_free() frees it. A text that is not
 * UTF-8 is in hexadecimal: many languages cannot read a message with it. */
static char *show(sqlite3_value *value)
{
    int type = sqlite3_value_type(value);
    const unsigned char *at = type == SQLITE_BLOB ? sqlite3_value_blob(value) : sqlite3_value_text(value);
    int bytes = sqlite3_value_bytes(value);
    if (at == NULL && (type != SQLITE_BLOB || bytes > 0)) /* an empty blob has no bytes to show */
        return NULL;                                      /* no memory */
    if (type == SQLITE_INTEGER || type == SQLITE_FLOAT)
        return sqlite3_mprintf("%.*s", bytes, at);
    sqlite3_str *text = sqlite3_str_new(NULL);
    if (type == SQLITE_TEXT && tw__is_utf8((const char *)at, (size_t)bytes)) {
        bool zero = memchr(at, '\0', (size_t)bytes) != NULL;
        sqlite3_str_appendf(text, "'%!.*s", (int)VALUE_SHOWN, at);
        bool cut = sqlite3_str_length(text) <= (int)strlen((const char *)at); /* with the quote it is longer */
        sqlite3_str_appendf(text, "%s'%s", cut ? "..." : "", zero ? " and a zero byte" : "");
        return sqlite3_str_finish(text);
    }
    sqlite3_str_appendall(text, type == SQLITE_TEXT ? "CAST(x'" : "x'");
    for (int i = 0; i < bytes && i < VALUE_SHOWN / 2; i++)
        sqlite3_str_appendf(text, "%02x", at[i]);
    sqlite3_str_appendf(text, "%s'%s", bytes > VALUE_SHOWN / 2 ? "..." : "",
                        type == SQLITE_TEXT ? " AS TEXT)" : "");
    return sqlite3_str_finish(text);
}

/* Fails with "tw_in: '30': expected ...". */
static void refuse_value(sqlite3_context *context, const char *name, sqlite3_value *value, const char *expected)
{
    char *shown = show(value);
    fail_with(context, shown != NULL ? sqlite3_mprintf("%s: %z: expected %s", name, shown, expected) : NULL);
}

/* Returns the argument, if it is text without a zero byte. */
static const char *text_of(sqlite3_value *value)
{
    if (sqlite3_value_type(value) != SQLITE_TEXT)
        return NULL;
    const char *text = (const char *)sqlite3_value_text(value);
    return text != NULL && strlen(text) == (size_t)sqlite3_value_bytes(value) ? text : NULL;
}

static void now_function(sqlite3_context *context, int n, sqlite3_value **values)
{
    (void)n, (void)values;
    sqlite3_result_int64(context, (sqlite3_int64)now_ms());
}

/* The result is rounded up, so no task is early. */
static void in_function(sqlite3_context *context, int n, sqlite3_value **values)
{
    (void)n;
    if (sqlite3_value_type(values[0]) == SQLITE_NULL)
        return;
    const char *text = text_of(values[0]);
    uint64_t ns;
    if (text == NULL || !tw__duration_parse(text, &ns)) {
        refuse_value(context, "tw_in", values[0],
                     "a duration as text, such as '30m', '1h30m' or '1.5s', at most '213503d'");
        return;
    }
    uint64_t ms = ns / ns_per_ms + (ns % ns_per_ms > 0 ? 1 : 0);
    sqlite3_result_int64(context, (sqlite3_int64)now_ms() + (sqlite3_int64)ms);
}

static void at_function(sqlite3_context *context, int n, sqlite3_value **values)
{
    (void)n;
    if (sqlite3_value_type(values[0]) == SQLITE_NULL)
        return;
    const char *text = text_of(values[0]);
    uint64_t seconds, ns;
    if (text == NULL || !tw__time_parse(text, &seconds, &ns)) {
        refuse_value(context, "tw_at", values[0],
                     "a time in UTC as text, such as '2026-12-01T08:00:00Z', from 1970 to "
                     "9999-12-31T23:59:59.999Z");
        return;
    }
    uint64_t ms = seconds * 1000 + ns / ns_per_ms + (ns % ns_per_ms > 0 ? 1 : 0);
    sqlite3_result_int64(context, (sqlite3_int64)ms);
}

/* ---- the tables ------------------------------------------------------------------------------------------ */

/* Reads the only value of a statement as text, which sqlite3_free() frees; NULL: SQLite has failed. After this
 * row sqlite3_finalize() ends the statement. There SQLite commits a new mode, and tells if that has failed. */
static char *answer_of(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    char *answer = NULL;
    errno = 0;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW)
        answer = sqlite3_mprintf("%s", sqlite3_column_text(statement, 0));
    if (sqlite3_finalize(statement) == SQLITE_OK)
        return answer;
    sqlite3_free(answer);
    return NULL;
}

/* Returns a message with the advice for a file that another connection has locked, in place of this message. A
 * transaction of the caller has read the file by now, and cannot wait for the lock. */
static char *explain_lock(sqlite3 *db, char *message)
{
    char *wait = answer_of(db, "PRAGMA busy_timeout");
    char *longer =
        !sqlite3_get_autocommit(db)
            ? sqlite3_mprintf("%z: roll the transaction back, and begin it with BEGIN IMMEDIATE", message)
            : sqlite3_mprintf("%z: another connection has held the write lock for as long as this one waits,"
                              " %s ms (PRAGMA busy_timeout sets that)",
                              message, wait);
    sqlite3_free(wait);
    return longer;
}

/* The errno explains an error of the disk, unless it is that of a question of SQLite's, for example for a log
 * that is not there. */
static void fail_as_sqlite(sqlite3_context *context, sqlite3 *db)
{
    int number = errno, code = sqlite3_extended_errcode(db);
    if (code == SQLITE_OK || code == SQLITE_NOMEM) { /* OK: there was no memory for an answer */
        sqlite3_result_error_nomem(context);
        return;
    }
    bool told = (code & 0xff) == SQLITE_IOERR && number != 0 && number != ENOENT;
    char *message = sqlite3_mprintf("tw_install: %s%s%s", sqlite3_errmsg(db), told ? ": " : "",
                                    told ? strerror(number) : "");
    fail_with(context, (code & 0xff) == SQLITE_BUSY ? explain_lock(db, message) : message);
    sqlite3_result_error_code(context, code);
}

/* Requires an answer of the file. Returns: true; false, and the function has failed. */
static bool expect_answer(sqlite3_context *context, const char *sql, const char *expected, const char *advice)
{
    sqlite3 *db = sqlite3_context_db_handle(context);
    char *answer = answer_of(db, sql);
    bool good = answer != NULL && strcmp(answer, expected) == 0;
    if (answer == NULL)
        fail_as_sqlite(context, db);
    else if (!good)
        fail_with(context, sqlite3_mprintf("tw_install: %s is '%s': expected '%s'%s",
                                           sql + strlen("PRAGMA main."), answer, expected, advice));
    sqlite3_free(answer);
    return good;
}

static bool answers(sqlite3 *db, const char *sql, const char *expected)
{
    char *answer = answer_of(db, sql);
    bool good = answer != NULL && strcmp(answer, expected) == 0;
    sqlite3_free(answer);
    return good;
}

/* Whether VACUUM INTO has made the file of a store. Such a copy is in the mode `delete`. */
static bool is_copy(sqlite3 *db)
{
    return answers(db, "PRAGMA main.journal_mode", "delete") &&
           answers(db,
                   "SELECT count(*) FROM main.sqlite_schema"
                   " WHERE name IN ('tw_meta', 'tw_task', 'tw_queue', 'tw_put')",
                   "4");
}

/* Checks the tw_meta of a copy, which stays as it is if it has another format. */
static bool check_copy(sqlite3_context *context)
{
    char *refused = NULL;
    bool good = tw__store_meta_is_ours(sqlite3_context_db_handle(context), "main", &refused);
    if (refused != NULL)
        fail_with(context, sqlite3_mprintf("tw_install: %z", refused));
    else if (!good)
        fail_as_sqlite(context, sqlite3_context_db_handle(context));
    return good;
}

/* Returns: true; false, and the function has failed. A file that is not set, because it is one in memory, is
 * refused afterwards. */
static bool set_mode(sqlite3_context *context)
{
    sqlite3 *db = sqlite3_context_db_handle(context);
    char *mode = answer_of(db, "PRAGMA main.journal_mode=WAL");
    if (mode == NULL)
        fail_as_sqlite(context, db);
    sqlite3_free(mode);
    return mode != NULL;
}

/* A new file and a copy of a store get WAL mode; any other file must have it, as for tw_store_open(). A
 * transaction cannot set the mode. */
static bool check_file(sqlite3_context *context)
{
    sqlite3 *db = sqlite3_context_db_handle(context);
    bool copy = is_copy(db);
    if (copy && !check_copy(context))
        return false;
    bool own = sqlite3_get_autocommit(db) && (copy || answers(db, "PRAGMA main.page_count", "0"));
    if (own && !set_mode(context))
        return false;
    return expect_answer(context, "PRAGMA main.journal_mode", "wal",
                         " (PRAGMA journal_mode=WAL sets it, outside of a transaction)") &&
           expect_answer(context, "PRAGMA main.encoding", "UTF-8", "");
}

/* Tables that are there must be ours. Returns: 0, or -1 if they are not, or if SQLite has failed, and then
 * there is no text in *refused. */
static int check_tables(sqlite3 *db, char **refused)
{
    char *tasks = answer_of(db, "SELECT count(*) FROM main.sqlite_schema WHERE name = 'tw_task'");
    bool none = tasks != NULL && strcmp(tasks, "0") == 0, unknown = tasks == NULL;
    sqlite3_free(tasks);
    if (none)
        *refused = sqlite3_mprintf("the file has a table tw_meta, but no tw_task: it is another "
                                   "program's, or tw_task was removed");
    if (none || unknown)
        return -1;
    return tw__store_meta_is_ours(db, "main", refused) ? 0 : -1;
}

/* Makes the tables, unless they are there. Returns: 1, 0, or -1 if SQLite has failed, or with a text in
 * *refused if the tables are not ours. */
static int add_tables(sqlite3 *db, char **refused)
{
    int made = -1;
    char *there = answer_of(db, "SELECT count(*) FROM main.sqlite_schema WHERE name = 'tw_meta'");
    if (there != NULL && strcmp(there, "0") != 0) {
        made = check_tables(db, refused);
    } else if (there != NULL) {
        sqlite3_str *text = sqlite3_str_new(db);
        for (const char *const *line = tw__store_schema; *line != NULL; line++)
            sqlite3_str_appendall(text, *line);
        char *sql = sqlite3_str_finish(text);
        if (sql != NULL && sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK)
            made = 1;
        sqlite3_free(sql);
    }
    sqlite3_free(there);
    return made;
}

/* Makes the tables in a transaction of its own, or as a part of the caller's, which a failure leaves as it was.
 * Only if memory ends, the transaction may stay open: within a function SQLite then prepares no statement any
 * more, so the caller has to roll back. */
static void install_function(sqlite3_context *context, int n, sqlite3_value **values)
{
    (void)n, (void)values;
    sqlite3 *db = sqlite3_context_db_handle(context);
    bool own = sqlite3_get_autocommit(db) != 0;
    if (!check_file(context))
        return;
    errno = 0;
    if (sqlite3_exec(db, own ? "BEGIN IMMEDIATE" : "SAVEPOINT tw_install", NULL, NULL, NULL) != SQLITE_OK) {
        fail_as_sqlite(context, db);
        return;
    }
    char *refused = NULL;
    int made = add_tables(db, &refused);
    if (made >= 0 && sqlite3_exec(db, own ? "COMMIT" : "RELEASE tw_install", NULL, NULL, NULL) == SQLITE_OK) {
        sqlite3_result_int(context, made);
        return;
    }
    if (refused != NULL)
        fail_with(context, sqlite3_mprintf("tw_install: %z", refused));
    else
        fail_as_sqlite(context, db);
    sqlite3_exec(db, own ? "ROLLBACK" : "ROLLBACK TO tw_install; RELEASE tw_install", NULL, NULL, NULL);
}

/* ---- the entry ------------------------------------------------------------------------------------------- */

/* SQLite finds this name from the name of the file. */
__attribute__((visibility("default"))) int sqlite3_tickwheelsqlite_init(sqlite3 *db, char **message,
                                                                        const sqlite3_api_routines *api);

int sqlite3_tickwheelsqlite_init(sqlite3 *db, char **message, const sqlite3_api_routines *api)
{
    static const struct {
        const char *name;
        int arguments, flags;
        void (*call)(sqlite3_context *context, int n, sqlite3_value **values);
    } functions[] = {{"tw_now", 0, SQLITE_INNOCUOUS, now_function},
                     {"tw_in", 1, SQLITE_INNOCUOUS, in_function},
                     {"tw_at", 1, SQLITE_INNOCUOUS | SQLITE_DETERMINISTIC, at_function},
                     {"tw_install", 0, SQLITE_DIRECTONLY, install_function}};
    SQLITE_EXTENSION_INIT2(api);
    if (sqlite3_libversion_number() < OLDEST_SQLITE) {
        *message =
            sqlite3_mprintf("tickwheel_sqlite: SQLite is %s: expected 3.38 or later", sqlite3_libversion());
        return SQLITE_ERROR;
    }
    int code = SQLITE_OK;
    for (size_t i = 0; code == SQLITE_OK && i < sizeof functions / sizeof functions[0]; i++)
        code = sqlite3_create_function_v2(db, functions[i].name, functions[i].arguments,
                                          functions[i].flags | SQLITE_UTF8, NULL, functions[i].call, NULL, NULL,
                                          NULL);
    return code;
}
