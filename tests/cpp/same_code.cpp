/* SPDX-License-Identifier: MIT
 *
 * same_code.c, written in C++.
 */
#include <tickwheel/tickwheel.hpp>

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using tickwheel::scheduler;
using tickwheel::timer;
using raw_wheel = tickwheel::wheel<milliseconds, tw_timer>;
using tickwheel::wheel;

struct object : tw_timer {
    std::uint64_t count;
};

extern "C" {

int add(raw_wheel &wheel, tw_timer &timer)
{
    return wheel.add_in(timer, 30min).code();
}

int move_later(raw_wheel &wheel, tw_timer &timer)
{
    return wheel.move_in(timer, 30min).code();
}

bool cancel(raw_wheel &wheel, tw_timer &timer)
{
    return wheel.cancel(timer);
}

bool pending(const timer &timer)
{
    return timer.pending();
}

int add_timer(wheel<> &wheel, timer &timer)
{
    return wheel.add_in(timer, 30min).code();
}

bool cancel_timer(timer &timer)
{
    return timer.cancel();
}

std::uint64_t count_due(tickwheel::wheel<milliseconds, object> &wheel)
{
    std::uint64_t sum = 0;
    for (const object &due : wheel.due(30min))
        sum += due.count;
    return sum;
}

/* The header turns the lambda into the callback. */
bool add_task(scheduler &scheduler, std::uint64_t &calls)
{
    return scheduler.add_in(500ms, [&calls] { ++calls; }).ok();
}

tw_cancel cancel_task(scheduler &scheduler, std::uint64_t id)
{
    return scheduler.cancel(tickwheel::task_id(id));
}
}
