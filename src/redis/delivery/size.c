/* SPDX-License-Identifier: MIT
 *
 * A Stream takes at most 2^30 bytes in one entry, fields and values together. The limit of TW.SEND is lower
 * (TW__TASK_PAYLOAD_MAX). But a task may come from a file, from RESTORE, or from a version that refused
 * no size. To try such an entry would cost the server seconds, so the sizes are summed instead.
 */
#include "delivery.h"

#include <stdio.h>

#include "queues/place.h"

#define ENTRY_MAX (UINT64_C(1) << 30)
_Static_assert(TW__TASK_PAYLOAD_MAX + 1024 <= ENTRY_MAX, "there is room for the fields of a delivery");

static size_t digits(uint64_t number)
{
    size_t count = 1;
    for (; number >= 10; number /= 10)
        count++;
    return count;
}

static uint64_t entry_bytes(const struct tw__redis_delivery *delivery)
{
    const struct tw__redis_task *task = delivery->task;
    size_t missed_periods =
        delivery->missed_periods == 0
            ? 0
            : tw__redis_call_word_size(TW__REDIS_WORD_MISSED_PERIODS) + digits(delivery->missed_periods);
    return tw__redis_call_word_size(TW__REDIS_WORD_ID) + tw__redis_task_id(task).size +
           tw__redis_call_word_size(TW__REDIS_WORD_DUE) + digits(tw__redis_task_first_due(task)) +
           tw__redis_call_word_size(TW__REDIS_WORD_ATTEMPT) +
           digits(tw__redis_place_tries(tw__redis_shared.queues, task) + 1) + missed_periods +
           tw__redis_payload_bytes(tw__redis_task_payload(task));
}

/* The id and the payload lie in the task's block, or in that block and the block of a shared payload. So the
 * size of these clears every task that TW.SEND accepted, and its payload is not summed at each delivery. */
bool tw__redis_size_is_too_big(const struct tw__redis_delivery *delivery)
{
    return tw__redis_task_bytes(delivery->task, &tw__redis_shared.queues->memory) > TW__TASK_PAYLOAD_MAX &&
           delivery->plan.kind == TW__REDIS_STREAM && entry_bytes(delivery) > ENTRY_MAX;
}

void tw__redis_size_error(struct tw__redis_delivery *delivery)
{
    snprintf(delivery->error, sizeof delivery->error,
             "ERR the entry would be %llu bytes: a Stream takes at most %llu",
             (unsigned long long)entry_bytes(delivery), (unsigned long long)ENTRY_MAX);
}
