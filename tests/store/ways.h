/* SPDX-License-Identifier: MIT
 *
 * The ways in which a program changes tasks: calls, batches, its own transaction, plain SQL.
 */
#ifndef TESTS_STORE_WAYS_H
#define TESTS_STORE_WAYS_H

#include "ledger.h"

#include <sqlite3.h>

enum way {
    WAY_CALLS,    /* a call for each change, each a commit */
    WAY_APPLY,    /* tw_store_apply() */
    WAY_APPLY_ON, /* tw_store_apply_on(), on another connection, in a transaction */
    WAY_SQL,      /* the views, a commit for each change */
    WAY_SQL_IN,   /* the views, in one transaction */
    WAYS
};

enum { WAY_CHANGES = 8 };

/* Whether all changes are one commit. */
bool way_is_one(enum way way);

/* Makes the changes, at most WAY_CHANGES, in the file, and stores their results; of a cancel in SQL the result
 * is TW_CANCEL_CANCELLED. `db` is another connection to the file. It stops at the first change that fails
 * otherwise than by its own result. With `back` the transaction, if the way has one, is rolled back at its end.
 * Returns: how many changes were made: n, if nothing has failed; if one transaction failed, 0. */
unsigned way_go(enum way way, struct tw_store *store, sqlite3 *db, const struct ledger_change *changes,
                unsigned n, int *results, bool back);

/* Closes the other connection, which keeps its statements until then. NULL is allowed. */
void way_close(sqlite3 *db);

#endif
