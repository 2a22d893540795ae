/* SPDX-License-Identifier: MIT */
#include "faulty.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static atomic_long memory_left, own_left, disk_left; /* 0: no fault; the fault comes when it goes from 1 to 0 */
static atomic_bool memory_on, disk_on, happened, readonly;
static atomic_int disk_code, disk_errno;
static atomic_long syncs;

/* Whether this is the n-th call. With `on` the count stays at 1, so all later calls fail too. */
static bool fails(atomic_long *left, const atomic_bool *on)
{
    if (atomic_load(left) == 0)
        return false;
    if (atomic_load(left) > 1 || !atomic_load(on))
        atomic_fetch_sub(left, 1);
    bool now = atomic_load(left) == (atomic_load(on) ? 1 : 0);
    if (now)
        atomic_store(&happened, true);
    return now;
}

void faulty_memory(long n, bool on)
{
    atomic_store(&happened, false);
    atomic_store(&memory_on, on);
    atomic_store(&memory_left, n);
}

void faulty_own_memory(long n, bool on)
{
    atomic_store(&happened, false);
    atomic_store(&memory_on, on);
    atomic_store(&own_left, n);
}

void faulty_readonly(bool on)
{
    atomic_store(&readonly, on);
}

void faulty_disk(long n, int code, bool on)
{
    atomic_store(&happened, false);
    atomic_store(&disk_code, code);
    atomic_store(&disk_on, on);
    atomic_store(&disk_left, n);
}

void faulty_errno(int number)
{
    atomic_store(&disk_errno, number);
}

long faulty_syncs(void)
{
    return atomic_exchange(&syncs, 0);
}

bool faulty_happened(void)
{
    return atomic_load(&happened);
}

/* ---- memory ---------------------------------------------------------------------------------------------- */

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_malloc(size_t size)
{
    return fails(&memory_left, &memory_on) || fails(&own_left, &memory_on) ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails(&memory_left, &memory_on) || fails(&own_left, &memory_on) ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    bool now = fails(&memory_left, &memory_on) || fails(&own_left, &memory_on);
    return now ? NULL : __real_realloc(old, size);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
    bool now = fails(&memory_left, &memory_on) || fails(&own_left, &memory_on);
    return now ? NULL : __real_aligned_alloc(align, size);
}

static sqlite3_mem_methods plain;

static void *get_memory(int size)
{
    return fails(&memory_left, &memory_on) ? NULL : plain.xMalloc(size);
}

static void *resize_memory(void *old, int size)
{
    return fails(&memory_left, &memory_on) ? NULL : plain.xRealloc(old, size);
}

/* ---- files ----------------------------------------------------------------------------------------------- */

/* A file of ours: SQLite's own file lies behind it. */
struct file {
    sqlite3_file base;
    sqlite3_file *real;
};

static sqlite3_file *real_of(sqlite3_file *file)
{
    return ((struct file *)file)->real;
}

static int close_file(sqlite3_file *file)
{
    return real_of(file)->pMethods->xClose(real_of(file));
}

/* The code of a call that fails. */
static int fault_of_disk(void)
{
    if (atomic_load(&disk_errno) != 0)
        errno = atomic_load(&disk_errno);
    return atomic_load(&disk_code);
}

static int read_file(sqlite3_file *file, void *to, int size, sqlite3_int64 at)
{
    int code = atomic_load(&disk_code);
    if ((code == SQLITE_IOERR_READ || code == SQLITE_IOERR_CORRUPTFS) && fails(&disk_left, &disk_on))
        return fault_of_disk();
    return real_of(file)->pMethods->xRead(real_of(file), to, size, at);
}

static int write_file(sqlite3_file *file, const void *from, int size, sqlite3_int64 at)
{
    if (fails(&disk_left, &disk_on))
        return fault_of_disk();
    return real_of(file)->pMethods->xWrite(real_of(file), from, size, at);
}

static int truncate_file(sqlite3_file *file, sqlite3_int64 size)
{
    return real_of(file)->pMethods->xTruncate(real_of(file), size);
}

static int sync_file(sqlite3_file *file, int flags)
{
    if (fails(&disk_left, &disk_on))
        return fault_of_disk();
    atomic_fetch_add(&syncs, 1);
    return real_of(file)->pMethods->xSync(real_of(file), flags);
}

static int size_file(sqlite3_file *file, sqlite3_int64 *size)
{
    return real_of(file)->pMethods->xFileSize(real_of(file), size);
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

static int control_file(sqlite3_file *file, int what, void *arg)
{
    return real_of(file)->pMethods->xFileControl(real_of(file), what, arg);
}

static int sector_size(sqlite3_file *file)
{
    return real_of(file)->pMethods->xSectorSize(real_of(file));
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

static sqlite3_vfs *below;

static int open_file(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *file, int flags, int *got)
{
    struct file *ours = (struct file *)file;
    (void)vfs;
    ours->real = (sqlite3_file *)(ours + 1);
    if (atomic_load(&readonly))
        flags = (flags & ~(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)) | SQLITE_OPEN_READONLY;
    int code = below->xOpen(below, name, ours->real, flags, got);
    ours->base.pMethods = ours->real->pMethods != NULL ? &methods : NULL;
    return code;
}

void faulty_install(void)
{
    static sqlite3_vfs vfs;
    static sqlite3_mem_methods ours;
    sqlite3_shutdown(); /* the clock of the tests (clock.h) has begun it, and then it takes no other memory */
    if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &plain) != SQLITE_OK)
        abort();
    ours = plain;
    ours.xMalloc = get_memory;
    ours.xRealloc = resize_memory;
    if (sqlite3_config(SQLITE_CONFIG_MALLOC, &ours) != SQLITE_OK || sqlite3_initialize() != SQLITE_OK)
        abort();
    below = sqlite3_vfs_find("clock");
    if (below == NULL)
        below = sqlite3_vfs_find(NULL);
    vfs = *below;
    vfs.zName = "faulty";
    vfs.szOsFile = (int)sizeof(struct file) + below->szOsFile;
    vfs.xOpen = open_file;
    sqlite3_vfs_register(&vfs, 1);
}
