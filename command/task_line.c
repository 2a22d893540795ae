/* SPDX-License-Identifier: MIT */
#include "task_line.h"

#include <base/when.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const uint64_t second_ns = 1000000000;
static const char TOO_LARGE[] = "expected a time of at most +213503d or @9999-12-31T23:59:59.999Z";

/* ---- durations ----------------------------------------------------------------------------------------- */

bool duration_parse(const char *text, uint64_t *ns)
{
    return tw__duration_parse(text, ns);
}

void duration_print(uint64_t ns, char text[DURATION_SIZE])
{
    static const size_t order[] = {3, 4, 5, 6, 2, 1, 0}; /* d h m s ms us ns */
    size_t at = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        const struct tw__unit *unit = tw__unit(order[i]);
        uint64_t number = ns / unit->ns;
        ns %= unit->ns;
        if (number > 0)
            at += (size_t)snprintf(text + at, DURATION_SIZE - at, "%" PRIu64 "%s", number, unit->name);
    }
    if (at == 0)
        memcpy(text, "0s", sizeof "0s");
}

/* ---- points in time -------------------------------------------------------------------------------------- */

static struct instant at_most_last(struct instant at)
{
    bool later = at.s > TW__TIME_LAST_S || (at.s == TW__TIME_LAST_S && at.ns > TW__TIME_LAST_NS);
    return later ? (struct instant){TW__TIME_LAST_S, TW__TIME_LAST_NS} : at;
}

struct instant instant_of_ms(uint64_t ms)
{
    return at_most_last((struct instant){ms / 1000, ms % 1000 * 1000000});
}

struct instant instant_after(struct instant at, uint64_t ns)
{
    uint64_t sum_ns = at.ns + ns % second_ns;
    return at_most_last((struct instant){at.s + ns / second_ns + sum_ns / second_ns, sum_ns % second_ns});
}

void time_print(struct instant at, char text[TIME_SIZE])
{
    struct tm tm;
    time_t seconds = (time_t)at.s;
    gmtime_r(&seconds, &tm);
    size_t size = strftime(text, TIME_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
    if (at.ns % 1000000 == 0)
        snprintf(text + size, TIME_SIZE - size, ".%03uZ", (unsigned)(at.ns / 1000000));
    else
        snprintf(text + size, TIME_SIZE - size, ".%09uZ", (unsigned)at.ns);
}

/* ---- lines ----------------------------------------------------------------------------------------------- */

/* Cuts off the next word and returns it; at the end of the line, an empty word. */
static char *next_word(char **rest)
{
    char *word = *rest + strspn(*rest, " \t"), *end = word + strcspn(word, " \t");
    *rest = end + strspn(end, " \t");
    *end = '\0';
    return word;
}

/* Returns whether the text is a duration in form, but too large: it is one with a 1 in place of each number. */
static bool is_long(const char *text)
{
    char small[DURATION_SIZE];
    size_t size = 0;
    uint64_t ns;
    for (; *text != '\0' && size < sizeof small - 1; text++)
        if (!tw__digit(*text))
            small[size++] = *text;
        else if (size == 0 || small[size - 1] != '1')
            small[size++] = '1';
    small[size] = '\0';
    return duration_parse(small, &ns);
}

/* Explains why the text is no date: the year is out of range, or the time is not in UTC. */
static const char *explain_date(const char *text)
{
    char other[DURATION_SIZE];
    struct tw__date date;
    struct instant at;
    size_t digits = strspn(text, "0123456789");
    snprintf(other, sizeof other, "2000%s", text + digits); /* the same in another year */
    bool in_form = tw__time_parse(other, &at.s, &at.ns);
    if (in_form && (digits > 4 || strncmp(text, "9999-12-31", strlen("9999-12-31")) == 0))
        return TOO_LARGE;
    if (in_form && digits == 4 && strncmp(text, "1970", 4) < 0)
        return "expected a time from @1970-01-01T00:00:00Z on";
    const char *end = tw__read_date(text, &date);
    if (end != NULL && *end == '.')
        end += 1 + strspn(end + 1, "0123456789");
    if (end != NULL && (*end == '+' || *end == '-'))
        return "expected a time in UTC, such as @2026-12-01T09:00:00Z, without an offset";
    return WHEN_EXPECTED;
}

const char *when_parse(const char *word, struct line *line)
{
    line->absolute = *word == '@';
    if (line->absolute)
        return tw__time_parse(word + 1, &line->at.s, &line->at.ns) ? NULL : explain_date(word + 1);
    if (*word == '+' && duration_parse(word + 1, &line->time_ns))
        return NULL;
    return *word == '+' && is_long(word + 1) ? TOO_LARGE : WHEN_EXPECTED;
}

/* Reads a number of times: x3. */
static bool read_times(const char *word, uint64_t *times)
{
    const char *end = tw__read_digits(word + 1, times);
    return end != NULL && *end == '\0' && *times > 0;
}

/* Takes the id and the payload from the rest of the line. */
static const char *take_task(struct line *line, char *rest)
{
    line->id = next_word(&rest);
    line->payload = rest;
    return *line->id != '\0' ? NULL : "expected an id after the time";
}

static const char *parse_every(struct line *line, char *rest)
{
    line->kind = LINE_EVERY;
    if (!duration_parse(next_word(&rest), &line->period_ns) || line->period_ns == 0)
        return "expected a period after `every`, such as 5s or 1h30m";
    line->time_ns = line->period_ns;
    const char *error;
    char *at = rest + strspn(rest, " \t");
    if (*at == 'x' && tw__digit(at[1])) { /* any other word with x is an id, such as xray */
        char *word = next_word(&rest);
        if (!read_times(word, &line->times))
            return "expected a number of times, x1 or more, such as x3";
        at = rest;
    }
    if (*at == '+' || *at == '@')
        if ((error = when_parse(next_word(&rest), line)) != NULL)
            return error;
    return take_task(line, rest);
}

static const char *parse_move(struct line *line, char *rest)
{
    line->kind = LINE_MOVE;
    line->id = next_word(&rest);
    if (*line->id == '\0')
        return "expected an id after `move`";
    const char *error = when_parse(next_word(&rest), line);
    if (error != NULL)
        return error;
    return *rest == '\0' ? NULL : "expected nothing after the time of `move`";
}

static const char *parse_cancel(struct line *line, char *rest)
{
    line->kind = LINE_CANCEL;
    line->id = next_word(&rest);
    if (*line->id == '\0')
        return "expected an id after `cancel`";
    return *rest == '\0' ? NULL : "expected nothing after the id of `cancel`";
}

static const char *parse_wait(struct line *line, char *rest)
{
    line->kind = LINE_WAIT;
    if (!duration_parse(next_word(&rest), &line->time_ns))
        return "expected a duration after `wait`, such as 2s";
    return *rest == '\0' ? NULL : "expected nothing after the duration of `wait`";
}

const char *line_parse(char *text, struct line *line)
{
    *line = (struct line){.kind = LINE_NOTHING, .id = "", .payload = ""};
    char *rest = text + strspn(text, " \t");
    size_t length = strlen(rest);
    while (length > 0 && (rest[length - 1] == '\r' || rest[length - 1] == ' ' || rest[length - 1] == '\t'))
        rest[--length] = '\0';
    if (length == 0 || *rest == '#')
        return NULL;
    if (*rest == '+' || *rest == '@') {
        line->kind = LINE_TASK;
        const char *error = when_parse(next_word(&rest), line);
        return error != NULL ? error : take_task(line, rest);
    }
    const char *word = next_word(&rest);
    if (strcmp(word, "every") == 0)
        return parse_every(line, rest);
    if (strcmp(word, "move") == 0)
        return parse_move(line, rest);
    if (strcmp(word, "cancel") == 0)
        return parse_cancel(line, rest);
    if (strcmp(word, "wait") == 0)
        return parse_wait(line, rest);
    return "expected a line that begins with +DURATION, @TIME, every, move, cancel or wait";
}
