/* SPDX-License-Identifier: MIT
 *
 * How much a long test does: least where TICKWHEEL_LIGHT is set, as by sanitizers and coverage, most where
 * TICKWHEEL_LONG is, as by `make rounds`.
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
