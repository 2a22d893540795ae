/* SPDX-License-Identifier: MIT
 *
 * store.hpp: each call, and each way in which a handler ends. Every test has a file of its own.
 */
#include "support.hpp"

#include "tests/support/eventually.h"
#include "tests/support/scratch.h"

#include <tickwheel/store.hpp>

#include <cmath>
#include <mutex>
#include <sqlite3.h>
#include <stdexcept>
#include <sys/stat.h>
#include <unistd.h>

using namespace std::chrono;
using namespace std::chrono_literals;
using tickwheel::changes;
using tickwheel::delayed;
using tickwheel::job;
using tickwheel::run_options;
using tickwheel::scan_range;
using tickwheel::status;
using tickwheel::store;
using tickwheel::store_options;
using tickwheel::stored;

static_assert(!std::is_copy_constructible_v<store> && std::is_nothrow_move_constructible_v<store>);

/* A folder that is removed again with all that is in it. */
class folder
{
  public:
    folder()
    {
        static char scratch[SCRATCH];
        if (scratch[0] == '\0')
            REQUIRE(scratch_folder(scratch, "cpp") == 0);
        name_ = std::string(scratch) + "/test";
        REQUIRE(mkdir(name_.c_str(), 0700) == 0);
    }
    folder(const folder &) = delete;
    folder &operator=(const folder &) = delete;
    ~folder()
    {
        for (const char *end : {"", "-wal", "-shm", "-tickwheel"})
            unlink((file() + end).c_str());
        CHECK(rmdir(name_.c_str()) == 0);
    }
    std::string file() const
    {
        return name_ + "/tasks.db";
    }

  private:
    std::string name_;
};

using tickwheel::store_time;

static store_time at(int ms)
{
    return store_time(milliseconds(ms));
}

static const store_time far = at(2000000000) + hours(1000000);

/* The tasks of a queue: "id@due id@due ...", with a "!" behind a dead task. */
static std::string list(const store &tasks, const scan_range &range = scan_range(), const char *queue = "q")
{
    std::string all;
    const status seen = tasks.scan(queue, range, [&all](const stored &task) {
        all += (all.empty() ? "" : " ") + std::string(task.id()) + "@" +
               std::to_string(task.next().time_since_epoch().count()) +
               (task.state() == TW_STATE_DEAD ? "!" : "");
    });
    CHECK(seen.ok());
    return all;
}

static std::string dead(const store &tasks)
{
    return list(tasks, scan_range().states(TW_STATE_DEAD));
}

/* ---- opening --------------------------------------------------------------------------------------------- */

TEST_CASE("an error of a store has its text and the category of its library")
{
    const status error = tickwheel::store_status(TW_EDEAD);
    CHECK(error == TW_EDEAD);
    CHECK(error.message() == std::string(tw_store_strerror(TW_EDEAD)));
    const std::error_code own = error, of_sched = tickwheel::store_status(TW_EGONE),
                          of_wheel = tickwheel::store_status(TW_EINVAL);
    CHECK(own.category() == tickwheel::store_category());
    CHECK(own.category().name() == std::string("tickwheel.store"));
    CHECK(of_sched == std::error_code(tickwheel::sched_status(TW_EGONE)));
    CHECK(of_wheel == std::error_code(status(TW_EINVAL)));
    const status counted = tickwheel::counted(TW_EBUSY, 0), changed = tickwheel::changed(TW_EBUSY, false);
    CHECK(counted.message() == std::string(tw_store_strerror(TW_EBUSY)));
    CHECK(std::error_code(counted) == std::error_code(changed));
}

TEST_CASE("a store that cannot be opened says why")
{
    status made;
    std::string why;
    store none(":memory:", store_options(), made, &why);
    CHECK(made == TW_EINVAL);
    CHECK(why.find(":memory:") != std::string::npos);
    CHECK_FALSE(none);
    CHECK_THROWS_WITH_AS(store("/nowhere/tasks.db"), doctest::Contains("unable to open"), std::system_error);
    CHECK(store_options().lazy().explain().empty());
    CHECK(store_options().max_payload(1000000000).explain() ==
          "max_payload is '1000000000': expected 0 to 999000000");
    CHECK(run_options().workers(1024).explain().empty());
    CHECK(run_options().workers(1025).explain() == "workers is '1025': expected 0, or 1 to 1024");
    CHECK_THROWS_WITH_AS(store("tasks.db", store_options().max_payload(1000000000)),
                         doctest::Contains("max_payload"), std::system_error);
    CHECK_THROWS_AS(store(std::string("a\0b", 3)), std::system_error);
}

TEST_CASE("tasks stay in the file, and a store may be moved")
{
    folder place;
    {
        store first(place.file());
        CHECK(first.put(delayed("q", "a").at(far)).made());
        store second(std::move(first));
        CHECK_FALSE(first);
        CHECK(second.put(delayed("q", "b").at(far)).made());
        first = std::move(second);
        CHECK(first.count("q").count() == 2);
    }
    store again(place.file(), store_options().lazy().busy(2s).max_payload(10));
    CHECK(again.count("q").count() == 2);
    CHECK(again.flush().ok());
    CHECK(again.put(delayed("q", "c").payload("eleven byte")) == TW_EINVAL);
    CHECK(again.message().find("payload") != std::string::npos);
}

/* ---- tasks ----------------------------------------------------------------------------------------------- */

TEST_CASE("a task has the members that it was given")
{
    folder place;
    store tasks(place.file());
    const std::string id("a\0b", 3), payload("p\0q", 3);
    CHECK(tasks
              .put(delayed("q", id)
                       .at(far)
                       .payload(payload)
                       .every(1500us)
                       .times(7)
                       .missed(TW_MISSED_COALESCE)
                       .tries(5)
                       .backoff(2s)
                       .factor(1.15)
                       .backoff_max(3s)
                       .jitter(0)
                       .max_late(90s))
              .made());
    int seen = 0;
    CHECK(tasks
              .get("q", id,
                   [&](const stored &task) {
                       seen++;
                       CHECK(task.queue() == "q");
                       CHECK(task.id() == id);
                       CHECK(task.payload() == payload);
                       CHECK(task.due() == far);
                       CHECK(task.state() == TW_STATE_WAITING);
                       CHECK(task.attempt() == 0);
                       CHECK(task.revision() > 0);
                       CHECK(task.error().empty());
                       CHECK(task.raw().every_ms == 2); /* rounded up */
                       CHECK(task.raw().times == 7);
                       CHECK(task.raw().missed == TW_MISSED_COALESCE);
                       CHECK(task.raw().tries == 5);
                       CHECK(task.raw().backoff_ms == 2000);
                       CHECK(task.raw().factor_percent == 115);
                       CHECK(task.raw().backoff_max_ms == 3000);
                       CHECK(task.raw().jitter == TW_STORE_NO_JITTER);
                       CHECK(task.raw().max_late_ms == 90000);
                   })
              .ok());
    CHECK(seen == 1);
    CHECK(tasks.get("q", "none", [](const stored &) { FAIL("there is no such task"); }) == TW_EGONE);
    CHECK(tasks.put(delayed("q", id).factor(0.5)) == TW_EINVAL);
    CHECK(tasks.put(delayed("q", id).factor(100.5)) == TW_EINVAL);
    CHECK(tasks.put(delayed("q", id).factor(1.001)) == TW_EINVAL);
    CHECK(tasks.put(delayed("q", id).jitter(101)) == TW_EINVAL);
}

TEST_CASE("a factor has two decimals, and each other one is refused")
{
    for (std::uint32_t percent = 100; percent <= 10000; percent++)
        CHECK(delayed("q", "a").factor(percent / 100.0).raw().factor_percent == percent);
    CHECK(delayed("q", "a").factor(1.1 * 1.5).raw().factor_percent == 165);
    for (const double factor :
         {0.0, 0.99, 0.999, 1.001, 1.005, 1.99999, 99.999, 100.01, -2.0, 1e300, std::nan("")})
        CHECK(delayed("q", "a").factor(factor).raw().factor_percent == 1);
}

TEST_CASE("times are rounded up, and a delay counts from the call")
{
    folder place;
    store tasks(place.file());
    tasks.put(delayed("q", "a").at(system_clock::time_point(1000001us)));
    tasks.put(delayed("q", "b").at(system_clock::time_point(-5s)));
    CHECK(list(tasks) == "a@1001 b@0");
    const store_time before = store::now();
    CHECK(tasks.move_in("q", "a", 1min).made());
    tasks.put(delayed("r", "c").in(1min));
    for (const char *queue : {"q", "r"})
        tasks.scan(queue, scan_range().from(before + 1s), [&](const stored &task) {
            CHECK(task.due() >= before + 1min);
            CHECK(task.due() <= store::now() + 1min);
        });
    CHECK(tasks.put(delayed("q", "d").in(hours::max())) == TW_EINVAL);
    CHECK(tasks.message().find("due_ms") != std::string::npos);
}

TEST_CASE("conditions keep a task, and cancelling tells what it found")
{
    folder place;
    store tasks(place.file());
    CHECK(tasks.put(delayed("q", "a").at(at(10)), TW_CONDITION_NX).made());
    const tickwheel::changed kept = tasks.put(delayed("q", "a").at(at(5)), TW_CONDITION_NX);
    CHECK(kept.ok());
    CHECK_FALSE(kept.made());
    CHECK_FALSE(tasks.move_at("q", "a", at(5), TW_CONDITION_GT).made());
    CHECK(tasks.move_at("q", "a", at(20), TW_CONDITION_GT).made());
    CHECK(tasks.put(delayed("q", "a").at(at(5)), TW_CONDITION_KEEPDUE).made());
    CHECK(list(tasks) == "a@20");
    CHECK(tasks.move_at("q", "none", at(5)) == TW_EGONE);
    tw_cancel found = TW_CANCEL_GONE;
    CHECK(tasks.cancel("q", "a", &found).ok());
    CHECK(found == TW_CANCEL_CANCELLED);
    CHECK(tasks.cancel("q", "a", &found).ok());
    CHECK(found == TW_CANCEL_GONE);
    CHECK(tasks.cancel("q", "") == TW_EINVAL);
    CHECK(tasks.cancel(std::string("q\0r", 3), "a") == TW_EINVAL); /* and not of queue "q" */
}

TEST_CASE("many changes are one commit")
{
    folder place;
    store tasks(place.file());
    changes all;
    all.put(delayed("q", "a").at(at(1)).payload("x"))
        .put(delayed("q", "b").at(at(2)))
        .move_at("q", "b", at(3))
        .move_in("q", "none", 1s)
        .cancel("q", "a");
    CHECK(tasks.apply(all).ok());
    CHECK(all.size() == 5);
    CHECK(all.result(0).made());
    CHECK(all.result(2).made());
    CHECK(all.result(3) == TW_EGONE);
    CHECK_FALSE(all.result(3).made());
    CHECK(all.found(4) == TW_CANCEL_CANCELLED);
    CHECK(list(tasks) == "b@3");
    CHECK(tasks.apply(changes().cancel("q", "b").put(delayed("q", ""))) == TW_EINVAL);
    CHECK(list(tasks) == "b@3");
    CHECK(tasks.apply(changes()).ok());
}

TEST_CASE("changes in the transaction of the program")
{
    folder place;
    store tasks(place.file());
    sqlite3 *db = nullptr;
    REQUIRE(sqlite3_open(place.file().c_str(), &db) == SQLITE_OK);
    changes all, bad;
    std::string why = "not empty";
    sqlite3_exec(db, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr);
    CHECK(apply_on(db, all.put(delayed("q", "a").at(at(1))), &why).ok());
    CHECK(why.empty());
    CHECK(list(tasks).empty());
    CHECK(apply_on(db, bad.put(delayed("", "a")), &why) == TW_EINVAL);
    CHECK(why.find("queue has 0 bytes") != std::string::npos);
    CHECK(apply_on(db, all, nullptr, "elsewhere") == TW_EFORMAT);
    sqlite3_exec(db, "COMMIT", nullptr, nullptr, nullptr);
    CHECK(list(tasks) == "a@1");
    sqlite3_close(db);
}

/* ---- looking --------------------------------------------------------------------------------------------- */

TEST_CASE("ranges, counts, the next task, a forecast, the queues")
{
    folder place;
    store tasks(place.file());
    std::optional<store_time> due = at(7);
    const store_time base{milliseconds(9000000000000)};
    CHECK(tasks.next("q", due).ok());
    CHECK_FALSE(due.has_value());
    for (int i = 1; i <= 5; i++)
        tasks.put(delayed("q", std::string(1, char('a' + i))).at(base + i * 10ms));
    tasks.put(delayed("r", "x").in(90min));
    CHECK(tasks.next("q", due).ok());
    CHECK(*due == base + 10ms);
    CHECK(list(tasks, scan_range().from(base + 20ms).to(base + 40ms).count(2)) ==
          "c@9000000000020 d@9000000000030");
    std::uint64_t last = 0;
    tasks.scan("q", scan_range().count(2), [&](const stored &task) { last = task.revision(); });
    CHECK(list(tasks, scan_range().from(base + 20ms).after(last)) ==
          "d@9000000000030 e@9000000000040 f@9000000000050");
    CHECK(tasks.count("q").count() == 5);
    CHECK(tasks.count("q", true).count() == 0);
    std::vector<std::uint64_t> counts(3);
    CHECK(tasks.forecast("r", 1h, counts).ok());
    CHECK(counts == std::vector<std::uint64_t>{0, 1, 0});
    CHECK(tasks.forecast("r", 0min, counts) == TW_EINVAL);
    std::string names;
    CHECK(tasks.queues([&names](std::string_view queue) { names += queue; }).ok());
    std::string loaded;
    CHECK(tasks.loads([&loaded](const tw_store_load &load) { loaded += load.queue; }).ok());
    CHECK(loaded == names);
    CHECK(tasks.loads("none", [&loaded](const tw_store_load &load) { loaded = load.queue; }).ok());
    CHECK(loaded == "none");
    CHECK(names == "qr");
}

/* A callable that may throw is called through C, which knows no exceptions. */
TEST_CASE("an exception that leaves another callable ends the program")
{
    folder place;
    store tasks(place.file());
    tasks.put(delayed("q", "a"));
    const pid_t child = fork();
    if (child == 0) {
        freopen("/dev/null", "w", stderr);
        std::set_terminate([] { _exit(42); });
        const tw_store_task task{};
        const auto throws = [](const stored &) { throw std::runtime_error("thrown"); };
        tickwheel::detail::visit_task<decltype(throws)>(const_cast<void *>(static_cast<const void *>(&throws)),
                                                        &task);
        _exit(0);
    }
    const int how = eventually_exited(child);
    CHECK(WIFEXITED(how));
    CHECK(WEXITSTATUS(how) == 42);
}

/* ---- handlers -------------------------------------------------------------------------------------------- */

TEST_CASE("a handler that returns nothing is done")
{
    folder place;
    store tasks(place.file());
    std::string seen;
    CHECK(tasks
              .handle("q",
                      [&](const job &job) {
                          seen = std::string(job.queue()) + "/" + std::string(job.id()) + "/" +
                                 std::string(job.payload()) + "/" + std::to_string(job.attempt()) + "/" +
                                 std::to_string(job.tries()) + "/" + std::string(job.error());
                          CHECK(job.due() == at(5));
                          CHECK(job.late() == std::chrono::milliseconds(job.raw()->late_ms));
                          CHECK(job.raw()->late_from_ms > 5);
                          CHECK(job.revision() == job.raw()->revision);
                          CHECK(job.left() == 0);
                          CHECK(job.token() == job.raw()->token);
                          CHECK(job.missed_periods() == 0);
                      })
              .ok());
    tasks.put(delayed("q", "a").at(at(5)).payload("p").tries(3));
    CHECK(tasks.start(run_options().workers(1)).ok());
    EVENTUALLY(tasks.stats().done == 1);
    CHECK(tasks.stop().ok());
    CHECK(seen == "q/a/p/1/3/");
    CHECK(tasks.count("q").count() == 0);
}

TEST_CASE("an exception is a failed attempt with its text")
{
    folder place;
    store tasks(place.file());
    std::vector<std::string> errors;
    tasks.handle("q", [&](const job &job) {
        errors.emplace_back(job.error());
        if (job.attempt() == 1)
            throw std::runtime_error("the mail server is away");
        throw 7;
    });
    tasks.put(delayed("q", "a").at(at(5)).tries(3).backoff(1ms));
    tasks.start();
    EVENTUALLY(tasks.stats().died == 1);
    tasks.stop();
    const std::string strange = "an exception that is no std::exception";
    CHECK(errors == std::vector<std::string>{"", "the mail server is away", strange});
    CHECK(dead(tasks).substr(0, 2) == "a@");
    tasks.get("q", "a", [&](const stored &task) { CHECK(task.error() == strange); });

    CHECK(tasks.count("q", true).count() == 1);
    CHECK(tasks.replay("q", "none", far).count() == 0);
    CHECK(tasks.replay("q", "a", far).count() == 1);
    CHECK(dead(tasks).empty());
    CHECK(tasks.replay_all("q", far).count() == 0);
    CHECK(tasks.purge_all("q", far).count() == 0);
}

TEST_CASE("a handler answers by its value")
{
    folder place;
    store tasks(place.file());
    std::atomic<int> calls{0};
    tasks.handle("q", [&](const job &job) {
        calls++;
        if (job.id() == "dies") {
            job.fail("no such order");
            return TW_ANSWER_DEAD;
        }
        if (job.id() == "again")
            return job.attempt() == 1 ? job.retry_in(1ms) : TW_ANSWER_DONE;
        if (job.id() == "never")
            return job.retry_in(std::chrono::hours(24) * 365 * 9000);
        return job.attempt() == 1 ? job.retry_at(far) : TW_ANSWER_DONE;
    });
    for (const char *id : {"dies", "again", "never", "far"})
        tasks.put(delayed("q", id).tries(9).backoff(1h));
    tasks.start();
    EVENTUALLY(tasks.stats().done == 1 && tasks.stats().died == 1 && tasks.stats().failed == 4);
    tasks.stop();
    CHECK(calls == 5);
    tasks.get("q", "never", [](const stored &task) {
        CHECK(task.error() == "the time of the next attempt is out of range");
    });
    tasks.cancel("q", "never");
    CHECK(list(tasks) == "far@" + std::to_string(far.time_since_epoch().count()));
    tasks.get("q", "dies", [](const stored &task) { CHECK(task.error() == "no such order"); });
    CHECK(tasks.replay_all("q", far).count() == 1);
    CHECK(tasks.count("q").count() == 2);
    CHECK(tasks.promote("q", "far").count() == 1);
    CHECK(tasks.promote("q", "far").count() == 0);
    CHECK(tasks.promote_all("q").count() == 1);
}

TEST_CASE("dead tasks are purged by their id, or up to a point in time")
{
    folder place;
    store tasks(place.file());
    tasks.handle("q", [](const job &) { return TW_ANSWER_DEAD; });
    tasks.put(delayed("q", "a"));
    tasks.put(delayed("q", "b"));
    tasks.start();
    EVENTUALLY(tasks.stats().died == 2);
    CHECK(tasks.purge("q", "b").count() == 1);
    CHECK(tasks.purge("q", "b").count() == 0);
    CHECK(tasks.purge_all("q", store::now() - 1h).count() == 0);
    CHECK(tasks.purge_all("q", store::now() + 1h).count() == 1);
    CHECK(tasks.count("q", true).count() == 0);
}

TEST_CASE("another thread answers later")
{
    folder place;
    store tasks(place.file());
    std::mutex lock;
    std::optional<job> kept;
    tasks.handle("q", [&](const job &job) {
        const std::lock_guard<std::mutex> guard(lock);
        kept = job;
        return TW_ANSWER_LATER;
    });
    tasks.put(delayed("q", "a").tries(2));
    tasks.start();
    const auto is_kept = [&] {
        const std::lock_guard<std::mutex> guard(lock);
        return kept.has_value();
    };
    EVENTUALLY(is_kept());
    CHECK(tasks.stats().jobs == 1);
    CHECK(tasks.stats().done == 0);
    const pthread_t other = begin_thread([&] { kept->answer(TW_ANSWER_DONE); });
    eventually_joined(other);
    EVENTUALLY(tasks.stats().done == 1);
    CHECK(tasks.stop().ok());
    CHECK(tasks.count("q").count() == 0);
}

TEST_CASE("the callable lives as long as the store")
{
    folder place;
    {
        store tasks(place.file());
        std::atomic<int> calls{0};
        const auto count = [&calls](const token &mine) {
            CHECK(mine.sound());
            calls++;
        };
        CHECK(tasks
                  .handle(
                      "q", [&, mine = token()](const job &) { count(mine); }, 1)
                  .ok());
        CHECK(tasks.handle_others([&, mine = token()](const job &) { count(mine); }).ok());
        CHECK(token::live == 2);
        CHECK(tasks.handle("q", [mine = token()](const job &) { CHECK(mine.sound()); }) == TW_EINVAL);
        CHECK(token::live == 2);
        no_boxes = true;
        CHECK(tasks.handle("p", [mine = token()](const job &) { CHECK(mine.sound()); }) == TW_ENOMEM);
        no_boxes = false;
        store moved(std::move(tasks));
        moved.put(delayed("q", "a"));
        moved.put(delayed("other", "b"));
        moved.start();
        EVENTUALLY(calls == 2);
        moved.stop();
        CHECK(token::live == 2);
    }
    CHECK(token::live == 0);
}

struct mailer {
    std::atomic<int> sent{0};
    void send(const job &)
    {
        sent++;
    }
};

TEST_CASE("a pause holds the tasks of a queue")
{
    folder place;
    store tasks(place.file());
    mailer post, others;
    tasks.handle("q", [&post](const job &job) { post.send(job); });
    tasks.handle("r", [&others](const job &job) { others.send(job); });
    CHECK(tasks.pause("q").made());
    CHECK_FALSE(tasks.pause("q").made());
    CHECK(tasks.pause("") == TW_EINVAL);
    tasks.put(delayed("q", "a").at(at(1)));
    tasks.start(run_options().workers(1));
    tasks.put(delayed("q", "b").at(at(1)));
    tasks.put(delayed("r", "c").at(at(2))); /* due last, and there is one worker */
    EVENTUALLY(others.sent == 1);
    CHECK(post.sent == 0);
    CHECK(tasks.resume("q").made());
    CHECK_FALSE(tasks.resume("q").made());
    CHECK(tasks.resume("") == TW_EINVAL);
    EVENTUALLY(post.sent == 2);
}

TEST_CASE("a file has the mark of a restored backup until it is taken away")
{
    folder place;
    store tasks(place.file());
    const store &look = tasks;
    bool restored = true;
    CHECK(look.is_restored(restored).ok());
    CHECK_FALSE(restored);
    CHECK(tasks.mark_restored().made());
    CHECK_FALSE(tasks.mark_restored().made());
    CHECK(look.is_restored(restored).ok());
    CHECK(restored);
    CHECK(tasks.mark_restored(false).made());
    CHECK(look.is_restored(restored).ok());
    CHECK_FALSE(restored);
}

TEST_CASE("a second run is refused, or stands by")
{
    folder place;
    store first(place.file()), second(place.file());
    std::int64_t process = -1;
    CHECK(second.runner(process).ok());
    CHECK(process == 0);
    std::atomic<int> calls{0};
    first.handle("q", [](const job &) {});
    second.handle("q", [&calls](const job &) { calls++; });
    CHECK(store(place.file()).start() == TW_EINVAL); /* no handler */
    CHECK(first.start(run_options().max_jobs(2).max_bytes(1000).max_loaded(1000)).ok());
    CHECK(second.start() == TW_EBUSY);
    CHECK(second.start(run_options().standby()).ok());
    CHECK_FALSE(second.stats().running);
    first.stop();
    EVENTUALLY(second.stats().running);
    second.put(delayed("q", "a"));
    EVENTUALLY(calls == 1);
}

TEST_CASE("errors that no call returns come to on_error")
{
    folder place;
    store tasks(place.file(), store_options().busy(5ms));
    std::atomic<int> seen{0};
    std::atomic<bool> named{true};
    std::atomic<bool> called{false}, locked{false};
    tasks.handle("q", [&](const job &) {
        called = true;
        EVENTUALLY(locked.load());
    });
    sqlite3 *db = nullptr;
    REQUIRE(sqlite3_open(place.file().c_str(), &db) == SQLITE_OK);
    const auto note = [&](status error, const char *message) {
        named = named && error == TW_EBUSY && *message != '\0';
        seen++;
    };
    tasks.put(delayed("q", "a"));
    CHECK(tasks.start(run_options().on_error(note)).ok());
    CHECK(tasks.start(run_options().on_error([](status, const char *) {})) == TW_EINVAL); /* changes nothing */
    EVENTUALLY(called.load());
    CHECK(sqlite3_exec(db, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) == SQLITE_OK);
    locked = true; /* so the answer cannot be written */
    EVENTUALLY(seen > 0);
    CHECK(named);
    sqlite3_exec(db, "COMMIT", nullptr, nullptr, nullptr);
    sqlite3_close(db);
    EVENTUALLY(tasks.stats().done == 1);
    CHECK(tasks.stats().errors > 0);
}
