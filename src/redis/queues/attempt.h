/* SPDX-License-Identifier: MIT
 *
 * The attempt state of a task: its lease, the number of its attempt, its lapses, its last error. A task gets
 * one when its first attempt begins, when it dies, or when it waits for another time than its due time, as
 * after a promotion. So a task that was just put takes no memory for one. Functions and members call it the
 * attempt.
 *
 *     waiting --due--> ready --TAKE--> leased --ACK--> gone, or waiting for its next period
 *        ^             ^   ^            |  |
 *        |             |   +--- BACK ---+  | NACK, or a lapse: the lease ran out
 *        |             +--due-- waiting for the next attempt
 *        +--REPLAY-- dead <-- the last failure, the last lapse
 *
 *     leased --PUT, SEND, MOVE--> replaced --any end of the attempt--> waiting, as a new task
 *
 * A replaced task is a new one, perhaps with a target, that stands behind an attempt under way. Of the old task
 * only that attempt is left: its token, its lease, its worker and its number.
 *
 * Ready is no part of it: a task is ready because its time has come, which each server sees by itself. So
 * nothing is replicated when a task becomes ready.
 */
#ifndef TW_REDIS_ATTEMPT_H
#define TW_REDIS_ATTEMPT_H

#include <stdbool.h>
#include <stdint.h>
#include <task/limits.h>
#include <task/task.h>

#include "bytes.h"

struct tw__redis_attempt {
    enum tw__task_stage stage; /* not NONE */
    bool renewed;              /* the lease ran out while nobody could have served it, and has begun anew */
    uint64_t due;      /* the task itself is filed for another time: the end of the lease, the next attempt */
    uint64_t token;    /* of the last lease, which may acknowledge the task; 0: there is none */
    uint32_t lease_ms; /* the length of the lease; 0: none is under way */
    uint32_t number;   /* attempts that have begun; REPLACED: of the old task */
    uint32_t lapses;   /* those of them whose lease ran out, at most TW__REDIS_LAPSES_LAST; REPLACED: 0 */
    bool has_next;     /* TAKEN: the task waited for `next` before it was taken, and not for `due` */
    uint64_t next;
    /* The call has begun, and stands for so many further periods; otherwise for none. The call of a task with a
     * target begins when the target refuses it. */
    bool has_missed_periods;
    uint64_t missed_periods;
    struct tw__redis_bytes worker, error; /* the worker that has or had the lease; the last error */
};

/* Attempts are counted no further: so many tries can fail or lapse. */
enum { TW__REDIS_BEGUN_MAX = TW__TASK_TRIES_MAX + TW__TASK_LAPSES_MAX };

/* The lapse with this number kills. */
enum { TW__REDIS_LAPSES_LAST = TW__TASK_LAPSES_MAX + 1 };

/* The bytes of an attempt state without its two strings, as they lie in a task; the stages that the first byte
 * tells: all but NONE. */
enum { TW__REDIS_ATTEMPT_SIZE = 22, TW__REDIS_STAGES = 4 };

/* The time for which a task was filed before its first attempt, or before the one that is under way. */
static inline uint64_t tw__redis_attempt_before(const struct tw__redis_attempt *attempt)
{
    return attempt->has_next ? attempt->next : attempt->due;
}

/* `next` as a number that is small if it is near `due`, and the reverse. */
static inline uint64_t tw__redis_attempt_away(const struct tw__redis_attempt *attempt)
{
    return attempt->next >= attempt->due ? (attempt->next - attempt->due) * 2
                                         : (attempt->due - attempt->next) * 2 - 1;
}
static inline uint64_t tw__redis_attempt_at(const struct tw__redis_attempt *attempt, uint64_t away)
{
    return away % 2 == 0 ? attempt->due + away / 2 : attempt->due - away / 2 - 1;
}

/* Whether a task with this `every` may have the attempt state: only one that repeats stands for further
 * periods. */
static inline bool tw__redis_attempt_suits(const struct tw__redis_attempt *attempt, uint64_t every)
{
    return every > 0 || !attempt->has_missed_periods || attempt->missed_periods == 0;
}

/* Makes an attempt that is under way one that has not begun, and makes the token void. */
void tw__redis_attempt_unbegin(struct tw__redis_attempt *attempt);

void tw__redis_attempt_pack(char *at, const struct tw__redis_attempt *attempt);
/* Reads an attempt state. Its strings, `next` and `missed_periods` are not set. */
struct tw__redis_attempt tw__redis_attempt_unpack(const char *at);
/* The stage alone. */
static inline enum tw__task_stage tw__redis_attempt_stage(const char *at)
{
    return (enum tw__task_stage)((uint8_t)*at % TW__REDIS_STAGES + TW__TASK_FILED);
}

/* Write an attempt state with its strings to a file or a replica, and read it again. Numbers out of range are a
 * fault of the reader. */
void tw__redis_attempt_put(struct tw__redis_buffer *buffer, const struct tw__redis_attempt *attempt,
                           const struct tw__redis_memory *memory);
struct tw__redis_attempt tw__redis_attempt_take(struct tw__redis_reader *reader);

#endif
