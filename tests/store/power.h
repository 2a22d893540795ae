/* SPDX-License-Identifier: MIT
 *
 * A disk that loses its power. It is a VFS of SQLite on the default one: it remembers which bytes of a file
 * were synced, and each write since. After a power cut the files get any state that a disk may have then.
 */
#ifndef TESTS_STORE_POWER_H
#define TESTS_STORE_POWER_H

#include "tests/support/random.h"

#include <stdbool.h>

/* Installs the disk as SQLite's default VFS. Call it once, before SQLite is used. */
void power_install(void);

/* Chooses the size of the disk's sectors, 512 or 4,096 bytes. Requires: no file is open. */
void power_choose(unsigned sector);

/* At the n-th write, truncation, sync or removal from now on the power goes off, and everything fails from
 * then on; 0: never. */
void power_cut_at(long n);
bool power_is_off(void);

/* The n-th write, truncation or sync from now on fails with this code of SQLite, and with `on` all later ones
 * too; 0: none. */
void power_fail_at(long n, int code, bool on);

/* Turns the power on: each file gets the bytes that the disk has kept. Bytes that were synced are there. Of the
 * others any may be there, in any order, and one sector may be torn. With `killed` no power went off, but the
 * process died: all bytes are there. The index of the log, which is shared memory, is gone in both cases.
 * Requires: no file is open. */
void power_restore(struct rng *rng, bool killed);

#endif
