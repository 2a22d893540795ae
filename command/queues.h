/* SPDX-License-Identifier: MIT
 *
 * The names of the queues of a file, at one moment.
 */
#ifndef COMMAND_QUEUES_H
#define COMMAND_QUEUES_H

#include <tickwheel/store.h>

struct queues {
    char **name;
    size_t count, room;
    bool lost; /* there was no memory for a name */
};

/* Reads the names of all queues that have a task, in one transaction; unless `only` is NULL, takes only that
 * name, whether the file has it or not. Returns: 0 or an error of the store. queues_free() must follow in each
 * case. */
int queues_read(struct queues *queues, struct tw_store *store, const char *only);

/* Adds a name. Returns its copy; NULL: there was no memory. */
const char *queues_add(struct queues *queues, const char *queue);

void queues_free(struct queues *queues);

#endif
