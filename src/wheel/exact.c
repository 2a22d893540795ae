/* SPDX-License-Identifier: MIT
 *
 * The earliest deadline: how tw_wheel_next_exact() answers without looking at every timer.
 *
 * A slot of an upper level holds timers of many ticks in no order, so its earliest deadline is found by looking
 * at all of them. A program that asks in each turn of its loop cannot pay for that each time. So three things
 * are remembered:
 *
 *     exact      the answer itself. A timer that is filed earlier becomes the answer. When a timer with that
 *                deadline goes, or is moved later, the answer is not known any more. Everything else leaves it
 *                as it is.
 *     bound      for each slot, a tick before which no timer in it is due. It is exact after the slot was
 *                looked through, and stays a bound when timers go or are pushed back, since the rest is only
 *                later. Only a timer that is filed, or moved earlier inside the slot, lowers it.
 *     in_order   for each list, that no timer in it is due before one that comes first and was not pushed back,
 *                as with equal timeouts: then the first one is the earliest, but for timers that were pushed
 *                back, which are passed over.
 *
 * When the answer is not known, the list with the earliest bound is looked through, which gives a deadline and
 * a new bound for this list; then the next list whose bound is earlier than that deadline; until there is none:
 *
 *     level 1, slots of 512 ticks     2560 | 3072 | 3584 | 4096 |     the first tick of each slot
 *     the bounds                      4700 | 3100 | 3620 |   .  |     the first slot's timers were pushed back
 *
 *     3100 is the earliest bound: look. The earliest timer there is 3700, so that is the bound now.
 *     3620 is earlier: look. The earliest timer there is 3650. No bound is earlier: 3650 is the answer.
 *
 * A slot is looked through when it becomes the earliest, and again only when the timer that made its bound is
 * gone and the answer has come up to that bound. With a million timers that are moved, cancelled or fired at
 * random the earliest of a slot of n timers is hit once in n times, so that a call costs O(1) on average. When
 * timers go in the order in which they were filed, in_order makes it O(1) as well. The worst case is a slot of
 * timers that were filed in no order and go in the order of time.
 *
 * Timers that were pushed back would spoil both: a slot may hold nothing else, and none of them tells when it
 * is due. So each that is met in a look through is filed where it belongs, once for each time it was pushed
 * back; its old place would have come up later, and cost the same. And timers around the answer (`near`) are
 * not pushed back but filed again at once.
 *
 * A wheel whose top does not reach the end of time keeps timers of later rounds in a slot. Their bounds lie far
 * behind the slot's first tick, so that a look through the bounds ends late: O(slots).
 *
 * Bounds are kept from the first call on. To keep filing as fast as it is for programs that never ask, the
 * wheel sends all filing past the door from then on (`asked`), where a few instructions more are not missed.
 *
 * Rejected: sorting a slot when it is looked through (a stall of a second for a million timers); a heap of the
 * slots' bounds (the slots of a ring are in the order of time already, and mostly a look through the bounds
 * ends early); filing every timer that is moved later again at once (a heartbeat of a million timers then takes
 * twice as long).
 */
#include "internal.h"

/* ---- looking through ------------------------------------------------------------------------------------- */

enum { SKIP_MAX = 64 }; /* timers that were pushed back, at the front of a list that is in order */

/* The deadline of the first timer that was not pushed back, or an earlier one of a timer before it. In a list
 * that is in order it is the earliest of all: a timer that was pushed back and stands behind it is due later
 * still. 0: too many timers were pushed back. */
static uint64_t first_earliest(const struct tw__wheel_list *list)
{
    uint64_t earliest = TW_NEVER;
    const struct tw__link *link = list->link.next;
    for (int skipped = 0; link != &list->link; link = link->next) {
        const struct tw_timer *timer = (const struct tw_timer *)(const void *)link;
        if (timer->deadline < earliest)
            earliest = timer->deadline;
        if (tw__wheel_filed_on(timer) != TW__WHEEL_PUSHED)
            break;
        if (++skipped > SKIP_MAX)
            return 0;
    }
    return earliest;
}

/* Whether a timer that was pushed back belongs in the list in which it is. */
static bool belongs_here(const struct tw_wheel *w, const struct tw__wheel_list *list, uint64_t deadline)
{
    uint32_t level = list->id >> TW__WHEEL_ID_BITS, index = list->id & TW__WHEEL_ID_DRAIN;
    const struct tw__wheel_ring *ring = &w->ring[level];
    uint64_t number = tw__wheel_slot_number(ring, deadline);
    if (index == TW__WHEEL_ID_DRAIN)
        return number == ring->draining;
    return deadline <= ring->last && tw__wheel_slot_index(ring, number) == index;
}

/* Looks through a list in which no timer is due before `bound`: a timer that is due then ends the search. From
 * the tail, as that is the direction in which hints point on upper levels. A timer that was pushed back stays
 * if it belongs into the slot, and is in order there; the others are moved to `pushed`. Returns the earliest
 * deadline of the timers that stay. */
static uint64_t look_through(struct tw_wheel *w, struct tw__wheel_list *list, uint64_t bound,
                             struct tw__wheel_list *pushed)
{
    uint64_t earliest = TW_NEVER;
    struct tw__link *link = list->link.prev;
    bool in_order = true;
    while (link != &list->link && earliest > bound) {
        struct tw_timer *timer = tw__wheel_timer_of(link);
        bool fits = timer->deadline <= earliest;
        link = link->prev;
        tw__wheel_prefetch_hint(timer);
        if (tw__wheel_filed_on(timer) == TW__WHEEL_PUSHED &&
            !(fits && belongs_here(w, list, timer->deadline))) {
            tw__wheel_list_move(w, timer, pushed);
            continue;
        }
        timer->hint = (timer->hint & ~(uint64_t)TW__WHEEL_PUSHED) | list->id >> TW__WHEEL_ID_BITS;
        in_order = in_order && fits;
        if (fits)
            earliest = timer->deadline;
    }
    list->in_order = in_order && link == &list->link;
    return earliest;
}

/* The earliest deadline of the timers of a list, which is the list's bound from then on. Timers that were
 * pushed back are filed where they belong, in the order in which they were in the list, so that each is met
 * here once. */
static uint64_t list_earliest(struct tw_wheel *w, struct tw__wheel_list *list, uint64_t bound, uint64_t *kept)
{
    uint64_t first = first_earliest(list);
    if (list->in_order ? first != 0 : first == bound)
        return *kept = first;
    struct tw__wheel_list pushed;
    tw__wheel_list_init(&pushed, TW__WHEEL_ID_DUE);
    uint64_t best = *kept = look_through(w, list, bound, &pushed);
    while (!tw__wheel_list_empty(&pushed)) {
        struct tw_timer *timer = tw__wheel_timer_of(pushed.link.next);
        tw__wheel_lower(&best, timer->deadline);
        tw__wheel_refile(w, timer);
    }
    return best;
}

/* A list, and where its bound is kept. */
struct bounded_list {
    struct tw__wheel_list *list; /* NULL: none was found yet */
    uint64_t *kept;
    uint64_t bound;
};

/* Takes the list if its bound is earlier than that of the one before. No timer in it is due before `start`. */
static void consider(struct bounded_list *candidate, struct tw__wheel_list *list, uint64_t *kept,
                     uint64_t start)
{
    uint64_t bound = *kept > start ? *kept : start;
    if (bound < candidate->bound)
        *candidate = (struct bounded_list){list, kept, bound};
}

/* The slots of a ring in the order of time, as long as they start before the earliest bound that was found. */
static void consider_ring(const struct tw_wheel *w, uint32_t level, struct bounded_list *candidate)
{
    const struct tw__wheel_ring *ring = &w->ring[level];
    uint64_t first = level == 0 ? w->cur : ring->started;
    uint32_t from = tw__wheel_slot_index(ring, first);
    for (uint32_t seen = 0; ring->top != 0 && seen < ring->count; seen++) {
        seen += tw__wheel_distance(ring, (from + seen) % ring->count);
        if (seen >= ring->count || (first + seen) * ring->span >= candidate->bound)
            return;
        uint32_t index = (from + seen) % ring->count;
        consider(candidate, &tw__wheel_slot_at(ring, index)->list, &ring->bound[index],
                 (first + seen) * ring->span);
    }
}

/* The list with the earliest bound of all that have one before `best`. */
static struct bounded_list earliest_bound(struct tw_wheel *w, uint64_t best)
{
    struct bounded_list candidate = {.list = NULL, .bound = best};
    for (uint32_t level = 0; level < w->levels; level++) {
        struct tw__wheel_ring *ring = &w->ring[level];
        if (ring->bound == NULL)
            continue;
        if (w->active >> level & 1)
            consider(&candidate, &ring->drain, &ring->drain_bound, ring->draining * ring->span);
        consider_ring(w, level, &candidate);
    }
    return candidate;
}

/* The earliest deadline on level 0 under other levels, where a slot is one tick. */
static uint64_t earliest_near(const struct tw_wheel *w)
{
    const struct tw__wheel_ring *ring = &w->ring[0];
    if (ring->bound != NULL || ring->top == 0)
        return TW_NEVER;
    return tw__add_saturating(w->cur, tw__wheel_distance(ring, tw__wheel_slot_index(ring, w->cur)));
}

/* The earliest deadline of the timers on the rings and in the due list. */
static uint64_t earliest(struct tw_wheel *w)
{
    uint64_t due = tw__wheel_earliest_due(w), near = earliest_near(w), best = due < near ? due : near;
    for (;;) {
        struct bounded_list candidate = earliest_bound(w, best);
        if (candidate.list == NULL)
            return best;
        tw__wheel_lower(&best, list_earliest(w, candidate.list, candidate.bound, candidate.kept));
    }
}

/* The deadline of the first in a list of timers that were filed for now, which is the earliest in it. */
static uint64_t first_of(const struct tw__wheel_list *list)
{
    return tw__wheel_list_empty(list) ? TW_NEVER : tw__wheel_timer_of(list->link.next)->deadline;
}

uint64_t tw_wheel_next_exact(struct tw_wheel *w)
{
    tw__wheel_may_change(w);
    w->asked = true;
    w->open = 0;
    if (w->exact == 0)
        w->exact = earliest(w);
    w->near = tw__add_saturating(w->exact, w->ring[0].count);
    uint64_t soon = first_of(&w->soon), next_drain = first_of(&w->next_drain);
    uint64_t now = soon < next_drain ? soon : next_drain;
    return now < w->exact ? now : w->exact;
}
