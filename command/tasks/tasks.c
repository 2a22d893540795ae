/* SPDX-License-Identifier: MIT
 *
 * tickwheel tasks: shows and changes the tasks of a file. This file opens the file, finds its queues and picks
 * the action.
 */
#include "command.h"
#include "queues.h"
#include "store_file.h"
#include "tasks_action.h"

static const char COMMAND[] = "tickwheel tasks";

static int act(const struct tasks *tasks)
{
    switch (tasks->options->action) {
    case ACTION_SUMMARY:
        return tasks_summary(tasks);
    case ACTION_LIST:
    case ACTION_NEXT:
    case ACTION_DEAD:
        return tasks_list(tasks);
    case ACTION_FORECAST:
        return tasks_forecast(tasks);
    default:
        return tasks_change(tasks);
    }
}

/* Acts on the queue of --queue, or on all. */
static int act_on_queues(struct tasks *tasks)
{
    struct queues queues;
    int error = queues_read(&queues, tasks->store, tasks->options->queue), status = COMMAND_WRONG;
    tasks->queue = queues.name;
    tasks->queues = queues.count;
    if (error == 0)
        status = act(tasks);
    else if (queues.lost)
        complain("%s: there is no memory", COMMAND);
    else
        tasks_failed(tasks, "the queues cannot be read");
    queues_free(&queues);
    return status;
}

int command_tasks(int argc, char **argv)
{
    struct tasks_options options;
    int status = tasks_options_parse(argc, argv, &options);
    if (status >= 0)
        return status;
    struct tasks tasks = {.options = &options, .store = store_file_open(COMMAND, options.store, false)};
    if (tasks.store == NULL)
        return COMMAND_WRONG;
    bool lists = options.action <= ACTION_DEAD && options.action != ACTION_SUMMARY;
    status = lists ? act_on_queues(&tasks) : act(&tasks);
    tw_store_close(tasks.store);
    return status;
}
