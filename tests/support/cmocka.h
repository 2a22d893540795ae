/* SPDX-License-Identifier: MIT
 *
 * Includes cmocka, after the headers that it needs, and makes wheels: nearly every wheel test needs a wheel
 * for each geometry of a list.
 */
#ifndef TW_TESTS_CMOCKA_H
#define TW_TESTS_CMOCKA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <tickwheel/wheel.h>

static inline struct tw_wheel *wheel_of(const struct tw_geometry *geometry, uint64_t now)
{
    struct tw_wheel *wheel = NULL;
    assert_int_equal(tw_wheel_new(&wheel, geometry, now), 0);
    return wheel;
}

/* A geometry from `levels` pairs of slots and step. 4,2 3,3 is two levels, the lower with lookahead. */
static inline struct tw_geometry shape(enum tw_overflow overflow, uint32_t levels, ...)
{
    struct tw_geometry g = {.levels = levels, .overflow = overflow};
    uint64_t span = 1;
    va_list arguments;
    va_start(arguments, levels);
    for (uint32_t l = 0; l < levels; l++) {
        g.level[l] = (struct tw_level){.slots = va_arg(arguments, uint32_t), .span = span};
        span *= va_arg(arguments, uint32_t);
    }
    va_end(arguments);
    return g;
}

/* A geometry that reaches the end of time. On level 0, `step` of the `slots` slots make a slot of level 1. */
static inline struct tw_geometry to_the_end(uint32_t slots, uint32_t step, uint32_t upper_slots,
                                            uint32_t upper_step)
{
    struct tw_geometry g = {.levels = 1, .overflow = TW_OVERFLOW_REJECT, .level = {{slots, 1}}};
    const struct tw_level *top = g.level;
    for (uint64_t span = step; top->span <= UINT64_MAX / top->slots; span *= upper_step) {
        g.level[g.levels] = (struct tw_level){.slots = upper_slots, .span = span};
        top = &g.level[g.levels++];
    }
    return g;
}

/* The geometries of the tests of behaviour: all presets, textbook geometries and odd geometries. */
static inline uint32_t all_shapes(struct tw_geometry *g)
{
    uint32_t n = 0;
    g[n++] = (struct tw_geometry)TW_GEOMETRY_DEFAULT;
    g[n++] = (struct tw_geometry)TW_GEOMETRY_SMALL;
    g[n++] = (struct tw_geometry)TW_GEOMETRY_SIMPLE(5000);
    g[n++] = (struct tw_geometry)TW_GEOMETRY_HASHED(64);
    g[n++] = (struct tw_geometry)TW_GEOMETRY_HASHED(7);
    g[n++] = (struct tw_geometry)TW_GEOMETRY_GROWING(8);
    g[n++] = (struct tw_geometry)TW_GEOMETRY_GROWING(3);
    g[n++] = (struct tw_geometry)TW_GEOMETRY_CLOCK;
    g[n++] = shape(TW_OVERFLOW_ROUNDS, 3, 4u, 2u, 6u, 3u, 5u, 5u);
    g[n++] = shape(TW_OVERFLOW_REJECT, 2, 100u, 50u, 300u, 300u);
    g[n++] = shape(TW_OVERFLOW_ROUNDS, 2, 12u, 3u, 40u, 40u);           /* three slots of lookahead */
    g[n++] = shape(TW_OVERFLOW_ROUNDS, 3, 64u, 2u, 8u, 4u, 600u, 600u); /* a window wider than the one above */
    g[n++] = shape(TW_OVERFLOW_REJECT, 8, 1000u, 500u, 1000u, 500u, 1000u, 500u, 1000u, 500u, 1000u, 500u,
                   1000u, 500u, 1000u, 500u, 1000u, 500u); /* the end of time without powers of two */
    g[n++] = to_the_end(64, 32, 64, 32);   /* with the short paths of TW_GEOMETRY_DEFAULT, but small */
    g[n++] = to_the_end(64, 32, 200, 100); /* level 1 needs a division */
    return n;
}
enum { SHAPES_MAX = 16 };

#define FOR_ALL_SHAPES(wheel, start)                                                                           \
    struct tw_geometry shapes_[SHAPES_MAX];                                                                    \
    uint32_t shapes_count_ = all_shapes(shapes_);                                                              \
    for (uint32_t shape_ = 0; shape_ < shapes_count_; shape_++)                                                \
        for (struct tw_wheel *wheel = wheel_of(&shapes_[shape_], start); wheel != NULL;                        \
             assert_null(tw_wheel_check(wheel)), tw_wheel_free(wheel), wheel = NULL)

#endif
