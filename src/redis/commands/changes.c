/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include "keyspace/alarm.h"
#include "keyspace/keys.h"
#include "queues/queue.h"
#include "server/strings.h"

struct tw__redis_task *tw__redis_changes_find(const struct tw__redis_queue *queue, RedisModuleString *id)
{
    return queue == NULL ? NULL : tw__redis_queue_named(queue, tw__redis_string_bytes(id));
}

void tw__redis_changes_close(RedisModuleCtx *ctx, RedisModuleString *name, const char *event)
{
    tw__redis_log_command(ctx, name);
    tw__redis_alarm_next();
    tw__redis_keys_changed(ctx, name, event);
    tw__redis_keys_remove_if_empty(ctx, name, true);
}
