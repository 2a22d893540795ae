/* SPDX-License-Identifier: MIT
 *
 * Hears a reader of the command: its standard output and standard error become texts in memory.
 */
#ifndef TESTS_COMMAND_HEARD_H
#define TESTS_COMMAND_HEARD_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct heard {
    char *out, *err; /* terminated, once it has ended */
    size_t out_size, err_size;
    FILE *before_out, *before_err;
};

/* Begins to hear, and ends. Between the two, stdout and stderr are other streams (glibc lets a program assign
 * them); the descriptors stay as they are. */
void heard_begin(struct heard *heard);
void heard_end(struct heard *heard);
void heard_free(struct heard *heard);

/* Requires that a terminal obeys no byte of a text: it has no control characters besides newlines. */
void heard_require_clean(const char *text, size_t size);

/* Returns the number of lines of a text. */
size_t heard_lines(const char *text, size_t size);

/* Puts bytes into a file in memory. Returns its path, under which the same process can open it, and which is
 * the same at each call. The file holds these bytes until the next call. */
const char *heard_file(const uint8_t *data, size_t size);

#endif
