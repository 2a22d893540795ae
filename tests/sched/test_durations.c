/* SPDX-License-Identifier: MIT
 *
 * duration.h: values, the type, constant expressions, the ends of each range.
 */
#include "support.h"

#include <tickwheel/duration.h>

#define IS_UINT64(x) _Generic((x), uint64_t : 1, default : 0)

_Static_assert(TW_US(1) == 1000, "a microsecond");
_Static_assert(TW_MS(1) == 1000000, "a millisecond");
_Static_assert(TW_SEC(1) == 1000000000, "a second");
_Static_assert(TW_MIN(1) == 60 * TW_SEC(1), "a minute");
_Static_assert(TW_HOUR(1) == 60 * TW_MIN(1), "an hour");

_Static_assert(TW_US(0) == 0 && TW_MS(0) == 0 && TW_SEC(0) == 0 && TW_MIN(0) == 0 && TW_HOUR(0) == 0, "none");

_Static_assert(IS_UINT64(TW_US(1)) && IS_UINT64(TW_MS(1u)) && IS_UINT64(TW_SEC((short)1)) &&
                   IS_UINT64(TW_MIN(1L)) && IS_UINT64(TW_HOUR(UINT64_C(1))),
               "the type does not depend on the argument's");

/* The largest argument of each macro, as its comment names it; the next one wraps. */
#define ENDS_AT(macro, most)                                                                                   \
    _Static_assert(macro(most) / macro(1) == (most) && (most) == UINT64_MAX / macro(1), #macro " ends there"); \
    _Static_assert(macro((most) + 1) < macro(1), #macro " wraps after that")
ENDS_AT(TW_US, UINT64_C(18446744073709551));
ENDS_AT(TW_MS, UINT64_C(18446744073709));
ENDS_AT(TW_SEC, UINT64_C(18446744073));
ENDS_AT(TW_MIN, UINT64_C(307445734));
ENDS_AT(TW_HOUR, UINT64_C(5124095));
_Static_assert(TW_SEC(18446744074) == 290448384, "the example of the header");

static const struct tw_every hourly = {.first_ns = TW_MS(250), .period_ns = TW_HOUR(1), .times = 3};
static uint64_t table[] = {TW_US(7), TW_MIN(7) + TW_SEC(8)};

static void constants_initialize_static_objects(void **state)
{
    (void)state;
    assert_int_equal(hourly.first_ns, 250000000);
    assert_int_equal(hourly.period_ns, 3600000000000);
    assert_int_equal(table[0], 7000);
    assert_int_equal(table[1], 428000000000);
}

static void an_argument_is_evaluated_once(void **state)
{
    (void)state;
    int n = 5;
    assert_int_equal(TW_US(n++), 5000);
    assert_int_equal(TW_MS(n++), 6000000);
    assert_int_equal(TW_SEC(n++), 7000000000);
    assert_int_equal(TW_MIN(n++), 480000000000);
    assert_int_equal(TW_HOUR(n++), 32400000000000);
    assert_int_equal(n, 10);
}

static void an_argument_may_be_an_expression(void **state)
{
    (void)state;
    uint32_t seconds = 4294967295;
    assert_int_equal(TW_SEC(1 + 1), 2000000000);
    assert_int_equal(TW_SEC(seconds), 4294967295000000000); /* no product of 32 bits */
    assert_int_equal(TW_MS(seconds > 1 ? 2 : 3), 2000000);
    assert_int_equal(10 / TW_US(1) * 2, 0); /* the value is in brackets */
}

static void a_scheduler_takes_them(void **state)
{
    (void)state;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.tick_ns = TW_MS(1)});
    tw_sched_add_in(sched, TW_SEC(30), log_call, NULL, NULL);
    tw_sched_add_in(sched, UINT64_MAX, log_call, NULL, NULL); /* never */
    advance(sched, TW_SEC(30) - 1);
    assert_int_equal(calls, 0);
    advance(sched, 1);
    assert_int_equal(calls, 1);
    advance(sched, TW_HOUR(5000000));
    assert_int_equal(calls, 1);
    tw_sched_free(sched);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constants_initialize_static_objects),
        cmocka_unit_test(an_argument_is_evaluated_once),
        cmocka_unit_test(an_argument_may_be_an_expression),
        cmocka_unit_test(a_scheduler_takes_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
