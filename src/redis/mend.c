/* SPDX-License-Identifier: MIT
 *
 * Mends what a server leaves of an append-only file that was cut off within a transaction.
 *
 * Deliveries are transactions, and the last write before a crash may be half of one:
 *
 *     SET x 0 | MULTI | XADD ... | TW.FI          the file as the crash left it
 *     SET x 0 | MULTI | XADD ...                  as the server loads it: nothing of the transaction is done, and the file
 *                                                 is cut back to the last whole command
 *     SET x 0 | MULTI | XADD ... | TW.ADD ...     what is written from then on is within that transaction
 *
 * At the next start all of it waits for an EXEC: if none comes, acknowledged commands are lost; if one comes, deliveries
 * that were undone are done, twice. Redis (7.0 to 8.0 at least) and Valkey up to 8.1 do so with any transaction or
 * script; Valkey mended it in August 2026 (its pull request 4342). They see to it only if the cut is between two
 * commands. So when a file has become shorter by being loaded, we look for a transaction that it leaves open, and cut
 * that off too, as those servers do. It has not been opened for writing yet.
 */
#include "module.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "aof.h"

/* The file that will be written to, as it was before it was loaded; size -1: there is none. */
static char path[PATH_MAX];
static off_t size_before = -1;

/* ---- files -------------------------------------------------------------------------------------------------------- */

static off_t size_of(const char *name)
{
    struct stat status;
    return stat(name, &status) == 0 ? status.st_size : -1;
}

/* Reads a file in place. False: errno says why not. */
static bool map_file(const char *name, struct tw__bytes *file)
{
    struct stat status;
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    bool done = fd >= 0 && fstat(fd, &status) == 0;
    *file = (struct tw__bytes){"", 0};
    if (done && status.st_size > 0) {
        void *at = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        done = at != MAP_FAILED;
        if (done)
            *file = (struct tw__bytes){at, (size_t)status.st_size};
    }
    if (fd >= 0)
        close(fd);
    return done;
}

static void unmap_file(struct tw__bytes file)
{
    if (file.size != 0)
        munmap((void *)(uintptr_t)file.at, file.size);
}

static bool cut(const char *name, size_t size)
{
    int fd = open(name, O_WRONLY | O_CLOEXEC);
    bool done = fd >= 0 && ftruncate(fd, (off_t)size) == 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return done;
}

/* ---- which file ---------------------------------------------------------------------------------------------------- */

/* A setting of the server's; `usual` where CONFIG has been renamed. */
static void read_setting(RedisModuleCtx *ctx, const char *name, const char *usual, char *value, size_t room)
{
    size_t size = strlen(usual);
    const char *text = usual;
    RedisModuleCallReply *reply = RedisModule_Call(ctx, "CONFIG", "cc", "GET", name);
    if (reply != NULL && RedisModule_CallReplyType(reply) == REDISMODULE_REPLY_ARRAY &&
        RedisModule_CallReplyLength(reply) == 2)
        text = RedisModule_CallReplyStringPtr(RedisModule_CallReplyArrayElement(reply, 1), &size);
    snprintf(value, room, "%.*s", (int)size, text);
    if (reply != NULL)
        RedisModule_FreeCallReply(reply);
}

/* Finds the file; the server's folder is its working directory. */
static bool find_file(RedisModuleCtx *ctx)
{
    char folder[NAME_MAX + 1], base[NAME_MAX + 1];
    read_setting(ctx, "appenddirname", "appendonlydir", folder, sizeof folder);
    read_setting(ctx, "appendfilename", "appendonly.aof", base, sizeof base);
    snprintf(path, sizeof path, "%s/%s.manifest", folder, base);
    struct tw__bytes manifest, name;
    if (!map_file(path, &manifest))
        return false;
    bool found = tw__aof_last(manifest, &name);
    if (found)
        snprintf(path, sizeof path, "%s/%.*s", folder, (int)name.size, name.at);
    unmap_file(manifest);
    return found;
}

/* ---- before and after ------------------------------------------------------------------------------------------------ */

void tw__mend_begin(RedisModuleCtx *ctx)
{
    size_before = find_file(ctx) ? size_of(path) : -1;
}

static void warn(RedisModuleCtx *ctx, const char *why)
{
    RedisModule_Log(
        ctx, "warning",
        "%s was cut off and is not mended (%s): what is written from now on may be lost at the next "
        "start; keep a copy of the file, then use BGREWRITEAOF",
        path, why);
}

void tw__mend_finish(RedisModuleCtx *ctx)
{
    off_t before = size_before;
    struct tw__bytes file;
    size_t at;
    size_before = -1;
    if (before < 0 || size_of(path) >= before)
        return;
    if (!map_file(path, &file)) {
        warn(ctx, strerror(errno));
        return;
    }
    enum tw__aof_end end = tw__aof_end(file, &at);
    unmap_file(file);
    if (end == TW__AOF_FOREIGN)
        warn(ctx, "it cannot be understood");
    else if (end == TW__AOF_NESTED)
        warn(ctx, "it holds a transaction that was left open before");
    else if (end == TW__AOF_OPEN && !cut(path, at))
        warn(ctx, strerror(errno));
    else if (end == TW__AOF_OPEN)
        RedisModule_Log(ctx, "notice", "%s: cut back to %zu bytes, as its last transaction was cut off", path,
                        at);
}
