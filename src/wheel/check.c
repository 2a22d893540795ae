/* SPDX-License-Identifier: MIT
 *
 * Checks the invariants W1 to W11 and names the first that a wheel breaks. The essay in wheel.c lists them;
 * the essay in exact.c explains W10.
 */
#include "window.h"

/* ---- W1 to W9, and W11 ----------------------------------------------------------------------------------- */

/* W1. Adds the number of timers in a list to *count. Returns false when a link is broken. */
static bool links_agree(const struct tw__wheel_list *list, uint64_t *count)
{
    const struct tw__link *link = &list->link;
    do {
        if (link->next == NULL || link->next->prev != link)
            return false;
        link = link->next;
        ++*count;
    } while (link != &list->link);
    --*count; /* the head itself */
    return true;
}

static bool slot_links_agree(const struct tw__wheel_ring *ring, uint64_t *count)
{
    for (uint32_t i = 0; i < ring->count; i++)
        if (!links_agree(&tw__wheel_slot_at(ring, i)->list, count))
            return false;
    return links_agree(&ring->drain, count);
}

/* W2 for one slot. */
static bool mark_agrees(const struct tw__wheel_ring *ring, uint32_t index)
{
    const struct tw__wheel_slot *slot = tw__wheel_slot_at(ring, index);
    bool marked = tw__wheel_marked(slot);
    return tw__wheel_bit_test(ring, index) == marked && (marked || tw__wheel_list_empty(&slot->list));
}

/* W2. */
static bool bits_agree(const struct tw_wheel *w, uint32_t level)
{
    const struct tw__wheel_ring *ring = &w->ring[level];
    uint32_t words = (ring->count + 63) / 64;
    for (uint32_t i = 0; i < ring->count; i++)
        if (!mark_agrees(ring, i))
            return false;
    for (uint32_t i = 0; i < words; i++)
        if ((ring->sums[i >> 6] >> (i & 63) & 1) != (ring->bits[i] != 0))
            return false;
    for (uint32_t i = 0; i < (words + 63) / 64; i++)
        if ((ring->top >> i & 1) != (ring->sums[i] != 0))
            return false;
    return (w->occupied >> level & 1) == (ring->top != 0);
}

/* Returns the first marked slot from this one on, or the number of the slots. Once W2 is checked, no other slot
 * holds timers, so the checks that follow look at these alone. This is not the search that W8 is about. */
static uint32_t next_marked(const struct tw__wheel_ring *ring, uint32_t index)
{
    uint64_t marks = 0;
    while (index < ring->count && (marks = ring->bits[index >> 6] >> (index & 63)) == 0)
        index = (index | 63) + 1;
    return marks != 0 ? index + (uint32_t)__builtin_ctzll(marks) : ring->count;
}

/* A check of one list's timers: the list's level and index, and the first invariant that is broken. */
struct inspection {
    const struct tw_wheel *wheel;
    uint32_t level, index;
    const char *broken;
};

/* W3 to W5 for one timer on a ring. */
static int check_filed(void *arg, struct tw_timer *timer)
{
    struct inspection *seen = arg;
    const struct tw_wheel *w = seen->wheel;
    const struct tw__wheel_ring *ring = &w->ring[seen->level];
    if (tw__wheel_filed_on(timer) == TW__WHEEL_PUSHED)
        return 0;
    uint64_t number = tw__wheel_slot_number(ring, timer->deadline);
    if (tw__wheel_filed_on(timer) != seen->level || tw__wheel_slot_index(ring, number) != seen->index)
        seen->broken = "W3: a timer is not in the slot of its deadline";
    else if (timer->deadline > ring->last || (seen->level > 0 && number < ring->started))
        seen->broken = "W4: a timer is outside its level's window";
    else if (timer->deadline <= w->cur && w->cur != UINT64_MAX && w->phase == TW__WHEEL_SETTLED)
        seen->broken = "W5: a timer waits on a tick that has passed";
    return seen->broken != NULL;
}

/* W6 for one timer on a drain list. */
static int check_draining(void *arg, struct tw_timer *timer)
{
    struct inspection *seen = arg;
    const struct tw__wheel_ring *ring = &seen->wheel->ring[seen->level];
    if (tw__wheel_filed_on(timer) == TW__WHEEL_PUSHED)
        return 0;
    uint64_t number = tw__wheel_slot_number(ring, timer->deadline);
    if (tw__wheel_slot_index(ring, number) != tw__wheel_slot_index(ring, ring->draining))
        seen->broken = "W6: a timer being refiled is not of the slot its level names";
    return seen->broken != NULL;
}

static const char *check_timers(const struct tw_wheel *w, uint32_t level)
{
    const struct tw__wheel_ring *ring = &w->ring[level];
    struct inspection seen = {.wheel = w, .level = level, .broken = NULL};
    uint32_t i = next_marked(ring, 0);
    for (; i < ring->count && seen.broken == NULL; i = next_marked(ring, i + 1)) {
        seen.index = i;
        tw__wheel_list_visit(&tw__wheel_slot_at(ring, i)->list, check_filed, &seen);
    }
    if (seen.broken == NULL)
        tw__wheel_list_visit(&ring->drain, check_draining, &seen);
    return seen.broken;
}

static const char *check_level(const struct tw_wheel *w, uint32_t level, uint64_t *count)
{
    const struct tw__wheel_ring *ring = &w->ring[level];
    if (!slot_links_agree(ring, count))
        return "W1: two links do not agree";
    if (!bits_agree(w, level))
        return "W2: a slot that holds timers has no mark, or its mark and the bitmap do not agree";
    if (!(w->active >> level & 1) && !tw__wheel_list_empty(&ring->drain))
        return "W6: a level with a slot to refile is not active";
    return check_timers(w, level);
}

/* W9: the windows, from the top down. */
static bool windows_agree(const struct tw_wheel *w)
{
    uint64_t above = UINT64_MAX;
    for (uint32_t level = w->levels; level-- > 0;) {
        uint64_t own = tw__wheel_window_end(w, level);
        above = own < above ? own : above;
        if (w->ring[level].last != above)
            return false;
    }
    return w->cur <= w->now;
}

/* W9: the gate and the express lane let no deadline pass that needs a check or belongs to another level. */
static bool gate_agrees(const struct tw_wheel *w)
{
    if (w->door || w->asked)
        return w->gate == UINT64_MAX && w->express_ticks == 0;
    uint64_t before = w->ring[0].last, ticks = 0;
    if (before < w->now)
        before = w->now;
    if (before < w->ring[1].last)
        ticks = w->ring[1].last - before;
    return w->gate == w->now && w->express == before + 1 && w->express_ticks == ticks;
}

/* Lowers *exact to the earliest work of a level, and *bound to the earliest that its marks show: a mark may be
 * left of a slot that is empty now. This looks at each slot, and so does not rely on the search that it checks;
 * it relies on W2. */
static void lower_to_level(const struct tw_wheel *w, uint32_t level, uint64_t *exact, uint64_t *bound)
{
    const struct tw__wheel_ring *ring = &w->ring[level];
    uint64_t first = tw__wheel_list_empty(&ring->drain) ? TW_NEVER : tw__wheel_drain_event(w, ring);
    uint64_t from = tw__wheel_ring_from(w, level);
    tw__wheel_lower(exact, first);
    tw__wheel_lower(bound, first);
    if (level == 0 && w->cur == UINT64_MAX)
        return;
    uint32_t index = tw__wheel_slot_index(ring, from);
    uint64_t left = UINT64_MAX / ring->span - from + 1; /* the slots that start before time ends */
    for (uint32_t i = 0; i < ring->count && i < left; i++) {
        const struct tw__wheel_slot *slot = tw__wheel_slot_at(ring, index);
        index = tw__wheel_onward(ring, index, 1);
        if (!tw__wheel_marked(slot))
            continue;
        uint64_t event = tw__wheel_slot_event(w, level, from + i);
        tw__wheel_lower(bound, event);
        if (!tw__wheel_list_empty(&slot->list))
            tw__wheel_lower(exact, event);
    }
}

/* W8. */
static bool event_agrees(const struct tw_wheel *w)
{
    uint64_t exact = TW_NEVER, bound = TW_NEVER;
    if (w->event_list == NULL)
        return w->now >= w->quiet;
    for (uint32_t level = 0; level < w->levels; level++)
        lower_to_level(w, level, &exact, &bound);
    if (w->now < w->quiet && w->event < w->quiet)
        return false;
    if (w->event_list != &w->due && !tw__wheel_list_empty(w->event_list) && w->event != exact)
        return false;
    return w->event <= bound;
}

static int is_due(void *arg, struct tw_timer *timer)
{
    return timer->deadline > ((const struct tw_wheel *)arg)->now;
}

/* W11: the two lists of timers that were filed for now. */
static bool now_agrees(const struct tw_wheel *w)
{
    void *arg = (void *)(uintptr_t)w;
    return tw__wheel_list_visit(&w->soon, is_due, arg) == 0 &&
           tw__wheel_list_visit(&w->next_drain, is_due, arg) == 0 &&
           (w->in_drain || tw__wheel_list_empty(&w->next_drain));
}

/* ---- W10 ------------------------------------------------------------------------------------------------- */

/* W10 for one list. Lowers *first to the list's earliest deadline. Returns false when the list's bound or its
 * order is wrong. */
static bool list_agrees(const struct tw__wheel_list *list, uint64_t bound, uint64_t *first)
{
    uint64_t earliest = TW_NEVER, before = 0;
    for (const struct tw__link *link = list->link.next; link != &list->link; link = link->next) {
        const struct tw_timer *timer = (const struct tw_timer *)(const void *)link;
        tw__wheel_lower(&earliest, timer->deadline);
        if (list->in_order && timer->deadline < before)
            return false;
        if (tw__wheel_filed_on(timer) != TW__WHEEL_PUSHED)
            before = timer->deadline;
    }
    tw__wheel_lower(first, earliest);
    return earliest >= bound;
}

static bool level_agrees(const struct tw__wheel_ring *ring, uint64_t *first)
{
    bool agrees = list_agrees(&ring->drain, ring->drain_bound, first);
    for (uint32_t i = next_marked(ring, 0); i < ring->count && agrees; i = next_marked(ring, i + 1))
        agrees =
            list_agrees(&tw__wheel_slot_at(ring, i)->list, ring->bound != NULL ? ring->bound[i] : 0, first);
    return agrees;
}

static const char *exact_agrees(const struct tw_wheel *w)
{
    uint64_t first = tw__wheel_earliest_due(w);
    for (uint32_t level = 0; level < w->levels; level++)
        if (!level_agrees(&w->ring[level], &first))
            return "W10: a timer is due before the bound of its list, or a list marked as in order is not";
    if (w->exact != 0 && w->exact != first)
        return "W10: the remembered earliest deadline is not the earliest";
    return NULL;
}

/* ---- all of them ----------------------------------------------------------------------------------------- */

const char *tw_wheel_check(const struct tw_wheel *w)
{
    TW_ASSERT(w != NULL);
    uint64_t count = 0;
    if (!windows_agree(w))
        return "W9: the windows are not those of the tick the wheel stands on";
    if (!gate_agrees(w))
        return "W9: the gate or the express lane is not that of the windows";
    if (!links_agree(&w->due, &count) || !links_agree(&w->soon, &count) || !links_agree(&w->next_drain, &count))
        return "W1: two links do not agree";
    if (!now_agrees(w))
        return "W11: a timer filed for now is later, or waits for a drain that has ended";
    for (uint32_t level = 0; level < w->levels; level++) {
        const char *broken = check_level(w, level, &count);
        if (broken != NULL)
            return broken;
    }
    if (count != w->count)
        return "W7: the count is not the number of timers";
    if (!event_agrees(w))
        return "W8: the remembered next event is not that of the slots";
    return exact_agrees(w);
}

#if TW_DEBUG > 1
static int is_it(void *arg, struct tw_timer *timer)
{
    return timer == arg;
}

bool tw__wheel_has(const struct tw_wheel *w, const struct tw_timer *timer)
{
    return tw_wheel_visit(w, is_it, (void *)(uintptr_t)timer) != 0;
}
#endif
