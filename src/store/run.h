/* SPDX-License-Identifier: MIT
 *
 * Handlers, and the beginning and end of a run.
 */
#ifndef TW_STORE_RUN_H
#define TW_STORE_RUN_H

#include "internal.h"

struct tw__store_handler {
    struct tw__store_handler *next;
    tw_store_handler_fn *handler;
    void *arg;
    uint32_t at_once;
    bool others; /* of all queues without a handler of their own */
    char queue[TW_STORE_QUEUE_MAX + 1];
};

/* Frees the handlers of a store that does not run. */
void tw__store_handlers_free(struct tw_store *store);

#endif
