/* SPDX-License-Identifier: MIT
 *
 * Writes text into a fixed buffer, for messages and dumps: the core has no stdio. Text that does not fit is
 * cut off.
 */
#ifndef TW_WHEEL_TEXT_H
#define TW_WHEEL_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct tw__wheel_text {
    char *at;
    size_t size, length;
};

/* Empties the text. Nothing is written to a buffer of size 0, not even the terminating zero. */
static inline void tw__wheel_text_init(struct tw__wheel_text *text, char *buffer, size_t size)
{
    text->at = buffer;
    text->size = size;
    text->length = 0;
    if (size > 0)
        buffer[0] = '\0';
}

static inline void tw__wheel_text_put(struct tw__wheel_text *text, const char *string)
{
    for (; *string != '\0' && text->length + 1 < text->size; string++)
        text->at[text->length++] = *string;
    if (text->size > 0)
        text->at[text->length] = '\0';
}

static inline void tw__wheel_text_number(struct tw__wheel_text *text, uint64_t number)
{
    char digits[21];
    size_t i = sizeof digits - 1;
    digits[i] = '\0';
    do {
        digits[--i] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    tw__wheel_text_put(text, digits + i);
}

#endif
