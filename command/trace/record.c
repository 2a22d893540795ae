/* SPDX-License-Identifier: MIT
 *
 * Text is read in large pieces. The whole lines of a piece are parsed in the buffer, and an unfinished last
 * line moves to the front before the next piece is read. A line always ends with a newline inside the buffer.
 * So the parser of numbers needs no bound, because it stops at the newline.
 *
 * The parser guesses and skips nothing. The first error ends the load.
 */
#include "record.h"

#include "command.h"
#include "figures.h"
#include "source.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_SIZE = 1 << 20, FOUND_SIZE = 40, MESSAGE_SIZE = 200, FIRST_ROOM = 1 << 12 };
enum { END_OF_LINE = '\n' };

static const char HEADER[] = "# tickwheel trace 1";

struct parser {
    struct trace *trace;
    uint64_t line;
    const char *at, *end; /* the rest of the line; *end is its newline */
};

/* ---- errors --------------------------------------------------------------------------------------------- */

/* The next part of the line for an error message: up to `stop`, or the whole rest of the line for
 * END_OF_LINE. It is quoted, shows unprintable bytes as \xNN, and is cut if it is long. */
static struct figure found(const struct parser *p, char stop)
{
    struct figure shown = {"the end of the line"};
    const char *at = p->at;
    size_t length = 0;
    if (at == p->end)
        return shown;
    shown.text[length++] = '"';
    for (; at < p->end && *at != stop && length < FOUND_SIZE; at++) {
        unsigned char byte = (unsigned char)*at;
        if (byte >= ' ' && byte < 127)
            shown.text[length++] = *at;
        else
            length += (size_t)sprintf(shown.text + length, "\\x%02X", byte);
    }
    snprintf(shown.text + length, sizeof shown.text - length, length >= FOUND_SIZE ? "...\"" : "\"");
    return shown;
}

/* Prints "FILE:LINE: found THIS, expected THAT". Returns false, so that the caller can return its result. */
__attribute__((format(printf, 3, 4))) static bool wrong(const struct parser *p, const char *what,
                                                        const char *expected, ...)
{
    char message[MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, expected);
    vsnprintf(message, sizeof message, expected, arguments);
    va_end(arguments);
    complain("%s:%" PRIu64 ": found %s, expected %s", p->trace->path, p->line, what, message);
    return false;
}

/* The next field for an error message. If there is a space in its place, the rest of the line. */
static struct figure found_field(const struct parser *p)
{
    return found(p, *p->at == ' ' ? END_OF_LINE : ' ');
}

/* ---- fields --------------------------------------------------------------------------------------------- */

/* Reads a decimal number of at most `max` that ends at a space or at the end of the line. */
static bool parse_number(struct parser *p, const char *name, uint64_t max, uint64_t *number)
{
    const char *at = p->at;
    uint64_t value = 0, digit;
    bool fits = true;
    for (; (digit = (uint64_t)(unsigned char)*at - '0') < 10; at++)
        fits &= !__builtin_mul_overflow(value, 10, &value) && !__builtin_add_overflow(value, digit, &value);
    if (at == p->at || (*at != ' ' && at != p->end) || !fits || value > max)
        return wrong(p, found_field(p).text, "%s, a number from 0 to %" PRIu64, name, max);
    p->at = at;
    *number = value;
    return true;
}

static bool parse_space(struct parser *p, const char *next)
{
    if (*p->at == ' ' && p->at < p->end) {
        p->at++;
        return true;
    }
    return wrong(p, found(p, END_OF_LINE).text, "a space and then %s", next);
}

static bool parse_what(struct parser *p, char *what)
{
    char letter = *p->at;
    bool alone = letter != '\n' && (p->at[1] == ' ' || p->at + 1 == p->end);
    if (!alone || letter == '\0' || strchr("amcf", letter) == NULL)
        return wrong(p, found_field(p).text, "an operation: a, m, c or f");
    *what = letter;
    p->at++;
    return true;
}

static bool parse_fields(struct parser *p, struct record *record)
{
    uint64_t id = 0;
    record->deadline = 0;
    if (!parse_number(p, "TICK", UINT64_MAX - 1, &record->tick) || !parse_space(p, "an operation") ||
        !parse_what(p, &record->what) || !parse_space(p, "an ID") || !parse_number(p, "ID", TRACE_ID_MAX, &id))
        return false;
    record->id = (uint32_t)id;
    if (record->what == RECORD_ADD || record->what == RECORD_MOVE)
        return parse_space(p, "a DEADLINE") && parse_number(p, "DEADLINE", UINT64_MAX, &record->deadline);
    return true;
}

/* ---- lines ---------------------------------------------------------------------------------------------- */

/* Returns room for one more record; NULL, after an error, if there is no memory. */
static struct record *next_record(struct parser *p)
{
    struct trace *trace = p->trace;
    if (trace->count == trace->room) {
        size_t room = trace->room == 0 ? FIRST_ROOM : trace->room * 2;
        void *records = realloc(trace->records, room * sizeof *trace->records);
        if (records == NULL) {
            complain("%s:%" PRIu64 ": no memory for more than %zu operations", trace->path, p->line,
                     trace->count);
            return NULL;
        }
        trace->records = records;
        trace->room = room;
    }
    return &trace->records[trace->count];
}

static bool parse_record(struct parser *p)
{
    struct trace *trace = p->trace;
    const char *start = p->at;
    struct record *record = next_record(p);
    if (record == NULL || !parse_fields(p, record))
        return false;
    if (p->at != p->end)
        return wrong(p, found(p, END_OF_LINE).text, "the end of the line");
    if (trace->count > 0 && record->tick < trace->last_tick) {
        p->at = start;
        return wrong(p, found_field(p).text, "a TICK not smaller than the one before it, %" PRIu64,
                     trace->last_tick);
    }
    record->line = p->line;
    if (trace->count++ == 0)
        trace->first_tick = record->tick;
    trace->last_tick = record->tick;
    if (record->id >= trace->ids)
        trace->ids = record->id + 1;
    return true;
}

/* Keeps the value of a note "# key: value" if this is the key, and it has not been seen before. */
static void keep_note(const struct parser *p, const char *key, char *note)
{
    size_t length = strlen(key);
    if (note[0] != '\0' || (size_t)(p->end - p->at) <= length || memcmp(p->at, key, length) != 0)
        return;
    size_t rest = (size_t)(p->end - p->at) - length;
    if (rest > TRACE_NOTE_SIZE - 1)
        rest = TRACE_NOTE_SIZE - 1;
    memcpy(note, p->at + length, rest);
    note[rest] = '\0';
}

static bool parse_header(struct parser *p)
{
    size_t length = sizeof HEADER - 1;
    if ((size_t)(p->end - p->at) == length && memcmp(p->at, HEADER, length) == 0)
        return true;
    return wrong(p, found(p, END_OF_LINE).text, "\"%s\" (this program reads version 1)", HEADER);
}

static bool parse_line(struct parser *p)
{
    if (p->line == 1)
        return parse_header(p);
    if (p->at == p->end)
        return true;
    if (*p->at != '#')
        return parse_record(p);
    keep_note(p, "# source: ", p->trace->source);
    keep_note(p, "# tick: ", p->trace->tick);
    return true;
}

/* Parses the whole lines of a text. *used is then the start of the unfinished last line. */
static bool parse_lines(struct parser *p, const char *text, size_t length, size_t *used)
{
    const char *newline, *at = text;
    while ((newline = memchr(at, '\n', length - (size_t)(at - text))) != NULL) {
        p->line++;
        p->at = at;
        p->end = newline;
        if (!parse_line(p))
            return false;
        at = newline + 1;
    }
    *used = (size_t)(at - text);
    return true;
}

/* ---- loading -------------------------------------------------------------------------------------------- */

/* Checks the end of the text, where `left` bytes follow the last newline. */
static bool check_end(struct parser *p, size_t left)
{
    p->line++;
    if (left > 0)
        return wrong(p, "the end of the file in the middle of a line", "a newline");
    if (p->line == 1)
        return wrong(p, "an empty file", "\"%s\"", HEADER);
    return true;
}

static bool unreadable(const struct parser *p, const char *problem)
{
    complain("%s:%" PRIu64 ": found %s", p->trace->path, p->line + 1, problem);
    return false;
}

static bool parse_source(struct parser *p, struct source *source, char *text)
{
    size_t left = 0, used;
    for (;;) {
        ssize_t got = source_read(source, text + left, TEXT_SIZE - left);
        if (got < 0)
            return unreadable(p, source_problem(source));
        if (got == 0)
            return check_end(p, left);
        if (!parse_lines(p, text, left + (size_t)got, &used))
            return false;
        left += (size_t)got - used;
        memmove(text, text + used, left);
        if (left == TEXT_SIZE) {
            p->line++;
            return wrong(p, "a line that does not end", "at most %d bytes", TEXT_SIZE - 1);
        }
    }
}

static void name_trace(struct trace *trace, const char *path)
{
    const char *slash = strrchr(path, '/');
    bool standard = strcmp(path, "-") == 0;
    trace->path = standard ? "standard input" : path;
    trace->name = slash == NULL ? trace->path : slash + 1;
}

int trace_load(struct trace *trace, const char *path)
{
    memset(trace, 0, sizeof *trace);
    name_trace(trace, path);
    struct source *source = source_open(path);
    char *text = malloc(TEXT_SIZE);
    struct parser parser = {.trace = trace};
    bool good = source != NULL && text != NULL;
    if (!good)
        complain("%s: cannot be opened: %s", trace->path, strerror(errno));
    good = good && parse_source(&parser, source, text);
    free(text);
    source_close(source);
    if (!good)
        trace_free(trace);
    trace->tick_ns = figure_tick(trace->tick);
    return good ? COMMAND_GOOD : COMMAND_INPUT;
}

void trace_drop_remarks(struct trace *trace)
{
    size_t kept = 0;
    for (size_t i = 0; i < trace->count; i++)
        if (trace->records[i].what != RECORD_FIRED)
            trace->records[kept++] = trace->records[i];
    trace->count = kept;
}

void trace_free(struct trace *trace)
{
    free(trace->records);
    trace->records = NULL;
    trace->count = trace->room = 0;
}
