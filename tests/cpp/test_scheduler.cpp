/* SPDX-License-Identifier: MIT
 *
 * The scheduler of tickwheel.hpp on a virtual clock: each call, and each way in which a callable ends.
 */
#include "support.hpp"

#include "tests/support/eventually.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <stdexcept>
#include <unistd.h>
#include <unordered_set>
#include <vector>

using namespace std::chrono;
using namespace std::chrono_literals;
using tickwheel::handed;
using tickwheel::options;
using tickwheel::repeat;
using tickwheel::scheduler;
using tickwheel::status;
using tickwheel::task;
using tickwheel::task_id;
using point = tickwheel::scheduler::time_point;

static_assert(!std::is_copy_constructible_v<scheduler> && std::is_nothrow_move_constructible_v<scheduler>);
static_assert(std::is_trivially_copyable_v<task_id> && sizeof(task_id) == sizeof(std::uint64_t));

static options virtual_time()
{
    return options().virtual_clock();
}

/* A callable that counts its calls. Its token counts how many copies of it are alive. */
static auto counting(int &calls)
{
    return [&calls, mine = token()] {
        REQUIRE(mine.sound());
        calls++;
    };
}

/* ---- callables ------------------------------------------------------------------------------------------- */

TEST_CASE("a small callable is kept in place, any other in one box")
{
    scheduler scheduler(virtual_time());
    int calls = 0, *other = &calls;
    boxes = 0;
    scheduler.add_in(1ms, [&calls] { calls++; });
    scheduler.add_in(1ms, [] {});
    scheduler.add_in(
        1ms, +[] {});
    scheduler.add_in(1ms, [&calls](const task &) { calls++; });
    scheduler.put_in("a key", 1ms, [&calls] { calls++; });
    CHECK(boxes == 0);
    scheduler.add_in(1ms, [&calls, other] { *other += &calls == other; });
    CHECK(boxes == 1);
    scheduler.add_in(1ms, counting(calls));
    CHECK(boxes == 2);
    scheduler.advance(1ms);
    CHECK(calls == 5);
    CHECK(token::live == 0);
}

struct pair_of {
    int whole;
    short part;
    bool operator==(const pair_of &other) const
    {
        return whole == other.whole && part == other.part;
    }
};

/* Schedules a callable that holds a value, runs it, and checks that it had this value. */
template <class T> static void hold(scheduler &scheduler, T value)
{
    static T seen;
    seen = T();
    scheduler.add_in(1ms, [value] { seen = value; });
    scheduler.advance(1ms);
    CHECK((seen == value));
}

/* g++ with optimisation once took an object that was stored as an int and loaded as a pointer for two
 * objects. */
TEST_CASE("a small callable that holds no pointer has what it was given")
{
    scheduler scheduler(virtual_time());
    boxes = 0;
    hold<char>(scheduler, 'x');
    hold<short>(scheduler, -2);
    hold<int>(scheduler, 3);
    hold<unsigned long>(scheduler, 0xfedcba9876543210);
    hold<float>(scheduler, 1.5F);
    hold<double>(scheduler, -2.5);
    hold<pair_of>(scheduler, {7, 8});
    int seen = 0;
    scheduler.put_in("key", 1ms, [n = 5, &seen] { seen += n; }); /* a box, for comparison */
    scheduler.advance(1ms);
    CHECK(seen == 5);
    CHECK(boxes == 1);
}

TEST_CASE("a callable with a state of its own keeps it from call to call")
{
    scheduler scheduler(virtual_time());
    std::vector<int> seen, *to = &seen;
    scheduler.add_every(1ms, [to, n = 0]() mutable { to->push_back(n++); });
    static int last;
    scheduler.add_every(1ms, [n = 10]() mutable { last = n++; }); /* small, but every call changes it */
    scheduler.advance(3ms);
    CHECK(seen == std::vector<int>{0, 1, 2});
    CHECK(last == 12);
}

struct greeter {
    int *calls;
    void greet() const
    {
        ++*calls;
    }
    void operator()() const
    {
        *calls += 10;
    }
};
static int plain_calls;
static void plain()
{
    plain_calls++;
}

TEST_CASE("anything that can be called will do, given by value or by name")
{
    scheduler scheduler(virtual_time());
    int calls = 0;
    const greeter one{&calls};
    std::function<void()> wrapped = [&calls] { calls += 100; };
    scheduler.add_in(1ms, one);
    scheduler.add_in(1ms, wrapped);
    scheduler.add_in(1ms, std::bind(&greeter::greet, &one));
    scheduler.add_in(1ms, plain);
    scheduler.add_in(1ms, &plain);
    scheduler.add_in(1ms, [](auto &&...given) { plain_calls += sizeof...(given) == 1 ? 10 : 100; });
    scheduler.advance(1ms);
    CHECK(calls == 111);
    CHECK(plain_calls == 12);
    CHECK(wrapped != nullptr);
}

TEST_CASE("a callable that wants much room gets it")
{
    struct alignas(128) wide {
        char bytes[256];
    };
    scheduler scheduler(virtual_time());
    wide big{};
    big.bytes[255] = 7;
    int seen = 0;
    scheduler.add_in(
        1ms, [big, &seen] { seen = reinterpret_cast<std::uintptr_t>(&big) % 128 == 0 ? big.bytes[255] : -1; });
    scheduler.advance(1ms);
    CHECK(seen == 7);
}

/* ---- how a callable ends --------------------------------------------------------------------------------- */

TEST_CASE("a callable is destroyed after its last call")
{
    scheduler scheduler(virtual_time());
    int once = 0, thrice = 0;
    scheduler.add_in(2ms, counting(once));
    scheduler.add_every(repeat(1ms).times(3), counting(thrice));
    CHECK(token::live == 2);
    scheduler.advance(2ms);
    CHECK(once == 1);
    CHECK(thrice == 2);
    CHECK(token::live == 1);
    scheduler.advance(1s);
    CHECK(thrice == 3);
    CHECK(token::live == 0);
}

TEST_CASE("a callable is destroyed when its task is cancelled")
{
    scheduler scheduler(virtual_time());
    int calls = 0;
    const task_id first = scheduler.add_in(1ms, counting(calls)),
                  second = scheduler.add_every(1ms, counting(calls));
    CHECK(token::live == 2);
    CHECK(scheduler.cancel(first) == TW_CANCEL_CANCELLED);
    CHECK(token::live == 1);
    CHECK(scheduler.cancel(first) == TW_CANCEL_GONE);
    tw_cancel found = TW_CANCEL_GONE;
    CHECK(scheduler.cancel_wait(second, &found).ok());
    CHECK(found == TW_CANCEL_CANCELLED);
    CHECK(token::live == 0);
    scheduler.advance(1s);
    CHECK(calls == 0);
}

TEST_CASE("a callable that cancels or moves itself lives to the end of its call")
{
    scheduler scheduler(virtual_time());
    int calls = 0;
    scheduler.add_every(1ms, [&calls, mine = token()](const task &self) {
        self.cancel();
        CHECK(mine.sound());
        calls++;
    });
    scheduler.advance(5ms);
    CHECK(calls == 1);
    CHECK(token::live == 0);
    scheduler.add_in(1ms, [&calls, mine = token()](const task &self) {
        if (++calls < 5)
            CHECK(self.move_in(1ms).ok());
        CHECK(mine.sound());
    });
    scheduler.advance(3ms);
    CHECK(calls == 4);
    CHECK(token::live == 1);
    scheduler.advance(1s);
    CHECK(calls == 5);
    CHECK(token::live == 0);
}

TEST_CASE("a callable is destroyed when its key is set anew or removed")
{
    scheduler scheduler(virtual_time());
    int first = 0, second = 0;
    scheduler.put_in("order 1", 5ms, counting(first));
    scheduler.put_every("order 1", repeat(5ms), counting(second));
    CHECK(token::live == 1);
    scheduler.advance(5ms);
    CHECK(first == 0);
    CHECK(second == 1);
    scheduler.put_in("order 1", 5ms, plain); /* plain needs no box */
    CHECK(token::live == 0);
    scheduler.put_at("order 1", scheduler.now() + 5ms, counting(first));
    CHECK(token::live == 1);
    CHECK(scheduler.cancel("order 1") == TW_CANCEL_CANCELLED);
    CHECK(scheduler.cancel("order 1") == TW_CANCEL_GONE);
    CHECK(token::live == 0);
}

TEST_CASE("a callable whose key is set anew in its call lives to the end of it")
{
    scheduler scheduler(virtual_time());
    int calls = 0;
    for (const std::uint64_t times : {UINT64_C(1), UINT64_C(2)}) {
        scheduler.put_every("k", repeat(1ms).times(times), [&, mine = token()](const task &self) {
            scheduler.put_in(self.key(), 1ms, counting(calls));
            scheduler.put_in(self.key(), 1ms, counting(calls)); /* so the first counting() never runs */
            CHECK(token::live == 2);
            CHECK(mine.sound());
            calls += 10;
        });
        scheduler.advance(1ms);
        CHECK(token::live == 1);
        scheduler.advance(10ms);
        CHECK(token::live == 0);
    }
    CHECK(calls == 22);
}

TEST_CASE("a key set anew and removed in its call leaves nothing")
{
    scheduler scheduler(virtual_time());
    int calls = 0;
    scheduler.put_every("k", repeat(1ms), [&, mine = token()](const task &self) {
        scheduler.put_in(self.key(), 1ms, counting(calls));
        CHECK(scheduler.cancel(self.key()) == TW_CANCEL_CANCELLED);
        CHECK(token::live == 1);
        CHECK(scheduler.cancel(self.key()) == TW_CANCEL_AT_WORK);
        CHECK(mine.sound());
    });
    scheduler.advance(10ms);
    CHECK(calls == 0);
    CHECK(token::live == 0);
    CHECK(scheduler.key_count() == 0);
}

TEST_CASE("what is drained is destroyed, after whoever it is handed to has run it")
{
    scheduler scheduler(virtual_time());
    int calls = 0;
    scheduler.add_in(1ms, counting(calls));
    scheduler.put_in("k", 1ms, counting(calls));
    scheduler.add_in(1ms, [&calls] { calls++; });
    std::uint64_t drained = 0;
    const auto visit = [&](const handed &one) {
        CHECK(one.runnable());
        one.run();
        CHECK((one.key().empty() || one.key() == "k"));
        CHECK(one.due() == point(1ms));
    };
    CHECK(scheduler.drain(visit, &drained).ok());
    CHECK(drained == 3);
    CHECK(calls == 3);
    CHECK(token::live == 0);
    scheduler.add_in(1ms, counting(calls));
    CHECK(token::live == 1);
    std::uint64_t dropped = 0;
    CHECK(scheduler.drain(&dropped).ok());
    CHECK(dropped == 1);
    CHECK(token::live == 0);
    scheduler.advance(1s);
    CHECK(calls == 3);
}

TEST_CASE("what is stopped is destroyed, and a call under way keeps its callable")
{
    int calls = 0, handed_over = 0;
    for (const bool with_visit : {true, false}) {
        scheduler scheduler(virtual_time());
        scheduler.add_every(1ms, [&, mine = token()] {
            const auto visit = [&](const handed &one) {
                handed_over++;
                CHECK(one.runnable() == (one.key() == "k"));
            };
            const std::uint64_t n = with_visit ? scheduler.stop(visit) : scheduler.stop();
            CHECK(n == 2);
            CHECK(token::live == 1);
            CHECK(mine.sound());
            calls++;
        });
        scheduler.put_in("k", 1h, counting(calls));
        scheduler.advance(1s);
        CHECK(token::live == 0);
    }
    CHECK(calls == 2);
    CHECK(handed_over == 2);
}

TEST_CASE("what is pending when the scheduler ends is destroyed")
{
    int calls = 0;
    {
        scheduler scheduler(virtual_time());
        scheduler.add_in(1ms, counting(calls));
        scheduler.add_every(1ms, counting(calls));
        scheduler.put_in("k", 1ms, counting(calls));
        CHECK(token::live == 3);
    }
    CHECK(token::live == 0);
    CHECK(calls == 0);
}

TEST_CASE("a callable may hold the last of what keeps others pending")
{
    scheduler scheduler(virtual_time());
    int calls = 0;
    const task_id other = scheduler.add_in(1h, counting(calls));
    struct canceller {
        tickwheel::scheduler *with;
        task_id id;
        bool armed = true;
        canceller(tickwheel::scheduler *with_, task_id id_) : with(with_), id(id_)
        {
        }
        canceller(canceller &&from) noexcept : with(from.with), id(from.id)
        {
            from.armed = false;
        }
        ~canceller()
        {
            if (armed)
                with->cancel(id); /* a destructor may call the scheduler: no lock is held */
        }
        void operator()() const
        {
        }
    };
    scheduler.add_in(1ms, canceller(&scheduler, other));
    scheduler.advance(1ms);
    CHECK(token::live == 0);
    CHECK(scheduler.count() == 0);
}

/* ---- callables that are not taken ------------------------------------------------------------------------ */

TEST_CASE("a callable that is refused is destroyed at once, and nothing is changed")
{
    scheduler scheduler(virtual_time().max_pending(1));
    int calls = 0;
    scheduler.put_in("k", 1ms, counting(calls));
    CHECK(scheduler.add_in(1ms, counting(calls)) == TW_EFULL);
    CHECK(!scheduler.add_in(1ms, counting(calls)).id());
    CHECK(scheduler.put_in("other", 1ms, counting(calls)) == TW_EFULL);
    CHECK(scheduler.add_every(1us, counting(calls)) == TW_EINVAL);
    CHECK(scheduler.put_every("k", 1us, counting(calls)) == TW_EINVAL);
    CHECK(scheduler.put_in("", 1ms, counting(calls)) == TW_EINVAL);
    CHECK(token::live == 1);
    scheduler.advance(1ms);
    CHECK(calls == 1);
    scheduler.stop();
    CHECK(scheduler.add_in(1ms, counting(calls)) == TW_ESTOPPED);
    CHECK(scheduler.put_in("k", 1ms, counting(calls)) == TW_ESTOPPED);
    CHECK(token::live == 0);
}

TEST_CASE("without memory for a box nothing is added, and small ones still are")
{
    scheduler scheduler(virtual_time());
    int calls = 0;
    no_boxes = true;
    CHECK(scheduler.add_in(1ms, counting(calls)) == TW_ENOMEM);
    CHECK(scheduler.put_in("k", 1ms, counting(calls)) == TW_ENOMEM);
    CHECK(scheduler.add_in(1ms, [&calls] { calls++; }).ok());
    no_boxes = false;
    CHECK(token::live == 0);
    CHECK(scheduler.count() == 1);
}

TEST_CASE("a callable that throws when it is copied is not added")
{
    struct thrower {
        token mine;
        thrower() = default;
        thrower(const thrower &)
        {
            throw std::runtime_error("copied");
        }
        void operator()() const
        {
        }
    };
    scheduler scheduler(virtual_time());
    const thrower one;
    CHECK_THROWS_AS(scheduler.add_in(1ms, one), std::runtime_error);
    CHECK(token::live == 1);
    CHECK(scheduler.count() == 0);
}

TEST_CASE("an exception that leaves a callable ends the program")
{
    const pid_t child = fork();
    if (child == 0) {
        std::set_terminate([] { _exit(42); });
        scheduler scheduler(virtual_time());
        scheduler.add_in(1ms, [] { throw std::runtime_error("out"); });
        try {
            scheduler.advance(1ms);
        } catch (...) {
            _exit(43);
        }
        _exit(0);
    }
    const int how = eventually_exited(child);
    CHECK(WIFEXITED(how));
    CHECK(WEXITSTATUS(how) == 42);
}

/* ---- the calls ------------------------------------------------------------------------------------------- */

TEST_CASE("delays are rounded up to the tick, and nothing runs early")
{
    scheduler scheduler(virtual_time());
    std::vector<nanoseconds> ran;
    const auto note = [&] { ran.push_back(scheduler.now().time_since_epoch()); };
    scheduler.add_in(1ns, note);
    scheduler.add_in(1500us, note);
    scheduler.add_at(point(5ms), note);
    scheduler.add_at(tickwheel::scheduler_clock::time_point(7ms) + 1ns, note);
    scheduler.add_in(-1h, note);
    scheduler.add_in(hours::max(), note);
    const std::chrono::time_point<tickwheel::scheduler_clock, hours> last(hours::max());
    scheduler.add_at(last, note);
    scheduler.advance(10h);
    CHECK(ran == std::vector<nanoseconds>{1ms, 1ms, 2ms, 5ms, 8ms});
    CHECK(scheduler.count() == 2);
}

TEST_CASE("repeats run when they say")
{
    scheduler scheduler(virtual_time());
    std::vector<int> ran;
    const auto note = [&ran, &scheduler](int who) {
        return [&ran, &scheduler, who] {
            ran.push_back(who * 1000 + static_cast<int>(scheduler.now().time_since_epoch() / 1ms));
        };
    };
    scheduler.add_every(10ms, note(1));
    scheduler.add_every(repeat(10ms).first(0ms).times(2), note(2));
    scheduler.add_every(repeat(20ms).first_at(point(5ms)), note(3));
    scheduler.add_every(repeat(100ms).first(1h).first_at(point()), note(4));
    scheduler.advance(25ms);
    std::sort(ran.begin(), ran.end());
    CHECK(ran == std::vector<int>{1010, 1020, 2001, 2010, 3005, 3025, 4001});
}

TEST_CASE("missed periods follow the policy")
{
    int calls = 0;
    std::uint64_t missed = 0;
    scheduler scheduler(virtual_time().clock(TW_SCHED_CLOCK_VIRTUAL));
    scheduler.add_every(repeat(1ms).missed(TW_MISSED_COALESCE), [&](const task &self) {
        calls++;
        missed += self.missed_periods();
        CHECK(self.period() == 1ms);
        CHECK(self.left() == TW_FOREVER);
        CHECK(self.raw().missed == TW_MISSED_COALESCE);
    });
    scheduler.advance(10ms);
    CHECK(calls == 10);
    CHECK(missed == 0);
}

TEST_CASE("a task knows itself, and can be looked up")
{
    scheduler scheduler(virtual_time());
    task_id id;
    bool same = false;
    id = scheduler.add_in(5ms, [&](const task &self) {
        same = self.id() == id && self.due() == point(5ms) && self.late() == 0ns && self.key().empty();
    });
    CHECK(id);
    CHECK(scheduler.get(id)->due_ns == 5000000);
    CHECK(scheduler.move_in(id, 5ms).ok());
    CHECK(scheduler.move_at(id, point(4999001ns)).ok());
    CHECK(scheduler.get(id)->due_ns == 4999001);
    CHECK(scheduler.move_at(id, point(5ms)).ok());
    scheduler.advance(5ms);
    CHECK(same);
    CHECK(!scheduler.get(id));
    CHECK(scheduler.move_in(id, 1ms) == TW_EGONE);
    CHECK(!scheduler.get(task_id()));
    CHECK(std::unordered_set<task_id>{id, id, task_id()}.size() == 2);
    CHECK(task_id() < id);
    CHECK(task_id(7).value() == 7);
    CHECK(task_id(7) != task_id(8));
}

TEST_CASE("keys are any bytes; they can be moved, found and counted")
{
    scheduler scheduler(virtual_time());
    using namespace std::string_view_literals;
    std::string seen;
    const auto note = [&](const task &self) { seen += self.key(); };
    scheduler.put_in("a\0b"sv, 5ms, note);
    scheduler.put_in("a\0c"sv, 6ms, note);
    CHECK(scheduler.key_count() == 2);
    CHECK(scheduler.get("a\0b"sv)->due_ns == 5000000);
    CHECK(!scheduler.get("a"));
    CHECK(scheduler.move_in("a\0b"sv, 7ms).ok());
    CHECK(scheduler.move_at("a\0c"sv, point(8ms)).ok());
    CHECK(scheduler.move_in("a", 7ms) == TW_EGONE);
    scheduler.advance(10ms);
    CHECK(seen == "a\0ba\0c"sv);
}

TEST_CASE("added is an id or an error")
{
    scheduler scheduler(virtual_time());
    const tickwheel::added good = scheduler.add_in(1ms, plain);
    CHECK(good.ok());
    CHECK(good.value() == good.id());
    scheduler.stop();
    const tickwheel::added bad = scheduler.add_in(1ms, plain);
    CHECK_THROWS_WITH(bad.value("orders"), doctest::Contains(tw_sched_strerror(TW_ESTOPPED)));
    CHECK(bad == TW_ESTOPPED);
    const status copy = bad; /* it knows the errors of the scheduler still */
    CHECK(copy.message() == std::string(tw_sched_strerror(TW_ESTOPPED)));
    const std::error_code code = copy;
    CHECK(code == tickwheel::sched_status(TW_ESTOPPED));
    CHECK(code.category() == tickwheel::sched_category());
    CHECK(code.category().name() == std::string("tickwheel.sched"));
}

TEST_CASE("an error that the scheduler shares with the wheel is of the wheel's category")
{
    const std::error_code shared = tickwheel::sched_status(TW_ENOMEM);
    CHECK(shared == std::error_code(status(TW_ENOMEM)));
    CHECK(shared.message() == tw_strerror(TW_ENOMEM));
}

TEST_CASE("a scheduler is moved with its tasks")
{
    scheduler first(virtual_time());
    int calls = 0;
    first.add_in(1ms, counting(calls));
    scheduler second(std::move(first));
    CHECK(!first);
    second.add_in(1ms, counting(calls));
    scheduler third(virtual_time());
    third.add_in(1ms, counting(calls));
    third = std::move(second);
    CHECK(!second);
    CHECK(token::live == 2); /* the first scheduler of `third` has ended, with its task */
    scheduler &same = third;
    third = std::move(same);
    third.advance(1ms);
    CHECK(calls == 2);
    CHECK(token::live == 0);
}

TEST_CASE("time, next and statistics")
{
    scheduler scheduler(options().virtual_clock(point(1h)).tick(10ms));
    CHECK(scheduler.now() == point(1h));
    CHECK(!scheduler.next_bound());
    CHECK(scheduler.reserve(100).ok());
    scheduler.add_in(1ms, plain);
    CHECK(*scheduler.next_bound() == point(1h + 10ms));
    CHECK(scheduler.advance_to(point(1h - 1ns)) == TW_EINVAL);
    CHECK(scheduler.advance_to(point(1h + 9ms)).ok());
    CHECK(scheduler.stats().fired == 0);
    CHECK(scheduler.advance(duration<std::int64_t, std::pico>(1000000999)).ok());
    CHECK(scheduler.now() == point(1h + 10ms));
    CHECK(scheduler.stats().fired == 1);
    CHECK(scheduler.count() == 0);
}

/* ---- options --------------------------------------------------------------------------------------------- */

static std::string what_of(const options &given)
{
    try {
        scheduler scheduler(given);
    } catch (const std::system_error &error) {
        const bool of_sched = error.code() == tickwheel::sched_status(TW_ECLOCK);
        CHECK(error.code().category() == (of_sched ? tickwheel::sched_category() : tickwheel::category()));
        return error.what();
    }
    return "";
}

TEST_CASE("options that are wrong are refused by name, value and range")
{
    CHECK(what_of(options().tick(1ns)).find("tick_ns is 1: expected 1,000 to") != std::string::npos);
    CHECK(what_of(options().tick(2h)).find("tick_ns is 7200000000000") != std::string::npos);
    CHECK(what_of(options().shards(65)).find("shards is 65: expected 1 to 64") != std::string::npos);
    CHECK(what_of(options().workers(1025)).find("workers is 1025") != std::string::npos);
    CHECK(what_of(virtual_time().workers(1)).find("workers is 1: expected 0") != std::string::npos);
    CHECK(virtual_time().explain().empty());
    CHECK(!options().shards(65).explain().empty());
    status made;
    scheduler none(options().shards(65), made);
    CHECK(made == TW_EINVAL);
    CHECK(!none);
}

static bool no_boottime_timers;

extern "C" {
int __real_timerfd_create(int clock, int flags);
int __wrap_timerfd_create(int clock, int flags);
int __wrap_timerfd_create(int clock, int flags)
{
    if (!no_boottime_timers || clock != CLOCK_BOOTTIME)
        return __real_timerfd_create(clock, flags);
    errno = EINVAL;
    return -1;
}
}

TEST_CASE("a clock that the system lacks is named")
{
    no_boottime_timers = true;
    CHECK(what_of(options().clock(TW_SCHED_CLOCK_BOOTTIME)).find("no timers on CLOCK_BOOTTIME") !=
          std::string::npos);
    status made;
    scheduler named(options().clock(TW_SCHED_CLOCK_BOOTTIME), made);
    CHECK(made == TW_ECLOCK);
    scheduler other;
    CHECK(other.stats().clock == TW_SCHED_CLOCK_MONOTONIC);
    no_boottime_timers = false;
}

static void *counted_memory(void *count, void *old, std::size_t size)
{
    ++*static_cast<int *>(count);
    if (old == nullptr)
        return std::malloc(size);
    std::free(old);
    return nullptr;
}

static void note_id(void *to, tw_sched *, std::uint64_t id)
{
    *static_cast<std::uint64_t *>(to) = id;
}

TEST_CASE("options reach the scheduler")
{
    int blocks = 0;
    std::uint64_t sent = 0;
    const tw_geometry simple = TW_GEOMETRY_SIMPLE(16);
    scheduler scheduler(
        virtual_time().geometry(simple).shards(2).memory(counted_memory, &blocks).execute(note_id, &sent));
    CHECK(blocks > 0);
    CHECK(scheduler.add_in(1h, plain) == TW_ERANGE);
    int calls = 0;
    const task_id id = scheduler.add_in(1ms, counting(calls));
    scheduler.advance(1ms);
    CHECK(sent == id.value());
    CHECK(calls == 0);
    CHECK(token::live == 1);
    scheduler.run(id);
    CHECK(calls == 1);
    CHECK(token::live == 0);
    scheduler.add_in(1ms, counting(calls));
    scheduler.advance(1ms);
    scheduler.drain(); /* the task was sent, but has not run yet */
    CHECK(token::live == 0);
    scheduler.run(task_id(sent));
    CHECK(calls == 1);
}

struct told {
    int late = 0, slow = 0;
};

TEST_CASE("the hooks are told of late and slow callbacks")
{
    told told;
    const auto late = [](void *to, const tw_task *, std::uint64_t) { static_cast<struct told *>(to)->late++; };
    const auto slow = [](void *to, const tw_task *, std::uint64_t) { static_cast<struct told *>(to)->slow++; };
    scheduler scheduler(options().on_late(1ns, late).on_slow(1ms, slow).hook_arg(&told));
    std::atomic<int> calls{0};
    scheduler.add_in(1ms, [&calls, &scheduler] {
        const auto began = scheduler.now();
        EVENTUALLY(scheduler.now() > began + 1ms);
        calls++;
    });
    EVENTUALLY(calls == 1);
    scheduler.stop();
    CHECK(told.late == 1);
    CHECK(told.slow == 1);
}
