/* SPDX-License-Identifier: MIT
 *
 * The check of reserved members with a message, for the functions that check options. It is apart from grow.h,
 * because the wheel has no stdio.
 */
#ifndef TW_BASE_GROW_CHECK_H
#define TW_BASE_GROW_CHECK_H

#include <tickwheel/wheel.h>

#include <base/grow.h>
#include <inttypes.h>
#include <stdio.h>

/* Returns 0, or TW_EINVAL with a message if one of n reserved members of the struct `name` is not 0. */
static inline int tw__grow_check(const char *name, const uint64_t *reserved, size_t n, char *message,
                                 size_t size)
{
    size_t i = tw__grow_reserved(reserved, n);
    if (i == n)
        return 0;
    snprintf(message, size, TW__GROW_REFUSED, name, i, reserved[i]);
    return TW_EINVAL;
}

#endif
