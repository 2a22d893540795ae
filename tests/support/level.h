/* SPDX-License-Identifier: MIT
 *
 * tw_wheel_level() as a value.
 */
#ifndef TW_TESTS_LEVEL_H
#define TW_TESTS_LEVEL_H

#include <tickwheel/wheel.h>

static inline struct tw_level_info level_info(const struct tw_wheel *wheel, uint32_t level)
{
    struct tw_level_info info;
    tw_wheel_level(wheel, level, &info, sizeof info);
    return info;
}

#endif
