/* SPDX-License-Identifier: MIT
 *
 * Tasks, their payloads, and the numbers in them.
 */
#include "fixture.h"

#include "tests/support/cmocka.h"

#include <src/redis/schedules/varint.h>

/* ---- varints --------------------------------------------------------------------------------------------- */

static void a_varint_comes_back_at_every_border(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits <= 64; bits++) {
        for (int64_t off = -1; off <= 1; off++) {
            uint64_t value = (bits == 64 ? 0 : UINT64_C(1) << bits) + (uint64_t)off, back = 7;
            char bytes[TW__REDIS_VARINT_MAX + 1];
            size_t size = tw__redis_varint_size(value), width = 0;
            for (uint64_t rest = value; rest > 0; rest >>= 1)
                width++;
            assert_int_equal(size, width == 0 ? 1 : (width + 6) / 7);
            assert_ptr_equal(tw__redis_varint_put(bytes, value), bytes + size);
            assert_ptr_equal(tw__redis_varint_get(bytes, &back), bytes + size);
            assert_true(back == value);
            back = 7;
            assert_ptr_equal(tw__redis_varint_take(bytes, bytes + sizeof bytes, &back), bytes + size);
            assert_true(back == value);
            for (size_t cut = 0; cut < size; cut++)
                assert_null(tw__redis_varint_take(bytes, bytes + cut, &back));
        }
    }
}

static void a_varint_that_is_too_long_or_too_large_is_refused(void **state)
{
    char bytes[TW__REDIS_VARINT_MAX + 2];
    uint64_t value;
    (void)state;
    memset(bytes, 0xFF, sizeof bytes);
    assert_null(tw__redis_varint_take(bytes, bytes + sizeof bytes, &value));
    bytes[TW__REDIS_VARINT_MAX] = 0;
    assert_null(tw__redis_varint_take(bytes, bytes + sizeof bytes, &value));
    bytes[TW__REDIS_VARINT_MAX - 1] = 1;
    assert_ptr_equal(tw__redis_varint_take(bytes, bytes + sizeof bytes, &value), bytes + TW__REDIS_VARINT_MAX);
    assert_true(value == UINT64_MAX);
    bytes[TW__REDIS_VARINT_MAX - 1] = 2;
    assert_null(tw__redis_varint_take(bytes, bytes + sizeof bytes, &value));
}

/* ---- tasks ----------------------------------------------------------------------------------------------- */

static void check_payload(const struct tw__redis_task *task, unsigned first, uint32_t count)
{
    struct tw__redis_payload payload = tw__redis_task_payload(task), same = payload;
    uint64_t bytes = 0, bytes_of_fields = 0;
    assert_int_equal(payload.count, count);
    for (uint32_t i = 0; i < count; i++) {
        struct tw__redis_bytes string = string_of(&first, i);
        assert_bytes_equal(tw__redis_payload_next(&payload), string);
        bytes += string.size;
        bytes_of_fields += i % 2 == 0 ? string.size : 0;
    }
    assert_int_equal(payload.count, 0);
    assert_true(tw__redis_payload_bytes(same) == bytes);
    assert_true(tw__redis_payload_field_bytes(same) == bytes_of_fields);
    struct tw__redis_bytes packed = tw__redis_task_packed(task);
    assert_ptr_equal(packed.at + packed.size, payload.at);
    assert_true(tw__redis_payload_valid(packed));
}

static void check_task(const struct tw__redis_task *task, const struct tw__redis_task_plan *plan)
{
    assert_false(tw__redis_task_filed(task));
    assert_bytes_equal(tw__redis_task_id(task), plan->id);
    assert_true(tw__redis_task_due(task) == plan->due);
    assert_true(tw__redis_task_every(task) == plan->every);
    assert_true(tw__redis_task_times(task) == (plan->every == 0 ? 1 : plan->times));
    assert_int_equal(tw__redis_task_tries(task), plan->tries);
}

static void what_a_task_is_made_of_comes_back(void **state)
{
    static const size_t id_sizes[] = {0, 1, 127, 128, 300};
    (void)state;
    fill_letters();
    for (unsigned k = 0; k < 1000; k++) {
        unsigned first = k % 7;
        struct tw__redis_task_plan plan = {.id = {letters + k, id_sizes[k % 5]},
                                           .due = k % 3 == 0 ? INT64_MAX : START + k,
                                           .every = k % 2 == 0 ? 0 : INT64_MAX - k,
                                           .times = k % 4 == 1 ? TW__REDIS_FOR_EVER : k,
                                           .tries = k % (TW__REDIS_TRIES_MAX + 1),
                                           .count = 1 + k % 130,
                                           .string = string_of,
                                           .arg = &first};
        struct tw__redis_task *task = tw__redis_task_new(&plan, &counted);
        check_task(task, &plan);
        check_payload(task, first, plan.count);
        /* The same again, from the packed payload. */
        struct tw__redis_task_plan again = plan;
        again.count = 0;
        again.packed = tw__redis_task_packed(task);
        struct tw__redis_task *copy = tw__redis_task_new(&again, &counted);
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
    struct tw__redis_task_plan plan = {
        .id = text("id"), .due = 7, .every = 9, .times = 3, .packed = text("\1\1p")};
    struct tw__redis_task *task = tw__redis_task_new(&plan, &counted);
    for (uint32_t tries = 0; tries < 100; tries++) {
        tw__redis_task_set_tries(task, tries);
        plan.tries = tries & TW__REDIS_TRIES_MAX;
        check_task(task, &plan);
        plan.times = tries % 2 == 0 ? TW__REDIS_FOR_EVER : tries;
        tw__redis_task_set_times(task, plan.times);
        check_task(task, &plan);
        assert_int_equal(task->flags % TW__REDIS_TASK_TRIES, TW__REDIS_TASK_REPEATS);
    }
    assert_bytes_equal(tw__redis_task_packed(task), plan.packed);
    counted_free(task);
}

static void a_packed_payload_is_whole_and_nothing_else(void **state)
{
    static const struct tw__redis_bytes good[] = {{"\1\0", 2}, {"\1\1p", 3}, {"\2\0\2ab", 5}, {"\3\0\0\0", 4}};
    static const struct tw__redis_bytes bad[] = {{"", 0},
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
        assert_true(tw__redis_payload_valid(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(tw__redis_payload_valid(bad[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_varint_comes_back_at_every_border),
        cmocka_unit_test(a_varint_that_is_too_long_or_too_large_is_refused),
        cmocka_unit_test(what_a_task_is_made_of_comes_back),
        cmocka_unit_test(tries_and_times_can_be_set_beside_the_rest),
        cmocka_unit_test(a_packed_payload_is_whole_and_nothing_else),
    };
    use_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
