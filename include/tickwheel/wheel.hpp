/* SPDX-License-Identifier: MIT
 *
 * tickwheel/wheel.hpp - wheel.h for C++17: timers that cancel themselves, durations, geometries, errors as
 * objects.
 *
 * Headers only. A complete program, which links libtickwheel:
 * `c++ -std=c++17 first.cpp $(pkg-config --cflags --libs tickwheel)`.
 *
 *     #include <cstdio>
 *     #include <tickwheel/wheel.hpp>
 *
 *     struct order : tickwheel::timer { // pending while the order waits for its payment
 *         explicit order(int n) : number(n) {}
 *         int number;
 *     };
 *
 *     int main()
 *     {
 *         using namespace std::chrono_literals;
 *         tickwheel::wheel<std::chrono::milliseconds, order> wheel; // a tick is a millisecond, and now is 0
 *         order first(1), second(2);
 *         wheel.add_in(first, 30min);
 *         wheel.add_in(second, 30min);
 *         first.cancel(); // paid
 *         for (order &unpaid : wheel.due(30min))
 *             std::printf("order %d was not paid\n", unpaid.number);
 *     }
 *
 * A call does, costs and fails as wheel.h says at the C function of its name. The comments here describe the
 * additions of C++. In short:
 *   - add_in(), add_at(), add_now(), move_in(), move_at(), cancel(): tw_wheel_add_in() and so on
 *   - poll(now), due(now): tw_wheel_poll(); poll(now, budget, timer): tw_wheel_poll_budget()
 *   - drain(), next_bound(), next_exact(): tw_wheel_drain() and so on
 *   - count(), now(), range(), check(), visit(), visit_until(): tw_wheel_count() and so on
 *
 * Conventions, stated once
 *   Time      Durations of integers. Delays and deadlines are rounded up, `now` is rounded down, so add_at()
 *             and move_at() are never early. add_in() and move_in() count from now(), which was rounded down:
 *             on a real clock they may be early by less than a tick. A negative duration is 0. A duration
 *             that is too long is the end of time: hours::max() is "never". Durations of floating point do not
 *             compile, because their own arithmetic may round down: write std::chrono::ceil<milliseconds>(x).
 *             Example: with ticks of a millisecond, a delay of 1,500 us is 2 ticks, and a poll at 1,500 us is
 *             a poll at tick 1.
 *   Errors    Calls return a `status`, or an `added`, which has a status. They throw nothing, except an
 *             exception from copying a callable, and then they have changed nothing. Calls that change a
 *             wheel or a scheduler by calling C alone are mostly not noexcept: the compiler cannot know that
 *             C throws nothing, and would guard the call. Only constructors throw (std::system_error), and
 *             status::check() where the program calls it. Each constructor that can fail also has a form with
 *             a `status &`, which does not throw. An exception that leaves a callable while it is called,
 *             also by visit() and drain(), ends the program (std::terminate). With -fno-exceptions, an error
 *             that would be thrown is printed, and the program aborts. -fno-rtti changes nothing.
 *   Requires  As in wheel.h. The duties that these headers alone can see are asserted in a program that is
 *             compiled with -DTW_DEBUG=1, also where NDEBUG is defined.
 *   Moved     An object that was moved from is empty. It may be assigned to or destroyed, and tested with
 *             `if`.
 */
#ifndef TICKWHEEL_WHEEL_HPP
#define TICKWHEEL_WHEEL_HPP

#include <tickwheel/wheel.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <ratio>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#if defined(TW_DEBUG) && TW_DEBUG >= 1
namespace tickwheel::detail
{
/* Ends the program as a failed assert() does, also where NDEBUG is defined. */
[[noreturn]] inline void fail(const char *condition, const char *file, int line) noexcept
{
    std::fprintf(stderr, "%s:%d: Assertion `%s' failed.\n", file, line, condition);
    std::abort();
}
} // namespace tickwheel::detail
#define TICKWHEEL_ASSERT(condition)                                                                            \
    ((condition) ? static_cast<void>(0) : ::tickwheel::detail::fail(#condition, __FILE__, __LINE__))
#else
#define TICKWHEEL_ASSERT(condition) static_cast<void>(0)
#endif

namespace tickwheel
{

/* ---- errors ------------------------------------------------------------------------------------------- */

namespace detail
{

/* The errors of one library. */
class error_category final : public std::error_category
{
  public:
    error_category(const char *of, const char *(*strerror)(int)) noexcept : name_(of), text_(strerror)
    {
    }
    const char *name() const noexcept override
    {
        return name_;
    }
    std::string message(int error) const override
    {
        return text_(error);
    }
    const char *text(int error) const noexcept
    {
        return text_(error);
    }

  private:
    const char *name_;
    const char *(*text_)(int);
};

inline const error_category &wheel_errors() noexcept
{
    static const error_category instance("tickwheel", tw_strerror);
    return instance;
}

[[noreturn]] inline void raise(const std::error_code &error, const char *what)
{
#if defined(__cpp_exceptions)
    throw std::system_error(error, what);
#else
    std::fprintf(stderr, "tickwheel: %s: %s\n", what, error.message().c_str());
    std::abort();
#endif
}

} // namespace detail

/* The category of the errors of wheel.h. */
inline const std::error_category &category() noexcept
{
    return detail::wheel_errors();
}

/* The result of a call: 0 or a TW_E* code. Example: `if (wheel.add_in(timer, 1h) == TW_ERANGE)`. A status of a
 * scheduler or of a store is a sched_status or a store_status first, which knows the errors of its library. It
 * knows them still when it was copied to a status. */
class status
{
  public:
    constexpr status() noexcept = default;
    constexpr status(int code) noexcept : code_(code)
    {
    }
    constexpr bool ok() const noexcept
    {
        return code_ == 0;
    }
    constexpr int code() const noexcept
    {
        return code_;
    }
    const char *message() const noexcept
    {
        return errors_().text(code_);
    }
    operator std::error_code() const noexcept
    {
        return {code_, errors_()};
    }
    /* Throws std::system_error, with `what` in its text, unless the status is ok. */
    void check(const char *what = "tickwheel") const
    {
        if (code_ != 0)
            detail::raise(*this, what);
    }
    friend constexpr bool operator==(status a, status b) noexcept
    {
        return a.code_ == b.code_;
    }
    friend constexpr bool operator!=(status a, status b) noexcept
    {
        return a.code_ != b.code_;
    }

  protected:
    using category_function = const detail::error_category &(*)();

    constexpr status(int error, category_function errors) noexcept : code_(error), errors_(errors)
    {
    }

  private:
    int code_ = 0;
    category_function errors_ = detail::wheel_errors; /* of the library whose error the code is */
};

/* ---- durations ---------------------------------------------------------------------------------------- */

namespace detail
{

constexpr std::uint64_t time_end = std::numeric_limits<std::uint64_t>::max();

constexpr std::uint64_t sum(std::uint64_t a, std::uint64_t b) noexcept
{
    return a > time_end - b ? time_end : a + b;
}

constexpr std::uint64_t product(std::uint64_t a, std::uint64_t b) noexcept
{
    return a > time_end / b ? time_end : a * b;
}

enum class round { up, down };

/* A duration in units of Unit, from 0 to the end of time. With n = whole * den + rest, n * num / den is
 * whole * num + rest * num / den. Only the first product can be too large. */
template <class Unit, round How, class Rep, class Period>
constexpr std::uint64_t count(std::chrono::duration<Rep, Period> time) noexcept
{
    static_assert(
        std::is_integral_v<Rep>,
        "tickwheel: a duration of floating point may have been rounded down, and a timer would be early: "
        "convert it with std::chrono::ceil");
    static_assert(sizeof(Rep) <= sizeof(std::uint64_t), "tickwheel: durations have at most 64 bits");
    using factor = std::ratio_divide<Period, typename Unit::period>;
    constexpr auto num = static_cast<std::uint64_t>(factor::num), den = static_cast<std::uint64_t>(factor::den);
    static_assert(den <= time_end / num, "tickwheel: these two units of time do not go together");
    if (!(time.count() > 0))
        return 0;
    const auto n = static_cast<std::uint64_t>(time.count());
    const std::uint64_t rest = n % den * num;
    return sum(product(n / den, num), How == round::up ? rest / den + (rest % den != 0) : rest / den);
}

/* `n` units as a duration. A number that the duration cannot hold becomes the longest duration. */
template <class Unit> constexpr Unit duration_of(std::uint64_t n) noexcept
{
    using rep = typename Unit::rep;
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<rep>::max());
    return n > most ? Unit::max() : Unit(static_cast<rep>(n));
}

} // namespace detail

/* ---- geometry ----------------------------------------------------------------------------------------- */

/* A geometry of your own: the slots of each level, and the ticks in a slot, from level 0 upwards. The presets
 * of wheel.h initialise a geometry too: `const tw_geometry hashed = TW_GEOMETRY_HASHED(512);`.
 * Example: `make_geometry({{1024, 1}, {256, 512}}, TW_OVERFLOW_ROUNDS)`. */
inline tw_geometry make_geometry(std::initializer_list<tw_level> levels,
                                 tw_overflow overflow = TW_OVERFLOW_REJECT) noexcept
{
    tw_geometry geometry{};
    geometry.levels = static_cast<std::uint32_t>(levels.size());
    geometry.overflow = overflow;
    std::size_t i = 0;
    for (const tw_level &level : levels)
        if (i < TW_GEOMETRY_LEVELS_MAX)
            geometry.level[i++] = level;
    return geometry;
}

/* Explains in words why a geometry is not valid. Empty: the geometry is valid. */
inline std::string explain(const tw_geometry &geometry)
{
    char message[256] = "";
    return tw_geometry_check(&geometry, message, sizeof message) == 0 ? std::string() : std::string(message);
}

/* ---- timers ------------------------------------------------------------------------------------------- */

/* A timer that cancels itself when it is destroyed. It has 40 bytes: a tw_timer, and the wheel in which it
 * was filed. It may be a member of your object, or its base. A pending timer can be moved in memory, and is
 * then pending in its new place, so a vector of timers may grow. A program that wants 32 bytes uses tw_timer
 * instead, and cancels it by hand.
 * Threads: those of the wheel, also for destruction and moves. */
class timer
{
  public:
    timer() noexcept
    {
        tw_timer_init(&raw_);
    }
    ~timer()
    {
        cancel();
    }
    timer(timer &&other) noexcept
    {
        take(other);
    }
    timer &operator=(timer &&other) noexcept
    {
        if (this == &other)
            return *this;
        cancel();
        take(other);
        return *this;
    }
    bool pending() const noexcept
    {
        return tw_timer_pending(&raw_);
    }
    /* Takes the timer out of its wheel.
     * Returns: true if the timer was pending. */
    bool cancel()
    {
        return pending() && tw_wheel_cancel(wheel_, &raw_);
    }
    /* The tick on which the timer is due, or was due. wheel::deadline() returns it as a duration. */
    std::uint64_t deadline_tick() const noexcept
    {
        return tw_timer_deadline(&raw_);
    }

  private:
    template <class, class, class> friend class wheel;

    void take(timer &other) noexcept
    {
        raw_ = other.raw_;
        wheel_ = other.wheel_;
        tw_timer_relocated(&raw_);
        tw_timer_init(&other.raw_);
    }

    tw_timer raw_;
    tw_wheel *wheel_ = nullptr;
};

/* The distance of a timer from the beginning of its object; for owner(). */
template <auto Member> struct owner_of;
template <class Object, class Timer, Timer Object::*Member> struct owner_of<Member> {
    static Object &find(Timer &timer) noexcept
    {
        /* The distance of the member is the same in all objects, also in an object that does not exist. */
        alignas(Object) static char nowhere[sizeof(Object)];
        auto *object = reinterpret_cast<Object *>(nowhere);
        const auto offset = reinterpret_cast<char *>(std::addressof(object->*Member)) - nowhere;
        return *reinterpret_cast<Object *>(reinterpret_cast<char *>(std::addressof(timer)) - offset);
    }
};

/* The object around its timer.
 * Example: `owner<&order::unpaid>(timer)` is the order whose member `unpaid` is the timer. */
template <auto Member, class Timer> auto &owner(Timer &timer) noexcept
{
    return owner_of<Member>::find(timer);
}

/* ---- a wheel ------------------------------------------------------------------------------------------ */

template <class Wheel> class due_range;

namespace detail
{

/* Calls a function, an object or a member with a timer, as std::invoke does, without <functional>. */
template <class See, class Timer> decltype(auto) see(See &see, Timer &timer)
{
    if constexpr (std::is_member_function_pointer_v<See>)
        return (timer.*see)();
    else if constexpr (std::is_member_object_pointer_v<See>)
        return (timer.*see);
    else
        return see(timer);
}

} // namespace detail

/* A wheel whose tick is the duration Tick. A point in time is a duration since the moment from which the
 * caller counts. With a Clock it may be a time point of that clock instead, and time points of other clocks
 * do not compile. Timer is the type of the timers: `timer`, tw_timer, or a class of yours with one of them as
 * its base.
 * Requires: with tw_timer, the duties in wheel.h. With `timer`, a timer that is passed to a call is not
 * pending in another wheel.
 * Example: `wheel<std::chrono::microseconds, timer, std::chrono::steady_clock>` takes
 * `wheel.add_at(timer, std::chrono::steady_clock::now() + 2ms)`. */
template <class Tick = std::chrono::milliseconds, class Timer = timer, class Clock = void> class wheel
{
    static constexpr bool cancels_itself = std::is_base_of_v<timer, Timer>;
    static_assert(cancels_itself || std::is_base_of_v<tw_timer, Timer>,
                  "tickwheel: Timer has to be, or be derived from, tickwheel::timer or tw_timer");
    static_assert(std::is_integral_v<typename Tick::rep> && sizeof(typename Tick::rep) >= 8,
                  "tickwheel: ticks are counted in integers of 64 bits");

  public:
    using duration = Tick;
    using timer_type = Timer;

    /* Makes an empty wheel with memory from malloc. Throws std::system_error, whose what() explains why a
     * geometry is not valid. */
    explicit wheel(const tw_geometry &geometry = TW_GEOMETRY_DEFAULT) : wheel(geometry, Tick::zero())
    {
    }
    template <class Point> wheel(const tw_geometry &geometry, Point now)
    {
        const status made = open(geometry, now);
        if (!made.ok())
            detail::raise(made, explain(geometry).c_str());
    }
    template <class Point> wheel(const tw_geometry &geometry, Point now, status &made) noexcept
    {
        made = open(geometry, now);
    }
    wheel(wheel &&other) noexcept : raw_(std::exchange(other.raw_, nullptr))
    {
    }
    /* Ends the wheel that was here, as the destructor does. */
    wheel &operator=(wheel &&other) noexcept
    {
        wheel taken(std::move(other));
        std::swap(raw_, taken.raw_);
        return *this;
    }
    /* Takes out each pending `timer`, so that the timer may outlive the wheel: O(timers). A tw_timer stays as
     * it is. */
    ~wheel()
    {
        if constexpr (cancels_itself)
            while (raw_ != nullptr && tw_wheel_drain(raw_) != nullptr)
                ;
        tw_wheel_free(raw_);
    }
    explicit operator bool() const noexcept
    {
        return raw_ != nullptr;
    }
    /* The C wheel, for the functions of wheel.h that have no form here.
     * Ownership: stays with this object. */
    tw_wheel *raw() const noexcept
    {
        return raw_;
    }

    /* Counts from now(), the latest poll. To count from the present, call add_at(timer, present + delay). */
    template <class Rep, class Period> status add_in(Timer &timer, std::chrono::duration<Rep, Period> delay)
    {
        return tw_wheel_add_in(raw_, enter(timer), detail::count<Tick, detail::round::up>(delay));
    }
    template <class Point> status add_at(Timer &timer, Point deadline)
    {
        return tw_wheel_add_at(raw_, enter(timer), ticks<detail::round::up>(deadline));
    }
    /* Files a timer that is due now. It fires in the current poll, after all other due timers. Filed inside a
     * drain, it fires in the next drain. */
    void add_now(Timer &timer)
    {
        tw_wheel_add_now(raw_, enter(timer));
    }
    /* As add_in() and add_at(), for a timer that may be pending in this wheel. */
    template <class Rep, class Period> status move_in(Timer &timer, std::chrono::duration<Rep, Period> delay)
    {
        return tw_wheel_move_in(raw_, mark(timer), detail::count<Tick, detail::round::up>(delay));
    }
    template <class Point> status move_at(Timer &timer, Point deadline)
    {
        return tw_wheel_move_at(raw_, mark(timer), ticks<detail::round::up>(deadline));
    }
    bool cancel(Timer &timer)
    {
        return tw_wheel_cancel(raw_, &raw(timer));
    }

    template <class Point> Timer *poll(Point now)
    {
        return object(tw_wheel_poll(raw_, ticks<detail::round::down>(now)));
    }
    template <class Point> tw_poll poll(Point now, std::uint32_t &budget, Timer *&timer)
    {
        tw_timer *found;
        const tw_poll polled = tw_wheel_poll_budget(raw_, ticks<detail::round::down>(now), &budget, &found);
        timer = object(found);
        return polled;
    }
    /* The due timers, in order, one poll at a time. Inside the loop anything is allowed that wheel.h allows
     * between two polls. Code that ends the wheel there must also leave the loop.
     * Example: `for (auto &timer : wheel.due(now))`. */
    template <class Point> due_range<wheel> due(Point now) noexcept
    {
        return {raw_, ticks<detail::round::down>(now)};
    }
    Timer *drain()
    {
        return object(tw_wheel_drain(raw_));
    }

    /* Empty: never, where the C function returns TW_NEVER. */
    std::optional<Tick> next_bound() const noexcept
    {
        return some(tw_wheel_next_bound(raw_));
    }
    std::optional<Tick> next_exact() noexcept
    {
        return some(tw_wheel_next_exact(raw_));
    }
    std::uint64_t count() const noexcept
    {
        return tw_wheel_count(raw_);
    }
    Tick now() const noexcept
    {
        return detail::duration_of<Tick>(tw_wheel_now(raw_));
    }
    Tick range() const noexcept
    {
        return detail::duration_of<Tick>(tw_wheel_range(raw_));
    }
    Tick deadline(const Timer &timer) const noexcept
    {
        return detail::duration_of<Tick>(tw_timer_deadline(&raw(timer)));
    }
    const char *check() const noexcept
    {
        return tw_wheel_check(raw_);
    }
    /* The timer that contains this tw_timer, which a function of C was given, such as the due callback of a
     * loop (loop.h). NULL if `found` is NULL. */
    static Timer *object(tw_timer *found) noexcept
    {
        if (found == nullptr)
            return nullptr;
        if constexpr (cancels_itself) /* `timer` has standard layout: the same address as its first member */
            return static_cast<Timer *>(reinterpret_cast<tickwheel::timer *>(found));
        else
            return static_cast<Timer *>(found);
    }

    /* Calls see(Timer &) for each pending timer. If it returns a bool, true ends the visit.
     * Returns: true if `see` ended the visit. */
    template <class See> bool visit(See &&see) const
    {
        return tw_wheel_visit(raw_, visitor<std::remove_reference_t<See>>, address(see)) != 0;
    }
    template <class Point, class See> bool visit_until(Point until, See &&see) const
    {
        return tw_wheel_visit_until(raw_, ticks<detail::round::down>(until),
                                    visitor<std::remove_reference_t<See>>, address(see)) != 0;
    }

  private:
    friend class due_range<wheel>;

    template <class Point> status open(const tw_geometry &geometry, Point now) noexcept
    {
        return tw_wheel_new(&raw_, &geometry, ticks<detail::round::down>(now));
    }

    template <detail::round How, class Rep, class Period>
    static std::uint64_t ticks(std::chrono::duration<Rep, Period> time) noexcept
    {
        return detail::count<Tick, How>(time);
    }
    template <detail::round How, class Duration>
    static std::uint64_t ticks(std::chrono::time_point<Clock, Duration> time) noexcept
    {
        return detail::count<Tick, How>(time.time_since_epoch());
    }
    static std::optional<Tick> some(std::uint64_t tick) noexcept
    {
        return tick == TW_NEVER ? std::nullopt : std::optional<Tick>(detail::duration_of<Tick>(tick));
    }

    static auto &raw(Timer &timer) noexcept
    {
        if constexpr (cancels_itself)
            return timer.raw_;
        else
            return static_cast<tw_timer &>(timer);
    }
    static auto &raw(const Timer &timer) noexcept
    {
        if constexpr (cancels_itself)
            return timer.raw_;
        else
            return static_cast<const tw_timer &>(timer);
    }
    /* A `timer` knows its wheel, because it may have to take itself out of it. */
    tw_timer *mark(Timer &timer) noexcept
    {
        if constexpr (cancels_itself) {
            TICKWHEEL_ASSERT(!timer.pending() || timer.wheel_ == raw_);
            timer.wheel_ = raw_;
        }
        return &raw(timer);
    }
    tw_timer *enter(Timer &timer) noexcept
    {
        TICKWHEEL_ASSERT(!tw_timer_pending(&raw(timer)));
        return mark(timer);
    }
    static const Timer *object(const tw_timer *found) noexcept
    {
        return object(const_cast<tw_timer *>(found));
    }

    template <class See> static void *address(See &see) noexcept
    {
        return const_cast<void *>(static_cast<const void *>(std::addressof(see)));
    }
    template <class See> static int visitor(void *see, tw_timer *found) noexcept
    {
        Timer &timer = *object(found);
        if constexpr (std::is_same_v<std::invoke_result_t<See &, Timer &>, void>)
            return detail::see(*static_cast<See *>(see), timer), 0;
        else
            return detail::see(*static_cast<See *>(see), timer) ? 1 : 0;
    }

    tw_wheel *raw_ = nullptr;
};

/* The range that wheel::due() returns. A loop may go through it once, because each step is a poll. */
template <class Wheel> class due_range
{
    using timer_type = typename Wheel::timer_type;

  public:
    struct end_mark {
    };
    class iterator
    {
      public:
        using iterator_category = std::input_iterator_tag;
        using value_type = timer_type;
        using difference_type = std::ptrdiff_t;
        using pointer = timer_type *;
        using reference = timer_type &;

        reference operator*() const noexcept
        {
            return *timer_;
        }
        pointer operator->() const noexcept
        {
            return timer_;
        }
        iterator &operator++()
        {
            timer_ = Wheel::object(tw_wheel_poll(wheel_, now_));
            return *this;
        }
        friend bool operator!=(const iterator &at, end_mark) noexcept
        {
            return at.timer_ != nullptr;
        }
        friend bool operator==(const iterator &at, end_mark) noexcept
        {
            return at.timer_ == nullptr;
        }

      private:
        friend class due_range;
        iterator(tw_wheel *polled, std::uint64_t tick) : wheel_(polled), now_(tick)
        {
            ++*this;
        }
        tw_wheel *wheel_;
        std::uint64_t now_;
        timer_type *timer_;
    };

    iterator begin() const
    {
        return {wheel_, now_};
    }
    end_mark end() const noexcept
    {
        return {};
    }

  private:
    friend Wheel;
    due_range(tw_wheel *polled, std::uint64_t tick) noexcept : wheel_(polled), now_(tick)
    {
    }
    tw_wheel *wheel_;
    std::uint64_t now_;
};

} // namespace tickwheel

#endif
