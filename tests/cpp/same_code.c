/* SPDX-License-Identifier: MIT
 *
 * Functions as a C programmer writes them. same_code.cpp has the same functions in C++, and
 * tests/cpp/same_code compares the instructions that the compilers make of both.
 */
#include <tickwheel/sched.h>

enum { HALF_HOUR_MS = 30 * 60 * 1000 };

struct wheel {
    struct tw_wheel *raw;
};
/* A timer that knows its wheel, so that it can cancel itself. */
struct timer {
    struct tw_timer raw;
    struct tw_wheel *wheel;
};
struct object {
    struct tw_timer timer;
    uint64_t count;
};

int add(struct wheel *wheel, struct tw_timer *timer);
int move_later(struct wheel *wheel, struct tw_timer *timer);
bool cancel(struct wheel *wheel, struct tw_timer *timer);
bool pending(const struct tw_timer *timer);
int add_timer(struct wheel *wheel, struct timer *timer);
bool cancel_timer(struct timer *timer);
uint64_t count_due(struct wheel *wheel);
void on_due(struct tw_sched *sched, const struct tw_task *task);
enum tw_cancel cancel_task(struct tw_sched **sched, uint64_t id);

int add(struct wheel *wheel, struct tw_timer *timer)
{
    return tw_wheel_add_in(wheel->raw, timer, HALF_HOUR_MS);
}

int move_later(struct wheel *wheel, struct tw_timer *timer)
{
    return tw_wheel_move_in(wheel->raw, timer, HALF_HOUR_MS);
}

bool cancel(struct wheel *wheel, struct tw_timer *timer)
{
    return tw_wheel_cancel(wheel->raw, timer);
}

bool pending(const struct tw_timer *timer)
{
    return tw_timer_pending(timer);
}

int add_timer(struct wheel *wheel, struct timer *timer)
{
    timer->wheel = wheel->raw;
    return tw_wheel_add_in(wheel->raw, &timer->raw, HALF_HOUR_MS);
}

bool cancel_timer(struct timer *timer)
{
    return tw_timer_pending(&timer->raw) && tw_wheel_cancel(timer->wheel, &timer->raw);
}

uint64_t count_due(struct wheel *wheel)
{
    uint64_t sum = 0;
    struct tw_wheel *raw = wheel->raw;
    for (struct tw_timer *timer = tw_wheel_poll(raw, HALF_HOUR_MS); timer != NULL;
         timer = tw_wheel_poll(raw, HALF_HOUR_MS))
        sum += TW_CONTAINER(timer, struct object, timer)->count;
    return sum;
}

void on_due(struct tw_sched *sched, const struct tw_task *task)
{
    (void)sched;
    ++*(uint64_t *)task->arg;
}

enum tw_cancel cancel_task(struct tw_sched **sched, uint64_t id)
{
    return tw_sched_cancel(*sched, id);
}
