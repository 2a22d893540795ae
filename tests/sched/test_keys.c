/* SPDX-License-Identifier: MIT
 *
 * Tasks with keys.
 */
#include "outcome.h"
#include "spread.h"
#include "support.h"

#include <src/sched/lock.h>
#include <src/sched/pool.h>
#include <src/sched/table.h>

static void a_key_names_at_most_one_task(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    int one, two;
    void *old = &sched;
    assert_int_equal(tw_sched_key_put_in(sched, tw_text("order"), 10 * ms, log_call, &one, &old), 0);
    assert_null(old);
    assert_int_equal(tw_sched_key_put_in(sched, tw_text("order"), 30 * ms, log_call, &two, &old), 0);
    assert_ptr_equal(old, &one);
    assert_int_equal(tw_sched_key_count(sched), 1);
    assert_int_equal(tw_sched_count(sched), 1);
    advance(sched, 100 * ms);
    assert_int_equal(calls, 1);
    assert_ptr_equal(seen[0].arg, &two);
    assert_int_equal(seen_at[0], 30 * ms);
    assert_int_equal(tw_sched_key_count(sched), 0);
    tw_sched_free(sched);
}

static char long_key[TW_SCHED_KEY_MAX + 1];

/* The key of the first bytes of long_key. */
static struct tw_bytes long_key_of(size_t size)
{
    return (struct tw_bytes){long_key, size};
}

static void keys_are_any_bytes_up_to_64_kib(void **state)
{
    (void)state;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.shards = 5});
    spread_keys(sched);
    struct tw_bytes a_b = {"a\0b", 3}, a_c = {"a\0c", 3};
    assert_int_equal(tw_sched_key_put_in(sched, a_b, ms, log_call, NULL, NULL), 0);
    assert_int_equal(tw_sched_key_put_in(sched, a_c, ms, log_call, NULL, NULL), 0);
    assert_int_equal(tw_sched_key_put_in(sched, tw_text("a"), ms, log_call, NULL, NULL), 0);
    assert_int_equal(tw_sched_key_put_in(sched, long_key_of(TW_SCHED_KEY_MAX), ms, log_call, NULL, NULL), 0);
    assert_int_equal(tw_sched_key_put_in(sched, long_key_of(TW_SCHED_KEY_MAX - 1), ms, log_call, NULL, NULL),
                     0);
    assert_int_equal(tw_sched_key_put_in(sched, long_key_of(TW_SCHED_KEY_MAX + 1), ms, log_call, NULL, NULL),
                     TW_EINVAL);
    assert_int_equal(tw_sched_key_put_in(sched, tw_text(""), ms, log_call, NULL, NULL), TW_EINVAL);
    assert_int_equal(tw_sched_key_count(sched), 5);
    assert_int_equal(tw_sched_key_cancel(sched, a_c, NULL), TW_CANCEL_CANCELLED);
    assert_int_equal(tw_sched_key_cancel(sched, a_c, NULL), TW_CANCEL_GONE);
    advance(sched, 5 * ms);
    assert_int_equal(calls, 4);
    tw_sched_free(sched);
}

static void many_keys_are_told_apart(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    enum { MANY = 20000 };
    char key[16];
    for (uint64_t i = 0; i < MANY; i++) {
        snprintf(key, sizeof key, "key %d", (int)i);
        assert_int_equal(tw_sched_key_put_in(sched, tw_text(key), (1 + i) * ms, log_call, NULL, NULL), 0);
    }
    assert_int_equal(tw_sched_key_count(sched), MANY);
    for (int i = MANY - 1; i >= 0; i -= 2) {
        snprintf(key, sizeof key, "key %d", i);
        assert_int_equal(tw_sched_key_cancel(sched, tw_text(key), NULL), TW_CANCEL_CANCELLED);
    }
    for (int i = 0; i < MANY; i++) {
        struct tw_task task;
        snprintf(key, sizeof key, "key %d", i);
        assert_int_equal(tw_sched_key_get(sched, tw_text(key), &task, sizeof task), i % 2 ? TW_EGONE : 0);
    }
    advance(sched, 4000 * ms);
    assert_int_equal(calls, 2000);
    tw_sched_free(sched);
}

static void a_moved_key_fires_once_at_its_last_time(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    tw_sched_key_put_in(sched, tw_text("k"), 10 * ms, log_call, NULL, NULL);
    for (uint64_t t = 1; t < 50; t++) {
        advance(sched, ms);
        assert_int_equal(tw_sched_key_move_in(sched, tw_text("k"), t % 2 ? 20 * ms : 5 * ms), 0);
    }
    advance(sched, 100 * ms);
    assert_int_equal(calls, 1);
    assert_int_equal(seen_at[0], 69 * ms);
    assert_int_equal(tw_sched_key_move_at(sched, tw_text("k"), 500 * ms), TW_EGONE);
    tw_sched_free(sched);
}

static void a_key_can_be_looked_up_and_removed_with_its_value(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    struct tw_task task;
    int thing;
    void *value = NULL;
    tw_sched_key_put_at(sched, tw_text("k"), 25 * ms, log_call, &thing, NULL);
    assert_int_equal(tw_sched_key_get(sched, tw_text("k"), &task, sizeof task), 0);
    assert_int_equal(task.due_ns, 25 * ms);
    assert_ptr_equal(task.arg, &thing);
    assert_int_equal(tw_sched_key_get(sched, tw_text("x"), &task, sizeof task), TW_EGONE);
    assert_int_equal(tw_sched_key_cancel(sched, tw_text("k"), &value), TW_CANCEL_CANCELLED);
    assert_ptr_equal(value, &thing);
    assert_int_equal(tw_sched_key_get(sched, tw_text("k"), &task, sizeof task), TW_EGONE);
    advance(sched, 100 * ms);
    assert_int_equal(calls, 0);
    tw_sched_free(sched);
}

static int first_value, second_value;
static void *value_inside;
static struct tw_task task_inside;
static int get_before, get_after;
static enum tw_cancel removed_before, removed_after;

static void set_anew_inside(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    if (task->arg != &first_value)
        return;
    void *old = sched;
    get_before = tw_sched_key_get(sched, tw_text("k"), &task_inside, sizeof task_inside);
    tw_sched_key_put_in(sched, tw_text("k"), 10 * ms, set_anew_inside, &second_value, &old);
    assert_null(old); /* the last call with the first value is still using it */
    get_after = tw_sched_key_get(sched, tw_text("k"), &task_inside, sizeof task_inside);
}

static void a_key_set_anew_in_its_callback_runs_again(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    tw_sched_key_put_in(sched, tw_text("k"), 10 * ms, set_anew_inside, &first_value, NULL);
    advance(sched, 100 * ms);
    assert_int_equal(calls, 2);
    assert_ptr_equal(seen[1].arg, &second_value);
    assert_int_equal(seen_at[1], 20 * ms);
    assert_int_equal(get_before, TW_EGONE);
    assert_int_equal(get_after, 0);
    assert_ptr_equal(task_inside.arg, &second_value);
    assert_int_equal(tw_sched_key_count(sched), 0);
    tw_sched_free(sched);
}

static void set_and_remove_inside(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    removed_before = tw_sched_key_cancel(sched, tw_text("k"), NULL);
    tw_sched_key_put_in(sched, tw_text("k"), 10 * ms, log_call, &second_value, NULL);
    removed_after = tw_sched_key_cancel(sched, tw_text("k"), &value_inside);
}

static void a_key_set_anew_and_removed_in_its_callback_gives_the_new_value_back(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    value_inside = NULL;
    tw_sched_key_put_every(sched, tw_text("k"), &(struct tw_every){.period_ns = ms}, set_and_remove_inside,
                           &first_value, NULL);
    advance(sched, 100 * ms);
    assert_int_equal(calls, 1);
    assert_int_equal(removed_before, TW_CANCEL_AT_WORK);
    assert_int_equal(removed_after, TW_CANCEL_CANCELLED);
    assert_ptr_equal(value_inside, &second_value);
    stats_of(sched);
    tw_sched_free(sched);
}

static void a_keyed_task_may_repeat(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    tw_sched_key_put_every(sched, tw_text("beat"),
                           &(struct tw_every){.first_ns = ms, .period_ns = 5 * ms, .times = 3}, log_call, NULL,
                           NULL);
    advance(sched, 7 * ms);
    assert_int_equal(calls, 2);
    assert_int_equal(tw_sched_key_count(sched), 1);
    assert_int_equal(seen[0].key.size, 4);
    advance(sched, 100 * ms);
    assert_int_equal(calls, 3);
    assert_int_equal(tw_sched_key_count(sched), 0);
    tw_sched_free(sched);
}

/* The sizes around the longest key that lies beside its task, and the shortest and the longest of all. */
static const size_t sizes[] = {1, 16, 23, 24, 25, TW_SCHED_KEY_MAX};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static void make_long_key(void)
{
    for (size_t i = 0; i < TW_SCHED_KEY_MAX; i++)
        long_key[i] = (char)(i * 7 % 251);
}

static void note_the_key(struct tw_sched *sched, const struct tw_task *task)
{
    assert_int_equal(task->key.size, sizes[calls % SIZES]);
    assert_memory_equal(task->key.data, long_key, task->key.size);
    log_call(sched, task);
}

static void keys_of_every_size_take_every_call(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    struct tw_every twice = {.first_ns = 60 * ms, .period_ns = 100 * ms, .times = 2};
    struct tw_task task;
    void *old;
    make_long_key();
    for (size_t i = 0; i < SIZES; i++) {
        assert_int_equal(tw_sched_key_move_in(sched, long_key_of(sizes[i]), ms), TW_EGONE);
        assert_int_equal(tw_sched_key_put_in(sched, long_key_of(sizes[i]), ms, log_call, NULL, &old), 0);
        assert_int_equal(tw_sched_key_cancel(sched, long_key_of(sizes[i]), NULL), TW_CANCEL_CANCELLED);
        assert_int_equal(tw_sched_key_put_in(sched, long_key_of(sizes[i]), ms, log_call, long_key, NULL), 0);
        assert_int_equal(tw_sched_key_put_every(sched, long_key_of(sizes[i]), &twice, note_the_key, NULL, &old),
                         0);
        assert_ptr_equal(old, long_key);
        assert_int_equal(tw_sched_key_move_in(sched, long_key_of(sizes[i]), (10 + i) * ms), 0);
        assert_int_equal(tw_sched_key_get(sched, long_key_of(sizes[i]), &task, sizeof task), 0);
        assert_int_equal(task.due_ns, (10 + i) * ms);
        assert_int_equal(task.left, 1);
    }
    assert_int_equal(tw_sched_key_count(sched), SIZES);
    advance(sched, 500 * ms);
    assert_int_equal(calls, 2 * SIZES);
    assert_int_equal(tw_sched_key_count(sched), 0);
    tw_sched_free(sched);
}

static uint32_t line_of(struct tw_sched *sched, size_t size)
{
    struct tw_task task;
    assert_int_equal(tw_sched_key_get(sched, long_key_of(size), &task, sizeof task), 0);
    return (uint32_t)task.id & ((1u << TW__SCHED_INDEX_BITS) - 1);
}

/* Lets the table find a task by another tag, too, or ends that. */
static void share_tag(struct tw__sched_shard *shard, uint32_t tag, uint32_t line, bool shared)
{
    tw__sched_lock(shard);
    if (shared)
        assert_true(tw__sched_table_add(shard, tag, line));
    else
        tw__sched_table_remove(shard, tag, line);
    tw__sched_unlock(shard);
}

/* Two keys that differ in the last byte only, and have the same tag, name two tasks. */
static void keys_are_compared_to_the_last_byte(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    struct tw__sched_shard *shard = sched->shard[0];
    memset(sched->secret, 0, sizeof sched->secret); /* so that every run has the same tags */
    make_long_key();
    for (size_t i = 0; i < SIZES; i++) {
        char *last = &long_key[sizes[i] - 1];
        assert_int_equal(tw_sched_key_put_in(sched, long_key_of(sizes[i]), ms, log_call, NULL, NULL), 0);
        uint32_t tag = tw__sched_slot_at(shard, line_of(sched, sizes[i]))->tag;
        assert_int_equal(tw_sched_key_cancel(sched, long_key_of(sizes[i]), NULL), TW_CANCEL_CANCELLED);
        ++*last;
        assert_int_equal(tw_sched_key_put_in(sched, long_key_of(sizes[i]), ms, log_call, NULL, NULL), 0);
        uint32_t line = line_of(sched, sizes[i]);
        share_tag(shard, tag, line, true);
        --*last;
        assert_int_equal(tw_sched_key_cancel(sched, long_key_of(sizes[i]), NULL), TW_CANCEL_GONE);
        share_tag(shard, tag, line, false);
        ++*last;
        assert_int_equal(tw_sched_key_cancel(sched, long_key_of(sizes[i]), NULL), TW_CANCEL_CANCELLED);
        --*last;
    }
    tw_sched_free(sched);
}

static struct tw_every anew_every;
static bool anew_repeats;

static void set_other_kind_inside(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    if (task->arg != &first_value)
        return;
    int error =
        anew_repeats
            ? tw_sched_key_put_every(sched, task->key, &anew_every, set_other_kind_inside, &second_value, NULL)
            : tw_sched_key_put_in(sched, task->key, 10 * ms, set_other_kind_inside, &second_value, NULL);
    assert_int_equal(error, 0);
    assert_memory_equal(task->key.data, long_key, task->key.size);
}

/* A task that runs once is set anew to repeat, and the other way round: before its call, and during it. */
static void a_key_may_begin_and_cease_to_repeat(void **state)
{
    (void)state;
    make_long_key();
    for (int kind = 0; kind < 4; kind++) {
        struct tw_sched *sched = plain_sched();
        struct tw_every thrice = {.first_ns = 10 * ms, .period_ns = 10 * ms, .times = 3};
        size_t size = kind % 2 ? 25 : 24;
        struct tw_task task;
        anew_every = thrice;
        anew_repeats = kind < 2;
        if (anew_repeats)
            tw_sched_key_put_in(sched, long_key_of(size), ms, set_other_kind_inside, &first_value, NULL);
        else
            tw_sched_key_put_every(sched, long_key_of(size), &thrice, set_other_kind_inside, &first_value,
                                   NULL);
        advance(sched, 1000 * ms);
        assert_int_equal(calls, anew_repeats ? 4 : 2);
        assert_int_equal(seen[1].period_ns, anew_repeats ? 10 * ms : 0);
        tw_sched_key_put_every(sched, long_key_of(size), &thrice, log_call, NULL, NULL);
        tw_sched_key_put_in(sched, long_key_of(size), ms, log_call, NULL, NULL);
        assert_int_equal(tw_sched_key_get(sched, long_key_of(size), &task, sizeof task), 0);
        assert_int_equal(task.period_ns, 0);
        assert_int_equal(task.left, 0);
        advance(sched, 1000 * ms);
        assert_int_equal(calls, anew_repeats ? 5 : 3);
        tw_sched_free(sched);
    }
}

/* Sets a key 3,000 times to repeat and back, and 3,000 times to repeat at a time that the wheel refuses. */
static void setting_a_key_anew_takes_no_more_memory(void **state)
{
    (void)state;
    struct tw_geometry g = TW_GEOMETRY_SIMPLE(100);
    struct tw_sched *sched = sched_of((struct tw_sched_options){.geometry = &g});
    struct tw_every every = {.first_ns = ms, .period_ns = ms},
                    too_far = {.first_ns = 200 * ms, .period_ns = ms};
    uint64_t memory = 0;
    for (int i = 0; i < 3000; i++) {
        assert_int_equal(tw_sched_key_put_every(sched, tw_text("k"), &every, log_call, NULL, NULL), 0);
        memory = i == 0 ? stats_of(sched).memory : memory;
        assert_int_equal(tw_sched_key_put_in(sched, tw_text("k"), ms, log_call, NULL, NULL), 0);
        assert_int_equal(tw_sched_key_put_every(sched, tw_text("k"), &too_far, log_call, NULL, NULL),
                         TW_ERANGE);
    }
    assert_int_equal(stats_of(sched).memory, memory);
    advance(sched, 50 * ms);
    assert_int_equal(calls, 1);
    tw_sched_free(sched);
}

/* The ids of tasks with keys and without never meet, also if both lie in lines of the same index. */
static void a_stale_id_of_one_kind_finds_no_task_of_the_other(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    struct tw_task task;
    uint64_t plain;
    for (int round = 0; round < 3; round++) {
        assert_int_equal(tw_sched_key_put_in(sched, tw_text("k"), ms, log_call, NULL, NULL), 0);
        assert_int_equal(tw_sched_key_get(sched, tw_text("k"), &task, sizeof task), 0);
        assert_int_equal(tw_sched_add_in(sched, ms, log_call, NULL, &plain), 0);
        assert_int_not_equal(plain, task.id);
        assert_int_equal(tw_sched_cancel(sched, task.id), TW_CANCEL_CANCELLED);
        tw_sched_next_bound(sched); /* takes it out of the wheel */
        assert_int_equal(tw_sched_cancel(sched, task.id), TW_CANCEL_GONE);
        assert_int_equal(tw_sched_get(sched, plain, &task, sizeof task), 0);
        assert_int_equal(tw_sched_cancel(sched, plain), TW_CANCEL_CANCELLED);
        tw_sched_next_bound(sched);
    }
    tw_sched_free(sched);
}

/* A million tasks with keys of 16 bytes take at most 144 bytes each; so do ten thousand. */
static void a_task_with_a_short_key_takes_little_memory(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    enum { MANY = 10000 };
    uint64_t before = stats_of(sched).memory;
    for (int i = 0; i < MANY; i++) {
        char key[17];
        snprintf(key, sizeof key, "order:%010d", i);
        assert_int_equal(tw_sched_key_put_in(sched, (struct tw_bytes){key, 16}, ms, log_call, NULL, NULL), 0);
    }
    assert_true((stats_of(sched).memory - before) / MANY <= 144);
    tw_sched_free(sched);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_names_at_most_one_task),
        cmocka_unit_test(keys_are_any_bytes_up_to_64_kib),
        cmocka_unit_test(many_keys_are_told_apart),
        cmocka_unit_test(a_moved_key_fires_once_at_its_last_time),
        cmocka_unit_test(a_key_can_be_looked_up_and_removed_with_its_value),
        cmocka_unit_test(a_key_set_anew_in_its_callback_runs_again),
        cmocka_unit_test(a_key_set_anew_and_removed_in_its_callback_gives_the_new_value_back),
        cmocka_unit_test(a_keyed_task_may_repeat),
        cmocka_unit_test(keys_of_every_size_take_every_call),
        cmocka_unit_test(keys_are_compared_to_the_last_byte),
        cmocka_unit_test(a_key_may_begin_and_cease_to_repeat),
        cmocka_unit_test(setting_a_key_anew_takes_no_more_memory),
        cmocka_unit_test(a_stale_id_of_one_kind_finds_no_task_of_the_other),
        cmocka_unit_test(a_task_with_a_short_key_takes_little_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
