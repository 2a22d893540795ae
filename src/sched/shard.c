/* SPDX-License-Identifier: MIT
 *
 * Shards are made when they are needed. A scheduler begins with shard 0, and a program in which one thread
 * files tasks never has more than this one wheel, however many processors there are.
 *
 *     thread -->  its thread slot  -- the scheduler's map -->  shard
 *
 * The thread slot is from thread_slot.c. The map is filled by and by: the first slot that files gets shard 0,
 * each further slot gets a new shard, and when there are as many as allowed, the next slots get shard 0, 1, 2
 * and so on once more. A slot keeps its shard for good, because the tasks of one thread that are due on one
 * tick start in the order in which the thread filed them. If there is no memory for a new shard, the slot gets
 * a shard that exists, for good.
 *
 * Example: a scheduler may have 2 shards. The threads with the slots 0, 5 and 9 file, in this order. Slot 0
 * gets shard 0, slot 5 gets shard 1, and slot 9 gets shard 0. The thread with slot 5 ends, and a new thread
 * takes its slot and with it shard 1.
 *
 * The timer thread files into shard 0. So a program that files from its main thread and from callbacks has
 * one wheel. Workers are threads like any others.
 *
 * Each key has a hash slot, and there is a map of the same kind for hash slots, in which slot 0 has shard 0
 * from the beginning. keys.c tells when it is used.
 *
 * A shard is made under `setup`. `made` is raised when the shard is complete, and a thread that reads `made`
 * may use all shards below it. A stop closes the door first, so that no shard is made behind its back (S5).
 */
#include "shard.h"

#include "clock.h"
#include "memory.h"
#include "order.h"
#include "pool.h"
#include "table.h"
#include "thread_slot.h"

#include <string.h>
#include <wheel/private.h>

/* ---- making and ending ---------------------------------------------------------------------------------- */

enum { SHARD_BYTES = sizeof(struct tw__sched_shard) + TW__SCHED_LINE };

/* The wheel begins at the present, as if it had been polled all along. */
static int make_wheel(struct tw__sched_shard *shard)
{
    struct tw_sched *sched = shard->sched;
    shard->wheel_size = tw_wheel_size(&sched->geometry);
    shard->wheel_memory = tw__sched_alloc(sched, shard->wheel_size);
    if (shard->wheel_memory == NULL)
        return TW_ENOMEM;
    int error = tw_wheel_init(&shard->wheel, shard->wheel_memory, shard->wheel_size, &sched->geometry,
                              tw__sched_tick_now(sched, tw__sched_clock_read(sched)));
    tw__wheel_on_grow(shard->wheel, tw__sched_grow_level, sched);
    return error;
}

/* An adaptive lock, because the work under it is short. Assertions need a lock that knows which thread holds
 * it. */
enum { LOCK_KIND = TW_DEBUG > 0 ? PTHREAD_MUTEX_ERRORCHECK : PTHREAD_MUTEX_ADAPTIVE_NP };

/* The timer thread sleeps without regard to a new shard, so `wake` is TW_NEVER. */
static void fill_shard(struct tw__sched_shard *shard, struct tw_sched *sched, char *block)
{
    pthread_mutexattr_t attributes;
    memset(shard, 0, sizeof *shard);
    shard->block = block;
    shard->sched = sched;
    shard->number = atomic_load(&sched->made);
    for (int kind = 0; kind < TW__SCHED_KINDS; kind++)
        shard->lines[kind].free = TW__SCHED_NONE;
    shard->wake = TW_NEVER;
    tw__list_init(&shard->ready);
    tw__list_init(&shard->sent);
    tw__sched_order_publish(shard);
    tw__list_init(&shard->busy);
    tw__list_init(&shard->aside);
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, LOCK_KIND);
    pthread_mutex_init(&shard->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    pthread_cond_init(&shard->idle, NULL);
}

static void end_shard(struct tw__sched_shard *shard)
{
    tw__sched_table_end(shard);
    tw__sched_pool_end(shard);
    if (shard->wheel != NULL)
        tw_wheel_fini(shard->wheel);
    if (shard->wheel_memory != NULL)
        tw__sched_dealloc(shard->sched, shard->wheel_memory, shard->wheel_size);
    pthread_cond_destroy(&shard->idle);
    pthread_mutex_destroy(&shard->lock);
    tw__sched_dealloc(shard->sched, shard->block, SHARD_BYTES);
}

/* Makes the next shard. The caller holds `setup`, or no other thread knows the scheduler yet. */
static int make_shard(struct tw_sched *sched)
{
    char *block = tw__sched_alloc(sched, SHARD_BYTES);
    if (block == NULL)
        return TW_ENOMEM;
    char *at = block + (TW__SCHED_LINE - (uintptr_t)block % TW__SCHED_LINE) % TW__SCHED_LINE;
    struct tw__sched_shard *shard = (struct tw__sched_shard *)(void *)at;
    fill_shard(shard, sched, block);
    int error = make_wheel(shard);
    if (error != 0) {
        end_shard(shard);
        return error;
    }
    sched->shard[shard->number] = shard;
    atomic_store_explicit(&sched->made, shard->number + 1, memory_order_release);
    return 0;
}

int tw__sched_shards_begin(struct tw_sched *sched)
{
    atomic_store(&sched->hashes.shard[0], 1);
    sched->hashes.taken = 1;
    return make_shard(sched);
}

void tw__sched_shards_close(struct tw_sched *sched)
{
    pthread_mutex_lock(&sched->setup);
    sched->closed = true;
    pthread_mutex_unlock(&sched->setup);
}

void tw__sched_shards_end(struct tw_sched *sched)
{
    for (uint32_t i = tw__sched_made(sched); i-- > 0;)
        end_shard(sched->shard[i]);
    if (sched->legacy_bits != NULL)
        tw__sched_dealloc(sched, sched->legacy_bits, TW__SCHED_LEGACY_BITS / 8);
}

/* ---- maps ----------------------------------------------------------------------------------------------- */

/* Makes sure that there is a shard with this number. The caller holds `setup`. */
static bool exists(struct tw_sched *sched, uint32_t number)
{
    return number < tw__sched_made(sched) || (!sched->closed && make_shard(sched) == 0);
}

struct tw__sched_shard *tw__sched_shard_at(struct tw_sched *sched, uint32_t number)
{
    if (number < tw__sched_made(sched))
        return sched->shard[number];
    TW_ASSERT(number < sched->options.shards);
    pthread_mutex_lock(&sched->setup);
    bool found = exists(sched, number);
    pthread_mutex_unlock(&sched->setup);
    return found ? sched->shard[number] : NULL;
}

/* Gives a slot its shard, for good: the n-th slot of a map gets shard n, modulo the number of shards. */
static void take_shard(struct tw_sched *sched, struct tw__sched_shard_map *map, uint32_t slot)
{
    uint32_t number = map->taken % sched->options.shards;
    if (exists(sched, number))
        map->taken++;
    else
        number = slot % tw__sched_made(sched);
    atomic_store_explicit(&map->shard[slot], (uint8_t)(number + 1), memory_order_release);
}

/* The shard of a slot. A slot that has none when the scheduler was stopped gets none any more. Whatever is
 * filed from there meets shard 0, which refuses it. */
static struct tw__sched_shard *shard_of_slot(struct tw_sched *sched, struct tw__sched_shard_map *map,
                                             uint32_t slot)
{
    uint32_t taken = atomic_load_explicit(&map->shard[slot], memory_order_acquire);
    if (taken != 0)
        return sched->shard[taken - 1];
    pthread_mutex_lock(&sched->setup);
    if (atomic_load(&map->shard[slot]) == 0 && !sched->closed)
        take_shard(sched, map, slot);
    taken = atomic_load(&map->shard[slot]);
    pthread_mutex_unlock(&sched->setup);
    return sched->shard[taken != 0 ? taken - 1 : 0];
}

static bool is_timer_thread(const struct tw_sched *sched)
{
    return pthread_equal(atomic_load_explicit(&sched->timer, memory_order_relaxed), pthread_self());
}

struct tw__sched_shard *tw__sched_home(struct tw_sched *sched)
{
    if (sched->options.shards == 1 || is_timer_thread(sched))
        return sched->shard[0];
    return shard_of_slot(sched, &sched->threads, tw__sched_thread_slot());
}

struct tw__sched_shard *tw__sched_home_of_key(struct tw_sched *sched, uint32_t tag)
{
    return shard_of_slot(sched, &sched->hashes, tw__sched_hash_slot(sched, tag));
}
