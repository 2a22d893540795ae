/* SPDX-License-Identifier: MIT
 *
 * Which files a store opens, and which it refuses and leaves as they are.
 */
#include "support.h"
#include "tests/support/eventually.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* The clocks that the store reads. Where they stand still, no limit on a wait is ever reached. Or the monotonic
 * clock goes on by a tenth of a second with each look at it. */
static bool stands_still, goes_with_each_look;
static int looks;
int __real_clock_gettime(clockid_t id, struct timespec *now);
int __wrap_clock_gettime(clockid_t id, struct timespec *now);
int __wrap_clock_gettime(clockid_t id, struct timespec *now)
{
    *now = (struct timespec){.tv_sec = 1700000000};
    if (goes_with_each_look && id == CLOCK_MONOTONIC) {
        *now = (struct timespec){.tv_sec = looks / 10, .tv_nsec = looks % 10 * 100000000};
        looks++;
        return 0;
    }
    return stands_still ? 0 : __real_clock_gettime(id, now);
}

/* Whether the disk has an inode left. */
static bool no_inodes;
int __real_statvfs(const char *path, struct statvfs *space);
int __wrap_statvfs(const char *path, struct statvfs *space);
int __wrap_statvfs(const char *path, struct statvfs *space)
{
    int error = __real_statvfs(path, space);
    if (no_inodes)
        space->f_files = 1, space->f_favail = 0;
    return error;
}

/* open(2), for SQLite, on a disk without inodes. */
static int open_nothing(const char *path, int flags, int mode)
{
    (void)path, (void)mode;
    errno = flags & O_CREAT ? ENOSPC : ENOENT;
    return -1;
}

/* faccessat(2) and open(2), for SQLite, on a file system that is mounted to be read only. */
static bool read_only;
int __real_faccessat(int folder, const char *path, int mode, int flags);
int __wrap_faccessat(int folder, const char *path, int mode, int flags);
int __wrap_faccessat(int folder, const char *path, int mode, int flags)
{
    if (!read_only || !(mode & W_OK))
        return __real_faccessat(folder, path, mode, flags);
    errno = EROFS;
    return -1;
}

static int open_to_read_only(const char *path, int flags, int mode)
{
    errno = EROFS;
    return (flags & O_ACCMODE) == O_RDONLY ? open(path, flags, mode) : -1;
}

/* Opens the fixture's file, whose own store is closed first. Returns the error; the message is in `text`. */
static char text[TW_STORE_MESSAGE_SIZE];
static int reopen(struct fixture *fixture, const struct tw_store_options *options)
{
    tw_store_close(fixture->store);
    fixture->store = NULL;
    text[0] = '\0';
    return tw_store_open(&fixture->store, fixture->path, options, text, sizeof text);
}

static void refuses(struct fixture *fixture, const struct tw_store_options *options, int error,
                    const char *expected)
{
    assert_int_equal(reopen(fixture, options), error);
    assert_string_equal(text, expected);
}

/* Makes a file with this SQL in place of the fixture's. */
static void make_file(struct fixture *fixture, const char *sql)
{
    tw_store_close(fixture->store);
    fixture->store = NULL;
    unlink(fixture->path);
    sqlite3 *db = other_open(fixture);
    other_ask(db, sql);
    sqlite3_close(db);
}

static void a_file_keeps_its_other_tables(void **state)
{
    struct fixture *fixture = *state;
    make_file(fixture, "PRAGMA journal_mode=WAL; PRAGMA user_version=17; PRAGMA application_id=23;"
                       "CREATE TABLE orders(id); INSERT INTO orders VALUES (42)");
    assert_int_equal(reopen(fixture, NULL), 0);
    put(fixture->store, "a", 1);
    sqlite3 *db = other_open(fixture);
    assert_string_equal(other_ask(db, "SELECT id FROM orders"), "42");
    assert_string_equal(other_ask(db, "PRAGMA user_version"), "17");
    assert_string_equal(other_ask(db, "PRAGMA application_id"), "23");
    sqlite3_close(db);
}

static void a_file_in_another_journal_mode_is_refused_and_unchanged(void **state)
{
    struct fixture *fixture = *state;
    make_file(fixture, "PRAGMA journal_mode=DELETE; CREATE TABLE orders(id)");
    refuses(fixture, NULL, TW_EFORMAT,
            "journal_mode is 'delete': expected 'wal' (PRAGMA journal_mode=WAL sets it)");
    sqlite3 *db = other_open(fixture);
    assert_string_equal(other_ask(db, "PRAGMA journal_mode"), "delete");
    assert_string_equal(other_ask(db, "SELECT count(*) FROM sqlite_schema"), "1");
    sqlite3_close(db);
}

/* VACUUM INTO makes a file in the mode `delete`. */
static void a_copy_made_by_vacuum_into_is_a_store(void **state)
{
    struct fixture *fixture = *state;
    struct tw_store *store;
    char copy[PATH_SIZE + 8], sql[PATH_SIZE + 40];
    put(fixture->store, "a", 1);
    sqlite3 *db = other_open(fixture);
    snprintf(copy, sizeof copy, "%s-copy", fixture->path);
    sqlite3_snprintf(sizeof sql, sql, "VACUUM INTO %Q", copy);
    other_ask(db, sql);
    sqlite3_close(db);
    assert_int_equal(tw_store_open(&store, copy, NULL, text, sizeof text), 0);
    assert_int_equal(put(store, "b", 2), 1);
    assert_string_equal(scan(store, NULL), "a@1 b@2");
    tw_store_close(store);
    unlink(copy);
}

static void a_copy_of_another_format_keeps_its_mode(void **state)
{
    struct fixture *fixture = *state;
    struct tw_store *store;
    char copy[PATH_SIZE + 8], sql[PATH_SIZE + 40];
    sqlite3 *db = other_open(fixture), *other;
    snprintf(copy, sizeof copy, "%s-copy", fixture->path);
    sqlite3_snprintf(sizeof sql, sql, "UPDATE tw_meta SET format = 2; VACUUM INTO %Q", copy);
    other_ask(db, sql);
    sqlite3_close(db);
    assert_int_equal(tw_store_open(&store, copy, NULL, text, sizeof text), TW_EFORMAT);
    assert_string_equal(text, "format is 2: expected 1; the version that wrote it can read it");
    assert_int_equal(sqlite3_open(copy, &other), SQLITE_OK);
    assert_string_equal(other_ask(other, "PRAGMA journal_mode"), "delete");
    sqlite3_close(other);
    unlink(copy);
}

static void text_that_is_not_utf8_is_refused(void **state)
{
    struct fixture *fixture = *state;
    make_file(fixture, "PRAGMA encoding='UTF-16le'; PRAGMA journal_mode=WAL; CREATE TABLE orders(id)");
    refuses(fixture, NULL, TW_EFORMAT, "encoding is 'UTF-16le': expected 'UTF-8'");
}

/* SQL that makes the file one of another format, in turn, and how it is refused. A later format may have other
 * columns. Before the first release there were rows of names and values. */
static const struct format {
    const char *sql, *text;
} formats[] = {
    {"UPDATE tw_meta SET format = 2", "format is 2: expected 1; the version that wrote it can read it"},
    {"ALTER TABLE tw_meta RENAME COLUMN restored TO mark",
     "format is 2: expected 1; the version that wrote it can read it"},
    {"UPDATE tw_meta SET format = -3", "format is -3: expected 1; the version that wrote it can read it"},
    {"DROP TABLE tw_meta; CREATE TABLE tw_meta(name TEXT PRIMARY KEY NOT NULL, value INTEGER NOT NULL)"
     " WITHOUT ROWID; INSERT INTO tw_meta VALUES ('version', 2), ('seq', 1), ('run', 0), ('changes', 0),"
     " ('restored', 0)",
     "format is 0: expected 1; the version that wrote it can read it"},
};

static void a_file_of_another_format_is_refused_and_unchanged(void **state)
{
    struct fixture *fixture = *state;
    char before[200];
    struct tw_store_change put_b = {.verb = TW_STORE_VERB_PUT, .task = {.queue = "q", .id = tw_text("b")}};
    sqlite3 *db = other_open(fixture);
    put(fixture->store, "a", 1);
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        static const char dump[] =
            "SELECT group_concat(quote(id)) || (SELECT sum(length(sql)) FROM sqlite_schema)"
            " FROM tw_task";
        other_ask(db, formats[i].sql);
        snprintf(before, sizeof before, "%s", other_ask(db, dump));
        refuses(fixture, NULL, TW_EFORMAT, formats[i].text);
        assert_int_equal(tw_store_apply_on(db, NULL, &put_b, 1, text, sizeof text), TW_EFORMAT);
        assert_string_equal(text, formats[i].text);
        snprintf(text, sizeof text, "%s", other_ask(db, dump));
        assert_string_equal(text, before);
    }
    sqlite3_close(db);
}

/* A backup of another format is restored into the file. */
static void an_open_file_of_another_format_is_refused(void **state)
{
    struct fixture *fixture = *state;
    sqlite3 *db = other_open(fixture);
    put(fixture->store, "a", 1);
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        other_ask(db, formats[i].sql);
        assert_int_equal(store_count(fixture->store, "q", false), TW_EFORMAT);
        assert_string_equal(message(fixture->store), formats[i].text);
        assert_int_equal(put(fixture->store, "b", 1), TW_EFORMAT);
        assert_string_equal(message(fixture->store), formats[i].text);
    }
    assert_string_equal(other_ask(db, "SELECT group_concat(id) FROM tw_task"), "a");
    sqlite3_close(db);
}

static void a_tw_meta_without_its_row_is_told_as_such(void **state)
{
    struct fixture *fixture = *state;
    sqlite3 *db = other_open(fixture);
    other_ask(db, "DELETE FROM tw_meta");
    refuses(fixture, NULL, TW_ECORRUPT, "tw_meta has no row: expected one");
    sqlite3_close(db);
}

/* Other programs have tables of this name too. */
static void a_tw_meta_of_another_program_is_told_as_such(void **state)
{
    struct fixture *fixture = *state;
    static const char *const none = "the file has a table tw_meta, but no tw_task: it is another program's, or "
                                    "tw_task was removed";
    make_file(fixture, "PRAGMA journal_mode=WAL; CREATE TABLE tw_meta(id, about)");
    refuses(fixture, NULL, TW_EFORMAT, none);
    refuses(fixture, &(struct tw_store_options){.flags = TW_STORE_OPEN_EXISTING}, TW_EFORMAT, none);
    sqlite3 *db = other_open(fixture);
    other_ask(
        db, "DROP TABLE tw_meta; CREATE TABLE tw_meta(name, value); INSERT INTO tw_meta VALUES ('version', 9)");
    refuses(fixture, NULL, TW_EFORMAT, none);
    other_ask(db, "DROP TABLE tw_meta; CREATE TABLE tw_meta(id, about); CREATE TABLE tw_task(id)");
    refuses(fixture, NULL, TW_EFORMAT, "tw_meta has no column format: it is another program's");
    other_ask(db, "DROP TABLE tw_meta; CREATE TABLE tw_meta(name, value); INSERT INTO tw_meta VALUES ('a', 1)");
    refuses(fixture, NULL, TW_EFORMAT, "tw_meta has no column format: it is another program's");
    other_ask(db, "DROP TABLE tw_meta; CREATE TABLE tw_meta(format)");
    refuses(fixture, NULL, TW_EFORMAT,
            "tw_meta has no column revision: it is another program's, or of a version before 1.0.0");
    other_ask(db, "INSERT INTO tw_meta VALUES (1)");
    refuses(fixture, NULL, TW_EFORMAT,
            "tw_meta has no column revision: it is another program's, or of a version before 1.0.0");
    other_ask(db, "UPDATE tw_meta SET format = 'abc'");
    refuses(fixture, NULL, TW_EFORMAT, "the format in tw_meta is no whole number: it is another program's");
    assert_string_equal(other_ask(db, "SELECT group_concat(name) FROM sqlite_schema ORDER BY name"),
                        "tw_task,tw_meta");
    sqlite3_close(db);
}

static void a_file_that_is_no_database_is_refused_and_unchanged(void **state)
{
    struct fixture *fixture = *state;
    char buffer[32] = "";
    tw_store_close(fixture->store);
    fixture->store = NULL;
    FILE *file = fopen(fixture->path, "w");
    for (int i = 0; i < 1000; i++)
        fputs("no database\n", file);
    fclose(file);
    refuses(fixture, NULL, TW_EFORMAT, "open: file is not a database (SQLite's code 26)");
    file = fopen(fixture->path, "r");
    assert_int_equal(fread(buffer, 1, 12, file), 12);
    fclose(file);
    assert_string_equal(buffer, "no database\n");
}

/* A past bug: a part of the file had been removed, or it was no database. */
static void a_path_that_names_a_device_or_a_pipe_is_refused(void **state)
{
    struct tw_store *store = NULL;
    char path[PATH_SIZE], expected[PATH_SIZE + 60];
    snprintf(path, sizeof path, "%.200s/pipe", ((struct fixture *)*state)->folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(tw_store_open(&store, "/dev/null", NULL, text, sizeof text), TW_EINVAL);
    assert_string_equal(text, "path is '/dev/null': expected a file, found a device");
    snprintf(expected, sizeof expected, "path is '%s': expected a file, found a pipe", path);
    assert_int_equal(tw_store_open(&store, path, NULL, text, sizeof text), TW_EINVAL);
    assert_string_equal(text, expected);
    assert_null(store);
    unlink(path);
}

static void a_path_that_names_no_file_is_refused(void **state)
{
    struct tw_store *store = NULL;
    (void)state;
    assert_int_equal(tw_store_open(&store, ":memory:", NULL, text, sizeof text), TW_EINVAL);
    assert_string_equal(text, "path is ':memory:': expected the name of a file");
    assert_int_equal(tw_store_open(&store, "", NULL, text, sizeof text), TW_EINVAL);
    assert_int_equal(tw_store_open(&store, "file::memory:", NULL, text, sizeof text), TW_EINVAL);
    assert_int_equal(tw_store_open(&store, "/nowhere/tasks.db", NULL, text, sizeof text), TW_EIO);
    assert_string_equal(text, "No such file or directory: unable to open database file (SQLite's code 14)");
    assert_int_equal(tw_store_open(&store, "/nowhere/tasks.db", NULL, NULL, 0), TW_EIO);
    assert_null(store);
}

static enum tw_answer fail_job(void *arg, struct tw_job *job)
{
    (void)arg;
    (void)job;
    fail_msg("a task is called");
    return TW_ANSWER_DONE;
}

/* Calls this with so few descriptors left that it fails, then with one more, and so on. Returns how often it
 * has failed. Each time it must say why. */
static int count_failures(int (*call)(struct fixture *fixture), struct fixture *fixture)
{
    struct rlimit usual, few;
    int next = dup(0), error, n = 0;
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    few = usual;
    few.rlim_cur = (rlim_t)next;
    do {
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        error = call(fixture);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
        if (error != 0 && (error != TW_ESYSTEM || (strstr(text, "Too many open files") == NULL &&
                                                   strcmp(text, tw_store_strerror(TW_ESYSTEM)) != 0)))
            fail_msg("%d descriptors: %d, %s", n, error, text);
        few.rlim_cur++;
        n++;
    } while (error != 0);
    return n - 1;
}

static int open_again(struct fixture *fixture)
{
    return reopen(fixture, NULL);
}

static int start_run(struct fixture *fixture)
{
    int error = tw_store_start(fixture->store, NULL);
    tw_store_message(fixture->store, text, sizeof text);
    return error;
}

/* A bug: the log of SQLite, and the log's index, could not be opened for no reason. */
static void a_process_without_descriptors_is_told_so(void **state)
{
    struct fixture *fixture = *state;
    tw_store_close(fixture->store);
    fixture->store = NULL;
    assert_true(count_failures(open_again, fixture) >= 4);
    assert_int_equal(tw_store_handle(fixture->store, "q", 0, fail_job, NULL), 0);
    assert_true(count_failures(start_run, fixture) >= 4);
    assert_int_equal(tw_store_stop(fixture->store), 0);
}

/* Opens a file in another process, which is not root's. Fails unless that is refused with these two. */
static void others_are_refused(const char *path, int error, const char *expected)
{
    pid_t child = fork();
    if (child == 0) {
        struct tw_store *store;
        bool good = geteuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0);
        good = good && tw_store_open(&store, path, NULL, text, sizeof text) == error &&
               strcmp(text, expected) == 0;
        if (!good)
            fprintf(stderr, "%s: %s\n", path, text);
        _exit(good ? 0 : 1);
    }
    assert_int_equal(eventually_exited(child), 0);
}

/* A bug: the reason was "No such file or directory" in each case, or there was none. */
/* A bug: "unable to open database file", and no reason. */
static void a_path_that_is_too_long_for_sqlite_is_told(void **state)
{
    enum { MOST = 504 };
    struct tw_store *store = NULL;
    char path[MOST + 2], home[PATH_SIZE], expected[PATH_SIZE];
    static const char *const format = "path has %zu bytes from the root on: expected at most 504 (SQLite's "
                                      "limit); give the file a shorter path";
    (void)state;
    memset(path, 'x', sizeof path);
    path[0] = path[200] = path[400] = '/';
    path[MOST + 1] = '\0';
    snprintf(expected, sizeof expected, format, strlen(path));
    assert_int_equal(tw_store_open(&store, path, NULL, text, sizeof text), TW_EINVAL);
    assert_string_equal(text, expected);
    assert_non_null(getcwd(home, sizeof home));
    snprintf(expected, sizeof expected, format, strlen(home) + strlen(path));
    assert_int_equal(tw_store_open(&store, path + 1, NULL, text, sizeof text), TW_EINVAL);
    assert_string_equal(text, expected);
    path[MOST] = '\0';
    assert_int_equal(tw_store_open(&store, path, NULL, text, sizeof text), TW_EIO);
    assert_string_equal(text, "No such file or directory: unable to open database file (SQLite's code 14)");
    assert_null(store);
}

static void a_folder_in_which_no_file_can_be_made_is_told(void **state)
{
    struct fixture *fixture = *state;
    char above[PATH_SIZE + 8], made[PATH_SIZE + 8];
    tw_store_close(fixture->store);
    fixture->store = NULL;
    snprintf(above, sizeof above, "%s/..", fixture->folder);
    snprintf(made, sizeof made, "%s/new.db", fixture->folder);
    assert_int_equal(chmod(above, 0755), 0);
    assert_int_equal(chmod(fixture->path, 0444), 0);
    assert_int_equal(chmod(fixture->folder, 0777), 0);
    others_are_refused(fixture->path, TW_EREADONLY,
                       "Permission denied: the file cannot be written, and even a look needs that "
                       "(the user needs the right to write it and its folder)");
    assert_int_equal(chmod(fixture->path, 0666), 0);
    assert_int_equal(chmod(fixture->folder, 0555), 0);
    others_are_refused(made, TW_EREADONLY,
                       "Permission denied: unable to open database file (SQLite's code 14)");
    others_are_refused(fixture->path, TW_EREADONLY,
                       "Permission denied: the folder of the file, where SQLite makes its log");
    assert_int_equal(chmod(fixture->folder, 0700), 0);
}

/* A bug: the error of a file on such a mount had neither a reason nor a remedy. */
static void a_mount_to_be_read_only_is_told(void **state)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    assert_int_equal(vfs->xSetSystemCall(vfs, "open", (sqlite3_syscall_ptr)open_to_read_only), SQLITE_OK);
    read_only = true;
    int error = reopen(*state, NULL);
    read_only = false;
    vfs->xSetSystemCall(vfs, "open", NULL);
    assert_int_equal(error, TW_EREADONLY);
    assert_string_equal(text, "Read-only file system: the file cannot be written, and even a look needs that "
                              "(mount it for writing, or copy it and its -wal)");
}

static void a_disk_without_inodes_is_full(void **state)
{
    struct fixture *fixture = *state;
    char made[PATH_SIZE + 8];
    struct tw_store *store = NULL;
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    snprintf(made, sizeof made, "%s/new.db", fixture->folder);
    assert_int_equal(vfs->xSetSystemCall(vfs, "open", (sqlite3_syscall_ptr)open_nothing), SQLITE_OK);
    no_inodes = true;
    int error = tw_store_open(&store, made, NULL, text, sizeof text);
    no_inodes = false;
    vfs->xSetSystemCall(vfs, "open", NULL);
    assert_int_equal(error, TW_ENOSPACE);
    assert_string_equal(text, "No space left on device: unable to open database file (SQLite's code 14)");
    assert_null(store);
}

/* A folder is where SQLite makes its log. */
static void a_log_that_cannot_be_made_names_the_folder(void **state)
{
    struct fixture *fixture = *state;
    struct tw_store *store = NULL;
    char log[PATH_SIZE + 8];
    snprintf(log, sizeof log, "%s-wal", fixture->path);
    tw_store_close(fixture->store);
    fixture->store = NULL;
    assert_int_equal(mkdir(log, 0700), 0);
    assert_int_equal(tw_store_open(&store, fixture->path, NULL, text, sizeof text), TW_EIO);
    no_inodes = true;
    int error = tw_store_open(&store, fixture->path, NULL, text, sizeof text);
    no_inodes = false;
    assert_int_equal(error, TW_ENOSPACE);
    assert_string_equal(text, "No space left on device: the folder of the file, where SQLite makes its log");
    assert_null(store);
    assert_int_equal(rmdir(log), 0);
}

/* A bug: of a new file, which SQLite reads in WAL mode later, the error had no reason. A link is where SQLite
 * makes the index of its log. */
static void an_index_of_the_log_that_cannot_be_made_names_the_folder(void **state)
{
    struct fixture *fixture = *state;
    char map[PATH_SIZE + 8];
    snprintf(map, sizeof map, "%s-shm", fixture->path);
    tw_store_close(fixture->store);
    fixture->store = NULL;
    store_remove(fixture);
    assert_int_equal(symlink("/nowhere", map), 0);
    no_inodes = true;
    int error = reopen(fixture, NULL);
    no_inodes = false;
    assert_int_equal(error, TW_ENOSPACE);
    assert_string_equal(text, "No space left on device: the folder of the file, where SQLite makes its log");
    assert_int_equal(unlink(map), 0);
    assert_int_equal(reopen(fixture, NULL), 0);
}

/* A file that is missing, is empty, or has other tables alone stays as it is. */
static void a_store_that_must_exist_is_not_made(void **state)
{
    struct fixture *fixture = *state;
    struct tw_store_options options = {.flags = TW_STORE_OPEN_EXISTING};
    assert_int_equal(reopen(fixture, &options), 0);
    tw_store_close(fixture->store);
    fixture->store = NULL;
    store_remove(fixture);
    assert_int_equal(tw_store_open(&fixture->store, fixture->path, &options, text, sizeof text), TW_EIO);
    assert_int_not_equal(access(fixture->path, F_OK), 0);
    fclose(fopen(fixture->path, "w"));
    assert_int_equal(tw_store_open(&fixture->store, fixture->path, &options, text, sizeof text), TW_EFORMAT);
    assert_string_equal(text, "the file has no tables of a store");
    sqlite3 *db = other_open(fixture);
    assert_string_equal(other_ask(db, "PRAGMA page_count"), "0");
    other_ask(db, "PRAGMA journal_mode=WAL; CREATE TABLE orders(id)");
    assert_int_equal(tw_store_open(&fixture->store, fixture->path, &options, text, sizeof text), TW_EFORMAT);
    assert_string_equal(text, "the file has no tables of a store");
    assert_string_equal(other_ask(db, "SELECT count(*) FROM sqlite_schema"), "1");
    sqlite3_close(db);
}

/* An open refuses options with the words of the check. */
static void refuses_options(struct fixture *fixture, struct tw_store_options options, const char *expected)
{
    char checked[TW_STORE_MESSAGE_SIZE];
    assert_int_equal(tw_store_options_check(&options, checked, sizeof checked), TW_EINVAL);
    assert_memory_equal(checked, expected, strlen(expected));
    assert_int_equal(tw_store_options_check(&options, NULL, 0), TW_EINVAL);
    refuses(fixture, &options, TW_EINVAL, checked);
}

static void an_option_out_of_its_range_is_named(void **state)
{
    struct fixture *fixture = *state;
    refuses_options(fixture, (struct tw_store_options){.flags = 4}, "flags is '4': expected 0 to 3");
    refuses_options(fixture, (struct tw_store_options){.reserved[3] = 5},
                    "tw_store_options.reserved[3] is 5: expected 0");
    refuses_options(fixture, (struct tw_store_options){.busy_ms = 3600001},
                    "busy_ms is '3600001': expected 0 to 3600000");
    refuses_options(fixture, (struct tw_store_options){.max_payload = 999000001},
                    "max_payload is '999000001': expected 0 to 999000000");
    struct tw_store_options most = {.flags = 3, .busy_ms = 3600000, .max_payload = 999000000};
    assert_int_equal(tw_store_options_check(&most, text, sizeof text), 0);
    assert_int_equal(tw_store_options_check(&(struct tw_store_options){0}, NULL, 0), 0);
    assert_int_equal(reopen(fixture, &(struct tw_store_options){.max_payload = 3}), 0);
    struct tw_store_delayed task = {.queue = "q", .id = tw_text("a"), .payload = tw_text("abcd")};
    assert_int_equal(store_put(fixture->store, &task, 0), TW_EINVAL);
    assert_string_equal(message(fixture->store), "payload has 4 bytes: expected at most 3");
    assert_int_equal(reopen(fixture, &(struct tw_store_options){.max_payload = 999000000}), 0);
    task.payload.size = 999000000; /* it is refused before anybody reads it */
    assert_int_equal(store_put(fixture->store, &task, 0), TW_EINVAL);
    assert_string_equal(message(fixture->store),
                        "id and payload have 999000001 bytes: expected at most 999000000");
}

static void two_stores_share_a_file(void **state)
{
    struct fixture *fixture = *state;
    struct tw_store *second;
    assert_int_equal(tw_store_open(&second, fixture->path, NULL, text, sizeof text), 0);
    put(fixture->store, "a", TW_STORE_TIME_MAX);
    put(second, "b", TW_STORE_TIME_MAX - 1);
    assert_string_equal(scan(fixture->store, NULL), "b@253402300799998 a@253402300799999");
    assert_string_equal(scan(second, NULL), "b@253402300799998 a@253402300799999");
    tw_store_close(second);
}

/* Makes the file, or waits for another process that makes it, and puts a task. */
static void make_file_and_put(const struct fixture *fixture, const char *id)
{
    struct tw_store *store = NULL;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    stands_still = true;
    bool good =
        tw_store_open(&store, fixture->path, &patient, text, sizeof text) == 0 && put(store, id, 1) == 1;
    if (!good)
        fprintf(stderr, "%s\n", text);
    _exit(good ? 0 : 1);
}

/* Four processes open a new file at the same time, again and again. */
static void processes_may_make_a_file_together(void **state)
{
    struct fixture *fixture = *state;
    for (int round = 0; round < 10; round++) {
        pid_t children[4];
        tw_store_close(fixture->store);
        fixture->store = NULL;
        store_remove(fixture);
        for (int i = 0; i < 4; i++)
            if ((children[i] = fork()) == 0)
                make_file_and_put(fixture, (char[]){(char)('a' + i), 0});
        for (int i = 0; i < 4; i++)
            assert_int_equal(eventually_exited(children[i]), 0);
        assert_int_equal(reopen(fixture, NULL), 0);
        assert_int_equal(store_count(fixture->store, "q", false), 4);
    }
}

/* Two bugs: the wait ended after a quarter of a second, and its clock was one that can be set. */
static void a_file_that_another_process_makes_is_waited_for_as_long_as_asked(void **state)
{
    struct fixture *fixture = *state;
    struct tw_store_options options = {.busy_ms = 1000};
    make_file(fixture, "PRAGMA journal_mode=DELETE");
    sqlite3 *maker = other_open(fixture);
    other_ask(maker, "BEGIN IMMEDIATE");
    goes_with_each_look = true;
    int error = reopen(fixture, &options);
    goes_with_each_look = false;
    assert_int_equal(error, TW_EBUSY);
    assert_int_equal(looks, 11); /* at 0, 0.1, 0.2, ..., 1 s */
    other_ask(maker, "ROLLBACK");
    sqlite3_close(maker);
    assert_int_equal(reopen(fixture, &options), 0);
}

static void now_is_the_time_of_day(void **state)
{
    (void)state;
    uint64_t ms = tw_store_now();
    assert_in_range(ms, UINT64_C(1700000000000), TW_STORE_TIME_MAX - 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(a_file_keeps_its_other_tables),
        TEST(a_file_in_another_journal_mode_is_refused_and_unchanged),
        TEST(a_copy_made_by_vacuum_into_is_a_store),
        TEST(a_copy_of_another_format_keeps_its_mode),
        TEST(text_that_is_not_utf8_is_refused),
        TEST(a_file_of_another_format_is_refused_and_unchanged),
        TEST(an_open_file_of_another_format_is_refused),
        TEST(a_tw_meta_without_its_row_is_told_as_such),
        TEST(a_tw_meta_of_another_program_is_told_as_such),
        TEST(a_process_without_descriptors_is_told_so),
        TEST(a_file_that_is_no_database_is_refused_and_unchanged),
        TEST(a_path_that_names_a_device_or_a_pipe_is_refused),
        TEST(a_path_that_names_no_file_is_refused),
        TEST(a_path_that_is_too_long_for_sqlite_is_told),
        TEST(a_folder_in_which_no_file_can_be_made_is_told),
        TEST(a_mount_to_be_read_only_is_told),
        TEST(a_disk_without_inodes_is_full),
        TEST(a_log_that_cannot_be_made_names_the_folder),
        TEST(an_index_of_the_log_that_cannot_be_made_names_the_folder),
        TEST(a_store_that_must_exist_is_not_made),
        TEST(an_option_out_of_its_range_is_named),
        TEST(two_stores_share_a_file),
        TEST(processes_may_make_a_file_together),
        TEST(a_file_that_another_process_makes_is_waited_for_as_long_as_asked),
        TEST(now_is_the_time_of_day),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
