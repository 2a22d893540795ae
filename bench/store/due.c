/* SPDX-License-Identifier: MIT
 *
 * Many tasks are due together: each is claimed, handled and deleted. The handler does nothing.
 *
 *   - tickwheel: the runner, with its defaults. The time runs from the due time to the end of tw_store_stop(),
 *     when all answers are on the disk.
 *   - raw: SQLite alone, in batches of 256. One commit claims a batch before it is handled, another deletes it.
 *   - raw_joined: the same with one commit for both. It deletes a batch and claims the next one.
 *   - polled: a program that asks each 100 ms for due tasks, and handles each in a transaction that deletes it.
 *     It claims nothing, so a crash takes the transaction back.
 */
#include "loads.h"
#include "raw.h"
#include "tools.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <tickwheel/store.h>
#include <unistd.h>

enum { CLAIMS = 256, POLL_US = 100000, PUTS_PER_MS = 20, SPARE_MS = 2000, TOO_LONG_S = 300 };

/* Handlers run on several threads, so one is atomic. */
static void count_one(atomic_size_t *handled, const void *bytes)
{
    if (bytes == NULL)
        fail("due: a task has no payload");
    atomic_fetch_add_explicit(handled, 1, memory_order_relaxed);
}

static void put_due(struct raw *raw, struct run *run, uint64_t due_ms)
{
    struct row *rows = make_rows(run, 0, run->n);
    for (size_t i = 0; i < run->n; i++)
        rows[i].due_ms = due_ms;
    for (size_t i = 0; i < run->n; i += BATCH)
        raw_put(raw, &rows[i], run->n - i < BATCH ? run->n - i : BATCH);
    free(rows);
}

static void print_rate(const struct run *run, uint64_t us, size_t handled, struct raw *raw)
{
    int64_t left = raw_ask(raw, COUNT);
    if (handled != run->n || left != 0)
        fail("due: %zu of %zu tasks were handled, and %lld are left", handled, run->n, (long long)left);
    print("per_s", (double)run->n * 1e6 / (double)us);
}

/* ---- SQLite alone ---------------------------------------------------------------------------------------- */

struct claimed {
    sqlite3_int64 revision[CLAIMS];
    size_t n;
};

/* Looks for due tasks, at most `limit`, and handles them if `handled` is not NULL. */
static void look_up(struct raw *raw, struct claimed *claimed, size_t limit, atomic_size_t *handled)
{
    sqlite3_stmt *due = raw->statement[DUE];
    sqlite3_bind_int64(due, 1, (sqlite3_int64)(wall_us() / 1000));
    sqlite3_bind_int64(due, 2, (sqlite3_int64)limit);
    for (claimed->n = 0; sqlite3_step(due) == SQLITE_ROW; claimed->n++) {
        claimed->revision[claimed->n] = sqlite3_column_int64(due, 0);
        count_one(handled, sqlite3_column_blob(due, 2));
    }
    sqlite3_reset(due);
}

static void change_each(struct raw *raw, enum raw_statement which, const struct claimed *claimed)
{
    for (size_t i = 0; i < claimed->n; i++) {
        sqlite3_bind_int64(raw->statement[which], 1, claimed->revision[i]);
        raw_change(raw, which);
    }
}

/* Deletes the batch that was handled, and claims the next one, in one commit or in two. */
static void run_batches(struct raw *raw, bool joined, atomic_size_t *handled)
{
    struct claimed claimed = {.n = 0};
    do {
        raw_do(raw, BEGIN);
        change_each(raw, DONE, &claimed);
        if (!joined && claimed.n > 0) {
            raw_do(raw, COMMIT);
            raw_do(raw, BEGIN);
        }
        look_up(raw, &claimed, CLAIMS, handled);
        change_each(raw, CLAIM, &claimed);
        raw_do(raw, COMMIT);
    } while (claimed.n > 0);
}

static void run_polled(struct raw *raw, size_t n, atomic_size_t *handled)
{
    struct claimed one;
    while (atomic_load(handled) < n) {
        usleep(POLL_US);
        do {
            raw_do(raw, BEGIN);
            look_up(raw, &one, 1, handled);
            change_each(raw, DONE, &one);
            raw_do(raw, COMMIT);
        } while (one.n > 0);
    }
}

static void run_raw(struct run *run)
{
    struct raw *raw = raw_open(run->path);
    atomic_size_t handled = 0;
    put_due(raw, run, wall_us() / 1000);
    settle();
    uint64_t begun_us = wall_us();
    if (strcmp(run->side, "polled") == 0)
        run_polled(raw, run->n, &handled);
    else
        run_batches(raw, strcmp(run->side, "raw_joined") == 0, &handled);
    print_rate(run, wall_us() - begun_us, atomic_load(&handled), raw);
    raw_close(raw);
}

/* ---- our runner ------------------------------------------------------------------------------------------ */

struct progress {
    pthread_mutex_t lock;
    pthread_cond_t all;
    atomic_size_t handled;
    size_t n;
};

static enum tw_answer handle(void *arg, struct tw_job *job)
{
    struct progress *progress = arg;
    count_one(&progress->handled, job->payload.data);
    if (atomic_load_explicit(&progress->handled, memory_order_relaxed) == progress->n) {
        pthread_mutex_lock(&progress->lock);
        pthread_cond_signal(&progress->all);
        pthread_mutex_unlock(&progress->lock);
    }
    return TW_ANSWER_DONE;
}

static void wait_for_all(struct progress *progress)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += TOO_LONG_S;
    pthread_mutex_lock(&progress->lock);
    while (atomic_load(&progress->handled) < progress->n)
        if (pthread_cond_timedwait(&progress->all, &progress->lock, &until) != 0)
            fail("due: %zu of %zu tasks came in %d s", atomic_load(&progress->handled), progress->n,
                 TOO_LONG_S);
    pthread_mutex_unlock(&progress->lock);
}

static void run_tickwheel(struct run *run)
{
    struct progress progress = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, run->n};
    uint64_t due_ms = wall_us() / 1000 + SPARE_MS + run->n / PUTS_PER_MS;
    struct raw *raw = raw_open(run->path);
    struct tw_store *store = tickwheel_peer.open(run->path);
    put_due(raw, run, due_ms);
    settle();
    if (tw_store_handle(store, QUEUE, 0, handle, &progress) != 0 || tw_store_start(store, NULL) != 0)
        fail("due: the store does not run");
    if (wall_us() / 1000 >= due_ms)
        fail("due: filing %zu tasks took too long", run->n);
    wait_for_all(&progress);
    if (tw_store_stop(store) != 0)
        fail("due: an answer could not be written");
    print_rate(run, wall_us() - due_ms * 1000, atomic_load(&progress.handled), raw);
    tickwheel_peer.close(store);
    raw_close(raw);
}

void load_due(struct run *run)
{
    static const char *const sides[] = {"raw", "raw_joined", "polled"};
    if (strcmp(run->side, "tickwheel") == 0) {
        run_tickwheel(run);
        return;
    }
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        if (strcmp(run->side, sides[i]) == 0) {
            run_raw(run);
            return;
        }
    }
    fail("'%s': expected tickwheel, raw, raw_joined or polled", run->side);
}
