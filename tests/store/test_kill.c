/* SPDX-License-Identifier: MIT
 *
 * A process that is killed loses no change that was acknowledged. A child makes random changes, and writes a
 * byte to a pipe after each step that has returned. It is killed at a random moment. The parent draws the same
 * changes from the same seed, and counts the bytes: so it knows every change that was acknowledged and the one
 * that was under way, and compares the whole file. The next child goes on with that file.
 *
 *     test_store_kill [--seed N] [--kills N]
 */
#include "clock.h"
#include "support.h"
#include "tests/support/eventually.h"
#include "tests/support/extent.h"
#include "ways.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

/* A child lives until it has acknowledged some steps, fewer than FIRST, and a while longer. */
enum { FIRST = 4, LIFE_US = 25000 };

/* A step of a child: some changes in one of the ways, or moving the log, or opening the file again. */
struct step {
    enum { CHANGE, MOVE_LOG, REOPEN } kind;
    enum way way;
    unsigned n;
    struct ledger_change changes[WAY_CHANGES];
};

struct world {
    struct fixture *fixture;
    struct ledger ledger;
    struct rng rng;
    struct tw_store_options options;
    uint64_t seed, kills, steps, later;
};

static void fail_kill(const struct world *world, const char *wrong)
{
    fprintf(stderr, "test_store_kill: %s (seed %" PRIu64 ", kill %" PRIu64 ")\n", wrong, world->seed,
            world->kills);
    exit(1);
}

static void draw_step(struct rng *rng, struct step *step)
{
    uint64_t kind = rng_below(rng, 30);
    step->kind = kind == 0 ? MOVE_LOG : kind == 1 ? REOPEN : CHANGE;
    step->way = (enum way)rng_below(rng, WAYS);
    step->n = 1 + (unsigned)rng_below(rng, WAY_CHANGES);
    for (unsigned i = 0; i < step->n; i++)
        ledger_draw(rng, UINT64_C(1700000000000), &step->changes[i]);
}

/* ---- the child ------------------------------------------------------------------------------------------- */

static struct tw_store *open_or_end(const struct world *world, sqlite3 **db)
{
    struct tw_store *store;
    if (tw_store_open(&store, world->fixture->path, &world->options, NULL, 0) != 0 ||
        sqlite3_open(world->fixture->path, db) != SQLITE_OK)
        _exit(3);
    return store;
}

static void live(const struct world *world, int to)
{
    struct rng rng = world->rng;
    struct step step;
    sqlite3 *db;
    struct tw_store *store = open_or_end(world, &db);
    for (;;) {
        int results[WAY_CHANGES];
        draw_step(&rng, &step);
        if (step.kind == MOVE_LOG) {
            sqlite3_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
        } else if (step.kind == REOPEN) {
            way_close(db);
            tw_store_close(store);
            store = open_or_end(world, &db);
        } else if (way_go(step.way, store, db, step.changes, step.n, results, false) != step.n) {
            _exit(4);
        }
        if (write(to, "x", 1) != 1)
            _exit(5);
    }
}

/* ---- the parent ------------------------------------------------------------------------------------------ */

/* Whether the child has written so many bytes, or has ended. */
static bool has_written(int from, int n)
{
    int bytes = 0;
    struct pollfd on = {.fd = from, .events = POLLIN};
    ioctl(from, FIONREAD, &bytes);
    return bytes >= n || (poll(&on, 1, 0) == 1 && (on.revents & POLLHUP) != 0);
}

/* Lets a child live for a while. Returns how many of its steps it has acknowledged. */
static uint64_t raise_and_kill(struct world *world)
{
    int ends[2];
    char bytes[4096];
    uint64_t count = 0;
    if (pipe(ends) != 0)
        exit(2);
    pid_t child = fork();
    if (child < 0)
        fail_kill(world, "the system has no room for a process");
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[0]);
        live(world, ends[1]);
    }
    close(ends[1]);
    int first = (int)rng_below(&world->rng, FIRST);
    EVENTUALLY_TOLD(has_written(ends[0], first), "process %ld is silent", (long)child);
    any_moment(rng_below(&world->rng, LIFE_US));
    kill(child, SIGKILL);
    int status = eventually_exited(child);
    for (ssize_t n; (n = read(ends[0], bytes, sizeof bytes)) > 0;)
        count += (uint64_t)n;
    close(ends[0]);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        fail_kill(world, "a call of the child failed");
    return count;
}

/* Whether the file is as this ledger. If it is, the ledger is the world's. */
static bool adopt(struct world *world, struct tw_store *store, const struct ledger *ledger, const char **wrong)
{
    static struct ledger copy;
    copy = *ledger;
    *wrong = ledger_compare(&copy, store, 0);
    if (*wrong == NULL)
        world->ledger = copy;
    return *wrong == NULL;
}

/* The step under way may be in the file too; of single calls the first ones. */
static void compare_file(struct world *world, struct tw_store *store, const struct step *under_way)
{
    static struct ledger may_be;
    const char *wrong, *other;
    may_be = world->ledger;
    if (adopt(world, store, &may_be, &wrong))
        return;
    world->later++;
    for (unsigned i = 0; i < under_way->n && under_way->kind == CHANGE; i++) {
        ledger_make(&may_be, &under_way->changes[i], tw_store_now());
        bool whole = !way_is_one(under_way->way) || i + 1 == under_way->n;
        if (whole && adopt(world, store, &may_be, &other))
            return;
    }
    fail_kill(world, wrong);
}

static void kill_one(struct world *world)
{
    struct step step;
    char message[TW_STORE_MESSAGE_SIZE];
    struct tw_store *store;
    world->options.flags =
        rng_below(&world->rng, 3) == 0 ? TW_STORE_OPEN_LAZY : 0; /* a kill takes nothing from it */
    struct rng rng = world->rng;
    uint64_t count = raise_and_kill(world);
    for (uint64_t i = 0; i <= count; i++) {
        draw_step(&rng, &step);
        for (unsigned j = 0; j < step.n && step.kind == CHANGE && i < count; j++)
            ledger_make(&world->ledger, &step.changes[j], tw_store_now());
    }
    if (tw_store_open(&store, world->fixture->path, NULL, message, sizeof message) != 0)
        fail_kill(world, message);
    compare_file(world, store, &step);
    tw_store_close(store);
    world->kills++;
    world->steps += count;
}

int main(int argc, char **argv)
{
    static struct world world;
    clock_stop(UINT64_C(1700000000000));
    uint64_t kills = extent(20, 60, 400);
    void *state;
    world.seed = 1;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seed") == 0)
            world.seed = strtoull(argv[i + 1], NULL, 0);
        else if (strcmp(argv[i], "--kills") == 0)
            kills = strtoull(argv[i + 1], NULL, 0);
    }
    rng_init(&world.rng, world.seed);
    if (store_setup(&state) != 0)
        return 2;
    world.fixture = state;
    tw_store_close(world.fixture->store);
    world.fixture->store = NULL;
    while (world.kills < kills)
        kill_one(&world);
    printf("%" PRIu64 " kills, %" PRIu64 " steps acknowledged; %" PRIu64
           " times the step under way was in the file too; the seed was %" PRIu64 "\n",
           world.kills, world.steps, world.later, world.seed);
    return store_teardown(&state) == 0 ? 0 : 2;
}
