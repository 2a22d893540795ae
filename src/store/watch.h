/* SPDX-License-Identifier: MIT
 *
 * The runner's waiting: for a time, for the answers of jobs, and for commits of other connections.
 */
#ifndef TW_STORE_WATCH_H
#define TW_STORE_WATCH_H

#include "database.h"

struct tw__store_watch {
    int timer, wake, files; /* descriptors; files: -1 if the system reports no files */
    int log;                /* the number of the watch on the log; -1: it is not watched */
    uint64_t armed_ms;      /* the timer's time; 0: none */
    uint64_t hint_ns;       /* when the log was last written to; 0: not for a while */
    uint64_t hold_ns;       /* until when further hints wait */
    uint64_t look_ns;       /* when to look at the file again */
    bool busy;              /* hints come one after the other */
    bool stepped;           /* the system's clock was set */
};

/* Makes the descriptors. Returns: 0, or TW_ESYSTEM if the system has none left. */
int tw__store_watch_init(struct tw__store_watch *watch);
void tw__store_watch_fini(struct tw__store_watch *watch);

/* Begins to watch the log of a file, and the folder. */
void tw__store_watch_begin(struct tw__store_watch *watch, struct tw__store_db *db);

/* Ends the present or the next wait. From any thread. */
void tw__store_watch_wake(const struct tw__store_watch *watch);

/* Waits until the time `until_ms` on the system's clock, or `until_ns` on the monotonic clock, or until it is
 * woken; with `look` also until it is time to look at the file. */
void tw__store_watch_wait(struct tw__store_watch *watch, uint64_t until_ms, uint64_t until_ns, bool look);

/* Returns whether it is time to look at the file. Sets *whole if the system's clock was set, and everything
 * must be looked at. */
bool tw__store_watch_look(struct tw__store_watch *watch, bool *whole);

#endif
