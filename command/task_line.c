/* SPDX-License-Identifier: MIT */
#include "task_line.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const uint64_t second_ns = 1000000000;

/* ---- durations ----------------------------------------------------------------------------------------- */

/* A name that begins with another name stands before it: "ms" before "m". */
static const struct unit {
    const char *name;
    uint64_t ns;
} units[] = {{"ns", 1},
             {"us", 1000},
             {"ms", 1000000},
             {"d", UINT64_C(86400000000000)},
             {"h", UINT64_C(3600000000000)},
             {"m", UINT64_C(60000000000)},
             {"s", UINT64_C(1000000000)}};
enum { UNITS = sizeof units / sizeof units[0] };

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

static const struct unit *unit_at(const char *text)
{
    for (size_t i = 0; i < UNITS; i++)
        if (strncmp(text, units[i].name, strlen(units[i].name)) == 0)
            return &units[i];
    return NULL;
}

/* Reads a decimal number. Returns the text behind it; NULL if there are no digits, or the number
 * overflows. */
static const char *read_digits(const char *text, uint64_t *number)
{
    const char *first = text;
    for (*number = 0; digit(*text); text++)
        if (__builtin_mul_overflow(*number, 10, number) ||
            __builtin_add_overflow(*number, (uint64_t)(*text - '0'), number))
            return NULL;
    return text == first ? NULL : text;
}

/* Reads one number with its unit and adds it to `sum`. Returns the text behind it; NULL if it is not
 * valid. */
static const char *read_part(const char *text, uint64_t *sum)
{
    uint64_t whole, ns, scale, fraction = 0;
    const char *point = text = read_digits(text, &whole), *end;
    if (text == NULL)
        return NULL;
    if (*text == '.')
        for (text++; digit(*text); text++)
            ;
    const struct unit *unit = unit_at(text);
    if (unit == NULL || (text == point + 1 && *point == '.'))
        return NULL;
    end = text + strlen(unit->name);
    scale = unit->ns;
    for (text = point + 1; *point == '.' && digit(*text) && scale > 0; text++) {
        fraction += (uint64_t)(*text - '0') * (scale / 10) + (uint64_t)(*text - '0') * (scale % 10) / 10;
        scale /= 10;
    }
    if (__builtin_mul_overflow(whole, unit->ns, &ns) || __builtin_add_overflow(ns, fraction, &ns) ||
        __builtin_add_overflow(*sum, ns, sum))
        return NULL;
    return end;
}

bool duration_parse(const char *text, uint64_t *ns)
{
    if (*text == '\0')
        return false;
    for (*ns = 0; text != NULL && *text != '\0';)
        text = read_part(text, ns);
    return text != NULL;
}

void duration_print(uint64_t ns, char text[DURATION_SIZE])
{
    static const size_t order[] = {3, 4, 5, 6, 2, 1, 0}; /* d h m s ms us ns */
    size_t at = 0;
    text[0] = '\0';
    for (size_t i = 0; i < UNITS; i++) {
        const struct unit *unit = &units[order[i]];
        uint64_t number = ns / unit->ns;
        ns %= unit->ns;
        if (number > 0)
            at += (size_t)snprintf(text + at, DURATION_SIZE - at, "%" PRIu64 "%s", number, unit->name);
    }
    if (at == 0)
        memcpy(text, "0s", sizeof "0s");
}

/* ---- points in time -------------------------------------------------------------------------------------- */

/* Reads n digits and the character behind them. Returns the text behind these, or NULL if they do not
 * match. */
static const char *read_field(const char *text, int n, char behind, int *number)
{
    *number = 0;
    for (int i = 0; i < n; i++, text++) {
        if (!digit(*text))
            return NULL;
        *number = *number * 10 + (*text - '0');
    }
    if (behind == '\0')
        return text;
    return *text == behind ? text + 1 : NULL;
}

static const char *read_fraction(const char *text, uint64_t *ns)
{
    uint64_t scale = second_ns;
    *ns = 0;
    if (*text != '.')
        return text;
    if (!digit(*++text))
        return NULL;
    for (; digit(*text); text++)
        *ns += (uint64_t)(*text - '0') * (scale /= 10);
    return text;
}

static const char *read_date(const char *text, struct tm *tm)
{
    memset(tm, 0, sizeof *tm);
    if ((text = read_field(text, 4, '-', &tm->tm_year)) == NULL ||
        (text = read_field(text, 2, '-', &tm->tm_mon)) == NULL ||
        (text = read_field(text, 2, 'T', &tm->tm_mday)) == NULL ||
        (text = read_field(text, 2, ':', &tm->tm_hour)) == NULL ||
        (text = read_field(text, 2, ':', &tm->tm_min)) == NULL)
        return NULL;
    return read_field(text, 2, '\0', &tm->tm_sec);
}

/* Reads 2026-12-01T09:00:00Z, with or without a fraction of seconds. Accepts UTC only, so that no rules of
 * time zones are needed here. */
static bool read_time(const char *text, uint64_t *ns)
{
    struct tm tm, back;
    uint64_t fraction;
    if ((text = read_date(text, &tm)) == NULL || (text = read_fraction(text, &fraction)) == NULL ||
        strcmp(text, "Z") != 0)
        return false;
    struct tm asked = tm;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    time_t seconds = timegm(&tm);
    if (seconds < 0 || gmtime_r(&seconds, &back) == NULL || back.tm_mon + 1 != asked.tm_mon ||
        back.tm_mday != asked.tm_mday || back.tm_hour != asked.tm_hour || back.tm_min != asked.tm_min ||
        back.tm_sec != asked.tm_sec || (uint64_t)seconds > TIME_MAX_NS / second_ns)
        return false;
    *ns = (uint64_t)seconds * second_ns + fraction;
    return true;
}

void time_print(uint64_t ns, char text[TIME_SIZE])
{
    struct tm tm;
    time_t seconds = (time_t)(ns / second_ns);
    uint64_t rest = ns % second_ns;
    gmtime_r(&seconds, &tm);
    size_t at = strftime(text, TIME_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
    if (rest % 1000000 == 0)
        snprintf(text + at, TIME_SIZE - at, ".%03uZ", (unsigned)(rest / 1000000));
    else
        snprintf(text + at, TIME_SIZE - at, ".%09uZ", (unsigned)rest);
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

bool when_parse(const char *word, struct line *line)
{
    line->absolute = *word == '@';
    if (*word == '+')
        return duration_parse(word + 1, &line->time_ns);
    return *word == '@' && read_time(word + 1, &line->time_ns);
}

/* Reads a number of times: x3. */
static bool read_times(const char *word, uint64_t *times)
{
    const char *end = read_digits(word + 1, times);
    return end != NULL && *end == '\0' && *times > 0;
}

/* Takes the key and the text from the rest of the line. */
static const char *take_task(struct line *line, char *rest)
{
    line->key = next_word(&rest);
    line->text = rest;
    return *line->key != '\0' ? NULL : "expected a key after the time";
}

static const char *parse_every(struct line *line, char *rest)
{
    line->kind = LINE_EVERY;
    if (!duration_parse(next_word(&rest), &line->period_ns) || line->period_ns == 0)
        return "expected a period after `every`, such as 5s or 1h30m";
    line->time_ns = line->period_ns;
    char *at = rest + strspn(rest, " \t");
    if (*at == 'x' && digit(at[1])) { /* any other word with x is a key, such as xray */
        char *word = next_word(&rest);
        if (!read_times(word, &line->times))
            return "expected a number of times, x1 or more, such as x3";
        at = rest;
    }
    if (*at == '+' || *at == '@')
        if (!when_parse(next_word(&rest), line))
            return WHEN_EXPECTED;
    return take_task(line, rest);
}

static const char *parse_move(struct line *line, char *rest)
{
    line->kind = LINE_MOVE;
    line->key = next_word(&rest);
    if (*line->key == '\0')
        return "expected a key after `move`";
    if (!when_parse(next_word(&rest), line))
        return WHEN_EXPECTED;
    return *rest == '\0' ? NULL : "expected nothing after the time of `move`";
}

static const char *parse_cancel(struct line *line, char *rest)
{
    line->kind = LINE_CANCEL;
    line->key = next_word(&rest);
    if (*line->key == '\0')
        return "expected a key after `cancel`";
    return *rest == '\0' ? NULL : "expected nothing after the key of `cancel`";
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
    *line = (struct line){.kind = LINE_NOTHING, .key = "", .text = ""};
    char *rest = text + strspn(text, " \t");
    size_t length = strlen(rest);
    while (length > 0 && (rest[length - 1] == '\r' || rest[length - 1] == ' ' || rest[length - 1] == '\t'))
        rest[--length] = '\0';
    if (length == 0 || *rest == '#')
        return NULL;
    if (*rest == '+' || *rest == '@') {
        line->kind = LINE_TASK;
        return when_parse(next_word(&rest), line) ? take_task(line, rest) : WHEN_EXPECTED;
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
