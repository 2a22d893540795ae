/* SPDX-License-Identifier: MIT
 *
 * All queues at once, for operators who watch a server: how many tasks are due when, which queues have
 * the most tasks, and which are paused.
 *
 * The forecast reads the wheel that all queues share. It reads as far as a budget goes, because the server
 * does nothing else meanwhile. If more tasks are due than that, the forecast is an estimate from a sample. Of
 * all tasks, counted queue by queue, every n-th counts for the sample, and each queue gives as many
 * tasks as count in it. Example: a sample of 20,000 out of 1,000,000 tasks makes n 50, so a queue with
 * 5,000 tasks gives 100.
 *
 * The tables of ids are in the order of a keyed hash, so neighbours in a table, from any position on, are a
 * fair sample of its queue. The position is drawn anew for each queue, because queues that have the
 * same ids have them in the same order.
 *
 * Rejected:
 *   - the first tasks of the wheel alone, as they say nothing about the seconds after them;
 *   - some of the largest queues alone, as they say nothing about a million small queues.
 */
#include "look.h"

#include <base/assert.h>
#include <base/list.h>
#include <stdlib.h>
#include <string.h>
#include <wheel/private.h>

#include "place.h"

enum {
    AHEAD_MAX = 20000,  /* tasks read in the wheel, or tasks of a sample: a millisecond or two each */
    QUEUES_MAX = 20000, /* queues looked at, to find the largest or the paused ones, or for a sample */
    SAMPLED_MAX = 4000, /* queues that give one task each to a sample: some cache misses for each */
    IN_LINE_MAX = 1000, /* tasks of a line, which is roughly in order, that are looked at; also lines */
    PAST_MAX = 20000    /* tasks counted in the wheels: a millisecond or two */
};

struct ahead {
    struct tw__redis_queues *queues;
    uint64_t now_ms, step, to;
    uint64_t *counts;
    uint64_t skip, seen, wanted; /* of a sample */
};

/* ---- the largest, and the paused ------------------------------------------------------------------------- */

/* Whether a queue comes before another one in a list. */
typedef bool is_first(const struct tw__redis_queue *queue, const struct tw__redis_queue *other);

static bool is_larger(const struct tw__redis_queue *queue, const struct tw__redis_queue *other)
{
    return tw__redis_table_count(&queue->tasks) > tw__redis_table_count(&other->tasks);
}

/* The ready tasks of a queue that ticks have seen, without held ones. */
static uint64_t ready_seen(const struct tw__redis_queue *queue)
{
    return queue->ready_count + queue->in_line;
}

/* Whether a pause keeps more back than another one. */
static bool keeps_more(const struct tw__redis_queue *queue, const struct tw__redis_queue *other)
{
    uint64_t ready = ready_seen(queue), others = ready_seen(other);
    return ready != others ? ready > others : is_larger(queue, other);
}

/* Inserts a queue into the sorted list of the first ones so far, if it is one of them. */
static size_t insert(const struct tw__redis_queue **list, size_t count, size_t limit,
                     const struct tw__redis_queue *queue, is_first *before)
{
    size_t at = count < limit ? count : limit - 1;
    if (count == limit && !before(queue, list[at]))
        return count;
    for (; at > 0 && before(queue, list[at - 1]); at--)
        list[at] = list[at - 1];
    list[at] = queue;
    return count < limit ? count + 1 : limit;
}

/* Lists the first of the attached queues, or of the paused ones, which stand before the others: C5 (sums.c).
 * Returns how many. */
static size_t list_first(const struct tw__redis_queues *queues, const struct tw__redis_queue **list,
                         size_t limit, bool paused, is_first *before)
{
    size_t count = 0;
    uint32_t left = QUEUES_MAX;
    struct tw__link *link = queues->attached.next;
    for (; limit > 0 && link != &queues->attached && left > 0; link = link->next, left--) {
        const struct tw__redis_queue *queue = tw__redis_queue_at(link);
        if (paused && !queue->paused)
            break;
        count = insert(list, count, limit, queue, before);
    }
    return count;
}

size_t tw__redis_overview_largest(const struct tw__redis_queues *queues, const struct tw__redis_queue **largest,
                                  size_t limit)
{
    return list_first(queues, largest, limit, false, is_larger);
}

size_t tw__redis_overview_paused(const struct tw__redis_queues *queues, const struct tw__redis_queue **paused,
                                 size_t limit)
{
    return list_first(queues, paused, limit, true, keeps_more);
}

/* ---- the forecast ---------------------------------------------------------------------------------------- */

static void count_task(struct ahead *ahead, const struct tw__redis_task *task)
{
    uint64_t due = tw__redis_task_due(task);
    if (due <= ahead->to && tw__redis_task_waits(task))
        ahead->counts[due <= ahead->now_ms ? 0 : (due - ahead->now_ms - 1) / ahead->step]++;
}

static int count_in_wheel(void *arg, struct tw_timer *timer)
{
    struct ahead *ahead = arg;
    const struct tw__redis_task *task = tw__redis_task_of_timer(timer);
    if (tw__redis_queue_of(ahead->queues, task)->attached)
        count_task(ahead, task);
    return 0;
}

static bool read_wheels(struct ahead *ahead)
{
    const struct tw__redis_queues *queues = ahead->queues;
    uint32_t budget = AHEAD_MAX;
    return tw__wheel_visit_budget(queues->wheel, ahead->to, &budget, count_in_wheel, ahead) &&
           (queues->behind == NULL ||
            tw__wheel_visit_budget(queues->behind, ahead->to, &budget, count_in_wheel, ahead));
}

static void count_in_sample(void *entry, void *arg)
{
    struct ahead *ahead = arg;
    const struct tw__redis_task *task = entry;
    if (ahead->skip > 0) {
        ahead->skip--;
        return;
    }
    if (ahead->seen == ahead->wanted)
        return;
    ahead->seen++;
    if (!tw__redis_task_in_line(task))
        count_task(ahead, task);
}

/* Adds `share` tasks of a queue to the sample, from a random position on. The queue has at least
 * `share` tasks. */
static void take_sample(struct ahead *ahead, const struct tw__redis_queue *queue, uint64_t share)
{
    struct tw__redis_queues *queues = ahead->queues;
    queues->samples++;
    uint64_t cursor = tw__redis_table_hash(&queues->of_tasks, &queues->samples, sizeof queues->samples);
    uint64_t first = tw__redis_table_scan_size(&queue->tasks, cursor);
    ahead->skip = first == 0 ? 0 : (cursor >> 32) % first;
    ahead->wanted = ahead->seen + share;
    while (ahead->seen < ahead->wanted)
        cursor = tw__redis_table_scan(&queue->tasks, cursor, count_in_sample, ahead);
}

/* Returns how many queues a sample looks at; *tasks is the number of their tasks. */
static uint32_t queues_looked_at(const struct tw__redis_queues *queues, uint64_t *tasks)
{
    uint32_t count = 0;
    struct tw__link *link = queues->attached.next;
    for (*tasks = 0; link != &queues->attached && count < QUEUES_MAX; link = link->next, count++)
        *tasks += tw__redis_table_count(&tw__redis_queue_at(link)->tasks);
    return count;
}

/* Takes a sample of `wanted` tasks. `all` is the number of tasks of the queues that it looks at. Requires:
 * wanted <= all, so that no queue has to give more tasks than it has. */
static void sample_all(struct ahead *ahead, uint64_t wanted, uint64_t all)
{
    uint64_t passed = 0, given = 0;
    uint32_t left = QUEUES_MAX;
    struct tw__link *attached = &ahead->queues->attached;
    for (struct tw__link *link = attached->next; link != attached && left > 0; link = link->next, left--) {
        const struct tw__redis_queue *queue = tw__redis_queue_at(link);
        passed += tw__redis_table_count(&queue->tasks);
        uint64_t until = passed * wanted / all;
        if (until > given)
            take_sample(ahead, queue, until - given);
        given = until;
    }
}

static void estimate(struct ahead *ahead, size_t steps)
{
    uint64_t all;
    uint64_t wanted = queues_looked_at(ahead->queues, &all) > SAMPLED_MAX ? SAMPLED_MAX : AHEAD_MAX;
    memset(ahead->counts, 0, steps * sizeof *ahead->counts);
    if (all == 0)
        return; /* the pending tasks belong to queues that were not looked at */
    sample_all(ahead, wanted < all ? wanted : all, all);
    double weight = (double)ahead->queues->tasks / (double)ahead->seen;
    for (size_t i = 0; i < steps; i++)
        ahead->counts[i] = (uint64_t)((double)ahead->counts[i] * weight + 0.5);
}

bool tw__redis_overview_forecast(struct tw__redis_queues *queues, uint64_t now_ms, uint64_t step, size_t steps,
                                 uint64_t *counts)
{
    TW_ASSERT(step > 0 && steps > 0);
    struct ahead ahead = {.queues = queues, .now_ms = now_ms, .step = step, .counts = counts};
    ahead.to = step > (UINT64_MAX - now_ms) / steps ? UINT64_MAX : now_ms + step * steps;
    memset(counts, 0, steps * sizeof *counts);
    bool exact = read_wheels(&ahead) || queues->tasks == 0;
    if (!exact)
        estimate(&ahead, steps);
    counts[0] += queues->in_line + queues->held;
    return exact;
}

/* ---- ready tasks ----------------------------------------------------------------------------------------- */

/* The ready tasks of one of some queues. */
struct counted {
    const struct tw__redis_queue *queue;
    uint64_t ready;
};

/* A search for the ready tasks of all queues, or for the oldest one of a queue. */
struct search {
    const struct tw__redis_queues *queues;
    const struct tw__redis_queue *only; /* NULL: all queues */
    struct counted *counted;            /* queues by their addresses, whose tasks are counted apart */
    size_t counts;
    uint64_t now_ms;
    uint32_t budget; /* tasks that may be counted one by one */
    struct tw__redis_ready ready;
};

static bool is_sought(const struct search *search, const struct tw__redis_task *task)
{
    const struct tw__redis_queue *queue = tw__redis_queue_of(search->queues, task);
    return queue->attached && (search->only == NULL || search->only == queue) && tw__redis_task_waits(task);
}

/* Since when a task has been ready that waits in a line: its lateness counts from the same time. */
static uint64_t since_of(const struct search *search, const struct tw__redis_task *task)
{
    if (task->place == TW__REDIS_IN_HELD)
        return tw__redis_place_next(search->queues, task, search->now_ms);
    uint64_t due = tw__redis_task_due(task), filed_ms = task->parked.since_ms;
    return filed_ms > due && tw__redis_task_every(task) == 0 ? filed_ms : due;
}

static void keep_earlier(uint64_t *time, uint64_t other)
{
    if (other < *time)
        *time = other;
}

static void note_since(struct search *search, const struct tw__redis_task *task, uint64_t since_ms)
{
    keep_earlier(&search->ready.since, since_ms);
    if (!tw__redis_queue_of(search->queues, task)->paused)
        keep_earlier(&search->ready.late_since, since_ms);
}

static int by_address(const void *a, const void *b)
{
    uintptr_t one = (uintptr_t)((const struct counted *)a)->queue,
              other = (uintptr_t)((const struct counted *)b)->queue;
    return (one > other) - (one < other);
}

/* Returns the entry of a queue, or NULL. */
static struct counted *counted_of(const struct search *search, const struct tw__redis_queue *queue)
{
    const struct counted key = {.queue = queue};
    if (search->counts == 0)
        return NULL;
    return bsearch(&key, search->counted, search->counts, sizeof key, by_address);
}

static void count_ready(struct search *search, const struct tw__redis_task *task)
{
    const struct tw__redis_queue *queue = tw__redis_queue_of(search->queues, task);
    struct counted *counted = counted_of(search, queue);
    search->ready.count++;
    search->ready.late += !queue->paused;
    if (counted != NULL)
        counted->ready++;
}

static int count_ready_in_wheel(void *arg, struct tw_timer *timer)
{
    struct search *search = arg;
    const struct tw__redis_task *task = tw__redis_task_of_timer(timer);
    if (is_sought(search, task)) {
        count_ready(search, task);
        note_since(search, task, tw__redis_task_due(task));
    }
    return 0;
}

static void look_into_line(struct search *search, const struct tw__link *line)
{
    uint32_t left = IN_LINE_MAX;
    for (struct tw__link *link = line->next; link != line && left > 0; link = link->next, left--) {
        const struct tw__redis_task *task = tw__redis_task_of_link(link);
        if (is_sought(search, task))
            note_since(search, task, since_of(search, task));
    }
}

/* Counts the held tasks whose target can be tried again: their routes are in the list of ready routes. */
static void look_into_routes(struct search *search)
{
    const struct tw__link *routes = &search->queues->ready;
    for (struct tw__link *at = routes->next; at != routes && search->budget > 0; at = at->next) {
        const struct tw__link *line = &TW_CONTAINER(at, const struct tw__redis_route, ready)->line;
        const struct tw__redis_task *first = tw__redis_task_of_link(line->next);
        search->budget--;
        if (!is_sought(search, first))
            continue;
        note_since(search, first, since_of(search, first));
        for (struct tw__link *link = line->next; link != line && search->budget > 0; link = link->next) {
            count_ready(search, tw__redis_task_of_link(link));
            search->budget--;
        }
    }
}

/* Looks at the first tasks in the lines of a queue. */
static void look_into_queue(struct search *search, const struct tw__redis_queue *queue)
{
    const struct tw__redis_task *first = tw__redis_place_first_ready(queue);
    if (first != NULL)
        keep_earlier(&search->ready.since, first->parked.since_ms);
    first = tw__list_empty(&queue->stopped) ? NULL : tw__redis_task_of_link(queue->stopped.next);
    if (first != NULL && is_sought(search, first))
        keep_earlier(&search->ready.since, since_of(search, first));
}

static void look_into_queues(struct search *search)
{
    const struct tw__redis_queues *queues = search->queues;
    uint64_t seen = 0, all = queues->ready_count + queues->stopped;
    uint32_t left = QUEUES_MAX;
    struct tw__link *link = queues->attached.next;
    for (; link != &queues->attached && left > 0 && seen < all; link = link->next, left--) {
        const struct tw__redis_queue *queue = tw__redis_queue_at(link);
        look_into_queue(search, queue);
        seen += queue->ready_count + (queue->paused ? queue->in_line : 0);
    }
}

static void look_into_lines(struct search *search)
{
    look_into_line(search, &search->queues->aside);
    look_into_line(search, &search->queues->late);
    look_into_line(search, &search->queues->past);
    look_into_routes(search);
}

static void look_into_wheels(struct search *search)
{
    const struct tw__redis_queues *queues = search->queues;
    uint32_t budget = PAST_MAX; /* also for tasks that are not due: past slots may hold any number of them */
    if (tw__wheel_visit_budget(queues->wheel, search->now_ms, &budget, count_ready_in_wheel, search) &&
        queues->behind != NULL)
        tw__wheel_visit_budget(queues->behind, search->now_ms, &budget, count_ready_in_wheel, search);
}

void tw__redis_overview_all_ready(const struct tw__redis_queues *queues, uint64_t now_ms,
                                  struct tw__redis_ready *ready)
{
    struct search search = {.queues = queues, .now_ms = now_ms, .budget = PAST_MAX};
    search.ready = (struct tw__redis_ready){queues->ready_count + queues->in_line,
                                            queues->in_line - queues->stopped, TW_NEVER, TW_NEVER};
    look_into_queues(&search);
    look_into_lines(&search);
    look_into_wheels(&search);
    *ready = search.ready;
}

void tw__redis_overview_ready(const struct tw__redis_queues *queues, uint64_t now_ms,
                              const struct tw__redis_queue *const *list, size_t count, uint64_t *ready)
{
    struct counted counted[TW__REDIS_LISTED_MAX];
    struct search search = {
        .queues = queues, .counted = counted, .counts = count, .now_ms = now_ms, .budget = PAST_MAX};
    TW_ASSERT(count <= TW__REDIS_LISTED_MAX);
    if (count == 0)
        return;
    for (size_t i = 0; i < count; i++)
        counted[i] = (struct counted){list[i], ready_seen(list[i])};
    qsort(counted, count, sizeof *counted, by_address);
    look_into_routes(&search);
    look_into_wheels(&search);
    for (size_t i = 0; i < count; i++)
        ready[i] = counted_of(&search, list[i])->ready;
}

uint64_t tw__redis_overview_ready_since(const struct tw__redis_queue *queue, uint64_t now_ms)
{
    struct search search = {.queues = queue->queues,
                            .only = queue,
                            .now_ms = now_ms,
                            .budget = IN_LINE_MAX,
                            .ready = {.since = TW_NEVER}};
    look_into_queue(&search, queue);
    if (queue->in_line + queue->held > 0)
        look_into_lines(&search);
    return search.ready.since;
}
