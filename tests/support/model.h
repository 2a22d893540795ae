/* SPDX-License-Identifier: MIT
 *
 * The reference model that the wheel is compared with: a sorted list of deadlines, kept in a red-black tree
 * of libbsd.
 *
 * The model knows the contract and nothing of wheels. The test tells it of each object that is filed, moved
 * or cancelled, and it judges each firing:
 *   - The deadline must be the earliest of all, and not after now.
 *   - Among equal deadlines no timer filed before it may still wait, unless one of the two was moved while
 *     pending: the place of a moved timer among equals is not promised.
 * Objects that are filed for now are in two queues. The objects in `soon` fire when no other object is due;
 * the objects in `held` were filed inside the drain.
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
    struct object_queue *queue; /* the queue of an object that was filed for now; NULL: it is in the tree */
    uint64_t deadline;          /* the effective deadline: model_effective() */
    uint64_t order;             /* the number of its filing */
    uint64_t visit;             /* the number of the last visit that met the object */
    bool pending, moved;
};

RB_HEAD(object_tree, object);
TAILQ_HEAD(object_queue, object);

struct model {
    struct object_tree tree;
    struct object_queue soon, held;
    bool in_drain; /* the latest poll returned an object, or TW_POLL_MORE */
    uint64_t now, filed, count, fired, visits;
};

void model_init(struct model *model, uint64_t now);
/* The deadline that an object gets when it is filed: never before the next tick. */
uint64_t model_effective(const struct model *model, uint64_t deadline);
void model_add(struct model *model, struct object *object, uint64_t deadline);
void model_add_now(struct model *model, struct object *object);
void model_move(struct model *model, struct object *object, uint64_t deadline);
void model_cancel(struct model *model, struct object *object);
/* Moves the model's time to `now`. A clock that goes back is held. */
void model_pass(struct model *model, uint64_t now);
/* The object with the earliest deadline, of the objects that were not filed for now; NULL: no such object. */
struct object *model_first(struct model *model);
/* The earliest deadline; TW_NEVER when no object is pending. */
uint64_t model_earliest(struct model *model);
/* Copies a pending object over an object that is not, spoils the old place, and calls
 * tw_timer_relocated(). */
void model_relocate(struct model *model, struct object *from, struct object *to);
/* Judges tw_wheel_visit_until(): it meets each timer that is due by `tick` once, and no other timer. Returns
 * NULL, or the mistake. */
const char *model_visit_until(struct model *model, const struct tw_wheel *wheel, uint64_t tick);
/* Judges a firing and takes the object out. Returns NULL, or the mistake. */
const char *model_fire(struct model *model, struct object *object);
/* Notes that a poll returned TW_POLL_MORE. */
void model_more(struct model *model);
/* Notes that a poll said that no timer is due. Returns whether the model agrees. Timers that were filed on
 * the last tick of all are exempt. */
bool model_idle(struct model *model);

#endif
