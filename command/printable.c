/* SPDX-License-Identifier: MIT */
#include "printable.h"

#include <stdint.h>
#include <string.h>

/* Decodes the character at the start of the bytes. Returns its size, 0 if it is not UTF-8. */
static size_t decode(const char *bytes, size_t size, uint32_t *point)
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

size_t printable_char(const char *bytes, size_t size)
{
    uint32_t point;
    size_t length = decode(bytes, size, &point);
    bool control = length > 0 && (point < ' ' || (point >= 0x7f && point < 0xa0));
    /* These change the direction of the text behind them. */
    bool turns = length > 0 && ((point >= 0x202a && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069) ||
                                point == 0x200e || point == 0x200f || point == 0x2028 || point == 0x2029);
    return control || turns ? 0 : length;
}

bool printable_is_utf8(const char *bytes, size_t size)
{
    uint32_t point;
    for (size_t at = 0, length; at < size; at += length)
        if ((length = decode(bytes + at, size - at, &point)) == 0)
            return false;
    return true;
}

/* The text of the first character: its columns, and how many bytes it stands for. */
static size_t columns_of(const char *bytes, size_t size, bool exact, size_t *length)
{
    *length = printable_char(bytes, size);
    if (*length == 0) {
        *length = 1;
        return 4;
    }
    return exact && *bytes == '\\' ? 2 : 1;
}

static bool fits(const char *bytes, size_t size, bool exact, size_t columns)
{
    for (size_t at = 0, used = 0, length; at < size; at += length)
        if ((used += columns_of(bytes + at, size - at, exact, &length)) > columns)
            return false;
    return true;
}

static void write_char(const char *bytes, size_t length, size_t columns, FILE *out)
{
    if (columns == 4)
        fprintf(out, "\\x%02x", (unsigned char)*bytes);
    else
        fprintf(out, "%s%.*s", columns == 2 ? "\\" : "", (int)length, bytes);
}

size_t printable_write(const void *bytes, size_t size, bool exact, size_t columns, FILE *out)
{
    const char *text = bytes;
    bool whole = fits(text, size, exact, columns);
    size_t room = whole ? columns : columns - 3, used = 0;
    for (size_t at = 0, length; at < size; at += length) {
        size_t wide = columns_of(text + at, size - at, exact, &length);
        if (used + wide > room)
            break;
        write_char(text + at, length, wide, out);
        used += wide;
    }
    if (whole)
        return used;
    fputs("...", out);
    return used + 3;
}

/* Returns the value of a hexadecimal digit, -1 if it is none. */
static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

size_t printable_read(char *text)
{
    char *to = text;
    for (const char *from = text; *from != '\0';) {
        int high = from[0] == '\\' && from[1] == 'x' ? digit_of(from[2]) : -1;
        int low = high >= 0 ? digit_of(from[3]) : -1;
        if (low >= 0) {
            *to++ = (char)(high * 16 + low);
            from += 4;
        } else {
            from += from[0] == '\\' && from[1] == '\\';
            *to++ = *from++;
        }
    }
    *to = '\0';
    return (size_t)(to - text);
}
