/* SPDX-License-Identifier: MIT
 *
 * Checks the invariants W1 to W11 and names the first that a wheel breaks. The essay in wheel.c lists them;
 * the essay in exact.c explains W10.
 */
#include "window.h"

/* ---- a walk along each list ------------------------------------------------------------------------------ */

/* The findings of the walks. A check walks along each list once: the timers of a long list come from memory,
 * and that takes longer than all questions about them. */
struct findings {
    const struct tw_wheel *wheel;
    const struct tw__wheel_ring *ring; /* of the list */
    uint32_t index;                    /* of the list's slot */
    uint64_t count;                    /* W7: the timers in all lists */
    uint64_t earliest;                 /* W10: the earliest deadline in all lists */
    bool in_order;                     /* W10: the bounds and the order of all lists are right */
    uint64_t work;                     /* W8: the earliest work of a slot that holds timers */
    uint64_t marked_work;              /* W8: the earliest work of a marked slot, which may be empty */
    const char *broken;                /* the first of W3 to W6 and W11 that does not hold */
};
typedef void look_fn(struct findings *found, const struct tw_timer *timer);

/* Walks along a list in which no timer may be due before `bound`, and looks at its timers until one of them
 * breaks an invariant. Returns false when a link is broken (W1). */
static inline bool walk(struct findings *found, const struct tw__wheel_list *list, uint64_t bound,
                        look_fn *look)
{
    uint64_t count = 0, earliest = TW_NEVER, before = 0;
    bool in_order = true;
    const struct tw__link *link = &list->link;
    while (link->next != NULL && link->next->prev == link) {
        link = link->next;
        if (link == &list->link) {
            found->count += count;
            found->in_order &= (in_order || !list->in_order) && earliest >= bound;
            tw__wheel_lower(&found->earliest, earliest);
            return true;
        }
        const struct tw_timer *timer = (const struct tw_timer *)(const void *)link;
        count++;
        tw__wheel_lower(&earliest, timer->deadline);
        in_order &= timer->deadline >= before;
        if (tw__wheel_filed_on(timer) != TW__WHEEL_PUSHED)
            before = timer->deadline;
        if (found->broken == NULL)
            look(found, timer);
    }
    return false;
}

/* W3 to W5 for one timer in a slot. */
static void look_at_filed(struct findings *found, const struct tw_timer *timer)
{
    const struct tw_wheel *w = found->wheel;
    const struct tw__wheel_ring *ring = found->ring;
    if (tw__wheel_filed_on(timer) == TW__WHEEL_PUSHED)
        return;
    uint64_t number = tw__wheel_slot_number(ring, timer->deadline);
    if (tw__wheel_filed_on(timer) != ring->level || tw__wheel_slot_index(ring, number) != found->index)
        found->broken = "W3: a timer is not in the slot of its deadline";
    else if (timer->deadline > ring->last || (ring->level > 0 && number < ring->started))
        found->broken = "W4: a timer is outside its level's window";
    else if (timer->deadline <= w->cur && w->cur != UINT64_MAX && w->phase == TW__WHEEL_SETTLED)
        found->broken = "W5: a timer waits on a tick that has passed";
}

/* W6 for one timer on a drain list. */
static void look_at_draining(struct findings *found, const struct tw_timer *timer)
{
    const struct tw__wheel_ring *ring = found->ring;
    if (tw__wheel_filed_on(timer) == TW__WHEEL_PUSHED)
        return;
    uint64_t number = tw__wheel_slot_number(ring, timer->deadline);
    if (tw__wheel_slot_index(ring, number) != tw__wheel_slot_index(ring, ring->draining))
        found->broken = "W6: a timer being refiled is not of the slot its level names";
}

/* A timer in the list of due timers: only its links are checked. */
static void look_at_due(struct findings *found, const struct tw_timer *timer)
{
    (void)found;
    (void)timer;
}

/* W11 for one timer that was filed for now. */
static void look_at_now(struct findings *found, const struct tw_timer *timer)
{
    if (timer->deadline > found->wheel->now)
        found->broken = "W11: a timer filed for now is later";
}

/* Whether a list is empty, and its links agree: most slots are passed over so. */
static bool is_alone(const struct tw__link *link)
{
    return link->next == link && link->prev == link;
}

/* W2 for one slot. */
static bool mark_agrees(const struct tw__wheel_ring *ring, const struct tw__wheel_slot *slot, uint32_t index)
{
    bool marked = tw__wheel_marked(slot);
    return tw__wheel_bit_test(ring, index) == marked && (marked || tw__wheel_list_empty(&slot->list));
}

/* W2 for the summaries. */
static bool sums_agree(const struct tw_wheel *w, uint32_t level)
{
    const struct tw__wheel_ring *ring = &w->ring[level];
    uint32_t words = (ring->count + 63) / 64;
    for (uint32_t i = 0; i < words; i++)
        if ((ring->sums[i >> 6] >> (i & 63) & 1) != (ring->bits[i] != 0))
            return false;
    for (uint32_t i = 0; i < (words + 63) / 64; i++)
        if ((ring->top >> i & 1) != (ring->sums[i] != 0))
            return false;
    return (w->occupied >> level & 1) == (ring->top != 0);
}

/* W8: lowers the earliest work to that of a marked slot. The walk comes here with each such slot, so this does
 * not rely on the search that W8 is about. It relies on W2. */
static void lower_to_slot(struct findings *found, const struct tw__wheel_slot *slot)
{
    const struct tw_wheel *w = found->wheel;
    const struct tw__wheel_ring *ring = found->ring;
    if (w->event_list == NULL)
        return; /* no event is remembered, and the mark of an empty slot may lie beyond the end of time */
    if (ring->level == 0 && w->cur == UINT64_MAX)
        return; /* the timers there were filed when time had ended already */
    uint64_t from = tw__wheel_ring_from(w, ring->level);
    uint32_t first = tw__wheel_slot_index(ring, from);
    uint32_t distance = found->index < first ? found->index + ring->count - first : found->index - first;
    uint64_t event = tw__wheel_slot_event(w, ring->level, from + distance);
    tw__wheel_lower(&found->marked_work, event);
    if (!tw__wheel_list_empty(&slot->list))
        tw__wheel_lower(&found->work, event);
}

/* Walks along all lists of a level. Returns false when a link is broken (W1). Sets *marks_agree to whether W2
 * holds for each slot. */
static bool walk_level(struct findings *found, bool *marks_agree)
{
    const struct tw__wheel_ring *ring = found->ring;
    *marks_agree = true;
    for (uint32_t i = 0; i < ring->count; i++) {
        const struct tw__wheel_slot *slot = tw__wheel_slot_at(ring, found->index = i);
        *marks_agree &= mark_agrees(ring, slot, i);
        if (tw__wheel_marked(slot))
            lower_to_slot(found, slot);
        if (is_alone(&slot->list.link))
            continue;
        if (!walk(found, &slot->list, ring->bound != NULL ? ring->bound[i] : 0, look_at_filed))
            return false;
    }
    return walk(found, &ring->drain, ring->drain_bound, look_at_draining);
}

/* W1 to W6 on a level. */
static const char *check_level(struct findings *found, uint32_t level)
{
    const struct tw_wheel *w = found->wheel;
    bool marks_agree;
    found->ring = &w->ring[level];
    if (!walk_level(found, &marks_agree))
        return "W1: two links do not agree";
    if (!marks_agree || !sums_agree(w, level))
        return "W2: a slot that holds timers has no mark, or its mark and the bitmap do not agree";
    if (!(w->active >> level & 1) && !tw__wheel_list_empty(&found->ring->drain))
        return "W6: a level with a slot to refile is not active";
    return found->broken;
}

/* W1 and W11: the lists beside the rings. */
static const char *check_lists(struct findings *found)
{
    const struct tw_wheel *w = found->wheel;
    if (!walk(found, &w->due, 0, look_at_due) || !walk(found, &w->soon, 0, look_at_now) ||
        !walk(found, &w->next_drain, 0, look_at_now))
        return "W1: two links do not agree";
    if (found->broken != NULL)
        return found->broken;
    if (!w->in_drain && !tw__wheel_list_empty(&w->next_drain))
        return "W11: a timer filed for now waits for a drain that has ended";
    found->earliest = tw__wheel_earliest_due(w); /* W10 is about this, and about the rings */
    found->in_order = true;
    return NULL;
}

/* ---- W8 and W9 ------------------------------------------------------------------------------------------- */

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

/* W8. */
static bool event_agrees(const struct findings *found)
{
    const struct tw_wheel *w = found->wheel;
    if (w->event_list == NULL)
        return w->now >= w->quiet;
    uint64_t work = found->work, marked_work = found->marked_work;
    for (uint32_t level = 0; level < w->levels; level++)
        if (!tw__wheel_list_empty(&w->ring[level].drain)) {
            uint64_t event = tw__wheel_drain_event(w, &w->ring[level]);
            tw__wheel_lower(&work, event);
            tw__wheel_lower(&marked_work, event);
        }
    if (w->now < w->quiet && w->event < w->quiet)
        return false;
    if (w->event_list != &w->due && !tw__wheel_list_empty(w->event_list) && w->event != work)
        return false;
    return w->event <= marked_work;
}

/* ---- all of them ----------------------------------------------------------------------------------------- */

const char *tw_wheel_check(const struct tw_wheel *w)
{
    TW_ASSERT(w != NULL);
    struct findings found = {.wheel = w, .work = TW_NEVER, .marked_work = TW_NEVER};
    if (!windows_agree(w))
        return "W9: the windows are not those of the tick the wheel stands on";
    if (!gate_agrees(w))
        return "W9: the gate or the express lane is not that of the windows";
    const char *broken = check_lists(&found);
    for (uint32_t level = 0; level < w->levels && broken == NULL; level++)
        broken = check_level(&found, level);
    if (broken != NULL)
        return broken;
    if (found.count != w->count)
        return "W7: the count is not the number of timers";
    if (!event_agrees(&found))
        return "W8: the remembered next event is not that of the slots";
    if (!found.in_order)
        return "W10: a timer is due before the bound of its list, or a list marked as in order is not";
    if (w->exact != 0 && w->exact != found.earliest)
        return "W10: the remembered earliest deadline is not the earliest";
    return NULL;
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
