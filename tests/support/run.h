/* SPDX-License-Identifier: MIT
 *
 * How random tests run: from which seed, which the environment may set, and for how long. Include it after
 * cmocka.h.
 */
#ifndef TW_TESTS_RUN_H
#define TW_TESTS_RUN_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline uint64_t run_seed(void)
{
    const char *given = getenv("SEED");
    uint64_t value = given != NULL ? strtoull(given, NULL, 0) : 20240917;
    print_message("seed %llu\n", (unsigned long long)value);
    return value;
}

/* A shorter run when the machine is slow or the compiler adds checks. */
static inline unsigned run_scaled(unsigned n)
{
    const char *light = getenv("TICKWHEEL_LIGHT");
    return light != NULL && strcmp(light, "1") == 0 ? n / 8 : n;
}

#endif
