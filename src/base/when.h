/* SPDX-License-Identifier: MIT
 *
 * Durations and times, as people write them: 1h30m, 1.5s, 2026-12-01T09:00:00Z.
 *
 * A duration is a sequence of decimal numbers, each with its unit: ns, us, ms, s, m, h or d. A time is in UTC,
 * so that no rules of time zones are needed here.
 */
#ifndef TW_BASE_WHEN_H
#define TW_BASE_WHEN_H

#include "time.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ---- durations ----------------------------------------------------------------------------------------- */

struct tw__unit {
    const char *name;
    uint64_t ns;
};

/* The units, for i from 0; NULL behind the last one. A name that begins with another name stands before it:
 * "ms" before "m". */
static inline const struct tw__unit *tw__unit(size_t i)
{
    static const struct tw__unit units[] = {{"ns", 1},
                                            {"us", 1000},
                                            {"ms", 1000000},
                                            {"d", UINT64_C(86400000000000)},
                                            {"h", UINT64_C(3600000000000)},
                                            {"m", UINT64_C(60000000000)},
                                            {"s", UINT64_C(1000000000)}};
    return i < sizeof units / sizeof units[0] ? &units[i] : NULL;
}

static inline const struct tw__unit *tw__unit_at(const char *text)
{
    const struct tw__unit *unit;
    for (size_t i = 0; (unit = tw__unit(i)) != NULL; i++)
        if (strncmp(text, unit->name, strlen(unit->name)) == 0)
            return unit;
    return NULL;
}

static inline bool tw__digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads a decimal number. Returns the text behind it; NULL if there are no digits, or the number overflows. */
static inline const char *tw__read_digits(const char *text, uint64_t *number)
{
    const char *first = text;
    for (*number = 0; tw__digit(*text); text++)
        if (__builtin_mul_overflow(*number, 10, number) ||
            __builtin_add_overflow(*number, (uint64_t)(*text - '0'), number))
            return NULL;
    return text == first ? NULL : text;
}

/* The digits behind a point as a fraction of `unit`, rounded up, so that nothing is early. */
static inline uint64_t tw__read_decimals(const char *text, uint64_t unit)
{
    uint64_t sum = 0;
    bool more = false;
    const char *end = text;
    while (tw__digit(*end))
        end++;
    while (end > text) {
        sum += (uint64_t)(*--end - '0') * unit;
        more |= sum % 10 != 0;
        sum /= 10;
    }
    return sum + (more ? 1 : 0);
}

/* Reads one number with its unit and adds it to `sum`. Returns the text behind it; NULL if it is not valid. */
static inline const char *tw__read_part(const char *text, uint64_t *sum)
{
    uint64_t whole, ns, fraction = 0;
    const char *point = text = tw__read_digits(text, &whole);
    if (text == NULL)
        return NULL;
    if (*text == '.')
        for (text++; tw__digit(*text); text++)
            ;
    const struct tw__unit *unit = tw__unit_at(text);
    if (unit == NULL || (text == point + 1 && *point == '.'))
        return NULL;
    if (*point == '.')
        fraction = tw__read_decimals(point + 1, unit->ns);
    if (__builtin_mul_overflow(whole, unit->ns, &ns) || __builtin_add_overflow(ns, fraction, &ns) ||
        __builtin_add_overflow(*sum, ns, sum))
        return NULL;
    return text + strlen(unit->name);
}

/* Reads a duration. Returns false if `text` is not a duration, or exceeds 2^64 ns (584 years). */
static inline bool tw__duration_parse(const char *text, uint64_t *ns)
{
    if (*text == '\0')
        return false;
    for (*ns = 0; text != NULL && *text != '\0';)
        text = tw__read_part(text, ns);
    return text != NULL;
}

/* ---- points in time ------------------------------------------------------------------------------------ */

/* The last time: 9999-12-31T23:59:59.999Z. */
#define TW__TIME_LAST_S UINT64_C(253402300799)
enum { TW__TIME_LAST_NS = TW__NS_PER_S - TW__NS_PER_S / 1000 };

/* Reads n digits and the character behind them. Returns the text behind these, or NULL if they do not match. */
static inline const char *tw__read_field(const char *text, int n, char behind, unsigned *number)
{
    *number = 0;
    for (int i = 0; i < n; i++, text++) {
        if (!tw__digit(*text))
            return NULL;
        *number = *number * 10 + (unsigned)(*text - '0');
    }
    if (behind == '\0')
        return text;
    return *text == behind ? text + 1 : NULL;
}

struct tw__date {
    unsigned year, month, day, hour, minute, second;
};

static inline const char *tw__read_date(const char *text, struct tw__date *date)
{
    if ((text = tw__read_field(text, 4, '-', &date->year)) == NULL ||
        (text = tw__read_field(text, 2, '-', &date->month)) == NULL ||
        (text = tw__read_field(text, 2, 'T', &date->day)) == NULL ||
        (text = tw__read_field(text, 2, ':', &date->hour)) == NULL ||
        (text = tw__read_field(text, 2, ':', &date->minute)) == NULL)
        return NULL;
    return tw__read_field(text, 2, '\0', &date->second);
}

static inline bool tw__leap_year(unsigned year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static inline unsigned tw__days_of(unsigned year, unsigned month)
{
    static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month - 1] + (month == 2 && tw__leap_year(year) ? 1U : 0U);
}

/* Seconds since 1970. Returns false for a date that does not exist, or lies before. */
static inline bool tw__date_seconds(const struct tw__date *date, uint64_t *seconds)
{
    if (date->year < 1970 || date->month < 1 || date->month > 12 || date->day < 1 ||
        date->day > tw__days_of(date->year, date->month) || date->hour > 23 || date->minute > 59 ||
        date->second > 59)
        return false;
    unsigned before = date->year - 1; /* the last whole year */
    uint64_t days = (uint64_t)before * 365 + before / 4 - before / 100 + before / 400 - 719162;
    for (unsigned month = 1; month < date->month; month++)
        days += tw__days_of(date->year, month);
    days += date->day - 1;
    *seconds = ((days * 24 + date->hour) * 60 + date->minute) * 60 + date->second;
    return true;
}

/* Reads 2026-12-01T09:00:00Z, with or without decimals of the seconds. The time is *seconds since 1970 and
 * *ns, which is less than a second, rounded up. Returns false if `text` is no such time from 1970 to the last
 * millisecond of the year 9999. */
static inline bool tw__time_parse(const char *text, uint64_t *seconds, uint64_t *ns)
{
    struct tw__date date;
    if ((text = tw__read_date(text, &date)) == NULL)
        return false;
    const char *decimals = text;
    *ns = 0;
    if (*text == '.') {
        while (tw__digit(*++text))
            ;
        if (text == decimals + 1)
            return false;
        *ns = tw__read_decimals(decimals + 1, TW__NS_PER_S);
    }
    if (strcmp(text, "Z") != 0 || !tw__date_seconds(&date, seconds))
        return false;
    if (*ns == TW__NS_PER_S) {
        *ns = 0;
        *seconds += 1;
    }
    return *seconds < TW__TIME_LAST_S || (*seconds == TW__TIME_LAST_S && *ns <= TW__TIME_LAST_NS);
}

#endif
