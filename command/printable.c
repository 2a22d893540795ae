/* SPDX-License-Identifier: MIT */
#include "printable.h"

#include "text.h"

#include <base/utf8.h>

#include <string.h>

size_t printable_char(const char *bytes, size_t size)
{
    uint32_t point;
    size_t length = tw__utf8_decode(bytes, size, &point);
    bool control = length > 0 && tw__utf8_is_control(point);
    /* These change the direction of the text behind them. */
    bool turns = length > 0 && ((point >= 0x202a && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069) ||
                                point == 0x200e || point == 0x200f || point == 0x2028 || point == 0x2029);
    return control || turns ? 0 : length;
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

size_t printable_write(struct tw_bytes bytes, bool exact, size_t columns, FILE *out)
{
    const char *text = bytes.data;
    bool whole = fits(text, bytes.size, exact, columns);
    size_t room = whole ? columns : columns - 3, used = 0;
    for (size_t at = 0, length; at < bytes.size; at += length) {
        size_t wide = columns_of(text + at, bytes.size - at, exact, &length);
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

size_t printable_read(char *text)
{
    char *to = text;
    for (const char *from = text; *from != '\0';) {
        int high = from[0] == '\\' && from[1] == 'x' ? text_hex_digit(from[2]) : -1;
        int low = high >= 0 ? text_hex_digit(from[3]) : -1;
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

/* ---- words of a shell ------------------------------------------------------------------------------------ */

static bool is_printable(const char *text)
{
    size_t length;
    for (size_t left = strlen(text); left > 0; text += length, left -= length)
        if ((length = printable_char(text, left)) == 0)
            return false;
    return true;
}

/* In '...' a quote ends the quotes, and stands between this part and the next. */
static void write_quoted(const char *word, FILE *out)
{
    fputc('\'', out);
    for (; *word != '\0'; word++)
        if (*word == '\'')
            fputs("'\\''", out);
        else
            fputc(*word, out);
    fputc('\'', out);
}

static void write_escaped(const char *word, FILE *out)
{
    size_t length;
    fputs("$'", out);
    for (size_t left = strlen(word); left > 0; word += length, left -= length) {
        length = printable_char(word, left);
        if (length > 0)
            fprintf(out, "%s%.*s", *word == '\'' || *word == '\\' ? "\\" : "", (int)length, word);
        else
            fprintf(out, "\\x%02x", (unsigned char)*word);
        length = length > 0 ? length : 1;
    }
    fputc('\'', out);
}

void printable_word(const char *word, FILE *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@%+=,";
    if (*word != '\0' && word[strspn(word, plain)] == '\0')
        fputs(word, out);
    else if (is_printable(word))
        write_quoted(word, out);
    else
        write_escaped(word, out);
}
