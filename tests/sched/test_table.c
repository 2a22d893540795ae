/* SPDX-License-Identifier: MIT
 *
 * The table of keys, against a plain array of the keys that should be in it.
 */
#include "tests/support/cmocka.h"
#include "tests/support/eventually.h"
#include "tests/support/random.h"

#include <src/sched/lock.h>
#include <src/sched/table.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#ifdef TESTS_COVERAGE /* there each cell that a search passes counts with an atomic instruction */
enum { MOST = 60000, STEPS = 20000 };
#else
enum { MOST = 60000, STEPS = 400000 };
#endif

static struct tw_sched *sched;
static struct tw__sched_shard *shard;
static int requests_left = -1; /* -1: no limit */
static unsigned requests;
static long blocks_out;
static struct {
    uint32_t tag;
    bool in;
} key[MOST];

static void *counted_memory(void *arg, void *old, size_t size)
{
    (void)arg;
    if (old != NULL) {
        blocks_out--;
        memset(old, 0xEE, size); /* for readers that come too late */
        free(old);
        return NULL;
    }
    requests++;
    if (requests_left == 0)
        return NULL;
    if (requests_left > 0)
        requests_left--;
    blocks_out++;
    return malloc(size);
}

static void open_table(void)
{
    struct tw_sched_options options = {.clock = TW_SCHED_CLOCK_VIRTUAL, .memory = counted_memory};
    requests_left = -1;
    assert_int_equal(tw_sched_new(&sched, &options), 0);
    shard = sched->shard[0];
    tw__sched_lock(shard);
    memset(key, 0, sizeof key);
}

static void close_table(void)
{
    tw__sched_unlock(shard);
    tw_sched_free(sched);
    assert_int_equal(blocks_out, 0);
}

/* Checks how often a key is found under its tag: once if it is in the table, else never. */
static void check_one(uint32_t i)
{
    struct tw__sched_probe probe = tw__sched_table_probe(&shard->table, key[i].tag);
    uint32_t index;
    int found = 0;
    while ((index = tw__sched_probe_next(&probe)) != TW__SCHED_NONE) {
        assert_in_range(index, 0, MOST - 1);
        assert_int_equal(key[index].tag, key[i].tag);
        found += index == i;
    }
    assert_int_equal(found, key[i].in);
}

static bool put_in(uint32_t i, uint32_t tag)
{
    key[i].tag = tag;
    key[i].in = tw__sched_table_add(shard, tag, i);
    return key[i].in;
}

static void take_out(uint32_t i)
{
    tw__sched_table_remove(shard, key[i].tag, i);
    key[i].in = false;
}

/* Tags of several kinds: evenly spread, few, one after the other, or with a home near the end of a
 * segment. */
static uint32_t tag_of_kind(struct rng *rng, int kind)
{
    uint32_t tag = (uint32_t)(rng_next(rng) >> 16);
    switch (kind) {
    case 0:
        return tag;
    case 1:
        return tag % 1500 * UINT32_C(2654435761);
    case 2:
        return tag % MOST;
    default:
        return tag | 0xFF0;
    }
}

static void what_goes_in_is_found_until_it_is_taken_out(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        struct rng rng;
        rng_init(&rng, 1 + (uint64_t)kind);
        open_table();
        for (int step = 0; step < STEPS; step++) {
            uint32_t i = (uint32_t)rng_below(&rng, MOST);
            if (key[i].in)
                take_out(i);
            else
                assert_true(put_in(i, tag_of_kind(&rng, kind)));
            check_one(i);
            check_one((uint32_t)rng_below(&rng, MOST));
        }
        for (uint32_t i = 0; i < MOST; i++) {
            check_one(i);
            if (key[i].in)
                take_out(i);
        }
        for (uint32_t i = 0; i < MOST; i++)
            check_one(i);
        close_table();
    }
}

/* No call does more than split a segment and double the directory. So it makes two requests for memory and
 * does not copy the whole table. */
static void it_grows_a_little_at_a_time(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 5);
    open_table();
    for (uint32_t i = 0; i < MOST; i++) {
        requests = 0;
        assert_true(put_in(i, (uint32_t)(rng_next(&rng) >> 16)));
        assert_true(requests <= 2);
    }
    close_table();
}

static _Atomic bool grown;

/* Fetches lines of the table, without its lock, until the table has grown. */
static void *fetch_lines(void *arg)
{
    struct rng rng;
    rng_init(&rng, 11);
    while (!atomic_load(&grown))
        tw__sched_table_prefetch(arg, (uint32_t)(rng_next(&rng) >> 16));
    return NULL;
}

static void lines_may_be_fetched_while_it_grows(void **state)
{
    (void)state;
    struct rng rng;
    pthread_t thread;
    rng_init(&rng, 7);
    for (int round = 0; round < 10; round++) {
        open_table();
        atomic_store(&grown, false);
        assert_int_equal(pthread_create(&thread, NULL, fetch_lines, &shard->table), 0);
        for (uint32_t i = 0; i < MOST; i++)
            assert_true(put_in(i, (uint32_t)(rng_next(&rng) >> 16)));
        atomic_store(&grown, true);
        eventually_joined(thread);
        for (uint32_t i = 0; i < MOST; i++)
            check_one(i);
        close_table();
    }
}

static void without_memory_it_fills_what_it_has(void **state)
{
    (void)state;
    for (int given = 0; given < 12; given++) {
        struct rng rng;
        uint32_t n = 0;
        rng_init(&rng, 9);
        open_table();
        requests_left = given;
        while (n < MOST && put_in(n, (uint32_t)(rng_next(&rng) >> 16)))
            n++;
        assert_true(given < 2 ? n == 0 : n > 2000 * (unsigned)given / 2 && n < MOST);
        for (uint32_t i = 0; i <= n; i++)
            check_one(i);
        requests_left = -1; /* adding goes on when there is memory again */
        for (uint32_t i = n; i < MOST; i++)
            assert_true(put_in(i, (uint32_t)(rng_next(&rng) >> 16)));
        for (uint32_t i = 0; i < MOST; i++)
            check_one(i);
        close_table();
    }
}

static void equal_tags_fill_one_segment_and_no_more(void **state)
{
    (void)state;
    uint32_t n = 0;
    open_table();
    while (n < MOST && put_in(n, 0xABCDE123))
        n++;
    assert_int_equal(n, 4095);
    assert_true(put_in(MOST - 1, 0x12345678)); /* other tags have room */
    check_one(MOST - 1);
    for (uint32_t i = 0; i < n; i++)
        check_one(i);
    take_out(17);
    assert_true(put_in(17, 0xABCDE123));
    close_table();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_goes_in_is_found_until_it_is_taken_out),
        cmocka_unit_test(it_grows_a_little_at_a_time),
        cmocka_unit_test(lines_may_be_fetched_while_it_grows),
        cmocka_unit_test(without_memory_it_fills_what_it_has),
        cmocka_unit_test(equal_tags_fill_one_segment_and_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
