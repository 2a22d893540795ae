/* SPDX-License-Identifier: MIT
 *
 * Changes tasks: cancel, move, replay, promote, purge, and the pause of a queue.
 */
#include "command.h"
#include "figures.h"
#include "json.h"
#include "printable.h"
#include "task_options.h"
#include "task_print.h"
#include "tasks_action.h"

static const char *queue_of(const struct tasks *tasks)
{
    return tasks->options->queue != NULL ? tasks->options->queue : TASK_QUEUE;
}

/* Without an --id the name has none, which stands for all tasks. */
static struct tw_store_name name_of(const struct tasks *tasks)
{
    return (struct tw_store_name){queue_of(tasks), tasks->options->id};
}

/* ---- results --------------------------------------------------------------------------------------------- */

static json_t *result_of(const struct tasks *tasks)
{
    json_t *object = json_object();
    json_put_bytes(object, "queue", tw_text(queue_of(tasks)));
    if (tasks->options->id.data != NULL)
        json_put_bytes(object, "id", tasks->options->id);
    return object;
}

/* Prints the effect on the task of --id: "cancelled". The status is 1 if nothing was done. */
static int told(const struct tasks *tasks, const char *effect, bool good)
{
    if (tasks->options->json) {
        json_t *object = result_of(tasks);
        json_object_set_new(object, "result", json_string(effect));
        json_line(object, stdout);
    } else {
        FILE *out = good ? stdout : stderr;
        printable_write(tasks->options->id, true, SIZE_MAX, out);
        fprintf(out, ": %s\n", effect);
    }
    return good ? COMMAND_GOOD : COMMAND_WRONG;
}

/* Prints a number of tasks with its effect: "3 tasks replayed"; with an ID, the effect alone or, of 0 tasks,
 * that there is `none`. */
static int told_count(const struct tasks *tasks, const char *effect, uint64_t count, const char *none)
{
    if (tasks->options->id.data != NULL)
        return told(tasks, count > 0 ? effect : none, count > 0);
    if (tasks->options->json) {
        json_t *object = result_of(tasks);
        json_object_set_new(object, effect, json_number(count));
        json_line(object, stdout);
    } else {
        printf("%s task%s %s\n", figure_count(count).text, count == 1 ? "" : "s", effect);
    }
    return COMMAND_GOOD;
}

/* ---- changes --------------------------------------------------------------------------------------------- */

static const char GONE[] = "there is no such task: it has ended, or never was";

static int cancel(const struct tasks *tasks)
{
    enum tw_cancel found;
    if (tw_store_cancel(tasks->store, name_of(tasks), &found) != 0)
        return tasks_failed(tasks, "the task is not cancelled");
    if (found == TW_CANCEL_GONE)
        return told(tasks, GONE, false);
    return told(tasks, found == TW_CANCEL_AT_WORK ? "cancelled while at work" : "cancelled", true);
}

static int move_task(const struct tasks *tasks)
{
    const struct tasks_options *options = tasks->options;
    bool made;
    int error = tw_store_move_at(tasks->store, name_of(tasks), options->due_ms, options->condition, &made);
    if (error == TW_EGONE)
        return told(tasks, GONE, false);
    if (error == TW_EDEAD)
        return told(tasks, tw_store_strerror(error), false);
    if (error != 0)
        return tasks_failed(tasks, "the task is not moved");
    return made ? told(tasks, "moved", true) : told(tasks, "not moved: --condition has kept its time", false);
}

static int replay(const struct tasks *tasks)
{
    uint64_t count;
    if (tw_store_replay(tasks->store, name_of(tasks), tasks->options->due_ms, &count) != 0)
        return tasks_failed(tasks, "no task is replayed");
    return told_count(tasks, "replayed", count, "there is no dead task with this ID");
}

static int promote(const struct tasks *tasks)
{
    uint64_t count;
    if (tw_store_promote(tasks->store, name_of(tasks), &count) != 0)
        return tasks_failed(tasks, "no task is promoted");
    return told_count(tasks, "promoted", count, "there is no waiting task with this ID");
}

/* A task that has died in this millisecond is removed too, unless --older says otherwise. */
static int purge(const struct tasks *tasks)
{
    uint64_t now_ms = tw_store_now() + 1, older_ms = tasks->options->older_ms, count;
    uint64_t before_ms = now_ms > older_ms ? now_ms - older_ms : 0;
    if (tw_store_purge(tasks->store, name_of(tasks), before_ms, &count) != 0)
        return tasks_failed(tasks, "no task is removed");
    return told_count(tasks, "purged", count, "there is no dead task with this ID");
}

static int pause_queue(const struct tasks *tasks, bool paused)
{
    bool changed;
    int error = paused ? tw_store_pause(tasks->store, queue_of(tasks), &changed)
                       : tw_store_resume(tasks->store, queue_of(tasks), &changed);
    if (error != 0)
        return tasks_failed(tasks, paused ? "the queue is not paused" : "the pause is not ended");
    if (tasks->options->json) {
        json_t *object = result_of(tasks);
        json_object_set_new(object, "paused", json_boolean(paused));
        json_object_set_new(object, "changed", json_boolean(changed));
        json_line(object, stdout);
        return COMMAND_GOOD;
    }
    fputs("queue ", stdout);
    printable_write(tw_text(queue_of(tasks)), false, SIZE_MAX, stdout);
    printf(": %s%s\n", changed ? "" : "already ", paused ? "paused" : changed ? "resumed" : "not paused");
    return COMMAND_GOOD;
}

int tasks_change(const struct tasks *tasks)
{
    switch (tasks->options->action) {
    case ACTION_CANCEL:
        return cancel(tasks);
    case ACTION_MOVE:
        return move_task(tasks);
    case ACTION_REPLAY:
        return replay(tasks);
    case ACTION_PROMOTE:
        return promote(tasks);
    case ACTION_PURGE:
        return purge(tasks);
    default:
        return pause_queue(tasks, tasks->options->action == ACTION_PAUSE);
    }
}
