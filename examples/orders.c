/* SPDX-License-Identifier: MIT
 *
 * Order timeout and reward notice. An order that is not paid within half an hour is cancelled. A buyer who
 * pays receives a voucher a day later. The clock is virtual, so that a day takes no time.
 */
#include <stdio.h>
#include <tickwheel/sched.h>

static void say(struct tw_sched *sched, const struct tw_task *task, const char *what)
{
    uint64_t minutes = tw_sched_now(sched) / TW_MIN(1);
    printf("day %d %02d:%02d  %s %.*s\n", (int)(minutes / 1440), (int)(minutes / 60 % 24), (int)(minutes % 60),
           what, (int)task->key.size, (const char *)task->key.data);
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
    tw_sched_key_put_in(sched, tw_text(order), TW_MIN(30), cancel_order, NULL, NULL);
}

/* The same key: the voucher's task replaces the task of the unpaid order, which cannot fire any more. */
static void pay(struct tw_sched *sched, const char *order)
{
    tw_sched_key_put_in(sched, tw_text(order), TW_HOUR(24), send_voucher, NULL, NULL);
}

static void pass(struct tw_sched *sched, uint64_t minutes)
{
    tw_sched_advance(sched, tw_sched_now(sched) + TW_MIN(minutes));
}

int main(void)
{
    struct tw_sched *sched;
    struct tw_sched_options options = {.clock = TW_SCHED_CLOCK_VIRTUAL};
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
