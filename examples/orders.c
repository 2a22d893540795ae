/* SPDX-License-Identifier: MIT
 *
 * Order timeout and reward notice: an order that is not paid within half an hour is cancelled; whoever pays is
 * sent a voucher a day later. On a virtual clock, so that a day takes no time.
 */
#include <stdio.h>
#include <string.h>
#include <tickwheel/sched.h>

static const uint64_t minute = UINT64_C(60000000000);

static void say(struct tw_sched *sched, const struct tw_task *task, const char *what)
{
    uint64_t minutes = tw_sched_now(sched) / minute;
    printf("day %d %02d:%02d  %s %.*s\n", (int)(minutes / 1440), (int)(minutes / 60 % 24), (int)(minutes % 60),
           what, (int)task->key_size, (const char *)task->key);
}

static void cancel_order(struct tw_sched *sched, const struct tw_task *task)
{
    say(sched, task, "unpaid, cancelled:");
}

static void send_voucher(struct tw_sched *sched, const struct tw_task *task)
{
    say(sched, task, "voucher sent:");
}

static void place(struct tw_sched *sched, const char *order)
{
    tw_sched_set_after(sched, order, strlen(order), 30 * minute, cancel_order, NULL, NULL);
}

/* The same key: the task of the unpaid order becomes that of the voucher, and cannot fire as well. */
static void pay(struct tw_sched *sched, const char *order)
{
    tw_sched_set_after(sched, order, strlen(order), 1440 * minute, send_voucher, NULL, NULL);
}

static void pass(struct tw_sched *sched, uint64_t minutes)
{
    tw_sched_advance(sched, tw_sched_now(sched) + minutes * minute);
}

int main(void)
{
    struct tw_sched *sched;
    struct tw_sched_options options = {.clock = TW_SCHED_VIRTUAL};
    if (tw_sched_new(&sched, &options) != 0)
        return 1;
    place(sched, "order 1");
    pass(sched, 10);
    place(sched, "order 2");
    pass(sched, 19);
    pay(sched, "order 1"); /* a minute before its time */
    pass(sched, 3000);
    tw_sched_free(sched);
    return 0;
}
