/* SPDX-License-Identifier: MIT
 *
 * tickwheel_sqlite.so, loaded into a connection of SQLite: times in SQL, and the tables made without C.
 */
#define SQLITE_CORE 1 /* for sqlite3ext.h: the functions keep their names here */
#include "faulty.h"
#include "support.h"

#include <dlfcn.h>
#include <errno.h>
#include <sqlite3ext.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A connection to the store's file, or to another file in its folder, that has loaded the extension. */
static sqlite3 *open_loaded(const struct fixture *fixture)
{
    sqlite3 *db = other_open(fixture);
    char *text = NULL;
    assert_int_equal(sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1, NULL), SQLITE_OK);
    if (sqlite3_load_extension(db, EXTENSION, NULL, &text) != SQLITE_OK)
        fail_msg("%s: %s", EXTENSION, text);
    return db;
}

/* A file that is not there yet. The caller removes it with store_remove(). */
static struct fixture another(void **state)
{
    struct fixture fixture = *(struct fixture *)*state;
    snprintf(fixture.path, sizeof fixture.path, "%.200s/other.db", fixture.folder);
    return fixture;
}

static long long number(sqlite3 *db, const char *sql)
{
    return strtoll(other_ask(db, sql), NULL, 10);
}

static const char *refused(sqlite3 *db, const char *function, const char *argument)
{
    char sql[256];
    snprintf(sql, sizeof sql, "SELECT %s(%s)", function, argument);
    return other_refuses(db, sql);
}

/* ---- times ----------------------------------------------------------------------------------------------- */

static void now_is_the_clock(void **state)
{
    sqlite3 *db = open_loaded(*state);
    uint64_t before = tw_store_now(), now = (uint64_t)number(db, "SELECT tw_now()"), after = tw_store_now();
    assert_in_range(now, before, after);
    assert_string_equal(other_ask(db, "SELECT typeof(tw_now())"), "integer");
    sqlite3_close(db);
}

static void in_adds_a_duration_to_the_clock(void **state)
{
    static const struct {
        const char *text;
        uint64_t ms;
    } durations[] = {{"30m", 1800000},
                     {"1h30m", 5400000},
                     {"1.5s", 1500},
                     {"90s", 90000},
                     {"0s", 0},
                     {"1us", 1},
                     {"1001us", 2},
                     {"2ms", 2},
                     {"1d", 86400000},
                     {"0.25h", 900000},
                     {"1d1ns", 86400001},
                     {"213503d", 18446659200000},
                     {"0.5ns", 1},
                     {"1.0000000001s", 1001},
                     {"0.000000000000001d", 1}};
    sqlite3 *db = open_loaded(*state);
    for (size_t i = 0; i < sizeof durations / sizeof durations[0]; i++) {
        char sql[64];
        snprintf(sql, sizeof sql, "SELECT tw_in('%s')", durations[i].text);
        uint64_t before = tw_store_now(), then = (uint64_t)number(db, sql), after = tw_store_now();
        assert_in_range(then - durations[i].ms, before, after);
    }
    sqlite3_close(db);
}

static void at_is_a_time_in_utc(void **state)
{
    sqlite3 *db = open_loaded(*state);
    srand(7);
    for (int i = 0; i < 20000; i++) {
        int year = 1965 + rand() % 8035, month = rand() % 14, day = rand() % 33, hour = rand() % 25;
        int minute = rand() % 61, second = rand() % 61;
        struct tm date = {.tm_year = year - 1900,
                          .tm_mon = month - 1,
                          .tm_mday = day,
                          .tm_hour = hour,
                          .tm_min = minute,
                          .tm_sec = second},
                  back;
        time_t seconds = timegm(&date);
        gmtime_r(&seconds, &back);
        bool exists = seconds >= 0 && back.tm_mon == month - 1 && back.tm_mday == day && back.tm_hour == hour &&
                      back.tm_min == minute && back.tm_sec == second;
        char argument[64], sql[96];
        snprintf(argument, sizeof argument, "'%04d-%02d-%02dT%02d:%02d:%02dZ'", year, month, day, hour, minute,
                 second);
        snprintf(sql, sizeof sql, "SELECT tw_at(%s)", argument);
        if (exists)
            assert_int_equal(number(db, sql), (long long)seconds * 1000);
        else
            assert_non_null(strstr(refused(db, "tw_at", argument), argument));
    }
    assert_int_equal(number(db, "SELECT tw_at('2026-12-01T08:00:00.5Z')"), 1796112000500);
    assert_int_equal(number(db, "SELECT tw_at('2026-12-01T08:00:00.0001Z')"), 1796112000001);
    assert_int_equal(number(db, "SELECT tw_at('2026-12-01T08:00:00.0000000001Z')"), 1796112000001);
    assert_int_equal(number(db, "SELECT tw_at('2026-12-01T07:59:59.9999999999Z')"), 1796112000000);
    assert_int_equal(number(db, "SELECT tw_at('9999-12-31T23:59:59.9981Z')"), 253402300799999);
    assert_int_equal(number(db, "SELECT tw_at('9999-12-31T23:59:59.999Z')"), 253402300799999);
    sqlite3_close(db);
}

static void bad_times_are_named_with_their_form(void **state)
{
    static const char *const durations[] = {"30",
                                            "'30'",
                                            "''",
                                            "'m'",
                                            "'1.s'",
                                            "'30m '",
                                            "'-1s'",
                                            "'213504d'",
                                            "x'3330'",
                                            "'18446744073709551616ns'",
                                            "'1h' || char(0)"};
    static const char *const times[] = {"5",
                                        "''",
                                        "'2026-12-01'",
                                        "'2026-12-01 08:00:00'",
                                        "x'00'",
                                        "'2026-12-01T08:00:00'",
                                        "'2026-12-01T08:00:00.Z'",
                                        "'1969-12-31T23:59:59Z'",
                                        "'2026-12-01T08:00:00+01:00'",
                                        "'9999-12-31T23:59:59.9991Z'",
                                        "'9999-12-31T23:59:59.9999999999Z'"};
    sqlite3 *db = open_loaded(*state);
    for (size_t i = 0; i < sizeof durations / sizeof durations[0]; i++)
        assert_non_null(
            strstr(refused(db, "tw_in", durations[i]),
                   "expected a duration as text, such as '30m', '1h30m' or '1.5s', at most '213503d'"));
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        assert_non_null(strstr(refused(db, "tw_at", times[i]),
                               "expected a time in UTC as text, such as '2026-12-01T08:00:00Z', from 1970 to "
                               "9999-12-31T23:59:59.999Z"));
    static const char *const shown[][2] = {
        {"30", "tw_in: 30: expected"},
        {"1.5", "tw_in: 1.5: expected"},
        {"'30'", "tw_in: '30': expected"},
        {"x'333000'", "tw_in: x'333000': expected"},
        {"CAST(x'3168ff' AS TEXT)", "tw_in: CAST(x'3168ff' AS TEXT): expected"},
        {"'1h' || char(0) || 'x'", "tw_in: '1h' and a zero byte: expected"},
        {"zeroblob(33)",
         "tw_in: x'0000000000000000000000000000000000000000000000000000000000000000...': expected"},
        {"printf('%070d', 0)",
         "tw_in: '0000000000000000000000000000000000000000000000000000000000000000...': expected"},
        {"printf('%064d', 0)",
         "tw_in: '0000000000000000000000000000000000000000000000000000000000000000': expected"},
        {"printf('%065d', 0)",
         "tw_in: '0000000000000000000000000000000000000000000000000000000000000000...': expected"},
        {"replace(printf('%064d', 0), '0', 'é')",
         "tw_in: 'éééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé': expected"},
    };
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++)
        assert_non_null(strstr(refused(db, "tw_in", shown[i][0]), shown[i][1]));
    assert_string_equal(other_ask(db, "SELECT tw_in(NULL) IS NULL AND tw_at(NULL) IS NULL"), "1");
    assert_non_null(strstr(refused(db, "tw_in", ""), "wrong number of arguments"));
    sqlite3_close(db);
}

static void a_trigger_may_call_them_in_a_file_that_is_not_trusted(void **state)
{
    sqlite3 *db = open_loaded(*state);
    other_ask(db, "PRAGMA trusted_schema=OFF; CREATE TABLE orders(id INTEGER PRIMARY KEY);"
                  "CREATE TRIGGER timeout AFTER INSERT ON orders BEGIN INSERT INTO tw_put(queue, id, due_ms)"
                  " VALUES ('q', 'order:' || NEW.id, tw_in('30m')); END");
    uint64_t due_ms, before = tw_store_now();
    other_ask(db, "INSERT INTO orders VALUES (42)");
    uint64_t after = tw_store_now();
    assert_int_equal(tw_store_next(((struct fixture *)*state)->store, "q", &due_ms), 0);
    assert_in_range(due_ms - 1800000, before, after);
    other_ask(db, "CREATE TABLE plan(at TEXT); CREATE INDEX plan_at ON plan(tw_at(at))"); /* deterministic */
    assert_non_null(strstr(other_refuses(db, "CREATE INDEX plan_in ON plan(tw_in(at))"), "non-deterministic"));
    sqlite3_close(db);
}

/* ---- the tables ------------------------------------------------------------------------------------------ */

static void install_makes_the_tables_that_the_library_makes(void **state)
{
    struct fixture own = another(state);
    const struct fixture *made = *state;
    sqlite3 *db = open_loaded(&own);
    char sql[PATH_SIZE + 32], text[TW_STORE_MESSAGE_SIZE];
    assert_string_equal(other_ask(db, "SELECT tw_install()"), "1");
    assert_string_equal(other_ask(db, "PRAGMA journal_mode"), "wal");
    assert_string_equal(other_ask(db, "SELECT tw_install()"), "0");
    other_ask(db, "UPDATE tw_meta SET format = 99");
    assert_string_equal(other_refuses(db, "SELECT tw_install()"),
                        "tw_install: format is 99: expected 1; the version that wrote it can read it");
    other_ask(db, "UPDATE tw_meta SET format = 1");
    snprintf(sql, sizeof sql, "ATTACH '%s' AS made", made->path);
    other_ask(db, sql);
    static const char *const pairs[][2] = {{"main", "made"}, {"made", "main"}};
    for (int i = 0; i < 2; i++) {
        char compare[256];
        snprintf(compare, sizeof compare,
                 "SELECT count(*) FROM (SELECT type, name, tbl_name, sql FROM %s.sqlite_schema EXCEPT"
                 " SELECT type, name, tbl_name, sql FROM %s.sqlite_schema)",
                 pairs[i][0], pairs[i][1]);
        assert_string_equal(other_ask(db, compare), "0");
    }
    assert_int_equal(number(db, "SELECT count(*) FROM main.tw_meta"), 1);
    other_ask(db,
              "INSERT INTO main.tw_put(queue, id, due_ms) VALUES ('q', 'a', tw_at('2026-12-01T08:00:00Z'))");
    sqlite3_close(db);
    assert_int_equal(tw_store_open(&own.store, own.path, NULL, text, sizeof text), 0);
    assert_string_equal(scan(own.store, NULL), "a@1796112000000");
    tw_store_close(own.store);
    store_remove(&own);
}

static void install_is_a_part_of_the_transaction(void **state)
{
    struct fixture own = another(state);
    sqlite3 *db = open_loaded(&own);
    other_ask(db, "PRAGMA journal_mode=WAL; CREATE TABLE orders(id); BEGIN; INSERT INTO orders VALUES (42)");
    assert_string_equal(other_ask(db, "SELECT tw_install()"), "1");
    assert_int_equal(sqlite3_get_autocommit(db), 0);
    other_ask(db, "ROLLBACK");
    assert_int_equal(number(db, "SELECT count(*) FROM sqlite_schema"), 1);
    other_ask(db, "BEGIN; SELECT tw_install(); INSERT INTO orders VALUES (43); COMMIT");
    assert_int_equal(number(db, "SELECT count(*) FROM orders, tw_meta"), 1);
    sqlite3_close(db);
    store_remove(&own);
}

/* A table of the program has the name of ours. Nothing of ours is left, and the program's row stays. */
static void install_leaves_nothing_behind_when_it_fails(void **state)
{
    struct fixture own = another(state);
    sqlite3 *db = open_loaded(&own);
    other_ask(db, "PRAGMA journal_mode=WAL; CREATE TABLE tw_queue(mine)");
    assert_non_null(
        strstr(other_refuses(db, "SELECT tw_install()"), "tw_install: table tw_queue already exists"));
    assert_int_equal(sqlite3_get_autocommit(db), 1);
    other_ask(db, "BEGIN; INSERT INTO tw_queue VALUES (1)");
    assert_non_null(strstr(other_refuses(db, "SELECT tw_install()"), "tw_queue already exists"));
    other_ask(db, "COMMIT");
    assert_int_equal(number(db, "SELECT count(*) FROM sqlite_schema, tw_queue"), 1);
    sqlite3_close(db);
    store_remove(&own);
}

static void install_refuses_the_files_that_the_library_refuses(void **state)
{
    struct fixture own = another(state);
    sqlite3 *db = open_loaded(&own), *memory;
    assert_non_null(
        strstr(other_refuses(db, "BEGIN; SELECT tw_install()"),
               "tw_install: journal_mode is 'delete': expected 'wal' (PRAGMA journal_mode=WAL sets it, "
               "outside of a transaction)"));
    other_ask(db, "COMMIT; CREATE TABLE mine(x)");
    assert_non_null(strstr(other_refuses(db, "SELECT tw_install()"), "journal_mode is 'delete'"));
    assert_string_equal(other_ask(db, "PRAGMA journal_mode"), "delete"); /* never switched */
    assert_int_equal(number(db, "SELECT count(*) FROM sqlite_schema"), 1);
    sqlite3_close(db);
    store_remove(&own);

    db = open_loaded(&own);
    other_ask(db, "PRAGMA encoding='UTF-16le'; PRAGMA journal_mode=WAL; CREATE TABLE mine(x)");
    assert_non_null(
        strstr(other_refuses(db, "SELECT tw_install()"), "encoding is 'UTF-16le': expected 'UTF-8'"));
    sqlite3_close(db);
    store_remove(&own);

    own.path[0] = '\0'; /* a file of no name, which SQLite removes */
    memory = open_loaded(&own);
    assert_non_null(strstr(other_refuses(memory, "SELECT tw_install()"), "journal_mode is 'delete'"));
    sqlite3_close(memory);
}

/* Makes a copy of a file with the task "a". */
static struct fixture copy_by_vacuum(void **state)
{
    struct fixture own = another(state), copy = own;
    char sql[PATH_SIZE + 20];
    sqlite3 *db = open_loaded(&own);
    snprintf(copy.path, sizeof copy.path, "%.200s/copy.db", own.folder);
    snprintf(sql, sizeof sql, "VACUUM INTO '%s'", copy.path);
    other_ask(db, "SELECT tw_install(); INSERT INTO tw_put(queue, id, due_ms) VALUES ('q', 'a', 5)");
    other_ask(db, sql);
    sqlite3_close(db);
    store_remove(&own);
    return copy;
}

/* A past bug: it refused the copy, which has no WAL mode, though the library opens it. */
static void install_gives_a_copy_by_vacuum_its_mode_back(void **state)
{
    struct fixture copy = copy_by_vacuum(state);
    sqlite3 *db = open_loaded(&copy);
    assert_string_equal(other_ask(db, "PRAGMA journal_mode"), "delete");
    assert_non_null(strstr(other_refuses(db, "BEGIN; SELECT tw_install()"), "outside of a transaction"));
    other_ask(db, "ROLLBACK; UPDATE tw_meta SET format = 2");
    assert_string_equal(other_refuses(db, "SELECT tw_install()"),
                        "tw_install: format is 2: expected 1; the version that wrote it can read it");
    assert_string_equal(other_ask(db, "PRAGMA journal_mode"), "delete");
    other_ask(db, "UPDATE tw_meta SET format = 1");
    assert_int_equal(number(db, "SELECT tw_install()"), 0);
    assert_string_equal(other_ask(db, "PRAGMA journal_mode"), "wal");
    assert_string_equal(other_ask(db, "SELECT group_concat(id) FROM tw_task"), "a");
    sqlite3_close(db);
    store_remove(&copy);
}

static void install_leaves_a_damaged_copy_alone(void **state)
{
    static const char nothing[4096];
    struct fixture copy = copy_by_vacuum(state);
    sqlite3 *db = open_loaded(&copy);
    long long page = number(db, "SELECT rootpage FROM sqlite_schema WHERE name = 'tw_meta'");
    sqlite3_close(db);
    FILE *file = fopen(copy.path, "r+");
    assert_int_equal(fseek(file, (long)(page - 1) * (long)sizeof nothing, SEEK_SET), 0);
    assert_int_equal(fwrite(nothing, sizeof nothing, 1, file), 1);
    assert_int_equal(fclose(file), 0);
    db = open_loaded(&copy);
    assert_string_equal(other_refuses(db, "SELECT tw_install()"),
                        "tw_install: database disk image is malformed");
    assert_string_equal(other_ask(db, "PRAGMA journal_mode"), "delete");
    sqlite3_close(db);
    store_remove(&copy);
}

/* A bug: the error was that journal_mode is 'delete'. */
static void install_tells_what_the_disk_has_refused(void **state)
{
    struct fixture own = another(state);
    faulty_errno(ENOSPC);
    bool happened = true;
    for (long n = 2; happened; n++) { /* each fault, alone and with all later ones */
        sqlite3 *db = open_loaded(&own);
        char *text = NULL;
        faulty_disk(n / 2, SQLITE_IOERR_FSYNC, n % 2 == 0);
        int code = sqlite3_exec(db, "SELECT tw_install()", NULL, NULL, &text);
        happened = faulty_happened();
        faulty_disk(0, 0, false);
        if (code != SQLITE_OK && strstr(text, "disk I/O error: No space left on device") == NULL)
            fail_msg("fault %ld: %s", n, text);
        sqlite3_free(text);
        if (code != SQLITE_OK)
            other_ask(db, "SELECT tw_install()");
        sqlite3_close(db);
        db = other_open(&own);
        assert_string_equal(other_ask(db, "PRAGMA journal_mode"), "wal");
        sqlite3_close(db);
        store_remove(&own);
    }
    faulty_errno(0);
}

/* A past bug: "out of memory". */
static void install_tells_that_tw_meta_has_no_row(void **state)
{
    struct fixture own = another(state);
    sqlite3 *db = open_loaded(&own);
    other_ask(db, "SELECT tw_install()");
    other_ask(db, "DELETE FROM tw_meta");
    assert_string_equal(other_refuses(db, "SELECT tw_install()"),
                        "tw_install: tw_meta has no row: expected one");
    sqlite3_close(db);
    store_remove(&own);
}

static void install_tells_a_tw_meta_of_another_program_as_such(void **state)
{
    struct fixture own = another(state);
    sqlite3 *db = open_loaded(&own);
    other_ask(db, "PRAGMA journal_mode=WAL; CREATE TABLE tw_meta(id, about)");
    assert_string_equal(other_refuses(db, "SELECT tw_install()"),
                        "tw_install: the file has a table tw_meta, but no tw_task: it is another program's, or "
                        "tw_task was removed");
    other_ask(db, "CREATE TABLE tw_task(id)");
    assert_string_equal(other_refuses(db, "SELECT tw_install()"),
                        "tw_install: tw_meta has no column format: it is another program's");
    other_ask(db, "DROP TABLE tw_meta; CREATE TABLE tw_meta(format); INSERT INTO tw_meta VALUES (1)");
    assert_string_equal(
        other_refuses(db, "SELECT tw_install()"),
        "tw_install: tw_meta has no column revision: it is another program's, or of a version before 1.0.0");
    other_ask(db, "UPDATE tw_meta SET format = 'abc'");
    assert_string_equal(other_refuses(db, "SELECT tw_install()"),
                        "tw_install: the format in tw_meta is no whole number: it is another program's");
    other_ask(db, "DROP TABLE tw_meta; CREATE TABLE tw_meta(name, value); INSERT INTO tw_meta VALUES ('a', 1)");
    assert_string_equal(other_refuses(db, "SELECT tw_install()"),
                        "tw_install: tw_meta has no column format: it is another program's");
    other_ask(db, "INSERT INTO tw_meta VALUES ('version', 2)"); /* before the first release */
    assert_string_equal(other_refuses(db, "SELECT tw_install()"),
                        "tw_install: format is 0: expected 1; the version that wrote it can read it");
    assert_int_equal(number(db, "SELECT count(*) FROM sqlite_schema"), 2);
    sqlite3_close(db);
    store_remove(&own);
}

/* A busy handler: the other writer ends. */
static int let_commit(void *other, int n)
{
    other_ask(other, "COMMIT");
    return n == 0;
}

static void install_waits_for_another_writer_and_names_him(void **state)
{
    struct fixture own = another(state);
    sqlite3 *db = open_loaded(&own), *other = other_open(&own);
    other_ask(other, "PRAGMA journal_mode=WAL; BEGIN IMMEDIATE; CREATE TABLE mine(x)");
    sqlite3_busy_timeout(db, 20);
    assert_string_equal(
        other_refuses(db, "SELECT tw_install()"),
        "tw_install: database is locked: another connection has held the write lock for as long "
        "as this one waits, 20 ms (PRAGMA busy_timeout sets that)");
    assert_int_equal(sqlite3_errcode(db), SQLITE_BUSY);
    assert_string_equal(other_refuses(db, "BEGIN; SELECT tw_install()"),
                        "tw_install: database is locked: roll the transaction back, and begin it with BEGIN "
                        "IMMEDIATE");
    other_ask(db, "ROLLBACK");
    sqlite3_busy_handler(db, let_commit, other);
    assert_string_equal(other_ask(db, "SELECT tw_install()"), "1");
    sqlite3_close(other);
    sqlite3_close(db);
    store_remove(&own);
}

static void no_schema_may_install(void **state)
{
    struct fixture own = another(state);
    sqlite3 *db = open_loaded(&own);
    other_ask(db, "PRAGMA journal_mode=WAL; CREATE VIEW sly AS SELECT tw_install()");
    assert_string_equal(other_refuses(db, "SELECT * FROM sly"), "unsafe use of tw_install()");
    sqlite3_close(db);
    store_remove(&own);
}

/* ---- an old SQLite --------------------------------------------------------------------------------------- */

/* Receives the table of SQLite's functions, as an extension does. */
static sqlite3_api_routines functions;

static int copy_functions(sqlite3 *db, char **text, const sqlite3_api_routines *api)
{
    (void)db, (void)text;
    functions = *api;
    return SQLITE_OK;
}

static int old_number(void)
{
    return 3037002;
}

static const char *old_version(void)
{
    return "3.37.2";
}

static void an_old_sqlite_is_refused(void **state)
{
    typedef int init_function(sqlite3 * db, char **text, const sqlite3_api_routines *api);
    init_function *init;
    sqlite3_auto_extension((void (*)(void))copy_functions);
    sqlite3 *db = open_loaded(*state);
    sqlite3_reset_auto_extension();
    void *extension = dlopen(EXTENSION, RTLD_NOW);
    assert_non_null(extension);
    *(void **)&init = dlsym(extension, "sqlite3_tickwheelsqlite_init");
    functions.libversion_number = old_number;
    functions.libversion = old_version;
    char *text = NULL;
    assert_int_equal(init(db, &text, &functions), SQLITE_ERROR);
    assert_string_equal(text, "tickwheel_sqlite: SQLite is 3.37.2: expected 3.38 or later");
    sqlite3_free(text);
    sqlite3_close(db);
    dlclose(extension);
}

/* ---- memory ---------------------------------------------------------------------------------------------- */

/* Runs a statement with ever more memory, until it is enough. Of the requests from each place of the code one
 * is refused: alone within a transaction, else together with all that follow. A failure may leave a transaction
 * open, and rolling back leaves nothing. */
static void with_little_memory(sqlite3 *db, const char *begin, const char *sql, int result)
{
    bool within = begin[0] != '\0', happened = true;
    int code = SQLITE_NOMEM;
    long n = 1;
    for (; happened && (within || code == SQLITE_NOMEM); n = faulty_number() + 1) {
        if (!sqlite3_get_autocommit(db))
            other_ask(db, "ROLLBACK");
        assert_int_equal(number(db, "SELECT count(*) FROM sqlite_schema"), 0);
        other_ask(db, begin);
        sqlite3_db_release_memory(db);
        faulty_memory(n, !within);
        code = sqlite3_exec(db, sql, NULL, NULL, NULL);
        happened = faulty_happened();
        faulty_memory(0, false);
        if (code != SQLITE_NOMEM || !happened)
            assert_int_equal(code, result);
        if (code == SQLITE_OK)
            assert_int_equal(number(db, "SELECT count(*) FROM tw_meta"), 1);
    }
    assert_int_equal(code, result);
    assert_in_range(n, 3, 1000000);
    if (!sqlite3_get_autocommit(db))
        other_ask(db, "COMMIT");
}

/* An SQL function after which there is no memory left. */
static void take_memory(sqlite3_context *context, int n, sqlite3_value **values)
{
    (void)n;
    sqlite3_result_value(context, values[0]);
    sqlite3_hard_heap_limit64(sqlite3_memory_used() + 1);
}

/* SQLite makes the text of a number, and the bytes of a blob of zeroes, when they are to be shown. */
static void a_bad_time_without_memory_for_its_message(void **state)
{
    static const char *const bad[] = {"SELECT tw_in(take_memory('30'))", "SELECT tw_in(take_memory(30))",
                                      "SELECT tw_in(take_memory(zeroblob(100000)))"};
    sqlite3 *db = open_loaded(*state);
    sqlite3_db_config(db, SQLITE_DBCONFIG_LOOKASIDE, NULL, 0, 0);
    sqlite3_create_function(db, "take_memory", 1, SQLITE_UTF8, NULL, take_memory, NULL, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int code = sqlite3_exec(db, bad[i], NULL, NULL, NULL);
        sqlite3_hard_heap_limit64(0);
        assert_int_equal(code, SQLITE_NOMEM);
    }
    assert_non_null(strstr(refused(db, "tw_in", "'30'"), "tw_in: '30': expected"));
    sqlite3_close(db);
}

static void without_memory_nothing_is_made(void **state)
{
    static const char *const begins[] = {"", "BEGIN"};
    struct fixture own = another(state);
    for (int i = 0; i < 2; i++) {
        sqlite3 *db = open_loaded(&own);
        sqlite3_db_config(db, SQLITE_DBCONFIG_LOOKASIDE, NULL, 0, 0);
        with_little_memory(db, begins[i], "SELECT tw_in('30')", SQLITE_ERROR);
        with_little_memory(db, "BEGIN", "SELECT tw_install()", SQLITE_ERROR); /* a new file has no WAL mode */
        other_ask(db, "PRAGMA journal_mode=WAL");
        with_little_memory(db, begins[i], "SELECT tw_install()", SQLITE_OK);
        assert_int_equal(number(db, "SELECT count(*) FROM tw_meta"), 1);
        sqlite3_close(db);
        store_remove(&own);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)
    const struct CMUnitTest tests[] = {
        TEST(now_is_the_clock),
        TEST(in_adds_a_duration_to_the_clock),
        TEST(at_is_a_time_in_utc),
        TEST(bad_times_are_named_with_their_form),
        TEST(a_trigger_may_call_them_in_a_file_that_is_not_trusted),
        TEST(install_makes_the_tables_that_the_library_makes),
        TEST(install_is_a_part_of_the_transaction),
        TEST(install_leaves_nothing_behind_when_it_fails),
        TEST(install_refuses_the_files_that_the_library_refuses),
        TEST(install_gives_a_copy_by_vacuum_its_mode_back),
        TEST(install_leaves_a_damaged_copy_alone),
        TEST(install_tells_what_the_disk_has_refused),
        TEST(install_tells_that_tw_meta_has_no_row),
        TEST(install_tells_a_tw_meta_of_another_program_as_such),
        TEST(install_waits_for_another_writer_and_names_him),
        TEST(no_schema_may_install),
        TEST(an_old_sqlite_is_refused),
        TEST(a_bad_time_without_memory_for_its_message),
        TEST(without_memory_nothing_is_made),
    };
    faulty_install();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
