/* SPDX-License-Identifier: MIT
 *
 * The message of the call that failed last.
 */
#include "internal.h"

#include <base/assert.h>

#include <stdio.h>

int tw__store_failed(const struct tw_store *store, int error, const char *message)
{
    struct tw__store_failure *failure = store->failure;
    pthread_mutex_lock(&failure->lock);
    snprintf(failure->message, sizeof failure->message, "%s", message);
    pthread_mutex_unlock(&failure->lock);
    return error;
}

void tw_store_message(const struct tw_store *store, char *message, size_t size)
{
    struct tw__store_failure *failure = store->failure;
    TW_ASSERT(message != NULL || size == 0);
    pthread_mutex_lock(&failure->lock);
    if (size > 0)
        snprintf(message, size, "%s", failure->message);
    pthread_mutex_unlock(&failure->lock);
}

/* ---- errors --------------------------------------------------------------------------------------------- */

const char *tw_store_strerror(int error)
{
    switch (error) {
#define STORE_CASE(name, value, text)                                                                          \
    case name:                                                                                                 \
        return text;
        TW_STORE_ERROR_TABLE(STORE_CASE)
#undef STORE_CASE
    default:
        return tw_sched_strerror(error);
    }
}
