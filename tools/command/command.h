/* SPDX-License-Identifier: MIT
 *
 * What the files of the command share: its subcommands, its exit statuses, its way of complaining.
 */
#ifndef TW_TOOLS_COMMAND_H
#define TW_TOOLS_COMMAND_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    TW_EXIT_GOOD = 0,
    TW_EXIT_WRONG =
        1, /* the wheel fired wrongly or refused a timer; a file could not be written; nobody answers */
    TW_EXIT_INPUT = 2 /* the arguments or the trace are not what they should be */
};

/* The subcommands: argv[0] is the subcommand's own name. Each returns an exit status. */
int tw_command_run(int argc, char **argv);
int tw_command_replay(int argc, char **argv);
int tw_command_draw(int argc, char **argv);
int tw_command_plan(int argc, char **argv);
int tw_command_top(int argc, char **argv);

/* Prints one line on standard error, after taking the progress bar off. */
void tw_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Complains about an option for which getopt_long() returned `code` ('?' or ':'); returns TW_EXIT_INPUT. */
int tw_complain_option(int code, char **argv);

/* Reads a whole string as a decimal number. False when it is anything else, or above `max`. */
bool tw_number_parse(const char *text, uint64_t max, uint64_t *number);

#endif
