/* SPDX-License-Identifier: MIT
 *
 * Keeps the bound of each slot as timers are filed: a tick before which no timer in the slot is due. The
 * essay in exact.c says why the wheel needs bounds.
 */
#include "internal.h"

/* Whether a list stays in order when a timer with this deadline is put to its front or end. */
static bool keeps_order(const struct tw__wheel_list *list, uint64_t deadline, bool front)
{
    const struct tw_timer *beside = tw__wheel_timer_of(front ? list->link.next : list->link.prev);
    if (!list->in_order || tw__wheel_filed_on(beside) == TW__WHEEL_PUSHED)
        return false;
    return front ? deadline <= beside->deadline : deadline >= beside->deadline;
}

void tw__wheel_bound_filed(struct tw_wheel *w, uint64_t deadline, bool front)
{
    if (!w->asked)
        return;
    tw__wheel_lower(&w->exact, deadline);
    const struct tw__wheel_ring *ring = tw__wheel_ring_for(w, deadline);
    if (ring->bound == NULL)
        return;
    struct tw__wheel_list *list = &tw__wheel_slot_for(ring, deadline)->list;
    uint64_t *bound = &ring->bound[list->id & TW__WHEEL_ID_DRAIN];
    bool empty = tw__wheel_list_empty(list);
    list->in_order = empty || keeps_order(list, deadline, front);
    if (empty)
        *bound = deadline;
    tw__wheel_lower(bound, deadline);
}

void tw__wheel_bound_lowered(struct tw_wheel *w, uint32_t level, uint64_t deadline)
{
    struct tw__wheel_ring *ring = &w->ring[level];
    uint32_t index = tw__wheel_slot_index(ring, tw__wheel_slot_number(ring, deadline));
    tw__wheel_lower(&w->exact, deadline);
    tw__wheel_lower(&ring->bound[index], deadline);
    tw__wheel_lower(&ring->drain_bound, deadline); /* it may be on `drain`; if not, this stays a bound */
    tw__wheel_slot_at(ring, index)->list.in_order = ring->drain.in_order = false;
}
