/* SPDX-License-Identifier: MIT
 *
 * The commands that write: TW.ADD, TW.CANCEL, TW.MOVE, TW.DRAIN, and the two that only the log and the replication link
 * may send, TW.FIRED and TW.LOAD. docs/redis.md describes them.
 *
 * Each reads all its arguments first, so that an error has changed nothing. What is replicated is the effect: absolute
 * times, final ids, no conditions. When the arguments say that already, they are passed on as they are.
 */
#include "commands.h"

#include <stdio.h>
#include <string.h>

#include "alarm.h"
#include "arguments.h"
#include "config.h"
#include "drain.h"
#include "keys.h"
#include "rights.h"
#include "schedules/chunk.h"
#include "strings.h"
#include "schedules/grave.h"
#include "schedules/place.h"
#include "schedules/route.h"
#include "schedules/schedule.h"

enum { ERROR_MAX = 256, ID_MAX = 48, SMALL_ARGUMENTS = 64 };

static RedisModuleString *word_at; /* "AT": what is replicated says it often */

/* ---- times ------------------------------------------------------------------------------------------------------- */

/* Reads IN ms or AT unix-ms: two arguments. */
static bool read_time(RedisModuleCtx *ctx, RedisModuleString **argv, uint64_t now_ms, uint64_t *due,
                      bool *absolute)
{
    *absolute = tw__argument_is(argv[0], "AT");
    if (!*absolute && !tw__argument_is(argv[0], "IN")) {
        tw__argument_error(ctx, argv[0], "the time", "IN ms or AT unix-ms");
        return false;
    }
    if (*absolute)
        return tw__argument_number(ctx, argv[1], "AT", 0, INT64_MAX, due);
    if (!tw__argument_number(ctx, argv[1], "IN", 0, INT64_MAX - (int64_t)now_ms, due))
        return false;
    *due += now_ms;
    return true;
}

enum condition { ALWAYS, ONLY_NEW, ONLY_OLD, LATER, EARLIER };

static bool read_condition(RedisModuleString *argument, enum condition *condition)
{
    static const char *const words[] = {[ONLY_NEW] = "NX", [ONLY_OLD] = "XX", [LATER] = "GT", [EARLIER] = "LT"};
    for (int i = ONLY_NEW; i <= EARLIER; i++)
        if (tw__argument_is(argument, words[i])) {
            *condition = (enum condition)i;
            return true;
        }
    return false;
}

/* Whether a task may be put in the place of `old`, which may be NULL. */
static bool allows(enum condition condition, const struct tw__task *old, uint64_t due)
{
    switch (condition) {
    case ONLY_NEW:
        return old == NULL;
    case ONLY_OLD:
        return old != NULL;
    case LATER:
        return old == NULL || due > tw__task_due(old);
    case EARLIER:
        return old == NULL || due < tw__task_due(old);
    default:
        return true;
    }
}

/* ---- TW.ADD ---------------------------------------------------------------------------------------------------------- */

/* TW.ADD, read. */
struct add {
    RedisModuleString *schedule, *target, *id;
    uint64_t now_ms, due, every, times;
    bool absolute, new_id;
    enum condition condition;
    int condition_at; /* its place among the arguments; 0: none */
    struct tw__plan plan;
    RedisModuleString **payload;
    int payload_count;
};

/* Options that were given already, so that none is given twice. */
enum option { CONDITION = 1, EVERY = 2, TIMES = 4, KIND = 8, MAXLEN = 16, LATE = 32 };

static bool read_late(RedisModuleCtx *ctx, struct add *add, RedisModuleString **argv, int argc, int *at)
{
    if (*at + 1 >= argc) {
        RedisModule_ReplyWithError(ctx, "ERR LATE has no policy: expected FIRE, DROP ms or COALESCE");
        return false;
    }
    RedisModuleString *policy = argv[++*at];
    add->plan.late = tw__argument_is(policy, "DROP") ? TW__LATE_DROP : TW__LATE_FIRE;
    if (tw__argument_is(policy, "COALESCE"))
        add->plan.late = TW__LATE_COALESCE;
    else if (add->plan.late == TW__LATE_FIRE && !tw__argument_is(policy, "FIRE")) {
        tw__argument_error(ctx, policy, "LATE", "FIRE, DROP ms or COALESCE");
        return false;
    }
    if (add->plan.late != TW__LATE_DROP)
        return true;
    if (*at + 1 >= argc) {
        RedisModule_ReplyWithError(ctx, "ERR LATE DROP has no value: expected ms");
        return false;
    }
    return tw__argument_number(ctx, argv[++*at], "LATE DROP", 0, INT64_MAX, &add->plan.late_ms);
}

static bool read_value(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, int *at, const char *what,
                       uint64_t *value)
{
    char error[ERROR_MAX];
    if (*at + 1 < argc)
        return tw__argument_number(ctx, argv[++*at], what, 1, INT64_MAX, value);
    snprintf(error, sizeof error, "ERR %s has no value: expected an integer from 1 to %lld", what,
             (long long)INT64_MAX);
    RedisModule_ReplyWithError(ctx, error);
    return false;
}

static enum option option_of(RedisModuleString *argument, enum condition *condition)
{
    if (read_condition(argument, condition))
        return CONDITION;
    static const struct {
        const char *word;
        enum option option;
    } options[] = {{"EVERY", EVERY}, {"TIMES", TIMES},   {"STREAM", KIND},
                   {"LIST", KIND},   {"MAXLEN", MAXLEN}, {"LATE", LATE}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (tw__argument_is(argument, options[i].word))
            return options[i].option;
    return 0;
}

/* Reads the option at argv[*at], and its values. */
static bool read_option(RedisModuleCtx *ctx, struct add *add, RedisModuleString **argv, int argc, int *at,
                        unsigned *seen)
{
    enum option option = option_of(argv[*at], &add->condition);
    if (option == 0) {
        tw__argument_error(ctx, argv[*at], "the option",
                           "NX, XX, GT, LT, EVERY, TIMES, STREAM, LIST, MAXLEN, LATE or PAYLOAD");
        return false;
    }
    if (*seen & option) {
        tw__argument_error(ctx, argv[*at], "the option", "each kind of option once");
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
        add->plan.kind = tw__argument_is(argv[*at], "LIST") ? TW__LIST : TW__STREAM;
        return true;
    case MAXLEN:
        return read_value(ctx, argv, argc, at, "MAXLEN", &add->plan.maxlen);
    default:
        return read_late(ctx, add, argv, argc, at);
    }
}

static bool options_agree(RedisModuleCtx *ctx, struct add *add, unsigned seen)
{
    const char *error = NULL;
    if ((seen & TIMES) && !(seen & EVERY))
        error = "ERR TIMES needs EVERY";
    else if ((seen & MAXLEN) && add->plan.kind == TW__LIST)
        error = "ERR MAXLEN is for a STREAM, not for a LIST";
    if (error != NULL)
        RedisModule_ReplyWithError(ctx, error);
    return error == NULL;
}

static bool read_payload(RedisModuleCtx *ctx, struct add *add, RedisModuleString **argv, int argc)
{
    add->payload = argv;
    add->payload_count = argc;
    if (add->plan.kind == TW__LIST) {
        if (argc == 1)
            return true;
        RedisModule_ReplyWithError(ctx, "ERR PAYLOAD of a LIST is one value");
        return false;
    }
    if (argc == 0 || argc % 2 != 0) {
        RedisModule_ReplyWithError(ctx, "ERR PAYLOAD of a STREAM is field value [field value ...]");
        return false;
    }
    for (int i = 0; i < argc; i += 2) {
        struct tw__bytes field = tw__string_bytes(argv[i]);
        if (field.size < 3 || memcmp(field.at, "tw.", 3) != 0)
            continue;
        if (tw__argument_is(argv[i], "tw.id") || tw__argument_is(argv[i], "tw.due") ||
            tw__argument_is(argv[i], "tw.attempt")) {
            tw__argument_error(ctx, argv[i], "a PAYLOAD field", "another name: this one is the module's own");
            return false;
        }
    }
    return true;
}

/* Whether each form of delivery can carry the task, the dead letter too. An acknowledged task is not refused: deliver.c
 * knows how to deal with it. */
static bool size_fits(RedisModuleCtx *ctx, const struct add *add)
{
    char error[ERROR_MAX];
    uint64_t bytes = tw__string_bytes(add->id).size + add->plan.target.size;
    for (int i = 0; i < add->payload_count; i++)
        bytes += tw__string_bytes(add->payload[i]).size;
    if (bytes <= TW__TASK_BYTES_MAX || tw__caller_is_log(ctx) ||
        (RedisModule_GetContextFlags(ctx) & TW__LOADING))
        return true;
    snprintf(error, sizeof error, "ERR id, target and payload are %llu bytes together: expected at most %llu",
             (unsigned long long)bytes, (unsigned long long)TW__TASK_BYTES_MAX);
    RedisModule_ReplyWithError(ctx, error);
    return false;
}

static bool read_add(RedisModuleCtx *ctx, struct add *add, RedisModuleString **argv, int argc)
{
    unsigned seen = 0;
    memset(add, 0, sizeof *add);
    add->schedule = argv[1];
    add->target = argv[2];
    add->id = argv[3];
    add->times = TW__FOR_EVER;
    add->now_ms = tw__now_ms();
    add->plan.target = tw__string_bytes(add->target);
    struct tw__bytes id = tw__string_bytes(add->id);
    add->new_id = id.size == 1 && *id.at == '*';
    if (RedisModule_StringCompare(add->schedule, add->target) == 0) {
        tw__argument_error(ctx, add->target, "the target", "another key than the schedule");
        return false;
    }
    if (!read_time(ctx, argv + 4, add->now_ms, &add->due, &add->absolute))
        return false;
    int at = 6;
    for (; at < argc && !tw__argument_is(argv[at], "PAYLOAD"); at++)
        if (!read_option(ctx, add, argv, argc, &at, &seen))
            return false;
    if (at == argc) {
        RedisModule_ReplyWithError(ctx, "ERR PAYLOAD is missing");
        return false;
    }
    return options_agree(ctx, add, seen) && read_payload(ctx, add, argv + at + 1, argc - at - 1) &&
           size_fits(ctx, add);
}

static struct tw__bytes payload_string(void *arg, uint32_t i)
{
    return tw__string_bytes(((RedisModuleString **)arg)[i]);
}

/* An id that is not in use: the time, and a number that starts anew with each millisecond. */
static RedisModuleString *make_id(const struct tw__schedule *schedule, uint64_t now_ms)
{
    static uint64_t last_ms, number;
    char text[ID_MAX];
    struct tw__bytes id = {text, 0};
    number = now_ms == last_ms ? number + 1 : 0;
    last_ms = now_ms;
    for (;; number++) {
        id.size = (size_t)snprintf(text, sizeof text, "%llu-%llu", (unsigned long long)now_ms,
                                   (unsigned long long)number);
        if (schedule == NULL ||
            tw__schedule_find(schedule, tw__schedule_hash(tw__shared.schedules, id), id) == NULL)
            return RedisModule_CreateString(NULL, id.at, id.size);
    }
}

static struct tw__task *make_task(const struct add *add, struct tw__bytes id)
{
    struct tw__task_plan plan = {
        .id = id,
        .due = add->due,
        .every = add->every,
        .times = add->times,
        .count = (uint32_t)add->payload_count,
        .string = payload_string,
        .arg = add->payload,
    };
    return tw__task_new(&plan, &tw__shared.schedules->memory);
}

/* Replicates TW.ADD as it came, but for the id, the time and the condition. */
static void replicate_add(RedisModuleCtx *ctx, const struct add *add, RedisModuleString **argv, int argc)
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
    vector[3] = word_at;
    vector[4] = due;
    RedisModule_Replicate(ctx, "TW.ADD", "v", vector, count);
    RedisModule_FreeString(NULL, due);
    if (vector != small)
        RedisModule_Free(vector);
}

static void put(RedisModuleCtx *ctx, struct add *add, RedisModuleKey *key, struct tw__schedule *schedule,
                struct tw__task *old, uint64_t hash)
{
    bool is_new = schedule == NULL;
    if (is_new)
        schedule = tw__schedule_new(tw__shared.schedules);
    struct tw__route *route = tw__route_for(schedule, &add->plan);
    tw__schedule_put(schedule, make_task(add, tw__string_bytes(add->id)), route, hash, old, add->now_ms);
    if (is_new)
        tw__keys_set(ctx, key, add->schedule, schedule);
    tw__shared.counts.added++;
    tw__alarm_at(add->due);
}

static int command_add(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    struct add add;
    RedisModuleKey *key;
    struct tw__schedule *schedule;
    if (argc < 8)
        return RedisModule_WrongArity(ctx);
    uint64_t hash = tw__schedule_foresee(tw__shared.schedules, tw__string_bytes(argv[3]));
    if (!read_add(ctx, &add, argv, argc))
        return REDISMODULE_OK;
    tw__schedule_foresee_task(tw__shared.schedules, hash);
    if (!tw__keys_open(ctx, add.schedule, &key, &schedule))
        return REDISMODULE_OK;
    if (add.new_id) {
        add.id = make_id(schedule, add.now_ms);
        hash = tw__schedule_foresee(tw__shared.schedules, tw__string_bytes(add.id));
    }
    struct tw__bytes id = tw__string_bytes(add.id);
    struct tw__task *old = schedule == NULL ? NULL : tw__schedule_find(schedule, hash, id);
    if (allows(add.condition, old, add.due)) {
        put(ctx, &add, key, schedule, old, hash);
        RedisModule_CloseKey(key);
        replicate_add(ctx, &add, argv, argc);
        tw__keys_changed(ctx, add.schedule, "tw.add");
        RedisModule_ReplyWithString(ctx, add.id);
    } else {
        RedisModule_CloseKey(key);
        RedisModule_ReplyWithNull(ctx);
    }
    if (add.new_id)
        RedisModule_FreeString(NULL, add.id);
    return REDISMODULE_OK;
}

/* ---- TW.CANCEL ---------------------------------------------------------------------------------------------------------- */

static int command_cancel(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key;
    struct tw__schedule *schedule;
    long long cancelled = 0;
    if (argc < 3)
        return RedisModule_WrongArity(ctx);
    struct tw__task *found = NULL; /* taken out one step later, when what lies beside it has been fetched */
    uint64_t found_hash = 0, hash = tw__schedule_foresee(tw__shared.schedules, tw__string_bytes(argv[2]));
    if (!tw__keys_open(ctx, argv[1], &key, &schedule))
        return REDISMODULE_OK;
    for (int i = 2; i < argc && schedule != NULL; i++) {
        tw__schedule_foresee_task(tw__shared.schedules, hash);
        uint64_t next =
            i + 1 < argc ? tw__schedule_foresee(tw__shared.schedules, tw__string_bytes(argv[i + 1])) : 0;
        struct tw__task *task = tw__schedule_find(schedule, hash, tw__string_bytes(argv[i]));
        if (task != NULL && task != found) {
            tw__place_prefetch(task);
            if (found != NULL)
                tw__schedule_remove(schedule, found, found_hash);
            found = task;
            found_hash = hash;
            cancelled++;
        }
        hash = next;
    }
    RedisModule_CloseKey(key);
    if (cancelled > 0) {
        RedisModule_ReplicateVerbatim(ctx);
        tw__schedule_remove(schedule, found, found_hash);
        tw__shared.counts.cancelled += (uint64_t)cancelled;
        tw__keys_changed(ctx, argv[1], "tw.cancel");
        tw__keys_remove_if_empty(ctx, argv[1], false);
    }
    return RedisModule_ReplyWithLongLong(ctx, cancelled);
}

/* ---- TW.MOVE ------------------------------------------------------------------------------------------------------------- */

/* Replicates TW.MOVE schedule id AT due. */
static void replicate_move(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, bool absolute, uint64_t due)
{
    if (absolute && argc == 5) {
        RedisModule_ReplicateVerbatim(ctx);
        return;
    }
    RedisModuleString *time = RedisModule_CreateStringFromLongLong(NULL, (long long)due);
    RedisModule_Replicate(ctx, "TW.MOVE", "ssss", argv[1], argv[2], word_at, time);
    RedisModule_FreeString(NULL, time);
}

/* Whether the caller may write the target of the task. False: the error has been sent. */
static bool may_move(RedisModuleCtx *ctx, const struct tw__task *task)
{
    struct tw__caller caller;
    tw__caller_init(&caller, ctx);
    bool may = tw__caller_may_deliver(&caller, tw__route_of(tw__shared.schedules, task));
    if (!may)
        tw__caller_error(&caller, ctx);
    tw__caller_fini(&caller);
    return may;
}

static int command_move(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key;
    struct tw__schedule *schedule;
    uint64_t now_ms = tw__now_ms(), due;
    bool absolute;
    enum condition condition = ALWAYS;
    if (argc < 5 || argc > 6)
        return RedisModule_WrongArity(ctx);
    uint64_t hash = tw__schedule_foresee(tw__shared.schedules, tw__string_bytes(argv[2]));
    if (!read_time(ctx, argv + 3, now_ms, &due, &absolute))
        return REDISMODULE_OK;
    tw__schedule_foresee_task(tw__shared.schedules, hash);
    if (argc == 6 && (!read_condition(argv[5], &condition) || condition == ONLY_NEW || condition == ONLY_OLD))
        return tw__argument_error(ctx, argv[5], "the option", "GT or LT");
    if (!tw__keys_open(ctx, argv[1], &key, &schedule))
        return REDISMODULE_OK;
    struct tw__bytes id = tw__string_bytes(argv[2]);
    struct tw__task *task = schedule == NULL ? NULL : tw__schedule_find(schedule, hash, id);
    RedisModule_CloseKey(key);
    if (task == NULL)
        return RedisModule_ReplyWithNull(ctx);
    if (!may_move(ctx, task))
        return REDISMODULE_OK;
    bool moves = allows(condition, task, due);
    if (moves) {
        tw__place_prefetch(task);
        replicate_move(ctx, argv, argc, absolute, due);
        tw__place_refile(tw__shared.schedules, task, due, now_ms);
        tw__task_set_tries(task, 0);
        tw__shared.counts.moved++;
        tw__alarm_at(due);
        tw__keys_changed(ctx, argv[1], "tw.move");
    }
    return RedisModule_ReplyWithLongLong(ctx, moves);
}

/* ---- TW.DRAIN ------------------------------------------------------------------------------------------------------------- */

enum { DRAIN_MAX = 10000 };

static int command_drain(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key;
    struct tw__schedule *schedule;
    uint64_t limit = (uint64_t)tw__config.tasks_per_tick, delivered = 0;
    struct tw__option options[] = {{"LIMIT", NULL}, {NULL, NULL}};
    if (limit > DRAIN_MAX)
        limit = DRAIN_MAX;
    if (argc < 2)
        return RedisModule_WrongArity(ctx);
    if (!tw__argument_options(ctx, argv + 2, argc - 2, options, "LIMIT n") ||
        !tw__argument_option_number(ctx, &options[0], 1, DRAIN_MAX, &limit) ||
        !tw__keys_open(ctx, argv[1], &key, &schedule))
        return REDISMODULE_OK;
    RedisModule_CloseKey(key);
    if (tw__loading())
        return tw__keys_reply_loading(ctx);
    if (tw__shared.batch != NULL)
        return RedisModule_ReplyWithError(ctx, "ERR TW.DRAIN within a delivery: expected a call after it");
    enum tw__drained drained = schedule == NULL ? TW__DRAINED : tw__drain(ctx, schedule, limit, &delivered);
    tw__alarm_next();
    if (drained == TW__DRAIN_FORBIDDEN)
        return REDISMODULE_OK;
    if (drained == TW__DRAINED_NONE_YET)
        return RedisModule_ReplyWithError(ctx,
                                          "ERR TW.DRAIN met only targets that refuse, so far: expected another "
                                          "call, which goes on behind them");
    return RedisModule_ReplyWithLongLong(ctx, (long long)delivered);
}

/* ---- what the log and the replication link say ------------------------------------------------------------------------------ */

/* Whether the file or the primary sends the command; if not, sends the error. */
static bool is_internal(RedisModuleCtx *ctx, const char *name)
{
    char error[ERROR_MAX];
    if (tw__caller_is_log(ctx))
        return true;
    snprintf(error, sizeof error, "ERR %s is taken from the append-only file and the replication link only",
             name);
    RedisModule_ReplyWithError(ctx, error);
    return false;
}

/* A repeating task was delivered: it is due again at `due`. */
static bool fired_next(RedisModuleCtx *ctx, struct tw__schedule *schedule, RedisModuleString **argv,
                       uint64_t now_ms)
{
    long long due, times;
    if (RedisModule_StringToLongLong(argv[1], &due) != REDISMODULE_OK || due < 0 ||
        RedisModule_StringToLongLong(argv[2], &times) != REDISMODULE_OK || times < -1) {
        tw__argument_error(ctx, argv[1], "TW.FIRED NEXT", "id, due time, times left");
        return false;
    }
    struct tw__bytes id = tw__string_bytes(argv[0]);
    struct tw__task *task = tw__schedule_find(schedule, tw__schedule_hash(tw__shared.schedules, id), id);
    if (task == NULL || tw__task_every(task) == 0)
        return true;
    tw__task_set_times(task, times < 0 ? TW__FOR_EVER : (uint64_t)times);
    tw__task_set_tries(task, 0);
    tw__place_refile(tw__shared.schedules, task, (uint64_t)due, now_ms);
    tw__alarm_at((uint64_t)due);
    return true;
}

static void fired_once(struct tw__schedule *schedule, RedisModuleString *argument)
{
    struct tw__bytes id = tw__string_bytes(argument);
    uint64_t hash = tw__schedule_hash(tw__shared.schedules, id);
    struct tw__task *task = tw__schedule_find(schedule, hash, id);
    if (task != NULL)
        tw__schedule_remove(schedule, task, hash);
}

/* TW.FIRED schedule ONCE id [id ...] | NEXT id due times [id due times ...] */
static int command_fired(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key;
    struct tw__schedule *schedule;
    if (argc < 4)
        return RedisModule_WrongArity(ctx);
    if (!is_internal(ctx, "TW.FIRED"))
        return REDISMODULE_OK;
    bool next = tw__argument_is(argv[2], "NEXT");
    if ((!next && !tw__argument_is(argv[2], "ONCE")) || (next && argc % 3 != 0))
        return tw__argument_error(ctx, argv[2], "TW.FIRED", "ONCE id ... or NEXT id due times ...");
    if (!tw__keys_open(ctx, argv[1], &key, &schedule))
        return REDISMODULE_OK;
    RedisModule_CloseKey(key);
    bool good = true;
    for (int i = 3; i < argc && schedule != NULL && good; i += next ? 3 : 1) {
        if (next)
            good = fired_next(ctx, schedule, argv + i, tw__now_ms());
        else
            fired_once(schedule, argv[i]);
    }
    if (good)
        RedisModule_ReplicateVerbatim(ctx);
    RedisModule_SignalModifiedKey(ctx, argv[1]); /* if nothing is left, DEL follows */
    return good ? RedisModule_ReplyWithSimpleString(ctx, "OK") : REDISMODULE_OK;
}

/* TW.LOAD schedule chunk: tasks as persist.c writes them. */
static int command_load(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key;
    struct tw__schedule *schedule;
    if (argc != 3)
        return RedisModule_WrongArity(ctx);
    if (!is_internal(ctx, "TW.LOAD") || !tw__keys_open(ctx, argv[1], &key, &schedule))
        return REDISMODULE_OK;
    bool is_new = schedule == NULL;
    if (is_new)
        schedule = tw__schedule_new(tw__shared.schedules);
    bool good = tw__chunk_read(schedule, tw__string_bytes(argv[2]), tw__now_ms());
    if (is_new && tw__table_count(&schedule->tasks) > 0)
        tw__keys_set(ctx, key, argv[1], schedule);
    else if (is_new)
        tw__grave_bury(schedule);
    RedisModule_CloseKey(key);
    if (!good)
        return RedisModule_ReplyWithError(ctx, "ERR TW.LOAD: the chunk is damaged");
    RedisModule_ReplicateVerbatim(ctx);
    RedisModule_SignalModifiedKey(ctx, argv[1]);
    tw__alarm_next();
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}

/* ---- registering --------------------------------------------------------------------------------------------------------------- */

int tw__commands_register(RedisModuleCtx *ctx)
{
    static const struct {
        const char *name, *flags;
        RedisModuleCmdFunc call;
        int last_key;
    } commands[] = {
        {"tw.add", "write deny-oom fast", command_add, 2},
        {"tw.cancel", "write fast", command_cancel, 1},
        {"tw.move", "write deny-oom fast", command_move, 1},
        {"tw.drain", "write deny-oom", command_drain, 1},
        {"tw.fired", "write", command_fired, 1},
        {"tw.load", "write", command_load, 1},
    };
    word_at = RedisModule_CreateString(NULL, "AT", 2);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (RedisModule_CreateCommand(ctx, commands[i].name, commands[i].call, commands[i].flags, 1,
                                      commands[i].last_key, 1) != REDISMODULE_OK)
            return REDISMODULE_ERR;
    return REDISMODULE_OK;
}
