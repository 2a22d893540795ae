/* SPDX-License-Identifier: MIT
 *
 * Patterns of ids, as the server has them in KEYS and SCAN:
 *
 *     *      any bytes, or none            [abc]   one of these bytes       \x    the byte x, as it is
 *     ?      any one byte                  [a-z]   one of this range        else  the byte itself
 *                                          [^a]    any byte but these
 *
 * Allocates no memory. How it works: head of match.c.
 */
#ifndef TW_REDIS_MATCH_H
#define TW_REDIS_MATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "bytes.h"

enum {
    TW__REDIS_PATTERN_MAX =
        255, /* bytes: so all positions of a pattern, and its end, fit in the bits of four words */
    TW__REDIS_PATTERN_WORDS = (TW__REDIS_PATTERN_MAX + 1) / 64
};

/* A pattern that has been read. */
struct tw__redis_pattern {
    uint32_t positions;                     /* their number; each takes one byte */
    uint64_t stay[TW__REDIS_PATTERN_WORDS]; /* by position: a star stands before it */
    uint64_t
        takes[256]
             [TW__REDIS_PATTERN_WORDS]; /* by byte, then by position: whether the position takes the byte */
};

/* Reads a pattern. Requires: it has at most TW__REDIS_PATTERN_MAX bytes. Cost: O(256 * bytes). */
void tw__redis_pattern_read(struct tw__redis_pattern *pattern, struct tw__redis_bytes text);

/* Whether a whole id matches. Cost: O(bytes of the id * words of the pattern), for every pattern. */
bool tw__redis_pattern_matches(const struct tw__redis_pattern *pattern, struct tw__redis_bytes id);

#endif
