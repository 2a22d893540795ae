/* SPDX-License-Identifier: MIT
 *
 * Tasks, schedules, where tasks wait, and chunks, without a server: against an array that knows where each task should be,
 * and an allocator that knows what is out.
 */
#include "tests/support/cmocka.h"
#include "tests/support/random.h"
#include "tests/support/run.h"

#include <src/redis/schedules/check.h>
#include <src/redis/schedules/chunk.h>
#include <src/redis/schedules/grave.h>
#include <src/redis/schedules/look.h>
#include <src/redis/schedules/overview.h>
#include <src/redis/schedules/place.h>
#include <src/redis/schedules/route.h>
#include <src/redis/schedules/schedule.h>
#include <src/redis/schedules/schedules.h>
#include <src/redis/schedules/sums.h>
#include <src/redis/schedules/varint.h>
#include <sodium/randombytes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- memory that is counted ------------------------------------------------------------------------------------ */

struct block {
    size_t size;
    uint64_t guard;
    char bytes[];
};

#define GUARD UINT64_C(0xB10CB10CB10CB10C)

static size_t bytes_out;
static long blocks_out;

static struct block *block_of(void *bytes)
{
    struct block *block = (struct block *)(void *)((char *)bytes - offsetof(struct block, bytes));
    assert_true(block->guard == GUARD);
    return block;
}

static size_t counted_usable(void *bytes)
{
    return block_of(bytes)->size;
}

static void counted_free(void *old)
{
    if (old == NULL)
        return;
    struct block *block = block_of(old);
    bytes_out -= block->size;
    blocks_out--;
    memset(block, 0xEE, sizeof *block + block->size);
    free(block);
}

static void *counted_alloc(size_t size)
{
    struct block *block = malloc(sizeof *block + size);
    assert_non_null(block);
    *block = (struct block){.size = size, .guard = GUARD};
    memset(block->bytes, 0xAA, size);
    bytes_out += size;
    blocks_out++;
    return block->bytes;
}

static void *counted_realloc(void *old, size_t size)
{
    char *bytes = counted_alloc(size);
    if (old != NULL)
        memcpy(bytes, old, counted_usable(old) < size ? counted_usable(old) : size);
    counted_free(old);
    return bytes;
}

static const struct tw__memory counted = {counted_alloc, counted_realloc, counted_free, counted_usable};

/* What routes and schedules keep for the server, and give back. */
static long targets_out;

static void *new_target(void)
{
    targets_out++;
    return counted_alloc(1);
}

static void forget_target(void *target)
{
    targets_out--;
    counted_free(target);
}

/* ---- the start and the end of a test ------------------------------------------------------------------------------ */

static const uint64_t START = UINT64_C(1700000000000);

static struct tw__schedules *all;

static void open_all(void)
{
    all = tw__schedules_new(&counted, forget_target, START, 5000);
    assert_non_null(all);
}

static void close_schedule(struct tw__schedule *schedule)
{
    tw__schedule_detach(schedule);
    tw__grave_bury(schedule);
}

/* All schedules have been buried. */
static void close_all(void)
{
    tw__grave_reap_all(all);
    assert_false(tw__grave_reaping(all));
    assert_false(tw__place_any_waiting(all));
    assert_int_equal(all->count, 0);
    assert_int_equal(all->pending, 0);
    assert_int_equal(all->queued, 0);
    assert_int_equal(all->held, 0);
    assert_int_equal(all->bytes, 0);
    assert_int_equal(all->reaping, 0);
    assert_int_equal(tw_wheel_count(all->wheel), 0);
    assert_int_equal(tw_wheel_count(all->retries), 0);
    tw__schedules_free(all);
    assert_int_equal(targets_out, 0);
    assert_int_equal(blocks_out, 0);
    assert_int_equal(bytes_out, 0);
}

/* For a test of one schedule, which is attached. */
static struct tw__schedule *open_one(void)
{
    open_all();
    struct tw__schedule *schedule = tw__schedule_new(all);
    tw__schedule_attach(schedule);
    return schedule;
}

static void close_one(struct tw__schedule *schedule)
{
    close_schedule(schedule);
    close_all();
}

/* The key of the tables too comes of the seed, so that a run can be had again. */
static const char *name_of_bytes(void)
{
    return "seeded";
}

static void seeded_bytes(void *const bytes, const size_t size)
{
    struct rng rng;
    rng_init(&rng, run_seed());
    for (size_t i = 0; i < size; i++)
        ((char *)bytes)[i] = (char)rng_next(&rng);
}

static struct tw__bytes text(const char *string)
{
    return (struct tw__bytes){string, strlen(string)};
}

static void assert_bytes_equal(struct tw__bytes a, struct tw__bytes b)
{
    assert_int_equal(a.size, b.size);
    if (a.size > 0)
        assert_memory_equal(a.at, b.at, a.size);
}

/* ---- varints ------------------------------------------------------------------------------------------------------ */

static void a_varint_comes_back_at_every_border(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits <= 64; bits++) {
        for (int64_t off = -1; off <= 1; off++) {
            uint64_t value = (bits == 64 ? 0 : UINT64_C(1) << bits) + (uint64_t)off, back = 7;
            char bytes[TW__VARINT_MAX + 1];
            size_t size = tw__varint_size(value), width = 0;
            for (uint64_t rest = value; rest > 0; rest >>= 1)
                width++;
            assert_int_equal(size, width == 0 ? 1 : (width + 6) / 7);
            assert_ptr_equal(tw__varint_put(bytes, value), bytes + size);
            assert_ptr_equal(tw__varint_get(bytes, &back), bytes + size);
            assert_true(back == value);
            back = 7;
            assert_ptr_equal(tw__varint_take(bytes, bytes + sizeof bytes, &back), bytes + size);
            assert_true(back == value);
            for (size_t cut = 0; cut < size; cut++)
                assert_null(tw__varint_take(bytes, bytes + cut, &back));
        }
    }
}

static void a_varint_that_is_too_long_or_too_large_is_refused(void **state)
{
    char bytes[TW__VARINT_MAX + 2];
    uint64_t value;
    (void)state;
    memset(bytes, 0xFF, sizeof bytes);
    assert_null(tw__varint_take(bytes, bytes + sizeof bytes, &value));
    bytes[TW__VARINT_MAX] = 0;
    assert_null(tw__varint_take(bytes, bytes + sizeof bytes, &value));
    bytes[TW__VARINT_MAX - 1] = 1;
    assert_ptr_equal(tw__varint_take(bytes, bytes + sizeof bytes, &value), bytes + TW__VARINT_MAX);
    assert_true(value == UINT64_MAX);
    bytes[TW__VARINT_MAX - 1] = 2;
    assert_null(tw__varint_take(bytes, bytes + sizeof bytes, &value));
}

/* ---- tasks -------------------------------------------------------------------------------------------------------- */

/* Strings of many lengths, their contents told by their number. */
static char letters[20000];

static struct tw__bytes string_of(void *arg, uint32_t i)
{
    static const size_t sizes[] = {0, 1, 127, 128, 16383, 16384, 5};
    unsigned first = *(unsigned *)arg + i;
    return (struct tw__bytes){letters + first % 100, sizes[first % (sizeof sizes / sizeof sizes[0])]};
}

static void fill_letters(void)
{
    for (size_t i = 0; i < sizeof letters; i++)
        letters[i] = (char)(i * 7 + i / 256);
}

static void check_payload(const struct tw__task *task, unsigned first, uint32_t count)
{
    struct tw__payload payload = tw__task_payload(task), same = payload;
    uint64_t bytes = 0, bytes_of_fields = 0;
    assert_int_equal(payload.count, count);
    for (uint32_t i = 0; i < count; i++) {
        struct tw__bytes string = string_of(&first, i);
        assert_bytes_equal(tw__payload_next(&payload), string);
        bytes += string.size;
        bytes_of_fields += i % 2 == 0 ? string.size : 0;
    }
    assert_int_equal(payload.count, 0);
    assert_true(tw__payload_bytes(same) == bytes);
    assert_true(tw__payload_field_bytes(same) == bytes_of_fields);
    struct tw__bytes packed = tw__task_packed(task);
    assert_ptr_equal(packed.at + packed.size, payload.at);
    assert_true(tw__payload_valid(packed));
}

static void check_task(const struct tw__task *task, const struct tw__task_plan *plan)
{
    assert_false(tw__task_filed(task));
    assert_bytes_equal(tw__task_id(task), plan->id);
    assert_true(tw__task_due(task) == plan->due);
    assert_true(tw__task_every(task) == plan->every);
    assert_true(tw__task_times(task) == (plan->every == 0 ? 1 : plan->times));
    assert_int_equal(tw__task_tries(task), plan->tries);
}

static void what_a_task_is_made_of_comes_back(void **state)
{
    static const size_t id_sizes[] = {0, 1, 127, 128, 300};
    (void)state;
    fill_letters();
    for (unsigned k = 0; k < 1000; k++) {
        unsigned first = k % 7;
        struct tw__task_plan plan = {.id = {letters + k, id_sizes[k % 5]},
                                     .due = k % 3 == 0 ? INT64_MAX : START + k,
                                     .every = k % 2 == 0 ? 0 : INT64_MAX - k,
                                     .times = k % 4 == 1 ? TW__FOR_EVER : k,
                                     .tries = k % (TW__TRIES_MAX + 1),
                                     .count = 1 + k % 130,
                                     .string = string_of,
                                     .arg = &first};
        struct tw__task *task = tw__task_new(&plan, &counted);
        check_task(task, &plan);
        check_payload(task, first, plan.count);
        /* The same again, from the packed payload. */
        struct tw__task_plan again = plan;
        again.count = 0;
        again.packed = tw__task_packed(task);
        struct tw__task *copy = tw__task_new(&again, &counted);
        check_task(copy, &plan);
        check_payload(copy, first, plan.count);
        assert_int_equal(counted_usable(task), counted_usable(copy));
        counted_free(task);
        counted_free(copy);
    }
    assert_int_equal(blocks_out, 0);
}

static void tries_and_times_can_be_set_beside_the_rest(void **state)
{
    (void)state;
    struct tw__task_plan plan = {.id = text("id"), .due = 7, .every = 9, .times = 3, .packed = text("\1\1p")};
    struct tw__task *task = tw__task_new(&plan, &counted);
    for (uint32_t tries = 0; tries < 100; tries++) {
        tw__task_set_tries(task, tries);
        plan.tries = tries & TW__TRIES_MAX;
        check_task(task, &plan);
        plan.times = tries % 2 == 0 ? TW__FOR_EVER : tries;
        tw__task_set_times(task, plan.times);
        check_task(task, &plan);
        assert_int_equal(task->flags % TW__TASK_TRIES, TW__TASK_REPEATS);
    }
    assert_bytes_equal(tw__task_packed(task), plan.packed);
    counted_free(task);
}

static void a_packed_payload_is_whole_and_nothing_else(void **state)
{
    static const struct tw__bytes good[] = {{"\1\0", 2}, {"\1\1p", 3}, {"\2\0\2ab", 5}, {"\3\0\0\0", 4}};
    static const struct tw__bytes bad[] = {{"", 0},
                                           {"\0", 1},
                                           {"\0\0", 2},
                                           {"\1", 1},
                                           {"\1\1", 2},
                                           {"\1\0p", 3},
                                           {"\2\1p", 3},
                                           {"\1\2p", 3},
                                           {"\2\0\2ab\0", 6},
                                           {"\1\x80", 2},
                                           {"\1\1pq", 4},
                                           {"\x80\x80\x80\x80\x10\0", 6},
                                           {"\x81\x80\x80\x80\x10\0", 6},
                                           {"\1\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\1p", 12},
                                           {"\2\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\1p", 12}};
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_true(tw__payload_valid(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(tw__payload_valid(bad[i]));
}

/* ---- the model ----------------------------------------------------------------------------------------------------- */

enum { ROOMS = 4, PLANS = 7, REFS = 3 + 20 + 90 + 600, ROOM_MAX = 600 };
static const unsigned room_size[ROOMS] = {3, 20, 90,
                                          600}; /* small ones are looked at in another way than large ones */

static const struct tw__plan plan_of[PLANS] = {
    {TW__STREAM, TW__LATE_FIRE, 0, 0, {"a", 1}},     {TW__LIST, TW__LATE_FIRE, 0, 0, {"a", 1}},
    {TW__STREAM, TW__LATE_DROP, 0, 500, {"a", 1}},   {TW__STREAM, TW__LATE_DROP, 0, 501, {"a", 1}},
    {TW__STREAM, TW__LATE_COALESCE, 9, 0, {"b", 1}}, {TW__STREAM, TW__LATE_FIRE, 0, 0, {"", 0}},
    {TW__LIST, TW__LATE_FIRE, 0, 0, {"b", 1}},
};

enum place {
    ABSENT,
    NOWHERE, /* taken, and nothing done with it yet */
    WHEEL,
    BEHIND,
    OVERDUE,
    LATE,
    HELD
};

struct ref {
    struct room *room;
    struct tw__task *task;
    uint64_t due, every, times;
    uint64_t order;    /* the number of its filing */
    uint64_t filed_ms; /* late ones: when they were filed */
    int64_t position;  /* in a queue */
    unsigned tries, plan;
    enum place place;
    bool moved; /* its turn among equals is not promised */
};

/* What waits for one target. */
struct line {
    uint64_t retry_ms; /* TW_NEVER: no */
    int64_t turn;      /* 0: none */
};

struct room {
    struct tw__schedule *schedule;
    struct ref *ref;
    unsigned size;
    struct line line[PLANS];
    bool attached;
};

static struct {
    struct rng rng;
    struct room room[ROOMS];
    struct ref ref[REFS];
    uint64_t now, monotonic, order;
    int64_t front, back, turns; /* positions and turns given so far */
    uint64_t graves, buried;    /* schedules, and their tasks */
    unsigned nowhere;
    uint64_t taken, passed;
} m;

static uint64_t below(uint64_t limit)
{
    return rng_below(&m.rng, limit);
}

static bool is_filed(const struct ref *ref)
{
    return ref->place == WHEEL || ref->place == BEHIND;
}

/* Ids of many lengths, the empty one too. */
static struct tw__bytes id_of(unsigned i)
{
    static char id[64];
    memset(id, 'x', sizeof id);
    int digits = snprintf(id, sizeof id, "%u", i);
    id[digits] = 'x';
    return (struct tw__bytes){id, i == 0 ? 0 : (size_t)digits + 1 + i % 40};
}

static struct ref *ref_of(const struct tw__task *task, struct room **room)
{
    struct tw__bytes id = tw__task_id(task);
    unsigned long i = id.size == 0 ? 0 : strtoul(id.at, NULL, 10);
    for (*room = m.room; *room < m.room + ROOMS; ++*room)
        if ((*room)->schedule == tw__schedule_of(all, task)) {
            assert_true(i < (*room)->size);
            assert_ptr_equal((*room)->ref[i].task, task);
            return &(*room)->ref[i];
        }
    return NULL; /* of one that was buried */
}

static uint64_t hash_of_ref(const struct room *room, const struct ref *ref)
{
    struct tw__bytes id = id_of((unsigned)(ref - room->ref));
    return tw__schedule_hash(all, id);
}

static void open_room(struct room *room)
{
    memset(room->ref, 0, room->size * sizeof *room->ref);
    for (unsigned i = 0; i < room->size; i++)
        room->ref[i].room = room;
    room->attached = false;
    room->schedule = tw__schedule_new(all);
    room->schedule->name = new_target();
    for (unsigned i = 0; i < PLANS; i++)
        room->line[i] = (struct line){TW_NEVER, 0};
}

static void open_model(void)
{
    memset(&m, 0, sizeof m);
    rng_init(&m.rng, run_seed());
    open_all();
    all->order = UINT32_MAX - 5000; /* it wraps soon */
    m.order = all->order;
    m.now = START;
    m.monotonic = 5000;
    struct ref *next = m.ref;
    for (unsigned i = 0; i < ROOMS; i++) {
        m.room[i].ref = next;
        m.room[i].size = room_size[i];
        next += room_size[i];
        open_room(&m.room[i]);
    }
}

/* ---- the model: where tasks are -------------------------------------------------------------------------------------- */

static unsigned held_of(const struct room *room, unsigned plan)
{
    unsigned count = 0;
    for (const struct ref *ref = room->ref; ref < room->ref + room->size; ref++)
        count += ref->place == HELD && ref->plan == plan;
    return count;
}

static void model_leave(struct room *room, struct ref *ref)
{
    enum place place = ref->place;
    ref->place = NOWHERE;
    if (place == HELD && held_of(room, ref->plan) == 0)
        room->line[ref->plan] = (struct line){TW_NEVER, 0};
}

static void model_file(struct ref *ref, uint64_t due)
{
    ref->due = due;
    ref->order = m.order++;
    ref->moved = false;
    if (due > tw_wheel_now(all->wheel)) {
        ref->place = WHEEL;
    } else if (due > m.now && all->behind != NULL && due > tw_wheel_now(all->behind)) {
        ref->place = BEHIND;
    } else {
        ref->place = LATE;
        ref->filed_ms = m.now;
        ref->position = ++m.back;
    }
}

static void model_enqueue(struct ref *ref, enum place place, bool first)
{
    ref->place = place;
    ref->position = first ? --m.front : ++m.back;
}

/* The first of a queue, as far as the model knows; `due`: of those whose time has come. */
static struct ref *first_of(enum place place, bool due)
{
    struct ref *first = NULL;
    for (struct ref *ref = m.ref; ref < m.ref + REFS; ref++)
        if (ref->room->attached && ref->place == place && (!due || ref->due <= m.now) &&
            (first == NULL || ref->position < first->position))
            first = ref;
    return first;
}

/* Whether a queue gives nothing now: the clock was set back, and its first waits once more. */
static bool is_stuck(const struct tw__link *queue)
{
    return queue->next == queue || tw__task_due(tw__task_of_link(queue->next)) > m.now;
}

/* Whether none of a detached schedule stands before it: such a one takes its turn, and is passed over. */
static bool is_next(const struct tw__link *queue, const struct ref *ref)
{
    return ref != NULL && queue->next == &ref->task->parked.link;
}

/* Up to when tasks are due there: what the wheel has passed is due, though the clock was set back since. */
static uint64_t reach(const struct ref *ref)
{
    uint64_t now = m.now;
    if (is_filed(ref)) {
        const struct tw_wheel *wheel = ref->place == BEHIND && all->behind != NULL ? all->behind : all->wheel;
        now = tw_wheel_now(wheel);
    }
    return now > m.now ? now : m.now;
}

/* A take may move tasks from the wheel to the front of the overdue ones. */
static void see_what_was_moved_to_the_front(void)
{
    struct ref *moved[REFS];
    unsigned count = 0, due = 0;
    struct room *room;
    for (struct tw__link *link = all->overdue.next; link != &all->overdue; link = link->next) {
        struct ref *ref = ref_of(tw__task_of_link(link), &room);
        if (ref == NULL)
            continue;
        if (!is_filed(ref))
            break;
        due += ref->due <= m.now;
        assert_true(ref->due <= reach(ref));
        moved[count++] = ref;
    }
    assert_true(due <= 1);
    while (count > 0)
        model_enqueue(moved[--count], OVERDUE, true);
}

/* And it passes over tasks of detached schedules. */
static void see_what_was_passed_over(void)
{
    for (struct ref *ref = m.ref; ref < m.ref + REFS; ref++)
        if (ref->place > NOWHERE && !ref->room->attached && !tw__task_filed(ref->task)) {
            assert_true(ref->place == HELD || ref->due <= reach(ref));
            model_leave(ref->room, ref);
            m.passed++;
        }
}

/* ---- the model: judging ----------------------------------------------------------------------------------------------- */

static void judge_turn(const struct room *its_room, const struct ref *taken)
{
    int64_t turn = its_room->line[taken->plan].turn;
    assert_true(turn > 0);
    assert_ptr_equal(all->probe, taken->task);
    for (struct ref *ref = m.ref; ref < m.ref + REFS; ref++)
        if (ref->room->attached && ref->place == HELD && ref != taken) {
            int64_t other = ref->room->line[ref->plan].turn;
            if (ref->room == its_room && ref->plan == taken->plan)
                assert_true(ref->position > taken->position);
            else
                assert_true(other == 0 || other > turn);
        }
}

/* The wheels' earliest of those whose time has come. The second wheel's are taken first: the main one has only what it had
 * not given yet when the clock was set back. */
static const struct ref *first_filed(void)
{
    const struct ref *first = NULL;
    for (const struct ref *ref = m.ref; ref < m.ref + REFS; ref++) {
        if (!ref->room->attached || !is_filed(ref) || ref->due > m.now)
            continue;
        if (first == NULL || (first->place == ref->place ? ref->due < first->due : ref->place == BEHIND))
            first = ref;
    }
    return first;
}

static void judge_filed(const struct ref *taken)
{
    const struct ref *first = first_filed();
    if (first == NULL || first == taken)
        return;
    assert_int_equal(first->place, taken->place);
    assert_true(first->due >= taken->due);
    for (const struct ref *ref = m.ref; ref < m.ref + REFS; ref++)
        if (ref->room->attached && ref->place == taken->place && ref->due == taken->due && !ref->moved)
            assert_true(ref->order >= taken->order || taken->moved);
}

/* A late one takes its turn when nothing is left that was due before it was filed. */
static void judge_queued(const struct ref *taken)
{
    const struct ref *late = first_of(LATE, true), *overdue = first_of(OVERDUE, true);
    if (taken->place == LATE) {
        assert_ptr_equal(late, taken);
        if (is_next(&all->overdue, overdue))
            assert_true(overdue->due > taken->filed_ms);
        const struct ref *filed = first_filed();
        if (filed != NULL && all->overdue.next == &all->overdue)
            assert_true(filed->due > taken->filed_ms);
        return;
    }
    if (is_next(&all->past, late))
        assert_true(taken->due <= late->filed_ms);
    if (taken->place == OVERDUE)
        assert_ptr_equal(overdue, taken);
    else
        assert_true(overdue == NULL || is_stuck(&all->overdue));
}

static void judge(const struct room *room, const struct ref *taken, bool queued)
{
    assert_true(room->attached);
    assert_false(tw__task_filed(taken->task));
    assert_int_equal(taken->task->flags & (TW__TASK_QUEUED | TW__TASK_HELD | TW__TASK_BEHIND), 0);
    if (taken->place == HELD) {
        assert_true(queued);
        judge_turn(room, taken);
        return;
    }
    assert_ptr_not_equal(all->probe, taken->task);
    assert_true(taken->due <= reach(taken));
    if (is_filed(taken))
        judge_filed(taken);
    else
        assert_true(queued);
    if (!queued)
        return;
    judge_queued(taken);
    for (struct ref *ref = m.ref; ref < m.ref + REFS; ref++)
        assert_false(ref->room->attached && ref->place == HELD && ref->room->line[ref->plan].turn > 0);
}

static void judge_none(bool queued)
{
    for (struct ref *ref = m.ref; ref < m.ref + REFS; ref++) {
        if (!ref->room->attached)
            continue;
        assert_false(is_filed(ref) && ref->due <= m.now);
        if (queued)
            assert_false(ref->place == HELD && ref->room->line[ref->plan].turn > 0);
    }
    if (queued)
        assert_true(is_stuck(&all->overdue) && is_stuck(&all->past));
    if (m.now >= tw_wheel_now(all->wheel)) {
        assert_null(all->behind);
        assert_true(tw__place_next_work(all) > m.now);
    }
}

static struct ref *take(bool queued, uint32_t budget, struct room **room)
{
    uint32_t left = budget;
    struct tw__task *task = NULL;
    enum tw__taken taken = tw__place_take(all, m.now, queued, &left, &task);
    see_what_was_moved_to_the_front();
    see_what_was_passed_over();
    if (taken == TW__TAKEN_NONE)
        judge_none(queued);
    else if (taken == TW__TAKEN_MORE)
        assert_int_equal(left, 0);
    if (taken != TW__TAKEN_TASK)
        return NULL;
    struct ref *ref = ref_of(task, room);
    assert_non_null(ref);
    assert_true(left < budget);
    judge(*room, ref, queued);
    model_leave(*room, ref);
    m.taken++;
    return ref;
}

/* ---- the model: what is looked at ------------------------------------------------------------------------------------- */

static void check_place(const struct ref *ref)
{
    static const uint8_t flags[] = {[NOWHERE] = 0,
                                    [WHEEL] = 0,
                                    [BEHIND] = TW__TASK_BEHIND,
                                    [OVERDUE] = TW__TASK_QUEUED,
                                    [LATE] = TW__TASK_QUEUED,
                                    [HELD] = TW__TASK_QUEUED | TW__TASK_HELD};
    assert_int_equal(ref->task->flags & (TW__TASK_QUEUED | TW__TASK_HELD | TW__TASK_BEHIND), flags[ref->place]);
    assert_int_equal(tw__task_filed(ref->task), ref->place != NOWHERE);
}

static void check_ref(const struct room *room, const struct ref *ref)
{
    unsigned i = (unsigned)(ref - room->ref);
    struct tw__bytes id = id_of(i);
    assert_ptr_equal(tw__schedule_find(room->schedule, tw__schedule_foresee(all, id), id), ref->task);
    if (ref->place == ABSENT)
        return;
    assert_bytes_equal(tw__task_id(ref->task), id);
    assert_true(tw__task_due(ref->task) == ref->due);
    assert_true(tw__task_every(ref->task) == ref->every);
    assert_true(tw__task_times(ref->task) == ref->times);
    assert_int_equal(ref->task->order, (uint32_t)ref->order);
    assert_int_equal(tw__place_tries(all, ref->task), ref->tries & TW__TRIES_MAX);
    assert_bytes_equal(tw__task_packed(ref->task), text("\1\1p"));
    check_place(ref);
    const struct tw__route *route = tw__route_of(all, ref->task);
    struct tw__plan plan = tw__route_plan(route);
    const struct tw__plan *wanted = &plan_of[ref->plan];
    assert_ptr_equal(route->schedule, room->schedule);
    assert_ptr_equal(tw__route_at(all, route->index), route);
    assert_true(plan.kind == wanted->kind && plan.late == wanted->late && plan.maxlen == wanted->maxlen &&
                plan.late_ms == wanted->late_ms);
    assert_bytes_equal(plan.target, wanted->target);
}

/* F3, and where the line stands. */
static void check_line(const struct room *room, const struct ref *ref)
{
    const struct tw__route *route = tw__route_of(all, ref->task);
    const struct line *line = &room->line[ref->plan];
    assert_int_equal(tw_timer_pending(&route->retry), line->retry_ms != TW_NEVER);
    assert_int_equal(route->turn.next != NULL, line->turn > 0);
    if (line->retry_ms != TW_NEVER)
        assert_true(tw_timer_deadline(&route->retry) == line->retry_ms);
    bool held = held_of(room, ref->plan) > 0;
    assert_int_equal(route->queue.next != &route->queue, held);
    assert_int_equal(held, (line->turn > 0) + (line->retry_ms != TW_NEVER));
    assert_int_equal(tw__place_is_blocked(all, ref->task), held && all->probe != ref->task);
}

/* A queue's order; tasks of buried schedules may stand in it too. */
static void check_queue(const struct tw__link *queue, enum place place)
{
    int64_t before = INT64_MIN;
    uint64_t count = 0, wanted = 0;
    for (struct tw__link *link = queue->next; link != queue; link = link->next) {
        struct room *room;
        const struct ref *ref = ref_of(tw__task_of_link(link), &room);
        assert_ptr_equal(link->next->prev, link);
        if (ref == NULL)
            continue;
        assert_int_equal(ref->place, place);
        assert_true(ref->position > before);
        before = ref->position;
        count++;
    }
    for (struct ref *ref = m.ref; ref < m.ref + REFS; ref++)
        wanted += ref->place == place;
    assert_int_equal(count, wanted);
}

struct sums {
    uint64_t schedules, pending, queued, held, bytes, too_large, reaping, filed, taken_up;
};

static void check_room(const struct room *room, struct sums *sums)
{
    uint64_t count = 0, queued = 0, held = 0, routes = 0;
    uint64_t tasks[PLANS] = {0};
    for (const struct ref *ref = room->ref; ref < room->ref + room->size; ref++) {
        count += ref->place != ABSENT;
        queued += ref->place == OVERDUE || ref->place == LATE;
        held += ref->place == HELD;
        sums->filed += is_filed(ref);
        if (ref->place != ABSENT)
            tasks[ref->plan]++;
    }
    for (unsigned i = 0; i < PLANS; i++)
        routes += tasks[i] > 0;
    assert_int_equal(tw__table_count(&room->schedule->tasks), count);
    assert_int_equal(room->schedule->queued, queued);
    assert_int_equal(room->schedule->held, held);
    assert_int_equal(tw__route_count(room->schedule), routes);
    assert_int_equal(room->schedule->attached, room->attached);
    sums->taken_up += tw__schedule_bytes(room->schedule);
    if (!room->attached) {
        sums->reaping += count;
        return;
    }
    sums->schedules++;
    sums->pending += count;
    sums->queued += queued;
    sums->held += held;
    sums->bytes += room->schedule->bytes;
    sums->too_large += tw__sums_dump_most(room->schedule) > all->dump_limit;
}

static void check_sums(void)
{
    struct sums sums = {0};
    bool detached = m.graves > 0;
    for (const struct room *room = m.room; room < m.room + ROOMS; room++) {
        check_room(room, &sums);
        detached |= !room->attached;
    }
    assert_int_equal(all->count, sums.schedules);
    assert_int_equal(all->pending, sums.pending);
    assert_int_equal(all->queued, sums.queued);
    assert_int_equal(all->held, sums.held);
    assert_int_equal(all->bytes, sums.bytes);
    assert_int_equal(all->too_large, sums.too_large);
    assert_int_equal(all->reaping, sums.reaping + m.buried);
    assert_int_equal(tw__grave_reaping(all), detached);
    if (m.graves > 0)
        return;
    uint64_t behind = all->behind == NULL ? 0 : tw_wheel_count(all->behind);
    assert_int_equal(tw_wheel_count(all->wheel) + behind, sums.filed);
    /* All memory is some schedule's, but for its name, what all share, the list of routes and what was made for routes. */
    size_t more =
        (size_t)targets_out + (all->route == NULL ? 0 : counted_usable(all->route)) + counted_usable(all);
    assert_int_equal(bytes_out, sums.taken_up + more);
}

static void check_wheels(void)
{
    assert_null(tw_wheel_check(all->wheel));
    assert_null(tw_wheel_check(all->retries));
    if (all->behind != NULL)
        assert_null(tw_wheel_check(all->behind));
}

static void check_invariants(void)
{
    const char *fault = tw__check_all(all);
    if (fault != NULL)
        fail_msg("%s", fault);
}

static void check_all(void)
{
    check_sums();
    for (struct ref *ref = m.ref; ref < m.ref + REFS; ref++) {
        check_ref(ref->room, ref);
        if (ref->place != ABSENT && (ref->place == HELD || below(16) == 0))
            check_line(ref->room, ref);
    }
    check_queue(&all->overdue, OVERDUE);
    check_queue(&all->past, LATE);
}

/* ---- the model: looking ----------------------------------------------------------------------------------------------- */

static int compare_refs(const void *a, const void *b)
{
    const struct ref *one = *(const struct ref *const *)a, *two = *(const struct ref *const *)b;
    if (one->due != two->due)
        return one->due < two->due ? -1 : 1;
    return one->order < two->order ? -1 : 1;
}

/* The tasks of a room in order. */
static size_t sort_refs(struct room *room, const struct ref **sorted)
{
    size_t count = 0;
    for (struct ref *ref = room->ref; ref < room->ref + room->size; ref++)
        if (ref->place != ABSENT)
            sorted[count++] = ref;
    qsort(sorted, count, sizeof *sorted, compare_refs);
    return count;
}

/* A time that is near others, or one of the ends. */
static uint64_t some_time(void)
{
    static const uint64_t scale[] = {1, 50, 2000, 100000, 10000000};
    uint64_t off = below(scale[below(5)]);
    uint64_t ends = below(20);
    if (ends < 2)
        return ends == 0 ? 0 : UINT64_MAX;
    return below(2) == 0 ? m.now + off : m.now - off;
}

static void look_for_earliest(struct room *room)
{
    const struct ref *sorted[ROOM_MAX];
    struct tw__task *found[ROOM_MAX];
    size_t count = sort_refs(room, sorted), first = 0;
    uint64_t from = some_time(), to = some_time(), limit = 1 + below(below(4) == 0 ? 600 : 5);
    size_t got = tw__look_earliest(room->schedule, from, to, m.now, limit, found);
    while (first < count && sorted[first]->due < from)
        first++;
    for (size_t i = 0; i < got; i++) {
        assert_true(first + i < count);
        assert_ptr_equal(found[i], sorted[first + i]->task);
        assert_true(tw__task_due(found[i]) <= to);
    }
    assert_true(got <= limit);
    assert_true(got == limit || first + got == count || sorted[first + got]->due > to);
}

/* The same behind one of the tasks, and without the tasks that a TW.DRAIN cannot deliver. */
static void look_for_wanted(struct room *room)
{
    static uint64_t drain;
    const struct ref *sorted[ROOM_MAX];
    struct tw__task *found[ROOM_MAX];
    size_t count = sort_refs(room, sorted), at = count == 0 ? 0 : below(count), wanted_count = 0;
    struct tw__wanted wanted = {.to = UINT64_MAX};
    uint64_t limit = 1 + below(600);
    if (count > 0 && below(2) == 0)
        wanted.after = sorted[at]->task;
    if (below(2) == 0)
        wanted.drain = drain += 2; /* even: refused */
    for (size_t i = 0; i < count; i++)
        if (below(4) == 0)
            tw__route_of(all, sorted[i]->task)->drain = drain;
    size_t got = tw__look_wanted(room->schedule, &wanted, m.now, limit, found);
    for (size_t i = wanted.after == NULL ? 0 : at + 1; i < count && wanted_count < limit; i++) {
        struct tw__task *task = sorted[i]->task;
        if (wanted.drain != 0 && (tw__route_of(all, task)->drain == drain || tw__place_is_blocked(all, task)))
            continue;
        assert_true(wanted_count < got);
        assert_ptr_equal(found[wanted_count++], task);
    }
    assert_int_equal(got, wanted_count);
}

static void look_ahead(struct room *room)
{
    uint64_t counts[20], wanted[20] = {0}, step = 1 + below(below(2) == 0 ? 30 : 100000);
    size_t many = 1 + below(20);
    if (below(30) == 0)
        step = UINT64_MAX / 2;
    memset(counts, 0xEE, sizeof counts);
    tw__look_forecast(room->schedule, m.now, step, many, counts);
    for (struct ref *ref = room->ref; ref < room->ref + room->size; ref++) {
        uint64_t at = ref->due <= m.now ? 0 : (ref->due - m.now - 1) / step;
        if (ref->place != ABSENT && at < many)
            wanted[at]++;
    }
    assert_memory_equal(counts, wanted, many * sizeof wanted[0]);
}

static void look_at_all(struct room *room)
{
    const struct ref *sorted[ROOM_MAX];
    size_t count = sort_refs(room, sorted);
    struct tw__task **task = tw__look_sorted(room->schedule);
    assert_int_equal(task == NULL, count == 0);
    for (size_t i = 0; i < count; i++)
        assert_ptr_equal(task[i], sorted[i]->task);
    all->memory.free(task);
}

/* When the wheel has to tell of a task: when it is due, or at once if that is past. */
static uint64_t next_of(const struct ref *ref)
{
    uint64_t now = tw_wheel_now(ref->place == BEHIND ? all->behind : all->wheel);
    return ref->due > now ? ref->due : now;
}

static void look_for_overdue(void)
{
    uint64_t count = 0, wanted = TW_NEVER, oldest, next = TW_NEVER;
    for (struct ref *ref = m.ref; ref < m.ref + REFS; ref++) {
        if (is_filed(ref) && next_of(ref) < next)
            next = next_of(ref);
        if (!ref->room->attached || ref->place <= NOWHERE || (is_filed(ref) && ref->due > m.now))
            continue;
        count++;
        if (ref->place == HELD && tw__route_of(all, ref->task)->queue.next != &ref->task->parked.link)
            continue; /* only the first of each line is looked at */
        if (ref->due < wanted)
            wanted = ref->due;
    }
    assert_true(tw__place_next_work(all) <= next);
    if (m.graves > 0)
        return;
    assert_int_equal(tw__overview_overdue(all, m.now, &oldest), count);
    assert_true(oldest == wanted);
    assert_int_equal(tw__place_next_work(all) == TW_NEVER, next == TW_NEVER);
    bool waiting = all->queued > 0;
    for (struct ref *ref = m.ref; ref < m.ref + REFS; ref++)
        waiting |= ref->place == HELD && ref->room->line[ref->plan].turn > 0;
    assert_int_equal(tw__place_any_waiting(all), waiting);
}

static void file_again(struct ref *ref)
{
    uint64_t due = ref->due + (ref->every > 0 ? ref->every : below(100));
    if (ref->every > 0) {
        ref->times = 1 + below(5);
        tw__task_set_times(ref->task, ref->times);
        ref->tries = 0;
        tw__task_set_tries(ref->task, 0);
    }
    model_file(ref, due);
    tw__place_file(all, ref->task, due, m.now);
}

/* The limit is near the size of this schedule's dump, so that a change of the schedule often leads past the limit. */
static void limit_dumps(const struct room *room)
{
    tw__sums_limit_dump(all, tw__sums_dump_most(room->schedule) + below(3) - 1);
    check_sums();
}

static void look(struct room *room)
{
    limit_dumps(room);
    look_at_all(room);
    look_for_overdue();
    for (struct ref *ref = room->ref; ref < room->ref + room->size; ref++)
        if (ref->place == NOWHERE)
            file_again(ref); /* what is nowhere is found or not, as it happens */
    look_for_earliest(room);
    look_for_wanted(room);
    look_ahead(room);
}

/* ---- the model: operations -------------------------------------------------------------------------------------------- */

static void put(struct room *room, struct ref *ref)
{
    struct tw__task_plan plan = {.id = id_of((unsigned)(ref - room->ref)), .packed = text("\1\1p")};
    uint64_t hash = hash_of_ref(room, ref);
    if (ref->place != ABSENT)
        model_leave(room, ref);
    plan.due = some_time() & INT64_MAX;
    plan.every = below(3) == 0 ? 1 + below(1000) : 0;
    plan.times = plan.every == 0 ? 1 : below(2) == 0 ? TW__FOR_EVER : 1 + below(9);
    plan.tries = (uint32_t)below(4);
    struct ref before = *ref;
    *ref = (struct ref){.room = room, .every = plan.every, .times = plan.times, .tries = plan.tries};
    ref->plan = (unsigned)below(below(4) == 0 ? PLANS : 2);
    ref->task = tw__task_new(&plan, &all->memory);
    struct tw__route *route = tw__route_for(room->schedule, &plan_of[ref->plan]);
    if (route->target == NULL && below(2) == 0)
        route->target = new_target();
    model_file(ref, plan.due);
    tw__schedule_put(room->schedule, ref->task, route, hash, before.task, m.now);
}

static void take_away(struct room *room, struct ref *ref)
{
    model_leave(room, ref);
    tw__schedule_remove(room->schedule, ref->task, hash_of_ref(room, ref));
    *ref = (struct ref){.room = room};
}

static void give_other_time(struct room *room, struct ref *ref)
{
    uint64_t due = below(3) == 0 ? ref->due + below(3) : some_time() & INT64_MAX;
    bool stays = ref->place == WHEEL;
    model_leave(room, ref);
    model_file(ref, due);
    ref->moved = stays && ref->place == WHEEL;
    tw__place_refile(all, ref->task, due, m.now);
}

static void move_block(struct room *room, struct ref *ref)
{
    struct tw__task *old = ref->task;
    size_t size = counted_usable(old);
    ref->task = counted_alloc(size);
    memcpy(ref->task, old, size);
    memset(old, 0xEE, size);
    tw__schedule_moved(room->schedule, old, ref->task);
    if (all->probe == old)
        all->probe = NULL;
    counted_free(old);
}

/* Something happens to a task, perhaps while it is being delivered. */
static void change(struct room *room, struct ref *ref)
{
    bool delivering = ref->place == NOWHERE && below(2) == 0, gone = true;
    struct tw__task *task = delivering ? ref->task : NULL;
    uint64_t what = below(10);
    all->delivering = task;
    if (ref->place == ABSENT || what < 4)
        put(room, ref);
    else if (what < 7)
        give_other_time(room, ref);
    else if (what < 8)
        take_away(room, ref);
    else {
        gone = delivering;
        all->delivering = NULL;
        move_block(room, ref);
    }
    assert_true(!gone || all->delivering == NULL);
    all->delivering = NULL;
}

static void hold(struct room *room, struct ref *ref)
{
    struct line *line = &room->line[ref->plan];
    if (tw__place_is_blocked(all, ref->task)) {
        tw__place_hold(all, ref->task);
        model_enqueue(ref, HELD, false);
        return;
    }
    uint64_t retry = m.monotonic + below(200);
    bool counts = below(2) == 0;
    tw__place_hold_first(all, ref->task, retry);
    model_enqueue(ref, HELD, true);
    *line = (struct line){retry > m.monotonic ? retry : m.monotonic + 1, 0};
    if (!counts)
        return;
    tw__route_of(all, ref->task)->waits++;
    for (struct ref *other = room->ref; other < room->ref + room->size; other++)
        other->tries += other->place == HELD && other->plan == ref->plan;
}

static void put_back(struct room *room, struct ref *ref)
{
    bool turn = all->probe == ref->task;
    tw__place_put_back(all, ref->task);
    model_enqueue(ref, turn ? HELD : OVERDUE, true);
    if (turn && room->line[ref->plan].turn == 0)
        room->line[ref->plan].turn = ++m.turns;
}

/* What is done with a task that was taken. */
static void deal_with(struct room *room, struct ref *ref)
{
    uint64_t what = below(20);
    if (what < 8) {
        take_away(room, ref);
    } else if (what < 11) {
        file_again(ref);
    } else if (what < 14) {
        hold(room, ref);
    } else if (what < 16) {
        put_back(room, ref);
    } else if (what < 18) {
        tw__place_file_overdue(all, ref->task);
        model_enqueue(ref, OVERDUE, false);
    } /* else it stays nowhere for a while */
}

static void take_some(void)
{
    uint32_t budget = 1 + (uint32_t)below(below(3) == 0 ? 200 : 6);
    bool queued = below(4) > 0;
    for (uint64_t most = 1 + below(12); most > 0; most--) {
        struct room *room;
        struct ref *ref = take(queued, budget, &room);
        if (ref == NULL)
            return;
        deal_with(room, ref);
    }
}

static void end_waits(uint64_t ms)
{
    struct tw_timer *timer;
    m.monotonic += ms;
    while ((timer = tw_wheel_poll(all->retries, m.monotonic)) != NULL) {
        struct tw__route *route = TW_CONTAINER(timer, struct tw__route, retry);
        struct room *room = m.room;
        while (room < m.room + ROOMS && room->schedule != route->schedule)
            room++;
        if (room < m.room + ROOMS) {
            struct room *its = NULL;
            struct ref *ref = ref_of(tw__task_of_link(route->queue.next), &its);
            struct line *line = &room->line[ref->plan];
            assert_true(line->retry_ms <= m.monotonic);
            *line = (struct line){TW_NEVER, ++m.turns};
        }
        tw__place_give_turn(route);
    }
    for (struct room *room = m.room; room < m.room + ROOMS; room++)
        for (unsigned i = 0; i < PLANS; i++)
            assert_true(room->line[i].retry_ms > m.monotonic);
}

static void clock_forward(void)
{
    uint64_t what = below(300);
    if (what == 0)
        m.now += below(20000000);
    else if (what < 20)
        m.now += below(3000);
    else if (what < 60 && tw__place_next_work(all) < m.now + 10000)
        m.now = tw__place_next_work(all) > m.now ? tw__place_next_work(all) : m.now;
    else
        m.now += below(12);
    end_waits(below(60));
}

/* Whether a task of the second wheel is due by then: such go to the queue when the clock is set back twice, which has a
 * test of its own. */
static bool is_due_behind(uint64_t now)
{
    bool due = false;
    for (const struct ref *ref = m.ref; ref < m.ref + REFS; ref++)
        due |= ref->place == BEHIND && ref->due <= now;
    return due;
}

/* As tick.c does: a step of a few milliseconds is waited for. */
static void clock_back(void)
{
    static const uint64_t scale[] = {9, 40, 3000, 1000000};
    uint64_t now = m.now - below(scale[below(4)]);
    if (is_due_behind(now))
        return;
    m.now = now;
    uint64_t stands = tw_wheel_now(all->behind != NULL ? all->behind : all->wheel);
    if (now + 10 >= stands)
        return;
    tw__place_clock_back(all, now);
    assert_non_null(all->behind);
    assert_int_equal(tw_wheel_now(all->behind), now);
    for (struct ref *ref = m.ref; ref < m.ref + REFS; ref++)
        ref->moved |= ref->place == BEHIND; /* filed there once more, in any order */
}

static int compare_positions(const void *a, const void *b)
{
    const struct ref *one = *(const struct ref *const *)a, *two = *(const struct ref *const *)b;
    if (one->due != two->due)
        return one->due < two->due ? -1 : 1;
    if (one->place != two->place)
        return one->place == OVERDUE ? -1 : 1;
    return one->position < two->position ? -1 : 1;
}

static void sort_overdue(void)
{
    struct ref *sorted[REFS];
    size_t count = 0;
    for (struct ref *ref = m.ref; ref < m.ref + REFS; ref++)
        if (ref->place == OVERDUE || ref->place == LATE)
            sorted[count++] = ref;
    qsort(sorted, count, sizeof sorted[0], compare_positions);
    for (size_t i = 0; i < count; i++)
        model_enqueue(sorted[i], OVERDUE, false);
    tw__place_sort_overdue(all);
    check_queue(&all->overdue, OVERDUE);
    check_queue(&all->past, LATE);
}

static void bury(struct room *room)
{
    tw__schedule_detach(room->schedule);
    for (struct ref *ref = room->ref; ref < room->ref + room->size; ref++)
        m.buried += ref->place != ABSENT;
    m.graves++;
    tw__grave_bury(room->schedule);
    all->recent = below(2) == 0 ? room->schedule : NULL;
    open_room(room);
}

static void reap(uint64_t limit)
{
    uint64_t before = all->reaping, answer = tw__grave_reap(all, limit), freed = before - all->reaping;
    uint64_t most = limit < m.buried ? limit : m.buried;
    assert_true(freed <= most);
    assert_true(freed + m.graves >= most);
    assert_true(answer >= freed);
    m.buried -= freed;
    if (answer < limit)
        assert_int_equal(m.buried, 0);
    if (m.buried > 0)
        return;
    tw__grave_reap_all(all);
    m.graves = 0;
}

static void attach_or_detach(struct room *room)
{
    if (room->attached)
        tw__schedule_detach(room->schedule);
    else
        tw__schedule_attach(room->schedule);
    room->attached = !room->attached;
}

static void rare_operation(struct room *room)
{
    uint64_t what = below(24);
    if (what < 4)
        bury(room);
    else if (what < 10)
        attach_or_detach(room);
    else if (what < 14)
        clock_back();
    else if (what < 16)
        sort_overdue();
    else
        reap(below(4) == 0 ? UINT64_MAX : 1 + below(40));
}

static void operate(void)
{
    uint64_t what = below(100);
    struct room *room = &m.room[below(3) > 0 ? ROOMS - 1 : below(ROOMS)];
    struct ref *ref = &room->ref[below(room->size)];
    if (!room->attached && below(20) == 0)
        attach_or_detach(room);
    if (what < 55)
        change(room, ref);
    else if (what < 75)
        take_some();
    else if (what < 95)
        clock_forward();
    else if (what < 98)
        ref->place == NOWHERE ? deal_with(room, ref) : look(room);
    else if (below(4) == 0)
        rare_operation(room);
}

/* Lets everything come due that is left: nothing is lost. */
static void drain(void)
{
    struct room *room;
    struct ref *taken;
    uint64_t left = 0;
    for (struct ref *ref = m.ref; ref < m.ref + REFS; ref++) {
        if (!ref->room->attached)
            attach_or_detach(ref->room);
        if (ref->place == NOWHERE)
            file_again(ref);
        left += ref->place != ABSENT;
    }
    for (int round = 0; round < 3; round++) {
        end_waits(1000);
        while (tw__place_next_work(all) != TW_NEVER || tw__place_any_waiting(all)) {
            while ((taken = take(true, 100, &room)) != NULL) {
                take_away(room, taken);
                left--;
            }
            if (tw__place_next_work(all) != TW_NEVER && tw__place_next_work(all) > m.now)
                m.now = tw__place_next_work(all);
            else
                m.now += 100;
        }
    }
    assert_int_equal(left, 0);
    assert_int_equal(all->pending, 0);
}

static void every_task_is_where_the_model_says_and_none_is_lost(void **state)
{
    unsigned operations = run_scaled(300000);
    (void)state;
    open_model();
    for (unsigned i = 0; i < operations; i++) {
        operate();
        check_invariants();
        if (i % 32 == 0)
            check_all();
        if (i % 4096 == 0)
            check_wheels();
    }
    assert_true(m.taken > operations / 20);
    assert_true(m.passed > 0);
    assert_true(all->routes < 20 * ROOMS * PLANS); /* their numbers are used again */
    drain();
    check_all();
    for (struct room *room = m.room; room < m.room + ROOMS; room++)
        close_schedule(room->schedule);
    close_all();
}

/* ---- what tw__place_take(all, ) promises, one by one --------------------------------------------------------------------------- */

static struct tw__task *put_one(struct tw__schedule *schedule, const char *id, uint64_t due, uint64_t now)
{
    struct tw__task_plan plan = {.id = text(id), .due = due, .packed = text("\1\1p")};
    struct tw__task *task = tw__task_new(&plan, &all->memory);
    tw__schedule_put(schedule, task, tw__route_for(schedule, &plan_of[1]), tw__schedule_hash(all, text(id)),
                     NULL, now);
    return task;
}

static void assert_taken(uint64_t now, const struct tw__task *wanted)
{
    uint32_t budget = 100;
    struct tw__task *task = NULL;
    enum tw__taken taken = tw__place_take(all, now, true, &budget, &task);
    assert_int_equal(taken, wanted == NULL ? TW__TAKEN_NONE : TW__TAKEN_TASK);
    assert_ptr_equal(task, wanted);
}

static void a_late_task_waits_for_what_was_due_before_it_was_filed(void **state)
{
    (void)state;
    struct tw__schedule *schedule = open_one();
    struct tw__task *before = put_one(schedule, "before", START + 50, START);
    struct tw__task *at = put_one(schedule, "at", START + 100, START);
    struct tw__task *after = put_one(schedule, "after", START + 101, START);
    struct tw__task *late = put_one(schedule, "late", START - 9, START + 100);
    struct tw__task *later = put_one(schedule, "later", START - 10, START + 100);
    assert_taken(START + 200, before);
    assert_taken(START + 200, at);
    assert_taken(START + 200, late);
    assert_taken(START + 200, later);
    assert_taken(START + 200, after);
    assert_taken(START + 200, NULL);
    close_one(schedule);
}

static void what_is_filed_while_the_clock_is_back_comes_at_its_time(void **state)
{
    (void)state;
    struct tw__schedule *schedule = open_one();
    struct tw__task *far = put_one(schedule, "far", START + 5000, START);
    assert_taken(START + 3000, NULL);
    tw__place_clock_back(all, START + 1000);
    struct tw__task *near = put_one(schedule, "near", START + 2000, START + 1000);
    assert_true(tw__place_next_work(all) <= START + 2000);
    assert_taken(START + 1999, NULL);
    tw__place_clock_back(all, START + 500); /* once more */
    assert_taken(START + 1999, NULL);
    assert_taken(START + 2000, near);
    assert_taken(START + 2999, NULL);
    assert_non_null(all->behind);
    assert_taken(START + 3000, NULL);
    assert_null(all->behind);
    assert_taken(START + 5000, far);
    close_one(schedule);
}

/* Due in the second wheel when the clock is set back once more, but not taken yet. */
static void what_came_due_while_the_clock_was_back_keeps_its_time(void **state)
{
    uint32_t budget = 1;
    struct tw__task *task = NULL;
    (void)state;
    struct tw__schedule *schedule = open_one();
    assert_taken(START + 1000, NULL);
    tw__place_clock_back(all, START + 300);
    struct tw__task *a = put_one(schedule, "a", START + 400, START + 300);
    struct tw__task *b = put_one(schedule, "b", START + 450, START + 300);
    assert_int_equal(tw__place_take(all, START + 600, true, &budget, &task), TW__TAKEN_MORE);
    tw__place_clock_back(all, START + 500);
    assert_taken(START + 500, a);
    assert_int_equal(tw__task_due(a), START + 400);
    assert_taken(START + 500, b);
    assert_int_equal(tw__task_due(b), START + 450);
    close_one(schedule);
}

/* A large schedule is looked at through the wheel, further and further ahead. */
static void the_earliest_are_found_however_far_apart_they_are(void **state)
{
    enum { MANY = 300 };
    struct tw__task *task[MANY], *found[MANY];
    (void)state;
    open_all();
    struct tw__schedule *schedule = tw__schedule_new(all);
    for (unsigned i = 0; i < MANY; i++) {
        char id[16];
        snprintf(id, sizeof id, "%u", i);
        task[i] = put_one(schedule, id, START + 1 + i * UINT64_C(5000), START);
    }
    for (unsigned from = 0; from < MANY; from += 7) {
        for (unsigned limit = 1; limit < MANY; limit += 13) {
            unsigned left = MANY - from, wanted = limit < left ? limit : left;
            uint64_t start = tw__task_due(task[from]);
            assert_int_equal(tw__look_earliest(schedule, start, UINT64_MAX, START, limit, found), wanted);
            assert_memory_equal(found, task + from, wanted * sizeof found[0]);
        }
    }
    close_one(schedule);
}

static void *no_memory(size_t size)
{
    (void)size;
    return NULL;
}

/* A task that is in no table would be lost without a word: where assertions are on, the process ends instead. */
static void a_task_that_no_table_takes_is_an_assertion(void **state)
{
#if defined(TW_DEBUG) && TW_DEBUG >= 1
    int status;
    (void)state;
    open_all();
    struct tw__schedule *schedule = tw__schedule_new(all);
    struct tw__plan plan = {.kind = TW__LIST, .target = {"q", 1}};
    struct tw__task_plan task = {.id = {"a", 1}, .due = START + 1};
    struct tw__route *route = tw__route_for(schedule, &plan);
    struct tw__task *made = tw__task_new(&task, &all->memory);
    pid_t child = fork();
    if (child == 0) {
        all->memory.alloc = no_memory;
        fclose(stderr);
        signal(SIGABRT, SIG_DFL);
        tw__schedule_put(schedule, made, route, tw__schedule_hash(all, text("a")), NULL, START);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    all->memory.free(made);
    close_one(schedule);
#else
    (void)no_memory;
    (void)state;
    skip();
#endif
}

/* Tries are four bits, and are told while it is held by the waits of its route, which wrap. */
static void each_wait_is_a_try_of_all_that_are_held(void **state)
{
    (void)state;
    struct tw__schedule *schedule = open_one();
    struct tw__task *first = put_one(schedule, "1", START + 1, START);
    struct tw__task *second = put_one(schedule, "2", START + 2, START);
    struct tw__route *route = tw__route_of(all, first);
    route->waits = UINT32_MAX - 3;
    assert_taken(START + 2, first);
    tw__place_hold_first(all, first, 6000);
    assert_taken(START + 2, second);
    assert_true(tw__place_is_blocked(all, second));
    route->waits++;
    tw__place_hold(all, second);
    for (uint32_t tries = 1; tries < 8; tries++) {
        assert_int_equal(tw__place_tries(all, first), tries);
        assert_int_equal(tw__place_tries(all, second), tries - 1);
        tw__place_give_turn(route);
        assert_taken(START + 2, first);
        assert_int_equal(tw__task_tries(first), tries);
        assert_int_equal(tw__place_tries(all, first), tries);
        tw__place_hold_first(all, first, 6000);
        assert_null(route->turn.next);
        route->waits++;
    }
    tw__place_unfile(all, first);
    tw__place_unfile(all, second);
    assert_false(tw_timer_pending(&route->retry));
    assert_int_equal(tw__task_tries(second), 7);
    close_one(schedule);
}

/* ---- chunks ----------------------------------------------------------------------------------------------------------- */

enum { BIG = 70000 };
static char big[BIG];

/* A task that is unlike its neighbours, several due together. */
static void put_many(struct tw__schedule *schedule, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        const struct tw__plan *target = &plan_of[i % PLANS];
        unsigned first = i;
        struct tw__task_plan plan = {.id = id_of(i),
                                     .due = START - 300 + i * 37 % 1000 / 3,
                                     .every = i % 3 == 0 ? 1 + i : 0,
                                     .times = i % 2 == 0 ? TW__FOR_EVER : 1 + i,
                                     .tries = i % (TW__TRIES_MAX + 1),
                                     .count = target->kind == TW__LIST ? 1 : 2 + i % 3 * 2,
                                     .string = string_of,
                                     .arg = &first};
        if (i == 700)
            plan.due = INT64_MAX;
        if (i % 300 != 3)
            plan.packed = text(target->kind == TW__LIST ? "\1\1p" : "\2\1f\1v");
        struct tw__task *task = tw__task_new(&plan, &all->memory);
        tw__schedule_put(schedule, task, tw__route_for(schedule, target), tw__schedule_hash(all, plan.id), NULL,
                         START);
    }
}

static void assert_schedules_equal(const struct tw__schedule *a, const struct tw__schedule *b)
{
    struct tw__task **one = tw__look_sorted(a), **two = tw__look_sorted(b);
    assert_int_equal(tw__table_count(&a->tasks), tw__table_count(&b->tasks));
    for (uint64_t i = 0; i < tw__table_count(&a->tasks); i++) {
        struct tw__plan plan = tw__route_plan(tw__route_of(all, one[i])),
                        other = tw__route_plan(tw__route_of(all, two[i]));
        assert_bytes_equal(tw__task_id(one[i]), tw__task_id(two[i]));
        assert_true(tw__task_due(one[i]) == tw__task_due(two[i]));
        assert_true(tw__task_every(one[i]) == tw__task_every(two[i]));
        assert_true(tw__task_times(one[i]) == tw__task_times(two[i]));
        assert_int_equal(tw__place_tries(all, one[i]), tw__place_tries(all, two[i]));
        assert_bytes_equal(tw__task_packed(one[i]), tw__task_packed(two[i]));
        assert_true(plan.kind == other.kind && plan.late == other.late && plan.maxlen == other.maxlen &&
                    plan.late_ms == other.late_ms);
        assert_bytes_equal(plan.target, other.target);
    }
    all->memory.free(one);
    all->memory.free(two);
}

static struct tw__schedule *copy_through_chunks(const struct tw__schedule *schedule, unsigned *chunks_made)
{
    struct tw__schedule *copy = tw__schedule_new(all);
    struct tw__chunks chunks;
    struct tw__bytes bytes;
    uint64_t before = 0;
    tw__chunks_init(&chunks, schedule);
    for (*chunks_made = 0; tw__chunks_next(&chunks, &bytes); ++*chunks_made) {
        char *exact = counted_alloc(bytes.size); /* so that a read past the end is seen */
        memcpy(exact, bytes.at, bytes.size);
        assert_true(tw__chunk_read(copy, (struct tw__bytes){exact, bytes.size}, START));
        counted_free(exact);
        assert_true(tw__table_count(&copy->tasks) > before);
        assert_true(tw__table_count(&copy->tasks) - before <= 512);
        before = tw__table_count(&copy->tasks);
    }
    tw__chunks_fini(&chunks);
    return copy;
}

static void a_schedule_comes_back_from_its_chunks(void **state)
{
    static const unsigned counts[] = {0, 1, 2, 511, 512, 513, 1300};
    (void)state;
    fill_letters();
    for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
        unsigned chunks, again;
        open_all();
        struct tw__schedule *schedule = tw__schedule_new(all);
        tw__schedule_attach(schedule);
        put_many(schedule, 0, counts[k]);
        struct tw__schedule *copy = copy_through_chunks(schedule, &chunks);
        assert_true(chunks >= (counts[k] + 511) / 512);
        assert_schedules_equal(schedule, copy);
        assert_int_equal(tw__route_count(copy), counts[k] < PLANS ? counts[k] : PLANS);
        struct tw__schedule *third = copy_through_chunks(copy, &again);
        assert_int_equal(chunks, again);
        assert_schedules_equal(schedule, third);
        assert_int_equal(copy->bytes, third->bytes);
        close_schedule(schedule);
        close_schedule(copy);
        close_schedule(third);
        close_all();
    }
}

/* What is there already is replaced; and tasks that are held keep the tries that they have by now. */
static void reading_a_chunk_twice_changes_nothing_more(void **state)
{
    (void)state;
    fill_letters();
    open_all();
    struct tw__schedule *schedule = tw__schedule_new(all), *copy = tw__schedule_new(all);
    tw__schedule_attach(schedule);
    tw__schedule_attach(copy);
    put_many(schedule, 0, 100);
    struct tw__task *held = tw__schedule_find(schedule, tw__schedule_hash(all, text("")), text(""));
    tw__place_unfile(all, held);
    tw__place_hold_first(all, held, 6000);
    tw__route_of(all, held)->waits += 5;
    struct tw__chunks chunks;
    struct tw__bytes bytes;
    tw__chunks_init(&chunks, schedule);
    while (tw__chunks_next(&chunks, &bytes)) {
        assert_true(tw__chunk_read(copy, bytes, START));
        size_t taken_up = tw__schedule_bytes(copy);
        assert_true(tw__chunk_read(copy, bytes, START));
        assert_int_equal(tw__schedule_bytes(copy), taken_up);
    }
    assert_int_equal(all->pending, 200);
    assert_int_equal(copy->queued + tw_wheel_count(all->wheel) + schedule->queued + schedule->held, 200);
    assert_schedules_equal(schedule, copy);
    tw__chunks_fini(&chunks);
    close_schedule(schedule);
    close_schedule(copy);
    close_all();
}

/* The bytes of DUMP for a schedule, uncompressed: for each chunk a mark of one byte and its size in five; some bytes around. */
static uint64_t bytes_of_chunks(const struct tw__schedule *schedule)
{
    struct tw__chunks chunks;
    struct tw__bytes bytes;
    uint64_t sum = 40;
    tw__chunks_init(&chunks, schedule);
    while (tw__chunks_next(&chunks, &bytes))
        sum += bytes.size + 6;
    tw__chunks_fini(&chunks);
    return sum;
}

/* Tasks to so many targets in turn, with names and payloads of so many bytes. */
static void put_like(struct tw__schedule *schedule, unsigned count, unsigned targets, size_t name,
                     size_t payload)
{
    char packed[BIG + 8], target[BIG];
    memset(target, 't', sizeof target);
    packed[0] = 1;
    char *end = tw__varint_put(packed + 1, payload);
    memset(end, 'p', payload);
    for (unsigned i = 0; i < count; i++) {
        unsigned number = i % targets;
        memcpy(target, &number, sizeof number);
        struct tw__plan route = {.kind = TW__LIST, .target = {target, name}};
        struct tw__task_plan plan = {.id = id_of(i),
                                     .due = START + (uint64_t)i * 1000003,
                                     .packed = {packed, (size_t)(end - packed) + payload}};
        tw__schedule_put(schedule, tw__task_new(&plan, &all->memory), tw__route_for(schedule, &route),
                         tw__schedule_hash(all, plan.id), NULL, START);
    }
}

static void a_schedule_takes_no_more_bytes_than_is_foretold(void **state)
{
    static const struct {
        unsigned count, targets;
        size_t name, payload;
        double factor; /* by which it may be foretold too high; 0: by any */
    } shapes[] = {{0, 1, 20, 1, 0},          {1, 1, 20, 100, 0},       {513, 1, 20, 1, 2.2},
                  {20000, 1, 20, 100, 1.15}, {3000, 1, 20, 1000, 1.1}, {200, 1, 20, 60000, 1.1},
                  {20000, 500, 40, 100, 2},  {5000, 5000, 40, 100, 0}, {1000, 2, 60000, 10, 1.1},
                  {1000, 3, 9000, 10, 0}};
    (void)state;
    fill_letters();
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        open_all();
        struct tw__schedule *schedule = tw__schedule_new(all);
        put_like(schedule, shapes[k].count, shapes[k].targets, shapes[k].name, shapes[k].payload);
        uint64_t most = tw__sums_dump_most(schedule), bytes = bytes_of_chunks(schedule);
        assert_true(most >= bytes);
        assert_true(shapes[k].factor == 0 || (double)most <= (double)bytes * shapes[k].factor);
        put_many(schedule, 20000, 21300);
        assert_true(tw__sums_dump_most(schedule) >= bytes_of_chunks(schedule));
        close_schedule(schedule);
        close_all();
    }
}

static void a_chunk_is_not_much_larger_than_its_size(void **state)
{
    unsigned chunks;
    (void)state;
    open_all();
    struct tw__schedule *schedule = tw__schedule_new(all);
    for (unsigned i = 0; i < 5; i++) {
        char packed[BIG + 8];
        size_t size = i == 3 ? BIG : 40000;
        packed[0] = 1;
        char *end = tw__varint_put(packed + 1, size);
        memset(big, (int)i, size);
        memcpy(end, big, size);
        struct tw__task_plan plan = {
            .id = id_of(i), .due = START + i, .packed = {packed, (size_t)(end - packed) + size}};
        tw__schedule_put(schedule, tw__task_new(&plan, &all->memory), tw__route_for(schedule, &plan_of[1]),
                         tw__schedule_hash(all, plan.id), NULL, START);
    }
    struct tw__schedule *copy = copy_through_chunks(schedule, &chunks);
    assert_int_equal(chunks, 3);
    assert_schedules_equal(schedule, copy);
    close_schedule(schedule);
    close_schedule(copy);
    close_all();
}

/* ---- chunks that are damaged ------------------------------------------------------------------------------------------ */

/* What was read of a chunk, damaged or not: it must be in order, whatever it is. */
static void check_what_was_read(struct tw__schedule *schedule, bool good)
{
    unsigned chunks;
    struct tw__task **task = tw__look_sorted(schedule);
    uint64_t count = tw__table_count(&schedule->tasks);
    for (uint64_t i = 0; i < count; i++) {
        struct tw__plan plan = tw__route_plan(tw__route_of(all, task[i]));
        uint64_t times = tw__task_times(task[i]);
        uint32_t strings = tw__task_payload(task[i]).count;
        assert_true(plan.kind <= TW__LIST && plan.late <= TW__LATE_COALESCE);
        assert_true(plan.maxlen <= INT64_MAX && plan.late_ms <= INT64_MAX);
        assert_true(tw__task_due(task[i]) <= INT64_MAX && tw__task_every(task[i]) <= INT64_MAX);
        assert_true(times > 0 && (times <= INT64_MAX || times == TW__FOR_EVER));
        assert_true((tw__task_every(task[i]) > 0) == ((task[i]->flags & TW__TASK_REPEATS) != 0));
        assert_true(plan.kind == TW__LIST ? strings == 1 : strings > 0 && strings % 2 == 0);
        assert_true(tw__payload_valid(tw__task_packed(task[i])));
        assert_true(tw__task_filed(task[i]));
    }
    counted_free(task);
    assert_true(tw__route_count(schedule) <= count);
    if (!good || count == 0)
        return;
    struct tw__schedule *copy = copy_through_chunks(schedule, &chunks);
    assert_int_equal(chunks, 1);
    assert_schedules_equal(schedule, copy);
    assert_int_equal(tw__route_count(schedule), tw__route_count(copy));
    close_schedule(copy);
}

/* Reads bytes into a schedule of their own; returns how many tasks came of it, or -1: refused. */
static int read_bytes(const char *bytes, size_t size)
{
    struct tw__schedule *schedule = tw__schedule_new(all);
    char *exact = counted_alloc(size);
    if (size > 0)
        memcpy(exact, bytes, size);
    bool good = tw__chunk_read(schedule, (struct tw__bytes){exact, size}, START);
    counted_free(exact);
    int count = (int)tw__table_count(&schedule->tasks);
    check_what_was_read(schedule, good);
    close_schedule(schedule);
    tw__grave_reap_all(all);
    assert_int_equal(all->reaping, 0);
    assert_int_equal(blocks_out, 1 + (all->route != NULL));
    return good ? count : -1;
}

/* A chunk of a few small tasks, with all that a chunk can have. */
static size_t small_chunk(char *into)
{
    struct tw__schedule *schedule = tw__schedule_new(all);
    struct tw__chunks chunks;
    struct tw__bytes bytes;
    for (unsigned i = 0; i < 5; i++) {
        struct tw__task_plan plan = {.id = id_of(i),
                                     .due = START + i % 3 * 1000,
                                     .every = i % 2 * 700,
                                     .times = i == 1 ? TW__FOR_EVER : 3,
                                     .tries = i,
                                     .packed = text(i == 1 ? "\1\5value" : "\2\5field\5value")};
        unsigned target = i == 4 ? 0 : i; /* the fifth has the first one's */
        tw__schedule_put(schedule, tw__task_new(&plan, &all->memory), tw__route_for(schedule, &plan_of[target]),
                         tw__schedule_hash(all, plan.id), NULL, START);
    }
    tw__chunks_init(&chunks, schedule);
    assert_true(tw__chunks_next(&chunks, &bytes));
    memcpy(into, bytes.at, bytes.size);
    size_t size = bytes.size;
    assert_false(tw__chunks_next(&chunks, &bytes));
    tw__chunks_fini(&chunks);
    close_schedule(schedule);
    tw__grave_reap_all(all);
    return size;
}

static void a_chunk_that_was_cut_is_refused_but_between_tasks(void **state)
{
    char bytes[1024];
    int whole = 0;
    (void)state;
    open_all();
    size_t size = small_chunk(bytes);
    for (size_t cut = 0; cut <= size; cut++) {
        int count = read_bytes(bytes, cut);
        assert_true(count == -1 || count == whole);
        whole += count >= 0;
    }
    assert_int_equal(whole, 6); /* none to five tasks */
    assert_int_equal(read_bytes(bytes, size), 5);
    bytes[size] = 0;
    assert_int_equal(read_bytes(bytes, size + 1), -1);
    close_all();
}

static void a_changed_byte_is_refused_or_read_as_something_in_order(void **state)
{
    char bytes[1024];
    unsigned refused = 0, read = 0;
    (void)state;
    open_all();
    size_t size = small_chunk(bytes);
    for (size_t at = 0; at < size; at++) {
        char before = bytes[at];
        for (unsigned change = 1; change < 256; change++) {
            bytes[at] = (char)((unsigned char)before ^ change);
            int count = read_bytes(bytes, size);
            refused += count == -1;
            read += count >= 0;
            assert_true(at > 0 || count == -1); /* another version */
        }
        bytes[at] = before;
    }
    assert_true(refused > 1000 && read > 1000);
    close_all();
}

static void garbage_is_refused_or_read_as_something_in_order(void **state)
{
    char whole[1024], bytes[1024];
    struct rng rng;
    (void)state;
    rng_init(&rng, run_seed());
    open_all();
    size_t size = small_chunk(whole);
    for (unsigned round = run_scaled(30000); round > 0; round--) {
        size_t length = rng_below(&rng, 4) == 0 ? rng_below(&rng, sizeof bytes) : size;
        for (size_t i = 0; i < length; i++)
            bytes[i] = (char)(i < size ? (unsigned char)whole[i] : rng_next(&rng) & 0xFF);
        for (uint64_t changes = rng_below(&rng, 6); changes > 0 && length > 1; changes--)
            bytes[1 + rng_below(&rng, length - 1)] =
                (char)(rng_below(&rng, 2) ? rng_below(&rng, 6) : rng_next(&rng));
        read_bytes(bytes, length);
    }
    close_all();
}

/* A chunk of one task as its numbers, and then one number after another made wrong. */
enum {
    VERSION,
    ROUTE,
    KIND,
    DROP,
    MAXLEN,
    LATE_MS,
    TARGET,
    DUE,
    FLAGS,
    EVERY,
    TIMES,
    ID,
    PAYLOAD,
    STRINGS,
    FIELDS
};

static int read_fields(const uint64_t *field, unsigned times)
{
    char bytes[1024], *at = bytes;
    at = tw__varint_put(at, field[VERSION]);
    for (unsigned i = 0; i < times; i++) {
        for (unsigned k = ROUTE; k < FIELDS; k++)
            if (i == 0 || k < KIND || k > TARGET) /* a route is defined once */
                at = tw__varint_put(at, field[k]);
        for (uint64_t k = 0; k < field[STRINGS] && k < 9; k++)
            *at++ = 0;
    }
    return read_bytes(bytes, (size_t)(at - bytes));
}

static void every_number_of_a_chunk_has_its_limits(void **state)
{
    static const uint64_t good[FIELDS] = {1, 0, TW__STREAM, TW__LATE_FIRE, 0, 0, 0, 5, 0x21, 9, 3, 0, 3, 2};
    static const struct {
        unsigned field;
        uint64_t value;
        int count; /* that is read; -1: refused */
    } cases[] = {
        {VERSION, 0, -1},
        {VERSION, 2, -1},
        {ROUTE, 1, -1},
        {ROUTE, 512, -1},
        {KIND, 2, -1},
        {DROP, TW__LATE_COALESCE, 1},
        {DROP, 3, -1},
        {MAXLEN, INT64_MAX, 1},
        {MAXLEN, UINT64_C(1) << 63, -1},
        {LATE_MS, INT64_MAX, 1},
        {LATE_MS, UINT64_C(1) << 63, -1},
        {TARGET, 99, -1},
        {TARGET, UINT64_MAX, -1},
        {DUE, 0, 1},
        {DUE, INT64_MAX, 1},
        {DUE, UINT64_C(1) << 63, -1},
        {FLAGS, 0xF1, 1},
        {FLAGS, 0x101, -1},
        {FLAGS, 0x23, -1},
        {FLAGS, 0x25, -1},
        {FLAGS, 0x29, -1},
        {EVERY, 0, -1},
        {EVERY, INT64_MAX, 1},
        {EVERY, UINT64_C(1) << 63, -1},
        {TIMES, 0, 1},
        {TIMES, INT64_MAX, 1},
        {TIMES, UINT64_MAX, -1},
        {ID, 99, -1},
        {ID, UINT64_MAX, -1},
        {PAYLOAD, 0, -1},
        {PAYLOAD, 2, -1},
        {PAYLOAD, 4, -1},
        {PAYLOAD, UINT64_MAX, -1},
        {STRINGS, 0, -1},
        {STRINGS, 1, -1},
        {KIND, TW__LIST, -1},
    };
    (void)state;
    open_all();
    assert_int_equal(read_fields(good, 1), 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t field[FIELDS];
        memcpy(field, good, sizeof field);
        field[cases[i].field] = cases[i].value;
        assert_int_equal(read_fields(field, 1), cases[i].count);
    }
    /* Strings that fit the size, but not the target; two tasks whose times add up to too much. */
    uint64_t field[FIELDS];
    memcpy(field, good, sizeof field);
    field[PAYLOAD] = 4;
    field[STRINGS] = 3;
    assert_int_equal(read_fields(field, 1), -1);
    field[KIND] = TW__LIST;
    assert_int_equal(read_fields(field, 1), -1);
    field[PAYLOAD] = 2;
    field[STRINGS] = 1;
    assert_int_equal(read_fields(field, 1), 1);
    assert_int_equal(read_fields(field, 2), 1); /* the same id */
    field[DUE] = UINT64_C(1) << 62;
    assert_int_equal(read_fields(field, 2), -1);
    close_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_varint_comes_back_at_every_border),
        cmocka_unit_test(a_varint_that_is_too_long_or_too_large_is_refused),
        cmocka_unit_test(what_a_task_is_made_of_comes_back),
        cmocka_unit_test(tries_and_times_can_be_set_beside_the_rest),
        cmocka_unit_test(a_packed_payload_is_whole_and_nothing_else),
        cmocka_unit_test(every_task_is_where_the_model_says_and_none_is_lost),
        cmocka_unit_test(a_late_task_waits_for_what_was_due_before_it_was_filed),
        cmocka_unit_test(what_is_filed_while_the_clock_is_back_comes_at_its_time),
        cmocka_unit_test(what_came_due_while_the_clock_was_back_keeps_its_time),
        cmocka_unit_test(the_earliest_are_found_however_far_apart_they_are),
        cmocka_unit_test(a_task_that_no_table_takes_is_an_assertion),
        cmocka_unit_test(each_wait_is_a_try_of_all_that_are_held),
        cmocka_unit_test(a_schedule_comes_back_from_its_chunks),
        cmocka_unit_test(reading_a_chunk_twice_changes_nothing_more),
        cmocka_unit_test(a_schedule_takes_no_more_bytes_than_is_foretold),
        cmocka_unit_test(a_chunk_is_not_much_larger_than_its_size),
        cmocka_unit_test(a_chunk_that_was_cut_is_refused_but_between_tasks),
        cmocka_unit_test(a_changed_byte_is_refused_or_read_as_something_in_order),
        cmocka_unit_test(garbage_is_refused_or_read_as_something_in_order),
        cmocka_unit_test(every_number_of_a_chunk_has_its_limits),
    };
    struct randombytes_implementation seeded = {.implementation_name = name_of_bytes, .buf = seeded_bytes};
    randombytes_set_implementation(&seeded);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
