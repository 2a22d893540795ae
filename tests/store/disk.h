/* SPDX-License-Identifier: MIT
 *
 * A picture of a disk: which bytes of each file were synced, and each write since. It chooses the bytes that
 * the disk has after a power cut. power.h has the VFS that draws the picture.
 */
#ifndef TESTS_STORE_DISK_H
#define TESTS_STORE_DISK_H

#include "tests/support/random.h"

#include <stdbool.h>
#include <stddef.h>

struct disk {
    size_t sector; /* bytes */
    struct place *places;
};

struct bytes {
    unsigned char *at;
    size_t size, room; /* the room is larger than the size */
};

/* A path and its file. */
struct place {
    struct place *next;
    struct disk *disk;
    char path[512];
    bool exists;  /* as the program sees it */
    bool entered; /* the folder on the disk has its name */
    struct bytes synced;
    struct unsynced *first, **last;
    bool old_exists;
    struct bytes old;
};

/* The place of a path. A new one is as the real file. */
struct place *disk_place(struct disk *disk, const char *path);

/* Notes a write, or, with size 0, that the file ends at `at`. */
void disk_write(struct place *place, size_t at, const void *bytes, size_t size);

/* The bytes of the file are on the disk; the names of all files are. */
void disk_sync(struct place *place);
void disk_sync_folder(struct disk *disk);

/* Removes the file; `synced`: and syncs the folder. */
void disk_remove(struct place *place, bool synced);

/* Makes the real files as the disk has them, and forgets the places. `killed`: every write is kept. The index
 * of a log is removed. */
void disk_restore(struct disk *disk, struct rng *rng, bool killed);

#endif
