/* SPDX-License-Identifier: MIT
 *
 * The earliest deadline: how tw_wheel_next_exact() finds it without looking at every timer.
 *
 * A slot of an upper level holds timers of many ticks in no order. To find its earliest deadline, the wheel
 * must look at all of them. A program that asks in each iteration of its event loop cannot pay for that each
 * time. So the wheel remembers three values:
 *
 *     exact      the earliest deadline itself. A timer that is filed for an earlier tick replaces it. When a
 *                timer with this deadline leaves the wheel, or is moved later, the value is forgotten (0).
 *                Everything else leaves it as it is.
 *     bound      for each slot, a tick before which no timer in the slot is due. It is exact after the wheel
 *                has looked through the slot. It stays a bound when timers leave or are pushed back, because
 *                the timers that stay are not due earlier. Only a timer that is filed, or moved earlier
 *                inside the slot, lowers it.
 *     in_order   for each list, that no timer in it is due before a timer ahead of it that was not pushed
 *                back. So it is with equal timeouts. The first timer then has the earliest deadline, except
 *                for timers that were pushed back: the search passes over them.
 *
 * When `exact` is not known, the wheel looks through the list with the earliest bound. This gives a deadline,
 * and a new bound for the list. The wheel goes on with the next list whose bound is earlier than the best
 * deadline so far, until no list has an earlier bound. Example:
 *
 *     level 1, slots of 512 ticks     2560 | 3072 | 3584 | 4096 |     the first tick of each slot
 *     the bounds before                 .  | 3100 | 3620 | 4200 |
 *     after the first look              .  |   .  | 3620 | 4200 |     best so far: 3700
 *     after the second look             .  |   .  | 3650 | 4200 |     best so far: 3650
 *
 * The earliest bound is 3100, so the wheel looks through that slot. All its timers have been pushed back, the
 * earliest of them to 3700. The look files them where they belong, so the slot is empty now, and the slot of
 * 3584 holds the earliest of them. The bound 3620 is earlier than 3700, so the wheel looks through that slot
 * too. The timer of 3620 was cancelled, and the earliest timer is due at 3650. The bound 4200 is later, so
 * 3650 is the earliest deadline.
 *
 * Cost. A slot is looked through when it becomes the earliest. It is looked through again only when the timer
 * that made its bound is gone and the search has come up to that bound.
 *   - A million timers are moved, cancelled or fired at random. The earliest timer of a slot of n timers is
 *     hit once in n times, so a call costs O(1) on average.
 *   - Timers leave in the order in which they were filed. in_order makes a call O(1) here as well.
 *   - The worst case: timers of one slot were filed in no order, and leave in the order of their deadlines.
 *     Then each call looks at the whole slot.
 *
 * Timers that were pushed back would spoil the first two cases. A slot may hold no other timers, and the
 * place of a pushed-back timer does not tell when it is due. So a look through a list files each pushed-back
 * timer that it meets where it belongs, once for each time the timer was pushed back. This costs the same as
 * filing it later, when its old place comes up. And a timer near the earliest deadline (due before `near`) is
 * not pushed back but filed again at once.
 *
 * A wheel whose top does not reach the end of time keeps timers of later rounds in a slot. The bounds of such
 * slots lie far after the slot's first tick, so a search over the bounds ends late. It costs O(slots).
 *
 * Bounds are kept from the first call of tw_wheel_next_exact() on. Programs that never call it must not pay
 * for them when they file timers. So from that call on (`asked`) the wheel sends all filing past the door,
 * where a few more instructions do not matter.
 *
 * Rejected
 *   - Sorting a slot when it is looked through. A million timers would stall for a second.
 *   - A heap of the slots' bounds. The slots of a ring are in the order of time already, and a search over
 *     the bounds ends early in most cases.
 *   - Filing every timer that is moved later again at once. A heartbeat of a million timers then takes twice
 *     as long.
 */
#include "internal.h"

/* ---- looking through ------------------------------------------------------------------------------------- */

enum { SKIP_MAX = 64 }; /* pushed-back timers to pass over at the front of a list that is in order */

/* The earliest deadline among the first timer that was not pushed back and the timers ahead of it. In a list
 * that is in order no timer is due earlier: a pushed-back timer behind that first timer is due later still.
 * Returns 0 when more than SKIP_MAX timers at the front were pushed back. */
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

/* Whether a pushed-back timer with this deadline belongs in the list that it is in. */
static bool belongs_here(const struct tw_wheel *w, const struct tw__wheel_list *list, uint64_t deadline)
{
    uint32_t level = list->id >> TW__WHEEL_ID_BITS, index = list->id & TW__WHEEL_ID_DRAIN;
    const struct tw__wheel_ring *ring = &w->ring[level];
    uint64_t number = tw__wheel_slot_number(ring, deadline);
    if (index == TW__WHEEL_ID_DRAIN)
        return number == ring->draining;
    return deadline <= ring->last && tw__wheel_slot_index(ring, number) == index;
}

/* Looks through a list in which no timer is due before `bound`, so a timer that is due at `bound` ends the
 * search. It walks from the tail, because on upper levels hints point in that direction. A pushed-back timer
 * stays if it belongs in the slot and is in order there; other pushed-back timers are moved to `pushed`.
 * Returns the earliest deadline of the timers that stay. */
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

/* Finds the earliest deadline of a list's timers, and sets the list's bound to the earliest of the timers
 * that stay in it. Pushed-back timers are filed where they belong, in the order in which they were in the
 * list, so that each is met here once. Returns the earliest deadline, the timers filed elsewhere included.
 * The earliest deadline of a list in order is found at its front, and such a list keeps its pushed-back
 * timers. */
static uint64_t list_earliest(struct tw_wheel *w, struct tw__wheel_list *list, uint64_t bound, uint64_t *kept)
{
    uint64_t first = first_earliest(list);
    if (first != 0 && (list->in_order || first == bound))
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

/* A list with its bound. */
struct bounded_list {
    struct tw__wheel_list *list; /* NULL: no list was found yet */
    uint64_t *kept;              /* where the bound is kept */
    uint64_t bound;
};

/* Makes the list the candidate if its bound is earlier than the candidate's. Requires: no timer in the list
 * is due before `start`. */
static void consider(struct bounded_list *candidate, struct tw__wheel_list *list, uint64_t *kept,
                     uint64_t start)
{
    uint64_t bound = *kept > start ? *kept : start;
    if (bound < candidate->bound)
        *candidate = (struct bounded_list){list, kept, bound};
}

/* Considers the slots of a ring in the order of time, as long as they start before the candidate's bound. */
static void consider_ring(const struct tw_wheel *w, uint32_t level, struct bounded_list *candidate)
{
    const struct tw__wheel_ring *ring = &w->ring[level];
    uint64_t first = level == 0 ? w->cur : ring->started;
    uint32_t from = tw__wheel_slot_index(ring, first);
    for (uint32_t seen = 0; seen < ring->count; seen++) {
        uint32_t distance = tw__wheel_next_slot(w, level, (from + seen) % ring->count);
        if (distance >= ring->count - seen || (first + seen + distance) * ring->span >= candidate->bound)
            return;
        seen += distance;
        uint32_t index = (from + seen) % ring->count;
        consider(candidate, &tw__wheel_slot_at(ring, index)->list, &ring->bound[index],
                 (first + seen) * ring->span);
    }
}

/* The list with the earliest bound before `best`; `list` is NULL when no list has a bound before `best`. */
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

/* The earliest deadline on level 0 under other levels, where a slot is one tick. TW_NEVER: no timer is there,
 * or level 0 keeps bounds. */
static uint64_t earliest_near(const struct tw_wheel *w)
{
    const struct tw__wheel_ring *ring = &w->ring[0];
    if (ring->bound != NULL)
        return TW_NEVER;
    uint32_t distance = tw__wheel_next_slot(w, 0, tw__wheel_slot_index(ring, w->cur));
    return distance == TW__WHEEL_NO_SLOT ? TW_NEVER : tw__add_saturating(w->cur, distance);
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

/* The deadline of the first timer in a list of timers that were filed for now; it is the earliest there. */
static uint64_t first_of(const struct tw__wheel_list *list)
{
    return tw__wheel_list_empty(list) ? TW_NEVER : tw__wheel_timer_of(list->link.next)->deadline;
}

uint64_t tw_wheel_next_exact(struct tw_wheel *w)
{
    tw__wheel_may_change(w);
    w->asked = true;
    tw__wheel_open(w);
    if (w->exact == 0)
        w->exact = earliest(w);
    w->near = tw__add_saturating(w->exact, w->ring[0].count);
    uint64_t soon = first_of(&w->soon), next_drain = first_of(&w->next_drain);
    uint64_t now = soon < next_drain ? soon : next_drain;
    return now < w->exact ? now : w->exact;
}
