/* SPDX-License-Identifier: MIT
 *
 * Order across shards. Tasks of different ticks start in the order of the ticks, whichever shards they lie in.
 * The lists of READY tasks are sorted in each shard, so this is a merge of sorted lists.
 *
 * A thread that looks for a task does not lock every shard. Each shard publishes the tick of its first READY
 * task when its lock is released. The thread reads these ticks, takes the shard with the earliest, and serves
 * it until another shard must come first: that is its turn.
 *
 * Example: three shards, and a worker.
 *
 *     shard 0    ticks 4, 4, 9        the worker takes shard 0, up to tick 5: it starts both tasks of tick 4
 *     shard 1    ticks 5, 6           then shard 1, up to tick 7: it starts the tasks of ticks 5 and 6
 *     shard 2    tick  7              then shard 2, up to tick 9; then shard 0
 *
 * When the worker has locked the shard, it looks at the list itself. Another worker may have been there first,
 * and then this worker looks for the next turn. A task that is added meanwhile for a tick that has passed may
 * come too late for its place, as in any order.
 *
 * If two shards have tasks of one tick, the order between them is open, and the search begins with another
 * shard each time. So a shard with very many tasks of one tick does not keep the others waiting.
 */
#include "order.h"

void tw__sched_order_open(struct tw_sched *sched, uint64_t tick)
{
    if (tick > atomic_load_explicit(&sched->horizon, memory_order_relaxed))
        atomic_store_explicit(&sched->horizon, tick, memory_order_release);
}

/* Finds the earliest of the ticks at this place in the shards. */
static bool find_turn(struct tw_sched *sched, size_t place, uint64_t horizon, struct tw__sched_turn *turn)
{
    uint32_t made = tw__sched_made(sched),
             from = made > 1 ? atomic_fetch_add_explicit(&sched->next_shard, 1, memory_order_relaxed) : 0;
    uint64_t earliest = TW_NEVER, until = horizon;
    for (uint32_t i = 0; i < made; i++) {
        struct tw__sched_shard *shard = sched->shard[(from + i) % made];
        uint64_t tick = atomic_load((_Atomic uint64_t *)(void *)((char *)shard + place));
        if (tick < earliest) {
            until = earliest < until ? earliest : until;
            earliest = tick;
            turn->shard = shard;
        } else if (tick < until) {
            until = tick;
        }
    }
    turn->until = until;
    return earliest <= horizon && earliest != TW_NEVER;
}

bool tw__sched_order_worker(struct tw_sched *sched, struct tw__sched_turn *turn)
{
    return find_turn(sched, offsetof(struct tw__sched_shard, ready_tick),
                     atomic_load_explicit(&sched->horizon, memory_order_acquire), turn);
}

bool tw__sched_order_sent(struct tw_sched *sched, struct tw__sched_turn *turn)
{
    return find_turn(sched, offsetof(struct tw__sched_shard, sent_tick), TW_NEVER, turn);
}

struct tw__sched_task *tw__sched_order_next(const struct tw__sched_turn *turn, const struct tw__link *list)
{
    bool may = !turn->shard->stopped && tw__sched_order_first(list) <= turn->until;
    return may && !tw__list_empty(list) ? tw__sched_task_linked(list->next) : NULL;
}
