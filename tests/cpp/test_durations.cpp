/* SPDX-License-Identifier: MIT
 *
 * Durations become ticks and nanoseconds. Deadlines are rounded up, the present is rounded down, and no
 * result lies past the ends.
 */
#include "support.hpp"

#include "tests/support/random.h"

using namespace std::chrono;
using namespace std::chrono_literals;
namespace detail = tickwheel::detail;
using detail::round;

static_assert(detail::count<milliseconds, round::up>(1ns) == 1);
static_assert(detail::count<milliseconds, round::down>(1ns) == 0);
static_assert(detail::count<milliseconds, round::up>(999'999ns) == 1);
static_assert(detail::count<milliseconds, round::up>(1'000'000ns) == 1);
static_assert(detail::count<milliseconds, round::up>(1'000'001ns) == 2);
static_assert(detail::count<milliseconds, round::down>(1'999'999ns) == 1);
static_assert(detail::count<milliseconds, round::up>(30min) == 1'800'000);
static_assert(detail::count<hours, round::up>(1ms) == 1);

static_assert(detail::count<milliseconds, round::up>(-1ns) == 0);
static_assert(detail::count<milliseconds, round::down>(-1h) == 0);
static_assert(detail::count<milliseconds, round::up>(hours::min()) == 0);
static_assert(detail::count<nanoseconds, round::up>(nanoseconds::min()) == 0);

static_assert(detail::count<milliseconds, round::up>(hours::max()) == UINT64_MAX);
static_assert(detail::count<nanoseconds, round::down>(hours::max()) == UINT64_MAX);
static_assert(detail::count<nanoseconds, round::up>(nanoseconds::max()) == INT64_MAX);
static_assert(detail::count<milliseconds, round::up>(nanoseconds::max()) == INT64_MAX / 1'000'000 + 1);

/* Durations that are unsigned, or narrow, or have no whole ratio to a tick. */
using thirds = duration<std::int64_t, std::ratio<1, 3>>;
static_assert(detail::count<milliseconds, round::up>(thirds(1)) == 334);
static_assert(detail::count<milliseconds, round::down>(thirds(1)) == 333);
static_assert(detail::count<thirds, round::up>(1001ms) == 4);
static_assert(detail::count<thirds, round::up>(1000ms) == 3);
static_assert(detail::count<milliseconds, round::up>(duration<std::uint64_t>(UINT64_MAX)) == UINT64_MAX);
static_assert(detail::count<nanoseconds, round::up>(duration<std::uint64_t, std::nano>(UINT64_MAX)) ==
              UINT64_MAX);
static_assert(detail::count<milliseconds, round::up>(duration<signed char>(-128)) == 0);
static_assert(detail::count<milliseconds, round::up>(duration<unsigned char>(255)) == 255'000);

static_assert(detail::duration_of<milliseconds>(5) == 5ms);
static_assert(detail::duration_of<milliseconds>(UINT64_MAX) == milliseconds::max());
static_assert(detail::duration_of<milliseconds>(INT64_MAX) == milliseconds::max());
static_assert(detail::duration_of<duration<std::uint64_t, std::milli>>(UINT64_MAX).count() == UINT64_MAX);

/* The macros of duration.h, for programs that call the C functions. */
static_assert(TW_US(1) == 1'000 && TW_MS(1) == 1'000'000 && TW_SEC(1) == 1'000'000'000);
static_assert(nanoseconds(1min).count() == TW_MIN(1) && nanoseconds(1h).count() == TW_HOUR(1));
static_assert(std::is_same_v<decltype(TW_US(1)), std::uint64_t> &&
              std::is_same_v<decltype(TW_HOUR(1u)), std::uint64_t>);

__extension__ typedef unsigned __int128 wide;

/* n * num / den in 128 bits, which is exact. */
template <class From, class To> static void compare_with_exact(std::uint64_t n)
{
    using factor = std::ratio_divide<typename From::period, typename To::period>;
    const wide num = factor::num, den = factor::den, end = UINT64_MAX;
    const wide up = (n * num + den - 1) / den, down = n * num / den;
    const From time(static_cast<typename From::rep>(n));
    REQUIRE(detail::count<To, round::up>(time) == static_cast<std::uint64_t>(up < end ? up : end));
    REQUIRE(detail::count<To, round::down>(time) == static_cast<std::uint64_t>(down < end ? down : end));
}

template <class To> static void compare_all(std::uint64_t n)
{
    using odd = duration<std::int64_t, std::ratio<7, 1'000'003>>;
    compare_with_exact<nanoseconds, To>(n);
    compare_with_exact<microseconds, To>(n);
    compare_with_exact<milliseconds, To>(n);
    compare_with_exact<seconds, To>(n);
    compare_with_exact<hours, To>(n);
    compare_with_exact<thirds, To>(n);
    compare_with_exact<odd, To>(n);
}

TEST_CASE("any duration is what exact arithmetic says")
{
    rng random;
    rng_init(&random, 20261121);
    for (int i = 0; i < 20000; i++) {
        const std::uint64_t n = rng_next(&random) >> (1 + rng_below(&random, 63));
        compare_all<nanoseconds>(n);
        compare_all<milliseconds>(n);
        compare_all<seconds>(n);
        compare_all<duration<std::int64_t, std::ratio<1, 60>>>(n); /* frames */
    }
}
