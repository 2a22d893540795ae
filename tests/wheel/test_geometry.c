/* SPDX-License-Identifier: MIT
 *
 * Which shapes are valid, and the message for each invalid shape.
 */
#include "tests/support/cmocka.h"
#include "tests/support/level.h"

static void every_preset_is_valid(void **state)
{
    (void)state;
    struct tw_geometry shapes[SHAPES_MAX];
    uint32_t count = all_shapes(shapes);
    for (uint32_t i = 0; i < count; i++) {
        char message[100] = "?";
        assert_int_equal(tw_geometry_check(&shapes[i], message, sizeof message), 0);
        assert_string_equal(message, "");
        assert_true(tw_wheel_size(&shapes[i]) > 0);
    }
    struct tw_geometry odd = TW_GEOMETRY_GROWING(5);
    assert_int_equal(tw_geometry_check(&odd, NULL, 0), 0);
}

static void no_geometry_is_the_default(void **state)
{
    (void)state;
    static const struct tw_geometry standard = TW_GEOMETRY_DEFAULT; /* presets are constants */
    static char memory[256 * 1024];
    struct tw_wheel *wheel;
    char message[100] = "?";
    assert_int_equal(tw_geometry_check(NULL, message, sizeof message), 0);
    assert_string_equal(message, "");
    assert_int_equal(tw_wheel_size(NULL), tw_wheel_size(&standard));
    assert_int_equal(tw_wheel_init(&wheel, memory, tw_wheel_size(NULL) - 1, NULL, 7), TW_ESIZE);
    assert_int_equal(tw_wheel_init(&wheel, memory, sizeof memory, NULL, 7), 0);
    assert_int_equal(tw_wheel_levels(wheel), standard.levels);
    for (uint32_t level = 0; level < standard.levels; level++) {
        assert_int_equal(level_info(wheel, level).slots, standard.level[level].slots);
        assert_int_equal(level_info(wheel, level).span, standard.level[level].span);
    }
    assert_int_equal(tw_wheel_range(wheel), UINT64_MAX);
    tw_wheel_fini(wheel);
}

static void a_ring_takes_its_slots_from_any_integer(void **state)
{
    (void)state;
    enum { FEW = 7 };
    static const struct tw_geometry constant = TW_GEOMETRY_HASHED(FEW);
    int n = 100;
    int64_t many = 1 << 18;
    struct tw_geometry simple = TW_GEOMETRY_SIMPLE(n), hashed = TW_GEOMETRY_HASHED(many),
                       growing = TW_GEOMETRY_GROWING((uint16_t)n);
    assert_int_equal(constant.level[0].slots, 7);
    assert_int_equal(simple.level[0].slots, 100);
    assert_int_equal(hashed.level[0].slots, 262144);
    assert_int_equal(growing.level[0].slots, 100);
    n = -1;
    simple = (struct tw_geometry)TW_GEOMETRY_SIMPLE(n);
    assert_int_equal(tw_geometry_check(&simple, NULL, 0), TW_EGEOMETRY);
}

static void expect_message(const struct tw_geometry *g, const char *expected)
{
    char message[200];
    assert_int_equal(tw_geometry_check(g, message, sizeof message), TW_EGEOMETRY);
    assert_string_equal(message, expected);
    assert_int_equal(tw_wheel_size(g), 0);
}

static void the_number_of_levels_is_checked(void **state)
{
    (void)state;
    struct tw_geometry g = TW_GEOMETRY_CLOCK;
    g.levels = 0;
    expect_message(&g, "levels 0: must be 1 to 64");
    g.levels = 65;
    expect_message(&g, "levels 65: must be 1 to 64");
}

static void the_overflow_is_checked(void **state)
{
    (void)state;
    struct tw_geometry g = TW_GEOMETRY_CLOCK;
    g.overflow = (enum tw_overflow)3;
    expect_message(&g, "overflow 3: must be 0 (reject), 1 (rounds) or 2 (grow)");
}

static void the_slots_of_each_level_are_checked(void **state)
{
    (void)state;
    struct tw_geometry g = TW_GEOMETRY_CLOCK;
    g.level[3].slots = 1;
    expect_message(&g, "slots 1 on level 3: must be 2 to 262144");
    g.level[3].slots = TW_GEOMETRY_SLOTS_MAX + 1;
    expect_message(&g, "slots 262145 on level 3: must be 2 to 262144");
}

static void the_span_of_each_level_is_checked(void **state)
{
    (void)state;
    struct tw_geometry g = TW_GEOMETRY_CLOCK;
    g.level[0].span = 2;
    expect_message(&g, "span 2 on level 0: must be 1");
    g = (struct tw_geometry)TW_GEOMETRY_CLOCK;
    g.level[1].span = 1;
    expect_message(&g, "span 1 on level 1: must be 2 to 60, a multiple of 1");
    g.level[1].span = 61;
    expect_message(&g, "span 61 on level 1: must be 2 to 60, a multiple of 1");
    g = (struct tw_geometry)TW_GEOMETRY_CLOCK;
    g.level[2].span = 150;
    expect_message(&g, "span 150 on level 2: must be 120 to 3600, a multiple of 60");
}

static void a_message_is_cut_to_its_buffer(void **state)
{
    (void)state;
    struct tw_geometry g = TW_GEOMETRY_CLOCK;
    g.levels = 0;
    char message[10] = "untouched";
    assert_int_equal(tw_geometry_check(&g, message, 0), TW_EGEOMETRY);
    assert_string_equal(message, "untouched");
    assert_int_equal(tw_geometry_check(&g, message, sizeof message), TW_EGEOMETRY);
    assert_string_equal(message, "levels 0:");
    assert_int_equal(tw_geometry_check(&g, message, 1), TW_EGEOMETRY);
    assert_string_equal(message, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_preset_is_valid),
        cmocka_unit_test(no_geometry_is_the_default),
        cmocka_unit_test(a_ring_takes_its_slots_from_any_integer),
        cmocka_unit_test(the_number_of_levels_is_checked),
        cmocka_unit_test(the_overflow_is_checked),
        cmocka_unit_test(the_slots_of_each_level_are_checked),
        cmocka_unit_test(the_span_of_each_level_is_checked),
        cmocka_unit_test(a_message_is_cut_to_its_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
