/* SPDX-License-Identifier: MIT
 *
 * Put, move and cancel, on any connection, in a transaction that somebody else begins and ends.
 */
#ifndef TW_STORE_CHANGE_H
#define TW_STORE_CHANGE_H

#include "database.h"

/* Checks the size of a queue's name. A program may have written another name than UTF-8 to the tables, so calls
 * that only read or end something take every name. Returns: 0, or TW_EINVAL with a message. */
int tw__store_queue_check(struct tw__store_db *db, const char *queue);

/* The same for a name that goes into the file, which must be UTF-8. */
int tw__store_new_queue_check(struct tw__store_db *db, const char *queue);

/* Checks the name of a task. Returns: 0, or TW_EINVAL with a message. */
int tw__store_name_check(struct tw__store_db *db, struct tw_store_name name);

/* Checks a number of a call. Returns: 0, or TW_EINVAL with a message. */
int tw__store_range_check(struct tw__store_db *db, const char *name, uint64_t value, uint64_t least,
                          uint64_t most);

/* Checks the reserved members of a struct. Returns: 0, or TW_EINVAL with a message. */
int tw__store_reserved_check(struct tw__store_db *db, const char *name, const uint64_t *reserved, size_t n);

/* Checks the members of a change. Returns: 0, or TW_EINVAL with a message. */
int tw__store_change_check(struct tw__store_db *db, const struct tw_store_change *change, uint64_t max_payload);

/* Makes the changes, and sets their results. Requires: they are valid, and the connection is in a transaction
 * for which tw__store_db_begin_revisions() was called. Returns: 0, or the first error of SQLite. */
int tw__store_change_all(struct tw__store_db *db, struct tw_store_change *changes, size_t n);

#endif
