/* SPDX-License-Identifier: MIT
 *
 * Many threads share commits: each finds its own result, and a request that fails takes nothing else back.
 */
#include "support.h"

#include <pthread.h>
#include <src/store/internal.h>
#include <stdio.h>
#include <string.h>
#include <tests/support/eventually.h>

enum { THREADS = 16, ROUNDS = 50 };

struct worker {
    struct tw_store *store;
    int number, puts, cancels, refusals;
    pthread_t thread;
};

/* Puts tasks, cancels each third again, and sometimes asks for an impossible move. */
static void *work(void *arg)
{
    struct worker *worker = arg;
    for (int i = 0; i < ROUNDS; i++) {
        char id[32];
        int size = snprintf(id, sizeof id, "%d-%d", worker->number, i);
        struct tw_store_delayed task = {.queue = "q", .id = {id, (size_t)size}, .due_ms = (uint64_t)i};
        enum tw_cancel found = TW_CANCEL_GONE;
        worker->puts += store_put(worker->store, &task, 0);
        if (i % 3 == 0 &&
            tw_store_cancel(worker->store, (struct tw_store_name){"q", {id, (size_t)size}}, &found) == 0)
            worker->cancels += found == TW_CANCEL_CANCELLED;
        if (i % 5 == 0)
            worker->refusals += store_move_at(worker->store, tw_store_named("q", "nobody"), 1, 0) == TW_EGONE;
    }
    return NULL;
}

static void every_thread_finds_its_own_result(void **state)
{
    struct fixture *fixture = *state;
    struct worker workers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.store = fixture->store, .number = i};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        eventually_joined(workers[i].thread);
        assert_int_equal(workers[i].puts, ROUNDS);
        assert_int_equal(workers[i].cancels, (ROUNDS + 2) / 3);
        assert_int_equal(workers[i].refusals, ROUNDS / 5);
    }
    store_reopen(fixture);
    assert_int_equal(store_count(fixture->store, "q", false), THREADS * (ROUNDS - (ROUNDS + 2) / 3));
}

/* Each thread's tasks of one due time stay in its order, whoever led the commits. */
static void *put_in_order(void *arg)
{
    struct worker *worker = arg;
    for (int i = 0; i < ROUNDS; i++) {
        char id[32];
        int size = snprintf(id, sizeof id, "%d-%02d", worker->number, i);
        struct tw_store_delayed task = {.queue = "q", .id = {id, (size_t)size}, .due_ms = 7};
        worker->puts += store_put(worker->store, &task, 0);
    }
    return NULL;
}

static void check_order(void *arg, const struct tw_store_task *task)
{
    int *next = arg, number, round;
    assert_int_equal(sscanf((const char *)task->id.data, "%d-%d", &number, &round), 2);
    assert_int_equal(round, next[number]++);
}

static void the_tasks_of_a_thread_keep_its_order(void **state)
{
    struct fixture *fixture = *state;
    struct worker workers[4];
    int next[4] = {0};
    for (int i = 0; i < 4; i++) {
        workers[i] = (struct worker){.store = fixture->store, .number = i};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, put_in_order, &workers[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        eventually_joined(workers[i].thread);
    assert_int_equal(store_scan(fixture->store, "q", NULL, check_order, next), 4 * ROUNDS);
}

/* ---- a neighbour that fails ------------------------------------------------------------------------------ */

/* A trigger of the user refuses one id, with RAISE(how, ...). */
static void put_beside_a_refusal(struct fixture *fixture, const char *how, const char *expected)
{
    static const char *const ids[] = {"a", "b", "bad", "c", "d"};
    struct putter neighbours[5];
    char sql[256];
    sqlite3 *db = other_open(fixture);
    snprintf(sql, sizeof sql,
             "CREATE TRIGGER refuse AFTER INSERT ON tw_task WHEN NEW.id = x'626164' BEGIN"
             " SELECT RAISE(%s, 'refused'); END",
             how);
    other_ask(db, sql);
    other_ask(db, "BEGIN IMMEDIATE");
    for (int i = 0; i < 5; i++)
        neighbours[i] = (struct putter){.store = fixture->store, .id = ids[i], .due_ms = 1};
    begin_puts(neighbours, 5);
    other_ask(db, "COMMIT");
    for (int i = 0; i < 5; i++) {
        eventually_joined(neighbours[i].thread);
        assert_int_equal(neighbours[i].result, i == 2 ? TW_ECORRUPT : 1);
    }
    assert_string_equal(scan(fixture->store, NULL), expected);
    assert_string_equal(message(fixture->store), "put: refused (SQLite's code 1811)");
    sqlite3_close(db);
}

static void a_put_that_fails_leaves_its_neighbours(void **state)
{
    put_beside_a_refusal(*state, "ABORT", "a@1 b@1 c@1 d@1");
}

static void a_put_that_rolls_the_transaction_back_leaves_its_neighbours(void **state)
{
    put_beside_a_refusal(*state, "ROLLBACK", "a@1 b@1 c@1 d@1");
}

/* The statement that fails so keeps its row, and the leader takes the row back. */
static void a_put_that_fails_half_way_leaves_nothing_but_its_neighbours(void **state)
{
    put_beside_a_refusal(*state, "FAIL", "a@1 b@1 c@1 d@1");
}

/* Counts the commits in the log: the frames that hold the size of the file (sqlite.org/fileformat2.html,
 * section 4.1). */
static int count_commits(const struct fixture *fixture)
{
    enum { HEADER = 32, FRAME = 24 + 4096 };
    unsigned char frame[FRAME];
    char path[PATH_SIZE + 8];
    int commits = 0;
    snprintf(path, sizeof path, "%s-wal", fixture->path);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, HEADER, SEEK_SET);
    while (fread(frame, 1, sizeof frame, file) == sizeof frame)
        commits += (frame[4] | frame[5] | frame[6] | frame[7]) != 0;
    fclose(file);
    return commits;
}

/* While another connection holds the lock, one thread waits for it, and the others for that thread. */
static void threads_that_come_together_share_a_commit(void **state)
{
    enum { MANY = 20 };
    static const char ids[] = "abcdefghijklmnopqrst";
    struct fixture *fixture = *state;
    struct putter neighbours[MANY];
    char names[MANY][2];
    sqlite3 *db = other_open(fixture);
    other_ask(db, "BEGIN IMMEDIATE");
    int before = count_commits(fixture);
    for (int i = 0; i < MANY; i++) {
        memcpy(names[i], (char[2]){ids[i]}, 2);
        neighbours[i] = (struct putter){.store = fixture->store, .id = names[i], .due_ms = 5};
    }
    begin_puts(neighbours, MANY);
    other_ask(db, "COMMIT");
    for (int i = 0; i < MANY; i++) {
        eventually_joined(neighbours[i].thread);
        assert_int_equal(neighbours[i].result, 1);
    }
    assert_int_equal(count_commits(fixture) - before, 2);
    sqlite3_close(db);
}

/* The first thread waits for the lock alone, and the others together after it. */
static void threads_that_find_the_file_locked_are_told(void **state)
{
    static const char *const ids[] = {"a", "b", "c"};
    struct fixture *fixture = *state;
    struct tw_store_options options = {.busy_ms = 100};
    struct putter neighbours[3];
    sqlite3 *db = other_open(fixture);
    tw_store_close(fixture->store);
    assert_int_equal(tw_store_open(&fixture->store, fixture->path, &options, NULL, 0), 0);
    other_ask(db, "BEGIN IMMEDIATE");
    for (int i = 0; i < 3; i++) {
        neighbours[i] = (struct putter){.store = fixture->store, .id = ids[i]};
        begin_put(&neighbours[i]);
    }
    for (int i = 0; i < 3; i++) {
        eventually_joined(neighbours[i].thread);
        assert_int_equal(neighbours[i].result, TW_EBUSY);
    }
    other_ask(db, "COMMIT");
    assert_int_equal(put(fixture->store, "a", 1), 1);
    sqlite3_close(db);
}

/* ---- lazy ------------------------------------------------------------------------------------------------ */

static void a_lazy_store_flushes_when_asked(void **state)
{
    struct fixture *fixture = *state;
    struct tw_store_options options = {.flags = TW_STORE_OPEN_LAZY};
    tw_store_close(fixture->store);
    assert_int_equal(tw_store_open(&fixture->store, fixture->path, &options, NULL, 0), 0);
    assert_int_equal(put(fixture->store, "a", 1), 1);
    assert_int_equal(tw_store_flush(fixture->store), 0);
    assert_int_equal(put(fixture->store, "b", 1), 1);
    assert_int_equal(tw_store_flush(fixture->store), 0);
    store_reopen(fixture);
    assert_int_equal(tw_store_flush(fixture->store), 0); /* durable: nothing to write */
    assert_string_equal(scan(fixture->store, NULL), "a@1 b@1");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(every_thread_finds_its_own_result),
        TEST(the_tasks_of_a_thread_keep_its_order),
        TEST(a_put_that_fails_leaves_its_neighbours),
        TEST(a_put_that_rolls_the_transaction_back_leaves_its_neighbours),
        TEST(a_put_that_fails_half_way_leaves_nothing_but_its_neighbours),
        TEST(threads_that_come_together_share_a_commit),
        TEST(threads_that_find_the_file_locked_are_told),
        TEST(a_lazy_store_flushes_when_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
