/* SPDX-License-Identifier: MIT
 *
 * docs/coming-from.md, the section on Asio: its statements, on Debian's Asio.
 */
#include "claim.h"

#include <asio.hpp>
#include <chrono>
#include <optional>

using asio::steady_timer;
using namespace std::chrono_literals;

namespace
{

bool move_aborts_the_wait()
{
    asio::io_context io;
    steady_timer timer(io, 1h);
    int aborted = 0;
    timer.async_wait([&](asio::error_code error) { aborted += error == asio::error::operation_aborted; });
    const bool one = timer.expires_after(2h) == 1;
    const bool not_inside = aborted == 0;
    io.run();
    return one && not_inside && aborted == 1;
}

/* Both timers are due in one pass. The handler of one cancels the other. */
bool due_handler_cannot_be_cancelled()
{
    asio::io_context io;
    const auto now = std::chrono::steady_clock::now();
    steady_timer first(io, now - 2ms), second(io, now - 1ms);
    std::size_t cancelled = 1;
    int successes = 0;
    first.async_wait([&](asio::error_code) { cancelled = second.cancel(); });
    second.async_wait([&](asio::error_code error) { successes += !error; });
    io.run();
    return cancelled == 0 && successes == 1;
}

bool end_of_timer_aborts_the_wait()
{
    asio::io_context io;
    std::optional<steady_timer> timer(std::in_place, io, 1h);
    int aborted = 0;
    timer->async_wait([&](asio::error_code error) { aborted += error == asio::error::operation_aborted; });
    timer.reset();
    io.run();
    return aborted == 1;
}

bool equals_in_order()
{
    asio::io_context io;
    struct calls calls = {};
    const auto at = std::chrono::steady_clock::now() + 5ms;
    std::optional<steady_timer> equals[CLAIM_EQUALS];
    for (int i = 0; i < CLAIM_EQUALS; i++) {
        equals[i].emplace(io, at);
        equals[i]->async_wait([&calls, i](asio::error_code) { called(&calls, i); });
    }
    io.run();
    return in_filing_order(&calls);
}

bool never_early()
{
    asio::io_context io;
    for (int i = 0; i < 20; i++) {
        const std::uint64_t begin = clock_ns();
        std::uint64_t end = 0;
        steady_timer timer(io, 1500us);
        timer.async_wait([&](asio::error_code) { end = clock_ns(); });
        io.run();
        io.restart();
        if (end - begin < 1500000)
            return false;
    }
    return true;
}

bool far_end_is_never()
{
    asio::io_context io;
    steady_timer timer(io, std::chrono::steady_clock::duration::max());
    bool called_at_all = false;
    timer.async_wait([&](asio::error_code error) { called_at_all = !error; });
    io.run_for(20ms);
    return !called_at_all;
}

/* Without a wait nobody is called. */
bool timer_alone_does_nothing()
{
    asio::io_context io;
    steady_timer timer(io, 1h);
    return io.run() == 0;
}

} // namespace

int main()
{
    claim(move_aborts_the_wait(), "expires_after() ends a wait: its handler receives operation_aborted, later");
    claim(due_handler_cannot_be_cancelled(),
          "a wait that is due cannot be cancelled: its handler receives success");
    claim(end_of_timer_aborts_the_wait(), "the end of a timer calls the handler with operation_aborted");
    claim(!equals_in_order(), "timers with equal due times are not called in the order of waiting");
    claim(never_early(), "a timer is not early");
    claim(far_end_is_never(), "the longest duration saturates");
    claim(timer_alone_does_nothing(), "a timer without a wait does not keep run()");
    std::printf("sizeof(steady_timer) is %zu\n", sizeof(steady_timer));
}
