/* SPDX-License-Identifier: MIT
 *
 * A module that does what other modules may do. When the server notifies it of an awaited event, it calls a
 * command in the middle of the event.
 *
 * MEDDLE event skip times command [argument ...]
 *     Ignores the next `skip` events of this name, then calls the command at the next `times` events.
 * MEDDLE.DONE
 *     Replies with the number of calls, and with the reply of the last call.
 * MEDDLE.CALL USER|SERVER command [argument ...]
 *     Calls a command at once, with the rights of the user or with all rights.
 * MEDDLE.THREAD command [argument ...]
 *     Calls a command on a thread, while the server sleeps. MEDDLE.DONE then replies with the memory that was
 *     in use immediately after the call.
 */
#include <pthread.h>
#include <redismodule.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { WORDS_MAX = 64 };

static RedisModuleString *word[WORDS_MAX];
static int words;
static long long skip, times, done;
static char answered[256];
static bool meddling;
static char awaited[32];

static void remember(RedisModuleCallReply *reply)
{
    size_t size = 0;
    const char *text = reply == NULL ? "none" : RedisModule_CallReplyProto(reply, &size);
    if (reply == NULL)
        size = 4;
    if (size > sizeof answered - 1)
        size = sizeof answered - 1;
    for (size_t i = 0; i < size; i++)
        answered[i] = text[i];
    answered[size] = '\0';
}

static int on_key(RedisModuleCtx *ctx, int type, const char *event, RedisModuleString *key)
{
    (void)type, (void)key;
    if (meddling || words == 0 || strcmp(event, awaited) != 0 || skip-- > 0 || times == 0)
        return REDISMODULE_OK;
    skip = 0;
    times--;
    done++;
    meddling = true; /* it is notified of its own writes too */
    RedisModuleCallReply *reply =
        RedisModule_Call(ctx, RedisModule_StringPtrLen(word[0], NULL), "!Ev", word + 1, (size_t)words - 1);
    remember(reply);
    if (reply != NULL)
        RedisModule_FreeCallReply(reply);
    meddling = false;
    return REDISMODULE_OK;
}

static int meddle(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    if (argc < 5 || argc - 4 > WORDS_MAX || RedisModule_StringToLongLong(argv[2], &skip) != REDISMODULE_OK ||
        RedisModule_StringToLongLong(argv[3], &times) != REDISMODULE_OK)
        return RedisModule_ReplyWithError(ctx, "ERR MEDDLE event skip times command [argument ...]");
    snprintf(awaited, sizeof awaited, "%s", RedisModule_StringPtrLen(argv[1], NULL));
    for (int i = 0; i < words; i++)
        RedisModule_FreeString(NULL, word[i]);
    words = argc - 4;
    for (int i = 0; i < words; i++)
        word[i] = RedisModule_CreateStringFromString(NULL, argv[i + 4]);
    done = 0;
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}

static int meddled(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    (void)argv, (void)argc;
    RedisModule_ReplyWithArray(ctx, 2);
    RedisModule_ReplyWithLongLong(ctx, done);
    return RedisModule_ReplyWithCString(ctx, answered);
}

static int call(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    if (argc < 3)
        return RedisModule_WrongArity(ctx);
    bool user = strcmp(RedisModule_StringPtrLen(argv[1], NULL), "USER") == 0;
    RedisModuleCallReply *reply = RedisModule_Call(ctx, RedisModule_StringPtrLen(argv[2], NULL),
                                                   user ? "!CEv" : "!Ev", argv + 3, (size_t)argc - 3);
    if (reply == NULL)
        return RedisModule_ReplyWithError(ctx, "ERR no reply");
    RedisModule_ReplyWithCallReply(ctx, reply);
    RedisModule_FreeCallReply(reply);
    return REDISMODULE_OK;
}

static void *call_on_thread(void *data)
{
    (void)data;
    RedisModuleCtx *ctx = RedisModule_GetThreadSafeContext(NULL);
    RedisModule_ThreadSafeContextLock(ctx);
    RedisModuleCallReply *reply =
        RedisModule_Call(ctx, RedisModule_StringPtrLen(word[0], NULL), "!Ev", word + 1, (size_t)words - 1);
    int error;
    RedisModuleServerInfoData *info = RedisModule_GetServerInfo(ctx, "memory");
    snprintf(answered, sizeof answered, "%llu",
             RedisModule_ServerInfoGetFieldUnsigned(info, "used_memory", &error));
    RedisModule_FreeServerInfo(ctx, info);
    if (reply != NULL)
        RedisModule_FreeCallReply(reply);
    done++;
    RedisModule_ThreadSafeContextUnlock(ctx);
    RedisModule_FreeThreadSafeContext(ctx);
    return NULL;
}

static int call_thread(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    pthread_t thread;
    if (argc < 2 || argc - 1 > WORDS_MAX)
        return RedisModule_WrongArity(ctx);
    for (int i = 0; i < words; i++)
        RedisModule_FreeString(NULL, word[i]);
    awaited[0] = '\0';
    done = 0;
    words = argc - 1;
    for (int i = 0; i < words; i++)
        word[i] = RedisModule_CreateStringFromString(NULL, argv[i + 1]);
    if (pthread_create(&thread, NULL, call_on_thread, NULL) != 0)
        return RedisModule_ReplyWithError(ctx, "ERR no thread");
    pthread_detach(thread);
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    (void)argv, (void)argc;
    if (RedisModule_Init(ctx, "meddler", 1, REDISMODULE_APIVER_1) == REDISMODULE_ERR ||
        RedisModule_CreateCommand(ctx, "MEDDLE", meddle, "", 0, 0, 0) == REDISMODULE_ERR ||
        RedisModule_CreateCommand(ctx, "MEDDLE.DONE", meddled, "", 0, 0, 0) == REDISMODULE_ERR ||
        RedisModule_CreateCommand(ctx, "MEDDLE.CALL", call, "write", 0, 0, 0) == REDISMODULE_ERR ||
        RedisModule_CreateCommand(ctx, "MEDDLE.THREAD", call_thread, "", 0, 0, 0) == REDISMODULE_ERR)
        return REDISMODULE_ERR;
    return RedisModule_SubscribeToKeyspaceEvents(
        ctx, REDISMODULE_NOTIFY_ALL | REDISMODULE_NOTIFY_MODULE | REDISMODULE_NOTIFY_NEW, on_key);
}
