/* SPDX-License-Identifier: MIT
 *
 * Looks at tasks, each in a transaction of the connection that reads.
 */
#ifndef TW_STORE_LOOK_H
#define TW_STORE_LOOK_H

#include "internal.h"

/* Runs `work` in a transaction that reads. Returns: its result; an error is noted for tw_store_message(). */
int tw__store_look(const struct tw_store *store, int (*work)(struct tw__store_db *db, void *arg), void *arg);

/* Reads a task from a row of the statements with TW__STORE_COLUMNS. A task whose `next` has come by `now_ms`
 * is ready. It is valid until the statement goes on. max_late_ms is as in the file: 0 for a task that is
 * dropped if it is late at all. Returns: 0, or TW_ENOMEM. */
int tw__store_read_task(struct tw__store_db *db, sqlite3_stmt *row, uint64_t now_ms,
                        struct tw_store_task *task);

/* Shows a task to its caller. There 0 would mean no limit, as in a put. */
void tw__store_show_task(struct tw_store_task *task, tw_store_visit_fn *visit, void *arg);

/* Reads what a task does with missed periods. A word that somebody else has written means as much as none. */
enum tw_missed tw__store_read_missed(sqlite3_stmt *row, int column);

#endif
