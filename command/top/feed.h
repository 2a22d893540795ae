/* SPDX-License-Identifier: MIT
 *
 * The source of `tickwheel top`: a scheduler's socket (feed_sched.c), a Redis server (feed_redis.c), or a file
 * of tasks (feed_store.c, which command.h declares). A feed connects when it is read, and connects again if the
 * connection was lost. So the process that it watches may end and start again.
 */
#ifndef COMMAND_FEED_H
#define COMMAND_FEED_H

#include "reading.h"
#include "top_options.h"

enum { FEED_ERROR = 320, FEED_PATIENCE_S = 3 };

/* The functions of a feed. The structure of each kind of feed begins with this one. */
struct feed {
    bool (*read)(struct feed *feed, struct reading *reading, char error[FEED_ERROR]);
    void (*free)(struct feed *feed);
};

/* Make a feed. Return NULL if there is no memory. The options must outlive the feed. */
struct feed *feed_sched(const struct top_options *options);
struct feed *feed_redis(const struct top_options *options);

/* Reads once. Waits at most some seconds (FEED_PATIENCE_S for each answer). On failure, returns false and
 * writes the reason to `error`, as text for people. */
static inline bool feed_read(struct feed *feed, struct reading *reading, char error[FEED_ERROR])
{
    return feed->read(feed, reading, error);
}

static inline void feed_free(struct feed *feed)
{
    feed->free(feed);
}

#endif
