/* SPDX-License-Identifier: MIT
 *
 * Lists tasks. A long list is read in pages, each written when it has been read: so a pager that is slow to
 * read does not hold a transaction open, which would keep SQLite from shortening its log.
 */
#include "command.h"
#include "task_print.h"
#include "tasks_action.h"

#include <stdlib.h>

enum { PAGE = 1000 };

struct page {
    FILE *out;
    bool json, lost; /* lost: there was no memory for a line */
    uint64_t now_ms, at_ms, revision;
};

static void see(void *arg, const struct tw_store_task *task)
{
    struct page *page = arg;
    page->at_ms = task->state == TW_STATE_DEAD ? task->dead_ms : task->due_ms;
    page->revision = task->revision;
    if (page->json)
        page->lost |= !task_print_json(task, page->out);
    else
        task_print_row(task, page->now_ms, page->out);
}

static void count_only(void *arg, const struct tw_store_task *task)
{
    (void)arg;
    (void)task;
}

/* Writes a page of tasks. Returns their number, or a negative number after it has printed an error. */
static int64_t write_page(const struct tasks *tasks, const char *queue, struct page *page,
                          const struct tw_store_range *range)
{
    char *text = NULL;
    size_t size = 0;
    page->out = open_memstream(&text, &size);
    if (page->out == NULL) {
        complain("tickwheel tasks: there is no memory");
        return -1;
    }
    int64_t seen = tw_store_scan(tasks->store, queue, range, see, page);
    bool whole = fclose(page->out) == 0 && !page->lost;
    if (seen < 0)
        tasks_failed(tasks, "the tasks cannot be read");
    else if (!whole)
        complain("tickwheel tasks: there is no memory");
    else
        fwrite(text, 1, size, stdout);
    free(text);
    return whole ? seen : -1;
}

/* Returns 1 if there is a task in the range, 0 if there is none, or a negative number after it has printed an
 * error. */
static int64_t has_more(const struct tasks *tasks, const char *queue, struct tw_store_range range)
{
    range.limit = 1;
    int64_t seen = tw_store_scan(tasks->store, queue, &range, count_only, NULL);
    if (seen < 0)
        tasks_failed(tasks, "the tasks cannot be read");
    return seen;
}

/* Lists a queue. Returns the number of tasks, or a negative number after it has printed an error. */
static int64_t list_queue(const struct tasks *tasks, const char *queue)
{
    const struct tasks_options *options = tasks->options;
    bool dead = options->action == ACTION_DEAD;
    uint64_t limit = options->action == ACTION_NEXT ? 1 : options->limit > 0 ? options->limit : UINT64_MAX;
    struct page page = {.json = options->json, .now_ms = tw_store_now()};
    struct tw_store_range range = {.states = dead ? TW_STATE_DEAD : 0};
    int64_t seen = 0, got = has_more(tasks, queue, range);
    if (got <= 0)
        return got;
    if (!options->json)
        task_print_head(queue, dead, stdout);
    do {
        uint64_t left = limit - (uint64_t)seen;
        range.limit = left < PAGE ? left : PAGE;
        got = write_page(tasks, queue, &page, &range);
        seen += got;
        range.from_ms = page.at_ms;
        range.after = page.revision;
    } while (got == PAGE && (uint64_t)seen < limit);
    if (got < 0 || options->json || options->action == ACTION_NEXT || (uint64_t)seen < limit)
        return got < 0 ? got : seen;
    got = has_more(tasks, queue, range);
    if (got > 0)
        printf("  and more (--limit 0 shows them all)\n");
    return got < 0 ? got : seen;
}

int tasks_list(const struct tasks *tasks)
{
    int64_t all = 0;
    for (size_t i = 0; i < tasks->queues; i++) {
        int64_t seen = list_queue(tasks, tasks->queue[i]);
        if (seen < 0)
            return COMMAND_WRONG;
        all += seen;
    }
    if (all == 0 && !tasks->options->json)
        puts(tasks->options->action == ACTION_DEAD ? "no dead tasks" : "no tasks");
    return COMMAND_GOOD;
}
