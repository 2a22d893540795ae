/* SPDX-License-Identifier: MIT
 *
 * Damage to a file of SQLite. The bytes of an input choose it.
 *
 * Three kinds of damage: bytes of the file or of its log are other ones; pages are swapped or cut off; or
 * another program has written values into our tables that we never write. The checksums of a damaged log are
 * made anew with half of the inputs, or SQLite would look no further.
 */
#ifndef TESTS_STORE_DAMAGE_H
#define TESTS_STORE_DAMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes {
    unsigned char *at;
    size_t size;
};

struct input {
    const uint8_t *at;
    size_t left;
};

/* The next n bytes as a number; 0 behind the end. */
uint64_t damage_take(struct input *input, unsigned n);

/* Damages the bytes of a file, or of a log. */
void damage_bytes(struct input *input, struct bytes *bytes, bool is_log);

/* Makes the checksums of a log anew. */
void damage_seal(struct bytes *log);

/* Writes into the tables of the store in this file, at most so many times, as one program does. */
void damage_tables(struct input *input, const char *path, int most);

#endif
