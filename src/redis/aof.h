/* SPDX-License-Identifier: MIT
 *
 * What an append-only file of the server says, as far as mend.c has to know. Free of Redis.
 */
#ifndef TW_REDIS_AOF_H
#define TW_REDIS_AOF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* How a file of commands ends. */
enum tw__redis_aof_ends {
    TW__REDIS_AOF_WHOLE,  /* each MULTI has its EXEC */
    TW__REDIS_AOF_OPEN,   /* a MULTI has none */
    TW__REDIS_AOF_FOREIGN /* it is no file of whole commands, or cannot be read */
};

/* Reads a file of commands from where it stands to its end; with TW__REDIS_AOF_OPEN, `at` is how far from there
 * the first MULTI without an EXEC after it begins. Cost: all of the file is read, about 1 GB a second if it is
 * in memory. */
enum tw__redis_aof_ends tw__redis_aof_end(FILE *file, uint64_t *at);

/* Reads the manifest: the name of the file that is loaded last, which is that to which commands are appended,
 * if there is one of that sort. False: it names no file, or one whose name has no room. */
bool tw__redis_aof_last(FILE *manifest, char *name, size_t room);

#endif
