/* SPDX-License-Identifier: MIT
 *
 * The message of the call that failed last.
 */
#include "internal.h"

#include <base/assert.h>

#include <stdio.h>

int tw__store_failed(struct tw_store *store, int error, const char *message)
{
    pthread_mutex_lock(&store->message_lock);
    snprintf(store->message, sizeof store->message, "%s", message);
    pthread_mutex_unlock(&store->message_lock);
    return error;
}

void tw_store_message(struct tw_store *store, char *message, size_t size)
{
    TW_ASSERT(message != NULL || size == 0);
    pthread_mutex_lock(&store->message_lock);
    if (size > 0)
        snprintf(message, size, "%s", store->message);
    pthread_mutex_unlock(&store->message_lock);
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
