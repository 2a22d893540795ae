/* SPDX-License-Identifier: MIT */
#include "queues.h"

#include <stdlib.h>
#include <string.h>

const char *queues_add(struct queues *queues, const char *queue)
{
    if (queues->count == queues->room) {
        size_t room = queues->room * 2 + 8;
        char **more = realloc(queues->name, room * sizeof *more);
        queues->lost |= more == NULL;
        if (more == NULL)
            return NULL;
        queues->name = more;
        queues->room = room;
    }
    char *copy = strdup(queue);
    queues->lost |= copy == NULL;
    if (copy != NULL)
        queues->name[queues->count++] = copy;
    return copy;
}

static void add_name(void *arg, const char *queue)
{
    queues_add(arg, queue);
}

int queues_read(struct queues *queues, struct tw_store *store, const char *only)
{
    int error = 0;
    *queues = (struct queues){.name = NULL};
    if (only != NULL)
        add_name(queues, only);
    else
        error = tw_store_queues(store, add_name, queues);
    return error != 0 ? error : queues->lost ? TW_ENOMEM : 0;
}

void queues_free(struct queues *queues)
{
    for (size_t i = 0; i < queues->count; i++)
        free(queues->name[i]);
    free(queues->name);
}
