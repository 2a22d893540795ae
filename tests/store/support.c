/* SPDX-License-Identifier: MIT */
#include "support.h"

#include <src/store/internal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tests/support/eventually.h>
#include <tests/support/scratch.h>
#include <unistd.h>

const struct tw_store_options patient = {.busy_ms = 1000 * EVENTUALLY_S};

static void open_store(struct fixture *fixture)
{
    char text[TW_STORE_MESSAGE_SIZE] = "";
    int error = tw_store_open(&fixture->store, fixture->path, &patient, text, sizeof text);
    if (error != 0)
        fail_msg("%s: %s (%s)", fixture->path, text, tw_store_strerror(error));
}

int store_setup(void **state)
{
    static char scratch[SCRATCH];
    struct fixture *fixture = calloc(1, sizeof *fixture);
    if (fixture == NULL || setenv("CMOCKA_TEST_ABORT", "1", 1) != 0)
        return -1;
    if (scratch[0] == '\0' && scratch_folder(scratch, "store") != 0)
        return -1;
    snprintf(fixture->folder, sizeof fixture->folder, "%s/test", scratch);
    if (mkdir(fixture->folder, 0700) != 0)
        return -1;
    snprintf(fixture->path, sizeof fixture->path, "%.200s/tasks.db", fixture->folder);
    open_store(fixture);
    *state = fixture;
    return 0;
}

void choose_tests(char **arguments)
{
    for (char **pattern = arguments + 1; *pattern != NULL; pattern++)
        if (**pattern == '-')
            cmocka_set_skip_filter(*pattern + 1);
        else
            cmocka_set_test_filter(*pattern);
}

void store_remove(const struct fixture *fixture)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal", "-tickwheel"};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        char path[PATH_SIZE + 16];
        snprintf(path, sizeof path, "%s%s", fixture->path, ends[i]);
        unlink(path);
    }
}

int store_teardown(void **state)
{
    struct fixture *fixture = *state;
    tw_store_close(fixture->store);
    store_remove(fixture);
    int error = rmdir(fixture->folder);
    free(fixture);
    return error;
}

void store_reopen(struct fixture *fixture)
{
    tw_store_close(fixture->store);
    open_store(fixture);
}

void store_forget(struct tw_store *store)
{
    struct tw__store_db *dbs[] = {&store->writer.db, &store->reader->db};
    store->reader->set = false;
    for (int i = 0; i < 2; i++) {
        int error;
        tw__store_db_fini(dbs[i]);
        assert_non_null(tw__store_db_statement(dbs[i], TW__STORE_ROLLBACK, &error));
        sqlite3_db_release_memory(dbs[i]->db);
    }
}

/* ---- another connection ---------------------------------------------------------------------------------- */

sqlite3 *other_open(const struct fixture *fixture)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(fixture->path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 1000 * EVENTUALLY_S);
    return db;
}

const char *other_ask(sqlite3 *db, const char *sql)
{
    static char answer[4096];
    answer[0] = '\0';
    for (const char *rest = sql; *rest != '\0';) {
        sqlite3_stmt *statement;
        if (sqlite3_prepare_v2(db, rest, -1, &statement, &rest) != SQLITE_OK)
            fail_msg("%s: %s", sql, sqlite3_errmsg(db));
        int code = sqlite3_step(statement);
        if (code == SQLITE_ROW)
            snprintf(answer, sizeof answer, "%s", (const char *)sqlite3_column_text(statement, 0));
        while (code == SQLITE_ROW)
            code = sqlite3_step(statement);
        if (code != SQLITE_DONE && code != SQLITE_MISUSE)
            fail_msg("%s: %s", sql, sqlite3_errmsg(db));
        sqlite3_finalize(statement);
    }
    return answer;
}

const char *other_refuses(sqlite3 *db, const char *sql)
{
    static char answer[512];
    char *text = NULL;
    assert_int_not_equal(sqlite3_exec(db, sql, NULL, NULL, &text), SQLITE_OK);
    snprintf(answer, sizeof answer, "%s", text);
    sqlite3_free(text);
    return answer;
}

/* ---- short forms ----------------------------------------------------------------------------------------- */

struct tw_store_name all_of(const char *queue)
{
    return (struct tw_store_name){.queue = queue};
}

int put_if(struct tw_store *store, const char *id, uint64_t due_ms, unsigned conditions)
{
    struct tw_store_delayed task = {.queue = "q", .id = tw_text(id), .due_ms = due_ms};
    return store_put(store, &task, conditions);
}

int put(struct tw_store *store, const char *id, uint64_t due_ms)
{
    return put_if(store, id, due_ms, 0);
}

enum tw_cancel cancel(struct tw_store *store, const char *id)
{
    enum tw_cancel found = (enum tw_cancel)99;
    assert_int_equal(tw_store_cancel(store, tw_store_named("q", id), &found), 0);
    return found;
}

static void *run_put(void *arg)
{
    struct putter *putter = arg;
    putter->result = put(putter->store, putter->id, putter->due_ms);
    return NULL;
}

void begin_put(struct putter *putter)
{
    assert_int_equal(pthread_create(&putter->thread, NULL, run_put, putter), 0);
}

/* The end of the list of requests, or NULL if no thread leads. It is `first` while only the leader has a
 * request. */
static struct tw__store_request **end_of_requests(struct tw__store_writer *writer)
{
    pthread_mutex_lock(&writer->lock);
    struct tw__store_request **end = writer->led ? writer->last : NULL;
    pthread_mutex_unlock(&writer->lock);
    return end;
}

void begin_puts(struct putter *putters, int n)
{
    struct tw__store_writer *writer = &putters->store->writer;
    struct tw__store_request **end = NULL;
    for (int i = 0; i < n; i++) {
        begin_put(&putters[i]);
        EVENTUALLY(i == 0 ? end_of_requests(writer) == &writer->first : end_of_requests(writer) != end);
        end = end_of_requests(writer);
    }
}

void see(void *arg, const struct tw_store_task *task)
{
    struct seen *seen = arg;
    size_t used = strlen(seen->text);
    snprintf(seen->text + used, sizeof seen->text - used, "%s%.*s@%llu%s", used > 0 ? " " : "",
             (int)task->id.size, (const char *)task->id.data, (unsigned long long)task->due_ms,
             task->state == TW_STATE_DEAD     ? "!"
             : task->state == TW_STATE_LEASED ? "*"
                                              : "");
    seen->last = *task;
    snprintf(seen->payload, sizeof seen->payload, "%.*s", (int)task->payload.size,
             task->payload.data != NULL ? (const char *)task->payload.data : "");
    snprintf(seen->error, sizeof seen->error, "%s", task->error != NULL ? task->error : "");
}

const char *scan(struct tw_store *store, const struct tw_store_range *range)
{
    static struct seen seen;
    seen = (struct seen){.text = ""};
    int64_t count = store_scan(store, "q", range, see, &seen);
    if (count < 0)
        fail_msg("%s", message(store));
    return seen.text;
}

const char *message(struct tw_store *store)
{
    static char text[TW_STORE_MESSAGE_SIZE];
    tw_store_message(store, text, sizeof text);
    return text;
}
