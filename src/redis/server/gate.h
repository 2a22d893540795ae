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

#endif
