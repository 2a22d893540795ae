/* SPDX-License-Identifier: MIT
 *
 * Two processes put, move and cancel tasks; one runs them, and one stands by. All four are killed again and
 * again, at random moments, and others take their places. At the end every task is accounted for (account.h).
 *
 *     test_store_crowd [--seed N] [--seconds N]
 */
#include "account.h"
#include "support.h"
#include "tests/support/eventually.h"
#include "tests/support/extent.h"
#include "tests/support/random.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { PUTTERS = 2, SEATS = 4, TRIES = 3, FAR_MS = 3600000 };

/* A place of a process: the first two put, the others run. */
struct seat {
    pid_t pid; /* 0: nobody */
    unsigned who;
    bool ready;       /* it has told something: a change, or that it stands by */
    uint64_t free_ms; /* when the next process takes the place */
};

struct world {
    struct fixture *fixture;
    struct account account;
    struct seat seats[SEATS];
    struct rng rng;
    int notes[2];              /* the pipe */
    unsigned next_who, runner; /* runner: the process that runs the tasks; 0: nobody */
    uint64_t seed, far_ms;
    int64_t killed_s; /* when the runner was killed; 0: somebody runs */
    unsigned heir;    /* stood by at that time; 0: nobody */
    uint64_t kills, runner_kills, taken_over;
};

static void end_all(struct world *world);

static void fail_crowd(struct world *world, const char *wrong)
{
    fprintf(stderr, "test_store_crowd: %s (seed %" PRIu64 ")\n", wrong, world->seed);
    end_all(world);
    exit(1);
}

/* ---- in a child ------------------------------------------------------------------------------------------ */

struct child {
    int to;
    unsigned who;
    uint64_t far_ms;
    struct rng rng;
    struct tw_store *store;
};

static void tell(const struct child *child, struct note note)
{
    note.who = child->who;
    if (write(child->to, &note, sizeof note) != sizeof note)
        _exit(5);
}

/* Makes a change, with a note before it and one after it. */
static int change(struct child *child, enum tw_store_verb verb, uint64_t id, uint64_t due_ms)
{
    struct tw_store_delayed task = {
        .queue = "q", .id = {&id, sizeof id}, .due_ms = due_ms, .tries = TRIES, .backoff_ms = 1};
    enum tw_cancel found = TW_CANCEL_GONE;
    tell(child, (struct note){.kind = NOTE_INTENT, .id = id, .verb = verb, .due_ms = due_ms});
    int result = verb == TW_STORE_VERB_PUT ? store_put(child->store, &task, 0)
                 : verb == TW_STORE_VERB_MOVE
                     ? store_move_at(child->store, (struct tw_store_name){"q", {&id, sizeof id}}, due_ms, 0)
                     : tw_store_cancel(child->store, (struct tw_store_name){"q", {&id, sizeof id}}, &found);
    if (result < 0 && result != TW_EGONE && result != TW_EDEAD) {
        fprintf(stderr, "test_store_crowd: process %u: %s\n", child->who, message(child->store));
        _exit(4);
    }
    result = verb == TW_STORE_VERB_CANCEL ? (int)found : result;
    tell(child, (struct note){.kind = NOTE_ACK, .id = id, .verb = verb, .result = result});
    return result;
}

static uint64_t soon(struct child *child)
{
    return tw_store_now() + rng_below(&child->rng, rng_below(&child->rng, 2) == 0 ? 1 : 30);
}

/* Puts tasks for now and for a far time, and changes some of them. */
static void put_tasks(struct child *child)
{
    for (uint64_t n = 1;; n++) {
        uint64_t id = (uint64_t)child->who << 32 | n, far_ms = child->far_ms + rng_below(&child->rng, 1000);
        bool far = rng_below(&child->rng, 3) == 0;
        change(child, TW_STORE_VERB_PUT, id, far ? far_ms : soon(child));
        uint64_t next = rng_below(&child->rng, far ? 4 : 12);
        if (!far && next < 3) /* it may be running */
            any_moment(rng_below(&child->rng, 5000));
        if (next == 0)
            change(child, TW_STORE_VERB_CANCEL, id, 0);
        else if (next == 1)
            change(child, TW_STORE_VERB_MOVE, id, soon(child));
        else if (next == 2)
            change(child, TW_STORE_VERB_PUT, id, soon(child));
        any_moment(rng_below(&child->rng, 2000));
    }
}

/* A number that follows from a call, so that the answers differ. */
static uint64_t mix(uint64_t id, unsigned attempt)
{
    struct rng rng;
    rng_init(&rng, id * 31 + attempt);
    return rng_next(&rng) >> 20;
}

static enum tw_answer handle(void *arg, struct tw_job *job)
{
    const struct child *child = arg;
    struct note note = {.kind = NOTE_BEGIN,
                        .attempt = job->attempt,
                        .tries = job->tries,
                        .revision = job->revision,
                        .due_ms = job->due_ms,
                        .at_ms = tw_store_now()};
    memcpy(&note.id, job->id.data, sizeof note.id);
    tell(child, note);
    uint64_t drawn = mix(note.id, job->attempt);
    any_moment(drawn % 6 == 0 ? 8000 : drawn % 700);
    note.kind = NOTE_END;
    note.answer = drawn / 700 % 20 == 0  ? TW_ANSWER_DEAD
                  : drawn / 700 % 20 < 4 ? TW_ANSWER_FAILED
                                         : TW_ANSWER_DONE;
    tell(child, note);
    return note.answer;
}

static void run_tasks(struct child *child)
{
    struct tw_store_run_options options = {.flags = TW_STORE_RUN_STANDBY, .workers = 2};
    struct tw_store_info stats = {0};
    if (tw_store_handle(child->store, "q", 0, handle, child) != 0 ||
        tw_store_start(child->store, &options) != 0)
        _exit(6);
    tell(child, (struct note){.kind = NOTE_READY});
    while (!stats.running) { /* or until it is killed */
        any_moment(500);
        tw_store_stats(child->store, &stats, sizeof stats);
    }
    tell(child, (struct note){.kind = NOTE_RUNS});
    for (;;)
        pause();
}

static void be_born(const struct world *world, const struct seat *seat, uint64_t seed)
{
    struct child child = {.to = world->notes[1], .who = seat->who, .far_ms = world->far_ms};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(world->notes[0]);
    rng_init(&child.rng, seed);
    char text[TW_STORE_MESSAGE_SIZE];
    if (tw_store_open(&child.store, world->fixture->path, &patient, text, sizeof text) != 0) {
        fprintf(stderr, "test_store_crowd: process %u: %s\n", seat->who, text);
        _exit(3);
    }
    if (seat - world->seats < PUTTERS)
        put_tasks(&child);
    run_tasks(&child);
}

/* ---- the notes ------------------------------------------------------------------------------------------- */

/* Whether somebody who stood by has to take over. Nobody sits down who might come first. */
static bool is_awaited(const struct world *world)
{
    return world->killed_s != 0 && world->heir != 0;
}

static void note_runner(struct world *world, const struct note *note)
{
    world->taken_over += is_awaited(world);
    world->killed_s = 0;
    world->runner = note->who;
}

static void read_notes(struct world *world)
{
    struct note note;
    while (read(world->notes[0], &note, sizeof note) == sizeof note) {
        account_add(&world->account, &note);
        if (note.kind == NOTE_RUNS)
            note_runner(world, &note);
        for (struct seat *seat = world->seats; seat < world->seats + SEATS; seat++)
            seat->ready |= seat->who == note.who;
    }
    if (is_awaited(world) && eventually_clock() - world->killed_s > EVENTUALLY_S)
        fail_crowd(world, "nobody has taken over");
}

static void wait_until(struct world *world, uint64_t until_ms)
{
    for (uint64_t now_ms = tw_store_now(); now_ms < until_ms; now_ms = tw_store_now()) {
        poll(&(struct pollfd){.fd = world->notes[0], .events = POLLIN}, 1, (int)(until_ms - now_ms));
        read_notes(world);
    }
}

/* ---- life and death -------------------------------------------------------------------------------------- */

static void sit_down(struct world *world, struct seat *seat)
{
    uint64_t seed = rng_next(&world->rng);
    seat->who = ++world->next_who;
    seat->ready = false;
    pid_t pid = fork();
    if (pid == 0)
        be_born(world, seat, seed);
    if (pid < 0)
        fail_crowd(world, "the system has no room for a process");
    seat->pid = pid;
}

/* The note comes first: nothing that follows from the death can come before it. */
static void kill_seat(struct world *world, struct seat *seat)
{
    read_notes(world);
    account_add(&world->account, &(struct note){.kind = NOTE_KILLED, .who = seat->who});
    const struct seat *other = seat == &world->seats[PUTTERS] ? seat + 1 : seat - 1;
    if (seat->who == world->runner) {
        world->runner = 0;
        world->runner_kills++;
        world->killed_s = eventually_clock();
        world->heir = other->pid != 0 && other->ready ? other->who : 0;
    }
    if (seat->who == world->heir)
        world->heir = 0;
    kill(seat->pid, SIGKILL);
    int status = eventually_exited(seat->pid);
    seat->pid = 0;
    uint64_t empty_ms = seat - world->seats < PUTTERS ? 10 : rng_below(&world->rng, 2) == 0 ? 3000 : 100;
    seat->free_ms = tw_store_now() + rng_below(&world->rng, empty_ms);
    world->kills++;
    if (!WIFSIGNALED(status)) {
        char wrong[80];
        snprintf(wrong, sizeof wrong, "process %u ended with status %#x", seat->who, (unsigned)status);
        fail_crowd(world, wrong);
    }
}

static void end_all(struct world *world)
{
    for (struct seat *seat = world->seats; seat < world->seats + SEATS; seat++) {
        if (seat->pid > 0) {
            kill(seat->pid, SIGKILL);
            eventually_exited(seat->pid);
        }
        seat->pid = 0;
    }
}

/* A runner lives ten times as long as a process that puts. Mostly one of the two is left to take over, and a
 * process that puts has begun to. */
static void kill_somebody(struct world *world)
{
    unsigned number = (unsigned)rng_below(&world->rng, 20);
    struct seat *seat = &world->seats[number < 18 ? number % PUTTERS : PUTTERS + number % 2];
    struct seat *other = &world->seats[PUTTERS + (number + 1) % 2];
    bool alone = number >= 18 && (other->pid == 0 || !other->ready) && rng_below(&world->rng, 8) > 0;
    bool early = number < 18 && !seat->ready && rng_below(&world->rng, 8) > 0;
    if (seat->pid != 0 && !alone && !early)
        kill_seat(world, seat);
    for (seat = world->seats; seat < world->seats + SEATS; seat++)
        if (seat->pid == 0 && seat->free_ms <= tw_store_now() &&
            (seat < world->seats + PUTTERS || !is_awaited(world)))
            sit_down(world, seat);
}

/* ---- the end --------------------------------------------------------------------------------------------- */

static bool is_taken_over(struct world *world)
{
    read_notes(world);
    return !is_awaited(world);
}

static bool is_dry(struct world *world, struct tw_store *store)
{
    struct tw_store_range near = {.to_ms = world->far_ms - 1, .count = 1};
    struct seen seen = {.text = ""};
    read_notes(world);
    int64_t found = store_scan(store, "q", &near, see, &seen);
    if (found < 0)
        fail_crowd(world, message(store));
    return found == 0;
}

/* Nobody puts any more: the runners call the rest. The parent opens the file after its last child is born. */
static struct tw_store *run_dry(struct world *world)
{
    struct tw_store *store;
    for (unsigned i = 0; i < PUTTERS; i++)
        if (world->seats[i].pid != 0)
            kill_seat(world, &world->seats[i]);
    EVENTUALLY_TOLD(is_taken_over(world), "nobody has taken over (seed %" PRIu64 ")", world->seed);
    for (struct seat *seat = world->seats + PUTTERS; seat < world->seats + SEATS; seat++)
        if (seat->pid == 0)
            sit_down(world, seat);
    if (tw_store_open(&store, world->fixture->path, &patient, NULL, 0) != 0)
        fail_crowd(world, "the file cannot be opened");
    EVENTUALLY_TOLD(is_dry(world, store), "tasks are due, and nobody calls them (seed %" PRIu64 ")",
                    world->seed);
    end_all(world);
    read_notes(world);
    return store;
}

static void check_all(struct world *world, struct tw_store *store)
{
    const char *wrong = account_check(&world->account, store, world->far_ms);
    if (wrong != NULL)
        fail_crowd(world, wrong);
}

static void live_on(struct world *world, uint64_t seconds)
{
    uint64_t end_ms = tw_store_now() + seconds * 1000;
    world->far_ms = tw_store_now() + FAR_MS;
    for (struct seat *seat = world->seats; seat < world->seats + SEATS; seat++)
        sit_down(world, seat);
    while (tw_store_now() < end_ms) {
        wait_until(world, tw_store_now() + 1 + rng_below(&world->rng, 25));
        kill_somebody(world);
    }
}

int main(int argc, char **argv)
{
    static struct world world = {.seed = 1};
    uint64_t seconds = extent(2, 3, 60);
    struct tw_store *store;
    void *state;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seed") == 0)
            world.seed = strtoull(argv[i + 1], NULL, 0);
        else if (strcmp(argv[i], "--seconds") == 0)
            seconds = strtoull(argv[i + 1], NULL, 0);
    }
    rng_init(&world.rng, world.seed);
    if (store_setup(&state) != 0 || pipe2(world.notes, O_CLOEXEC) != 0)
        return 2;
    world.fixture = state;
    tw_store_close(world.fixture->store); /* no child has a store of its parent */
    world.fixture->store = NULL;
    fcntl(world.notes[0], F_SETFL, O_NONBLOCK);
    live_on(&world, seconds);
    store = run_dry(&world);
    check_all(&world, store);
    tw_store_close(store);
    const struct account *account = &world.account;
    printf("%" PRIu64 " kills, %" PRIu64 " of them of the runner, %" PRIu64 " taken over\n%" PRIu64
           " tasks, %" PRIu64 " cancelled, %" PRIu64 " unsure; %" PRIu64 " calls, %" PRIu64
           " of them again; the seed was %" PRIu64 "\n",
           world.kills, world.runner_kills, world.taken_over, account->tasks, account->cancelled,
           account->unsure, account->calls, account->again, world.seed);
    account_fini(&world.account);
    return store_teardown(&state) == 0 ? 0 : 2;
}
