/* SPDX-License-Identifier: MIT
 *
 * The window: the tasks that are due soon, in a wheel whose ticks are the milliseconds of Unix time. Only the
 * runner's thread uses it.
 */
#ifndef TW_STORE_WINDOW_H
#define TW_STORE_WINDOW_H

#include "ready.h"

enum { TW__STORE_QUEUES = 256 }; /* buckets of the table of queues */

struct tw__store_window {
    struct tw__store_db db; /* a connection of its own, which only reads */
    struct tw_wheel *wheel;
    struct tw__store_queue *queues, *named[TW__STORE_QUEUES];
    uint64_t queue_count;
    struct tw__store_ready ready;
    int64_t paused_count;           /* of the queues */
    uint64_t pause_reads;           /* readings of tw_queue */
    struct tw__store_queue others;  /* has the handler of queues that have none of their own; NULL: none has */
    struct tw__store_entry **taken; /* by their numbers */
    uint64_t taken_mask;
    struct tw__link free;           /* entries */
    struct tw__store_block *blocks; /* their memory */
    uint64_t max_loaded;            /* entries of all queues, roughly */
    uint64_t loaded;
    uint64_t turns;      /* entries that have become ready */
    uint64_t seen_seq;   /* every task with at most this number was looked at */
    uint64_t version;    /* SQLite's data_version at the last look */
    uint64_t load_at_ms; /* when the horizons have to move */
    uint64_t now_ms;     /* of the last look */
    bool broken;         /* a look has failed in the middle */
    char message[TW_STORE_MESSAGE];
};

/* Adds to a hash (FNV-1a). Begin with 0. At most a few thousand things are in each table. */
static inline uint64_t tw__store_hash(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *byte = bytes;
    for (hash ^= 14695981039346656037U; size > 0; size--, byte++)
        hash = (hash ^ *byte) * 1099511628211U;
    return hash;
}

/* Makes a window for at most `max_taken` taken entries; the connection is not open yet. Returns: 0 or
 * TW_ENOMEM. */
int tw__store_window_init(struct tw__store_window *window, uint64_t max_loaded, uint64_t max_taken);
void tw__store_window_fini(struct tw__store_window *window);

/* Adds a queue with the handler of `like`. Returns NULL if there is no memory. */
struct tw__store_queue *tw__store_window_queue(struct tw__store_window *window, const char *name,
                                               const struct tw__store_queue *like);

/* Looks whether the file has changed, and loads the tasks that have come or whose time has come near. With
 * `whole` it looks even if SQLite says that nothing has changed. Returns: 0 or an error. */
int tw__store_window_look(struct tw__store_window *window, uint64_t now_ms, bool whole);

/* Returns whether an entry may be due. */
bool tw__store_window_is_due(const struct tw__store_window *window, uint64_t now_ms);

/* Moves the entries that are due to the ready lists of their queues.
 * Requires: the file was looked at with this time, after the clock had shown it. */
void tw__store_window_expire(struct tw__store_window *window, uint64_t now_ms);

/* When the window has to be looked at next: an entry is due, or the horizons have to move. */
uint64_t tw__store_window_next(const struct tw__store_window *window);

/* Takes the earliest ready entry of the queues that may have another job; NULL: none. */
struct tw__store_entry *tw__store_window_take(struct tw__store_window *window);

/* A taken entry waits for the end of another job of its task, and counts as no job. */
void tw__store_window_hold(struct tw__store_window *window, struct tw__store_entry *entry);

/* Ends the taking of an entry: it goes back to its place in its queue's ready list; or it has a new due time,
 * and waits for it; or it is no task any more. */
void tw__store_window_put_back(struct tw__store_window *window, struct tw__store_entry *entry);
void tw__store_window_again(struct tw__store_window *window, struct tw__store_entry *entry, uint64_t due_ms);
void tw__store_window_forget(struct tw__store_window *window, struct tw__store_entry *entry);

#endif
