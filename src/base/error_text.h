/* SPDX-License-Identifier: MIT
 *
 * Texts of errors, and how they are cut.
 */
#ifndef TW_BASE_ERROR_TEXT_H
#define TW_BASE_ERROR_TEXT_H

#include <stddef.h>

/* The end of the store's message about a lock, for programs. Who uses the command cannot set the option. */
#define TW__BUSY_OPTION ", as long as busy_ms says"

/* Returns how many bytes of a text stay if there is room for `most`. A longer text is cut where a character of
 * UTF-8 begins, or at `most` bytes if no character begins near there. */
static inline size_t tw__text_size(const char *text, size_t size, size_t most)
{
    enum { CHARACTER = 4 }; /* bytes of the longest */
    if (size <= most)
        return size;
    for (size_t back = 0; back < CHARACTER && back <= most; back++)
        if (((unsigned char)text[most - back] & 0xC0) != 0x80)
            return most - back;
    return most;
}

#endif
