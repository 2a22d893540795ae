/* SPDX-License-Identifier: MIT
 *
 * The places where tasks wait. state.h has the overview.
 *
 * The wheel counts milliseconds of the wall clock, as the server's own expiry does. A task whose due time has
 * passed goes to the line of past tasks, which keeps its due time, also if the wheel still stands before that
 * time. It is delivered when no task is left that was due before it was filed. So such tasks come in the order
 * of filing. Example: at 12:00 a client adds a task for 11:00, and then one for 10:00. They are delivered in
 * this order, after all tasks that are due by 12:00, and before a task for 12:01.
 *
 * The time of the wheel never goes back, but the wall clock may. Then some times are yet to come that the
 * wheel has already passed. Tasks for these times go to a second wheel, `behind`, which stands at the true
 * time. It is freed when the clock has caught up. Example: the clock is set back from 12:00 to 11:50, and a
 * client adds a task for 11:55. A task that is first in a line, and is not due any more, goes back to a wheel,
 * so that the tasks behind it do not wait for it. Rejected: filing all tasks again in a new wheel, which would
 * stop the server for a second at ten million tasks.
 *
 * A lease is a span of time, and setting the clock must neither lengthen nor shorten it. The wheel of leases
 * counts milliseconds of a steady clock. That is the wall clock, minus `set_ms`: by how much the module has
 * seen the wall clock set. So a step of the clock moves the ends of all leases at once, however many there are.
 * A leased task in this wheel has the end by the steady clock; everywhere else, and for everybody else, the end
 * is by the wall clock (tw__redis_place_due). A lease that has ended when it is filed goes to the line of past
 * tasks. Example: at 12:00 a worker takes a task for ten minutes, so the end is 12:10. At 12:04 the clock is
 * set back to 11:04. From then on the end is 11:10. Rejected: a monotonic clock, since then the end of a lease
 * would not be a time that can be named, and each server would name another one.
 *
 * The end of a lease that comes from a file or from another server comes from another clock. So no lease that
 * is filed lasts longer from then on than its length. Example: a machine starts with a clock that is two hours
 * slow. At 10:00 by this clock it loads a lease of 30 s that ends at 12:00:30, and files it for 10:00:30. When
 * the clock is corrected, the end moves to 12:00:30, and not to 14:00:30.
 *
 * A queue has three lines of its own. A task without a target becomes ready when it is due, and waits for
 * a worker in the order in which tasks became ready. While a queue is paused, its due tasks are stopped:
 * they leave the wheel, and go to the end of the line of late tasks when the pause ends. A dead task
 * waits until it is replayed, purged, cancelled or replaced.
 *
 * A task gets its `order` anew when it becomes ready, and keeps it while it is leased. So a task that is given
 * back finds its old place by this number alone, also if it was filed late. Workers give back from the head,
 * or one task after the other: two walks look for the place in turns, from the head and from the task that was
 * given back last. Example: a worker takes 1,000 tasks and stops. It gives them back in order, and each walk
 * has one step. The number may wrap: a task comes to another place if 2^31 tasks were filed or became ready
 * during its lease. Rejected: a tree of ready tasks, since each TAKE would pay for it.
 *
 * A file and a replica do not have these numbers. So a task that was leased in a file, or before a failover,
 * has a number below `here`. Such tasks come before all others, in the order of the times for which they
 * waited.
 *
 * The settings limit how long dead tasks stay, and how many. Each queue with dead tasks has one timer, which
 * is filed for the time at which its first dead task died, and not for the time until which that task may
 * stay. So the setting can change: the wheel of deaths is polled up to the latest death that is too long ago. A
 * queue whose timer has expired, or that has too many dead tasks, is in the list `stale` until it has
 * removed them. A timer may expire too early, because a later task is the first one by now; then it is filed
 * again.
 *
 * Invariants (check.c names the first that does not hold)
 *   P1  A task of a queue is in one wheel or one line, unless tw__redis_place_take() has taken it.
 *   P2  The field `place` of a task says where it is. A held task is in the line of its own route. A task is
 *       in the line of dead tasks if its stage is BURIED. A leased task in a wheel is in that of leases, and no
 *       other task is there.
 *   P3  A route whose line is not empty either waits for its retry or is in the list of ready routes. A route
 *       whose line is empty does neither.
 *   P4  Each queue counts its tasks that are in lines, and its leased tasks.
 *   P5  A queue with dead tasks waits for its timer or is in the list `stale`. A queue without dead tasks
 *       does neither. An attached queue with more dead tasks than the limit is in that list.
 *   P6  No task in the lines of late, of past and of stopped tasks, and of those put aside, is due after
 *       `lined_ms`. So a look for later tasks need not walk these lines. Only after the clock was set back may
 *       `lined_ms` lie in the future.
 *   P7  The field `back` of a queue is NULL or one of its ready tasks.
 */
#include "place.h"

#include <base/assert.h>
#include <base/list.h>
#include <base/saturate.h>
#include <wheel/private.h>

#include "check.h"
#include "sums.h"

/* ---- wheels ---------------------------------------------------------------------------------------------- */

int tw__redis_place_init(struct tw__redis_queues *queues, uint64_t now_ms, uint64_t monotonic_ms)
{
    const struct tw_geometry small = TW_GEOMETRY_SMALL;
    tw__list_init(&queues->late);
    tw__list_init(&queues->past);
    tw__list_init(&queues->aside);
    tw__list_init(&queues->ready);
    /* The wheel of deaths stands before all deaths that a file may tell of. */
    if (tw_wheel_new(&queues->wheel, NULL, now_ms) == 0 && tw_wheel_new(&queues->leases, NULL, now_ms) == 0 &&
        tw_wheel_new(&queues->retries, &small, monotonic_ms) == 0 &&
        tw_wheel_new(&queues->deaths, &small, 0) == 0)
        return 0;
    tw__redis_place_fini(queues);
    return -1;
}

void tw__redis_place_fini(struct tw__redis_queues *queues)
{
    tw_wheel_free(queues->wheel);
    tw_wheel_free(queues->behind);
    tw_wheel_free(queues->leases);
    tw_wheel_free(queues->retries);
    tw_wheel_free(queues->deaths);
}

/* Asserts that a wheel took a timer: the wheels' geometries have no end, so no time is out of range. */
static inline void assert_taken(int result)
{
    TW_ASSERT(result == 0);
    (void)result;
}

/* ---- clocks ---------------------------------------------------------------------------------------------- */

/* A time of the wall clock by the steady clock, and the reverse. */
static uint64_t steady_of(const struct tw__redis_queues *queues, uint64_t wall_ms)
{
    uint64_t set_ms = (uint64_t)queues->set_ms;
    if (queues->set_ms < 0)
        return wall_ms - set_ms;
    return wall_ms > set_ms ? wall_ms - set_ms : 0;
}

static uint64_t wall_of(const struct tw__redis_queues *queues, uint64_t steady_ms)
{
    uint64_t set_ms = (uint64_t)queues->set_ms;
    return queues->set_ms >= 0 || steady_ms > -set_ms ? steady_ms + set_ms : 0;
}

void tw__redis_place_clock_set(struct tw__redis_queues *queues, int64_t by_ms)
{
    queues->set_ms += by_ms;
}

uint64_t tw__redis_place_due(const struct tw__redis_queues *queues, const struct tw__redis_task *task)
{
    if (task->place != TW__REDIS_IN_LEASES)
        return tw__redis_task_due(task);
    uint64_t end = wall_of(queues, tw__redis_task_due(task));
    return end < TW__TASK_TIME_MAX ? end : TW__TASK_TIME_MAX;
}

uint64_t tw__redis_place_next(const struct tw__redis_queues *queues, const struct tw__redis_task *task,
                              uint64_t now_ms)
{
    if (tw__redis_task_stage(task) == TW__TASK_BURIED)
        return 0;
    if (task->place != TW__REDIS_IN_HELD)
        return tw__redis_place_due(queues, task);
    const struct tw__redis_route *route = tw__redis_route_of(queues, task);
    uint64_t next_ms = tw__redis_place_next_try(route);
    return tw_timer_pending(&route->retry) || next_ms < now_ms ? next_ms : now_ms;
}

uint64_t tw__redis_place_now(const struct tw__redis_queues *queues)
{
    return tw_wheel_now(queues->behind != NULL ? queues->behind : queues->wheel);
}

/* ---- filing ---------------------------------------------------------------------------------------------- */

/* Puts a task that is filed nowhere into a line, before `next`: the place in the line overwrites the timer.
 * unpark() does the reverse. */
static void park(struct tw__redis_task *task, enum tw__redis_place place, struct tw__link *next,
                 uint64_t since_ms)
{
    TW_ASSERT(!tw__redis_task_filed(task));
    task->parked.due = tw_timer_deadline(&task->timer);
    task->parked.since_ms = since_ms;
    task->place = place & 15;
    tw__list_insert(&task->parked.link, next);
}

static void unpark(struct tw__redis_task *task)
{
    tw__list_remove(&task->parked.link);
    task->place = TW__REDIS_NOWHERE;
    tw_timer_init_at(&task->timer, task->parked.due);
}

/* Counts a task of the line of late, past or stopped tasks. A lease that has run out while the server may
 * not deliver is in the line of late tasks too. It is counted as leased alone. */
static void count_in_line(const struct tw__redis_queues *queues, const struct tw__redis_task *task, int more)
{
    if (!tw__redis_task_is_leased(task))
        tw__redis_sums_in_line(tw__redis_queue_of(queues, task), more);
}

/* Puts a task into the line of late, past or stopped tasks, or of those put aside, before `next`. */
static void line_up(struct tw__redis_queues *queues, struct tw__redis_task *task, struct tw__link *next,
                    uint64_t since_ms)
{
    park(task, TW__REDIS_IN_LINE, next, since_ms);
    if (task->parked.due > queues->lined_ms)
        queues->lined_ms = task->parked.due;
    count_in_line(queues, task, 1);
}

/* Files a task of the old second wheel in a new one. A task that became due meanwhile, and was not taken,
 * goes to the line of late tasks. */
static void file_behind(struct tw__redis_queues *queues, struct tw_wheel *behind, struct tw__redis_task *task,
                        uint64_t now_ms)
{
    uint64_t due_ms = tw__redis_task_due(task);
    if (due_ms > now_ms) {
        assert_taken(tw_wheel_add_at(behind, &task->timer, due_ms));
        return;
    }
    task->place = TW__REDIS_NOWHERE;
    line_up(queues, task, &queues->late, 0);
}

void tw__redis_place_clock_back(struct tw__redis_queues *queues, uint64_t now_ms)
{
    const struct tw_geometry small = TW_GEOMETRY_SMALL;
    struct tw_wheel *behind;
    TW_ASSERT(now_ms < tw_wheel_now(queues->wheel));
    if (tw_wheel_new(&behind, &small, now_ms) != 0)
        return; /* tasks filed meanwhile wait in the line of past tasks, and leave it no earlier than due */
    if (queues->behind != NULL) {
        /* The clock was set back once more: this wheel holds the tasks filed since the last time. */
        struct tw_timer *timer;
        while ((timer = tw_wheel_drain(queues->behind)) != NULL)
            file_behind(queues, behind, tw__redis_task_of_timer(timer), now_ms);
        tw_wheel_free(queues->behind);
    }
    queues->behind = behind;
    tw__redis_check_changed(queues, tw__redis_check_places);
}

void tw__redis_place_file_late(struct tw__redis_queues *queues, struct tw__redis_task *task)
{
    line_up(queues, task, &queues->late, 0);
    tw__redis_check_changed(queues, tw__redis_check_places);
}

void tw__redis_place_put_aside(struct tw__redis_queues *queues, struct tw__redis_task *task)
{
    line_up(queues, task, &queues->aside, queues->late_since_ms);
    tw__redis_check_changed(queues, tw__redis_check_places);
}

/* Puts the tasks that were put aside before the late ones. */
static void bring_back(struct tw__redis_queues *queues)
{
    if (tw__list_empty(&queues->aside))
        return;
    tw__list_move_all(&queues->late, &queues->aside);
    tw__list_move_all(&queues->aside, &queues->late);
}

/* Lets a queue wait until its first dead task has stayed too long, if it has one. A timer that expires too
 * early may stay. */
static void await_death(struct tw__redis_queue *queue)
{
    if (tw__list_empty(&queue->dead) || tw__link_listed(&queue->stale))
        return;
    uint64_t died_ms = tw__redis_task_due(tw__redis_task_of_link(queue->dead.next));
    if (!tw_timer_pending(&queue->death) || died_ms < tw_timer_deadline(&queue->death))
        assert_taken(tw_wheel_move_at(queue->queues->deaths, &queue->death, died_ms));
}

static void file_dead(struct tw__redis_queues *queues, struct tw__redis_task *task)
{
    struct tw__redis_queue *queue = tw__redis_queue_of(queues, task);
    park(task, TW__REDIS_IN_DEAD, &queue->dead, 0);
    tw__redis_sums_dead(queue, task, 1);
    await_death(queue);
}

static void unfile_dead(struct tw__redis_queues *queues, struct tw__redis_task *task)
{
    struct tw__redis_queue *queue = tw__redis_queue_of(queues, task);
    unpark(task);
    tw__redis_sums_dead(queue, task, -1);
    await_death(queue);
    if (!tw__list_empty(&queue->dead))
        return;
    tw_wheel_cancel(queues->deaths, &queue->death);
    if (tw__link_listed(&queue->stale))
        tw__list_remove(&queue->stale);
}

/* The time for which a task is filed: `due_ms`, but no lease ends later than its length allows from now on. Its
 * end may have been set by another clock. */
static uint64_t file_time(const struct tw__redis_task *task, uint64_t due_ms, uint64_t now_ms)
{
    if (!tw__redis_task_is_leased(task))
        return due_ms;
    uint64_t end_ms = tw__add_saturating(now_ms, tw__redis_task_attempt(task).lease_ms);
    return due_ms > tw__add_saturating(end_ms, TW__REDIS_LEASE_MORE_MS) ? end_ms : due_ms;
}

/* The end of a lease by the steady clock. If the wheel has passed the present time, the lease lasts longer by
 * as much. There are three such cases:
 * - The clock was set back, and the module has not seen it.
 * - The clock was set back by a second or less, which moves no lease.
 * - The clock was set a moment ago, in either direction: the module adds some milliseconds to a step. */
static uint64_t steady_end(const struct tw__redis_queues *queues, uint64_t end_ms, uint64_t now_ms)
{
    uint64_t now = steady_of(queues, now_ms), stands = tw_wheel_now(queues->leases),
             end = steady_of(queues, end_ms);
    return now < stands ? tw__add_saturating(end, stands - now) : end;
}

/* Files a task in one of the wheels. */
static void file_in(struct tw_wheel *wheel, enum tw__redis_place place, struct tw__redis_task *task,
                    uint64_t time_ms)
{
    assert_taken(tw_wheel_add_at(wheel, &task->timer, time_ms));
    task->place = place & 15;
}

/* Files a task in a wheel for a time that is yet to come. Returns false if all wheels have passed this time:
 * the clock was set back a little, or there is no memory for a second wheel. */
static bool file_in_wheel(struct tw__redis_queues *queues, struct tw__redis_task *task, uint64_t due_ms,
                          uint64_t now_ms)
{
    if (due_ms > tw_wheel_now(queues->wheel)) {
        file_in(queues->wheel, TW__REDIS_IN_WHEEL, task, due_ms);
        return true;
    }
    if (now_ms + TW__REDIS_BACK_MS < tw__redis_place_now(queues))
        tw__redis_place_clock_back(queues, now_ms); /* the clock was set back, and no tick has seen it yet */
    if (due_ms <= tw__redis_place_now(queues))
        return false;
    file_in(queues->behind, TW__REDIS_IN_BEHIND, task, due_ms);
    return true;
}

static void file_task(struct tw__redis_queues *queues, struct tw__redis_task *task, uint64_t due_ms,
                      uint64_t now_ms)
{
    TW_ASSERT(!tw__redis_task_filed(task));
    due_ms = file_time(task, due_ms, now_ms);
    if (!tw__redis_task_is_leased(task)) /* which may be given back, and then has its old place */
        task->order = queues->order++;
    if (tw__redis_task_stage(task) == TW__TASK_BURIED) {
        tw__redis_task_set_due(task, due_ms);
        file_dead(queues, task);
        return;
    }
    if (due_ms > now_ms && tw__redis_task_is_leased(task)) {
        file_in(queues->leases, TW__REDIS_IN_LEASES, task, steady_end(queues, due_ms, now_ms));
        return;
    }
    if (due_ms > now_ms && file_in_wheel(queues, task, due_ms, now_ms))
        return;
    tw__redis_task_set_due(task, due_ms);
    line_up(queues, task, &queues->past, now_ms);
}

void tw__redis_place_file(struct tw__redis_queues *queues, struct tw__redis_task *task, uint64_t due_ms,
                          uint64_t now_ms)
{
    file_task(queues, task, due_ms, now_ms);
    tw__redis_check_changed(queues, tw__redis_check_places);
}

/* ---- targets that refuse --------------------------------------------------------------------------------- */

/* While a task is held, the upper bits of its flags hold the waits that its route had counted before, minus
 * the task's own tries. So one wait counts as a try of every held task, however many there are. Example: a
 * task with one failed try is held when its route has counted 5 waits, so it stores 4. After 2 more waits its
 * tries are 7 - 4 = 3. */
static uint32_t held_tries(const struct tw__redis_queues *queues, const struct tw__redis_task *task)
{
    return (tw__redis_route_of(queues, task)->waits - task->tries) & TW__REDIS_TRIES_MAX;
}

uint32_t tw__redis_place_tries(const struct tw__redis_queues *queues, const struct tw__redis_task *task)
{
    return task->place == TW__REDIS_IN_HELD ? held_tries(queues, task) : task->tries;
}

/* Cancels the retry of a route, and takes the route off the list of ready routes. */
static void rest(struct tw__redis_route *route)
{
    tw_wheel_cancel(route->queue->queues->retries, &route->retry);
    if (tw__link_listed(&route->ready))
        tw__list_remove(&route->ready);
}

static void hold(struct tw__redis_queues *queues, struct tw__redis_task *task, struct tw__link *next,
                 uint64_t since_ms)
{
    struct tw__redis_route *route = tw__redis_route_of(queues, task);
    TW_ASSERT(!tw__redis_task_is_leased(task));
    task->tries = (route->waits - task->tries) & TW__REDIS_TRIES_MAX;
    park(task, TW__REDIS_IN_HELD, next, since_ms);
    tw__redis_sums_held(route->queue, 1);
}

bool tw__redis_place_is_blocked(const struct tw__redis_queues *queues, const struct tw__redis_task *task)
{
    return !tw__list_empty(&tw__redis_route_of(queues, task)->line);
}

bool tw__redis_place_any_waiting(const struct tw__redis_queues *queues)
{
    return !tw__list_empty(&queues->late) || !tw__list_empty(&queues->past) ||
           !tw__list_empty(&queues->aside) || !tw__list_empty(&queues->ready);
}

void tw__redis_place_hold(struct tw__redis_queues *queues, struct tw__redis_task *task)
{
    struct tw__link *line = &tw__redis_route_of(queues, task)->line;
    TW_ASSERT(!tw__list_empty(line));
    hold(queues, task, line, queues->late_since_ms);
    tw__redis_check_changed(queues, tw__redis_check_places);
}

static void hold_before_all(struct tw__redis_queues *queues, struct tw__redis_task *task, uint64_t retry_ms,
                            uint64_t next_ms, uint64_t since_ms)
{
    struct tw__redis_route *route = tw__redis_route_of(queues, task);
    rest(route);
    hold(queues, task, route->line.next, since_ms);
    route->next_try_ms = steady_of(queues, next_ms);
    assert_taken(tw_wheel_move_at(queues->retries, &route->retry, retry_ms));
    tw__redis_check_changed(queues, tw__redis_check_places);
}

void tw__redis_place_hold_first(struct tw__redis_queues *queues, struct tw__redis_task *task, uint64_t retry_ms,
                                uint64_t next_ms)
{
    hold_before_all(queues, task, retry_ms, next_ms, queues->late_since_ms);
}

void tw__redis_place_hold_again(struct tw__redis_queues *queues, struct tw__redis_task *task, uint64_t now_ms,
                                uint64_t monotonic_ms)
{
    bool behind = tw__redis_place_is_blocked(queues, task);
    if (task->place != TW__REDIS_IN_LINE || tw__redis_task_is_leased(task) || (task->tries == 0 && !behind))
        return;
    tw__redis_place_unfile(queues, task);
    uint64_t next_ms = tw__redis_place_next_after(queues, task, now_ms);
    if (behind)
        hold(queues, task, &tw__redis_route_of(queues, task)->line, 0);
    else if (next_ms > now_ms)
        hold_before_all(queues, task, monotonic_ms + (next_ms - now_ms), next_ms, 0);
    else
        line_up(queues, task, &queues->past, now_ms);
    tw__redis_check_changed(queues, tw__redis_check_places);
}

uint64_t tw__redis_place_next_try(const struct tw__redis_route *route)
{
    return wall_of(route->queue->queues, route->next_try_ms);
}

void tw__redis_place_set_wait(struct tw__redis_route *route, uint64_t wait_ms, uint64_t next_ms)
{
    if (!tw__list_empty(&route->line))
        return;
    route->wait_ms = wait_ms;
    route->next_try_ms = steady_of(route->queue->queues, next_ms);
}

uint64_t tw__redis_place_next_after(const struct tw__redis_queues *queues, const struct tw__redis_task *task,
                                    uint64_t now_ms)
{
    const struct tw__redis_route *route = tw__redis_route_of(queues, task);
    TW_ASSERT(!tw__redis_task_filed(task));
    if (task->tries == 0 || tw__redis_task_is_leased(task) || tw__redis_place_next_try(route) <= now_ms)
        return now_ms;
    uint64_t next_ms = tw__redis_place_next_try(route), most_ms = now_ms + 2 * route->wait_ms; /* its jitter */
    return next_ms < most_ms ? next_ms : most_ms;
}

void tw__redis_place_make_ready(struct tw__redis_route *route)
{
    TW_ASSERT(!tw__list_empty(&route->line));
    if (!tw__link_listed(&route->ready))
        tw__list_append(&route->queue->queues->ready, &route->ready);
}

void tw__redis_place_try_again(struct tw__redis_route *route, uint64_t now_ms)
{
    struct tw__redis_queues *queues = route->queue->queues;
    if (tw_wheel_cancel(queues->retries, &route->retry))
        route->next_try_ms = steady_of(queues, now_ms);
    tw__redis_place_make_ready(route);
    tw__redis_check_changed(queues, tw__redis_check_places);
}

void tw__redis_place_put_back(struct tw__redis_queues *queues, struct tw__redis_task *task,
                              enum tw__redis_taken taken)
{
    struct tw__redis_route *route = tw__redis_route_of(queues, task);
    TW_ASSERT(taken == TW__REDIS_TAKEN_TASK || taken == TW__REDIS_TAKEN_PROBE);
    if (taken == TW__REDIS_TAKEN_PROBE) {
        hold(queues, task, route->line.next, queues->late_since_ms);
        if (!tw_timer_pending(&route->retry)) /* else it has got another route meanwhile, which waits */
            tw__redis_place_make_ready(route);
    } else {
        line_up(queues, task, queues->late.next, queues->late_since_ms);
    }
    tw__redis_check_changed(queues, tw__redis_check_places);
}

/* ---- workers, pauses, dead tasks ------------------------------------------------------------------------- */

/* Whether the task at a link is due no later than the task at another link. */
static bool is_due_by(struct tw__link *link, struct tw__link *other)
{
    return tw__redis_task_due(tw__redis_task_of_link(link)) <=
           tw__redis_task_due(tw__redis_task_of_link(other));
}

/* Puts a due task into its queue's line of ready tasks, before `next`. */
static void offer_before(struct tw__redis_queues *queues, struct tw__redis_task *task, struct tw__link *next,
                         uint64_t since_ms)
{
    park(task, TW__REDIS_IN_READY, next, since_ms);
    tw__redis_sums_ready(tw__redis_queue_of(queues, task), 1);
    tw__redis_check_changed(queues, tw__redis_check_places);
}

void tw__redis_place_offer(struct tw__redis_queues *queues, struct tw__redis_task *task, uint64_t now_ms)
{
    task->order = queues->order++;
    if (task->order - queues->here > INT32_MAX / 2) /* else it would seem to lie ahead one day */
        queues->here = task->order - INT32_MAX / 2;
    offer_before(queues, task, &tw__redis_queue_of(queues, task)->ready, now_ms);
}

bool tw__redis_place_is_from_elsewhere(const struct tw__redis_queues *queues, const struct tw__redis_task *task)
{
    return (int32_t)(task->order - queues->here) < 0;
}

/* Whether a task of the ready line comes before a task that is given back. The line's end does not. */
static bool was_ready_before(const struct tw__redis_queue *queue, struct tw__link *ready,
                             const struct tw__redis_task *task)
{
    if (ready == &queue->ready)
        return false;
    const struct tw__redis_task *other = tw__redis_task_of_link(ready);
    uint64_t due = tw__redis_task_due(task), its = tw__redis_task_due(other);
    if (its != due && tw__redis_place_is_from_elsewhere(queue->queues, other) &&
        tw__redis_place_is_from_elsewhere(queue->queues, task))
        return its < due;
    return (int32_t)(other->order - task->order) < 0;
}

/* The link before which a task that is given back has its place. `head` walks from the first ready task, and
 * `near` from the task that was given back last or, if there is none, from the line's end. */
static struct tw__link *old_place(const struct tw__redis_queue *queue, const struct tw__redis_task *task)
{
    struct tw__link *head = queue->ready.next,
                    *near = queue->back != NULL ? &queue->back->parked.link : head->prev;
    for (uint32_t left = TW__REDIS_PASSED_MAX; left > 0 && was_ready_before(queue, head, task); left--) {
        if (was_ready_before(queue, near, task)) {
            near = near->next;
            if (!was_ready_before(queue, near, task))
                return near;
        } else {
            if (was_ready_before(queue, near->prev, task))
                return near;
            near = near->prev;
        }
        head = head->next;
    }
    return head;
}

void tw__redis_place_offer_again(struct tw__redis_queues *queues, struct tw__redis_task *task, uint64_t now_ms)
{
    struct tw__redis_queue *queue = tw__redis_queue_of(queues, task);
    struct tw__link *line = &queue->ready, *next = old_place(queue, task);
    uint64_t since_ms = now_ms;
    /* It has been ready for as long as the task behind it, at least. Otherwise a worker that takes and gives
     * back the first task again and again would hide how old the line is. */
    if (next != line && tw__redis_task_of_link(next)->parked.since_ms < now_ms)
        since_ms = tw__redis_task_of_link(next)->parked.since_ms;
    offer_before(queues, task, next, since_ms);
    queue->back = task;
}

void tw__redis_place_stop(struct tw__redis_queues *queues, struct tw__redis_task *task)
{
    struct tw__redis_queue *queue = tw__redis_queue_of(queues, task);
    TW_ASSERT(queue->paused);
    line_up(queues, task, &queue->stopped, queues->late_since_ms);
    tw__redis_check_changed(queues, tw__redis_check_places);
}

/* Merges one list of tasks into another one. Both are in the order of due times; of tasks with equal due times
 * those of `into` come first. Cost: O(1) if `into` ends before `from` begins, otherwise a look at all tasks. */
static void merge_into(struct tw__link *into, struct tw__link *from)
{
    if (tw__list_empty(from))
        return;
    if (tw__list_empty(into) || is_due_by(into->prev, from->next)) {
        tw__list_move_all(from, into);
        return;
    }
    struct tw__link *at = into->next;
    while (!tw__list_empty(from)) {
        struct tw__link *link = from->next;
        while (at != into && is_due_by(at, link))
            at = at->next;
        if (at == into) {
            tw__list_move_all(from, into);
            return;
        }
        tw__list_remove(link);
        tw__list_insert(link, at);
    }
}

void tw__redis_place_go_on(struct tw__redis_queue *queue)
{
    bring_back(queue->queues);
    merge_into(&queue->queues->late, &queue->stopped);
    tw__redis_check_changed(queue->queues, tw__redis_check_places);
}

/* The task at a link of a line of the queue, or NULL at the line's end. */
static struct tw__redis_task *task_at(const struct tw__link *line, struct tw__link *link)
{
    return link == line ? NULL : tw__redis_task_of_link(link);
}

struct tw__redis_task *tw__redis_place_first_ready(const struct tw__redis_queue *queue)
{
    return task_at(&queue->ready, queue->ready.next);
}

struct tw__redis_task *tw__redis_place_first_dead(const struct tw__redis_queue *queue)
{
    return task_at(&queue->dead, queue->dead.next);
}

struct tw__redis_task *tw__redis_place_next_dead(const struct tw__redis_queue *queue,
                                                 const struct tw__redis_task *task)
{
    TW_ASSERT(tw__redis_task_stage(task) == TW__TASK_BURIED);
    return task_at(&queue->dead, task->parked.link.next);
}

bool tw__redis_place_any_stale(const struct tw__redis_queues *queues, uint64_t died_ms)
{
    return !tw__list_empty(&queues->stale) || tw_wheel_next_bound(queues->deaths) <= died_ms;
}

struct tw__redis_queue *tw__redis_place_first_stale(struct tw__redis_queues *queues, uint64_t died_ms,
                                                    uint32_t *budget)
{
    struct tw_timer *timer;
    while (tw_wheel_poll_budget(queues->deaths, died_ms, budget, &timer) == TW_POLL_DUE) {
        struct tw__redis_queue *queue = TW_CONTAINER(timer, struct tw__redis_queue, death);
        if (!tw__link_listed(&queue->stale))
            tw__list_append(&queues->stale, &queue->stale);
    }
    tw__redis_check_changed(queues, tw__redis_check_places);
    if (tw__list_empty(&queues->stale))
        return NULL;
    return TW_CONTAINER(queues->stale.next, struct tw__redis_queue, stale);
}

void tw__redis_place_let_wait(struct tw__redis_queue *queue)
{
    tw__list_remove(&queue->stale);
    tw__list_append(&queue->queues->stale, &queue->stale);
}

void tw__redis_place_let_stay(struct tw__redis_queue *queue)
{
    tw__list_remove(&queue->stale);
    await_death(queue);
    tw__redis_check_changed(queue->queues, tw__redis_check_places);
}

/* ---- other times ----------------------------------------------------------------------------------------- */

/* Takes a task out of its route's line. */
static void let_go(struct tw__redis_queues *queues, struct tw__redis_task *task)
{
    struct tw__redis_route *route = tw__redis_route_of(queues, task);
    uint32_t tries = held_tries(queues, task);
    unpark(task);
    task->tries = tries & TW__REDIS_TRIES_MAX;
    tw__redis_sums_held(route->queue, -1);
    if (tw__list_empty(&route->line))
        rest(route);
}

struct tw__redis_wait tw__redis_place_let_go(struct tw__redis_queues *queues, struct tw__redis_task *task)
{
    const struct tw__redis_route *route = tw__redis_route_of(queues, task);
    struct tw__redis_wait wait = {
        .since_ms = task->parked.since_ms, .next_try_ms = route->next_try_ms, .wait_ms = route->wait_ms};
    TW_ASSERT(task->place == TW__REDIS_IN_HELD);
    if (tw_timer_pending(&route->retry))
        wait.retry_ms = tw_timer_deadline(&route->retry);
    tw__redis_place_unfile(queues, task);
    return wait;
}

void tw__redis_place_hold_on(struct tw__redis_queues *queues, struct tw__redis_task *task,
                             const struct tw__redis_wait *wait)
{
    struct tw__redis_route *route = tw__redis_route_of(queues, task);
    bool first = tw__list_empty(&route->line);
    hold(queues, task, &route->line, wait->since_ms);
    if (first) {
        route->next_try_ms = wait->next_try_ms;
        route->wait_ms = wait->wait_ms;
        if (wait->retry_ms > 0)
            assert_taken(tw_wheel_move_at(queues->retries, &route->retry, wait->retry_ms));
        else
            tw__redis_place_make_ready(route);
    }
    tw__redis_check_changed(queues, tw__redis_check_places);
}

static void leave_wheel(struct tw_wheel *wheel, struct tw__redis_task *task)
{
    tw_wheel_cancel(wheel, &task->timer);
    task->place = TW__REDIS_NOWHERE;
}

static void leave_ready(struct tw__redis_queue *queue, struct tw__redis_task *task)
{
    if (queue->back == task)
        queue->back = task_at(&queue->ready, task->parked.link.prev);
    unpark(task);
    tw__redis_sums_ready(queue, -1);
}

void tw__redis_place_unfile(struct tw__redis_queues *queues, struct tw__redis_task *task)
{
    if (queues->delivering == task)
        queues->delivering = NULL;
    switch ((enum tw__redis_place)task->place) {
    case TW__REDIS_NOWHERE:
        break;
    case TW__REDIS_IN_WHEEL:
        leave_wheel(queues->wheel, task);
        break;
    case TW__REDIS_IN_BEHIND:
        leave_wheel(queues->behind, task);
        break;
    case TW__REDIS_IN_LEASES:
        leave_wheel(queues->leases, task);
        tw__redis_task_set_due(task, wall_of(queues, tw__redis_task_due(task)));
        break;
    case TW__REDIS_IN_LINE:
        unpark(task);
        count_in_line(queues, task, -1);
        break;
    case TW__REDIS_IN_HELD:
        let_go(queues, task);
        break;
    case TW__REDIS_IN_READY:
        leave_ready(tw__redis_queue_of(queues, task), task);
        break;
    case TW__REDIS_IN_DEAD:
        unfile_dead(queues, task);
        break;
    }
    tw__redis_check_changed(queues, tw__redis_check_places);
}

void tw__redis_place_prefetch(const struct tw__redis_task *task)
{
    if (!tw__redis_task_in_line(task)) {
        tw__timer_prefetch(&task->timer);
        return;
    }
    __builtin_prefetch(task->parked.link.next, 1);
    __builtin_prefetch(task->parked.link.prev, 1);
}

void tw__redis_place_moved(struct tw__redis_queue *queue, const struct tw__redis_task *old,
                           struct tw__redis_task *task)
{
    if (queue->back == old)
        queue->back = task;
    if (tw__redis_task_in_line(task))
        tw__link_relocated(&task->parked.link);
    else
        tw_timer_relocated(&task->timer);
}

void tw__redis_place_refile(struct tw__redis_queues *queues, struct tw__redis_task *task, uint64_t due_ms,
                            uint64_t now_ms)
{
    due_ms = file_time(task, due_ms, now_ms);
    if (due_ms > now_ms && task->place == TW__REDIS_IN_LEASES) {
        assert_taken(tw_wheel_move_at(queues->leases, &task->timer, steady_end(queues, due_ms, now_ms)));
    } else { /* also from wheel to wheel: a move by the wheel has no certain place among equal times */
        tw__redis_place_unfile(queues, task);
        file_task(queues, task, due_ms, now_ms);
    }
    tw__redis_check_changed(queues, tw__redis_check_places);
}

/* ---- taking out ------------------------------------------------------------------------------------------ */

static enum tw__redis_taken take_from(struct tw_wheel *wheel, uint64_t now_ms, uint32_t *budget,
                                      struct tw__redis_task **task)
{
    struct tw_timer *timer;
    enum tw_poll polled = tw_wheel_poll_budget(wheel, now_ms, budget, &timer);
    if (polled != TW_POLL_DUE)
        return polled == TW_POLL_MORE ? TW__REDIS_TAKEN_MORE : TW__REDIS_TAKEN_NONE;
    *task = tw__redis_task_of_timer(timer);
    (*task)->place = TW__REDIS_NOWHERE;
    return TW__REDIS_TAKEN_TASK;
}

/* Frees the second wheel once the clock has caught up and this wheel is empty. */
static void drop_behind(struct tw__redis_queues *queues, uint64_t now_ms)
{
    if (now_ms < tw_wheel_now(queues->wheel) || tw_wheel_count(queues->behind) > 0)
        return;
    tw_wheel_free(queues->behind);
    queues->behind = NULL;
}

/* The answer of tw_wheel_next_bound() for the wheel of leases, by the wall clock. */
static uint64_t wall_of_bound(const struct tw__redis_queues *queues, uint64_t bound)
{
    return bound == TW_NEVER ? TW_NEVER : wall_of(queues, bound);
}

static enum tw__redis_taken take_lease(struct tw__redis_queues *queues, uint64_t until_ms, uint32_t *budget,
                                       struct tw__redis_task **task)
{
    enum tw__redis_taken taken = take_from(queues->leases, steady_of(queues, until_ms), budget, task);
    if (taken == TW__REDIS_TAKEN_TASK)
        tw__redis_task_set_due(*task, wall_of(queues, tw__redis_task_due(*task)));
    return taken;
}

/* Takes the first task of the main wheel or the wheel of leases. The wheel that has work next is polled up to
 * the next work of the other one, and has the turn until it has no due task left. So their tasks come in the
 * order of time. A task comes before a lease that ends at the same time. A lease that has ended stays so if the
 * clock was set back since. */
static enum tw__redis_taken take_in_order(struct tw__redis_queues *queues, uint64_t now_ms, uint32_t *budget,
                                          struct tw__redis_task **task)
{
    enum tw__redis_taken taken;
    for (;;) {
        uint64_t bound = tw_wheel_next_bound(queues->leases), lease = wall_of_bound(queues, bound);
        uint64_t due;
        if (bound <= tw_wheel_now(queues->leases))
            taken = take_lease(queues, lease, budget, task);
        else if (lease > now_ms)
            break;
        else if (lease < (due = tw_wheel_next_bound(queues->wheel)) && due > tw_wheel_now(queues->wheel))
            taken = take_lease(queues, due <= now_ms ? due - 1 : now_ms, budget, task);
        else
            taken = take_from(queues->wheel, lease, budget, task);
        if (taken != TW__REDIS_TAKEN_NONE)
            return taken;
    }
    /* No lease has ended. The wheel of leases follows the clock all the same, for steady_end(). */
    if (tw_wheel_now(queues->leases) < steady_of(queues, now_ms) &&
        (taken = take_lease(queues, now_ms, budget, task)) != TW__REDIS_TAKEN_NONE)
        return taken;
    return take_from(queues->wheel, now_ms, budget, task);
}

static enum tw__redis_taken take_filed(struct tw__redis_queues *queues, uint64_t now_ms, uint32_t *budget,
                                       struct tw__redis_task **task)
{
    if (queues->behind != NULL) {
        enum tw__redis_taken taken = take_from(queues->behind, now_ms, budget, task);
        if (taken != TW__REDIS_TAKEN_NONE)
            return taken;
        drop_behind(queues, now_ms);
    }
    return take_in_order(queues, now_ms, budget, task);
}

/* Whether a wheel takes a task for a time that is yet to come. */
static bool has_wheel(const struct tw__redis_queues *queues, uint64_t due_ms)
{
    return due_ms > tw_wheel_now(queues->wheel) ||
           (queues->behind != NULL && due_ms > tw_wheel_now(queues->behind));
}

/* The first task of a line that is due, or NULL. Tasks that are not due came due before the clock was set
 * back. They go back to a wheel. After a step of a few milliseconds no wheel takes them, and the line waits.
 * A lease that has ended stays so, whatever the clock shows. */
static struct tw__redis_task *first_due(struct tw__redis_queues *queues, const struct tw__link *line,
                                        uint64_t now_ms, uint32_t *budget)
{
    for (; !tw__list_empty(line) && *budget > 0; --*budget) {
        struct tw__redis_task *task = tw__redis_task_of_link(line->next);
        uint64_t due = tw__redis_task_due(task);
        if (due <= now_ms || tw__redis_task_is_leased(task))
            return task;
        if (!has_wheel(queues, due))
            return NULL;
        tw__redis_place_unfile(queues, task);
        file_task(queues, task, due, now_ms);
    }
    return NULL;
}

/* Takes the first task of the first route whose wait is over. */
static struct tw__redis_task *take_probe(struct tw__redis_queues *queues, uint32_t *budget)
{
    struct tw__redis_route *route = TW_CONTAINER(queues->ready.next, struct tw__redis_route, ready);
    struct tw__redis_task *task = tw__redis_task_of_link(route->line.next);
    queues->late_since_ms = task->parked.since_ms;
    let_go(queues, task);
    tw__redis_check_changed(queues, tw__redis_check_places);
    --*budget;
    return task;
}

/* Takes the task that is due first, from the lines and the wheels. For a past task the time of its filing
 * counts, not its due time. Otherwise a task that repeats every second and is a day late would be delivered
 * 86,400 times while all other tasks wait. */
static enum tw__redis_taken take_first(struct tw__redis_queues *queues, uint64_t now_ms, uint32_t *budget,
                                       struct tw__redis_task **task)
{
    struct tw__redis_task *late = first_due(queues, &queues->late, now_ms, budget),
                          *past = first_due(queues, &queues->past, now_ms, budget);
    if (*budget == 0)
        return TW__REDIS_TAKEN_MORE;
    if (late == NULL) {
        enum tw__redis_taken taken = take_filed(queues, now_ms, budget, task);
        if (past == NULL || taken == TW__REDIS_TAKEN_MORE)
            return taken;
        if (taken == TW__REDIS_TAKEN_TASK) {
            if (tw__redis_task_due(*task) <= past->parked.since_ms)
                return taken;
            line_up(queues, *task, queues->late.next, 0);
        }
    } else if (past == NULL || tw__redis_task_due(late) <= past->parked.since_ms) {
        past = late;
    }
    queues->late_since_ms = past->parked.since_ms;
    tw__redis_place_unfile(queues, past);
    *task = past;
    *budget -= *budget > 0; /* taking a task off the wheel above may have used it up */
    return TW__REDIS_TAKEN_TASK;
}

static enum tw__redis_taken take(struct tw__redis_queues *queues, uint64_t now_ms, enum tw__redis_source from,
                                 uint32_t *budget, struct tw__redis_task **task)
{
    enum tw__redis_taken taken = TW__REDIS_TAKEN_MORE;
    while (*budget > 0) {
        queues->late_since_ms = 0;
        if (from == TW__REDIS_FROM_ALL && !tw__list_empty(&queues->ready)) {
            *task = take_probe(queues, budget);
            taken = TW__REDIS_TAKEN_PROBE;
        } else {
            taken = from == TW__REDIS_FROM_WHEELS ? take_filed(queues, now_ms, budget, task)
                                                  : take_first(queues, now_ms, budget, task);
        }
        if (taken == TW__REDIS_TAKEN_NONE || taken == TW__REDIS_TAKEN_MORE ||
            tw__redis_queue_of(queues, *task)->attached)
            return taken;
        taken = TW__REDIS_TAKEN_MORE; /* of a removed queue: the reaper will find it */
    }
    return taken;
}

enum tw__redis_taken tw__redis_place_take(struct tw__redis_queues *queues, uint64_t now_ms,
                                          enum tw__redis_source from, uint32_t *budget,
                                          struct tw__redis_task **task)
{
    if (from == TW__REDIS_FROM_ALL)
        bring_back(queues);
    enum tw__redis_taken taken = take(queues, now_ms, from, budget, task);
    tw__redis_check_changed(queues, tw__redis_check_places);
    return taken;
}

bool tw__redis_place_collect(struct tw__redis_queues *queues, uint64_t now_ms, uint32_t budget)
{
    struct tw__redis_task *task;
    enum tw__redis_taken taken;
    while ((taken = tw__redis_place_take(queues, now_ms, TW__REDIS_FROM_WHEELS, &budget, &task)) ==
           TW__REDIS_TAKEN_TASK)
        tw__redis_place_file_late(queues, task);
    return taken == TW__REDIS_TAKEN_MORE;
}

uint64_t tw__redis_place_late_since(const struct tw__redis_queues *queues, const struct tw__redis_task *task)
{
    uint64_t due = tw__redis_task_due(task), since_ms = queues->late_since_ms;
    return since_ms > due && tw__redis_task_every(task) == 0 ? since_ms : due;
}

uint64_t tw__redis_place_next_work(const struct tw__redis_queues *queues)
{
    uint64_t next = tw_wheel_next_bound(queues->wheel),
             lease = wall_of_bound(queues, tw_wheel_next_bound(queues->leases));
    if (lease < next)
        next = lease;
    if (queues->behind != NULL && tw_wheel_next_bound(queues->behind) < next)
        next = tw_wheel_next_bound(queues->behind);
    return next;
}

/* ---- order ----------------------------------------------------------------------------------------------- */

/* Whether a task goes before another one, which was filed in the line before it. Of equal due times a lease is
 * the last one. A task that was given back goes by its number, which may be lower. */
static bool overtakes(const struct tw__redis_task *task, const struct tw__redis_task *other)
{
    uint64_t due = tw__redis_task_due(task), its = tw__redis_task_due(other);
    if (due != its)
        return due < its;
    if (tw__redis_task_is_leased(task) || tw__redis_task_is_leased(other))
        return !tw__redis_task_is_leased(task);
    return (int32_t)(task->order - other->order) < 0;
}

/* Merges two sorted lists that are linked by `next` alone. The tasks of the first list were filed first. */
static struct tw__link *merge(struct tw__link *a, struct tw__link *b)
{
    struct tw__link head, *tail = &head;
    while (a != NULL && b != NULL) {
        struct tw__link **least = overtakes(tw__redis_task_of_link(b), tw__redis_task_of_link(a)) ? &b : &a;
        tail->next = *least;
        tail = *least;
        *least = (*least)->next;
    }
    tail->next = a != NULL ? a : b;
    return head.next;
}

/* Sorts a line by due time. From now on the due times of its tasks count, not the times of their filing. */
static void sort(struct tw__link *line)
{
    /* Merge sort from the bottom: run[i] is a sorted list of 2^i tasks, or empty (Knuth, volume 3, 5.2.4). */
    struct tw__link *run[64] = {NULL};
    struct tw__link *link = line->next, *following;
    for (; link != line; link = following) {
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
    tw__list_init(line);
    for (; all != NULL; all = following) {
        following = all->next;
        tw__redis_task_of_link(all)->parked.since_ms = tw__redis_task_due(tw__redis_task_of_link(all));
        tw__list_append(line, all);
    }
}

void tw__redis_place_sort_late(struct tw__redis_queues *queues, uint64_t now_ms)
{
    bring_back(queues);
    while (tw__redis_place_collect(queues, now_ms, UINT32_MAX))
        ;
    tw__list_move_all(&queues->past, &queues->late);
    sort(&queues->late);
    tw__redis_check_changed(queues, tw__redis_check_places);
}

void tw__redis_place_sort_past(struct tw__redis_queues *queues)
{
    sort(&queues->past);
    tw__redis_check_changed(queues, tw__redis_check_places);
}

void tw__redis_place_begin_here(struct tw__redis_queues *queues)
{
    queues->here = queues->order;
}
