/* SPDX-License-Identifier: MIT */
#include "batch.h"

#include "delayed.h"
#include "lines.h"
#include "store_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHANGES_MAX = 1000, BYTES_MAX = 4 * LINES_MAX };

bool batch_init(struct batch *batch, struct tw_store *store, const struct task_options *options)
{
    *batch = (struct batch){.store = store,
                            .options = options,
                            .changes = malloc(CHANGES_MAX * sizeof *batch->changes),
                            .bytes = malloc(BYTES_MAX)};
    if (batch->changes != NULL && batch->bytes != NULL)
        return true;
    batch_fini(batch);
    return false;
}

void batch_fini(struct batch *batch)
{
    free(batch->changes);
    free(batch->bytes);
}

/* ---- adding ---------------------------------------------------------------------------------------------- */

static struct tw_bytes keep(struct batch *batch, struct tw_bytes bytes)
{
    char *to = batch->bytes + batch->used;
    if (bytes.data == NULL)
        return bytes;
    memcpy(to, bytes.data, bytes.size);
    batch->used += bytes.size;
    return (struct tw_bytes){to, bytes.size};
}

static bool room_for(const struct batch *batch, const struct tw_store_delayed *task)
{
    return batch->count < CHANGES_MAX && task->id.size + task->payload.size <= BYTES_MAX - batch->used;
}

const char *batch_add(struct batch *batch, const struct line *line)
{
    struct tw_store_delayed task;
    const char *error = delayed_make(batch->options, line, &task);
    if (error != NULL || (!room_for(batch, &task) && !batch_commit(batch)))
        return error;
    bool puts = line->kind == LINE_TASK || line->kind == LINE_EVERY;
    task.id = keep(batch, task.id);
    task.payload = keep(batch, task.payload);
    batch->changes[batch->count++] =
        (struct tw_store_change){.verb = puts                      ? TW_STORE_VERB_PUT
                                         : line->kind == LINE_MOVE ? TW_STORE_VERB_MOVE
                                                                   : TW_STORE_VERB_CANCEL,
                                 .task = task,
                                 .conditions = puts ? batch->options->conditions : 0};
    return NULL;
}

/* ---- committing ------------------------------------------------------------------------------------------ */

static void count(struct batch_tally *tally, const struct tw_store_change *change)
{
    bool effect = change->verb == TW_STORE_VERB_CANCEL ? change->found != TW_CANCEL_GONE : change->made;
    tally->lines++;
    tally->put += effect && change->verb == TW_STORE_VERB_PUT;
    tally->kept += !effect && change->verb == TW_STORE_VERB_PUT;
    tally->moved += effect && change->verb == TW_STORE_VERB_MOVE;
    tally->cancelled += effect && change->verb == TW_STORE_VERB_CANCEL;
    tally->unknown += !effect && change->verb != TW_STORE_VERB_PUT;
}

bool batch_commit(struct batch *batch)
{
    if (batch->failed || batch->count == 0)
        return !batch->failed;
    int error;
    while ((error = tw_store_apply(batch->store, batch->changes, batch->count)) != 0 && batch->again != NULL &&
           batch->again(error))
        ;
    batch->failed = error != 0;
    for (size_t i = 0; i < batch->count && !batch->failed; i++)
        count(&batch->tally, &batch->changes[i]);
    batch->count = batch->used = 0;
    return !batch->failed;
}

void batch_complain(const struct batch *batch, const char *command, const char *path, const char *before)
{
    char text[200];
    uint64_t lines = batch->tally.lines;
    snprintf(text, sizeof text, "%sthe lines after the first %" PRIu64 " %s not in the file", before, lines,
             lines == 1 ? "task, move or cancel are" : "tasks, moves and cancels are");
    store_file_complain(batch->store, command, path, text);
}
