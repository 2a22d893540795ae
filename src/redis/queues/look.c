/* SPDX-License-Identifier: MIT
 *
 * Looking for some of the tasks of a queue: through the wheel, as far ahead as necessary, or through the
 * table of the queue, whichever is less work.
 */
#include "look.h"

#include <base/assert.h>
#include <base/saturate.h>
#include <stdlib.h>
#include <string.h>

#include "place.h"

/* A task with copies of the members that decide the order, so that comparing two tasks does not read the
 * tasks again. */
struct candidate {
    uint64_t due;
    uint32_t order;
    struct tw__redis_task *task;
};

/* One search. It looks at tasks through the wheel, in the order of its slots, or through the table of the
 * queue. */
struct look {
    const struct tw__redis_queue *queue;
    uint64_t from, to;
    uint64_t seen, most; /* tasks looked at through the wheel; the search stops after `most` */
    void (*each)(struct look *look, struct tw__redis_task *task);
    const struct tw__redis_wanted *wanted; /* tw__redis_look_wanted */
    struct candidate after;
    struct candidate *candidate; /* a heap with the latest candidate on top */
    size_t limit, count;
    uint64_t now_ms, step; /* tw__redis_look_forecast */
    uint64_t *counts;
};

static void look_at(struct look *look, struct tw__redis_task *task)
{
    if (tw__redis_task_due(task) >= look->from && tw__redis_task_due(task) <= look->to &&
        tw__redis_task_waits(task))
        look->each(look, task);
}

static void look_in_table(void *entry, void *arg)
{
    look_at(arg, entry);
}

static void look_through_table(struct look *look)
{
    uint64_t segment = 0;
    while (tw__redis_table_walk(&look->queue->tasks, &segment, look_in_table, look))
        ;
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

static void look_in_route(void *entry, void *arg)
{
    struct line_look *lines = arg;
    const struct tw__redis_route *route = entry;
    if (!lines->enough)
        lines->enough = look_in_line(lines->look, &route->line);
}

/* Looks at the tasks that are due up to `to`, in all places where they wait. Returns false if it gave up
 * after seeing more than `most` tasks. */
static bool look_through_wheel(struct look *look)
{
    const struct tw__redis_queues *queues = look->queue->queues;
    struct line_look lines = {
        look, look_in_line(look, &queues->aside) || look_in_line(look, &queues->overdue) ||
                  look_in_line(look, &queues->past) || look_in_line(look, &look->queue->stopped)};
    uint64_t segment = 0;
    while (look->queue->held > 0 && tw__redis_table_walk(&look->queue->routes, &segment, look_in_route, &lines))
        ;
    return lines.enough == 0 && tw_wheel_visit_until(queues->wheel, look->to, look_in_wheel, look) == 0 &&
           (queues->behind == NULL || tw_wheel_visit_until(queues->behind, look->to, look_in_wheel, look) == 0);
}

static bool is_before(const struct candidate *a, const struct candidate *b)
{
    if (a->due != b->due)
        return a->due < b->due;
    return (int32_t)(a->order - b->order) < 0;
}

static struct candidate candidate_of(const struct tw__redis_queue *queue, struct tw__redis_task *task)
{
    return (struct candidate){tw__redis_place_due(queue->queues, task), task->order, task};
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

static void keep_if_wanted(struct look *look, struct tw__redis_task *task)
{
    const struct tw__redis_wanted *wanted = look->wanted;
    const struct tw__redis_queues *queues = look->queue->queues;
    struct candidate one = candidate_of(look->queue, task);
    if (wanted->after != NULL && !is_before(&look->after, &one))
        return;
    if (wanted->drain != 0 && (tw__redis_route_refused(tw__redis_route_of(queues, task), wanted->drain) ||
                               tw__redis_place_is_blocked(queues, task)))
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
static uint64_t first_look(const struct look *look, uint64_t now_ms)
{
    uint64_t start = now_ms > look->from ? now_ms : look->from,
             next = tw__redis_place_next_work(look->queue->queues);
    return next != TW_NEVER && next > start ? next : start;
}

/* Whether all tasks of a queue are ready, leased or dead, so that there is none to find. */
static bool none_waits(const struct tw__redis_queue *queue)
{
    return tw__redis_table_count(&queue->tasks) == queue->ready_count + queue->leased_count + queue->dead_count;
}

/* Looks further and further ahead until it has found enough tasks, and goes through the table as soon as that
 * is less work. */
static void find_earliest(struct look *look, uint64_t now_ms)
{
    uint64_t to = look->to, start = first_look(look, now_ms);
    if (none_waits(look->queue))
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
    look_through_table(look);
}

size_t tw__redis_look_wanted(const struct tw__redis_queue *queue, const struct tw__redis_wanted *wanted,
                             uint64_t now_ms, size_t limit, struct tw__redis_task **task)
{
    struct look look = {.queue = queue,
                        .from = wanted->from,
                        .to = wanted->to,
                        .each = keep_if_wanted,
                        .wanted = wanted,
                        .limit = limit};
    if (wanted->after != NULL)
        look.after = candidate_of(queue, wanted->after);
    look.candidate = queue->queues->memory.alloc((limit + 1) * sizeof *look.candidate);
    find_earliest(&look, now_ms);
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

static void count_step(struct look *look, struct tw__redis_task *task)
{
    uint64_t due = tw__redis_task_due(task);
    size_t step = due <= look->now_ms ? 0 : (size_t)((due - look->now_ms - 1) / look->step);
    look->counts[step]++;
}

void tw__redis_look_forecast(const struct tw__redis_queue *queue, uint64_t now_ms, uint64_t step, size_t count,
                             uint64_t *counts)
{
    TW_ASSERT(step > 0 && count > 0);
    struct look look = {.queue = queue, .each = count_step, .now_ms = now_ms, .step = step, .counts = counts};
    look.to = step > (UINT64_MAX - now_ms) / count ? UINT64_MAX : now_ms + step * count;
    look.most = most_in_wheel(queue);
    memset(counts, 0, count * sizeof *counts);
    if (look.most > 0 && look_through_wheel(&look))
        return;
    memset(counts, 0, count * sizeof *counts);
    look_through_table(&look);
}

static void gather_one(void *entry, void *arg)
{
    struct look *look = arg;
    look->candidate[look->count++] = candidate_of(look->queue, entry);
}

struct tw__redis_task **tw__redis_look_sorted(const struct tw__redis_queue *queue)
{
    const struct tw__redis_memory *memory = &queue->queues->memory;
    uint64_t count = tw__redis_table_count(&queue->tasks), segment = 0;
    struct look look = {.queue = queue};
    if (count == 0)
        return NULL;
    look.candidate = memory->alloc(count * sizeof *look.candidate);
    while (tw__redis_table_walk(&queue->tasks, &segment, gather_one, &look))
        ;
    qsort(look.candidate, look.count, sizeof *look.candidate, compare);
    struct tw__redis_task **task = memory->alloc(count * sizeof(struct tw__redis_task *));
    for (size_t i = 0; i < look.count; i++)
        task[i] = look.candidate[i].task;
    memory->free(look.candidate);
    return task;
}
