/* SPDX-License-Identifier: MIT */
#include "svg.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { TEXT_SIZE = 320 };
static const double TAU = 6.283185307179586;

double svg_round(double value)
{
    return round(value * 100) / 100 + 0.0;
}

struct svg_point svg_on_circle(struct svg_point centre, double radius, double turn)
{
    struct svg_point point = {
        .x = svg_round(centre.x + radius * sin(turn * TAU)),
        .y = svg_round(centre.y - radius * cos(turn * TAU)),
    };
    return point;
}

static void arc_to(FILE *out, struct svg_point centre, double radius, double to, bool large)
{
    struct svg_point end = svg_on_circle(centre, radius, to);
    fprintf(out, "A%g %g 0 %d 1 %g %g", svg_round(radius), svg_round(radius), large, end.x, end.y);
}

void svg_arc(FILE *out, struct svg_point centre, double radius, double from, double to)
{
    struct svg_point start = svg_on_circle(centre, radius, from);
    fprintf(out, "M%g %g", start.x, start.y);
    /* An arc that ends where it starts would not be drawn at all. */
    if (to - from > 0.999)
        arc_to(out, centre, radius, from + 0.5, false);
    arc_to(out, centre, radius, to - from > 0.999 ? from + 1 : to, to - from > 0.5 && to - from <= 0.999);
}

/* The bytes of the first character of a text; 0 if it is not UTF-8, or XML does not allow it. */
static size_t character_length(const char *text)
{
    static const uint32_t LEAST[] = {0, ' ', 0x80, 0x800, 0x10000};
    unsigned char lead = (unsigned char)text[0];
    size_t length = lead < 0x80 ? 1 : lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : lead >> 3 == 30 ? 4 : 0;
    uint32_t code = length == 1 ? lead : lead & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        if (((unsigned char)text[i] & 0xC0) != 0x80)
            return 0;
        code = code << 6 | ((unsigned char)text[i] & 0x3F);
    }
    bool control = code == 0x7F, surrogate = code >> 11 == 0x1B, none = (code & 0xFFFE) == 0xFFFE;
    return code < LEAST[length] || code > 0x10FFFF || control || surrogate || none ? 0 : length;
}

void svg_escape(FILE *out, const char *text)
{
    while (*text != '\0') {
        size_t length = character_length(text);
        if (*text == '&')
            fputs("&amp;", out);
        else if (*text == '<')
            fputs("&lt;", out);
        else if (*text == '>')
            fputs("&gt;", out);
        else if (*text == '"')
            fputs("&quot;", out);
        else if (length == 0)
            fputc('?', out);
        else
            fwrite(text, 1, length, out);
        text += length == 0 ? 1 : length;
    }
}

void svg_text(FILE *out, struct svg_point at, const char *class, const char *format, ...)
{
    char text[TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(out, "<text x=\"%g\" y=\"%g\" class=\"%s\">", svg_round(at.x), svg_round(at.y), class);
    svg_escape(out, text);
    fputs("</text>\n", out);
}
