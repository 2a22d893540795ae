/* SPDX-License-Identifier: MIT
 *
 * tickwheel tasks: shows and changes the tasks of a file. This file opens the file, finds its queues and picks
 * the action.
 */
#include "command.h"
#include "store_file.h"
#include "task_options.h"
#include "tasks_action.h"

#include <stdlib.h>
#include <string.h>

static const char COMMAND[] = "tickwheel tasks";

/* ---- queues ---------------------------------------------------------------------------------------------- */

/* Names of queues that grow in number. */
struct names {
    char **name;
    size_t count, room;
    bool lost; /* there was no memory */
};

static void add_name(void *arg, const char *queue)
{
    struct names *names = arg;
    if (names->count == names->room) {
        size_t room = names->room * 2 + 8;
        char **more = realloc(names->name, room * sizeof *more);
        names->lost |= more == NULL;
        if (more == NULL)
            return;
        names->name = more;
        names->room = room;
    }
    char *copy = strdup(queue);
    names->lost |= copy == NULL;
    if (copy != NULL)
        names->name[names->count++] = copy;
}

static void free_names(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->name[i]);
    free(names->name);
}

/* Finds the queues to show: the queue of --queue, or all. Returns false after it has printed an error. */
static bool find_queues(struct tasks *tasks, struct names *names)
{
    bool good = true;
    if (tasks->options->queue != NULL)
        add_name(names, tasks->options->queue);
    else
        good = tw_store_queues(tasks->store, add_name, names) >= 0;
    if (!good)
        tasks_failed(tasks, "the queues cannot be read");
    else if (names->lost)
        complain("%s: there is no memory", COMMAND);
    tasks->queue = names->name;
    tasks->queues = names->count;
    return good && !names->lost;
}

/* ---- actions --------------------------------------------------------------------------------------------- */

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

int command_tasks(int argc, char **argv)
{
    struct tasks_options options;
    struct names names = {NULL};
    int status = tasks_options_parse(argc, argv, &options);
    if (status >= 0)
        return status;
    struct tasks tasks = {.options = &options, .store = store_file_open(COMMAND, options.store, false)};
    if (tasks.store == NULL)
        return COMMAND_WRONG;
    bool shows = options.action <= ACTION_DEAD;
    status = !shows || find_queues(&tasks, &names) ? act(&tasks) : COMMAND_WRONG;
    free_names(&names);
    tw_store_close(tasks.store);
    return status;
}
