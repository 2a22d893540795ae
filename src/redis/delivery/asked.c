/* SPDX-License-Identifier: MIT
 *
 * Redis 7.0 has a fault, and this file keeps the ticks away from it.
 *
 * When a key is ready, the server asks each client that is blocked on the key. It stores the client that it
 * asks in `server.current_client`. If that client is not served, Redis 7.0 does not restore the pointer.
 * Example: two workers are blocked on a queue, and one task becomes ready. The first worker gets the task.
 * The second worker is asked in vain. It remains the current client, although no command of it runs. The same
 * happens to the second consumer in XREADGROUP on a target. The server restores the pointer after each
 * command, so there is no harm within a command. After a tick nobody restores it:
 *
 * - CLIENT KILL frees that client. The next tick reads freed memory in RedisModule_Call(). The server itself
 *   does so too when it expires a key.
 * - While that client lives, the server takes the changes of the next ticks for changes of that client. With
 *   CLIENT TRACKING NOLOOP the client does not hear of them.
 *
 * In one case the server sets the pointer to NULL: when it frees the client to which the pointer points. So
 * the client that is asked last after a tick is one of ours, which has no connection:
 *
 *     tick            XADD, RPUSH, SignalKeyAsReady     note(): the best of these keys
 *                     last(): our client is blocked on that key, behind all others
 *     before sleep    the server asks A: served; B: in vain; ours: in vain. Ours is the current client
 *     sleep
 *     after sleep     over(): our client is freed. No client is the current client
 *     commands        CLIENT KILL B
 *
 * The server asks about the keys in the order in which they were signalled. A tick signals queues after
 * all targets, so the last queue is the last key. Between targets the order is not known: a tick that adds
 * to q1, q2 and q1 has signalled q2 last. So if there are several targets and no queue, our client signals
 * its key again when it is asked, and the server asks the clients of that key once more, after all others. A
 * Stream is better than a List, which a consumer may have emptied by then. The server asks nobody about a
 * missing key.
 *
 * Redis 7.2 and later restore the pointer, and so does Valkey: nothing is noted there.
 *
 * The price is a client that is made and freed, and one more iteration of the event loop, because the server
 * wakes itself up to free a blocked client. That is about 9 us after a tick that added or signalled something.
 *
 * Rejected: to keep a list of waiting workers in the module and let the server ask none of them. Consumers of
 * targets would still be asked in vain. Nor does it help to call nothing, because the server reads the
 * pointer itself.
 */
#include "delivery.h"

enum { MENDED = 0x00070100 }; /* later than each release of Redis 7.0 */

static struct {
    bool needed;            /* the server is one with the fault */
    RedisModuleString *key; /* the best key of this tick, or NULL */
    enum tw__redis_asked what;
    int db;
    bool several;        /* this tick noted other keys too */
    RedisModuleCtx *ctx; /* of our client, from the end of the tick until the event loop wakes up; else NULL */
    bool again;          /* our client signals its key once more when it is asked */
} asked;

void tw__redis_asked_start(void)
{
    asked.needed = RedisModule_GetServerVersion() < MENDED;
}

static void forget_note(void)
{
    if (asked.key != NULL)
        RedisModule_FreeString(NULL, asked.key);
    asked.key = NULL;
    asked.several = false;
}

void tw__redis_asked_note(enum tw__redis_asked what, int db, RedisModuleString *key)
{
    if (!asked.needed || (key == asked.key && db == asked.db))
        return;
    bool several = asked.key != NULL;
    if (!several || what >= asked.what) {
        forget_note();
        asked.key = RedisModule_HoldString(NULL, key);
        asked.what = what;
        asked.db = db;
    }
    asked.several = several;
}

/* The server's callback for our client. The client stays blocked. */
static int on_ready(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    (void)argv;
    (void)argc;
    if (asked.again)
        RedisModule_SignalKeyAsReady(ctx, RedisModule_GetBlockedClientReadyKey(ctx));
    asked.again = false;
    return REDISMODULE_ERR;
}

void tw__redis_asked_last(RedisModuleCtx *ctx)
{
    if (asked.key == NULL)
        return;
    /* A client of an earlier tick is still there while the clock stands still: the server has not asked yet. */
    asked.again = asked.ctx != NULL || (asked.several && asked.what != TW__REDIS_ASKED_QUEUE);
    tw__redis_asked_over();
    asked.ctx = RedisModule_GetDetachedThreadSafeContext(ctx);
    RedisModule_SelectDb(asked.ctx, asked.db);
    RedisModule_BlockClientOnKeys(asked.ctx, on_ready, NULL, NULL, 0, &asked.key, 1, NULL);
    RedisModule_SignalKeyAsReady(asked.ctx, asked.key);
    forget_note();
}

void tw__redis_asked_over(void)
{
    if (asked.ctx != NULL)
        RedisModule_FreeThreadSafeContext(asked.ctx);
    asked.ctx = NULL;
}
