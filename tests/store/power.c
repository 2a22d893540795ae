/* SPDX-License-Identifier: MIT
 *
 * SQLite writes through to the real files, so its locks and its shared memory are real. Beside them each write
 * and each sync is drawn into the picture of the disk (disk.h).
 */
#include "power.h"

#include "disk.h"

#include <pthread.h>
#include <sqlite3.h>

/* What lies behind an open file of the VFS below. The file has our methods in place of its own. */
struct file {
    const sqlite3_io_methods *own;
    sqlite3_io_methods ours;
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

static struct file *behind(sqlite3_file *file)
{
    return (struct file *)((char *)file + power.below->szOsFile);
}

static int read_file(sqlite3_file *file, void *to, int size, sqlite3_int64 at)
{
    return power_is_off() ? SQLITE_IOERR_READ : behind(file)->own->xRead(file, to, size, at);
}

/* The write at which the power goes off may have reached the disk. */
static int write_file(sqlite3_file *file, const void *from, int size, sqlite3_int64 at)
{
    struct place *place = behind(file)->place;
    pthread_mutex_lock(&power.lock);
    bool was_off = power.off;
    int code = count_operation();
    if (place != NULL && (code == SQLITE_OK || (power.off && !was_off)))
        disk_write(place, (size_t)at, from, (size_t)size);
    pthread_mutex_unlock(&power.lock);
    return code == SQLITE_OK ? behind(file)->own->xWrite(file, from, size, at) : code;
}

static int truncate_file(sqlite3_file *file, sqlite3_int64 size)
{
    struct place *place = behind(file)->place;
    pthread_mutex_lock(&power.lock);
    int code = count_operation();
    if (place != NULL && code == SQLITE_OK)
        disk_write(place, (size_t)size, NULL, 0);
    pthread_mutex_unlock(&power.lock);
    return code == SQLITE_OK ? behind(file)->own->xTruncate(file, size) : code;
}

/* No real disk waits: the picture alone counts. */
static int sync_file(sqlite3_file *file, int flags)
{
    struct file *more = behind(file);
    (void)flags;
    pthread_mutex_lock(&power.lock);
    int code = count_operation();
    if (more->place != NULL && code == SQLITE_OK) {
        disk_sync(more->place);
        if (more->syncs_folder)
            disk_sync_folder(&power.disk);
        more->syncs_folder = false;
    }
    pthread_mutex_unlock(&power.lock);
    return code;
}

static int size_file(sqlite3_file *file, sqlite3_int64 *size)
{
    return power_is_off() ? SQLITE_IOERR_FSTAT : behind(file)->own->xFileSize(file, size);
}

static int sector_size(sqlite3_file *file)
{
    (void)file;
    return (int)power.disk.sector;
}

static void take_methods(sqlite3_file *file)
{
    struct file *more = behind(file);
    more->own = file->pMethods;
    more->ours = *more->own;
    more->ours.iVersion = 2; /* the pages of a mapped file would be read without a call */
    more->ours.xRead = read_file;
    more->ours.xWrite = write_file;
    more->ours.xTruncate = truncate_file;
    more->ours.xSync = sync_file;
    more->ours.xFileSize = size_file;
    more->ours.xSectorSize = sector_size;
    file->pMethods = &more->ours;
}

static int open_file(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *file, int flags, int *got)
{
    static const int kept = SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL;
    struct file *more = behind(file);
    (void)vfs;
    file->pMethods = NULL;
    more->place = NULL;
    more->syncs_folder = (flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL)) != 0;
    if (power_is_off())
        return SQLITE_CANTOPEN;
    pthread_mutex_lock(&power.lock);
    if (name != NULL && (flags & kept) != 0)
        more->place = disk_place(&power.disk, name);
    int code = power.below->xOpen(power.below, name, file, flags, got);
    if (code == SQLITE_OK && more->place != NULL)
        more->place->exists = true;
    pthread_mutex_unlock(&power.lock);
    if (file->pMethods != NULL)
        take_methods(file);
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
