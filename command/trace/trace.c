/* SPDX-License-Identifier: MIT
 *
 * tickwheel trace: picks one of its commands.
 */

#include "command.h"

#include <stdio.h>
#include <string.h>

static const char HELP[] = "usage: tickwheel trace COMMAND [ARGUMENTS]\n"
                           "\n"
                           "Reads a recorded trace of timer operations. The commands:\n"
                           "\n"
                           "  replay TRACE          run the trace, and check every firing\n"
                           "  draw TRACE --at TICK  draw the wheel at a tick\n"
                           "\n"
                           "`tickwheel trace COMMAND --help` describes a command.\n";

static int help(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    fputs(HELP, stdout);
    return COMMAND_GOOD;
}

int command_trace(int argc, char **argv)
{
    static char replay[] = "trace replay", draw[] = "trace draw";
    static const struct {
        const char *word;
        char *name;
        int (*run)(int argc, char **argv);
    } commands[] = {{"replay", replay, command_trace_replay},
                    {"draw", draw, command_trace_draw},
                    {"help", NULL, help},
                    {"--help", NULL, help},
                    {"-h", NULL, help}};
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++)
        if (strcmp(argv[1], commands[i].word) == 0) {
            argv[1] = commands[i].name;
            return commands[i].run(argc - 1, argv + 1);
        }
    complain("tickwheel trace: expected replay or draw, found %s%s%s (try: tickwheel trace --help)",
             argc > 1 ? "\"" : "", argc > 1 ? argv[1] : "nothing", argc > 1 ? "\"" : "");
    return COMMAND_INPUT;
}
