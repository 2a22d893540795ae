/* SPDX-License-Identifier: MIT
 *
 * A table with chains. It doubles when it has as many queues as buckets. A file may have a million queues, each
 * for one customer, and most of them are here only for the moment of their tasks: so a queue is one block of
 * memory with its name at the end, and goes when it has no task in the window.
 */
#include "queues.h"

#include <base/assert.h>

#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 64 }; /* at first */

int tw__store_queues_init(struct tw__store_queues *queues)
{
    queues->bucket = calloc(BUCKETS, sizeof(void *));
    queues->mask = BUCKETS - 1;
    return queues->bucket != NULL ? 0 : TW_ENOMEM;
}

static int free_queue(void *arg, struct tw__store_queue *queue)
{
    (void)arg;
    free(queue);
    return 0;
}

void tw__store_queues_fini(struct tw__store_queues *queues)
{
    if (queues->bucket != NULL)
        tw__store_queues_each(queues, free_queue, NULL);
    free(queues->bucket);
}

/* Returns the place of the pointer to a queue, or the end of its bucket. */
static struct tw__store_queue **bucket_of(const struct tw__store_queues *queues, const char *name)
{
    struct tw__store_queue **at = &queues->bucket[tw__store_hash(0, name, strlen(name)) & queues->mask];
    while (*at != NULL && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    return at;
}

struct tw__store_queue *tw__store_queues_find(const struct tw__store_queues *queues, const char *name)
{
    return *bucket_of(queues, name);
}

static int move_queue(void *arg, struct tw__store_queue *queue)
{
    struct tw__store_queue **at = bucket_of(arg, queue->name);
    queue->next = NULL;
    *at = queue;
    return 0;
}

/* Without memory the table stays, and its chains become longer. */
static void double_table(struct tw__store_queues *queues)
{
    struct tw__store_queues larger = {.mask = 2 * queues->mask + 1, .count = queues->count};
    larger.bucket = calloc(larger.mask + 1, sizeof(void *));
    if (larger.bucket == NULL)
        return;
    tw__store_queues_each(queues, move_queue, &larger);
    free(queues->bucket);
    *queues = larger;
}

struct tw__store_queue *tw__store_queues_add(struct tw__store_queues *queues, const char *name,
                                             const struct tw__store_callee *callee)
{
    size_t size = strlen(name) + 1;
    struct tw__store_queue *queue = calloc(1, sizeof *queue + size);
    if (queue == NULL)
        return NULL;
    if (queues->count > queues->mask)
        double_table(queues);
    memcpy(queue->name, name, size);
    queue->callee = *callee;
    tw__list_init(&queue->ready);
    *bucket_of(queues, name) = queue;
    queues->count++;
    return queue;
}

void tw__store_queues_remove(struct tw__store_queues *queues, struct tw__store_queue *queue)
{
    struct tw__store_queue **at = bucket_of(queues, queue->name);
    TW_ASSERT(*at == queue);
    *at = queue->next;
    queues->count--;
    free(queue);
}

int tw__store_queues_each(struct tw__store_queues *queues,
                          int (*visit)(void *arg, struct tw__store_queue *queue), void *arg)
{
    int result = 0;
    for (uint64_t i = 0; i <= queues->mask && result == 0; i++) {
        for (struct tw__store_queue *queue = queues->bucket[i], *next; queue != NULL && result == 0;
             queue = next) {
            next = queue->next;
            result = visit(arg, queue);
        }
    }
    return result;
}
