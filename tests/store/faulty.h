/* SPDX-License-Identifier: MIT
 *
 * Faults on demand: the n-th allocation fails, in SQLite or in our own code, or the n-th write or sync of a
 * file. The program is linked with --wrap for malloc, calloc, realloc and aligned_alloc, and for the calls of
 * SQLite that prepare statements: sqlite3_exec, sqlite3_prepare_v2 and sqlite3_prepare_v3.
 */
#ifndef TESTS_STORE_FAULTY_H
#define TESTS_STORE_FAULTY_H

#include <stdbool.h>

/* Installs the faults. Call it once, before SQLite is used. */
void faulty_install(void);

/* The n-th allocation from now on fails, and with `on` all later ones too; 0: none. While SQLite prepares a
 * statement, an allocation is passed over if one has failed at the same place of the code with the same `on`,
 * and the next one fails in its stead. n = 1 begins anew, with no such places. */
void faulty_memory(long n, bool on);

/* The n-th write or sync of a file from now on fails with this code of SQLite, and with `on` all later ones
 * too; 0: none. With SQLITE_IOERR_READ or SQLITE_IOERR_CORRUPTFS reads count and fail too. */
void faulty_disk(long n, int code, bool on);

/* A write, sync or read that fails leaves this errno from now on; 0: the errno of before. */
void faulty_errno(int number);

/* The same for our own allocations alone. */
void faulty_own_memory(long n, bool on);

/* How many times a file was synced since the last of these calls. */
long faulty_syncs(void);

/* How many files of its own, which it deletes again, SQLite has opened since the last of these calls. */
long faulty_temporary(void);

/* Files are opened as if the user might only read them. */
void faulty_readonly(bool on);

/* Whether a fault has happened since the last of these calls. */
bool faulty_happened(void);

/* The number of the call that has failed first, of the last fault: n, or a larger one. */
long faulty_number(void);

#endif
