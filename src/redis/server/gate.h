/* SPDX-License-Identifier: MIT
 *
 * Whether the server lets the module write now.
 */
#ifndef TW_REDIS_GATE_H
#define TW_REDIS_GATE_H

#include "shared.h"

/* Returns TW__REDIS_DEFER_NONE if the server may deliver now, or why it may not. Replicas, disks and slots are
 * not asked about: the server itself refuses a call that they do not allow. */
enum tw__redis_defer tw__redis_gate(RedisModuleCtx *ctx);

/* Returns whether this server is a replica. Then its due tasks wait until the primary has delivered them, or
 * given them to workers. */
bool tw__redis_gate_is_replica(RedisModuleCtx *ctx);

/* Returns whether memory is full, so that a command without the flag deny-oom must not take more of it. False
 * for commands of the log and of the primary, which repeat changes that were made before. */
bool tw__redis_gate_is_full(RedisModuleCtx *ctx);

/* Returns why the server has refused a call with this error: TW__REDIS_DEFER_REFUSED if the reason lies in the
 * call, or another reason, which will be over some time. */
enum tw__redis_defer tw__redis_gate_refusal(struct tw__redis_bytes error);

#endif
