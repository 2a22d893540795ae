/* SPDX-License-Identifier: MIT
 *
 * The beginning and the end of all schedules.
 */
#ifndef TW_REDIS_SCHEDULES_H
#define TW_REDIS_SCHEDULES_H

#include "state.h"

/* Makes the state without any schedule, at these times of the wall clock and of a monotonic clock. Routes and
 * schedules keep strings of the server's; `forget` frees such a string. Returns NULL if there is no memory
 * for the wheels. */
struct tw__redis_schedules *tw__redis_schedules_new(const struct tw__redis_memory *memory,
                                                    void (*forget)(void *string), uint64_t now_ms,
                                                    uint64_t monotonic_ms);
/* Frees the state and the buried schedules. Requires: all schedules have been buried. */
void tw__redis_schedules_free(struct tw__redis_schedules *schedules);

#endif
