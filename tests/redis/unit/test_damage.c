/* SPDX-License-Identifier: MIT
 *
 * Chunks that are damaged, chunks of other formats, and the limits of each number of a chunk.
 */
#include "copies.h"

#include "tests/support/cmocka.h"
#include "tests/support/random.h"
#include "tests/support/run.h"

#include <src/redis/queues/bytes.h>
#include <src/redis/queues/check.h>
#include <src/redis/queues/chunk.h>
#include <src/redis/queues/format.h>
#include <src/redis/queues/lease.h>
#include <src/redis/queues/place.h>
#include <src/redis/queues/queue.h>
#include <src/redis/queues/route.h>
#include <src/redis/queues/share.h>

/* ---- chunks that are damaged ----------------------------------------------------------------------------- */

enum { PUT = 8, SMALL = PUT + 1 };

/* Writes a chunk of a few small tasks that has every part that a chunk can have. */
static size_t small_chunk(char *into)
{
    struct tw__redis_queue *queue = tw__redis_queue_new(all);
    struct tw__redis_chunks chunks;
    struct tw__redis_buffer log = {0};
    struct tw__redis_bytes bytes;
    for (unsigned i = 0; i < PUT; i++) {
        static const unsigned target_of[PUT] = {0, 1, 2, 3, 0, 9, 8, 8}; /* two targets have two tasks */
        static const int attempt[PUT] = {-1, -1, DEAD_ATTEMPT, -1, REPLACED_ATTEMPT, 0, 2, -1};
        unsigned target = target_of[i];
        struct tw__redis_attempt its;
        struct tw__redis_task_plan plan = {.id = id_of(i),
                                           .due = START + i % 3 * 1000,
                                           .every = i % 2 * 700,
                                           .times = i == 1 ? TW_FOREVER : 3,
                                           .tries = i,
                                           .packed = text(i == 1 ? "\1\5value" : "\2\5field\5value")};
        if (attempt[i] >= 0) {
            its = attempt_of[attempt[i]];
            its.worker = text("bob");
            its.error = text("wrong");
            plan.attempt = &its;
        }
        tw__redis_queue_put(queue, tw__redis_task_new(&plan, &all->memory),
                            tw__redis_route_for(queue, &plan_of[target]), tw__redis_queue_hash(all, plan.id),
                            NULL, START);
    }
    /* A period dies, which shares the payload of its series. */
    do_kill(queue, find(queue, "1xx"), 3, text("no"), START + 5, &log);
    tw__redis_buffer_free(&log, &counted);
    tw__redis_chunks_init(&chunks, queue);
    assert_true(tw__redis_chunks_next(&chunks, &bytes));
    memcpy(into, bytes.at, bytes.size);
    size_t size = bytes.size;
    assert_false(tw__redis_chunks_next(&chunks, &bytes));
    tw__redis_chunks_fini(&chunks);
    close_queue(queue);
    tw__redis_reaper_run_all(all);
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
        int count = read_chunk(bytes, cut);
        assert_true(count == -1 || count == whole);
        whole += count >= 0;
    }
    assert_int_equal(whole, SMALL + 1); /* the cuts that leave no task, one task and so on */
    assert_int_equal(read_chunk(bytes, size), SMALL);
    bytes[size] = 0;
    assert_int_equal(read_chunk(bytes, size + 1), -1);
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
            int count = read_chunk(bytes, size);
            refused += count == -1;
            read += count >= 0;
            assert_true(at > 0 || count == -1); /* another format */
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
        read_chunk(bytes, length);
    }
    close_all();
}

/* ---- other formats --------------------------------------------------------------------------------------- */

/* Chunks of one task, as they were written before format 1: by the first numbers, 1 to 3. */
static void a_chunk_of_another_format_is_refused(void **state)
{
    static const char whole[] = "e\0\0\2\0\0\3out\0\0\0\0\0\0\5\0\1a\5\2\1f\1v";
    static const struct {
        struct tw__redis_bytes bytes;
        uint64_t format;
        int count;
    } chunks[] = {
        {{whole, sizeof whole - 1}, 1, 1},
        {{"\1\0\0\0\0\0\3out\x80\xe8\xa8\x8f\xb3\x77\0\1a\5\2\1f\1v", 25}, 0, -1},
        {{"\2\0\0\0\0\0\3out\x80\xe8\xa8\x8f\xb3\x77\0\1a\5\2\1f\1v", 25}, 0, -1},
        {{"\3\0\0\0\0\0\3out\x80\xe8\xa8\x8f\xb3\x77\0\1a\5\2\1f\1v", 25}, 0, -1},
        {{"d", 1}, 0, -1}, /* 100 */
        {{"f", 1}, 2, -1},
        {{"", 0}, 0, -1},
        {{"\x80", 1}, 0, -1},
    };
    (void)state;
    open_all();
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        assert_int_equal(tw__redis_format_of(chunks[i].bytes), chunks[i].format);
        assert_int_equal(read_chunk(chunks[i].bytes.at, chunks[i].bytes.size), chunks[i].count);
    }
    close_all();
}

/* ---- numbers out of range -------------------------------------------------------------------------------- */

/* Reads a chunk of the task `x`, for a Stream, and the task `xy`, for the same Stream or a List, with these
 * flags. The bytes `other` stand in place of its payload. */
static int read_two(bool list, char flags, struct tw__redis_bytes other)
{
    const struct tw__redis_bytes parts[] = {
        {"e\0\0\0\0\0\1a\0\0\0\0\0\0\5\0\1x\5\2\1f\1v", 24},
        list ? (struct tw__redis_bytes){"\1\1\0\0\0\1a\0\0\0\0\0\0", 13} : (struct tw__redis_bytes){"\0", 1},
        {"\0", 1},
        {&flags, 1},
        {"\2xy", 3},
        other,
    };
    char bytes[64], *at = bytes;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        memcpy(at, parts[i].at, parts[i].size);
        at += parts[i].size;
    }
    return read_chunk(bytes, (size_t)(at - bytes));
}

/* A task that shares a payload names another task: by so many bytes of its own id, and the rest. */
static void a_task_of_a_chunk_may_share_a_payload_that_was_read(void **state)
{
    enum { SHARES = 4 };
    const struct tw__redis_bytes own = {"\5\2\1f\1v", 6}, of_x = {"\1\0", 2};
    static const struct tw__redis_bytes bad[] = {
        {"\2\0", 2},  /* the task itself */
        {"\3\0", 2},  /* its id is shorter */
        {"\1\1q", 3}, /* nobody has this id */
        {"\1\2y", 3}, /* the rest is cut off */
        {"\1", 1},    {"", 0},
    };
    (void)state;
    open_all();
    assert_int_equal(read_two(false, 0, own), 2);
    assert_int_equal(read_two(false, SHARES, of_x), 2);
    assert_int_equal(read_two(false, SHARES, (struct tw__redis_bytes){"\0\1x", 3}), 2);
    assert_int_equal(read_two(false, 2 * SHARES, of_x), -1);
    assert_int_equal(read_two(true, SHARES, of_x), -1); /* a List takes one value, and this payload has two */
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(read_two(false, SHARES, bad[i]), -1);
    close_all();
}

/* A task beyond the limit would get a copy of the payload. */
static void a_chunk_gives_a_payload_no_more_users_than_it_may_have(void **state)
{
    static const char first[] = "e\0\0\0\0\0\1a\0\0\0\0\0\0\5\0\1x\5\2\1f\1v";
    enum { FIRST = sizeof first - 1, EACH = 11 };
    char bytes[FIRST + EACH * TW__REDIS_USERS_MAX + 1];
    (void)state;
    open_all();
    memcpy(bytes, first, FIRST);
    for (unsigned i = 0; i < TW__REDIS_USERS_MAX; i++) {
        char *at = bytes + FIRST + i * EACH;
        memcpy(at, "\0\0\4\4", 4);
        snprintf(at + 4, 5, "%04u", i);
        memcpy(at + 8, "\0\1x", 3);
    }
    assert_int_equal(read_chunk(bytes, sizeof bytes - 1 - EACH), TW__REDIS_USERS_MAX);
    assert_int_equal(read_chunk(bytes, sizeof bytes - 1), -1);
    close_all();
}

/* A chunk of one task as a list of its numbers. Each case makes one of the numbers wrong. */
enum {
    FORMAT,
    ROUTE,
    KIND,
    LATE,
    MAXLEN,
    LATE_MS,
    TARGET, /* if the task has one */
    TRIES,
    FIRST_MS,
    FACTOR,
    MAX_MS,
    JITTER,
    WAIT, /* 0: none, and no time of the next try */
    DUE,
    FLAGS,
    STAGE, /* to ERROR: if the flags say that the task has an attempt state */
    ATTEMPT_DUE,
    TOKEN,
    LEASE_MS,
    ATTEMPT,
    WORKER,
    ERROR,
    EVERY,
    TIMES,
    ID,
    PAYLOAD,
    STRINGS,
    FIELDS
};

static bool is_there(const uint64_t *field, unsigned k, bool again)
{
    if (again && k >= KIND && k <= WAIT)
        return false; /* a route is defined once */
    if (k == TARGET)
        return field[KIND] != TW__REDIS_WORKERS;
    return k < STAGE || k > ERROR || (field[FLAGS] & 2) != 0;
}

static int read_fields(const uint64_t *field, unsigned times)
{
    char bytes[1024], *at = bytes;
    at = tw__redis_varint_put(at, field[FORMAT]);
    for (unsigned i = 0; i < times; i++) {
        for (unsigned k = ROUTE; k < FIELDS; k++)
            if (is_there(field, k, i > 0))
                at = tw__redis_varint_put(at, k == STAGE ? field[k] - TW__TASK_FILED : field[k]);
        for (uint64_t k = 0; k < field[STRINGS] && k < 9; k++)
            *at++ = 0;
    }
    return read_chunk(bytes, (size_t)(at - bytes));
}

static const uint64_t good[FIELDS] = {[FORMAT] = 101, [KIND] = TW__REDIS_STREAM,
                                      [DUE] = 5,      [FLAGS] = 0x21,
                                      [EVERY] = 9,    [TIMES] = 3,
                                      [PAYLOAD] = 3,  [STRINGS] = 2};
static const uint64_t good_work[FIELDS] = {[FORMAT] = 101,    [KIND] = TW__REDIS_WORKERS,
                                           [TRIES] = 5,       [FIRST_MS] = 100,
                                           [FACTOR] = 200,    [MAX_MS] = 900,
                                           [JITTER] = 10,     [DUE] = 5,
                                           [FLAGS] = 0x23,    [STAGE] = TW__TASK_TAKEN,
                                           [ATTEMPT_DUE] = 4, [TOKEN] = 77,
                                           [LEASE_MS] = 1000, [ATTEMPT] = 1,
                                           [EVERY] = 9,       [TIMES] = 3,
                                           [PAYLOAD] = 3,     [STRINGS] = 2};

struct wrong {
    unsigned field;
    uint64_t value;
    int count; /* tasks read; -1: refused */
};

#define CENTURY UINT64_C(3155760000000) /* in ms */

static const struct wrong cases[] = {
    {FORMAT, 1, -1},
    {FORMAT, 100, -1},
    {FORMAT, 102, -1},
    {ROUTE, 1, -1},
    {ROUTE, 512, -1},
    {LATE, TW_MISSED_BURST, 1},
    {LATE, TW_MISSED_BURST + 1, -1},
    {MAXLEN, INT64_MAX, 1},
    {MAXLEN, UINT64_C(1) << 63, -1},
    {LATE_MS, CENTURY + 1, 1},
    {LATE_MS, CENTURY + 2, -1},
    {TARGET, 99, -1},
    {TARGET, UINT64_MAX, -1},
    {DUE, 0, 1},
    {DUE, TW__TASK_TIME_MAX, 1},
    {DUE, TW__TASK_TIME_MAX + 1, -1},
    {DUE, UINT64_MAX, -1},
    {FLAGS, 0xF1, 1},
    {FLAGS, 0x101, -1},
    {FLAGS, 0x25, -1}, /* it shares a payload, of no task */
    {FLAGS, 0x29, -1},
    {EVERY, 0, -1},
    {EVERY, CENTURY, 1},
    {EVERY, CENTURY + 1, -1},
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

static const struct wrong cases_of_work[] = {
    {KIND, TW__REDIS_WORKERS + 1, -1},
    {KIND, TW__REDIS_STREAM, -1}, /* only workers have leases */
    {TRIES, 0, 1},
    {TRIES, 1000000, 1},
    {TRIES, 1000001, -1},
    {FIRST_MS, CENTURY, 1},
    {FIRST_MS, CENTURY + 1, -1},
    {FACTOR, 10000, 1},
    {FACTOR, 10001, -1},
    {MAX_MS, CENTURY, 1},
    {MAX_MS, CENTURY + 1, -1},
    {JITTER, 101, 1},
    {JITTER, 102, -1},
    {WAIT, CENTURY + 1, -1},
    {FLAGS, 0xF3, 1},
    {FLAGS, 0xF4, -1},
    {FLAGS, 0x27, -1},
    {STAGE, TW__TASK_FILED, 1},
    {STAGE, TW__TASK_BURIED, 1},
    {STAGE, TW__TASK_REPLACED, 1},
    {STAGE, 4 + TW__TASK_TAKEN, 1}, /* renewed */
    {STAGE, 4 + TW__TASK_BURIED, 1},
    {STAGE, 4 + TW__TASK_REPLACED, 1},
    {STAGE, 8 + TW__TASK_REPLACED, -1}, /* the new task has no lapses */
    {STAGE, 8 + TW__TASK_FILED, 1},     /* the only attempt has lapsed */
    {STAGE, 8 + TW__TASK_TAKEN, -1},
    {STAGE, 8 + TW__TASK_BURIED, 1},
    {STAGE, 16 + TW__TASK_FILED, -1},
    {STAGE, 17 * 8 + TW__TASK_BURIED, -1},
    {STAGE, 18 * 8 + TW__TASK_FILED, -1},
    {ATTEMPT_DUE, TW__TASK_TIME_MAX, 1},
    {ATTEMPT_DUE, TW__TASK_TIME_MAX + 1, -1},
    {TOKEN, UINT64_MAX, 1},
    {TOKEN, 0, -1}, /* nobody could end the attempt */
    {LEASE_MS, UINT32_MAX, 1},
    {LEASE_MS, UINT64_C(1) << 32, -1},
    {ATTEMPT, 0, -1}, /* it is under way */
    {ATTEMPT, TW__REDIS_BEGUN_MAX, 1},
    {ATTEMPT, TW__REDIS_BEGUN_MAX + 1, -1},
    {WORKER, 99, -1},
    {WORKER, UINT64_MAX, -1},
    {ERROR, 99, -1},
    {ERROR, UINT64_MAX, -1},
};

static void every_number_of_a_chunk_has_its_limits(void **state)
{
    static const struct {
        const uint64_t *good;
        const struct wrong *cases;
        size_t count;
    } tables[] = {{good, cases, sizeof cases / sizeof *cases},
                  {good_work, cases_of_work, sizeof cases_of_work / sizeof *cases_of_work}};
    (void)state;
    open_all();
    for (size_t k = 0; k < 2; k++) {
        assert_int_equal(read_fields(tables[k].good, 1), 1);
        for (size_t i = 0; i < tables[k].count; i++) {
            uint64_t field[FIELDS];
            memcpy(field, tables[k].good, sizeof field);
            field[tables[k].cases[i].field] = tables[k].cases[i].value;
            if (read_fields(field, 1) != tables[k].cases[i].count)
                fail_msg("table %zu, case %zu", k, i);
        }
    }
    close_all();
}

/* A dead task for workers has any number of strings, a dead task for a Stream pairs. */
static void a_dead_task_of_a_chunk_has_any_kind(void **state)
{
    uint64_t field[FIELDS];
    (void)state;
    open_all();
    memcpy(field, good_work, sizeof field);
    field[STAGE] = TW__TASK_BURIED;
    field[KIND] = TW__REDIS_STREAM;
    assert_int_equal(read_fields(field, 1), 1);
    field[STAGE] = TW__TASK_FILED;
    assert_int_equal(read_fields(field, 1), -1);
    field[STAGE] = TW__TASK_TAKEN;
    assert_int_equal(read_fields(field, 1), -1);
    field[STAGE] = TW__TASK_REPLACED;
    assert_int_equal(read_fields(field, 1), 1);
    field[STAGE] = TW__TASK_BURIED;
    field[PAYLOAD] = 4;
    field[STRINGS] = 3;
    assert_int_equal(read_fields(field, 1), -1);
    field[KIND] = TW__REDIS_WORKERS;
    assert_int_equal(read_fields(field, 1), 1);
    field[PAYLOAD] = 1;
    field[STRINGS] = 0;
    assert_int_equal(read_fields(field, 1), -1);
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
    field[DUE] = TW__TASK_TIME_MAX / 2 + 1;
    assert_int_equal(read_fields(field, 2), -1);
    close_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chunk_that_was_cut_is_refused_but_between_tasks),
        cmocka_unit_test(a_changed_byte_is_refused_or_read_as_something_in_order),
        cmocka_unit_test(garbage_is_refused_or_read_as_something_in_order),
        cmocka_unit_test(a_chunk_of_another_format_is_refused),
        cmocka_unit_test(a_task_of_a_chunk_may_share_a_payload_that_was_read),
        cmocka_unit_test(a_chunk_gives_a_payload_no_more_users_than_it_may_have),
        cmocka_unit_test(every_number_of_a_chunk_has_its_limits),
        cmocka_unit_test(a_dead_task_of_a_chunk_has_any_kind),
        cmocka_unit_test(numbers_of_a_chunk_have_to_fit_each_other),
    };
    use_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
