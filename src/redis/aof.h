/* SPDX-License-Identifier: MIT
 *
 * What an append-only file of the server says, as far as mend.c has to know. Free of Redis, of memory and of files.
 */
#ifndef TW_REDIS_AOF_H
#define TW_REDIS_AOF_H

#include "task.h"

/* How a file of commands ends. */
enum tw__aof_end {
    TW__AOF_WHOLE,  /* each MULTI has its EXEC */
    TW__AOF_OPEN,   /* the last MULTI has none */
    TW__AOF_NESTED, /* a MULTI has none, and another follows */
    TW__AOF_FOREIGN /* it is no file of whole commands */
};

/* Reads a file of commands; with TW__AOF_OPEN and TW__AOF_NESTED, `at` is where the first MULTI without EXEC begins.
 * Cost: what is between the headers of arguments is not looked at, except for the names of commands. */
enum tw__aof_end tw__aof_end(struct tw__bytes file, size_t *at);

/* The name of the file that a manifest says commands are appended to: the last of its kind. It lies in the manifest.
 * False: there is none, or its name is one that has to be quoted with backslashes. */
bool tw__aof_last(struct tw__bytes manifest, struct tw__bytes *name);

#endif
