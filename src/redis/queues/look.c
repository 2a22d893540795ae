/* SPDX-License-Identifier: MIT
 *
 * Looking for some of the tasks of a queue: through the wheel, as far ahead as necessary, or through the
 * table of the queue, whichever is less work.
 *
 * Whether a task is waiting or ready is a matter of the clock, and of its `next` (docs/contract.md). It does
 * not matter whether a tick has moved the task out of the wheel. So a look for waiting tasks is one for the
 * times from now_ms + 1 on. It passes over the lines of tasks that are due, because none of them is due later
 * (P6, place.c). Only after the clock was set back has it to walk them.
 */
#include "look.h"

#include <base/assert.h>
#include <base/list.h>
#include <base/saturate.h>
#include <stdlib.h>
#include <string.h>

#include "place.h"

/* A task with copies of the members that decide the order, so that comparing two tasks does not read the
 * tasks again. */
struct candidate {
    uint64_t next;
    uint32_t order;
    struct tw__redis_task *task;
};

/* One search. It looks at tasks through the wheel, in the order of its slots, or through the table of the
 * queue. */
struct look {
    const struct tw__redis_queue *queue;
    uint64_t from, to;
    uint64_t seen, most; /* tasks looked at through the wheel; the search stops after `most` */
    bool passes_lines;   /* the tasks in lines need no look: those of `late` to `stopped` */
    uint64_t now_ms;
    void (*each)(struct look *look, struct tw__redis_task *task, uint64_t next_ms);
    const struct tw__redis_wanted *wanted; /* tw__redis_look_wanted */
    struct candidate after;
    struct candidate *candidate; /* a heap with the latest candidate on top */
    size_t limit, count;
    uint64_t step, *counts;          /* tw__redis_look_forecast */
    struct tw__redis_states *states; /* tw__redis_look_states */
};

static bool is_within(const struct look *look, uint64_t next_ms)
{
    return next_ms >= look->from && next_ms <= look->to;
}

static void look_at(struct look *look, struct tw__redis_task *task)
{
    uint64_t next_ms = task->place == TW__REDIS_IN_HELD
                           ? tw__redis_place_next(look->queue->queues, task, look->now_ms)
                           : tw__redis_task_due(task);
    if (is_within(look, next_ms) && tw__redis_task_waits(task))
        look->each(look, task, next_ms);
}

static void look_in_table(void *entry, void *arg)
{
    look_at(arg, entry);
}

/* Looks at a task of any queue. Returns 1 when more than `most` tasks have been seen. */
static int look_if_own(struct look *look, struct tw__redis_task *task)
{
    if (tw__redis_queue_of(look->queue->queues, task) == look->queue)
        look_at(look, task);
    return ++look->seen > look->most;
}

static int look_in_wheel(void *arg, struct tw_timer *timer)
{
    return look_if_own(arg, tw__redis_task_of_timer(timer));
}

static int look_in_line(struct look *look, const struct tw__link *line)
{
    int enough = 0;
    for (struct tw__link *link = line->next; !enough && link != line; link = link->next)
        enough = look_if_own(look, tw__redis_task_of_link(link));
    return enough;
}

struct line_look {
    struct look *look;
    int enough;
};

/* All tasks that a route holds have the same `next`. */
static void look_in_route(void *entry, void *arg)
{
    struct line_look *lines = arg;
    const struct tw__redis_route *route = entry;
    const struct look *look = lines->look;
    if (lines->enough || tw__list_empty(&route->line))
        return;
    const struct tw__redis_task *first = tw__redis_task_of_link(route->line.next);
    if (is_within(look, tw__redis_place_next(look->queue->queues, first, look->now_ms)))
        lines->enough = look_in_line(lines->look, &route->line);
}

/* Looks at the tasks that are due up to `to`, in all places where they wait. Returns false if it gave up
 * after seeing more than `most` tasks. */
static bool look_through_wheel(struct look *look)
{
    const struct tw__redis_queues *queues = look->queue->queues;
    struct line_look lines = {look, !look->passes_lines && (look_in_line(look, &queues->aside) ||
                                                            look_in_line(look, &queues->late) ||
                                                            look_in_line(look, &queues->past) ||
                                                            look_in_line(look, &look->queue->stopped))};
    if (look->queue->held > 0)
        tw__redis_table_each(&look->queue->routes, look_in_route, &lines);
    return lines.enough == 0 && tw_wheel_visit_until(queues->wheel, look->to, look_in_wheel, look) == 0 &&
           (queues->behind == NULL || tw_wheel_visit_until(queues->behind, look->to, look_in_wheel, look) == 0);
}

static bool is_before(const struct candidate *a, const struct candidate *b)
{
    if (a->next != b->next)
        return a->next < b->next;
    return (int32_t)(a->order - b->order) < 0;
}

static int compare(const void *a, const void *b)
{
    return is_before(a, b) ? -1 : is_before(b, a);
}

static void sift_down(struct candidate *heap, size_t count, struct candidate one)
{
    size_t at = 0, child;
    while ((child = 2 * at + 1) < count) {
        if (child + 1 < count && is_before(&heap[child], &heap[child + 1]))
            child++;
        if (is_before(&heap[child], &one))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = one;
}

static void keep_earliest(struct look *look, struct candidate one)
{
    struct candidate *heap = look->candidate;
    if (look->count == look->limit) {
        if (is_before(&one, &heap[0]))
            sift_down(heap, look->count, one);
        return;
    }
    size_t at = look->count++;
    for (; at > 0 && is_before(&heap[(at - 1) / 2], &one); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = one;
}

static void keep_if_wanted(struct look *look, struct tw__redis_task *task, uint64_t next_ms)
{
    const struct tw__redis_wanted *wanted = look->wanted;
    struct candidate one = {next_ms, task->order, task};
    if (wanted->after != NULL && !is_before(&look->after, &one))
        return;
    keep_earliest(look, one);
}

enum { NEAR_MS = 1000, FURTHER = 4, FEW = 256, WHEEL_SHARE = 16 };

/* How many tasks a search may look at through the wheel before it goes through the table of the queue
 * instead. The tasks of the wheel have to be fetched one after the other, so each takes a few times as long.
 * Example: for a queue of 16,000 tasks the limit is 16,000 / 16 + 256 = 1,256. */
static uint64_t most_in_wheel(const struct tw__redis_queue *queue)
{
    uint64_t all = tw__redis_table_count(&queue->tasks);
    return all > FEW ? all / WHEEL_SHARE + FEW : 0;
}

/* The earliest time from which there may be a task to find. */
static uint64_t first_look(const struct look *look)
{
    uint64_t start = look->now_ms > look->from ? look->now_ms : look->from,
             next = tw__redis_place_next_work(look->queue->queues);
    return next != TW_NEVER && next > start ? next : start;
}

/* Whether all tasks of a queue are ready, leased or dead, so that there is none to find. */
static bool none_waits(const struct look *look)
{
    const struct tw__redis_queue *queue = look->queue;
    return tw__redis_table_count(&queue->tasks) == queue->ready_count + queue->leased_count +
                                                       queue->dead_count +
                                                       (look->passes_lines ? queue->in_line : 0);
}

/* Looks further and further ahead until it has found enough tasks, and goes through the table as soon as that
 * is less work. */
static void find_earliest(struct look *look)
{
    uint64_t to = look->to, start = first_look(look);
    if (none_waits(look))
        return;
    look->most = most_in_wheel(look->queue);
    for (uint64_t ahead = NEAR_MS; look->seen < look->most; ahead = tw__mul_saturating(ahead, FURTHER)) {
        look->to = start > to || ahead > to - start ? to : start + ahead;
        look->count = 0;
        if (!look_through_wheel(look))
            break;
        if (look->count == look->limit || look->to == to)
            return;
    }
    look->to = to;
    look->count = 0;
    tw__redis_table_each(&look->queue->tasks, look_in_table, look);
}

size_t tw__redis_look_wanted(const struct tw__redis_queue *queue, const struct tw__redis_wanted *wanted,
                             uint64_t now_ms, size_t limit, struct tw__redis_task **task)
{
    struct look look = {.queue = queue,
                        .from = wanted->from,
                        .to = wanted->to,
                        .passes_lines = wanted->from > queue->queues->lined_ms,
                        .now_ms = now_ms,
                        .each = keep_if_wanted,
                        .wanted = wanted,
                        .limit = limit};
    if (wanted->after != NULL)
        look.after = (struct candidate){tw__redis_place_next(queue->queues, wanted->after, now_ms),
                                        wanted->after->order, wanted->after};
    look.candidate = queue->queues->memory.alloc((limit + 1) * sizeof *look.candidate);
    find_earliest(&look);
    qsort(look.candidate, look.count, sizeof *look.candidate, compare);
    for (size_t i = 0; i < look.count; i++)
        task[i] = look.candidate[i].task;
    queue->queues->memory.free(look.candidate);
    return look.count;
}

size_t tw__redis_look_earliest(const struct tw__redis_queue *queue, uint64_t from, uint64_t to, uint64_t now_ms,
                               size_t limit, struct tw__redis_task **task)
{
    struct tw__redis_wanted wanted = {.from = from, .to = to};
    return tw__redis_look_wanted(queue, &wanted, now_ms, limit, task);
}

/* Looks at all tasks that wait for a time up to look->to, through the wheel or the table. Returns whether the
 * wheel was enough, so that the lines could be passed. */
static bool count_through(struct look *look, void *counts, size_t size)
{
    look->most = most_in_wheel(look->queue);
    memset(counts, 0, size);
    if (look->most > 0 && look_through_wheel(look))
        return true;
    memset(counts, 0, size);
    tw__redis_table_each(&look->queue->tasks, look_in_table, look);
    return false;
}

static void count_step(struct look *look, struct tw__redis_task *task, uint64_t next_ms)
{
    (void)task;
    look->counts[(next_ms - look->now_ms - 1) / look->step]++;
}

void tw__redis_look_forecast(const struct tw__redis_queue *queue, uint64_t now_ms, uint64_t step, size_t count,
                             uint64_t *counts)
{
    TW_ASSERT(step > 0 && count > 0);
    struct look look = {.queue = queue,
                        .from = now_ms + 1,
                        .passes_lines = now_ms >= queue->queues->lined_ms,
                        .now_ms = now_ms,
                        .each = count_step,
                        .step = step,
                        .counts = counts};
    look.to = step > (UINT64_MAX - now_ms) / count ? UINT64_MAX : now_ms + step * count;
    count_through(&look, counts, count * sizeof *counts);
}

static void count_due(struct look *look, struct tw__redis_task *task, uint64_t next_ms)
{
    (void)task;
    (void)next_ms;
    look->states->ready++;
}

void tw__redis_look_states(const struct tw__redis_queue *queue, uint64_t now_ms,
                           struct tw__redis_states *states)
{
    struct look look = {.queue = queue,
                        .to = now_ms,
                        .passes_lines = now_ms >= queue->queues->lined_ms,
                        .now_ms = now_ms,
                        .each = count_due,
                        .states = states};
    uint64_t lined = count_through(&look, states, sizeof *states) && look.passes_lines ? queue->in_line : 0;
    states->ready += lined + queue->ready_count;
    states->waiting =
        tw__redis_table_count(&queue->tasks) - states->ready - queue->leased_count - queue->dead_count;
}

static void gather_one(void *entry, void *arg)
{
    struct look *look = arg;
    struct tw__redis_task *task = entry;
    look->candidate[look->count++] =
        (struct candidate){tw__redis_place_due(look->queue->queues, task), task->order, task};
}

struct tw__redis_task **tw__redis_look_sorted(const struct tw__redis_queue *queue)
{
    const struct tw__redis_memory *memory = &queue->queues->memory;
    uint64_t count = tw__redis_table_count(&queue->tasks);
    struct look look = {.queue = queue};
    if (count == 0)
        return NULL;
    look.candidate = memory->alloc(count * sizeof *look.candidate);
    tw__redis_table_each(&queue->tasks, gather_one, &look);
    qsort(look.candidate, look.count, sizeof *look.candidate, compare);
    struct tw__redis_task **task = memory->alloc(count * sizeof(struct tw__redis_task *));
    for (size_t i = 0; i < look.count; i++)
        task[i] = look.candidate[i].task;
    memory->free(look.candidate);
    return task;
}
