/* SPDX-License-Identifier: MIT */
#include "part.h"

#include <stdlib.h>

enum { FULL = 1 << 20 }; /* bytes */

bool part_full(const struct part *part)
{
    return part->failed || part->lost || ftello(part->out) >= FULL;
}

bool part_write(struct part *part, const struct tasks *tasks, const char *undone)
{
    char *text = NULL;
    size_t size = 0;
    part->out = open_memstream(&text, &size);
    if (part->out != NULL) {
        bool looked = tw_store_snapshot(tasks->store, part->read, part->arg) == 0; /* read() may set `failed` */
        part->failed |= !looked;
        part->lost |= fclose(part->out) != 0;
    }
    part->lost |= part->out == NULL;
    if (part->failed)
        tasks_failed(tasks, undone);
    else if (part->lost)
        complain("tickwheel tasks: there is no memory");
    else
        fwrite(text, 1, size, stdout);
    free(text);
    return !part->failed && !part->lost;
}
