/* SPDX-License-Identifier: MIT
 *
 * The bytes of a life.
 *
 *     in a task:  stage, and 4 if the lease was renewed, 1 | due 8 | token 8 | lease_ms 4 | attempt 4
 *     elsewhere:  the same as varints, then worker and error, each with its size
 */
#include "life.h"

#include <string.h>

enum { RENEWED = TW__REDIS_STAGES };

void tw__redis_life_pack(char *at, const struct tw__redis_life *life)
{
    *at++ = (char)((unsigned)life->stage | (life->renewed ? RENEWED : 0));
    memcpy(at, &life->due, sizeof life->due);
    at += sizeof life->due;
    memcpy(at, &life->token, sizeof life->token);
    at += sizeof life->token;
    memcpy(at, &life->lease_ms, sizeof life->lease_ms);
    at += sizeof life->lease_ms;
    memcpy(at, &life->attempt, sizeof life->attempt);
}

struct tw__redis_life tw__redis_life_unpack(const char *at)
{
    struct tw__redis_life life = {.stage = tw__redis_life_stage(at), .renewed = (*at & RENEWED) != 0};
    at++;
    memcpy(&life.due, at, sizeof life.due);
    at += sizeof life.due;
    memcpy(&life.token, at, sizeof life.token);
    at += sizeof life.token;
    memcpy(&life.lease_ms, at, sizeof life.lease_ms);
    at += sizeof life.lease_ms;
    memcpy(&life.attempt, at, sizeof life.attempt);
    return life;
}

void tw__redis_life_put(struct tw__redis_buffer *buffer, const struct tw__redis_life *life,
                        const struct tw__redis_memory *memory)
{
    tw__redis_buffer_put_number(buffer, (uint64_t)life->stage | (life->renewed ? RENEWED : 0), memory);
    tw__redis_buffer_put_number(buffer, life->due, memory);
    tw__redis_buffer_put_number(buffer, life->token, memory);
    tw__redis_buffer_put_number(buffer, life->lease_ms, memory);
    tw__redis_buffer_put_number(buffer, life->attempt, memory);
    tw__redis_buffer_put_bytes(buffer, life->worker, memory);
    tw__redis_buffer_put_bytes(buffer, life->error, memory);
}

struct tw__redis_life tw__redis_life_take(struct tw__redis_reader *reader)
{
    struct tw__redis_life life = {0};
    uint64_t stage = tw__redis_reader_number(reader, RENEWED + TW__REDIS_DEAD);
    if (stage % TW__REDIS_STAGES > TW__REDIS_DEAD)
        reader->at = NULL;
    life.stage = (enum tw__redis_stage)(stage % TW__REDIS_STAGES);
    life.renewed = (stage & RENEWED) != 0;
    life.due = tw__redis_reader_number(reader, INT64_MAX);
    life.token = tw__redis_reader_number(reader, UINT64_MAX);
    life.lease_ms = (uint32_t)tw__redis_reader_number(reader, UINT32_MAX);
    life.attempt = (uint32_t)tw__redis_reader_number(reader, UINT32_MAX);
    life.worker = tw__redis_reader_bytes(reader);
    life.error = tw__redis_reader_bytes(reader);
    return life;
}
