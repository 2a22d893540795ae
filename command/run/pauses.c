/* SPDX-License-Identifier: MIT */
#include "pauses.h"

#include "printable.h"
#include "queues.h"
#include "screen.h"
#include "store_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AGAIN_MS = 1000 };

/* Keeps the queues that have tasks and are paused. Returns false if a queue with tasks is not paused, or if the
 * file cannot be read. */
static bool keep_paused(struct queues *queues, struct tw_store *store)
{
    size_t kept = 0;
    bool good = true;
    for (size_t i = 0; i < queues->count && good; i++) {
        uint64_t due_ms = TW_NEVER;
        good = tw_store_next(store, queues->name[i], &due_ms) == 0;
        if (!good || due_ms == TW_NEVER)
            continue;
        good = tw_store_is_paused(store, queues->name[i]) == 1;
        char *name = queues->name[i];
        queues->name[i] = queues->name[kept];
        queues->name[kept++] = name;
    }
    while (queues->count > kept)
        free(queues->name[--queues->count]);
    return good;
}

static void print_pause(const char *queue, const char *path)
{
    bool usual = strcmp(queue, "default") == 0;
    fputs("tickwheel run: queue ", stderr);
    printable_write(queue, strlen(queue), false, SIZE_MAX, stderr);
    fputs(" is paused: `tickwheel tasks --store ", stderr);
    printable_word(path, stderr);
    fputs(usual ? "" : " --queue ", stderr);
    if (!usual)
        printable_word(queue, stderr);
    fputs(" resume` ends it\n", stderr);
}

/* Returns whether every task that waits is in a paused queue, after it has named these queues. */
static bool tell_of_queues(struct tw_store *store, const char *path, const char *only)
{
    struct queues queues;
    bool told = false;
    if (queues_read(&queues, store, only) == 0 && keep_paused(&queues, store)) {
        for (size_t i = 0; i < queues.count; i++) {
            screen_hide();
            print_pause(queues.name[i], path);
        }
        told = queues.count > 0;
    }
    queues_free(&queues);
    return told;
}

void pauses_tell(struct pauses *pauses, struct tw_store *store, const char *path, const char *only)
{
    uint64_t now_ms = tw_store_now();
    if (now_ms >= pauses->looked_ms && now_ms - pauses->looked_ms < AGAIN_MS + pauses->rest_ms)
        return;
    pauses->looked_ms = now_ms;
    pauses->told_mark = pauses->told_mark || store_file_tell_of_mark(store, "tickwheel run", path);
    pauses->told = pauses->told || tell_of_queues(store, path, only);
    pauses->rest_ms = store_file_rest_ms(now_ms);
}
