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
#include "deliver.h"

#include <stdio.h>
#include <string.h>

#include "config.h"
#include "keys.h"
#include "lateness.h"
#include "rights.h"
#include "strings.h"
#include "schedules/look.h"
#include "schedules/place.h"
#include "schedules/route.h"

enum { SLOT_WAIT_MAX_MS = 1000, WAIT_MAX_MS = 5000, ERROR_MAX = 200, SMALL_ARGUMENTS = 32 };

static uint64_t drains;       /* TW.DRAIN calls, two for each: see struct tw__route */
static uint64_t drain_series; /* `drains` of the first of the calls that went on behind each other */
static uint64_t drained;      /* by the present one */
/* The schedule in which the last one met only tasks that were refused, until its time was over: the next one is the same
 * one still, and goes on behind them. Else NULL. It may have been removed: it is compared only. */
static const struct tw__schedule *drain_goes_on;
static uint64_t drain_ended_us;

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
    return last = tw__string_of_number(due);
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

/* Calls for a task. TW__DISTURBED: a handler has changed or removed the task meanwhile. */
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
        add_own(arguments, tw__string_new(tw__payload_next(&payload)));
}

static void add_about(struct arguments *arguments, const struct tw__task *task)
{
    add_kept(arguments, word("tw.id"));
    add_own(arguments, tw__string_new(tw__task_id(task)));
    add_kept(arguments, word("tw.due"));
    add_kept(arguments, due_string(tw__task_due(task)));
    add_kept(arguments, word("tw.attempt"));
    if (tw__place_tries(tw__shared.schedules, task) == 0)
        add_kept(arguments, word("1"));
    else
        add_own(arguments, tw__string_of_number(tw__place_tries(tw__shared.schedules, task) + 1));
}

static enum tw__defer call_xadd(RedisModuleCtx *ctx, struct tw__route *route, struct tw__task *task,
                                char *error)
{
    struct arguments arguments;
    uint64_t maxlen = tw__route_plan(route).maxlen;
    arguments_init(&arguments, tw__task_payload(task).count + 16);
    add_kept(&arguments, tw__string_of_target(route));
    if (maxlen == 0)
        maxlen = (uint64_t)tw__config.default_maxlen;
    if (maxlen != 0) {
        add_kept(&arguments, word("MAXLEN"));
        add_kept(&arguments, word("~"));
        add_own(&arguments, tw__string_of_number(maxlen));
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
    add_kept(&arguments, tw__string_of_target(route));
    add_payload(&arguments, task);
    return call(ctx, "RPUSH", &arguments, task, error);
}

/* ---- too big a task ---------------------------------------------------------------------------------------------------- */

/* The most that a Stream takes in one entry, fields and values together. TW.ADD refuses earlier; but a task may come from
 * a file, from RESTORE, or from a version that refused nothing. To try it costs the server seconds, so sizes are summed. */
#define ENTRY_MAX (UINT64_C(1) << 30)
_Static_assert(TW__TASK_BYTES_MAX + 1024 <= ENTRY_MAX, "there is room for the fields of a dead letter");

enum { DIGITS_MAX = 20 };

static size_t digits(uint64_t number)
{
    size_t count = 1;
    for (; number >= 10; number /= 10)
        count++;
    return count;
}

/* The bytes of the fields that add_about() adds. */
static uint64_t about_bytes(const struct tw__task *task)
{
    return strlen("tw.id") + tw__task_id(task).size + strlen("tw.due") + digits(tw__task_due(task)) +
           strlen("tw.attempt") + digits(tw__place_tries(tw__shared.schedules, task) + 1);
}

static uint64_t entry_bytes(const struct tw__task *task)
{
    return about_bytes(task) + tw__payload_bytes(tw__task_payload(task));
}

/* Whether no Stream will ever take the task. A List takes it. The id and the payload lie in the task's block, so the size of
 * the block alone clears every task that TW.ADD took: their payloads are not summed at each delivery. */
static bool is_too_big(const struct tw__route *route, struct tw__task *task)
{
    return tw__shared.schedules->memory.usable(task) > TW__TASK_BYTES_MAX &&
           tw__route_plan(route).kind == TW__STREAM && entry_bytes(task) > ENTRY_MAX;
}

/* A dead letter is a Stream's entry too. When it would be too big, each value's size stands in the place of the value. */
enum letter { LETTER_WHOLE, LETTER_OF_SIZES, LETTER_NONE };

static enum letter letter_of(const struct tw__route *route, const struct tw__task *task, const char *why)
{
    struct tw__plan plan = tw__route_plan(route);
    struct tw__payload payload = tw__task_payload(task);
    bool list = plan.kind == TW__LIST;
    uint64_t rest = strlen("tw.target") + plan.target.size + strlen("tw.error") + strlen(why) +
                    (list ? strlen("value") : 0);
    if (entry_bytes(task) + rest <= ENTRY_MAX)
        return LETTER_WHOLE;
    rest += strlen("tw.bytes") + DIGITS_MAX + (uint64_t)payload.count * DIGITS_MAX;
    rest += list ? 0 : tw__payload_field_bytes(payload);
    return about_bytes(task) + rest <= ENTRY_MAX ? LETTER_OF_SIZES : LETTER_NONE;
}

static void add_sizes(struct arguments *arguments, const struct tw__task *task, bool list)
{
    struct tw__payload payload = tw__task_payload(task);
    while (payload.count > 0) {
        if (!list)
            add_own(arguments, tw__string_new(tw__payload_next(&payload)));
        add_own(arguments, tw__string_of_number(tw__payload_next(&payload).size));
    }
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
                                       enum letter letter, const char *why, char *error)
{
    struct arguments arguments;
    bool list = tw__route_plan(route).kind == TW__LIST, sizes = letter == LETTER_OF_SIZES;
    arguments_init(&arguments, tw__task_payload(task).count + 16);
    add_own(&arguments, dead_letter_name(ctx, route->schedule));
    add_kept(&arguments, word("*"));
    add_about(&arguments, task);
    add_kept(&arguments, word("tw.target"));
    add_kept(&arguments, tw__string_of_target(route));
    add_kept(&arguments, word("tw.error"));
    add_own(&arguments, RedisModule_CreateString(NULL, why, strlen(why)));
    if (sizes) {
        add_kept(&arguments, word("tw.bytes"));
        add_own(&arguments, tw__string_of_number(tw__payload_bytes(tw__task_payload(task))));
    }
    if (list)
        add_kept(&arguments, word("value"));
    if (sizes)
        add_sizes(&arguments, task, list);
    else
        add_payload(&arguments, task);
    return call(ctx, "XADD", &arguments, task, error);
}

/* The route waits, and this task first of all that are held by it. */
static void make_wait(struct tw__route *route, struct tw__task *task, uint64_t most_ms)
{
    route->wait_ms = route->wait_ms == 0 ? (uint64_t)tw__config.retry_ms : route->wait_ms * 2;
    if (route->wait_ms > most_ms)
        route->wait_ms = most_ms;
    tw__place_hold_first(tw__shared.schedules, task,
                         RedisModule_MonotonicMicroseconds() / 1000 + route->wait_ms);
}

/* A delivery was given up. A task that no Stream will ever take leaves, though it repeats. */
static void gave_up(struct tw__route *route, struct tw__task *task, uint64_t now_ms)
{
    if (is_too_big(route, task))
        tw__batch_end_task(route->schedule, task);
    else
        tw__batch_go_on(route->schedule, task, now_ms);
}

/* Not even the dead letters can say which one it was: that leaves the count, and the server's log. */
static void drop_too_big(RedisModuleCtx *ctx, struct tw__route *route, struct tw__task *task, uint64_t now_ms)
{
    char name[TW__SHOWN_MAX];
    RedisModule_Log(
        ctx, "warning",
        "tickwheel: a task of the schedule '%s' is dropped: with %llu bytes it is too big to be delivered, "
        "and too big for the dead letters without its values",
        tw__string_shown(route->schedule->name, name), (unsigned long long)entry_bytes(task));
    tw__shared.counts.dropped++;
    gave_up(route, task, now_ms);
}

/* The last try has failed. */
static enum tw__defer give_up(RedisModuleCtx *ctx, struct tw__route *route, struct tw__task *task,
                              const char *error, uint64_t now_ms)
{
    struct tw__schedule *schedule = route->schedule;
    char refusal[ERROR_MAX];
    enum letter letter = letter_of(route, task, error);
    if (letter == LETTER_NONE) {
        drop_too_big(ctx, route, task, now_ms);
        return TW__DEFER_NONE;
    }
    enum tw__defer why = call_dead_letter(ctx, route, task, letter, error, refusal);
    if (why == TW__DISTURBED) {
        tw__shared.counts.dead += refusal[0] == '\0';
        return TW__DEFER_NONE;
    }
    if (why == TW__DEFER_NONE) {
        tw__shared.counts.dead++;
        schedule->dead++;
        route->wait_ms = 0; /* the next task's tries begin with the first wait */
        gave_up(route, task, now_ms);
        return TW__DEFER_NONE;
    }
    if (why != TW__DEFER_REFUSED && why != TW__DEFER_SLOT)
        return why;
    tw__shared.counts.deferred[why]++;
    make_wait(route, task, WAIT_MAX_MS);
    return TW__DEFER_NONE;
}

/* A refusal for good: one try more, of this task and of all that are held behind it. */
static enum tw__defer refused(RedisModuleCtx *ctx, struct tw__route *route, struct tw__task *task,
                              const char *error, uint64_t now_ms)
{
    uint32_t tries = tw__place_tries(tw__shared.schedules, task);
    if (tries + 1 >= (uint32_t)tw__config.dead_letter_tries)
        return give_up(ctx, route, task, error, now_ms);
    if (tries == 0)
        route->wait_ms = 0; /* what was waited for another task does not count */
    tw__shared.counts.deferred[TW__DEFER_REFUSED]++;
    make_wait(route, task, WAIT_MAX_MS);
    route->waits++;
    return TW__DEFER_NONE;
}

/* The size is known, so there is no first try. */
static enum tw__defer refuse_too_big(RedisModuleCtx *ctx, struct tw__route *route, struct tw__task *task,
                                     uint64_t now_ms)
{
    char error[ERROR_MAX];
    snprintf(error, sizeof error, "ERR the entry would be %llu bytes: a Stream takes at most %llu",
             (unsigned long long)entry_bytes(task), (unsigned long long)ENTRY_MAX);
    return give_up(ctx, route, task, error, now_ms);
}

/* ---- delivery ----------------------------------------------------------------------------------------------------------- */

enum tw__defer tw__deliver_allowed(RedisModuleCtx *ctx)
{
    int flags = RedisModule_GetContextFlags(ctx);
    if (tw__loading() || !(flags & REDISMODULE_CTX_FLAGS_MASTER) ||
        (flags & (TW__LOADING | REDISMODULE_CTX_FLAGS_READONLY)))
        return TW__DEFER_ROLE;
    if (RedisModule_AvoidReplicaTraffic())
        return TW__DEFER_PAUSE;
    if ((flags & REDISMODULE_CTX_FLAGS_OOM) && !(flags & REDISMODULE_CTX_FLAGS_EVICT))
        return TW__DEFER_OOM;
    return TW__DEFER_NONE;
}

/* Makes the call; `missed` periods are passed over. */
static enum tw__defer call_target(RedisModuleCtx *ctx, struct tw__route *route, struct tw__task *task,
                                  char *error, uint64_t missed)
{
    uint64_t due = tw__task_due(task);
    if (missed > 0)
        tw__task_set_due(task, due + missed * tw__task_every(task));
    enum tw__defer why = tw__route_plan(route).kind == TW__LIST ? call_rpush(ctx, route, task, error)
                                                                : call_xadd(ctx, route, task, error);
    if (why == TW__DISTURBED) {
        tw__shared.counts.fired += error[0] == '\0';
        drained += error[0] == '\0';
        return why;
    }
    if (missed > 0 && why != TW__DEFER_NONE)
        tw__task_set_due(task, due); /* nothing has happened: the task is what replicas have */
    else
        tw__shared.counts.coalesced += missed;
    return why;
}

static void delivered(struct tw__route *route, struct tw__task *task, uint64_t now_ms)
{
    route->wait_ms = 0;
    drained++;
    tw__shared.counts.fired++;
    route->schedule->fired++;
    tw__batch_go_on(route->schedule, task, now_ms);
}

static enum tw__defer deliver_to(RedisModuleCtx *ctx, struct tw__route *route, struct tw__task *task,
                                 uint64_t missed, uint64_t now_ms)
{
    char error[ERROR_MAX];
    if (is_too_big(route, task))
        return refuse_too_big(ctx, route, task, now_ms);
    enum tw__defer why = call_target(ctx, route, task, error, missed);
    switch (why) {
    case TW__DEFER_NONE:
        tw__lateness_count(tw__task_due(task));
        delivered(route, task, now_ms);
        return TW__DEFER_NONE;
    case TW__DISTURBED:
        return TW__DEFER_NONE;
    case TW__DEFER_SLOT:
        tw__shared.counts.deferred[TW__DEFER_SLOT]++;
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
    struct tw__route *route = tw__route_of(tw__shared.schedules, task);
    struct tw__schedule *schedule = route->schedule;
    if (tw__place_is_blocked(tw__shared.schedules, task)) {
        tw__place_hold(tw__shared.schedules,
                       task); /* behind the one that was refused, so that their order holds */
        return TW__DEFER_NONE;
    }
    RedisModule_SelectDb(ctx, schedule->db);
    if (!schedule->in_batch) {
        tw__batch_watch(task);
        bool there = tw__keys_has(ctx, schedule);
        if (!tw__batch_same(task) || !there)
            return TW__DEFER_NONE; /* its time to live was over: the schedule is detached by now, with this task */
        tw__batch_touch(schedule);
    }
    struct tw__plan plan = tw__route_plan(route);
    if (plan.late == TW__LATE_DROP && tw__batch_drop_late(schedule, task, plan.late_ms, now_ms))
        return TW__DEFER_NONE;
    return deliver_to(ctx, route, task, missed_periods(route, task, now_ms), now_ms);
}

/* TW.DRAIN of one task, if its target takes it. A refusal does not count as a try, as the task may not be due; it stays
 * filed meanwhile, so that it keeps its place among the tasks that are due with it. */
static enum tw__defer drain_task(RedisModuleCtx *ctx, struct tw__task *task, uint64_t now_ms)
{
    char error[ERROR_MAX];
    struct tw__route *route = tw__route_of(tw__shared.schedules, task);
    if (tw__place_is_blocked(tw__shared.schedules, task) || tw__route_refused(route, drain_series))
        return TW__DEFER_NONE;
    RedisModule_SelectDb(ctx, route->schedule->db);
    enum tw__defer why = call_target(ctx, route, task, error, 0);
    if (why == TW__DEFER_NONE) {
        tw__place_unfile(tw__shared.schedules, task);
        delivered(route, task, now_ms);
        return tw__batch_disturbed() ? TW__DISTURBED : TW__DEFER_NONE;
    }
    if (why == TW__DISTURBED)
        return why;
    tw__shared.counts.deferred[why]++;
    route->drain = drains;
    if (tw__batch_disturbed())
        return TW__DISTURBED; /* other tasks may not be what they were, either */
    return why == TW__DEFER_REFUSED || why == TW__DEFER_SLOT ? TW__DEFER_NONE : why;
}

static bool may_deliver_all(struct tw__caller *caller, struct tw__task **task, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        struct tw__route *route = tw__route_of(tw__shared.schedules, task[i]);
        if (route->drain >= drains - 1)
            continue;
        if (!tw__caller_may_write(caller, tw__string_of_target(route)))
            return false;
        route->drain = drains - 1;
    }
    return true;
}

/* Whether the caller may write the targets of all these tasks; if not, sends the error. Each route is asked for once in a
 * TW.DRAIN, so that the cost is that of the different targets among the tasks that are looked at, however many the
 * schedule has. The user is looked up anew each time: a handler may have removed it while a delivery was tried. */
static bool is_allowed(RedisModuleCtx *ctx, struct tw__task **task, uint64_t count)
{
    struct tw__caller caller;
    tw__caller_init(&caller, ctx);
    bool allowed = may_deliver_all(&caller, task, count);
    if (!allowed)
        tw__caller_error(&caller, ctx);
    tw__caller_fini(&caller);
    return allowed;
}

enum {
    DRAIN_US = 20000,          /* for the deliveries of one TW.DRAIN */
    DRAIN_SERIES_US = 1000000, /* a call that comes later begins anew: targets may be mended by then */
    DRAIN_LOOK = 100,          /* tries between two looks at the clock: so many are made in any case */
    DRAIN_BIG = 4096           /* bytes of a task after which one is due too */
};

/* One TW.DRAIN. `until_us` is 0 before the first try: finding the tasks takes the time that it takes. */
struct drain {
    uint64_t limit, tried, until_us;
    bool over; /* its time is */
};

static void look_at_clock(struct drain *drain, bool big)
{
    if (++drain->tried % DRAIN_LOOK == 0 || big)
        drain->over = RedisModule_MonotonicMicroseconds() >= drain->until_us;
}

/* Delivers of the `want` tasks that are due first, without held tasks and tasks refused in this TW.DRAIN. One that is
 * too big stays until it is due, and nothing waits behind it, as it will never be delivered. *found: how many there were. */
static enum tw__defer deliver_first(RedisModuleCtx *ctx, struct tw__schedule *schedule, uint64_t want,
                                    struct drain *drain, uint64_t *found)
{
    uint64_t now_ms = tw__now_ms();
    struct tw__wanted wanted = {.to = UINT64_MAX, .drain = drain_series};
    struct tw__task **task = RedisModule_Alloc((want + 1) * sizeof(struct tw__task *));
    *found = tw__look_wanted(schedule, &wanted, now_ms, want, task);
    if (drain->until_us == 0)
        drain->until_us = RedisModule_MonotonicMicroseconds() + DRAIN_US;
    enum tw__defer why = is_allowed(ctx, task, *found) ? TW__DEFER_NONE : TW__FORBIDDEN;
    for (size_t i = 0; i < *found && why == TW__DEFER_NONE && drained < drain->limit && !drain->over; i++) {
        bool big = tw__shared.schedules->memory.usable(task[i]) > DRAIN_BIG;
        if (is_too_big(tw__route_of(tw__shared.schedules, task[i]), task[i]))
            continue; /* without a look at the clock: the next call would not go on behind it */
        why = drain_task(ctx, task[i], now_ms);
        look_at_clock(drain, big);
    }
    RedisModule_Free(task);
    return why;
}

/* While nothing at all could be delivered, further tasks are looked at. When fewer than `want` were found, there are none. */
static enum tw__drained deliver_some(RedisModuleCtx *ctx, struct tw__schedule *schedule, uint64_t limit)
{
    struct drain drain = {.limit = limit};
    enum tw__defer why = TW__DEFER_NONE;
    uint64_t count = tw__table_count(&schedule->tasks), want = limit < count ? limit : count, found = want;
    while (schedule->held < count && found == want && drained == 0 && !drain.over) {
        why = deliver_first(ctx, schedule, want, &drain, &found);
        if (why != TW__DEFER_NONE || want == count)
            break;
        if (found == want)
            want = found = want > count / 2 ? count : want * 2;
    }
    if (why == TW__FORBIDDEN)
        return TW__DRAIN_FORBIDDEN;
    return drained == 0 && drain.over ? TW__DRAINED_NONE_YET : TW__DRAINED;
}

enum tw__drained tw__deliver_now(RedisModuleCtx *ctx, struct tw__schedule *schedule, uint64_t limit,
                                 uint64_t *delivered)
{
    int db = RedisModule_GetSelectedDb(ctx);
    *delivered = 0;
    if (!schedule->attached)
        return TW__DRAINED; /* a handler calls in the middle of RENAME */
    tw__batch_begin(ctx);
    drains += 2;
    if (schedule != drain_goes_on || RedisModule_MonotonicMicroseconds() - drain_ended_us > DRAIN_SERIES_US)
        drain_series = drains;
    drained = 0;
    tw__batch_touch(schedule);
    enum tw__drained outcome = deliver_some(ctx, schedule, limit);
    drain_goes_on = outcome == TW__DRAINED_NONE_YET ? schedule : NULL;
    drain_ended_us = RedisModule_MonotonicMicroseconds();
    RedisModule_SelectDb(ctx, db);
    *delivered = drained;
    tw__batch_finish();
    return outcome;
}
