/* SPDX-License-Identifier: MIT
 *
 * A folder for the files of a test program, in memory if there is such a disk: syncing it costs nothing.
 */
#ifndef TESTS_SUPPORT_SCRATCH_H
#define TESTS_SUPPORT_SCRATCH_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SCRATCH = 64 };

/* Makes the folder. A shell waits for the end of this program, however it ends, and removes the folder with all
 * that is in it. Returns 0, or -1. */
static inline int scratch_folder(char path[SCRATCH], const char *name)
{
    char keeper[2 * SCRATCH];
    snprintf(path, SCRATCH, "%s/tickwheel-%s-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp",
             name);
    if (mkdtemp(path) == NULL)
        return -1;
    snprintf(keeper, sizeof keeper, "trap '' HUP INT TERM; read _; rm -rf %s", path);
    return popen(keeper, "we") != NULL ? 0 : -1; /* it reads an end when nobody has our side of the pipe */
}

#endif
