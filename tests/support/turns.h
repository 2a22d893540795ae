/* SPDX-License-Identifier: MIT
 *
 * Threads that take turns, so that several threads make the steps of one random sequence.
 */
#ifndef TW_TESTS_SUPPORT_TURNS_H
#define TW_TESTS_SUPPORT_TURNS_H

#include "tests/support/eventually.h"

enum { TURNS_MAX = 8 };

/* A thread's turn. Returns the number of the thread whose turn is next, or TURNS_MAX at the end. */
typedef unsigned turn_fn(unsigned thread);

struct turns {
    pthread_mutex_t lock;
    pthread_cond_t passed;
    unsigned next;
    turn_fn *turn;
};

struct turner {
    struct turns *turns;
    pthread_t thread;
    unsigned number;
};

static inline void *take_turns(void *arg)
{
    struct turner *self = arg;
    struct turns *turns = self->turns;
    pthread_mutex_lock(&turns->lock);
    while (turns->next != TURNS_MAX) {
        if (turns->next == self->number) {
            turns->next = turns->turn(self->number);
            pthread_cond_broadcast(&turns->passed);
        } else {
            eventually_woken(&turns->passed, &turns->lock);
        }
    }
    pthread_mutex_unlock(&turns->lock);
    return NULL;
}

/* Lets `threads` threads take turns until one of them ends it. The calling thread is number 0 and begins. */
static inline void pass_turns(unsigned threads, turn_fn *turn)
{
    struct turns turns = {.turn = turn};
    struct turner turner[TURNS_MAX];
    pthread_mutex_init(&turns.lock, NULL);
    pthread_cond_init(&turns.passed, NULL);
    for (unsigned i = 0; i < threads; i++)
        turner[i] = (struct turner){.turns = &turns, .number = i};
    for (unsigned i = 1; i < threads; i++)
        if (pthread_create(&turner[i].thread, NULL, take_turns, &turner[i]) != 0)
            abort();
    take_turns(&turner[0]);
    for (unsigned i = 1; i < threads; i++)
        eventually_joined(turner[i].thread);
    pthread_cond_destroy(&turns.passed);
    pthread_mutex_destroy(&turns.lock);
}

#endif
