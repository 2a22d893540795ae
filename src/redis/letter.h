/* SPDX-License-Identifier: MIT
 *
 * Dead letters: tasks whose target refused them for good.
 */
#ifndef TW_REDIS_LETTER_H
#define TW_REDIS_LETTER_H

#include "call.h"

/* Whether no Stream will ever take the task. A List takes it. */
bool tw__redis_letter_is_too_big(const struct tw__redis_delivery *delivery);

/* Writes to `error` what the server would say to such a task. */
void tw__redis_letter_too_big_error(struct tw__redis_delivery *delivery);

/* How much of a task its dead letter holds. A letter is a Stream's entry too. */
enum tw__redis_letter {
    TW__REDIS_LETTER_WHOLE,
    TW__REDIS_LETTER_OF_SIZES, /* each value's size stands in the place of the value */
    TW__REDIS_LETTER_NONE      /* even that would be too big */
};

/* What the letter of a task can hold that was refused with `error`. */
enum tw__redis_letter tw__redis_letter_of(const struct tw__redis_delivery *delivery);

/* Adds the letter to the dead letters of the schedule: `error` becomes a part of it, and then `why` and `error`
 * have the answer to that. */
enum tw__redis_meanwhile tw__redis_letter_send(struct tw__redis_delivery *delivery,
                                               enum tw__redis_letter letter);

/* Logs that there is no letter. */
void tw__redis_letter_log_none(const struct tw__redis_delivery *delivery);

#endif
