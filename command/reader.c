/* SPDX-License-Identifier: MIT */
#include "reader.h"

#include "command.h"
#include "lines.h"
#include "printable.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static bool reader_stops(const struct reader *reader)
{
    return reader->stopped || reader->stopping(reader->arg);
}

static void make_room(const struct reader *reader)
{
    if (reader->hide != NULL)
        reader->hide();
}

/* Copies a line as far as there is room. A byte that is no printable character becomes '?', because a terminal
 * would obey it: among these are the control characters of UTF-8, such as U+009B. */
static void clean(const char *line, char *to, size_t size)
{
    while (*line != '\0') {
        size_t length = printable_char(line, strnlen(line, 4)), shown = length > 0 ? length : 1;
        if (shown >= size)
            break;
        memcpy(to, length > 0 ? line : "?", shown);
        line += shown;
        to += shown;
        size -= shown;
    }
    *to = '\0';
}

/* Prints an error about a line. */
static void complain_about(struct reader *reader, const char *expected, const char *found)
{
    char shown[61];
    clean(found, shown, sizeof shown);
    make_room(reader);
    complain("%s:%" PRIu64 ": %s; the line is \"%s\"", reader->path, reader->number, expected, shown);
    reader->bad_lines++;
    reader->stopped |= reader->strict;
}

static void take_line(struct reader *reader, char *text)
{
    struct line line;
    char found[64];
    snprintf(found, sizeof found, "%s", text);
    const char *expected = line_parse(text, &line);
    if (expected == NULL && line.kind != LINE_NOTHING)
        expected = reader->take(reader->arg, &line);
    if (expected != NULL)
        complain_about(reader, expected, found);
}

static void take(struct reader *reader, enum lines_got got, char *text)
{
    reader->number++;
    if (got == LINES_LINE)
        take_line(reader, text);
    else if (got == LINES_LONG)
        complain_about(reader, "expected a line of at most 1 MiB", text);
    else
        complain_about(reader, "expected a line without NUL bytes", text);
}

/* Reads lines as they arrive, until the end of the input or until the reader is to stop. Returns false if
 * reading failed. */
static bool read_lines(struct reader *reader, struct lines *lines, FILE *unread)
{
    char *text;
    while (!reader_stops(reader)) {
        int wait_ms = lines_more(lines) ? 0 : reader->idle(reader->arg);
        if (reader_stops(reader))
            break;
        enum lines_got got = lines_next(lines, wait_ms, &text);
        reader->ended = got == LINES_END;
        if (reader->ended || got == LINES_FAILED)
            return reader->ended;
        if (got != LINES_NONE)
            take(reader, got, text);
    }
    return unread == NULL || lines_rest(lines, unread);
}

bool reader_read(struct reader *reader, const char *path, FILE *unread)
{
    reader->path = path;
    reader->number = 0;
    reader->ended = false;
    struct lines *lines = lines_open(path, reader->wake);
    bool good = lines != NULL && read_lines(reader, lines, unread);
    if (!good) {
        make_room(reader);
        complain("%s: %s: cannot be read: %s", reader->command, path, strerror(errno));
    }
    if (lines != NULL)
        lines_close(lines);
    return good;
}
