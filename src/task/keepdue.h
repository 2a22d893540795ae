/* SPDX-License-Identifier: MIT
 *
 * A put with KEEPDUE looks at the stored task alone, and asks the clock only where nothing else can tell a
 * time. So it does not matter whether the task has become ready meanwhile.
 *
 *     stored                        times            place in the order           outcome
 *     missing, dead                 those given      as any put                   GIVEN
 *     filed                         stay             stays                        IN_PLACE
 *     filed, another target         stay             the last of its time,        SAME_TIMES
 *                                                    with attempt 0
 *     taken, and both repeat        stay             -, and the attempt goes on   IN_PLACE
 *     taken, both repeat, another   next period      behind the attempt           NEXT_PERIOD
 *     target
 *     taken, one of them is once    now              behind the attempt           NOW
 *     replaced                      stay             stays behind the attempt     IN_PLACE
 */
#ifndef TW_TASK_KEEPDUE_H
#define TW_TASK_KEEPDUE_H

#include "task.h"

enum tw__task_keepdue {
    TW__TASK_KEEPDUE_GIVEN,
    TW__TASK_KEEPDUE_IN_PLACE,
    TW__TASK_KEEPDUE_SAME_TIMES,
    TW__TASK_KEEPDUE_NEXT_PERIOD,
    TW__TASK_KEEPDUE_NOW
};

/* `both_repeat`: the stored task and the new one. `elsewhere`: the new one has another kind or target. */
static inline enum tw__task_keepdue tw__task_keepdue(enum tw__task_stage stage, bool both_repeat,
                                                     bool elsewhere)
{
    switch (stage) {
    case TW__TASK_FILED:
        return elsewhere ? TW__TASK_KEEPDUE_SAME_TIMES : TW__TASK_KEEPDUE_IN_PLACE;
    case TW__TASK_TAKEN:
        if (!both_repeat)
            return TW__TASK_KEEPDUE_NOW;
        return elsewhere ? TW__TASK_KEEPDUE_NEXT_PERIOD : TW__TASK_KEEPDUE_IN_PLACE;
    case TW__TASK_REPLACED:
        return TW__TASK_KEEPDUE_IN_PLACE;
    default:
        return TW__TASK_KEEPDUE_GIVEN;
    }
}

#endif
