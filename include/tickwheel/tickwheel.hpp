/* SPDX-License-Identifier: MIT
 *
 * tickwheel/tickwheel.hpp - wheel.h and sched.h for C++17: timers that cancel themselves, durations, lambdas.
 *
 * Headers only: link libtickwheel for `wheel`, libtickwheel_sched for `scheduler`. What a call does, costs and may fail
 * with is said in wheel.h and sched.h, at the C function that it is named after; here stands what C++ adds.
 *
 * Conventions, stated once
 *   Time      Durations of integers. Delays and deadlines are rounded up, `now` is rounded down, so nothing is early.
 *             What is negative is 0, and what is too long is the end of time: hours::max() is "never". Durations of
 *             floating point do not compile, since their own arithmetic may round down: say
 *             std::chrono::ceil<milliseconds>(x).
 *   Errors    Calls return a `status`, or `added`, which has one; nothing is thrown by them, but for what copying a
 *             callable throws: nothing was changed then. They are not noexcept where all that they do is call C, since
 *             the compiler, which cannot know that C throws nothing, would guard that. Only constructors throw
 *             (std::system_error), and status::check() where it is asked for. Each constructor that can fail has a form
 *             with a `status &` that does not throw. What a callable throws when it is called, by visit() and drain()
 *             too, ends the program (std::terminate). With -fno-exceptions what would be thrown is printed, and the
 *             program aborts; -fno-rtti changes nothing.
 *   Moved     An object that was moved from is empty: it may be assigned to or destroyed, and tested with `if`.
 */
#ifndef TICKWHEEL_TICKWHEEL_HPP
#define TICKWHEEL_TICKWHEEL_HPP

#include <tickwheel/sched.h>
#include <tickwheel/version.h>
#include <tickwheel/wheel.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <ratio>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#if defined(TW_DEBUG) && TW_DEBUG >= 1
#include <cassert>
#define TICKWHEEL_ASSERT(condition) assert(condition)
#else
#define TICKWHEEL_ASSERT(condition) static_cast<void>(0)
#endif

namespace tickwheel
{

/* ---- errors ------------------------------------------------------------------------------------------- */

namespace detail
{

class error_category final : public std::error_category
{
  public:
    const char *name() const noexcept override
    {
        return "tickwheel";
    }
    std::string message(int error) const override
    {
        return tw_strerror(error);
    }
};

[[noreturn]] inline void raise(const std::error_code &error, const char *what)
{
#if defined(__cpp_exceptions)
    throw std::system_error(error, what);
#else
    std::fprintf(stderr, "tickwheel: %s: %s\n", what, tw_strerror(error.value()));
    std::abort();
#endif
}

} // namespace detail

/* The category of the TW_E* codes. */
inline const std::error_category &category() noexcept
{
    static const detail::error_category instance;
    return instance;
}

/* What a call has come to: 0 or a TW_E* code. */
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
        return tw_strerror(code_);
    }
    operator std::error_code() const noexcept
    {
        return {code_, category()};
    }
    /* Throws std::system_error unless it is ok. */
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

  private:
    int code_ = 0;
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

/* A duration in units of Unit, from 0 to the end of time. n = whole * den + rest, so n * num / den is
 * whole * num + rest * num / den, of which only the first product can be too large. */
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

/* So many units as a duration; one that it cannot hold is the longest that it can. */
template <class Unit> constexpr Unit duration_of(std::uint64_t n) noexcept
{
    using rep = typename Unit::rep;
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<rep>::max());
    return n > most ? Unit::max() : Unit(static_cast<rep>(n));
}

} // namespace detail

/* ---- geometry ----------------------------------------------------------------------------------------- */

/* A geometry of your own, from level 0 up: make_geometry({{1024, 1}, {256, 512}}, TW_OVERFLOW_ROUNDS). */
inline tw_geometry make_geometry(std::initializer_list<tw_level> levels,
                                 tw_overflow overflow = TW_OVERFLOW_REJECT) noexcept
{
    tw_geometry geometry{};
    geometry.levels = static_cast<std::uint32_t>(levels.size());
    geometry.overflow = overflow;
    std::size_t i = 0;
    for (const tw_level &level : levels)
        if (i < TW_LEVELS_MAX)
            geometry.level[i++] = level;
    return geometry;
}

/* What is wrong with a geometry, in words; empty: nothing. */
inline std::string explain(const tw_geometry &geometry)
{
    char message[256] = "";
    return tw_geometry_check(&geometry, message, sizeof message) == 0 ? std::string() : std::string(message);
}

/* ---- timers ------------------------------------------------------------------------------------------- */

/* A timer that cancels itself when it is destroyed: 40 bytes, a tw_timer and the wheel that it was filed in. Be it a
 * member of your object or its base. One that is pending can be moved, and is then pending in its new place: a vector
 * of them may grow. Where 32 bytes are wanted, tw_timer does in its place, and is then cancelled by hand.
 * Threads: those of the wheel, for destruction and moves too. */
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
    /* Returns: whether it was pending. In callback: yes. */
    bool cancel()
    {
        return pending() && tw_wheel_cancel(wheel_, &raw_);
    }
    /* The tick on which it is due, or was; see wheel::deadline(). */
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

/* How far a timer lies inside its object; for owner(). */
template <auto Member> struct owner_of;
template <class Object, class Timer, Timer Object::*Member> struct owner_of<Member> {
    static Object &find(Timer &timer) noexcept
    {
        /* How far the member lies from its object's beginning is the same in all, also in one that is not there. */
        alignas(Object) static char nowhere[sizeof(Object)];
        auto *object = reinterpret_cast<Object *>(nowhere);
        const auto offset = reinterpret_cast<char *>(std::addressof(object->*Member)) - nowhere;
        return *reinterpret_cast<Object *>(reinterpret_cast<char *>(std::addressof(timer)) - offset);
    }
};

/* The object around its timer: `owner<&order::unpaid>(timer)`. */
template <auto Member, class Timer> auto &owner(Timer &timer) noexcept
{
    return owner_of<Member>::find(timer);
}

/* ---- a wheel ------------------------------------------------------------------------------------------ */

template <class Wheel> class due_range;

/* A wheel whose tick is the duration Tick. Points of time are durations since whatever the caller counts from; with a
 * Clock they may be time points of that clock instead, and no others compile.
 * Timer is what it holds: `timer`, tw_timer, or a class of yours with one of them as its base.
 * Requires: with tw_timer, what wheel.h says; with `timer`, nothing of it pends in another wheel. */
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

    /* Throws std::system_error, whose what() says what is wrong with a geometry. */
    explicit wheel(const tw_geometry &geometry = tw_geometry_default()) : wheel(geometry, Tick::zero())
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
    /* The one that was here ends, as in the destructor. */
    wheel &operator=(wheel &&other) noexcept
    {
        wheel taken(std::move(other));
        std::swap(raw_, taken.raw_);
        return *this;
    }
    /* Takes out each `timer` that pends, so that it may outlive the wheel: O(timers). A tw_timer is left as it is. */
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
    /* For what stands in wheel.h and not here. Ownership: stays. */
    tw_wheel *get() const noexcept
    {
        return raw_;
    }

    /* Counts from now(), the latest poll. To count from the present: add_at(timer, present + delay). */
    template <class Rep, class Period> status add(Timer &timer, std::chrono::duration<Rep, Period> delay)
    {
        return tw_wheel_add_in(raw_, enter(timer), detail::count<Tick, detail::round::up>(delay));
    }
    template <class Point> status add_at(Timer &timer, Point deadline)
    {
        return tw_wheel_add_at(raw_, enter(timer), ticks<detail::round::up>(deadline));
    }
    /* Due now: fires in the current poll, after everything else that is due; inside a drain, in the next one. */
    void add_now(Timer &timer)
    {
        tw_wheel_add_now(raw_, enter(timer));
    }
    /* The same from the latest poll, or at a point of time, for a timer that may be pending in this wheel. */
    template <class Rep, class Period> status move(Timer &timer, std::chrono::duration<Rep, Period> delay)
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
    template <class Point> tw_polled poll(Point now, std::uint32_t &budget, Timer *&timer)
    {
        tw_timer *found;
        const tw_polled polled = tw_wheel_poll_budget(raw_, ticks<detail::round::down>(now), &budget, &found);
        timer = object(found);
        return polled;
    }
    /* What is due, in order, one poll at a time: `for (auto &timer : wheel.due(now))`. In the loop anything is allowed
     * that wheel.h allows between two polls; whoever ends the wheel there also leaves the loop. */
    template <class Point> due_range<wheel> due(Point now) noexcept
    {
        return {raw_, ticks<detail::round::down>(now)};
    }
    Timer *drain()
    {
        return object(tw_wheel_drain(raw_));
    }

    /* Empty: never. */
    std::optional<Tick> next_bound() const noexcept
    {
        return some(tw_wheel_next_bound(raw_));
    }
    std::optional<Tick> next_exact() const noexcept
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

    /* Calls see(Timer &) for each pending timer; a bool that it returns, if true, ends the visit.
     * Returns: whether it was ended. */
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
    /* A `timer` knows the wheel that it may have to be taken out of. */
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
    /* `timer` is of standard layout, so it and its first member have one address. */
    static Timer *object(tw_timer *found) noexcept
    {
        if (found == nullptr)
            return nullptr;
        if constexpr (cancels_itself)
            return static_cast<Timer *>(reinterpret_cast<tickwheel::timer *>(found));
        else
            return static_cast<Timer *>(found);
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
            return std::invoke(*static_cast<See *>(see), timer), 0;
        else
            return std::invoke(*static_cast<See *>(see), timer) ? 1 : 0;
    }

    tw_wheel *raw_ = nullptr;
};

/* What wheel::due() returns. It is gone through once: each step is a poll. */
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

/* ---- tasks -------------------------------------------------------------------------------------------- */

/* Time on a scheduler's clock. It has no now(): that is scheduler::now(), and no other clock's time compiles. */
struct scheduler_clock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<scheduler_clock>;
    static constexpr bool is_steady = true;
};
/* Names a task; the default one names none. */
class task_id
{
  public:
    constexpr task_id() noexcept = default;
    constexpr explicit task_id(std::uint64_t value) noexcept : value_(value)
    {
    }
    constexpr std::uint64_t value() const noexcept
    {
        return value_;
    }
    constexpr explicit operator bool() const noexcept
    {
        return value_ != 0;
    }
    friend constexpr bool operator==(task_id a, task_id b) noexcept
    {
        return a.value_ == b.value_;
    }
    friend constexpr bool operator!=(task_id a, task_id b) noexcept
    {
        return a.value_ != b.value_;
    }
    friend constexpr bool operator<(task_id a, task_id b) noexcept
    {
        return a.value_ < b.value_;
    }

  private:
    std::uint64_t value_ = 0;
};

/* What adding has come to: an id, or an error. */
class added : public status
{
  public:
    constexpr added(status error, task_id id) noexcept : status(error), id_(id)
    {
    }
    constexpr task_id id() const noexcept
    {
        return id_;
    }
    constexpr operator task_id() const noexcept
    {
        return id_;
    }
    /* The id, or std::system_error. */
    task_id value(const char *what = "tickwheel") const
    {
        check(what);
        return id_;
    }

  private:
    task_id id_;
};

/* What there is to know of a task. It is valid as long as what it was made of. */
class task_view
{
  public:
    explicit task_view(const tw_task &seen) noexcept : seen_(&seen)
    {
    }
    task_id id() const noexcept
    {
        return task_id(seen_->id);
    }
    scheduler_clock::time_point due() const noexcept
    {
        return scheduler_clock::time_point(duration(seen_->due_ns));
    }
    std::chrono::nanoseconds late() const noexcept
    {
        return duration(seen_->late_ns);
    }
    std::chrono::nanoseconds period() const noexcept
    {
        return duration(seen_->period_ns);
    }
    std::uint64_t left() const noexcept
    {
        return seen_->left;
    }
    std::uint64_t missed() const noexcept
    {
        return seen_->missed;
    }
    /* Empty: it has none. */
    std::string_view key() const noexcept
    {
        return {static_cast<const char *>(seen_->key), seen_->key_size};
    }

  protected:
    static std::chrono::nanoseconds duration(std::uint64_t ns) noexcept
    {
        return detail::duration_of<std::chrono::nanoseconds>(ns);
    }
    const tw_task *seen_;
};

namespace detail
{
template <class Rep, class Period>
constexpr std::uint64_t ns_up(std::chrono::duration<Rep, Period> time) noexcept
{
    return count<std::chrono::nanoseconds, round::up>(time);
}
template <class Duration>
constexpr std::uint64_t ns_up(std::chrono::time_point<scheduler_clock, Duration> time) noexcept
{
    return ns_up(time.time_since_epoch());
}
} // namespace detail

/* A task as its callback sees it, if it asks: a callable takes `const task &` or nothing. */
class task : public task_view
{
  public:
    task(tw_sched *sched, const tw_task &seen) noexcept : task_view(seen), sched_(sched)
    {
    }
    /* Has it run again, under its id; see tw_sched_move_after(). */
    template <class Rep, class Period> status move(std::chrono::duration<Rep, Period> delay) const noexcept
    {
        return tw_sched_move_after(sched_, seen_->id, detail::ns_up(delay));
    }
    /* The last call of one that repeats is this one. */
    void cancel() const noexcept
    {
        tw_sched_cancel(sched_, seen_->id);
    }
    const tw_task &raw() const noexcept
    {
        return *seen_;
    }

  protected:
    tw_sched *sched_;
};

/* A task that drain() or stop() hands over. */
class handed : public task
{
  public:
    using task::task;
    /* False: its callback is under way on another thread, or in the one that stops it, and has the callable. */
    bool runnable() const noexcept
    {
        return seen_->fn != nullptr;
    }
    /* Calls its callable, here and now. Requires: runnable(). */
    void run() const noexcept
    {
        TICKWHEEL_ASSERT(runnable());
        seen_->fn(sched_, seen_);
    }
};

/* When a repeating task runs: repeat(1s).times(5).missed(TW_MISSED_SKIP). First after a period, if it says no other. */
class repeat
{
  public:
    template <class Rep, class Period> repeat(std::chrono::duration<Rep, Period> period) noexcept
    {
        every_.period_ns = every_.first_ns = detail::ns_up(period);
    }
    template <class Rep, class Period> repeat &first(std::chrono::duration<Rep, Period> delay) noexcept
    {
        every_.first_ns = detail::ns_up(delay);
        every_.at_ns = 0;
        return *this;
    }
    template <class Duration>
    repeat &first_at(std::chrono::time_point<scheduler_clock, Duration> point) noexcept
    {
        every_.at_ns = detail::ns_up(point);
        every_.at_ns += every_.at_ns == 0; /* which C takes for "none" */
        return *this;
    }
    /* Calls in all; 0 and TW_FOREVER: no end. */
    repeat &times(std::uint64_t calls) noexcept
    {
        every_.times = calls;
        return *this;
    }
    repeat &missed(tw_missed policy) noexcept
    {
        every_.missed = policy;
        return *this;
    }
    const tw_every &raw() const noexcept
    {
        return every_;
    }

  private:
    tw_every every_{};
};

/* ---- callables ---------------------------------------------------------------------------------------- */

namespace detail
{

template <class F> constexpr bool takes_task = std::is_invocable_v<F &, const task &>;

template <class F> void invoke(F &f, tw_sched *sched, const tw_task *seen)
{
    if constexpr (takes_task<std::remove_const_t<F>>)
        std::invoke(f, task(sched, *seen));
    else
        std::invoke(f);
}

/* A callable that is kept in the argument itself: no larger than it, its bytes are all of it, and calling it changes
 * none of them. A `mutable` lambda is not callable when const, and gets a box. */
template <class F>
constexpr bool
    fits = std::is_trivially_copyable_v<F> && sizeof(F) <= sizeof(void *) && alignof(F) <= alignof(void *) &&
           (takes_task<F> ? std::is_invocable_v<const F &, const task &> : std::is_invocable_v<const F &>);

/* Its bytes are copied into the argument and out of it: an object of one type is not to be looked at as another. */
template <class F> void run_small(tw_sched *sched, const tw_task *seen) noexcept
{
    alignas(F) unsigned char bytes[sizeof(F)];
    std::memcpy(bytes, &seen->arg, sizeof bytes);
    invoke(*std::launder(reinterpret_cast<const F *>(bytes)), sched, seen);
}

/* Any other callable: on the heap, and freed by the release hook. One function does both, so that the box is a word
 * larger than what is in it: without a task it is the end. */
struct box {
    void (*act)(box *self, tw_sched *sched, const tw_task *seen);
};

template <class F> struct box_of : box {
    template <class G> box_of(std::in_place_t, G &&g) : box{call_or_end}, f(std::forward<G>(g))
    {
    }
    static void call_or_end(box *self, tw_sched *sched, const tw_task *seen)
    {
        if (seen != nullptr)
            invoke(static_cast<box_of *>(self)->f, sched, seen);
        else
            delete static_cast<box_of *>(self);
    }
    F f;
};

inline void run_box(tw_sched *sched, const tw_task *seen) noexcept
{
    auto *self = static_cast<box *>(seen->arg);
    self->act(self, sched, seen);
}

inline void release_box(void *, void *value) noexcept
{
    auto *self = static_cast<box *>(value);
    self->act(self, nullptr, nullptr);
}

/* A callable on its way into a scheduler: freed again unless that takes it. */
template <class F, bool Small = fits<F>> class parcel
{
  public:
    template <class G> parcel(tw_task_fn *, G &&g) noexcept(std::is_nothrow_constructible_v<F, G &&>)
    {
        const F f(std::forward<G>(g));
        if constexpr (!std::is_empty_v<F>)
            std::memcpy(&arg_, std::addressof(f), sizeof f);
    }
    template <class Give> int give(Give &&give) const noexcept
    {
        return give(run_small<F>, arg_);
    }

  private:
    void *arg_ = nullptr;
};

template <class F> class parcel<F, false>
{
  public:
    template <class G>
    parcel(tw_task_fn *run, G &&g)
        : run_(run), box_(new (std::nothrow) box_of<F>(std::in_place, std::forward<G>(g)))
    {
    }
    parcel(const parcel &) = delete;
    parcel &operator=(const parcel &) = delete;
    ~parcel()
    {
        delete box_;
    }
    template <class Give> int give(Give &&give) noexcept
    {
        if (box_ == nullptr)
            return TW_ENOMEM;
        const int error = give(run_, static_cast<box *>(box_));
        if (error == 0)
            box_ = nullptr; /* the scheduler's; it may be gone already */
        return error;
    }

  private:
    tw_task_fn *run_;
    box_of<F> *box_;
};

} // namespace detail

/* ---- a scheduler -------------------------------------------------------------------------------------- */

/* What a scheduler is to be like: options().tick(1ms).workers(4). What is not said is as tw_sched_options says. */
class options
{
  public:
    template <class Rep, class Period> options &tick(std::chrono::duration<Rep, Period> length) noexcept
    {
        raw_.tick_ns = detail::ns_up(length);
        return *this;
    }
    /* Ownership: the geometry stays the caller's until the scheduler is made. */
    options &geometry(const tw_geometry &shape) noexcept
    {
        raw_.geometry = &shape;
        return *this;
    }
    options &shards(std::uint32_t n) noexcept
    {
        raw_.shards = n;
        return *this;
    }
    options &workers(std::uint32_t n) noexcept
    {
        raw_.workers = n;
        return *this;
    }
    /* Whoever is handed an id calls scheduler::run() with it, or tw_sched_run(). */
    options &execute(tw_execute_fn *fn, void *arg) noexcept
    {
        raw_.execute = fn;
        raw_.execute_arg = arg;
        return *this;
    }
    options &max_pending(std::uint64_t n) noexcept
    {
        raw_.max_pending = n;
        return *this;
    }
    options &clock(tw_sched_clock kind) noexcept
    {
        raw_.clock = kind;
        return *this;
    }
    /* A clock that scheduler::advance() moves. */
    options &virtual_clock(scheduler_clock::time_point start = scheduler_clock::time_point()) noexcept
    {
        raw_.clock = TW_SCHED_VIRTUAL;
        raw_.start_ns = detail::ns_up(start);
        return *this;
    }
    /* Of the scheduler's own memory; callables come from operator new. */
    options &memory(tw_memory_fn *fn, void *arg) noexcept
    {
        raw_.memory = fn;
        raw_.memory_arg = arg;
        return *this;
    }
    template <class Rep, class Period>
    options &on_late(std::chrono::duration<Rep, Period> limit, tw_slow_fn *hook) noexcept
    {
        raw_.late_ns = detail::ns_up(limit);
        raw_.on_late = hook;
        return *this;
    }
    template <class Rep, class Period>
    options &on_slow(std::chrono::duration<Rep, Period> limit, tw_slow_fn *hook) noexcept
    {
        raw_.slow_ns = detail::ns_up(limit);
        raw_.on_slow = hook;
        return *this;
    }
    options &hook_arg(void *arg) noexcept
    {
        raw_.hook_arg = arg;
        return *this;
    }
    /* What is wrong with them, in words; empty: nothing. */
    std::string explain() const
    {
        char message[256] = "";
        return tw_sched_check(&raw_, message, sizeof message) == 0 ? std::string() : std::string(message);
    }

  private:
    friend class scheduler;
    tw_sched_options raw_{};
};

/* A tw_sched and the callables of its tasks.
 *
 * A callable is copied or moved in once, and is destroyed once: when its last call is over, it was cancelled, its key
 * was set anew or removed, it was drained or stopped, the scheduler was destroyed, or did not take it. Then no lock is
 * held, and whoever waits in cancel_wait(), stop() or the destructor goes on after it; but for a task that another
 * thread is just ending, in whose call that is. One that is no larger than a pointer, trivially copyable and callable
 * when const is kept where C keeps its argument; any other is one allocation. So a member marked `mutable` in such a
 * small one does not outlast the call.
 * An exception that leaves a callable, or its destructor, ends the program (std::terminate).
 * Threads: as sched.h. */
class scheduler
{
  public:
    using time_point = scheduler_clock::time_point;

    /* Throws std::system_error, whose what() says which option is wrong. */
    explicit scheduler(const options &given = options())
    {
        const status made = open(given);
        if (!made.ok())
            detail::raise(made, given.explain().c_str());
    }
    scheduler(const options &given, status &made) noexcept
    {
        made = open(given);
    }
    scheduler(scheduler &&other) noexcept : raw_(std::exchange(other.raw_, nullptr)), run_box_(other.run_box_)
    {
    }
    /* The one that was here ends, as in the destructor. In callback: no. */
    scheduler &operator=(scheduler &&other) noexcept
    {
        scheduler taken(std::move(other));
        std::swap(raw_, taken.raw_);
        std::swap(run_box_, taken.run_box_);
        return *this;
    }
    /* tw_sched_free(). In callback: no. */
    ~scheduler()
    {
        tw_sched_free(raw_);
    }
    explicit operator bool() const noexcept
    {
        return raw_ != nullptr;
    }
    /* For what stands in sched.h and not here. Ownership: stays. */
    tw_sched *get() const noexcept
    {
        return raw_;
    }
    time_point now() const noexcept
    {
        return time_point(detail::duration_of<std::chrono::nanoseconds>(tw_sched_now(raw_)));
    }

    template <class Rep, class Period, class F> added after(std::chrono::duration<Rep, Period> delay, F &&f)
    {
        return add(std::forward<F>(f), [this, ns = detail::ns_up(delay)](tw_task_fn *fn, void *arg, auto *id) {
            return tw_sched_after(raw_, ns, fn, arg, id);
        });
    }
    template <class Duration, class F> added at(std::chrono::time_point<scheduler_clock, Duration> due, F &&f)
    {
        return add(std::forward<F>(f), [this, ns = detail::ns_up(due)](tw_task_fn *fn, void *arg, auto *id) {
            return tw_sched_at(raw_, ns, fn, arg, id);
        });
    }
    template <class F> added every(const repeat &when, F &&f)
    {
        return add(std::forward<F>(f), [this, &when](tw_task_fn *fn, void *arg, auto *id) {
            return tw_sched_every(raw_, &when.raw(), fn, arg, id);
        });
    }
    status reserve(std::uint64_t n)
    {
        return tw_sched_reserve(raw_, n);
    }
    tw_cancelled cancel(task_id id)
    {
        return tw_sched_cancel(raw_, id.value());
    }
    status cancel_wait(task_id id, tw_cancelled *found = nullptr)
    {
        return tw_sched_cancel_wait(raw_, id.value(), found);
    }
    template <class Rep, class Period> status move(task_id id, std::chrono::duration<Rep, Period> delay)
    {
        return tw_sched_move_after(raw_, id.value(), detail::ns_up(delay));
    }
    template <class Duration> status move_at(task_id id, std::chrono::time_point<scheduler_clock, Duration> due)
    {
        return tw_sched_move_at(raw_, id.value(), detail::ns_up(due));
    }
    /* Empty: TW_EGONE. Its key, `fn` and `arg` are not for use. */
    std::optional<tw_task> find(task_id id) const noexcept
    {
        tw_task seen;
        return tw_sched_get(raw_, id.value(), &seen) == 0 ? std::optional<tw_task>(seen) : std::nullopt;
    }
    void run(task_id id)
    {
        tw_sched_run(raw_, id.value());
    }
    std::uint64_t pending() const noexcept
    {
        return tw_sched_pending(raw_);
    }

    /* With a key, which is any bytes. */
    template <class Rep, class Period, class F>
    status set(std::string_view key, std::chrono::duration<Rep, Period> delay, F &&f)
    {
        return add(std::forward<F>(f), [&, this](tw_task_fn *fn, void *arg, auto *) {
            return tw_sched_set_after(raw_, key.data(), key.size(), detail::ns_up(delay), fn, arg, nullptr);
        });
    }
    template <class Duration, class F>
    status set_at(std::string_view key, std::chrono::time_point<scheduler_clock, Duration> due, F &&f)
    {
        return add(std::forward<F>(f), [&, this](tw_task_fn *fn, void *arg, auto *) {
            return tw_sched_set_at(raw_, key.data(), key.size(), detail::ns_up(due), fn, arg, nullptr);
        });
    }
    template <class F> status set_every(std::string_view key, const repeat &when, F &&f)
    {
        return add(std::forward<F>(f), [&, this](tw_task_fn *fn, void *arg, auto *) {
            return tw_sched_set_every(raw_, key.data(), key.size(), &when.raw(), fn, arg, nullptr);
        });
    }
    template <class Rep, class Period>
    status move(std::string_view key, std::chrono::duration<Rep, Period> delay)
    {
        return tw_sched_key_move_after(raw_, key.data(), key.size(), detail::ns_up(delay));
    }
    template <class Duration>
    status move_at(std::string_view key, std::chrono::time_point<scheduler_clock, Duration> due)
    {
        return tw_sched_key_move_at(raw_, key.data(), key.size(), detail::ns_up(due));
    }
    tw_cancelled remove(std::string_view key)
    {
        return tw_sched_key_remove(raw_, key.data(), key.size(), nullptr);
    }
    std::optional<tw_task> find(std::string_view key) const noexcept
    {
        tw_task seen;
        return tw_sched_key_get(raw_, key.data(), key.size(), &seen) == 0 ? std::optional<tw_task>(seen)
                                                                          : std::nullopt;
    }
    std::uint64_t key_count() const noexcept
    {
        return tw_sched_key_count(raw_);
    }

    /* Drops all pending tasks. Returns: how many tasks; TW_ESTOPPED, which is negative, after a stop. */
    std::int64_t drain()
    {
        return tw_sched_drain(raw_, nullptr, nullptr);
    }
    /* Calls hand(const handed &) for each, which may run it; its callable is destroyed after that. */
    template <class Hand> std::int64_t drain(Hand &&hand)
    {
        handing<Hand> context{raw_, hand};
        return tw_sched_drain(raw_, hand_over<Hand>, &context);
    }
    std::uint64_t stop(unsigned flags = 0)
    {
        return tw_sched_stop(raw_, flags, nullptr, nullptr);
    }
    template <class Hand, class = std::enable_if_t<std::is_invocable_v<Hand &, const handed &>>>
    std::uint64_t stop(Hand &&hand, unsigned flags = 0)
    {
        handing<Hand> context{raw_, hand};
        return tw_sched_stop(raw_, flags, hand_over<Hand>, &context);
    }

    /* TW_SCHED_VIRTUAL: by a duration, rounded down, or to a time. In callback: no. */
    template <class Rep, class Period> status advance(std::chrono::duration<Rep, Period> by)
    {
        const std::uint64_t ns = detail::count<std::chrono::nanoseconds, detail::round::down>(by);
        return tw_sched_advance(raw_, detail::sum(tw_sched_now(raw_), ns));
    }
    status advance_to(time_point now)
    {
        return tw_sched_advance(raw_, detail::ns_up(now));
    }
    /* Empty: nothing is pending. */
    std::optional<time_point> next() const noexcept
    {
        const std::uint64_t ns = tw_sched_next(raw_);
        if (ns == TW_NEVER)
            return std::nullopt;
        return time_point(detail::duration_of<std::chrono::nanoseconds>(ns));
    }
    struct tw_sched_stats stats() const noexcept
    {
        struct tw_sched_stats counts;
        tw_sched_stats(raw_, &counts);
        return counts;
    }

  private:
    template <class Hand> struct handing {
        tw_sched *sched;
        Hand &hand;
    };
    template <class Hand> static void hand_over(void *at, const tw_task *seen) noexcept
    {
        auto *context = static_cast<handing<Hand> *>(at);
        std::invoke(context->hand, handed(context->sched, *seen));
    }

    status open(const options &given) noexcept
    {
        tw_sched_options with = given.raw_;
        with.release = detail::release_box;
        with.release_of = detail::run_box;
        run_box_ = detail::run_box;
        return tw_sched_new(&raw_, &with);
    }

    /* Hands a callable to `call(fn, arg, &id)`. */
    template <class G, class Call> added add(G &&g, Call call)
    {
        using callable = std::decay_t<G>;
        static_assert(detail::takes_task<callable> || std::is_invocable_v<callable &>,
                      "tickwheel: a callable takes a const tickwheel::task &, or nothing");
        std::uint64_t id = 0;
        detail::parcel<callable> parcel(run_box_, std::forward<G>(g));
        const int error = parcel.give([&](tw_task_fn *fn, void *arg) { return call(fn, arg, &id); });
        return {error, task_id(id)};
    }

    tw_sched *raw_ = nullptr;
    /* The release hook's own run_box: parts of a program that hide their symbols have one each. */
    tw_task_fn *run_box_ = detail::run_box;
};

} // namespace tickwheel

template <> struct std::hash<tickwheel::task_id> {
    std::size_t operator()(tickwheel::task_id id) const noexcept
    {
        return std::hash<std::uint64_t>()(id.value());
    }
};

#endif
