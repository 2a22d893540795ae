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

/* Lets the attempt with a token, of the task with an id, have this answer. Returns whether it is that of the
 * task. */
static bool answer(struct tw__redis_queue *queue, RedisModuleString *id, RedisModuleString *token,
                   struct tw__redis_verb *verb, uint64_t now_ms, struct tw__task_outcome *outcome)
{
    struct tw__redis_task *task = tw__redis_changes_find(queue, id);
    if (task == NULL)
        return false;
    struct tw__task_retry retry;
    if (verb->call.verb == TW__TASK_FAILED) {
        retry = tw__redis_workers_retry(task);
        verb->retry = &retry;
    }
    verb->call.token = tw__redis_token_read(token);
    tw__redis_lease_change(queue, task, verb, now_ms, &tw__redis_shared.log, outcome);
    verb->retry = NULL; /* it was of this task */
    return outcome->reply != TW__TASK_NO;
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
    if (!are_pairs(ctx, argv + 2, argc - 2) || !tw__redis_keys_open(ctx, argv[1], &queue))
        return REDISMODULE_OK;
    if (queue == NULL)
        return RedisModule_ReplyWithLongLong(ctx, 0);
    uint64_t now_ms = tw__redis_now_ms();
    struct foresight ahead = {.queue = queue, .pair = argv + 2, .count = argc / 2 - 1};
    struct tw__redis_verb verb = {.call = {.verb = TW__TASK_DONE}};
    struct tw__task_outcome outcome;
    for (int i = 2; i < argc; i += 2) {
        if (ahead.count > 1)
            look_ahead(&ahead, i / 2 - 1);
        done += answer(queue, argv[i], argv[i + 1], &verb, now_ms, &outcome);
    }
    if (done > 0)
        tw__redis_changes_close(ctx, argv[1], "tw.ack");
    return RedisModule_ReplyWithLongLong(ctx, done);
}

/* ---- TW.NACK --------------------------------------------------------------------------------------------- */

/* The arguments of one TW.NACK. */
struct nack {
    uint64_t at_ms;
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
    return tw__redis_argument_time(ctx, argv, count, &now_ms, &nack->at_ms);
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

/* Tells of the end of an attempt, and removes the dead tasks that are too many by now. */
static void tell_end(RedisModuleCtx *ctx, RedisModuleString *name, struct tw__redis_queue *queue, bool back,
                     const struct tw__task_outcome *outcome)
{
    bool died = outcome->reply == TW__TASK_DIED, ready = !died && !outcome->filed,
         purged = died && tw__redis_purge_excess(queue, &tw__redis_shared.log);
    if (ready)
        tw__redis_workers_wake(queue);
    tw__redis_changes_close(ctx, name, died ? "tw.dead" : back ? "tw.back" : "tw.nack");
    if (ready)
        tw__redis_keys_changed(ctx, name, "tw.ready");
    if (purged)
        tw__redis_keys_changed(ctx, name, "tw.purge");
}

/* TW.NACK queue id token [[IN ms|AT unix-ms|DEAD] [ERROR text]|BACK [IN ms|AT unix-ms]] */
int tw__redis_nack_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    struct tw__redis_queue *queue;
    struct nack nack;
    if (!tw__redis_argument_ids(ctx, argv + 2, 1, 1) || !read_nack(ctx, argv + 4, argc - 4, &nack) ||
        !tw__redis_keys_open(ctx, argv[1], &queue))
        return REDISMODULE_OK;
    struct tw__task_outcome outcome;
    struct tw__redis_verb verb = {.call = {.verb = nack.dead   ? TW__TASK_DEAD
                                                   : nack.back ? TW__TASK_BACK
                                                               : TW__TASK_FAILED,
                                           .timed = nack.time_given,
                                           .at_ms = nack.at_ms},
                                  .said = nack.error};
    if (!answer(queue, argv[2], argv[3], &verb, tw__redis_now_ms(), &outcome))
        return RedisModule_ReplyWithNull(ctx);
    tell_end(ctx, argv[1], queue, nack.back, &outcome);
    uint64_t at_ms = outcome.value_ms + (outcome.value_ms == 0 && outcome.reply != TW__TASK_DIED);
    return RedisModule_ReplyWithLongLong(ctx, (long long)at_ms); /* 0 says that the task is dead */
}

/* ---- TW.TOUCH -------------------------------------------------------------------------------------------- */

/* TW.TOUCH queue id token LEASE ms */
int tw__redis_touch_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    struct tw__redis_queue *queue;
    struct tw__redis_option options[] = {tw__redis_option_of("LEASE", TW__REDIS_MS, TW__TASK_IN_LEASE, NULL),
                                         {.word = NULL}};
    uint64_t lease_ms = 0;
    if (!tw__redis_argument_ids(ctx, argv + 2, 1, 1) ||
        !tw__redis_argument_options(ctx, argv + 4, argc - 4, options, "LEASE ms") ||
        !tw__redis_argument_option_ms(ctx, &options[0], &lease_ms) ||
        !tw__redis_keys_open(ctx, argv[1], &queue))
        return REDISMODULE_OK;
    struct tw__redis_verb verb = {.call = {.verb = TW__TASK_TOUCH, .lease_ms = (uint32_t)lease_ms}};
    struct tw__task_outcome outcome;
    if (!answer(queue, argv[2], argv[3], &verb, tw__redis_clock_now(ctx), &outcome))
        return RedisModule_ReplyWithNull(ctx);
    /* As a look shows it. After a small step back of the clock the lease lasts longer. */
    uint64_t end_ms = tw__redis_place_due(queue->queues, tw__redis_changes_find(queue, argv[2]));
    tw__redis_changes_close(ctx, argv[1], "tw.touch");
    return RedisModule_ReplyWithLongLong(ctx, (long long)end_ms);
}
