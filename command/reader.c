/* SPDX-License-Identifier: MIT */
#include "reader.h"

#include "command.h"
#include "lines.h"

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

/* Prints an error about a line. Control bytes in `found` become '?', because a terminal would obey them. */
static void complain_about(struct reader *reader, const char *expected, const char *found)
{
    char clean[61];
    size_t size = 0;
    for (; size < sizeof clean - 1 && found[size] != '\0'; size++)
        clean[size] = (unsigned char)found[size] < ' ' || found[size] == 127 ? '?' : found[size];
    clean[size] = '\0';
    make_room(reader);
    complain("%s:%" PRIu64 ": %s; the line is \"%s\"", reader->path, reader->number, expected, clean);
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
