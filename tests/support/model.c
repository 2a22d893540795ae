/* SPDX-License-Identifier: MIT */
#include "model.h"

#include <string.h>

static int compare(const struct object *a, const struct object *b)
{
    if (a->deadline != b->deadline)
        return a->deadline < b->deadline ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

RB_PROTOTYPE(object_tree, object, entry, compare)
RB_GENERATE(object_tree, object, entry, compare)

void model_init(struct model *model, uint64_t now)
{
    *model = (struct model){.now = now};
    RB_INIT(&model->tree);
    TAILQ_INIT(&model->soon);
    TAILQ_INIT(&model->held);
}

uint64_t model_effective(const struct model *model, uint64_t deadline)
{
    if (deadline > model->now)
        return deadline;
    return model->now == UINT64_MAX ? UINT64_MAX : model->now + 1;
}

void model_add(struct model *model, struct object *object, uint64_t deadline)
{
    object->deadline = model_effective(model, deadline);
    object->order = model->filed++;
    object->pending = true;
    object->moved = false;
    RB_INSERT(object_tree, &model->tree, object);
    model->count++;
}

void model_add_now(struct model *model, struct object *object)
{
    object->deadline = model->now;
    object->queue = model->in_drain ? &model->held : &model->soon;
    object->pending = true;
    object->moved = false;
    TAILQ_INSERT_TAIL(object->queue, object, turn);
    model->count++;
}

void model_cancel(struct model *model, struct object *object)
{
    if (object->queue != NULL)
        TAILQ_REMOVE(object->queue, object, turn);
    else
        RB_REMOVE(object_tree, &model->tree, object);
    object->queue = NULL;
    object->pending = false;
    model->count--;
}

void model_move(struct model *model, struct object *object, uint64_t deadline)
{
    bool pending = object->pending, moved = pending && object->moved;
    uint64_t before = object->deadline;
    if (pending && model_effective(model, deadline) == before)
        return;
    if (pending)
        model_cancel(model, object);
    model_add(model, object, deadline);
    object->moved = pending || moved;
}

void model_pass(struct model *model, uint64_t now)
{
    if (now > model->now)
        model->now = now;
}

struct object *model_first(struct model *model)
{
    return RB_MIN(object_tree, &model->tree);
}

static uint64_t deadline_of(const struct object *object)
{
    return object == NULL ? TW_NEVER : object->deadline;
}

/* The earliest deadline of the objects that were not filed for now. */
static uint64_t earliest_in_tree(struct model *model)
{
    return deadline_of(model_first(model));
}

uint64_t model_earliest(struct model *model)
{
    uint64_t tree = earliest_in_tree(model), soon = deadline_of(TAILQ_FIRST(&model->soon)),
             held = deadline_of(TAILQ_FIRST(&model->held)), now = soon < held ? soon : held;
    return now < tree ? now : tree;
}

void model_relocate(struct model *model, struct object *from, struct object *to)
{
    struct object_queue *queue = from->queue;
    *to = *from;
    if (queue == NULL) {
        RB_REMOVE(object_tree, &model->tree, from);
        RB_INSERT(object_tree, &model->tree, to);
    } else {
        TAILQ_INSERT_BEFORE(from, to, turn);
        TAILQ_REMOVE(queue, from, turn);
    }
    memset(from, 0xA5, sizeof *from);
    tw_timer_relocated(&to->timer);
    memset(from, 0, sizeof *from);
}

struct judge {
    uint64_t tick, visit, met;
    const char *wrong;
};

static int judge_visit(void *arg, struct tw_timer *timer)
{
    struct judge *judge = arg;
    struct object *object = TW_CONTAINER(timer, struct object, timer);
    if (!object->pending)
        judge->wrong = "visited, but it is not pending";
    else if (object->deadline > judge->tick)
        judge->wrong = "visited, but its deadline is later";
    else if (object->visit == judge->visit)
        judge->wrong = "visited twice";
    object->visit = judge->visit;
    judge->met++;
    return judge->wrong != NULL;
}

static uint64_t due_in(const struct object_queue *queue, uint64_t tick)
{
    uint64_t due = 0;
    const struct object *object;
    TAILQ_FOREACH(object, queue, turn)
    due += object->deadline <= tick;
    return due;
}

const char *model_visit_until(struct model *model, const struct tw_wheel *wheel, uint64_t tick)
{
    struct judge judge = {.tick = tick, .visit = ++model->visits};
    if (tw_wheel_visit_until(wheel, tick, judge_visit, &judge) != 0)
        return judge.wrong;
    struct object *object = RB_MIN(object_tree, &model->tree);
    for (; object != NULL && object->deadline <= tick; object = RB_NEXT(object_tree, &model->tree, object))
        judge.met--;
    judge.met -= due_in(&model->soon, tick) + due_in(&model->held, tick);
    return judge.met == 0 ? NULL : "a timer due by then was not visited";
}

/* Whether a timer with the same deadline still waits that was filed before this timer, neither of them
 * moved. */
static bool overtakes(struct model *model, struct object *object)
{
    struct object *other = RB_MIN(object_tree, &model->tree);
    for (; other != object; other = RB_NEXT(object_tree, &model->tree, other))
        if (!other->moved && !object->moved)
            return true;
    return false;
}

/* Judges the firing of an object that was filed for now: it must be the first of these objects, and no other
 * object may be due. At the end of time an object that was filed on the last tick waits for ever, and does
 * not count. */
static const char *judge_now(struct model *model, struct object *object)
{
    uint64_t earliest = earliest_in_tree(model);
    if (earliest <= model->now && earliest != UINT64_MAX)
        return "filed for now, and fired before all that is due";
    return object == TAILQ_FIRST(&model->soon) ? NULL : "filed for now, and fired out of its turn";
}

static const char *judge_order(struct model *model, struct object *object)
{
    if (object->deadline != earliest_in_tree(model))
        return "fired before an earlier deadline";
    return overtakes(model, object) ? "fired before an equal deadline that was filed first" : NULL;
}

const char *model_fire(struct model *model, struct object *object)
{
    if (!object->pending)
        return "fired, but it is not pending";
    if (object->deadline > model->now)
        return "fired early";
    if (tw_timer_deadline(&object->timer) != object->deadline)
        return "fired with another deadline than it was given";
    const char *wrong = object->queue != NULL ? judge_now(model, object) : judge_order(model, object);
    model_cancel(model, object);
    model->in_drain = true;
    model->fired++;
    return wrong;
}

void model_more(struct model *model)
{
    model->in_drain = true;
}

bool model_idle(struct model *model)
{
    uint64_t earliest = earliest_in_tree(model);
    bool idle = (earliest > model->now || earliest == UINT64_MAX) && TAILQ_EMPTY(&model->soon);
    model->in_drain = false;
    struct object *object;
    TAILQ_FOREACH(object, &model->held, turn)
    object->queue = &model->soon;
    TAILQ_CONCAT(&model->soon, &model->held, turn);
    return idle;
}
