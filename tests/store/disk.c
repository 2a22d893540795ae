/* SPDX-License-Identifier: MIT
 *
 * The picture of a disk:
 *
 *     place   a path. Its file has synced bytes, and behind them the writes that came since
 *     old     the file that had the path before, until a sync of the folder
 *
 * A power cut chooses, for each place by itself, how much of the writes the disk has kept: none, all, the first
 * of them, or any. Writes are cut into sectors, each of which is kept or lost as a whole, but for one that is
 * torn. (Rejected: one choice for all places. A disk may write the file before the log, unless SQLite has
 * waited for a sync in between, and that is the case to be tested. Also rejected: a torn sector that loses
 * bytes which were not written. SQLite's default VFS promises that no disk does so.)
 */
#include "disk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A write, or a truncation if there are no bytes, that was not synced. */
struct unsynced {
    struct unsynced *next;
    size_t at, size;
    unsigned char bytes[];
};

static void *must(void *memory)
{
    if (memory == NULL)
        abort();
    return memory;
}

/* ---- bytes ----------------------------------------------------------------------------------------------- */

/* The room doubles, as files are read and written in small parts. */
static void set_size(struct bytes *bytes, size_t size)
{
    if (size >= bytes->room) {
        bytes->room = size < 2 * bytes->room ? 2 * bytes->room : size + 1;
        bytes->at = must(realloc(bytes->at, bytes->room));
    }
    if (size > bytes->size)
        memset(bytes->at + bytes->size, 0, size - bytes->size);
    bytes->size = size;
}

static void set_bytes(struct bytes *bytes, size_t at, const unsigned char *from, size_t size)
{
    if (at + size > bytes->size)
        set_size(bytes, at + size);
    memcpy(bytes->at + at, from, size);
}

static void clear(struct bytes *bytes)
{
    free(bytes->at);
    *bytes = (struct bytes){0};
}

/* Reads the real file. Returns false if there is none. */
static bool read_bytes(const char *path, struct bytes *bytes)
{
    FILE *file = fopen(path, "rb");
    unsigned char part[4096];
    if (file == NULL)
        return false;
    for (size_t n; (n = fread(part, 1, sizeof part, file)) > 0;)
        set_bytes(bytes, bytes->size, part, n);
    fclose(file);
    return true;
}

static void write_bytes(const char *path, const struct bytes *bytes)
{
    FILE *file = must(fopen(path, "wb"));
    if (fwrite(bytes->at, 1, bytes->size, file) != bytes->size || fclose(file) != 0)
        abort();
}

/* ---- places ---------------------------------------------------------------------------------------------- */

/* A place in the picture; a new one is as the real file. */
struct place *disk_place(struct disk *disk, const char *path)
{
    struct place *place = disk->places;
    while (place != NULL && strcmp(place->path, path) != 0)
        place = place->next;
    if (place != NULL)
        return place;
    place = must(calloc(1, sizeof *place));
    snprintf(place->path, sizeof place->path, "%s", path);
    place->last = &place->first;
    place->exists = place->entered = read_bytes(path, &place->synced);
    place->disk = disk;
    place->next = disk->places;
    disk->places = place;
    return place;
}

void disk_write(struct place *place, size_t at, const void *bytes, size_t size)
{
    struct unsynced *one = must(malloc(sizeof *one + size));
    one->next = NULL;
    one->at = at;
    one->size = size;
    if (size > 0)
        memcpy(one->bytes, bytes, size);
    *place->last = one;
    place->last = &one->next;
}

static void forget_unsynced(struct place *place)
{
    for (struct unsynced *one = place->first, *next; one != NULL; one = next) {
        next = one->next;
        free(one);
    }
    place->first = NULL;
    place->last = &place->first;
}

static void drop_old(struct place *place)
{
    place->old_exists = false;
    clear(&place->old);
}

/* The names of all files are on the disk, and the names of removed files are not. */
void disk_sync_folder(struct disk *disk)
{
    for (struct place *place = disk->places; place != NULL; place = place->next) {
        place->entered = place->exists;
        drop_old(place);
    }
}

void disk_sync(struct place *place)
{
    for (const struct unsynced *one = place->first; one != NULL; one = one->next) {
        if (one->size > 0)
            set_bytes(&place->synced, one->at, one->bytes, one->size);
        else
            set_size(&place->synced, one->at);
    }
    forget_unsynced(place);
}

/* The name is gone from the disk only after a sync of the folder. */
void disk_remove(struct place *place, bool synced)
{
    if (place->exists && place->entered) {
        drop_old(place);
        place->old = place->synced;
        place->old_exists = true;
        place->synced = (struct bytes){0};
    }
    clear(&place->synced);
    forget_unsynced(place);
    place->exists = place->entered = false;
    if (synced)
        disk_sync_folder(place->disk);
}

/* ---- after the power cut --------------------------------------------------------------------------------- */

/* The choice for one place, counted in sectors that were written. */
struct choice {
    struct rng *rng;
    size_t keep; /* the first so many are kept; SIZE_MAX: each with a chance of one half */
    size_t torn, at, sector;
};

static size_t sector_end(size_t at, size_t sector)
{
    return (at / sector + 1) * sector;
}

static size_t count_sectors(const struct place *place)
{
    size_t n = 0, sector = place->disk->sector;
    for (const struct unsynced *one = place->first; one != NULL; one = one->next)
        n += one->size == 0 ? 1 : (one->at + one->size - 1) / sector - one->at / sector + 1;
    return n;
}

static struct choice choose(const struct place *place, struct rng *rng, bool killed)
{
    size_t n = count_sectors(place);
    struct choice choice = {.rng = rng, .keep = n, .torn = SIZE_MAX, .sector = place->disk->sector};
    if (killed || n == 0)
        return choice;
    switch (rng_below(rng, 4)) {
    case 0:
        choice.keep = 0;
        break;
    case 1:
        break;
    case 2:
        choice.keep = (size_t)rng_below(rng, n);
        break;
    default:
        choice.keep = SIZE_MAX;
    }
    if (rng_below(rng, 2) == 0)
        choice.torn = choice.keep == SIZE_MAX ? (size_t)rng_below(rng, n) : choice.keep - 1;
    return choice;
}

static void keep_write(struct bytes *bytes, const struct unsynced *one, struct choice *choice)
{
    for (size_t done = 0, size; done < one->size; done += size, choice->at++) {
        size = sector_end(one->at + done, choice->sector) - (one->at + done);
        size = size < one->size - done ? size : one->size - done;
        bool kept = choice->keep == SIZE_MAX ? rng_below(choice->rng, 2) == 0 : choice->at < choice->keep;
        if (choice->at == choice->torn)
            set_bytes(bytes, one->at + done, one->bytes + done, (size_t)rng_below(choice->rng, size));
        else if (kept)
            set_bytes(bytes, one->at + done, one->bytes + done, size);
    }
}

static void keep_unsynced(struct place *place, struct rng *rng, bool killed)
{
    struct choice choice = choose(place, rng, killed);
    for (const struct unsynced *one = place->first; one != NULL; one = one->next) {
        if (one->size > 0)
            keep_write(&place->synced, one, &choice);
        else if (choice.keep == SIZE_MAX ? rng_below(rng, 2) == 0 : choice.at++ < choice.keep)
            set_size(&place->synced, one->at);
    }
}

/* Writes the file that the disk has. Names that were not synced may be there or not. */
static void restore_place(struct place *place, struct rng *rng, bool killed)
{
    bool exists = place->exists;
    if (!killed && !place->entered && rng_below(rng, 2) == 0) { /* the folder is as it was */
        exists = place->old_exists;
        forget_unsynced(place);
        clear(&place->synced);
        place->synced = place->old;
        place->old = (struct bytes){0};
    }
    keep_unsynced(place, rng, killed);
    if (exists)
        write_bytes(place->path, &place->synced);
    else
        unlink(place->path);
}

void disk_restore(struct disk *disk, struct rng *rng, bool killed)
{
    for (struct place *place = disk->places, *next; place != NULL; place = next) {
        char index[sizeof place->path + 8];
        next = place->next;
        restore_place(place, rng, killed);
        snprintf(index, sizeof index, "%s-shm", place->path);
        unlink(index);
        forget_unsynced(place);
        clear(&place->synced);
        clear(&place->old);
        free(place);
    }
    disk->places = NULL;
}
