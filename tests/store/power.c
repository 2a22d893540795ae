/* SPDX-License-Identifier: MIT
 *
 * SQLite writes through to the real files, so its locks and its shared memory are real. Beside them each write
 * and each sync is drawn into the picture of the disk (disk.h).
 */
#include "power.h"

#include "disk.h"

#include <pthread.h>
#include <sqlite3.h>

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
    struct disk disk;
    bool off;
    long cut_left, fail_left; /* 0: never */
    int fail_code;
    bool fail_on;
} power = {.lock = PTHREAD_MUTEX_INITIALIZER, .disk = {4096, NULL}};

/* ---- faults ---------------------------------------------------------------------------------------------- */

void power_choose(unsigned sector)
{
    power.disk.sector = sector;
}

void power_restore(struct rng *rng, bool killed)
{
    pthread_mutex_lock(&power.lock);
    disk_restore(&power.disk, rng, killed);
    power.off = false;
    power.cut_left = power.fail_left = 0;
    pthread_mutex_unlock(&power.lock);
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
        disk_write(place, (size_t)at, from, (size_t)size);
    pthread_mutex_unlock(&power.lock);
    return code == SQLITE_OK ? real_of(file)->pMethods->xWrite(real_of(file), from, size, at) : code;
}

static int truncate_file(sqlite3_file *file, sqlite3_int64 size)
{
    struct place *place = ((struct file *)file)->place;
    pthread_mutex_lock(&power.lock);
    int code = count_operation();
    if (place != NULL && code == SQLITE_OK)
        disk_write(place, (size_t)size, NULL, 0);
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
        disk_sync(ours->place);
        if (ours->syncs_folder)
            disk_sync_folder(&power.disk);
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
    return (int)power.disk.sector;
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
        ours->place = disk_place(&power.disk, name);
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
        disk_remove(disk_place(&power.disk, name), sync_folder != 0);
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
