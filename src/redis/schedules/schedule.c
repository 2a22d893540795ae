/* SPDX-License-Identifier: MIT
 *
 * Schedules and routes: making, attaching, putting in, taking out, reaping, looking. schedule.h has the overview.
 *
 * Routes are numbered, and a task keeps the number: four bytes instead of a pointer, and the target's name and options
 * are stored once for all tasks that share them.
 *
 * The server may free a value on a background thread (UNLINK, FLUSHALL ASYNC). Tasks are linked into the wheel with
 * tasks of other schedules, so that thread must not touch them: it puts the schedule on the list of graves, the one
 * thing here that has a lock, and the server's own thread takes the tasks out, a few at a time.
 */
#include "schedule.h"

#include <base/assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

static pthread_mutex_t graves_lock = PTHREAD_MUTEX_INITIALIZER;
static struct tw__schedule *graves;

static void task_key(const void *entry, const char **bytes, size_t *size)
{
    struct tw__bytes id = tw__task_id(entry);
    *bytes = id.at;
    *size = id.size;
}

static void route_key(const void *entry, const char **bytes, size_t *size)
{
    const struct tw__route *route = entry;
    *bytes = route->key;
    *size = route->key_size;
}

enum { VECTOR_FIRST = 16 };

void tw__vector_add(struct tw__vector *vector, void *pointer)
{
    if (vector->count == vector->capacity) {
        vector->capacity = vector->capacity == 0 ? VECTOR_FIRST : vector->capacity * 2;
        vector->at = tw__memory.realloc(vector->at, vector->capacity * sizeof(void *));
    }
    vector->at[vector->count++] = pointer;
}

/* ---- schedules that are too large to be moved ------------------------------------------------------------------- */

/* A task has its block and a place in the table of ids in memory, and in a dump the number of its route, its due time,
 * flags and sizes instead. A chunk ends after TW__CHUNK_BYTES: if the definitions of all routes take less than half of
 * that, tasks fill the other half. */
uint64_t tw__schedule_dump_most(const struct tw__schedule *schedule)
{
    enum { ROUTE = 5, NUMBER = 2, DUE = 5, FLAGS = 1, SIZE = 3, REPEAT = 2, CHUNK = 24, SNAPSHOT = 64 };
    const uint64_t beside = offsetof(struct tw__task, rest) + sizeof(uint64_t);
    uint64_t tasks = tw__table_count(&schedule->tasks), routes = tw__table_count(&schedule->routes);
    uint64_t definition = schedule->longest_route + ROUTE, chunks = tasks;
    if (routes * definition <= TW__CHUNK_BYTES / 2)
        chunks = tasks / TW__CHUNK_TASKS + schedule->bytes / (TW__CHUNK_BYTES / 2) + 1;
    uint64_t definitions = routes * chunks < tasks ? routes * chunks : tasks;
    return schedule->bytes - tasks * (beside - NUMBER - DUE - FLAGS - SIZE - REPEAT) +
           definitions * definition + chunks * CHUNK + SNAPSHOT;
}

/* Keeps `tw__all.too_large` right, so that INFO need not go through all schedules. A task or a route that comes or goes
 * changes the bytes, so count_bytes() is the place to weigh; count_all() is, for schedules that come or go. */
static void weigh(struct tw__schedule *schedule)
{
    bool too_large = schedule->attached && tw__schedule_dump_most(schedule) > tw__all.dump_limit;
    if (too_large == schedule->too_large)
        return;
    schedule->too_large = too_large;
    tw__all.too_large += too_large ? 1 : (uint64_t)-1;
}

void tw__schedules_limit_dump(uint64_t bytes)
{
    if (bytes == tw__all.dump_limit)
        return;
    tw__all.dump_limit = bytes;
    struct tw__link *link = tw__all.attached.next;
    for (; link != NULL && link != &tw__all.attached; link = link->next)
        weigh(tw__schedule_at(link));
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

static void count_bytes(struct tw__schedule *schedule, int64_t more)
{
    schedule->bytes += (uint64_t)more;
    if (schedule->attached)
        tw__all.bytes += (uint64_t)more;
    weigh(schedule);
}

/* The server's memory never ends, as it ends the process first, and no address of it is too high: see memory.h and
 * table.h. */
static void insert(struct tw__table *table, uint64_t hash, void *entry)
{
    int result = tw__table_insert(table, hash, entry);
    TW_ASSERT(result == 0);
    (void)result;
}

static void count_block(struct tw__schedule *schedule, void *block, int sign)
{
    count_bytes(schedule, sign * (int64_t)tw__memory.usable(block));
}

/* The tables belong to the sums too, so that nobody has to go through all schedules to know them. `before` is what the
 * tables had before one of them was changed. */
static size_t bytes_of_tables(const struct tw__schedule *schedule)
{
    return tw__table_bytes(&schedule->tasks) + tw__table_bytes(&schedule->routes);
}

static void count_tables(struct tw__schedule *schedule, size_t before)
{
    count_bytes(schedule, (int64_t)bytes_of_tables(schedule) - (int64_t)before);
}

/* ---- attached and detached -------------------------------------------------------------------------------------- */

struct tw__schedule *tw__schedule_new(void)
{
    struct tw__schedule *schedule = tw__memory.alloc(sizeof *schedule);
    if (schedule == NULL)
        return NULL;
    memset(schedule, 0, sizeof *schedule);
    tw__table_init(&schedule->tasks, task_key);
    tw__table_init(&schedule->routes, route_key);
    schedule->bytes = tw__memory.usable(schedule);
    tw__link_before(&schedule->all, &tw__all.detached);
    return schedule;
}

/* Adds the counts of a schedule to the sums, or takes them off. */
static void count_all(struct tw__schedule *schedule, uint64_t sign)
{
    tw__all.schedules += sign;
    tw__all.empty += tw__table_count(&schedule->tasks) == 0 ? sign : 0;
    tw__all.pending += sign * tw__table_count(&schedule->tasks);
    tw__all.queued += sign * schedule->queued;
    tw__all.held += sign * schedule->held;
    tw__all.bytes += sign * schedule->bytes;
    tw__all.reaping -= sign * tw__table_count(&schedule->tasks);
    weigh(schedule);
}

void tw__schedule_attach(struct tw__schedule *schedule)
{
    if (schedule->attached)
        return;
    tw__link_out(&schedule->all);
    tw__link_before(&schedule->all, &tw__all.attached);
    schedule->attached = true;
    count_all(schedule, 1);
}

void tw__schedule_detach(struct tw__schedule *schedule)
{
    if (!schedule->attached)
        return;
    tw__link_out(&schedule->all);
    tw__link_before(&schedule->all, &tw__all.detached);
    schedule->attached = false;
    count_all(schedule, (uint64_t)-1);
}

size_t tw__schedule_bytes(const struct tw__schedule *schedule)
{
    return schedule->bytes;
}

/* ---- routes -------------------------------------------------------------------------------------------------------- */

enum { ROUTE_FIXED = 2 + 2 * sizeof(uint64_t) }; /* kind, late, maxlen, late_ms: before the target */

static void pack_plan(char *key, const struct tw__plan *plan)
{
    key[0] = (char)plan->kind;
    key[1] = (char)plan->late;
    memcpy(key + 2, &plan->maxlen, sizeof plan->maxlen);
    memcpy(key + 2 + sizeof plan->maxlen, &plan->late_ms, sizeof plan->late_ms);
    if (plan->target.size > 0)
        memcpy(key + ROUTE_FIXED, plan->target.at, plan->target.size);
}

struct tw__plan tw__route_plan(const struct tw__route *route)
{
    struct tw__plan plan = {
        .kind = (uint8_t)route->key[0],
        .late = (uint8_t)route->key[1],
        .target = {route->key + ROUTE_FIXED, route->key_size - ROUTE_FIXED},
    };
    memcpy(&plan.maxlen, route->key + 2, sizeof plan.maxlen);
    memcpy(&plan.late_ms, route->key + 2 + sizeof plan.maxlen, sizeof plan.late_ms);
    return plan;
}

static bool plan_is_of(const struct tw__plan *plan, const struct tw__route *route)
{
    struct tw__plan other = tw__route_plan(route);
    return plan->kind == other.kind && plan->late == other.late && plan->maxlen == other.maxlen &&
           plan->late_ms == other.late_ms && plan->target.size == other.target.size &&
           memcmp(plan->target.at, other.target.at, other.target.size) == 0;
}

static const uint32_t NO_INDEX = UINT32_MAX;

/* An unused number for a route. */
static uint32_t new_index(void)
{
    if (tw__all.routes > 0 && tw__all.route_free != NO_INDEX) {
        uint32_t index = tw__all.route_free;
        tw__all.route_free = (uint32_t)((uintptr_t)tw__all.route[index] >> 1);
        return index;
    }
    if (tw__all.routes == tw__all.route_capacity) {
        tw__all.route_capacity = tw__all.route_capacity == 0 ? 16 : tw__all.route_capacity * 2;
        tw__all.route = tw__memory.realloc(tw__all.route, tw__all.route_capacity * sizeof(struct tw__route *));
    }
    tw__all.route_free = NO_INDEX;
    return tw__all.routes++;
}

static void free_index(uint32_t index)
{
    tw__all.route[index] = (struct tw__route *)((uintptr_t)tw__all.route_free << 1 | 1);
    tw__all.route_free = index;
}

static void free_route(struct tw__route *route)
{
    struct tw__schedule *schedule = route->schedule;
    count_block(schedule, route, -1);
    if (schedule->last == route)
        schedule->last = NULL;
    tw__route_rests(route);
    free_index(route->index);
    if (route->target != NULL)
        tw__all.forget_target(route->target);
    tw__memory.free(route);
}

/* Frees a route that has no tasks. The one that was used last stays: the next task may want it. */
static void free_if_unused(struct tw__route *route)
{
    struct tw__schedule *schedule = route->schedule;
    if (route->tasks > 0 || route == schedule->last)
        return;
    size_t before = bytes_of_tables(schedule);
    tw__table_remove(&schedule->routes, tw__table_hash(route->key, route->key_size), route);
    count_tables(schedule, before);
    free_route(route);
}

void tw__schedule_route_unused(struct tw__route *route)
{
    route->tasks--;
    free_if_unused(route);
}

static struct tw__route *make_route(struct tw__schedule *schedule, const char *key, size_t size, uint64_t hash)
{
    struct tw__route *route = tw__memory.alloc(sizeof *route + size);
    memset(route, 0, sizeof *route);
    route->schedule = schedule;
    route->queue.next = route->queue.prev = &route->queue;
    tw_timer_init(&route->retry);
    route->index = new_index();
    route->key_size = (uint32_t)size;
    memcpy(route->key, key, size);
    tw__all.route[route->index] = route;
    size_t before = bytes_of_tables(schedule);
    insert(&schedule->routes, hash, route);
    if (route->key_size > schedule->longest_route)
        schedule->longest_route = route->key_size;
    count_tables(schedule, before);
    count_block(schedule, route, 1);
    return route;
}

struct tw__route *tw__schedule_route(struct tw__schedule *schedule, const struct tw__plan *plan)
{
    if (schedule->last != NULL && plan_is_of(plan, schedule->last))
        return schedule->last;
    size_t size = ROUTE_FIXED + plan->target.size;
    char *key = tw__memory.alloc(size);
    pack_plan(key, plan);
    uint64_t hash = tw__table_hash(key, size);
    struct tw__route *route = tw__table_find(&schedule->routes, hash, key, size);
    if (route == NULL)
        route = make_route(schedule, key, size, hash);
    tw__memory.free(key);
    struct tw__route *before = schedule->last;
    schedule->last = route;
    if (before != NULL)
        free_if_unused(before);
    return route;
}

uint64_t tw__schedule_routes(const struct tw__schedule *schedule)
{
    return tw__table_count(&schedule->routes) - (schedule->last != NULL && schedule->last->tasks == 0);
}

/* ---- tasks ----------------------------------------------------------------------------------------------------------- */

static uint64_t hash_of(const struct tw__task *task)
{
    struct tw__bytes id = tw__task_id(task);
    return tw__table_hash(id.at, id.size);
}

uint64_t tw__foresee(struct tw__bytes id)
{
    uint64_t hash = tw__table_hash(id.at, id.size);
    if (tw__all.recent != NULL)
        tw__table_prefetch(&tw__all.recent->tasks, hash);
    return hash;
}

void tw__foresee_task(uint64_t hash)
{
    if (tw__all.recent != NULL)
        tw__table_prefetch_entry(&tw__all.recent->tasks, hash);
}

struct tw__task *tw__schedule_find(const struct tw__schedule *schedule, uint64_t hash, struct tw__bytes id)
{
    return tw__table_find(&schedule->tasks, hash, id.at, id.size);
}

static void count_task(struct tw__schedule *schedule, uint64_t more)
{
    if (schedule->attached)
        tw__all.pending += more;
    else
        tw__all.reaping += more;
}

/* Takes a task from its place and from its route. */
static void leave(struct tw__schedule *schedule, struct tw__task *task)
{
    struct tw__route *route = tw__route_of(task);
    if (tw__all.delivering == task)
        tw__all.delivering = NULL;
    tw__unfile(task);
    count_block(schedule, task, -1);
    tw__schedule_route_unused(route);
}

void tw__schedule_put(struct tw__schedule *schedule, struct tw__task *task, struct tw__route *route,
                      uint64_t hash, struct tw__task *old, uint64_t now_ms)
{
    task->route = route->index;
    route->tasks++;
    count_block(schedule, task, 1);
    if (old != NULL) {
        leave(schedule, old);
        tw__table_replace(&schedule->tasks, hash, old, task);
        tw__task_free(old);
    } else {
        tw__all.empty -= schedule->attached && tw__table_count(&schedule->tasks) == 0;
        size_t before = bytes_of_tables(schedule);
        insert(&schedule->tasks, hash, task);
        count_tables(schedule, before);
        count_task(schedule, 1);
    }
    tw__file(task, tw__task_due(task), now_ms);
}

void tw__schedule_remove(struct tw__schedule *schedule, struct tw__task *task, uint64_t hash)
{
    size_t before = bytes_of_tables(schedule);
    tw__table_remove(&schedule->tasks, hash, task);
    count_tables(schedule, before);
    tw__all.empty += schedule->attached && tw__table_count(&schedule->tasks) == 0;
    count_task(schedule, (uint64_t)-1);
    leave(schedule, task);
    tw__task_free(task);
}

void tw__schedule_moved(struct tw__schedule *schedule, const struct tw__task *old, struct tw__task *task)
{
    tw_timer_relocated(&task->timer);
    tw__table_replace(&schedule->tasks, hash_of(task), old, task);
}

bool tw__schedule_relocate(struct tw__schedule *schedule, uint64_t *segment, void *(*move)(void *old))
{
    size_t before = bytes_of_tables(schedule);
    bool there = tw__table_relocate(&schedule->tasks, segment, move);
    count_tables(schedule, before);
    return there;
}

/* ---- reaping --------------------------------------------------------------------------------------------------------- */

void tw__schedule_bury(struct tw__schedule *schedule)
{
    pthread_mutex_lock(&graves_lock);
    schedule->grave = graves;
    graves = schedule;
    pthread_mutex_unlock(&graves_lock);
}

bool tw__schedule_reaping(void)
{
    return tw__all.detached.next != &tw__all.detached;
}

static struct tw__schedule *first_grave(void)
{
    pthread_mutex_lock(&graves_lock);
    struct tw__schedule *schedule = graves;
    pthread_mutex_unlock(&graves_lock);
    return schedule;
}

/* Takes the first grave off the list. A newer one may have come before it meanwhile. */
static void close_grave(struct tw__schedule *schedule)
{
    pthread_mutex_lock(&graves_lock);
    struct tw__schedule **link = &graves;
    while (*link != schedule)
        link = &(*link)->grave;
    *link = schedule->grave;
    pthread_mutex_unlock(&graves_lock);
}

static void free_routes(struct tw__schedule *schedule)
{
    struct tw__route *route;
    while ((route = tw__table_pop(&schedule->routes)) != NULL)
        free_route(route);
}

static void free_schedule(struct tw__schedule *schedule)
{
    free_routes(schedule);
    tw__table_fini(&schedule->tasks);
    tw__table_fini(&schedule->routes);
    tw__link_out(&schedule->all);
    if (tw__all.recent == schedule)
        tw__all.recent = NULL;
    if (schedule->name != NULL)
        tw__all.forget_target(schedule->name);
    tw__memory.free(schedule);
}

/* Frees up to `limit` tasks of one schedule; then, when none are left, the schedule. */
static uint64_t reap_one(struct tw__schedule *schedule, uint64_t limit)
{
    uint64_t freed = 0;
    struct tw__task *task = NULL;
    while (freed < limit && (task = tw__table_pop(&schedule->tasks)) != NULL) {
        if (tw__all.delivering == task)
            tw__all.delivering = NULL;
        tw__unfile(task);
        tw__task_free(task);
        tw__all.reaping--;
        freed++;
    }
    if (task == NULL && tw__table_count(&schedule->tasks) == 0) {
        close_grave(schedule);
        free_schedule(schedule);
    }
    return freed;
}

uint64_t tw__schedule_reap(uint64_t limit)
{
    uint64_t freed = 0;
    struct tw__schedule *schedule;
    while (freed < limit && (schedule = first_grave()) != NULL)
        freed += reap_one(schedule, limit - freed) + 1;
    return freed;
}

void tw__schedule_reap_all(void)
{
    while (tw__schedule_reap(UINT64_MAX) > 0)
        ;
}

/* ---- looking --------------------------------------------------------------------------------------------------------- */

/* A task with the members that decide its place in the order, so that comparing two does not fetch them again. */
struct candidate {
    uint64_t due;
    uint32_t order;
    struct tw__task *task;
};

/* Tasks are looked at through the wheel, in the order of its slots, or through the table of the schedule. */
struct look {
    const struct tw__schedule *schedule;
    uint64_t from, to;
    uint64_t seen, most; /* tasks looked at through the wheel; more than `most` are not */
    void (*each)(struct look *look, struct tw__task *task);
    const struct tw__wanted *wanted; /* tw__schedule_wanted */
    struct candidate after;
    struct candidate *candidate; /* a heap, its latest on top */
    size_t limit, count;
    uint64_t now_ms, step; /* tw__schedule_forecast */
    uint64_t *counts;
};

static void look_at(struct look *look, struct tw__task *task)
{
    if (tw__task_due(task) >= look->from && tw__task_due(task) <= look->to)
        look->each(look, task);
}

static void look_in_table(void *entry, void *arg)
{
    look_at(arg, entry);
}

static void look_through_table(struct look *look)
{
    uint64_t segment = 0;
    while (tw__table_walk(&look->schedule->tasks, &segment, look_in_table, look))
        ;
}

static int look_in_wheel(void *arg, struct tw_timer *timer)
{
    struct look *look = arg;
    struct tw__task *task = TW_CONTAINER(timer, struct tw__task, timer);
    if (tw__schedule_of(task) == look->schedule)
        look_at(look, task);
    return ++look->seen > look->most;
}

static int look_in_queue(struct look *look, const struct tw__link *queue)
{
    int enough = 0;
    for (struct tw__link *link = queue->next; !enough && link != queue; link = link->next)
        enough = look_in_wheel(look, TW_CONTAINER(link, struct tw_timer, link));
    return enough;
}

struct queues {
    struct look *look;
    int enough;
};

static void look_in_route(void *entry, void *arg)
{
    struct queues *queues = arg;
    const struct tw__route *route = entry;
    if (!queues->enough)
        queues->enough = look_in_queue(queues->look, &route->queue);
}

/* Looks at the tasks that are due up to `to` wherever they wait. Returns whether that was done before `most` had been
 * seen. */
static bool look_through_wheel(struct look *look)
{
    struct queues queues = {look, look_in_queue(look, &tw__all.overdue) || look_in_queue(look, &tw__all.late)};
    uint64_t segment = 0;
    while (look->schedule->held > 0 &&
           tw__table_walk(&look->schedule->routes, &segment, look_in_route, &queues))
        ;
    return queues.enough == 0 && tw_wheel_visit_until(tw__all.wheel, look->to, look_in_wheel, look) == 0 &&
           (tw__all.behind == NULL || tw_wheel_visit_until(tw__all.behind, look->to, look_in_wheel, look) == 0);
}

static bool is_before(const struct candidate *a, const struct candidate *b)
{
    if (a->due != b->due)
        return a->due < b->due;
    return (int32_t)(a->order - b->order) < 0;
}

static struct candidate candidate_of(struct tw__task *task)
{
    return (struct candidate){tw__task_due(task), task->order, task};
}

static int compare(const void *a, const void *b)
{
    return is_before(a, b) ? -1 : is_before(b, a);
}

static void sift_down(struct candidate *heap, size_t count, struct candidate one)
{
    size_t at = 0, child;
    while ((child = 2 * at + 1) < count) {
        if (child + 1 < count && is_before(&heap[child], &heap[child + 1]))
            child++;
        if (is_before(&heap[child], &one))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = one;
}

static void keep_earliest(struct look *look, struct candidate one)
{
    struct candidate *heap = look->candidate;
    if (look->count == look->limit) {
        if (is_before(&one, &heap[0]))
            sift_down(heap, look->count, one);
        return;
    }
    size_t at = look->count++;
    for (; at > 0 && is_before(&heap[(at - 1) / 2], &one); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = one;
}

static void keep_if_wanted(struct look *look, struct tw__task *task)
{
    const struct tw__wanted *wanted = look->wanted;
    struct candidate one = candidate_of(task);
    if (wanted->after != NULL && !is_before(&look->after, &one))
        return;
    if (wanted->drain != 0 && (tw__route_refused(tw__route_of(task), wanted->drain) || tw__is_behind(task)))
        return;
    keep_earliest(look, one);
}

enum { NEAR_MS = 1000, FURTHER = 4, FEW = 256, WHEEL_SHARE = 16 };

/* How many tasks may be looked at through the wheel before all of a schedule are looked at through its table. In
 * the wheel the tasks have to be fetched one after the other, so each takes some times as long. */
static uint64_t most_in_wheel(const struct tw__schedule *schedule)
{
    uint64_t all = tw__table_count(&schedule->tasks);
    return all > FEW ? all / WHEEL_SHARE + FEW : 0;
}

/* From when on there is anything to find, perhaps. */
static uint64_t first_look(const struct look *look, uint64_t now_ms)
{
    uint64_t start = now_ms > look->from ? now_ms : look->from, next = tw__next_work();
    return next != TW_NEVER && next > start ? next : start;
}

/* Looks further and further ahead until enough have been found; through the table as soon as that is less work. */
static void find_earliest(struct look *look, uint64_t now_ms)
{
    uint64_t to = look->to, start = first_look(look, now_ms);
    look->most = most_in_wheel(look->schedule);
    for (uint64_t ahead = NEAR_MS; look->seen < look->most; ahead *= FURTHER) {
        look->to = start > to || ahead > to - start ? to : start + ahead;
        look->count = 0;
        if (!look_through_wheel(look))
            break;
        if (look->count == look->limit || look->to == to)
            return;
    }
    look->to = to;
    look->count = 0;
    look_through_table(look);
}

size_t tw__schedule_wanted(const struct tw__schedule *schedule, const struct tw__wanted *wanted,
                           uint64_t now_ms, size_t limit, struct tw__task **task)
{
    struct look look = {.schedule = schedule,
                        .from = wanted->from,
                        .to = wanted->to,
                        .each = keep_if_wanted,
                        .wanted = wanted,
                        .limit = limit};
    if (wanted->after != NULL)
        look.after = candidate_of(wanted->after);
    look.candidate = tw__memory.alloc((limit + 1) * sizeof *look.candidate);
    find_earliest(&look, now_ms);
    qsort(look.candidate, look.count, sizeof *look.candidate, compare);
    for (size_t i = 0; i < look.count; i++)
        task[i] = look.candidate[i].task;
    tw__memory.free(look.candidate);
    return look.count;
}

size_t tw__schedule_earliest(const struct tw__schedule *schedule, uint64_t from, uint64_t to, uint64_t now_ms,
                             size_t limit, struct tw__task **task)
{
    struct tw__wanted wanted = {.from = from, .to = to};
    return tw__schedule_wanted(schedule, &wanted, now_ms, limit, task);
}

static void count_step(struct look *look, struct tw__task *task)
{
    uint64_t due = tw__task_due(task);
    size_t step = due <= look->now_ms ? 0 : (size_t)((due - look->now_ms - 1) / look->step);
    look->counts[step]++;
}

void tw__schedule_forecast(const struct tw__schedule *schedule, uint64_t now_ms, uint64_t step, size_t count,
                           uint64_t *counts)
{
    struct look look = {
        .schedule = schedule, .each = count_step, .now_ms = now_ms, .step = step, .counts = counts};
    look.to = step > (UINT64_MAX - now_ms) / count ? UINT64_MAX : now_ms + step * count;
    look.most = most_in_wheel(schedule);
    memset(counts, 0, count * sizeof *counts);
    if (look.most > 0 && look_through_wheel(&look))
        return;
    memset(counts, 0, count * sizeof *counts);
    look_through_table(&look);
}

struct gather {
    struct tw__task **task;
    size_t count;
};

static void gather_one(void *entry, void *arg)
{
    struct gather *gather = arg;
    gather->task[gather->count++] = entry;
}

static int compare_tasks(const void *a, const void *b)
{
    struct candidate one = candidate_of(*(struct tw__task *const *)a);
    struct candidate two = candidate_of(*(struct tw__task *const *)b);
    return compare(&one, &two);
}

struct tw__task **tw__schedule_sorted(const struct tw__schedule *schedule)
{
    uint64_t count = tw__table_count(&schedule->tasks), segment = 0;
    if (count == 0)
        return NULL;
    struct gather gather = {tw__memory.alloc(count * sizeof(struct tw__task *)), 0};
    while (tw__table_walk(&schedule->tasks, &segment, gather_one, &gather))
        ;
    qsort(gather.task, gather.count, sizeof(struct tw__task *), compare_tasks);
    return gather.task;
}
