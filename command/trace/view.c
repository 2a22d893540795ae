/* SPDX-License-Identifier: MIT */
#include "view.h"

#include <stdlib.h>
#include <string.h>

/* ---- windows -------------------------------------------------------------------------------------------- */

/* The last tick of a level's window: the end of the current slot of the level above and its next `a`
 * slots. */
static uint64_t window_end(const struct tw_level_info *level, uint64_t upper_span, uint64_t now)
{
    uint64_t ahead = level->slots / (upper_span / level->span) - 1, end;
    if (__builtin_mul_overflow(now / upper_span + ahead + 1, upper_span, &end))
        return UINT64_MAX;
    return end - 1;
}

/* Finds the windows from the top down, because no window reaches beyond the window above it. */
static void find_windows(struct view *view)
{
    uint64_t above = UINT64_MAX;
    for (uint32_t l = view->levels; l-- > 0;) {
        struct view_ring *ring = &view->ring[l];
        bool top = l + 1 == view->levels;
        uint64_t own = top ? UINT64_MAX : window_end(&ring->info, ring[1].info.span, view->now);
        ring->last = above = own < above ? own : above;
        ring->bounded = !top || view->overflow != TW_OVERFLOW_GROW;
    }
    for (uint32_t l = 0; l < view->levels; l++) {
        struct view_ring *ring = &view->ring[l];
        ring->covered = l == 0 ? view->now : ring[-1].last;
        ring->refiled = (uint32_t)(ring->covered / ring->info.span % ring->info.slots);
    }
}

/* ---- counts --------------------------------------------------------------------------------------------- */

/* Counts the timers of a level's slots, and finds the fullest slot. */
static int count_slots(struct view *view, uint32_t l, const struct tw_wheel *wheel)
{
    struct view_ring *ring = &view->ring[l];
    tw_wheel_level(wheel, l, &ring->info, sizeof ring->info);
    ring->counts = calloc(ring->info.slots, sizeof *ring->counts);
    if (ring->counts == NULL)
        return -1;
    if (ring->info.draining > view->most)
        view->most = ring->info.draining;
    for (uint32_t i = 0; ring->info.filed > 0 && i < ring->info.slots; i++) {
        ring->counts[i] = tw_wheel_slot_count(wheel, l, i);
        if (ring->counts[i] > view->most)
            view->most = ring->counts[i];
    }
    return 0;
}

/* ---- the view ------------------------------------------------------------------------------------------- */

int view_take(struct view *view, struct tw_wheel *wheel, enum tw_overflow overflow)
{
    memset(view, 0, sizeof *view);
    view->now = tw_wheel_now(wheel);
    view->pending = tw_wheel_count(wheel);
    view->bound = tw_wheel_next_bound(wheel);
    view->overflow = overflow;
    view->rings = 1;
    for (uint32_t l = 0; l < tw_wheel_levels(wheel); l++) {
        const struct tw_level_info *info = &view->ring[view->levels++].info;
        if (count_slots(view, l, wheel) != 0)
            return -1;
        if (info->filed + info->draining > 0)
            view->rings = l + 1;
    }
    view->exact = tw_wheel_next_exact(wheel); /* may refile timers, so it comes after counting the slots */
    find_windows(view);
    return 0;
}

uint32_t view_ring_of(const struct view *view, uint64_t tick)
{
    uint32_t l = 0;
    while (l + 1 < view->rings && tick > view->ring[l].last)
        l++;
    return l;
}

void view_free(struct view *view)
{
    for (uint32_t l = 0; l < view->levels; l++)
        free(view->ring[l].counts);
}
