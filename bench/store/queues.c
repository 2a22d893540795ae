/* SPDX-License-Identifier: MIT
 *
 * Our runner, and a file of n queues, as a program has them that gives each of its users a queue. Twice: first
 * each queue has a task that is due already. Then each has one that is due in a month, and another process puts
 * single tasks.
 */
#include "loads.h"
#include "raw.h"
#include "tools.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <tickwheel/store.h>
#include <unistd.h>

enum { PROBES = 300, PAUSE_US = 2000, STEP_US = 100, SETTLE_S = 2, MS_US = 1000 };
static const char PROBE[] = "probe";
static const uint64_t TOO_LONG_NS = UINT64_C(600000000000), MONTH_MS = UINT64_C(30) * 24 * 3600 * 1000;

struct seen {
    atomic_size_t calls, probes;
    atomic_uint_fast64_t first_ns, probe_ns; /* when the first call came, and the last probe */
};

/* With the process that puts. */
struct shared {
    struct seen seen;
    atomic_bool begin;
    uint64_t us[PROBES];
};

static enum tw_answer note_job(void *arg, struct tw_job *job)
{
    struct seen *seen = arg;
    uint_fast64_t none = 0, at_ns = now_ns();
    if (job->id.size == strlen(PROBE) && memcmp(job->id.data, PROBE, job->id.size) == 0) {
        atomic_store(&seen->probe_ns, at_ns);
        atomic_fetch_add(&seen->probes, 1);
        return TW_ANSWER_DONE;
    }
    atomic_compare_exchange_strong(&seen->first_ns, &none, at_ns);
    atomic_fetch_add(&seen->calls, 1);
    return TW_ANSWER_DONE;
}

/* Makes a file of n queues with a task each. */
static void fill_queues(struct run *run, uint64_t due_ms)
{
    char sql[320];
    remove_store(run->path);
    struct raw *raw = raw_open(run->path);
    raw_run(raw, "PRAGMA synchronous=OFF; PRAGMA cache_size=-262144");
    snprintf(
        sql, sizeof sql,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %zu)"
        " INSERT INTO tw_task(revision, queue, id, due_ms, next_ms, place_ms) SELECT i, 'user:' || i, x'78', "
        "%" PRIu64 ", %" PRIu64 ", %" PRIu64 " FROM n;"
        "UPDATE tw_meta SET revision = %zu",
        run->n, due_ms, due_ms, due_ms, run->n);
    raw_run(raw, sql);
    raw_run(raw, "PRAGMA wal_checkpoint(TRUNCATE)");
    raw_close(raw);
    settle();
}

static void wait_for(atomic_size_t *count, size_t n)
{
    uint64_t begun_ns = now_ns();
    while (atomic_load(count) < n) {
        if (now_ns() - begun_ns > TOO_LONG_NS)
            fail("queues: %zu of %zu calls came", atomic_load(count), n);
        usleep(STEP_US);
    }
}

/* A task is due in each queue when the file is opened. */
static void run_due(struct run *run)
{
    struct seen seen = {0};
    fill_queues(run, wall_us() / MS_US - 1);
    uint64_t begun_ns = now_ns();
    struct tw_store *store = start_runner(run, NULL, note_job, &seen);
    wait_for(&seen.calls, run->n);
    uint64_t all_ns = now_ns() - begun_ns;
    print("first_call_ms", (double)(atomic_load(&seen.first_ns) - begun_ns) / 1e6);
    print("calls_per_s", (double)run->n * 1e9 / (double)all_ns);
    sleep(SETTLE_S);
    print_memory("resident", "VmRSS:");
    print_memory("resident_peak", "VmHWM:");
    end_runner(store);
}

/* From the call of tw_store_put() in another process to the call of the handler. */
static void put_probes(struct run *run, void *arg)
{
    struct shared *shared = arg;
    struct tw_store *store = tickwheel_peer.open(run->path);
    for (size_t i = 0; i < PROBES; i++) {
        char queue[32];
        snprintf(queue, sizeof queue, "user:%" PRIu64, draw(run, run->n) + 1);
        struct tw_store_delayed task = {.queue = queue, .id = tw_text(PROBE), .due_ms = wall_us() / MS_US};
        uint64_t begun_ns = now_ns();
        if (tw_store_put(store, &task, 0, NULL) != 0)
            fail("queues: a put has failed");
        wait_for(&shared->seen.probes, i + 1);
        shared->us[i] = (atomic_load(&shared->seen.probe_ns) - begun_ns) / 1000;
        usleep(PAUSE_US);
    }
    tickwheel_peer.close(store);
}

static void run_pending(struct run *run)
{
    struct shared *shared = share(sizeof *shared);
    fill_queues(run, wall_us() / MS_US + MONTH_MS);
    pid_t other = start_other(run, put_probes, shared, &shared->begin);
    struct tw_store *store = start_runner(run, NULL, note_job, &shared->seen);
    sleep(SETTLE_S);
    atomic_store(&shared->begin, true);
    wait_for_other(other);
    print_spread("put_to_call", shared->us, PROBES);
    end_runner(store);
    munmap(shared, sizeof *shared);
}

void load_queues(struct run *run)
{
    run_due(run);
    run_pending(run);
}
