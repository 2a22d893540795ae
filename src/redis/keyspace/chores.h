/* SPDX-License-Identifier: MIT
 *
 * Work that TW.SEND, TW.CANCEL and TW.MOVE leave for a moment later, while its memory is fetched. How it works:
 * head of chores.c.
 */
#ifndef TW_REDIS_CHORES_H
#define TW_REDIS_CHORES_H

#include <pthread.h>

#include "server/shared.h"

enum { TW__REDIS_CHORES = 8 }; /* open at a time; a power of two */

enum tw__redis_chore_kind {
    TW__REDIS_CHORE_PUT,    /* puts a new task into its queue, and files it */
    TW__REDIS_CHORE_REMOVE, /* takes a task out of its queue, and frees it */
    TW__REDIS_CHORE_REFILE  /* files a task for another time */
};

struct tw__redis_chore {
    enum tw__redis_chore_kind kind;
    struct tw__redis_queue *queue;
    struct tw__redis_task *task;
    struct tw__redis_route *route; /* of a new task */
    uint64_t hash, due, now_ms;
};

struct tw__redis_chores {
    pthread_t server; /* the thread that runs the event loop */
    bool ending;      /* the server is ending an event-loop iteration */
    bool tight;       /* memory was short when the iteration began */
    uint32_t first, count;
    struct tw__redis_chore ring[TW__REDIS_CHORES];
};

/* To be called when the module is loaded. */
void tw__redis_chores_start(void);

/* Leaves a chore, and does the oldest one if enough are open. The head of chores.c tells when no chore stays
 * open. Requires: no open chore has the hash; the queue is attached. */
void tw__redis_chores_leave(const struct tw__redis_chore *chore);

/* Does all open chores. To be called before anybody looks at queues, or changes them, or at what they
 * share. keys.c calls it for every caller that reaches a queue by its key, or reaches all queues. */
void tw__redis_chores_finish(void);

/* The same if an open chore concerns an id with this hash. To be called before that id is looked up by a
 * command that leaves other chores open. */
void tw__redis_chores_finish_for(uint64_t hash);

/* To be called when an event-loop iteration begins, and when it is about to end. Does all open chores. */
void tw__redis_chores_iteration(bool ending);

/* Does all open chores if the queue may have no tasks afterwards. */
void tw__redis_chores_finish_last(const struct tw__redis_queue *queue);

static inline void tw__redis_chores_settle(void)
{
    if (tw__redis_shared.chores->count > 0)
        tw__redis_chores_finish();
}

#endif
