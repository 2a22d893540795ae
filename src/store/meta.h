/* SPDX-License-Identifier: MIT
 *
 * Whether a table tw_meta is ours, and why not. The library asks, and so does the extension, which calls the
 * copy of SQLite that has loaded it. So each compiles these functions for itself, with sqlite3.h or
 * sqlite3ext.h before this file.
 */
#ifndef TW_STORE_META_H
#define TW_STORE_META_H

#include <stdbool.h>
#include <stddef.h>

enum { TW__STORE_FORMAT = 1 }; /* of the tables in schema.sql */

/* Returns SQLITE_OK if tw_meta has this column, SQLITE_ERROR if not, or another code. NULL: whether there is a
 * tw_meta. */
static inline int tw__store_meta_find(sqlite3 *db, const char *schema, const char *column)
{
    return sqlite3_table_column_metadata(db, schema, "tw_meta", column, NULL, NULL, NULL, NULL, NULL);
}

/* Each returns a text, which sqlite3_free() frees; NULL: there is no reason, or no memory. */
static inline char *tw__store_meta_refuse_format(sqlite3_int64 format)
{
    return sqlite3_mprintf("format is %lld: expected %d; the version that wrote it can read it", format,
                           TW__STORE_FORMAT);
}

/* Each format has a column of this name, but those before the first release had rows of names and values. The
 * table of another program may have such columns too, but no version. */
static inline char *tw__store_meta_refuse_no_format(sqlite3 *db, const char *schema)
{
    sqlite3_stmt *row = NULL;
    char *sql = sqlite3_mprintf("SELECT value FROM \"%w\".tw_meta WHERE name = 'version'", schema);
    bool old = sql != NULL && sqlite3_prepare_v2(db, sql, -1, &row, NULL) == SQLITE_OK &&
               sqlite3_step(row) == SQLITE_ROW && sqlite3_column_type(row, 0) == SQLITE_INTEGER;
    sqlite3_finalize(row);
    sqlite3_free(sql);
    return old ? tw__store_meta_refuse_format(0)
               : sqlite3_mprintf("tw_meta has no column format: it is another program's");
}

/* Checks the format in a row. All formats are whole numbers. */
static inline bool tw__store_meta_is_row(sqlite3_stmt *row, char **reason)
{
    sqlite3_int64 format = sqlite3_column_int64(row, 0);
    if (sqlite3_column_type(row, 0) != SQLITE_INTEGER)
        *reason = sqlite3_mprintf("the format in tw_meta is no whole number: it is another program's");
    else if (format != TW__STORE_FORMAT)
        *reason = tw__store_meta_refuse_format(format);
    else
        return true;
    return false;
}

/* Returns whether tw_meta, whose format is ours, has this column. Format 1 has had other columns on its way to
 * the first release. */
static inline bool tw__store_meta_has(sqlite3 *db, const char *schema, const char *column, char **reason)
{
    int code = tw__store_meta_find(db, schema, column);
    if (code == SQLITE_ERROR)
        *reason = sqlite3_mprintf(
            "tw_meta has no column %s: it is another program's, or of a version before 1.0.0", column);
    return code == SQLITE_OK;
}

/* Checks a tw_meta, which may have other columns. Returns: true; or false, with the reason, which
 * sqlite3_free() frees, or NULL if SQLite has failed. */
static inline bool tw__store_meta_is_ours(sqlite3 *db, const char *schema, char **reason)
{
    static const char *const columns[] = {
        "revision", "run",   "changes",    "restored", "clock_ms",       "until_ms", "backs",
        "dropped",  "tries", "backoff_ms", "factor",   "backoff_max_ms", "jitter"};
    int code = tw__store_meta_find(db, schema, "format");
    *reason = code == SQLITE_ERROR ? tw__store_meta_refuse_no_format(db, schema) : NULL;
    if (code != SQLITE_OK)
        return false;
    sqlite3_stmt *row = NULL;
    char *sql = sqlite3_mprintf("SELECT format FROM \"%w\".tw_meta", schema);
    code = sql != NULL ? sqlite3_prepare_v2(db, sql, -1, &row, NULL) : SQLITE_NOMEM;
    if (code == SQLITE_OK)
        code = sqlite3_step(row);
    bool good = code == SQLITE_DONE || (code == SQLITE_ROW && tw__store_meta_is_row(row, reason));
    sqlite3_finalize(row);
    sqlite3_free(sql);
    for (size_t i = 0; i < sizeof columns / sizeof columns[0] && good; i++)
        good = tw__store_meta_has(db, schema, columns[i], reason);
    if (good && code == SQLITE_DONE)
        *reason = sqlite3_mprintf("tw_meta has no row: expected one");
    return good && code == SQLITE_ROW;
}

#endif
