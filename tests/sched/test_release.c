/* SPDX-License-Identifier: MIT
 *
 * The release hook.
 */
#include "outcome.h"
#include "support.h"

enum { VALUES = 8 };
static int released[VALUES];           /* how often each value was released */
static struct tw_sched *release_calls; /* not NULL: the hook tries calls on it */
static uint64_t release_id;
static int release_error[2];

static void count_release(void *arg, void *value)
{
    assert_ptr_equal(arg, released);
    released[(uintptr_t)value]++;
    if (release_calls == NULL)
        return;
    release_error[0] = tw_sched_move_in(release_calls, release_id, ms);
    release_error[1] = tw_sched_cancel_wait(release_calls, release_id, NULL);
}

static struct tw_sched *releasing_sched(tw_task_fn *only)
{
    memset(released, 0, sizeof released);
    release_calls = NULL;
    return sched_of(
        (struct tw_sched_options){.release = count_release, .release_of = only, .hook_arg = released});
}

static void *value_of(uintptr_t number)
{
    return (void *)number;
}

static void set_value(struct tw_sched *sched, const char *key, uintptr_t number)
{
    assert_int_equal(
        tw_sched_key_put_in(sched, (struct tw_bytes){key, 1}, ms, log_call, value_of(number), NULL), 0);
}

/* Value 1 must have been released as often as the first digit says, value 2 as often as the second, and so
 * on. */
static void assert_released(const char *counts)
{
    for (int i = 1; counts[i - 1] != '\0'; i++)
        assert_int_equal(released[i], counts[i - 1] - '0');
}

static void a_value_is_released_after_the_last_call(void **state)
{
    (void)state;
    struct tw_sched *sched = releasing_sched(NULL);
    struct tw_every thrice = {.first_ns = ms, .period_ns = ms, .times = 3};
    tw_sched_add_in(sched, ms, log_call, value_of(1), NULL);
    tw_sched_add_every(sched, &thrice, log_call, value_of(2), NULL);
    set_value(sched, "k", 3);
    assert_released("000");
    advance(sched, ms);
    assert_released("101");
    advance(sched, ms);
    assert_released("101");
    advance(sched, ms);
    assert_released("111");
    tw_sched_free(sched);
    assert_released("111");
}

static void a_value_is_released_when_its_task_is_cancelled_removed_or_set_anew(void **state)
{
    (void)state;
    struct tw_sched *sched = releasing_sched(NULL);
    uint64_t first, second;
    void *old, *removed = NULL;
    tw_sched_add_in(sched, ms, log_call, value_of(1), &first);
    tw_sched_add_in(sched, ms, log_call, value_of(2), &second);
    set_value(sched, "k", 3);
    assert_int_equal(tw_sched_cancel(sched, first), TW_CANCEL_CANCELLED);
    assert_released("100");
    assert_int_equal(tw_sched_cancel_wait(sched, second, NULL), 0);
    assert_released("110");
    assert_int_equal(tw_sched_key_put_in(sched, tw_text("k"), ms, log_call, value_of(4), &old), 0);
    assert_ptr_equal(old, value_of(3));
    assert_released("1110");
    assert_int_equal(tw_sched_key_cancel(sched, tw_text("k"), &removed), TW_CANCEL_CANCELLED);
    assert_ptr_equal(removed, value_of(4));
    assert_released("1111");
    assert_int_equal(tw_sched_cancel(sched, first), TW_CANCEL_GONE);
    assert_int_equal(tw_sched_key_cancel(sched, tw_text("k"), NULL), TW_CANCEL_GONE);
    tw_sched_free(sched);
    assert_released("1111");
}

static void what_was_refused_is_not_released(void **state)
{
    (void)state;
    struct tw_sched *sched = releasing_sched(NULL);
    struct tw_every short_one = {.period_ns = 1};
    set_value(sched, "k", 1);
    assert_int_equal(tw_sched_add_every(sched, &short_one, log_call, value_of(2), NULL), TW_EINVAL);
    assert_int_equal(tw_sched_key_put_every(sched, tw_text("k"), &short_one, log_call, value_of(2), NULL),
                     TW_EINVAL);
    assert_int_equal(tw_sched_key_put_in(sched, tw_text(""), ms, log_call, value_of(2), NULL), TW_EINVAL);
    tw_sched_stop(sched, 0, NULL, NULL);
    assert_int_equal(tw_sched_add_in(sched, ms, log_call, value_of(2), NULL), TW_ESTOPPED);
    assert_int_equal(tw_sched_key_put_in(sched, tw_text("k"), ms, log_call, value_of(2), NULL), TW_ESTOPPED);
    assert_released("10");
    tw_sched_free(sched);
    assert_released("10");
}

/* Counts the tasks that it receives. Their values must not have been released yet. */
static void visit_unreleased(void *arg, const struct tw_task *task)
{
    ++*(int *)arg;
    assert_int_equal(released[(uintptr_t)task->arg], 0);
    assert_ptr_equal(task->fn, log_call);
}

static void what_is_drained_stopped_or_freed_is_released_once_it_was_handed(void **state)
{
    (void)state;
    struct tw_sched *sched = releasing_sched(NULL);
    int seen_by_visit = 0;
    tw_sched_add_in(sched, ms, log_call, value_of(1), NULL);
    assert_int_equal(try_drain(sched, visit_unreleased, &seen_by_visit), 1);
    assert_released("1000");
    set_value(sched, "k", 2);
    assert_int_equal(try_drain(sched, NULL, NULL), 1);
    assert_released("1100");
    set_value(sched, "k", 3);
    assert_int_equal(tw_sched_stop(sched, 0, visit_unreleased, &seen_by_visit), 1);
    assert_released("1110");
    assert_int_equal(seen_by_visit, 2);
    tw_sched_free(sched);
    sched = releasing_sched(NULL);
    set_value(sched, "k", 4);
    tw_sched_free(sched);
    assert_released("0001");
}

static void only_the_values_of_the_function_that_was_named_are_released(void **state)
{
    (void)state;
    struct tw_sched *sched = releasing_sched(log_call);
    uint64_t other;
    tw_sched_add_in(sched, ms, log_call, value_of(1), NULL);
    tw_sched_add_in(sched, ms, add_another, value_of(2), &other);
    tw_sched_cancel(sched, other);
    advance(sched, ms);
    assert_released("10");
    tw_sched_add_in(sched, ms, cancel_and_move_self, value_of(3), NULL);
    tw_sched_add_in(sched, ms, cancel_and_move_self, value_of(4), NULL);
    advance(sched, ms);
    assert_int_equal(try_drain(sched, NULL, NULL), 0);
    tw_sched_free(sched);
    assert_released("1000");
}

/* The callback does this to its own task. It stands for another thread that does so during the callback. */
static void (*meanwhile)(struct tw_sched *, const struct tw_task *);

static void call_meanwhile(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    if (calls == 1)
        meanwhile(sched, task);
    assert_int_equal(released[(uintptr_t)task->arg], 0); /* the value is in use until the callback returns */
}

/* Runs a task with a key and value 1 `times` times. Its first call does `does`. */
static struct tw_sched *with_meanwhile(uint64_t times, void (*does)(struct tw_sched *, const struct tw_task *))
{
    struct tw_sched *sched = releasing_sched(NULL);
    struct tw_every every = {.first_ns = ms, .period_ns = ms, .times = times};
    meanwhile = does;
    assert_int_equal(tw_sched_key_put_every(sched, tw_text("k"), &every, call_meanwhile, value_of(1), NULL), 0);
    advance(sched, ms);
    assert_int_equal(calls, 1);
    return sched;
}

static void set_twice(struct tw_sched *sched, const struct tw_task *task)
{
    (void)task;
    set_value(sched, "k", 2);
    set_value(sched, "k", 3);
    assert_released("010");
}

static void set_and_remove(struct tw_sched *sched, const struct tw_task *task)
{
    set_value(sched, "k", 2);
    assert_int_equal(tw_sched_key_cancel(sched, tw_text("k"), NULL), TW_CANCEL_CANCELLED);
    assert_released("010");
    assert_int_equal(tw_sched_cancel(sched, task->id), TW_CANCEL_AT_WORK);
    assert_released("010");
}

static void set_remove_and_set(struct tw_sched *sched, const struct tw_task *task)
{
    set_and_remove(sched, task);
    set_value(sched, "k", 3);
    assert_released("010");
}

static void cancel_this(struct tw_sched *sched, const struct tw_task *task)
{
    assert_int_equal(tw_sched_cancel(sched, task->id), TW_CANCEL_AT_WORK);
    assert_int_equal(tw_sched_cancel(sched, task->id), TW_CANCEL_AT_WORK);
}

static void move_this(struct tw_sched *sched, const struct tw_task *task)
{
    assert_int_equal(tw_sched_move_in(sched, task->id, ms), 0);
}

static void a_value_in_use_is_released_when_its_call_is_over(void **state)
{
    (void)state;
    for (uint64_t times = 1; times <= 3; times++) {
        struct tw_sched *sched = with_meanwhile(times, set_twice);
        assert_released("110");
        advance(sched, ms);
        assert_released("111");
        tw_sched_free(sched);
        sched = with_meanwhile(times, set_and_remove);
        assert_released("110");
        tw_sched_free(sched);
        sched = with_meanwhile(times, set_remove_and_set);
        assert_released("110");
        tw_sched_free(sched);
        assert_released("111");
        sched = with_meanwhile(times, cancel_this);
        assert_released("1");
        tw_sched_free(sched);
        sched = with_meanwhile(times, move_this);
        assert_released("0");
        tw_sched_free(sched);
        assert_released("1");
    }
}

static int handed_without, handed_with;

static void visit_busy(void *arg, const struct tw_task *task)
{
    (void)arg;
    handed_without += task->fn == NULL && task->arg == NULL;
    handed_with += task->fn == log_call && task->arg == value_of(2) && released[2] == 0;
}

static void stop_this(struct tw_sched *sched, const struct tw_task *task)
{
    (void)task;
    tw_sched_stop(sched, 0, visit_busy, NULL);
}

static void set_and_stop(struct tw_sched *sched, const struct tw_task *task)
{
    set_value(sched, "k", 2);
    stop_this(sched, task);
    assert_released("01");
}

static void move_and_stop(struct tw_sched *sched, const struct tw_task *task)
{
    move_this(sched, task);
    stop_this(sched, task);
}

static void a_stop_hands_a_value_in_use_to_nobody(void **state)
{
    (void)state;
    handed_without = handed_with = 0;
    tw_sched_free(with_meanwhile(2, stop_this));
    assert_released("10");
    assert_int_equal(handed_without, 1);
    tw_sched_free(with_meanwhile(2, set_and_stop));
    assert_released("11");
    assert_int_equal(handed_with, 1);
    struct tw_sched *sched = releasing_sched(NULL);
    meanwhile = move_and_stop;
    tw_sched_add_in(sched, ms, call_meanwhile, value_of(3), NULL);
    advance(sched, ms);
    assert_released("001");
    assert_int_equal(handed_without, 2);
    tw_sched_free(sched);
    sched = releasing_sched(log_call); /* the hook does not own the value, so `visit` gets it */
    meanwhile = stop_this;
    struct tw_every twice = {.first_ns = ms, .period_ns = ms, .times = 2};
    tw_sched_add_every(sched, &twice, call_meanwhile, value_of(4), NULL);
    advance(sched, ms);
    assert_int_equal(handed_without, 2);
    tw_sched_free(sched);
    assert_released("0000");
}

static void a_task_whose_value_is_being_released_cannot_be_called_back(void **state)
{
    (void)state;
    struct tw_sched *sched = releasing_sched(NULL);
    tw_sched_add_in(sched, ms, log_call, value_of(1), &release_id);
    release_calls = sched;
    advance(sched, 10 * ms);
    assert_int_equal(calls, 1);
    assert_released("1");
    assert_int_equal(release_error[0], TW_EGONE);
    assert_int_equal(release_error[1], TW_EDEADLK);
    release_calls = NULL;
    tw_sched_free(sched);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_is_released_after_the_last_call),
        cmocka_unit_test(a_value_is_released_when_its_task_is_cancelled_removed_or_set_anew),
        cmocka_unit_test(what_was_refused_is_not_released),
        cmocka_unit_test(what_is_drained_stopped_or_freed_is_released_once_it_was_handed),
        cmocka_unit_test(only_the_values_of_the_function_that_was_named_are_released),
        cmocka_unit_test(a_value_in_use_is_released_when_its_call_is_over),
        cmocka_unit_test(a_stop_hands_a_value_in_use_to_nobody),
        cmocka_unit_test(a_task_whose_value_is_being_released_cannot_be_called_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
