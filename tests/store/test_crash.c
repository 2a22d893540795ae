/* SPDX-License-Identifier: MIT
 *
 * Crashes. Changes of every kind are made until the power goes off, at any write of any call; then the file is
 * opened again and compared with the ledger. Each round is one crash of one of these kinds:
 *
 *     512, 4096   the power goes off, on a disk with sectors of this size
 *     fault       some writes or syncs fail; then the power goes off
 *     fault kill  the same, but then the process dies, and the disk keeps its power
 *     lazy        with TW_STORE_OPEN_LAZY: the file is as it was after some change since the last flush
 *
 * For the durable kinds the file has every change that was acknowledged, in the order in which they came. It
 * may have the change that was under way too, or a change that failed with an error of the disk.
 *
 *     test_store_crash [--seed N] [--crashes N]
 */
#include "clock.h"
#include "power.h"
#include "support.h"
#include "tests/support/extent.h"
#include "tests/support/scratch.h"
#include "ways.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STATES = 600, CHAIN = 12, FAULTS_APART = 60 };

struct kind {
    const char *name;
    unsigned sector;
    bool lazy, faults, killed;
};

static const struct kind kinds[] = {
    {"512", 512, false, false, false},      {"4096", 4096, false, false, false},
    {"fault", 4096, false, true, false},    {"fault kill", 4096, false, true, true},
    {"lazy, 512", 512, true, false, false}, {"lazy, 4096", 4096, true, false, false},
};

/* The states of the file: state[0] is on the disk for sure, and of the others any may be found after a crash.
 * `now` is the state that the program sees. */
struct world {
    char folder[SCRATCH], path[96];
    const struct kind *kind;
    struct tw_store *store;
    sqlite3 *db;
    struct ledger now, *state;
    unsigned states, at; /* at: which of them `now` is */
    struct rng rng;
    uint64_t seed, acknowledged, later; /* later: crashes after which a change was found that was not sure */
};

static void remove_files(const struct world *world)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        char path[sizeof world->path + 16];
        snprintf(path, sizeof path, "%s%s", world->path, ends[i]);
        unlink(path);
    }
}

static void fail_crash(const struct world *world, const char *wrong)
{
    fprintf(stderr, "test_store_crash: %s: %s (seed %" PRIu64 ")\n", world->kind->name, wrong, world->seed);
    exit(1);
}

static uint64_t draw(struct world *world, uint64_t limit)
{
    return rng_below(&world->rng, limit);
}

/* ---- the states ------------------------------------------------------------------------------------------ */

static void add_state(struct world *world, const struct ledger *ledger)
{
    if (world->states == STATES)
        fail_crash(world, "too many changes since the last flush");
    world->state[world->states++] = *ledger;
}

/* The program's state is on the disk. */
static void settle(struct world *world)
{
    world->state[0] = world->now;
    world->states = 1;
    world->at = 0;
}

/* The program sees this state, and it is not on the disk yet. */
static void come_to(struct world *world)
{
    add_state(world, &world->now);
    world->at = world->states - 1;
}

static bool is_same(const struct ledger *one, const struct ledger *two)
{
    return one->filed == two->filed && memcmp(one->entry, two->entry, sizeof one->entry) == 0;
}

/* A commit was acknowledged. If it changed nothing, SQLite has not synced. */
static void acknowledge(struct world *world, const struct ledger *before, bool synced)
{
    if (is_same(before, &world->now))
        return;
    world->acknowledged++;
    if (synced)
        settle(world);
    else
        come_to(world);
}

/* ---- steps ----------------------------------------------------------------------------------------------- */

/* Other connections are durable also beside a lazy store, so there most changes are its own calls. */
static void change_some(struct world *world)
{
    struct ledger_change changes[WAY_CHANGES];
    int results[WAY_CHANGES];
    enum way way = (enum way)draw(world, world->kind->lazy && draw(world, 4) > 0 ? WAY_APPLY_ON : WAYS);
    unsigned n = 1 + (unsigned)draw(world, WAY_CHANGES);
    bool synced = !world->kind->lazy || way >= WAY_APPLY_ON;
    struct ledger before = world->now;
    for (unsigned i = 0; i < n; i++)
        ledger_draw(&world->rng, UINT64_C(1700000000000), &changes[i]);
    unsigned made = way_go(way, world->store, world->db, changes, n, results, false);
    for (unsigned i = 0; i < made; i++) {
        ledger_make(&world->now, &changes[i], tw_store_now());
        if (!way_is_one(way)) {
            acknowledge(world, &before, synced);
            before = world->now;
        }
    }
    if (way_is_one(way))
        acknowledge(world, &before, synced);
    if (made == n)
        return;
    struct ledger may_be = world->now;
    for (unsigned i = made; i < (way_is_one(way) ? n : made + 1); i++)
        ledger_make(&may_be, &changes[i], tw_store_now());
    add_state(world, &may_be);
}

/* SQLite's answer to a checkpoint: whether it was hindered, and how many pages the log has and had moved. */
static int read_checkpoint(void *arg, int n, char **values, char **names)
{
    bool *whole = arg;
    (void)names;
    *whole = n == 3 && strcmp(values[0], "0") == 0 && strcmp(values[1], values[2]) == 0;
    return 0;
}

static void move_log(struct world *world)
{
    static const char *const sql[] = {"PRAGMA wal_checkpoint(PASSIVE)", "PRAGMA wal_checkpoint(FULL)",
                                      "PRAGMA wal_checkpoint(RESTART)", "PRAGMA wal_checkpoint(TRUNCATE)"};
    bool whole = false;
    int code = sqlite3_exec(world->db, sql[draw(world, 4)], read_checkpoint, &whole, NULL);
    if (code == SQLITE_OK && whole)
        settle(world);
}

static bool open_all(struct world *world)
{
    struct tw_store_options options = {.flags = world->kind->lazy ? TW_STORE_OPEN_LAZY : 0, .busy_ms = 100};
    char message[TW_STORE_MESSAGE_SIZE];
    world->db = NULL;
    world->store = NULL;
    int error = tw_store_open(&world->store, world->path, &options, message, sizeof message);
    if (error == 0 && sqlite3_open(world->path, &world->db) == SQLITE_OK)
        return true;
    if (!power_is_off())
        fail_crash(world, message);
    return false;
}

static void close_all(struct world *world)
{
    bool first = draw(world, 2) == 0;
    if (first)
        way_close(world->db);
    tw_store_close(world->store);
    if (!first)
        way_close(world->db);
    world->db = NULL;
    world->store = NULL;
}

/* The file must be in one of the states. The newest come first: an older state that fits has no more tasks. */
static void find_state(struct world *world, bool on_disk)
{
    static struct ledger found;
    const char *wrong = NULL;
    for (unsigned i = world->states; i-- > 0;) {
        found = world->state[i];
        wrong = ledger_compare(&found, world->store, 0);
        if (wrong == NULL) {
            world->later += i > 0;
            world->now = found;
            if (on_disk || i == 0)
                settle(world);
            else
                come_to(world);
            return;
        }
    }
    fail_crash(world, wrong);
}

/* If the last connection cannot move the log when it closes, the next one reads the log as after a crash. The
 * faults end before the file is opened: another test has them there (test_failures.c). */
static void reopen(struct world *world)
{
    close_all(world);
    power_fail_at(0, 0, false);
    if (open_all(world) && world->kind->faults)
        find_state(world, false); /* a commit whose sync has failed may be seen now, and lost still */
}

/* Faults come and go. While they last the program's state stays readable. */
static void draw_fault(struct world *world)
{
    static const int codes[] = {SQLITE_IOERR_WRITE, SQLITE_IOERR_FSYNC, SQLITE_FULL};
    power_fail_at(1 + (long)draw(world, FAULTS_APART), codes[draw(world, 3)], draw(world, 4) == 0);
}

static void look(struct world *world)
{
    power_fail_at(0, 0, false);
    const char *wrong = ledger_compare(&world->now, world->store, 0);
    if (wrong != NULL && !power_is_off())
        fail_crash(world, wrong);
    if (wrong == NULL) /* the revisions are known now */
        world->state[world->at] = world->now;
}

static void step(struct world *world)
{
    switch (draw(world, 16)) {
    case 0:
        reopen(world);
        break;
    case 1:
        move_log(world);
        break;
    case 2:
        if (tw_store_flush(world->store) == 0 && world->kind->lazy)
            settle(world);
        break;
    case 3:
    case 4:
        look(world);
        break;
    default:
        if (world->kind->faults && draw(world, 4) == 0)
            draw_fault(world);
        change_some(world);
    }
}

/* ---- a crash --------------------------------------------------------------------------------------------- */

/* The next crash may come while the file recovers from the last one. */
static void recover(struct world *world)
{
    for (bool open = false; !open;) {
        power_restore(&world->rng, world->kind->killed);
        if (draw(world, 4) == 0)
            power_cut_at(1 + (long)draw(world, 12));
        open = open_all(world);
        if (!open)
            close_all(world);
    }
    power_cut_at(0);
    if (power_is_off()) { /* in the last moment */
        close_all(world);
        recover(world);
        return;
    }
    find_state(world, true);
    if (strcmp(other_ask(world->db, "PRAGMA integrity_check"), "ok") != 0)
        fail_crash(world, "the file is damaged");
}

static void crash(struct world *world)
{
    power_cut_at(1 + (long)draw(world, draw(world, 2) == 0 ? 40 : 600));
    while (!power_is_off() && world->states < STATES - WAY_CHANGES) {
        if (world->store == NULL || world->db == NULL)
            open_all(world);
        else
            step(world);
    }
    power_cut_at(1); /* if it has not come: at the next write */
    close_all(world);
    recover(world);
}

/* A new file, which dies some times. */
static void run_chain(struct world *world, const struct kind *kind, uint64_t seed, uint64_t crashes)
{
    world->kind = kind;
    world->seed = seed;
    rng_init(&world->rng, seed);
    memset(&world->now, 0, sizeof world->now);
    settle(world);
    power_choose(kind->sector);
    for (uint64_t i = 0; i < crashes; i++)
        crash(world);
    close_all(world);
    power_restore(&world->rng, true);
    remove_files(world);
}

int main(int argc, char **argv)
{
    static struct world world;
    clock_stop(UINT64_C(1700000000000));
    uint64_t seed = 1, crashes = extent(6, 24, 500);
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[i + 1], NULL, 0);
        else if (strcmp(argv[i], "--crashes") == 0)
            crashes = strtoull(argv[i + 1], NULL, 0);
    }
    world.state = calloc(STATES, sizeof *world.state);
    if (world.state == NULL || scratch_folder(world.folder, "crash") != 0)
        return 2;
    snprintf(world.path, sizeof world.path, "%s/tasks.db", world.folder);
    power_install();
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        world.acknowledged = world.later = 0;
        for (uint64_t done = 0; done < crashes; done += CHAIN)
            run_chain(&world, &kinds[k], seed + done, crashes - done < CHAIN ? crashes - done : CHAIN);
        printf("%s: %" PRIu64 " crashes, %" PRIu64 " changes acknowledged; %" PRIu64
               " times the file had a change that was not sure\n",
               kinds[k].name, crashes, world.acknowledged, world.later);
    }
    printf("the seed was %" PRIu64 "\n", seed);
    free(world.state);
    return rmdir(world.folder) == 0 ? 0 : 2;
}
