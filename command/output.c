/* SPDX-License-Identifier: MIT */
#include "output.h"

#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char SUFFIX[] = ".XXXXXX";

bool output_bytes(int fd, struct tw_bytes bytes)
{
    for (size_t at = 0; at < bytes.size;) {
        ssize_t written = write(fd, (const char *)bytes.data + at, bytes.size - at);
        if (written < 0 && errno != EINTR)
            return false;
        at += written > 0 ? (size_t)written : 0;
    }
    return true;
}

static bool fail(const char *path)
{
    complain("%s: cannot be written: %s", path, strerror(errno));
    return false;
}

/* mkstemp() makes private files. Ours gets the rights of the file that it replaces or, if there is none,
 * those of any new file. */
static mode_t rights_for(const struct stat *old)
{
    if (old != NULL)
        return old->st_mode & 0777;
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

/* Writes the bytes and the rights to the temporary file fd, and closes it. */
static bool fill(int fd, mode_t rights, struct tw_bytes bytes)
{
    bool good = output_bytes(fd, bytes) && fchmod(fd, rights) == 0;
    int error = errno;
    if (close(fd) != 0 && good)
        return false;
    errno = error;
    return good;
}

static bool replace(const char *path, const struct stat *old, struct tw_bytes bytes)
{
    size_t length = strlen(path);
    char *temporary = malloc(length + sizeof SUFFIX);
    if (temporary == NULL)
        return fail(path);
    memcpy(temporary, path, length);
    memcpy(temporary + length, SUFFIX, sizeof SUFFIX);
    int fd = mkstemp(temporary);
    bool made = fd >= 0;
    bool good = made && fill(fd, rights_for(old), bytes) && rename(temporary, path) == 0;
    if (!good) {
        fail(path);
        if (made)
            unlink(temporary);
    }
    free(temporary);
    return good;
}

static bool write_through(const char *path, int fd, struct tw_bytes bytes)
{
    bool good = fd >= 0 && output_bytes(fd, bytes);
    if (!good)
        fail(path);
    if (fd >= 0 && fd != STDOUT_FILENO && close(fd) != 0 && good)
        return fail(path);
    return good;
}

bool output_write(const char *path, struct tw_bytes bytes)
{
    struct stat old;
    if (strcmp(path, "-") == 0)
        return write_through("standard output", STDOUT_FILENO, bytes);
    bool exists = stat(path, &old) == 0;
    if (exists && !S_ISREG(old.st_mode))
        return write_through(path, open(path, O_WRONLY | O_CLOEXEC), bytes);
    /* If `path` is a symbolic link, replace the file that it points to, not the link. */
    char *real = exists ? realpath(path, NULL) : NULL;
    bool good = replace(real != NULL ? real : path, exists ? &old : NULL, bytes);
    free(real);
    return good;
}
