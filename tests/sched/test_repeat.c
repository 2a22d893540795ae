/* SPDX-License-Identifier: MIT
 *
 * Repeating tasks, and periods that went by.
 */
#include "outcome.h"
#include "support.h"

static void a_repeating_task_keeps_its_phase_and_counts_its_calls(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    struct tw_every every = {.first_ns = 2 * ms + 300, .period_ns = 7 * ms + 1, .times = 5};
    assert_int_equal(tw_sched_add_every(sched, &every, log_call, &every, NULL), 0);
    advance(sched, 1000 * ms);
    assert_int_equal(calls, 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(seen[i].due_ns, every.first_ns + (uint64_t)i * every.period_ns);
        assert_int_equal(seen[i].left, 4 - i);
        assert_int_equal(seen[i].period_ns, every.period_ns);
        assert_ptr_equal(seen[i].arg, &every);
    }
    tw_sched_free(sched);
}

static void the_first_call_may_have_a_point_in_time(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    advance(sched, 3 * ms);
    struct tw_every every = {.first_ns = 500 * ms, .at_ns = 10 * ms + 1, .period_ns = 7 * ms, .times = 2};
    tw_sched_add_every(sched, &every, log_call, NULL, NULL);
    tw_sched_key_put_every(sched, tw_text("k"), &every, log_call, NULL, NULL);
    advance(sched, 100 * ms);
    assert_int_equal(calls, 4);
    assert_int_equal(seen[0].due_ns, 10 * ms + 1);
    assert_int_equal(seen[3].due_ns, 17 * ms + 1);
    tw_sched_free(sched);
}

static void without_times_it_repeats_for_ever(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    struct tw_every every = {.period_ns = ms, .missed = TW_MISSED_BURST};
    tw_sched_add_every(sched, &every, log_call, NULL, NULL);
    every.times = TW_FOREVER;
    tw_sched_add_every(sched, &every, log_call, NULL, NULL);
    advance(sched, 1000 * ms);
    assert_int_equal(calls, 2002); /* the calls due at 0 and at 1,000 ms are among them */
    assert_true(seen[2001].left == TW_FOREVER);
    tw_sched_free(sched);
}

static void a_period_shorter_than_a_tick_is_refused(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    struct tw_every every = {.period_ns = ms - 1};
    assert_int_equal(tw_sched_add_every(sched, &every, log_call, NULL, NULL), TW_EINVAL);
    assert_int_equal(tw_sched_key_put_every(sched, tw_text("k"), &every, log_call, NULL, NULL), TW_EINVAL);
    every = (struct tw_every){.period_ns = ms, .missed = (enum tw_missed)3};
    assert_int_equal(tw_sched_add_every(sched, &every, log_call, NULL, NULL), TW_EINVAL);
    every = (struct tw_every){.period_ns = ms, .reserved[1] = 1};
    assert_int_equal(tw_sched_add_every(sched, &every, log_call, NULL, NULL), TW_EINVAL);
    assert_int_equal(tw_sched_count(sched), 0);
    tw_sched_free(sched);
}

/* A task is due every 10 ms from 10 ms on. Its first call starts at 45 ms. From then until 100 ms each call
 * is made at once. */
static struct tw_sched *late_by_three_periods(enum tw_missed missed, uint64_t times)
{
    struct tw_sched *sched = lazy_sched();
    struct tw_every every = {.first_ns = 10 * ms, .period_ns = 10 * ms, .missed = missed, .times = times};
    assert_int_equal(tw_sched_add_every(sched, &every, log_call, NULL, NULL), 0);
    advance(sched, 45 * ms);
    assert_int_equal(sent_count, 1);
    while (tw_sched_now(sched) <= 100 * ms) {
        run_sent(sched);
        if (tw_sched_now(sched) % ms == 0 || sent_count == 0)
            advance(sched, ms);
    }
    return sched;
}

static void burst_makes_up_for_every_missed_period(void **state)
{
    (void)state;
    struct tw_sched *sched = late_by_three_periods(TW_MISSED_BURST, 0);
    assert_int_equal(calls, 10);
    for (int i = 0; i < calls; i++)
        assert_int_equal(seen[i].due_ns, (uint64_t)(i + 1) * 10 * ms);
    assert_true(seen_at[3] <= 49 * ms);
    tw_sched_free(sched);
}

static void skip_goes_on_at_the_next_period_ahead(void **state)
{
    (void)state;
    struct tw_sched *sched = late_by_three_periods(TW_MISSED_SKIP, 0);
    assert_int_equal(calls, 6);
    for (int i = 0; i < calls; i++)
        assert_int_equal(seen[i].due_ns, (uint64_t)(i + 5) * 10 * ms);
    assert_int_equal(stats_of(sched).skipped, 4); /* 10, 20, 30, 40 */
    assert_int_equal(stats_of(sched).coalesced, 0);
    tw_sched_free(sched);
}

static void coalesce_makes_one_call_stand_for_all(void **state)
{
    (void)state;
    struct tw_sched *sched = late_by_three_periods(TW_MISSED_COALESCE, 0);
    assert_int_equal(calls, 7);
    assert_int_equal(seen[0].due_ns, 10 * ms);
    assert_int_equal(seen[0].missed_periods, 3);
    assert_int_equal(seen_at[0], 45 * ms);
    for (int i = 1; i < calls; i++) {
        assert_int_equal(seen[i].due_ns, (uint64_t)(i + 4) * 10 * ms);
        assert_int_equal(seen[i].missed_periods, 0);
    }
    assert_int_equal(stats_of(sched).coalesced, 3);
    assert_int_equal(stats_of(sched).skipped, 0);
    tw_sched_free(sched);
}

static void without_a_word_missed_periods_are_coalesced(void **state)
{
    (void)state;
    struct tw_sched *sched = lazy_sched();
    tw_sched_add_every(sched, &(struct tw_every){.first_ns = 10 * ms, .period_ns = 10 * ms}, log_call, NULL,
                       NULL);
    advance(sched, 45 * ms);
    run_sent(sched);
    assert_int_equal(calls, 1);
    assert_int_equal(seen[0].missed, TW_MISSED_COALESCE);
    assert_int_equal(seen[0].due_ns, 10 * ms);
    assert_int_equal(seen[0].missed_periods, 3);
    assert_int_equal(tw_sched_next_bound(sched), 50 * ms);
    tw_sched_free(sched);
}

/* A call that is due between two ticks, at 10.3 ms, can be made at 11 ms. Up to 21 ms it is late by less than a
 * period. */
static void a_period_counts_as_missed_from_the_tick_of_the_call_on(void **state)
{
    (void)state;
    static const struct {
        enum tw_missed missed;
        uint64_t due_ns, start_ns, calls, skipped, coalesced;
    } rows[] = {
        {TW_MISSED_COALESCE, 10300000, 20900000, 1, 0, 0}, {TW_MISSED_COALESCE, 10300000, 21000000, 1, 0, 1},
        {TW_MISSED_COALESCE, 10000000, 19900000, 1, 0, 0}, {TW_MISSED_COALESCE, 10000000, 20000000, 1, 0, 1},
        {TW_MISSED_SKIP, 10300000, 20900000, 1, 0, 0},     {TW_MISSED_SKIP, 10300000, 21000000, 0, 2, 0},
        {TW_MISSED_SKIP, 10000000, 19900000, 1, 0, 0},     {TW_MISSED_SKIP, 10000000, 20000000, 0, 2, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct tw_sched *sched = lazy_sched();
        struct tw_every every = {.first_ns = rows[i].due_ns, .period_ns = 10 * ms, .missed = rows[i].missed};
        tw_sched_add_every(sched, &every, log_call, NULL, NULL);
        advance(sched, rows[i].start_ns);
        run_sent(sched);
        assert_int_equal(calls, rows[i].calls);
        assert_int_equal(stats_of(sched).skipped, rows[i].skipped);
        assert_int_equal(stats_of(sched).coalesced, rows[i].coalesced);
        tw_sched_free(sched);
    }
}

static void missed_periods_use_up_no_calls(void **state)
{
    (void)state;
    for (int policy = TW_MISSED_COALESCE; policy <= TW_MISSED_BURST; policy++) {
        struct tw_sched *sched = late_by_three_periods((enum tw_missed)policy, 3);
        assert_int_equal(calls, 3);
        for (uint64_t i = 0; i < 3; i++)
            assert_int_equal(seen[i].left, 2 - i);
        assert_int_equal(tw_sched_count(sched), 0);
        tw_sched_free(sched);
    }
}

static void take_95_ms(struct tw_sched *sched, const struct tw_task *task)
{
    (void)task;
    atomic_store(&sched->virtual_ns, tw_sched_now(sched) + 95 * ms);
}

/* A heartbeat of 10 ms, for 2.9 s, on a thread that is in another callback for 95 ms of each 100. */
static struct tw_sched *heartbeat_behind_a_slow_task(enum tw_missed missed)
{
    struct tw_sched *sched = plain_sched();
    struct tw_every slow = {.first_ns = 10 * ms, .period_ns = 100 * ms},
                    beat = {.first_ns = 20 * ms, .period_ns = 10 * ms, .missed = missed};
    tw_sched_add_every(sched, &slow, take_95_ms, NULL, NULL);
    tw_sched_add_every(sched, &beat, log_call, NULL, NULL);
    advance(sched, 2908 * ms);
    return sched;
}

static void behind_a_slow_task_skip_never_runs_and_coalesce_does(void **state)
{
    (void)state;
    struct tw_sched *sched = heartbeat_behind_a_slow_task(TW_MISSED_SKIP);
    assert_int_equal(calls, 0);
    assert_int_equal(stats_of(sched).skipped, 9 + 28 * 10);
    tw_sched_free(sched);
    sched = heartbeat_behind_a_slow_task(TW_MISSED_COALESCE);
    assert_int_equal(calls, 29);
    assert_int_equal(stats_of(sched).coalesced, 8 + 28 * 9);
    assert_int_equal(stats_of(sched).skipped, 0);
    tw_sched_free(sched);
}

static struct tw_task handed_one;
static int handed_ones;

static void keep_handed(void *arg, const struct tw_task *task)
{
    (void)arg;
    handed_one = *task;
    handed_ones++;
}

static void stop_in_its_call(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    tw_sched_stop(sched, 0, keep_handed, NULL);
}

static void a_stop_inside_a_coalesced_call_hands_over_the_call_after_it(void **state)
{
    (void)state;
    struct tw_sched *sched = lazy_sched();
    struct tw_every every = {
        .first_ns = 10 * ms, .period_ns = 10 * ms, .missed = TW_MISSED_COALESCE, .times = 9};
    tw_sched_add_every(sched, &every, stop_in_its_call, NULL, NULL);
    advance(sched, 55 * ms);
    handed_ones = 0;
    run_sent(sched);
    assert_int_equal(seen[0].missed_periods, 4);
    assert_int_equal(handed_ones, 1);
    assert_int_equal(handed_one.due_ns, 60 * ms);
    assert_int_equal(handed_one.left, 7);
    assert_int_equal(handed_one.missed_periods, 0);
    assert_int_equal(stats_of(sched).coalesced, 0);
    tw_sched_free(sched);
}

static void move_itself_to_90(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    assert_int_equal(tw_sched_move_at(sched, task->id, 90 * ms), 0);
}

static void a_move_in_a_coalesced_call_starts_afresh(void **state)
{
    (void)state;
    struct tw_sched *sched = lazy_sched();
    struct tw_every every = {.first_ns = 10 * ms, .period_ns = 10 * ms, .missed = TW_MISSED_COALESCE};
    tw_sched_add_every(sched, &every, move_itself_to_90, NULL, NULL);
    advance(sched, 55 * ms);
    run_sent(sched);
    assert_int_equal(seen[0].missed_periods, 4);
    assert_int_equal(try_drain(sched, keep_handed, NULL), 1);
    assert_int_equal(handed_one.due_ns, 90 * ms);
    assert_int_equal(handed_one.missed_periods, 0);
    assert_int_equal(stats_of(sched).coalesced, 0);
    tw_sched_free(sched);
}

static uint64_t coalesced_in_its_call; /* the count, as the callback has read it */

static void read_the_count(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    coalesced_in_its_call = stats_of(sched).coalesced;
}

static void cancel_itself(struct tw_sched *sched, const struct tw_task *task)
{
    read_the_count(sched, task);
    tw_sched_cancel(sched, task->id);
}

/* docs/contract.md, "Counts". */
static void coalesced_periods_count_when_the_call_ends_and_not_if_it_is_cancelled(void **state)
{
    (void)state;
    static const struct {
        tw_task_fn *fn;
        uint64_t times, counted;
    } rows[] = {{read_the_count, 9, 4}, {read_the_count, 1, 4}, {cancel_itself, 9, 0}, {cancel_itself, 1, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct tw_sched *sched = lazy_sched();
        struct tw_every every = {.first_ns = 10 * ms, .period_ns = 10 * ms, .times = rows[i].times};
        tw_sched_add_every(sched, &every, rows[i].fn, NULL, NULL);
        advance(sched, 55 * ms);
        run_sent(sched);
        assert_int_equal(calls, 1);
        assert_int_equal(seen[0].missed_periods, 4);
        assert_int_equal(coalesced_in_its_call, 0);
        assert_int_equal(stats_of(sched).coalesced, rows[i].counted);
        tw_sched_free(sched);
    }
}

/* A wheel that refuses measures its reach from the tick on which it stands, and the timer thread may not have
 * moved it for a long time. */
static void a_repeating_task_is_not_lost_on_a_wheel_that_is_behind(void **state)
{
    (void)state;
    struct tw_geometry geometry = TW_GEOMETRY_SIMPLE(256);
    for (int policy = TW_MISSED_COALESCE; policy <= TW_MISSED_BURST; policy++) {
        sent_count = 0;
        struct tw_sched *sched =
            sched_of((struct tw_sched_options){.execute = send_later, .geometry = &geometry});
        struct tw_every every = {.first_ns = 10 * ms, .period_ns = 10 * ms, .missed = (enum tw_missed)policy};
        tw_sched_add_every(sched, &every, log_call, NULL, NULL);
        advance(sched, 600 * ms);
        run_sent(sched);
        assert_int_equal(tw_sched_count(sched), 1);
        stats_of(sched);
        advance(sched, 10 * ms);
        run_sent(sched);
        assert_true(calls >= 1);
        assert_int_equal(tw_sched_count(sched), 1);
        tw_sched_free(sched);
    }
}

static void a_moved_repeating_task_goes_on_from_its_new_time(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    uint64_t id;
    tw_sched_add_every(sched, &(struct tw_every){.first_ns = 10 * ms, .period_ns = 10 * ms, .times = 3},
                       log_call, NULL, &id);
    advance(sched, 12 * ms);
    assert_int_equal(tw_sched_move_at(sched, id, 55 * ms), 0);
    advance(sched, 100 * ms);
    assert_int_equal(calls, 3);
    assert_int_equal(seen_at[1], 55 * ms);
    assert_int_equal(seen_at[2], 65 * ms);
    tw_sched_free(sched);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_repeating_task_keeps_its_phase_and_counts_its_calls),
        cmocka_unit_test(the_first_call_may_have_a_point_in_time),
        cmocka_unit_test(without_times_it_repeats_for_ever),
        cmocka_unit_test(a_period_shorter_than_a_tick_is_refused),
        cmocka_unit_test(burst_makes_up_for_every_missed_period),
        cmocka_unit_test(skip_goes_on_at_the_next_period_ahead),
        cmocka_unit_test(coalesce_makes_one_call_stand_for_all),
        cmocka_unit_test(without_a_word_missed_periods_are_coalesced),
        cmocka_unit_test(behind_a_slow_task_skip_never_runs_and_coalesce_does),
        cmocka_unit_test(a_period_counts_as_missed_from_the_tick_of_the_call_on),
        cmocka_unit_test(missed_periods_use_up_no_calls),
        cmocka_unit_test(a_stop_inside_a_coalesced_call_hands_over_the_call_after_it),
        cmocka_unit_test(a_move_in_a_coalesced_call_starts_afresh),
        cmocka_unit_test(coalesced_periods_count_when_the_call_ends_and_not_if_it_is_cancelled),
        cmocka_unit_test(a_repeating_task_is_not_lost_on_a_wheel_that_is_behind),
        cmocka_unit_test(a_moved_repeating_task_goes_on_from_its_new_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
