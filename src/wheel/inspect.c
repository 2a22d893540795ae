/* SPDX-License-Identifier: MIT
 *
 * Looking at a wheel without changing it: visits, the levels, the dump. A visit may take the marks of slots
 * that cancels have emptied, which nobody can tell.
 */
#include "internal.h"
#include "text.h"

#include <base/grow.h>

/* ---- walking --------------------------------------------------------------------------------------------- */

int tw__wheel_list_visit(const struct tw__wheel_list *list, tw_wheel_visit_fn *visit, void *arg)
{
    for (struct tw__link *link = list->link.next; link != &list->link; link = link->next) {
        int result = visit(arg, tw__wheel_timer_of(link));
        if (result != 0)
            return result;
    }
    return 0;
}

/* A visit of the timers that are due at `until` or before. Each timer that the visit looks at costs one unit
 * of the budget, also a timer that lies in a slot which starts in time but is due later. */
struct tour {
    const struct tw_wheel *wheel;
    uint64_t until;
    uint64_t budget;
    tw_wheel_visit_fn *visit;
    void *arg;
};

static int visit_due(void *arg, struct tw_timer *timer)
{
    struct tour *tour = arg;
    if (tour->budget == 0)
        return 1; /* only tw__wheel_visit_budget() comes here: the other calls have an endless budget */
    tour->budget--;
    return timer->deadline <= tour->until ? tour->visit(tour->arg, timer) : 0;
}

/* Whether slot `number` starts early enough for the tour. If not, neither does any later slot. A slot that
 * holds timers starts before time ends, so the product does not overflow. */
static bool starts_in_time(const struct tour *tour, const struct tw__wheel_ring *ring, uint64_t number)
{
    return number * ring->span <= tour->until;
}

/* Goes through the occupied slots of a ring in the order of time. No timer in a slot is due before the slot's
 * first tick: a timer may be pushed back beyond its slot, or wait there for a later round, but it is never
 * due earlier. The loop counts places in the ring and not slot numbers: after the last slot of all time there
 * is no next number. */
static int tour_ring(struct tour *tour, uint32_t level)
{
    struct tw_wheel *w = (struct tw_wheel *)(uintptr_t)tour->wheel;
    const struct tw__wheel_ring *ring = &w->ring[level];
    uint64_t first = level == 0 ? tour->wheel->cur : ring->started;
    uint32_t from = tw__wheel_slot_index(ring, first);
    for (uint32_t seen = 0; seen < ring->count && ring->top != 0; seen++) {
        uint32_t distance = tw__wheel_distance(ring, (from + seen) % ring->count);
        if (distance >= ring->count - seen || !starts_in_time(tour, ring, first + seen + distance))
            return 0; /* once round the ring, or at a slot that starts after `until` */
        seen += distance;
        struct tw__wheel_slot *slot = tw__wheel_slot_at(ring, (from + seen) % ring->count);
        int result = tw__wheel_list_visit(&slot->list, visit_due, tour);
        if (result != 0)
            return result;
        if (tw__wheel_list_empty(&slot->list))
            tw__wheel_unmark(w, slot);
    }
    return 0;
}

static int tour_level(struct tour *tour, uint32_t level)
{
    const struct tw__wheel_ring *ring = &tour->wheel->ring[level];
    int result = 0;
    if (starts_in_time(tour, ring, ring->draining))
        result = tw__wheel_list_visit(&ring->drain, visit_due, tour);
    return result != 0 ? result : tour_ring(tour, level);
}

/* Adds 1 or -1 to the number of visits under way. During a visit nothing may change the wheel. */
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
    int result = tw__wheel_list_visit(&tour->wheel->due, visit_due, tour);
    if (result == 0)
        result = tw__wheel_list_visit(&tour->wheel->soon, visit_due, tour);
    if (result == 0)
        result = tw__wheel_list_visit(&tour->wheel->next_drain, visit_due, tour);
    for (uint32_t level = 0; result == 0 && level < tour->wheel->levels; level++)
        result = tour_level(tour, level);
    note_visit(tour->wheel, -1);
    return result;
}

int tw_wheel_visit_until(const struct tw_wheel *w, uint64_t tick, tw_wheel_visit_fn *visit, void *arg)
{
    return take_tour(
        &(struct tour){.wheel = w, .until = tick, .budget = UINT64_MAX, .visit = visit, .arg = arg});
}

bool tw__wheel_visit_budget(const struct tw_wheel *w, uint64_t tick, uint32_t *budget, tw_wheel_visit_fn *visit,
                            void *arg)
{
    TW_ASSERT(budget != NULL);
    struct tour tour = {.wheel = w, .until = tick, .budget = *budget, .visit = visit, .arg = arg};
    bool all = take_tour(&tour) == 0;
    *budget = (uint32_t)tour.budget;
    return all;
}

int tw_wheel_visit(const struct tw_wheel *w, tw_wheel_visit_fn *visit, void *arg)
{
    return tw_wheel_visit_until(w, UINT64_MAX, visit, arg);
}

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
    tw__wheel_list_visit(list, count_one, &length);
    return length;
}

uint32_t tw_wheel_levels(const struct tw_wheel *w)
{
    TW_ASSERT(w != NULL);
    return w->levels;
}

void tw_wheel_level(const struct tw_wheel *w, uint32_t level, struct tw_level_info *info, size_t size)
{
    TW_ASSERT(w != NULL && info != NULL);
    TW_ASSERT(level < w->levels);
    const struct tw__wheel_ring *ring = &w->ring[level];
    struct tw_level_info all = {
        .slots = ring->count,
        .span = ring->span,
        .current = tw__wheel_slot_index(ring, tw__wheel_slot_number(ring, w->cur)),
        .draining = list_length(&ring->drain),
    };
    for (uint32_t i = 0; i < ring->count; i++) {
        uint64_t length = list_length(&tw__wheel_slot_at(ring, i)->list);
        all.occupied += length > 0;
        all.filed += length;
    }
    tw__grow_fill(info, size, &all, sizeof all);
}

uint64_t tw_wheel_slot_count(const struct tw_wheel *w, uint32_t level, uint32_t slot)
{
    TW_ASSERT(w != NULL);
    TW_ASSERT(level < w->levels && slot < w->ring[level].count);
    return list_length(&tw__wheel_slot_at(&w->ring[level], slot)->list);
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
    struct tw_level_info info;
    tw_wheel_level(w, level, &info, sizeof info);
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
