/* SPDX-License-Identifier: MIT
 *
 * Tasks that were put or sent, as the log has them: a chunk, and a large payload beside it. test_keep.c has
 * those that are renewed in their place.
 */
#include "copies.h"
#include "work.h"

#include <src/redis/queues/chunk.h>
#include <src/redis/queues/queue.h>
#include <src/redis/queues/route.h>

/* A task as a command has it. Its strings are short ones, or large ones. */
struct put {
    const char *id;
    unsigned plan; /* in plan_of */
    uint64_t due, every, times;
    uint32_t values;
    bool large;
    const struct tw__redis_attempt *attempt;
};

static struct tw__redis_bytes value_of(void *arg, uint32_t i)
{
    const struct put *put = arg;
    if (put->large)
        return (struct tw__redis_bytes){letters + i, TW__REDIS_CHUNK_PAYLOAD};
    return text(i % 2 == 0 ? "f" : "value");
}

static struct tw__redis_task *make(const struct put *put)
{
    struct tw__redis_task_plan plan = {.id = text(put->id),
                                       .due = put->due,
                                       .every = put->every,
                                       .times = put->every > 0 ? put->times : 1,
                                       .attempt = put->attempt,
                                       .count = put->values,
                                       .string = value_of,
                                       .arg = (void *)(uintptr_t)put};
    return tw__redis_task_new(&plan, &counted);
}

/* The task if its payload stands beside its chunk; NULL if the chunk has it. */
static const struct put *beside_chunk(const struct put *put)
{
    return put->large || put->values > 200 ? put : NULL;
}

/* Puts a task into a queue. Returns its chunk, which the caller frees. */
static struct tw__redis_buffer file(struct tw__redis_queue *into, const struct put *put)
{
    struct tw__redis_buffer chunk = {0};
    struct tw__redis_task *task = make(put);
    struct tw__redis_route *route = tw__redis_route_for(into, &plan_of[put->plan]);
    uint64_t hash = tw__redis_queue_hash(all, text(put->id));
    assert_true(tw__redis_chunk_put(&chunk, task, route) == (beside_chunk(put) != NULL));
    assert_true(tw__redis_chunk_is((struct tw__redis_bytes){chunk.at, chunk.size}));
    tw__redis_lease_put(into, task, route, hash, find(into, put->id), START);
    return chunk;
}

/* Reads the first `size` bytes of a chunk, with the payload of a task beside it, or without one. */
static bool repeat(struct tw__redis_queue *into, const char *chunk, size_t size, const struct put *beside,
                   struct tw__redis_fault *fault)
{
    struct tw__redis_logged logged = {.string = value_of, .arg = (void *)(uintptr_t)beside};
    logged.count = beside == NULL ? 0 : beside->values;
    char *exact = counted_alloc(size); /* so that a sanitizer sees a read past the end */
    if (size > 0)
        memcpy(exact, chunk, size);
    bool good =
        tw__redis_chunk_read(into, (struct tw__redis_bytes){exact, size}, &logged, START, MONOTONIC, fault);
    counted_free(exact);
    return good;
}

/* Puts a task into `queue`, and into another queue as the log says. */
static void file_in_both(struct tw__redis_queue *other, const struct put *put)
{
    struct tw__redis_buffer chunk = file(queue, put);
    assert_true(repeat(other, chunk.at, chunk.size, beside_chunk(put), NULL));
    tw__redis_buffer_free(&chunk, &counted);
    assert_queues_equal(queue, other);
}

static void each_option_comes_back(void **state)
{
    static const uint64_t every[] = {0, 1, 3155760000000}, times[] = {1, INT64_MAX, TW_FOREVER};
    (void)state;
    fill_letters();
    open_work();
    struct tw__redis_queue *other = tw__redis_queue_new(all);
    tw__redis_queue_attach(other);
    for (unsigned plan = 0; plan < PLANS; plan++)
        for (unsigned i = 0; i < 18; i++) {
            char id[16];
            struct put put = {.id = id,
                              .plan = plan,
                              .due = i == 8 ? TW__TASK_TIME_MAX : START - 4 + i,
                              .every = every[i % 3],
                              .times = times[i / 3 % 3],
                              .large = i >= 9,
                              .values = strings_suit(plan_of[plan].kind, 2) ? 2 : 1};
            snprintf(id, sizeof id, "%u.%u", plan, i);
            file_in_both(other, &put);
        }
    file_in_both(other, &(struct put){.id = "", .plan = PLANS - 1, .due = 0, .values = 300});
    file_in_both(other, &(struct put){.id = "0.0", .plan = 1, .due = START + 7, .values = 1}); /* replaces */
    close_queue(other);
    close_work();
}

static void a_new_task_stands_behind_the_attempt(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_queue *other = tw__redis_queue_new(all);
    tw__redis_queue_attach(other);
    for (unsigned attempt = 1; attempt < DEAD_ATTEMPT; attempt++) { /* the leased ones */
        struct put old = {
            .id = "a", .plan = PLANS - 1, .due = START + 900, .every = 5, .times = 3, .values = 1};
        old.attempt = &attempt_of[attempt];
        struct tw__redis_queue *const both[] = {queue, other};
        for (int i = 0; i < 2; i++) {
            uint64_t hash = tw__redis_queue_hash(all, text("a"));
            tw__redis_queue_put(both[i], make(&old), tw__redis_route_for(both[i], &plan_of[PLANS - 1]), hash,
                                find(both[i], "a"), START);
        }
        file_in_both(other, &(struct put){.id = "a", .plan = 0, .due = START + 3, .values = 2});
        assert_int_equal(tw__redis_task_stage(find(other, "a")), TW__TASK_REPLACED);
        assert_true(tw__redis_task_first_due(find(other, "a")) == START + 3);
    }
    close_queue(other);
    close_work();
}

/* KEEPDUE has given the task another time than its due time. */
static const struct tw__redis_attempt kept = {
    .stage = TW__TASK_FILED, .due = START + 5, .worker = {"", 0}, .error = {"", 0}};
static const struct put keeps = {.id = "a", .plan = 1, .due = START + 60, .values = 1, .attempt = &kept};

static void times_that_are_kept_need_the_task_that_had_them(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_fault fault;
    struct tw__redis_queue *other = tw__redis_queue_new(all);
    tw__redis_queue_attach(other);
    struct tw__redis_buffer chunk = file(queue, &keeps);
    assert_false(repeat(other, chunk.at, chunk.size, NULL, &fault));
    assert_string_equal(fault.misfit, "no task with its id has times to keep");
    struct tw__redis_task *old = put_work(other, "a", START + 5, START);
    assert_true(repeat(other, chunk.at, chunk.size, NULL, NULL));
    assert_queues_equal(queue, other);
    old = put_work(other, "b", START + 5, START);
    do_kill(other, old, 1, text("no"), START + 9, &changes);
    tw__redis_buffer_free(&chunk, &counted);
    chunk = file(queue, &(struct put){.id = "b", .plan = 1, .due = START + 60, .values = 1, .attempt = &kept});
    assert_false(repeat(other, chunk.at, chunk.size, NULL, &fault));
    assert_string_equal(fault.misfit, "no task with its id has times to keep");
    tw__redis_buffer_free(&chunk, &counted);
    close_queue(other);
    close_work();
}

/* Nothing is filed by bytes that are no chunk of one new task. */
static void damaged_bytes_are_refused(void **state)
{
    (void)state;
    fill_letters();
    open_work();
    for (int large = 0; large < 2; large++) {
        struct tw__redis_fault fault;
        struct tw__redis_queue *other = tw__redis_queue_new(all);
        struct put put = {.id = "abc", .plan = 7, .due = START + 60, .every = 5, .times = 3, .values = 1};
        put.large = large == 1;
        const struct put two = {.values = 2}, *right = put.large ? &put : NULL,
                         *wrong = put.large ? NULL : &put;
        struct tw__redis_buffer chunk = file(queue, &put);
        for (size_t size = 0; size < chunk.size; size++)
            assert_false(repeat(other, chunk.at, size, right, &fault) || fault.misfit != NULL);
        tw__redis_buffer_put_number(&chunk, 0,
                                    &counted); /* a second task may follow in a queue's chunk alone */
        assert_false(repeat(other, chunk.at, chunk.size, right, &fault) || fault.misfit != NULL);
        chunk.size--;
        assert_false(repeat(other, chunk.at, chunk.size, wrong, &fault) || fault.misfit != NULL);
        assert_false(repeat(other, chunk.at, chunk.size, &two, &fault) ||
                     fault.misfit != NULL); /* for a List */
        struct tw__redis_bytes bytes = {chunk.at, chunk.size};
        assert_false(put.large && tw__redis_chunk_read(other, bytes, NULL, START, MONOTONIC, &fault));
        assert_int_equal(tw__redis_table_count(&other->tasks), 0);
        assert_true(repeat(other, chunk.at, chunk.size, right, &fault));
        tw__redis_buffer_free(&chunk, &counted);
        close_queue(other);
    }
    close_work();
}

/* A put leaves no task that has been taken, or has died. */
static void a_task_that_has_begun_is_no_put(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_fault fault;
    for (unsigned attempt = 0; attempt < ATTEMPTS; attempt++) {
        struct tw__redis_buffer chunk = {0};
        struct put put = {.id = "a", .plan = PLANS - 1, .due = START + 60, .every = 5, .times = 3, .values = 1};
        put.attempt = &attempt_of[attempt];
        struct tw__redis_task *task = make(&put);
        tw__redis_chunk_put(&chunk, task, tw__redis_route_for(queue, &plan_of[put.plan]));
        assert_false(repeat(queue, chunk.at, chunk.size, NULL, &fault) || fault.misfit != NULL);
        tw__redis_buffer_free(&chunk, &counted);
        counted_free(task);
    }
    close_work();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_option_comes_back),
        cmocka_unit_test(a_new_task_stands_behind_the_attempt),
        cmocka_unit_test(times_that_are_kept_need_the_task_that_had_them),
        cmocka_unit_test(damaged_bytes_are_refused),
        cmocka_unit_test(a_task_that_has_begun_is_no_put),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
