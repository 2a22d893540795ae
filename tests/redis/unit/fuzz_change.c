/* SPDX-License-Identifier: MIT
 *
 * Fuzzes changes of attempt states (queues/change.c, attempt.c): the string of TW.FIRED, in an
 * append-only file or from a primary. The changes are made in a queue of tasks of each kind and stage, whose
 * ids are the letters a to h. Its invariants hold afterwards, whether the changes were refused or not.
 */
#include "copies.h"

#include "tests/support/cmocka.h"
#include "tests/support/fuzz.h"

#include <src/redis/queues/change.h>
#include <src/redis/queues/queue.h>
#include <src/redis/queues/route.h>

enum { MOST = 16384, NO_ATTEMPT = -1 };

static const struct {
    const char *id;
    unsigned target; /* in plan_of */
    int attempt;     /* in attempt_of */
    uint64_t due, every;
} tasks[] = {
    {"a", FIRST_OF_WORKERS, NO_ATTEMPT, START + 1000, 0},
    {"b", FIRST_OF_WORKERS, NO_ATTEMPT, START - 5, 0},
    {"c", 1, NO_ATTEMPT, START + 1000, 0},
    {"d", 0, NO_ATTEMPT, START + 2000, 700},
    {"e", FIRST_OF_WORKERS + 1, 0, START + 3000, 900},
    {"f", FIRST_OF_WORKERS, 1, START + 4000, 600},
    {"g", 1, DEAD_ATTEMPT, START - 10, 0},
    {"h", FIRST_OF_WORKERS, 2, START - 1, 500},
};

static void put_task(struct tw__redis_queue *queue, size_t i)
{
    struct tw__redis_task_plan plan = {.id = text(tasks[i].id),
                                       .due = tasks[i].due,
                                       .every = tasks[i].every,
                                       .times = tasks[i].every > 0 ? 3 : 1,
                                       .attempt = tasks[i].attempt >= 0 ? &attempt_of[tasks[i].attempt] : NULL,
                                       .packed = text(tasks[i].target == 0 ? "\2\1f\1v" : "\1\1p")};
    tw__redis_queue_put(queue, tw__redis_task_new(&plan, &all->memory),
                        tw__redis_route_for(queue, &plan_of[tasks[i].target]),
                        tw__redis_queue_hash(all, plan.id), NULL, START);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (all == NULL) {
        use_seed();
        open_all();
    }
    struct tw__redis_queue *queue = tw__redis_queue_new(all);
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++)
        put_task(queue, i);
    size = size < MOST ? size : MOST;
    char *exact = counted_alloc(size);
    if (size > 0)
        memcpy(exact, data, size);
    tw__redis_change_read(queue, (struct tw__redis_bytes){exact, size}, START, NULL);
    counted_free(exact);
    check_what_was_read(queue, true);
    close_queue(queue);
    tw__redis_reaper_run_all(all);
    assert_int_equal(all->reaping, 0);
    assert_int_equal(blocks_out, 1 + (all->route != NULL));
    return 0;
}
