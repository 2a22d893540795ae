/* SPDX-License-Identifier: MIT
 *
 * A red-black tree, BSD's <sys/tree.h>, ordered by deadline and, for equal deadlines, by address. It
 * remembers the first timer, as did the kernels that kept timers in such trees.
 */
#include "object.inc.h"

#ifndef __unused /* libbsd's header expects this from the C library, which does not define it */
#define __unused __attribute__((unused))
#endif
#include <bsd/sys/tree.h>

struct tree_timer {
    RB_ENTRY(object) entry;
    uint64_t deadline;
};

struct object {
    struct tree_timer timer;
    void (*fire)(struct object *object);
    uint64_t payload;
    uint32_t id : 31, pending : 1;
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct object) == 64, "one cache line");

static int compare(struct object *a, struct object *b)
{
    if (a->timer.deadline != b->timer.deadline)
        return a->timer.deadline < b->timer.deadline ? -1 : 1;
    return (a > b) - (a < b);
}

RB_HEAD(tree, object);
RB_GENERATE_STATIC(tree, object, timer.entry, compare)

static struct tree tree;
static struct object *earliest;

static inline void engine_open(const struct engine *engine, uint32_t timers)
{
    (void)engine, (void)timers;
    RB_INIT(&tree);
    earliest = NULL;
}

static inline void engine_close(void)
{
}

static inline void engine_prepare(struct object *object)
{
    object->pending = 0;
    object->fire = handle;
}

static ENGINE_CALL void engine_add(struct object *object, uint64_t deadline)
{
    object->timer.deadline = deadline;
    object->pending = 1;
    RB_INSERT(tree, &tree, object);
    if (earliest == NULL || compare(object, earliest) < 0)
        earliest = object;
}

static ENGINE_CALL void engine_cancel(struct object *object)
{
    if (!object->pending)
        return;
    object->pending = 0;
    if (object == earliest)
        earliest = RB_NEXT(tree, &tree, object);
    RB_REMOVE(tree, &tree, object);
}

static inline void engine_move(struct object *object, uint64_t deadline)
{
    engine_cancel(object);
    engine_add(object, deadline);
}

static ENGINE_CALL struct object *take_due(uint64_t tick)
{
    struct object *object = earliest;
    if (object == NULL || object->timer.deadline > tick)
        return NULL;
    engine_cancel(object);
    return object;
}

static inline void engine_advance(uint64_t tick)
{
    struct object *object;
    while ((object = take_due(tick)) != NULL)
        object->fire(object);
}

static ENGINE_CALL uint64_t engine_next(void)
{
    return earliest != NULL ? earliest->timer.deadline : UINT64_MAX;
}

#include "../workloads.inc.h"

extern const struct engine engine_rbtree;
const struct engine engine_rbtree = {
    .name = "rbtree", .kind = KIND_PEER, .object_size = sizeof(struct object), .slow = true, .run = run};
