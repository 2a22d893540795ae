/* SPDX-License-Identifier: MIT
 *
 * Tasks as bytes: writing and reading them, and predicted sizes. test_damage.c has the damaged bytes.
 */
#include "copies.h"

#include "tests/support/cmocka.h"

#include <src/redis/queues/bytes.h>
#include <src/redis/queues/chunk.h>
#include <src/redis/queues/lease.h>
#include <src/redis/queues/place.h>
#include <src/redis/queues/queue.h>
#include <src/redis/queues/route.h>
#include <src/redis/queues/sums.h>

/* ---- chunks ---------------------------------------------------------------------------------------------- */

enum { BIG = 70000 };
static char big[BIG];

/* Writes an attempt state for the i-th task to *attempt. Returns false if the task has none. */
static bool some_attempt(struct tw__redis_attempt *attempt, uint8_t kind, unsigned i)
{
    if (i % 4 == 0 || (kind != TW__REDIS_WORKERS && i % 9 != 0))
        return false;
    *attempt = attempt_of[kind == TW__REDIS_WORKERS ? i / 4 % ATTEMPTS : DEAD_ATTEMPT - i / 9 % 2];
    attempt->has_missed_periods &= i % 3 == 0; /* the task repeats */
    attempt->worker = (struct tw__redis_bytes){letters, i % 3 * 70};
    attempt->error = (struct tw__redis_bytes){letters + 9, i % 2 * 20};
    return true;
}

/* Puts tasks that differ from their neighbours. Several are due at the same time. */
static void put_many(struct tw__redis_queue *queue, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        const struct tw__redis_plan *target = &plan_of[i % PLANS];
        unsigned first = i;
        struct tw__redis_task_plan plan = {.id = id_of(i),
                                           .due = START - 300 + i * 37 % 1000 / 3,
                                           .every = i % 3 == 0 ? 1 + i : 0,
                                           .times = i % 2 == 0 ? TW_FOREVER : 1 + i,
                                           .tries = i % (TW__REDIS_TRIES_MAX + 1),
                                           .count = strings_suit(target->kind, 2) ? 2 + i % 3 * 2 : 1,
                                           .string = string_of,
                                           .arg = &first};
        struct tw__redis_attempt attempt;
        if (some_attempt(&attempt, target->kind, i))
            plan.attempt = &attempt;
        if (i == 700)
            plan.due = TW__TASK_TIME_MAX;
        if (i % 300 != 3)
            plan.packed = text(strings_suit(target->kind, 2) ? "\2\1f\1v" : "\1\1p");
        struct tw__redis_task *task = tw__redis_task_new(&plan, &all->memory);
        tw__redis_queue_put(queue, task, tw__redis_route_for(queue, target), tw__redis_queue_hash(all, plan.id),
                            NULL, START);
    }
}

static void a_queue_comes_back_from_its_chunks(void **state)
{
    static const unsigned counts[] = {0, 1, 2, 511, 512, 513, 1300};
    (void)state;
    fill_letters();
    for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
        unsigned chunks, again;
        open_all();
        struct tw__redis_queue *queue = tw__redis_queue_new(all);
        tw__redis_queue_attach(queue);
        put_many(queue, 0, counts[k]);
        struct tw__redis_queue *copy = copy_through_chunks(queue, &chunks);
        assert_true(chunks >= (counts[k] + 511) / 512);
        assert_queues_equal(queue, copy);
        assert_int_equal(tw__redis_route_count(copy), counts[k] < PLANS ? counts[k] : PLANS);
        struct tw__redis_queue *third = copy_through_chunks(copy, &again);
        assert_int_equal(chunks, again);
        assert_queues_equal(queue, third);
        assert_int_equal(copy->bytes, third->bytes);
        close_queue(queue);
        close_queue(copy);
        close_queue(third);
        close_all();
    }
}

/* A chunk replaces the tasks that are in the queue already. Held tasks keep the tries that they have by
 * now. */
static void reading_a_chunk_twice_changes_nothing_more(void **state)
{
    (void)state;
    fill_letters();
    open_all();
    struct tw__redis_queue *queue = tw__redis_queue_new(all), *copy = tw__redis_queue_new(all);
    tw__redis_queue_attach(queue);
    tw__redis_queue_attach(copy);
    put_many(queue, 0, 100);
    struct tw__redis_task *held = tw__redis_queue_find(queue, tw__redis_queue_hash(all, text("")), text(""));
    tw__redis_place_unfile(all, held);
    tw__redis_place_hold_first(all, held, 6000, START + 1002);
    tw__redis_route_of(all, held)->waits += 5;
    struct tw__redis_chunks chunks;
    struct tw__redis_bytes bytes;
    tw__redis_chunks_init(&chunks, queue);
    while (tw__redis_chunks_next(&chunks, &bytes)) {
        assert_true(tw__redis_chunk_read(copy, bytes, NULL, START, MONOTONIC, NULL));
        size_t taken_up = copy->bytes;
        assert_true(tw__redis_chunk_read(copy, bytes, NULL, START, MONOTONIC, NULL));
        assert_int_equal(copy->bytes, taken_up);
    }
    assert_int_equal(all->tasks, 200);
    uint64_t behind = all->behind == NULL ? 0 : tw_wheel_count(all->behind), leases = 0; /* that have run out */
    for (struct tw__link *link = all->past.next; link != &all->past; link = link->next)
        leases += tw__redis_task_is_leased(tw__redis_task_of_link(link));
    leases += tw_wheel_count(all->leases);
    assert_int_equal(copy->in_line + copy->dead_count + tw_wheel_count(all->wheel) + behind + leases +
                         queue->in_line + queue->held + queue->dead_count,
                     200);
    assert_queues_equal(queue, copy);
    tw__redis_chunks_fini(&chunks);
    close_queue(queue);
    close_queue(copy);
    close_all();
}

/* The bytes of DUMP for a queue, uncompressed: for each chunk its bytes, one byte as a mark and five for its
 * size, and 40 bytes around all chunks. */
static uint64_t bytes_of_chunks(const struct tw__redis_queue *queue)
{
    struct tw__redis_chunks chunks;
    struct tw__redis_bytes bytes;
    uint64_t sum = 40;
    tw__redis_chunks_init(&chunks, queue);
    while (tw__redis_chunks_next(&chunks, &bytes))
        sum += bytes.size + 6;
    tw__redis_chunks_fini(&chunks);
    return sum;
}

/* Puts `count` tasks for `targets` targets in turn. The names of targets have `name` bytes, the payloads have
 * `payload` bytes. */
static void put_like(struct tw__redis_queue *queue, unsigned count, unsigned targets, size_t name,
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
        tw__redis_queue_put(queue, tw__redis_task_new(&plan, &all->memory), tw__redis_route_for(queue, &route),
                            tw__redis_queue_hash(all, plan.id), NULL, START);
    }
}

static void a_queue_takes_no_more_bytes_than_is_foretold(void **state)
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
        struct tw__redis_queue *queue = tw__redis_queue_new(all);
        put_like(queue, shapes[k].count, shapes[k].targets, shapes[k].name, shapes[k].payload);
        uint64_t most = tw__redis_sums_dump_most(queue), bytes = bytes_of_chunks(queue);
        assert_true(most >= bytes);
        assert_true(shapes[k].factor == 0 || (double)most <= (double)bytes * shapes[k].factor);
        put_many(queue, 20000, 21300);
        assert_true(tw__redis_sums_dump_most(queue) >= bytes_of_chunks(queue));
        close_queue(queue);
        close_all();
    }
}

/* A lease, with its token of 64 bits, takes no more bytes in a chunk than in memory. */
static void leases_take_no_more_bytes_than_is_foretold(void **state)
{
    (void)state;
    struct tw__redis_queue *queue = open_one();
    for (unsigned i = 0; i < 5000; i++) {
        struct tw__redis_attempt attempt = {.stage = TW__TASK_TAKEN,
                                            .due = START + i,
                                            .token = UINT64_MAX - i,
                                            .lease_ms = UINT32_MAX,
                                            .number = 1000000,
                                            .worker = text(i % 2 == 0 ? "" : "worker"),
                                            .error = text(i % 3 == 0 ? "" : "the lease ran out")};
        struct tw__redis_task_plan plan = {
            .id = id_of(i), .due = START + i * UINT64_C(800003), .packed = text("\1\1p"), .attempt = &attempt};
        tw__redis_queue_put(queue, tw__redis_task_new(&plan, &all->memory),
                            tw__redis_route_for(queue, &plan_of[PLANS - 1]), tw__redis_queue_hash(all, plan.id),
                            NULL, START);
    }
    uint64_t most = tw__redis_sums_dump_most(queue), bytes = bytes_of_chunks(queue);
    assert_in_range(most, bytes, bytes * 2);
    close_one(queue);
}

/* Puts a series whose payload has `payload` bytes, of which `deaths` periods die. */
static void put_dying(struct tw__redis_queue *queue, const char *id, size_t payload, unsigned deaths)
{
    struct tw__redis_buffer log = {0};
    char packed[BIG + 8] = {1};
    char *end = tw__redis_varint_put(packed + 1, payload);
    memset(end, 'p', payload);
    struct tw__redis_task_plan plan = {.id = text(id),
                                       .due = START + 5,
                                       .every = 1000003,
                                       .times = TW_FOREVER,
                                       .packed = {packed, (size_t)(end - packed) + payload}};
    tw__redis_queue_put(queue, tw__redis_task_new(&plan, &all->memory),
                        tw__redis_route_for(queue, &plan_of[FIRST_OF_WORKERS]),
                        tw__redis_queue_hash(all, plan.id), NULL, START);
    for (unsigned i = 0; i < deaths; i++)
        do_kill(queue, find(queue, id), 5, text("no"), START + 700 + i * 1000003, &log);
    tw__redis_buffer_free(&log, &counted);
}

/* The other tasks name a task of a chunk before. */
static void a_shared_payload_is_written_once_and_shared_again(void **state)
{
    unsigned chunks;
    (void)state;
    struct tw__redis_queue *queue = open_one();
    put_dying(queue, "big", BIG, 6);
    put_dying(queue, "small", 1, 2);
    put_dying(queue, "gone", 300, 3);
    tw__redis_queue_remove(queue, find(queue, "gone"), tw__redis_queue_hash(all, text("gone")));
    put_dying(queue, "alive", 300, 0);
    uint64_t most = tw__redis_sums_dump_most(queue), bytes = bytes_of_chunks(queue);
    assert_in_range(bytes, BIG, most);
    assert_true(bytes < BIG + 2000);
    struct tw__redis_queue *copy = copy_through_chunks(queue, &chunks);
    tw__redis_queue_attach(copy);
    assert_int_equal(chunks, 2);
    assert_queues_equal(queue, copy);
    assert_int_equal(copy->bytes, queue->bytes);
    assert_int_equal(copy->dead_bytes, queue->dead_bytes);
    assert_int_equal(tw__redis_task_share(find(copy, "big"))->users, 7);
    assert_int_equal(tw__redis_task_share(find(copy, "big"))->dead, 6);
    assert_int_equal(tw__redis_task_share(find(copy, "gone@1700000000005"))->users, 3);
    assert_null(tw__redis_task_share(find(copy, "alive")));
    assert_int_equal(bytes_of_chunks(copy), bytes);
    close_queue(copy);
    close_one(queue);
}

static void many_deaths_take_no_more_bytes_than_is_foretold(void **state)
{
    char id[16];
    (void)state;
    struct tw__redis_queue *queue = open_one();
    for (unsigned i = 0; i < 700; i++) {
        snprintf(id, sizeof id, "%u", i);
        put_dying(queue, id, i % 3 * 20, i % 5);
    }
    uint64_t most = tw__redis_sums_dump_most(queue), bytes = bytes_of_chunks(queue);
    assert_in_range(most, bytes, bytes * 3);
    close_one(queue);
}

static void a_chunk_is_not_much_larger_than_its_size(void **state)
{
    unsigned chunks;
    (void)state;
    open_all();
    struct tw__redis_queue *queue = tw__redis_queue_new(all);
    for (unsigned i = 0; i < 5; i++) {
        char packed[BIG + 8];
        size_t size = i == 3 ? BIG : 40000;
        packed[0] = 1;
        char *end = tw__redis_varint_put(packed + 1, size);
        memset(big, (int)i, size);
        memcpy(end, big, size);
        struct tw__redis_task_plan plan = {
            .id = id_of(i), .due = START + i, .packed = {packed, (size_t)(end - packed) + size}};
        tw__redis_queue_put(queue, tw__redis_task_new(&plan, &all->memory),
                            tw__redis_route_for(queue, &plan_of[1]), tw__redis_queue_hash(all, plan.id), NULL,
                            START);
    }
    struct tw__redis_queue *copy = copy_through_chunks(queue, &chunks);
    assert_int_equal(chunks, 3);
    assert_queues_equal(queue, copy);
    close_queue(queue);
    close_queue(copy);
    close_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_queue_comes_back_from_its_chunks),
        cmocka_unit_test(reading_a_chunk_twice_changes_nothing_more),
        cmocka_unit_test(a_queue_takes_no_more_bytes_than_is_foretold),
        cmocka_unit_test(leases_take_no_more_bytes_than_is_foretold),
        cmocka_unit_test(a_shared_payload_is_written_once_and_shared_again),
        cmocka_unit_test(many_deaths_take_no_more_bytes_than_is_foretold),
        cmocka_unit_test(a_chunk_is_not_much_larger_than_its_size),
    };
    use_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
