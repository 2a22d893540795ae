/* SPDX-License-Identifier: MIT
 *
 * tickwheel restore: marks a file that was restored from a backup, so that no task is called until somebody has
 * looked at them, and takes the mark away.
 */
#include "command.h"
#include "printable.h"
#include "store_file.h"

#include <stdio.h>

static const char COMMAND[] = "tickwheel restore";
static const char HELP[] = "usage: tickwheel restore --store FILE [--go]\n"
                           "\n"
                           "Marks an SQLite file of tasks as restored from a backup. From then on no\n"
                           "process calls a task of the file, also after a restart, until --go. Meanwhile\n"
                           "look at the tasks with `tickwheel tasks`, and cancel the tasks whose work has\n"
                           "been done since the backup. Tasks can be put, moved and cancelled as ever, and\n"
                           "commands that run go on. A process that runs the tasks while a backup is\n"
                           "restored into the file drops all that it knows, and reads the file anew.\n"
                           "\n"
                           "  --store FILE   the SQLite file\n"
                           "  --go           take the mark away: tasks that are due are called at once\n"
                           "\n"
                           "Exit status:\n"
                           "  0  success, also if the file had the mark already, or had none;\n"
                           "  1  the file cannot be read or written;\n"
                           "  2  arguments are wrong.\n";

struct restore {
    const char *store;
    bool go;
};

/* Reads the arguments. Returns: -1 to go on, else an exit status. */
static int parse(int argc, char **argv, struct restore *restore)
{
    struct option_table table = {.command = COMMAND, .help = {HELP}};
    options_text(&table, "--store", &restore->store);
    options_flag(&table, "--go", &restore->go);
    int status = options_read(&table, argc, argv);
    if (status >= 0)
        return status;
    if (restore->store == NULL) {
        complain("%s: expected --store FILE (try: tickwheel restore --help)", COMMAND);
        return COMMAND_INPUT;
    }
    if (optind < argc) {
        complain("%s: expected no argument, found \"%s\"", COMMAND, argv[optind]);
        return COMMAND_INPUT;
    }
    return -1;
}

static void tell(const struct restore *restore, bool changed)
{
    if (restore->go) {
        printf("%s: %s\n", restore->store, changed ? "tasks are called again" : "not marked as restored");
        return;
    }
    printf("%s: %smarked as restored; no task is called until `tickwheel restore --store ", restore->store,
           changed ? "" : "already ");
    printable_word(restore->store, stdout);
    puts(" --go`");
}

int command_restore(int argc, char **argv)
{
    struct restore restore = {0};
    int status = parse(argc, argv, &restore);
    if (status >= 0)
        return status;
    struct tw_store *store = store_file_open(COMMAND, restore.store, false);
    if (store == NULL)
        return COMMAND_WRONG;
    bool changed;
    int error = tw_store_mark_restored(store, !restore.go, &changed);
    if (error != 0)
        store_file_complain(store, COMMAND, restore.store,
                            restore.go ? "the mark is not taken away" : "the file is not marked as restored");
    else
        tell(&restore, changed);
    tw_store_close(store);
    return error != 0 ? COMMAND_WRONG : COMMAND_GOOD;
}
