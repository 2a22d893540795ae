/* SPDX-License-Identifier: MIT
 *
 * Our runner, while another process writes to its file. The two share a little memory, in which the other
 * process notes when each of its commits returned.
 */
#include "loads.h"
#include "raw.h"
#include "tools.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <tickwheel/store.h>
#include <unistd.h>

enum { COMMITS_MAX = 100000, PAUSE_US = 5000, COMMITS_PER_S = 5000, WARM_S = 1, TOO_LONG_S = 30 };

struct shared {
    atomic_bool begin, end;
    atomic_size_t commits, called;
    uint64_t committed_us[COMMITS_MAX], called_us[COMMITS_MAX];
};

pid_t start_other(struct run *run, void (*work)(struct run *, void *shared), void *shared, atomic_bool *begin)
{
    pid_t parent = getpid(), pid = fork();
    if (pid < 0)
        fail("no process");
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (getppid() == parent && !atomic_load(begin))
        usleep(PAUSE_US);
    work(run, shared);
    _exit(0);
}

void *share(size_t size)
{
    void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        fail("no memory");
    return shared;
}

void wait_for_other(pid_t other)
{
    int status = 1;
    if (waitpid(other, &status, 0) != other || status != 0)
        fail("the other process has failed");
}

static struct tw_store *start_warm(struct run *run, tw_store_handler_fn *handler, void *arg)
{
    struct tw_store *store = start_runner(run, QUEUE, handler, arg);
    sleep(WARM_S);
    return store;
}

/* ---- tasks that are due at once -------------------------------------------------------------------------- */

static enum tw_answer note_call(void *arg, struct tw_job *job)
{
    struct shared *shared = arg;
    char id[ID_SIZE + 1] = "";
    memcpy(id, job->id.data, job->id.size < ID_SIZE ? job->id.size : ID_SIZE);
    size_t i = strtoul(id + strlen("order:"), NULL, 10);
    if (i < COMMITS_MAX)
        shared->called_us[i] = wall_us();
    atomic_fetch_add(&shared->called, 1);
    return TW_ANSWER_DONE;
}

static void commit_due_tasks(struct run *run, void *arg)
{
    struct shared *shared = arg;
    struct raw *raw = raw_open(run->path);
    for (size_t i = 0; i < run->n; i++) {
        struct row row = {.due_ms = wall_us() / 1000};
        name_row(&row, i);
        raw_put(raw, &row, 1);
        shared->committed_us[i] = wall_us();
        atomic_fetch_add(&shared->commits, 1);
        usleep(PAUSE_US + (useconds_t)draw(run, PAUSE_US));
    }
    raw_close(raw);
}

/* From the return of COMMIT to the call of the handler. The handler may even be called before. */
void load_notice(struct run *run)
{
    struct shared *shared = share(sizeof *shared);
    if (run->n > COMMITS_MAX)
        fail("notice: expected at most %d tasks", COMMITS_MAX);
    pid_t other = start_other(run, commit_due_tasks, shared, &shared->begin);
    struct tw_store *store = start_warm(run, note_call, shared);
    atomic_store(&shared->begin, true);
    wait_for_other(other);
    for (int i = 0; i < TOO_LONG_S && atomic_load(&shared->called) < run->n; i++)
        sleep(1);
    if (atomic_load(&shared->called) != run->n)
        fail("notice: %zu of %zu tasks came", atomic_load(&shared->called), run->n);
    tickwheel_peer.close(store);
    for (size_t i = 0; i < run->n; i++) {
        uint64_t called_us = shared->called_us[i], committed_us = shared->committed_us[i];
        shared->called_us[i] = called_us > committed_us ? called_us - committed_us : 0;
    }
    print_spread("notice", shared->called_us, run->n);
    munmap(shared, sizeof *shared);
}

/* ---- commits that are none of ours ----------------------------------------------------------------------- */

/* Commits that wait for no disk: with a sync each, the disk would allow fewer. */
static void commit_unrelated(struct run *run, void *arg)
{
    struct shared *shared = arg;
    struct raw *raw = raw_open(run->path);
    raw_run(raw, "PRAGMA synchronous=OFF; CREATE TABLE other(id INTEGER PRIMARY KEY, n INTEGER);"
                 " INSERT INTO other VALUES (1, 0)");
    uint64_t next_ns = now_ns();
    while (!atomic_load(&shared->end)) {
        raw_run(raw, "UPDATE other SET n = n + 1");
        atomic_fetch_add(&shared->commits, 1);
        next_ns += 1000000000 / COMMITS_PER_S;
        while (now_ns() + 1000000000 / COMMITS_PER_S < next_ns)
            usleep(PAUSE_US / 10);
    }
    raw_close(raw);
}

static uint64_t cpu_us(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 +
           (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/* The time of the processor that this process uses meanwhile, for n seconds. */
void load_unrelated(struct run *run)
{
    struct shared *shared = share(sizeof *shared);
    pid_t other = start_other(run, commit_unrelated, shared, &shared->begin);
    struct tw_store *store = start_warm(run, note_call, shared);
    atomic_store(&shared->begin, true);
    sleep(WARM_S);
    size_t commits = atomic_load(&shared->commits);
    uint64_t begun_ns = now_ns(), begun_us = cpu_us();
    sleep((unsigned)run->n);
    double us = (double)(now_ns() - begun_ns) / 1e3;
    print("cpu_percent", 100 * (double)(cpu_us() - begun_us) / us);
    print("commits_per_s", (double)(atomic_load(&shared->commits) - commits) * 1e6 / us);
    atomic_store(&shared->end, true);
    wait_for_other(other);
    tickwheel_peer.close(store);
    munmap(shared, sizeof *shared);
}
