/* SPDX-License-Identifier: MIT
 *
 * The arithmetic of windows. It needs the geometry only.
 *
 * The window of level l is the current slot of level l+1 and the next `a` slots of that level. How far the
 * window reaches ahead of the clock depends on the position of the clock in the current slot:
 *
 *     level l+1   |   current   |      +1     |      +2     |
 *     window of l  ....>........................                  a = 1, '>' the clock
 *                      |- from a slots less nothing ... to a + 1 slots, as the clock goes back in its slot
 *
 * So delays of up to `a` slots always fit, no delay from `a + 1` slots on fits, and in between it depends
 * on the clock. The refiling of a slot of level l+1 starts `a` slots before its first tick. If windows do not
 * nest, a level above may cut a window off earlier. Then the nearest end of the windows above counts, and no
 * slack is promised.
 */
#include "layout.h"

#include <base/saturate.h>

/* The span of the level above; for the top of a growing wheel, the span of the level it would grow. 0: no
 * level. */
static uint64_t upper_span(const struct tw_geometry *g, uint32_t l)
{
    const struct tw_level *level = &g->level[l];
    if (l + 1 < g->levels)
        return level[1].span;
    if (g->overflow != TW_OVERFLOW_GROW || l + 1 == TW_GEOMETRY_LEVELS_MAX)
        return 0;
    uint64_t span = tw__mul_saturating(level->span, level->slots >= 4 ? level->slots / 2 : level->slots);
    return span == UINT64_MAX ? 0 : span;
}

/* The ticks that the window of level l holds at any position of the clock. */
static uint64_t sure_reach(const struct tw_geometry *g, uint32_t l)
{
    uint64_t upper = upper_span(g, l);
    if (upper == 0)
        return UINT64_MAX;
    uint64_t ahead = g->level[l].slots / (upper / g->level[l].span) - 1;
    return tw__mul_saturating(ahead, upper);
}

/* Adds levels to a growing wheel until delays of `max` ticks fit at any position of the clock. */
static void grow(struct tw_geometry *g, uint64_t max)
{
    while (g->overflow == TW_OVERFLOW_GROW && sure_reach(g, g->levels - 1) < max) {
        struct tw_level *top = &g->level[g->levels - 1];
        uint64_t span = upper_span(g, g->levels - 1);
        if (span == 0)
            return; /* the top reaches the end of time */
        top[1] = (struct tw_level){.slots = top->slots, .span = span};
        g->levels++;
    }
}

/* True if each window ends at or before the end of the window above it, at any position of the clock. */
static bool windows_nest(const struct tw_geometry *g)
{
    for (uint32_t l = 0; l + 1 < g->levels; l++) {
        uint64_t above = upper_span(g, l + 1), sure = sure_reach(g, l);
        if (sure == 0 || (above != 0 && (sure > above || sure_reach(g, l + 1) == 0)))
            return false;
    }
    return true;
}

/* The ticks over which a slot of level l >= 1 is refiled. On level 1 refiling may last until the slot's
 * first tick. On a higher level the slot must be empty before any of its ticks enters the window two
 * levels down. */
static uint64_t slack_of(const struct tw_geometry *g, uint32_t l)
{
    if (!windows_nest(g))
        return 0;
    uint64_t span = g->level[l].span, start = sure_reach(g, l - 1);
    uint64_t end = l == 1 ? 0 : sure_reach(g, l - 2) + 1;
    uint64_t slack = start > end ? start - end : 0;
    return slack < span ? slack : span;
}

/* The shortest delay that may be filed on level l. The windows below, which a window above may cut off, hold
 * all shorter delays at any position of the clock. */
static uint64_t nearest(const struct tw_geometry *g, uint32_t l)
{
    uint64_t least = UINT64_MAX;
    if (l == 0)
        return 1;
    for (uint32_t k = l - 1; k < g->levels; k++) {
        uint64_t sure = sure_reach(g, k);
        least = sure < least ? sure : least;
    }
    return tw__add_saturating(least, 1);
}

/* The longest delay that may be filed on level l. For the top level it is one turn; a longer delay waits for
 * another turn, or is refused. */
static uint64_t farthest(const struct tw_geometry *g, uint32_t l)
{
    uint64_t upper = upper_span(g, l), span = g->level[l].span;
    if (upper == 0)
        return tw__mul_saturating(span, g->level[l].slots);
    uint64_t window = tw__add_saturating(sure_reach(g, l), upper);
    return window == UINT64_MAX ? window : window - 1;
}

/* The memory of the lowest `levels` levels. They count as growing, because a wheel of one level that does not
 * grow takes more memory: its slots hold timers of several turns. */
static size_t size_with(const struct tw_geometry *g, uint32_t levels)
{
    struct tw_geometry part = *g;
    part.levels = levels;
    part.overflow = TW_OVERFLOW_GROW;
    return tw_wheel_size(&part);
}

/* The memory of level l. That of level 0 is the whole wheel without the levels above it. */
static size_t bytes_of(const struct tw_geometry *g, uint32_t l)
{
    if (l > 0)
        return size_with(g, l + 1) - size_with(g, l);
    return tw_wheel_size(g) - (size_with(g, g->levels) - size_with(g, 1));
}

static struct layout_level lay_out(const struct tw_geometry *g, uint32_t l)
{
    return (struct layout_level){
        .slots = g->level[l].slots,
        .span = g->level[l].span,
        .from = nearest(g, l),
        .to = farthest(g, l),
        .ahead = l == 0 ? 0 : sure_reach(g, l - 1),
        .slack = l == 0 ? 0 : slack_of(g, l),
        .bytes = bytes_of(g, l),
    };
}

void layout_make(struct layout *layout, const struct tw_geometry *geometry, uint64_t max)
{
    struct tw_geometry g = *geometry;
    grow(&g, max);
    const struct tw_level *top = &g.level[g.levels - 1];
    uint64_t turn = tw__mul_saturating(top->span, top->slots);
    bool endless = g.overflow == TW_OVERFLOW_GROW || turn == UINT64_MAX;
    layout->levels = g.levels;
    layout->used = 1;
    layout->turn = endless ? 0 : turn;
    layout->range = g.overflow == TW_OVERFLOW_REJECT ? turn : UINT64_MAX;
    layout->overflow = g.overflow;
    layout->bytes = tw_wheel_size(&g);
    for (uint32_t l = 0; l < g.levels; l++) {
        layout->level[l] = lay_out(&g, l);
        if (layout->level[l].from <= max)
            layout->used = l + 1;
    }
}
