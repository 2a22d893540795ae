/* SPDX-License-Identifier: MIT
 *
 * The C++ interface, as a C++ program uses it: timers that cancel themselves, or raw timers if TIMER is
 * defined as tw_timer.
 */
#ifndef TIMER
#define TIMER tickwheel::timer
#define RUN run_cpp
#define object object_with_timer /* a class of its own for this file's templates */
#endif
#define LOADS_FIRST
#include "loads.inc.h"

#include <tickwheel/tickwheel.hpp>

using std::chrono::milliseconds;

struct alignas(64) object : TIMER {
    uint32_t id;
    tickwheel::task_id task;
};
static_assert(sizeof(object) == 64, "a cache line");

static void object_prepare()
{
    for (uint32_t i = 0; i < timers; i++)
        (new (&objects[i]) object())->id = i;
}

/* ---- the wheel ------------------------------------------------------------------------------------------- */

static std::optional<tickwheel::wheel<milliseconds, object>> wheel;

static void wheel_begin()
{
    wheel.emplace();
}

static void wheel_end()
{
    wheel.reset();
}

static inline void wheel_add(object *object, uint64_t ms)
{
    wheel->add_in(*object, milliseconds(ms));
}

static inline void wheel_move(object *object, uint64_t ms)
{
    wheel->move_in(*object, milliseconds(ms));
}

static inline void wheel_cancel(object *object)
{
    wheel->cancel(*object);
}

static inline void wheel_poll(uint64_t ms)
{
    for (object &due : wheel->due(milliseconds(ms)))
        fired_id(due.id);
}

/* ---- the scheduler --------------------------------------------------------------------------------------- */

static std::optional<tickwheel::scheduler> sched;

static void sched_begin()
{
    sched.emplace(tickwheel::options().virtual_clock());
}

static void sched_end()
{
    sched.reset();
}

static inline void sched_add(object *object, uint64_t ms)
{
    const auto added = sched->add_in(milliseconds(ms), [object] { fired_id(object->id); });
    need(added.ok(), "after");
    object->task = added;
}

static inline void sched_cancel(object *object)
{
    need(sched->cancel(object->task) == TW_CANCEL_CANCELLED, "cancel");
}

static inline void sched_pass(uint64_t ms)
{
    need(sched->advance(milliseconds(ms)).ok(), "advance");
}

static inline std::string_view key_of(const object *object, char *key)
{
    const uint64_t number = object->id;
    std::memcpy(key, &number, KEY_SIZE);
    return {key, KEY_SIZE};
}

static inline void sched_set(object *object, uint64_t ms)
{
    char key[KEY_SIZE];
    need(sched->put_in(key_of(object, key), milliseconds(ms), [object] { fired_id(object->id); }).ok(), "put");
}

static inline void sched_move(object *object, uint64_t ms)
{
    char key[KEY_SIZE];
    need(sched->move_in(key_of(object, key), milliseconds(ms)).ok(), "move");
}

static inline void sched_remove(object *object)
{
    char key[KEY_SIZE];
    need(sched->cancel(key_of(object, key)) == TW_CANCEL_CANCELLED, "cancel");
}

/* Two words, which the scheduler frees by itself. */
static inline void heap_add(object *object, uint64_t ms)
{
    const auto added = sched->add_in(milliseconds(ms), [object, sum = &fired_sum] {
        fired_count++;
        *sum += object->id;
    });
    need(added.ok(), "after");
    object->task = added;
}

static inline void heap_cancel(object *object)
{
    sched_cancel(object);
}

#include "loads.inc.h"
