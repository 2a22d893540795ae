/* SPDX-License-Identifier: MIT
 *
 * Structs of the interface that a later version can extend, while a program and the library have different
 * versions.
 *
 *   - The library fills a struct in: the program passes the size that its headers gave the struct.
 *   - The program fills a struct in: it ends in reserved members, which are 0 in this version. A later version
 *     puts a new member in the place of a reserved one, so the size stays, also in arrays. The library refuses
 *     another value: the program was compiled for a version that has a member there.
 */
#ifndef TW_BASE_GROW_H
#define TW_BASE_GROW_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Copies a struct of `known` bytes to the caller's, which has `size` bytes. Members that the caller does not
 * know are left out, and members that the library does not know become 0. */
static inline void tw__grow_fill(void *caller, size_t size, const void *filled, size_t known)
{
    memcpy(caller, filled, size < known ? size : known);
    if (size > known)
        memset((char *)caller + known, 0, size - known);
}

/* Returns the first of n reserved members that is not 0, or n. */
static inline size_t tw__grow_reserved(const uint64_t *reserved, size_t n)
{
    size_t i = 0;
    while (i < n && reserved[i] == 0)
        i++;
    return i;
}

/* The message for such a member: the name of its struct, its index, as a size_t, and its value. A file that
 * uses it has inttypes.h. */
#define TW__GROW_REFUSED                                                                                       \
    "%s.reserved[%zu] is %" PRIu64                                                                             \
    ": expected 0; zero the struct first, or take a library as new as the headers"

#define TW__GROW_ROOM(reserved) (sizeof(reserved) / sizeof(reserved)[0])
#define TW__GROW_FIRST(reserved) tw__grow_reserved(reserved, TW__GROW_ROOM(reserved))
#define TW__GROW_UNUSED(reserved) (TW__GROW_FIRST(reserved) == TW__GROW_ROOM(reserved))

/* 0, or TW_EINVAL with a message if a reserved member of the struct `name` is not 0. A macro, because the wheel
 * has no stdio: a file that uses it has stdio.h and inttypes.h. */
#define TW__GROW_CHECK(name, reserved, message, size)                                                          \
    (TW__GROW_UNUSED(reserved) ? 0                                                                             \
                               : (snprintf(message, size, TW__GROW_REFUSED, name, TW__GROW_FIRST(reserved),    \
                                           (reserved)[TW__GROW_FIRST(reserved)]),                              \
                                  TW_EINVAL))

#endif
