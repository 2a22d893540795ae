/* SPDX-License-Identifier: MIT
 *
 * Mends an append-only file that was cut off within a transaction, after a server has loaded the file.
 *
 * Deliveries are transactions, so the last write before a crash may be half a transaction:
 *
 *     SET x 0 | MULTI | XADD ... | TW.FI          the file as the crash left it
 *     SET x 0 | MULTI | XADD ...                  as the server loads it: nothing of the transaction is done,
 *                                                 and the file is cut back to the last whole command
 *     SET x 0 | MULTI | XADD ... | TW.SEND ...    later commands are written within that transaction
 *
 * At the next start all these commands wait for an EXEC. If no EXEC follows, acknowledged commands are lost.
 * If an EXEC follows, deliveries that had been undone are made, so that they happen twice. Redis 7.0.15,
 * Redis 8.0.2 and Valkey 8.1.1 do so with any transaction or script. They handle the cut only if it is
 * between two commands. Valkey's releases since August 2026 cut off the whole transaction (its pull request
 * 4342). We do the same when loading has made a file shorter and the file ends with an open transaction.
 *
 * The part that we cut off is kept in a file of its own. A server without this module may have gone on after
 * an earlier crash. Then this part also holds the commands that the server has acknowledged since. They were
 * not loaded, and nobody can tell them from the transaction.
 */
#include "aof.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "shared.h"

/* The file that the server loads last, and its size before that; -1: there is no such file. */
static char path[PATH_MAX];
static off_t size_before = -1;

static off_t size_of(const char *name)
{
    struct stat status;
    return stat(name, &status) == 0 ? status.st_size : -1;
}

/* ---- which file ------------------------------------------------------------------------------------------ */

/* Finds the file and sets `path`. The server's folder is its working directory. */
static bool find_file(RedisModuleCtx *ctx)
{
    char folder[NAME_MAX + 1], name[NAME_MAX + 1];
    tw__redis_config_of_server(ctx, "appenddirname", "appendonlydir", folder, sizeof folder);
    tw__redis_config_of_server(ctx, "appendfilename", "appendonly.aof", name, sizeof name);
    snprintf(path, sizeof path, "%s/%s.manifest", folder, name);
    FILE *manifest = fopen(path, "re");
    bool found = manifest != NULL && tw__redis_aof_last(manifest, name, sizeof name);
    if (manifest != NULL)
        fclose(manifest);
    if (found)
        snprintf(path, sizeof path, "%s/%s", folder, name);
    return found;
}

void tw__redis_mend_begin(RedisModuleCtx *ctx)
{
    bool found = find_file(ctx);
    size_before = found ? size_of(path) : -1;
    if (!found)
        RedisModule_Log(ctx, "warning",
                        "no append-only file was found under %s: a file that was cut off cannot be mended",
                        path);
}

/* ---- the open transaction -------------------------------------------------------------------------------- */

/* Creates a file with the access rights of another file. Returns NULL on failure. */
static FILE *create(const char *name, FILE *like)
{
    struct stat status;
    int fd = fstat(fileno(like), &status) == 0
                 ? open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, status.st_mode & 0777)
                 : -1;
    return fd < 0 ? NULL : fdopen(fd, "w");
}

/* Copies the rest of a file into another file. Returns whether all of it is on the disk. */
static bool copy_rest(FILE *from, FILE *to)
{
    char some[4096];
    size_t size;
    while ((size = fread(some, 1, sizeof some, from)) != 0)
        if (fwrite(some, 1, size, to) != size)
            return false;
    return !ferror(from) && fflush(to) == 0 && fsync(fileno(to)) == 0;
}

/* Cuts the file off at `at`, and keeps the rest in a new file. Returns false on failure: errno says why, and
 * nothing has changed. */
static bool cut(FILE *file, uint64_t at, const char *rest)
{
    FILE *copy = fseeko(file, (off_t)at, SEEK_SET) == 0 ? create(rest, file) : NULL;
    if (copy == NULL)
        return false;
    bool done = copy_rest(file, copy) && truncate(path, (off_t)at) == 0;
    int error = errno;
    fclose(copy);
    if (!done)
        unlink(rest);
    errno = error;
    return done;
}

static void mend(RedisModuleCtx *ctx, FILE *file)
{
    char rest[sizeof path + 40];
    uint64_t at = 0;
    enum tw__redis_aof_ends end = file == NULL ? TW__REDIS_AOF_FOREIGN : tw__redis_aof_end(file, &at);
    bool failed = file == NULL || ferror(file) || end == TW__REDIS_AOF_OPEN;
    snprintf(rest, sizeof rest, "%s.cut-%" PRIu64, path, tw__redis_now_ms());
    if (end == TW__REDIS_AOF_OPEN && cut(file, at, rest))
        RedisModule_Log(ctx, "warning",
                        "%s ended within a transaction, and is cut back to %" PRIu64
                        " bytes, where the transaction began; the rest of the file is in %s",
                        path, at, rest);
    else if (end != TW__REDIS_AOF_WHOLE)
        RedisModule_Log(
            ctx, "warning",
            "%s was cut off and cannot be mended (%s): the server may refuse to start the next time, or lose "
            "commands that are written from now on; use BGREWRITEAOF to prevent that",
            path, failed ? strerror(errno) : "it contains other data than commands");
}

void tw__redis_mend_finish(RedisModuleCtx *ctx)
{
    off_t before = size_before;
    size_before = -1;
    if (before < 0 || size_of(path) >= before)
        return; /* nothing was cut off, or the server is not loading an append-only file */
    FILE *file = fopen(path, "re");
    mend(ctx, file);
    if (file != NULL)
        fclose(file);
}
