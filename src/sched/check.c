/* SPDX-License-Identifier: MIT
 *
 * The invariants S1 to S7 of a shard, each with the words that name it. With TW_DEBUG 2 they are checked when
 * a thread releases the shard's lock: lock.h tells how often. The tests check them after every operation.
 *
 * Example: a task's state is READY but its link is in no list. count_lines() counts one READY task, the
 * ready, sent and aside lists have none, and the check returns "S1: a task is not in the one place of its
 * state".
 */
#include "check.h"

#include "order.h"
#include "pool.h"
#include "table.h"

#include <stdio.h>

/* ---- S1 -------------------------------------------------------------------------------------------------- */

/* All that the checks want to know of the lines, from one pass over them. */
struct census {
    uint64_t in[TW__SCHED_RUNNING + 1]; /* tasks in each state */
    uint64_t last_generation;           /* FREE tasks that have had their last generation */
    uint64_t keys, legacy_keys;
    uint64_t first_tick; /* of the PENDING tasks */
    bool lost;           /* an id or a key does not find its task, or a FREE task has a key */
    bool unlisted;       /* a free list is not as long as there is room, or a task in it is not FREE */
};

/* Whether the links of a list agree in both directions. Adds the number of links to *count. */
static bool is_linked(const struct tw__link *list, uint64_t *count)
{
    const struct tw__link *link = list;
    for (; link->next != NULL && link->next->prev == link; link = link->next) {
        if (link->next == list)
            return true;
        ++*count;
    }
    return false;
}

static bool all_ready(const struct tw__link *list)
{
    for (struct tw__link *at = list->next; at != list; at = at->next)
        if (tw__sched_task_linked(at)->state != TW__SCHED_READY)
            return false;
    return true;
}

static bool ready_agrees(const struct tw__sched_shard *shard, uint64_t ready)
{
    const struct tw__link *lists[] = {&shard->ready, &shard->sent, &shard->aside};
    uint64_t count = 0;
    for (int i = 0; i < 3; i++)
        if (!is_linked(lists[i], &count) || !all_ready(lists[i]))
            return false;
    return count == ready;
}

static bool busy_agrees(const struct tw__sched_shard *shard, uint64_t running)
{
    uint64_t count = 0;
    if (!is_linked(&shard->busy, &count))
        return false;
    for (struct tw__link *at = shard->busy.next; at != &shard->busy; at = at->next)
        if (tw__sched_call_linked(at)->task->state != TW__SCHED_RUNNING)
            return false;
    return count == running;
}

static uint64_t count_loose(const struct tw__sched_shard *shard)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < TW__SCHED_LOOSE; i++)
        count += shard->loose[i] != NULL;
    return count;
}

static int count_timer(void *arg, struct tw_timer *timer)
{
    struct census *census = arg;
    census->in[((const struct tw__sched_task *)(const void *)timer)->state]++;
    return 0;
}

/* Whether the wheel holds the PENDING tasks, the loose tasks, and no other. */
static bool wheel_agrees(const struct tw__sched_shard *shard, uint64_t pending)
{
    struct census filed = {.lost = false};
    tw_wheel_visit(shard->wheel, count_timer, &filed);
    return filed.in[TW__SCHED_PENDING] == pending && filed.in[TW__SCHED_FREE] == count_loose(shard) &&
           filed.in[TW__SCHED_READY] == 0 && filed.in[TW__SCHED_RUNNING] == 0;
}

/* Whether every FREE task is in the free list of its kind, or loose, or has had its last generation. */
static bool free_agrees(const struct tw__sched_shard *shard, const struct census *census)
{
    uint64_t known = count_loose(shard), in_all = census->in[TW__SCHED_FREE];
    for (int kind = 0; kind < TW__SCHED_KINDS; kind++)
        known += shard->lines[kind].room;
    return !census->unlisted && known <= in_all && in_all - known <= census->last_generation;
}

static bool places_agree(const struct tw__sched_shard *shard, const struct census *census)
{
    return ready_agrees(shard, census->in[TW__SCHED_READY]) &&
           busy_agrees(shard, census->in[TW__SCHED_RUNNING]) &&
           wheel_agrees(shard, census->in[TW__SCHED_PENDING]) && free_agrees(shard, census);
}

/* ---- S2 -------------------------------------------------------------------------------------------------- */

/* Whether a call for a key looks in this shard. */
static bool key_leads_here(const struct tw__sched_shard *shard, const struct tw__sched_slot *slot)
{
    const struct tw_sched *sched = shard->sched;
    if (shard->number == 0 && !atomic_load(&sched->wide))
        return true;
    if (slot->legacy)
        return shard->number == 0 && tw__sched_key_may_be_legacy(sched, slot->tag);
    return atomic_load(&sched->hashes.shard[tw__sched_hash_slot(sched, slot->tag)]) == shard->number + 1;
}

/* Whether the table finds a line, once, with the tag in its slot. */
static bool key_finds(const struct tw__sched_shard *shard, uint32_t line)
{
    const struct tw__sched_slot *slot = tw__sched_slot_at(shard, line);
    struct tw__sched_probe probe = tw__sched_table_probe(&shard->table, slot->tag);
    uint32_t index, found = 0;
    while ((index = tw__sched_probe_next(&probe)) != TW__SCHED_NONE)
        found += index == line;
    return found == 1 && slot->size > 0 && slot->size <= TW_SCHED_KEY_MAX && key_leads_here(shard, slot);
}

static bool id_finds(const struct tw__sched_shard *shard, const struct tw__sched_task *task,
                     enum tw__sched_kind kind)
{
    return task->keyed == kind && tw__sched_task_find(shard, tw__sched_task_id(shard, task)) == task;
}

static void count_line(const struct tw__sched_shard *shard, enum tw__sched_kind kind, uint32_t line,
                       struct census *census)
{
    const struct tw__sched_task *task = tw__sched_task_at(&shard->lines[kind], line);
    const struct tw__sched_slot *slot = kind == TW__SCHED_KEYED ? tw__sched_slot_at(shard, line) : NULL;
    census->in[task->state]++;
    if (task->state == TW__SCHED_FREE) {
        census->last_generation += task->generation == UINT32_MAX;
        census->lost |= slot != NULL && slot->size > 0;
        return;
    }
    census->lost |= !id_finds(shard, task, kind) || (slot != NULL && !key_finds(shard, line));
    census->keys += slot != NULL;
    census->legacy_keys += slot != NULL && slot->legacy;
    if (task->state == TW__SCHED_PENDING && tw_timer_deadline(&task->timer) < census->first_tick)
        census->first_tick = tw_timer_deadline(&task->timer);
}

/* The lines from `first` to the one before `end`. */
struct run {
    uint32_t first, end;
};

/* Walks along the free list of a kind. Returns the longest run of lines in it, each of which names the next
 * line. A new chunk is such a run, and so is most of the chunk of a shard with few tasks. */
static struct run walk_free(const struct tw__sched_shard *shard, enum tw__sched_kind kind,
                            struct census *census)
{
    const struct tw__sched_lines *lines = &shard->lines[kind];
    uint32_t made = tw__sched_lines_made(lines), next = lines->free;
    uint64_t count = 0;
    struct run longest = {0, 0};
    while (next < made && count < lines->room) {
        struct run run = {next, next};
        do {
            const struct tw__sched_task *task = tw__sched_task_at(lines, run.end++);
            census->unlisted |= task->state != TW__SCHED_FREE;
            next = task->next_free;
        } while (next == run.end && next < made);
        for (uint32_t i = run.first; kind == TW__SCHED_KEYED && i < run.end; i++)
            census->lost |= tw__sched_slot_at(shard, i)->size > 0;
        count += run.end - run.first;
        if (run.end - run.first > longest.end - longest.first)
            longest = run;
    }
    census->unlisted |= next != TW__SCHED_NONE || count != lines->room;
    return longest;
}

/* Looks at each line once, but for lines in the free list outside of its longest run. */
static struct census count_lines(const struct tw__sched_shard *shard)
{
    struct census census = {.first_tick = TW_NEVER};
    for (int i = 0; i < TW__SCHED_KINDS; i++) {
        enum tw__sched_kind kind = (enum tw__sched_kind)i;
        struct run free = walk_free(shard, kind, &census);
        census.in[TW__SCHED_FREE] += free.end - free.first;
        for (uint32_t line = 0; line < free.first; line++)
            count_line(shard, kind, line, &census);
        for (uint32_t line = free.end; line < tw__sched_lines_made(&shard->lines[kind]); line++)
            count_line(shard, kind, line, &census);
    }
    return census;
}

/* Whether all tasks are found, and there are as many keys, and as many legacy keys, as the counts say. */
static bool all_are_found(const struct tw__sched_shard *shard, const struct census *census)
{
    return !census->lost && census->keys == shard->stats.keys &&
           (shard->number != 0 || census->legacy_keys == atomic_load(&shard->sched->legacy_keys));
}

/* ---- S3 to S6 -------------------------------------------------------------------------------------------- */

static bool counts_agree(const struct tw__sched_shard *shard, const struct census *census)
{
    const struct tw_sched_info *stats = &shard->stats;
    return stats->pending == census->in[TW__SCHED_PENDING] + census->in[TW__SCHED_READY] &&
           stats->running == census->in[TW__SCHED_RUNNING] &&
           stats->added + stats->again == stats->fired + stats->cancelled + stats->handed + stats->pending;
}

/* Whether no PENDING task is due before the tick until which the timer thread sleeps. A stopped shard may let
 * the timer thread sleep longer. */
static bool wakes_in_time(const struct tw__sched_shard *shard, const struct census *census)
{
    return shard->wake == 0 || shard->stopped || census->first_tick >= shard->wake;
}

static bool stop_holds(const struct tw__sched_shard *shard)
{
    return !shard->stopped || shard->stats.added + shard->stats.fired == shard->at_stop;
}

/* Whether every loose task is FREE and `any_loose` tells of it, so that the next question to the wheel takes
 * it out first. */
static bool loose_are_known(const struct tw__sched_shard *shard)
{
    for (uint32_t i = 0; i < TW__SCHED_LOOSE; i++)
        if (shard->loose[i] != NULL && (!shard->any_loose || shard->loose[i]->state != TW__SCHED_FREE))
            return false;
    return true;
}

/* ---- S7 -------------------------------------------------------------------------------------------------- */

static bool is_sorted(const struct tw__link *list)
{
    uint64_t tick = 0;
    for (struct tw__link *at = list->next; at != list; at = at->next) {
        if (tw__sched_task_linked(at)->tick < tick)
            return false;
        tick = tw__sched_task_linked(at)->tick;
    }
    return true;
}

/* Whether other threads see the tick of the first task of a list. */
static bool is_published(const struct tw__sched_shard *shard, const struct tw__link *list, uint64_t published)
{
    return published == (shard->stopped ? TW_NEVER : tw__sched_order_first(list));
}

static bool order_holds(const struct tw__sched_shard *shard)
{
    return is_sorted(&shard->ready) && is_sorted(&shard->sent) &&
           is_published(shard, &shard->ready, atomic_load(&shard->ready_tick)) &&
           is_published(shard, &shard->sent, atomic_load(&shard->sent_tick));
}

/* ---- all of them ----------------------------------------------------------------------------------------- */

const char *tw__sched_shard_check(const struct tw__sched_shard *shard)
{
    TW_ASSERT(tw__sched_locked(shard));
    struct census census = count_lines(shard);
    if (!loose_are_known(shard))
        return "S6: the wheel would return a cancelled task";
    if (!places_agree(shard, &census))
        return "S1: a task is not in the one place of its state";
    if (!all_are_found(shard, &census))
        return "S2: an id or a key does not find its task";
    if (!counts_agree(shard, &census))
        return "S3: the counts do not add up";
    if (!wakes_in_time(shard, &census))
        return "S4: a task is due before the timer thread wakes up";
    if (!stop_holds(shard))
        return "S5: a task was added, or a callback has started, after the stop";
    if (!order_holds(shard))
        return "S7: a task would start before a task of an earlier tick";
    return NULL;
}

bool tw__sched_expect_sound(const struct tw__sched_shard *shard)
{
    const char *broken = tw__sched_shard_check(shard);
    if (broken != NULL)
        fprintf(stderr, "tickwheel: %s\n", broken);
    return broken == NULL;
}

const char *tw__sched_check(const struct tw_sched *sched)
{
    const char *broken = NULL;
    for (uint32_t i = 0; i < tw__sched_made(sched) && broken == NULL; i++) {
        pthread_mutex_lock(&sched->shard[i]->lock);
        broken = tw__sched_shard_check(sched->shard[i]);
        pthread_mutex_unlock(&sched->shard[i]->lock);
    }
    return broken;
}
