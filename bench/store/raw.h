/* SPDX-License-Identifier: MIT
 *
 * SQLite alone, with the tables and the settings of a store, as a program without our library would use it.
 */
#ifndef BENCH_STORE_RAW_H
#define BENCH_STORE_RAW_H

#include "peer.h"

#include <sqlite3.h>

/* The statements of a connection. */
enum raw_statement { BEGIN, COMMIT, PUT, CANCEL, MOVE, DUE, CLAIM, DONE, COUNT, MAX_REVISION, RAW_STATEMENTS };

struct raw {
    sqlite3 *db;
    sqlite3_stmt *statement[RAW_STATEMENTS];
    sqlite3_int64 revision; /* the last number of a row */
};

struct raw *raw_open(const char *path);
void raw_close(struct raw *raw);

/* Runs SQL without parameters. */
void raw_run(struct raw *raw, const char *sql);

/* Runs a prepared statement that changes one row. */
void raw_change(struct raw *raw, enum raw_statement which);

/* Runs BEGIN or COMMIT. */
void raw_do(struct raw *raw, enum raw_statement which);

/* Puts tasks in one commit. */
void raw_put(struct raw *raw, const struct row *rows, size_t n);

/* Runs COUNT, which counts the rows, or MAX_REVISION. */
int64_t raw_ask(struct raw *raw, enum raw_statement which);

#endif
