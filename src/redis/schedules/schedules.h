/* SPDX-License-Identifier: MIT
 *
 * The beginning and the end of all schedules.
 */
#ifndef TW_REDIS_SCHEDULES_H
#define TW_REDIS_SCHEDULES_H

#include "state.h"

/* No schedules yet, at these times of the wall clock and of a monotonic clock. `forget` frees strings of the
 * server's, which routes and schedules keep for it. Returns NULL: no memory for wheels. */
struct tw__redis_schedules *tw__redis_schedules_new(const struct tw__redis_memory *memory,
                                                    void (*forget)(void *string), uint64_t now_ms,
                                                    uint64_t monotonic_ms);
/* Requires: all schedules have been buried. Frees these too. */
void tw__redis_schedules_free(struct tw__redis_schedules *schedules);

#endif
