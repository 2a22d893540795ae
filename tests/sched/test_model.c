/* SPDX-License-Identifier: MIT
 *
 * The scheduler against a reference that is a plain array: random operations on a virtual clock, from outside
 * and from inside callbacks. For every task the reference knows when the task must run. The test checks each
 * call against the reference, and after every step that no task is left that should have run. With several
 * shards, several threads make the operations, one after the other, so that every shard has tasks. With some
 * seeds the scheduler often comes many ticks late.
 *
 *     test_sched_model [--seed N] [--operations N] [--seconds N]
 */
#include "outcome.h"
#include "tests/support/extent.h"
#include "tests/support/random.h"
#include "tests/support/turns.h"

#include <src/sched/check.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS = 4, PLAIN = 60, KEYS = 40, ENTRIES = PLAIN + KEYS, KEY_MOST = 40 };

/* A task as the reference knows it. If the number of the entry is PLAIN or more, the task has the key of that
 * number. */
struct entry {
    bool alive;   /* a call is to come */
    bool running; /* its callback is under way */
    bool dead;    /* running: the task was cancelled during the callback */
    bool fresh;   /* running: the key was set anew during the callback, and not cancelled since */
    uint64_t id, due_ns, tick;
    uint64_t period_ns, left;
    enum tw_missed missed;
    void *value;
    uint64_t filed;  /* when the task was added, counted in adds; 0: it was moved or filed again since */
    unsigned thread; /* that added the task */
};

struct world {
    struct tw_sched *sched;
    uint64_t tick_ns, base_ns;
    uint32_t shards;
    unsigned threads;
    struct entry entry[ENTRIES];
    struct rng rng;
    uint64_t seed, fired, operations, last_tick;
    uint64_t added, again, cancelled, handed, moved;
    uint64_t last_filed[THREADS]; /* of the tasks of `last_tick` that a thread added, the latest to start */
    bool often_late;              /* with this seed; all repeating tasks are TW_MISSED_BURST then */
    bool late;                    /* the scheduler is many ticks behind the clock */
    bool serving;                 /* a callback is under way */
};

static struct world world;
static _Thread_local unsigned self; /* the number of this thread */

static void fail(const char *what)
{
    fprintf(stderr, "test_sched_model: %s (seed %" PRIu64 ", operation %" PRIu64 ")\n", what, world.seed,
            world.operations);
    exit(1);
}

static void expect(bool condition, const char *what)
{
    if (!condition)
        fail(what);
}

/* ---- the reference's idea of time ------------------------------------------------------------------------ */

static uint64_t tick_of(uint64_t now_ns)
{
    return (now_ns - world.base_ns) / world.tick_ns;
}

static uint64_t tick_due(uint64_t due_ns)
{
    return due_ns > world.base_ns ? (due_ns - world.base_ns + world.tick_ns - 1) / world.tick_ns : 0;
}

/* The tick that the scheduler has come to. Inside a callback it is the tick of the callback's task, however
 * late the callback is. */
static uint64_t tick_reached(void)
{
    return world.serving ? world.last_tick : tick_of(tw_sched_now(world.sched));
}

/* A task that is filed now runs on the tick of its due time, or on the next tick if that tick has begun. */
static uint64_t tick_for(uint64_t due_ns)
{
    uint64_t reached = tick_reached(), tick = tick_due(due_ns);
    return tick > reached ? tick : reached + 1;
}

static void plan(struct entry *entry, uint64_t due_ns)
{
    entry->alive = true;
    entry->dead = false;
    entry->due_ns = due_ns;
    entry->tick = tick_for(due_ns);
    entry->filed = 0;
}

/* A new task without a key. */
static void plan_new(struct entry *entry)
{
    entry->value = entry;
    entry->filed = ++world.added;
    entry->thread = world.shards > 1 ? self : 0;
}

/* The keys have 16, 23, 24, 25 or 40 bytes, so some lie beside their tasks and some do not. */
static struct tw_bytes key_of(const struct entry *entry)
{
    static const size_t sizes[] = {16, 23, 24, 25, KEY_MOST};
    static char key[KEY_MOST];
    memset(key, 0, sizeof key);
    snprintf(key, sizeof key, "key\xff%d", (int)(entry - world.entry));
    return (struct tw_bytes){key, sizes[(entry - world.entry) % 5]};
}

static bool is_key_of(const struct entry *entry, struct tw_bytes key)
{
    struct tw_bytes own = key_of(entry);
    return key.size == own.size && memcmp(key.data, own.data, own.size) == 0;
}

static bool keyed(const struct entry *entry)
{
    return entry - world.entry >= PLAIN;
}

/* ---- operations ------------------------------------------------------------------------------------------ */

static void on_task(struct tw_sched *sched, const struct tw_task *task);

static uint64_t random_delay(void)
{
    static const uint64_t scales[] = {3, 50, 2000, 100000, 10000000};
    return rng_below(&world.rng, scales[rng_below(&world.rng, 5)] * world.tick_ns);
}

static void add_once(struct entry *entry)
{
    uint64_t delay = random_delay(), due_ns = tw_sched_now(world.sched) + delay;
    bool at = rng_below(&world.rng, 2);
    int error = at ? tw_sched_add_at(world.sched, due_ns, on_task, entry, &entry->id)
                   : tw_sched_add_in(world.sched, delay, on_task, entry, &entry->id);
    expect(error == 0, "an add failed");
    entry->period_ns = entry->left = 0;
    plan(entry, due_ns);
    plan_new(entry);
}

static struct tw_every random_every(void)
{
    static const enum tw_missed policies[] = {TW_MISSED_BURST, TW_MISSED_SKIP, TW_MISSED_COALESCE};
    struct tw_every every = {.first_ns = random_delay(),
                             .period_ns = world.tick_ns + random_delay(),
                             .times = rng_below(&world.rng, 6),
                             .missed = policies[world.often_late ? 0 : rng_below(&world.rng, 3)]};
    return every;
}

static void plan_every(struct entry *entry, const struct tw_every *every)
{
    entry->period_ns = every->period_ns;
    entry->missed = every->missed;
    entry->left = every->times == 0 ? TW_FOREVER : every->times - 1;
    plan(entry, tw_sched_now(world.sched) + every->first_ns);
}

static void add_repeating(struct entry *entry)
{
    struct tw_every every = random_every();
    expect(tw_sched_add_every(world.sched, &every, on_task, entry, &entry->id) == 0, "an add failed");
    plan_every(entry, &every);
    plan_new(entry);
}

/* Sets a key, new or not. A key that is set during its callback has a call to come, too. */
static void set_key(struct entry *entry)
{
    void *old = &world, *value = entry;
    bool was = entry->alive || entry->running;
    struct tw_every every = random_every();
    bool repeats = rng_below(&world.rng, 3) == 0;
    uint64_t delay = random_delay();
    int error = repeats ? tw_sched_key_put_every(world.sched, key_of(entry), &every, on_task, value, &old)
                        : tw_sched_key_put_in(world.sched, key_of(entry), delay, on_task, value, &old);
    expect(error == 0, "a set failed");
    expect(old == (entry->alive ? entry->value : NULL), "a set gave the wrong old value");
    entry->value = value;
    entry->fresh = entry->running;
    world.added += !was;
    world.moved += was;
    if (repeats) {
        plan_every(entry, &every);
        return;
    }
    entry->period_ns = entry->left = 0;
    plan(entry, tw_sched_now(world.sched) + delay);
}

static void cancel(struct entry *entry)
{
    enum tw_cancel found = keyed(entry) ? tw_sched_key_cancel(world.sched, key_of(entry), NULL)
                                        : tw_sched_cancel(world.sched, entry->id);
    enum tw_cancel expected = entry->running && !entry->fresh ? TW_CANCEL_AT_WORK
                              : entry->alive                  ? TW_CANCEL_CANCELLED
                                                              : TW_CANCEL_GONE;
    expect(found == expected, "a cancel gave the wrong answer");
    if (entry->alive) {
        world.cancelled++;
        world.again += entry->running;
    }
    entry->alive = false;
    entry->dead = entry->running;
    entry->fresh = false;
}

/* Moves a pending task, or the task of the callback that runs now. */
static void move(struct entry *entry)
{
    uint64_t delay = random_delay(), due_ns = tw_sched_now(world.sched) + delay;
    int error;
    if (keyed(entry))
        error = rng_below(&world.rng, 2) ? tw_sched_key_move_at(world.sched, key_of(entry), due_ns)
                                         : tw_sched_key_move_in(world.sched, key_of(entry), delay);
    else
        error = rng_below(&world.rng, 2) ? tw_sched_move_at(world.sched, entry->id, due_ns)
                                         : tw_sched_move_in(world.sched, entry->id, delay);
    bool can = entry->alive || (entry->running && !entry->dead);
    expect(error == (can ? 0 : TW_EGONE), "a move gave the wrong answer");
    if (can) {
        plan(entry, due_ns);
        world.moved++;
    }
}

static void look(const struct entry *entry)
{
    struct tw_task seen;
    if (!keyed(entry))
        return;
    int error = tw_sched_key_get(world.sched, key_of(entry), &seen, sizeof seen);
    expect(error == (entry->alive ? 0 : TW_EGONE), "a get gave the wrong answer");
    if (error == 0 && !entry->running)
        expect(seen.due_ns == entry->due_ns && seen.arg == entry->value && seen.key.data == NULL &&
                   seen.key.size == 0 && seen.period_ns == entry->period_ns &&
                   seen.left == (entry->period_ns > 0 ? entry->left : 0),
               "a get gave the wrong task");
}

/* ---- the forecast, call by call -------------------------------------------------------------------------- */

enum { STEPS_MAX = 40, TICKS_MAX = 500 };

static void foresee(const struct entry *entry, uint64_t step_ns, uint32_t steps, uint64_t *counts)
{
    uint64_t now_ns = tw_sched_now(world.sched), due_ns = entry->due_ns, left = entry->left;
    if (entry->period_ns > 0 && entry->missed != TW_MISSED_BURST)
        while (due_ns + entry->period_ns <= now_ns)
            due_ns += entry->period_ns;
    for (; due_ns <= now_ns + steps * step_ns; due_ns += entry->period_ns) {
        counts[due_ns <= now_ns ? 0 : (due_ns - now_ns - 1) / step_ns]++;
        if (entry->period_ns == 0 || left-- == 0)
            return;
    }
}

/* The scheduler reads a forecast of few steps from the wheel. With many steps the repeating tasks are more
 * work, so it reads the forecast from the tasks. */
static void check_forecast(void)
{
    uint64_t found[STEPS_MAX], counts[STEPS_MAX] = {0};
    uint32_t steps = 1 + (uint32_t)rng_below(&world.rng, STEPS_MAX);
    uint64_t step_ns = 1 + rng_below(&world.rng, TICKS_MAX * world.tick_ns / steps);
    expect(tw_sched_forecast(world.sched, step_ns, steps, found) == 0, "a forecast failed");
    for (int i = 0; i < ENTRIES; i++)
        if (world.entry[i].alive)
            foresee(&world.entry[i], step_ns, steps, counts);
    expect(memcmp(found, counts, steps * sizeof *counts) == 0, "a forecast is wrong");
}

static void act_on(struct entry *entry)
{
    uint64_t choice = rng_below(&world.rng, 10);
    if (choice == 0)
        look(entry);
    else if (choice <= 2)
        cancel(entry);
    else if (choice <= 4)
        move(entry);
    else if (keyed(entry))
        set_key(entry);
    else if (!entry->alive && !entry->running)
        rng_below(&world.rng, 3) == 0 ? add_repeating(entry) : add_once(entry);
}

/* ---- calls ----------------------------------------------------------------------------------------------- */

static void check_call(const struct entry *entry, const struct tw_task *task)
{
    uint64_t now_ns = tw_sched_now(world.sched);
    expect(entry->alive && !entry->running, "a task ran that should not");
    expect(now_ns >= task->due_ns, "a task ran early");
    expect(task->due_ns == entry->due_ns && task->late_ns == now_ns - task->due_ns, "due or lateness is wrong");
    expect(world.late ? tick_of(now_ns) >= entry->tick : tick_of(now_ns) == entry->tick,
           "a task ran on the wrong tick");
    expect(task->left == entry->left && task->period_ns == entry->period_ns && task->missed_periods == 0,
           "calls left are wrong");
    expect(keyed(entry) ? is_key_of(entry, task->key) : task->key.data == NULL && task->id == entry->id,
           "the task is another one");
}

/* Tasks of different ticks start in the order of the ticks. Of one tick, the tasks that one thread added start
 * in the order in which it added them; with one shard this holds for all threads together. */
static void check_order(const struct entry *entry)
{
    expect(entry->tick >= world.last_tick, "a task ran before an earlier one");
    if (entry->tick > world.last_tick)
        memset(world.last_filed, 0, sizeof world.last_filed);
    world.last_tick = entry->tick;
    if (entry->filed == 0)
        return;
    expect(entry->filed > world.last_filed[entry->thread], "a task ran before one that was added before it");
    world.last_filed[entry->thread] = entry->filed;
}

static void on_task(struct tw_sched *sched, const struct tw_task *task)
{
    struct entry *entry = task->arg;
    expect(sched == world.sched, "another scheduler");
    check_call(entry, task);
    check_order(entry);
    world.serving = true;
    world.fired++;
    entry->filed = 0;
    entry->id = task->id;
    entry->running = true;
    entry->dead = false;
    bool repeats = entry->left > 0;
    if (repeats) { /* the next call, unless something below changes it */
        if (entry->left != TW_FOREVER)
            entry->left--;
        entry->due_ns += entry->period_ns;
        entry->tick = tick_due(entry->due_ns);
        if (entry->tick < tick_reached())
            entry->tick = tick_reached(); /* at once */
    }
    entry->alive = repeats;
    if (rng_below(&world.rng, 8) == 0)
        move(entry);
    for (uint64_t n = rng_below(&world.rng, 3); n > 0; n--)
        act_on(&world.entry[rng_below(&world.rng, ENTRIES)]);
    if (!world.late && rng_below(&world.rng, 200) == 0)
        check_forecast();
    entry->running = entry->fresh = world.serving = false;
    world.again += entry->alive;
}

/* ---- steps ----------------------------------------------------------------------------------------------- */

static void check_nothing_is_late(void)
{
    uint64_t now = tick_of(tw_sched_now(world.sched)), next_ns = tw_sched_next_bound(world.sched), alive = 0;
    for (int i = 0; i < ENTRIES; i++) {
        const struct entry *entry = &world.entry[i];
        if (!entry->alive)
            continue;
        alive++;
        expect(entry->tick > now, "a task did not run");
        expect(next_ns <= world.base_ns + entry->tick * world.tick_ns, "next is after a task");
    }
    expect(tw_sched_count(world.sched) == alive, "pending is wrong");
    expect(alive > 0 || next_ns == TW_NEVER, "next is not never");
}

static void check_counts(void)
{
    struct tw_sched_info stats;
    tw_sched_stats(world.sched, &stats, sizeof stats);
    expect(stats.fired == world.fired && stats.added == world.added, "fired or added is wrong");
    expect(stats.cancelled == world.cancelled && stats.handed == world.handed, "cancelled or handed is wrong");
    expect(stats.moved == world.moved && stats.again == world.again, "moved or again is wrong");
    expect(stats.added + stats.again == stats.fired + stats.cancelled + stats.handed + stats.pending, "S3");
    expect(stats.running == 0, "something is running");
}

static void on_visit(void *arg, const struct tw_task *task)
{
    struct entry *entry = task->arg;
    (void)arg;
    expect(entry->alive && task->due_ns == entry->due_ns &&
               task->left == (entry->period_ns > 0 ? entry->left : 0),
           "the wrong task was handed over");
    entry->alive = false;
    world.handed++;
}

/* The library's own check; with TW_DEBUG 2 the library has made it after every change, too. */
static void check_invariants(void)
{
    const char *broken = tw__sched_check(world.sched);
    if (broken != NULL)
        fail(broken);
}

/* The clock goes on, and the scheduler notices only then. */
static void come_late(void)
{
    uint64_t now_ns = tw_sched_now(world.sched) + rng_below(&world.rng, 40) * world.tick_ns;
    world.late = true;
    atomic_store(&world.sched->virtual_ns, now_ns);
    expect(tw_sched_advance(world.sched, now_ns) == 0, "the clock does not move");
    world.late = false;
    check_nothing_is_late();
}

static void step(void)
{
    uint64_t choice = rng_below(&world.rng, 1000);
    if (choice < 10) {
        check_forecast();
    } else if (choice < 900) {
        act_on(&world.entry[rng_below(&world.rng, ENTRIES)]);
    } else if (choice < 940 && world.often_late) {
        come_late();
    } else if (choice < 997) {
        uint64_t delay = random_delay();
        expect(tw_sched_advance(world.sched, tw_sched_now(world.sched) + delay) == 0,
               "the clock does not move");
        check_nothing_is_late();
    } else if (choice < 999) {
        check_counts();
    } else {
        uint64_t pending = tw_sched_count(world.sched);
        expect(try_drain(world.sched, on_visit, NULL) == (int64_t)pending, "drain is not complete");
        check_nothing_is_late();
    }
    if (TW_DEBUG > 1 || world.operations % 8 == 0)
        check_invariants();
    world.operations++;
}

enum { ROUND = TW_DEBUG > 1 ? 2000 : 20000, STRETCH = 50 };

/* A thread makes some operations, and passes the turn to another thread. */
static unsigned make_operations(unsigned thread)
{
    self = thread;
    for (uint64_t n = rng_below(&world.rng, STRETCH); n > 0 && world.operations < ROUND; n--)
        step();
    return world.operations < ROUND ? (unsigned)rng_below(&world.rng, world.threads) : TURNS_MAX;
}

static void begin(uint64_t seed)
{
    static const uint64_t ticks[] = {1000, 1000000, 999999, 7777777, 1000000000};
    struct tw_geometry g;
    struct tw_sched_options options = {.clock = TW_SCHED_CLOCK_VIRTUAL};
    memset(&world, 0, sizeof world);
    world.seed = seed;
    rng_init(&world.rng, seed);
    options.tick_ns = world.tick_ns = ticks[rng_below(&world.rng, 5)];
    options.start_ns = world.base_ns = rng_below(&world.rng, 2) ? 0 : rng_below(&world.rng, 1ull << 60);
    options.shards = world.shards = rng_below(&world.rng, 3) == 0 ? 1 + (uint32_t)rng_below(&world.rng, 8) : 1;
    world.threads = world.shards > 1 ? 1 + (unsigned)rng_below(&world.rng, THREADS) : 1;
    world.often_late = rng_below(&world.rng, 2) == 0;
    switch (rng_below(&world.rng, 5)) {
    case 0:
        g = (struct tw_geometry)TW_GEOMETRY_SMALL;
        break;
    case 1:
        g = (struct tw_geometry)TW_GEOMETRY_GROWING(16);
        break;
    case 2:
        g = (struct tw_geometry)TW_GEOMETRY_HASHED(512);
        break;
    case 3:
        g = (struct tw_geometry)TW_GEOMETRY_CLOCK;
        break;
    default:
        g = (struct tw_geometry)TW_GEOMETRY_DEFAULT;
    }
    options.geometry = &g;
    expect(tw_sched_new(&world.sched, &options) == 0, "no scheduler");
}

static void finish(void)
{
    check_counts();
    uint64_t pending = tw_sched_count(world.sched);
    expect(tw_sched_stop(world.sched, 0, on_visit, NULL) == pending, "stop is not complete");
    expect(tw_sched_stop(world.sched, 0, on_visit, NULL) == 0, "a second stop found something");
    expect(tw_sched_add_in(world.sched, 1, on_task, NULL, NULL) == TW_ESTOPPED, "an add after the stop");
    check_counts();
    tw_sched_free(world.sched);
}

static uint64_t number_after(int count, char **words, const char *name, uint64_t otherwise)
{
    for (int i = 1; i + 1 < count; i++)
        if (strcmp(words[i], name) == 0)
            return strtoull(words[i + 1], NULL, 0);
    return otherwise;
}

int main(int count, char **words)
{
    uint64_t seed = number_after(count, words, "--seed", 1), first = seed, done = 0, fired = 0;
    uint64_t wanted =
        number_after(count, words, "--operations", TW_DEBUG > 1 ? 20000 : extent(100000, 300000, 3000000));
    time_t end = time(NULL) + (time_t)number_after(count, words, "--seconds", 0);
    for (; done < wanted || time(NULL) < end; seed++) {
        begin(seed);
        pass_turns(world.threads, make_operations);
        finish();
        done += world.operations;
        fired += world.fired;
    }
    printf("seeds %" PRIu64 " to %" PRIu64 ": %" PRIu64 " operations, %" PRIu64 " calls, none wrong\n", first,
           seed - 1, done, fired);
    return 0;
}
