/* SPDX-License-Identifier: MIT
 *
 * What the files of the module call of each other. The essay is in module.c.
 *
 *     module.c    loading; the data type          tick.c      the wheel, the timer of the server, what is due
 *     commands.c  the commands that write         deliver.c   from a due task to its Stream or List
 *     queries.c   the commands that read          batch.c     what has been delivered leaves its schedule
 *     events.c    what happens to keys and to the server
 *     persist.c   RDB, AOF, copies, digests, defragmentation
 *     aof.c       reading append-only files       mend.c      one that was cut off in a transaction
 *     schedules/  schedules, their tasks, where these wait: without the server
 *     config.c, info.c, docs.c
 *     arguments.c reading the arguments of commands   rights.c    which keys the caller of a command may write
 */
#ifndef TW_REDIS_MODULE_H
#define TW_REDIS_MODULE_H

#include <redismodule.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schedules/schedule.h"

/* The longest time, in ms: what a Redis integer can say. */
#define TW__TIME_MAX ((uint64_t)INT64_MAX)

/* The most that id, target and payload of a task take together. A Stream refuses an entry of more than 2^30 bytes; the
 * rest is for the fields that deliver.c adds, to a dead letter too. */
#define TW__TASK_BYTES_MAX UINT64_C(1000000000)

/* ---- state of the module ------------------------------------------------------------------------------------ */

/* Of a context's flags: the data set is being loaded, in either way. */
enum { TW__LOADING = REDISMODULE_CTX_FLAGS_LOADING | REDISMODULE_CTX_FLAGS_ASYNC_LOADING };

/* Why a delivery was put off. */
enum tw__defer {
    TW__DEFER_NONE,
    TW__DEFER_PAUSE,
    TW__DEFER_ROLE,
    TW__DEFER_OOM,
    TW__DEFER_SLOT,
    TW__DEFER_REPLICAS,
    TW__DEFER_DISK,
    TW__DEFER_REFUSED,
    TW__DEFERS,
    TW__DISTURBED, /* by another module's handler, in the middle of our call of the server */
    TW__FORBIDDEN  /* the caller of TW.DRAIN may not write a target; the error has been sent */
};

struct tw__config {
    long long tasks_per_tick, us_per_tick, dead_letter_tries, default_maxlen, retry_ms;
};
extern struct tw__config tw__config;

/* Counts since the server started. */
struct tw__counts {
    uint64_t added, cancelled, moved, fired, dropped, coalesced, dead, expired_tasks, evicted_tasks,
        clock_jumps;
    uint64_t deferred[TW__DEFERS];
    uint64_t tick_us_max;
};
extern struct tw__counts tw__counts;

extern RedisModuleType *tw__type;

/* The wall clock. */
uint64_t tw__now_ms(void);

/* ---- schedules as keys (module.c) ---------------------------------------------------------------------------- */

enum tw__opened { TW__OPEN_NONE, TW__OPEN_SCHEDULE, TW__OPEN_OTHER };

/* Looks a key up: what it is, and the schedule. */
enum tw__opened tw__open(RedisModuleKey *key, struct tw__schedule **schedule);

/* Tells a schedule of which key it is the value. A name of NULL is an empty one. */
void tw__name(struct tw__schedule *schedule, const RedisModuleString *name, int db);

/* Says that a schedule was changed, to those who watch its key and to those who listen. They may do anything, so no key
 * is open meanwhile, and the schedule may be another key's, or nobody's, afterwards. */
void tw__changed(RedisModuleCtx *ctx, RedisModuleString *name, const char *event);

/* Removes the key if its value is a schedule without tasks, and says so to those who listen; replicas have to be told
 * unless what they are told otherwise has the same effect. */
void tw__remove_if_empty(RedisModuleCtx *ctx, RedisModuleString *name, bool replicate);

/* The same for some of those that are there. */
void tw__remove_empty_ones(RedisModuleCtx *ctx);

/* ---- the tick (tick.c) --------------------------------------------------------------------------------------- */

void tw__tick_start(RedisModuleCtx *ctx);
/* Sees to it that the server's timer comes at `ms` at the latest. */
void tw__arm(uint64_t ms);
/* As tw__arm(), for whatever comes first of all that waits. */
void tw__arm_next(void);
/* Ten times a second: steps of the clock, removed schedules that came from another thread. */
void tw__tick_cron(void);
/* While a data set is loaded, nothing is due. */
void tw__tick_loading(bool begun);
uint32_t tw__tick_budget_tasks(void);
uint32_t tw__tick_budget_us(void);

/* ---- delivery (deliver.c) ------------------------------------------------------------------------------------ */

/* Delivers a task that is filed nowhere; afterwards it is gone, filed again, or held by its route.
 * Returns TW__DEFER_NONE, or why nothing at all can be delivered now: then the task is filed nowhere still. */
enum tw__defer tw__deliver(RedisModuleCtx *ctx, struct tw__task *task, uint64_t now_ms);

enum tw__drained {
    TW__DRAINED,          /* *delivered says how many; 0: none can be */
    TW__DRAINED_NONE_YET, /* the time was over while each was refused: the next call goes on behind these */
    TW__DRAIN_FORBIDDEN /* the caller may not write the target of one; nothing was delivered, the error has been sent */
};

/* Delivers up to `limit` of a schedule's tasks whatever their time, for about 20 ms. */
enum tw__drained tw__deliver_now(RedisModuleCtx *ctx, struct tw__schedule *schedule, uint64_t limit,
                                 uint64_t *delivered);

/* Whether deliveries may be made at all, and if not, why. */
enum tw__defer tw__deliver_allowed(RedisModuleCtx *ctx);

/* Lateness of what was delivered: the value that `share` of all do not exceed, in us. */
uint64_t tw__lateness_us(double share);
uint64_t tw__lateness_us_max(void);

/* That of the past ten seconds, and how many deliveries there were. */
struct tw__lateness {
    uint64_t fired, p50_us, p90_us, p99_us, p999_us, max_us;
};
struct tw__lateness tw__lateness_recent(void);
/* The same of the past minute: 54 to 60 seconds. */
struct tw__lateness tw__lateness_minute(void);

/* ---- a batch of deliveries (batch.c) -------------------------------------------------------------------------- */

/* The schedule has part in the batch. */
void tw__batch_touch(struct tw__schedule *schedule);

/* A task has been delivered, or given up: it leaves, or is filed for its next time. */
void tw__batch_go_on(struct tw__schedule *schedule, struct tw__task *task, uint64_t now_ms);

/* A task that can never be delivered leaves for good, though it repeats. */
void tw__batch_end_task(struct tw__schedule *schedule, struct tw__task *task);

/* LATE DROP: passes over what is too late. Returns whether the task has been dealt with. */
bool tw__batch_drop_late(struct tw__schedule *schedule, struct tw__task *task, uint64_t late_ms,
                         uint64_t now_ms);

/* From here on a batch is open; one at a time. */
void tw__batch_begin(RedisModuleCtx *ctx);

/* Ends it: replicates what left the schedules, tells of it, removes the empty ones. */
void tw__batch_finish(void);

/* Whether one is open: then the server itself, or a handler of another module, calls us. */
bool tw__batch_open(void);

/* The server will be called for a task; and has been: returns whether the task is unchanged. */
void tw__batch_watch(struct tw__task *task);
bool tw__batch_same(const struct tw__task *task);

/* Whether since tw__batch_watch() any schedule may have been looked at, changed or removed. */
bool tw__batch_disturbed(void);

/* Sees to it that nobody finds a task that has been delivered, nor puts one in its place before it has left: to be called
 * before a schedule is looked at or changed by anybody but the batch. */
void tw__batch_settle(void);

/* A schedule is to be removed: the batch has nothing to do with it any more. */
void tw__batch_forget(struct tw__schedule *schedule);

/* Strings for the server, without a context. */
RedisModuleString *tw__new_string(struct tw__bytes bytes);
RedisModuleString *tw__new_number(uint64_t number);

/* ---- arguments (arguments.c) ----------------------------------------------------------------------------------- */

struct tw__bytes tw__bytes_of(const RedisModuleString *string);

/* Whether an argument is this word, without regard to case. */
bool tw__is_word(RedisModuleString *argument, const char *word);

/* A string as an error or the log may show it: short, and without bytes that would end the line. Writes it to `text`, which
 * has room for TW__SHOWN_MAX, and returns that. */
enum { TW__SHOWN_MAX = 68 };
const char *tw__shown(const RedisModuleString *argument, char *text);

/* A number within bounds; false: an error that names the argument has been sent. */
bool tw__number(RedisModuleCtx *ctx, RedisModuleString *argument, const char *what, long long min,
                long long max, uint64_t *number);

/* An option with one value. */
struct tw__option {
    const char *word;
    RedisModuleString *value; /* NULL: it was not given */
};

/* Reads options in any order, each at most once; the list ends with a NULL word. `expected` names them all. False: the
 * error has been sent. */
bool tw__options(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, struct tw__option *options,
                 const char *expected);

/* Reads the value of an option, if it was given. */
bool tw__option_number(RedisModuleCtx *ctx, const struct tw__option *option, long long min, long long max,
                       uint64_t *number);

/* Answers with an error: `what` is this argument, and something else was expected. */
int tw__error_about(RedisModuleCtx *ctx, RedisModuleString *argument, const char *what, const char *expected);

/* ---- rights (rights.c) ----------------------------------------------------------------------------------------- */

/* Who called a command, for as long as the command runs. */
struct tw__caller {
    RedisModuleUser *user;     /* NULL: the server, or a user that there is not */
    RedisModuleString *denied; /* the first key that it may not write */
    bool is_server;
};
void tw__caller_init(struct tw__caller *caller, RedisModuleCtx *ctx);
void tw__caller_fini(struct tw__caller *caller);

/* Whether that is nobody: the log, the replication link, another module that calls as nobody. */
bool tw__caller_is_server(RedisModuleCtx *ctx);

/* Whether it may write a key. If not, the key is remembered for the error. */
bool tw__caller_may_write(struct tw__caller *caller, RedisModuleString *key);

/* The same for the target of tasks (deliver.c). */
bool tw__caller_may_deliver(struct tw__caller *caller, struct tw__route *route);

/* Answers with the error that names the key, and notes it in ACL LOG. */
int tw__caller_error(const struct tw__caller *caller, RedisModuleCtx *ctx);

/* ---- the rest ------------------------------------------------------------------------------------------------ */

int tw__commands_register(RedisModuleCtx *ctx);
int tw__queries_register(RedisModuleCtx *ctx);
int tw__docs_register(RedisModuleCtx *ctx);
int tw__config_register(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);
int tw__info_register(RedisModuleCtx *ctx);
int tw__events_register(RedisModuleCtx *ctx);
int tw__type_register(RedisModuleCtx *ctx);

/* A key's value goes, or goes elsewhere (events.c; the data type calls it). */
void tw__unlinked(RedisModuleKeyOptCtx *context, const void *value);

/* Whether a data set is being loaded, whatever the server's flag says (events.c). */
bool tw__loading(void);

/* Reads a setting of the server's; `usual` where CONFIG has been renamed. */
void tw__server_setting(RedisModuleCtx *ctx, const char *name, const char *usual, char *value, size_t room);

/* Takes note of the server's settings that INFO warns by. */
void tw__info_settings(RedisModuleCtx *ctx);

/* Mends an append-only file that was cut off: to be called before it is loaded, and after that (mend.c). */
void tw__mend_begin(RedisModuleCtx *ctx);
void tw__mend_finish(RedisModuleCtx *ctx);

/* What endangers tasks with the server's present configuration; "none" if nothing does. */
const char *tw__warning(RedisModuleCtx *ctx);
const char *tw__durability(RedisModuleCtx *ctx);

#endif
