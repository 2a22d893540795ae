/* SPDX-License-Identifier: MIT
 *
 * Tasks as bytes: writing and reading them, predicted sizes, and damaged bytes.
 */
#include "fixture.h"

#include "tests/support/cmocka.h"
#include "tests/support/random.h"
#include "tests/support/run.h"

#include <src/redis/schedules/chunk.h>
#include <src/redis/schedules/grave.h>
#include <src/redis/schedules/look.h>
#include <src/redis/schedules/place.h>
#include <src/redis/schedules/route.h>
#include <src/redis/schedules/schedule.h>
#include <src/redis/schedules/sums.h>
#include <src/redis/schedules/varint.h>

/* ---- chunks ---------------------------------------------------------------------------------------------- */

enum { BIG = 70000 };
static char big[BIG];

/* Puts tasks that differ from their neighbours. Several are due at the same time. */
static void put_many(struct tw__redis_schedule *schedule, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        const struct tw__redis_plan *target = &plan_of[i % PLANS];
        unsigned first = i;
        struct tw__redis_task_plan plan = {.id = id_of(i),
                                           .due = START - 300 + i * 37 % 1000 / 3,
                                           .every = i % 3 == 0 ? 1 + i : 0,
                                           .times = i % 2 == 0 ? TW__REDIS_FOR_EVER : 1 + i,
                                           .tries = i % (TW__REDIS_TRIES_MAX + 1),
                                           .count = target->kind == TW__REDIS_LIST ? 1 : 2 + i % 3 * 2,
                                           .string = string_of,
                                           .arg = &first};
        if (i == 700)
            plan.due = INT64_MAX;
        if (i % 300 != 3)
            plan.packed = text(target->kind == TW__REDIS_LIST ? "\1\1p" : "\2\1f\1v");
        struct tw__redis_task *task = tw__redis_task_new(&plan, &all->memory);
        tw__redis_schedule_put(schedule, task, tw__redis_route_for(schedule, target),
                               tw__redis_schedule_hash(all, plan.id), NULL, START);
    }
}

static void assert_schedules_equal(const struct tw__redis_schedule *a, const struct tw__redis_schedule *b)
{
    struct tw__redis_task **one = tw__redis_look_sorted(a), **two = tw__redis_look_sorted(b);
    assert_int_equal(tw__redis_table_count(&a->tasks), tw__redis_table_count(&b->tasks));
    for (uint64_t i = 0; i < tw__redis_table_count(&a->tasks); i++) {
        struct tw__redis_plan plan = tw__redis_route_plan(tw__redis_route_of(all, one[i])),
                              other = tw__redis_route_plan(tw__redis_route_of(all, two[i]));
        assert_bytes_equal(tw__redis_task_id(one[i]), tw__redis_task_id(two[i]));
        assert_true(tw__redis_task_due(one[i]) == tw__redis_task_due(two[i]));
        assert_true(tw__redis_task_every(one[i]) == tw__redis_task_every(two[i]));
        assert_true(tw__redis_task_times(one[i]) == tw__redis_task_times(two[i]));
        assert_int_equal(tw__redis_place_tries(all, one[i]), tw__redis_place_tries(all, two[i]));
        assert_bytes_equal(tw__redis_task_packed(one[i]), tw__redis_task_packed(two[i]));
        assert_true(plan.kind == other.kind && plan.late == other.late && plan.maxlen == other.maxlen &&
                    plan.late_ms == other.late_ms);
        assert_bytes_equal(plan.target, other.target);
    }
    all->memory.free(one);
    all->memory.free(two);
}

static struct tw__redis_schedule *copy_through_chunks(const struct tw__redis_schedule *schedule,
                                                      unsigned *chunks_made)
{
    struct tw__redis_schedule *copy = tw__redis_schedule_new(all);
    struct tw__redis_chunks chunks;
    struct tw__redis_bytes bytes;
    uint64_t before = 0;
    tw__redis_chunks_init(&chunks, schedule);
    for (*chunks_made = 0; tw__redis_chunks_next(&chunks, &bytes); ++*chunks_made) {
        char *exact = counted_alloc(bytes.size); /* so that a sanitizer sees a read past the end */
        memcpy(exact, bytes.at, bytes.size);
        assert_true(tw__redis_chunk_read(copy, (struct tw__redis_bytes){exact, bytes.size}, START));
        counted_free(exact);
        assert_true(tw__redis_table_count(&copy->tasks) > before);
        assert_true(tw__redis_table_count(&copy->tasks) - before <= 512);
        before = tw__redis_table_count(&copy->tasks);
    }
    tw__redis_chunks_fini(&chunks);
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
        struct tw__redis_schedule *schedule = tw__redis_schedule_new(all);
        tw__redis_schedule_attach(schedule);
        put_many(schedule, 0, counts[k]);
        struct tw__redis_schedule *copy = copy_through_chunks(schedule, &chunks);
        assert_true(chunks >= (counts[k] + 511) / 512);
        assert_schedules_equal(schedule, copy);
        assert_int_equal(tw__redis_route_count(copy), counts[k] < PLANS ? counts[k] : PLANS);
        struct tw__redis_schedule *third = copy_through_chunks(copy, &again);
        assert_int_equal(chunks, again);
        assert_schedules_equal(schedule, third);
        assert_int_equal(copy->bytes, third->bytes);
        close_schedule(schedule);
        close_schedule(copy);
        close_schedule(third);
        close_all();
    }
}

/* A chunk replaces the tasks that are in the schedule already. Held tasks keep the tries that they have by
 * now. */
static void reading_a_chunk_twice_changes_nothing_more(void **state)
{
    (void)state;
    fill_letters();
    open_all();
    struct tw__redis_schedule *schedule = tw__redis_schedule_new(all), *copy = tw__redis_schedule_new(all);
    tw__redis_schedule_attach(schedule);
    tw__redis_schedule_attach(copy);
    put_many(schedule, 0, 100);
    struct tw__redis_task *held =
        tw__redis_schedule_find(schedule, tw__redis_schedule_hash(all, text("")), text(""));
    tw__redis_place_unfile(all, held);
    tw__redis_place_hold_first(all, held, 6000);
    tw__redis_route_of(all, held)->waits += 5;
    struct tw__redis_chunks chunks;
    struct tw__redis_bytes bytes;
    tw__redis_chunks_init(&chunks, schedule);
    while (tw__redis_chunks_next(&chunks, &bytes)) {
        assert_true(tw__redis_chunk_read(copy, bytes, START));
        size_t taken_up = tw__redis_schedule_bytes(copy);
        assert_true(tw__redis_chunk_read(copy, bytes, START));
        assert_int_equal(tw__redis_schedule_bytes(copy), taken_up);
    }
    assert_int_equal(all->pending, 200);
    assert_int_equal(copy->queued + tw_wheel_count(all->wheel) + schedule->queued + schedule->held, 200);
    assert_schedules_equal(schedule, copy);
    tw__redis_chunks_fini(&chunks);
    close_schedule(schedule);
    close_schedule(copy);
    close_all();
}

/* The bytes of DUMP for a schedule, uncompressed: for each chunk its bytes, one byte as a mark and five for its
 * size, and 40 bytes around all chunks. */
static uint64_t bytes_of_chunks(const struct tw__redis_schedule *schedule)
{
    struct tw__redis_chunks chunks;
    struct tw__redis_bytes bytes;
    uint64_t sum = 40;
    tw__redis_chunks_init(&chunks, schedule);
    while (tw__redis_chunks_next(&chunks, &bytes))
        sum += bytes.size + 6;
    tw__redis_chunks_fini(&chunks);
    return sum;
}

/* Puts `count` tasks for `targets` targets in turn. The names of targets have `name` bytes, the payloads have
 * `payload` bytes. */
static void put_like(struct tw__redis_schedule *schedule, unsigned count, unsigned targets, size_t name,
                     size_t payload)
{
    char packed[BIG + 8], target[BIG];
    memset(target, 't', sizeof target);
    packed[0] = 1;
    char *end = tw__redis_varint_put(packed + 1, payload);
    memset(end, 'p', payload);
    for (unsigned i = 0; i < count; i++) {
        unsigned number = i % targets;
        memcpy(target, &number, sizeof number);
        struct tw__redis_plan route = {.kind = TW__REDIS_LIST, .target = {target, name}};
        struct tw__redis_task_plan plan = {.id = id_of(i),
                                           .due = START + (uint64_t)i * 1000003,
                                           .packed = {packed, (size_t)(end - packed) + payload}};
        tw__redis_schedule_put(schedule, tw__redis_task_new(&plan, &all->memory),
                               tw__redis_route_for(schedule, &route), tw__redis_schedule_hash(all, plan.id),
                               NULL, START);
    }
}

static void a_schedule_takes_no_more_bytes_than_is_foretold(void **state)
{
    static const struct {
        unsigned count, targets;
        size_t name, payload;
        double factor; /* by which the prediction may be too high; 0: any factor */
    } shapes[] = {{0, 1, 20, 1, 0},          {1, 1, 20, 100, 0},       {513, 1, 20, 1, 2.2},
                  {20000, 1, 20, 100, 1.15}, {3000, 1, 20, 1000, 1.1}, {200, 1, 20, 60000, 1.1},
                  {20000, 500, 40, 100, 2},  {5000, 5000, 40, 100, 0}, {1000, 2, 60000, 10, 1.1},
                  {1000, 3, 9000, 10, 0}};
    (void)state;
    fill_letters();
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        open_all();
        struct tw__redis_schedule *schedule = tw__redis_schedule_new(all);
        put_like(schedule, shapes[k].count, shapes[k].targets, shapes[k].name, shapes[k].payload);
        uint64_t most = tw__redis_sums_dump_most(schedule), bytes = bytes_of_chunks(schedule);
        assert_true(most >= bytes);
        assert_true(shapes[k].factor == 0 || (double)most <= (double)bytes * shapes[k].factor);
        put_many(schedule, 20000, 21300);
        assert_true(tw__redis_sums_dump_most(schedule) >= bytes_of_chunks(schedule));
        close_schedule(schedule);
        close_all();
    }
}

static void a_chunk_is_not_much_larger_than_its_size(void **state)
{
    unsigned chunks;
    (void)state;
    open_all();
    struct tw__redis_schedule *schedule = tw__redis_schedule_new(all);
    for (unsigned i = 0; i < 5; i++) {
        char packed[BIG + 8];
        size_t size = i == 3 ? BIG : 40000;
        packed[0] = 1;
        char *end = tw__redis_varint_put(packed + 1, size);
        memset(big, (int)i, size);
        memcpy(end, big, size);
        struct tw__redis_task_plan plan = {
            .id = id_of(i), .due = START + i, .packed = {packed, (size_t)(end - packed) + size}};
        tw__redis_schedule_put(schedule, tw__redis_task_new(&plan, &all->memory),
                               tw__redis_route_for(schedule, &plan_of[1]),
                               tw__redis_schedule_hash(all, plan.id), NULL, START);
    }
    struct tw__redis_schedule *copy = copy_through_chunks(schedule, &chunks);
    assert_int_equal(chunks, 3);
    assert_schedules_equal(schedule, copy);
    close_schedule(schedule);
    close_schedule(copy);
    close_all();
}

/* ---- chunks that are damaged ----------------------------------------------------------------------------- */

/* Checks that the tasks read from a chunk are valid, even if the chunk was damaged. */
static void check_what_was_read(struct tw__redis_schedule *schedule, bool good)
{
    unsigned chunks;
    struct tw__redis_task **task = tw__redis_look_sorted(schedule);
    uint64_t count = tw__redis_table_count(&schedule->tasks);
    for (uint64_t i = 0; i < count; i++) {
        struct tw__redis_plan plan = tw__redis_route_plan(tw__redis_route_of(all, task[i]));
        uint64_t times = tw__redis_task_times(task[i]);
        uint32_t strings = tw__redis_task_payload(task[i]).count;
        assert_true(plan.kind <= TW__REDIS_LIST && plan.late <= TW__REDIS_LATE_COALESCE);
        assert_true(plan.maxlen <= INT64_MAX && plan.late_ms <= INT64_MAX);
        assert_true(tw__redis_task_due(task[i]) <= INT64_MAX && tw__redis_task_every(task[i]) <= INT64_MAX);
        assert_true(times > 0 && (times <= INT64_MAX || times == TW__REDIS_FOR_EVER));
        assert_true((tw__redis_task_every(task[i]) > 0) == ((task[i]->flags & TW__REDIS_TASK_REPEATS) != 0));
        assert_true(plan.kind == TW__REDIS_LIST ? strings == 1 : strings > 0 && strings % 2 == 0);
        assert_true(tw__redis_payload_valid(tw__redis_task_packed(task[i])));
        assert_true(tw__redis_task_filed(task[i]));
    }
    counted_free(task);
    assert_true(tw__redis_route_count(schedule) <= count);
    if (!good || count == 0)
        return;
    struct tw__redis_schedule *copy = copy_through_chunks(schedule, &chunks);
    assert_int_equal(chunks, 1);
    assert_schedules_equal(schedule, copy);
    assert_int_equal(tw__redis_route_count(schedule), tw__redis_route_count(copy));
    close_schedule(copy);
}

/* Reads bytes into a new schedule. Returns how many tasks it then has, or -1 if the bytes were refused. */
static int read_bytes(const char *bytes, size_t size)
{
    struct tw__redis_schedule *schedule = tw__redis_schedule_new(all);
    char *exact = counted_alloc(size);
    if (size > 0)
        memcpy(exact, bytes, size);
    bool good = tw__redis_chunk_read(schedule, (struct tw__redis_bytes){exact, size}, START);
    counted_free(exact);
    int count = (int)tw__redis_table_count(&schedule->tasks);
    check_what_was_read(schedule, good);
    close_schedule(schedule);
    tw__redis_grave_reap_all(all);
    assert_int_equal(all->reaping, 0);
    assert_int_equal(blocks_out, 1 + (all->route != NULL));
    return good ? count : -1;
}

/* Writes a chunk of a few small tasks that has every part that a chunk can have. */
static size_t small_chunk(char *into)
{
    struct tw__redis_schedule *schedule = tw__redis_schedule_new(all);
    struct tw__redis_chunks chunks;
    struct tw__redis_bytes bytes;
    for (unsigned i = 0; i < 5; i++) {
        struct tw__redis_task_plan plan = {.id = id_of(i),
                                           .due = START + i % 3 * 1000,
                                           .every = i % 2 * 700,
                                           .times = i == 1 ? TW__REDIS_FOR_EVER : 3,
                                           .tries = i,
                                           .packed = text(i == 1 ? "\1\5value" : "\2\5field\5value")};
        unsigned target = i == 4 ? 0 : i; /* the fifth task has the target of the first */
        tw__redis_schedule_put(schedule, tw__redis_task_new(&plan, &all->memory),
                               tw__redis_route_for(schedule, &plan_of[target]),
                               tw__redis_schedule_hash(all, plan.id), NULL, START);
    }
    tw__redis_chunks_init(&chunks, schedule);
    assert_true(tw__redis_chunks_next(&chunks, &bytes));
    memcpy(into, bytes.at, bytes.size);
    size_t size = bytes.size;
    assert_false(tw__redis_chunks_next(&chunks, &bytes));
    tw__redis_chunks_fini(&chunks);
    close_schedule(schedule);
    tw__redis_grave_reap_all(all);
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
    assert_int_equal(whole, 6); /* the cuts that leave zero to five tasks */
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

/* A chunk of one task as a list of its numbers. Each case makes one of the numbers wrong. */
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
    at = tw__redis_varint_put(at, field[VERSION]);
    for (unsigned i = 0; i < times; i++) {
        for (unsigned k = ROUTE; k < FIELDS; k++)
            if (i == 0 || k < KIND || k > TARGET) /* a route is defined once */
                at = tw__redis_varint_put(at, field[k]);
        for (uint64_t k = 0; k < field[STRINGS] && k < 9; k++)
            *at++ = 0;
    }
    return read_bytes(bytes, (size_t)(at - bytes));
}

static const uint64_t good[FIELDS] = {1, 0, TW__REDIS_STREAM, TW__REDIS_LATE_FIRE, 0, 0, 0, 5, 0x21, 9, 3, 0,
                                      3, 2};
static const struct {
    unsigned field;
    uint64_t value;
    int count; /* tasks read; -1: refused */
} cases[] = {
    {VERSION, 0, -1},
    {VERSION, 2, -1},
    {ROUTE, 1, -1},
    {ROUTE, 512, -1},
    {KIND, 2, -1},
    {DROP, TW__REDIS_LATE_COALESCE, 1},
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
    {KIND, TW__REDIS_LIST, -1},
};

static void every_number_of_a_chunk_has_its_limits(void **state)
{
    (void)state;
    open_all();
    assert_int_equal(read_fields(good, 1), 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t field[FIELDS];
        memcpy(field, good, sizeof field);
        field[cases[i].field] = cases[i].value;
        assert_int_equal(read_fields(field, 1), cases[i].count);
    }
    close_all();
}

/* Two cases: strings that fit the size but not the target, and two tasks whose times add up to too large a
 * time. */
static void numbers_of_a_chunk_have_to_fit_each_other(void **state)
{
    (void)state;
    open_all();
    uint64_t field[FIELDS];
    memcpy(field, good, sizeof field);
    field[PAYLOAD] = 4;
    field[STRINGS] = 3;
    assert_int_equal(read_fields(field, 1), -1);
    field[KIND] = TW__REDIS_LIST;
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
        cmocka_unit_test(a_schedule_comes_back_from_its_chunks),
        cmocka_unit_test(reading_a_chunk_twice_changes_nothing_more),
        cmocka_unit_test(a_schedule_takes_no_more_bytes_than_is_foretold),
        cmocka_unit_test(a_chunk_is_not_much_larger_than_its_size),
        cmocka_unit_test(a_chunk_that_was_cut_is_refused_but_between_tasks),
        cmocka_unit_test(a_changed_byte_is_refused_or_read_as_something_in_order),
        cmocka_unit_test(garbage_is_refused_or_read_as_something_in_order),
        cmocka_unit_test(every_number_of_a_chunk_has_its_limits),
        cmocka_unit_test(numbers_of_a_chunk_have_to_fit_each_other),
    };
    use_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
