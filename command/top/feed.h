/* SPDX-License-Identifier: MIT
 *
 * Where `tickwheel top` reads from: a scheduler's socket (feed_sched.c) or a Redis server (feed_redis.c). A feed
 * connects when it is read, and again when the connection was lost, so that whoever is watched may go away and come
 * back.
 */
#ifndef TW_TOOLS_FEED_H
#define TW_TOOLS_FEED_H

#include "reading.h"
#include "top_options.h"

enum { TW_FEED_ERROR = 320, TW_FEED_PATIENCE_S = 3 };

/* What a kind of feed is made of; it begins with this. */
struct tw_feed {
    bool (*read)(struct tw_feed *feed, struct tw_reading *reading, char error[TW_FEED_ERROR]);
    void (*free)(struct tw_feed *feed);
};

/* NULL: no memory. The options must outlive it. */
struct tw_feed *tw_feed_sched(const struct tw_top_options *options);
struct tw_feed *tw_feed_redis(const struct tw_top_options *options);

/* Reads once; waits for at most some seconds. False: it could not be read, and `error` says why, for people. */
static inline bool tw_feed_read(struct tw_feed *feed, struct tw_reading *reading, char error[TW_FEED_ERROR])
{
    return feed->read(feed, reading, error);
}

static inline void tw_feed_free(struct tw_feed *feed)
{
    feed->free(feed);
}

#endif
