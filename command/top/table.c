/* SPDX-License-Identifier: MIT */
#include "table.h"

#include <inttypes.h>
#include <string.h>

enum { LISTED_MAX = 2 * READING_QUEUES };

/* Lists the paused queues, then the largest of the others. Returns how many. */
static int list_all(const struct reading *reading, const struct queue_seen *list[LISTED_MAX])
{
    int count = 0;
    for (size_t i = 0; i < reading->pauses; i++)
        list[count++] = &reading->paused[i];
    for (size_t i = 0; i < reading->queues; i++)
        if (!reading->tells_pauses || !reading->seen[i].paused)
            list[count++] = &reading->seen[i];
    return count;
}

int table_rows(const struct reading *reading)
{
    const struct queue_seen *list[LISTED_MAX];
    int count = list_all(reading, list);
    return count == 0 ? 0 : count + 1;
}

/* Returns the queue of the same name and database in the reading before; NULL if it was not listed there. */
static const struct queue_seen *seen_before(const struct page *page, const struct queue_seen *seen)
{
    for (size_t i = 0; page->before != NULL && i < page->before->queues; i++) {
        const struct queue_seen *one = &page->before->seen[i];
        if (one->db == seen->db && one->hash == seen->hash)
            return one;
    }
    return NULL;
}

/* How many tasks were delivered or done. */
static uint64_t ended(const struct queue_seen *seen)
{
    return seen->delivered == ABSENT || seen->done == ABSENT ? ABSENT : seen->delivered + seen->done;
}

static double rate_of_ends(const struct page *page, const struct queue_seen *seen)
{
    const struct queue_seen *before = seen_before(page, seen);
    uint64_t ns = page->before == NULL ? 0 : page->reading->at_ns - page->before->at_ns;
    if (before == NULL || ns == 0 || ended(seen) < ended(before) ||
        !reading_goes_on(page->before, page->reading))
        return -1;
    return (double)(ended(seen) - ended(before)) * 1e9 / (double)ns;
}

enum { QUEUE_NAME = 24, QUEUE_COLUMN = 10 };

/* Puts a row of the table, whose cells end with NULL. The name takes the columns that the numbers leave; a
 * narrow sheet shows fewer numbers. */
static void put_cells(struct page *page, enum style style, const char *name, const char *const *cells)
{
    int most = (page->cols - 2 * MARGIN - QUEUE_NAME) / QUEUE_COLUMN, columns = 0;
    while (cells[columns] != NULL && (columns == 0 || columns < most))
        columns++;
    int room = page->cols - 2 * MARGIN - columns * QUEUE_COLUMN;
    sheet_put(page->sheet, page->row, MARGIN, style, "%.*s", room < 1 ? 1 : room, name);
    for (int i = 0; i < columns; i++)
        sheet_put(page->sheet, page->row, MARGIN + room + (i + 1) * QUEUE_COLUMN - (int)strlen(cells[i]),
                  style == STYLE_PLAIN ? style : STYLE_LABEL, "%s", cells[i]);
    page->row++;
}

static void put_queue_of_server(struct page *page, const struct queue_seen *seen)
{
    char name[READING_NAME + 32] = "";
    struct figure tasks = show_count(seen->tasks), held = show_count(seen->held);
    struct figure ready = show_count(seen->ready), leased = show_count(seen->leased);
    struct figure dead = show_count(seen->dead);
    struct figure all = show_count(ended(seen)), rate = show_rate(rate_of_ends(page, seen));
    const char *now = seen->paused ? "paused" : rate.text;
    const char *const cells[] = {tasks.text, now, all.text, held.text, dead.text, NULL};
    const char *const of_workers[] = {tasks.text, ready.text, leased.text, dead.text,
                                      now,        all.text,   held.text,   NULL};
    if (seen->db > 0)
        snprintf(name, sizeof name, "db%" PRIu64 " ", seen->db);
    size_t at = strlen(name);
    snprintf(name + at, sizeof name - at, "%s", seen->name);
    put_cells(page, STYLE_PLAIN, name, reading_has_workers(page->reading) ? of_workers : cells);
}

/* When the next task of a queue comes. Its numbers may be some seconds old. */
static struct figure show_next(const struct page *page, const struct queue_seen *seen)
{
    uint64_t now_ms = page->reading->time_ms;
    if (seen->ready > 0 || seen->next_ms < now_ms)
        return (struct figure){"now"};
    if (seen->next_ms == ABSENT)
        return (struct figure){"-"};
    struct figure next = show_ms(seen->next_ms - now_ms);
    size_t size = strlen(next.text);
    if (size >= QUEUE_COLUMN) /* "7900 years" would touch the number before it: "7900 y" */
        next.text[size - strlen("ears")] = '\0';
    return next;
}

static void put_queue_of_file(struct page *page, const struct queue_seen *seen)
{
    struct figure waiting = show_count(seen->waiting), ready = show_count(seen->ready);
    struct figure leased = show_count(seen->leased), dead = show_count(seen->dead);
    struct figure next = show_next(page, seen);
    const char *const cells[] = {
        waiting.text, seen->paused ? "paused" : next.text, ready.text, leased.text, dead.text, NULL};
    put_cells(page, STYLE_PLAIN, seen->name, cells);
}

static const char *heading(const struct reading *reading)
{
    if (reading->pauses > 0)
        return "paused, then the largest";
    return reading->alone ? "queue" : "largest queues";
}

void table_put(struct page *page)
{
    const struct queue_seen *list[LISTED_MAX];
    static const char *const names[] = {"tasks", "ended/s", "ended", "held", "dead", NULL};
    static const char *const of_workers[] = {"tasks",   "ready", "leased", "dead",
                                             "ended/s", "ended", "held",   NULL};
    static const char *const of_file[] = {"waiting", "next in", "ready", "leased", "dead", NULL};
    bool store = reading_is_store(page->reading);
    if (page->queues < 2)
        return;
    int listed = list_all(page->reading, list);
    put_cells(page, STYLE_HEAD, heading(page->reading),
              store                                ? of_file
              : reading_has_workers(page->reading) ? of_workers
                                                   : names);
    for (int i = 0; i < listed && i + 1 < page->queues; i++)
        (store ? put_queue_of_file : put_queue_of_server)(page, list[i]);
}
