/* SPDX-License-Identifier: MIT
 *
 * Checkers of the named invariants. They look at all queues, tasks and routes.
 */
#include "check.h"

#include <base/list.h>

#include "sums.h"

/* ---- places ---------------------------------------------------------------------------------------------- */

struct places {
    const struct tw__redis_queues *queues;
    enum tw__redis_place place;      /* that is being checked */
    uint64_t in_line, held, waiting; /* tasks in lines; routes that are ready or wait for a retry */
    uint64_t ready, dead;            /* tasks in these lines of all queues */
    uint64_t deaths;                 /* queues that wait for their timer */
    const char *fault;
};

static int check_in_wheel(void *arg, struct tw_timer *timer)
{
    struct places *places = arg;
    const struct tw__redis_task *task = tw__redis_task_of_timer(timer);
    enum tw__task_stage stage = tw__redis_task_stage(task);
    if (task->place != places->place || stage == TW__TASK_BURIED)
        places->fault = "P2: a task in a wheel says that it is elsewhere, or is dead";
    else if (tw__task_stage_is_leased(stage) != (places->place == TW__REDIS_IN_LEASES))
        places->fault = "P2: a leased task is in another wheel than that of leases, or the reverse";
    return places->fault != NULL;
}

static void check_wheel(struct places *places, const struct tw_wheel *wheel, enum tw__redis_place place)
{
    places->place = place;
    if (wheel == NULL || places->fault != NULL)
        return;
    places->fault = tw_wheel_check(wheel);
    if (places->fault == NULL)
        tw_wheel_visit(wheel, check_in_wheel, places);
}

/* Returns how many tasks are in the line; leased ones do not count. `route` is the route to which the line
 * belongs, or NULL. */
static uint64_t check_line(struct places *places, const struct tw__link *line, enum tw__redis_place place,
                           const struct tw__redis_route *route)
{
    uint64_t count = 0;
    for (struct tw__link *link = line->next; link != line && places->fault == NULL; link = link->next) {
        const struct tw__redis_task *task = tw__redis_task_of_link(link);
        count += !tw__redis_task_is_leased(task);
        if (link->next->prev != link || link->prev->next != link)
            places->fault = "P1: a task in a line has links that lead elsewhere";
        else if (task->place != place)
            places->fault = "P2: a task in a line says that it is elsewhere";
        else if (route != NULL && tw__redis_route_of(places->queues, task) != route)
            places->fault = "P2: a task in the line of another route than its own";
        else if ((tw__redis_task_stage(task) == TW__TASK_BURIED) != (place == TW__REDIS_IN_DEAD))
            places->fault = "P2: a task is in the line of dead tasks, and not dead, or the reverse";
        else if (place == TW__REDIS_IN_LINE && task->parked.due > places->queues->lined_ms)
            places->fault = "P6: a task in a line is due later than the lines tell";
    }
    return count;
}

/* P5. The limit binds a queue while it is attached. */
static void check_deaths(struct places *places, const struct tw__redis_queue *queue)
{
    uint64_t limit = places->queues->dead_limit;
    bool waits = tw_timer_pending(&queue->death), stale = tw__link_listed(&queue->stale);
    places->deaths += waits;
    if (tw__list_empty(&queue->dead) ? waits || stale : !waits && !stale)
        places->fault = "P5: a queue with dead tasks does not wait for them, or the reverse";
    else if (queue->attached && limit > 0 && queue->dead_count > limit && !stale)
        places->fault = "P5: a queue with too many dead tasks is not in the list";
}

/* Checks the three lines of each queue of a list. */
static void check_own_lines(struct places *places, const struct tw__link *list)
{
    for (struct tw__link *link = list->next; link != list && places->fault == NULL; link = link->next) {
        const struct tw__redis_queue *queue = tw__redis_queue_at(link);
        uint64_t stopped = check_line(places, &queue->stopped, TW__REDIS_IN_LINE, NULL);
        places->in_line += stopped;
        places->ready += check_line(places, &queue->ready, TW__REDIS_IN_READY, NULL);
        places->dead += check_line(places, &queue->dead, TW__REDIS_IN_DEAD, NULL);
        if (places->fault == NULL && stopped > 0 && !queue->paused)
            places->fault = "P2: a task is stopped, and its queue is not paused";
        if (places->fault == NULL && queue->back != NULL &&
            (queue->back->place != TW__REDIS_IN_READY ||
             tw__redis_queue_of(places->queues, queue->back) != queue))
            places->fault = "P7: the task that a queue got back last is not ready";
        if (places->fault == NULL)
            check_deaths(places, queue);
    }
}

static void check_route_line(struct places *places, const struct tw__redis_route *route)
{
    uint64_t held = check_line(places, &route->line, TW__REDIS_IN_HELD, route);
    bool retries = tw_timer_pending(&route->retry), is_ready = tw__link_listed(&route->ready);
    places->held += held;
    places->waiting += retries + is_ready;
    if (places->fault == NULL && retries + is_ready != (held > 0))
        places->fault = "P3: a line is in no list or in two, or a route without a line is in one";
}

static const char *check_waiting(const struct places *places)
{
    const struct tw__redis_queues *queues = places->queues;
    uint64_t waiting = tw_wheel_count(queues->retries);
    const struct tw__link *link = queues->ready.next;
    for (; link != &queues->ready; link = link->next)
        waiting++;
    return waiting == places->waiting ? NULL : "P3: a wait belongs to a route that does not exist";
}

/* Subtracts the counts of tasks in lines of the queues of a list. */
static void subtract_counts(struct places *places, const struct tw__link *list)
{
    for (struct tw__link *link = list->next; link != list; link = link->next) {
        places->in_line -= tw__redis_queue_at(link)->in_line;
        places->held -= tw__redis_queue_at(link)->held;
        places->ready -= tw__redis_queue_at(link)->ready_count;
        places->dead -= tw__redis_queue_at(link)->dead_count;
    }
}

const char *tw__redis_check_places(const struct tw__redis_queues *queues)
{
    struct places places = {.queues = queues};
    check_wheel(&places, queues->wheel, TW__REDIS_IN_WHEEL);
    check_wheel(&places, queues->behind, TW__REDIS_IN_BEHIND);
    check_wheel(&places, queues->leases, TW__REDIS_IN_LEASES);
    if (places.fault == NULL)
        places.fault = tw_wheel_check(queues->retries);
    if (places.fault == NULL)
        places.fault = tw_wheel_check(queues->deaths);
    places.in_line += check_line(&places, &queues->aside, TW__REDIS_IN_LINE, NULL);
    places.in_line += check_line(&places, &queues->late, TW__REDIS_IN_LINE, NULL);
    places.in_line += check_line(&places, &queues->past, TW__REDIS_IN_LINE, NULL);
    for (uint32_t i = 0; i < queues->routes && places.fault == NULL; i++)
        if (tw__redis_route_at(queues, i) != NULL)
            check_route_line(&places, tw__redis_route_at(queues, i));
    check_own_lines(&places, &queues->attached);
    check_own_lines(&places, &queues->detached);
    if (places.fault != NULL)
        return places.fault;
    subtract_counts(&places, &queues->attached);
    subtract_counts(&places, &queues->detached);
    if (places.in_line != 0 || places.held != 0 || places.ready != 0 || places.dead != 0)
        return "P4: the count of tasks in lines is wrong";
    if (places.deaths != tw_wheel_count(queues->deaths))
        return "P5: the wheel of deaths holds a timer of no queue";
    return check_waiting(&places);
}

/* ---- sums ------------------------------------------------------------------------------------------------ */

struct blocks {
    const struct tw__redis_memory *memory;
    uint64_t bytes, dead; /* dead: of payloads that dead tasks share, and of the line of dead tasks */
    uint64_t sharing, users;
    const char *fault;
};

static void add_block(void *entry, void *arg)
{
    struct blocks *blocks = arg;
    blocks->bytes += blocks->memory->usable(entry);
}

static bool is_user(const struct tw__redis_share *share, const struct tw__redis_task *task)
{
    uint32_t at = 0;
    while (at < share->users && share->user[at] != task)
        at++;
    return at < share->users;
}

/* Checks the users of a share, and adds its blocks. */
static void add_share(struct blocks *blocks, struct tw__redis_share *share)
{
    uint64_t dead = 0;
    for (uint32_t i = 0; i < share->users && blocks->fault == NULL; i++) {
        if (tw__redis_task_share(share->user[i]) != share)
            blocks->fault = "U1: a user of a payload has another payload";
        dead += tw__redis_task_stage(share->user[i]) == TW__TASK_BURIED;
    }
    if (blocks->fault == NULL && dead != share->dead)
        blocks->fault = "U2: the count of dead users of a payload is wrong";
    blocks->users += share->users;
    blocks->bytes += blocks->memory->usable(share) + blocks->memory->usable(share->user);
    blocks->dead += share->dead > 0 ? blocks->memory->usable(share) : 0;
}

static void add_with_share(void *entry, void *arg)
{
    struct blocks *blocks = arg;
    const struct tw__redis_task *task = entry;
    add_block(entry, arg);
    if (!task->shares)
        return;
    blocks->sharing++;
    if (!is_user(tw__redis_task_share(task), task))
        blocks->fault = "U1: a task is not among the users of its payload";
    else if (tw__redis_task_share(task)->user[0] == task)
        add_share(blocks, tw__redis_task_share(task));
}

static struct blocks blocks_of(const struct tw__redis_queue *queue)
{
    struct blocks blocks = {&queue->queues->memory, .bytes = tw__redis_sums_table_bytes(queue)};
    add_block((void *)(uintptr_t)queue, &blocks);
    tw__redis_table_each(&queue->tasks, add_with_share, &blocks);
    tw__redis_table_each(&queue->routes, add_block, &blocks);
    for (struct tw__link *link = queue->dead.next; link != &queue->dead; link = link->next)
        blocks.dead += blocks.memory->usable(tw__redis_task_of_link(link));
    return blocks;
}

static const char *check_blocks(const struct tw__redis_queue *queue)
{
    struct blocks blocks = blocks_of(queue);
    if (blocks.fault != NULL)
        return blocks.fault;
    if (blocks.users != blocks.sharing)
        return "U1: a task is twice among the users of its payload";
    if (queue->bytes != blocks.bytes)
        return "C3: the bytes of a queue are not those of its blocks";
    return queue->dead_bytes == blocks.dead ? NULL
                                            : "C6: the bytes of dead tasks are not those of their blocks";
}

static const char *check_counts(const struct tw__redis_queue *queue, bool attached)
{
    bool too_large = queue->attached && tw__redis_sums_dump_most(queue) > queue->queues->dump_limit;
    const char *fault = NULL;
    if (queue->attached != attached)
        return "C1: a queue is in the wrong list";
    if (attached)
        fault = check_blocks(queue);
    if (fault != NULL)
        return fault;
    return queue->too_large == too_large ? NULL : "C4: the mark `too_large` of a queue is wrong";
}

const char *tw__redis_check_sums(const struct tw__redis_queues *queues)
{
    struct tw__redis_queues sums = {0};
    const char *fault = NULL;
    struct tw__link *link = queues->attached.next;
    for (; link != &queues->attached && fault == NULL; link = link->next) {
        const struct tw__redis_queue *queue = tw__redis_queue_at(link);
        uint64_t tasks = tw__redis_table_count(&queue->tasks);
        fault = check_counts(queue, true);
        if (fault == NULL && queue->paused && sums.paused < sums.count)
            fault = "C5: a paused queue is behind one that is not paused";
        sums.count++;
        sums.empty += tasks == 0 && !queue->paused;
        sums.tasks += tasks;
        sums.in_line += queue->in_line;
        sums.held += queue->held;
        sums.paused += queue->paused;
        sums.stopped += queue->paused ? queue->in_line : 0;
        sums.ready_count += queue->ready_count;
        sums.leased_count += queue->leased_count;
        sums.dead_count += queue->dead_count;
        sums.bytes += queue->bytes;
        sums.dead_bytes += queue->dead_bytes;
        sums.too_large += queue->too_large;
    }
    for (link = queues->detached.next; link != &queues->detached && fault == NULL; link = link->next) {
        fault = check_counts(tw__redis_queue_at(link), false);
        sums.reaping += tw__redis_table_count(&tw__redis_queue_at(link)->tasks);
    }
    if (fault == NULL &&
        (sums.count != queues->count || sums.empty != queues->empty || sums.tasks != queues->tasks ||
         sums.in_line != queues->in_line || sums.held != queues->held || sums.paused != queues->paused ||
         sums.stopped != queues->stopped || sums.ready_count != queues->ready_count ||
         sums.leased_count != queues->leased_count || sums.dead_count != queues->dead_count ||
         sums.bytes != queues->bytes || sums.dead_bytes != queues->dead_bytes ||
         sums.too_large != queues->too_large || sums.reaping != queues->reaping))
        fault = "C2: a sum is not that of all queues";
    return fault;
}

/* ---- routes ---------------------------------------------------------------------------------------------- */

struct routes {
    const struct tw__redis_queue *queue;
    uint64_t tasks; /* of all routes together */
    const char *fault;
};

static void check_route(void *entry, void *arg)
{
    struct routes *routes = arg;
    const struct tw__redis_route *route = entry;
    const struct tw__redis_queue *queue = routes->queue;
    routes->tasks += route->tasks;
    if (route->index >= queue->queues->routes || tw__redis_route_at(queue->queues, route->index) != route ||
        route->queue != queue)
        routes->fault = "R1: a route has the number of another route, or is in another queue's table";
    else if (route->tasks == 0 && route != queue->last)
        routes->fault = "R3: a route has no tasks, and is not the last one used";
    else if (route->key_size > queue->longest_route)
        routes->fault = "R4: the key of a route is longer than `longest_route`";
}

static void check_number(void *entry, void *arg)
{
    struct routes *routes = arg;
    const struct tw__redis_task *task = entry;
    const struct tw__redis_queues *queues = routes->queue->queues;
    if (task->route >= queues->routes || tw__redis_route_at(queues, task->route) == NULL ||
        tw__redis_queue_of(queues, task) != routes->queue)
        routes->fault = "R1: a task has the number of a route that its queue does not have";
}

const char *tw__redis_check_routes(const struct tw__redis_queue *queue)
{
    struct routes routes = {.queue = queue};
    tw__redis_table_each(&queue->routes, check_route, &routes);
    tw__redis_table_each(&queue->tasks, check_number, &routes);
    if (routes.fault == NULL && routes.tasks != tw__redis_table_count(&queue->tasks))
        routes.fault = "R2: the routes do not count the tasks of the queue";
    return routes.fault;
}

/* ---- everything ------------------------------------------------------------------------------------------ */

struct filed {
    uint64_t at[TW__REDIS_IN_DEAD + 1]; /* tasks by their places; without the leased tasks of a line */
    uint64_t leased;
};

/* The tasks of all lines. */
static uint64_t in_lines(const struct filed *filed)
{
    uint64_t count = 0;
    for (int place = TW__REDIS_IN_LINE; place <= TW__REDIS_IN_DEAD; place++)
        count += filed->at[place];
    return count;
}

static void count_filed(void *entry, void *arg)
{
    struct filed *filed = arg;
    const struct tw__redis_task *task = entry;
    bool leased = tw__redis_task_is_leased(task);
    filed->leased += leased;
    filed->at[task->place] += task->place != TW__REDIS_IN_LINE || !leased;
}

static bool is_handed_over(struct tw__redis_queues *queues, const struct tw__redis_queue *queue)
{
    pthread_mutex_lock(&queues->to_reap_lock);
    const struct tw__redis_queue *one = queues->to_reap;
    while (one != NULL && one != queue)
        one = one->reaped;
    pthread_mutex_unlock(&queues->to_reap_lock);
    return one != NULL;
}

/* Checks the queues of a list, and counts their tasks by the place where they are filed. */
static const char *check_list(struct tw__redis_queues *queues, const struct tw__link *list, struct filed *filed)
{
    const char *fault = NULL;
    for (struct tw__link *link = list->next; link != list && fault == NULL; link = link->next) {
        const struct tw__redis_queue *queue = tw__redis_queue_at(link);
        fault = tw__redis_table_check(&queue->tasks);
        if (fault == NULL)
            fault = tw__redis_table_check(&queue->routes);
        if (fault == NULL && !is_handed_over(queues, queue))
            fault = tw__redis_check_routes(queue);
        uint64_t before = in_lines(filed), leased = filed->leased;
        tw__redis_table_each(&queue->tasks, count_filed, filed);
        if (fault == NULL &&
            in_lines(filed) - before != queue->in_line + queue->held + queue->ready_count + queue->dead_count)
            fault = "P4: the count of tasks in lines is wrong";
        if (fault == NULL && filed->leased - leased != queue->leased_count)
            fault = "P4: the count of leased tasks is wrong";
    }
    return fault;
}

const char *tw__redis_check_all(struct tw__redis_queues *queues)
{
    struct filed filed = {0};
    const char *fault = check_list(queues, &queues->attached, &filed);
    if (fault == NULL)
        fault = check_list(queues, &queues->detached, &filed);
    if (fault == NULL)
        fault = tw__redis_check_sums(queues);
    if (fault == NULL)
        fault = tw__redis_check_places(queues);
    uint64_t behind = queues->behind == NULL ? 0 : tw_wheel_count(queues->behind);
    if (fault == NULL && (filed.at[TW__REDIS_IN_WHEEL] != tw_wheel_count(queues->wheel) ||
                          filed.at[TW__REDIS_IN_BEHIND] != behind ||
                          filed.at[TW__REDIS_IN_LEASES] != tw_wheel_count(queues->leases)))
        fault = "P1: a wheel holds other tasks than those of the queues";
    return fault;
}
