/* SPDX-License-Identifier: MIT
 *
 * Copies of queues, the comparison of two queues, and chunks of any bytes.
 */
#include "copies.h"

#include "tests/support/cmocka.h"

#include <src/redis/queues/check.h>
#include <src/redis/queues/chunk.h>
#include <src/redis/queues/look.h>
#include <src/redis/queues/place.h>
#include <src/redis/queues/queue.h>
#include <src/redis/queues/route.h>
#include <src/redis/queues/sums.h>

const struct tw__redis_attempt attempt_of[ATTEMPTS] = {
    {.stage = TW__TASK_FILED, .due = START, .token = UINT64_MAX, .lease_ms = 1, .number = 1},
    {.stage = TW__TASK_TAKEN,
     .due = TW__TASK_TIME_MAX,
     .token = 1,
     .lease_ms = UINT32_MAX,
     .number = 3,
     .lapses = 2,
     .has_next = true,
     .next = 0,
     .has_missed_periods = true,
     .missed_periods = INT64_MAX},
    {.stage = TW__TASK_TAKEN, .renewed = true, .due = START - 1, .token = 7, .lease_ms = 30000, .number = 1},
    {.stage = TW__TASK_REPLACED,
     .renewed = true,
     .due = TW__TASK_TIME_MAX,
     .token = UINT64_MAX,
     .lease_ms = 30000,
     .number = 1},
    {.stage = TW__TASK_BURIED, .due = 0, .lease_ms = 5, .number = TW__REDIS_BEGUN_MAX, .lapses = 17},
};
/* The dead tasks are in the order in which they died, and the counts are those of the tasks. */
void check_dead(const struct tw__redis_queue *queue)
{
    uint64_t before = 0, count = 0;
    const struct tw__redis_task *task = tw__redis_place_first_dead(queue);
    for (; task != NULL; task = tw__redis_place_next_dead(queue, task)) {
        assert_true(tw__redis_task_due(task) >= before);
        before = tw__redis_task_due(task);
        count++;
    }
    assert_int_equal(queue->dead_count, count);
}

void assert_queues_equal(const struct tw__redis_queue *a, const struct tw__redis_queue *b)
{
    assert_int_equal(a->leased_count, b->leased_count);
    assert_int_equal(a->dead_count, b->dead_count);
    check_dead(b);
    struct tw__redis_task **one = tw__redis_look_sorted(a), **two = tw__redis_look_sorted(b);
    assert_int_equal(tw__redis_table_count(&a->tasks), tw__redis_table_count(&b->tasks));
    for (uint64_t i = 0; i < tw__redis_table_count(&a->tasks); i++) {
        struct tw__redis_plan plan = tw__redis_route_plan(tw__redis_route_of(a->queues, one[i])),
                              other = tw__redis_route_plan(tw__redis_route_of(b->queues, two[i]));
        assert_bytes_equal(tw__redis_task_id(one[i]), tw__redis_task_id(two[i]));
        assert_true(tw__redis_task_due(one[i]) == tw__redis_task_due(two[i]));
        assert_true(tw__redis_task_every(one[i]) == tw__redis_task_every(two[i]));
        assert_true(tw__redis_task_times(one[i]) == tw__redis_task_times(two[i]));
        assert_int_equal(tw__redis_place_tries(a->queues, one[i]), tw__redis_place_tries(b->queues, two[i]));
        assert_bytes_equal(tw__redis_task_packed(one[i]), tw__redis_task_packed(two[i]));
        assert_plans_equal(&plan, &other);
        assert_int_equal(one[i]->has_attempt, two[i]->has_attempt);
        if (one[i]->has_attempt) {
            struct tw__redis_attempt attempt = tw__redis_task_whole_attempt(one[i]),
                                     same = tw__redis_task_whole_attempt(two[i]);
            assert_attempts_equal(&attempt, &same);
        }
    }
    counted_free(one);
    counted_free(two);
}

struct tw__redis_queue *copy_through_chunks(const struct tw__redis_queue *queue, unsigned *chunks_made)
{
    struct tw__redis_queue *copy = tw__redis_queue_new(queue->queues);
    struct tw__redis_chunks chunks;
    struct tw__redis_bytes bytes;
    uint64_t before = 0;
    tw__redis_chunks_init(&chunks, queue);
    for (*chunks_made = 0; tw__redis_chunks_next(&chunks, &bytes); ++*chunks_made) {
        char *exact = counted_alloc(bytes.size); /* so that a sanitizer sees a read past the end */
        memcpy(exact, bytes.at, bytes.size);
        bytes.at = exact;
        assert_true(tw__redis_chunk_read(copy, bytes, NULL, START, MONOTONIC, NULL));
        counted_free(exact);
        assert_true(tw__redis_table_count(&copy->tasks) > before);
        assert_true(tw__redis_table_count(&copy->tasks) - before <= 512);
        before = tw__redis_table_count(&copy->tasks);
    }
    tw__redis_chunks_fini(&chunks);
    return copy;
}

/* ---- chunks of any bytes --------------------------------------------------------------------------------- */

/* Only workers have attempts. A task for a target may stand behind one, wait since its end, or be dead. */
static void check_attempt(const struct tw__redis_task *task, uint8_t kind)
{
    if (!task->has_attempt)
        return;
    struct tw__redis_attempt attempt = tw__redis_task_whole_attempt(task);
    assert_true(attempt.stage <= TW__TASK_REPLACED && attempt.due <= TW__TASK_TIME_MAX);
    assert_true(attempt.lapses <= attempt.number && attempt.lapses <= TW__REDIS_LAPSES_LAST);
    assert_true(!attempt.has_next || (attempt.stage == TW__TASK_TAKEN && attempt.next <= TW__TASK_TIME_MAX));
    assert_true(attempt.stage != TW__TASK_REPLACED || (attempt.number > 0 && attempt.lapses == 0));
    assert_true(!attempt.has_missed_periods || (tw__redis_attempt_suits(&attempt, tw__redis_task_every(task)) &&
                                                attempt.missed_periods <= INT64_MAX));
    assert_true(!attempt.has_missed_periods || attempt.stage == TW__TASK_FILED ||
                attempt.stage == TW__TASK_TAKEN);
    if (kind == TW__REDIS_WORKERS)
        return;
    assert_int_not_equal(attempt.stage, TW__TASK_TAKEN);
    assert_true(attempt.stage != TW__TASK_FILED || (attempt.number == 0 && attempt.token == 0));
}

static uint64_t most(enum tw__task_number number)
{
    return tw__task_range(number).most;
}

void check_what_was_read(struct tw__redis_queue *queue, bool good)
{
    unsigned chunks;
    struct tw__redis_task **task = tw__redis_look_sorted(queue);
    uint64_t count = tw__redis_table_count(&queue->tasks);
    for (uint64_t i = 0; i < count; i++) {
        struct tw__redis_plan plan = tw__redis_route_plan(tw__redis_route_of(all, task[i]));
        uint64_t times = tw__redis_task_times(task[i]);
        uint32_t strings = tw__redis_task_payload(task[i]).count;
        assert_true(plan.kind <= TW__REDIS_WORKERS);
        assert_true(plan.missed <= TW_MISSED_BURST);
        assert_true(plan.retry.tries <= most(TW__TASK_IN_TRIES));
        assert_true(plan.retry.factor_percent <= most(TW__TASK_IN_FACTOR));
        assert_true(plan.retry.first_ms <= most(TW__TASK_IN_BACKOFF));
        assert_true(plan.retry.max_ms <= most(TW__TASK_IN_BACKOFF_MAX));
        assert_true(plan.retry.jitter <= TW__REDIS_JITTER_OPEN);
        assert_true(plan.maxlen <= INT64_MAX);
        assert_true(most(TW__TASK_IN_MAX_LATE) >= plan.max_late_ms || plan.max_late_ms == TW_FOREVER);
        assert_true(tw__redis_task_due(task[i]) <= TW__TASK_TIME_MAX);
        assert_true(tw__redis_task_every(task[i]) <= most(TW__TASK_IN_EVERY));
        assert_true(times > 0 && (times <= INT64_MAX || times == TW_FOREVER));
        assert_true((tw__redis_task_every(task[i]) > 0) == task[i]->repeats);
        assert_true(strings_suit(plan.kind, strings));
        assert_true(tw__redis_payload_valid(tw__redis_task_packed(task[i])));
        assert_true(tw__redis_task_filed(task[i]));
        check_attempt(task[i], plan.kind);
    }
    counted_free(task);
    assert_true(tw__redis_route_count(queue) <= count);
    assert_null(tw__redis_check_all(all));
    if (!good || count == 0)
        return;
    struct tw__redis_queue *copy = copy_through_chunks(queue, &chunks);
    assert_int_equal(chunks, (count + TW__REDIS_CHUNK_TASKS - 1) / TW__REDIS_CHUNK_TASKS);
    assert_queues_equal(queue, copy);
    assert_int_equal(tw__redis_route_count(queue), tw__redis_route_count(copy));
    close_queue(copy);
}

static struct tw__redis_bytes some_string(void *arg, uint32_t i)
{
    (void)arg;
    return text(i % 2 == 0 ? "f" : "v");
}

void read_logged(const char *bytes, size_t size, uint32_t strings)
{
    struct tw__redis_queue *queue = tw__redis_queue_new(all);
    struct tw__redis_logged logged = {.count = strings, .string = some_string};
    char *exact = counted_alloc(size);
    if (size > 0)
        memcpy(exact, bytes, size);
    struct tw__redis_bytes chunk = {exact, size};
    tw__redis_chunk_read(queue, chunk, NULL, START, MONOTONIC, NULL);
    tw__redis_chunk_read(queue, chunk, &logged, START, MONOTONIC, NULL);
    logged.renews = true;
    tw__redis_chunk_read(queue, chunk, &logged, START, MONOTONIC, NULL);
    counted_free(exact);
    check_what_was_read(queue, false);
    close_queue(queue);
    tw__redis_reaper_run_all(all);
    assert_int_equal(blocks_out, 1 + (all->route != NULL));
}

int read_chunk(const char *bytes, size_t size)
{
    struct tw__redis_queue *queue = tw__redis_queue_new(all);
    char *exact = counted_alloc(size);
    if (size > 0)
        memcpy(exact, bytes, size);
    bool good =
        tw__redis_chunk_read(queue, (struct tw__redis_bytes){exact, size}, NULL, START, MONOTONIC, NULL);
    counted_free(exact);
    int count = (int)tw__redis_table_count(&queue->tasks);
    check_what_was_read(queue, good);
    check_dead(queue);
    close_queue(queue);
    tw__redis_reaper_run_all(all);
    assert_int_equal(all->reaping, 0);
    assert_int_equal(blocks_out, 1 + (all->route != NULL));
    return good ? count : -1;
}
