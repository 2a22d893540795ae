/* SPDX-License-Identifier: MIT
 *
 * Transactions that write, shared by all threads that request something at the same time.
 */
#ifndef TW_STORE_COMMIT_H
#define TW_STORE_COMMIT_H

#include "internal.h"

/* The work of a request, in a transaction that has begun. It may run on another thread, and again if the
 * transaction before was rolled back. Returns: 0, or an error, and then it has no effect. */
typedef int tw__store_work_fn(struct tw__store_db *db, void *arg);

void tw__store_writer_init(struct tw__store_writer *writer);
void tw__store_writer_fini(struct tw__store_writer *writer);

/* Does the work, and returns when it is committed. `sync`: also if the store is lazy, the commit is on the disk
 * then, and with it every earlier commit. Returns: 0 or an error. */
int tw__store_commit(struct tw_store *store, tw__store_work_fn *work, void *arg, bool sync);

#endif
