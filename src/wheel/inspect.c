/* SPDX-License-Identifier: MIT
 *
 * Looking at a wheel without changing it: visits, the levels, the invariants, the dump.
 */
#include "internal.h"
#include "text.h"

/* ---- walking --------------------------------------------------------------------------------------------- */

/* Visits the timers of one list. */
static int visit_list(const struct tw__wheel_list *list, tw_visit_fn *visit, void *arg)
{
    for (struct tw__link *link = list->link.next; link != &list->link; link = link->next) {
        int result = visit(arg, tw__wheel_timer_of(link));
        if (result != 0)
            return result;
    }
    return 0;
}

/* A visit of the timers that are due at `until` or before. What is called may lower it, to see fewer. Each
 * timer that is looked at is taken off the budget, also one that lies in a slot of the time and is due
 * later. */
struct tour {
    const struct tw_wheel *wheel;
    uint64_t until;
    uint64_t budget;
    tw_visit_fn *visit;
    void *arg;
};

static int visit_due(void *arg, struct tw_timer *timer)
{
    struct tour *tour = arg;
    if (tour->budget == 0)
        return 1; /* of tw_wheel_visit_budget(), which asks no further; no other budget is ever used up */
    tour->budget--;
    return timer->deadline <= tour->until ? tour->visit(tour->arg, timer) : 0;
}

/* False where slot `number` starts too late for the tour, and with it all that come after. A slot that holds
 * timers starts before time ends, so nothing overflows here. */
static bool starts_in_time(const struct tour *tour, const struct tw__wheel_ring *ring, uint64_t number)
{
    return number * ring->span <= tour->until;
}

/* Goes through the occupied slots of a ring in the order of time. A slot holds no deadline before its first
 * tick: a timer may be pushed back beyond its slot, or wait there for a later turn, but never the other way. It
 * is the places in the ring that are counted: after the last slot of all time there is no next number. */
static int tour_ring(struct tour *tour, uint32_t level)
{
    const struct tw__wheel_ring *ring = &tour->wheel->ring[level];
    uint64_t first = level == 0 ? tour->wheel->cur : ring->started;
    uint32_t from = tw__wheel_slot_index(ring, first);
    for (uint32_t seen = 0; ring->top != 0 && seen < ring->count; seen++) {
        seen += tw__wheel_distance(ring, (from + seen) % ring->count);
        if (seen >= ring->count || !starts_in_time(tour, ring, first + seen))
            return 0; /* round once, or far enough */
        int result = visit_list(&tw__wheel_slot_at(ring, (from + seen) % ring->count)->list, visit_due, tour);
        if (result != 0)
            return result;
    }
    return 0;
}

static int tour_level(struct tour *tour, uint32_t level)
{
    const struct tw__wheel_ring *ring = &tour->wheel->ring[level];
    int result = 0;
    if (starts_in_time(tour, ring, ring->draining))
        result = visit_list(&ring->drain, visit_due, tour);
    return result != 0 ? result : tour_ring(tour, level);
}

/* Counts the visits under way, in which nothing may change the wheel: by 1 or -1. */
static void note_visit(const struct tw_wheel *w, int change)
{
#if TW_DEBUG > 0
    struct tw_wheel *noted = (struct tw_wheel *)(uintptr_t)w;
    noted->visiting = (uint8_t)(noted->visiting + change);
#endif
    (void)w;
    (void)change;
}

static int take_tour(struct tour *tour)
{
    TW_ASSERT(tour->wheel != NULL && tour->visit != NULL);
    note_visit(tour->wheel, 1);
    int result = visit_list(&tour->wheel->due, visit_due, tour);
    if (result == 0)
        result = visit_list(&tour->wheel->soon, visit_due, tour);
    if (result == 0)
        result = visit_list(&tour->wheel->next_drain, visit_due, tour);
    for (uint32_t level = 0; result == 0 && level < tour->wheel->levels; level++)
        result = tour_level(tour, level);
    note_visit(tour->wheel, -1);
    return result;
}

int tw_wheel_visit_until(const struct tw_wheel *w, uint64_t tick, tw_visit_fn *visit, void *arg)
{
    return take_tour(
        &(struct tour){.wheel = w, .until = tick, .budget = UINT64_MAX, .visit = visit, .arg = arg});
}

bool tw_wheel_visit_budget(const struct tw_wheel *w, uint64_t tick, uint32_t *budget, tw_visit_fn *visit,
                           void *arg)
{
    TW_ASSERT(budget != NULL);
    struct tour tour = {.wheel = w, .until = tick, .budget = *budget, .visit = visit, .arg = arg};
    bool all = take_tour(&tour) == 0;
    *budget = (uint32_t)tour.budget;
    return all;
}

int tw_wheel_visit(const struct tw_wheel *w, tw_visit_fn *visit, void *arg)
{
    return tw_wheel_visit_until(w, UINT64_MAX, visit, arg);
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

/* ---- the levels ------------------------------------------------------------------------------------------ */

static int count_one(void *arg, struct tw_timer *timer)
{
    (void)timer;
    ++*(uint64_t *)arg;
    return 0;
}

static uint64_t list_length(const struct tw__wheel_list *list)
{
    uint64_t length = 0;
    visit_list(list, count_one, &length);
    return length;
}

uint32_t tw_wheel_levels(const struct tw_wheel *w)
{
    TW_ASSERT(w != NULL);
    return w->levels;
}

struct tw_level_info tw_wheel_level(const struct tw_wheel *w, uint32_t level)
{
    TW_ASSERT(w != NULL);
    TW_ASSERT(level < w->levels);
    const struct tw__wheel_ring *ring = &w->ring[level];
    struct tw_level_info info = {
        .slots = ring->count,
        .span = ring->span,
        .current = tw__wheel_slot_index(ring, tw__wheel_slot_number(ring, w->cur)),
        .draining = list_length(&ring->drain),
    };
    for (uint32_t i = 0; i < ring->count; i++) {
        if (tw__wheel_bit_test(ring, i)) {
            info.occupied++;
            info.filed += list_length(&tw__wheel_slot_at(ring, i)->list);
        }
    }
    return info;
}

uint64_t tw_wheel_slot_count(const struct tw_wheel *w, uint32_t level, uint32_t slot)
{
    TW_ASSERT(w != NULL);
    TW_ASSERT(level < w->levels && slot < w->ring[level].count);
    return list_length(&tw__wheel_slot_at(&w->ring[level], slot)->list);
}

/* ---- the invariants -------------------------------------------------------------------------------------- */

/* W1, counting the timers of a list; false when a link is broken. */
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

/* W2. */
static bool bits_agree(const struct tw_wheel *w, uint32_t level)
{
    const struct tw__wheel_ring *ring = &w->ring[level];
    uint32_t words = (ring->count + 63) / 64;
    for (uint32_t i = 0; i < ring->count; i++)
        if (tw__wheel_bit_test(ring, i) == tw__wheel_list_empty(&tw__wheel_slot_at(ring, i)->list))
            return false;
    for (uint32_t i = 0; i < words; i++)
        if ((ring->sums[i >> 6] >> (i & 63) & 1) != (ring->bits[i] != 0))
            return false;
    for (uint32_t i = 0; i < (words + 63) / 64; i++)
        if ((ring->top >> i & 1) != (ring->sums[i] != 0))
            return false;
    return (w->occupied >> level & 1) == (ring->top != 0);
}

/* A check of the timers of one list: which list it is, and the first invariant that a timer breaks. */
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
    for (uint32_t i = 0; i < ring->count && seen.broken == NULL; i++) {
        seen.index = i;
        visit_list(&tw__wheel_slot_at(ring, i)->list, check_filed, &seen);
    }
    if (seen.broken == NULL)
        visit_list(&ring->drain, check_draining, &seen);
    return seen.broken;
}

static const char *check_level(const struct tw_wheel *w, uint32_t level, uint64_t *count)
{
    const struct tw__wheel_ring *ring = &w->ring[level];
    if (!slot_links_agree(ring, count))
        return "W1: two links do not agree";
    if (!bits_agree(w, level))
        return "W2: the bitmap does not show which slots hold timers";
    if ((w->active >> level & 1) == tw__wheel_list_empty(&ring->drain))
        return "W6: a level is active without a slot to refile, or the other way round";
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

static int is_due(void *arg, struct tw_timer *timer)
{
    return timer->deadline > ((const struct tw_wheel *)arg)->now;
}

/* W11: the two lists of timers that were filed for now. */
static bool now_agrees(const struct tw_wheel *w)
{
    void *arg = (void *)(uintptr_t)w;
    return visit_list(&w->soon, is_due, arg) == 0 && visit_list(&w->next_drain, is_due, arg) == 0 &&
           (w->in_drain || tw__wheel_list_empty(&w->next_drain));
}

const char *tw_wheel_check(const struct tw_wheel *w)
{
    TW_ASSERT(w != NULL);
    uint64_t count = 0;
    if (!windows_agree(w))
        return "W9: the windows are not those of the tick the wheel stands on";
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
    if (w->event_known && w->event != tw__wheel_event(w))
        return "W8: the next event is not what the slots say";
    return tw__wheel_exact_check(w);
}

/* ---- the dump -------------------------------------------------------------------------------------------- */

enum { LINE_SIZE = 200 };

static void put_field(struct tw__wheel_text *text, const char *name, uint64_t value)
{
    tw__wheel_text_put(text, name);
    tw__wheel_text_number(text, value);
}

static void dump_level(const struct tw_wheel *w, uint32_t level, struct tw__wheel_text *text)
{
    struct tw_level_info info = tw_wheel_level(w, level);
    put_field(text, "  level ", level);
    put_field(text, ": ", info.slots);
    put_field(text, " slots of ", info.span);
    put_field(text, " ticks, at slot ", info.current);
    put_field(text, "; ", info.filed);
    put_field(text, " timers in ", info.occupied);
    put_field(text, " slots, ", info.draining);
    tw__wheel_text_put(text, " being refiled\n");
}

void tw_wheel_dump(const struct tw_wheel *w, tw_emit_fn *emit, void *arg)
{
    TW_ASSERT(w != NULL && emit != NULL);
    char line[LINE_SIZE];
    struct tw__wheel_text text;
    tw__wheel_text_init(&text, line, sizeof line);
    put_field(&text, "wheel at tick ", w->now);
    put_field(&text, ": ", w->count);
    put_field(&text, " timers, ", list_length(&w->due) + list_length(&w->soon) + list_length(&w->next_drain));
    put_field(&text, " of them due, ", w->refiled);
    tw__wheel_text_put(&text, " refiled so far\n");
    emit(arg, line, text.length);
    for (uint32_t level = 0; level < w->levels; level++) {
        tw__wheel_text_init(&text, line, sizeof line);
        dump_level(w, level, &text);
        emit(arg, line, text.length);
    }
}
