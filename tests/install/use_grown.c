/* SPDX-License-Identifier: MIT
 *
 * A program whose headers and library are of different versions: see test_grown. It uses each public struct to
 * its last member. With GROWN its headers are newer than the library, and each struct has a member `grown`.
 *
 *     use_grown SCENARIO
 */
#include "tests/support/eventually.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tickwheel/loop.h>
#include <tickwheel/store.h>

#define CHECK(condition) ((condition) ? (void)0 : (fprintf(stderr, "%d: %s\n", __LINE__, #condition), exit(1)))

/* ---- the layout of this version -------------------------------------------------------------------------- */

#if UINTPTR_MAX == UINT64_MAX
/* Frozen by name: a program embeds them, or has arrays of them. */
_Static_assert(sizeof(struct tw__link) == 16 && offsetof(struct tw__link, prev) == 8, "the list link");
_Static_assert(sizeof(struct tw_bytes) == 16 && offsetof(struct tw_bytes, size) == 8, "bytes");
_Static_assert(sizeof(struct tw_store_name) == 24 && offsetof(struct tw_store_name, id) == 8, "a name");
_Static_assert(sizeof(struct tw_timer) == 32 && offsetof(struct tw_timer, deadline) == 16, "the timer");
_Static_assert(offsetof(struct tw_timer, hint) == 24, "the timer");
_Static_assert(sizeof(struct tw_level) == 16 && offsetof(struct tw_level, span) == 8, "the level");
_Static_assert(sizeof(struct tw_geometry) == 1032 && offsetof(struct tw_geometry, level) == 8, "the geometry");
_Static_assert(offsetof(struct tw_geometry, overflow) == 4, "the geometry");

/* The caller fills them in: their sizes stay, and new members take the places of reserved ones. */
#define SIZE(name, last, at, size)                                                                             \
    _Static_assert(offsetof(struct name, last) == (at) && sizeof(struct name) == (size),                       \
                   "a member before " #last " of " #name ", or another size")
SIZE(tw_sched_options, release_of, 128, 200);
SIZE(tw_every, missed, 32, 56);
SIZE(tw_store_options, max_payload, 16, 56);
SIZE(tw_store_delayed, max_late_ms, 104, 144);
SIZE(tw_store_change, found, 164, 184);
SIZE(tw_store_range, count, 32, 56);
SIZE(tw_store_run_options, arg, 40, 80);
SIZE(tw_loop_options, arg, 24, 64);
SIZE(tw_loop_driver, lingers, 24, 64);
SIZE(tw_executor_driver, close, 16, 56);

/* The library fills them in, or shows them: they grow at their ends. */
#define LAST(name, last, at)                                                                                   \
    _Static_assert(offsetof(struct name, last) == (at), "a member before " #last " of " #name)
LAST(tw_sched_info, clock, 152);
LAST(tw_task, key, 72);
LAST(tw_level_info, draining, 32);
LAST(tw_store_info, began_ms, 128);
LAST(tw_store_task, error, 176);
LAST(tw_store_load, tasks, 56);
LAST(tw_job, token, 112);
#endif

/* ---- what the library fills in --------------------------------------------------------------------------- */

#ifdef GROWN
#define CHECK_GROWN(name) CHECK(name.grown == 0)
#else
#define CHECK_GROWN(name) ((void)0)
#endif

/* A struct of the caller with bytes behind it, which have to stay as they are. */
#define GUARDED(type)                                                                                          \
    struct {                                                                                                   \
        type it;                                                                                               \
        unsigned char behind[64];                                                                              \
    }

static void guard(void *whole, size_t size)
{
    memset(whole, 0xa5, size);
}

static void check_guard(const unsigned char *behind, size_t size)
{
    for (size_t i = 0; i < size; i++)
        CHECK(behind[i] == 0xa5);
}

static void level_info(void)
{
    GUARDED(struct tw_level_info) mine;
    struct tw_geometry geometry = TW_GEOMETRY_DEFAULT;
    struct tw_timer timer = {0};
    struct tw_wheel *wheel;
    CHECK(tw_wheel_new(&wheel, &geometry, 0) == 0);
    CHECK(tw_wheel_add_at(wheel, &timer, 700) == 0);
    guard(&mine, sizeof mine);
    tw_wheel_level(wheel, 0, &mine.it, sizeof mine.it);
    CHECK(mine.it.slots == 1024 && mine.it.span == 1 && mine.it.occupied == 1 && mine.it.filed == 1);
    CHECK(mine.it.draining == 0);
    CHECK_GROWN(mine.it);
    check_guard(mine.behind, sizeof mine.behind);
    tw_wheel_free(wheel);
}

static int runs, ends;

static void count_run(struct tw_sched *sched, const struct tw_task *task)
{
    (void)sched, (void)task;
    runs++;
}

static void count_other(struct tw_sched *sched, const struct tw_task *task)
{
    count_run(sched, task);
}

static void sched_stats(void)
{
    GUARDED(struct tw_sched_info) mine;
    struct tw_sched *sched;
    CHECK(tw_sched_new(&sched, NULL) == 0);
    CHECK(tw_sched_add_in(sched, TW_HOUR(1), count_run, NULL, NULL) == 0);
    guard(&mine, sizeof mine);
    tw_sched_stats(sched, &mine.it, sizeof mine.it);
    CHECK(mine.it.pending == 1 && mine.it.keys == 0 && mine.it.added == 1 && mine.it.memory > 0);
    CHECK(mine.it.clock == TW_SCHED_CLOCK_BOOTTIME || mine.it.clock == TW_SCHED_CLOCK_MONOTONIC);
    CHECK_GROWN(mine.it);
    check_guard(mine.behind, sizeof mine.behind);
    tw_sched_free(sched);
}

static void check_task(const struct tw_task *task, void *arg)
{
    CHECK(task->id != 0 && task->fn == count_run && task->arg == arg && task->period_ns == 0);
}

static void take_task(void *arg, const struct tw_task *task)
{
    check_task(task, arg);
    CHECK(task->key.size == 3 && memcmp(task->key.data, "key", 3) == 0);
    ends++;
}

static void task(void)
{
    GUARDED(struct tw_task) mine;
    struct tw_sched *sched;
    CHECK(tw_sched_new(&sched, NULL) == 0);
    CHECK(tw_sched_key_put_in(sched, tw_text("key"), TW_HOUR(1), count_run, &mine, NULL) == 0);
    guard(&mine, sizeof mine);
    CHECK(tw_sched_key_get(sched, tw_text("key"), &mine.it, sizeof mine.it) == 0);
    check_task(&mine.it, &mine);
    CHECK(mine.it.key.data == NULL && mine.it.key.size == 0);
    CHECK_GROWN(mine.it);
    check_guard(mine.behind, sizeof mine.behind);
    CHECK(tw_sched_stop(sched, 0, take_task, &mine) == 1 && ends == 1);
    tw_sched_free(sched);
}

/* ---- what the caller fills in: the scheduler ------------------------------------------------------------- */

static void count_end(void *arg, void *value)
{
    CHECK(arg == &ends && value == &runs);
    ends++;
}

/* A newer program sets the new member of its struct. An older library has to refuse it. */
#ifdef GROWN
#define REFUSED(struct_, call)                                                                                 \
    do {                                                                                                       \
        (struct_).grown = 77;                                                                                  \
        CHECK((call) == TW_EINVAL);                                                                            \
        (struct_).grown = 0;                                                                                   \
    } while (0)
#else
#define REFUSED(struct_, call) ((void)(struct_))
#endif

static struct tw_sched *standing(void)
{
    struct tw_sched_options options = {.clock = TW_SCHED_CLOCK_VIRTUAL,
                                       .start_ns = TW_SEC(5),
                                       .max_pending = 2,
                                       .hook_arg = &ends,
                                       .release = count_end,
                                       .release_of = count_run};
    struct tw_sched *sched;
    REFUSED(options, tw_sched_new(&sched, &options));
#ifdef GROWN
    char message[200];
    options.grown = 77;
    CHECK(tw_sched_options_check(&options, message, sizeof message) == TW_EINVAL);
    CHECK(strstr(message, "reserved[0] is 77: expected 0") != NULL);
    options.grown = 0;
#endif
    CHECK(tw_sched_new(&sched, &options) == 0);
    return sched;
}

static void sched_options(void)
{
    struct tw_sched *sched = standing();
    uint64_t first, second;
    CHECK(tw_sched_now(sched) == TW_SEC(5));
    CHECK(tw_sched_add_in(sched, 1, count_run, &runs, &first) == 0);
    CHECK(tw_sched_add_in(sched, 1, count_other, &runs, &second) == 0);
    CHECK(tw_sched_add_in(sched, 1, count_run, &runs, NULL) == TW_EFULL);
    CHECK(tw_sched_cancel(sched, first) == TW_CANCEL_CANCELLED && ends == 1);
    CHECK(tw_sched_cancel(sched, second) == TW_CANCEL_CANCELLED && ends == 1);
    tw_sched_free(sched);
}

static void every(void)
{
    struct tw_every each = {.at_ns = TW_SEC(2), .period_ns = TW_SEC(1), .times = 9, .missed = TW_MISSED_BURST};
    struct tw_sched *sched;
    CHECK(tw_sched_new(&sched, &(struct tw_sched_options){.clock = TW_SCHED_CLOCK_VIRTUAL}) == 0);
    CHECK(tw_sched_advance(sched, TW_SEC(4)) == 0);
    REFUSED(each, tw_sched_add_every(sched, &each, count_run, NULL, NULL));
    CHECK(tw_sched_add_every(sched, &each, count_run, NULL, NULL) == 0);
    CHECK(tw_sched_advance(sched, TW_SEC(5)) == 0);
    CHECK(runs == 4); /* of the seconds 2, 3, 4 and 5 */
    tw_sched_free(sched);
}

/* ---- what the caller fills in: loops --------------------------------------------------------------------- */

static uint64_t armed_ns;

static int arm(void *arg, uint64_t at_ns, uint64_t now_ns)
{
    (void)now_ns;
    CHECK(arg == &armed_ns);
    armed_ns = at_ns;
    return 0;
}

static void close_driver(void *arg)
{
    CHECK(arg == &armed_ns);
    ends++;
}

static uint64_t seven_seconds(void *arg)
{
    CHECK(arg == &armed_ns);
    return TW_SEC(7);
}

static void due(void *arg, struct tw_timer *timer)
{
    (void)timer;
    CHECK(arg == &runs);
    runs++;
}

static void loop(void)
{
    struct tw_loop_options options = {.tick_ns = TW_SEC(1), .budget = 3, .due = due, .arg = &runs};
    struct tw_loop_driver driver = {.arm = arm, .close = close_driver, .now = seven_seconds, .lingers = true};
    struct tw_geometry geometry = TW_GEOMETRY_DEFAULT;
    struct tw_timer timer = {0};
    struct tw_wheel *wheel;
    struct tw_loop *made;
    CHECK(tw_wheel_new(&wheel, &geometry, 0) == 0);
    REFUSED(options, tw_loop_new(&made, wheel, &options, &driver, &armed_ns));
    REFUSED(driver, tw_loop_new(&made, wheel, &options, &driver, &armed_ns));
    CHECK(tw_loop_new(&made, wheel, &options, &driver, &armed_ns) == 0);
    CHECK(tw_loop_now(made) == TW_SEC(7));
    CHECK(tw_loop_add_in(made, &timer, TW_SEC(2)) == 0);
    CHECK(armed_ns == TW_SEC(9));
    CHECK(tw_loop_cancel(made, &timer));
    CHECK(armed_ns == UINT64_MAX); /* because it lingers */
    tw_loop_free(made);
    CHECK(ends == 1);
    tw_wheel_free(wheel);
}

static void wake(void *arg)
{
    CHECK(arg == &armed_ns);
    armed_ns = 1;
}

static void clear(void *arg)
{
    CHECK(arg == &armed_ns);
    armed_ns = 0;
}

static void executor(void)
{
    struct tw_sched_options options = {.clock = TW_SCHED_CLOCK_VIRTUAL};
    struct tw_executor_driver driver = {.wake = wake, .clear = clear, .close = close_driver};
    struct tw_executor *made;
    struct tw_sched *sched;
    REFUSED(driver, tw_executor_new(&made, 0, &driver, &armed_ns));
    CHECK(tw_executor_new(&made, 0, &driver, &armed_ns) == 0);
    CHECK(tw_executor_hook(made, &options) == 0);
    CHECK(tw_sched_new(&sched, &options) == 0);
    CHECK(tw_sched_add_in(sched, 1, count_run, NULL, NULL) == 0);
    CHECK(tw_sched_advance(sched, TW_SEC(1)) == 0);
    CHECK(armed_ns == 1 && runs == 0);
    tw_executor_turn(made);
    CHECK(armed_ns == 0 && runs == 1);
    tw_sched_free(sched);
    tw_executor_free(made);
    CHECK(ends == 1);
}

/* ---- the store ------------------------------------------------------------------------------------------- */

static char text[TW_STORE_MESSAGE_SIZE];

static struct tw_store *opened(void)
{
    struct tw_store *store;
    CHECK(tw_store_open(&store, "grown.db", NULL, text, sizeof text) == 0);
    return store;
}

static struct tw_store_delayed delayed(const char *id)
{
    return (struct tw_store_delayed){.queue = "q", .id = {id, 1}, .due_ms = 5, .payload = tw_text("p")};
}

static void store_options(void)
{
    struct tw_store_options options = {.busy_ms = 10, .max_payload = 2};
    struct tw_store *store;
    REFUSED(options, tw_store_open(&store, "grown.db", &options, text, sizeof text));
    CHECK(tw_store_open(&store, "grown.db", &options, text, sizeof text) == 0);
    struct tw_store_delayed put = delayed("a");
    put.payload = (struct tw_bytes){"long", 2};
    CHECK(tw_store_put(store, &put, 0, NULL) == 0);
    put.payload.size = 3;
    CHECK(tw_store_put(store, &put, 0, NULL) == TW_EINVAL);
    tw_store_close(store);
}

static void see_task(void *arg, const struct tw_store_task *task)
{
    CHECK(strcmp(task->queue, "q") == 0 && task->id.size == 1 && memcmp(task->id.data, "a", 1) == 0);
    CHECK(task->state == TW_STATE_READY && task->due_ms == 5 && task->tries == 7 && task->max_late_ms == 9);
    CHECK(task->payload.size == 1 && memcmp(task->payload.data, "p", 1) == 0 && task->error == NULL);
    ++*(int *)arg;
}

static void put(void)
{
    struct tw_store *store = opened();
    struct tw_store_delayed one = delayed("a");
    one.tries = 7;
    one.max_late_ms = 9;
    REFUSED(one, tw_store_put(store, &one, 0, NULL));
    CHECK(tw_store_put(store, &one, 0, NULL) == 0);
    CHECK(tw_store_get(store, tw_store_named("q", "a"), see_task, &runs) == 0 && runs == 1);
    tw_store_close(store);
}

static void count_task(void *arg, const struct tw_store_task *task)
{
    (void)task;
    ++*(int *)arg;
}

/* Two changes, because an array has to have the same stride in both. */
static void change(void)
{
    struct tw_store *store = opened();
    struct tw_store_change changes[2] = {{.task = delayed("a")},
                                         {.task = delayed("b"), .conditions = TW_CONDITION_XX}};
    REFUSED(changes[1], tw_store_apply(store, changes, 2));
    REFUSED(changes[1].task, tw_store_apply(store, changes, 2));
    CHECK(tw_store_apply(store, changes, 2) == 0);
    CHECK(changes[0].made && !changes[1].made);
    changes[1].conditions = TW_CONDITION_NX;
    CHECK(tw_store_apply(store, changes, 2) == 0 && changes[1].result == 0 && changes[1].made);
    uint64_t count;
    CHECK(tw_store_count(store, "q", false, &count) == 0 && count == 2);
    tw_store_close(store);
}

static void range(void)
{
    struct tw_store *store = opened();
    struct tw_store_range some = {.count = 1};
    struct tw_store_delayed a = delayed("a"), b = delayed("b");
    CHECK(tw_store_put(store, &a, 0, NULL) == 0 && tw_store_put(store, &b, 0, NULL) == 0);
    REFUSED(some, tw_store_scan(store, "q", &some, count_task, &runs));
    CHECK(tw_store_scan(store, "q", &some, count_task, &runs) == 0 && runs == 1);
    tw_store_close(store);
}

static void see_load(void *arg, const struct tw_store_load *load)
{
    CHECK(strcmp(load->queue, "q") == 0 && load->ready == 1 && load->leased == 0 && load->paused);
    ++*(int *)arg;
}

static void load(void)
{
    struct tw_store *store = opened();
    struct tw_store_delayed a = delayed("a");
    CHECK(tw_store_put(store, &a, 0, NULL) == 0 && tw_store_pause(store, "q", NULL) == 0);
    CHECK(tw_store_loads(store, "q", see_load, &runs) == 0 && runs == 1);
    tw_store_close(store);
}

static sem_t told;

static enum tw_answer handle(void *arg, struct tw_job *job)
{
    CHECK(arg == &runs && strcmp(job->queue, "q") == 0 && memcmp(job->id.data, "a", 1) == 0 &&
          job->id.size == 1);
    CHECK(job->payload.size == 1 && job->due_ms == 5 && job->attempt == 1 && job->error == NULL);
    CHECK(job->late_from_ms > 5); /* it was filed later than it was due */
    CHECK(job->token > 0);
    return TW_ANSWER_DEAD;
}

static void tell(void *arg, int error, const char *message)
{
    (void)message;
    CHECK(arg == &told && error == TW_EDEAD);
    sem_post(&told);
}

static void run(void)
{
    GUARDED(struct tw_store_info) mine;
    struct tw_store *store = opened();
    struct tw_store_run_options options = {.workers = 1, .on_error = tell, .arg = &told};
    struct tw_store_delayed a = delayed("a");
    CHECK(sem_init(&told, 0, 0) == 0);
    CHECK(tw_store_put(store, &a, 0, NULL) == 0);
    CHECK(tw_store_handle(store, "q", 0, handle, &runs) == 0);
    REFUSED(options, tw_store_start(store, &options));
    CHECK(tw_store_start(store, &options) == 0);
    eventually_posted(&told);
    guard(&mine, sizeof mine);
    tw_store_stats(store, &mine.it, sizeof mine.it);
    CHECK(mine.it.running && mine.it.taken == 1 && mine.it.done == 0 && mine.it.began_ms > 5);
    CHECK_GROWN(mine.it);
    check_guard(mine.behind, sizeof mine.behind);
    CHECK(tw_store_stop(store) == 0);
    tw_store_close(store);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*play)(void);
    } all[] = {{"level_info", level_info},
               {"sched_stats", sched_stats},
               {"task", task},
               {"sched_options", sched_options},
               {"every", every},
               {"loop", loop},
               {"executor", executor},
               {"store_options", store_options},
               {"put", put},
               {"change", change},
               {"range", range},
               {"load", load},
               {"run", run}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (argc > 1 && strcmp(argv[1], all[i].name) == 0)
            return all[i].play(), 0;
    for (size_t i = 0; argc == 1 && i < sizeof all / sizeof all[0]; i++)
        puts(all[i].name);
    return argc > 1;
}
