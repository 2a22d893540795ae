/* SPDX-License-Identifier: MIT
 *
 * The outermost level of the wheel lies on the disk. The tasks of the next ten minutes are entries in memory,
 * at most `max_loaded` in all, roughly; the rest waits in the index of the file.
 *
 *     past          now                    horizon
 *     ---------------|------------------------|-------------------------------->  due times of a queue
 *      ready, taken  |  entries in the wheel  |  in the file alone
 *
 * Each queue has a horizon, a place in the order of (due time, revision): every task up to it is an entry. The
 * horizon moves on when its time comes near, and half of the queue's share of entries is free.
 *
 * How the window sees changes. Each put and each move gives its task a number above all numbers before. So a
 * look reads the rows above the last number that it has seen, by the primary key, and files those within the
 * horizon. A task that was cancelled or moved stays an entry: when it is due, its old number finds no row. If
 * very many tasks came at once, or the clock was turned back, or a queue has far too many entries, all entries
 * that are not taken are dropped, and read again from the index. Example: an import of a million tasks that are
 * due next month costs one such reading, which finds none of them.
 *
 * How the order is kept against tasks that were not seen yet. The wheel's time is the clock as it was just
 * before the last look. So whoever has committed a task before its time finds it in its turn, however long ago
 * the runner was told of something. Example: the runner waits for a lock of others for a second. Meanwhile a
 * task comes for in half a second. The next look reads it, and then the wheel passes it before later ones.
 *
 * Invariants
 *   D1  every task of a queue with a handler that waits, and lies within the horizon, has one entry
 *   D2  an entry is in the wheel, or in a ready list, or taken, or free
 *   D3  an entry in the wheel lies within its queue's horizon
 *   D4  every entry that the wheel has passed was due when the file was looked at last
 */
#include "window.h"

#include <base/assert.h>

#include <stdlib.h>
#include <string.h>

enum {
    SHARE_MIN = 16,    /* entries of a queue, however many queues there are */
    BLOCK = 512,       /* entries of one allocation */
    AHEAD_MS = 600000, /* how far the window reaches */
    RENEW_MS = 300000, /* it moves when so much of it is left */
    NEWS_MAX = 20000   /* more new tasks than this are read from the index, not by their numbers */
};

struct tw__store_block {
    struct tw__store_block *next;
    struct tw__store_entry entries[BLOCK];
};

/* ---- entries --------------------------------------------------------------------------------------------- */

static struct tw__store_entry *entry_linked(struct tw__link *link)
{
    return TW_CONTAINER(link, struct tw__store_entry, link);
}

static bool more_entries(struct tw__store_window *window)
{
    struct tw__store_block *block = calloc(1, sizeof *block);
    if (block == NULL)
        return false;
    block->next = window->blocks;
    window->blocks = block;
    for (int i = 0; i < BLOCK; i++)
        tw__list_append(&window->free, &block->entries[i].link);
    return true;
}

/* Returns the place of the pointer to a taken entry, or the end of its bucket. */
static struct tw__store_entry **find_taken(struct tw__store_window *window, uint64_t seq)
{
    struct tw__store_entry **at = &window->taken[seq & window->taken_mask];
    while (*at != NULL && (*at)->seq != seq)
        at = &(*at)->next_taken;
    return at;
}

/* An entry counts as a job of its queue no more. */
static void end_running(struct tw__store_window *window, struct tw__store_queue *queue)
{
    queue->running--;
    tw__store_ready_update(&window->ready, queue);
}

static void end_taking(struct tw__store_window *window, struct tw__store_entry *entry)
{
    struct tw__store_entry **at = find_taken(window, entry->seq);
    TW_ASSERT(*at == entry);
    *at = entry->next_taken;
    if (!entry->held)
        end_running(window, entry->queue);
    entry->held = 0;
}

static void free_entry(struct tw__store_window *window, struct tw__store_entry *entry)
{
    entry->queue->loaded--;
    window->loaded--;
    tw__list_prepend(&window->free, &entry->link);
}

static bool is_within(const struct tw__store_queue *queue, uint64_t due_ms, uint64_t seq)
{
    return due_ms < queue->horizon.due_ms || (due_ms == queue->horizon.due_ms && seq <= queue->horizon.seq);
}

/* Files a task in the wheel for a time, unless a job has it. Returns: 0 or an error. */
static int add_entry(struct tw__store_window *window, struct tw__store_queue *queue, uint64_t seq,
                     uint64_t due_ms, uint64_t at_ms)
{
    if (*find_taken(window, seq) != NULL)
        return 0;
    if (tw__list_empty(&window->free) && !more_entries(window))
        return tw__store_db_refuse(&window->db, TW_ENOMEM, "no memory");
    struct tw__store_entry *entry = entry_linked(window->free.next);
    tw__list_remove(&entry->link);
    entry->queue = queue;
    entry->seq = seq;
    entry->due_ms = due_ms;
    queue->loaded++;
    window->loaded++;
    tw_wheel_add_at(window->wheel, &entry->timer, at_ms);
    return 0;
}

/* Drops all entries that are not taken, so that they are loaded again. */
static void drop_entries(struct tw__store_window *window)
{
    for (struct tw__store_queue *queue = window->queues; queue != NULL; queue = queue->next) {
        while (!tw__list_empty(&queue->ready)) {
            struct tw__store_entry *entry = entry_linked(queue->ready.next);
            tw__list_remove(&entry->link);
            free_entry(window, entry);
        }
        tw__store_ready_update(&window->ready, queue);
        queue->horizon = (struct tw__store_place){0, 0};
    }
    for (struct tw__store_block *block = window->blocks; block != NULL; block = block->next)
        for (int i = 0; i < BLOCK; i++)
            if (tw_wheel_cancel(window->wheel, &block->entries[i].timer))
                free_entry(window, &block->entries[i]);
}

/* ---- loading --------------------------------------------------------------------------------------------- */

/* Files the rows of a statement, and moves the horizon over them. */
static int file_rows(struct tw__store_window *window, struct tw__store_queue *queue, sqlite3_stmt *statement,
                     uint64_t *rows)
{
    int code = SQLITE_ROW, error = 0;
    while (error == 0 && (code = tw__store_db_step(&window->db, statement)) == SQLITE_ROW) {
        uint64_t seq = (uint64_t)sqlite3_column_int64(statement, 0);
        uint64_t due_ms = (uint64_t)sqlite3_column_int64(statement, 1);
        error = add_entry(window, queue, seq, due_ms, due_ms);
        queue->horizon = (struct tw__store_place){due_ms, seq};
        ++*rows;
    }
    if (error == 0 && code != SQLITE_DONE)
        error = tw__store_db_error(&window->db, code, "load tasks");
    sqlite3_reset(statement);
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

/* Loads the tasks between the horizon and `to_ms`, at most `most` rows; *more tells whether there may be
 * others. The tasks that are due at the time of the horizon come from a statement of their own, as in
 * look.c. */
static int load(struct tw__store_window *window, struct tw__store_queue *queue, uint64_t to_ms, uint64_t most,
                bool *more)
{
    struct tw__store_place from = queue->horizon;
    uint64_t rows = 0;
    int error = load_rows(window, queue, TW__STORE_LOAD_TIE, from.due_ms, from.seq, most, &rows);
    if (error == 0 && rows < most)
        error = load_rows(window, queue, TW__STORE_LOAD, from.due_ms, to_ms, most, &rows);
    if (error == 0 && rows < most)
        queue->horizon = (struct tw__store_place){to_ms, INT64_MAX};
    *more = rows == most;
    return error;
}

static uint64_t share_of(const struct tw__store_window *window)
{
    uint64_t share = window->max_loaded / (window->queue_count > 0 ? window->queue_count : 1);
    return share > SHARE_MIN ? share : SHARE_MIN;
}

/* Moves the horizon of a queue on, while its time has come near and half of the queue's share is free. The rows
 * of one reading may all be taken: then nothing would tell when to go on. */
static int advance_horizon(struct tw__store_window *window, struct tw__store_queue *queue, uint64_t share)
{
    int error = 0;
    for (bool more = true; error == 0 && more;) {
        uint64_t waiting = queue->loaded - queue->running;
        if (queue->horizon.due_ms > window->now_ms + RENEW_MS || waiting > share / 2)
            break;
        error = load(window, queue, window->now_ms + AHEAD_MS, share - waiting, &more);
    }
    return error;
}

/* ---- queues ---------------------------------------------------------------------------------------------- */

static struct tw__store_queue **find_queue(struct tw__store_window *window, const char *name)
{
    struct tw__store_queue **at = &window->named[tw__store_hash(0, name, strlen(name)) % TW__STORE_QUEUES];
    while (*at != NULL && strcmp((*at)->name, name) != 0)
        at = &(*at)->next_named;
    return at;
}

struct tw__store_queue *tw__store_window_queue(struct tw__store_window *window, const char *name,
                                               const struct tw__store_queue *like)
{
    struct tw__store_queue *queue = calloc(1, sizeof *queue);
    if (queue == NULL || !tw__store_ready_reserve(&window->ready, window->queue_count + 1)) {
        free(queue);
        return NULL;
    }
    memcpy(queue->name, name, strlen(name) + 1);
    queue->handler = like->handler;
    queue->arg = like->arg;
    queue->at_once = like->at_once;
    tw__list_init(&queue->ready);
    *find_queue(window, name) = queue;
    queue->next = window->queues;
    window->queues = queue;
    window->queue_count++;
    return queue;
}

/* Copies the name of a queue from a value of SQLite. Returns false if somebody has written one that is none. */
static bool copy_name(int type, const void *text, int size, char *name)
{
    if (type != SQLITE_TEXT || size == 0 || size > TW_STORE_QUEUE_MAX || memchr(text, 0, (size_t)size) != NULL)
        return false;
    memcpy(name, text, (size_t)size);
    name[size] = '\0';
    return true;
}

static bool read_name(sqlite3_stmt *row, int column, char *name)
{
    const void *text = sqlite3_column_blob(row, column);
    return copy_name(sqlite3_column_type(row, column), text, sqlite3_column_bytes(row, column), name);
}

/* Sets *queue to the queue of that name, which is made if the handler of the others takes it; NULL: nobody
 * does. Returns: 0 or an error. */
static int need_queue(struct tw__store_window *window, const char *name, struct tw__store_queue **queue)
{
    *queue = *find_queue(window, name);
    if (*queue != NULL || window->others.handler == NULL)
        return 0;
    *queue = tw__store_window_queue(window, name, &window->others);
    return *queue != NULL ? 0 : tw__store_db_refuse(&window->db, TW_ENOMEM, "no memory");
}

/* Replaces *name by the next name of a queue in the file; NULL: there is none. Returns: 0 or an error. */
static int next_name(struct tw__store_window *window, sqlite3_value **name)
{
    int error = 0;
    sqlite3_stmt *row = tw__store_db_statement(&window->db, TW__STORE_QUEUE_AFTER, &error);
    if (row == NULL)
        return error;
    if (*name != NULL)
        tw__store_bind_value(&window->db, row, 1, *name);
    else
        tw__store_bind_text(&window->db, row, 1, "");
    int code = tw__store_db_step(&window->db, row);
    sqlite3_value_free(*name);
    *name = NULL;
    if (code != SQLITE_ROW)
        error = tw__store_db_error(&window->db, code, "look for queues");
    else if (sqlite3_column_type(row, 0) != SQLITE_NULL &&
             (*name = sqlite3_value_dup(sqlite3_column_value(row, 0))) == NULL)
        error = tw__store_db_refuse(&window->db, TW_ENOMEM, "no memory");
    sqlite3_reset(row);
    return error;
}

/* Finds the queues of the file, for the handler of the others. A name that is none is passed over. */
static int find_queues(struct tw__store_window *window)
{
    sqlite3_value *value = NULL;
    struct tw__store_queue *queue;
    char name[TW_STORE_QUEUE_MAX + 1];
    int error = window->others.handler != NULL ? next_name(window, &value) : 0;
    while (error == 0 && value != NULL) {
        const void *text = sqlite3_value_blob(value);
        if (copy_name(sqlite3_value_type(value), text, sqlite3_value_bytes(value), name))
            error = need_queue(window, name, &queue);
        if (error == 0)
            error = next_name(window, &value);
    }
    sqlite3_value_free(value);
    return error;
}

static void set_pause(struct tw__store_window *window, struct tw__store_queue *queue, bool paused)
{
    if (queue->paused == paused)
        return;
    queue->paused = paused;
    window->paused_count += paused ? 1 : -1;
    tw__store_ready_update(&window->ready, queue);
}

/* Ends the pauses of which the last reading has found no row. */
static void end_pauses(struct tw__store_window *window)
{
    for (struct tw__store_queue *queue = window->queues; queue != NULL; queue = queue->next)
        if (queue->pause_read != window->pause_reads)
            set_pause(window, queue, false);
}

static int read_pauses(struct tw__store_window *window)
{
    int error = 0, code;
    int64_t found = 0;
    char name[TW_STORE_QUEUE_MAX + 1];
    sqlite3_stmt *rows = tw__store_db_statement(&window->db, TW__STORE_PAUSED, &error);
    if (rows == NULL)
        return error;
    window->pause_reads++;
    while ((code = tw__store_db_step(&window->db, rows)) == SQLITE_ROW) {
        struct tw__store_queue *queue = read_name(rows, 0, name) ? *find_queue(window, name) : NULL;
        if (queue == NULL)
            continue;
        queue->pause_read = window->pause_reads;
        set_pause(window, queue, true);
        found++;
    }
    sqlite3_reset(rows);
    if (code != SQLITE_DONE)
        return tw__store_db_error(&window->db, code, "read tw_queue");
    if (window->paused_count > found)
        end_pauses(window);
    return 0;
}

/* ---- looking --------------------------------------------------------------------------------------------- */

/* When a task that has come since the last look is called. If its time had passed at the last look, it came too
 * late, and goes behind the tasks that are due by now. */
static uint64_t turn_of(const struct tw__store_window *window, uint64_t due_ms)
{
    return due_ms > tw_wheel_now(window->wheel) ? due_ms : window->now_ms;
}

/* Files the tasks that have come since the last look. */
static int read_news(struct tw__store_window *window)
{
    int error = 0, code = SQLITE_ROW;
    char name[TW_STORE_QUEUE_MAX + 1];
    sqlite3_stmt *rows = tw__store_db_statement(&window->db, TW__STORE_NEWS, &error);
    if (rows == NULL)
        return error;
    tw__store_bind_number(&window->db, rows, 1, window->seen_seq);
    while (error == 0 && (code = tw__store_db_step(&window->db, rows)) == SQLITE_ROW) {
        uint64_t seq = (uint64_t)sqlite3_column_int64(rows, 0);
        uint64_t due_ms = (uint64_t)sqlite3_column_int64(rows, 1);
        struct tw__store_queue *queue = NULL;
        if (read_name(rows, 2, name))
            error = need_queue(window, name, &queue);
        if (queue != NULL && is_within(queue, due_ms, seq))
            error = add_entry(window, queue, seq, due_ms, turn_of(window, due_ms));
    }
    if (error == 0 && code != SQLITE_DONE)
        error = tw__store_db_error(&window->db, code, "look for tasks");
    sqlite3_reset(rows);
    return error;
}

/* Returns whether the entries have to be read anew. A seq that went back is another file's, or a restored
 * one's. */
static bool is_stale(const struct tw__store_window *window, uint64_t share)
{
    bool stale =
        window->broken || window->db.seq < window->seen_seq || window->db.seq - window->seen_seq > NEWS_MAX;
    for (const struct tw__store_queue *queue = window->queues; queue != NULL && !stale; queue = queue->next)
        stale = queue->loaded - queue->running > 2 * share;
    return stale;
}

/* Looks at the file, in a transaction that reads. */
static int look_inside(struct tw__store_window *window)
{
    int error = tw__store_db_begin_seq(&window->db);
    if (error != 0)
        return error;
    bool anew = is_stale(window, share_of(window));
    if (anew)
        drop_entries(window);
    error = anew ? find_queues(window) : read_news(window);
    if (error == 0)
        error = read_pauses(window);
    uint64_t share = share_of(window);
    for (struct tw__store_queue *queue = window->queues; queue != NULL && error == 0; queue = queue->next)
        error = advance_horizon(window, queue, share);
    window->broken = error != 0;
    if (error == 0)
        window->seen_seq = window->db.seq;
    return error;
}

/* A wheel follows its clock forwards alone. If the clock was turned back, a new wheel begins there. */
static int turn_back(struct tw__store_window *window, uint64_t now_ms)
{
    struct tw_wheel *wheel;
    const struct tw_geometry geometry = TW_DEFAULT;
    int error = tw_wheel_new(&wheel, &geometry, now_ms);
    if (error != 0)
        return tw__store_db_refuse(&window->db, error, "no memory");
    drop_entries(window);
    tw_wheel_free(window->wheel);
    window->wheel = wheel;
    return 0;
}

/* Sets *version to a number that changes when another connection commits. */
static int read_version(struct tw__store_window *window, uint64_t *version)
{
    int error = 0;
    sqlite3_stmt *row = tw__store_db_statement(&window->db, TW__STORE_VERSION, &error);
    if (row == NULL)
        return error;
    int code = tw__store_db_step(&window->db, row);
    *version = code == SQLITE_ROW ? (uint64_t)sqlite3_column_int64(row, 0) : 0;
    sqlite3_reset(row);
    return code == SQLITE_ROW ? 0 : tw__store_db_error(&window->db, code, "look");
}

/* The version is read before the rows: a commit in between is looked at twice, and none is missed. */
int tw__store_window_look(struct tw__store_window *window, uint64_t now_ms, bool whole)
{
    struct tw__store_db *db = &window->db;
    uint64_t version = 0;
    int error = now_ms < window->now_ms ? turn_back(window, now_ms) : 0;
    whole |= now_ms < window->now_ms || now_ms >= window->load_at_ms || window->broken;
    if (error == 0)
        error = read_version(window, &version);
    if (error == 0 && !whole && version == window->version)
        return 0;
    window->broken |= error != 0;
    if (error != 0)
        return error;
    window->now_ms = now_ms;
    error = tw__store_db_do(db, TW__STORE_BEGIN_READ, "begin");
    if (error == 0)
        error = look_inside(window);
    tw__store_db_roll_back(db); /* it has changed nothing */
    if (error == 0) {
        window->version = version;
        window->load_at_ms = now_ms + RENEW_MS;
    }
    return error;
}

bool tw__store_window_is_due(const struct tw__store_window *window, uint64_t now_ms)
{
    return tw_wheel_next_bound(window->wheel) <= now_ms;
}

void tw__store_window_expire(struct tw__store_window *window, uint64_t now_ms)
{
    struct tw_timer *timer;
    window->now_ms = now_ms > window->now_ms ? now_ms : window->now_ms;
    while ((timer = tw_wheel_poll(window->wheel, window->now_ms)) != NULL) {
        struct tw__store_entry *entry = TW_CONTAINER(timer, struct tw__store_entry, timer);
        entry->turn = ++window->turns;
        tw__list_append(&entry->queue->ready, &entry->link);
        tw__store_ready_update(&window->ready, entry->queue);
    }
}

uint64_t tw__store_window_next(const struct tw__store_window *window)
{
    uint64_t next_ms = tw_wheel_next_bound(window->wheel);
    return next_ms < window->load_at_ms ? next_ms : window->load_at_ms;
}

/* ---- taking ---------------------------------------------------------------------------------------------- */

struct tw__store_entry *tw__store_window_take(struct tw__store_window *window)
{
    struct tw__store_queue *queue = tw__store_ready_first(&window->ready);
    if (queue == NULL)
        return NULL;
    struct tw__store_entry *entry = entry_linked(queue->ready.next);
    struct tw__store_entry **bucket = &window->taken[entry->seq & window->taken_mask];
    tw__list_remove(&entry->link);
    entry->next_taken = *bucket;
    *bucket = entry;
    queue->running++;
    tw__store_ready_update(&window->ready, queue);
    return entry;
}

void tw__store_window_hold(struct tw__store_window *window, struct tw__store_entry *entry)
{
    entry->held = 1;
    end_running(window, entry->queue);
}

/* Entries are taken from the front, so only others that were taken and put back stand before it. */
void tw__store_window_put_back(struct tw__store_window *window, struct tw__store_entry *entry)
{
    struct tw__link *ready = &entry->queue->ready, *at = ready->next;
    while (at != ready && entry_linked(at)->turn < entry->turn)
        at = at->next;
    tw__list_insert(&entry->link, at);
    if (entry->held)
        tw__store_ready_update(&window->ready, entry->queue);
    end_taking(window, entry);
}

void tw__store_window_forget(struct tw__store_window *window, struct tw__store_entry *entry)
{
    end_taking(window, entry);
    free_entry(window, entry);
}

void tw__store_window_again(struct tw__store_window *window, struct tw__store_entry *entry, uint64_t due_ms)
{
    if (!is_within(entry->queue, due_ms, entry->seq)) {
        tw__store_window_forget(window, entry);
        return;
    }
    end_taking(window, entry);
    entry->due_ms = due_ms;
    tw_wheel_add_at(window->wheel, &entry->timer, due_ms);
}

/* ---- the window ------------------------------------------------------------------------------------------ */

int tw__store_window_init(struct tw__store_window *window, uint64_t max_loaded, uint64_t max_taken)
{
    const struct tw_geometry geometry = TW_DEFAULT;
    uint64_t buckets = 1;
    while (buckets < 2 * max_taken)
        buckets *= 2;
    tw__list_init(&window->free);
    window->db.schema = "main";
    window->db.message = window->message;
    window->db.size = sizeof window->message;
    window->max_loaded = max_loaded;
    window->taken_mask = buckets - 1;
    window->taken = calloc(buckets, sizeof(void *));
    window->broken = true; /* nothing is loaded yet */
    window->now_ms = tw_store_now();
    if (window->taken == NULL || tw_wheel_new(&window->wheel, &geometry, window->now_ms) != 0)
        return TW_ENOMEM;
    return 0;
}

void tw__store_window_fini(struct tw__store_window *window)
{
    for (struct tw__store_block *block = window->blocks, *next; block != NULL; block = next) {
        next = block->next;
        free(block);
    }
    for (struct tw__store_queue *queue = window->queues, *next; queue != NULL; queue = next) {
        next = queue->next;
        free(queue);
    }
    tw_wheel_free(window->wheel);
    free(window->ready.heap);
    free(window->taken);
}
