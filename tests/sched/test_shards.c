/* SPDX-License-Identifier: MIT
 *
 * Shards and threads: which thread files into which shard, and when a shard is made.
 */
#include "outcome.h"
#include "filer.h"
#include "support.h"

#include <src/sched/pool.h>

#include <dlfcn.h>
#include <stdlib.h>

/* ---- how many shards ------------------------------------------------------------------------------------- */

static void one_thread_pays_for_one_wheel(void **state)
{
    (void)state;
    struct tw_geometry plain = TW_GEOMETRY_DEFAULT;
    static const struct tw_sched_options kinds[] = {
        {.shards = 0}, {.shards = 16}, {.shards = 64, .workers = 2}};
    for (int i = 0; i < 3; i++) {
        struct tw_sched *sched = NULL;
        assert_int_equal(tw_sched_new(&sched, &kinds[i]), 0);
        for (uint64_t k = 0; k < 1000; k++)
            assert_int_equal(tw_sched_add_in(sched, 3600000 * ms, log_call, NULL, NULL), 0);
        assert_true(stats_of(sched).memory < tw_wheel_size(&plain) + 100 * 1024);
        assert_int_equal(tw__sched_made(sched), 1);
        tw_sched_free(sched);
    }
}

static void the_default_is_a_shard_a_processor_and_one_with_a_virtual_clock(void **state)
{
    (void)state;
    struct tw_sched *sched = NULL;
    cpu_set_t processors;
    assert_int_equal(tw_sched_new(&sched, NULL), 0);
    assert_int_equal(sched_getaffinity(0, sizeof processors, &processors), 0);
    int count = CPU_COUNT(&processors);
    assert_int_equal(sched->options.shards, count < 16 ? count : 16);
    tw_sched_free(sched);
    sched = plain_sched();
    assert_int_equal(sched->options.shards, 1);
    tw_sched_free(sched);
}

static void each_thread_beside_the_first_makes_a_shard_while_there_are_some_left(void **state)
{
    (void)state;
    enum { THREADS = 7, SHARDS = 4 };
    static struct filer filer[THREADS];
    struct tw_sched *sched = sched_of((struct tw_sched_options){.shards = SHARDS});
    unsigned filed[SHARDS] = {0};
    assert_int_equal(shard_of_this_thread(sched), 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        come(&filer[i], sched);
        assert_int_equal(filer[i].error, 0);
        assert_int_equal(tw__sched_made(sched), i + 2 < SHARDS ? i + 2 : SHARDS);
        filed[tw__sched_id_shard(filer[i].id)]++;
    }
    for (int i = 1; i < SHARDS; i++)
        assert_int_equal(filed[i], 2); /* and the first shard has one of them beside the main thread */
    for (int i = 0; i < THREADS; i++)
        go(&filer[i]);
    advance(sched, 5 * ms);
    assert_int_equal(calls, THREADS + 1);
    tw_sched_free(sched);
}

static void a_thread_that_ends_gives_its_shard_to_the_next(void **state)
{
    (void)state;
    static struct filer filer[2];
    struct tw_sched *sched = sched_of((struct tw_sched_options){.shards = 8});
    assert_int_equal(shard_of_this_thread(sched), 0);
    for (int round = 0; round < 20; round++) {
        come(&filer[0], sched);
        come(&filer[1], sched);
        assert_int_equal(tw__sched_id_shard(filer[0].id), 1);
        assert_int_equal(tw__sched_id_shard(filer[1].id), 2);
        go(&filer[0]);
        come(&filer[0], sched); /* the lowest number is free again */
        assert_int_equal(tw__sched_id_shard(filer[0].id), 1);
        go(&filer[0]);
        go(&filer[1]);
    }
    assert_int_equal(tw__sched_made(sched), 3);
    assert_int_equal(shard_of_this_thread(sched), 0);
    tw_sched_free(sched);
}

static void the_first_thread_that_files_has_the_first_shard_whatever_its_number(void **state)
{
    (void)state;
    static struct filer filer[3];
    struct tw_sched *first = sched_of((struct tw_sched_options){.shards = 5}), *second;
    shard_of_this_thread(first);
    come(&filer[0], first);
    second = sched_of((struct tw_sched_options){.shards = 5});
    come(&filer[1], second);
    assert_int_equal(tw__sched_id_shard(filer[1].id), 0);
    come(&filer[2], second);
    assert_int_equal(tw__sched_id_shard(filer[2].id), 1);
    assert_int_equal(shard_of_this_thread(second), 2);
    for (int i = 0; i < 3; i++)
        go(&filer[i]);
    tw_sched_free(first);
    tw_sched_free(second);
}

static sem_t called;

static void file_in_callback(struct tw_sched *sched, const struct tw_task *task)
{
    *(uint32_t *)task->arg = shard_of_this_thread(sched);
    sem_post(&called);
}

static void the_timer_thread_files_into_the_first_shard(void **state)
{
    (void)state;
    struct tw_sched *sched = NULL;
    uint32_t shard = 7;
    sem_init(&called, 0, 0);
    calls = 0;
    assert_int_equal(tw_sched_new(&sched, &(struct tw_sched_options){.shards = 4}), 0);
    assert_int_equal(tw_sched_add_in(sched, ms, file_in_callback, &shard, NULL), 0);
    eventually_posted(&called);
    assert_int_equal(shard, 0);
    tw_sched_stop(sched, 0, NULL, NULL);
    assert_int_equal(tw__sched_made(sched), 1);
    tw_sched_free(sched);
    assert_int_equal(tw_sched_new(&sched, &(struct tw_sched_options){.shards = 4, .workers = 1}), 0);
    assert_int_equal(tw_sched_add_in(sched, ms, file_in_callback, &shard, NULL), 0);
    eventually_posted(&called);
    assert_int_equal(shard, 1); /* a worker is a thread like any other */
    tw_sched_free(sched);
    sem_destroy(&called);
}

/* ---- no memory ------------------------------------------------------------------------------------------- */

static void a_thread_for_whose_shard_there_is_no_memory_keeps_the_shard_it_got(void **state)
{
    (void)state;
    static struct filer filer[2];
    requests_left = 1000;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.shards = 2, .memory = scarce_memory});
    assert_int_equal(shard_of_this_thread(sched), 0);
    for (int given = 0; given < 2; given++) { /* no memory for the shard, or for its wheel */
        requests_left = given;
        come(&filer[0], sched);
        requests_left = 1000;
        assert_int_equal(filer[0].error, 0);
        assert_int_equal(tw__sched_id_shard(filer[0].id), 0);
        go(&filer[0]);
        come(&filer[1], sched); /* in the same thread slot */
        assert_int_equal(tw__sched_id_shard(filer[1].id), 0);
        go(&filer[1]);
    }
    assert_int_equal(tw__sched_made(sched), 1);
    assert_int_equal(stats_of(sched).memory, bytes_out);
    tw_sched_free(sched);
    assert_int_equal(bytes_out, 0);
}

static void room_that_one_thread_reserved_serves_every_thread(void **state)
{
    (void)state;
    enum { ROOM = 3000 };
    static struct filer filer;
    requests_left = 100000;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.shards = 3, .memory = scarce_memory});
    assert_int_equal(tw_sched_reserve(sched, ROOM), 0);
    assert_int_equal(tw__sched_made(sched), 1);
    come(&filer, sched); /* has a shard of its own, with memory for 1,024 tasks */
    assert_int_equal(tw__sched_id_shard(filer.id), 1);
    requests_left = 0;
    for (int i = 0; i < 1000; i++) {
        go(&filer);
        come(&filer, sched);
        assert_int_equal(filer.error, 0);
        assert_int_equal(tw__sched_id_shard(filer.id), 1);
    }
    for (int i = 0; i < ROOM; i++)
        assert_int_equal(tw_sched_add_in(sched, ms, log_call, NULL, NULL), 0);
    for (int i = 0; i < 60; i++) { /* 23 have room in their shard, and 37 in the main thread's */
        go(&filer);
        come(&filer, sched);
    }
    assert_int_equal(filer.error, 0);
    assert_int_equal(tw__sched_id_shard(filer.id), 0);
    go(&filer);
    tw_sched_free(sched);
}

/* ---- stopping -------------------------------------------------------------------------------------------- */

static void no_shard_is_made_once_the_scheduler_was_stopped(void **state)
{
    (void)state;
    static struct filer filer;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.shards = 3});
    shard_of_this_thread(sched);
    assert_int_equal(tw_sched_stop(sched, 0, NULL, NULL), 1);
    come(&filer, sched);
    assert_int_equal(filer.error, TW_ESTOPPED);
    go(&filer);
    assert_int_equal(tw__sched_made(sched), 1);
    assert_int_equal(tw_sched_reserve(sched, 10), 0);
    tw_sched_free(sched);
}

struct race {
    struct tw_sched *sched;
    struct meeting start;
    _Atomic uint64_t added;
};

enum { RACED = 10000 }; /* more than a thread files before the stop comes */

static void *file_until_stopped(void *arg)
{
    struct race *race = arg;
    eventually_met(&race->start);
    for (int i = 0; i < RACED && tw_sched_add_in(race->sched, 3600000 * ms, log_call, NULL, NULL) == 0; i++)
        race->added++;
    return NULL;
}

/* Every thread makes its shard while the stop marks the shards that there are. */
static void a_stop_hands_over_the_tasks_of_shards_that_are_just_being_made(void **state)
{
    (void)state;
    enum { THREADS = 4, ROUNDS = TW_DEBUG > 1 ? 20 : 200 };
    for (int round = 0; round < ROUNDS; round++) {
        struct race race = {.start = meeting_of(THREADS + 1)};
        pthread_t thread[THREADS];
        uint64_t stopped = 0;
        assert_int_equal(tw_sched_new(&race.sched, &(struct tw_sched_options){.shards = 8}), 0);
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&thread[i], NULL, file_until_stopped, &race), 0);
        eventually_met(&race.start);
        any_moment((uint64_t)round);
        stopped = tw_sched_stop(race.sched, 0, NULL, NULL);
        for (int i = 0; i < THREADS; i++)
            eventually_joined(thread[i]);
        assert_int_equal(stopped, race.added);
        assert_int_equal(tw_sched_count(race.sched), 0);
        assert_null(tw__sched_check(race.sched));
        tw_sched_free(race.sched);
    }
}

/* ---- a library that is closed ---------------------------------------------------------------------------- */

static const char *library;

/* A thread that files through a library of its own, and ends after the library was closed. */
static void *file_and_outlive(void *arg)
{
    struct filer *filer = arg;
    void *loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(loaded);
    int (*make)(struct tw_sched **, const struct tw_sched_options *);
    int (*after)(struct tw_sched *, uint64_t, tw_task_fn *, void *, uint64_t *);
    void (*end)(struct tw_sched *);
    *(void **)&make = dlsym(loaded, "tw_sched_new");
    *(void **)&after = dlsym(loaded, "tw_sched_add_in");
    *(void **)&end = dlsym(loaded, "tw_sched_free");
    struct tw_sched *sched = NULL;
    assert_int_equal(make(&sched, &(struct tw_sched_options){.shards = 2, .clock = TW_SCHED_CLOCK_VIRTUAL}), 0);
    filer->error = after(sched, ms, log_call, NULL, NULL);
    end(sched);
    assert_int_equal(dlclose(loaded), 0);
    assert_null(dlopen(library, RTLD_NOW | RTLD_NOLOAD)); /* it is gone */
    return NULL;
}

static void a_thread_may_end_after_the_library_was_closed(void **state)
{
    (void)state;
    struct filer filer = {.error = 1};
    if (library == NULL)
        skip();
    assert_int_equal(pthread_create(&filer.thread, NULL, file_and_outlive, &filer), 0);
    eventually_joined(filer.thread);
    assert_int_equal(filer.error, 0);
}

int main(int count, char **words)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread_pays_for_one_wheel),
        cmocka_unit_test(the_default_is_a_shard_a_processor_and_one_with_a_virtual_clock),
        cmocka_unit_test(each_thread_beside_the_first_makes_a_shard_while_there_are_some_left),
        cmocka_unit_test(a_thread_that_ends_gives_its_shard_to_the_next),
        cmocka_unit_test(the_first_thread_that_files_has_the_first_shard_whatever_its_number),
        cmocka_unit_test(the_timer_thread_files_into_the_first_shard),
        cmocka_unit_test(a_thread_for_whose_shard_there_is_no_memory_keeps_the_shard_it_got),
        cmocka_unit_test(room_that_one_thread_reserved_serves_every_thread),
        cmocka_unit_test(no_shard_is_made_once_the_scheduler_was_stopped),
        cmocka_unit_test(a_stop_hands_over_the_tasks_of_shards_that_are_just_being_made),
        cmocka_unit_test(a_thread_may_end_after_the_library_was_closed),
    };
    library = count > 1 ? words[1] : NULL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
