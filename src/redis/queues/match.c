/* SPDX-License-Identifier: MIT
 *
 * Whether an id matches a pattern, in one pass over the id.
 *
 *     pattern   u s e r : * 7           positions   0   1   2   3   4   5
 *                                       take     u   s   e   r   :   7, and a star stands before position 5
 *
 * Each position has a bit: it is set if the bytes read so far may have led to this position. For each byte of
 * the id, a set bit moves on to the next position if its position takes the byte. A bit with a star before
 * its position stays as well. The id matches if the bit behind the last position is set at the end. So each
 * byte of an id costs a few operations for 64 positions at once, and no pattern costs more than another of
 * its length. The idea is from Baeza-Yates and Gonnet ("A new approach to text searching", 1992), the stars
 * are from Wu and Manber (1992).
 *
 * Rejected: going back to the last star when a byte does not fit, as fnmatch() does. In the worst case that
 * takes the size of the pattern times the size of the id. A pattern "*aaaa...b" of a hundred thousand bytes
 * and an id of a million times "a" kept a server busy for minutes. With a pattern of 255 bytes each such id
 * would still take a third of a second, and here it takes some milliseconds.
 *
 * A pattern is meant to match the same ids as in the server, with two exceptions:
 *   - Bytes above 127 count as numbers above 127, so [a-\xff] contains all of them. As signed chars they
 *     would be negative.
 *   - A star matches an id without bytes.
 */
#include "match.h"

#include <base/assert.h>
#include <string.h>

static void set_bit(uint64_t *words, uint32_t position)
{
    words[position / 64] |= UINT64_C(1) << position % 64;
}

static bool bit_is_set(const uint64_t *words, uint32_t position)
{
    return words[position / 64] >> position % 64 & 1;
}

/* ---- reading --------------------------------------------------------------------------------------------- */

/* The part of a pattern's text that is not read yet. */
struct text {
    const unsigned char *at, *end;
};

static size_t left(const struct text *text)
{
    return (size_t)(text->end - text->at);
}

/* Reads one element of a class: a byte, a range, or a byte behind a backslash. */
static void read_element(struct text *text, bool *in_class)
{
    unsigned first, last;
    if (left(text) >= 2 && *text->at == '\\')
        text->at++;
    else if (left(text) >= 3 && text->at[1] == '-') {
        first = text->at[0] < text->at[2] ? text->at[0] : text->at[2];
        last = text->at[0] < text->at[2] ? text->at[2] : text->at[0];
        memset(in_class + first, true, last - first + 1);
        text->at += 3;
        return;
    }
    in_class[*text->at++] = true;
}

/* Reads a class after its bracket. The end of the pattern also ends a class. */
static void read_class(struct text *text, bool *takes)
{
    bool in_class[256] = {false}, not = left(text) > 0 && *text->at == '^';
    text->at += not ;
    while (left(text) > 0 && *text->at != ']')
        read_element(text, in_class);
    text->at += left(text) > 0;
    for (unsigned byte = 0; byte < 256; byte++)
        takes[byte] = in_class[byte] != not ;
}

/* Reads which bytes one position takes. */
static void read_position(struct text *text, bool *takes)
{
    unsigned char first = *text->at++;
    memset(takes, first == '?', 256);
    if (first == '[')
        read_class(text, takes);
    else if (first == '\\' && left(text) > 0)
        takes[*text->at++] = true;
    else
        takes[first] = true;
}

void tw__redis_pattern_read(struct tw__redis_pattern *pattern, struct tw__redis_bytes bytes)
{
    struct text text = {(const unsigned char *)bytes.at, (const unsigned char *)bytes.at + bytes.size};
    bool takes[256];
    TW_ASSERT(bytes.size <= TW__REDIS_PATTERN_MAX);
    memset(pattern, 0, sizeof *pattern);
    while (left(&text) > 0) {
        if (*text.at == '*') {
            set_bit(pattern->stay, pattern->positions);
            text.at++;
            continue;
        }
        read_position(&text, takes);
        for (unsigned byte = 0; byte < 256; byte++)
            if (takes[byte])
                set_bit(pattern->takes[byte], pattern->positions);
        pattern->positions++;
    }
}

/* ---- matching -------------------------------------------------------------------------------------------- */

/* Moves the bits on for one byte. Returns whether any is left. */
static bool step_along(const struct tw__redis_pattern *pattern, uint64_t *at, unsigned char byte)
{
    uint64_t carry = 0, any = 0;
    for (uint32_t i = 0; i <= pattern->positions / 64; i++) {
        uint64_t moving = at[i] & pattern->takes[byte][i];
        at[i] = (at[i] & pattern->stay[i]) | moving << 1 | carry;
        carry = moving >> 63;
        any |= at[i];
    }
    return any != 0;
}

bool tw__redis_pattern_matches(const struct tw__redis_pattern *pattern, struct tw__redis_bytes id)
{
    uint64_t at[TW__REDIS_PATTERN_WORDS] = {1};
    bool ends_with_star = bit_is_set(pattern->stay, pattern->positions);
    for (size_t i = 0; i < id.size; i++) {
        if (ends_with_star && bit_is_set(at, pattern->positions))
            return true;
        if (!step_along(pattern, at, (unsigned char)id.at[i]))
            return false;
    }
    return bit_is_set(at, pattern->positions);
}
