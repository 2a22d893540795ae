/* SPDX-License-Identifier: MIT
 *
 *     period   100    110    120    130    140          every 10, now 137
 *     burst    call   call   call   call                 each call in its turn
 *     skip     -      -      -      -      call          four skipped
 *     coalesce call                                      one call, for three more
 *
 * A period is too late if the later of its due time and `next` is more than max_late ago. `next` is the later
 * one if a worker has put the call off, or if the task has stood behind an attempt. Then the first periods are
 * all as late as `next` is, so one division finds the first that is not too late.
 */
#include "periods.h"

#include <base/assert.h>

#include "limits.h"

/* How many periods are too late. */
static uint64_t count_dropped(const struct tw__task_period *period, uint64_t now)
{
    uint64_t since = period->due > period->next ? period->due : period->next;
    if (period->max_late == TW_FOREVER || since >= now || now - since <= period->max_late)
        return 0;
    if (period->every == 0)
        return 1;
    uint64_t earliest = now - period->max_late; /* that is not too late; it lies behind `due` */
    return (earliest - period->due - 1) / period->every + 1;
}

struct tw__task_turn tw__task_turn(const struct tw__task_period *period, uint64_t now)
{
    struct tw__task_turn turn = {.due = period->due, .dropped = count_dropped(period, now), .calls = true};
    TW_ASSERT(period->next <= now);
    if (period->every == 0) {
        turn.calls = turn.dropped == 0;
        turn.ends = !turn.calls;
        return turn;
    }
    turn.due = tw__task_due_after(period->due, turn.dropped, period->every);
    uint64_t passed = tw__task_periods_since(turn.due, period->every, now);
    tw__task_make_up(&turn, period->missed, passed, period->every);
    turn.ends = turn.due > TW__TASK_TIME_MAX;
    bool moved = turn.dropped + turn.skipped > 0;
    turn.calls = !turn.ends && (!moved || turn.due <= now); /* a promoted task comes before its due time */
    return turn;
}

uint64_t tw__task_missed_periods_renewed(uint64_t missed_periods, uint64_t every, uint64_t new_every)
{
    if (new_every == 0 || new_every == every)
        return new_every == 0 ? 0 : missed_periods;
    uint64_t most = every == 0 ? 0 : INT64_MAX / every; /* a call stands for no more, but a file may say so */
    return (missed_periods < most ? missed_periods : most) * every / new_every;
}

static size_t write_number(char *at, uint64_t number)
{
    char digits[20];
    size_t size = 0, i;
    do {
        digits[size++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    for (i = 0; i < size; i++)
        at[i] = digits[size - 1 - i];
    return size;
}

size_t tw__task_suffix(uint64_t due, uint32_t n, char suffix[TW__TASK_SUFFIX_MAX])
{
    TW_ASSERT(due <= TW__TASK_TIME_MAX);
    size_t size = 0;
    suffix[size++] = '@';
    size += write_number(suffix + size, due);
    if (n > 0) {
        suffix[size++] = '-';
        size += write_number(suffix + size, n);
    }
    return size;
}
