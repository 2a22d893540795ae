/* SPDX-License-Identifier: MIT
 *
 * When the horizon moves, the tasks behind it become entries. The queues of the window are loaded one by one.
 * All other queues of the file are found by one statement, which goes over the index of the order, queue by
 * queue. It reads the tasks of a queue up to the horizon and a few behind it, and then searches for the next
 * queue. So a hundred thousand queues with a task each are a hundred thousand steps, and ten queues with a
 * million later tasks each are ten searches. A search takes as long as three steps. (Rejected: to search after
 * the first task of each queue. That takes half the time if queues have nine tasks, and longer if they have
 * three.)
 */
#include "horizon.h"

#include <string.h>

enum {
    AHEAD_MS = 600000, /* how far the window reaches */
    RENEW_MS = 300000, /* it moves when so much of it is left */
    PASSED_MAX = 8     /* after so many rows of a queue the next queue is searched for */
};

/* ---- loading --------------------------------------------------------------------------------------------- */

/* Files the rows of a statement, and moves the horizon over them. */
static int file_rows(struct tw__store_window *window, struct tw__store_queue *queue, sqlite3_stmt *statement,
                     uint64_t *rows)
{
    int error = 0;
    while (tw__store_db_next(&window->db, statement, "load tasks", &error)) {
        uint64_t revision = (uint64_t)sqlite3_column_int64(statement, 0);
        uint64_t place_ms = (uint64_t)sqlite3_column_int64(statement, 1);
        error = tw__store_entry_add(window, queue, revision, place_ms);
        queue->horizon = (struct tw__store_place){place_ms, revision};
        ++*rows;
    }
    return error;
}

static int load_rows(struct tw__store_window *window, struct tw__store_queue *queue,
                     enum tw__store_statement which, uint64_t from, uint64_t to, uint64_t most, uint64_t *rows)
{
    int error = 0;
    sqlite3_stmt *statement = tw__store_db_statement(&window->db, which, &error);
    if (statement == NULL)
        return error;
    tw__store_bind_text(&window->db, statement, 1, queue->name);
    tw__store_bind_number(&window->db, statement, 2, from);
    tw__store_bind_number(&window->db, statement, 3, to);
    tw__store_bind_number(&window->db, statement, 4, most - *rows);
    return file_rows(window, queue, statement, rows);
}

/* Loads tasks behind the horizon of a queue that is not whole, at most `most`. The tasks that are due at the
 * time of that horizon come from a statement of their own, as in look.c. */
static int load(struct tw__store_window *window, struct tw__store_queue *queue, uint64_t most)
{
    struct tw__store_place from = queue->horizon;
    uint64_t rows = 0;
    int error = 0;
    if (from.revision < INT64_MAX)
        error = load_rows(window, queue, TW__STORE_LOAD_TIE, from.place_ms, from.revision, most, &rows);
    if (error == 0 && rows < most)
        error = load_rows(window, queue, TW__STORE_LOAD, from.place_ms, window->horizon_ms, most, &rows);
    queue->whole = error == 0 && rows < most;
    return error;
}

/* Loads tasks of a queue while half of its share is free. The rows of one reading may all be taken by jobs:
 * then nothing would tell when to go on. */
static int load_more(struct tw__store_window *window, struct tw__store_queue *queue)
{
    uint64_t share = tw__store_share_of(window);
    int error = 0;
    while (error == 0 && !queue->whole && tw__store_waiting_in(queue) <= share / 2)
        error = load(window, queue, share - tw__store_waiting_in(queue));
    if (error == 0)
        tw__store_queue_forget(window, queue);
    return error;
}

void tw__store_horizon_note(struct tw__store_window *window, struct tw__store_queue *queue)
{
    const struct tw__store_place *last = &queue->horizon;
    if (queue->whole || tw__store_waiting_in(queue) > tw__store_share_of(window) / 2)
        return;
    if (tw__list_empty(&queue->ready) && tw__store_is_up_to(last->place_ms, last->revision, window->fence))
        window->fence = *last;
    if (queue->hungry)
        return;
    queue->hungry = true;
    queue->next_hungry = window->hungry;
    window->hungry = queue;
}

int tw__store_horizon_feed(struct tw__store_window *window)
{
    int error = 0;
    window->fence = (struct tw__store_place){UINT64_MAX, UINT64_MAX};
    while (window->hungry != NULL && error == 0) {
        struct tw__store_queue *queue = window->hungry;
        window->hungry = queue->next_hungry;
        queue->hungry = false;
        error = load_more(window, queue);
    }
    return error;
}

/* ---- the horizon ----------------------------------------------------------------------------------------- */

/* The window and its old horizon. */
struct reach {
    struct tw__store_window *window;
    uint64_t from_ms;
    bool again; /* the number of queues is known now */
    bool tight; /* some queues have got a task alone, as there were far too many entries */
};

/* A walk over the tasks of all queues, for those queues that are not known. */
struct sweep {
    struct tw__store_window *window;
    struct reach *reach;
    sqlite3_stmt *rows;
    char from[TW_STORE_QUEUE_MAX + 1]; /* the rows are those of the queues behind it */
    char name[TW_STORE_QUEUE_MAX + 1]; /* of the last row's queue */
    struct tw__store_queue *queue; /* of this name, while its tasks are loaded; NULL: they are passed over */
    uint64_t room, passed;         /* for its tasks; rows of this name that were passed over */
};

/* Goes on with the queue behind the present one. */
static int seek(struct sweep *sweep)
{
    int error = 0;
    memcpy(sweep->from, sweep->name, sizeof sweep->from);
    sweep->passed = 0;
    sweep->rows = tw__store_db_statement(&sweep->window->db, TW__STORE_SWEEP, &error);
    if (sweep->rows != NULL)
        tw__store_bind_text(&sweep->window->db, sweep->rows, 1, sweep->from);
    return error;
}

static void leave_queue(struct sweep *sweep, bool whole)
{
    if (sweep->queue != NULL)
        sweep->queue->whole = whole;
    sweep->queue = NULL;
}

/* The row is the first of its queue. */
static int enter_queue(struct sweep *sweep, uint64_t place_ms)
{
    struct tw__store_window *window = sweep->window;
    leave_queue(sweep, true);
    sweep->passed = 0;
    if (!tw__store_queue_name(sweep->rows, 0, sweep->name) || place_ms > window->horizon_ms ||
        tw__store_queues_find(&window->queues, sweep->name) != NULL)
        return 0;
    sweep->queue = tw__store_queue_add(window, sweep->name, &window->others);
    sweep->room = tw__store_share_of(window);
    if (!sweep->reach->again && tw__store_is_overfull(window)) {
        sweep->room = 1;
        sweep->reach->tight = true;
    }
    return sweep->queue != NULL ? 0 : TW_ENOMEM;
}

static bool is_of_same_queue(const struct sweep *sweep)
{
    bool is_text = sqlite3_column_type(sweep->rows, 0) == SQLITE_TEXT;
    const void *text = sqlite3_column_blob(sweep->rows, 0);
    size_t size = strlen(sweep->name);
    return is_text && (size_t)sqlite3_column_bytes(sweep->rows, 0) == size &&
           memcmp(text, sweep->name, size) == 0;
}

static int visit_row(struct sweep *sweep)
{
    uint64_t place_ms = (uint64_t)sqlite3_column_int64(sweep->rows, 1);
    uint64_t revision = (uint64_t)sqlite3_column_int64(sweep->rows, 2);
    int error = is_of_same_queue(sweep) ? 0 : enter_queue(sweep, place_ms);
    if (error == 0 && place_ms > sweep->window->horizon_ms)
        leave_queue(sweep, true);
    if (error != 0 || sweep->queue == NULL) {
        sweep->passed++;
        return error;
    }
    error = tw__store_entry_add(sweep->window, sweep->queue, revision, place_ms);
    sweep->queue->horizon = (struct tw__store_place){place_ms, revision};
    if (--sweep->room == 0)
        leave_queue(sweep, false);
    return error;
}

/* Loads the tasks of the queues that are not known. */
static int sweep_file(struct reach *reach)
{
    struct tw__store_window *window = reach->window;
    struct sweep sweep = {.window = window, .reach = reach};
    int error = seek(&sweep);
    while (tw__store_db_next(&window->db, sweep.rows, "look for queues", &error)) {
        error = visit_row(&sweep);
        if (error == 0 && sweep.passed > PASSED_MAX)
            error = seek(&sweep);
    }
    leave_queue(&sweep, true);
    return error;
}

static int load_queue(void *arg, struct tw__store_queue *queue)
{
    const struct reach *reach = arg;
    if (queue->whole)
        queue->horizon = (struct tw__store_place){reach->from_ms, INT64_MAX};
    queue->whole = false;
    return load_more(reach->window, queue);
}

static int load_queues(struct reach *reach)
{
    struct tw__store_window *window = reach->window;
    int error = tw__store_queues_each(&window->queues, load_queue, reach);
    if (error == 0 && window->others.handler != NULL)
        error = sweep_file(reach);
    return error;
}

/* A sweep that finds many queues for the first time gives the first ones shares that are too large. Then it is
 * made once more. Example: of a thousand queues the first gets max_loaded tasks, the second half as many, and
 * the first four together twice max_loaded. The others get one each, until the second sweep. */
int tw__store_horizon_move(struct tw__store_window *window)
{
    struct reach reach = {.window = window, .from_ms = window->horizon_ms};
    uint64_t found = window->found;
    window->horizon_ms = window->now_ms + AHEAD_MS;
    window->load_at_ms = window->now_ms + RENEW_MS;
    int error = load_queues(&reach);
    window->found = window->queues.count;
    if (error == 0 && (reach.tight || (window->found > found && tw__store_is_overfull(window)))) {
        tw__store_entries_drop(window);
        reach.again = true;
        error = load_queues(&reach);
    }
    return error;
}
