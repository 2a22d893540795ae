/* SPDX-License-Identifier: MIT
 *
 * Loads the tasks that are due until the horizon.
 */
#ifndef TW_STORE_HORIZON_H
#define TW_STORE_HORIZON_H

#include "entries.h"

/* Moves the horizon to ten minutes from now. If all entries were dropped before, everything is loaded. Returns:
 * 0 or an error. */
int tw__store_horizon_move(struct tw__store_window *window);

/* An entry of a queue was taken: it may be hungry now. */
void tw__store_horizon_note(struct tw__store_window *window, struct tw__store_queue *queue);

/* Loads tasks of the hungry queues. Returns: 0 or an error. */
int tw__store_horizon_feed(struct tw__store_window *window);

#endif
