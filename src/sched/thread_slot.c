/* SPDX-License-Identifier: MIT
 *
 * Thread slots: numbers for threads.
 *
 * A thread that files a task for the first time takes the lowest free number, and gives it back when it ends.
 * The numbers belong to the process, because a thread may use several schedulers. Each scheduler gives a number
 * a shard by itself: see shard.c.
 *
 * Example: the main thread files and gets 0, three threads of a pool get 1, 2 and 3. The pool ends, and another
 * pool starts three threads. They get 1, 2 and 3 again, and with them the shards that the scheduler has made
 * already. Numbers that only go up would lead them to shards 4, 5 and 6.
 *
 * This is the only file of the scheduler with state at file scope. There is no lock: a child of fork() would
 * find the lock taken if another thread held it at the fork. In the child, the numbers of the threads that
 * stayed behind remain taken. That costs nothing but numbers.
 *
 * A key of pthread_key_create() tells of the end of a thread. The destructor of the library deletes this key.
 * So a library that was closed with dlclose() is not called any more when a thread ends. A thread for which the
 * key cannot be set shares its number with the next thread. So do threads beyond 1,024, which share number 0.
 */
#include "thread_slot.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { WORD_BITS = 64, WORDS = TW__SCHED_THREADS / WORD_BITS };
#define NO_KEY ((pthread_key_t)-1)

static struct {
    _Atomic uint64_t taken[WORDS]; /* a bit for each number */
    _Atomic pthread_key_t end;     /* its destructor runs when a thread ends */
} threads = {.end = NO_KEY};

static _Thread_local uint32_t thread; /* the number of this thread + 1; 0: it has none yet */

/* Takes the lowest number that is free. Returns false if there is none. */
static bool claim(uint32_t *number)
{
    for (uint32_t i = 0; i < WORDS; i++) {
        uint64_t taken = atomic_load(&threads.taken[i]);
        while (taken != UINT64_MAX) {
            uint64_t lowest = ~taken & (taken + 1);
            if (atomic_compare_exchange_weak(&threads.taken[i], &taken, taken | lowest)) {
                *number = i * WORD_BITS + (uint32_t)__builtin_ctzll(lowest);
                return true;
            }
        }
    }
    return false;
}

static void give_back(uint32_t number)
{
    atomic_fetch_and(&threads.taken[number / WORD_BITS], ~(UINT64_C(1) << number % WORD_BITS));
}

/* The end of a thread. If another destructor files a task after this one, the thread does so under its old
 * number, perhaps beside the next thread with that number: its tasks keep their order. */
static void end_thread(void *arg)
{
    (void)arg;
    give_back(thread - 1);
}

/* Has end_thread() called when this thread ends. Returns false if that cannot be. */
static bool hear_of_the_end(void)
{
    pthread_key_t end = atomic_load(&threads.end);
    return end != NO_KEY && pthread_setspecific(end, &threads) == 0;
}

uint32_t tw__sched_thread_slot(void)
{
    if (thread == 0) {
        uint32_t number = 0;
        if (claim(&number) && !hear_of_the_end())
            give_back(number);
        thread = number + 1;
    }
    return thread - 1;
}

__attribute__((constructor)) static void open_threads(void)
{
    pthread_key_t key;
    if (pthread_key_create(&key, end_thread) == 0)
        atomic_store(&threads.end, key);
}

__attribute__((destructor)) static void close_threads(void)
{
    pthread_key_t end = atomic_exchange(&threads.end, NO_KEY);
    if (end != NO_KEY)
        pthread_key_delete(end);
}
