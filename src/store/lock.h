/* SPDX-License-Identifier: MIT
 *
 * The lock of the process that runs the tasks of a file.
 */
#ifndef TW_STORE_LOCK_H
#define TW_STORE_LOCK_H

#include "database.h"

enum {
    TW__STORE_RUN_TEXT = 200 /* bytes that hold the names of a run's queues, for people */
};

struct tw__store_lock {
    int fd;                     /* -1: another process has the lock */
    struct tw__store_file file; /* that is locked; inode 0: it is not known */
};

/* Tries to lock the file beside the store's file. `queues` names the queues of the run for whoever finds the
 * lock taken, for example "queue 'mail'"; empty: all queues. Returns: 0; TW_EBUSY if another process has the
 * lock; or an error. With a message. */
int tw__store_lock_take(struct tw__store_db *db, const char *queues, struct tw__store_lock *lock);
void tw__store_lock_release(struct tw__store_lock *lock);

/* Returns the process whose run holds the lock of the file. 0: no run holds it; -1: the process is not
 * known. */
int64_t tw__store_lock_holder(struct tw__store_db *db);

/* Checks that the locked file lies at its path still. Returns: 0, or TW_EREPLACED with a message. */
int tw__store_lock_check(struct tw__store_db *db, const struct tw__store_lock *lock);

#endif
