/* SPDX-License-Identifier: MIT
 *
 * Our runner while little is due: how late it calls, the memory that many pending tasks take, how soon it calls
 * after the file is opened, and how it waits. The files of these loads are made by `fill`.
 */
#include "loads.h"
#include "raw.h"
#include "tools.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <tickwheel/store.h>
#include <unistd.h>

enum { PROBES = 2000, PROBES_QUICK = 300, EVERY_MS = 10, AHEAD_MS = 2000, COMMITS = 300, SETTLE_S = 3 };
enum { QUICK_BELOW = 1000000, US_PER_MS = 1000, STEP_US = 1000, TOO_LONG_US = 60000000 };

struct tw_store *start_runner(struct run *run, const char *queue, tw_store_handler_fn *handler, void *arg)
{
    struct tw_store *store = tickwheel_peer.open(run->path);
    if (tw_store_handle(store, queue, 0, handler, arg) != 0 || tw_store_start(store, NULL) != 0)
        fail("%s: the store does not run", run->path);
    return store;
}

void end_runner(struct tw_store *store)
{
    if (tw_store_stop(store) != 0)
        fail("an answer could not be written");
    tickwheel_peer.close(store);
}

/* ---- lateness -------------------------------------------------------------------------------------------- */

struct lateness {
    uint64_t late_us[PROBES];
    atomic_size_t n;
};

static enum tw_answer note_lateness(void *arg, struct tw_job *job)
{
    struct lateness *lateness = arg;
    uint64_t now_us = wall_us(), due_us = job->due_ms * US_PER_MS;
    if (now_us < due_us)
        fail("late: a task ran %zu us early", (size_t)(due_us - now_us));
    size_t i = atomic_fetch_add(&lateness->n, 1);
    if (i >= PROBES)
        fail("late: more calls than tasks");
    lateness->late_us[i] = now_us - due_us;
    return TW_ANSWER_DONE;
}

/* Each call of the runner waits for a commit of its claim, so the target names one. The commits come at the
 * pace of the probes: without pauses a commit takes less time. */
static void time_commits(struct tw_store *store, struct run *run)
{
    struct row *rows = make_rows(run, run->n, COMMITS);
    uint64_t us[COMMITS];
    for (size_t i = 0; i < COMMITS; i++) {
        uint64_t begun_ns = now_ns();
        tickwheel_peer.put(store, &rows[i], 1);
        us[i] = (now_ns() - begun_ns) / 1000;
        usleep(EVERY_MS * US_PER_MS);
    }
    tickwheel_peer.cancel(store, rows, COMMITS);
    print_spread("commit", us, COMMITS);
    free(rows);
}

/* A task is due each ten milliseconds, give or take five, beside the n tasks of the file. */
void load_late(struct run *run)
{
    size_t probes = run->n < QUICK_BELOW ? PROBES_QUICK : PROBES;
    struct lateness *lateness = need(1, sizeof *lateness);
    struct tw_store *store = start_runner(run, QUEUE, note_lateness, lateness);
    struct row *rows = make_rows(run, run->n, probes);
    settle();
    time_commits(store, run);
    uint64_t from_ms = wall_us() / US_PER_MS + AHEAD_MS;
    for (size_t i = 0; i < probes; i++)
        rows[i].due_ms = from_ms + i * EVERY_MS + draw(run, EVERY_MS);
    for (size_t i = 0; i < probes; i += BATCH)
        tickwheel_peer.put(store, &rows[i], probes - i < BATCH ? probes - i : BATCH);
    usleep((useconds_t)(AHEAD_MS + probes * EVERY_MS) * US_PER_MS);
    sleep(1);
    end_runner(store);
    if (atomic_load(&lateness->n) != probes)
        fail("late: %zu of %zu tasks came", atomic_load(&lateness->n), probes);
    print_spread("late", lateness->late_us, probes);
    free(rows);
    free(lateness);
}

/* ---- many pending ---------------------------------------------------------------------------------------- */

static atomic_uint_fast64_t first_ns;

static enum tw_answer note_first(void *arg, struct tw_job *job)
{
    uint_fast64_t none = 0;
    (void)job;
    atomic_compare_exchange_strong((atomic_uint_fast64_t *)arg, &none, now_ns());
    return TW_ANSWER_DONE;
}

/* Another process puts a task that is due, so that nothing of SQLite is in the memory of this one. */
static void put_one_due(struct run *run)
{
    int status = 1;
    pid_t pid = fork();
    if (pid == 0) {
        struct raw *raw = raw_open(run->path);
        struct row row = {.due_ms = wall_us() / US_PER_MS};
        name_row(&row, run->n);
        raw_put(raw, &row, 1);
        raw_close(raw);
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        fail("pending: the task that is due could not be put");
}

/* Takes the file out of the system's memory, as after a restart of the machine. */
static void forget(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    settle();
    if (fd < 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0)
        fail("%s: posix_fadvise", path);
    close(fd);
}

static void open_and_wait(struct run *run, const char *first_call, const char *resident)
{
    atomic_store(&first_ns, 0);
    uint64_t begun_ns = now_ns();
    struct tw_store *store = start_runner(run, QUEUE, note_first, &first_ns);
    for (int i = 0; atomic_load(&first_ns) == 0; i++) {
        if (i * STEP_US > TOO_LONG_US)
            fail("pending: no handler was called within a minute");
        usleep(STEP_US);
    }
    print(first_call, (double)(atomic_load(&first_ns) - begun_ns) / 1e6);
    sleep(SETTLE_S);
    print_memory(resident, "VmRSS:");
    end_runner(store);
}

/* Once with the file in the system's memory, as after a restart of the program, and once without. */
void load_pending(struct run *run)
{
    put_one_due(run);
    open_and_wait(run, "first_call_ms", "resident");
    print_memory("resident_peak", "VmHWM:");
    put_one_due(run);
    forget(run->path);
    open_and_wait(run, "first_call_cold_ms", "resident_cold");
}

/* ---- nothing due ----------------------------------------------------------------------------------------- */

/* Runs until SIGTERM comes, while `run` counts the system calls. */
void load_idle(struct run *run)
{
    sigset_t ends;
    int got;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    struct tw_store *store = start_runner(run, QUEUE, note_first, &first_ns);
    sigwait(&ends, &got);
    end_runner(store);
}
