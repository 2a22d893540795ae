/* SPDX-License-Identifier: MIT
 *
 * Bytes of any kind as text that a terminal shows and does not obey. Printable characters of UTF-8 stand for
 * themselves, and every other byte is \xNN. If `exact`, a backslash is doubled, so that the text can be read
 * back.
 */
#ifndef COMMAND_PRINTABLE_H
#define COMMAND_PRINTABLE_H

#include <tickwheel/task.h>

#include <stdbool.h>
#include <stdio.h>

/* Returns the bytes of the printable character at the start of `bytes`; 0 if there is none. */
size_t printable_char(const char *bytes, size_t size);

/* Writes the bytes as text. If the text is longer than `columns`, cuts it and ends it with "...".
 * Returns: the columns of the text. */
size_t printable_write(struct tw_bytes bytes, bool exact, size_t columns, FILE *out);

/* Reads an exact text back: \xNN is a byte, \\ a backslash. Any other backslash stands for itself. Writes the
 * bytes over the text. Returns: their number. */
size_t printable_read(char *text);

/* Writes a word as a shell reads it: in quotes if it needs them. A byte that is not printable is \xNN in
 * $'...', which bash and the younger POSIX shells know. */
void printable_word(const char *word, FILE *out);

#endif
