/* SPDX-License-Identifier: MIT
 *
 * A worker ends its attempt, or holds on to it. A token that is not the task's changes nothing: the task was
 * taken again, is dead or gone. After its lease an attempt can still be acknowledged, until the task is taken
 * again: the work was done, only late.
 */
#include "commands.h"

#include <base/error_text.h>

#include "delivery/purge.h"
#include "delivery/workers.h"
#include "keyspace/keys.h"
#include "queues/lease.h"
#include "queues/queue.h"
#include "server/arguments.h"
#include "server/shared.h"
#include "server/strings.h"

/* The task with an id, if the token is its token; else NULL. */
static struct tw__redis_task *find_task(const struct tw__redis_queue *queue, RedisModuleString *name,
                                        RedisModuleString *token)
{
    struct tw__redis_task *task = tw__redis_changes_find(queue, name);
    return task != NULL && tw__redis_lease_has_token(task, tw__redis_token_read(token)) ? task : NULL;
}

/* The same if the task is leased. */
static struct tw__redis_task *find_leased(const struct tw__redis_queue *queue, RedisModuleString *name,
                                          RedisModuleString *token)
{
    struct tw__redis_task *task = find_task(queue, name, token);
    return task != NULL && tw__redis_task_is_leased(task) ? task : NULL;
}

/* ---- TW.ACK ---------------------------------------------------------------------------------------------- */

/* The memory of tasks that are ended together is fetched ahead: first the table's directory, some tasks later
 * the place in the table, and then the task. Otherwise each task would wait for all three. */
enum { ACKS_AHEAD = 4, SEEN = 3 * ACKS_AHEAD };

struct foresight {
    const struct tw__redis_queue *queue;
    RedisModuleString **pair; /* id, token, id, token, and so on */
    int count, looked;        /* pairs, and those among them whose hash is known */
    uint64_t hash[SEEN];      /* of the last ids that were looked at */
};

/* Fetches memory for the pairs after pair `i`. */
static void look_ahead(struct foresight *ahead, int i)
{
    const struct tw__redis_table *table = &ahead->queue->tasks;
    for (; ahead->looked < ahead->count && ahead->looked < i + SEEN; ahead->looked++) {
        uint64_t hash = tw__redis_queue_hash(tw__redis_shared.queues,
                                             tw__redis_string_bytes(ahead->pair[(size_t)ahead->looked * 2]));
        tw__redis_table_prefetch_directory(table, hash);
        ahead->hash[ahead->looked % SEEN] = hash;
    }
    if (i + 2 * ACKS_AHEAD < ahead->count)
        tw__redis_table_prefetch(table, ahead->hash[(i + 2 * ACKS_AHEAD) % SEEN]);
    if (i + ACKS_AHEAD < ahead->count)
        tw__redis_queue_foresee_removal(ahead->queue, ahead->hash[(i + ACKS_AHEAD) % SEEN]);
}

/* Whether the arguments are ids with their tokens. */
static bool are_pairs(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    if (argc % 2 != 0)
        return tw__redis_argument_missing(ctx, "the token of the last id", "id token [id token ...]");
    return tw__redis_argument_ids(ctx, argv, argc, 2);
}

/* TW.ACK queue id token [id token ...] */
int tw__redis_ack_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    struct tw__redis_queue *queue;
    long long done = 0;
    if (argc < 3)
        return tw__redis_wrong_arity(ctx);
    if (!are_pairs(ctx, argv + 2, argc - 2) || !tw__redis_keys_open(ctx, argv[1], &queue))
        return REDISMODULE_OK;
    if (queue == NULL)
        return RedisModule_ReplyWithLongLong(ctx, 0);
    uint64_t now_ms = tw__redis_now_ms();
    struct foresight ahead = {.queue = queue, .pair = argv + 2, .count = argc / 2 - 1};
    for (int i = 2; i < argc; i += 2) {
        if (ahead.count > 1)
            look_ahead(&ahead, i / 2 - 1);
        struct tw__redis_task *task = find_task(queue, argv[i], argv[i + 1]);
        if (task == NULL)
            continue;
        tw__redis_count(queue, TW__REDIS_COALESCED, tw__redis_task_missed_periods(task));
        if (tw__redis_task_stage(task) == TW__TASK_REPLACED)
            tw__redis_lease_end_replaced(queue, task, now_ms, now_ms, &tw__redis_shared.log);
        else
            tw__redis_lease_done(queue, task, now_ms, &tw__redis_shared.log);
        done++;
    }
    tw__redis_count(queue, TW__REDIS_DONE, (uint64_t)done);
    if (done > 0)
        tw__redis_changes_close(ctx, argv[1], "tw.ack");
    return RedisModule_ReplyWithLongLong(ctx, done);
}

/* ---- TW.NACK --------------------------------------------------------------------------------------------- */

/* The arguments of one TW.NACK. */
struct nack {
    uint64_t at_ms; /* 0: after the backoff */
    bool dead, back;
    bool time_given, text_given; /* IN or AT; ERROR */
    struct tw__redis_bytes error;
};

/* Reads the text of ERROR from `count` arguments. A long text is cut, and never refused: the attempt has failed
 * however long the text is. For the same reason the text is left out while memory is full. */
static bool read_text(RedisModuleCtx *ctx, RedisModuleString **argv, int count, struct nack *nack)
{
    if (count == 0)
        return tw__redis_refuse(ctx, "ERR ERROR has no value: expected a text, of which %d bytes are kept",
                                TW__TASK_ERROR_MAX);
    nack->error = tw__redis_string_bytes(argv[0]);
    nack->error.size =
        tw__redis_gate_is_full(ctx) ? 0 : tw__text_size(nack->error.at, nack->error.size, TW__TASK_ERROR_MAX);
    return true;
}

/* Reads IN ms or AT unix-ms from `count` arguments. */
static bool read_time(RedisModuleCtx *ctx, RedisModuleString **argv, int count, struct nack *nack)
{
    uint64_t now_ms;
    if (!tw__redis_argument_time(ctx, argv, count, &now_ms, &nack->at_ms))
        return false;
    nack->at_ms += nack->at_ms == 0; /* AT 0 is a time too, and long past */
    return true;
}

/* Reads the option at argv[0] of `count` arguments, with its value. Returns how many arguments it takes, or 0
 * after an error reply. */
static int read_option(RedisModuleCtx *ctx, RedisModuleString **argv, int count, struct nack *nack)
{
    bool text = tw__redis_argument_is(argv[0], "ERROR"), dead = tw__redis_argument_is(argv[0], "DEAD");
    bool back = tw__redis_argument_is(argv[0], "BACK");
    bool time = tw__redis_argument_is(argv[0], "IN") || tw__redis_argument_is(argv[0], "AT");
    if (!text && !dead && !back && !time) {
        tw__redis_argument_error(ctx, argv[0], "the option", "IN ms, AT unix-ms, DEAD, BACK or ERROR text");
        return 0;
    }
    bool both = dead ? nack->time_given || nack->back : nack->dead; /* a death has no next attempt */
    if ((text && nack->text_given) || (time && nack->time_given) || (dead && nack->dead) ||
        (back && nack->back) || (both && !text)) {
        tw__redis_argument_error(
            ctx, argv[0], "the option",
            "each option at most once, at most one of IN ms, AT unix-ms and DEAD, and BACK without DEAD");
        return 0;
    }
    if ((back && nack->text_given) || (text && nack->back)) {
        tw__redis_refuse(ctx, "ERR BACK has an error text: expected none, as nothing has failed");
        return 0;
    }
    nack->text_given |= text;
    nack->time_given |= time;
    nack->dead |= dead;
    nack->back |= back;
    if (dead || back)
        return 1;
    return (text ? read_text(ctx, argv + 1, count - 1, nack) : read_time(ctx, argv, count, nack)) ? 2 : 0;
}

/* Reads [IN ms|AT unix-ms|DEAD] [ERROR text], or BACK [IN ms|AT unix-ms], in any order. */
static bool read_nack(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, struct nack *nack)
{
    *nack = (struct nack){.error = {"", 0}};
    for (int at = 0, read; at < argc; at += read) {
        read = read_option(ctx, argv + at, argc - at, nack);
        if (read == 0)
            return false;
    }
    return true;
}

/* Fails the attempt. Returns the time of the next one, or 0 if the task is dead. */
static uint64_t end_failed(RedisModuleCtx *ctx, RedisModuleString *name, struct tw__redis_queue *queue,
                           struct tw__redis_task *task, const struct nack *nack)
{
    struct tw__redis_buffer *log = &tw__redis_shared.log;
    uint64_t at_ms =
        tw__redis_offer_fail(queue, task, nack->error, nack->at_ms, nack->dead, tw__redis_now_ms(), log);
    bool purged = at_ms == 0 && tw__redis_purge_excess(queue, log);
    tw__redis_count(queue, TW__REDIS_FAILED, 1);
    tw__redis_changes_close(ctx, name, at_ms == 0 ? "tw.dead" : "tw.nack");
    if (purged)
        tw__redis_keys_changed(ctx, name, "tw.purge");
    return at_ms;
}

/* Gives the task back, until `at_ms` or, if that is 0, at once. Returns the time of its next attempt. */
static uint64_t hand_back(RedisModuleCtx *ctx, RedisModuleString *name, struct tw__redis_queue *queue,
                          struct tw__redis_task *task, uint64_t at_ms)
{
    struct tw__redis_buffer *log = &tw__redis_shared.log;
    uint64_t now_ms = tw__redis_now_ms();
    bool at_once = at_ms == 0;
    if (at_once) {
        at_ms = tw__redis_task_due(tw__redis_lease_give_back(queue, task, now_ms, log));
        tw__redis_workers_wake(queue);
    } else {
        tw__redis_lease_put_off(queue, task, at_ms, now_ms, log);
    }
    tw__redis_count(queue, TW__REDIS_BACK, 1);
    tw__redis_changes_close(ctx, name, "tw.back");
    if (at_once)
        tw__redis_keys_changed(ctx, name, "tw.ready");
    return at_ms == 0 ? 1 : at_ms; /* 0 would say that the task is dead */
}

/* Ends an attempt behind which a new task stands. It counts as what it is, and has no other effect. Returns
 * when the new task comes. */
static uint64_t end_attempt(RedisModuleCtx *ctx, RedisModuleString *name, struct tw__redis_queue *queue,
                            struct tw__redis_task *task, bool back)
{
    uint64_t now_ms = tw__redis_now_ms(),
             next_ms = tw__redis_lease_end_replaced(queue, task, now_ms, now_ms, &tw__redis_shared.log);
    tw__redis_count(queue, back ? TW__REDIS_BACK : TW__REDIS_FAILED, 1);
    tw__redis_changes_close(ctx, name, back ? "tw.back" : "tw.nack");
    return next_ms;
}

/* TW.NACK queue id token [[IN ms|AT unix-ms|DEAD] [ERROR text]|BACK [IN ms|AT unix-ms]] */
int tw__redis_nack_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    struct tw__redis_queue *queue;
    struct nack nack;
    if (argc < 4)
        return tw__redis_wrong_arity(ctx);
    if (!tw__redis_argument_ids(ctx, argv + 2, 1, 1) || !read_nack(ctx, argv + 4, argc - 4, &nack) ||
        !tw__redis_keys_open(ctx, argv[1], &queue))
        return REDISMODULE_OK;
    struct tw__redis_task *task = find_leased(queue, argv[2], argv[3]);
    if (task == NULL)
        return RedisModule_ReplyWithNull(ctx);
    bool replaced = tw__redis_task_stage(task) == TW__TASK_REPLACED;
    uint64_t at_ms = replaced    ? end_attempt(ctx, argv[1], queue, task, nack.back)
                     : nack.back ? hand_back(ctx, argv[1], queue, task, nack.at_ms)
                                 : end_failed(ctx, argv[1], queue, task, &nack);
    return RedisModule_ReplyWithLongLong(ctx, (long long)at_ms);
}

/* ---- TW.TOUCH -------------------------------------------------------------------------------------------- */

/* TW.TOUCH queue id token LEASE ms */
int tw__redis_touch_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    struct tw__redis_queue *queue;
    struct tw__redis_option options[] = {tw__redis_option_of("LEASE", TW__REDIS_MS, TW__TASK_IN_LEASE, NULL),
                                         {.word = NULL}};
    uint64_t lease_ms = 0;
    if (argc < 4)
        return tw__redis_wrong_arity(ctx);
    if (!tw__redis_argument_ids(ctx, argv + 2, 1, 1) ||
        !tw__redis_argument_options(ctx, argv + 4, argc - 4, options, "LEASE ms") ||
        !tw__redis_argument_option_ms(ctx, &options[0], &lease_ms) ||
        !tw__redis_keys_open(ctx, argv[1], &queue))
        return REDISMODULE_OK;
    struct tw__redis_task *task = find_leased(queue, argv[2], argv[3]);
    if (task == NULL)
        return RedisModule_ReplyWithNull(ctx);
    uint64_t now_ms = tw__redis_clock_now(ctx), end_ms = now_ms + lease_ms;
    tw__redis_lease_extend(queue, task, (uint32_t)lease_ms, false, now_ms, &tw__redis_shared.log);
    tw__redis_changes_close(ctx, argv[1], "tw.touch");
    return RedisModule_ReplyWithLongLong(ctx, (long long)end_ms);
}
