/* SPDX-License-Identifier: MIT
 *
 * Counted memory, queues, and ids and tasks to put into them.
 */
#include "fixture.h"

#include "tests/support/cmocka.h"
#include "tests/support/random.h"
#include "tests/support/run.h"

#include <src/redis/queues/queue.h>
#include <src/redis/queues/route.h>
#include <sodium/randombytes.h>
#include <stdlib.h>
#include <task/outcome.h>

/* ---- memory that is counted ------------------------------------------------------------------------------ */

struct block {
    size_t size;
    uint64_t guard;
    char bytes[];
};

#define GUARD UINT64_C(0xB10CB10CB10CB10C)

size_t bytes_out;
long blocks_out;

static struct block *block_of(void *bytes)
{
    struct block *block = (struct block *)(void *)((char *)bytes - offsetof(struct block, bytes));
    assert_true(block->guard == GUARD);
    return block;
}

size_t counted_usable(void *bytes)
{
    return block_of(bytes)->size;
}

void counted_free(void *old)
{
    if (old == NULL)
        return;
    struct block *block = block_of(old);
    bytes_out -= block->size;
    blocks_out--;
    memset(block, 0xEE, sizeof *block + block->size);
    free(block);
}

void *counted_alloc(size_t size)
{
    struct block *block = malloc(sizeof *block + size);
    assert_non_null(block);
    *block = (struct block){.size = size, .guard = GUARD};
    memset(block->bytes, 0xAA, size);
    bytes_out += size;
    blocks_out++;
    return block->bytes;
}

void *counted_realloc(void *old, size_t size)
{
    char *bytes = counted_alloc(size);
    if (old != NULL)
        memcpy(bytes, old, counted_usable(old) < size ? counted_usable(old) : size);
    counted_free(old);
    return bytes;
}

const struct tw__redis_memory counted = {counted_alloc, counted_realloc, counted_free, counted_usable};

/* The strings that routes and queues keep for the server, and give back. */
long targets_out;

void *new_target(void)
{
    targets_out++;
    return counted_alloc(1);
}

static void forget_target(void *target)
{
    targets_out--;
    counted_free(target);
}

/* ---- the start and the end of a test --------------------------------------------------------------------- */

struct tw__redis_queues *all;

void open_all(void)
{
    all = tw__redis_queues_new(&counted, forget_target, START, MONOTONIC);
    assert_non_null(all);
}

void close_queue(struct tw__redis_queue *queue)
{
    tw__redis_queue_detach(queue);
    tw__redis_reaper_add(queue);
}

/* Requires: the reaper has all queues. */
void close_all(void)
{
    tw__redis_reaper_run_all(all);
    assert_false(tw__redis_reaper_busy(all));
    assert_false(tw__redis_place_any_waiting(all));
    assert_int_equal(all->count, 0);
    assert_int_equal(all->tasks, 0);
    assert_int_equal(all->in_line, 0);
    assert_int_equal(all->held, 0);
    assert_int_equal(all->paused, 0);
    assert_int_equal(all->stopped, 0);
    assert_int_equal(all->ready_count, 0);
    assert_int_equal(all->leased_count, 0);
    assert_int_equal(all->dead_count, 0);
    assert_int_equal(all->empty, 0);
    assert_true(all->stale.next == &all->stale && all->awake.next == &all->awake);
    assert_int_equal(all->bytes, 0);
    assert_int_equal(all->dead_bytes, 0);
    assert_int_equal(all->reaping, 0);
    assert_int_equal(tw_wheel_count(all->wheel), 0);
    assert_int_equal(tw_wheel_count(all->leases), 0);
    assert_int_equal(tw_wheel_count(all->retries), 0);
    assert_int_equal(tw_wheel_count(all->deaths), 0);
    tw__redis_queues_free(all);
    assert_int_equal(targets_out, 0);
    assert_int_equal(blocks_out, 0);
    assert_int_equal(bytes_out, 0);
}

/* For a test of one queue, which is attached. */
struct tw__redis_queue *open_one(void)
{
    open_all();
    struct tw__redis_queue *queue = tw__redis_queue_new(all);
    tw__redis_queue_attach(queue);
    return queue;
}

void close_one(struct tw__redis_queue *queue)
{
    close_queue(queue);
    close_all();
}

/* The secret of the tables comes from the seed too, so that a run can be repeated. */
static const char *name_of_bytes(void)
{
    return "seeded";
}

static uint64_t seed;

static void seeded_bytes(void *const bytes, const size_t size)
{
    struct rng rng;
    rng_init(&rng, seed++);
    for (size_t i = 0; i < size; i++)
        ((char *)bytes)[i] = (char)rng_next(&rng);
}

void use_seed(void)
{
    static struct randombytes_implementation seeded = {.implementation_name = name_of_bytes,
                                                       .buf = seeded_bytes};
    seed = run_seed();
    randombytes_set_implementation(&seeded);
}

struct tw__redis_bytes text(const char *string)
{
    return (struct tw__redis_bytes){string, strlen(string)};
}

void assert_bytes_equal(struct tw__redis_bytes a, struct tw__redis_bytes b)
{
    assert_int_equal(a.size, b.size);
    if (a.size > 0)
        assert_memory_equal(a.at, b.at, a.size);
}

/* ---- strings, plans, ids and tasks ----------------------------------------------------------------------- */

/* Strings of many lengths. The number of a string decides its contents. */
char letters[20000];

struct tw__redis_bytes string_of(void *arg, uint32_t i)
{
    static const size_t sizes[] = {0, 1, 127, 128, 16383, 16384, 5};
    unsigned first = *(unsigned *)arg + i;
    return (struct tw__redis_bytes){letters + first % 100, sizes[first % (sizeof sizes / sizeof sizes[0])]};
}

void fill_letters(void)
{
    for (size_t i = 0; i < sizeof letters; i++)
        letters[i] = (char)(i * 7 + i / 256);
}

#define ALWAYS .missed = TW_MISSED_BURST, .max_late_ms = TW_FOREVER

const struct tw__redis_plan plan_of[PLANS] = {
    {.kind = TW__REDIS_STREAM, ALWAYS, .target = {"a", 1}},
    {.kind = TW__REDIS_LIST, ALWAYS, .target = {"a", 1}},
    {.kind = TW__REDIS_STREAM, .missed = TW_MISSED_BURST, .max_late_ms = 500, .target = {"a", 1}},
    {.kind = TW__REDIS_STREAM, .missed = TW_MISSED_BURST, .max_late_ms = 501, .target = {"a", 1}},
    {.kind = TW__REDIS_STREAM,
     .missed = TW_MISSED_COALESCE,
     .max_late_ms = TW_FOREVER,
     .maxlen = 9,
     .target = {"b", 1}},
    {.kind = TW__REDIS_STREAM, ALWAYS, .target = {"", 0}},
    {.kind = TW__REDIS_LIST, ALWAYS, .target = {"b", 1}},
    {.kind = TW__REDIS_LIST_LEFT,
     .missed = TW_MISSED_SKIP,
     .max_late_ms = 0,
     .target = {"b", 1},
     .retry = {.first_ms = 50, .max_ms = 700, .tries = 15, .factor_percent = 300, .jitter = 5}},
    {.kind = TW__REDIS_WORKERS, ALWAYS},
    {.kind = TW__REDIS_WORKERS,
     .missed = TW_MISSED_COALESCE,
     .max_late_ms = 700,
     .retry = {.first_ms = 300, .max_ms = 90000, .tries = 7, .factor_percent = 150, .jitter = 20}},
};

bool strings_suit(uint8_t kind, uint32_t count)
{
    if (kind == TW__REDIS_LIST || kind == TW__REDIS_LIST_LEFT)
        return count == 1;
    return count > 0 && (kind == TW__REDIS_WORKERS || count % 2 == 0);
}

void assert_plans_equal(const struct tw__redis_plan *a, const struct tw__redis_plan *b)
{
    assert_true(a->kind == b->kind && a->missed == b->missed);
    assert_true(a->maxlen == b->maxlen && a->max_late_ms == b->max_late_ms);
    assert_bytes_equal(a->target, b->target);
    assert_true(a->retry.first_ms == b->retry.first_ms && a->retry.max_ms == b->retry.max_ms);
    assert_int_equal(a->retry.tries, b->retry.tries);
    assert_int_equal(a->retry.factor_percent, b->retry.factor_percent);
    assert_int_equal(a->retry.jitter, b->retry.jitter);
}

/* Ids of many lengths, the empty id too. */
struct tw__redis_bytes id_of(unsigned i)
{
    static char id[64];
    memset(id, 'x', sizeof id);
    int digits = snprintf(id, sizeof id, "%u", i);
    id[digits] = 'x';
    return (struct tw__redis_bytes){id, i == 0 ? 0 : (size_t)digits + 1 + i % 40};
}

static struct tw__redis_task *put_plain(struct tw__redis_queue *queue, const char *id, uint64_t due,
                                        const struct tw__redis_plan *route, uint64_t now)
{
    struct tw__redis_task_plan plan = {.id = text(id), .due = due, .packed = text("\1\1p")};
    struct tw__redis_queues *queues = queue->queues;
    struct tw__redis_task *task = tw__redis_task_new(&plan, &queues->memory);
    tw__redis_queue_put(queue, task, tw__redis_route_for(queue, route), tw__redis_queue_hash(queues, text(id)),
                        NULL, now);
    return task;
}

struct tw__redis_task *put_one(struct tw__redis_queue *queue, const char *id, uint64_t due, uint64_t now)
{
    return put_plain(queue, id, due, &plan_of[1], now);
}

struct tw__redis_task *put_work(struct tw__redis_queue *queue, const char *id, uint64_t due, uint64_t now)
{
    return put_plain(queue, id, due, &plan_of[FIRST_OF_WORKERS], now);
}

void assert_take(uint64_t now, enum tw__redis_taken expected, const struct tw__redis_task *wanted)
{
    uint32_t budget = 100;
    struct tw__redis_task *task = NULL;
    assert_int_equal(tw__redis_place_take(all, now, TW__REDIS_FROM_ALL, &budget, &task), expected);
    assert_ptr_equal(task, wanted);
}

void assert_taken(uint64_t now, const struct tw__redis_task *wanted)
{
    assert_take(now, wanted == NULL ? TW__REDIS_TAKEN_NONE : TW__REDIS_TAKEN_TASK, wanted);
}

struct tw__redis_task *find(const struct tw__redis_queue *queue, const char *id)
{
    return tw__redis_queue_named(queue, text(id));
}

void assert_attempts_equal(const struct tw__redis_attempt *a, const struct tw__redis_attempt *b)
{
    assert_int_equal(a->stage, b->stage);
    assert_int_equal(a->renewed, b->renewed);
    assert_true(a->due == b->due);
    assert_true(a->token == b->token);
    assert_int_equal(a->lease_ms, b->lease_ms);
    assert_int_equal(a->number, b->number);
    assert_int_equal(a->lapses, b->lapses);
    assert_int_equal(a->has_next, b->has_next);
    assert_true(!a->has_next || a->next == b->next);
    assert_int_equal(a->has_missed_periods, b->has_missed_periods);
    assert_true(!a->has_missed_periods || a->missed_periods == b->missed_periods);
    assert_bytes_equal(a->worker, b->worker);
    assert_bytes_equal(a->error, b->error);
}

/* ---- verbs ----------------------------------------------------------------------------------------------- */

static const struct tw__task_retry endless = {
    .tries = UINT32_MAX, .factor_percent = 100, .first_ms = 1, .max_ms = 1};

/* Calls a verb with the token of the task. */
static struct tw__redis_task *change(struct tw__redis_queue *of, struct tw__redis_task *task,
                                     struct tw__task_call call, struct tw__redis_bytes said, uint64_t now_ms,
                                     struct tw__redis_buffer *log, struct tw__task_outcome *outcome)
{
    if (call.verb != TW__TASK_TAKE && task->has_attempt)
        call.token = tw__redis_task_attempt(task).token;
    task =
        tw__redis_lease_change(of, task, &(struct tw__redis_verb){call, &endless, said}, now_ms, log, outcome);
    assert_int_not_equal(outcome->reply, TW__TASK_NO);
    return task;
}

struct tw__redis_task *begin_lease(struct tw__redis_queue *of, struct tw__redis_task *task,
                                   const struct lease *lease, uint64_t now_ms, struct tw__redis_buffer *log)
{
    struct tw__task_outcome outcome;
    struct tw__task_call take = {.verb = TW__TASK_TAKE, .token = lease->token, .lease_ms = lease->ms};
    return change(of, task, take, lease->worker, now_ms, log, &outcome);
}

struct tw__task_turn turn_of(const struct tw__redis_queues *queues, const struct tw__redis_task *task,
                             uint64_t now_ms)
{
    struct tw__task numbers = tw__redis_lease_numbers(queues, task);
    struct tw__task_call call = {
        .verb = numbers.has_target ? TW__TASK_DUE : TW__TASK_TAKE, .token = 1, .lease_ms = 1};
    struct tw__task_outcome outcome;
    tw__task_change(&numbers, &call, now_ms > numbers.next_ms ? now_ms : numbers.next_ms, &outcome);
    return (struct tw__task_turn){.due = outcome.task.due_ms,
                                  .dropped = outcome.tally.dropped,
                                  .skipped = outcome.tally.skipped,
                                  .missed_periods = outcome.task.missed_periods,
                                  .calls = outcome.reply == TW__TASK_YES,
                                  .ends = outcome.task.stage == TW__TASK_NONE};
}

void do_pass_over(struct tw__redis_queue *of, struct tw__redis_task *task, uint64_t now_ms,
                  struct tw__redis_buffer *log)
{
    struct tw__task_outcome outcome;
    struct tw__task_call take = {.verb = TW__TASK_TAKE, .token = 1, .lease_ms = 1};
    change(of, task, take, text(""), now_ms, log, &outcome);
    assert_int_equal(outcome.reply, TW__TASK_LATE);
}

void do_move(struct tw__redis_queue *of, struct tw__redis_task *task, uint64_t due_ms, uint64_t now_ms,
             struct tw__redis_buffer *log)
{
    struct tw__task_outcome outcome;
    change(of, task, (struct tw__task_call){.verb = TW__TASK_MOVE, .at_ms = due_ms}, text(""), now_ms, log,
           &outcome);
}

struct tw__redis_task *do_promote(struct tw__redis_queue *of, struct tw__redis_task *task, uint64_t now_ms,
                                  struct tw__redis_buffer *log)
{
    struct tw__task_outcome outcome;
    return change(of, task, (struct tw__task_call){.verb = TW__TASK_PROMOTE}, text(""), now_ms, log, &outcome);
}

void do_extend(struct tw__redis_queue *of, struct tw__redis_task *task, uint32_t ms, bool renewed,
               uint64_t now_ms, struct tw__redis_buffer *log)
{
    struct tw__task_outcome outcome;
    task = change(of, task, (struct tw__task_call){.verb = TW__TASK_TOUCH, .lease_ms = ms}, text(""), now_ms,
                  log, &outcome);
    if (renewed)
        tw__redis_lease_renew(of, task, now_ms, log);
}

void do_fail(struct tw__redis_queue *of, struct tw__redis_task *task, bool lapsed, struct tw__redis_bytes error,
             uint64_t at_ms, uint64_t now_ms, struct tw__redis_buffer *log)
{
    struct tw__task_outcome outcome;
    struct tw__task numbers = tw__redis_lease_numbers(of->queues, task);
    struct tw__task_call call = {.verb = lapsed ? TW__TASK_LAPSE : TW__TASK_FAILED,
                                 .timed = true,
                                 .at_ms = at_ms,
                                 .token = numbers.token};
    numbers.retry = endless;
    tw__task_change(&numbers, &call, now_ms, &outcome);
    assert_int_equal(outcome.reply, TW__TASK_YES);
    outcome.task.next_ms = at_ms;
    tw__redis_lease_settle(of, task, &outcome, error, now_ms, log);
}

struct tw__redis_task *do_give_back(struct tw__redis_queue *of, struct tw__redis_task *task, uint64_t now_ms,
                                    struct tw__redis_buffer *log)
{
    struct tw__task_outcome outcome;
    return change(of, task, (struct tw__task_call){.verb = TW__TASK_BACK}, text(""), now_ms, log, &outcome);
}

void do_put_off(struct tw__redis_queue *of, struct tw__redis_task *task, uint64_t at_ms, uint64_t now_ms,
                struct tw__redis_buffer *log)
{
    struct tw__task_outcome outcome;
    change(of, task, (struct tw__task_call){.verb = TW__TASK_BACK, .timed = true, .at_ms = at_ms}, text(""),
           now_ms, log, &outcome);
}

uint64_t do_end_replaced(struct tw__redis_queue *of, struct tw__redis_task *task, uint64_t end_ms,
                         uint64_t now_ms, struct tw__redis_buffer *log)
{
    struct tw__task_outcome outcome;
    struct tw__task numbers = tw__redis_lease_numbers(of->queues, task);
    struct tw__task_call done = {.verb = TW__TASK_DONE, .token = numbers.token};
    assert_int_equal(numbers.stage, TW__TASK_REPLACED);
    tw__task_change(&numbers, &done, end_ms, &outcome);
    tw__redis_lease_settle(of, task, &outcome, text(""), now_ms, log);
    return outcome.value_ms;
}

struct tw__task_outcome outcome_of_end(struct tw__task numbers, uint64_t now_ms)
{
    struct tw__task_outcome outcome;
    bool delivered = numbers.has_target && numbers.stage == TW__TASK_FILED;
    if (numbers.token == 0)
        numbers.token = 1; /* a lapse has left it */
    struct tw__task_call call = {.verb = delivered ? TW__TASK_DELIVERED : TW__TASK_DONE,
                                 .token = numbers.token};
    tw__task_change(&numbers, &call, now_ms, &outcome);
    assert_int_equal(outcome.reply, TW__TASK_YES);
    return outcome;
}

void do_done(struct tw__redis_queue *of, struct tw__redis_task *task, uint64_t now_ms,
             struct tw__redis_buffer *log)
{
    struct tw__task_outcome outcome = outcome_of_end(tw__redis_lease_numbers(of->queues, task), now_ms);
    tw__redis_lease_settle(of, task, &outcome, text(""), now_ms, log);
}

static void bury(struct tw__redis_queue *of, struct tw__redis_task *task, uint32_t attempts, uint64_t every,
                 struct tw__redis_bytes error, uint64_t now_ms, struct tw__redis_buffer *log)
{
    struct tw__task_outcome outcome = {.task = tw__redis_lease_numbers(of->queues, task)};
    outcome.task.attempt = attempts;
    outcome.task.every_ms = every;
    tw__task_bury(&outcome, now_ms);
    tw__redis_lease_settle(of, task, &outcome, error, now_ms, log);
}

void do_kill(struct tw__redis_queue *of, struct tw__redis_task *task, uint32_t attempts,
             struct tw__redis_bytes error, uint64_t now_ms, struct tw__redis_buffer *log)
{
    bury(of, task, attempts, tw__redis_task_every(task), error, now_ms, log);
}

void do_kill_series(struct tw__redis_queue *of, struct tw__redis_task *task, uint32_t attempts,
                    struct tw__redis_bytes error, uint64_t now_ms, struct tw__redis_buffer *log)
{
    bury(of, task, attempts, 0, error, now_ms, log);
}
