/* SPDX-License-Identifier: MIT
 *
 * Who calls a command, and which keys the caller may write.
 */
#ifndef TW_REDIS_RIGHTS_H
#define TW_REDIS_RIGHTS_H

#include "shared.h"

/* Who called a command, for as long as the command runs. */
struct tw__redis_caller {
    RedisModuleUser *user;     /* NULL: the server, or a user that there is not */
    RedisModuleString *denied; /* the first key that it may not write */
    bool is_server;
};
void tw__redis_caller_init(struct tw__redis_caller *caller, RedisModuleCtx *ctx);
void tw__redis_caller_fini(struct tw__redis_caller *caller);

/* Whether the append-only file or the primary says it. The server's loading flag does not tell: a client's
 * DEBUG RELOAD may have ended it while the file is replayed (events.c). */
bool tw__redis_caller_is_log(RedisModuleCtx *ctx);

/* Whether a client's command comes while a data set is loaded, in a script as well. The server lets none
 * through, unless a client's DEBUG RELOAD has ended its loading flag (events.c). It would not log the command,
 * and later commands of the file would undo it. Commands of the file, of the primary, and calls of another
 * module while a command of the file is replayed, are no client's. */
bool tw__redis_caller_is_early(RedisModuleCtx *ctx);

/* Whether it may write a key. If not, the key is remembered for the error. */
bool tw__redis_caller_may_write(struct tw__redis_caller *caller, RedisModuleString *key);

/* The same for the target of tasks. */
bool tw__redis_caller_may_deliver(struct tw__redis_caller *caller, struct tw__redis_route *route);

/* Answers with the error that names the key, and notes it in ACL LOG. */
int tw__redis_caller_error(const struct tw__redis_caller *caller, RedisModuleCtx *ctx);

#endif
