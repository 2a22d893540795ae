/* SPDX-License-Identifier: MIT */
#include "pauses.h"

#include "command.h"
#include "printable.h"
#include "queues.h"
#include "screen.h"
#include "store_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AGAIN_MS = 1000, NAMES = 10 };

/* Keeps the queues that have tasks and are paused. Returns false if a queue with tasks is not paused, or if the
 * file cannot be read. */
static bool keep_paused(struct queues *queues, struct tw_store *store)
{
    size_t kept = 0;
    bool good = true;
    for (size_t i = 0; i < queues->count && good; i++) {
        uint64_t next_ms;
        bool any;
        good = store_file_ahead(store, queues->name[i], &next_ms, &any) == 0;
        if (!good || !any)
            continue;
        bool paused;
        good = tw_store_is_paused(store, queues->name[i], &paused) == 0 && paused;
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
    printable_write(tw_text(queue), false, SIZE_MAX, stderr);
    fputs(" is paused: `tickwheel tasks --store ", stderr);
    printable_word(path, stderr);
    fputs(usual ? "" : " --queue ", stderr);
    if (!usual)
        printable_word(queue, stderr);
    fputs(" resume` ends it\n", stderr);
}

static void print_pauses(const struct queues *queues, const char *path)
{
    size_t named = queues->count < NAMES ? queues->count : NAMES, more = queues->count - named;
    screen_hide();
    for (size_t i = 0; i < named; i++)
        print_pause(queues->name[i], path);
    if (more > 0)
        complain("tickwheel run: %zu more queue%s paused", more, more == 1 ? " is" : "s are");
}

/* One look at the file. */
struct look {
    struct tw_store *store;
    const char *only; /* NULL: all queues */
    struct queues queues;
    bool stuck; /* every task is in one of the queues, which are paused */
};

static void look_for_pauses(void *arg)
{
    struct look *look = arg;
    struct queues *queues = &look->queues;
    look->stuck = queues_read(queues, look->store, look->only) == 0 && keep_paused(queues, look->store) &&
                  queues->count > 0;
}

/* Names the paused queues if every task is in one of them. */
static void tell_of_queues(struct pauses *pauses, struct tw_store *store, const char *path, const char *only)
{
    struct look look = {.store = store, .only = only};
    tw_store_snapshot(store, look_for_pauses, &look); /* after an error it is not stuck */
    if (look.stuck && !pauses->told)
        print_pauses(&look.queues, path);
    pauses->told = look.stuck;
    queues_free(&look.queues);
}

void pauses_tell(struct pauses *pauses, struct tw_store *store, const char *path, const char *only)
{
    uint64_t now_ms = tw_store_now();
    if (now_ms >= pauses->looked_ms && now_ms - pauses->looked_ms < AGAIN_MS + pauses->rest_ms)
        return;
    pauses->looked_ms = now_ms;
    store_file_tell_of_mark(store, "tickwheel run", path, &pauses->told_mark);
    tell_of_queues(pauses, store, path, only);
    pauses->rest_ms = store_file_rest_ms(now_ms);
}
