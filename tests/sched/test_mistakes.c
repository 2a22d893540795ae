/* SPDX-License-Identifier: MIT
 *
 * Mistakes of the caller: each "Requires" of sched.h that an assertion can see. The scheduler here is
 * compiled with TW_DEBUG 2. Each child process makes a scheduler of its own, because it must not use its
 * parent's.
 */
#include "tests/support/cmocka.h"
#include "tests/support/dies.h"

#include <src/sched/check.h>
#include <src/sched/pool.h>
#include <stdlib.h>

static const uint64_t ms = 1000000;

static struct tw_sched *sched_of(struct tw_sched_options options)
{
    struct tw_sched *sched = NULL;
    if (tw_sched_new(&sched, &options) != 0)
        _exit(1);
    return sched;
}

static struct tw_sched *virtual_sched(void)
{
    return sched_of((struct tw_sched_options){.clock = TW_SCHED_CLOCK_VIRTUAL});
}

static void nop(struct tw_sched *sched, const struct tw_task *task)
{
    (void)sched, (void)task;
}

static void nop_emit(void *arg, const char *text, size_t length)
{
    (void)arg, (void)text, (void)length;
}

/* ---- no scheduler, or another process's ------------------------------------------------------------------ */

static const struct tw_every every = {.period_ns = 1000000};
static const struct tw_bytes no_bytes = {NULL, 1};

/* The calls with keys. */
static bool make_key_call(struct tw_sched *sched, int n)
{
    struct tw_task task;
    switch (n) {
    case 13:
        tw_sched_key_put_in(sched, tw_text("k"), 1, nop, NULL, NULL);
        return true;
    case 14:
        tw_sched_key_put_at(sched, tw_text("k"), 1, nop, NULL, NULL);
        return true;
    case 15:
        tw_sched_key_put_every(sched, tw_text("k"), &every, nop, NULL, NULL);
        return true;
    case 16:
        tw_sched_key_move_in(sched, tw_text("k"), 1);
        return true;
    case 17:
        tw_sched_key_move_at(sched, tw_text("k"), 1);
        return true;
    case 18:
        tw_sched_key_cancel(sched, tw_text("k"), NULL);
        return true;
    case 19:
        tw_sched_key_get(sched, tw_text("k"), &task, sizeof task);
        return true;
    case 20:
        tw_sched_key_count(sched);
        return true;
    default:
        return false;
    }
}

/* The calls about all tasks. */
static bool make_whole_call(struct tw_sched *sched, int n)
{
    struct tw_sched_info stats;
    uint64_t counts[1];
    switch (n) {
    case 21:
        tw_sched_drain(sched, NULL, NULL, NULL);
        return true;
    case 22:
        tw_sched_stop(sched, 0, NULL, NULL);
        return true;
    case 23:
        tw_sched_advance(sched, 1);
        return true;
    case 24:
        tw_sched_next_bound(sched);
        return true;
    case 25:
        tw_sched_stats(sched, &stats, sizeof stats);
        return true;
    case 26:
        tw_sched_late_percentile(sched, 0.5);
        return true;
    case 27:
        tw_sched_forecast(sched, 1, 1, counts);
        return true;
    case 28:
        tw_sched_prometheus(sched, nop_emit, NULL);
        return true;
    default:
        return make_key_call(sched, n);
    }
}

/* Makes the n-th call of sched.h. Returns false if there are fewer calls. */
static bool make_call(struct tw_sched *sched, int n)
{
    struct tw_task task;
    switch (n) {
    case 0:
        tw_sched_now(sched);
        return true;
    case 1:
        tw_sched_add_in(sched, 1, nop, NULL, NULL);
        return true;
    case 2:
        tw_sched_add_at(sched, 1, nop, NULL, NULL);
        return true;
    case 3:
        tw_sched_add_every(sched, &every, nop, NULL, NULL);
        return true;
    case 4:
        tw_sched_reserve(sched, 1);
        return true;
    case 5:
        tw_sched_cancel(sched, 1);
        return true;
    case 6:
        tw_sched_cancel_wait(sched, 1, NULL);
        return true;
    case 7:
        tw_sched_move_in(sched, 1, 1);
        return true;
    case 8:
        tw_sched_move_at(sched, 1, 1);
        return true;
    case 9:
        tw_sched_get(sched, 1, &task, sizeof task);
        return true;
    case 10:
        tw_sched_run(sched, 1);
        return true;
    case 11:
        tw_sched_run_some(sched, 1);
        return true;
    case 12:
        tw_sched_count(sched);
        return true;
    default:
        return make_whole_call(sched, n);
    }
}

enum { CALLS = 29 };

static void a_call_needs_a_scheduler(void **state)
{
    (void)state;
    for (int n = 0; n < CALLS; n++)
        assert_dies(make_call(NULL, n), "tw__sched_usable(sched)");
    assert_false(make_call(NULL, CALLS));
}

static void a_child_of_fork_must_not_use_its_parents_scheduler(void **state)
{
    (void)state;
    struct tw_sched *sched = virtual_sched();
    for (int n = 0; n < CALLS; n++)
        assert_dies(make_call(sched, n), "tw__sched_usable(sched)");
    assert_dies(tw_sched_free(sched), "tw__sched_usable(sched)");
    for (int n = 0; n < CALLS; n++)
        assert_true(make_call(sched, n));
    tw_sched_free(sched);
}

/* ---- arguments ------------------------------------------------------------------------------------------- */

static void pointers_are_not_null_but_where_a_label_says_so(void **state)
{
    (void)state;
    static const struct tw_sched_options good;
    assert_dies(tw_sched_new(NULL, NULL), "made != ");
    assert_dies(tw_sched_options_check(NULL, NULL, 0), "options != ");
    assert_dies(tw_sched_options_check(&good, NULL, 1), "message != ");
    assert_dies(tw_sched_add_at(virtual_sched(), 1, NULL, NULL, NULL), "fn != ");
    assert_dies(tw_sched_add_in(virtual_sched(), 1, NULL, NULL, NULL), "fn != ");
    assert_dies(tw_sched_add_every(virtual_sched(), &every, NULL, NULL, NULL), "fn != ");
    assert_dies(tw_sched_add_every(virtual_sched(), NULL, nop, NULL, NULL), "every != ");
    assert_dies(tw_sched_get(virtual_sched(), 1, NULL, 0), "seen != ");
    assert_dies(tw_sched_stats(virtual_sched(), NULL, 0), "stats != ");
    assert_dies(tw_sched_forecast(virtual_sched(), 1, 1, NULL), "counts != ");
    assert_dies(tw_sched_prometheus(virtual_sched(), NULL, NULL), "emit != ");
}

static void a_key_of_some_size_has_bytes(void **state)
{
    (void)state;
    struct tw_task task;
    assert_dies(tw_sched_key_put_at(virtual_sched(), no_bytes, 1, nop, NULL, NULL), "key.data != ");
    assert_dies(tw_sched_key_put_in(virtual_sched(), no_bytes, 1, nop, NULL, NULL), "key.data != ");
    assert_dies(tw_sched_key_put_every(virtual_sched(), no_bytes, &every, nop, NULL, NULL), "key.data != ");
    assert_dies(tw_sched_key_put_at(virtual_sched(), tw_text("k"), 1, NULL, NULL, NULL), "fn != ");
    assert_dies(tw_sched_key_put_every(virtual_sched(), tw_text("k"), &every, NULL, NULL, NULL), "fn != ");
    assert_dies(tw_sched_key_put_every(virtual_sched(), tw_text("k"), NULL, nop, NULL, NULL), "every != ");
    assert_dies(tw_sched_key_move_at(virtual_sched(), no_bytes, 1), "key.data != ");
    assert_dies(tw_sched_key_move_in(virtual_sched(), no_bytes, 1), "key.data != ");
    assert_dies(tw_sched_key_cancel(virtual_sched(), no_bytes, NULL), "key.data != ");
    assert_dies(tw_sched_key_get(virtual_sched(), no_bytes, &task, sizeof task), "key.data != ");
    assert_dies(tw_sched_key_get(virtual_sched(), tw_text("k"), NULL, 0), "seen != ");
}

static void ask_for_percentile(double share)
{
    tw_sched_late_percentile(virtual_sched(), share);
}

static void numbers_are_in_their_range(void **state)
{
    (void)state;
    assert_dies(ask_for_percentile(1.1), "share <= 1");
    assert_dies(ask_for_percentile(-0.1), "share >= 0");
    assert_dies(tw_sched_stop(virtual_sched(), 2, NULL, NULL), "TW_SCHED_STOP_NOWAIT");
}

/* ---- freeing and advancing at the wrong time ------------------------------------------------------------- */

static void free_inside(struct tw_sched *sched, const struct tw_task *task)
{
    (void)task;
    tw_sched_free(sched);
}

static void advance_inside(struct tw_sched *sched, const struct tw_task *task)
{
    (void)task;
    tw_sched_advance(sched, 5 * ms);
}

static struct tw_sched *freed;

static void free_in_hook(void *arg, const struct tw_task *task, uint64_t ns)
{
    (void)arg, (void)task, (void)ns;
    tw_sched_free(freed);
}

static void free_in_release(void *arg, void *value)
{
    (void)arg, (void)value;
    tw_sched_free(freed);
}

static void run_one(struct tw_sched *sched, tw_task_fn *fn)
{
    freed = sched;
    tw_sched_add_in(sched, ms / 2, fn, NULL, NULL);
    tw_sched_advance(sched, 2 * ms);
}

static void a_callback_neither_frees_nor_advances_its_scheduler(void **state)
{
    (void)state;
    struct tw_sched_options late = {.clock = TW_SCHED_CLOCK_VIRTUAL, .on_late = free_in_hook};
    struct tw_sched_options release = {.clock = TW_SCHED_CLOCK_VIRTUAL, .release = free_in_release};
    assert_dies(run_one(virtual_sched(), free_inside), "!tw__sched_inside(sched)");
    assert_dies(run_one(virtual_sched(), advance_inside), "!tw__sched_inside(sched)");
    assert_dies(run_one(sched_of(late), nop), "!tw__sched_inside(sched)");
    assert_dies(run_one(sched_of(release), nop), "!tw__sched_inside(sched)");
}

static void advance_in_execute(void *arg, struct tw_sched *sched, uint64_t id)
{
    (void)arg, (void)id;
    tw_sched_advance(sched, 5 * ms);
}

static void free_in_execute(void *arg, struct tw_sched *sched, uint64_t id)
{
    (void)arg, (void)id;
    tw_sched_free(sched);
}

static void one_thread_at_a_time_advances(void **state)
{
    (void)state;
    struct tw_sched_options options = {.clock = TW_SCHED_CLOCK_VIRTUAL, .execute = advance_in_execute};
    assert_dies(run_one(sched_of(options), nop), "!advancing");
    options.execute = free_in_execute;
    assert_dies(run_one(sched_of(options), nop), "!advancing");
}

static void free_in_visit(void *arg, const struct tw_task *task)
{
    (void)task;
    tw_sched_free(arg);
}

static void hand_over(bool stop)
{
    struct tw_sched *sched = virtual_sched();
    tw_sched_add_in(sched, ms, nop, NULL, NULL);
    if (stop)
        tw_sched_stop(sched, 0, free_in_visit, sched);
    else
        tw_sched_drain(sched, free_in_visit, sched, NULL);
}

static void a_visit_does_not_free_the_scheduler(void **state)
{
    (void)state;
    assert_dies(hand_over(false), "guests");
    assert_dies(hand_over(true), "guests");
}

static sem_t runs;

static void run_for_ever(struct tw_sched *sched, const struct tw_task *task)
{
    (void)sched, (void)task;
    sem_post(&runs);
    for (;;)
        pause();
}

static void *wait_for_it(void *arg)
{
    struct tw_task *task = arg;
    tw_sched_cancel_wait(freed, task->id, NULL);
    return NULL;
}

static void free_while_a_thread_waits(void)
{
    pthread_t thread;
    struct tw_task task;
    freed = sched_of((struct tw_sched_options){.workers = 1});
    sem_init(&runs, 0, 0);
    tw_sched_add_in(freed, 0, run_for_ever, NULL, &task.id);
    eventually_posted(&runs);
    pthread_create(&thread, NULL, wait_for_it, &task);
    EVENTUALLY(atomic_load(&freed->guests) > 0);
    tw_sched_free(freed);
}

static void a_scheduler_is_not_freed_while_a_thread_waits_in_it(void **state)
{
    (void)state;
    assert_dies(free_while_a_thread_waits(), "guests");
}

/* ---- under the lock -------------------------------------------------------------------------------------- */

static void *calling_memory(void *arg, void *old, size_t size)
{
    struct tw_sched **sched = arg;
    if (*sched != NULL)
        tw_sched_count(*sched);
    if (old == NULL)
        return malloc(size);
    free(old);
    return NULL;
}

static void call_from_memory(void)
{
    struct tw_sched *sched = NULL;
    struct tw_sched_options options = {
        .clock = TW_SCHED_CLOCK_VIRTUAL, .memory = calling_memory, .memory_arg = &sched};
    if (tw_sched_new(&sched, &options) == 0)
        tw_sched_add_in(sched, ms, nop, NULL, NULL);
}

static void a_source_of_memory_does_not_call_the_scheduler(void **state)
{
    (void)state;
    assert_dies(call_from_memory(), "error == 0");
}

static struct tw_sched *interrupted;

static void call_in_handler(int number)
{
    (void)number;
    tw_sched_add_in(interrupted, ms, nop, NULL, NULL);
}

static void *raising_memory(void *arg, void *old, size_t size)
{
    (void)arg;
    if (interrupted != NULL)
        raise(SIGUSR1);
    if (old == NULL)
        return malloc(size);
    free(old);
    return NULL;
}

/* The signal arrives while this thread holds the lock of the shard. */
static void interrupt_a_call(void)
{
    signal(SIGUSR1, call_in_handler);
    interrupted =
        sched_of((struct tw_sched_options){.clock = TW_SCHED_CLOCK_VIRTUAL, .memory = raising_memory});
    tw_sched_add_in(interrupted, ms, nop, NULL, NULL);
}

static void a_signal_handler_does_not_call_the_scheduler(void **state)
{
    (void)state;
    assert_dies(interrupt_a_call(), "error == 0");
}

static void a_function_that_wants_the_lock_asserts_it(void **state)
{
    (void)state;
    assert_dies(tw__sched_task_take(virtual_sched()->shard[0], TW__SCHED_PLAIN), "tw__sched_locked(shard)");
    assert_dies(tw__sched_shard_check(virtual_sched()->shard[0]), "tw__sched_locked(shard)");
}

static void breach_and_call(void)
{
    struct tw_sched *sched = virtual_sched();
    sched->shard[0]->stats.pending++;
    tw_sched_count(sched);
}

static void the_invariants_are_checked_when_the_lock_is_let_go_of(void **state)
{
    (void)state;
    assert_dies(breach_and_call(), "S3: the counts do not add up");
    assert_dies(breach_and_call(), "tw__sched_sound(shard)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_needs_a_scheduler),
        cmocka_unit_test(a_child_of_fork_must_not_use_its_parents_scheduler),
        cmocka_unit_test(pointers_are_not_null_but_where_a_label_says_so),
        cmocka_unit_test(a_key_of_some_size_has_bytes),
        cmocka_unit_test(numbers_are_in_their_range),
        cmocka_unit_test(a_callback_neither_frees_nor_advances_its_scheduler),
        cmocka_unit_test(one_thread_at_a_time_advances),
        cmocka_unit_test(a_visit_does_not_free_the_scheduler),
        cmocka_unit_test(a_scheduler_is_not_freed_while_a_thread_waits_in_it),
        cmocka_unit_test(a_source_of_memory_does_not_call_the_scheduler),
        cmocka_unit_test(a_signal_handler_does_not_call_the_scheduler),
        cmocka_unit_test(a_function_that_wants_the_lock_asserts_it),
        cmocka_unit_test(the_invariants_are_checked_when_the_lock_is_let_go_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
