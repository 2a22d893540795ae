/* SPDX-License-Identifier: MIT
 *
 * The options: which values are refused, and with which message.
 */
#include "support.h"

static void nop_execute(void *arg, struct tw_sched *sched, uint64_t id)
{
    (void)arg, (void)sched, (void)id;
}

static void expect_refused(struct tw_sched_options options, const char *name, const char *value)
{
    char message[200] = "";
    struct tw_sched *sched = NULL;
    int error = tw_sched_options_check(&options, message, sizeof message);
    assert_true(error == TW_EINVAL || error == TW_EGEOMETRY);
    assert_non_null(strstr(message, name));
    assert_non_null(strstr(message, value));
    assert_int_equal(tw_sched_new(&sched, &options), error);
    assert_null(sched);
}

static void a_bad_option_is_named_with_its_value_and_range(void **state)
{
    (void)state;
    struct tw_geometry g = TW_GEOMETRY_DEFAULT;
    g.level[0].slots = 1;
    expect_refused((struct tw_sched_options){.tick_ns = 999}, "tick_ns", "999");
    expect_refused((struct tw_sched_options){.tick_ns = 3600000000001}, "tick_ns", "3600000000001");
    expect_refused((struct tw_sched_options){.shards = 65}, "shards", "65");
    expect_refused((struct tw_sched_options){.workers = 1025}, "workers", "1025");
    expect_refused((struct tw_sched_options){.workers = 2, .execute = nop_execute}, "workers", "2");
    expect_refused((struct tw_sched_options){.clock = (enum tw_sched_clock)4}, "clock", "4");
    expect_refused((struct tw_sched_options){.clock = TW_SCHED_CLOCK_VIRTUAL, .workers = 1}, "workers", "1");
    expect_refused((struct tw_sched_options){.start_ns = 7}, "start_ns", "7");
    expect_refused((struct tw_sched_options){.geometry = &g}, "level 0", "1");
    expect_refused((struct tw_sched_options){.reserved[0] = 77}, "tw_sched_options.reserved[0]", "77");
    expect_refused((struct tw_sched_options){.reserved[7] = 1}, "reserved[7]",
                   "1: expected 0; zero the struct");
}

static void options_may_be_left_out(void **state)
{
    (void)state;
    struct tw_sched *sched = NULL;
    assert_int_equal(tw_sched_new(&sched, NULL), 0);
    tw_sched_free(sched);
    tw_sched_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bad_option_is_named_with_its_value_and_range),
        cmocka_unit_test(options_may_be_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
