/* SPDX-License-Identifier: MIT
 *
 * The parts of the command that need the store, in a build that has none (TICKWHEEL_STORE is OFF, or SQLite was
 * not found).
 */
#include "command.h"

#include <stddef.h>

static int absent(const char *command)
{
    complain("tickwheel %s: this build has no store (it was built without SQLite)", command);
    return COMMAND_WRONG;
}

int command_put(int argc, char **argv)
{
    (void)argc;
    return absent(argv[0]);
}

int command_tasks(int argc, char **argv)
{
    (void)argc;
    return absent(argv[0]);
}

int command_restore(int argc, char **argv)
{
    (void)argc;
    return absent(argv[0]);
}

const struct engine *command_run_store(void)
{
    absent("run --store");
    return NULL;
}

struct feed *command_top_store(const struct top_options *options)
{
    (void)options;
    absent("top --store");
    return NULL;
}

struct source *command_work_store(const struct work_options *options, struct timers *timers,
                                  const struct source_events *events)
{
    (void)options;
    (void)timers;
    (void)events;
    absent("work --store");
    return NULL;
}
