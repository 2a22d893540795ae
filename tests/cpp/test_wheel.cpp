/* SPDX-License-Identifier: MIT
 *
 * Timers that cancel themselves when they are destroyed, and each call of the wheel.
 */
#include "support.hpp"

#include <deque>
#include <list>
#include <vector>

using namespace std::chrono;
using namespace std::chrono_literals;
using tickwheel::status;
using tickwheel::timer;
using tickwheel::wheel;

struct order : timer {
    explicit order(int n) noexcept : number(n)
    {
    }
    int number;
};
using orders = wheel<milliseconds, order>;

static std::vector<int> numbers_due(orders &wheel, milliseconds now)
{
    std::vector<int> numbers;
    for (order &due : wheel.due(now))
        numbers.push_back(due.number);
    return numbers;
}

static_assert(sizeof(timer) == sizeof(tw_timer) + sizeof(void *));
static_assert(!std::is_copy_constructible_v<timer> && !std::is_copy_assignable_v<timer>);
static_assert(std::is_nothrow_move_constructible_v<timer> && std::is_nothrow_move_assignable_v<timer>);
static_assert(!std::is_copy_constructible_v<wheel<>> && std::is_nothrow_move_constructible_v<wheel<>>);
static_assert(sizeof(wheel<>) == sizeof(void *));

/* ---- timers ---------------------------------------------------------------------------------------------- */

TEST_CASE("a timer that is destroyed is not pending any more")
{
    wheel<> wheel;
    {
        timer first;
        wheel.add_in(first, 5ms);
        CHECK(first.pending());
        CHECK(wheel.count() == 1);
    }
    CHECK(wheel.count() == 0);
    CHECK(wheel.poll(1h) == nullptr);
    CHECK(wheel.check() == nullptr);
}

TEST_CASE("a timer outlives its wheel")
{
    timer first, second;
    {
        wheel<> wheel;
        wheel.add_in(first, 5ms);
        wheel.add_in(second, 100h);
    }
    CHECK(!first.pending());
    CHECK(!second.pending());
    CHECK(!first.cancel());
    wheel<> other;
    other.add_in(second, 1ms);
    CHECK(other.poll(1ms) == &second);
}

TEST_CASE("a timer is cancelled by itself, by its wheel, and once")
{
    wheel<> wheel;
    timer first, second;
    wheel.add_in(first, 5ms);
    wheel.add_in(second, 5ms);
    CHECK(first.cancel());
    CHECK(!first.cancel());
    CHECK(wheel.cancel(second));
    CHECK(!wheel.cancel(second));
    CHECK(wheel.count() == 0);
}

TEST_CASE("a pending timer is moved with what it is in")
{
    orders wheel;
    std::vector<order> some; /* the vector grows, and moves all its timers */
    for (int i = 0; i < 1000; i++) {
        some.emplace_back(i);
        wheel.add_in(some.back(), milliseconds(1 + i % 10));
        if (i % 100 == 0)
            REQUIRE(wheel.check() == nullptr);
    }
    CHECK(wheel.count() == 1000);
    some.erase(some.begin() + 10, some.end()); /* the erased timers cancel themselves */
    CHECK(wheel.count() == 10);
    CHECK(numbers_due(wheel, 10ms) == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
    CHECK(wheel.check() == nullptr);
}

TEST_CASE("a timer that was moved from is not pending")
{
    orders wheel;
    order from(1);
    wheel.add_in(from, 5ms);
    order to(std::move(from));
    CHECK(!from.pending());
    CHECK(to.pending());
    CHECK(wheel.deadline(to) == 5ms);
    CHECK(wheel.count() == 1);
    wheel.add_in(from, 6ms); /* the timer may be used again */
    CHECK(numbers_due(wheel, 10ms) == std::vector<int>{1, 1});
}

TEST_CASE("a pending timer that is assigned to is cancelled first")
{
    wheel<> wheel, other;
    timer first, second, idle;
    wheel.add_in(first, 5ms);
    other.add_in(second, 7ms);
    first = std::move(second);
    CHECK(wheel.count() == 0);
    CHECK(other.count() == 1);
    CHECK(first.pending());
    CHECK(!second.pending());
    CHECK(first.deadline_tick() == 7);
    timer &same = first;
    first = std::move(same);
    CHECK(other.count() == 1);
    first = std::move(idle);
    CHECK(!first.pending());
    CHECK(other.count() == 0);
    CHECK(other.check() == nullptr);
}

TEST_CASE("timers are found in what they are members of")
{
    struct base {
        virtual ~base() = default;
        int ballast = 0;
    };
    struct connection : base {
        timer idle, lifetime;
        int number = 7;
    };
    wheel<> wheel;
    connection one;
    wheel.add_in(one.lifetime, 5ms);
    timer *due = wheel.poll(5ms);
    REQUIRE(due == &one.lifetime);
    CHECK(&tickwheel::owner<&connection::lifetime>(*due) == &one);
    CHECK(&tickwheel::owner<&connection::idle>(one.idle) == &one);
    CHECK(tickwheel::owner<&connection::lifetime>(*due).number == 7);
}

/* ---- the wheel ------------------------------------------------------------------------------------------- */

TEST_CASE("delays and deadlines are rounded up, the present down")
{
    wheel<> wheel;
    timer one;
    wheel.add_in(one, 1500us);
    CHECK(wheel.deadline(one) == 2ms);
    CHECK(wheel.poll(1999us) == nullptr);
    CHECK(wheel.now() == 1ms);
    CHECK(wheel.poll(2ms) == &one);
    wheel.add_at(one, 5001us);
    CHECK(wheel.deadline(one) == 6ms);
    CHECK(wheel.poll(5999us) == nullptr);
    wheel.move_in(one, 1ns);
    CHECK(wheel.deadline(one) == 6ms);
    wheel.move_at(one, 7s);
    CHECK(wheel.deadline(one) == 7s);
    wheel.move_at(one, 6001us);
    CHECK(wheel.deadline(one) == 7ms);
    CHECK(wheel.poll(6999999ns) == nullptr);
    CHECK(wheel.poll(7ms) == &one);
}

TEST_CASE("what is not after now is due on the next tick, what is too far never")
{
    wheel<> wheel;
    timer past, present, never;
    CHECK(wheel.poll(10ms) == nullptr);
    wheel.add_in(past, -1h);
    wheel.add_in(present, 0ms);
    wheel.add_at(never, hours::max());
    CHECK(wheel.poll(10ms) == nullptr);
    CHECK(wheel.poll(-1h) == nullptr); /* the wheel holds its clock: it does not go back */
    CHECK(wheel.poll(11ms) == &past);
    CHECK(wheel.poll(11ms) == &present);
    CHECK(wheel.poll(milliseconds::max()) == nullptr);
    CHECK(never.deadline_tick() == UINT64_MAX);
    CHECK(wheel.deadline(never) == milliseconds::max());
    wheel.move_in(never, hours::max());
    CHECK(never.deadline_tick() == UINT64_MAX);
}

TEST_CASE("a wheel of a clock takes that clock's time")
{
    wheel<microseconds, timer, steady_clock> wheel;
    timer one;
    const steady_clock::time_point start(1234567ns);
    CHECK(wheel.poll(start) == nullptr);
    CHECK(wheel.now() == 1234us);
    wheel.add_at(one, start + 1us);
    CHECK(wheel.deadline(one) == 1236us);
    CHECK(wheel.poll(start + 1us) == nullptr); /* it is 1,235.567 us now */
    for (timer &due : wheel.due(start + 2us))
        CHECK(&due == &one);
    CHECK(!one.pending());
}

TEST_CASE("what is due comes in order, equals as they were filed")
{
    orders wheel;
    std::deque<order> some;
    for (int i = 0; i < 6; i++)
        some.emplace_back(i);
    wheel.add_in(some[0], 3s);
    wheel.add_in(some[1], 1s);
    wheel.add_in(some[2], 2s);
    wheel.add_in(some[3], 1s);
    wheel.add_in(some[4], 3s);
    wheel.add_in(some[5], 1h);
    CHECK(numbers_due(wheel, 999ms).empty());
    CHECK(numbers_due(wheel, 1h - 1ms) == std::vector<int>{1, 3, 2, 0, 4});
    CHECK(numbers_due(wheel, 1h) == std::vector<int>{5});
}

TEST_CASE("in the loop timers may be ended, moved and added, and polled for")
{
    orders wheel;
    std::list<order> some;
    for (int i = 0; i < 6; i++) {
        some.emplace_back(i);
        wheel.add_in(some.back(), 5ms);
    }
    std::vector<int> seen;
    for (order &due : wheel.due(5ms)) {
        seen.push_back(due.number);
        if (due.number == 0) {
            some.pop_back();                 /* number 5 is cancelled */
            wheel.move_in(some.back(), 1ms); /* number 4 is put off */
            some.pop_front();                /* number 0, which is due now, is destroyed */
            wheel.cancel(some.front());      /* number 1 */
        } else if (due.number == 2) {
            seen.push_back(wheel.poll(5ms)->number);
            wheel.add_in(due, 0ms); /* due again on the next tick */
        }
    }
    CHECK(seen == std::vector<int>{0, 2, 3});
    CHECK(numbers_due(wheel, 6ms) == std::vector<int>{4, 2});
}

TEST_CASE("the loop may end the wheel, and then itself")
{
    std::optional<wheel<>> gone(std::in_place);
    timer first, second;
    gone->add_in(first, 1ms);
    gone->add_in(second, 1ms);
    for (timer &due : gone->due(1ms)) {
        CHECK(&due == &first);
        gone.reset();
        break;
    }
    CHECK(!second.pending());
}

TEST_CASE("what is due works with the standard's algorithms")
{
    wheel<> wheel;
    std::deque<timer> some(3);
    for (timer &each : some)
        wheel.add_in(each, 1ms);
    const auto due = wheel.due(1ms);
    int count = 0;
    for (auto at = due.begin(); at != due.end(); ++at)
        count += at->deadline_tick() == 1;
    CHECK(count == 3);
    CHECK(due.begin() == due.end());
}

TEST_CASE("a budget is kept")
{
    wheel<> wheel;
    std::deque<timer> some(10);
    for (timer &each : some)
        wheel.add_in(each, 1ms);
    std::uint32_t budget = 4;
    timer *due = nullptr;
    for (int i = 0; i < 4; i++) {
        CHECK(wheel.poll(1ms, budget, due) == TW_POLL_DUE);
        CHECK(due == &some[static_cast<std::size_t>(i)]);
    }
    CHECK(wheel.poll(1ms, budget, due) == TW_POLL_MORE);
    CHECK(due == nullptr);
    CHECK(wheel.count() == 6);
}

TEST_CASE("next, range, count, drain")
{
    wheel<> wheel;
    timer one, two;
    CHECK(!wheel.next_bound());
    CHECK(!wheel.next_exact());
    CHECK(wheel.drain() == nullptr);
    wheel.add_in(one, 2h);
    wheel.add_in(two, 3h);
    CHECK(*wheel.next_exact() == 2h);
    CHECK(*wheel.next_bound() <= 2h);
    CHECK(wheel.range() == milliseconds::max());
    CHECK(tw_wheel_count(wheel.raw()) == 2);
    CHECK(wheel.drain() != nullptr);
    CHECK(wheel.count() == 1);
}

TEST_CASE("a timer that is filed for now fires after what is due, or in the next drain")
{
    orders wheel;
    order now{1}, due{2}, inside{3};
    wheel.add_now(now);
    wheel.add_in(due, 5ms);
    CHECK(wheel.poll(5ms) == &due);
    wheel.add_now(inside);
    CHECK(wheel.poll(5ms) == &now);
    CHECK(wheel.poll(5ms) == nullptr);
    CHECK(wheel.poll(5ms) == &inside);
}

TEST_CASE("visits see each timer, or as many as they want")
{
    orders wheel;
    std::deque<order> some;
    for (int i = 0; i < 4; i++) {
        some.emplace_back(i);
        wheel.add_in(some.back(), milliseconds(10 * (i + 1)));
    }
    int sum = 0, calls = 0;
    CHECK(!wheel.visit([&](const order &each) { sum += each.number; }));
    CHECK(sum == 6);
    CHECK(wheel.visit([&](const order &) { return ++calls == 2; }));
    CHECK(calls == 2);
    sum = 0;
    const auto add_up = [&](const order &each) { sum += each.number; };
    CHECK(!wheel.visit_until(30'999us, add_up));
    CHECK(sum == 3);
    CHECK(wheel.visit(&order::number)); /* a data member: the visit ends where it is not 0 */
    CHECK(wheel.visit(&order::pending));
    wheel.visit([](order &each) { each.number += 10; });
    CHECK(some.front().number == 10);
}

TEST_CASE("a raw timer is 32 bytes and is cancelled by hand")
{
    struct small : tw_timer {
        int number;
    };
    static_assert(sizeof(tw_timer) <= 32);
    wheel<seconds, small> wheel;
    small one{};
    one.number = 3;
    wheel.add_in(one, 1500ms);
    CHECK(wheel.deadline(one) == 2s);
    CHECK(wheel.poll(2s)->number == 3);
    wheel.add_in(one, 1s);
    CHECK(wheel.cancel(one));
    tickwheel::wheel<seconds, tw_timer> plain;
    tw_timer raw;
    tw_timer_init(&raw);
    plain.move_in(raw, 1s);
    CHECK(plain.poll(1s) == &raw);
}

/* ---- errors, geometry, moves of the wheel ---------------------------------------------------------------- */

TEST_CASE("a geometry that refuses is heard, and nothing is changed")
{
    int slots = 10; /* no constant, and no uint32_t */
    const tw_geometry ring = TW_GEOMETRY_SIMPLE(slots);
    wheel<> wheel(ring);
    timer one;
    const status refused = wheel.add_in(one, 11ms);
    CHECK(refused == TW_ERANGE);
    CHECK(!refused.ok());
    CHECK(std::string(refused.message()) == tw_strerror(TW_ERANGE));
    CHECK(!one.pending());
    CHECK(wheel.add_in(one, 9ms).ok());
    CHECK(wheel.move_at(one, 1h) == TW_ERANGE);
    CHECK(wheel.deadline(one) == 9ms);
    CHECK(wheel.range() == 10ms);
    CHECK_THROWS_AS(refused.check(), std::system_error);
    CHECK_NOTHROW(status().check());
    CHECK(status() != refused);
    const std::error_code code = refused;
    CHECK(code.message() == tw_strerror(TW_ERANGE));
    CHECK(code.category().name() == std::string("tickwheel"));
    CHECK(!std::error_code(status()));
}

TEST_CASE("a geometry that is not valid is refused with the value and the valid range")
{
    const tw_geometry bad = tickwheel::make_geometry({{1, 1}});
    std::string said;
    try {
        wheel<> wheel(bad);
    } catch (const std::system_error &error) {
        CHECK(error.code() == std::error_code(status(TW_EGEOMETRY)));
        said = error.what();
    }
    CHECK(said.find(tickwheel::explain(bad)) != std::string::npos);
    CHECK(tickwheel::explain(bad).find('1') != std::string::npos);
    status made;
    wheel<> none(bad, 0ms, made);
    CHECK(made == TW_EGEOMETRY);
    CHECK(!none);
    const std::initializer_list<tw_level> fine = {{16, 1}, {8, 16}};
    const tw_geometry good = tickwheel::make_geometry(fine, TW_OVERFLOW_ROUNDS);
    CHECK(tickwheel::explain(good).empty());
    wheel<> some(good, 12345us, made);
    CHECK(made.ok());
    CHECK(some.now() == 12ms);
    CHECK(tw_wheel_levels(some.raw()) == 2);
}

TEST_CASE("more levels than there can be are refused, not cut off")
{
    static const tw_level all[TW_GEOMETRY_LEVELS_MAX + 1] = {};
    tw_geometry geometry{};
    geometry = tickwheel::make_geometry({all[0]});
    CHECK(geometry.levels == 1);
    /* an initializer list of 65 levels */
    geometry = tickwheel::make_geometry(
        {all[0], all[0], all[0], all[0], all[0], all[0], all[0], all[0], all[0], all[0], all[0],
         all[0], all[0], all[0], all[0], all[0], all[0], all[0], all[0], all[0], all[0], all[0],
         all[0], all[0], all[0], all[0], all[0], all[0], all[0], all[0], all[0], all[0], all[0],
         all[0], all[0], all[0], all[0], all[0], all[0], all[0], all[0], all[0], all[0], all[0],
         all[0], all[0], all[0], all[0], all[0], all[0], all[0], all[0], all[0], all[0], all[0],
         all[0], all[0], all[0], all[0], all[0], all[0], all[0], all[0], all[0], all[0]});
    CHECK(geometry.levels == 65);
    CHECK(tickwheel::explain(geometry).find("65") != std::string::npos);
}

TEST_CASE("a wheel is moved with its timers")
{
    orders first;
    order one(1), two(2);
    first.add_in(one, 5ms);
    orders second(std::move(first));
    CHECK(!first);
    CHECK(second);
    second.add_in(two, 5ms);
    CHECK(numbers_due(second, 5ms) == std::vector<int>{1, 2});
    second.add_in(one, 5ms);
    orders third;
    third.add_in(two, 1ms);
    third = std::move(second);
    CHECK(!second);
    CHECK(!two.pending()); /* its wheel has ended */
    CHECK(one.pending());
    CHECK(third.count() == 1);
    orders &same = third;
    third = std::move(same);
    CHECK(third);
    CHECK(numbers_due(third, 10ms) == std::vector<int>{1});
    second = orders(); /* an empty wheel may be assigned to */
    second.add_in(two, 1ms);
    CHECK(numbers_due(second, 1ms) == std::vector<int>{2});
}
