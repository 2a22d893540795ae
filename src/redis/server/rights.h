/* SPDX-License-Identifier: MIT
 *
 * Who calls a command, and which keys the caller may write.
 */
#ifndef TW_REDIS_RIGHTS_H
#define TW_REDIS_RIGHTS_H

#include "shared.h"

/* Who called a command, for as long as the command runs. */
struct tw__redis_caller {
    RedisModuleUser *user;     /* NULL: the server, or a user that does not exist */
    RedisModuleString *denied; /* the first key that the user may not write */
    bool is_server;
};
void tw__redis_caller_init(struct tw__redis_caller *caller, RedisModuleCtx *ctx);
void tw__redis_caller_fini(struct tw__redis_caller *caller);

/* Returns whether the AOF or the primary sends the command. The server's loading flag cannot tell: a client's
 * DEBUG RELOAD may have cleared it while the AOF is replayed (events.c). */
bool tw__redis_caller_is_log(RedisModuleCtx *ctx);

/* Returns whether a client calls the command, directly or in a script, while a data set is loaded. The server
 * refuses such commands, unless a client's DEBUG RELOAD has cleared its loading flag (events.c). Then the
 * server would not log the command, and later commands of the AOF would undo it. These callers are not clients:
 * - the AOF
 * - the primary
 * - another module, while a command of the AOF is replayed */
bool tw__redis_caller_is_early(RedisModuleCtx *ctx);

/* Returns whether the caller may write the target of a route. If not, remembers the key for the error. */
bool tw__redis_caller_may_deliver(struct tw__redis_caller *caller, struct tw__redis_route *route);

/* Replies with an error that names the key, and notes the key in ACL LOG. */
void tw__redis_caller_error(const struct tw__redis_caller *caller, RedisModuleCtx *ctx);

#endif
