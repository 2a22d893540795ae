/* SPDX-License-Identifier: MIT
 *
 * The model: attempt states of tasks. Each function changes a task, and the table of src/task says how it
 * should be then.
 */
#include "model.h"

#include "tests/support/cmocka.h"

#include <src/redis/queues/change.h>
#include <inttypes.h>
#include <task/ends.h>
#include <task/outcome.h>
#include <task/state.h>

static struct tw__redis_bytes some_name(void)
{
    static const char *const names[] = {"", "ann", "the lease ran out"};
    return text(names[below(3)]);
}

struct tw__redis_attempt some_attempt(uint64_t due, enum tw__task_stage stage, uint64_t every)
{
    uint32_t number = 1 + (uint32_t)below(5);
    bool call = stage == TW__TASK_TAKEN || stage == TW__TASK_FILED, leased = tw__task_stage_is_leased(stage);
    struct tw__redis_attempt attempt = {.stage = stage,
                                        .renewed = below(2) == 0 && leased,
                                        .due = due,
                                        .token = 1 + below(UINT64_MAX),
                                        .lease_ms =
                                            leased ? (uint32_t)below(below(2) == 0 ? UINT32_MAX : 500) : 0,
                                        .number = number,
                                        .lapses = (uint32_t)below(number),
                                        .has_next = below(2) == 0 && stage == TW__TASK_TAKEN,
                                        .next = some_due(),
                                        .has_missed_periods = below(2) == 0 && call,
                                        .missed_periods = every > 0 ? below(below(2) == 0 ? 9 : INT64_MAX) : 0,
                                        .worker = some_name(),
                                        .error = some_name()};
    if (stage == TW__TASK_REPLACED) {
        attempt.lapses = 0;
        attempt.error = text("");
    }
    return attempt;
}

/* ---- places ---------------------------------------------------------------------------------------------- */

void offer(struct ref *ref)
{
    tw__redis_place_offer(all, ref->task, model.now);
    model_line_up(ref, READY, false);
    ref->order = model.order++;
    ref->filed_ms = model.now;
}

void stop(struct ref *ref)
{
    tw__redis_place_stop(all, ref->task);
    model_line_up(ref, STOPPED, false);
    model.stopped++;
}

/* A task of the line of late tasks. `ref` is NULL if its queue is removed: the model has forgotten the
 * task, but others may still wait behind it. */
struct late {
    uint64_t due;
    struct ref *ref;
};

/* The late tasks in the order of their line, which is the model's order. There are `*count`. */
static struct late *list_late(size_t *count)
{
    struct room *room;
    struct tw__link *line = &all->late;
    size_t size = 0;
    check_line(line, LATE);
    for (struct tw__link *link = line->next; link != line; link = link->next)
        size++;
    struct late *list = calloc(size + 1, sizeof *list), *next = list;
    assert_non_null(list);
    for (struct tw__link *link = line->next; link != line; link = link->next) {
        const struct tw__redis_task *task = tw__redis_task_of_link(link);
        *next++ = (struct late){tw__redis_task_due(task), ref_of(task, &room)};
    }
    *count = size;
    return list;
}

static void line_up_late(const struct late *late)
{
    if (late->ref != NULL)
        model_line_up(late->ref, LATE, false);
}

/* Merges the stopped tasks into the late tasks. Each stopped task goes before the first late task that is due
 * later, but behind the stopped task before it. */
static void merge_stopped(struct room *room, const struct late *late, size_t count)
{
    const struct late *end = late + count;
    struct ref *ref = first_in(room, STOPPED);
    if (ref == NULL)
        return;
    if (count > 0 && end[-1].due <= ref->due)
        while (late < end)
            line_up_late(late++);
    while ((ref = first_in(room, STOPPED)) != NULL) {
        while (late < end && late->due <= ref->due)
            line_up_late(late++);
        model_line_up(ref, LATE, false);
    }
    while (late < end)
        line_up_late(late++);
}

void pause_or_go_on(struct room *room)
{
    room->paused = !room->paused;
    if (!room->paused) {
        size_t count;
        struct late *late = list_late(&count);
        tw__redis_place_go_on(room->queue);
        merge_stopped(room, late, count);
        free(late);
    }
    tw__redis_sums_pause(room->queue, room->paused);
}

/* ---- attempts -------------------------------------------------------------------------------------------- */

/* The bytes that log the changes. Their contents have a test of their own, test_change.c. */
static void check_log(struct tw__redis_buffer *log)
{
    assert_true(log->size > 0);
    tw__redis_buffer_free(log, &counted);
}

/* The model's task leaves its place, has its new attempt state, and is filed for a time. */
static void file_for(struct room *room, struct ref *ref, uint64_t due)
{
    model_leave(room, ref);
    model_file(ref, due);
}

/* The task as the queue has it. Its block may be another one by now. */
static struct tw__redis_task *found(const struct room *room, const struct ref *ref)
{
    return tw__redis_queue_find(room->queue, hash_of_ref(room, ref), id_of((unsigned)(ref - room->ref)));
}

/* The task of the model as the table has it. Its tries have no end, as the tests kill when they like. */
static struct tw__task task_of(const struct ref *ref)
{
    const struct tw__redis_attempt *attempt = &ref->attempt;
    struct tw__task task = {.stage = ref->place == ABSENT ? TW__TASK_NONE : TW__TASK_FILED,
                            .has_target = ref->plan < FIRST_OF_WORKERS,
                            .due_ms = ref->due,
                            .next_ms = ref->due,
                            .every_ms = ref->every,
                            .times = ref->times,
                            .missed = (enum tw_missed)plan_of[ref->plan].missed,
                            .max_late_ms = plan_of[ref->plan].max_late_ms,
                            .retry = {.tries = UINT32_MAX}};
    if (!ref->has_attempt)
        return task;
    task.stage = attempt->stage;
    task.due_ms = attempt->due;
    task.token = attempt->token;
    if (attempt->stage == TW__TASK_REPLACED)
        task.old_attempt = attempt->number;
    else /* the call of a target may have begun */
        task.attempt = attempt->number > 0 ? attempt->number : attempt->has_missed_periods;
    task.lapses = attempt->lapses;
    task.missed_periods = attempt->has_missed_periods ? attempt->missed_periods : 0;
    if (!is_leased(ref))
        return task;
    task.next_ms = attempt->has_next ? attempt->next : attempt->due;
    task.end_ms = ref->due;
    task.lease_ms = attempt->lease_ms;
    return task;
}

/* Gives the task of the model the numbers of an outcome. It has an attempt state if these are not those of a
 * new task. */
static void become(struct ref *ref, const struct tw__task_outcome *outcome)
{
    const struct tw__task *task = &outcome->task;
    struct tw__redis_attempt *attempt = &ref->attempt;
    bool leased = tw__task_is_leased(task), dead = task->stage == TW__TASK_BURIED;
    if (!ref->has_attempt || (outcome->filed && (outcome->clears_worker || outcome->reply == TW__TASK_LATE)))
        *attempt = (struct tw__redis_attempt){0};
    if (outcome->clears_worker)
        attempt->worker = text("");
    if (outcome->clears_error)
        attempt->error = text("");
    attempt->stage = task->stage;
    attempt->due = task->due_ms;
    attempt->token = task->token;
    attempt->lease_ms = task->lease_ms;
    attempt->renewed &= leased;
    attempt->number = task->stage == TW__TASK_REPLACED ? task->old_attempt : task->attempt;
    if (task->stage == TW__TASK_FILED && ref->plan < FIRST_OF_WORKERS)
        attempt->number = 0;
    attempt->lapses = task->lapses;
    attempt->has_next &= task->stage == TW__TASK_TAKEN;
    attempt->has_missed_periods &= task->attempt > 0 && !dead;
    attempt->missed_periods = task->missed_periods;
    ref->every = task->every_ms;
    ref->times = task->times;
    ref->has_attempt = leased || dead || task->attempt > 0 || task->next_ms != task->due_ms;
    if (!ref->has_attempt && (outcome->filed || outcome->clears_worker))
        ref->tries = 0;
}

/* The task of the model leaves, or has the numbers of the outcome, and is filed. */
static void follow(struct room *room, struct ref *ref, const struct tw__task_outcome *outcome)
{
    if (outcome->task.stage == TW__TASK_NONE) {
        model_leave(room, ref);
        *ref = (struct ref){.room = room};
        return;
    }
    become(ref, outcome);
    if (outcome->filed)
        file_for(room, ref, outcome->task.next_ms);
}

/* The outcome of a verb for the task of the model, with its own token. */
static struct tw__task_outcome outcome_of(const struct ref *ref, struct tw__task_call call, uint64_t now_ms)
{
    struct tw__task task = task_of(ref);
    struct tw__task_outcome outcome;
    call.token = call.token != 0 ? call.token : task.token;
    tw__task_change(&task, &call, now_ms, &outcome);
    assert_int_not_equal(outcome.reply, TW__TASK_NO);
    return outcome;
}

/* In the model, a new task stands behind the attempt of `before` from now on, and has its place. If that is
 * none, as the lease has run out, it is late. */
static void stand_behind(struct ref *ref, const struct ref *before, const struct tw__task_call *call)
{
    struct tw__task_outcome outcome = outcome_of(before, *call, model.now);
    struct ref behind = *before;
    assert_int_equal(outcome.task.stage, TW__TASK_REPLACED);
    become(&behind, &outcome);
    behind.task = ref->task;
    behind.plan = ref->plan;
    behind.tries = ref->tries;
    *ref = behind;
    if (ref->place == NOWHERE)
        model_line_up(ref, LATE, false);
    model.replaced++;
}

void put_task(struct room *room, struct ref *ref, const struct ref *before, uint64_t due, bool behind)
{
    uint64_t hash = hash_of_ref(room, ref);
    struct tw__redis_route *route = tw__redis_route_for(room->queue, &plan_of[ref->plan]);
    struct tw__task options = task_of(ref);
    struct tw__task_call put = {.verb = TW__TASK_PUT, .at_ms = due, .options = &options};
    if (route->target == NULL && below(2) == 0)
        route->target = new_target();
    if (!behind) {
        if (is_leased(ref))
            ref->order = model.order++;
        model_file(ref, due);
        tw__redis_queue_put(room->queue, ref->task, route, hash, before->task, model.now);
        return;
    }
    stand_behind(ref, before, &put);
    tw__redis_lease_put(room->queue, ref->task, route, hash, before->task, model.now);
    ref->task = found(room, ref);
}

static void move(struct room *room, struct ref *ref)
{
    struct tw__redis_buffer log = {0};
    struct ref before = *ref;
    struct tw__task_call call = {.verb = TW__TASK_MOVE, .at_ms = some_due()};
    do_move(room->queue, ref->task, call.at_ms, model.now, &log);
    check_log(&log);
    stand_behind(ref, &before, &call);
    ref->task = found(room, ref);
}

static void end_replaced(struct room *room, struct ref *ref)
{
    struct tw__redis_buffer log = {0};
    uint64_t end = some_due();
    struct tw__task_outcome outcome = outcome_of(ref, (struct tw__task_call){.verb = TW__TASK_DONE}, end);
    assert_true(do_end_replaced(room->queue, ref->task, end, model.now, &log) == outcome.task.next_ms);
    follow(room, ref, &outcome);
    ref->task = found(room, ref);
    check_log(&log);
}

void take_as_a_worker(struct room *room)
{
    struct tw__redis_buffer log = {0};
    struct ref *ref = first_in(room, READY);
    struct lease lease = {1 + below(UINT64_MAX), 1 + (uint32_t)below(499), some_name()};
    struct tw__task_call take = {.verb = TW__TASK_TAKE, .token = lease.token, .lease_ms = lease.ms};
    if (ref == NULL)
        return;
    assert_ptr_equal(tw__redis_place_first_ready(room->queue), ref->task);
    struct tw__task_outcome outcome = outcome_of(ref, take, model.now > ref->due ? model.now : ref->due);
    const struct tw__task *task = &outcome.task;
    ref->task = begin_lease(room->queue, ref->task, &lease, model.now, &log);
    if (outcome.reply == TW__TASK_LATE) {
        follow(room, ref, &outcome);
        assert_ptr_equal(ref->task, found(room, ref));
        model.late++;
        check_log(&log);
        return;
    }
    become(ref, &outcome);
    ref->attempt.has_next = task->next_ms != task->due_ms;
    ref->attempt.next = task->next_ms;
    ref->attempt.has_missed_periods = task->missed_periods > 0;
    ref->attempt.renewed = false;
    ref->attempt.worker = lease.worker;
    model.merged += task->missed_periods > 0;
    file_for(room, ref, model.now + lease.ms);
    assert_ptr_equal(found(room, ref), ref->task);
    assert_true(tw__redis_lease_has_token(ref->task, lease.token));
    model.leases++;
    check_log(&log);
    if (below(8) == 0)
        keep_due(room, ref);
}

static void extend(struct room *room, struct ref *ref)
{
    struct tw__redis_buffer log = {0};
    bool stays = ref->place == LEASE;
    struct tw__task_call touch = {.verb = TW__TASK_TOUCH, .lease_ms = (uint32_t)below(500)};
    struct tw__task_outcome outcome = outcome_of(ref, touch, model.now);
    become(ref, &outcome);
    ref->attempt.renewed = below(2) == 0;
    file_for(room, ref, outcome.value_ms);
    ref->moved = stays && ref->place == LEASE;
    do_extend(room->queue, ref->task, ref->attempt.lease_ms, ref->attempt.renewed, model.now, &log);
    ref->task = found(room, ref);
    check_log(&log);
}

static void end_attempt(struct room *room, struct ref *ref, bool lapsed)
{
    struct tw__redis_buffer log = {0};
    struct tw__task_call call = {
        .verb = lapsed ? TW__TASK_LAPSE : TW__TASK_FAILED, .timed = true, .at_ms = some_due()};
    struct tw__task_outcome outcome = outcome_of(ref, call, model.now);
    outcome.task.next_ms = call.at_ms; /* the wait after a lapse is no matter of the queues */
    ref->attempt.error = some_name();
    follow(room, ref, &outcome);
    do_fail(room->queue, ref->task, lapsed, ref->attempt.error, call.at_ms, model.now, &log);
    ref->task = found(room, ref);
    check_log(&log);
}

/* The ready task of the room behind a position, or NULL. */
static struct ref *ready_behind(const struct room *room, int64_t position)
{
    struct ref *first = NULL;
    for (struct ref *ref = room->ref; ref < room->ref + room->size; ref++)
        if (ref->place == READY && ref->position > position &&
            (first == NULL || ref->position < first->position))
            first = ref;
    return first;
}

/* Puts a task among the ready ones, before the first that became ready later. */
static void line_up_again(struct room *room, struct ref *ref)
{
    struct ref *next = ready_behind(room, INT64_MIN);
    ref->filed_ms = model.now;
    while (next != NULL && next->order < ref->order)
        next = ready_behind(room, next->position);
    if (next == NULL) {
        model_line_up(ref, READY, false);
        return;
    }
    if (next->filed_ms < model.now)
        ref->filed_ms = next->filed_ms;
    int64_t position = next->position;
    for (struct ref *other = room->ref; other < room->ref + room->size; other++)
        other->position += other->place == READY && other->position >= position;
    model.back++; /* the last one has moved on too */
    ref->place = READY;
    ref->position = position;
}

/* The worker gives the task back, which is then as before its lease. */
static void give_back(struct room *room, struct ref *ref)
{
    struct tw__redis_buffer log = {0};
    struct tw__task_outcome outcome = outcome_of(ref, (struct tw__task_call){.verb = TW__TASK_BACK}, model.now);
    struct tw__redis_task *task = do_give_back(room->queue, ref->task, model.now, &log);
    model_leave(room, ref);
    become(ref, &outcome);
    ref->due = outcome.task.next_ms;
    ref->moved = false;
    line_up_again(room, ref);
    assert_ptr_equal(found(room, ref), task);
    ref->task = task;
    model.returns++;
    check_log(&log);
}

void give_some_back(struct room *room)
{
    uint64_t left = 1 + below(4), from = below(room->size);
    for (unsigned i = 0; i < room->size && left > 0; i++) {
        struct ref *ref = &room->ref[(from + i) % room->size];
        if (ref->place == ABSENT || !is_leased(ref) || ref->attempt.stage == TW__TASK_REPLACED)
            continue;
        give_back(room, ref);
        left--;
    }
}

/* The call is done, also that of a task with a target. */
static void finish(struct room *room, struct ref *ref)
{
    struct tw__redis_buffer log = {0};
    struct tw__task_outcome outcome = outcome_of_end(task_of(ref), model.now);
    do_done(room->queue, ref->task, model.now, &log);
    follow(room, ref, &outcome);
    ref->task = found(room, ref);
    check_log(&log);
}

/* Checks the dead period of a repeating task, and removes it. */
static void take_dead_copy(struct room *room, const struct tw__redis_attempt *wanted, struct tw__redis_bytes id)
{
    char name[128];
    int size = snprintf(name, sizeof name, "%.*s@%" PRIu64, (int)id.size, id.at, wanted->due);
    struct tw__redis_bytes own = {name, (size_t)size};
    uint64_t hash = tw__redis_queue_hash(all, own);
    struct tw__redis_task *copy = tw__redis_queue_find(room->queue, hash, own);
    assert_non_null(copy);
    struct tw__redis_attempt attempt = tw__redis_task_whole_attempt(copy);
    assert_attempts_equal(&attempt, wanted);
    assert_true(tw__redis_task_due(copy) == model.now && tw__redis_task_every(copy) == 0);
    assert_null(tw__redis_place_next_dead(room->queue, copy));
    assert_bytes_equal(tw__redis_task_packed(copy), text("\1\1p"));
    tw__redis_queue_remove(room->queue, copy, hash);
    model.copies++;
}

static void kill_task(struct room *room, struct ref *ref)
{
    struct tw__redis_buffer log = {0};
    bool series = below(2) == 0;
    struct tw__redis_bytes error = some_name();
    uint32_t attempts = (ref->has_attempt ? ref->attempt.lapses : 0) + (uint32_t)below(9);
    (series ? do_kill_series : do_kill)(room->queue, ref->task, attempts, error, model.now, &log);
    struct tw__task_outcome outcome = {.task = task_of(ref)};
    struct ref dead = *ref;
    outcome.task.attempt = attempts;
    tw__task_bury(&outcome, model.now);
    bool repeats = outcome.dead.stage != TW__TASK_NONE;
    become(&dead, &(struct tw__task_outcome){.task = repeats ? outcome.dead : outcome.task});
    dead.attempt.error = error;
    model.deaths++;
    if (repeats && !series) {
        model.order++; /* the dead period was filed */
        follow(room, ref, &outcome);
        take_dead_copy(room, &dead.attempt, id_of((unsigned)(ref - room->ref)));
    } else {
        dead.every = ref->every, dead.times = ref->times;
        *ref = dead;
        file_for(room, ref, model.now);
    }
    ref->task = found(room, ref);
    check_log(&log);
}

static void begin_anew(struct room *room, struct ref *ref)
{
    struct tw__task_outcome outcome = {.task = task_of(ref)};
    tw__task_place(&outcome, &(struct tw__task){0}, some_due(), model.now);
    tw__redis_queue_begin_anew(room->queue, ref->task, outcome.task.due_ms, model.now);
    follow(room, ref, &outcome);
    ref->task = found(room, ref);
}

/* Gives the task another attempt state where it is: in a wheel, in a line or nowhere. */
static void set_attempt(struct room *room, struct ref *ref)
{
    enum tw__task_stage stage = ref->has_attempt ? ref->attempt.stage : TW__TASK_FILED;
    struct tw__redis_attempt attempt = some_attempt(ref->due, stage, ref->every);
    bool none = stage == TW__TASK_FILED && below(3) == 0;
    if (stage == TW__TASK_FILED && ref->plan < FIRST_OF_WORKERS)
        attempt.token = attempt.number = attempt.lapses = 0;
    if (ref->has_attempt && below(2) == 0) { /* the same strings, so the same block */
        attempt.has_missed_periods = ref->attempt.has_missed_periods;
        attempt.missed_periods = ref->attempt.missed_periods;
        attempt.worker = ref->attempt.worker;
        attempt.error = ref->attempt.error;
        attempt.has_next = ref->attempt.has_next;
        attempt.next = ref->attempt.next;
    }
    ref->task = tw__redis_queue_set_attempt(room->queue, ref->task, none ? NULL : &attempt);
    ref->has_attempt = !none;
    ref->attempt = attempt;
}

/* ---- KEEPDUE --------------------------------------------------------------------------------------------- */

/* Plans with the same number here have the same kind and target. LEFT is an option of a List. */
static const unsigned home_of[PLANS] = {0, 1, 0, 0, 2, 3, 4, 4, 5, 5};

/* A task that was held with another plan is held with its own one now. */
static void hold_on(struct room *room, struct ref *ref, const struct line *before)
{
    struct line *line = &room->line[ref->plan];
    if (held_of(room, ref->plan) == 0)
        *line = (struct line){before->retry_ms, before->next_steady,
                              before->retry_ms == TW_NEVER ? ++model.made_ready : 0};
    model_line_up(ref, HELD, false);
}

/* The new task in the model has the times of the old one, and mostly its place too. */
static void keep_times(struct room *room, struct ref *ref, struct tw__redis_task *task, unsigned plan,
                       const struct tw__task_outcome *outcome, bool anew)
{
    struct line before = room->line[ref->plan];
    enum tw__task_keepdue how = anew ? TW__TASK_KEEPDUE_SAME_TIMES : TW__TASK_KEEPDUE_IN_PLACE;
    bool moves = !anew && ref->place == HELD && plan != ref->plan;
    if (anew || moves)
        model_leave(room, ref);
    tw__redis_keep_put(room->queue, task, tw__redis_route_for(room->queue, &plan_of[plan]),
                       hash_of_ref(room, ref), ref->task, how, model.now);
    ref->plan = plan;
    ref->task = found(room, ref);
    /* in its place it keeps its attempt state, also one that tells nothing */
    bool has_attempt = ref->has_attempt;
    become(ref, outcome);
    ref->has_attempt |= has_attempt && !anew;
    if (anew) {
        ref->tries = 0;
        model_file(ref, outcome->task.next_ms);
    } else if (moves) {
        hold_on(room, ref, &before);
    }
}

bool keep_due(struct room *room, struct ref *ref)
{
    struct tw__redis_task_plan parts = {.id = id_of((unsigned)(ref - room->ref)), .packed = text("\1\1p")};
    struct ref before = *ref;
    unsigned plan = below(3) == 0 ? ref->plan : (unsigned)below(PLANS);
    parts.every = below(3) > 0 ? 1 + below(1000) : 0;
    parts.times = parts.every == 0 ? 1 : below(4) == 0 ? TW_FOREVER : 1 + below(9);
    struct tw__task options = {.every_ms = parts.every, .times = parts.times};
    struct tw__task_call put = {.verb = TW__TASK_PUT,
                                .conditions = TW__TASK_KEEPDUE,
                                .elsewhere = home_of[ref->plan] != home_of[plan],
                                .at_ms = some_due(),
                                .options = &options};
    struct tw__task_outcome outcome = outcome_of(ref, put, model.now);
    struct tw__task_keep decided =
        tw__redis_keep_decide(all, ref->task, &plan_of[plan], parts.every, put.at_ms, model.now);
    bool in_place = !outcome.clears_error, same_times = task_of(ref).stage == TW__TASK_FILED && !in_place;
    assert_int_equal(decided.how == TW__TASK_KEEPDUE_IN_PLACE, in_place);
    assert_int_equal(decided.how == TW__TASK_KEEPDUE_SAME_TIMES, same_times);
    assert_true(decided.due_ms == outcome.task.due_ms);
    if (same_times) /* that of a held task is the next try of its target, which the table does not know */
        outcome.task.next_ms = next_look(ref);
    parts.due = decided.due_ms;
    struct tw__redis_task *task = tw__redis_task_new(&parts, &all->memory);
    bool given = in_place || same_times || decided.due_ms == put.at_ms, to_now = decided.due_ms == model.now;
    model.kept[given ? (unsigned)decided.how : TW__TASK_KEEPDUE_SAME_TIMES + (to_now ? 1 : 2)]++;
    if (in_place || same_times) {
        keep_times(room, ref, task, plan, &outcome, same_times);
        return same_times;
    }
    if (ref->place != ABSENT)
        model_leave(room, ref);
    *ref = (struct ref){.room = room, .task = task, .every = parts.every, .times = parts.times, .plan = plan};
    put_task(room, ref, &before, decided.due_ms, before.place != ABSENT && is_leased(&before));
    return true;
}

/* ---- promotion ------------------------------------------------------------------------------------------- */

/* Whether the cells promote.1 and promote.2 hold for a task, and not promote.3. */
static bool may_be_promoted(const struct ref *ref)
{
    return waits(ref) && ref->place != NOWHERE && next_look(ref) > model.now;
}

static void promote(struct room *room, struct ref *ref)
{
    struct tw__redis_buffer log = {0};
    model.promoted++;
    if (ref->place == HELD) {
        tw__redis_place_try_again(tw__redis_route_of(all, ref->task), model.now);
        room->line[ref->plan] = (struct line){TW_NEVER, model.now - (uint64_t)model.set, ++model.made_ready};
        return;
    }
    struct tw__task_outcome outcome =
        outcome_of(ref, (struct tw__task_call){.verb = TW__TASK_PROMOTE}, model.now);
    ref->task = do_promote(room->queue, ref->task, model.now, &log);
    follow(room, ref, &outcome);
    assert_ptr_equal(found(room, ref), ref->task);
    check_log(&log);
}

/* Promotes the tasks that come first, as TW.PROMOTE with ALL does. Those of a line are tried once. */
void promote_some(struct room *room)
{
    struct tw__redis_task *task[4];
    size_t count = tw__redis_look_earliest(room->queue, model.now + 1, UINT64_MAX, model.now, 4, task);
    for (size_t i = 0; i < count; i++) {
        struct ref *ref = ref_of(task[i], &room);
        if (may_be_promoted(ref))
            promote(room, ref);
    }
}

/* ---- any of these ---------------------------------------------------------------------------------------- */

/* Does something that the life of a task allows. A task that is filed nowhere is being delivered, and a dead
 * one is about to be purged: that is over, unless the task keeps its place. Returns false if there is
 * nothing. */
bool live(struct room *room, struct ref *ref)
{
    uint64_t what = below(25);
    bool delivering = ref->place == NOWHERE || ref->place == DEAD, forgotten = true;
    if (delivering)
        all->delivering = ref->task;
    if (what >= 22) {
        forgotten = keep_due(room, ref);
    } else if (ref->place == DEAD) {
        begin_anew(room, ref);
    } else if (what >= 20 && may_be_promoted(ref)) {
        promote(room, ref);
    } else if (is_leased(ref) && what >= 18) {
        move(room, ref);
    } else if (is_leased(ref) && ref->attempt.stage == TW__TASK_REPLACED && what >= 4 && what < 15) {
        end_replaced(room, ref);
    } else if (is_leased(ref) && what < 4) {
        extend(room, ref);
    } else if (is_leased(ref) && what < 7) {
        end_attempt(room, ref, false);
    } else if (is_leased(ref) && what < 9) {
        give_back(room, ref);
    } else if (what < 12) {
        finish(room, ref);
    } else if (what < 15) {
        kill_task(room, ref);
    } else if (what < 16) {
        begin_anew(room, ref);
    } else if (what < 18) {
        set_attempt(room, ref);
        forgotten = false;
    } else {
        all->delivering = NULL;
        return false;
    }
    if (delivering)
        assert_ptr_equal(all->delivering, forgotten ? NULL : ref->task);
    all->delivering = NULL;
    return true;
}

/* A lease has run out. */
void lapse(struct room *room, struct ref *ref)
{
    uint64_t what = below(4);
    if (ref->attempt.stage == TW__TASK_REPLACED && what != 2)
        end_replaced(room, ref);
    else if (what < 2 && !tw__task_lapse_kills(ref->attempt.lapses + 1))
        end_attempt(room, ref, true);
    else if (what == 2)
        extend(room, ref);
    else
        kill_task(room, ref);
}
