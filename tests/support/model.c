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

void model_cancel(struct model *model, struct object *object)
{
    RB_REMOVE(object_tree, &model->tree, object);
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

uint64_t model_earliest(struct model *model)
{
    struct object *first = RB_MIN(object_tree, &model->tree);
    return first == NULL ? TW_NEVER : first->deadline;
}

void model_relocate(struct model *model, struct object *from, struct object *to)
{
    RB_REMOVE(object_tree, &model->tree, from);
    *to = *from;
    memset(&from->timer, 0xA5, sizeof from->timer);
    tw_timer_relocated(&to->timer);
    RB_INSERT(object_tree, &model->tree, to);
    memset(from, 0, sizeof *from);
}

struct judge {
    uint64_t tick, visit, met;
    const char *wrong;
};

static int judge_visit(void *arg, const struct tw_timer *timer)
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

const char *model_visit_until(struct model *model, const struct tw_wheel *wheel, uint64_t tick)
{
    struct judge judge = {.tick = tick, .visit = ++model->visits};
    if (tw_wheel_visit_until(wheel, tick, judge_visit, &judge) != 0)
        return judge.wrong;
    struct object *object = RB_MIN(object_tree, &model->tree);
    for (; object != NULL && object->deadline <= tick; object = RB_NEXT(object_tree, &model->tree, object))
        judge.met--;
    return judge.met == 0 ? NULL : "a timer due by then was not visited";
}

/* Among equal deadlines: does a timer wait that was filed before this one, neither of them moved? */
static bool overtakes(struct model *model, struct object *object)
{
    struct object *other = RB_MIN(object_tree, &model->tree);
    for (; other != object; other = RB_NEXT(object_tree, &model->tree, other))
        if (!other->moved && !object->moved)
            return true;
    return false;
}

const char *model_fire(struct model *model, struct object *object)
{
    if (!object->pending)
        return "fired, but it is not pending";
    if (object->deadline > model->now)
        return "fired early";
    if (object->deadline != model_earliest(model))
        return "fired before an earlier deadline";
    if (overtakes(model, object))
        return "fired before an equal deadline that was filed first";
    if (tw_timer_deadline(&object->timer) != object->deadline)
        return "fired with another deadline than it was given";
    model_cancel(model, object);
    model->fired++;
    return NULL;
}

bool model_idle(struct model *model)
{
    uint64_t earliest = model_earliest(model);
    return earliest > model->now || earliest == UINT64_MAX;
}
