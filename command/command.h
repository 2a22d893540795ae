/* SPDX-License-Identifier: MIT
 *
 * What the files of the command share: its subcommands, its exit statuses, its way of complaining.
 */
#ifndef COMMAND_COMMAND_H
#define COMMAND_COMMAND_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    COMMAND_GOOD = 0,
    /* The wheel fired wrongly or refused a timer; a file could not be written; nobody answers. */
    COMMAND_WRONG = 1,
    COMMAND_INPUT = 2 /* the arguments or the trace are not what they should be */
};

/* The subcommands: argv[0] is the subcommand's own name. Each returns an exit status. */
int command_run(int argc, char **argv);
int command_replay(int argc, char **argv);
int command_draw(int argc, char **argv);
int command_plan(int argc, char **argv);
int command_top(int argc, char **argv);

/* Prints one line on standard error, after taking the progress bar off. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The options of a subcommand. In the long ones "help" has the value OPTION_HELP, and no value is a letter: a
 * complaint names a letter as -o and everything else as it was written. */
struct option_reader {
    const char *letters; /* the short ones, as getopt_long() wants them: ":h", and more behind it */
    const struct option *words;
    bool (*take)(int code, void *options); /* optarg is its value; returns false when it has complained */
    void (*help)(void);                    /* prints the help text */
};

enum { OPTION_HELP = 0x2000 };

/* Reads the options of a command line; optind is at the first argument then. Returns: -1 to go on, else the
 * exit status: help was asked for and printed, or something was complained about. */
int options_read(const struct option_reader *reader, int argc, char **argv, void *options);

/* Reads a whole string as a decimal number. False when it is anything else, or above `max`. */
bool number_parse(const char *text, uint64_t max, uint64_t *number);

#endif
