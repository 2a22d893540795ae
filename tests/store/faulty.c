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
static atomic_long syncs, temporary;

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

long faulty_temporary(void)
{
    return atomic_exchange(&temporary, 0);
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

/* What lies behind an open file of the VFS below. The file has our methods in place of its own. */
struct file {
    const sqlite3_io_methods *own;
    sqlite3_io_methods ours;
};

static sqlite3_vfs *below;

static struct file *behind(sqlite3_file *file)
{
    return (struct file *)((char *)file + below->szOsFile);
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
    return behind(file)->own->xRead(file, to, size, at);
}

static int write_file(sqlite3_file *file, const void *from, int size, sqlite3_int64 at)
{
    if (fails(&disk_left, &disk_on))
        return fault_of_disk();
    return behind(file)->own->xWrite(file, from, size, at);
}

static int sync_file(sqlite3_file *file, int flags)
{
    if (fails(&disk_left, &disk_on))
        return fault_of_disk();
    atomic_fetch_add(&syncs, 1);
    return behind(file)->own->xSync(file, flags);
}

static int open_file(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *file, int flags, int *got)
{
    struct file *more = behind(file);
    (void)vfs;
    if (atomic_load(&readonly))
        flags = (flags & ~(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)) | SQLITE_OPEN_READONLY;
    int code = below->xOpen(below, name, file, flags, got);
    if (flags & SQLITE_OPEN_DELETEONCLOSE)
        atomic_fetch_add(&temporary, 1);
    if (file->pMethods == NULL)
        return code;
    more->own = file->pMethods;
    more->ours = *more->own;
    more->ours.iVersion = 2; /* the pages of a mapped file would be read without a call */
    more->ours.xRead = read_file;
    more->ours.xWrite = write_file;
    more->ours.xSync = sync_file;
    file->pMethods = &more->ours;
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
