/* SPDX-License-Identifier: MIT
 *
 * A queue is removed with its last task, as the server does it with its own types. Commands and batches
 * remove the queue after they have sent their notifications. The tick removes queues that another
 * module's handler has left without tasks.
 */
#include "keys.h"

#include <base/assert.h>

#include "alarm.h"
#include "batch.h"
#include "queues/queue.h"
#include "server/arguments.h"
#include "server/rights.h"

enum { EMPTY_MAX = 8 }; /* removed in one tick */

/* The queue that was unlinked last. A later notification may say why: it expired, or was evicted. */
static struct {
    RedisModuleString *name;
    uint64_t tasks;
} unlinked;

/* ---- finding --------------------------------------------------------------------------------------------- */

/* Finds the queue that is the value of a key; NULL if there is none. Returns false if the key has another
 * type. */
static bool look_up(RedisModuleKey *key, struct tw__redis_queue **queue)
{
    *queue = NULL;
    if (key == NULL || RedisModule_KeyType(key) == REDISMODULE_KEYTYPE_EMPTY)
        return true;
    if (RedisModule_ModuleTypeGetType(key) != tw__redis_shared.type)
        return false;
    *queue = RedisModule_ModuleTypeGetValue(key);
    return true;
}

/* The same for the key with this name, which is closed again. */
static bool find_queue(RedisModuleCtx *ctx, RedisModuleString *name, int mode, struct tw__redis_queue **queue)
{
    RedisModuleKey *key = RedisModule_OpenKey(ctx, name, mode);
    bool found = look_up(key, queue);
    if (key != NULL)
        RedisModule_CloseKey(key);
    return found;
}

bool tw__redis_keys_find(RedisModuleCtx *ctx, RedisModuleString *name, struct tw__redis_queue **queue)
{
    tw__redis_batch_settle();
    return find_queue(ctx, name, REDISMODULE_READ, queue) ||
           tw__redis_refuse(ctx, REDISMODULE_ERRORMSG_WRONGTYPE);
}

struct tw__redis_queue *tw__redis_keys_peek(RedisModuleCtx *ctx, RedisModuleString *name)
{
    struct tw__redis_queue *queue;
    tw__redis_batch_settle();
    return find_queue(ctx, name, REDISMODULE_READ, &queue) ? queue : NULL;
}

bool tw__redis_keys_open(RedisModuleCtx *ctx, RedisModuleString *name, struct tw__redis_queue **queue)
{
    if (tw__redis_caller_is_early(ctx))
        return tw__redis_refuse(
            ctx, "LOADING the data set is being loaded: expected a call after loading has ended");
    tw__redis_batch_settle();
    if (!find_queue(ctx, name, REDISMODULE_READ | REDISMODULE_WRITE, queue))
        return tw__redis_refuse(ctx, REDISMODULE_ERRORMSG_WRONGTYPE);
    tw__redis_shared.queues->recent = *queue;
    return true;
}

struct tw__redis_queue *tw__redis_keys_value(const void *value)
{
    tw__redis_batch_settle();
    return (struct tw__redis_queue *)(uintptr_t)value;
}

struct tw__redis_queues *tw__redis_keys_all(void)
{
    tw__redis_batch_settle();
    return tw__redis_shared.queues;
}

bool tw__redis_keys_has(RedisModuleCtx *ctx, const struct tw__redis_queue *queue)
{
    struct tw__redis_queue *found;
    return find_queue(ctx, queue->name, REDISMODULE_READ | REDISMODULE_WRITE, &found) && found == queue;
}

/* ---- coming and going ------------------------------------------------------------------------------------ */

void tw__redis_keys_name(struct tw__redis_queue *queue, const RedisModuleString *name, int db)
{
    size_t size = 0;
    const char *bytes = name == NULL ? "" : RedisModule_StringPtrLen(name, &size);
    if (queue->name != NULL)
        RedisModule_FreeString(NULL, queue->name);
    queue->name = RedisModule_CreateString(NULL, bytes, size);
    queue->db = db;
}

void tw__redis_keys_make(RedisModuleCtx *ctx, RedisModuleString *name, struct tw__redis_queue *queue)
{
    TW_ASSERT(!queue->attached);
    RedisModuleKey *key = RedisModule_OpenKey(ctx, name, REDISMODULE_READ | REDISMODULE_WRITE);
    tw__redis_keys_name(queue, name, RedisModule_GetSelectedDb(ctx));
    tw__redis_queue_attach(queue);
    RedisModule_ModuleTypeSetValue(key, tw__redis_shared.type, queue);
    RedisModule_CloseKey(key);
}

void tw__redis_keys_renamed(RedisModuleCtx *ctx, RedisModuleString *name)
{
    struct tw__redis_queue *queue;
    tw__redis_batch_settle();
    if (!find_queue(ctx, name, REDISMODULE_READ | REDISMODULE_OPEN_KEY_NOTOUCH, &queue) || queue == NULL)
        return;
    tw__redis_keys_name(queue, name, RedisModule_GetSelectedDb(ctx));
    tw__redis_queue_attach(queue);
    tw__redis_alarm_next();
}

void tw__redis_keys_detach(struct tw__redis_queue *queue)
{
    tw__redis_batch_forget(queue);
    tw__redis_queue_detach(queue);
}

void tw__redis_keys_unlinked(RedisModuleKeyOptCtx *context, const void *value)
{
    struct tw__redis_queue *queue = tw__redis_keys_value(value);
    if (unlinked.name != NULL)
        RedisModule_FreeString(NULL, unlinked.name);
    unlinked.name = RedisModule_CreateStringFromString(NULL, RedisModule_GetKeyNameFromOptCtx(context));
    unlinked.tasks = tw__redis_table_count(&queue->tasks);
    tw__redis_keys_detach(queue);
    tw__redis_alarm_at(tw__redis_now_ms());
}

uint64_t tw__redis_keys_take_unlinked(RedisModuleString *name)
{
    if (unlinked.name == NULL || RedisModule_StringCompare(unlinked.name, name) != 0)
        return 0;
    uint64_t tasks = unlinked.tasks;
    unlinked.tasks = 0;
    return tasks;
}

/* ---- telling --------------------------------------------------------------------------------------------- */

void tw__redis_keys_changed(RedisModuleCtx *ctx, RedisModuleString *name, const char *event)
{
    RedisModule_SignalModifiedKey(ctx, name);
    RedisModule_NotifyKeyspaceEvent(ctx, REDISMODULE_NOTIFY_MODULE, event, name);
}

void tw__redis_keys_remove_if_empty(RedisModuleCtx *ctx, RedisModuleString *name, bool replicate)
{
    struct tw__redis_queue *queue;
    if (tw__redis_shared.queues->empty == 0)
        return;
    RedisModuleKey *key = RedisModule_OpenKey(ctx, name, REDISMODULE_READ | REDISMODULE_WRITE);
    bool empty =
        look_up(key, &queue) && queue != NULL && tw__redis_table_count(&queue->tasks) == 0 && !queue->paused;
    if (empty)
        RedisModule_DeleteKey(key);
    RedisModule_CloseKey(key);
    if (!empty)
        return;
    RedisModule_SignalModifiedKey(ctx, name);
    if (replicate)
        RedisModule_Replicate(ctx, "DEL", "s", name);
    RedisModule_NotifyKeyspaceEvent(ctx, REDISMODULE_NOTIFY_GENERIC, "del", name);
}

/* Returns the first queue without tasks, or NULL. */
static const struct tw__redis_queue *first_empty(void)
{
    struct tw__link *attached = &tw__redis_shared.queues->attached;
    for (struct tw__link *link = attached->next; link != attached; link = link->next) {
        const struct tw__redis_queue *queue = tw__redis_queue_at(link);
        if (tw__redis_table_count(&queue->tasks) == 0 && !queue->paused)
            return queue;
    }
    return NULL;
}

void tw__redis_keys_remove_empty_ones(RedisModuleCtx *ctx)
{
    int db = RedisModule_GetSelectedDb(ctx);
    const struct tw__redis_queue *queue;
    for (uint32_t i = 0; i < EMPTY_MAX && tw__redis_shared.queues->empty > 0 && (queue = first_empty()) != NULL;
         i++) {
        RedisModuleString *name = RedisModule_CreateStringFromString(NULL, queue->name);
        RedisModule_SelectDb(ctx, queue->db);
        tw__redis_keys_remove_if_empty(ctx, name, true);
        RedisModule_FreeString(NULL, name);
    }
    RedisModule_SelectDb(ctx, db);
}
