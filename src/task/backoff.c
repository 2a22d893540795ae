/* SPDX-License-Identifier: MIT
 *
 * Waits are whole numbers, so that every home reckons the same ones. Example: with a first wait of 1000 ms and
 * a factor of 150 the waits are 1000, 1500, 2250, 3375, 5062, 7593.
 *
 *     jitter    wait - reach + token mod (2 * reach + 1), where reach = wait * percent / 100
 *
 * The token counts without its highest bit, which an integer of SQL cannot have. Nothing is mixed here, so that
 * a client computes the same wait: a home makes tokens whose rests are spread as by chance.
 */
#include "backoff.h"

#include <base/assert.h>

#include "limits.h"

/* value * hundredths / 100, at most `most`. Requires: hundredths > 0. */
static uint64_t scale(uint64_t value, uint32_t hundredths, uint64_t most)
{
    if (value / TW__TASK_HUNDREDTHS > most / hundredths)
        return most; /* before the product overflows */
    uint64_t scaled = value / TW__TASK_HUNDREDTHS * hundredths +
                      value % TW__TASK_HUNDREDTHS * hundredths / TW__TASK_HUNDREDTHS;
    return scaled < most ? scaled : most;
}

uint64_t tw__task_wait_after(const struct tw__task_retry *retry, uint64_t wait_ms)
{
    if (wait_ms >= retry->max_ms)
        return retry->max_ms;
    if (retry->factor_percent <= TW__TASK_HUNDREDTHS)
        return wait_ms;
    uint64_t scaled = scale(wait_ms, retry->factor_percent, retry->max_ms);
    return scaled > wait_ms ? scaled : wait_ms + 1; /* a small wait times 1.01 */
}

uint64_t tw__task_wait(const struct tw__task_retry *retry, uint32_t n)
{
    TW_ASSERT(n > 0);
    uint64_t wait_ms = retry->first_ms < retry->max_ms ? retry->first_ms : retry->max_ms;
    for (uint32_t i = 1; i < n && wait_ms < retry->max_ms && retry->factor_percent > TW__TASK_HUNDREDTHS; i++)
        wait_ms = tw__task_wait_after(retry, wait_ms);
    return wait_ms;
}

uint64_t tw__task_jitter(uint64_t wait_ms, uint32_t percent, uint64_t token)
{
    TW_ASSERT(percent <= TW__TASK_HUNDREDTHS && wait_ms <= INT64_MAX / 2);
    uint64_t reach_ms = percent > 0 ? scale(wait_ms, percent, wait_ms) : 0;
    if (reach_ms == 0)
        return wait_ms;
    return wait_ms - reach_ms + (token & INT64_MAX) % (2 * reach_ms + 1);
}

uint64_t tw__task_retry_at(const struct tw__task_retry *retry, uint32_t n, uint64_t token, uint64_t end_ms)
{
    uint64_t at_ms = end_ms + tw__task_jitter(tw__task_wait(retry, n), retry->jitter, token);
    return at_ms < TW__TASK_TIME_MAX ? at_ms : TW__TASK_TIME_MAX;
}
