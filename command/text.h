/* SPDX-License-Identifier: MIT
 *
 * Small questions about texts.
 */
#ifndef COMMAND_TEXT_H
#define COMMAND_TEXT_H

#include <tickwheel/task.h>

#include <stdbool.h>

static inline bool text_begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Copies a text as far as `size` bytes have room for it. Control bytes, which a terminal would obey, and bytes
 * that are not ASCII become '?'. */
static inline void text_clean(char *to, size_t size, struct tw_bytes from)
{
    const char *text = from.data;
    size_t i = 0;
    for (; i < from.size && i + 1 < size; i++)
        to[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
    to[i] = '\0';
}

/* Returns the value of a hexadecimal digit, -1 for another character. */
static inline int text_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

#endif
