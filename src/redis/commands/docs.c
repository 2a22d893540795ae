/* SPDX-License-Identifier: MIT
 *
 * The table of all commands, and how the server gets to know them: their functions, flags and keys, and the
 * texts of COMMAND DOCS. docs/redis.md says the same for readers. Only the append-only file and the replication
 * link may send TW.FIRED and TW.LOAD.
 */
#include "commands.h"

#include <string.h>

#include "server/arguments.h"
#include "server/refused.h"

#define SINCE "1.0.0" /* the first release, which has all these commands; a later command names its own */
#define O1 "O(1)"

/* ---- calls ----------------------------------------------------------------------------------------------- */

/* Whether a command has as many arguments as its arity says. If not, replies with an error. A server may keep
 * an arity of its own, and asks for none while it loads the append-only file. */
static bool has_arity(RedisModuleCtx *ctx, int argc, int arity)
{
    if (RedisModule_IsKeysPositionRequest(ctx) || (arity < 0 ? argc >= -arity : argc == arity))
        return true;
    tw__redis_wrong_arity(ctx);
    return false;
}

#define CALLED(name, count)                                                                                    \
    enum { name##_arity = (count) };                                                                           \
    static int called_##name(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)                          \
    {                                                                                                          \
        return has_arity(ctx, argc, name##_arity) ? tw__redis_##name##_command(ctx, argv, argc)                \
                                                  : REDISMODULE_OK;                                            \
    }
/* Commands that write are looked after while the append-only file is loaded, and on a replica. */
#define WATCHED(name, count)                                                                                   \
    CALLED(name, count)                                                                                        \
    static int watched_##name(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)                         \
    {                                                                                                          \
        return tw__redis_refused_watch(ctx, argv, argc, called_##name);                                        \
    }
WATCHED(send, -4)
WATCHED(put, -3)
WATCHED(take, -2)
WATCHED(ack, -3)
WATCHED(nack, -4)
WATCHED(touch, -4)
WATCHED(replay, -2)
WATCHED(purge, -2)
WATCHED(pause, 2)
WATCHED(resume, 2)
WATCHED(cancel, -3)
WATCHED(move, -3)
WATCHED(promote, -2)
CALLED(dead, -2)
CALLED(get, -3)
CALLED(len, 2)
CALLED(next, 2)
CALLED(scan, -3)
CALLED(range, -4)
CALLED(forecast, -2)
CALLED(info, 2)
CALLED(top, -1)

/* ---- arguments ------------------------------------------------------------------------------------------- */

#define KEY(title, spec)                                                                                       \
    {                                                                                                          \
        .name = (title), .type = REDISMODULE_ARG_TYPE_KEY, .key_spec_index = (spec)                            \
    }
#define ARGUMENT(title, kind, word, how)                                                                       \
    {                                                                                                          \
        .name = (title), .type = REDISMODULE_ARG_TYPE_##kind, .token = (word), .flags = (how)                  \
    }
#define ARG(title, kind) ARGUMENT(title, kind, NULL, REDISMODULE_CMD_ARG_NONE)
#define MANY(title, kind) ARGUMENT(title, kind, NULL, REDISMODULE_CMD_ARG_MULTIPLE)
#define WORD(title, text) ARGUMENT(title, PURE_TOKEN, text, REDISMODULE_CMD_ARG_NONE)
#define VALUE(title, text, kind) ARGUMENT(title, kind, text, REDISMODULE_CMD_ARG_NONE)
#define MAYBE(title, text, kind) ARGUMENT(title, kind, text, OPTIONAL)
#define OPTIONAL REDISMODULE_CMD_ARG_OPTIONAL
#define ARGS(...)                                                                                              \
    (RedisModuleCommandArg[])                                                                                  \
    {                                                                                                          \
        __VA_ARGS__,                                                                                           \
        {                                                                                                      \
            0                                                                                                  \
        }                                                                                                      \
    }
#define GROUP(title, kind, how, ...)                                                                           \
    {                                                                                                          \
        .name = (title), .type = REDISMODULE_ARG_TYPE_##kind, .flags = (how), .subargs = ARGS(__VA_ARGS__)     \
    }
#define TIME                                                                                                   \
    GROUP("time", ONEOF, REDISMODULE_CMD_ARG_NONE, VALUE("ms", "IN", INTEGER),                                 \
          VALUE("unix-ms", "AT", UNIX_TIME))

#define CONDITION                                                                                              \
    GROUP("condition", ONEOF, OPTIONAL, WORD("nx", "NX"), WORD("xx", "XX"), WORD("gt", "GT"), WORD("lt", "LT"))
/* The options that TW.PUT and TW.SEND share. */
#define OPTIONS                                                                                                \
    CONDITION, MAYBE("keepdue", "KEEPDUE", PURE_TOKEN),                                                        \
        GROUP("repeat", BLOCK, OPTIONAL, VALUE("ms", "EVERY", INTEGER), MAYBE("n", "TIMES", INTEGER),          \
              {.name = "missed",                                                                               \
               .token = "MISSED",                                                                              \
               .type = REDISMODULE_ARG_TYPE_ONEOF,                                                             \
               .flags = OPTIONAL,                                                                              \
               .subargs = ARGS(WORD("burst", "burst"), WORD("skip", "skip"), WORD("coalesce", "coalesce"))}),  \
        MAYBE("max-late-ms", "MAXLATE", INTEGER), MAYBE("tries", "TRIES", INTEGER),                            \
        GROUP("backoff", BLOCK, OPTIONAL, VALUE("first-ms", "BACKOFF", INTEGER), ARG("factor", DOUBLE),        \
              ARG("max-ms", INTEGER)),                                                                         \
        MAYBE("percent", "JITTER", INTEGER)

#define NAMED                                                                                                  \
    GROUP("tasks", ONEOF, REDISMODULE_CMD_ARG_NONE, WORD("all", "ALL"),                                        \
          GROUP("ids", BLOCK, REDISMODULE_CMD_ARG_NONE, VALUE("n", "IDS", INTEGER), MANY("id", STRING)))

/* ---- keys ------------------------------------------------------------------------------------------------ */

#define SPEC(position, how)                                                                                    \
    {                                                                                                          \
        .flags = (how), .begin_search_type = REDISMODULE_KSPEC_BS_INDEX, .bs.index.pos = (position),           \
        .find_keys_type = REDISMODULE_KSPEC_FK_RANGE, .fk.range = {                                            \
            0,                                                                                                 \
            1,                                                                                                 \
            0                                                                                                  \
        }                                                                                                      \
    }
#define SPECS(...)                                                                                             \
    (RedisModuleCommandKeySpec[])                                                                              \
    {                                                                                                          \
        __VA_ARGS__,                                                                                           \
        {                                                                                                      \
            0                                                                                                  \
        }                                                                                                      \
    }
#define RO (REDISMODULE_CMD_KEY_RO | REDISMODULE_CMD_KEY_ACCESS)
#define RW(what) (REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_##what)

/* ---- the commands ---------------------------------------------------------------------------------------- */

/* A key that the first arguments name has its place in `key_specs`, for the ACL and for clients alike. The keys
 * of TW.TAKE follow a number, so it tells them itself when the server asks (getkeys-api).
 *
 * The arity is the least number of arguments with which a command says what is missing. With fewer the server
 * says that the number of arguments is wrong. Example: the id of TW.PUT has to be there, but a call without IN
 * or PAYLOAD gets an error that names them. The internal commands count their arguments themselves, so that
 * fired.c decides what a wrong number in the append-only file means, and not the server. */
static const struct command {
    const char *name;
    RedisModuleCmdFunc call;
    const char *flags, *categories;
    RedisModuleCommandInfo info;
} commands[] = {
    {"tw.send",
     watched_send,
     "write deny-oom fast",
     "write fast",
     {
         .summary = "Files a task that the server delivers when it is due, or replaces the task with this id.",
         .complexity = O1,
         .arity = send_arity,
         .key_specs = SPECS(SPEC(1, RW(UPDATE)), SPEC(2, RW(INSERT))),
         .args = ARGS(KEY("queue", 0), KEY("target", 1), ARG("id", STRING), TIME, OPTIONS,
                      GROUP("kind", ONEOF, OPTIONAL, WORD("stream", "STREAM"),
                            GROUP("list", BLOCK, REDISMODULE_CMD_ARG_NONE, WORD("list", "LIST"),
                                  MAYBE("left", "LEFT", PURE_TOKEN))),
                      MAYBE("maxlen", "MAXLEN", INTEGER), WORD("payload", "PAYLOAD"),
                      MANY("field-or-value", STRING)),
     }},
    {"tw.put",
     watched_put,
     "write deny-oom fast",
     "write fast",
     {
         .summary = "Puts a task that workers take when it is due, or replaces the task with this id.",
         .complexity = O1,
         .arity = put_arity,
         .key_specs = SPECS(SPEC(1, RW(UPDATE))),
         .args = ARGS(KEY("queue", 0), ARG("id", STRING), TIME, OPTIONS, WORD("payload", "PAYLOAD"),
                      MANY("value", STRING)),
     }},
    {"tw.take",
     watched_take,
     "write blocking getkeys-api",
     "write slow blocking",
     {
         .summary = "Gives ready tasks to a worker for a while, a row for each, or blocks until there is one.",
         .complexity = "O(1) for each task and each queue",
         .arity = take_arity,
         .key_specs =
             SPECS({.flags = REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_ACCESS | REDISMODULE_CMD_KEY_UPDATE,
                    .begin_search_type = REDISMODULE_KSPEC_BS_INDEX,
                    .bs.index.pos = 1,
                    .find_keys_type = REDISMODULE_KSPEC_FK_KEYNUM,
                    .fk.keynum = {0, 1, 1}}),
         .args = ARGS(ARG("n", INTEGER), MANY("queue", KEY), VALUE("ms", "LEASE", INTEGER),
                      MAYBE("n", "COUNT", INTEGER), MAYBE("block-ms", "BLOCK", INTEGER),
                      MAYBE("worker", "NAME", STRING)),
     }},
    {"tw.ack",
     watched_ack,
     "write fast",
     "write fast",
     {
         .summary = "Says that the work of leased tasks is done.",
         .complexity = "O(1) for each id",
         .arity = ack_arity,
         .key_specs = SPECS(SPEC(1, RW(DELETE))),
         .args = ARGS(KEY("queue", 0), GROUP("lease", BLOCK, REDISMODULE_CMD_ARG_MULTIPLE, ARG("id", STRING),
                                             ARG("token", STRING))),
     }},
    {"tw.nack",
     watched_nack,
     "write fast",
     "write fast",
     {
         .summary = "Says that an attempt has failed, or gives the task back as if it had not been taken.",
         .complexity =
             "O(1); BACK without a time O(n) with n the number of ready tasks between the old place of the "
             "task and the first ready one, or the one that was given back last, at most 10,000",
         .arity = nack_arity,
         .key_specs = SPECS(SPEC(1, RW(UPDATE))),
         .args =
             ARGS(KEY("queue", 0), ARG("id", STRING), ARG("token", STRING), MAYBE("back", "BACK", PURE_TOKEN),
                  GROUP("when", ONEOF, OPTIONAL, VALUE("ms", "IN", INTEGER), VALUE("unix-ms", "AT", UNIX_TIME),
                        WORD("dead", "DEAD")),
                  MAYBE("text", "ERROR", STRING)),
     }},
    {"tw.touch",
     watched_touch,
     "write fast",
     "write fast",
     {
         .summary = "Lets a lease end later, or sooner.",
         .complexity = O1,
         .arity = touch_arity,
         .key_specs = SPECS(SPEC(1, RW(UPDATE))),
         .args = ARGS(KEY("queue", 0), ARG("id", STRING), ARG("token", STRING), VALUE("ms", "LEASE", INTEGER)),
     }},
    {"tw.dead",
     called_dead,
     "readonly",
     "read slow",
     {
         .summary = "Lists the dead tasks of a queue, in the order of their deaths: a row for each.",
         .complexity = "O(n) with n the number of listed tasks",
         .arity = dead_arity,
         .key_specs = SPECS(SPEC(1, RO)),
         .args = ARGS(KEY("queue", 0), MAYBE("n", "COUNT", INTEGER), MAYBE("id", "AFTER", STRING)),
     }},
    {"tw.replay",
     watched_replay,
     "write deny-oom",
     "write slow",
     {
         .summary = "Lets dead tasks wait again, as if they had just been put.",
         .complexity = "O(n) with n the number of tasks, at most 10,000",
         .arity = replay_arity,
         .key_specs = SPECS(SPEC(1, RW(UPDATE))),
         .args = ARGS(
             KEY("queue", 0), NAMED,
             GROUP("time", ONEOF, OPTIONAL, VALUE("ms", "IN", INTEGER), VALUE("unix-ms", "AT", UNIX_TIME))),
     }},
    {"tw.purge",
     watched_purge,
     "write",
     "write slow",
     {
         .summary = "Removes dead tasks.",
         .complexity = "O(n) with n the number of tasks, at most 10,000",
         .arity = purge_arity,
         .key_specs = SPECS(SPEC(1, RW(DELETE))),
         .args = ARGS(KEY("queue", 0), NAMED),
     }},
    {"tw.pause",
     watched_pause,
     "write fast",
     "write fast",
     {
         .summary = "Pauses a queue: it delivers no task, and gives none to workers, until TW.RESUME.",
         .complexity = O1,
         .arity = pause_arity,
         .key_specs = SPECS(SPEC(1, RW(UPDATE))),
         .args = ARGS(KEY("queue", 0)),
     }},
    {"tw.resume",
     watched_resume,
     "write fast",
     "write fast",
     {
         .summary = "Ends the pause of a queue.",
         .complexity = "O(1), or at most O(N+M) with N the tasks that wait for the end of the pause and M the "
                       "due tasks of the server",
         .arity = resume_arity,
         .key_specs = SPECS(SPEC(1, RW(UPDATE))),
         .args = ARGS(KEY("queue", 0)),
     }},
    {"tw.cancel",
     watched_cancel,
     "write fast",
     "write fast",
     {
         .summary = "Cancels tasks of a queue.",
         .complexity = "O(1) for each id",
         .arity = cancel_arity,
         .key_specs = SPECS(SPEC(1, RW(DELETE))),
         .args = ARGS(KEY("queue", 0), MANY("id", STRING)),
     }},
    {"tw.move",
     watched_move,
     "write deny-oom fast",
     "write fast",
     {
         .summary = "Changes the due time of a task.",
         .complexity = O1,
         .arity = move_arity,
         .key_specs = SPECS(SPEC(1, RW(UPDATE))),
         .args = ARGS(KEY("queue", 0), ARG("id", STRING), TIME,
                      GROUP("condition", ONEOF, OPTIONAL, WORD("gt", "GT"), WORD("lt", "LT"))),
     }},
    {"tw.promote",
     watched_promote,
     "write deny-oom",
     "write slow",
     {
         .summary = "Lets waiting tasks be ready now, even before they are due.",
         .complexity =
             "O(n) with n the number of tasks, at most 10,000; ALL ends after 20 ms, and has the cost of "
             "finding them besides, as TW.RANGE",
         .arity = promote_arity,
         .key_specs = SPECS(SPEC(1, RW(UPDATE))),
         .args = ARGS(KEY("queue", 0), NAMED),
     }},
    {"tw.get",
     called_get,
     "readonly fast",
     "read fast",
     {
         .summary = "Describes tasks: for each id a map, or nil.",
         .complexity = "O(1) for each id",
         .arity = get_arity,
         .key_specs = SPECS(SPEC(1, RO)),
         .args = ARGS(KEY("queue", 0), MANY("id", STRING)),
     }},
    {"tw.len",
     called_len,
     "readonly fast",
     "read fast",
     {
         .summary = "Counts the tasks of a queue.",
         .complexity = O1,
         .arity = len_arity,
         .key_specs = SPECS(SPEC(1, RO)),
         .args = ARGS(KEY("queue", 0)),
     }},
    {"tw.next",
     called_next,
     "readonly",
     "read slow",
     {
         .summary = "Returns the id, the due time and the next time of the waiting task that comes first.",
         .complexity = "O(N) with N the number of tasks of all queues that are due before it, or of all "
                       "tasks of this queue if they are fewer",
         .arity = next_arity,
         .key_specs = SPECS(SPEC(1, RO)),
         .args = ARGS(KEY("queue", 0)),
     }},
    {"tw.scan",
     called_scan,
     "readonly",
     "read slow",
     {
         .summary = "Lists the tasks of a queue in several calls, with a cursor.",
         .complexity = "O(n) for each call with n the COUNT, at most about 20,000; O(N) for all N tasks",
         .arity = scan_arity,
         .tips = "nondeterministic_output",
         .key_specs = SPECS(SPEC(1, RO)),
         .args = ARGS(KEY("queue", 0), ARG("cursor", INTEGER), MAYBE("n", "COUNT", INTEGER),
                      MAYBE("glob", "MATCH", PATTERN)),
     }},
    {"tw.range",
     called_range,
     "readonly",
     "read slow",
     {
         .summary = "Lists the waiting tasks between two times, in order.",
         .complexity =
             "O(N log n) with N as for TW.NEXT up to the last listed task, and n the number of listed tasks",
         .arity = range_arity,
         .key_specs = SPECS(SPEC(1, RO)),
         .args = ARGS(KEY("queue", 0), ARG("from", UNIX_TIME), ARG("to", UNIX_TIME),
                      MAYBE("id", "AFTER", STRING), MAYBE("n", "COUNT", INTEGER)),
     }},
    {"tw.forecast",
     called_forecast,
     "readonly",
     "read slow",
     {
         .summary = "Counts the waiting tasks that become ready in each coming step of time.",
         .complexity = "O(N) with N the number of tasks within the horizon, or of all tasks of the queue if "
                       "they are fewer",
         .arity = forecast_arity,
         .tips = "nondeterministic_output",
         .key_specs = SPECS(SPEC(1, RO)),
         .args = ARGS(KEY("queue", 0), MAYBE("ms", "STEP", INTEGER), MAYBE("n", "STEPS", INTEGER)),
     }},
    {"tw.info",
     called_info,
     "readonly",
     "read slow",
     {
         .summary = "Describes a queue: a map of its tasks by state, its next time and its counters.",
         .complexity = "as TW.NEXT",
         .arity = info_arity,
         .tips = "nondeterministic_output",
         .key_specs = SPECS(SPEC(1, RO)),
         .args = ARGS(KEY("queue", 0)),
     }},
    {"tw.top",
     called_top,
     "readonly admin",
     "admin slow dangerous",
     {
         .summary =
             "Returns a map: a forecast for all queues, the lateness of recent deliveries, and the largest and "
             "the paused queues.",
         .complexity = "O(S + N) with S queues and N tasks, at most 20,000 of each",
         .arity = top_arity,
         .tips = "nondeterministic_output",
         .args = ARGS(MAYBE("ms", "STEP", INTEGER), MAYBE("n", "STEPS", INTEGER),
                      MAYBE("queues", "QUEUES", INTEGER)),
     }},
    {"tw.fired",
     tw__redis_fired_command,
     "write",
     "write slow",
     {
         .summary = "Internal: what became of tasks, in the append-only file and on replicas.",
         .complexity = "O(1) for each id",
         .arity = -1,
         .key_specs = SPECS(SPEC(1, RW(DELETE))),
         .args = ARGS(KEY("queue", 0),
                      GROUP("kind", ONEOF, OPTIONAL, WORD("once", "ONCE"), WORD("next", "NEXT"),
                            WORD("renew", "RENEW"), WORD("pause", "PAUSE"), WORD("resume", "RESUME"),
                            WORD("nothing", "NOTHING")),
                      ARGUMENT("argument", STRING, NULL, REDISMODULE_CMD_ARG_MULTIPLE | OPTIONAL)),
     }},
    {"tw.load",
     tw__redis_load_command,
     "write",
     "write slow",
     {
         .summary = "Internal: adds tasks, in the append-only file.",
         .complexity = "O(1) for each task",
         .arity = -1,
         .key_specs = SPECS(SPEC(1, RW(INSERT))),
         .args = ARGS(KEY("queue", 0), ARG("chunk", STRING)),
     }},
};

/* The places of the first and the last key among the arguments; 0: none, or a number precedes them. */
static void find_keys(const RedisModuleCommandKeySpec *spec, int *first, int *last)
{
    *first = *last = 0;
    for (; spec != NULL && spec->find_keys_type == REDISMODULE_KSPEC_FK_RANGE; spec++) {
        *first = *first == 0 ? spec->bs.index.pos : *first;
        *last = spec->bs.index.pos;
    }
}

static int register_command(RedisModuleCtx *ctx, const struct command *command)
{
    int first, last;
    RedisModuleCommandInfo info = command->info;
    info.version = REDISMODULE_COMMAND_INFO_VERSION;
    info.since = SINCE;
    find_keys(info.key_specs, &first, &last);
    if (RedisModule_CreateCommand(ctx, command->name, command->call, command->flags, first, last, first > 0) !=
        REDISMODULE_OK)
        return REDISMODULE_ERR;
    return RedisModule_SetCommandInfo(RedisModule_GetCommand(ctx, command->name), &info);
}

int tw__redis_commands_register(RedisModuleCtx *ctx)
{
    /* Redis 7.2 and later. Redis 7.0 puts the commands of modules into no category. */
    int (*set_categories)(RedisModuleCommand *, const char *) = NULL;
    RedisModule_GetApi("RedisModule_SetCommandACLCategories", (void **)&set_categories);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        const struct command *command = &commands[i];
        if (register_command(ctx, command) != REDISMODULE_OK)
            return REDISMODULE_ERR;
        if (set_categories != NULL &&
            set_categories(RedisModule_GetCommand(ctx, command->name), command->categories) != REDISMODULE_OK)
            return REDISMODULE_ERR;
    }
    return REDISMODULE_OK;
}
