/* SPDX-License-Identifier: MIT
 *
 * Statements are prepared when they are first needed, and stay with a connection of the store. On a connection
 * of the caller they are freed when the call returns.
 *
 * The numbers of revisions come from tw_meta. A transaction reads the number when it begins, counts in memory
 * and writes the number before it commits. So a thousand puts of one commit change that row once. After a
 * rollback the next transaction reads the number again. The same statement raises `changes`, for each
 * transaction that has changed any row: window.c tells why.
 *
 * SQLite goes on with a file that was removed, or that another file has replaced at its path, and nobody else
 * would ever see the changes. So each transaction compares the file of the connection with the file at the
 * path. It does so when it has begun: for the write lock it may have waited long. A rename that has returned
 * before a call began is always seen. A rename during the call may come too late to be seen. (Rejected: to ask
 * SQLite alone, by SQLITE_FCNTL_HAS_MOVED. It compares no devices, and a disk that is mounted over the path may
 * have the same inode.)
 *
 * The log and its index are parts of the file: SQLite goes on with them too when they have been removed, and
 * the next process makes new ones. Then neither process sees the writes of the other. So a transaction compares
 * all three files. They stay the same while any connection is open: SQLite cuts the log, and writes it from its
 * beginning, but removes it only with the last connection. If somebody removes the log within the microseconds
 * from the first reading of a connection to its look at the log, nobody can tell. All connections of a process
 * to a file share one index, so a new connection may get an index that was removed before. Its path names no
 * file then, or that of another process, and only the first case can be told.
 */
#include "database.h"

#include <base/error_text.h>
#include <base/utf8.h>
#include <task/limits.h>

#include "meta.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static const uint64_t REVISION_END = UINT64_C(1) << 62;

static const char *const sql_of[] = {
#define TEXT(name, sql) sql,
    TW__STORE_SQL(TEXT)
#undef TEXT
};

/* ---- errors ---------------------------------------------------------------------------------------------- */

int tw__store_errno_error(int number)
{
    switch (number) {
    case EACCES:
    case EPERM:
    case EROFS:
        return TW_EREADONLY;
    case EMFILE:
    case ENFILE:
        return TW_ESYSTEM;
    case ENOSPC:
    case EDQUOT:
        return TW_ENOSPACE;
    default:
        return TW_EIO;
    }
}

/* Whether a read has failed. SQLite calls a file damaged that the disk cannot read: unixRead() of os_unix.c. */
static bool is_unread(int code, int number)
{
    return (code & 0xff) == SQLITE_CORRUPT && (number == EIO || number == ENXIO || number == ERANGE);
}

/* Whether the errno explains an error of the disk. The others come from questions, for example for a log that
 * is not there. */
static bool tells(int number)
{
    return number != 0 && number != ENOENT && number != EAGAIN && number != EINTR;
}

/* `number` is the errno that the call has left. For SQLite a sync without room, and any write beyond a quota,
 * is an error of the disk. */
static int error_of(int code, int number)
{
    switch (code == SQLITE_IOERR_NOMEM ? SQLITE_NOMEM : code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
        return TW_EBUSY;
    case SQLITE_NOMEM:
        return TW_ENOMEM;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return TW_EREADONLY;
    case SQLITE_FULL:
        return TW_ENOSPACE;
    case SQLITE_NOTADB:
    case SQLITE_ERROR: /* our tables, or the schema, are not there */
        return TW_EFORMAT;
    case SQLITE_TOOBIG:
        return TW_EINVAL;
    case SQLITE_CANTOPEN:
        return tells(number) ? tw__store_errno_error(number) : TW_EIO;
    case SQLITE_IOERR:
        return number == ENOSPC || number == EDQUOT ? TW_ENOSPACE : TW_EIO;
    case SQLITE_INTERRUPT:
    case SQLITE_ABORT:
        return TW_EINTERRUPTED;
    default: /* our tables are not as we made them */
        return is_unread(code, number) ? TW_EIO : TW_ECORRUPT;
    }
}

/* How long a connection of the caller waits for a lock; 0 too if it has a handler of its own. */
static int busy_timeout(sqlite3 *db)
{
    sqlite3_stmt *row = NULL;
    bool asked = sqlite3_prepare_v2(db, "PRAGMA busy_timeout", -1, &row, NULL) == SQLITE_OK;
    int ms = asked && sqlite3_step(row) == SQLITE_ROW ? sqlite3_column_int(row, 0) : 0;
    sqlite3_finalize(row);
    return ms;
}

/* Adds to the message how long the connection has waited, and the remedy. A transaction that has read cannot
 * wait for another one that writes: its rows would be out of date then. */
static void explain_lock(struct tw__store_db *db, int code)
{
    if (db->size == 0)
        return;
    size_t used = strlen(db->message), room = db->size - used;
    char *to = db->message + used;
    if (db->busy_ms > 0)
        snprintf(to, room, ": another connection has held the write lock for %" PRIu64 " ms" TW__BUSY_OPTION,
                 db->busy_ms);
    else if (db->has_read || code == SQLITE_BUSY_SNAPSHOT)
        snprintf(to, room,
                 ": the transaction has read, and another connection writes, or has written since:"
                 " roll it back, and begin it with BEGIN IMMEDIATE");
    else
        snprintf(to, room,
                 ": another connection has held the write lock for as long as this one waits, %d ms"
                 " (sqlite3_busy_timeout() sets that)",
                 busy_timeout(db->db));
}

int tw__store_db_error(struct tw__store_db *db, int code, const char *doing)
{
    int number = errno;
    bool unread = is_unread(code, number);
    const char *text = unread ? sqlite3_errstr(SQLITE_IOERR)
                       : sqlite3_errcode(db->db) == (code & 0xff) || sqlite3_extended_errcode(db->db) == code
                           ? sqlite3_errmsg(db->db)
                           : sqlite3_errstr(code);
    bool disk = (code & 0xff) == SQLITE_IOERR || (code & 0xff) == SQLITE_CANTOPEN;
    bool system = unread || (disk && tells(number));
    if (db->size > 0)
        snprintf(db->message, db->size, "%s: %s%s%s (SQLite's code %d)", doing, text, system ? ": " : "",
                 system ? strerror(number) : "", code);
    if ((code & 0xff) == SQLITE_BUSY)
        explain_lock(db, code);
    return error_of(code, number);
}

int tw__store_db_refuse(struct tw__store_db *db, int error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (db->size > 0)
        vsnprintf(db->message, db->size, format, arguments);
    va_end(arguments);
    return error;
}

void tw__store_show(char *to, size_t room, const void *bytes, size_t size)
{
    static const char cut[] = "...";
    const char *text = bytes;
    size_t used = 0;
    for (size_t at = 0, n, length; at < size; at += n, used += length) {
        uint32_t point;
        n = tw__utf8_decode(text + at, size - at, &point);
        bool plain = n > 0 && !tw__utf8_is_control(point);
        n = plain ? n : 1;
        length = plain ? n : strlen("\\xNN");
        if (used + length + sizeof cut > room) {
            memcpy(to + used, cut, sizeof cut);
            return;
        }
        if (plain)
            memcpy(to + used, text + at, n);
        else
            snprintf(to + used, length + 1, "\\x%02x", (unsigned char)text[at]);
    }
    to[used] = '\0';
}

/* ---- statements ------------------------------------------------------------------------------------------ */

/* Returns the SQL with the schema's name in place of each $; sqlite3_free() frees it. */
static char *expand(const char *sql, const char *schema)
{
    sqlite3_str *text = sqlite3_str_new(NULL);
    for (const char *at = sql; *at != '\0'; at++) {
        if (*at == '$')
            sqlite3_str_appendf(text, "\"%w\".", schema);
        else
            sqlite3_str_appendchar(text, 1, *at);
    }
    return sqlite3_str_finish(text);
}

sqlite3_stmt *tw__store_db_statement(struct tw__store_db *db, enum tw__store_statement which, int *error)
{
    sqlite3_stmt **statement = &db->statement[which];
    db->bound = SQLITE_OK;
    errno = 0; /* an error of before explains nothing */
    if (*statement != NULL) {
        sqlite3_reset(*statement);
        return *statement;
    }
    char *sql = expand(sql_of[which], db->schema);
    int code = sql != NULL ? sqlite3_prepare_v3(db->db, sql, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL)
                           : SQLITE_NOMEM;
    sqlite3_free(sql);
    if (code != SQLITE_OK)
        *error = tw__store_db_error(db, code, "prepare");
    return *statement;
}

static void note_bound(struct tw__store_db *db, int code)
{
    if (db->bound == SQLITE_OK)
        db->bound = code;
}

/* SQLite's numbers end at 2^63 - 1. */
void tw__store_bind_number(struct tw__store_db *db, sqlite3_stmt *statement, int at, uint64_t value)
{
    note_bound(db, sqlite3_bind_int64(statement, at, value > INT64_MAX ? INT64_MAX : (sqlite3_int64)value));
}

void tw__store_bind_text(struct tw__store_db *db, sqlite3_stmt *statement, int at, const char *text)
{
    note_bound(db, sqlite3_bind_text(statement, at, text, -1, SQLITE_STATIC));
}

void tw__store_bind_blob(struct tw__store_db *db, sqlite3_stmt *statement, int at, const void *blob,
                         size_t size)
{
    note_bound(db, sqlite3_bind_blob64(statement, at, blob, size, SQLITE_STATIC));
}

int tw__store_db_step(struct tw__store_db *db, sqlite3_stmt *statement)
{
    errno = 0;
    return db->bound == SQLITE_OK ? sqlite3_step(statement) : db->bound;
}

bool tw__store_queue_name(sqlite3_stmt *row, int column, char name[TW_STORE_QUEUE_MAX + 1])
{
    bool is_text = sqlite3_column_type(row, column) == SQLITE_TEXT;
    const void *text = sqlite3_column_blob(row, column);
    size_t size = (size_t)sqlite3_column_bytes(row, column);
    if (!is_text || size == 0 || size > TW_STORE_QUEUE_MAX || memchr(text, 0, size) != NULL)
        return false;
    memcpy(name, text, size);
    name[size] = '\0';
    return true;
}

int tw__store_db_run(struct tw__store_db *db, sqlite3_stmt *statement, const char *doing)
{
    int code = tw__store_db_step(db, statement), error = 0;
    if (code != SQLITE_DONE)
        error = code == SQLITE_ROW ? 0 : tw__store_db_error(db, code, doing);
    sqlite3_reset(statement);
    return error;
}

int tw__store_db_write(struct tw__store_db *db, enum tw__store_statement which, const char *doing,
                       const uint64_t *numbers, int n)
{
    int error = 0;
    sqlite3_stmt *statement = tw__store_db_statement(db, which, &error);
    if (statement == NULL)
        return error;
    for (int i = 0; i < n; i++)
        tw__store_bind_number(db, statement, i + 1, numbers[i]);
    return tw__store_db_run(db, statement, doing);
}

int tw__store_db_do(struct tw__store_db *db, enum tw__store_statement which, const char *doing)
{
    return tw__store_db_write(db, which, doing, NULL, 0);
}

int tw__store_db_number(struct tw__store_db *db, enum tw__store_statement which, const char *doing,
                        uint64_t *number)
{
    int error = 0;
    sqlite3_stmt *row = tw__store_db_statement(db, which, &error);
    while (row != NULL && tw__store_db_next(db, row, doing, &error))
        *number = (uint64_t)sqlite3_column_int64(row, 0);
    return error;
}

void tw__store_db_roll_back(struct tw__store_db *db)
{
    int error;
    size_t size = db->size;
    if (sqlite3_get_autocommit(db->db))
        return;
    db->size = 0;
    sqlite3_stmt *statement = tw__store_db_statement(db, TW__STORE_ROLLBACK, &error);
    if (statement != NULL)
        tw__store_db_run(db, statement, "roll back");
    db->size = size;
}

int tw__store_db_exec(struct tw__store_db *db, const char *sql, const char *doing)
{
    errno = 0;
    int code = sqlite3_exec(db->db, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? 0 : tw__store_db_error(db, code, doing);
}

void tw__store_db_fini(struct tw__store_db *db)
{
    for (size_t i = 0; i < TW__STORE_STATEMENTS; i++)
        sqlite3_finalize(db->statement[i]);
    memset(db->statement, 0, sizeof db->statement);
}

/* ---- the file -------------------------------------------------------------------------------------------- */

/* Asks SQLite whether the path names another file than the one that the connection has open. */
static bool has_moved(const struct tw__store_db *db)
{
    int moved = 0; /* it stays 0 if the VFS does not know the question */
    sqlite3_file_control(db->db, db->schema, SQLITE_FCNTL_HAS_MOVED, &moved);
    return moved != 0;
}

static int refuse_lost(struct tw__store_db *db, const char *what)
{
    return tw__store_db_refuse(db, TW_EREPLACED, "the file was %s while it was open: open it again", what);
}

/* Asks which file is at the path. Returns false if none is, or if the system does not tell (errno).
 *
 * Since Linux 6.13, a file whose times somebody has asked for gets a new time at its next write, and stat()
 * asks for them. Then the journal of the file system has to be written, and a commit is a quarter slower. */
static bool tell_file(const char *path, struct tw__store_file *file)
{
#ifdef STATX_INO
    struct statx its;
    if (statx(AT_FDCWD, path, 0, STATX_INO, &its) == 0) {
        *file = (struct tw__store_file){makedev(its.stx_dev_major, its.stx_dev_minor), its.stx_ino};
        return true;
    } /* else there is none, or a sandbox knows no statx() */
#endif
    struct stat status;
    if (stat(path, &status) != 0)
        return false;
    *file = (struct tw__store_file){status.st_dev, status.st_ino};
    return true;
}

static struct tw__store_file file_at(const char *path)
{
    struct tw__store_file file = {0, 0};
    tell_file(path, &file);
    return file;
}

static void name_index(const char *path, char index[TW__STORE_PATH])
{
    snprintf(index, TW__STORE_PATH, "%s-shm", path);
}

enum found { THERE, REMOVED, REPLACED };

/* Whether this file is at the path. If the system does not tell, for example because the process has given up
 * its rights, nothing is proved. */
static enum found find_at(const struct tw__store_file *file, const char *path)
{
    struct tw__store_file there;
    if (!tell_file(path, &there))
        return errno == ENOENT || errno == ENOTDIR ? REMOVED : THERE;
    bool same = file->inode == 0 || (there.device == file->device && there.inode == file->inode);
    return same ? THERE : REPLACED;
}

int tw__store_db_identify(struct tw__store_db *db)
{
    const char *path = sqlite3_db_filename(db->db, db->schema);
    if (db->files.main.inode == 0)
        db->files.main = file_at(path);
    bool good = find_at(&db->files.main, path) == THERE && !has_moved(db);
    return good ? 0 : refuse_lost(db, "replaced"); /* between its opening and this call, or before */
}

/* The same of the log, or its index. A VFS may have none. */
static enum found find_beside(const struct tw__store_file *file, const char *path)
{
    return file->inode != 0 ? find_at(file, path) : THERE;
}

/* Whether the index lies beside the file while a connection reads. So it does with SQLite's usual VFS alone. */
static bool has_index_file(const struct tw__store_db *db)
{
    char *vfs = NULL;
    sqlite3_file_control(db->db, db->schema, SQLITE_FCNTL_VFSNAME, &vfs);
    bool usual = vfs != NULL && strcmp(vfs, "unix") == 0;
    sqlite3_free(vfs);
    return usual;
}

int tw__store_db_identify_log(struct tw__store_db *db)
{
    const char *path = sqlite3_db_filename(db->db, db->schema);
    char index[TW__STORE_PATH];
    name_index(path, index);
    db->files.log = file_at(sqlite3_filename_wal(path));
    db->files.index = file_at(index);
    if (db->files.index.inode != 0 || find_at(&db->files.index, index) != REMOVED || !has_index_file(db))
        return 0;
    return tw__store_db_refuse(db, TW_EREPLACED,
                               "%.400s, a part of the file, was removed while this process had the file open: "
                               "close each of its connections first",
                               index);
}

static enum found find_main(const struct tw__store_db *db, const char *path)
{
    enum found found = find_at(&db->files.main, path);
    return found == THERE && db->files.main.inode == 0 && has_moved(db) ? REPLACED : found;
}

static enum found find_parts(const struct tw__store_db *db, const char *path, const char **end)
{
    char index[TW__STORE_PATH];
    *end = "-wal";
    enum found found = find_beside(&db->files.log, sqlite3_filename_wal(path));
    if (found != THERE || db->files.index.inode == 0)
        return found;
    *end = "-shm";
    name_index(path, index);
    return find_beside(&db->files.index, index);
}

/* Whether all files of the connection are there. If one is not, *end is the ending of its path. If the file has
 * gone since it was looked at, and its parts with it, that is the news. */
static enum found find_all(const struct tw__store_db *db, const char **end)
{
    const char *path = sqlite3_db_filename(db->db, db->schema);
    *end = "";
    if (path == NULL || path[0] == '\0')
        return THERE; /* the caller's, in memory */
    enum found file = find_main(db, path);
    if (file != THERE)
        return file;
    enum found part = find_parts(db, path, end);
    if (part != THERE)
        file = find_main(db, path);
    if (file != THERE)
        *end = "";
    return file != THERE ? file : part;
}

bool tw__store_db_has_files(const struct tw__store_db *db)
{
    const char *end;
    return find_all(db, &end) == THERE;
}

/* Whether the file was removed or replaced, and its log lies there. SQLite takes that log for the log of any
 * other file at this path, and writes its pages into it. */
static bool has_old_log(const struct tw__store_db *db)
{
    const char *path = sqlite3_db_filename(db->db, db->schema);
    return db->files.log.inode != 0 && find_at(&db->files.main, path) != THERE &&
           find_at(&db->files.log, sqlite3_filename_wal(path)) == THERE;
}

int tw__store_db_check_files(struct tw__store_db *db)
{
    const char *end;
    enum found found = find_all(db, &end);
    if (found == THERE)
        return 0;
    const char *what = found == REMOVED ? "removed" : "replaced";
    if (end[0] != '\0')
        return tw__store_db_refuse(
            db, TW_EREPLACED, "%.400s%s, a part of the file, was %s while it was open: open the file again",
            sqlite3_db_filename(db->db, db->schema), end, what);
    if (!has_old_log(db))
        return refuse_lost(db, what);
    return tw__store_db_refuse(db, TW_EREPLACED,
                               "the file was %s while it was open, and its log was not: move its -wal and -shm "
                               "with it, or remove them if it is gone, and then open it again",
                               what);
}

int tw__store_db_check_files_of(const struct tw__store_db *open, char *message, size_t size)
{
    struct tw__store_db db = {
        .db = open->db, .files = open->files, .schema = open->schema, .message = message, .size = size};
    return tw__store_db_check_files(&db);
}

int tw__store_db_begin(struct tw__store_db *db, enum tw__store_statement which)
{
    int error = tw__store_db_do(db, which, "begin"), replaced = tw__store_db_check_files(db);
    return replaced != 0 ? replaced : error; /* an error of SQLite may follow from that */
}

/* ---- numbers --------------------------------------------------------------------------------------------- */

int tw__store_db_explain(struct tw__store_db *db, int error)
{
    char *reason = NULL;
    if (error != TW_EFORMAT || tw__store_meta_find(db->db, db->schema, NULL) != SQLITE_OK)
        return error;
    tw__store_meta_is_ours(db->db, db->schema, &reason);
    if (reason != NULL)
        tw__store_db_refuse(db, TW_EFORMAT, "%s", reason);
    sqlite3_free(reason);
    return error;
}

static uint64_t option_in(sqlite3_stmt *row, int column, enum tw__task_number which, uint64_t usual)
{
    uint64_t value = (uint64_t)sqlite3_column_int64(row, column);
    bool own = sqlite3_column_type(row, column) != SQLITE_NULL && tw__task_in_range(which, value);
    return own ? value : usual;
}

/* NULL is 0. */
static uint32_t factor_in(sqlite3_stmt *row, int column, uint32_t usual)
{
    double factor = sqlite3_column_double(row, column);
    return factor >= 1 && factor <= 100 ? (uint32_t)(factor * TW__TASK_HUNDREDTHS + 0.5) : usual;
}

struct tw__task_retry tw__store_read_retry(const struct tw__store_db *db, sqlite3_stmt *row, int tries,
                                           int factor)
{
    const struct tw__task_retry *usual = &db->retry;
    return (struct tw__task_retry){.tries = (uint32_t)option_in(row, tries, TW__TASK_IN_TRIES, usual->tries),
                                   .first_ms = option_in(row, tries + 1, TW__TASK_IN_BACKOFF, usual->first_ms),
                                   .factor_percent = factor_in(row, factor, usual->factor_percent),
                                   .max_ms = option_in(row, factor + 1, TW__TASK_IN_BACKOFF_MAX, usual->max_ms),
                                   .jitter =
                                       (uint32_t)option_in(row, factor + 2, TW__TASK_IN_JITTER, usual->jitter)};
}

/* Reads how tasks are tried again that do not say. */
static void read_defaults(struct tw__store_db *db, sqlite3_stmt *meta)
{
    db->retry = (struct tw__task_retry){.tries = (uint32_t)tw__task_range(TW__TASK_IN_TRIES).usual,
                                        .first_ms = tw__task_range(TW__TASK_IN_BACKOFF).usual,
                                        .factor_percent = (uint32_t)tw__task_range(TW__TASK_IN_FACTOR).usual,
                                        .max_ms = tw__task_range(TW__TASK_IN_BACKOFF_MAX).usual,
                                        .jitter = (uint32_t)tw__task_range(TW__TASK_IN_JITTER).usual};
    db->retry = tw__store_read_retry(db, meta, 7, 9);
}

/* The largest number of a task counts too. So if somebody has turned tw_meta back, or has rolled back no more
 * than a part of our work, no number comes twice among the tasks. */
static int read_numbers(struct tw__store_db *db, sqlite3_stmt *meta)
{
    uint64_t most = (uint64_t)sqlite3_column_int64(meta, 5);
    if (sqlite3_column_type(meta, 0) != SQLITE_INTEGER || sqlite3_column_int64(meta, 0) != TW__STORE_FORMAT)
        return tw__store_db_refuse(db, TW_EFORMAT, "tw_meta is of another format");
    db->revision = db->written_revision = (uint64_t)sqlite3_column_int64(meta, 1);
    db->run = (uint64_t)sqlite3_column_int64(meta, 2);
    db->changes = (uint64_t)sqlite3_column_int64(meta, 3);
    db->restored = (uint64_t)sqlite3_column_int64(meta, 4);
    db->clock_ms = (uint64_t)sqlite3_column_int64(meta, 6);
    db->backs = (uint64_t)sqlite3_column_int64(meta, 12);
    read_defaults(db, meta);
    db->revision = most > db->revision ? most : db->revision;
    if (db->revision >= REVISION_END)
        return tw__store_db_refuse(
            db, TW_ECORRUPT, "tw_meta: revision is %" PRIu64 ": expected a number below 2^62", db->revision);
    return 0;
}

int tw__store_db_read_meta(struct tw__store_db *db)
{
    int error = 0;
    sqlite3_stmt *meta = tw__store_db_statement(db, TW__STORE_META, &error);
    if (meta == NULL)
        return error;
    int code = sqlite3_step(meta);
    if (code == SQLITE_ROW)
        error = read_numbers(db, meta);
    else if (code == SQLITE_DONE)
        error = tw__store_db_refuse(db, TW_ECORRUPT, "tw_meta has no row: expected one");
    else
        error = tw__store_db_error(db, code, "read tw_meta");
    sqlite3_reset(meta);
    return error;
}

int tw__store_db_begin_revisions(struct tw__store_db *db)
{
    db->ahead = TW__STORE_AHEAD_UNKNOWN;
    db->rows = sqlite3_total_changes(db->db);
    int error = tw__store_db_read_meta(db);
    return tw__store_db_explain(db, error);
}

int tw__store_db_write_meta(struct tw__store_db *db)
{
    const uint64_t numbers[] = {db->revision, tw__store_db_next_changes(db), db->clock_ms};
    return tw__store_db_write(db, TW__STORE_SET_META, "write tw_meta", numbers, 3);
}

int tw__store_db_end_revisions(struct tw__store_db *db)
{
    if (db->revision == db->written_revision && db->rows == sqlite3_total_changes(db->db))
        return 0;
    return tw__store_db_write_meta(db);
}

int tw__store_db_lapse(struct tw__store_db *db, const char *queue, const void *id, size_t size)
{
    int error = tw__store_db_write_meta(db);
    sqlite3_stmt *statement = error == 0 ? tw__store_db_statement(db, TW__STORE_LAPSE, &error) : NULL;
    if (statement == NULL)
        return error;
    tw__store_bind_text(db, statement, 1, queue);
    tw__store_bind_blob(db, statement, 2, id, size);
    error = tw__store_db_run(db, statement, "end a lease");
    return error == 0 ? tw__store_db_read_meta(db) : error;
}

/* Only the run that has the lock raises its number, so another one is that of a backup. */
bool tw__store_db_has_gone_back(const struct tw__store_db *db, const struct tw__store_seen *seen)
{
    return db->changes < seen->changes || db->revision < seen->revision || db->run != seen->run ||
           db->restored != seen->restored;
}
