/* SPDX-License-Identifier: MIT
 *
 * The bytes of an attempt state.
 *
 *     in a task:  first byte 1 | due 6 | token 8 | lease_ms 4 | number 3, whose two highest bits tell has_next
 *                 and has_missed_periods; the lowest byte of a number comes first
 *     elsewhere:  the first number, the same as varints, worker and error, each with its size, `next` if any,
 *                 `missed_periods` if any
 *     first byte: the stage, from FILED on, plus 4 if the lease was renewed, plus 8 for each lapse
 *     first number: the first byte, plus 256 if there is `next`, plus 512 if there is `missed_periods`
 *
 * `next` is a number of its own only if it is not `due`: before the take the task was a retry, was given back
 * until a time, or was made ready. It is written by its distance to `due` (attempt.h).
 */
#include "attempt.h"

#include <base/assert.h>
#include <endian.h>
#include <string.h>

enum {
    RENEWED = TW__REDIS_STAGES,
    LAPSE = 2 * RENEWED,
    WITH_NEXT = UINT8_MAX + 1,
    WITH_MISSED_PERIODS = 2 * WITH_NEXT
};
enum { DUE_SIZE = 6, TOKEN_SIZE = 8, LEASE_SIZE = 4, NUMBER_SIZE = 3 };
static const uint32_t HAS_NEXT = UINT32_C(1) << 23, HAS_MISSED_PERIODS = UINT32_C(1) << 22;
_Static_assert(1 + DUE_SIZE + TOKEN_SIZE + LEASE_SIZE + NUMBER_SIZE == TW__REDIS_ATTEMPT_SIZE,
               "no byte is left");
_Static_assert(TW__TASK_TIME_MAX >> 8 * DUE_SIZE == 0, "each due time fits");
_Static_assert(LAPSE *(TW__REDIS_LAPSES_LAST + 1) <= UINT8_MAX, "the lapses fit in the first byte");
_Static_assert(TW__REDIS_BEGUN_MAX < UINT32_C(1) << 22, "the attempts fit below the two bits");

void tw__redis_attempt_unbegin(struct tw__redis_attempt *attempt)
{
    if (attempt->stage == TW__TASK_REPLACED)
        attempt->number = 0; /* it was that of an older task */
    attempt->number -= attempt->stage == TW__TASK_TAKEN && attempt->number > 0;
    /* The next take counts them anew, but a call that a target has refused goes on. */
    attempt->has_missed_periods &= attempt->number > 0 || attempt->stage == TW__TASK_FILED;
    attempt->stage = TW__TASK_FILED;
    attempt->renewed = attempt->has_next = false;
    attempt->token = 0;
    attempt->lease_ms = 0;
    attempt->worker.size = 0;
}

/* The first byte of an attempt state. */
static unsigned pack_first(const struct tw__redis_attempt *attempt)
{
    TW_ASSERT(attempt->stage != TW__TASK_NONE);
    return (unsigned)attempt->stage - TW__TASK_FILED + (attempt->renewed ? RENEWED : 0) +
           LAPSE * attempt->lapses;
}

static void set_first(struct tw__redis_attempt *attempt, unsigned first)
{
    attempt->stage = (enum tw__task_stage)(first % TW__REDIS_STAGES + TW__TASK_FILED);
    attempt->renewed = (first & RENEWED) != 0;
    attempt->lapses = first / LAPSE;
}

static char *put_lowest(char *at, uint64_t number, size_t bytes)
{
    uint64_t lowest_first = htole64(number);
    memcpy(at, &lowest_first, bytes);
    return at + bytes;
}

static uint64_t take_lowest(const char **at, size_t bytes)
{
    uint64_t lowest_first = 0;
    memcpy(&lowest_first, *at, bytes);
    *at += bytes;
    return le64toh(lowest_first);
}

void tw__redis_attempt_pack(char *at, const struct tw__redis_attempt *attempt)
{
    uint32_t number = attempt->number | (attempt->has_next ? HAS_NEXT : 0) |
                      (attempt->has_missed_periods ? HAS_MISSED_PERIODS : 0);
    TW_ASSERT(attempt->due <= TW__TASK_TIME_MAX && attempt->number <= TW__REDIS_BEGUN_MAX);
    at = put_lowest(at, pack_first(attempt), 1);
    at = put_lowest(at, attempt->due, DUE_SIZE);
    at = put_lowest(at, attempt->token, TOKEN_SIZE);
    at = put_lowest(at, attempt->lease_ms, LEASE_SIZE);
    put_lowest(at, number, NUMBER_SIZE);
}

struct tw__redis_attempt tw__redis_attempt_unpack(const char *at)
{
    struct tw__redis_attempt attempt = {0};
    set_first(&attempt, (unsigned)take_lowest(&at, 1));
    attempt.due = take_lowest(&at, DUE_SIZE);
    attempt.token = take_lowest(&at, TOKEN_SIZE);
    attempt.lease_ms = (uint32_t)take_lowest(&at, LEASE_SIZE);
    attempt.number = (uint32_t)take_lowest(&at, NUMBER_SIZE);
    attempt.has_next = (attempt.number & HAS_NEXT) != 0;
    attempt.has_missed_periods = (attempt.number & HAS_MISSED_PERIODS) != 0;
    attempt.number &= ~(HAS_NEXT | HAS_MISSED_PERIODS);
    return attempt;
}

void tw__redis_attempt_put(struct tw__redis_buffer *buffer, const struct tw__redis_attempt *attempt,
                           const struct tw__redis_memory *memory)
{
    unsigned with =
        (attempt->has_next ? WITH_NEXT : 0) + (attempt->has_missed_periods ? WITH_MISSED_PERIODS : 0);
    tw__redis_buffer_put_number(buffer, pack_first(attempt) + with, memory);
    tw__redis_buffer_put_number(buffer, attempt->due, memory);
    tw__redis_buffer_put_number(buffer, attempt->token, memory);
    tw__redis_buffer_put_number(buffer, attempt->lease_ms, memory);
    tw__redis_buffer_put_number(buffer, attempt->number, memory);
    tw__redis_buffer_put_bytes(buffer, attempt->worker, memory);
    tw__redis_buffer_put_bytes(buffer, attempt->error, memory);
    if (attempt->has_next)
        tw__redis_buffer_put_number(buffer, tw__redis_attempt_away(attempt), memory);
    if (attempt->has_missed_periods)
        tw__redis_buffer_put_number(buffer, attempt->missed_periods, memory);
}

/* Reads `next`. It is another time than `due`, and an attempt of the task itself is under way. */
static void take_before(struct tw__redis_reader *reader, struct tw__redis_attempt *attempt)
{
    uint64_t away = tw__redis_reader_number(reader, UINT64_MAX);
    attempt->next = tw__redis_attempt_at(attempt, away);
    if (attempt->stage != TW__TASK_TAKEN || attempt->next == attempt->due || attempt->next > TW__TASK_TIME_MAX)
        reader->at = NULL;
}

/* Reads `missed_periods`. A dead task has no call, and a newer one behind an attempt has none yet. */
static void take_missed_periods(struct tw__redis_reader *reader, struct tw__redis_attempt *attempt)
{
    attempt->missed_periods = tw__redis_reader_number(reader, INT64_MAX);
    if (attempt->stage == TW__TASK_BURIED || attempt->stage == TW__TASK_REPLACED)
        reader->at = NULL;
}

/* Whether so many attempts may have lapsed, and whether the one under way has a token, without which nobody
 * could end it. That attempt has not lapsed, and a new task behind it has no lapses. */
static bool attempts_fit(const struct tw__redis_attempt *attempt)
{
    uint32_t most = attempt->stage == TW__TASK_BURIED ? TW__REDIS_LAPSES_LAST : TW__REDIS_LAPSES_LAST - 1;
    bool leased = tw__task_stage_is_leased(attempt->stage);
    if (attempt->lapses > (attempt->stage == TW__TASK_REPLACED ? 0 : most) || (leased && attempt->token == 0))
        return false;
    return attempt->number >= attempt->lapses + leased;
}

struct tw__redis_attempt tw__redis_attempt_take(struct tw__redis_reader *reader)
{
    struct tw__redis_attempt attempt = {0};
    uint64_t most = TW__REDIS_STAGES - 1 + RENEWED + LAPSE * TW__REDIS_LAPSES_LAST + WITH_NEXT +
                    WITH_MISSED_PERIODS,
             first = tw__redis_reader_number(reader, most);
    set_first(&attempt, (unsigned)first % WITH_NEXT);
    attempt.has_next = (first & WITH_NEXT) != 0;
    attempt.has_missed_periods = (first & WITH_MISSED_PERIODS) != 0;
    attempt.due = tw__redis_reader_named(reader, "due", TW__TASK_TIME_MAX);
    attempt.token = tw__redis_reader_number(reader, UINT64_MAX);
    attempt.lease_ms = (uint32_t)tw__redis_reader_number(reader, UINT32_MAX);
    attempt.number = (uint32_t)tw__redis_reader_named(reader, "attempt", TW__REDIS_BEGUN_MAX);
    if (!attempts_fit(&attempt))
        reader->at = NULL;
    attempt.worker = tw__redis_reader_bytes(reader);
    attempt.error = tw__redis_reader_bytes(reader);
    if (attempt.has_next)
        take_before(reader, &attempt);
    if (attempt.has_missed_periods)
        take_missed_periods(reader, &attempt);
    return attempt;
}
