/* SPDX-License-Identifier: MIT
 *
 * The wheel: filing, refiling, firing.
 *
 * The idea is from Varghese and Lauck, "Hashed and Hierarchical Timing Wheels", SOSP 1987. A level is a ring
 * of slots, and a slot is a list of timers. Level 0 has a slot for each tick; each upper level has wider
 * slots. A timer starts far out and moves inwards as its deadline comes near. This is the default geometry at
 * tick 2,100:
 *
 *     level 2   |   0 ...                                                   |   1 ...   slot: 65,536 ticks
 *     level 1   |   0   |   1   |  ...  |   4   |###5###|   6   | ... | 127 | 128 ...   slot: 512 ticks
 *     level 0                           |.>.............|                               slot: 1 tick
 *                                         ^ cur = 2,100 ^ level 0's window ends at 3,071
 *
 * Example: at tick 1,000 a caller files timer A for tick 3,000. Level 0's window then ends at 1,535, so A
 * goes to level 1, slot 3,000 / 512 = 5. At tick 2,048 the window moves on to 3,071 and holds all of slot 5
 * (#). The wheel now takes slot 5 off its ring and has until tick 2,560 to refile its timers into level 0. If
 * slot 5 holds 10,000 timers, it refiles 10,000 / 512 + 1 = 20 of them per tick. A goes to level 0, slot
 * 3,000 mod 1,024 = 952, and fires when the wheel comes to tick 3,000.
 *
 * Windows. The window of a level ends at `last`: no later deadline is filed on it. It covers the current slot
 * one level up and the next `ahead` slots, and never more than the window of the level above. A timer is
 * filed on the lowest level whose window holds its deadline. When a window comes to hold an upper slot, the
 * wheel takes that slot off its ring and refiles its timers downwards. With one slot of lookahead (`ahead` is
 * 1, as above) there is a whole slot's time for that, so the wheel refiles a few timers per tick: `pace`.
 * Without lookahead (the textbook wheel) it must refile the whole slot at once.
 *
 * Order. Two facts hold for timers with equal deadlines. A timer on an upper level was always filed before a
 * timer on a lower level, and each list is in filing order. So the wheel refiles a slot from its tail and
 * puts each timer at the FRONT of its new slot. Both facts then stay true, however the work is cut up and
 * however many timers are filed in between. Example: A and, behind it, B are the oldest of the 10,000 timers
 * in slot 5, both due at tick 3,000. At tick 2,050 the caller files C for 3,000, straight into level 0. Later
 * the wheel refiles B in front of C, then A in front of B. They fire in the order A, B, C.
 *
 * For this, a slot must be empty before any part of it comes into the window two levels down; `finish` is the
 * tick by which it must be empty. Then each timer of the slot has exactly one level to go to, and the tick at
 * which it is refiled makes no difference.
 *
 * Prefetch. A walk along a list costs a cache miss per timer, one after the other. So each timer has a hint:
 * the cache line of the timer some places further on, in the direction in which its list will be walked. The
 * walk prefetches that line. A slot's `trail` keeps the lines of the timers filed there last. There are three
 * cases:
 *   - A timer is appended. Slots are refiled from the tail, so its hint is the timer that was appended that
 *     many places before it: the trail has its line.
 *   - A timer is pushed to the front of level 0. That list is walked from the front, so the same trail
 *     serves.
 *   - A timer is pushed to the front of an upper level. Here the hint must be written to a timer that is in
 *     the list already.
 *
 * Hints are never followed: a wrong hint costs a useless prefetch.
 *
 * Pushing back. To move a timer later, the wheel stores the new deadline and marks the timer. It files the
 * timer again when the timer's old place comes up. Example: an idle timeout on level 1 that is pushed back a
 * thousand times is filed again once. Level 0 under other levels is the exception: there the timer's tick is
 * near and no time is left to spread the work over, so the wheel files the timer again at once. The same goes
 * for a timer near the earliest deadline, once a caller has asked for that deadline (exact.c).
 *
 * Marks. A slot that receives a timer gets a mark: its bit in the level's bitmaps, with which the wheel finds
 * the next slot without looking at empty ones. A cancel does not look whether it has emptied the slot, since
 * at that moment nobody needs to know. The mark stays until somebody comes to the slot. A poll passes over the
 * slot, for a unit of its budget, when its tick comes. tw_wheel_next_bound() passes over at most SEARCH_STEPS
 * such slots. Each takes the mark away. Each mark was set by an add, so the adds pay for this. Example: the
 * only timers of a wheel are due at ticks 5 and 9. The caller cancels the first. A poll remembers tick 5 as the
 * next with work. tw_wheel_next_bound() comes to slot 5, takes its mark away, and names tick 9.
 *
 * The next event is remembered with the list that has the work, `event_list`. It stays right while that list
 * holds a timer: a timer in a slot without a mark makes the wheel forget it, and all marked slots come later.
 * When cancels have emptied the list, the event is only a bound, which is enough for a poll, and
 * tw_wheel_next_bound() searches anew.
 *
 * The express lane. Most adds go to level 1 or level 0 and need no check, because the deadline lies after now,
 * the wheel takes every deadline and keeps no bounds, and finding the slot takes no division. Then the gate is
 * open. One subtraction and one comparison tell that a deadline goes to level 1: it lies in the
 * `express_ticks` ticks from `express` on. Example: by default, at tick 2,100, the lane goes from 3,072, where
 * level 0's window has ended, to 131,071, where level 1's window ends. When `now` or a window moves, the wheel
 * sets both anew.
 *
 * One-level wheels have no upper level to wait on, so a slot holds timers of several rounds. When the slot's
 * tick comes, the wheel sorts its timers into due and not yet due in the same way: from the tail, to the
 * front. Example: with 8 slots, timers due at ticks 3, 11 and 19 share slot 3; tick 3 fires the first timer
 * and puts the two others back. The top of any wheel that does not reach the end of time works alike. REJECT
 * is a check at the door, when a timer is filed: it compares the deadline with `now`, while `cur` may still
 * be some ticks back in the middle of a jump.
 *
 * Invariants (tw_wheel_check() names the first that does not hold; W3 to W6 do not ask where a pushed-back
 * timer is)
 *   W1  lists are circular, and their links agree both ways
 *   W2  a slot that holds timers is marked; a slot is marked exactly when its bit is set and exactly when its
 *       `filed` is not 0; the summaries say of each word whether it has a bit
 *   W3  a timer that was not pushed back is in the slot of its deadline, and its hint names the level
 *   W4  no timer on a ring lies below the end of the window one level down, slots that wait to be refiled
 *       aside; no timer lies above the end of its own level's window
 *   W5  once tick cur is settled, no timer on a ring is filed at or before cur, unless time has ended
 *   W6  a level is active while its drain list holds timers, and these are of the slot in `draining`
 *   W7  count is the number of timers in all lists
 *   W8  no marked slot and no drain list has work before a remembered event; while `event_list` holds timers
 *       and is not `due`, that event equals the event computed afresh; a wheel is quiet no longer than that
 *   W9  cur is not after now; the windows are those of cur; gate and express lane are those of the windows
 *   W10 no timer is due before the bound of its list, a list marked as in order is in order, and a remembered
 *       earliest deadline is the earliest (exact.c)
 *   W11 a timer that was filed for now is due, and timers wait for the next drain only inside a drain
 *
 * Rejected
 *   - The aligned rule: level = highest bit in which deadline and cur differ. A carry refiles every timer
 *     beyond it in one tick, and loses the filing order.
 *   - Slots as arrays of pointers: 1.4 to 1.9 times faster at a million timers, but memory must be reserved.
 *     docs/wheel.md has the numbers.
 *   - Marking a timer that is pushed back on level 0 too. A tick from which a million timers were pushed back
 *     would look at all of them.
 *   - A heap of buckets (Kafka). The bitmaps answer the same question in O(levels).
 *   - A round counter per timer (Netty). The deadline says it all.
 */
#include "window.h"

/* After internal.h, which says that this is the library. */
#include "wheel.h"

/* ---- lists --------------------------------------------------------------------------------------------- */

/* The remembered next event may no longer hold: it is computed afresh when it is needed. */
static inline void forget_event(struct tw_wheel *w)
{
    w->event_list = NULL;
    w->quiet = 0;
}

/* The next two functions handle rare cases. Their callers call them last and return their value: a call in
 * the middle would make the hot path save registers, and stores are the limit of that path. */

/* The wheel itself has emptied a list: takes the list's mark away. */
static TW__WHEEL_COLD void list_emptied(struct tw_wheel *w, struct tw__wheel_list *list)
{
    if (list->id == TW__WHEEL_ID_DUE)
        return;
    forget_event(w);
    if ((list->id & TW__WHEEL_ID_DRAIN) == TW__WHEEL_ID_DRAIN)
        w->active &= ~((uint64_t)1 << (list->id >> TW__WHEEL_ID_BITS));
    else
        tw__wheel_unmark(w, (struct tw__wheel_slot *)list);
}

/* A slot without a mark has received a timer: marks the slot. Returns 0. */
TW__WHEEL_COLD int tw__wheel_mark_long(struct tw_wheel *w, const struct tw__wheel_slot *slot)
{
    uint32_t level = slot->list.id >> TW__WHEEL_ID_BITS;
    tw__wheel_bit_set(&w->ring[level], slot->list.id & TW__WHEEL_ID_DRAIN);
    w->occupied |= (uint64_t)1 << level;
    forget_event(w);
    return 0;
}

/* Takes a timer out of its list, to file it elsewhere. If it was the only timer of its list, the list's head
 * is on both sides of the gap. */
static inline void unlink_timer(struct tw_wheel *w, struct tw_timer *timer)
{
    struct tw__link *prev = timer->link.prev, *next = timer->link.next;
    prev->next = next;
    next->prev = prev;
    if (TW__WHEEL_UNLIKELY(prev == next))
        list_emptied(w, (struct tw__wheel_list *)prev);
}

/* Moves all timers of one list to another list. Requires: `to` is empty. */
static void list_splice(struct tw__wheel_list *from, struct tw__wheel_list *to)
{
    to->in_order = from->in_order;
    tw__list_move_all(&from->link, &to->link);
}

/* ---- rounds --------------------------------------------------------------------------------------------- */

/* On a top that does not reach the end of time, the wheel meets a far timer once a round and puts it back. A
 * jump over many rounds must not pay for each round. So `turn_first` notes the earliest deadline met in a
 * round, and the old deadline of each timer that is pushed back. When a whole round has passed in which no
 * timer fired, no timer can be due before `turn_first`. Example: 8 slots, one timer due at tick 1,000,000.
 * After one round without a timer that fires, the wheel goes straight to tick 1,000,000. */
static void restart_round(struct tw_wheel *w)
{
    w->round_end = tw__add_saturating(w->cur, w->round);
    w->turn_first = TW_NEVER;
}

/* Remembers the earliest deadline of the round. */
static void note_deadline(struct tw_wheel *w, uint64_t deadline)
{
    if (deadline < w->turn_first)
        w->turn_first = deadline;
}

/* ---- filing -------------------------------------------------------------------------------------------- */

/* Puts the timer's line into the slot's trail of `trail` + 1 lines. Returns the line of the timer that was
 * filed a trail's length before it. */
static inline uint32_t leave_trail(uint32_t trail, struct tw__wheel_slot *slot, const struct tw_timer *timer)
{
    uint64_t step = slot->list.filed++ & trail;
    uint32_t before = slot->trail[step];
    slot->trail[step] = tw__wheel_line_of(timer);
    return before;
}

/* Appends a timer to the slot of its deadline. Returns 0. */
static int file(struct tw_wheel *w, struct tw_timer *timer, uint64_t deadline)
{
    const struct tw__wheel_ring *ring = tw__wheel_ring_for(w, deadline);
    return tw__wheel_append(w, tw__wheel_slot_for(ring, deadline), ring->level, ring->trail, timer, deadline);
}

/* On an upper level a list is walked from the tail. So the hint to the new front belongs to the timer a
 * trail's length behind it. The search for that timer touches linked timers only. */
static void hint_from_behind(struct tw__wheel_list *list, const struct tw_timer *front)
{
    struct tw__link *link = front->link.next;
    for (int i = 1; i < TW__WHEEL_TRAIL_FAR && link != &list->link; i++)
        link = link->next;
    if (link != &list->link) {
        struct tw_timer *behind = tw__wheel_timer_of(link);
        behind->hint = tw__wheel_hint_of(tw__wheel_line_of(front), tw__wheel_filed_on(behind));
    }
}

/* Puts a timer to the front of the slot of its deadline: it was filed before all timers that are there. */
static void file_front(struct tw_wheel *w, struct tw_timer *timer)
{
    const struct tw__wheel_ring *ring = tw__wheel_ring_for(w, timer->deadline);
    struct tw__wheel_slot *slot = tw__wheel_slot_for(ring, timer->deadline);
    tw__wheel_bound_filed(w, timer->deadline, true);
    if (!tw__wheel_marked(slot))
        tw__wheel_mark_long(w, slot);
    tw__list_prepend(&slot->list.link, &timer->link);
    uint32_t before = leave_trail(ring->trail, slot, timer);
    timer->hint = tw__wheel_hint_of(ring->level == 0 ? before : tw__wheel_line_of(timer), ring->level);
    if (ring->level > 0)
        hint_from_behind(&slot->list, timer);
}

/* ---- growing and the door ------------------------------------------------------------------------------- */

/* Puts one level on top. The old top's window was computed as if that level existed, so no timer has to move.
 * Returns false, with nothing changed, when there is no grow hook, or it has no memory. */
static bool grow_level(struct tw_wheel *w)
{
    struct tw__wheel_ring *top = &w->ring[w->levels - 1];
    struct tw_level shape = {.slots = top->count, .span = top->upper};
    size_t size = tw__wheel_ring_size(w->levels, shape.slots, true);
    void *block = w->grow == NULL ? NULL : w->grow(w->grow_arg, NULL, size);
    if (block == NULL)
        return false;
    tw__wheel_ring_init(top + 1, w->levels, &shape, true, block);
    top[1].block = block;
    w->levels++;
    tw__wheel_relate(w);
    top[1].started = top[1].head;
    return true;
}

/* Takes levels off the top again. Requires: no timer was filed on them. */
static void shrink_to(struct tw_wheel *w, uint32_t levels)
{
    while (w->levels > levels)
        w->grow(w->grow_arg, w->ring[--w->levels].block, 0);
    tw__wheel_relate(w);
}

/* A deadline that is not after now means the next tick. */
static inline uint64_t next_tick_at_least(const struct tw_wheel *w, uint64_t deadline)
{
    return deadline > w->now ? deadline : tw__add_saturating(w->now, 1);
}

/* Checks a deadline that lies after now, and grows the wheel if it has to. Returns: 0; TW_ERANGE (REJECT);
 * TW_ENOMEM (GROW), with the levels as they were. */
static int check_reach(struct tw_wheel *w, uint64_t deadline)
{
    if (deadline - w->now > w->range)
        return TW_ERANGE;
    note_deadline(w, deadline);
    uint32_t levels = w->levels;
    while (deadline > w->ring[w->levels - 1].last) {
        if (!grow_level(w)) {
            shrink_to(w, levels);
            return TW_ENOMEM;
        }
    }
    return 0;
}

/* ---- add, move, cancel ----------------------------------------------------------------------------------- */

static TW__WHEEL_COLD int add_checked(struct tw_wheel *w, struct tw_timer *timer, uint64_t deadline)
{
    deadline = next_tick_at_least(w, deadline);
    int error = check_reach(w, deadline);
    if (error != 0)
        return error;
    w->count++;
    tw__wheel_bound_filed(w, deadline, false);
    return file(w, timer, deadline);
}

TW__WHEEL_COLD int tw__wheel_add_long(struct tw_wheel *w, struct tw_timer *timer, uint64_t deadline)
{
    if (!tw__wheel_gate_open(w, deadline))
        return add_checked(w, timer, deadline);
    w->count++;
    return file(w, timer, deadline);
}

int tw_wheel_add_at(struct tw_wheel *w, struct tw_timer *timer, uint64_t deadline)
{
    return TW__WHEEL_AUDITED(w, tw__wheel_add(w, timer, deadline));
}

int tw_wheel_add_in(struct tw_wheel *w, struct tw_timer *timer, uint64_t delay)
{
    return tw_wheel_add_at(w, timer, tw__wheel_after(w, delay));
}

/* True when a timer on an upper level was not pushed back, and its new deadline lies in its slot. */
static bool same_slot(const struct tw_wheel *w, const struct tw_timer *timer, uint64_t deadline)
{
    uint32_t level = tw__wheel_filed_on(timer);
    if (level == 0 || level == TW__WHEEL_PUSHED)
        return false;
    const struct tw__wheel_ring *ring = &w->ring[level];
    return tw__wheel_slot_number(ring, deadline) == tw__wheel_slot_number(ring, timer->deadline);
}

static TW__WHEEL_COLD int move_earlier(struct tw_wheel *w, struct tw_timer *timer, uint64_t deadline)
{
    if (deadline == timer->deadline)
        return 0;
    if (same_slot(w, timer, deadline)) {
        timer->deadline = deadline;
        if (w->asked)
            tw__wheel_bound_lowered(w, tw__wheel_filed_on(timer), deadline);
        return 0;
    }
    unlink_timer(w, timer);
    tw__wheel_bound_filed(w, deadline, false);
    return file(w, timer, deadline);
}

/* Moves a timer to a later deadline and files it again at once: a timer on level 0, in the due list, filed
 * for now, or near the earliest deadline (exact.c). If it were only marked, a tick on which a million timers
 * had been pushed back would have to look at each of them. On a one-level wheel that does not grow the timer
 * is only marked, unless it was filed for now or is near the earliest deadline: such a slot is looked through
 * whole anyway. */
static TW__WHEEL_COLD int move_near(struct tw_wheel *w, struct tw_timer *timer, uint64_t deadline)
{
    if (w->ring[0].upper == 0 && !(timer->hint & TW__WHEEL_HINT_NOW) && timer->deadline >= w->near) {
        timer->deadline = deadline;
        timer->hint |= TW__WHEEL_PUSHED;
        return 0;
    }
    tw__wheel_exact_left(w, timer->deadline);
    unlink_timer(w, timer);
    tw__wheel_bound_filed(w, deadline, false);
    return file(w, timer, deadline);
}

/* Gives a pending timer a new deadline. Requires: the wheel can take the deadline. */
static inline int move_pending(struct tw_wheel *w, struct tw_timer *timer, uint64_t deadline)
{
    if (deadline <= timer->deadline)
        return move_earlier(w, timer, deadline);
    if (tw__wheel_filed_on(timer) == 0)
        return move_near(w, timer, deadline);
    timer->deadline = deadline;
    timer->hint |= TW__WHEEL_PUSHED;
    return 0;
}

/* True when a timer near the earliest deadline is moved later: it is filed again at once (exact.c). */
static inline bool leaves_the_front(const struct tw_wheel *w, const struct tw_timer *timer, uint64_t deadline)
{
    return timer->deadline < w->near && timer->deadline < deadline;
}

static TW__WHEEL_COLD int move_checked(struct tw_wheel *w, struct tw_timer *timer, uint64_t deadline)
{
    deadline = next_tick_at_least(w, deadline);
    int error = check_reach(w, deadline);
    note_deadline(w, timer->deadline); /* a timer that is pushed back must still be met at its old place */
    if (error != 0)
        return error;
    return leaves_the_front(w, timer, deadline) ? move_near(w, timer, deadline)
                                                : move_pending(w, timer, deadline);
}

TW__WHEEL_COLD int tw__wheel_move_long(struct tw_wheel *w, struct tw_timer *timer, uint64_t deadline)
{
    if (!tw_timer_pending(timer))
        return tw__wheel_add(w, timer, deadline);
    if (!tw__wheel_gate_open(w, deadline)) {
        if (w->door || deadline <= w->now)
            return move_checked(w, timer, deadline);
        if (leaves_the_front(w, timer, deadline))
            return move_near(w, timer, deadline);
    }
    return move_pending(w, timer, deadline);
}

int tw_wheel_move_at(struct tw_wheel *w, struct tw_timer *timer, uint64_t deadline)
{
    return TW__WHEEL_AUDITED(w, tw__wheel_move(w, timer, deadline));
}

int tw_wheel_move_in(struct tw_wheel *w, struct tw_timer *timer, uint64_t delay)
{
    return tw_wheel_move_at(w, timer, tw__wheel_after(w, delay));
}

/* Hints are for long walks through far memory. Timers that are filed for now were touched a moment ago, and
 * have no hint. */
void tw_wheel_add_now(struct tw_wheel *w, struct tw_timer *timer)
{
    tw__wheel_may_change(w);
    TW_ASSERT(timer != NULL);
    TW_ASSERT(!tw_timer_pending(timer));
    tw__list_append(w->in_drain ? &w->next_drain.link : &w->soon.link, &timer->link);
    timer->deadline = w->now;
    timer->hint = TW__WHEEL_HINT_NOW;
    w->quiet = 0;
    w->count++;
    (void)TW__WHEEL_AUDITED(w, 0);
}

TW__WHEEL_COLD bool tw__wheel_cancel_long(struct tw_wheel *w, struct tw_timer *timer)
{
    tw__wheel_exact_left(w, timer->deadline);
    tw__wheel_take_out(w, timer);
    return true;
}

bool tw_wheel_cancel(struct tw_wheel *w, struct tw_timer *timer)
{
    return TW__WHEEL_AUDITED(w, tw__wheel_cancel(w, timer));
}

/* ---- events ---------------------------------------------------------------------------------------------- */

/* Slots emptied by cancels that one search for the next event passes over. It is more than the default
 * geometry has. A search in larger rings pauses no longer, and answers with an earlier tick. */
enum { SEARCH_STEPS = 4096 };

/* A tick before which the wheel has no work. */
static inline uint64_t known_event(struct tw_wheel *w)
{
    if (w->event_list == NULL)
        tw__wheel_find_event(w, 0);
    return w->event;
}

/* The next tick at which the wheel has work, or would have if a slot had not been emptied by cancels: a search
 * ends after SEARCH_STEPS such slots. */
static inline uint64_t exact_event(struct tw_wheel *w)
{
    if (w->event_list == NULL || tw__wheel_list_empty(w->event_list))
        tw__wheel_find_event(w, SEARCH_STEPS); /* with rounds, always: the list is `due`, and that is empty */
    return w->event;
}

/* Notes the tick before which a poll of an idle wheel only has to note the time. */
static void note_quiet(struct tw_wheel *w)
{
    uint64_t event = known_event(w);
    bool busy = w->active != 0 || !tw__wheel_list_empty(&w->soon);
    w->quiet = busy ? 0 : event < w->boundary ? event : w->boundary;
}

/* The tick to go to next. When a whole round has passed in which no timer fired, and all timers are on the
 * top level, this is the tick at which the slot of the earliest deadline is opened or starts to be refiled;
 * otherwise it is `event`. */
static uint64_t skip_rounds(struct tw_wheel *w, uint64_t event)
{
    uint32_t level = w->levels - 1;
    const struct tw__wheel_ring *top = &w->ring[level];
    if (w->turn_first <= w->cur)
        restart_round(w); /* no timer has this deadline any more */
    if (w->cur < w->round_end || w->active != 0 || w->occupied != (uint64_t)1 << level)
        return event;
    uint64_t start = w->turn_first / top->span * top->span;
    uint64_t first = level == 0 ? start : tw__wheel_enter(w, level - 1, start);
    return first > event ? first : event;
}

/* The tick to which the wheel goes next, if `now` is that far. A mark that cancels have left makes it stop
 * once more, and keeps it from skipping rounds until then. */
static uint64_t next_stop(struct tw_wheel *w)
{
    if (w->round == 0)
        return known_event(w);
    tw__wheel_find_event(w, 0);
    return skip_rounds(w, w->event);
}

TW__WHEEL_COLD uint64_t tw__wheel_next_bound_long(struct tw_wheel *w)
{
    if (w->count == 0)
        return TW_NEVER; /* if the budget ended in the middle of a tick, the next poll finishes the tick */
    if (!tw__wheel_list_empty(&w->due) || tw__wheel_any_now(w) || w->phase != TW__WHEEL_SETTLED)
        return w->now;
    uint64_t event = exact_event(w);
    if (w->round != 0)
        event = skip_rounds(w, event);
    if (!w->in_drain)
        note_quiet(w);
    return event > w->now ? event : w->now;
}

uint64_t tw_wheel_next_bound(const struct tw_wheel *w)
{
    return tw__wheel_next_bound(w);
}

/* ---- refiling -------------------------------------------------------------------------------------------- */

void tw__wheel_list_move(struct tw_wheel *w, struct tw_timer *timer, struct tw__wheel_list *to)
{
    unlink_timer(w, timer);
    tw__list_prepend(&to->link, &timer->link);
}

void tw__wheel_refile(struct tw_wheel *w, struct tw_timer *timer)
{
    unlink_timer(w, timer);
    note_deadline(w, timer->deadline);
    tw__wheel_bound_filed(w, timer->deadline, false);
    file(w, timer, timer->deadline);
    w->refiled++;
}

/* Moves the last timer of a level's drain list to where it belongs now: the due list, or a slot. */
static void refile_one(struct tw_wheel *w, struct tw__wheel_ring *ring)
{
    struct tw__link *tail = ring->drain.link.prev;
    struct tw_timer *timer = tw__wheel_timer_of(tail);
    tw__wheel_prefetch_hint(timer);
    bool due =
        ring == &w->ring[0] && timer->deadline <= w->cur; /* the slot of this very tick is being sorted */
    if (!due && tw__wheel_filed_on(timer) == TW__WHEEL_PUSHED) {
        tw__wheel_refile(w, timer);
        return;
    }
    unlink_timer(w, timer);
    w->refiled++;
    note_deadline(w, timer->deadline);
    if (due)
        tw__list_prepend(&w->due.link, &timer->link);
    else
        file_front(w, timer);
}

/* Refiles up to `limit` timers of a level, as far as the budget goes. Returns the number refiled. */
static uint64_t refile(struct tw_wheel *w, struct tw__wheel_ring *ring, uint64_t limit, uint64_t *budget)
{
    if (limit > *budget)
        limit = *budget;
    uint64_t done = 0;
    for (; done < limit && !tw__wheel_list_empty(&ring->drain); done++)
        refile_one(w, ring);
    *budget -= done;
    return done;
}

/* Goes on with the slots being refiled, top level first. Returns false when the budget ended first. */
static bool refile_active(struct tw_wheel *w, uint64_t *budget)
{
    for (uint64_t levels = w->active; levels != 0;) {
        uint32_t level = 63 - (uint32_t)__builtin_clzll(levels);
        struct tw__wheel_ring *ring = &w->ring[level];
        levels &= ~((uint64_t)1 << level);
        if (tw__wheel_list_empty(&ring->drain)) {
            w->active &= ~((uint64_t)1 << level);
            continue;
        }
        if (w->cur >= ring->finish)
            ring->quota = UINT64_MAX;
        ring->quota -= refile(w, ring, ring->quota, budget);
        if (ring->quota > 0 && (w->active >> level & 1))
            return false; /* the budget has ended */
    }
    return true;
}

/* The tick by which slot `slot` of a level must be empty: before any of it comes into the window two levels
 * down, and before the next slot of its own level starts to be refiled. On level 1 there is time until the
 * slot's first tick is opened. Example: by default, slot 5 of level 1 must be empty at tick 2,560. */
static uint64_t finish_for(const struct tw_wheel *w, uint32_t level, uint64_t slot)
{
    const struct tw__wheel_ring *ring = &w->ring[level];
    uint64_t first = slot * ring->span;
    uint64_t finish = level == 1 ? first : tw__wheel_enter(w, level - 2, first) - 1;
    uint64_t next;
    if (!__builtin_add_overflow(first, ring->span, &next)) {
        next = tw__wheel_enter(w, level - 1, next);
        if (next < finish)
            finish = next;
    }
    return finish;
}

/* No hint points at the timers that the walk meets first, but the trail has their lines. */
static inline void prefetch_trail(const struct tw__wheel_ring *ring, const struct tw__wheel_slot *slot)
{
    const struct tw_timer *tail = tw__wheel_timer_of(slot->list.link.prev);
    for (uint32_t i = 0; i <= ring->trail && i < slot->list.filed; i++)
        tw__wheel_prefetch_line(tail, slot->trail[i]);
}

/* Takes a slot off its ring and sets the pace that empties it in time. For a small slot `finish` is now, so
 * the caller refiles it at once. */
static void start_slot(struct tw_wheel *w, uint32_t level, uint64_t number)
{
    struct tw__wheel_ring *ring = &w->ring[level];
    struct tw__wheel_slot *slot = tw__wheel_slot_at(ring, tw__wheel_slot_index(ring, number));
    uint64_t filed = slot->list.filed < w->count ? slot->list.filed : w->count;
    prefetch_trail(ring, slot);
    list_splice(&slot->list, &ring->drain);
    list_emptied(w, &slot->list);
    w->active |= (uint64_t)1 << level;
    ring->draining = number;
    ring->drain_bound = ring->bound[tw__wheel_slot_index(ring, number)];
    ring->quota = 0;
    ring->finish = level == 0 ? w->cur : finish_for(w, level, number);
    if (ring->finish <= w->cur || filed <= TW__WHEEL_SMALL_SLOT)
        ring->finish = w->cur;
    else
        ring->pace = filed / (ring->finish - w->cur) + 1;
}

/* Takes the mark of a slot that cancels have emptied, for a unit of the budget. Returns false when the budget
 * has ended. */
static bool pass_over(struct tw_wheel *w, struct tw__wheel_slot *slot, uint64_t *budget)
{
    if (*budget == 0)
        return false;
    --*budget;
    tw__wheel_unmark(w, slot);
    return true;
}

/* Starts the slots that the window below has come to hold. Returns false when the budget ended first. */
static bool start_level(struct tw_wheel *w, uint32_t level, uint64_t *budget)
{
    struct tw__wheel_ring *ring = &w->ring[level];
    while (ring->started < ring->head && ring->top != 0) {
        uint32_t distance = tw__wheel_distance(ring, tw__wheel_slot_index(ring, ring->started));
        if (distance >= ring->head - ring->started)
            break; /* a later slot */
        uint64_t number = ring->started + distance;
        struct tw__wheel_slot *slot = tw__wheel_slot_at(ring, tw__wheel_slot_index(ring, number));
        if (tw__wheel_list_empty(&slot->list)) {
            if (!pass_over(w, slot, budget))
                return false;
            continue;
        }
        ring->started = number + 1;
        start_slot(w, level, number);
        if (w->cur >= ring->finish)
            refile(w, ring, UINT64_MAX, budget);
        if (w->cur >= ring->finish && (w->active >> level & 1))
            return false;
    }
    ring->started = ring->head;
    return true;
}

static bool start_due_slots(struct tw_wheel *w, uint64_t *budget)
{
    for (uint32_t level = w->levels; level-- > 1;)
        if (!start_level(w, level, budget))
            return false;
    return true;
}

/* ---- firing ---------------------------------------------------------------------------------------------- */

/* Opens the slot of tick `cur`: its timers go to the due list. On a one-level wheel the slot may hold timers
 * of later rounds, so it is refiled instead. Returns false when the budget ended first. */
static bool open_tick(struct tw_wheel *w, uint64_t *budget)
{
    struct tw__wheel_ring *ring = &w->ring[0];
    struct tw__wheel_slot *slot = tw__wheel_slot_at(ring, tw__wheel_slot_index(ring, w->cur));
    if (!tw__wheel_marked(slot))
        return true;
    if (tw__wheel_list_empty(&slot->list))
        return pass_over(w, slot, budget);
    if (ring->bound != NULL) {
        start_slot(w, 0, w->cur);
        return true;
    }
    prefetch_trail(ring, slot);
    list_splice(&slot->list, &w->due);
    list_emptied(w, &slot->list);
    return true;
}

/* Finishes the tick that the wheel stands on. Returns false when the budget ended first. */
static bool settle(struct tw_wheel *w, uint64_t *budget)
{
    if (!refile_active(w, budget))
        return false;
    if (w->phase == TW__WHEEL_REFILING) {
        if (!start_due_slots(w, budget) || !open_tick(w, budget))
            return false;
        w->phase = TW__WHEEL_OPENED;
        if (!refile_active(w, budget))
            return false;
    }
    w->phase = TW__WHEEL_SETTLED;
    return true;
}

/* Moves the windows to tick `cur`. Slots that a window has come to hold are still to be started. Slots that
 * have passed are not looked at again, because their places in the ring belong to later slots now. */
static void move_windows(struct tw_wheel *w)
{
    for (uint32_t level = 1; level < w->levels; level++) {
        uint64_t current = tw__wheel_slot_number(&w->ring[level], w->cur);
        w->ring[level].started = w->ring[level].head > current ? w->ring[level].head : current;
    }
    tw__wheel_windows(w);
}

/* Moves the wheel to `tick`. Requires: no event lies before it. */
static void pass_time(struct tw_wheel *w, uint64_t tick)
{
    uint64_t elapsed = tick - w->cur;
    for (uint64_t levels = w->active; levels != 0; levels &= levels - 1) {
        struct tw__wheel_ring *ring = &w->ring[__builtin_ctzll(levels)];
        ring->quota = tw__add_saturating(ring->quota, tw__mul_saturating(ring->pace, elapsed));
        w->event_list = NULL; /* the next chunk of refiling is due that much later */
    }
    if (tick >= w->event)
        w->event_list = NULL;
    w->cur = tick;
    if (tick >= w->boundary)
        move_windows(w);
}

/* Goes to the next event, at most to `now`. Returns false when the wheel stands at `now` already. */
static bool step(struct tw_wheel *w)
{
    if (w->cur == w->now)
        return false;
    uint64_t event = next_stop(w);
    bool work = event <= w->now || w->active != 0;
    pass_time(w, event < w->now ? event : w->now);
    w->phase = work ? TW__WHEEL_REFILING : TW__WHEEL_SETTLED;
    return true;
}

/* Takes the first due timer out of the due list, and files the pushed-back timers before it again. Returns
 * NULL when the list is empty or the budget has ended. */
static struct tw_timer *take_due(struct tw_wheel *w, uint64_t *budget)
{
    for (; *budget > 0 && !tw__wheel_list_empty(&w->due); --*budget) {
        struct tw_timer *timer = tw__wheel_timer_of(w->due.link.next);
        tw__wheel_prefetch_hint(timer);
        if (timer->deadline <= w->cur) {
            tw__wheel_exact_left(w, timer->deadline);
            tw__wheel_take_out(w, timer);
            --*budget;
            if (w->round != 0)
                restart_round(w);
            return timer;
        }
        tw__wheel_refile(w, timer);
    }
    return NULL;
}

/* Takes out the first timer that was filed for now. Requires: no other timer is due. */
static enum tw_poll take_soon(struct tw_wheel *w, uint64_t *budget, struct tw_timer **timer)
{
    if (tw__wheel_list_empty(&w->soon))
        return TW_POLL_IDLE;
    if (*budget == 0)
        return TW_POLL_MORE;
    --*budget;
    *timer = tw__wheel_timer_of(w->soon.link.next);
    tw__wheel_take_out(w, *timer);
    return TW_POLL_DUE;
}

static enum tw_poll take_next(struct tw_wheel *w, uint64_t *budget, struct tw_timer **timer)
{
    *timer = NULL;
    do {
        if (w->phase != TW__WHEEL_SETTLED && !settle(w, budget))
            return TW_POLL_MORE;
        if ((*timer = take_due(w, budget)) != NULL)
            return TW_POLL_DUE;
        if (!tw__wheel_list_empty(&w->due))
            return TW_POLL_MORE;
    } while (step(w));
    return take_soon(w, budget, timer);
}

static enum tw_poll advance(struct tw_wheel *w, uint64_t now, uint64_t *budget, struct tw_timer **timer)
{
    if (now > w->now) {
        w->now = now;
        w->gate = now | w->shut;
        if (now > w->ring[0].last)
            tw__wheel_open(w); /* a jump: the lane begins after now */
    }
    enum tw_poll polled = take_next(w, budget, timer);
    w->in_drain = polled != TW_POLL_IDLE;
    if (!w->in_drain && !tw__wheel_list_empty(&w->next_drain))
        list_splice(&w->next_drain, &w->soon); /* filed in the drain that ends here, due in the next drain */
    return polled;
}

TW__WHEEL_COLD struct tw_timer *tw__wheel_poll_long(struct tw_wheel *w, uint64_t now)
{
    struct tw_timer *timer;
    uint64_t budget = UINT64_MAX;
    if (advance(w, now, &budget, &timer) == TW_POLL_IDLE)
        note_quiet(w);
    return timer;
}

struct tw_timer *tw_wheel_poll(struct tw_wheel *w, uint64_t now)
{
    return TW__WHEEL_AUDITED(w, tw__wheel_poll(w, now));
}

enum tw_poll tw_wheel_poll_budget(struct tw_wheel *w, uint64_t now, uint32_t *budget, struct tw_timer **timer)
{
    tw__wheel_may_change(w);
    TW_ASSERT(budget != NULL && timer != NULL);
    uint64_t left = *budget;
    enum tw_poll polled = advance(w, now, &left, timer);
    *budget = (uint32_t)left;
    if (polled == TW_POLL_MORE)
        w->quiet = 0; /* the rest is due at `now`, also for a poll with an earlier tick */
    return TW__WHEEL_AUDITED(w, polled);
}

/* ---- the rest -------------------------------------------------------------------------------------------- */

uint64_t tw_wheel_count(const struct tw_wheel *w)
{
    TW_ASSERT(w != NULL);
    return w->count;
}

uint64_t tw_wheel_now(const struct tw_wheel *w)
{
    TW_ASSERT(w != NULL);
    return w->now;
}

uint64_t tw_wheel_range(const struct tw_wheel *w)
{
    TW_ASSERT(w != NULL);
    return w->range;
}

uint64_t tw_wheel_refiled(const struct tw_wheel *w)
{
    TW_ASSERT(w != NULL);
    return w->refiled;
}

/* Some list that holds timers. Requires: the wheel holds a timer. */
static struct tw__wheel_list *any_list(struct tw_wheel *w)
{
    if (!tw__wheel_list_empty(&w->due))
        return &w->due;
    if (tw__wheel_any_now(w))
        return tw__wheel_list_empty(&w->soon) ? &w->next_drain : &w->soon;
    for (uint64_t levels = w->active; levels != 0; levels &= levels - 1)
        if (!tw__wheel_list_empty(&w->ring[__builtin_ctzll(levels)].drain))
            return &w->ring[__builtin_ctzll(levels)].drain;
    uint32_t level, index;
    do {
        level = (uint32_t)__builtin_ctzll(w->occupied);
        index = tw__wheel_next_slot(w, level, 0); /* a level without timers loses its last mark here */
    } while (index == TW__WHEEL_NO_SLOT);
    return &tw__wheel_slot_at(&w->ring[level], index)->list;
}

struct tw_timer *tw_wheel_drain(struct tw_wheel *w)
{
    tw__wheel_may_change(w);
    if (w->count == 0)
        return NULL;
    struct tw_timer *timer = tw__wheel_timer_of(any_list(w)->link.next);
    tw_wheel_cancel(w, timer);
    return timer;
}
