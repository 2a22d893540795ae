/* SPDX-License-Identifier: MIT
 *
 * Keys while a scheduler goes from one shard to many. Four threads use keys of their own, which must answer as
 * in a model, and keys that they share. The first thread has set its keys before the others come, so these are
 * legacy keys when the second shard is made. At the end each value was given back exactly once.
 */
#include "outcome.h"
#include "tests/support/eventually.h"
#include "tests/support/random.h"

#include <pthread.h>
#include <src/sched/check.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tickwheel/sched.h>

enum { THREADS = 4, OWN = 300, SHARED = 16, STEPS = 1500, ROUNDS = 60, VALUES = THREADS * (STEPS + OWN) + 1 };

static struct tw_sched *sched;
static struct meeting begin;
static _Atomic uint32_t last_value;
static _Atomic int accepted[VALUES], released[VALUES], inside[SHARED];
static bool deny_bits; /* there is no memory for the bits of legacy keys */

#define EXPECT(condition)                                                                                      \
    ((condition) ? (void)0 : (fprintf(stderr, "line %d: %s does not hold\n", __LINE__, #condition), abort()))

static void *memory(void *arg, void *old, size_t size)
{
    (void)arg;
    if (old != NULL) {
        free(old);
        return NULL;
    }
    return deny_bits && size == 8192 ? NULL : malloc(size);
}

static void release(void *arg, void *value)
{
    (void)arg;
    atomic_fetch_add(&released[(uintptr_t)value], 1);
}

/* The calls of one key never overlap. */
static void on_due(struct tw_sched *from, const struct tw_task *task)
{
    (void)from;
    uint32_t key;
    memcpy(&key, task->key.data, sizeof key);
    EXPECT(key >= THREADS * OWN && atomic_exchange(&inside[key - THREADS * OWN], 1) == 0);
    for (volatile int i = 0; i < 200; i++)
        ;
    atomic_store(&inside[key - THREADS * OWN], 0);
}

/* Sets a key to a new value. Returns the value. */
static uintptr_t set(uint32_t key, uint64_t delay_ns, void **old)
{
    uintptr_t value = atomic_fetch_add(&last_value, 1) + 1;
    EXPECT(tw_sched_key_put_in(sched, BYTES_OF(key), delay_ns, on_due, (void *)value, old) == 0);
    atomic_store(&accepted[value], 1);
    return value;
}

/* One step with a key that only this thread uses; *value is 0 if the key names no task. */
static void use_own(struct rng *rng, uint32_t key, uintptr_t *value)
{
    void *old = NULL;
    struct tw_task task;
    switch (rng_below(rng, 4)) {
    case 0:
        EXPECT(tw_sched_key_cancel(sched, BYTES_OF(key), &old) ==
               (*value != 0 ? TW_CANCEL_CANCELLED : TW_CANCEL_GONE));
        EXPECT((uintptr_t)old == *value);
        *value = 0;
        return;
    case 1:
        EXPECT(tw_sched_key_get(sched, BYTES_OF(key), &task, sizeof task) == (*value != 0 ? 0 : TW_EGONE));
        EXPECT(*value == 0 || (uintptr_t)task.arg == *value);
        EXPECT(tw_sched_key_move_in(sched, BYTES_OF(key), TW_SEC(900)) == (*value != 0 ? 0 : TW_EGONE));
        return;
    default: {
        uintptr_t next = set(key, TW_SEC(1000), &old);
        EXPECT((uintptr_t)old == *value);
        *value = next;
    }
    }
}

static void use_shared(struct rng *rng, uint32_t key)
{
    switch (rng_below(rng, 4)) {
    case 0:
        tw_sched_key_cancel(sched, BYTES_OF(key), NULL);
        return;
    case 1:
        tw_sched_key_move_in(sched, BYTES_OF(key), TW_US(200));
        return;
    default:
        set(key, rng_below(rng, 3) * TW_US(100), NULL);
    }
}

/* A task without a key: with the second thread's, the second shard is made. */
static void add_and_cancel(void)
{
    uint64_t id;
    EXPECT(tw_sched_add_in(sched, TW_SEC(1000), on_due, NULL, &id) == 0);
    EXPECT(tw_sched_cancel(sched, id) == TW_CANCEL_CANCELLED);
}

static void *use_keys(void *arg)
{
    const uint32_t thread = *(const uint32_t *)arg, first = thread * OWN;
    struct rng rng = {.state = atomic_load(&last_value) + thread};
    uintptr_t value[OWN] = {0};
    for (uint32_t key = 0; thread == 0 && key < OWN; key++)
        value[key] = set(key, TW_SEC(1000), NULL);
    eventually_met(&begin);
    for (int step = 0; step < STEPS; step++) {
        uint64_t own = rng_below(&rng, OWN);
        if (rng_below(&rng, 2) == 0)
            use_own(&rng, first + (uint32_t)own, &value[own]);
        else
            use_shared(&rng, (uint32_t)(THREADS * OWN + rng_below(&rng, SHARED)));
        if (rng_below(&rng, 500) == 0)
            add_and_cancel();
    }
    return NULL;
}

static void one_round(uint32_t round)
{
    pthread_t thread[THREADS];
    uint32_t number[THREADS];
    struct tw_sched_options options = {.shards = 2 + round % 7,
                                       .workers = round % 2 * 2,
                                       .tick_ns = TW_US(50),
                                       .release = release,
                                       .memory = memory};
    deny_bits = round % 3 == 1;
    last_value = 0;
    memset((void *)accepted, 0, sizeof accepted);
    memset((void *)released, 0, sizeof released);
    EXPECT(tw_sched_new(&sched, &options) == 0);
    begin = meeting_of(THREADS);
    for (uint32_t i = 0; i < THREADS; i++) {
        number[i] = i;
        EXPECT(pthread_create(&thread[i], NULL, use_keys, &number[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        eventually_joined(thread[i]);
    EXPECT(tw__sched_check(sched) == NULL);
    tw_sched_free(sched);
    for (uint32_t i = 1; i <= last_value; i++)
        EXPECT(released[i] == accepted[i]);
}

int main(void)
{
    for (uint32_t round = 0; round < ROUNDS; round++)
        one_round(round);
    printf("%d rounds of %d threads with %d steps each\n", ROUNDS, THREADS, STEPS);
    return 0;
}
