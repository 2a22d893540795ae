/* SPDX-License-Identifier: MIT
 *
 * Oversell re-check. A flash sale creates two million orders in a burst. Half an hour later each order is
 * checked against the stock, and orders beyond the stock are given back. The time is virtual, the work is
 * not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <tickwheel/sched.h>

enum { ORDERS = 2000000, STOCK = 1500000 };

static int sold, given_back;
static uint64_t earliest = UINT64_MAX, latest;

/* Checks an order; its number is the task's argument. The orders that are checked first get the stock, and
 * the last quarter of the orders is too many. */
static void check(struct tw_sched *sched, const struct tw_task *task)
{
    uint64_t now_ns = tw_sched_now(sched), waited_ns = now_ns - TW_MS((uintptr_t)task->arg / 20000);
    earliest = waited_ns < earliest ? waited_ns : earliest;
    latest = waited_ns > latest ? waited_ns : latest;
    sold < STOCK ? sold++ : given_back++;
}

int main(void)
{
    struct tw_sched *sched;
    struct tw_sched_options options = {.clock = TW_SCHED_CLOCK_VIRTUAL};
    if (tw_sched_new(&sched, &options) != 0 || tw_sched_reserve(sched, ORDERS) != 0)
        return 1;
    for (uintptr_t order = 0; order < ORDERS; order++) {
        if (order % 20000 == 0) /* twenty thousand a millisecond */
            tw_sched_advance(sched, TW_MS(order / 20000));
        if (tw_sched_add_in(sched, TW_MIN(30), check, (void *)order, NULL) != 0)
            return 1;
    }
    printf("%d orders wait for their check\n", (int)tw_sched_count(sched));
    tw_sched_advance(sched, TW_MIN(40));
    printf("%d are good, %d are given back\n", sold, given_back);
    printf("each was checked 30 minutes after it was placed: none earlier%s, none more than a tick later%s\n",
           earliest < TW_MIN(30) ? "?!" : "", latest > TW_MIN(30) + TW_MS(1) ? "?!" : "");
    tw_sched_free(sched);
    return 0;
}
