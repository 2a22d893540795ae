/* SPDX-License-Identifier: MIT
 *
 * Attempt states as bytes, and the buffer and the reader through which they go.
 */
#include "copies.h"

#include "tests/support/cmocka.h"

#include <src/redis/queues/bytes.h>

/* ---- attempts -------------------------------------------------------------------------------------------- */

static void an_attempt_state_comes_back_from_the_bytes_in_a_task(void **state)
{
    (void)state;
    for (unsigned i = 0; i < ATTEMPTS; i++) {
        char bytes[TW__REDIS_ATTEMPT_SIZE + 2];
        memset(bytes, 0x5A, sizeof bytes);
        tw__redis_attempt_pack(bytes + 1, &attempt_of[i]);
        struct tw__redis_attempt back = tw__redis_attempt_unpack(bytes + 1);
        back.missed_periods = attempt_of[i].missed_periods; /* it lies behind the payload, as `next` does */
        assert_attempts_equal(&back, &attempt_of[i]);
        assert_int_equal(tw__redis_attempt_stage(bytes + 1), attempt_of[i].stage);
        assert_int_equal(bytes[0], 0x5A);
        assert_int_equal(bytes[sizeof bytes - 1], 0x5A);
    }
}

/* Writes an attempt state into a block of memory that is no larger than its bytes. */
static struct tw__redis_bytes written(const struct tw__redis_attempt *attempt)
{
    struct tw__redis_buffer buffer = {0};
    tw__redis_attempt_put(&buffer, attempt, &counted);
    char *exact = counted_alloc(buffer.size);
    memcpy(exact, buffer.at, buffer.size);
    struct tw__redis_bytes bytes = {exact, buffer.size};
    tw__redis_buffer_free(&buffer, &counted);
    return bytes;
}

static void an_attempt_state_comes_back_from_a_file(void **state)
{
    static const char *const strings[] = {"", "worker 1"};
    (void)state;
    for (unsigned i = 0; i < 4 * ATTEMPTS; i++) {
        struct tw__redis_attempt attempt = attempt_of[i / 4];
        attempt.worker = text(strings[i % 2]);
        attempt.error = text(strings[i / 2 % 2]);
        struct tw__redis_bytes bytes = written(&attempt);
        struct tw__redis_reader reader = {.at = bytes.at, .end = bytes.at + bytes.size};
        struct tw__redis_attempt back = tw__redis_attempt_take(&reader);
        assert_ptr_equal(reader.at, reader.end);
        assert_attempts_equal(&back, &attempt);
        counted_free((void *)(uintptr_t)bytes.at);
    }
    assert_int_equal(blocks_out, 0);
}

/* `next` stays within the times that there are, is not `due`, and belongs to an attempt of the task itself. */
static void a_wrong_next_is_a_fault(void **state)
{
    static const struct {
        enum tw__task_stage stage;
        uint64_t due, away;
        bool good;
    } cases[] = {{TW__TASK_TAKEN, START, 2, true},
                 {TW__TASK_TAKEN, START, START * 2 - 1, true},
                 {TW__TASK_TAKEN, START, 0, false},
                 {TW__TASK_TAKEN, START, START * 2 + 1, false},
                 {TW__TASK_TAKEN, TW__TASK_TIME_MAX, 2, false},
                 {TW__TASK_TAKEN, 0, 2 * TW__TASK_TIME_MAX, true},
                 {TW__TASK_TAKEN, 0, 1, false},
                 {TW__TASK_FILED, START, 2, false},
                 {TW__TASK_REPLACED, START, 2, false},
                 {TW__TASK_BURIED, START, 2, false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t numbers[] = {
            256 + (unsigned)cases[i].stage - TW__TASK_FILED, cases[i].due, 7, 1000, 1, 0, 0, cases[i].away};
        struct tw__redis_buffer buffer = {0};
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
            tw__redis_buffer_put_number(&buffer, numbers[k], &counted);
        struct tw__redis_reader reader = {.at = buffer.at, .end = buffer.at + buffer.size};
        tw__redis_attempt_take(&reader);
        if ((reader.at != NULL) != cases[i].good)
            fail_msg("case %zu", i);
        tw__redis_buffer_free(&buffer, &counted);
    }
}

/* A call that has begun stands for further periods, and neither a dead task nor a newer one that
 * stands behind an attempt has such a call. */
static void wrong_missed_periods_are_a_fault(void **state)
{
    static const struct {
        enum tw__task_stage stage;
        uint64_t missed_periods;
        bool good;
    } cases[] = {{TW__TASK_TAKEN, 1, true},     {TW__TASK_FILED, INT64_MAX, true},
                 {TW__TASK_TAKEN, 0, true},     {TW__TASK_BURIED, 1, false},
                 {TW__TASK_REPLACED, 1, false}, {TW__TASK_TAKEN, UINT64_C(1) << 63, false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t numbers[] = {
            512 + (unsigned)cases[i].stage - TW__TASK_FILED, START, 7, 1000, 1, 0, 0, cases[i].missed_periods};
        struct tw__redis_buffer buffer = {0};
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
            tw__redis_buffer_put_number(&buffer, numbers[k], &counted);
        struct tw__redis_reader reader = {.at = buffer.at, .end = buffer.at + buffer.size};
        struct tw__redis_attempt attempt = tw__redis_attempt_take(&reader);
        if ((reader.at != NULL) != cases[i].good)
            fail_msg("case %zu", i);
        assert_true(!cases[i].good ||
                    (attempt.has_missed_periods && attempt.missed_periods == cases[i].missed_periods));
        tw__redis_buffer_free(&buffer, &counted);
    }
    struct tw__redis_attempt attempt = {.has_missed_periods = true, .missed_periods = 1};
    assert_true(tw__redis_attempt_suits(&attempt, 1) && !tw__redis_attempt_suits(&attempt, 0));
    attempt.missed_periods = 0;
    /* a target has refused the call of a task that runs once */
    assert_true(tw__redis_attempt_suits(&attempt, 0));
    attempt = (struct tw__redis_attempt){.missed_periods = 1};
    assert_true(tw__redis_attempt_suits(&attempt, 0));
}

static void an_attempt_state_that_was_cut_is_a_fault(void **state)
{
    (void)state;
    struct tw__redis_attempt attempt = attempt_of[1];
    attempt.worker = text("bob");
    attempt.error = text("no");
    struct tw__redis_bytes bytes = written(&attempt);
    for (size_t cut = 0; cut < bytes.size; cut++) {
        struct tw__redis_reader reader = {.at = bytes.at, .end = bytes.at + cut};
        struct tw__redis_attempt back = tw__redis_attempt_take(&reader);
        assert_null(reader.at);
        /* behind the error stand `next` and `missed_periods` */
        assert_true(back.error.size == 0 || cut >= bytes.size - 2 * TW__REDIS_VARINT_MAX);
        assert_non_null(back.error.at);
    }
    counted_free((void *)(uintptr_t)bytes.at);
    assert_int_equal(blocks_out, 0);
}

/* ---- the buffer and the reader --------------------------------------------------------------------------- */

static void a_buffer_keeps_each_number_and_string(void **state)
{
    enum { MANY = 500 };
    struct tw__redis_buffer buffer = {0};
    (void)state;
    fill_letters();
    for (unsigned i = 0; i < MANY; i++) {
        tw__redis_buffer_put_number(&buffer, UINT64_MAX >> i % 64, &counted);
        tw__redis_buffer_put_bytes(&buffer, (struct tw__redis_bytes){letters + i, i % 300}, &counted);
        assert_true(buffer.size <= buffer.capacity && buffer.capacity <= counted_usable(buffer.at));
    }
    tw__redis_buffer_put_bytes(&buffer, (struct tw__redis_bytes){NULL, 0}, &counted);
    assert_int_equal(blocks_out, 1);
    struct tw__redis_reader reader = {.at = buffer.at, .end = buffer.at + buffer.size};
    for (unsigned i = 0; i < MANY; i++) {
        assert_true(tw__redis_reader_number(&reader, UINT64_MAX) == UINT64_MAX >> i % 64);
        assert_bytes_equal(tw__redis_reader_bytes(&reader), (struct tw__redis_bytes){letters + i, i % 300});
    }
    assert_int_equal(tw__redis_reader_bytes(&reader).size, 0);
    assert_ptr_equal(reader.at, reader.end);
    tw__redis_buffer_free(&buffer, &counted);
    assert_null(buffer.at);
    assert_int_equal(buffer.size + buffer.capacity, 0);
    assert_int_equal(blocks_out, 0);
    tw__redis_buffer_put_number(&buffer, 1, &counted); /* an empty buffer again */
    assert_int_equal(buffer.size, 1);
    tw__redis_buffer_free(&buffer, &counted);
}

/* Memory grows by half and more each time, so a large log is not copied for each byte. */
static void a_buffer_grows_in_few_steps(void **state)
{
    struct tw__redis_buffer buffer = {0};
    unsigned steps = 0;
    (void)state;
    for (unsigned i = 0; i < 100000; i++) {
        size_t before = buffer.capacity;
        tw__redis_buffer_put_number(&buffer, 5, &counted);
        steps += buffer.capacity != before;
    }
    assert_int_equal(buffer.size, 100000);
    assert_in_range(steps, 1, 40);
    tw__redis_buffer_free(&buffer, &counted);
}

static void a_reader_stops_at_the_first_fault(void **state)
{
    static const char bytes[] = {5, 1, 'x', 1, 'y'};
    struct tw__redis_reader reader = {.at = bytes, .end = bytes + sizeof bytes};
    (void)state;
    assert_int_equal(tw__redis_reader_number(&reader, 5), 5);
    assert_bytes_equal(tw__redis_reader_bytes(&reader), text("x"));
    struct tw__redis_reader again = reader;
    assert_bytes_equal(tw__redis_reader_bytes(&again), text("y"));
    assert_int_equal(tw__redis_reader_number(&reader, 0), 0); /* 1 is too many */
    assert_null(reader.at);
    assert_int_equal(tw__redis_reader_number(&reader, 9), 0); /* and stays a fault */
    assert_bytes_equal(tw__redis_reader_bytes(&reader), text(""));
    assert_null(reader.at);
}

static void a_fault_names_the_number(void **state)
{
    static const char bytes[] = {5, 1, 5};
    struct tw__redis_reader reader = {.at = bytes, .end = bytes + sizeof bytes}, other = reader;
    char text[TW__REDIS_FAULT_TEXT];
    (void)state;
    assert_int_equal(tw__redis_reader_named(&reader, "tries", 5), 5);
    assert_int_equal(tw__redis_reader_after(&reader, "due", UINT64_MAX, UINT64_MAX), UINT64_MAX);
    assert_int_equal(tw__redis_reader_after(&reader, "due", 10, 14), 0);
    assert_int_equal(tw__redis_reader_named(&reader, "times", 0), 0); /* the first fault stays */
    assert_string_equal(tw__redis_fault_text(&reader.fault, text), "due is 15: expected at most 14");
    tw__redis_reader_number(&other, 4);
    assert_string_equal(tw__redis_fault_text(&other.fault, text), "its bytes are not what was written");
}

static void a_string_ends_with_the_bytes(void **state)
{
    static const char longer[] = {3, 'a', 'b'}, exact[] = {2, 'a', 'b'};
    char endless[TW__REDIS_VARINT_MAX + 1];
    (void)state;
    struct tw__redis_reader reader = {.at = longer, .end = longer + sizeof longer};
    assert_bytes_equal(tw__redis_reader_bytes(&reader), text(""));
    assert_null(reader.at);
    reader = (struct tw__redis_reader){.at = exact, .end = exact + sizeof exact};
    assert_bytes_equal(tw__redis_reader_bytes(&reader), text("ab"));
    assert_ptr_equal(reader.at, reader.end);
    assert_bytes_equal(tw__redis_reader_bytes(&reader), text(""));
    assert_null(reader.at);
    char *end = tw__redis_varint_put(endless, SIZE_MAX);
    reader = (struct tw__redis_reader){.at = endless, .end = end};
    assert_bytes_equal(tw__redis_reader_bytes(&reader), text(""));
    assert_null(reader.at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_attempt_state_comes_back_from_the_bytes_in_a_task),
        cmocka_unit_test(an_attempt_state_comes_back_from_a_file),
        cmocka_unit_test(a_wrong_next_is_a_fault),
        cmocka_unit_test(wrong_missed_periods_are_a_fault),
        cmocka_unit_test(an_attempt_state_that_was_cut_is_a_fault),
        cmocka_unit_test(a_buffer_keeps_each_number_and_string),
        cmocka_unit_test(a_buffer_grows_in_few_steps),
        cmocka_unit_test(a_reader_stops_at_the_first_fault),
        cmocka_unit_test(a_fault_names_the_number),
        cmocka_unit_test(a_string_ends_with_the_bytes),
    };
    use_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
