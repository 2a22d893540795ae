/* SPDX-License-Identifier: MIT */
#include "view.h"

#include <stdlib.h>
#include <string.h>

enum { SKEW = 8 }; /* skewed: the fullest slot holds at least so many times the timers of the median slot */

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

static int count_slots(struct view_ring *ring, const struct tw_wheel *wheel, uint32_t l)
{
    tw_wheel_level(wheel, l, &ring->info, sizeof ring->info);
    ring->counts = calloc(ring->info.slots, sizeof *ring->counts);
    if (ring->counts == NULL)
        return -1;
    for (uint32_t i = 0; ring->info.filed > 0 && i < ring->info.slots; i++)
        ring->counts[i] = tw_wheel_slot_count(wheel, l, i);
    return 0;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Copies the counts of all occupied slots. Returns the number of counts. */
static size_t gather(const struct view *view, uint64_t *counts)
{
    size_t found = 0;
    for (uint32_t l = 0; l < view->levels; l++) {
        const struct view_ring *ring = &view->ring[l];
        for (uint32_t i = 0; ring->info.filed > 0 && i < ring->info.slots; i++)
            if (ring->counts[i] > 0)
                counts[found++] = ring->counts[i];
        if (ring->info.draining > 0)
            counts[found++] = ring->info.draining;
    }
    return found;
}

static int find_scale(struct view *view)
{
    size_t slots = 1;
    for (uint32_t l = 0; l < view->levels; l++)
        slots += (size_t)view->ring[l].info.slots + 1;
    uint64_t *counts = calloc(slots, sizeof *counts);
    if (counts == NULL)
        return -1;
    size_t found = gather(view, counts);
    qsort(counts, found, sizeof *counts, compare);
    if (found > 0) {
        view->most = counts[found - 1];
        view->skewed = view->most >= SKEW * counts[found / 2];
    }
    free(counts);
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
        struct view_ring *ring = &view->ring[view->levels++];
        if (count_slots(ring, wheel, l) != 0)
            return -1;
        if (ring->info.filed + ring->info.draining > 0)
            view->rings = l + 1;
    }
    view->exact = tw_wheel_next_exact(wheel); /* may refile timers, so it comes after counting the slots */
    find_windows(view);
    return find_scale(view);
}

uint32_t view_ring_of(const struct view *view, uint64_t tick)
{
    uint32_t l = 0;
    while (l + 1 < view->rings && tick > view->ring[l].last)
        l++;
    return l;
}

uint64_t view_total(const struct view *view)
{
    uint64_t total = 0;
    for (uint32_t l = 0; l < view->levels; l++)
        total += view->ring[l].info.filed + view->ring[l].info.draining;
    return total;
}

void view_free(struct view *view)
{
    for (uint32_t l = 0; l < view->levels; l++)
        free(view->ring[l].counts);
}
