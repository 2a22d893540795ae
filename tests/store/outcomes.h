/* SPDX-License-Identifier: MIT
 *
 * The calls of the store with their outcome as the result, so that a test compares it with one number: 1 or 0,
 * or how many; or an error.
 */
#ifndef TESTS_STORE_OUTCOMES_H
#define TESTS_STORE_OUTCOMES_H

#include <tickwheel/store.h>

static inline int store_put(struct tw_store *store, const struct tw_store_delayed *put, unsigned conditions)
{
    bool made = false;
    int error = tw_store_put(store, put, conditions, &made);
    return error == 0 ? made : error;
}

static inline int store_move_at(struct tw_store *store, struct tw_store_name name, uint64_t due_ms,
                                unsigned conditions)
{
    bool made = false;
    int error = tw_store_move_at(store, name, due_ms, conditions, &made);
    return error == 0 ? made : error;
}

static inline int outcome_of(const struct tw_store_change *change)
{
    if (change->result != 0)
        return change->result;
    return change->verb == TW_STORE_VERB_CANCEL ? (int)change->found : change->made;
}

static inline int store_pause(struct tw_store *store, const char *queue)
{
    bool changed = false;
    int error = tw_store_pause(store, queue, &changed);
    return error == 0 ? changed : error;
}

static inline int store_resume(struct tw_store *store, const char *queue)
{
    bool changed = false;
    int error = tw_store_resume(store, queue, &changed);
    return error == 0 ? changed : error;
}

static inline int store_is_paused(struct tw_store *store, const char *queue)
{
    bool paused = false;
    int error = tw_store_is_paused(store, queue, &paused);
    return error == 0 ? paused : error;
}

static inline int store_restored(struct tw_store *store, bool restored)
{
    bool changed = false;
    int error = tw_store_mark_restored(store, restored, &changed);
    return error == 0 ? changed : error;
}

static inline int store_is_restored(struct tw_store *store)
{
    bool restored = false;
    int error = tw_store_is_restored(store, &restored);
    return error == 0 ? restored : error;
}

static inline int64_t store_replay(struct tw_store *store, struct tw_store_name name, uint64_t due_ms)
{
    uint64_t count = 0;
    int error = tw_store_replay(store, name, due_ms, &count);
    return error == 0 ? (int64_t)count : error;
}

static inline int64_t store_promote(struct tw_store *store, struct tw_store_name name)
{
    uint64_t count = 0;
    int error = tw_store_promote(store, name, &count);
    return error == 0 ? (int64_t)count : error;
}

static inline int64_t store_purge(struct tw_store *store, struct tw_store_name name, uint64_t before_ms)
{
    uint64_t count = 0;
    int error = tw_store_purge(store, name, before_ms, &count);
    return error == 0 ? (int64_t)count : error;
}

static inline int64_t store_count(struct tw_store *store, const char *queue, bool dead)
{
    uint64_t count = 0;
    int error = tw_store_count(store, queue, dead, &count);
    return error == 0 ? (int64_t)count : error;
}

/* ---- visits, which are counted --------------------------------------------------------------------------- */

struct visits {
    tw_store_visit_fn *task;
    tw_store_visit_queue_fn *queue;
    tw_store_visit_load_fn *load;
    void *arg;
    int64_t count;
};

static inline void visit_task(void *arg, const struct tw_store_task *task)
{
    struct visits *visits = arg;
    visits->count++;
    visits->task(visits->arg, task);
}

static inline void visit_queue(void *arg, const char *queue)
{
    struct visits *visits = arg;
    visits->count++;
    visits->queue(visits->arg, queue);
}

static inline void visit_load(void *arg, const struct tw_store_load *load)
{
    struct visits *visits = arg;
    visits->count++;
    visits->load(visits->arg, load);
}

static inline int64_t store_scan(struct tw_store *store, const char *queue, const struct tw_store_range *range,
                                 tw_store_visit_fn *visit, void *arg)
{
    struct visits visits = {.task = visit, .arg = arg};
    int error = tw_store_scan(store, queue, range, visit_task, &visits);
    return error == 0 ? visits.count : error;
}

static inline int64_t store_queues(struct tw_store *store, tw_store_visit_queue_fn *visit, void *arg)
{
    struct visits visits = {.queue = visit, .arg = arg};
    int error = tw_store_queues(store, visit_queue, &visits);
    return error == 0 ? visits.count : error;
}

static inline int64_t store_loads(struct tw_store *store, const char *queue, tw_store_visit_load_fn *visit,
                                  void *arg)
{
    struct visits visits = {.load = visit, .arg = arg};
    int error = tw_store_loads(store, queue, visit_load, &visits);
    return error == 0 ? visits.count : error;
}

#endif
