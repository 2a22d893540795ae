/* SPDX-License-Identifier: MIT
 *
 * From a due task to an entry of its Stream, or an element of its List.
 *
 * The server's own XADD and RPUSH do the work, called with the flags `!` (replicate), `S` (refuse as in a script: too few
 * replicas, disk errors) and `E` (errors as replies): so slots, types, blocked consumers and events are right by
 * themselves. What a batch has taken out of a schedule follows as TW.FIRED; the server wraps all that a timer's callback
 * replicates into one MULTI/EXEC, so a delivery and the removal stand or fall together.
 *
 * A refusal is one of three: of the whole server, and it will pass (memory, replicas, disk): nothing else is tried for a
 * while; of this key, and it will pass (a slot on the move): its route waits; for good: the route waits, the try is
 * counted, and after some tries the task goes to the dead-letter stream.
 *
 * `M` (refuse when memory is short) is not asked for: it goes by what the last command of a client found, which on a
 * quiet server may be long ago. The memory itself is looked at before each batch.
 */
#include "module.h"

#include <base/recent.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "memory.h"

enum { SLOT_WAIT_MAX_MS = 1000, WAIT_MAX_MS = 5000, ERROR_MAX = 200, SMALL_ARGUMENTS = 32 };

static uint64_t drains;  /* TW.DRAIN calls */
static uint64_t drained; /* by the present one */
static uint64_t lateness[TW__HISTOGRAM_BUCKETS], lateness_max;
static struct tw__recent lateness_recent;

/* ---- strings for the server ----------------------------------------------------------------------------------- */

/* Tasks that come due together have the same time to say. */
static RedisModuleString *due_string(uint64_t due)
{
    static RedisModuleString *last;
    static uint64_t last_due;
    if (last != NULL && last_due == due)
        return last;
    if (last != NULL)
        RedisModule_FreeString(NULL, last);
    last_due = due;
    return last = tw__new_number(due);
}

/* The arguments of a call: `kept` ones belong to somebody else, `own` ones are freed after it. */
struct arguments {
    RedisModuleString **at, *small[SMALL_ARGUMENTS];
    bool owned[SMALL_ARGUMENTS], *is_own;
    size_t count;
};

static void arguments_init(struct arguments *arguments, size_t most)
{
    arguments->count = 0;
    arguments->at = arguments->small;
    arguments->is_own = arguments->owned;
    if (most > SMALL_ARGUMENTS) {
        arguments->at = RedisModule_Alloc(most * sizeof(RedisModuleString *));
        arguments->is_own = RedisModule_Alloc(most * sizeof *arguments->is_own);
    }
}

static void add_kept(struct arguments *arguments, RedisModuleString *string)
{
    arguments->is_own[arguments->count] = false;
    arguments->at[arguments->count++] = string;
}

static void add_own(struct arguments *arguments, RedisModuleString *string)
{
    add_kept(arguments, string);
    arguments->is_own[arguments->count - 1] = true;
}

static void arguments_fini(struct arguments *arguments)
{
    for (size_t i = 0; i < arguments->count; i++)
        if (arguments->is_own[i])
            RedisModule_FreeString(NULL, arguments->at[i]);
    if (arguments->at != arguments->small) {
        RedisModule_Free(arguments->at);
        RedisModule_Free(arguments->is_own);
    }
}

/* Words that calls have in common. */
static RedisModuleString *word(const char *text)
{
    static struct {
        const char *text;
        RedisModuleString *string;
    } words[16];
    size_t i = 0;
    while (words[i].text != NULL && strcmp(words[i].text, text) != 0)
        i++;
    if (words[i].text == NULL) {
        words[i].text = text;
        words[i].string = RedisModule_CreateString(NULL, text, strlen(text));
    }
    return words[i].string;
}

/* ---- being late ------------------------------------------------------------------------------------------------------ */

/* LATE COALESCE: of the periods that were missed the latest counts. Returns how many come before it. */
static uint64_t missed_periods(const struct tw__route *route, const struct tw__task *task, uint64_t now_ms)
{
    uint64_t due = tw__task_due(task), every = tw__task_every(task);
    bool missed = tw__route_plan(route).late == TW__LATE_COALESCE && every > 0 && due < now_ms;
    return missed ? (now_ms - due) / every : 0;
}

static uint64_t second(void)
{
    return RedisModule_MonotonicMicroseconds() / 1000000;
}

static void count_lateness(uint64_t due_ms)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t late = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 - (int64_t)due_ms * 1000;
    uint64_t late_us = late > 0 ? (uint64_t)late : 0;
    lateness[tw__histogram_bucket(late_us)]++;
    tw__recent_add(&lateness_recent, second(), late_us);
    if (late_us > lateness_max)
        lateness_max = late_us;
}

uint64_t tw__lateness_us(double part)
{
    return tw__histogram_percentile(lateness, part, lateness_max);
}

uint64_t tw__lateness_us_max(void)
{
    return lateness_max;
}

struct tw__lateness tw__lateness_recent(void)
{
    uint64_t sum[TW__HISTOGRAM_BUCKETS];
    struct tw__lateness recent;
    recent.fired = tw__recent_sum(&lateness_recent, second(), sum, &recent.max_us);
    recent.p50_us = tw__histogram_percentile(sum, 0.5, recent.max_us);
    recent.p90_us = tw__histogram_percentile(sum, 0.9, recent.max_us);
    recent.p99_us = tw__histogram_percentile(sum, 0.99, recent.max_us);
    recent.p999_us = tw__histogram_percentile(sum, 0.999, recent.max_us);
    return recent;
}

/* ---- the calls --------------------------------------------------------------------------------------------------------- */

/* The server's answer: TW__DEFER_NONE, or why not. The text of an error is in `error`. */
static enum tw__defer classify(RedisModuleCallReply *reply, char *error)
{
    error[0] = '\0';
    if (reply != NULL && RedisModule_CallReplyType(reply) != REDISMODULE_REPLY_ERROR)
        return TW__DEFER_NONE;
    size_t size = 0;
    const char *text = reply == NULL ? NULL : RedisModule_CallReplyStringPtr(reply, &size);
    if (text == NULL)
        text = "the command is not there", size = strlen(text);
    while (size > 0 && (text[size - 1] == '\r' || text[size - 1] == '\n'))
        size--;
    snprintf(error, ERROR_MAX, "%.*s", (int)(size < ERROR_MAX ? size : ERROR_MAX - 1), text);
    if (strstr(error, "OOM ") != NULL)
        return TW__DEFER_OOM;
    if (strstr(error, "NOREPLICAS") != NULL)
        return TW__DEFER_REPLICAS;
    if (strstr(error, "MISCONF") != NULL)
        return TW__DEFER_DISK;
    if (strstr(error, "READONLY") != NULL || strstr(error, "MASTERDOWN") != NULL)
        return TW__DEFER_ROLE;
    if (strstr(error, "non local key") != NULL || strstr(error, "cluster is down") != NULL ||
        strstr(error, "CLUSTERDOWN") != NULL)
        return TW__DEFER_SLOT;
    return TW__DEFER_REFUSED;
}

/* Calls for a task that is filed nowhere. TW__DISTURBED: the task is not what it was. */
static enum tw__defer call(RedisModuleCtx *ctx, const char *command, struct arguments *arguments,
                           struct tw__task *task, char *error)
{
    tw__batch_watch(task);
    RedisModuleCallReply *reply = RedisModule_Call(ctx, command, "!ESv", arguments->at, arguments->count);
    enum tw__defer why = classify(reply, error);
    if (!tw__batch_same(task))
        why = TW__DISTURBED;
    if (reply != NULL)
        RedisModule_FreeCallReply(reply);
    arguments_fini(arguments);
    return why;
}

static void add_payload(struct arguments *arguments, const struct tw__task *task)
{
    struct tw__payload payload = tw__task_payload(task);
    while (payload.count > 0)
        add_own(arguments, tw__new_string(tw__payload_next(&payload)));
}

static void add_about(struct arguments *arguments, const struct tw__task *task)
{
    add_kept(arguments, word("tw.id"));
    add_own(arguments, tw__new_string(tw__task_id(task)));
    add_kept(arguments, word("tw.due"));
    add_kept(arguments, due_string(tw__task_due(task)));
    add_kept(arguments, word("tw.attempt"));
    if (tw__tries(task) == 0)
        add_kept(arguments, word("1"));
    else
        add_own(arguments, tw__new_number(tw__tries(task) + 1));
}

static RedisModuleString *target_of(struct tw__route *route)
{
    if (route->target == NULL)
        route->target = tw__new_string(tw__route_plan(route).target);
    return route->target;
}

static enum tw__defer call_xadd(RedisModuleCtx *ctx, struct tw__route *route, struct tw__task *task,
                                char *error)
{
    struct arguments arguments;
    uint64_t maxlen = tw__route_plan(route).maxlen;
    arguments_init(&arguments, tw__task_payload(task).count + 16);
    add_kept(&arguments, target_of(route));
    if (maxlen == 0)
        maxlen = (uint64_t)tw__config.default_maxlen;
    if (maxlen != 0) {
        add_kept(&arguments, word("MAXLEN"));
        add_kept(&arguments, word("~"));
        add_own(&arguments, tw__new_number(maxlen));
    }
    add_kept(&arguments, word("*"));
    add_about(&arguments, task);
    add_payload(&arguments, task);
    return call(ctx, "XADD", &arguments, task, error);
}

static enum tw__defer call_rpush(RedisModuleCtx *ctx, struct tw__route *route, struct tw__task *task,
                                 char *error)
{
    struct arguments arguments;
    arguments_init(&arguments, tw__task_payload(task).count + 1);
    add_kept(&arguments, target_of(route));
    add_payload(&arguments, task);
    return call(ctx, "RPUSH", &arguments, task, error);
}

/* ---- refusals ----------------------------------------------------------------------------------------------------------- */

/* Whether a name has a hash tag: then what is added to it stays in its slot. */
static bool has_tag(const char *name, size_t size)
{
    const char *open = memchr(name, '{', size);
    const char *close = open == NULL ? NULL : memchr(open, '}', size - (size_t)(open - name));
    return close != NULL && close > open + 1;
}

static RedisModuleString *dead_letter_name(RedisModuleCtx *ctx, const struct tw__schedule *schedule)
{
    size_t size;
    const char *name = RedisModule_StringPtrLen(schedule->name, &size);
    bool tag = (RedisModule_GetContextFlags(ctx) & REDISMODULE_CTX_FLAGS_CLUSTER) && !has_tag(name, size);
    const char *end = tag ? "}:dead" : ":dead";
    RedisModuleString *dead = RedisModule_CreateString(NULL, "{", tag ? 1 : 0);
    RedisModule_StringAppendBuffer(NULL, dead, name, size);
    RedisModule_StringAppendBuffer(NULL, dead, end, strlen(end));
    return dead;
}

static enum tw__defer call_dead_letter(RedisModuleCtx *ctx, struct tw__route *route, struct tw__task *task,
                                       const char *why, char *error)
{
    struct arguments arguments;
    arguments_init(&arguments, tw__task_payload(task).count + 16);
    add_own(&arguments, dead_letter_name(ctx, route->schedule));
    add_kept(&arguments, word("*"));
    add_about(&arguments, task);
    add_kept(&arguments, word("tw.target"));
    add_kept(&arguments, target_of(route));
    add_kept(&arguments, word("tw.error"));
    add_own(&arguments, RedisModule_CreateString(NULL, why, strlen(why)));
    if (tw__route_plan(route).kind == TW__LIST)
        add_kept(&arguments, word("value"));
    add_payload(&arguments, task);
    return call(ctx, "XADD", &arguments, task, error);
}

/* The route waits, and this task first of all that are held by it. */
static void make_wait(struct tw__route *route, struct tw__task *task, uint64_t most_ms)
{
    route->wait_ms = route->wait_ms == 0 ? (uint64_t)tw__config.retry_ms : route->wait_ms * 2;
    if (route->wait_ms > most_ms)
        route->wait_ms = most_ms;
    tw__hold_first(task, RedisModule_MonotonicMicroseconds() / 1000 + route->wait_ms);
}

/* The last try has failed. */
static enum tw__defer give_up(RedisModuleCtx *ctx, struct tw__route *route, struct tw__task *task,
                              const char *error, uint64_t now_ms)
{
    struct tw__schedule *schedule = route->schedule;
    char refusal[ERROR_MAX];
    enum tw__defer why = call_dead_letter(ctx, route, task, error, refusal);
    if (why == TW__DISTURBED) {
        tw__counts.dead += refusal[0] == '\0';
        return TW__DEFER_NONE;
    }
    if (why == TW__DEFER_NONE) {
        tw__counts.dead++;
        schedule->dead++;
        route->wait_ms = 0; /* the next task's tries begin with the first wait */
        tw__batch_go_on(schedule, task, now_ms);
        return TW__DEFER_NONE;
    }
    if (why != TW__DEFER_REFUSED && why != TW__DEFER_SLOT)
        return why;
    tw__counts.deferred[why]++;
    make_wait(route, task, WAIT_MAX_MS);
    return TW__DEFER_NONE;
}

/* A refusal for good: one try more, of this task and of all that are held behind it. */
static enum tw__defer refused(RedisModuleCtx *ctx, struct tw__route *route, struct tw__task *task,
                              const char *error, uint64_t now_ms)
{
    uint32_t tries = tw__tries(task);
    if (tries + 1 >= (uint32_t)tw__config.dead_letter_tries)
        return give_up(ctx, route, task, error, now_ms);
    if (tries == 0)
        route->wait_ms = 0; /* what was waited for another task does not count */
    tw__counts.deferred[TW__DEFER_REFUSED]++;
    make_wait(route, task, WAIT_MAX_MS);
    route->waits++;
    return TW__DEFER_NONE;
}

/* ---- delivery ----------------------------------------------------------------------------------------------------------- */

enum tw__defer tw__deliver_allowed(RedisModuleCtx *ctx)
{
    int flags = RedisModule_GetContextFlags(ctx);
    if (!(flags & REDISMODULE_CTX_FLAGS_MASTER) || (flags & (TW__LOADING | REDISMODULE_CTX_FLAGS_READONLY)))
        return TW__DEFER_ROLE;
    if (RedisModule_AvoidReplicaTraffic())
        return TW__DEFER_PAUSE;
    if ((flags & REDISMODULE_CTX_FLAGS_OOM) && !(flags & REDISMODULE_CTX_FLAGS_EVICT))
        return TW__DEFER_OOM;
    return TW__DEFER_NONE;
}

/* Whether the schedule is still the value of its key. Looking removes a key whose time to live is over. */
static bool is_there(RedisModuleCtx *ctx, const struct tw__schedule *schedule)
{
    struct tw__schedule *found;
    RedisModuleKey *key = RedisModule_OpenKey(ctx, schedule->name, REDISMODULE_READ | REDISMODULE_WRITE);
    bool same = tw__open(key, &found) == TW__OPEN_SCHEDULE && found == schedule;
    RedisModule_CloseKey(key);
    return same;
}

/* Makes the call; `missed` periods are passed over. */
static enum tw__defer call_target(RedisModuleCtx *ctx, struct tw__route *route, struct tw__task *task,
                                  char *error, uint64_t missed)
{
    uint64_t due = tw__task_due(task);
    if (missed > 0)
        tw_timer_init_at(&task->timer, due + missed * tw__task_every(task));
    enum tw__defer why = tw__route_plan(route).kind == TW__LIST ? call_rpush(ctx, route, task, error)
                                                                : call_xadd(ctx, route, task, error);
    if (why == TW__DISTURBED) {
        tw__counts.fired += error[0] == '\0';
        drained += error[0] == '\0';
        return why;
    }
    if (missed > 0 && why != TW__DEFER_NONE)
        tw_timer_init_at(&task->timer, due); /* nothing has happened: the task is what replicas have */
    else
        tw__counts.coalesced += missed;
    return why;
}

static void delivered(struct tw__route *route, struct tw__task *task, uint64_t now_ms)
{
    route->wait_ms = 0;
    drained++;
    tw__counts.fired++;
    route->schedule->fired++;
    count_lateness(tw__task_due(task));
    tw__batch_go_on(route->schedule, task, now_ms);
}

static enum tw__defer deliver_to(RedisModuleCtx *ctx, struct tw__route *route, struct tw__task *task,
                                 uint64_t missed, uint64_t now_ms)
{
    char error[ERROR_MAX];
    enum tw__defer why = call_target(ctx, route, task, error, missed);
    switch (why) {
    case TW__DEFER_NONE:
        delivered(route, task, now_ms);
        return TW__DEFER_NONE;
    case TW__DISTURBED:
        return TW__DEFER_NONE;
    case TW__DEFER_SLOT:
        tw__counts.deferred[TW__DEFER_SLOT]++;
        make_wait(route, task, SLOT_WAIT_MAX_MS);
        return TW__DEFER_NONE;
    case TW__DEFER_REFUSED:
        return refused(ctx, route, task, error, now_ms);
    default:
        return why;
    }
}

enum tw__defer tw__deliver(RedisModuleCtx *ctx, struct tw__task *task, uint64_t now_ms)
{
    struct tw__route *route = tw__route_of(task);
    struct tw__schedule *schedule = route->schedule;
    if (tw__is_behind(task)) {
        tw__hold(task); /* behind the one that was refused, so that their order holds */
        return TW__DEFER_NONE;
    }
    RedisModule_SelectDb(ctx, schedule->db);
    if (!schedule->in_batch) {
        tw__batch_watch(task);
        bool there = is_there(ctx, schedule);
        if (!tw__batch_same(task) || !there)
            return TW__DEFER_NONE; /* its time to live was over: the schedule is detached by now, with this task */
        tw__batch_touch(schedule);
    }
    struct tw__plan plan = tw__route_plan(route);
    if (plan.late == TW__LATE_DROP && tw__batch_drop_late(schedule, task, plan.late_ms, now_ms))
        return TW__DEFER_NONE;
    return deliver_to(ctx, route, task, missed_periods(route, task, now_ms), now_ms);
}

/* TW.DRAIN of one task, if its target takes it. A refusal does not count as a try, as the task may not be due. */
static enum tw__defer drain_task(RedisModuleCtx *ctx, struct tw__task *task, uint64_t now_ms)
{
    char error[ERROR_MAX];
    struct tw__route *route = tw__route_of(task);
    if (tw__is_behind(task) || route->drain == drains)
        return TW__DEFER_NONE;
    tw__unfile(task);
    RedisModule_SelectDb(ctx, route->schedule->db);
    enum tw__defer why = call_target(ctx, route, task, error, 0);
    if (why == TW__DEFER_NONE) {
        delivered(route, task, now_ms);
        return tw__batch_disturbed() ? TW__DISTURBED : TW__DEFER_NONE;
    }
    if (why == TW__DISTURBED)
        return why;
    tw__counts.deferred[why]++;
    tw__file(task, tw__task_due(task), now_ms);
    route->drain = drains;
    if (tw__batch_disturbed())
        return TW__DISTURBED; /* other tasks may not be what they were, either */
    return why == TW__DEFER_REFUSED || why == TW__DEFER_SLOT ? TW__DEFER_NONE : why;
}

/* Delivers up to `limit` of the `want` tasks that are due first; those of routes that wait or refuse stay. */
static enum tw__defer deliver_first(RedisModuleCtx *ctx, struct tw__schedule *schedule, uint64_t want,
                                    uint64_t limit)
{
    uint64_t now_ms = tw__now_ms();
    struct tw__task **task = RedisModule_Alloc((want + 1) * sizeof(struct tw__task *));
    uint64_t count = tw__schedule_earliest(schedule, 0, UINT64_MAX, now_ms, want, task);
    enum tw__defer why = TW__DEFER_NONE;
    for (size_t i = 0; i < count && why == TW__DEFER_NONE && drained < limit; i++)
        why = drain_task(ctx, task[i], now_ms);
    RedisModule_Free(task);
    return why;
}

uint64_t tw__deliver_now(RedisModuleCtx *ctx, struct tw__schedule *schedule, uint64_t limit)
{
    int db = RedisModule_GetSelectedDb(ctx);
    uint64_t count = tw__table_count(&schedule->tasks), want = limit < count ? limit : count;
    if (!schedule->attached)
        return 0; /* a handler calls in the middle of RENAME */
    tw__batch_begin(ctx);
    drains++;
    drained = 0;
    tw__batch_touch(schedule);
    /* When nothing at all could be delivered, further ones are looked at: 0 says that there is none that can be. */
    while (schedule->held < count && deliver_first(ctx, schedule, want, limit) == TW__DEFER_NONE &&
           drained == 0 && want < count)
        want = want > count / 2 ? count : want * 2;
    RedisModule_SelectDb(ctx, db);
    uint64_t delivered_now = drained;
    tw__batch_finish();
    return delivered_now;
}
