/* SPDX-License-Identifier: MIT
 *
 * Paused queues, as `tickwheel run --store` sees them. A run whose tasks all wait in paused queues calls none
 * and does not end, so it says why. So it does if the file is marked as restored.
 */
#ifndef COMMAND_PAUSES_H
#define COMMAND_PAUSES_H

#include <tickwheel/store.h>

#include <stdbool.h>
#include <stdint.h>

/* The state between two looks; zeroed at first. */
struct pauses {
    uint64_t looked_ms; /* when the queues were looked up last */
    uint64_t rest_ms;   /* a file with many queues is looked at more rarely than each second by so much */
    bool told, told_mark;
};

/* Looks at most once a second whether the file is marked as restored, or every task that waits is in a paused
 * queue. If so, says it on standard error, with the names of ten of these queues, once until that has ended.
 * `only`: the one queue of the run; NULL: every queue. */
void pauses_tell(struct pauses *pauses, struct tw_store *store, const char *path, const char *only);

#endif
