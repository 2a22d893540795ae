/* SPDX-License-Identifier: MIT
 *
 * The life of a task that workers have begun, or that is dead: its lease, its attempts, its last error. A task
 * has no life until then, so a task that waits or is ready for the first time takes no memory for one.
 *
 *     waiting --due--> ready --TAKE--> leased --ACK--> gone, or waiting for its next period
 *        ^             ^   ^            |  |
 *        |             |   +--- BACK ---+  | NACK, or a lapse: the lease ran out
 *        |             +--due-- waiting for the next attempt
 *        +--REPLAY-- dead <-- the last failure, the 17th lapse
 *
 *     leased --PUT, SEND, MOVE--> replaced --any end of the attempt--> waiting, as a new task
 *
 * A replaced task is a new one, perhaps with a target, that stands behind an attempt under way. Of the old task
 * only that attempt is left: its token, its lease, its worker and its number.
 *
 * Ready is no part of a life: a task is ready because its time has come, which each server sees by itself. So
 * nothing is replicated when a task becomes ready.
 */
#ifndef TW_REDIS_LIFE_H
#define TW_REDIS_LIFE_H

#include <stdbool.h>
#include <stdint.h>
#include <task/limits.h>

#include "bytes.h"

enum tw__redis_stage {
    TW__REDIS_WAITING, /* for its due time or its next attempt; or ready */
    TW__REDIS_LEASED,
    TW__REDIS_DEAD,
    TW__REDIS_REPLACED /* leased, and the task is a newer one, which waits for the end of the lease */
};

struct tw__redis_life {
    enum tw__redis_stage stage;
    bool renewed;      /* the lease ran out while nobody could have served it, and has begun anew */
    uint64_t due;      /* the task itself is filed for another time: the end of the lease, the next attempt */
    uint64_t token;    /* of the last lease, which may acknowledge the task; 0: there is none */
    uint32_t lease_ms; /* the length of the lease */
    uint32_t attempt;  /* attempts that have begun; REPLACED: of the old task */
    uint32_t lapses;   /* those of them whose lease ran out, at most TW__REDIS_LAPSES_LAST; REPLACED: 0 */
    bool has_next;     /* LEASED: the task waited for `next` before it was taken, and not for `due` */
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

/* The bytes of a life without its two strings, as they lie in a task; the stages that the first byte tells. */
enum { TW__REDIS_LIFE_SIZE = 1 + 2 * sizeof(uint64_t) + 2 * sizeof(uint32_t), TW__REDIS_STAGES = 4 };

/* Whether an attempt is under way. */
static inline bool tw__redis_stage_is_leased(enum tw__redis_stage stage)
{
    return stage == TW__REDIS_LEASED || stage == TW__REDIS_REPLACED;
}

/* The time for which a task was filed before its life began, or its attempt that is under way. */
static inline uint64_t tw__redis_life_before(const struct tw__redis_life *life)
{
    return life->has_next ? life->next : life->due;
}

/* `next` as a number that is small if it is near `due`, and the reverse. */
static inline uint64_t tw__redis_life_away(const struct tw__redis_life *life)
{
    return life->next >= life->due ? (life->next - life->due) * 2 : (life->due - life->next) * 2 - 1;
}
static inline uint64_t tw__redis_life_at(const struct tw__redis_life *life, uint64_t away)
{
    return away % 2 == 0 ? life->due + away / 2 : life->due - away / 2 - 1;
}

/* Whether a task with this `every` may have the life: only one that repeats stands for further periods. */
static inline bool tw__redis_life_suits(const struct tw__redis_life *life, uint64_t every)
{
    return every > 0 || !life->has_missed_periods || life->missed_periods == 0;
}

/* Lets an attempt that is under way not have begun, and makes the token void. */
void tw__redis_life_unbegin(struct tw__redis_life *life);

void tw__redis_life_pack(char *at, const struct tw__redis_life *life);
/* Reads a life. Its strings, `next` and `missed_periods` are not set. */
struct tw__redis_life tw__redis_life_unpack(const char *at);
/* The stage alone. */
static inline enum tw__redis_stage tw__redis_life_stage(const char *at)
{
    return (enum tw__redis_stage)((uint8_t)*at % TW__REDIS_STAGES);
}

/* Write a life with its strings to a file or a replica, and read it again. Numbers out of range are a fault of
 * the reader. */
void tw__redis_life_put(struct tw__redis_buffer *buffer, const struct tw__redis_life *life,
                        const struct tw__redis_memory *memory);
struct tw__redis_life tw__redis_life_take(struct tw__redis_reader *reader);

#endif
