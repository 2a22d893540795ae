/* SPDX-License-Identifier: MIT
 *
 * The bytes of a life.
 *
 *     in a task:  first byte 1 | due 8 | token 8 | lease_ms 4 | attempt 4, whose two highest bits tell has_next
 *                 and has_missed_periods
 *     elsewhere:  the first number, the same as varints, worker and error, each with its size, `next` if any,
 *                 `missed_periods` if any
 *     first byte: the stage, plus 4 if the lease was renewed, plus 8 for each lapse
 *     number:     the first byte, plus 256 if there is `next`, plus 512 if there is `missed_periods`
 *
 * `next` is a number of its own only if it is not `due`: before the take the task was a retry, was given back
 * until a time, or was made ready. It is written by its distance to `due` (life.h).
 */
#include "life.h"

#include <string.h>

enum {
    RENEWED = TW__REDIS_STAGES,
    LAPSE = 2 * RENEWED,
    WITH_NEXT = UINT8_MAX + 1,
    WITH_MISSED_PERIODS = 2 * WITH_NEXT
};
static const uint32_t HAS_NEXT = UINT32_C(1) << 31, HAS_MISSED_PERIODS = UINT32_C(1) << 30;
_Static_assert(LAPSE *(TW__REDIS_LAPSES_LAST + 1) <= UINT8_MAX, "the lapses fit in the first byte");
_Static_assert(TW__REDIS_BEGUN_MAX < UINT32_C(1) << 30, "the attempts fit below the two bits");

void tw__redis_life_unbegin(struct tw__redis_life *life)
{
    if (life->stage == TW__REDIS_REPLACED)
        life->attempt = 0; /* it was that of an older task */
    life->attempt -= life->stage == TW__REDIS_LEASED && life->attempt > 0;
    /* The next take counts them anew, but a call that a target has refused goes on. */
    life->has_missed_periods &= life->attempt > 0 || life->stage == TW__REDIS_WAITING;
    life->stage = TW__REDIS_WAITING;
    life->has_next = false;
    life->token = 0;
    life->worker.size = 0;
}

/* The first byte of a life. */
static unsigned pack_first(const struct tw__redis_life *life)
{
    return (unsigned)life->stage + (life->renewed ? RENEWED : 0) + LAPSE * life->lapses;
}

static void set_first(struct tw__redis_life *life, unsigned first)
{
    life->stage = (enum tw__redis_stage)(first % TW__REDIS_STAGES);
    life->renewed = (first & RENEWED) != 0;
    life->lapses = first / LAPSE;
}

void tw__redis_life_pack(char *at, const struct tw__redis_life *life)
{
    uint32_t attempt =
        life->attempt | (life->has_next ? HAS_NEXT : 0) | (life->has_missed_periods ? HAS_MISSED_PERIODS : 0);
    *at++ = (char)pack_first(life);
    memcpy(at, &life->due, sizeof life->due);
    at += sizeof life->due;
    memcpy(at, &life->token, sizeof life->token);
    at += sizeof life->token;
    memcpy(at, &life->lease_ms, sizeof life->lease_ms);
    at += sizeof life->lease_ms;
    memcpy(at, &attempt, sizeof attempt);
}

struct tw__redis_life tw__redis_life_unpack(const char *at)
{
    struct tw__redis_life life = {0};
    set_first(&life, (uint8_t)*at++);
    memcpy(&life.due, at, sizeof life.due);
    at += sizeof life.due;
    memcpy(&life.token, at, sizeof life.token);
    at += sizeof life.token;
    memcpy(&life.lease_ms, at, sizeof life.lease_ms);
    at += sizeof life.lease_ms;
    memcpy(&life.attempt, at, sizeof life.attempt);
    life.has_next = (life.attempt & HAS_NEXT) != 0;
    life.has_missed_periods = (life.attempt & HAS_MISSED_PERIODS) != 0;
    life.attempt &= ~(HAS_NEXT | HAS_MISSED_PERIODS);
    return life;
}

void tw__redis_life_put(struct tw__redis_buffer *buffer, const struct tw__redis_life *life,
                        const struct tw__redis_memory *memory)
{
    unsigned with = (life->has_next ? WITH_NEXT : 0) + (life->has_missed_periods ? WITH_MISSED_PERIODS : 0);
    tw__redis_buffer_put_number(buffer, pack_first(life) + with, memory);
    tw__redis_buffer_put_number(buffer, life->due, memory);
    tw__redis_buffer_put_number(buffer, life->token, memory);
    tw__redis_buffer_put_number(buffer, life->lease_ms, memory);
    tw__redis_buffer_put_number(buffer, life->attempt, memory);
    tw__redis_buffer_put_bytes(buffer, life->worker, memory);
    tw__redis_buffer_put_bytes(buffer, life->error, memory);
    if (life->has_next)
        tw__redis_buffer_put_number(buffer, tw__redis_life_away(life), memory);
    if (life->has_missed_periods)
        tw__redis_buffer_put_number(buffer, life->missed_periods, memory);
}

/* Reads `next`. It is another time than `due`, and an attempt of the task itself is under way. */
static void take_before(struct tw__redis_reader *reader, struct tw__redis_life *life)
{
    uint64_t away = tw__redis_reader_number(reader, UINT64_MAX);
    life->next = tw__redis_life_at(life, away);
    if (life->stage != TW__REDIS_LEASED || life->next == life->due || life->next > TW__TASK_TIME_MAX)
        reader->at = NULL;
}

/* Reads `missed_periods`. A dead task has no call, and a newer one behind an attempt has none yet. */
static void take_missed_periods(struct tw__redis_reader *reader, struct tw__redis_life *life)
{
    life->missed_periods = tw__redis_reader_number(reader, INT64_MAX);
    if (life->stage == TW__REDIS_DEAD || life->stage == TW__REDIS_REPLACED)
        reader->at = NULL;
}

/* Whether so many attempts may have lapsed, and whether the one under way has a token, without which nobody
 * could end it. That attempt has not lapsed, and a new task behind it has no lapses. */
static bool attempts_fit(const struct tw__redis_life *life)
{
    uint32_t most = life->stage == TW__REDIS_DEAD ? TW__REDIS_LAPSES_LAST : TW__REDIS_LAPSES_LAST - 1;
    bool leased = tw__redis_stage_is_leased(life->stage);
    if (life->lapses > (life->stage == TW__REDIS_REPLACED ? 0 : most) || (leased && life->token == 0))
        return false;
    return life->attempt >= life->lapses + leased;
}

struct tw__redis_life tw__redis_life_take(struct tw__redis_reader *reader)
{
    struct tw__redis_life life = {0};
    uint64_t most = TW__REDIS_STAGES - 1 + RENEWED + LAPSE * TW__REDIS_LAPSES_LAST + WITH_NEXT +
                    WITH_MISSED_PERIODS,
             first = tw__redis_reader_number(reader, most);
    set_first(&life, (unsigned)first % WITH_NEXT);
    life.has_next = (first & WITH_NEXT) != 0;
    life.has_missed_periods = (first & WITH_MISSED_PERIODS) != 0;
    life.due = tw__redis_reader_named(reader, "due", TW__TASK_TIME_MAX);
    life.token = tw__redis_reader_number(reader, UINT64_MAX);
    life.lease_ms = (uint32_t)tw__redis_reader_number(reader, UINT32_MAX);
    life.attempt = (uint32_t)tw__redis_reader_named(reader, "attempt", TW__REDIS_BEGUN_MAX);
    if (!attempts_fit(&life))
        reader->at = NULL;
    life.worker = tw__redis_reader_bytes(reader);
    life.error = tw__redis_reader_bytes(reader);
    if (life.has_next)
        take_before(reader, &life);
    if (life.has_missed_periods)
        take_missed_periods(reader, &life);
    return life;
}
