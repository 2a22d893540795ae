/* SPDX-License-Identifier: MIT */
#include "json.h"

#include <base/utf8.h>

#include <stdlib.h>

json_t *json_number(uint64_t value)
{
    return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

static char *hex_of(struct tw_bytes bytes)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *byte = bytes.data;
    char *text = malloc(bytes.size * 2 + 1);
    for (size_t i = 0; i < bytes.size && text != NULL; i++) {
        text[2 * i] = digits[byte[i] >> 4];
        text[2 * i + 1] = digits[byte[i] & 15];
    }
    if (text != NULL)
        text[bytes.size * 2] = '\0';
    return text;
}

void json_put_bytes(json_t *object, const char *name, struct tw_bytes bytes)
{
    char in_hex[32], *hex;
    if (bytes.data == NULL) {
        json_object_set_new(object, name, json_null());
        return;
    }
    if (tw__is_utf8(bytes.data, bytes.size)) {
        json_object_set_new(object, name, json_stringn(bytes.data, bytes.size));
        return;
    }
    snprintf(in_hex, sizeof in_hex, "%s_hex", name);
    hex = hex_of(bytes);
    json_object_set_new(object, in_hex, hex != NULL ? json_string(hex) : NULL);
    free(hex);
}

/* Writes a piece of JSON. Its library escapes the control characters below the blank; this escapes the others,
 * which stand in strings alone. A piece ends with a whole character. */
static int write_piece(const char *piece, size_t size, void *arg)
{
    FILE *out = arg;
    for (size_t at = 0; at < size; at++) {
        unsigned char byte = (unsigned char)piece[at];
        unsigned char next = at + 1 < size ? (unsigned char)piece[at + 1] : 0;
        bool control = byte == 0xc2 && next >= 0x80 && next < 0xa0; /* U+0080 to U+009F */
        if (control || byte == 0x7f)
            fprintf(out, "\\u%04x", control ? next : byte);
        else
            fputc(byte, out);
        at += control;
    }
    return ferror(out) ? -1 : 0;
}

bool json_line(json_t *object, FILE *out)
{
    bool good = json_dump_callback(object, write_piece, out, JSON_COMPACT) == 0 && fputc('\n', out) != EOF;
    json_decref(object);
    return good;
}
