/* SPDX-License-Identifier: MIT
 *
 * The numbers of threads, which decide into which shard a thread files: who gets one, and who gives one back.
 */
#include "filer.h"
#include "support.h"

#include <stdlib.h>
#include <unistd.h>

/* Whether the call under way on this thread shall find no memory for a value of the thread. The sanitizers keep
 * values of threads too, and theirs are not refused. */
static _Thread_local bool no_word_of_the_end;
int __real_pthread_setspecific(pthread_key_t key, const void *value);
int __wrap_pthread_setspecific(pthread_key_t key, const void *value);
int __wrap_pthread_setspecific(pthread_key_t key, const void *value)
{
    return no_word_of_the_end ? 12 /* ENOMEM */ : __real_pthread_setspecific(key, value);
}

static void refuse_word(bool begins)
{
    no_word_of_the_end = begins;
}

static void more_threads_than_there_are_numbers_share_a_shard(void **state)
{
    (void)state;
    enum { NUMBERS = 1024, MANY = NUMBERS + 6 };
    struct filer *filer = calloc(MANY, sizeof *filer);
    struct tw_sched *sched = sched_of((struct tw_sched_options){.shards = 64});
    for (int i = 0; i < MANY; i++) {
        come(&filer[i], sched);
        assert_int_equal(filer[i].error, 0);
        if (i >= NUMBERS) /* these share number 0 */
            assert_int_equal(tw__sched_id_shard(filer[i].id), tw__sched_id_shard(filer[0].id));
    }
    for (int i = 0; i < MANY; i++)
        go(&filer[i]);
    free(filer);
    assert_int_equal(tw__sched_made(sched), 64);
    advance(sched, 5 * ms);
    assert_int_equal(calls, MANY);
    tw_sched_free(sched);
}

static void a_thread_whose_end_would_not_be_heard_shares_its_number(void **state)
{
    (void)state;
    static struct filer filer[3];
    struct tw_sched *sched = sched_of((struct tw_sched_options){.shards = 8});
    shard_of_this_thread(sched);
    filer[0].around = refuse_word;
    come(&filer[0], sched);
    come(&filer[1], sched);
    assert_int_equal(tw__sched_id_shard(filer[0].id), 1);
    assert_int_equal(tw__sched_id_shard(filer[1].id), 1);
    go(&filer[0]); /* gives back nothing */
    come(&filer[2], sched);
    assert_int_equal(tw__sched_id_shard(filer[2].id), 2);
    go(&filer[1]);
    go(&filer[2]);
    tw_sched_free(sched);
}

static void file_in_child(void)
{
    static struct filer filer;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.shards = 4});
    if (shard_of_this_thread(sched) != 0)
        _exit(1);
    come(&filer, sched);
    if (tw__sched_id_shard(filer.id) != 1)
        _exit(2);
    go(&filer);
    tw_sched_free(sched);
    _exit(0);
}

static void a_child_of_fork_files_in_a_scheduler_of_its_own(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0)
        file_in_child();
    assert_int_equal(eventually_exited(child), 0);
}

/* ---- threads that file elsewhere, and threads that end -------------------------------------------------- */

static void threads_that_file_elsewhere_take_no_shard(void **state)
{
    (void)state;
    static struct filer elsewhere[3], second;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.shards = 4});
    struct tw_sched *other = sched_of((struct tw_sched_options){.shards = 4});
    assert_int_equal(shard_of_this_thread(sched), 0);
    for (int i = 0; i < 3; i++)
        come(&elsewhere[i], other);
    come(&second, sched);
    assert_int_equal(tw__sched_id_shard(second.id), 1);
    assert_int_equal(tw__sched_made(sched), 2);
    go(&second);
    for (int i = 0; i < 3; i++)
        go(&elsewhere[i]);
    tw_sched_free(other);
    tw_sched_free(sched);
}

static pthread_key_t ending;
static struct tw_sched *filed_into;
static uint32_t shard_at_the_end;
static _Thread_local int rounds; /* destructors of this thread that have filed */

static void file_at_the_end(bool begins)
{
    if (!begins)
        pthread_setspecific(ending, &ending);
}

/* Files a task at the end of a thread, and once more in each further round of destructors. */
static void file_while_ending(void *arg)
{
    shard_at_the_end = shard_of_this_thread(filed_into);
    if (++rounds < 3)
        pthread_setspecific(ending, arg);
}

static void a_thread_that_files_while_it_ends_keeps_its_shard(void **state)
{
    (void)state;
    enum { THREADS = 1100 };
    static struct filer filer[2];
    struct tw_sched *sched = filed_into = sched_of((struct tw_sched_options){.shards = 4});
    assert_int_equal(pthread_key_create(&ending, file_while_ending), 0);
    assert_int_equal(shard_of_this_thread(sched), 0);
    for (int i = 0; i < THREADS; i++) { /* more than there are numbers: each is given back */
        filer[0].around = NULL;
        filer[1].around = file_at_the_end;
        come(&filer[0], sched);
        come(&filer[1], sched);
        assert_int_equal(tw__sched_id_shard(filer[1].id), 2);
        go(&filer[0]); /* a lower number than that of the thread that ends is free now */
        go(&filer[1]);
        assert_int_equal(shard_at_the_end, 2);
    }
    pthread_key_delete(ending);
    tw_sched_free(sched);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_threads_than_there_are_numbers_share_a_shard),
        cmocka_unit_test(a_thread_whose_end_would_not_be_heard_shares_its_number),
        cmocka_unit_test(a_child_of_fork_files_in_a_scheduler_of_its_own),
        cmocka_unit_test(threads_that_file_elsewhere_take_no_shard),
        cmocka_unit_test(a_thread_that_files_while_it_ends_keeps_its_shard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
