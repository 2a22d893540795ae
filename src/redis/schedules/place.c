/* SPDX-License-Identifier: MIT
 *
 * Where tasks wait. schedule.h has the overview.
 *
 * The wheel counts milliseconds of the wall clock, as the server's own expiries do. A task whose time the wheel has
 * passed cannot be filed there with that time, so it goes to the queue of tasks that were late when they were filed, which
 * keeps it. It takes its turn when nothing is left that was due before it was filed.
 *
 * The wheel's time never goes back; the wall clock may. Then there are times that the wheel has passed and that are yet
 * to come: tasks for these go to a second wheel, `behind`, which stands at the true time. It is dropped when the clock
 * has caught up. Rejected: filing all tasks again in a new wheel, which would stop the server for a second at ten
 * million tasks.
 *
 * Invariants
 * F1 A task of a schedule is in one wheel or one queue, except between tw__take() and what is done with it.
 * F2 A task with TW__TASK_QUEUED is in the queue of overdue tasks or in that of late ones, or with TW__TASK_HELD in that of its route.
 * F3 A route whose queue is not empty waits for its retry, or is in the list of turns; one whose queue is empty, neither.
 */
#include "memory.h"
#include "schedule.h"

struct tw__all tw__all;

/* ---- queues -------------------------------------------------------------------------------------------------- */

static void queue_init(struct tw__link *queue)
{
    queue->next = queue->prev = queue;
}

static bool queue_empty(const struct tw__link *queue)
{
    return queue->next == queue;
}

static struct tw__task *task_of_link(struct tw__link *link)
{
    return TW_CONTAINER(link, struct tw__task, timer.link);
}

/* ---- counting ------------------------------------------------------------------------------------------------- */

static void count_queued(struct tw__schedule *schedule, int64_t more)
{
    schedule->queued += (uint64_t)more;
    if (schedule->attached)
        tw__all.queued += (uint64_t)more;
}

static void count_held(struct tw__schedule *schedule, int64_t more)
{
    schedule->held += (uint64_t)more;
    if (schedule->attached)
        tw__all.held += (uint64_t)more;
}

/* ---- filing ----------------------------------------------------------------------------------------------------- */

int tw__all_start(uint64_t now_ms, uint64_t monotonic_ms)
{
    struct tw_geometry big = TW_DEFAULT, small = TW_SMALL;
    queue_init(&tw__all.overdue);
    queue_init(&tw__all.late);
    queue_init(&tw__all.turns);
    queue_init(&tw__all.attached);
    queue_init(&tw__all.detached);
    if (tw_wheel_new(&tw__all.wheel, &big, now_ms) != 0 ||
        tw_wheel_new(&tw__all.retries, &small, monotonic_ms) != 0)
        return -1;
    return 0;
}

/* Puts a task into a queue, before `next`. */
static void enqueue(struct tw__task *task, struct tw__link *next)
{
    task->flags |= TW__TASK_QUEUED;
    tw__link_before(&task->timer.link, next);
    count_queued(tw__schedule_of(task), 1);
}

/* Files a task of one wheel for times to come in another one; what came due meanwhile, and was not taken, in the queue. */
static void file_behind(struct tw_wheel *behind, struct tw__task *task, uint64_t now_ms)
{
    uint64_t due_ms = tw__task_due(task);
    if (due_ms > now_ms) {
        tw_wheel_add_at(behind, &task->timer, due_ms);
        return;
    }
    task->flags &= (uint8_t)~TW__TASK_BEHIND;
    tw_timer_init_at(&task->timer, due_ms);
    enqueue(task, &tw__all.overdue);
}

void tw__clock_back(uint64_t now_ms)
{
    struct tw_geometry small = TW_SMALL;
    struct tw_wheel *behind;
    if (tw_wheel_new(&behind, &small, now_ms) != 0)
        return; /* what is filed meanwhile waits in the queue, where nothing leaves before its time either */
    if (tw__all.behind != NULL) {
        /* Set back once more: what waits here is what was filed since the last time. */
        struct tw_timer *timer;
        while ((timer = tw_wheel_drain(tw__all.behind)) != NULL)
            file_behind(behind, tw__task_of(timer), now_ms);
        tw_wheel_free(tw__all.behind);
    }
    tw__all.behind = behind;
}

void tw__file_overdue(struct tw__task *task)
{
    enqueue(task, &tw__all.overdue);
}

void tw__file(struct tw__task *task, uint64_t due_ms, uint64_t now_ms)
{
    task->order = tw__all.order++;
    if (due_ms > tw_wheel_now(tw__all.wheel)) {
        tw_wheel_add_at(tw__all.wheel, &task->timer, due_ms);
        return;
    }
    if (due_ms > now_ms && tw__all.behind != NULL && due_ms > tw_wheel_now(tw__all.behind)) {
        task->flags |= TW__TASK_BEHIND;
        tw_wheel_add_at(tw__all.behind, &task->timer, due_ms);
        return;
    }
    tw_timer_init_at(&task->timer, due_ms);
    task->timer.hint = now_ms;
    enqueue(task, &tw__all.late);
}

/* ---- targets that refuse ---------------------------------------------------------------------------------------- */

/* While a task is held, its upper bits are the waits that its route had counted before: so a wait counts for all that are
 * held, whatever their number. */
static uint32_t held_tries(const struct tw__task *task)
{
    return (tw__route_of(task)->waits - tw__task_tries(task)) & TW__TRIES_MAX;
}

uint32_t tw__tries(const struct tw__task *task)
{
    return task->flags & TW__TASK_HELD ? held_tries(task) : tw__task_tries(task);
}

void tw__route_rests(struct tw__route *route)
{
    tw_wheel_cancel(tw__all.retries, &route->retry);
    if (route->turn.next != NULL)
        tw__link_out(&route->turn);
}

static void hold(struct tw__task *task, struct tw__link *next)
{
    struct tw__route *route = tw__route_of(task);
    tw__task_set_tries(task, route->waits - tw__task_tries(task));
    task->flags |= TW__TASK_QUEUED | TW__TASK_HELD;
    tw__link_before(&task->timer.link, next);
    count_held(route->schedule, 1);
}

bool tw__is_behind(const struct tw__task *task)
{
    return !queue_empty(&tw__route_of(task)->queue) && tw__all.turn != task;
}

bool tw__any_waiting(void)
{
    return tw__all.queued > 0 || !queue_empty(&tw__all.turns);
}

void tw__hold(struct tw__task *task)
{
    hold(task, &tw__route_of(task)->queue);
}

void tw__hold_first(struct tw__task *task, uint64_t retry_ms)
{
    struct tw__route *route = tw__route_of(task);
    tw__route_rests(route);
    hold(task, route->queue.next);
    tw_wheel_move_at(tw__all.retries, &route->retry, retry_ms);
}

void tw__give_turn(struct tw__route *route)
{
    if (route->turn.next == NULL)
        tw__link_before(&route->turn, &tw__all.turns);
}

void tw__put_back(struct tw__task *task)
{
    struct tw__route *route = tw__route_of(task);
    if (tw__all.turn == task) {
        hold(task, route->queue.next);
        tw__give_turn(route);
    } else {
        enqueue(task, tw__all.overdue.next);
    }
}

/* ---- other times -------------------------------------------------------------------------------------------------- */

void tw__unfile(struct tw__task *task)
{
    if (!tw_timer_pending(&task->timer))
        return;
    if (task->flags & TW__TASK_QUEUED) {
        struct tw__route *route = tw__route_of(task);
        tw__link_out(&task->timer.link);
        if (task->flags & TW__TASK_HELD) {
            tw__task_set_tries(task, held_tries(task));
            count_held(route->schedule, -1);
            if (queue_empty(&route->queue))
                tw__route_rests(route);
        } else {
            count_queued(route->schedule, -1);
        }
    } else {
        tw_wheel_cancel(task->flags & TW__TASK_BEHIND ? tw__all.behind : tw__all.wheel, &task->timer);
    }
    task->flags &= (uint8_t) ~(TW__TASK_QUEUED | TW__TASK_HELD | TW__TASK_BEHIND);
}

void tw__foresee_unfile(const struct tw__task *task)
{
    __builtin_prefetch(task->timer.link.next, 1);
    __builtin_prefetch(task->timer.link.prev, 1);
}

void tw__refile(struct tw__task *task, uint64_t due_ms, uint64_t now_ms)
{
    if (tw__all.delivering == task)
        tw__all.delivering = NULL;
    if (!(task->flags & (TW__TASK_QUEUED | TW__TASK_BEHIND)) && due_ms > tw_wheel_now(tw__all.wheel)) {
        task->order = tw__all.order++;
        tw_wheel_move_at(tw__all.wheel, &task->timer, due_ms);
        return;
    }
    tw__unfile(task);
    tw__file(task, due_ms, now_ms);
}

/* ---- taking out --------------------------------------------------------------------------------------------------- */

static enum tw__taken take_from(struct tw_wheel *wheel, uint64_t now_ms, uint32_t *budget,
                                struct tw__task **task)
{
    struct tw_timer *timer;
    enum tw_polled polled = tw_wheel_poll_budget(wheel, now_ms, budget, &timer);
    if (polled != TW_POLL_DUE)
        return polled == TW_POLL_MORE ? TW__TAKEN_MORE : TW__TAKEN_NONE;
    *task = tw__task_of(timer);
    (*task)->flags &= (uint8_t)~TW__TASK_BEHIND;
    return TW__TAKEN_TASK;
}

/* The second wheel is not needed any more when the clock has caught up and it is empty. */
static void drop_behind(uint64_t now_ms)
{
    if (now_ms < tw_wheel_now(tw__all.wheel) || tw_wheel_count(tw__all.behind) > 0)
        return;
    tw_wheel_free(tw__all.behind);
    tw__all.behind = NULL;
}

static enum tw__taken take_filed(uint64_t now_ms, uint32_t *budget, struct tw__task **task)
{
    if (tw__all.behind != NULL) {
        enum tw__taken taken = take_from(tw__all.behind, now_ms, budget, task);
        if (taken != TW__TAKEN_NONE)
            return taken;
        drop_behind(now_ms);
    }
    return take_from(tw__all.wheel, now_ms, budget, task);
}

/* The first of a queue, if its time has come: it may not have when the clock was set back. */
static struct tw__task *first_due(const struct tw__link *queue, uint64_t now_ms)
{
    if (queue_empty(queue))
        return NULL;
    struct tw__task *task = task_of_link(queue->next);
    return tw__task_due(task) <= now_ms ? task : NULL;
}

/* Takes the first task of the first route whose wait is over. */
static struct tw__task *take_turn(uint32_t *budget)
{
    struct tw__route *route = TW_CONTAINER(tw__all.turns.next, struct tw__route, turn);
    struct tw__task *task = task_of_link(route->queue.next);
    tw__unfile(task);
    tw__all.turn = task;
    --*budget;
    return task;
}

/* When a late task was filed: that is its turn, whatever its due time. Else a task that repeats and is an age behind would
 * keep all others waiting. */
static uint64_t turn_of_late(const struct tw__task *task)
{
    return task->timer.hint;
}

/* Takes what is due first of the queues and the wheel. */
static enum tw__taken take_first(uint64_t now_ms, uint32_t *budget, struct tw__task **task)
{
    if (!queue_empty(&tw__all.turns)) {
        *task = take_turn(budget);
        return TW__TAKEN_TASK;
    }
    struct tw__task *overdue = first_due(&tw__all.overdue, now_ms), *late = first_due(&tw__all.late, now_ms);
    if (overdue == NULL) {
        enum tw__taken taken = take_filed(now_ms, budget, task);
        if (late == NULL || taken == TW__TAKEN_MORE)
            return taken;
        if (taken == TW__TAKEN_TASK) {
            if (tw__task_due(*task) <= turn_of_late(late))
                return taken;
            enqueue(*task, tw__all.overdue.next);
        }
    } else if (late == NULL || tw__task_due(overdue) <= turn_of_late(late)) {
        late = overdue;
    }
    tw__unfile(late);
    *task = late;
    *budget -= *budget > 0; /* what was taken off the wheel before may have been the last of it */
    return TW__TAKEN_TASK;
}

enum tw__taken tw__take(uint64_t now_ms, bool queued, uint32_t *budget, struct tw__task **task)
{
    enum tw__taken taken = TW__TAKEN_MORE;
    tw__all.turn = NULL;
    while (*budget > 0) {
        taken = queued ? take_first(now_ms, budget, task) : take_filed(now_ms, budget, task);
        if (taken != TW__TAKEN_TASK || tw__schedule_of(*task)->attached)
            return taken;
        taken = TW__TAKEN_MORE; /* of a removed schedule: the reaper will find it */
    }
    return taken;
}

uint64_t tw__next_work(void)
{
    uint64_t next = tw_wheel_next_bound(tw__all.wheel);
    if (tw__all.behind != NULL && tw_wheel_next_bound(tw__all.behind) < next)
        next = tw_wheel_next_bound(tw__all.behind);
    return next;
}

/* ---- order ---------------------------------------------------------------------------------------------------------- */

/* Merges two lists that are linked by `next` alone, equals from the first. */
static struct tw__link *merge(struct tw__link *a, struct tw__link *b)
{
    struct tw__link head, *tail = &head;
    while (a != NULL && b != NULL) {
        struct tw__link **least = tw__task_due(task_of_link(b)) < tw__task_due(task_of_link(a)) ? &b : &a;
        tail->next = *least;
        tail = *least;
        *least = (*least)->next;
    }
    tail->next = a != NULL ? a : b;
    return head.next;
}

void tw__sort_overdue(void)
{
    /* Merge sort from the bottom: run[i] is a sorted list of 2^i tasks, or empty (Knuth, volume 3, 5.2.4). */
    struct tw__link *run[64] = {NULL};
    while (!queue_empty(&tw__all.late)) {
        struct tw__link *late = tw__all.late.next;
        tw__link_out(late);
        tw__link_before(late, &tw__all.overdue);
    }
    struct tw__link *link = tw__all.overdue.next, *following;
    for (; link != &tw__all.overdue; link = following) {
        following = link->next;
        struct tw__link *list = link;
        list->next = NULL;
        uint32_t i = 0;
        for (; run[i] != NULL; i++) {
            list = merge(run[i], list);
            run[i] = NULL;
        }
        run[i] = list;
    }
    struct tw__link *all = NULL;
    for (uint32_t i = 0; i < 64; i++)
        all = merge(run[i], all);
    queue_init(&tw__all.overdue);
    for (; all != NULL; all = following) {
        following = all->next;
        tw__link_before(all, &tw__all.overdue);
    }
}

/* ---- looking -------------------------------------------------------------------------------------------------------- */

enum {
    LOOK_MAX = 1000,  /* into the queues for the oldest: they are about in order; and queues of routes */
    COUNT_MAX = 20000 /* in the wheels: a millisecond or two */
};

struct overdue {
    uint64_t count, oldest;
};

static int count_overdue(void *arg, struct tw_timer *timer)
{
    struct overdue *overdue = arg;
    const struct tw__task *task = TW_CONTAINER(timer, const struct tw__task, timer);
    if (tw__schedule_of(task)->attached) {
        overdue->count++;
        if (tw__task_due(task) < overdue->oldest)
            overdue->oldest = tw__task_due(task);
    }
    return 0;
}

static void look_into_queue(struct overdue *overdue, const struct tw__link *queue, uint32_t most)
{
    for (struct tw__link *link = queue->next; link != queue && most-- > 0; link = link->next)
        count_overdue(overdue, TW_CONTAINER(link, struct tw_timer, link));
}

static int look_into_route(void *arg, struct tw_timer *timer)
{
    look_into_queue(arg, &TW_CONTAINER(timer, const struct tw__route, retry)->queue, 1);
    return 0;
}

/* The first of the queues of routes, which are where F3 says. */
static void look_into_routes(struct overdue *overdue)
{
    uint32_t turns = LOOK_MAX, retries = LOOK_MAX;
    for (const struct tw__link *link = tw__all.turns.next; link != &tw__all.turns && turns > 0;
         link = link->next, turns--)
        look_into_queue(overdue, &TW_CONTAINER(link, const struct tw__route, turn)->queue, 1);
    tw_wheel_visit_budget(tw__all.retries, TW_NEVER - 1, &retries, look_into_route, overdue);
}

uint64_t tw__overdue(uint64_t now_ms, uint64_t *oldest)
{
    struct overdue overdue = {0, TW_NEVER};
    uint32_t budget = COUNT_MAX; /* due or not: there may be any number in the slots of the past that are not */
    look_into_queue(&overdue, &tw__all.overdue, LOOK_MAX);
    look_into_queue(&overdue, &tw__all.late, LOOK_MAX);
    look_into_routes(&overdue);
    overdue.count = tw__all.queued + tw__all.held;
    if (tw_wheel_visit_budget(tw__all.wheel, now_ms, &budget, count_overdue, &overdue) &&
        tw__all.behind != NULL)
        tw_wheel_visit_budget(tw__all.behind, now_ms, &budget, count_overdue, &overdue);
    *oldest = overdue.oldest;
    return overdue.count;
}
