/* SPDX-License-Identifier: MIT
 *
 * tickwheel/store.hpp - store.h for C++17: lambdas as handlers, time points and durations, tasks as builders.
 *
 * Headers only. A complete program, which links libtickwheel_store:
 * `c++ -std=c++17 first.cpp $(pkg-config --cflags --libs tickwheel_store)`.
 *
 *     #include <cstdio>
 *     #include <string>
 *     #include <thread>
 *     #include <tickwheel/store.hpp>
 *
 *     int main()
 *     {
 *         using namespace std::chrono_literals;
 *         tickwheel::store store("shop.db");
 *         store.handle("orders", [](const tickwheel::job &job) {
 *             std::printf("%s was not paid, attempt %u\n", std::string(job.id()).c_str(), job.attempt());
 *         });
 *         store.put(tickwheel::delayed("orders", "order:42").in(20ms).tries(3));
 *         store.put(tickwheel::delayed("orders", "order:43").in(30min)); // on the disk when the call returns
 *         store.cancel("orders", "order:43");                            // paid
 *         store.start().check();
 *         std::this_thread::sleep_for(100ms); // the program does something else
 *     } // the destructor waits for running handlers; the other tasks stay in the file
 *
 * A call does, costs and fails as store.h says at the C function of its name. The comments here describe the
 * additions of C++. The conventions are those of wheel.hpp, with two additions:
 *   Time        Time points are of std::chrono::system_clock, whose epoch is that of Unix time. They are
 *               rounded up to milliseconds, so no task is early.
 *   Exceptions  An exception that leaves a handler is a failed attempt: the answer is TW_ANSWER_FAILED, and
 *               what() is its error. An exception that leaves another callable ends the program.
 *
 * In short:
 *   - put(), move_in(), move_at(), cancel(), apply(): tw_store_put() and so on; apply_on(): tw_store_apply_on()
 *   - get(), scan(), count(), next(), forecast(), queues(): tw_store_get() and so on
 *   - handle(), handle_others(), start(), stop(), stats(), runner(): tw_store_handle() and so on
 *   - pause(), resume(), is_paused(): tw_store_pause(), tw_store_resume(), tw_store_is_paused()
 *   - mark_restored(), is_restored(): tw_store_mark_restored() and so on
 *   - replay(), replay_all(), purge(), purge_all(): tw_store_replay(), tw_store_purge()
 *   - promote(), promote_all(): tw_store_promote()
 */
#ifndef TICKWHEEL_STORE_HPP
#define TICKWHEEL_STORE_HPP

#include <tickwheel/sched.hpp>
#include <tickwheel/store.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace tickwheel
{

/* ---- errors ------------------------------------------------------------------------------------------- */

namespace detail
{
inline const error_category &store_errors() noexcept
{
    static const error_category instance("tickwheel.store", tw_store_strerror);
    return instance;
}
} // namespace detail

/* The category of the errors of store.h. Errors that the store shares with the scheduler and the wheel are of
 * their categories. */
inline const std::error_category &store_category() noexcept
{
    return detail::store_errors();
}

/* The result of a call of a store, with the errors of store.h, sched.h and wheel.h. */
class store_status : public status
{
  public:
    constexpr store_status(int code) noexcept
        : status(code, code > -200 ? detail::sched_errors_of(code) : detail::store_errors)
    {
    }
};

/* ---- time and results --------------------------------------------------------------------------------- */

/* A point in time, as a store keeps it. */
using store_time = std::chrono::time_point<std::chrono::system_clock, std::chrono::milliseconds>;

namespace detail
{
template <class Rep, class Period>
constexpr std::uint64_t ms_up(std::chrono::duration<Rep, Period> time) noexcept
{
    return count<std::chrono::milliseconds, round::up>(time);
}
template <class Duration>
constexpr std::uint64_t ms_up(std::chrono::time_point<std::chrono::system_clock, Duration> time) noexcept
{
    return ms_up(time.time_since_epoch());
}
inline store_time point_of(std::uint64_t ms) noexcept
{
    return store_time(duration_of<std::chrono::milliseconds>(ms));
}

/* The name of a queue for C, where a zero byte ends it. A name with such a byte becomes the empty name, which
 * the library refuses. */
inline const char *queue_of(const std::string &name) noexcept
{
    return std::strlen(name.c_str()) == name.size() ? name.c_str() : "";
}

inline tw_store_name name_of(const std::string &queue, std::string_view id) noexcept
{
    return {queue_of(queue), bytes_of(id)};
}
/* The name for all tasks of a queue. */
inline tw_store_name all_of(const std::string &queue) noexcept
{
    return {queue_of(queue), {}};
}
} // namespace detail

/* The result of a call that may leave all as it was: made() says whether it has changed something. */
class changed : public store_status
{
  public:
    constexpr changed(int result, bool made) noexcept : store_status(result), made_(result == 0 && made)
    {
    }
    /* False: the condition kept the task as it was, or the call has failed. */
    constexpr bool made() const noexcept
    {
        return made_;
    }

  private:
    bool made_;
};

/* The result of a call that counts tasks: count() says how many. */
class counted : public store_status
{
  public:
    constexpr counted(int result, std::uint64_t count) noexcept : store_status(result), count_(count)
    {
    }
    /* 0 if the call has failed. */
    constexpr std::uint64_t count() const noexcept
    {
        return count_;
    }
    /* A number is compared with count(), an error with code(). */
    friend bool operator==(counted, int) = delete;

  private:
    std::uint64_t count_;
};

/* ---- tasks to put ------------------------------------------------------------------------------------- */

/* A task to put, which owns its texts. Without at() and in() it is due at once.
 * Example: `delayed("orders", "order:42").in(30min).payload("...").tries(3)`. */
class delayed
{
  public:
    delayed(std::string queue, std::string id) : queue_(std::move(queue)), id_(std::move(id))
    {
    }
    template <class Duration>
    delayed &at(std::chrono::time_point<std::chrono::system_clock, Duration> due) noexcept
    {
        raw_.due_ms = detail::ms_up(due);
        return *this;
    }
    /* Counts from this call on. */
    template <class Rep, class Period> delayed &in(std::chrono::duration<Rep, Period> delay) noexcept
    {
        raw_.due_ms = detail::sum(tw_store_now(), detail::ms_up(delay));
        return *this;
    }
    delayed &payload(std::string bytes) noexcept
    {
        payload_ = std::move(bytes);
        return *this;
    }
    /* Repeats the task, from due time to due time. */
    template <class Rep, class Period> delayed &every(std::chrono::duration<Rep, Period> period) noexcept
    {
        raw_.every_ms = detail::ms_up(period);
        return *this;
    }
    /* Calls in all, of a task that repeats; 0 and TW_FOREVER: no end. */
    delayed &times(std::uint64_t calls) noexcept
    {
        raw_.times = calls;
        return *this;
    }
    delayed &missed(tw_missed policy) noexcept
    {
        raw_.missed = policy;
        return *this;
    }
    delayed &tries(std::uint32_t attempts) noexcept
    {
        raw_.tries = attempts;
        return *this;
    }
    template <class Rep, class Period> delayed &backoff(std::chrono::duration<Rep, Period> delay) noexcept
    {
        raw_.backoff_ms = detail::ms_up(delay);
        return *this;
    }
    /* Each further wait is so many times as long, 1 to 100, with at most two decimals. Any other factor becomes
     * one that the put refuses (TW_EINVAL). */
    delayed &factor(double times) noexcept
    {
        const double percent = times * 100;
        const auto whole = times >= 1 && times <= 100 ? static_cast<std::uint32_t>(percent + 0.5) : 0U;
        const bool fits = whole > 0 && percent - whole < 1e-6 && whole - percent < 1e-6;
        raw_.factor_percent = fits ? whole : 1;
        return *this;
    }
    template <class Rep, class Period> delayed &backoff_max(std::chrono::duration<Rep, Period> delay) noexcept
    {
        raw_.backoff_max_ms = detail::ms_up(delay);
        return *this;
    }
    /* Percent by which a wait is shorter or longer. */
    delayed &jitter(std::uint32_t percent) noexcept
    {
        raw_.jitter = percent > 0 ? percent : TW_STORE_NO_JITTER;
        return *this;
    }
    /* A call whose first attempt is later than that is not made. */
    template <class Rep, class Period> delayed &max_late(std::chrono::duration<Rep, Period> time) noexcept
    {
        std::uint64_t ms = detail::ms_up(time);
        raw_.max_late_ms = ms > 0 ? ms : TW_STORE_ON_TIME;
        return *this;
    }
    /* For the functions of store.h. Its pointers are valid until this object changes. */
    tw_store_delayed raw() const noexcept
    {
        tw_store_delayed task = raw_;
        task.queue = detail::queue_of(queue_);
        task.id = detail::bytes_of(id_);
        task.payload = payload_.empty() ? tw_bytes{} : detail::bytes_of(payload_);
        return task;
    }

  private:
    std::string queue_, id_, payload_;
    tw_store_delayed raw_{};
};

/* Changes to make in one commit, one after the other.
 * Example: `store.apply(changes().put(a).put(b).cancel("orders", "order:42"))`. */
class changes
{
  public:
    using status = store_status;

    changes &put(delayed task, unsigned conditions = 0)
    {
        all_.push_back({TW_STORE_VERB_PUT, std::move(task), conditions});
        return *this;
    }
    template <class Duration>
    changes &move_at(std::string queue, std::string id,
                     std::chrono::time_point<std::chrono::system_clock, Duration> due, unsigned conditions = 0)
    {
        all_.push_back({TW_STORE_VERB_MOVE, delayed(std::move(queue), std::move(id)).at(due), conditions});
        return *this;
    }
    template <class Rep, class Period>
    changes &move_in(std::string queue, std::string id, std::chrono::duration<Rep, Period> delay,
                     unsigned conditions = 0)
    {
        all_.push_back({TW_STORE_VERB_MOVE, delayed(std::move(queue), std::move(id)).in(delay), conditions});
        return *this;
    }
    changes &cancel(std::string queue, std::string id)
    {
        all_.push_back({TW_STORE_VERB_CANCEL, delayed(std::move(queue), std::move(id)), 0});
        return *this;
    }
    std::size_t size() const noexcept
    {
        return all_.size();
    }
    /* The result of the i-th change, a put or a move.
     * Requires: the changes were applied without an error, and i < size(). */
    changed result(std::size_t i) const noexcept
    {
        TICKWHEEL_ASSERT(i < all_.size());
        return {all_[i].result, all_[i].made};
    }
    /* What the i-th change has found, a cancel.
     * Requires: as result(). */
    tw_cancel found(std::size_t i) const noexcept
    {
        TICKWHEEL_ASSERT(i < all_.size());
        return all_[i].found;
    }

  private:
    friend class store;
    friend status apply_on(sqlite3 *db, changes &all, std::string *why, const char *schema);

    struct one {
        tw_store_verb verb;
        delayed task;
        unsigned conditions;
        int result = 0;
        bool made = false;
        tw_cancel found = TW_CANCEL_GONE;
    };

    /* Passes the changes to `apply(changes, n)`, and keeps their results. */
    template <class Apply> status pass(Apply apply)
    {
        std::vector<tw_store_change> raw;
        raw.reserve(all_.size());
        for (const one &each : all_) {
            tw_store_change change{};
            change.verb = each.verb;
            change.task = each.task.raw();
            change.conditions = each.conditions;
            raw.push_back(change);
        }
        const status done = apply(raw.data(), raw.size());
        for (std::size_t i = 0; done.ok() && i < raw.size(); i++) {
            all_[i].result = raw[i].result;
            all_[i].made = raw[i].made;
            all_[i].found = raw[i].found;
        }
        return done;
    }

    std::vector<one> all_;
};

/* As tw_store_apply_on(): makes the changes on the caller's own connection, in its transaction. If it fails and
 * `why` is not null, *why receives the reason. `schema` null: "main". */
inline store_status apply_on(sqlite3 *db, changes &all, std::string *why = nullptr,
                             const char *schema = nullptr)
{
    char message[TW_STORE_MESSAGE_SIZE] = "";
    const store_status done = all.pass([&](tw_store_change *raw, std::size_t n) {
        return tw_store_apply_on(db, schema, raw, n, message, sizeof message);
    });
    if (why != nullptr)
        *why = message;
    return done;
}

/* ---- tasks in the file -------------------------------------------------------------------------------- */

/* A task of the file, as the callable of get() or scan() sees it. It is valid during that call. */
class stored
{
  public:
    explicit stored(const tw_store_task &seen) noexcept : seen_(&seen)
    {
    }
    std::string_view queue() const noexcept
    {
        return seen_->queue;
    }
    std::string_view id() const noexcept
    {
        return detail::view_of(seen_->id);
    }
    tw_state state() const noexcept
    {
        return seen_->state;
    }
    store_time due() const noexcept
    {
        return detail::point_of(seen_->due_ms);
    }
    store_time next() const noexcept
    {
        return detail::point_of(seen_->next_ms);
    }
    std::uint64_t revision() const noexcept
    {
        return seen_->revision;
    }
    std::uint32_t attempt() const noexcept
    {
        return seen_->attempt;
    }
    /* It stands behind the attempt of an older task. */
    bool replaced() const noexcept
    {
        return seen_->replaced;
    }
    std::string_view payload() const noexcept
    {
        return detail::view_of(seen_->payload);
    }
    /* Empty: no attempt has failed. */
    std::string_view error() const noexcept
    {
        return seen_->error != nullptr ? seen_->error : "";
    }
    const tw_store_task &raw() const noexcept
    {
        return *seen_;
    }

  private:
    const tw_store_task *seen_;
};

/* Which tasks a scan shows: all but the dead ones, unless a member says otherwise.
 * Example: `scan_range().to(store::now() + 1h).count(100)`. */
class scan_range
{
  public:
    /* The states, added. Example: `states(TW_STATE_DEAD)`. */
    scan_range &states(unsigned flags) noexcept
    {
        raw_.states = flags;
        return *this;
    }
    template <class Duration>
    scan_range &from(std::chrono::time_point<std::chrono::system_clock, Duration> first) noexcept
    {
        raw_.from_ms = detail::ms_up(first);
        return *this;
    }
    template <class Duration>
    scan_range &to(std::chrono::time_point<std::chrono::system_clock, Duration> last) noexcept
    {
        raw_.to_ms = detail::ms_up(last);
        return *this;
    }
    /* Of the tasks with the place from() only the revisions after this one. */
    scan_range &after(std::uint64_t revision) noexcept
    {
        raw_.after = revision;
        return *this;
    }
    scan_range &count(std::uint64_t tasks) noexcept
    {
        raw_.count = tasks;
        return *this;
    }
    const tw_store_range &raw() const noexcept
    {
        return raw_;
    }

  private:
    tw_store_range raw_{};
};

/* ---- handlers ----------------------------------------------------------------------------------------- */

/* A job, as its handler gets it. A copy names the same job. A handler that returns TW_ANSWER_LATER keeps a
 * copy, with which another thread calls answer(). */
class job
{
  public:
    explicit job(tw_job *raw) noexcept : raw_(raw)
    {
    }
    std::string_view queue() const noexcept
    {
        return raw_->queue;
    }
    std::string_view id() const noexcept
    {
        return detail::view_of(raw_->id);
    }
    std::string_view payload() const noexcept
    {
        return detail::view_of(raw_->payload);
    }
    store_time due() const noexcept
    {
        return detail::point_of(raw_->due_ms);
    }
    std::chrono::milliseconds late() const noexcept
    {
        return detail::duration_of<std::chrono::milliseconds>(raw_->late_ms);
    }
    std::uint64_t revision() const noexcept
    {
        return raw_->revision;
    }
    std::uint64_t left() const noexcept
    {
        return raw_->left;
    }
    std::uint64_t missed_periods() const noexcept
    {
        return raw_->missed_periods;
    }
    std::uint32_t attempt() const noexcept
    {
        return raw_->attempt;
    }
    std::uint32_t tries() const noexcept
    {
        return raw_->tries;
    }
    std::uint64_t token() const noexcept
    {
        return raw_->token;
    }
    /* Of the attempt before. Empty: none. */
    std::string_view error() const noexcept
    {
        return raw_->error != nullptr ? raw_->error : "";
    }
    void fail(const std::string &error) const noexcept
    {
        tw_job_fail(raw_, error.c_str());
    }
    /* As tw_job_retry_at(). Returns: TW_ANSWER_FAILED. Example: `return job.retry_in(5min);`. If the time is
     * out of range, this is the error of the attempt, and the next one comes after the backoff. */
    template <class Duration>
    tw_answer retry_at(std::chrono::time_point<std::chrono::system_clock, Duration> next) const noexcept
    {
        return retry_at_ms(detail::ms_up(next));
    }
    template <class Rep, class Period>
    tw_answer retry_in(std::chrono::duration<Rep, Period> delay) const noexcept
    {
        return retry_at_ms(detail::sum(tw_store_now(), detail::ms_up(delay)));
    }
    void answer(tw_answer with) const noexcept
    {
        tw_job_answer(raw_, with);
    }
    tw_job *raw() const noexcept
    {
        return raw_;
    }

  private:
    tw_answer retry_at_ms(std::uint64_t next_ms) const noexcept
    {
        if (tw_job_retry_at(raw_, next_ms) != 0)
            tw_job_fail(raw_, "the time of the next attempt is out of range");
        return TW_ANSWER_FAILED;
    }

    tw_job *raw_;
};

namespace detail
{

template <class F> constexpr bool takes_job = std::is_invocable_v<F &, const job &>;

/* Calls a handler. One that returns nothing is done when it returns. */
template <class F> tw_answer answer_of(F &f, const job &job)
{
    if constexpr (std::is_void_v<std::invoke_result_t<F &, const class job &>>) {
        std::invoke(f, job);
        return TW_ANSWER_DONE;
    } else {
        return std::invoke(f, job);
    }
}

/* The callable of a handler. The store keeps it until it is closed. */
struct handler {
    handler() = default;
    handler(const handler &) = delete;
    handler &operator=(const handler &) = delete;
    virtual ~handler() = default;
    std::unique_ptr<handler> next;
};

template <class F> struct handler_of final : handler {
    template <class G> handler_of(std::in_place_t, G &&g) : f(std::forward<G>(g))
    {
    }
    static tw_answer call(void *self, tw_job *raw) noexcept
    {
        F &f = static_cast<handler_of *>(self)->f;
#if defined(__cpp_exceptions)
        try {
            return answer_of(f, job(raw));
        } catch (const std::exception &error) {
            tw_job_fail(raw, error.what());
        } catch (...) {
            tw_job_fail(raw, "an exception that is no std::exception");
        }
        return TW_ANSWER_FAILED;
#else
        return answer_of(f, job(raw));
#endif
    }
    F f;
};

/* Passes what C shows to the callable behind `visit`. */
template <class Visit> void visit_task(void *visit, const tw_store_task *seen) noexcept
{
    std::invoke(*static_cast<Visit *>(visit), stored(*seen));
}

template <class Visit> void visit_queue(void *visit, const char *queue) noexcept
{
    std::invoke(*static_cast<Visit *>(visit), std::string_view(queue));
}

template <class Visit> void visit_load(void *visit, const tw_store_load *load) noexcept
{
    std::invoke(*static_cast<Visit *>(visit), *load);
}

} // namespace detail

/* The options of a run. An option that is not set has the default of tw_store_run_options.
 * Example: `run_options().workers(4).standby()`. */
class run_options
{
  public:
    /* While another process runs the tasks of the file, wait and take over when it ends. */
    run_options &standby() noexcept
    {
        raw_.flags |= TW_STORE_RUN_STANDBY;
        return *this;
    }
    run_options &workers(std::uint32_t n) noexcept
    {
        raw_.workers = n;
        return *this;
    }
    run_options &max_jobs(std::uint32_t n) noexcept
    {
        raw_.max_jobs = n;
        return *this;
    }
    run_options &max_bytes(std::uint64_t n) noexcept
    {
        raw_.max_bytes = n;
        return *this;
    }
    run_options &max_loaded(std::uint64_t n) noexcept
    {
        raw_.max_loaded = n;
        return *this;
    }
    /* Receives the news that no call returns, on the store's own thread, as tw_store_error_fn says: TW_EFAILED,
     * TW_EDEAD, TW_EDAMAGED, other errors, and ok() when the file can be used again. */
    run_options &on_error(std::function<void(status, const char *)> f)
    {
        on_error_ = std::move(f);
        return *this;
    }
    /* Explains in words which option is not valid. Empty: all options are valid. */
    std::string explain() const
    {
        char message[TW_STORE_MESSAGE_SIZE];
        return tw_store_run_options_check(&raw_, message, sizeof message) == 0 ? std::string()
                                                                               : std::string(message);
    }

  private:
    friend class store;
    tw_store_run_options raw_{};
    std::function<void(status, const char *)> on_error_;
};

/* ---- a store ------------------------------------------------------------------------------------------ */

/* The options of a store. An option that is not set has the default of tw_store_options. */
class store_options
{
  public:
    /* As TW_STORE_OPEN_LAZY: a call returns before its change is on the disk. */
    store_options &lazy() noexcept
    {
        raw_.flags |= TW_STORE_OPEN_LAZY;
        return *this;
    }
    /* As TW_STORE_OPEN_EXISTING: no tables are made in a file that has none. */
    store_options &existing() noexcept
    {
        raw_.flags |= TW_STORE_OPEN_EXISTING;
        return *this;
    }
    /* How long a call waits for another connection's lock. */
    template <class Rep, class Period> store_options &busy(std::chrono::duration<Rep, Period> most) noexcept
    {
        raw_.busy_ms = detail::ms_up(most);
        return *this;
    }
    store_options &max_payload(std::uint64_t bytes) noexcept
    {
        raw_.max_payload = bytes;
        return *this;
    }
    /* As run_options::explain(). */
    std::string explain() const
    {
        char message[TW_STORE_MESSAGE_SIZE];
        return tw_store_options_check(&raw_, message, sizeof message) == 0 ? std::string()
                                                                           : std::string(message);
    }

  private:
    friend class store;
    tw_store_options raw_{};
};

/* A tw_store and the callables of its handlers.
 *
 * A handler's callable is copied or moved in once, and destroyed when the store is closed, after its last call.
 * Several workers may call it at the same time, unless at_once is 1. Queues and ids are bytes; the name of a
 * queue has no zero byte.
 * Threads: as store.h. */
class store
{
  public:
    using status = store_status;

    /* Opens a file. Throws std::system_error, whose what() is the message of tw_store_open(). */
    explicit store(const std::string &path, const store_options &given = store_options())
    {
        char message[TW_STORE_MESSAGE_SIZE] = "";
        const status made = open(path, given, message);
        if (!made.ok())
            detail::raise(made, message);
    }
    /* As above, but throws nothing of its own. If `why` is not null, *why receives the message. */
    store(const std::string &path, const store_options &given, tickwheel::status &made,
          std::string *why = nullptr)
    {
        char message[TW_STORE_MESSAGE_SIZE] = "";
        made = open(path, given, message);
        if (why != nullptr)
            *why = message;
    }
    store(store &&other) noexcept
        : raw_(std::exchange(other.raw_, nullptr)), handlers_(std::move(other.handlers_)),
          on_error_(std::move(other.on_error_))
    {
    }
    /* Closes the store that was here, as the destructor does. */
    store &operator=(store &&other) noexcept
    {
        store taken(std::move(other));
        std::swap(raw_, taken.raw_);
        std::swap(handlers_, taken.handlers_);
        std::swap(on_error_, taken.on_error_);
        return *this;
    }
    /* As tw_store_close(): waits for the jobs that are under way, until each is answered. The callables are
     * destroyed after that.
     * In callback: no. */
    ~store()
    {
        tw_store_close(raw_);
    }
    explicit operator bool() const noexcept
    {
        return raw_ != nullptr;
    }
    /* The C store, for the functions of store.h that have no form here.
     * Ownership: stays with this object. */
    tw_store *raw() const noexcept
    {
        return raw_;
    }
    static store_time now() noexcept
    {
        return detail::point_of(tw_store_now());
    }
    /* Of the call that failed last, on any thread. */
    std::string message() const
    {
        char text[TW_STORE_MESSAGE_SIZE] = "";
        tw_store_message(raw_, text, sizeof text);
        return text;
    }
    status flush()
    {
        return tw_store_flush(raw_);
    }

    changed put(const delayed &task, unsigned conditions = 0)
    {
        const tw_store_delayed raw = task.raw();
        return change_by([&](bool *made) { return tw_store_put(raw_, &raw, conditions, made); });
    }
    template <class Duration>
    changed move_at(const std::string &queue, std::string_view id,
                    std::chrono::time_point<std::chrono::system_clock, Duration> due, unsigned conditions = 0)
    {
        return change_by([&](bool *made) {
            return tw_store_move_at(raw_, detail::name_of(queue, id), detail::ms_up(due), conditions, made);
        });
    }
    template <class Rep, class Period>
    changed move_in(const std::string &queue, std::string_view id, std::chrono::duration<Rep, Period> delay,
                    unsigned conditions = 0)
    {
        return change_by([&](bool *made) {
            return tw_store_move_in(raw_, detail::name_of(queue, id), detail::ms_up(delay), conditions, made);
        });
    }
    status cancel(const std::string &queue, std::string_view id, tw_cancel *found = nullptr)
    {
        return tw_store_cancel(raw_, detail::name_of(queue, id), found);
    }
    status apply(changes &all)
    {
        return all.pass([this](tw_store_change *raw, std::size_t n) { return tw_store_apply(raw_, raw, n); });
    }
    status apply(changes &&all)
    {
        return apply(all);
    }

    /* Calls visit(const stored &) with the task. */
    template <class Visit> status get(const std::string &queue, std::string_view id, Visit &&visit) const
    {
        return tw_store_get(raw_, detail::name_of(queue, id),
                            detail::visit_task<std::remove_reference_t<Visit>>, address(visit));
    }
    /* Calls visit(const stored &) with each task. */
    template <class Visit> status scan(const std::string &queue, const scan_range &range, Visit &&visit) const
    {
        return tw_store_scan(raw_, detail::queue_of(queue), &range.raw(),
                             detail::visit_task<std::remove_reference_t<Visit>>, address(visit));
    }
    template <class Visit> status scan(const std::string &queue, Visit &&visit) const
    {
        return scan(queue, scan_range(), std::forward<Visit>(visit));
    }
    counted count(const std::string &queue, bool dead = false) const
    {
        return count_by(
            [&](std::uint64_t *n) { return tw_store_count(raw_, detail::queue_of(queue), dead, n); });
    }
    /* If the call succeeds, `due` receives the time of the first task that waits, or nothing if none does. */
    status next(const std::string &queue, std::optional<store_time> &due) const
    {
        std::uint64_t ms = TW_NEVER;
        const status done = tw_store_next(raw_, detail::queue_of(queue), &ms);
        if (done.ok())
            due = ms == TW_NEVER ? std::nullopt : std::optional<store_time>(detail::point_of(ms));
        return done;
    }
    /* Counts the calls to come of tasks that wait, in as many steps as `counts` has numbers. */
    template <class Rep, class Period>
    status forecast(const std::string &queue, std::chrono::duration<Rep, Period> step,
                    std::vector<std::uint64_t> &counts) const
    {
        constexpr std::size_t most = std::numeric_limits<std::uint32_t>::max();
        const auto steps = static_cast<std::uint32_t>(counts.size() < most ? counts.size() : most);
        return tw_store_forecast(raw_, detail::queue_of(queue), detail::ms_up(step), steps, counts.data());
    }
    /* Calls visit(std::string_view) with the name of each queue. */
    template <class Visit> status queues(Visit &&visit) const
    {
        return tw_store_queues(raw_, detail::visit_queue<std::remove_reference_t<Visit>>, address(visit));
    }
    /* Calls visit(const tw_store_load &) with the load of each queue. */
    template <class Visit> status loads(Visit &&visit) const
    {
        return tw_store_loads(raw_, nullptr, detail::visit_load<std::remove_reference_t<Visit>>,
                              address(visit));
    }
    /* The same for one queue. */
    template <class Visit> status loads(const std::string &queue, Visit &&visit) const
    {
        return tw_store_loads(raw_, detail::queue_of(queue), detail::visit_load<std::remove_reference_t<Visit>>,
                              address(visit));
    }
    /* Names the handler of a queue. A handler takes `const job &`, and returns a tw_answer, or nothing, which
     * means TW_ANSWER_DONE. An exception that leaves it means TW_ANSWER_FAILED, with what() as the error.
     * Requires: an exception leaves it only while nobody else can answer the job. */
    template <class F> status handle(const std::string &queue, F &&f, std::uint32_t at_once = 0)
    {
        return add(detail::queue_of(queue), at_once, std::forward<F>(f));
    }
    /* Names the handler of all queues that have no handler of their own. */
    template <class F> status handle_others(F &&f, std::uint32_t at_once = 0)
    {
        return add(nullptr, at_once, std::forward<F>(f));
    }
    status start(const run_options &given = run_options())
    {
        tw_store_run_options with = given.raw_;
        std::unique_ptr<error_function> own;
        if (given.on_error_) {
            own = std::make_unique<error_function>(given.on_error_);
            with.on_error = tell_error;
            with.arg = own.get();
        }
        const status done = tw_store_start(raw_, &with);
        if (done.ok())
            on_error_ = std::move(own);
        return done;
    }
    /* In callback: no. */
    status stop()
    {
        return tw_store_stop(raw_);
    }
    tw_store_info stats() const noexcept
    {
        tw_store_info counts;
        tw_store_stats(raw_, &counts, sizeof counts);
        return counts;
    }
    /* If the call succeeds, `process` receives the answer. */
    status runner(std::int64_t &process) const
    {
        return tw_store_runner(raw_, &process);
    }
    changed pause(const std::string &queue)
    {
        return change_by([&](bool *made) { return tw_store_pause(raw_, detail::queue_of(queue), made); });
    }
    changed resume(const std::string &queue)
    {
        return change_by([&](bool *made) { return tw_store_resume(raw_, detail::queue_of(queue), made); });
    }
    /* If the call succeeds, `paused` receives the answer. */
    status is_paused(const std::string &queue, bool &paused) const
    {
        return tw_store_is_paused(raw_, detail::queue_of(queue), &paused);
    }
    changed mark_restored(bool mark = true)
    {
        return change_by([&](bool *made) { return tw_store_mark_restored(raw_, mark, made); });
    }
    /* If the call succeeds, `restored` receives the answer. */
    status is_restored(bool &restored) const
    {
        return tw_store_is_restored(raw_, &restored);
    }

    /* Makes a dead task wait again. count() is 0 if it was not dead. */
    template <class Duration>
    counted replay(const std::string &queue, std::string_view id,
                   std::chrono::time_point<std::chrono::system_clock, Duration> due)
    {
        return count_by([&](std::uint64_t *n) {
            return tw_store_replay(raw_, detail::name_of(queue, id), detail::ms_up(due), n);
        });
    }
    /* Makes the dead tasks of a queue wait again, at most TW_STORE_ALL_MAX. */
    template <class Duration>
    counted replay_all(const std::string &queue,
                       std::chrono::time_point<std::chrono::system_clock, Duration> due)
    {
        return count_by([&](std::uint64_t *n) {
            return tw_store_replay(raw_, detail::all_of(queue), detail::ms_up(due), n);
        });
    }
    /* Lets a waiting task be ready now. count() is 0 if it was not waiting. */
    counted promote(const std::string &queue, std::string_view id)
    {
        return count_by(
            [&](std::uint64_t *n) { return tw_store_promote(raw_, detail::name_of(queue, id), n); });
    }
    /* Lets the waiting tasks of a queue be ready now, at most TW_STORE_ALL_MAX. */
    counted promote_all(const std::string &queue)
    {
        return count_by([&](std::uint64_t *n) { return tw_store_promote(raw_, detail::all_of(queue), n); });
    }
    /* Removes a dead task. count() is 0 if it was not dead. */
    counted purge(const std::string &queue, std::string_view id)
    {
        return count_by([&](std::uint64_t *n) {
            return tw_store_purge(raw_, detail::name_of(queue, id), TW_STORE_TIME_MAX, n);
        });
    }
    /* Removes the tasks of a queue that died before this point in time, at most TW_STORE_ALL_MAX. */
    template <class Duration>
    counted purge_all(const std::string &queue,
                      std::chrono::time_point<std::chrono::system_clock, Duration> before)
    {
        return count_by([&](std::uint64_t *n) {
            return tw_store_purge(raw_, detail::all_of(queue), detail::ms_up(before), n);
        });
    }

  private:
    using error_function = std::function<void(tickwheel::status, const char *)>;

    status open(const std::string &path, const store_options &given, char (&message)[TW_STORE_MESSAGE_SIZE])
    {
        return tw_store_open(&raw_, detail::queue_of(path), &given.raw_, message, sizeof message);
    }
    /* Makes a call that has an outcome. */
    template <class Call> static changed change_by(Call call)
    {
        bool made = false;
        const int result = call(&made);
        return {result, made};
    }
    template <class Call> static counted count_by(Call call)
    {
        std::uint64_t n = 0;
        const int result = call(&n);
        return {result, n};
    }
    template <class F> static void *address(F &f) noexcept
    {
        return const_cast<void *>(static_cast<const void *>(std::addressof(f)));
    }
    static void tell_error(void *f, int error, const char *message) noexcept
    {
        (*static_cast<error_function *>(f))(status(error), message);
    }
    template <class G> status add(const char *queue, std::uint32_t at_once, G &&g)
    {
        using callable = std::decay_t<G>;
        static_assert(detail::takes_job<callable>, "tickwheel: a handler takes a const tickwheel::job &");
        using box = detail::handler_of<callable>;
        std::unique_ptr<box> own(new (std::nothrow) box(std::in_place, std::forward<G>(g)));
        if (own == nullptr)
            return TW_ENOMEM;
        const status done = tw_store_handle(raw_, queue, at_once, box::call, own.get());
        if (done.ok()) {
            own->next = std::move(handlers_);
            handlers_ = std::move(own);
        }
        return done;
    }

    tw_store *raw_ = nullptr;
    std::unique_ptr<detail::handler> handlers_;
    std::unique_ptr<error_function> on_error_;
};

} // namespace tickwheel

#endif
