/* SPDX-License-Identifier: MIT
 *
 * The outermost level of the wheel lies on the disk. The tasks of the next ten minutes are entries in memory,
 * at most `max_loaded` in all, roughly; the rest waits in the index of the file.
 *
 *     past          now                    horizon
 *     ---------------|------------------------|-------------------------------->  places of a queue
 *      ready, taken  |  entries in the wheel  |  in the file alone
 *
 * Mostly the horizon is one for all queues: every task that is due until then is an entry. It moves on when
 * its time comes near. A queue with more tasks than its share of the entries is not whole. It has a horizon of
 * its own, a place in the order of (place_ms, revision), which moves on when half of the share is free: such a
 * queue is hungry. So a queue without an entry needs no memory, and nothing here takes longer because there
 * were many queues before. Example: a file has a million queues, a task each, and a thousand of these tasks are
 * due in the next ten minutes. The window has a thousand queues.
 *
 * How the window sees changes. Each put and each move gives its task a number above all numbers before. So a
 * look reads the rows above the last number that it has seen, by the primary key, and files those within the
 * horizon. A task that was cancelled or moved stays an entry: when it is due, its old number finds no row. If
 * very many tasks came at once, or the clock was turned back, or one queue and the window have far too many
 * entries, all entries that are not taken are dropped, and read again from the index. Example: an import of a
 * million tasks that are due next month costs one such reading, which finds none of them. That reading, and
 * each move of the horizon, goes over the index of the order once, and passes over the later tasks of a queue
 * by a search for the next.
 *
 * A task that a program has taken has no entry, or an old one, whose claim finds no row. The first end of a
 * lease is a time for which the runner wakes. Each end of such an attempt gives the task a new number. But a
 * task that the program gives back has its old number, for its place in the order. No look could tell whether
 * it has its entry still. So tw_meta counts such tasks (`backs`), and after one of them all is read anew.
 * (Rejected: to mark its row. Each put would write an empty mark.)
 *
 * How the order is kept against tasks that were not seen yet. The wheel's time is the clock as it was just
 * before the last look. So whoever has committed a task before its time finds it in its turn, however long ago
 * the runner was told of something. Example: the runner waits for a lock of others for a second. Meanwhile a
 * task comes for in half a second. The next look reads it, and then the wheel passes it before later ones.
 *
 * A claim takes many entries between two looks, and may use up the loaded part of a queue. Then nothing behind
 * the horizon of that queue is taken before the next look has fed it: the fence. What a look loads is ready at
 * once if the wheel has passed its time. Example: "a" is loaded up to a task of 9, and has another one of 10,
 * and "b" one of 11. When the task of 9 is taken, "b" waits for the next look, which loads the task of 10.
 *
 * A backup that is restored into the file takes the numbers back. Then new tasks have numbers that were seen
 * already, and nobody would look at them. So a look compares the number of the schema. SQLite raises it in the
 * file into which it restores, whatever the backup has, so that all connections read the schema anew. A program
 * that makes a table raises it too, and then the window is read anew for nothing.
 *
 * Other programs write pages without SQLite's backup, for example sqlite3_rsync. So a look compares `changes`
 * of tw_meta as well, which each transaction of ours raises. A smaller count than before means that the file
 * has gone back. So does another number of the run, since nobody else can begin a run. A commit of the run
 * compares the same before it writes: it would raise the count. Then it writes nothing; else the count that it
 * has written is the next one to compare with, so a backup from between two of our commits is noticed too. (It
 * does not ask for the number of the schema, which no commit of ours changes. So answers are written also after
 * somebody has dropped an index, and no look succeeds.) If the file has gone back, all is dropped and read
 * anew, and the numbers of the jobs under way hide no task: their entries are orphans, and end with their jobs.
 * Example: the window has seen the changes 1 to 8. Change 5 comes back, and two changes follow, in the copy
 * before or in the file since: 7. Had there been three before the next look, the count could not tell:
 * docs/store.md names this hole, and `tickwheel restore` closes it, for it changes `restored`.
 *
 * Invariants
 *   D1  every task of a queue with a handler that waits, and lies within the queue's horizon, has one entry
 *   D2  an entry is in the wheel, or in a ready list, or taken, or free
 *   D3  an entry in the wheel lies within its queue's horizon
 *   D4  a queue that is not whole is hungry, or has entries for more than half of its share
 *   D5  every entry that the wheel has passed was due when the file was looked at last
 */
#include "window.h"

#include <base/assert.h>

#include "horizon.h"

#include <stdlib.h>

enum {
    NEWS_MAX = 20000, /* more new tasks than this are read from the index, not by their numbers */
    SEARCH_ROWS = 4   /* rows of tw_queue that are read in the time of a search for one */
};

/* ---- pauses ---------------------------------------------------------------------------------------------- */

static void set_pause(struct tw__store_window *window, struct tw__store_queue *queue, bool paused)
{
    if (queue->paused == paused)
        return;
    queue->paused = paused;
    window->paused_count += paused ? 1 : -1;
    tw__store_ready_update(&window->ready, queue);
}

/* Ends a pause of which the last reading has found no row. */
static int unpause_queue(void *arg, struct tw__store_queue *queue)
{
    struct tw__store_window *window = arg;
    if (queue->pause_read != window->pause_reads)
        set_pause(window, queue, false);
    return 0;
}

/* Of a file that is marked as restored nothing is called. */
static int pause_too(void *window, struct tw__store_queue *queue)
{
    set_pause(window, queue, true);
    return 0;
}

/* Looks a queue up in tw_queue. */
static int read_pause(void *arg, struct tw__store_queue *queue)
{
    struct tw__store_window *window = arg;
    int error = 0;
    bool paused = false;
    sqlite3_stmt *row = tw__store_db_statement(&window->db, TW__STORE_IS_PAUSED, &error);
    if (row == NULL)
        return error;
    tw__store_bind_text(&window->db, row, 1, queue->name);
    while (tw__store_db_next(&window->db, row, "read tw_queue", &error))
        paused = sqlite3_column_int(row, 0) > 0;
    if (error == 0)
        set_pause(window, queue, paused);
    return error;
}

/* Reads all pauses of the file. */
static int read_all_pauses(struct tw__store_window *window)
{
    int error = 0;
    int64_t found = 0;
    char name[TW_STORE_QUEUE_MAX + 1];
    sqlite3_stmt *rows = tw__store_db_statement(&window->db, TW__STORE_PAUSED, &error);
    if (rows == NULL)
        return error;
    window->pause_reads++;
    window->pauses = 0;
    for (; tw__store_db_next(&window->db, rows, "read tw_queue", &error); window->pauses++) {
        struct tw__store_queue *queue = NULL;
        if (tw__store_queue_name(rows, 0, name))
            queue = tw__store_queues_find(&window->queues, name);
        if (queue == NULL)
            continue;
        queue->pause_read = window->pause_reads;
        set_pause(window, queue, true);
        found++;
    }
    if (error == 0 && window->paused_count > found)
        tw__store_queues_each(&window->queues, unpause_queue, window);
    return error;
}

/* A file may have many pauses of queues that have no task soon, as the window may have many queues that are not
 * paused. A search takes as long as a few rows. After as many searches as there were rows all are read again,
 * since most pauses may have ended. */
static int read_pauses(struct tw__store_window *window)
{
    if (tw__store_db_is_marked(&window->db))
        return tw__store_queues_each(&window->queues, pause_too, window);
    window->searches += window->queues.count;
    if (window->queues.count < window->pauses / SEARCH_ROWS && window->searches < window->pauses)
        return tw__store_queues_each(&window->queues, read_pause, window);
    window->searches = 0;
    return read_all_pauses(window);
}

/* ---- looking --------------------------------------------------------------------------------------------- */

/* The place in the order of a task that has come since the last look. If its time had passed at that look, it
 * came too late, and goes behind the tasks that are due by now. */
static uint64_t turn_of(const struct tw__store_window *window, uint64_t place_ms)
{
    return place_ms > tw_wheel_now(window->wheel) ? place_ms : window->now_ms;
}

/* Files a task that has come since the last look, if it is due within the horizon. */
static int file_news(struct tw__store_window *window, const char *name, uint64_t revision, uint64_t place_ms)
{
    struct tw__store_queue *queue = tw__store_queues_find(&window->queues, name);
    if ((queue == NULL && window->others.handler == NULL) ||
        !tw__store_is_within(window, queue, place_ms, revision))
        return 0;
    if (queue == NULL) {
        queue = tw__store_queue_add(window, name, &window->others);
        if (queue == NULL)
            return TW_ENOMEM;
        queue->whole = true;
    }
    return tw__store_entry_add(window, queue, revision, turn_of(window, place_ms));
}

/* Goes over the tasks that have come since the last look. */
static int read_news(struct tw__store_window *window)
{
    int error = 0;
    char name[TW_STORE_QUEUE_MAX + 1];
    sqlite3_stmt *rows = tw__store_db_statement(&window->db, TW__STORE_NEWS, &error);
    if (rows == NULL)
        return error;
    tw__store_bind_number(&window->db, rows, 1, window->seen.revision);
    while (tw__store_db_next(&window->db, rows, "look for tasks", &error)) {
        uint64_t revision = (uint64_t)sqlite3_column_int64(rows, 0);
        uint64_t place_ms = (uint64_t)sqlite3_column_int64(rows, 1);
        if (tw__store_queue_name(rows, 2, name))
            error = file_news(window, name, revision, place_ms);
    }
    return error;
}

/* Reads when the first lease of a program runs out. */
static int read_leases(struct tw__store_window *window)
{
    window->lapse_ms = TW_NEVER;
    return tw__store_db_number(&window->db, TW__STORE_FIRST_END, "look for leases", &window->lapse_ms);
}

/* SQLite raises this number in the file into which it restores a backup. The first look knows no other one. */
static int read_schema_version(struct tw__store_window *window)
{
    uint64_t before = window->schema_version;
    int error = tw__store_db_number(&window->db, TW__STORE_SCHEMA_VERSION, "look", &window->schema_version);
    window->gone_back |= before != 0 && window->schema_version != before;
    return error;
}

/* Returns whether the entries have to be read anew. */
static bool is_stale(const struct tw__store_window *window)
{
    return window->broken || window->crowded || window->db.backs != window->seen.backs ||
           window->db.revision - window->seen.revision > NEWS_MAX;
}

/* Looks at the file, in a transaction that reads. */
static int look_inside(struct tw__store_window *window)
{
    struct tw__store_db *db = &window->db;
    int error = tw__store_db_begin_revisions(db);
    if (error == 0)
        error = read_leases(window);
    if (error == 0)
        error = read_schema_version(window);
    if (error != 0)
        return error;
    window->gone_back |= tw__store_db_has_gone_back(db, &window->seen);
    bool anew = window->gone_back || is_stale(window);
    if (window->gone_back)
        tw__store_entries_orphan(window);
    if (anew)
        tw__store_entries_drop(window);
    else
        error = read_news(window);
    if (error == 0 && (anew || window->now_ms >= window->load_at_ms))
        error = tw__store_horizon_move(window);
    if (error == 0)
        error = tw__store_horizon_feed(window);
    if (error == 0)
        error = read_pauses(window);
    window->broken = error != 0;
    if (error == 0)
        window->seen = (struct tw__store_seen){db->revision, db->run, db->changes, db->restored, db->backs};
    return error;
}

/* A wheel follows its clock forwards alone. If the clock was turned back, a new wheel begins there. */
static int turn_back(struct tw__store_window *window, uint64_t now_ms)
{
    struct tw_wheel *wheel;
    int error = tw_wheel_new(&wheel, NULL, now_ms);
    if (error != 0)
        return tw__store_db_refuse(&window->db, error, "no memory");
    tw__store_entries_drop(window);
    tw_wheel_free(window->wheel);
    window->wheel = wheel;
    window->broken = true; /* nothing is loaded */
    return 0;
}

bool tw__store_window_wants(const struct tw__store_window *window, uint64_t now_ms)
{
    return window->broken || window->hungry != NULL || now_ms >= window->load_at_ms || now_ms < window->now_ms;
}

/* The version is read before the rows: a commit in between is looked at twice, and none is missed. */
int tw__store_window_look(struct tw__store_window *window, uint64_t now_ms, bool whole)
{
    struct tw__store_db *db = &window->db;
    uint64_t version = 0;
    whole |= tw__store_window_wants(window, now_ms);
    int error = now_ms < window->now_ms ? turn_back(window, now_ms) : 0;
    if (error == 0) /* a number that changes when another connection commits */
        error = tw__store_db_number(db, TW__STORE_VERSION, "look", &version);
    if (error == 0 && !whole && version == window->version)
        return 0;
    window->broken |= error != 0;
    if (error != 0)
        return error;
    window->now_ms = now_ms;
    error = tw__store_db_begin(db, TW__STORE_BEGIN_READ);
    if (error == 0)
        error = look_inside(window);
    tw__store_db_roll_back(db); /* it has changed nothing */
    if (error == 0)
        window->version = version;
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
    while ((timer = tw_wheel_poll(window->wheel, window->now_ms)) != NULL)
        tw__store_entry_ready(window, TW_CONTAINER(timer, struct tw__store_entry, timer));
}

uint64_t tw__store_window_next(const struct tw__store_window *window)
{
    uint64_t next_ms = tw_wheel_next_bound(window->wheel);
    next_ms = next_ms < window->lapse_ms ? next_ms : window->lapse_ms;
    return next_ms < window->load_at_ms ? next_ms : window->load_at_ms;
}

/* ---- taking ---------------------------------------------------------------------------------------------- */

static void end_taking(struct tw__store_window *window, struct tw__store_entry *entry)
{
    if (!entry->orphan) {
        /* Another entry may have the same number, if a backup was restored that no look has noticed. */
        struct tw__store_entry **at = &window->taken[entry->revision & window->taken_mask];
        while (*at != entry)
            at = &(*at)->next_taken;
        *at = entry->next_taken;
    }
    entry->orphan = false;
    entry->queue->running--;
    tw__store_ready_update(&window->ready, entry->queue);
}

struct tw__store_entry *tw__store_window_take(struct tw__store_window *window)
{
    struct tw__store_queue *queue = tw__store_ready_first(&window->ready);
    if (queue == NULL)
        return NULL;
    struct tw__store_entry *entry = tw__store_entry_linked(queue->ready.next);
    if (!tw__store_is_up_to(entry->place_ms, entry->revision, window->fence))
        return NULL;
    struct tw__store_entry **bucket = &window->taken[entry->revision & window->taken_mask];
    tw__list_remove(&entry->link);
    entry->next_taken = *bucket;
    *bucket = entry;
    queue->running++;
    tw__store_ready_update(&window->ready, queue);
    tw__store_horizon_note(window, queue);
    return entry;
}

void tw__store_window_put_back(struct tw__store_window *window, struct tw__store_entry *entry)
{
    if (entry->orphan) {
        window->broken = true; /* the row has no entry */
        tw__store_window_forget(window, entry);
        return;
    }
    end_taking(window, entry);
    tw__store_entry_file(window, entry);
}

void tw__store_window_forget(struct tw__store_window *window, struct tw__store_entry *entry)
{
    struct tw__store_queue *queue = entry->queue;
    end_taking(window, entry);
    tw__store_entry_free(window, entry);
    tw__store_queue_forget(window, queue);
}

void tw__store_window_again(struct tw__store_window *window, struct tw__store_entry *entry, uint64_t place_ms)
{
    entry->place_ms = place_ms;
    tw__store_window_put_back(window, entry);
}

/* ---- the window ------------------------------------------------------------------------------------------ */

int tw__store_window_name(struct tw__store_window *window, const char *name,
                          const struct tw__store_callee *callee)
{
    struct tw__store_queue *queue = tw__store_queue_add(window, name, callee);
    if (queue == NULL)
        return TW_ENOMEM;
    queue->named = true;
    return 0;
}

int tw__store_window_init(struct tw__store_window *window, uint64_t max_loaded, uint64_t max_taken)
{
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
    window->lapse_ms = TW_NEVER;
    window->now_ms = tw_store_now();
    if (tw__store_queues_init(&window->queues) != 0 || window->taken == NULL ||
        tw_wheel_new(&window->wheel, NULL, window->now_ms) != 0)
        return TW_ENOMEM;
    return 0;
}

void tw__store_window_fini(struct tw__store_window *window)
{
    tw__store_entries_fini(window);
    tw__store_queues_fini(&window->queues);
    tw_wheel_free(window->wheel);
    free(window->ready.heap);
    free(window->taken);
}
