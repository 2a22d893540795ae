/* SPDX-License-Identifier: MIT
 *
 * The reference that the wheel is compared with: a sorted list of deadlines, kept in a library's red-black
 * tree.
 *
 * The model knows the contract and nothing of wheels. It is told what was filed, moved and cancelled, and
 * judges each firing: it must be the earliest deadline of all, not after now, and among equal deadlines no
 * timer filed before it may still wait, unless one of the two was moved while pending (its turn among equals is
 * not promised). Objects that are filed for now are in two queues: `soon` fires when no other object is due,
 * `held` was filed inside the drain.
 */
#ifndef TW_TESTS_MODEL_H
#define TW_TESTS_MODEL_H

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>
#include <tickwheel/wheel.h>

struct object {
    struct tw_timer timer;
    RB_ENTRY(object) entry;
    TAILQ_ENTRY(object) turn;
    struct object_queue *queue; /* the one it is in: it was filed for now; NULL: it is in the tree */
    uint64_t deadline;          /* the effective one */
    uint64_t order;             /* the number of its filing */
    uint64_t visit;             /* the number of the visit that met it last */
    bool pending, moved;
};

RB_HEAD(object_tree, object);
TAILQ_HEAD(object_queue, object);

struct model {
    struct object_tree tree;
    struct object_queue soon, held;
    bool in_drain; /* the latest poll handed out an object, or wanted to be called again */
    uint64_t now, filed, count, fired, visits;
};

void model_init(struct model *model, uint64_t now);
/* The deadline that counts: never before the next tick. */
uint64_t model_effective(const struct model *model, uint64_t deadline);
void model_add(struct model *model, struct object *object, uint64_t deadline);
void model_add_now(struct model *model, struct object *object);
void model_move(struct model *model, struct object *object, uint64_t deadline);
void model_cancel(struct model *model, struct object *object);
/* Time passes; a clock that goes back is held. */
void model_pass(struct model *model, uint64_t now);
/* The object with the earliest deadline among the objects that were not filed for now; NULL without one. */
struct object *model_first(struct model *model);
/* The earliest deadline, TW_NEVER without one. */
uint64_t model_earliest(struct model *model);
/* Copies a pending object over one that is not, spoils the old place, and tells the wheel. */
void model_relocate(struct model *model, struct object *from, struct object *to);
/* Judges tw_wheel_visit_until(): each timer due by then is met once, and no other. Returns NULL, or what is
 * wrong. */
const char *model_visit_until(struct model *model, const struct tw_wheel *wheel, uint64_t tick);
/* Judges a firing and takes the object out. Returns NULL, or the mistake. */
const char *model_fire(struct model *model, struct object *object);
/* A poll wanted to be called again. */
void model_more(struct model *model);
/* A poll said that nothing more is due. Returns whether that is so; the last tick of all is exempt for timers
 * filed on it. */
bool model_idle(struct model *model);

#endif
