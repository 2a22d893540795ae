/* SPDX-License-Identifier: MIT
 *
 * Looking at a wheel without changing it: visits, the levels, the invariants, the dump.
 */
#include "internal.h"
#include "text.h"

/* ---- walking --------------------------------------------------------------------------------------------- */

/* Visits the timers of one list. */
static int visit_list(const struct tw__head *head, tw_visit_fn *visit, void *arg)
{
    for (struct tw__link *link = head->link.next; link != &head->link; link = link->next) {
        int result = visit(arg, tw__timer(link));
        if (result != 0)
            return result;
    }
    return 0;
}

/* A visit of the timers that are due at `until` or before. What is called may lower it, to see fewer. Each timer that is
 * looked at is taken off the budget, also one that lies in a slot of the time and is due later. */
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

/* False where slot `number` starts too late for the tour, and with it all that come after. A slot that holds timers
 * starts before time ends, so nothing overflows here. */
static bool starts_in_time(const struct tour *tour, const struct tw__level *level, uint64_t number)
{
    return number * level->span <= tour->until;
}

/* Goes through the occupied slots of a ring in the order of time. A slot holds no deadline before its first tick: a
 * timer may be pushed back beyond its slot, or wait there for a later turn, but never the other way. It is the places
 * in the ring that are counted: after the last slot of all time there is no next number. */
static int tour_ring(struct tour *tour, uint32_t l)
{
    const struct tw__level *level = &tour->wheel->level[l];
    uint64_t first = l == 0 ? tour->wheel->cur : level->started;
    uint32_t from = tw__ring_index(level, l, first);
    for (uint32_t seen = 0; level->top != 0 && seen < level->count; seen++) {
        seen += tw__distance(level, (from + seen) % level->count);
        if (seen >= level->count || !starts_in_time(tour, level, first + seen))
            return 0; /* round once, or far enough */
        int result = visit_list(&tw__slot_at(level, (from + seen) % level->count)->head, visit_due, tour);
        if (result != 0)
            return result;
    }
    return 0;
}

static int tour_level(struct tour *tour, uint32_t l)
{
    const struct tw__level *level = &tour->wheel->level[l];
    int result = 0;
    if (starts_in_time(tour, level, level->draining))
        result = visit_list(&level->drain, visit_due, tour);
    return result != 0 ? result : tour_ring(tour, l);
}

static int take_tour(struct tour *tour)
{
    int result = visit_list(&tour->wheel->due, visit_due, tour);
    if (result == 0)
        result = visit_list(&tour->wheel->soon, visit_due, tour);
    if (result == 0)
        result = visit_list(&tour->wheel->held, visit_due, tour);
    for (uint32_t l = 0; result == 0 && l < tour->wheel->levels; l++)
        result = tour_level(tour, l);
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
    struct tour tour = {.wheel = w, .until = tick, .budget = *budget, .visit = visit, .arg = arg};
    bool all = take_tour(&tour) == 0;
    *budget = (uint32_t)tour.budget;
    return all;
}

int tw_wheel_visit(const struct tw_wheel *w, tw_visit_fn *visit, void *arg)
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

static uint64_t list_length(const struct tw__head *head)
{
    uint64_t length = 0;
    visit_list(head, count_one, &length);
    return length;
}

uint32_t tw_wheel_levels(const struct tw_wheel *w)
{
    return w->levels;
}

struct tw_level_info tw_wheel_level(const struct tw_wheel *w, uint32_t l)
{
    TW_ASSERT(l < w->levels);
    const struct tw__level *level = &w->level[l];
    struct tw_level_info info = {
        .slots = level->count,
        .span = level->span,
        .current = tw__ring_index(level, l, tw__slot_number(level, l, w->cur)),
        .draining = list_length(&level->drain),
    };
    for (uint32_t i = 0; i < level->count; i++) {
        if (tw__bit_test(level, i)) {
            info.occupied++;
            info.filed += list_length(&tw__slot_at(level, i)->head);
        }
    }
    return info;
}

uint64_t tw_wheel_slot_count(const struct tw_wheel *w, uint32_t l, uint32_t slot)
{
    TW_ASSERT(l < w->levels && slot < w->level[l].count);
    return list_length(&tw__slot_at(&w->level[l], slot)->head);
}

/* ---- the invariants -------------------------------------------------------------------------------------- */

/* W1, counting the timers of a list; false when a link is broken. */
static bool links_agree(const struct tw__head *head, uint64_t *count)
{
    const struct tw__link *link = &head->link;
    do {
        if (link->next == NULL || link->next->prev != link)
            return false;
        link = link->next;
        ++*count;
    } while (link != &head->link);
    --*count; /* the head itself */
    return true;
}

static bool slot_links_agree(const struct tw__level *level, uint64_t *count)
{
    for (uint32_t i = 0; i < level->count; i++)
        if (!links_agree(&tw__slot_at(level, i)->head, count))
            return false;
    return links_agree(&level->drain, count);
}

/* W2. */
static bool bits_agree(const struct tw_wheel *w, uint32_t l)
{
    const struct tw__level *level = &w->level[l];
    uint32_t words = (level->count + 63) / 64;
    for (uint32_t i = 0; i < level->count; i++)
        if (tw__bit_test(level, i) == tw__list_empty(&tw__slot_at(level, i)->head))
            return false;
    for (uint32_t i = 0; i < words; i++)
        if ((level->sums[i >> 6] >> (i & 63) & 1) != (level->bits[i] != 0))
            return false;
    for (uint32_t i = 0; i < (words + 63) / 64; i++)
        if ((level->top >> i & 1) != (level->sums[i] != 0))
            return false;
    return (w->occupied >> l & 1) == (level->top != 0);
}

/* What a check of one timer needs to know of where it is, and what it finds. */
struct place {
    const struct tw_wheel *wheel;
    uint32_t l, index;
    const char *broken;
};

/* W3 to W5 for one timer on a ring. */
static int check_filed(void *arg, struct tw_timer *timer)
{
    struct place *place = arg;
    const struct tw_wheel *w = place->wheel;
    const struct tw__level *level = &w->level[place->l];
    if (tw__place(timer) == TW__PLACE_PUSHED)
        return 0;
    uint64_t number = tw__slot_number(level, place->l, timer->deadline);
    if (tw__place(timer) != place->l || tw__ring_index(level, place->l, number) != place->index)
        place->broken = "W3: a timer is not in the slot of its deadline";
    else if (timer->deadline > level->last || (place->l > 0 && number < level->started))
        place->broken = "W4: a timer is outside its level's window";
    else if (timer->deadline <= w->cur && w->cur != UINT64_MAX && w->phase == TW__SETTLED)
        place->broken = "W5: a timer waits on a tick that has passed";
    return place->broken != NULL;
}

/* W6 for one timer on a drain list. */
static int check_draining(void *arg, struct tw_timer *timer)
{
    struct place *place = arg;
    const struct tw__level *level = &place->wheel->level[place->l];
    if (tw__place(timer) == TW__PLACE_PUSHED)
        return 0;
    uint64_t number = tw__slot_number(level, place->l, timer->deadline);
    if (tw__ring_index(level, place->l, number) != tw__ring_index(level, place->l, level->draining))
        place->broken = "W6: a timer being refiled is not of the slot its level names";
    return place->broken != NULL;
}

static const char *check_places(const struct tw_wheel *w, uint32_t l)
{
    const struct tw__level *level = &w->level[l];
    struct place place = {.wheel = w, .l = l, .broken = NULL};
    for (uint32_t i = 0; i < level->count && place.broken == NULL; i++) {
        place.index = i;
        visit_list(&tw__slot_at(level, i)->head, check_filed, &place);
    }
    if (place.broken == NULL)
        visit_list(&level->drain, check_draining, &place);
    return place.broken;
}

static const char *check_level(const struct tw_wheel *w, uint32_t l, uint64_t *count)
{
    const struct tw__level *level = &w->level[l];
    if (!slot_links_agree(level, count))
        return "W1: two links do not agree";
    if (!bits_agree(w, l))
        return "W2: the bitmap does not show which slots hold timers";
    if ((w->active >> l & 1) == tw__list_empty(&level->drain))
        return "W6: a level is active without a slot to refile, or the other way round";
    return check_places(w, l);
}

/* W9: the windows, from the top down. */
static bool windows_agree(const struct tw_wheel *w)
{
    uint64_t above = UINT64_MAX;
    for (uint32_t l = w->levels; l-- > 0;) {
        uint64_t own = tw__window_end(w, l);
        above = own < above ? own : above;
        if (w->level[l].last != above)
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
    return visit_list(&w->soon, is_due, arg) == 0 && visit_list(&w->held, is_due, arg) == 0 &&
           (w->in_drain || tw__list_empty(&w->held));
}

const char *tw_wheel_check(const struct tw_wheel *w)
{
    uint64_t count = 0;
    if (!windows_agree(w))
        return "W9: the windows are not those of the tick the wheel stands on";
    if (!links_agree(&w->due, &count) || !links_agree(&w->soon, &count) || !links_agree(&w->held, &count))
        return "W1: two links do not agree";
    if (!now_agrees(w))
        return "W11: a timer filed for now is later, or waits for a drain that has ended";
    for (uint32_t l = 0; l < w->levels; l++) {
        const char *broken = check_level(w, l, &count);
        if (broken != NULL)
            return broken;
    }
    if (count != w->count)
        return "W7: the count is not the number of timers";
    if (w->event_known && w->event != tw__wheel_event(w))
        return "W8: the next event is not what the slots say";
    return tw__exact_check(w);
}

/* ---- the dump -------------------------------------------------------------------------------------------- */

enum { LINE_SIZE = 200 };

static void put_field(struct tw__text *text, const char *name, uint64_t value)
{
    tw__text_put(text, name);
    tw__text_number(text, value);
}

static void dump_level(const struct tw_wheel *w, uint32_t l, struct tw__text *text)
{
    struct tw_level_info info = tw_wheel_level(w, l);
    put_field(text, "  level ", l);
    put_field(text, ": ", info.slots);
    put_field(text, " slots of ", info.span);
    put_field(text, " ticks, at slot ", info.current);
    put_field(text, "; ", info.filed);
    put_field(text, " timers in ", info.occupied);
    put_field(text, " slots, ", info.draining);
    tw__text_put(text, " being refiled\n");
}

void tw_wheel_dump(const struct tw_wheel *w, tw_emit_fn *emit, void *arg)
{
    char line[LINE_SIZE];
    struct tw__text text;
    tw__text_init(&text, line, sizeof line);
    put_field(&text, "wheel at tick ", w->now);
    put_field(&text, ": ", w->count);
    put_field(&text, " timers, ", list_length(&w->due) + list_length(&w->soon) + list_length(&w->held));
    put_field(&text, " of them due, ", w->refiled);
    tw__text_put(&text, " refiled so far\n");
    emit(arg, line, text.length);
    for (uint32_t l = 0; l < w->levels; l++) {
        tw__text_init(&text, line, sizeof line);
        dump_level(w, l, &text);
        emit(arg, line, text.length);
    }
}
