/* SPDX-License-Identifier: MIT
 *
 * Looking at a wheel without changing it: visit, exact next deadline, the levels, the invariants, the dump.
 */
#include "internal.h"
#include "text.h"

/* ---- walking --------------------------------------------------------------------------------------------- */

/* Visits the timers of one list. */
static int visit_list(const struct tw__head *head, tw_visit_fn *visit, void *arg)
{
    for (struct tw_link *link = head->link.next; link != &head->link; link = link->next) {
        int result = visit(arg, tw__timer(link));
        if (result != 0)
            return result;
    }
    return 0;
}

/* Visits the occupied slots of a ring. */
static int visit_ring(const struct tw__level *level, tw_visit_fn *visit, void *arg)
{
    uint32_t i = 0;
    while (level->top != 0 && i < level->count) {
        uint32_t distance = tw__distance(level, i);
        if (distance >= level->count - i)
            return 0; /* that one lies before i: all have been visited */
        i += distance;
        int result = visit_list(&tw__slot_at(level, i++)->head, visit, arg);
        if (result != 0)
            return result;
    }
    return 0;
}

int tw_wheel_visit(const struct tw_wheel *w, tw_visit_fn *visit, void *arg)
{
    int result = visit_list(&w->due, visit, arg);
    for (uint32_t l = 0; result == 0 && l < w->levels; l++) {
        result = visit_list(&w->level[l].drain, visit, arg);
        if (result == 0)
            result = visit_ring(&w->level[l], visit, arg);
    }
    return result;
}

/* ---- the earliest deadline ------------------------------------------------------------------------------- */

static int keep_earliest(void *arg, const struct tw_timer *timer)
{
    uint64_t *earliest = arg;
    if (timer->deadline < *earliest)
        *earliest = timer->deadline;
    return 0;
}

/* Looks through the slots of a ring in order of time, as long as they could hold an earlier deadline: a timer may be
 * pushed back beyond its slot, never before it. */
static void earliest_on_ring(const struct tw_wheel *w, uint32_t l, uint64_t *earliest)
{
    const struct tw__level *level = &w->level[l];
    uint64_t slot = l == 0 ? w->cur : level->started;
    for (uint32_t seen = 0; level->top != 0 && seen < level->count; seen++, slot++) {
        uint32_t distance = tw__distance(level, tw__ring_index(level, l, slot));
        slot += distance;
        seen += distance;
        if (seen >= level->count || tw__mul_saturating(slot, level->span) >= *earliest)
            return;
        visit_list(&tw__slot_at(level, tw__ring_index(level, l, slot))->head, keep_earliest, earliest);
    }
}

uint64_t tw_wheel_next_exact(const struct tw_wheel *w)
{
    uint64_t earliest = TW_NEVER;
    visit_list(&w->due, keep_earliest, &earliest);
    for (uint32_t l = 0; l < w->levels; l++) {
        visit_list(&w->level[l].drain, keep_earliest, &earliest);
        earliest_on_ring(w, l, &earliest);
    }
    return earliest;
}

/* ---- the levels ------------------------------------------------------------------------------------------ */

static int count_one(void *arg, const struct tw_timer *timer)
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

static uint32_t bits_set(const struct tw__level *level)
{
    uint32_t set = 0;
    for (uint32_t i = 0; i < (level->count + 63) / 64; i++)
        for (uint64_t word = level->bits[i]; word != 0; word &= word - 1)
            set++;
    return set;
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
        .occupied = bits_set(level),
        .draining = list_length(&level->drain),
    };
    visit_ring(level, count_one, &info.filed);
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
    const struct tw_link *link = &head->link;
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
static int check_filed(void *arg, const struct tw_timer *timer)
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
static int check_draining(void *arg, const struct tw_timer *timer)
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

const char *tw_wheel_check(const struct tw_wheel *w)
{
    uint64_t count = 0;
    if (!windows_agree(w))
        return "W9: the windows are not those of the tick the wheel stands on";
    if (!links_agree(&w->due, &count))
        return "W1: two links do not agree";
    for (uint32_t l = 0; l < w->levels; l++) {
        const char *broken = check_level(w, l, &count);
        if (broken != NULL)
            return broken;
    }
    if (count != w->count)
        return "W7: the count is not the number of timers";
    if (w->event_known && w->event != tw__wheel_event(w))
        return "W8: the next event is not what the slots say";
    return NULL;
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
    put_field(&text, " timers, ", list_length(&w->due));
    put_field(&text, " of them due, ", w->refiled);
    tw__text_put(&text, " refiled so far\n");
    emit(arg, line, text.length);
    for (uint32_t l = 0; l < w->levels; l++) {
        tw__text_init(&text, line, sizeof line);
        dump_level(w, l, &text);
        emit(arg, line, text.length);
    }
}
