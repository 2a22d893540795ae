/* SPDX-License-Identifier: MIT
 *
 * tickwheel/sched.hpp - sched.h for C++17: lambdas as tasks, durations, keys as string_view.
 *
 * Headers only. A complete program, which links libtickwheel_sched:
 * `c++ -std=c++17 first.cpp $(pkg-config --cflags --libs tickwheel_sched)`.
 *
 *     #include <cstdio>
 *     #include <string>
 *     #include <thread>
 *     #include <tickwheel/sched.hpp>
 *
 *     int main()
 *     {
 *         using namespace std::chrono_literals;
 *         tickwheel::scheduler scheduler(tickwheel::options().workers(2));
 *         tickwheel::task_id first = scheduler.add_in(20ms, [] { std::puts("order 1 was not paid"); });
 *         scheduler.put_in("order 2", 20ms, [](const tickwheel::task &task) {
 *             std::printf("%s was not paid\n", std::string(task.key()).c_str());
 *         });
 *         scheduler.cancel(first); // paid
 *         std::this_thread::sleep_for(100ms); // the program does something else
 *     } // the destructor drops pending tasks, and waits for running callbacks
 *
 * A call does, costs and fails as sched.h says at the C function of its name. The comments here describe the
 * additions of C++. The conventions are those of wheel.hpp. In short:
 *   - add_in(), add_at(), add_every(): tw_sched_add_in() and so on
 *   - put_in(), put_at(), put_every(): tw_sched_key_put_in() and so on, with a key
 *   - move_in(), move_at(), cancel(), get(): tw_sched_move_in() and so on, with an id or a key
 *   - cancel_wait(): tw_sched_cancel_wait()
 *   - count(), key_count(), drain(), stop(), advance(), next_bound(), stats(): tw_sched_count() and so on
 */
#ifndef TICKWHEEL_SCHED_HPP
#define TICKWHEEL_SCHED_HPP

#include <tickwheel/sched.h>
#include <tickwheel/wheel.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace tickwheel
{

/* ---- errors ------------------------------------------------------------------------------------------- */

namespace detail
{
inline const error_category &sched_errors() noexcept
{
    static const error_category instance("tickwheel.sched", tw_sched_strerror);
    return instance;
}
/* wheel.h says which numbers are errors of which library. */
constexpr auto sched_errors_of(int code) noexcept
{
    return code > -100 ? wheel_errors : sched_errors;
}
} // namespace detail

/* The category of the errors of sched.h. Errors that the scheduler shares with the wheel are of category(). */
inline const std::error_category &sched_category() noexcept
{
    return detail::sched_errors();
}

/* The result of a call of a scheduler, with the errors of sched.h and wheel.h.
 * Example: a std::error_code is compared as in `code == sched_status(TW_EFULL)`. */
class sched_status : public status
{
  public:
    constexpr sched_status(int code) noexcept : status(code, detail::sched_errors_of(code))
    {
    }
};

/* ---- tasks -------------------------------------------------------------------------------------------- */

/* The clock of a scheduler, as a type for time points. It has no now(), because scheduler::now() reads the
 * clock. Time points of other clocks do not compile.
 * Example: `scheduler.add_at(scheduler.now() + 500ms, f)`. */
struct scheduler_clock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<scheduler_clock>;
    static constexpr bool is_steady = true;
};
/* The id of a task. A default task_id names no task. */
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

/* The result of adding a task: an id, or an error. */
class added : public sched_status
{
  public:
    constexpr added(sched_status error, task_id id) noexcept : sched_status(error), id_(id)
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
    /* Returns the id, or throws std::system_error. */
    task_id value(const char *what = "tickwheel") const
    {
        check(what);
        return id_;
    }

  private:
    task_id id_;
};

namespace detail
{
/* The bytes of a view, whose data() may be null. */
inline tw_bytes bytes_of(std::string_view bytes) noexcept
{
    return {bytes.empty() ? "" : bytes.data(), bytes.size()};
}
inline std::string_view view_of(tw_bytes bytes) noexcept
{
    return {static_cast<const char *>(bytes.data), bytes.size};
}
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

/* The properties of a task. A view is valid as long as the tw_task from which it was made. */
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
    std::uint64_t missed_periods() const noexcept
    {
        return seen_->missed_periods;
    }
    /* Empty: the task has no key. */
    std::string_view key() const noexcept
    {
        return detail::view_of(seen_->key);
    }

  protected:
    static std::chrono::nanoseconds duration(std::uint64_t ns) noexcept
    {
        return detail::duration_of<std::chrono::nanoseconds>(ns);
    }
    const tw_task *seen_;
};

/* A task, as its callback sees it. A callable takes `const task &` or nothing. */
class task : public task_view
{
  public:
    task(tw_sched *sched, const tw_task &seen) noexcept : task_view(seen), sched_(sched)
    {
    }
    /* Makes the task run again, under its id; see tw_sched_move_in(). */
    template <class Rep, class Period>
    sched_status move_in(std::chrono::duration<Rep, Period> delay) const noexcept
    {
        return tw_sched_move_in(sched_, seen_->id, detail::ns_up(delay));
    }
    /* Makes this call the last call of a repeating task. */
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

/* A task that drain() or stop() hands over. It is valid during the call of `visit`. */
class handed : public task
{
  public:
    using task::task;
    /* False: a call of the task is under way and uses the callable, on another thread or on the thread that
     * stops the scheduler. */
    bool runnable() const noexcept
    {
        return seen_->fn != nullptr;
    }
    /* Calls the callable at once, on this thread.
     * Requires: runnable(). */
    void run() const noexcept
    {
        TICKWHEEL_ASSERT(runnable());
        seen_->fn(sched_, seen_);
    }
};

/* When a repeating task runs. The first call comes after a period, unless first() or first_at() says
 * otherwise. One call stands for all periods that were missed, unless missed() says otherwise.
 * Example: `repeat(1s).first(0s).times(5).missed(TW_MISSED_SKIP)` is five calls, the first at once. */
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
        every_.at_ns += every_.at_ns == 0; /* C would take 0 for "none" */
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

/* True for a callable that fits into the argument itself. It is no larger than the argument, it can be copied
 * byte by byte, and a call does not change its bytes. A `mutable` lambda is not callable when const, so it
 * gets a box. */
template <class F>
constexpr bool
    fits = std::is_trivially_copyable_v<F> && sizeof(F) <= sizeof(void *) && alignof(F) <= alignof(void *) &&
           (takes_task<F> ? std::is_invocable_v<const F &, const task &> : std::is_invocable_v<const F &>);

/* Copies the bytes of the callable out of the argument, because C++ forbids to read an object of one type as
 * an object of another type. */
template <class F> void run_small(tw_sched *sched, const tw_task *seen) noexcept
{
    alignas(F) unsigned char bytes[sizeof(F)];
    std::memcpy(bytes, &seen->arg, sizeof bytes);
    invoke(*std::launder(reinterpret_cast<const F *>(bytes)), sched, seen);
}

/* Any other callable is in a box on the heap, which the release hook frees. One function calls and frees, so
 * that the box is only a word larger than the callable. Without a task, the function frees. */
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

/* A callable on its way into a scheduler. It is freed again unless the scheduler takes it. */
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
            box_ = nullptr; /* the scheduler owns it, and may have freed it already */
        return error;
    }

  private:
    tw_task_fn *run_;
    box_of<F> *box_;
};

} // namespace detail

/* ---- a scheduler -------------------------------------------------------------------------------------- */

/* The options of a scheduler. An option that is not set has the default of tw_sched_options.
 * Example: `options().tick(1ms).workers(4)`. */
class options
{
  public:
    template <class Rep, class Period> options &tick(std::chrono::duration<Rep, Period> length) noexcept
    {
        raw_.tick_ns = detail::ns_up(length);
        return *this;
    }
    /* Ownership: the geometry stays the caller's, and must exist until the scheduler is made. */
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
    /* The thread that receives an id from the hook calls scheduler::run() with it, or tw_sched_run(). */
    options &execute(tw_sched_execute_fn *fn, void *arg) noexcept
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
    /* A virtual clock, which scheduler::advance() moves. */
    options &virtual_clock(scheduler_clock::time_point start = scheduler_clock::time_point()) noexcept
    {
        raw_.clock = TW_SCHED_CLOCK_VIRTUAL;
        raw_.start_ns = detail::ns_up(start);
        return *this;
    }
    /* The source of the scheduler's own memory. Callables come from operator new. */
    options &memory(tw_sched_memory_fn *fn, void *arg) noexcept
    {
        raw_.memory = fn;
        raw_.memory_arg = arg;
        return *this;
    }
    template <class Rep, class Period>
    options &on_late(std::chrono::duration<Rep, Period> limit, tw_sched_slow_fn *hook) noexcept
    {
        raw_.late_ns = detail::ns_up(limit);
        raw_.on_late = hook;
        return *this;
    }
    template <class Rep, class Period>
    options &on_slow(std::chrono::duration<Rep, Period> limit, tw_sched_slow_fn *hook) noexcept
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
    /* Explains in words which option is not valid. Empty: all options are valid. */
    std::string explain() const
    {
        char message[256] = "";
        return tw_sched_options_check(&raw_, message, sizeof message) == 0 ? std::string()
                                                                           : std::string(message);
    }

  private:
    friend class scheduler;
    tw_sched_options raw_{};
};

/* A tw_sched and the callables of its tasks.
 *
 * The scheduler copies or moves a callable in once, and destroys it once, when the first of these has happened:
 *   - its last call is over
 *   - its task was cancelled, drained or stopped, or the key of the task was set anew or removed
 *   - the scheduler was destroyed, or did not take the callable
 *
 * No lock is held then. A thread that waits in cancel_wait(), stop() or the destructor goes on after the
 * callable was destroyed. The exception is a task that another thread is just ending: the callable is
 * destroyed in the call of that thread. If thread A cancels a pending task, and thread B then calls
 * cancel_wait() for it and finds it gone, B may go on before A has destroyed the callable.
 *
 * A callable that is no larger than a pointer, trivially copyable, and callable when const is kept in the
 * word where C keeps its argument. Any other callable is one allocation. So in a small callable, a member
 * marked `mutable` does not outlast the call. An exception that leaves a callable, or its destructor, ends
 * the program (std::terminate).
 * Threads: as sched.h. */
class scheduler
{
  public:
    using time_point = scheduler_clock::time_point;
    using status = sched_status;

    /* Makes a scheduler. Throws std::system_error, whose what() says which option is wrong, or has the text of
     * the error. */
    explicit scheduler(const options &given = options())
    {
        const status made = open(given);
        if (made.ok())
            return;
        const std::string wrong = given.explain();
        detail::raise(made, wrong.empty() ? "scheduler" : wrong.c_str());
    }
    scheduler(const options &given, tickwheel::status &made) noexcept
    {
        made = open(given);
    }
    scheduler(scheduler &&other) noexcept : raw_(std::exchange(other.raw_, nullptr)), run_box_(other.run_box_)
    {
    }
    /* Ends the scheduler that was here, as the destructor does.
     * In callback: no. */
    scheduler &operator=(scheduler &&other) noexcept
    {
        scheduler taken(std::move(other));
        std::swap(raw_, taken.raw_);
        std::swap(run_box_, taken.run_box_);
        return *this;
    }
    /* As tw_sched_free(): drops pending tasks, and waits for running callbacks. So the caller holds no lock
     * that a callback takes.
     * In callback: no. */
    ~scheduler()
    {
        tw_sched_free(raw_);
    }
    explicit operator bool() const noexcept
    {
        return raw_ != nullptr;
    }
    /* The C scheduler, for the functions of sched.h that have no form here.
     * Ownership: stays with this object. */
    tw_sched *raw() const noexcept
    {
        return raw_;
    }
    time_point now() const noexcept
    {
        return time_point(detail::duration_of<std::chrono::nanoseconds>(tw_sched_now(raw_)));
    }

    template <class Rep, class Period, class F> added add_in(std::chrono::duration<Rep, Period> delay, F &&f)
    {
        return add(std::forward<F>(f), [this, ns = detail::ns_up(delay)](tw_task_fn *fn, void *arg, auto *id) {
            return tw_sched_add_in(raw_, ns, fn, arg, id);
        });
    }
    template <class Duration, class F>
    added add_at(std::chrono::time_point<scheduler_clock, Duration> due, F &&f)
    {
        return add(std::forward<F>(f), [this, ns = detail::ns_up(due)](tw_task_fn *fn, void *arg, auto *id) {
            return tw_sched_add_at(raw_, ns, fn, arg, id);
        });
    }
    template <class F> added add_every(const repeat &when, F &&f)
    {
        return add(std::forward<F>(f), [this, &when](tw_task_fn *fn, void *arg, auto *id) {
            return tw_sched_add_every(raw_, &when.raw(), fn, arg, id);
        });
    }
    status reserve(std::uint64_t n)
    {
        return tw_sched_reserve(raw_, n);
    }
    tw_cancel cancel(task_id id)
    {
        return tw_sched_cancel(raw_, id.value());
    }
    status cancel_wait(task_id id, tw_cancel *found = nullptr)
    {
        return tw_sched_cancel_wait(raw_, id.value(), found);
    }
    template <class Rep, class Period> status move_in(task_id id, std::chrono::duration<Rep, Period> delay)
    {
        return tw_sched_move_in(raw_, id.value(), detail::ns_up(delay));
    }
    template <class Duration> status move_at(task_id id, std::chrono::time_point<scheduler_clock, Duration> due)
    {
        return tw_sched_move_at(raw_, id.value(), detail::ns_up(due));
    }
    /* Looks a task up. Empty: TW_EGONE. The caller must not use its `fn` and `arg`. */
    std::optional<tw_task> get(task_id id) const noexcept
    {
        tw_task seen;
        return tw_sched_get(raw_, id.value(), &seen, sizeof seen) == 0 ? std::optional<tw_task>(seen)
                                                                       : std::nullopt;
    }
    void run(task_id id)
    {
        tw_sched_run(raw_, id.value());
    }
    std::uint64_t count() const noexcept
    {
        return tw_sched_count(raw_);
    }

    /* As add_in(), add_at() and add_every(), for the task of a key. The key is bytes of any kind. */
    template <class Rep, class Period, class F>
    status put_in(std::string_view key, std::chrono::duration<Rep, Period> delay, F &&f)
    {
        return add(std::forward<F>(f), [&, this](tw_task_fn *fn, void *arg, auto *) {
            return tw_sched_key_put_in(raw_, detail::bytes_of(key), detail::ns_up(delay), fn, arg, nullptr);
        });
    }
    template <class Duration, class F>
    status put_at(std::string_view key, std::chrono::time_point<scheduler_clock, Duration> due, F &&f)
    {
        return add(std::forward<F>(f), [&, this](tw_task_fn *fn, void *arg, auto *) {
            return tw_sched_key_put_at(raw_, detail::bytes_of(key), detail::ns_up(due), fn, arg, nullptr);
        });
    }
    template <class F> status put_every(std::string_view key, const repeat &when, F &&f)
    {
        return add(std::forward<F>(f), [&, this](tw_task_fn *fn, void *arg, auto *) {
            return tw_sched_key_put_every(raw_, detail::bytes_of(key), &when.raw(), fn, arg, nullptr);
        });
    }
    template <class Rep, class Period>
    status move_in(std::string_view key, std::chrono::duration<Rep, Period> delay)
    {
        return tw_sched_key_move_in(raw_, detail::bytes_of(key), detail::ns_up(delay));
    }
    template <class Duration>
    status move_at(std::string_view key, std::chrono::time_point<scheduler_clock, Duration> due)
    {
        return tw_sched_key_move_at(raw_, detail::bytes_of(key), detail::ns_up(due));
    }
    tw_cancel cancel(std::string_view key)
    {
        return tw_sched_key_cancel(raw_, detail::bytes_of(key), nullptr);
    }
    std::optional<tw_task> get(std::string_view key) const noexcept
    {
        tw_task seen;
        return tw_sched_key_get(raw_, detail::bytes_of(key), &seen, sizeof seen) == 0
                   ? std::optional<tw_task>(seen)
                   : std::nullopt;
    }
    std::uint64_t key_count() const noexcept
    {
        return tw_sched_key_count(raw_);
    }

    /* Drops all pending tasks. */
    status drain(std::uint64_t *count = nullptr)
    {
        return tw_sched_drain(raw_, nullptr, nullptr, count);
    }
    /* Calls visit(const handed &) for each pending task. `visit` may run the task. The callable is destroyed
     * after that. */
    template <class Visit, class = std::enable_if_t<std::is_invocable_v<Visit &, const handed &>>>
    status drain(Visit &&visit, std::uint64_t *count = nullptr)
    {
        handing<Visit> context{raw_, visit};
        return tw_sched_drain(raw_, hand_over<Visit>, &context, count);
    }
    /* Returns how many tasks were handed over. */
    std::uint64_t stop(unsigned flags = 0)
    {
        return tw_sched_stop(raw_, flags, nullptr, nullptr);
    }
    template <class Visit, class = std::enable_if_t<std::is_invocable_v<Visit &, const handed &>>>
    std::uint64_t stop(Visit &&visit, unsigned flags = 0)
    {
        handing<Visit> context{raw_, visit};
        return tw_sched_stop(raw_, flags, hand_over<Visit>, &context);
    }

    /* Moves a virtual clock by a duration, which is rounded down, or to a point in time.
     * In callback: no. */
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
    std::optional<time_point> next_bound() const noexcept
    {
        const std::uint64_t ns = tw_sched_next_bound(raw_);
        if (ns == TW_NEVER)
            return std::nullopt;
        return time_point(detail::duration_of<std::chrono::nanoseconds>(ns));
    }
    tw_sched_info stats() const noexcept
    {
        tw_sched_info counts;
        tw_sched_stats(raw_, &counts, sizeof counts);
        return counts;
    }

  private:
    template <class Visit> struct handing {
        tw_sched *sched;
        Visit &visit;
    };
    template <class Visit> static void hand_over(void *at, const tw_task *seen) noexcept
    {
        auto *context = static_cast<handing<Visit> *>(at);
        std::invoke(context->visit, handed(context->sched, *seen));
    }

    status open(const options &given) noexcept
    {
        tw_sched_options with = given.raw_;
        with.release = detail::release_box;
        with.release_of = detail::run_box;
        run_box_ = detail::run_box;
        return tw_sched_new(&raw_, &with);
    }

    /* Passes a callable to `call(fn, arg, &id)`, which gives it to the scheduler. */
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
    /* The run_box that belongs to the release hook. Parts of a program that hide their symbols have a run_box
     * each. */
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
