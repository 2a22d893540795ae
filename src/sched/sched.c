/* SPDX-License-Identifier: MIT
 *
 * The scheduler: its parts, its options, its beginning and its end.
 *
 *     threads that add        shard 0: lock, wheel, tasks, keys, ready list        timer thread
 *     (each has a home)  -->  shard 1: lock, wheel, tasks, keys, ready list  <-->  workers or
 *     keys go by hash         ...                                                  the caller's executor
 *
 * A scheduler runs a function at its due time, once or again and again, and any thread may add, cancel or
 * move tasks. It consists of shards, and each shard is a small scheduler: everything that belongs to a task
 * is under the one lock of its shard, and no call ever holds the locks of two shards. A scheduler begins with
 * one shard. When more threads file tasks, it makes more shards, so that these threads do not wait for each
 * other: see shard.c.
 *
 * There is no periodic tick. The wheel knows its next event, so the timer thread sleeps until then. A thread
 * that adds a task puts it into the wheel itself, and wakes the timer thread only if that would sleep too long.
 *
 * Example: one shard, one worker, a tick of 1 ms. Tick 1,000 began at 5,000.0 ms on the clock. One task has
 * run before, so the threads are there. No task is pending, so the timer thread sleeps without limit: `wake`
 * is TW_NEVER.
 *
 *     5,000.2 ms   a caller    tw_sched_add_in(1.5 ms): due at 5,001.7 ms, so on tick 1,002
 *     5,000.2 ms   a caller    free list -> wheel (PENDING); its tick is before `wake`: wakes the timer thread
 *     5,000.3 ms   timer       finds nothing due, sets `wake` to 1,002, sleeps until that tick begins
 *     5,002.0 ms   timer       wheel -> ready list (READY); tells the worker; sleeps again
 *     5,002.1 ms   worker      ready list -> busy list (RUNNING); releases the lock; calls the function
 *     5,002.4 ms   worker      takes the lock; busy list -> free list (FREE); the id is stale now
 *
 * Each line that moves the task does so under the shard's lock. At the end S3 reads 2 + 0 = 2 + 0 + 0 + 0.
 *
 * The files stand on floors, which README.md lists. A function calls only files on its own floor or below.
 *
 * Invariants
 *   S1  A task is in exactly one place, which its state names:
 *
 *           FREE      the free list; the wheel while it is loose (S6); none after its last generation (pool.c)
 *           PENDING   the wheel
 *           READY     the ready, the sent or the aside list
 *           RUNNING   the busy list
 *
 *       The thread that takes the task from its place, under the lock, alone fires it, cancels it or hands it
 *       over.
 *   S2  An id or a key finds its task from the add until the task's last callback has returned, or the task
 *       was cancelled or handed over.
 *   S3  added + again = fired + cancelled + handed + pending.
 *   S4  While the timer thread sleeps, no shard that is not `stopped` has a PENDING task due before that
 *       shard's `wake`.
 *   S5  Once a shard is `stopped`, no task is added to it and no callback starts in it.
 *   S6  A cancelled task may still be in the wheel (`loose`, at most eight tasks). The shard takes it out
 *       before it asks the wheel for due tasks or for the next event, and before it asks for memory for more
 *       tasks. So no caller can tell.
 *
 *   S7  The ready list and the sent list of a shard are sorted by the ticks of their tasks. While no thread
 *       holds the shard's lock, `ready_tick` and `sent_tick` are the ticks of their first tasks, or TW_NEVER if
 *       no task may start from there.
 *
 * check.c names the first invariant that is broken.
 *
 * Rejected
 *   - A queue of requests between the callers and the timer thread, as in Netty. Cancelled tasks then stay in
 *     memory until their bucket comes round. A move is a cancel and an add, and other threads can see the
 *     moment between them.
 *   - One lock for all threads and all shards: with it two producers lose a third of their speed.
 *   - Ids that are addresses: a stale address hits a stranger's task.
 *   - A heap of due buckets: the wheel already knows its next event.
 */
#include "call.h"
#include "clock.h"
#include "memory.h"
#include "run.h"
#include "shard.h"

#include <base/grow.h>
#include <inttypes.h>
#include <sched.h>
#include <sodium/randombytes.h>
#include <stdio.h>
#include <string.h>

/* ---- options -------------------------------------------------------------------------------------------- */

static const uint64_t tick_min_ns = 1000, tick_max_ns = UINT64_C(3600000000000);
enum { DEFAULT_SHARDS = 16, WORKERS_MAX = 1024 };

/* Writes the message for a value that is not valid. Returns TW_EINVAL. */
static int refuse(char *message, size_t size, const char *name, uint64_t value, const char *expected)
{
    snprintf(message, size, "%s is %" PRIu64 ": expected %s", name, value, expected);
    return TW_EINVAL;
}

int tw_sched_options_check(const struct tw_sched_options *options, char *message, size_t size)
{
    TW_ASSERT(options != NULL && (message != NULL || size == 0));
    if (options->tick_ns != 0 && (options->tick_ns < tick_min_ns || options->tick_ns > tick_max_ns))
        return refuse(message, size, "tick_ns", options->tick_ns,
                      "1,000 to 3,600,000,000,000, or 0 for a millisecond");
    if (options->shards > TW__SCHED_SHARDS)
        return refuse(message, size, "shards", options->shards, "1 to 64, or 0 for one a processor");
    if (options->workers > WORKERS_MAX)
        return refuse(message, size, "workers", options->workers, "0 to 1,024");
    if (options->workers > 0 && options->execute != NULL)
        return refuse(message, size, "workers", options->workers,
                      "0 with an execute hook, because callbacks run on the caller's own threads");
    if (options->clock < TW_SCHED_CLOCK_AUTO || options->clock > TW_SCHED_CLOCK_VIRTUAL)
        return refuse(message, size, "clock", (uint64_t)options->clock,
                      "0 to 3, a value of enum tw_sched_clock");
    if (options->workers > 0 && options->clock == TW_SCHED_CLOCK_VIRTUAL)
        return refuse(message, size, "workers", options->workers,
                      "0 with a virtual clock, because tw_sched_advance() runs the due tasks itself");
    if (options->start_ns > 0 && options->clock != TW_SCHED_CLOCK_VIRTUAL)
        return refuse(message, size, "start_ns", options->start_ns, "0 unless the clock is virtual");
    int error = TW__GROW_CHECK("tw_sched_options", options->reserved, message, size);
    if (error != 0)
        return error;
    return options->geometry == NULL ? 0 : tw_geometry_check(options->geometry, message, size);
}

/* As many shards as the processors on which this thread may run, at most 16. tw_sched_advance() is one thread,
 * so a virtual clock has one shard, and all tasks start in order. */
static uint32_t default_shards(const struct tw_sched_options *options)
{
    cpu_set_t processors;
    if (options->clock == TW_SCHED_CLOCK_VIRTUAL)
        return 1;
    int count = sched_getaffinity(0, sizeof processors, &processors) == 0 ? CPU_COUNT(&processors)
                                                                          : DEFAULT_SHARDS; /* over 1,024 */
    return count < DEFAULT_SHARDS ? (uint32_t)count : DEFAULT_SHARDS;
}

static void keep_options(struct tw_sched *sched, const struct tw_sched_options *given)
{
    struct tw_sched_options *options = &sched->options;
    *options = *given;
    sched->geometry = given->geometry != NULL ? *given->geometry : (struct tw_geometry)TW_GEOMETRY_DEFAULT;
    options->geometry = &sched->geometry;
    if (options->tick_ns == 0)
        options->tick_ns = 1000000;
    if (options->shards == 0)
        options->shards = default_shards(options);
}

/* ---- making and ending ---------------------------------------------------------------------------------- */

static void end(struct tw_sched *sched)
{
    tw__sched_shards_end(sched);
    tw__sched_clock_close(sched);
    pthread_mutex_destroy(&sched->setup);
    pthread_mutex_destroy(&sched->pool_lock);
    pthread_cond_destroy(&sched->pool_work);
    sched->options.memory(sched->options.memory_arg, sched->block, sched->block_size);
}

/* One block for the scheduler and the handles of its workers. */
static struct tw_sched *allocate(const struct tw_sched_options *options)
{
    size_t size = TW__SCHED_LINE + sizeof(struct tw_sched) + options->workers * sizeof(pthread_t);
    tw_sched_memory_fn *memory = options->memory != NULL ? options->memory : tw__sched_plain_memory;
    char *block = memory(options->memory_arg, NULL, size);
    if (block == NULL)
        return NULL;
    char *at = block + (TW__SCHED_LINE - (uintptr_t)block % TW__SCHED_LINE) % TW__SCHED_LINE;
    struct tw_sched *sched = (struct tw_sched *)(void *)at;
    memset(sched, 0, sizeof *sched);
    sched->block = block;
    sched->block_size = size;
    sched->workers = (pthread_t *)(void *)(sched + 1);
    keep_options(sched, options);
    sched->options.memory = memory;
    atomic_store(&sched->memory, size);
    return sched;
}

int tw_sched_new(struct tw_sched **made, const struct tw_sched_options *options)
{
    TW_ASSERT(made != NULL);
    static const struct tw_sched_options defaults;
    if (options == NULL)
        options = &defaults;
    int error = tw_sched_options_check(options, NULL, 0);
    if (error != 0)
        return error;
    struct tw_sched *sched = allocate(options);
    if (sched == NULL)
        return TW_ENOMEM;
    sched->process = getpid();
    pthread_mutex_init(&sched->setup, NULL);
    pthread_mutex_init(&sched->pool_lock, NULL);
    pthread_cond_init(&sched->pool_work, NULL);
    atomic_store(&sched->virtual_ns, options->start_ns);
    randombytes_buf(sched->secret, sizeof sched->secret);
    if ((error = tw__sched_clock_open(sched)) != 0 || (error = tw__sched_shards_begin(sched)) != 0) {
        end(sched);
        return error;
    }
    *made = sched;
    return 0;
}

void tw_sched_free(struct tw_sched *sched)
{
    if (sched == NULL)
        return;
    TW_ASSERT(tw__sched_usable(sched));
    TW_ASSERT(!tw__sched_inside(sched));
    TW_ASSERT(atomic_load(&sched->guests) == 0);
    bool advancing = atomic_load(&sched->advancing);
    TW_ASSERT(!advancing);
    (void)advancing;
    tw_sched_stop(sched, 0, NULL, NULL);
    tw__sched_threads_end(sched);
    end(sched);
}

/* ---- errors --------------------------------------------------------------------------------------------- */

const char *tw_sched_strerror(int error)
{
    switch (error) {
#define SCHED_CASE(name, value, text)                                                                          \
    case name:                                                                                                 \
        return text;
        TW_SCHED_ERROR_TABLE(SCHED_CASE)
#undef SCHED_CASE
    default:
        return tw_strerror(error);
    }
}
