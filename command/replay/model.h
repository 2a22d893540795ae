/* SPDX-License-Identifier: MIT
 *
 * What exact firing means, in the plainest way there is: a list of the pending timers sorted by deadline and,
 * among equals, by filing. A wheel is right when it fires what stands first in this list, on its tick.
 */
#ifndef COMMAND_MODEL_H
#define COMMAND_MODEL_H

#include <stdint.h>

struct model;

/* Where a wheel and the model differed. */
struct verdict {
    uint64_t early;        /* fired before its deadline, or without being pending at all */
    uint64_t late;         /* fired after its deadline */
    uint64_t missed;       /* due, but never fired */
    uint64_t out_of_order; /* fired although another timer was to fire before it */
};

/* A model for timers of ids 0 to ids - 1. Returns: NULL when there is no memory. */
struct model *model_new(uint32_t ids);

/* Files a timer, or gives it a new deadline if it is pending. */
void model_file(struct model *model, uint32_t id, uint64_t now, uint64_t deadline);

void model_cancel(struct model *model, uint32_t id);

/* Judges a firing of the wheel at a tick. */
void model_fired(struct model *model, uint32_t id, uint64_t tick);

/* The wheel says that nothing more is due at this tick. */
void model_settled(struct model *model, uint64_t tick);

/* The run is over: whatever is still pending was missed. */
struct verdict model_finish(struct model *model);

/* Frees it. `model` may be NULL. */
void model_free(struct model *model);

#endif
