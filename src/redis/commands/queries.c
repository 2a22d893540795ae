/* SPDX-License-Identifier: MIT
 *
 * The commands that read: TW.GET, TW.LEN, TW.NEXT, TW.SCAN, TW.RANGE, TW.FORECAST, TW.INFO, TW.TOP.
 * docs/redis.md describes them.
 */
#include "commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <task/state.h>
#include <task/words.h>

#include "keyspace/keys.h"
#include "queues/look.h"
#include "queues/match.h"
#include "queues/place.h"
#include "queues/queue.h"
#include "queues/route.h"
#include "queues/sums.h"
#include "server/arguments.h"
#include "server/config.h"
#include "server/lateness.h"
#include "server/strings.h"

enum {
    REPLY_MAX = 128,
    RANGE_USUAL = 1000,
    STEP_USUAL_MS = 1000,
    STEPS_USUAL = 60,
    SCAN_USUAL = 10,
    SCAN_MOST = 20000, /* tasks that one call looks at: about ten milliseconds */
    SCAN_BYTES = 256,  /* so many bytes of an id count as one more task */
    LISTED_USUAL = 10
};

/* ---- replies --------------------------------------------------------------------------------------------- */

static void reply_bytes(RedisModuleCtx *ctx, struct tw__redis_bytes bytes)
{
    RedisModule_ReplyWithStringBuffer(ctx, bytes.at, bytes.size);
}

static void reply_number(RedisModuleCtx *ctx, uint64_t number)
{
    RedisModule_ReplyWithLongLong(ctx, (long long)number);
}

static void reply_named(RedisModuleCtx *ctx, const char *name, uint64_t number)
{
    RedisModule_ReplyWithCString(ctx, name);
    reply_number(ctx, number);
}

/* A number that is absent is nil. */
static void reply_number_if(RedisModuleCtx *ctx, bool there, uint64_t number)
{
    if (there)
        reply_number(ctx, number);
    else
        RedisModule_ReplyWithNull(ctx);
}

static void reply_if(RedisModuleCtx *ctx, const char *name, bool there, uint64_t number)
{
    RedisModule_ReplyWithCString(ctx, name);
    reply_number_if(ctx, there, number);
}

static void reply_text(RedisModuleCtx *ctx, const char *name, const char *text)
{
    RedisModule_ReplyWithCString(ctx, name);
    RedisModule_ReplyWithCString(ctx, text);
}

/* A task as TW.NEXT, TW.RANGE and TW.SCAN show it. */
static void reply_row(RedisModuleCtx *ctx, const struct tw__redis_task *task, uint64_t now_ms)
{
    RedisModule_ReplyWithArray(ctx, 3);
    reply_bytes(ctx, tw__redis_task_id(task));
    reply_number(ctx, tw__redis_task_first_due(task));
    reply_number_if(ctx, tw__redis_task_stage(task) != TW__TASK_BURIED,
                    tw__redis_place_next(tw__redis_shared.queues, task, now_ms));
}

/* ---- TW.GET ---------------------------------------------------------------------------------------------- */

static void reply_payload(RedisModuleCtx *ctx, const struct tw__redis_task *task)
{
    struct tw__redis_payload payload = tw__redis_task_payload(task);
    RedisModule_ReplyWithCString(ctx, "payload");
    RedisModule_ReplyWithArray(ctx, payload.count);
    while (payload.count > 0)
        reply_bytes(ctx, tw__redis_payload_next(&payload));
}

/* The state by the rule that all homes share: the clock alone makes a task ready. But a task that a tick has
 * made ready stays so if the clock is set back. */
static enum tw_state state_of(const struct tw__redis_task *task, uint64_t next_ms, uint64_t now_ms)
{
    struct tw__task seen = {.stage = tw__redis_task_stage(task),
                            .next_ms = task->place == TW__REDIS_IN_READY ? 0 : next_ms};
    return tw__task_state(&seen, now_ms);
}

/* The attempts that have begun: of a task with a target the tries that its target has refused. */
static uint64_t attempts_begun(const struct tw__redis_task *task)
{
    uint64_t begun = task->has_attempt ? tw__redis_task_attempt(task).number : 0;
    return begun > 0 ? begun : tw__redis_place_tries(tw__redis_shared.queues, task);
}

static void reply_attempt(RedisModuleCtx *ctx, const struct tw__redis_task *task, uint64_t next_ms,
                          uint64_t now_ms)
{
    struct tw__redis_attempt attempt = tw__redis_task_any_attempt(task);
    enum tw_state state = state_of(task, next_ms, now_ms);
    reply_named(ctx, "attempt", attempts_begun(task));
    reply_named(ctx, "lapses", attempt.lapses);
    reply_named(ctx, "missed-periods", attempt.has_missed_periods ? attempt.missed_periods : 0);
    reply_text(ctx, "state", tw__task_state_name(state));
    reply_named(ctx, "replaced", tw__redis_task_stage(task) == TW__TASK_REPLACED);
    reply_if(ctx, "next", state != TW_STATE_DEAD, next_ms);
    RedisModule_ReplyWithCString(ctx, "worker");
    reply_bytes(ctx, attempt.worker);
    RedisModule_ReplyWithCString(ctx, "error");
    reply_bytes(ctx, attempt.error);
}

/* A task that runs once misses no period. */
static void reply_missed(RedisModuleCtx *ctx, bool repeats, enum tw_missed missed)
{
    RedisModule_ReplyWithCString(ctx, "missed");
    if (repeats)
        RedisModule_ReplyWithCString(ctx, tw__task_missed_name(missed));
    else
        RedisModule_ReplyWithNull(ctx);
}

static void reply_task(RedisModuleCtx *ctx, const struct tw__redis_task *task, uint64_t now_ms)
{
    struct tw__redis_plan plan = tw__redis_route_plan(tw__redis_route_of(tw__redis_shared.queues, task));
    static const char *const kinds[] = {"stream", "list", "list left", "workers"};
    uint64_t every = tw__redis_task_every(task), times = tw__redis_task_times(task),
             next_ms = tw__redis_place_next(tw__redis_shared.queues, task, now_ms);
    RedisModule_ReplyWithMap(ctx, 18);
    reply_named(ctx, "due", tw__redis_task_first_due(task));
    reply_named(ctx, "remaining", next_ms > now_ms ? next_ms - now_ms : 0);
    reply_if(ctx, "every", every > 0, every);
    reply_if(ctx, "times", times != TW_FOREVER, times);
    RedisModule_ReplyWithCString(ctx, "target");
    reply_bytes(ctx, plan.target);
    reply_text(ctx, "kind", kinds[plan.kind]);
    reply_if(ctx, "maxlen", plan.maxlen > 0, plan.maxlen);
    reply_missed(ctx, every > 0, (enum tw_missed)plan.missed);
    reply_if(ctx, "max-late", plan.max_late_ms != TW_FOREVER, plan.max_late_ms);
    reply_attempt(ctx, task, next_ms, now_ms);
    reply_payload(ctx, task);
}

int tw__redis_get_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    struct tw__redis_queue *queue;
    if (!tw__redis_argument_ids(ctx, argv + 2, argc - 2, 1) || !tw__redis_keys_find(ctx, argv[1], &queue))
        return REDISMODULE_OK;
    uint64_t now_ms = tw__redis_now_ms();
    RedisModule_ReplyWithArray(ctx, argc - 2);
    for (int i = 2; i < argc; i++) {
        const struct tw__redis_task *task = tw__redis_changes_find(queue, argv[i]);
        if (task == NULL)
            RedisModule_ReplyWithNull(ctx);
        else
            reply_task(ctx, task, now_ms);
    }
    return REDISMODULE_OK;
}

/* ---- TW.LEN, TW.NEXT, TW.RANGE --------------------------------------------------------------------------- */

int tw__redis_len_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    struct tw__redis_queue *queue;
    (void)argc;
    if (!tw__redis_keys_find(ctx, argv[1], &queue))
        return REDISMODULE_OK;
    reply_number(ctx, queue == NULL ? 0 : tw__redis_table_count(&queue->tasks) - queue->dead_count);
    return REDISMODULE_OK;
}

int tw__redis_next_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    struct tw__redis_queue *queue;
    struct tw__redis_task *task;
    (void)argc;
    if (!tw__redis_keys_find(ctx, argv[1], &queue))
        return REDISMODULE_OK;
    uint64_t now_ms = tw__redis_now_ms();
    if (queue == NULL || tw__redis_look_earliest(queue, now_ms + 1, UINT64_MAX, now_ms, 1, &task) == 0)
        return RedisModule_ReplyWithNull(ctx);
    reply_row(ctx, task, now_ms);
    return REDISMODULE_OK;
}

/* Reads one end of a range: a time, or - or + for the first or the last time. Returns false after an error
 * reply. */
static bool read_end(RedisModuleCtx *ctx, RedisModuleString *argument, const char *what, uint64_t *time)
{
    bool first = tw__redis_argument_is(argument, "-");
    long long number;
    char expected[REPLY_MAX];
    if (first || tw__redis_argument_is(argument, "+"))
        *time = first ? 0 : TW__TASK_TIME_MAX;
    else if (RedisModule_StringToLongLong(argument, &number) == REDISMODULE_OK && number >= 0 &&
             (uint64_t)number <= TW__TASK_TIME_MAX)
        *time = (uint64_t)number;
    else {
        snprintf(expected, sizeof expected, "-, + or Unix time in milliseconds, an integer from 0 to %" PRIu64,
                 TW__TASK_TIME_MAX);
        return tw__redis_argument_error(ctx, argument, what, expected);
    }
    return true;
}

/* AFTER: returns the named task if its `next` is still `from`. Otherwise returns NULL, and no task is left out.
 * */
static struct tw__redis_task *find_after(const struct tw__redis_queue *queue,
                                         const struct tw__redis_option *option, uint64_t from, uint64_t now_ms)
{
    struct tw__redis_task *task = option->value == NULL ? NULL : tw__redis_changes_find(queue, option->value);
    return task != NULL && tw__redis_place_next(tw__redis_shared.queues, task, now_ms) == from ? task : NULL;
}

static void reply_range(RedisModuleCtx *ctx, const struct tw__redis_queue *queue,
                        const struct tw__redis_wanted *wanted, uint64_t now_ms, uint64_t limit)
{
    struct tw__redis_task **task = RedisModule_Alloc(limit * sizeof(struct tw__redis_task *));
    size_t count = tw__redis_look_wanted(queue, wanted, now_ms, limit, task);
    RedisModule_ReplyWithArray(ctx, (long)count);
    for (size_t i = 0; i < count; i++)
        reply_row(ctx, task[i], now_ms);
    RedisModule_Free(task);
}

int tw__redis_range_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    struct tw__redis_queue *queue;
    struct tw__redis_wanted wanted = {.after = NULL};
    uint64_t limit = RANGE_USUAL, now_ms = tw__redis_now_ms();
    struct tw__redis_option options[] = {
        tw__redis_option_of("COUNT", TW__REDIS_COUNT, TW__TASK_IN_COUNT, &limit),
        {.word = "AFTER"},
        {.word = NULL}};
    if (!read_end(ctx, argv[2], "from", &wanted.from) || !read_end(ctx, argv[3], "to", &wanted.to) ||
        !tw__redis_argument_options(ctx, argv + 4, argc - 4, options, "AFTER id or COUNT n") ||
        (options[1].value != NULL && !tw__redis_argument_ids(ctx, &options[1].value, 1, 1)) ||
        !tw__redis_keys_find(ctx, argv[1], &queue))
        return REDISMODULE_OK;
    if (queue == NULL || tw__redis_table_count(&queue->tasks) == 0 || wanted.from > wanted.to)
        return RedisModule_ReplyWithArray(ctx, 0);
    wanted.after = find_after(queue, &options[1], wanted.from, now_ms);
    if (wanted.from <= now_ms)
        wanted.from = now_ms + 1; /* earlier tasks are ready */
    if (limit > tw__redis_table_count(&queue->tasks))
        limit = tw__redis_table_count(&queue->tasks);
    reply_range(ctx, queue, &wanted, now_ms, limit);
    return REDISMODULE_OK;
}

/* ---- TW.SCAN --------------------------------------------------------------------------------------------- */

/* The result of one call. */
struct scan {
    bool match; /* only ids that match the pattern */
    struct tw__redis_pattern pattern;
    struct tw__redis_vector found;
    uint64_t seen, work;
};

static void scan_task(void *entry, void *arg)
{
    struct scan *scan = arg;
    struct tw__redis_bytes id = tw__redis_task_id(entry);
    scan->seen++;
    scan->work += 1 + id.size / SCAN_BYTES;
    if (!scan->match || tw__redis_pattern_matches(&scan->pattern, id))
        tw__redis_vector_add(&scan->found, entry, &tw__redis_shared.queues->memory);
}

/* Looks at about `count` tasks from the cursor on, but at no more tasks than one call may look at
 * (SCAN_MOST). Returns the next cursor. */
static uint64_t scan_some(struct scan *scan, const struct tw__redis_queue *queue, uint64_t cursor,
                          uint64_t count)
{
    do
        cursor = tw__redis_table_scan(&queue->tasks, cursor, scan_task, scan);
    while (cursor != 0 && scan->seen < count && scan->work < SCAN_MOST);
    return cursor;
}

static void reply_scan(RedisModuleCtx *ctx, const struct scan *scan, uint64_t cursor)
{
    uint64_t now_ms = tw__redis_now_ms();
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)cursor);
    RedisModule_ReplyWithArray(ctx, 2);
    RedisModule_ReplyWithCString(ctx, text);
    RedisModule_ReplyWithArray(ctx, (long)scan->found.count);
    for (size_t i = 0; i < scan->found.count; i++)
        reply_row(ctx, scan->found.at[i], now_ms);
}

/* Reads MATCH, if the caller gave it. Returns false after an error reply. */
static bool read_match(RedisModuleCtx *ctx, const struct tw__redis_option *option, struct scan *scan)
{
    if (option->value == NULL)
        return true;
    struct tw__redis_bytes text = tw__redis_string_bytes(option->value);
    if (text.size > TW__REDIS_PATTERN_MAX)
        return tw__redis_refuse(ctx, "ERR MATCH has %zu bytes: expected at most %d", text.size,
                                TW__REDIS_PATTERN_MAX);
    scan->match = true;
    tw__redis_pattern_read(&scan->pattern, text);
    return true;
}

static bool read_cursor(RedisModuleCtx *ctx, RedisModuleString *argument, uint64_t *cursor)
{
    unsigned long long value;
    if (RedisModule_StringToULongLong(argument, &value) != REDISMODULE_OK)
        return tw__redis_argument_error(ctx, argument, "the cursor",
                                        "0, or the cursor that the previous call replied with");
    *cursor = value;
    return true;
}

int tw__redis_scan_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    struct tw__redis_queue *queue;
    struct scan scan = {.match = false};
    uint64_t cursor = 0, count = SCAN_USUAL;
    struct tw__redis_option options[] = {
        {"COUNT", TW__REDIS_COUNT, 1, INT32_MAX, &count, NULL}, {.word = "MATCH"}, {.word = NULL}};
    if (!read_cursor(ctx, argv[2], &cursor) ||
        !tw__redis_argument_options(ctx, argv + 3, argc - 3, options, "COUNT n or MATCH glob") ||
        !read_match(ctx, &options[1], &scan) || !tw__redis_keys_find(ctx, argv[1], &queue))
        return REDISMODULE_OK;
    cursor = queue == NULL ? 0 : scan_some(&scan, queue, cursor, count);
    reply_scan(ctx, &scan, cursor);
    RedisModule_Free(scan.found.at);
    return REDISMODULE_OK;
}

/* ---- TW.FORECAST, TW.INFO -------------------------------------------------------------------------------- */

static void reply_counts(RedisModuleCtx *ctx, const uint64_t *counts, uint64_t count)
{
    RedisModule_ReplyWithArray(ctx, (long)count);
    for (uint64_t i = 0; i < count; i++)
        reply_number(ctx, counts[i]);
}

int tw__redis_forecast_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    struct tw__redis_queue *queue;
    uint64_t step = STEP_USUAL_MS, count = STEPS_USUAL;
    struct tw__redis_option options[] = {
        tw__redis_option_of("STEP", TW__REDIS_MS, TW__TASK_IN_STEP, &step),
        tw__redis_option_of("STEPS", TW__REDIS_COUNT, TW__TASK_IN_STEPS, &count),
        {.word = NULL}};
    if (!tw__redis_argument_options(ctx, argv + 2, argc - 2, options, "STEP ms or STEPS n") ||
        !tw__redis_keys_find(ctx, argv[1], &queue))
        return REDISMODULE_OK;
    uint64_t *counts = RedisModule_Calloc(count, sizeof *counts);
    if (queue != NULL)
        tw__redis_look_forecast(queue, tw__redis_now_ms(), step, count, counts);
    reply_counts(ctx, counts, count);
    RedisModule_Free(counts);
    return REDISMODULE_OK;
}

/* How many tasks the server is late with: nothing keeps them back, and it has neither delivered nor offered
 * them. */
static uint64_t late_tasks(RedisModuleCtx *ctx, const struct tw__redis_queue *queue, uint64_t ready)
{
    bool delivers = tw__redis_config.deliver && !tw__redis_gate_is_replica(ctx);
    return delivers && !queue->paused ? ready - queue->ready_count : 0;
}

static void reply_oldest_ready(RedisModuleCtx *ctx, const struct tw__redis_queue *queue, uint64_t now_ms)
{
    uint64_t since_ms = tw__redis_overview_ready_since(queue, now_ms);
    reply_named(ctx, "oldest-ready", since_ms < now_ms ? now_ms - since_ms : 0);
}

static void reply_info(RedisModuleCtx *ctx, const struct tw__redis_queue *queue, uint64_t now_ms)
{
    struct tw__redis_states states;
    struct tw__redis_task *task;
    size_t any = tw__redis_look_earliest(queue, now_ms + 1, UINT64_MAX, now_ms, 1, &task);
    tw__redis_look_states(queue, now_ms, &states);
    RedisModule_ReplyWithMap(ctx, 12 + TW__REDIS_COUNTS);
    reply_named(ctx, "tasks", tw__redis_table_count(&queue->tasks) - queue->dead_count);
    reply_named(ctx, "waiting", states.waiting);
    reply_named(ctx, "ready", states.ready);
    reply_named(ctx, "leased", queue->leased_count);
    reply_named(ctx, "dead", queue->dead_count);
    reply_named(ctx, "paused", queue->paused);
    reply_named(ctx, "late", late_tasks(ctx, queue, states.ready));
    reply_named(ctx, "held", queue->held);
    reply_if(ctx, "next", any > 0, any > 0 ? tw__redis_place_next(queue->queues, task, now_ms) : 0);
    reply_oldest_ready(ctx, queue, now_ms);
    reply_named(ctx, "routes", tw__redis_route_count(queue));
    reply_named(ctx, "bytes", queue->bytes);
    for (int i = 0; i < TW__REDIS_COUNTS; i++)
        reply_named(ctx, tw__redis_count_name[i], queue->counts[i]);
}

int tw__redis_info_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    struct tw__redis_queue *queue;
    uint64_t now_ms = tw__redis_now_ms();
    (void)argc;
    if (!tw__redis_keys_find(ctx, argv[1], &queue))
        return REDISMODULE_OK;
    if (queue == NULL)
        return RedisModule_ReplyWithError(ctx, "ERR no such key");
    reply_info(ctx, queue, now_ms);
    return REDISMODULE_OK;
}

/* ---- TW.TOP ---------------------------------------------------------------------------------------------- */

static void reply_lateness(RedisModuleCtx *ctx)
{
    struct tw__redis_lateness recent = tw__redis_lateness_recent();
    RedisModule_ReplyWithCString(ctx, "recent");
    RedisModule_ReplyWithMap(ctx, 6);
    reply_named(ctx, "calls", recent.calls);
    reply_named(ctx, "p50", recent.p50_us);
    reply_named(ctx, "p90", recent.p90_us);
    reply_named(ctx, "p99", recent.p99_us);
    reply_named(ctx, "p999", recent.p999_us);
    reply_named(ctx, "max", recent.max_us);
}

static void reply_queues(RedisModuleCtx *ctx, const char *name, const struct tw__redis_queue *const *list,
                         size_t count)
{
    uint64_t ready[TW__REDIS_LISTED_MAX];
    tw__redis_overview_ready(tw__redis_shared.queues, tw__redis_now_ms(), list, count, ready);
    RedisModule_ReplyWithCString(ctx, name);
    RedisModule_ReplyWithArray(ctx, (long)count);
    for (size_t i = 0; i < count; i++) {
        RedisModule_ReplyWithArray(ctx, 11);
        RedisModule_ReplyWithLongLong(ctx, list[i]->db);
        RedisModule_ReplyWithString(ctx, list[i]->name);
        reply_number(ctx, tw__redis_table_count(&list[i]->tasks) - list[i]->dead_count);
        reply_number(ctx, list[i]->held);
        reply_number(ctx, list[i]->counts[TW__REDIS_DELIVERED]);
        reply_number(ctx, list[i]->counts[TW__REDIS_DONE]);
        reply_number(ctx, list[i]->counts[TW__REDIS_DIED]);
        reply_number(ctx, ready[i]);
        reply_number(ctx, list[i]->leased_count);
        reply_number(ctx, list[i]->dead_count);
        reply_number(ctx, list[i]->paused);
    }
}

static void reply_listed(RedisModuleCtx *ctx, const struct tw__redis_queues *queues, uint64_t limit)
{
    const struct tw__redis_queue *listed[TW__REDIS_LISTED_MAX];
    size_t count = tw__redis_overview_largest(queues, listed, limit);
    reply_queues(ctx, "queues", listed, count);
    count = tw__redis_overview_paused(queues, listed, limit);
    reply_queues(ctx, "paused-queues", listed, count);
}

int tw__redis_top_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    uint64_t step = STEP_USUAL_MS, count = STEPS_USUAL, limit = LISTED_USUAL;
    struct tw__redis_option options[] = {
        tw__redis_option_of("STEP", TW__REDIS_MS, TW__TASK_IN_STEP, &step),
        tw__redis_option_of("STEPS", TW__REDIS_COUNT, TW__TASK_IN_STEPS, &count),
        {"QUEUES", TW__REDIS_COUNT, 0, TW__REDIS_LISTED_MAX, &limit, NULL},
        {.word = NULL}};
    if (!tw__redis_argument_options(ctx, argv + 1, argc - 1, options, "STEP ms, STEPS n or QUEUES n"))
        return REDISMODULE_OK;
    struct tw__redis_queues *queues = tw__redis_keys_all();
    uint64_t *counts = RedisModule_Alloc(count * sizeof *counts);
    bool exact = tw__redis_overview_forecast(queues, tw__redis_now_ms(), step, count, counts);
    RedisModule_ReplyWithMap(ctx, 5);
    RedisModule_ReplyWithCString(ctx, "forecast");
    reply_counts(ctx, counts, count);
    reply_named(ctx, "exact", exact);
    reply_lateness(ctx);
    reply_listed(ctx, queues, limit);
    RedisModule_Free(counts);
    return REDISMODULE_OK;
}
