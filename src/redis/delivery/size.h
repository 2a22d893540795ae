/* SPDX-License-Identifier: MIT
 *
 * Tasks that no Stream can take, because they are too big.
 */
#ifndef TW_REDIS_SIZE_H
#define TW_REDIS_SIZE_H

#include "call.h"

/* Returns whether no Stream will ever take the task. A List takes it. */
bool tw__redis_size_is_too_big(const struct tw__redis_delivery *delivery);

/* Writes the error to `error` with which the server would refuse such a task. */
void tw__redis_size_error(struct tw__redis_delivery *delivery);

#endif
