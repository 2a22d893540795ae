/* SPDX-License-Identifier: MIT
 *
 * Where `tickwheel top` reads from: a scheduler's socket (feed_sched.c) or a Redis server (feed_redis.c). A
 * feed connects when it is read, and again when the connection was lost, so that whoever is watched may go away
 * and come back.
 */
#ifndef COMMAND_FEED_H
#define COMMAND_FEED_H

#include "reading.h"
#include "top_options.h"

enum { FEED_ERROR = 320, FEED_PATIENCE_S = 3 };

/* What a kind of feed is made of; it begins with this. */
struct feed {
    bool (*read)(struct feed *feed, struct reading *reading, char error[FEED_ERROR]);
    void (*free)(struct feed *feed);
};

/* NULL: no memory. The options must outlive it. */
struct feed *feed_sched(const struct top_options *options);
struct feed *feed_redis(const struct top_options *options);

/* Reads once; waits for at most some seconds. False: it could not be read, and `error` says why, for people. */
static inline bool feed_read(struct feed *feed, struct reading *reading, char error[FEED_ERROR])
{
    return feed->read(feed, reading, error);
}

static inline void feed_free(struct feed *feed)
{
    feed->free(feed);
}

#endif
