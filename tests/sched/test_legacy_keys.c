/* SPDX-License-Identifier: MIT
 *
 * Keys that were set before the keys were spread over the shards.
 */
#include "outcome.h"
#include "spread.h"
#include "support.h"

#include <src/sched/lock.h>
#include <src/sched/pool.h>

/* Of so many keys three quarters are legacy keys, if a second thread comes. More than MARKED legacy keys have
 * no bits. */
enum { SHARDS = 4, FEW = 200, MARKED = 16384, MANY = MARKED * 3 / 2 };

static int set(struct tw_sched *sched, uint32_t key, uint64_t delay_ns, void *value)
{
    return tw_sched_key_put_in(sched, BYTES_OF(key), delay_ns, log_call, value, NULL);
}

static uint64_t id_of(struct tw_sched *sched, uint32_t key)
{
    struct tw_task task;
    assert_int_equal(tw_sched_key_get(sched, BYTES_OF(key), &task, sizeof task), 0);
    return task.id;
}

static uint32_t shard_of(struct tw_sched *sched, uint32_t key)
{
    return tw__sched_id_shard(id_of(sched, key));
}

/* The number of these keys that lie in another shard than the first. */
static unsigned abroad(struct tw_sched *sched, uint32_t from, uint32_t to)
{
    unsigned count = 0;
    for (uint32_t key = from; key < to; key++)
        count += shard_of(sched, key) != 0;
    return count;
}

/* A scheduler with FEW keys that were set before a second thread came. */
static struct tw_sched *sched_with_legacy_keys(struct tw_sched_options options)
{
    options.shards = SHARDS;
    struct tw_sched *sched = sched_of(options);
    memset(sched->secret, 0, sizeof sched->secret); /* so that every run has the same tags */
    for (uint32_t key = 0; key < FEW; key++)
        assert_int_equal(set(sched, key, 100 * ms, NULL), 0);
    assert_int_equal(tw__sched_made(sched), 1);
    spread_keys(sched);
    return sched;
}

static void one_thread_has_one_wheel_however_many_keys_it_sets(void **state)
{
    (void)state;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.shards = SHARDS});
    struct tw_task task;
    for (uint32_t key = 0; key < MANY; key++)
        assert_int_equal(set(sched, key, 100 * ms, NULL), 0);
    for (uint32_t key = 0; key < MANY + MARKED; key++)
        assert_int_equal(tw_sched_key_get(sched, BYTES_OF(key), &task, sizeof task), key < MANY ? 0 : TW_EGONE);
    assert_int_equal(tw__sched_made(sched), 1);
    assert_true(sched->legacy_keys > MARKED);
    assert_false(sched->wide);
    tw_sched_free(sched);
}

static uint32_t started;

static void count_start(struct tw_sched *sched, const struct tw_task *task)
{
    (void)sched, (void)task;
    started++;
}

static void set_counted(struct tw_sched *sched, uint32_t from, uint32_t to)
{
    for (uint32_t key = from; key < to; key++)
        assert_int_equal(tw_sched_key_put_in(sched, BYTES_OF(key), 100 * ms, count_start, NULL, NULL), 0);
}

static void very_many_legacy_keys_are_found_all_the_same(void **state)
{
    (void)state;
    started = 0;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.shards = SHARDS});
    set_counted(sched, 0, MANY);
    spread_keys(sched);
    set_counted(sched, MANY, MANY + MARKED);
    assert_true(sched->wide);
    assert_null(sched->legacy_bits);
    assert_int_equal(abroad(sched, 0, MANY), 0);
    unsigned moved = abroad(sched, MANY, MANY + MARKED);
    assert_true(moved > MARKED * 7 / 10 && moved < MARKED * 8 / 10); /* three shards of four */
    assert_null(tw__sched_check(sched));
    advance(sched, 200 * ms);
    assert_int_equal(started, MANY + MARKED);
    assert_int_equal(sched->legacy_keys, 0);
    tw_sched_free(sched);
}

/* There was no memory for a shard when the first key of a hash slot came. The keys of that slot are not legacy
 * keys. */
static void keys_that_found_no_memory_for_their_shard_are_no_legacy_keys(void **state)
{
    (void)state;
    requests_left = 1000000;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.shards = SHARDS, .memory = scarce_memory});
    assert_int_equal(set(sched, 0, 100 * ms, NULL), 0);
    spread_keys(sched);
    requests_left = 0;
    for (uint32_t key = 1; key < FEW; key++)
        set(sched, key, 100 * ms, NULL);
    requests_left = 1000000;
    for (uint32_t key = 1; key < FEW; key++)
        assert_int_equal(set(sched, key, 100 * ms, NULL), 0);
    assert_true(sched->legacy_keys <= 1);
    assert_int_equal(tw__sched_made(sched), 2); /* two of four hash slots share a shard for good */
    assert_null(tw__sched_check(sched));
    assert_int_equal(tw_sched_key_count(sched), FEW);
    tw_sched_free(sched);
}

static void *set_some(void *sched)
{
    for (uint32_t key = FEW; key < 2 * FEW; key++)
        assert_int_equal(set(sched, key, 100 * ms, NULL), 0);
    return NULL;
}

static void two_threads_that_only_set_keys_have_them_spread(void **state)
{
    (void)state;
    pthread_t other;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.shards = SHARDS});
    for (uint32_t key = 0; key < FEW; key++)
        assert_int_equal(set(sched, key, 100 * ms, NULL), 0);
    assert_int_equal(pthread_create(&other, NULL, set_some, sched), 0);
    eventually_joined(other);
    assert_int_equal(abroad(sched, 0, FEW), 0);
    assert_true(abroad(sched, FEW, 2 * FEW) > FEW / 2);
    assert_null(tw__sched_check(sched));
    tw_sched_free(sched);
}

static void a_legacy_key_keeps_its_place_in_every_call(void **state)
{
    (void)state;
    struct tw_sched *sched = sched_with_legacy_keys((struct tw_sched_options){.start_ns = 0});
    int value;
    void *old;
    for (uint32_t key = 0; key < FEW; key++) {
        uint64_t id = id_of(sched, key);
        assert_int_equal(tw_sched_key_put_in(sched, BYTES_OF(key), 50 * ms, log_call, &value, &old), 0);
        assert_int_equal(id_of(sched, key), id);
        assert_int_equal(tw_sched_key_move_in(sched, BYTES_OF(key), 20 * ms), 0);
        assert_int_equal(id_of(sched, key), id);
    }
    assert_int_equal(abroad(sched, 0, FEW), 0);
    assert_int_equal(tw_sched_key_count(sched), FEW);
    for (uint32_t key = 0; key < FEW; key += 2) {
        void *removed = NULL;
        assert_int_equal(tw_sched_key_cancel(sched, BYTES_OF(key), &removed), TW_CANCEL_CANCELLED);
        assert_ptr_equal(removed, &value);
        assert_int_equal(tw_sched_key_cancel(sched, BYTES_OF(key), NULL), TW_CANCEL_GONE);
        assert_int_equal(set(sched, key, 30 * ms, NULL), 0); /* a new task, and no legacy key any more */
    }
    unsigned moved = 0;
    for (uint32_t key = 0; key < FEW; key += 2)
        moved += shard_of(sched, key) != 0;
    assert_true(moved > FEW / 4 && moved < FEW / 2);
    advance(sched, 25 * ms);
    assert_int_equal(calls, FEW / 2);
    advance(sched, 25 * ms);
    assert_int_equal(calls, FEW);
    assert_int_equal(tw_sched_key_count(sched), 0);
    tw_sched_free(sched);
}

static void set_anew_inside(struct tw_sched *sched, const struct tw_task *task)
{
    uint32_t key;
    log_call(sched, task);
    memcpy(&key, task->key.data, sizeof key);
    if (calls <= FEW)
        assert_int_equal(tw_sched_key_put_in(sched, BYTES_OF(key), 10 * ms, set_anew_inside, NULL, NULL), 0);
    else
        assert_int_equal(set(sched, key + FEW, 10 * ms, NULL), 0);
}

static void a_legacy_key_whose_callback_is_under_way_is_still_a_legacy_key(void **state)
{
    (void)state;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.shards = SHARDS});
    for (uint32_t key = 0; key < FEW; key++)
        tw_sched_key_put_in(sched, BYTES_OF(key), 10 * ms, set_anew_inside, NULL, NULL);
    spread_keys(sched);
    advance(sched, 15 * ms);
    assert_int_equal(calls, FEW);
    assert_int_equal(tw_sched_key_count(sched), FEW);
    assert_int_equal(abroad(sched, 0, FEW), 0);
    advance(sched, 10 * ms);
    assert_int_equal(calls, 2 * FEW);
    assert_true(abroad(sched, FEW, 2 * FEW) > FEW / 2);
    tw_sched_free(sched);
}

static void without_memory_for_the_bits_legacy_keys_are_found_all_the_same(void **state)
{
    (void)state;
    requests_left = 1000000;
    struct tw_sched *sched = sched_with_legacy_keys((struct tw_sched_options){.memory = scarce_memory});
    requests_left = 0;
    for (uint32_t key = 0; key < 2 * FEW; key++) {
        struct tw_task task;
        assert_int_equal(tw_sched_key_get(sched, BYTES_OF(key), &task, sizeof task), key < FEW ? 0 : TW_EGONE);
    }
    requests_left = 1000000;
    assert_true(sched->wide);
    assert_null(sched->legacy_bits);
    for (uint32_t key = 0; key < 2 * FEW; key++)
        assert_int_equal(set(sched, key, 20 * ms, NULL), 0);
    assert_int_equal(tw_sched_key_count(sched), 2 * FEW);
    assert_null(tw__sched_check(sched));
    advance(sched, 50 * ms);
    assert_int_equal(calls, 2 * FEW);
    tw_sched_free(sched);
    assert_int_equal(bytes_out, 0);
}

/* Keys that do not exist, and whose shard is not the first. */
static uint32_t elsewhere[20 * FEW];
static unsigned elsewhere_count;

static void find_keys_elsewhere(struct tw_sched *sched)
{
    elsewhere_count = 0;
    for (uint32_t key = 10 * FEW; key < 30 * FEW; key++) {
        assert_int_equal(set(sched, key, 100 * ms, NULL), 0);
        if (shard_of(sched, key) != 0)
            elsewhere[elsewhere_count++] = key;
        assert_int_equal(tw_sched_key_cancel(sched, BYTES_OF(key), NULL), TW_CANCEL_CANCELLED);
    }
}

static const pthread_mutex_t *watched;
static unsigned locks; /* how often `watched` was locked */

int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);

int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
    if (lock == watched)
        locks++;
    return __real_pthread_mutex_lock(lock);
}

/* How often the first shard is locked while each of these keys is looked up. */
static unsigned locks_of_the_first_shard(struct tw_sched *sched)
{
    struct tw_task task;
    locks = 0;
    watched = &sched->shard[0]->lock;
    for (unsigned i = 0; i < elsewhere_count; i++)
        assert_int_equal(tw_sched_key_get(sched, BYTES_OF(elsewhere[i]), &task, sizeof task), TW_EGONE);
    watched = NULL;
    return locks;
}

static void the_last_legacy_key_leaves_the_first_shard_alone(void **state)
{
    (void)state;
    struct tw_sched *sched = sched_with_legacy_keys((struct tw_sched_options){.start_ns = 0});
    assert_int_equal(abroad(sched, 0, FEW), 0);
    assert_true(sched->legacy_keys > FEW / 2);
    find_keys_elsewhere(sched);
    assert_true(locks_of_the_first_shard(sched) > 0); /* some of the keys share a bit with a legacy key */
    advance(sched, 200 * ms);
    assert_int_equal(calls, FEW);
    assert_int_equal(sched->legacy_keys, 0);
    assert_int_equal(locks_of_the_first_shard(sched), 0);
    tw_sched_free(sched);
}

static void a_drain_and_a_stop_find_legacy_keys(void **state)
{
    (void)state;
    struct tw_sched *sched = sched_with_legacy_keys((struct tw_sched_options){.start_ns = 0});
    for (uint32_t key = FEW; key < 2 * FEW; key++)
        assert_int_equal(set(sched, key, 100 * ms, NULL), 0);
    assert_int_equal(try_drain(sched, NULL, NULL), 2 * FEW);
    assert_int_equal(sched->legacy_keys, 0);
    assert_int_equal(set(sched, 7, 100 * ms, NULL), 0);
    assert_int_equal(tw_sched_stop(sched, 0, NULL, NULL), 1);
    assert_int_equal(set(sched, 7, 100 * ms, NULL), TW_ESTOPPED);
    tw_sched_free(sched);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread_has_one_wheel_however_many_keys_it_sets),
        cmocka_unit_test(very_many_legacy_keys_are_found_all_the_same),
        cmocka_unit_test(keys_that_found_no_memory_for_their_shard_are_no_legacy_keys),
        cmocka_unit_test(two_threads_that_only_set_keys_have_them_spread),
        cmocka_unit_test(a_legacy_key_keeps_its_place_in_every_call),
        cmocka_unit_test(a_legacy_key_whose_callback_is_under_way_is_still_a_legacy_key),
        cmocka_unit_test(without_memory_for_the_bits_legacy_keys_are_found_all_the_same),
        cmocka_unit_test(the_last_legacy_key_leaves_the_first_shard_alone),
        cmocka_unit_test(a_drain_and_a_stop_find_legacy_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
