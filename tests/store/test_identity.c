/* SPDX-License-Identifier: MIT
 *
 * Which file is it? A file is removed, replaced by a rename, or restored from a backup, while it is open and
 * while its tasks run. SQLite's own backup restores into the file itself.
 */
#include "clock.h"
#include "running.h"
#include "src/store/runner.h"
#include "tests/support/eventually.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HOLD_MS = 3, SOON_MS = 1000, YOUNG_MS = 100, STANDBY_MS = 250, LOOK_MS = 30000, HOUR_MS = 3600000 };

/* ---- the system ------------------------------------------------------------------------------------------ */

static atomic_int no_stat; /* the number of an error; 0: none */
static atomic_bool other_device, old_sandbox, times_asked;

/* What somebody does before a path is looked at, after so many other looks; NULL: nothing. */
static void (*meanwhile)(const struct fixture *fixture);
static const struct fixture *meanwhile_fixture;
static int looks_before;

int __real_stat(const char *path, struct stat *status);
int __wrap_stat(const char *path, struct stat *status);
int __real_statx(int folder, const char *path, int flags, unsigned mask, struct statx *its);
int __wrap_statx(int folder, const char *path, int flags, unsigned mask, struct statx *its);

static void let_something_happen(void)
{
    if (meanwhile != NULL && looks_before-- == 0) {
        looks_before = 0;
        meanwhile(meanwhile_fixture);
        meanwhile = NULL; /* the runners of other tests only read it */
    }
}

int __wrap_stat(const char *path, struct stat *status)
{
    errno = atomic_load(&no_stat);
    if (errno != 0)
        return -1;
    let_something_happen();
    int result = __real_stat(path, status);
    status->st_dev += atomic_load(&other_device);
    return result;
}

int __wrap_statx(int folder, const char *path, int flags, unsigned mask, struct statx *its)
{
    errno = atomic_load(&no_stat) != 0 ? atomic_load(&no_stat) : atomic_load(&old_sandbox) ? EPERM : 0;
    if (errno != 0)
        return -1;
    if ((mask & (STATX_CTIME | STATX_MTIME)) != 0)
        atomic_store(&times_asked, true);
    let_something_happen();
    int result = __real_statx(folder, path, flags, mask, its);
    its->stx_dev_minor += atomic_load(&other_device);
    return result;
}

/* What somebody does while a connection is opened: the n-th from now on; NULL: nothing. */
enum moment { BEFORE_THE_CALL, BEFORE_OPENING, AFTER_OPENING, BEFORE_READING };
static struct {
    void (*call)(const struct fixture *fixture);
    const struct fixture *fixture;
    int n;
    enum moment when;
} opening;
static int openings, identified; /* how often, and with which error the last time */

static void reach(enum moment when)
{
    if (opening.call == NULL || opening.n != openings || opening.when != when)
        return;
    opening.call(opening.fixture);
    opening.call = NULL;
}

static void during_opening(int n, enum moment when, void (*call)(const struct fixture *fixture),
                           const struct fixture *fixture)
{
    openings = 0;
    opening.n = n;
    opening.when = when;
    opening.fixture = fixture;
    opening.call = call;
    if (when == BEFORE_THE_CALL) {
        call(fixture);
        opening.call = NULL;
    }
}

int __real_sqlite3_open_v2(const char *path, sqlite3 **db, int flags, const char *vfs);
int __wrap_sqlite3_open_v2(const char *path, sqlite3 **db, int flags, const char *vfs);
int __real_tw__store_db_identify(struct tw__store_db *db);
int __wrap_tw__store_db_identify(struct tw__store_db *db);

int __wrap_sqlite3_open_v2(const char *path, sqlite3 **db, int flags, const char *vfs)
{
    openings++;
    reach(BEFORE_OPENING);
    int code = __real_sqlite3_open_v2(path, db, flags, vfs);
    reach(AFTER_OPENING);
    return code;
}

int __wrap_tw__store_db_identify(struct tw__store_db *db)
{
    identified = __real_tw__store_db_identify(db);
    reach(BEFORE_READING);
    return identified;
}

/* Whose file is replaced during the next commit of the run, after that has looked for it; NULL: nobody's. And
 * how many jobs it had handed out when it looked for the file again. */
static const struct fixture *_Atomic claiming;
static atomic_uint_least64_t handed_out;

int __real_tw__store_claim(struct tw__store_db *db, void *batch);
int __wrap_tw__store_claim(struct tw__store_db *db, void *batch);
static void put_new_in_place(const struct fixture *fixture);

static void note_handed_out(const struct fixture *fixture)
{
    atomic_store(&handed_out, atomic_load(&fixture->store->run->runner->pool.tail));
}

int __wrap_tw__store_claim(struct tw__store_db *db, void *batch)
{
    const struct fixture *fixture = atomic_exchange(&claiming, NULL);
    if (fixture != NULL) {
        put_new_in_place(fixture);
        meanwhile_fixture = fixture;
        meanwhile = note_handed_out;
    }
    return __real_tw__store_claim(db, batch);
}

/* Whose lock is removed while the run counts itself, or does so anew; NULL: nobody's. */
static const struct fixture *_Atomic counting;

int __real_tw__store_count_run(struct tw__store_db *db, void *count);
int __wrap_tw__store_count_run(struct tw__store_db *db, void *count);
static void remove_lock(const struct fixture *fixture);

int __wrap_tw__store_count_run(struct tw__store_db *db, void *count)
{
    const struct fixture *fixture = atomic_exchange(&counting, NULL);
    if (fixture != NULL)
        remove_lock(fixture);
    return __real_tw__store_count_run(db, count);
}

/* ---- support --------------------------------------------------------------------------------------------- */

struct errors {
    atomic_int count, last;
};

static void note_error(void *arg, int error, const char *text)
{
    struct errors *errors = arg;
    assert_true(text[0] != '\0');
    atomic_store(&errors->last, error);
    atomic_fetch_add(&errors->count, 1);
}

static struct tw_store *store_of(void **state)
{
    return ((struct fixture *)*state)->store;
}

static struct tw_store *open_there(const struct fixture *fixture)
{
    struct tw_store *store;
    char text[TW_STORE_MESSAGE_SIZE];
    if (tw_store_open(&store, fixture->path, &patient, text, sizeof text) != 0)
        fail_msg("%s", text);
    return store;
}

static void remove_beside(const struct fixture *fixture, const char *end)
{
    char path[PATH_SIZE + 16];
    snprintf(path, sizeof path, "%s%s", fixture->path, end);
    unlink(path);
}

static void remove_file(const struct fixture *fixture)
{
    remove_beside(fixture, "");
}

static void remove_lock(const struct fixture *fixture)
{
    remove_beside(fixture, "-tickwheel");
}

static void replace_beside(const struct fixture *fixture, const char *end)
{
    char other[PATH_SIZE + 16], path[PATH_SIZE + 16];
    snprintf(other, sizeof other, "%s-other", fixture->path);
    snprintf(path, sizeof path, "%s%s", fixture->path, end);
    fclose(fopen(other, "w"));
    assert_int_equal(rename(other, path), 0);
}

static void replace_lock(const struct fixture *fixture)
{
    replace_beside(fixture, "-tickwheel");
}

/* Renames the folder above that of the fixture's file, or gives it its name back. */
static void rename_above(const struct fixture *fixture, bool back)
{
    char above[PATH_SIZE], moved[PATH_SIZE + 16];
    snprintf(above, sizeof above, "%s", fixture->folder);
    *strrchr(above, '/') = '\0';
    snprintf(moved, sizeof moved, "%s-moved", above);
    assert_int_equal(back ? rename(moved, above) : rename(above, moved), 0);
}

static void move_above(const struct fixture *fixture)
{
    rename_above(fixture, false);
}

static void put_new(const char *path)
{
    struct tw_store *store;
    assert_int_equal(tw_store_open(&store, path, NULL, NULL, 0), 0);
    assert_int_equal(put(store, "new", 1), 1);
    tw_store_close(store);
}

/* Another process, which has nothing of SQLite's memory, puts the task "new" into the fixture's file. */
static void put_new_elsewhere(const struct fixture *fixture)
{
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "test_store_identity", "put", fixture->path, NULL);
        _exit(127);
    }
    assert_int_equal(eventually_exited(child), 0);
}

/* Makes a store beside the fixture's file, with the task "new". */
static void make_new(const struct fixture *fixture)
{
    char path[PATH_SIZE + 8];
    snprintf(path, sizeof path, "%s-new", fixture->path);
    put_new(path);
}

static void put_new_in_place(const struct fixture *fixture)
{
    char path[PATH_SIZE + 8];
    snprintf(path, sizeof path, "%s-new", fixture->path);
    assert_int_equal(rename(path, fixture->path), 0);
}

static void remove_log(const struct fixture *fixture)
{
    remove_beside(fixture, "-wal");
    remove_beside(fixture, "-shm");
}

static void remove_index(const struct fixture *fixture)
{
    remove_beside(fixture, "-shm");
}

static void put_new_in_place_of_all(const struct fixture *fixture)
{
    remove_log(fixture);
    put_new_in_place(fixture);
}

static void replace_file(const struct fixture *fixture)
{
    make_new(fixture);
    put_new_in_place_of_all(fixture);
}

/* ---- calls ----------------------------------------------------------------------------------------------- */

static void see_queue(void *arg, const char *queue)
{
    (void)arg;
    (void)queue;
}

static void see_load(void *arg, const struct tw_store_load *load)
{
    (void)arg;
    (void)load;
}

static void fail_in_snapshot(void *arg)
{
    (void)arg;
    fail_msg("a snapshot begins");
}

static void no_call_succeeds(struct tw_store *store, const char *expected)
{
    struct tw_store_change change = {.verb = TW_STORE_VERB_PUT,
                                     .task = {.queue = "q", .id = tw_text("x"), .due_ms = 5}};
    struct seen seen = {.text = ""};
    uint64_t next_ms, counts[2];
    int64_t process;
    const int64_t results[] = {
        put(store, "x", 5),
        tw_store_apply(store, &change, 1),
        store_move_at(store, tw_store_named("q", "old"), 7, 0),
        tw_store_move_in(store, tw_store_named("q", "old"), 7, 0, NULL),
        tw_store_cancel(store, tw_store_named("q", "old"), NULL),
        store_pause(store, "q"),
        store_resume(store, "q"),
        store_restored(store, true),
        store_restored(store, false),
        store_replay(store, all_of("q"), 5),
        store_promote(store, all_of("q")),
        store_purge(store, all_of("q"), TW_STORE_TIME_MAX),
        tw_store_get(store, tw_store_named("q", "old"), see, &seen),
        store_scan(store, "q", NULL, see, &seen),
        store_count(store, "q", false),
        tw_store_next(store, "q", &next_ms),
        tw_store_forecast(store, "q", 1000, 2, counts),
        store_queues(store, see_queue, NULL),
        store_loads(store, NULL, see_load, NULL),
        tw_store_snapshot(store, fail_in_snapshot, NULL),
        store_is_paused(store, "q"),
        store_is_restored(store),
        tw_store_runner(store, &process),
        tw_store_flush(store),
    };
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++)
        if (results[i] != TW_EREPLACED)
            fail_msg("call %d returns %d", (int)i, (int)results[i]);
    assert_string_equal(seen.text, "");
    assert_string_equal(message(store), expected);
}

/* A bug: a put was acknowledged into a file that was gone. */
static void a_call_after_the_file_was_replaced_or_removed_fails(void **state)
{
    struct fixture *fixture = *state;
    put(fixture->store, "old", 5);
    replace_file(fixture);
    no_call_succeeds(fixture->store, "the file was replaced while it was open: open it again");
    store_reopen(fixture);
    assert_string_equal(scan(fixture->store, NULL), "new@1");
    remove_file(fixture);
    remove_beside(fixture, "-wal");
    remove_beside(fixture, "-shm");
    no_call_succeeds(fixture->store, "the file was removed while it was open: open it again");
    assert_int_not_equal(access(fixture->path, F_OK), 0);
}

/* A bug: so was a put into a log that was gone, and no other process saw the task. */
static void a_call_after_the_log_or_its_index_was_removed_or_replaced_fails(void **state)
{
    static const char *const ends[] = {"-wal", "-shm"};
    struct fixture *fixture = *state;
    char expected[PATH_SIZE + 100];
    for (int i = 0; i < 4; i++) {
        const char *end = ends[i / 2];
        bool replaced = i % 2 != 0;
        put(fixture->store, "old", 5);
        if (replaced)
            replace_beside(fixture, end);
        else
            remove_beside(fixture, end);
        snprintf(expected, sizeof expected,
                 "%s%s, a part of the file, was %s while it was open: open the file again", fixture->path, end,
                 replaced ? "replaced" : "removed");
        no_call_succeeds(fixture->store, expected);
        tw_store_close(fixture->store);
        remove_log(fixture);
        fixture->store = open_there(fixture);
    }
}

/* SQLite keeps the log while it moves it into the file and cuts it, and until the last connection closes. */
static void a_log_that_sqlite_has_cut_is_the_same_one(void **state)
{
    struct fixture *fixture = *state;
    sqlite3 *db = other_open(fixture);
    struct tw_store *other = open_there(fixture);
    put(fixture->store, "a", 1);
    assert_string_equal(other_ask(db, "PRAGMA wal_checkpoint(TRUNCATE)"), "0");
    assert_int_equal(put(fixture->store, "b", 2), 1);
    assert_int_equal(put(other, "c", 3), 1);
    sqlite3_close(db);
    tw_store_close(other);
    put_new_elsewhere(fixture);
    assert_int_equal(put(fixture->store, "d", 4), 1);
    assert_string_equal(scan(fixture->store, NULL), "a@1 b@2 c@3 new@1 d@4");
}

/* A bug: the store had the log that was removed, and wrote it over the file when it closed. Then it removed the
 * log of the others. */
static void the_end_of_a_removed_log_leaves_the_file_and_the_new_log_alone(void **state)
{
    struct fixture *fixture = *state;
    sqlite3 *db = other_open(fixture);
    put(fixture->store, "in the file", 2);
    other_ask(db, "PRAGMA wal_checkpoint(TRUNCATE)");
    sqlite3_close(db);
    put(fixture->store, "in its log", 3);
    remove_log(fixture);
    put_new_elsewhere(fixture);
    assert_int_equal(put(fixture->store, "x", 5), TW_EREPLACED);
    store_reopen(fixture);
    assert_string_equal(scan(fixture->store, NULL), "in the file@2 new@1");
    db = other_open(fixture);
    assert_string_equal(other_ask(db, "PRAGMA integrity_check"), "ok");
    sqlite3_close(db);
}

/* A past bug: a connection of the process kept the removed index, SQLite shared it with the store that was
 * opened again, and a put into it was acknowledged and gone. */
static void an_index_that_was_removed_is_not_shared(void **state)
{
    void (*const losses[])(const struct fixture *fixture) = {remove_index, remove_log};
    struct fixture *fixture = *state;
    char text[TW_STORE_MESSAGE_SIZE], expected[PATH_SIZE + 150];
    sqlite3_vfs_register(sqlite3_vfs_find("unix"), 1);
    for (int i = 0; i < 2; i++) {
        sqlite3 *db = other_open(fixture);
        put(fixture->store, "x", 5);
        other_ask(db, "PRAGMA wal_checkpoint(TRUNCATE)"); /* else the empty log is an error of SQLite */
        losses[i](fixture);
        tw_store_close(fixture->store);
        fixture->store = NULL;
        assert_int_equal(tw_store_open(&fixture->store, fixture->path, NULL, text, sizeof text), TW_EREPLACED);
        snprintf(expected, sizeof expected,
                 "%s-shm, a part of the file, was removed while this process had the file open: "
                 "close each of its connections first",
                 fixture->path);
        assert_string_equal(text, expected);
        sqlite3_close(db);
        fixture->store = open_there(fixture);
        assert_string_equal(scan(fixture->store, NULL), "x@5");
    }
    sqlite3_vfs_register(sqlite3_vfs_find("clock"), 1);
}

/* As with a connection that keeps its index in memory. */
static void an_index_that_no_file_has_is_none_that_was_removed(void **state)
{
    struct fixture *fixture = *state;
    tw_store_close(fixture->store);
    sqlite3_vfs_register(sqlite3_vfs_find("unix-excl"), 1);
    fixture->store = open_there(fixture);
    assert_int_equal(put(fixture->store, "x", 5), 1);
    sqlite3_vfs_register(sqlite3_vfs_find("clock"), 1);
}

/* As cp does. */
static void write_new_over(const struct fixture *fixture)
{
    char path[PATH_SIZE + 8], bytes[4096];
    snprintf(path, sizeof path, "%s-new", fixture->path);
    FILE *from = fopen(path, "r"), *to = fopen(fixture->path, "w");
    for (size_t n; (n = fread(bytes, 1, sizeof bytes, from)) > 0;)
        assert_int_equal(fwrite(bytes, 1, n, to), n);
    fclose(from);
    assert_int_equal(fclose(to), 0);
    assert_int_equal(unlink(path), 0);
}

/* The file is the same one to the system, and its log covers the new bytes. The page says that the task of the
 * copy is lost without an error. */
static void bytes_that_are_written_over_the_file_are_not_noticed(void **state)
{
    struct fixture *fixture = *state;
    put(fixture->store, "a", 5);
    make_new(fixture);
    write_new_over(fixture);
    assert_int_equal(put(fixture->store, "b", 6), 1);
    assert_string_equal(scan(fixture->store, NULL), "a@5 b@6");
    store_reopen(fixture);
    assert_string_equal(scan(fixture->store, NULL), "a@5 b@6");
}

/* SQLite removes the log of a file that it closes last. It must not be that of the new file. */
static void the_end_of_the_old_file_leaves_the_new_one_alone(void **state)
{
    struct fixture *fixture = *state;
    put(fixture->store, "old", 5);
    replace_file(fixture);
    struct tw_store *first = open_there(fixture);
    put(first, "in its log", 2);
    tw_store_close(fixture->store);
    fixture->store = open_there(fixture);
    assert_string_equal(scan(fixture->store, NULL), "new@1 in its log@2");
    put(fixture->store, "more", 3);
    assert_string_equal(scan(first, NULL), "new@1 in its log@2 more@3");
    tw_store_close(first);
}

/* Moves a file beside the store's file to its place beside another one. */
static void move_beside(const struct fixture *fixture, const char *end, const struct fixture *to)
{
    char old[PATH_SIZE + 8], new[PATH_SIZE + 8];
    snprintf(old, sizeof old, "%s%s", fixture->path, end);
    snprintf(new, sizeof new, "%s%s", to->path, end);
    assert_int_equal(rename(old, new), 0);
}

/* A bug: SQLite took the log of the old file for that of the new one, and damaged the new file. */
static void the_error_of_a_lost_file_names_the_log_that_has_to_go_with_it(void **state)
{
    static void (*const losses[])(const struct fixture *fixture) = {put_new_in_place, remove_file};
    struct fixture *fixture = *state, kept = *fixture;
    char expected[200];
    snprintf(kept.path, sizeof kept.path, "%.200s/kept.db", fixture->folder);
    for (int i = 0; i < 2; i++) {
        put(fixture->store, "old", 5);
        assert_int_equal(link(fixture->path, kept.path), 0);
        make_new(fixture);
        losses[i](fixture);
        snprintf(expected, sizeof expected,
                 "the file was %s while it was open, and its log was not: move its -wal and -shm with it, or "
                 "remove them if it is gone, and then open it again",
                 i == 0 ? "replaced" : "removed");
        no_call_succeeds(fixture->store, expected);
        tw_store_close(fixture->store);
        if (losses[i] == remove_file)
            put_new_in_place(fixture);
        move_beside(fixture, "-wal", &kept);
        move_beside(fixture, "-shm", &kept);
        fixture->store = open_there(fixture);
        assert_string_equal(scan(fixture->store, NULL), "new@1");
        assert_int_equal(put(fixture->store, "more", 2), 1);
        store_reopen(fixture);
        sqlite3 *db = other_open(fixture);
        assert_string_equal(other_ask(db, "PRAGMA integrity_check"), "ok");
        sqlite3_close(db);
        kept.store = open_there(&kept);
        assert_non_null(strstr(scan(kept.store, NULL), "old@5"));
        tw_store_close(kept.store);
        store_remove(&kept);
    }
}

/* The log that a process has left which was killed is that of its file, also of a copy of all three files. */
static void the_log_that_a_crash_has_left_is_recovered(void **state)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    struct fixture *fixture = *state, copy = *fixture;
    char command[3 * PATH_SIZE];
    snprintf(copy.path, sizeof copy.path, "%.200s/copy.db", fixture->folder);
    put(fixture->store, "in the log", 5); /* and nobody closes the copy: as after a kill */
    for (int i = 0; i < 3; i++) {
        snprintf(command, sizeof command, "cp '%s%s' '%s%s'", fixture->path, ends[i], copy.path, ends[i]);
        assert_int_equal(system(command), 0);
    }
    copy.store = open_there(&copy);
    assert_string_equal(scan(copy.store, NULL), "in the log@5");
    assert_int_equal(put(copy.store, "more", 6), 1);
    tw_store_close(copy.store);
    store_remove(&copy);
}

static void a_rename_while_a_call_waits_for_the_lock_is_seen(void **state)
{
    struct fixture *fixture = *state;
    struct putter putter = {.store = fixture->store, .id = "x", .due_ms = 5};
    sqlite3 *db = other_open(fixture);
    other_ask(db, "BEGIN IMMEDIATE");
    begin_puts(&putter, 1);
    replace_file(fixture);
    other_ask(db, "ROLLBACK");
    eventually_joined(putter.thread);
    assert_int_equal(putter.result, TW_EREPLACED);
    sqlite3_close(db);
}

static void a_connection_of_the_caller_is_checked_too(void **state)
{
    struct fixture *fixture = *state;
    struct tw_store_change change = {.verb = TW_STORE_VERB_PUT,
                                     .task = {.queue = "q", .id = tw_text("x"), .due_ms = 5}};
    char text[TW_STORE_MESSAGE_SIZE];
    sqlite3 *db = other_open(fixture);
    assert_int_equal(tw_store_apply_on(db, NULL, &change, 1, text, sizeof text), 0);
    replace_file(fixture);
    change.task.id = tw_text("y");
    assert_int_equal(tw_store_apply_on(db, NULL, &change, 1, text, sizeof text), TW_EREPLACED);
    assert_string_equal(text, "the file was replaced while it was open: open it again");
    assert_int_equal(sqlite3_get_autocommit(db), 1);
    assert_string_equal(other_ask(db, "SELECT group_concat(id) FROM tw_list"), "x");
    sqlite3_close(db);
}

static void a_path_that_cannot_be_looked_at_proves_nothing(void **state)
{
    atomic_store(&no_stat, EACCES);
    int result = put(store_of(state), "x", 5);
    atomic_store(&no_stat, 0);
    assert_int_equal(result, 1);
}

static void the_same_number_on_another_device_is_another_file(void **state)
{
    atomic_store(&other_device, true);
    int result = put(store_of(state), "x", 5);
    atomic_store(&other_device, false);
    assert_int_equal(result, TW_EREPLACED);
    assert_int_equal(put(store_of(state), "x", 5), 1);
}

/* A bug: the file had gone after it was looked at, and its log was said to be removed. */
static void a_file_that_goes_with_its_log_is_named_first(void **state)
{
    struct fixture *fixture = *state;
    char text[TW_STORE_MESSAGE_SIZE];
    make_new(fixture);
    meanwhile_fixture = fixture;
    looks_before = 1;
    meanwhile = put_new_in_place_of_all;
    assert_int_equal(put(fixture->store, "x", 5), TW_EREPLACED);
    tw_store_message(fixture->store, text, sizeof text);
    assert_string_equal(text, "the file was replaced while it was open: open it again");
}

/* Some sandboxes refuse statx(). Where it may be used, it does not ask for times, which make a commit slow. */
static void a_file_is_looked_at_in_an_old_sandbox_too(void **state)
{
    assert_int_equal(put(store_of(state), "x", 5), 1);
    assert_false(atomic_load(&times_asked));
    atomic_store(&old_sandbox, true);
    assert_int_equal(put(store_of(state), "y", 5), 1);
    the_same_number_on_another_device_is_another_file(state);
    atomic_store(&old_sandbox, false);
}

/* The connection has opened the file that was there, and the path names another one already. */
static void a_rename_while_a_store_is_opened_is_seen(void **state)
{
    struct fixture *fixture = *state;
    struct tw_store *store;
    char text[TW_STORE_MESSAGE_SIZE];
    make_new(fixture);
    during_opening(1, AFTER_OPENING, put_new_in_place, fixture);
    assert_int_equal(tw_store_open(&store, fixture->path, NULL, text, sizeof text), TW_EREPLACED);
    assert_string_equal(text, "the file was replaced while it was open: open it again");
}

/* ---- files that are moved while a connection is opened --------------------------------------------------- */

static struct fixture moved_away(const struct fixture *fixture)
{
    struct fixture kept = *fixture;
    snprintf(kept.path, sizeof kept.path, "%.200s/kept.db", fixture->folder);
    return kept;
}

static void move_file(const struct fixture *fixture)
{
    struct fixture kept = moved_away(fixture);
    move_beside(fixture, "", &kept);
}

static void move_file_and_put_new_in_place(const struct fixture *fixture)
{
    move_file(fixture);
    put_new_in_place(fixture);
}

static void has_tasks(const struct fixture *fixture, const char *tasks)
{
    struct tw_store *store = open_there(fixture);
    sqlite3 *db = other_open(fixture);
    assert_string_equal(scan(store, NULL), tasks);
    assert_string_equal(other_ask(db, "PRAGMA integrity_check"), "ok");
    sqlite3_close(db);
    tw_store_close(store);
}

/* The log goes with the old file, and has its newest task. Nobody has written to the new file. */
static void each_file_has_its_tasks(const struct fixture *fixture, bool replaced)
{
    struct fixture kept = moved_away(fixture);
    move_beside(fixture, "-wal", &kept);
    move_beside(fixture, "-shm", &kept);
    has_tasks(&kept, "old@5 newest@6");
    store_remove(&kept);
    if (replaced)
        has_tasks(fixture, "new@1");
    else
        assert_int_not_equal(access(fixture->path, F_OK), 0);
    store_remove(fixture);
}

static int start_run(struct fixture *fixture, char *text, size_t size)
{
    struct calls calls;
    calls_init(&calls);
    assert_int_equal(tw_store_handle(fixture->store, "q", 0, note_call, &calls), 0);
    int error = tw_store_start(fixture->store, NULL);
    tw_store_message(fixture->store, text, size);
    return error;
}

static int open_second(struct fixture *fixture, char *text, size_t size)
{
    struct tw_store *second = NULL;
    int error = tw_store_open(&second, fixture->path, NULL, text, size);
    tw_store_close(second);
    return error;
}

/* Makes a store whose newest task is in the log alone. */
static void make_old(struct fixture *fixture)
{
    fixture->store = open_there(fixture);
    put(fixture->store, "old", 5);
    store_reopen(fixture);
    put(fixture->store, "newest", 6);
}

/* Somebody moves the file away at one moment of a call, whose n-th connection is opened then, and may put
 * another file in its place. */
static void a_file_that_moves(struct fixture *fixture, int n, enum moment when, bool replaced,
                              int (*call)(struct fixture *fixture, char *text, size_t size))
{
    char text[TW_STORE_MESSAGE_SIZE], expected[80];
    snprintf(expected, sizeof expected, "the file was %s while it was open, and its log was not",
             replaced ? "replaced" : "removed");
    make_old(fixture);
    if (replaced)
        make_new(fixture);
    during_opening(n, when, replaced ? move_file_and_put_new_in_place : move_file, fixture);
    assert_int_equal(call(fixture, text, sizeof text), TW_EREPLACED);
    assert_null(opening.call);
    if (when == BEFORE_THE_CALL)
        assert_int_equal(openings, 0);
    if (when == AFTER_OPENING || (when == BEFORE_OPENING && replaced)) /* and what was opened is not read */
        assert_int_equal(identified, TW_EREPLACED);
    assert_non_null(strstr(text, expected));
    tw_store_close(fixture->store);
    fixture->store = NULL;
    each_file_has_its_tasks(fixture, replaced);
}

/* A bug: the run opened the path anew. SQLite took the log of the old file for that of the new one, or removed
 * it, and 50 acknowledged tasks were lost. */
static void a_run_opens_no_file_but_that_of_its_store(void **state)
{
    struct fixture *fixture = *state;
    tw_store_close(fixture->store);
    store_remove(fixture);
    for (int when = BEFORE_THE_CALL; when <= BEFORE_READING; when++)
        for (int replaced = 0; replaced < 2; replaced++)
            a_file_that_moves(fixture, 1, (enum moment)when, replaced, start_run);
}

/* The second connection of a store opens the file of the first. */
static void a_store_opens_one_file(void **state)
{
    struct fixture *fixture = *state;
    tw_store_close(fixture->store);
    store_remove(fixture);
    for (int when = BEFORE_OPENING; when <= BEFORE_READING; when++)
        for (int replaced = 0; replaced < 2; replaced++)
            a_file_that_moves(fixture, 2, (enum moment)when, replaced, open_second);
}

/* A bug: SQLite removed the log of a file that was moved away, when a file was made in its place. */
static void no_file_is_made_beside_the_log_of_another(void **state)
{
    static const char *const ways[] = {"none", "empty", "moved meanwhile"};
    struct fixture *fixture = *state;
    struct tw_store *store;
    char text[TW_STORE_MESSAGE_SIZE], expected[PATH_SIZE + 150];
    tw_store_close(fixture->store);
    store_remove(fixture);
    snprintf(
        expected, sizeof expected,
        "%s-wal is the log of a file that is not here any more: move it and -shm with that file, under its "
        "new name, or remove them if it is gone",
        fixture->path);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        make_old(fixture);
        during_opening(1, i < 2 ? BEFORE_THE_CALL : BEFORE_OPENING, move_file, fixture);
        if (strcmp(ways[i], "empty") == 0)
            fclose(fopen(fixture->path, "w"));
        assert_int_equal(tw_store_open(&store, fixture->path, NULL, text, sizeof text), TW_EREPLACED);
        assert_string_equal(text, expected);
        if (strcmp(ways[i], "none") != 0)
            remove_file(fixture);
        tw_store_close(fixture->store);
        fixture->store = NULL;
        each_file_has_its_tasks(fixture, false);
    }
    replace_beside(fixture, "-wal"); /* an empty one has nothing to lose */
    fixture->store = open_there(fixture);
    assert_int_equal(put(fixture->store, "new", 1), 1);
}

/* ---- runs ------------------------------------------------------------------------------------------------ */

/* A bug: the runner opened the new file and claimed in the old one, so a handler got a task of another queue.
 * */
static void a_run_does_not_begin_on_a_file_that_was_replaced(void **state)
{
    struct fixture *fixture = *state;
    struct calls calls;
    calls_init(&calls);
    put(fixture->store, "old", 1);
    replace_file(fixture);
    assert_int_equal(tw_store_handle(fixture->store, "q", 0, note_call, &calls), 0);
    assert_int_equal(tw_store_start(fixture->store, NULL), TW_EREPLACED);
    struct tw_store *next = open_there(fixture);
    start_with(next, &calls); /* the lock is free */
    wait_for_calls(&calls, 1);
    tw_store_close(next);
    assert_string_equal(calls.text, "new/1");
}

static void start_noting(struct tw_store *store, struct calls *calls, struct errors *errors, unsigned flags)
{
    struct tw_store_run_options options = {.flags = flags, .workers = 1, .on_error = note_error, .arg = errors};
    assert_int_equal(tw_store_handle(store, "q", 0, note_call, calls), 0);
    assert_int_equal(tw_store_start(store, &options), 0);
}

static void wait_for_the_end(struct tw_store *store, struct errors *errors)
{
    EVENTUALLY_TOLD(atomic_load(&errors->count) > 0, "the run goes on");
    assert_int_equal(atomic_load(&errors->last), TW_EREPLACED);
    assert_false(stats_of(store).running);
}

/* No event of before is a hint any more, or is still to be read: while the runner holds a hint back, it waits
 * for no events. One that it reads after one of these steps of the clock, it holds back until the next step. */
static void let_hints_pass(const struct fixture *fixture)
{
    for (int i = 0; i < 3; i++) {
        clock_hurry(HOLD_MS);
        runner_idle(fixture->store);
    }
}

/* One handler is under way, and one job has not begun: the runner's clock stands still, so it waits for the
 * worker. The lock is free before the handler returns. */
static void a_run_ends_when_its_file_is_replaced(void **state)
{
    struct fixture *fixture = *state;
    struct errors errors = {0};
    struct calls calls, others;
    calls_init(&calls);
    calls_init(&others);
    calls.block = true;
    clock_halt();
    put(fixture->store, "a", 5);
    put(fixture->store, "b", 6);
    start_noting(fixture->store, &calls, &errors, 0);
    wait_for_calls(&calls, 1);
    EVENTUALLY(attempts(fixture->store) == 2);
    make_new(fixture);
    let_hints_pass(fixture);
    put_new_in_place(fixture);
    wait_for_the_end(fixture->store, &errors);
    remove_log(fixture);
    struct tw_store *next = open_there(fixture);
    start_with(next, &others);
    assert_string_equal(wait_for_calls(&others, 1), "new/1");
    unblock(&calls);
    assert_int_equal(tw_store_stop(fixture->store), TW_EREPLACED);
    assert_string_equal(calls.text, "a/1");
    assert_int_equal(atomic_load(&errors.count), 1);
    assert_int_equal(tw_store_stop(fixture->store), 0); /* it does not run any more */
    tw_store_close(next);
}

/* The clock stands still, and nothing touches the log. So only the event of the removal or the rename can wake
 * the run. */
static void an_idle_run_notices(struct fixture *fixture, void (*lose)(const struct fixture *fixture),
                                const char *expected)
{
    struct errors errors = {0};
    struct calls calls;
    calls_init(&calls);
    clock_stop(0);
    clock_halt();
    put(fixture->store, "far", tw_store_now() + HOUR_MS);
    start_noting(fixture->store, &calls, &errors, 0);
    let_hints_pass(fixture);
    lose(fixture);
    wait_for_the_end(fixture->store, &errors);
    if (strstr(message(fixture->store), expected) == NULL)
        fail_msg("%s", message(fixture->store));
    assert_int_equal(tw_store_stop(fixture->store), TW_EREPLACED);
    clock_go();
}

static void an_idle_run_notices_that_its_file_was_replaced(void **state)
{
    make_new(*state);
    an_idle_run_notices(*state, put_new_in_place, "the file was replaced while it was open");
}

static void an_idle_run_notices_that_its_file_was_removed(void **state)
{
    an_idle_run_notices(*state, remove_file, "the file was removed while it was open");
}

/* The new log is that of another process, and its task stays. */
static void remove_log_and_put(const struct fixture *fixture)
{
    remove_log(fixture);
    put_new_elsewhere(fixture);
}

/* A bug: the run went on with the log that was gone, and saw nothing of the others. */
static void an_idle_run_notices_that_its_log_was_removed(void **state)
{
    struct fixture *fixture = *state;
    sqlite3 *db = other_open(fixture);
    other_ask(db, "PRAGMA wal_checkpoint(TRUNCATE)");
    sqlite3_close(db);
    an_idle_run_notices(fixture, remove_log_and_put, "-wal, a part of the file, was re");
    store_reopen(fixture);
    struct seen seen = {.text = ""};
    assert_int_equal(tw_store_get(fixture->store, tw_store_named("q", "new"), see, &seen), 0);
}

static void an_idle_run_notices_that_the_index_of_its_log_was_removed(void **state)
{
    an_idle_run_notices(*state, remove_index, "-shm, a part of the file, was removed while it was open");
}

static void move_above_and_wait(const struct fixture *fixture)
{
    move_above(fixture);
    assert_true(clock_hurry(LOOK_MS));
}

/* No event tells of it, so the run notices by its next look. */
static void an_idle_run_notices_that_a_folder_above_was_renamed(void **state)
{
    an_idle_run_notices(*state, move_above_and_wait, "the file was removed while it was open");
    rename_above(*state, true);
}

/* The store is as it was, and another run may begin. */
static void a_run_without_its_lock_leaves_the_store(struct fixture *fixture,
                                                    void (*lose)(const struct fixture *fixture))
{
    struct calls calls;
    calls_init(&calls);
    an_idle_run_notices(fixture, lose, "-tickwheel was removed, and the lock of this run with it");
    assert_int_equal(put(fixture->store, "x", 5), 1);
    struct tw_store *next = open_there(fixture);
    start_with(next, &calls);
    assert_string_equal(wait_for_calls(&calls, 1), "x/1");
    tw_store_close(next);
}

static void an_idle_run_notices_that_its_lock_was_removed(void **state)
{
    a_run_without_its_lock_leaves_the_store(*state, remove_lock);
}

static void an_idle_run_notices_that_its_lock_was_replaced(void **state)
{
    a_run_without_its_lock_leaves_the_store(*state, replace_lock);
}

/* Somebody removes the lock, and another run begins. */
static void begin_another_run(void *arg)
{
    sqlite3 *db = other_open(arg);
    remove_lock(arg);
    other_ask(db, "UPDATE tw_meta SET run = 7");
    sqlite3_close(db);
}

/* The run has looked for its lock just before. It sees another number, as after a restore, and looks again. */
static void a_run_that_another_one_follows_does_not_count_itself_anew(void **state)
{
    struct fixture *fixture = *state;
    struct errors errors = {0};
    struct calls calls;
    calls_init(&calls);
    start_noting(fixture->store, &calls, &errors, 0);
    runner_idle(fixture->store);
    runner_before_look(begin_another_run, fixture);
    put(fixture->store, "far", tw_store_now() + HOUR_MS);
    wait_for_the_end(fixture->store, &errors);
    sqlite3 *db = other_open(fixture);
    assert_string_equal(other_ask(db, "SELECT run FROM tw_meta"), "7");
    sqlite3_close(db);
    assert_int_equal(tw_store_stop(fixture->store), TW_EREPLACED);
}

/* The timer wakes the run, and no event. */
static void a_task_of_a_lost_file_is_not_called(struct fixture *fixture,
                                                void (*lose)(const struct fixture *fixture))
{
    struct errors errors = {0};
    struct calls calls;
    calls_init(&calls);
    clock_stop(0);
    put(fixture->store, "x", tw_store_now() + SOON_MS);
    start_noting(fixture->store, &calls, &errors, 0);
    runner_idle(fixture->store);
    runner_look_away(true);
    runner_round(fixture->store);
    lose(fixture);
    clock_pass(SOON_MS);
    wait_for_the_end(fixture->store, &errors);
    runner_look_away(false);
    assert_int_equal(tw_store_stop(fixture->store), TW_EREPLACED);
    assert_int_equal(calls.count, 0);
}

/* A bug: tasks of a file that was removed were still called. */
static void a_task_of_a_removed_file_is_not_called(void **state)
{
    a_task_of_a_lost_file_is_not_called(*state, remove_file);
}

static void a_task_of_a_file_below_a_renamed_folder_is_not_called(void **state)
{
    a_task_of_a_lost_file_is_not_called(*state, move_above);
    rename_above(*state, true);
}

static void a_task_is_not_called_without_the_log(void **state)
{
    a_task_of_a_lost_file_is_not_called(*state, remove_log);
}

static bool commits(struct tw_store *store)
{
    pthread_mutex_lock(&store->writer.lock);
    bool leads = store->writer.led;
    pthread_mutex_unlock(&store->writer.lock);
    return leads;
}

/* A bug: while the runner waited for a lock of others, its jobs began, whatever had become of the file. Here it
 * waits to claim "c". */
static void a_job_of_a_replaced_file_does_not_begin_while_the_run_commits(void **state)
{
    struct fixture *fixture = *state;
    struct errors errors = {0};
    struct calls calls;
    sqlite3 *db = other_open(fixture);
    calls_init(&calls);
    calls.block = true;
    clock_stop(0);
    clock_halt();
    put(fixture->store, "a", 5);
    put(fixture->store, "b", 6);
    put(fixture->store, "c", tw_store_now() + SOON_MS);
    start_noting(fixture->store, &calls, &errors, 0);
    const struct tw__store_pool *pool = &fixture->store->run->runner->pool;
    runner_idle(fixture->store);
    clock_pass(1);
    wait_for_calls(&calls, 1);
    EVENTUALLY(attempts(fixture->store) == 2);
    make_new(fixture);
    let_hints_pass(fixture);
    other_ask(db, "BEGIN IMMEDIATE");
    clock_pass(SOON_MS);
    EVENTUALLY(commits(fixture->store));
    put_new_in_place(fixture);
    clock_hurry(YOUNG_MS + 1);
    unblock(&calls);
    EVENTUALLY(tw__store_pool_waiting(pool) == 0 && tw__store_pool_idle(pool) == 1);
    other_ask(db, "ROLLBACK");
    wait_for_the_end(fixture->store, &errors);
    assert_int_equal(tw_store_stop(fixture->store), TW_EREPLACED);
    assert_string_equal(calls.text, "a/1");
    sqlite3_close(db);
    remove_log(fixture);
}

/* A bug: the file was replaced while the disk was slow to write the claims, and the jobs began all the same. */
static void a_job_of_a_file_that_its_commit_has_outlived_does_not_begin(void **state)
{
    struct fixture *fixture = *state;
    struct errors errors = {0};
    struct calls calls;
    calls_init(&calls);
    clock_stop(0);
    clock_halt();
    make_new(fixture);
    put(fixture->store, "a", tw_store_now() + SOON_MS);
    start_noting(fixture->store, &calls, &errors, 0);
    runner_idle(fixture->store);
    atomic_store(&handed_out, 1);
    atomic_store(&claiming, fixture);
    clock_pass(SOON_MS);
    wait_for_the_end(fixture->store, &errors);
    assert_int_equal(atomic_load(&handed_out), 0);
    assert_int_equal(tw_store_stop(fixture->store), TW_EREPLACED);
    assert_int_equal(calls.count, 0);
    remove_log(fixture);
}

/* Starts a run in which "a" is under way, and "b" is claimed and waits for its worker. The run does not look at
 * its files any more. */
static void let_b_wait_unwatched(struct fixture *fixture, struct calls *calls, struct errors *errors)
{
    calls_init(calls);
    calls->block = true;
    clock_stop(0);
    clock_halt();
    put(fixture->store, "a", 5);
    put(fixture->store, "b", 6);
    start_noting(fixture->store, calls, errors, 0);
    runner_idle(fixture->store);
    clock_pass(1);
    wait_for_calls(calls, 1);
    EVENTUALLY(attempts(fixture->store) == 2);
    runner_look_away(true);
    runner_round(fixture->store);
}

/* The lock is removed, and the first run does not notice. It does not begin the task "b", which the second one
 * might claim at any moment. */
static void a_job_does_not_begin_after_another_run_has_begun(void **state)
{
    struct fixture *fixture = *state;
    struct errors errors = {0};
    struct calls calls;
    let_b_wait_unwatched(fixture, &calls, &errors);
    remove_lock(fixture);
    struct tw_store *next = open_there(fixture);
    assert_int_equal(tw_store_handle(next, "other", 0, note_call, &calls), 0);
    assert_int_equal(tw_store_start(next, NULL), 0);
    unblock(&calls);
    wait_for_the_end(fixture->store, &errors);
    assert_int_equal(tw_store_stop(fixture->store), TW_EREPLACED);
    assert_string_equal(calls.text, "a/1");
    tw_store_close(next);
}

/* A later version has written the file since the claim. */
static void a_job_of_a_file_of_another_format_does_not_begin(void **state)
{
    struct fixture *fixture = *state;
    struct errors errors = {0};
    struct calls calls;
    sqlite3 *db = other_open(fixture);
    let_b_wait_unwatched(fixture, &calls, &errors);
    const struct tw__store_pool *pool = &fixture->store->run->runner->pool;
    other_ask(db, "UPDATE tw_meta SET format = 2");
    unblock(&calls);
    EVENTUALLY(tw__store_pool_waiting(pool) == 0 && tw__store_pool_idle(pool) == 1);
    runner_look_away(false);
    EVENTUALLY(atomic_load(&errors.count) > 0);
    assert_int_equal(atomic_load(&errors.last), TW_EFORMAT);
    assert_string_equal(message(fixture->store),
                        "format is 2: expected 1; the version that wrote it can read it");
    other_ask(db, "UPDATE tw_meta SET format = 1");
    assert_int_equal(tw_store_stop(fixture->store), 0);
    assert_string_equal(calls.text, "a/1");
    sqlite3_close(db);
}

/* A backup is restored, and the lock is removed while the run waits to count itself anew. So another run may
 * have begun, and this one claims nothing. */
static void a_run_whose_lock_is_removed_while_it_counts_itself_anew_claims_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct errors errors = {0};
    struct calls calls;
    sqlite3 *db = other_open(fixture);
    calls_init(&calls);
    clock_stop(0);
    put(fixture->store, "a", tw_store_now() + SOON_MS);
    start_noting(fixture->store, &calls, &errors, 0);
    runner_idle(fixture->store);
    runner_look_away(true);
    runner_round(fixture->store);
    other_ask(db, "UPDATE tw_meta SET run = run + 1"); /* as in the backup of a later run */
    atomic_store(&counting, fixture);
    clock_pass(SOON_MS);
    wait_for_the_end(fixture->store, &errors);
    assert_int_equal(tw_store_stop(fixture->store), TW_EREPLACED);
    assert_string_equal(other_ask(db, "SELECT attempt FROM tw_task"), "0");
    sqlite3_close(db);
}

static bool hurried(bool there)
{
    if (!there)
        clock_hurry(STANDBY_MS);
    return there;
}

/* A bug: it took the lock over, and ran a file that nobody saw. */
static void a_standby_of_a_replaced_file_ends(void **state)
{
    struct fixture *fixture = *state;
    struct tw_store *second = open_there(fixture);
    struct errors errors = {0}, first_errors = {0};
    struct calls calls;
    calls_init(&calls);
    start_noting(fixture->store, &calls, &first_errors, 0);
    start_noting(second, &calls, &errors, TW_STORE_RUN_STANDBY);
    replace_file(fixture);
    EVENTUALLY_TOLD(hurried(atomic_load(&errors.count) > 0), "the standby goes on");
    wait_for_the_end(second, &errors);
    wait_for_the_end(fixture->store, &first_errors);
    assert_int_equal(tw_store_stop(second), TW_EREPLACED);
    assert_int_equal(tw_store_stop(fixture->store), TW_EREPLACED);
    tw_store_close(second);
    assert_int_equal(calls.count, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, clock_teardown)

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "put") == 0) {
        put_new(argv[2]);
        return 0;
    }

    static const struct CMUnitTest tests[] = {
        TEST(a_call_after_the_file_was_replaced_or_removed_fails),
        TEST(a_call_after_the_log_or_its_index_was_removed_or_replaced_fails),
        TEST(a_log_that_sqlite_has_cut_is_the_same_one),
        TEST(the_end_of_a_removed_log_leaves_the_file_and_the_new_log_alone),
        TEST(an_index_that_was_removed_is_not_shared),
        TEST(an_index_that_no_file_has_is_none_that_was_removed),
        TEST(bytes_that_are_written_over_the_file_are_not_noticed),
        TEST(the_end_of_the_old_file_leaves_the_new_one_alone),
        TEST(the_error_of_a_lost_file_names_the_log_that_has_to_go_with_it),
        TEST(the_log_that_a_crash_has_left_is_recovered),
        TEST(a_rename_while_a_call_waits_for_the_lock_is_seen),
        TEST(a_connection_of_the_caller_is_checked_too),
        TEST(a_path_that_cannot_be_looked_at_proves_nothing),
        TEST(the_same_number_on_another_device_is_another_file),
        TEST(a_file_that_goes_with_its_log_is_named_first),
        TEST(a_file_is_looked_at_in_an_old_sandbox_too),
        TEST(a_rename_while_a_store_is_opened_is_seen),
        TEST(a_run_opens_no_file_but_that_of_its_store),
        TEST(a_store_opens_one_file),
        TEST(no_file_is_made_beside_the_log_of_another),
        TEST(a_run_does_not_begin_on_a_file_that_was_replaced),
        TEST(a_run_ends_when_its_file_is_replaced),
        TEST(an_idle_run_notices_that_its_file_was_replaced),
        TEST(an_idle_run_notices_that_its_file_was_removed),
        TEST(an_idle_run_notices_that_its_log_was_removed),
        TEST(an_idle_run_notices_that_the_index_of_its_log_was_removed),
        TEST(an_idle_run_notices_that_a_folder_above_was_renamed),
        TEST(an_idle_run_notices_that_its_lock_was_removed),
        TEST(an_idle_run_notices_that_its_lock_was_replaced),
        TEST(a_run_that_another_one_follows_does_not_count_itself_anew),
        TEST(a_task_of_a_removed_file_is_not_called),
        TEST(a_task_is_not_called_without_the_log),
        TEST(a_task_of_a_file_below_a_renamed_folder_is_not_called),
        TEST(a_job_of_a_replaced_file_does_not_begin_while_the_run_commits),
        TEST(a_job_of_a_file_that_its_commit_has_outlived_does_not_begin),
        TEST(a_job_does_not_begin_after_another_run_has_begun),
        TEST(a_job_of_a_file_of_another_format_does_not_begin),
        TEST(a_run_whose_lock_is_removed_while_it_counts_itself_anew_claims_nothing),
        TEST(a_standby_of_a_replaced_file_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
