/* SPDX-License-Identifier: MIT
 *
 * Lists tasks: page by page, because a queue may be longer than a part.
 */
#include "command.h"
#include "part.h"
#include "task_print.h"
#include "tasks_action.h"

#include <base/saturate.h>

enum { PAGE = 1000 };

/* Where the list is: at a task of a queue. */
struct listing {
    const struct tasks *tasks;
    struct part part;
    size_t queue; /* its number */
    struct tw_store_range range;
    uint64_t shows, reads; /* tasks of a queue; one more is read to tell that there are more */
    uint64_t of_queue, all;
    uint64_t now_ms;
};

static void print_task(struct listing *list, const struct tw_store_task *task)
{
    struct part *part = &list->part;
    if (list->tasks->options->json) {
        part->lost |= !task_print_json(task, part->out);
        return;
    }
    if (list->of_queue == 0)
        task_print_head(task->queue, task->state == TW_STATE_DEAD, part->out);
    task_print_row(task, list->now_ms, part->out);
}

static void see(void *arg, const struct tw_store_task *task)
{
    struct listing *list = arg;
    if (list->of_queue < list->shows)
        print_task(list, task);
    else
        fputs("  and more (--count 0 shows them all)\n", list->part.out);
    list->of_queue++;
    list->range.from_ms = task->state == TW_STATE_DEAD ? task->dead_ms : task->place_ms;
    list->range.after = task->revision;
}

/* The place of a waiting task lies ahead, so `next` passes over the tasks that are ready. */
static void go_to_queue(struct listing *list, size_t queue)
{
    enum action action = list->tasks->options->action;
    list->all += list->of_queue;
    list->queue = queue;
    list->of_queue = 0;
    if (action == ACTION_NEXT)
        list->range = (struct tw_store_range){.states = TW_STATE_WAITING, .from_ms = list->now_ms};
    else
        list->range = (struct tw_store_range){.states = action == ACTION_DEAD ? TW_STATE_DEAD : 0};
}

static void read_page(struct listing *list)
{
    const struct tasks *tasks = list->tasks;
    uint64_t left = list->reads - list->of_queue;
    list->range.count = left < PAGE ? left : PAGE;
    uint64_t before = list->of_queue;
    int error = tw_store_scan(tasks->store, tasks->queue[list->queue], &list->range, see, list);
    list->part.failed = error != 0;
    if (error != 0 || list->of_queue - before < PAGE || list->of_queue == list->reads)
        go_to_queue(list, list->queue + 1);
}

static void read_part(void *arg)
{
    struct listing *list = arg;
    list->now_ms = tw_store_now();
    while (list->queue < list->tasks->queues && !part_full(&list->part))
        read_page(list);
}

int tasks_list(const struct tasks *tasks)
{
    const struct tasks_options *options = tasks->options;
    bool next = options->action == ACTION_NEXT;
    uint64_t shows = next ? 1 : options->count > 0 ? options->count : UINT64_MAX;
    struct listing list = {.tasks = tasks,
                           .part = {.read = read_part, .arg = &list},
                           .shows = shows,
                           .reads = tw__add_saturating(shows, !next && !options->json),
                           .now_ms = tw_store_now()};
    go_to_queue(&list, 0);
    while (list.queue < tasks->queues)
        if (!part_write(&list.part, tasks, "the tasks cannot be read"))
            return COMMAND_WRONG;
    if (list.all == 0 && !options->json)
        puts(options->action == ACTION_DEAD ? "no dead tasks" : next ? "no waiting tasks" : "no tasks");
    return COMMAND_GOOD;
}
