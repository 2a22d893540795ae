/* SPDX-License-Identifier: MIT
 *
 * The live view of `tickwheel top`.
 */
#ifndef COMMAND_TOP_VIEW_H
#define COMMAND_TOP_VIEW_H

#include "feed.h"
#include "frame.h"
#include "top_options.h"

/* Shows the feed's readings until the user quits. `history` holds the first reading. Takes over the feed,
 * because a thread may still be waiting for an answer at the end. Returns an exit status. */
int top_view(const struct top_options *options, struct feed *feed, struct history *history);

#endif
