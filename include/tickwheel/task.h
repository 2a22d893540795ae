/* SPDX-License-Identifier: MIT
 *
 * tickwheel/task.h - the words that the scheduler (sched.h) and the store (store.h) share. Both headers include
 * this one. docs/contract.md has the rules behind the words.
 */
#ifndef TICKWHEEL_TASK_H
#define TICKWHEEL_TASK_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- bytes --------------------------------------------------------------------------------------------- */

/* Bytes of any kind, in the memory of somebody else. This struct stays as it is. */
struct tw_bytes {
    const void *data; /* NULL: none */
    size_t size;
};

/* Returns the bytes of a C string, without the NUL at its end.
 * Example: `.id = tw_text("order:42")`. */
static inline struct tw_bytes tw_text(const char *text)
{
    struct tw_bytes bytes = {text, strlen(text)};
    return bytes;
}

/* ---- repeats ------------------------------------------------------------------------------------------- */

/* No end, of the `times` of a repeating task and the calls `left`; no limit, of max_late_ms (store.h). */
#define TW_FOREVER UINT64_MAX

/* How a repeating task treats periods that passed without a call, because the machine slept or callbacks were
 * slow. The phase is kept in any case: due times stay at first + n * period.
 * Example: calls are due at 1, 2, 3, 4, 5 ... seconds, and nothing runs from 1.5 to 4.2 seconds. BURST makes
 * the calls of 2, 3 and 4 at 4.2. SKIP makes none of them. COALESCE makes one call at 4.2, with
 * `missed_periods` 2. With each of them the next call is due at 5.
 *
 * SKIP makes a call only if it can start less than a period after its due time. So a task with a short period
 * never runs if its thread is busy with slow callbacks all the time. A heartbeat takes COALESCE, which makes a
 * call whenever the thread is free. */
enum tw_missed {
    TW_MISSED_COALESCE, /* one call at once for all; `missed_periods` says how many others it stands for */
    TW_MISSED_SKIP,     /* makes up for none: the next call is at the next period that lies ahead */
    TW_MISSED_BURST     /* makes up for each period, one call after the other */
};

/* ---- calls --------------------------------------------------------------------------------------------- */

/* The result of cancelling a task, with the numbers of docs/contract.md. */
enum tw_cancel {
    TW_CANCEL_GONE = 0,      /* there is no such task: it has run, was cancelled, or never was */
    TW_CANCEL_CANCELLED = 1, /* the task will not run */
    TW_CANCEL_AT_WORK = 2    /* its callback or handler is under way; if it repeats, this was its last call */
};

enum { TW_FORECAST_MAX = 10000 }; /* steps of one forecast */

/* ---- states -------------------------------------------------------------------------------------------- */

/* The states of a task in a queue, as flags. The clock alone makes a waiting task ready. */
enum tw_state {
    TW_STATE_WAITING = 1, /* its time is yet to come. With attempts behind it the task is a retry */
    TW_STATE_READY = 2,   /* its time has come */
    TW_STATE_LEASED = 4,  /* an attempt is under way */
    TW_STATE_DEAD = 8     /* its last attempt has failed */
};

#ifdef __cplusplus
}
#endif

#endif
