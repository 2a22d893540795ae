/* SPDX-License-Identifier: MIT
 *
 * The header with -fno-exceptions and -fno-rtti. It works, and where it would throw an exception, it prints
 * the message and ends the program. It is compiled with TW_DEBUG 1 and NDEBUG here, so the assertions of the
 * header are on.
 */
#include "src/wheel/wheel.h"
#include "tests/support/dies.h"

#include <cassert>
#include <tickwheel/tickwheel.hpp>

#include <unistd.h>

#if defined(__cpp_exceptions) || defined(__cpp_rtti)
#error "this is to be compiled with -fno-exceptions and -fno-rtti"
#endif

using namespace std::chrono_literals;

static int failures;

static void check(bool good, const char *what)
{
    if (!good)
        std::printf("failed: %s\n", what);
    failures += !good;
}

/* Returns whether `body` ends a program with this text on its standard error. */
template <class Body> static bool dies(Body body, const char *text)
{
    struct dying dying;
    if (dying_fork(&dying)) {
        body();
        _exit(0);
    }
    return dying_of(&dying, text);
}

static void use_both()
{
    int calls = 0;
    std::string text = "a string too long to be kept in place";
    tickwheel::status made;
    tickwheel::scheduler scheduler(tickwheel::options().virtual_clock(), made);
    check(made.ok(), "a scheduler is made");
    scheduler.add_in(5ms, [&] { calls++; });
    scheduler.put_in("key", 5ms, [&calls, text] { calls += text.size() > 10; });
    scheduler.advance(5ms);
    check(calls == 2, "both are called");
    tickwheel::wheel<> wheel;
    tickwheel::timer timer;
    wheel.add_in(timer, 1s);
    for (auto &due : wheel.due(1s))
        calls += &due == &timer;
    check(calls == 3, "the timer is due");
    check(std::error_code(tickwheel::status(TW_ERANGE)).message() == tw_strerror(TW_ERANGE),
          "errors have texts");
}

int main()
{
    use_both();
    const auto bad_tick = [] { tickwheel::scheduler scheduler(tickwheel::options().tick(1ns)); };
    check(dies(bad_tick, "tick_ns is 1: expected 1,000"), "the value is named");
    const auto bad_level = [] { tickwheel::wheel<> wheel(tickwheel::make_geometry({{1, 1}})); };
    check(dies(bad_level, "level 0"), "the level is named");
    const auto twice = [] {
        tickwheel::wheel<> wheel;
        tickwheel::timer timer;
        wheel.add_in(timer, 1s);
        wheel.add_in(timer, 1s);
    };
    check(dies(twice, "wheel.hpp"), "the header asserts that a timer is not pending");
    const auto no_wheel = [] {
        struct tw_timer timer = {};
        tw_wheel_add_at(nullptr, &timer, 1);
    };
    check(dies(no_wheel, "layout.h"), "layout.h asserts the duties of a call");
    assert(failures < 0); /* of the program: the headers have left it as NDEBUG has it */
    return failures != 0;
}
