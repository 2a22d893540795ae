/* SPDX-License-Identifier: MIT */
#include "player.h"

#include "command.h"
#include "figures.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- the clock ------------------------------------------------------------------------------------------ */

static void poll_at(struct player *p, uint64_t tick)
{
    const struct observer *observer = p->observer;
    struct tw_timer *timer;
    while ((timer = tw_wheel_poll(p->wheel, tick)) != NULL) {
        struct object *object = TW_CONTAINER(timer, struct object, timer);
        object->firings++;
        p->fired++;
        if (observer != NULL)
            observer->fired(observer->arg, (uint32_t)(object - p->objects), tick);
    }
    if (observer != NULL)
        observer->polled(observer->arg, tick);
}

/* The next tick with work. It is always after now, so that a faulty wheel cannot hang the replay. */
static uint64_t next_work(const struct player *p)
{
    uint64_t bound = tw_wheel_next_bound(p->wheel), now = tw_wheel_now(p->wheel);
    return bound > now ? bound : now + 1;
}

static void pass_time(struct player *p, uint64_t tick)
{
    uint64_t work;
    while ((work = next_work(p)) < tick)
        poll_at(p, work);
    poll_at(p, tick);
}

/* ---- records -------------------------------------------------------------------------------------------- */

/* Adds or moves a timer. The trace's letter does not matter: a move of an idle timer is an add, and an add of
 * a pending timer is a move. */
static int apply_filing(struct player *p, const struct record *record, bool pending)
{
    struct tw_timer *timer = &p->objects[record->id].timer;
    int error = pending ? tw_wheel_move_at(p->wheel, timer, record->deadline)
                        : tw_wheel_add_at(p->wheel, timer, record->deadline);
    if (error != 0)
        return error;
    if (pending)
        p->moves++;
    else
        p->adds++;
    return 0;
}

static int apply(struct player *p, const struct record *record)
{
    struct tw_timer *timer = &p->objects[record->id].timer;
    bool pending = tw_timer_pending(timer);
    if (record->what == RECORD_CANCEL) {
        if (tw_wheel_cancel(p->wheel, timer))
            p->cancels++;
        else
            p->stale++;
    } else {
        int error = apply_filing(p, record, pending);
        if (error != 0)
            return error;
    }
    if (p->observer != NULL)
        p->observer->applied(p->observer->arg, record);
    return 0;
}

/* Plays the records up to and including a tick. */
static int play_records(struct player *p, uint64_t last)
{
    for (; p->next < p->trace->count && p->trace->records[p->next].tick <= last; p->next++) {
        const struct record *record = &p->trace->records[p->next];
        /* A timer filed on a tick cannot be due on the same tick, so one poll for each tick is enough. */
        if (record->tick != tw_wheel_now(p->wheel))
            pass_time(p, record->tick);
        int error = apply(p, record);
        if (error != 0)
            return error;
    }
    return 0;
}

int player_play_to(struct player *p, uint64_t tick)
{
    int error = play_records(p, tick);
    if (error == 0 && tick > tw_wheel_now(p->wheel))
        pass_time(p, tick);
    return error;
}

int player_play(struct player *p)
{
    int error = play_records(p, UINT64_MAX);
    /* A timer that has not fired at the end of time is lost. The report counts it as unfired. */
    while (error == 0 && tw_wheel_count(p->wheel) > 0 && tw_wheel_now(p->wheel) < UINT64_MAX)
        poll_at(p, next_work(p));
    return error;
}

/* ---- start and stop ------------------------------------------------------------------------------------- */

int player_rewind(struct player *p, const struct tw_geometry *geometry)
{
    /* A wheel that has lost timers leaves their objects marked as pending. */
    if (p->wheel != NULL && tw_wheel_count(p->wheel) > 0)
        memset(p->objects, 0, p->trace->ids * sizeof *p->objects);
    tw_wheel_free(p->wheel);
    p->wheel = NULL;
    p->next = 0;
    p->adds = p->moves = p->cancels = p->stale = p->fired = 0;
    return tw_wheel_new(&p->wheel, geometry, p->trace->first_tick);
}

int player_start(struct player *p, const struct trace *trace, const struct tw_geometry *geometry)
{
    memset(p, 0, sizeof *p);
    p->trace = trace;
    /* Zeroed memory is a timer that is not pending. */
    p->objects = calloc((size_t)trace->ids + 1, sizeof *p->objects);
    int error = p->objects == NULL ? TW_ENOMEM : player_rewind(p, geometry);
    if (error != 0)
        player_stop(p);
    return error;
}

void player_stop(struct player *p)
{
    tw_wheel_free(p->wheel);
    free(p->objects);
    p->wheel = NULL;
    p->objects = NULL;
}

void player_complain(const struct player *p, int error)
{
    const struct record *record = &p->trace->records[p->next];
    if (error != TW_ERANGE) {
        complain("%s:%" PRIu64 ": %s", p->trace->path, record->line, tw_strerror(error));
        return;
    }
    complain("%s:%" PRIu64 ": the wheel refuses the deadline %" PRIu64 " at tick %" PRIu64
             ", a delay of %s ticks; its range is %s ticks (try another --preset, or --overflow rounds)",
             p->trace->path, record->line, record->deadline, record->tick,
             figure_count(record->deadline - record->tick).text, figure_count(tw_wheel_range(p->wheel)).text);
}
