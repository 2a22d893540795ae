/* SPDX-License-Identifier: MIT
 *
 * Changes of attempt states, from one server to another: after each batch of changes the queues on both servers
 * are equal, bytes and order.
 */
#include "copies.h"

#include "tests/support/cmocka.h"
#include "tests/support/random.h"
#include "tests/support/run.h"

#include <src/redis/queues/change.h>
#include <src/redis/queues/check.h>
#include <src/redis/queues/chunk.h>
#include <src/redis/queues/format.h>
#include <src/redis/queues/lease.h>
#include <src/redis/queues/place.h>
#include <src/redis/queues/queue.h>
#include <src/redis/queues/route.h>
#include <stdio.h>

/* ---- two servers ----------------------------------------------------------------------------------------- */

/* The queues of the first server hang on `all`, those of the second on `others`. */
static struct tw__redis_queues *others;
static struct tw__redis_queue *queue, *replica;
static struct tw__redis_buffer changes;
static uint64_t now;

static void open_both(void)
{
    queue = open_one();
    others = tw__redis_queues_new(&counted, NULL, START, 5000);
    assert_non_null(others);
    replica = tw__redis_queue_new(others);
    tw__redis_queue_attach(replica);
    now = START;
}

static void close_both(void)
{
    tw__redis_buffer_free(&changes, &counted);
    close_queue(replica);
    tw__redis_queues_free(others);
    close_one(queue);
}

/* Reads the changes so far on the second server, from a block that is no larger than they are. */
static void replicate(void)
{
    if (changes.size == 0)
        return; /* nothing is logged */
    char *exact = counted_alloc(changes.size);
    memcpy(exact, changes.at, changes.size);
    assert_true(tw__redis_change_read(replica, (struct tw__redis_bytes){exact, changes.size}, now, NULL));
    counted_free(exact);
    tw__redis_buffer_free(&changes, &counted);
}

static void assert_same_bytes(void)
{
    struct tw__redis_chunks one, two;
    struct tw__redis_bytes bytes, others_bytes;
    tw__redis_chunks_init(&one, queue);
    tw__redis_chunks_init(&two, replica);
    bool more;
    do {
        more = tw__redis_chunks_next(&one, &bytes);
        assert_int_equal(tw__redis_chunks_next(&two, &others_bytes), more);
        if (more)
            assert_bytes_equal(bytes, others_bytes);
    } while (more);
    tw__redis_chunks_fini(&one);
    tw__redis_chunks_fini(&two);
}

static void assert_same(void)
{
    replicate();
    assert_queues_equal(queue, replica);
    assert_same_bytes();
    const char *fault = tw__redis_check_all(others);
    if (fault != NULL)
        fail_msg("%s", fault);
    assert_null(tw__redis_check_all(all));
}

/* Puts a task on both servers, as a replicated command does. */
static void put_on(struct tw__redis_queue *one, const struct tw__redis_task_plan *plan,
                   const struct tw__redis_plan *route)
{
    uint64_t hash = tw__redis_queue_hash(one->queues, plan->id);
    struct tw__redis_task *old = tw__redis_queue_find(one, hash, plan->id);
    tw__redis_lease_put(one, tw__redis_task_new(plan, &counted), tw__redis_route_for(one, route), hash, old,
                        now);
}

static void put_on_both(const char *id, unsigned route, uint64_t due, uint64_t every, uint64_t times)
{
    struct tw__redis_task_plan plan = {
        .id = text(id), .due = due, .every = every, .times = times, .packed = text("\1\3job")};
    replicate();
    put_on(queue, &plan, &plan_of[route]);
    put_on(replica, &plan, &plan_of[route]);
}

/* Moves a task on both servers. */
static void move_on_both(const char *id, uint64_t due)
{
    do_move(queue, find(queue, id), due, now, &changes);
    replicate();
}

static struct tw__redis_task *lease(const char *id, uint64_t token)
{
    struct lease its = {.token = token, .ms = 1000, .worker = text("bob")};
    struct tw__redis_task *task = find(queue, id);
    tw__redis_place_unfile(all, task);
    tw__redis_place_offer(all, task, now);
    return begin_lease(queue, task, &its, now, &changes);
}

/* ---- one change after the other -------------------------------------------------------------------------- */

static void each_change_arrives(void **state)
{
    (void)state;
    open_both();
    put_on_both("a", FIRST_OF_WORKERS, START + 5, 0, 1);
    put_on_both("r", FIRST_OF_WORKERS, START + 5, 60000, 3);
    put_on_both("s", 1, START + 5, 60000, TW_FOREVER);
    lease("a", 7);
    lease("r", 8);
    assert_same();
    assert_int_equal(replica->leased_count, 2);
    assert_true(tw__redis_lease_has_token(find(replica, "a"), 7));
    assert_true(tw__redis_task_due(find(replica, "a")) == START + 1000);
    do_extend(queue, find(queue, "a"), 50, true, now + 10, &changes);
    assert_same();
    assert_true(tw__redis_task_attempt(find(replica, "a")).renewed);
    do_fail(queue, find(queue, "a"), false, text("no"), START + 9000, now + 20, &changes);
    assert_same();
    assert_int_equal(replica->leased_count, 1);
    assert_bytes_equal(tw__redis_task_whole_attempt(find(replica, "a")).error, text("no"));
    do_done(queue, find(queue, "r"), now + 30, &changes);
    assert_same();
    assert_true(tw__redis_task_times(find(replica, "r")) == 2);
    assert_true(tw__redis_task_due(find(replica, "r")) == START + 60005);
    assert_false(find(replica, "r")->has_attempt);
    do_kill(queue, find(queue, "s"), 3, text("WRONGTYPE"), now + 40, &changes);
    assert_same();
    assert_int_equal(replica->dead_count, 1);
    assert_true(tw__redis_task_times(find(replica, "s")) == TW_FOREVER);
    do_kill_series(queue, find(queue, "r"), 1, text("too big"), now + 50, &changes);
    assert_same();
    assert_int_equal(tw__redis_task_stage(find(replica, "r")), TW__TASK_BURIED);
    tw__redis_change_put_anew(&changes, all, find(queue, "r"), START + 77);
    tw__redis_queue_begin_anew(queue, find(queue, "r"), START + 77, now + 60);
    assert_same();
    assert_int_equal(replica->dead_count, 1);
    assert_true(tw__redis_task_due(find(replica, "r")) == START + 77);
    lease("a", 9);
    assert_same();
    do_give_back(queue, find(queue, "a"), now + 64, &changes);
    assert_same();
    assert_int_equal(replica->leased_count, 0);
    assert_int_equal(tw__redis_task_attempt(find(replica, "a")).number, 1);
    assert_true(tw__redis_task_attempt(find(replica, "a")).token == 0);
    assert_true(tw__redis_task_due(find(replica, "a")) == START + 64); /* which is before its next attempt */
    put_on_both("b", FIRST_OF_WORKERS, START + 6, 0, 1);
    lease("b", 10);
    assert_same();
    do_give_back(queue, find(queue, "b"), now + 66, &changes);
    assert_same();
    assert_false(find(replica, "b")->has_attempt);
    assert_true(tw__redis_task_due(find(replica, "b")) == START + 6);
    do_done(queue, find(queue, "a"), now + 70, &changes);
    assert_same();
    assert_null(find(replica, "a"));
    close_both();
}

static void the_end_of_a_replaced_attempt_arrives(void **state)
{
    (void)state;
    open_both();
    for (unsigned route = 0; route < 2; route++) {
        unsigned kind = route == 0 ? FIRST_OF_WORKERS : 0;
        put_on_both("a", FIRST_OF_WORKERS, START + 5, 0, 1);
        lease("a", 7);
        put_on_both("a", kind, START + 8000, 0, 1);
        assert_same();
        assert_int_equal(tw__redis_task_stage(find(replica, "a")), TW__TASK_REPLACED);
        assert_true(tw__redis_lease_has_token(find(replica, "a"), 7));
        do_extend(queue, find(queue, "a"), 50, true, now + 10, &changes);
        assert_same();
        move_on_both("a", START + 9000);
        assert_same();
        assert_true(do_end_replaced(queue, find(queue, "a"), START + 60, START + 90, &changes) == START + 9000);
        assert_same();
        assert_false(find(replica, "a")->has_attempt);
        put_on_both("a", FIRST_OF_WORKERS, START + 5, 0, 1);
        lease("a", 8);
        put_on_both("a", kind, START + 5, 0, 1);
        assert_true(do_end_replaced(queue, find(queue, "a"), START + 60, START + 90, &changes) == START + 60);
        assert_same();
        assert_true(tw__redis_task_due(find(replica, "a")) == START + 60);
        assert_true(tw__redis_task_first_due(find(replica, "a")) == START + 5);
        assert_false(tw__redis_lease_has_token(find(replica, "a"), 8));
        tw__redis_lease_remove(queue, find(queue, "a"), &changes);
        replicate();
    }
    close_both();
}

/* A replica may have tries of its own, and has to forget them. */
static void a_task_that_begins_anew_has_no_tries(void **state)
{
    (void)state;
    open_both();
    put_on_both("a", FIRST_OF_WORKERS, START + 5, 60000, 3);
    find(replica, "a")->tries = 5;
    do_done(queue, lease("a", 7), now + 30, &changes);
    assert_same();
    find(replica, "a")->tries = 5;
    tw__redis_change_put_anew(&changes, all, find(queue, "a"), START + 77);
    tw__redis_queue_begin_anew(queue, find(queue, "a"), START + 77, now + 60);
    assert_same();
    close_both();
}

/* The target has refused the first of two tasks of a time. On the other server it is the first of them too, and
 * its call has begun. Plan 2 has a limit of lateness. */
static void a_refusal_arrives_and_changes_no_order(void **state)
{
    struct tw__redis_attempt attempt = {.stage = TW__TASK_FILED,
                                        .due = START + 5,
                                        .has_missed_periods = true,
                                        .worker = text(""),
                                        .error = text("")};
    (void)state;
    open_both();
    put_on_both("a", 2, START + 5, 0, 1);
    put_on_both("b", 2, START + 5, 0, 1);
    tw__redis_change_put(&changes, all, tw__redis_queue_set_attempt(queue, find(queue, "a"), &attempt));
    assert_same();
    assert_true(turn_of(others, find(replica, "a"), START + 9000).calls);
    assert_false(turn_of(others, find(replica, "b"), START + 9000).calls);
    put_on_both("a", 2, START + 7, 0, 1);
    assert_same();
    assert_false(turn_of(others, find(replica, "a"), START + 9000).calls);
    close_both();
}

static void a_change_of_a_task_that_is_not_there_is_no_fit(void **state)
{
    static const char *const ids[] = {"a", "b", "r", "s"};
    (void)state;
    open_both();
    for (unsigned i = 0; i < 4; i++)
        put_on_both(ids[i], FIRST_OF_WORKERS, START + 5, i < 2 ? 0 : 60000, 3);
    for (unsigned i = 0; i < 4; i++)
        tw__redis_queue_remove(replica, find(replica, ids[i]), tw__redis_queue_hash(others, text(ids[i])));
    put_on_both("stays", FIRST_OF_WORKERS, START + 5, 0, 1);
    lease("a", 7);
    lease("b", 8);
    do_done(queue, find(queue, "a"), now, &changes);
    do_kill(queue, lease("r", 9), 5, text("no"), now, &changes);
    do_done(queue, lease("s", 10), now, &changes);
    tw__redis_change_put_anew(&changes, all, find(queue, "s"), START + 77);
    lease("stays", 11);
    struct tw__redis_fault fault;
    assert_false(
        tw__redis_change_read(replica, (struct tw__redis_bytes){changes.at, changes.size}, now, &fault));
    assert_string_equal(fault.misfit, "no task has the id of a change");
    tw__redis_buffer_free(&changes, &counted);
    assert_int_equal(tw__redis_table_count(&replica->tasks), 1);
    assert_int_equal(replica->leased_count, 1);
    assert_null(tw__redis_check_all(others));
    close_both();
}

/* ---- changes that are damaged, or that do not suit the task ---------------------------------------------- */

struct writer {
    char bytes[256], *end;
};

static void number(struct writer *writer, uint64_t value)
{
    if (writer->end == NULL) {
        writer->end = writer->bytes;
        *writer->end++ = TW__REDIS_FORMAT_NUMBER;
    }
    for (; value >= 0x80; value >>= 7)
        *writer->end++ = (char)(value | 0x80);
    *writer->end++ = (char)value;
}

static void string(struct writer *writer, const char *bytes)
{
    number(writer, strlen(bytes));
    memcpy(writer->end, bytes, strlen(bytes));
    writer->end += strlen(bytes);
}

static void attempt(struct writer *writer, uint64_t stage)
{
    number(writer, stage - TW__TASK_FILED);
    number(writer, START);
    number(writer, 7);
    number(writer, 1000);
    number(writer, 1);
    string(writer, "bob");
    string(writer, "no");
}

static bool reads(const struct writer *writer)
{
    struct tw__redis_bytes bytes = {writer->bytes, (size_t)(writer->end - writer->bytes)};
    bool good = tw__redis_change_read(queue, bytes, now, NULL);
    assert_null(tw__redis_check_all(all));
    return good;
}

enum { OF_ATTEMPT = 1, OF_DEAD_COPY, OF_GONE, OF_NEXT, OF_ANEW, OF_BACK, ONE_LAPSE = 8 };

static bool reads_attempt(const char *id, uint64_t time, uint64_t stage)
{
    struct writer writer = {.end = NULL};
    number(&writer, OF_ATTEMPT);
    string(&writer, id);
    number(&writer, time);
    attempt(&writer, stage);
    return reads(&writer);
}

static bool reads_dead_copy(const char *from, const char *id, uint64_t time, uint64_t stage)
{
    struct writer writer = {.end = NULL};
    number(&writer, OF_DEAD_COPY);
    string(&writer, from);
    string(&writer, id);
    number(&writer, time);
    attempt(&writer, stage);
    return reads(&writer);
}

static bool reads_numbers(uint64_t kind, const char *id, uint64_t due, uint64_t times)
{
    struct writer writer = {.end = NULL};
    number(&writer, kind);
    string(&writer, id);
    number(&writer, due);
    if (kind == OF_NEXT)
        number(&writer, times);
    return reads(&writer);
}

static void numbers_out_of_range_are_no_changes(void **state)
{
    const uint64_t last = TW__TASK_TIME_MAX, too_late = last + 1;
    (void)state;
    open_both();
    put_on_both("", FIRST_OF_WORKERS, START + 5, 60000, 3); /* a fault must not be taken for the empty id */
    assert_true(reads_attempt("", last, TW__TASK_TAKEN));
    assert_int_equal(queue->leased_count, 1);
    assert_false(reads_attempt("", too_late, TW__TASK_FILED));
    assert_false(reads_attempt("", START, TW__TASK_REPLACED + ONE_LAPSE)); /* the new task has none */
    assert_true(reads_attempt("", START + 900, TW__TASK_REPLACED));
    assert_int_equal(queue->leased_count, 1);
    assert_false(reads_dead_copy("", "x", too_late, TW__TASK_BURIED));
    assert_false(reads_dead_copy("", "x", START, TW__TASK_TAKEN));
    assert_false(reads_dead_copy("", "x", START, TW__TASK_FILED));
    assert_false(reads_numbers(OF_NEXT, "", too_late, 1));
    assert_false(reads_numbers(OF_NEXT, "", START, UINT64_C(1) << 63));
    assert_false(reads_numbers(OF_ANEW, "", too_late, 0));
    assert_false(reads_numbers(OF_BACK, "", too_late, 0));
    assert_false(reads_numbers(OF_BACK, "", START, 0)); /* it is replaced, and cannot be given back */
    assert_false(reads_numbers(OF_BACK + 1, "", START, 0));
    assert_int_equal(tw__redis_table_count(&queue->tasks), 1);
    assert_int_equal(queue->leased_count, 1);
    assert_true(tw__redis_task_times(find(queue, "")) == 3);
    assert_true(reads_dead_copy("", "x", last, TW__TASK_BURIED));
    assert_int_equal(queue->dead_count, 1);
    assert_true(reads_numbers(OF_NEXT, "", last, INT64_MAX));
    assert_true(tw__redis_task_times(find(queue, "")) == INT64_MAX);
    assert_true(reads_numbers(OF_NEXT, "", START + 9, 0));
    assert_true(tw__redis_task_times(find(queue, "")) == TW_FOREVER);
    assert_true(reads_numbers(OF_ANEW, "", last, 0));
    assert_true(tw__redis_task_due(find(queue, "")) == last);
    close_both();
}

/* As they were written before format 1, without a number, and as another version may write them. */
static void changes_of_another_format_are_refused(void **state)
{
    static const struct {
        struct tw__redis_bytes bytes;
        uint64_t format;
    } others_of[] = {
        {{"\3\1s", 3}, 0},         {{"d\3\1s", 4}, 0}, {{"f\3\1s", 4}, 2},
        {{"\xe5\1\3\1s", 5}, 129}, {{"", 0}, 0},       {{"\x80", 1}, 0},
    };
    (void)state;
    open_both();
    put_on_both("s", 0, START + 5, 0, 1);
    for (size_t i = 0; i < sizeof others_of / sizeof *others_of; i++) {
        assert_int_equal(tw__redis_format_of(others_of[i].bytes), others_of[i].format);
        assert_false(tw__redis_change_read(queue, others_of[i].bytes, now, NULL));
        assert_non_null(find(queue, "s"));
    }
    assert_int_equal(tw__redis_format_of((struct tw__redis_bytes){"e\3\1s", 4}), 1);
    assert_true(tw__redis_change_read(queue, (struct tw__redis_bytes){"e\3\1s", 4}, now, NULL));
    assert_null(find(queue, "s"));
    close_both();
}

/* Only workers have leases and attempts. A chunk with such a task for a target would be refused. */
static void a_task_for_a_target_has_no_attempt_of_its_own(void **state)
{
    (void)state;
    open_both();
    put_on_both("s", 0, START + 5, 0, 1);
    assert_false(reads_attempt("s", START + 900, TW__TASK_TAKEN));
    assert_false(find(queue, "s")->has_attempt);
    assert_false(reads_attempt("s", START + 900, TW__TASK_FILED));
    assert_false(find(queue, "s")->has_attempt);
    assert_true(tw__redis_task_due(find(queue, "s")) == START + 5);
    assert_true(reads_attempt("s", START + 900, TW__TASK_REPLACED));
    assert_int_equal(queue->leased_count, 1);
    assert_true(reads_attempt("s", START + 900, TW__TASK_BURIED));
    assert_int_equal(queue->dead_count, 1);
    assert_false(reads_numbers(OF_NEXT, "s", START + 9, 5)); /* it does not repeat */
    assert_int_equal(queue->dead_count, 1);
    close_both();
}

/* Changes of each form, and the tasks to which they belong. The caller has opened both servers. */
static size_t some_changes(char *into)
{
    put_on_both("a", FIRST_OF_WORKERS, START + 5, 0, 1);
    put_on_both("b", FIRST_OF_WORKERS, START + 6, 0, 1);
    put_on_both("r", FIRST_OF_WORKERS, START + 5, 60000, 3);
    put_on_both("s", 0, START + 5, 0, 1);
    lease("a", 7);
    do_fail(queue, lease("b", UINT64_MAX), false, text("wrong"), START + 600, now, &changes);
    do_kill(queue, lease("r", 9), 5, text("no"), now, &changes);
    do_kill(queue, find(queue, "s"), 3, text("WRONGTYPE"), now, &changes);
    do_done(queue, find(queue, "a"), now, &changes);
    do_give_back(queue, lease("b", 12), now, &changes);
    tw__redis_change_put_anew(&changes, all, find(queue, "b"), START + 77);
    memcpy(into, changes.at, changes.size);
    return changes.size;
}

/* Reads changes into a new queue with the tasks of some_changes(). Even if the bytes are damaged, it is
 * in order afterwards, and comes back from its chunks. */
static bool read_bytes(const char *bytes, size_t size)
{
    static const char *const ids[] = {"a", "b", "r", "s"};
    unsigned chunks;
    struct tw__redis_queue *target = tw__redis_queue_new(others);
    struct tw__redis_task_plan plan = {.packed = text("\2\1f\1v"), .times = 3};
    for (unsigned i = 0; i < 4; i++) {
        plan.id = text(ids[i]);
        plan.due = START + 5;
        plan.every = i == 2 ? 60000 : 0;
        put_on(target, &plan, &plan_of[i == 3 ? 0 : FIRST_OF_WORKERS]);
    }
    char *exact = counted_alloc(size);
    memcpy(exact, bytes, size);
    bool good = tw__redis_change_read(target, (struct tw__redis_bytes){exact, size}, now, NULL);
    counted_free(exact);
    const char *fault = tw__redis_check_all(others);
    if (fault != NULL)
        fail_msg("%s", fault);
    struct tw__redis_queue *copy = copy_through_chunks(target, &chunks);
    assert_queues_equal(target, copy);
    close_queue(copy);
    close_queue(target);
    tw__redis_reaper_run_all(others);
    return good;
}

static void changes_that_were_cut_are_refused_but_between_changes(void **state)
{
    char bytes[1024];
    unsigned whole = 0;
    (void)state;
    open_both();
    size_t size = some_changes(bytes);
    for (size_t cut = 0; cut <= size; cut++)
        whole += read_bytes(bytes, cut);
    assert_int_equal(whole, 11); /* changes, one after the other */
    close_both();
}

static void damaged_changes_leave_a_queue_in_order(void **state)
{
    char bytes[1024];
    unsigned good = 0, refused = 0;
    struct rng rng;
    (void)state;
    open_both();
    size_t size = some_changes(bytes);
    for (size_t at = 0; at < size; at++) {
        char before = bytes[at];
        for (unsigned change = 1; change < 256; change += 1 + change % 3) {
            bytes[at] = (char)((unsigned char)before ^ change);
            *(read_bytes(bytes, size) ? &good : &refused) += 1;
        }
        bytes[at] = before;
    }
    assert_true(good > 100 && refused > 1000);
    rng_init(&rng, run_seed());
    for (unsigned round = run_scaled(16000); round > 0; round--) {
        char damaged[1024];
        memcpy(damaged, bytes, size);
        for (uint64_t times = 1 + rng_below(&rng, 6); times > 0; times--)
            damaged[rng_below(&rng, size)] =
                (char)(rng_below(&rng, 2) ? rng_below(&rng, 6) : rng_next(&rng) & 0xFF);
        read_bytes(damaged, 1 + rng_below(&rng, size));
    }
    close_both();
}

/* ---- random attempts ------------------------------------------------------------------------------------- */

static struct rng random_numbers;

static uint64_t below(uint64_t limit)
{
    return rng_below(&random_numbers, limit);
}

static const char *some_id(void)
{
    static char id[16];
    snprintf(id, sizeof id, "%u", (unsigned)below(40));
    return id;
}

static struct tw__redis_bytes some_error(void)
{
    static const char *const errors[] = {"", "no", "the lease ran out"};
    return text(errors[below(3)]);
}

static void put_some(void)
{
    uint64_t every = below(3) == 0 ? 1 + below(200) : 0, due = now + below(60) - 20;
    if (every > 0 && below(100) == 0)
        due = TW__TASK_TIME_MAX - below(200); /* its next period may be the last one */
    put_on_both(some_id(), (unsigned)(below(3) > 0 ? FIRST_OF_WORKERS + below(2) : below(2)), due, every,
                below(2) == 0 ? TW_FOREVER : 1 + below(3));
}

/* Changes a task that is not ready, as a worker does, or its silence. */
static void do_something(struct tw__redis_task *task)
{
    uint64_t what = below(12), later = now + below(100) - 10;
    enum tw__task_stage stage = tw__redis_task_stage(task);
    bool under_lease = stage == TW__TASK_TAKEN;
    if (stage == TW__TASK_REPLACED && what < 3) {
        do_extend(queue, task, (uint32_t)below(100), below(2) == 0, now, &changes);
    } else if (stage == TW__TASK_REPLACED) {
        do_end_replaced(queue, task, now - below(50), now, &changes);
    } else if (stage == TW__TASK_BURIED || what == 0) {
        tw__redis_change_put_anew(&changes, all, task, later);
        tw__redis_queue_begin_anew(queue, task, later, now);
    } else if (what < 3) {
        do_done(queue, task, now, &changes);
    } else if (what < 5) {
        (what == 3 ? do_kill : do_kill_series)(queue, task, (uint32_t)below(9), some_error(), now, &changes);
    } else if (under_lease && what < 7) {
        do_give_back(queue, task, now, &changes);
    } else if (under_lease && what < 9) {
        do_extend(queue, task, (uint32_t)below(100), below(2) == 0, now, &changes);
    } else if (under_lease) {
        do_fail(queue, task, false, some_error(), later, now, &changes);
    } else if (!tw__redis_task_filed(task)) {
        tw__redis_place_file_late(all, task);
    }
}

static void take_ready_ones(void)
{
    static const char *const workers[] = {"", "ann", "bob"};
    struct tw__redis_task *task = tw__redis_place_first_ready(queue);
    for (uint64_t most = below(4); task != NULL && most > 0; most--) {
        struct lease its = {
            .token = 1 + below(UINT64_MAX), .ms = (uint32_t)below(100), .worker = text(workers[below(3)])};
        begin_lease(queue, task, &its, now, &changes); /* or passes over it */
        task = tw__redis_place_first_ready(queue);
    }
}

static bool waits_for_workers(const struct tw__redis_queues *queues, const struct tw__redis_task *task)
{
    return tw__redis_task_stage(task) == TW__TASK_FILED &&
           tw__redis_route_plan(tw__redis_route_of(queues, task)).kind == TW__REDIS_WORKERS;
}

/* The ticks of both servers. A replica delivers nothing, but it makes tasks ready and keeps late ones. */
static void tick_both(void)
{
    struct tw__redis_task *task;
    uint32_t budget = 1000;
    while (tw__redis_place_take(all, now, TW__REDIS_FROM_ALL, &budget, &task) == TW__REDIS_TAKEN_TASK)
        if (waits_for_workers(all, task))
            tw__redis_place_offer(all, task, now);
        else
            do_something(task);
    while (tw__redis_place_take(others, now, TW__REDIS_FROM_WHEELS, &budget, &task) == TW__REDIS_TAKEN_TASK)
        if (waits_for_workers(others, task))
            tw__redis_place_offer(others, task, now);
        else
            tw__redis_place_file_late(others, task);
}

static void tell_number(void *entry, void *arg)
{
    const struct tw__redis_task *task = entry;
    struct tw__redis_task *same = tw__redis_queue_named(replica, tw__redis_task_id(task));
    (void)arg;
    assert_non_null(same);
    same->order = task->order;
}

/* As assert_same(). Only the order of tasks that became ready here is not told. */
static void assert_same_but_for_the_order_of_equals(void)
{
    replicate();
    tw__redis_table_each(&queue->tasks, tell_number, NULL);
    assert_same();
}

static void whatever_happens_is_told_in_full(void **state)
{
    (void)state;
    rng_init(&random_numbers, run_seed());
    open_both();
    for (unsigned i = run_scaled(40000); i > 0; i--) {
        uint64_t what = below(20);
        const char *id = some_id();
        struct tw__redis_task *task = find(queue, id);
        if (what < 6)
            put_some();
        else if (what < 10 && task != NULL && task->place != TW__REDIS_IN_READY)
            do_something(task);
        else if (what == 10 && task != NULL && task->place != TW__REDIS_IN_READY)
            move_on_both(id, now + below(200) - 50);
        else if (what == 11 && tw__redis_place_first_dead(queue) != NULL)
            do_something(tw__redis_place_first_dead(queue));
        else if (what < 14)
            take_ready_ones();
        else if (what < 18)
            tick_both();
        else
            now += below(30);
        if (below(8) == 0)
            assert_same_but_for_the_order_of_equals();
    }
    assert_same_but_for_the_order_of_equals();
    close_both();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_change_arrives),
        cmocka_unit_test(the_end_of_a_replaced_attempt_arrives),
        cmocka_unit_test(a_task_that_begins_anew_has_no_tries),
        cmocka_unit_test(a_refusal_arrives_and_changes_no_order),
        cmocka_unit_test(a_change_of_a_task_that_is_not_there_is_no_fit),
        cmocka_unit_test(numbers_out_of_range_are_no_changes),
        cmocka_unit_test(changes_of_another_format_are_refused),
        cmocka_unit_test(a_task_for_a_target_has_no_attempt_of_its_own),
        cmocka_unit_test(changes_that_were_cut_are_refused_but_between_changes),
        cmocka_unit_test(damaged_changes_leave_a_queue_in_order),
        cmocka_unit_test(whatever_happens_is_told_in_full),
    };
    use_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
