/* SPDX-License-Identifier: MIT
 *
 * TW.ADD reads all its arguments first, so that an error changes nothing. The command is replicated with the
 * task's id, with an absolute time and without a condition. Arguments that have this form already are passed
 * on unchanged. Example: TW.ADD s t * IN 500 NX PAYLOAD f v is replicated as TW.ADD s t 1795312608000-0 AT
 * 1795312608500 PAYLOAD f v.
 */
#include "add.h"

#include <stdio.h>
#include <string.h>

#include "alarm.h"
#include "arguments.h"
#include "chores.h"
#include "keys.h"
#include "rights.h"
#include "schedules/route.h"
#include "schedules/schedule.h"
#include "strings.h"

enum { ERROR_MAX = 256, ID_MAX = 48, SMALL_ARGUMENTS = 64 };

/* The last id that was made: its time, and a number that starts anew with each millisecond. */
static struct {
    uint64_t ms, number;
} last_id;

/* ---- reading --------------------------------------------------------------------------------------------- */

/* The arguments of one TW.ADD. */
struct request {
    RedisModuleString *schedule, *target, *id;
    uint64_t now_ms, due, every, times;
    bool absolute, new_id;
    enum tw__redis_condition condition;
    int condition_at; /* its index among the arguments; 0: none */
    struct tw__redis_plan plan;
    RedisModuleString **payload;
    int payload_count;
};

/* Options that were given already, so that no option is given twice. */
enum option { CONDITION = 1, EVERY = 2, TIMES = 4, KIND = 8, MAXLEN = 16, LATE = 32 };

static bool read_late(RedisModuleCtx *ctx, struct request *add, RedisModuleString **argv, int argc, int *at)
{
    if (*at + 1 >= argc) {
        RedisModule_ReplyWithError(ctx, "ERR LATE has no policy: expected FIRE, DROP ms or COALESCE");
        return false;
    }
    RedisModuleString *policy = argv[++*at];
    add->plan.late = tw__redis_argument_is(policy, "DROP") ? TW__REDIS_LATE_DROP : TW__REDIS_LATE_FIRE;
    if (tw__redis_argument_is(policy, "COALESCE"))
        add->plan.late = TW__REDIS_LATE_COALESCE;
    else if (add->plan.late == TW__REDIS_LATE_FIRE && !tw__redis_argument_is(policy, "FIRE")) {
        tw__redis_argument_error(ctx, policy, "LATE", "FIRE, DROP ms or COALESCE");
        return false;
    }
    if (add->plan.late != TW__REDIS_LATE_DROP)
        return true;
    if (*at + 1 >= argc) {
        RedisModule_ReplyWithError(
            ctx, "ERR LATE DROP has no value: expected an integer from 0 to 9223372036854775807");
        return false;
    }
    return tw__redis_argument_number(ctx, argv[++*at], "LATE DROP", 0, INT64_MAX, &add->plan.late_ms);
}

static bool read_value(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, int *at, const char *what,
                       uint64_t *value)
{
    char error[ERROR_MAX];
    if (*at + 1 < argc)
        return tw__redis_argument_number(ctx, argv[++*at], what, 1, INT64_MAX, value);
    snprintf(error, sizeof error, "ERR %s has no value: expected an integer from 1 to %lld", what,
             (long long)INT64_MAX);
    RedisModule_ReplyWithError(ctx, error);
    return false;
}

static enum option option_of(RedisModuleString *argument, enum tw__redis_condition *condition)
{
    if (tw__redis_argument_condition(argument, condition))
        return CONDITION;
    static const struct {
        const char *word;
        enum option option;
    } options[] = {{"EVERY", EVERY}, {"TIMES", TIMES},   {"STREAM", KIND},
                   {"LIST", KIND},   {"MAXLEN", MAXLEN}, {"LATE", LATE}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (tw__redis_argument_is(argument, options[i].word))
            return options[i].option;
    return 0;
}

/* Reads the option at argv[*at] and its values. Moves *at to the last of them. Returns false after an error
 * reply. */
static bool read_option(RedisModuleCtx *ctx, struct request *add, RedisModuleString **argv, int argc, int *at,
                        unsigned *seen)
{
    enum option option = option_of(argv[*at], &add->condition);
    if (option == 0) {
        tw__redis_argument_error(ctx, argv[*at], "the option",
                                 "NX, XX, GT, LT, EVERY, TIMES, STREAM, LIST, MAXLEN, LATE or PAYLOAD");
        return false;
    }
    if (*seen & option) {
        tw__redis_argument_error(
            ctx, argv[*at], "the option",
            "each option at most once, at most one of NX, XX, GT and LT, and one of STREAM and LIST");
        return false;
    }
    *seen |= option;
    switch (option) {
    case CONDITION:
        add->condition_at = *at;
        return true;
    case EVERY:
        return read_value(ctx, argv, argc, at, "EVERY", &add->every);
    case TIMES:
        return read_value(ctx, argv, argc, at, "TIMES", &add->times);
    case KIND:
        add->plan.kind = tw__redis_argument_is(argv[*at], "LIST") ? TW__REDIS_LIST : TW__REDIS_STREAM;
        return true;
    case MAXLEN:
        return read_value(ctx, argv, argc, at, "MAXLEN", &add->plan.maxlen);
    default:
        return read_late(ctx, add, argv, argc, at);
    }
}

static bool options_agree(RedisModuleCtx *ctx, struct request *add, unsigned seen)
{
    const char *error = NULL;
    if ((seen & TIMES) && !(seen & EVERY))
        error = "ERR TIMES needs the option EVERY";
    else if ((seen & MAXLEN) && add->plan.kind == TW__REDIS_LIST)
        error = "ERR MAXLEN is an option for a STREAM, not for a LIST";
    if (error != NULL)
        RedisModule_ReplyWithError(ctx, error);
    return error == NULL;
}

static bool read_payload(RedisModuleCtx *ctx, struct request *add, RedisModuleString **argv, int argc)
{
    add->payload = argv;
    add->payload_count = argc;
    if (add->plan.kind == TW__REDIS_LIST) {
        if (argc == 1)
            return true;
        RedisModule_ReplyWithError(ctx, "ERR PAYLOAD of a LIST has to be one value");
        return false;
    }
    if (argc == 0 || argc % 2 != 0) {
        RedisModule_ReplyWithError(ctx, "ERR PAYLOAD of a STREAM has to be field value [field value ...]");
        return false;
    }
    for (int i = 0; i < argc; i += 2) {
        struct tw__redis_bytes field = tw__redis_string_bytes(argv[i]);
        if (field.size < 3 || memcmp(field.at, "tw.", 3) != 0)
            continue;
        if (tw__redis_argument_is(argv[i], "tw.id") || tw__redis_argument_is(argv[i], "tw.due") ||
            tw__redis_argument_is(argv[i], "tw.attempt")) {
            tw__redis_argument_error(ctx, argv[i], "a PAYLOAD field",
                                     "another name, because the module itself adds a field with this name");
            return false;
        }
    }
    return true;
}

/* Returns whether each form of delivery can carry the task, a dead letter too. If not, replies with an error.
 * A task that was acknowledged before is not refused here; deliver.c handles it. */
static bool size_fits(RedisModuleCtx *ctx, const struct request *add)
{
    char error[ERROR_MAX];
    uint64_t bytes = tw__redis_string_bytes(add->id).size + add->plan.target.size;
    for (int i = 0; i < add->payload_count; i++)
        bytes += tw__redis_string_bytes(add->payload[i]).size;
    if (bytes <= TW__REDIS_TASK_BYTES_MAX || tw__redis_caller_is_log(ctx) ||
        (RedisModule_GetContextFlags(ctx) & TW__REDIS_LOADING))
        return true;
    snprintf(error, sizeof error, "ERR id, target and payload are %llu bytes together: expected at most %llu",
             (unsigned long long)bytes, (unsigned long long)TW__REDIS_TASK_BYTES_MAX);
    RedisModule_ReplyWithError(ctx, error);
    return false;
}

static bool read_add(RedisModuleCtx *ctx, struct request *add, RedisModuleString **argv, int argc)
{
    unsigned seen = 0;
    memset(add, 0, sizeof *add);
    add->schedule = argv[1];
    add->target = argv[2];
    add->id = argv[3];
    add->times = TW__REDIS_FOR_EVER;
    add->plan.target = tw__redis_string_bytes(add->target);
    struct tw__redis_bytes id = tw__redis_string_bytes(add->id);
    add->new_id = id.size == 1 && *id.at == '*';
    if (RedisModule_StringCompare(add->schedule, add->target) == 0) {
        tw__redis_argument_error(ctx, add->target, "the target", "a key other than the schedule");
        return false;
    }
    if (!tw__redis_argument_time(ctx, argv + 4, &add->now_ms, &add->due, &add->absolute))
        return false;
    int at = 6;
    for (; at < argc && !tw__redis_argument_is(argv[at], "PAYLOAD"); at++)
        if (!read_option(ctx, add, argv, argc, &at, &seen))
            return false;
    if (at == argc) {
        RedisModule_ReplyWithError(
            ctx,
            "ERR PAYLOAD is missing: expected PAYLOAD field value [field value ...], or one value for a LIST");
        return false;
    }
    return options_agree(ctx, add, seen) && read_payload(ctx, add, argv + at + 1, argc - at - 1) &&
           size_fits(ctx, add);
}

static struct tw__redis_bytes payload_string(void *arg, uint32_t i)
{
    return tw__redis_string_bytes(((RedisModuleString **)arg)[i]);
}

/* ---- adding ---------------------------------------------------------------------------------------------- */

/* Returns a new id that is not in use. */
static RedisModuleString *make_id(const struct tw__redis_schedule *schedule, uint64_t now_ms)
{
    char text[ID_MAX];
    struct tw__redis_bytes id = {text, 0};
    last_id.number = now_ms == last_id.ms ? last_id.number + 1 : 0;
    last_id.ms = now_ms;
    for (;; last_id.number++) {
        id.size = (size_t)snprintf(text, sizeof text, "%llu-%llu", (unsigned long long)now_ms,
                                   (unsigned long long)last_id.number);
        uint64_t hash = tw__redis_schedule_hash(tw__redis_shared.schedules, id);
        tw__redis_chores_finish_for(hash);
        if (schedule == NULL || tw__redis_schedule_find(schedule, hash, id) == NULL)
            return RedisModule_CreateString(NULL, id.at, id.size);
    }
}

static struct tw__redis_task *make_task(const struct request *add, struct tw__redis_bytes id)
{
    struct tw__redis_task_plan plan = {
        .id = id,
        .due = add->due,
        .every = add->every,
        .times = add->times,
        .count = (uint32_t)add->payload_count,
        .string = payload_string,
        .arg = add->payload,
    };
    return tw__redis_task_new(&plan, &tw__redis_shared.schedules->memory);
}

/* Replicates TW.ADD as it came, except for the id, the time and the condition. */
static void replicate_add(RedisModuleCtx *ctx, const struct request *add, RedisModuleString **argv, int argc)
{
    if (add->absolute && !add->new_id && add->condition_at == 0) {
        RedisModule_ReplicateVerbatim(ctx);
        return;
    }
    RedisModuleString *small[SMALL_ARGUMENTS], **vector = small;
    if (argc > SMALL_ARGUMENTS)
        vector = RedisModule_Alloc((size_t)argc * sizeof(RedisModuleString *));
    size_t count = 0;
    for (int i = 1; i < argc; i++)
        if (i != add->condition_at || add->condition_at == 0)
            vector[count++] = argv[i];
    RedisModuleString *due = RedisModule_CreateStringFromLongLong(NULL, (long long)add->due);
    vector[2] = add->id;
    vector[3] = tw__redis_shared.at;
    vector[4] = due;
    RedisModule_Replicate(ctx, "TW.ADD", "v", vector, count);
    RedisModule_FreeString(NULL, due);
    if (vector != small)
        RedisModule_Free(vector);
}

/* Makes the schedule with its first task. */
static void file_first(RedisModuleCtx *ctx, const struct request *add, RedisModuleKey *key,
                       struct tw__redis_task *task, uint64_t hash)
{
    tw__redis_chores_finish(); /* tasks that are due together keep their order, whatever their schedules */
    struct tw__redis_schedule *schedule = tw__redis_schedule_new(tw__redis_shared.schedules);
    struct tw__redis_route *route = tw__redis_route_for(schedule, &add->plan);
    tw__redis_schedule_put(schedule, task, route, hash, NULL, add->now_ms);
    tw__redis_keys_set(ctx, key, add->schedule, schedule);
}

static void file_new(RedisModuleCtx *ctx, const struct request *add, RedisModuleKey *key,
                     struct tw__redis_schedule *schedule, uint64_t hash)
{
    struct tw__redis_task *task = make_task(add, tw__redis_string_bytes(add->id));
    if (schedule == NULL)
        file_first(ctx, add, key, task, hash);
    else
        tw__redis_chores_leave(&(struct tw__redis_chore){.kind = TW__REDIS_CHORE_PUT,
                                                         .schedule = schedule,
                                                         .task = task,
                                                         .route = tw__redis_route_for(schedule, &add->plan),
                                                         .hash = hash,
                                                         .now_ms = add->now_ms});
    tw__redis_shared.counts.added++;
    tw__redis_alarm_at(add->due);
}

/* Returns whether the condition allows the task. Without a condition nothing is looked up yet (chores.c). */
static bool is_allowed(const struct request *add, const struct tw__redis_schedule *schedule, uint64_t hash)
{
    if (add->condition == TW__REDIS_ALWAYS)
        return true;
    struct tw__redis_task *old = NULL;
    if (schedule != NULL)
        old = tw__redis_schedule_find(schedule, hash, tw__redis_string_bytes(add->id));
    return tw__redis_condition_allows(add->condition, old, add->due);
}

int tw__redis_add_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    struct request add;
    RedisModuleKey *key;
    struct tw__redis_schedule *schedule;
    if (argc < 8)
        return RedisModule_WrongArity(ctx);
    uint64_t hash = tw__redis_schedule_foresee(tw__redis_shared.schedules, tw__redis_string_bytes(argv[3]));
    if (!read_add(ctx, &add, argv, argc))
        return REDISMODULE_OK;
    if (!tw__redis_keys_open_quickly(ctx, add.schedule, &key, &schedule))
        return REDISMODULE_OK;
    if (add.new_id) {
        add.id = make_id(schedule, add.now_ms == 0 ? tw__redis_now_ms() : add.now_ms);
        hash = tw__redis_schedule_foresee(tw__redis_shared.schedules, tw__redis_string_bytes(add.id));
    }
    tw__redis_chores_finish_for(hash);
    if (is_allowed(&add, schedule, hash)) {
        file_new(ctx, &add, key, schedule, hash);
        RedisModule_CloseKey(key);
        replicate_add(ctx, &add, argv, argc);
        tw__redis_keys_changed(ctx, add.schedule, "tw.add");
        RedisModule_ReplyWithString(ctx, add.id);
    } else {
        RedisModule_CloseKey(key);
        RedisModule_ReplyWithNull(ctx);
    }
    if (add.new_id)
        RedisModule_FreeString(NULL, add.id);
    return REDISMODULE_OK;
}
