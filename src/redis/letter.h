/* SPDX-License-Identifier: MIT
 *
 * Dead letters: tasks whose target refused them for good.
 */
#ifndef TW_REDIS_LETTER_H
#define TW_REDIS_LETTER_H

#include "call.h"

/* Returns whether no Stream will ever take the task. A List takes it. */
bool tw__redis_letter_is_too_big(const struct tw__redis_delivery *delivery);

/* Writes the error to `error` with which the server would refuse such a task. */
void tw__redis_letter_too_big_error(struct tw__redis_delivery *delivery);

/* How much of a task its dead letter holds. A letter is an entry of a Stream too, so its size is limited. */
enum tw__redis_letter {
    TW__REDIS_LETTER_WHOLE,
    TW__REDIS_LETTER_OF_SIZES, /* each value is replaced by its size */
    TW__REDIS_LETTER_NONE      /* even that would be too big */
};

/* Returns how much its letter can hold of a task that was refused with `error`. */
enum tw__redis_letter tw__redis_letter_of(const struct tw__redis_delivery *delivery);

/* Adds the letter, with `error` in it, to the dead-letter stream of the schedule. Afterwards `why` and
 * `error` hold the server's reply to that. */
enum tw__redis_meanwhile tw__redis_letter_send(struct tw__redis_delivery *delivery,
                                               enum tw__redis_letter letter);

/* Logs that the task is dropped without a letter. */
void tw__redis_letter_log_none(const struct tw__redis_delivery *delivery);

#endif
