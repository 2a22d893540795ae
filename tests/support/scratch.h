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

/* Makes the folder. When this program has ended, however that came, a shell removes the folder with all that is
 * in it. The shell reads from a pipe until this program and its children have no end of it any more. It has a
 * session of its own and is no child of ours, so who kills this program and its children does not kill it.
 * Returns 0, or -1. */
static inline int scratch_folder(char path[SCRATCH], const char *name)
{
    char keeper[4 * SCRATCH];
    snprintf(path, SCRATCH, "%s/tickwheel-%s-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp",
             name);
    if (mkdtemp(path) == NULL)
        return -1;
    snprintf(keeper, sizeof keeper, "exec 3<&0; setsid sh -c 'read _ <&3; rm -rf %s' >/dev/null 2>&1 &", path);
    return popen(keeper, "we") != NULL ? 0 : -1;
}

#endif
