/* SPDX-License-Identifier: MIT */
#include "value.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct value *kept; /* values of tasks handed over, and values with calls that were not done */
static uint64_t filings;   /* so far */

struct value *value_new(const struct line *line, const struct when *first)
{
    size_t id = strlen(line->id) + 1, payload = strlen(line->payload) + 1;
    struct value *value = malloc(sizeof *value + id + payload);
    if (value == NULL)
        return NULL;
    *value =
        (struct value){.first = *first, .period_ns = line->period_ns, .filing = ++filings, .task_holds = true};
    memcpy(value->id, line->id, id);
    memcpy(value->id + id, line->payload, payload);
    return value;
}

void value_free(struct value *value)
{
    free(value);
}

const char *value_payload(const struct value *value)
{
    return value->id + strlen(value->id) + 1;
}

/* ---- calls ----------------------------------------------------------------------------------------------- */

bool value_enter(struct value *value, const struct tw_task *task, struct when *first)
{
    pthread_mutex_lock(&lock);
    bool wanted = !value->ended;
    value->skipped = !wanted;
    value->inside = wanted;
    value->last = task->period_ns == 0 || task->left == 0;
    *first = value->first;
    pthread_mutex_unlock(&lock);
    return wanted;
}

/* The task releases its value; a value with calls that were not done is kept. Does nothing the second time.
 * The lock is held. */
static void release(struct value *value)
{
    if (value->kept || !value->task_holds)
        return;
    value->kept = value->unprinted > 0;
    value->task_holds = value->kept;
    if (value->kept) {
        value->next = kept;
        kept = value;
    }
}

void value_leave(struct value *value, const struct tw_task *task, bool done)
{
    pthread_mutex_lock(&lock);
    value->inside = false;
    if (!done && value->unprinted++ == 0)
        value->unprinted_due_ns = task->due_ns;
    if (value->last || value->ended)
        release(value);
    bool free_it = !value->task_holds && !value->reader_holds;
    pthread_mutex_unlock(&lock);
    if (free_it)
        free(value);
}

/* ---- the reader ------------------------------------------------------------------------------------------ */

/* Looks up an id. Returns NULL if it names no task with a call to come. The lock is held. */
static struct value *find(struct tw_sched *sched, const char *id, struct tw_task *task)
{
    return tw_sched_key_get(sched, tw_text(id), task, sizeof *task) == 0 ? task->arg : NULL;
}

/* Finds the value of a task that the reader is going to cancel, and makes the reader hold it. */
static struct value *find_to_end(struct tw_sched *sched, const char *id, struct tw_task *task)
{
    pthread_mutex_lock(&lock);
    struct value *value = find(sched, id, task);
    if (value != NULL)
        value->reader_holds = value->ended = true;
    pthread_mutex_unlock(&lock);
    return value;
}

/* The reader releases the value of a cancelled task. It also releases the task's hold, unless a call is
 * running: value_leave() then does that. */
static void let_go(struct value *value)
{
    pthread_mutex_lock(&lock);
    value->reader_holds = false;
    if (!value->inside)
        release(value);
    bool free_it = !value->task_holds;
    pthread_mutex_unlock(&lock);
    if (free_it)
        free(value);
}

static bool is_inside(const struct value *value)
{
    pthread_mutex_lock(&lock);
    bool inside = value->inside;
    pthread_mutex_unlock(&lock);
    return inside;
}

/* Returns whether the cancel prevented a call. `found` is the result of tw_sched_cancel(). */
static bool was_in_time(const struct value *value, enum tw_cancel found)
{
    pthread_mutex_lock(&lock);
    bool in_time =
        value->skipped || found == TW_CANCEL_CANCELLED || (found == TW_CANCEL_AT_WORK && !value->last);
    pthread_mutex_unlock(&lock);
    return in_time;
}

/* A call that is inside (between value_enter() and value_leave()) releases the value when it leaves. If a
 * running call has not entered yet, or has left, only the scheduler knows when it has returned, so we wait
 * for that. The wait is short, because `ended` is set. */
bool value_cancel(struct tw_sched *sched, const char *id)
{
    struct tw_task task;
    struct value *value = find_to_end(sched, id, &task);
    if (value == NULL)
        return false;
    enum tw_cancel found = tw_sched_cancel(sched, task.id);
    if (found == TW_CANCEL_AT_WORK && !is_inside(value))
        tw_sched_cancel_wait(sched, task.id, NULL);
    bool in_time = was_in_time(value, found);
    let_go(value);
    return in_time;
}

bool value_move(struct tw_sched *sched, const char *id, const struct when *when)
{
    struct tw_task task;
    pthread_mutex_lock(&lock); /* the last call releases the value under this lock, so it stays valid */
    struct value *value = find(sched, id, &task);
    bool moved = value != NULL && tw_sched_key_move_at(sched, tw_text(id), when->due_ns) == 0;
    if (moved) {
        value->first = *when;
        value->filing = ++filings;
    }
    pthread_mutex_unlock(&lock);
    return moved;
}

/* ---- the end --------------------------------------------------------------------------------------------- */

void value_keep(void *arg, const struct tw_task *task)
{
    struct value *value = task->arg;
    (void)arg;
    pthread_mutex_lock(&lock);
    value->due_ns = task->due_ns;
    value->calls = task->left == TW_FOREVER ? TW_FOREVER : task->left + 1;
    value->next = kept;
    kept = value;
    pthread_mutex_unlock(&lock);
}

uint64_t value_next_ns(const struct value *value)
{
    return value->unprinted > 0 ? value->unprinted_due_ns : value->due_ns;
}

static bool comes_before(const struct value *one, const struct value *other)
{
    uint64_t one_ns = value_next_ns(one), other_ns = value_next_ns(other);
    return one_ns != other_ns ? one_ns < other_ns : one->filing < other->filing;
}

static struct value *merge(struct value *one, struct value *other)
{
    struct value *all = NULL, **end = &all;
    while (one != NULL && other != NULL) {
        struct value **first = comes_before(one, other) ? &one : &other;
        *end = *first;
        end = &(*first)->next;
        *first = *end;
    }
    *end = one != NULL ? one : other;
    return all;
}

/* Takes so many values from the head of a list. Returns them in their order. */
static struct value *sort(struct value **list, size_t count)
{
    struct value *first = *list;
    if (count > 1) {
        first = sort(list, count / 2);
        return merge(first, sort(list, count - count / 2));
    }
    *list = first->next;
    first->next = NULL;
    return first;
}

/* The scheduler hands its tasks over in no particular order. */
struct value *value_kept(void)
{
    size_t count = 0;
    for (const struct value *value = kept; value != NULL; value = value->next)
        count++;
    return count > 0 ? sort(&kept, count) : NULL;
}
