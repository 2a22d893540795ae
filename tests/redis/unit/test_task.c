/* SPDX-License-Identifier: MIT
 *
 * Tasks, their payloads, and the numbers in them.
 */
#include "copies.h"

#include "tests/support/cmocka.h"

#include <src/redis/queues/bytes.h>

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
    assert_int_equal(task->tries, plan->tries);
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
                                           .times = k % 4 == 1 ? TW_FOREVER : k,
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
        task->tries = tries & TW__REDIS_TRIES_MAX;
        plan.tries = tries & TW__REDIS_TRIES_MAX;
        check_task(task, &plan);
        plan.times = tries % 2 == 0 ? TW_FOREVER : tries;
        tw__redis_task_set_times(task, plan.times);
        check_task(task, &plan);
        assert_true(task->repeats && task->place == TW__REDIS_NOWHERE);
    }
    assert_bytes_equal(tw__redis_task_packed(task), plan.packed);
    counted_free(task);
}

/* ---- attempts -------------------------------------------------------------------------------------------- */

static void check_attempt(const struct tw__redis_task *task, const struct tw__redis_attempt *wanted)
{
    struct tw__redis_attempt attempt = tw__redis_task_attempt(task);
    assert_int_equal(attempt.number, wanted->number);
    /* only the whole attempt state has the strings */
    assert_int_equal(attempt.worker.size + attempt.error.size, 0);
    attempt = tw__redis_task_whole_attempt(task);
    assert_attempts_equal(&attempt, wanted);
    assert_int_equal(tw__redis_task_stage(task), wanted->stage);
    assert_true(tw__redis_task_first_due(task) == wanted->due);
    assert_int_equal(tw__redis_task_waits(task), wanted->stage == TW__TASK_FILED);
}

/* The k-th task, with an attempt state or without one. */
static struct tw__redis_task *task_with(unsigned k, const struct tw__redis_attempt *attempt,
                                        struct tw__redis_task_plan *plan)
{
    static unsigned first;
    first = k % 7;
    *plan = (struct tw__redis_task_plan){.id = {letters + k, k % 300},
                                         .due = START + k,
                                         .every = k % 2 == 0 ? 0 : INT64_MAX - k,
                                         .times = k,
                                         .tries = k % (TW__REDIS_TRIES_MAX + 1),
                                         .attempt = attempt,
                                         .count = 1 + k % 130,
                                         .string = string_of,
                                         .arg = &first};
    return tw__redis_task_new(plan, &counted);
}

static struct tw__redis_attempt attempt_with(unsigned k)
{
    struct tw__redis_attempt attempt = attempt_of[k % ATTEMPTS];
    attempt.worker = (struct tw__redis_bytes){letters + k, k % 5 * 40};
    attempt.error = (struct tw__redis_bytes){letters + 7 * k, k % 3 * 70};
    return attempt;
}

static void an_attempt_state_lies_beside_the_rest_of_a_task(void **state)
{
    (void)state;
    fill_letters();
    for (unsigned k = 1; k < 1000; k++) {
        struct tw__redis_task_plan plan;
        struct tw__redis_attempt attempt = attempt_with(k);
        struct tw__redis_task *task = task_with(k, &attempt, &plan);
        check_task(task, &plan);
        check_payload(task, k % 7, plan.count);
        check_attempt(task, &attempt);
        if (plan.every > 0)
            tw__redis_task_set_times(task, plan.times = 77);
        plan.tries = k % 16;
        task->tries = k % 16;
        attempt.token = k;
        attempt.number = 5;
        attempt.stage = TW__TASK_TAKEN;
        tw__redis_task_set_attempt(task, &attempt); /* in place: all but the strings */
        check_task(task, &plan);
        check_payload(task, k % 7, plan.count);
        check_attempt(task, &attempt);
        counted_free(task);
    }
    assert_int_equal(blocks_out, 0);
}

/* From each of: no attempt state, an attempt state, to each of: no attempt state, another attempt state, the
 * same strings in the task itself. */
static void a_copy_with_another_attempt_state_keeps_the_rest(void **state)
{
    (void)state;
    fill_letters();
    for (unsigned k = 1; k < 1000; k++) {
        struct tw__redis_task_plan plan;
        struct tw__redis_attempt attempt = attempt_with(k), other = attempt_with(k + 1 + k % 11);
        struct tw__redis_task *task = task_with(k, k % 2 == 0 ? &attempt : NULL, &plan);
        task->route = k;
        task->order = k * 7;
        if (k % 6 == 4)
            other = tw__redis_task_whole_attempt(task); /* its strings lie in the task */
        struct tw__redis_task *copy = tw__redis_task_with_attempt(task, k % 3 == 0 ? NULL : &other, &counted);
        assert_int_equal(copy->has_attempt, k % 3 != 0);
        check_task(copy, &plan);
        check_payload(copy, k % 7, plan.count);
        assert_int_equal(copy->route, k);
        assert_int_equal(copy->order, k * 7);
        if (k % 3 != 0)
            check_attempt(copy, &other);
        assert_int_equal(tw__redis_task_stage(copy), k % 3 == 0 ? TW__TASK_FILED : other.stage);
        counted_free(task);
        counted_free(copy);
    }
    assert_int_equal(blocks_out, 0);
}

/* As task.h promises: 24 bytes, and the strings. A task without an attempt state takes nothing for it. */
static void an_attempt_state_takes_24_bytes(void **state)
{
    (void)state;
    struct tw__redis_attempt attempt = {.stage = TW__TASK_FILED, .worker = text("ann"), .error = text("wrong")};
    struct tw__redis_task_plan plan = {.id = text("id"), .packed = text("\1\1p")};
    struct tw__redis_task *without = tw__redis_task_new(&plan, &counted);
    plan.attempt = &attempt;
    struct tw__redis_task *with = tw__redis_task_new(&plan, &counted);
    size_t before = offsetof(struct tw__redis_task, rest) + 3 + 3;
    assert_in_range(counted_usable(without), before, sizeof *without > before ? sizeof *without : before);
    assert_int_equal(counted_usable(with), before + 24 + 3 + 5);
    counted_free(without);
    counted_free(with);
}

/* ---- payloads -------------------------------------------------------------------------------------------- */

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
        cmocka_unit_test(an_attempt_state_lies_beside_the_rest_of_a_task),
        cmocka_unit_test(a_copy_with_another_attempt_state_keeps_the_rest),
        cmocka_unit_test(an_attempt_state_takes_24_bytes),
        cmocka_unit_test(a_packed_payload_is_whole_and_nothing_else),
    };
    use_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
