/* SPDX-License-Identifier: MIT
 *
 * Filing and changing tasks. The tasks are made before the time runs. A load begins when nothing is on its way
 * to the disk.
 */
#include "loads.h"
#include "tools.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 64, CHANGES = 50 }; /* CHANGES: of so many tasks one is changed */

static const struct peer *peer_of(const struct run *run)
{
    static const struct peer *const peers[] = {&tickwheel_peer, &raw_peer, &beanstalkd_f0_peer,
                                               &beanstalkd_f50_peer};
    for (size_t i = 0; i < sizeof peers / sizeof *peers; i++)
        if (strcmp(peers[i]->name, run->side) == 0)
            return peers[i];
    fail("'%s': expected tickwheel, raw, beanstalkd_f0 or beanstalkd_f50", run->side);
}

typedef void change_fn(void *self, const struct row *rows, size_t n);

/* Changes the tasks in batches, and prints how many a second. */
static void change_all(const char *metric, change_fn *change, void *self, const struct row *rows, size_t n,
                       size_t batch)
{
    settle();
    uint64_t begun_ns = now_ns();
    for (size_t i = 0; i < n; i += batch)
        change(self, &rows[i], n - i < batch ? n - i : batch);
    print(metric, (double)n * 1e9 / (double)(now_ns() - begun_ns));
}

static void put_in_batches(struct run *run, size_t batch)
{
    const struct peer *peer = peer_of(run);
    struct row *rows = make_rows(run, 0, run->n);
    void *self = peer->open(run->path);
    change_all("per_s", peer->put, self, rows, run->n, batch);
    peer->close(self);
    free(rows);
}

void load_put_one(struct run *run)
{
    put_in_batches(run, 1);
}

void load_put_batch(struct run *run)
{
    put_in_batches(run, BATCH);
}

/* ---- 64 threads ------------------------------------------------------------------------------------------ */

struct thread {
    pthread_t id;
    void *self;
    const struct row *rows;
    size_t n;
    pthread_barrier_t *start;
};

/* Each thread takes each 64th task, so that 64 tasks of a commit are about the 64 of a raw transaction. */
static void *put_share(void *arg)
{
    struct thread *thread = arg;
    pthread_barrier_wait(thread->start);
    for (size_t i = 0; i < thread->n; i++)
        tickwheel_peer.put(thread->self, &thread->rows[i * THREADS], 1);
    return NULL;
}

static void put_from_threads(struct run *run)
{
    struct thread threads[THREADS];
    pthread_barrier_t start;
    size_t share = run->n / THREADS;
    struct row *rows = make_rows(run, 0, run->n);
    void *self = tickwheel_peer.open(run->path);
    pthread_barrier_init(&start, NULL, THREADS + 1);
    for (size_t i = 0; i < THREADS; i++) {
        threads[i] = (struct thread){.self = self, .rows = &rows[i], .n = share, .start = &start};
        if (pthread_create(&threads[i].id, NULL, put_share, &threads[i]) != 0)
            fail("no thread");
    }
    settle();
    pthread_barrier_wait(&start);
    uint64_t begun_ns = now_ns();
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i].id, NULL);
    print("per_s", (double)(share * THREADS) * 1e9 / (double)(now_ns() - begun_ns));
    pthread_barrier_destroy(&start);
    tickwheel_peer.close(self);
    free(rows);
}

/* A put of ours from each of 64 threads is durable when it returns. SQLite alone has one writer: transactions
 * of 64 rows. */
void load_put_64(struct run *run)
{
    if (strcmp(run->side, tickwheel_peer.name) == 0)
        put_from_threads(run);
    else
        put_in_batches(run, THREADS);
}

/* ---- changes --------------------------------------------------------------------------------------------- */

/* Gives the rows the names of different tasks of the file. */
static void choose(struct run *run, struct row *rows, size_t n)
{
    uint32_t *numbers = need(run->n, sizeof *numbers);
    for (size_t i = 0; i < run->n; i++)
        numbers[i] = (uint32_t)i;
    for (size_t i = 0; i < n; i++) {
        size_t j = i + draw(run, run->n - i);
        uint32_t number = numbers[j];
        numbers[j] = numbers[i];
        name_row(&rows[i], number);
    }
    free(numbers);
}

/* Afterwards the file has its n tasks again. */
void load_change(struct run *run)
{
    const struct peer *peer = peer_of(run);
    size_t n = run->n / CHANGES > BATCH ? run->n / CHANGES : BATCH;
    struct row *rows = make_rows(run, 0, n);
    if (run->n < n || peer->move == NULL)
        fail("change: expected %d tasks at least, on tickwheel or raw", BATCH);
    void *self = peer->open(run->path);
    choose(run, rows, n);
    change_all("move_per_s", peer->move, self, rows, n, BATCH);
    choose(run, rows, n);
    change_all("cancel_per_s", peer->cancel, self, rows, n, BATCH);
    for (size_t i = 0; i < n; i += BATCH)
        peer->put(self, &rows[i], n - i < BATCH ? n - i : BATCH);
    peer->close(self);
    free(rows);
}
