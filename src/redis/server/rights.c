/* SPDX-License-Identifier: MIT
 *
 * Checks whether the caller of a command may write a key that stands in a task and not among the arguments.
 *
 * The server delivers tasks with all rights, at a time when nobody is there to ask. So the rights count when
 * a task is filed or moved. The server itself checks the target of TW.SEND, which is an argument. We check the
 * targets of TW.MOVE, TW.PROMOTE and TW.REPLAY.
 *
 * A command from the server itself has all rights: from the AOF, from the replication link, or from another
 * module that calls us without a user. In a script the caller is the user who called the script.
 *
 * Redis 7.0 aborts when a module asks for the name of the user and there is no user. So we look a client up
 * by its id, which is safe. The look-up finds nothing if the client belongs to a script or to a module. Then
 * we make a RedisModule_Call() that acts for the user: it fails with ENOTSUP if there is no user. The call
 * has too few arguments, so the server does not execute it.
 *
 * No decision is kept from one command to the next, because any command between them may have changed the
 * user or the rules.
 */
#include "rights.h"

#include <errno.h>
#include <string.h>

#include "arguments.h"
#include "queues/route.h"
#include "strings.h"

#define DEFAULT_USER "default"
static RedisModuleUser *default_user; /* its handle, once it has called */

/* ---- who calls ------------------------------------------------------------------------------------------- */

/* Returns whether there is a user, for a context whose client is not one of the server's connections. */
static bool has_user(RedisModuleCtx *ctx)
{
    if (!RMAPI_FUNC_SUPPORTED(RedisModule_SetContextUser)) /* before 7.0.6 a call cannot act for a user */
        return (RedisModule_GetContextFlags(ctx) & REDISMODULE_CTX_FLAGS_LUA) != 0;
    errno = 0;
    RedisModuleCallReply *reply = RedisModule_Call(ctx, "TW.LEN", "C");
    if (reply != NULL)
        RedisModule_FreeCallReply(reply);
    return errno != ENOTSUP;
}

/* Returns the name of the user, or NULL if the server itself calls. */
static RedisModuleString *name_of_caller(RedisModuleCtx *ctx)
{
    unsigned long long client = RedisModule_GetClientId(ctx);
    if (RedisModule_IsAOFClient(client))
        return NULL;
    errno = 0;
    RedisModuleString *name = RedisModule_GetClientUserNameById(ctx, client);
    if (name != NULL || errno == ENOTSUP)
        return name;
    return has_user(ctx) ? RedisModule_GetCurrentUserName(ctx) : NULL;
}

/* Returns the user with this name. The server never removes its user `default`, not even by ACL LOAD, so the
 * handle of that user is made once. The rules of the user are still checked each time. */
static RedisModuleUser *user_of(RedisModuleString *name)
{
    struct tw__redis_bytes bytes = tw__redis_string_bytes(name);
    if (bytes.size != strlen(DEFAULT_USER) || memcmp(bytes.at, DEFAULT_USER, bytes.size) != 0)
        return RedisModule_GetModuleUserFromUserName(name);
    if (default_user == NULL)
        default_user = RedisModule_GetModuleUserFromUserName(name);
    return default_user;
}

/* Returns whether the call has no user: it comes from the AOF, the replication link, or another module. */
static bool is_server(RedisModuleCtx *ctx)
{
    RedisModuleString *name = name_of_caller(ctx);
    if (name != NULL)
        RedisModule_FreeString(ctx, name);
    return name == NULL;
}

bool tw__redis_caller_is_log(RedisModuleCtx *ctx)
{
    return (RedisModule_GetContextFlags(ctx) & REDISMODULE_CTX_FLAGS_REPLICATED) != 0 ||
           RedisModule_IsAOFClient(RedisModule_GetClientId(ctx));
}

bool tw__redis_caller_is_early(RedisModuleCtx *ctx)
{
    const int let_through = TW__REDIS_LOADING | REDISMODULE_CTX_FLAGS_REPLICATED;
    return tw__redis_loading() && !(RedisModule_GetContextFlags(ctx) & let_through) && !is_server(ctx);
}

void tw__redis_caller_init(struct tw__redis_caller *caller, RedisModuleCtx *ctx)
{
    RedisModuleString *name = name_of_caller(ctx);
    caller->is_server = name == NULL;
    caller->user = name == NULL ? NULL : user_of(name);
    caller->denied = NULL;
    if (name != NULL)
        RedisModule_FreeString(ctx, name);
}

void tw__redis_caller_fini(struct tw__redis_caller *caller)
{
    if (caller->user != NULL && caller->user != default_user)
        RedisModule_FreeModuleUser(caller->user);
    if (caller->denied != NULL)
        RedisModule_FreeString(NULL, caller->denied);
}

/* ---- rights ---------------------------------------------------------------------------------------------- */

/* Returns whether the caller may write a key. If not, remembers the key for the error. */
static bool may_write_key(struct tw__redis_caller *caller, RedisModuleString *key)
{
    /* A user that was removed, or that another module made, is not found and may write nothing. */
    if (caller->user != NULL &&
        RedisModule_ACLCheckKeyPermissions(caller->user, key, REDISMODULE_CMD_KEY_INSERT) == REDISMODULE_OK)
        return true;
    if (caller->denied == NULL)
        caller->denied = RedisModule_CreateStringFromString(NULL, key);
    return false;
}

/* The string of a target is kept for later deliveries. But a queue where each task has its own target does
 * not keep one string for each task. */
enum { TASKS_TO_KEEP_TARGET = 8 };

bool tw__redis_caller_may_deliver(struct tw__redis_caller *caller, struct tw__redis_route *route)
{
    if (caller->is_server || tw__redis_route_plan(route).kind == TW__REDIS_WORKERS)
        return true; /* a task for workers has no target */
    bool kept = route->target != NULL || route->tasks >= TASKS_TO_KEEP_TARGET;
    RedisModuleString *target =
        kept ? tw__redis_string_of_target(route) : tw__redis_string_new(tw__redis_route_plan(route).target);
    bool may = may_write_key(caller, target);
    if (!kept)
        RedisModule_FreeString(NULL, target);
    return may;
}

void tw__redis_caller_error(const struct tw__redis_caller *caller, RedisModuleCtx *ctx)
{
    char text[TW__REDIS_SHOWN_MAX];
    if (caller->user != NULL)
        RedisModule_ACLAddLogEntry(ctx, caller->user, caller->denied, REDISMODULE_ACL_LOG_KEY);
    tw__redis_refuse(ctx, "NOPERM the target of a task is '%s': expected a key that the user may write",
                     tw__redis_string_shown(caller->denied, text));
}
