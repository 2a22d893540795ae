/* SPDX-License-Identifier: MIT
 *
 * SQLite writes through to the real files, so its locks and its shared memory are real. Beside it this file
 * keeps a picture of the disk:
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
#include "power.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct bytes {
    unsigned char *at;
    size_t size;
};

/* A write, or a truncation if there are no bytes, that was not synced. */
struct unsynced {
    struct unsynced *next;
    size_t at, size;
    unsigned char bytes[];
};

struct place {
    struct place *next;
    char path[512];
    bool exists;  /* as the program sees it */
    bool entered; /* the folder on the disk has its name */
    struct bytes synced;
    struct unsynced *first, **last;
    bool old_exists;
    struct bytes old;
};

/* An open file: SQLite's own lies behind it. */
struct file {
    sqlite3_file base;
    sqlite3_file *real;
    struct place *place; /* NULL: a file that nobody finds after a crash */
    bool syncs_folder;   /* of a log or journal that was opened, SQLite's first sync is one of the folder too */
};

static struct {
    pthread_mutex_t lock;
    sqlite3_vfs *below;
    unsigned sector;
    struct place *places;
    bool off;
    long cut_left, fail_left; /* 0: never */
    int fail_code;
    bool fail_on;
} power = {.lock = PTHREAD_MUTEX_INITIALIZER, .sector = 4096};

static void *must(void *memory)
{
    if (memory == NULL)
        abort();
    return memory;
}

/* ---- bytes ----------------------------------------------------------------------------------------------- */

static void set_size(struct bytes *bytes, size_t size)
{
    bytes->at = must(realloc(bytes->at, size + 1));
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
static struct place *find_place(const char *path)
{
    struct place *place = power.places;
    while (place != NULL && strcmp(place->path, path) != 0)
        place = place->next;
    if (place != NULL)
        return place;
    place = must(calloc(1, sizeof *place));
    snprintf(place->path, sizeof place->path, "%s", path);
    place->last = &place->first;
    place->exists = place->entered = read_bytes(path, &place->synced);
    place->next = power.places;
    power.places = place;
    return place;
}

static void add_unsynced(struct place *place, size_t at, const void *bytes, size_t size)
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
static void sync_folder(void)
{
    for (struct place *place = power.places; place != NULL; place = place->next) {
        place->entered = place->exists;
        drop_old(place);
    }
}

static void sync_place(struct place *place)
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
static void remove_place(struct place *place, bool synced)
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
        sync_folder();
}

/* ---- after the power cut --------------------------------------------------------------------------------- */

/* The choice for one place, counted in sectors that were written. */
struct choice {
    struct rng *rng;
    size_t keep; /* the first so many are kept; SIZE_MAX: each with a chance of one half */
    size_t torn, at;
};

static size_t sector_end(size_t at)
{
    return (at / power.sector + 1) * power.sector;
}

static size_t count_sectors(const struct place *place)
{
    size_t n = 0;
    for (const struct unsynced *one = place->first; one != NULL; one = one->next)
        n += one->size == 0 ? 1 : (one->at + one->size - 1) / power.sector - one->at / power.sector + 1;
    return n;
}

static struct choice choose(const struct place *place, struct rng *rng, bool killed)
{
    size_t n = count_sectors(place);
    struct choice choice = {.rng = rng, .keep = n, .torn = SIZE_MAX};
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
        size = sector_end(one->at + done) - (one->at + done);
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

void power_restore(struct rng *rng, bool killed)
{
    pthread_mutex_lock(&power.lock);
    for (struct place *place = power.places, *next; place != NULL; place = next) {
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
    power.places = NULL;
    power.off = false;
    power.cut_left = power.fail_left = 0;
    pthread_mutex_unlock(&power.lock);
}

/* ---- faults ---------------------------------------------------------------------------------------------- */

void power_choose(unsigned sector)
{
    power.sector = sector;
}

void power_cut_at(long n)
{
    pthread_mutex_lock(&power.lock);
    power.cut_left = n;
    pthread_mutex_unlock(&power.lock);
}

bool power_is_off(void)
{
    pthread_mutex_lock(&power.lock);
    bool off = power.off;
    pthread_mutex_unlock(&power.lock);
    return off;
}

void power_fail_at(long n, int code, bool on)
{
    pthread_mutex_lock(&power.lock);
    power.fail_left = n;
    power.fail_code = code;
    power.fail_on = on;
    pthread_mutex_unlock(&power.lock);
}

/* Counts an operation; called with the lock. Returns: SQLITE_OK, or the error with which it fails. */
static int count_operation(void)
{
    if (power.cut_left > 0 && --power.cut_left == 0)
        power.off = true;
    if (power.off)
        return SQLITE_IOERR;
    if (power.fail_left == 0)
        return SQLITE_OK;
    if (power.fail_left > 1 || !power.fail_on)
        power.fail_left--;
    return power.fail_left == (power.fail_on ? 1 : 0) ? power.fail_code : SQLITE_OK;
}

/* ---- files ----------------------------------------------------------------------------------------------- */

static sqlite3_file *real_of(sqlite3_file *file)
{
    return ((struct file *)file)->real;
}

static int close_file(sqlite3_file *file)
{
    return real_of(file)->pMethods->xClose(real_of(file));
}

static int read_file(sqlite3_file *file, void *to, int size, sqlite3_int64 at)
{
    return power_is_off() ? SQLITE_IOERR_READ : real_of(file)->pMethods->xRead(real_of(file), to, size, at);
}

/* The write at which the power goes off may have reached the disk. */
static int write_file(sqlite3_file *file, const void *from, int size, sqlite3_int64 at)
{
    struct place *place = ((struct file *)file)->place;
    pthread_mutex_lock(&power.lock);
    bool was_off = power.off;
    int code = count_operation();
    if (place != NULL && (code == SQLITE_OK || (power.off && !was_off)))
        add_unsynced(place, (size_t)at, from, (size_t)size);
    pthread_mutex_unlock(&power.lock);
    return code == SQLITE_OK ? real_of(file)->pMethods->xWrite(real_of(file), from, size, at) : code;
}

static int truncate_file(sqlite3_file *file, sqlite3_int64 size)
{
    struct place *place = ((struct file *)file)->place;
    pthread_mutex_lock(&power.lock);
    int code = count_operation();
    if (place != NULL && code == SQLITE_OK)
        add_unsynced(place, (size_t)size, NULL, 0);
    pthread_mutex_unlock(&power.lock);
    return code == SQLITE_OK ? real_of(file)->pMethods->xTruncate(real_of(file), size) : code;
}

/* No real disk waits: the picture alone counts. */
static int sync_file(sqlite3_file *file, int flags)
{
    struct file *ours = (struct file *)file;
    (void)flags;
    pthread_mutex_lock(&power.lock);
    int code = count_operation();
    if (ours->place != NULL && code == SQLITE_OK) {
        sync_place(ours->place);
        if (ours->syncs_folder)
            sync_folder();
        ours->syncs_folder = false;
    }
    pthread_mutex_unlock(&power.lock);
    return code;
}

static int size_file(sqlite3_file *file, sqlite3_int64 *size)
{
    return power_is_off() ? SQLITE_IOERR_FSTAT : real_of(file)->pMethods->xFileSize(real_of(file), size);
}

static int lock_file(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xLock(real_of(file), level);
}

static int unlock_file(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xUnlock(real_of(file), level);
}

static int check_lock(sqlite3_file *file, int *locked)
{
    return real_of(file)->pMethods->xCheckReservedLock(real_of(file), locked);
}

static int control_file(sqlite3_file *file, int order, void *arg)
{
    return real_of(file)->pMethods->xFileControl(real_of(file), order, arg);
}

static int sector_size(sqlite3_file *file)
{
    (void)file;
    return (int)power.sector;
}

static int traits(sqlite3_file *file)
{
    return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

static int map_index(sqlite3_file *file, int page, int size, int extend, void volatile **to)
{
    return real_of(file)->pMethods->xShmMap(real_of(file), page, size, extend, to);
}

static int lock_index(sqlite3_file *file, int offset, int n, int flags)
{
    return real_of(file)->pMethods->xShmLock(real_of(file), offset, n, flags);
}

static void barrier(sqlite3_file *file)
{
    real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static int unmap_index(sqlite3_file *file, int remove)
{
    return real_of(file)->pMethods->xShmUnmap(real_of(file), remove);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = close_file,
    .xRead = read_file,
    .xWrite = write_file,
    .xTruncate = truncate_file,
    .xSync = sync_file,
    .xFileSize = size_file,
    .xLock = lock_file,
    .xUnlock = unlock_file,
    .xCheckReservedLock = check_lock,
    .xFileControl = control_file,
    .xSectorSize = sector_size,
    .xDeviceCharacteristics = traits,
    .xShmMap = map_index,
    .xShmLock = lock_index,
    .xShmBarrier = barrier,
    .xShmUnmap = unmap_index,
};

static int open_file(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *file, int flags, int *got)
{
    static const int kept = SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL;
    struct file *ours = (struct file *)file;
    (void)vfs;
    ours->base.pMethods = NULL;
    ours->real = (sqlite3_file *)(ours + 1);
    ours->place = NULL;
    ours->syncs_folder = (flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL)) != 0;
    if (power_is_off())
        return SQLITE_CANTOPEN;
    pthread_mutex_lock(&power.lock);
    if (name != NULL && (flags & kept) != 0)
        ours->place = find_place(name);
    int code = power.below->xOpen(power.below, name, ours->real, flags, got);
    if (code == SQLITE_OK && ours->place != NULL)
        ours->place->exists = true;
    pthread_mutex_unlock(&power.lock);
    ours->base.pMethods = ours->real->pMethods != NULL ? &methods : NULL;
    return code;
}

static int remove_file(sqlite3_vfs *vfs, const char *name, int sync_folder)
{
    (void)vfs;
    pthread_mutex_lock(&power.lock);
    int code = count_operation();
    if (code == SQLITE_OK)
        remove_place(find_place(name), sync_folder != 0);
    pthread_mutex_unlock(&power.lock);
    return code == SQLITE_OK ? power.below->xDelete(power.below, name, sync_folder) : SQLITE_IOERR_DELETE;
}

void power_install(void)
{
    static sqlite3_vfs vfs;
    sqlite3_initialize();
    power.below = sqlite3_vfs_find(NULL);
    vfs = *power.below;
    vfs.zName = "power";
    vfs.szOsFile = (int)sizeof(struct file) + power.below->szOsFile;
    vfs.xOpen = open_file;
    vfs.xDelete = remove_file;
    sqlite3_vfs_register(&vfs, 1);
}
