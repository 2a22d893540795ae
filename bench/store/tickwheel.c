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
    char message[TW_STORE_MESSAGE_SIZE];
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
    char message[TW_STORE_MESSAGE_SIZE];
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

static void apply(struct tw_store *store, enum tw_store_verb verb, const struct row *rows, size_t n)
{
    struct tw_store_change changes[BATCH];
    for (size_t i = 0; i < n; i++)
        changes[i] = (struct tw_store_change){.verb = verb, .task = task_of(&rows[i])};
    check(store, tw_store_apply(store, changes, n), "apply");
    for (size_t i = 0; i < n; i++)
        if (verb == TW_STORE_VERB_CANCEL ? changes[i].found != TW_CANCEL_CANCELLED : !changes[i].made)
            fail("tickwheel: %s: the change was not made", rows[i].id);
}

static void ours_put(void *self, const struct row *rows, size_t n)
{
    struct tw_store_delayed task = task_of(rows);
    if (n > 1)
        apply(self, TW_STORE_VERB_PUT, rows, n);
    else
        check(self, tw_store_put(self, &task, 0, NULL), "put");
}

static void ours_cancel(void *self, const struct row *rows, size_t n)
{
    apply(self, TW_STORE_VERB_CANCEL, rows, n);
}

static void ours_move(void *self, const struct row *rows, size_t n)
{
    apply(self, TW_STORE_VERB_MOVE, rows, n);
}

const struct peer tickwheel_peer = {"tickwheel", ours_open, ours_close, ours_put, ours_cancel, ours_move};
