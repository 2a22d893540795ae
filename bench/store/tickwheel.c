/* SPDX-License-Identifier: MIT
 *
 * Our store: one call puts one task, and tw_store_apply() changes several.
 */
#include "peer.h"
#include "tools.h"

#include <tickwheel/store.h>

static void *ours_open(const char *path)
{
    struct tw_store *store;
    char message[TW_STORE_MESSAGE];
    if (tw_store_open(&store, path, NULL, message, sizeof message) != 0)
        fail("%s: %s", path, message);
    return store;
}

static void ours_close(void *self)
{
    tw_store_close(self);
}

static void check(struct tw_store *store, int error, const char *doing)
{
    char message[TW_STORE_MESSAGE];
    if (error == 0)
        return;
    tw_store_message(store, message, sizeof message);
    fail("tickwheel: %s: %s", doing, message);
}

static struct tw_store_delayed task_of(const struct row *row)
{
    return (struct tw_store_delayed){
        .queue = QUEUE, .id = {row->id, row->id_size}, .due_ms = row->due_ms, .payload = {payload, PAYLOAD}};
}

static void apply(struct tw_store *store, enum tw_store_verb verb, int expected, const struct row *rows,
                  size_t n)
{
    struct tw_store_change changes[BATCH];
    for (size_t i = 0; i < n; i++)
        changes[i] = (struct tw_store_change){.verb = verb, .task = task_of(&rows[i])};
    check(store, tw_store_apply(store, changes, n), "apply");
    for (size_t i = 0; i < n; i++)
        if (changes[i].result != expected)
            fail("tickwheel: %s: the change returned %d", rows[i].id, changes[i].result);
}

static void ours_put(void *self, const struct row *rows, size_t n)
{
    struct tw_store_delayed task = task_of(rows);
    if (n > 1)
        apply(self, TW_STORE_PUT, 1, rows, n);
    else
        check(self, tw_store_put(self, &task, 0) - 1, "put");
}

static void ours_cancel(void *self, const struct row *rows, size_t n)
{
    apply(self, TW_STORE_CANCEL, TW_CANCELLED, rows, n);
}

static void ours_move(void *self, const struct row *rows, size_t n)
{
    apply(self, TW_STORE_MOVE, 1, rows, n);
}

const struct peer tickwheel_peer = {"tickwheel", ours_open, ours_close, ours_put, ours_cancel, ours_move};
