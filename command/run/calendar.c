/* SPDX-License-Identifier: MIT */
#include "calendar.h"

#include <base/saturate.h>
#include <base/time.h>

static uint64_t rounded(double ns)
{
    return ns >= 1.8e19 ? UINT64_MAX : (uint64_t)(ns + 0.5);
}

uint64_t calendar_scale(const struct calendar *calendar, uint64_t ns)
{
    return calendar->speed == 1 ? ns : rounded((double)ns / calendar->speed);
}

uint64_t calendar_unscale(const struct calendar *calendar, uint64_t ns)
{
    return calendar->speed == 1 ? ns : rounded((double)ns * calendar->speed);
}

uint64_t calendar_left(const struct calendar *calendar, uint64_t due_ns, uint64_t now_ns)
{
    if (due_ns == UINT64_MAX)
        return UINT64_MAX;
    return due_ns > now_ns ? calendar_unscale(calendar, due_ns - now_ns) : 0;
}

struct instant calendar_wall(const struct calendar *calendar, uint64_t clock_ns)
{
    uint64_t since_ns = clock_ns > calendar->clock_ns ? clock_ns - calendar->clock_ns : 0;
    uint64_t passed_ns = calendar_unscale(calendar, since_ns);
    if (clock_ns == UINT64_MAX || passed_ns == UINT64_MAX)
        return instant_of_ms(UINT64_MAX);
    return instant_after(calendar->wall, passed_ns);
}

/* The duration of the clock from the start to a date. */
static uint64_t clock_until(const struct calendar *calendar, struct instant wall)
{
    struct instant from = calendar->wall;
    if (wall.s < from.s || (wall.s == from.s && wall.ns < from.ns))
        return 0;
    uint64_t borrow = wall.ns < from.ns ? 1 : 0;
    uint64_t s = wall.s - from.s - borrow, ns = wall.ns + borrow * TW__NS_PER_S - from.ns;
    return calendar->speed == 1 ? tw__add_saturating(tw__mul_saturating(s, TW__NS_PER_S), ns)
                                : rounded(((double)s * TW__NS_PER_S + (double)ns) / calendar->speed);
}

struct when calendar_when(const struct calendar *calendar, const struct line *line, uint64_t now_ns)
{
    struct when when = {.absolute = line->absolute};
    if (!line->absolute) {
        when.due_ns = tw__add_saturating(now_ns, calendar_scale(calendar, line->time_ns));
        return when;
    }
    when.due_ns = tw__add_saturating(calendar->clock_ns, clock_until(calendar, line->at));
    when.wall = line->at;
    if (when.due_ns < now_ns) {
        when.due_ns = now_ns;
        when.wall = calendar_wall(calendar, now_ns);
    }
    return when;
}

struct instant calendar_due(const struct calendar *calendar, const struct when *first, uint64_t period_ns,
                            uint64_t due_ns)
{
    uint64_t scaled_ns = calendar_scale(calendar, period_ns), ns = 0;
    uint64_t since_ns = due_ns - first->due_ns, periods = scaled_ns > 0 ? since_ns / scaled_ns : 0;
    /* A call that began before its task was moved is not a whole number of periods after the new date. */
    if (!first->absolute || due_ns < first->due_ns || since_ns != periods * scaled_ns ||
        __builtin_mul_overflow(periods, period_ns, &ns))
        return calendar_wall(calendar, due_ns);
    return instant_after(first->wall, ns);
}
