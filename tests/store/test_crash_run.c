/* SPDX-License-Identifier: MIT
 *
 * The power goes off while tasks run. Each life of the store puts, moves and cancels tasks and runs them, until
 * the power goes off at any write, or writes fail and the process dies. The next life goes on with the bytes
 * that the disk has kept. At the end every task is accounted for by the rules of account.h. One of them, A3,
 * tells whether an attempt was on the disk before its handler was called: if not, its number would come twice.
 *
 *     test_store_crash_run [--seed N] [--lives N]
 */
#include "account.h"
#include "clock.h"
#include "power.h"
#include "support.h"
#include "tests/support/eventually.h"
#include "tests/support/extent.h"
#include "tests/support/random.h"
#include "tests/support/scratch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHANGES = 60, WRITES = 700, TRIES = 3, FAR_MS = 3600000 };

static const struct kind {
    const char *name;
    unsigned sector;
    bool faults, killed;
} kinds[] = {{"512", 512, false, false},
             {"4096", 4096, false, false},
             {"fault", 4096, true, false},
             {"fault kill", 4096, true, true}};

struct world {
    char folder[SCRATCH], path[96];
    const struct kind *kind;
    struct tw_store *store;
    pthread_mutex_t lock; /* of the account */
    struct account account;
    unsigned life;
    struct rng rng;
    uint64_t seed, ids, far_ms;
    uint64_t closes; /* of a store with jobs under way, while nothing can be written */
};

static void remove_files(const struct world *world)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal", "-tickwheel"};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        char path[sizeof world->path + 16];
        snprintf(path, sizeof path, "%s%s", world->path, ends[i]);
        unlink(path);
    }
}

static void fail_life(const struct world *world, const char *wrong)
{
    fprintf(stderr, "test_store_crash_run: %s, life %u: %s (seed %" PRIu64 ")\n", world->kind->name,
            world->life, wrong, world->seed);
    exit(1);
}

static uint64_t draw(struct world *world, uint64_t limit)
{
    return rng_below(&world->rng, limit);
}

static void tell(struct world *world, struct note note)
{
    note.who = world->life;
    pthread_mutex_lock(&world->lock);
    account_add(&world->account, &note);
    pthread_mutex_unlock(&world->lock);
}

/* ---- a life ---------------------------------------------------------------------------------------------- */

/* The answers differ from call to call, and are the same for each run of the test. */
static enum tw_answer answer(void *arg, struct tw_job *job)
{
    struct world *world = arg;
    struct note note = {.kind = NOTE_BEGIN,
                        .attempt = job->attempt,
                        .tries = job->tries,
                        .revision = job->revision,
                        .due_ms = job->due_ms,
                        .at_ms = tw_store_now()};
    struct rng rng;
    memcpy(&note.id, job->id.data, sizeof note.id);
    tell(world, note);
    rng_init(&rng, note.id * 31 + job->attempt);
    any_moment(rng_below(&rng, 300));
    uint64_t drawn = rng_below(&rng, 20);
    note.kind = NOTE_END;
    note.answer = drawn == 0 ? TW_ANSWER_DEAD : drawn < 5 ? TW_ANSWER_FAILED : TW_ANSWER_DONE;
    tell(world, note);
    return note.answer;
}

/* A change that fails may be made or not: it has no acknowledgement, and its task is not changed again. */
static bool change(struct world *world, enum tw_store_verb verb, uint64_t id, uint64_t due_ms)
{
    struct tw_store_delayed task = {
        .queue = "q", .id = {&id, sizeof id}, .due_ms = due_ms, .tries = TRIES, .backoff_ms = 1};
    enum tw_cancel found = TW_CANCEL_GONE;
    tell(world, (struct note){.kind = NOTE_INTENT, .id = id, .verb = verb, .due_ms = due_ms});
    int result = verb == TW_STORE_VERB_PUT ? store_put(world->store, &task, 0)
                 : verb == TW_STORE_VERB_MOVE
                     ? store_move_at(world->store, (struct tw_store_name){"q", {&id, sizeof id}}, due_ms, 0)
                     : tw_store_cancel(world->store, (struct tw_store_name){"q", {&id, sizeof id}}, &found);
    if (result < 0 && result != TW_EGONE && result != TW_EDEAD)
        return false;
    result = verb == TW_STORE_VERB_CANCEL ? (int)found : result;
    tell(world, (struct note){.kind = NOTE_ACK, .id = id, .verb = verb, .result = result});
    return true;
}

static void change_some(struct world *world)
{
    uint64_t id = ++world->ids, soon_ms = tw_store_now() + draw(world, 4);
    bool far = draw(world, 4) == 0;
    if (!change(world, TW_STORE_VERB_PUT, id, far ? world->far_ms + draw(world, 9) : soon_ms))
        return;
    uint64_t next = draw(world, far ? 4 : 16);
    if (next == 0)
        change(world, TW_STORE_VERB_CANCEL, id, 0);
    else if (next == 1)
        change(world, TW_STORE_VERB_MOVE, id, soon_ms + 1);
    else if (next == 2)
        change(world, TW_STORE_VERB_PUT, id, soon_ms + 2);
    if (draw(world, 4) == 0)
        any_moment(draw(world, 1500));
}

static void draw_fault(struct world *world)
{
    static const int codes[] = {SQLITE_IOERR_WRITE, SQLITE_IOERR_FSYNC, SQLITE_FULL};
    power_fail_at(1 + (long)draw(world, 100), codes[draw(world, 3)], draw(world, 3) == 0);
}

/* Moves the log into the file, beside the runner. It may fail. */
static void move_log(const struct world *world)
{
    sqlite3 *db;
    if (sqlite3_open(world->path, &db) == SQLITE_OK)
        sqlite3_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
    sqlite3_close(db);
}

/* Opens the file and runs it. Returns false if the power goes off meanwhile. */
static bool begin(struct world *world)
{
    struct tw_store_run_options options = {.workers = 2};
    char text[TW_STORE_MESSAGE_SIZE] = "";
    world->store = NULL;
    int error = tw_store_open(&world->store, world->path, NULL, text, sizeof text);
    if (error == 0)
        error = tw_store_handle(world->store, "q", 0, answer, world);
    if (error == 0 && (error = tw_store_start(world->store, &options)) != 0)
        tw_store_message(world->store, text, sizeof text);
    if (error != 0 && !power_is_off())
        fail_life(world, text);
    return error == 0;
}

static void *close_it(void *store)
{
    tw_store_close(store);
    return NULL;
}

/* After an error the store waits for a second. Its end must not wait, for the clock stands still meanwhile. */
static void close_store(struct world *world)
{
    struct tw_store_info stats = {0};
    pthread_t thread;
    if (world->store != NULL)
        tw_store_stats(world->store, &stats, sizeof stats);
    clock_halt();
    if (pthread_create(&thread, NULL, close_it, world->store) != 0)
        fail_life(world, "the system has no room for a thread");
    eventually_joined(thread);
    clock_go();
    world->closes += stats.jobs > 0;
}

static void live(struct world *world)
{
    world->life++;
    power_cut_at(1 + (long)draw(world, WRITES));
    if (begin(world)) {
        for (int i = 0; i < CHANGES && !power_is_off(); i++) {
            if (world->kind->faults && draw(world, 20) == 0)
                draw_fault(world);
            if (draw(world, CHANGES) == 0)
                move_log(world);
            change_some(world);
        }
    }
    power_cut_at(1);
    close_store(world);
    tell(world, (struct note){.kind = NOTE_KILLED});
    power_restore(&world->rng, world->kind->killed);
}

/* ---- the end --------------------------------------------------------------------------------------------- */

static bool is_dry(struct world *world)
{
    struct tw_store_range near = {.to_ms = world->far_ms - 1, .count = 1};
    struct seen seen = {.text = ""};
    return store_scan(world->store, "q", &near, see, &seen) <= 0;
}

/* The last life has no end: it runs until nothing is due. */
static void check_all(struct world *world)
{
    world->life++;
    begin(world);
    EVENTUALLY_TOLD(is_dry(world), "%s: tasks are due, and nobody calls them (seed %" PRIu64 ")",
                    world->kind->name, world->seed);
    tw_store_stop(world->store);
    const char *wrong = account_check(&world->account, world->store, world->far_ms);
    if (wrong != NULL)
        fail_life(world, wrong);
    tw_store_close(world->store);
    power_restore(&world->rng, true);
}

static void run_kind(struct world *world, const struct kind *kind, uint64_t lives)
{
    const struct account *account = &world->account;
    world->kind = kind;
    world->life = 0;
    world->ids = 0;
    world->far_ms = tw_store_now() + FAR_MS;
    world->account = (struct account){0};
    rng_init(&world->rng, world->seed);
    power_choose(kind->sector);
    for (uint64_t i = 0; i < lives; i++)
        live(world);
    check_all(world);
    printf("%s: %" PRIu64 " crashes; %" PRIu64 " tasks, %" PRIu64 " cancelled, %" PRIu64 " unsure; %" PRIu64
           " calls, %" PRIu64 " of them again\n",
           kind->name, lives, account->tasks, account->cancelled, account->unsure, account->calls,
           account->again);
    account_fini(&world->account);
    remove_files(world);
}

int main(int argc, char **argv)
{
    static struct world world = {.seed = 1, .lock = PTHREAD_MUTEX_INITIALIZER};
    uint64_t lives = extent(6, 12, 240);
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seed") == 0)
            world.seed = strtoull(argv[i + 1], NULL, 0);
        else if (strcmp(argv[i], "--lives") == 0)
            lives = strtoull(argv[i + 1], NULL, 0);
    }
    if (scratch_folder(world.folder, "crash") != 0)
        return 2;
    snprintf(world.path, sizeof world.path, "%s/tasks.db", world.folder);
    power_install();
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        run_kind(&world, &kinds[k], lives);
    printf("%" PRIu64 " stores were closed with jobs under way; the seed was %" PRIu64 "\n", world.closes,
           world.seed);
    if (world.closes == 0)
        return 1;
    return rmdir(world.folder) == 0 ? 0 : 2;
}
