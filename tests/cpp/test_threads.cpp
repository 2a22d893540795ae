/* SPDX-License-Identifier: MIT
 *
 * The scheduler of tickwheel.hpp with threads. A callable is destroyed once, on any thread, and before a wait
 * for its task is over.
 */
#include "support.hpp"

#include "tests/support/eventually.h"
#include "tests/support/random.h"

#include <vector>

using namespace std::chrono;
using namespace std::chrono_literals;
using tickwheel::options;
using tickwheel::repeat;
using tickwheel::scheduler;
using tickwheel::task;
using tickwheel::task_id;

/* Tells how far a callable that is held up has come, and whether a thread waits for its end. */
struct gate {
    std::atomic<bool> entered{false}, awaited{false}, open{false}, destroyed{false};
};

/* The scheduler's waits come here (--wrap). A thread that names a gate tells the gate when it waits. */
static thread_local gate *waits_for;

extern "C" {
int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock)
{
    if (waits_for != nullptr)
        waits_for->awaited = true;
    return __real_pthread_cond_wait(cond, lock);
}
}

/* A callable that waits until its gate is open. Its destructor takes a while, so that a thread which does not
 * wait for it comes first. */
class held_up
{
  public:
    explicit held_up(gate &at) : at_(&at)
    {
    }
    held_up(held_up &&from) noexcept : at_(std::exchange(from.at_, nullptr))
    {
    }
    ~held_up()
    {
        if (at_ == nullptr)
            return;
        any_moment(20000);
        at_->destroyed = true;
    }
    void operator()()
    {
        at_->entered = true;
        EVENTUALLY(at_->open.load());
        CHECK(!at_->destroyed);
    }

  private:
    gate *at_;
};

/* Starts a thread that opens the gate when the calling thread waits for the callable. */
static pthread_t opener(gate &at)
{
    waits_for = &at;
    return begin_thread([&at] {
        EVENTUALLY(at.awaited.load());
        at.open = true;
    });
}

/* The opener ends before its gate does. */
static void end_opener(pthread_t opener)
{
    waits_for = nullptr;
    eventually_joined(opener);
}

TEST_CASE("a callable is gone when cancel_wait is over")
{
    for (const unsigned workers : {0u, 2u})
        for (const std::uint64_t times : {UINT64_C(1), TW_FOREVER}) {
            gate at;
            scheduler scheduler(options().workers(workers));
            const task_id id = scheduler.add_every(repeat(1ms).times(times), held_up(at));
            EVENTUALLY(at.entered.load());
            const pthread_t later = opener(at);
            tw_cancel found = TW_CANCEL_GONE;
            CHECK(scheduler.cancel_wait(id, &found).ok());
            CHECK(at.destroyed);
            CHECK(found == TW_CANCEL_AT_WORK);
            end_opener(later);
        }
}

TEST_CASE("a callable is gone when stop is over, or the scheduler")
{
    for (const bool stops : {true, false}) {
        gate at;
        pthread_t later;
        {
            scheduler scheduler(options().workers(1));
            scheduler.add_every(1ms, held_up(at));
            EVENTUALLY(at.entered.load());
            later = opener(at);
            if (stops) {
                CHECK(scheduler.stop([](const tickwheel::handed &one) { CHECK(!one.runnable()); }) == 1);
                CHECK(at.destroyed);
            }
        }
        CHECK(at.destroyed);
        end_opener(later);
    }
}

TEST_CASE("a callable whose key is set anew while it runs ends with its call, and the new one runs")
{
    gate at;
    std::atomic<int> calls{0};
    scheduler scheduler(options().workers(2));
    scheduler.put_in("k", 1ms, held_up(at));
    EVENTUALLY(at.entered.load());
    CHECK(scheduler.put_in("k", 1ms, [&calls, mine = token()] { calls += mine.sound(); }).ok());
    CHECK(!at.destroyed);
    CHECK(token::live == 1);
    at.open = true;
    EVENTUALLY(calls == 1);
    CHECK(at.destroyed); /* before the next call of the key */
    EVENTUALLY(token::live == 0);
}

TEST_CASE("a cancel_wait in a task's own callable or its destructor is refused")
{
    scheduler scheduler;
    std::atomic<int> refused{0};
    struct waiter {
        tickwheel::scheduler *with;
        std::atomic<int> *refused;
        task_id *id;
        waiter(tickwheel::scheduler *with_, std::atomic<int> *refused_, task_id *id_)
            : with(with_), refused(refused_), id(id_)
        {
        }
        waiter(waiter &&from) noexcept
            : with(std::exchange(from.with, nullptr)), refused(from.refused), id(from.id)
        {
        }
        ~waiter()
        {
            if (with != nullptr)
                *refused += with->cancel_wait(*id) == TW_EDEADLK;
        }
        void operator()(const task &self) const
        {
            *id = self.id();
            *refused += with->cancel_wait(*id) == TW_EDEADLK;
        }
    };
    task_id id;
    scheduler.add_in(1ms, waiter(&scheduler, &refused, &id));
    EVENTUALLY(refused == 2);
}

/* ---- a storm --------------------------------------------------------------------------------------------- */

enum { STORM_THREADS = 4, ENOUGH = 5000, STEP = 500, TURNS = 32, KEYS = 8 };

struct storm {
    tickwheel::scheduler scheduler;
    std::atomic<std::uint64_t> calls{0}, bad{0};

    explicit storm(const options &given) : scheduler(given)
    {
    }
    auto job()
    {
        return [this, mine = token()](const task &self) {
            calls++;
            bad += !mine.sound();
            if (self.id().value() % 7 == 0)
                self.cancel();
            if (self.id().value() % 5 == 0 && calls % 3 == 0)
                self.move_in(100us);
            bad += !mine.sound();
        };
    }
    void turn(rng &random, std::vector<task_id> &ids);
};

void storm::turn(rng &random, std::vector<task_id> &ids)
{
    const std::string key(1, static_cast<char>('a' + rng_below(&random, KEYS)));
    const microseconds delay(rng_below(&random, 3000));
    switch (rng_below(&random, 10)) {
    case 0:
    case 1:
    case 2:
        ids.push_back(scheduler.add_in(delay, job()));
        break;
    case 3:
        ids.push_back(scheduler.add_every(repeat(1ms).times(3), job()));
        break;
    case 4:
        scheduler.put_in(key, delay, job());
        break;
    case 5:
        scheduler.put_every(key, repeat(1ms), job());
        break;
    case 6:
        scheduler.cancel(key);
        break;
    case 7:
        scheduler.move_in(key, delay);
        break;
    case 8:
        if (!ids.empty())
            scheduler.cancel(ids[rng_below(&random, ids.size())]);
        break;
    default:
        if (!ids.empty())
            scheduler.cancel_wait(ids[rng_below(&random, ids.size())]);
        break;
    }
}

/* Makes random calls until callables were called often enough. Between two looks some tasks become due. */
static void run_thread(storm &storm, unsigned number, bool stops)
{
    rng random;
    rng_init(&random, number + 1);
    std::vector<task_id> ids;
    int looks = 0;
    const auto has_called = [&](std::uint64_t calls) {
        for (int turn = 0; turn < TURNS; turn++)
            storm.turn(random, ids);
        if (number == 0 && ++looks % TURNS == 0)
            storm.scheduler.drain([](const tickwheel::handed &one) { one.run(); });
        return storm.calls >= calls;
    };
    for (std::uint64_t calls = STEP; calls <= ENOUGH; calls += STEP)
        EVENTUALLY_TOLD(has_called(calls), "%llu calls", static_cast<unsigned long long>(storm.calls));
    if (number == 1 && stops) {
        storm.scheduler.stop();
        storm.bad += storm.scheduler.add_in(1ms, storm.job()) != TW_ESTOPPED;
    }
}

static void run_storm(storm &storm, bool stops)
{
    std::vector<pthread_t> threads;
    for (unsigned i = 0; i < STORM_THREADS; i++)
        threads.push_back(begin_thread([&storm, i, stops] { run_thread(storm, i, stops); }));
    for (const pthread_t thread : threads)
        eventually_joined(thread);
}

TEST_CASE("in a storm each callable is destroyed once, and none is called after that")
{
    for (const unsigned shape : {0u, 1u, 2u, 3u}) {
        {
            storm storm(options().tick(100us).workers(shape % 2 * 2).shards(1 + shape / 2));
            run_storm(storm, shape == 3);
            CHECK(storm.calls >= ENOUGH);
            CHECK(storm.bad == 0);
            const auto stats = storm.scheduler.stats();
            CHECK(stats.added + stats.again == stats.fired + stats.cancelled + stats.handed + stats.pending);
        }
        CHECK(token::live == 0);
    }
}
