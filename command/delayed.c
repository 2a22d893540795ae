/* SPDX-License-Identifier: MIT */
#include "delayed.h"

#include <base/saturate.h>

#include <string.h>
#include <task/limits.h>

enum { MS_NS = 1000000 };

/* Rounds up, because a task is never early. */
static uint64_t whole_ms(uint64_t ns)
{
    return ns / MS_NS + (ns % MS_NS != 0);
}

static uint64_t due_of(const struct line *line)
{
    return line->absolute ? line->at.s * 1000 + whole_ms(line->at.ns)
                          : tw__add_saturating(tw_store_now(), whole_ms(line->time_ns));
}

const char *delayed_make(const struct task_options *options, const struct line *line,
                         struct tw_store_delayed *task)
{
    uint64_t every_ms = whole_ms(line->period_ns);
    struct tw_bytes id = tw_text(line->id), none = {0};
    if (id.size > TW_STORE_ID_MAX)
        return "expected an id of at most 960 bytes";
    if (line->kind == LINE_EVERY &&
        (line->period_ns < MS_NS || !tw__task_in_range(TW__TASK_IN_EVERY, every_ms)))
        return "expected a period of 1ms to 36525d";
    if (line->times > INT64_MAX)
        return "expected a number of times of at most x9223372036854775807";
    *task = (struct tw_store_delayed){.queue = options->queue != NULL ? options->queue : TASK_QUEUE,
                                      .id = id,
                                      .due_ms = due_of(line),
                                      .payload = *line->payload != '\0' ? tw_text(line->payload) : none,
                                      .every_ms = every_ms,
                                      .times = line->times,
                                      .missed = every_ms > 0 ? options->missed : 0,
                                      .tries = (uint32_t)options->tries,
                                      .backoff_ms = options->backoff_ms,
                                      .factor_percent = (uint32_t)options->factor_percent,
                                      .backoff_max_ms = options->backoff_max_ms,
                                      .jitter = (uint32_t)options->jitter,
                                      .max_late_ms = options->max_late_ms};
    return NULL;
}
