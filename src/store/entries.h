/* SPDX-License-Identifier: MIT
 *
 * The entries of the window, and its queues. The essay in window.c is about both.
 */
#ifndef TW_STORE_ENTRIES_H
#define TW_STORE_ENTRIES_H

#include "queues.h"

struct tw__store_window {
    struct tw__store_db db; /* a connection of its own, which only reads */
    struct tw_wheel *wheel;
    struct tw__store_queues queues;
    struct tw__store_queue *hungry; /* the queues whose next tasks have to be loaded */
    struct tw__store_ready ready;
    struct tw__store_place fence;   /* nothing behind it is taken before the hungry queues are fed */
    int64_t paused_count;           /* of the queues */
    uint64_t pause_reads;           /* readings of all rows of tw_queue */
    uint64_t pauses;                /* rows that the last of them has found */
    uint64_t searches;              /* in tw_queue since then, in place of a reading */
    struct tw__store_callee others; /* of queues that have no handler of their own; NULL: there is none */
    struct tw__store_entry **taken; /* by their numbers */
    uint64_t taken_mask;
    uint64_t failed;                /* entries whose claims have failed */
    struct tw__link free;           /* entries */
    struct tw__store_block *blocks; /* their memory */
    uint64_t max_loaded;            /* entries of all queues, roughly */
    uint64_t loaded;
    uint64_t found;             /* queues, when the horizon moved last */
    struct tw__store_seen seen; /* at the last look; `changes` of our last commit, if that is later */
    uint64_t schema_version;    /* at the last look; 0: there was none */
    bool gone_back;             /* the file was restored, and the run was not counted anew */
    uint64_t version;           /* SQLite's data_version at the last look */
    uint64_t horizon_ms; /* the tasks that are due until then are loaded, but for queues that are not whole */
    uint64_t load_at_ms; /* when the horizon has to move */
    uint64_t lapse_ms;   /* when the first lease of a program runs out; TW_NEVER: there is none */
    uint64_t now_ms;     /* of the last look */
    bool broken;         /* a look has failed in the middle, or a row has lost its entry: all is read anew */
    bool crowded;        /* a queue has far too many entries, and so has the window */
    char message[TW_STORE_MESSAGE_SIZE];
};

static inline struct tw__store_entry *tw__store_entry_linked(struct tw__link *link)
{
    return TW_CONTAINER(link, struct tw__store_entry, link);
}

/* Adds an entry to the ready list of its queue, by its place.
 * Cost: as many steps as there are entries before it, or behind it. */
void tw__store_entry_ready(struct tw__store_window *window, struct tw__store_entry *entry);

/* Files an entry by its place: in the ready list of its queue, or in the wheel. */
void tw__store_entry_file(struct tw__store_window *window, struct tw__store_entry *entry);

/* Files a task, unless a job has it. Returns: 0 or an error. */
int tw__store_entry_add(struct tw__store_window *window, struct tw__store_queue *queue, uint64_t revision,
                        uint64_t place_ms);
void tw__store_entry_free(struct tw__store_window *window, struct tw__store_entry *entry);

/* Notes whether the claim of an entry has failed. */
static inline void tw__store_entry_note(struct tw__store_window *window, struct tw__store_entry *entry,
                                        bool failed)
{
    window->failed += failed;
    window->failed -= entry->failed;
    entry->failed = failed;
}

/* Drops all entries that are not taken, so that they are loaded again, and queues without entries. */
void tw__store_entries_drop(struct tw__store_window *window);

/* Takes the numbers of the taken entries out of the table: the file has gone back, and they hide no task. */
void tw__store_entries_orphan(struct tw__store_window *window);

/* Frees the memory of all entries. */
void tw__store_entries_fini(struct tw__store_window *window);

/* The entries of a queue that are no jobs, and how many it may have. */
static inline uint64_t tw__store_waiting_in(const struct tw__store_queue *queue)
{
    return queue->loaded - queue->running;
}
uint64_t tw__store_share_of(const struct tw__store_window *window);

/* Returns whether there are twice as many entries as the shares of all queues. */
bool tw__store_is_overfull(const struct tw__store_window *window);

/* Returns whether a task lies within the horizon of its queue. `queue` NULL: it is not known. */
bool tw__store_is_within(const struct tw__store_window *window, const struct tw__store_queue *queue,
                         uint64_t place_ms, uint64_t revision);

/* Adds a queue. Returns NULL after it has noted that there is no memory. */
struct tw__store_queue *tw__store_queue_add(struct tw__store_window *window, const char *name,
                                            const struct tw__store_callee *callee);

/* Forgets a queue that has no entry, and needs to have none. */
void tw__store_queue_forget(struct tw__store_window *window, struct tw__store_queue *queue);

#endif
