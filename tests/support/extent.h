/* SPDX-License-Identifier: MIT
 *
 * The extent of a long test: smallest when TICKWHEEL_LIGHT is set, as by sanitizers and coverage, and largest
 * when TICKWHEEL_LONG is set, as by `make rounds`.
 */
#ifndef TW_TESTS_EXTENT_H
#define TW_TESTS_EXTENT_H

#include <stdint.h>
#include <stdlib.h>

static inline uint64_t extent(uint64_t light, uint64_t usual, uint64_t full)
{
    if (getenv("TICKWHEEL_LIGHT") != NULL)
        return light;
    return getenv("TICKWHEEL_LONG") != NULL ? full : usual;
}

#endif
