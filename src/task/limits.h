/* SPDX-License-Identifier: MIT
 *
 * The ranges and the defaults of a task's numbers, the same in every home. Times are milliseconds. A page, a
 * help text or a statement that names one of these numbers takes it from here, or stands in
 * tests/task/copies.txt, and a test compares it with this table.
 */
#ifndef TW_TASK_LIMITS_H
#define TW_TASK_LIMITS_H

#include <stdbool.h>
#include <stdint.h>
#include <tickwheel/task.h>

enum {
    TW__TASK_ID_MAX = 960,    /* bytes of an id that a caller chooses */
    TW__TASK_NAME_MAX = 1024, /* of any id: a dead period has a suffix (periods.h) */
    TW__TASK_QUEUE_MAX = 255,
    TW__TASK_WORKER_MAX = 255,
    TW__TASK_PAYLOAD_MAX = 999000000, /* with the id and the target */
    TW__TASK_ERROR_MAX = 4096,        /* of an error; a longer text is cut */
    TW__TASK_TRIES_MAX = 1000000,
    TW__TASK_LAPSES_MAX = 16,   /* a further lapse kills */
    TW__TASK_MANY = 10000,      /* tasks of one take, promote, replay or purge */
    TW__TASK_PASSED_MAX = 1000, /* tasks without a call that one take passes over, and leases that it ends */
    TW__TASK_HUNDREDTHS = 100   /* a factor of 200 doubles */
};

/* The latest time: the end of the year 9999. */
#define TW__TASK_TIME_MAX UINT64_C(253402300799999)

/* X(NAME, least, most, usual). The usual value of a number that has no default is 0. */
#define TW__TASK_NUMBERS(X)                                                                                    \
    X(DUE, 0, TW__TASK_TIME_MAX, 0)                                                                            \
    X(EVERY, 1, UINT64_C(3155760000000), 0) /* 100 years */                                                    \
    X(TIMES, 1, INT64_MAX, TW_FOREVER)                                                                         \
    X(MAX_LATE, 0, UINT64_C(3155760000000), TW_FOREVER)                                                        \
    X(TRIES, 1, TW__TASK_TRIES_MAX, 20)                                                                        \
    X(BACKOFF, 1, UINT64_C(3155760000000), 1000)                                                               \
    X(FACTOR, 100, 10000, 200) /* percent */                                                                   \
    X(BACKOFF_MAX, 1, UINT64_C(3155760000000), 3600000)                                                        \
    X(JITTER, 0, 100, 10) /* percent */                                                                        \
    X(TARGET_TRIES, 1, 15, 3)                                                                                  \
    X(TARGET_BACKOFF, 1, 5000, 100) /* of the setting: no longer than the usual longest wait */                \
    X(TARGET_BACKOFF_MAX, 1, UINT64_C(3155760000000), 5000)                                                    \
    X(TARGET_JITTER, 0, 100, 0)                                                                                \
    X(LEASE, 1, UINT32_MAX, 0)                                                                                 \
    X(COUNT, 1, TW__TASK_MANY, 1)                                                                              \
    X(STEP, 1, UINT64_C(3155760000000), 0) /* of a forecast */                                                 \
    X(STEPS, 1, TW_FORECAST_MAX, 0)

enum tw__task_number {
#define TW__TASK_NUMBER(name, least, most, usual) TW__TASK_IN_##name,
    TW__TASK_NUMBERS(TW__TASK_NUMBER)
#undef TW__TASK_NUMBER
        TW__TASK_NUMBER_COUNT
};

struct tw__task_range {
    uint64_t least, most, usual;
};

static inline struct tw__task_range tw__task_range(enum tw__task_number number)
{
    static const struct tw__task_range ranges[] = {
#define TW__TASK_RANGE(name, least, most, usual) [TW__TASK_IN_##name] = {least, most, usual},
        TW__TASK_NUMBERS(TW__TASK_RANGE)
#undef TW__TASK_RANGE
    };
    return ranges[number];
}

static inline bool tw__task_in_range(enum tw__task_number number, uint64_t value)
{
    struct tw__task_range range = tw__task_range(number);
    return value >= range.least && value <= range.most;
}

#endif
