/* SPDX-License-Identifier: MIT
 *
 * A reading of `tickwheel top`, shown in each way that the command has.
 */
#ifndef TESTS_COMMAND_SEEN_H
#define TESTS_COMMAND_SEEN_H

#include "top/feed.h"
#include "top/frame.h"

/* Reads the feed `times` times, as the command does. Each reading is shown as JSON and as frames of several
 * sizes; each error is a line of text. Frees the feed. */
void seen_read(struct feed *feed, int times);

#endif
