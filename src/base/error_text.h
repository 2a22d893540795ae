/* SPDX-License-Identifier: MIT
 *
 * The text of an error that stays with a task whose attempt has failed.
 */
#ifndef TW_BASE_ERROR_TEXT_H
#define TW_BASE_ERROR_TEXT_H

#include <stddef.h>

enum { TW__ERROR_MAX = 4096 }; /* bytes that stay */

/* Returns how many bytes of a text stay. A longer text is cut where a character of UTF-8 begins, or at
 * TW__ERROR_MAX bytes if no character is there. */
static inline size_t tw__error_size(const char *text, size_t size)
{
    enum { CHARACTER = 4 }; /* bytes of the longest */
    if (size <= TW__ERROR_MAX)
        return size;
    for (size_t cut = TW__ERROR_MAX; cut > TW__ERROR_MAX - CHARACTER; cut--)
        if (((unsigned char)text[cut] & 0xC0) != 0x80)
            return cut;
    return TW__ERROR_MAX;
}

#endif
