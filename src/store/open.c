/* SPDX-License-Identifier: MIT
 *
 * A new file gets WAL mode from us, and so does a copy of a store that VACUUM INTO has made. Any other file
 * that exists keeps the mode that its owner has chosen, and without WAL mode it is refused: in the other modes
 * a reader blocks the writers, and a program that reads its own tables would stop the runner.
 *
 * The format is a column of tw_meta. SQLite's own user_version and application_id belong to the program whose
 * tables share the file.
 *
 * The log. A commit moves it to the file when it has 40 MB, but only up to the place from which somebody reads.
 * If a reader stays for an hour, the log grows for an hour. When the reader has gone, the log is cut: by the
 * next commits of any store, or by the runner, also if nobody commits.
 */
#include "open.h"

#include <base/time.h>

#include "lock.h"
#include "meta.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum {
    CACHE_KIB = 16384,       /* of a connection, for pages of the file */
    NEW_FILE_MS = 250,       /* a file that another process makes at this moment has its mode sooner */
    CHECKPOINT_PAGES = 10000 /* of the log, before a commit moves them to the file: 40 MB */
};

/* Of a connection: a word and three numbers. */
static const char PRAGMAS[] = "PRAGMA synchronous=%s; PRAGMA cache_size=-%d; PRAGMA wal_autocheckpoint=%d;"
                              "PRAGMA journal_size_limit=%d; PRAGMA temp_store=MEMORY";

/* Reads the first column of a statement's only row as text, and goes on to its end, because a new mode is
 * committed there. Returns: 0 or an error. */
static int ask_text(struct tw__store_db *db, const char *sql, char *answer, size_t size)
{
    sqlite3_stmt *row = NULL;
    errno = 0;
    int error = 0, code = sqlite3_prepare_v2(db->db, sql, -1, &row, NULL);
    answer[0] = '\0';
    if (code == SQLITE_OK)
        code = sqlite3_step(row);
    if (code == SQLITE_ROW) {
        sqlite3_snprintf((int)size, answer, "%s", sqlite3_column_text(row, 0));
        code = sqlite3_errcode(db->db); /* making the text may have failed */
    }
    if (code == SQLITE_ROW)
        code = sqlite3_step(row);
    if (code != SQLITE_DONE)
        error = tw__store_db_error(db, code, "open");
    sqlite3_finalize(row);
    return error;
}

/* ---- the mode -------------------------------------------------------------------------------------------- */

static int refuse_foreign(struct tw__store_db *db)
{
    return tw__store_db_refuse(db, TW_EFORMAT, "the file has no tables of a store");
}

static int set_mode(struct tw__store_db *db, char *mode, size_t size)
{
    return ask_text(db, "PRAGMA journal_mode=WAL", mode, size);
}

static int check_format(struct tw__store_db *db)
{
    char *reason = NULL;
    if (tw__store_meta_is_ours(db->db, "main", &reason))
        return 0;
    int error = reason != NULL ? tw__store_db_refuse(db, TW_EFORMAT, "%s", reason)
                               : tw__store_db_error(db, sqlite3_errcode(db->db), "read tw_meta");
    sqlite3_free(reason);
    return error;
}

/* A store that is in the mode `delete` was copied by VACUUM INTO, and gets its mode back. One of another format
 * stays as it is. */
static int mend_mode(struct tw__store_db *db, char *mode, size_t size)
{
    char ours[32];
    int error = ask_text(db,
                         "SELECT count(*) FROM main.sqlite_schema"
                         " WHERE name IN ('tw_meta', 'tw_task', 'tw_queue', 'tw_put')",
                         ours, sizeof ours);
    if (error != 0 || strcmp(ours, "4") != 0)
        return error;
    error = check_format(db);
    return error == 0 ? set_mode(db, mode, size) : error;
}

/* Reads the mode of the file, and sets it if the file is new, or a copy of a store. */
static int read_mode(struct tw__store_db *db, char *mode, size_t size, const struct tw_store_options *options)
{
    char pages[32];
    int error = ask_text(db, "PRAGMA page_count", pages, sizeof pages);
    bool made = error == 0 && strcmp(pages, "0") != 0;
    if (error == 0 && !made && (options->flags & TW_STORE_OPEN_EXISTING))
        return refuse_foreign(db);
    if (error == 0)
        error = made ? ask_text(db, "PRAGMA journal_mode", mode, size) : set_mode(db, mode, size);
    return made && error == 0 && strcmp(mode, "delete") == 0 ? mend_mode(db, mode, size) : error;
}

uint64_t tw_store_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uint64_t tw__store_monotonic(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * TW__NS_PER_S + (uint64_t)now.tv_nsec;
}

/* While another process makes a new file, SQLite refuses at once to read or set the mode. So it is tried again,
 * for as long as the caller waits for a busy file. Or SQLite reports the mode `delete`, which a file without a
 * mode has. A file of others may have it for good, so this is tried again for a short while only. */
static int wait_for_mode(struct tw__store_db *db, char *mode, size_t size,
                         const struct tw_store_options *options)
{
    uint64_t begin_ns = tw__store_monotonic(), busy_ms = options->busy_ms;
    uint64_t new_ms = busy_ms < NEW_FILE_MS ? busy_ms : NEW_FILE_MS;
    for (;;) {
        int error = read_mode(db, mode, size, options);
        bool unset = error == 0 && strcmp(mode, "delete") == 0;
        uint64_t limit_ms = error == TW_EBUSY ? busy_ms : unset ? new_ms : 0;
        if (tw__store_monotonic() - begin_ns >= limit_ms * (TW__NS_PER_S / 1000))
            return error;
        sqlite3_sleep(2);
    }
}

static int check_mode(struct tw__store_db *db, const struct tw_store_options *options)
{
    char mode[32], encoding[32], pages[32];
    int error = wait_for_mode(db, mode, sizeof mode, options);
    if (error == 0) /* the first reading in this mode: SQLite makes the files beside a new one */
        error = ask_text(db, "PRAGMA page_count", pages, sizeof pages);
    if (error == 0)
        error = ask_text(db, "PRAGMA encoding", encoding, sizeof encoding);
    if (error == 0 && strcmp(mode, "wal") != 0)
        return tw__store_db_refuse(
            db, TW_EFORMAT, "journal_mode is '%s': expected 'wal' (PRAGMA journal_mode=WAL sets it)", mode);
    if (error == 0 && strcmp(encoding, "UTF-8") != 0)
        return tw__store_db_refuse(db, TW_EFORMAT, "encoding is '%s': expected 'UTF-8'", encoding);
    return error;
}

/* ---- opening --------------------------------------------------------------------------------------------- */

/* Asks why no file can be made in the folder of this one. SQLite opens a file that it cannot make a second
 * time, to read only, and keeps the errno of that try: "No such file". Nothing is opened here, because to
 * close a file would end the locks that SQLite has on it in this process. Returns: an errno; 0: the folder is
 * good. */
static int ask_folder(const char *path)
{
    char folder[TW__STORE_PATH];
    struct statvfs space;
    const char *slash = strrchr(path, '/');
    size_t size = slash == NULL ? 0 : slash == path ? 1 : (size_t)(slash - path);
    snprintf(folder, sizeof folder, "%.*s", size > 0 ? (int)size : 1, size > 0 ? path : ".");
    if (faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) != 0)
        return errno;
    bool asked = statvfs(folder, &space) == 0;
    return asked && (space.f_bavail == 0 || (space.f_files > 0 && space.f_favail == 0)) ? ENOSPC : 0;
}

/* SQLite refuses a long path without a reason. It counts from the root on, and must have room for the name of a
 * journal, which ends with "-journal". Returns: 0 if that is not the reason. */
static int check_length(struct tw__store_db *db, const char *path)
{
    char folder[TW__STORE_PATH];
    const sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    bool known = path[0] == '/' || getcwd(folder, sizeof folder) != NULL;
    size_t before = path[0] != '/' && known ? strlen(folder) + strlen("/") : 0, size = before + strlen(path);
    size_t most = (size_t)vfs->mxPathname - strlen("-journal");
    if (size <= most)
        return 0;
    return tw__store_db_refuse(db, TW_EINVAL,
                               "path has %zu bytes from the root on: expected at most %zu (SQLite's limit); "
                               "give the file a shorter path",
                               size, most);
}

static int refuse_file(struct tw__store_db *db, int code, const char *path, bool make)
{
    int error = (code & 0xff) == SQLITE_CANTOPEN ? check_length(db, path) : 0;
    if (error != 0)
        return error;
    int number = sqlite3_system_errno(db->db), asked = number == ENOENT && make ? ask_folder(path) : 0;
    if ((code & 0xff) != SQLITE_CANTOPEN || number == 0)
        return tw__store_db_error(db, code, "open");
    number = asked != 0 ? asked : number;
    return tw__store_db_refuse(db, tw__store_errno_error(number), "%s: %s (SQLite's code %d)", strerror(number),
                               sqlite3_errmsg(db->db), code);
}

/* Explains an error of the first reading. SQLite makes its log beside the file, and may not be able to. */
static int explain_reading(struct tw__store_db *db, int error, const char *path)
{
    int code = sqlite3_errcode(db->db) & 0xff;
    int number = code == SQLITE_CANTOPEN || code == SQLITE_READONLY ? ask_folder(path) : 0;
    if (number == 0)
        return error;
    return tw__store_db_refuse(db, tw__store_errno_error(number),
                               "%s: the folder of the file, where SQLite makes its log", strerror(number));
}

/* SQLite opens a device or a pipe, and fails with another reason. A folder it refuses by itself. */
static int check_kind(struct tw__store_db *db, const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0 || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode))
        return 0;
    return tw__store_db_refuse(db, TW_EINVAL, "path is '%.400s': expected a file, found a %s", path,
                               S_ISFIFO(status.st_mode)   ? "pipe"
                               : S_ISSOCK(status.st_mode) ? "socket"
                                                          : "device");
}

/* Refuses a log that lies beside no file, or an empty one. SQLite removes it with the first reading. But a file
 * is never empty once it has a log. So the log is that of a file that was moved away, and may have its newest
 * tasks. The log is looked at first: another process may be making both. */
static int check_log(struct tw__store_db *db, const char *path)
{
    char log[TW__STORE_PATH];
    struct stat status;
    snprintf(log, sizeof log, "%s-wal", path);
    if (stat(log, &status) != 0 || status.st_size == 0)
        return 0;
    if (stat(path, &status) == 0 ? status.st_size > 0 : errno != ENOENT)
        return 0;
    return tw__store_db_refuse(db, TW_EREPLACED,
                               "%.400s is the log of a file that is not here any more: move it and -shm with "
                               "that file, under its new name, or remove them if it is gone",
                               log);
}

/* SQLite opens a file that it must not write to read only, and tells no reason. */
static int refuse_to_read_only(struct tw__store_db *db, const char *path)
{
    int number = faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0 ? errno : 0;
    if (number == 0)
        return tw__store_db_refuse(db, TW_EREADONLY, "the file cannot be written");
    return tw__store_db_refuse(
        db, TW_EREADONLY, "%s: the file cannot be written, and even a look needs that (%s)", strerror(number),
        number == EROFS ? "mount it for writing, or copy it and its -wal"
                        : "the user needs the right to write it and its folder");
}

/* Opens a connection, and notes which file it has. Nothing is read: with the first reading SQLite opens the log
 * that lies at the path, or removes it. */
static int connect_to(struct tw__store_db *db, const char *path, const struct tw_store_options *options)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
                SQLITE_OPEN_PRIVATECACHE;
    if (options->flags & TW_STORE_OPEN_EXISTING)
        flags &= ~SQLITE_OPEN_CREATE;
    int error = check_log(db, path);
    if (error != 0)
        return error;
    errno = 0;
    int code = sqlite3_open_v2(path, &db->db, flags, NULL);
    if (db->db == NULL)
        return tw__store_db_refuse(db, TW_ENOMEM, "no memory");
    error = check_kind(db, path);
    if (error != 0)
        return error;
    if (code != SQLITE_OK)
        return refuse_file(db, code, path, (flags & SQLITE_OPEN_CREATE) != 0);
    error = tw__store_db_identify(db);
    if (error == 0) /* the file may be new since the first look, and the path may be that of a link */
        error = check_log(db, sqlite3_db_filename(db->db, "main"));
    if (error != 0)
        return error;
    sqlite3_busy_timeout(db->db, (int)options->busy_ms);
    db->busy_ms = options->busy_ms;
    if (sqlite3_db_readonly(db->db, "main") == 1)
        return refuse_to_read_only(db, path);
    return 0;
}

/* Ends an opening, after the first reading, which has had this error. */
static int end_open(struct tw__store_db *db, int error, const char *path)
{
    if (error == TW_EIO || error == TW_EREADONLY)
        error = explain_reading(db, error, path);
    if (error == 0)
        error = tw__store_db_identify_log(db);
    if (error == 0) /* a rollback must not need memory */
        tw__store_db_statement(db, TW__STORE_ROLLBACK, &error);
    return error;
}

int tw__store_set(struct tw__store_db *db, const struct tw_store_options *options)
{
    char settings[sizeof PRAGMAS + sizeof "NORMAL" + 3 * sizeof "2147483647"];
    sqlite3_snprintf(sizeof settings, settings, PRAGMAS,
                     options->flags & TW_STORE_OPEN_LAZY ? "NORMAL" : "FULL", CACHE_KIB, CHECKPOINT_PAGES,
                     TW__STORE_LOG_MAX);
    return tw__store_db_exec(db, settings, "settings");
}

int tw__store_open(struct tw__store_db *db, const char *path, const struct tw_store_options *options)
{
    int error = connect_to(db, path, options);
    if (error == 0)
        error = end_open(db, check_mode(db, options), path);
    return error == 0 ? tw__store_set(db, options) : error;
}

/* A new file at the path would get the log of the old one, and SQLite would damage either. So the files are
 * looked at before and after, and no file is made. A file that was opened in between is read only if it is the
 * same one. */
int tw__store_open_further(struct tw__store_db *db, const struct tw__store_db *first,
                           const struct tw_store_options *options)
{
    char version[32];
    const char *path = sqlite3_db_filename(first->db, "main");
    struct tw_store_options existing = *options;
    int error = tw__store_db_check_files_of(first, db->message, db->size);
    if (error != 0)
        return error;
    existing.flags |= TW_STORE_OPEN_EXISTING;
    db->files.main = first->files.main;
    error = connect_to(db, path, &existing);
    if (error == 0) /* the only questions that do without the schema are those for a number of the first page */
        error = end_open(db, ask_text(db, "PRAGMA schema_version", version, sizeof version), path);
    int replaced = tw__store_db_check_files_of(first, db->message, db->size);
    return replaced != 0 ? replaced : error;
}

/* The first checkpoint waits for nobody. The second one needs the log for itself, for a moment: it has nothing
 * left to move then, and gives up at once if somebody uses the log. */
void tw__store_cut_log(struct tw__store_db *db, uint64_t most, uint64_t busy_ms)
{
    struct stat status;
    int frames = 0, moved = -1;
    if (stat(sqlite3_filename_wal(sqlite3_db_filename(db->db, "main")), &status) != 0 ||
        (uint64_t)status.st_size <= most)
        return;
    sqlite3_wal_checkpoint_v2(db->db, "main", SQLITE_CHECKPOINT_PASSIVE, &frames, &moved);
    if (frames != moved)
        return;
    sqlite3_busy_timeout(db->db, 0);
    sqlite3_wal_checkpoint_v2(db->db, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    sqlite3_busy_timeout(db->db, (int)busy_ms);
}

/* SQLite moves the log into the file with the last connection, and removes the log by its name. A log that was
 * removed would bring back pages that others have changed since, and the log at its path would be theirs. */
void tw__store_close(struct tw__store_db *db)
{
    tw__store_db_fini(db);
    if (db->db != NULL && !tw__store_db_has_files(db))
        sqlite3_db_config(db->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_close(db->db);
    db->db = NULL;
}

/* ---- the tables ------------------------------------------------------------------------------------------ */

/* Finds out whether the file has a store's tables. A program may have a tw_meta of its own. */
static int find_tables(struct tw__store_db *db, bool *found)
{
    char names[32];
    int error = ask_text(db,
                         "SELECT group_concat(name) FROM (SELECT name FROM main.sqlite_schema"
                         " WHERE name IN ('tw_meta', 'tw_task') ORDER BY name)",
                         names, sizeof names);
    *found = error == 0 && strcmp(names, "tw_meta,tw_task") == 0;
    if (error == 0 && strcmp(names, "tw_meta") == 0)
        return tw__store_db_refuse(db, TW_EFORMAT,
                                   "the file has a table tw_meta, but no tw_task: it is another program's, or "
                                   "tw_task was removed");
    return error;
}

static int make_tables(struct tw__store_db *db)
{
    sqlite3_str *text = sqlite3_str_new(db->db);
    for (const char *const *line = tw__store_schema; *line != NULL; line++)
        sqlite3_str_appendall(text, *line);
    char *sql = sqlite3_str_finish(text);
    int error = sql != NULL ? tw__store_db_exec(db, sql, "make the tables")
                            : tw__store_db_refuse(db, TW_ENOMEM, "no memory");
    sqlite3_free(sql);
    return error;
}

/* Checks the tables, or makes them, in a transaction: another process may have made them since. */
static int add_tables(struct tw__store_db *db)
{
    bool found;
    int error = tw__store_db_begin(db, TW__STORE_BEGIN);
    if (error == 0)
        error = find_tables(db, &found);
    if (error == 0)
        error = found ? tw__store_db_begin_revisions(db) : make_tables(db);
    if (error == 0)
        error = tw__store_db_do(db, TW__STORE_COMMIT, "commit");
    tw__store_db_roll_back(db);
    return error;
}

/* Most opens find the tables, and need no lock. */
int tw__store_open_tables(struct tw__store_db *db, const struct tw_store_options *options)
{
    bool found;
    int error = find_tables(db, &found);
    if (error != 0)
        return error;
    if (found)
        return tw__store_db_begin_revisions(db);
    return options->flags & TW_STORE_OPEN_EXISTING ? refuse_foreign(db) : add_tables(db);
}
