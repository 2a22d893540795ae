/* SPDX-License-Identifier: MIT
 *
 * Reads the server's append-only files, and mends one that was cut off. Includes no header of a server, so
 * that unit tests read such files without one.
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
    TW__REDIS_AOF_FOREIGN /* the file has other contents than whole commands, or cannot be read */
};

/* Reads a file of commands from its present position to its end. With TW__REDIS_AOF_OPEN, *at is the offset
 * from that position at which the first MULTI begins that no EXEC follows. Cost: reads all of the file, at
 * about 1 GB a second if the file is in memory. */
enum tw__redis_aof_ends tw__redis_aof_end(FILE *file, uint64_t *at);

/* Reads the manifest for the name of the file that is loaded last. The server appends its commands to that
 * file, if the manifest names a file for commands. Returns false if no file is named, or none whose name fits
 * in `room`. */
bool tw__redis_aof_last(FILE *manifest, char *name, size_t room);

/* ---- mending (mend.c) ------------------------------------------------------------------------------------ */

struct RedisModuleCtx;

/* To be called before the server loads the file (begin), and after that (finish). */
void tw__redis_mend_begin(struct RedisModuleCtx *ctx);
void tw__redis_mend_finish(struct RedisModuleCtx *ctx);

#endif
