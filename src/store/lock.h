/* SPDX-License-Identifier: MIT
 *
 * The lock of the process that runs the tasks of a file.
 */
#ifndef TW_STORE_LOCK_H
#define TW_STORE_LOCK_H

#include "database.h"

enum { TW__STORE_PATH = 4352 }; /* bytes that hold a path of SQLite's, and our ending */

/* Tries to lock the file beside the store's file. Returns: 0, and the descriptor in *locked; TW_EBUSY if
 * another process has the lock; or an error. With a message. */
int tw__store_lock(struct tw__store_db *db, int *locked);

/* Checks that the locked file lies at its path still. Returns: 0, or TW_EREPLACED with a message. */
int tw__store_lock_check(struct tw__store_db *db, int locked);

#endif
