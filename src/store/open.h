/* SPDX-License-Identifier: MIT
 *
 * Opens a connection of the store, and makes or checks the tables of the file.
 */
#ifndef TW_STORE_OPEN_H
#define TW_STORE_OPEN_H

#include "database.h"

/* Bytes that the log keeps when it begins anew. */
enum { TW__STORE_LOG_MAX = 64 << 20 };

/* The lines of schema.sql, and NULL. The build makes them. */
extern const char *const tw__store_schema[];

/* Opens the file with these options. Returns: 0 or an error, with a message; the caller closes the connection
 * in both cases. */
int tw__store_open(struct tw__store_db *db, const char *path, const struct tw_store_options *options);

/* Opens a further connection to the file of the first one, which another thread may use at this moment. It
 * leaves the schema, which takes SQLite longer to read than all else, for tw__store_set(), which comes before
 * the first statement. Returns: as tw__store_open(), or TW_EREPLACED if the file is not at its path any more.
 */
int tw__store_open_further(struct tw__store_db *db, const struct tw__store_db *first,
                           const struct tw_store_options *options);

/* Gives such a connection its settings. Returns: 0 or an error. */
int tw__store_set(struct tw__store_db *db, const struct tw_store_options *options);

/* Checks that the file is a store, and makes the tables if it has none and the options allow it. Returns:
 * 0 or an error. */
int tw__store_open_tables(struct tw__store_db *db, const struct tw_store_options *options);

void tw__store_close(struct tw__store_db *db);

/* If the log has more bytes than `most`, moves it to the file, and cuts it to nothing, as far as this is
 * possible without a wait for others. An error is left to the next commit. Requires: the connection is in no
 * transaction. */
void tw__store_cut_log(struct tw__store_db *db, uint64_t most, uint64_t busy_ms);

/* The monotonic clock, in nanoseconds. */
uint64_t tw__store_monotonic(void);

#endif
