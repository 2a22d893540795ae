/* SPDX-License-Identifier: MIT
 *
 * Every call, with the n-th allocation, write or sync failing. A call that fails names its error and
 * has changed nothing, and the store goes on.
 */
#include "faulty.h"
#include "clock.h"
#include "support.h"
#include "tests/support/eventually.h"

#include <errno.h>
#include <src/store/internal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the calls -------------------------------------------------------------------------------------------
 * */

/* A call that may fail. If it fails, the queue is as before; if not, the queue is as `done`. */
struct call {
    const char *name;
    int (*make)(struct fixture *fixture);
    const char *done; /* NULL: as before */
};

static const char *const before = "a@10 b@20 c@30";

/* 0 for the result 1 of a put or a move. */
static int made(int result)
{
    return result < 0 ? result : result - 1;
}

static int put_new(struct fixture *fixture)
{
    return made(put(fixture->store, "d", 40));
}

static int put_under_condition(struct fixture *fixture)
{
    return made(put_if(fixture->store, "a", 40, TW_CONDITION_GT));
}

static int put_in_place(struct fixture *fixture)
{
    return made(put_if(fixture->store, "a", 40, TW_CONDITION_KEEPDUE));
}

static int move_one(struct fixture *fixture)
{
    return made(store_move_at(fixture->store, tw_store_named("q", "a"), 40, 0));
}

static int move_under_condition(struct fixture *fixture)
{
    return made(store_move_at(fixture->store, tw_store_named("q", "a"), 40, TW_CONDITION_GT));
}

static int cancel_one(struct fixture *fixture)
{
    return tw_store_cancel(fixture->store, tw_store_named("q", "b"), NULL);
}

static int cancel_nobody(struct fixture *fixture)
{
    return tw_store_cancel(fixture->store, tw_store_named("q", "nobody"), NULL);
}

static int apply_many(struct fixture *fixture)
{
    struct tw_store_change changes[3] = {
        {.verb = TW_STORE_VERB_PUT, .task = {.queue = "q", .id = tw_text("e"), .due_ms = 5}},
        {.verb = TW_STORE_VERB_MOVE, .task = {.queue = "q", .id = tw_text("c"), .due_ms = 6}},
        {.verb = TW_STORE_VERB_CANCEL, .task = {.queue = "q", .id = tw_text("a")}},
    };
    return tw_store_apply(fixture->store, changes, 3);
}

static sqlite3 *own;

static int apply_on(struct fixture *fixture)
{
    struct tw_store_change change = {.verb = TW_STORE_VERB_PUT,
                                     .task = {.queue = "q", .id = tw_text("d"), .due_ms = 40}};
    char text[TW_STORE_MESSAGE_SIZE];
    (void)fixture;
    return tw_store_apply_on(own, NULL, &change, 1, text, sizeof text);
}

static int get_one(struct fixture *fixture)
{
    struct seen seen = {.text = ""};
    return tw_store_get(fixture->store, tw_store_named("q", "a"), see, &seen);
}

static int scan_all(struct fixture *fixture)
{
    struct seen seen = {.text = ""};
    struct tw_store_range range = {.from_ms = 10, .after = 1};
    int64_t count = store_scan(fixture->store, "q", &range, see, &seen);
    return count < 0 ? (int)count : (int)count - 2;
}

static int count_all(struct fixture *fixture)
{
    int64_t count = store_count(fixture->store, "q", false);
    return count < 0 ? (int)count : (int)count - 3;
}

static int next_one(struct fixture *fixture)
{
    uint64_t next = 7;
    int error = tw_store_next(fixture->store, "q", &next);
    return error != 0 ? error : (int)next - 10;
}

/* Looks in one snapshot. */
struct looks {
    struct fixture *fixture;
    int count, next;
};

static void look_twice(void *arg)
{
    struct looks *looks = arg;
    looks->count = count_all(looks->fixture);
    looks->next = next_one(looks->fixture);
}

static int snapshot(struct fixture *fixture)
{
    struct looks looks = {.fixture = fixture};
    int error = tw_store_snapshot(fixture->store, look_twice, &looks);
    return error != 0 ? error : looks.count != 0 ? looks.count : looks.next;
}

static int forecast(struct fixture *fixture)
{
    uint64_t counts[2] = {9, 9};
    int error = tw_store_forecast(fixture->store, "q", 1000, 2, counts);
    assert_int_equal(counts[0], error == 0 ? 3 : 9);
    return error;
}

static void see_queue(void *arg, const char *queue)
{
    (void)arg;
    assert_string_equal(queue, "q");
}

static int queues(struct fixture *fixture)
{
    int64_t count = store_queues(fixture->store, see_queue, NULL);
    return count < 0 ? (int)count : (int)count - 1;
}

static int pause_queue(struct fixture *fixture)
{
    int paused = store_pause(fixture->store, "q");
    return paused < 0 ? paused : made(store_resume(fixture->store, "q"));
}

static int mark_file(struct fixture *fixture)
{
    int marked = store_restored(fixture->store, true);
    return marked < 0 ? marked : made(store_restored(fixture->store, false));
}

static int replay_one(struct fixture *fixture)
{
    return made((int)store_replay(fixture->store, tw_store_named("q", "z"), 50));
}

static int replay_all(struct fixture *fixture)
{
    return made((int)store_replay(fixture->store, all_of("q"), 50));
}

static int promote_one(struct fixture *fixture)
{
    return made((int)store_promote(fixture->store, tw_store_named("q", "c")));
}

static int promote_all(struct fixture *fixture)
{
    int64_t count = store_promote(fixture->store, all_of("q"));
    return count < 0 ? (int)count : (int)count - 3;
}

static int purge_dead(struct fixture *fixture)
{
    return made((int)store_purge(fixture->store, all_of("q"), 1000));
}

static const struct call calls[] = {
    {"put", put_new, "a@10 b@20 c@30 d@40"},
    {"put under a condition", put_under_condition, "b@20 c@30 a@40"},
    {"put in place", put_in_place, NULL},
    {"move", move_one, "b@20 c@30 a@40"},
    {"move under a condition", move_under_condition, "b@20 c@30 a@40"},
    {"cancel", cancel_one, "a@10 c@30"},
    {"cancel nobody", cancel_nobody, NULL},
    {"apply", apply_many, "e@5 c@6 b@20"},
    {"apply_on", apply_on, "a@10 b@20 c@30 d@40"},
    {"get", get_one, NULL},
    {"scan", scan_all, NULL},
    {"count", count_all, NULL},
    {"next", next_one, NULL},
    {"snapshot", snapshot, NULL},
    {"forecast", forecast, NULL},
    {"queues", queues, NULL},
    {"pause", pause_queue, NULL},
    {"mark", mark_file, NULL},
    {"replay", replay_one, "a@10 b@20 c@30 z@50"},
    {"replay all", replay_all, "a@10 b@20 c@30 z@50"},
    {"promote", promote_one, "c@30 a@10 b@20"},
    {"promote all", promote_all, NULL},
    {"purge", purge_dead, NULL},
};

/* A connection that fills the queue, with a copy of the tasks: thousands of calls begin with them. */
static sqlite3 *filler_open(struct fixture *fixture)
{
    sqlite3 *db = other_open(fixture);
    other_ask(db, "INSERT INTO tw_put(queue, id, due_ms) VALUES ('q', 'a', 10), ('q', 'b', 20), ('q', 'c', 30),"
                  " ('q', 'z', 40)");
    other_ask(db, "UPDATE tw_task SET dead_ms = 7 WHERE due_ms = 40");
    other_ask(db, "UPDATE tw_task SET revision = revision - (SELECT min(revision) FROM tw_task) + 1");
    other_ask(db, "CREATE TEMP TABLE filling AS SELECT * FROM tw_task");
    return db;
}

/* Also makes other connections read all pages anew. */
static void fill(sqlite3 *filler)
{
    other_ask(filler, "BEGIN; DELETE FROM tw_task; INSERT INTO tw_task SELECT * FROM filling;"
                      "UPDATE tw_queue SET paused = 0; COMMIT");
}

/* The next n of the long series of opening: the long rounds try every n, the others every n up to 50 and then
 * every 53rd. */
static long after(long n)
{
    return n < 50 || getenv("TICKWHEEL_LONG") != NULL ? n + 1 : n + 53;
}

/* ---- memory ---------------------------------------------------------------------------------------------- */

/* Every call, with the n-th time of a fault, for every n. The call may fail with this error alone. `may_stay`:
 * the fault may keep a change of the caller's transaction from being taken back, and the call says so. */
static void every_call_survives(struct fixture *fixture, void (*fault)(long n, bool on), int expected_error,
                                bool may_stay)
{
    sqlite3 *filler = filler_open(fixture);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        bool happened = true, changed = true;
        for (long n = 1; happened; n = faulty_number() + 1) {
            if (changed || calls[i].done == NULL) /* a look has to read the pages anew */
                fill(filler);
            store_forget(fixture->store);
            own = calls[i].make == apply_on ? other_open(fixture) : NULL;
            fault(n, n % 2 == 0);
            int error = calls[i].make(fixture);
            happened = faulty_happened();
            fault(0, false);
            bool stays = error == TW_EROLLBACK && may_stay;
            if (stays) /* the caller takes it back, and the fault is over */
                other_ask(own, "ROLLBACK");
            if (error != 0 && ((error != expected_error && !stays) || !happened))
                fail_msg("%s, fault %ld: %s (%s)", calls[i].name, n, tw_store_strerror(error),
                         message(fixture->store));
            changed = error == 0;
            const char *expected = error == 0 && calls[i].done != NULL ? calls[i].done : before;
            if (strcmp(scan(fixture->store, NULL), expected) != 0)
                fail_msg("%s, fault %ld, %s: '%s', expected '%s'", calls[i].name, n, tw_store_strerror(error),
                         scan(fixture->store, NULL), expected);
            sqlite3_close(own);
        }
    }
    sqlite3_close(filler);
}

static void every_call_survives_that_memory_ends(void **state)
{
    every_call_survives(*state, faulty_memory, TW_ENOMEM, true);
}

static void every_call_survives_that_memory_ends_for_our_own_code(void **state)
{
    every_call_survives(*state, faulty_own_memory, TW_ENOMEM, true);
}

/* So many new tasks are put by a few statements. All but the last are cancelled again. */
static int apply_new(struct fixture *fixture)
{
    enum { NEW = 64 };
    struct tw_store_change changes[2 * NEW - 1];
    char ids[NEW][4];
    for (int i = 0; i < 2 * NEW - 1; i++) {
        char *id = ids[i % NEW];
        snprintf(id, sizeof ids[0], "n%02d", i % NEW);
        changes[i] = (struct tw_store_change){.verb = i < NEW ? TW_STORE_VERB_PUT : TW_STORE_VERB_CANCEL,
                                              .task = {.queue = "q", .id = {id, 3}, .due_ms = 5}};
    }
    return tw_store_apply(fixture->store, changes, 2 * NEW - 1);
}

static void many_new_tasks_survive_that_memory_ends(void **state)
{
    struct fixture *fixture = *state;
    sqlite3 *filler = filler_open(fixture);
    bool happened = true;
    for (long n = 1; happened; n = after(faulty_number())) {
        fill(filler);
        store_forget(fixture->store);
        faulty_memory(n, n % 2 == 0);
        int error = apply_new(fixture);
        happened = faulty_happened();
        faulty_memory(0, false);
        assert_true(error == 0 || (error == TW_ENOMEM && happened));
        assert_string_equal(scan(fixture->store, NULL), error == 0 ? "n63@5 a@10 b@20 c@30" : before);
    }
    sqlite3_close(filler);
}

static void opening_survives_that_memory_ends(void **state)
{
    struct fixture *fixture = *state;
    char text[TW_STORE_MESSAGE_SIZE];
    for (int fresh = 0; fresh < 2; fresh++) {
        bool happened = true;
        for (long n = 1; happened; n = after(faulty_number())) {
            tw_store_close(fixture->store);
            fixture->store = NULL;
            if (fresh)
                store_remove(fixture);
            faulty_memory(n, n % 2 == 0);
            int error = tw_store_open(&fixture->store, fixture->path, NULL, text, sizeof text);
            happened = faulty_happened();
            faulty_memory(0, false);
            if (error != 0) {
                if (error != TW_ENOMEM || !happened)
                    fail_msg("allocation %ld: %s (%s)", n, tw_store_strerror(error), text);
                assert_null(fixture->store);
                assert_int_equal(tw_store_open(&fixture->store, fixture->path, NULL, text, sizeof text), 0);
            }
            assert_int_equal(put(fixture->store, "a", 1), 1);
        }
    }
}

/* ---- the disk --------------------------------------------------------------------------------------------
 * */

/* Takes one of three ways in turn: a write has no room, a sync has none, or a quota is used up. */
static void fill_disk(long n, bool on)
{
    static const struct {
        int code, number;
    } ways[] = {{SQLITE_FULL, ENOSPC}, {SQLITE_IOERR_FSYNC, ENOSPC}, {SQLITE_IOERR_WRITE, EDQUOT}};
    faulty_errno(ways[n % 3].number);
    faulty_disk(n, ways[n % 3].code, on);
}

static void fail_writing(long n, bool on)
{
    faulty_errno(EIO);
    faulty_disk(n, SQLITE_IOERR_WRITE, on);
}

/* Takes one of two ways in turn. A disk that cannot read answers EIO, of which SQLite makes a damaged file. */
static void fail_reading(long n, bool on)
{
    bool as_damage = n / 2 % 2 == 0;
    faulty_errno(as_damage ? EIO : 0);
    faulty_disk(n, as_damage ? SQLITE_IOERR_CORRUPTFS : SQLITE_IOERR_READ, on);
}

static void every_call_survives_that_the_disk_is_full(void **state)
{
    every_call_survives(*state, fill_disk, TW_ENOSPACE, false);
}

static void every_call_survives_that_the_disk_fails(void **state)
{
    every_call_survives(*state, fail_writing, TW_EIO, false);
}

static void every_call_survives_that_reading_fails(void **state)
{
    every_call_survives(*state, fail_reading, TW_EIO, true);
}

static int stop_at_once(void *arg)
{
    (void)arg;
    return 1;
}

/* SQLite stops in the middle of a thousand tasks. */
static void a_forecast_that_is_interrupted_has_no_counts(void **state)
{
    struct fixture *fixture = *state;
    uint64_t counts[1] = {9};
    sqlite3 *db = other_open(fixture);
    other_ask(db, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)"
                  " INSERT INTO tw_put(queue, id, due_ms) SELECT 'q', 'id ' || i, 5 FROM n");
    sqlite3_progress_handler(fixture->store->reader->db.db, 1000, stop_at_once, NULL);
    assert_int_equal(tw_store_forecast(fixture->store, "q", 1000, 1, counts), TW_EINTERRUPTED);
    sqlite3_progress_handler(fixture->store->reader->db.db, 0, NULL, NULL);
    assert_int_equal(counts[0], 9);
    assert_int_equal(tw_store_forecast(fixture->store, "q", 1000, 1, counts), 0);
    assert_int_equal(counts[0], 1000);
    sqlite3_close(db);
}

static void an_error_of_the_disk_has_the_reason_of_the_system(void **state)
{
    struct tw_store *store = ((struct fixture *)*state)->store;
    static const struct {
        int code, number, error;
        const char *text;
    } rows[] = {
        {SQLITE_IOERR_FSYNC, ENOSPC, TW_ENOSPACE,
         "commit: disk I/O error: No space left on device (SQLite's code 1034)"},
        {SQLITE_IOERR_FSYNC, EDQUOT, TW_ENOSPACE,
         "commit: disk I/O error: Disk quota exceeded (SQLite's code 1034)"},
        {SQLITE_IOERR_WRITE, EFBIG, TW_EIO, "commit: disk I/O error: File too large (SQLite's code 778)"},
        {SQLITE_IOERR_WRITE, EIO, TW_EIO, "commit: disk I/O error: Input/output error (SQLite's code 778)"},
        {SQLITE_IOERR_WRITE, ENOENT, TW_EIO, "commit: disk I/O error (SQLite's code 778)"},
        {SQLITE_FULL, ENOSPC, TW_ENOSPACE, "commit: database or disk is full (SQLite's code 13)"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        faulty_errno(rows[i].number);
        faulty_disk(1, rows[i].code, true);
        assert_int_equal(put(store, "a", 1), rows[i].error);
        faulty_disk(0, 0, false);
        assert_string_equal(message(store), rows[i].text);
    }
    errno = ENOSPC; /* of another call */
    faulty_errno(0);
    faulty_disk(1, SQLITE_IOERR_WRITE, true);
    assert_int_equal(put(store, "a", 1), TW_EIO);
    faulty_disk(0, 0, false);
    assert_string_equal(scan(store, NULL), "");
}

/* A bug: it was told that -shm had been removed. The file that was not made can be made afterwards. */
static void a_new_file_tells_what_the_disk_has_refused(void **state)
{
    static const struct {
        int code, number, error;
        const char *text;
    } rows[] = {
        {SQLITE_IOERR_FSYNC, ENOSPC, TW_ENOSPACE, "No space left on device"},
        {SQLITE_IOERR_FSYNC, EDQUOT, TW_ENOSPACE, "Disk quota exceeded"},
        {SQLITE_IOERR_FSYNC, EIO, TW_EIO, "Input/output error"},
        {SQLITE_FULL, ENOSPC, TW_ENOSPACE, "disk is full"},
    };
    struct fixture *fixture = *state;
    char text[TW_STORE_MESSAGE_SIZE];
    bool happened = true;
    for (long n = 2; happened; n++) { /* each fault, alone and with all later ones */
        size_t i = (size_t)n / 2 % (sizeof rows / sizeof rows[0]);
        tw_store_close(fixture->store);
        fixture->store = NULL;
        store_remove(fixture);
        faulty_errno(rows[i].number);
        faulty_disk(n / 2, rows[i].code, n % 2 == 0);
        int error = tw_store_open(&fixture->store, fixture->path, NULL, text, sizeof text);
        happened = faulty_happened();
        faulty_disk(0, 0, false);
        if (error != 0 && (error != rows[i].error || strstr(text, rows[i].text) == NULL))
            fail_msg("%s, fault %ld: %s (%s)", rows[i].text, n, tw_store_strerror(error), text);
        if (error != 0)
            assert_int_equal(tw_store_open(&fixture->store, fixture->path, NULL, text, sizeof text), 0);
        sqlite3 *db = other_open(fixture);
        assert_string_equal(other_ask(db, "PRAGMA journal_mode"), "wal");
        sqlite3_close(db);
        assert_int_equal(put(fixture->store, "a", 1), 1);
    }
    faulty_errno(0);
}

/* A bug: a run without --stay ended because of "a damaged file". */
static void a_read_that_fails_is_no_damage(void **state)
{
    struct fixture *fixture = *state;
    struct tw_store *store;
    char text[TW_STORE_MESSAGE_SIZE];
    put(fixture->store, "a", 1);
    tw_store_close(fixture->store); /* the next one reads from the disk */
    fixture->store = NULL;
    faulty_errno(EIO);
    for (long n = 1, error = TW_EIO; error != 0; n++) {
        faulty_disk(n, SQLITE_IOERR_CORRUPTFS, true);
        error = tw_store_open(&store, fixture->path, NULL, text, sizeof text);
        faulty_disk(0, 0, false);
        if (error != 0) {
            assert_int_equal(error, TW_EIO);
            assert_non_null(strstr(text, "disk I/O error"));
        }
    }
    faulty_errno(0);
    fixture->store = store;
    assert_string_equal(scan(store, NULL), "a@1");
}

/* ---- syncs -----------------------------------------------------------------------------------------------
 * */

static void every_durable_call_syncs_before_it_returns(void **state)
{
    struct fixture *fixture = *state;
    sqlite3 *filler = filler_open(fixture);
    for (int i = 0; i < 5; i++) { /* the calls up to cancel */
        fill(filler);
        faulty_syncs();
        assert_int_equal(calls[i].make(fixture), 0);
        assert_true(faulty_syncs() > 0);
    }
    faulty_syncs();
    assert_int_equal(store_move_at(fixture->store, tw_store_named("q", "nobody"), 1, 0), TW_EGONE);
    assert_int_equal(tw_store_flush(fixture->store), 0);
    assert_int_equal(faulty_syncs(), 0); /* nothing has changed */
    sqlite3_close(filler);
}

static void a_lazy_store_syncs_when_it_is_flushed(void **state)
{
    struct fixture *fixture = *state;
    struct tw_store_options options = {.flags = TW_STORE_OPEN_LAZY};
    bool happened = true;
    tw_store_close(fixture->store);
    assert_int_equal(tw_store_open(&fixture->store, fixture->path, &options, NULL, 0), 0);
    assert_int_equal(put(fixture->store, "a", 1), 1);
    for (long n = 1; happened; n = faulty_number() + 1) {
        assert_int_equal(put(fixture->store, "a", (uint64_t)n), 1);
        faulty_syncs();
        faulty_memory(n, n % 2 == 0);
        int error = tw_store_flush(fixture->store);
        happened = faulty_happened();
        faulty_memory(0, false);
        assert_true(error == TW_ENOMEM || (error == 0 && faulty_syncs() > 0));
    }
}

/* ---- files of SQLite's own ------------------------------------------------------------------------------- */

/* The pages that a statement of many rows changes do not go through a file in the system's folder for such
 * files: that folder may be full, and most of the time of the puts was spent there. */
static void many_puts_need_no_other_file(void **state)
{
    enum { TASKS = 1000, CALLS = 8 };
    static struct tw_store_change changes[TASKS];
    static char ids[TASKS][8], payload[1000];
    struct fixture *fixture = *state;
    faulty_temporary();
    for (int call = 0; call < CALLS; call++) {
        for (int i = 0; i < TASKS; i++) {
            int number = i * 383 % TASKS * CALLS + call; /* each is between others, on another page */
            size_t size = (size_t)snprintf(ids[i], sizeof ids[i], "%06d", number);
            changes[i] = (struct tw_store_change){.verb = TW_STORE_VERB_PUT,
                                                  .task = {.queue = "q",
                                                           .id = {ids[i], size},
                                                           .due_ms = (uint64_t)number + 1,
                                                           .payload = {payload, sizeof payload}}};
        }
        assert_int_equal(tw_store_apply(fixture->store, changes, TASKS), 0);
    }
    assert_int_equal(faulty_temporary(), 0);
}

/* ---- shared commits -------------------------------------------------------------------------------------- */

/* Six threads put while another connection holds the lock, so that five of them share a commit. The n-th write
 * fails. A task is there exactly if its thread was told so. */
static void threads_that_share_a_commit_that_fails_are_told(void **state)
{
    struct fixture *fixture = *state;
    static const char *const ids[] = {"a", "b", "c", "d", "e", "f"};
    bool happened = true;
    long n = 1;
    for (; happened; n++) {
        struct putter workers[6];
        char expected[64] = "";
        sqlite3 *db = other_open(fixture);
        other_ask(db, "DELETE FROM tw_task");
        other_ask(db, "BEGIN IMMEDIATE");
        for (int i = 0; i < 6; i++)
            workers[i] = (struct putter){.store = fixture->store, .id = ids[i], .due_ms = 1};
        begin_puts(workers, 6);
        faulty_disk(n, SQLITE_FULL, n % 2 == 0);
        other_ask(db, "COMMIT"); /* writes nothing itself */
        for (int i = 0; i < 6; i++)
            eventually_joined(workers[i].thread);
        happened = faulty_happened();
        faulty_disk(0, 0, false);
        for (int i = 0; i < 6; i++) {
            assert_true(workers[i].result == 1 || workers[i].result == TW_ENOSPACE);
            if (workers[i].result == 1)
                strcat(strcat(expected, workers[i].id), " ");
        }
        assert_string_equal(other_ask(db, "SELECT coalesce(group_concat(id, ' ') || ' ', '') FROM"
                                          " (SELECT id FROM tw_task ORDER BY id)"),
                            expected);
        sqlite3_close(db);
    }
    assert_true(n > 10);
}

static void a_file_that_cannot_be_written_is_refused(void **state)
{
    struct fixture *fixture = *state;
    char text[TW_STORE_MESSAGE_SIZE];
    tw_store_close(fixture->store);
    fixture->store = NULL;
    faulty_readonly(true);
    assert_int_equal(tw_store_open(&fixture->store, fixture->path, NULL, text, sizeof text), TW_EREADONLY);
    faulty_readonly(false);
    assert_string_equal(text, "the file cannot be written");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)

/* The clock stands at the beginning of 1970, so small due times lie ahead. */
int main(int count, char **arguments)
{
    (void)count;
    clock_stop(1);
    static const struct CMUnitTest tests[] = {
        TEST(every_call_survives_that_memory_ends),
        TEST(every_call_survives_that_memory_ends_for_our_own_code),
        TEST(many_new_tasks_survive_that_memory_ends),
        TEST(opening_survives_that_memory_ends),
        TEST(every_call_survives_that_the_disk_is_full),
        TEST(every_call_survives_that_the_disk_fails),
        TEST(every_call_survives_that_reading_fails),
        TEST(a_forecast_that_is_interrupted_has_no_counts),
        TEST(an_error_of_the_disk_has_the_reason_of_the_system),
        TEST(a_new_file_tells_what_the_disk_has_refused),
        TEST(a_read_that_fails_is_no_damage),
        TEST(a_file_that_cannot_be_written_is_refused),
        TEST(every_durable_call_syncs_before_it_returns),
        TEST(a_lazy_store_syncs_when_it_is_flushed),
        TEST(many_puts_need_no_other_file),
        TEST(threads_that_share_a_commit_that_fails_are_told),
    };
    choose_tests(arguments);
    faulty_install();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
