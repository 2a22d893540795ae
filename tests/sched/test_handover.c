/* SPDX-License-Identifier: MIT
 *
 * Draining and stopping.
 */
#include "outcome.h"
#include "spread.h"
#include "support.h"

static char handed_text[LOG_MAX];

static void visit_text(void *arg, const struct tw_task *task)
{
    char line[100];
    (void)arg;
    snprintf(line, sizeof line, "%s:%.*s:%d:%d\n", (const char *)task->arg, (int)task->key.size,
             task->key.data != NULL ? (const char *)task->key.data : "", (int)(task->due_ns / ms),
             (int)task->left);
    strcat(handed_text, line);
}

static void drain_hands_over_everything_and_goes_on(void **state)
{
    (void)state;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.shards = 3});
    handed_text[0] = '\0';
    spread_keys(sched);
    tw_sched_add_in(sched, 10 * ms, log_call, "once", NULL);
    tw_sched_add_every(sched, &(struct tw_every){.first_ns = 20 * ms, .period_ns = 5 * ms, .times = 4},
                       log_call, "many", NULL);
    tw_sched_key_put_in(sched, tw_text("key"), 30 * ms, log_call, "keyed", NULL);
    assert_int_equal(try_drain(sched, visit_text, NULL), 3);
    assert_non_null(strstr(handed_text, "once::10:0\n"));
    assert_non_null(strstr(handed_text, "many::20:3\n"));
    assert_non_null(strstr(handed_text, "keyed:key:30:0\n"));
    assert_int_equal(tw_sched_key_count(sched), 0);
    assert_int_equal(tw_sched_add_in(sched, ms, log_call, "more", NULL), 0);
    advance(sched, 100 * ms);
    assert_int_equal(calls, 1);
    assert_int_equal(try_drain(sched, NULL, NULL), 0);
    tw_sched_free(sched);
}

static int64_t drained_in_visit;

static void drain_in_visit(void *arg, const struct tw_task *task)
{
    (void)task;
    drained_in_visit = try_drain(arg, NULL, NULL);
}

static void a_drain_tells_a_stopped_scheduler_apart_from_an_empty_one(void **state)
{
    (void)state;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.shards = 3});
    assert_int_equal(try_drain(sched, NULL, NULL), 0);
    tw_sched_add_in(sched, 10 * ms, log_call, NULL, NULL);
    assert_int_equal(tw_sched_stop(sched, 0, drain_in_visit, sched), 1);
    assert_int_equal(drained_in_visit, TW_ESTOPPED); /* already when the stop hands over its first task */
    assert_int_equal(try_drain(sched, NULL, NULL), TW_ESTOPPED);
    tw_sched_free(sched);
}

static void stop_hands_over_what_did_not_run_once(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    handed_text[0] = '\0';
    tw_sched_add_every(sched, &(struct tw_every){.first_ns = 5 * ms, .period_ns = 5 * ms, .times = 4}, log_call,
                       "many", NULL);
    tw_sched_key_put_in(sched, tw_text("key"), 30 * ms, log_call, "keyed", NULL);
    advance(sched, 12 * ms);
    assert_int_equal(tw_sched_stop(sched, 0, visit_text, NULL), 2);
    assert_non_null(strstr(handed_text, "many::15:1\n"));
    assert_non_null(strstr(handed_text, "keyed:key:30:0\n"));
    assert_int_equal(tw_sched_stop(sched, 0, visit_text, NULL), 0);
    assert_int_equal(tw_sched_key_put_in(sched, tw_text("key"), ms, log_call, NULL, NULL), TW_ESTOPPED);
    advance(sched, 100 * ms);
    assert_int_equal(calls, 2);
    assert_int_equal(stats_of(sched).handed, 2);
    tw_sched_free(sched);
}

static void after_a_stop_there_is_no_task_to_move_or_to_remove(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    uint64_t id;
    void *value = sched;
    tw_sched_add_in(sched, ms, log_call, NULL, &id);
    tw_sched_key_put_in(sched, tw_text("key"), ms, log_call, NULL, NULL);
    assert_int_equal(tw_sched_stop(sched, 0, NULL, NULL), 2);
    assert_int_equal(tw_sched_move_in(sched, id, ms), TW_EGONE);
    assert_int_equal(tw_sched_key_move_in(sched, tw_text("key"), ms), TW_EGONE);
    assert_int_equal(tw_sched_key_move_at(sched, tw_text("key"), ms), TW_EGONE);
    assert_int_equal(tw_sched_cancel(sched, id), TW_CANCEL_GONE);
    assert_int_equal(tw_sched_key_cancel(sched, tw_text("key"), &value), TW_CANCEL_GONE);
    assert_ptr_equal(value, sched);
    tw_sched_free(sched);
}

static void a_negative_delay_that_was_cast_never_comes(void **state)
{
    (void)state;
    const int64_t negative[] = {-1, -(int64_t)ms, INT64_MIN};
    struct tw_sched *sched = plain_sched();
    for (int i = 0; i < 3; i++)
        assert_int_equal(tw_sched_add_in(sched, (uint64_t)negative[i], log_call, NULL, NULL), 0);
    advance(sched, UINT64_C(3155760000000000000)); /* a century */
    assert_int_equal(calls, 0);
    tw_sched_free(sched);
}

static void stop_after_move(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    tw_sched_move_at(sched, task->id, 77 * ms);
    tw_sched_key_put_in(sched, tw_text("k"), 88 * ms, log_call, "anew", NULL);
    tw_sched_stop(sched, 0, visit_text, NULL);
}

static void stop_hands_over_the_calls_to_come_of_a_running_task(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    handed_text[0] = '\0';
    tw_sched_add_in(sched, ms, stop_after_move, "moved", NULL);
    advance(sched, 100 * ms);
    assert_non_null(strstr(handed_text, "moved::77:0\n"));
    assert_non_null(strstr(handed_text, "anew:k:89:0\n"));
    stats_of(sched);
    tw_sched_free(sched);
    sched = plain_sched();
    handed_text[0] = '\0';
    tw_sched_key_put_in(sched, tw_text("k"), ms, stop_after_move, "old", NULL);
    advance(sched, 100 * ms);
    assert_string_equal(handed_text, "anew:k:89:0\n");
    assert_int_equal(tw_sched_key_count(sched), 0);
    tw_sched_free(sched);
}

static char text_of_keys[3][40];

/* A `visit` that lets another task take the line of the task in hand before it reads the key. */
static void visit_keys(void *arg, const struct tw_task *task)
{
    struct tw_sched *sched = arg;
    assert_true(handed < 3);
    if (handed == 0)
        tw_sched_key_put_in(sched, tw_text("a task that was added by hand"), ms, log_call, NULL, NULL);
    memcpy(text_of_keys[handed++], task->key.data, task->key.size);
}

/* Keys lie beside their tasks or in blocks of their own. Both can be read until `visit` returns. */
static void a_key_can_be_read_in_a_visit_after_its_line_was_taken(void **state)
{
    (void)state;
    static const char *const keys[] = {"short", "just twenty-four bytes..",
                                       "rather more than twenty-four bytes"};
    struct tw_sched *sched = plain_sched();
    memset(text_of_keys, 0, sizeof text_of_keys);
    handed = 0;
    for (size_t i = 0; i < 3; i++)
        tw_sched_key_put_in(sched, tw_text(keys[i]), (1 + i) * ms, log_call, NULL, NULL);
    assert_int_equal(try_drain(sched, visit_keys, sched), 3);
    for (int i = 0; i < 3; i++)
        assert_string_equal(text_of_keys[i], keys[i]);
    assert_int_equal(tw_sched_key_count(sched), 1);
    tw_sched_free(sched);
}

static const char *stopping_key;

static void remove_in_visit(void *arg, const struct tw_task *task)
{
    tw_sched_key_cancel(arg, tw_text(stopping_key), NULL);
    assert_int_equal(task->key.size, strlen(stopping_key));
    assert_memory_equal(task->key.data, stopping_key, task->key.size);
    handed++;
}

static void stop_inside(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    tw_sched_stop(sched, TW_SCHED_STOP_NOWAIT, remove_in_visit, sched);
    assert_memory_equal(task->key.data, stopping_key, task->key.size); /* the call still has its key, too */
}

static void a_running_task_and_a_visit_share_its_key(void **state)
{
    (void)state;
    static const char *const keys[] = {"short", "rather more than twenty-four bytes"};
    for (int i = 0; i < 2; i++) {
        struct tw_sched_options options = {.memory = scarce_memory};
        requests_left = 1000;
        struct tw_sched *sched = sched_of(options);
        handed = 0;
        stopping_key = keys[i];
        tw_sched_key_put_every(sched, tw_text(keys[i]), &(struct tw_every){.period_ns = ms}, stop_inside, NULL,
                               NULL);
        advance(sched, 10 * ms);
        assert_int_equal(calls, 1);
        assert_int_equal(handed, 1);
        assert_int_equal(stats_of(sched).memory, bytes_out);
        tw_sched_free(sched);
        assert_int_equal(blocks_out, 0);
        assert_int_equal(bytes_out, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drain_hands_over_everything_and_goes_on),
        cmocka_unit_test(a_drain_tells_a_stopped_scheduler_apart_from_an_empty_one),
        cmocka_unit_test(stop_hands_over_what_did_not_run_once),
        cmocka_unit_test(after_a_stop_there_is_no_task_to_move_or_to_remove),
        cmocka_unit_test(a_negative_delay_that_was_cast_never_comes),
        cmocka_unit_test(stop_hands_over_the_calls_to_come_of_a_running_task),
        cmocka_unit_test(a_key_can_be_read_in_a_visit_after_its_line_was_taken),
        cmocka_unit_test(a_running_task_and_a_visit_share_its_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
