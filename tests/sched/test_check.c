/* SPDX-License-Identifier: MIT
 *
 * A checker that never complains proves nothing. So each test breaks an invariant of the scheduler on
 * purpose, and the checker must name that invariant.
 */
#include "support.h"

#include <src/sched/lock.h>
#include <src/sched/pool.h>

/* A scheduler with tasks in every place, and its shard. */
struct busy {
    struct tw_sched *sched;
    struct tw__sched_shard *shard;
    struct tw__sched_task *pending, *ready, *loose, *keyed;
};

static struct tw__sched_task *task_of(const struct busy *busy, uint64_t id)
{
    return tw__sched_task_at(&busy->shard->lines[TW__SCHED_PLAIN],
                             (uint32_t)id & ((1u << TW__SCHED_INDEX_BITS) - 1));
}

static struct busy busy_sched(void)
{
    struct busy busy = {.sched = lazy_sched()};
    uint64_t id[4];
    busy.shard = busy.sched->shard[0];
    for (int i = 0; i < 2; i++) { /* the executor will have two tasks */
        tw_sched_add_in(busy.sched, ms, log_call, NULL, &id[1]);
        tw_sched_add_in(busy.sched, 1000 * ms, log_call, NULL, &id[0]);
    }
    tw_sched_key_put_in(busy.sched, tw_text("key"), 900 * ms, log_call, NULL, NULL);
    advance(busy.sched, 5 * ms);
    tw_sched_add_in(busy.sched, 1000 * ms, log_call, NULL, &id[2]);
    tw_sched_cancel(busy.sched, id[2]);
    busy.pending = task_of(&busy, id[0]);
    busy.ready = task_of(&busy, id[1]);
    busy.loose = task_of(&busy, id[2]);
    busy.keyed = tw__sched_task_at(&busy.shard->lines[TW__SCHED_KEYED], 0);
    assert_null(tw__sched_check(busy.sched));
    return busy;
}

/* Makes a breach in an object and expects the check to name the invariant. Then takes the breach back and
 * expects no complaint. */
#define EXPECT_BROKEN(busy, number, object, breach)                                                            \
    do {                                                                                                       \
        __typeof__(object) before_ = (object);                                                                 \
        breach;                                                                                                \
        expect_named((busy).sched, number);                                                                    \
        (object) = before_;                                                                                    \
        assert_null(tw__sched_check((busy).sched));                                                            \
    } while (0)

static void expect_named(const struct tw_sched *sched, const char *number)
{
    const char *broken = tw__sched_check(sched);
    assert_non_null(broken);
    assert_memory_equal(broken, number, strlen(number));
}

static void s1_a_task_that_is_not_where_its_state_says_is_named(void **state)
{
    (void)state;
    struct busy busy = busy_sched();
    EXPECT_BROKEN(busy, "S1", *busy.pending, busy.pending->state = TW__SCHED_READY);
    EXPECT_BROKEN(busy, "S1", *busy.ready, busy.ready->state = TW__SCHED_PENDING);
    EXPECT_BROKEN(busy, "S1", *busy.ready, busy.ready->state = TW__SCHED_RUNNING);
    EXPECT_BROKEN(busy, "S1", *busy.ready, busy.ready->state = TW__SCHED_FREE);
    for (int kind = 0; kind < TW__SCHED_KINDS; kind++) {
        const struct tw__sched_lines *lines = &busy.shard->lines[kind];
        struct tw__sched_task *unused = tw__sched_task_at(lines, lines->free);
        EXPECT_BROKEN(busy, "S1", *unused, unused->state = TW__SCHED_READY);
        EXPECT_BROKEN(busy, "S1", unused->next_free, unused->next_free = TW__SCHED_NONE - 1);
        EXPECT_BROKEN(busy, "S1", unused->next_free,
                      unused->next_free = (kind == TW__SCHED_KEYED ? busy.keyed : busy.ready)->index);
    }
    tw_sched_free(busy.sched);
}

/* Returns the free task whose link is the one to the line `next`. */
static struct tw__sched_task *free_before(const struct tw__sched_lines *lines, uint32_t next)
{
    struct tw__sched_task *task = tw__sched_task_at(lines, lines->free);
    while (task->next_free != next)
        task = tw__sched_task_at(lines, task->next_free);
    return task;
}

static void s1_broken_lists_are_named(void **state)
{
    (void)state;
    struct busy busy = busy_sched();
    EXPECT_BROKEN(busy, "S1", busy.ready->link.prev, busy.ready->link.prev = NULL);
    EXPECT_BROKEN(busy, "S1", busy.shard->sent.next, busy.shard->sent.next = &busy.ready->link);
    EXPECT_BROKEN(busy, "S1", busy.shard->aside.next, busy.shard->aside.next = NULL);
    EXPECT_BROKEN(busy, "S1", busy.shard->busy.prev, busy.shard->busy.prev = NULL);
    for (int kind = 0; kind < TW__SCHED_KINDS; kind++) {
        struct tw__sched_lines *lines = &busy.shard->lines[kind];
        EXPECT_BROKEN(busy, "S1", lines->room, lines->room = lines->room + 1);
        EXPECT_BROKEN(busy, "S1", lines->room, lines->room = lines->room - 1);
        EXPECT_BROKEN(busy, "S1", lines->free, lines->free = TW__SCHED_NONE);
    }
    tw_sched_free(busy.sched);
}

static void s1_a_free_list_without_an_end_is_named(void **state)
{
    (void)state;
    struct busy busy = busy_sched();
    for (int kind = 0; kind < TW__SCHED_KINDS; kind++) {
        const struct tw__sched_lines *lines = &busy.shard->lines[kind];
        struct tw__sched_task *last = free_before(lines, TW__SCHED_NONE);
        EXPECT_BROKEN(busy, "S1", last->next_free, last->next_free = lines->free);
    }
    tw_sched_free(busy.sched);
}

/* A callback: its task is RUNNING while it breaks the invariants. */
static void break_inside(struct tw_sched *sched, const struct tw_task *task)
{
    struct busy busy = {.sched = sched, .shard = sched->shard[0]};
    struct tw__sched_task *self = task_of(&busy, task->id);
    const struct tw__sched_lines *lines = &busy.shard->lines[TW__SCHED_PLAIN];
    struct tw__sched_task *last = free_before(lines, TW__SCHED_NONE);
    struct tw__sched_task *before = free_before(lines, last->index);
    log_call(sched, task);
    EXPECT_BROKEN(busy, "S1", *self, self->state = TW__SCHED_READY);
    self->next_free = TW__SCHED_NONE; /* a RUNNING task does not use its place; the list keeps its length */
    EXPECT_BROKEN(busy, "S1", before->next_free, before->next_free = self->index);
    EXPECT_BROKEN(busy, "S1", tw__sched_call_linked(busy.shard->busy.next)->task,
                  tw__sched_call_linked(busy.shard->busy.next)->task =
                      tw__sched_task_at(&busy.shard->lines[0], busy.shard->lines[0].free));
    EXPECT_BROKEN(busy, "S1", busy.shard->busy,
                  busy.shard->busy = ((struct tw__link){&busy.shard->busy, &busy.shard->busy}));
    EXPECT_BROKEN(busy, "S3", busy.shard->stats.running, busy.shard->stats.running = 0);
}

static void s1_a_call_of_no_running_task_is_named(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    tw_sched_add_in(sched, ms, break_inside, NULL, NULL);
    advance(sched, 2 * ms);
    assert_int_equal(calls, 1);
    tw_sched_free(sched);
}

static void s2_a_task_that_its_id_does_not_find_is_named(void **state)
{
    (void)state;
    struct busy busy = busy_sched();
    EXPECT_BROKEN(busy, "S2", *busy.pending, busy.pending->index = busy.ready->index);
    EXPECT_BROKEN(busy, "S2", *busy.pending, busy.pending->keyed = 1);
    EXPECT_BROKEN(busy, "S2", *busy.keyed, busy.keyed->keyed = 0);
    tw_sched_free(busy.sched);
}

static void s2_a_task_that_its_key_does_not_find_is_named(void **state)
{
    (void)state;
    struct busy busy = busy_sched();
    struct tw__sched_slot *slot = tw__sched_task_slot(busy.shard, busy.keyed);
    EXPECT_BROKEN(busy, "S2", slot->tag, slot->tag = slot->tag + 1);
    EXPECT_BROKEN(busy, "S2", *slot, slot->size = 0);
    EXPECT_BROKEN(busy, "S2", *slot, slot->size = TW_SCHED_KEY_MAX + 1);
    EXPECT_BROKEN(busy, "S2", slot[1], slot[1].size = 3); /* of a line that is free */
    EXPECT_BROKEN(busy, "S2", busy.shard->stats.keys, busy.shard->stats.keys = 0);
    atomic_store(&busy.sched->legacy_keys, 1); /* with one shard there is none */
    expect_named(busy.sched, "S2");
    atomic_store(&busy.sched->legacy_keys, 0);
    atomic_store(&busy.sched->hashes.shard[0], 2); /* as if the key lived in the second shard */
    atomic_store(&busy.sched->wide, true);
    expect_named(busy.sched, "S2");
    atomic_store(&busy.sched->hashes.shard[0], 1);
    EXPECT_BROKEN(busy, "S2", busy.shard->table, busy.shard->table = ((struct tw__sched_table){NULL}));
    tw_sched_free(busy.sched);
}

static void s3_counts_that_do_not_add_up_are_named(void **state)
{
    (void)state;
    struct busy busy = busy_sched();
    struct tw_sched_info *stats = &busy.shard->stats;
    EXPECT_BROKEN(busy, "S3", stats->pending, stats->pending = stats->pending + 1);
    EXPECT_BROKEN(busy, "S3", stats->running, stats->running = 1);
    EXPECT_BROKEN(busy, "S3", stats->added, stats->added = stats->added + 1);
    EXPECT_BROKEN(busy, "S3", stats->again, stats->again = 1);
    EXPECT_BROKEN(busy, "S3", stats->fired, stats->fired = 1);
    EXPECT_BROKEN(busy, "S3", stats->cancelled, stats->cancelled = 0);
    EXPECT_BROKEN(busy, "S3", stats->handed, stats->handed = 1);
    tw_sched_free(busy.sched);
}

static void s4_a_task_that_would_be_overslept_is_named(void **state)
{
    (void)state;
    struct busy busy = busy_sched();
    tw_sched_next_bound(busy.sched); /* takes the cancelled task out of the wheel */
    EXPECT_BROKEN(busy, "S4", busy.shard->wake, busy.shard->wake = 901);
    tw_sched_free(busy.sched);
}

static void s5_a_call_after_the_stop_is_named(void **state)
{
    (void)state;
    struct busy busy = busy_sched();
    tw_sched_stop(busy.sched, 0, NULL, NULL);
    struct tw_sched_info more = busy.shard->stats;
    more.fired++;
    more.added++;
    EXPECT_BROKEN(busy, "S5", busy.shard->stats, busy.shard->stats = more);
    tw_sched_free(busy.sched);
}

static void s6_a_cancelled_task_that_would_be_seen_is_named(void **state)
{
    (void)state;
    struct busy busy = busy_sched();
    EXPECT_BROKEN(busy, "S6", busy.shard->any_loose, busy.shard->any_loose = false);
    EXPECT_BROKEN(busy, "S6", *busy.loose, busy.loose->state = TW__SCHED_PENDING);
    EXPECT_BROKEN(busy, "S1", busy.shard->loose[1], busy.shard->loose[1] = busy.loose);
    tw_sched_free(busy.sched);
}

static void s7_a_task_that_would_start_out_of_order_is_named(void **state)
{
    (void)state;
    struct busy busy = busy_sched();
    assert_int_equal(atomic_load(&busy.shard->sent_tick), 1);
    EXPECT_BROKEN(busy, "S7", *busy.ready, busy.ready->tick = 0); /* the last of two tasks of tick 1 */
    struct tw__sched_task *first = tw__sched_task_linked(busy.shard->sent.next);
    EXPECT_BROKEN(busy, "S7", *first, first->tick = 2);
    atomic_store(&busy.shard->sent_tick, TW_NEVER);
    expect_named(busy.sched, "S7");
    atomic_store(&busy.shard->sent_tick, 1);
    atomic_store(&busy.shard->ready_tick, 1);
    expect_named(busy.sched, "S7");
    tw_sched_stop(busy.sched, 0, NULL, NULL); /* no task may start any more */
    assert_int_equal(atomic_load(&busy.shard->sent_tick), TW_NEVER);
    assert_null(tw__sched_check(busy.sched));
    tw_sched_free(busy.sched);
}

static void the_assertion_says_which(void **state)
{
    (void)state;
    struct busy busy = busy_sched();
    tw__sched_lock(busy.shard);
    assert_true(tw__sched_expect_sound(busy.shard));
    busy.shard->stats.pending++;
    assert_false(tw__sched_expect_sound(busy.shard));
    busy.shard->stats.pending--;
    tw__sched_unlock(busy.shard);
    tw_sched_free(busy.sched);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(s1_a_task_that_is_not_where_its_state_says_is_named),
        cmocka_unit_test(s1_broken_lists_are_named),
        cmocka_unit_test(s1_a_free_list_without_an_end_is_named),
        cmocka_unit_test(s1_a_call_of_no_running_task_is_named),
        cmocka_unit_test(s2_a_task_that_its_id_does_not_find_is_named),
        cmocka_unit_test(s2_a_task_that_its_key_does_not_find_is_named),
        cmocka_unit_test(s3_counts_that_do_not_add_up_are_named),
        cmocka_unit_test(s4_a_task_that_would_be_overslept_is_named),
        cmocka_unit_test(s5_a_call_after_the_stop_is_named),
        cmocka_unit_test(s6_a_cancelled_task_that_would_be_seen_is_named),
        cmocka_unit_test(s7_a_task_that_would_start_out_of_order_is_named),
        cmocka_unit_test(the_assertion_says_which),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
