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

static bool write_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t written = write(fd, bytes, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        bytes += written;
        size -= (size_t)written;
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
static bool fill(int fd, mode_t rights, const char *bytes, size_t size)
{
    bool good = write_all(fd, bytes, size) && fchmod(fd, rights) == 0;
    int error = errno;
    if (close(fd) != 0 && good)
        return false;
    errno = error;
    return good;
}

static bool replace(const char *path, const struct stat *old, const char *bytes, size_t size)
{
    size_t length = strlen(path);
    char *temporary = malloc(length + sizeof SUFFIX);
    if (temporary == NULL)
        return fail(path);
    memcpy(temporary, path, length);
    memcpy(temporary + length, SUFFIX, sizeof SUFFIX);
    int fd = mkstemp(temporary);
    bool made = fd >= 0;
    bool good = made && fill(fd, rights_for(old), bytes, size) && rename(temporary, path) == 0;
    if (!good) {
        fail(path);
        if (made)
            unlink(temporary);
    }
    free(temporary);
    return good;
}

static bool write_through(const char *path, int fd, const char *bytes, size_t size)
{
    bool good = fd >= 0 && write_all(fd, bytes, size);
    if (!good)
        fail(path);
    if (fd >= 0 && fd != STDOUT_FILENO && close(fd) != 0 && good)
        return fail(path);
    return good;
}

bool output_write(const char *path, const char *bytes, size_t size)
{
    struct stat old;
    if (strcmp(path, "-") == 0)
        return write_through("standard output", STDOUT_FILENO, bytes, size);
    bool exists = stat(path, &old) == 0;
    if (exists && !S_ISREG(old.st_mode))
        return write_through(path, open(path, O_WRONLY | O_CLOEXEC), bytes, size);
    /* If `path` is a symbolic link, replace the file that it points to, not the link. */
    char *real = exists ? realpath(path, NULL) : NULL;
    bool good = replace(real != NULL ? real : path, exists ? &old : NULL, bytes, size);
    free(real);
    return good;
}
