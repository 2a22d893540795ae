/* SPDX-License-Identifier: MIT
 *
 * Put, send and move.
 */
#ifndef TW_TASK_PUT_H
#define TW_TASK_PUT_H

#include "task.h"

void tw__task_put(const struct tw__task *old, const struct tw__task_call *call, uint64_t now_ms,
                  struct tw__task_outcome *outcome);
void tw__task_move(const struct tw__task *old, const struct tw__task_call *call, uint64_t now_ms,
                   struct tw__task_outcome *outcome);

#endif
