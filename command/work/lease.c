/* SPDX-License-Identifier: MIT */
#include "lease.h"

#include <stdlib.h>
#include <string.h>

enum { QUEUE, ID, TOKEN, DUE, ATTEMPT, VALUES, MISSED_PERIODS, MEMBERS };

static bool is_text(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_STRING;
}

static bool is_number(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_INTEGER;
}

bool lease_is_row(const redisReply *row)
{
    if (row->type != REDIS_REPLY_ARRAY || row->elements < MEMBERS)
        return false;
    redisReply *const *member = row->element;
    if (!is_text(member[QUEUE]) || !is_text(member[ID]) || !is_text(member[TOKEN]) || !is_number(member[DUE]) ||
        !is_number(member[ATTEMPT]) || !is_number(member[MISSED_PERIODS]) ||
        member[VALUES]->type != REDIS_REPLY_ARRAY)
        return false;
    for (size_t i = 0; i < member[VALUES]->elements; i++)
        if (!is_text(member[VALUES]->element[i]))
            return false;
    return true;
}

static struct tw_bytes copy(const redisReply *text, char **at)
{
    struct tw_bytes bytes = {*at, (size_t)text->len};
    memcpy(*at, text->str, bytes.size);
    *at += bytes.size;
    return bytes;
}

struct lease *lease_new(const redisReply *row, const char *queue)
{
    redisReply *const *member = row->element;
    const redisReply *values = member[VALUES];
    size_t size = (size_t)member[ID]->len + (size_t)member[TOKEN]->len;
    for (size_t i = 0; i < values->elements; i++)
        size += (size_t)values->element[i]->len;
    struct lease *lease = malloc(sizeof *lease + values->elements * sizeof lease->value[0] + size);
    if (lease == NULL)
        return NULL;
    char *at = (char *)(lease->value + values->elements);
    *lease = (struct lease){.taken = {.queue = queue,
                                      .id = copy(member[ID], &at),
                                      .value = lease->value,
                                      .values = values->elements,
                                      .due_ms = (uint64_t)member[DUE]->integer,
                                      .attempt = (uint64_t)member[ATTEMPT]->integer,
                                      .missed_periods = (uint64_t)member[MISSED_PERIODS]->integer,
                                      .late_from_ms = TW_NEVER, /* TW.TAKE does not tell */
                                      .token = copy(member[TOKEN], &at)},
                            .touch = {.verb = VERB_TOUCH, .lease = lease},
                            .answer = {.lease = lease}};
    for (size_t i = 0; i < values->elements; i++)
        lease->value[i] = copy(values->element[i], &at);
    return lease;
}

void lease_free(struct lease *lease)
{
    free(lease->error);
    free(lease);
}
