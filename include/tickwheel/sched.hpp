/* SPDX-License-Identifier: MIT
 *
 * tickwheel/sched.hpp - sched.h for C++17: lambdas as tasks, durations, keys as string_view.
 *
 * Headers only: link libtickwheel_sched. What a call does, costs and may fail with is said in sched.h, at the C
 * function that it is named after; here stands what C++ adds. The conventions are those of wheel.hpp.
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

/* ---- tasks -------------------------------------------------------------------------------------------- */

/* Time on a scheduler's clock. It has no now(): that is scheduler::now(), and no other clock's time
 * compiles. */
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

/* When a repeating task runs: repeat(1s).times(5).missed(TW_MISSED_SKIP). First after a period, if it says no
 * other. */
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

/* A callable that is kept in the argument itself: no larger than it, its bytes are all of it, and calling it
 * changes none of them. A `mutable` lambda is not callable when const, and gets a box. */
template <class F>
constexpr bool
    fits = std::is_trivially_copyable_v<F> && sizeof(F) <= sizeof(void *) && alignof(F) <= alignof(void *) &&
           (takes_task<F> ? std::is_invocable_v<const F &, const task &> : std::is_invocable_v<const F &>);

/* Its bytes are copied into the argument and out of it: an object of one type is not to be looked at as
 * another. */
template <class F> void run_small(tw_sched *sched, const tw_task *seen) noexcept
{
    alignas(F) unsigned char bytes[sizeof(F)];
    std::memcpy(bytes, &seen->arg, sizeof bytes);
    invoke(*std::launder(reinterpret_cast<const F *>(bytes)), sched, seen);
}

/* Any other callable: on the heap, and freed by the release hook. One function does both, so that the box is a
 * word larger than what is in it: without a task it is the end. */
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

/* What a scheduler is to be like: options().tick(1ms).workers(4). What is not said is as tw_sched_options
 * says. */
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
 * A callable is copied or moved in once, and is destroyed once: when its last call is over, it was cancelled,
 * its key was set anew or removed, it was drained or stopped, the scheduler was destroyed, or did not take it.
 * Then no lock is held, and whoever waits in cancel_wait(), stop() or the destructor goes on after it; but for
 * a task that another thread is just ending, in whose call that is. One that is no larger than a pointer,
 * trivially copyable and callable when const is kept where C keeps its argument; any other is one allocation.
 * So a member marked `mutable` in such a small one does not outlast the call. An exception that leaves a
 * callable, or its destructor, ends the program (std::terminate). Threads: as sched.h. */
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
