/* SPDX-License-Identifier: MIT
 *
 * A plain model of exact firing: a list of the pending timers, sorted by deadline and, for equal deadlines, by
 * filing order. A wheel is right if it fires the first timer of this list, on the tick of that timer.
 */
#ifndef COMMAND_MODEL_H
#define COMMAND_MODEL_H

#include <stdint.h>

struct model;

/* How often a wheel differed from the model. */
struct verdict {
    uint64_t early;        /* fired before its deadline, or without being pending at all */
    uint64_t late;         /* fired after its deadline */
    uint64_t unfired;      /* due, but never fired */
    uint64_t out_of_order; /* fired before another timer that should have fired first */
};

/* Makes a model for timers with the ids 0 to ids - 1. Returns: NULL if there is no memory. */
struct model *model_new(uint32_t ids);

/* Files a timer, or gives it a new deadline if it is pending. */
void model_file(struct model *model, uint32_t id, uint64_t now, uint64_t deadline);

void model_cancel(struct model *model, uint32_t id);

/* Checks that the wheel fired a timer rightly at a tick. */
void model_fired(struct model *model, uint32_t id, uint64_t tick);

/* Tells the model that the wheel has no more timer due at this tick. */
void model_settled(struct model *model, uint64_t tick);

/* Ends the run. Timers that are still pending count as unfired. Returns the verdict. */
struct verdict model_finish(struct model *model);

/* Frees it. `model` may be NULL. */
void model_free(struct model *model);

#endif
