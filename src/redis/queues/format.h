/* SPDX-License-Identifier: MIT
 *
 * The format of all that is saved or logged as bytes: chunks, changes and snapshots. The bytes of a chunk and
 * of changes begin with its number.
 */
#ifndef TW_REDIS_FORMAT_H
#define TW_REDIS_FORMAT_H

#include "bytes.h"

/* A file has the format plus 100, and the server keeps the same number with each queue in a snapshot. So format
 * 1 is 101 there, and nothing that was written before format 1 is mistaken for it: that had the numbers 0 to
 * 5. */
enum { TW__REDIS_FORMAT = 1, TW__REDIS_FORMAT_BASE = 100 };
enum { TW__REDIS_FORMAT_NUMBER = TW__REDIS_FORMAT_BASE + TW__REDIS_FORMAT };

/* The format that a number in a file stands for; 0: a format from before format 1. */
static inline uint64_t tw__redis_format(uint64_t number)
{
    return number < TW__REDIS_FORMAT_BASE ? 0 : number - TW__REDIS_FORMAT_BASE;
}

/* The format of a chunk or of changes; 0 also if the bytes do not begin with a number. */
static inline uint64_t tw__redis_format_of(struct tw__redis_bytes bytes)
{
    struct tw__redis_reader reader = {.at = bytes.at, .end = bytes.at + bytes.size};
    return tw__redis_format(tw__redis_reader_number(&reader, UINT64_MAX));
}

/* Begins to read a chunk or changes. Another format is a fault. */
static inline struct tw__redis_reader tw__redis_format_open(struct tw__redis_bytes bytes)
{
    struct tw__redis_reader reader = {.at = bytes.at, .end = bytes.at + bytes.size};
    if (tw__redis_reader_number(&reader, UINT64_MAX) != TW__REDIS_FORMAT_NUMBER)
        reader.at = NULL;
    return reader;
}

#endif
