/* SPDX-License-Identifier: MIT
 *
 * Most requests for memory come from SQLite while it prepares statements, above all while it reads the schema
 * before the first of them: it asks for each word of each trigger. The caller gets the same answer, whichever
 * request is refused. So of the requests from one place of the code, for the same statements, only one is
 * refused alone, and one together with all later ones. A place is the whole stack of calls. (Rejected: to
 * refuse each request. A run makes ten thousand of them, from two thousand places.)
 */
#include "faulty.h"

#include <errno.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

static atomic_long memory_left, own_left, disk_left; /* 0: no fault; the fault comes when it goes from 1 to 0 */
static atomic_long number_of_fault;                  /* of the call that fails next, or that has failed first */
static atomic_bool memory_on, disk_on, happened, readonly;
static atomic_int disk_code, disk_errno;
static atomic_long syncs, temporary;

/* ---- places ---------------------------------------------------------------------------------------------- */

enum { PLACES = 1 << 16 }; /* far more than there are */

static pthread_mutex_t places_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t places[PLACES];          /* where memory was refused, by their hashes; 0: none */
static _Thread_local uint64_t preparing; /* the hash of the statements; 0: none */

static uint64_t mix(uint64_t hash, uint64_t more)
{
    return (hash ^ more) * UINT64_C(0x100000001b3) + (hash >> 47);
}

static void begin_preparing(const char *sql)
{
    preparing = UINT64_C(0xcbf29ce484222325);
    for (const char *at = sql; *at != '\0'; at++)
        preparing = mix(preparing, (unsigned char)*at);
}

int __real_sqlite3_exec(sqlite3 *db, const char *sql, sqlite3_callback row, void *arg, char **message);
int __real_sqlite3_prepare_v2(sqlite3 *db, const char *sql, int size, sqlite3_stmt **to, const char **rest);
int __real_sqlite3_prepare_v3(sqlite3 *db, const char *sql, int size, unsigned flags, sqlite3_stmt **to,
                              const char **rest);
int __wrap_sqlite3_exec(sqlite3 *db, const char *sql, sqlite3_callback row, void *arg, char **message);
int __wrap_sqlite3_prepare_v2(sqlite3 *db, const char *sql, int size, sqlite3_stmt **to, const char **rest);
int __wrap_sqlite3_prepare_v3(sqlite3 *db, const char *sql, int size, unsigned flags, sqlite3_stmt **to,
                              const char **rest);

int __wrap_sqlite3_exec(sqlite3 *db, const char *sql, sqlite3_callback row, void *arg, char **message)
{
    begin_preparing(sql);
    int code = __real_sqlite3_exec(db, sql, row, arg, message);
    preparing = 0;
    return code;
}

int __wrap_sqlite3_prepare_v2(sqlite3 *db, const char *sql, int size, sqlite3_stmt **to, const char **rest)
{
    begin_preparing(sql);
    int code = __real_sqlite3_prepare_v2(db, sql, size, to, rest);
    preparing = 0;
    return code;
}

int __wrap_sqlite3_prepare_v3(sqlite3 *db, const char *sql, int size, unsigned flags, sqlite3_stmt **to,
                              const char **rest)
{
    begin_preparing(sql);
    int code = __real_sqlite3_prepare_v3(db, sql, size, flags, to, rest);
    preparing = 0;
    return code;
}

static _Unwind_Reason_Code add_call(struct _Unwind_Context *call, void *hash)
{
    *(uint64_t *)hash = mix(*(uint64_t *)hash, (uint64_t)_Unwind_GetIP(call));
    return _URC_NO_REASON;
}

/* Whether this request comes from a place where one was refused before in the same way. If not, it is noted. */
static bool is_known(void)
{
    uint64_t hash = mix(preparing, atomic_load(&memory_on));
    if (preparing == 0)
        return false;
    _Unwind_Backtrace(add_call, &hash);
    pthread_mutex_lock(&places_lock);
    size_t at = (size_t)(hash >> 48);
    while (places[at] != 0 && places[at] != hash)
        at = (at + 1) % PLACES;
    bool known = places[at] != 0;
    places[at] = hash;
    pthread_mutex_unlock(&places_lock);
    return known;
}

static void forget_places(void)
{
    pthread_mutex_lock(&places_lock);
    memset(places, 0, sizeof places);
    pthread_mutex_unlock(&places_lock);
}

/* ---- faults ---------------------------------------------------------------------------------------------- */

/* Whether this is the n-th call, or with `on` a later one: then the count stays at 1. */
static bool fails(atomic_long *left, const atomic_bool *on)
{
    long now = atomic_load(left);
    while (now > 1 && !atomic_compare_exchange_weak(left, &now, now - 1))
        continue;
    if (now != 1)
        return false;
    if (left == &memory_left && !atomic_load(&happened) && is_known()) {
        atomic_fetch_add(&number_of_fault, 1);
        return false;
    }
    if (!atomic_load(on) && !atomic_compare_exchange_strong(left, &now, 0))
        return false; /* another thread's call was it */
    atomic_store(&happened, true);
    return true;
}

void faulty_memory(long n, bool on)
{
    if (n == 1)
        forget_places();
    if (n != 0)
        atomic_store(&number_of_fault, n);
    atomic_store(&happened, false);
    atomic_store(&memory_on, on);
    atomic_store(&memory_left, n);
}

void faulty_own_memory(long n, bool on)
{
    if (n != 0)
        atomic_store(&number_of_fault, n);
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
    if (n != 0)
        atomic_store(&number_of_fault, n);
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

long faulty_number(void)
{
    return atomic_load(&number_of_fault);
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
