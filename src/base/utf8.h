/* SPDX-License-Identifier: MIT
 *
 * Characters of UTF-8.
 */
#ifndef TW_BASE_UTF8_H
#define TW_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes the character at the start of the bytes. Returns its size, 0 if it is not UTF-8. */
static inline size_t tw__utf8_decode(const char *bytes, size_t size, uint32_t *point)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (size == 0)
        return 0;
    unsigned char first = (unsigned char)*bytes;
    size_t length = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if ((first >= 0x80 && first < 0xc2) || first > 0xf4 || length > size)
        return 0;
    *point = length == 1 ? first : first & (0xffU >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if (((unsigned char)bytes[i] & 0xc0) != 0x80)
            return 0;
        *point = *point << 6 | ((unsigned char)bytes[i] & 0x3f);
    }
    bool surrogate = *point >= 0xd800 && *point < 0xe000;
    return *point < least[length] || *point > 0x10ffff || surrogate ? 0 : length;
}

/* Whether a terminal would obey the character. */
static inline bool tw__utf8_is_control(uint32_t point)
{
    return point < ' ' || (point >= 0x7f && point < 0xa0);
}

static inline bool tw__is_utf8(const char *bytes, size_t size)
{
    uint32_t point;
    for (size_t at = 0, length; at < size; at += length)
        if ((length = tw__utf8_decode(bytes + at, size - at, &point)) == 0)
            return false;
    return true;
}

/* Writes '?' in place of each byte that is not UTF-8, and of NUL. So everybody can read the text. */
static inline void tw__utf8_clean(char *text, size_t size)
{
    uint32_t point;
    for (size_t at = 0, length; at < size; at += length) {
        length = tw__utf8_decode(text + at, size - at, &point);
        if (length > 0 && text[at] != '\0')
            continue;
        text[at] = '?';
        length = 1;
    }
}

#endif
