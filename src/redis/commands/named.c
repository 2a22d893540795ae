/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include "keyspace/alarm.h"
#include "keyspace/keys.h"
#include "queues/queue.h"
#include "server/arguments.h"
#include "server/rights.h"
#include "server/strings.h"

enum { RIGHTS_LOOK = 100 }; /* tasks between two looks at the clock */

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

/* Reads ALL, or IDS n id [id ...]. Returns the number of arguments, or 0 after an error reply. */
static int read_named(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, struct tw__redis_named *named)
{
    static const char words[] = "ALL, or IDS n id [id ...]";
    uint64_t count;
    if (argc == 0)
        tw__redis_argument_missing(ctx, "ALL or IDS", words);
    else if (tw__redis_argument_is(argv[0], "ALL"))
        return 1;
    else if (!tw__redis_argument_is(argv[0], "IDS"))
        tw__redis_argument_error(ctx, argv[0], "the word", words);
    else if (argc < 2)
        tw__redis_argument_missing(ctx, "the number of ids", words);
    else if (tw__redis_argument_number(ctx, argv[1], "IDS", TW__REDIS_COUNT, 1, TW__REDIS_NAMED_MAX, &count)) {
        named->ids = argv + 2;
        named->count = count;
        if (count > (uint64_t)argc - 2)
            tw__redis_argument_error(ctx, argv[1], "IDS", "so many ids behind it");
        else if (tw__redis_argument_ids(ctx, named->ids, (int)count, 1))
            return 2 + (int)count;
    }
    return 0;
}

bool tw__redis_named_open(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                          struct tw__redis_named *named, uint64_t *due_ms, struct tw__redis_queue **queue)
{
    uint64_t now_ms;
    int read = read_named(ctx, argv + 2, argc - 2, named), at = 2 + read, end = at + (due_ms != NULL ? 2 : 0);
    if (read == 0)
        return false;
    if (argc > end)
        return tw__redis_argument_error(ctx, argv[end], "the last option", "no more arguments");
    if ((argc > at && !tw__redis_argument_time(ctx, argv + at, argc - at, &now_ms, due_ms)) ||
        !tw__redis_keys_open(ctx, argv[1], queue))
        return false;
    if (named->ids == NULL && *queue != NULL)
        named->gather(*queue, named);
    return true;
}

struct tw__redis_task *tw__redis_named_at(const struct tw__redis_queue *queue,
                                          const struct tw__redis_named *named, size_t i)
{
    if (named->ids == NULL)
        return named->all.at[i];
    struct tw__redis_task *task = tw__redis_changes_find(queue, named->ids[i]);
    return task != NULL && named->fits(task, named->now_ms) ? task : NULL;
}

bool tw__redis_named_may_deliver(RedisModuleCtx *ctx, const struct tw__redis_queue *queue,
                                 struct tw__redis_named *named, uint64_t until_us)
{
    struct tw__redis_caller caller;
    const struct tw__redis_route *last = NULL;
    bool may = true;
    tw__redis_caller_init(&caller, ctx);
    for (size_t i = 0; i < named->count && may; i++) {
        if (i > 0 && i % RIGHTS_LOOK == 0 && RedisModule_MonotonicMicroseconds() >= until_us) {
            named->count = i;
            break;
        }
        const struct tw__redis_task *task = tw__redis_named_at(queue, named, i);
        struct tw__redis_route *route = task == NULL ? NULL : tw__redis_route_of(tw__redis_shared.queues, task);
        may = route == NULL || route == last || tw__redis_caller_may_deliver(&caller, route);
        last = route;
    }
    if (!may)
        tw__redis_caller_error(&caller, ctx);
    tw__redis_caller_fini(&caller);
    return may;
}
