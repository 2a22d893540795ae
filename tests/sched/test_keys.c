/* SPDX-License-Identifier: MIT
 *
 * Tasks with keys.
 */
#include "support.h"

#include <stdlib.h>

static void a_key_names_at_most_one_task(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    int one, two;
    void *old = &sched;
    assert_int_equal(tw_sched_set_after(sched, "order", 5, 10 * ms, log_call, &one, &old), 0);
    assert_null(old);
    assert_int_equal(tw_sched_set_after(sched, "order", 5, 30 * ms, log_call, &two, &old), 0);
    assert_ptr_equal(old, &one);
    assert_int_equal(tw_sched_key_count(sched), 1);
    assert_int_equal(tw_sched_pending(sched), 1);
    advance(sched, 100 * ms);
    assert_int_equal(calls, 1);
    assert_ptr_equal(seen[0].arg, &two);
    assert_int_equal(seen_at[0], 30 * ms);
    assert_int_equal(tw_sched_key_count(sched), 0);
    tw_sched_free(sched);
}

static void keys_are_any_bytes_up_to_64_kib(void **state)
{
    (void)state;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.shards = 5});
    char *long_key = calloc(1, TW_KEY_MAX + 1);
    assert_int_equal(tw_sched_set_after(sched, "a\0b", 3, ms, log_call, NULL, NULL), 0);
    assert_int_equal(tw_sched_set_after(sched, "a\0c", 3, ms, log_call, NULL, NULL), 0);
    assert_int_equal(tw_sched_set_after(sched, "a", 1, ms, log_call, NULL, NULL), 0);
    assert_int_equal(tw_sched_set_after(sched, long_key, TW_KEY_MAX, ms, log_call, NULL, NULL), 0);
    assert_int_equal(tw_sched_set_after(sched, long_key, TW_KEY_MAX - 1, ms, log_call, NULL, NULL), 0);
    assert_int_equal(tw_sched_set_after(sched, long_key, TW_KEY_MAX + 1, ms, log_call, NULL, NULL), TW_EINVAL);
    assert_int_equal(tw_sched_set_after(sched, "", 0, ms, log_call, NULL, NULL), TW_EINVAL);
    assert_int_equal(tw_sched_key_count(sched), 5);
    assert_int_equal(tw_sched_key_remove(sched, "a\0c", 3, NULL), TW_CANCELLED);
    assert_int_equal(tw_sched_key_remove(sched, "a\0c", 3, NULL), TW_GONE);
    free(long_key);
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
        assert_int_equal(tw_sched_set_after(sched, key, strlen(key), (1 + i) * ms, log_call, NULL, NULL), 0);
    }
    assert_int_equal(tw_sched_key_count(sched), MANY);
    for (int i = MANY - 1; i >= 0; i -= 2) {
        snprintf(key, sizeof key, "key %d", i);
        assert_int_equal(tw_sched_key_remove(sched, key, strlen(key), NULL), TW_CANCELLED);
    }
    for (int i = 0; i < MANY; i++) {
        struct tw_task task;
        snprintf(key, sizeof key, "key %d", i);
        assert_int_equal(tw_sched_key_get(sched, key, strlen(key), &task), i % 2 ? TW_EGONE : 0);
    }
    advance(sched, 4000 * ms);
    assert_int_equal(calls, 2000);
    tw_sched_free(sched);
}

static void a_moved_key_fires_once_at_its_last_time(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    tw_sched_set_after(sched, "k", 1, 10 * ms, log_call, NULL, NULL);
    for (uint64_t t = 1; t < 50; t++) {
        advance(sched, ms);
        assert_int_equal(tw_sched_key_move_after(sched, "k", 1, t % 2 ? 20 * ms : 5 * ms), 0);
    }
    advance(sched, 100 * ms);
    assert_int_equal(calls, 1);
    assert_int_equal(seen_at[0], 69 * ms);
    assert_int_equal(tw_sched_key_move_at(sched, "k", 1, 500 * ms), TW_EGONE);
    tw_sched_free(sched);
}

static void a_key_can_be_looked_up_and_removed_with_its_value(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    struct tw_task task;
    int thing;
    void *value = NULL;
    tw_sched_set_at(sched, "k", 1, 25 * ms, log_call, &thing, NULL);
    assert_int_equal(tw_sched_key_get(sched, "k", 1, &task), 0);
    assert_int_equal(task.due_ns, 25 * ms);
    assert_ptr_equal(task.arg, &thing);
    assert_int_equal(tw_sched_key_get(sched, "x", 1, &task), TW_EGONE);
    assert_int_equal(tw_sched_key_remove(sched, "k", 1, &value), TW_CANCELLED);
    assert_ptr_equal(value, &thing);
    assert_int_equal(tw_sched_key_get(sched, "k", 1, &task), TW_EGONE);
    advance(sched, 100 * ms);
    assert_int_equal(calls, 0);
    tw_sched_free(sched);
}

static int first_value, second_value;
static void *value_inside;
static struct tw_task task_inside;
static int get_before, get_after;
static enum tw_cancelled removed_before, removed_after;

static void set_anew_inside(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    if (task->arg != &first_value)
        return;
    void *old = sched;
    get_before = tw_sched_key_get(sched, "k", 1, &task_inside);
    tw_sched_set_after(sched, "k", 1, 10 * ms, set_anew_inside, &second_value, &old);
    assert_null(old); /* the last call with the first value is still using it */
    get_after = tw_sched_key_get(sched, "k", 1, &task_inside);
}

static void a_key_set_anew_in_its_callback_runs_again(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    tw_sched_set_after(sched, "k", 1, 10 * ms, set_anew_inside, &first_value, NULL);
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
    removed_before = tw_sched_key_remove(sched, "k", 1, NULL);
    tw_sched_set_after(sched, "k", 1, 10 * ms, log_call, &second_value, NULL);
    removed_after = tw_sched_key_remove(sched, "k", 1, &value_inside);
}

static void a_key_set_anew_and_removed_in_its_callback_gives_the_new_value_back(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    value_inside = NULL;
    tw_sched_set_every(sched, "k", 1, &(struct tw_every){.period_ns = ms}, set_and_remove_inside, &first_value,
                       NULL);
    advance(sched, 100 * ms);
    assert_int_equal(calls, 1);
    assert_int_equal(removed_before, TW_RUNNING);
    assert_int_equal(removed_after, TW_CANCELLED);
    assert_ptr_equal(value_inside, &second_value);
    stats_of(sched);
    tw_sched_free(sched);
}

static void a_keyed_task_may_repeat(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    tw_sched_set_every(sched, "beat", 4, &(struct tw_every){.first_ns = ms, .period_ns = 5 * ms, .times = 3},
                       log_call, NULL, NULL);
    advance(sched, 7 * ms);
    assert_int_equal(calls, 2);
    assert_int_equal(tw_sched_key_count(sched), 1);
    assert_int_equal(seen[0].key_size, 4);
    advance(sched, 100 * ms);
    assert_int_equal(calls, 3);
    assert_int_equal(tw_sched_key_count(sched), 0);
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
