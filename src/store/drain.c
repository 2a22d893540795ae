/* SPDX-License-Identifier: MIT
 *
 * A drain takes the first tasks of a queue out of the file, commit by commit. The work of a commit may run on
 * another thread, so it copies the tasks, and the caller's thread hands the copies over after the commit.
 */
#include "commit.h"
#include "look.h"

#include <stdlib.h>
#include <string.h>

enum { TASKS = 256, BYTES = 4 << 20 }; /* of one commit; a larger payload is alone in its commit */

/* A task and, behind it, its queue, id, error and payload. */
struct taken {
    struct taken *next;
    struct tw_store_task task;
    char bytes[];
};

struct emptying {
    const char *queue;
    struct taken *first, **last;
    bool more; /* the queue may have more tasks */
};

static void free_copies(struct emptying *drain)
{
    for (struct taken *copy = drain->first, *next; copy != NULL; copy = next) {
        next = copy->next;
        free(copy);
    }
    drain->first = NULL;
    drain->last = &drain->first;
}

/* Copies `size` bytes to *to, and goes on behind them. Returns NULL for NULL. */
static const void *copy_bytes(char **to, const void *from, size_t size)
{
    char *start = *to;
    if (from == NULL)
        return NULL;
    memcpy(start, from, size);
    *to += size;
    return start;
}

static size_t text_size(const char *text)
{
    return text != NULL ? strlen(text) + 1 : 0;
}

/* Returns false if there is no memory. */
static bool add_copy(struct emptying *drain, const struct tw_store_task *task)
{
    size_t size = text_size(task->queue) + task->id_size + text_size(task->error) + task->payload_size;
    struct taken *copy = malloc(sizeof *copy + size);
    if (copy == NULL)
        return false;
    char *to = copy->bytes;
    copy->next = NULL;
    copy->task = *task;
    copy->task.queue = copy_bytes(&to, task->queue, text_size(task->queue));
    copy->task.id = copy_bytes(&to, task->id, task->id_size);
    copy->task.error = copy_bytes(&to, task->error, text_size(task->error));
    copy->task.payload = copy_bytes(&to, task->payload, task->payload_size);
    *drain->last = copy;
    drain->last = &copy->next;
    return true;
}

static int copy_tasks(struct tw__store_db *db, struct emptying *drain)
{
    int error = 0, n = 0;
    size_t bytes = 0;
    uint64_t now_ms = tw_store_now();
    sqlite3_stmt *rows = tw__store_db_statement(db, TW__STORE_SCAN, &error);
    if (rows == NULL)
        return error;
    tw__store_bind_text(db, rows, 1, drain->queue);
    tw__store_bind_number(db, rows, 2, 0);
    tw__store_bind_number(db, rows, 3, INT64_MAX);
    drain->more = true;
    while (n < TASKS && bytes < BYTES && (drain->more = tw__store_db_next(db, rows, "drain", &error))) {
        struct tw_store_task task;
        error = tw__store_read_task(db, rows, now_ms, &task);
        if (error == 0 && (task.state == TW_STATE_WAITING || task.state == TW_STATE_READY)) {
            error = add_copy(drain, &task) ? 0 : tw__store_db_refuse(db, TW_ENOMEM, "no memory");
            bytes += task.payload_size;
            n++;
        }
    }
    sqlite3_reset(rows);
    return error;
}

/* Copies the first tasks and deletes them; a tw__store_work_fn. */
static int take_tasks(struct tw__store_db *db, void *arg)
{
    struct emptying *drain = arg;
    free_copies(drain); /* of a transaction that was rolled back */
    int error = copy_tasks(db, drain);
    for (const struct taken *copy = drain->first; copy != NULL && error == 0; copy = copy->next)
        error = tw__store_db_write(db, TW__STORE_REMOVE, "drain", &copy->task.revision, 1);
    return error;
}

int64_t tw_store_drain(struct tw_store *store, const char *queue, tw_store_visit_fn *hand, void *arg)
{
    struct emptying drain = {.queue = queue};
    int64_t handed = 0;
    int error;
    do {
        free_copies(&drain);
        error = tw__store_commit(store, take_tasks, &drain, false);
        for (struct taken *copy = drain.first; copy != NULL && error == 0; copy = copy->next, handed++)
            tw__store_show_task(&copy->task, hand, arg);
    } while (error == 0 && drain.more);
    free_copies(&drain);
    return error == 0 ? handed : error;
}
