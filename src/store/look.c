/* SPDX-License-Identifier: MIT
 *
 * Looking at tasks, on the connection that reads. In WAL mode a reader waits for nobody: it sees the file as
 * it was when its transaction began.
 */
#include "look.h"

#include <base/assert.h>
#include <base/grow.h>
#include <base/saturate.h>
#include <task/words.h>

#include "change.h"
#include "lock.h"
#include "open.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { STATES = TW_STATE_WAITING | TW_STATE_READY | TW_STATE_LEASED };

static uint64_t number(sqlite3_stmt *row, int column)
{
    return (uint64_t)sqlite3_column_int64(row, column);
}

static struct tw_bytes read_bytes(sqlite3_stmt *row, int column)
{
    const void *data = sqlite3_column_blob(row, column); /* before its size: it may make the bytes */
    return (struct tw_bytes){data, (size_t)sqlite3_column_bytes(row, column)};
}

enum tw_missed tw__store_read_missed(sqlite3_stmt *row, int column)
{
    const char *name = (const char *)sqlite3_column_text(row, column);
    enum tw_missed missed = TW_MISSED_COALESCE;
    if (name != NULL)
        tw__task_missed_named(name, &missed);
    return missed;
}

int tw__store_read_task(struct tw__store_db *db, sqlite3_stmt *row, uint64_t now_ms, struct tw_store_task *task)
{
    bool dead = sqlite3_column_type(row, 6) != SQLITE_NULL;
    uint64_t holder = number(row, 5), times = number(row, 8);
    int64_t replaced = sqlite3_column_int64(row, 18);
    bool held = replaced != 0 && holder == 0; /* a program has it */
    struct tw__task_retry retry = tw__store_read_retry(db, row, 10, 20);
    *task = (struct tw_store_task){
        .queue = (const char *)sqlite3_column_text(row, 1),
        .id = read_bytes(row, 2),
        .state = dead                                         ? TW_STATE_DEAD
                 : held || (holder != 0 && holder == db->run) ? TW_STATE_LEASED
                 : number(row, 14) <= now_ms                  ? TW_STATE_READY
                                                              : TW_STATE_WAITING,
        .due_ms = number(row, 3),
        .next_ms = number(row, held ? 16 : 14),
        .place_ms = number(row, 16),
        .revision = number(row, 0),
        .every_ms = number(row, 7),
        .times = times == 0 ? TW_FOREVER : times,
        .missed = tw__store_read_missed(row, 9),
        .missed_periods = number(row, 17),
        .tries = retry.tries,
        .attempt = (uint32_t)(replaced > 0 ? (uint64_t)replaced : number(row, 4)),
        .replaced = replaced > 0,
        .lapses = (uint32_t)number(row, 15),
        .backoff_ms = retry.first_ms,
        .backoff_max_ms = retry.max_ms,
        .factor_percent = retry.factor_percent,
        .jitter = retry.jitter,
        .max_late_ms = sqlite3_column_type(row, 19) == SQLITE_NULL ? TW_FOREVER : number(row, 19),
        .dead_ms = dead ? number(row, 6) : 0,
        .payload = read_bytes(row, 13),
        .error = (const char *)sqlite3_column_text(row, 12),
    };
    int code = sqlite3_errcode(db->db);
    return code == SQLITE_NOMEM ? tw__store_db_error(db, code, "read a task") : 0;
}

void tw__store_show_task(struct tw_store_task *task, tw_store_visit_fn *visit, void *arg)
{
    if (task->max_late_ms == 0)
        task->max_late_ms = TW_STORE_ON_TIME;
    if (task->jitter == 0)
        task->jitter = TW_STORE_NO_JITTER;
    if (task->state == TW_STATE_DEAD)
        task->next_ms = 0;
    visit(arg, task);
}

/* ---- one look -------------------------------------------------------------------------------------------- */

/* Gives the connection its settings before the first look. */
static int get_settings(const struct tw_store *store)
{
    struct tw__store_reader *reader = store->reader;
    int error = reader->set ? 0 : tw__store_set(&reader->db, &store->options);
    reader->set = error == 0;
    return error;
}

/* Begins a transaction for the looks of this thread. Returns: 0 or an error; end_looks() follows each. */
static int begin_looks(const struct tw_store *store, int *cancelled)
{
    struct tw__store_reader *reader = store->reader;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, cancelled); /* `visit` may have a point of cancellation */
    pthread_mutex_lock(&reader->lock);
    int error = get_settings(store);
    if (error == 0)
        error = tw__store_db_begin(&reader->db, TW__STORE_BEGIN_READ);
    return error == 0 ? tw__store_db_begin_revisions(&reader->db) : error;
}

/* Returns: `error`, noted for tw_store_message(). */
static int end_looks(const struct tw_store *store, int error, int cancelled)
{
    struct tw__store_reader *reader = store->reader;
    char message[TW_STORE_MESSAGE_SIZE];
    if (error != 0)
        memcpy(message, reader->message, sizeof message);
    tw__store_db_roll_back(&reader->db); /* it has changed nothing */
    pthread_mutex_unlock(&reader->lock);
    pthread_setcancelstate(cancelled, NULL);
    return error == 0 ? 0 : tw__store_failed(store, error, message);
}

int tw__store_look(const struct tw_store *store, int (*work)(struct tw__store_db *db, void *arg), void *arg)
{
    struct tw__store_reader *reader = store->reader;
    int cancelled, error;
    TW_ASSERT(store->pid == getpid());
    if (atomic_load(&reader->snapshot) == (uintptr_t)pthread_self()) {
        error = reader->ended != 0 ? reader->ended : work(&reader->db, arg);
        if (error != 0 && sqlite3_get_autocommit(reader->db.db))
            reader->ended = error;
        return error == 0 ? 0 : tw__store_failed(store, error, reader->message);
    }
    error = begin_looks(store, &cancelled);
    if (error == 0)
        error = work(&reader->db, arg);
    return end_looks(store, error, cancelled);
}

int tw_store_snapshot(const struct tw_store *store, tw_store_looks_fn *looks, void *arg)
{
    struct tw__store_reader *reader = store->reader;
    int cancelled;
    TW_ASSERT(store->pid == getpid());
    TW_ASSERT(atomic_load(&reader->snapshot) != (uintptr_t)pthread_self());
    int error = begin_looks(store, &cancelled);
    if (error == 0) {
        reader->ended = 0;
        atomic_store(&reader->snapshot, (uintptr_t)pthread_self());
        looks(arg);
        atomic_store(&reader->snapshot, 0);
    }
    return end_looks(store, error, cancelled);
}

/* The tasks that a caller asks for: one, by its id, or a range. */
struct view {
    struct tw_store_name name; /* of a range: the queue alone */
    const struct tw_store_range *range;
    unsigned states;
    uint64_t now_ms, limit, seen;
    tw_store_visit_fn *visit;
    void *arg;
};

static int show(struct tw__store_db *db, sqlite3_stmt *rows, struct view *view)
{
    int error = 0;
    while (view->seen < view->limit && tw__store_db_next(db, rows, "look", &error)) {
        struct tw_store_task task;
        error = tw__store_read_task(db, rows, view->now_ms, &task);
        if (error == 0 && (task.state & view->states)) {
            tw__store_show_task(&task, view->visit, view->arg);
            view->seen++;
        }
    }
    sqlite3_reset(rows); /* there may be more */
    return error;
}

static int get_task(struct tw__store_db *db, void *arg)
{
    struct view *view = arg;
    int error = 0;
    sqlite3_stmt *row = tw__store_db_statement(db, TW__STORE_GET, &error);
    if (row == NULL)
        return error;
    tw__store_bind_text(db, row, 1, view->name.queue);
    tw__store_bind_blob(db, row, 2, view->name.id.data, view->name.id.size);
    return show(db, row, view);
}

int tw_store_get(const struct tw_store *store, struct tw_store_name name, tw_store_visit_fn *visit, void *arg)
{
    struct view view = {.name = name,
                        .states = STATES | TW_STATE_DEAD,
                        .now_ms = tw_store_now(),
                        .limit = 1,
                        .visit = visit,
                        .arg = arg};
    char text[TW_STORE_MESSAGE_SIZE];
    struct tw__store_db only_message = {.message = text, .size = sizeof text};
    int error = tw__store_name_check(&only_message, name);
    if (error != 0)
        return tw__store_failed(store, error, text);
    error = tw__store_look(store, get_task, &view);
    return error == 0 && view.seen == 0 ? tw__store_failed(store, TW_EGONE, tw_store_strerror(TW_EGONE))
                                        : error;
}

/* Shows the rows of a scan: from a time to a time, or of one time after a revision. */
static int scan_rows(struct tw__store_db *db, struct view *view, enum tw__store_statement which, uint64_t from,
                     uint64_t to)
{
    int error = 0;
    sqlite3_stmt *rows = tw__store_db_statement(db, which, &error);
    if (rows == NULL)
        return error;
    tw__store_bind_text(db, rows, 1, view->name.queue);
    tw__store_bind_number(db, rows, 2, from);
    tw__store_bind_number(db, rows, 3, to);
    return show(db, rows, view);
}

/* The tasks of the first time come from a statement of their own: SQLite finds the place after a revision
 * there, and would else walk over all tasks of that time. */
static int scan_queue(struct tw__store_db *db, void *arg)
{
    struct view *view = arg;
    const struct tw_store_range *range = view->range;
    bool dead = view->states == TW_STATE_DEAD;
    uint64_t from_ms = range->from_ms, to_ms = range->to_ms > 0 ? range->to_ms : UINT64_MAX;
    int error = 0;
    if (range->after > 0 && from_ms <= to_ms) {
        error = scan_rows(db, view, dead ? TW__STORE_SCAN_DEAD_TIE : TW__STORE_SCAN_TIE, from_ms, range->after);
        from_ms = tw__add_saturating(from_ms, 1);
    }
    static const enum tw__store_statement which[2][2] = {{TW__STORE_SCAN_ALL, TW__STORE_SCAN},
                                                         {TW__STORE_SCAN_ALL_DEAD, TW__STORE_SCAN_DEAD}};
    return error == 0 ? scan_rows(db, view, which[dead][view->name.queue != NULL], from_ms, to_ms) : error;
}

int tw_store_scan(const struct tw_store *store, const char *queue, const struct tw_store_range *range,
                  tw_store_visit_fn *visit, void *arg)
{
    static const struct tw_store_range all = {0};
    const struct tw_store_range *of = range != NULL ? range : &all;
    struct view view = {.name = {.queue = queue},
                        .range = of,
                        .states = of->states != 0 ? of->states : STATES,
                        .now_ms = tw_store_now(),
                        .limit = of->count > 0 ? of->count : UINT64_MAX,
                        .visit = visit,
                        .arg = arg};
    char text[TW_STORE_MESSAGE_SIZE];
    if ((view.states & ~(unsigned)STATES) != 0 && view.states != TW_STATE_DEAD) {
        snprintf(text, sizeof text,
                 "states is '%u': expected 1 (waiting), 2 (ready) and 4 (leased), added, or 8 (dead)",
                 view.states);
        return tw__store_failed(store, TW_EINVAL, text);
    }
    if (queue == NULL && of->after != 0) {
        snprintf(text, sizeof text, "after is '%" PRIu64 "': expected 0 for all queues", of->after);
        return tw__store_failed(store, TW_EINVAL, text);
    }
    struct tw__store_db only_message = {.message = text, .size = sizeof text};
    int error =
        tw__store_reserved_check(&only_message, "tw_store_range", of->reserved, TW__GROW_ROOM(of->reserved));
    if (error != 0)
        return tw__store_failed(store, error, text);
    return tw__store_look(store, scan_queue, &view);
}

/* ---- counting -------------------------------------------------------------------------------------------- */

/* A statement that has one row with one to three values. */
struct question {
    enum tw__store_statement which;
    const char *queue;                 /* NULL: all */
    uint64_t now_ms;                   /* LIVE, NEXT: tasks that wait then; DUE: until then */
    uint64_t value[3];                 /* each stays as it is if the file has NULL */
    char text[TW_STORE_QUEUE_MAX + 1]; /* QUEUE_AFTER: the value; empty if it is NULL */
};

/* Copies the name of a queue. A program with plain SQL may have written an invalid one. */
static int read_name(struct tw__store_db *db, sqlite3_stmt *row, struct question *question)
{
    char shown[200];
    if (sqlite3_column_type(row, 0) == SQLITE_NULL || tw__store_queue_name(row, 0, question->text))
        return 0;
    size_t size = (size_t)sqlite3_column_bytes(row, 0);
    tw__store_show(shown, sizeof shown, sqlite3_column_blob(row, 0), size);
    return tw__store_db_refuse(
        db, TW_ECORRUPT, "tw_task: queue is '%s', of %zu bytes: expected text of 1 to %d bytes without NUL",
        shown, size, TW_STORE_QUEUE_MAX);
}

static int ask(struct tw__store_db *db, void *arg)
{
    struct question *question = arg;
    int error = 0;
    sqlite3_stmt *row = tw__store_db_statement(db, question->which, &error);
    if (row == NULL)
        return error;
    if (question->queue != NULL)
        tw__store_bind_text(db, row, 1, question->queue);
    if (sqlite3_bind_parameter_count(row) > 1)
        tw__store_bind_number(db, row, 2, question->now_ms);
    if (question->which == TW__STORE_DUE)
        tw__store_bind_number(db, row, 3, db->run);
    bool names = question->which == TW__STORE_QUEUE_AFTER;
    while (tw__store_db_next(db, row, "count", &error)) {
        if (names)
            error = read_name(db, row, question);
        for (int i = 0; !names && i < sqlite3_column_count(row); i++)
            if (sqlite3_column_type(row, i) != SQLITE_NULL)
                question->value[i] = number(row, i);
    }
    return error;
}

int tw_store_count(const struct tw_store *store, const char *queue, bool dead, uint64_t *count)
{
    static const enum tw__store_statement which[2][2] = {{TW__STORE_COUNT_ALL, TW__STORE_COUNT},
                                                         {TW__STORE_COUNT_ALL_DEAD, TW__STORE_COUNT_DEAD}};
    struct question question = {.which = which[dead][queue != NULL], .queue = queue};
    int error = tw__store_look(store, ask, &question);
    if (error == 0)
        *count = question.value[0];
    return error;
}

int tw_store_next(const struct tw_store *store, const char *queue, uint64_t *next_ms)
{
    struct question question = {.which = queue != NULL ? TW__STORE_NEXT : TW__STORE_NEXT_ALL,
                                .queue = queue,
                                .now_ms = tw_store_now(),
                                .value = {TW_NEVER}};
    int error = tw__store_look(store, ask, &question);
    if (error == 0)
        *next_ms = question.value[0];
    return error;
}

static int find_runner(struct tw__store_db *db, void *arg)
{
    *(int64_t *)arg = tw__store_lock_holder(db);
    return 0;
}

int tw_store_runner(const struct tw_store *store, int64_t *process)
{
    return tw__store_look(store, find_runner, process);
}

static int check_name(const struct tw_store *store, const char *queue)
{
    char text[TW_STORE_MESSAGE_SIZE];
    struct tw__store_db only_message = {.message = text, .size = sizeof text};
    int error = tw__store_queue_check(&only_message, queue);
    return error == 0 ? 0 : tw__store_failed(store, error, text);
}

int tw_store_is_paused(const struct tw_store *store, const char *queue, bool *paused)
{
    struct question question = {.which = TW__STORE_IS_PAUSED, .queue = queue};
    int error = check_name(store, queue);
    if (error == 0)
        error = tw__store_look(store, ask, &question);
    if (error == 0)
        *paused = question.value[0] > 0;
    return error;
}

/* ---- queues ---------------------------------------------------------------------------------------------- */

/* The queues that a caller asks for: one, or all. */
struct queue_tour {
    const char *queue; /* NULL: all */
    uint64_t now_ms;
    int (*show)(struct tw__store_db *db, struct queue_tour *tour, const char *queue);
    tw_store_visit_queue_fn *visit;
    tw_store_visit_load_fn *visit_load;
    void *arg;
};

static int visit_queues(struct tw__store_db *db, void *arg)
{
    struct queue_tour *tour = arg;
    char last[TW_STORE_QUEUE_MAX + 1] = "";
    if (tour->queue != NULL)
        return tour->show(db, tour, tour->queue);
    for (;;) {
        struct question question = {.which = TW__STORE_QUEUE_AFTER, .queue = last};
        int error = ask(db, &question);
        if (error != 0 || question.text[0] == '\0')
            return error;
        memcpy(last, question.text, sizeof last);
        error = tour->show(db, tour, last);
        if (error != 0)
            return error;
    }
}

static int show_queue(struct tw__store_db *db, struct queue_tour *tour, const char *queue)
{
    (void)db;
    tour->visit(tour->arg, queue);
    return 0;
}

int tw_store_queues(const struct tw_store *store, tw_store_visit_queue_fn *visit, void *arg)
{
    struct queue_tour tour = {.show = show_queue, .visit = visit, .arg = arg};
    return tw__store_look(store, visit_queues, &tour);
}

/* A task that runs is due, unless a newer one has replaced it, or the clock was set back since. */
static int show_load(struct tw__store_db *db, struct queue_tour *tour, const char *queue)
{
    struct question live = {.which = TW__STORE_LIVE,
                            .queue = queue,
                            .now_ms = tour->now_ms,
                            .value = {0, TW_NEVER}},
                    due = {.which = TW__STORE_DUE, .queue = queue, .now_ms = tour->now_ms},
                    dead = {.which = TW__STORE_COUNT_DEAD, .queue = queue},
                    paused = {.which = TW__STORE_IS_PAUSED, .queue = queue};
    int error = ask(db, &live);
    if (error == 0)
        error = ask(db, &due);
    if (error == 0)
        error = ask(db, &dead);
    if (error == 0)
        error = ask(db, &paused);
    if (error != 0)
        return error;
    uint64_t ready = due.value[0] - due.value[1], leased = due.value[1] + live.value[2];
    tour->visit_load(tour->arg, &(struct tw_store_load){.queue = queue,
                                                        .waiting = live.value[0] - leased - ready,
                                                        .ready = ready,
                                                        .leased = leased,
                                                        .dead = dead.value[0],
                                                        .next_ms = live.value[1],
                                                        .paused = paused.value[0] > 0,
                                                        .tasks = live.value[0]});
    return 0;
}

int tw_store_loads(const struct tw_store *store, const char *queue, tw_store_visit_load_fn *visit, void *arg)
{
    struct queue_tour tour = {
        .queue = queue, .now_ms = tw_store_now(), .show = show_load, .visit_load = visit, .arg = arg};
    int error = queue != NULL ? check_name(store, queue) : 0;
    return error == 0 ? tw__store_look(store, visit_queues, &tour) : error;
}
