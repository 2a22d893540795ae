/* SPDX-License-Identifier: MIT
 *
 * Mistakes of the caller of the queues end the program where assertions are compiled in. The assertions do
 * not see these mistakes:
 *   - an entry of a table that changes while it is in the table;
 *   - a table that changes while a caller walks through it;
 *   - bytes that are passed as a whole varint or payload and are not;
 *   - a queue that another thread uses.
 */
#include "fixture.h"

#include "tests/support/cmocka.h"
#include "tests/support/dies.h"

#include <src/redis/queues/change.h>
#include <src/redis/queues/chunk.h>
#include <src/redis/queues/lease.h>
#include <src/redis/queues/look.h>
#include <src/redis/queues/match.h>
#include <src/redis/queues/place.h>
#include <src/redis/queues/queue.h>
#include <src/redis/queues/route.h>
#include <src/redis/queues/share.h>
#include <src/redis/queues/sums.h>

static struct tw__redis_queue *queue;
static struct tw__redis_task *one; /* in the wheel */
static struct tw__redis_task *dead;
static struct tw__redis_buffer changes;

static void *no_memory(size_t size)
{
    (void)size;
    return NULL;
}

static struct tw__redis_task *unfiled(const char *id)
{
    struct tw__redis_task_plan plan = {.id = text(id), .due = START + 1, .packed = text("\1\1p")};
    return tw__redis_task_new(&plan, &counted);
}

static uint64_t hash_of(const char *id)
{
    return tw__redis_queue_hash(all, text(id));
}

static void put(struct tw__redis_task *task, struct tw__redis_queue *to, struct tw__redis_task *old,
                const char *id)
{
    tw__redis_queue_put(to, task, tw__redis_route_for(queue, &plan_of[1]), hash_of(id), old, START);
}

/* ---- tasks and tables ------------------------------------------------------------------------------------ */

static void due_of_a_filed_task(void *arg)
{
    (void)arg;
    tw__redis_task_set_due(one, START);
}

static void times_of_a_task_that_does_not_repeat(void *arg)
{
    (void)arg;
    tw__redis_task_set_times(one, 2);
}

static void a_string_too_many(void *arg)
{
    struct tw__redis_payload payload = tw__redis_task_payload(one);
    (void)arg;
    tw__redis_payload_next(&payload);
    tw__redis_payload_next(&payload);
}

static void insert_twice(void *arg)
{
    (void)arg;
    (void)!tw__redis_table_insert(&queue->tasks, hash_of("one"), unfiled("one"));
}

static void insert_without_memory(void *arg)
{
    (void)arg;
    struct tw__redis_route *route = tw__redis_route_for(queue, &plan_of[2]);
    struct tw__redis_task *task = unfiled("two");
    struct tw__redis_queue *empty = tw__redis_queue_new(all);
    route->queue = empty;
    all->memory.alloc = no_memory;
    tw__redis_queue_put(empty, task, route, hash_of("two"), NULL, START);
}

static void remove_from_a_table_what_is_not_in(void *arg)
{
    (void)arg;
    tw__redis_table_remove(&queue->tasks, hash_of("one"), queue);
}

static void read_a_long_pattern(void *arg)
{
    static char bytes[TW__REDIS_PATTERN_MAX + 1];
    struct tw__redis_pattern pattern;
    (void)arg;
    tw__redis_pattern_read(&pattern, (struct tw__redis_bytes){bytes, sizeof bytes});
}

/* ---- places ---------------------------------------------------------------------------------------------- */

static void file_twice(void *arg)
{
    (void)arg;
    tw__redis_place_file(all, one, START + 9, START);
}

static void file_late_what_is_filed(void *arg)
{
    (void)arg;
    tw__redis_place_file_late(all, one);
}

static void put_back_what_is_filed(void *arg)
{
    (void)arg;
    tw__redis_place_put_back(all, one, TW__REDIS_TAKEN_TASK);
}

static void hold_behind_nobody(void *arg)
{
    (void)arg;
    tw__redis_place_unfile(all, one);
    tw__redis_place_hold(all, one);
}

static void hold_first_what_is_filed(void *arg)
{
    (void)arg;
    tw__redis_place_hold_first(all, one, 6000, START + 1002);
}

static void make_an_empty_line_ready(void *arg)
{
    (void)arg;
    tw__redis_place_make_ready(tw__redis_route_of(all, one));
}

static void set_the_clock_back_to_the_future(void *arg)
{
    (void)arg;
    tw__redis_place_clock_back(all, START + 1);
}

static void offer_what_is_filed(void *arg)
{
    (void)arg;
    tw__redis_place_offer(all, one, START);
}

static void offer_again_what_is_filed(void *arg)
{
    (void)arg;
    tw__redis_place_offer_again(all, one, START);
}

static void stop_without_a_pause(void *arg)
{
    (void)arg;
    tw__redis_place_unfile(all, one);
    tw__redis_place_stop(all, one);
}

static void stop_what_is_filed(void *arg)
{
    (void)arg;
    tw__redis_sums_pause(queue, true);
    tw__redis_place_stop(all, one);
}

static void the_dead_task_after_a_living_one(void *arg)
{
    (void)arg;
    (void)!tw__redis_place_next_dead(queue, one);
}

/* ---- attempts -------------------------------------------------------------------------------------------- */

static void the_attempt_state_of_a_task_without_one(void *arg)
{
    (void)arg;
    (void)tw__redis_task_attempt(one);
}

static void a_new_attempt_state_in_a_task_without_one(void *arg)
{
    struct tw__redis_attempt attempt = {.stage = TW__TASK_FILED};
    (void)arg;
    tw__redis_task_set_attempt(one, &attempt);
}

static void the_change_of_a_task_without_an_attempt_state(void *arg)
{
    (void)arg;
    tw__redis_change_put(&changes, all, one);
}

static void a_new_attempt_state_in_the_line_of_dead_tasks(void *arg)
{
    (void)arg;
    (void)!tw__redis_queue_set_attempt(queue, dead, NULL);
}

static void lease_what_is_not_ready(void *arg)
{
    struct lease lease = {.token = 7, .ms = 5};
    (void)arg;
    (void)!begin_lease(queue, one, &lease, START, &changes);
}

static void lease_without_a_token(void *arg)
{
    struct lease lease = {.ms = 5};
    (void)arg;
    tw__redis_place_unfile(all, one);
    tw__redis_place_offer(all, one, START);
    (void)!begin_lease(queue, one, &lease, START, &changes);
}

static void renew_what_is_not_leased(void *arg)
{
    (void)arg;
    tw__redis_lease_renew(queue, dead, START, &changes);
}

/* ---- shared payloads ------------------------------------------------------------------------------------- */

static void join_a_payload_of_its_own(void *arg)
{
    (void)arg;
    tw__redis_share_join(queue, one);
}

static void leave_a_payload_of_its_own(void *arg)
{
    (void)arg;
    tw__redis_share_leave(queue, one);
}

static void die_with_a_payload_of_its_own(void *arg)
{
    (void)arg;
    tw__redis_share_dead(queue, dead, 1);
}

static void move_with_a_payload_of_its_own(void *arg)
{
    (void)arg;
    tw__redis_share_moved(one, one);
}

static void move_what_is_no_user(void *arg)
{
    (void)arg;
    tw__redis_share_moved(dead, tw__redis_queue_share(queue, one));
}

static void the_address_of_a_payload_of_its_own(void *arg)
{
    (void)arg;
    tw__redis_task_set_share(one, NULL);
}

static void a_dead_period_of_a_task_that_shares_nothing(void *arg)
{
    struct tw__redis_attempt attempt = {.stage = TW__TASK_BURIED, .worker = text(""), .error = text("")};
    (void)arg;
    (void)!tw__redis_change_dead_copy(queue, one, text("two"), &attempt, START);
}

/* ---- broken invariants ----------------------------------------------------------------------------------- */

/* The next call that changes anything sees a broken invariant. */
static void break_places(void *arg)
{
    (void)arg;
    one->place = TW__REDIS_IN_BEHIND;
    put(unfiled("two"), queue, NULL, "two");
}

static void break_sums(void *arg)
{
    (void)arg;
    all->bytes++;
    put(unfiled("two"), queue, NULL, "two");
}

/* ---- routes and queues ----------------------------------------------------------------------------------- */

static void release_a_route_twice(void *arg)
{
    struct tw__redis_route *route = tw__redis_route_for(queue, &plan_of[3]);
    (void)arg;
    tw__redis_route_keep(route);
    tw__redis_route_release(route);
    tw__redis_route_release(route);
}

static void free_routes_of_tasks(void *arg)
{
    (void)arg;
    tw__redis_route_free_all(queue);
}

static void put_a_filed_task(void *arg)
{
    (void)arg;
    put(one, queue, one, "one");
}

static void put_to_a_route_of_another(void *arg)
{
    (void)arg;
    put(unfiled("two"), tw__redis_queue_new(all), NULL, "two");
}

static void put_twice(void *arg)
{
    (void)arg;
    put(unfiled("one"), queue, NULL, "one");
}

static void remove_what_is_not_in(void *arg)
{
    (void)arg;
    tw__redis_queue_remove(queue, unfiled("two"), hash_of("two"));
}

static void free_a_key(void *arg)
{
    (void)arg;
    tw__redis_queue_free(queue);
}

static void reap_a_key(void *arg)
{
    (void)arg;
    tw__redis_reaper_add(queue);
}

static void free_all_with_a_key(void *arg)
{
    (void)arg;
    tw__redis_queues_free(all);
}

/* ---- looking --------------------------------------------------------------------------------------------- */

static void forecast_without_steps(void *arg)
{
    uint64_t counts[1];
    (void)arg;
    tw__redis_look_forecast(queue, START, 1, 0, counts);
}

static void overview_without_steps(void *arg)
{
    uint64_t counts[1];
    (void)arg;
    tw__redis_overview_forecast(all, START, 0, 1, counts);
}

static const struct {
    void (*mistake)(void *arg);
    const char *assertion; /* a part of its text */
} mistakes[] = {
    {due_of_a_filed_task, "!tw__redis_task_filed(task)"},
    {times_of_a_task_that_does_not_repeat, "task->repeats"},
    {a_string_too_many, "payload->count > 0"},
    {insert_twice, "!has_id_of(table, hash, entry)"},
    {insert_without_memory, "result == 0"},
    {remove_from_a_table_what_is_not_in, "at < segment->count"},
    {read_a_long_pattern, "bytes.size <= TW__REDIS_PATTERN_MAX"},
    {file_twice, "!tw__redis_task_filed(task)"},
    {file_late_what_is_filed, "!tw__redis_task_filed(task)"},
    {put_back_what_is_filed, "!tw__redis_task_filed(task)"},
    {hold_behind_nobody, "!tw__list_empty(line)"},
    {hold_first_what_is_filed, "!tw__redis_task_filed(task)"},
    {make_an_empty_line_ready, "!tw__list_empty(&route->line)"},
    {set_the_clock_back_to_the_future, "now_ms < tw_wheel_now(queues->wheel)"},
    {offer_what_is_filed, "!tw__redis_task_filed(task)"},
    {offer_again_what_is_filed, "!tw__redis_task_filed(task)"},
    {stop_without_a_pause, "queue->paused"},
    {stop_what_is_filed, "!tw__redis_task_filed(task)"},
    {the_dead_task_after_a_living_one, "tw__redis_task_stage(task) == TW__TASK_BURIED"},
    {the_attempt_state_of_a_task_without_one, "task->has_attempt"},
    {a_new_attempt_state_in_a_task_without_one, "task->has_attempt"},
    {the_change_of_a_task_without_an_attempt_state, "task->has_attempt"},
    {a_new_attempt_state_in_the_line_of_dead_tasks, "tw__redis_task_stage(task) != TW__TASK_BURIED"},
    {lease_what_is_not_ready, "!takes || (task->place == TW__REDIS_IN_READY && verb->call.token != 0)"},
    {lease_without_a_token, "!takes || (task->place == TW__REDIS_IN_READY && verb->call.token != 0)"},
    {renew_what_is_not_leased, "tw__task_stage_is_leased(attempt.stage)"},
    {join_a_payload_of_its_own, "task->shares"},
    {leave_a_payload_of_its_own, "task->shares"},
    {die_with_a_payload_of_its_own, "task->shares"},
    {move_with_a_payload_of_its_own, "task->shares"},
    {move_what_is_no_user, "at < share->users"},
    {the_address_of_a_payload_of_its_own, "task->shares"},
    {a_dead_period_of_a_task_that_shares_nothing, "from->shares"},
    {break_places, "check(queues) =="},
    {break_sums, "check(queues) =="},
    {release_a_route_twice, "route->tasks > 0"},
    {free_routes_of_tasks, "tw__redis_table_count(&queue->tasks) == 0"},
    {put_a_filed_task, "!tw__redis_task_filed(task)"},
    {put_to_a_route_of_another, "route->queue == queue"},
    {put_twice, "tw__redis_task_id(task)) == old"},
    {remove_what_is_not_in, "tw__redis_task_id(task)) == task"},
    {free_a_key, "!queue->attached"},
    {reap_a_key, "!queue->attached"},
    {free_all_with_a_key, "tw__list_empty(&queues->attached)"},
    {forecast_without_steps, "step > 0 && count > 0"},
    {overview_without_steps, "step > 0 && steps > 0"},
};

static void each_mistake_of_the_caller_is_an_assertion(void **state)
{
    (void)state;
    queue = open_one();
    one = put_one(queue, "one", START + 5, START);
    put_work(queue, "dead", START + 5, START);
    do_kill(queue, find(queue, "dead"), 5, text("no"), START, &changes);
    dead = find(queue, "dead");
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
        assert_dies(mistakes[i].mistake(NULL), mistakes[i].assertion);
    tw__redis_buffer_free(&changes, &counted);
    close_one(queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_mistake_of_the_caller_is_an_assertion)};
    use_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
